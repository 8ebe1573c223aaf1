//! `rq->cpu_load[]`: load averaged over 1, 2, 4, 8 and 16 ticks, by which the old balancer was biased (to v5.2).
//!
//! Must not know: who reads it, when ticks come.

/// Number of averages (`CPU_LOAD_IDX_MAX`).
pub const CPU_LOAD_INDEXES: usize = 5;

/// Bits of the decay factors' fixed point (`DEGRADE_SHIFT`).
const DEGRADE_SHIFT: u32 = 7;

/// Ticks after which nothing is left (`degrade_zero_ticks[]`).
const ZERO_TICKS: [u64; CPU_LOAD_INDEXES] = [0, 8, 32, 64, 128];

/// (1 − 1/2ⁱ)^(2ʲ) · 128, for index i and bit j of the number of ticks (`degrade_factor[]`).
const FACTORS: [[u64; DEGRADE_SHIFT as usize + 1]; CPU_LOAD_INDEXES] = [
    [0, 0, 0, 0, 0, 0, 0, 0],
    [64, 32, 8, 0, 0, 0, 0, 0],
    [96, 72, 40, 12, 1, 0, 0, 0],
    [112, 98, 75, 43, 15, 1, 0, 0],
    [120, 112, 98, 76, 45, 16, 2, 0],
];

/// The averages of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuLoad {
    /// Index i follows load by 1/2ⁱ a tick; index 0 is the load at the last update.
    pub cpu_load: [u64; CPU_LOAD_INDEXES],
    /// Tick of the last update (`last_load_update_tick`).
    pub last_load_update_tick: u64,
}

/// `load` as average `index` holds it after `missed_updates` idle ticks (`decay_load_missed()`).
fn decay_load_missed(load: u64, missed_updates: u64, index: usize) -> u64 {
    if missed_updates == 0 {
        return load;
    }
    if missed_updates >= ZERO_TICKS[index] {
        return 0;
    }
    if index == 1 {
        return load >> missed_updates;
    }
    let set = FACTORS[index].iter().enumerate().filter(|(bit, _)| missed_updates >> bit & 1 == 1);
    set.fold(load, |load, (_, factor)| load.wrapping_mul(*factor) >> DEGRADE_SHIFT)
}

impl CpuLoad {
    /// Follows `load` (`weighted_cpuload()`: the root queue's `runnable_load_avg`) after `pending` ≥ 1 ticks, during
    /// which the CPU had the load of the last update.
    ///
    /// Kernel: `cpu_load_update()`, kernel/sched/fair.c, to v5.2. Rising averages are rounded up.
    fn update(&mut self, load: u64, pending: u64) {
        let tickless_load = self.cpu_load[0];
        self.cpu_load[0] = load;
        for index in 1..CPU_LOAD_INDEXES {
            let scale = 1_u64 << index;
            let mut old = decay_load_missed(self.cpu_load[index], pending - 1, index);
            if tickless_load != 0 {
                let decayed = decay_load_missed(tickless_load, pending - 1, index);
                old = old.wrapping_sub(decayed).wrapping_add(tickless_load);
            }
            let new = if load > old { load + (scale - 1) } else { load };
            self.cpu_load[index] = old.wrapping_mul(scale - 1).wrapping_add(new) >> index;
        }
    }

    /// A tick (`cpu_load_update_active()`). `tick_stopped`: the tick is stopped for a CPU that runs a single task.
    pub fn tick(&mut self, load: u64, tick: u64, tick_stopped: bool) {
        if tick_stopped {
            return self.catch_up(load, tick);
        }
        self.last_load_update_tick = tick;
        self.update(load, 1);
    }

    /// The tick stops: remembers the load that the following ticks will have had (`cpu_load_update_nohz_start()`).
    pub fn nohz_start(&mut self, load: u64) {
        self.cpu_load[0] = load;
    }

    /// The tick starts again: catches up (`cpu_load_update_nohz_stop()`).
    pub fn nohz_stop(&mut self, load: u64, tick: u64) {
        self.catch_up(load, tick);
    }

    /// Another CPU balances for this idle one: catches up if there is no load (`cpu_load_update_idle()`).
    pub fn update_idle(&mut self, load: u64, tick: u64) {
        if load == 0 {
            self.catch_up(0, tick);
        }
    }

    /// `cpu_load_update_nohz()`.
    fn catch_up(&mut self, load: u64, tick: u64) {
        let pending = tick.wrapping_sub(self.last_load_update_tick);
        if pending > 0 {
            self.last_load_update_tick = tick;
            self.update(load, pending);
        }
    }

    fn biased(&self, index: usize, lb_bias: bool) -> Option<u64> {
        if lb_bias { self.cpu_load.get(index.checked_sub(1)?).copied() } else { None }
    }
}

/// A CPU's load as something to take from: the lower of now and average `index` − 1; index 0 is now.
///
/// Kernel: `source_load()`, kernel/sched/fair.c, to v5.2. `load`: `weighted_cpuload()`; `lb_bias`: the feature LB_BIAS.
pub fn source_load(cpu: &CpuLoad, load: u64, index: usize, lb_bias: bool) -> u64 {
    cpu.biased(index, lb_bias).map_or(load, |biased| biased.min(load))
}

/// A CPU's load as something to add to: the higher of now and average `index` − 1; index 0 is now.
///
/// Kernel: `target_load()`, kernel/sched/fair.c, to v5.2.
pub fn target_load(cpu: &CpuLoad, load: u64, index: usize, lb_bias: bool) -> u64 {
    cpu.biased(index, lb_bias).map_or(load, |biased| biased.max(load))
}
