//! The machines on which kernels are booted, for the model: `emulated:1x4x2`.
//!
//! Must not know: how they are emulated.

use fairlab_event::Ns;
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_sim::Machine;
use fairlab_sim::machine::Costs;

use crate::LabError;
use crate::boot::Layout;

/// What names of these machines begin with.
const PREFIX: &str = "emulated:";

/// Ticks a second of Debian's kernels (`CONFIG_HZ`).
const HZ: u64 = 250;

/// How far a node is from another one, as QEMU is told.
const DISTANCE: u32 = 20;

/// Kernel work on an emulated CPU, in hundredths of what it is on the machines that default costs are of, when that CPU is
/// the only busy one. Instructions are nanoseconds there: `perf bench sched pipe` under trixie's kernel on one CPU,
/// recorded as booted kernels are, takes 20.15 us a round trip; the model with default costs on one CPU takes 12.6 us.
const COST_PERCENT: u64 = 160;

/// The layout in a machine's name; `None` for machines of other kinds.
///
/// # Errors
/// There is no such layout.
pub fn layout(name: &str) -> Option<Result<Layout, LabError>> {
    name.strip_prefix(PREFIX).map(str::parse)
}

/// The machine as the model has it.
pub(super) fn machine(layout: Layout) -> Result<Machine, LabError> {
    let wrong = |problem: String| LabError::new(problem, "name another layout");
    let llcs_a_node = layout.sockets.div_ceil(layout.nodes);
    let nodes = layout.sockets / llcs_a_node;
    let topology =
        Topology::regular(nodes, llcs_a_node, layout.cores, layout.threads, SmtNumbering::Adjacent);
    let mut topology = topology.map_err(wrong)?;
    if nodes > 1 {
        let distance = |from: u32, to: u32| if from == to { 10 } else { DISTANCE };
        let distances = (0..nodes).map(|from| (0..nodes).map(|to| distance(from, to)).collect()).collect();
        topology = topology.with_distances(distances).map_err(wrong)?;
    }
    let mut costs = Costs::default();
    for cost in Costs::default().table() {
        costs.set(cost.name, Ns(cost.default.0 * COST_PERCENT / 100));
    }
    Ok(Machine {
        name: format!("{PREFIX}{layout}"),
        description: format!("what a kernel sees that is booted on {layout} emulated CPUs"),
        topology,
        hz: HZ,
        high_res_timers: true,
        costs,
        jitter_percent: 0,
        frequency_domains: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_become_machines() {
        let made = machine("1x4x2".parse().expect("a layout")).expect("a machine");
        assert_eq!((made.topology.nr_cpus(), made.topology.has_smt(), made.hz), (8, true, HZ));
        let far: Layout = "2x2x1".parse().expect("a layout");
        let far = machine(far.with_nodes(2).expect("two nodes")).expect("a machine");
        assert_eq!((far.topology.nr_nodes(), far.topology.distance(0, 1)), (2, DISTANCE));
        assert!(layout("laptop8").is_none() && layout("emulated:x").is_some_and(|layout| layout.is_err()));
    }
}
