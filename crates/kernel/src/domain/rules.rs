//! Rules by which a kernel builds and shows its domains.
//!
//! Must not know: commits and releases.

use crate::generation::rules::rules;

rules! {
    /// How one kernel builds its domains.
    DomainRules, DomainEffect, "domains: {point}: {rule}" {
        /// How many times less often a busy CPU balances (`busy_factor`).
        busy_factor: BusyFactor = ThirtyTwo, "busy factor", "domains: a busy CPU balances {rule} times less often" {
            ThirtyTwo = "32",
            Sixteen = "16",
        }
        /// How much load the busiest group must have against the local one, in percent, where no cache is shared (`imbalance_pct`).
        imbalance_pct: ImbalancePct = Quarter, "imbalance_pct above the cache" {
            Quarter = "125",
            Sixth = "117" said "domains: 17 % of imbalance are tolerated where no cache is shared",
        }
        /// Whether there is a flag `SD_LOAD_BALANCE`.
        load_balance_flag: LoadBalanceFlag = Set, "SD_LOAD_BALANCE" {
            Set = "set",
            Gone = "not there" said "domains: no flag SD_LOAD_BALANCE",
        }
        /// Whether overlapping domains have a flag beside `SD_NUMA`.
        overlap_flag: OverlapFlag = Set, "SD_OVERLAP" {
            Set = "set on NUMA levels",
            Gone = "not there" said "domains: no flag SD_OVERLAP",
        }
        /// What capacity a thread of a core with several has.
        smt_capacity: SmtCapacity = SharedGain, "capacity of threads", "domains: {rule}" {
            SharedGain = "threads of a core share 1178, 15 % more than one CPU",
            Full = "each thread has 1024",
        }
        /// Whether tasks are spread over CPUs of different capacity as over others.
        asym_spreading: AsymSpreading = LikeOthers, "spreading over capacities", "domains: {rule}" {
            LikeOthers = "tasks are spread over child domains whatever their capacity",
            NotBelow = "below a domain with CPUs of different capacity tasks are not spread",
        }
        /// How domains with CPUs of different capacity are found.
        asym_detection: AsymDetection = ByPlatform, "different capacities" {
            ByPlatform = "only if the platform marks a level; none does",
            LowestLevel = "the lowest level at which each CPU sees one of the greatest capacity",
            FromLowestLevel = "that level and all above it",
            EachDomain = "each domain with CPUs of two capacities; told apart if it has all that there are",
        }
        /// At which levels tasks are packed on preferred CPUs, where there are any.
        packing_levels: PackingLevels = ThreadsAndCores, "packing on preferred CPUs", "domains: tasks are packed {rule}" {
            ThreadsAndCores = "between threads of a core, cores and clusters",
            Cores = "between cores and clusters",
        }
        /// How preferred the threads of a core with several are.
        sibling_priority: SiblingPriority = Divided, "priority of threads" {
            Divided = "the core's priority times the number of threads, divided by the thread's place",
            DividedBySquare = "the core's priority times the number of threads, divided by the square of the thread's place",
            OfCore = "all as their core",
        }
        /// Whether wakeups search domains below one with CPUs of different capacity.
        asym_wakeup: AsymWakeup = Searches, "wakeups below different capacities", "domains: {rule}" {
            Searches = "wakeups search for the idlest CPU in domains with different capacities and below",
            Ignores = "wakeups search no domain",
        }
        /// Beyond which distance nodes exchange no new, executing or woken tasks.
        reclaim_distance: ReclaimDistance = Fixed, "reclaim distance" {
            Fixed = "30",
            ByPlatform = "what the platform says; 30 if nothing",
        }
        /// Which distances make NUMA levels.
        numa_levels: NumaLevels = SeenByFirstNode, "NUMA levels" {
            SeenByFirstNode = "the distances that node 0 has to others",
            All = "every distance between any two nodes",
        }
        /// From what the groups of an overlapping domain are made.
        overlap_groups: OverlapGroups = ChildOfSibling, "groups of nodes" {
            ChildOfSibling = "the child domain of a CPU outside, even where it reaches beyond the domain",
            WithinSpan = "the largest domain of a CPU outside that stays within the domain",
        }
        /// How the least and greatest capacity in a group of nodes is computed.
        overlap_capacity: OverlapCapacity = RunningSums, "capacities in groups of nodes", "domains: least and greatest capacity in groups of nodes: {rule}" {
            RunningSums = "over sums of the CPUs' capacities so far",
            EachCpu = "over the CPUs' capacities",
        }
        /// Which flags mean nothing in a domain of one group.
        needs_groups: NeedsGroups = Listed, "flags without meaning in one group", "domains: flags without meaning in a domain of one group: {rule}" {
            Listed = "those for balancing, exec, fork, capacity and cache",
            AllButWakeAffine = "all but SD_WAKE_AFFINE",
        }
        /// Whether a level for clusters of CPUs stands above the threads of a core.
        clusters: Clusters = None, "clusters" {
            None = "no level",
            Level = "a level",
            Flagged = "a level with a flag of its own",
        }
        /// What a group knows of the level that it stands for.
        group_flags: GroupFlags = None, "group flags", "domains: what groups know of their level: {rule}" {
            None = "nothing",
            OfBuiltChild = "the flags of the child that it was made from",
            SmtKept = "the flags of the child that it was made from, and that it is a core if the child in between goes away",
            OfPresentChild = "the flags of the child that is left when levels have gone away",
        }
        /// How many more tasks one node may have than another.
        numa_imbalance: NumaImbalance = NotByDomain, "imbalance between nodes", "domains: imbalance allowed between nodes: {rule}" {
            NotByDomain = "no domain says",
            QuarterOrLlcs = "a quarter of the node's CPUs, or as many as it has last-level caches",
            EighthOrLlcs = "an eighth of the node's CPUs or as many as it has last-level caches, at least one",
        }
        /// Whether a level for threads stands below all others on a machine whose cores have but one.
        smt_level: SmtLevel = Always, "level of threads", "domains: level of threads without threads: {rule}" {
            Always = "it stands and goes away when domains are attached",
            IfThreads = "it is left out",
        }
        /// How flags are shown.
        flags_shown: FlagsShown = NumberFromLoadBalance, "flags shown", "domains: flags are shown as {rule}" {
            NumberFromLoadBalance = "a number whose lowest bit is SD_LOAD_BALANCE",
            NumberFromNewidle = "a number whose lowest bit is SD_BALANCE_NEWIDLE",
            PackageNames = "names, SD_SHARE_PKG_RESOURCES among them",
            CacheNames = "names, SD_SHARE_LLC among them",
        }
        /// Which files show a domain.
        files_shown: FilesShown = WithLoadIndexes, "files shown", "domains: of a domain is shown: {rule}" {
            WithLoadIndexes = "its numbers, load indexes among them",
            Numbers = "its numbers",
            WithGroupFlags = "its numbers and the flags of its first group",
            WithLevel = "its numbers, the flags of its first group and its level",
        }
        /// Where those files are.
        files_place: FilesPlace = Sysctl, "files in", "domains: domains are shown in {rule}" {
            Sysctl = "/proc/sys/kernel/sched_domain",
            Debugfs = "/sys/kernel/debug/sched/domains",
        }
        /// How `/proc/schedstat` is laid out.
        schedstat_layout: SchedstatLayout = Version15, "/proc/schedstat", "domains: /proc/schedstat has {rule}" {
            Version15 = "version 15: of each domain the idle first, then the busy, then the newly idle",
            Version16 = "version 16: the busy first",
            Version17 = "version 17: the busy first, with domains' names and imbalances by kind",
        }
        /// What the level of a node's CPUs is called.
        package_name: PackageName = Die, "level of a node", "domains: the level of a node is called {rule}" {
            Die = "DIE",
            Pkg = "PKG",
        }
    }
}

impl BusyFactor {
    /// As a number.
    pub(super) const fn value(self) -> u32 {
        match self {
            BusyFactor::ThirtyTwo => 32,
            BusyFactor::Sixteen => 16,
        }
    }
}

impl ImbalancePct {
    /// As a number.
    pub(super) const fn value(self) -> u32 {
        match self {
            ImbalancePct::Quarter => 125,
            ImbalancePct::Sixth => 117,
        }
    }
}
