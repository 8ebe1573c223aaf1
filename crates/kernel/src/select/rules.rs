//! Named behaviours of CPU selection and of wakeups, and [`SelectRules`], one choice for each.
//!
//! Must not know: releases (see `changes.rs` for which commit brought what).

use crate::generation::behaviour::behaviours;

behaviours! {
    /// Whether a CPU that runs only `SCHED_IDLE` tasks is as good as an idle one.
    SchedIdleCpu {
        /// No.
        Busy = "a CPU with SCHED_IDLE tasks only is busy",
        /// As target and as previous CPU yes; a search takes it when it finds nothing better.
        SecondChoice = "taken as target or previous CPU; a search that is cut short falls back to it",
        /// Yes.
        LikeIdle = "a CPU with SCHED_IDLE tasks only is as good as an idle one",
        /// Yes, unless the task is such a one itself.
        UnlessAlike = "as good as an idle one, unless the task is SCHED_IDLE itself",
    }

    /// Whether a kthread that is bound to the previous CPU and wakes a task from there keeps it there.
    KthreadStacking {
        /// No.
        No = "no",
        /// Whatever runs there.
        AnyContext = "yes, in interrupts that come while it runs, too",
        /// Only if it wakes the task itself.
        TaskContext = "yes, if it does so itself and no interrupt",
    }

    /// When `recent_used_cpu` is set.
    RecentUsed {
        /// To the previous CPU when it is taken, and of the waker to its own CPU at each affine wakeup.
        OnUse = "set to the previous CPU when taken; a waker's own at each affine wakeup",
        /// Of the woken task, to the previous CPU, whenever it is looked at.
        WhenSeen = "set to the previous CPU whenever it is looked at",
    }

    /// Which CPU must be allowed for the recently used one to be taken.
    RecentAllowed {
        /// It itself.
        Itself = "it itself",
        /// The previous one, by which the task's note is replaced before the test reads it: where only that is
        /// allowed, the recent one is taken all the same, and gives way to the first allowed CPU of the node.
        Previous = "the previous CPU, by which the note is replaced before it is tested",
    }

    /// Which hyperthreads are looked at beside the search of the cache domain.
    SiblingScan {
        /// Those of the target's core, after everything else.
        TargetLast = "the target's core, after everything else",
        /// None.
        None = "none",
        /// Those of the previous core, if there is no wholly idle core.
        PrevFirst = "the previous CPU's core, before the search, if no core is wholly idle",
        /// The others of the previous core.
        OthersOfPrevFirst = "the previous CPU's siblings, before the search, if no core is wholly idle",
    }

    /// How a wholly idle core is searched.
    CoreScan {
        /// In a pass of its own that looks at every thread.
        EveryThread = "in a pass of its own, looking at every thread of each core",
        /// In a pass of its own that leaves a core at its first busy thread.
        UntilBusy = "in a pass of its own, up to the first busy thread of each core",
        /// In one pass that also keeps the first idle thread.
        WithFallback = "in one pass, keeping the first idle thread as second choice",
    }

    /// Where the search of the cache domain begins.
    ScanStart {
        /// With the target, which is busy.
        Target = "with the target",
        /// With the CPU after it.
        AfterTarget = "with the CPU after the target",
    }

    /// What a bounded search counts.
    ScanCounts {
        /// CPUs that the task may not use, too.
        EveryCpu = "every CPU, allowed or not",
        /// Only those that it may use.
        AllowedCpus = "CPUs that the task may use",
    }

    /// What idle time bounds a search by `SIS_PROP`.
    ScanIdleTime {
        /// The average of the waking CPU, per 512.
        PerMille = "1/512 of the waking CPU's average idle time",
        /// What is left of half of it since the CPU woke, halved at each tick.
        SinceWakeup = "half the waking CPU's average idle time, less what was searched since, halved each tick",
    }

    /// Which searches count for the average cost of a search.
    ScanCost {
        /// All that end by themselves.
        EveryScan = "all that end by themselves",
        /// The same, while `SIS_PROP` is on.
        Proportional = "those that SIS_PROP bounds and that end by themselves",
    }

    /// How an average of idle time follows a sample below it.
    IdleAverage {
        /// By an eighth, rounded away from it.
        RoundedDown = "by an eighth, rounded down",
        /// By an eighth, rounded towards it.
        TowardsZero = "by an eighth, rounded towards zero",
    }

    /// When a CPU's idle time is taken as a sample.
    IdleEnds {
        /// When a task is woken there.
        AtWakeup = "when a task is woken there",
        /// When it stops being idle, even if nobody noted when it began.
        AtSwitchStampedOrNot = "when the CPU stops being idle; an idle time of unknown start counts as endless",
        /// When it stops being idle.
        AtSwitch = "when the CPU stops being idle",
    }

    /// Which wakeups are left to the target CPU.
    WakeList {
        /// Those across caches.
        OtherCache = "those to another cache",
        /// Also those of a task that is just leaving its CPU, if it is the only one there or was it.
        OrLeaving = "those to another cache, and of a task about to leave a CPU with at most one queued",
        /// Also those of a task that is just leaving its CPU and leaves nothing there.
        OrLeavingEmpty = "those to another cache, and of a task about to leave a CPU with nothing queued",
        /// Also those to a CPU with nothing queued.
        OrEmpty = "those to another cache, and to another CPU with nothing queued",
    }

    /// Whether a wakeup may be left to a CPU that the task may not use.
    WakeListAllowed {
        /// Not asked.
        NotAsked = "not asked",
        /// Only if it may use it.
        Asked = "only if it may run there",
    }

    /// What happens to a woken task that has not left its CPU yet.
    LeavingWakee {
        /// The waker waits.
        Awaited = "the waker waits until it has left, then selects",
        /// It may be left to that CPU, without any selection.
        LeftThere = "left to that CPU without a selection, if the wake list allows",
    }

    /// Which idle CPUs `wake_affine()` knows.
    AffineIdle {
        /// The waking one.
        ThisCpu = "the waking CPU, in the same cache",
        /// The waking one, and the previous one wherever it is.
        ThisOrPrev = "the waking CPU in the same cache, else the previous one",
    }

    /// When a waker that is about to sleep is alone.
    SyncAlone {
        /// When nothing else is queued.
        Queued = "nothing else is queued",
        /// When nothing else is queued but sleepers.
        Runnable = "nothing else is queued but delayed sleepers",
    }

    /// Which load of a CPU a wakeup goes by.
    WakeLoad {
        /// `runnable_load_avg`, as long as it exists.
        Runnable = "load of what is runnable",
        /// `load_avg`.
        WithBlocked = "load of what is runnable or asleep",
    }

    /// How a wakeup copes with CPUs of different capacity.
    Asymmetric {
        /// Where neither CPU is big enough, the slow path is taken.
        SlowPath = "the slow path, if waking and previous CPU are too small",
        /// The idle CPU that fits, before anything else; where neither is big enough, near the previous one.
        BestIdleNearPrev = "the first idle CPU that fits, else the biggest idle one, near the previous if waking and previous CPU are too small",
        /// The idle CPU that fits, before anything else.
        BestIdle = "the first idle CPU that fits, else the biggest idle one, before anything else",
        /// After target, previous and recent CPU, if these fit.
        FittingFirst = "target, previous and recent CPU if they fit, then the first idle CPU that does",
        /// The same, idle cores before idle threads.
        FittingCores = "as before on idle cores",
        /// The same within the cache's bound.
        BoundedCores = "as before on idle cores, searched within the bound by utilisation",
    }

    /// Whether clusters of CPUs within a cache come first.
    Cluster {
        /// No.
        Ignored = "not looked at",
        /// They are searched first, and an idle previous or recent CPU of another cluster is passed over.
        First = "searched first; previous and recent CPU count only within it",
        /// The same, but such a CPU is taken when the search fails.
        FirstThenCandidates = "searched first; previous and recent CPU outside of it are taken when the search fails",
    }

    /// How the slow path compares groups.
    IdlestGroup {
        /// By load and spare capacity.
        ByLoad = "by load and spare capacity",
        /// By type, then by what matters for it.
        ByType = "by type, then idle CPUs, load or capacity",
    }

    /// Whether a task that execs counts on the CPU that it leaves.
    IdlestSelf {
        /// It does.
        Counted = "a task that execs counts on its own CPU",
        /// It does not.
        TakenOff = "a task that execs is taken off its own CPU",
    }

    /// Which groups have a load for the slow path.
    IdlestLoad {
        /// Those that do not need it.
        WithSpare = "only groups with spare capacity",
        /// Fully busy and overloaded ones.
        WhenBusy = "fully busy and overloaded groups",
    }

    /// Among groups with equally many idle CPUs.
    IdlestTie {
        /// The first.
        First = "the first",
        /// The one with the least utilization.
        LeastUtilized = "the least utilized",
    }

    /// When a new task stays on its NUMA node though another has more idle CPUs.
    ForkNuma {
        /// As long as one is idle.
        AnyIdle = "while its node has an idle CPU",
        /// While few tasks run on the node.
        QuarterOfDomain = "while fewer tasks run on its node than a quarter of the domain's CPUs",
        /// While few tasks run on the node, the new one included.
        QuarterOfNode = "while its node's CPUs are less than a quarter used, the new task counted",
        /// As many as the caches of a node bear.
        ImbNumaNr = "while its node has no more tasks than imb_numa_nr, the new task counted",
        /// The same, if the difference in idle CPUs is small; less if the task may use few CPUs.
        SmallDifference = "the same for at most its allowed CPUs, if the nodes' idle CPUs differ by no more than two",
    }

    /// Which CPUs of a group count for the slow path.
    IdlestCounts {
        /// All.
        EveryCpu = "all CPUs of a group",
        /// Those that the task may use.
        AllowedCpus = "those that the task may use",
    }

    /// Whether a task's estimated utilization counts for its own CPU when it looks for one.
    OwnEstimate {
        /// It does.
        Counted = "its own estimate counts against its CPU",
        /// It is taken off.
        TakenOff = "its own estimate is taken off its CPU",
    }

    /// Whether a wakeup goes by energy, where there is an energy model and no CPU has more to do than it can.
    EnergyAware {
        /// No.
        No = "wakeups do not go by energy",
        /// The energy of all CPUs is computed for each candidate.
        WholeMachine = "the energy of all CPUs is computed for each candidate",
        /// The energy that each candidate adds to its domain is.
        ByDomain = "the energy that each candidate adds to its domain is computed",
    }

    /// Which CPUs a wakeup weighs by energy, beside the previous one.
    EnergyCandidates {
        /// The roomiest other one of each domain.
        OtherThanPrev = "the roomiest of each domain but the previous one",
        /// The roomiest one of each domain, even if that is the previous one.
        AnyCpu = "the roomiest of each domain, the previous one among them",
        /// The roomiest other one; a domain without any counts nothing.
        OfCountedDomains = "the roomiest of each domain but the previous one; domains without a candidate count nothing",
        /// The same, if it has more room.
        RoomierThanPrev = "the roomiest of each domain, if it has more room than the previous one there",
    }

    /// How much energy must be saved to leave the previous CPU.
    EnergyGain {
        /// A sixteenth.
        Sixteenth = "more than a sixteenth",
        /// A sixteenth, and no candidate may seem to take less than nothing.
        SixteenthOfMore = "more than a sixteenth, unless some candidate seems to take less than nothing",
        /// Any.
        Any = "any, unless some candidate seems to take less than nothing",
    }

    /// How much of a domain's CPUs is used when energy is computed.
    EnergyUtil {
        /// As the governor would see it, without real-time tasks.
        Alike = "the same for time and frequency",
        /// A runnable real-time task asks for full speed.
        RealTimeDrives = "a runnable real-time task asks for the full frequency",
        /// And the task's estimate is added to what its CPU is used without it.
        TaskApart = "for time, the task's estimate is added to what its CPU is used without it",
    }

    /// In what measure energy is computed.
    EnergyCost {
        /// Milliwatts.
        Milliwatts = "in mW at the highest frequency, rounded down",
        /// Microwatts.
        Microwatts = "in uW at the highest frequency",
        /// For each unit of performance.
        PerPerformance = "in uW for each unit of performance, without a division",
    }

    /// Whether performance states are used that cost as much for each unit of work as a faster one, or more.
    InefficientStates {
        /// Yes.
        Used = "used as any other",
        /// By governor and estimate.
        Skipped = "skipped by governor and estimate",
    }

    /// Whether idle CPUs are marked in a mask.
    IdleMask {
        /// No.
        None = "every CPU of the cache is looked at",
        /// Set when a CPU goes idle, cleared by a tick that finds it busy.
        SetOnIdle = "those marked idle are looked at: marked on idle entry, cleared by the tick",
    }
}

