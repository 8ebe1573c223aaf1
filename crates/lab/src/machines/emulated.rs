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

/// Costs on an emulated CPU that is alone busy, ns: what `fairlab calibrate` measures under trixie's kernel on two CPUs,
/// recorded as booted kernels are. Instructions are nanoseconds there, so every sample is the same but where CPUs take turns.
///
/// Departs: a message's costs are those of one thread that writes and reads, and `context_switch_ns` holds a futex's own work;
/// without these they are 2,960, 1,980 and 5,200. With that message hackbench switches 2 % too seldom under 5.10 and 6.1 (with
/// this one 44 % and 41 %) but migrates twice as often under 6.1: turns as shares, not one after the other, hide the rest.
///
/// `fairlab boot debian:trixie --topology 2 -- fairlab calibrate --samples 200`
const MEASURED: [(&str, u64); 10] = [
    ("syscall_ns", 442),
    ("send_ns", 2_120),
    ("receive_ns", 1_900),
    ("wakeup_ns", 2_020),
    ("context_switch_ns", 5_550),
    ("ipi_ns", 4_170),
    ("interrupt_ns", 2_380),
    ("idle_exit_ns", 321),
    ("tick_ns", 2_480),
    ("fork_ns", 27_700),
];

/// What was not measured, in hundredths of the default: the middle of what was, against its defaults.
const OTHERS_PERCENT: u64 = 185;

/// How far work of the kernel lies from its cost: it takes other ways from time to time, and waits for its CPU's turn. Of 683
/// wakeups of idle CPUs in a recorded hackbench (5.10, four CPUs) the middle 80 % took from 0.5 to 1.7 times the median.
const JITTER_PERCENT: u32 = 50;

/// The layout in a machine's name; `None` for machines of other kinds.
///
/// # Errors
/// There is no such layout.
pub fn layout(name: &str) -> Option<Result<Layout, LabError>> {
    name.strip_prefix(PREFIX).map(str::parse)
}

/// The machine as the model has it.
pub(crate) fn machine(layout: Layout) -> Result<Machine, LabError> {
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
        let measured = MEASURED.iter().find(|(name, _)| *name == cost.name).map(|&(_, ns)| ns);
        costs.set(cost.name, Ns(measured.unwrap_or(cost.default.0 * OTHERS_PERCENT / 100)));
    }
    Ok(Machine {
        name: format!("{PREFIX}{layout}"),
        description: format!("what a kernel sees that is booted on {layout} emulated CPUs"),
        topology,
        hz: HZ,
        high_res_timers: true,
        nohz_idle: true,
        costs,
        jitter_percent: JITTER_PERCENT,
        in_turn: true,
        frequency_domains: Vec::new(),
        energy_model: Vec::new(),
        idle_states: Vec::new(),
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
        assert!(far.in_turn && far.costs == made.costs);
        let names = Costs::default().table().into_iter().map(|cost| cost.name).collect::<Vec<_>>();
        assert!(MEASURED.iter().all(|(name, _)| names.contains(name)));
        assert!(layout("laptop8").is_none() && layout("emulated:x").is_some_and(|layout| layout.is_err()));
    }
}
