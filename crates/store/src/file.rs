//! The file: opened, read or written, and closed.
//!
//! redb locks a file that is open: several readers, or one writer. Must not know: who waits, and what is done about trouble.

use std::path::Path;

use redb::{
    Builder, CommitError, Database, DatabaseError, Durability, ReadOnlyTable, ReadableDatabase,
    ReadableTable, StorageError, Table, TableDefinition, TableError, TransactionError,
};

use super::{StoreBatch, StoreFinds, StoreKey, opened, sealed};

/// Values, each with a checksum.
const VALUES: TableDefinition<'_, &StoreKey, &[u8]> = TableDefinition::new("values");

/// When each was used, in minutes. It is written more often, and so stands apart.
const USES: TableDefinition<'_, &StoreKey, u32> = TableDefinition::new("uses");

/// What all take.
const SUMS: TableDefinition<'_, &str, u64> = TableDefinition::new("sums");
const BYTES: &str = "bytes";

/// Pages in memory: what is read or written at once lies in few.
const CACHE_BYTES: usize = 16 << 20;

/// A use is noted again after so many minutes.
const DAY: u32 = 24 * 60;

/// What a value takes beside its bytes: its key twice, its place in pages, the time.
const EACH: u64 = 112;

/// How much of the bound values may fill: pages are half empty, and a commit writes beside what it replaces. What redb sets aside
/// in the file for later takes no room on the disk.
const FILLED: (u64, u64) = (3, 8);

/// How much of that is left when room is made.
const LEFT: (u64, u64) = (7, 8);

/// What went wrong with the file.
pub(super) enum FileTrouble {
    Busy,
    Damaged(String),
    Refused(String),
}

/// What is kept by these keys.
pub(super) fn read_file(path: &Path, keys: &[StoreKey], now: u32) -> Result<StoreFinds, FileTrouble> {
    let database = match builder().open_read_only(path) {
        // A process was killed while it wrote: one that may write puts that right.
        Err(DatabaseError::RepairAborted) => {
            builder().open(path)?.close()?;
            builder().open_read_only(path)?
        }
        opened => opened?,
    };
    let transaction = database.begin_read()?;
    let (values, uses) = match (transaction.open_table(VALUES), transaction.open_table(USES)) {
        (Err(TableError::TableDoesNotExist(_)), _) => {
            return Ok(StoreFinds { values: vec![None; keys.len()], ..StoreFinds::default() });
        }
        (values, uses) => (values?, uses?),
    };
    finds(&values, &uses, keys, now)
}

fn finds(
    values: &ReadOnlyTable<&StoreKey, &[u8]>,
    uses: &ReadOnlyTable<&StoreKey, u32>,
    keys: &[StoreKey],
    now: u32,
) -> Result<StoreFinds, FileTrouble> {
    let mut finds = StoreFinds::default();
    for key in keys {
        let Some(kept) = ReadableTable::get(values, key)? else {
            finds.values.push(None);
            continue;
        };
        let value = opened(key, kept.value());
        let used = ReadableTable::get(uses, key)?.map_or(0, |used| used.value());
        match value.is_some() {
            true if now.saturating_sub(used) > DAY => finds.unnoted.push(*key),
            true => {}
            false => finds.damaged.push(*key),
        }
        finds.values.push(value);
    }
    Ok(finds)
}

/// Writes a batch and makes room.
pub(super) fn write_file(path: &Path, bound: u64, batch: &StoreBatch, now: u32) -> Result<(), FileTrouble> {
    let database = builder().create(path)?;
    write_batch(&database, bound, batch, now)?;
    Ok(database.close()?)
}

