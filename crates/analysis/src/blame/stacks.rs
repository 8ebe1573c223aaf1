//! Where tasks sleep and in which code they are woken, as call stacks behind `sched_switch` and `sched_waking` show it.
//!
//! A stack is a run of events `kernel_stack` behind the event that it is of: a head, and a frame each, the innermost first. The first frame
//! that is not the scheduler's own names the place.
//!
//! Must not know: how waits are followed, what is summed.

use fairlab_event::{Cpu, Event, EventKind};

use crate::tracker::CPUS_MAX;

/// How many functions are told apart; further ones share the last.
const FUNCTIONS_MAX: usize = 512;

/// The functions between a caller that means something and the tracepoint of a switch.
const OF_SLEEP: [&str; 12] = [
    "__schedule",
    "__sched_notrace_preempt_end",
    "io_schedule",
    "io_schedule_timeout",
    "preempt_schedule",
    "preempt_schedule_common",
    "schedule",
    "schedule_hrtimeout",
    "schedule_hrtimeout_range",
    "schedule_hrtimeout_range_clock",
    "schedule_preempt_disabled",
    "schedule_timeout",
];

/// The same of a wakeup.
const OF_WAKEUP: [&str; 14] = [
    "__wake_up",
    "__wake_up_common",
    "__wake_up_common_lock",
    "__wake_up_locked",
    "__wake_up_sync_key",
    "autoremove_wake_function",
    "default_wake_function",
    "pollwake",
    "swake_up_locked",
    "swake_up_one",
    "try_to_wake_up",
    "wake_up_process",
    "wake_up_q",
    "wake_up_state",
];

/// How functions that only trace begin.
const OF_TRACING: [&str; 5] = ["trace_", "__trace", "ftrace_", "event_trigger", "stacktrace_"];

/// What a stack is of: a task that went to sleep, or that was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StackOf {
    Sleep(u32),
    Wakeup(u32),
}

/// Stacks that are being read, and the functions that were found.
#[derive(Clone, Debug, Default)]
pub(super) struct Stacks {
    /// For each CPU, what a stack would be of that comes next.
    of: Vec<Option<StackOf>>,
    functions: Vec<String>,
}

impl Stacks {
    /// A stack that comes next on this CPU is of this; none: of nothing that is asked about.
    pub(super) fn is_of(&mut self, cpu: Cpu, of: Option<StackOf>) {
        if self.of.len() <= cpu.index() && of.is_some() && cpu.index() < CPUS_MAX {
            self.of.resize(cpu.index() + 1, None);
        }
        if let Some(place) = self.of.get_mut(cpu.index()) {
            *place = of;
        }
    }

    /// Takes an event. Whether it is of a stack; with the function that it shows, where that means something, and whose stack that is.
    pub(super) fn frame(&mut self, event: &Event<'_>) -> (bool, Option<(StackOf, u16)>) {
        let EventKind::Other { name, fields } = event.kind else { return (false, None) };
        let text = fields.text();
        let frame = text.strip_prefix("=> ").filter(|_| name == FRAMES);
        let Some(frame) = frame else { return (text.starts_with(HEAD), None) };
        let of = self.of.get(event.cpu.index()).copied().flatten();
        let function = frame.split(['+', ' ', '(', '<']).next().unwrap_or_default();
        let Some(of) = of.filter(|of| means_something(function, *of)) else { return (true, None) };
        self.is_of(event.cpu, None);
        (true, Some((of, self.number(function))))
    }

    /// A function's number, from 1.
    fn number(&mut self, function: &str) -> u16 {
        let known = self.functions.iter().position(|known| known == function);
        let place = known.unwrap_or_else(|| {
            if self.functions.len() < FUNCTIONS_MAX {
                self.functions.push(function.to_string());
            }
            self.functions.len() - 1
        });
        place as u16 + 1
    }

    /// All functions, from number 1.
    pub(super) fn functions(&self) -> &[String] {
        &self.functions
    }
}

/// The name of the events that hold a frame each.
const FRAMES: &str = "kernel_stack";

/// How the head of a stack begins.
const HEAD: &str = "<stack trace";

fn means_something(function: &str, of: StackOf) -> bool {
    let is_own = match of {
        StackOf::Sleep(_) => OF_SLEEP.contains(&function),
        StackOf::Wakeup(_) => OF_WAKEUP.contains(&function) || function.starts_with("ttwu_"),
    };
    !is_own && !OF_TRACING.iter().any(|head| function.starts_with(head))
}
