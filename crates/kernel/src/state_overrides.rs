//! Where a driver may answer in the state's place: one who knows from elsewhere what a kernel had.
//!
//! Must not know: how the driver knows, and what is decided by the answers.

use std::collections::BTreeMap;

use crate::ids::{SeId, TaskId};

/// The driver's answers. By default there are none, and the state tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateOverrides {
    loads: Vec<(TaskId, u64)>,
    weights: Option<BTreeMap<SeId, u64>>,
}

impl StateOverrides {
    /// From now on tasks count this of their CPU's load in selections.
    pub fn answer_loads(&mut self, loads: Vec<(TaskId, u64)>) {
        self.loads = loads;
    }

    /// What a task counts, if the driver says.
    pub fn load_of(&self, task: TaskId) -> Option<u64> {
        self.loads.iter().find(|(known, _)| *known == task).map(|&(_, load)| load)
    }

    /// From now on groups' entities get the weights that the driver says, and no others.
    pub fn answer_weights(&mut self) {
        self.weights = Some(BTreeMap::new());
    }

    /// Whether the driver says what groups' entities weigh.
    #[inline]
    pub fn answers_weights(&self) -> bool {
        self.weights.is_some()
    }

    /// The next update of a group's entity gives it `weight`, scaled up, if the driver says weights.
    pub fn set_weight(&mut self, se: SeId, weight: u64) {
        if let Some(weights) = &mut self.weights {
            weights.insert(se, weight);
        }
    }

    /// The weight that the next update gives an entity, if it gives it one.
    pub fn weight_of(&self, se: SeId) -> Option<u64> {
        self.weights.as_ref()?.get(&se).copied()
    }

    /// The update takes the weight of an entity, if it gives it one.
    pub fn take_weight(&mut self, se: SeId) -> Option<u64> {
        self.weights.as_mut()?.remove(&se)
    }

    /// Entities whose weight no update has taken yet.
    pub fn untaken_weights(&self) -> impl Iterator<Item = SeId> {
        self.weights.iter().flat_map(|weights| weights.keys().copied())
    }
}
