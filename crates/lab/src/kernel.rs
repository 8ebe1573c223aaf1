//! A kernel of any kind: modelled, built from sources, booted, or this host's; what each kind can do, and how it runs.
//!
//! Only this room distinguishes the kinds. All code that makes runs, compares them or searches with them asks here, so every
//! refusal has one wording.
//!
//! Must not know: what runs are made for.

use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use fairlab_boot::EmulationMode;
use fairlab_event::Origin;
use fairlab_kernel::Generation;
use fairlab_kernel::generation::GenerationStep;
use fairlab_sim::Machine;
use serde_json::Value;

use crate::booted::{self, QemuKernel, QemuSpec};
use crate::host::{self, HostObservation};
use crate::setting::DEFAULT_MACHINE;
use crate::source::{self, SourceKernel};
use crate::{LabError, Progress, RunResult, RunSpec, machines, run_watched, workloads};

/// Where kernels are booted, when the user names no machine.
const BOOTED_MACHINE: &str = "emulated:1x4x1";

/// A kernel that can run a workload.
#[derive(Clone, Debug)]
pub enum Kernel {
    /// A generation of the model.
    Modelled(Box<Generation>),
    /// A tree's own scheduler, built from its sources.
    Source(Box<SourceKernel>),
    /// One that QEMU boots for each run.
    Booted(QemuKernel),
    /// The one that runs here.
    Host,
}

impl From<Generation> for Kernel {
    fn from(generation: Generation) -> Kernel {
        Kernel::Modelled(Box::new(generation))
    }
}

impl FromStr for Kernel {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Kernel, LabError> {
        Kernel::parse(name)
    }
}

/// A kind of kernel. A name tells it, before it is known whether there is such a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KernelKind {
    Modelled,
    Source,
    Booted,
    Host,
}

/// What a kind can do. Each kind says all of it.
#[derive(Clone, Copy, Debug)]
struct KernelAbilities {
    virtual_time: bool,
    presets: bool,
    several_at_once: bool,
    seeds: bool,
    settles: bool,
    commands: bool,
    changes_host: bool,
    change_log: bool,
    history: bool,
}

/// What a command needs of every kernel that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelNeed {
    /// Changes are taken out and put in: the model's log.
    ChangeLog,
    /// Changes lie between two of them, one after the other: the model's log, or git's commits.
    History,
    /// Runs are functions of their seeds, on every machine.
    Seeds,
}

impl KernelKind {
    const ALL: [KernelKind; 4] =
        [KernelKind::Modelled, KernelKind::Source, KernelKind::Booted, KernelKind::Host];

    fn of(name: &str) -> KernelKind {
        match name {
            host::NAME => KernelKind::Host,
            name if QemuKernel::is_name(name) => KernelKind::Booted,
            name if SourceKernel::is_name(name) => KernelKind::Source,
            _ => KernelKind::Modelled,
        }
    }

    const fn origin(self) -> Origin {
        match self {
            KernelKind::Modelled => Origin::Modelled,
            KernelKind::Source => Origin::Driven,
            KernelKind::Booted => Origin::Booted,
            KernelKind::Host => Origin::RunHere,
        }
    }

    /// What such kernels are called in a sentence.
    const fn words(self) -> &'static str {
        match self {
            KernelKind::Modelled => "modelled kernels",
            KernelKind::Source => "kernels built from sources",
            KernelKind::Booted => "booted kernels",
            KernelKind::Host => "this host's kernel",
        }
    }

    const fn abilities(self) -> KernelAbilities {
        match self {
            KernelKind::Modelled => KernelAbilities {
                virtual_time: true,
                presets: true,
                several_at_once: true,
                seeds: true,
                settles: true,
                commands: false,
                changes_host: false,
                change_log: true,
                history: true,
            },
            KernelKind::Source => KernelAbilities {
                virtual_time: true,
                presets: true,
                several_at_once: true,
                seeds: true,
                settles: true,
                commands: false,
                changes_host: false,
                change_log: false,
                history: true,
            },
            KernelKind::Booted => KernelAbilities {
                virtual_time: true,
                presets: false,
                several_at_once: false,
                seeds: false,
                settles: false,
                commands: true,
                changes_host: true,
                change_log: false,
                history: false,
            },
            KernelKind::Host => KernelAbilities {
                virtual_time: false,
                presets: false,
                several_at_once: false,
                seeds: false,
                settles: false,
                commands: true,
                changes_host: true,
                change_log: false,
                history: false,
            },
        }
    }

    const fn meets(self, need: KernelNeed) -> bool {
        let can = self.abilities();
        match need {
            KernelNeed::ChangeLog => can.change_log,
            KernelNeed::History => can.history,
            KernelNeed::Seeds => can.seeds && can.presets,
        }
    }
}

