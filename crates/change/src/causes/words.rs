//! Causes in plain words.
//!
//! Must not know: how causes are found.

use fairlab_analysis::causes::{BalanceTries, CauseDecision, WaitBehind, WakeupPlacement};
use fairlab_kernel::balance::reasons;
use fairlab_kernel::decision::{PickReason, PreemptReason, SelectReason, TickReason};

use fairlab_lab::answer::causes::{
    CauseAnswer, CauseNameAnswer, ScopeAnswer, TallyAnswer, WaitSelection, WorkAnswer,
};

/// Shares of idleness below this are not mentioned.
const IDLE_TOLD: f64 = 0.25;

/// A cause in one clause.
pub(super) fn cause(behind: WaitBehind, decision: CauseDecision, reason: &str) -> String {
    let (behind, why) = (behind.words(), why(decision, reason));
    match decision {
        CauseDecision::Unknown => behind.to_string(),
        CauseDecision::Pending => format!("{behind}, while a reschedule was pending and kernel work went on"),
        CauseDecision::Pick => format!("{behind}, which was picked{why}"),
        CauseDecision::Tick => format!("{behind}, which a tick let run{why}"),
        CauseDecision::Preempt => format!("{behind}, which its wakeup did not preempt{why}"),
    }
}

/// The rule by which a task was left waiting, in one clause.
pub fn rule(decision: CauseDecision, reason: &str) -> String {
    let why = why(decision, reason);
    match decision {
        CauseDecision::Unknown | CauseDecision::Pending => decision.words().to_string(),
        CauseDecision::Pick => format!("the other was picked{why}"),
        CauseDecision::Tick => format!("a tick let the other run{why}"),
        CauseDecision::Preempt => format!("its wakeup did not preempt the other{why}"),
    }
}

/// The reason of a decision, as the end of a clause.
fn why(decision: CauseDecision, reason: &str) -> String {
    match (decision, reason.split_once(':')) {
        (CauseDecision::Unknown | CauseDecision::Pending, _) => String::new(),
        (CauseDecision::Pick, _) => since(clause(PickReason::CLAUSES, reason)),
        (CauseDecision::Tick, _) => since(clause(TickReason::CLAUSES, reason)),
        (CauseDecision::Preempt, Some((_, instead))) if !instead.is_empty() => {
            since(clause(PickReason::CLAUSES, instead))
        }
        (CauseDecision::Preempt, told) => {
            since(clause(PreemptReason::CLAUSES, told.map_or(reason, |(test, _)| test)))
        }
    }
}

fn since(clause: &str) -> String {
    if clause.is_empty() { String::new() } else { format!(", since {clause}") }
}

fn because(clause: &str) -> String {
    if clause.is_empty() { String::new() } else { format!(": {clause}") }
}

fn clause<'c>(clauses: &'c [(&str, &str)], reason: &'c str) -> &'c str {
    clauses.iter().find(|(name, _)| *name == reason).map_or(reason, |(_, clause)| clause)
}

/// What a wakeup chose, and why.
pub(super) fn placed(placed: WakeupPlacement, reason: &str) -> String {
    format!("{}{}", placed.words(), because(clause(SelectReason::CLAUSES, reason)))
}

/// Whether a CPU without work took none.
pub(super) fn leaves_idle(tries: &BalanceTries) -> bool {
    ["Idle", "NewlyIdle"].contains(&tries.idle.as_str())
        && !["Moved", "Pushed"].contains(&tries.reason.as_str())
}

/// What came of a try of balancing.
pub(super) fn tries(tries: &BalanceTries) -> String {
    let cpu = match tries.idle.as_str() {
        "NotIdle" => "a busy CPU",
        "Idle" => "an idle CPU",
        "NewlyIdle" => "a CPU about to idle",
        other => other,
    };
    let known = [reasons::BalancedReason::CLAUSES, reasons::TaskReason::CLAUSES, reasons::PullEnd::CLAUSES];
    let clause =
        known.iter().map(|clauses| clause(clauses, &tries.reason)).find(|found| *found != tries.reason);
    match tries.reason.as_str() {
        "Moved" => format!("{cpu} pulled tasks"),
        "Pushed" => format!("{cpu} had a running task pushed to it"),
        reason => format!("{cpu} pulled nothing: {}", clause.unwrap_or(reason)),
    }
}

