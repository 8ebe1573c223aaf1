//! Commits that v6.12 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("f0e1a0643a59", memory("2024-06"), "sched-ext", "sched_ext: Implement BPF extensible scheduler class", &[
        OutOfSight("schedulers written in BPF"),
    ]),
    commit("c40dd90ac045", git("2024-07-29"), "place-when-queued", "sched/fair: Initialize the vruntime of a new task when it is first enqueued", &[
        Fair(ForkPlacement::WhereQueued.effect()),
    ]),
    commit("a58501fb8320", memory("2024-07-29"), "bandwidth-tick-always", "sched: remove HZ_BW feature hedge", &[
        Groundwork("of NOHZ_FULL, and as it was by default"),
        RemoveFeature(Feature::HzBw),
    ]),
    commit("faa42d29419d", git("2024-07-29"), "idle-hierarchy", "sched/fair: Make SCHED_IDLE entity be preempted in strict hierarchy", &[
        Group(IdlePreemption::Competitors.effect()),
    ]),
    commit("557a6bfc662c", memory("2024-07-29"), "fair-server", "sched/fair: Add trivial fair server", &[
        AddTunable(Tunable::FairServerRuntime, 50_000_000),
    ]),
    commit("5f6bd380c7bd", git("2024-07-29"), "no-rt-limit", "sched/rt: Remove default bandwidth control", &[
        Rt(RtLimit::None.effect()),
    ]),
    commit("3dcac251b066", memory("2024-08"), "idle-reentry", "sched/core: Introduce SM_IDLE and an idle re-entry fast-path in __schedule()", &[
        Balance(IdleReentry::StaysIdle.effect()),
    ]),
    commit("8e2e13ac6122", git("2024-08-17"), "throttle-at-every-level", "sched/fair: Cleanup pick_task_fair() vs throttle", &[
        Bandwidth(PickRestart::KeepsRunning.effect()),
    ]),
    commit("3b3dd89b8bb0", git("2024-08-17"), "levels-from-task", "sched/fair: Unify pick_{,next_}_task_fair()", &[
        Fair(SetNextOrder::FromTask.effect()),
    ]),
    commit("152e11f6df29", git("2024-08-17"), "delay-dequeue", "sched/fair: Implement delayed dequeue", &[AddFeature(Feature::DelayDequeue, true)]),
    commit("54a58a787791", git("2024-08-17"), "delay-zero", "sched/fair: Implement DELAY_ZERO", &[AddFeature(Feature::DelayZero, true)]),
    commit("82e9d0456e06", git("2024-08-17"), "relative-deadline", "sched/fair: Avoid re-setting virtual deadline on 'migrations'", &[
        AddFeature(Feature::PlaceRelDeadline, true),
    ]),
    commit("85e511df3cec", git("2024-08-17"), "preempt-short", "sched/eevdf: Allow shorter slices to wakeup-preempt", &[
        AddFeature(Feature::PreemptShort, true),
    ]),
    commit("857b158dc5e8", git("2024-08-17"), "own-slice", "sched/eevdf: Use sched_attr::sched_runtime to set request/slice suggestion", &[
        Fair(Request::OwnOfTasks.effect()),
    ]),
    commit("aef6987d8954", git("2024-08-17"), "min-slice", "sched/eevdf: Propagate min_slice up the cgroup hierarchy", &[
        Fair(Request::OwnAndLeastBelow.effect()),
    ]),
    commit("dae4320b29f0", git("2024-09-03"), "repicked-task", "sched: Fixup set_next_task() implementations", &[
        Balance(RepickedTask::WhereItStood.effect()),
    ]),
    commit("fc1892becd56", memory("2024-09"), "delayed-entity-not-runnable", "sched/eevdf: Fixup PELT vs DELAYED_DEQUEUE", &[
        NotModelled(&[Apart("152e11f6df29")], "between 152e11f6df29 and this a sleeper that had not left counted as runnable itself, too"),
    ]),
    commit("d4ac164bde7a", memory("2024-10"), "alone-on-its-queue", "sched/eevdf: Fix wakeup-preempt by checking cfs_rq->nr_running", &[
        NotModelled(&[Apart("85e511df3cec")], "between 85e511df3cec and this a used request did not count only where the CPU had one task"),
    ]),
    commit("9b5ce1a37e90", memory("2024-10"), "throttle-delayed", "sched: Fix sched_delayed vs cfs_bandwidth", &[
        NotModelled(&[Apart("152e11f6df29"), Quotas], "before, throttling a group's entity that slept on its queue corrupted the queue"),
    ]),
    commit("75b6499024a6", git("2024-09-03"), "delayed-leaves-class", "sched/fair: Properly deactivate sched_delayed task upon class change", &[
        Groundwork("a sleeper that stays queued leaves when its class changes: here from 152e11f6df29 on"),
    ]),
    commit("729288bc6856", git("2024-09-10"), "util-est-delayed", "kernel/sched: Fix util_est accounting for DELAY_DEQUEUE", &[
        Groundwork("estimates without sleepers that stay queued: here from 152e11f6df29 on"),
    ]),
    commit("b55945c500c5", memory("2024-10-23"), "util-est-first", "sched: Fix pick_next_task_fair() vs try_to_wake_up() race", &[
        Pelt(UtilEstSample::AsLastAged.effect()),
    ]),
];
