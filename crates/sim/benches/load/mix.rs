//! What simulators are timed with: the load and the machines of docs/performance.md.
//!
//! Must not know: who schedules, and what is measured.

use fairlab_event::Ns;
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_sim::Machine;
use fairlab_sim::machine::{Chance, KernelCosts, Sharing, TrueSpeeds};
use fairlab_sim::workload::{Action, ThreadId, ThreadSpec, View, Workload};

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
        costs: KernelCosts::default(),
        frequency_domains: Vec::new(),
        energy_model: Vec::new(),
        speeds: TrueSpeeds::default(),
        sharing: Sharing::NONE,
        idle_states: Vec::new(),
    }
}
