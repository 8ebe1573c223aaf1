//! Machines from TOML files.

use std::collections::BTreeMap;
use std::path::Path;

use fairlab_event::Ns;
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_sim::Machine;
use fairlab_sim::machine::Costs;
use serde::Deserialize;

use crate::LabError;

/// A machine as a file describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineFile {
    name: String,
    #[serde(default)]
    description: String,
    hz: u64,
    topology: TopologyTable,
    /// Costs in ns that differ from the defaults.
    #[serde(default)]
    costs: BTreeMap<String, u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TopologyTable {
    #[serde(default = "one")]
    nodes: u32,
    #[serde(default = "one")]
    llcs_per_node: u32,
    cores_per_llc: u32,
    #[serde(default = "one")]
    threads_per_core: u32,
    #[serde(default)]
    smt_numbering: Numbering,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Numbering {
    #[default]
    Adjacent,
    Spread,
}

fn one() -> u32 {
    1
}

/// Reads a machine file.
///
/// # Errors
/// The file cannot be read, is not such a file, or describes an impossible machine.
pub(super) fn read(path: &Path) -> Result<Machine, LabError> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| LabError::new(format!("machine file {shown}: {error}"), "check the path"))?;
    parse(&text)
        .map_err(|error| LabError::new(format!("machine file {shown}: {}", error.problem), error.hint))
}

fn parse(text: &str) -> Result<Machine, LabError> {
    let file: MachineFile = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        LabError::new(
            format!("line {at}: {}", error.message()),
            "'fairlab machines show vm40 --format toml' prints an example",
        )
    })?;
    let table = &file.topology;
    let numbering = match table.smt_numbering {
        Numbering::Adjacent => SmtNumbering::Adjacent,
        Numbering::Spread => SmtNumbering::Spread,
    };
    let (nodes, llcs, cores, threads) =
        (table.nodes, table.llcs_per_node, table.cores_per_llc, table.threads_per_core);
    let topology = Topology::regular(nodes, llcs, cores, threads, numbering).map_err(|problem| {
        LabError::new(format!("impossible topology: {problem}"), "correct the table [topology]")
    })?;
    if file.hz == 0 || file.hz > 10_000 || 1_000_000_000 % file.hz != 0 {
        let problem = format!("hz = {} is no tick rate", file.hz);
        return Err(LabError::new(problem, "use the kernel's CONFIG_HZ: 100, 250 or 1000"));
    }
    let mut costs = Costs::default();
    for (name, value) in file.costs {
        if !costs.set(&name, Ns(value)) {
            let names = costs.table().iter().map(|cost| cost.name).collect::<Vec<_>>().join(", ");
            return Err(LabError::new(format!("unknown cost '{name}'"), format!("known are {names}")));
        }
    }
    Ok(Machine {
        name: file.name,
        description: file.description,
        topology,
        hz: file.hz,
        costs,
        frequency_domains: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = 'box'\nhz = 250\n[topology]\nnodes = 2\ncores_per_llc = 4\nthreads_per_core = 2\n\
                        smt_numbering = 'spread'\n[costs]\nipi_ns = 3000\n";

    #[test]
    fn a_file_gives_topology_tick_and_costs() {
        let machine = parse(GOOD).expect("a machine");
        assert_eq!((machine.topology.nr_cpus(), machine.hz, machine.costs.ipi), (16, 250, Ns(3000)));
        assert_eq!(machine.costs.wakeup, Costs::default().wakeup);
        assert_eq!(machine.topology.smt_mask(fairlab_event::Cpu(1)).to_string(), "1,9");
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line_with_its_place() {
        for (from, to, problem) in [
            ("cores_per_llc = 4", "cores_per_llc = 0", "impossible topology"),
            ("cores_per_llc = 4", "cores_per_llc = 4000", "more than 1024"),
            ("hz = 250", "hz = 0", "no tick rate"),
            ("hz = 250", "hz = 300", "no tick rate"),
            ("ipi_ns", "ipi", "unknown cost 'ipi'"),
            ("hz = 250", "hz = 'fast'", "line 2"),
            ("nodes = 2", "sockets = 2", "line 4"),
            ("name = 'box'", "", "missing field `name`"),
        ] {
            let error = parse(&GOOD.replace(from, to)).expect_err(problem).to_string();
            assert!(error.contains(problem) && !error.contains('\n'), "{error}");
        }
    }
}
