//! With what a commit that is not modelled can matter.
//!
//! Must not know: machines, workloads, commits.

use super::feature::Feature;

/// What must be there for a commit that is not modelled to matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MattersWith {
    /// Several memory nodes.
    Nodes,
    /// Several last-level caches.
    Caches,
    /// Cores of several threads.
    Smt,
    /// CPUs of different capacities.
    DifferentCpus,
    /// CPUs that are preferred to others.
    PreferredCpus,
    /// Wakeups that go by energy.
    EnergyModel,
    /// CPUs whose frequency a governor chooses.
    Frequencies,
    /// Control groups, or sessions' own.
    Groups,
    /// Control groups with a quota.
    Quotas,
    /// Threads with a policy, a nice level or a slice of their own.
    OwnScheduling,
    /// Entities whose weight changes: those of groups, and threads with a nice level of their own.
    ChangedWeights,
    /// A kernel without the commit on which this feature is on.
    Switched(Feature),
    /// Kernels between which this other commit does not lie, too. The model takes both as one step.
    Apart(&'static str),
}

impl MattersWith {
    /// Where that is, in a clause; empty where it is about the two kernels.
    fn clause(self) -> &'static str {
        match self {
            MattersWith::Nodes => "on several memory nodes",
            MattersWith::Caches => "on several last-level caches",
            MattersWith::Smt => "on cores of several threads",
            MattersWith::DifferentCpus => "on CPUs of different capacities",
            MattersWith::PreferredCpus => "on CPUs that are preferred to others",
            MattersWith::EnergyModel => "where wakeups go by energy",
            MattersWith::Frequencies => "where a governor chooses frequencies",
            MattersWith::Groups => "in control groups",
            MattersWith::Quotas => "under a quota",
            MattersWith::OwnScheduling => "for threads with a policy, nice level or slice of their own",
            MattersWith::ChangedWeights => "where weights change",
            MattersWith::Switched(Feature::Hrtick) => "with HRTICK",
            MattersWith::Switched(Feature::NextBuddy) => "with NEXT_BUDDY",
            MattersWith::Switched(_) | MattersWith::Apart(_) => "",
        }
    }
}

/// With what a commit can matter, as a clause that follows a verb; empty where it can anywhere.
pub(super) fn conditions(with: &[MattersWith]) -> String {
    with.iter()
        .map(|with| with.clause())
        .filter(|clause| !clause.is_empty())
        .map(|clause| format!(" {clause}"))
        .collect()
}
