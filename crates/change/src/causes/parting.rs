//! The first decision in which two kernels part, in runs without chance, with what both held just before.
//!
//! Must not know: how runs of both are made.

use std::sync::atomic::AtomicBool;

use fairlab_files::shell::{line_of, quoted};

use crate::first_divergence::{FirstDivergence, KernelPair};
use fairlab_lab::answer::causes::{HeldAnswer, PartingAnswer};
use fairlab_lab::{Kernel, LabError, RunSetting};

/// What is shown of the state: what picks, preemptions and balancing look at.
const TOLD: [&str; 16] = [
    "se.vruntime",
    "se.deadline",
    "se.vlag",
    "se.load.weight",
    "lag",
    "eligible",
    "slice",
    "rq.nr_running",
    "rq.avg_idle",
    "cfs_rq.nr_running",
    "cfs_rq.load.weight",
    "cfs_rq.min_vruntime",
    "cfs_rq.avg.load_avg",
    "cfs_rq.avg.util_avg",
    "cfs_rq.runtime_remaining",
    "cfs_rq.throttled",
];

/// Where runs of the setting's first seed part. `None`: they do not, it was stopped, or the two are of different kinds.
///
/// # Errors
/// One of the two cannot run the workload there.
pub fn parting(
    (baseline, kernel): (&Kernel, &Kernel),
    setting: &RunSetting,
    stop: &AtomicBool,
) -> Result<Option<PartingAnswer>, LabError> {
    let seed = setting.first_seed;
    let Some(twins) = KernelPair::alike(baseline, kernel, stop) else { return Ok(None) };
    let Some(FirstDivergence { first, decisions, decisions_there }) = twins.parting(setting, seed)? else {
        return Ok(None);
    };
    let is_told = |member: &str| TOLD.iter().any(|told| member.rsplit(' ').next() == Some(*told));
    let state = first.state.into_iter().filter(|(member, ..)| is_told(member));
    Ok(Some(PartingAnswer {
        seed,
        time_ns: first.time_ns,
        cpu: first.cpu,
        baseline: first.leader,
        kernel: first.follower,
        baseline_decisions: decisions,
        decisions: decisions_there,
        state: state.map(|(member, baseline, kernel)| HeldAnswer { member, baseline, kernel }).collect(),
        command: format!(
            "fairlab compare --explain --exact --runs 1 --seed {seed} --kernel {} --kernel {} --machine {} {}",
            quoted(baseline.name()),
            quoted(kernel.name()),
            quoted(&setting.machine_name),
            line_of(&setting.workload)
        ),
    }))
}
