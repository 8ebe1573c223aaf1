//! How an answer came about: its origin, program and command, kernels, machines and seeds.
//!
//! Must not know: the answer, and where it is printed.

use std::collections::BTreeSet;

use fairlab_event::{EscapedText, System};
use serde_json::{Value, json};

pub use fairlab_event::Origin;
use fairlab_files::shell::{line_of, quoted};
use fairlab_verify::fidelity::Fidelity;

use crate::hosts;
use crate::kernel::origin_of;
use crate::merge::MergedCounts;
use crate::sweep::QueryAnswer;
use crate::{Experiment, Kernel, RunCounting, RunSetting, RunSide, RunStore};

/// The program that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramVersion {
    /// Its version.
    pub version: &'static str,
    /// The commit that it was built from; `None` where it was built outside a repository.
    pub commit: Option<&'static str>,
}

/// How an answer came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    program: ProgramVersion,
    /// Every word of the command line behind the program's name.
    words: Vec<String>,
    origins: Vec<Origin>,
    /// The program has read what came about before.
    is_read: bool,
    /// What it has read lacks its end.
    is_cut_off: bool,
    kernels: Vec<String>,
    machines: Vec<String>,
    seeds: BTreeSet<u64>,
    /// Runs that were looked for among those that are kept.
    counting: RunCounting,
}

impl Provenance {
    /// An answer of `program` to the command line `words`.
    pub fn new(program: ProgramVersion, words: Vec<String>) -> Provenance {
        Provenance {
            program,
            words,
            origins: Vec::new(),
            is_read: false,
            is_cut_off: false,
            kernels: Vec::new(),
            machines: Vec::new(),
            seeds: BTreeSet::new(),
            counting: RunCounting::default(),
        }
    }

    /// It came about this way, too.
    #[must_use]
    pub fn by(mut self, origin: Origin) -> Provenance {
        self.origins.push(origin);
        self.origins.sort_unstable();
        self.origins.dedup();
        self
    }

    /// It is about this kernel, too.
    #[must_use]
    pub fn kernel(mut self, name: impl Into<String>) -> Provenance {
        add(&mut self.kernels, name.into());
        self
    }

    /// It is about this machine, too.
    #[must_use]
    pub fn machine(mut self, name: impl Into<String>) -> Provenance {
        add(&mut self.machines, name.into());
        self
    }

    /// Its runs had these seeds, too.
    #[must_use]
    pub fn seeds(mut self, seeds: impl IntoIterator<Item = u64>) -> Provenance {
        self.seeds.extend(seeds);
        self
    }

    /// The runs of an experiment.
    #[must_use]
    pub fn of_experiment(self, experiment: &Experiment) -> Provenance {
        self.of_first_runs(experiment, experiment.seeds.len())
    }

    /// The runs of an experiment that ended after so many a side.
    #[must_use]
    pub fn of_first_runs(mut self, experiment: &Experiment, runs: usize) -> Provenance {
        for side in &experiment.sides {
            self = self.by(side.kernel.origin()).kernel(side.kernel.name()).machine(&side.machine.name);
        }
        self.seeds(experiment.seeds.iter().copied().take(runs))
    }

    /// Some of its runs were made before, and kept.
    #[must_use]
    pub fn of_store(self, store: Option<&RunStore>) -> Provenance {
        Provenance { counting: store.map(RunStore::counts).unwrap_or_default(), ..self }
    }

    /// Runs of some kernels under a setting, seeds from its first on.
    #[must_use]
    pub fn of_search(self, kernels: [&Kernel; 2], setting: &RunSetting, runs: usize) -> Provenance {
        let seeds = (0..runs as u64).map(|offset| setting.first_seed.wrapping_add(offset));
        let all = kernels.into_iter().fold(self, |all, kernel| all.by(kernel.origin()).kernel(kernel.name()));
        all.machine(&setting.machine.name).seeds(seeds)
    }

    /// Runs that exist, each made in its way. Where nothing tells how a run was made, it is called recorded.
    #[must_use]
    pub fn of_sides(self, sides: &[RunSide]) -> Provenance {
        let records = sides.iter().flat_map(|side| side.records.iter().map(move |record| (side, record)));
        records.fold(self, |all, (side, record)| {
            let kernel = if record.kernel.is_empty() { &side.name } else { &record.kernel };
            // Hosts pair by numbers, which are no seeds.
            let seed = record.seed.filter(|_| record.machine != hosts::MACHINE);
            all.reading(record.origin).kernel(kernel).machine(&record.machine).seeds(seed)
        })
    }

    /// Counts that were read; those of a run tell whose they are, and how it came about.
    #[must_use]
    pub fn of_counts(self, merged: &MergedCounts) -> Provenance {
        let all = merged
            .groups
            .keys()
            .fold(self, |all, group| all.reading(group.origin).kernel(&group.kernel).machine(&group.machine));
        all.seeds(merged.seeds.values().flatten().copied())
    }

