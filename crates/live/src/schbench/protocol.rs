//! The live program holds to the model's protocol: the same calls in the same order.
//!
//! Must not know: how either does it.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use fairlab_event::Ns;
use fairlab_sim::workload::schbench::{Schbench, SchbenchOptions};
use fairlab_sim::workload::{Action, ThreadId, ThreadSpec, View, Workload};
use fairlab_sim::{Engine, Machine};

use super::SchbenchRun;
use super::threads::KernelCall;
use crate::LiveConditions;

/// The calls of each thread, message threads each before their workers.
type CallsByThread = Vec<Vec<KernelCall>>;

/// A thread's stream and its calls.
type ThreadCalls = (String, Vec<KernelCall>);

/// The model's program, which notes what its threads do, by thread.
struct NotedSchbench {
    inner: Schbench,
    calls: Arc<Mutex<Vec<ThreadCalls>>>,
}

impl Workload for NotedSchbench {
    fn main_thread(&self) -> ThreadSpec {
        self.inner.main_thread()
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        let action = self.inner.next(thread, view);
        let mut calls = self.calls.lock().expect("one thread");
        let is_message =
            |calls: &[ThreadCalls], thread: ThreadId| calls[thread.index()].0.starts_with("message");
        let call = match &action {
            Action::Run(_) | Action::SpinUntil(_) => Some(KernelCall::Compute),
            Action::Wake(whom) if is_message(&calls, *whom) => Some(KernelCall::Wake(None)),
            Action::Wake(whom) => Some(KernelCall::Wake(Some(whom.index()))),
            Action::Wait => Some(KernelCall::Wait),
            Action::Sleep(_) => Some(KernelCall::Sleep),
            Action::Spawn(spec) => {
                calls.push((spec.stream.clone(), Vec::new()));
                None
            }
            _ => None,
        };
        calls[thread.index()].1.extend(call);
        action
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        self.inner.must_wait(thread)
    }

    fn output(&self, now: Ns) -> String {
        self.inner.output(now)
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        self.inner.progress()
    }
}

fn options(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_string).collect()
}

fn modelled(line: &str) -> CallsByThread {
    let calls = Arc::new(Mutex::new(vec![("main".to_string(), Vec::new())]));
    let inner = Schbench::parse(&options(line)).expect("options");
    let machine = Machine::preset("laptop8").expect("a machine");
    let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
    engine.start(Box::new(NotedSchbench { inner, calls: Arc::clone(&calls) }));
    engine.run_until(Ns::from_secs(4), &mut ());
    let calls = calls.lock().expect("one thread").clone();
    calls.into_iter().skip(1).map(|(_, calls)| calls).collect()
}

fn lived(line: &str) -> CallsByThread {
    let mut program = SchbenchRun::new(SchbenchOptions::parse(&options(line)).expect("options"), 1, true);
    let conditions = LiveConditions { seed: 1, duration: None, stop: &AtomicBool::new(false), marker: None };
    program.main(&conditions, &mut |_| ()).expect("a report");
    program.diaries.iter_mut().map(|diary| diary.0.take().expect("it is kept")).collect()
}

/// Whom a thread wakes counts by kind only: the two worlds number threads in their own ways.
fn anonymous(call: KernelCall) -> KernelCall {
    if let KernelCall::Wake(Some(_)) = call { KernelCall::Wake(Some(0)) } else { call }
}

/// Which call follows which, by whether the thread is a message thread, which alone sleeps on timers. The first and the
/// last calls, where threads begin and are told to stop, stay aside. So does a worker's first post: a message thread's futex
/// begins as one that is waited for, and with `-R` the first post of all makes a call, however late it comes.
type CallSuccessions = BTreeSet<(bool, KernelCall, KernelCall)>;

