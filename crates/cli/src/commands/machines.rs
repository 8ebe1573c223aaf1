//! `fairlab machines`: what machines there are, what they look like, and which domains a kernel builds on them.

mod domains;

use fairlab_event::Cpu;
use fairlab_kernel::domain::SchedDomains;
use fairlab_kernel::energy::PerfState;
use fairlab_kernel::{CpuMask, Generation};
use fairlab_lab::kernel::newest_release;
use fairlab_lab::{LabError, chance_spec, machines};
use fairlab_sim::Machine;
use fairlab_sim::machine::{PRESETS, Preset};
use serde_json::{Value, json};

use crate::args::{AnswerFormat, MachineArgs, MachineFormat, MachinesCommand};
use crate::error::CliError;
use crate::output;
use crate::provenance::described;

pub fn execute(command: MachinesCommand) -> Result<(), CliError> {
    match command {
        MachinesCommand::List(args) => list(args.format),
        MachinesCommand::Show(args) => show(&args),
    }
}

/// Machines without a name of their own: the beginning of a name, and its end.
const OTHERS: [(&str, &str); 3] = [
    ("host", "this host, read from sysfs"),
    (
        "emulated:*",
        "what a booted kernel sees: emulated:4 is four CPUs, emulated:1x4x2 sockets, cores and threads, emulated:chromebook8 a board",
    ),
    ("*.toml", "a TOML file"),
];

fn list(format: AnswerFormat) -> Result<(), CliError> {
    if format == AnswerFormat::Json {
        let presets =
            PRESETS.iter().map(|preset| json!({ "name": preset.name, "description": preset.description }));
        let others = OTHERS.map(|(name, description)| json!({ "name": name, "description": description }));
        return output::answer_json(
            &described(),
            json!({
                "schema": "fairlab/machines/1",
                "machines": presets.chain(others).collect::<Vec<_>>(),
            }),
        );
    }
    let mut lines = PRESETS.iter().map(|preset| (preset.name, preset.description)).collect::<Vec<_>>();
    lines.extend(OTHERS);
    let lines = lines.into_iter().map(|(name, description)| format!("{name:<13} {description}\n"));
    output::answer(&described(), &lines.collect::<String>())
}

fn show(args: &MachineArgs) -> Result<(), CliError> {
    let machine = machines::find(&args.machine)?;
    if args.format == MachineFormat::Toml {
        return output::answer(&described(), &machines::to_toml(&machine));
    }
    let kernel = args.kernel.clone().unwrap_or_else(newest_release);
    let kernel = Generation::asked_for(&kernel).map_err(LabError::from)?;
    let last = machine.topology.nr_cpus() - 1;
    if let Some(cpu) = args.cpu.filter(|&cpu| cpu as usize > last) {
        let problem = format!("machine {} has no CPU {cpu}", machine.name);
        return Err(CliError::bad(problem, format!("its CPUs are 0 to {last}")));
    }
    let domains = SchedDomains::new(&machine.topology, &kernel.domain);
    if args.format == MachineFormat::Json {
        return output::answer_json(&described(), machine_json(&machine, &kernel, &domains));
    }
    let preset = PRESETS.iter().find(|preset| preset.name == machine.name);
    let mut text = format!("{}: {}\n\n{}", machine.name, machine.description, draw(&machine));
    text += &parts(&machine);
    text += &domains::draw(&machine, &domains, kernel.name(), args.cpu.map(Cpu));
    text += &sources(preset);
    text += &costs(&machine, preset);
    text += &sharing(&machine, preset);
    text += &chance(&machine, preset);
    output::answer(&described(), &text)
}

