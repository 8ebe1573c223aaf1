//! The model beside the code of real releases, call by call: named workloads on machines of 4 to 192 CPUs, and cases by chance.
//! Releases are Debian's, or trees that the user has.
//!
//! A run counts as alike if nothing that was compared differs from its first call to its last. At the first difference its
//! comparison ends, so shares of comparisons alone would flatter the model.
//!
//! Must not know: what is compared in a call, how the answer is shown.

mod answer;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_files::shell::line_of;
use fairlab_lab::cells::CellWorkers;
use fairlab_lab::oracle::{OracleRun, Survey, SurveyCell};
use fairlab_lab::source::SourceKernel;
use fairlab_lab::{Kernel, LabError, Progress, machines};
use fairlab_native::build::Source;
use fairlab_verify::oracle::OracleFindings;

use crate::tree_model::model_of;

pub use answer::{OracleTable, ReleaseAnswer, RowAnswer};

/// A modelled kernel and the sources of the release that it stands for. The fair servers of v6.12 and later are off in both: the
/// model keeps nothing of one before the first real-time task is queued, and so begins its period later.
const RELEASES: [(&str, &str); 4] = [
    ("debian-5.10", "src:debian:5.10"),
    ("debian-6.1", "src:debian:6.1"),
    ("debian-6.12,fair_server_runtime=0", "src:debian:6.12,fair_server_runtime=0"),
    ("debian-7.2,fair_server_runtime=0", "src:debian:7.2,fair_server_runtime=0"),
];

/// Machines of 4, 40, 80 and 192 CPUs.
const MACHINES: [&str; 4] = ["layout:1x1x4x1", "layout:1x1x20x2", "layout:2x1x20x2", "layout:4x1x24x2"];

/// What runs on each: every kind of workload that needs no file.
const WORKLOADS: [&[&str]; 16] = [
    &["hackbench", "-g", "2", "-l", "40"],
    &["schbench", "-m", "2", "-t", "16", "-r", "1"],
    &["pipe", "-l", "1000"],
    &["tbench", "-c", "4", "--run-ms", "100"],
    &["uperf", "--cpus", "4", "--guest-cpus", "2", "--queues", "1", "--connections", "4", "--run-ms", "100"],
    &["vhost", "--run-ms", "100"],
    &["jobs", "spin", "-n", "10"],
    &["jobs", "yield", "-n", "10"],
    &["jobs", "io", "-n", "10"],
    &["jobs", "pairs", "-n", "10"],
    &["jobs", "spawn", "-n", "4", "-k", "4"],
    &["sessions", "1", "6:3000:1000", "2:5000"],
    &["periodic", "-n", "16"],
    &["spinners", "-n", "-10,-5,0,0,5,10,19", "-g", "100,200,400", "--run-us", "3000", "-s", "1000"],
    &["cgroup", "cpu.max=20000 10000", "hackbench", "-g", "1", "-l", "40"],
    &["daemons", "-g", "4", "-c", "4", "-p", "20", "periodic", "-n", "8"],
];

/// When each run of a named workload ends, unless something else is asked for.
pub const NAMED_RUN: Ns = Ns(300_000_000);

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Runs of each named workload on each machine, a seed each.
    pub seeds: u64,
    /// Cases by chance under each release.
    pub cases: u64,
    /// When each run of a named workload ends.
    pub duration: Ns,
}

/// What came of one release.
#[derive(Clone, Debug)]
pub struct Followed {
    /// The modelled kernel, which follows.
    pub kernel: String,
    /// The kernel that leads.
    pub against: String,
    /// The leader's release, as its sources say.
    pub release: String,
    /// Where its sources are from.
    pub sources: String,
    /// Commits that the sources show beyond their release, which the model has been given.
    pub backports: Vec<&'static str>,
    /// By machine, and last the cases by chance.
    pub rows: Vec<Row>,
}

/// Runs on one machine.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The machine; none where cases were drawn by chance.
    pub machine: Option<&'static str>,
    /// Runs that were made.
    pub runs: usize,
    /// What was compared in all of them.
    pub findings: OracleFindings,
    /// The runs that differ, each with its first difference.
    pub differ: Vec<OracleRun>,
    /// What went wrong in runs that have no answer: the tree's own code warned, or touched what is not there.
    pub failed: Vec<String>,
}

