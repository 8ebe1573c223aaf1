//! Commands that Fairlab prints can be given once more, as they stand, and give the same answer byte by byte.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::program::KEPT_RUNS;
use serde_json::Value;

const WORKLOAD: &str = "schbench -m 1 -t 6 -c 500 -s 300";
const SHORT: &str = "--duration 60ms --warmup 0";

/// A machine in a file, and names of files with blanks and quotes: what a shell must be told apart.
const MACHINE: &str = "my machines/it's a box.toml";

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("fairlab repeat {name} {}", std::process::id()));
        std::fs::create_dir_all(path.join("my machines")).expect("a folder");
        let machine = "name = \"box\"\nhz = 1000\n[topology]\ncores_per_llc = 4\n";
        std::fs::write(path.join(MACHINE), machine).expect("written");
        Place(path)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("bash");
        command.current_dir(&self.0).env("FAIRLAB", env!("CARGO_BIN_EXE_fairlab")).env(KEPT_RUNS, "");
        command
    }

    /// What a shell makes of a line that begins with `fairlab`. A search that finds nothing says so with status 1.
    fn shell(&self, line: &str) -> String {
        let script = format!("fairlab() {{ \"$FAIRLAB\" \"$@\"; }}\n{line}");
        let Output { status, stdout, stderr } =
            self.command().args(["-c", &script]).output().expect("bash runs");
        let errors = String::from_utf8_lossy(&stderr);
        assert!(matches!(status.code(), Some(0 | 1 | 3)), "{line}: {errors}");
        String::from_utf8(stdout).expect("text")
    }

    /// Gives a command, and then the one that its answer says it was; both answers are equal.
    fn repeats(&self, line: &str, before: &dyn Fn(&Path)) -> String {
        let first = self.shell(line);
        let head = first.lines().next().expect("a line");
        let (_, command) =
            head.split_once(": fairlab ").unwrap_or_else(|| panic!("{line}: no command in {head}"));
        before(&self.0);
        let again = self.shell(&format!("fairlab {command}"));
        assert_eq!(lasting(&again), lasting(&first), "{line}\nsays it was\nfairlab {command}");
        before(&self.0);
        let json = self.shell(&format!("fairlab {command} --format json"));
        let json = serde_json::from_str::<Value>(&json).expect("JSON");
        assert_eq!(json["provenance"]["command"], format!("fairlab {command} --format json"), "{line}");
        first
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn nothing(_: &Path) {}

/// An answer but for the time that a run took on this host, which stands behind its digest.
fn lasting(text: &str) -> Vec<&str> {
    let of =
        |line: &str| line.find(" ms in ").filter(|_| line.starts_with("  digest ")).unwrap_or(line.len());
    text.lines().map(|line| &line[..of(line)]).collect()
}

#[test]
fn experiments_repeat_verbatim() {
    let place = Place::new("experiments");
    let on = format!("--machine \"{MACHINE}\" {SHORT}");
    for line in [
        format!("fairlab run {WORKLOAD} --kernel v6.6 --seeds 2 {on}"),
        format!("fairlab compare {WORKLOAD} --kernel v6.5 --kernel v6.6+NO_PLACE_LAG --runs 3 {on}"),
        format!(
            "fairlab compare --margin 20% {WORKLOAD} --kernel v6.5 --kernel v6.6 --runs 3 {on} --layout lkp"
        ),
        format!("fairlab compare {WORKLOAD} --kernel v6.5 --kernel v6.6 --runs 3 {on} --attribute"),
        format!("fairlab bisect {WORKLOAD} --good v6.5 --bad v6.6 --runs 4 --metric 'p99 > 100us' {on}"),
    ] {
        place.repeats(&line, &nothing);
    }
    // What a search prints besides shows what it says that it shows: ratio and interval stand in both.
    let found =
        place.shell(&format!("fairlab bisect {WORKLOAD} --good v6.5 --bad v6.6 --runs 4 --metric p99 {on}"));
    let printed = found.lines().filter_map(|line| line.strip_prefix("  fairlab ")).collect::<Vec<_>>();
    assert!(!printed.is_empty(), "{found}");
    let ends = found.lines().find(|line| line.contains("paired runs")).expect("how the two ends compare");
    let ratio = ends.split(' ').nth(2).expect("a ratio");
    let compared = place.shell(&format!("fairlab {}", printed.last().expect("a command")));
    assert!(compared.lines().any(|line| line.contains(ratio)), "{ends}\n{compared}");
}

#[test]
fn sweeps_and_what_is_made_of_them_repeat_verbatim() {
    let place = Place::new("sweeps");
    let plan = format!(
        "kernels = ['v6.5', 'v6.6']\nmachines = [\"{MACHINE}\"]\nworkloads = ['{WORKLOAD}']\nseeds = 2\n\
         duration_ms = 60\nwarmup_ms = 0\n"
    );
    std::fs::write(place.0.join("a sweep.toml"), plan).expect("written");
    // A sweep that is done says how much of it was done before.
    let anew = |place: &Path| std::fs::remove_dir_all(place.join("a sweep")).expect("removed");
    place.repeats("fairlab sweep 'a sweep.toml'", &anew);
    place.repeats("fairlab query 'a sweep' --where kernel=v6.6 --metric throughput", &nothing);
    place.repeats("fairlab merge 'a sweep'", &nothing);
}

#[test]
fn answers_about_runs_and_traces_repeat_verbatim() {
    let place = Place::new("traces");
    let on = format!("--machine \"{MACHINE}\" {SHORT}");
    for (kernel, out) in [("v6.5", "run a"), ("v6.6", "it's run b")] {
        place.shell(&format!("fairlab run {WORKLOAD} --kernel {kernel} --seeds 2 --out \"{out}\" {on}"));
    }
    let trace = "\"it's run b/v6.6/seed-1/trace.txt.zst\"";
    place.shell(&format!("fairlab convert {trace} 'a trace $HOME.dat'"));
    for line in [
        "fairlab compare --folder 'run a' --folder \"it's run b\"".to_string(),
        "fairlab compare --schedstat 'run a/v6.5/seed-1' --schedstat \"it's run b/v6.6/seed-1\"".to_string(),
        "fairlab merge 'run a' \"it's run b\" --all".to_string(),
        "fairlab latency 'a trace $HOME.dat'".to_string(),
        "fairlab summary 'a trace $HOME.dat' --top 3".to_string(),
        "fairlab explain 'a trace $HOME.dat' --worst 2".to_string(),
        format!("fairlab timehist {trace} -s"),
        format!("fairlab convert {trace} 'a copy.data'"),
        format!("fairlab run replay 'a trace $HOME.dat' --kernel v6.5 {on}"),
        format!("fairlab compare replay {trace} --kernel v6.5 --kernel v6.6 --runs 3 {on}"),
        "fairlab verify \"it's run b/v6.6/seed-2\"".to_string(),
        format!("fairlab machines show \"{MACHINE}\""),
        "fairlab kernels show v6.6,base_slice_ns=1500000".to_string(),
    ] {
        place.repeats(&line, &nothing);
    }
}
