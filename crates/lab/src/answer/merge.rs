//! `fairlab/merge/1`: the added counts of many runs, group by group.
//!
//! Must not know: where counts were read from.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::hosts::Labels;
use crate::merge::MergedCounts;
use crate::provenance::Origin;
use crate::run::as_map;

/// What counts come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/merge/1")]
pub struct MergeAnswer {
    /// How many files were read.
    pub files: usize,
    /// Runs of one workload on one kernel and machine.
    pub groups: Vec<MergedGroup>,
}

/// Runs that were added up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MergedGroup {
    /// How they came about; `None` where nothing tells.
    pub origin: Option<&'static str>,
    /// Their seeds, as far as they have some.
    pub seeds: Option<BTreeSet<u64>>,
    /// The kernel's name.
    pub kernel: String,
    /// The machine's name.
    pub machine: String,
    /// The workload's command line.
    pub workload: String,
    /// What else distinguishes their hosts.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// How many runs.
    pub runs: u64,
    /// How long all of them were measured together.
    pub observed_ns: u64,
    /// How many wakeup latencies.
    pub latencies: u64,
    /// Every metric by name.
    #[serde(serialize_with = "as_map")]
    pub metrics: Vec<(String, f64)>,
}

impl From<&MergedCounts> for MergeAnswer {
    fn from(merged: &MergedCounts) -> MergeAnswer {
        let groups = merged.groups.iter().map(|(group, counts)| MergedGroup {
            origin: group.origin.map(Origin::name),
            seeds: merged.seeds.get(group).cloned(),
            kernel: group.kernel.clone(),
            machine: group.machine.clone(),
            workload: group.workload.clone(),
            labels: group.labels.clone(),
            runs: counts.runs,
            observed_ns: counts.observed_ns,
            latencies: counts.wakeup_latency.total(),
            metrics: counts.all_metrics(),
        });
        MergeAnswer { files: merged.files, groups: groups.collect() }
    }
}
