//! Real kernels under `fairlab boot`: the same run twice, and what is left when one goes wrong.
//!
//! Each test that boots takes some ten seconds, and fetches kernel and QEMU the first time (about 70 MB): they are left out
//! unless asked for (`cargo test -p fairlab-cli --test it boot:: -- --ignored`), as `make test` does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::limit;
use crate::schema;

/// Long enough for a busy machine; a quiet one needs a tenth of it.
const LIMIT: &str = "170";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The guest's program, made if it is not there; or why it cannot be made.
fn guest_of(architecture: &str) -> Result<String, String> {
    let output =
        Command::new(root().join("scripts/guest")).arg(architecture).output().expect("scripts/guest runs");
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_string()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// The guest's program for machines of x86-64: the one that was built with the tests, if whoever runs them names one.
fn guest() -> String {
    let named = std::env::var("FAIRLAB_TEST_GUEST").map_err(|error| error.to_string());
    named.or_else(|_| guest_of("amd64")).unwrap_or_else(|errors| panic!("{errors}"))
}

fn boot(arguments: &[&str]) -> Command {
    // Whoever runs the tests may ignore interrupts, as shells let programs in the background do.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_fairlab"), "boot"]).args(arguments);
    command.env("FAIRLAB_GUEST", guest()).stdin(Stdio::null());
    command
}

fn json(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

/// An empty place for one test.
fn place(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fairlab-boot-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("a folder");
    folder
}

/// Machines of processes below this one.
fn machines() -> usize {
    let is_ours = |pid: &str| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).into_owned();
        command.contains("qemu-system")
            && command.contains("fairlab,debug-threads=on")
            && fs::read_to_string(format!("/proc/{pid}/environ"))
                .is_ok_and(|environment| environment.contains(&mark()))
    };
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter(|entry| is_ours(&entry.file_name().to_string_lossy())).count()
}

/// What tells this test's machines from those of others.
fn mark() -> String {
    format!("FAIRLAB_TEST={}", std::process::id())
}

#[test]
#[ignore = "boots a machine twice; make test asks for it"]
fn two_runs_of_bookworms_kernel_are_the_same() {
    let folder = place("twice");
    let run = |name: &str| {
        let out = folder.join(name);
        let out = out.to_str().expect("a path");
        let arguments =
            ["debian:bookworm", "--topology", "2", "--timeout", LIMIT, "--format", "json", "--out", out];
        json(
            &boot(&[&arguments[..], &["hackbench", "-g", "2", "-f", "4", "-l", "100"]].concat())
                .output()
                .expect("run"),
        )
    };
    let (first, second) = (run("first"), run("second"));
    schema::holds(&first, "boot-1");
    assert_eq!(first["digest"], second["digest"]);
    assert_eq!((&first["status"], &first["mode"]), (&Value::from(0), &Value::from("deterministic")));
    assert_eq!(first["dropped"], Value::from(0));
    assert!(first["output"].as_str().is_some_and(|output| output.contains("Time: ")), "{}", first["output"]);
    // How many picks have a choice hangs on how the tasks fall in with each other.
    for (kind, least) in [("pick", 0), ("placement", 100)] {
        let (judged, agree) = counts(&verified(&folder.join("first"), "debian-6.1", kind));
        assert!(judged > least && agree * 100 >= judged * 98, "{kind}: {agree} of {judged}");
    }
    fs::remove_dir_all(folder).expect("removed");
}

/// What a recording's verification says of a kind of decision.
fn verified(folder: &Path, kernel: &str, kind: &str) -> Value {
    let verify = Command::new(env!("CARGO_BIN_EXE_fairlab"))
        .args(["verify", "--kernel", kernel, "--format", "json"])
        .arg(folder)
        .output();
    let verified = json(&verify.expect("run"));
    let kinds = verified["decisions"].as_array().expect("a list");
    kinds.iter().find(|known| known["kind"] == kind).cloned().unwrap_or_default()
}

