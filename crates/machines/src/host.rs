//! This host as a machine, read from sysfs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::cpufreq::FrequencyDomain;
use fairlab_kernel::topology::{CpuPlace, Platform};
use fairlab_kernel::{CpuMask, Topology};
use fairlab_sim::Machine;
use fairlab_sim::machine::{Chance, IdleState, KernelCosts, Sharing, TrueSpeeds};

use fairlab_files::LabError;

/// What a governor does not choose on this host (`CPUIDLE_FLAG_POLLING`).
const POLLING: &str = "POLL";

/// Assumed where the kernel's configuration cannot be read.
const ASSUMED_HZ: u64 = 250;

/// Reads the topology under `root` (`/` for the real one). Costs are the defaults: they are not measured.
///
/// # Errors
/// sysfs is not there, or describes what the model cannot hold.
pub(super) fn from_sysfs(root: &Path) -> Result<Machine, LabError> {
    let hint = "describe the machine in a TOML file instead";
    let cpus = root.join("sys/devices/system/cpu");
    let online = read(&cpus.join("online"))
        .and_then(|list| CpuMask::parse_list(&list).ok())
        .filter(|mask| !mask.is_empty())
        .ok_or_else(|| {
            LabError::new(format!("machine host: cannot read {}", cpus.join("online").display()), hint)
        })?;
    let host = HostTopologyFiles { root: root.to_path_buf(), cpus, online };
    let topology = host.topology().map_err(|problem| {
        LabError::new(format!("machine host: sysfs describes an impossible topology: {problem}"), hint)
    })?;
    let (hz, hz_source) =
        hz(root).map_or((ASSUMED_HZ, "assumed"), |hz| (hz, "from the kernel's configuration"));
    let renumbered =
        if online == CpuMask::first(online.weight()) { "" } else { ", online CPUs renumbered from 0" };
    let frequency_domains = host.frequency_domains();
    let clocks = match frequency_domains.len() {
        0 => "",
        _ => ", schedutil sets clocks",
    };
    let description = format!(
        "this host: {} CPUs, HZ {hz} ({hz_source}), default costs{clocks}{renumbered}",
        online.weight()
    );
    Ok(Machine {
        name: "host".to_string(),
        description,
        topology,
        hz,
        high_res_timers: true,
        nohz_idle: true,
        chance: Chance::USUAL,
        in_turn: false,
        costs: KernelCosts::default(),
        frequency_domains,
        energy_model: Vec::new(),
        speeds: TrueSpeeds::default(),
        sharing: Sharing::NONE,
        idle_states: host.idle_states(),
    })
}

/// The files that describe it. CPUs are renumbered in ascending order where some are offline.
#[derive(Debug)]
struct HostTopologyFiles {
    root: PathBuf,
    cpus: PathBuf,
    online: CpuMask,
}

/// Numbers things in the order in which they are met.
#[derive(Debug, Default)]
struct MeetingNumbers(BTreeMap<String, u32>);

impl MeetingNumbers {
    fn number(&mut self, name: String) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name).or_insert(next)
    }
}

impl HostTopologyFiles {
    fn topology(&self) -> Result<Topology, String> {
        let (mut cores, mut llcs, mut nodes) =
            (MeetingNumbers::default(), MeetingNumbers::default(), MeetingNumbers::default());
        let (mut clusters, mut packages) = (MeetingNumbers::default(), MeetingNumbers::default());
        let mut places = Vec::new();
        let mut cluster_of = Vec::new();
        let mut package_of = Vec::new();
        for cpu in self.online.iter() {
            let file = |name: &str| read(&self.cpus.join(format!("cpu{cpu}/topology/{name}")));
            // A CPU without the file shares with no other.
            let core = file("thread_siblings_list").unwrap_or_else(|| cpu.to_string());
            let package = file("package_cpus_list").or_else(|| file("core_siblings_list"));
            let llc = last_level_cache(&self.cpus.join(format!("cpu{cpu}"))).or_else(|| package.clone());
            let llc = llc.unwrap_or_else(|| core.clone());
            cluster_of.push(clusters.number(file("cluster_cpus_list").unwrap_or_else(|| core.clone())));
            package_of.push(packages.number(package.unwrap_or_else(|| llc.clone())));
            let node = node_of(&self.root, cpu).unwrap_or_else(|| "0".to_string());
            places.push(CpuPlace {
                core: cores.number(core),
                llc: llcs.number(llc),
                node: nodes.number(node),
            });
        }
        let mut topology = Topology::new(places)?.of_platform(self.platform());
        // Firmware is often wrong here; without these parts the machine is still one.
        if let Ok(with) = topology.clone().with_clusters(&cluster_of) {
            topology = with;
        }
        if let Ok(with) = topology.clone().with_packages(&package_of) {
            topology = with;
        }
        if let Some(Ok(with)) = self.distances(&nodes).map(|rows| topology.clone().with_distances(rows)) {
            topology = with;
        }
        match self.capacities() {
            Some(capacities) => topology.with_capacities(&capacities),
            None => Ok(topology),
        }
    }

