//! Runs that were made before: what came of each is kept, by all that a run is made of.
//!
//! A run is a function of program, kernel, machine, workload and seed, so what came of it needs not be made again. The key is a hash
//! of the program's own bytes, of the kernel's rules or its built image, of machine, workload with the files that it names, seed,
//! times and what is measured. Kernels of equal rules share runs, whatever they are called.
//!
//! A store never fails a run: what is wrong with it is told in a line, once, and runs are made.
//!
//! Must not know: what runs are made for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fairlab_files::cache::CacheFolder;
use fairlab_kernel::Generation;
use fairlab_sim::Machine;
use fairlab_sim::workload::catalogue::WorkloadFiles;
use fairlab_sim::workload::replay::Script;
use fairlab_store::{Store, StoreBatch, StoreKey, StoreTrouble, this_program};
use serde_json::{Value, json};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use crate::cells::{read_run, run_fields};
use crate::replay::HostFiles;
use crate::workloads::build_with;
use crate::{RunResult, RunSpec};

/// The file's name in the user's cache.
const FILE: &str = "runs.redb";

/// Names another place for it; empty, nothing is kept.
const PLACE: &str = "FAIRLAB_RUNS";

/// What it may take. A watch over the whole log goes on from some 45,000 runs of 10 KB each, and three eighths of this are
/// filled with them.
const BOUND: u64 = 2 << 30;

/// What is made is written after so long, or when it is so much.
const WRITTEN_AFTER: Duration = Duration::from_secs(3);
const WRITTEN_BYTES: usize = 4 << 20;

/// A run that takes more, compressed, is made again.
const RUN_BYTES_MAX: usize = 1 << 20;

/// How hard runs are compressed: they are written once and read often.
const COMPRESSION: i32 = 3;

/// Where runs are kept.
pub struct RunStore {
    store: Store,
    /// What is there already is not looked at, and replaced.
    fresh: bool,
    tell: Box<dyn Fn(&str) + Send + Sync>,
    state: Mutex<StoreState>,
}

struct StoreState {
    keys: RunKeys,
    batch: StoreBatch,
    bytes: usize,
    written: Instant,
    counts: RunCounting,
    /// Something is wrong, and was told: it is left alone.
    given_up: bool,
}

/// How many runs there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounting {
    /// Runs that answers are about, as far as they go through a store.
    pub runs: usize,
    /// Those of them that were not made again.
    pub kept: usize,
}

/// A run that was looked for.
#[derive(Clone, Debug, Default)]
pub struct LookedRun {
    /// What it is kept by; `None`: it is not kept.
    key: Option<StoreKey>,
    /// What came of it before, with what was counted beside it.
    pub result: Option<(RunResult, Value)>,
}

/// A run that is asked for: what is made, and what is counted beside it, in words.
pub type AskedRun<'r> = (&'r RunSpec, &'r str);

impl RunStore {
    /// The user's own, or where `FAIRLAB_RUNS` says; `None` where there is no place for one, or that is empty. A `fresh` one finds nothing.
    pub fn of_user(fresh: bool, tell: impl Fn(&str) + Send + Sync + 'static) -> Option<RunStore> {
        let place = match std::env::var_os(PLACE) {
            Some(place) if place.is_empty() => return None,
            Some(place) => PathBuf::from(place),
            None => CacheFolder::place().ok()?.join(FILE),
        };
        RunStore::at(&place, BOUND, fresh, tell)
    }

    /// One in a file, which needs not be there.
    pub fn at(
        path: &Path,
        bound: u64,
        fresh: bool,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Option<RunStore> {
        let (store, program) = (Store::at(path, bound)?, this_program().ok()?);
        let state = StoreState {
            keys: RunKeys::of(program),
            batch: StoreBatch::default(),
            bytes: 0,
            written: Instant::now(),
            counts: RunCounting::default(),
            given_up: false,
        };
        Some(RunStore { store, fresh, tell: Box::new(tell), state: Mutex::new(state) })
    }

    /// How many runs there were so far.
    pub fn counts(&self) -> RunCounting {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).counts
    }

