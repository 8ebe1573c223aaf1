//! Knowledge is told from luck: what counts as agreement, of whole recordings and in situations in which a hidden state decides.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::texts::Trace;
use fairlab_verify::{
    Agreement, DecisionKind, DecisionOutcome, JudgedDecision, VerdictGround, VerifyOptions, WalkAssumptions,
    recorded_kernel, verify,
};

fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings");
    let entries = std::fs::read_dir(&folder).expect("recordings").flatten().map(|entry| entry.path());
    let mut all = entries.filter(|path| path.is_dir()).collect::<Vec<_>>();
    all.sort();
    all
}

fn with_decisions(path: &Path) -> Agreement {
    assuming(path, WalkAssumptions::default())
}

/// What is decided if the time before the trace was so.
fn assuming(path: &Path, assumed: WalkAssumptions) -> Agreement {
    let options = VerifyOptions { decisions: true, assumed, ..VerifyOptions::default() };
    let kernel = recorded_kernel(path, &options).expect("a kernel").generation;
    verify(path, &kernel, &options).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a decision comes to by its ground alone: every answer is the kernel's, some are, or none is.
fn by_its_ground(ground: &VerdictGround) -> &'static str {
    let holds = ground.answers.iter().filter(|near| {
        near.at.iter().zip(near.within).zip(ground.kernel).all(|((&at, within), kernel)| {
            kernel.wrapping_sub(at) <= within || at.wrapping_sub(kernel) <= within
        })
    });
    let single =
        ground.answers.iter().all(|near| near.within == [0, 0]) && ground.answers.iter().count() == 1;
    match (holds.count(), single) {
        (0, _) => "missed",
        (_, true) => "agree",
        (_, false) => "admissible",
    }
}

fn name(outcome: DecisionOutcome) -> &'static str {
    match outcome {
        DecisionOutcome::Agree => "agree",
        DecisionOutcome::Admissible => "admissible",
        DecisionOutcome::Missed(_) => "missed",
        DecisionOutcome::NotJudged(_) => "not judged",
    }
}

#[test]
fn every_verdict_is_the_one_that_its_answers_give() {
    let mut found = BTreeMap::<&str, u64>::new();
    for path in recordings() {
        let agreement = with_decisions(&path);
        let mut sums = BTreeMap::<(DecisionKind, &str), u64>::new();
        for JudgedDecision { kind, outcome, ground, case, .. } in &agreement.decisions {
            let expected = ground.as_ref().map_or("not judged", by_its_ground);
            assert_eq!(name(*outcome), expected, "{}, {kind:?} {case}: {ground:?}", path.display());
            *sums.entry((*kind, expected)).or_default() += 1;
            *found.entry(expected).or_default() += 1;
        }
        for (kind, tally) in &agreement.kinds {
            let of = |name| sums.get(&(*kind, name)).copied().unwrap_or(0);
            let counted = [tally.all.agree, tally.all.admissible, tally.all.missed()];
            assert_eq!(counted, ["agree", "admissible", "missed"].map(of), "{} {kind:?}", path.display());
            assert_eq!(tally.not_judged_total(), of("not judged"), "{} {kind:?}", path.display());
        }
    }
    assert!(found["agree"] > 200_000 && found["admissible"] > 2_000 && found["missed"] > 50, "{found:?}");
}

/// A kernel that had given another of the allowed answers is as admissible, whichever is the likeliest; one beyond them is missed.
#[test]
fn another_of_the_allowed_answers_is_admissible_as_well() {
    let mut flipped = 0;
    for path in recordings().into_iter().step_by(5) {
        for decision in with_decisions(&path).decisions {
            let Some(ground) = decision.ground.filter(|_| decision.outcome == DecisionOutcome::Admissible)
            else {
                continue;
            };
            for near in ground.answers.iter() {
                let other = VerdictGround { kernel: near.at, answers: ground.answers.clone() };
                assert_eq!(by_its_ground(&other), "admissible", "{other:?}");
                flipped += u64::from(other.kernel != ground.kernel);
            }
        }
    }
    assert!(flipped > 200, "{flipped}");
}

