//! The list against what perf 6.12 printed for these recordings, byte by byte except across holes. Beside it the sums that perf
//! gets wrong.

use std::fs::File;
use std::path::{Path, PathBuf};

use fairlab_analysis::selector::TraceSelector;
use fairlab_analysis::timehist::text::{TimehistColumns, TimehistLayout};
use fairlab_analysis::timehist::{Timehist, TimehistOptions, TimehistRow, TimehistSummary};
use fairlab_event::{Cpu, Ns, Pid};
use fairlab_trace::{ReadOptions, read_path};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn list(recording: &str, options: TimehistOptions, columns: TimehistColumns) -> (String, TimehistSummary) {
    let mut layout = TimehistLayout::new(columns);
    let mut text = String::new();
    layout.head(&mut text);
    let mut timehist = Timehist::new(options, |row: &TimehistRow| layout.row(row, &mut text));
    read_path(&testdata(recording), &ReadOptions::default(), &mut timehist).expect(recording);
    let summary = timehist.finish().expect("switches");
    (text, summary)
}

/// The list is perf's but for what lies across holes: a switch away from another task than had come, of which perf measures
/// the stay from the switch before. There ours has dashes; `holes` lists these rows, as ours has them.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "BLESS says that the list is to be written")]
fn check(recording: &str, options: TimehistOptions, columns: TimehistColumns, perfs: &str, holes: &str) {
    let (text, _) = list(recording, options, columns);
    let perfs = zstd::decode_all(File::open(testdata(perfs)).expect("perf's answer")).expect("zstd");
    let perfs = String::from_utf8(perfs).expect("text");
    assert_eq!(text.lines().count(), perfs.lines().count());
    let mut differing = String::new();
    for (ours, perfs) in text.lines().zip(perfs.lines()).filter(|(ours, perfs)| ours != perfs) {
        let (ours_words, perfs_words) = (ours.split_whitespace(), perfs.split_whitespace());
        let is_dash_or_alike = |(ours, perfs)| ours == "-" || ours == perfs;
        assert!(ours_words.zip(perfs_words).all(is_dash_or_alike), "{ours}\n{perfs}");
        assert!(ours.contains(" - ") && ours.len() == perfs.len(), "{ours}\n{perfs}");
        differing.push_str(ours.trim_end());
        differing.push('\n');
    }
    let path = testdata(holes);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &differing).expect("written");
    }
    let listed = std::fs::read_to_string(&path).expect("the rows across holes");
    assert_eq!(
        differing, listed,
        "BLESS=1 cargo test -p fairlab-analysis --test it perf_timehist writes {holes}"
    );
}

#[test]
fn hackbench() {
    let perfs = "perf-hackbench.perf-6.12-timehist.txt.zst";
    let holes = "perf-hackbench.timehist-holes.txt";
    check("perf-hackbench.data", TimehistOptions::default(), TimehistColumns::default(), perfs, holes);
}

#[test]
fn make_with_wakeups_next_tasks_and_migrations() {
    let options = TimehistOptions { wakeups: true, migrations: true, ..TimehistOptions::default() };
    let columns = TimehistColumns { wakeups: true, next: true, state: false };
    let holes = "perf-make.timehist-wnM-holes.txt";
    check("perf-make.data", options, columns, "perf-make.perf-6.12-timehist-wnM.txt.zst", holes);
}

#[test]
fn a_stretch_of_two_threads() {
    let options = TimehistOptions {
        tids: vec![Pid(10929), Pid(10955)],
        chosen: TraceSelector {
            time: "1356.94,1357".parse().expect("a stretch"),
            ..TraceSelector::default()
        },
        wakeups: true,
        ..TimehistOptions::default()
    };
    let columns = TimehistColumns { wakeups: true, ..TimehistColumns::default() };
    let holes = "perf-hackbench.timehist-tw-holes.txt";
    check("perf-hackbench.data", options, columns, "perf-hackbench.perf-6.12-timehist-tw.txt.zst", holes);
}

