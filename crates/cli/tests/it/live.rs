//! What runs for real on this host: the benchmark itself, and `--kernel host`. They take root, tracefs and `setpriv`; where one
//! of these is missing they fail.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use crate::schema;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairlab");

fn fairlab(line: &str) -> Output {
    Command::new(PROGRAM).args(line.split(' ')).output().expect("the program starts")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(line: &str) -> Value {
    serde_json::from_str(&stdout(&fairlab(line))).expect("JSON")
}

fn refusal(line: &str) -> String {
    let output = fairlab(line);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), errors.matches('\n').count()), (Some(2), 1), "{line}: {errors}");
    errors
}

#[test]
fn schbench_is_the_benchmark_itself() {
    let printed = stdout(&fairlab("schbench -m 1 -t 2 -r 1 -c 2000 -s 500 -w 0"));
    assert!(printed.starts_with("Latency percentiles (usec) runtime 1 (s) ("), "{printed}");
    assert_eq!(
        printed.lines().filter(|line| line.contains("th: ") && line.ends_with(" samples)")).count(),
        7
    );
    assert!(stdout(&fairlab("schbench --help")).starts_with("schbench [options]: "));
    assert!(refusal("schbench -t none").contains("-t 'none' is not a whole number from 1"));
}

#[test]
fn a_run_on_this_host_has_the_metrics_that_can_be_known() {
    let answer = json("run --kernel host --format json schbench -m 1 -t 2 -r 1 -c 2000 -s 500 -w 0");
    let run = &answer["runs"][0];
    assert_eq!((run["kernel"].as_str(), run["machine"].as_str()), (Some("host"), Some("host")));
    let metric = |name: &str| run["metrics"].get(name).and_then(Value::as_f64);
    assert!(metric("throughput").is_some_and(|rate| rate > 0.0), "{answer:#}");
    assert!(metric("switches_per_s").is_some_and(|rate| rate > 1.0), "{answer:#}");
    assert!(metric("schbench_latency_us_p99").is_some(), "{answer:#}");
    let known_by_events = ["wakeup_latency_ns_p99", "migrations_per_s", "idle_share", "unconserved_share"];
    for name in known_by_events {
        assert!(metric(name).is_some(), "{name}: {answer:#}");
    }
    assert!(run["digest"].as_str().is_some_and(|digest| !digest.is_empty()), "{answer:#}");
}

