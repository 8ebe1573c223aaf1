//! How a kernel builds its domains, as named behaviours.
//!
//! Must not know: commits and releases.

/// Declares the behaviours once; each has a short description.
macro_rules! behaviours {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident: $clause:literal,)* })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $(#[doc = $clause] $variant,)* }

        impl $name {
            /// The rule in one clause.
            pub const fn describe(self) -> &'static str {
                match self { $($name::$variant => $clause,)* }
            }
        }
    )* };
}

behaviours! {
    /// What capacity a thread of a core with several has.
    SmtCapacity {
        SharedGain: "threads of a core share 1178, 15 % more than one CPU",
        Full: "each thread has 1024",
    }

    /// Whether tasks are spread over CPUs of different capacity as over others.
    AsymSpreading {
        LikeOthers: "tasks are spread over child domains whatever their capacity",
        NotBelow: "below a domain with CPUs of different capacity tasks are not spread",
    }

    /// How domains with CPUs of different capacity are found.
    AsymDetection {
        ByPlatform: "only if the platform marks a level; none does",
        LowestLevel: "the lowest level at which each CPU sees one of the greatest capacity",
        FromLowestLevel: "that level and all above it",
        EachDomain: "each domain with CPUs of two capacities; told apart if it has all that there are",
    }

    /// At which levels tasks are packed on preferred CPUs, where there are any.
    PackingLevels {
        ThreadsAndCores: "between threads of a core, cores and clusters",
        Cores: "between cores and clusters",
    }

    /// How preferred the threads of a core with several are.
    SiblingPriority {
        Divided: "the core's priority times the number of threads, divided by the thread's place",
        DividedBySquare: "the same, divided by the square of its place",
        OfCore: "all as their core",
    }

    /// Whether wakeups search domains below one with CPUs of different capacity.
    AsymWakeup {
        Searches: "wakeups search for the idlest CPU in domains with different capacities and below",
        Ignores: "wakeups search no domain",
    }

    /// Beyond which distance nodes exchange no new, executing or woken tasks.
    ReclaimDistance {
        Fixed: "30",
        ByPlatform: "what the platform says; 30 if nothing",
    }

    /// Which distances make NUMA levels.
    NumaLevels {
        SeenByFirstNode: "the distances that node 0 has to others",
        All: "every distance between any two nodes",
    }

    /// From what the groups of an overlapping domain are made.
    OverlapGroups {
        ChildOfSibling: "the child domain of a CPU outside, even where it reaches beyond the domain",
        WithinSpan: "the largest domain of a CPU outside that stays within the domain",
    }

    /// How the least and greatest capacity in a group of nodes is computed.
    OverlapCapacity {
        RunningSums: "over sums of the CPUs' capacities so far",
        EachCpu: "over the CPUs' capacities",
    }

    /// Which flags mean nothing in a domain of one group.
    NeedsGroups {
        Listed: "those for balancing, exec, fork, capacity and cache",
        AllButWakeAffine: "all but SD_WAKE_AFFINE",
    }

    /// Whether a level for clusters of CPUs stands above the threads of a core.
    Clusters {
        None: "no level",
        Level: "a level",
        Flagged: "a level with a flag of its own",
    }

    /// What a group knows of the level that it stands for.
    GroupFlags {
        None: "nothing",
        OfBuiltChild: "the flags of the child that it was made from",
        SmtKept: "the same, and that it is a core if the child in between goes away",
        OfPresentChild: "the flags of the child that is left when levels have gone away",
    }

    /// How many more tasks one node may have than another.
    NumaImbalance {
        NotByDomain: "no domain says",
        QuarterOrLlcs: "a quarter of the node's CPUs, or as many as it has last-level caches",
        EighthOrLlcs: "an eighth of the node's CPUs or as many as it has last-level caches, at least one",
    }

    /// Whether a level for threads stands below all others on a machine whose cores have but one.
    SmtLevel {
        Always: "it stands and goes away when domains are attached",
        IfThreads: "it is left out",
    }

    /// How flags are shown.
    FlagsShown {
        NumberFromLoadBalance: "a number whose lowest bit is SD_LOAD_BALANCE",
        NumberFromNewidle: "a number whose lowest bit is SD_BALANCE_NEWIDLE",
        PackageNames: "names, SD_SHARE_PKG_RESOURCES among them",
        CacheNames: "names, SD_SHARE_LLC among them",
    }

    /// Which files show a domain.
    FilesShown {
        WithLoadIndexes: "its numbers, load indexes among them",
        Numbers: "its numbers",
        WithGroupFlags: "its numbers and the flags of its first group",
        WithLevel: "its numbers, the flags of its first group and its level",
    }

    /// Where those files are.
    FilesPlace {
        Sysctl: "/proc/sys/kernel/sched_domain",
        Debugfs: "/sys/kernel/debug/sched/domains",
    }

    /// How `/proc/schedstat` is laid out.
    SchedstatLayout {
        Version15: "version 15: of each domain the idle first, then the busy, then the newly idle",
        Version16: "version 16: the busy first",
        Version17: "version 17: the busy first, with domains' names and imbalances by kind",
    }

    /// What the level of a node's CPUs is called.
    PackageName {
        Die: "DIE",
        Pkg: "PKG",
    }
}

