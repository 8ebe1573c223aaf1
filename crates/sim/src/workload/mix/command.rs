//! Mixes as they are asked for: by a file, or by workloads beside another on a command line.
//!
//! Must not know: what a file means.

use std::sync::Arc;

use fairlab_event::Ns;
use fairlab_event::spelling::may_be_meant;
use toml::Table;

use super::Mix;
use super::changed_keys::{self, ChangedKey};
use super::file::{self, BuildMember, MixPlan, WORKLOADS_MAX};
use super::member::MixEntry;
use super::place::MemberPlace;
use crate::workload::Workload;
use crate::workload::catalogue::{self, BuildError, WorkloadFiles};
use crate::workload::replay::Script;
use crate::workload::tasks::TasksWorkload;

/// What a command line gives.
pub const USAGE: &str = "\
usage: mix FILE.toml [--set KEY=VALUE]...            also by the file's name alone: FILE.toml --set group./db.cpu.weight=39
       mix [--beside COMMAND]... WORKLOAD [OPTIONS]  ends with WORKLOAD; also run WORKLOAD --beside COMMAND
A file:
  [group.\"/db\"]           a control group, by its path; groups that are only named have defaults
  cpu.weight = 100        1 to 10000
  cpu.max = \"700000 100000\"
  \"cpu.max.burst\" = 400000
  cpu.idle = 1
  cpuset.cpus = \"0-3,8\"   where tasks in it may run, as far as the groups above allow

  [pod.api]               a pod's group as the kubelet makes it, /kubepods/burstable/api here; group = \"pod.api\" names it
  requests.cpu = \"500m\"   becomes cpu.weight; without, the limit
  limits.cpu = 2          becomes cpu.max
  \"cpu.max.burst\", cpuCFSQuotaPeriod = \"100ms\"
  [pod.api.container.web] a container's group below it, with the same keys: \"pod.api.web\"
  weights = \"2021\"        before all tables: shares become weights as in runc before 1.3.2; else \"2025\"
  [container.web]         docker run: cpus, cpu-shares, cpu-quota, cpu-period, cpuset-cpus
  [unit.db]               systemd: CPUWeight, CPUQuota = \"20%\", CPUQuotaPeriodSec, AllowedCPUs, Slice

  [[workload]]
  run = \"hackbench -g 4\"  any workload's command line; files in it lie beside this one. Or tasks: [[workload.task]]
  name = \"noise\"          the first word of run, numbered where repeated; metrics and outputs bear it
  main = true             what the file is run for: the mix ends with it (otherwise when all have ended, and the
                          first workload is what it is run for)
  group = \"/db\"           the root group, if nothing is said
  session = true          an autogroup of its own where the kernel has them on; or the autogroup's nice level
  policy = \"batch\"        other, batch, idle, fifo:PRIO, rr:PRIO
  nice = 5                -20 to 19
  slice = \"3ms\"           0.1 to 100 ms, from v6.12 on
  cpus = \"0-7\"            sched_setaffinity(); what a workload asks for itself goes first, here and above
  start = \"1s\"            from the file's beginning
  stop = \"20s\"            all its threads are killed

  [[at]]                  what an administrator does at a time
  time = \"5s\"
  move = \"noise\"          a workload's threads ...
  to = \"/other\"           ... into a group
  [[at]]
  time = \"6s\"
  group = \"/db\"           a write to files of a group
  cpu.weight = 1000
";

/// Files name files no deeper than this.
const DEPTH_MAX: usize = 8;

/// The mix that these arguments ask for.
///
/// # Errors
/// One line that says what is wrong, with file and line; for `--help` the usage text.
pub fn parse(args: &[String], files: &dyn WorkloadFiles) -> Result<Box<dyn Workload>, String> {
    match args {
        [word, ..] if ["-h", "--help"].contains(&word.as_str()) => Err(USAGE.to_string()),
        [word, ..] if word == "--beside" => beside_all(args, files),
        [path, rest @ ..] => of_file(path, &changed_keys::split(rest)?, files),
        [] => Err("a file is needed, or --beside COMMAND WORKLOAD".to_string()),
    }
}

fn of_file(
    path: &str,
    changes: &[ChangedKey],
    files: &dyn WorkloadFiles,
) -> Result<Box<dyn Workload>, String> {
    let text = files.text(path)?;
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let beside = MixFiles { folder, files };
    if beside.depth() > DEPTH_MAX {
        return Err(format!("{path}: files name each other more than {DEPTH_MAX} deep"));
    }
    let stem = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".toml");
    let plan = file::read(&text, stem, changes, &MixBuilder { files: &beside });
    let plan = plan.map_err(|(line, problem)| match line {
        0 => format!("{path}: {problem}"),
        line => format!("{path}: line {line}: {problem}"),
    })?;
    Ok(Box::new(Mix::new(plan)))
}

