//! How long a store takes for many values: `cargo bench -p fairlab-store --bench store`.
//!
//! Must not know: what values are.

use std::fs;
use std::time::Instant;

use fairlab_files::temporary::PrivateFolder;
use fairlab_store::{Store, StoreBatch, StoreKey};
use xxhash_rust::xxh3::xxh3_64;

/// Values, their bytes, and how many are written at once.
const VALUES: u64 = 40_000;
const BYTES: u64 = 2_000;
const AT_ONCE: u64 = 1_000;

fn key(number: u64) -> StoreKey {
    let mut key = [0; 32];
    key.chunks_mut(8).zip(0..).for_each(|(part, place): (_, u64)| {
        part.copy_from_slice(&xxh3_64(&(number << 2 | place).to_le_bytes()).to_le_bytes());
    });
    key
}

fn main() {
    let folder = PrivateFolder::create().expect("a folder");
    let path = folder.path().join("runs.redb");
    let store = Store::at(&path, 512 << 20).expect("it is on");
    let begin = Instant::now();
    for first in (0..VALUES).step_by(usize::try_from(AT_ONCE).expect("small")) {
        let values = (first..first + AT_ONCE).map(|number| (key(number), vec![number as u8; BYTES as usize]));
        store.write(&StoreBatch { values: values.collect(), ..StoreBatch::default() }).expect("written");
    }
    let batches = VALUES / AT_ONCE;
    let length = fs::metadata(&path).expect("a file").len();
    println!("{VALUES} values of {BYTES} bytes in {batches} writes: {:?}", begin.elapsed());
    println!("the file has {:.2} times their bytes", length as f64 / (VALUES * BYTES) as f64);
    for count in [1, 20, 1_000, VALUES] {
        let keys = (0..count).map(|number| key(number * 7 % VALUES)).collect::<Vec<_>>();
        let begin = Instant::now();
        let finds = store.look(&keys).expect("a look");
        let took = begin.elapsed();
        assert!(finds.values.iter().all(Option::is_some) && finds.damaged.is_empty());
        println!("a look for {count}: {took:?}, {:?} each", took / u32::try_from(count).expect("few"));
    }
}
