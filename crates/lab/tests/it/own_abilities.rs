//! All that may be asked of a kernel's own code, once on each tree: it does it, or is refused in words that name what its release lacks.
//!
//! 6.1 in every run of the tests; 5.10, 6.12 and 7.2, whose sources are fetched, by
//! `cargo test -p fairlab-lab --test it own_abilities -- --ignored`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_kernel::generation::{Feature, Tunable};
use fairlab_lab::source::SourceKernel;
use fairlab_lab::{Kernel, LabError, RunSpec, machines, run};
use fairlab_native::build::Manifest;
use fairlab_sim::Machine;

/// What a file of several workloads may ask of groups and threads: lines of the group, of the workload in it, and of an event later.
const ASKED: [(&str, &str, &str, &str); 22] = [
    ("cpu.weight", "cpu.weight = 300", "", ""),
    ("cpu.weight later", "", "", "cpu.weight = 300"),
    ("cpu.max", "cpu.max = '3000 10000'", "", ""),
    ("cpu.max later", "", "", "cpu.max = '3000 10000'"),
    ("cpu.max.burst", "cpu.max = '3000 10000'\n\"cpu.max.burst\" = 2000", "", ""),
    ("cpu.max.burst later", "", "", "cpu.max = '3000 10000'\n\"cpu.max.burst\" = 2000"),
    ("cpu.idle", "cpu.idle = 1", "", ""),
    ("cpu.idle later", "", "", "cpu.idle = 1"),
    ("cpuset.cpus", "cpuset.cpus = '0'", "", ""),
    ("cpuset.cpus later", "", "", "cpuset.cpus = '0'"),
    ("cpu.uclamp.min", "\"cpu.uclamp.min\" = 50", "", ""),
    ("cpu.uclamp.max later", "", "", "\"cpu.uclamp.max\" = 50"),
    ("a move", "", "", "move = 'asked'\nto = '/other'"),
    ("policy batch", "", "policy = 'batch'", ""),
    ("policy idle", "", "policy = 'idle'", ""),
    ("policy fifo", "", "policy = 'fifo:5'", ""),
    ("policy rr", "", "policy = 'rr:5'", ""),
    ("policy deadline", "", "policy = 'deadline'", ""),
    ("nice", "", "nice = 7", ""),
    ("slice", "", "slice = '20ms'", ""),
    ("cpus", "", "cpus = '0'", ""),
    ("session", "", "session = true", ""),
];

/// What is refused: of which releases (all, where none is named), and what the line names.
const REFUSED: [(&str, &[&str], &str); 7] = [
    ("cpu.idle", &["5.10"], "has no cpu.idle, which group '/g' needs"),
    ("cpu.idle later", &["5.10"], "has no cpu.idle, which group '/g' needs"),
    ("cpu.max.burst", &["5.10"], "has no cpu.max.burst, which group '/g' needs"),
    ("cpu.max.burst later", &["5.10"], "has no cpu.max.burst, which group '/g' needs"),
    ("cpu.uclamp.min", &[], "cpu.uclamp.min"),
    ("cpu.uclamp.max later", &[], "cpu.uclamp.max"),
    ("policy deadline", &[], "deadline"),
];

/// What need not change a run, of which releases: these tasks never sleep, no session has a group, and slices came with 6.12.
const WITHOUT_EFFECT: [(&str, &[&str]); 3] =
    [("policy batch", &[]), ("session", &[]), ("slice", &["5.10", "6.1"])];

fn is_of(releases: &[&str], release: &str) -> bool {
    releases.is_empty() || releases.contains(&release)
}

/// A folder of this test's own, gone at its end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn machine() -> Machine {
    machines::find("layout:1x1x2x1").expect("a machine").exact()
}

/// The digest of a short run of the file on a kernel.
fn digest(kernel: &str, file: &Path) -> Result<String, LabError> {
    let words = vec![file.display().to_string()];
    let spec = RunSpec::new(Kernel::parse(kernel)?, machine(), words, 1, Ns::from_ms(60));
    let made = run(&RunSpec { warmup: Some(Ns::ZERO), ..spec }, &AtomicBool::new(false))?;
    Ok(made.expect("it was not stopped").digest)
}

/// Five tasks that always want to run, two of them in a group.
fn file(folder: &Path, (name, group, workload, later): (&str, &str, &str, &str)) -> PathBuf {
    let at = match (later.is_empty(), later.starts_with("move")) {
        (true, _) => String::new(),
        (false, true) => format!("[[at]]\ntime = '20ms'\n{later}\n"),
        (false, false) => format!("[[at]]\ntime = '20ms'\ngroup = '/g'\n{later}\n"),
    };
    let text = format!(
        "[group.'/g']\n{group}\n[group.'/other']\ncpu.weight = 50\n[[workload]]\nname = 'asked'\nrun = 'jobs spin -n 2'\n\
         group = '/g'\n{workload}\n[[workload]]\nrun = 'jobs spin -n 3'\n{at}"
    );
    let path = folder.join(format!("{}.toml", name.replace(' ', "-")));
    fs::write(&path, text).expect("written");
    path
}