/// How one kernel builds its domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainRules {
    /// How much less often a busy CPU balances (`busy_factor`).
    pub busy_factor: u32,
    /// By how many percent the busiest must exceed the local group where caches are not shared (`imbalance_pct`).
    pub imbalance_pct: u32,
    /// Whether `SD_LOAD_BALANCE` is there and set.
    pub load_balance_flag: bool,
    /// Whether overlapping domains have a flag beside `SD_NUMA`.
    pub overlap_flag: bool,
    /// See [`SmtCapacity`].
    pub smt_capacity: SmtCapacity,
    /// See [`AsymSpreading`].
    pub asym_spreading: AsymSpreading,
    /// See [`AsymDetection`].
    pub asym_detection: AsymDetection,
    /// See [`PackingLevels`].
    pub packing_levels: PackingLevels,
    /// See [`SiblingPriority`].
    pub sibling_priority: SiblingPriority,
    /// See [`AsymWakeup`].
    pub asym_wakeup: AsymWakeup,
    /// See [`ReclaimDistance`].
    pub reclaim_distance: ReclaimDistance,
    /// See [`NumaLevels`].
    pub numa_levels: NumaLevels,
    /// See [`OverlapGroups`].
    pub overlap_groups: OverlapGroups,
    /// See [`OverlapCapacity`].
    pub overlap_capacity: OverlapCapacity,
    /// See [`NeedsGroups`].
    pub needs_groups: NeedsGroups,
    /// See [`Clusters`].
    pub clusters: Clusters,
    /// See [`GroupFlags`].
    pub group_flags: GroupFlags,
    /// See [`NumaImbalance`].
    pub numa_imbalance: NumaImbalance,
    /// See [`SmtLevel`].
    pub smt_level: SmtLevel,
    /// See [`FlagsShown`].
    pub flags_shown: FlagsShown,
    /// See [`FilesShown`].
    pub files_shown: FilesShown,
    /// See [`FilesPlace`].
    pub files_place: FilesPlace,
    /// See [`SchedstatLayout`].
    pub schedstat_layout: SchedstatLayout,
    /// See [`PackageName`].
    pub package_name: PackageName,
}

impl DomainRules {
    /// The rules before the first of [`DOMAIN_CHANGES`](super::DOMAIN_CHANGES): those of v4.18.
    pub const BASE: DomainRules = DomainRules {
        busy_factor: 32,
        imbalance_pct: 125,
        load_balance_flag: true,
        overlap_flag: true,
        smt_capacity: SmtCapacity::SharedGain,
        asym_spreading: AsymSpreading::LikeOthers,
        asym_detection: AsymDetection::ByPlatform,
        packing_levels: PackingLevels::ThreadsAndCores,
        sibling_priority: SiblingPriority::Divided,
        asym_wakeup: AsymWakeup::Searches,
        reclaim_distance: ReclaimDistance::Fixed,
        numa_levels: NumaLevels::SeenByFirstNode,
        overlap_groups: OverlapGroups::ChildOfSibling,
        overlap_capacity: OverlapCapacity::RunningSums,
        needs_groups: NeedsGroups::Listed,
        clusters: Clusters::None,
        group_flags: GroupFlags::None,
        numa_imbalance: NumaImbalance::NotByDomain,
        smt_level: SmtLevel::Always,
        flags_shown: FlagsShown::NumberFromLoadBalance,
        files_shown: FilesShown::WithLoadIndexes,
        files_place: FilesPlace::Sysctl,
        schedstat_layout: SchedstatLayout::Version15,
        package_name: PackageName::Die,
    };

    /// Each rule with its name, for listing and for diffs.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let text = |rule: &str| rule.to_string();
        vec![
            ("busy factor", self.busy_factor.to_string()),
            ("imbalance_pct above the cache", self.imbalance_pct.to_string()),
            ("SD_LOAD_BALANCE", text(if self.load_balance_flag { "set" } else { "not there" })),
            ("SD_OVERLAP", text(if self.overlap_flag { "set on NUMA levels" } else { "not there" })),
            ("capacity of threads", text(self.smt_capacity.describe())),
            ("spreading over capacities", text(self.asym_spreading.describe())),
            ("different capacities", text(self.asym_detection.describe())),
            ("packing on preferred CPUs", text(self.packing_levels.describe())),
            ("priority of threads", text(self.sibling_priority.describe())),
            ("wakeups below different capacities", text(self.asym_wakeup.describe())),
            ("reclaim distance", text(self.reclaim_distance.describe())),
            ("NUMA levels", text(self.numa_levels.describe())),
            ("groups of nodes", text(self.overlap_groups.describe())),
            ("capacities in groups of nodes", text(self.overlap_capacity.describe())),
            ("flags without meaning in one group", text(self.needs_groups.describe())),
            ("clusters", text(self.clusters.describe())),
            ("group flags", text(self.group_flags.describe())),
            ("imbalance between nodes", text(self.numa_imbalance.describe())),
            ("level of threads", text(self.smt_level.describe())),
            ("flags shown", text(self.flags_shown.describe())),
            ("files shown", text(self.files_shown.describe())),
            ("files in", text(self.files_place.describe())),
            ("/proc/schedstat", text(self.schedstat_layout.describe())),
            ("level of a node", text(self.package_name.describe())),
        ]
    }
}
