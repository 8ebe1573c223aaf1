//! Machines from and to TOML files.

mod cpus;
mod text;

use std::collections::BTreeMap;
use std::path::Path;

use fairlab_event::Ns;
use fairlab_event::spelling::meant;
use fairlab_kernel::cpufreq::FrequencyDomain;
use fairlab_kernel::energy::{PerfDomain, PerfState};
use fairlab_kernel::topology::{Platform, SmtNumbering};
use fairlab_kernel::{CpuMask, Topology};
use fairlab_sim::Machine;
use fairlab_sim::machine::{Boost, Chance, IdleState, KernelCosts, Sharing, SpeedLimit, TrueSpeeds};
use serde::Deserialize;

use cpus::CpusTable;
use fairlab_files::{LabError, another_kind, complaint, line_at};
pub(super) use text::{to_toml, without_amounts};

/// A machine as a file describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineFile {
    name: String,
    #[serde(default)]
    description: String,
    hz: u64,
    /// Sleep timers expire when they are due, not at the next tick.
    #[serde(default = "yes")]
    high_res_timers: bool,
    /// Idle CPUs stop their tick.
    #[serde(default = "yes")]
    nohz_idle: bool,
    /// By how many percent the cost of kernel work varies: what `kernel_permille` of the table `chance` says in another unit.
    jitter_percent: Option<u32>,
    /// CPUs are carried out in turn by one thread.
    #[serde(default)]
    in_turn: bool,
    /// Whose architecture code it is: x86, arm64 or s390.
    #[serde(default)]
    platform: Option<String>,
    /// A regular machine, by numbers…
    topology: Option<TopologyTable>,
    /// … or any machine, by lists of CPUs.
    cpus: Option<CpusTable>,
    /// Capacities of lists of CPUs; 1024 where nothing is said.
    #[serde(default)]
    capacities: BTreeMap<String, u32>,
    /// How fast lists of CPUs truly are, of 1024; where nothing is said of any, as fast as their capacities tell.
    #[serde(default)]
    speeds: BTreeMap<String, u32>,
    /// Cores that are slower the more of them are busy.
    #[serde(default)]
    boost: Vec<BoostTable>,
    /// Times at which CPUs are slower.
    #[serde(default)]
    limit: Vec<LimitTable>,
    /// Priorities of lists of CPUs, where some are preferred to others; 0 where nothing is said.
    #[serde(default)]
    priorities: BTreeMap<String, u32>,
    #[serde(default)]
    numa: NumaTable,
    /// CPUs that share a clock.
    #[serde(default)]
    clock: Vec<ClockTable>,
    /// Idle states, for each CPU by rising depth.
    #[serde(default)]
    idle_state: Vec<IdleStateTable>,
    /// Amounts of chance that differ from the defaults.
    #[serde(default)]
    chance: BTreeMap<String, u64>,
    /// Costs in ns that differ from the defaults.
    #[serde(default)]
    costs: BTreeMap<String, u64>,
    /// What sharing costs; what is not given is off.
    #[serde(default)]
    sharing: BTreeMap<String, u64>,
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

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NumaTable {
    /// A row a node.
    distances: Option<Vec<Vec<u32>>>,
    reclaim_distance: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockTable {
    cpus: String,
    khz: Vec<u32>,
    #[serde(default = "millisecond")]
    rate_limit_us: u64,
    #[serde(default)]
    fast_switch: bool,
    /// The scheduler is told which frequency is in force.
    #[serde(default = "yes")]
    invariant: bool,
    /// What a CPU draws at each frequency; for all clocks or for none.
    milliwatts: Option<Vec<u32>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IdleStateTable {
    cpus: String,
    exit_us: u64,
    /// How much of that is for entering it.
    #[serde(default)]
    entry_us: u64,
    residency_us: u64,
    #[serde(default)]
    together: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BoostTable {
    cpus: String,
    /// From so many busy cores on, so fast, of 1024.
    speed_from_cores: BTreeMap<String, u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitTable {
    cpus: String,
    speed: u32,
    #[serde(default)]
    from_ms: u64,
    lasts_ms: Option<u64>,
    every_ms: Option<u64>,
}

const fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

/// What schedutil waits where a driver names no latency, us (`LATENCY_MULTIPLIER`).
fn millisecond() -> u64 {
    1000
}

/// The longest piece of kernel work.
const COST_MAX_NS: u64 = 1_000_000_000;

/// The latest and longest limit of CPUs' speed, ms.
const LIMIT_MAX_MS: u64 = 86_400_000;

/// The longest wait of a governor between two frequencies, us.
const RATE_LIMIT_MAX_US: u64 = 60_000_000;

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

/// Reads the text of a machine file.
///
/// # Errors
/// It is none, or describes an impossible machine.
pub(super) fn parse(text: &str) -> Result<Machine, LabError> {
    let file: MachineFile = toml::from_str(text).map_err(|error| {
        let at = line_at(text, error.span());
        let wrong = || {
            LabError::new(
                format!("line {at}: {}", complaint(error.message())),
                "'fairlab machines show vm40 --format toml' prints an example",
            )
        };
        another_kind(text, "machine").unwrap_or_else(wrong)
    })?;
    let impossible = |problem: String| {
        LabError::new(
            format!("impossible topology: {problem}"),
            "correct the tables that describe CPUs and nodes",
        )
    };
    let topology = file.topology().map_err(impossible)?;
    if file.hz == 0 || file.hz > 10_000 || 1_000_000_000 % file.hz != 0 {
        let problem = format!("hz = {} is no tick rate", file.hz);
        return Err(LabError::new(problem, "use the kernel's CONFIG_HZ: 100, 250 or 1000"));
    }
    let frequency_domains = file.frequency_domains(&topology).map_err(impossible)?;
    let speeds = file.true_speeds(&topology).map_err(impossible)?;
    let idle_states = file.idle_states(&topology).map_err(impossible)?;
    let energy_model = file.energy_model(&topology).map_err(impossible)?;
    let chance = file.chance()?;
    let sharing = file.sharing()?;
    let mut costs = KernelCosts::default();
    for (name, value) in file.costs {
        if value > COST_MAX_NS {
            return Err(LabError::new(
                format!("cost '{name}' of {value} ns is longer than a second"),
                "give what a piece of kernel work takes, in ns",
            ));
        }
        if !costs.set(&name, Ns(value)) {
            let names = costs.table();
            let line =
                text.lines().position(|line| line.trim_start().starts_with(&name)).map_or(1, |at| at + 1);
            let hint = match meant(&name, names.iter().map(|cost| cost.name)) {
                Some(cost) => format!("{cost} may be meant; 'fairlab machines show vm4' lists all"),
                None => "'fairlab machines show vm4' lists all".to_string(),
            };
            return Err(LabError::new(format!("line {line}: unknown cost '{name}'"), hint));
        }
    }
    Ok(Machine {
        name: file.name,
        description: file.description,
        topology,
        hz: file.hz,
        high_res_timers: file.high_res_timers,
        nohz_idle: file.nohz_idle,
        chance,
        in_turn: file.in_turn,
        costs,
        sharing,
        speeds,
        frequency_domains,
        energy_model,
        idle_states,
    })
}

impl MachineFile {
    fn sharing(&self) -> Result<Sharing, LabError> {
        let mut sharing = Sharing::NONE;
        let names = || sharing.table().iter().map(|figure| figure.name).collect::<Vec<_>>().join(", ");
        let hint = format!("[sharing] has {}; what is 0 or not there is off", names());
        for (name, &value) in &self.sharing {
            sharing
                .set(name, value)
                .map_err(|problem| LabError::new(format!("[sharing]: {problem}"), &hint))?;
        }
        if self.in_turn && !sharing.is_off() {
            let problem = "in_turn and [sharing] exclude each other: one thread carries out all CPUs";
            return Err(LabError::new(problem, "leave one of them out"));
        }
        Ok(sharing)
    }

    fn chance(&self) -> Result<Chance, LabError> {
        let mut chance = Chance::USUAL;
        let names = || chance.table().iter().map(|source| source.name).collect::<Vec<_>>().join(", ");
        let hint = format!("[chance] has {}; 0 switches a source off", names());
        if let Some(percent) = self.jitter_percent {
            if self.chance.contains_key("kernel_permille") {
                let problem = "jitter_percent and kernel_permille of [chance] set one value";
                return Err(LabError::new(problem, "leave jitter_percent out"));
            }
            let set = chance.set("kernel_permille", u64::from(percent) * 10);
            set.map_err(|_| LabError::new(format!("jitter_percent = {percent} is more than 100"), &hint))?;
        }
        for (name, &value) in &self.chance {
            chance
                .set(name, value)
                .map_err(|problem| LabError::new(format!("[chance]: {problem}"), &hint))?;
        }
        Ok(chance)
    }

    fn topology(&self) -> Result<Topology, String> {
        let mut topology = match (&self.topology, &self.cpus) {
            (Some(table), None) => table.regular()?,
            (None, Some(cpus)) => cpus.topology()?,
            (None, None) => return Err("a machine needs a table [topology] or [cpus]".to_string()),
            (Some(_), Some(_)) => return Err("[topology] and [cpus] exclude each other".to_string()),
        };
        if let Some(name) = &self.platform {
            let known = Platform::NAMES.iter().find(|(_, known)| known == name);
            let names = Platform::NAMES.map(|(_, name)| name).join(", ");
            let platform = known.ok_or_else(|| format!("platform '{name}' is unknown; known are {names}"))?;
            topology = topology.of_platform(platform.0);
        }
        if let Some(distances) = &self.numa.distances {
            topology = topology.with_distances(distances.clone())?;
        }
        if let Some(distance) = self.numa.reclaim_distance {
            topology = topology.with_reclaim_distance(distance);
        }
        let mut capacities = vec![1024; topology.nr_cpus()];
        for (list, &capacity) in &self.capacities {
            let cpus = present("capacities", list, &topology)?;
            cpus.iter().for_each(|cpu| capacities[cpu.index()] = capacity);
        }
        topology = topology.with_capacities(&capacities)?;
        if self.priorities.is_empty() {
            return Ok(topology);
        }
        let mut priorities = vec![0; topology.nr_cpus()];
        for (list, &priority) in &self.priorities {
            let cpus = present("priorities", list, &topology)?;
            cpus.iter().for_each(|cpu| priorities[cpu.index()] = priority);
        }
        topology.with_priorities(&priorities)
    }

    fn frequency_domains(&self, topology: &Topology) -> Result<Vec<FrequencyDomain>, String> {
        let mut seen = CpuMask::EMPTY;
        let mut domain = |clock: &ClockTable| {
            let cpus = present("clock", &clock.cpus, topology)?;
            if !cpus.and(&seen).is_empty() {
                return Err(format!("CPUs {} have two clocks", cpus.and(&seen)));
            }
            seen = seen.or(&cpus);
            if clock.khz.is_empty() || clock.khz[0] == 0 || !clock.khz.is_sorted() {
                return Err(format!("the clock of CPUs {cpus} needs frequencies in kHz that rise"));
            }
            if clock.rate_limit_us > RATE_LIMIT_MAX_US {
                return Err(format!("the clock of CPUs {cpus} waits longer than a minute (rate_limit_us)"));
            }
            Ok(FrequencyDomain {
                cpus,
                frequencies: clock.khz.clone(),
                rate_limit: Ns::from_us(clock.rate_limit_us),
                fast_switch: clock.fast_switch,
                invariant: clock.invariant,
            })
        };
        self.clock.iter().map(&mut domain).collect()
    }

    fn true_speeds(&self, topology: &Topology) -> Result<TrueSpeeds, String> {
        let is_speed = |what: &str, speed: u32| match speed {
            1..=1024 => Ok(speed),
            speed => Err(format!("{what}: a speed of {speed} is not from 1 to 1024")),
        };
        let mut cpus = vec![1024; if self.speeds.is_empty() { 0 } else { topology.nr_cpus() }];
        for (list, &speed) in &self.speeds {
            let speed = is_speed("speeds", speed)?;
            present("speeds", list, topology)?.iter().for_each(|cpu| cpus[cpu.index()] = speed);
        }
        let step = |(from, &speed): (&String, &u32)| {
            let from = from.parse().map_err(|_| format!("boost: '{from}' is no number of busy cores"))?;
            Ok((from, is_speed("boost", speed)?))
        };
        let boost = |table: &BoostTable| {
            let mut steps = table.speed_from_cores.iter().map(step).collect::<Result<Vec<_>, String>>()?;
            steps.sort_unstable();
            Ok(Boost { cpus: present("boost", &table.cpus, topology)?, steps })
        };
        let limit = |table: &LimitTable| {
            let times = [Some(table.from_ms), table.lasts_ms, table.every_ms];
            if times.into_iter().flatten().any(|time| time > LIMIT_MAX_MS) {
                return Err(format!("limit: a time of CPUs {} is longer than a day", table.cpus));
            }
            let (lasts, every) = (table.lasts_ms.map(Ns::from_ms), table.every_ms.map(Ns::from_ms));
            if every.is_some_and(|every| lasts.is_none_or(|lasts| lasts == Ns::ZERO || lasts >= every)) {
                return Err("limit: every_ms asks for a lasts_ms that is shorter, and not 0".to_string());
            }
            let cpus = present("limit", &table.cpus, topology)?;
            Ok(SpeedLimit {
                cpus,
                speed: is_speed("limit", table.speed)?,
                from: Ns::from_ms(table.from_ms),
                lasts,
                every,
            })
        };
        let speeds = TrueSpeeds {
            cpus,
            boosts: self.boost.iter().map(boost).collect::<Result<_, String>>()?,
            limits: self.limit.iter().map(limit).collect::<Result<_, String>>()?,
        };
        match self.in_turn && !speeds.are_as_told() {
            true => {
                Err("in_turn excludes [speeds], [[boost]] and [[limit]]: one thread carries out all CPUs"
                    .to_string())
            }
            false => Ok(speeds),
        }
    }

    fn idle_states(&self, topology: &Topology) -> Result<Vec<IdleState>, String> {
        const LONGEST_US: u64 = 1_000_000;
        let state = |table: &IdleStateTable| {
            let cpus = present("idle_state", &table.cpus, topology)?;
            if table.exit_us > LONGEST_US || table.residency_us > LONGEST_US {
                return Err(format!("an idle state of CPUs {cpus} takes longer than a second"));
            }
            if table.entry_us > table.exit_us {
                return Err(format!(
                    "an idle state of CPUs {cpus} takes longer to enter than exit_us, which includes that"
                ));
            }
            Ok(IdleState {
                cpus,
                exit: Ns::from_us(table.exit_us),
                entry: Ns::from_us(table.entry_us),
                residency: Ns::from_us(table.residency_us),
                together: table.together,
            })
        };
        self.idle_state.iter().map(state).collect()
    }

    fn energy_model(&self, topology: &Topology) -> Result<Vec<PerfDomain>, String> {
        let known =
            self.clock.iter().filter_map(|clock| clock.milliwatts.as_ref().map(|powers| (clock, powers)));
        let domain = |(clock, powers): (&ClockTable, &Vec<u32>)| {
            if !clock.invariant {
                return Err(format!(
                    "the clock of CPUs {} has powers and is not invariant: without invariance kernels use no energy model",
                    clock.cpus
                ));
            }
            if powers.len() != clock.khz.len() || powers.contains(&0) {
                return Err(format!("the clock of CPUs {} needs a power for each frequency", clock.cpus));
            }
            let states = clock.khz.iter().zip(powers);
            Ok(PerfDomain {
                cpus: present("clock", &clock.cpus, topology)?,
                states: states.map(|(&khz, &milliwatts)| PerfState::of_milliwatts(khz, milliwatts)).collect(),
            })
        };
        let model = known.map(domain).collect::<Result<Vec<_>, _>>()?;
        let covered = model.iter().fold(CpuMask::EMPTY, |cpus, domain| cpus.or(&domain.cpus));
        match topology.online().and_not(&covered).lowest() {
            Some(cpu) if !model.is_empty() => {
                Err(format!("CPU {cpu} has no clock with powers (milliwatts), but others have"))
            }
            _ => Ok(model),
        }
    }
}

impl TopologyTable {
    fn regular(&self) -> Result<Topology, String> {
        let numbering = match self.smt_numbering {
            Numbering::Adjacent => SmtNumbering::Adjacent,
            Numbering::Spread => SmtNumbering::Spread,
        };
        let (nodes, llcs) = (self.nodes, self.llcs_per_node);
        Topology::regular(nodes, llcs, self.cores_per_llc, self.threads_per_core, numbering)
    }
}

/// The CPUs of a list; the machine must have all of them.
fn present(what: &str, list: &str, topology: &Topology) -> Result<CpuMask, String> {
    let cpus = CpuMask::parse_list(list).map_err(|problem| format!("{what}: {problem}"))?;
    match cpus.and_not(topology.online()).lowest() {
        Some(absent) => Err(format!(
            "{what}: '{list}' names CPU {absent}, but the machine has CPUs {}",
            topology.online()
        )),
        None => Ok(cpus),
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::Cpu;
    use fairlab_sim::machine::PRESETS;

    use super::*;

    const GOOD: &str = "name = 'box'\nhz = 250\n[topology]\nnodes = 2\ncores_per_llc = 4\nthreads_per_core = 2\n\
                        smt_numbering = 'spread'\n[costs]\nipi_ns = 3000\n";

    const LISTED: &str = "name = 'odd'\nhz = 1000\nplatform = 'arm64'\n[cpus]\ncores = ['0', '1', '2-3']\n\
                          clusters = ['0-1', '2-3']\ncaches = ['0-1', '2-3']\nnodes = ['0-1', '2-3']\n\
                          [capacities]\n'0-1' = 512\n[numa]\ndistances = [[10, 31], [31, 10]]\n\
                          [[clock]]\ncpus = '0-1'\nkhz = [500000, 1000000]\nfast_switch = true\n\
                          [[idle_state]]\ncpus = '0-3'\nexit_us = 900\nresidency_us = 2000\ntogether = true\n\
                          [speeds]\n'0-1' = 500\n[[boost]]\ncpus = '2-3'\nspeed_from_cores = { 10 = 800, 2 = 900 }\n\
                          [[limit]]\ncpus = '0-3'\nspeed = 700\nfrom_ms = 5\nlasts_ms = 2\nevery_ms = 9\n\
                          [sharing]\nsmt_speed_2 = 640\nline_remote_ns = 200\n";

    #[test]
    fn a_file_gives_topology_tick_and_costs() {
        let machine = parse(GOOD).expect("a machine");
        assert_eq!((machine.topology.nr_cpus(), machine.hz, machine.costs.ipi), (16, 250, Ns(3000)));
        assert_eq!(machine.costs.wakeup, KernelCosts::default().wakeup);
        assert_eq!(machine.topology.smt_mask(Cpu(1)).to_string(), "1,9");
    }

    #[test]
    fn any_machine_is_described_by_lists() {
        let machine = parse(LISTED).expect("a machine");
        let topology = &machine.topology;
        assert_eq!(topology.smt_mask(Cpu(3)).to_string(), "2-3");
        assert_eq!(topology.cluster_mask(Cpu(0)).to_string(), "0-1");
        assert_eq!((topology.distance(0, 1), topology.capacity(Cpu(1))), (31, 512));
        assert_eq!(topology.platform(), Platform::Arm64);
        assert_eq!(machine.frequency_domains[0].rate_limit, Ns::from_ms(1));
        assert_eq!(machine.speeds.cpus, [500, 500, 1024, 1024]);
        assert_eq!(machine.speeds.boosts[0].steps, [(2, 900), (10, 800)], "by number");
        let (from, lasts, every) = (Ns::from_ms(5), Some(Ns::from_ms(2)), Some(Ns::from_ms(9)));
        assert_eq!(
            machine.speeds.limits,
            [SpeedLimit { cpus: CpuMask::first(4), speed: 700, from, lasts, every }]
        );
        let given = Sharing { smt_speed_2: 640, line_remote_ns: 200, ..Sharing::NONE };
        assert_eq!(machine.sharing, given);
    }

    /// What is replaced in the example, by what, and words of the line that this is refused with.
    const WRONG: &[(&str, &str, &str)] = &[
        ("cores_per_llc = 4", "cores_per_llc = 0", "impossible topology"),
        ("cores_per_llc = 4", "cores_per_llc = 4000", "more than 1024"),
        ("hz = 250", "hz = 0", "no tick rate"),
        ("hz = 250", "hz = 300", "no tick rate"),
        ("[costs]", "[sharing]\nline = 3\n[costs]", "[sharing]: unknown figure 'line'"),
        (
            "[costs]",
            "[sharing]\nsmt_speed_2 = 1025\n[costs]",
            "[sharing]: smt_speed_2 = 1025 is more than 1024",
        ),
        (
            "hz = 250",
            "hz = 250\nin_turn = true\nsharing.llc_kb = 7",
            "in_turn and [sharing] exclude each other",
        ),
        ("ipi_ns", "ipi", "unknown cost 'ipi'"),
        ("ipi_ns = 3000", "ipi_ns = 18446744073709551615", "longer than a second"),
        (
            "ipi_ns = 3000",
            "ipi_ns = 9000000000000000000",
            "cost 'ipi_ns' of 9000000000000000000 ns is longer",
        ),
        ("ipi_ns = 3000", "ipi_ns = 1000000001", "longer than a second"),
        ("hz = 250", "hz = 'fast'", "line 2"),
        ("nodes = 2", "sockets = 2", "line 4"),
        ("name = 'box'", "", "the key 'name' is missing"),
        ("[costs]", "[cpus]\ncores = ['0']\n[costs]", "exclude each other"),
        ("hz = 250", "hz = 250\nplatform = 'vax'", "platform 'vax' is unknown; known are x86, arm64, s390"),
    ];

    #[test]
    fn what_is_wrong_is_said_in_one_line_with_its_place() {
        for &(from, to, problem) in WRONG {
            let error = parse(&GOOD.replace(from, to)).expect_err(problem).to_string();
            assert!(error.contains(problem) && !error.contains('\n'), "{error}");
        }
        for (from, to, problem) in [
            ("'2-3']\nclusters", "'2']\nclusters", "caches: '2-3' names CPU 3"),
            ("cores = ['0',", "cores = ['0-1',", "CPU 1 is on two lists of cores"),
            ("caches = ['0-1', '2-3']", "caches = ['0-1', '2-9']", "caches: '2-9' names CPU 4"),
            ("'0-1' = 512", "'8' = 512", "capacities: '8' names CPU 8, but the machine has CPUs 0-3"),
            ("'0-1' = 512", "'0-1' = 5120", "CPU 0 cannot have capacity 5120"),
            ("cpus = '0-1'", "cpus = '0-7'", "clock: '0-7' names CPU 4"),
            ("[500000, 1000000]", "[2, 1]", "needs frequencies in kHz that rise"),
            (
                "fast_switch = true",
                "rate_limit_us = 9000000000000000000",
                "the clock of CPUs 0-1 waits longer than a minute",
            ),
            (
                "fast_switch = true",
                "milliwatts = [1]",
                "the clock of CPUs 0-1 needs a power for each frequency",
            ),
            (
                "fast_switch = true",
                "milliwatts = [1, 2]",
                "CPU 2 has no clock with powers (milliwatts), but others have",
            ),
            ("cpus = '0-3'\nexit", "cpus = '3-4'\nexit", "idle_state: '3-4' names CPU 4"),
            ("exit_us = 900", "exit_us = 9000000", "an idle state of CPUs 0-3 takes longer than a second"),
            ("[[10, 31], [31, 10]]", "[[10, 31]]", "1 rows of 2 distances are given for 2 nodes"),
            ("nodes = ['0-1', '2-3']", "nodes = ['0-2', '3']", "CPUs 2 and 3 share cache 1 but no NUMA node"),
            ("'2-3']\ncaches", "'2', '3']\ncaches", "the core of CPU 2 is in two clusters"),
            ("'0', '1', '2-3'", "'0-1', '3'", "CPU 2 is on no list of cores"),
            ("nodes = ['0-1', '2-3']", "nodes = ['0-3', '']", "nodes: list 1 names no CPU"),
            ("nodes = ['0-1', '2-3']", "nodes = ['0-1', '2']", "CPU 3 is on no list of nodes"),
            (
                "caches = ['0-1', '2-3']\nnodes = ['0-1', '2-3']",
                "caches = ['0-2', '3']\nnodes = ['0-3']",
                "CPUs 2 and 3 share core 2 but no last-level cache",
            ),
            ("[10, 31], [31, 10]", "[10, 31], [31, 20]", "node 1 cannot be 20 from node 1"),
            ("[10, 31], [31, 10]", "[10, 9], [9, 10]", "node 1 cannot be 9 from node 0"),
        ] {
            let error = parse(&LISTED.replace(from, to)).expect_err(problem).to_string();
            assert!(error.contains(problem) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn what_is_printed_is_read_back() {
        let mut machines =
            PRESETS.iter().filter_map(|preset| Machine::preset(preset.name)).collect::<Vec<_>>();
        machines.extend([parse(GOOD).expect("a machine"), parse(LISTED).expect("a machine")]);
        for machine in machines {
            let text = to_toml(&machine);
            assert_eq!(parse(&text).expect(&text), machine, "{text}");
        }
    }
}
