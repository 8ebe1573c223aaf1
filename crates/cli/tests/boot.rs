//! Real kernels under `fairlab boot`: the same run twice, and what is left when one goes wrong.
//!
//! Each test that boots takes some ten seconds, and fetches kernel and QEMU the first time (about 70 MB): they are left out
//! unless asked for (`cargo test -p fairlab-cli --test boot -- --ignored`), as `make test` does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Long enough for a busy machine; a quiet one needs a tenth of it.
const LIMIT: &str = "170";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The guest's program, made if it is not there.
fn guest() -> String {
    let output = Command::new(root().join("scripts/guest")).output().expect("scripts/guest runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

fn boot(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairlab"));
    command.arg("boot").args(arguments).env("FAIRLAB_GUEST", guest()).stdin(Stdio::null());
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
            &boot(&[&arguments[..], &["hackbench", "-g", "1", "-f", "4", "-l", "50"]].concat())
                .output()
                .expect("run"),
        )
    };
    let (first, second) = (run("first"), run("second"));
    assert_eq!(first["digest"], second["digest"]);
    assert_eq!((&first["status"], &first["mode"]), (&Value::from(0), &Value::from("deterministic")));
    assert_eq!(first["dropped"], Value::from(0));
    assert!(first["output"].as_str().is_some_and(|output| output.contains("Time: ")), "{}", first["output"]);
    let verify = Command::new(env!("CARGO_BIN_EXE_fairlab"))
        .args(["verify", "--kernel", "debian-6.1", "--format", "json"])
        .arg(folder.join("first"))
        .output();
    let verified = json(&verify.expect("run"));
    let picks =
        verified["decisions"].as_array().and_then(|kinds| kinds.iter().find(|kind| kind["kind"] == "pick"));
    let (judged, agree) = picks
        .map_or((0, 0), |pick| (pick["judged"].as_u64().unwrap_or(0), pick["agree"].as_u64().unwrap_or(0)));
    assert!(judged > 100 && agree * 100 >= judged * 98, "{agree} of {judged}");
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
    let until = |count: usize| {
        let started = Instant::now();
        while machines() != count && started.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(50));
        }
        machines()
    };
    assert_eq!(until(1), 1);
    // Without a chance to clean up.
    laboratory.kill().expect("killed");
    laboratory.wait().expect("ended");
    assert_eq!(until(0), 0);
}

#[test]
#[ignore = "boots a machine; make test asks for it"]
fn a_kernel_that_panics_is_told_with_its_last_words() {
    let folder = place("panic");
    let out = folder.join("out");
    // A program that the guest cannot start: the kernel finds no first process.
    let output = Command::new(env!("CARGO_BIN_EXE_fairlab"))
        .args(["boot", "debian:bookworm", "--timeout", LIMIT, "--out", out.to_str().expect("a path"), "pipe"])
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

#[test]
#[ignore = "boots a machine; make test asks for it"]
fn an_interrupt_ends_the_machine() {
    let folder = place("interrupt");
    let out = folder.join("out");
    let mut command = boot(&["debian:bookworm", "--out", out.to_str().expect("a path"), "jobs", "spin"]);
    let mut laboratory = command.env("FAIRLAB_TEST", std::process::id().to_string()).spawn().expect("run");
    while machines() == 0 {
        thread::sleep(Duration::from_millis(50));
    }
    let interrupt = Command::new("kill").args(["-INT", &laboratory.id().to_string()]).status();
    assert!(interrupt.expect("run").success());
    assert_eq!(laboratory.wait().expect("ended").code(), Some(130));
    assert_eq!((machines(), fs::read_dir(&folder).expect("the folder").count()), (0, 0));
    fs::remove_dir_all(folder).expect("removed");
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
        (&["debian:woody", "pipe"][..], "no kernel is known for 'debian:woody'"),
        (&["/no/such/vmlinuz", "pipe"], "no such kernel image"),
        (&["debian:bookworm", "--topology", "4x2", "pipe"], "no topology"),
        (&["debian:bookworm", "--numa", "3", "pipe"], "cannot be dealt out"),
        (&["debian:bookworm", "--threads", "--deterministic", "pipe"], "cannot be used with"),
    ] {
        let errors = told(arguments);
        assert!(errors.contains(expected) && errors.lines().count() == 1, "{arguments:?}: {errors}");
    }
}
