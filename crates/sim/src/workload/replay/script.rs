//! What the tasks of a recording did, and its form as text, in which it is carried to where recordings cannot be read.
//!
//! A line a task, and below it a line for each of its deeds, times in ns:
//!
//! ```text
//! fairlab-replay 1 1000000
//! group - 200 0 50000000 100000000 /web
//! task other 120 3 0-7 user 0 schbench
//! run 24500
//! wake 1
//! until 400000
//! for 50000 475000
//! ```
//!
//! The first line has the recording's length; lines with `note` may follow, with what to know of it. A group's line has the number of the group that it is
//! below, its weight, 1 if it is idle and else 0, its quota a period (or `max`) and the period, and its name to the end of the
//! line. A task's line has its policy (other, batch, idle, fifo, rr), its priority, the CPU where it was seen first, those that
//! it may use, whether it is a thread of the kernel (`kernel`), of user space (`user`) or such a one that another task creates
//! (`forked`), its group, and its name to the end of the line. `-` is none, or all. Groups and tasks are numbered from 0 in the
//! order of their lines. `until` is a sleep until that time since the beginning, `for` one of that length, which ended at the
//! time behind it; `device` and `io` are the same, uninterruptible.
//!
//! Must not know: how a recording is read.

use std::fmt;

use fairlab_event::{Comm, Cpu, Ns, Prio};
use fairlab_kernel::{CfsLimit, CpuMask, MAX_CPUS, Policy};

use crate::workload::cgroup::GroupSpec;

/// How the text begins.
const MAGIC: &str = "fairlab-replay 1";

/// What one task did, one thing after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptStep {
    /// It computed: so much CPU time.
    Run(Ns),
    /// It woke another task.
    Wake(usize),
    /// It slept until a task woke it.
    Block,
    /// It slept until an interrupt woke it, at this time since the recording's beginning.
    SleepUntil {
        /// When that was.
        time: Ns,
        /// Whether its sleep was uninterruptible, as for a disk.
        uninterruptible: bool,
    },
    /// It slept for so long until an interrupt woke it, as it had asked for.
    SleepFor {
        /// How long.
        length: Ns,
        /// When that ended, since the recording's beginning.
        time: Ns,
        /// Whether its sleep was uninterruptible.
        uninterruptible: bool,
    },
    /// It created a task.
    Fork(usize),
    /// Its priority is another from here on.
    Prio(Prio),
}

/// How a task came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskOrigin {
    /// It is there from the beginning.
    User,
    /// The same, as a thread of the kernel.
    Kernel,
    /// Another task creates it.
    Forked,
}

/// A task of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptTask {
    /// Its name.
    pub comm: Comm,
    /// Its policy; a real-time priority follows from `prio`.
    pub policy: Policy,
    /// Its priority at first.
    pub prio: Prio,
    /// The CPU where it was seen first; none for a task that another creates.
    pub cpu: Option<Cpu>,
    /// The CPUs that it may use; none for all.
    pub allowed: Option<CpuMask>,
    /// How it came to be.
    pub origin: TaskOrigin,
    /// Its group; none for its creator's, or the root.
    pub group: Option<usize>,
    /// What it did.
    pub deeds: Vec<ScriptStep>,
}

/// What all tasks of a recording did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// From the recording's first event to its last.
    pub length: Ns,
    /// What to know of it, a line each.
    pub notices: Vec<String>,
    /// The control groups.
    pub groups: Vec<GroupSpec>,
    /// The tasks.
    pub tasks: Vec<ScriptTask>,
}

