//! What `/proc/schedstat` says of a run is what the run's events and tries of balancing say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use fairlab_analysis::by_name::NamesWanted;
use fairlab_event::{Cpu, Event, EventKind, GenericValue, Ns, Pid, Sink, TextFields, UntypedTracepoint};
use fairlab_kernel::balance::BalancedReason;
use fairlab_kernel::core::Scheduler;
use fairlab_kernel::domain::SchedDomain;
use fairlab_lab::{RunSpec, machines, run_watched};
use fairlab_sim::Machine;
use fairlab_verify::schedstat::{Schedstat, SchedstatScope};

/// Counts by CPU, level (`None`: the CPU's own) and counter.
type Counts = BTreeMap<(u32, Option<usize>, String), u64>;

#[derive(Default)]
struct Witness {
    counts: Counts,
    /// Waker and wakee, until the wakeup is reported.
    wakers: BTreeMap<Pid, Cpu>,
    /// Since when a task waits, or runs.
    waiting: BTreeMap<Pid, Ns>,
    running: BTreeMap<Cpu, (Pid, Ns)>,
    delay: u64,
    ran: u64,
    /// Moves of tasks that were queued.
    moves: u64,
    /// By CPU: each level's name and span.
    levels: Vec<Vec<(&'static str, BTreeSet<Cpu>)>>,
}

impl Witness {
    fn add(&mut self, cpu: Cpu, level: Option<usize>, counter: &str, count: u64) {
        *self.counts.entry((cpu.0, level, counter.to_string())).or_default() += count;
    }

    fn woken(&mut self, pid: Pid, target: Cpu) {
        let Some(waker) = self.wakers.remove(&pid) else { return };
        self.add(waker, None, "ttwu_count", 1);
        if waker == target {
            self.add(waker, None, "ttwu_local", 1);
        } else if let Some(level) =
            self.levels[waker.index()].iter().position(|(_, span)| span.contains(&target))
        {
            self.add(waker, Some(level), "ttwu_wake_remote", 1);
        }
    }