impl Row {
    fn on(machine: Option<&'static str>) -> Row {
        Row { machine, ..Row::default() }
    }

    fn add(&mut self, run: Result<OracleRun, String>) {
        self.runs += 1;
        let run = match run {
            Ok(run) => run,
            Err(problem) => return self.failed.push(problem),
        };
        self.findings.add(OracleFindings { first: None, ..run.findings.clone() });
        if run.findings.first.is_some() {
            self.differ.push(run);
        }
    }

    /// Runs in which nothing differs.
    pub fn alike(&self) -> usize {
        self.runs - self.differ.len() - self.failed.len()
    }
}

impl Followed {
    /// What was compared in all runs of this release.
    fn findings(&self) -> OracleFindings {
        let mut sum = OracleFindings::default();
        self.rows.iter().for_each(|row| sum.add(row.findings.clone()));
        sum
    }
}

/// A pair of kernels to be compared: a model and the sources of what it stands for.
#[derive(Clone, Debug)]
struct ReleasePair {
    /// The model's name with its settings.
    kernel: String,
    against: String,
    backports: Vec<&'static str>,
}

/// Follows the releases that `only` names, wherever: Debian's by their names, trees as `src:FOLDER`. An empty name means all of
/// Debian's. With a folder, runs are kept there. Gives `None` when `stop` was set before the end.
///
/// # Errors
/// No release has such a name, a kernel cannot be built or is not modelled, or as of [`Survey::make`].
pub fn survey(
    only: &[String],
    extent: Extent,
    folder: Option<&Path>,
    place: CellWorkers<'_>,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
) -> Result<Option<Vec<Followed>>, LabError> {
    let mut releases = Vec::new();
    for name in only {
        match name.strip_prefix(TREE) {
            Some(tree) => releases.extend(trees(tree, stop)?),
            None => releases.extend(of_debian(name)?),
        }
    }
    let tasks = tasks(releases.len(), extent);
    let cells = tasks.iter().map(|task| task.cell.clone()).collect();
    let pairs = releases.iter().map(|pair| (pair.kernel.as_str(), pair.against.as_str())).collect::<Vec<_>>();
    let survey = Survey::new(MACHINES[0], &pairs, cells, stop)?;
    let Some(runs) = survey.make(folder, place, on_progress, stop)? else { return Ok(None) };
    let rows = || MACHINES.map(Some).into_iter().chain([None]).map(Row::on).collect();
    let followed = releases.iter().enumerate().map(|(number, pair)| {
        let leader = survey.leader(number);
        let sources = match leader {
            Some(Kernel::Source(tree)) => tree.source().as_ref().map(Source::provenance).unwrap_or_default(),
            _ => String::new(),
        };
        Followed {
            kernel: name_of(&pair.kernel).to_string(),
            against: pair.against.clone(),
            release: leader.map(Kernel::release).unwrap_or_default(),
            sources,
            backports: pair.backports.clone(),
            rows: rows(),
        }
    });
    let mut all = followed.collect::<Vec<_>>();
    for (task, run) in tasks.iter().zip(runs) {
        all[task.release].rows[task.row].add(run);
    }
    Ok(Some(all))
}

/// What names of trees begin with.
const TREE: &str = "src:";

/// Debian's release of a name, or all of them where it is empty.
fn of_debian(only: &str) -> Result<Vec<ReleasePair>, LabError> {
    let named =
        |kernel: &str| only.is_empty() || [kernel, kernel.trim_start_matches("debian-")].contains(&only);
    let pair = |(kernel, against): (&str, &str)| ReleasePair {
        kernel: kernel.to_string(),
        against: against.to_string(),
        backports: Vec::new(),
    };
    let releases =
        RELEASES.into_iter().filter(|(kernel, _)| named(name_of(kernel))).map(pair).collect::<Vec<_>>();
    if releases.is_empty() {
        let known = RELEASES.map(|(kernel, _)| name_of(kernel)).join(", ");
        return Err(LabError::new(
            format!("no release is called '{only}'"),
            format!("there are {known}; a tree is named as src:FOLDER"),
        ));
    }
    Ok(releases)
}

