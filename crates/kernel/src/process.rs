//! What the scheduler knows of a process whose threads it gathers under one last-level cache: for how long they ran of
//! late on each CPU, and the CPU whose cache they prefer for that (`struct sched_cache_group`).
//!
//! Must not know: runqueues, what balancing makes of it.

mod preference;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Pid};

use crate::domain::{SchedDomains, fits_capacity};
use crate::topology::Topology;
use crate::weight::UNIT;

/// Names a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessId(u32);

/// Epochs in a second (`EPOCH_PERIOD` is `HZ / 100`).
const EPOCHS_A_SECOND: u64 = 100;

/// After so many epochs without a look at all CPUs a preference is forgotten (`EPOCH_LLC_AFFINITY_TIMEOUT`).
const AFFINITY_TIMEOUT: i64 = 5;

/// Run time of a process on one CPU, ns; half of it is gone with each epoch (`struct sched_cache_time`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CacheTime {
    runtime: u64,
    epoch: u64,
}

/// The same of a CPU's runqueue for all processes, and its epochs (`cpu_runtime`, `cpu_epoch`, `cpu_epoch_next`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuEpoch {
    runtime: u64,
    epoch: u64,
    /// Up to this tick the epoch lasts.
    next: u64,
}

impl CpuEpoch {
    /// Begins as many epochs as have come since, of `period` ticks; brings a process's time to the same.
    ///
    /// Kernel: `__update_mm_sched()`, kernel/sched/fair.c.
    fn update(&mut self, time: &mut CacheTime, jiffies: u64, period: u64) {
        if let Some(late) = jiffies.checked_sub(self.next).filter(|&late| late > 0) {
            let epochs = late.div_ceil(period);
            self.epoch += epochs;
            self.next += epochs * period;
            self.runtime = halved(self.runtime, epochs);
        }
        let behind = self.epoch - time.epoch;
        time.epoch = self.epoch;
        time.runtime = halved(time.runtime, behind);
    }
}

fn halved(value: u64, times: u64) -> u64 {
    if times < u64::from(u64::BITS) { value >> times } else { 0 }
}

/// A process (`struct sched_cache_group`, and `signal->nr_threads`).
#[derive(Clone, Debug)]
struct Process {
    tgid: Pid,
    /// Threads that have not begun to exit, and the first, which is not gone before the last (`get_nr_threads()`).
    nr_threads: u32,
    /// The first thread has begun to exit.
    leader_exits: bool,
    /// By CPU.
    times: Vec<CacheTime>,
    /// The epoch of the CPU on which a look at all CPUs was last asked for.
    epoch: u64,
    /// The tick from which the next look may be taken.
    next_scan: u64,
    /// How many threads ran at the same time when it was looked, as a moving average.
    nr_running_avg: u64,
    /// A CPU of the cache that the process prefers.
    cpu: Option<Cpu>,
}

/// A CPU's last-level cache, as far as processes go by it.
#[derive(Clone, Copy, Debug)]
struct LastLevelCache {
    /// The first CPU that shares it (`sd_llc_id`).
    id: u32,
    /// CPUs that share it (`sd_llc_size`).
    size: u32,
}

/// All processes, and what decides whether they gather.
#[derive(Clone, Debug)]
pub(crate) struct Processes {
    /// Whether they gather: the rule is in force, and there are several caches (`sched_cache_active`).
    active: bool,
    /// By CPU.
    caches: Vec<LastLevelCache>,
    /// Threads of a core with the most (`cpu_smt_num_threads`).
    smt_threads: u32,
    /// Ticks in an epoch (`llc_epoch_period`).
    period: u64,
    processes: Vec<Process>,
    by_tgid: BTreeMap<Pid, ProcessId>,
    /// Places of ended processes.
    ended: Vec<ProcessId>,
}

