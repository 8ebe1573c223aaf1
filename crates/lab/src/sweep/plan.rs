//! What a sweep's file asks for, and its cells by number.
//!
//! Must not know: how cells are run.

use std::collections::BTreeMap;
use std::path::Path;

use fairlab_analysis::by_name::NamesWanted;
use fairlab_event::Ns;
use fairlab_files::{another_kind, complaint, line_at};
use fairlab_sim::Machine;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::folder::counted_in;
use crate::kernel::KernelNeed;
use crate::{Kernel, LabError, RunSpec, machines, workloads};

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepFile {
    kernels: Vec<String>,
    machines: Vec<String>,
    workloads: Vec<CommandLine>,
    #[serde(default)]
    options: BTreeMap<String, Vec<SweepScalar>>,
    seeds: SeedList,
    #[serde(default = "one")]
    first_seed: u64,
    duration_ms: u64,
    /// How long each run settles; without, as long as the machine takes.
    warmup_ms: Option<u64>,
    /// Nothing is left to chance.
    #[serde(default)]
    exact: bool,
}

fn one() -> u64 {
    1
}

/// A command line: a line to be split at spaces, or its words.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum CommandLine {
    Line(String),
    Words(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum SweepScalar {
    Text(String),
    Whole(i64),
    Fraction(f64),
}

impl SweepScalar {
    fn text(&self) -> String {
        match self {
            SweepScalar::Text(text) => text.clone(),
            SweepScalar::Whole(number) => number.to_string(),
            SweepScalar::Fraction(number) => number.to_string(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum SeedList {
    Count(u64),
    List(Vec<u64>),
}

/// A sweep, checked: every kernel, machine and command line is there.
#[derive(Clone, Debug)]
pub struct SweepPlan {
    machines: Vec<Machine>,
    /// Kernel and command line for each combination of options, by kernel, workload, then options.
    kernels: Vec<Vec<Kernel>>,
    workloads: Vec<Vec<Vec<String>>>,
    /// Names of options, each with its values.
    options: Vec<(String, Vec<String>)>,
    seeds: Vec<u64>,
    warmup: Option<Ns>,
    duration: Ns,
    /// Which numbers by name each run measures.
    by_name: NamesWanted,
}

/// One run of a sweep.
#[derive(Clone, Debug)]
pub struct SweepPlanCell {
    /// Its number.
    pub number: usize,
    /// The number of its group: cells that differ in their seed only.
    pub group: usize,
    /// Each option's value, in the order of the plan's.
    pub options: Vec<String>,
    /// What is run.
    pub spec: RunSpec,
}

/// What there may be.
const KEYS: &str = "a sweep has kernels, machines, workloads, seeds, duration_ms, and may have [options], first_seed, warmup_ms and exact";

/// A year.
const DURATION_MAX_MS: u64 = 365 * 86_400_000;

/// No machine takes longer to settle than an hour, ms.
const WARMUP_MS_MAX: u64 = 3_600_000;

/// More cells than these are a slip of the pen.
const CELLS_MAX: usize = 10_000_000;

/// More groups than these: each holds its kernel and its command line.
const GROUPS_MAX: usize = 100_000;

impl SweepPlan {
    /// Reads a sweep's file.
    ///
    /// # Errors
    /// It cannot be read, or asks for something that there is not.
    pub fn read(path: &Path) -> Result<SweepPlan, LabError> {
        let at = |problem: String| format!("{}: {problem}", path.display());
        let text = std::fs::read_to_string(path)
            .map_err(|error| LabError::new(at(error.to_string()), "give a sweep's TOML file"))?;
        SweepPlan::parse(&text).map_err(|error| LabError::new(at(error.problem), error.hint))
    }

    /// Reads a sweep's text.
    ///
    /// # Errors
    /// It is no TOML, or asks for something that there is not.
    pub fn parse(text: &str) -> Result<SweepPlan, LabError> {
        let file = toml::from_str::<SweepFile>(text).map_err(|error| {
            let line = line_at(text, error.span());
            let wrong = || LabError::new(format!("line {line}: {}", complaint(error.message())), KEYS);
            another_kind(text, "sweep").unwrap_or_else(wrong)
        })?;
        SweepPlan::of_file(&file)
    }

    /// Reads a sweep from JSON with the keys of its file.
    ///
    /// # Errors
    /// It is no sweep, or asks for something that there is not.
    pub fn of_json(text: &str) -> Result<SweepPlan, LabError> {
        let file = serde_json::from_str::<SweepFile>(text).map_err(|error| {
            let message = error.to_string();
            // There is one line, and the user has not written it.
            let message = message.split(" at line ").next().unwrap_or_default();
            LabError::new(message, KEYS)
        })?;
        SweepPlan::of_file(&file)
    }

    fn of_file(file: &SweepFile) -> Result<SweepPlan, LabError> {
        let texts = |values: &[SweepScalar]| values.iter().map(SweepScalar::text).collect::<Vec<_>>();
        let options =
            file.options.iter().map(|(name, values)| (name.clone(), texts(values))).collect::<Vec<_>>();
        let lines = file.workloads.iter().map(|words| match words {
            CommandLine::Line(line) => line.split_whitespace().map(String::from).collect::<Vec<_>>(),
            CommandLine::Words(words) => words.clone(),
        });
        let lines = lines.collect::<Vec<_>>();
        check_options(&options, file.kernels.iter().chain(lines.iter().flatten()))?;
        if !(1..=DURATION_MAX_MS).contains(&file.duration_ms) {
            return Err(LabError::new(
                "duration_ms lies between 1 and a year",
                "give the virtual time of each run",
            ));
        }
        let seeds = match &file.seeds {
            SeedList::Count(count) => {
                (0..*count).take(CELLS_MAX + 1).map(|offset| file.first_seed.wrapping_add(offset)).collect()
            }
            SeedList::List(seeds) => seeds.clone(),
        };
        // Before anything is built for each of them.
        check_numbers(
            [file.kernels.len(), file.machines.len(), lines.len(), combinations(&options)],
            &seeds,
        )?;
        let plan = SweepPlan {
            machines: file.machines.iter().map(|name| find(name, file.exact)).collect::<Result<_, _>>()?,
            kernels: file.kernels.iter().map(|name| kernels(name, &options)).collect::<Result<_, _>>()?,
            workloads: lines.iter().map(|line| commands(line, &options)).collect::<Result<_, _>>()?,
            options,
            seeds,
            warmup: file.warmup_ms.map(|ms| Ns(ms.min(WARMUP_MS_MAX) * 1_000_000)),
            duration: Ns::from_ms(file.duration_ms),
            by_name: NamesWanted::default(),
        };
        plan.check()?;
        Ok(plan)
    }

    /// The sweep with nothing left to chance.
    #[must_use]
    pub fn exact(mut self) -> SweepPlan {
        self.machines = self.machines.into_iter().map(Machine::exact).collect();
        self
    }

    /// The sweep with another time to settle.
    #[must_use]
    pub fn with_warmup(self, warmup: Ns) -> SweepPlan {
        SweepPlan { warmup: Some(warmup), ..self }
    }

    /// The sweep with numbers by name.
    #[must_use]
    pub fn with_names(self, by_name: NamesWanted) -> SweepPlan {
        SweepPlan { by_name, ..self }
    }

    fn check(&self) -> Result<(), LabError> {
        let empty = [
            ("kernels", self.kernels.is_empty()),
            ("machines", self.machines.is_empty()),
            ("workloads", self.workloads.is_empty()),
            ("seeds", self.seeds.is_empty()),
        ];
        if let Some((name, _)) = empty.iter().find(|(_, empty)| *empty) {
            return Err(LabError::new(
                format!("a sweep without {name} has no cells"),
                format!("give {name}"),
            ));
        }
        Ok(())
    }

    fn combinations(&self) -> usize {
        combinations(&self.options)
    }

    /// Every kernel with every machine on which it runs.
    pub fn kernels(&self) -> impl Iterator<Item = (&Kernel, &Machine)> {
        let kernels = self.kernels.iter().flatten();
        kernels.flat_map(|kernel| self.machines.iter().map(move |machine| (kernel, machine)))
    }

    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.groups() * self.seeds.len()
    }

    /// How many groups there are: cells that differ in more than their seed.
    pub fn groups(&self) -> usize {
        self.kernels.len() * self.machines.len() * self.workloads.len() * self.combinations()
    }

    /// How many seeds each group runs with.
    pub fn seeds(&self) -> usize {
        self.seeds.len()
    }

    /// The options' names.
    pub fn option_names(&self) -> impl Iterator<Item = &str> {
        self.options.iter().map(|(name, _)| name.as_str())
    }

    /// A cell; numbers start at 0, seeds vary fastest, then options, workloads, machines, kernels.
    pub fn cell(&self, number: usize) -> SweepPlanCell {
        let (group, seed) = (number / self.seeds.len(), number % self.seeds.len());
        let (rest, combination) = (group / self.combinations(), group % self.combinations());
        let (rest, workload) = (rest / self.workloads.len(), rest % self.workloads.len());
        let (kernel, machine) = (rest / self.machines.len(), rest % self.machines.len());
        SweepPlanCell {
            number,
            group,
            options: values(&self.options, combination),
            spec: RunSpec {
                warmup: self.warmup,
                by_name: self.by_name.clone(),
                ..RunSpec::new(
                    self.kernels[kernel][combination].clone(),
                    self.machines[machine].clone(),
                    self.workloads[workload][combination].clone(),
                    self.seeds[seed],
                    self.duration,
                )
            },
        }
    }

    /// The number of a cell's machine.
    pub(super) fn machine_of(&self, number: usize) -> usize {
        number / self.seeds.len() / self.combinations() / self.workloads.len() % self.machines.len()
    }

    /// All that decides the results; two plans for which this is equal are one sweep.
    pub fn to_json(&self) -> Value {
        let mut spec = json!({
            "schema": "fairlab/sweep-spec/1",
            "fairlab": env!("CARGO_PKG_VERSION"),
            "kernels": self.kernels.iter().map(|kernels| kernels.iter().map(Kernel::name).collect::<Vec<_>>()).collect::<Vec<_>>(),
            "machines": self.machines.iter().map(machines::to_toml).collect::<Vec<_>>(),
            "workloads": self.workloads,
            "options": self.options,
            "seeds": self.seeds,
            "warmup_ns": self.warmup.map(|warmup| warmup.0),
            "duration_ns": self.duration.0,
        });
        let built = self.kernels.iter().flatten().filter_map(Kernel::built).collect::<Vec<_>>();
        if !built.is_empty() {
            spec["built_kernels"] = json!(built);
        }
        if !self.by_name.is_empty() {
            spec["by_name"] = json!(self.by_name.asked.iter().map(ToString::to_string).collect::<Vec<_>>());
        }
        for (name, counts) in counted_in(&self.by_name) {
            spec[name] = json!(counts);
        }
        spec
    }
}

fn find(machine: &str, exact: bool) -> Result<Machine, LabError> {
    let machine = machines::find(machine)?;
    Ok(if exact { machine.exact() } else { machine })
}

/// No more groups and cells than a sweep may have: kernels, machines, workloads, combinations of options.
fn check_numbers(factors: [usize; 4], seeds: &[u64]) -> Result<(), LabError> {
    let groups = factors.iter().try_fold(1_usize, |groups, &factor| groups.checked_mul(factor));
    let cells = groups.and_then(|groups| groups.checked_mul(seeds.len()));
    if cells.is_none_or(|cells| cells > CELLS_MAX) {
        return Err(LabError::new(format!("more than {CELLS_MAX} cells"), "give fewer of something"));
    }
    if groups.is_none_or(|groups| groups > GROUPS_MAX) {
        let problem = format!("more than {GROUPS_MAX} groups of cells that differ in more than their seed");
        return Err(LabError::new(problem, "give fewer kernels, machines, workloads or values of options"));
    }
    Ok(())
}

fn combinations(options: &[(String, Vec<String>)]) -> usize {
    options.iter().map(|(_, values)| values.len()).fold(1, usize::saturating_mul)
}

/// The values of a combination, the last option varying fastest.
fn values(options: &[(String, Vec<String>)], combination: usize) -> Vec<String> {
    let mut rest = combination;
    let mut chosen = Vec::with_capacity(options.len());
    for (_, values) in options.iter().rev() {
        chosen.push(values[rest % values.len()].clone());
        rest /= values.len();
    }
    chosen.reverse();
    chosen
}

/// Options have values and are used; what looks like one is one.
fn check_options<'w>(
    options: &[(String, Vec<String>)],
    words: impl Iterator<Item = &'w String>,
) -> Result<(), LabError> {
    let all = words.cloned().collect::<Vec<_>>().join(" ");
    for (name, values) in options {
        if values.is_empty() {
            return Err(LabError::new(format!("option {name} has no values"), "give some, or leave it out"));
        }
        if !all.contains(&format!("{{{name}}}")) {
            let hint = format!("write {{{name}}} where its values belong");
            return Err(LabError::new(format!("option {name} is used nowhere"), hint));
        }
    }
    if combinations(options) > CELLS_MAX {
        return Err(LabError::new(format!("more than {CELLS_MAX} cells"), "give fewer values of options"));
    }
    Ok(())
}

fn filled(text: &str, options: &[(String, Vec<String>)], values: &[String]) -> Result<String, LabError> {
    let mut filled = text.to_string();
    for ((name, _), value) in options.iter().zip(values) {
        filled = filled.replace(&format!("{{{name}}}"), value);
    }
    match filled.find('{').and_then(|open| filled[open..].find('}').map(|close| (open, open + close))) {
        Some((open, close)) => Err(LabError::new(
            format!("'{}' is no option", &filled[open..=close]),
            "give its values under [options]",
        )),
        None => Ok(filled),
    }
}

fn kernels(name: &str, options: &[(String, Vec<String>)]) -> Result<Vec<Kernel>, LabError> {
    let kernel = |combination| {
        let name = filled(name, options, &values(options, combination))?;
        Kernel::parse_for(&name, KernelNeed::Seeds, "a sweep")
    };
    (0..combinations(options)).map(kernel).collect()
}

fn commands(line: &[String], options: &[(String, Vec<String>)]) -> Result<Vec<Vec<String>>, LabError> {
    let command = |combination| {
        let values = values(options, combination);
        let words = line.iter().map(|word| filled(word, options, &values)).collect::<Result<Vec<_>, _>>()?;
        workloads::build(&words)?;
        Ok(words)
    };
    (0..combinations(options)).map(command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWEEP: &str = r#"
kernels = ["v6.5", "v6.6"]
machines = ["laptop8", "vm4"]
workloads = ["schbench -m 1 -t {threads} -c {think}", ["hackbench", "-g", "2"]]
seeds = 3
first_seed = 10
duration_ms = 100

[options]
threads = [2, 4]
think = [500, "1000", 2000]
"#;

    #[test]
    fn cells_are_every_combination_once() {
        let plan = SweepPlan::parse(SWEEP).expect("a plan");
        assert_eq!((plan.cells(), plan.groups(), plan.seeds()), (2 * 2 * 2 * 6 * 3, 48, 3));
        assert_eq!(plan.option_names().collect::<Vec<_>>(), ["think", "threads"]);
        let describe = |number: usize| {
            let spec = plan.cell(number).spec;
            format!("{} {} {} {}", spec.kernel.name(), spec.machine.name, spec.workload.join(" "), spec.seed)
        };
        assert_eq!(describe(0), "v6.5 laptop8 schbench -m 1 -t 2 -c 500 10");
        assert_eq!(describe(4), "v6.5 laptop8 schbench -m 1 -t 4 -c 500 11");
        assert_eq!(plan.cell(4).options, ["500", "4"]);
        assert_eq!(describe(143), "v6.6 vm4 hackbench -g 2 12");
        let all =
            (0..plan.cells()).map(|number| format!("{} {:?}", describe(number), plan.cell(number).options));
        let mut all = all.collect::<Vec<_>>();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), plan.cells());
    }

    #[test]
    fn what_cannot_be_run_is_refused_before_anything_runs() {
        let without =
            |what: &str, by: &str| SweepPlan::parse(&SWEEP.replace(what, by)).expect_err(by).to_string();
        for (what, by, fragment) in [
            ("v6.6", "v9.9", "unknown kernel 'v9.9'"),
            ("v6.6", "qemu:sid", "a sweep takes modelled kernels"),
            ("vm4", "vm5", "unknown machine 'vm5'"),
            ("hackbench", "dance", "unknown workload 'dance'"),
            ("-t {threads}", "-t many", "option threads is used nowhere"),
            ("{think}", "{thought}", "option think is used nowhere"),
            ("[2, 4]", "[]", "option threads has no values"),
            ("[2, 4]", "[\"x\"]", "schbench"),
            ("seeds = 3", "seeds = []", "a sweep without seeds"),
            ("seeds = 3", "seeds = 99999999999", "more than 10000000 cells"),
            ("seeds = 3", "seed = 3", "line 5: unknown key 'seed', 'seeds' may be meant"),
            ("[2, 4]", &format!("[{}]", vec!["2"; 9_000].join(",")), "more than 100000 groups of cells"),
            ("duration_ms = 100", "duration_ms = 0", "duration_ms lies"),
            ("duration_ms = 100", "duration_ms = 18446744073710", "duration_ms lies"),
            ("kernels = [", "kernels = ", "line 2"),
        ] {
            let problem = without(what, by);
            assert!(problem.contains(fragment) && !problem.contains('\n'), "{by}: {problem}");
        }
        let unknown = SweepPlan::parse(&SWEEP.replace("hackbench", "{program}")).expect_err("refused");
        assert_eq!(unknown.problem, "'{program}' is no option");
    }
}