    /// Cells of a sweep.
    #[must_use]
    pub fn of_cells(self, answer: &QueryAnswer) -> Provenance {
        let all = answer.kernels.iter().fold(self, |all, kernel| all.by(origin_of(kernel)).kernel(kernel));
        answer.machines.iter().fold(all, Provenance::machine).seeds(answer.seeds.iter().copied())
    }

    /// Recordings that were held against the models of their kernels.
    #[must_use]
    pub fn of_fidelity(self, fidelity: &Fidelity) -> Provenance {
        let all = fidelity.origins().fold(self.by(Origin::Modelled), Provenance::reading);
        fidelity.figures().sums().rows.iter().fold(all, |all, row| all.kernel(&row.kernel))
    }

    /// What came about this way before was read; `None`: nothing tells how, and it is called recorded.
    #[must_use]
    pub fn reading(mut self, origin: Option<Origin>) -> Provenance {
        self.is_read = true;
        self.by(origin.unwrap_or(Origin::Recorded))
    }

    /// A trace was read, which tells this of kernel, machine, and how it came about.
    #[must_use]
    pub fn of_trace(mut self, system: &System) -> Provenance {
        self = self.reading(Origin::parse(&system.origin)).seeds(system.seed);
        let names = [&system.kernel, &system.release];
        if let Some(name) = names.into_iter().find(|name| !name.is_empty()) {
            self = self.kernel(name);
        }
        match (system.node.as_str(), system.cpus) {
            ("", None) => self,
            ("", Some(cpus)) => self.machine(format!("{cpus} CPUs")),
            (node, None) => self.machine(node),
            (node, Some(cpus)) => self.machine(format!("{node} ({cpus} CPUs)")),
        }
    }

    /// A trace that was read lacks its end, if so.
    #[must_use]
    pub fn cut_off(mut self, is_cut_off: bool) -> Provenance {
        self.is_cut_off |= is_cut_off;
        self
    }

    /// Whether all of it was modelled.
    pub fn is_modelled(&self) -> bool {
        self.origins[..] == [Origin::Modelled]
    }

    /// The command line, as a shell takes it.
    pub fn command(&self) -> String {
        format!("fairlab {}", line_of(&self.words))
    }

    /// One line for people, without its end. The command stands last, as a shell takes it: from `fairlab` to the end it can be
    /// given once more.
    pub fn line(&self) -> String {
        let origins = self.origins.iter().map(|origin| origin.name()).collect::<Vec<_>>();
        let origins = if origins.is_empty() { "told".to_string() } else { and(&origins) };
        let read = if self.is_read { ", read" } else { "" };
        let commit = self.program.commit.unwrap_or("unknown");
        let mut line = format!("{origins}{read} by fairlab {} ({commit})", self.program.version);
        let mut list = |one: &str, many: &str, names: &[String]| match names {
            [] => {}
            [name] => line += &format!(", {one} {name}"),
            names => line += &format!(", {many} {}", names.join(" ")),
        };
        let printable = |names: &[String]| names.iter().map(|name| shown_name(name)).collect::<Vec<_>>();
        list("kernel", "kernels", &printable(&self.kernels));
        list("machine", "machines", &printable(&self.machines));
        let seeds = if self.seeds.len() > 1 { "seeds" } else { "seed" };
        list(seeds, seeds, &ranges(&self.seeds));
        if self.is_cut_off {
            line += ", from a trace that is cut off";
        }
        let RunCounting { runs, kept } = self.counting;
        if kept > 0 {
            line += &format!(", {runs} runs, {kept} of them kept from before");
        }
        format!("{line}: {}", self.command())
    }

    /// The line as a comment: it stands before tables and lists, `# ` first.
    pub fn comment(&self) -> String {
        format!("# {}\n", EscapedText(&self.line()))
    }

    /// The provenance for programs.
    pub fn to_json(&self) -> Value {
        let mut told = json!({
            "origin": self.origins.iter().map(|origin| origin.name()).collect::<Vec<_>>(),
            "program": "fairlab",
            "version": self.program.version,
            "commit": self.program.commit,
            "command": self.command(),
            "kernels": self.kernels,
            "machines": self.machines,
            "seeds": self.seeds,
        });
        if self.counting.kept > 0 {
            told["runs"] = json!(self.counting.runs);
            told["kept_runs"] = json!(self.counting.kept);
        }
        told
    }

    /// An answer for programs with this, behind the name of its schema.
    pub fn within(&self, answer: Value) -> Value {
        let Value::Object(mut fields) = answer else { return answer };
        let place = usize::from(fields.contains_key("schema")).min(fields.len());
        fields.shift_insert(place, "provenance".to_string(), self.to_json());
        Value::Object(fields)
    }
}

