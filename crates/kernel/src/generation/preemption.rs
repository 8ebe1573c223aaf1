//! Preemption models as settings of a kernel: `v6.19+PREEMPT_NONE`, `+PREEMPT_VOLUNTARY`, `+PREEMPT`, `+PREEMPT_LAZY`.
//!
//! The model is chosen when a kernel is built or booted. It decides where kernel work is left, whether fair tasks are asked
//! to make way lazily, and how many tasks an idle CPU takes at once (`CONFIG_PREEMPTION`).
//!
//! Departs: 7dadeaa6e851 (v7.0) keeps only `PREEMPT` and `PREEMPT_LAZY` on architectures that have both. Here every release
//! may have each model, as on other architectures or with that commit reverted.
//!
//! Must not know: how kernel work is left.

use fairlab_event::spelling::NameError;

use super::name::refuse;
use super::{Generation, LOG, PreemptionModel};
use crate::balance::rules::{BalanceRules, NewidlePull};
use crate::fair::rules::Reschedule;

/// What lazy preemption came with.
const LAZY: &str = "7c70cb94d29c";

/// What says that a kernel can be preempted in its work whatever is chosen at boot.
const PREEMPTIBLE: &str = "preemptible";

impl PreemptionModel {
    /// Each model by the kernel's own name for it, less `CONFIG_`.
    pub(super) const NAMES: [(&str, PreemptionModel); 4] = [
        ("PREEMPT_NONE", PreemptionModel::None),
        ("PREEMPT_VOLUNTARY", PreemptionModel::Voluntary),
        ("PREEMPT", PreemptionModel::Full),
        ("PREEMPT_LAZY", PreemptionModel::Lazy),
    ];

    /// The model of this name, such as `PREEMPT_LAZY`.
    pub fn named(name: &str) -> Option<PreemptionModel> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, model)| *model)
    }

    /// Its name, such as `PREEMPT_LAZY`.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, model)| *model == self).map_or("", |(name, _)| name)
    }

    /// All of them, as names of kernels have them.
    pub fn names() -> String {
        Self::NAMES.map(|(name, _)| format!("+{name}")).join(", ")
    }

    /// Whether kernel work is left wherever a reschedule is asked for at once.
    pub const fn preempts_kernel(self) -> bool {
        matches!(self, PreemptionModel::Full | PreemptionModel::Lazy)
    }
}

impl Generation {
    /// The same kernel, built with `model`.
    pub(super) fn build_with(&mut self, model: PreemptionModel) -> Result<(), NameError> {
        let has =
            |id: &str| LOG.iter().zip(&self.applied).any(|(change, held)| *held && change.is_called(id));
        if model == PreemptionModel::Lazy && !has(LAZY) {
            return refuse(
                format!("kernel '{}' has no PREEMPT_LAZY", self.name),
                format!("it is from v6.13 on ({LAZY})"),
            );
        }
        let preemptible = model.preempts_kernel() || has(PREEMPTIBLE);
        self.core.preemption_model = model;
        self.fair.reschedule = match model {
            PreemptionModel::Lazy => Reschedule::Lazily,
            _ => Reschedule::AtOnce,
        };
        self.balance.newidle_pull =
            if preemptible { NewidlePull::OneTask } else { BalanceRules::BASE.newidle_pull };
        Ok(())
    }

    /// The model that its name asks for, if that is not the one that `plain`, its changes alone, comes with.
    pub(super) fn model_built_with(&self, plain: &Generation) -> Option<PreemptionModel> {
        let model = self.core.preemption_model;
        (model != plain.core.preemption_model).then_some(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Generation {
        name.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    #[test]
    fn a_model_is_three_rules() {
        let of = |name: &str| {
            let kernel = parse(name);
            (kernel.core.preemption_model, kernel.fair.reschedule, kernel.balance.newidle_pull)
        };
        let whole = NewidlePull::ByImbalance;
        assert_eq!(of("v6.19"), (PreemptionModel::Voluntary, Reschedule::AtOnce, whole));
        assert_eq!(of("v6.19+PREEMPT_NONE"), (PreemptionModel::None, Reschedule::AtOnce, whole));
        assert_eq!(of("v6.19+PREEMPT"), (PreemptionModel::Full, Reschedule::AtOnce, NewidlePull::OneTask));
        let lazy = (PreemptionModel::Lazy, Reschedule::Lazily, NewidlePull::OneTask);
        assert_eq!((of("v6.19+PREEMPT_LAZY"), of("v7.0")), (lazy, lazy));
        assert_eq!(of("v7.0+PREEMPT_NONE"), of("v6.19+PREEMPT_NONE"));
        let dynamic = (PreemptionModel::None, Reschedule::AtOnce, NewidlePull::OneTask);
        assert_eq!(of("debian-6.1+PREEMPT_NONE"), dynamic, "built to be preempted, and is not");
    }

    /// What a release is built with by default is no setting.
    #[test]
    fn the_model_of_a_release_is_its_own() {
        assert!(parse("v7.0+PREEMPT_LAZY").same_rules(&parse("v7.0")));
        assert!(parse("v6.6+PREEMPT_VOLUNTARY").same_rules(&parse("v6.6")));
        assert!(!parse("v6.19+PREEMPT_LAZY").same_rules(&parse("v6.19")));
        let step = |from: &str, to: &str| {
            parse(from)
                .steps_to(&parse(to))
                .iter()
                .map(super::super::between::GenerationStep::id)
                .collect::<Vec<_>>()
        };
        assert_eq!(step("v6.19+PREEMPT_NONE", "v6.19+PREEMPT_LAZY"), ["PREEMPT_LAZY"]);
        assert_eq!(step("v6.19+PREEMPT_NONE", "v6.19"), ["preemption model by default"]);
    }
}
