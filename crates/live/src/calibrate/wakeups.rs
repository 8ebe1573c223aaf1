//! Wakeups, switches and sleeps, timed from user space.
//!
//! Must not know: what is made of the samples.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;

use fairlab_event::Ns;
use fairlab_kernel::Policy;
use rustix::thread::futex::{Flags, wait, wake};
use rustix::thread::set_current_timer_slack;

use super::{on, pin};
use crate::clock::{Clock, sleep};
use crate::system::{ThreadScheduling, set_scheduling};

/// What the wakee's CPU does before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeeLoad {
    /// It sleeps.
    Idle,
    /// It computes in the idle class, which anything preempts.
    Busy,
}

/// Samples of wakeups, ns.
#[derive(Debug, Default)]
pub(super) struct Wakeups {
    /// What the system call took.
    pub in_waker: Vec<f64>,
    /// From before it until the wakee read the clock.
    pub to_wakee: Vec<f64>,
}

/// Between two wakeups: the wakee has gone to sleep by then, and its CPU, too.
const PAUSE: Ns = Ns::from_us(500);

/// The idle class: it never preempts who wakes it.
const IDLE: ThreadScheduling = ThreadScheduling { policy: Policy::Idle, nice: 0, request_ns: 0 };

/// Wakes a thread on `there` from one on `here`, again and again.
pub(super) fn wakeups(here: usize, there: usize, load: WakeeLoad, samples: usize) -> Result<Wakeups, String> {
    let (clock, word, woken, over) =
        (Clock::start(), AtomicU32::new(0), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let wakee = scope.spawn(|| {
            pin(there)?;
            while !over.load(Ordering::SeqCst) {
                let seen = word.load(Ordering::SeqCst);
                if !over.load(Ordering::SeqCst) && wait(&word, Flags::PRIVATE, seen, None).is_ok() {
                    woken.store(clock.now().0, Ordering::SeqCst);
                }
            }
            Ok::<(), String>(())
        });
        let spinner = (load == WakeeLoad::Busy).then(|| {
            scope.spawn(|| {
                let ready = pin(there).and_then(|()| set_scheduling(IDLE).map_err(|error| error.to_string()));
                while ready.is_ok() && !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                ready
            })
        });
        let waker = scope.spawn(|| {
            let outcome = pin(here).map(|()| wake_again_and_again(&clock, &word, &woken, samples));
            over.store(true, Ordering::SeqCst);
            word.fetch_add(1, Ordering::SeqCst);
            let _ = wake(&word, Flags::PRIVATE, 1);
            outcome
        });
        let failed = |_| Err("a thread of the benchmark failed".to_string());
        let wakeups = waker.join().unwrap_or_else(|_| Err("a thread of the benchmark failed".to_string()));
        wakee.join().unwrap_or_else(failed)?;
        if let Some(spinner) = spinner {
            spinner.join().unwrap_or_else(failed)?;
        }
        wakeups
    })
}

fn wake_again_and_again(clock: &Clock, word: &AtomicU32, woken: &AtomicU64, samples: usize) -> Wakeups {
    let mut wakeups = Wakeups::default();
    // A wakee that does not sleep gives no sample; on a very busy host that may be most of them.
    for _ in 0..4 * samples {
        if wakeups.in_waker.len() == samples {
            break;
        }
        sleep(PAUSE);
        let before = clock.now();
        word.fetch_add(1, Ordering::SeqCst);
        let count = wake(word, Flags::PRIVATE, 1);
        let after = clock.now();
        if count != Ok(1) {
            continue;
        }
        while woken.load(Ordering::SeqCst) < before.0 && clock.now() < after + Ns::from_ms(100) {
            sleep(Ns::from_us(50));
        }
        let ran = woken.load(Ordering::SeqCst);
        if ran >= before.0 {
            wakeups.in_waker.push(after.since(before).0 as f64);
            wakeups.to_wakee.push((ran - before.0) as f64);
        }
    }
    wakeups
}

/// Waits for a word that has changed already, ns each.
pub(super) fn waits(samples: usize) -> Vec<f64> {
    const IN_A_ROW: u32 = 100;
    let (clock, word) = (Clock::start(), AtomicU32::new(0));
    let one = |_| {
        let begin = clock.now();
        for _ in 0..IN_A_ROW {
            let _ = wait(&word, Flags::PRIVATE, 1, None);
        }
        clock.now().since(begin).0 as f64 / f64::from(IN_A_ROW)
    };
    (0..samples).map(one).collect()
}

/// Two threads of one CPU wake each other and sleep, in turn: what waking takes, and from then until the other one runs,
/// ns. The second holds a wait's way to sleep and back, and the switch.
pub(super) fn ping_pong(cpu: usize, samples: usize) -> Result<(Vec<f64>, Vec<f64>), String> {
    let (clock, turn, left) = (Clock::start(), AtomicU32::new(0), AtomicU64::new(0));
    let turns = |mine: u32| {
        move |turn: &AtomicU32, left: &AtomicU64, clock: &Clock| {
            // A batch thread does not preempt who wakes it, so that waking and switching come one after the other.
            let batch = ThreadScheduling { policy: Policy::Batch, nice: 0, request_ns: 0 };
            let _ = set_scheduling(batch);
            let (mut woke, mut switched) = (Vec::with_capacity(samples), Vec::with_capacity(samples));
            for _ in 0..samples {
                while turn.load(Ordering::SeqCst) != mine {
                    let _ = wait(turn, Flags::PRIVATE, 1 - mine, None);
                }
                let begin = clock.now();
                let since = left.swap(0, Ordering::SeqCst);
                // Nothing to count where the other one was preempted before it had looked at the clock.
                switched.extend((since > 0).then(|| (begin.0 - since) as f64));
                turn.store(1 - mine, Ordering::SeqCst);
                let count = wake(turn, Flags::PRIVATE, 1);
                let end = clock.now();
                if count == Ok(1) && turn.load(Ordering::SeqCst) != mine {
                    woke.push(end.since(begin).0 as f64);
                    left.store(end.0, Ordering::SeqCst);
                }
            }
            (woke, switched)
        }
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| pin(cpu).map(|()| turns(1)(&turn, &left, &clock)));
        let timed = on(cpu, || turns(0)(&turn, &left, &clock));
        other.join().unwrap_or_else(|_| Err("a thread of the benchmark failed".to_string()))?;
        timed
    })
}

/// How late sleeps end: with the thread's own timer slack, and with the least, ns.
pub(super) fn sleeps(cpu: usize, samples: usize) -> Result<(Vec<f64>, Vec<f64>), String> {
    let lateness = move |least_slack: bool| {
        move || {
            if least_slack {
                let _ = set_current_timer_slack(NonZeroU64::new(1));
            }
            let clock = Clock::start();
            let one = |_| {
                let begin = clock.now();
                sleep(PAUSE);
                clock.now().since(begin + PAUSE).0 as f64
            };
            (0..samples).map(one).collect()
        }
    };
    Ok((on(cpu, lateness(false))?, on(cpu, lateness(true))?))
}
