//! Stories for readers of scheduler traces.
//!
//! Must not know: how stories come about.

mod virtual_view;

use std::fmt;

use fairlab_event::{Ns, TaskState};

use super::story::{
    AskedBy, CpuMode, Departure, MoveCause, NamedPid, OtherRun, OtherTask, ReschedRequest, Story, Tick,
    WaitCause, WaitEnd, WaitPart, WaiterMove,
};
use super::{Explanation, StillWaiting};
use crate::blame::text::BlameBrief;
use crate::columns::ms;

/// How many runs of a story are printed at each end.
const RUNS_SHOWN: usize = 8;

/// How many idle CPUs, ticks and attempts are printed.
const SHOWN: usize = 6;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(waiting) = &self.waiting {
            writeln!(f, "{}", BlameBrief(waiting))?;
        }
        let waits =
            if self.measured == 1 { "1 wait".to_string() } else { format!("{} waits", self.measured) };
        match self.stories.len() {
            0 => writeln!(f, "{waits} measured")?,
            1 => writeln!(f, "{waits} measured; the longest:")?,
            told => writeln!(f, "{waits} measured; the {told} longest:")?,
        }
        for (number, story) in (1..).zip(&self.stories) {
            write!(f, "\n{number}. {story}")?;
        }
        if self.crossed > 0 {
            writeln!(
                f,
                "\n{} more waits are not measured: events are missing while they went on.",
                self.crossed
            )?;
        }
        if self.still_waiting_count > 0 {
            writeln!(f, "\nStill waiting when the trace ends: {}", self.still_waiting_count)?;
        }
        for waiting in &self.still_waiting {
            writeln!(f, "   {waiting}")?;
        }
        Ok(())
    }
}

impl fmt::Display for StillWaiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} since {}, for {} ms so far",
            self.task,
            SecondsCutToMicroseconds(self.since),
            ms(self.so_far.0)
        )?;
        match (self.cpu, self.behind) {
            (Some(cpu), Some(behind)) => write!(f, ", on CPU {cpu} behind {behind}"),
            (Some(cpu), None) => write!(f, ", on CPU {cpu}"),
            _ => f.write_str(", not queued yet"),
        }
    }
}

/// Seconds cut to microseconds, as ftrace prints them.
struct SecondsCutToMicroseconds(Ns);

impl fmt::Display for SecondsCutToMicroseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0.0 / 1_000_000_000, self.0.0 % 1_000_000_000 / 1_000)
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (task, length) = (self.task, ms(self.length().0));
        writeln!(
            f,
            "{task} (prio {}) waited {length} ms, from {} to {}, and ran on CPU {}",
            self.prio,
            SecondsCutToMicroseconds(self.start),
            SecondsCutToMicroseconds(self.end),
            self.ran_on
        )?;
        self.print_begin(f)?;
        self.print_stays(f)?;
        self.print_runs(f)?;
        if self.unknown > Ns::ZERO {
            writeln!(
                f,
                "   For {} ms what its CPU did is unknown: the trace does not show it.",
                ms(self.unknown.0)
            )?;
        }
        self.print_idle(f)?;
        self.print_pulls(f)?;
        self.print_end(f)?;
        if let Some(view) = self.virtual_time.as_ref().filter(|view| view.says_something()) {
            view.print(f, self.task)?;
        }
        if self.incomplete {
            writeln!(f, "   Part of what happened meanwhile is left out: too much happened on that CPU.")?;
        }
        Ok(())
    }
}