    /// Looks for runs, each in its place.
    pub fn look(&self, asked: &[AskedRun<'_>]) -> Vec<LookedRun> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut looked = state.keys.of_all(asked);
        state.counts.runs += asked.len();
        if self.fresh || state.given_up {
            return looked;
        }
        let places = (0..looked.len()).filter(|&place| looked[place].key.is_some()).collect::<Vec<_>>();
        let keys = places.iter().filter_map(|&place| looked[place].key).collect::<Vec<_>>();
        let finds = match self.store.look(&keys) {
            Ok(finds) => finds,
            Err(trouble) => {
                self.told(&mut state, &trouble);
                return looked;
            }
        };
        let mut damaged = finds.damaged;
        for ((place, key), value) in places.into_iter().zip(keys).zip(finds.values) {
            match value.map(|value| unpacked(&value)) {
                Some(Some((run, beside))) => {
                    looked[place].result = Some((as_asked(run, asked[place].0), beside));
                }
                Some(None) => damaged.push(key),
                None => {}
            }
        }
        state.counts.kept += looked.iter().filter(|looked| looked.result.is_some()).count();
        state.batch.used.extend(finds.unnoted);
        if !damaged.is_empty() {
            let (count, path) = (damaged.len(), self.store.path().display());
            let runs = if count == 1 { "kept run is" } else { "kept runs are" };
            (self.tell)(&format!("{path}: {count} {runs} damaged, thrown away and made again"));
            state.batch.gone.extend(damaged);
        }
        looked
    }

    /// What a run would be kept by; it is not looked for.
    pub(crate) fn unlooked(&self, asked: AskedRun<'_>) -> LookedRun {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.keys.of_all(&[asked]).pop().unwrap_or_default()
    }

    /// Keeps what came of a run that was looked for, and what was counted beside it. It is written by and by.
    pub fn keep(&self, asked: AskedRun<'_>, looked: &LookedRun, run: &RunResult, beside: &Value) {
        let Some(key) = looked.key else { return };
        let Some(value) = packed(run, beside) else { return };
        // A file of the workload may have changed since: then nobody knows which one the run has read.
        if self.unlooked(asked).key != Some(key) {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.given_up {
            return;
        }
        state.bytes += value.len();
        state.batch.values.push((key, value));
        if state.bytes > WRITTEN_BYTES || state.written.elapsed() > WRITTEN_AFTER {
            self.write(&mut state);
        }
    }

    fn write(&self, state: &mut StoreState) {
        let batch = std::mem::take(&mut state.batch);
        if let Err(trouble) = self.store.write(&batch) {
            self.told(state, &trouble);
        }
        (state.bytes, state.written) = (0, Instant::now());
    }

    /// Says what is wrong. A damaged store is gone, and the next write makes a new one.
    fn told(&self, state: &mut StoreState, trouble: &StoreTrouble) {
        let path = self.store.path().display();
        state.given_up = !matches!(trouble, StoreTrouble::Damaged(_));
        (self.tell)(&match trouble {
            StoreTrouble::Busy => {
                format!("{path}: another process holds the kept runs; all are made, and not kept")
            }
            StoreTrouble::Damaged(why) => {
                format!("{path}: the kept runs were damaged ({why}), and are thrown away")
            }
            StoreTrouble::Refused(why) => format!("{path}: runs cannot be kept ({why}); all are made"),
        });
    }
}

impl Drop for RunStore {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.given_up {
            self.write(&mut state);
        }
    }
}

/// What came of a run as bytes; `None` where it would not come back as it is.
fn packed(run: &RunResult, beside: &Value) -> Option<Vec<u8>> {
    let text = json!([run_fields(run), beside]).to_string();
    let packed = zstd::bulk::compress(text.as_bytes(), COMPRESSION).ok()?;
    (packed.len() <= RUN_BYTES_MAX
        && unpacked(&packed).is_some_and(|(one, other)| one == *run && other == *beside))
    .then_some(packed)
}

fn unpacked(packed: &[u8]) -> Option<(RunResult, Value)> {
    let text = zstd::stream::decode_all(packed).ok()?;
    let mut both = serde_json::from_slice::<Vec<Value>>(&text).ok()?;
    let beside = both.pop()?;
    Some((read_run(&both.pop()?)?, beside))
}

/// A run under the names that are asked for: kernels of equal rules share it.
fn as_asked(run: RunResult, spec: &RunSpec) -> RunResult {
    let kernel = spec.kernel.name().to_string();
    let side = (spec.side != kernel).then(|| spec.side.clone());
    RunResult { side, kernel, ..run }
}

/// Hashes of what runs are made of. What many runs have in common is hashed once.
struct RunKeys {
    program: u128,
    kernels: BTreeMap<String, (Generation, u128)>,
    machines: Vec<(Machine, u128)>,
    workloads: BTreeMap<Vec<String>, u128>,
    /// Of workloads that name files, as these were just now.
    read_workloads: BTreeMap<Vec<String>, u128>,
}

impl RunKeys {
    fn of(program: u128) -> RunKeys {
        RunKeys {
            program,
            kernels: BTreeMap::new(),
            machines: Vec::new(),
            workloads: BTreeMap::new(),
            read_workloads: BTreeMap::new(),
        }
    }

