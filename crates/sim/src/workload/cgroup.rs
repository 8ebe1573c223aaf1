//! Control groups (cgroup v2, the cpu and cpuset controllers): what a workload's groups are like, and a workload put into some.
//!
//! Must not know: how the kernel shares out time among groups.

use fairlab_event::Ns;
use fairlab_event::spelling::may_be_meant;
use fairlab_kernel::{CfsLimit, CpuMask};

use super::{Action, MemberProgress, ThreadId, ThreadSpec, View, Workload};

/// What a command line gives.
pub const USAGE: &str = "\
usage: cgroup [FILE=VALUE]... [/ [FILE=VALUE]...]... WORKLOAD [ITS OPTIONS]
  cpu.weight=N            1 to 10000 (100)
  cpu.max='QUOTA PERIOD'  run time a period, both in us; 'max' is no limit
  cpu.max.burst=N         run time that may be saved from earlier periods, us (0)
  cpu.idle=1              all in it counts as SCHED_IDLE (from v5.15)
  cpuset.cpus=0-3,8       where tasks in it may run, as far as the groups above allow
  /                       begins a group below the one before
";

/// A control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    /// Its name; unique within the workload.
    pub name: String,
    /// The group that it is below, by its index; a group stands behind the one that it is below. `None`: the root.
    pub parent: Option<usize>,
    /// `cpu.weight`, 1 to 10000.
    pub weight: u64,
    /// `cpu.max` and `cpu.max.burst`.
    pub max: CfsLimit,
    /// `cpu.idle`.
    pub idle: bool,
    /// `cpuset.cpus`; `None`: those of the group above.
    pub cpus: Option<CpuMask>,
}

/// What is written to a file of a control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupFile {
    /// `cpu.weight`.
    Weight(u64),
    /// `cpu.max` and `cpu.max.burst`.
    Max(CfsLimit),
    /// `cpu.idle`.
    Idle(bool),
    /// `cpuset.cpus`; `None`: empty, which gives those of the group above.
    Cpus(Option<CpuMask>),
}

impl GroupSpec {
    /// The name of its folder in that of the group above it: a name may be the whole path, or hold several levels.
    pub fn folder(&self, groups: &[GroupSpec]) -> String {
        let above = self.parent.and_then(|parent| groups.get(parent));
        let within = above.and_then(|above| self.name.strip_prefix(above.name.as_str())?.strip_prefix('/'));
        within.unwrap_or(&self.name).trim_matches('/').replace('/', "-")
    }

    /// A group below the root as it is made: weight 100, no limit.
    pub fn new(name: impl Into<String>) -> GroupSpec {
        GroupSpec {
            name: name.into(),
            parent: None,
            weight: 100,
            max: CfsLimit::UNLIMITED,
            idle: false,
            cpus: None,
        }
    }
}

/// A workload whose threads all start in a group.
pub struct InGroups {
    groups: Vec<GroupSpec>,
    inner: Box<dyn Workload>,
}

impl InGroups {
    /// The groups that a command line describes, each below the one before, and the rest of the command line: the
    /// workload that belongs into the last of them.
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<(Vec<GroupSpec>, &[String]), String> {
        if args.first().is_some_and(|arg| matches!(arg.as_str(), "-h" | "--help")) {
            return Err(USAGE.to_string());
        }
        let begins = |arg: &String| arg != "/" && !arg.contains('=');
        let end = args.iter().position(begins).ok_or_else(|| "the workload is missing".to_string())?;
        let mut groups = Vec::new();
        for (depth, settings) in args[..end].split(|arg| arg == "/").enumerate() {
            let group = GroupSpec { parent: depth.checked_sub(1), ..GroupSpec::new(format!("group{depth}")) };
            groups.push(with_settings(group, settings)?);
        }
        let rest = &args[end..];
        Ok((groups, rest.strip_prefix(&["--".to_string()]).unwrap_or(rest)))
    }

    /// Puts `inner` into the last of `groups`.
    pub fn new(groups: Vec<GroupSpec>, inner: Box<dyn Workload>) -> InGroups {
        InGroups { groups, inner }
    }