/// The one refusal of a kernel whose kind cannot do what `what` needs.
fn refused(name: &str, need: KernelNeed, what: &str) -> LabError {
    let taken = KernelKind::ALL
        .into_iter()
        .filter(|kind| kind.meets(need))
        .map(KernelKind::words)
        .collect::<Vec<_>>();
    LabError::new(
        format!("{what} takes {}, and {name} is a kernel as it is", taken.join(" and ")),
        "name the modelled one of its generation; run, compare and scenario take both",
    )
}

/// How a kernel's runs come about, by its name alone.
pub fn origin_of(name: &str) -> Origin {
    KernelKind::of(name).origin()
}

impl Kernel {
    /// The kernel that a name means: `v6.6` and its variants, `src:NAME`, `src:DIR@REV`, `src:debian:6.12`, `qemu:bookworm`,
    /// `qemu:PATH`, `host`.
    ///
    /// # Errors
    /// The name means no generation, or a tree or an image that is not there.
    pub fn parse(name: &str) -> Result<Kernel, LabError> {
        match (KernelKind::of(name), QemuKernel::parse(name)) {
            (KernelKind::Host, _) => Ok(Kernel::Host),
            (KernelKind::Source, _) => Ok(Kernel::Source(Box::new(SourceKernel::parse(name)?))),
            (_, Some(booted)) => booted.map(Kernel::Booted),
            (KernelKind::Modelled | KernelKind::Booted, None) => Ok(Generation::asked_for(name)?.into()),
        }
    }

    /// The kernel of a name, for `what`, which takes no kernel without what it needs.
    ///
    /// # Errors
    /// The name is of a kind that lacks that, or means no kernel.
    pub fn parse_for(name: &str, need: KernelNeed, what: &str) -> Result<Kernel, LabError> {
        if !KernelKind::of(name).meets(need) {
            return Err(refused(name, need, what));
        }
        Kernel::parse(name)
    }

    const fn kind(&self) -> KernelKind {
        match self {
            Kernel::Modelled(_) => KernelKind::Modelled,
            Kernel::Source(_) => KernelKind::Source,
            Kernel::Booted(_) => KernelKind::Booted,
            Kernel::Host => KernelKind::Host,
        }
    }