impl Asymmetric {
    /// Whether threads of idle cores come before others.
    pub(super) const fn prefers_cores(self) -> bool {
        matches!(self, Asymmetric::FittingCores | Asymmetric::BoundedCores)
    }
}

/// The rules of wakeups and CPU selection that one kernel follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectRules {
    /// See [`SchedIdleCpu`].
    pub sched_idle_cpu: SchedIdleCpu,
    /// See [`KthreadStacking`].
    pub kthread_stacking: KthreadStacking,
    /// See [`RecentUsed`].
    pub recent_used: RecentUsed,
    /// See [`RecentAllowed`].
    pub recent_allowed: RecentAllowed,
    /// See [`SiblingScan`].
    pub sibling_scan: SiblingScan,
    /// See [`CoreScan`].
    pub core_scan: CoreScan,
    /// See [`ScanStart`].
    pub scan_start: ScanStart,
    /// See [`ScanCounts`].
    pub scan_counts: ScanCounts,
    /// See [`ScanIdleTime`].
    pub scan_idle_time: ScanIdleTime,
    /// See [`ScanCost`].
    pub scan_cost: ScanCost,
    /// See [`IdleAverage`].
    pub idle_average: IdleAverage,
    /// See [`IdleEnds`].
    pub idle_ends: IdleEnds,
    /// See [`WakeList`].
    pub wake_list: WakeList,
    /// See [`WakeListAllowed`].
    pub wake_list_allowed: WakeListAllowed,
    /// See [`LeavingWakee`].
    pub leaving_wakee: LeavingWakee,
    /// See [`AffineIdle`].
    pub affine_idle: AffineIdle,
    /// See [`SyncAlone`].
    pub sync_alone: SyncAlone,
    /// See [`WakeLoad`].
    pub wake_load: WakeLoad,
    /// See [`Asymmetric`].
    pub asymmetric: Asymmetric,
    /// See [`Cluster`].
    pub cluster: Cluster,
    /// See [`IdlestGroup`].
    pub idlest_group: IdlestGroup,
    /// See [`IdlestSelf`].
    pub idlest_self: IdlestSelf,
    /// See [`IdlestLoad`].
    pub idlest_load: IdlestLoad,
    /// See [`IdlestTie`].
    pub idlest_tie: IdlestTie,
    /// See [`ForkNuma`].
    pub fork_numa: ForkNuma,
    /// See [`IdlestCounts`].
    pub idlest_counts: IdlestCounts,
    /// See [`OwnEstimate`].
    pub own_estimate: OwnEstimate,
    /// See [`EnergyAware`].
    pub energy_aware: EnergyAware,
    /// See [`EnergyCandidates`].
    pub energy_candidates: EnergyCandidates,
    /// See [`EnergyGain`].
    pub energy_gain: EnergyGain,
    /// See [`EnergyUtil`].
    pub energy_util: EnergyUtil,
    /// See [`EnergyCost`].
    pub energy_cost: EnergyCost,
    /// See [`InefficientStates`].
    pub inefficient_states: InefficientStates,
    /// See [`IdleMask`].
    pub idle_mask: IdleMask,
}

