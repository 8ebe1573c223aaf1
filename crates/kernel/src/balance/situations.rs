//! A situation for each change of balancing that random balancing does not feel.

use super::{detach, newidle};
use crate::ablation::Situation;
use crate::testbed::MS;

pub(crate) const SITUATIONS: &[(&str, Situation)] = &[
    ("load-shift", detach::tests::moved_after_64_failures),
    ("newidle-rate", |kernel| newidle::tests::ratio_after(kernel, MS).into()),
];
