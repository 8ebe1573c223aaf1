//! Traces as users have them: each form gives the right value, and what cannot be read is said and refused by every command.

use crate::program::program;
use std::path::{Path, PathBuf};
use std::process::Output;

fn fairlab(arguments: &[&str]) -> Output {
    program().args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-traces-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_string()
    }

    /// A file with this content.
    fn file(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn testdata(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
    path.to_str().expect("a path in UTF-8").to_string()
}

/// The answer as JSON.
fn answer(arguments: &[&str]) -> serde_json::Value {
    let output = fairlab(&[arguments, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// How often a task waited, and how long at most, ns.
fn waits(file: &str, options: &[&str], pid: i64) -> Option<(u64, u64)> {
    let answer = answer(&[&["latency", "-p", file][..], options].concat());
    let rows = answer["tasks"].as_array().expect("rows").clone();
    let row = rows.into_iter().find(|row| row["pid"] == pid)?;
    Some((row["count"].as_u64()?, row["max_delay_ns"].as_u64()?))
}

#[test]
fn every_form_has_the_wait_that_its_text_tells() {
    for (name, wait) in [
        ("html-escaped.txt", 800_000),
        ("js-string.html", 800_000),
        ("raw-report.txt", 800_000),
        ("report-w.txt", 800_000),
        ("instance-prefix.report.txt", 800_000),
        ("success0.txt", 100_000),
        ("mmap-line-time0.txt", 50_000),
        ("no-comm-column.txt", 50_000),
    ] {
        let file = testdata(&format!("wrapped/{name}"));
        assert_eq!(waits(&file, &[], 200).map(|(_, longest)| longest), Some(wait), "{name}");
        let read = answer(&["latency", &file]);
        assert_eq!(read["import"]["unreadable"], serde_json::json!([]), "{name}");
    }
    let story = text(&fairlab(&["explain", &testdata("wrapped/instance-prefix.report.txt")]).stdout);
    assert!(story.contains("Woken by feed:100 "), "{story}");
    let all = answer(&["latency", &testdata("wrapped/no-comm-column.txt")]);
    assert_eq!(all["import"]["events"], 4);
}

#[test]
fn two_files_in_one_report_are_not_merged() {
    let file = testdata("wrapped/host-and-guest.report.txt");
    let output = fairlab(&["latency", &file]);
    let stderr = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""), "{stderr}");
    assert!(stderr.contains("host.dat") && stderr.contains("guest.dat"), "{stderr}");
    assert_eq!(waits(&file, &["--instance", "host.dat"], 200), Some((1, 30_800_000)));
    let missing = fairlab(&["latency", &file, "--instance", "other.dat"]);
    assert!(text(&missing.stderr).contains("there are host.dat, guest.dat"), "{}", text(&missing.stderr));
}

#[test]
fn a_record_that_is_no_event_does_not_begin_the_trace() {
    let answer = answer(&["summary", &testdata("wrapped/mmap-line-time0.txt")]);
    let span = answer["end_ns"].as_u64().zip(answer["start_ns"].as_u64()).map(|(end, start)| end - start);
    assert_eq!(span, Some(9_900_000), "{answer}");
}

#[test]
fn times_that_are_none_are_said() {
    for (name, line) in [
        ("negative-times.txt", "line 2: a-1 [000] d..2. -5.000001"),
        ("large-times.txt", "line 4: a-1 [000] d..2. 18446744074.709551"),
    ] {
        let output = fairlab(&["summary", &testdata(&format!("wrapped/{name}"))]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {stderr}");
        assert!(
            stderr.contains("cannot be read, the first in line") && stderr.contains(line),
            "{name}: {stderr}"
        );
    }
}

/// A copy of the folder of pages in a folder of a test.
fn pages(folder: &Folder) -> String {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).expect("a folder");
        for entry in std::fs::read_dir(from).expect("a folder").flatten() {
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            if from.is_dir() {
                copy(&from, &to);
            } else {
                std::fs::copy(from, to).expect("copied");
            }
        }
    }
    let to = folder.path("pages");
    copy(Path::new(&testdata("pages")), Path::new(&to));
    to
}

#[test]
fn a_folder_of_pages_is_a_trace_for_every_command() {
    let folder = Folder::new("pages");
    let pages = pages(&folder);
    assert_eq!(waits(&pages, &[], 200), Some((60, 800_000)));
    for command in ["timehist", "summary", "explain"] {
        assert_eq!(fairlab(&[command, &pages]).status.code(), Some(0), "{command}");
    }
    // It is read; that it lacks events is another matter.
    let verified = fairlab(&["verify", &pages, "--kernel", "v6.6", "--machine", "vm4"]);
    assert!(
        text(&verified.stderr).contains("the trace has no sched_wakeup, no sched_stat_runtime"),
        "{}",
        text(&verified.stderr)
    );
    let compared = ["compare", "replay", &pages, "--kernel", "v6.6", "--kernel", "v6.12", "--runs", "3"];
    let output = fairlab(&compared);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn pages_need_neither_a_table_of_states_nor_a_clock_of_nanoseconds() {
    let folder = Folder::new("tsc");
    let pages = pages(&folder);
    let format = format!("{pages}/events/sched/sched_switch/format");
    let described = std::fs::read_to_string(&format).expect("a format");
    let (fields, _) = described.split_once("print fmt:").expect("what is printed");
    std::fs::write(&format, format!("{fields}print fmt: \"%s\", REC->prev_comm\n")).expect("written");
    assert_eq!(waits(&pages, &[], 200), Some((60, 800_000)));
    std::fs::write(format!("{pages}/trace_clock"), "local global counter [x86-tsc]\n").expect("written");
    assert_eq!(waits(&pages, &["--clock-hz", "2000000000"], 200), Some((60, 400_000)));
    // Fields that the event must have, and has not.
    std::fs::write(&format, described.replace("prev_pid;", "was_pid;")).expect("written");
    let output = fairlab(&["latency", &pages, "--clock-hz", "2000000000"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("sched_switch events cannot be read"), "{}", text(&output.stderr));
}

/// What `trace-cmd report` prints of a clock whose stamps it takes for no nanoseconds, though `boot`'s are: no blank is left
/// before them.
#[test]
fn stamps_that_stick_to_the_flags_are_read_by_their_rate_and_never_guessed() {
    let folder = Folder::new("stuck");
    let lines = "cpus=2
            feed-100   [000] d..3.920058677513: sched_waking:         comm=eater pid=200 prio=120 target_cpu=001
          <idle>-0     [001] d..2.920058977513: sched_switch:         swapper/1:0 [120] R ==> eater:200 [120]
           eater-200   [001] d..21920059977513: sched_switch:         eater:200 [120] S ==> swapper/1:0 [120]\n";
    let file = folder.file("boot.txt", lines);
    assert_eq!(waits(&file, &["--clock-hz", "1000000000"], 200), Some((1, 300_000)));
    assert_eq!(waits(&file, &["--clock-hz", "3000000000"], 200), Some((1, 100_000)));
    let named = folder.file("named.txt", &format!("# clock: boot\n{lines}"));
    assert_eq!(waits(&named, &[], 200), Some((1, 300_000)));
    let counted = folder.file("counter.txt", &format!("# clock: counter\n{lines}"));
    for (file, options) in [(&file, &[][..]), (&counted, &[]), (&counted, &["--clock-hz", "1000"])] {
        for command in ["latency", "timehist", "summary", "explain"] {
            let output = fairlab(&[&[command, file], options].concat());
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command}: {error}");
            assert!(error.contains("count") && error.lines().count() <= 2, "{command}: {error}");
        }
    }
}

/// Tasks of two CPUs that wake each other: the lines of each with its CPU's clock ahead by so much, in the order of their stamps.
fn of_clocks(ahead: [i64; 2]) -> String {
    let mut lines: Vec<(i64, String)> = Vec::new();
    let mut random = 7_u64;
    let mut below = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 33) % limit) as i64
    };
    for cpu in 0..2 {
        let mut now = 1_000_000_000 + below(900_000);
        for _ in 0..400 {
            let pid = 100 + cpu;
            let mut line = |time: i64, cpu: usize, of: &str, event: String| {
                let stamp = time + ahead[cpu];
                let (seconds, ns) = (stamp / 1_000_000_000, stamp % 1_000_000_000);
                lines.push((stamp, format!("{of} [{cpu:03}] d..2. {seconds}.{ns:09}: {event}\n")));
            };
            now += 300_000 + below(900_000);
            let waking = format!("sched_waking: comm=t{cpu} pid={pid} prio=120 target_cpu={cpu:03}");
            line(now, 1 - cpu, "          <idle>-0      ", waking);
            now += 4_000 + below(60_000);
            let (idle, task) = (format!("swapper/{cpu}"), format!("t{cpu}"));
            let switch = |prev: &str, prev_pid: usize, state: &str, next: &str, next_pid: usize| {
                format!(
                    "sched_switch: prev_comm={prev} prev_pid={prev_pid} prev_prio=120 prev_state={state} ==> \
                     next_comm={next} next_pid={next_pid} next_prio=120"
                )
            };
            line(now, cpu, "          <idle>-0      ", switch(&idle, 0, "R", &task, pid));
            now += 20_000 + below(80_000);
            line(now, cpu, &format!("              t{cpu}-{pid}    "), switch(&task, pid, "S", &idle, 0));
        }
    }
    lines.sort();
    ["# tracer: nop\n".to_string()].into_iter().chain(lines.into_iter().map(|(_, line)| line)).collect()
}

