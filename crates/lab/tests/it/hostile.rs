//! Malformed files and names: each is read or refused in one line, and what is read runs. No panic, no sum
//! that wraps (a build for tests traps them), no run without end.
//!
//! The cases are made from good files by a fixed random stream, so each is the same on every machine; the fuzz targets in
//! `fuzz/` look further from the same seeds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, fs, thread};

use fairlab_event::{Cpu, Ns};
use fairlab_guest::archive::{Archive, ArchiveEntryKind, members};
use fairlab_kernel::Generation;
use fairlab_lab::cells::CellWorkers;
use fairlab_lab::merge::MergedCounts;
use fairlab_lab::sweep::{Query, SweepPlan, query, sweep};
use fairlab_lab::{LabError, RunSpec, machines, run};
use fairlab_sim::Machine;
use fairlab_sim::rng::RandomStream;
use fairlab_sim::workload::rtapp::RtApp;
use fairlab_verify::schedstat::read_schedstat;
use fairlab_verify::{VerifyOptions, verify};

/// What is put in the place of words and numbers.
const TOKENS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "7",
    "1000",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "-9223372036854775808",
    "1e308",
    "0.5",
    "nan",
    "\"\"",
    "\"\\u0000\"",
    "[]",
    "{}",
    "true",
    "null",
    "'0-1023'",
    "\n",
    "=",
    "\u{1f980}",
];

