//! Probes at the tries of balancing: what a try finds of CPUs, queues and tasks, and what it is to move.
//!
//! `lb` and `fbg_r` have the recorder's fields. Beside them `lb` shows of each CPU what a selection's probe does, and
//!
//! * `im`: the groups of the domain, by their first CPU (the first 64), that affinity kept from being evened out;
//! * `tp`: wakeups on their way to the CPU that balances;
//! * `q<CPU>`: its fair tasks as balancing passes over them, each as `pid:load_avg:util_avg:enqueued:ewma:exec_start`;
//! * `g<CPU>`: its queues of groups, each as `inode:load_avg:load_avg of its entity`.
//!
//! `alb` shows the first CPU's tasks in the same way, and in `lvl` and `failed` where failures of the push are counted.
//!
//! Must not know: what is decided before it is shown.

use std::fmt::Write;

use fairlab_event::Cpu;

use crate::balance::{BalanceDecision, Balanced};
use crate::core::Scheduler;
use crate::schedstat::CpuIdleType;

/// CPUs that one number can show.
const BITS: u32 = 64;

impl Scheduler {
    /// `load_balance()` is entered. A driver says so before it asks for the decision.
    #[inline]
    pub fn probe_balance(&mut self, cpu: Cpu, level: usize, idle: CpuIdleType) {
        self.probe("lb", |scheduler| scheduler.try_text(cpu, level, idle));
    }

    /// `find_busiest_group()` returns, where the try has come to it.
    pub(crate) fn probe_busiest_group(&mut self, decision: &BalanceDecision) {
        let looked = !matches!(decision.balanced, Some(Balanced::NotItsTurn | Balanced::Woken));
        if !looked {
            return;
        }
        self.probe("fbg_r", |scheduler| {
            let groups = scheduler.domains.groups(scheduler.domain_id(decision.cpu, decision.level));
            let taken = decision.group.map(|group| group.first);
            let spans = groups.map(|id| scheduler.domains.group(id).span);
            let mask = spans.filter(|span| span.lowest() == taken && taken.is_some()).map(|span| bits(span.iter()));
            let (imbalance, mask) = (decision.imbalance, mask.fold(0, |all, one| all | one));
            format!(
                "(load_balance+0x0/0x0 <- find_busiest_group) grp={mask:#x} mask={mask:#x} dst={} imb={} mtype={}",
                decision.cpu, imbalance.amount, imbalance.migration as u32
            )
        });
    }

    /// `load_balance()` returns.
    pub(crate) fn probe_balanced(&mut self, decision: &BalanceDecision) {
        self.probe("lb_r", |scheduler| {
            let (cpu, number) =
                (decision.cpu, scheduler.domains.domains_of(decision.cpu)[decision.level].level);
            format!("(caller+0x0/0x0 <- load_balance) ret={} c={cpu} lvl={number}", decision.moved())
        });
    }

    /// `active_load_balance_cpu_stop()` is entered.
    pub(crate) fn probe_push(&mut self, source: Cpu) {
        let Some(dest) = self.push_cpu(source) else { return };
        self.probe("alb", |scheduler| {
            let mut text = format!("(active_load_balance_cpu_stop+0x0/0x0) cpu={source} push={dest}");
            let domains = scheduler.domains.domains_of(dest);
            if let Some(level) = domains.iter().position(|sd| sd.span.contains(source)) {
                let (number, failed) = (domains[level].level, domains[level].balance.nr_balance_failed);
                let _ = write!(text, " lvl={number} failed={failed}");
            }
            scheduler.add_tasks_text(&mut text, source);
            text
        });
    }

    fn try_text(&self, cpu: Cpu, level: usize, idle: CpuIdleType) -> String {
        let sd = &self.domains.domains_of(cpu)[level];
        let mut text = format!(
            "(load_balance+0x0/0x0) c={cpu} idle={} lvl={} pct={} failed={} intv={} span={:#x} tp={} im={:#x}",
            self.generation.domain.schedstat_layout.number_of(idle),
            sd.level,
            sd.imbalance_pct,
            sd.balance.nr_balance_failed,
            sd.balance.balance_interval,
            bits(sd.span.iter()),
            self.rqs[cpu.index()].ttwu_pending,
            bits(self.marked_groups(cpu, level)),
        );
        for other in self.topology.cpus() {
            self.add_cpu_text(&mut text, other);
            self.add_groups_text(&mut text, other);
            if other != cpu && sd.span.contains(other) {
                self.add_tasks_text(&mut text, other);
            }
        }
        text
    }

    /// The first CPUs of a domain's groups that are marked.
    pub(crate) fn marked_groups(&self, cpu: Cpu, level: usize) -> impl Iterator<Item = Cpu> {
        let groups = self.domains.groups(self.domain_id(cpu, level));
        let marked = groups.filter(|&id| self.domains.capacity_of_group(id).imbalance);
        marked.filter_map(|id| self.domains.group(id).span.lowest())
    }

    fn add_tasks_text(&self, text: &mut String, cpu: Cpu) {
        let tasks = self.rqs[cpu.index()].cfs_tasks.oldest_first(&self.tasks);
        for (number, task) in tasks.enumerate() {
            let (entity, pid) = (self.entity_of(task), self.pid_number(task));
            let (avg, estimate) = (&entity.avg, entity.avg.util_est);
            let before = if number == 0 { format!(" q{cpu}=") } else { ",".to_string() };
            let _ = write!(
                text,
                "{before}{pid}:{}:{}:{}:{}:{}",
                avg.load_avg, avg.util_avg, estimate.enqueued, estimate.ewma, entity.exec_start
            );
        }
    }

    fn add_groups_text(&self, text: &mut String, cpu: Cpu) {
        let mut before = format!(" g{cpu}=");
        for group in self.groups.iter() {
            let Some(&cfs_rq) = group.cfs_rqs.get(cpu.index()) else { continue };
            let queue = self.cfs(cfs_rq);
            let Some(entity) = queue.entity else { continue };
            let (load, of_entity) = (queue.tracked.avg.load_avg, self.se(entity).avg.load_avg);
            let _ = write!(text, "{before}{}:{load}:{of_entity}", queue.group.inode());
            before = ",".to_string();
        }
    }
}

fn bits(cpus: impl Iterator<Item = Cpu>) -> u64 {
    cpus.filter(|cpu| cpu.0 < BITS).fold(0, |bits, cpu| bits | 1 << cpu.0)
}
