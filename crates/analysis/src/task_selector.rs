//! Whose numbers: a task's name, a task, a control group, or a workload of a mix; and how a metric of theirs is called.
//!
//! A metric by name is called `WHO METRIC`: `cyclictest wakeup_latency_ns_p99`. Must not know: what is counted.

use std::fmt;

use fairlab_event::{Comm, Pid};

/// Some tasks, by what they are called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskSelector {
    /// Tasks of this name. Names that differ only in a number at the end are one: see [`stem`]. `NAME:PID` is one of them, as answers
    /// print it.
    Task(String),
    /// One task.
    Pid(Pid),
    /// The tasks of a control group and of the groups below it, by its path.
    Group(String),
    /// The tasks of one workload of a mix, by its name there.
    Workload(String),
}

/// The kinds of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameKind {
    /// Names of tasks.
    Task,
    /// Control groups.
    Group,
    /// Workloads of a mix.
    Workload,
}

/// How a workload is called whose name is that of other tasks, too.
const WORKLOAD: &str = "workload:";

impl TaskSelector {
    /// What a user means by a word. A path is a group, a number a task, `workload:NAME` a workload. Anything else is a task's
    /// name, or a workload's where no task has that name.
    pub fn parse(text: &str) -> TaskSelector {
        let text = text.trim();
        if text.starts_with('/') {
            return TaskSelector::Group(text.to_string());
        }
        if let Some(name) = text.strip_prefix(WORKLOAD) {
            return TaskSelector::Workload(name.to_string());
        }
        match text.parse::<i32>() {
            Ok(pid) if pid >= 0 => TaskSelector::Pid(Pid(pid)),
            _ => TaskSelector::Task(text.to_string()),
        }
    }

    /// With a task's name as long as the kernel keeps one: it cuts longer ones.
    #[must_use]
    pub fn as_kept(self) -> TaskSelector {
        match self {
            TaskSelector::Task(name) if name.len() >= Comm::LEN => TaskSelector::Task(match thread(&name) {
                Some((name, pid)) => format!("{}:{pid}", Comm::from(name).to_str()),
                None => Comm::from(name.as_str()).to_str().into_owned(),
            }),
            who => who,
        }
    }

    /// Its kind.
    pub const fn kind(&self) -> NameKind {
        match self {
            TaskSelector::Task(_) | TaskSelector::Pid(_) => NameKind::Task,
            TaskSelector::Group(_) => NameKind::Group,
            TaskSelector::Workload(_) => NameKind::Workload,
        }
    }

    /// A workload's name that cannot be taken for a task's.
    pub fn marked(name: &str) -> String {
        format!("{WORKLOAD}{name}")
    }

    /// Whether a task of this id and name is meant, where that alone tells.
    pub fn means_task(&self, pid: Pid, comm: &str) -> bool {
        match self {
            TaskSelector::Task(name) => {
                let is_called = |name: &str| name == comm || name == stem(comm);
                is_called(name) || thread(name).is_some_and(|(name, one)| one == pid && is_called(name))
            }
            TaskSelector::Pid(one) => *one == pid,
            TaskSelector::Group(_) | TaskSelector::Workload(_) => false,
        }
    }
}

impl fmt::Display for TaskSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskSelector::Task(name) | TaskSelector::Group(name) | TaskSelector::Workload(name) => {
                f.write_str(name)
            }
            TaskSelector::Pid(pid) => write!(f, "{pid}"),
        }
    }
}

/// A task's name without a number at its end that `-` or `:` sets off: `cyclictest-13` and `cyclictest-2` are `cyclictest`. A name
/// that is nothing but that stays.
pub fn stem(comm: &str) -> &str {
    let without = comm.trim_end_matches(|last: char| last.is_ascii_digit());
    match without.strip_suffix(['-', ':']) {
        Some(stem) if without.len() < comm.len() && !stem.is_empty() => stem,
        _ => comm,
    }
}

/// The parts of `NAME:PID`. Names have colons in them, too, and only the whole tells which it is.
fn thread(name: &str) -> Option<(&str, Pid)> {
    let (name, number) = name.rsplit_once(':')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let pid = number.parse().ok().filter(|_| is_number && !name.is_empty())?;
    Some((name, Pid(pid)))
}

/// The parts of `WHO METRIC`. A task's name may have spaces in it, a metric's has none.
pub fn split(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once(' ').filter(|(who, metric)| !who.is_empty() && !metric.is_empty())
}

/// What a metric is called without whose it is.
pub fn plain(name: &str) -> &str {
    split(name).map_or(name, |(_, metric)| metric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_the_end_are_no_part_of_a_name() {
        for (comm, expected) in [
            ("cyclictest-13", "cyclictest"),
            ("hackbench", "hackbench"),
            ("kworker/0:1", "kworker/0"),
            ("migration/3", "migration/3"),
            ("worker:7", "worker"),
            ("CPU 3/KVM", "CPU 3/KVM"),
            ("sha256", "sha256"),
            ("a-", "a-"),
            ("-13", "-13"),
            ("7", "7"),
            ("", ""),
        ] {
            assert_eq!(stem(comm), expected, "{comm}");
        }
    }

    #[test]
    fn words_mean_groups_tasks_and_names() {
        let group = TaskSelector::Group("/db".to_string());
        assert_eq!(
            (TaskSelector::parse("/db"), TaskSelector::parse(" 17 ")),
            (group, TaskSelector::Pid(Pid(17)))
        );
        assert_eq!(TaskSelector::parse("-3"), TaskSelector::Task("-3".to_string()));
        assert_eq!(
            TaskSelector::parse(&TaskSelector::marked("web")),
            TaskSelector::Workload("web".to_string())
        );
        let worker = TaskSelector::parse("worker");
        assert!(worker.means_task(Pid(3), "worker-12") && worker.means_task(Pid(3), "worker"));
        assert!(
            !worker.means_task(Pid(3), "workers")
                && !TaskSelector::parse("worker-1").means_task(Pid(3), "worker-2")
        );
    }

    #[test]
    fn a_thread_is_meant_by_its_name_and_id() {
        let means = |asked: &str, pid: i32, comm: &str| {
            TaskSelector::parse(asked).as_kept().means_task(Pid(pid), comm)
        };
        assert!(means("api:1003", 1003, "api") && means("api:1003", 1003, "api-3"));
        assert!(!means("api:1003", 1004, "api") && !means("api:1003", 1003, "db"));
        assert!(means("kworker/0:1", 45, "kworker/0:1"), "a colon of the name's own");
        assert!(means("kworker/0:1:45", 45, "kworker/0:1") && !means("kworker/0:1:45", 46, "kworker/0:1"));
        assert!(means("a-name-of-15-by:1234567", 1234567, "a-name-of-15-by"), "longer than a name may be");
        assert!(!means("api:", 1, "api") && !means(":7", 7, "") && !means("api:+7", 7, "api"));
    }

    #[test]
    fn a_name_ends_where_the_metric_begins() {
        assert_eq!(split("CPU 3/KVM slowdown"), Some(("CPU 3/KVM", "slowdown")));
        assert_eq!((split("throughput"), plain("throughput")), (None, "throughput"));
        assert_eq!(plain("web wakeup_latency_ns_p99"), "wakeup_latency_ns_p99");
    }
}
