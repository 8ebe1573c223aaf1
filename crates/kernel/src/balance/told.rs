//! The tries of balancing as extra events, for those who explain and count them: `decided_balance`.
//!
//! Must not know: who reads them.

use std::fmt::Write as _;

use fairlab_event::UntypedTracepoint;

use crate::balance::decided::BalanceDecision;
use crate::scheduler::Scheduler;

impl Scheduler {
    /// A CPU looks for tasks to take: what comes of it, which is not applied yet. With LB_BIAS the try is decided without it, too.
    #[cold]
    pub(super) fn tell_balance(&mut self, decision: &BalanceDecision) {
        let level = self.domain(decision.cpu, decision.level).name;
        let BalanceDecision { cpu, idle, push, imbalance, .. } = *decision;
        let moved = decision.moved();
        let mut text =
            format!("cpu={cpu} level={level} idle={idle:?} moved={moved} reason={}", outcome_of(decision));
        let _ = write!(text, " measure={} push={}", imbalance.migration.name(), u32::from(push));
        if let Some(source) = decision.source {
            let _ = write!(text, " source={source} amount={}", imbalance.amount);
        }
        let moving = decision.pulls.iter().filter(|pull| pull.moved().next().is_some()).count();
        let _ = write!(text, " passes={} moving={moving}", decision.pulls.len());
        if let Some(bias) = self.bias_effect(decision) {
            let differs = u32::from(bias.differs);
            let _ = write!(text, " biased={differs} kept={} brought={}", bias.suppressed(), bias.brought());
        }
        let looks = decision.pulls.iter().flat_map(|pull| &pull.looks);
        for (place, look) in looks.enumerate() {
            let before = if place == 0 { " looks=" } else { "," };
            let pid = self.task(look.task).pid();
            let _ = write!(text, "{before}{pid}:{:?}:{}", look.reason, look.size);
        }
        self.shared.report_text(UntypedTracepoint::DecidedBalance.name(), || text);
    }
}

/// Why a try took nothing, or that it did.
fn outcome_of(decision: &BalanceDecision) -> String {
    match decision.balanced {
        Some(reason) => format!("{reason:?}"),
        None if decision.moved() > 0 => "Moved".to_string(),
        None if decision.push => "Pushed".to_string(),
        None => decision.pulls.last().map_or_else(
            || "NoQueue".to_string(),
            |pull| {
                let refused = pull.looks.last().map(|look| format!("{:?}", look.reason));
                refused.unwrap_or_else(|| format!("{:?}", pull.end))
            },
        ),
    }
}