    /// What runs are kept by. Files are read once for all of them.
    fn of_all(&mut self, asked: &[AskedRun<'_>]) -> Vec<LookedRun> {
        self.read_workloads.clear();
        asked.iter().map(|&asked| LookedRun { key: self.key(asked), result: None }).collect()
    }

    /// What a run is kept by; `None`: it has no seed that decides all, leaves a trace, or cannot be made like that.
    fn key(&mut self, (spec, beside): AskedRun<'_>) -> Option<StoreKey> {
        // All of it, so that nothing that is added is forgotten.
        let RunSpec {
            side: _,
            kernel,
            machine,
            workload,
            seed,
            first_cpu,
            warmup,
            duration,
            trace,
            probes,
            decisions,
            by_name,
            time,
            causes,
        } = spec;
        if trace.is_some() || *probes || *decisions || !kernel.draws_chance() {
            return None;
        }
        let (kernel, machine) = (self.kernel(spec)?, self.machine(machine));
        let content = self.workload(workload)?;
        let asked =
            format!("{seed} {first_cpu:?} {warmup:?} {duration:?} {by_name:?} {time:?} {causes} {beside}");
        let mut hash = Xxh3Default::new();
        for part in [kernel, machine, content, xxh3_128(asked.as_bytes())] {
            hash.update(&part.to_le_bytes());
        }
        let mut key = [0; 32];
        key[..16].copy_from_slice(&self.program.to_le_bytes());
        key[16..].copy_from_slice(&hash.digest128().to_le_bytes());
        Some(key)
    }

    fn kernel(&mut self, spec: &RunSpec) -> Option<u128> {
        let hashed = || Some(xxh3_128(spec.kernel.identity(&spec.machine)?.as_bytes()));
        // The code of any other kernel may change while it keeps its name.
        let Some(generation) = spec.kernel.generation() else { return hashed() };
        match self.kernels.get(generation.name()) {
            Some((known, hash)) if known == generation => Some(*hash),
            _ => {
                let hash = hashed()?;
                self.kernels.insert(generation.name().to_string(), (generation.clone(), hash));
                Some(hash)
            }
        }
    }

    fn machine(&mut self, machine: &Machine) -> u128 {
        if let Some((_, hash)) = self.machines.iter().find(|(known, _)| known == machine) {
            return *hash;
        }
        let hash = xxh3_128(format!("{machine:?}").as_bytes());
        self.machines.push((machine.clone(), hash));
        hash
    }

    /// Its words, and what the files hold that they name.
    fn workload(&mut self, words: &[String]) -> Option<u128> {
        if let Some(hash) = self.workloads.get(words).or_else(|| self.read_workloads.get(words)) {
            return Some(*hash);
        }
        let files = HashedFiles::default();
        build_with(words, &files).ok()?;
        let HashedFiles(read) = files;
        let (mut hash, are_read) = read.into_inner();
        hash.update(format!("{words:?}").as_bytes());
        let hash = hash.digest128();
        let known = if are_read { &mut self.read_workloads } else { &mut self.workloads };
        known.insert(words.to_vec(), hash);
        Some(hash)
    }
}

/// Files of this host, all that is read of them hashed.
#[derive(Default)]
struct HashedFiles(RefCell<(Xxh3Default, bool)>);

impl HashedFiles {
    fn add(&self, path: &str, bytes: &[u8]) {
        let (hash, are_read) = &mut *self.0.borrow_mut();
        *are_read = true;
        for part in [path.as_bytes(), &[0], &(bytes.len() as u64).to_le_bytes(), bytes] {
            hash.update(part);
        }
    }
}

impl WorkloadFiles for HashedFiles {
    fn text(&self, path: &str) -> Result<String, String> {
        let text = HostFiles.text(path)?;
        self.add(path, text.as_bytes());
        Ok(text)
    }

    fn script(&self, path: &str) -> Result<Arc<Script>, String> {
        let script = HostFiles.script(path)?;
        self.add(path, format!("{script:?}").as_bytes());
        Ok(script)
    }
}

#[cfg(test)]
mod tests;
