//! The slow path, for fork and exec: down the domains to the idlest CPU.

mod by_load;
mod by_type;

use fairlab_event::Cpu;

use super::rules::{IdlestGroup, OwnEstimate, SchedIdleCpu};
use super::{Wakee, decide};
use crate::core::Scheduler;
use crate::decision::{CpuDecision, SelectReason};
use crate::domain::{DomainId, SchedGroupId, SdFlags};
use crate::generation::Feature;
use crate::pelt::{CpuUtil, SchedAvg, TaskUtil};
use crate::task::TaskId;

/// Who looks for the idlest CPU.
#[derive(Clone, Copy, Debug)]
struct Seeker {
    wakee: Wakee,
    /// Its averages, aged where the kernel ages them first.
    avg: SchedAvg,
    is_new: bool,
}

impl Scheduler {
    /// The idlest allowed CPU, searched from `domain` downwards: at each level with `flag` the idlest group, in it the
    /// idlest CPU, and from there the levels below. Pure.
    ///
    /// Kernel: `find_idlest_cpu()`, kernel/sched/fair.c; from v6.10 `sched_balance_find_dst_cpu()`.
    pub(super) fn find_idlest_cpu(&self, domain: DomainId, wakee: Wakee, flag: SdFlags) -> CpuDecision {
        let is_new = flag == SdFlags::BALANCE_FORK;
        let allowed = self.tasks[wakee.task.index()].allowed;
        if allowed.and(&self.domains.domain(domain).span).is_empty() {
            return decide(wakee.prev, SelectReason::NoDomain, 0);
        }
        let avg = if is_new { self.entity_of(wakee.task).avg } else { self.synced_avg(wakee.task) };
        let seeker = Seeker { wakee, avg, is_new };
        let mut scanned = 0;
        let mut cpu = wakee.here;
        let mut new_cpu = cpu;
        let mut level = Some(domain);
        while let Some(id) = level {
            let sd = self.domains.domain(id);
            let group = sd.flags.has(flag).then(|| {
                scanned += sd.span_weight;
                self.find_idlest_group(id, seeker, cpu)
            });
            let Some(group) = group.flatten() else {
                level = sd.child;
                continue;
            };
            new_cpu = self.find_idlest_group_cpu(group, seeker, cpu, &mut scanned);
            if new_cpu == cpu {
                level = sd.child;
                continue;
            }
            cpu = new_cpu;
            let weight = sd.span_weight;
            let below =
                self.domains.ids_of(cpu).take_while(|id| self.domains.domain(*id).span_weight < weight);
            level = below.filter(|id| self.domains.domain(*id).flags.has(flag)).last();
        }
        let reason =
            if new_cpu == wakee.here { SelectReason::LocalIdlest } else { SelectReason::IdlestInGroup };
        decide(new_cpu, reason, scanned)
    }

    /// The idlest group of a domain that the task may use; `None` if that is the local one of `cpu`.
    fn find_idlest_group(&self, domain: DomainId, seeker: Seeker, cpu: Cpu) -> Option<SchedGroupId> {
        match self.generation.select.idlest_group {
            IdlestGroup::ByLoad => self.idlest_group_by_load(domain, seeker, cpu),
            IdlestGroup::ByType => self.idlest_group_by_type(domain, seeker, cpu),
        }
    }

    /// The idlest allowed CPU of a group: of those that wake the soonest the one that went idle last, or else the least loaded
    /// one.
    ///
    /// Kernel: `find_idlest_group_cpu()`, kernel/sched/fair.c. Variants: SCHED_IDLE CPUs from v5.4 (3c29e651e16d), before
    /// idle ones from v5.6 (17346452b25b).
    fn find_idlest_group_cpu(
        &self,
        group: SchedGroupId,
        seeker: Seeker,
        this_cpu: Cpu,
        scanned: &mut u32,
    ) -> Cpu {
        let span = self.domains.group(group).span;
        if span.weight() == 1 {
            return span.lowest().unwrap_or(this_cpu);
        }
        let second_choice = self.generation.select.sched_idle_cpu == SchedIdleCpu::SecondChoice;
        let (mut latest, mut idle, mut sched_idle) = (0, None, None);
        let mut soonest = u64::MAX;
        let (mut least, mut least_loaded) = (u64::MAX, this_cpu);
        for cpu in span.and(&self.tasks[seeker.wakee.task.index()].allowed).iter() {
            *scanned += 1;
            let chosen = self.sched_idle_chosen(seeker.wakee, cpu);
            if chosen && !second_choice {
                return cpu;
            }
            if self.idle_cpu(cpu) {
                let stamp = self.rqs[cpu.index()].idle_time.idle_stamp.map_or(1, |stamp| stamp.0 + 2);
                let exit = self.rqs[cpu.index()].exit_latency;
                let is_sooner = exit.is_some_and(|exit| exit < soonest);
                if is_sooner || (exit.is_none_or(|exit| exit == soonest) && stamp > latest) {
                    soonest = exit.unwrap_or(soonest);
                    (latest, idle) = (stamp, Some(cpu));
                }
            } else if idle.is_none() && sched_idle.is_none() {
                if chosen {
                    sched_idle = Some(cpu);
                    continue;
                }
                let load = self.cpu_load(cpu);
                if load < least {
                    (least, least_loaded) = (load, cpu);
                }
            }
        }
        idle.or(sched_idle).unwrap_or(least_loaded)
    }

