//! Every command that stands in the book or in README.md: those that `guide.rs` does not run are run here, in a folder with the files that
//! they name. Those that cannot be run stand in a list, each with the reason.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::program;

/// Not run: a page, how the command begins, and why. A reason that names a file is a test that makes such a run, shorter.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("README.md", "fairlab compare schbench -t 20", "takes minutes: scripts/example runs it in 'make run'"),
    ("README.md", "fairlab try", "builds two kernels: trees.rs"),
    ("catalogue.md", "fairlab compare --kernel v5.10-16b0a7a1a0af", "takes a minute: compare.rs"),
    ("fleet.md", "fairlab sweep sweep.toml --on ray", "needs a Ray cluster: python/tests/test_fleet.py"),
    ("fleet.md", "fairlab watch", "needs a Ray cluster: python/tests/test_fleet.py"),
    ("fleet.md", "fairlab fidelity --oracle", "needs a Ray cluster: python/tests/test_fleet.py"),
    ("guide.md", "fairlab record", "records the whole host as root for ten seconds: record.rs"),
    ("guide.md", "fairlab boot", "boots a kernel for seconds of its own time: boot.rs"),
    ("history.md", "fairlab watch", "takes an hour: watch.rs"),
    ("limits.md", "fairlab compare", "takes a minute each: compare.rs varies such files"),
    ("live.md", "fairlab run --kernel host", "takes half a minute, and root: record.rs"),
    ("live.md", "fairlab compare --kernel host", "takes minutes, and root: record.rs"),
    ("native.md", "fairlab kernels build", "needs a kernel's repository, or fetches one: kernels_build.rs"),
    ("native.md", "fairlab compare", "its kernels are those of a user's repository: kernels_build.rs"),
    ("native.md", "fairlab scenario", "builds a kernel and makes a report's run: scenario.rs"),
    ("native.md", "fairlab try", "builds two kernels: trees.rs"),
    ("native.md", "fairlab bisect", "needs a kernel's repository: trees.rs"),
    ("native.md", "fairlab verify", "builds a kernel: kernels_build.rs"),
    ("native.md", "fairlab fidelity --oracle", "builds kernels: fidelity.rs"),
    ("native.md", "fairlab fidelity --booted", "builds a kernel: fidelity.rs"),
    ("own-machine.md", "fairlab calibrate", "takes a minute on an idle host: live.rs"),
    ("python.md", "/usr/bin/time fairlab run", "half an hour of virtual time, to compare how long it takes"),
    ("trust.md", "fairlab verify", "builds a kernel: kernels_build.rs"),
    ("watch.md", "fairlab watch", "takes hours, or needs a kernel's repository: watch.rs"),
    ("boot.md", "fairlab", "boots kernels: boot.rs"),
];

/// Ends of commands that are answers, too: a gate may fail, and be undecided.
const ANSWERS: [(&str, &[i32]); 1] = [("--fail-on", &[0, 1, 3])];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The commands in the blocks of a page that `guide.rs` leaves out.
fn commands(page: &str, console_too: bool) -> Vec<String> {
    let mut all = Vec::new();
    let (mut inside, mut continued) = (None, String::new());
    for line in page.lines() {
        match (line.strip_prefix("```"), &inside) {
            (Some(_), Some(_)) => inside = None,
            (Some(kind), None) => inside = Some(kind.to_string()),
            (None, Some(kind)) if console_too || kind != "console" => {
                let line = line.strip_prefix("$ ").unwrap_or(line);
                let begins = ["fairlab ", "/usr/bin/time fairlab "].iter().any(|head| line.starts_with(head));
                if continued.is_empty() && !begins {
                    continue;
                }
                continued += line.trim_end_matches('\\');
                if !line.ends_with('\\') {
                    all.push(std::mem::take(&mut continued));
                }
            }
            _ => {}
        }
    }
    all
}

/// Every page with its commands.
fn pages() -> Vec<(String, Vec<String>)> {
    let mut files = vec![("README.md".to_string(), root().join("README.md"))];
    for entry in fs::read_dir(root().join("docs")).expect("the book").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            files.push((name, entry.path()));
        }
    }
    files.sort();
    let read = |(name, path): (String, PathBuf)| {
        let text = fs::read_to_string(path).expect("a page");
        let found = commands(&text, name == "README.md" || name == "boot.md");
        (name, found)
    };
    files.into_iter().map(read).filter(|(_, found)| !found.is_empty()).collect()
}

fn why_not(page: &str, command: &str) -> Option<usize> {
    NOT_RUN.iter().position(|(of, begins, _)| *of == page && command.starts_with(begins))
}