fn machine_json(machine: &Machine, kernel: &Generation, domains: &SchedDomains) -> Value {
    let topology = &machine.topology;
    let cpus = topology.cpus().map(|cpu| {
        let place = topology.place(cpu);
        json!({
            "cpu": cpu.0, "core": place.core, "llc": place.llc, "node": place.node,
            "cluster": topology.cluster_mask(cpu).to_string(), "package": topology.package_mask(cpu).to_string(),
            "capacity": topology.capacity(cpu), "priority": topology.core_priority(cpu),
        })
    });
    let nodes = topology.nr_nodes() as u32;
    let row = |from| (0..nodes).map(|to| topology.distance(from, to)).collect::<Vec<_>>();
    let clocks = machine.frequency_domains.iter().map(|clock| {
        let model = machine.energy_model.iter().find(|domain| domain.cpus == clock.cpus);
        let powers = model.map(|domain| domain.states.iter().map(PerfState::milliwatts).collect::<Vec<_>>());
        json!({
            "cpus": clock.cpus.to_string(), "khz": clock.frequencies,
            "rate_limit_ns": clock.rate_limit.0, "fast_switch": clock.fast_switch, "milliwatts": powers,
        })
    });
    let sharing = machine.sharing.table();
    let sharing = sharing.iter().filter(|figure| figure.value > 0);
    let sharing = sharing.map(|figure| (figure.name.to_string(), json!(figure.value)));
    let costs = machine.costs.table();
    let costs = costs.iter().map(|cost| (cost.name.to_string(), json!(cost.value.0)));
    json!({
        "schema": "fairlab/machine/1",
        "name": machine.name,
        "description": machine.description,
        "platform": topology.platform().name(),
        "hz": machine.hz,
        "high_res_timers": machine.high_res_timers,
        "nohz_idle": machine.nohz_idle,
        "chance": chance_spec(&machine.chance),
        "in_turn": machine.in_turn,
        "cpus": cpus.collect::<Vec<_>>(),
        "distances": (0..nodes).map(row).collect::<Vec<_>>(),
        "clocks": clocks.collect::<Vec<_>>(),
        "costs": costs.collect::<serde_json::Map<_, _>>(),
        "sharing": sharing.collect::<serde_json::Map<_, _>>(),
        "kernel": kernel.name(),
        "domains": domains::to_json(machine, domains),
    })
}

