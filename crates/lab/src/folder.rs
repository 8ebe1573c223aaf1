//! A folder of results: what was run, what came of it. Written beside and renamed, so that it is whole or not there. One that
//! was left before all runs were made is gone on with (`folder/resume.rs`).

mod resume;

use std::fs;
use std::path::{Path, PathBuf};

use fairlab_kernel::Generation;
use fairlab_kernel::generation::{Feature, Tunable};
use fairlab_sim::Machine;
use fairlab_sim::machine::Chance;
use serde_json::{Value, json};

use crate::hosts::Labels;
use crate::merge::{COUNTS_FILE, MergeKey, MergedCounts};
use crate::{Experiment, ExperimentSide, Kernel, LabError, OutputFolder, Progress, RunResult};
use fairlab_analysis::by_name::NamesWanted;

/// The file of a folder that was stopped before its end.
const PARTIAL_FILE: &str = "partial.json";

/// A folder of runs under construction.
#[derive(Debug)]
pub struct RunFolder {
    folder: OutputFolder,
    /// Runs whose files are there already, by side and seed.
    kept: Vec<(String, u64)>,
}

impl RunFolder {
    /// Begins a folder that will be `path`. Nothing stands there until [`finish`](Self::finish).
    ///
    /// # Errors
    /// Something is there already, or the place cannot be written to.
    pub fn create(path: &Path) -> Result<RunFolder, LabError> {
        Ok(RunFolder { folder: OutputFolder::create(path)?, kept: Vec::new() })
    }

    /// The folder of an experiment where one is wanted, and the runs that are in it already.
    ///
    /// # Errors
    /// As of [`create`](Self::create) and [`resume`](Self::resume).
    pub fn open(
        path: Option<&Path>,
        resume: bool,
        experiment: &Experiment,
    ) -> Result<(Option<RunFolder>, Vec<RunResult>), LabError> {
        match path {
            None => Ok((None, Vec::new())),
            Some(path) if resume => {
                let (folder, kept) = RunFolder::resume(path, experiment)?;
                Ok((Some(folder), kept))
            }
            Some(path) => Ok((Some(RunFolder::create(path)?), Vec::new())),
        }
    }

