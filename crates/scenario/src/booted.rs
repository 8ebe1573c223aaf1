//! Ubuntu's kernels that a scenario boots, or whose boots are kept, with the modelled kernels for them.
//!
//! Must not know: which scenario wants them, what it measures.

use fairlab_analysis::by_name::NamesWanted;
use fairlab_event::{Ns, Sink};

use super::runs::Watched;
use super::{Batch, Bench, Report, RunKey};
use crate::booted_table::{BootedRun, boot_and_verify};
use fairlab_boot::Hardware;
use fairlab_lab::booted::{QemuKernel, QemuSpec};
use fairlab_lab::machines::{emulated_hardware, emulated_machine};
use fairlab_lab::{LabError, RunSpec};

/// The settings of the two sides.
pub(crate) const REAL: &str = "real";
pub(crate) const MODELLED: &str = "modelled";

/// Where the figures of real kernels come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// They were booted once, and what was measured is written down.
    Recorded,
    /// They are booted now.
    Booted,
}

impl Source {
    /// How a paragraph on them begins; `scenario` is whose they are.
    pub fn when(self, scenario: &str) -> String {
        match self {
            Source::Recorded => format!(
                "What Ubuntu's builds of these releases did, one boot each, in November 2026 (`fairlab scenario run {scenario} \
                 --booted` boots them again)"
            ),
            Source::Booted => "What Ubuntu's builds of these releases did now, one boot each".to_string(),
        }
    }
}

/// A kernel of Ubuntu's.
#[derive(Clone, Copy, Debug)]
pub(super) struct UbuntuKernel {
    /// The name that it is fetched by (`ubuntu:5.8`).
    pub release: &'static str,
    /// The modelled one.
    pub kernel: &'static str,
    /// Its ticks a second.
    pub hz: u64,
}

/// What runs on it, and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// An emulated machine.
    pub machine: &'static str,
    /// The workload's command line.
    pub workload: &'static str,
    /// A booted kernel runs workloads with groups in a group of their own. The words before the workload that make the model do
    /// so; or none.
    pub around: &'static str,
    /// When to stop it.
    pub duration: Ns,
}

impl Situation {
    /// What boots a release of Ubuntu's into it by hand.
    pub fn command(self, release: &str) -> String {
        let topology = self.machine.trim_start_matches("emulated:");
        format!("fairlab boot ubuntu:{release} --topology {topology} -- {}", self.workload)
    }
}

impl UbuntuKernel {
    /// The name of its own runs.
    pub fn real(self) -> RunKey {
        RunKey::new(REAL, self.release)
    }

    /// The name of the modelled runs.
    pub fn modelled(self) -> RunKey {
        RunKey::new(MODELLED, self.release)
    }

    /// The modelled run, with the ticks that the real kernel has.
    fn spec(self, situation: Situation, seed: u64) -> Result<RunSpec, LabError> {
        let mut machine = emulated_machine(&hardware(situation.machine)?, self.kernel)?;
        machine.hz = self.hz;
        let words = situation.around.split_whitespace().chain(situation.workload.split_whitespace());
        Ok(RunSpec {
            warmup: Some(Ns::ZERO),
            ..RunSpec::new(
                self.kernel.parse()?,
                machine,
                words.map(str::to_string).collect(),
                seed,
                situation.duration,
            )
        })
    }

    /// Boots it. `onlooker` sees what happens while the workload runs, counted from its beginning.
    fn boot(
        self,
        situation: Situation,
        bench: &Bench<'_>,
        onlooker: &mut dyn Sink,
    ) -> Result<Option<BootedRun>, LabError> {
        let name = format!("qemu:ubuntu:{}", self.release);
        let unknown = || LabError::new(format!("{name} cannot be booted"), "report this");
        let spec = QemuSpec {
            kernel: QemuKernel::parse(&name).ok_or_else(unknown)??,
            machine: situation.machine.to_string(),
            hardware: hardware(situation.machine)?,
            workload: situation.workload.split_whitespace().map(str::to_string).collect(),
            seed: 1,
            duration: situation.duration,
            trace: None,
            by_name: NamesWanted::default(),
        };
        boot_and_verify(&spec, &self.kernel.parse()?, onlooker, bench.stop)
    }
}

/// Runs the modelled kernels, `seeds` seeds of each, each with an onlooker of its own. Gives `None` when it was stopped.
pub(super) fn run_modelled<W: Sink + Send>(
    bench: &Bench<'_>,
    kernels: &[UbuntuKernel],
    situation: Situation,
    seeds: u64,
    watch: impl Fn() -> W + Sync,
) -> Result<Option<Batch<W>>, LabError> {
    let each = |&kernel: &UbuntuKernel| {
        (1..=seeds).map(move |seed| Ok((kernel.modelled(), bench.as_told(kernel.spec(situation, seed)?))))
    };
    let specs = kernels.iter().flat_map(each).collect::<Result<Vec<_>, LabError>>()?;
    bench.watch_each(specs, watch)
}

/// Boots the kernels, once each, and tells of each how many of its decisions are the model's. Gives `None` when it was
/// stopped.
pub(super) fn boot_all<W: Sink + Send>(
    bench: &Bench<'_>,
    kernels: &[UbuntuKernel],
    situation: Situation,
    report: &mut Report,
    watch: impl Fn() -> W + Sync,
) -> Result<Option<Batch<W>>, LabError> {
    let found = bench.each(kernels, |kernel| {
        let mut watch = watch();
        let booted = kernel.boot(situation, bench, &mut watch)?;
        Ok(booted.map(|booted| (kernel.real(), booted, watch)))
    })?;
    let Some(found) = found else { return Ok(None) };
    let told = |(run, booted, watch): (RunKey, BootedRun, W)| -> (RunKey, Vec<Watched<W>>) {
        report.text(in_words(&booted));
        (run, vec![(booted.kept.result, watch)])
    };
    Ok(Some(found.into_iter().map(told).collect()))
}

/// How many of its decisions are the model's.
fn in_words(booted: &BootedRun) -> String {
    let (judged, agree) = booted.verified;
    format!("{}: {agree} of {judged} decisions of the booted kernel are the model's.", booted.kept.release)
}

fn hardware(machine: &str) -> Result<Hardware, LabError> {
    let none = || LabError::new(format!("nothing is booted on {machine}"), "report this");
    emulated_hardware(machine).ok_or_else(none)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_gets_the_ticks_and_the_groups_of_the_real_one() {
        let kernel = UbuntuKernel { release: "6.8", kernel: "ubuntu-6.8", hz: 1000 };
        let situation = Situation {
            machine: "emulated:4",
            workload: "vhost --run-ms 100",
            around: "cgroup cpu.weight=100 /",
            duration: Ns::from_secs(1),
        };
        let spec = kernel.spec(situation, 3).expect("a run");
        assert_eq!((spec.machine.hz, spec.machine.in_turn, spec.seed), (1000, true, 3));
        assert_eq!(spec.workload.join(" "), "cgroup cpu.weight=100 / vhost --run-ms 100");
        assert_eq!(situation.command("6.8"), "fairlab boot ubuntu:6.8 --topology 4 -- vhost --run-ms 100");
    }
}
