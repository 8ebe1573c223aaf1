//! Wrong command lines and wrong files, of every kind that users make: each is refused in one line that says what, where and what to do.
//!
//! `wrong_usages.tsv` has them: a kind, a command line, and the line that it is answered with. Where another answer is meant,
//! `BLESS=1 cargo test -p fairlab-cli --test it wrong_usages` writes them: look at the difference.

use crate::program::program;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const TABLE: &str = include_str!("wrong_usages.tsv");

/// The longest answer, in letters.
const LONGEST: usize = 300;

/// Files in which something is wrong, by their names.
const FILES: &[(&str, &str)] = &[
    ("empty", ""),
    ("empty.toml", ""),
    ("words.txt", "no trace\nat all\n"),
    ("torn.json", "{ \"tasks\": { "),
    ("no-times.txt", "bash-1 [000] ..... : sched_switch: prev_comm=bash\n"),
    ("sweep-missing.toml", "kernels = ['v6.5']\nmachines = ['vm4']\nworkloads = ['pipe']\nseeds = 1\n"),
    (
        "sweep-key.toml",
        "kernels = ['v6.5']\nmachines = ['vm4']\nworkloads = ['pipe']\nsede = 1\nseeds = 1\nduration_ms = 9\n",
    ),
    (
        "sweep-kernel.toml",
        "kernels = ['6.5']\nmachines = ['vm4']\nworkloads = ['pipe']\nseeds = 1\nduration_ms = 9\n",
    ),
    ("sweep-type.toml", "kernels = 'v6.5'\n"),
    ("machine-key.toml", "name = 'm'\nhz = 250\nhigh_res_timer = true\n[topology]\ncores_per_llc = 2\n"),
    ("machine-missing.toml", "name = 'm'\n[topology]\ncores_per_llc = 2\n"),
    ("machine-cost.toml", "name = 'm'\nhz = 250\n[topology]\ncores_per_llc = 2\n[costs]\nwakeup = 5\n"),
    ("machine-hz.toml", "name = 'm'\nhz = 300\n[topology]\ncores_per_llc = 2\n"),
    ("machine-cpus.toml", "name = 'm'\nhz = 250\n[cpus]\ncores = ['0', '0-1']\n"),
    ("machine-toml.toml", "name = \n"),
    ("mix-key.toml", "[[workload]]\nrun = 'pipe'\nnise = 5\n"),
    ("mix-run.toml", "[[workload]]\nrun = 'hackbensh -g 1'\n"),
    ("mix-group.toml", "[group.'/db']\ncpu.wait = 5\n[[workload]]\nrun = 'pipe'\n"),
    ("mix-at.toml", "[[workload]]\nrun = 'pipe'\n[[at]]\ntime = '1s'\nmove = 'pip'\nto = '/db'\n"),
    ("mix-duration.toml", "duration = '2s'\n[[workload]]\nrun = 'pipe'\n"),
    ("mix-ends.toml", "[[workload]]\nrun = 'pipe'\nduration = '2s'\n"),
    (
        "report-commit.toml",
        "title = 'a'\nsource = 'b'\nmachine = 'vm4'\nworkload = 'pipe'\nduration_ms = 9\n[[claim]]\ntext = 'falls'\n\
         metric = 'throughput'\nkernels = ['v6.5', 'v6.6']\npublished = 'falls'\ncommit = '0123456789ab'\n",
    ),
    ("tasks-machine.toml", "machine = 'vm4'\n[[task]]\nname = 'a'\nsteps = ['run 1us']\n"),
    ("tasks-step.toml", "[[task]]\nname = 'a'\nsteps = [\n'run 1us',\n'slep 1ms',\n]\n"),
    ("tasks-time.toml", "[[task]]\nname = 'a'\nsteps = ['run 5 parsecs']\n"),
    (
        "tasks-queue.toml",
        "[queue.requests]\narrivals = 'fixed 1/s'\n[[task]]\nname = 'a'\nsteps = ['take request', 'run 1us']\n",
    ),
    ("tasks-key.toml", "[[task]]\nname = 'a'\ncuont = 5\nsteps = ['run 1us']\n"),
];