impl Script {
    /// Whether a text is meant to be a script.
    pub fn is_script(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC.as_bytes())
    }

    /// All CPU time.
    pub fn work(&self) -> Ns {
        let runs = self.deeds().map(|deed| if let ScriptStep::Run(work) = deed { work.0 } else { 0 });
        Ns(runs.sum())
    }

    /// How many sleeps tasks ended, how many interrupts from outside did, and how many a time that a task had asked for.
    pub fn sleeps(&self) -> (usize, usize, usize) {
        let count = |is: fn(ScriptStep) -> bool| self.deeds().filter(|deed| is(*deed)).count();
        (
            count(|deed| deed == ScriptStep::Block),
            count(|deed| matches!(deed, ScriptStep::SleepUntil { .. })),
            count(|deed| matches!(deed, ScriptStep::SleepFor { .. })),
        )
    }

    fn deeds(&self) -> impl Iterator<Item = ScriptStep> + '_ {
        self.tasks.iter().flat_map(|task| task.deeds.iter().copied())
    }

    /// The script that [`Display`](fmt::Display) wrote.
    ///
    /// # Errors
    /// One line that says what is wrong, with the number of the line where it is.
    pub fn parse(text: &str) -> Result<Script, String> {
        let mut lines = (1..).zip(text.lines());
        let first = lines.next().map_or("", |(_, line)| line);
        let length = first.strip_prefix(MAGIC).and_then(|rest| rest.trim().parse().ok());
        let length = length.ok_or_else(|| format!("line 1: it is not '{MAGIC}' with a length in ns"))?;
        let mut script = Script { length: Ns(length), ..Script::default() };
        for (number, line) in lines {
            script.take_line(line).map_err(|problem| format!("line {number}: {problem}"))?;
        }
        script.check()?;
        Ok(script)
    }

    fn take_line(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, self.tasks.last_mut()) {
            ("note", _) => self.notices.push(rest.to_string()),
            ("group", _) => {
                let group = group(rest, self.groups.len()).ok_or_else(|| format!("'{line}' is no group"))?;
                self.groups.push(group);
            }
            ("task", _) => self.tasks.push(task(rest).ok_or_else(|| format!("'{line}' is no task"))?),
            (_, None) => return Err(format!("'{line}' stands before the first task")),
            (_, Some(task)) => {
                let deed = deed(word, rest).ok_or_else(|| format!("'{line}' is nothing that a task does"))?;
                task.deeds.push(deed);
            }
        }
        Ok(())
    }

    /// Whom tasks wake and create is there, and so are their groups; nobody is created by two.
    fn check(&self) -> Result<(), String> {
        let groups = self.groups.len();
        if let Some(task) = self.tasks.iter().position(|task| task.group.is_some_and(|group| group >= groups))
        {
            return Err(format!("task {task} is in a group that is not there; there are {groups}"));
        }
        let mut creators = vec![0_u32; self.tasks.len()];
        for deed in self.deeds() {
            if let ScriptStep::Wake(task) | ScriptStep::Fork(task) = deed
                && task >= self.tasks.len()
            {
                return Err(format!(
                    "there is no task {task}; the last is {}",
                    self.tasks.len().saturating_sub(1)
                ));
            }
            if let ScriptStep::Fork(task) = deed {
                creators[task] += 1;
            }
        }
        let fits =
            |(task, &creators): (&ScriptTask, &u32)| creators == u32::from(task.origin == TaskOrigin::Forked);
        match self.tasks.iter().zip(&creators).position(|pair| !fits(pair)) {
            Some(task) => Err(format!("task {task} is created by {} tasks", creators[task])),
            None => Ok(()),
        }
    }
}

/// Nothing, or what `parse` makes of a word.
fn if_any<T>(word: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
    if word == "-" { Some(None) } else { parse(word).map(Some) }
}

/// The rest of a group's line, which stands behind `known` others.
fn group(rest: &str, known: usize) -> Option<GroupSpec> {
    let mut words = rest.splitn(6, ' ');
    let parent = if_any(words.next()?, |parent| parent.parse().ok().filter(|&parent| parent < known))?;
    let weight = words.next()?.parse().ok().filter(|weight| (1..=10_000).contains(weight))?;
    let idle = words.next()? == "1";
    let (quota, period) = (words.next()?, Ns(words.next()?.parse().ok()?));
    let max = match quota {
        "max" => CfsLimit::UNLIMITED,
        quota => CfsLimit::new(Ns(quota.parse().ok()?), period, Ns::ZERO).ok()?,
    };
    let name = words.next()?.to_string();
    Some(GroupSpec { parent, weight, max, idle, ..GroupSpec::new(name) })
}

/// The rest of a task's line.
fn task(rest: &str) -> Option<ScriptTask> {
    let mut words = rest.splitn(7, ' ');
    let policy = words.next()?;
    let policy = POLICIES.iter().find(|(name, _)| *name == policy)?.1;
    let prio = Prio(words.next()?.parse().ok()?);
    let cpu = if_any(words.next()?, |cpu| cpu.parse().ok().filter(|&cpu| cpu < MAX_CPUS as u32).map(Cpu))?;
    let allowed = if_any(words.next()?, |cpus| CpuMask::parse_list(cpus).ok())?;
    let origin = words.next()?;
    let origin = ORIGINS.iter().find(|(name, _)| *name == origin)?.1;
    let group = if_any(words.next()?, |group| group.parse().ok())?;
    let comm = Comm::new(words.next()?.as_bytes());
    Some(ScriptTask { comm, policy, prio, cpu, allowed, origin, group, deeds: Vec::new() })
}

