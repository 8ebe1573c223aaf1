//! A trace that can be read at any place: a file, or a copy of what came through a pipe.
//!
//! A `perf.data` describes its events behind them, and a `trace.dat` has each CPU's records in a place of its own, so
//! neither can be read from its beginning to its end.
//! Must not know: what the bytes mean.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::BytesRead;

/// Where the bytes are.
#[derive(Debug)]
pub(crate) enum Store {
    /// In memory, when there are few.
    Memory(Vec<u8>),
    /// In a file of `length` bytes.
    File {
        /// Open for reading.
        file: File,
        /// Its length when it was opened; later growth is not looked at.
        length: u64,
        /// How much of it has been read.
        read: BytesRead,
    },
    /// In several stores, as if these were one.
    Joined(Vec<Store>),
}

/// What comes through a pipe is kept in memory up to this many bytes, and on disk beyond.
const MEMORY_MAX: u64 = 4 << 20;

/// So much is copied at a time.
const PIECE_BYTES: usize = 1 << 18;

impl Store {
    /// Reads from a regular file in place.
    pub(crate) fn file(file: File) -> io::Result<Store> {
        Store::counted(file, &BytesRead::default())
    }

    /// Reads from a regular file in place and tells `read` how much; keeps all of any other.
    pub(crate) fn of(file: File, read: &BytesRead) -> io::Result<Store> {
        match file.metadata()?.is_file() {
            true => Store::counted(file, read),
            false => Store::spool(file),
        }
    }

    fn counted(file: File, read: &BytesRead) -> io::Result<Store> {
        let length = file.metadata()?.len();
        Ok(Store::File { file, length, read: read.clone() })
    }

    /// Keeps all of `source`: in memory when it is small, else in a temporary file without a name.
    pub(crate) fn spool(mut source: impl Read) -> io::Result<Store> {
        let mut memory = Vec::new();
        let length = source.by_ref().take(MEMORY_MAX).read_to_end(&mut memory)?;
        if (length as u64) < MEMORY_MAX {
            return Ok(Store::Memory(memory));
        }
        let mut file = UnnamedFile::create()?;
        file.write_all(&memory)?;
        drop(memory);
        io::copy(&mut source, &mut file)?;
        Store::file(file.file)
    }

    /// Bytes in all.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Store::Memory(bytes) => bytes.len() as u64,
            Store::File { length, .. } => *length,
            Store::Joined(stores) => stores.iter().map(Store::length).sum(),
        }
    }

    /// Fills as much of `buffer` as there is from `offset` on; returns how much.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Store::Memory(bytes) => {
                let there = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                let count = there.len().min(buffer.len());
                buffer[..count].copy_from_slice(&there[..count]);
                Ok(count)
            }
            Store::File { file, read, .. } => {
                let mut filled = 0;
                while filled < buffer.len() {
                    match file.read_at(&mut buffer[filled..], offset.saturating_add(filled as u64)) {
                        Ok(0) => break,
                        Ok(count) => filled += count,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                read.add(filled);
                Ok(filled)
            }
            Store::Joined(stores) => read_joined(stores, buffer, offset),
        }
    }

    /// Writes everything to `output`.
    pub(crate) fn copy_to(&self, output: &mut impl Write) -> io::Result<()> {
        let mut buffer = vec![0; PIECE_BYTES.min(usize::try_from(self.length()).unwrap_or(PIECE_BYTES))];
        let mut at = 0;
        while at < self.length() {
            let count = self.read_at(&mut buffer, at)?;
            if count == 0 {
                return Err(io::Error::other("the temporary file has become shorter"));
            }
            output.write_all(&buffer[..count])?;
            at += count as u64;
        }
        Ok(())
    }

    /// The bytes from `offset` on, at most `size`, and no more than there are.
    pub(crate) fn read_section(&self, offset: u64, size: u64) -> io::Result<Vec<u8>> {
        let size = size.min(self.length().saturating_sub(offset));
        let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        let filled = self.read_at(&mut bytes, offset)?;
        bytes.truncate(filled);
        Ok(bytes)
    }
}