/// The decisions by kind, event, and their number in it.
fn by_event(agreement: Agreement) -> BTreeMap<(DecisionKind, u64, u32), JudgedDecision> {
    let mut decisions = BTreeMap::new();
    for decision in agreement.decisions {
        let taken = (0..).find(|&nth| !decisions.contains_key(&(decision.kind, decision.event, nth)));
        decisions.insert((decision.kind, decision.event, taken.unwrap_or(0)), decision);
    }
    decisions
}

/// Times before the trace that no recording here tells from that which the walk assumes.
const BEFORE: [WalkAssumptions; 6] = [
    WalkAssumptions { wakee_flips: 40, recent_ahead: 0, idle_cores: false, nr_idle_scan: 0, load: 0 },
    WalkAssumptions { wakee_flips: 0, recent_ahead: 1, idle_cores: false, nr_idle_scan: 0, load: 0 },
    WalkAssumptions { wakee_flips: 0, recent_ahead: 0, idle_cores: true, nr_idle_scan: 0, load: 0 },
    WalkAssumptions { wakee_flips: 0, recent_ahead: 0, idle_cores: false, nr_idle_scan: 8, load: 0 },
    WalkAssumptions { wakee_flips: 0, recent_ahead: 0, idle_cores: false, nr_idle_scan: 0, load: 3000 },
    WalkAssumptions { wakee_flips: 3, recent_ahead: 3, idle_cores: true, nr_idle_scan: 2, load: 700 },
];

/// A wakeup that agrees does so whatever was before the trace: none is missed if that is assumed otherwise.
#[test]
fn no_agreement_hangs_on_what_was_before_the_trace() {
    let mut changed = 0;
    for (index, path) in recordings().into_iter().enumerate() {
        let known = by_event(with_decisions(&path));
        // All six in turn: each recording has two of them.
        for assumed in BEFORE.into_iter().skip(index % 3).step_by(3) {
            let other = by_event(assuming(&path, assumed));
            for (at, decision) in &known {
                let Some(other) = other.get(at) else { continue };
                let [one, two] = [decision, other].map(|decision| name(decision.outcome));
                let hangs = matches!((one, two), ("agree", "missed") | ("missed", "agree"));
                assert!(!hangs, "{} {at:?}, {assumed:?}: {decision:?}, {other:?}", path.display());
                changed += u64::from(decision.ground != other.ground);
            }
        }
    }
    assert!(changed > 0, "what was before the trace changes no answer");
}

/// Each CPU runs a program of its own.
fn hogs(cpus: &[u32]) -> Trace {
    let mut trace = Trace::default();
    for &cpu in cpus {
        trace.switch(cpu, ["<idle>-0", &hog(cpu)], "R");
    }
    trace
}

fn hog(cpu: u32) -> String {
    format!("hog-{}", 70 + cpu)
}

/// A task that sleeps on `prev` is woken by code on `by`, put on `to`, runs there and sleeps; `to` idles only where `idle`.
fn wakes(trace: &mut Trace, [by, prev, to]: [u32; 3], in_task: bool, idle: bool) {
    let woken = |cpu: u32| format!("comm=task pid=90 prio=120 target_cpu={cpu:03}");
    let flags = if in_task { ["d..2.", "d..3."] } else { ["d.h2.", "d.h3."] };
    trace.line(&hog(by), by, flags[0], &format!("sched_waking: {}", woken(prev)));
    if to != prev {
        let moved = format!("sched_migrate_task: comm=task pid=90 prio=120 orig_cpu={prev} dest_cpu={to}");
        trace.line(&hog(by), by, flags[0], &moved);
    }
    trace.line(&hog(by), by, flags[1], &format!("sched_wakeup: {}", woken(to)));
    let before = if idle { "<idle>-0".to_string() } else { hog(to) };
    if !idle {
        trace.charge(&before, to);
    }
    trace.switch(to, [&before, "task-90"], if idle { "R" } else { "R+" });
    trace.charge("task-90", to);
    trace.switch(to, ["task-90", &before], "S");
}

