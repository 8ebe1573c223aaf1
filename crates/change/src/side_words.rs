//! Sides in words: what each changes of what all have in common.
//!
//! `few: group./pod.cpu.weight=39 workload="schbench -t 4"`. A change is a key and a value:
//!
//! * `kernel`, `machine`, `workload`, `warmup`, `duration`: what the options of these names say;
//! * a name that stands in braces in the kernel, the machine or the workload (`schbench -t {threads}`);
//! * a key with dots: of the workload's file;
//! * any other: a setting of the kernel (`base_slice_ns`).
//!
//! Must not know: what is done with sides.

use fairlab_event::Ns;
use fairlab_files::quantities::{parse_duration, parse_warmup};
use fairlab_lab::kernel::newest_release;
use fairlab_lab::shell::quoted;
use fairlab_lab::{Experiment, ExperimentSide, Kernel, LabError, RunSetting, SettingWords};

/// What one side changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideWords {
    /// What it is called.
    pub name: String,
    /// Keys and values, in turn.
    pub changes: Vec<(String, String)>,
}

/// As [`SideWords::parse`] reads it.
impl std::fmt::Display for SideWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:", self.name)?;
        self.changes.iter().try_for_each(|(key, value)| write!(f, " {key}={}", quoted(value)))
    }
}

/// More values of one key than these are a slip of the pen.
const VALUES_MAX: usize = 64;

impl SideWords {
    /// A side from its name and its changes, or from changes alone, which are its name then.
    ///
    /// # Errors
    /// A word is no change.
    pub fn parse(text: &str) -> Result<SideWords, LabError> {
        let named = text.split_once(':').filter(|(name, rest)| {
            !name.contains('=') && (rest.is_empty() || rest.starts_with(char::is_whitespace))
        });
        let (name, changes) = named.unwrap_or((text, text));
        let wrong = |problem: String| LabError::new(format!("side '{text}': {problem}"), FORM);
        let words =
            shlex::split(changes).ok_or_else(|| wrong("a quotation mark is not closed".to_string()))?;
        let change = |word: &String| match word.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.to_string(), value.to_string())),
            _ => Err(wrong(format!("'{word}' is no KEY=VALUE"))),
        };
        let name = name.trim();
        if name.is_empty() {
            return Err(wrong("it has no name".to_string()));
        }
        Ok(SideWords { name: name.to_string(), changes: words.iter().map(change).collect::<Result<_, _>>()? })
    }

    /// The sides that are asked for, one by one or by the values of one key.
    ///
    /// # Errors
    /// As of [`parse`](Self::parse) and [`varied`](Self::varied).
    pub fn asked(sides: &[String], vary: Option<&str>) -> Result<Vec<SideWords>, LabError> {
        vary.map_or_else(|| sides.iter().map(|side| SideWords::parse(side)).collect(), SideWords::varied)
    }

    /// Sides that differ in one key's value: `KEY=39,100`. Each is called `KEY=VALUE`.
    ///
    /// # Errors
    /// There is no key, or not two values.
    pub fn varied(text: &str) -> Result<Vec<SideWords>, LabError> {
        let (key, values) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
            LabError::new(
                format!("--vary '{text}' is no KEY=VALUE,VALUE"),
                "such as group./pod.cpu.weight=39,100",
            )
        })?;
        let values = values.split(',').collect::<Vec<_>>();
        if !(2..=VALUES_MAX).contains(&values.len()) {
            return Err(LabError::new(
                format!("--vary {key}: {} values are given", values.len()),
                format!("give 2 to {VALUES_MAX}, with commas between"),
            ));
        }
        let side = |value: &&str| SideWords {
            name: format!("{key}={value}"),
            changes: vec![(key.to_string(), (*value).to_string())],
        };
        Ok(values.iter().map(side).collect())
    }

    /// The two sides with those between them that differ from the first in one thing alone: what each difference makes by itself.
    ///
    /// # Errors
    /// There are not two sides, or they differ in one thing.
    pub fn taken_apart(sides: Vec<SideWords>) -> Result<Vec<SideWords>, LabError> {
        let [before, after] = <[SideWords; 2]>::try_from(sides).map_err(|sides| {
            let problem = format!("--attribute takes two sides, and these are {}", sides.len());
            LabError::new(problem, "leave the others out")
        })?;
        let is_new = |change: &&(String, String)| !before.changes.contains(change);
        let with = |change: &(String, String)| SideWords {
            name: format!("only {}={}", change.0, change.1),
            changes: before.without(&change.0).chain([change.clone()]).collect(),
        };
        let is_gone = |change: &&(String, String)| !after.changes.iter().any(|(key, _)| *key == change.0);
        let lacking = |change: &(String, String)| SideWords {
            name: format!("only without {}", change.0),
            changes: before.without(&change.0).collect(),
        };
        let with = after.changes.iter().filter(is_new).map(with);
        let between = with.chain(before.changes.iter().filter(is_gone).map(lacking)).collect::<Vec<_>>();
        if between.len() < 2 {
            let problem = format!("sides {} and {} differ in one thing", before.name, after.name);
            return Err(LabError::new(problem, "leave --attribute out: that makes the difference"));
        }
        Ok([vec![before], between, vec![after]].concat())
    }

    /// Its changes but that of a key.
    fn without(&self, key: &str) -> impl Iterator<Item = (String, String)> {
        self.changes.iter().filter(move |(changed, _)| changed != key).cloned()
    }

    /// The side: what all have in common, with its changes. `kernel`: the common one's name.
    ///
    /// # Errors
    /// A change means nothing here, or the side cannot run.
    pub fn side(&self, kernel: &str, asked: &SettingWords<'_>) -> Result<ExperimentSide, LabError> {
        let told =
            |error: LabError| LabError::new(format!("side {}: {}", self.name, error.problem), error.hint);
        let words = CommonWords {
            kernel: kernel.to_string(),
            machine: asked.machine.to_string(),
            workload: asked.workload.to_vec(),
            warmup: asked.warmup,
            duration: asked.duration,
        };
        let words = self.changes.iter().try_fold(words, CommonWords::change).map_err(told)?;
        words.side(self.name.clone(), asked).map_err(told)
    }
}

