//! Which kernel ran on which machine, and how that came about.

use crate::{Ns, Pid};

/// What is known of the kernel and the machine whose events these are; empty or `None` where nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// The kernel's release (`uname -r`); of a modelled kernel, its name without the `v`.
    pub release: String,
    /// The machine's name (`uname -n`); of a modelled machine, its name there.
    pub node: String,
    /// The architecture (`uname -m`).
    pub architecture: String,
    /// How many CPUs there are.
    pub cpus: Option<u32>,
    /// How the events came about, where Fairlab made them: `modelled`, `booted`, `run here`.
    pub origin: String,
    /// Fairlab's name of the kernel, where Fairlab made the events.
    pub kernel: String,
    /// The seed of a run that has one.
    pub seed: Option<u64>,
    /// Ticks a second.
    pub hz: Option<u64>,
    /// Which CPUs share what: a line each CPU and node, as recorders list them in `sched_info.txt`
    /// (`cpu0: threads 0-1 core 0-7 package 0 node 0`).
    pub topology: Vec<String>,
    /// The control groups that there were, a line each as recorders list them in `cgroups-start.txt`, a tab between two columns:
    /// path, inode, `cpu.weight`, `cpu.max`, `cpu.idle`, threads, `subtree_control`, `cpu.stat`, `cpu.max.burst`.
    pub groups: Vec<String>,
    /// Which tasks were in groups below the root, each with the group's path; written traces do not carry it.
    pub members: Vec<(Pid, String)>,
    /// Events that were recorded, by subsystem and name (`sched/*`), as `events.txt` lists them.
    pub recorded: Vec<String>,
    /// Whose switches were recorded.
    pub scope: SwitchScope,
}

/// Whose switches a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SwitchScope {
    /// Those of every task, or of every task on some CPUs.
    #[default]
    Cpus,
    /// Those of some tasks alone: the idle task stands for whatever else ran.
    Tasks,
    /// As that, and where the tasks ran is not told: each stands on a CPU of its own.
    TasksWithoutCpus,
}

impl SwitchScope {
    const NAMED: [(SwitchScope, &'static str); 2] =
        [(SwitchScope::Tasks, "tasks"), (SwitchScope::TasksWithoutCpus, "tasks without CPUs")];

    /// What written traces call it; none where there is nothing to say.
    pub fn name(self) -> Option<&'static str> {
        SwitchScope::NAMED.into_iter().find(|(scope, _)| *scope == self).map(|(_, name)| name)
    }

    /// The scope of this name.
    pub fn by_name(name: &str) -> Option<SwitchScope> {
        SwitchScope::NAMED.into_iter().find(|(_, known)| *known == name).map(|(scope, _)| scope)
    }
}

impl System {
    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == System::default()
    }

    /// What is known here, and of `other` what is not.
    #[must_use]
    pub fn or(&self, other: &System) -> System {
        let text = |own: &String, other: &String| if own.is_empty() { other } else { own }.clone();
        let list = |own: &Vec<String>, other: &Vec<String>| if own.is_empty() { other } else { own }.clone();
        System {
            release: text(&self.release, &other.release),
            node: text(&self.node, &other.node),
            architecture: text(&self.architecture, &other.architecture),
            cpus: self.cpus.or(other.cpus),
            origin: text(&self.origin, &other.origin),
            kernel: text(&self.kernel, &other.kernel),
            seed: self.seed.or(other.seed),
            hz: self.hz.or(other.hz),
            topology: list(&self.topology, &other.topology),
            groups: list(&self.groups, &other.groups),
            members: if self.members.is_empty() { &other.members } else { &self.members }.clone(),
            recorded: list(&self.recorded, &other.recorded),
            scope: if self.scope == SwitchScope::Cpus { other.scope } else { self.scope },
        }
    }

    /// Whether an event of the scheduler was recorded, whether or not it happened.
    pub fn records(&self, event: &str) -> bool {
        let is_it =
            |name: &String| name.strip_prefix("sched/").is_some_and(|name| name == "*" || name == event);
        self.recorded.iter().any(is_it)
    }
}

/// A control group below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlGroup<'s> {
    /// Its path from the root, `/a/b`.
    pub path: &'s str,
    /// Its number, as `cgroup_attach_task` and probes print it.
    pub id: u64,
    /// Its quota, if it has one.
    pub limit: Option<GroupLimit>,
}

/// How long the tasks of a group may run in each period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupLimit {
    /// On all CPUs together.
    pub quota: Ns,
    /// After which the quota is there again.
    pub period: Ns,
    /// How much of earlier periods may be used besides.
    pub burst: Ns,
}

impl System {
    /// The groups below the root, as far as their lines can be read.
    pub fn control_groups(&self) -> impl Iterator<Item = ControlGroup<'_>> {
        let group = |line: &'_ str| {
            let columns: Vec<&str> = line.split('\t').collect();
            let us = |text: &str| text.trim().parse::<u64>().ok()?.checked_mul(1_000).map(Ns);
            let limit = columns.get(3).and_then(|limit| limit.split_once(' ')).and_then(|(quota, period)| {
                let burst = columns.get(8).and_then(|burst| us(burst)).unwrap_or_default();
                Some(GroupLimit { quota: us(quota)?, period: us(period)?, burst })
            });
            Some((columns.first()?.len(), columns.get(1)?.parse::<u64>().ok()?, limit))
        };
        let groups = self.groups.iter().filter(|line| line.starts_with('/') && !line.starts_with("/\t"));
        groups.filter_map(move |line| {
            let (length, id, limit) = group(line)?;
            Some(ControlGroup { path: line.get(..length)?, id, limit })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_quotas_or_none() {
        let lines = [
            "/\t1\t-\t-\t-\t-\tcpu\tusage_usec 0 ",
            "/a\t43\t100\t30000 25000\t-\t-\tcpu\tusage_usec 0 \t500",
            "/a/b\t44\t100\tmax 100000\t0",
            "/c\tx\t100\t1 2",
            "nonsense",
        ];
        let system = System { groups: lines.map(String::from).to_vec(), ..System::default() };
        let limit = GroupLimit { quota: Ns::from_ms(30), period: Ns::from_ms(25), burst: Ns(500_000) };
        let of = |path, id, limit| ControlGroup { path, id, limit };
        assert_eq!(
            system.control_groups().collect::<Vec<_>>(),
            [of("/a", 43, Some(limit)), of("/a/b", 44, None)]
        );
    }

    #[test]
    fn what_one_place_does_not_tell_another_does() {
        let own = System { release: "6.6".to_string(), seed: Some(3), ..System::default() };
        let other = System {
            release: "6.1".to_string(),
            node: "box".to_string(),
            seed: Some(4),
            topology: vec!["cpu0: threads 0".to_string()],
            scope: SwitchScope::Tasks,
            ..System::default()
        };
        assert_eq!(own.or(&other), System { release: "6.6".to_string(), seed: Some(3), ..other.clone() });
        assert_eq!(System::default().or(&other), other);
    }

    #[test]
    fn events_of_the_scheduler_are_recorded_one_by_one_or_all() {
        let recorded = |names: &[&str]| System {
            recorded: names.iter().map(ToString::to_string).collect(),
            ..System::default()
        };
        assert!(recorded(&["irq/*", "sched/*"]).records("sched_waking"));
        assert!(recorded(&["sched/sched_switch"]).records("sched_switch"));
        assert!(!recorded(&["sched/sched_switch", "irq/*"]).records("sched_waking"));
    }
}
