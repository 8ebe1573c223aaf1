//! The shapes that perf writes beside the plain file: to a pipe, compressed, both, a file of each thread, several kinds of
//! samples, losses.

use std::path::Path;

use fairlab_event::{Counter, DigestSink, Event, EventKind, sink_fn};
use fairlab_trace::{ReadOptions, Trouble, perfdata, read_path};

use super::recordings::testdata;

/// Every tracepoint event of a trace, without the flags and process ids that perf's text does not have.
pub(crate) fn tracepoints(path: &Path) -> Vec<String> {
    let mut events = Vec::new();
    let mut keep = sink_fn(|event: &Event<'_>| {
        if !event.kind.is_task_record() && !matches!(event.kind, EventKind::Lost { .. }) {
            let (comm, pid) = (event.context.comm, event.context.pid);
            events.push(format!("{} {} {comm}-{pid} {:?}", event.time, event.cpu, event.kind));
        }
    });
    read_path(path, &ReadOptions::default(), &mut keep).expect("a trace");
    drop(keep);
    events
}

#[test]
fn every_shape_says_what_perf_says_of_it() {
    for (name, events) in [
        ("pipe", 1181),
        ("compressed", 3419),
        ("pipe-compressed", 1559),
        ("threads", 2662),
        ("mixed", 226),
        ("lost", 373),
    ] {
        let of_data = tracepoints(&testdata(&format!("perf-{name}.data")));
        let of_text = tracepoints(&testdata(&format!("perf-{name}.perf-6.1.txt.zst")));
        assert_eq!((of_data.len(), of_text.len()), (events, events), "{name}");
        for (data, text) in of_data.iter().zip(&of_text) {
            assert_eq!(data, text, "{name}");
        }
    }
}

#[test]
fn samples_of_other_kinds_are_counted() {
    let mut counter = Counter::default();
    let stats =
        read_path(&testdata("perf-mixed.data"), &ReadOptions::default(), &mut counter).expect("a trace");
    // Samples of cpu-clock, and records that carry no events.
    assert_eq!(
        stats.troubles().iter().map(|count| count.trouble).collect::<Vec<_>>(),
        [Trouble::SkippedRecord]
    );
    assert!(stats.count(Trouble::SkippedRecord) > 50, "{:?}", stats.troubles());
}

#[test]
fn losses_stand_where_perf_has_them_and_count_once() {
    let mut lost = Vec::new();
    let mut keep = sink_fn(|event: &Event<'_>| {
        if let EventKind::Lost { count } = event.kind {
            lost.push((event.time.0, count));
        }
    });
    let stats = read_path(&testdata("perf-lost.data"), &ReadOptions::default(), &mut keep).expect("a trace");
    drop(keep);
    // As `perf script -D` prints its PERF_RECORD_LOST; the PERF_RECORD_LOST_SAMPLES at its end count the same 688.
    let expected = [
        (13_214_072_818_139, Some(8)),
        (13_214_094_154_592, Some(265)),
        (13_214_095_018_295, Some(60)),
        (13_214_111_566_215, Some(304)),
        (13_214_116_719_600, Some(51)),
    ];
    assert_eq!(lost, expected);
    assert_eq!(stats.count(Trouble::LostEvents), 688);
}

#[test]
fn what_comes_through_a_pipe_is_what_lies_in_a_file() {
    for name in ["perf-pipe.data", "perf-pipe-compressed.data", "perf-compressed.data"] {
        let (mut in_place, mut piped) = (DigestSink::default(), DigestSink::default());
        let options = ReadOptions::default();
        read_path(&testdata(name), &options, &mut in_place).expect("a trace");
        let bytes = std::fs::read(testdata(name)).expect("a recording");
        perfdata::read(&bytes[..], &options, &mut piped).expect("a trace");
        assert_eq!(in_place.digest(), piped.digest(), "{name}");
    }
}

#[test]
fn a_recording_through_a_pipe_that_is_cut_holds_what_came_before() {
    let bytes = std::fs::read(testdata("perf-pipe.data")).expect("a recording");
    let mut before = 0;
    for cut in (0..bytes.len()).step_by(1499) {
        let mut counter = Counter::default();
        if let Ok(stats) = perfdata::read(&bytes[..cut], &ReadOptions::default(), &mut counter) {
            assert_eq!(stats.events, counter.events);
            assert!(stats.events >= before, "cut at {cut}: {} after {before}", stats.events);
            before = stats.events;
        }
    }
    assert!(before > 1200, "{before}");
}