#[test]
fn who_may_not_record_gets_what_can_be_counted_and_is_told_what_cannot() {
    // A copy that everybody may start.
    let folder = std::env::temp_dir().join(format!("fairlab-live-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("fairlab");
    fs::copy(PROGRAM, &program).expect("a copy");
    for path in [&folder, &program] {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(path, permissions).expect("everybody may");
    }
    let line = "run --kernel host --format json hackbench -g 1 -f 2 -l 500";
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&program)
        .args(line.split(' '))
        .current_dir("/")
        .output()
        .expect("setpriv starts");
    fs::remove_dir_all(&folder).expect("the folder");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(errors.matches('\n').count(), 1, "{errors}");
    assert!(
        errors.contains("run as root") && errors.contains("no latencies, migrations, idleness"),
        "{errors}"
    );
    let answer = serde_json::from_str::<Value>(&stdout(&output)).expect("JSON");
    let metrics = &answer["runs"][0]["metrics"];
    assert!(metrics["switches_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{answer:#}");
    assert!(metrics["time_ns"].as_f64().is_some_and(|time| time > 0.0), "{answer:#}");
    assert!(
        metrics.get("wakeup_latency_ns_p99").is_none() && metrics.get("idle_share").is_none(),
        "{answer:#}"
    );
}

#[test]
fn the_model_and_this_host_are_compared_in_the_same_words() {
    let answer =
        json("compare --kernel host --kernel v6.12 --runs 2 --format json periodic -n 1 -c 500 -r 1");
    assert_eq!(answer["baseline"], "host");
    let rows = answer["metrics"].as_array().expect("rows");
    let throughput = rows.iter().find(|row| row["name"] == "throughput").expect("a row");
    assert_eq!(
        (throughput["kernel"].as_str(), throughput["pairing"].as_str()),
        (Some("v6.12"), Some("unpaired"))
    );
}

#[test]
fn any_command_runs_on_this_host() {
    let answer = stdout(&fairlab("run --kernel host -- echo hello there"));
    assert!(answer.contains("\nhost seed 1\nhello there\n"), "{answer}");
    assert!(refusal("run --kernel host -- false").contains("'false' ended with status 1"));
}

#[test]
fn what_cannot_run_here_is_refused() {
    assert!(refusal("run --kernel host uperf").contains("kernel threads, which cannot be started"));
    assert!(refusal("run --kernel host no-such-program").contains("or any command of this host"));
    assert!(refusal("run --kernel host --machine vm40 pipe").contains("runs on this host, not on vm40"));
    assert!(refusal("run --kernel host schbench -t none").contains("-t 'none'"));
    assert!(refusal("live uperf").contains("kernel threads, which cannot be started"));
}

#[test]
fn costs_are_measured_and_written_as_a_machine() {
    let path = std::env::temp_dir().join(format!("fairlab-calibrate-{}.toml", std::process::id()));
    let file = path.to_str().expect("a path");
    let answer = json(&format!("calibrate --samples 20 --format json -o {file}"));
    schema::holds(&answer, "calibrate-1");
    let measured = answer["measured"].as_array().expect("figures");
    let syscall = measured.iter().find(|figure| figure["name"] == "syscall_ns").expect("system calls");
    let median = syscall["median_ns"].as_u64().expect("a time");
    assert!(syscall["low_ns"].as_u64() <= Some(median) && Some(median) <= syscall["high_ns"].as_u64());
    let text = fs::read_to_string(&path).expect("the file");
    assert!(text.contains(&format!("\nsyscall_ns = {median}\n")), "{text}");
    let shown = stdout(&fairlab(&format!("machines show {file} --format toml")));
    fs::remove_file(&path).expect("the file");
    assert!(shown.contains(&format!("\nsyscall_ns = {median}\n")), "{shown}");
    assert!(refusal("calibrate --samples 1").contains("a number from 10 to 100000"));
    assert!(refusal("calibrate --samples 10 --cpus 4095").contains("CPU 4095"));
    assert!(refusal("calibrate --samples 10 -o /nonexistent/host.toml").contains("/nonexistent/host.toml"));
}

fn places() -> String {
    format!("{}/../../testdata/mixes/places.toml", env!("CARGO_MANIFEST_DIR"))
}

/// Whether this user may make control groups here, found out without the program.
fn may_make_groups() -> bool {
    let of_second = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    let tops = match of_second.split_whitespace().any(|name| name == "cpu") {
        true => vec!["/sys/fs/cgroup"],
        false => vec!["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
    };
    tops.iter().any(|top| {
        let probe = format!("{top}/fairlab-probe-{}", std::process::id());
        fs::create_dir(&probe).is_ok() && fs::remove_dir(&probe).is_ok()
    })
}

/// Weights, a quota, cpusets and a move, in control groups of this host. Where no groups can be made, it says so, and nothing runs.
/// Others compute here, too, so what each gets is held against the others alone.
#[test]
fn a_mix_runs_in_groups_of_this_host() {
    let line = format!("run --kernel host --warmup 0 --format json {}", places());
    if !may_make_groups() {
        let errors = String::from_utf8_lossy(&fairlab(&line).stderr).into_owned();
        assert!(errors.contains("control group"), "{errors}");
        return;
    }
    let answer = json(&line);
    let rate = |name: &str| {
        let metrics = &answer["runs"][0]["metrics"];
        metrics[format!("{name} throughput")].as_f64().unwrap_or_else(|| panic!("{name}: {answer:#}"))
    };
    let [heavy, light, limited, moved] = ["heavy", "light", "limited", "moved"].map(rate);
    assert!((1.8..5.0).contains(&(heavy / light)), "weights of 300 and 100: {heavy} {light}");
    assert!(limited < 100.0, "5 % of a second, and what a period lets through: {limited}");
    assert!(moved > 2.0 * limited, "it was moved out of that: {limited} {moved}");
}

/// All workloads of a mix are threads of one process here: a session of its own is no place where autogroups are on.
#[test]
fn a_session_is_refused_where_this_host_has_autogroups() {
    let path = std::env::temp_dir().join(format!("fairlab-session-{}.toml", std::process::id()));
    fs::write(&path, "[[workload]]\nrun = \"jobs spin -n 1\"\nsession = true\nstop = \"100ms\"\n")
        .expect("a file");
    let line = format!("live {}", path.display());
    let autogroups = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").unwrap_or_default();
    if autogroups.trim() == "1" {
        assert!(refusal(&line).contains("wants a session of its own, and this kernel has autogroups on"));
    } else {
        assert!(stdout(&fairlab(&line)).contains("operations"));
    }
    fs::remove_file(path).expect("removed");
}