/// Arguments from which a workload and those beside it are taken apart.
fn split(args: &[String]) -> Result<(Vec<Vec<String>>, &[String]), String> {
    let (mut others, mut rest) = (Vec::new(), args);
    while let [word, after @ ..] = rest
        && word == "--beside"
    {
        let [line, after @ ..] = after else { return Err("--beside needs a command".to_string()) };
        let words =
            shlex::split(line).ok_or_else(|| format!("--beside '{line}': a quotation mark is not closed"))?;
        others.push(words);
        rest = after;
    }
    if rest.is_empty() {
        return Err("--beside: the workload is missing".to_string());
    }
    if others.len() >= WORKLOADS_MAX {
        return Err(format!("--beside: {} workloads are too many", others.len()));
    }
    Ok((others, rest.strip_prefix(&["--".to_string()]).unwrap_or(rest)))
}

fn beside_all(args: &[String], files: &dyn WorkloadFiles) -> Result<Box<dyn Workload>, String> {
    let (others, main) = split(args)?;
    let builder = MixBuilder { files };
    let mut plan = MixPlan { main: Some(0), ..MixPlan::default() };
    for words in std::iter::once(main).chain(others.iter().map(Vec::as_slice)) {
        let workload = builder.command(words)?;
        let first = words.first().map_or("", String::as_str);
        let first = first.rsplit('/').next().unwrap_or(first).trim_end_matches(".toml");
        let taken = |name: &str| plan.entries.iter().any(|entry: &MixEntry| entry.name == name);
        let numbered = || (2..).map(|number| format!("{first}-{number}")).find(|name| !taken(name));
        let name = if taken(first) { numbered().unwrap_or_default() } else { first.to_string() };
        plan.entries.push(MixEntry {
            name,
            says: words.join(" "),
            place: MemberPlace::default(),
            group: None,
            session: None,
            start: Ns::ZERO,
            stop: None,
            workload,
        });
    }
    Ok(Box::new(Mix::new(plan)))
}

/// The arguments of the mix of a workload and those beside it; the workload alone where there are none.
pub fn beside(others: &[String], workload: &[String]) -> Vec<String> {
    if others.is_empty() || workload.is_empty() {
        return workload.to_vec();
    }
    let options = others.iter().flat_map(|line| ["--beside".to_string(), line.clone()]);
    std::iter::once("mix".to_string()).chain(options).chain(workload.iter().cloned()).collect()
}

/// The command line of the workload that a mix is run for; `None` where tasks define it, or cannot be read.
pub fn headline_command(args: &[String], files: &dyn WorkloadFiles) -> Option<Vec<String>> {
    match args {
        [word, ..] if word == "--beside" => split(args).ok().map(|(_, main)| main.to_vec()),
        [path, rest @ ..] => file::main_command(&files.text(path).ok()?, &changed_keys::split(rest).ok()?),
        _ => None,
    }
}

/// Files that a mix's file names, relative to its folder.
struct MixFiles<'f> {
    folder: &'f str,
    files: &'f dyn WorkloadFiles,
}

impl MixFiles<'_> {
    fn path(&self, path: &str) -> String {
        match self.folder.is_empty() || path.starts_with('/') {
            true => path.to_string(),
            false => format!("{}/{path}", self.folder),
        }
    }
}

impl WorkloadFiles for MixFiles<'_> {
    fn text(&self, path: &str) -> Result<String, String> {
        self.files.text(&self.path(path))
    }

    fn script(&self, path: &str) -> Result<Arc<Script>, String> {
        self.files.script(&self.path(path))
    }

    fn depth(&self) -> usize {
        self.files.depth() + 1
    }
}

struct MixBuilder<'f> {
    files: &'f dyn WorkloadFiles,
}

impl BuildMember for MixBuilder<'_> {
    fn command(&self, words: &[String]) -> Result<Box<dyn Workload>, String> {
        catalogue::build(words, self.files).map_err(|error| match &error {
            BuildError::Unknown(name) => {
                let names = catalogue::WORKLOADS.iter().map(|kind| kind.name);
                let meant = may_be_meant(name, names);
                format!("{error}; {meant}'fairlab workloads list' lists all")
            }
            BuildError::Nothing | BuildError::Wrong { .. } => error.to_string(),
        })
    }

    fn tasks(&self, table: &Table) -> Result<Box<dyn Workload>, String> {
        Ok(Box::new(TasksWorkload::parse(table)?))
    }
}