/// A folder in which commands find what they name, removed when this is dropped.
struct Desk(PathBuf);

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A task that sleeps and wakes, as ftrace prints it.
const CYCLICTEST: &str = "          idle-0     [000] d..2.     1.000000: sched_waking: comm=cyclictest pid=70 prio=120 target_cpu=000
          <idle>-0     [000] d..2.     1.000010: sched_wakeup: comm=cyclictest pid=70 prio=120 target_cpu=000
          <idle>-0     [000] d..2.     1.000020: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=cyclictest next_pid=70 next_prio=120
      cyclictest-70    [000] d..2.     1.000090: sched_switch: prev_comm=cyclictest prev_pid=70 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

impl Desk {
    fn new() -> Desk {
        let folder = std::env::temp_dir().join(format!("fairlab-documented-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let desk = Desk(folder);
        for side in ["before", "after"] {
            fs::create_dir_all(desk.0.join(side)).expect("a folder");
        }
        std::os::unix::fs::symlink(root().join("testdata"), desk.0.join("testdata")).expect("a link");
        // What a command leaves beside an example stays here.
        let mut examples = Command::new("cp");
        examples.arg("-r").arg(root().join("examples")).arg(&desk.0);
        assert!(examples.status().expect("cp starts").success());
        let copy = |from: &str, to: &str| {
            fs::copy(root().join("testdata").join(from), desk.0.join(to)).expect("a copy");
        };
        for (from, to) in [
            ("trace-cmd-3.1-hackbench.dat", "slow.dat"),
            ("trace-cmd-3.1-hackbench.dat", "trace.dat"),
            ("perf-hackbench.data", "own.data"),
            ("perf-hackbench.data", "before/1.dat"),
            ("perf-pipe.data", "before/2.dat"),
            ("trace-cmd-3.1-hackbench.dat", "before/3.dat"),
            ("perf-make.data", "after/1.dat"),
            ("perf-pipe.data", "after/2.dat"),
            ("perf-mixed.data", "after/3.dat"),
        ] {
            copy(from, to);
        }
        for trace in ["old.dat", "new.dat"] {
            fs::write(desk.0.join(trace), CYCLICTEST).expect("written");
        }
        for side in ["before", "after"] {
            let line = format!(
                "fairlab summary {side}/1.dat --counts {side}/web1.json --label host={side}1 --label service=web"
            );
            desk.run("beforehand", &line);
        }
        desk
    }

    /// Runs a command as a shell would: a comment goes, what is printed goes where it is sent.
    fn run(&self, page: &str, line: &str) {
        let line = line.split(" # ").next().unwrap_or(line);
        for command in line.split(" && ") {
            let command = command.split(" | ").next().unwrap_or(command);
            let (command, sent_to) = match command.split_once(" > ") {
                Some((command, file)) => (command, Some(file.trim())),
                None => (command, None),
            };
            let words = shlex::split(command).expect("words");
            // What would go into a home goes nowhere.
            let words = words.iter().skip(1).map(|word| word.replace("~/", "home/"));
            let output = program().args(words).current_dir(&self.0).output().expect("the program runs");
            let is_answer = |(option, ends): &(&str, &[i32])| {
                command.contains(option) && output.status.code().is_some_and(|code| ends.contains(&code))
            };
            assert!(
                output.status.success() || ANSWERS.iter().any(is_answer),
                "{page}: {command}: {}\n{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
            if let Some(file) = sent_to.filter(|file| !file.contains('/')) {
                fs::write(self.0.join(file), output.stdout).expect("written");
            }
        }
    }
}

#[test]
fn every_command_of_every_page_is_run_or_says_why_not() {
    let desk = Desk::new();
    let mut unused = (0..NOT_RUN.len()).collect::<BTreeSet<_>>();
    let mut runs = 0;
    for (page, found) in pages() {
        for command in found {
            match why_not(&page, &command) {
                Some(reason) => drop(unused.remove(&reason)),
                None => {
                    desk.run(&page, &command);
                    runs += 1;
                }
            }
        }
    }
    let stale = unused.iter().map(|place| &NOT_RUN[*place]).collect::<Vec<_>>();
    assert!(stale.is_empty(), "no page has these commands any more: {stale:?}");
    assert!(runs >= 25, "{runs}");
    for (page, _, why) in NOT_RUN {
        let tests = why.split([' ', ',', ';']).filter(|word| word.ends_with(".rs"));
        tests.for_each(|test| {
            assert!(root().join("crates/cli/tests/it").join(test).is_file(), "{page}: {test}");
        });
    }
}

#[test]
fn commands_are_found_whatever_they_stand_in() {
    let page = "```sh\nfairlab a \\\n  b   # c\nls\n```\n```console\n$ fairlab c\nx\n```\n```\n$ fairlab d > e\n```\nfairlab f\n";
    assert_eq!(commands(page, false), ["fairlab a   b   # c", "fairlab d > e"]);
    assert_eq!(commands(page, true), ["fairlab a   b   # c", "fairlab c", "fairlab d > e"]);
}
