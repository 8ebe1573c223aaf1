//! Which crate may use which: the order of the design, kept by a test.
//!
//! Knows the crates' names and manifests, nothing of their code.

use fairlab_house::{FileScope, assert_none, files, members, metadata, string, text};
use serde_json::Value;

/// One crate of ours and the crates of ours that it may use.
struct Crate {
    name: &'static str,
    uses: &'static [&'static str],
    /// What its tests, benchmarks and examples may use besides.
    tests_use: &'static [&'static str],
}

/// Lowest first: a crate uses only crates above it here.
///
/// Trace and analysis know events alone, so that no analysis can tell a simulated trace from a recorded one.
const CRATES: [Crate; 24] = [
    Crate { name: "event", uses: &[], tests_use: &[] },
    // What is kept on disk: any crate that keeps something stands on it.
    Crate { name: "files", uses: &["event"], tests_use: &[] },
    // Work that was done once; it knows no run.
    Crate { name: "store", uses: &["files"], tests_use: &[] },
    Crate { name: "kernel", uses: &["event"], tests_use: &[] },
    // Its tests judge whole runs by the same analyses that users see.
    Crate { name: "sim", uses: &["event", "kernel"], tests_use: &["analysis"] },
    Crate { name: "trace", uses: &["event"], tests_use: &[] },
    Crate { name: "analysis", uses: &["event"], tests_use: &["trace"] },
    Crate { name: "recording", uses: &["event", "files", "kernel", "trace", "analysis"], tests_use: &[] },
    // It is linked into the first process of a booted kernel, so it uses little.
    Crate { name: "live", uses: &["event", "files", "kernel", "sim"], tests_use: &[] },
    // The first process of a booted kernel, and its language with the host.
    Crate { name: "guest", uses: &["event", "sim", "live"], tests_use: &[] },
    Crate {
        name: "verify",
        uses: &["event", "files", "kernel", "trace", "recording", "sim"],
        tests_use: &[],
    },
    // A kernel's own scheduler as the engine's second one.
    Crate { name: "native", uses: &["event", "kernel", "sim", "files"], tests_use: &[] },
    Crate {
        name: "boot",
        uses: &["event", "kernel", "sim", "trace", "recording", "live", "guest", "files"],
        tests_use: &[],
    },
    Crate { name: "machines", uses: &["event", "kernel", "sim", "live", "files", "boot"], tests_use: &[] },
    Crate { name: "recorder", uses: &["event", "trace", "recording", "live", "files"], tests_use: &[] },
    Crate {
        name: "lab",
        uses: &[
            "event",
            "kernel",
            "sim",
            "trace",
            "analysis",
            "recording",
            "recorder",
            "live",
            "files",
            "verify",
            "native",
            "boot",
            "machines",
            "store",
        ],
        tests_use: &["guest"],
    },
    Crate {
        name: "change",
        uses: &["event", "kernel", "sim", "trace", "analysis", "files", "verify", "native", "lab"],
        tests_use: &[],
    },
    Crate {
        name: "report",
        uses: &[
            "event", "kernel", "sim", "trace", "analysis", "files", "verify", "native", "boot", "lab",
            "change",
        ],
        tests_use: &[],
    },
    // Every commit against a catalogue: it searches nothing, and knows the way between two kernels.
    Crate { name: "watch", uses: &["event", "analysis", "files", "lab", "change"], tests_use: &[] },
    // Answers as pages: a page knows its data as JSON and no room that made it; the timeline is drawn from events.
    Crate { name: "page", uses: &["event", "trace", "analysis", "files"], tests_use: &[] },
    Crate {
        name: "cli",
        uses: &[
            "event",
            "kernel",
            "sim",
            "trace",
            "analysis",
            "recording",
            "live",
            "files",
            "verify",
            "native",
            "boot",
            "lab",
            "change",
            "report",
            "watch",
            "page",
        ],
        tests_use: &[],
    },
    // A Python module: what the program does, as functions.
    Crate {
        name: "python",
        uses: &[
            "event",
            "kernel",
            "sim",
            "trace",
            "analysis",
            "recording",
            "files",
            "verify",
            "boot",
            "machines",
            "lab",
            "change",
        ],
        tests_use: &[],
    },
    // Fixed pieces of work whose instructions are counted; little else, since it is built in release for each test.
    Crate {
        name: "speed",
        uses: &["event", "kernel", "sim", "trace", "analysis", "native", "page"],
        tests_use: &[],
    },
    Crate { name: "house", uses: &[], tests_use: &[] },
];

/// Crates whose results must not depend on clock, environment or thread: clippy.toml bans the calls.
const PURE_CRATES: [&str; 4] = ["event", "kernel", "sim", "analysis"];

