//! What is known of a built kernel, beside its image.
//!
//! Must not know: how it was built.

use serde::{Deserialize, Serialize};

/// A function that does nothing and returns 0, or data that reads as 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stub {
    /// Its name.
    pub symbol: String,
    /// Why it may.
    pub reason: String,
}

/// `manifest.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// `fairlab/native/2`.
    pub schema: String,
    /// What was given: a folder, a commit, Debian's package.
    pub source: String,
    /// Debian's package of the sources and the suite that had it; empty for other trees.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub package: String,
    /// The release that the tree's Makefile says (`6.1.170`).
    pub release: String,
    /// Ticks a second.
    pub hz: u32,
    /// The preemption model: none, voluntary, full, lazy or dynamic.
    pub preemption: String,
    /// Names of the patches that were applied, in order.
    pub patches: Vec<String>,
    /// The compiler, as it names itself.
    pub compiler: String,
    /// Whether basic blocks of the scheduler are counted.
    pub counts_blocks: bool,
    /// What the tree has of that which trees differ in.
    pub probes: Vec<String>,
    /// Names of scheduler features, as `kernel/sched/features.h` lists them.
    pub features: Vec<String>,
    /// Names of tunables that the scheduler registers.
    pub tunables: Vec<String>,
    /// What returns or reads as 0, with the reasons.
    pub stubs: Vec<Stub>,
    /// What stops a run that comes to it.
    pub missing: Vec<String>,
    /// Lines of the finished configuration that are set.
    pub config: Vec<String>,
    /// What tells the image's bytes from others.
    pub checksum: String,
    /// How long the build took, s. No digest holds it.
    pub built_s: f64,
}

/// The form of the manifest.
pub(super) const SCHEMA: &str = "fairlab/native/2";

/// The feature names in a `features.h`.
pub(super) fn features(text: &str) -> Vec<String> {
    let name =
        |line: &str| Some(line.trim().strip_prefix("SCHED_FEAT(")?.split(',').next()?.trim().to_string());
    let mut names: Vec<String> = Vec::new();
    for name in text.lines().filter_map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The names that a source registers as tunables: rows of sysctl tables that have a value, files in debugfs' own folder of the scheduler
/// and in `llc_balancing` below it.
pub(super) fn tunables(text: &str) -> Vec<String> {
    let quoted = |line: &str| Some(line.split('"').nth(1)?.to_string());
    let (mut names, mut row) = (Vec::new(), None);
    for line in text.lines().map(str::trim) {
        if line.starts_with(".procname") {
            row = quoted(line);
        } else if line.starts_with(".data") && line.contains('&') {
            names.extend(row.take());
        } else if line.starts_with("debugfs_create_") && line.contains(", debugfs_sched, &") {
            names.extend(quoted(line));
        } else if line.starts_with("debugfs_create_") && line.contains(", llc,") {
            names.extend(quoted(line).map(|name| format!("llc_balancing/{name}")));
        }
    }
    names
}

/// Trees to 5.12 keep the scheduler's rows among all others: the shim names those that it registers.
pub(super) fn old_tunables(shim: &str) -> Vec<String> {
    let named = |line: &str| {
        let line = line.trim();
        let registers = line.starts_with("OLD(\"") || line.starts_with("OLD_ROW(\"");
        registers.then(|| line.split('"').nth(1).map(str::to_string)).flatten()
    };
    shim.lines().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_the_tree_writes_them() {
        let text = "/* SCHED_FEAT(NO, x) */\nSCHED_FEAT(PLACE_LAG, true)\n#ifdef X\nSCHED_FEAT(TTWU_QUEUE, false)\n#else\nSCHED_FEAT(TTWU_QUEUE, true)\n#endif\nSCHED_FEAT(PLACE_LAG, true)\n";
        assert_eq!(features(text), ["PLACE_LAG", "TTWU_QUEUE"]);
        let text = "\t\t.procname\t= \"sched_rt_period_us\",\n\t\t.data = &sysctl_sched_rt_period,\n\t.procname = \"empty\",\n\t.data = NULL,\n\t.procname = \"folder\",\n\
             \tdebugfs_create_u32(\"base_slice_ns\", 0644, debugfs_sched, &x);\n\tdebugfs_create_u32(\"scan_delay_ms\", 0644, numa, &x);\n\tdebugfs_create_u32(\"imb_pct\", 0644, llc,\n\t\t&x);\n\tdebugfs_create_dir(\"sched\", NULL);\n";
        assert_eq!(tunables(text), ["sched_rt_period_us", "base_slice_ns", "llc_balancing/imb_pct"]);
        let shim = "#define OLD(name, variable) x\n\tOLD(\"sched_nr_migrate\", y);\n\tOLD_ROW(\"sched_latency_ns\", z, h);\n";
        assert_eq!(old_tunables(shim), ["sched_nr_migrate", "sched_latency_ns"]);
    }
}
