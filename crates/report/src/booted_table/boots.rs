//! Results of booted kernels, kept in files, so that a later comparison needs no boot.
//!
//! Must not know: how a kernel is booted, what its runs are compared with.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fairlab_event::{Cpu, ShownPath};
use fairlab_files::write_whole;
use fairlab_lab::LabError;
use serde::{Deserialize, Serialize};

use super::{BOOTS, BootedRun, DifferenceMeasure, TableWorkload};

/// The boots of one kernel under one workload: a file of the folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "fairlab/boots/1")]
pub(super) struct BootFile {
    /// The generation.
    pub kernel: String,
    /// The kernel's release.
    pub release: String,
    pub machine: String,
    /// The workload's short name.
    pub name: String,
    /// Its command line.
    pub workload: String,
    /// One a seed.
    pub boots: Vec<BootMetrics>,
}

/// What one boot came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BootMetrics {
    seed: u64,
    /// Where the thread began that creates the workload's others.
    first_cpu: u32,
    /// How long the workload ran, s of the guest.
    seconds: f64,
    /// Decisions that were judged.
    judged: u64,
    /// Those that the model shares.
    agree: u64,
    /// Those that are compared.
    pub metrics: Vec<BootMetric>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BootMetric {
    pub metric: String,
    pub value: f64,
}

impl BootMetrics {
    pub fn of(seed: u64, booted: &BootedRun) -> BootMetrics {
        let run = &booted.kept.result;
        let compared = run.metrics.iter().filter(|(name, _)| DifferenceMeasure::of(name).is_some());
        BootMetrics {
            seed,
            first_cpu: booted.kept.first_cpu.0,
            seconds: run.simulated_ns as f64 / 1e9,
            judged: booted.verified.0,
            agree: booted.verified.1,
            metrics: compared
                .map(|(metric, value)| BootMetric { metric: metric.clone(), value: *value })
                .collect(),
        }
    }

    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|known| known.metric == name).map(|known| known.value)
    }
}

impl BootFile {
    /// No boots: the kernel has not been booted yet.
    pub fn none(kernel: &str, workload: TableWorkload) -> BootFile {
        let TableWorkload { name, command, machine } = workload;
        let [kernel, machine, name, workload] = [kernel, machine, name, command].map(str::to_string);
        BootFile { kernel, release: String::new(), machine, name, workload, boots: Vec::new() }
    }

    /// The file of this kernel and workload.
    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}-{}.json", self.kernel, self.name))
    }

    /// These boots, if a folder keeps them.
    ///
    /// # Errors
    /// The file is damaged, or of another run than its name says.
    pub fn kept(&self, folder: &Path) -> Result<Option<BootFile>, LabError> {
        let path = self.path(folder);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(&path, &error.to_string())),
        };
        let boots: BootFile =
            serde_json::from_str(&text).map_err(|error| wrong(&path, &error.to_string()))?;
        let of = |boots: &BootFile| {
            [&boots.kernel, &boots.machine, &boots.name, &boots.workload].map(String::clone)
        };
        let is_of_it = of(&boots) == of(self);
        if !is_of_it {
            return Err(wrong(&path, "it is of another kernel, machine or workload"));
        }
        if boots.boots.iter().map(|boot| boot.seed).eq(1..=BOOTS) {
            return Ok(Some(boots));
        }
        Err(wrong(&path, &format!("it has not the seeds 1 to {BOOTS}")))
    }

    /// Puts them into a folder.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, folder: &Path) -> Result<(), LabError> {
        let path = self.path(folder);
        let text = serde_json::to_string_pretty(self).map_err(|error| wrong(&path, &error.to_string()))?;
        write_whole(&path, text + "\n").map_err(|error| wrong(&path, &error.to_string()))
    }

    /// Where the workload began, a boot each.
    pub fn first_cpus(&self) -> impl Iterator<Item = Cpu> + Clone {
        self.boots.iter().map(|boot| Cpu(boot.first_cpu))
    }

    /// How long all took together, s of the guest.
    pub fn seconds(&self) -> f64 {
        self.boots.iter().map(|boot| boot.seconds).sum()
    }

    /// Decisions of all boots that were judged, and those that the model shared.
    pub fn verified(&self) -> (u64, u64) {
        self.boots.iter().fold((0, 0), |sum, boot| (sum.0 + boot.judged, sum.1 + boot.agree))
    }
}

fn wrong(path: &Path, problem: &str) -> LabError {
    let told = format!("{}: {problem}", ShownPath(path));
    LabError::new(told, "name a folder of what was booted, or remove the file: it is booted again")
}

#[cfg(test)]
mod tests {
    use fairlab_files::temporary::PrivateFolder;

    use super::*;

    fn none() -> BootFile {
        BootFile::none("debian-6.1", TableWorkload::new("periodic", "periodic -n 3", "emulated:2"))
    }

    fn boots() -> BootFile {
        let metrics = vec![BootMetric { metric: "switches_per_s".to_string(), value: 12.5 }];
        let boot = |seed| BootMetrics {
            seed,
            first_cpu: 1,
            seconds: 2.5,
            judged: 10,
            agree: 9,
            metrics: metrics.clone(),
        };
        BootFile { release: "6.1.0".to_string(), boots: (1..=BOOTS).map(boot).collect(), ..none() }
    }

    #[test]
    fn what_is_kept_is_read_back() {
        let folder = PrivateFolder::create().expect("a folder");
        assert_eq!(none().kept(folder.path()), Ok(None));
        boots().keep(folder.path()).expect("kept");
        let kept = none().kept(folder.path()).expect("readable").expect("there");
        assert_eq!(kept, boots());
        assert_eq!((kept.verified(), kept.seconds()), ((10 * BOOTS, 9 * BOOTS), 2.5 * BOOTS as f64));
        assert!(kept.first_cpus().all(|cpu| cpu == Cpu(1)));
        assert_eq!(kept.boots[0].metric("switches_per_s"), Some(12.5));
    }

    #[test]
    fn what_is_not_of_this_run_is_refused() {
        let folder = PrivateFolder::create().expect("a folder");
        let path = none().path(folder.path());
        let mut fewer = boots();
        fewer.boots.pop();
        let other = BootFile { machine: "emulated:4".to_string(), ..boots() };
        let text = |boots: &BootFile| serde_json::to_string(boots).expect("JSON");
        for (text, told) in [
            (text(&fewer), "it has not the seeds 1 to"),
            (text(&other), "of another kernel, machine or workload"),
            ("{".to_string(), "EOF"),
            (text(&boots()).replace("first_cpu", "cpu"), "unknown field"),
        ] {
            fs::write(&path, text).expect("written");
            let refused = none().kept(folder.path()).expect_err(told);
            assert!(refused.problem.contains(told), "{refused}");
        }
    }
}