impl Story {
    fn print_begin(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("   ")?;
        match (self.cause, &self.waker) {
            (WaitCause::Wakeup, Some(waker)) => {
                let from = match waker.mode {
                    CpuMode::Task => format!("by {}", waker.who),
                    CpuMode::SoftInterrupt => format!("by a soft interrupt on top of {}", waker.who),
                    CpuMode::HardInterrupt => format!("by an interrupt on top of {}", waker.who),
                };
                write!(f, "Woken {from} on CPU {}", waker.cpu)?;
                if let Some(cpu) = self.prev_cpu {
                    write!(f, "; it had slept on CPU {cpu}")?;
                }
            }
            (WaitCause::Wakeup, None) => f.write_str("Woken while it was going to sleep")?,
            (WaitCause::New, waker) => {
                f.write_str("New")?;
                if let Some(waker) = waker {
                    write!(f, ", created by {} on CPU {}", waker.who, waker.cpu)?;
                }
            }
            (WaitCause::PreemptedInKernel, _) => f.write_str("Preempted inside the kernel (R+)")?,
            (WaitCause::Preempted, _) => f.write_str("Preempted on the way to user mode (R)")?,
            (WaitCause::Yielded, _) => {
                f.write_str("It called the scheduler itself and stayed runnable (a yield)")?;
            }
            (WaitCause::LeftRunnable, _) => f.write_str("It left its CPU runnable (R)")?,
        }
        print_asked(f, self.preempted_by.as_ref(), None)?;
        writeln!(f, ".")
    }

