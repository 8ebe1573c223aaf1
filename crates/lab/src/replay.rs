//! A recording as a workload: what its tasks did, read once.
//!
//! Must not know: what a workload does with it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use fairlab_analysis::behaviour::{Behaviour, Behaviours, Deed};
use fairlab_sim::workload::catalogue::Files;
use fairlab_sim::workload::replay::{Deed as Act, Script, Task};
use fairlab_trace::{ReadOptions, Severity, read_path};

/// Files of this host. What a recording's tasks did is kept: each run of a comparison asks for it.
pub(crate) struct HostFiles;

static SCRIPTS: Mutex<BTreeMap<String, Arc<Script>>> = Mutex::new(BTreeMap::new());

impl Files for HostFiles {
    fn text(&self, path: &str) -> Result<String, String> {
        fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
    }

    fn script(&self, path: &str) -> Result<Arc<Script>, String> {
        // Nothing is left half done where a thread has panicked.
        let mut known = SCRIPTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(script) = known.get(path) {
            return Ok(Arc::clone(script));
        }
        let script = Arc::new(script_of(path)?);
        known.insert(path.to_string(), Arc::clone(&script));
        Ok(script)
    }
}

/// What the tasks of a recording did; a script's text is taken as it is.
pub(crate) fn script_of(path: &str) -> Result<Script, String> {
    if begins_as_script(path) {
        return Script::parse(&HostFiles.text(path)?).map_err(|problem| format!("{path}: {problem}"));
    }
    let mut behaviours = Behaviours::default();
    let stats = read_path(path.as_ref(), &ReadOptions::default(), &mut behaviours)
        .map_err(|error| format!("{path}: {error}"))?;
    let (behaviours, length, lacking) =
        behaviours.finish().map_err(|missing| format!("{path}: {missing}"))?;
    let troubles = stats.troubles().iter().filter(|count| count.trouble.severity() > Severity::Info);
    let notices = troubles.map(ToString::to_string).chain(lacking).collect();
    Ok(Script { length, notices, tasks: behaviours.into_iter().map(task).collect() })
}

/// Whether a file holds a script; standard input, which is read but once, holds a recording.
fn begins_as_script(path: &str) -> bool {
    let mut begin = [0; 32];
    let read = File::open(path).and_then(|mut file| file.read(&mut begin));
    read.is_ok_and(|read| Script::is_script(&begin[..read]))
}

fn task(behaviour: Behaviour) -> Task {
    let Behaviour { comm, prio, cpu, pinned, forked, deeds } = behaviour;
    Task { comm, prio, cpu, pinned, forked, deeds: deeds.into_iter().map(act).collect() }
}

fn act(deed: Deed) -> Act {
    match deed {
        Deed::Run(work) => Act::Run(work),
        Deed::Wake(whom) => Act::Wake(whom as usize),
        Deed::Block => Act::Block,
        Deed::SleepUntil { time, uninterruptible } => Act::SleepUntil { time, uninterruptible },
        Deed::Fork(child) => Act::Fork(child as usize),
        Deed::Prio(prio) => Act::Prio(prio),
    }
}
