//! The real perf opens our files, and answers as it does for the recording that they were made of, or as our text says.
//!
//! perf 6.12 or later: older ones do not know `sched_waking` in `perf sched latency`.

use std::path::Path;

use fairlab_event::{Comm, Context, Cpu, Event, EventKind, Flags, Ns, Pid, Prio, Sink, Wakeup, sink_fn};
use fairlab_trace::ftrace_text::FtraceTextWriter;
use fairlab_trace::perfdata::PerfDataWriter;
use fairlab_trace::read_path;

use super::round_trip::written;
use crate::kept::{Kept, options_of, testdata};
use crate::peers::{Folder, run};

/// A file of what a recording in `testdata` holds.
fn converted(name: &str) -> Vec<u8> {
    let mut writer = PerfDataWriter::new(Vec::new());
    let sink: &mut dyn Sink = &mut writer;
    read_path(&testdata(name), &options_of(name), sink).expect("a recording");
    assert_eq!(writer.losses().events(), 0, "{name}");
    writer.finish().expect("memory takes everything")
}

fn perf(arguments: &[&str], file: &Path) -> String {
    run("perf", &[arguments, &["-i", file.to_str().expect("a path of plain text")]].concat())
}

#[test]
fn perf_answers_of_our_copy_as_of_its_own_file() {
    let folder = Folder::new("perf-copy");
    for name in ["perf-hackbench.data", "perf-make.data"] {
        let (original, copy) = (testdata(name), folder.file("copy.data", &converted(name)));
        for arguments in [
            &["sched", "latency"][..],
            &["sched", "latency", "-p"],
            &["sched", "timehist", "-w", "-n", "-M", "--state"],
            &["sched", "timehist", "-s"],
            &["sched", "map"],
            &["script", "--ns", "-F", "comm,pid,tid,cpu,time,event,trace"],
        ] {
            let (expected, answer) = (perf(arguments, &original), perf(arguments, &copy));
            assert!(expected.lines().count() > 5, "{arguments:?}");
            assert!(expected == answer, "{name} {arguments:?}");
        }
    }
}

/// Lines of `perf script` against lines of our own text.
#[test]
fn perf_prints_of_our_files_what_our_text_says() {
    let folder = Folder::new("perf-script");
    for name in [
        "ftrace-6.18-hackbench.txt.zst",
        "ftrace-6.18-rtapp.txt.xz",
        "ftrace-5.10-forkstorm.txt.gz",
        "ftrace-6.6-vhost.txt.zst",
        "ftrace-7.2-probed.txt.zst",
        "trace-cmd-3.1-hackbench.dat",
    ] {
        let file = folder.file("ours.data", &converted(name));
        // Without the plugins of libtraceevent, which print some events in another form.
        let script = perf(&["script", "--ns", "-F", "comm,tid,cpu,time,event,trace"], &file);
        let reported: Vec<String> = script.lines().map(one_blank).collect();
        let ours = our_lines(name);
        assert!(ours.len() >= 3000, "{name}: {}", ours.len());
        assert_eq!(reported.len(), ours.len(), "{name}");
        for (reported, ours) in reported.iter().zip(&ours) {
            // Before and behind the event's name and its fields.
            let start = |line: &str| line.split(": ").next().unwrap_or_default().to_string();
            assert_eq!(start(reported), start(ours), "{name}");
            let event =
                |line: &str| line.split(": ").nth(1).unwrap_or_default().trim_end_matches(':').to_string();
            let event_reported = event(reported);
            let event_reported = event_reported.rsplit(':').next().unwrap_or_default();
            let name_of_print = if event_reported == "print" { "tracing_mark_write" } else { event_reported };
            assert_eq!(name_of_print, event(ours), "{name}: {reported}");
        }
    }
}

fn one_blank(line: &str) -> String {
    line.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Our text in the form of `perf script`: name, thread, CPU, time, event, fields.
fn our_lines(name: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut sink = sink_fn(|event: &Event<'_>| {
        if event.kind.is_task_record() {
            return;
        }
        let Context { comm, pid, .. } = event.context;
        let comm = if pid.is_idle() { Comm::from("swapper") } else { comm };
        let comm = if comm.is_empty() { format!(":{pid}") } else { comm.to_str().into_owned() };
        let mut writer = FtraceTextWriter::new(Vec::new());
        writer.event(event);
        let text = String::from_utf8_lossy(&writer.finish().expect("memory takes everything")).into_owned();
        let fields = text.lines().last().and_then(|line| line.split_once(": ")).map_or("", |(_, body)| body);
        lines.push(one_blank(&format!("{comm} {pid} [{:03}] {}: {fields}", event.cpu.0, event.time)));
    });
    read_path(&testdata(name), &options_of(name), &mut sink).expect("a recording");
    drop(sink);
    lines
}

/// Names that only other tasks' events tell are shown, and the longest of waits is where it was.
#[test]
fn perf_knows_the_names_that_tracepoints_tell() {
    let folder = Folder::new("perf-names");
    let context = Context { comm: Comm::from("<idle>"), pid: Pid(0), tgid: Pid(0), flags: Flags::NONE };
    let wakeup = Wakeup { comm: Comm::from("late riser"), pid: Pid(77), prio: Prio(120), target_cpu: Cpu(1) };
    let switch = fairlab_event::Switch {
        prev_comm: Comm::from("swapper/1"),
        prev_pid: Pid(0),
        prev_prio: Prio(120),
        prev_state: fairlab_event::TaskState::RUNNABLE,
        next_comm: wakeup.comm,
        next_pid: wakeup.pid,
        next_prio: wakeup.prio,
    };
    let all =
        [(1_000_000_000, EventKind::SchedWaking(wakeup)), (1_002_500_000, EventKind::SchedSwitch(switch))]
            .map(|(time, kind)| Kept::of(&Event { time: Ns(time), cpu: Cpu(1), context, kind }));
    let (bytes, _) = written(&all);
    let table = perf(&["sched", "latency"], &folder.file("names.data", &bytes));
    let row = table.lines().find(|line| line.contains("late riser:77")).unwrap_or_else(|| panic!("{table}"));
    let row = one_blank(row);
    assert!(row.ends_with("max: 2.500 ms | max start: 1.000000 s | max end: 1.002500 s"), "{row}");
}

/// More than one round, and CPUs that the machine at hand does not have.
#[test]
fn perf_puts_large_files_in_order() {
    let folder = Folder::new("perf-large");
    let text = "x".repeat(200);
    let all: Vec<Kept> = (0..20_000_u64)
        .map(|number| {
            let context = Context { comm: Comm::from("w"), pid: Pid(7), tgid: Pid(7), flags: Flags::NONE };
            let kind = EventKind::Marker { text: &text };
            Kept::of(&Event { time: Ns(1 + number), cpu: Cpu((number % 300) as u32), context, kind })
        })
        .collect();
    let (bytes, losses) = written(&all);
    assert_eq!(losses.events(), 0);
    assert!(bytes.len() > 4 << 20, "{}", bytes.len());
    let script = perf(&["script", "--ns", "-F", "cpu,time"], &folder.file("large.data", &bytes));
    let lines: Vec<&str> = script.lines().map(str::trim).collect();
    assert_eq!((lines.len(), lines[299]), (20_000, "[299]     0.000000300:"));
}
