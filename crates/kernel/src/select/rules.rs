//! Rules of CPU selection and of wakeups.
//!
//! Must not know: commits and releases.

use crate::generation::rules::rules;

rules! {
    /// The rules of wakeups and CPU selection that one kernel follows.
    SelectRules, SelectEffect, "{point}: {rule}" {
        /// Whether a CPU that runs only `SCHED_IDLE` tasks is as good as an idle one.
        sched_idle_cpu: SchedIdleCpu = Busy, "sched idle cpu" {
            Busy = "a CPU with SCHED_IDLE tasks only is busy",
            SecondChoice = "taken as target or previous CPU; a search that is cut short falls back to it",
            LikeIdle = "a CPU with SCHED_IDLE tasks only is as good as an idle one",
            UnlessAlike = "as good as an idle one, unless the task is SCHED_IDLE itself",
        }
        /// Whether a kthread that is bound to the previous CPU and wakes a task from there keeps it there.
        kthread_stacking: KthreadStacking = No, "kthread stacking" {
            No = "no",
            AnyContext = "yes, in interrupts that come while it runs, too",
            TaskContext = "yes, if it does so itself and no interrupt",
        }
        /// When `recent_used_cpu` is set.
        recent_used: RecentUsed = OnUse, "recent used" {
            OnUse = "set to the previous CPU when taken; a waker's own at each affine wakeup",
            WhenSeen = "set to the previous CPU whenever it is looked at",
        }
        /// Which CPU must be allowed for the recently used one to be taken.
        recent_allowed: RecentAllowed = Itself, "recent allowed" {
            Itself = "it itself",
            /// The previous one, by which the task's note is replaced before the test reads it: where only that is
            /// allowed, the recent one is taken all the same, and gives way to the first allowed CPU of the node.
            Previous = "the previous CPU, by which the note is replaced before it is tested",
        }
        /// Which hyperthreads are looked at beside the search of the cache domain.
        sibling_scan: SiblingScan = TargetLast, "sibling scan" {
            TargetLast = "the target's core, after everything else",
            None = "none",
            PrevFirst = "the previous CPU's core, before the search, if no core is wholly idle",
            OthersOfPrevFirst = "the previous CPU's siblings, before the search, if no core is wholly idle",
        }
        /// How a wholly idle core is searched.
        core_scan: CoreScan = EveryThread, "core scan" {
            EveryThread = "in a pass of its own, looking at every thread of each core",
            UntilBusy = "in a pass of its own, up to the first busy thread of each core",
            WithFallback = "in one pass, keeping the first idle thread as second choice",
        }
        /// Of which cache it is noted that it has no wholly idle core, once a search has found none.
        core_note: CoreNote = Searched, "no idle core noted" {
            Searched = "of the one that was searched",
            Wakers = "of the waking CPU's",
        }
        /// Where the search of the cache domain begins.
        scan_start: ScanStart = Target, "scan start" {
            Target = "with the target",
            AfterTarget = "with the CPU after the target",
        }
        /// What a bounded search counts.
        scan_counts: ScanCounts = EveryCpu, "scan counts" {
            EveryCpu = "every CPU, allowed or not",
            AllowedCpus = "CPUs that the task may use",
        }
        /// What idle time bounds a search by `SIS_PROP`.
        scan_idle_time: ScanIdleTime = PerMille, "scan idle time" {
            PerMille = "1/512 of the waking CPU's average idle time",
            SinceWakeup = "half the waking CPU's average idle time, less what was searched since, halved each tick",
        }
        /// Which searches count for the average cost of a search.
        scan_cost: ScanCost = EveryScan, "scan cost" {
            EveryScan = "all that end by themselves",
            Proportional = "those that SIS_PROP bounds and that end by themselves",
        }
        /// How an average of idle time follows a sample below it.
        idle_average: IdleAverage = RoundedDown, "idle average" {
            RoundedDown = "by an eighth, rounded down",
            TowardsZero = "by an eighth, rounded towards zero",
        }
        /// When a CPU's idle time is taken as a sample.
        idle_ends: IdleEnds = AtWakeup, "idle ends" {
            AtWakeup = "when a task is woken there",
            AtSwitchStampedOrNot = "when the CPU stops being idle; an idle time of unknown start counts as endless",
            AtSwitch = "when the CPU stops being idle",
        }
        /// Which wakeups are left to the target CPU.
        wake_list: WakeList = OtherCache, "wake list" {
            OtherCache = "those to another cache",
            OrLeaving = "those to another cache, and of a task about to leave a CPU with at most one queued",
            OrLeavingEmpty = "those to another cache, and of a task about to leave a CPU with nothing queued",
            OrEmpty = "those to another cache, and to another CPU with nothing queued",
        }
        /// Whether a wakeup may be left to a CPU that the task may not use.
        wake_list_allowed: WakeListAllowed = NotAsked, "wake list allowed" {
            NotAsked = "not asked",
            Asked = "only if it may run there",
        }
        /// Whether a stopper's wakeup may be left to its CPU.
        stopper_wakeup: StopperWakeup = LikeOthers, "stopper's wakeup" {
            LikeOthers = "left to another cache's CPU, as any other",
            AtOnce = "queued at once",
        }
        /// What happens to a woken task that has not left its CPU yet.
        leaving_wakee: LeavingWakee = Awaited, "leaving wakee" {
            Awaited = "the waker waits until it has left, then selects",
            LeftThere = "left to that CPU without a selection, if the wake list allows",
        }
        /// Which idle CPUs `wake_affine()` knows.
        affine_idle: AffineIdle = ThisCpu, "affine idle" {
            ThisCpu = "the waking CPU, in the same cache",
            ThisOrPrev = "the waking CPU in the same cache, else the previous one",
        }
        /// When a waker that is about to sleep is alone.
        sync_alone: SyncAlone = Queued, "sync alone" {
            Queued = "nothing else is queued",
            Runnable = "nothing else is queued but delayed sleepers",
        }
        /// Which load of a CPU a wakeup goes by.
        wake_load: WakeLoad = Runnable, "wake load" {
            /// `runnable_load_avg`, as long as it exists.
            Runnable = "load of what is runnable",
            /// `load_avg`.
            WithBlocked = "load of what is runnable or asleep",
        }
        /// How a wakeup copes with CPUs of different capacity.
        asymmetric: Asymmetric = SlowPath, "asymmetric" {
            SlowPath = "the slow path, if waking and previous CPU are too small",
            BestIdleNearPrev = "the first idle CPU that fits, else the biggest idle one, near the previous if waking and previous CPU are too small",
            BestIdle = "the first idle CPU that fits, else the biggest idle one, before anything else",
            FittingFirst = "target, previous and recent CPU if they fit, then the first idle CPU that does",
            FittingCores = "as before on idle cores",
            BoundedCores = "as before on idle cores, searched within the bound by utilisation",
        }
        /// Whether clusters of CPUs within a cache come first.
        cluster: Cluster = Ignored, "cluster" {
            Ignored = "not looked at",
            /// They are searched first, and an idle previous or recent CPU of another cluster is passed over.
            First = "searched first; previous and recent CPU count only within it",
            FirstThenCandidates = "searched first; previous and recent CPU outside of it are taken when the search fails",
        }
        /// How the slow path compares groups.
        idlest_group: IdlestGroup = ByLoad, "idlest group" {
            ByLoad = "by load and spare capacity",
            ByType = "by type, then idle CPUs, load or capacity",
        }
        /// Whether a task that execs counts on the CPU that it leaves.
        idlest_self: IdlestSelf = Counted, "idlest self" {
            Counted = "a task that execs counts on its own CPU",
            TakenOff = "a task that execs is taken off its own CPU",
        }
        /// Which groups have a load for the slow path.
        idlest_load: IdlestLoad = WithSpare, "idlest load" {
            WithSpare = "only groups with spare capacity",
            WhenBusy = "fully busy and overloaded groups",
        }
        /// With how many tasks a group has no room any more for the slow path.
        idlest_weight: IdlestWeight = Cpus, "idlest weight" {
            Cpus = "one for each of its CPUs",
            None = "none: only its utilization tells",
        }
        /// Among groups with equally many idle CPUs.
        idlest_tie: IdlestTie = First, "idlest tie" {
            First = "the first",
            LeastUtilized = "the least utilized",
        }
        /// When a new task stays on its NUMA node though another has more idle CPUs.
        fork_numa: ForkNuma = AnyIdle, "fork numa" {
            AnyIdle = "while its node has an idle CPU",
            QuarterOfDomain = "while fewer tasks run on its node than a quarter of the domain's CPUs",
            QuarterOfNode = "while its node's CPUs are less than a quarter used, the new task counted",
            ImbNumaNr = "while its node has no more tasks than imb_numa_nr, the new task counted",
            SmallDifference = "while its node has no more tasks than imb_numa_nr or allowed CPUs, if the nodes' idle CPUs differ by at most two",
        }
        /// Which CPUs of a group count for the slow path.
        idlest_counts: IdlestCounts = EveryCpu, "idlest counts" {
            EveryCpu = "all CPUs of a group",
            AllowedCpus = "those that the task may use",
        }
        /// Whether a task's estimated utilization counts for its own CPU when it looks for one.
        own_estimate: OwnEstimate = Counted, "own estimate" {
            Counted = "its own estimate counts against its CPU",
            TakenOff = "its own estimate is taken off its CPU",
        }
        /// Whether a wakeup goes by energy, where there is an energy model and no CPU has more to do than it can.
        energy_aware: EnergyAware = No, "energy aware" {
            No = "wakeups do not go by energy",
            WholeMachine = "the energy of all CPUs is computed for each candidate",
            ByDomain = "the energy that each candidate adds to its domain is computed",
        }
        /// Which CPUs a wakeup weighs by energy, beside the previous one.
        energy_candidates: EnergyCandidates = OtherThanPrev, "energy candidates" {
            OtherThanPrev = "the roomiest of each domain but the previous one",
            AnyCpu = "the roomiest of each domain, the previous one among them",
            OfCountedDomains = "the roomiest of each domain but the previous one; domains without a candidate count nothing",
            RoomierThanPrev = "the roomiest of each domain, if it has more room than the previous one there",
        }
        /// How much energy must be saved to leave the previous CPU.
        energy_gain: EnergyGain = Sixteenth, "energy gain" {
            Sixteenth = "more than a sixteenth",
            SixteenthOfMore = "more than a sixteenth, unless some candidate seems to take less than nothing",
            Any = "any, unless some candidate seems to take less than nothing",
        }
        /// How much of a domain's CPUs is used when energy is computed.
        energy_util: EnergyUtil = Alike, "energy util" {
            /// As the governor would see it, without real-time tasks.
            Alike = "by one number for time and frequency",
            RealTimeDrives = "a runnable real-time task asks for the full frequency",
            TaskApart = "for time, the task's estimate is added to what its CPU is used without it",
        }
        /// In what measure energy is computed.
        energy_cost: EnergyCost = Milliwatts, "energy cost" {
            Milliwatts = "in mW at the highest frequency, rounded down",
            Microwatts = "in uW at the highest frequency",
            PerPerformance = "in uW for each unit of performance, without a division",
        }
        /// Whether performance states are used that cost as much for each unit of work as a faster one, or more.
        inefficient_states: InefficientStates = Used, "inefficient states" {
            Used = "used as any other",
            Skipped = "skipped by governor and estimate",
        }
        /// Whether idle CPUs are marked in a mask.
        idle_mask: IdleMask = None, "idle mask" {
            None = "every CPU of the cache is looked at",
            SetOnIdle = "those marked idle are looked at: marked on idle entry, cleared by the tick",
        }
    }
}

impl Asymmetric {
    /// Whether threads of idle cores come before others.
    pub(super) const fn prefers_cores(self) -> bool {
        matches!(self, Asymmetric::FittingCores | Asymmetric::BoundedCores)
    }
}