/// A folder with wrong files, and with `data`, a link to the repository's test data.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-wrong-usages-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("folder")).expect("a folder");
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
        symlink(&data, path.join("data")).expect("a link");
        for (name, text) in FILES {
            fs::write(path.join(name), text).expect(name);
        }
        let cut = |from: &str, to: &str| {
            let bytes = fs::read(data.join(from)).expect(from);
            fs::write(path.join(to), &bytes[..4000]).expect(to);
        };
        cut("perf-hackbench.data", "cut.data");
        cut("trace-cmd-3.1-hackbench.dat", "cut.dat");
        cut("events-0.1.parquet", "cut.parquet");
        // Bytes of every value, and of no format.
        let noise = (0..4000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>();
        fs::write(path.join("noise"), noise).expect("noise");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A row of the table.
struct Row {
    kind: &'static str,
    command: &'static str,
    expected: &'static str,
}

fn rows() -> Vec<Row> {
    let row = |line: &'static str| {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap_or_default();
        Row { kind: cell(), command: cell(), expected: cell() }
    };
    TABLE.lines().skip(1).map(row).collect()
}

/// The line that a command is refused with.
///
/// # Errors
/// It is not refused in one line: what it did instead.
fn refusal(folder: &Path, command: &str) -> Result<String, String> {
    let words = shlex::split(command).ok_or("no words")?;
    let mut program = program();
    program.args(words).current_dir(folder).stdin(Stdio::null());
    let output = program.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8(output.stderr).map_err(|_| "it says what is no text".to_string())?;
    match said.trim_end_matches('\n').strip_prefix("fairlab: ") {
        _ if output.status.code() != Some(2) => Err(format!("it ends with {}: {said}", output.status)),
        _ if !output.stdout.is_empty() => Err("it prints an answer".to_string()),
        Some(line) if !line.contains('\n') => Ok(line.to_string()),
        _ => Err(format!("it does not say one line: {said}")),
    }
}

/// What is wrong with a line, whatever it says.
fn wrong_form(line: &str) -> Option<String> {
    let length = line.chars().count();
    if length > LONGEST {
        return Some(format!("{length} letters are more than {LONGEST}: {line}"));
    }
    // What is wrong and where; what to do.
    let has_both =
        line.split_once("; ").is_some_and(|(problem, hint)| !problem.is_empty() && !hint.is_empty());
    let is_ours = !["panicked", "os error", "unwrap", "RUST_BACKTRACE", "error: "]
        .iter()
        .any(|word| line.contains(word));
    (!has_both || !is_ours).then(|| format!("says no cure, or not in our words: {line}"))
}

#[test]
fn each_wrong_usage_is_answered_in_one_line_that_says_what_to_do() {
    let folder = Folder::new("table");
    let mut told = String::from("kind\tcommand\tanswer\n");
    let mut violations = Vec::new();
    for Row { kind, command, expected } in rows() {
        let line = refusal(&folder.0, command).unwrap_or_else(|instead| {
            violations.push(format!("fairlab {command}\n    {instead}"));
            String::new()
        });
        violations.extend(
            wrong_form(&line)
                .filter(|_| !line.is_empty())
                .map(|form| format!("fairlab {command}\n    {form}")),
        );
        if line != expected {
            violations.push(format!(
                "fairlab {command}\n    is answered by  {line}\n    and not by      {expected}"
            ));
        }
        told += &format!("{kind}\t{command}\t{line}\n");
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/wrong_usages.tsv"), told)
            .expect("written");
    }
    assert!(
        violations.is_empty(),
        "{} wrong answers; BLESS=1 writes those that are meant:\n{}",
        violations.len(),
        violations.join("\n")
    );
}

#[test]
fn the_table_has_many_wrong_usages_of_many_kinds() {
    let rows = rows();
    let kinds = rows.iter().map(|row| row.kind).collect::<BTreeSet<_>>();
    let commands = rows.iter().map(|row| row.command).collect::<BTreeSet<_>>();
    assert!(
        commands.len() == rows.len() && rows.len() >= 100,
        "{} rows, {} of them different",
        rows.len(),
        commands.len()
    );
    assert!(kinds.len() >= 12, "{kinds:?}");
}

#[test]
fn a_percentile_alone_is_a_metric_everywhere() {
    let folder = Folder::new("p99");
    for command in [
        "compare pipe -l 9 --kernel v6.5 --kernel v6.6 --runs 2 --metric p99",
        "compare pipe -l 9 --kernel v6.5 --kernel v6.6 --runs 2 --fail-on p99>+90%",
    ] {
        let words = command.split(' ');
        let output = program().args(words).current_dir(&folder.0).output().expect("it runs");
        assert!(output.status.code().is_some_and(|code| code != 2), "{command}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("wakeup_latency_ns_p99"), "{command}");
    }
}
