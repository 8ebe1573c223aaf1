//! What the tasks of a recording did, and its form as text, in which it is carried to where recordings cannot be read.
//!
//! A line a task, and below it a line for each of its deeds, times in ns:
//!
//! ```text
//! fairlab-replay 1 1000000
//! task 120 3 - 0 schbench
//! run 24500
//! wake 1
//! until 400000
//! ```
//!
//! The first line has the recording's length; lines with `note` may follow, with what to know of it. A task's line has its priority, the CPU where it was seen first (or `-`), the
//! CPU to which it is pinned (or `-`), 1 if another task creates it and else 0, and its name to the end of the line. Tasks are
//! numbered from 0 in the order of their lines.
//!
//! Must not know: how a recording is read.

use std::fmt;

use fairlab_event::{Comm, Cpu, Ns, Prio};

/// How the text begins.
const MAGIC: &str = "fairlab-replay 1";

/// What one task did, one thing after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
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
    /// It created a task.
    Fork(usize),
    /// Its priority is another from here on.
    Prio(Prio),
}

/// A task of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name.
    pub comm: Comm,
    /// Its priority at first.
    pub prio: Prio,
    /// The CPU where it was seen first; none for a task that another creates.
    pub cpu: Option<Cpu>,
    /// The only CPU that it may use.
    pub pinned: Option<Cpu>,
    /// Another task creates it.
    pub forked: bool,
    /// What it did.
    pub deeds: Vec<Deed>,
}

/// What all tasks of a recording did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// From the recording's first event to its last.
    pub length: Ns,
    /// What to know of it, a line each.
    pub notices: Vec<String>,
    /// The tasks.
    pub tasks: Vec<Task>,
}

impl Script {
    /// Whether a text is meant to be a script.
    pub fn is_script(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC.as_bytes())
    }

    /// All CPU time.
    pub fn work(&self) -> Ns {
        let runs = self.deeds().map(|deed| if let Deed::Run(work) = deed { work.0 } else { 0 });
        Ns(runs.sum())
    }

    /// How many sleeps tasks ended, and how many interrupts did.
    pub fn sleeps(&self) -> (usize, usize) {
        let blocks = self.deeds().filter(|deed| *deed == Deed::Block).count();
        let timed = self.deeds().filter(|deed| matches!(deed, Deed::SleepUntil { .. })).count();
        (blocks, timed)
    }

    fn deeds(&self) -> impl Iterator<Item = Deed> + '_ {
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
            ("task", _) => self.tasks.push(task(rest).ok_or_else(|| format!("'{line}' is no task"))?),
            (_, None) => return Err(format!("'{line}' stands before the first task")),
            (_, Some(task)) => {
                let deed = deed(word, rest).ok_or_else(|| format!("'{line}' is nothing that a task does"))?;
                task.deeds.push(deed);
            }
        }
        Ok(())
    }

    /// Whom tasks wake and create is there, and nobody is created by two.
    fn check(&self) -> Result<(), String> {
        let mut creators = vec![0_u32; self.tasks.len()];
        for deed in self.deeds() {
            if let Deed::Wake(task) | Deed::Fork(task) = deed
                && task >= self.tasks.len()
            {
                return Err(format!(
                    "there is no task {task}; the last is {}",
                    self.tasks.len().saturating_sub(1)
                ));
            }
            if let Deed::Fork(task) = deed {
                creators[task] += 1;
            }
        }
        let fits = |(task, &creators): (&Task, &u32)| creators == u32::from(task.forked);
        match self.tasks.iter().zip(&creators).position(|pair| !fits(pair)) {
            Some(task) => Err(format!("task {task} is created by {} tasks", creators[task])),
            None => Ok(()),
        }
    }
}

/// The rest of a task's line.
fn task(rest: &str) -> Option<Task> {
    let mut words = rest.splitn(5, ' ');
    let prio = Prio(words.next()?.parse().ok()?);
    let mut cpu = || match words.next()? {
        "-" => Some(None),
        number => Some(Some(Cpu(number.parse().ok()?))),
    };
    let (cpu, pinned) = (cpu()?, cpu()?);
    let forked = match words.next()? {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    let comm = Comm::new(words.next()?.as_bytes());
    Some(Task { comm, prio, cpu, pinned, forked, deeds: Vec::new() })
}

fn deed(word: &str, rest: &str) -> Option<Deed> {
    let time = || rest.parse().ok().map(Ns);
    let sleep = |uninterruptible| time().map(|time| Deed::SleepUntil { time, uninterruptible });
    match word {
        "run" => time().map(Deed::Run),
        "wake" => rest.parse().ok().map(Deed::Wake),
        "block" if rest.is_empty() => Some(Deed::Block),
        "until" => sleep(false),
        "device" => sleep(true),
        "fork" => rest.parse().ok().map(Deed::Fork),
        "prio" => rest.parse().ok().map(|prio| Deed::Prio(Prio(prio))),
        _ => None,
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{MAGIC} {}", self.length.0)?;
        for notice in &self.notices {
            writeln!(f, "note {notice}")?;
        }
        for task in &self.tasks {
            let cpu = |cpu: Option<Cpu>| cpu.map_or("-".to_string(), |cpu| cpu.0.to_string());
            let (first, pinned, forked) = (cpu(task.cpu), cpu(task.pinned), u32::from(task.forked));
            // A name may hold any byte; a line's end would begin another line.
            let comm = task.comm.to_str().replace(['\n', '\r'], "?");
            writeln!(f, "task {} {first} {pinned} {forked} {comm}", task.prio)?;
            for deed in &task.deeds {
                deed.fmt(f)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deed::Run(work) => writeln!(f, "run {}", work.0),
            Deed::Wake(whom) => writeln!(f, "wake {whom}"),
            Deed::Block => f.write_str("block\n"),
            Deed::SleepUntil { time, uninterruptible: false } => writeln!(f, "until {}", time.0),
            Deed::SleepUntil { time, uninterruptible: true } => writeln!(f, "device {}", time.0),
            Deed::Fork(child) => writeln!(f, "fork {child}"),
            Deed::Prio(prio) => writeln!(f, "prio {prio}"),
        }
    }
}