/// perf 6.12's own summary knows 177 switches of 91 tasks and 38.202 ms: it has lost whatever tasks did before they
/// exited.
#[test]
fn the_summary_keeps_tasks_that_exited() {
    let options = TimehistOptions { migrations: true, ..TimehistOptions::default() };
    let (text, summary) = list("perf-hackbench.data", options, TimehistColumns::default());
    assert_eq!((summary.switches, summary.tasks.len(), summary.nr_cpus), (6_121, 93, 2));
    // With what it measures across holes perf has 136.361 ms.
    assert_eq!((summary.run.0 / 1000, summary.span.0 / 1000), (121_434, 72_219));
    let idle: u64 = summary.cpus.iter().map(|cpu| cpu.idle.0).sum();
    assert!((4_000..=7_972).contains(&(idle / 1000)), "{idle}");
    let longest = &summary.tasks[0];
    assert_eq!((longest.label.to_string().as_str(), longest.count), ("hackbench[10929]", 50));
    assert_eq!(longest.parent, Some(Pid(10924)));
    let migrations: u64 = summary.tasks.iter().map(|task| task.migrations).sum();
    // One more is that of a task whose switches the recorder missed.
    assert_eq!(migrations, 118);
    assert_eq!(text.lines().filter(|line| line.contains("migrated: ")).count(), 119);
    // perf forgets who this is, and that it had waited, before its last stay.
    let mut last = None;
    let mut timehist = Timehist::new(TimehistOptions::default(), |row: &TimehistRow| {
        if let TimehistRow::Switch(row) = row
            && row.task.tid == Pid(10962)
        {
            last = Some(*row);
        }
    });
    read_path(&testdata("perf-hackbench.data"), &ReadOptions::default(), &mut timehist).expect("a perf.data");
    drop(timehist);
    let last = last.expect("a last stay");
    assert_eq!(
        (last.task.to_string(), last.shown.label.to_string()),
        ("hackbench[10962]".into(), ":10962[10962]".into())
    );
    assert!(last.off.total() > Ns::ZERO && last.shown.wait == Ns::ZERO);
}

#[test]
fn the_summary_is_printed_in_perfs_layout() {
    let (_, summary) = list("perf-make.data", TimehistOptions::default(), TimehistColumns::default());
    let mut text = String::new();
    TimehistLayout::new(TimehistColumns::default()).summary(&summary, &mut text);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "",
            "Runtime summary",
            "                          comm  parent   sched-in     run-time    min-run     avg-run     max-run  stddev  migrations",
            "                                          (count)       (msec)     (msec)      (msec)      (msec)       %",
            "---------------------------------------------------------------------------------------------------------------------",
        ]
    );
    let total = |line: &&str| line.starts_with("    Total number of unique tasks");
    let tail = lines.iter().position(total).expect("totals");
    assert_eq!(lines[tail], format!("    Total number of unique tasks: {}", summary.tasks.len()));
    assert_eq!(lines[tail + 1], "Total number of context switches: 293");
}

#[test]
fn filters_by_process_and_cpu_keep_what_belongs_to_them() {
    let all = list("perf-hackbench.data", TimehistOptions::default(), TimehistColumns::default()).1;
    let of_cpu = |cpu| {
        let options = TimehistOptions { cpus: vec![Cpu(cpu)], ..TimehistOptions::default() };
        list("perf-hackbench.data", options, TimehistColumns::default()).1.switches
    };
    assert_eq!(of_cpu(0) + of_cpu(1), all.switches);
    let options = TimehistOptions { pids: vec![Pid(10929)], ..TimehistOptions::default() };
    let (_, of_process) = list("perf-hackbench.data", options, TimehistColumns::default());
    assert_eq!((of_process.switches, of_process.cpus.len()), (50, 0));
}
