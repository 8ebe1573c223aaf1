//! Steps: one text each, or a table that repeats a list or does it by chance.
//!
//! Must not know: what tasks are like beside their steps.

use fairlab_event::Ns;
use fairlab_event::spelling::may_be_meant;
use toml::{Table, Value};

use super::duration::DurationSpec;
use super::plan::Op;
use crate::workload::Offer;
use crate::workload::mix::place::{kind, time, whole};

/// Every step, as messages list them.
const ALL: &str = "run, syscall, fault, mmap, sleep, timer, io, await, lock, unlock, take, put, call, reply, wake, wait, barrier, \
                   spawn, join, exec, yield, exit";

/// How deep lists may lie in each other.
const DEEPEST: usize = 16;

/// What steps can name.
pub(super) struct StepNames {
    pub locks: Vec<String>,
    /// With whether requests come into it from outside.
    pub queues: Vec<(String, bool)>,
    pub tasks: Vec<String>,
}

/// Steps of a task, as far as they are read.
pub(super) struct StepReader<'n> {
    names: &'n StepNames,
    barriers: &'n mut Vec<String>,
    ops: Vec<Op>,
    counters: usize,
}

impl<'n> StepReader<'n> {
    /// None yet.
    pub fn new(names: &'n StepNames, barriers: &'n mut Vec<String>) -> StepReader<'n> {
        StepReader { names, barriers, ops: Vec::new(), counters: 0 }
    }

    /// What was read, and how many counters it needs.
    pub fn finish(self) -> (Vec<Op>, usize) {
        (self.ops, self.counters)
    }

    /// Reads a list; `at` says where it is.
    ///
    /// # Errors
    /// One line that says at which step what is wrong.
    pub fn list(&mut self, value: &Value, at: &str, depth: usize) -> Result<(), String> {
        let wrong = || format!("{at}s: a list of texts is needed, ['run 30us', …], not {}", kind(value));
        let list = value.as_array().ok_or_else(wrong)?;
        if list.is_empty() {
            return Err(format!("{at}s: the list is empty"));
        }
        for (index, value) in list.iter().enumerate() {
            let here = format!("{at} {}", index + 1);
            match value {
                Value::String(text) => {
                    let op = self.step(text).map_err(|problem| format!("{here}, '{text}': {problem}"))?;
                    self.ops.push(op);
                }
                Value::Table(_) if depth == DEEPEST => {
                    return Err(format!("{here}: lists lie at most {DEEPEST} deep in each other"));
                }
                Value::Table(table) => self.nested(table, &here, depth + 1)?,
                other => {
                    return Err(format!(
                        "{here}: a text or a table {{ repeat = N, steps = […] }} is needed, not {}",
                        kind(other)
                    ));
                }
            }
        }
        Ok(())
    }

    /// `{ repeat = 10, steps = […] }`, `{ chance = 0.1, steps = […] }`.
    fn nested(&mut self, table: &Table, at: &str, depth: usize) -> Result<(), String> {
        let known = ["repeat", "chance", "steps"];
        if let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("{at}: a list within has no '{key}': it has {}", known.join(", ")));
        }
        let steps = table.get("steps").ok_or_else(|| format!("{at}: it has no 'steps'"))?;
        let inside = format!("{at}, step");
        match (table.get("repeat"), table.get("chance")) {
            (Some(times), None) => {
                let times =
                    whole(times, 1..=i64::MAX).map_err(|problem| format!("{at}: repeat: {problem}"))?;
                let counter = self.counters;
                self.counters += 1;
                self.ops.push(Op::Begin { counter, times: times as u64 });
                let first = self.ops.len();
                self.list(steps, &inside, depth)?;
                self.ops.push(Op::Again { counter, first });
            }
            (None, Some(chance)) => {
                let number = chance.as_float().or_else(|| chance.as_integer().map(|whole| whole as f64));
                let chance = number.filter(|number| (0.0..=1.0).contains(number));
                let chance = chance.ok_or_else(|| format!("{at}: chance: a number from 0 to 1 is needed"))?;
                let place = self.ops.len();
                self.ops.push(Op::Skip { chance: (chance * 1e6).round() as u64, to: 0 });
                self.list(steps, &inside, depth)?;
                let end = self.ops.len();
                if let Some(Op::Skip { to, .. }) = self.ops.get_mut(place) {
                    *to = end;
                }
            }
            _ => return Err(format!("{at}: a list within has either 'repeat' or 'chance'")),
        }
        Ok(())
    }

    fn step(&mut self, text: &str) -> Result<Op, String> {
        let words = text.split_whitespace().collect::<Vec<_>>();
        let Some((&verb, rest)) = words.split_first() else { return Err(format!("a step is one of {ALL}")) };
        let op = match verb {
            "run" => Op::Run(lone(rest)?),
            "fault" => Op::Fault(lone(rest)?),
            "mmap" => Op::Map(lone(rest)?),
            "sleep" => Op::Sleep(lone(rest)?),
            "io" => Op::Io(lone(rest)?),
            "await" => Op::Await(lone(rest)?),
            "syscall" => syscall(rest)?,
            "timer" => match lone(rest)? {
                DurationSpec::Fixed(period) if period > Ns::ZERO => Op::Timer(period),
                _ => return Err("a period is one time, longer than nothing: 'timer 500us'".to_string()),
            },
            "lock" => Op::Lock(self.lock(rest)?),
            "unlock" => Op::Unlock(self.lock(rest)?),
            "take" => Op::Take(self.queue(rest)?),
            "put" => Op::Put(self.filled(rest)?),
            "call" => Op::Call(self.filled(rest)?),
            "reply" if rest.is_empty() => Op::Reply(None),
            "reply" => Op::Reply(Some(self.queue(rest)?)),
            "wake" => self.wake(rest)?,
            "barrier" => Op::Barrier(self.barrier(rest)?),
            "spawn" => Op::Spawn(self.task(rest)?),
            "exec" => Op::Exec(lone(rest)?),
            "wait" => alone(Op::Wait, rest)?,
            "join" => alone(Op::Join, rest)?,
            "yield" => alone(Op::Yield, rest)?,
            "exit" => alone(Op::Exit, rest)?,
            other => {
                let meant = may_be_meant(other, ALL.split(", ").map(str::trim));
                return Err(format!("there is no step '{other}': {meant}{ALL}"));
            }
        };
        Ok(op)
    }

    fn lock(&self, words: &[&str]) -> Result<usize, String> {
        let known = self.names.locks.iter().map(String::as_str);
        one_of(words, "lock", known, "write [lock.NAME]")
    }

    fn queue(&self, words: &[&str]) -> Result<usize, String> {
        let known = self.names.queues.iter().map(|(name, _)| name.as_str());
        one_of(words, "queue", known, "write [queue.NAME]")
    }

    /// A queue that tasks may fill.
    fn filled(&self, words: &[&str]) -> Result<usize, String> {
        let number = self.queue(words)?;
        match self.names.queues.get(number) {
            Some((name, true)) => Err(format!(
                "what comes into queue '{name}' comes from outside ('arrivals'): take another queue"
            )),
            _ => Ok(number),
        }
    }

    fn task(&self, words: &[&str]) -> Result<usize, String> {
        one_of(words, "task", self.names.tasks.iter().map(String::as_str), "write [[task]]")
    }

    fn wake(&self, words: &[&str]) -> Result<Op, String> {
        let Some((name, rest)) = words.split_first() else {
            return Err("whose threads? 'wake TASK', 'wake TASK 3' or 'wake TASK all'".to_string());
        };
        let task = self.task(&[name])?;
        match *rest {
            [] => Ok(Op::Wake(task, Some(1))),
            ["all"] => Ok(Op::Wake(task, None)),
            [count] => {
                let number = count.parse::<u32>().ok().filter(|number| (1..=100_000).contains(number));
                let wrong = || format!("'{count}' is neither 'all' nor a whole number from 1 to 100000");
                Ok(Op::Wake(task, Some(number.ok_or_else(wrong)?)))
            }
            [_, other, ..] => Err(too_much(other)),
        }
    }

    /// A barrier needs no table: its name is enough.
    fn barrier(&mut self, words: &[&str]) -> Result<usize, String> {
        let [name] = *words else {
            return Err(words
                .get(1)
                .map_or("which barrier? 'barrier NAME'".to_string(), |word| too_much(word)));
        };
        if let Some(number) = self.barriers.iter().position(|known| known == name) {
            return Ok(number);
        }
        self.barriers.push(name.to_string());
        Ok(self.barriers.len() - 1)
    }
}

