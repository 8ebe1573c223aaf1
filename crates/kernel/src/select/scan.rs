//! The search of a cache domain for an idle CPU: wholly idle cores, siblings, and a bounded scan.
//!
//! Must not know: what was tried before.

use fairlab_event::Cpu;

use super::bound::ScanBound;
use super::idle_sibling::ClusterCandidates;
use super::rules::{Cluster, CoreNote, CoreScan, ScanCost, ScanCounts, ScanStart, SchedIdleCpu, SiblingScan};
use super::{Wakee, decide};
use crate::all_cpus::SharedLine;
use crate::cpumask::CpuMask;
use crate::decision::{CpuDecision, IdleCpuSearch, SelectReason};
use crate::generation::Feature;
use crate::scheduler::Scheduler;

/// How a scan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanEnd {
    Found(Cpu),
    Exhausted,
    /// Its bound was reached; the second choice, if there was one.
    CutShort(Option<Cpu>),
}

impl Scheduler {
    /// Searches the target's cache domain; `candidates` are idle CPUs outside of the target's cluster.
    ///
    /// Kernel: `select_idle_sibling()`, kernel/sched/fair.c, from `sd_llc` on. Variants: a pass for cores, one for CPUs and
    /// one for siblings to v5.11, one pass from v5.12 (9fe1f127b913), siblings of the previous CPU first from v5.13
    /// (c722f35b513f). That there is no idle core was noted of the waking CPU's cache in v5.12 (`CoreNote`).
    pub(super) fn search_llc(
        &self,
        wakee: Wakee,
        target: Cpu,
        candidates: ClusterCandidates,
        search: &mut IdleCpuSearch,
    ) -> CpuDecision {
        let shared = self.domains.of_cpu(target).sd_llc_shared;
        let found = shared.and_then(|_| self.scan_llc(wakee, target, search));
        let no_core = search.core == Some(false);
        let kept = candidates.iter().copied().flatten().next();
        let kept = kept.filter(|_| self.shared.generation.select.cluster == Cluster::FirstThenCandidates);
        let mut decision = match (found, kept) {
            (Some((cpu, reason)), _) => decide(cpu, reason, 0),
            (None, Some(cpu)) => decide(cpu, SelectReason::IdleInOtherCluster, 0),
            (None, None) => {
                search.failed = true;
                decide(target, SelectReason::NoIdle, 0)
            }
        };
        decision.scanned = search.looked_at;
        let noted = match self.shared.generation.select.core_note {
            CoreNote::Searched => shared,
            CoreNote::Wakers => self.domains.of_cpu(wakee.here).sd_llc_shared,
        };
        decision.no_idle_core_in = noted.filter(|_| no_core);
        decision
    }

    fn scan_llc(&self, wakee: Wakee, target: Cpu, search: &mut IdleCpuSearch) -> Option<(Cpu, SelectReason)> {
        let rules = self.shared.generation.select;
        search.domain = true;
        let may_have_core = self.shared.topology.has_smt() && self.may_have_idle_core(target);
        let one_pass = rules.core_scan == CoreScan::WithFallback;
        if may_have_core && !one_pass {
            let core = self.select_idle_core(wakee, target, search);
            search.core = Some(core.is_some());
            if let Some(core) = core {
                return Some((core, SelectReason::IdleCore));
            }
        }
        let prev_first =
            matches!(rules.sibling_scan, SiblingScan::PrevFirst | SiblingScan::OthersOfPrevFirst);
        let siblings =
            prev_first && self.shared.topology.has_smt() && self.domains.cpus_share_cache(wakee.prev, target);
        if siblings && !(may_have_core && one_pass) {
            let sibling = self.select_idle_smt(wakee, wakee.prev, search);
            if let Some(cpu) = sibling {
                return Some((cpu, SelectReason::IdleSibling));
            }
        }
        let found = match may_have_core && one_pass {
            true => self.select_core_or_cpu(wakee, target, search),
            false => self.select_idle_cpu(wakee, target, search).map(|cpu| (cpu, SelectReason::IdleInLlc)),
        };
        if found.is_some() || rules.sibling_scan != SiblingScan::TargetLast || !self.shared.topology.has_smt()
        {
            return found;
        }
        self.select_idle_smt(wakee, target, search).map(|cpu| (cpu, SelectReason::IdleSibling))
    }

