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
    /// The same, and the default is all that there is to it: no decision of the model asks for it.
    NoDecision,
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
    /// Runtime of deadline tasks ends by a timer of its own.
    HrtickDl = "HRTICK_DL", NoDecision;
    /// The tick tests a slice that a timer ends.
    DoubleTick = "DOUBLE_TICK", NoDecision;
    /// A CPU's capacity is less by the time that it does not run tasks.
    NontaskCapacity = "NONTASK_CAPACITY", NoDecision;
    /// A warning if a queue's clock is set twice under one lock.
    WarnDoubleClock = "WARN_DOUBLE_CLOCK", NoDecision;
    /// Overloaded CPUs are interrupted to push their real-time tasks, instead of locking their queues.
    RtPushIpi = "RT_PUSH_IPI", NoDecision;
    /// Balancing leaves tasks of little load.
    LbMin = "LB_MIN", NoDecision;
    /// Averages of a task that comes to a queue are aged for the time without one.
    AttachAgeLoad = "ATTACH_AGE_LOAD", NoDecision;
    /// A warning if a reschedule is pending for long.
    LatencyWarn = "LATENCY_WARN", NoDecision;
    /// The tick of a `NOHZ_FULL` CPU goes on for a task with a quota.
    HzBw = "HZ_BW", NoDecision;
    /// Sums of weighted vruntimes are watched for overflow, and weights shrink then.
    ParanoidAvg = "PARANOID_AVG", NoDecision;
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

    /// Those on which decisions hang.
    pub(super) fn that_decide(mut self) -> FeatureSet {
        let others = Feature::ALL.iter().filter(|feature| feature.support() == FeatureSupport::NoDecision);
        others.for_each(|&feature| self.remove(feature));
        self
    }

    /// Whether `feature` is there and on (`sched_feat()`).
    pub const fn enabled(self, feature: Feature) -> bool {
        self.enabled & (1 << feature as u64) != 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Generation;

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

    /// kernel/sched/features.h of releases whose sources were read: the model's name of the kernel, the release, the switches with
    /// their defaults on x86 without `PREEMPT_RT`. 5.10, 6.12, 7.2 and 7.3 are Debian's sources, 6.1 and 6.5 booted kernels' own files,
    /// the others public copies of stable releases.
    #[rustfmt::skip]
    const FEATURES_H: &[(&str, &str, &str)] = &[
        (
            "debian-5.10",
            "5.10.223",
            "GENTLE_FAIR_SLEEPERS START_DEBIT NO_NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY WAKEUP_PREEMPTION NO_HRTICK \
             NO_DOUBLE_TICK NONTASK_CAPACITY TTWU_QUEUE NO_SIS_AVG_CPU SIS_PROP NO_WARN_DOUBLE_CLOCK RT_PUSH_IPI \
             NO_RT_RUNTIME_SHARE NO_LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST UTIL_EST_FASTUP ALT_PERIOD \
             BASE_SLICE",
        ),
        (
            "v5.15",
            "5.15.24",
            "GENTLE_FAIR_SLEEPERS START_DEBIT NO_NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY WAKEUP_PREEMPTION NO_HRTICK \
             NO_HRTICK_DL NO_DOUBLE_TICK NONTASK_CAPACITY TTWU_QUEUE SIS_PROP NO_WARN_DOUBLE_CLOCK RT_PUSH_IPI \
             NO_RT_RUNTIME_SHARE NO_LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST UTIL_EST_FASTUP NO_LATENCY_WARN \
             ALT_PERIOD BASE_SLICE",
        ),
        (
            "debian-6.1",
            "6.1.192",
            "GENTLE_FAIR_SLEEPERS START_DEBIT NO_NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY WAKEUP_PREEMPTION NO_HRTICK \
             NO_HRTICK_DL NO_DOUBLE_TICK NONTASK_CAPACITY TTWU_QUEUE NO_SIS_PROP SIS_UTIL NO_WARN_DOUBLE_CLOCK NO_RT_PUSH_IPI \
             NO_RT_RUNTIME_SHARE NO_LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST UTIL_EST_FASTUP NO_LATENCY_WARN \
             NI_RANDOM ALT_PERIOD BASE_SLICE",
        ),
        (
            "v6.5",
            "6.5.0",
            "GENTLE_FAIR_SLEEPERS START_DEBIT NO_NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY WAKEUP_PREEMPTION NO_HRTICK \
             NO_HRTICK_DL NO_DOUBLE_TICK NONTASK_CAPACITY TTWU_QUEUE NO_SIS_PROP SIS_UTIL NO_WARN_DOUBLE_CLOCK RT_PUSH_IPI \
             NO_RT_RUNTIME_SHARE NO_LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST UTIL_EST_FASTUP NO_LATENCY_WARN \
             ALT_PERIOD BASE_SLICE",
        ),
        (
            "v6.6.9",
            "6.6.9",
            "PLACE_LAG PLACE_DEADLINE_INITIAL RUN_TO_PARITY NO_NEXT_BUDDY CACHE_HOT_BUDDY WAKEUP_PREEMPTION NO_HRTICK \
             NO_HRTICK_DL NO_DOUBLE_TICK NONTASK_CAPACITY TTWU_QUEUE NO_SIS_PROP SIS_UTIL NO_WARN_DOUBLE_CLOCK RT_PUSH_IPI \
             NO_RT_RUNTIME_SHARE NO_LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST UTIL_EST_FASTUP NO_LATENCY_WARN \
             HZ_BW",
        ),
        (
            "debian-6.12",
            "6.12.117",
            "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY PREEMPT_SHORT NO_NEXT_BUDDY PICK_BUDDY \
             CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO WAKEUP_PREEMPTION NO_HRTICK NO_HRTICK_DL NO_DOUBLE_TICK \
             NONTASK_CAPACITY TTWU_QUEUE SIS_UTIL NO_WARN_DOUBLE_CLOCK NO_RT_PUSH_IPI NO_RT_RUNTIME_SHARE NO_LB_MIN \
             ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST NO_LATENCY_WARN NI_RANDOM",
        ),
        (
            "v6.18",
            "6.18.2",
            "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY PREEMPT_SHORT NO_NEXT_BUDDY PICK_BUDDY \
             CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO WAKEUP_PREEMPTION NO_HRTICK NO_HRTICK_DL NONTASK_CAPACITY TTWU_QUEUE \
             SIS_UTIL NO_WARN_DOUBLE_CLOCK RT_PUSH_IPI NO_RT_RUNTIME_SHARE NO_LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT \
             WA_BIAS UTIL_EST NO_LATENCY_WARN",
        ),
        (
            // 7.1.5 has RT_PUSH_IPI off, by a back-port of dd29c017aed6.
            "v7.1",
            "7.1.5",
            "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY PREEMPT_SHORT NO_NEXT_BUDDY PICK_BUDDY \
             CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO NO_PARANOID_AVG WAKEUP_PREEMPTION HRTICK HRTICK_DL NONTASK_CAPACITY \
             TTWU_QUEUE SIS_UTIL NO_WARN_DOUBLE_CLOCK RT_PUSH_IPI NO_RT_RUNTIME_SHARE NO_LB_MIN ATTACH_AGE_LOAD WA_IDLE \
             WA_WEIGHT WA_BIAS UTIL_EST NO_LATENCY_WARN NI_RANDOM NI_RATE",
        ),
        (
            "debian-7.2",
            "7.2.13",
            "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY PREEMPT_SHORT NO_NEXT_BUDDY PICK_BUDDY \
             CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO NO_PARANOID_AVG WAKEUP_PREEMPTION HRTICK HRTICK_DL NONTASK_CAPACITY \
             TTWU_QUEUE SIS_UTIL NO_WARN_DOUBLE_CLOCK NO_RT_PUSH_IPI NO_RT_RUNTIME_SHARE NO_LB_MIN ATTACH_AGE_LOAD WA_IDLE \
             WA_WEIGHT WA_BIAS UTIL_EST NO_LATENCY_WARN NI_RANDOM NI_RATE",
        ),
        (
            "v7.3",
            "7.3.4",
            "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY PREEMPT_SHORT NO_NEXT_BUDDY PICK_BUDDY \
             CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO NO_PARANOID_AVG WAKEUP_PREEMPTION HRTICK HRTICK_DL NONTASK_CAPACITY \
             TTWU_QUEUE SIS_UTIL NO_WARN_DOUBLE_CLOCK NO_RT_PUSH_IPI NO_RT_RUNTIME_SHARE NO_LB_MIN ATTACH_AGE_LOAD WA_IDLE \
             WA_WEIGHT WA_BIAS UTIL_EST NO_LATENCY_WARN NI_RANDOM NI_RATE",
        ),
    ];

    #[test]
    fn a_kernels_features_are_those_of_its_features_h() {
        for (kernel, release, switches) in FEATURES_H {
            let features = kernel.parse::<Generation>().expect(kernel).features;
            let here = Feature::ALL.iter().filter(|&&feature| features.has(feature));
            let named = |&feature: &Feature| match features.enabled(feature) {
                true => feature.name().to_string(),
                false => format!("NO_{feature}"),
            };
            let here = here.map(named).collect::<BTreeSet<_>>();
            let there = switches.split_whitespace().map(str::to_string).collect::<BTreeSet<_>>();
            let differ = here.symmetric_difference(&there).collect::<Vec<_>>();
            assert!(differ.is_empty(), "{kernel} and {release} differ in {differ:?}");
        }
    }
}