const POLICIES: [(&str, Policy); 5] = [
    ("other", Policy::Normal),
    ("batch", Policy::Batch),
    ("idle", Policy::Idle),
    ("fifo", Policy::Fifo(1)),
    ("rr", Policy::RoundRobin(1)),
];

const ORIGINS: [(&str, TaskOrigin); 3] =
    [("user", TaskOrigin::User), ("kernel", TaskOrigin::Kernel), ("forked", TaskOrigin::Forked)];

fn deed(word: &str, rest: &str) -> Option<ScriptStep> {
    let time = || rest.parse().ok().map(Ns);
    let sleep = |uninterruptible| time().map(|time| ScriptStep::SleepUntil { time, uninterruptible });
    let sleep_for = |uninterruptible| {
        let (length, time) = rest.split_once(' ')?;
        let (length, time) = (Ns(length.parse().ok()?), Ns(time.parse().ok()?));
        Some(ScriptStep::SleepFor { length, time, uninterruptible })
    };
    match word {
        "run" => time().map(ScriptStep::Run),
        "wake" => rest.parse().ok().map(ScriptStep::Wake),
        "block" if rest.is_empty() => Some(ScriptStep::Block),
        "until" => sleep(false),
        "device" => sleep(true),
        "for" => sleep_for(false),
        "io" => sleep_for(true),
        "fork" => rest.parse().ok().map(ScriptStep::Fork),
        "prio" => rest.parse().ok().map(|prio| ScriptStep::Prio(Prio(prio))),
        _ => None,
    }
}

fn or_none<T: fmt::Display>(what: Option<T>) -> String {
    what.map_or("-".to_string(), |what| what.to_string())
}

/// A name may hold any character; a line's end would begin another line.
fn one_line(name: &str) -> String {
    name.replace(['\n', '\r'], "?")
}

/// Whether two policies differ in no more than a real-time priority.
fn same_class(one: Policy, other: Policy) -> bool {
    std::mem::discriminant(&one) == std::mem::discriminant(&other)
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{MAGIC} {}", self.length.0)?;
        for notice in &self.notices {
            writeln!(f, "note {notice}")?;
        }
        for group in &self.groups {
            let quota = group.max.quota().map_or("max".to_string(), |quota| quota.0.to_string());
            let (parent, idle, period) = (or_none(group.parent), u32::from(group.idle), group.max.period().0);
            writeln!(f, "group {parent} {} {idle} {quota} {period} {}", group.weight, one_line(&group.name))?;
        }
        for task in &self.tasks {
            let policy = POLICIES.iter().find(|(_, policy)| same_class(*policy, task.policy));
            let origin = ORIGINS.iter().find(|(_, origin)| *origin == task.origin);
            writeln!(
                f,
                "task {} {} {} {} {} {} {}",
                policy.map_or("other", |(name, _)| name),
                task.prio,
                or_none(task.cpu),
                or_none(task.allowed),
                origin.map_or("user", |(name, _)| name),
                or_none(task.group),
                one_line(&task.comm.to_str())
            )?;
            for deed in &task.deeds {
                deed.fmt(f)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for ScriptStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScriptStep::Run(work) => writeln!(f, "run {}", work.0),
            ScriptStep::Wake(whom) => writeln!(f, "wake {whom}"),
            ScriptStep::Block => f.write_str("block\n"),
            ScriptStep::SleepUntil { time, uninterruptible: false } => writeln!(f, "until {}", time.0),
            ScriptStep::SleepUntil { time, uninterruptible: true } => writeln!(f, "device {}", time.0),
            ScriptStep::SleepFor { length, time, uninterruptible } => {
                writeln!(f, "{} {} {}", if *uninterruptible { "io" } else { "for" }, length.0, time.0)
            }
            ScriptStep::Fork(child) => writeln!(f, "fork {child}"),
            ScriptStep::Prio(prio) => writeln!(f, "prio {prio}"),
        }
    }
}
