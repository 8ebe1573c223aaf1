//! The rules of load tracking in words.

use super::rules::PeltRules;

impl PeltRules {
    /// Each decision point with the rule that stands there, for listing and for diffs.
    pub fn describe(&self) -> Vec<(&'static str, &'static str)> {
        let estimate = self.util_est;
        vec![
            ("invariance", self.invariance.describe()),
            ("third signal", self.runnable.describe()),
            ("delayed sleepers of a queue", self.delayed_tasks.describe()),
            ("clock of an idle CPU", self.idle_sync.describe()),
            ("lost idle time", self.lost_idle_check.describe()),
            ("a running task's class", self.class_change.describe()),
            ("clock while throttled", self.throttle_clock.describe()),
            ("age at a migration", self.migration_lag.describe()),
            ("load sum at attach", self.attach_load.describe()),
            ("load sum at detach", self.detach.load.describe()),
            ("util sum at detach", self.detach.util.describe()),
            ("runnable sum at detach", self.detach.runnable.describe()),
            ("load sum when removed", self.removed.load.describe()),
            ("util sum when removed", self.removed.util.describe()),
            ("runnable sum when removed", self.removed.runnable.describe()),
            ("load sum of a group", self.group.load.describe()),
            ("util sum of a group", self.group.util.describe()),
            ("runnable sum of a group", self.group.runnable.describe()),
            ("divider of a group", self.group_divider.describe()),
            ("group load unchanged", self.group_load_unchanged.describe()),
            ("width of a group's sum", self.group_runnable_sum.describe()),
            ("load sum that joins", self.attach_load_sum.describe()),
            ("detach of a moved task", self.detach_point.describe()),
            ("attach of a new task", self.attach_point.describe()),
            ("weight of a new task", self.initial_util_weight.describe()),
            ("runnable of a new task", self.initial_runnable.describe()),
            ("report to the group", self.tg_contribution.describe()),
            ("reported to the group", self.tg_told.describe()),
            ("queue decay", self.queue_decay.describe()),
            ("boost by waiting", self.runnable_boost.describe()),
            ("estimate form", estimate.form.describe()),
            ("estimate flag", estimate.flag.describe()),
            ("estimate margin", estimate.margin.describe()),
            ("estimate and capacity", estimate.capacity.describe()),
            ("estimate and waiting", estimate.waiting.describe()),
            ("estimate rise", estimate.rise.describe()),
            ("estimate at dequeue", estimate.dequeue.describe()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pelt::PELT_CHANGES;

    /// No change of load tracking is invisible in listings and diffs.
    #[test]
    fn every_change_shows() {
        let mut rules = PeltRules::BASE;
        for change in PELT_CHANGES {
            let before = rules.describe();
            change.effects.iter().for_each(|effect| effect.apply(&mut rules));
            assert_ne!(before, rules.describe(), "{}", change.name);
        }
    }
}
