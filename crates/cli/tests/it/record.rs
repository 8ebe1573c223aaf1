//! `fairlab record` and its faults. They take root, tracefs, `setpriv` and `unshare`; where one of these is missing they fail.

use std::fs;
use std::os::fd::IntoRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::limit;
use crate::schema;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairlab");

/// Recordings come one after the other, so that each can say what it left behind.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The instances folder of tracefs. Looked for once, without the program: tests run beside each other.
fn instances() -> &'static Path {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].iter().find_map(|top| {
            let folder = Path::new(top).join("instances");
            let probe = folder.join(format!("test-{}", std::process::id()));
            let made = fs::create_dir(&probe).is_ok();
            (made && fs::remove_dir(&probe).is_ok()).then_some(folder)
        })
    };
    let find = || find().or_else(mounted_here);
    FOUND.get_or_init(find).as_deref().expect("root and tracefs, where instances can be made")
}

/// The instances folder of a tracefs that is mounted for this process alone, where the host has none: mounted into a folder,
/// kept open, and taken out of it again.
fn mounted_here() -> Option<PathBuf> {
    let folder = empty_folder("tracefs");
    let mount = Command::new("mount").args(["-t", "tracefs", "none"]).arg(&folder).status();
    let open = fs::File::open(&folder).ok()?;
    let unmount = Command::new("umount").arg("--lazy").arg(&folder).status();
    let _ = fs::remove_dir(&folder);
    let place = format!("/proc/{}/fd/{}/instances", std::process::id(), open.into_raw_fd());
    (mount.ok()?.success() && unmount.ok()?.success()).then(|| PathBuf::from(place))
}

/// Instances of a process, by its number.
fn instances_of(folder: &Path, process: u32) -> Vec<String> {
    let names = fs::read_dir(folder).expect("instances").flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("fairlab_{process}_"))).collect()
}

/// An empty folder of this name, which everybody may use.
fn empty_folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fairlab-record-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("a folder");
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&folder, permissions).expect("everybody may");
    folder
}

fn files_in(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).expect("a folder").flatten();
    let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>();
    names.sort();
    names
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A shell script as root of a mount namespace of its own; `$1` is the program, `$2` a folder.
fn in_own_mounts(script: &str, folder: &Path) -> Output {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh", PROGRAM]).arg(folder);
    command.output().expect("unshare starts")
}

