//! Kernels built from sources: `src:N`, `src:DIR@REV`, `src:debian:6.12` run what a modelled kernel runs, by the tree's own scheduler.
//!
//! A run goes on in a process of its own, which sends what came of it: what goes wrong in the tree's code ends that process.
//!
//! Must not know: how a tree is built, how its code is driven.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use fairlab_event::Ns;
use fairlab_files::temporary;
use fairlab_kernel::generation::PreemptionModel;
use fairlab_kernel::{Generation, Scheduler};
use fairlab_native::build::{BuildOptions, CachedKernel, Manifest, PreemptionChoice, Source, build, named};
use fairlab_native::worker::{Outbox, in_recording_worker};
use fairlab_native::{ImageFile, LoadedImage, NativeScheduler, OwnDomain};
use fairlab_sim::workload::Workload;
use fairlab_sim::{Engine, Machine};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::initial_lists::InitialLists;
use crate::kernel::{Kernel, newest_release};
use crate::merge::{counts_fields, read_counts};
use crate::run::carry_out;
use crate::warm_up::settling;
use crate::{LabError, Progress, RunResult, RunSpec, workloads};

/// What names of such kernels begin with.
const PREFIX: &str = "src:";

/// A kernel that is built from sources.
#[derive(Clone, Debug)]
pub struct SourceKernel {
    name: String,
    tree: SourceTree,
    /// Features that are switched: on or off.
    features: Vec<(String, bool)>,
    /// Tunables that are set.
    tunables: Vec<(String, i64)>,
    /// The preemption model that it is built with.
    preemption: PreemptionChoice,
    /// Whether its runs write a trace.
    recorded: bool,
    /// What it was built to, by ticks a second; the first user builds it.
    built: Arc<Mutex<BTreeMap<u64, CachedKernel>>>,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SourceTree {
    /// A kernel that was built before, by its name.
    Built(BuiltName),
    /// Sources, built when they are asked for.
    Sources(Source),
}

type BuiltName = String;

impl SourceKernel {
    /// Whether a name is of such a kernel.
    pub fn is_name(name: &str) -> bool {
        name.starts_with(PREFIX)
    }

