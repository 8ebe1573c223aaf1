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
    /// which the CPU had the load of the last update. Rising averages are rounded up.
    ///
    /// Kernel: `cpu_load_update()`, kernel/sched/fair.c, to v5.2.
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
            let new = if load > old { load.wrapping_add(scale - 1) } else { load };
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
/// `load` is `weighted_cpuload()`, `lb_bias` the feature LB_BIAS.
///
/// Kernel: `source_load()`, kernel/sched/fair.c, to v5.2.
pub fn source_load(cpu: &CpuLoad, load: u64, index: usize, lb_bias: bool) -> u64 {
    cpu.biased(index, lb_bias).map_or(load, |biased| biased.min(load))
}

/// A CPU's load as something to add to: the higher of now and average `index` − 1; index 0 is now.
///
/// Kernel: `target_load()`, kernel/sched/fair.c, to v5.2.
pub fn target_load(cpu: &CpuLoad, load: u64, index: usize, lb_bias: bool) -> u64 {
    cpu.biased(index, lb_bias).map_or(load, |biased| biased.max(load))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(load: u64) -> CpuLoad {
        CpuLoad { cpu_load: [load; CPU_LOAD_INDEXES], last_load_update_tick: 100 }
    }

    #[test]
    fn each_average_follows_at_half_the_pace() {
        let mut cpu = all(1024);
        cpu.tick(0, 101, false);
        // The load of the last update counts as the load of the tick before.
        assert_eq!(cpu.cpu_load, [0, 512, 768, 896, 960]);
        cpu.tick(0, 102, false);
        assert_eq!(cpu.cpu_load, [0, 256, 576, 784, 900]);
        let mut cpu = all(0);
        cpu.tick(1024, 101, false);
        assert_eq!(cpu.cpu_load, [1024, 512, 256, 128, 64]);
        (102..300).for_each(|tick| cpu.tick(1024, tick, false));
        assert_eq!(cpu.cpu_load, [1024; CPU_LOAD_INDEXES], "rounding up lets it arrive");
    }

    #[test]
    fn missed_ticks_of_an_idle_cpu_decay() {
        for (index, &zero_ticks) in ZERO_TICKS.iter().enumerate().skip(1) {
            for missed in 0..140 {
                let mut load = 1_000_000_u64;
                (0..missed).for_each(|_| load -= load.div_ceil(1 << index));
                let jumped = decay_load_missed(1_000_000, missed, index);
                // The factors have 7 bits.
                assert!(jumped.abs_diff(load) < 24_000, "index {index} after {missed}: {jumped}, {load}");
            }
            assert_eq!(decay_load_missed(1_000_000, zero_ticks, index), 0);
        }
        assert_eq!(decay_load_missed(1024, 3, 2), 432, "(3/4)^3");
        assert_eq!(decay_load_missed(1024, 5, 1), 32);
    }

    #[test]
    fn ticks_without_a_tick_are_caught_up() {
        let mut cpu = all(1024);
        cpu.nohz_start(0);
        cpu.update_idle(5, 108);
        assert_eq!(cpu.last_load_update_tick, 100, "not idle: left alone");
        cpu.update_idle(0, 108);
        assert_eq!(cpu.cpu_load, [0, 4, 101, 350, 602]);
        cpu.nohz_stop(1024, 108);
        assert_eq!(cpu.cpu_load[0], 0, "no tick has passed");
        cpu.nohz_stop(1024, 109);
        assert_eq!(cpu.cpu_load[..2], [1024, 514]);
    }

    #[test]
    fn a_single_task_without_ticks_keeps_its_load() {
        let mut cpu = all(1024);
        cpu.tick(1024, 200, true);
        assert_eq!(cpu.cpu_load, [1024; CPU_LOAD_INDEXES]);
        assert_eq!(cpu.last_load_update_tick, 200);
    }

    #[test]
    fn bias_is_pessimistic_both_ways() {
        let cpu = CpuLoad { cpu_load: [100, 300, 0, 0, 0], last_load_update_tick: 0 };
        let both =
            |index, lb_bias| [source_load(&cpu, 200, index, lb_bias), target_load(&cpu, 200, index, lb_bias)];
        assert_eq!(both(0, true), [200, 200]);
        assert_eq!(both(1, true), [100, 200]);
        assert_eq!(both(2, true), [200, 300]);
        assert_eq!(both(2, false), [200, 200]);
        assert_eq!(both(9, true), [200, 200], "there is no such average");
    }
}