    pub(super) fn may_have_idle_core(&self, target: Cpu) -> bool {
        let shared = self.domains.of_cpu(target).sd_llc_shared;
        shared.is_some_and(|shared| self.domains.shared(shared).has_idle_cores)
    }

    /// The CPUs of the target's cache that the task may use.
    fn llc_allowed(&self, wakee: Wakee, target: Cpu) -> CpuMask {
        self.llc_span(target).and(&self.shared.tasks[wakee.task.index()].allowed)
    }

    /// A wholly idle core, in a pass of its own; the first of its threads in order from the target.
    ///
    /// Kernel: `select_idle_core()`, kernel/sched/fair.c, to v5.11.
    fn select_idle_core(&self, wakee: Wakee, target: Cpu, search: &mut IdleCpuSearch) -> Option<Cpu> {
        let every_thread = self.shared.generation.select.core_scan == CoreScan::EveryThread;
        let mut left = self.llc_allowed(wakee, target);
        let order = left;
        for core in order.iter_wrap(target) {
            if !left.contains(core) {
                continue;
            }
            let mut idle = true;
            for cpu in self.shared.topology.smt_mask(core).iter() {
                search.looked_at += 1;
                idle &= self.idle_cpu(cpu);
                if !idle && !every_thread {
                    break;
                }
            }
            if idle {
                return Some(core);
            }
            left = left.and_not(self.shared.topology.smt_mask(core));
        }
        None
    }

    /// Another thread of `core`'s core.
    ///
    /// Kernel: `select_idle_smt()`, kernel/sched/fair.c.
    fn select_idle_smt(&self, wakee: Wakee, core: Cpu, search: &mut IdleCpuSearch) -> Option<Cpu> {
        let rules = self.shared.generation.select;
        let others_only = rules.sibling_scan == SiblingScan::OthersOfPrevFirst;
        let allowed = &self.shared.tasks[wakee.task.index()].allowed;
        let looked_at = |&cpu: &Cpu| allowed.contains(cpu) && !(others_only && cpu == core);
        let mut second_choice = None;
        for cpu in self.shared.topology.smt_mask(core).iter().filter(looked_at) {
            search.looked_at += 1;
            if self.is_found(wakee, cpu, &mut second_choice) {
                return Some(cpu);
            }
        }
        second_choice
    }

    /// Whether `cpu` is what a scan looks for; notes a second choice on the way.
    fn is_found(&self, wakee: Wakee, cpu: Cpu, second_choice: &mut Option<Cpu>) -> bool {
        if self.idle_cpu(cpu) {
            return true;
        }
        let chosen = self.sched_idle_chosen(wakee, cpu);
        if self.shared.generation.select.sched_idle_cpu == SchedIdleCpu::SecondChoice {
            if chosen && second_choice.is_none() {
                *second_choice = Some(cpu);
            }
            return false;
        }
        chosen
    }

    /// The first idle CPU of the target's cache, within a bound.
    ///
    /// Kernel: `select_idle_cpu()`, kernel/sched/fair.c.
    fn select_idle_cpu(&self, wakee: Wakee, target: Cpu, search: &mut IdleCpuSearch) -> Option<Cpu> {
        let mut bound = self.scan_bound(wakee.here, target);
        if bound == ScanBound::Nothing {
            return None;
        }
        let mut allowed = self.llc_allowed(wakee, target);
        if let Some(marked) = self.marked_idle_near(target) {
            allowed = allowed.and(marked);
        }
        if let Some(cluster) = self.cluster_to_scan(target) {
            match self.scan(wakee, target, cluster, allowed.and(cluster), &mut bound, search) {
                ScanEnd::Found(cpu) => return Some(cpu),
                ScanEnd::CutShort(_) => return None,
                ScanEnd::Exhausted => allowed = allowed.and_not(cluster),
            }
        }
        let span = self.llc_span(target);
        let end = self.scan(wakee, target, span, allowed, &mut bound, search);
        let proportional = self.has(Feature::SisProp);
        let counts = self.shared.generation.select.scan_cost == ScanCost::EveryScan || proportional;
        search.timed = counts && !matches!(end, ScanEnd::CutShort(_));
        match end {
            ScanEnd::Found(cpu) | ScanEnd::CutShort(Some(cpu)) => Some(cpu),
            ScanEnd::Exhausted | ScanEnd::CutShort(None) => None,
        }
    }