    /// Writes the folder of an experiment, if there is one, with the answer beside the runs.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn keep(
        folder: Option<RunFolder>,
        partial: Option<Progress>,
        experiment: &Experiment,
        results: &[RunResult],
        answer: &Value,
    ) -> Result<(), LabError> {
        let Some(folder) = folder else { return Ok(()) };
        folder.write(experiment, results, answer)?;
        if let Some(Progress { done, total }) = partial {
            folder.mark_partial(done, total)?;
        }
        folder.finish()
    }

    /// Writes the effective spec, the answer, each run's metrics and output, and beside each run's trace what verification
    /// needs to know of kernel and machine.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(
        &self,
        experiment: &Experiment,
        results: &[RunResult],
        answer: &Value,
    ) -> Result<(), LabError> {
        self.folder.file("spec.json", &pretty(&spec(experiment)))?;
        self.folder.file("metrics.json", &pretty(answer))?;
        let provenance = &answer["provenance"];
        let partial = answer.get("partial").unwrap_or(&Value::Null);
        let runs = json!({ "schema": "fairlab/run/1", "provenance": provenance, "partial": partial, "runs": results });
        self.folder.file("runs.json", &pretty(&runs))?;
        for run in results {
            if self.kept.iter().any(|(side, seed)| side == run.side() && *seed == run.seed) {
                continue;
            }
            let folder = folder_of(run.side(), run.seed);
            let Some(side) = experiment.side(run.side()) else { continue };
            let (release, origin, machine) = (side.kernel.release(), run.origin(), &side.machine);
            let info = fairlab_recording::list(&machine.topology, &release, origin);
            self.folder.file(&format!("{folder}/sched_info.txt"), &info)?;
            let meta = json!({
                "release": release,
                "origin": origin.name(),
                "HZ": machine.hz,
                "kernel": run.kernel,
                "machine": run.machine,
                "workload": run.workload,
                "seed": run.seed,
                "begin_ns": run.begin_ns,
                "settled_ns": run.settled_ns,
            });
            self.folder.file(&format!("{folder}/meta.json"), &pretty(&meta))?;
            for (name, list) in run.beginning.files() {
                self.folder.file(&format!("{folder}/{name}"), list)?;
            }
            self.folder.file(&format!("{folder}/output.txt"), &run.output)?;
            self.folder.file(&format!("{folder}/{COUNTS_FILE}"), &format!("{}\n", counts(run)))?;
            self.folder.file(&format!("{folder}/schedstat.txt"), &run.schedstat)?;
            self.folder.file(&format!("{folder}/schedstat-sis.txt"), &run.schedstat_searches)?;
        }
        Ok(())
    }

    /// Says in the folder that it was stopped before its end, with so many of the wanted runs, and removes the places of the others.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn mark_partial(&self, done: usize, wanted: usize) -> Result<(), LabError> {
        remove_empty_folders(self.folder.building());
        let partial = json!({ "schema": "fairlab/partial/1", "runs": done, "wanted": wanted });
        self.folder.file(PARTIAL_FILE, &pretty(&partial))
    }

    /// Where a run's trace belongs, its folder made.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn trace_path(&self, side: &str, seed: u64) -> Result<PathBuf, LabError> {
        let folder = self.folder.path(&folder_of(side, seed));
        fs::create_dir_all(&folder).map_err(|error| self.folder.failed(&error))?;
        Ok(folder.join("trace.txt.zst"))
    }

    /// Gives the folder its name. One that it goes on with is replaced.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn finish(self) -> Result<(), LabError> {
        self.folder.finish()
    }
}

