//! Stores that are full, damaged, shared and refused.

use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use fairlab_files::temporary::PrivateFolder;

use super::*;

const BOUND: u64 = 4 << 20;

fn store(folder: &PrivateFolder) -> Store {
    Store::at(&folder.path().join("below/runs.redb"), BOUND).expect("it is on")
}

fn key(number: u64) -> StoreKey {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&xxh3_64(&number.to_le_bytes()).to_le_bytes());
    key[8..16].copy_from_slice(&number.to_le_bytes());
    key
}

/// Bytes of no pattern, of a length that varies.
fn value(number: u64) -> Vec<u8> {
    let length = 500 + number * 37 % 3_000;
    (0..length).map(|place| xxh3_64(&(number ^ place << 32).to_le_bytes()) as u8).collect()
}

fn batch(numbers: std::ops::Range<u64>) -> StoreBatch {
    let values = numbers.map(|number| (key(number), value(number))).collect();
    StoreBatch { values, ..StoreBatch::default() }
}

fn looked(store: &Store, numbers: std::ops::Range<u64>) -> StoreFinds {
    store.look(&numbers.map(key).collect::<Vec<_>>()).expect("a look")
}

#[test]
fn what_is_written_is_found() {
    let folder = PrivateFolder::create().expect("a folder");
    let store = store(&folder);
    assert_eq!(looked(&store, 0..2).values, [None, None], "no file yet");
    store.write(&batch(0..5)).expect("written");
    let finds = looked(&store, 3..7);
    assert_eq!(finds.values, [Some(value(3)), Some(value(4)), None, None]);
    assert!(finds.damaged.is_empty() && finds.unnoted.is_empty());
    let other =
        StoreBatch { values: vec![(key(3), b"other".to_vec())], gone: vec![key(4)], ..StoreBatch::default() };
    store.write(&other).expect("written");
    assert_eq!(looked(&store, 3..5).values, [Some(b"other".to_vec()), None]);
}

#[test]
fn a_use_is_noted_after_a_day_and_no_more_than_the_bound_is_kept() {
    let folder = PrivateFolder::create().expect("a folder");
    let store = store(&folder);
    let path = store.path();
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    let put = |numbers, now| assert!(write_file(path, BOUND, &batch(numbers), now).is_ok());
    put(0..100, 10);
    let unnoted = |now| read_file(path, &[key(7)], now).unwrap_or_else(|_| panic!("read")).unnoted;
    assert_eq!((unnoted(10 + 24 * 60), unnoted(11 + 24 * 60)), (vec![], vec![key(7)]));
    let noted = StoreBatch { used: vec![key(7), key(1_000_000)], ..StoreBatch::default() };
    assert!(write_file(path, BOUND, &noted, 5_000).is_ok());
    assert!(unnoted(5_001).is_empty());
    for round in 1..30 {
        put(round * 100..(round + 1) * 100, 100 + round as u32);
        let bytes = fs::metadata(path).expect("a file").blocks() * 512;
        assert!(bytes <= BOUND, "round {round}: {bytes}");
    }
    let there = looked(&store, 0..3_000).values.iter().map(Option::is_some).collect::<Vec<_>>();
    assert!(there[7] && !there[8] && there[2_999], "the one that was used stays");
    let count = there.iter().filter(|there| **there).count();
    assert!((500..1_000).contains(&count), "{count}");
    let first = there.iter().skip(100).position(|there| *there).expect("some");
    assert!(there[100 + first + 100..].iter().all(|there| *there), "the oldest went");
}

#[test]
fn bytes_that_are_not_those_that_were_kept_are_told() {
    let sealed = sealed(&key(1), b"bytes");
    assert_eq!(opened(&key(1), &sealed), Some(b"bytes".to_vec()));
    assert_eq!((opened(&key(2), &sealed), opened(&key(1), &sealed[..4])), (None, None));
    let folder = PrivateFolder::create().expect("a folder");
    let store = store(&folder);
    store.write(&batch(0..40)).expect("written");
    let path = store.path();
    let whole = fs::read(path).expect("read");
    let at = whole.windows(400).position(|bytes| *bytes == value(5)[..400]).expect("the value");
    let mut flipped = whole.clone();
    flipped[at + 10] ^= 1;
    fs::write(path, flipped).expect("written");
    let finds = looked(&store, 0..40);
    assert_eq!((finds.damaged, &finds.values[5]), (vec![key(5)], &None));
    assert_eq!(finds.values.iter().flatten().count(), 39);
}

