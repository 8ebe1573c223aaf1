//! A report's file: what it may say, and what is wrong with one that says something else.
//!
//! Must not know: how runs are made.

use std::path::Path;

use fairlab_change::side_words::SideWords;
use fairlab_event::{Ns, ShownPath};
use fairlab_files::{another_kind, complaint, found_beside, line_at};
use fairlab_kernel::generation::LOG;
use fairlab_lab::kernel::{newest_release, origin_of};
use fairlab_lab::provenance::Origin;
use fairlab_lab::shell::line_of;
use fairlab_lab::{LabError, RUNS_MAX};
use serde::Deserialize;

/// A report that is a file.
#[derive(Clone, Debug, PartialEq)]
pub struct PublicReport {
    /// The file's name without its end.
    pub name: String,
    /// What it is about, in a sentence.
    pub title: String,
    /// Its author, place and date.
    pub source: String,
    /// A machine's name, or a file's path.
    pub machine: String,
    /// A workload's command line; files by their paths.
    pub workload: Vec<String>,
    /// The kernel of sides that name none; `None`: the newest release.
    pub kernel: Option<String>,
    /// What claims compare beside kernels.
    pub sides: Vec<SideWords>,
    /// When to stop each run.
    pub duration: Ns,
    /// How long each run settles before anything is measured; `None`: as long as the machine needs.
    pub warmup: Option<Ns>,
    /// Runs of each kernel.
    pub runs: u64,
    /// Where machine or workload are not the report's own.
    pub departs: Option<String>,
    /// What is known of a result that falls short.
    pub notes: Option<String>,
    /// Why nothing can be run, if so.
    pub cannot: Option<String>,
    /// What is claimed.
    pub claims: Vec<PublicClaim>,
}

impl PublicReport {
    /// The report, each of whose runs settles for `warmup`, whatever the file says.
    #[must_use]
    pub fn settling_for(mut self, warmup: Ns) -> PublicReport {
        self.warmup = Some(warmup);
        self.sides.iter_mut().for_each(|side| side.changes.retain(|(key, _)| key != "warmup"));
        self
    }

    /// The kernels that its claims run: their own, and those of sides.
    pub fn kernels(&self) -> Vec<String> {
        let of_side = |side: &SideWords| {
            let named =
                side.changes.iter().find(|(key, _)| key == "kernel").map(|(_, kernel)| kernel.clone());
            named.or_else(|| self.kernel.clone()).unwrap_or_else(newest_release)
        };
        let of = |name: &String| {
            self.sides.iter().find(|side| side.name == *name).map_or_else(|| name.clone(), of_side)
        };
        let mut kernels = Vec::new();
        for kernel in self.claims.iter().flat_map(|claim| &claim.kernels).map(of) {
            if !kernels.contains(&kernel) {
                kernels.push(kernel);
            }
        }
        kernels
    }
}

/// All keys of a report's file, for people.
pub const KEYS: &str = "\
A report's file (TOML):

  title = \"…\"             what it is about, in a sentence
  source = \"…\"            author, place and date
  machine = \"vm4\"         a machine's name, or a file beside the report
  workload = \"…\"          as 'fairlab run' takes it; files lie beside the report
  duration_ms = 12000     when to stop each run, 1 to an hour
  warmup_ms = 0           how long it settles first; without, as long as the machine takes
  runs = 30               the most runs of each kernel or side, 4 or more; they end once all claims are sure
  kernel = \"v6.12\"        of sides that name none; without, the newest release
  departs = \"…\"           where machine or workload are not the report's own
  notes = \"…\"             what is known of a result that falls short
  cannot = \"…\"            why nothing can be run

  [side.before]           what a claim compares beside kernels: each key changes one thing of what all have in common
  kernel, machine, workload, warmup = \"1s\", duration = \"5s\"
  base_slice_ns = 3000000                  a setting of the kernel
  \"group./pod.cpu.weight\" = 39             a key of the workload's file; in lists by name: \"workload.service.task.worker.count\"
  threads = 4                              a name in braces: workload = \"schbench -t {threads}\"

  [[claim]]
  text = \"…\"              what is claimed, in words
  metric = \"p99\"          as '--metric' takes it
  kernels = [\"v6.5\", \"v6.6\"]               or sides = [\"before\", \"after\"]
  published = [3068, 19]  a figure of each; of a ratio [1, RATIO]; { at_least = 1.5 }; \"rises\", \"falls\" or \"same\"
  unit = \"us\"             of these figures
  remembered = true       they are from memory
  commit = \"f4183717b370\"                  what a search between the kernels is to name
";

/// How a metric differs between two kernels, or two other sides.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicClaim {
    /// What is claimed, in words.
    pub text: String,
    /// The metric, as `--metric` takes it.
    pub metric: String,
    /// The two kernels; or the names of two sides of the report.
    #[serde(alias = "sides")]
    pub kernels: [String; 2],
    /// What was published of how they differ.
    pub published: PublishedDifference,
    /// The unit; empty where only the ratio was published.
    #[serde(default)]
    pub unit: String,
    /// The published figures are from memory.
    #[serde(default)]
    pub remembered: bool,
    /// The commit that makes the difference, if the report names one.
    pub commit: Option<String>,
}

