//! What a running kernel was set to: the switches of `features.h`, tunables, how it preempts.
//!
//! Must not know: where that was read.

use super::name::find_feature;
use super::{Feature, FeatureSupport, Generation, Tunable, TunableScaling};
use crate::core::rules::Hrtick;
use crate::fair::rules::Reschedule;

/// Settings of a kernel that ran, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSettings {
    features: Vec<(Feature, bool)>,
    tunables: Vec<(Tunable, u64)>,
    scaling: Option<TunableScaling>,
    /// Whether fair tasks are asked to go lazily, or at once.
    lazy: Option<bool>,
}

impl KernelSettings {
    /// Reads one of the kernel's files, `features`, `preempt` or a tunable's, below `debug/sched` or with `sched_` before its name
    /// as a sysctl; others, and what the model does not know, are left out.
    pub fn read_file(&mut self, name: &str, text: &str) {
        match name {
            "features" => {
                let known = text.split_whitespace().filter_map(find_feature);
                // What no decision asks for is no setting.
                let decides =
                    |(feature, _): &(Feature, bool)| feature.support() != FeatureSupport::NoDecision;
                self.features.extend(known.filter(decides));
            }
            // `full (lazy)`: the one in force stands in brackets. None and voluntary differ from full in the kernel's own code.
            "preempt" if text.contains("lazy") => self.lazy = Some(text.contains("(lazy)")),
            "tunable_scaling" => {
                self.scaling = text.trim().parse().ok().and_then(TunableScaling::from_number);
            }
            _ => self.tunables.extend(tunable(name, text.trim())),
        }
    }

    /// Whether a file is one whose number no kernel takes: tunables are of 32 bits.
    pub fn is_impossible(name: &str, text: &str) -> bool {
        let text = text.trim();
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        tunable(name, "0").is_some() && is_number && text.parse::<u32>().is_err()
    }

    /// Those that `kernel` does not come with on `nr_cpus` CPUs.
    #[must_use]
    pub fn other_than(&self, kernel: &Generation, nr_cpus: usize) -> KernelSettings {
        let mut scaled = kernel.clone();
        scaled.tunables.scaling = self.scaling.unwrap_or(kernel.tunables.scaling);
        let own = |tunable| scaled.tunables.effective(tunable, nr_cpus);
        let lazy = kernel.fair.reschedule == Reschedule::Lazily;
        let features = self.features.iter().copied();
        let tunables = self.tunables.iter().copied();
        KernelSettings {
            features: features.filter(|&(name, on)| kernel.features.enabled(name) != on).collect(),
            tunables: tunables.filter(|&(tunable, value)| own(tunable) != Some(value)).collect(),
            scaling: self.scaling.filter(|&scaling| scaling != kernel.tunables.scaling),
            lazy: self.lazy.filter(|&is| is != lazy),
        }
    }
}

/// A tunable by its file; those in us are given in ns.
fn tunable(name: &str, text: &str) -> Option<(Tunable, u64)> {
    let value = text.parse::<u64>().ok()?;
    let (name, value) = match name.strip_suffix("_us") {
        Some(stem) => (format!("{stem}_ns"), value.saturating_mul(1000)),
        None => (name.to_string(), value),
    };
    let known = Tunable::ALL.iter().find(|tunable| tunable.name() == name)?;
    Some((*known, value))
}

impl Generation {
    /// The same kernel set as one that ran on `nr_cpus` CPUs, but for what its own name sets, and what that changed.
    pub fn set_as(mut self, settings: &KernelSettings, nr_cpus: usize) -> (Generation, Vec<String>) {
        let plain = Generation::fold(String::new(), self.applied.clone());
        let mut changed = Vec::new();
        for &(feature, enabled) in &settings.features {
            let named = self.features.enabled(feature) != plain.features.enabled(feature);
            let differs = self.features.has(feature) && self.features.enabled(feature) != enabled;
            if differs && !named && self.follows(feature) {
                self.set_feature(feature, enabled);
                changed.push(format!("{}{feature}", if enabled { "" } else { "NO_" }));
            }
        }
        if let Some(scaling) = settings.scaling.filter(|_| self.tunables.scaling == plain.tunables.scaling) {
            self.tunables.scaling = scaling;
        }
        for &(tunable, value) in &settings.tunables {
            let own = self.tunables.effective(tunable, nr_cpus);
            if own.is_some_and(|own| own != value) && self.tunables.set_by_user(tunable).is_none() {
                self.tunables.set(tunable, value);
                changed.push(format!("{}={value}", tunable.name()));
            }
        }
        if let Some(lazy) = settings.lazy {
            let rule = if lazy { Reschedule::Lazily } else { Reschedule::AtOnce };
            if std::mem::replace(&mut self.fair.reschedule, rule) != rule {
                changed.push(if lazy { "preempt=lazy" } else { "preempt=full" }.to_string());
            }
        }
        (self, changed)
    }

