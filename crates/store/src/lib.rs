//! What is kept of work that was done once: bytes by a key, in one file of an embedded database (redb).
//!
//! The database is held for a read or a write, and never longer: several processes take turns. Every value has a checksum of its own,
//! and the sum of all is bounded: what was not used for longest goes first.
//!
//! Must not know: what the bytes are, what a user is told.

mod file;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use fairlab_files::caught;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use file::{FileTrouble, read_file, write_file};

/// What bytes are kept by: a hash of all that they are made of.
pub type StoreKey = [u8; 32];

/// So long a read or a write waits for another process.
const PATIENCE: Duration = Duration::from_secs(5);

/// The shortest and the longest of the pauses in that time.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(30)];

/// Bytes of a value's checksum.
const CHECKSUM: usize = 8;

/// A place where bytes are kept.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    /// Bytes that the file may have, about.
    bound: u64,
}

/// Why a store could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreTrouble {
    /// Another process has it, and does not give it free.
    Busy,
    /// It was no database any more, and is removed.
    Damaged(String),
    /// The system refuses.
    Refused(String),
}

/// What a look into a store gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreFinds {
    /// For each key what is kept by it.
    pub values: Vec<Option<Vec<u8>>>,
    /// Keys whose bytes are not those that were kept.
    pub damaged: Vec<StoreKey>,
    /// Keys whose use should be noted: it was not, for a day.
    pub unnoted: Vec<StoreKey>,
}

/// What is written at once: all of it, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreBatch {
    /// What is kept from now on.
    pub values: Vec<(StoreKey, Vec<u8>)>,
    /// Keys that were used.
    pub used: Vec<StoreKey>,
    /// Keys that go.
    pub gone: Vec<StoreKey>,
}

impl StoreBatch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.used.is_empty() && self.gone.is_empty()
    }
}

impl Store {
    /// The store in a file, which needs not be there. A link to `/dev/null` keeps nothing: then there is none.
    pub fn at(path: &Path, bound: u64) -> Option<Store> {
        let is_off = fs::canonicalize(path).is_ok_and(|path| path == Path::new("/dev/null"));
        (!is_off).then(|| Store { path: path.to_path_buf(), bound })
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks for many keys at once.
    ///
    /// # Errors
    /// It cannot be read. What was no database is removed.
    pub fn look(&self, keys: &[StoreKey]) -> Result<StoreFinds, StoreTrouble> {
        if keys.is_empty() || !self.path.exists() {
            return Ok(StoreFinds { values: vec![None; keys.len()], ..StoreFinds::default() });
        }
        let now = minutes();
        self.patiently(|| read_file(&self.path, keys, now))
    }

    /// Writes a batch, and makes room for it.
    ///
    /// # Errors
    /// It cannot be written to. What was no database is removed.
    pub fn write(&self, batch: &StoreBatch) -> Result<(), StoreTrouble> {
        if batch.is_empty() {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|error| StoreTrouble::Refused(error.to_string()))?;
        let now = minutes();
        self.patiently(|| write_file(&self.path, self.bound, batch, now))
    }

    /// Does it when no other process is in the way.
    fn patiently<T>(&self, act: impl Fn() -> Result<T, FileTrouble>) -> Result<T, StoreTrouble> {
        let (begin, [mut pause, longest]) = (Instant::now(), PAUSES);
        loop {
            // Its own checks may fail on a damaged file as assertions.
            let done =
                caught(&act).unwrap_or_else(|assertion| Err(FileTrouble::Damaged(assertion.to_string())));
            match done {
                Ok(done) => return Ok(done),
                Err(FileTrouble::Busy) if begin.elapsed() < PATIENCE => thread::sleep(pause),
                Err(FileTrouble::Busy) => return Err(StoreTrouble::Busy),
                Err(FileTrouble::Refused(why)) => return Err(StoreTrouble::Refused(why)),
                Err(FileTrouble::Damaged(why)) => {
                    return Err(match fs::remove_file(&self.path) {
                        Ok(()) => StoreTrouble::Damaged(why),
                        Err(error) => StoreTrouble::Refused(format!("{why}; {error}")),
                    });
                }
            }
            pause = (pause * 2).min(longest);
        }
    }
}

/// A hash of the bytes of this program: another build has another one.
///
/// # Errors
/// The program cannot be read.
pub fn this_program() -> std::io::Result<u128> {
    let mut program = fs::File::open("/proc/self/exe")?;
    let (mut hash, mut piece) = (Xxh3Default::new(), vec![0; 1 << 20]);
    loop {
        match program.read(&mut piece)? {
            0 => return Ok(hash.digest128()),
            count => hash.update(&piece[..count]),
        }
    }
}

/// The time in minutes, as uses are noted.
fn minutes() -> u32 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u32::try_from(since.as_secs() / 60).unwrap_or(u32::MAX)
}

/// A value with its checksum, which covers the key: bytes under another's key are damaged.
fn sealed(key: &StoreKey, bytes: &[u8]) -> Vec<u8> {
    [&checksum(key, bytes)[..], bytes].concat()
}

/// The value, if it is what was kept.
fn opened(key: &StoreKey, sealed: &[u8]) -> Option<Vec<u8>> {
    let (sum, bytes) = sealed.split_at_checked(CHECKSUM)?;
    (checksum(key, bytes) == sum).then(|| bytes.to_vec())
}

fn checksum(key: &StoreKey, bytes: &[u8]) -> [u8; CHECKSUM] {
    (xxh3_64(bytes) ^ xxh3_64(key)).to_le_bytes()
}

#[cfg(test)]
mod tests;