#[test]
fn a_command_is_recorded_and_nothing_else_stays() {
    let instances = instances();
    let _alone = alone();
    let folder = empty_folder("whole");
    let file = folder.join("sleep.dat");
    let child = Command::new(PROGRAM)
        .args(["record", "--format", "json", "-o"])
        .arg(&file)
        .args(["--", "sleep", "0.05"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let process = child.id();
    let output = limit::output(child);
    assert!(output.status.success(), "{}", errors(&output));
    let answer = serde_json::from_slice::<Value>(&output.stdout).expect("JSON");
    schema::holds(&answer, "record-1");
    assert_eq!((answer["status"].as_i64(), answer["dropped"].as_u64()), (Some(0), Some(0)));
    assert!(answer["events"].as_u64().is_some_and(|events| events > 3), "{answer:#}");
    // A kernel without schedstats says so in its list of events, and so does the program.
    let top = instances.parent().expect("tracefs");
    let has_stat = top.join("events/sched/sched_stat_wait").is_dir();
    let missing = answer["missing"].as_array().expect("a list");
    assert_eq!(missing.iter().any(|name| name == "sched:sched_stat_wait"), !has_stat);
    assert_eq!(errors(&output).contains("this kernel has no sched:sched_stat_wait"), !has_stat);
    let summary =
        Command::new(PROGRAM).args(["latency", "-p"]).arg(&file).output().expect("the program starts");
    // Some guests' kernels lose switches out of idle: what lies across such a hole is not measured, and that is said.
    let shown = String::from_utf8_lossy(&summary.stdout).contains("sleep:");
    let has_holes = ["do not fit the one before", "only one process's events"]
        .iter()
        .any(|said| errors(&summary).contains(said));
    assert!(summary.status.success() && (shown || has_holes), "{}", errors(&summary));
    assert_eq!(instances_of(instances, process), Vec::<String>::new());
    assert_eq!(files_in(&folder), ["sleep.dat"]);
    fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn who_has_no_rights_is_told_whom_to_ask() {
    let folder = empty_folder("rights");
    let program = folder.join("fairlab");
    fs::copy(PROGRAM, &program).expect("a copy");
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&program)
        .args(["record", "-o"])
        .arg(folder.join("a.dat"))
        .args(["--", "true"])
        .current_dir("/")
        .output()
        .expect("setpriv starts");
    assert_eq!((output.status.code(), errors(&output).lines().count()), (Some(2), 1), "{}", errors(&output));
    assert!(errors(&output).contains("run as root"), "{}", errors(&output));
    assert_eq!(files_in(&folder), ["fairlab"]);
    fs::remove_dir_all(folder).expect("the folder");
}

/// Where tracefs is mounted nowhere, a recording mounts it for itself, and no other process sees it.
#[test]
fn a_host_without_a_mounted_tracefs_is_recorded() {
    let _alone = alone();
    let folder = empty_folder("unmounted");
    let script = r#"for place in /sys/kernel/debug /sys/kernel/tracing; do
        if [ -d $place ]; then mount -t tmpfs none $place || exit 9; fi; done
        "$1" record -o "$2/a.dat" -- sleep 0.05 && ls /sys/kernel/tracing && grep -c "^none /proc" /proc/mounts"#;
    let output = in_own_mounts(script, &folder);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().last(), Some("0"), "{}", errors(&output));
    assert_eq!(files_in(&folder), ["a.dat"]);
    fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn tracefs_that_may_only_be_read_is_named() {
    let _alone = alone();
    let folder = empty_folder("locked");
    // A second mount in the same place would be refused where the host has one.
    let script = r#"place=/sys/kernel/tracing
        mountpoint -q $place || mount -t tracefs none $place && mount -o remount,bind,ro $place || exit 9
        exec "$1" record -o "$2/a.dat" -- true"#;
    let output = in_own_mounts(script, &folder);
    assert_eq!((output.status.code(), errors(&output).lines().count()), (Some(2), 1), "{}", errors(&output));
    assert!(errors(&output).contains("cannot make /sys/kernel/"), "{}", errors(&output));
    assert_eq!(files_in(&folder), Vec::<String>::new());
    fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn a_full_disk_ends_a_recording_and_leaves_nothing() {
    let _alone = alone();
    let folder = empty_folder("full");
    // Pages of this many switches do not fit.
    let script = r#"mount -t tmpfs -o size=256k none "$2" || exit 9
        "$1" record -o "$2/a.dat" -- "$1" live pipe -l 20000 & recorder=$!; wait $recorder; echo "status $?"
        ls -A "$2"; mount -t tracefs none /sys/kernel/tracing; ls -A /sys/kernel/tracing/instances | grep "fairlab_${recorder}_""#;
    let output = in_own_mounts(script, &folder);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(told.lines().last(), Some("status 2"), "{told}: {}", errors(&output));
    assert!(
        errors(&output).contains("No space left") && errors(&output).contains("free space"),
        "{}",
        errors(&output)
    );
    fs::remove_dir_all(folder).expect("the folder");
}

/// Records `sleep 20`, sends a signal to both after a while, and gives the recorder's number and what it said.
fn interrupted(folder: &Path, signal: &str, after: Duration) -> (u32, Output) {
    let mut command = Command::new(PROGRAM);
    command.args(["record", "-o"]).arg(folder.join("a.dat")).args(["--", "sleep", "20"]);
    // A group of its own gets the signal, as from a terminal.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let process = child.id();
    thread::sleep(after);
    let sent = Command::new("kill").args([&format!("-{signal}"), "--", &format!("-{process}")]).status();
    assert!(sent.is_ok_and(|status| status.success()), "no signal was sent");
    (process, limit::output(child))
}

#[test]
fn a_signal_at_any_moment_restores_everything() {
    let instances = instances();
    let _alone = alone();
    for (round, signal) in ["INT", "TERM", "HUP"].iter().cycle().take(9).enumerate() {
        let folder = empty_folder("signal");
        let after = Duration::from_millis([0, 4, 10, 20, 40, 80, 150, 300, 600][round]);
        let (process, output) = interrupted(&folder, signal, after);
        let context = format!("{signal} after {after:?}: {:?}: {}", output.status, errors(&output));
        assert_eq!(instances_of(instances, process), Vec::<String>::new(), "{context}");
        // What was recorded by then is kept; there is nothing if it had not begun.
        let files = files_in(&folder);
        assert!(files.is_empty() || files == ["a.dat"], "{files:?}: {context}");
        fs::remove_dir_all(folder).expect("the folder");
    }
}

#[test]
fn what_an_interrupted_recording_has_is_kept() {
    let _alone = alone();
    let folder = empty_folder("kept");
    let (_, output) = interrupted(&folder, "INT", Duration::from_secs(2));
    assert_eq!(files_in(&folder), ["a.dat"], "{}", errors(&output));
    let file = folder.join("a.dat");
    let timehist = Command::new(PROGRAM).arg("timehist").arg(file).output().expect("the program starts");
    assert!(timehist.status.success() && timehist.stdout.len() > 200, "{}", errors(&timehist));
    fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn what_a_killed_recording_left_is_removed_by_the_next() {
    let instances = instances();
    let _alone = alone();
    let folder = empty_folder("killed");
    let (process, _) = interrupted(&folder, "KILL", Duration::from_secs(2));
    assert_eq!(instances_of(instances, process).len(), 1, "nobody can clean up behind a kill");
    let next =
        Command::new(PROGRAM).args(["record", "-o"]).arg(folder.join("b.dat")).args(["--", "true"]).output();
    assert!(next.expect("the program starts").status.success());
    assert_eq!(instances_of(instances, process), Vec::<String>::new());
    fs::remove_dir_all(folder).expect("the folder");
}
