//! Notes of what balancing decided, for those who explain it.
//!
//! Must not know: who reads them.

use crate::balance::decided::{BalanceDecision, BalanceNote};
use crate::scheduler::Scheduler;

impl Scheduler {
    /// Whether every try is noted, until the driver takes the notes; a run without them is faster.
    pub fn set_balance_notes(&mut self, enabled: bool) {
        self.balance.notes = enabled.then(Vec::new);
    }

    /// Hands over the notes taken since the last call, in order.
    pub fn take_balance_notes(&mut self) -> Vec<BalanceNote> {
        self.balance.notes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn note_balance(&mut self, decision: &BalanceDecision) {
        if self.shared.trace.decisions {
            let level = self.domain(decision.cpu, decision.level).name;
            self.shared.tell_balance(level, decision);
        }
        if self.balance.notes.is_none() {
            return;
        }
        let level = self.domain(decision.cpu, decision.level).name;
        let bias = self.bias_effect(decision);
        let note = BalanceNote { time: self.shared.trace.now, decision: decision.clone(), level, bias };
        self.balance.notes.get_or_insert_default().push(note);
    }
}
