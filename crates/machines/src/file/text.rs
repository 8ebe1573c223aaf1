//! A machine as the TOML file that describes it.

use std::collections::BTreeSet;
use std::fmt::Write;

use fairlab_event::Cpu;
use fairlab_kernel::{CpuMask, Topology};
use fairlab_sim::Machine;
use fairlab_sim::machine::{Chance, KernelCosts, Sharing, TrueSpeeds};

/// The file; reading it gives this machine.
pub(crate) fn to_toml(machine: &Machine) -> String {
    without_amounts(machine) + &chance(&machine.chance) + &costs(&machine.costs) + &sharing(&machine.sharing)
}

/// The file without what calibration measures: chance, costs and what sharing costs.
pub(crate) fn without_amounts(machine: &Machine) -> String {
    let topology = &machine.topology;
    let mut text = format!(
        "name = {}\ndescription = {}\nhz = {}\nhigh_res_timers = {}\nnohz_idle = {}\n\
         in_turn = {}\nplatform = \"{}\"\n\n",
        quoted(&machine.name),
        quoted(&machine.description),
        machine.hz,
        machine.high_res_timers,
        machine.nohz_idle,
        machine.in_turn,
        topology.platform().name()
    );
    text += &cpus(topology);
    text += &capacities(topology);
    text += &priorities(topology);
    text += &numa(topology);
    text += &speeds(topology, &machine.speeds);
    for clock in &machine.frequency_domains {
        let khz = clock.frequencies.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let _ = write!(
            text,
            "\n[[clock]]\ncpus = \"{}\"\nkhz = [{khz}]\nrate_limit_us = {}\nfast_switch = {}\ninvariant = {}\n",
            clock.cpus,
            clock.rate_limit.0 / 1000,
            clock.fast_switch,
            clock.invariant
        );
        if let Some(domain) = machine.energy_model.iter().find(|domain| domain.cpus == clock.cpus) {
            let powers = domain.states.iter().map(|state| state.milliwatts().to_string()).collect::<Vec<_>>();
            let _ = writeln!(text, "milliwatts = [{}]", powers.join(", "));
        }
    }
    for state in &machine.idle_states {
        let _ = write!(
            text,
            "\n[[idle_state]]\ncpus = \"{}\"\nexit_us = {}\nentry_us = {}\nresidency_us = {}\ntogether = {}\n",
            state.cpus,
            state.exit.0 / 1000,
            state.entry.0 / 1000,
            state.residency.0 / 1000,
            state.together
        );
    }
    text
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}

/// `["0-1", "2-3"]`: one list for each number up to the highest.
fn lists(topology: &Topology, number: impl Fn(Cpu) -> u32) -> String {
    let last = topology.cpus().map(&number).max().unwrap_or(0);
    let list = |wanted: u32| {
        let cpus = topology.cpus().filter(|&cpu| number(cpu) == wanted).collect::<CpuMask>();
        format!("\"{cpus}\"")
    };
    format!("[{}]", (0..=last).map(list).collect::<Vec<_>>().join(", "))
}

/// The masks of all CPUs, each once, in order of their first CPU.
fn distinct<'t>(topology: &'t Topology, mask: impl Fn(Cpu) -> &'t CpuMask) -> String {
    let first = topology.cpus().filter(|&cpu| mask(cpu).lowest() == Some(cpu));
    let lists = first.map(|cpu| format!("\"{}\"", mask(cpu))).collect::<Vec<_>>();
    format!("[{}]", lists.join(", "))
}

