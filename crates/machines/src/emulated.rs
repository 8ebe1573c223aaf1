//! The machines on which kernels are booted, for the model: `emulated:1x4x2`, `emulated:chromebook8`.
//!
//! Must not know: how they are emulated.

use fairlab_event::Ns;
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_sim::Machine;
use fairlab_sim::machine::{Chance, KernelCosts, Sharing, TrueSpeeds};

use fairlab_boot::{Board, CpuLayout, Hardware};
use fairlab_files::LabError;

/// What names of these machines begin with.
const PREFIX: &str = "emulated:";

/// Ticks a second of Debian's kernels (`CONFIG_HZ`).
const HZ: u64 = 250;

/// How far a node is from another one, as QEMU is told.
const DISTANCE: u32 = 20;

/// Debian's kernels, in the order of the table below.
const KERNELS: [&str; 4] = ["debian-5.10", "debian-6.1", "debian-6.12", "debian-7.2"];

/// The column for all other kernels.
const USUAL: usize = 2;

/// Costs on an emulated CPU that is alone busy under each of [`KERNELS`], ns: what `fairlab calibrate` measures there on two
/// CPUs, recorded as booted kernels are. Instructions are nanoseconds, so all samples are equal but where CPUs take turns.
///
/// `fairlab boot debian:trixie --topology 2 -- fairlab calibrate --samples 200`
///
/// A program sees how long a wakeup takes in all. It does not see when the wakeup reads the queue's clock, up to which the waker
/// is charged. So wakeups and switches come from the charges (`sched_stat_runtime`) of a sender and a receiver that share a CPU
/// and preempt each other at each message:
///
/// `fairlab boot debian:trixie --topology 1 -- hackbench -g 1 -f 1 -l 8000`
///
/// | | 5.10 | 6.1 | 6.12 | 7.2 |
/// |---|---|---|---|---|
/// | the sender until it wakes: switch, system call, send, `wakeup_ns` | 7,247 | 7,429 | 7,815 | 7,903 |
/// | the sender from then until it is preempted: `activate_ns` | | | | 4,356 |
/// | the receiver: switch, receive, two system calls; to 6.12 `activate_ns`, for the switch goes by the clock of the wakeup | 8,874 | 9,641 | 10,239 | 7,245 |
///
/// 7.2 tells all three. The others are given its `wakeup_ns`.
///
/// Departs: `ipi_ns` comes out with the rest of the sender's turn. In a recorded hackbench (6.1) the interrupt followed
/// within 0.8 us for a tenth of 3967 wakeups. `idle_exit_ns` of 7.2, which did not come out, is that of 6.12.
const MEASURED: [(&str, [u64; 4]); 11] = [
    ("syscall_ns", [322, 442, 442, 441]),
    ("send_ns", [2_770, 2_860, 2_920, 2_020]),
    ("receive_ns", [1_910, 1_890, 1_980, 1_570]),
    ("wakeup_ns", [650, 650, 650, 650]),
    ("activate_ns", [2_810, 3_390, 3_570, 4_360]),
    ("context_switch_ns", [3_510, 3_480, 3_800, 4_790]),
    ("ipi_ns", [800, 800, 800, 800]),
    ("interrupt_ns", [1_260, 1_580, 2_370, 2_450]),
    ("idle_exit_ns", [468, 1_910, 329, 329]),
    ("tick_ns", [2_990, 2_920, 2_480, 2_690]),
    ("fork_ns", [24_100, 25_000, 27_700, 28_100]),
];

/// What was not measured, in hundredths of the default: the middle of what was, against its defaults.
const OTHERS_PERCENT: u64 = 185;

/// How far work of the kernel lies from its cost: it takes other ways from time to time. Between events that follow each other
/// in one turn of a recorded hackbench (6.1) most lie within a tenth.
const JITTER_PERMILLE: u64 = 100;

/// What a machine's name says that a kernel is booted on: a layout of CPUs, or a board that is like another machine; `None` for
/// machines of other kinds.
///
/// # Errors
/// There is no such layout, no such machine, or no kernel can be booted on it.
pub fn hardware(name: &str) -> Option<Result<Hardware, LabError>> {
    let what = name.strip_prefix(PREFIX)?;
    let is_layout = !what.ends_with(".toml") && what.chars().all(|c| c.is_ascii_digit() || c == 'x');
    if is_layout {
        return Some(what.parse().map(Hardware::Pc));
    }
    // It is found again by the name by which it was.
    let board =
        super::find(what).and_then(|machine| Board::new(Machine { name: what.to_string(), ..machine }));
    Some(board.map(|board| Hardware::Board(Box::new(board))))
}

