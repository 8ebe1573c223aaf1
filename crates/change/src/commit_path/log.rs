//! A way through the model's log.
//!
//! Must not know: what is looked for on it.

use fairlab_kernel::generation::GenerationStep;
use fairlab_lab::{Kernel, LabError};

use super::{CommitPath, PathEnds};

/// Kernels by position, 0 is where it begins.
pub struct LogWay {
    pub(crate) from: Kernel,
    steps: Vec<GenerationStep>,
    /// For each position after the first, how many of `steps` lead there: changes that alter nothing go with the next one.
    lengths: Vec<usize>,
}

/// History goes forward: from the older kernel, the one that lacks more changes.
pub(super) fn between(one: &Kernel, other: &Kernel, what: &str) -> Result<PathEnds, LabError> {
    let forward = one.steps_to(other, what)?;
    let of = |wanted: bool| {
        forward
            .iter()
            .filter(|step| matches!(step, GenerationStep::Change { added, .. } if *added == wanted))
            .count()
    };
    let begins_at_first = of(true) >= of(false);
    let (from, to) = if begins_at_first { (one, other) } else { (other, one) };
    Ok(PathEnds { way: CommitPath::Log(LogWay::new(from, to, what)?), begins_at_first })
}

impl LogWay {
    /// The way between two kernels, for `what`, which looks for something on it.
    ///
    /// # Errors
    /// One of the two has no log of changes.
    pub(crate) fn new(from: &Kernel, to: &Kernel, what: &str) -> Result<LogWay, LabError> {
        let steps = from.steps_to(to, what)?;
        let modelled = steps.iter().enumerate().filter(|(_, step)| step.is_modelled());
        let lengths = modelled.map(|(index, _)| index + 1).collect();
        Ok(LogWay { from: from.clone(), steps, lengths })
    }

    /// The last position.
    pub(crate) fn end(&self) -> usize {
        self.lengths.len()
    }

    /// The kernel at a position; `None` where its rules contradict each other.
    pub(crate) fn kernel(&self, position: usize) -> Option<Kernel> {
        match position.checked_sub(1) {
            None => Some(self.from.clone()),
            Some(index) => self.from.after_steps(&self.steps[..self.lengths[index]]),
        }
    }

    /// The step that leads to a position.
    pub(crate) fn step(&self, position: usize) -> Option<GenerationStep> {
        self.steps.get(self.lengths.get(position.checked_sub(1)?)? - 1).copied()
    }

    /// The first kernel with the steps that lead to some positions, and with no other; `None` where these cannot be alone.
    pub(crate) fn with(&self, positions: &[usize]) -> Option<Kernel> {
        let steps = positions.iter().filter_map(|&position| self.step(position)).collect::<Vec<_>>();
        self.from.after_steps(&steps)
    }

    /// The last kernel without the step that leads to a position; `None` where others need it or set its rule again.
    pub(crate) fn without(&self, position: usize) -> Option<Kernel> {
        let left_out = self.lengths.get(position.checked_sub(1)?)? - 1;
        let others = self.steps.iter().enumerate().filter(|(index, _)| *index != left_out);
        let without = self.from.after_steps(&others.map(|(_, step)| *step).collect::<Vec<_>>())?;
        let last = self.from.after_steps(&self.steps)?;
        (!without.same_rules(&last)).then_some(without)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(from: &str, to: &str) -> LogWay {
        let [from, to] = [from, to].map(|name| name.parse().expect("a kernel"));
        LogWay::new(&from, &to, "this").expect("a way")
    }

    #[test]
    fn kernels_with_and_without_a_step() {
        let way = way("v5.4", "v5.10");
        let rework = (1..=way.end()).find(|&at| way.step(at).is_some_and(|step| step.id() == "0b0695f2b34a"));
        let rework = rework.expect("on the way");
        let name = |kernel: Option<Kernel>| kernel.map(|kernel| kernel.name().to_string());
        assert_eq!(name(way.kernel(0)), Some("v5.4".to_string()));
        assert_eq!(name(way.kernel(rework)), Some("0b0695f2b34a".to_string()));
        assert_eq!(name(way.with(&[rework])), Some("v5.4+0b0695f2b34a".to_string()));
        assert_eq!(name(way.without(rework)), Some("v5.10-0b0695f2b34a".to_string()));
        assert!(way.kernel(way.end()).is_some_and(|end| end.same_rules(&"v5.10".parse().expect("a kernel"))));
        assert_eq!(name(way.with(&[])), Some("v5.4".to_string()));
    }

    #[test]
    fn what_others_set_anew_is_not_left_out() {
        let way = way("v6.5", "v6.6");
        let relief = (1..=way.end()).find(|&at| way.step(at).is_some_and(|step| step.id() == "fee1759e4f04"));
        assert!(way.without(relief.expect("on the way")).is_none());
    }

    #[test]
    fn what_needs_another_is_not_alone() {
        let way = way("v6.5", "v6.6");
        let eevdf = (1..=way.end()).find(|&at| way.step(at).is_some_and(|step| step.id() == "147f3efaa241"));
        assert!(way.with(&[eevdf.expect("on the way")]).is_none());
    }
}