/// What the clippy.toml of a pure crate must ban at least.
const BANNED: [&str; 4] =
    ["std::time::Instant::now", "std::time::SystemTime::now", "std::env::var", "RandomState"];

fn name_of_ours(package: &Value) -> Option<&str> {
    package["source"].is_null().then(|| string(package, "name").strip_prefix("fairlab-"))?
}

#[test]
fn crates_use_only_crates_above_them() {
    let metadata = metadata();
    let mut violations = Vec::new();
    for package in members(&metadata, "packages") {
        let Some(name) = name_of_ours(package) else { continue };
        let manifest = format!("crates/{name}/Cargo.toml");
        let Some(entry) = CRATES.iter().find(|entry| entry.name == name) else {
            violations
                .push(format!("{manifest}: {name} is not in CRATES of crates/house/tests/it/layout.rs"));
            continue;
        };
        for dependency in members(package, "dependencies").filter(|dependency| !dependency["path"].is_null())
        {
            let used = string(dependency, "name").trim_start_matches("fairlab-");
            let only_for_tests = string(dependency, "kind") == "dev";
            if !(entry.uses.contains(&used) || only_for_tests && entry.tests_use.contains(&used)) {
                let place = if only_for_tests { "the tests of " } else { "" };
                violations.push(format!("{manifest}: {place}{name} must not use {used}"));
            }
        }
    }
    assert_none("a crate uses only the crates that crates/house/tests/it/layout.rs grants it", &violations);
}

/// Crates that stay small enough to be read in a day, and how many lines of source they may have.
const SIZES: [(&str, usize); 2] = [("lab", 13_100), ("verify", 9_700)];

#[test]
fn rooms_keep_their_size() {
    let mut violations = Vec::new();
    for (name, most) in SIZES {
        let sources = files(FileScope::Present)
            .into_iter()
            .filter(|path| path.starts_with(&format!("crates/{name}/src/")) && path.ends_with(".rs"));
        let lines: usize = sources.map(|path| text(&path).lines().count()).sum();
        assert!(lines > 0, "there is no crate {name}");
        if lines > most {
            violations.push(format!("crates/{name}: {lines} lines, of {most}"));
        }
    }
    assert_none("a room that has grown too large is divided, not allowed more", &violations);
}

#[test]
fn the_granted_order_has_no_way_back() {
    for (position, entry) in CRATES.iter().enumerate() {
        for used in entry.uses {
            let place = CRATES.iter().position(|other| other.name == *used);
            assert!(
                place.is_some_and(|place| place < position),
                "{} uses {used}, which is below it",
                entry.name
            );
        }
    }
}

/// How many crates the longest chain has in which each uses the next.
const FLOORS: usize = 11;

#[test]
fn the_longest_chain_of_crates_is_no_longer_than_said() {
    let mut floors: Vec<(&str, usize)> = Vec::new();
    for entry in &CRATES {
        let below = floors.iter().filter(|(name, _)| entry.uses.contains(name)).map(|(_, floor)| *floor);
        floors.push((entry.name, 1 + below.max().unwrap_or(0)));
    }
    let highest = floors.iter().map(|(_, floor)| *floor).max();
    assert_eq!(highest, Some(FLOORS), "{floors:?}: ARCHITECTURE.md says how long the chain is, too");
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let violations: Vec<String> = files(FileScope::Present)
        .into_iter()
        .filter(|path| path.starts_with("crates/") && path.ends_with("/Cargo.toml"))
        .filter(|path| !text(path).contains("\n[lints]\nworkspace = true\n"))
        .map(|path| format!("{path}: no `[lints]` with `workspace = true`"))
        .collect();
    assert_none("every crate takes the lints of the workspace", &violations);
}

#[test]
fn pure_crates_ban_clock_environment_and_thread() {
    let expected = text("crates/event/clippy.toml");
    for banned in BANNED {
        assert!(expected.contains(banned), "crates/event/clippy.toml: {banned} is not banned");
    }
    let present = files(FileScope::Present);
    let mut violations = Vec::new();
    for name in PURE_CRATES {
        let path = format!("crates/{name}/clippy.toml");
        if !present.contains(&path) {
            violations.push(format!("{path}: missing"));
        } else if text(&path) != expected {
            violations.push(format!("{path}: not the same as crates/event/clippy.toml"));
        }
    }
    assert_none("the pure crates share one clippy.toml", &violations);
}

#[test]
fn every_clippy_toml_bounds_functions() {
    // A crate's clippy.toml replaces the root's, so each must repeat the bound.
    let violations: Vec<String> = files(FileScope::Present)
        .into_iter()
        .filter(|path| path == "clippy.toml" || path.ends_with("/clippy.toml"))
        .filter(|path| !text(path).lines().any(|line| line == "too-many-lines-threshold = 70"))
        .collect();
    assert_none("every clippy.toml has `too-many-lines-threshold = 70`", &violations);
}
