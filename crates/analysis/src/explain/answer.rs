//! `fairlab/explain/1`: stories of waits, for programs.
//!
//! Must not know: how the trace was read.

use fairlab_event::Ns;
use serde_json::{Value, json};

use super::placement::ExplainedPlacement;
use super::story::{
    AskedBy, CpuMode, Departure, IdleCpu, MoveCause, NamedPid, OtherRun, PullAttempt, ReschedRequest, Story,
    VirtualTime, WaitCause, WaitEnd, WaitPart, WaiterMove, Waker,
};
use super::{Explanation, StillWaiting};

/// The answer; `import`: the account of how the trace was read.
pub fn to_json(explanation: &Explanation, import: &Value) -> Value {
    json!({
        "schema": "fairlab/explain/1",
        "waiting": explanation.waiting,
        "stories": explanation.stories.iter().map(story_json).collect::<Vec<_>>(),
        "measured": explanation.measured,
        "waits_across_losses": explanation.crossed,
        "still_waiting": explanation.still_waiting.iter().map(still_waiting_json).collect::<Vec<_>>(),
        "still_waiting_count": explanation.still_waiting_count,
        "import": import,
    })
}

fn story_json(story: &Story) -> Value {
    json!({
        "task": who_json(&story.task),
        "prio": story.prio.0,
        "wait_ns": story.length().0,
        "start_ns": story.start.0,
        "end_ns": story.end.0,
        "cause": cause_name(story.cause),
        "preempted_by": story.preempted_by.as_ref().map(asked_json),
        "waker": story.waker.as_ref().map(waker_json),
        "prev_cpu": story.prev_cpu.map(|cpu| cpu.0),
        "ran_on_cpu": story.ran_on.0,
        "stays": story.stays.iter().map(stay_json).collect::<Vec<_>>(),
        "stays_left_out": story.stays_left_out,
        "runs": story.runs.iter().map(run_json).collect::<Vec<_>>(),
        "runs_left_out": { "count": story.runs_left_out.0, "ran_ns": story.runs_left_out.1.0 },
        "runners": story.runners.iter().map(|runner| {
            json!({ "task": who_json(&runner.who), "runs": runner.runs, "ran_ns": runner.time.0 })
        }).collect::<Vec<_>>(),
        "throttled": story.throttled.iter().map(|span| {
            json!({
                "group": span.group,
                "cpu": span.cpu.0,
                "from_ns": span.from.0,
                "to_ns": span.to.0,
                "concluded": span.is_concluded,
            })
        }).collect::<Vec<_>>(),
        "perhaps_throttled": story.perhaps_throttled,
        "unknown_ns": story.unknown.0,
        "idle_cpus": story.idle.iter().map(idle_json).collect::<Vec<_>>(),
        "pinned_to_cpu": story.pinned_to.map(|cpu| cpu.0),
        "other_cpus_in_trace": story.other_cpus,
        "pull_attempts": story.pulls.iter().map(pull_json).collect::<Vec<_>>(),
        "pull_attempts_left_out": story.pulls_left_out,
        "ended_by": end_json(&story.end_cause),
        "virtual_time": story.virtual_time.as_ref().map(virtual_json),
        "incomplete": story.incomplete,
    })
}

fn who_json(who: &NamedPid) -> Value {
    json!({ "comm": who.comm.to_str(), "pid": who.pid.0 })
}

const fn cause_name(cause: WaitCause) -> &'static str {
    match cause {
        WaitCause::Wakeup => "wakeup",
        WaitCause::New => "new",
        WaitCause::PreemptedInKernel => "preempted_in_kernel",
        WaitCause::Preempted => "preempted_to_user",
        WaitCause::Yielded => "yielded",
        WaitCause::LeftRunnable => "left_runnable",
    }
}

fn waker_json(waker: &Waker) -> Value {
    let mode = match waker.mode {
        CpuMode::Task => "task",
        CpuMode::SoftInterrupt => "softirq",
        CpuMode::HardInterrupt => "hardirq",
    };
    json!({ "task": who_json(&waker.who), "cpu": waker.cpu.0, "context": mode })
}

fn stay_json(stay: &WaitPart) -> Value {
    json!({
        "cpu": stay.cpu.0,
        "from_ns": stay.from.0,
        "to_ns": stay.to.0,
        "brought_by": stay.brought_by.as_ref().map(move_json),
        "others_waiting": stay.ahead,
        "running": stay.runner.as_ref().map(who_json),
    })
}

fn move_json(told: &WaiterMove) -> Value {
    let cause = match told.cause {
        MoveCause::Wakeup => "wakeup",
        MoveCause::Asked => "asked",
        MoveCause::Softirq => "softirq",
        MoveCause::NewIdle => "new_idle",
        MoveCause::Stopper => "stopper",
        MoveCause::Other => "other",
    };
    json!({
        "time_ns": told.time.0,
        "from_cpu": told.from.0,
        "to_cpu": told.to.0,
        "cause": cause,
        "by": who_json(&told.by),
    })
}