    /// Looks at the CPUs of `span` around the target: at those `allowed`.
    fn scan(
        &self,
        wakee: Wakee,
        target: Cpu,
        span: &CpuMask,
        allowed: CpuMask,
        bound: &mut ScanBound,
        search: &mut IdleCpuSearch,
    ) -> ScanEnd {
        let counts_all = self.shared.generation.select.scan_counts == ScanCounts::EveryCpu;
        let order = if counts_all { *span } else { allowed };
        let start = self.scan_start(target);
        match self.idle_cpus_only() {
            Some(idle) => scan_for_idle(&order, start, &allowed.and(idle), bound, search),
            None => self.scan_one_by_one(wakee, &order, start, &allowed, bound, search),
        }
    }

    fn scan_one_by_one(
        &self,
        wakee: Wakee,
        order: &CpuMask,
        start: Cpu,
        allowed: &CpuMask,
        bound: &mut ScanBound,
        search: &mut IdleCpuSearch,
    ) -> ScanEnd {
        let mut second_choice = None;
        for cpu in order.iter_wrap(start) {
            search.looked_at += 1;
            if bound.reached() {
                return ScanEnd::CutShort(second_choice);
            }
            if allowed.contains(cpu) && self.is_found(wakee, cpu, &mut second_choice) {
                return ScanEnd::Found(cpu);
            }
        }
        ScanEnd::Exhausted
    }

    fn scan_start(&self, target: Cpu) -> Cpu {
        match self.shared.generation.select.scan_start {
            ScanStart::Target => target,
            ScanStart::AfterTarget => Cpu(target.0 + 1),
        }
    }

    /// A wholly idle core, or the first idle thread seen on the way.
    ///
    /// Kernel: `select_idle_cpu()` with `has_idle_core`, kernel/sched/fair.c, from v5.12 (9fe1f127b913).
    fn select_core_or_cpu(
        &self,
        wakee: Wakee,
        target: Cpu,
        search: &mut IdleCpuSearch,
    ) -> Option<(Cpu, SelectReason)> {
        if self.scan_bound_by_utilization(target) == ScanBound::Nothing {
            return None;
        }
        let mut left = self.llc_allowed(wakee, target);
        let mut fallback = None;
        let cluster = self.cluster_to_scan(target);
        for span in cluster.into_iter().chain([self.llc_span(target)]) {
            let order = left.and(span);
            for core in order.iter_wrap(self.scan_start(target)) {
                if !left.contains(core) {
                    continue;
                }
                if self.core_is_idle(wakee, core, &left, &mut fallback, search) {
                    search.core = Some(true);
                    return Some((core, SelectReason::IdleCore));
                }
                left = left.and_not(self.shared.topology.smt_mask(core));
            }
            left = left.and_not(span);
        }
        search.core = Some(false);
        fallback.map(|cpu| (cpu, SelectReason::IdleInLlc))
    }

    /// Whether every thread of a core is idle; looks no further than it must.
    ///
    /// Kernel: `select_idle_core()`, kernel/sched/fair.c, from v5.12.
    fn core_is_idle(
        &self,
        wakee: Wakee,
        core: Cpu,
        allowed: &CpuMask,
        fallback: &mut Option<Cpu>,
        search: &mut IdleCpuSearch,
    ) -> bool {
        let mut idle = true;
        for cpu in self.shared.topology.smt_mask(core).iter() {
            search.looked_at += 1;
            if self.idle_cpu(cpu) {
                if fallback.is_none() && allowed.contains(cpu) {
                    *fallback = Some(cpu);
                }
                continue;
            }
            idle = false;
            if fallback.is_some() {
                break;
            }
            if self.sched_idle_chosen(wakee, cpu) && allowed.contains(cpu) {
                *fallback = Some(cpu);
                break;
            }
        }
        idle
    }

    /// A CPU goes idle: if its siblings are idle too, its cache has a wholly idle core again.
    ///
    /// Kernel: `__update_idle_core()`, kernel/sched/fair.c.
    pub(crate) fn update_idle_core(&mut self, cpu: Cpu) {
        let Some(shared) = self.domains.of_cpu(cpu).sd_llc_shared.filter(|_| self.shared.topology.has_smt())
        else {
            return;
        };
        let siblings_idle =
            self.shared.topology.smt_mask(cpu).iter().all(|sibling| sibling == cpu || self.idle_cpu(sibling));
        let has_idle_cores = &mut self.domains.shared_mut(shared).has_idle_cores;
        let is_news = siblings_idle && !*has_idle_cores;
        *has_idle_cores |= siblings_idle;
        self.shared.note_line(SharedLine::CacheState(shared.0), is_news);
    }
}