/// Every ask of a workload's file. Returns what is otherwise than it should be, a line each.
fn of_files(release: &str, folder: &Path) -> Vec<String> {
    let kernel = format!("src:debian:{release}");
    let plain = digest(&kernel, &file(folder, ("plain", "", "", ""))).expect("a run");
    let mut wrong = Vec::new();
    for ask in ASKED {
        let refused = REFUSED.iter().find(|(name, releases, _)| *name == ask.0 && is_of(releases, release));
        let may_idle =
            WITHOUT_EFFECT.iter().any(|(name, releases)| *name == ask.0 && is_of(releases, release));
        match (digest(&kernel, &file(folder, ask)), refused) {
            (Ok(digest), None) if digest != plain || may_idle => {}
            (Ok(_), None) => wrong.push(format!("{}: it has no effect", ask.0)),
            (Err(error), Some((_, _, said))) if error.to_string().contains(said) => {}
            (Ok(_), Some(_)) => wrong.push(format!("{}: it is not refused", ask.0)),
            (Err(error), _) => wrong.push(format!("{}: {error}", ask.0)),
        }
    }
    wrong
}

/// Every feature of the tree switched, every tunable set to what it is, and those that only other kernels have. Returns what is
/// wrong, and how many there were.
fn of_settings(release: &str, folder: &Path) -> (Vec<String>, usize) {
    let kernel = format!("src:debian:{release}");
    let plain = file(folder, ("settings", "", "", ""));
    let tree = SourceKernel::parse(&kernel).expect("a kernel");
    let state = tree.drive(&machine(), &AtomicBool::new(false), |scheduler| {
        let image = scheduler.image();
        let on = image.features().into_iter().filter(|name| image.feature(name) == Some(true));
        let values = image.tunables().into_iter().map(|name| (image.tunable(&name), name));
        Ok(Some((on.collect::<Vec<_>>(), values.collect::<Vec<_>>())))
    });
    let (on, values) = state.expect("an image").expect("it was not stopped");
    let Manifest { features, tunables, .. } = tree.manifest().expect("it is built");
    let mut wrong = Vec::new();
    let mut ask = |setting: String, refused: Option<String>| match (
        digest(&format!("{kernel}{setting}"), &plain),
        refused,
    ) {
        (Ok(_), None) => {}
        (Err(error), Some(said)) if error.problem.contains(&said) => {}
        (Err(error), _) => wrong.push(format!("{setting}: {error}")),
        (Ok(_), Some(_)) => wrong.push(format!("{setting}: it is not refused")),
    };
    for feature in &features {
        ask(format!("+{}{feature}", if on.contains(feature) { "NO_" } else { "" }), None);
    }
    for feature in Feature::ALL.iter().map(|feature| feature.name()) {
        if !features.iter().any(|known| known == feature) {
            ask(format!("+{feature}"), Some(format!("has no feature '{feature}'")));
        }
    }
    // What sources list, and this configuration leaves out, has no file; what has one may not be read on this machine, and takes nothing.
    for tunable in &tunables {
        match values.iter().find(|(_, name)| name == tunable) {
            Some((Some(value), _)) => ask(format!(",{tunable}={value}"), None),
            Some((None, _)) => ask(format!(",{tunable}=1"), Some(format!("refuses {tunable}=1"))),
            None => ask(format!(",{tunable}=1"), Some(format!("has no tunable '{tunable}'"))),
        }
    }
    for tunable in Tunable::ALL.iter().map(|tunable| tunable.name()) {
        if !tunables.iter().any(|known| known == tunable) {
            ask(format!(",{tunable}=1000000"), Some(format!("has no tunable '{tunable}'")));
        }
    }
    (wrong, features.len() + tunables.len())
}

/// Asks a tree for everything.
fn ask(release: &str) {
    let folder =
        Folder(std::env::temp_dir().join(format!("fairlab-abilities-{release}-{}", std::process::id())));
    fs::create_dir_all(&folder.0).expect("a folder");
    let mut wrong = of_files(release, &folder.0);
    let (more, count) = of_settings(release, &folder.0);
    wrong.extend(more);
    assert!(wrong.is_empty(), "{release}:\n{}", wrong.join("\n"));
    assert!(count > 30, "{release}: {count} features and tunables");
}

/// What is written to a group's file on the way is asked for as what is there from the beginning.
#[test]
fn a_modelled_kernel_refuses_files_that_its_release_lacks_also_later() {
    let folder = Folder(std::env::temp_dir().join(format!("fairlab-abilities-model-{}", std::process::id())));
    fs::create_dir_all(&folder.0).expect("a folder");
    for ask in ASKED.into_iter().filter(|ask| ask.0.starts_with("cpu.idle")) {
        let path = file(&folder.0, ask);
        digest("v5.15", &path).unwrap_or_else(|error| panic!("{}: {error}", ask.0));
        let said = digest("v5.14", &path).expect_err(ask.0).to_string();
        assert!(said.contains("kernel v5.14 has no cpu.idle, which group '/g' needs"), "{said}");
    }
}

#[test]
fn own_code_of_6_1_does_what_is_asked_or_says_what_it_lacks() {
    ask("6.1");
}

#[test]
#[ignore = "fetches and builds three more kernels' sources"]
fn own_code_of_the_other_releases_does_what_is_asked_or_says_what_it_lacks() {
    for release in ["5.10", "6.12", "7.2"] {
        ask(release);
    }
}
