//! The table against what perf 6.12 and 7.3 printed for the same recordings, and against other forms of one recording.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use fairlab_analysis::latency::{Latency, LatencyLayout, LatencyOptions, LatencyRow, LatencyTable, SortKey};
use fairlab_event::{Event, EventKind, Ns, Pid, Sink, sink_fn};
use fairlab_trace::{ReadOptions, perfdata, read_path};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn latency(recording: &str, options: LatencyOptions) -> LatencyTable {
    let mut latency = Latency::new(options);
    let file = File::open(testdata(recording)).expect("a recording");
    perfdata::read_file(file, &ReadOptions::default(), &mut latency).expect("a perf.data");
    latency.finish().expect("switches")
}

/// The table is perf's but for rows of tasks that waited across holes, which perf measures: `holes` lists these rows, as ours
/// has them, with how many waits are not measured. Rows of waits that were all of that kind are not there.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "BLESS says that the list is to be written")]
fn check(recording: &str, by_pid: bool, expected: &str, holes: Option<&str>) {
    let table = latency(recording, LatencyOptions { by_pid, ..LatencyOptions::default() });
    let expected = std::fs::read_to_string(testdata(expected)).expect("perf's answer");
    let Some(holes) = holes else { return assert_eq!(table.to_string(), expected) };
    let perfs: BTreeSet<&str> = expected.lines().collect();
    let mut differing = String::new();
    for row in table.rows.iter().filter(|row| !perfs.contains(row.to_string().as_str())) {
        assert!(row.crossed > 0 || row.count > 0, "{row}");
        differing.push_str(&format!("{row} {} across holes\n", row.crossed));
    }
    let ours: BTreeSet<String> = table.rows.iter().map(|row| first_column(&row.to_string())).collect();
    for row in perfs.iter().filter(|row| row.contains("avg:")) {
        if !ours.contains(&first_column(row)) {
            differing.push_str(&format!("{}: none measured\n", first_column(row)));
        }
    }
    let path = testdata(holes);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &differing).expect("written");
    }
    let listed = std::fs::read_to_string(&path).expect("the rows across holes");
    assert_eq!(
        differing, listed,
        "BLESS=1 cargo test -p fairlab-analysis --test it perf_table writes {holes}"
    );
}

fn first_column(row: &str) -> String {
    row.split_once('|').map_or(row, |(first, _)| first).trim().to_string()
}

#[test]
fn hackbench_by_name() {
    check(
        "perf-hackbench.data",
        false,
        "perf-hackbench.perf-6.12-latency.txt",
        Some("perf-hackbench.latency-holes.txt"),
    );
}

#[test]
fn hackbench_by_pid() {
    check(
        "perf-hackbench.data",
        true,
        "perf-hackbench.perf-6.12-latency-p.txt",
        Some("perf-hackbench.latency-p-holes.txt"),
    );
}

/// perf counts one wait of task 68, of no length, and here are four. Its three switches out are not in the recording, so
/// perf takes it to run from its first switch on and passes over the wakeups after that. Other tasks ran on its CPU in between,
/// so it had left; three wakeups and the switches that they led to are there, whole and without a hole between them.
#[test]
fn wakeups_of_a_task_that_was_not_seen_leaving_are_measured() {
    let (mut woken, mut waits, mut left) = (None, Vec::new(), 0);
    let mut look = sink_fn(|event: &Event<'_>| match event.kind {
        EventKind::SchedWaking(wakeup) if wakeup.pid == Pid(68) => woken = Some(event.time),
        EventKind::SchedSwitch(switch) => {
            left += u32::from(switch.prev_pid == Pid(68));
            if switch.next_pid == Pid(68) {
                waits.push(woken.take().map_or(Ns::ZERO, |woken: Ns| event.time.since(woken)));
            }
        }
        _ => {}
    });
    let file = File::open(testdata("perf-hackbench.data")).expect("a recording");
    perfdata::read_file(file, &ReadOptions::default(), &mut look).expect("a perf.data");
    drop(look);
    assert_eq!((left, waits.iter().filter(|wait| wait.0 > 0).count()), (0, 3), "{waits:?}");
    let table = latency("perf-hackbench.data", LatencyOptions { by_pid: true, ..LatencyOptions::default() });
    let row = table.rows.iter().find(|row| row.pid == Pid(68)).expect("a row");
    let total = waits.iter().fold(Ns::ZERO, |sum, wait| sum.saturating_add(*wait));
    assert_eq!((row.count, row.total_delay, row.crossed), (waits.len() as u64, total, 0), "{row}");
}

#[test]
fn make_by_name() {
    check("perf-make.data", false, "perf-make.perf-6.12-latency.txt", None);
}

#[test]
fn make_by_pid() {
    check("perf-make.data", true, "perf-make.perf-6.12-latency-p.txt", None);
}

#[test]
fn the_layout_of_perf_7_3_has_its_units() {
    for (by_pid, file) in
        [(false, "perf-make.perf-7.3-latency.txt"), (true, "perf-make.perf-7.3-latency-p.txt")]
    {
        let table = latency("perf-make.data", LatencyOptions { by_pid, ..LatencyOptions::default() });
        let perfs = std::fs::read_to_string(testdata(file)).expect("perf's answer");
        assert_eq!(table.laid_out(LatencyLayout::Perf7).to_string(), perfs, "{file}");
    }
}

