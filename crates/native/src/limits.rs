//! What the process of a run may take of this host: a patch that leaks or strays is ended, and the host goes on.
//!
//! These are limits against mistakes. Whoever means harm has the user's rights already, since a tree's own Makefile was run.
//!
//! Must not know: what runs in the process.

use std::fs;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::elf::PAGE;

/// Memory that a run may take beside what its process begins with, bytes of addresses. 512 CPUs with 4,000 tasks
/// (hackbench -g 100) take a quarter of it.
pub(crate) const MEMORY_BYTES: u64 = 2 << 30;

/// What this process could do before it was limited.
static BEFORE: OnceLock<[(Resource, Rlimit); 2]> = OnceLock::new();

/// Limits this process from now on: its memory, no other process, no file.
pub(crate) fn confine() {
    let unbounded = [Resource::Nproc, Resource::Fsize].map(|resource| (resource, getrlimit(resource)));
    let before = BEFORE.get_or_init(|| unbounded);
    before.iter().for_each(|(resource, limit)| set(*resource, Some(0), limit));
    let limit = getrlimit(Resource::As);
    let most = address_space_bytes().map(|now| now.saturating_add(MEMORY_BYTES));
    let most = [most, limit.current].into_iter().flatten().min();
    set(Resource::As, most, &limit);
}

/// Lets this process write files and start threads for that: its run is recorded.
pub fn allow_files() {
    for (resource, limit) in BEFORE.get().into_iter().flatten() {
        set(*resource, limit.current, limit);
    }
}

fn set(resource: Resource, current: Option<u64>, limit: &Rlimit) {
    // A limit below the one that holds can always be set.
    let _ = setrlimit(resource, Rlimit { current, maximum: limit.maximum });
}

/// How much this process has mapped; `None` where nothing says so.
fn address_space_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(pages.saturating_mul(PAGE as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_what_it_has_mapped() {
        let before = address_space_bytes().expect("Linux says so");
        let more = vec![0_u8; 256 << 20];
        let after = address_space_bytes().expect("Linux says so");
        assert!(after - before >= more.len() as u64 / 2, "{before} {after}");
    }
}