/// How a metric was published to differ.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum PublishedDifference {
    /// A figure of each kernel, in one unit; where only a ratio was published, 1 and the ratio.
    Figures([f64; 2]),
    /// The second over the first is at least this; at most, where it is below 1.
    AtLeast {
        /// The ratio.
        at_least: f64,
    },
    /// Only in which direction.
    Direction(PublishedDirection),
}

/// Where a metric goes from the first kernel to the second.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PublishedDirection {
    /// Up.
    Rises,
    /// Down.
    Falls,
    /// Nowhere.
    Same,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportFile {
    title: String,
    source: String,
    machine: String,
    workload: String,
    kernel: Option<String>,
    #[serde(default)]
    side: toml::Table,
    duration_ms: u64,
    warmup_ms: Option<u64>,
    #[serde(default = "runs_max")]
    runs: u64,
    departs: Option<String>,
    notes: Option<String>,
    cannot: Option<String>,
    #[serde(default)]
    claim: Vec<PublicClaim>,
}

fn runs_max() -> u64 {
    RUNS_MAX
}

/// Fewer runs do not tell how runs scatter.
pub(super) const RUNS_MIN: u64 = 4;

/// The longest run, ms.
const DURATION_MAX_MS: u64 = 3_600_000;

/// Every report in a folder, by name.
///
/// # Errors
/// The folder cannot be read, has no report, or one of its files is none.
pub fn read_all(folder: &Path) -> Result<Vec<PublicReport>, LabError> {
    let none = |why: String| {
        let problem = format!("no reports in {}: {why}", ShownPath(folder));
        LabError::new(
            problem,
            "name a folder of report files with --reports, such as examples/reports of a clone",
        )
    };
    let entries = std::fs::read_dir(folder).map_err(|error| none(error.to_string()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| none(error.to_string()))?.path();
        if path.extension().is_some_and(|end| end == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(none("no file there ends in .toml".to_string()));
    }
    paths.iter().map(|path| read(path)).collect()
}

/// Reads a report's file. Files that it names lie beside it.
///
/// # Errors
/// It cannot be read or says something that a report does not.
pub fn read(path: &Path) -> Result<PublicReport, LabError> {
    let shown = ShownPath(path).to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| LabError::new(format!("report {shown}: {error}"), "check the path"))?;
    let name = path.file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned());
    let beside = path.parent().unwrap_or(Path::new(""));
    parse(&text, &name, beside)
        .map_err(|(problem, hint)| LabError::new(format!("report {shown}: {problem}"), hint))
}

/// What is wrong, and what to do.
type ReportFileError = (String, String);

fn wrong<T>(problem: impl Into<String>, hint: impl Into<String>) -> Result<T, ReportFileError> {
    Err((problem.into(), hint.into()))
}