#[test]
fn rows_are_sorted_as_perf_sorts_them() {
    let sorted = |keys: &str| {
        let sort = SortKey::parse_list(keys).expect("keys");
        latency("perf-hackbench.data", LatencyOptions { by_pid: false, sort, ..LatencyOptions::default() })
            .rows
    };
    let rows = sorted("runtime").len();
    assert!(rows > 10 && sorted("runtime").is_sorted_by(|one, other| one.runtime >= other.runtime));
    assert!(sorted("switch").is_sorted_by(|one, other| one.count >= other.count));
    assert!(sorted("pid").is_sorted_by(|one, other| one.pid >= other.pid));
    let keys = |row: &LatencyRow| (row.max_delay, row.pid);
    assert!(sorted("max,pid").is_sorted_by(|one, other| keys(one) >= keys(other)));
}

#[test]
fn a_worker_starved_by_vhost_is_found_in_the_mail_that_reported_it() {
    let mut latency = Latency::new(LatencyOptions { sort: vec![SortKey::Max], ..LatencyOptions::default() });
    read_path(&testdata("eevdf-vhost.mail.txt"), &ReadOptions::default(), &mut latency).expect("a mail");
    let table = latency.finish().expect("switches");
    assert_eq!(
        table.rows[0].to_string(),
        "  kworker/14:0:6525     |      0.097 ms |        2 | avg:  19.861 ms | max:  39.720 ms \
         | max start:   576.161478 s | max end:   576.201198 s"
    );
}

/// Passes on tracepoints only, not what the recorder knows about tasks besides.
fn tracepoints(mut sink: impl Sink) -> impl Sink {
    sink_fn(move |event: &Event<'_>| {
        if !event.kind.is_task_record() {
            sink.event(event);
        }
    })
}

#[test]
fn a_recording_and_its_text_give_one_table() {
    let options = LatencyOptions { by_pid: true, ..LatencyOptions::default() };
    let mut of_text = Latency::new(options.clone());
    let text = testdata("perf-6.1-hackbench.txt.zst");
    read_path(&text, &ReadOptions::default(), &mut of_text).expect("what perf script printed");
    let mut of_data = Latency::new(options);
    let file = File::open(testdata("perf-hackbench.data")).expect("a recording");
    perfdata::read_file(file, &ReadOptions::default(), &mut tracepoints(&mut of_data)).expect("a perf.data");
    assert_eq!(of_data.finish().expect("switches"), of_text.finish().expect("switches"));
}

#[test]
fn lines_of_one_cpu_that_come_late_make_no_long_waits() {
    let mut events: Vec<Event<'static>> = Vec::new();
    let mut keep = sink_fn(|event: &Event<'_>| {
        let kind = match event.kind {
            EventKind::SchedSwitch(switch) => EventKind::SchedSwitch(switch),
            EventKind::SchedWaking(wakeup) => EventKind::SchedWaking(wakeup),
            EventKind::SchedWakeupNew(wakeup) => EventKind::SchedWakeupNew(wakeup),
            _ => return,
        };
        events.push(Event { kind, ..Event::new(event.time, event.cpu, EventKind::Marker { text: "" }) });
    });
    let file = File::open(testdata("perf-hackbench.data")).expect("a recording");
    perfdata::read_file(file, &ReadOptions::default(), &mut keep).expect("a perf.data");
    drop(keep);
    let table = |events: &[Event<'_>]| {
        let mut latency = Latency::new(LatencyOptions { by_pid: true, ..LatencyOptions::default() });
        events.iter().for_each(|event| latency.event(event));
        latency.finish().expect("switches")
    };
    let longest = |table: &LatencyTable, pid: Pid| {
        table.rows.iter().find(|row| row.pid == pid).map_or(Ns::ZERO, |row| row.max_delay)
    };
    let ordered = table(&events);
    assert!(ordered.unordered == 0);
    // Small disorder costs few waits, large disorder many; neither makes a wait that was not there.
    for (late, kept_percent) in [(Ns::from_us(5), 80), (Ns::from_us(500), 10)] {
        events.sort_by_key(|event| if event.cpu.0 == 1 { event.time + late } else { event.time });
        let disordered = table(&events);
        assert!(
            disordered.unordered > 0
                && disordered.notices.iter().any(|notice| notice.contains("order of time"))
        );
        let kept = disordered.count * 100 / ordered.count;
        assert!(kept >= kept_percent, "{kept} %");
        // Of what is not measured in order nothing is to be compared.
        let whole = |pid: Pid| ordered.rows.iter().any(|row| row.pid == pid && row.crossed == 0);
        for row in disordered.rows.iter().filter(|row| whole(row.pid)) {
            let limit = longest(&ordered, row.pid) + Ns::from_ms(1);
            assert!(row.max_delay <= limit, "{row}\n{limit}");
        }
    }
}
