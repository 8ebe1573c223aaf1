//! Threads that spin on what others change, and kernel work that makes way.

use fairlab_event::{Cpu, Digest, DigestSink, EventKind, Ns, sink_fn};
use fairlab_kernel::CpuMask;

use super::machine;
use crate::Engine;
use crate::workload::{Action, Offer, ThreadId, ThreadSpec, View, Workload};

/// Threads that take a lock, compute 100 us under it and give it back, as often as they can.
struct Contenders {
    specs: Vec<ThreadSpec>,
    spawned: usize,
    holder: Option<ThreadId>,
    held: Vec<u32>,
    /// For how long a thread spins before it sleeps for 1 ms.
    most: Ns,
    gave_up: u32,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Begin,
    Spin,
    Hold,
    Release,
}

impl Contenders {
    fn new(cpus: &[u32], most: Ns) -> Contenders {
        let spec = |(number, cpu): (usize, &u32)| ThreadSpec {
            allowed: CpuMask::single(Cpu(*cpu)),
            ..ThreadSpec::new("lock", format!("lock {number}"))
        };
        let specs = cpus.iter().enumerate().map(spec).collect::<Vec<_>>();
        let (held, steps) = (vec![0; cpus.len() + 1], vec![Step::Begin; cpus.len() + 1]);
        Contenders { specs, spawned: 0, holder: None, held, most, gave_up: 0, steps }
    }
}

impl Workload for Contenders {
    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("main", "main")
    }

    fn next(&mut self, thread: ThreadId, _: &mut View<'_>) -> Action {
        if thread == ThreadId::MAIN {
            let Some(spec) = self.specs.get(self.spawned) else { return Action::Exit };
            self.spawned += 1;
            return Action::Spawn(spec.clone());
        }
        let step = &mut self.steps[thread.index()];
        match *step {
            Step::Begin => {
                *step = Step::Spin;
                Action::SpinOn { word: 0, most: self.most }
            }
            Step::Spin if self.holder != Some(thread) => {
                self.gave_up += 1;
                *step = Step::Begin;
                Action::Sleep(Ns::from_ms(1))
            }
            Step::Spin => {
                *step = Step::Hold;
                self.held[thread.index()] += 1;
                Action::Run(Ns::from_us(100))
            }
            Step::Hold => {
                *step = Step::Release;
                assert_eq!(self.holder.take(), Some(thread));
                Action::Release { word: 0, most: 1 }
            }
            Step::Release => {
                *step = Step::Begin;
                Action::Run(Ns::from_us(1))
            }
        }
    }

    fn sees(&mut self, thread: ThreadId, _: u32) -> bool {
        *self.holder.get_or_insert(thread) == thread
    }

    fn output(&self, _: Ns) -> String {
        format!("{:?} {}", self.held, self.gave_up)
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        Some(("holds", self.held.iter().map(|&count| u64::from(count)).sum()))
    }
}

fn run(cpus: &[u32], most: Ns, seed: u64) -> (String, u64, u64, Digest) {
    let mut engine = Engine::new("v6.12".parse().expect("a kernel"), machine(4), seed);
    let number = engine.start(Box::new(Contenders::new(cpus, most)));
    engine.set_tracing(true);
    let mut digest = DigestSink::default();
    engine.run_until(Ns::from_ms(500), &mut digest);
    let holds = engine.workload(number).progress().expect("holds").1;
    let occurrences = engine.counters().occurrences;
    (engine.workload(number).output(Ns::ZERO), holds, occurrences, digest.digest())
}

#[test]
fn a_lock_is_held_by_one_at_a_time_without_polling() {
    let (_, alone, ..) = run(&[0], Ns::MAX, 1);
    let (told, together, occurrences, digest) = run(&[0, 1, 2, 3], Ns::MAX, 1);
    assert!(alone > 4_800, "500 ms, 101 us each: {alone}");
    // Without the microsecond between, for somebody always waits; never two at once.
    assert!((alone..5_000).contains(&together), "{together} holds of four, {alone} of one");
    // Ticks on four CPUs, and a few for each hold.
    assert!(occurrences < 2_500 + 6 * together, "{occurrences}");
    assert_eq!(run(&[0, 1, 2, 3], Ns::MAX, 1), (told.clone(), together, occurrences, digest));
    assert_ne!(run(&[0, 1, 2, 3], Ns::MAX, 2).0, told, "who looks first is chance");
}

/// Two threads of one CPU: a holder that is preempted keeps the other spinning until its slice is over.
#[test]
fn a_spinner_burns_its_slice_while_the_holder_is_preempted() {
    let (_, apart, ..) = run(&[0, 1], Ns::MAX, 1);
    let (_, shared, ..) = run(&[0, 0], Ns::MAX, 1);
    assert!(shared < apart && shared > apart / 3, "{shared} on one CPU, {apart} on two");
}

#[test]
fn who_has_spun_for_long_enough_gives_up() {
    let (told, holds, ..) = run(&[0, 1, 2], Ns::from_us(20), 1);
    let gave_up = told.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok()).expect("a count");
    assert!(gave_up > 300 && holds > 4_000, "{told}");
}

