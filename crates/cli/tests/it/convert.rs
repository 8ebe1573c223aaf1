//! `fairlab convert`: from every format to every other, one answer in all of them, and nothing half-written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::answer;
use crate::limit;
use crate::program::program;

fn fairlab(arguments: &[&str]) -> Output {
    program().args(arguments).output().expect("the program starts")
}

/// What the program answers, without how it came about.
fn answer(arguments: &[&str]) -> String {
    answer::body(&printed(arguments))
}

fn printed(arguments: &[&str]) -> String {
    let output = fairlab(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn testdata(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
    path.to_str().expect("a path in UTF-8").to_string()
}

/// A folder of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-convert-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_string()
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn one_recording_in_three_formats_gives_one_answer() {
    let folder = Folder::new("three");
    for source in ["perf-hackbench.data", "ftrace-6.18-rtapp.txt.xz", "trace-cmd-3.1-hackbench.dat"] {
        let source = testdata(source);
        // A sample taken at a task's exit has a process and no thread; a trace.dat has processes of threads only.
        let plain = |text: String| text.replace("[-1/10938]", "[-1]      ");
        for kind in ["latency", "timehist", "summary", "explain"] {
            let expected = plain(answer(&[kind, &source]));
            for name in
                ["trace.txt", "trace.txt.zst", "trace.dat", "trace.data", "trace.dat.zst", "trace.data.zst"]
            {
                let target = folder.path(name);
                if kind == "latency" {
                    answer(&["convert", &source, &target]);
                }
                assert!(plain(answer(&[kind, &target])) == expected, "{source} as {name}: {kind}");
            }
        }
    }
}

/// Reading takes two threads where there are two cores, and one where the process may use but one.
#[test]
fn one_core_reads_the_same_as_two() {
    let folder = Folder::new("cores");
    for source in
        ["perf-hackbench.data", "perf-lost.data", "perf-pipe-compressed.data", "trace-cmd-3.1-hackbench.dat"]
    {
        let (source, alone, together) = (testdata(source), folder.path("alone.txt"), folder.path("both.txt"));
        let convert = |target: &str| {
            vec!["convert".to_string(), source.clone(), target.to_string(), "--format".into(), "json".into()]
        };
        let on_one = Command::new("taskset")
            .args(["-c", &first_allowed_cpu(), env!("CARGO_BIN_EXE_fairlab")])
            .args(convert(&alone))
            .output()
            .expect("taskset starts");
        let on_all = program().args(convert(&together)).output();
        let on_all = on_all.expect("the program starts");
        let body = |printed: &[u8]| answer::body(&String::from_utf8_lossy(printed));
        assert!(on_one.status.success() && body(&on_one.stdout) == body(&on_all.stdout), "{source}");
        let read = |path: &str| std::fs::read(path).expect("a trace");
        assert!(read(&alone) == read(&together), "{source}");
    }
}

fn first_allowed_cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let list =
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list of CPUs");
    list.trim().split(['-', ',']).next().unwrap_or("0").to_string()
}

#[test]
fn copies_and_runs_tell_their_kernel_and_machine() {
    let folder = Folder::new("system");
    let of = |trace: &str| {
        let text = folder.path("told.txt");
        answer(&["convert", trace, &text]);
        let text = std::fs::read_to_string(text).expect("text");
        let comments: Vec<String> =
            text.lines().filter(|line| line.contains(" : ")).take(4).map(str::to_string).collect();
        comments
    };
    let copy = folder.path("copy.dat");
    answer(&["convert", &testdata("perf-make.data"), &copy]);
    let expected =
        ["# hostname : vm", "# os release : 6.18.44-fc-v657", "# arch : x86_64", "# nrcpus avail : 2"];
    assert_eq!(of(&copy), expected);
    let trace = folder.path("run.data");
    let run = ["run", "schbench", "-m", "1", "-t", "2", "-r", "0", "--kernel", "v6.6+NO_RUN_TO_PARITY"];
    answer(&[&run[..], &["--duration", "10ms", "--machine", "xeon-2s80", "--trace", &trace]].concat());
    assert_eq!(
        of(&trace),
        [
            "# hostname : xeon-2s80",
            "# os release : 6.6+NO_RUN_TO_PARITY",
            "# nrcpus avail : 80",
            "# fairlab : origin modelled"
        ]
    );
}

/// Each copy made of the one before.
#[test]
fn a_chain_of_copies_ends_where_it_began() {
    let folder = Folder::new("chain");
    let mut latest = testdata("perf-make.data");
    let expected = answer(&["latency", "-p", &latest]);
    for name in ["1.txt", "2.dat", "3.data", "4.dat", "5.txt.zst", "6.data", "7.txt"] {
        let next = folder.path(name);
        answer(&["convert", &latest, &next]);
        latest = next;
    }
    assert_eq!(answer(&["latency", "-p", &latest]), expected);
    assert_eq!(folder.names().len(), 7);
}

#[test]
fn what_is_lost_is_said() {
    let folder = Folder::new("lost");
    let output = fairlab(&["convert", &testdata("perf-make.data"), &folder.path("a.pftrace")]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("a.pftrace: 19 events left out: 19 task_exit\n"), "{errors}");
    let text = folder.path("a.bin");
    let arguments = ["convert", &testdata("perf-make.data"), &text, "--to", "text", "--format", "json"];
    let json: Value = serde_json::from_str(&answer(&arguments)).expect("JSON");
    assert_eq!((json["schema"].as_str(), json["format"].as_str()), (Some("fairlab/convert/1"), Some("text")));
    assert_eq!((json["altered"].as_u64(), json["losses"].as_array().map(Vec::len)), (Some(0), Some(0)));
    assert_eq!(json["events"], json["import"]["events"]);
    let json: Value =
        serde_json::from_str(&answer(&["convert", &text, &folder.path("b.pftrace"), "--format", "json"]))
            .expect("JSON");
    assert_eq!(json["losses"][0]["loss"], "left_out");
    assert_eq!(
        (json["losses"][0]["event"].as_str(), json["losses"][0]["count"].as_u64()),
        (Some("task_exit"), Some(19))
    );
}

#[test]
fn what_cannot_be_converted_leaves_nothing() {
    let folder = Folder::new("nothing");
    let good = testdata("perf-make.data");
    for (input, output, fragment) in [
        (good.as_str(), "a.docx", "end it in one of .txt, .dat, .data, .pftrace, .parquet"),
        (good.as_str(), "a.parquet.zst", "not compressed as a whole"),
        (good.as_str(), "none/a.txt", "none/a.txt"),
        ("/nonexistent", "a.txt", "/nonexistent"),
        (&testdata("README.md"), "a.data", "give a trace"),
    ] {
        let result = fairlab(&["convert", input, &folder.path(output)]);
        let errors = String::from_utf8_lossy(&result.stderr);
        assert_eq!(result.status.code(), Some(2), "{errors}");
        assert!(errors.contains(fragment) && errors.matches('\n').count() == 1, "{errors}");
    }
    assert_eq!(folder.names(), Vec::<String>::new());
    let result = fairlab(&["convert", &good, &folder.path("a.txt"), "--to", "ctf"]);
    assert!(
        String::from_utf8_lossy(&result.stderr)
            .contains("known are text, trace.dat, perf.data, perfetto, parquet")
    );
}

/// The input never ends; when the file stands beside, the user presses Ctrl-C.
#[test]
fn an_interrupt_leaves_nothing() {
    let folder = Folder::new("interrupt");
    let mut child = program()
        .args(["convert", "-", &folder.path("a.txt")])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let stdin = child.stdin.take();
    limit::until("a file", || !folder.names().is_empty());
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(status.success());
    assert_eq!(limit::ended(&mut child).code(), Some(130));
    drop(stdin);
    assert_eq!(folder.names(), Vec::<String>::new());
}

/// A program that scripts/with-peers brings: from where it puts it, else from the path.
fn perf(arguments: &[&str]) -> String {
    let brought = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/bin/perf");
    let program = if brought.exists() { brought } else { PathBuf::from("perf") };
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("perf: {error}; cure: run the tests with scripts/with-peers"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("rror"), "perf {arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// A list without names and processes: perf calls a task as the context of its events does, and takes the first process
/// that it hears of, before a sample tells.
fn threads(list: &str) -> Vec<String> {
    let line = |line: &str| {
        // Time and CPU, the name, the thread in brackets or nothing for the idle task; three lengths.
        let (name, thread_and_lengths) = line.rsplit_once('[').unwrap_or((line, ""));
        let (thread, lengths) = thread_and_lengths.split_once(']').unwrap_or(("", thread_and_lengths));
        let thread = thread.split('/').next().unwrap_or_default();
        let start = name.get(..23).unwrap_or(name);
        format!("{start} {thread} {}", lengths.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    list.lines().map(line).collect()
}

/// Where a length lies across a hole ours has a dash, and perf measures it.
fn is_row_alike(ours: &str, theirs: &str) -> bool {
    let (ours, theirs) = (ours.split_whitespace(), theirs.split_whitespace());
    ours.clone().count() == theirs.clone().count()
        && ours.zip(theirs).all(|(ours, theirs)| ours == "-" || ours == theirs)
}

/// The table is perf's, but for waits across holes, which perf measures: rows of tasks that have such differ, by as many waits
/// as ours says.
#[track_caller]
fn assert_alike(ours: &str, theirs: &str, context: &str) {
    let crossed = ours.lines().find(|line| line.contains("waits are not measured"));
    let crossed = crossed.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    let Some(crossed) = crossed else {
        assert_eq!(ours, theirs, "{context}");
        return;
    };
    let rows = |table: &str| {
        let rows = table.lines().filter(|line| line.contains("avg:"));
        let row = |line: &str| {
            let columns = line.split('|').map(str::trim).collect::<Vec<_>>();
            let count = columns[2].parse::<u64>().expect("a count");
            (format!("{} {}", columns[0], columns[1]), (count, columns[3..].join("|")))
        };
        rows.map(row).collect::<BTreeMap<_, _>>()
    };
    let (ours, theirs) = (rows(ours), rows(theirs));
    for (task, (count, columns)) in &theirs {
        let (of_ours, ours_columns) = ours.get(task).map_or((0, ""), |(count, columns)| (*count, columns));
        assert!(of_ours != *count || columns == ours_columns, "{context}: {task}");
    }
    let waits = |rows: &BTreeMap<String, (u64, String)>| rows.values().map(|(count, _)| count).sum::<u64>();
    let (ours_waits, theirs_waits) = (waits(&ours), waits(&theirs));
    assert!(
        ours_waits < theirs_waits && theirs_waits <= ours_waits + crossed,
        "{context}: {ours_waits} of {theirs_waits}"
    );
    assert_eq!(ours.keys().find(|task| !theirs.contains_key(*task)), None, "{context}");
}

/// perf 6.12 or later: older ones do not know `sched_waking` in this command.
#[test]
fn perf_answers_of_our_files_as_we_do() {
    let folder = Folder::new("perf");
    let run = folder.path("run.txt");
    answer(&[
        "run",
        "schbench",
        "-m",
        "2",
        "-t",
        "8",
        "-r",
        "0",
        "--kernel",
        "v6.6",
        "--duration",
        "200ms",
        "--trace",
        &run,
    ]);
    let mut sources = vec![run];
    sources.extend(
        [
            "ftrace-6.18-hackbench.txt.zst",
            "ftrace-6.18-rtapp.txt.xz",
            "ftrace-5.10-forkstorm.txt.gz",
            "ftrace-6.6-vhost.txt.zst",
            "ftrace-7.2-probed.txt.zst",
            "trace-cmd-3.1-hackbench.dat",
            "perf-hackbench.data",
        ]
        .map(testdata),
    );
    for source in sources {
        let copy = folder.path("copy.data");
        // A tick of its clock is 1 ns.
        let rate = if source.contains("probed") { &["--clock-hz", "1000000000"][..] } else { &[] };
        answer(&[&["convert", &source, &copy], rate].concat());
        for pids in [&[][..], &["-p"]] {
            let ours = answer(&[&["latency"], pids, &[&source], rate].concat());
            let theirs = perf(&[&["sched", "latency"], pids, &["-i", &copy]].concat());
            assert_alike(&ours, &theirs, &format!("{source} {pids:?}"));
        }
        // To perf a wakeup at time 0 is none.
        if !source.ends_with("run.txt") {
            let ours = answer(&[&["timehist", &source], rate].concat());
            let theirs = perf(&["sched", "timehist", "-i", &copy]);
            let (ours, theirs) = (threads(&ours), threads(&theirs));
            assert_eq!(ours.len(), theirs.len(), "{source}");
            for (ours, theirs) in ours.iter().zip(&theirs) {
                assert!(is_row_alike(ours, theirs), "{source}: {ours} / {theirs}");
            }
        }
    }
}

#[test]
fn a_run_is_traced_in_every_format() {
    let folder = Folder::new("run");
    let run = |name: &str| {
        let trace = folder.path(name);
        answer(&[
            "run",
            "schbench",
            "-m",
            "1",
            "-t",
            "4",
            "-r",
            "0",
            "--kernel",
            "v6.6",
            "--duration",
            "100ms",
            "--trace",
            &trace,
        ]);
        trace
    };
    let expected = answer(&["latency", &run("a.txt")]);
    for name in ["a.dat", "a.data", "a.data.zst"] {
        assert_eq!(answer(&["latency", &run(name)]), expected, "{name}");
    }
    for (name, mark) in [("a.parquet", &b"PAR1"[..]), ("a.pftrace", b"\x0a")] {
        assert!(std::fs::read(run(name)).expect("a trace").starts_with(mark), "{name}");
    }
}

/// A trace goes through pipes on both sides; what is to be said goes to standard error.
#[test]
fn a_trace_passes_through_pipes() {
    let whole = testdata("trace-cmd-3.1-hackbench.dat");
    let expected = answer(&["latency", &whole]);
    for format in ["trace.dat", "perf.data", "text", "parquet"] {
        let convert = |input: Stdio| {
            let mut child = program()
                .args(["convert", "-", "-", "--to", format])
                .stdin(input)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("the program starts");
            (child.stdout.take().expect("a pipe"), child)
        };
        let file = std::fs::File::open(&whole).expect("a recording");
        let (first, mut one) = convert(file.into());
        let (second, mut two) = convert(first.into());
        let answered = program().args(["latency", "-"]).stdin(second).output().expect("the program starts");
        assert!(limit::ended(&mut one).success() && limit::ended(&mut two).success(), "{format}");
        let body = |text: &str| {
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(body(&String::from_utf8_lossy(&answered.stdout)), body(&expected), "{format}");
    }
    let nameless = fairlab(&["convert", &whole, "-"]);
    assert_eq!(nameless.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nameless.stderr).contains("say which: --to"));
}
