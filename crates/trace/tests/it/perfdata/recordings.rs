//! Recordings of a real kernel by a real perf, whole and damaged.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use fairlab_event::{Counter, DigestSink, Event, EventKind, sink_fn};
use fairlab_trace::{ImportStats, ReadOptions, Severity, Trouble, perfdata, read_path};

pub(crate) fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn read_file(name: &str, sink: &mut dyn fairlab_event::Sink) -> ImportStats {
    let file = File::open(testdata(name)).expect("a recording");
    perfdata::read_file(file, &ReadOptions::default(), sink).expect("a perf.data")
}

#[test]
fn every_event_of_the_hackbench_recording_is_read_in_order() {
    let mut names: BTreeMap<String, u64> = BTreeMap::new();
    let mut states: BTreeMap<String, u64> = BTreeMap::new();
    let mut latest = 0;
    let mut sink = sink_fn(|event: &Event<'_>| {
        assert!(latest <= event.time.0, "{} after {latest}", event.time.0);
        latest = event.time.0;
        *names.entry(event.kind.name().to_string()).or_default() += 1;
        if let EventKind::SchedSwitch(switch) = event.kind {
            *states.entry(switch.prev_state.to_string()).or_default() += 1;
        }
    });
    let stats = read_file("perf-hackbench.data", &mut sink);
    drop(sink);
    // As `perf script` prints them.
    let expected = [
        ("sched_migrate_task", 119),
        ("sched_process_fork", 80),
        ("sched_stat_runtime", 10_444),
        ("sched_switch", 6_121),
        ("sched_wakeup_new", 80),
        ("sched_waking", 5_302),
        ("task_exit", 81),
        ("task_name", 88),
        ("task_start", 167),
    ];
    assert_eq!(names, expected.map(|(name, count)| (name.to_string(), count)).into());
    let expected = [("D", 2), ("I", 28), ("R", 720), ("R+", 21), ("S", 5_269), ("X", 4), ("Z", 77)];
    assert_eq!(states, expected.map(|(state, count)| (state.to_string(), count)).into());
    assert_eq!(stats.events, 22_146 + 88 + 167 + 81);
    assert_eq!(stats.count(Trouble::SkippedRecord), 159 + 1 + 3 + 1 + 1 + 1 + 1);
    assert_eq!(stats.worst(), Some(Severity::Info));
}

#[test]
fn context_names_the_task_by_the_recorders_knowledge() {
    let mut first = String::new();
    let mut sink = sink_fn(|event: &Event<'_>| {
        if first.is_empty() && event.kind.name() == "sched_waking" {
            first = format!("{} {} {:?}", event.time, event.cpu, event.context);
        }
    });
    read_file("perf-hackbench.data", &mut sink);
    drop(sink);
    let expected =
        "1356.932342481 0 Context { comm: \"perf\", pid: Pid(10924), tgid: Pid(10924), flags: Flags(";
    assert!(first.starts_with(expected), "{first}");
}

#[test]
fn a_file_a_pipe_and_a_compressed_file_give_the_same_events() {
    let mut in_place = DigestSink::default();
    let stats = read_file("perf-hackbench.data", &mut in_place);
    let bytes = std::fs::read(testdata("perf-hackbench.data")).expect("a recording");
    let mut piped = DigestSink::default();
    let options = ReadOptions::default();
    assert_eq!(perfdata::read(&bytes[..], &options, &mut piped).expect("a perf.data"), stats);
    assert_eq!(piped.digest(), in_place.digest());
    let compressed = zstd::encode_all(&bytes[..], 1).expect("memory");
    let mut detected = DigestSink::default();
    fairlab_trace::read(Box::new(&compressed[..]), &options, &mut detected).expect("a perf.data");
    assert_eq!(detected.digest(), in_place.digest());
}