#[test]
fn spinning_works_where_cpus_take_turns() {
    let machine = crate::Machine { in_turn: true, ..machine(2) };
    let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 3);
    let number = engine.start(Box::new(Contenders::new(&[0, 1], Ns::MAX)));
    engine.run_until(Ns::from_ms(400), &mut ());
    let holds = engine.workload(number).progress().expect("holds").1;
    assert!((500..4_000).contains(&holds), "half the time is spent spinning: {holds}");
}

/// A thread that works in the kernel for 6 ms a call beside one that sleeps, on one CPU.
struct InKernel {
    call: Action,
    turns: [u32; 3],
}

impl Workload for InKernel {
    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("main", "main")
    }

    fn next(&mut self, thread: ThreadId, _: &mut View<'_>) -> Action {
        let bound =
            |name: &str| ThreadSpec { allowed: CpuMask::single(Cpu(0)), ..ThreadSpec::new(name, name) };
        let turn = &mut self.turns[thread.index()];
        *turn += 1;
        match (thread, *turn) {
            (ThreadId::MAIN, 1) => Action::Spawn(bound("worker")),
            (ThreadId::MAIN, 2) => Action::Spawn(bound("sleeper")),
            (ThreadId::MAIN, _) => Action::Exit,
            (ThreadId(1), turn) if turn % 2 == 0 => Action::Run(Ns(1_000)),
            (ThreadId(1), _) => self.call.clone(),
            (_, turn) if turn % 2 == 0 => Action::Run(Ns(100_000)),
            _ => Action::Sleep(Ns(7_100_000)),
        }
    }

    fn output(&self, _: Ns) -> String {
        String::new()
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        None
    }
}

/// The sleeper's longest wait, and how often the worker left its CPU in the middle of a call.
fn waits(kernel: &str, call: Action) -> (Ns, usize) {
    let mut engine = Engine::new(kernel.parse().expect(kernel), machine(1), 1);
    engine.set_tracing(true);
    engine.start(Box::new(InKernel { call, turns: [0; 3] }));
    let (mut woken, mut longest, mut left) = (Ns::ZERO, Ns::ZERO, 0);
    let mut see = |event: &fairlab_event::Event<'_>| match &event.kind {
        EventKind::SchedWakeup(wakeup) if wakeup.comm.to_string() == "sleeper" => woken = event.time,
        EventKind::SchedSwitch(switch) => {
            if switch.next_comm.to_string() == "sleeper" {
                longest = longest.max(event.time.since(woken));
            }
            let preempted = switch.prev_state == fairlab_event::TaskState::PREEMPTED;
            left += usize::from(preempted && switch.prev_comm.to_string() == "worker");
        }
        _ => {}
    };
    engine.run_until(Ns::from_secs(2), &mut sink_fn(|event: &fairlab_event::Event<'_>| see(event)));
    (longest, left)
}

#[test]
fn kernel_work_is_left_where_the_preemption_model_says() {
    let whole = || Action::SystemCall(Ns::from_ms(6));
    for model in ["PREEMPT_NONE", "PREEMPT_VOLUNTARY"] {
        let (longest, left) = waits(&format!("v6.14+{model}"), whole());
        assert!(longest > Ns::from_ms(5) && left == 0, "{model}: {longest}, {left}");
    }
    let (full, left) = waits("v6.14+PREEMPT", whole());
    assert!(full < Ns::from_us(1_100) && left > 50, "{full}, {left}");
    // Asked for lazily, it is acted on in the kernel from the next tick on: ticks are a millisecond apart.
    let (lazy, left) = waits("v6.14+PREEMPT_LAZY", whole());
    assert!(full < lazy && lazy < Ns::from_us(2_200) && left > 50, "{lazy}, {left}");
    assert_eq!(waits("v7.0", whole()), waits("v7.0+PREEMPT_LAZY", whole()), "its own model");
}

#[test]
fn offers_are_taken_by_kernels_that_are_preempted_nowhere_else() {
    let offering =
        |offer| Action::OfferingSystemCall { work: Ns::from_ms(6), piece: Ns::from_us(500), offer };
    let taken = |kernel: &str, offer| {
        let (longest, left) = waits(kernel, offering(offer));
        assert_eq!(longest < Ns::from_ms(2), left > 50, "{kernel}: {longest}, {left}");
        left > 50
    };
    assert!(taken("v6.14+PREEMPT_NONE", Offer::CondResched));
    assert!(!taken("v6.14+PREEMPT_NONE", Offer::MightSleep));
    assert!(taken("v6.14+PREEMPT_VOLUNTARY", Offer::MightSleep));
    // An offer changes nothing where the kernel is preempted anyway.
    let whole = waits("v6.14+PREEMPT", Action::SystemCall(Ns::from_ms(6)));
    assert_eq!(waits("v6.14+PREEMPT", offering(Offer::CondResched)).0, whole.0);
}