impl SelectRules {
    /// The rules of v4.18, before the first of [`SELECT_CHANGES`](super::SELECT_CHANGES).
    pub const BASE: SelectRules = SelectRules {
        sched_idle_cpu: SchedIdleCpu::Busy,
        kthread_stacking: KthreadStacking::No,
        recent_used: RecentUsed::OnUse,
        recent_allowed: RecentAllowed::Itself,
        sibling_scan: SiblingScan::TargetLast,
        core_scan: CoreScan::EveryThread,
        scan_start: ScanStart::Target,
        scan_counts: ScanCounts::EveryCpu,
        scan_idle_time: ScanIdleTime::PerMille,
        scan_cost: ScanCost::EveryScan,
        idle_average: IdleAverage::RoundedDown,
        idle_ends: IdleEnds::AtWakeup,
        wake_list: WakeList::OtherCache,
        wake_list_allowed: WakeListAllowed::NotAsked,
        leaving_wakee: LeavingWakee::Awaited,
        affine_idle: AffineIdle::ThisCpu,
        sync_alone: SyncAlone::Queued,
        wake_load: WakeLoad::Runnable,
        asymmetric: Asymmetric::SlowPath,
        cluster: Cluster::Ignored,
        idlest_group: IdlestGroup::ByLoad,
        idlest_self: IdlestSelf::Counted,
        idlest_load: IdlestLoad::WithSpare,
        idlest_tie: IdlestTie::First,
        fork_numa: ForkNuma::AnyIdle,
        idlest_counts: IdlestCounts::EveryCpu,
        own_estimate: OwnEstimate::Counted,
        energy_aware: EnergyAware::No,
        energy_candidates: EnergyCandidates::OtherThanPrev,
        energy_gain: EnergyGain::Sixteenth,
        energy_util: EnergyUtil::Alike,
        energy_cost: EnergyCost::Milliwatts,
        inefficient_states: InefficientStates::Used,
        idle_mask: IdleMask::None,
    };
}
