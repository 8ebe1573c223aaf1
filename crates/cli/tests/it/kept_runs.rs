//! Runs that were made before are not made again, and every answer is what it would be without.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::answer;
use crate::program::{KEPT_RUNS, program};

const COMPARE: &str = "compare schbench -m 1 -t 4 -c 500 --machine vm4 --warmup 0ms --duration 60ms --kernel v6.5 --kernel v6.6";

/// A cache of its own.
struct Cache(PathBuf);

impl Cache {
    fn new(name: &str) -> Cache {
        let path = std::env::temp_dir().join(format!("fairlab-kept-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Cache(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("fairlab/runs.redb")
    }

    fn command(&self, line: &str) -> Command {
        let mut command = program();
        command.env_remove(KEPT_RUNS).env("XDG_CACHE_HOME", &self.0).args(line.split(' '));
        command
    }

    fn output(&self, line: &str) -> Output {
        self.command(line).output().expect("the program starts")
    }

    /// What it prints; a search that finds nothing says so with status 1, or 3.
    fn answer(&self, line: &str) -> String {
        let output = self.output(line);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1 | 3)) && errors.is_empty(), "{line}: {errors}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The answer without how it came about, and how many runs there were and were kept.
    fn counted(&self, line: &str) -> (String, [Option<u64>; 2]) {
        let printed = self.answer(&format!("{line} --format json"));
        let json = serde_json::from_str::<Value>(&printed).expect("JSON");
        let counts = ["runs", "kept_runs"].map(|name| json["provenance"][name].as_u64());
        (answer::body(&printed), counts)
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_longer_comparison_makes_what_is_new() {
    let cache = Cache::new("longer");
    let of = |rest: &str| cache.counted(&format!("{COMPARE} {rest}"));
    let (first, none) = of("--runs 3");
    assert_eq!(none, [None, None], "what was made before is told where there is some");
    assert_eq!(of("--runs 3"), (first.clone(), [Some(6), Some(6)]));
    let (longer, counts) = of("--runs 5");
    assert_eq!(counts, [Some(10), Some(6)]);
    assert_eq!(of("--runs 5 --fresh"), (longer.clone(), [None, None]));
    assert_eq!(of("--runs 5"), (longer.clone(), [Some(10), Some(10)]));
    let printed = cache.answer(&format!("{COMPARE} --runs 5"));
    let head = printed.lines().next().expect("a line");
    assert!(head.contains(", seeds 1..5, 10 runs, 10 of them kept from before: fairlab compare "), "{head}");
    // Another question of the same runs is another key; waits by cause are not in those.
    assert_eq!(of("--runs 3 --explain").1, [None, None]);
    assert_eq!(of("--runs 3 --explain").1, [Some(6), Some(6)]);
    fs::remove_file(cache.file()).expect("the store is one file");
    assert_eq!(of("--runs 3"), (first, [None, None]));
}

#[test]
fn a_search_reuses_a_comparison_and_a_search() {
    let cache = Cache::new("search");
    let setting = "hackbench -g 2 -l 100 --machine vm4 --warmup 0ms --duration 200ms --exact";
    cache.answer(&format!("compare {setting} --kernel v6.5 --kernel v6.6 --runs 4 --metric throughput"));
    let bisect = format!("bisect {setting} --good v6.5 --bad v6.6 --metric throughput --runs 12");
    let (first, [runs, kept]) = cache.counted(&bisect);
    assert!(kept >= Some(2) && kept < runs, "both ends: {kept:?} of {runs:?}");
    let (again, [runs, kept]) = cache.counted(&bisect);
    assert_eq!((again, kept), (first, runs));
}

#[test]
fn a_sweep_and_a_report_take_what_is_there() {
    let cache = Cache::new("sweep");
    let file = cache.0.join("sweep.toml");
    let plan = "kernels = [\"v6.5\", \"v6.6\"]\nmachines = [\"vm4\"]\nworkloads = [\"hackbench -g 1 -l 20\"]\nduration_ms = 50\nseeds = ";
    let sweep = |seeds: &str, folder: &str| {
        fs::write(&file, format!("{plan}{seeds}\n")).expect("written");
        let (path, out) = (file.display(), cache.0.join(folder));
        let counted = cache.counted(&format!("sweep {path} --out {}", out.display()));
        (
            counted,
            fs::read(out.join("counts.json")).expect("counts"),
            fs::read(out.join("cells.parquet")).expect("a table"),
        )
    };
    let ((first, none), counts, table) = sweep("3", "one");
    assert_eq!(none, [None, None]);
    assert_eq!(sweep("3", "two"), ((first, [Some(6), Some(6)]), counts, table));
    assert_eq!(sweep("[2, 3, 4]", "three").0.1, [Some(6), Some(4)]);
}

#[test]
fn a_store_that_cannot_be_used_is_told_in_a_line() {
    let cache = Cache::new("refused");
    let line = format!("{COMPARE} --runs 3");
    let expected = cache.counted(&line).0;
    let path = cache.file();
    let told = |fragment: &str| {
        let output = cache.output(&format!("{line} --format json"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(fragment) && errors.lines().count() == 1, "{errors}");
        assert_eq!(answer::body(&String::from_utf8_lossy(&output.stdout)), expected);
    };
    let mut bytes = fs::read(&path).expect("read");
    bytes[..200].fill(7);
    fs::write(&path, bytes).expect("written");
    told("the kept runs were damaged");
    assert_eq!(cache.counted(&line).1, [Some(6), Some(6)], "a new one is there");
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("a folder in its place");
    told("runs cannot be kept");
    fs::remove_dir(&path).expect("removed");
    std::os::unix::fs::symlink("/dev/null", &path).expect("a link");
    for _ in 0..2 {
        assert_eq!(cache.counted(&line), (expected.clone(), [None, None]), "a link to nothing keeps nothing");
    }
}

/// Two comparisons at once with runs in common, again and again: nothing is told, nothing is lost, answers stay what they are.
#[test]
fn two_processes_share_a_store() {
    let (alone, shared) = (Cache::new("alone"), Cache::new("shared"));
    let lines = [1, 4].map(|seed| format!("{COMPARE} --runs 6 --seed {seed} --format json"));
    let expected = lines.each_ref().map(|line| answer::body(&alone.answer(line)));
    for round in 0..6 {
        let pair = lines.each_ref().map(|line| {
            let mut command = shared.command(line);
            if round % 3 == 2 {
                command.arg("--fresh");
            }
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
        });
        for (child, expected) in pair.into_iter().zip(&expected) {
            let output = child.wait_with_output().expect("it ends");
            assert!(
                output.status.success() && output.stderr.is_empty(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            assert_eq!(answer::body(&String::from_utf8_lossy(&output.stdout)), *expected);
        }
    }
    let (_, counts) = shared.counted(&format!("{COMPARE} --runs 9"));
    assert_eq!(counts, [Some(18), Some(18)], "both have kept theirs");
}

/// Whenever a process is killed, the next one says nothing and answers.
#[test]
fn a_killed_process_leaves_a_store_that_serves() {
    let cache = Cache::new("killed");
    let line = format!("{COMPARE} --runs 4");
    let expected = cache.counted(&line).0;
    for round in 0..24 {
        let mut command = cache.command(&format!("{line} --fresh"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        thread::sleep(Duration::from_millis(10 + round * 12));
        let _ = child.kill();
        child.wait().expect("it ends");
        let (answer, [_, kept]) = cache.counted(&line);
        assert_eq!((answer, kept), (expected.clone(), Some(8)), "round {round}");
    }
    assert!(Path::new(&cache.file()).is_file());
}
