//! A case of the catalogue: a workload on a machine, and the metrics that it is watched for.
//!
//! Must not know: how runs are made.

use std::path::{Path, PathBuf};

use fairlab_analysis::statistics::MARGIN;
use fairlab_event::{Ns, ShownPath};
use fairlab_files::{LabError, another_kind, complaint, found_beside, line_at};
use fairlab_lab::names::{MetricName, ShownMetrics};
use fairlab_lab::{RunSetting, SettingWords, machines, workloads};
use serde::Deserialize;

/// A workload on a machine, and what is watched of it.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchCase {
    /// The file's name without its end.
    pub name: String,
    /// What it looks at, in a sentence.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// A machine's name, or a file's path.
    pub machine: String,
    /// A workload's command line; files by their paths.
    pub workload: Vec<String>,
    /// When to stop each run.
    pub duration: Ns,
    /// How long each run settles before anything is measured; `None`: as long as the machine needs.
    pub warmup: Option<Ns>,
    /// When to stop each run of the quick form, which does not settle; `None`: as the others.
    pub quick: Option<Ns>,
    /// The metrics, by their whole names.
    pub metrics: Vec<String>,
    /// The share below which a difference is of no interest.
    pub margin: f64,
}

/// Cases, and what in the catalogue is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    /// The cases by name.
    pub cases: Vec<WatchCase>,
    /// What was left out.
    pub skipped: Vec<SkippedCase>,
}

/// A file that is no case, or a case that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SkippedCase {
    /// The file, or the case.
    pub case: String,
    /// Why it was left out, and what to do.
    pub why: String,
}

/// All keys of a case's file, for people.
pub const CASE_KEYS: &str = "\
A case of a catalogue (TOML):

  title = \"…\"             what it looks at, in a sentence
  source = \"…\"            where it comes from
  machine = \"vm4\"         a machine's name, or a file beside the case
  workload = \"…\"          as 'fairlab run' takes it; files lie beside the case
  duration_ms = 1000      when to stop each run, 1 to an hour
  warmup_ms = 0           how long it settles first; without, as long as the machine takes
  quick_ms = 50           when to stop each run with '--quick', which does not settle; without, as the others
  metrics = [\"p99\"]       what is watched, as '--metric' takes it
  margin = 0.01           differences below this share are of no interest; without, 0.01
";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    title: String,
    source: String,
    machine: String,
    workload: String,
    duration_ms: u64,
    warmup_ms: Option<u64>,
    quick_ms: Option<u64>,
    metrics: Vec<String>,
    margin: Option<f64>,
}

/// The longest run, ms.
const DURATION_MAX_MS: u64 = 3_600_000;

/// What is wrong, and what to do.
type CaseFileError = (String, String);

impl Catalogue {
    /// The cases of files, and of all files of folders. What is no case is left out, and said.
    ///
    /// # Errors
    /// A path cannot be read, or there is no case at all.
    pub fn read(paths: &[PathBuf]) -> Result<Catalogue, LabError> {
        let mut catalogue = Catalogue::default();
        for path in paths {
            for file in files_of(path)? {
                catalogue.add(&file);
            }
        }
        if !catalogue.cases.is_empty() {
            return Ok(catalogue);
        }
        let problem = match catalogue.skipped.first() {
            Some(SkippedCase { case, why }) => format!("the catalogue has no case; {case}: {why}"),
            None => "the catalogue has no case".to_string(),
        };
        Err(LabError::new(problem, "name folders or files of cases, such as examples/catalogue of a clone"))
    }

    fn add(&mut self, file: &Path) {
        let case = match read(file) {
            Ok(case) => case,
            Err(error) => return self.skip(ShownPath(file).to_string(), &error),
        };
        if self.cases.iter().any(|known| known.name == case.name) {
            let error = LabError::new(format!("a case is called {} already", case.name), "rename the file");
            return self.skip(ShownPath(file).to_string(), &error);
        }
        self.cases.push(case);
    }

    /// Leaves something out.
    pub fn skip(&mut self, case: String, error: &LabError) {
        self.skipped.push(SkippedCase { case, why: error.to_string() });
    }
}

fn files_of(path: &Path) -> Result<Vec<PathBuf>, LabError> {
    let failed = |error: std::io::Error| {
        let problem = format!("{}: {error}", ShownPath(path));
        LabError::new(problem, "name a folder or a file of cases, such as examples/catalogue of a clone")
    };
    if path.metadata().map_err(failed)?.is_file() {
        return Ok(vec![path.to_path_buf()]);
    }
    let entries = std::fs::read_dir(path).map_err(failed)?;
    let mut files = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<WatchCase, LabError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| LabError::new(error.to_string(), "check the file"))?;
    let name = path.file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned());
    parse(&text, &name, path.parent().unwrap_or(Path::new("")))
        .map_err(|(problem, hint)| LabError::new(problem, hint))
}

fn wrong<T>(problem: impl Into<String>, hint: impl Into<String>) -> Result<T, CaseFileError> {
    Err((problem.into(), hint.into()))
}

