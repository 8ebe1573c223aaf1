//! `/proc/schedstat` as each kernel lays it out.

use std::fmt::Write;

use fairlab_event::{Cpu, Ns};

use super::{CpuIdleType, DomainCounters, LoadBalanceCounters, SisCounters};
use crate::cpumask::CpuMask;
use crate::domain::SchedstatLayout;
use crate::scheduler::Scheduler;

/// Jiffies begin so long before the counter of 32 bits overflows, s (`INITIAL_JIFFIES`).
const BEFORE_OVERFLOW: u64 = 300;

impl SchedstatLayout {
    const fn version(self) -> u32 {
        match self {
            SchedstatLayout::Version15 => 15,
            SchedstatLayout::Version16 => 16,
            SchedstatLayout::Version17 => 17,
        }
    }

    /// The kinds of idleness in the order in which they are shown.
    const fn order(self) -> [CpuIdleType; 3] {
        match self {
            SchedstatLayout::Version15 => [CpuIdleType::Idle, CpuIdleType::NotIdle, CpuIdleType::NewlyIdle],
            SchedstatLayout::Version16 | SchedstatLayout::Version17 => CpuIdleType::ALL,
        }
    }
}

impl Scheduler {
    /// What `/proc/schedstat` would show at `now`. With `searches`, the counters of searches for idle CPUs follow on the
    /// lines of CPUs, as no released kernel has them.
    ///
    /// Kernel: `show_schedstat()`, kernel/sched/stats.c. Variants: version 16 from v6.10 (11b0bfa5d463), 17 from v6.14
    /// (3b2a793ea70f, 011b3a14dc66, 7c8cd569ff66).
    /// Departs: nothing is counted for exec and fork balancing and for moves by load at wakeups, as in kernels since v3.
    pub fn schedstat(&self, now: Ns, searches: bool) -> String {
        let layout = self.domains.rules().schedstat_layout;
        let jiffies = (1u64 << 32) - BEFORE_OVERFLOW * self.shared.sysctl.hz + self.shared.jiffies_at(now);
        let mut text = format!("version {}\ntimestamp {jiffies}\n", layout.version());
        for cpu in self.shared.topology.cpus() {
            self.write_cpu(&mut text, cpu, searches);
            for (number, domain) in self.domains.domains_of(cpu).iter().enumerate() {
                let _ = write!(text, "domain{number}");
                if layout == SchedstatLayout::Version17 {
                    let _ = write!(text, " {}", domain.name);
                }
                let _ = write!(text, " {}", bitmap(&domain.span, self.shared.topology.nr_cpus()));
                write_domain(&mut text, &domain.counters, layout);
            }
        }
        text
    }

    fn write_cpu(&self, text: &mut String, cpu: Cpu, searches: bool) {
        let counters = self.counters(cpu);
        let _ = write!(text, "cpu{cpu} {} 0", counters.yld_count);
        numbers(
            text,
            &[
                counters.sched_count,
                counters.sched_goidle,
                counters.ttwu_count,
                counters.ttwu_local,
                counters.rq_cpu_time,
                counters.run_delay,
                counters.pcount,
            ],
        );
        if searches {
            numbers(text, &in_order(&counters.sis));
        }
        text.push('\n');
    }
}

/// The counters of searches in the order of the patches that brought them.
const fn in_order(sis: &SisCounters) -> [u64; 8] {
    [
        sis.search,
        sis.domain_search,
        sis.scanned,
        sis.failed,
        sis.recent_hit,
        sis.recent_miss,
        sis.core_search,
        sis.core_miss,
    ]
}

fn write_domain(text: &mut String, counters: &DomainCounters, layout: SchedstatLayout) {
    for idle in layout.order() {
        write_balancing(text, &counters.lb[idle.index()], layout);
    }
    numbers(text, &[counters.alb_count, counters.alb_failed, counters.alb_pushed]);
    // Balancing at exec and fork, three each.
    numbers(text, &[0; 6]);
    numbers(text, &[counters.ttwu_wake_remote, counters.ttwu_move_affine, 0]);
    text.push('\n');
}

fn write_balancing(text: &mut String, lb: &LoadBalanceCounters, layout: SchedstatLayout) {
    numbers(text, &[lb.count, lb.balanced, lb.failed]);
    let kinds = [lb.imbalance_load, lb.imbalance_util, lb.imbalance_task, lb.imbalance_misfit];
    match layout {
        SchedstatLayout::Version17 => numbers(text, &kinds),
        _ => numbers(text, &[kinds.iter().sum()]),
    }
    numbers(text, &[lb.gained, lb.hot_gained, lb.nobusyq, lb.nobusyg]);
}