    /// Reads a name: `src:`, what is run, then switches of features (`+NO_X`) and settings of tunables (`,name=1`).
    ///
    /// # Errors
    /// There is no such tree, and nothing was built under that name.
    pub fn parse(name: &str) -> Result<SourceKernel, LabError> {
        let (mut rest, mut features, mut tunables) =
            (name.strip_prefix(PREFIX).unwrap_or(name), Vec::new(), Vec::new());
        let mut preemption = PreemptionChoice::Default;
        // From the end: a path may hold any of the letters between.
        while let Some((before, setting)) = last_setting(rest) {
            match setting {
                SourceSetting::Feature(model, true) if PreemptionModel::named(model).is_some() => {
                    if preemption != PreemptionChoice::Default {
                        return Err(LabError::new(
                            format!("{name} names a preemption model a second time"),
                            "name one",
                        ));
                    }
                    preemption = PreemptionModel::named(model).map(Into::into).unwrap_or_default();
                }
                SourceSetting::Feature(feature, on) => features.push((feature.to_string(), on)),
                SourceSetting::Tunable(tunable, value) => tunables.push((tunable.to_string(), value)),
            }
            rest = before;
        }
        features.reverse();
        tunables.reverse();
        let tree = match named(rest) {
            Ok(_) => SourceTree::Built(rest.to_string()),
            Err(unknown) => match Source::parse(rest) {
                Ok(source) => SourceTree::Sources(source),
                Err(_) if is_plain(rest) => return Err(unknown),
                Err(refused) => return Err(refused),
            },
        };
        let (name, recorded, built) = (name.to_string(), false, Arc::default());
        Ok(SourceKernel { name, tree, features, tunables, preemption, recorded, built })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The repository and what names the commit there, if it is a commit of one.
    pub fn commit(&self) -> Option<(&Path, &str)> {
        match &self.tree {
            SourceTree::Sources(Source::Commit { folder, revision }) => Some((folder, revision)),
            SourceTree::Sources(_) | SourceTree::Built(_) => None,
        }
    }

    /// Another commit of its repository, with its settings; `None` where it is no commit of one.
    pub fn at(&self, revision: &str) -> Option<SourceKernel> {
        let (folder, own) = self.commit()?;
        let (folder, revision) = (folder.to_path_buf(), revision.to_string());
        let settings =
            self.name.strip_prefix(PREFIX)?.strip_prefix(&format!("{}@{own}", folder.display()))?;
        let source = Source::Commit { folder, revision };
        Some(SourceKernel {
            name: format!("{PREFIX}{source}{settings}"),
            tree: SourceTree::Sources(source),
            built: Arc::default(),
            ..self.clone()
        })
    }

    /// Whether both have equal settings.
    pub fn is_set_like(&self, other: &SourceKernel) -> bool {
        (&self.features, &self.tunables, self.preemption)
            == (&other.features, &other.tunables, other.preemption)
    }

    /// Whether both are of one tree with equal settings, whatever they are called.
    pub fn is_like(&self, other: &SourceKernel) -> bool {
        self.tree == other.tree && self.is_set_like(other)
    }

    /// What is known of it; `None` until it is built.
    pub fn manifest(&self) -> Option<Manifest> {
        let built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        Some(built.values().next()?.manifest.clone())
    }

    /// Its sources, where they can be found, and are what was built.
    pub fn source(&self) -> Option<Source> {
        let built = match &self.tree {
            SourceTree::Sources(source) => return Some(source.clone()),
            SourceTree::Built(name) => named(name).ok()?.manifest,
        };
        Source::parse(&built.source).ok().filter(|_| built.patches.is_empty())
    }

    /// What decides its runs; `None` until it is built.
    pub fn spec(&self) -> Option<Value> {
        let built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        let built = built.values().next()?;
        Some(json!({
            "name": self.name,
            "release": built.manifest.release,
            "key": built.key(),
            "features": self.features,
            "tunables": self.tunables,
        }))
    }

    /// What its code for a machine is known by; `None` until it is built.
    pub fn key(&self, machine: &Machine) -> Option<String> {
        let built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        built.get(&machine.hz).map(CachedKernel::key)
    }

    /// All that decides its runs on a machine; `None` until it is built.
    pub(crate) fn identity(&self, machine: &Machine) -> Option<String> {
        let built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        let built = built.get(&machine.hz)?;
        let (key, checksum) = (built.key(), &built.manifest.checksum);
        Some(format!("{key} {checksum} {:?} {:?} {:?}", self.features, self.tunables, self.preemption))
    }

    /// Builds it for the machine, unless it is built. `on_step` is told each step before it begins.
    ///
    /// # Errors
    /// It cannot be built, does not run on that machine, or lacks what is set.
    pub fn prepare(
        &self,
        machine: &Machine,
        on_step: &dyn Fn(&str, Progress),
        stop: &AtomicBool,
    ) -> Result<CachedKernel, LabError> {
        let mut known = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(built) = known.get(&machine.hz) {
            return Ok(built.clone());
        }
        let built = match &self.tree {
            SourceTree::Built(name) => named(name)?,
            SourceTree::Sources(source) => {
                let hz = u32::try_from(machine.hz).unwrap_or(u32::MAX);
                let preemption = self.preemption;
                build(source, &BuildOptions { hz, preemption, ..BuildOptions::default() }, on_step, stop)?
            }
        };
        self.check(&built, machine)?;
        known.insert(machine.hz, built.clone());
        Ok(built)
    }

    /// The same kernel, built for the machine, with a lock of its own: what another thread has locked when a process is created stays
    /// locked there for ever.
    fn apart(&self, machine: &Machine, stop: &AtomicBool) -> Result<SourceKernel, LabError> {
        let built = BTreeMap::from([(machine.hz, self.prepare(machine, &|_, _| (), stop)?)]);
        Ok(SourceKernel { built: Arc::new(Mutex::new(built)), ..self.clone() })
    }

    fn check(&self, built: &CachedKernel, machine: &Machine) -> Result<(), LabError> {
        let (name, manifest) = (&self.name, &built.manifest);
        if u64::from(manifest.hz) != machine.hz {
            return Err(LabError::new(
                format!(
                    "{name} ticks {} times a second, machine {} {}",
                    manifest.hz, machine.name, machine.hz
                ),
                format!("build it with --hz {}, or take another machine", machine.hz),
            ));
        }
        let wanted = PreemptionChoice::NAMED.iter().find(|(_, model)| *model == self.preemption);
        if let Some((wanted, _)) = wanted.filter(|(wanted, _)| *wanted != manifest.preemption) {
            return Err(LabError::new(
                format!("{name} was built with preemption model '{}'", manifest.preemption),
                format!("build it with --preemption {wanted}, or name its sources: 'src:DIR@REV+PREEMPT_…'"),
            ));
        }
        let features = self.features.iter().map(|(feature, _)| ("feature", feature, &manifest.features));
        let tunables = self.tunables.iter().map(|(tunable, _)| ("tunable", tunable, &manifest.tunables));
        let absent = features.chain(tunables).find(|(_, wanted, known)| !known.contains(wanted));
        match absent {
            Some((what, wanted, known)) => Err(lacking(name, what, wanted, known)),
            None => Ok(()),
        }
    }

    /// Switches and sets what the name says.
    fn set(&self, image: &LoadedImage) -> Result<(), LabError> {
        for (feature, on) in &self.features {
            if !image.set_feature(feature, *on) {
                return Err(lacking(&self.name, "feature", feature, &image.features()));
            }
        }
        for (tunable, value) in &self.tunables {
            let known = image.tunables();
            if !known.contains(tunable) {
                return Err(lacking(&self.name, "tunable", tunable, &known));
            }
            if !image.set_tunable(tunable, *value) {
                return Err(LabError::new(
                    format!("{}: the kernel refuses {tunable}={value}", self.name),
                    "give a value that it takes",
                ));
            }
        }
        Ok(())
    }
}

fn lacking(name: &str, what: &str, wanted: &str, known: &[String]) -> LabError {
    LabError::new(format!("{name} has no {what} '{wanted}'"), format!("it has {}", known.join(", ")))
}

enum SourceSetting<'n> {
    Feature(&'n str, bool),
    Tunable(&'n str, i64),
}

/// The last setting of a name, and what stands before it.
fn last_setting(name: &str) -> Option<(&str, SourceSetting<'_>)> {
    let (before, last) = name.split_at(name.rfind(['+', ','])?);
    let is_feature = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_uppercase())
            && word.chars().all(|char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_')
    };
    let setting = match last.split_at(1) {
        ("+", word) if is_feature(word) => {
            let off = word.strip_prefix("NO_");
            SourceSetting::Feature(off.unwrap_or(word), off.is_none())
        }
        (",", word) => {
            let (tunable, value) = word.split_once('=')?;
            let is_tunable =
                |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || matches!(char, '_' | '/');
            let plain = !tunable.is_empty() && tunable.chars().all(is_tunable);
            SourceSetting::Tunable(tunable, value.parse().ok().filter(|_| plain)?)
        }
        _ => return None,
    };
    (!before.is_empty()).then_some((before, setting))
}

/// Whether it is a name that a built kernel may have, rather than a path.
fn is_plain(name: &str) -> bool {
    !name.contains(['/', '@', ':'])
}

/// What a run's process sends at its end: the run with what its JSON leaves out.
#[derive(Serialize, Deserialize)]
struct ChildResult {
    run: RunResult,
    counts: Value,
    output: String,
    trace_losses: String,
    cgroups: String,
}

/// Runs a spec by the tree's own scheduler. Gives `None`, and leaves no trace, when `stop` was set before the end.
///
/// # Errors
/// The kernel cannot be built or cannot run the workload, or its code goes wrong: the error has the kernel's own report.
pub(crate) fn run(
    spec: &RunSpec,
    kernel: &SourceKernel,
    stop: &AtomicBool,
) -> Result<Option<RunResult>, LabError> {
    if spec.probes {
        let problem = format!("{} prints no probes: its image has none", kernel.name);
        return Err(LabError::new(problem, "leave --probes out, or take a modelled kernel"));
    }
    // Its files are read here: the process of the run opens none.
    let workload = workloads::build(&spec.workload)?;
    let kernel = SourceKernel { recorded: spec.trace.is_some(), ..kernel.apart(&spec.machine, stop)? };
    let own = RunSpec { kernel: Kernel::Source(Box::new(kernel.clone())), ..spec.clone() };
    let work = |scheduler| carried_out(&own, workload, scheduler).map(Some);
    let sent = kernel.drive(&spec.machine, stop, work);
    // Where it did not end, the writer of the trace is gone.
    let left = spec.trace.as_deref().filter(|_| !matches!(sent, Ok(Some(_))));
    left.and_then(Path::parent).into_iter().for_each(temporary::clean_beside);
    sent?.map(received).transpose()
}

impl SourceKernel {
    /// The scheduling domains that it builds on a machine: those of each CPU, the smallest first. `None`: it was stopped.
    ///
    /// # Errors
    /// The kernel cannot be built, or does not run there.
    pub fn domains(
        &self,
        machine: &Machine,
        stop: &AtomicBool,
    ) -> Result<Option<Vec<Vec<OwnDomain>>>, LabError> {
        let read = |scheduler: NativeScheduler| {
            Ok(Some(machine.topology.cpus().map(|cpu| scheduler.domains(cpu)).collect()))
        };
        self.drive(machine, stop, read)
    }