/// So many wakeups that the trace is no longer at its beginning.
fn warm_up(trace: &mut Trace, cpu: u32) {
    (0..25).for_each(|_| wakes(trace, [cpu, cpu, cpu], false, false));
}

/// What the last wakeup came to.
fn last_wakeup(agreement: &Agreement) -> (&'static str, Vec<u64>) {
    let mut wakeups = agreement.decisions.iter().filter(|decision| decision.kind == DecisionKind::WakeupCpu);
    let last = wakeups.next_back().expect("a wakeup");
    let answers = last.ground.iter().flat_map(|ground| ground.answers.iter().map(|near| near.at[0]));
    let mut answers = answers.collect::<Vec<_>>();
    answers.sort_unstable();
    (name(last.outcome), answers)
}

/// How far a search may go is not shown: whether it finds the idle CPU beside is open, whichever the kernel chose before.
#[test]
fn how_far_a_search_goes_is_open() {
    for (earlier, chosen) in [(1, 1), (1, 0), (0, 1), (0, 0)] {
        let mut trace = hogs(&[1]);
        trace.switch(0, ["<idle>-0", "other-60"], "R");
        trace.charge("other-60", 0);
        trace.switch(0, ["other-60", "<idle>-0"], "S");
        warm_up(&mut trace, 1);
        // What the walk guesses by comes from these.
        for _ in 0..6 {
            wakes(&mut trace, [1, 1, earlier], false, earlier == 0);
            if earlier == 0 {
                wakes(&mut trace, [1, 0, 1], false, false);
            }
        }
        wakes(&mut trace, [1, 1, chosen], false, chosen == 0);
        let verdict = last_wakeup(&trace.verified("scan", 2, "v6.12"));
        assert_eq!(verdict, ("admissible", vec![0, 1]), "after {earlier}, chosen {chosen}");
    }
}

/// Two caches of busy CPUs, a waker in the one, the task's last CPU in the other: loads, which begin before the trace, decide;
/// and whether the waker promised to sleep.
#[test]
fn loads_of_before_the_trace_and_promises_are_open() {
    for in_task in [false, true] {
        for chosen in [1, 3] {
            let mut trace = hogs(&[0, 1, 2, 3]);
            warm_up(&mut trace, 3);
            wakes(&mut trace, [1, 3, chosen], in_task, false);
            let (verdict, answers) = last_wakeup(&trace.verified("loads", 4, "v6.12"));
            assert_eq!(verdict, "admissible", "in a task: {in_task}, chosen {chosen}: {answers:?}");
            assert!(answers.contains(&1) && answers.contains(&3), "{answers:?}");
        }
    }
}

/// Whether the cache has a wholly idle core is a hint that only a core which goes idle shows.
#[test]
fn whether_there_is_an_idle_core_is_open_until_one_goes_idle() {
    for (shows_core, chosen, expected) in
        [(false, 0, "admissible"), (false, 2, "admissible"), (true, 2, "agree"), (true, 0, "missed")]
    {
        let mut trace = hogs(&[1]);
        trace.switch(0, ["<idle>-0", "other-60"], "R");
        warm_up(&mut trace, 1);
        trace.charge("other-60", 0);
        trace.switch(0, ["other-60", "<idle>-0"], "S");
        if shows_core {
            trace.switch(2, ["<idle>-0", "other-60"], "R");
            trace.charge("other-60", 2);
            trace.switch(2, ["other-60", "<idle>-0"], "S");
        }
        wakes(&mut trace, [1, 1, chosen], false, true);
        // Balancing may have found that a search is in vain; that is another unknown.
        let (verdict, answers) = last_wakeup(&trace.verified_on_threads("core", 4, "v6.12+NO_SIS_UTIL"));
        assert_eq!(verdict, expected, "core shown: {shows_core}, chosen {chosen}: {answers:?}");
    }
}