    /// How much of a CPU others than the task use.
    ///
    /// Kernel: `cpu_util_wake()`, `cpu_util_without()`, kernel/sched/fair.c.
    fn cpu_util_without(&self, cpu: Cpu, seeker: Seeker) -> u64 {
        let task = seeker.wakee.task;
        let is_here = self.counts_on(cpu, seeker);
        let queued = self.tasks[task.index()].is_queued() || self.curr(seeker.wakee.here) == task;
        let takes_off = self.generation.select.own_estimate == OwnEstimate::TakenOff;
        let without =
            TaskUtil { avg: seeker.avg, is_here: true, is_queued: queued && takes_off, comes_here: false };
        self.generation.pelt.cpu_util(CpuUtil {
            queue: &self.cfs(self.rqs[cpu.index()].cfs).tracked.avg,
            task: is_here.then_some(without),
            capacity: self.capacity_orig_of(cpu),
            boost: false,
            util_est_enabled: self.has(Feature::UtilEst),
        })
    }

    /// Whether the task's averages are part of `cpu`'s.
    fn counts_on(&self, cpu: Cpu, seeker: Seeker) -> bool {
        self.tasks[seeker.wakee.task.index()].cpu == cpu && seeker.avg.last_update_time != 0
    }

    fn avg_of(&self, cpu: Cpu) -> &SchedAvg {
        &self.cfs(self.rqs[cpu.index()].cfs).tracked.avg
    }