fn cpus(topology: &Topology) -> String {
    let mut text = format!("[cpus]\ncores = {}\n", lists(topology, |cpu| topology.place(cpu).core));
    if topology.cpus().any(|cpu| topology.cluster_mask(cpu) != topology.smt_mask(cpu)) {
        let _ = writeln!(text, "clusters = {}", distinct(topology, |cpu| topology.cluster_mask(cpu)));
    }
    let _ = writeln!(text, "caches = {}", lists(topology, |cpu| topology.place(cpu).llc));
    let _ = writeln!(text, "nodes = {}", lists(topology, |cpu| topology.place(cpu).node));
    if topology.cpus().any(|cpu| topology.package_mask(cpu) != topology.node_mask(cpu)) {
        let _ = writeln!(text, "packages = {}", distinct(topology, |cpu| topology.package_mask(cpu)));
    }
    text
}

fn capacities(topology: &Topology) -> String {
    match topology.has_asymmetric_capacity() {
        true => by_value("capacities", topology, |cpu| topology.capacity(cpu)),
        false => String::new(),
    }
}

fn priorities(topology: &Topology) -> String {
    match topology.has_preferred_cpus() {
        true => by_value("priorities", topology, |cpu| topology.core_priority(cpu)),
        false => String::new(),
    }
}

/// A table of the lists of CPUs that have one number.
fn by_value(table: &str, topology: &Topology, number: impl Fn(Cpu) -> u32) -> String {
    let all = topology.cpus().map(&number).collect::<BTreeSet<_>>();
    let mut text = format!("\n[{table}]\n");
    for value in all {
        let cpus = topology.cpus().filter(|&cpu| number(cpu) == value).collect::<CpuMask>();
        let _ = writeln!(text, "\"{cpus}\" = {value}");
    }
    text
}

fn speeds(topology: &Topology, speeds: &TrueSpeeds) -> String {
    let mut text = match speeds.cpus.is_empty() {
        true => String::new(),
        false => by_value("speeds", topology, |cpu| speeds.cpus[cpu.index()]),
    };
    for boost in &speeds.boosts {
        let steps = boost.steps.iter().map(|(from, speed)| format!("{from} = {speed}")).collect::<Vec<_>>();
        let steps = steps.join(", ");
        let _ = write!(text, "\n[[boost]]\ncpus = \"{}\"\nspeed_from_cores = {{ {steps} }}\n", boost.cpus);
    }
    for limit in &speeds.limits {
        let from_ms = limit.from.0 / 1_000_000;
        let _ = write!(
            text,
            "\n[[limit]]\ncpus = \"{}\"\nspeed = {}\nfrom_ms = {from_ms}\n",
            limit.cpus, limit.speed
        );
        for (key, time) in [("lasts_ms", limit.lasts), ("every_ms", limit.every)] {
            let _ = time.map(|time| writeln!(text, "{key} = {}", time.0 / 1_000_000));
        }
    }
    text
}

fn numa(topology: &Topology) -> String {
    let nodes = topology.nr_nodes() as u32;
    let row = |from: u32| {
        let row = (0..nodes).map(|to| topology.distance(from, to).to_string()).collect::<Vec<_>>();
        format!("    [{}],\n", row.join(", "))
    };
    let rows = (0..nodes).map(row).collect::<String>();
    format!("\n[numa]\nreclaim_distance = {}\ndistances = [\n{rows}]\n", topology.reclaim_distance())
}

/// Every amount, for defaults may change.
fn chance(chance: &Chance) -> String {
    let lines = chance.table().into_iter().map(|source| format!("{} = {}\n", source.name, source.value));
    format!("\n[chance]\n{}", lines.collect::<String>())
}

fn costs(costs: &KernelCosts) -> String {
    let own = costs.table().into_iter().filter(|cost| cost.value != cost.default);
    let lines = own.map(|cost| format!("{} = {}\n", cost.name, cost.value.0)).collect::<String>();
    if lines.is_empty() { lines } else { format!("\n[costs]\n{lines}") }
}

fn sharing(sharing: &Sharing) -> String {
    let known = sharing.table().into_iter().filter(|figure| figure.value > 0);
    let lines = known.map(|figure| format!("{} = {}\n", figure.name, figure.value)).collect::<String>();
    if lines.is_empty() { lines } else { format!("\n[sharing]\n{lines}") }
}