/// A name as a terminal may see it.
fn shown_name(name: &str) -> String {
    if name.chars().any(char::is_control) { quoted(name) } else { name.to_string() }
}

fn add(names: &mut Vec<String>, name: String) {
    if !names.contains(&name) {
        names.push(name);
    }
}

fn and(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Numbers in a row as `first..last`.
fn ranges(seeds: &BTreeSet<u64>) -> Vec<String> {
    let mut pieces: Vec<(u64, u64)> = Vec::new();
    for &seed in seeds {
        match pieces.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(seed) => *last = seed,
            _ => pieces.push((seed, seed)),
        }
    }
    let text = |&(first, last): &(u64, u64)| match first == last {
        true => first.to_string(),
        false => format!("{first}..{last}"),
    };
    pieces.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: ProgramVersion = ProgramVersion { version: "0.1.0", commit: Some("37dfa25") };

    fn asked(words: &[&str]) -> Provenance {
        Provenance::new(PROGRAM, words.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_line_says_who_answers_and_from_what() {
        let compared = asked(&["compare", "hackbench", "-g", "4", "--kernel", "v6.5", "--kernel", "v6.12"])
            .by(Origin::Modelled)
            .kernel("v6.5")
            .kernel("v6.12")
            .machine("laptop8")
            .seeds(1..=10);
        assert_eq!(
            compared.comment(),
            "# modelled by fairlab 0.1.0 (37dfa25), kernels v6.5 v6.12, machine laptop8, seeds 1..10: \
             fairlab compare hackbench -g 4 --kernel v6.5 --kernel v6.12\n"
        );
        let json = compared.to_json();
        assert_eq!(json["command"], "fairlab compare hackbench -g 4 --kernel v6.5 --kernel v6.12");
        assert_eq!((&json["commit"], json["seeds"].as_array().map(Vec::len)), (&json!("37dfa25"), Some(10)));
    }

    #[test]
    fn several_ways_and_odd_seeds_are_listed() {
        let mixed = asked(&["run", "x"]).by(Origin::RunHere).by(Origin::Modelled).by(Origin::RunHere);
        let mixed = mixed.seeds([7, 3, 4, 5]);
        assert!(mixed.line().starts_with("modelled and run here by fairlab"), "{}", mixed.line());
        assert!(mixed.line().ends_with(", seeds 3..5 7: fairlab run x"), "{}", mixed.line());
        let outside = ProgramVersion { version: "0.1.0", commit: None };
        let line = Provenance::new(outside, vec!["kernels".to_string()]).by(Origin::Described).line();
        assert_eq!(line, "described by fairlab 0.1.0 (unknown): fairlab kernels");
    }

    #[test]
    fn a_recorded_trace_names_its_kernel_and_no_name_reaches_a_terminal_raw() {
        let system = System { release: "6.1.0-\u{1b}[2J".to_string(), cpus: Some(2), ..System::default() };
        let line = asked(&["latency", "a b\n.data"]).of_trace(&system).line();
        assert!(!line.contains(char::is_control), "{line}");
        assert!(line.starts_with("recorded, read by fairlab"), "{line}");
        assert!(line.contains(", machine 2 CPUs: fairlab latency "), "{line}");
        let cut = asked(&["latency", "x"]).of_trace(&system).cut_off(true).cut_off(false).line();
        assert!(cut.contains(", machine 2 CPUs, from a trace that is cut off: fairlab latency x"), "{cut}");
    }

    #[test]
    fn what_was_modelled_or_booted_is_not_called_recorded() {
        let modelled = System {
            release: "6.6".to_string(),
            node: "vm4".to_string(),
            cpus: Some(4),
            origin: "modelled".to_string(),
            kernel: "v6.6".to_string(),
            seed: Some(3),
            ..System::default()
        };
        let line = asked(&["latency", "x.txt"]).of_trace(&modelled).line();
        assert_eq!(
            line,
            "modelled, read by fairlab 0.1.0 (37dfa25), kernel v6.6, machine vm4 (4 CPUs), seed 3: fairlab latency x.txt"
        );
        let booted = System { origin: "booted".to_string(), ..System::default() };
        assert!(asked(&["latency", "x"]).of_trace(&booted).line().starts_with("booted, read by fairlab"));
        let unknown = System { origin: "dreamt".to_string(), ..System::default() };
        assert_eq!(asked(&["latency", "x"]).of_trace(&unknown).to_json()["origin"], json!(["recorded"]));
    }

    #[test]
    fn origins_are_read_back_by_their_names() {
        for origin in Origin::ALL {
            assert_eq!(Origin::parse(origin.name()), Some(origin));
        }
        assert_eq!(Origin::parse("dreamt"), None);
    }
}