    fn platform(&self) -> Platform {
        let known = read(&self.root.join("proc/sys/kernel/arch"));
        match known.as_deref().unwrap_or(std::env::consts::ARCH) {
            "aarch64" => Platform::Arm64,
            "s390x" => Platform::S390,
            _ => Platform::X86,
        }
    }

    /// The distances between nodes with CPUs, in our numbering.
    fn distances(&self, nodes: &MeetingNumbers) -> Option<Vec<Vec<u32>>> {
        let folder = self.root.join("sys/devices/system/node");
        let online = CpuMask::parse_list(&read(&folder.join("online"))?).ok()?;
        let mut rows = vec![vec![0; nodes.0.len()]; nodes.0.len()];
        for (from, &row) in &nodes.0 {
            let listed = read(&folder.join(format!("node{from}/distance")))?;
            // One column an online node, in ascending order.
            for (to, distance) in online.iter().zip(listed.split_whitespace()) {
                if let Some(&column) = nodes.0.get(&to.to_string()) {
                    rows[row as usize][column as usize] = distance.parse().ok()?;
                }
            }
        }
        Some(rows)
    }

    fn capacities(&self) -> Option<Vec<u32>> {
        let file = |cpu: Cpu| read(&self.cpus.join(format!("cpu{cpu}/cpu_capacity")))?.parse::<u32>().ok();
        self.online.iter().map(file).collect()
    }

    /// The policies that schedutil governs; other governors are not modelled, and run at full speed.
    fn frequency_domains(&self) -> Vec<FrequencyDomain> {
        let policies = self.online.iter().map(|cpu| self.cpus.join(format!("cpufreq/policy{cpu}")));
        let domain = |policy: PathBuf| {
            let file = |name: &str| read(&policy.join(name));
            if file("scaling_governor")? != "schedutil" {
                return None;
            }
            let listed = file("scaling_available_frequencies").unwrap_or_default();
            let mut frequencies =
                listed.split_whitespace().filter_map(|khz| khz.parse().ok()).collect::<Vec<u32>>();
            if frequencies.is_empty() {
                // A driver that chooses any frequency in between.
                frequencies =
                    vec![file("cpuinfo_min_freq")?.parse().ok()?, file("cpuinfo_max_freq")?.parse().ok()?];
            }
            frequencies.sort_unstable();
            let rate_limit_us =
                file("schedutil/rate_limit_us").and_then(|us| us.parse().ok()).unwrap_or(1000);
            // `related_cpus` is a list with blanks.
            let related = file("related_cpus")?.split_whitespace().collect::<Vec<_>>().join(",");
            let related = CpuMask::parse_list(&related).ok()?;
            let place = |(place, cpu): (usize, Cpu)| related.contains(cpu).then_some(Cpu(place as u32));
            Some(FrequencyDomain {
                cpus: self.online.iter().enumerate().filter_map(place).collect(),
                frequencies,
                rate_limit: Ns::from_us(rate_limit_us),
                fast_switch: true,
                invariant: true,
            })
        };
        policies.filter_map(domain).collect()
    }

    /// The states that menu or teo choose from; others do not expect, and a guest's CPU often has none.
    fn idle_states(&self) -> Vec<IdleState> {
        let governor = ["current_governor", "current_governor_ro"];
        let governor = governor.iter().find_map(|name| read(&self.cpus.join("cpuidle").join(name)));
        if !matches!(governor.as_deref(), Some("menu" | "teo")) {
            return Vec::new();
        }
        // CPUs of a kind share their states: by depth, then by what they take.
        let mut states = BTreeMap::<(u32, Ns, Ns), CpuMask>::new();
        for (place, cpu) in self.online.iter().enumerate() {
            let folder = self.cpus.join(format!("cpu{cpu}/cpuidle"));
            for (depth, exit, residency) in (0..).map_while(|depth| idle_state(&folder, depth)).flatten() {
                states.entry((depth, exit, residency)).or_default().set(Cpu(place as u32));
            }
        }
        let state = |((_, exit, residency), cpus)| IdleState {
            cpus,
            exit,
            entry: Ns::ZERO,
            residency,
            together: false,
        };
        states.into_iter().map(state).collect()
    }
}

