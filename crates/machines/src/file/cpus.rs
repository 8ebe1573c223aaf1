//! `[cpus]`: which CPUs share what, as lists.

use fairlab_kernel::topology::CpuPlace;
use fairlab_kernel::{CpuMask, Topology};
use serde::Deserialize;

/// Lists of CPUs in the kernel's form, `0-3,8`; each CPU is on one list of each kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CpusTable {
    cores: Vec<String>,
    clusters: Option<Vec<String>>,
    /// Last-level caches; one for all where nothing is said.
    caches: Option<Vec<String>>,
    /// One for all where nothing is said; the list's place is the node's number.
    nodes: Option<Vec<String>>,
    packages: Option<Vec<String>>,
}

impl CpusTable {
    pub(super) fn topology(&self) -> Result<Topology, String> {
        let count = highest(&self.cores)?;
        let cores = places("cores", &self.cores, count)?;
        let all = vec![0; count];
        let numbers = |what: &str, lists: &Option<Vec<String>>| {
            lists.as_ref().map(|lists| places(what, lists, count)).transpose()
        };
        let caches = numbers("caches", &self.caches)?.unwrap_or_else(|| all.clone());
        let nodes = numbers("nodes", &self.nodes)?.unwrap_or(all);
        let place = |cpu: usize| CpuPlace { core: cores[cpu], llc: caches[cpu], node: nodes[cpu] };
        let mut topology = Topology::new((0..count).map(place).collect())?;
        if let Some(clusters) = numbers("clusters", &self.clusters)? {
            topology = topology.with_clusters(&clusters)?;
        }
        if let Some(packages) = numbers("packages", &self.packages)? {
            topology = topology.with_packages(&packages)?;
        }
        Ok(topology)
    }
}

fn parse(what: &str, list: &str) -> Result<CpuMask, String> {
    CpuMask::parse_list(list).map_err(|problem| format!("{what}: {problem}"))
}

/// How many CPUs there are: as many as the highest on a list of cores says.
fn highest(cores: &[String]) -> Result<usize, String> {
    let mut count = 0;
    for list in cores {
        count = count.max(parse("cores", list)?.iter().last().map_or(0, |cpu| cpu.index() + 1));
    }
    Ok(count)
}

/// For each CPU the number of the list that it is on.
fn places(what: &str, lists: &[String], count: usize) -> Result<Vec<u32>, String> {
    let mut places = vec![None; count];
    for (number, list) in lists.iter().enumerate() {
        let cpus = parse(what, list)?;
        if cpus.is_empty() {
            return Err(format!(
                "{what}: list {number} names no CPU, and what has none takes no part in scheduling"
            ));
        }
        for cpu in cpus.iter() {
            match places.get_mut(cpu.index()) {
                None => {
                    let last = count.saturating_sub(1);
                    return Err(format!(
                        "{what}: '{list}' names CPU {cpu}, but the machine has CPUs 0-{last}"
                    ));
                }
                Some(Some(_)) => return Err(format!("CPU {cpu} is on two lists of {what}")),
                Some(place) => *place = Some(number as u32),
            }
        }
    }
    let number = |(cpu, place): (usize, Option<u32>)| {
        place.ok_or_else(|| format!("CPU {cpu} is on no list of {what}"))
    };
    places.into_iter().enumerate().map(number).collect()
}
