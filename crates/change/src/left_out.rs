//! What lies between two kernels, is not modelled, and can matter on a machine and under a workload.
//!
//! Must not know: what is asked of the kernels.

use fairlab_analysis::statistics::MetricVerdict;
use fairlab_event::Cpu;
use fairlab_kernel::CfsLimit;
use fairlab_kernel::generation::{LeftOutBetween, MattersWith};
use fairlab_lab::{Comparison, ExperimentSide, Kernel, workloads};
use fairlab_sim::Machine;

/// What is not modelled and can matter between two kernels; nothing, unless both are modelled.
pub fn left_out(one: &Kernel, other: &Kernel, machine: &Machine, workload: &[String]) -> LeftOutBetween {
    let (Some(from), Some(to)) = (one.generation(), other.generation()) else {
        return LeftOutBetween::default();
    };
    let topology = &machine.topology;
    let built = workloads::build(workload).ok();
    let groups = built.as_ref().map(|built| built.groups()).unwrap_or_default();
    let sets_scheduling = built.is_none_or(|built| built.sets_scheduling());
    let has_groups = !groups.is_empty() || from.autogroup || to.autogroup;
    let is_there = |with: MattersWith| match with {
        MattersWith::Nodes => topology.nr_nodes() > 1,
        MattersWith::Caches => topology.llc_size(Cpu(0)) < topology.nr_cpus(),
        MattersWith::Smt => topology.has_smt(),
        MattersWith::DifferentCpus => topology.has_asymmetric_capacity(),
        MattersWith::PreferredCpus => topology.has_preferred_cpus(),
        MattersWith::EnergyModel => !machine.energy_model.is_empty(),
        MattersWith::Frequencies => !machine.frequency_domains.is_empty(),
        MattersWith::Groups => has_groups,
        // A group may get its quota on the way.
        MattersWith::Quotas => groups.iter().any(|group| sets_scheduling || group.max != CfsLimit::UNLIMITED),
        MattersWith::OwnScheduling => sets_scheduling,
        MattersWith::ChangedWeights => has_groups || sets_scheduling,
        // These are about the two kernels.
        MattersWith::Switched(_) | MattersWith::Apart(_) => true,
    };
    from.left_out_to(to, &is_there)
}

/// The same between the kernels of two sides; nothing where they differ in more, which is no question to the kernels' log.
pub fn left_out_between(one: &ExperimentSide, other: &ExperimentSide) -> LeftOutBetween {
    match other.is_in_setting_of(one) {
        true => left_out(&one.kernel, &other.kernel, &one.machine, &one.workload),
        false => LeftOutBetween::default(),
    }
}

/// Says of each side what lies between its kernel and the first one's, and is not modelled. Where nothing else lies there, that is the
/// verdict.
pub fn mind_left_out(comparison: &mut Comparison, sides: &[ExperimentSide]) {
    let Some((baseline, others)) = sides.split_first() else { return };
    for side in others {
        let found = left_out_between(baseline, side);
        comparison.notices.extend(found.line(baseline.kernel.name(), side.kernel.name()));
        for row in comparison.rows.iter_mut().filter(|row| found.is_all && row.kernel == side.name) {
            row.verdict = MetricVerdict::NotModelled;
            row.more = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_lab::machines;

    #[test]
    fn machine_and_workload_decide_what_can_matter() {
        let of = |from: &str, to: &str, machine: &str, workload: &str| {
            let [from, to] = [from, to].map(|name| Kernel::parse(name).expect(name));
            let machine = machines::find(machine).expect(machine);
            let words = workload.split(' ').map(String::from).collect::<Vec<_>>();
            let found = left_out(&from, &to, &machine, &words);
            found.commits.iter().map(|commit| commit.id()).collect::<Vec<_>>()
        };
        for (from, to, machine, workload, commits) in [
            ("v5.6", "v5.7", "vm4", "spinners", &[][..]),
            ("v5.6", "v5.7", "xeon-2s80", "spinners", &["6499b1b2dd1b"]),
            ("v5.6", "v5.7", "vm4", "cgroup cpu.weight=50 spinners", &["26cf52229efc"]),
            ("v6.6", "v6.7", "vm4", "cgroup cpu.weight=50 spinners", &[]),
            ("v6.6", "v6.7", "vm4", "cgroup cpu.max=10000 spinners", &["2f8c62296b6f"]),
            ("v7.2", "v7.3", "vm4", "hackbench -g 1", &[]),
            ("v7.2", "v7.3", "vm4", "hackbench -F -g 1", &["fa02b2868420"]),
            ("v6.15", "v6.16", "vm4", "spinners", &[]),
            ("v6.15", "v6.16", "vm4", "spinners --nice 0,5", &["c70fc32f4443"]),
            ("v6.7", "v6.8", "chromebook8", "spinners", &["b3edde44e5d4"]),
        ] {
            assert_eq!(of(from, to, machine, workload), commits, "{from} to {to}: {workload} on {machine}");
        }
    }
}