    const fn abilities(&self) -> KernelAbilities {
        self.kind().abilities()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Kernel::Modelled(generation) => generation.name(),
            Kernel::Source(kernel) => kernel.name(),
            Kernel::Booted(kernel) => kernel.name(),
            Kernel::Host => host::NAME,
        }
    }

    /// How its runs come about.
    pub fn origin(&self) -> Origin {
        self.kind().origin()
    }

    /// What its code for a machine is known by on any host: a hash of sources, configuration and compiler; `None` where it is not built.
    pub fn key(&self, machine: &Machine) -> Option<String> {
        match self {
            Kernel::Source(kernel) => kernel.key(machine),
            Kernel::Modelled(_) | Kernel::Booted(_) | Kernel::Host => None,
        }
    }

    /// All that decides its runs on a machine, whatever it is called; `None` where it is not built, or chance has its part.
    pub(crate) fn identity(&self, machine: &Machine) -> Option<String> {
        match self {
            Kernel::Modelled(generation) => Some(format!("{:?}", generation.rules_alone())),
            Kernel::Source(kernel) => kernel.identity(machine),
            Kernel::Booted(_) | Kernel::Host => None,
        }
    }

    /// Its rules, if it is modelled.
    pub fn generation(&self) -> Option<&Generation> {
        match self {
            Kernel::Modelled(generation) => Some(generation),
            Kernel::Source(_) | Kernel::Booted(_) | Kernel::Host => None,
        }
    }

    /// Whether both decide alike in everything, whatever they are called. Of kernels that are not modelled only the name tells.
    pub fn same_rules(&self, other: &Kernel) -> bool {
        match (self, other) {
            (Kernel::Modelled(one), Kernel::Modelled(other)) => one.same_rules(other),
            (Kernel::Source(one), Kernel::Source(other)) => one.is_like(other),
            (Kernel::Booted(one), Kernel::Booted(other)) => one.name() == other.name(),
            (Kernel::Host, Kernel::Host) => true,
            (Kernel::Modelled(_) | Kernel::Source(_) | Kernel::Booted(_) | Kernel::Host, _) => false,
        }
    }

    /// The changes of the log that lead to another kernel, for `what`, which takes some of them.
    ///
    /// # Errors
    /// One of the two has no log.
    pub fn steps_to(&self, other: &Kernel, what: &str) -> Result<Vec<GenerationStep>, LabError> {
        Ok(self.rules(what)?.steps_to(other.rules(what)?))
    }

    /// This kernel after some of those changes; `None` where rules then contradict each other, or it has no log.
    pub fn after_steps(&self, steps: &[GenerationStep]) -> Option<Kernel> {
        Some(self.generation()?.after_steps(steps).ok()?.into())
    }

    /// The repository that it is a commit of, and what names the commit there.
    pub fn commit(&self) -> Option<(&Path, &str)> {
        match self {
            Kernel::Source(kernel) => kernel.commit(),
            Kernel::Modelled(_) | Kernel::Booted(_) | Kernel::Host => None,
        }
    }

    /// Another commit of its repository, with its settings; `None` where it is no commit of one.
    pub fn at(&self, revision: &str) -> Option<Kernel> {
        match self {
            Kernel::Source(kernel) => Some(Kernel::Source(Box::new(kernel.at(revision)?))),
            Kernel::Modelled(_) | Kernel::Booted(_) | Kernel::Host => None,
        }
    }

    /// Whether both have equal settings on top of what was built.
    pub fn is_set_like(&self, other: &Kernel) -> bool {
        match (self, other) {
            (Kernel::Source(one), Kernel::Source(other)) => one.is_set_like(other),
            _ => false,
        }
    }

    /// Its rules, for `what`, which works with nothing else.
    ///
    /// # Errors
    /// It is not modelled.
    pub fn rules(&self, what: &str) -> Result<&Generation, LabError> {
        self.generation().ok_or_else(|| refused(self.name(), KernelNeed::ChangeLog, what))
    }

    /// Whether its time is virtual: how busy this host is does not change a run.
    pub fn has_virtual_time(&self) -> bool {
        self.abilities().virtual_time
    }

    /// Whether it runs on every machine. Another one runs on machines of its own kind, and modelled ones beside it on the
    /// model of those.
    pub fn takes_presets(&self) -> bool {
        self.abilities().presets
    }

    /// Whether it runs several workloads at once, each as if it were alone.
    pub fn runs_several_at_once(&self) -> bool {
        self.abilities().several_at_once
    }

    /// Whether the machine's chance is drawn from a run's seed, so that seeds differ and a run is a function of its seed.
    pub fn draws_chance(&self) -> bool {
        self.abilities().seeds
    }

    /// Whether a workload can settle on it before anything is measured. Others are measured from the start, and modelled ones
    /// beside them likewise.
    pub fn settles(&self) -> bool {
        self.abilities().settles
    }

    /// Whether it runs any command, beside the workloads that Fairlab knows.
    pub fn runs_commands(&self) -> bool {
        self.abilities().commands
    }

    /// Whether a run starts processes or changes settings of this host, which must be put back before the program ends.
    pub fn changes_host(&self) -> bool {
        self.abilities().changes_host
    }

    /// Makes ready for runs on a machine what takes a while: builds a tree. `on_step` is told each step before it begins.
    ///
    /// # Errors
    /// It cannot be built, or does not run on that machine.
    pub fn prepare(
        &self,
        machine: &Machine,
        on_step: &dyn Fn(&str, Progress),
        stop: &AtomicBool,
    ) -> Result<(), LabError> {
        match self {
            Kernel::Source(kernel) => kernel.prepare(machine, on_step, stop).map(drop),
            Kernel::Modelled(_) | Kernel::Booted(_) | Kernel::Host => Ok(()),
        }
    }

    /// The release (`uname -r`) of its runs: a modelled one's name, its number first; empty for a booted one, whose trace tells it, and
    /// for one that is not built yet.
    pub fn release(&self) -> String {
        match self {
            Kernel::Modelled(_) => {
                self.name().trim_start_matches(|char: char| !char.is_ascii_digit()).to_string()
            }
            Kernel::Source(kernel) => kernel.manifest().map(|built| built.release).unwrap_or_default(),
            Kernel::Booted(_) => String::new(),
            Kernel::Host => {
                fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string()
            }
        }
    }

    /// The release that a trace of its runs tells.
    pub(crate) fn told_release(&self) -> String {
        match self {
            Kernel::Modelled(rules) => {
                let name = rules.name();
                name.strip_prefix('v').unwrap_or(name).to_string()
            }
            Kernel::Source(_) | Kernel::Booted(_) | Kernel::Host => self.release(),
        }
    }

    /// What decides its runs, if it is built from sources.
    pub fn built(&self) -> Option<Value> {
        match self {
            Kernel::Source(kernel) => kernel.spec(),
            Kernel::Modelled(_) | Kernel::Booted(_) | Kernel::Host => None,
        }
    }

    /// What its runs mean, where that is not plain, in a line for people.
    pub fn meaning(&self) -> Option<String> {
        match self {
            Kernel::Modelled(_) => None,
            Kernel::Source(_) => Some(
                "src: kernels: the tree's own scheduler in virtual time; its work takes what the machine's costs say".to_string(),
            ),
            Kernel::Booted(_) => Some(format!("booted kernels: {}", EmulationMode::Deterministic.meaning())),
            Kernel::Host => Some(
                "host: latencies, switches and migrations are those of the workload's own tasks; a CPU is busy with whatever runs there"
                    .to_string(),
            ),
        }
    }

    /// What its runs lack on this host, in a line for people.
    pub fn lacks(&self) -> Option<String> {
        match self {
            Kernel::Modelled(_) | Kernel::Source(_) | Kernel::Booted(_) => None,
            Kernel::Host => HostObservation::of_this_host().lacks().map(|lacks| format!("host: {lacks}")),
        }
    }

    /// The machine that it runs on when the user says `name`, and what a command line calls that.
    ///
    /// # Errors
    /// There is no such machine, or this kernel does not run there.
    pub(crate) fn machine(&self, name: &str) -> Result<(String, Machine), LabError> {
        match self {
            Kernel::Modelled(_) | Kernel::Source(_) => Ok((name.to_string(), machines::find(name)?)),
            Kernel::Booted(_) => booted_machine(name),
            Kernel::Host => host_machine(name),
        }
    }

    /// Checks that it can run a workload of this name.
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn check_workload(&self, workload: &[String]) -> Result<(), LabError> {
        match self {
            Kernel::Modelled(_) | Kernel::Source(_) | Kernel::Booted(_) => Ok(()),
            Kernel::Host => host::check(workload),
        }
    }
}

