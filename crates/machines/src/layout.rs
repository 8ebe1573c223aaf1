//! Machines by their layout alone: `layout:4x1x24x2`, at so many ticks a second if that is said, `layout:2x1x8x1,hz=1000`.
//!
//! Must not know: what runs on them.

use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_sim::Machine;
use fairlab_sim::machine::{Chance, KernelCosts, Sharing, TrueSpeeds};

use fairlab_files::LabError;

/// What names of these machines begin with.
const PREFIX: &str = "layout:";

/// Ticks a second, where none are said.
const HZ: u64 = 250;

/// The distance between any two nodes: what machines of two sockets tell.
const DISTANCE: u32 = 21;

/// The machine of a name that begins as these do; costs and chance are the usual ones. `None`: it is another kind's name.
///
/// # Errors
/// The layout is none, or impossible.
pub fn machine(name: &str) -> Option<Result<Machine, LabError>> {
    name.strip_prefix(PREFIX).map(|what| laid_out(name, what))
}

fn laid_out(name: &str, what: &str) -> Result<Machine, LabError> {
    let wrong = |problem: String| {
        LabError::new(
            format!("{name}: {problem}"),
            "say NODESxLLCSxCORESxTHREADS, LLCs a node and cores an LLC: layout:4x1x24x2, layout:1x1x4x1,hz=1000",
        )
    };
    let (numbers, hz) = match what.split_once(",hz=") {
        None => (what, HZ),
        Some((numbers, hz)) => {
            let hz = hz.parse().ok().filter(|hz| [100, 250, 300, 1000].contains(hz));
            (numbers, hz.ok_or_else(|| wrong("a kernel ticks 100, 250, 300 or 1000 times a second".into()))?)
        }
    };
    let parsed = numbers.split('x').map(|number| number.parse::<u32>().ok()).collect::<Option<Vec<_>>>();
    let Some([nodes, llcs, cores, threads]) = parsed.as_deref() else {
        return Err(wrong(format!("'{numbers}' is no layout")));
    };
    let topology = Topology::regular(*nodes, *llcs, *cores, *threads, SmtNumbering::Spread);
    let topology = topology.map_err(&wrong)?;
    let distance = |from: u32, to: u32| if from == to { 10 } else { DISTANCE };
    let distances = (0..*nodes).map(|from| (0..*nodes).map(|to| distance(from, to)).collect()).collect();
    Ok(Machine {
        name: name.to_string(),
        description: format!(
            "{nodes} nodes of {llcs} last-level caches of {cores} cores of {threads} threads, usual costs"
        ),
        topology: topology.with_distances(distances).map_err(wrong)?,
        hz,
        high_res_timers: true,
        nohz_idle: true,
        costs: KernelCosts::default(),
        chance: Chance::USUAL,
        in_turn: false,
        frequency_domains: Vec::new(),
        energy_model: Vec::new(),
        speeds: TrueSpeeds::default(),
        sharing: Sharing::NONE,
        idle_states: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use fairlab_event::Cpu;

    use crate::{find, parse, to_toml};

    #[test]
    fn a_layout_is_a_machine() {
        let machine = find("layout:2x3x4x2").expect("a machine");
        assert_eq!((machine.topology.nr_cpus(), machine.hz), (48, 250));
        assert_eq!(machine.topology.llc_size(Cpu(0)), 8);
        assert_eq!(machine.topology.node_mask(Cpu(0)).weight(), 24);
        assert_eq!(find("layout:1x1x2x1,hz=1000").map(|machine| machine.hz), Ok(1000));
        assert_eq!(parse(&to_toml(&machine)), Ok(machine));
    }

    #[test]
    fn what_is_no_layout_is_refused() {
        for (name, told) in [
            ("layout:", "'' is no layout"),
            ("layout:4", "'4' is no layout"),
            ("layout:1x1x1x-1", "'1x1x1x-1' is no layout"),
            ("layout:1x1x4x1,hz=60", "ticks 100, 250, 300 or 1000"),
            ("layout:0x1x4x1", "NUMA nodes"),
            ("layout:99x99x99x99", "layout:99x99x99x99"),
        ] {
            let error = find(name).expect_err(name);
            assert!(error.problem.contains(told) && error.problem.starts_with(name), "{error:?}");
        }
    }
}