fn parse(text: &str, name: &str, beside: &Path) -> Result<WatchCase, CaseFileError> {
    let file: CaseFile = toml::from_str(text).map_err(|error| {
        if let Some(other) = another_kind(text, "case") {
            return (other.problem, other.hint);
        }
        let at = line_at(text, error.span());
        (
            format!("line {at}: {}", complaint(error.message())),
            "'fairlab watch keys' lists the keys".to_string(),
        )
    })?;
    if !(1..=DURATION_MAX_MS).contains(&file.duration_ms) {
        return wrong(format!("duration_ms = {}", file.duration_ms), "give 1 to 3600000, an hour");
    }
    if let Some(warmup) = file.warmup_ms.filter(|&warmup| warmup > DURATION_MAX_MS) {
        return wrong(format!("warmup_ms = {warmup}"), "give 0 to 3600000, an hour");
    }
    if let Some(quick) = file.quick_ms.filter(|quick| !(1..=file.duration_ms).contains(quick)) {
        return wrong(format!("quick_ms = {quick}"), "give 1 to duration_ms");
    }
    let margin = file.margin.unwrap_or(MARGIN);
    if !(margin > 0.0 && margin < 1.0) {
        return wrong(format!("margin = {margin}"), "give a share above 0 and below 1");
    }
    if file.metrics.is_empty() {
        return wrong("it watches no metric", "name one in 'metrics'");
    }
    let Some(workload) = shlex::split(&file.workload).filter(|words| !words.is_empty()) else {
        let problem = format!("workload '{}' is no command line", file.workload);
        return wrong(problem, "write it as 'fairlab run' takes it");
    };
    let metrics = file.metrics.iter().map(|metric| MetricName::parse(metric)).collect::<Result<Vec<_>, _>>();
    let metrics = metrics.map_err(|error| (error.problem, error.hint))?;
    Ok(WatchCase {
        name: name.to_string(),
        title: file.title,
        source: file.source,
        machine: found_beside(beside, &file.machine),
        workload: workload.iter().map(|word| found_beside(beside, word)).collect(),
        duration: Ns::from_ms(file.duration_ms),
        warmup: file.warmup_ms.map(Ns::from_ms),
        quick: file.quick_ms.map(Ns::from_ms),
        metrics: metrics.into_iter().map(|metric| metric.name).collect(),
        margin,
    })
}

impl WatchCase {
    /// The quick form, where the case has one.
    #[must_use]
    pub fn quickly(self) -> WatchCase {
        match self.quick {
            Some(quick) => WatchCase { duration: quick, warmup: Some(Ns::ZERO), ..self },
            None => self,
        }
    }

    /// How each of its runs is made.
    ///
    /// # Errors
    /// There is no such machine or workload.
    pub fn setting(&self, first_seed: u64) -> Result<RunSetting, LabError> {
        machines::find(&self.machine)?;
        workloads::build(&self.workload)?;
        let metrics =
            self.metrics.iter().map(|metric| MetricName::parse(metric)).collect::<Result<Vec<_>, _>>()?;
        let by_name = ShownMetrics::default().wanted(&metrics);
        RunSetting::of(&SettingWords {
            machine: &self.machine,
            workload: &self.workload,
            warmup: self.warmup,
            duration: Some(self.duration),
            first_seed,
            by_name: Some(&by_name),
            ..SettingWords::default()
        })
    }
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
metrics = ['p99', 'throughput']
";

    fn read_text(text: &str) -> Result<WatchCase, CaseFileError> {
        parse(text, "name", Path::new(""))
    }

    #[test]
    fn a_case_is_read() {
        let case = read_text(GOOD).expect("a case");
        assert_eq!((case.workload.len(), case.margin, case.duration), (3, 0.01, Ns::from_ms(100)));
        assert_eq!(case.metrics, ["wakeup_latency_ns_p99", "throughput"]);
        assert_eq!(case.setting(1).expect("a setting").duration, Ns::from_ms(100));
        let quick = read_text(&GOOD.replace("metrics", "quick_ms = 5\nmetrics")).expect("a case").quickly();
        assert_eq!((quick.duration, quick.warmup), (Ns::from_ms(5), Some(Ns::ZERO)));
        assert_eq!(case.clone().quickly(), case);
    }

    #[test]
    fn what_is_no_case_is_refused_in_one_line() {
        for (from, to, fragment) in [
            ("title = 'a'\n", "", "title"),
            ("source", "sauce", "line 2"),
            ("duration_ms = 100", "duration_ms = 0", "duration_ms = 0"),
            ("['p99', 'throughput']", "[]", "no metric"),
            ("['p99', 'throughput']", "['']", "is no metric"),
            ("'hackbench -g 1'", "''", "no command line"),
            ("metrics", "margin = 1.5\nmetrics", "margin = 1.5"),
            ("metrics", "quick_ms = 101\nmetrics", "quick_ms = 101"),
        ] {
            let (problem, hint) = read_text(&GOOD.replace(from, to)).expect_err(to);
            assert!(problem.contains(fragment) && !problem.contains('\n') && !hint.is_empty(), "{problem}");
        }
    }
}
