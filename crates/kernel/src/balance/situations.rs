//! A situation for each change of balancing that random balancing does not feel.

use super::{capacity, detach, gathering, newidle, nohz, packing};
use crate::ablation::AblationSituation;
use crate::testbed::{MS, SchedulerTestbed};
use fairlab_event::Cpu;

pub(crate) const SITUATIONS: &[(&str, AblationSituation)] = &[
    ("preemptible", detach::tests::moved_when_newly_idle),
    ("capacity-of-threads", capacity::tests::left_of_a_thread),
    ("misfit-unbound", |kernel| u64::from(capacity::tests::misfit_load(kernel, "0") > 0)),
    ("misfit-allowed", |kernel| u64::from(capacity::tests::misfit_load(kernel, "0-1") > 0)),
    ("load-shift", detach::tests::moved_after_64_failures),
    ("packing-when-idle", packing::tests::all_decisions),
    ("asym-smt", packing::tests::all_decisions),
    ("sibling-priority", packing::tests::all_decisions),
    ("packing-idle-cores", packing::tests::all_decisions),
    ("packing-cores-only", packing::tests::all_decisions),
    ("core-priority", packing::tests::all_decisions),
    ("newidle-rate", |kernel| newidle::tests::ratio_after(kernel, MS).into()),
    ("newidle-lock", newidle::tests::ages_by_the_switch),
    ("newidle-every-pick", |kernel| newidle::tests::searches_beside_a_sleeper(kernel).into()),
    ("cache-aware", gathering::tests::pushed_to_its_process),
    ("cache-aware-misfit", gathering::tests::moved_to_a_small_cpu),
    ("ilb-told", nohz::tests::balances_before_told),
    ("idle-reentry", |kernel| SchedulerTestbed::new(kernel, 2, 1).scheduler.stays_idle(Cpu(0)).into()),
    ("idle-tick", |kernel| nohz::tests::stops_at_once(kernel).into()),
];
