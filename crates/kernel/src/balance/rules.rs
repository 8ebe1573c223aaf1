//! Rules of balancing.
//!
//! Must not know: commits and releases.

use crate::generation::rules::rules;

rules! {
    /// The rules of balancing that one kernel follows.
    BalanceRules, BalanceEffect, "balancing: {rule}" {
        /// How the imbalance between two groups is found and measured.
        comparison: Comparison = LoadInSteps, "comparison" {
            LoadInSteps = "by average load, and where that is less than a task's, by what moving one would bring",
            Load = "by average load alone",
            GroupTypes = "by what kind of state the groups are in, then in load, utilization or tasks",
        }
        /// Which load of a CPU balancing goes by.
        load: BalanceLoad = Runnable, "load" {
            Runnable = "load of what is runnable",
            WithBlocked = "load of what is runnable or asleep",
        }
        /// Which tasks count when groups are compared by their number (by group types).
        counted: CountedTasks = Fair, "counted" {
            Fair = "fair tasks",
            AllClasses = "tasks of all classes",
        }
        /// When a busiest group that is not overloaded gives a task (by group types).
        single_cpu: SingleCpuGroups = ByIdleCpus, "single cpu" {
            ByIdleCpus = "if it has at least two idle CPUs less",
            ByWaiting = "if it has more than one task, and at least two idle CPUs less unless it is one CPU",
        }
        /// Which of several groups with spare capacity is the busiest (by group types).
        spare_tie: SpareTie = FewestIdle, "spare tie" {
            FewestIdle = "the one with the fewest idle CPUs",
            FewestIdleMostTasks = "the one with the fewest idle CPUs, of equals the one with the most tasks",
        }
        /// Where spare capacity is filled by utilization (by group types).
        spare: SpareCapacity = AtEveryLevel, "spare" {
            AtEveryLevel = "at every level",
            BeyondCache = "only between last-level caches; within one, by tasks",
        }
        /// Whether waiting time decides if a group is full (by group types).
        waiting: GroupRunnable = Ignored, "waiting" {
            Ignored = "utilization alone decides whether a group is full",
            Counts = "utilization and runnable_avg decide whether a group is full",
        }
        /// Which queue gives utilization (by group types).
        util_source: UtilSource = AnyQueue, "util source" {
            AnyQueue = "the one with the most utilization",
            QueueWithWaiting = "the one with the most utilization of those where a task waits",
        }
        /// How much imbalance between NUMA nodes is left alone (by group types).
        numa: NumaAllowance = Nothing, "numa" {
            Nothing = "none",
            PairInSource = "any, while the source has at most two tasks",
            QuarterOfSource = "up to two tasks, while the source runs less than a quarter of its CPUs",
            QuarterOfTarget = "up to two tasks, while the target would run less than a quarter of its CPUs",
            PerCache = "up to two tasks, while the target would run no more than imb_numa_nr",
        }
        /// When a difference in numbers is halved (by group types).
        halving: Halving = BeforeAllowance, "halving" {
            BeforeAllowance = "before the NUMA allowance is looked at",
            AfterAllowance = "after the NUMA allowance is looked at",
        }
        /// What average load a local group that is not overloaded may have to take more (by group types).
        local_average: LocalAverage = Any, "local average" {
            Any = "any",
            BelowSource = "below the source's",
            BelowDomain = "below the source's and the domain's",
        }
        /// How large a task's load may be against the imbalance.
        load_step: LoadStep = TwiceTheImbalance, "load step" {
            TwiceTheImbalance = "up to twice the imbalance",
            TwiceUnlessFailing = "up to twice the imbalance, or any after more failures than cache_nice_tries",
            DoublingWithFailures = "up to the imbalance, twice that after each failure",
            DoublingWithinWord = "up to the imbalance, twice that after each failure, within the width of a word",
        }
        /// What a task without load counts.
        no_load: NoLoad = Nothing, "no load" {
            Nothing = "nothing",
            One = "1, so that a try comes to an end",
        }
        /// How large a task's utilization may be against the imbalance (by group types).
        util_step: UtilStep = TheImbalance, "util step" {
            TheImbalance = "up to the imbalance",
            DoublingWithFailures = "up to the imbalance, twice that after each failure",
        }
        /// Whether threads of one core have different caches.
        smt_heat: SmtHeat = HotBetweenThreads, "smt heat" {
            HotBetweenThreads = "a task that ran just now is hot for the core's other thread, too",
            ColdBetweenThreads = "nothing is hot for the core's other thread",
        }
        /// When failures make a running task be pushed.
        active: ActiveBalance = AnyType, "active" {
            AnyType = "after more than cache_nice_tries + 2 failures",
            TasksOnly = "after more than cache_nice_tries + 2 failures to move a number of tasks",
        }
        /// What a push leaves of the count of failures.
        push_failures: PushFailures = SetToForce, "push failures" {
            SetToForce = "it is set so that hot tasks are moved",
            Kept = "it stays, and what is pushed may be hot",
        }
        /// Which failures count.
        failures: CountedFailures = AllPeriodic, "failures" {
            AllPeriodic = "all but those of new-idle balancing",
            NotMisfit = "all but those of new-idle balancing and for misfit tasks",
        }
        /// What the interval does after a push.
        push_interval: PushInterval = BacksOff, "push interval" {
            BacksOff = "it doubles",
            BacksOffUnlessVoluntary = "it doubles, unless capacity was the reason",
            ResetIfNeeded = "it stays, or is reset while a push is still needed",
        }
        /// When a balanced domain's interval doubles.
        back_off: BackOff = Always, "back off" {
            Always = "whenever nothing is to be moved",
            NotNewidle = "when nothing is to be moved, except in new-idle balancing",
            NotNewidleNorMisfit = "when nothing is to be moved, except in new-idle balancing and for misfit tasks",
        }
        /// When a balanced domain clears the mark that affinity kept tasks where they are.
        affinity_mark: AffinityMark = ClearedWhenBalanced, "affinity mark" {
            ClearedWhenBalanced = "whenever it is found balanced",
            ClearedUnlessAllPinned = "when it is found balanced, unless all tasks were pinned",
        }
        /// When a queue counts as wholly pinned.
        all_pinned: AllPinned = AfterTrying, "all pinned" {
            AfterTrying = "after none of its tasks was allowed here",
            UntilMovable = "until a task that is allowed here was found, or one cannot be pushed",
        }
        /// Whether kernel threads of one CPU are looked at.
        percpu_kthreads: PercpuKthreads = PinnedLikeOthers, "percpu kthreads" {
            PinnedLikeOthers = "as other pinned tasks",
            PassedOver = "passed over, without calling the queue pinned",
        }
        /// Whether a queue without fair tasks can be the busiest.
        empty_queue: EmptyQueue = MayBeBusiest, "empty queue" {
            MayBeBusiest = "by its load or utilization, it can",
            PassedOver = "it cannot",
        }
        /// How many tasks of a queue are looked at.
        look_limit: LookLimit = NrMigrate, "look limit" {
            NrMigrate = "32 at most",
            UntilOneAllowed = "32 at most, or as many as it takes to find one that is allowed here",
        }
        /// Which of several CPUs of a group balances for it.
        balancer: Balancer = FirstIdle, "balancer" {
            FirstIdle = "its first idle CPU, else its first CPU",
            IdleCoreOrOthers = "its first wholly idle core, else its first idle CPU and also its first CPU",
            IdleCore = "its first wholly idle core, else its first idle CPU, else its first CPU",
        }
        /// Which of several groups without spare capacity is the busiest.
        full_tie: FullTie = First, "full tie" {
            First = "the first",
            LastUnlessSmt = "the last, unless a core with several threads was found before",
        }
        /// Whose preference for siblings counts.
        sibling_preference: SiblingPreference = OfChild, "sibling preference" {
            OfChild = "that of the level below here",
            OfBusiest = "that of the level below in the busiest group",
        }
        /// How tasks are spread over groups of cores (by group types).
        cores: CoreSpreading = ByTasks, "cores" {
            ByTasks = "evenly, whatever their number of cores",
            ByCores = "in proportion to their cores",
        }
        /// Whether a busy core with idle cores beside it is a reason of its own.
        smt_groups: SmtGroups = LikeOthers, "smt groups" {
            LikeOthers = "no",
            Relieved = "a core that runs more than one task gives one to a core without threads",
            RelievedByIdle = "a core that runs more than one task gives one; cores with threads are compared by idle CPUs and tasks",
        }
        /// Whether tasks that outgrow their CPU are moved on asymmetric machines.
        misfit: Misfit = NotSeen, "misfit" {
            NotSeen = "no",
            GroupType = "a group with one is a reason of its own",
        }
        /// How large a task must be to count as misfit when it is moved (by group types).
        misfit_size: MisfitSize = ByLoad, "misfit size" {
            ByLoad = "half of the load that was noted",
            ByCapacity = "too large for its CPU",
        }
        /// Whether a group of bigger CPUs is spared while it has no more tasks than CPUs.
        bigger_cpus: BiggerCpus = SparedByGroup, "bigger cpus" {
            SparedByGroup = "if its CPUs are bigger than this group's",
            SparedByQueue = "if its CPUs are bigger than this group's, and a single task on a bigger CPU always",
        }
        /// By how much a CPU must be bigger to count as bigger.
        capacity_margin: CapacityMargin = Quarter, "capacity margin" {
            Quarter = "by a quarter, group against group",
            Twentieth = "by a twentieth, this CPU against the group",
        }
        /// What other classes leave of a CPU for fair tasks.
        left_for_fair: LeftForFair = ShareOfTime, "left for fair" {
            ShareOfTime = "the share of the last half to one second in which no real-time task ran",
            /// A thread of a core as much as a CPU that has its core to itself.
            AveragesOfCore = "the capacity of its core less the utilization of real-time and deadline tasks",
            Averages = "its capacity less the utilization of real-time and deadline tasks",
        }
        /// Whether a single task on a CPU of which other classes use much is a reason to take (by group types).
        reduced_capacity: ReducedCapacity = OnlyForPush, "reduced capacity" {
            OnlyForPush = "no; where something else is, the running task is pushed",
            GroupType = "its group is as one with a misfit task, by the task's load",
        }
        /// Which running task that needs more than its CPU has is one too many there.
        misfit_task: MisfitTask = Any, "misfit task" {
            Any = "any",
            Unbound = "any that may run on more than one CPU",
            MayGrow = "any that may run on more than one CPU, unless its own is as big as the biggest of them",
        }
        /// Which of several groups with a misfit task is the busiest.
        misfit_tie: MisfitTie = LastOfEquals, "misfit tie" {
            LastOfEquals = "the one with the greatest, the last of equals",
            FirstOfEquals = "the one with the greatest, the first of equals",
        }
        /// When tasks are moved to a preferred CPU (`SD_ASYM_PACKING`).
        packing: Packing = ByPriority, "packing" {
            ByPriority = "if the CPU that balances is preferred to every CPU of the other group",
            BySiblings = "if this CPU is preferred to the other group's; between cores with threads, by how many threads are busy",
            FromIdleCores = "if this CPU is preferred to the other group's, its core is idle, and the other core runs on one thread only",
        }
        /// When a running task is pushed to a preferred CPU.
        packing_push: PackingPush = NewlyIdle, "packing push" {
            NewlyIdle = "when that goes idle",
            Idle = "when that is or goes idle",
        }
        /// Whether tasks stay where wakeups by energy have put them, while no CPU has more to do than it can.
        energy: EnergyBalance = Moved, "energy" {
            Moved = "no",
            Stay = "they stay",
        }
        /// Whether a task that comes to a CPU otherwise than by waking can make the CPU count as overutilized at once.
        arrival: ArrivalUse = Counts, "arrival" {
            Counts = "it can",
            CountsAtTick = "only at the next tick or wakeup",
        }
        /// When a group is overloaded, where wakeups go by energy.
        energy_overload: EnergyOverload = LikeOthers, "energy overload" {
            LikeOthers = "as elsewhere",
            WithOverutilizedCpu = "only if it has a CPU that is overutilized by itself",
        }
        /// How much a CPU takes that goes idle.
        newidle_pull: NewidlePull = ByImbalance, "newidle pull" {
            ByImbalance = "as much as the imbalance",
            OneTask = "one task, so that it does not hold its queue for long: the kernel is a preemptible one",
        }
        /// When new-idle balancing searches at all.
        newidle_gate: NewidleGate = MigrationCost, "newidle gate" {
            MigrationCost = "if idle times exceed sched_migration_cost",
            MigrationAndDomainCost = "if idle times exceed sched_migration_cost and the cost of the lowest level",
            DomainCost = "if idle times exceed the cost of the lowest level",
        }
        /// What counts as the cost of new-idle balancing.
        newidle_cost: NewidleCost = Search, "newidle cost" {
            Search = "the search of each level",
            SearchAndUpdate = "the search of each level, and for the first the update of blocked load before it",
        }
        /// When that cost decays.
        cost_decay: CostDecay = EverySecond, "cost decay" {
            EverySecond = "by 1/85 a second",
            AfterQuietSecond = "by 1/85 after each second without a new maximum",
        }
        /// What a search in vain does to that cost.
        cost_bump: CostBump = None, "cost bump" {
            None = "nothing",
            HalfMore = "the level's cost grows by a half, up to half more than the CPU's greatest",
        }
        /// Whether a wakeup that is on its way ends new-idle balancing.
        pending_wakeup: PendingWakeup = NotSeen, "pending wakeup" {
            NotSeen = "no",
            EndsBetweenLevels = "between two levels",
            EndsBeforeAndBetween = "before it and between two levels",
            EndsEverywhere = "before it, between two levels and within one",
        }
        /// When a level that was not searched for lack of time pulls the next balance forward.
        newidle_next: NewidleNext = WhenGivenUpOrDone, "newidle next" {
            WhenGivenUpOrDone = "when it is given up, or after it was searched",
            Before = "before it is searched or given up",
        }
        /// Whether levels are searched by chance.
        newidle_chance: NewidleChance = Always, "newidle chance" {
            Always = "no",
            BySuccess = "with the chance of success that the level has had",
            BySuccessAndRate = "with the chance of success that the level has had, more if calls are rare",
        }
        /// By which time a CPU that searches for work first ages its own blocked load.
        newidle_clock: NewidleClock = SetAnew, "newidle clock" {
            SetAnew = "its queue's clock is set again: the queue was unlocked since the switch began",
            AsItStands = "by its queue's clock as the switch has set it",
        }
        /// Whether new-idle balancing updates the blocked load of the CPUs that it looks at.
        newidle_stats: NewidleStats = Updated, "newidle stats" {
            Updated = "idle ones, once per tick",
            LeftAsTheyAre = "no",
        }
        /// Where a CPU that goes idle updates all idle CPUs' blocked load.
        newidle_update: NewidleUpdate = WhileLeaving, "newidle update" {
            WhileLeaving = "before it lets its last task go, if it does not search",
            KicksOther = "elsewhere: an idle CPU is kicked, if it pulled nothing",
            InIdleLoop = "in the idle loop, where a wakeup ends it, if it pulled nothing",
        }
        /// In which order an idle CPU balances for others.
        ilb_order: IlbOrder = FromFirst, "ilb order" {
            FromFirst = "from the first CPU on, itself last",
            FromNext = "from its next neighbour on, itself last",
        }
        /// How often an idle balancer updates a CPU's blocked load.
        ilb_update: IlbUpdate = Always, "ilb update" {
            Always = "each time",
            OncePerTick = "once per tick",
        }
        /// How often anybody else does.
        blocked_limit: BlockedLimit = OncePerTick, "blocked limit" {
            OncePerTick = "once per tick",
            Twentieth = "once in 50 ms",
        }
        /// Which CPU is kicked to balance for idle ones.
        ilb_choice: IlbChoice = FirstOrNone, "ilb choice" {
            FirstOrNone = "the first one whose tick is stopped, or none",
            FirstIdle = "the first idle one whose tick is stopped",
            FirstOfIdleCore = "the first on an idle core whose tick is stopped, else the first idle one",
        }
        /// From when on a softirq does what idle CPUs were kicked for.
        ilb_told: IlbTold = OnceAsked, "ilb told" {
            OnceAsked = "from the kick on, whatever the softirq is for",
            OnceThere = "from when the interrupt is there",
        }
        /// When the next kick may come.
        next_kick: NextKick = OneLater, "next kick" {
            OneLater = "a tick later than it might have",
            NextTick = "at the next tick",
        }
        /// Whether a CPU that goes idle makes the time of the next balance be recomputed.
        next_update: NextUpdate = None, "next update" {
            None = "no",
            Kicked = "yes, by a kick",
        }
        /// Whether a CPU that only runs SCHED_IDLE tasks balances as often as an idle one.
        idle_policy_busy: IdlePolicyBusy = Busy, "idle policy busy" {
            Busy = "no",
            Idle = "yes",
        }
        /// How long a busy CPU waits between two balances.
        busy_interval: BusyInterval = Whole, "busy interval" {
            Whole = "the interval times busy_factor",
            LessATick = "a tick less than that, so that levels do not coincide",
        }
        /// When a CPU that goes idle stops its tick, where no driver knows its idle states.
        idle_tick: IdleTick = StopsAtOnce, "idle tick" {
            StopsAtOnce = "it stops at once",
            StopsAfterOne = "it stops after the first that finds the CPU idle",
        }
        /// What an idle CPU does that is asked to switch and has nothing queued.
        idle_reentry: IdleReentry = Searches, "idle reentry" {
            Searches = "it searches for work again",
            StaysIdle = "it stays idle at once",
        }
        /// When a balancer for idle CPUs gives up.
        ilb_abort: IlbAbort = NeedResched, "ilb abort" {
            NeedResched = "as soon as it should reschedule",
            BusyAndNeedResched = "as soon as it should reschedule and is not idle",
        }
        /// Which tasks count as waiting.
        delayed_count: DelayedCount = All, "delayed count" {
            All = "all that are queued",
            Runnable = "those that are queued and do not sleep",
        }
        /// When a CPU searches for work whose last task was of a class above the fair one, and whose fair ones all sleep there.
        newidle_place: NewidlePlace = BeforePick, "newidle place", "a CPU that leaves a higher class searches for work {rule}" {
            /// As long as a sleeper is queued, there seems to be work.
            BeforePick = "before the pick, if nothing fair is queued",
            InPick = "in the pick, once its sleepers have left",
        }
        /// Where a task that is picked again while it runs stands among those that a pass looks at.
        repicked: RepickedTask = InFront, "repicked" {
            InFront = "in front, as every task that is picked",
            WhereItStood = "where it stood",
        }
        /// Whether a sleeper that is still queued is moved.
        delayed_moves: DelayedMoves = LikeOthers, "delayed moves" {
            LikeOthers = "as others are",
            ForLoadOnly = "only for its load",
        }
        /// Whether a task that would not run there is moved.
        ineligible: Ineligible = LikeOthers, "ineligible" {
            LikeOthers = "as others are",
            AfterFailure = "only after a failure, if others are queued where it would go",
        }
        /// Whether the threads of a process are gathered under one last-level cache, where there are several (`CONFIG_SCHED_CACHE`).
        gathering: Gathering = None, "gathering" {
            None = "threads of a process are spread as other tasks are",
            PreferredCache = "threads of a process are moved to the last-level cache under which most of it ran of late",
        }
        /// Whether they are moved for that to a CPU that is too small for them.
        gathering_fit: GatheringFit = Any, "gathering fit" {
            Any = "they are",
            FittingCpu = "they are not, and tasks that are too large for their CPU are moved first",
        }
        /// Whether passing up blocked load tells the groups.
        blocked_tells: BlockedTells = Queues, "blocked tells" {
            Queues = "only the queues that changed",
            QueuesAndParents = "the queues that changed and those above them",
        }
    }
}