/// A time in a second, in a unit that reads well.
pub fn per_second(ns: f64) -> String {
    let size = ns.abs();
    if size < 0.5 {
        return "0".to_string();
    }
    let (value, unit) = match size {
        _ if size >= 1e9 => (ns / 1e9, "s/s"),
        _ if size >= 1e6 => (ns / 1e6, "ms/s"),
        _ if size >= 1e3 => (ns / 1e3, "us/s"),
        _ => (ns, "ns/s"),
    };
    let digits = match value.abs() {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The tasks that wait, with the verb.
fn subject(scope: &ScopeAnswer) -> String {
    match (scope.waits, &scope.waiter) {
        (WaitSelection::Named, Some(name)) => format!("{name} waits"),
        (WaitSelection::All | WaitSelection::Named, _) => "tasks wait".to_string(),
        (WaitSelection::Woken, _) => "woken tasks wait".to_string(),
        (WaitSelection::LongWoken, _) => {
            format!("in waits of {} or more, woken tasks wait", length(scope.least_ns))
        }
    }
}

/// How much longer, with its interval.
fn total((baseline, kernel): (&String, &String), scope: &ScopeAnswer) -> String {
    let (before, after) = (per_second(scope.baseline_ns_per_s), per_second(scope.ns_per_s));
    let more = if scope.added.mean >= 0.0 { "more" } else { "less" };
    let interval = match (scope.added.low, scope.added.high) {
        (Some(low), Some(high)) => format!(" ({} to {})", per_second(low), per_second(high)),
        _ => " in one course of events: another may differ".to_string(),
    };
    let size = per_second(scope.added.mean.abs());
    let of = subject(scope);
    format!("{of} {size} {more} with {kernel} than with {baseline}{interval}: {after} instead of {before}")
}

/// The whole difference of some waits, with what most of it is, in one sentence.
pub(super) fn lead((baseline, kernel): &(String, String), scope: &ScopeAnswer) -> String {
    let chance_known = scope.added.p.is_some();
    let with_it = |cause: &&CauseAnswer| {
        (cause.added.mean > 0.0) == (scope.added.mean > 0.0) && (!chance_known || cause.sure)
    };
    let all = total((baseline, kernel), scope);
    let Some(group) = scope.behind.iter().find(with_it) else { return all };
    let runner =
        group.runners.first().map_or_else(String::new, |runner| format!(", most of it {}", runner.name));
    let ruled = |cause: &&CauseAnswer| cause.behind == group.behind && cause.words != group.words;
    let rule = scope.causes.iter().filter(with_it).find(ruled).map_or_else(String::new, |cause| {
        let words = cause.words.strip_prefix(group.behind.words()).unwrap_or(&cause.words);
        format!("; {} behind one {}", share_of(cause, scope), words.trim_start_matches(", "))
    });
    format!("{all}; {} is {}{runner}{}{rule}", part_of(group, scope), group.words, beside_idle(group))
}

/// Work of the scheduler, in one sentence.
pub(super) fn work((baseline, kernel): &(String, String), work: &WorkAnswer) -> String {
    let units = format!(
        "{} {} a second instead of {}",
        rate(work.units_per_s),
        work.unit,
        rate(work.baseline_units_per_s)
    );
    let times = match work.baseline_ns_per_s + work.ns_per_s > 0.0 {
        true => format!(
            "{} with {kernel} instead of {} with {baseline}; ",
            per_second(work.ns_per_s),
            per_second(work.baseline_ns_per_s)
        ),
        false => String::new(),
    };
    let own = format!("the scheduler's own work differs most where {}: {times}", work.words);
    if work.baseline_units_per_s + work.units_per_s > 0.0 {
        format!("{own}{units}")
    } else {
        own.trim_end_matches("; ").to_string()
    }
}

/// What is decided more or less often.
pub(super) fn tally(tally: &TallyAnswer) -> String {
    format!("{}, {} times a second instead of {}", tally.words, rate(tally.per_s), rate(tally.baseline_per_s))
}

/// A number a second that reads well.
fn rate(rate: f64) -> String {
    match rate {
        _ if rate >= 1e6 => format!("{:.2} million", rate / 1e6),
        _ if rate >= 100.0 => format!("{rate:.0}"),
        _ if rate >= 1.0 => format!("{rate:.1}"),
        _ if rate == 0.0 => "0".to_string(),
        _ => format!("{rate:.2}"),
    }
}

/// The difference in one to three sentences.
pub(super) fn sentences((baseline, kernel): &(String, String), scope: &ScopeAnswer) -> Vec<String> {
    let of = subject(scope);
    let (before, after) = (per_second(scope.baseline_ns_per_s), per_second(scope.ns_per_s));
    let chance_known = scope.added.p.is_some();
    let counts = |cause: &&CauseAnswer| cause.added.mean != 0.0 && (!chance_known || cause.sure);
    if scope.added.mean == 0.0 && scope.causes.iter().all(|cause| cause.added.mean == 0.0) {
        return vec![format!("{of} as long with {kernel} as with {baseline}: no cause to tell")];
    }
    let greatest = scope.causes.iter().find(counts);
    if chance_known && !scope.sure {
        let all = format!(
            "{of} {after} with {kernel} and {before} with {baseline}: chance may make that difference"
        );
        return match greatest {
            None => vec![format!("{all}, and no cause stands out")],
            Some(greatest) => {
                let group = scope.behind.iter().find(counts).map(|group| whole(group, scope));
                let first = group.unwrap_or_else(|| detail(greatest, scope));
                vec![format!("{all}, but not what they wait for"), first]
            }
        };
    }
    let mut told = vec![total((baseline, kernel), scope)];
    told.extend(scope.behind.iter().find(counts).map(|group| whole(group, scope)));
    told.extend(greatest.map(|greatest| detail(greatest, scope)));
    told
}

/// What most of the difference is, by what had the CPU.
fn whole(group: &CauseAnswer, scope: &ScopeAnswer) -> String {
    let name = |names: &[CauseNameAnswer]| names.first().map(|name| name.name.clone());
    let who = match (name(&group.waiters), name(&group.runners)) {
        (Some(waiter), Some(runner)) => format!(", most of it {waiter} behind {runner}"),
        (Some(waiter), None) => format!(", most of it {waiter}"),
        _ => String::new(),
    };
    format!(
        "{} is {}: {} instead of {}{who}",
        part_of(group, scope),
        group.words,
        per_second(group.ns_per_s),
        per_second(group.baseline_ns_per_s)
    )
}

/// The greatest cause with its decision, how it ended, and whether a CPU was idle meanwhile.
fn detail(cause: &CauseAnswer, scope: &ScopeAnswer) -> String {
    let mut text = format!(
        "{} is {}: {} instead of {}",
        part_of(cause, scope),
        cause.words,
        per_second(cause.ns_per_s),
        per_second(cause.baseline_ns_per_s)
    );
    if let Some(ended) = cause.ended.first() {
        text += &format!("; it mostly ended when {}", ended.words);
    }
    text + &beside_idle(cause)
}

/// Whether a CPU was idle meanwhile.
fn beside_idle(cause: &CauseAnswer) -> String {
    idle_share(cause)
        .map_or_else(String::new, |idle| format!("; for {} of that time another CPU was idle", percent(idle)))
}

/// The share of the waiting time with another CPU idle, on the side that waits more, where that is worth telling.
pub(super) fn idle_share(cause: &CauseAnswer) -> Option<f64> {
    let side = if cause.added.mean >= 0.0 { cause.beside_idle } else { cause.baseline_beside_idle };
    side.filter(|&idle| idle >= IDLE_TOLD)
}

/// Which part of the difference a cause is.
fn part_of(cause: &CauseAnswer, scope: &ScopeAnswer) -> String {
    let whole = if scope.added.mean >= 0.0 { "the added wait" } else { "the saved wait" };
    let part = share_of(cause, scope);
    if part.ends_with('%') { format!("{part} of {whole}") } else { part }
}

/// The share of the difference, where it is one; else how much it is.
fn share_of(cause: &CauseAnswer, scope: &ScopeAnswer) -> String {
    let is_known = scope.sure || scope.added.p.is_none();
    match cause.share {
        Some(share) if is_known && (0.0..=1.5).contains(&share) => percent(share),
        _ => {
            let more = if cause.added.mean >= 0.0 { "more" } else { "less" };
            format!("{} {more}", per_second(cause.added.mean.abs()))
        }
    }
}

fn length(ns: u64) -> String {
    match ns {
        ns if ns >= 1_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        ns => format!("{:.1} us", ns as f64 / 1e3),
    }
}