fn parse(text: &str, name: &str, beside: &Path) -> Result<PublicReport, ReportFileError> {
    let file: ReportFile = toml::from_str(text).map_err(|error| {
        if let Some(other) = another_kind(text, "report") {
            return (other.problem, other.hint);
        }
        let at = line_at(text, error.span());
        let known = "'fairlab scenario keys' lists them; a claim's published is [FIGURE, FIGURE], { at_least = RATIO }, 'rises', 'falls' or 'same'";
        (format!("line {at}: {}", complaint(error.message())), known.to_string())
    })?;
    if !(1..=DURATION_MAX_MS).contains(&file.duration_ms) {
        return wrong(format!("duration_ms = {}", file.duration_ms), "give 1 to 3600000, an hour");
    }
    if let Some(warmup) = file.warmup_ms.filter(|&warmup| warmup > DURATION_MAX_MS) {
        return wrong(format!("warmup_ms = {warmup}"), "give 0 to 3600000, an hour");
    }
    if file.runs < RUNS_MIN {
        let problem = format!("{} runs do not tell how runs scatter", file.runs);
        return wrong(problem, format!("let runs be {RUNS_MIN} or more"));
    }
    if file.claim.is_empty() && file.cannot.is_none() {
        return wrong("it claims nothing", "add a [[claim]], or say in 'cannot' why it cannot be run");
    }
    let sides = file.side.iter().map(|(name, changes)| side_of(name, changes, beside));
    let sides = sides.collect::<Result<Vec<_>, _>>()?;
    let claims = file.claim.into_iter().map(|claim| checked(claim, &sides)).collect::<Result<Vec<_>, _>>()?;
    let Some(workload) = shlex::split(&file.workload).filter(|words| !words.is_empty()) else {
        return wrong(
            format!("workload '{}' is no command line", file.workload),
            "write it as 'fairlab run' takes it",
        );
    };
    Ok(PublicReport {
        name: name.to_string(),
        title: file.title,
        source: file.source,
        machine: found_beside(beside, &file.machine),
        workload: workload.iter().map(|word| found_beside(beside, word)).collect(),
        kernel: file.kernel,
        sides,
        duration: Ns::from_ms(file.duration_ms),
        warmup: file.warmup_ms.map(Ns::from_ms),
        runs: file.runs,
        departs: file.departs,
        notes: file.notes,
        cannot: file.cannot,
        claims,
    })
}

/// A side of the file: what it changes of what all have in common. Keys of the workload's file stand in quotation marks or as tables.
fn side_of(name: &str, changes: &toml::Value, beside: &Path) -> Result<SideWords, ReportFileError> {
    let Some(table) = changes.as_table() else {
        return wrong(
            format!("side {name} is no table"),
            format!("write [side.{name}], and below it what it changes"),
        );
    };
    let mut side = SideWords { name: name.to_string(), changes: Vec::new() };
    note_changes("", table, &mut side.changes);
    for (key, value) in &mut side.changes {
        match key.as_str() {
            "machine" => *value = found_beside(beside, value),
            "workload" => {
                let words = shlex::split(value).unwrap_or_default();
                let words = words.iter().map(|word| found_beside(beside, word)).collect::<Vec<_>>();
                *value = line_of(&words);
            }
            _ => {}
        }
    }
    Ok(side)
}

fn note_changes(above: &str, table: &toml::Table, changes: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let key = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        match value {
            toml::Value::Table(table) => note_changes(&key, table, changes),
            toml::Value::String(text) => changes.push((key, text.clone())),
            value => changes.push((key, value.to_string())),
        }
    }
}