    fn print_stays(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, stay) in self.stays.iter().enumerate() {
            let WaitPart { cpu, from, to, .. } = stay;
            match &stay.brought_by {
                Some(told) => {
                    write!(f, "   At {} {} to CPU {cpu}", SecondsCutToMicroseconds(*from), moved(told))?;
                }
                None if number == 0 => {
                    write!(f, "   At {} queued on CPU {cpu}", SecondsCutToMicroseconds(*from))?;
                }
                None => write!(f, "   At {} it came to CPU {cpu} unseen", SecondsCutToMicroseconds(*from))?,
            }
            match stay.runner {
                Some(runner) if runner != self.task => write!(f, ", where {runner} ran")?,
                _ => {}
            }
            match stay.ahead {
                0 => {}
                1 => f.write_str(" and 1 other task waited")?,
                ahead => write!(f, " and {ahead} other tasks waited")?,
            }
            if self.stays.len() > 1 {
                write!(f, "; it waited there for {} ms", ms(to.since(*from).0))?;
            }
            writeln!(f, ".")?;
        }
        if self.stays_left_out > 0 {
            writeln!(f, "   {} more moves are left out.", self.stays_left_out)?;
        }
        Ok(())
    }

    fn print_runs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for span in self.throttled.iter().take(SHOWN) {
            writeln!(
                f,
                "   Throttled: its group {} had used up its quota on CPU {} from {} to {}, for {} ms{}.",
                span.group,
                span.cpu,
                SecondsCutToMicroseconds(span.from),
                SecondsCutToMicroseconds(span.to),
                ms(span.to.since(span.from).0),
                if span.is_concluded { ", as its run time tells" } else { "" }
            )?;
        }
        if self.throttled.len() > SHOWN {
            writeln!(f, "   It was throttled {} times in all.", self.throttled.len())?;
        }
        if self.perhaps_throttled {
            writeln!(
                f,
                "   Its CPU idled while it waited: perhaps its group had used up its quota (cpu.max); the trace does not show it."
            )?;
        }
        if self.runs.is_empty() {
            return match self.throttled.is_empty() {
                true => writeln!(f, "   The trace shows no task running there meanwhile."),
                false => Ok(()),
            };
        }
        writeln!(f, "   Who ran instead:")?;
        let count = self.runs.len();
        for (number, run) in self.runs.iter().enumerate() {
            let is_shown = number < RUNS_SHOWN || number + RUNS_SHOWN >= count;
            if is_shown {
                run.print(f, self.stays.len() > 1)?;
            } else if number == RUNS_SHOWN {
                let (more, time) = self.runs_between();
                writeln!(f, "     … {more} more runs, {} ms", ms(time.0))?;
            }
        }
        if count > 2 * RUNS_SHOWN {
            let of = |runner: &OtherTask| {
                let noun = if runner.runs == 1 { "run" } else { "runs" };
                format!("{} {} ms in {} {noun}", runner.who, ms(runner.time.0), runner.runs)
            };
            let runners: Vec<String> = self.runners.iter().take(SHOWN).map(of).collect();
            writeln!(f, "     Longest in all: {}.", runners.join(", "))?;
        }
        Ok(())
    }

    /// The runs that are not printed: how many, and how long.
    fn runs_between(&self) -> (u64, Ns) {
        let hidden = &self.runs[RUNS_SHOWN..self.runs.len() - RUNS_SHOWN];
        let (count, time) = self.runs_left_out;
        hidden.iter().fold((count, time), |(count, time), run| (count + 1, time.saturating_add(run.length())))
    }

    fn print_idle(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cpu) = self.pinned_to {
            return writeln!(
                f,
                "   It may use CPU {cpu} only: it is called after that CPU and was never seen elsewhere."
            );
        }
        if self.other_cpus == 0 {
            return writeln!(f, "   The trace shows no other CPU.");
        }
        if self.idle.is_empty() {
            return writeln!(f, "   No other CPU idled meanwhile.");
        }
        writeln!(f, "   Idle meanwhile (affinity is not in the trace; it is taken as allowed there):")?;
        for idle in self.idle.iter().take(SHOWN) {
            let (time, longest) = (ms(idle.time.0), ms(idle.longest.0));
            write!(f, "     CPU {} for {time} ms", idle.cpu)?;
            match idle.spells {
                1 => writeln!(f, ", from {}", SecondsCutToMicroseconds(idle.longest_from))?,
                spells => writeln!(
                    f,
                    " in {spells} pieces, the longest {longest} ms from {}",
                    SecondsCutToMicroseconds(idle.longest_from)
                )?,
            }
        }
        match self.idle.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "     … and {more} more CPUs"),
        }
    }

    fn print_pulls(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pull in self.pulls.iter().take(SHOWN) {
            write!(
                f,
                "   At {} CPU {} tried to pull from CPU {}: imbalance {}",
                SecondsCutToMicroseconds(pull.time),
                pull.dest,
                pull.src,
                pull.imbalance
            )?;
            if let Some(kind) = pull.migration_type {
                write!(f, " ({kind})")?;
            }
            match pull.moved {
                Some(0) => writeln!(f, ", moved nothing.")?,
                Some(moved) => writeln!(f, ", moved {moved}.")?,
                None => writeln!(f, ".")?,
            }
        }
        match self.pulls.len().saturating_sub(SHOWN) as u64 + self.pulls_left_out {
            0 => Ok(()),
            more => writeln!(f, "   {more} more attempts to pull are left out."),
        }
    }

    fn print_end(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("   What ended it: ")?;
        if let Some(told) = self.stays.last().and_then(|stay| stay.brought_by.as_ref()) {
            write!(f, "it was {} from CPU {} to CPU {}; there ", moved(told), told.from, told.to)?;
        }
        match &self.end_cause {
            WaitEnd::CpuWasIdle => f.write_str("the CPU was idle and took it")?,
            WaitEnd::Blocked(who, how) => write!(f, "{who} {}", departed(*how))?,
            WaitEnd::Preempted(who, asked) => {
                write!(f, "{who} was preempted")?;
                print_asked(f, asked.as_ref(), Some(self.task))?;
            }
            WaitEnd::Yielded(who) => write!(f, "{who} gave the CPU up")?,
            WaitEnd::LeftRunnable(who) => write!(f, "{who} left the CPU runnable")?,
            WaitEnd::Stopper { stopper, moved: Some((who, told)) } => {
                write!(
                    f,
                    "{stopper} took {who} away to CPU {} at {}",
                    told.to,
                    SecondsCutToMicroseconds(told.time)
                )?;
            }
            WaitEnd::Stopper { stopper, moved: None } => write!(f, "{stopper} had done its work")?,
            WaitEnd::Unknown => f.write_str("not in the trace")?,
        }
        writeln!(f, ".")
    }
}

/// What moved a task, in the words that stand before the target.
fn moved(told: &WaiterMove) -> String {
    let by = told.by;
    match told.cause {
        MoveCause::Wakeup => "moved by its wakeup".to_string(),
        MoveCause::Asked => "moved as it had asked".to_string(),
        MoveCause::Softirq => format!("pulled by the balancer in softirq context (on top of {by})"),
        MoveCause::NewIdle => format!("pulled by the new-idle balancer, as {by} went to sleep,"),
        MoveCause::Stopper => format!("moved by the stopper {by}"),
        MoveCause::Other => format!("moved in the context of {by}"),
    }
}