/// Nodes, caches and cores as nested lines.
fn draw(machine: &Machine) -> String {
    let topology = &machine.topology;
    let mut text = String::new();
    let first_of = |cpu: &Cpu, mask: &CpuMask| mask.lowest() == Some(*cpu);
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

/// What not every machine has: clusters, distances, capacities, clocks.
fn parts(machine: &Machine) -> String {
    let topology = &machine.topology;
    let mut text = String::new();
    let once = |mask: &dyn Fn(Cpu) -> CpuMask| {
        let first = topology.cpus().filter(|&cpu| mask(cpu).lowest() == Some(cpu));
        first.map(|cpu| format!("[{}]", mask(cpu))).collect::<Vec<_>>().join(" ")
    };
    if topology.cpus().any(|cpu| topology.cluster_mask(cpu) != topology.smt_mask(cpu)) {
        text += &format!("clusters {}\n", once(&|cpu| *topology.cluster_mask(cpu)));
    }
    let nodes = topology.nr_nodes() as u32;
    for from in (0..nodes).filter(|_| nodes > 1) {
        let row = (0..nodes).map(|to| format!("{:>3}", topology.distance(from, to)));
        text += &format!("distances from node {from}: {}\n", row.collect::<Vec<_>>().join(" "));
    }
    if topology.has_asymmetric_capacity() {
        let alike = |cpu: Cpu| {
            topology
                .cpus()
                .filter(|&other| topology.capacity(other) == topology.capacity(cpu))
                .collect::<CpuMask>()
        };
        for cpu in topology.cpus().filter(|&cpu| alike(cpu).lowest() == Some(cpu)) {
            text += &format!("capacity {} of 1024: CPUs {}\n", topology.capacity(cpu), alike(cpu));
        }
    }
    if topology.has_preferred_cpus() {
        let alike = |cpu: Cpu| {
            let same = |other: &Cpu| topology.core_priority(*other) == topology.core_priority(cpu);
            topology.cpus().filter(same).collect::<CpuMask>()
        };
        for cpu in topology.cpus().filter(|&cpu| alike(cpu).lowest() == Some(cpu)) {
            text += &format!("priority {}: CPUs {}\n", topology.core_priority(cpu), alike(cpu));
        }
    }
    text += &true_speeds(machine);
    for clock in &machine.frequency_domains {
        let (lowest, highest) = (clock.frequencies.first().copied().unwrap_or(0), clock.max());
        text += &format!(
            "one clock: CPUs {}, {} frequencies from {} to {} MHz, schedutil every {} us at most{}\n",
            clock.cpus,
            clock.frequencies.len(),
            lowest / 1000,
            highest / 1000,
            clock.rate_limit.0 / 1000,
            if clock.invariant { "" } else { ", not told which is in force" }
        );
    }
    for state in &machine.idle_states {
        let together = if state.together { ", all of them together" } else { "" };
        text += &format!(
            "idle state: CPUs {}, left in {} us, for {} us and more{together}\n",
            state.cpus,
            state.exit.0 / 1000,
            state.residency.0 / 1000
        );
    }
    for domain in &machine.energy_model {
        if let (Some(lowest), Some(highest)) = (domain.states.first(), domain.states.last()) {
            text += &format!(
                "energy model: CPUs {} draw {} to {} mW each\n",
                domain.cpus,
                lowest.milliwatts(),
                highest.milliwatts()
            );
        }
    }
    text
}

/// What CPUs do whatever their kernel is told.
fn true_speeds(machine: &Machine) -> String {
    let (mut text, speeds) = (String::new(), &machine.speeds);
    let alike = |cpu: Cpu| {
        let same = |other: &Cpu| speeds.cpus[other.index()] == speeds.cpus[cpu.index()];
        machine.topology.cpus().filter(same).collect::<CpuMask>()
    };
    for cpu in
        machine.topology.cpus().filter(|&cpu| !speeds.cpus.is_empty() && alike(cpu).lowest() == Some(cpu))
    {
        text += &format!("true speed {} of 1024: CPUs {}\n", speeds.cpus[cpu.index()], alike(cpu));
    }
    for boost in &speeds.boosts {
        let steps =
            boost.steps.iter().map(|(from, speed)| format!("{speed} of 1024 from {from} busy cores on"));
        text += &format!("boost: CPUs {}, {}\n", boost.cpus, steps.collect::<Vec<_>>().join(", "));
    }
    for limit in &speeds.limits {
        let lasts = limit.lasts.map_or(String::new(), |lasts| format!(" for {} ms", lasts.0 / 1_000_000));
        let every = limit.every.map_or(String::new(), |every| format!(", every {} ms", every.0 / 1_000_000));
        let from = limit.from.0 / 1_000_000;
        text +=
            &format!("limit: CPUs {}, {} of 1024 from {from} ms on{lasts}{every}\n", limit.cpus, limit.speed);
    }
    text
}

fn sources(preset: Option<&Preset>) -> String {
    let Some(preset) = preset else { return String::new() };
    let lines = preset.sources().iter().map(|(what, source)| format!("  {what:<10} {source}\n"));
    format!("\nSources:\n{}", lines.collect::<String>())
}

fn chance(machine: &Machine, preset: Option<&Preset>) -> String {
    let mut text = String::from("\nChance, which --exact switches off:\n");
    for line in machine.chance.table() {
        let own = preset.and_then(|preset| preset.sources().iter().find(|(what, _)| *what == "chance"));
        let source = match (line.value == line.default, own) {
            _ if line.value == 0 => "switched off",
            (true, _) => line.source,
            (false, Some((_, source))) => source,
            (false, None) => "set in the machine's file",
        };
        text += &format!("  {:<21} {:>9}  {}\n{:34}{source}\n", line.name, line.value, line.about, "");
    }
    text
}

fn costs(machine: &Machine, preset: Option<&Preset>) -> String {
    let mut text = String::from("\nKernel work:\n");
    for cost in machine.costs.table() {
        let own = preset.and_then(|preset| {
            preset.own_costs().iter().find(|(name, ..)| *name == cost.name).map(|(.., reason)| *reason)
        });
        let source =
            own.unwrap_or(if cost.value == cost.default { cost.source } else { "set in the machine's file" });
        text += &format!("  {:<19} {:>7} ns  {}\n{:34}{source}\n", cost.name, cost.value.0, cost.covers, "");
    }
    text
}

fn sharing(machine: &Machine, preset: Option<&Preset>) -> String {
    if machine.sharing.is_off() {
        return "\nSharing: nothing is known of this machine, so nothing is charged.\n".to_string();
    }
    let mut text = String::from("\nSharing, which '-sharing' behind the machine's name switches off:\n");
    for figure in machine.sharing.table().iter().filter(|figure| figure.value > 0) {
        let own = preset.and_then(|preset| {
            let mut all = preset.own_sharing().iter();
            all.find(|(name, ..)| *name == figure.name).map(|(.., source)| *source)
        });
        let source = own.unwrap_or("set in the machine's file");
        text += &format!("  {:<22} {:>7}  {}\n{:33}{source}\n", figure.name, figure.value, figure.about, "");
    }
    let off = machine.sharing.table().into_iter().filter(|figure| figure.value == 0);
    let off = off.map(|figure| figure.name).collect::<Vec<_>>().join(", ");
    if off.is_empty() { text } else { text + &format!("  not known, so off: {off}\n") }
}