    fn switched(&mut self, event: &Event<'_>, (prev, stays): (Pid, bool), next: Pid) {
        if let Some((_, since)) = self.running.remove(&event.cpu) {
            self.ran += event.time.since(since).0;
        }
        if stays && !prev.is_idle() {
            self.waiting.insert(prev, event.time);
        }
        if next.is_idle() {
            self.add(event.cpu, None, "sched_goidle", 1);
            return;
        }
        self.add(event.cpu, None, "pcount", 1);
        self.delay += self.waiting.remove(&next).map_or(0, |since| event.time.since(since).0);
        self.running.insert(event.cpu, (next, event.time));
    }
}

impl Sink for Witness {
    fn event(&mut self, event: &Event<'_>) {
        match event.kind {
            EventKind::SchedWaking(waking) => drop(self.wakers.insert(waking.pid, event.cpu)),
            EventKind::SchedWakeup(wakeup) => {
                self.woken(wakeup.pid, wakeup.target_cpu);
                if !self.running.values().any(|&(pid, _)| pid == wakeup.pid) {
                    self.waiting.entry(wakeup.pid).or_insert(event.time);
                }
            }
            EventKind::SchedWakeupNew(wakeup) => drop(self.waiting.insert(wakeup.pid, event.time)),
            EventKind::SchedSwitch(switch) => {
                let prev = (switch.prev_pid, switch.prev_state.is_runnable());
                self.switched(event, prev, switch.next_pid);
            }
            EventKind::SchedMigrateTask { pid, .. } if !self.wakers.contains_key(&pid) => self.moves += 1,
            EventKind::Other { name, fields } if name == UntypedTracepoint::DecidedBalance.name() => {
                self.balanced(fields);
            }
            _ => {}
        }
    }
}

impl Witness {
    fn balanced(&mut self, fields: TextFields<'_>) {
        let text = |name: &str| match fields.get(name) {
            Some(GenericValue::Text(text)) => text,
            _ => "",
        };
        let count = |name: &str| fields.unsigned(name).unwrap_or(0);
        let kind = match text("idle") {
            "NotIdle" => "busy",
            "Idle" => "idle",
            _ => "newidle",
        };
        let cpu = Cpu(count("cpu") as u32);
        let level = self.levels[cpu.index()].iter().position(|(name, _)| *name == text("level"));
        let (moved, reason, has_source) = (count("moved"), text("reason"), fields.get("source").is_some());
        let of = |wanted: &str| if text("measure") == wanted { count("amount") } else { 0 };
        // A queue that was found is of no try that found none.
        let nobusyq = reason == "NoQueue" && !has_source;
        let balanced =
            nobusyq || reason != "NoQueue" && BalancedReason::CLAUSES.iter().any(|(name, _)| *name == reason);
        let looked = balanced && !matches!(reason, "AllPinned" | "NotItsTurn" | "Woken");
        for (counter, count) in [
            ("lb_count", 1),
            ("lb_balanced", balanced.into()),
            ("lb_failed", (!balanced && moved == 0).into()),
            ("lb_imbalance_load", of("load")),
            ("lb_imbalance_util", of("util")),
            ("lb_imbalance_task", of("task")),
            ("lb_imbalance_misfit", of("misfit")),
            ("lb_gained", moved),
            ("lb_nobusyq", nobusyq.into()),
            ("lb_nobusyg", (looked && !nobusyq).into()),
        ] {
            self.add(cpu, level, &format!("{kind} {counter}"), count);
        }
    }
}

const COMPARED_OF_CPUS: [&str; 4] = ["ttwu_count", "ttwu_local", "sched_goidle", "pcount"];

/// Runs a workload and gives what was seen, and what is counted.
fn run(kernel: &str, workload: &[&str]) -> (Witness, Schedstat) {
    // Its CPUs all wake equally fast.
    let machine = Machine { idle_states: Vec::new(), ..machines::find("laptop8").expect("a machine") };
    let scheduler =
        Scheduler::new(kernel.parse().expect("a kernel"), machine.topology.clone(), machine.tick());
    let spans = |cpu| {
        let level = |domain: &SchedDomain| (domain.name, domain.span.iter().collect());
        scheduler.domains().domains_of(cpu).iter().map(level).collect()
    };
    let mut witness = Witness { levels: machine.topology.cpus().map(spans).collect(), ..Witness::default() };
    let words = workload.iter().map(ToString::to_string).collect();
    let spec = RunSpec {
        by_name: NamesWanted { balancing: true, ..NamesWanted::default() },
        ..RunSpec::new(kernel.parse().expect("a kernel"), machine, words, 7, Ns::from_ms(400))
    };
    let result = run_watched(&spec, &AtomicBool::new(false), &mut witness).expect("a run").expect("an end");
    // What still runs is counted when it stops.
    let end = Ns(result.settled_ns.expect("it has settled") + result.simulated_ns);
    assert!(witness.running.values().all(|&(_, since)| since <= end), "{kernel}");
    (witness, Schedstat::read(&result.schedstat).expect("a file"))
}

#[test]
fn counters_are_what_events_tell() {
    let schbench = ["schbench", "-m", "2", "-t", "6", "-r", "1"];
    let hackbench = ["hackbench", "-g", "1", "-l", "40"];
    for kernel in ["v4.19", "v5.4", "v5.10", "v6.6", "v7.2"] {
        for workload in [&schbench[..], &hackbench] {
            let (seen, stat) = run(kernel, workload);
            let what = format!("{kernel}, {}", workload[0]);
            let (mut gained, mut pushed, mut calls) = (0, 0, 0);
            for (SchedstatScope { cpu, .. }, line) in &stat.lines {
                let level = line.level.map(|level| level as usize);
                let told = |counter: &str| {
                    seen.counts.get(&(*cpu, level, counter.to_string())).copied().unwrap_or_default()
                };
                let of = |name: &str| {
                    line.counters.iter().find(|(known, _)| known == name).map_or(0, |&(_, count)| count)
                };
                let pushes = of("alb_pushed");
                for (counter, count) in &line.counters {
                    let counter = counter.as_str();
                    let expected = match (counter, level) {
                        // A push counts as if an idle CPU had pulled.
                        ("idle lb_gained", _) => told(counter) + pushes,
                        (_, Some(_)) if counter.ends_with("lb_imbalance") => {
                            let kinds = ["load", "util", "task", "misfit"];
                            kinds.iter().map(|kind| told(&format!("{counter}_{kind}"))).sum()
                        }
                        (_, Some(_)) if counter.contains(" lb_") && !counter.ends_with("hot_gained") => {
                            told(counter)
                        }
                        ("ttwu_wake_remote", _) => told(counter),
                        (_, None) if COMPARED_OF_CPUS.contains(&counter) => told(counter),
                        _ => continue,
                    };
                    assert_eq!(*count, expected, "{what}: {counter} of CPU {cpu}, {level:?}");
                    gained += if counter.ends_with("lb_gained") { *count } else { 0 };
                    calls += if counter.ends_with("lb_count") { *count } else { 0 };
                }
                pushed += pushes;
            }
            assert_eq!(seen.moves, gained, "{what}: tasks moved, {pushed} of them pushed");
            assert!(calls > 20, "{what}: {calls} calls");
            let sum = |name: &str| {
                let all = stat.lines.values().flat_map(|line| &line.counters);
                all.filter(|(known, _)| known == name).map(|(_, count)| count).sum::<u64>()
            };
            // A wakeup that takes a CPU sets the clock by which the switch goes, which follows when the CPU is awake.
            let costs = machines::find("laptop8").expect("a machine").costs;
            let early = sum("pcount") * (costs.ipi + costs.idle_exit + costs.interrupt).0;
            let (ran, waited) = (sum("rq_cpu_time"), sum("run_delay"));
            assert!((seen.ran..=seen.ran + early).contains(&ran), "{what}: tasks ran {ran}, {}", seen.ran);
            let least = seen.delay.saturating_sub(early);
            assert!((least..=seen.delay).contains(&waited), "{what}: they waited {waited}, {}", seen.delay);
        }
    }
}
