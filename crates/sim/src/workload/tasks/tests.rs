//! What each word of the language means, and that its effect is gone without it.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Digest, DigestSink, Event, EventKind, Ns, sink_fn};
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;

use super::TasksWorkload;
use crate::engine::tests::machine;
use crate::{Engine, Machine};

/// A run that is over.
struct Run {
    engine: Engine,
    numbers: BTreeMap<String, f64>,
    count: f64,
    /// Wakeups by the woken task's name, and CPUs on which it ran.
    wakeups: BTreeMap<String, u64>,
    ran: BTreeMap<String, Vec<Cpu>>,
    digest: Digest,
}

impl Run {
    fn number(&self, name: &str) -> f64 {
        *self.numbers.get(name).unwrap_or_else(|| panic!("{name}: {:?}", self.numbers))
    }

    /// A percentile of latency, in us.
    fn us(&self, name: &str) -> f64 {
        self.number(name) / 1e3
    }

    fn woken(&self, name: &str) -> u64 {
        self.wakeups.get(name).copied().unwrap_or(0)
    }

    fn output(&self) -> String {
        self.engine.workload(0).output(self.engine.now())
    }
}

fn run_on(kernel: &str, machine: Machine, text: &str, ms: u64) -> Run {
    let tasks = TasksWorkload::from_text(text).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
    let mut engine = Engine::new(kernel.parse().expect(kernel), machine, 1);
    engine.set_tracing(true);
    engine.start(Box::new(tasks));
    let (mut wakeups, mut ran) = (BTreeMap::new(), BTreeMap::<String, Vec<Cpu>>::new());
    let mut digest = DigestSink::default();
    let mut see = |event: &Event<'_>| {
        fairlab_event::Sink::event(&mut digest, event);
        match &event.kind {
            EventKind::SchedWakeup(wakeup) => {
                *wakeups.entry(wakeup.comm.to_string()).or_default() += 1;
            }
            EventKind::SchedSwitch(switch) => {
                let cpus = ran.entry(switch.next_comm.to_string()).or_default();
                if !cpus.contains(&event.cpu) {
                    cpus.push(event.cpu);
                }
            }
            _ => {}
        }
    };
    engine.run_until(Ns::from_ms(ms), &mut sink_fn(|event: &Event<'_>| see(event)));
    let numbers = engine.workload(0).metrics().into_iter().collect();
    let count = engine.workload(0).progress().map_or(0.0, |(_, count)| count as f64);
    let digest = digest.digest();
    Run { engine, numbers, count, wakeups, ran, digest }
}

/// On so many CPUs whose kernel work is nearly free.
fn run(cpus: u32, text: &str, ms: u64) -> Run {
    run_on("v6.12", machine(cpus), text, ms)
}

fn is_near(value: f64, wanted: f64, part: f64) -> bool {
    (value - wanted).abs() <= wanted * part
}

/// A frame each 16 ms takes 4 ms, and each 10th one 12 ms: it comes 8 ms later than the others do.
#[test]
fn intervals_between_replies_tell_late_frames() {
    let even = run(1, "[[task]]\nname = 'frame'\nsteps = ['timer 16ms', 'run 4ms', 'reply']", 8_000);
    for name in ["p50", "p99.9", "max"] {
        let interval = even.us(&format!("frame reply_interval_ns_{name}"));
        assert!(is_near(interval, 16_000.0, 0.02), "{name}: {interval}");
    }
    assert!(even.us("frame reply_jitter_ns_mean") < 200.0, "{}", even.us("frame reply_jitter_ns_mean"));
    let late = "[[task]]\nname = 'frame'\nsteps = [{ repeat = 9, steps = ['timer 16ms', 'run 4ms', 'reply'] }, \
                'timer 16ms', 'run 12ms', 'reply']";
    let late = run(1, late, 8_000);
    assert!(is_near(late.us("frame reply_interval_ns_p50"), 16_000.0, 0.02));
    assert!(is_near(late.us("frame reply_interval_ns_max"), 24_000.0, 0.02));
    // Intervals of 16, 24, 8 and 16 ms are 8, 16 and 8 ms of difference, in ten frames.
    assert!(is_near(late.us("frame reply_jitter_ns_mean"), 3_200.0, 0.05));
    // Replies to a queue come at the pace of its arrivals.
    let queue = "[queue.q]\narrivals = 'fixed 100/s'\n[[task]]\nname = 'a'\ncount = 2\nsteps = ['take q', 'run 1ms', 'reply q']";
    let queue = run(2, queue, 4_000);
    assert!(is_near(queue.us("q reply_interval_ns_p50"), 10_000.0, 0.02));
}

/// Two rounds of 3 s and two of 4 s are not equally many a second.
#[test]
fn few_rounds_count_by_the_time_of_the_last() {
    let rate = |seconds: u32, until: u64| {
        let run = run(1, &format!("[[task]]\nname = 'a'\nsteps = ['run {seconds}s']"), until * 1_000);
        let workload = run.engine.workload(0);
        let last = workload.counted_at();
        assert!(last.is_none_or(|last| last <= run.engine.now()));
        let rate = crate::workload::per_second(run.count as u64, last, Ns::ZERO, Ns::from_secs(until));
        (run.count, rate)
    };
    let ((fast, by_fast), (slow, by_slow)) = (rate(3, 9), rate(4, 9));
    assert_eq!((fast, slow), (2.0, 2.0), "both are in their third round");
    assert!(is_near(by_fast, 1.0 / 3.0, 0.02) && is_near(by_slow, 0.25, 0.02), "{by_fast} {by_slow}");
    assert_eq!(rate(20, 9), (0.0, 0.0));
    let per_second = crate::workload::per_second;
    assert_eq!(
        per_second(100, Some(Ns::from_secs(1)), Ns::ZERO, Ns::from_secs(2)),
        50.0,
        "many count as they are"
    );
}

/// One server of exponential work under Poisson arrivals: the time that a request stays is exponential, too, with the mean
/// 1 / (µ − λ).
#[test]
fn requests_come_whether_or_not_somebody_is_ready_and_wait_from_their_arrival() {
    let file = |rate: u32| {
        format!(
            "[queue.q]\narrivals = 'poisson {rate}/s'\nvia = 'futex'\n[[task]]\nname = 'server'\nsteps = ['take q', 'run exp 500us', 'reply q']"
        )
    };
    let run_at = |rate| run(1, &file(rate), 60_000);
    let busy = run_at(1_000);
    assert!(is_near(busy.count, 60_000.0, 0.02), "{}", busy.count);
    for (name, part) in [("q request_latency_ns_p50", 0.5), ("q request_latency_ns_p99", 0.01)] {
        let exact = -f64::ln(part) * 1_000.0;
        assert!(is_near(busy.us(name), exact, 0.12), "{name}: {} of {exact}", busy.us(name));
    }
    assert!(run_at(500).us("q request_latency_ns_p99") < 0.75 * busy.us("q request_latency_ns_p99"));
    // More comes than can be served: the backlog grows, and with it each wait.
    let over = run(1, &file(4_000), 2_000);
    assert!(is_near(over.number("q replies_per_s"), 2_000.0, 0.05));
    assert!(over.us("q request_latency_ns_max") > 900_000.0, "{}", over.output());
}

#[test]
fn a_queue_without_room_drops_what_arrives_and_stops_who_puts() {
    let arrivals = "[queue.q]\narrivals = 'fixed 4000/s'\nsize = 8\n[[task]]\nname = 'server'\nsteps = ['take q', 'run 500us', 'reply q']";
    let dropped = run(1, arrivals, 2_000);
    assert!(is_near(dropped.number("q dropped"), 4_000.0, 0.1), "{}", dropped.output());
    assert!(dropped.us("q request_latency_ns_max") < 6_000.0, "{}", dropped.output());
    let stages = |size: &str| {
        let text = format!(
            "[queue.q]\n{size}\n[[task]]\nname = 'first'\nsteps = ['run 10us', 'put q']\n[[task]]\nname = 'second'\nsteps = ['take q', 'run 100us', 'reply q']"
        );
        run(2, &text, 1_000)
    };
    let (bounded, unbounded) = (stages("size = 4"), stages(""));
    assert!(bounded.us("q request_latency_ns_max") < 1_000.0, "{}", bounded.output());
    assert!(unbounded.us("q request_latency_ns_max") > 100_000.0, "{}", unbounded.output());
    assert!(is_near(bounded.count, unbounded.count, 0.05), "the second stage is the slower one");
}

#[test]
fn a_request_wakes_one_sleeper_or_all() {
    let file = |wake: &str, source: &str| {
        format!(
            "[queue.q]\nwake = '{wake}'\n{source}\n[[task]]\nname = 'worker'\ncount = 16\nsteps = ['take q', 'run 20us', 'reply q']"
        )
    };
    let inside = "\n[[task]]\nname = 'poller'\nsteps = ['put q', 'sleep 950us']";
    for source in ["arrivals = 'fixed 1000/s'", inside] {
        let [one, all] = ["one", "all"].map(|wake| {
            let text = match source == inside {
                true => format!("{}{inside}", file(wake, "")),
                false => file(wake, source),
            };
            run(4, &text, 1_000)
        });
        assert!(is_near(one.count, 1_000.0, 0.02) && is_near(all.count, one.count, 0.02), "{}", one.count);
        assert!(one.woken("worker") < 1_100, "{}", one.woken("worker"));
        assert!(all.woken("worker") > 12_000, "{}", all.woken("worker"));
    }
}

/// Four threads want one lock for 100 us of each 300.
fn contended(kind: &str) -> Run {
    let file = format!(
        "[lock.l]\n{kind}\n[[task]]\nname = 'user'\ncount = 4\nsteps = ['run 200us', 'lock l', 'run 100us', 'unlock l', 'reply']"
    );
    run(4, &file, 2_000)
}

#[test]
fn a_lock_is_held_by_one_and_waited_for_as_its_kind_says() {
    let runs = ["kind = 'mutex'", "kind = 'spin'", "kind = 'adaptive'\nspin = '1us'"].map(contended);
    for run in &runs {
        // Never more than one hold a 100 us; almost that many.
        assert!(run.count < 20_001.0, "{}", run.output());
        assert!(is_near(run.us("l lock_hold_ns_p99"), 100.0, 0.05), "{}", run.output());
    }
    let [mutex, spin, adaptive] = &runs;
    assert!(mutex.count > 19_000.0 && spin.count > 19_000.0, "{} {}", mutex.count, spin.count);
    assert_eq!((mutex.number("l lock_spin_share"), spin.woken("user")), (0.0, 0));
    // All four CPUs are busy: three quarters of two thirds wait.
    let share = spin.number("l lock_spin_share");
    assert!(is_near(share, 0.25, 0.1), "{share}");
    assert!(mutex.woken("user") > 5_000 && adaptive.woken("user") > 500, "{}", adaptive.woken("user"));
    let share = adaptive.number("l lock_spin_share");
    assert!(share > 0.0 && share < 0.02, "it sleeps most of the time: {share}");
    assert!(
        adaptive.us("l lock_wait_ns_p99") > 1_000.0,
        "who sleeps does so for 1 ms: {}",
        adaptive.output()
    );
}

/// Eight threads on one CPU: a mutex lets others work while its holder is preempted, a spinning lock burns their slices.
#[test]
fn spinning_is_lost_time_where_the_holder_does_not_run() {
    let of = |kind: &str| {
        let file = format!(
            "[lock.l]\nkind = '{kind}'\n[[task]]\nname = 'user'\ncount = 8\nsteps = ['run exp 1ms', 'lock l', 'run exp 1ms', 'unlock l', 'reply']"
        );
        run(1, &file, 4_000)
    };
    let (mutex, spin) = (of("mutex"), of("spin"));
    assert!(spin.count < 0.8 * mutex.count, "{} {}", spin.output(), mutex.output());
    assert!(spin.number("l lock_spin_share") > 0.2, "{}", spin.output());
}

#[test]
fn a_pipeline_keeps_the_time_of_arrival_and_a_caller_waits_for_its_reply() {
    let pipeline = "[queue.in]\narrivals = 'fixed 500/s'\n[queue.mid]\n[queue.out]\n\
        [[task]]\nname = 'parse'\nsteps = ['take in', 'run 100us', 'put mid']\n\
        [[task]]\nname = 'work'\ncount = 2\nsteps = ['take mid', 'run 300us', 'put out']\n\
        [[task]]\nname = 'send'\nsteps = ['take out', 'run 50us', 'reply out']";
    let stages = run(4, pipeline, 1_000);
    assert!(is_near(stages.count, 500.0, 0.02), "{}", stages.output());
    let p50 = stages.us("out request_latency_ns_p50");
    assert!((450.0..475.0).contains(&p50), "all three stages: {p50}");
    let calls = "[queue.q]\n[queue.db]\n\
        [[task]]\nname = 'client'\ncount = 3\nsteps = ['run 100us', 'call q', 'reply']\n\
        [[task]]\nname = 'server'\nsteps = ['take q', 'run 200us', 'call db', 'reply q']\n\
        [[task]]\nname = 'database'\nsteps = ['take db', 'run 300us', 'reply db']";
    let calls = run(4, calls, 1_000);
    // One request at a time: 500 us each.
    assert!(is_near(calls.number("q replies_per_s"), 1_970.0, 0.03), "{}", calls.output());
    assert!(is_near(calls.us("db request_latency_ns_p50"), 300.0, 0.05), "{}", calls.output());
    let p50 = calls.us("q request_latency_ns_p50");
    assert!((1_000.0..1_600.0).contains(&p50), "it waits for two others: {p50}");
}

#[test]
fn a_barrier_lets_nobody_go_ahead() {
    for (kind, burns) in [("futex", false), ("spin", true)] {
        let file = format!(
            "[barrier.b]\nkind = '{kind}'\n[[task]]\nname = 'fast'\ncount = 3\nsteps = ['run 100us', 'barrier b']\n[[task]]\nname = 'slow'\nsteps = ['run 1ms', 'barrier b']"
        );
        let met = run(4, &file, 1_000);
        let rounds = |name: &str| {
            let output = met.output();
            let line = output.lines().find(|line| line.starts_with(&format!("task {name}"))).expect(name);
            line.split(' ').nth(2).and_then(|count| count.parse::<i64>().ok()).expect("a count")
        };
        assert!((rounds("fast") - 3 * rounds("slow")).abs() <= 3, "{}", met.output());
        assert!(is_near(rounds("slow") as f64, 990.0, 0.02), "{}", met.output());
        assert_eq!(met.woken("fast") < 10, burns, "{kind}: {}", met.woken("fast"));
    }
}

#[test]
fn wakeups_are_counted_and_threads_are_waited_for() {
    let woken = "[[task]]\nname = 'boss'\nsteps = ['run 100us', 'wake hand 2', 'sleep 1ms']\n\
        [[task]]\nname = 'hand'\ncount = 4\nsteps = ['wait', 'run 50us', 'reply']";
    let woken = run(2, woken, 1_000);
    assert!(is_near(woken.count, 2.0 * 1e6 / 1_150.0, 0.03), "{}", woken.output());
    let all = woken_by("wake hand all");
    assert!(is_near(all.count, 4.0 * 1e6 / 1_150.0, 0.03), "{}", all.output());
    let spawned = "[[task]]\nname = 'shell'\nrepeat = 50\nsteps = [{ repeat = 3, steps = ['spawn child'] }, 'join', 'reply']\n\
        [[task]]\nname = 'child'\ncount = 0\nrepeat = 1\nsteps = ['run 200us']";
    let spawned = run(2, spawned, 10_000);
    assert_eq!(spawned.count, 50.0);
    assert!(spawned.output().contains("task child: 150 rounds"), "{}", spawned.output());
    assert!(spawned.engine.now() < Ns::from_ms(100), "all have ended: {}", spawned.engine.now());
}

fn woken_by(step: &str) -> Run {
    let text = format!(
        "[[task]]\nname = 'boss'\nsteps = ['run 100us', '{step}', 'sleep 1ms']\n[[task]]\nname = 'hand'\ncount = 4\nsteps = ['wait', 'run 50us', 'reply']"
    );
    run(4, &text, 1_000)
}

#[test]
fn lists_are_repeated_and_left_to_chance() {
    let file = "[[task]]\nname = 'nested'\nsteps = [{ repeat = 4, steps = [{ repeat = 5, steps = ['run 10us'] }, 'sleep 1ms'] }, 'reply']";
    let nested = run(1, file, 4_300);
    // 20 times 10 us, and 4 sleeps with their slack of 50 us.
    assert!(is_near(nested.count, 4_300.0 / 4.4, 0.01), "{}", nested.count);
    let chance = |part: &str| {
        let text = format!(
            "[[task]]\nname = 'c'\nsteps = ['run 10us', {{ chance = {part}, steps = ['run 90us'] }}, 'reply']"
        );
        run(1, &text, 1_000).count
    };
    assert!(is_near(chance("0"), 100_000.0, 0.01) && is_near(chance("1"), 10_000.0, 0.01));
    assert!(is_near(chance("0.5"), 1e6 / 55.0, 0.03), "{}", chance("0.5"));
}

#[test]
fn a_timer_keeps_its_period_and_a_sleep_does_not() {
    let of = |step: &str| {
        run(1, &format!("[[task]]\nname = 't'\nsteps = ['run 300us', '{step}', 'reply']"), 1_000).count
    };
    assert!(is_near(of("timer 1ms"), 1_000.0, 0.01), "{}", of("timer 1ms"));
    assert!(is_near(of("sleep 1ms"), 1e6 / 1_350.0, 0.01), "{}", of("sleep 1ms"));
    assert!(is_near(of("await 1ms"), 1e6 / 1_300.0, 0.01), "{}", of("await 1ms"));
}

#[test]
fn threads_of_the_kernel_stand_on_each_cpu() {
    let each = run(
        4,
        "[[task]]\nname = 'kworker'\nkthread = true\nper_cpu = true\nsteps = ['run 50us', 'sleep 1ms']",
        300,
    );
    assert_eq!(each.ran.get("kworker").map(Vec::len), Some(4));
    let file = "[[task]]\nname = 'kworker'\nkthread = true\nper_cpu = true\ncpus = '1-2'\nsteps = ['run 50us', 'sleep 1ms']";
    let two = run(4, file, 300);
    let mut cpus = two.ran.get("kworker").cloned().unwrap_or_default();
    cpus.sort_unstable();
    assert_eq!(cpus, [Cpu(1), Cpu(2)]);
}

#[test]
fn a_task_runs_where_and_how_it_is_told() {
    let share = |words: &str| {
        let file = format!(
            "[[task]]\nname = 'told'\n{words}\ncpus = '0'\nsteps = ['run 100us', 'reply']\n[[task]]\nname = 'other'\ncpus = '0'\nsteps = ['run 100us']"
        );
        run(2, &file, 2_000).count / 20_000.0
    };
    assert!(is_near(share(""), 0.5, 0.03), "{}", share(""));
    assert!(is_near(share("nice = 5"), 335.0 / 1_359.0, 0.05), "{}", share("nice = 5"));
    assert!(share("policy = 'fifo:10'") > 0.9 && share("policy = 'idle'") < 0.02);
    assert!(is_near(share("start = '1s'"), 0.25, 0.06), "{}", share("start = '1s'"));
    let grouped = "[[task]]\nname = 'a'\ncount = 4\ngroup = '/x/y'\ncpus = '0'\nsteps = ['run 100us', 'reply']\n[[task]]\nname = 'b'\ngroup = '/z'\ncpus = '0'\nsteps = ['run 100us']";
    assert!(is_near(run(1, grouped, 2_000).count, 10_000.0, 0.05), "two groups of equal weight");
}

/// A fault has to wait while somebody changes the map, unless it is another process's.
#[test]
fn faults_share_the_map_and_changes_of_it_do_not() {
    let of = |process: &str, step: &str| {
        let file = format!(
            "[[task]]\nname = 'fault'\ncount = 3\n{process}\nsteps = ['fault 100us', 'reply']\n[[task]]\nname = 'mapper'\nsteps = ['{step}']"
        );
        run(4, &file, 1_000).count
    };
    let free = of("", "run 1ms");
    assert!(is_near(free, 30_000.0, 0.02), "readers do not wait for each other: {free}");
    assert!(of("", "mmap 1ms") < free / 2.0, "{}", of("", "mmap 1ms"));
    assert!(is_near(of("process = true", "mmap 1ms"), free, 0.02));
}

#[test]
fn work_in_the_kernel_is_left_as_the_preemption_model_says() {
    let file = "[[task]]\nname = 'caller'\ncpus = '0'\nsteps = ['syscall 8ms', 'run 1us']\n\
        [queue.q]\narrivals = 'poisson 100/s'\nvia = 'futex'\n\
        [[task]]\nname = 'urgent'\ncpus = '0'\nnice = -10\nsteps = ['take q', 'run 50us', 'reply q']";
    let p99 =
        |kernel: &str, file: &str| run_on(kernel, machine(1), file, 4_000).us("q request_latency_ns_p99");
    let none = p99("v6.19+PREEMPT_NONE", file);
    assert!(none > 7_000.0, "{none}");
    assert!(p99("v6.19+PREEMPT", file) < 1_500.0, "{}", p99("v6.19+PREEMPT", file));
    assert!(p99("v6.19+PREEMPT_LAZY", file) < 3_000.0, "{}", p99("v6.19+PREEMPT_LAZY", file));
    let offering = file.replace("syscall 8ms", "syscall 8ms cond_resched 500us");
    assert!(p99("v6.19+PREEMPT_NONE", &offering) < 2_000.0);
    let might_sleep = file.replace("syscall 8ms", "syscall 8ms might_sleep 500us");
    assert!(is_near(p99("v6.19+PREEMPT_NONE", &might_sleep), none, 0.1));
    assert!(p99("v6.19+PREEMPT_VOLUNTARY", &might_sleep) < 2_000.0);
}

#[test]
fn a_program_ends_when_its_time_is_up_whatever_its_threads_wait_for() {
    let file = "duration = '200ms'\n[lock.m]\n[lock.s]\nkind = 'spin'\n[queue.q]\n[barrier.b]\nkind = 'spin'\n\
        [[task]]\nname = 'holder'\nsteps = ['lock m', 'lock s', 'sleep 100s']\n\
        [[task]]\nname = 'sleeper'\nsteps = ['lock m', 'put q', 'reply']\n\
        [[task]]\nname = 'spinner'\nsteps = ['lock s', 'run 1us']\n\
        [[task]]\nname = 'taker'\nsteps = ['take q']\n\
        [[task]]\nname = 'waiter'\nsteps = ['wait']\n\
        [[task]]\nname = 'first'\nsteps = ['barrier b', 'run 1us']\n\
        [[task]]\nname = 'second'\nsteps = ['sleep 10s', 'barrier b']";
    let run = run(4, file, 150_000);
    assert!(
        run.engine.now() < Ns::from_secs(101),
        "but for those that sleep on timers: {}",
        run.engine.now()
    );
    assert_eq!(run.engine.workload(0).runtime(), Some(Ns::from_ms(200)));
}

#[test]
fn the_same_seed_is_the_same_run() {
    let file = "[lock.s]\nkind = 'adaptive'\n[queue.q]\narrivals = 'poisson 20000/s'\n\
        [[task]]\nname = 'worker'\ncount = 12\nsteps = ['take q', 'lock s', 'fault exp 3us', 'unlock s', { chance = 0.2, steps = ['run exp 100us'] }, 'reply q']";
    let machine = || Machine::preset("vm4").expect("a machine");
    let [one, other] = [(); 2].map(|()| run_on("v7.0", machine(), file, 500));
    assert_eq!((one.digest, one.output()), (other.digest, other.output()));
    assert!(one.count > 5_000.0, "{}", one.output());
}

/// Each of these texts is refused by one line that holds the words beside it.
fn assert_refused(wrong: &[(String, &str)]) {
    assert!(wrong.len() >= 9);
    for (text, fragment) in wrong {
        let problem = TasksWorkload::from_text(text).expect_err(text);
        assert!(problem.contains(fragment) && !problem.contains('\n'), "{text}\n{problem}\n{fragment}");
    }
}

#[test]
fn what_is_wrong_with_a_step_is_told_with_its_place_and_what_is_allowed() {
    let task = |steps: &str| {
        format!("[lock.l]\n[queue.q]\narrivals = 'fixed 1/s'\n[[task]]\nname = 't'\nsteps = [{steps}]")
    };
    let with = |words: &str| format!("[[task]]\nname = 't'\n{words}\nsteps = ['run 1us']");
    assert_refused(&[
        ("x = ".to_string(), "line 1: "),
        (
            "x = 1".to_string(),
            "a workload of tasks has no 'x': it has name, duration, lock, queue, barrier, task",
        ),
        ("".to_string(), "there is no task: write [[task]] with name and steps"),
        ("task = 'x'".to_string(), "task: [[task]] is needed, not a text"),
        ("[[workload]]".to_string(), "it says several workloads ([[workload]]): run it as a mix"),
        (
            "[[task]]\nname = 'a b'".to_string(),
            "task 1: 'a b' is no name: it must not be empty or hold spaces",
        ),
        ("[[task]]\nname = 't'".to_string(), "task 't': it has no 'steps'"),
        (
            "[[task]]\nname = 'longer than letters'".replace(' ', "-").replace("name-=-", "name = "),
            "at most 15 letters",
        ),
        (with("count = -1"), "task 't': count: -1 is not from 0 to 100000"),
        (with("nice = 30"), "task 't': nice: 30 is not from -20 to 19"),
        (with("speed = 1"), "task 't': a task has no 'speed': it has name, count, steps"),
        (with("per_cpu = true\ncount = 2"), "task 't': with 'per_cpu' there is one thread a CPU"),
        (with("kthread = true\ngroup = '/a'"), "task 't': threads of the kernel stay in the root group"),
        (task(""), "task 't': steps: the list is empty"),
        (
            task("5"),
            "task 't': step 1: a text or a table { repeat = N, steps = […] } is needed, not a whole number",
        ),
        (task("'run'"), "task 't': step 1, 'run': a time is missing: '30us', 'exp 30us'"),
        (task("'run 30'"), "step 1, 'run 30': '30' is no time: a number with ns, us, ms or s"),
        (task("'run 1us', 'run -1us'"), "task 't': step 2, 'run -1us': '-1us' is no time"),
        (task("'run 1us 2us'"), "step 1, 'run 1us 2us': '2us' is too much"),
        (task("'run exp'"), "'exp' lacks its time"),
        (task("'run uniform 5us..1us'"), "'5us..1us' ends before it begins"),
        (task("'run normal 5us'"), "'5us' lacks its deviation: 'normal 30us±5us'"),
        (task("'run pareto 5us x'"), "'x' is no shape: a number from 0.1 to 100"),
        (task("'fly 1us'"), "there is no step 'fly': run, syscall, fault"),
        (task("'lock m'"), "step 1, 'lock m': there is no lock 'm': there are l"),
        (task("'put q'"), "what comes into queue 'q' comes from outside ('arrivals'): take another queue"),
        (task("'wake t none'"), "'none' is neither 'all' nor a whole number from 1 to 100000"),
        (task("'timer exp 1ms'"), "a period is one time, longer than nothing"),
        (task("'syscall 1ms sometimes 1us'"), "'sometimes' is neither 'cond_resched' nor 'might_sleep'"),
        (task("'take q', { repeat = 0, steps = ['yield'] }"), "step 2: repeat: 0 is not from 1 to"),
        (task("{ repeat = 2, steps = ['take q', 'hop'] }"), "step 1, step 2, 'hop': there is no step 'hop'"),
        (task("{ repeat = 2, chance = 1, steps = ['take q'] }"), "either 'repeat' or 'chance'"),
        (task("{ chance = 2, steps = ['take q'] }"), "step 1: chance: a number from 0 to 1 is needed"),
        (task("'lock l', 'unlock l'"), "task 't': no step of it takes time"),
        (task("'run 1us', 'reply q'"), "it replies to requests that it never takes"),
        (task("'run 1us'"), "queue 'q': no task takes from it ('take q')"),
    ]);
}

#[test]
fn what_is_wrong_with_what_tasks_share_is_told() {
    let with = |words: &str| format!("[[task]]\nname = 't'\n{words}\nsteps = ['run 1us']");
    let shared = |table: &str| {
        format!("{table}\n[[task]]\nname = 't'\nsteps = ['run 1us', 'take q', 'lock l', 'barrier b']")
    };
    assert_refused(&[
        (
            shared("[queue.q]\narrivals = 'often'"),
            "queue.q: arrivals: 'often' are no arrivals: 'poisson 2000/s'",
        ),
        (shared("[queue.q]\narrivals = 'poisson 0/s'"), "the rate is not from 0.001 to 100000000 a second"),
        (shared("[queue.q]\nwake = 'some'"), "queue.q: wake: 'some' is neither 'one' nor 'all'"),
        (shared("[queue.q]\nsize = 0"), "queue.q: size: 0 is not from 1 to"),
        (shared("[queue.q]\n[lock.l]"), "queue 'q': nothing comes into it"),
        (
            shared("[queue.q]\n[lock.l]\nkind = 'rw'"),
            "lock.l: 'rw' is no kind of lock: mutex, spin, adaptive",
        ),
        (shared("[queue.q]\n[lock.l]\nspin = '1us'"), "lock.l: only a lock of kind 'adaptive' has 'spin'"),
        (shared("[queue.q]\n[lock.l]\n[barrier.x]"), "barrier 'x': no step of a task comes to it"),
        (format!("{}\n[[task]]\nname = 't'\nsteps = ['run 1us']", with("")), "task 't' is there twice"),
    ]);
}

/// Replacing a program is a system call of that length; what the scheduler makes of it, `engine/tests/exec.rs` shows.
#[test]
fn exec_works_in_the_kernel_for_its_time() {
    let rounds =
        |step: &str| run(1, &format!("[[task]]\nname = 'a'\nsteps = ['{step}', 'run 1ms']"), 1_000).count;
    assert!(is_near(rounds("exec 1ms"), 500.0, 0.02), "{}", rounds("exec 1ms"));
    assert!(is_near(rounds("exec 1ms"), rounds("syscall 1ms"), 0.01));
    let problem = TasksWorkload::from_text("[[task]]\nname = 'a'\nsteps = ['exec']").expect_err("no time");
    assert!(problem.contains("step 1, 'exec'"), "{problem}");
}

/// A child of a SCHED_IDLE parent looks for its first CPU as one. Others take CPU 4 for idle, of whose cache the other CPUs idle, since
/// only a SCHED_IDLE hog runs there; so do all to v7.0 (fd54d81c2c0e).
#[test]
fn a_child_begins_with_its_parents_policy() {
    let runs_on = |kernel: &str, parent: &str| {
        let text = format!(
            "[[task]]\nname = 'near'\ncount = 2\npolicy = 'idle'\ncpus = '0-1'\nsteps = ['run 10ms']\n\
             [[task]]\nname = 'far'\npolicy = 'idle'\ncpus = '4'\nsteps = ['run 10ms']\n\
             [[task]]\nname = 'parent'\npolicy = '{parent}'\ncpus = '2'\nsteps = ['run 1ms', 'spawn child', 'join']\n\
             [[task]]\nname = 'child'\ncount = 0\nrepeat = 1\npolicy = 'idle'\nsteps = ['run 100us']"
        );
        let topology = Topology::regular(1, 2, 4, 1, SmtNumbering::Adjacent).expect("a machine");
        run_on(kernel, Machine { topology, ..machine(8) }, &text, 500).ran["child"].clone()
    };
    // From v7.1 on who is SCHED_IDLE looks otherwise at CPUs of others that are.
    assert_ne!(runs_on("v7.1", "idle"), runs_on("v7.0", "idle"));
    assert_eq!(
        runs_on("v7.1", "batch"),
        runs_on("v7.0", "batch"),
        "it becomes SCHED_IDLE after it was created"
    );
}

/// A client that has work done by the log's kworker again and again: on which CPUs the client and the kworkers run.
fn with_kworkers(kernel: &str, queue: &str) -> (Vec<Cpu>, Vec<Cpu>, f64) {
    let text = format!(
        "[queue.log]\n{queue}\n\
         [[task]]\nname = 'kworker'\nkthread = true\nper_cpu = true\nsteps = ['take log', 'syscall 20us', 'reply log']\n\
         [[task]]\nname = 'client'\nsteps = ['run 50us', 'call log', 'reply']"
    );
    let run = run_on(kernel, machine(8), &text, 200);
    (run.ran["client"].clone(), run.ran["kworker"].clone(), run.count)
}

/// To v5.5 each wakeup by the kworker of its own CPU sends the client to another, idle one.
#[test]
fn the_kworker_of_its_cpu_keeps_the_client_there() {
    let (client, kworkers, calls) = with_kworkers("v5.6", "via = 'kworker'");
    assert!(client.len() <= 3, "once it is awake beside its kworker it stays: {client:?}");
    assert!(client.iter().all(|cpu| kworkers.contains(cpu)), "the work is done where it is queued");
    assert!(calls > 2_000.0, "{calls}");
    for kernel in ["v5.5", "v5.6-kthread-stacking"] {
        let (without, _, _) = with_kworkers(kernel, "via = 'kworker'");
        assert!(without.len() >= client.len(), "{kernel}: without the rule it wanders: {without:?}");
    }
}

#[test]
fn work_for_kworkers_is_taken_by_them_alone() {
    let problem = |queue: &str, worker: &str| {
        let text = format!(
            "[queue.q]\nvia = 'kworker'\n{queue}\n[[task]]\nname = 'w'\n{worker}\nsteps = ['take q', 'run 1us']\n\
             [[task]]\nname = 'c'\nsteps = ['run 1ms', 'put q']"
        );
        TasksWorkload::from_text(&text).err().unwrap_or_default()
    };
    assert_eq!(problem("", "kthread = true\nper_cpu = true"), "");
    assert!(problem("", "count = 2").contains("task 'w' takes from queue 'q', which is for kworkers"));
    assert!(problem("", "kthread = true\nper_cpu = true\ncpus = '0'").contains("no 'cpus'"));
    assert!(
        problem("arrivals = 'fixed 10/s'", "kthread = true\nper_cpu = true").contains("leave 'arrivals'")
    );
}

/// Threads that are spawned come to a barrier whose table says for how many it is: none goes on before the slowest has come.
#[test]
fn a_barrier_for_a_number_of_threads_takes_spawned_ones() {
    let text = |barrier: &str| {
        format!(
            "{barrier}\n[[task]]\nname = 'parent'\nsteps = ['spawn fast', 'spawn slow', 'join', 'reply']\n\
             [[task]]\nname = 'fast'\ncount = 0\nrepeat = 1\nsteps = ['run 100us', 'barrier b', 'run 1ms']\n\
             [[task]]\nname = 'slow'\ncount = 0\nrepeat = 1\nsteps = ['run 1ms', 'barrier b', 'run 100us']"
        )
    };
    let together = run(2, &text("[barrier.b]\nthreads = 2"), 1_000).count;
    assert!(is_near(together, 500.0, 0.05), "1 ms before it and 1 ms after it: {together}");
    let alone = run(2, &text("[barrier.b]\nthreads = 1"), 1_000).count;
    assert!(is_near(alone, 909.0, 0.05), "nobody waits: {alone}");
    let problem = TasksWorkload::from_text(&text("")).expect_err("how many?");
    assert!(problem.contains("write [barrier.b] with 'threads'"), "{problem}");
}

/// Arrivals interrupt the CPUs that the file names, in turn; without, the one on which the taker went to sleep.
#[test]
fn arrivals_interrupt_the_cpus_that_the_file_names() {
    let wakers = |irq: &str| {
        let text = format!(
            "[queue.q]\narrivals = 'fixed 1000/s'\n{irq}\n\
             [[task]]\nname = 'server'\ncpus = '1'\nsteps = ['take q', 'run 100us', 'reply q']"
        );
        let mut engine = Engine::new("v6.12".parse().expect("a kernel"), machine(4), 1);
        engine.set_tracing(true);
        engine.start(Box::new(TasksWorkload::from_text(&text).expect("a workload")));
        let mut by = BTreeMap::<Cpu, u64>::new();
        let mut see = |event: &Event<'_>| {
            if let EventKind::SchedWaking(waking) = &event.kind
                && waking.comm.as_bytes() == b"server"
            {
                *by.entry(event.cpu).or_default() += 1;
            }
        };
        engine.run_until(Ns::from_ms(100), &mut sink_fn(|event: &Event<'_>| see(event)));
        by
    };
    assert_eq!(wakers("").keys().collect::<Vec<_>>(), [&Cpu(1)]);
    let by = wakers("irq = '2-3'");
    let counts = by.values().collect::<Vec<_>>();
    assert_eq!(by.keys().collect::<Vec<_>>(), [&Cpu(2), &Cpu(3)]);
    assert!(counts[0].abs_diff(*counts[1]) <= 1 && *counts[0] > 40, "in turn: {by:?}");
    let problem =
        TasksWorkload::from_text("[queue.q]\nirq = '0'\n[[task]]\nname = 't'\nsteps = ['put q', 'take q']");
    assert!(problem.expect_err("no arrivals").contains("queue.q: irq: nothing comes from outside"));
}