/// A time and nothing behind it.
fn lone(words: &[&str]) -> Result<DurationSpec, String> {
    let (duration, rest) = DurationSpec::parse(words)?;
    rest.first().map_or(Ok(duration), |word| Err(too_much(word)))
}

fn alone(op: Op, words: &[&str]) -> Result<Op, String> {
    words.first().map_or(Ok(op), |word| Err(too_much(word)))
}

fn too_much(word: &str) -> String {
    format!("'{word}' is too much")
}

/// `syscall 2ms`, `syscall 2ms cond_resched 100us`.
fn syscall(words: &[&str]) -> Result<Op, String> {
    let (work, rest) = DurationSpec::parse(words)?;
    let offer = match *rest {
        [] => return Ok(Op::Syscall { work, offers: None }),
        ["cond_resched", ..] => Offer::CondResched,
        ["might_sleep", ..] => Offer::MightSleep,
        [other, ..] => {
            return Err(format!(
                "'{other}' is neither 'cond_resched' nor 'might_sleep', which offer the CPU"
            ));
        }
    };
    let [name, every] = *rest else { return Err("how often? 'syscall 2ms cond_resched 100us'".to_string()) };
    match time(every)? {
        Ns::ZERO => Err(format!("'{name} {every}': offers lie more than nothing apart")),
        every => Ok(Op::Syscall { work, offers: Some((offer, every)) }),
    }
}

/// The place of the one name that stands there among those that are known.
fn one_of<'k>(
    words: &[&str],
    what: &str,
    known: impl Iterator<Item = &'k str>,
    hint: &str,
) -> Result<usize, String> {
    let [name] = *words else {
        return Err(words.get(1).map_or(format!("which {what}?"), |word| too_much(word)));
    };
    let known = known.collect::<Vec<_>>();
    let wrong = || match known.is_empty() {
        true => format!("there is no {what} '{name}': {hint}"),
        false => {
            let meant = may_be_meant(name, known.iter().copied());
            format!("there is no {what} '{name}': {meant}there are {}", known.join(", "))
        }
    };
    known.iter().position(|other| *other == name).ok_or_else(wrong)
}