    /// A thread of `inner` as it is among these groups.
    fn placed(&self, spec: ThreadSpec) -> ThreadSpec {
        ThreadSpec { group: spec.group.map(|group| group + self.groups.len()), ..spec }
    }
}

fn with_settings(mut group: GroupSpec, settings: &[String]) -> Result<GroupSpec, String> {
    let pairs = settings
        .iter()
        .map(|setting| setting.split_once('=').ok_or_else(|| format!("'{setting}' is not FILE=VALUE")));
    let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
    group.write(&pairs).map_err(|(file, problem)| match file.is_empty() {
        true => problem,
        false => format!("{file}: {problem}"),
    })?;
    Ok(group)
}

/// Files of a group, as control groups of version 2 call them.
const FILES: [&str; 5] = ["cpu.weight", "cpu.max", "cpu.max.burst", "cpu.idle", "cpuset.cpus"];

impl GroupSpec {
    /// Writes values to its files, all at once. Returns what the kernel is to be set to.
    ///
    /// # Errors
    /// The file, and what is wrong.
    pub fn write(&mut self, settings: &[(&str, &str)]) -> Result<Vec<GroupFile>, (String, String)> {
        let limit_now = self.max.quota().map(|quota| (quota.0, self.max.period().0));
        let (mut limit, mut burst, mut limits, mut told) = (limit_now, self.max.burst().0, None, Vec::new());
        for &(file, value) in settings {
            let wrong = |problem: String| (file.to_string(), problem);
            let number =
                || value.parse::<u64>().map_err(|_| wrong(format!("'{value}' is not a whole number")));
            match file {
                "cpu.weight" => told.push(GroupFile::Weight(number()?)),
                "cpu.max" => (limit, limits) = (cpu_max(value).map_err(wrong)?, Some(file)),
                "cpu.max.burst" => (burst, limits) = (number()?.saturating_mul(1000), limits.or(Some(file))),
                "cpu.idle" => match number()? {
                    idle @ 0..=1 => told.push(GroupFile::Idle(idle == 1)),
                    other => return Err(wrong(format!("{other} is neither 0 nor 1"))),
                },
                "cpuset.cpus" => {
                    let cpus = CpuMask::parse_list(value).map_err(wrong)?;
                    told.push(GroupFile::Cpus((!cpus.is_empty()).then_some(cpus)));
                }
                _ => {
                    let meant = may_be_meant(file, FILES);
                    return Err(wrong(format!(
                        "there is no such file: {meant}there are {}",
                        FILES.join(", ")
                    )));
                }
            }
        }
        if let Some(file) = limits {
            let saves = settings.iter().any(|(file, _)| *file == "cpu.max.burst") && burst > 0;
            let max = match limit {
                Some((quota, period)) => CfsLimit::new(Ns(quota), Ns(period), Ns(burst)),
                None if saves => Err("without a limit nothing is saved up: give cpu.max, too".to_string()),
                None => Ok(CfsLimit::UNLIMITED),
            };
            told.push(GroupFile::Max(max.map_err(|problem| (file.to_string(), problem))?));
        }
        told.iter().try_for_each(|file| self.take(*file))?;
        Ok(told)
    }

    /// One file's new value.
    fn take(&mut self, file: GroupFile) -> Result<(), (String, String)> {
        match file {
            GroupFile::Weight(weight) if !(1..=10_000).contains(&weight) => {
                return Err(("cpu.weight".to_string(), format!("{weight} is outside 1 to 10000")));
            }
            GroupFile::Weight(weight) => self.weight = weight,
            GroupFile::Max(max) => self.max = max,
            GroupFile::Idle(idle) => self.idle = idle,
            GroupFile::Cpus(cpus) => self.cpus = cpus,
        }
        Ok(())
    }
}

/// For each group where tasks in it may run: its own CPUs as far as the groups above allow, or theirs where nothing is left
/// (`cpuset.cpus.effective`).
///
/// Kernel: `compute_effective_cpumask()`, kernel/cgroup/cpuset.c. `None`: no group says anything of CPUs.
pub fn effective_cpus(groups: &[GroupSpec], online: &CpuMask) -> Option<Vec<CpuMask>> {
    groups.iter().any(|group| group.cpus.is_some()).then(|| {
        let mut effective: Vec<CpuMask> = Vec::new();
        for group in groups {
            let above = group.parent.and_then(|parent| effective.get(parent)).unwrap_or(online);
            let own = group.cpus.map_or(*above, |own| own.and(above));
            effective.push(if own.is_empty() { *above } else { own });
        }
        effective
    })
}