    /// Lets `act` drive the tree's scheduler, booted on a machine, in a process of its own. `None`: it was stopped.
    ///
    /// # Errors
    /// The kernel cannot be built, its code goes wrong, or `act` refuses.
    pub fn drive<T: Serialize + DeserializeOwned>(
        &self,
        machine: &Machine,
        stop: &AtomicBool,
        act: impl FnOnce(NativeScheduler) -> Result<Option<T>, LabError>,
    ) -> Result<Option<T>, LabError> {
        let built = self.prepare(machine, &|_, _| (), stop)?;
        let image = ImageFile::open_sound(&built.image(), &built.manifest.checksum)?;
        let work = |image: LoadedImage, _: &mut Outbox| {
            let scheduler = NativeScheduler::boot(image, machine)?.named(&self.name);
            self.set(scheduler.image())?;
            serde_json::to_vec(&act(scheduler)?)
                .map_err(|error| LabError::new(error.to_string(), "report this"))
        };
        let sent = in_recording_worker(&image, self.recorded, stop, work, &mut |_| ())?;
        let Some(sent) = sent else { return Ok(None) };
        serde_json::from_slice(&sent).map_err(damaged)
    }
}

fn damaged(problem: impl Display) -> LabError {
    LabError::new(format!("a run's process has sent no answer: {problem}"), "report this")
}

/// In the process of the run.
fn carried_out(
    spec: &RunSpec,
    workload: Box<dyn Workload>,
    scheduler: NativeScheduler,
) -> Result<ChildResult, LabError> {
    let mut engine = Engine::with_core(scheduler, spec.machine.clone(), spec.seed);
    let warmup = spec.warmup.map_or_else(|| settling_on(&spec.machine), Ok)?;
    // To stop a run is to end its process.
    let never = AtomicBool::new(false);
    let run = carry_out(spec, workload, &mut engine, warmup, &InitialLists::of_groups, &mut (), &never)?;
    let run = run.ok_or_else(|| LabError::new("the run was stopped", "run it again"))?;
    Ok(ChildResult {
        counts: Value::Object(counts_fields(&run.counts)),
        output: run.output.clone(),
        trace_losses: run.trace_losses.clone(),
        cgroups: run.beginning.cgroups.clone(),
        run,
    })
}

/// As long as a modelled kernel takes: domains and load averages are of one size.
fn settling_on(machine: &Machine) -> Result<Ns, LabError> {
    let model =
        Scheduler::new(Generation::asked_for(&newest_release())?, machine.topology.clone(), machine.tick());
    Ok(settling(&model))
}

fn received(sent: ChildResult) -> Result<RunResult, LabError> {
    let ChildResult { run, counts, output, trace_losses, cgroups } = sent;
    let counts = read_counts(&counts).ok_or_else(|| damaged("its counts lack something"))?;
    let beginning = InitialLists { cgroups, ..InitialLists::default() };
    Ok(RunResult { counts, output, trace_losses, beginning, ..run })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines;

    /// Another thread may hold the kernel's lock when the process of a run is created.
    #[test]
    fn a_runs_process_has_a_lock_of_its_own() {
        let kernel = SourceKernel::parse("src:debian:6.1").expect("a kernel");
        let machine = machines::find("vm4").expect("a machine");
        let apart = kernel.apart(&machine, &AtomicBool::new(false)).expect("it is built");
        let _held = kernel.built.lock().expect("the lock");
        assert!(apart.built.try_lock().is_ok_and(|built| built.contains_key(&machine.hz)));
    }

    /// What a name says behind the tree, and the tree.
    fn read(name: &str) -> (String, Vec<String>) {
        let (mut rest, mut settings) = (name, Vec::new());
        while let Some((before, setting)) = last_setting(rest) {
            settings.push(match setting {
                SourceSetting::Feature(feature, on) => format!("{feature} {on}"),
                SourceSetting::Tunable(tunable, value) => format!("{tunable} {value}"),
            });
            rest = before;
        }
        (rest.to_string(), settings)
    }

    #[test]
    fn settings_stand_behind_the_tree() {
        for (name, tree, settings) in [
            ("mine", "mine", &[][..]),
            ("mine+NO_PLACE_LAG", "mine", &["PLACE_LAG false"]),
            (
                "debian:6.12,base_slice_ns=1500000+HRTICK",
                "debian:6.12",
                &["HRTICK true", "base_slice_ns 1500000"],
            ),
            ("/a+b,c/linux@v6.12,x", "/a+b,c/linux@v6.12,x", &[]),
            ("/a+B/linux", "/a+B/linux", &[]),
            ("6.12,rt_runtime_us=-1", "6.12", &["rt_runtime_us -1"]),
            ("7.2,llc_balancing/enabled=0", "7.2", &["llc_balancing/enabled 0"]),
            ("+NO_X", "+NO_X", &[]),
        ] {
            let expected = settings.iter().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!(read(name), (tree.to_string(), expected), "{name}");
        }
    }

    #[test]
    fn a_preemption_model_is_spelled_as_for_modelled_kernels() {
        let model = |name: &str| SourceKernel::parse(name).map(|kernel| (kernel.preemption, kernel.features));
        let (none, features) = model("src:debian:6.12+PREEMPT_NONE+NO_PLACE_LAG").expect("a kernel");
        assert_eq!((none, features), (PreemptionChoice::None, vec![("PLACE_LAG".to_string(), false)]));
        assert_eq!(model("src:debian:6.12+PREEMPT").expect("a kernel").0, PreemptionChoice::Full);
        assert_eq!(model("src:debian:6.12").expect("a kernel").0, PreemptionChoice::Default);
        let told = model("src:debian:6.12+PREEMPT+PREEMPT_NONE").expect_err("one of them is meant");
        assert!(told.problem.contains("a second time"), "{told:?}");
    }

    #[test]
    fn another_commit_has_the_settings_of_the_first() {
        let folder = temporary::PrivateFolder::create().expect("a folder");
        let name =
            |revision: &str| format!("src:{}@{revision},base_slice_ns=3+NO_HRTICK", folder.path().display());
        let kernel = SourceKernel::parse(&name("v6.12")).expect("a kernel");
        assert_eq!(kernel.commit(), Some((folder.path(), "v6.12")));
        let other = kernel.at("0123abc").expect("a commit");
        assert_eq!(
            (other.name(), other.commit()),
            (name("0123abc").as_str(), Some((folder.path(), "0123abc")))
        );
        assert!(other.is_set_like(&kernel) && !other.is_like(&kernel));
        let whole = SourceKernel::parse(&format!("src:{}", folder.path().display())).expect("a kernel");
        assert!(whole.commit().is_none() && whole.at("v6.12").is_none() && !whole.is_set_like(&kernel));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        for (name, problem) in [
            ("src:no-such-kernel", "no built kernel has the name 'no-such-kernel'"),
            ("src:/no/such/tree@v6.12", "/no/such/tree@v6.12: there is no such tree"),
            ("src:debian:x", "debian:x: 'x' is no release"),
            ("src:", "no built kernel has the name ''"),
        ] {
            let refused = SourceKernel::parse(name).expect_err(name);
            assert_eq!(refused.problem, problem, "{name}");
        }
    }
}
