//! Recordings as workloads: on their own kernel they come out as they were, on another they show what it changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_lab::{LabError, RunResult, RunSpec, machines, run, workloads};
use fairlab_sim::rng::RandomStream;

fn spec(kernel: &str, machine: &str, workload: &[&str]) -> RunSpec {
    RunSpec::new(
        kernel.parse().expect("a kernel"),
        machines::find(machine).expect("a machine"),
        workload.iter().map(ToString::to_string).collect(),
        1,
        Ns::from_secs(8),
    )
}

fn result(spec: &RunSpec) -> RunResult {
    run(spec, &AtomicBool::new(false)).expect("a run").expect("not stopped")
}

fn metric(result: &RunResult, name: &str) -> f64 {
    result.metric(name).unwrap_or_else(|| panic!("{name}"))
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// A place of this test's own, empty.
fn place(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).expect("a folder");
    place
}

/// schbench under v5.2, recorded, and the recording replayed.
#[test]
fn a_replay_on_its_own_kernel_is_as_the_recording_was() {
    let trace = place("replay-own").join("trace.dat");
    for (workload, machine, kernel, how) in [
        ("schbench -m 2 -t 8 -c 20000 -s 20000 -r 4", "qemu16", "v5.2", "replay"),
        ("periodic -n 6 -c 3000 -p 10000 -r 4", "vm4", "v6.6", "replay"),
        ("tbench -c 2 --client-us 40 --server-us 60", "vm4", "v6.12", "replay --sync"),
    ] {
        let words = workload.split(' ').collect::<Vec<_>>();
        let recorded = RunSpec {
            trace: Some(trace.clone()),
            duration: Ns::from_secs(4),
            ..spec(kernel, machine, &words)
        };
        let recorded = result(&recorded);
        // A comparison asks for the same recording again and again: it is read once, so each has a name of its own.
        let kept = trace.with_file_name(format!("{kernel}.dat"));
        fs::rename(&trace, &kept).expect("renamed");
        let replayed =
            result(&spec(kernel, machine, &how.split(' ').chain(kept.to_str()).collect::<Vec<_>>()));
        assert!(replayed.output.contains("all ended"), "{workload}: {}", replayed.output);
        let pairs = ["wakeup_latency_ns_p50", "wakeup_latency_ns_p99", "switches_per_s", "idle_share"]
            .map(|name| (name, metric(&recorded, name), metric(&replayed, name)));
        println!("{workload}: {pairs:?}");
        let [p50, p99, switches, idle] = pairs.map(|(_, recorded, replayed)| (recorded, replayed));
        assert!((p50.0 - p50.1).abs() < 0.25 * p50.0 + 3_000.0, "{workload}: {pairs:?}");
        assert!((p99.0 - p99.1).abs() < 0.25 * p99.0 + 50_000.0, "{workload}: {pairs:?}");
        assert!((switches.0 - switches.1).abs() < 0.15 * switches.0, "{workload}: {pairs:?}");
        assert!((idle.0 - idle.1).abs() < 0.02, "{workload}: {pairs:?}");
    }
}

/// A real v5.2 ran schbench, and hardly a CPU idled beside a waiting task. Under kernels that have 0b0695f2b34a and not yet
/// 16b0a7a1a0af the same tasks wait for a slice, beside idle CPUs; without the one, or with the other, they do not.
#[test]
fn a_real_kernels_recording_shows_what_another_kernel_would_do() {
    let recording = testdata("recordings/5.2.1-schbench0oct-16smt/trace.txt.zst");
    let words = ["replay", recording.to_str().expect("a path")];
    let means = |kernel: &str| {
        let runs = (1..=6)
            .map(|seed| result(&RunSpec { seed, ..spec(kernel, "qemu16", &words) }))
            .collect::<Vec<_>>();
        ["unconserved_share", "involuntary_switches_per_s"]
            .map(|name| runs.iter().map(|run| metric(run, name)).sum::<f64>() / runs.len() as f64)
    };
    for good in ["v5.2", "v5.10"] {
        let [unconserved, involuntary] = means(good);
        assert!(unconserved < 0.02 && involuntary < 15.0, "{good}: {unconserved}, {involuntary} a second");
    }
    for bad in ["v5.7", "v5.10-16b0a7a1a0af"] {
        let [unconserved, involuntary] = means(bad);
        assert!(unconserved > 0.1 && involuntary > 25.0, "{bad}: {unconserved}, {involuntary} a second");
    }
}