/// Whatever is overwritten or cut off: what is found is what was kept, and at the next write all is well.
#[test]
fn a_damaged_file_gives_nothing_wrong() {
    let folder = PrivateFolder::create().expect("a folder");
    let store = store(&folder);
    store.write(&batch(0..60)).expect("written");
    store.write(&batch(60..80)).expect("written");
    let path = store.path();
    let whole = fs::read(path).expect("read");
    let mut removed = 0;
    for round in 0..120_u64 {
        let chance = |what: u64| xxh3_64(&(round << 8 | what).to_le_bytes()) as usize;
        let mut bytes = whole.clone();
        match round % 4 {
            0 => bytes.truncate(chance(0) % whole.len()),
            1 => bytes[..4096][chance(1) % 4096] ^= 1 << (chance(2) % 8),
            2 => {
                (0..20)
                    .for_each(|flip| bytes[chance(2 + flip) % whole.len()] ^= 1 << (chance(40 + flip) % 8));
            }
            _ => {
                let page = chance(3) % (whole.len() / 4096) * 4096;
                bytes[page..page + 4096].fill(chance(4) as u8);
            }
        }
        fs::write(path, bytes).expect("written");
        match store.look(&(0..80).map(key).collect::<Vec<_>>()) {
            Ok(finds) => {
                for (number, found) in finds.values.iter().enumerate() {
                    assert!(
                        found.as_ref().is_none_or(|found| *found == value(number as u64)),
                        "round {round}"
                    );
                }
            }
            Err(StoreTrouble::Damaged(_)) => {
                removed += 1;
                assert!(!path.exists());
            }
            Err(other) => panic!("round {round}: {other:?}"),
        }
        // A fault that no look has met may be met by a write, which removes the file.
        match store.write(&batch(100..101)) {
            Ok(()) => {}
            Err(StoreTrouble::Damaged(_)) => store.write(&batch(100..101)).expect("a new one"),
            Err(other) => panic!("round {round}: {other:?}"),
        }
        assert_eq!(looked(&store, 100..101).values, [Some(value(100))], "round {round}");
    }
    assert!(removed > 15, "{removed}");
}

#[test]
fn several_take_turns() {
    let folder = PrivateFolder::create().expect("a folder");
    let (store, ended) = (store(&folder), AtomicBool::new(false));
    thread::scope(|scope| {
        let writers = (0..3).map(|writer| {
            let store = &store;
            scope.spawn(move || {
                for round in 0..20 {
                    let first = writer * 1_000 + round * 10;
                    store.write(&batch(first..first + 10)).expect("written");
                }
            })
        });
        let writers = writers.collect::<Vec<_>>();
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                for (number, found) in looked(&store, 0..3_000).values.iter().enumerate() {
                    assert!(found.as_ref().is_none_or(|found| *found == value(number as u64)));
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        writers.into_iter().for_each(|writer| writer.join().expect("it ends"));
        ended.store(true, Ordering::Relaxed);
    });
    assert_eq!(looked(&store, 0..3_000).values.iter().flatten().count(), 600, "nothing is lost");
}

#[test]
fn a_place_that_refuses_is_told_and_a_link_to_nothing_keeps_nothing() {
    let folder = PrivateFolder::create().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "a file").expect("written");
    let below = Store::at(&file.join("runs.redb"), BOUND).expect("it is on");
    assert!(matches!(below.write(&batch(0..1)), Err(StoreTrouble::Refused(_))));
    assert_eq!(below.look(&[key(0)]).map(|finds| finds.values), Ok(vec![None]));
    let off = folder.path().join("off");
    symlink("/dev/null", &off).expect("a link");
    assert!(Store::at(&off, BOUND).is_none());
}