#[test]
fn clocks_of_cpus_that_stand_apart_are_told_and_aligned() {
    let folder = Folder::new("apart");
    let together = folder.file("together.txt", &of_clocks([0, 0]));
    let told = |file: &str, options: &[&str]| {
        let output = fairlab(&[&["latency", file], options].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    for options in [&[][..], &["--align-cpus"]] {
        let told = told(&together, options);
        assert!(!told.contains("--align-cpus") && !told.contains("shifted"), "{told}");
    }
    for (by, ahead) in [(5_000_000, "the clock of CPU 1 is "), (-700_000, "the clock of CPU 0 is ")] {
        let apart = folder.file("apart.txt", &of_clocks([0, by]));
        for command in ["latency", "timehist", "summary", "explain"] {
            let said = text(&fairlab(&[command, &apart]).stderr);
            assert!(said.contains(ahead) && said.contains("--align-cpus"), "{command}: {said}");
            assert!(!said.contains("events are missing"), "{command}: {said}");
        }
        let said = told(&apart, &["--align-cpus"]);
        assert!(said.contains("the times of CPU ") && !said.contains("ahead"), "{said}");
        for pid in [100, 101] {
            let right = waits(&together, &[], pid).expect("waits");
            let aligned = waits(&apart, &["--align-cpus"], pid).expect("waits");
            assert_eq!((right.0, aligned.0), (400, 400), "{by}");
            // No wakeup takes less than 4 us: closer than that the clocks are not known.
            assert!(right.1.abs_diff(aligned.1) <= 4_000, "{by}: {right:?} {aligned:?}");
        }
        let output = program()
            .args(["latency", "-", "--align-cpus"])
            .stdin(std::fs::File::open(&apart).expect("a file"))
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("copy it into a file"), "{}", text(&output.stderr));
    }
}

/// A trace whose tasks' wakeups are told by sched_waking alone, as Perfetto's columns are.
#[test]
fn a_task_woken_as_it_leaves_waits_where_only_wakings_are_recorded() {
    let folder = Folder::new("leaving");
    let front = |us: u32, of: &str| format!("{of} [000] d..2. 10.{us:06}:");
    let of_worker = |us| front(us, "          worker-200    ");
    let of_hog = |us| front(us, "             hog-300    ");
    let switch = |prev: &str, state: &str, next: &str| {
        let [(prev, prev_pid), (next, next_pid)] =
            [prev, next].map(|who| who.split_once(':').expect("a pid"));
        format!(
            " sched_switch: prev_comm={prev} prev_pid={prev_pid} prev_prio=120 prev_state={state} ==> next_comm={next} \
             next_pid={next_pid} next_prio=120\n"
        )
    };
    let lines = [
        of_hog(1000) + &switch("hog:300", "R", "worker:200"),
        front(1990, "          waker-400    ").replace("[000]", "[001]")
            + " sched_waking: comm=worker pid=200 prio=120 target_cpu=000\n",
        of_worker(2000) + &switch("worker:200", "S", "hog:300"),
        of_hog(22_000) + &switch("hog:300", "R", "worker:200"),
    ];
    let file = folder.file("wakings.txt", &lines.concat());
    // The first time that it is seen to come counts, too, as in perf.
    assert_eq!(waits(&file, &["--woken-while-running"], 200), Some((2, 20_000_000)));
    let output = fairlab(&["latency", &file]);
    assert!(text(&output.stderr).contains("--woken-while-running"), "{}", text(&output.stderr));
    let explained = answer(&["explain", &file, "--task", "worker"]);
    assert_eq!(explained["stories"][0]["wait_ns"], 20_000_000);
}

/// A task that is woken and runs, `count` times; the switches' fields are `unknown` ones if so.
fn trace(count: u32, unknown: bool) -> String {
    let mut lines = "# tracer: nop\n#\n".to_string();
    let arrow = if unknown { "=!=>" } else { "==>" };
    for at in 0..count {
        let front = |us: u32| format!("            feed-100     [000] d..2. {}.{us:06}:", 10 + at);
        let idle = |us: u32| format!("          <idle>-0       [001] d..2. {}.{us:06}:", 10 + at);
        let eater = |us: u32| format!("           eater-200     [001] d..2. {}.{us:06}:", 10 + at);
        lines += &format!("{} sched_waking: comm=eater pid=200 prio=120 target_cpu=001\n", front(100));
        lines += &format!(
            "{} sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R {arrow} next_comm=eater next_pid=200 next_prio=120\n",
            idle(900)
        );
        lines += &format!(
            "{} sched_switch: prev_comm=eater prev_pid=200 prev_prio=120 prev_state=S {arrow} next_comm=swapper/1 next_pid=0 next_prio=120\n",
            eater(1500)
        );
    }
    lines
}

/// A trace of a run with a quota, alone in a folder and through every format that is read, tells what ran on which machine: its
/// caches, its tick rate, its groups and their quotas. A format that cannot says what it leaves out.
#[test]
fn a_trace_alone_tells_its_machine_and_its_quotas() {
    let folder = Folder::new("alone");
    let first = folder.path("a.txt");
    let run = "run cgroup cpu.max=20000/100000 periodic -n 6 -c 3000 -p 10000 -r 1 --kernel v6.6 --machine lkp-avoton3 \
               --duration 300ms --warmup 0 --seed 5 --trace";
    let made = fairlab(&run.split_whitespace().chain([first.as_str()]).collect::<Vec<_>>());
    assert!(made.status.success(), "{}", text(&made.stderr));
    let system = |file: &str| {
        let output = fairlab(&["summary", file, "--format", "json"]);
        let answer = serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON");
        let scopes = answer["unconserved"].as_array().map(Vec::len);
        (answer["system"].clone(), scopes)
    };
    let (told, scopes) = system(&first);
    assert_eq!(
        (&told["origin"], &told["kernel"], &told["seed"]),
        (&"modelled".into(), &"v6.6".into(), &5.into())
    );
    let topology = told["topology"].as_array().expect("lines");
    assert!(topology.iter().any(|line| line == "cpu3: threads 3 core 2-3 package 0 node 0"), "{told:#}");
    let groups = told["groups"].as_array().expect("lines");
    assert!(
        groups.iter().any(|line| line.as_str().is_some_and(|line| line.contains("\t20000 100000\t"))),
        "{told:#}"
    );
    assert!(scopes > Some(4), "caches are known: {scopes:?}");
    let mut file = first.clone();
    for name in ["b.dat", "c.data", "d.txt.zst"] {
        let next = folder.path(name);
        let output = fairlab(&["convert", &file, &next]);
        assert!(text(&output.stdout).contains(", complete"), "{name}");
        assert_eq!(system(&next), (told.clone(), scopes), "{name}");
        file = next;
    }
    let output = fairlab(&["verify", &file]);
    let verified = text(&output.stdout);
    assert!(
        verified.starts_with("# modelled, read by fairlab") && verified.contains("by the rules of v6.6"),
        "{verified}"
    );
    let output = fairlab(&["convert", &file, &folder.path("e.pftrace")]);
    let said = text(&output.stderr);
    assert!(
        said.contains("what 8 CPUs share") && said.contains("control groups with their quotas"),
        "{said}"
    );
    // What lies beside a trace is read, too: what was recorded and did not happen is no gap of the recording.
    let quiet = folder.file("trace.txt", &trace(3, false).replace("sched_wakeup", "sched_other"));
    let silent = text(&fairlab(&["summary", &quiet]).stderr);
    folder.file("events.txt", "event sched/* on\n");
    let listed = text(&fairlab(&["summary", &quiet]).stderr);
    assert!(
        !silent.contains("events.txt") && listed.contains("events.txt beside it says"),
        "{silent}\n{listed}"
    );
}

#[test]
fn no_command_answers_when_the_switches_cannot_be_read() {
    let folder = Folder::new("refused");
    let file = folder.file("broken.txt", &trace(20, true));
    let copy = folder.path("copy.dat");
    let meta = folder.file("meta.json", "{\"HZ\": 250}");
    let replay = ["--kernel", "v6.6", "--kernel", "v6.12", "--runs", "2", "--machine", "vm4"];
    let mut commands: Vec<Vec<&str>> = ["latency", "timehist", "summary", "explain"]
        .iter()
        .flat_map(|command| [vec![*command, &file], vec![*command, &file, "--format", "json"]])
        .collect();
    commands.push(vec!["convert", &file, &copy]);
    commands.push(vec!["verify", &file, "--kernel", "v6.6", "--machine", "vm4"]);
    commands.push([&["compare", "replay", file.as_str()][..], &replay].concat());
    let side = folder.0.to_str().expect("a path in UTF-8");
    commands.push(vec!["compare", "--folder", side, "--folder", side]);
    for command in commands {
        let output = fairlab(&command);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!((output.status.code(), stdout.as_str()), (Some(2), ""), "{command:?}: {stderr}");
        let says =
            "40 of 40 sched_switch events cannot be read, the first in line 4: <idle>-0       [001] d..2.";
        assert!(stderr.contains(says), "{command:?}: {stderr}");
    }
    assert!(!Path::new(&copy).exists());
    std::fs::remove_file(meta).expect("removed");
}

#[test]
fn a_few_are_told_and_more_only_where_the_user_says_so() {
    let folder = Folder::new("told");
    let few = folder.file("few.txt", &[trace(100, false), trace(1, true)].concat());
    let many = folder.file("many.txt", &[trace(10, false), trace(1, true)].concat());
    for (file, options) in [(&few, &[][..]), (&many, &["--allow-unreadable"])] {
        let output = fairlab(&[&["latency", file.as_str()][..], options].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert!(stderr.contains(" sched_switch events cannot be read, the first in line "), "{stderr}");
        let json = fairlab(&[&["latency", file.as_str(), "--format", "json"][..], options].concat());
        let answer: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
        assert_eq!(answer["import"]["unreadable"][0]["event"], "sched_switch");
        assert_eq!(answer["import"]["unreadable"][0]["count"], 2);
    }
    assert_eq!(fairlab(&["latency", &many]).status.code(), Some(2));
}