/// How many of these decisions were judged, and how many of them agree.
fn counts(decisions: &Value) -> (u64, u64) {
    let number = |name: &str| decisions[name].as_u64().unwrap_or(0);
    (number("judged"), number("agree"))
}

#[test]
#[ignore = "boots a board, where Rust can build for it; make test asks for it"]
fn a_run_on_a_board_goes_by_energy() {
    let folder = place("board");
    let run = |name: &str| {
        let out = folder.join(name);
        let out = out.to_str().expect("a path");
        let board = [
            "debian:bullseye",
            "--machine",
            "chromebook8",
            "--timeout",
            LIMIT,
            "--format",
            "json",
            "--out",
            out,
        ];
        let workload = ["schbench", "-t", "2", "-m", "2", "-r", "1"];
        boot(&[&board[..], &workload].concat())
    };
    let guest = match guest_of("arm64") {
        Ok(guest) => guest,
        // Not every toolchain can: then this is what a user is told to do.
        Err(errors) => {
            assert!(errors.contains("aarch64-unknown-linux-musl"), "{errors}");
            let output = run("none").env_remove("FAIRLAB_GUEST_ARM64").output().expect("run");
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(errors.contains("run 'make guest-arm64'"), "{errors}");
            return;
        }
    };
    let run = |name: &str| json(&run(name).env("FAIRLAB_GUEST_ARM64", &guest).output().expect("run"));
    assert_eq!(run("first")["status"], Value::from(0));
    let console = fs::read_to_string(folder.join("first/console.txt")).expect("a console");
    assert!(console.contains("sched_energy_set: starting EAS"), "{console}");
    let wakeups = verified(&folder.join("first"), "debian-5.10", "wakeup_cpu");
    let (judged, agree) = counts(&wakeups["cases"]["by energy"]);
    assert!(judged > 30 && agree * 100 >= judged * 90, "{agree} of {judged}");
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_board_has_a_guest_of_its_own() {
    let run = |machine: &str| {
        let mut command = boot(&["debian:bookworm", "--machine", machine, "schbench"]);
        let output =
            command.env_remove("FAIRLAB_GUEST").env_remove("FAIRLAB_GUEST_ARM64").output().expect("run");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let errors = run("vm40");
    assert!(
        errors.contains("no kernel can be booted on vm40: it is of x86, and boards are of arm64"),
        "{errors}"
    );
    // Builds for development carry none.
    if cfg!(debug_assertions) {
        let errors = run("chromebook8");
        assert!(errors.contains("guests of arm64; run 'make guest-arm64'"), "{errors}");
    }
}

#[test]
#[ignore = "boots machines; make test asks for it"]
fn a_kernel_is_set_otherwise_or_says_what_it_has() {
    let folder = place("set");
    let out = folder.join("out");
    let out = out.to_str().expect("a path");
    let run = |words: &[&str]| {
        let start = ["debian:bookworm", "--topology", "2", "--timeout", LIMIT, "--out", out];
        boot(&[&start[..], words, &["pipe", "-l", "20"]].concat()).output().expect("run")
    };
    // Only a kernel says which parameters it does not take. Features and settings are refused on the same way, and what is told of
    // those is tested in crates/guest.
    let output = run(&["--append", "isolcpuss=1"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{errors}");
    assert!(errors.contains("this kernel did not take its parameter 'isolcpuss=1'; "), "{errors}");
    assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 0);
    let output = run(&[
        "--session",
        "--set",
        "NEXT_BUDDY",
        "--set",
        "sched_autogroup_enabled=1",
        "--append",
        "isolcpus=1",
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = |name: &str| fs::read_to_string(folder.join("out").join(name)).expect("a file");
    let info = text("sched_info.txt");
    assert!(info.contains(" NEXT_BUDDY ") && info.contains("sched_autogroup_enabled: 1\n"), "{info}");
    assert!(info.contains("sched_verbose isolcpus=1\n"), "{info}");
    assert!(text("autogroups-start.txt").starts_with("1 /autogroup-"), "the first process is in one");
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
#[ignore = "boots a machine; make test asks for it"]
fn a_machine_that_is_given_up_leaves_nothing() {
    let folder = place("given-up");
    let out = folder.join("out");
    let out = out.to_str().expect("a path");
    let arguments = ["debian:bookworm", "--timeout", "3", "--out", out, "jobs", "spin"];
    let output = boot(&arguments).env("FAIRLAB_TEST", std::process::id().to_string()).output().expect("run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("time was up") && errors.contains("the console"), "{errors}");
    assert_eq!((machines(), fs::read_dir(&folder).expect("the folder").count()), (0, 0));
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
#[ignore = "boots a machine; make test asks for it"]
fn a_machine_ends_with_its_laboratory() {
    let mut command = boot(&["debian:bookworm", "jobs", "spin"]);
    let mut laboratory = command.env("FAIRLAB_TEST", std::process::id().to_string()).spawn().expect("run");
    limit::until("a machine", || machines() == 1);
    // Without a chance to clean up.
    laboratory.kill().expect("killed");
    limit::ended(&mut laboratory);
    limit::until("no machine", || machines() == 0);
}

#[test]
#[ignore = "boots a machine; make test asks for it"]
fn a_kernel_that_panics_is_told_with_its_last_words() {
    let folder = place("panic");
    let out = folder.join("out");
    // A program that the guest cannot start: the kernel finds no first process.
    let output = Command::new(env!("CARGO_BIN_EXE_fairlab"))
        .args(["boot", "debian:bookworm", "--topology", "1", "--timeout", LIMIT])
        .args(["--out", out.to_str().expect("a path"), "pipe"])
        .env("FAIRLAB_GUEST", "/bin/true")
        .env("FAIRLAB_TEST", std::process::id().to_string())
        .output()
        .expect("run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("the booted kernel panicked") && errors.contains("No working init"), "{errors}");
    assert_eq!((machines(), fs::read_dir(&folder).expect("the folder").count()), (0, 0));
    fs::remove_dir_all(folder).expect("removed");
}

/// Debian's kernel has the probes; the program of this test records itself in the guest, and another of its workloads.
#[test]
#[ignore = "boots a machine; make test asks for it"]
fn placement_is_recorded_by_probes_in_a_guest() {
    let program = env!("CARGO_BIN_EXE_fairlab");
    let line = "record --place --format json -o /tmp/a.dat -- fairlab live --duration 1s jobs sleep -n 2";
    let output = boot(&["debian:trixie", "--topology", "2", "--timeout", LIMIT, "--format", "json", program])
        .args(line.split(' '))
        .output()
        .expect("run");
    let booted = json(&output);
    assert_eq!(booted["status"], Value::from(0), "{booted:#}");
    // The recorded workload has its say first.
    let said = booted["output"].as_str().expect("text");
    let answer = serde_json::from_str::<Value>(&said[said.find("{\n").expect("JSON")..]).expect("JSON");
    for probe in ["place_entity", "set_next_entity"] {
        // A job sleeps for 1 ms and runs for 1 ms, a second long, and there are two.
        assert!(answer["probes"][probe].as_u64().is_some_and(|count| count > 500), "{probe}: {answer:#}");
    }
}

#[test]
#[ignore = "boots machines; make test asks for it"]
fn an_interrupt_at_any_moment_ends_everything() {
    for after_ms in [0, 5, 20, 60, 200, 700, 2_000] {
        let folder = place("moment");
        let out = folder.join("out");
        let mut command = boot(&["debian:bookworm", "--out", out.to_str().expect("a path"), "jobs", "spin"]);
        command.env("FAIRLAB_TEST", std::process::id().to_string()).env("TMPDIR", &folder);
        let mut laboratory = command.stderr(Stdio::null()).spawn().expect("run");
        thread::sleep(Duration::from_millis(after_ms));
        assert!(laboratory.try_wait().expect("its state").is_none(), "it does not end by itself");
        let asked = Instant::now();
        // A signal is lost that comes while interrupts are still ignored, as shells let programs in the background do. In the
        // first instants after that nobody hears it: that ends the program, too. Two that are heard would end it at once.
        let mut next = asked;
        limit::until("an interrupt ends it", || {
            if Instant::now() >= next {
                let pid = laboratory.id().to_string();
                Command::new("kill").args(["-INT", &pid]).stderr(Stdio::null()).status().expect("kill runs");
                next = Instant::now() + Duration::from_secs(4);
            }
            laboratory.try_wait().expect("its state").is_some()
        });
        let status = limit::ended(&mut laboratory);
        assert!(status.code() == Some(130) || status.code().is_none(), "after {after_ms} ms: {status}");
        assert!(asked.elapsed() < Duration::from_secs(20), "after {after_ms} ms: {:?}", asked.elapsed());
        let left = fs::read_dir(&folder).expect("the folder").count();
        assert_eq!((machines(), left), (0, 0), "after {after_ms} ms");
        fs::remove_dir_all(folder).expect("removed");
    }
}

#[test]
#[ignore = "boots a machine; make test asks for it"]
fn an_interrupt_ends_the_machine() {
    let folder = place("interrupt");
    let out = folder.join("out");
    let mut command = boot(&["debian:bookworm", "--out", out.to_str().expect("a path"), "jobs", "spin"]);
    let mut laboratory = command.env("FAIRLAB_TEST", std::process::id().to_string()).spawn().expect("run");
    limit::until("a machine", || machines() > 0);
    let interrupt = Command::new("kill").args(["-INT", &laboratory.id().to_string()]).status();
    assert!(interrupt.expect("run").success());
    assert_eq!(limit::ended(&mut laboratory).code(), Some(130));
    assert_eq!((machines(), fs::read_dir(&folder).expect("the folder").count()), (0, 0));
    fs::remove_dir_all(folder).expect("removed");
}

/// Weights, a quota, cpusets and a move, in control groups of a booted kernel; and why its tasks wait, beside the model's.
#[test]
#[ignore = "boots a machine twice; make test asks for it"]
fn a_mix_runs_in_groups_of_a_booted_kernel_and_its_waits_are_explained() {
    let file = root().join("testdata/mixes/places.toml").canonicalize().expect("the file");
    let line =
        "compare --explain --runs 1 --warmup 0 --format json --machine emulated:1x2x1 --kernel debian-6.1";
    let output = Command::new(env!("CARGO_BIN_EXE_fairlab"))
        .args(line.split(' '))
        .args(["--kernel", "qemu:bookworm"])
        .arg(file)
        .env("FAIRLAB_GUEST", guest())
        .output()
        .expect("compare");
    let answer = json(&output);
    let rows = answer["metrics"].as_array().expect("metrics");
    for (kernel, values) in [("debian-6.1", "baseline_values"), ("qemu:bookworm", "values")] {
        let rate = |name: &str| {
            let row = rows.iter().find(|row| row["name"] == format!("{name} throughput"));
            let rate = row.and_then(|row| row[values][0].as_f64());
            rate.unwrap_or_else(|| panic!("{kernel}, {name}: {answer:#}"))
        };
        let [heavy, light, limited, moved] = ["heavy", "light", "limited", "moved"].map(rate);
        assert!((2.5..3.5).contains(&(heavy / light)), "{kernel}: weights of 300 and 100: {heavy} {light}");
        assert!(limited < 60.0 && moved > 3.0 * limited, "{kernel}: {limited} {moved}");
    }
    let why = &answer["causes"][0];
    assert!(why["headline"][0].as_str().is_some_and(|told| !told.is_empty()), "{why:#}");
    let throttled = |scope: &Value| {
        scope["behind"].as_array().is_some_and(|all| all.iter().any(|cause| cause["behind"] == "throttled"))
    };
    assert!(throttled(&why["scopes"][0]), "{why:#}");
}

#[test]
fn booted_kernels_run_on_emulated_machines() {
    let output = Command::new(env!("CARGO_BIN_EXE_fairlab"))
        .args(["run", "pipe", "--kernel", "qemu:bookworm", "--machine", "host"])
        .output()
        .expect("run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("emulated machines, not on host") && errors.lines().count() == 1, "{errors}");
}

#[test]
fn what_cannot_be_booted_is_told_in_a_line() {
    let told = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_fairlab"))
            .arg("boot")
            .args(arguments)
            .env("FAIRLAB_GUEST", "/bin/true")
            .output()
            .expect("run");
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (arguments, expected) in [
        (&["debian:woody", "pipe"][..], "debian:woody: there is no such kernel image"),
        (&["ubuntu:jammy", "pipe"], "ubuntu: stands one of 4.18, 5.0"),
        (&["/no/such/vmlinuz", "pipe"], "no such kernel image"),
        (&["debian:bookworm", "--topology", "4x2", "pipe"], "no topology"),
        (&["debian:bookworm", "--numa", "3", "pipe"], "cannot be dealt out"),
        (&["debian:bookworm", "--threads", "--deterministic", "pipe"], "cannot be used with"),
    ] {
        let errors = told(arguments);
        assert!(errors.contains(expected) && errors.lines().count() == 1, "{arguments:?}: {errors}");
    }
}

/// `sh` as root of namespaces of its own; `$1` is the program, `$2` an empty folder, where its cache is.
fn in_namespaces(kinds: &[&str], script: &str, folder: &Path) -> Output {
    let mut command = Command::new("unshare");
    command.args(kinds).args(["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_fairlab")]).arg(folder);
    command.env("XDG_CACHE_HOME", folder).env("FAIRLAB_GUEST", "/bin/true").output().expect("unshare starts")
}

/// Files below a folder that are no part of apt's own state, and no lock.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let below = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    let all = entries.filter(|path| path.file_name().is_some_and(|name| name != "apt")).flat_map(below);
    all.filter(|path| path.file_name().is_some_and(|name| name != "lock")).collect()
}

#[test]
fn without_network_apt_or_room_it_is_told_what_lacks_and_nothing_is_left() {
    let exec = r#"exec "$1" boot debian:bookworm --out "$2/out" pipe"#;
    for (name, kinds, script, expected) in [
        ("network", &["--net"][..], exec.to_string(), "debian"),
        ("apt", &["--mount"], format!("PATH=/nowhere; {exec}"), "apt"),
        ("disk", &["--mount"], format!(r#"mount -t tmpfs -o size=64k none "$2"; {exec}"#), "space"),
    ] {
        let folder = place(name);
        let output = in_namespaces(kinds, &script, &folder);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{name}: {errors}");
        assert!(errors.contains(expected), "{name}: {errors}");
        assert_eq!(files_below(&folder), Vec::<PathBuf>::new(), "{name}");
        fs::remove_dir_all(folder).expect("removed");
    }
}

#[test]
fn a_cache_that_belongs_to_somebody_else_is_named() {
    let folder = place("rights");
    let program = folder.join("fairlab");
    fs::copy(env!("CARGO_BIN_EXE_fairlab"), &program).expect("a copy");
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&folder, permissions).expect("everybody may look");
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&program)
        .args(["boot", "debian:bookworm", "pipe"])
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env("FAIRLAB_GUEST", "/bin/true")
        .current_dir("/")
        .output()
        .expect("setpriv starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{errors}");
    assert!(errors.contains(folder.to_str().expect("a path")) && errors.contains("ermission"), "{errors}");
    fs::remove_dir_all(folder).expect("removed");
}