/// Groups of a real 6.12, as lists beside its trace tell of them: who is in one of them gets what its weight gives.
#[test]
fn groups_are_as_they_were_listed() {
    let recording = testdata("recordings/6.12-cgweight-2-probed");
    let words = ["replay", recording.to_str().expect("a path")];
    let workload = workloads::build(&words.map(String::from)).expect("a recording");
    let groups = workload.groups();
    let of = |name: &str| groups.iter().position(|group| group.name == name).expect(name);
    assert_eq!((groups[of("/c")].weight, groups[of("/c")].parent), (400, None));
    assert_eq!((groups[of("/c/y")].weight, groups[of("/c/y")].parent), (300, Some(of("/c"))));
    let replayed = result(&spec("v6.12", "vm4", &words));
    assert!(replayed.output.contains("all ended"), "{}", replayed.output);
    assert!(metric(&replayed, "idle_share") < 1.0, "{:?}", replayed.metrics);
}

/// What is lost of a recording makes another day of it, and never a panic.
#[test]
fn damaged_recordings_are_replayed_as_far_as_they_go() {
    let place = place("replay-damaged");
    for name in
        ["ftrace-5.10-forkstorm.txt.gz", "ftrace-6.18-hackbench.txt.zst", "ftrace-6.6-vhost-starved.txt.zst"]
    {
        let whole = place.join("whole.txt");
        fairlab_trace_text(&testdata(name), &whole);
        let text = fs::read_to_string(&whole).expect("text");
        let lines = text.lines().collect::<Vec<_>>();
        for seed in 0..8 {
            let mut random = RandomStream::new(seed, name);
            let begin = random.below(lines.len() as u64 / 2) as usize;
            let kept = lines[begin..].iter().filter(|_| random.below(50) > 0);
            let damaged = place.join(format!("{seed}-{}.txt", name.len()));
            fs::write(&damaged, kept.map(|line| format!("{line}\n")).collect::<String>()).expect("written");
            let words = ["replay", "-c", "4", damaged.to_str().expect("a path")];
            let spec = RunSpec { duration: Ns::from_ms(300), ..spec("v6.6", "vm4", &words) };
            assert!(result(&spec).output.contains("tasks"), "{name}, {seed}");
        }
    }
}

/// A recording of any form as text.
fn fairlab_trace_text(from: &Path, to: &Path) {
    let mut trace = fairlab_recording::TraceFile::create(to, None).expect("a file");
    fairlab_trace::read_path(from, &fairlab_trace::ReadOptions::default(), &mut trace).expect("a recording");
    trace.finish().expect("written");
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let place = place("replay-bad");
    let (nothing, script) = (place.join("nothing.txt"), place.join("bad.replay"));
    fs::write(&nothing, "no trace at all\n").expect("written");
    fs::write(&script, "fairlab-replay 1 5\nrun 3\n").expect("written");
    let problem = |path: &Path| {
        let words = ["replay".to_string(), path.display().to_string()];
        workloads::build(&words).map(drop).expect_err("nothing to replay").to_string()
    };
    for (path, expected) in [
        (place.join("absent.dat"), "no such file"),
        (nothing, "the first is: no trace at all"),
        (place.clone(), "holds no trace"),
        (script, "line 2: 'run 3' stands before the first task"),
    ] {
        let told = problem(&path);
        assert!(told.contains(expected) && told.contains(path.to_str().expect("a path")), "{told}");
    }
    let refusal = |words: &[&str]| -> LabError {
        run(&spec("v6.6", "vm4", words), &AtomicBool::new(false)).map(drop).expect_err("it does not fit")
    };
    let recording = testdata("recordings/5.2.1-schbench0oct-16smt/trace.txt.zst");
    let told = refusal(&["replay", recording.to_str().expect("a path")]).to_string();
    assert!(told.contains("names CPU 4"), "{told}");
}

/// A trace may have a CPU that no machine has here: one line says so.
#[test]
fn a_cpu_beyond_those_of_any_machine_is_refused() {
    let place = place("replay-many-cpus");
    let switches = |cpu: u32| {
        let line = |time: &str, prev: &str, next: &str| {
            let [(prev, prev_pid), (next, next_pid)] =
                [prev, next].map(|task| task.split_once('-').expect("a pid"));
            format!(
                "{prev}-{prev_pid} [{cpu}] d..2. {time}: sched_switch: prev_comm={prev} prev_pid={prev_pid} prev_prio=120 \
                 prev_state=S ==> next_comm={next} next_pid={next_pid} next_prio=120\n"
            )
        };
        line("1.000000", "a-1", "b-2") + &line("1.000100", "b-2", "a-1") + &line("1.000200", "a-1", "b-2")
    };
    for (cpu, fits) in [(1023, true), (1024, false), (4095, false)] {
        let trace = place.join(format!("{cpu}.txt"));
        fs::write(&trace, switches(cpu)).expect("written");
        let built = workloads::build(&["replay".to_string(), trace.display().to_string()]);
        match built.err() {
            None => assert!(fits, "CPU {cpu}"),
            Some(problem) => {
                let told = format!("it has a CPU {cpu}; machines here have at most 1024 CPUs");
                assert!(!fits && problem.to_string().contains(&told), "{cpu}: {problem}");
            }
        }
    }
}