/// The same where only idle CPUs are looked for, of which it is known which they are: what would be looked at on the way
/// is counted, not looked at.
fn scan_for_idle(
    order: &CpuMask,
    start: Cpu,
    idle: &CpuMask,
    bound: &mut ScanBound,
    search: &mut IdleCpuSearch,
) -> ScanEnd {
    let found = idle.iter_wrap(start).next();
    let looks = match found {
        Some(cpu) => order.before_wrap(start, cpu) + 1,
        None => order.weight(),
    };
    if looks > bound.left() {
        search.looked_at += bound.left() as u32 + 1;
        bound.count(bound.left());
        return ScanEnd::CutShort(None);
    }
    search.looked_at += looks as u32;
    bound.count(looks);
    found.map_or(ScanEnd::Exhausted, ScanEnd::Found)
}

#[cfg(test)]
pub(super) mod tests {
    use super::{ScanBound, Wakee};
    use crate::cpumask::CpuMask;
    use crate::decision::{CpuDecision, IdleCpuSearch, SelectReason};
    use crate::task::{Policy, TaskId};
    use crate::testbed::SchedulerTestbed;
    use crate::topology::{SmtNumbering, Topology};
    use fairlab_event::Cpu;

    /// A machine whose CPUs are all busy but `idle`, and a task that slept on CPU `prev` where others run now.
    fn busy_but(
        kernel: &str,
        (cores, threads): (u32, u32),
        prev: u32,
        idle: &[u32],
    ) -> (SchedulerTestbed, TaskId) {
        let mut bed = SchedulerTestbed::new(kernel, cores, threads);
        let sleeper = bed.spawn(0, prev);
        bed.sleep(prev);
        for cpu in (0..cores * threads).filter(|cpu| !idle.contains(cpu)) {
            bed.spawn(0, cpu);
        }
        (bed, sleeper)
    }

    fn found(decision: CpuDecision) -> (u32, SelectReason) {
        (decision.cpu.0, decision.reason)
    }

    #[test]
    fn a_wholly_idle_core_is_preferred_to_an_idle_thread() {
        for kernel in ["v4.18", "v5.7", "v5.12", "v6.5"] {
            let (mut bed, sleeper) = busy_but(kernel, (4, 2), 2, &[1, 3, 5, 6, 7]);
            assert_eq!(found(bed.select(sleeper, 0, false)), (6, SelectReason::IdleCore), "{kernel}");
        }
    }

    #[test]
    fn a_search_for_a_core_looks_at_fewer_threads_over_time() {
        let looked_at = |kernel| {
            let (mut bed, sleeper) = busy_but(kernel, (4, 2), 2, &[6, 7]);
            bed.select(sleeper, 0, false).search.looked_at
        };
        assert_eq!(looked_at("v5.6"), 6, "both threads of three cores");
        assert_eq!(looked_at("v5.7"), 4, "one of two busy cores, two of the idle one");
    }

    #[test]
    fn without_an_idle_core_the_siblings_are_searched_in_different_places() {
        // CPU 3 is the sibling of the previous CPU, 1 that of the waking one; CPU 5 comes first in order.
        let cases = [
            ("v5.11", &[1, 5][..], (5, SelectReason::IdleInLlc)),
            ("v5.12", &[1, 3][..], (3, SelectReason::IdleInLlc)),
            ("v5.13", &[1, 3, 5][..], (3, SelectReason::IdleSibling)),
        ];
        for (kernel, idle, expected) in cases {
            let (mut bed, sleeper) = busy_but(kernel, (4, 2), 2, idle);
            bed.forget_idle_cores();
            bed.scheduler.rqs[0].idle_time.avg_scan_cost = 0;
            assert_eq!(found(bed.select(sleeper, 0, false)), expected, "{kernel}");
        }
    }

