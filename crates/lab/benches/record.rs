//! What a recording costs the recorded program: one workload without and with a recording, in turns (A B B A).
//!
//! `cargo bench -p fairlab-lab --bench record`; needs the right to record. The work is this program itself, called with a
//! workload behind `--work`.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use fairlab_lab::host;
use fairlab_lab::record::{RecordOptions, check, record};
use fairlab_lab::workloads;
use fairlab_live::{LiveConditions, LiveReport, carry_out};

/// Pairs of runs.
const PAIRS: usize = 15;

/// Both do nothing but pass messages: more of their time goes into switches than any real program's does.
const WORKLOADS: [&str; 2] = ["pipe -T -l 50000", "hackbench -g 2 -f 10 -l 200"];

fn main() {
    let arguments = std::env::args().skip(1).filter(|word| word != "--bench").collect::<Vec<_>>();
    if let Some((_, [path, workload @ ..])) = arguments.split_first().filter(|(word, _)| *word == "--work") {
        return work(path, workload);
    }
    if let Err(error) = check() {
        return println!("not measured: {error}");
    }
    println!("{:<30} {:>10} {:>10} {:>8} {:>12}", "an operation of", "without", "with", "cost", "events/s");
    for workload in WORKLOADS {
        println!("{}", compare(workload));
    }
}

/// Carries a workload out, and writes what it measured.
fn work(path: &str, workload: &[String]) {
    let build = |command: &[String]| workloads::build(command).map_err(|error| error.problem);
    let conditions = LiveConditions { seed: 1, duration: None, stop: &AtomicBool::new(false), marker: None };
    let report = carry_out(workload, &conditions, &build, &mut |_| ()).expect("a report");
    std::fs::write(path, report.to_json().to_string()).expect("written");
}

/// Time an operation, ns: the workload's own time over what it counts.
fn per_operation(report: &LiveReport) -> f64 {
    let count = report.progress.as_ref().map_or(1, |(_, count)| *count);
    report.elapsed.0 as f64 / count.max(1) as f64
}

fn compare(workload: &str) -> String {
    let folder = std::env::temp_dir().join(format!("fairlab-bench-record-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (file, trace) = (folder.join("report.json"), folder.join("trace.dat"));
    let program = std::env::current_exe().expect("this program");
    let mut command = vec![program.to_string_lossy().into_owned(), "--work".to_string()];
    command.push(file.to_string_lossy().into_owned());
    command.extend(workload.split(' ').map(str::to_string));
    let report = || {
        let text = std::fs::read_to_string(&file).expect("a report");
        let value = text.parse().expect("JSON");
        LiveReport::from_json(&value).expect("a report")
    };
    let (mut without, mut with, mut events, mut seconds) = (Vec::new(), Vec::new(), 0, 0.0);
    for run in 0..2 * PAIRS {
        if matches!(run % 4, 0 | 3) {
            assert!(Command::new(&command[0]).args(&command[1..]).status().expect("it starts").success());
            without.push(per_operation(&report()));
        } else {
            let options = RecordOptions { buffer_kb: 65_536, ..RecordOptions::new(&trace) };
            let begin = Instant::now();
            let recorded = record(&options, &command, &AtomicBool::new(false)).expect("a recording");
            assert_eq!((recorded.code(), recorded.dropped), (0, 0), "on {}", host::NAME);
            events += recorded.import.events;
            seconds += begin.elapsed().as_secs_f64().min(report().elapsed.as_secs_f64());
            with.push(per_operation(&report()));
        }
    }
    std::fs::remove_dir_all(&folder).expect("removed");
    let (without, with) = (median(without), median(with));
    let rate = events as f64 / seconds;
    format!(
        "{workload:<30} {:>7.2} us {:>7.2} us {:>6.1} % {rate:>12.0}",
        without / 1e3,
        with / 1e3,
        (with / without - 1.0) * 100.0
    )
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
