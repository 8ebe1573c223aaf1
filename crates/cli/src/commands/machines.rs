//! `fairlab machines`: what machines there are, and what they look like.

use fairlab_event::Cpu;
use fairlab_lab::machines;
use fairlab_sim::Machine;
use fairlab_sim::machine::PRESETS;
use serde_json::json;

use crate::args::{Format, MachinesCommand};
use crate::error::CliError;
use crate::output;

pub fn execute(command: MachinesCommand) -> Result<(), CliError> {
    match command {
        MachinesCommand::List(args) => list(args.format),
        MachinesCommand::Show { machine, format } => show(&machines::find(&machine)?, format.format),
    }
}

fn list(format: Format) -> Result<(), CliError> {
    if format == Format::Json {
        let presets =
            PRESETS.iter().map(|preset| json!({ "name": preset.name, "description": preset.description }));
        return output::print_json(&json!({
            "schema": "fairlab/machines/1",
            "machines": presets.collect::<Vec<_>>(),
        }));
    }
    let lines = PRESETS.iter().map(|preset| format!("{:<10} {}\n", preset.name, preset.description));
    let text = lines.collect::<String>();
    output::print(&format!("{text}{:<10} this host, read from sysfs\n{:<10} a TOML file\n", "host", "*.toml"))
}

fn show(machine: &Machine, format: Format) -> Result<(), CliError> {
    let costs = machine.costs.table();
    if format == Format::Json {
        let topology = &machine.topology;
        let cpus = topology.cpus().map(|cpu| {
            let place = topology.place(cpu);
            json!({ "cpu": cpu.0, "core": place.core, "llc": place.llc, "node": place.node })
        });
        let costs = costs.iter().map(|cost| (cost.name.to_string(), json!(cost.value.0)));
        return output::print_json(&json!({
            "schema": "fairlab/machines/1",
            "name": machine.name,
            "description": machine.description,
            "hz": machine.hz,
            "cpus": cpus.collect::<Vec<_>>(),
            "costs": costs.collect::<serde_json::Map<_, _>>(),
        }));
    }
    let mut text = format!("{}: {}\n\n{}\nKernel work:\n", machine.name, machine.description, draw(machine));
    for cost in costs {
        let own = PRESETS.iter().find(|preset| preset.name == machine.name).and_then(|preset| {
            preset.own_costs().iter().find(|(name, ..)| *name == cost.name).map(|(.., reason)| *reason)
        });
        let source =
            own.unwrap_or(if cost.value == cost.default { cost.source } else { "set in the machine's file" });
        text += &format!("  {:<18} {:>7} ns  {}\n{:33}{source}\n", cost.name, cost.value.0, cost.covers, "");
    }
    output::print(&text)
}

/// Nodes, caches and cores as nested lines.
fn draw(machine: &Machine) -> String {
    let topology = &machine.topology;
    let mut text = String::new();
    let first_of = |cpu: &Cpu, mask: &fairlab_kernel::CpuMask| mask.lowest() == Some(*cpu);
    for node in topology.cpus().filter(|cpu| first_of(cpu, topology.node_mask(*cpu))) {
        text += &format!("node {}: CPUs {}\n", topology.place(node).node, topology.node_mask(node));
        for llc in topology.node_mask(node).iter().filter(|cpu| first_of(cpu, topology.llc_mask(*cpu))) {
            text +=
                &format!("  last-level cache {}: CPUs {}\n", topology.place(llc).llc, topology.llc_mask(llc));
            let cores = topology.llc_mask(llc).iter().filter(|cpu| first_of(cpu, topology.smt_mask(*cpu)));
            let cores = cores.map(|cpu| format!("[{}]", topology.smt_mask(cpu))).collect::<Vec<_>>();
            for line in cores.chunks(10) {
                text += &format!("    cores {}\n", line.join(" "));
            }
        }
    }
    text
}