impl Processes {
    /// None yet. `gather`: whether the rules say so at all.
    ///
    /// Kernel: `sd_in_multi_llcs()`, `sched_cache_set()`, kernel/sched/topology.c.
    pub fn new(
        gather: bool,
        topology: &Topology,
        domains: &SchedDomains,
        ticks_per_second: u64,
    ) -> Processes {
        let cache = |cpu: Cpu| {
            let known = domains.of_cpu(cpu);
            LastLevelCache { id: known.sd_llc_id, size: known.sd_llc_size }
        };
        let among_several = |cpu: Cpu| {
            let size = domains.of_cpu(cpu).sd_llc_size;
            size > 1 && domains.domains_of(cpu).iter().any(|sd| sd.span_weight > size)
        };
        Processes {
            active: gather && topology.cpus().any(among_several),
            caches: topology.cpus().map(cache).collect(),
            smt_threads: topology.cpus().map(|cpu| topology.smt_mask(cpu).weight() as u32).max().unwrap_or(1),
            period: (ticks_per_second / EPOCHS_A_SECOND).max(1),
            processes: Vec::new(),
            by_tgid: BTreeMap::new(),
            ended: Vec::new(),
        }
    }

    /// Whether threads of a process are gathered on this machine (`sched_cache_enabled()`).
    #[inline]
    pub fn active(&self) -> bool {
        self.active
    }

    /// Threads of a core with the most.
    pub fn smt_threads(&self) -> u32 {
        self.smt_threads
    }

    /// Which last-level cache a CPU has: the first CPU that shares it (`llc_id()`).
    #[inline]
    pub fn llc_id(&self, cpu: Cpu) -> u32 {
        self.caches[cpu.index()].id
    }

    /// Whether a CPU's runqueue counts its tasks by the cache that they prefer: it shares its own with others (`llc_max`).
    #[inline]
    fn counts(&self, cpu: Cpu) -> bool {
        self.caches[cpu.index()].size > 1
    }

    /// A thread of a process begins; `epochs` are the CPUs' ones. Returns the process.
    ///
    /// Kernel: `mm_init_sched()`, `sched_cache_fork()`, kernel/sched/fair.c.
    pub fn join(&mut self, tgid: Pid, epochs: impl Iterator<Item = CpuEpoch>) -> ProcessId {
        if let Some(&id) = self.by_tgid.get(&tgid) {
            self.processes[id.0 as usize].nr_threads += 1;
            return id;
        }
        let times = epochs.map(|cpu| CacheTime { runtime: 0, epoch: cpu.epoch }).collect::<Vec<_>>();
        let process = Process {
            tgid,
            nr_threads: 1,
            leader_exits: false,
            epoch: times.last().map_or(0, |time| time.epoch),
            times,
            next_scan: 0,
            nr_running_avg: 0,
            cpu: None,
        };
        let id = match self.ended.pop() {
            Some(id) => {
                self.processes[id.0 as usize] = process;
                id
            }
            None => {
                self.processes.push(process);
                ProcessId(self.processes.len() as u32 - 1)
            }
        };
        self.by_tgid.insert(tgid, id);
        id
    }

    /// A thread has begun to exit; the process ends with the last.
    ///
    /// Kernel: `sched_cache_exit_mm()`, kernel/sched/fair.c; `__unhash_process()`, kernel/exit.c.
    pub fn leave(&mut self, id: ProcessId, thread: Pid) {
        let process = &mut self.processes[id.0 as usize];
        match thread == process.tgid {
            true => process.leader_exits = true,
            false => process.nr_threads -= 1,
        }
        if process.nr_threads == u32::from(process.leader_exits) {
            self.by_tgid.remove(&process.tgid);
            self.ended.push(id);
        }
    }

    /// The CPU whose cache a process prefers.
    pub fn preferred_cpu(&self, id: ProcessId) -> Option<Cpu> {
        self.processes[id.0 as usize].cpu
    }

    /// A process prefers no cache any more.
    pub fn forget(&mut self, id: ProcessId) {
        self.processes[id.0 as usize].cpu = None;
    }

