//! What simulators are timed with: the load and the machines of docs/performance.md, and how runs are timed, for any scheduler.
//!
//! Must not know: who schedules.

use std::{fmt, fs};

use fairlab_event::{Ns, Sink};
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_sim::machine::{Chance, Costs, Sharing};
use fairlab_sim::workload::{Action, ThreadId, ThreadSpec, View, Workload};
use fairlab_sim::{Engine, Machine, SchedulerCore};

/// Sleepers that compute and sleep for random times, and hogs.
pub struct Mix {
    sleepers: u32,
    hogs: u32,
    /// The least that a sleep takes.
    sleep: Ns,
    spawned: u32,
    computed: Vec<bool>,
}

impl Mix {
    pub fn new(sleepers: u32, hogs: u32, sleep: Ns) -> Box<Mix> {
        let computed = vec![false; (sleepers + hogs) as usize + 1];
        Box::new(Mix { sleepers, hogs, sleep, spawned: 0, computed })
    }
}

impl Workload for Mix {
    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("main", "main")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        if thread == ThreadId::MAIN {
            if self.spawned == self.sleepers + self.hogs {
                return Action::Exit;
            }
            self.spawned += 1;
            return Action::Spawn(ThreadSpec::new("load", format!("load-{}", self.spawned)));
        }
        if thread.0 > self.sleepers {
            return Action::Run(Ns::from_secs(1));
        }
        let computed = &mut self.computed[thread.index()];
        *computed = !*computed;
        let more = Ns(view.random.below(100_000));
        if *computed { Action::Run(Ns(100_000) + more) } else { Action::Sleep(self.sleep + more) }
    }

    fn output(&self, _: Ns) -> String {
        String::new()
    }

    /// Nothing once all threads are there.
    fn progress(&self) -> Option<(&'static str, u64)> {
        let threads = self.sleepers + self.hogs;
        (self.spawned < threads).then_some(("threads", self.spawned.into()))
    }
}

pub fn machine(cpus: u32, hz: u64) -> Machine {
    let cores_an_llc = if cpus > 48 { 24 } else { cpus / 2 };
    let llcs = cpus / 2 / cores_an_llc;
    Machine {
        name: format!("{cpus} CPUs"),
        description: String::new(),
        topology: Topology::regular(llcs, 1, cores_an_llc, 2, SmtNumbering::Spread).expect("a machine"),
        hz,
        high_res_timers: true,
        nohz_idle: true,
        chance: Chance::NONE,
        in_turn: false,
        costs: Costs::default(),
        frequency_domains: Vec::new(),
        energy_model: Vec::new(),
        sharing: Sharing::NONE,
        idle_states: Vec::new(),
    }
}

/// How long a run goes on between two looks at whether all threads are there.
const SETTLING: Ns = Ns(20_000_000);

/// What a run did in the CPU time of its one thread.
pub struct Speed {
    switches: u64,
    occurrences: u64,
    /// CPU time, s.
    pub spent: f64,
}

/// Times `simulated` of a run from when all threads are there, and a little more; with a sink it is traced.
pub fn timed<C: SchedulerCore>(
    mut engine: Engine<C>,
    workload: Box<Mix>,
    simulated: Ns,
    sink: Option<&mut dyn Sink>,
) -> Speed {
    engine.set_tracing(sink.is_some());
    let workload = engine.start(workload);
    while engine.workload(workload).progress().is_some() {
        engine.run_until(engine.now() + SETTLING, &mut ());
    }
    let (before, end, start) = (engine.counters(), engine.now() + simulated, time_on_cpu());
    match sink {
        Some(sink) => engine.run_until(end, sink),
        None => engine.run_until(end, &mut ()),
    }
    let (spent, counters) = (Ns(time_on_cpu() - start).as_secs_f64(), engine.counters());
    Speed {
        switches: counters.switches - before.switches,
        occurrences: counters.occurrences - before.occurrences,
        spent,
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Speed { switches, occurrences, spent } = self;
        let [per_s, occurrences] = [*switches, *occurrences].map(|count| count as f64 / spent / 1e6);
        write!(to, "{per_s:>6.2} M switches/s of {switches} {occurrences:>6.2} M occurrences/s")
    }
}

/// How long this thread has run, ns.
pub fn time_on_cpu() -> u64 {
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux host");
    let first = schedstat.split(' ').next().and_then(|field| field.parse().ok());
    first.expect("the first field is run time in ns")
}