fn print_asked(
    f: &mut fmt::Formatter<'_>,
    asked: Option<&ReschedRequest>,
    waiter: Option<NamedPid>,
) -> fmt::Result {
    match asked {
        Some(ReschedRequest { time, by: AskedBy::Tick }) => {
            write!(f, " by the tick at {}", SecondsCutToMicroseconds(*time))
        }
        Some(ReschedRequest { time, by: AskedBy::Hrtick }) => {
            write!(f, " by the timer of its slice (hrtick) at {}", SecondsCutToMicroseconds(*time))
        }
        Some(ReschedRequest { time, by: AskedBy::Wakeup(who) }) => {
            let whose = if Some(*who) == waiter {
                "this very wakeup".to_string()
            } else {
                format!("the wakeup of {who}")
            };
            write!(f, " by {whose} at {}", SecondsCutToMicroseconds(*time))
        }
        Some(ReschedRequest { time, by: AskedBy::Other }) => {
            write!(f, ", a reschedule pending since {}", SecondsCutToMicroseconds(*time))
        }
        None => Ok(()),
    }
}

impl OtherRun {
    fn print(&self, f: &mut fmt::Formatter<'_>, with_cpu: bool) -> fmt::Result {
        write!(f, "     {}  ", SecondsCutToMicroseconds(self.from))?;
        if with_cpu {
            write!(f, "CPU {}: ", self.cpu)?;
        }
        let ran = if self.began_before { "ran on" } else { "ran" };
        match self.beginning_unknown {
            true => write!(
                f,
                "{} is seen to run for {} ms, since when is unknown",
                self.who,
                ms(self.length().0)
            )?,
            false => write!(f, "{} {ran} for {} ms", self.who, ms(self.length().0))?,
        }
        match self.left {
            Some(how) => write!(f, ", {}", departed(how))?,
            None => f.write_str(" and went on")?,
        }
        print_asked(f, self.asked.as_ref(), None)?;
        if let Some(told) = &self.moved {
            write!(f, ", was {} to CPU {} at {}", moved(told), told.to, SecondsCutToMicroseconds(told.time))?;
        }
        writeln!(f)?;
        self.print_ticks(f)
    }

    fn print_ticks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ticks.is_empty() {
            return Ok(());
        }
        let noun = if self.tick_count == 1 { "tick" } else { "ticks" };
        let meaning = match self.slice_timer {
            true => ", since its slice ends by a timer of its own (hrtick)",
            false => "",
        };
        write!(f, "       {} {noun} passed and did not preempt it{meaning}:", self.tick_count)?;
        if self.tick_count <= SHOWN as u64 {
            for tick in &self.ticks {
                write!(f, " {} (after {} ms)", SecondsCutToMicroseconds(tick.time), ms(tick.runtime.0))?;
            }
            return writeln!(f);
        }
        let (least, most) = self
            .ticks
            .iter()
            .fold((u64::MAX, 0), |(least, most), tick| (least.min(tick.runtime.0), most.max(tick.runtime.0)));
        let time = |tick: Option<&Tick>| SecondsCutToMicroseconds(tick.map_or(Ns::ZERO, |tick| tick.time));
        let (first, last) = (time(self.ticks.first()), time(self.last_tick.as_ref()));
        writeln!(f, " from {first} to {last}, after {} to {} ms each", ms(least), ms(most))
    }
}

/// How a task left its CPU.
fn departed(how: Departure) -> String {
    match how {
        Departure::PreemptedInKernel => "was preempted inside the kernel (R+)".to_string(),
        Departure::Preempted => "was preempted on the way to user mode (R)".to_string(),
        Departure::Yielded => "yielded".to_string(),
        Departure::Runnable => "left runnable (R)".to_string(),
        Departure::Slept(state) if state.is_runnable() => "slept, its waker being there already".to_string(),
        Departure::Slept(state) if state.contains(TaskState::UNINTERRUPTIBLE) => format!("blocked ({state})"),
        Departure::Slept(state) => format!("slept ({state})"),
        Departure::Exited => "exited".to_string(),
    }
}
