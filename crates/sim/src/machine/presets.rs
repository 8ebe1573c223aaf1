//! Machines that come with Fairlab.

use fairlab_event::Ns;
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;

use super::{Costs, Machine};

/// A machine as data.
#[derive(Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub description: &'static str,
    nodes: u32,
    llcs_a_node: u32,
    cores_an_llc: u32,
    threads_a_core: u32,
    numbering: SmtNumbering,
    hz: u64,
    /// Costs that differ from the defaults, with the reason.
    costs: &'static [(&'static str, u64, &'static str)],
}

/// Every preset.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "vm40",
        description: "virtual machine with 40 CPUs: 20 cores of 2 threads, one last-level cache, HZ 1000",
        nodes: 1,
        llcs_a_node: 1,
        cores_an_llc: 20,
        threads_a_core: 2,
        numbering: SmtNumbering::Adjacent,
        hz: 1000,
        costs: &[
            (
                "wakeup_ns",
                10_500,
                "a fit: 20 serial futex wakeups take about 230 us in the schbench report on this machine",
            ),
            (
                "idle_exit_ns",
                8_000,
                "a fit to the least latency, 21 us, in the same report: a halted vCPU is started by its host",
            ),
        ],
    },
    Preset {
        name: "laptop8",
        description: "laptop with 8 CPUs: 4 cores of 2 threads, one last-level cache, HZ 250",
        nodes: 1,
        llcs_a_node: 1,
        cores_an_llc: 4,
        threads_a_core: 2,
        numbering: SmtNumbering::Spread,
        hz: 250,
        costs: &[],
    },
];

impl Preset {
    pub(super) fn build(&self) -> Machine {
        let topology = Topology::regular(
            self.nodes,
            self.llcs_a_node,
            self.cores_an_llc,
            self.threads_a_core,
            self.numbering,
        );
        let mut costs = Costs::default();
        for (name, value, _) in self.costs {
            assert!(
                costs.set(name, Ns(*value)),
                "preset {} sets a cost that does not exist: {name}",
                self.name
            );
        }
        Machine {
            name: self.name.to_string(),
            description: self.description.to_string(),
            topology: topology.expect("presets are possible machines"),
            hz: self.hz,
            costs,
            frequency_domains: Vec::new(),
        }
    }

    /// The costs that differ from the defaults: name, ns, reason.
    pub fn own_costs(&self) -> &'static [(&'static str, u64, &'static str)] {
        self.costs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_built() {
        for preset in PRESETS {
            let machine = Machine::preset(preset.name).expect(preset.name);
            assert_eq!(machine.name, preset.name);
            assert_eq!(1_000_000_000 % machine.hz, 0, "{}: a tick is a whole number of ns", preset.name);
        }
        assert_eq!(Machine::preset("vm40").map(|machine| machine.topology.nr_cpus()), Some(40));
        assert_eq!(Machine::preset("nonsense"), None);
    }
}