/// How sides are given.
const FORM: &str = "give 'NAME: KEY=VALUE …'; keys are kernel, machine, workload, warmup, duration, a {NAME} of these, one of the \
                    workload's file, or a setting of the kernel";

/// What sides have in common, and each may change.
struct CommonWords {
    kernel: String,
    machine: String,
    workload: Vec<String>,
    warmup: Option<Ns>,
    duration: Option<Ns>,
}

impl CommonWords {
    fn change(mut self, (key, value): &(String, String)) -> Result<CommonWords, LabError> {
        let wrong = |problem: String| LabError::new(format!("{key}: {problem}"), FORM);
        match key.as_str() {
            "kernel" => self.kernel.clone_from(value),
            "machine" => self.machine.clone_from(value),
            "workload" => {
                let words = shlex::split(value);
                self.workload = words.ok_or_else(|| wrong("a quotation mark is not closed".to_string()))?;
            }
            "warmup" => self.warmup = Some(parse_warmup(value).map_err(wrong)?),
            "duration" => self.duration = Some(parse_duration(value).map_err(wrong)?),
            _ if self.fill(key, value) => {}
            key if key.contains('.') => {
                if !self.workload.first().is_some_and(|name| name.ends_with(".toml")) {
                    return Err(wrong("the workload is no file, and has no such key".to_string()));
                }
                self.workload.extend(["--set".to_string(), format!("{key}={value}")]);
            }
            _ => self.kernel += &format!(",{key}={value}"),
        }
        Ok(self)
    }

    /// Puts a value where its name stands in braces. Returns whether it does anywhere.
    fn fill(&mut self, key: &str, value: &str) -> bool {
        let name = format!("{{{key}}}");
        let mut places = [&mut self.kernel, &mut self.machine].into_iter().chain(&mut self.workload);
        places.by_ref().fold(false, |found, place| {
            let is_here = place.contains(&name);
            if is_here {
                *place = place.replace(&name, value);
            }
            found | is_here
        })
    }

    fn side(self, name: String, asked: &SettingWords<'_>) -> Result<ExperimentSide, LabError> {
        let kernel = Kernel::parse(&self.kernel)?;
        let asked = SettingWords {
            machine: &self.machine,
            workload: &self.workload,
            warmup: self.warmup,
            duration: self.duration,
            ..*asked
        };
        let setting = RunSetting::of_kernels(std::slice::from_ref(&kernel), &asked)?;
        Ok(ExperimentSide::of(name, kernel, setting))
    }
}