#[test]
fn what_is_too_long_for_memory_goes_through_a_temporary_file() {
    // The recording, its data section followed by five megabytes that no record covers.
    let bytes = std::fs::read(testdata("perf-make.data")).expect("a recording");
    let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
    let features_at = (long(40) + long(48)) as usize;
    const PADDING: usize = 5 << 20;
    let mut padded = bytes[..features_at].to_vec();
    for record in 0..PADDING / 4096 {
        padded.write_all(&(79 + record as u32 % 2).to_le_bytes()).expect("memory");
        padded.write_all(&[0, 0]).expect("memory");
        padded.write_all(&4096_u16.to_le_bytes()).expect("memory");
        padded.resize(features_at + (record + 1) * 4096, 0);
    }
    padded.extend(&bytes[features_at..]);
    let features = (0..256).filter(|bit| bytes[72 + bit / 8] & (1 << (bit % 8)) != 0).count();
    let mut grow = |at: usize| {
        let value = u64::from_le_bytes(std::array::from_fn(|index| padded[at + index])) + PADDING as u64;
        padded[at..at + 8].copy_from_slice(&value.to_le_bytes());
    };
    grow(48);
    for feature in 0..features {
        grow(features_at + PADDING + 16 * feature);
    }
    let (mut plain, mut spooled) = (DigestSink::default(), DigestSink::default());
    let stats = read_file("perf-make.data", &mut plain);
    let spooled_stats =
        perfdata::read(&padded[..], &ReadOptions::default(), &mut spooled).expect("a perf.data");
    assert_eq!(spooled.digest(), plain.digest());
    assert_eq!(
        spooled_stats.count(Trouble::SkippedRecord),
        stats.count(Trouble::SkippedRecord) + (PADDING / 4096) as u64
    );
}

#[test]
fn the_text_that_perf_script_makes_of_it_says_the_same() {
    let mut of_text = Vec::new();
    let mut keep = sink_fn(|event: &Event<'_>| {
        of_text.push(format!("{} {} {} {:?}", event.time, event.cpu, event.context.pid, event.kind));
    });
    read_path(&testdata("perf-6.1-hackbench.txt.zst"), &ReadOptions::default(), &mut keep).expect("text");
    drop(keep);
    let mut of_data = Vec::new();
    let mut keep = sink_fn(|event: &Event<'_>| {
        if !event.kind.is_task_record() {
            of_data.push(format!("{} {} {} {:?}", event.time, event.cpu, event.context.pid, event.kind));
        }
    });
    read_file("perf-hackbench.data", &mut keep);
    drop(keep);
    assert_eq!((of_data.len(), of_text.len()), (22_146, 22_146));
    for (data, text) in of_data.iter().zip(&of_text) {
        assert_eq!(data, text);
    }
}

/// Reads damaged bytes; all that is asked is an answer.
fn survive(bytes: &[u8]) -> Option<ImportStats> {
    let mut counter = Counter::default();
    let stats = perfdata::read(bytes, &ReadOptions::default(), &mut counter).ok()?;
    assert_eq!(stats.events, counter.events);
    Some(stats)
}

#[test]
fn a_recording_cut_anywhere_is_answered() {
    let bytes = std::fs::read(testdata("perf-make.data")).expect("a recording");
    let whole = survive(&bytes).expect("a perf.data");
    let (mut complete, mut partial) = (0, 0);
    for cut in (0..bytes.len()).step_by(397) {
        let Some(stats) = survive(&bytes[..cut]) else { continue };
        if stats.events == whole.events {
            complete += 1;
        } else {
            // The event formats follow the records; some of them are left.
            assert!(stats.events < whole.events, "cut at {cut}");
            assert!(stats.count(Trouble::UnknownEventFormat) > 0 && stats.count(Trouble::TruncatedFile) > 0);
            partial += 1;
        }
    }
    assert!(complete > 0 && partial > 0, "{complete} {partial}");
}

#[test]
fn a_recording_damaged_anywhere_is_answered() {
    for name in ["perf-make.data", "perf-pipe-compressed.data", "perf-compressed.data", "perf-mixed.data"] {
        let bytes = std::fs::read(testdata(name)).expect("a recording");
        let data_start = 1224;
        let header = (0..data_start).step_by(5);
        let rest = (data_start..bytes.len()).step_by(311);
        let mut answered = 0;
        for at in header.chain(rest) {
            for damage in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= damage;
                answered += u64::from(survive(&damaged).is_some());
            }
        }
        assert!(answered > 500, "{name}: {answered}");
    }
}

#[test]
fn noise_in_the_data_section_costs_only_what_it_covers() {
    let mut bytes = std::fs::read(testdata("perf-make.data")).expect("a recording");
    let whole = survive(&bytes).expect("a perf.data").events;
    // A multiplicative generator: the same noise in every run.
    let mut state = 1_u64;
    for byte in &mut bytes[60_000..60_400] {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (state >> 56) as u8;
    }
    let mut counter = Counter::default();
    let stats = perfdata::read(&bytes[..], &ReadOptions::default(), &mut counter).expect("a perf.data");
    assert!(stats.events + 20 > whole && stats.events < whole, "{} of {whole}", stats.events);
    assert!(stats.worst() == Some(Severity::DataLoss), "{:?}", stats.troubles());
}