/// Whether the words are a command, and no workload that Fairlab knows.
pub(crate) fn is_command(workload: &[String]) -> bool {
    workload.first().is_some_and(|name| workloads::find(name).is_err())
}

fn booted_machine(name: &str) -> Result<(String, Machine), LabError> {
    let name = if name == DEFAULT_MACHINE { BOOTED_MACHINE } else { name };
    match machines::emulated_hardware(name).transpose()? {
        Some(_) => Ok((name.to_string(), machines::find(name)?)),
        None => Err(LabError::new(
            format!("kernels are booted on emulated machines, not on {name}"),
            format!("give --machine {BOOTED_MACHINE}, or another layout of CPUs"),
        )),
    }
}

fn host_machine(name: &str) -> Result<(String, Machine), LabError> {
    let name = if name == DEFAULT_MACHINE { host::NAME } else { name };
    if name != host::NAME && !name.ends_with(".toml") {
        return Err(LabError::new(
            format!("--kernel host runs on this host, not on {name}"),
            "give --machine host, or a file that describes it",
        ));
    }
    let machine = Machine { name: host::NAME.to_string(), ..machines::find(name)? };
    Ok((name.to_string(), machine))
}

/// The name of the newest modelled release, which stands where none is named.
pub fn newest_release() -> String {
    Generation::releases().last().map_or_else(String::new, ToString::to_string)
}

/// Runs a spec on its kernel, of whatever kind. Gives `None`, and leaves no trace, when `stop` was set before the end.
///
/// # Errors
/// The workload's options are wrong, the kernel cannot run it, or the trace cannot be written.
pub fn run(spec: &RunSpec, stop: &AtomicBool) -> Result<Option<RunResult>, LabError> {
    let side = (spec.side != spec.kernel.name()).then(|| spec.side.clone());
    let result = match &spec.kernel {
        Kernel::Modelled(_) => run_watched(spec, stop, &mut ()),
        Kernel::Source(kernel) => source::run(spec, kernel, stop),
        Kernel::Booted(kernel) if spec.causes => booted::run_by_cause(&booted_spec(spec, kernel)?, stop),
        Kernel::Booted(kernel) => booted::run(&booted_spec(spec, kernel)?, stop),
        Kernel::Host => host::run(spec, stop),
    };
    Ok(result?.map(|result| RunResult { side, ..result }))
}

