//! A situation for each change of load tracking that random operations of a whole machine do not feel, in which it alters
//! what is computed.

use super::*;
use crate::Generation;
use crate::generation::LOG;

const FEATURES: UtilEstFeatures = UtilEstFeatures { util_est: true, fastup: true };

/// What a task remembers of its utilization after it has run at 300 of 1024, when it remembered 800, on a small CPU.
fn sleeps_on_a_small_cpu(rules: &PeltRules) -> u64 {
    let util_est = UtilEst { enqueued: 0, ewma: 800 };
    let mut task = SchedAvg { util_avg: 300, runnable_avg: 300, util_est, ..SchedAvg::default() };
    rules.util_est_update(&mut task, 256, FEATURES);
    task.util_est.ewma.into()
}

/// The same of one that has run more than it remembered, where rises are to be slow.
fn rises(rules: &PeltRules) -> u64 {
    let mut task = SchedAvg { util_avg: 600, runnable_avg: 600, ..SchedAvg::default() };
    rules.util_est_update(&mut task, 1024, UtilEstFeatures { fastup: false, ..FEATURES });
    task.util_est.ewma.into()
}

/// What a task with an even estimate is expected to use.
fn is_expected_to_use(rules: &PeltRules) -> u64 {
    let util_est = UtilEst { enqueued: 400, ewma: 0 };
    rules.task_util_est(&SchedAvg { util_est, ..SchedAvg::default() })
}

/// How much of a CPU on which tasks wait would be used if a task came that remembers more than its average.
fn boosted_with_a_task(rules: &PeltRules) -> u64 {
    let util_est = UtilEst { enqueued: 300, ewma: 300 };
    let avg = SchedAvg { util_avg: 200, runnable_avg: 50, util_est, ..SchedAvg::default() };
    let task = TaskUtil { avg, is_here: false, is_queued: false, comes_here: true };
    let queue = &SchedAvg { util_avg: 100, runnable_avg: 700, ..SchedAvg::default() };
    rules.cpu_util(CpuUtil { queue, task: Some(task), capacity: 1024, boost: true, util_est_enabled: true })
}

fn is_decayed_with_a_child(rules: &PeltRules) -> u64 {
    rules.cfs_rq_is_decayed(&CfsRqLoad::default(), 0, true).into()
}

fn is_decayed_with_a_contribution(rules: &PeltRules) -> u64 {
    let queue = CfsRqLoad { tg_load_avg_contrib: 5, ..CfsRqLoad::default() };
    rules.cfs_rq_is_decayed(&queue, 0, false).into()
}

/// What a group's entity sums up of a hundred runnable tasks.
fn hundred_tasks(rules: &PeltRules) -> u64 {
    let (mut parent, mut se) = (SchedAvg::default(), SchedAvg::default());
    let group = SchedAvg { runnable_avg: 100 << 10, ..SchedAvg::default() };
    rules.update_tg_cfs_runnable(&mut parent, &mut se, &group);
    se.runnable_sum
}

pub(crate) type PeltSituation = fn(&PeltRules) -> u64;

pub(crate) const SITUATIONS: &[(&str, PeltSituation)] = &[
    ("util-est-flag-masked", is_expected_to_use),
    ("util-est-capacity", sleeps_on_a_small_cpu),
    ("util-est-any-capacity", sleeps_on_a_small_cpu),
    ("util-est-rise", rises),
    ("no-util-est-boost", boosted_with_a_task),
    ("boost-with-task", boosted_with_a_task),
    ("leaf-list-children", is_decayed_with_a_child),
    ("stalled-contribution", is_decayed_with_a_contribution),
    ("group-runnable-wide", hundred_tasks),
];

#[test]
fn what_random_operations_do_not_show_shows_here() {
    for (name, situation) in SITUATIONS {
        let index = LOG.iter().position(|change| change.name == *name).expect("a change of the log");
        let [before, after] = [index, index + 1].map(|length| situation(&Generation::prefix(length).pelt));
        assert_ne!(before, after, "{name}");
    }
}