fn numbers(text: &mut String, numbers: &[u64]) {
    for number in numbers {
        let _ = write!(text, " {number}");
    }
}

/// A mask in the kernel's form of hexadecimal words, as wide as the machine (`%*pb`).
fn bitmap(mask: &CpuMask, nr_cpus: usize) -> String {
    const BITS_A_WORD: usize = 32;
    let words = nr_cpus.div_ceil(BITS_A_WORD);
    let word = |word: usize| {
        let first = word * BITS_A_WORD;
        let bits = (nr_cpus - first).min(BITS_A_WORD);
        let set = (0..bits).filter(|bit| mask.contains(Cpu((first + bit) as u32)));
        let value = set.fold(0u32, |value, bit| value | 1 << bit);
        format!("{value:0width$x}", width = bits.div_ceil(4))
    };
    (0..words).rev().map(word).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{MS, SchedulerTestbed};

    #[test]
    fn masks_are_as_wide_as_the_machine() {
        let mask = |list: &str, cpus: usize| bitmap(&CpuMask::parse_list(list).expect(list), cpus);
        assert_eq!(mask("0-1", 8), "03", "as in 7.2 on 8 CPUs");
        assert_eq!(mask("0-3", 4), "f");
        assert_eq!(mask("0-1", 16), "0003");
        assert_eq!(mask("0-39", 40), "ff,ffffffff");
        assert_eq!(mask("2", 33), "0,00000004");
    }

    fn of(kernel: &str, searches: bool) -> String {
        let mut bed = SchedulerTestbed::new(kernel, 1, 2);
        let task = bed.spawn(0, 1);
        bed.pass(3 * MS);
        bed.sleep(1);
        bed.wake(task, 0);
        let base = bed.scheduler.domains.of_cpu(Cpu(1)).base.expect("a domain");
        let lb = &mut bed.scheduler.domains.domain_mut(base).counters.lb;
        lb[CpuIdleType::Idle.index()] = LoadBalanceCounters {
            count: 7,
            balanced: 4,
            failed: 1,
            imbalance_util: 30,
            imbalance_task: 2,
            gained: 2,
            nobusyg: 4,
            ..LoadBalanceCounters::default()
        };
        bed.scheduler.schedstat(Ns::from_ms(5), searches)
    }

    #[test]
    fn each_version_has_its_layout() {
        let old = of("v6.9", false);
        assert!(old.starts_with("version 15\ntimestamp 4294667301\ncpu0 0 0 "), "{old}");
        let zeros = " 0 0 0 0 0 0 0 0";
        let tail = " 0 0 0 0 0 0 0 0 0 0 0 0\n";
        let idle = " 7 4 1 32 2 0 0 4";
        assert!(old.contains(&format!("\ndomain0 3{idle}{zeros}{zeros}{tail}")), "{old}");
        let reordered = of("v6.10", false);
        assert!(reordered.starts_with("version 16\n"));
        assert!(reordered.contains(&format!("\ndomain0 3{zeros}{idle}{zeros}{tail}")), "{reordered}");
        let named = of("v6.14", false);
        let kinds = format!("\ndomain0 SMT 3{zeros} 0 0 0 7 4 1 0 30 2 0 2 0 0 4{zeros} 0 0 0{tail}");
        assert!(named.starts_with("version 17\n") && named.contains(&kinds), "{named}");
    }

    /// As many columns as recorded lines of 5.2.1, Debian's 6.12 and Debian's 7.2 have.
    #[test]
    fn lines_are_as_long_as_real_ones() {
        let columns = |kernel: &str| {
            let text = of(kernel, false);
            let domain = text.lines().find(|line| line.starts_with("domain0")).expect("a domain");
            domain.split(' ').count()
        };
        assert_eq!(columns("v5.2"), 38);
        assert_eq!(columns("v6.12"), 38);
        assert_eq!(columns("v7.2"), 48);
    }

    #[test]
    fn searches_stand_at_the_end_of_a_cpus_line() {
        let columns = |text: &str| {
            let cpu = text.lines().find(|line| line.starts_with("cpu1 ")).expect("a CPU");
            cpu.split(' ').count()
        };
        assert_eq!(columns(&of("v5.10", false)), 10);
        assert_eq!(columns(&of("v5.10", true)), 18);
    }
}
