//! `fairlab/built-kernels/1`: kernels that are built, as programs read it.
//!
//! Must not know: how a kernel is built, how an answer is printed.

use serde::Serialize;

use super::kept::BuiltKernel;
use super::manifest::Stub;

/// Kernels that are built.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/built-kernels/1")]
pub struct BuiltAnswer {
    /// Sorted by key.
    pub built: Vec<BuiltEntry>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BuiltEntry {
    /// What users call it, as `src:NAME` has it.
    pub names: Vec<String>,
    /// What it is kept by: a hash of sources, configuration and compiler.
    pub key: String,
    /// What was given: a folder, a commit, Debian's package.
    pub source: String,
    /// The release that the tree calls itself.
    pub release: String,
    /// Ticks a second.
    pub hz: u32,
    /// Where kernel code can be preempted: none, voluntary, full or lazy.
    pub preemption: String,
    /// Patches that were applied, in order.
    pub patches: Vec<String>,
    /// The compiler, as it names itself.
    pub compiler: String,
    /// The scheduler's features.
    pub features: Vec<String>,
    /// Its tunables.
    pub tunables: Vec<String>,
    /// What returns or reads as 0, with the reasons.
    pub stubs: Vec<Stub>,
    /// What stops a run that comes to it.
    pub missing: Vec<String>,
    /// How long the build took, s.
    pub built_s: f64,
}

impl BuiltAnswer {
    /// The answer about some kernels, each with its names.
    pub fn of(kernels: impl IntoIterator<Item = (Vec<String>, BuiltKernel)>) -> BuiltAnswer {
        BuiltAnswer {
            built: kernels.into_iter().map(|(names, built)| BuiltEntry::of(names, &built)).collect(),
        }
    }
}

impl BuiltEntry {
    fn of(names: Vec<String>, built: &BuiltKernel) -> BuiltEntry {
        let key = built.key();
        let manifest = built.manifest.clone();
        BuiltEntry {
            names,
            key,
            source: manifest.source,
            release: manifest.release,
            hz: manifest.hz,
            preemption: manifest.preemption,
            patches: manifest.patches,
            compiler: manifest.compiler,
            features: manifest.features,
            tunables: manifest.tunables,
            stubs: manifest.stubs,
            missing: manifest.missing,
            built_s: manifest.built_s,
        }
    }
}
