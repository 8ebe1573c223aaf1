//! `fairlab/built-kernels/1`: kernels that are built, as programs read it.
//!
//! Must not know: how a kernel is built, how an answer is printed.

use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::cache::CachedKernel;
use super::manifest::Manifest;

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
    /// What is known of it.
    #[serde(flatten, serialize_with = "told")]
    pub manifest: Manifest,
}

/// What answers leave out of a manifest: its form, and what only a build asks for.
const UNTOLD: [&str; 5] = ["schema", "counts_blocks", "probes", "config", "checksum"];

fn told<S: Serializer>(manifest: &Manifest, serializer: S) -> Result<S::Ok, S::Error> {
    let Value::Object(mut fields) = serde_json::to_value(manifest).map_err(S::Error::custom)? else {
        return Err(S::Error::custom("a manifest is an object"));
    };
    fields.retain(|name, _| !UNTOLD.contains(&name.as_str()));
    fields.serialize(serializer)
}

impl BuiltAnswer {
    /// The answer about some kernels, each with its names.
    pub fn of(kernels: impl IntoIterator<Item = (Vec<String>, CachedKernel)>) -> BuiltAnswer {
        BuiltAnswer {
            built: kernels
                .into_iter()
                .map(|(names, built)| BuiltEntry { names, key: built.key(), manifest: built.manifest })
                .collect(),
        }
    }
}