/// The tree of a folder, or all those in a folder of such, each with the model that its own sources ask for.
fn trees(name: &str, stop: &AtomicBool) -> Result<Vec<ReleasePair>, LabError> {
    let machine = machines::find(MACHINES[0])?;
    let folder = Path::new(name);
    let names = match folder.is_dir() {
        true => Source::trees_in(folder)?.iter().map(|path| path.display().to_string()).collect(),
        false => vec![name.to_string()],
    };
    let pair = |name: String| {
        let mut against = format!("{TREE}{name}");
        let tree = SourceKernel::parse(&against)?;
        tree.prepare(&machine, &|_, _| (), stop)?;
        let (rules, backports) = model_of(&tree)?;
        let mut kernel = rules.name().to_string();
        // As in Debian's releases.
        if tree.manifest().is_some_and(|built| built.tunables.iter().any(|known| known == SERVER)) {
            [&mut kernel, &mut against].into_iter().for_each(|name| *name += &format!(",{SERVER}=0"));
        }
        Ok(ReleasePair { kernel, against, backports })
    };
    names.into_iter().map(pair).collect()
}

/// The tunable of fair servers.
const SERVER: &str = "fair_server_runtime";

/// A modelled kernel's name without its settings.
fn name_of(kernel: &str) -> &str {
    kernel.split_once(',').map_or(kernel, |(name, _)| name)
}

/// A run to be made: its release and its row.
struct Task {
    release: usize,
    row: usize,
    cell: SurveyCell,
}

fn tasks(releases: usize, extent: Extent) -> Vec<Task> {
    let mut tasks = Vec::new();
    for release in 0..releases {
        for (row, machine) in MACHINES.into_iter().enumerate() {
            for words in WORKLOADS {
                tasks.extend((1..=extent.seeds).map(|seed| Task {
                    release,
                    row,
                    cell: SurveyCell::Named {
                        pair: release,
                        machine: machine.to_string(),
                        workload: words.iter().map(ToString::to_string).collect(),
                        seed,
                        duration_ns: extent.duration.0,
                    },
                }));
            }
        }
        let case = |number| SurveyCell::Case { pair: release, number };
        let row = MACHINES.len();
        tasks.extend((1..=extent.cases).map(|number| Task { release, row, cell: case(number) }));
    }
    tasks
}

/// The command lines of the named workloads.
fn workloads() -> Vec<String> {
    WORKLOADS.map(line_of).into()
}

#[cfg(test)]
mod tests {
    use fairlab_lab::machines;
    use fairlab_lab::oracle::setting;

    use super::*;

    #[test]
    fn every_workload_can_run_on_every_machine() {
        for machine in MACHINES {
            let found = machines::find(machine).expect("a machine");
            let online = found.topology.online();
            for words in WORKLOADS {
                let setting = setting(machine, words, 1, NAMED_RUN).expect("a setting");
                let named =
                    fairlab_lab::workloads::build(&setting.workload).expect("a workload").named_cpus();
                assert!(named.and(online) == named, "{words:?} on {machine}");
            }
        }
    }

    #[test]
    fn a_release_that_is_not_there_is_refused() {
        let extent = Extent { seeds: 1, cases: 1, duration: NAMED_RUN };
        for (name, told) in [
            ("plan9", "no release is called 'plan9'"),
            ("src:/no/such/tree", "/no/such/tree: there is no such tree"),
            ("src:/", "/ is no kernel's tree and holds none"),
        ] {
            let place = CellWorkers::Threads(1);
            let error = survey(&[name.to_string()], extent, None, place, &|_| {}, &AtomicBool::new(false));
            let error = error.expect_err("there is none");
            assert!(error.to_string().contains(told), "{error}");
        }
    }

    #[test]
    fn tasks_are_those_of_the_extent() {
        let tasks = tasks(2, Extent { seeds: 3, cases: 5, duration: NAMED_RUN });
        let of = |release: usize, row: usize| {
            tasks.iter().filter(|task| (task.release, task.row) == (release, row)).count()
        };
        assert_eq!(of(0, 0), 3 * WORKLOADS.len());
        assert_eq!((of(1, MACHINES.len()), tasks.len()), (5, 2 * (4 * 3 * WORKLOADS.len() + 5)));
    }
}
