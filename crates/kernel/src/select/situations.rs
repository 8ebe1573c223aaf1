//! A situation for each change of CPU selection that random operations do not feel: the machines are larger or more
//! uneven than theirs, or a moment is met that they never do.

use super::{bound, capacity, energy, idle_sibling, idle_time, idlest, scan, wake_list};
use crate::ablation::{AblationSituation, switched};
use crate::cpumask::CpuMask;
use fairlab_event::Cpu;

/// On which of two nodes of so many CPUs a new task begins; so many tasks run on the first.
fn node_of_child(kernel: &str, cpus: u32, busy: u32, allowed: &str) -> u64 {
    let busy = (0..busy).collect::<Vec<_>>();
    (idlest::tests::forked_to(kernel, (2, 1, cpus), &busy, allowed) / cpus).into()
}

fn near_clusters(kernel: &str, neighbour_busy: bool, nr_idle_scan: u32) -> u64 {
    idle_sibling::tests::beside_clusters(kernel, neighbour_busy, nr_idle_scan).0.into()
}

fn on_small_cpu(kernel: &str, util: u64) -> u64 {
    capacity::tests::beside_recent(kernel, util).0.into()
}

pub(crate) const SITUATIONS: &[(&str, AblationSituation)] = &[
    ("exec-estimate", idlest::tests::left_by_exec),
    ("idlest-without-self", |kernel| idlest::tests::execs_among_three(kernel).into()),
    ("recent-allowed", |kernel| idle_sibling::tests::bound_since(kernel, "0,2-3").into()),
    ("idlest-allowed", |kernel| idlest::tests::forked_to(kernel, (1, 2, 2), &[0, 1, 2], "1-2").into()),
    ("fork-numa-quarter", |kernel| node_of_child(kernel, 8, 4, "0-15")),
    ("fork-numa-node", |kernel| node_of_child(kernel, 8, 1, "0-15")),
    ("numa-imbalance", |kernel| node_of_child(kernel, 8, 1, "0-15")),
    ("fork-numa-affinity", |kernel| node_of_child(kernel, 16, 1, "0,16-31")),
    ("core-note-of-target", |kernel| scan::tests::notes_the_searched_cache(kernel).into()),
    ("idlest-group-weight", |kernel| idlest::tests::forked_beside_use(kernel).into()),
    ("asymmetric-scan", |kernel| on_small_cpu(kernel, 100)),
    ("no-wake-cap", |kernel| capacity::tests::woken_from_a_big_cpu(kernel).into()),
    ("asymmetric-prev-first", |kernel| on_small_cpu(kernel, 600)),
    ("asymmetric-cores", |kernel| capacity::tests::beside_idle_core(kernel).into()),
    ("asymmetric-bound", |kernel| capacity::tests::looked_at(kernel, 3, false).1.into()),
    ("cluster-scan", |kernel| near_clusters(kernel, false, 4)),
    ("cluster-candidates", |kernel| near_clusters(kernel, true, 1)),
    ("scan-allowed", |kernel| scan::tests::bounded_and_bound(kernel).into()),
    ("no-sis-avg-cpu", |kernel| bound::tests::reach_of_costly_search(&switched(kernel, "SIS_AVG_CPU"))),
    ("no-sis-prop", |kernel| {
        bound::tests::reach_of_costly_search(&format!("{}+NO_SIS_UTIL", switched(kernel, "SIS_PROP")))
    }),
    ("scan-cost-sis-prop", |kernel| bound::tests::searches_from_alone(kernel).into()),
    ("energy-aware-wakeup", energy::tests::placements),
    ("energy-real-time", energy::tests::placements),
    ("energy-by-domain", energy::tests::placements),
    ("energy-any-cpu", energy::tests::placements),
    ("energy-task-apart", energy::tests::placements),
    ("energy-counted-domains", energy::tests::placements),
    ("energy-not-negative", energy::tests::placements),
    ("energy-precision", energy::tests::placements),
    ("energy-any-gain", energy::tests::placements),
    ("energy-roomier", energy::tests::placements),
    ("energy-per-performance", crate::energy::tests::a_little_work),
    ("energy-inefficient", crate::energy::tests::a_little_work),
    ("queue-allowed", |kernel| wake_list::tests::left_across_caches(kernel, CpuMask::single(Cpu(0))).into()),
    ("stopper-at-once", |kernel| wake_list::tests::stopper_is_left(kernel).into()),
    ("leaving-wakee", |kernel| wake_list::tests::left_where_leaving(kernel).into()),
    ("idle-stamp-valid", idle_time::tests::after_idling_unnoted),
];