/// Removes what runs that were not finished left: folders in folders with nothing in them.
fn remove_empty_folders(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty_folders(&entry.path());
            // A folder that holds something stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// What a folder says of itself if it was stopped before its end: how many runs it holds of how many; `None` if it is whole.
pub fn partial_runs(folder: &Path) -> Option<(u64, u64)> {
    let text = fs::read_to_string(folder.join(PARTIAL_FILE)).ok()?;
    let partial = serde_json::from_str::<Value>(&text).ok()?;
    Some((partial["runs"].as_u64()?, partial["wanted"].as_u64()?))
}

/// Where a run's files are in its folder. A side that is named by a path is one folder, too.
fn folder_of(side: &str, seed: u64) -> String {
    format!("{}/seed-{seed}", side.replace('/', "%2f"))
}

fn counts(run: &RunResult) -> Value {
    let group = MergeKey {
        origin: Some(run.origin()),
        kernel: run.kernel.clone(),
        machine: run.machine.clone(),
        workload: run.workload.clone(),
        labels: Labels::new(),
    };
    let mut merged = MergedCounts::default();
    merged.add(group, &run.counts, run.has_seed().then_some(run.seed));
    merged.to_json()
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Everything that decided the results: rules, machine with costs, workload, seeds. Where sides differ in more than their kernels, each
/// stands for itself.
fn spec(experiment: &Experiment) -> Value {
    let mut spec = json!({ "schema": "fairlab/spec/1", "fairlab": env!("CARGO_PKG_VERSION") });
    let first = experiment.sides.first();
    match first.filter(|first| experiment.sides.iter().all(|side| side.is_in_setting_of(first))) {
        Some(_) => side_spec(&mut spec, &experiment.sides),
        None => {
            let side = |side: &ExperimentSide| {
                let mut spec = json!({ "name": side.name });
                side_spec(&mut spec, std::slice::from_ref(side));
                spec
            };
            spec["sides"] = json!(experiment.sides.iter().map(side).collect::<Vec<_>>());
        }
    }
    spec["seeds"] = json!(experiment.seeds);
    if !experiment.by_name.is_empty() {
        let asked = experiment.by_name.asked.iter().map(ToString::to_string).collect::<Vec<_>>();
        spec["by_name"] = json!({ "asked": asked });
    }
    for (name, counts) in counted_in(&experiment.by_name) {
        spec[name] = json!(counts);
    }
    if !experiment.time.is_all() {
        spec["time"] = json!(experiment.time.to_string());
    }
    let built = experiment.kernels().filter_map(Kernel::built).collect::<Vec<_>>();
    if !built.is_empty() {
        spec["built_kernels"] = json!(built);
    }
    spec
}

/// What sides of one machine and workload are made of.
fn side_spec(spec: &mut Value, sides: &[ExperimentSide]) {
    let Some(ExperimentSide { machine, workload, warmup, duration, .. }) = sides.first() else { return };
    let modelled = sides.iter().filter_map(|side| side.kernel.generation());
    let real = sides.iter().map(|side| &side.kernel).filter(|kernel| !kernel.draws_chance());
    spec["kernels"] = modelled.map(|rules| kernel_spec(rules, machine)).collect();
    spec["real_kernels"] = real
        .map(|kernel| {
            json!({
                "name": kernel.name(),
                "release": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
            })
        })
        .collect();
    spec["machine"] = machine_spec(machine);
    spec["workload"] = json!(workload);
    spec["warmup_ns"] = json!(warmup.map(|warmup| warmup.0));
    spec["duration_ns"] = json!(duration.0);
}

/// What else runs count, where they do.
pub(crate) fn counted_in(wanted: &NamesWanted) -> impl Iterator<Item = (&'static str, bool)> {
    [("counters", wanted.counters), ("balancing", wanted.balancing)].into_iter().filter(|(_, counts)| *counts)
}

fn kernel_spec(kernel: &Generation, machine: &Machine) -> Value {
    let features = Feature::ALL.iter().filter(|&&feature| kernel.features.has(feature));
    let nr_cpus = machine.topology.nr_cpus();
    let tunables = Tunable::ALL.iter().filter_map(|&tunable| {
        Some((tunable.name().to_string(), json!(kernel.tunables.effective(tunable, nr_cpus)?)))
    });
    json!({
        "name": kernel.name(),
        "changes": kernel.changes().map(|change| change.commit).collect::<Vec<_>>(),
        "features": features.map(|&feature| (feature.name().to_string(), json!(kernel.features.enabled(feature)))).collect::<serde_json::Map<_, _>>(),
        "tunables": tunables.collect::<serde_json::Map<_, _>>(),
    })
}

/// Every amount of chance, by its name.
pub fn chance_spec(chance: &Chance) -> Value {
    chance.table().into_iter().map(|source| (source.name.to_string(), json!(source.value))).collect()
}

fn machine_spec(machine: &Machine) -> Value {
    let place = |cpu| {
        let place = machine.topology.place(cpu);
        json!([place.core, place.llc, place.node])
    };
    let costs = machine.costs.table().into_iter().map(|cost| (cost.name.to_string(), json!(cost.value.0)));
    let mut spec = json!({
        "name": machine.name,
        "hz": machine.hz,
        "high_res_timers": machine.high_res_timers,
        "nohz_idle": machine.nohz_idle,
        "exact": machine.chance.is_none(),
        "chance": chance_spec(&machine.chance),
        "in_turn": machine.in_turn,
        "cpus_core_llc_node": machine.topology.cpus().map(place).collect::<Vec<_>>(),
        "costs": costs.collect::<serde_json::Map<_, _>>(),
    });
    if !machine.sharing.is_off() {
        let known = machine.sharing.table().into_iter().filter(|figure| figure.value > 0);
        spec["sharing"] = known.map(|figure| (figure.name.to_string(), json!(figure.value))).collect();
    }
    spec
}
