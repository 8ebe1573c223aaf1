//! What a user puts in the place of a report's own runs: another workload, or other kernels beside its two.
//!
//! Must not know: what a report's runs show, how kernels of each kind run.

use std::path::Path;

use fairlab_event::Ns;
use fairlab_lab::{Experiment, Kernel, LabError, RunSetting, SettingWords, workloads};

use super::{Scenario, Small};

/// The machine on which kernels are booted under a workload of the user's own.
const BOOTED_MACHINE: &str = "emulated:4";

/// This host.
const HOST: &str = "host";

/// What a user asks of a report.
#[derive(Clone, Copy, Debug)]
pub struct UserReplacement<'a> {
    /// A workload: its command line, an rt-app file, or a recording.
    pub workload: Option<&'a str>,
    /// The machine, if the user names one.
    pub machine: Option<&'a str>,
    /// When to stop each run, if the user says so.
    pub duration: Option<Ns>,
    /// Fewer runs.
    pub quick: bool,
}

impl Scenario {
    /// The setting in which the workload runs on the report's two kernels; `None` without one.
    ///
    /// # Errors
    /// There is no such machine or workload.
    pub fn setting(&self, instead: &UserReplacement<'_>) -> Result<Option<RunSetting>, LabError> {
        let Some(workload) = instead.workload else { return Ok(None) };
        let machine = instead.machine.unwrap_or(&self.machine);
        RunSetting::of(&asked(&words_of(workload), machine, instead.duration)).map(Some)
    }

    /// Other kernels of any kind beside the report's two. The workload is the user's own, or the report's in a size that they can
    /// carry.
    ///
    /// # Errors
    /// A name means nothing, or the kernels cannot run like that.
    pub fn beside(&self, others: &[String], instead: &UserReplacement<'_>) -> Result<Experiment, LabError> {
        let kernels = others.iter().map(|name| Kernel::parse(name)).collect::<Result<Vec<_>, _>>()?;
        let live = kernels.iter().any(|kernel| !kernel.has_virtual_time());
        let booted = kernels.iter().any(|kernel| kernel.has_virtual_time() && !kernel.takes_presets());
        let (workload, usual, duration) = match instead.workload {
            Some(workload) => {
                (words_of(workload), if booted { BOOTED_MACHINE } else { self.machine.as_str() }, None)
            }
            None => {
                let Small { workload, machine, duration_ms } = &self.small;
                (words_of(workload), machine.as_str(), Some(Ns::from_ms(*duration_ms)))
            }
        };
        let machine = instead.machine.unwrap_or(if live && !booted { HOST } else { usual });
        let names = self.pair.iter().chain(others).cloned().collect::<Vec<_>>();
        let runs = if instead.quick { 3 } else { 10 };
        Experiment::of(&names, &asked(&workload, machine, instead.duration.or(duration)), runs)
    }
}

fn asked<'a>(workload: &'a [String], machine: &'a str, duration: Option<Ns>) -> SettingWords<'a> {
    SettingWords {
        machine,
        workload,
        warmup: None,
        duration,
        exact: false,
        first_seed: 1,
        by_name: None,
        time: Default::default(),
    }
}

/// A workload's words. A file is one of rt-app or a recording; a folder is a recording. A workload's name means that workload,
/// also where a file has this name.
fn words_of(workload: &str) -> Vec<String> {
    if workload.ends_with(".json") {
        return vec!["rt-app".to_string(), workload.to_string()];
    }
    if Path::new(workload).exists() && workloads::find(workload).is_err() {
        return vec!["replay".to_string(), workload.to_string()];
    }
    workload.split_whitespace().map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    const PLAIN: UserReplacement<'_> =
        UserReplacement { workload: None, machine: None, duration: None, quick: false };

    fn beside(others: &[&str], instead: &UserReplacement<'_>) -> Result<Experiment, LabError> {
        let others = others.iter().map(ToString::to_string).collect::<Vec<_>>();
        find("lb-bias").expect("a scenario").beside(&others, instead)
    }

    #[test]
    fn other_kernels_run_where_all_of_them_can() {
        let own = UserReplacement { workload: Some("pipe -l 50"), quick: true, ..PLAIN };
        for (others, instead, machine, runs) in [
            (&["v6.6"][..], PLAIN, "emulated:1x4x1", 10),
            (&["qemu:sid"], PLAIN, "emulated:1x4x1", 10),
            (&["v6.6"], own, "lkp-bdw-ep3", 3),
            (&["v6.6", "qemu:sid"], own, "emulated:1x4x1", 3),
            (&["host"], own, "host", 3),
        ] {
            let experiment = beside(others, &instead).expect("an experiment");
            assert_eq!(
                (experiment.sides[0].machine.name.as_str(), experiment.seeds.len()),
                (machine, runs),
                "{others:?}"
            );
            assert_eq!(experiment.names()[..2], ["v4.18", "v4.18+NO_LB_BIAS"].map(String::from));
        }
    }

    #[test]
    fn what_cannot_stand_beside_is_refused() {
        let on_vm4 = UserReplacement { workload: Some("pipe"), machine: Some("vm4"), ..PLAIN };
        assert!(beside(&["host"], &on_vm4).is_err_and(|error| error.problem.contains("not on vm4")));
        assert!(beside(&["v9.9"], &PLAIN).is_err());
        assert!(beside(&["v4.18"], &PLAIN).is_err_and(|error| error.problem.contains("given twice")));
    }

    #[test]
    fn a_file_is_replayed_and_a_name_is_a_workload() {
        assert_eq!(words_of("pipe -l 3"), ["pipe", "-l", "3"]);
        assert_eq!(words_of("phases.json"), ["rt-app", "phases.json"]);
        assert_eq!(words_of(env!("CARGO_MANIFEST_DIR")), ["replay", env!("CARGO_MANIFEST_DIR")]);
    }
}