/// As [`Store::read_at`], from each store what it has.
fn read_joined(stores: &[Store], buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let (mut filled, mut start) = (0, 0);
    for store in stores {
        let end = start + store.length();
        let at = offset.saturating_add(filled as u64);
        if (start..end).contains(&at) {
            let most = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len() - filled);
            let count = store.read_at(&mut buffer[filled..filled + most], at - start)?;
            filled += count;
            if count < most {
                break;
            }
        }
        start = end;
    }
    Ok(filled)
}

/// Bytes that are kept until it is known what goes before them: in memory when they are few, else in a temporary file
/// without a name.
#[derive(Debug)]
pub(crate) struct Spool {
    memory: Vec<u8>,
    file: Option<UnnamedFile>,
    length: u64,
    limit: u64,
}

impl Default for Spool {
    /// Without a limit.
    fn default() -> Spool {
        Spool::limited(u64::MAX)
    }
}

/// What is packed within a file may come to so many times the file's own bytes, and to this besides. What recorders pack
/// comes to ten or twenty times.
const UNPACKED_TIMES: u64 = 64;
const UNPACKED_BESIDE: u64 = 1 << 30;

impl Spool {
    /// For what is packed within a file of `length` bytes.
    pub(crate) fn of_packed(length: u64) -> Spool {
        Spool::limited(length.saturating_mul(UNPACKED_TIMES).saturating_add(UNPACKED_BESIDE))
    }

    /// Keeps no more than `limit` bytes: more is an error of the kind `QuotaExceeded`.
    pub(crate) fn limited(limit: u64) -> Spool {
        Spool { memory: Vec::new(), file: None, length: 0, limit }
    }

    /// Keeps `bytes`; returns where they begin.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let start = self.length;
        if start + bytes.len() as u64 > self.limit {
            let fact = format!(
                "what is packed in it comes to more than {} bytes, the limit of {UNPACKED_TIMES} times its own and 1 GiB; \
                 no recorder packs so tight: unpack it by the tool that packed it",
                self.limit
            );
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, fact));
        }
        if self.file.is_none() && start + bytes.len() as u64 > MEMORY_MAX {
            let mut file = UnnamedFile::create()?;
            file.write_all(&std::mem::take(&mut self.memory))?;
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(bytes)?,
            None => self.memory.extend_from_slice(bytes),
        }
        self.length += bytes.len() as u64;
        Ok(start)
    }

    /// How many bytes are kept.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Forgets what lies beyond the first `length` bytes.
    pub(crate) fn truncate(&mut self, length: u64) -> io::Result<()> {
        if length >= self.length {
            return Ok(());
        }
        match &mut self.file {
            Some(UnnamedFile { file, .. }) => {
                file.set_len(length)?;
                file.seek(SeekFrom::Start(length))?;
            }
            None => self.memory.truncate(usize::try_from(length).unwrap_or(usize::MAX)),
        }
        self.length = length;
        Ok(())
    }

    /// Everything that was kept, to be read at any place.
    pub(crate) fn into_store(self) -> Store {
        match self.file {
            Some(UnnamedFile { file, .. }) => {
                Store::File { file, length: self.length, read: BytesRead::default() }
            }
            None => Store::Memory(self.memory),
        }
    }
}

/// Where large temporary files belong: `$TMPDIR`, else `/var/tmp`, which unlike `/tmp` is not kept in memory.
pub fn place_of_large_files() -> PathBuf {
    match std::env::var_os("TMPDIR") {
        Some(folder) => PathBuf::from(folder),
        None if Path::new("/var/tmp").is_dir() => PathBuf::from("/var/tmp"),
        None => std::env::temp_dir(),
    }
}

/// A new file whose name is removed at once, so that nothing stays behind.
#[derive(Debug)]
struct UnnamedFile {
    file: File,
    folder: PathBuf,
}

impl UnnamedFile {
    /// In the place for large temporary files.
    fn create() -> io::Result<UnnamedFile> {
        let folder = place_of_large_files();
        let file = UnnamedFile::create_in(&folder).map_err(|error| of_temporary_file(&folder, &error))?;
        Ok(UnnamedFile { file, folder })
    }