fn successions(calls: &CallsByThread) -> CallSuccessions {
    let pairs = |thread: &Vec<KernelCall>| {
        let replies = thread.contains(&KernelCall::Sleep);
        let mut thread = thread.clone();
        if let Some(first) = thread.iter().position(|&call| call == KernelCall::Wake(None)) {
            thread.remove(first);
        }
        let inner = thread.get(2..thread.len().saturating_sub(6)).unwrap_or_default();
        let pair = |pair: &[KernelCall]| (replies, anonymous(pair[0]), anonymous(pair[1]));
        inner.windows(2).map(pair).collect::<Vec<_>>()
    };
    calls.iter().flat_map(pairs).collect()
}

/// What may follow what where threads can be late: a wait for what has come already, and a wakeup of one who does not
/// sleep yet, take no call, so what is before and behind them follow each other.
fn with_calls_saved(mut successions: CallSuccessions) -> CallSuccessions {
    loop {
        let saved = |call: KernelCall| matches!(call, KernelCall::Wait | KernelCall::Wake(_));
        let over = |&(role, before, call): &(bool, KernelCall, KernelCall)| {
            let behind =
                successions.iter().filter(move |next| saved(call) && (next.0, next.1) == (role, call));
            behind.map(|&(_, _, after)| (role, before, after)).collect::<Vec<_>>()
        };
        let more = successions.iter().flat_map(over).collect::<CallSuccessions>();
        if more.is_subset(&successions) {
            return successions;
        }
        successions.extend(more);
    }
}

/// With one worker everything is a strict turn, so the sequences are equal, call by call. On a busy machine a wakeup may
/// come before its sleep, which saves a call: of the hundreds of turns of a run, three in a row must be undisturbed.
#[test]
fn one_worker_and_its_message_thread_take_turns_as_in_the_model() {
    let line = "-m 1 -t 1 -r 1 -c 3000 -s 1000 -w 0";
    let named = |calls: &CallsByThread| {
        calls.iter().map(|calls| calls.iter().copied().map(anonymous).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let model = named(&modelled(line));
    assert_eq!(model.len(), 2);
    let turn_of_message =
        [KernelCall::Wait, KernelCall::Compute, KernelCall::Sleep, KernelCall::Wake(Some(0))];
    let turn_of_worker = [KernelCall::Compute, KernelCall::Wake(None), KernelCall::Wait];
    assert!(model[0].starts_with(&turn_of_message.repeat(3)), "{:?}", &model[0][..12]);
    assert!(model[1].starts_with(&turn_of_worker.repeat(3)), "{:?}", &model[1][..12]);
    let mut seen = Vec::new();
    for _ in 0..10 {
        seen = named(&lived(line));
        assert_eq!(seen.len(), 2);
        let has = |calls: &[KernelCall], turn: &[KernelCall]| {
            calls.windows(3 * turn.len()).any(|some| some == turn.repeat(3))
        };
        if has(&seen[0], &turn_of_message) && has(&seen[1], &turn_of_worker) {
            return;
        }
    }
    panic!(
        "never three turns in a row: {:?}",
        seen.iter().map(|calls| &calls[..calls.len().min(40)]).collect::<Vec<_>>()
    );
}

#[test]
fn calls_follow_each_other_as_in_the_model() {
    // Each with what must be among them, so that an empty run does not pass.
    for (line, typical) in [
        ("-m 2 -t 3 -r 1 -c 2000 -s 1000 -w 0", (false, KernelCall::Compute, KernelCall::Wake(None))),
        (
            "-m 1 -t 3 -r 1 -c 2000 -s 1000 -w 0 --revision 93483e4",
            (true, KernelCall::Wait, KernelCall::Sleep),
        ),
        ("-m 1 -t 4 -r 1 -c 2000 -R 300", (true, KernelCall::Sleep, KernelCall::Wake(Some(0)))),
    ] {
        let (model, live) = (successions(&modelled(line)), successions(&lived(line)));
        assert!(model.contains(&typical) && live.contains(&typical), "{line}: {model:?} {live:?}");
        let admissible = with_calls_saved(model);
        let strange = live.difference(&admissible).collect::<Vec<_>>();
        assert!(strange.is_empty(), "{line}: {strange:?} are not among {admissible:?}");
    }
}
