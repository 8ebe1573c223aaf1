//! `kernel/sched/features.h`: switches that each kernel has, with their defaults.

use std::fmt;

/// Declares every feature once; the enum, the list, the names and the printing follow from it.
macro_rules! features {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $support:ident;)*) => {
        /// A scheduler feature as `features.h` lists it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Feature { $($(#[$doc])* $variant,)* }

        impl Feature {
            /// Every feature that Fairlab knows of.
            pub const ALL: &[Feature] = &[$(Feature::$variant,)*];

            /// Its name in `/sys/kernel/debug/sched/features`.
            pub const fn name(self) -> &'static str {
                match self { $(Feature::$variant => $name,)* }
            }

            /// Whether the model acts on it.
            pub const fn support(self) -> FeatureSupport {
                match self { $(Feature::$variant => FeatureSupport::$support,)* }
            }
        }
    };
}

/// Whether the model acts on a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureSupport {
    /// Switching it changes decisions as in the kernel.
    Modelled,
    /// Known by name and default; asking for anything but the default is refused.
    NotModelled,
}

features! {
    /// A sleeper is placed half a latency before the queue's minimum instead of a whole one.
    GentleFairSleepers = "GENTLE_FAIR_SLEEPERS", Modelled;
    /// A sleeper is placed before the queue's minimum at all (only while lag placement was being introduced).
    FairSleepers = "FAIR_SLEEPERS", Modelled;
    /// A new task starts one slice late.
    StartDebit = "START_DEBIT", Modelled;
    /// A woken task is preferred at the next pick.
    NextBuddy = "NEXT_BUDDY", Modelled;
    /// A task preempted by a wakeup is preferred afterwards.
    LastBuddy = "LAST_BUDDY", Modelled;
    /// The balancer counts buddies as cache-hot.
    CacheHotBuddy = "CACHE_HOT_BUDDY", Modelled;
    /// Wakeups may preempt the running task.
    WakeupPreemption = "WAKEUP_PREEMPTION", Modelled;
    /// A CPU's real-time tasks may use what those of other CPUs leave of their limit.
    RtRuntimeShare = "RT_RUNTIME_SHARE", Modelled;
    /// Slices end by a timer of their own instead of by the tick.
    Hrtick = "HRTICK", Modelled;
    /// Balancing compares loads with a history of them.
    LbBias = "LB_BIAS", Modelled;
    /// The idle scan is given up when idle times are short against its cost.
    SisAvgCpu = "SIS_AVG_CPU", Modelled;
    /// Remote wakeups are queued by the target CPU itself.
    TtwuQueue = "TTWU_QUEUE", Modelled;
    /// The idle scan is limited in proportion to the average idle time.
    SisProp = "SIS_PROP", Modelled;
    /// The idle scan is limited by the cache's utilisation.
    SisUtil = "SIS_UTIL", Modelled;
    /// Utilisation estimates survive sleep.
    UtilEst = "UTIL_EST", NotModelled;
    /// Utilisation estimates rise at once.
    UtilEstFastup = "UTIL_EST_FASTUP", NotModelled;
    /// `wake_affine` looks at idle CPUs.
    WaIdle = "WA_IDLE", Modelled;
    /// `wake_affine` compares loads.
    WaWeight = "WA_WEIGHT", Modelled;
    /// `wake_affine` biases its comparison towards the waking CPU.
    WaBias = "WA_BIAS", Modelled;
    /// The scheduling period counts tasks of the whole hierarchy.
    AltPeriod = "ALT_PERIOD", Modelled;
    /// Slices are at least the minimal granularity.
    BaseSlice = "BASE_SLICE", Modelled;
    /// A woken or moved entity keeps its lag.
    PlaceLag = "PLACE_LAG", Modelled;
    /// A new task's first slice is half a slice.
    PlaceDeadlineInitial = "PLACE_DEADLINE_INITIAL", Modelled;
    /// A running entity keeps the CPU until its slice is used or it is no longer eligible.
    RunToParity = "RUN_TO_PARITY", Modelled;
    /// A moved entity keeps its distance to its deadline.
    PlaceRelDeadline = "PLACE_REL_DEADLINE", Modelled;
    /// An eligible entity with a shorter request may preempt one that is protected.
    PreemptShort = "PREEMPT_SHORT", Modelled;
    /// The entity that was last in a group is preferred (as `NEXT_BUDDY`, for sleep and yield only).
    PickBuddy = "PICK_BUDDY", Modelled;
    /// A sleeper that has run ahead stays queued until its lag has burnt off.
    DelayDequeue = "DELAY_DEQUEUE", Modelled;
    /// A delayed sleeper comes back without credit.
    DelayZero = "DELAY_ZERO", Modelled;
    /// A CPU that goes idle searches a level with the chance of success that this has had.
    NiRandom = "NI_RANDOM", Modelled;
    /// That chance is greater if such searches are rare.
    NiRate = "NI_RATE", Modelled;
    /// The pick and the preemption rules are EEVDF's (only while EEVDF was being introduced).
    Eevdf = "EEVDF", Modelled;
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Which features a generation has, and which of them are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureSet {
    present: u64,
    enabled: u64,
}

impl FeatureSet {
    /// Gives the generation `feature`, on or off by default.
    pub(super) const fn with(mut self, feature: Feature, enabled: bool) -> FeatureSet {
        self.present |= 1 << feature as u64;
        self.set(feature, enabled);
        self
    }

    /// Switches a feature.
    pub(super) const fn set(&mut self, feature: Feature, enabled: bool) {
        let bit = 1 << feature as u64;
        self.enabled = if enabled { self.enabled | bit } else { self.enabled & !bit };
    }

    /// Takes `feature` out of the generation.
    pub(super) const fn remove(&mut self, feature: Feature) {
        self.set(feature, false);
        self.present &= !(1 << feature as u64);
    }

    /// Whether the generation has `feature` at all.
    pub const fn has(self, feature: Feature) -> bool {
        self.present & (1 << feature as u64) != 0
    }

    /// Whether `feature` is there and on (`sched_feat()`).
    pub const fn enabled(self, feature: Feature) -> bool {
        self.enabled & (1 << feature as u64) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_present_and_on_or_off() {
        let mut features =
            FeatureSet::default().with(Feature::PlaceLag, true).with(Feature::NextBuddy, false);
        assert!(features.enabled(Feature::PlaceLag) && features.has(Feature::NextBuddy));
        assert!(!features.enabled(Feature::NextBuddy) && !features.has(Feature::LastBuddy));
        features.remove(Feature::PlaceLag);
        assert!(!features.has(Feature::PlaceLag) && !features.enabled(Feature::PlaceLag));
    }

    #[test]
    fn names_are_unique_and_fit_the_set() {
        assert!(Feature::ALL.len() <= 64);
        for (index, feature) in Feature::ALL.iter().enumerate() {
            assert_eq!(*feature as usize, index);
            assert!(Feature::ALL[..index].iter().all(|other| other.name() != feature.name()));
        }
    }
}