fn write_batch(database: &Database, bound: u64, batch: &StoreBatch, now: u32) -> Result<(), FileTrouble> {
    let mut transaction = database.begin_write()?;
    // A killed process leaves a file that opens at once.
    transaction.set_quick_repair(true);
    transaction
        .set_durability(Durability::Immediate)
        .map_err(|error| FileTrouble::Refused(error.to_string()))?;
    {
        let mut tables = Tables {
            values: transaction.open_table(VALUES)?,
            uses: transaction.open_table(USES)?,
            sums: transaction.open_table(SUMS)?,
        };
        let mut bytes = tables.sums.get(BYTES)?.map_or(0, |bytes| bytes.value());
        for key in &batch.gone {
            bytes = bytes.saturating_sub(tables.remove(key)?);
        }
        for (key, value) in &batch.values {
            bytes = (bytes + EACH + value.len() as u64).saturating_sub(tables.put(key, value, now)?);
        }
        for key in &batch.used {
            if tables.values.get(key)?.is_some() {
                tables.uses.insert(key, now)?;
            }
        }
        let room = bound / FILLED.1 * FILLED.0;
        if bytes > room {
            bytes = tables.make_room(bytes, room / LEFT.1 * LEFT.0)?;
        }
        tables.sums.insert(BYTES, bytes)?;
    }
    Ok(transaction.commit()?)
}

struct Tables<'t> {
    values: Table<'t, &'static StoreKey, &'static [u8]>,
    uses: Table<'t, &'static StoreKey, u32>,
    sums: Table<'t, &'static str, u64>,
}

impl Tables<'_> {
    /// Keeps a value. Gives what the one before it took.
    fn put(&mut self, key: &StoreKey, value: &[u8], now: u32) -> Result<u64, FileTrouble> {
        self.uses.insert(key, now)?;
        let before = self.values.insert(key, sealed(key, value).as_slice())?;
        Ok(before.map_or(0, |before| taken(before.value())))
    }

    /// Removes a value. Gives what it took.
    fn remove(&mut self, key: &StoreKey) -> Result<u64, FileTrouble> {
        self.uses.remove(key)?;
        Ok(self.values.remove(key)?.map_or(0, |before| taken(before.value())))
    }

    /// Removes what was not used for longest, until no more than `left` is there. Gives how much that is.
    fn make_room(&mut self, mut bytes: u64, left: u64) -> Result<u64, FileTrouble> {
        let mut uses = Vec::new();
        for use_of in self.uses.iter()? {
            let (key, used) = use_of?;
            uses.push((used.value(), *key.value()));
        }
        uses.sort_unstable();
        for (_, key) in uses {
            if bytes <= left {
                break;
            }
            bytes = bytes.saturating_sub(self.remove(&key)?);
        }
        Ok(bytes)
    }
}

/// What a sealed value takes.
fn taken(sealed: &[u8]) -> u64 {
    EACH + (sealed.len() - super::CHECKSUM.min(sealed.len())) as u64
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

impl From<StorageError> for FileTrouble {
    fn from(error: StorageError) -> FileTrouble {
        match error {
            StorageError::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                FileTrouble::Damaged(error.to_string())
            }
            // The file is shorter than it says.
            StorageError::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                FileTrouble::Damaged(error.to_string())
            }
            StorageError::Corrupted(why) => FileTrouble::Damaged(why),
            other => FileTrouble::Refused(other.to_string()),
        }
    }
}

impl From<DatabaseError> for FileTrouble {
    fn from(error: DatabaseError) -> FileTrouble {
        match error {
            DatabaseError::DatabaseAlreadyOpen | DatabaseError::TransactionInProgress => FileTrouble::Busy,
            DatabaseError::Storage(error) => error.into(),
            // Killed again while it was put right: it is nothing but what can be made once more.
            other @ (DatabaseError::RepairAborted | DatabaseError::UpgradeRequired(_)) => {
                FileTrouble::Damaged(other.to_string())
            }
            other => FileTrouble::Refused(other.to_string()),
        }
    }
}

impl From<TransactionError> for FileTrouble {
    fn from(error: TransactionError) -> FileTrouble {
        match error {
            TransactionError::Storage(error) => error.into(),
            other => FileTrouble::Refused(other.to_string()),
        }
    }
}

impl From<TableError> for FileTrouble {
    fn from(error: TableError) -> FileTrouble {
        match error {
            TableError::Storage(error) => error.into(),
            // A database of somebody else.
            other => FileTrouble::Damaged(other.to_string()),
        }
    }
}

impl From<CommitError> for FileTrouble {
    fn from(error: CommitError) -> FileTrouble {
        match error {
            CommitError::Storage(error) => error.into(),
            other => FileTrouble::Refused(other.to_string()),
        }
    }
}