/// Where a task may run that asks for `wish`, in a group where tasks may run on `effective`: there if nothing of it is in its
/// wish (`cpuset_cpus_allowed()`).
pub fn allowed_in(wish: &CpuMask, effective: &CpuMask) -> CpuMask {
    let allowed = wish.and(effective);
    if allowed.is_empty() { *effective } else { allowed }
}

/// Quota and period in ns; `None` is no limit.
fn cpu_max(value: &str) -> Result<Option<(u64, u64)>, String> {
    let problem = || format!("'{value}' is not 'QUOTA PERIOD' in us, or 'max'");
    let mut parts = value.split([' ', '/']);
    let quota = parts.next().unwrap_or_default();
    let period = parts.next().unwrap_or("100000").parse::<u64>().map_err(|_| problem())?;
    if quota == "max" {
        return Ok(None);
    }
    let quota = quota.parse::<u64>().map_err(|_| problem())?;
    Ok(Some((quota.saturating_mul(1000), period.saturating_mul(1000))))
}

impl Workload for InGroups {
    fn begin_on(&mut self, cpus: &CpuMask) {
        self.inner.begin_on(cpus);
    }

    fn groups(&self) -> Vec<GroupSpec> {
        let below = self.groups.len();
        let inner = self.inner.groups().into_iter().map(|group| {
            let parent = group.parent.map_or(below - 1, |parent| parent + below);
            GroupSpec { parent: Some(parent), ..group }
        });
        self.groups.iter().cloned().chain(inner).collect()
    }

    fn group_writes(&self) -> Vec<(usize, GroupFile)> {
        let below = self.groups.len();
        self.inner.group_writes().into_iter().map(|(group, file)| (group + below, file)).collect()
    }

    fn main_thread(&self) -> ThreadSpec {
        let spec = self.placed(self.inner.main_thread());
        ThreadSpec { group: Some(spec.group.unwrap_or(self.groups.len() - 1)), ..spec }
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        match self.inner.next(thread, view) {
            Action::Spawn(spec) => Action::Spawn(self.placed(spec)),
            Action::EnterGroup(group) => Action::EnterGroup(group + self.groups.len()),
            Action::LeaveGroup => Action::EnterGroup(self.groups.len() - 1),
            Action::Administer(order) => {
                let below = self.groups.len();
                Action::Administer(Box::new(order.outside(
                    |thread| thread,
                    |group| group + below,
                    Some(below - 1),
                )))
            }
            action => action,
        }
    }

    fn system_call_done(&mut self, thread: ThreadId) -> Option<ThreadId> {
        self.inner.system_call_done(thread)
    }

    fn sees(&mut self, thread: ThreadId, word: u32) -> bool {
        self.inner.sees(thread, word)
    }

    fn spun(&mut self, word: u32, time: Ns) {
        self.inner.spun(word, time);
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        self.inner.must_wait(thread)
    }

    fn member(&self, thread: ThreadId) -> Option<&str> {
        self.inner.member(thread)
    }

    fn sets_scheduling(&self) -> bool {
        self.inner.sets_scheduling()
    }

    fn needs_kernel_threads(&self) -> bool {
        self.inner.needs_kernel_threads()
    }

    fn settle(&mut self, length: Ns) {
        self.inner.settle(length);
    }

    fn settled(&self) -> Option<Ns> {
        self.inner.settled()
    }

    fn output(&self, now: Ns) -> String {
        self.inner.output(now)
    }

