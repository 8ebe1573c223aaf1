//! Files that are cut, or changed anywhere: read as far as it goes, with an account, in bounded memory and time.

use fairlab_event::{Counter, Cpu, EventKind};
use fairlab_trace::tracedat::{self, TraceDatCompression};
use fairlab_trace::{ImportStats, ReadOptions, Severity, Trouble};

use super::made::{BOTH, converted, events, recording};
use crate::kept::Kept;
use crate::random::Random;

/// Reads damaged bytes, CPUs of which nothing is there left out; all that is asked is an answer.
fn survive(bytes: &[u8]) -> Option<ImportStats> {
    let mut counter = Counter::default();
    let whatever = ReadOptions { allow_unreadable: true, ..ReadOptions::default() };
    let stats = tracedat::read(bytes, &whatever, &mut counter).ok()?;
    assert_eq!(stats.events, counter.events);
    Some(stats)
}

/// trace-cmd writes last of all where each CPU's records are. They are found without that.
#[test]
fn a_recording_without_its_end_keeps_the_records_that_are_there() {
    let bytes = recording();
    let whole = survive(&bytes).expect("a trace.dat");
    // Behind the first options; behind the records.
    let (first, last) = (1_139_129, 1_344_580);
    let mut most = 0;
    for cut in (first..last).step_by(9_973) {
        match survive(&bytes[..cut]) {
            Some(stats) => {
                assert!(stats.count(Trouble::TruncatedFile) > 0, "cut at {cut}: {:?}", stats.troubles());
                assert!(most <= stats.events, "cut at {cut}");
                most = stats.events;
            }
            None => assert!(cut < 1_142_784 + 4, "cut at {cut}"),
        }
    }
    assert!(most > whole.events * 9 / 10, "{most} of {}", whole.events);
    for cut in (last..last + 99).step_by(7) {
        let stats = survive(&bytes[..cut]).expect("a trace.dat");
        assert_eq!((stats.events, stats.count(Trouble::TruncatedFile)), (whole.events, 1), "cut at {cut}");
    }
    // Each CPU's events are its own, up to somewhere; what follows is lost.
    let (of_whole, of_part) = (events_of(&bytes), events_of(&bytes[..1_300_000]));
    for cpu in [Cpu(0), Cpu(1)] {
        let of_cpu = |events: &[Kept]| -> Vec<Kept> {
            let is_lost = |kept: &Kept| matches!(kept.event.kind, EventKind::Lost { .. });
            events.iter().filter(|kept| kept.event.cpu == cpu && !is_lost(kept)).cloned().collect()
        };
        let (whole, part) = (of_cpu(&of_whole), of_cpu(&of_part));
        assert!(!part.is_empty() && whole.starts_with(&part), "CPU {cpu}");
    }
}

fn events_of(bytes: &[u8]) -> Vec<Kept> {
    events(bytes).0
}

#[test]
fn a_recording_cut_among_its_descriptions_is_answered() {
    let bytes = recording();
    for cut in (0..1_139_000).step_by(100_003) {
        assert!(survive(&bytes[..cut]).is_none(), "cut at {cut}");
    }
}

#[test]
fn a_file_of_ours_cut_among_its_records_keeps_those_before() {
    for compression in BOTH {
        let (bytes, _) = converted("trace-cmd-3.1-hackbench.dat", compression);
        let whole = survive(&bytes).expect("a trace.dat");
        assert_eq!(whole.worst(), None);
        // Without its events the second CPU would seem to idle.
        let refused = tracedat::read(&bytes[..60_000], &ReadOptions::default(), &mut Counter::default());
        let told = refused.expect_err("a file without a CPU").to_string();
        assert!(told.ends_with("it lacks all events of CPU 1"), "{told}");
        let mut events = 0;
        for cut in (60_000..bytes.len() - 4096).step_by(bytes.len() / 31) {
            let stats = survive(&bytes[..cut]).expect("a trace.dat");
            assert!(stats.count(Trouble::TruncatedFile) > 0, "cut at {cut}: {:?}", stats.troubles());
            assert!(events <= stats.events && stats.events < whole.events, "cut at {cut}");
            events = stats.events;
        }
        assert!(events > whole.events * 8 / 10, "{events} of {}", whole.events);
    }
}

#[test]
fn a_file_damaged_anywhere_is_answered() {
    for compression in BOTH {
        let (bytes, _) = converted("ftrace-6.18-rtapp.txt.xz", compression);
        let mut random = Random::new(1);
        let mut answered = 0;
        for _ in 0..400 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + random.below(4) {
                // Half of the damage hits what says where things are.
                let front = if random.chance(2) { 2000 } else { bytes.len() };
                let at = random.below(front);
                damaged[at] = random.next() as u8;
            }
            answered += u64::from(survive(&damaged).is_some());
        }
        assert!(answered > 100, "{compression:?}: {answered}");
    }
}

#[test]
fn the_recordings_options_and_tables_may_say_anything() {
    let bytes = recording();
    let mut random = Random::new(7);
    for _ in 0..60 {
        let mut damaged = bytes.clone();
        // Both sections of options, and the head of the records' section.
        let (start, length) =
            [(0, 100), (1_138_551, 600), (1_344_580, 99), (1_139_129, 16), (1_142_784, 12)][random.below(5)];
        let at = start + random.below(length);
        damaged[at] = random.next() as u8;
        let _ = survive(&damaged);
    }
}

#[test]
fn noise_among_the_records_costs_only_what_it_covers() {
    let (mut bytes, _) = converted("ftrace-6.18-rtapp.txt.xz", TraceDatCompression::None);
    let whole = survive(&bytes).expect("a trace.dat").events;
    let mut random = Random::new(3);
    // Half a page of one CPU, whole ones, half a page.
    let at = bytes.len() - 10 * 4096;
    for byte in &mut bytes[at..at + 6000] {
        *byte = random.next() as u8;
    }
    let stats = survive(&bytes).expect("a trace.dat");
    assert!(stats.events + 190 > whole && stats.events < whole, "{} of {whole}", stats.events);
    assert_eq!(stats.worst(), Some(Severity::DataLoss), "{:?}", stats.troubles());
}