    /// Whether a process has a single thread, or more of them run than the cache of `cpu` has room for.
    ///
    /// Kernel: `invalid_llc_nr()`, kernel/sched/fair.c, with `llc_aggr_tolerance` as it is set: 1.
    pub fn has_no_use(&self, id: ProcessId, cpu: Cpu) -> bool {
        let process = &self.processes[id.0 as usize];
        let room = u64::from(self.caches[cpu.index()].size);
        let runs = process.nr_running_avg * u64::from(self.smt_threads);
        process.nr_threads <= 1 || !fits_capacity(runs, room)
    }

    /// A process has run for `delta` ns on a CPU. Its preference is forgotten if nobody has looked at all CPUs for long, or if it
    /// has no use.
    ///
    /// Kernel: `account_mm_sched()`, kernel/sched/fair.c. Departs: no NUMA balancing, and so no limit by the memory used.
    fn account(&mut self, id: ProcessId, cpu: Cpu, on: &mut CpuEpoch, (delta, jiffies): (u64, u64)) {
        let process = &mut self.processes[id.0 as usize];
        let time = &mut process.times[cpu.index()];
        on.update(time, jiffies, self.period);
        time.runtime += delta;
        on.runtime += delta;
        if process.cpu.is_some()
            && (on.epoch.wrapping_sub(process.epoch) as i64 > AFFINITY_TIMEOUT || self.has_no_use(id, cpu))
        {
            self.forget(id);
        }
    }

    /// The cache that a process prefers (`get_pref_llc()`).
    fn preferred_llc(&self, id: ProcessId) -> Option<u32> {
        self.preferred_cpu(id).map(|cpu| self.llc_id(cpu))
    }

    /// Whether a tick in this epoch of a CPU asks for a look at all CPUs; it is noted (`task_tick_cache()`).
    fn asks_for_look(&mut self, id: ProcessId, on: CpuEpoch) -> bool {
        let process = &mut self.processes[id.0 as usize];
        let asks = process.epoch < on.epoch;
        process.epoch = process.epoch.max(on.epoch);
        asks
    }

    /// Whether a look at all CPUs from `cpu` is due; if so, the next is in an epoch. A process without use for one forgets what
    /// it preferred.
    fn begins_look(&mut self, id: ProcessId, cpu: Cpu, jiffies: u64) -> bool {
        let process = &mut self.processes[id.0 as usize];
        if jiffies < process.next_scan {
            return false;
        }
        process.next_scan = jiffies + self.period;
        if self.has_no_use(id, cpu) {
            self.forget(id);
            return false;
        }
        true
    }

    /// Which part of a CPU's run time of late was a process's, of 2^20 (`fraction_mm_sched()`).
    fn fraction(&mut self, id: ProcessId, cpu: Cpu, on: &mut CpuEpoch, jiffies: u64) -> u64 {
        let time = &mut self.processes[id.0 as usize].times[cpu.index()];
        on.update(time, jiffies, self.period);
        UNIT.wrapping_mul(time.runtime) / (on.runtime + 1)
    }

    /// A look at all CPUs from `cpu` has found where most of the process ran, what share of all caches it had there and under the
    /// cache that it preferred, and how many of its threads run. It prefers another cache only for twice the share.
    ///
    /// Kernel: the end of `task_cache_work()`, `update_avg_scale()`, kernel/sched/fair.c.
    fn end_look(&mut self, id: ProcessId, cpu: Cpu, found: ProcessScan) {
        let size = self.caches[cpu.index()].size;
        let process = &mut self.processes[id.0 as usize];
        if found.most > 2 * found.at_preferred {
            process.cpu = found.most_at;
        }
        let smoothing = i64::from((size / 4).clamp(2, 8));
        let ahead = found.nr_running as i64 - process.nr_running_avg as i64;
        process.nr_running_avg = process.nr_running_avg.wrapping_add_signed(ahead / smoothing);
    }
}

/// What a look at all CPUs has found of a process.
#[derive(Clone, Copy, Debug, Default)]
struct ProcessScan {
    /// The greatest sum of its shares of CPUs under one cache.
    most: u64,
    /// The CPU there with the greatest share.
    most_at: Option<Cpu>,
    /// The same sum under the cache that it prefers.
    at_preferred: u64,
    /// How many of its threads run.
    nr_running: u64,
}