    #[test]
    fn the_targets_core_was_the_last_resort() {
        for (kernel, expected) in
            [("v5.11", (9, SelectReason::IdleSibling)), ("v5.12", (1, SelectReason::NoIdle))]
        {
            // CPU 9 is the sibling of CPU 1, beyond the reach of a scan that may look at three.
            let topology = Topology::regular(1, 1, 8, 2, SmtNumbering::Spread).expect("a machine");
            let mut bed = SchedulerTestbed::on(kernel, topology);
            let sleeper = bed.spawn(0, 1);
            bed.sleep(1);
            for cpu in (0..16).filter(|cpu| *cpu != 9) {
                bed.spawn(0, cpu);
            }
            bed.forget_idle_cores();
            bed.scheduler.rqs[0].idle_time.avg_scan_cost = 1_000_000;
            assert_eq!(found(bed.select(sleeper, 0, false)), expected, "{kernel}");
        }
    }

    #[test]
    fn the_previous_cpu_itself_is_no_longer_looked_at_as_its_own_sibling() {
        let looked_at = |kernel| {
            let (mut bed, sleeper) = busy_but(kernel, (2, 2), 2, &[3]);
            bed.forget_idle_cores();
            bed.select(sleeper, 0, false).search.looked_at
        };
        assert_eq!((looked_at("v6.0"), looked_at("v6.1")), (2, 1));
    }

    /// Whether a search of another cache than the waker's, which finds no idle core, notes that of the one that it searched.
    pub(in crate::select) fn notes_the_searched_cache(kernel: &str) -> bool {
        let topology = Topology::regular(1, 2, 2, 2, SmtNumbering::Adjacent).expect("a machine");
        let mut bed = SchedulerTestbed::on(kernel, topology);
        let task = bed.spawn(0, 5);
        bed.sleep(5);
        for cpu in [0, 4, 6] {
            bed.spawn(0, cpu);
        }
        let [here, there] = [0, 4].map(|cpu| bed.scheduler.domains.of_cpu(Cpu(cpu)).sd_llc_shared);
        let cache = there.expect("a cache");
        bed.scheduler.domains.shared_mut(cache).has_idle_cores = true;
        let wakee = Wakee { task, here: Cpu(0), prev: Cpu(5) };
        let decision = bed.scheduler.search_llc(wakee, Cpu(4), [None; 2], &mut IdleCpuSearch::default());
        assert!(decision.no_idle_core_in == here || decision.no_idle_core_in == there, "{kernel}");
        decision.no_idle_core_in == there
    }

    #[test]
    fn that_a_cache_has_no_idle_core_is_noted_of_the_one_that_was_searched() {
        let kernels = ["v5.11", "v5.12", "v5.13", "v7.2"];
        assert_eq!(kernels.map(notes_the_searched_cache), [true, false, true, true]);
    }

    #[test]
    fn a_missed_core_is_remembered() {
        for kernel in ["v4.18", "v6.5"] {
            let (mut bed, sleeper) = busy_but(kernel, (4, 2), 2, &[1, 3, 5, 7]);
            let first = bed.select(sleeper, 0, false);
            assert!(first.no_idle_core_in.is_some() && first.search.core == Some(false), "{kernel}");
            bed.scheduler.apply_cpu(sleeper, first);
            assert!(!bed.expects_idle_core(0));
        }
    }

    #[test]
    fn an_idle_cpu_that_picks_its_idle_task_again_tells_its_cache_to_v6_11() {
        let told = |kernel| {
            let mut bed = SchedulerTestbed::new(kernel, 2, 2);
            bed.forget_idle_cores();
            bed.schedule(1);
            (bed.expects_idle_core(1), bed.scheduler.rqs[1].counters.sched_goidle)
        };
        assert_eq!(
            ["v4.18", "v5.10", "v6.11", "v6.12"].map(told),
            [(true, 1), (true, 1), (true, 1), (false, 0)]
        );
    }

    #[test]
    fn a_scan_begins_with_the_target_or_after_it() {
        let looked_at = |kernel| {
            let (mut bed, sleeper) = busy_but(kernel, (4, 1), 1, &[2]);
            let decision = bed.select(sleeper, 0, false);
            assert_eq!(found(decision), (2, SelectReason::IdleInLlc), "{kernel}");
            decision.search.looked_at
        };
        assert_eq!((looked_at("v5.14"), looked_at("v5.15")), (2, 1));
    }