/// The machine as the model has it, with what work costs in the kernel of that name. A kernel that was not measured has the costs
/// of 6.12.
///
/// Departs: a board's costs are a PC's.
pub fn machine(hardware: &Hardware, kernel: &str) -> Result<Machine, LabError> {
    let (topology, mut frequency_domains, energy_model) = match hardware {
        Hardware::Pc(layout) => (topology(*layout)?, Vec::new(), Vec::new()),
        Hardware::Board(board) => {
            let Machine { topology, frequency_domains, energy_model, .. } = board.machine().clone();
            (topology, frequency_domains, energy_model)
        }
    };
    // The driver of a board's clocks may sleep.
    frequency_domains.iter_mut().for_each(|domain| domain.fast_switch = false);
    Ok(Machine {
        name: format!("{PREFIX}{hardware}"),
        description: format!("what a kernel sees that is booted on {hardware}, emulated"),
        topology,
        hz: HZ,
        high_res_timers: true,
        nohz_idle: true,
        costs: costs(kernel),
        chance: chance(),
        in_turn: true,
        frequency_domains,
        energy_model,
        speeds: TrueSpeeds::default(),
        sharing: Sharing::NONE,
        idle_states: Vec::new(),
    })
}

/// What work costs in the kernel of that name; one that was not measured has the costs of 6.12.
pub(crate) fn costs(kernel: &str) -> KernelCosts {
    let column = KERNELS.iter().position(|measured| *measured == kernel).unwrap_or(USUAL);
    let mut costs = KernelCosts::default();
    for cost in KernelCosts::default().table() {
        let measured = MEASURED.iter().find(|(name, _)| *name == cost.name).map(|(_, ns)| ns[column]);
        costs.set(cost.name, Ns(measured.unwrap_or(cost.default.0 * OTHERS_PERCENT / 100)));
    }
    costs
}

/// What differs there from run to run.
pub(crate) const fn chance() -> Chance {
    Chance::emulated(JITTER_PERMILLE)
}

fn topology(layout: CpuLayout) -> Result<Topology, LabError> {
    let wrong = |problem: String| LabError::new(problem, "name another layout");
    let llcs_a_node = layout.sockets.div_ceil(layout.nodes);
    let nodes = layout.sockets / llcs_a_node;
    let topology =
        Topology::regular(nodes, llcs_a_node, layout.cores, layout.threads, SmtNumbering::Adjacent);
    let topology = topology.map_err(wrong)?;
    if nodes == 1 {
        return Ok(topology);
    }
    let distance = |from: u32, to: u32| if from == to { 10 } else { DISTANCE };
    let distances = (0..nodes).map(|from| (0..nodes).map(|to| distance(from, to)).collect()).collect();
    topology.with_distances(distances).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use fairlab_event::Cpu;

    use super::*;

    fn pc(layout: &str) -> CpuLayout {
        layout.parse().expect("a layout")
    }

    #[test]
    fn layouts_become_machines() {
        let made = machine(&Hardware::Pc(pc("1x4x2")), "v6.6").expect("a machine");
        assert_eq!((made.topology.nr_cpus(), made.topology.has_smt(), made.hz), (8, true, HZ));
        let far = Hardware::Pc(pc("2x2x1").with_nodes(2).expect("two nodes"));
        let far = machine(&far, "debian-6.12").expect("a machine");
        assert_eq!((far.topology.nr_nodes(), far.topology.distance(0, 1)), (2, DISTANCE));
        assert!(far.in_turn && far.costs == made.costs);
        let old = machine(&Hardware::Pc(pc("2")), "debian-5.10").expect("a machine");
        assert_eq!((old.costs.send, made.costs.send), (Ns(2_770), Ns(2_920)));
        let names = KernelCosts::default().table().into_iter().map(|cost| cost.name).collect::<Vec<_>>();
        assert!(MEASURED.iter().all(|(name, _)| names.contains(name)));
        assert!(
            hardware("laptop8").is_none() && hardware("emulated:x").is_some_and(|layout| layout.is_err())
        );
    }

    #[test]
    fn a_board_is_like_the_machine_that_it_is_named_for() {
        let board = hardware("emulated:chromebook8").expect("a name of ours").expect("a board");
        let made = machine(&board, "debian-6.1").expect("a machine");
        assert_eq!((made.name.as_str(), made.hz, made.in_turn), ("emulated:chromebook8", HZ, true));
        assert_eq!((made.topology.capacity(Cpu(0)), made.energy_model.len()), (425, 2));
        let error = hardware("emulated:vm40").expect("a name of ours").expect_err("no board");
        assert!(error.problem.contains("boards are of arm64"), "{error}");
    }
}