    fn create_in(folder: &Path) -> io::Result<File> {
        const ATTEMPTS: u32 = 1000;
        let process = std::process::id();
        for attempt in 0..ATTEMPTS {
            let path = folder.join(format!("fairlab-spool-{process}-{attempt}"));
            match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => {
                    std::fs::remove_file(&path)?;
                    return Ok(file);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("there is no free name"))
    }
}

impl Write for UnnamedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| of_temporary_file(&self.folder, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| of_temporary_file(&self.folder, &error))
    }
}

/// The error says that it is not about the trace.
fn of_temporary_file(folder: &Path, error: &io::Error) -> io::Error {
    let fact = format!("a temporary file in {} (TMPDIR names another folder): {error}", folder.display());
    let kind = match error.kind() {
        io::ErrorKind::QuotaExceeded => io::ErrorKind::StorageFull,
        kind => kind,
    };
    io::Error::new(kind, fact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_limit_is_refused_and_so_is_a_full_disk() {
        let mut spool = Spool::limited(10);
        assert_eq!(spool.append(b"12345678").expect("room"), 0);
        let refused = spool.append(b"abc").expect_err("no room");
        assert_eq!(refused.kind(), io::ErrorKind::QuotaExceeded);
        assert_eq!((spool.append(b"ab").expect("room"), spool.length()), (8, 10));
        let limits = [0, 1 << 20, u64::MAX].map(|length| Spool::of_packed(length).limit);
        assert_eq!(limits, [1 << 30, (1 << 30) + (64 << 20), u64::MAX]);
        let full = OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let error = UnnamedFile { file: full, folder: PathBuf::from("/full") }.write_all(b"x");
        let error = error.expect_err("no room");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("a temporary file in /full (TMPDIR"), "{error}");
        assert!(UnnamedFile::create_in(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn small_input_stays_in_memory_and_large_input_goes_to_disk() {
        let small = Store::spool(&b"abc"[..]).expect("memory");
        assert!(matches!(small, Store::Memory(_)));
        let bytes: Vec<u8> = (0..MEMORY_MAX + 5).map(|at| (at % 251) as u8).collect();
        let large = Store::spool(&bytes[..]).expect("a temporary file");
        assert!(matches!(large, Store::File { length, .. } if length == MEMORY_MAX + 5));
        for (store, content) in [(&small, &b"abc"[..]), (&large, &bytes)] {
            assert_eq!(store.length(), content.len() as u64);
            assert_eq!(store.read_section(1, u64::MAX).expect("readable"), &content[1..]);
            assert_eq!(store.read_section(1, 2).expect("readable"), &content[1..3]);
            assert_eq!(store.read_section(u64::MAX, 2).expect("readable"), b"");
            assert_eq!(store.read_at(&mut [0; 4], content.len() as u64 - 1).expect("readable"), 1);
        }
    }

    #[test]
    fn joined_stores_are_read_as_one() {
        let parts = [&b"abc"[..], b"", b"defgh", b"i"];
        let store = Store::Joined(parts.iter().map(|part| Store::Memory(part.to_vec())).collect());
        assert_eq!(store.length(), 9);
        for start in 0..=10 {
            for size in 0..10 {
                let expected = &b"abcdefghi"[start.min(9)..(start + size).min(9)];
                assert_eq!(store.read_section(start as u64, size as u64).expect("memory"), expected);
            }
        }
    }

    #[test]
    fn what_is_kept_is_found_again() {
        for (count, in_memory) in [(0, true), (3, true), (9, false)] {
            let piece = vec![7; 1 << 20];
            let mut spool = Spool::default();
            for index in 0..count {
                assert_eq!(spool.append(&piece).expect("a temporary file"), index * piece.len() as u64);
            }
            assert_eq!(spool.append(b"no").expect("a temporary file"), count * piece.len() as u64);
            spool.truncate(count * piece.len() as u64).expect("a temporary file");
            assert_eq!(spool.append(b"end").expect("a temporary file"), count * piece.len() as u64);
            let store = spool.into_store();
            assert_eq!(matches!(store, Store::Memory(_)), in_memory);
            assert_eq!(store.read_section(store.length() - 3, 9).expect("readable"), b"end");
        }
    }
}
