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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// `fairlab/native/1`.
    pub schema: String,
    /// What was given: a folder, a commit, Debian's package.
    pub source: String,
    /// The release that the tree's Makefile says (`6.1.170`).
    pub release: String,
    /// Ticks a second.
    pub hz: u32,
    /// The preemption model: none, voluntary, full or lazy.
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
    /// How long the build took, s. No digest holds it.
    pub built_s: f64,
}

/// The form of the manifest.
pub(super) const SCHEMA: &str = "fairlab/native/1";

/// The feature names in a `features.h`.
pub(super) fn features(text: &str) -> Vec<String> {
    let name =
        |line: &str| Some(line.trim().strip_prefix("SCHED_FEAT(")?.split(',').next()?.trim().to_string());
    let mut names: Vec<String> = text.lines().filter_map(name).collect();
    names.dedup();
    names
}

/// The names that a source registers as tunables: rows of sysctl tables, files of debugfs.
pub(super) fn tunables(text: &str) -> Vec<String> {
    let quoted = |rest: &str| Some(rest.split('"').nth(1)?.to_string());
    let name = |line: &str| {
        let line = line.trim();
        let registers =
            ["debugfs_create_u32(", "debugfs_create_u64(", "debugfs_create_bool(", "debugfs_create_ulong("];
        let starts = line.starts_with(".procname") || registers.iter().any(|call| line.starts_with(call));
        if starts { quoted(line) } else { None }
    };
    text.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_the_tree_writes_them() {
        let text = "/* SCHED_FEAT(NO, x) */\nSCHED_FEAT(PLACE_LAG, true)\n#ifdef X\nSCHED_FEAT(TTWU_QUEUE, false)\n#else\nSCHED_FEAT(TTWU_QUEUE, true)\n#endif\n";
        assert_eq!(features(text), ["PLACE_LAG", "TTWU_QUEUE"]);
        let text = "\t\t.procname\t= \"sched_rt_period_us\",\n\tdebugfs_create_u32(\"base_slice_ns\", 0644, d, &x);\n\tdebugfs_create_dir(\"sched\", NULL);\n";
        assert_eq!(tunables(text), ["sched_rt_period_us", "base_slice_ns"]);
    }
}