    fn task_runs_on(&self, task: TaskId, cpu: Cpu) -> bool {
        self.tasks[task.index()].cpu == cpu && self.tasks[task.index()].is_queued()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::core::{Mode, WakeKind};
    use crate::cpumask::CpuMask;
    use crate::decision::CpuDecision;
    use crate::select::Wakee;
    use crate::task::{Policy, TaskSpec};
    use crate::testbed::Bed;
    use crate::topology::{SmtNumbering, Topology};
    use fairlab_event::{Comm, Cpu, Ns, Pid};

    /// Nodes, caches a node, cores a cache.
    fn machine(kernel: &str, (nodes, llcs, cores): (u32, u32, u32)) -> Bed {
        let topology = Topology::regular(nodes, llcs, cores, 1, SmtNumbering::Adjacent).expect("a machine");
        Bed::on(kernel, topology)
    }

    fn fork(bed: &mut Bed, policy: Policy, allowed: CpuMask) -> CpuDecision {
        let (comm, pid) = (Comm::from("child"), Pid(999));
        let spec = TaskSpec { comm, pid, tgid: pid, policy, nice: 0, allowed, per_cpu_kthread: false };
        bed.scheduler.set_here(Cpu(0), Mode::Task, Ns(1_000_000));
        let child = bed.scheduler.new_task(&spec, Cpu(0));
        bed.scheduler.select_task_rq(child, Cpu(0), WakeKind::Fork)
    }

    pub(crate) fn forked_to(kernel: &str, shape: (u32, u32, u32), busy: &[u32], allowed: &str) -> u32 {
        let mut bed = machine(kernel, shape);
        for &cpu in busy {
            bed.spawn(0, cpu);
        }
        let allowed = CpuMask::parse_list(allowed).expect("a list");
        fork(&mut bed, Policy::Normal, allowed).cpu.0
    }

    #[test]
    fn a_new_task_goes_where_most_cpus_idle_in_every_era() {
        for kernel in ["v4.18", "v5.4", "v5.5", "v5.10", "v6.6", "v7.2"] {
            assert!(forked_to(kernel, (1, 2, 2), &[0, 1], "0-3") >= 2, "{kernel}");
            assert_eq!(forked_to(kernel, (1, 1, 4), &[0, 1, 3], "0-3"), 2, "{kernel}");
        }
    }

    #[test]
    fn of_idle_cpus_the_one_that_wakes_the_soonest_is_taken() {
        for kernel in ["v5.10", "v6.6", "v7.2"] {
            let mut bed = machine(kernel, (1, 2, 4));
            for cpu in 0..4 {
                bed.spawn(0, cpu);
            }
            for (cpu, exit_us) in [(4, 900), (5, 900), (6, 50), (7, 50)] {
                bed.scheduler.idle_set_state(Cpu(cpu), Some(Ns::from_us(exit_us)));
            }
            assert_eq!(fork(&mut bed, Policy::Normal, CpuMask::ALL).cpu, Cpu(6), "{kernel}");
        }
    }

    #[test]
    fn equally_idle_groups_keep_it_local() {
        for kernel in ["v5.5", "v6.6"] {
            assert_eq!(forked_to(kernel, (1, 2, 2), &[0, 2], "0-3"), 1, "{kernel}");
        }
    }

    #[test]
    fn a_node_is_left_at_different_times() {
        // Two nodes of eight CPUs; so many tasks run on the first.
        let leaves_at = |kernel: &str, allowed: &str| {
            (1..=8).find(|&busy| {
                let busy = (0..busy).collect::<Vec<_>>();
                forked_to(kernel, (2, 1, 8), &busy, allowed) >= 8
            })
        };
        assert_eq!(leaves_at("v5.10", "0-15"), Some(8), "when no CPU idles there");
        assert_eq!(leaves_at("v5.11", "0-15"), Some(4), "a quarter of 16");
        assert_eq!(leaves_at("2cfb7a1b031b", "0-15"), Some(1), "a quarter of 8, itself counted, exclusive");
        assert_eq!(leaves_at("v5.18", "0-15"), Some(2), "a quarter of 8, itself counted");
        assert_eq!(leaves_at("v5.18", "0,8-15"), Some(2));
        assert_eq!(leaves_at("f5b2eeb49991", "0,8-15"), Some(1), "one CPU there is allowed");
    }

    #[test]
    fn an_idler_group_is_told_by_its_utilization() {
        // CPU 2's group had work until now, CPU 4's had none.
        let chosen = |kernel: &str| {
            let mut bed = machine(kernel, (1, 3, 2));
            bed.spawn(0, 0);
            bed.spawn(0, 1);
            bed.spawn(0, 2);
            bed.pass(50_000_000);
            bed.tick(2);
            bed.sleep(2);
            fork(&mut bed, Policy::Normal, CpuMask::ALL).cpu.0
        };
        assert_eq!((chosen("v5.8"), chosen("v5.9") >= 4), (2, true));
    }

    #[test]
    fn only_allowed_cpus_count_from_v6_19_on() {
        // CPU 3 idles but is not allowed.
        assert_eq!(forked_to("v6.18", (1, 2, 2), &[0, 1, 2], "1-2"), 2);
        assert_eq!(forked_to("v6.19", (1, 2, 2), &[0, 1, 2], "1-2"), 1);
    }

    /// Where a task that runs on CPU 0 execs to, one beside it and one of the two CPUs of another cache busy.
    pub(crate) fn execs_among_three(kernel: &str) -> u32 {
        let mut bed = machine(kernel, (1, 2, 2));
        let task = bed.spawn(0, 0);
        bed.spawn(0, 1);
        bed.spawn(0, 3);
        bed.scheduler.select_task_rq(task, Cpu(0), WakeKind::Exec).cpu.0
    }

    #[test]
    fn a_task_that_execs_does_not_count_where_it_is() {
        assert_eq!(["11f10e5420f6", "3318544b721d"].map(execs_among_three), [2, 0]);
    }

    /// How much of CPU 0 is used by others than the task that execs there and is expected to use 300.
    pub(crate) fn left_by_exec(kernel: &str) -> u64 {
        let mut bed = machine(kernel, (1, 1, 2));
        let task = bed.spawn(0, 0);
        let se = bed.scheduler.tasks[task.index()].se;
        bed.scheduler.se_mut(se).avg.util_est.enqueued = 300;
        let root = bed.scheduler.rqs[0].cfs;
        bed.scheduler.cfs_mut(root).tracked.avg.util_est.enqueued = 300;
        bed.scheduler.cfs_mut(root).tracked.avg.util_avg = 0;
        let wakee = Wakee { task, here: Cpu(0), prev: Cpu(0) };
        let avg = bed.scheduler.synced_avg(task);
        bed.scheduler.cpu_util_without(Cpu(0), super::Seeker { wakee, avg, is_new: false })
    }

    #[test]
    fn the_estimate_of_a_task_that_execs_is_taken_off_from_v4_20_on() {
        assert_eq!(["v4.19", "v4.20"].map(left_by_exec), [300, 0]);
    }

    #[test]
    fn cpus_with_idle_policy_tasks_are_no_better_than_idle_ones_to_v5_5() {
        let chosen = |kernel: &str, policy| {
            let mut bed = machine(kernel, (1, 1, 3));
            bed.spawn(0, 0);
            bed.spawn_with(0, 1, Policy::Idle, CpuMask::ALL);
            // Stay within one group: CPUs 1 and 2.
            fork(&mut bed, policy, CpuMask::ALL).cpu.0
        };
        assert_eq!(chosen("v5.5", Policy::Normal), 2);
        assert_eq!(chosen("v7.1", Policy::Idle), 2);
    }
}