    /// The features that a kernel which ran had otherwise, and which the model keeps at their defaults.
    pub fn leaves(&self, settings: &KernelSettings) -> Vec<String> {
        let other = settings.features.iter().filter(|(feature, enabled)| {
            self.features.has(*feature) && self.features.enabled(*feature) != *enabled
        });
        let left = other.filter(|(feature, _)| !self.follows(*feature));
        left.map(|(feature, enabled)| format!("{}{feature}", if *enabled { "" } else { "NO_" })).collect()
    }

    /// Whether switching the feature alters what the model does as it alters what the kernel does.
    fn follows(&self, feature: Feature) -> bool {
        let left = feature == Feature::Hrtick && self.core.hrtick == Hrtick::NotFollowed;
        feature.support() == FeatureSupport::Modelled && !left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name's kernel on four CPUs, set as these files say.
    fn set(name: &str, files: &[(&str, &str)]) -> (Generation, Vec<String>) {
        let mut settings = KernelSettings::default();
        files.iter().for_each(|(name, text)| settings.read_file(name, text));
        name.parse::<Generation>().expect(name).set_as(&settings, 4)
    }

    #[test]
    fn a_kernel_is_set_as_the_one_that_ran() {
        let (kernel, changed) = set(
            "debian-6.12",
            &[
                ("features", "PLACE_LAG NO_RUN_TO_PARITY NO_DELAY_DEQUEUE NO_LAST_BUDDY NO_UTIL_EST HRTICK"),
                ("base_slice_ns", "12000000\n"),
                ("cfs_bandwidth_slice_us", "3000"),
                ("migration_cost_ns", "500000"),
                ("preempt", "none (voluntary) full"),
                ("nr_migrate", "32"),
            ],
        );
        assert_eq!(
            changed,
            [
                "NO_RUN_TO_PARITY",
                "NO_DELAY_DEQUEUE",
                "base_slice_ns=12000000",
                "cfs_bandwidth_slice_ns=3000000"
            ]
        );
        assert!(!kernel.features.enabled(Feature::RunToParity) && kernel.features.enabled(Feature::PlaceLag));
        assert!(!kernel.features.has(Feature::LastBuddy), "what it does not have it is not given");
        assert!(kernel.features.enabled(Feature::UtilEst), "what is not modelled stays");
        assert_eq!(kernel.tunables.effective(Tunable::BaseSlice, 64), Some(12_000_000));
        assert_eq!(kernel.name(), "debian-6.12");
    }

    #[test]
    fn what_the_model_does_not_follow_is_told() {
        let mut settings = KernelSettings::default();
        settings.read_file("features", "NO_UTIL_EST NEXT_BUDDY HRTICK NO_PLACE_LAG");
        let left = |name: &str| name.parse::<Generation>().expect(name).leaves(&settings);
        assert_eq!(left("v6.12"), ["NO_UTIL_EST", "HRTICK"]);
        assert_eq!(left("v7.2"), ["NO_UTIL_EST"]);
        assert_eq!(set("v7.2", &[("features", "NEXT_BUDDY")]).1, ["NEXT_BUDDY"]);
    }

    #[test]
    fn values_that_the_machine_explains_change_nothing() {
        let ordinary = [("base_slice_ns", "2100000"), ("tunable_scaling", "1"), ("preempt", "full (lazy)")];
        assert_eq!(set("debian-7.2", &ordinary).1, [""; 0]);
        assert_eq!(set("debian-7.2", &[("base_slice_ns", "700000"), ("tunable_scaling", "0")]).1, [""; 0]);
    }

    #[test]
    fn how_it_preempts_is_told_where_there_is_a_choice() {
        let rule = |name: &str, text| set(name, &[("preempt", text)]).0.fair.reschedule;
        assert_eq!(rule("debian-7.2", "(full) lazy"), Reschedule::AtOnce);
        assert_eq!(rule("v6.14", "none voluntary full (lazy)"), Reschedule::Lazily);
        assert_eq!(rule("debian-6.12", "none voluntary (full)"), Reschedule::AtOnce);
    }

    /// v6.12 asks for 0.75 ms and 7.2 for 0.7, each times three on four CPUs.
    #[test]
    fn what_a_kernel_comes_with_is_no_setting() {
        let mut settings = KernelSettings::default();
        settings.read_file("features", "PLACE_LAG NO_RUN_TO_PARITY NO_NI_RATE");
        settings.read_file("base_slice_ns", "2250000");
        settings.read_file("preempt", "(full) lazy");
        let own = "v6.12".parse::<Generation>().expect("a kernel");
        let other = "v7.2".parse::<Generation>().expect("a kernel");
        assert_eq!(other.set_as(&settings.other_than(&own, 4), 4).1, ["NO_RUN_TO_PARITY"]);
    }

    #[test]
    fn what_a_name_sets_stands() {
        let files = [("features", "RUN_TO_PARITY"), ("base_slice_ns", "2100000")];
        let (kernel, changed) = set("v6.12+NO_RUN_TO_PARITY,base_slice_ns=9000000", &files);
        assert_eq!(changed, [""; 0]);
        assert!(!kernel.features.enabled(Feature::RunToParity));
        assert_eq!(kernel.tunables.effective(Tunable::BaseSlice, 4), Some(9_000_000));
    }
}