/// The claim, where nothing is wrong with it; its commit as the log writes it.
fn checked(mut claim: PublicClaim, sides: &[SideWords]) -> Result<PublicClaim, ReportFileError> {
    let PublicClaim { text, kernels, published, commit, .. } = &mut claim;
    if let PublishedDifference::AtLeast { at_least } = published
        && (!at_least.is_finite() || *at_least <= 0.0 || *at_least == 1.0)
    {
        return wrong(format!("claim '{text}': at_least = {at_least}"), "give a positive ratio other than 1");
    }
    let are_sides = kernels.iter().filter(|name| sides.iter().any(|side| side.name == **name)).count();
    if are_sides == 1 {
        let problem = format!("claim '{text}': a kernel beside a side");
        return wrong(problem, "name two kernels, or two sides of the report");
    }
    if are_sides == 2 && commit.is_some() {
        return wrong(
            format!("claim '{text}': a commit between sides"),
            "leave 'commit' out: it lies between kernels",
        );
    }
    if let PublishedDifference::Figures(figures) = published {
        if figures.iter().any(|figure| !figure.is_finite() || *figure <= 0.0) {
            return wrong(
                format!("claim '{text}': published figures are positive numbers"),
                "where only a ratio was published, write [1, RATIO]",
            );
        }
        if figures[0] == figures[1] {
            return wrong(format!("claim '{text}': nothing differs"), "give two figures that differ");
        }
    }
    if kernels[0] == kernels[1] {
        return wrong(format!("claim '{text}': {} twice", kernels[0]), "name two kernels, or two sides");
    }
    // Of commits of a repository only the repository knows.
    if kernels.iter().all(|kernel| origin_of(kernel) == Origin::Modelled)
        && let Some(commit) = commit
    {
        let Some(known) = LOG.iter().find(|change| change.is_called(commit)) else {
            return wrong(
                format!("claim '{text}': commit {commit} is not in the log"),
                "'fairlab kernels log' lists its commits; leave 'commit' out, or name kernels src:REPO@COMMIT",
            );
        };
        *commit = known.id().to_string();
    }
    Ok(claim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
title = 'a'
source = 'b'
machine = 'vm4'
workload = 'hackbench -g 1'
duration_ms = 100

[[claim]]
text = 'falls'
metric = 'throughput'
kernels = ['v6.5', 'v6.6']
published = [1, 0.5]
";

    fn read_text(text: &str) -> Result<PublicReport, ReportFileError> {
        parse(text, "name", Path::new(""))
    }

    #[test]
    fn a_report_is_read() {
        let report = read_text(GOOD).expect("a report");
        assert_eq!((report.workload.len(), report.runs, report.claims.len()), (3, 30, 1));
        assert_eq!(report.claims[0].published, PublishedDifference::Figures([1.0, 0.5]));
        let falls = read_text(&GOOD.replace("[1, 0.5]", "'falls'")).expect("a report");
        assert_eq!(falls.claims[0].published, PublishedDifference::Direction(PublishedDirection::Falls));
    }

    #[test]
    fn a_commit_is_as_the_log_writes_it() {
        let of = |text: &str| read_text(text).expect("a report").claims[0].commit.clone();
        for written in ["147f3ef", "147f3efaa241", "eevdf", "147f3efaa24162cc8546229851c0a0935f0fa93d"] {
            let text = GOOD.replace("published =", &format!("commit = '{written}'\npublished ="));
            assert_eq!(of(&text).as_deref(), Some("147f3efaa241"));
        }
        let source = GOOD.replace("'v6.5', 'v6.6'", "'src:a@b', 'src:a@c'");
        let source = source.replace("published =", "commit = '0123456789ab'\npublished =");
        assert_eq!(of(&source).as_deref(), Some("0123456789ab"));
    }

    #[test]
    fn another_settling_time_goes_before_that_of_the_file() {
        let text = GOOD.replace("kernels = ['v6.5', 'v6.6']", "sides = ['a', 'b']");
        let text = text + "\n[side.a]\nwarmup = '1s'\n[side.b]\nwarmup = '2s'\nbase_slice_ns = 3000000\n";
        let report = read_text(&text).expect("a report").settling_for(Ns::from_ms(5));
        let changes = report.sides.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!((report.warmup, changes[1].as_str()), (Some(Ns::from_ms(5)), "b: base_slice_ns=3000000"));
        assert!(!changes[0].contains("warmup"), "{changes:?}");
    }

    /// What a file may hold is what the list of keys tells.
    #[test]
    fn all_keys_are_told() {
        let of_file = toml::from_str::<ReportFile>("nonsense = 1").expect_err("no such key").to_string();
        let of_claim = toml::from_str::<PublicClaim>("nonsense = 1").expect_err("no such key").to_string();
        let keys = [of_file, of_claim].map(|told| {
            let (_, known) = told.split_once("expected one of").expect("a list");
            known.split('`').skip(1).step_by(2).map(String::from).collect::<Vec<_>>()
        });
        let keys = keys.concat();
        assert!(keys.len() > 15, "{keys:?}");
        for key in keys {
            assert!(KEYS.contains(&key), "{key}");
        }
    }

    #[test]
    fn sides_say_what_differs() {
        let with_sides = GOOD
            .replace("kernels = ['v6.5', 'v6.6']", "sides = ['few', 'many']")
            .replace("[1, 0.5]", "'same'");
        let sides = "\n[side.few]\nworkload = 'pipe -l 3'\n[side.many]\ngroup.'/a.b'.cpu.weight = 3\n";
        let report = read_text(&format!("{with_sides}{sides}")).expect("a report");
        assert_eq!(report.claims[0].published, PublishedDifference::Direction(PublishedDirection::Same));
        let changes = report.sides.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(changes, ["few: workload='pipe -l 3'", "many: group./a.b.cpu.weight=3"]);
        for (text, problem) in [
            (with_sides.replace("'many'", "'v6.6'") + sides, "a kernel beside a side"),
            (with_sides.replace("'same'", "{ at_least = 1.0 }") + sides, "at_least = 1"),
            (
                with_sides.replace("[[claim]]", "[[claim]]\ncommit = 'eevdf'") + sides,
                "a commit between sides",
            ),
            (format!("side.few = 3\n{with_sides}"), "side few is no table"),
        ] {
            let (told, _) = read_text(&text).expect_err(problem);
            assert!(told.contains(problem), "{problem}: {told}");
        }
    }

    /// Every report of the examples can be run: its machine, its workload, its kernels and its metrics' names.
    #[test]
    fn the_examples_are_reports() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/reports");
        for report in read_all(&folder).expect("reports") {
            let name = &report.name;
            fairlab_lab::machines::find(&report.machine).unwrap_or_else(|error| panic!("{name}: {error}"));
            fairlab_lab::workloads::build(&report.workload).unwrap_or_else(|error| panic!("{name}: {error}"));
            for kernel in report.kernels() {
                fairlab_lab::Kernel::parse(&kernel).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }

    #[test]
    fn files_are_found_beside_the_report() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/reports");
        let one = std::fs::read_dir(&examples).expect("reports").flatten().next().expect("one").file_name();
        let name = format!("../reports/{}", one.to_string_lossy());
        let found = found_beside(&examples, &name);
        assert!(found.contains("examples/reports/"), "{found}");
        assert!(!found.contains("reports/../"), "{found}");
        assert_eq!(found_beside(&examples, "absent.toml"), "absent.toml");
    }

    #[test]
    fn what_is_no_report_is_refused() {
        for (from, to, said) in [
            ("title = 'a'", "titel = 'a'", "line 1"),
            ("duration_ms = 100", "duration_ms = 0", "duration_ms = 0"),
            ("duration_ms = 100", "duration_ms = 100\nwarmup_ms = 3600001", "warmup_ms = 3600001"),
            ("duration_ms = 100", "duration_ms = 100\nruns = 1", "1 runs"),
            ("'hackbench -g 1'", "''", "no command line"),
            ("'hackbench -g 1'", "\"hackbench 'g\"", "no command line"),
            ("published = [1, 0.5]", "published = [1, 0]", "positive"),
            ("published = [1, 0.5]", "published = [1, nan]", "positive"),
            ("published = [1, 0.5]", "published = [2, 2]", "nothing differs"),
            ("published = [1, 0.5]", "published = [1]", "line 11"),
            ("published = [1, 0.5]", "published = 'sinks'", "line 11"),
            ("'v6.6']", "'v6.5']", "twice"),
            ("metric = 'throughput'\n", "", "the key 'metric' is missing"),
            ("published =", "commit = '0123456789ab'\npublished =", "commit 0123456789ab is not in the log"),
            ("published =", "commit = 'feedback'\npublished =", "commit feedback is not in the log"),
        ] {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD, "{from}");
            let (problem, hint) = read_text(&text).expect_err(to);
            assert!(problem.contains(said) && !hint.is_empty(), "{to}: {problem}");
        }
        let claimless = GOOD.split("[[claim]]").next().expect("a head");
        assert!(read_text(claimless).expect_err("no claim").0.contains("claims nothing"));
    }
}