/// Another text: bytes and ranges of it are changed, left out, doubled; words become others.
fn mutated(good: &str, stream: &mut RandomStream) -> String {
    let mut bytes = good.as_bytes().to_vec();
    for _ in 0..=stream.below(4) {
        let length = bytes.len().max(1) as u64;
        let at = stream.below(length) as usize;
        let end = (at + 1 + stream.below(12) as usize).min(bytes.len());
        let at = at.min(end);
        match stream.below(6) {
            0 if at < end => bytes[at] ^= 1 << stream.below(7),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let doubled = bytes[at..end].to_vec();
                bytes.splice(at..at, doubled);
            }
            _ => {
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
                let start =
                    bytes[..at].iter().rposition(|byte| !is_word(byte)).map_or(0, |before| before + 1);
                let stop = bytes[at..]
                    .iter()
                    .position(|byte| !is_word(byte))
                    .map_or(bytes.len(), |after| at + after);
                let token = TOKENS[stream.below(TOKENS.len() as u64) as usize];
                bytes.splice(start..stop.max(start), token.bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// So many cases of each good text, told by name where one ends in a panic.
fn each_case(name: &str, good: &[&str], cases: u64, mut body: impl FnMut(&str)) {
    for case in 0..cases {
        let mut stream = RandomStream::new(case, name);
        let text = mutated(good[case as usize % good.len()], &mut stream);
        let outcome = catch_unwind(AssertUnwindSafe(|| body(&text)));
        assert!(outcome.is_ok(), "{name}, case {case}:\n{text}");
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("fairlab-hostile-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).expect("written");
    path.to_str().expect("a path of text").to_string()
}

fn one_line(problem: &LabError) {
    let told = problem.to_string();
    assert!(!told.contains('\n') && told.len() < 2_000, "{told}");
}

/// A few milliseconds of a workload; a run that goes on for a quarter of a minute has no end.
fn runs(machine: Machine, workload: Vec<String>) {
    let kernel = "v6.12".parse().expect("a kernel");
    let spec = RunSpec {
        first_cpu: Some(Cpu(0)),
        warmup: Some(Ns::ZERO),
        ..RunSpec::new(kernel, machine, workload, 1, Ns::from_ms(4))
    };
    let stop = Arc::new(AtomicBool::new(false));
    let (ended, flag) = (Arc::new(AtomicBool::new(false)), Arc::clone(&stop));
    let seen = Arc::clone(&ended);
    let watch = thread::spawn(move || {
        for _ in 0..1_500 {
            if seen.load(Ordering::Relaxed) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        flag.store(true, Ordering::Relaxed);
    });
    let outcome = run(&spec, &stop);
    ended.store(true, Ordering::Relaxed);
    watch.join().expect("the watch ends");
    match outcome {
        Ok(result) => assert!(result.is_some(), "it does not end"),
        Err(problem) => one_line(&problem),
    }
}

const MACHINES: [&str; 2] = [
    "name = 'box'\nhz = 250\njitter_percent = 3\n[topology]\nnodes = 2\nllcs_per_node = 1\ncores_per_llc = 2\n\
     threads_per_core = 2\nsmt_numbering = 'spread'\n[costs]\nipi_ns = 3000\nfork_ns = 9000\ntick_ns = 1500\n",
    "name = 'odd'\nhz = 1000\nplatform = 'arm64'\n[cpus]\ncores = ['0', '1', '2-3']\nclusters = ['0-1', '2-3']\n\
     caches = ['0-1', '2-3']\nnodes = ['0-1', '2-3']\n[capacities]\n'0-1' = 512\n[numa]\n\
     distances = [[10, 31], [31, 10]]\n[[clock]]\ncpus = '0-3'\nkhz = [500000, 1000000]\nmilliwatts = [10, 30]\n\
     rate_limit_us = 500\n[[idle_state]]\ncpus = '0-3'\nexit_us = 90\nresidency_us = 200\ntogether = true\n",
];

#[test]
fn machine_files_are_refused_or_run() {
    each_case("machine files", &MACHINES, 600, |text| match machines::parse(text) {
        Ok(machine) => runs(machine, ["jobs", "pairs", "-n", "5", "-r", "50"].map(String::from).to_vec()),
        Err(problem) => one_line(&problem),
    });
}

const RT_APPS: [&str; 3] = [
    r#"{ "global": { "duration": 1, "cumulative_slack": true }, "tasks": {
        "hog": { "instance": 2, "cpus": [0, 1], "priority": -5, "phases": {
            "p1": { "loop": 3, "run": 300, "sleep": 100 }, "p2": { "loop": 2, "runtime": 200, "yield": "" } } },
        "tick": { "timer": { "ref": "unique", "period": 500, "mode": "absolute" }, "run": 50, "mem": 1000 } } }"#,
    r#"{ "tasks": {
        "a": { "loop": 40, "lock": "m", "run": 20, "signal": "c", "unlock": "m", "barrier": "b", "fork": "child" },
        "b": { "loop": 40, "lock": "m", "wait": { "ref": "c", "mutex": "m" }, "unlock": "m", "barrier": "b" },
        "child": { "instance": 0, "loop": 1, "run": 10, "sem_post": "s" } } }"#,
    r#"{ "tasks": { "p": { "loop": -1, "sem_post": "x", "sem_wait": "y" },
                    "q": { "loop": -1, "sem_wait": "x", "sem_post": "y", "delay": 100 },
                    "r": { "suspend": "", "run": 5 }, "s": { "sleep": 50, "resume": "r", "policy": "SCHED_FIFO" } } }"#,
];

#[test]
fn rt_app_files_are_refused_or_run() {
    let folder = folder("rt-app");
    let machine = Machine::preset("vm4").expect("a machine");
    each_case("rt-app files", &RT_APPS, 900, |text| match RtApp::parse(text) {
        Ok(_) => runs(machine.clone(), vec!["rt-app".to_string(), written(&folder, "app.json", text)]),
        Err(problem) => assert!(!problem.contains('\n'), "{problem}"),
    });
    fs::remove_dir_all(folder).expect("removed");
}

const SWEEP: &str = "kernels = ['v6.5', 'v6.6+{feature}']\nmachines = ['vm4']\n\
    workloads = ['jobs spin -n {jobs} -r 100', ['jobs', 'sleep', '-n', '3']]\nseeds = 2\nfirst_seed = 10\n\
    duration_ms = 2\n[options]\njobs = [2, 4]\nfeature = ['NO_PLACE_LAG', 'NO_RUN_TO_PARITY']\n";

#[test]
fn sweep_files_are_refused_or_run() {
    each_case("sweep files", &[SWEEP], 500, |text| match SweepPlan::parse(text) {
        Ok(plan) => {
            let spec = plan.cell(plan.cells() - 1).spec;
            runs(spec.machine, spec.workload);
        }
        Err(problem) => one_line(&problem),
    });
}

#[test]
fn names_of_kernels_are_refused_or_mean_one() {
    const NAMES: [&str; 5] = [
        "v6.6+NO_PLACE_LAG,base_slice_ns=1500000",
        "v6.5+86bfbb7ce4f6-79ba1e607d68",
        "debian-6.12-delay-dequeue+preemptible,tunable_scaling=0",
        "0b0695f2b34a+NO_TTWU_QUEUE",
        "v7.3,migration_cost_ns=500000",
    ];
    each_case("kernels", &NAMES, 4_000, |name| match Generation::asked_for(name) {
        Ok(kernel) => assert_eq!(kernel.name(), name),
        Err(problem) => assert!(name.contains('\n') || !problem.to_string().contains('\n'), "{problem}"),
    });
}

#[test]
fn counts_and_schedstats_are_refused_or_read() {
    const COUNTS: &str = r#"{ "schema": "fairlab/counts/1", "kernel": "v6.6", "machine": "vm4", "workload": "jobs",
        "tasks": 3, "switches": 100, "wakeups": 50, "time_ns": 1000000, "latency": [[1000, 3], [2000, 1]] }"#;
    const STAT: &str = "version 15\ntimestamp 4294937296\ncpu0 0 0 100 30 70 20 5000000 60000 55\n\
        domain0 3 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8 0 0 0 0 0 0 0 0 0 0 0 0\n";
    let folder = folder("counts");
    each_case("counts", &[COUNTS], 1_500, |text| {
        let path = written(&folder, "counts.json", text);
        if let Err(problem) = MergedCounts::default().add_path(Path::new(&path)) {
            one_line(&problem);
        }
    });
    each_case("schedstat", &[STAT], 1_500, |text| {
        let path = written(&folder, "schedstat", text);
        if let Err(problem) = read_schedstat(Path::new(&path)) {
            one_line(&problem);
        }
    });
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn journals_are_refused_or_read() {
    let folder = folder("journals");
    let plan = SweepPlan::parse(SWEEP).expect("a plan");
    let stop = AtomicBool::new(false);
    sweep(&plan, None, &folder.join("sweep"), CellWorkers::Threads(1), &|_| {}, &stop).expect("a sweep");
    let journal = folder.join("sweep/cells.jsonl");
    let good = fs::read_to_string(&journal).expect("a journal");
    let asked =
        Query { by: vec!["kernel".to_string()], metrics: vec!["throughput".to_string()], ..Query::default() };
    each_case("journals", &[&good], 400, |text| {
        fs::write(&journal, text).expect("written");
        if let Err(problem) = query(&folder.join("sweep"), &asked) {
            one_line(&problem);
        }
    });
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn archives_of_guests_are_refused_or_read() {
    let mut archive = Archive::default();
    archive.add("trace", ArchiveEntryKind::File, b"1234567");
    archive.add("report.json", ArchiveEntryKind::File, b"{}");
    let good = archive.finish();
    for case in 0..20_000 {
        let mut stream = RandomStream::new(case, "archives");
        let mut bytes = good.clone();
        for _ in 0..=stream.below(3) {
            let at = stream.below(bytes.len() as u64) as usize;
            bytes[at] = stream.below(256) as u8;
        }
        bytes.truncate(stream.below(2 * bytes.len() as u64) as usize);
        if let Some(members) = members(&bytes) {
            let held = members.iter().map(|member| member.name.len() + member.content.len()).sum::<usize>();
            assert!(held <= bytes.len(), "case {case}");
        }
    }
}

/// What lies beside a trace, each file in turn.
#[test]
fn what_lies_beside_a_trace_is_refused_or_read() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings/6.12-nice-2");
    let folder = folder("beside");
    let kernel = "debian-6.12".parse::<Generation>().expect("a kernel");
    let mut beside = Vec::new();
    for entry in fs::read_dir(from).expect("the recording") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_string();
        fs::copy(&path, folder.join(&name)).expect("copied");
        if let Ok(text) = fs::read_to_string(&path) {
            beside.push((name, text));
        }
    }
    // A short trace is enough: what lies beside it is read first.
    let packed = fs::File::open(folder.join("trace.txt.zst")).expect("the trace");
    let trace = String::from_utf8(zstd::decode_all(packed).expect("unpacked")).expect("text");
    fs::remove_file(folder.join("trace.txt.zst")).expect("removed");
    let head = trace.lines().take(120).map(|line| format!("{line}\n")).collect::<String>();
    written(&folder, "trace.txt", &head);
    let options = VerifyOptions { misses: 0, ..VerifyOptions::default() };
    assert!(!beside.is_empty());
    for (name, good) in &beside {
        each_case(name, &[good], 60, |text| {
            written(&folder, name, text);
            if let Err(problem) = verify(&folder, &kernel, &options) {
                one_line(&problem);
            }
        });
        written(&folder, name, good);
    }
    fs::remove_dir_all(folder).expect("removed");
}
