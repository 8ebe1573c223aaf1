//! Control groups (cgroup v2, the cpu controller): what a workload's groups are like, and a workload put into some.
//!
//! Must not know: how the kernel shares out time among groups.

use fairlab_event::Ns;
use fairlab_kernel::{Bandwidth, CpuMask};

use super::{Action, ThreadId, ThreadSpec, View, Workload};

/// What a command line gives.
pub const USAGE: &str = "\
usage: cgroup [FILE=VALUE]... [/ [FILE=VALUE]...]... WORKLOAD [ITS OPTIONS]
  cpu.weight=N            1 to 10000 (100)
  cpu.max='QUOTA PERIOD'  run time a period, both in us; 'max' is no limit
  cpu.max.burst=N         run time that may be saved from earlier periods, us (0)
  cpu.idle=1              all in it counts as SCHED_IDLE (from v5.15)
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
    pub max: Bandwidth,
    /// `cpu.idle`.
    pub idle: bool,
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
        GroupSpec { name: name.into(), parent: None, weight: 100, max: Bandwidth::UNLIMITED, idle: false }
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
    let (mut limit, mut burst) = (None, 0);
    for setting in settings {
        let (file, value) =
            setting.split_once('=').ok_or_else(|| format!("'{setting}' is not FILE=VALUE"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{file}: '{value}' is not a whole number"));
        match file {
            "cpu.weight" => group.weight = number()?,
            "cpu.max" => limit = cpu_max(value)?,
            "cpu.max.burst" => burst = number()?,
            "cpu.idle" => group.idle = number()? == 1,
            _ => return Err(format!("there is no file '{file}' here")),
        }
    }
    if !(1..=10_000).contains(&group.weight) {
        return Err(format!("cpu.weight: {} is outside 1 to 10000", group.weight));
    }
    if let Some((quota, period)) = limit {
        let burst = burst.saturating_mul(1000);
        group.max = Bandwidth::new(Ns(quota), Ns(period), Ns(burst))
            .map_err(|problem| format!("cpu.max: {problem}"))?;
    }
    Ok(group)
}

/// Quota and period in ns; `None` is no limit.
fn cpu_max(value: &str) -> Result<Option<(u64, u64)>, String> {
    let problem = || format!("cpu.max: '{value}' is not 'QUOTA PERIOD' in us, or 'max'");
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

    fn main_thread(&self) -> ThreadSpec {
        let spec = self.placed(self.inner.main_thread());
        ThreadSpec { group: Some(spec.group.unwrap_or(self.groups.len() - 1)), ..spec }
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        match self.inner.next(thread, view) {
            Action::Spawn(spec) => Action::Spawn(self.placed(spec)),
            Action::EnterGroup(group) => Action::EnterGroup(group + self.groups.len()),
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

    fn progress(&self) -> Option<(&'static str, u64)> {
        self.inner.progress()
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
            Bandwidth::new(Ns(20_000_000), Ns(100_000_000), Ns(5_000_000)).expect("a limit")
        );
        assert!(groups[1].idle && groups[1].max == Bandwidth::UNLIMITED);
        let (groups, _) = parse("cpu.max=max -- pipe").expect("groups");
        assert_eq!(groups[0].max, Bandwidth::UNLIMITED);
    }

    #[test]
    fn mistakes_are_told_in_one_line() {
        for (line, problem) in [
            ("cpu.weight=50 /", "the workload is missing"),
            ("cpu.weight=0 -- pipe", "cpu.weight: 0 is outside 1 to 10000"),
            ("cpu.weight=many -- pipe", "cpu.weight: 'many' is not a whole number"),
            ("cpu.max=20000_fast -- pipe", "cpu.max: '20000 fast' is not 'QUOTA PERIOD' in us, or 'max'"),
            ("cpu.max=10_100000 -- pipe", "cpu.max: a quota of 10000 ns is less than 1 ms"),
            ("cpu.shares=3 -- pipe", "there is no file 'cpu.shares' here"),
        ] {
            assert_eq!(parse(line).expect_err(line), problem);
        }
    }
}
