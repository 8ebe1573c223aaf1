//! A kernel of any kind: one of the model, one that is booted, or the one that runs here; what each can do, and how each runs.
//!
//! Only this room knows the kinds apart. Whoever makes runs, compares them or searches with them asks here, and so every
//! refusal has one wording.
//!
//! Must not know: what runs are made for.

use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use fairlab_boot::Mode;
use fairlab_event::Origin;
use fairlab_kernel::Generation;
use fairlab_sim::Machine;

use crate::booted::{self, QemuKernel, QemuSpec};
use crate::host::{self, Observation};
use crate::setting::DEFAULT_MACHINE;
use crate::{LabError, RunResult, RunSpec, machines, run_watched, workloads};

/// Where kernels are booted, when the user names no machine.
const BOOTED_MACHINE: &str = "emulated:1x4x1";

/// A kernel that can run a workload.
#[derive(Clone, Debug)]
pub enum Kernel {
    /// A generation of the model.
    Modelled(Box<Generation>),
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

/// How a kernel's runs come about, by its name alone.
pub fn origin_of(name: &str) -> Origin {
    match name {
        host::NAME => Origin::RunHere,
        name if QemuKernel::is_name(name) => Origin::Booted,
        _ => Origin::Modelled,
    }
}

/// The modelled kernel of a name, for `what`, which takes no other: it takes commits out and puts them in.
///
/// # Errors
/// The name is another kind's, or means no generation.
pub fn modelled(name: &str, what: &str) -> Result<Generation, LabError> {
    match origin_of(name) {
        Origin::Modelled => Ok(Generation::asked_for(name)?),
        _ => Err(refused(name, what)),
    }
}

fn refused(name: &str, what: &str) -> LabError {
    LabError::new(
        format!("{what} takes modelled kernels, and {name} is a kernel as it is"),
        "name the modelled one of its generation; run, compare and scenario take both",
    )
}

impl Kernel {
    /// The kernel that a name means: `v6.6` and its variants, `qemu:bookworm`, `qemu:PATH`, `host`.
    ///
    /// # Errors
    /// The name means no generation, or an image that is not there.
    pub fn parse(name: &str) -> Result<Kernel, LabError> {
        if name == host::NAME {
            return Ok(Kernel::Host);
        }
        match QemuKernel::parse(name) {
            Some(booted) => booted.map(Kernel::Booted),
            None => Ok(Generation::asked_for(name)?.into()),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Kernel::Modelled(generation) => generation.name(),
            Kernel::Booted(kernel) => kernel.name(),
            Kernel::Host => host::NAME,
        }
    }

    /// How its runs come about.
    pub fn origin(&self) -> Origin {
        match self {
            Kernel::Modelled(_) => Origin::Modelled,
            Kernel::Booted(_) => Origin::Booted,
            Kernel::Host => Origin::RunHere,
        }
    }

    /// Its rules, if it is modelled.
    pub fn generation(&self) -> Option<&Generation> {
        match self {
            Kernel::Modelled(generation) => Some(generation),
            Kernel::Booted(_) | Kernel::Host => None,
        }
    }

    /// Its rules, for `what`, which works with nothing else.
    ///
    /// # Errors
    /// It is not modelled.
    pub fn rules(&self, what: &str) -> Result<&Generation, LabError> {
        self.generation().ok_or_else(|| refused(self.name(), what))
    }

    /// Whether its time is virtual: how busy this host is does not change a run.
    pub fn has_virtual_time(&self) -> bool {
        !matches!(self, Kernel::Host)
    }

    /// Whether it runs on every machine. Another one runs on machines of its own kind, and modelled ones beside it on the
    /// model of those.
    pub fn takes_presets(&self) -> bool {
        matches!(self, Kernel::Modelled(_))
    }

    /// Whether it runs several workloads at once, each as if it were alone.
    pub fn runs_several_at_once(&self) -> bool {
        matches!(self, Kernel::Modelled(_))
    }

    /// Whether the machine's chance is drawn from a run's seed, so that seeds differ and a run is a function of its seed.
    pub fn draws_chance(&self) -> bool {
        matches!(self, Kernel::Modelled(_))
    }

    /// Whether a workload can settle on it before anything is measured. Others are measured from the start, and modelled ones
    /// beside them likewise.
    pub fn settles(&self) -> bool {
        matches!(self, Kernel::Modelled(_))
    }

    /// Whether it runs any command, beside the workloads that Fairlab knows.
    pub fn runs_commands(&self) -> bool {
        !matches!(self, Kernel::Modelled(_))
    }

    /// Whether a run starts processes or changes settings of this host, which must be put back before the program ends.
    pub fn changes_host(&self) -> bool {
        !matches!(self, Kernel::Modelled(_))
    }

    /// What its runs mean, where that is not plain, in a line for people.
    pub fn meaning(&self) -> Option<String> {
        match self {
            Kernel::Modelled(_) => None,
            Kernel::Booted(_) => Some(format!("booted kernels: {}", Mode::Deterministic.meaning())),
            Kernel::Host => Some(
                "host: latencies, switches and migrations are those of the workload's own tasks; a CPU is busy with whatever runs there"
                    .to_string(),
            ),
        }
    }

    /// What its runs lack on this host, in a line for people.
    pub fn lacks(&self) -> Option<String> {
        match self {
            Kernel::Modelled(_) | Kernel::Booted(_) => None,
            Kernel::Host => Observation::of_this_host().lacks().map(|lacks| format!("host: {lacks}")),
        }
    }

    /// The machine on which it runs when the user says `name`, and what a command line calls that.
    ///
    /// # Errors
    /// There is no such machine, or this kernel does not run there.
    pub(crate) fn machine(&self, name: &str) -> Result<(String, Machine), LabError> {
        match self {
            Kernel::Modelled(_) => Ok((name.to_string(), machines::find(name)?)),
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
            Kernel::Modelled(_) | Kernel::Booted(_) => Ok(()),
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

/// Runs a spec on its kernel, of whatever kind. Gives `None`, and leaves no trace, when `stop` was set before the end.
///
/// # Errors
/// The workload's options are wrong, the kernel cannot run it, or the trace cannot be written.
pub fn run(spec: &RunSpec, stop: &AtomicBool) -> Result<Option<RunResult>, LabError> {
    match &spec.kernel {
        Kernel::Modelled(_) => run_watched(spec, stop, &mut ()),
        Kernel::Booted(kernel) => booted::run(&booted_spec(spec, kernel)?, stop),
        Kernel::Host => host::run(spec, stop),
    }
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
            let by_name = modelled(name, "bisect").expect_err(name);
            assert_eq!(by_name, kernel.rules("bisect").expect_err(name));
            assert!(by_name.problem.starts_with("bisect takes modelled kernels"), "{by_name}");
        }
        assert_eq!(modelled("v6.6", "bisect").expect("a generation").name(), "v6.6");
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