/// One state of a CPU: its depth, exit latency and target residency; inside, `None` if it polls or is disabled. `None` behind the
/// last.
fn idle_state(folder: &Path, depth: u32) -> Option<Option<(u32, Ns, Ns)>> {
    let file = |name: &str| read(&folder.join(format!("state{depth}/{name}")));
    let time = |name: &str| Some(Ns::from_us(file(name)?.parse().ok()?));
    let (exit, residency) = (time("latency")?, time("residency")?);
    let is_chosen = file("name").as_deref() != Some(POLLING) && file("disable").is_none_or(|set| set == "0");
    Some(is_chosen.then_some((depth, exit, residency)))
}

/// The CPUs that share a CPU's highest-level cache.
fn last_level_cache(folder: &Path) -> Option<String> {
    let indices = (0..8).map(|index| folder.join(format!("cache/index{index}")));
    let levels = indices.filter_map(|index| Some((read(&index.join("level"))?.parse::<u32>().ok()?, index)));
    let (_, last) = levels.max_by_key(|(level, _)| *level)?;
    read(&last.join("shared_cpu_list"))
}

fn node_of(root: &Path, cpu: Cpu) -> Option<String> {
    let online = CpuMask::parse_list(&read(&root.join("sys/devices/system/node/online"))?).ok()?;
    let holds = |node: &Cpu| {
        let list = read(&root.join(format!("sys/devices/system/node/node{node}/cpulist")));
        list.and_then(|list| CpuMask::parse_list(&list).ok()).is_some_and(|mask| mask.contains(cpu))
    };
    online.iter().find(holds).map(|node| node.to_string())
}