/// The experiment of kernels; or of sides in words, the first of which is the baseline, and which have one kernel in common: by default the
/// newest release.
///
/// # Errors
/// A kernel or a side cannot run, there is one side, two are called or made alike, or some run in virtual time and some in real time.
pub fn experiment_of(
    sides: &[SideWords],
    kernels: &[String],
    asked: &SettingWords<'_>,
    seeds: u64,
) -> Result<Experiment, LabError> {
    let kernel = match (sides, kernels) {
        ([], kernels) => return Experiment::of(kernels, asked, seeds),
        ([_], _) => {
            let hint = "give --side twice; the first is the baseline";
            return Err(LabError::new("a comparison needs two sides", hint));
        }
        (_, [_, _, ..]) => {
            let problem = "--kernel is given more than once beside --side or --vary";
            let hint = "name the kernel that sides have in common, and kernel=K in a side";
            return Err(LabError::new(problem, hint));
        }
        (_, [kernel]) => kernel.clone(),
        (_, []) => newest_release(),
    };
    let made = sides.iter().map(|side| side.side(&kernel, asked)).collect::<Result<Vec<_>, _>>()?;
    let experiment = Experiment::of_sides(made, asked, seeds)?;
    let alike = |one: &ExperimentSide, other: &ExperimentSide| {
        one.kernel.name() == other.kernel.name() && one.is_in_setting_of(other)
    };
    for (place, side) in experiment.sides.iter().enumerate() {
        if let Some(same) = experiment.sides[..place].iter().find(|one| alike(one, side)) {
            let problem = format!("sides {} and {} do not differ", same.name, side.name);
            return Err(LabError::new(problem, "let each change something"));
        }
    }
    let in_virtual_time = |side: &ExperimentSide| side.kernel.has_virtual_time();
    if experiment.sides.iter().any(in_virtual_time) && !experiment.sides.iter().all(in_virtual_time) {
        return Err(LabError::new(
            "some sides run in virtual time and some in real time",
            "compare sides of one kind",
        ));
    }
    Ok(experiment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(String::from).collect()
    }

    fn made(sides: &[&str], workload: &str) -> Result<Experiment, LabError> {
        let sides = sides.iter().map(|side| SideWords::parse(side)).collect::<Result<Vec<_>, _>>()?;
        let workload = words(workload);
        experiment_of(
            &sides,
            &["v6.6".to_string()],
            &SettingWords { workload: &workload, ..SettingWords::default() },
            2,
        )
    }

    #[test]
    fn a_side_changes_what_it_says_and_nothing_else() {
        let sides = [
            "before: kernel=v6.5",
            "threads=4 machine=layout:1x1x2x1",
            "slow: base_slice_ns=6000000 workload='pipe -l {threads}' threads=7",
        ];
        let experiment = made(&sides, "schbench -m 1 -t {threads}");
        assert!(
            experiment.is_err_and(|error| error.problem.starts_with("side before: ")),
            "its braces are not filled"
        );
        let sides = ["before: kernel=v6.5 threads=1", sides[1], sides[2]];
        let experiment = made(&sides, "schbench -m 1 -t {threads}").expect("an experiment");
        let told = experiment.sides.iter().map(|side| {
            (side.name.as_str(), side.kernel.name(), side.machine.name.as_str(), side.workload.join(" "))
        });
        let expected = [
            ("before", "v6.5", "laptop8", "schbench -m 1 -t 1".to_string()),
            (sides[1], "v6.6", "layout:1x1x2x1", "schbench -m 1 -t 4".to_string()),
            ("slow", "v6.6,base_slice_ns=6000000", "laptop8", "pipe -l 7".to_string()),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let runs = experiment.specs().into_iter().map(|spec| (spec.side, spec.seed)).collect::<Vec<_>>();
        assert_eq!((runs.len(), &runs[3]), (6, &("before".to_string(), 2)));
    }

    #[test]
    fn sides_that_mean_nothing_are_refused() {
        for (sides, problem) in [
            (&["a: kernel=v6.5", "a: kernel=v6.6"][..], "side a is given twice"),
            (&["a: kernel=v6.6", "b:"], "sides a and b do not differ"),
            (&["a: nonsense=3", "b:"], "side a: "),
            (&["a: group./x.cpu.weight=3", "b:"], "side a: group./x.cpu.weight: the workload is no file"),
            (&["a: v6.6", "b:"], "side 'a: v6.6': 'v6.6' is no KEY=VALUE"),
            (&["a: duration=long", "b:"], "side a: duration: "),
            (&[": kernel=v6.5", "b:"], "it has no name"),
        ] {
            let error = made(sides, "pipe -l 3").expect_err(problem);
            assert!(error.problem.contains(problem), "{problem}: {error}");
        }
    }

    #[test]
    fn each_difference_of_two_sides_is_tried_alone() {
        let sides = |texts: &[&str]| {
            let sides = texts.iter().map(|text| SideWords::parse(text).expect("a side")).collect();
            SideWords::taken_apart(sides)
        };
        let between =
            sides(&["before: kernel=v6.5 n=4 x=1", "after: kernel=v6.6 n=4 machine=vm4"]).expect("sides");
        let told = between.iter().map(ToString::to_string).collect::<Vec<_>>();
        let expected = [
            "before: kernel=v6.5 n=4 x=1",
            "only kernel=v6.6: n=4 x=1 kernel=v6.6",
            "only machine=vm4: kernel=v6.5 n=4 x=1 machine=vm4",
            "only without x: kernel=v6.5 n=4",
            "after: kernel=v6.6 n=4 machine=vm4",
        ];
        assert_eq!(told, expected);
        assert!(sides(&["a: n=4 x=1", "b: n=5 x=1"]).is_err(), "one difference");
        assert!(sides(&["a: n=4", "b: n=5 x=2", "c: n=3"]).is_err(), "three sides");
    }

    #[test]
    fn values_of_one_key_are_sides() {
        let sides = SideWords::varied("group./pod.cpu.weight=39,100").expect("sides");
        let names = sides.iter().map(|side| side.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names, ["group./pod.cpu.weight=39", "group./pod.cpu.weight=100"]);
        assert_eq!(sides[1].changes, [("group./pod.cpu.weight".to_string(), "100".to_string())]);
        for wrong in ["x", "=1,2", "x=1"] {
            assert!(SideWords::varied(wrong).is_err(), "{wrong}");
        }
    }
}