fn run_json(run: &OtherRun) -> Value {
    let ticks = run.ticks.iter().map(
        |tick| json!({ "time_ns": tick.time.0, "accounted_ns": tick.runtime.0, "vruntime": tick.vruntime }),
    );
    json!({
        "task": who_json(&run.who),
        "cpu": run.cpu.0,
        "from_ns": run.from.0,
        "to_ns": run.to.0,
        "ran_ns": run.length().0,
        "began_before": run.began_before,
        "beginning_unknown": run.beginning_unknown,
        "left": run.left.map(departure_name),
        "state": run.left.and_then(|left| match left {
            Departure::Slept(state) => Some(state.to_string()),
            _ => None,
        }),
        "preempted_by": run.asked.as_ref().map(asked_json),
        "moved": run.moved.as_ref().map(move_json),
        "ticks_without_switch": run.tick_count,
        "ticks": ticks.collect::<Vec<_>>(),
    })
}

const fn departure_name(departure: Departure) -> &'static str {
    match departure {
        Departure::PreemptedInKernel => "preempted_in_kernel",
        Departure::Preempted => "preempted_to_user",
        Departure::Yielded => "yielded",
        Departure::Runnable => "left_runnable",
        Departure::Slept(_) => "slept",
        Departure::Exited => "exited",
    }
}

fn asked_json(asked: &ReschedRequest) -> Value {
    let (by, task) = match &asked.by {
        AskedBy::Tick => ("tick", None),
        AskedBy::Hrtick => ("hrtick", None),
        AskedBy::Wakeup(who) => ("wakeup", Some(who_json(who))),
        AskedBy::Other => ("other", None),
    };
    json!({ "time_ns": asked.time.0, "by": by, "task": task })
}

fn idle_json(idle: &IdleCpu) -> Value {
    json!({
        "cpu": idle.cpu.0,
        "idle_ns": idle.time.0,
        "pieces": idle.spells,
        "longest_ns": idle.longest.0,
        "longest_from_ns": idle.longest_from.0,
    })
}

fn pull_json(pull: &PullAttempt) -> Value {
    json!({
        "time_ns": pull.time.0,
        "to_cpu": pull.dest.0,
        "from_cpu": pull.src.0,
        "imbalance": pull.imbalance,
        "migration_type": pull.migration_type,
        "moved": pull.moved,
    })
}

fn end_json(end: &WaitEnd) -> Value {
    let named = |kind: &str, who: &NamedPid| json!({ "kind": kind, "task": who_json(who) });
    match end {
        WaitEnd::CpuWasIdle => json!({ "kind": "cpu_was_idle" }),
        WaitEnd::Blocked(who, Departure::Exited) => named("runner_exited", who),
        WaitEnd::Blocked(who, _) => named("runner_blocked", who),
        WaitEnd::Preempted(who, asked) => json!({
            "kind": "runner_preempted", "task": who_json(who), "preempted_by": asked.as_ref().map(asked_json),
        }),
        WaitEnd::Yielded(who) => named("runner_yielded", who),
        WaitEnd::LeftRunnable(who) => named("runner_left_runnable", who),
        WaitEnd::Stopper { stopper, moved } => json!({
            "kind": "stopper",
            "task": who_json(stopper),
            "moved": moved.as_ref().map(|(who, told)| json!({ "task": who_json(who), "move": move_json(told) })),
        }),
        WaitEnd::Unknown => json!({ "kind": "unknown" }),
    }
}

fn virtual_json(view: &VirtualTime) -> Value {
    let stood =
        |at: Option<(Ns, u64)>| at.map(|(time, vruntime)| json!({ "time_ns": time.0, "vruntime": vruntime }));
    json!({
        "waiter_placement": view.waiter.as_deref().map(placement_json),
        "waiter_vruntime": view.waiter_vruntime(),
        "runner": who_json(&view.runner),
        "runner_vruntime": stood(view.runner_vruntime),
        "runner_vruntime_at_last_tick": stood(view.runner_vruntime_at_end),
        "runner_placement": view.runner_placement.as_deref().map(placement_json),
        "gap_virtual_ns": view.gap(),
        "time_to_close_ns": view.time_to_close().map(|time| time.0),
        "waiter_groups": view.waiter_groups,
        "runner_groups": view.runner_groups(),
        "comparable": view.is_comparable(),
    })
}

fn placement_json(placement: &ExplainedPlacement) -> Value {
    let levels = placement.levels.iter().map(|level| {
        json!({
            "comm": level.comm.to_str(), "pid": level.pid.0, "vruntime": level.sev, "deadline": level.sed,
            "lag": level.sel, "avg_vruntime": level.avg, "min_vruntime": level.min, "nr_running": level.nr,
        })
    });
    let reweights = placement.reweights.iter().map(|reweight| {
        json!({
            "time_ns": reweight.time.0, "depth": reweight.depth, "weight": [reweight.weight.0, reweight.weight.1],
            "deadline": [reweight.deadline.0, reweight.deadline.1],
        })
    });
    json!({
        "time_ns": placement.time.0,
        "cpu": placement.cpu.0,
        "levels": levels.collect::<Vec<_>>(),
        "reweights": reweights.collect::<Vec<_>>(),
    })
}

fn still_waiting_json(waiting: &StillWaiting) -> Value {
    json!({
        "task": who_json(&waiting.task),
        "cpu": waiting.cpu.map(|cpu| cpu.0),
        "since_ns": waiting.since.0,
        "so_far_ns": waiting.so_far.0,
        "behind": waiting.behind.as_ref().map(who_json),
    })
}