/// `CONFIG_HZ` of the running kernel, from its configuration in /boot.
fn hz(root: &Path) -> Option<u64> {
    let release = read(&root.join("proc/sys/kernel/osrelease"))?;
    let config = read(&root.join(format!("boot/config-{release}")))?;
    config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse().ok())
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn fake(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("fairlab-host-{name}-{}", std::process::id()));
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, content).expect("a file");
        }
        root
    }

    #[test]
    fn cores_caches_nodes_and_hz_are_read() {
        let mut files = vec![("sys/devices/system/cpu/online".to_string(), "0-3\n".to_string())];
        for cpu in 0..4 {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            files.push((
                format!("{folder}/topology/thread_siblings_list"),
                format!("{},{}", cpu % 2, cpu % 2 + 2),
            ));
            files.push((format!("{folder}/cache/index0/level"), "1".to_string()));
            files.push((format!("{folder}/cache/index0/shared_cpu_list"), cpu.to_string()));
            files.push((format!("{folder}/cache/index3/level"), "3".to_string()));
            files.push((format!("{folder}/cache/index3/shared_cpu_list"), "0-3".to_string()));
        }
        files.push(("proc/sys/kernel/osrelease".to_string(), "6.6.0".to_string()));
        files.push(("boot/config-6.6.0".to_string(), "CONFIG_HZ_1000=y\nCONFIG_HZ=1000\n".to_string()));
        let borrowed = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>();
        let root = fake("full", &borrowed);
        let machine = from_sysfs(&root).expect("a machine");
        fs::remove_dir_all(&root).expect("removed");
        assert_eq!(machine.topology.smt_mask(Cpu(1)).to_string(), "1,3");
        assert_eq!(machine.topology.llc_mask(Cpu(1)).to_string(), "0-3");
        assert_eq!(machine.hz, 1000);
    }

    #[test]
    fn nodes_clusters_capacities_and_clocks_are_read() {
        let cpu = "sys/devices/system/cpu";
        let node = "sys/devices/system/node";
        let mut files = vec![
            ("proc/sys/kernel/arch".to_string(), "aarch64".to_string()),
            // CPU 2 is offline: CPUs 3 and 4 become 2 and 3. Node 1 has no CPU.
            (format!("{cpu}/online"), "0-1,3-4".to_string()),
            (format!("{node}/online"), "0-2".to_string()),
            (format!("{node}/node0/cpulist"), "0-1".to_string()),
            (format!("{node}/node1/cpulist"), String::new()),
            (format!("{node}/node2/cpulist"), "3-4".to_string()),
            (format!("{node}/node0/distance"), "10 17 28".to_string()),
            (format!("{node}/node2/distance"), "29 17 10".to_string()),
            (format!("{cpu}/cpufreq/policy3/related_cpus"), "3 4".to_string()),
            (format!("{cpu}/cpufreq/policy3/scaling_governor"), "schedutil".to_string()),
            (format!("{cpu}/cpufreq/policy3/scaling_available_frequencies"), "600000 300000".to_string()),
            (format!("{cpu}/cpufreq/policy3/schedutil/rate_limit_us"), "2000".to_string()),
            (format!("{cpu}/cpufreq/policy0/related_cpus"), "0 1".to_string()),
            (format!("{cpu}/cpufreq/policy0/scaling_governor"), "performance".to_string()),
        ];
        for (number, pair, capacity) in
            [(0, "0-1", "512"), (1, "0-1", "512"), (3, "3-4", "1024"), (4, "3-4", "1024")]
        {
            let folder = format!("{cpu}/cpu{number}");
            files.push((format!("{folder}/topology/cluster_cpus_list"), pair.to_string()));
            files.push((format!("{folder}/topology/package_cpus_list"), pair.to_string()));
            files.push((format!("{folder}/cpu_capacity"), capacity.to_string()));
        }
        let borrowed = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>();
        let root = fake("parts", &borrowed);
        let machine = from_sysfs(&root).expect("a machine");
        fs::remove_dir_all(&root).expect("removed");
        let topology = &machine.topology;
        assert_eq!(topology.platform(), Platform::Arm64);
        assert_eq!(topology.cluster_mask(Cpu(3)).to_string(), "2-3");
        assert_eq!((topology.distance(0, 1), topology.distance(1, 0), topology.nr_nodes()), (28, 29, 2));
        assert_eq!((topology.capacity(Cpu(1)), topology.capacity(Cpu(2))), (512, 1024));
        let clock = &machine.frequency_domains[..];
        assert_eq!(clock.len(), 1);
        assert_eq!((clock[0].cpus.to_string().as_str(), clock[0].max()), ("2-3", 600_000));
        assert_eq!(clock[0].rate_limit, Ns::from_ms(2));
    }

    #[test]
    fn idle_states_are_read_where_a_governor_chooses_by_what_it_expects() {
        let states = |governor: &str| {
            let cpus = "sys/devices/system/cpu";
            let mut files = vec![
                (format!("{cpus}/online"), "0,2-3".to_string()),
                (format!("{cpus}/cpuidle/current_governor"), format!("{governor}\n")),
            ];
            let mut state =
                |cpu: u32, depth: u32, name: &str, latency: u32, residency: u32, disable: &str| {
                    for (file, value) in [
                        ("name", name.to_string()),
                        ("latency", latency.to_string()),
                        ("residency", residency.to_string()),
                        ("disable", disable.to_string()),
                    ] {
                        files.push((format!("{cpus}/cpu{cpu}/cpuidle/state{depth}/{file}"), value));
                    }
                };
            for cpu in [0, 2, 3] {
                state(cpu, 0, "POLL", 0, 0, "0");
                state(cpu, 1, "C1", 2, 2, "0");
                state(cpu, 2, "C1E", 10, 20, "1");
                state(cpu, 3, "C6", if cpu == 3 { 170 } else { 133 }, 600, "0");
            }
            let borrowed =
                files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>();
            let root = fake(&format!("idle-{governor}"), &borrowed);
            let machine = from_sysfs(&root).expect("a machine");
            fs::remove_dir_all(&root).expect("removed");
            let tell = |state: &IdleState| format!("{}: {} {}", state.cpus, state.exit.0, state.residency.0);
            machine.idle_states.iter().map(tell).collect::<Vec<_>>()
        };
        assert_eq!(states("menu"), ["0-2: 2000 2000", "0-1: 133000 600000", "2: 170000 600000"]);
        assert_eq!(states("teo"), states("menu"));
        assert!(states("haltpoll").is_empty());
    }

    #[test]
    fn a_host_without_sysfs_is_refused_and_a_bare_one_is_read() {
        let error = from_sysfs(Path::new("/nonexistent")).expect_err("no sysfs").to_string();
        assert!(error.contains("cannot read") && error.contains("TOML"), "{error}");
        let root = fake("bare", &[("sys/devices/system/cpu/online", "0,2")]);
        let machine = from_sysfs(&root).expect("a machine");
        fs::remove_dir_all(&root).expect("removed");
        assert_eq!(machine.topology.nr_cpus(), 2);
        assert!(machine.description.contains("assumed") && machine.description.contains("renumbered"));
    }

    #[test]
    fn the_real_host_can_be_read() {
        let machine = from_sysfs(Path::new("/")).expect("this host");
        assert!(machine.topology.nr_cpus() >= 1);
    }
}