fn booted_spec(spec: &RunSpec, kernel: &QemuKernel) -> Result<QemuSpec, LabError> {
    let name = &spec.machine.name;
    let hardware = machines::emulated_hardware(name).transpose()?.ok_or_else(|| {
        LabError::new(format!("kernels are not booted on {name}"), format!("give --machine {BOOTED_MACHINE}"))
    })?;
    Ok(QemuSpec {
        kernel: kernel.clone(),
        machine: name.clone(),
        hardware,
        workload: spec.workload.clone(),
        seed: spec.seed,
        duration: spec.duration,
        trace: spec.trace.clone(),
        by_name: spec.by_name.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_kind() {
        for (name, origin) in [
            ("v6.6", Origin::Modelled),
            ("debian-6.12,base_slice_ns=1500000", Origin::Modelled),
            ("qemu:bookworm", Origin::Booted),
            ("host", Origin::RunHere),
        ] {
            let kernel = Kernel::parse(name).expect(name);
            assert_eq!((kernel.name(), kernel.origin(), origin_of(name)), (name, origin, origin));
            assert_eq!(kernel.generation().is_some(), origin == Origin::Modelled);
        }
        for name in ["v9.9", "qemu:/no/such/image", "hos"] {
            assert!(Kernel::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_takes_commits_out_refuses_every_other_kernel_in_the_same_words() {
        for name in ["host", "qemu:bookworm"] {
            let kernel = Kernel::parse(name).expect(name);
            let by_name = Kernel::parse_for(name, KernelNeed::ChangeLog, "bisect").expect_err(name);
            let modelled = Kernel::parse_for("v6.6", KernelNeed::ChangeLog, "bisect").expect("a generation");
            assert_eq!(by_name, kernel.rules("bisect").expect_err(name));
            assert_eq!(by_name, modelled.steps_to(&kernel, "bisect").expect_err(name));
            assert_eq!(by_name, kernel.steps_to(&modelled, "bisect").expect_err(name));
            assert!(kernel.after_steps(&[]).is_none());
            assert!(by_name.problem.starts_with("bisect takes modelled kernels, and"), "{by_name}");
            let swept = Kernel::parse_for(name, KernelNeed::Seeds, "a sweep").expect_err(name);
            assert_eq!(swept.hint, by_name.hint);
        }
    }

    #[test]
    fn equal_kernels_are_of_one_kind() {
        let same = |one: &str, other: &str| {
            // A commit that alters nothing is no kernel that anybody may ask for.
            let [one, other] = [one, other].map(|name| match origin_of(name) {
                Origin::Modelled => Kernel::from(name.parse::<Generation>().expect(name)),
                _ => Kernel::parse(name).expect(name),
            });
            assert_eq!(one.same_rules(&other), other.same_rules(&one));
            one.same_rules(&other)
        };
        for (one, other) in [("v6.5", "v6.5+avg-vruntime"), ("host", "host"), ("qemu:sid", "qemu:sid")] {
            assert!(same(one, other), "{one} {other}");
        }
        for (one, other) in
            [("v6.5", "v6.6"), ("host", "v6.6"), ("qemu:sid", "qemu:trixie"), ("host", "qemu:sid")]
        {
            assert!(!same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn each_runs_on_machines_of_its_kind() {
        let on = |kernel: &str, machine: &str| {
            Kernel::parse(kernel).expect(kernel).machine(machine).map(|(name, machine)| (name, machine.name))
        };
        let named = |name: &str, own: &str| Ok((name.to_string(), own.to_string()));
        assert_eq!(on("v6.6", DEFAULT_MACHINE), named(DEFAULT_MACHINE, DEFAULT_MACHINE));
        assert_eq!(on("qemu:sid", DEFAULT_MACHINE), named(BOOTED_MACHINE, BOOTED_MACHINE));
        assert_eq!(on("host", DEFAULT_MACHINE), named("host", "host"));
        assert!(on("qemu:sid", "vm40").is_err_and(|error| error.problem.contains("not on vm40")));
        assert!(on("host", "vm40").is_err_and(|error| error.problem.contains("not on vm40")));
    }
}
