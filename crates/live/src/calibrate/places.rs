//! Which of this host's CPUs share a core, a last-level cache, a node, and what the caches hold: as sysfs tells.
//!
//! Must not know: what is measured.

use std::fs;
use std::path::{Path, PathBuf};

/// How far two CPUs are from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CpuDistance {
    /// Threads of a core.
    Core,
    /// Of one last-level cache.
    Llc,
    /// Of one node.
    Node,
    /// Of different nodes.
    Remote,
}

/// A CPU, and whom it shares things with: lists of CPUs as sysfs writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CpuNeighbours {
    pub cpu: usize,
    core: String,
    llc: String,
    node: String,
}

/// The places of CPUs, and what caches hold, KB; zero where nobody tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuPlaces {
    pub all: Vec<CpuNeighbours>,
    /// Of a core's own, the largest.
    pub core_kb: u64,
    pub llc_kb: u64,
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_string()).filter(|text| !text.is_empty())
}

/// `32768K`, `32M`.
fn kb(text: &str) -> Option<u64> {
    match text.strip_suffix('M') {
        Some(mb) => mb.parse::<u64>().ok().map(|mb| mb << 10),
        None => text.trim_end_matches('K').parse().ok(),
    }
}

/// A CPU's caches of data: level, size in KB, who shares it; the last one last.
fn caches(cpu: &Path) -> Vec<(u64, u64, String)> {
    let cache = |index: PathBuf| {
        let of = |name: &str| text(&index.join(name));
        let is_for_data = of("type").is_none_or(|kind| kind != "Instruction");
        let level = of("level")?.parse().ok().filter(|_| is_for_data)?;
        Some((level, of("size").and_then(|size| kb(&size)).unwrap_or(0), of("shared_cpu_list")?))
    };
    let mut all =
        (0..8).filter_map(|number| cache(cpu.join(format!("cache/index{number}")))).collect::<Vec<_>>();
    all.sort();
    all
}

impl CpuPlaces {
    /// Those of `cpus`, below `root`. A CPU of which nothing is told shares everything but its core.
    pub fn read(root: &Path, cpus: &[usize]) -> CpuPlaces {
        let devices = root.join("sys/devices/system");
        let mut places = CpuPlaces::default();
        for &cpu in cpus {
            let folder = devices.join(format!("cpu/cpu{cpu}"));
            let of_topology = |name: &str| text(&folder.join("topology").join(name));
            let core = of_topology("core_cpus_list").or_else(|| of_topology("thread_siblings_list"));
            let core = core.unwrap_or_else(|| cpu.to_string());
            let caches = caches(&folder);
            let before_last = &caches[..caches.len().saturating_sub(1)];
            let (own, last) = (before_last.iter().rfind(|(_, _, shared)| *shared == core), caches.last());
            places.core_kb = places.core_kb.max(own.map_or(0, |(_, kb, _)| *kb));
            places.llc_kb = places.llc_kb.max(last.map_or(0, |(_, kb, _)| *kb));
            let node = (0..1024).find(|node| folder.join(format!("node{node}")).exists());
            let llc = last.map_or(String::new(), |(_, _, shared)| shared.clone());
            let node = node.map_or(String::new(), |node| node.to_string());
            places.all.push(CpuNeighbours { cpu, core, llc, node });
        }
        places
    }

    /// The first CPU that is so far from `from`.
    pub fn at(&self, from: &CpuNeighbours, distance: CpuDistance) -> Option<&CpuNeighbours> {
        self.all.iter().find(|place| place.cpu != from.cpu && from.distance(place) == distance)
    }

    /// All that are no farther from `from`.
    pub fn within(&self, from: &CpuNeighbours, distance: CpuDistance) -> Vec<usize> {
        self.all.iter().filter(|place| from.distance(place) <= distance).map(|place| place.cpu).collect()
    }
}

impl CpuNeighbours {
    pub fn distance(&self, other: &CpuNeighbours) -> CpuDistance {
        match () {
            () if self.core == other.core => CpuDistance::Core,
            () if self.node != other.node => CpuDistance::Remote,
            () if self.llc == other.llc => CpuDistance::Llc,
            () => CpuDistance::Node,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four CPUs: two threads of a core, another core of their cache, and a node of its own.
    fn host() -> PathBuf {
        let root = std::env::temp_dir().join(format!("fairlab-places-{}", std::process::id()));
        let write = |path: String, text: &str| {
            let path = root.join("sys/devices/system/cpu").join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        for (cpu, core, llc, node) in
            [(0, "0-1", "0-2", 0), (1, "0-1", "0-2", 0), (2, "2", "0-2", 0), (3, "3", "3", 1)]
        {
            write(format!("cpu{cpu}/topology/core_cpus_list"), core);
            write(format!("cpu{cpu}/node{node}/x"), "");
            for (index, level, kind, size, shared) in [
                (0, "1", "Data", "32K", core),
                (1, "1", "Instruction", "64K", core),
                (2, "2", "Unified", "1M", core),
                (3, "3", "Unified", "32768K", llc),
            ] {
                let cache = |name: &str| format!("cpu{cpu}/cache/index{index}/{name}");
                write(cache("level"), level);
                write(cache("type"), kind);
                write(cache("size"), size);
                write(cache("shared_cpu_list"), shared);
            }
        }
        root
    }

    #[test]
    fn sysfs_tells_who_shares_what() {
        let root = host();
        let places = CpuPlaces::read(&root, &[0, 1, 2, 3]);
        fs::remove_dir_all(&root).expect("removed");
        let from = &places.all[0];
        let far = places.all.iter().map(|place| from.distance(place)).collect::<Vec<_>>();
        assert_eq!(far, [CpuDistance::Core, CpuDistance::Core, CpuDistance::Llc, CpuDistance::Remote]);
        assert_eq!((places.core_kb, places.llc_kb), (1024, 32_768));
        assert_eq!(places.within(from, CpuDistance::Llc), [0, 1, 2]);
        assert_eq!(places.at(from, CpuDistance::Core).map(|place| place.cpu), Some(1));
        assert_eq!(places.at(from, CpuDistance::Node), None);
    }

    #[test]
    fn where_nothing_is_told_each_cpu_is_a_core_of_one_cache() {
        let places = CpuPlaces::read(Path::new("/nonexistent"), &[4, 7]);
        assert_eq!(places.all[0].distance(&places.all[1]), CpuDistance::Llc);
        assert_eq!((places.core_kb, places.llc_kb), (0, 0));
    }
}