    fn members(&self) -> Vec<MemberProgress<'_>> {
        self.inner.members()
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        self.inner.progress()
    }

    fn counted_at(&self) -> Option<Ns> {
        self.inner.counted_at()
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        self.inner.metrics()
    }

    fn runtime(&self) -> Option<Ns> {
        self.inner.runtime()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<(Vec<GroupSpec>, usize), String> {
        let args = line.split(' ').map(|arg| arg.replace('_', " ")).collect::<Vec<_>>();
        InGroups::parse(&args).map(|(groups, rest)| (groups, rest.len()))
    }

    #[test]
    fn files_are_read_and_groups_nest() {
        let (groups, rest) =
            parse("cpu.weight=50 cpu.max=20000_100000 cpu.max.burst=5000 / cpu.idle=1 schbench -m 2")
                .expect("groups");
        assert_eq!((groups.len(), rest), (2, 3));
        assert_eq!((groups[0].weight, groups[0].parent, groups[1].parent), (50, None, Some(0)));
        assert_eq!(
            groups[0].max,
            CfsLimit::new(Ns(20_000_000), Ns(100_000_000), Ns(5_000_000)).expect("a limit")
        );
        assert!(groups[1].idle && groups[1].max == CfsLimit::UNLIMITED);
        let (groups, _) = parse("cpu.max=max -- pipe").expect("groups");
        assert_eq!(groups[0].max, CfsLimit::UNLIMITED);
    }

    #[test]
    fn cpus_of_a_group_are_those_that_the_groups_above_leave() {
        let cpus = |list: &str| CpuMask::parse_list(list).expect("a list");
        let group = |parent, list: &str| GroupSpec {
            parent,
            cpus: (!list.is_empty()).then(|| cpus(list)),
            ..GroupSpec::new("group")
        };
        let groups = [
            group(None, "0-3"),
            group(Some(0), "2-5"),
            group(Some(1), ""),
            group(Some(0), "6"),
            group(None, ""),
        ];
        let effective = effective_cpus(&groups, &cpus("0-7")).expect("some have CPUs");
        assert_eq!(effective, ["0-3", "2-3", "2-3", "0-3", "0-7"].map(cpus));
        assert_eq!(effective_cpus(&groups[4..], &cpus("0-7")), None);
        assert_eq!(allowed_in(&cpus("3,5"), &effective[1]), cpus("3"));
        assert_eq!(allowed_in(&cpus("5"), &effective[1]), cpus("2-3"), "nothing of its wish");
    }

    #[test]
    fn what_is_written_later_keeps_the_rest() {
        let mut group = GroupSpec::new("x");
        group.write(&[("cpu.max", "50000 100000"), ("cpu.max.burst", "20000")]).expect("a limit");
        let told = group.write(&[("cpu.max", "30000")]).expect("another");
        let max = CfsLimit::new(Ns(30_000_000), Ns(100_000_000), Ns(20_000_000)).expect("a limit");
        assert_eq!((told, group.max), (vec![GroupFile::Max(max)], max));
        assert!(group.write(&[("cpu.max", "10000")]).is_err(), "the burst is more than that");
        assert_eq!(group.write(&[("cpuset.cpus", "")]), Ok(vec![GroupFile::Cpus(None)]));
    }

    #[test]
    fn mistakes_are_told_in_one_line() {
        for (line, problem) in [
            ("cpu.weight=50 /", "the workload is missing"),
            ("cpu.weight=0 -- pipe", "cpu.weight: 0 is outside 1 to 10000"),
            ("cpu.weight=many -- pipe", "cpu.weight: 'many' is not a whole number"),
            ("cpu.max=20000_fast -- pipe", "cpu.max: '20000 fast' is not 'QUOTA PERIOD' in us, or 'max'"),
            ("cpu.max=10_100000 -- pipe", "cpu.max: a quota of 10000 ns is less than 1 ms"),
            (
                "cpu.shares=3 -- pipe",
                "cpu.shares: there is no such file: there are cpu.weight, cpu.max, cpu.max.burst, cpu.idle, cpuset.cpus",
            ),
            ("cpu.idle=2 -- pipe", "cpu.idle: 2 is neither 0 nor 1"),
            (
                "cpu.max.burst=1000 -- pipe",
                "cpu.max.burst: without a limit nothing is saved up: give cpu.max, too",
            ),
            ("cpuset.cpus=3-1 -- pipe", "cpuset.cpus: '3-1' is a range that runs backwards"),
        ] {
            assert_eq!(parse(line).expect_err(line), problem);
        }
    }
}
