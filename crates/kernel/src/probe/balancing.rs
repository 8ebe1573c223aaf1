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

use fairlab_event::Cpu;
use fairlab_event::probes::{CpuField, ProbeField, ProbePoint, ProbeText};

use crate::balance::{BalanceDecision, BalancedReason};
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;

/// CPUs that one number can show.
const BITS: u32 = 64;

impl Scheduler {
    /// `load_balance()` is entered. A driver says so before it asks for the decision.
    #[inline]
    pub fn probe_balance(&mut self, cpu: Cpu, level: usize, idle: CpuIdleType) {
        self.probe(ProbePoint::LoadBalance, |scheduler| scheduler.try_text(cpu, level, idle));
    }

    /// `find_busiest_group()` returns, where the try has come to it.
    pub(crate) fn probe_busiest_group(&mut self, decision: &BalanceDecision) {
        let looked = !matches!(decision.balanced, Some(BalancedReason::NotItsTurn | BalancedReason::Woken));
        if !looked {
            return;
        }
        self.probe(ProbePoint::FindBusiestGroupReturn, |scheduler| {
            let groups = scheduler.domains.groups(scheduler.domain_id(decision.cpu, decision.level));
            let taken = decision.group.map(|group| group.first);
            let spans = groups.map(|id| scheduler.domains.group(id).span);
            let mask =
                spans.filter(|span| span.lowest() == taken && taken.is_some()).map(|span| bits(span.iter()));
            let (imbalance, mask) = (decision.imbalance, mask.fold(0, |all, one| all | one));
            let mut text = ProbeText::at_return("find_busiest_group", "load_balance");
            text.hex(ProbeField::SchedGroup, mask)
                .hex(ProbeField::Mask, mask)
                .put(ProbeField::DestCpu, decision.cpu)
                .put(ProbeField::Imbalance, imbalance.amount)
                .put(ProbeField::MigrationType, imbalance.migration as u32);
            text
        });
    }

    /// `load_balance()` returns.
    pub(crate) fn probe_balanced(&mut self, decision: &BalanceDecision) {
        self.probe(ProbePoint::LoadBalanceReturn, |scheduler| {
            let (cpu, number) =
                (decision.cpu, scheduler.domains.domains_of(decision.cpu)[decision.level].level);
            let mut text = ProbeText::at_return("load_balance", "caller");
            text.put(ProbeField::Returned, decision.moved());
            text.put(ProbeField::OtherCpu, cpu).put(ProbeField::Level, number);
            text
        });
    }

    /// `active_load_balance_cpu_stop()` is entered.
    pub(crate) fn probe_push(&mut self, source: Cpu) {
        let Some(dest) = self.push_cpu(source) else { return };
        self.probe(ProbePoint::ActiveBalance, |scheduler| {
            let mut text = ProbeText::entry("active_load_balance_cpu_stop");
            text.put(ProbeField::Cpu, source).put(ProbeField::PushCpu, dest);
            let domains = scheduler.domains.domains_of(dest);
            if let Some(level) = domains.iter().position(|sd| sd.span.contains(source)) {
                let (number, failed) = (domains[level].level, domains[level].balance.nr_balance_failed);
                text.put(ProbeField::Level, number).put(ProbeField::Failures, failed);
            }
            scheduler.show_tasks(&mut text, source);
            text
        });
    }

    fn try_text(&self, cpu: Cpu, level: usize, idle: CpuIdleType) -> ProbeText {
        let sd = &self.domains.domains_of(cpu)[level];
        let mut text = ProbeText::entry("load_balance");
        text.put(ProbeField::OtherCpu, cpu)
            .put(ProbeField::IdleType, self.shared.generation.domain.schedstat_layout.number_of(idle))
            .put(ProbeField::Level, sd.level)
            .put(ProbeField::ImbalancePct, sd.imbalance_pct)
            .put(ProbeField::Failures, sd.balance.nr_balance_failed)
            .put(ProbeField::Interval, sd.balance.balance_interval)
            .hex(ProbeField::Span, bits(sd.span.iter()))
            .put(ProbeField::Coming, self.rqs[cpu.index()].ttwu_pending)
            .hex(ProbeField::Marked, bits(self.marked_groups(cpu, level)));
        for other in self.shared.topology.cpus() {
            self.show_cpu(&mut text, other);
            self.show_groups(&mut text, other);
            if other != cpu && sd.span.contains(other) {
                self.show_tasks(&mut text, other);
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

    fn show_tasks(&self, text: &mut ProbeText, cpu: Cpu) {
        let tasks = self.rqs[cpu.index()].cfs_tasks.oldest_first(&self.shared.tasks);
        let entries = tasks.map(|task| {
            let (entity, pid) = (self.entity_of(task), self.shared.pid_number(task));
            let (avg, estimate) = (&entity.avg, entity.avg.util_est);
            let (enqueued, ewma) = (estimate.enqueued, estimate.ewma);
            format!("{pid}:{}:{}:{enqueued}:{ewma}:{}", avg.load_avg, avg.util_avg, entity.exec_start)
        });
        add_list(text, CpuField::Tasks, cpu, entries);
    }

    fn show_groups(&self, text: &mut ProbeText, cpu: Cpu) {
        let entries = self.shared.groups.iter().filter_map(|group| {
            let queue = self.cfs(*group.cfs_rqs.get(cpu.index())?);
            let (load, of_entity) = (queue.tracked.avg.load_avg, self.se(queue.entity?).avg.load_avg);
            Some(format!("{}:{load}:{of_entity}", queue.group.inode()))
        });
        add_list(text, CpuField::Groups, cpu, entries);
    }
}

/// Adds a list of a CPU's, if there is anything in it.
fn add_list(text: &mut ProbeText, field: CpuField, cpu: Cpu, entries: impl Iterator<Item = String>) {
    let entries = entries.collect::<Vec<_>>();
    if !entries.is_empty() {
        text.of_cpu(field, cpu, entries.join(","));
    }
}

fn bits(cpus: impl Iterator<Item = Cpu>) -> u64 {
    cpus.filter(|cpu| cpu.0 < BITS).fold(0, |bits, cpu| bits | 1 << cpu.0)
}
