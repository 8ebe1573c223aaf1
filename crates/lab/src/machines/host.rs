//! This host as a machine, read from sysfs.

use std::collections::BTreeMap;
use std::path::Path;

use fairlab_event::Cpu;
use fairlab_kernel::topology::CpuPlace;
use fairlab_kernel::{CpuMask, Topology};
use fairlab_sim::Machine;
use fairlab_sim::machine::Costs;

use crate::LabError;

/// Assumed where the kernel's configuration cannot be read.
const ASSUMED_HZ: u64 = 250;

/// Reads the topology under `root` (`/` for the real one). Costs are the defaults: they are not measured.
///
/// # Errors
/// sysfs is not there, or describes what the model cannot hold.
pub(super) fn from_sysfs(root: &Path) -> Result<Machine, LabError> {
    let cpus = root.join("sys/devices/system/cpu");
    let hint = "describe the machine in a TOML file instead";
    let online = read(&cpus.join("online"))
        .and_then(|list| CpuMask::parse_list(&list).ok())
        .filter(|mask| !mask.is_empty())
        .ok_or_else(|| {
            LabError::new(format!("machine host: cannot read {}", cpus.join("online").display()), hint)
        })?;
    let mut groups = Groups::default();
    let places = online.iter().map(|cpu| groups.place(root, &cpus, cpu)).collect();
    let topology = Topology::new(places).map_err(|problem| {
        LabError::new(format!("machine host: sysfs describes an impossible topology: {problem}"), hint)
    })?;
    let (hz, hz_source) =
        hz(root).map_or((ASSUMED_HZ, "assumed"), |hz| (hz, "from the kernel's configuration"));
    let renumbered =
        if online == CpuMask::first(online.weight()) { "" } else { ", online CPUs renumbered from 0" };
    let description =
        format!("this host: {} CPUs, HZ {hz} ({hz_source}), default costs{renumbered}", online.weight());
    Ok(Machine {
        name: "host".to_string(),
        description,
        topology,
        hz,
        costs: Costs::default(),
        frequency_domains: Vec::new(),
    })
}

/// Numbers cores, caches and nodes in order of their first CPU.
#[derive(Debug, Default)]
struct Groups {
    cores: BTreeMap<String, u32>,
    llcs: BTreeMap<String, u32>,
    nodes: BTreeMap<String, u32>,
}

impl Groups {
    fn place(&mut self, root: &Path, cpus: &Path, cpu: Cpu) -> CpuPlace {
        let folder = cpus.join(format!("cpu{cpu}"));
        let topology = |name: &str| read(&folder.join("topology").join(name));
        // A CPU without the file shares with nobody.
        let core = topology("thread_siblings_list").unwrap_or_else(|| cpu.to_string());
        let llc = last_level_cache(&folder).or_else(|| topology("package_cpus_list"));
        let llc = llc.unwrap_or_else(|| core.clone());
        let node = node_of(root, cpu).unwrap_or_else(|| "0".to_string());
        CpuPlace {
            core: number(&mut self.cores, core),
            llc: number(&mut self.llcs, llc),
            node: number(&mut self.nodes, node),
        }
    }
}

fn number(known: &mut BTreeMap<String, u32>, name: String) -> u32 {
    let next = known.len() as u32;
    *known.entry(name).or_insert(next)
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
    use std::path::PathBuf;

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