    /// Where a bounded search ends for a task that may use CPUs 0, 1 and 5, the idle one.
    pub(crate) fn bounded_and_bound(kernel: &str) -> u32 {
        let (mut bed, sleeper) = busy_but(kernel, (6, 1), 0, &[5]);
        bed.scheduler.shared.tasks[sleeper.index()].allowed = [0, 1, 5].map(Cpu).into_iter().collect();
        bed.scheduler.rqs[1].idle_time.avg_scan_cost = 1_000_000;
        bed.select(sleeper, 1, false).cpu.0
    }

    #[test]
    fn a_bounded_scan_counted_cpus_that_the_task_may_not_use() {
        assert_eq!((bounded_and_bound("v5.5"), bounded_and_bound("v5.6")), (0, 5));
    }

    #[test]
    fn a_scan_cut_short_falls_back_to_a_sched_idle_cpu_but_an_exhausted_one_does_not() {
        for (cost, expected) in [(0, 0), (1_000_000, 2)] {
            let (mut bed, sleeper) = busy_but("v5.4", (8, 1), 0, &[2]);
            bed.spawn_with(0, 2, Policy::Idle, CpuMask::ALL);
            bed.scheduler.rqs[1].idle_time.avg_scan_cost = cost;
            assert_eq!(bed.select(sleeper, 1, false).cpu, Cpu(expected));
        }
    }

    #[test]
    fn a_search_by_sets_ends_and_counts_like_one_that_looks_at_each_cpu() {
        let subset = |bits: u32| (0..5).filter(|cpu| bits & 1 << cpu != 0).map(Cpu).collect::<CpuMask>();
        let mut bounds = (0..8).map(ScanBound::Before).collect::<Vec<_>>();
        bounds.extend([ScanBound::None, ScanBound::Nothing]);
        for kernel in ["v5.5", "v6.6"] {
            let mut bed = SchedulerTestbed::new(kernel, 5, 1);
            let wakee = Wakee { task: bed.spawn(0, 0), here: Cpu(0), prev: Cpu(0) };
            let span = CpuMask::first(5);
            let mut search_by = |sets: bool, idle: CpuMask, allowed, target, mut bound: ScanBound| {
                (bed.scheduler.shared.idle_cpus, bed.scheduler.shared.idle_policy_used) = (idle, !sets);
                let mut search = IdleCpuSearch::default();
                let end = bed.scheduler.scan(wakee, target, &span, allowed, &mut bound, &mut search);
                (end, bound.left(), search.looked_at)
            };
            for (idle, allowed) in (0..1024).map(|bits| (subset(bits & 31), subset(bits >> 5))) {
                for (bound, target) in bounds.iter().flat_map(|&bound| [0, 2, 4].map(|cpu| (bound, Cpu(cpu))))
                {
                    let by_sets = search_by(true, idle, allowed, target, bound);
                    let one_by_one = search_by(false, idle, allowed, target, bound);
                    assert_eq!(by_sets, one_by_one, "{kernel}: {idle} of {allowed}, {bound:?} from {target}");
                }
            }
        }
    }

    #[test]
    fn a_full_machine_gives_the_target_and_the_search_is_counted() {
        let (mut bed, sleeper) = busy_but("v6.6", (2, 1), 1, &[]);
        let decision = bed.select(sleeper, 0, false);
        assert_eq!(found(decision), (1, SelectReason::NoIdle));
        bed.scheduler.apply_cpu(sleeper, decision);
        let counts = bed.scheduler.rqs[0].counters.sis;
        assert_eq!((counts.search, counts.domain_search, counts.failed), (1, 1, 1));
        assert_eq!(counts.scanned, 1 + 2, "once for the search, and each CPU");
    }

    #[test]
    fn the_rfc_scans_only_what_is_marked_idle() {
        let (mut bed, sleeper) = busy_but("v5.10+idle-cpumask-v7", (4, 1), 1, &[]);
        let looked_at = |bed: &mut SchedulerTestbed| bed.select(sleeper, 0, false).search.looked_at;
        assert_eq!(looked_at(&mut bed), 4, "a CPU that has turned busy stays marked until the tick");
        for cpu in 0..4 {
            bed.tick(cpu);
        }
        assert_eq!(looked_at(&mut bed), 0);
        bed.pass(1_000);
        bed.sleep(3);
        let decision = bed.select(sleeper, 0, false);
        assert_eq!((found(decision), decision.search.looked_at), ((3, SelectReason::IdleInLlc), 1));
    }
}
