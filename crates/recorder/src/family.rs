//! The recorded command and all its descendants: signals reach all of them, and none outlives the recording.
//!
//! The command leads a process group of its own, unless it needs the terminal. A background group may not read from a terminal.
//! Then the command stays in our group, as a shell's jobs do, and gets the terminal's signals directly. Descendants that leave
//! the group are known by an inherited environment variable.
//!
//! Must not know: what is recorded.

use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairlab_live::{MARKER_VARIABLE, ProcessGroupGuard, die_with_this_thread};
use rustix::process::{Pid, Signal, getpgrp, kill_process, kill_process_group};

/// How long what the command left behind may take to end once it was asked to.
const REST: Duration = Duration::from_secs(1);

const LOOK: Duration = Duration::from_millis(5);

/// Signals that this process got and that the command is to get, too.
#[derive(Clone, Debug, Default)]
pub struct ForwardedSignals(Arc<AtomicU64>);

impl ForwardedSignals {
    /// Adds one, by its number.
    pub fn add(&self, number: i32) {
        if let Ok(number @ 1..64) = u32::try_from(number) {
            self.0.fetch_or(1 << number, Ordering::Relaxed);
        }
    }

    /// Those that came since they were last asked for.
    fn take(&self) -> Vec<Signal> {
        let got = self.0.swap(0, Ordering::Relaxed);
        (1..64).filter(|number| got >> number & 1 == 1).filter_map(Signal::from_named_raw).collect()
    }
}

/// A command that runs, and its descendants.
#[derive(Debug)]
pub(super) struct CommandTree {
    child: Child,
    /// Its own process group, if it has one, and the guard that kills it when we are killed.
    group: Option<(Pid, ProcessGroupGuard)>,
    /// The variable that marks descendants, as it stands in their environment.
    mark: Vec<u8>,
}

impl CommandTree {
    /// Starts the command, which is told where to leave remarks.
    pub fn start(command: &mut Command, marker: &Path) -> io::Result<CommandTree> {
        command.env(MARKER_VARIABLE, marker);
        let mark = [MARKER_VARIABLE.as_bytes(), b"=", marker.as_os_str().as_encoded_bytes()].concat();
        die_with_this_thread(command);
        if has_terminal() {
            return Ok(CommandTree { child: command.spawn()?, group: None, mark });
        }
        let guard = ProcessGroupGuard::new()?;
        let child = command.process_group(0).spawn()?;
        let group = Pid::from_child(&child);
        guard.watch(group)?;
        Ok(CommandTree { child, group: Some((group, guard)), mark })
    }

    /// The command's process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How the command ended, if it has.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Hands on the signals that came. Those of a terminal that we share have reached the family without us.
    pub fn hand_on(&self, signals: &ForwardedSignals) -> bool {
        let mut some = false;
        for signal in signals.take() {
            some = true;
            if self.group.is_some() || signal != Signal::INT {
                self.signal(signal);
            }
        }
        some
    }

    /// Sends a signal to all of them.
    pub fn signal(&self, signal: Signal) {
        let group = self.group.as_ref().map(|(group, _)| *group);
        if let Some(group) = group {
            // It may have ended meanwhile.
            let _ = kill_process_group(group, signal);
        }
        for member in self.members().into_iter().filter(|member| Some(member.group) != group) {
            let _ = kill_process(member.pid, signal);
        }
    }

    /// Ends what the command left behind. Returns how many there were.
    pub fn end_rest(&self) -> usize {
        let count = self.members().len();
        let begin = Instant::now();
        let mut signal = Signal::TERM;
        while !self.members().is_empty() && begin.elapsed() < 2 * REST {
            self.signal(signal);
            // What is stopped takes a signal when it goes on.
            self.signal(Signal::CONT);
            let until = begin.elapsed() + REST;
            while !self.members().is_empty() && begin.elapsed() < until {
                thread::sleep(LOOK);
            }
            signal = Signal::KILL;
        }
        count
    }

    /// Those that live, by their group or their inherited variable.
    fn members(&self) -> Vec<LiveProcess> {
        let group = self.group.as_ref().map(|(group, _)| *group);
        let us = std::process::id();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let members = numbers.filter(|&number| number != us).filter_map(LiveProcess::of);
        members.filter(|member| Some(member.group) == group || self.has_mark(member.pid)).collect()
    }

    fn has_mark(&self, process: Pid) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", process.as_raw_nonzero())).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == self.mark)
    }
}

/// Whatever way a recording ends, the family does, too.
impl Drop for CommandTree {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A process that has not ended.
#[derive(Debug)]
struct LiveProcess {
    pid: Pid,
    group: Pid,
}

impl LiveProcess {
    fn of(number: u32) -> Option<LiveProcess> {
        let stat = fs::read(format!("/proc/{number}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name, in brackets, may hold anything. What follows: state, parent, process group: -1 of one that is going.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok().and_then(|group: i32| Pid::from_raw(group.max(0)))?;
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw)?;
        (!matches!(state, "Z" | "X")).then_some(LiveProcess { pid, group })
    }
}

/// Whether the command could read from a terminal that we have.
fn has_terminal() -> bool {
    let input = io::stdin();
    input.is_terminal() && rustix::termios::tcgetpgrp(&input).is_ok_and(|group| group == getpgrp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(script: &str, mark: &str) -> CommandTree {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(std::process::Stdio::null());
        CommandTree::start(&mut command, Path::new(mark)).expect("it starts")
    }

    fn eventually(what: &str, holds: impl Fn() -> bool) {
        let begin = Instant::now();
        while !holds() {
            assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
            thread::sleep(LOOK);
        }
    }

    #[test]
    fn signals_reach_all_and_none_is_left() {
        let family = started("sleep 600 & setsid sleep 600 & sleep 600", "/nowhere/family-signals");
        eventually("they are there", || family.members().len() >= 4);
        let signals = ForwardedSignals::default();
        assert!(!family.hand_on(&signals));
        signals.add(15);
        assert!(family.hand_on(&signals) && !family.hand_on(&signals));
        eventually("they are gone", || family.members().is_empty());
    }

    #[test]
    fn what_is_left_behind_is_ended_even_if_it_will_not_hear() {
        let script = "trap '' TERM; sleep 600 & setsid sh -c 'trap \"\" TERM; sleep 600; sleep 600' &";
        let mut family = started(script, "/nowhere/family-rest");
        eventually("the command ends", || LiveProcess::of(family.id()).is_none());
        assert!(family.try_wait().expect("a look").is_some());
        assert!(family.end_rest() >= 2);
        assert_eq!(family.members().len(), 0);
    }
}
