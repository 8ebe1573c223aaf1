//! A journal: records that are kept one by one, so that interrupted work can continue.
//!
//! Each line is JSON, `{"record":…,"check":"…"}`. The check is a digest of the record's bytes and of the check before it. So it
//! shows a line that was changed, lost, repeated or moved. The first record is the head: what the journal is of. One process
//! writes at a time, by a lock. A last line that was torn by a crash is dropped, and its record is made again; any other damage
//! is refused.
//!
//! Must not know: what the records mean.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fairlab_event::ShownPath;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::LabError;

const BEGIN: &[u8] = b"{\"record\":";
const BETWEEN: &[u8] = b",\"check\":\"";
const END: &[u8] = b"\"}\n";

/// Digits of a check.
const DIGITS: usize = 16;

/// The longest line that is read: a record that is a thousand times longer than those that are written.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// How much of the work may be lost when the machine itself fails: lines reach the disk this often. What is lost is done again.
const BETWEEN_SYNCS: Duration = Duration::from_millis(250);

/// How often the lock is tried, and how long is waited between.
const LOOKS: u32 = 50;
const LOOK: Duration = Duration::from_millis(10);

/// What takes a record.
pub type OnRecord<'e> = &'e mut dyn FnMut(Value) -> Result<(), LabError>;

/// Where a line lies in a journal's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePosition {
    offset: u64,
    bytes: u64,
}

/// A journal that is written to, by one process at a time.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// The last line's check, and where that line ends.
    check: u64,
    end: u64,
    synced: Instant,
}

/// What was found wrong with a journal that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornJournal {
    /// The line, counted from 1.
    pub line: usize,
    /// How many bytes it had.
    pub bytes: u64,
}

impl std::fmt::Display for TornJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "line {} was not written to its end ({} bytes): it is dropped and done again",
            self.line, self.bytes
        )
    }
}

/// How far a journal is sound.
#[derive(Debug)]
struct JournalSoundness {
    /// Whether there is a head.
    begun: bool,
    check: u64,
    end: u64,
    torn: Option<TornJournal>,
}

impl Journal {
    /// Opens the journal at `path` for what `head` says, or begins it. Each record that is there goes to `each`. A torn last line
    /// is cut off and reported.
    ///
    /// # Errors
    /// Somebody else writes to it, it is of something else, a line of it is damaged, or it cannot be written.
    pub fn open(
        path: &Path,
        head: &Value,
        each: OnRecord<'_>,
    ) -> Result<(Journal, Option<TornJournal>), LabError> {
        let failed = |error: io::Error| cannot("write", path, &error);
        let mut options = OpenOptions::new();
        let mut file =
            options.create(true).truncate(false).read(true).write(true).open(path).map_err(failed)?;
        if !lock(&file).map_err(failed)? {
            let problem = format!("{}: another process writes to this journal", ShownPath(path));
            return Err(LabError::new(problem, "wait until it has ended, or name another folder"));
        }
        let sound = walk(path, &file, Some(head), &mut |record, _| each(record))?;
        file.set_len(sound.end).and_then(|()| file.seek(SeekFrom::Start(sound.end))).map_err(failed)?;
        let mut journal = Journal {
            path: path.to_path_buf(),
            file,
            check: sound.check,
            end: sound.end,
            synced: Instant::now(),
        };
        if !sound.begun {
            journal.add(head)?;
            journal.sync()?;
        }
        Ok((journal, sound.torn))
    }

    /// Adds a record. It is in the file when this returns, and on the disk soon.
    ///
    /// # Errors
    /// The file cannot be written to; what was written of the line is taken back.
    pub fn add(&mut self, record: &Value) -> Result<(), LabError> {
        let record = record.to_string();
        let check = check_of(self.check, record.as_bytes());
        let digits = format!("{check:0DIGITS$x}");
        let line = [BEGIN, record.as_bytes(), BETWEEN, digits.as_bytes(), END].concat();
        if let Err(error) = self.file.write_all(&line) {
            // Where even that fails the line is a torn one, which the next process cuts off.
            let _ = self.file.set_len(self.end).and_then(|()| self.file.seek(SeekFrom::Start(self.end)));
            return Err(cannot("write", &self.path, &error));
        }
        (self.check, self.end) = (check, self.end + line.len() as u64);
        if self.synced.elapsed() > BETWEEN_SYNCS { self.sync() } else { Ok(()) }
    }

    /// Brings everything to the disk.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn sync(&mut self) -> Result<(), LabError> {
        self.file.sync_data().map_err(|error| cannot("write", &self.path, &error))?;
        self.synced = Instant::now();
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // What an error here concerns is in the file all the same. A child that was forked meanwhile has the file open, too: the
        // lock ends here, not with the child.
        let _ = self.file.sync_data();
        let _ = self.file.unlock();
    }
}

/// Takes the lock; `false` if somebody else keeps it. A process that was just started holds all that is open, until it is the other
/// program.
fn lock(file: &File) -> io::Result<bool> {
    for _ in 0..LOOKS {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
        }
    }
    Ok(false)
}

/// Feeds each record of the journal at `path`, the head first, to `each`. Somebody may be writing to it: a last line that is not
/// whole is left out and reported.
///
/// # Errors
/// It cannot be read, a line of it is damaged, or `each` fails.
pub fn read(path: &Path, each: OnRecord<'_>) -> Result<Option<TornJournal>, LabError> {
    read_with_places(path, &mut |record, _| each(record))
}

/// [`read`], with the place of each record, by which [`record_at`] finds it again.
///
/// # Errors
/// As of [`read`].
pub fn read_with_places(
    path: &Path,
    each: &mut dyn FnMut(Value, LinePosition) -> Result<(), LabError>,
) -> Result<Option<TornJournal>, LabError> {
    walk(path, &open_to_read(path)?, None, each).map(|sound| sound.torn)
}

/// The file of the journal at `path`.
///
/// # Errors
/// It cannot be read.
pub fn open_to_read(path: &Path) -> Result<File, LabError> {
    File::open(path).map_err(|error| cannot("read", path, &error))
}

/// The record at a place of the journal `file`, which is at `path`.
///
/// # Errors
/// It cannot be read, or is not what lay there.
pub fn record_at(path: &Path, file: &File, place: LinePosition) -> Result<Value, LabError> {
    let mut line = vec![0; usize::try_from(place.bytes).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut line, place.offset).map_err(|error| cannot("read", path, &error))?;
    let inner = line.strip_prefix(BEGIN).and_then(|line| line.strip_suffix(END));
    let record = inner.and_then(|inner| inner.get(..inner.len().checked_sub(DIGITS + BETWEEN.len())?));
    record.and_then(|record| serde_json::from_slice(record).ok()).ok_or_else(|| {
        LabError::new(format!("{}: was changed while it was read", ShownPath(path)), "read it again")
    })
}

/// Goes through the lines. A journal for `head` must have it as its first record, which is not given to `each`.
fn walk(
    path: &Path,
    file: &File,
    head: Option<&Value>,
    each: &mut dyn FnMut(Value, LinePosition) -> Result<(), LabError>,
) -> Result<JournalSoundness, LabError> {
    let mut reader = BufReader::new(file);
    let mut sound = JournalSoundness { begun: false, check: 0, end: 0, torn: None };
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let bytes = read.map_err(|error| cannot("read", path, &error))? as u64;
        if bytes == 0 {
            break;
        }
        let Some((record, check)) = record_of(&line, sound.check) else {
            let is_last = reader.fill_buf().map_err(|error| cannot("read", path, &error))?.is_empty();
            // A head is small and written at once: what is no head is no journal of ours, torn or not.
            let could_be_torn =
                is_last && (sound.begun || BEGIN.starts_with(&line) || line.starts_with(BEGIN));
            if !could_be_torn {
                return Err(damaged(path, number, sound.begun));
            }
            sound.torn = Some(TornJournal { line: number, bytes });
            break;
        };
        let place = LinePosition { offset: sound.end, bytes };
        (sound.check, sound.end) = (check, sound.end + bytes);
        match head.filter(|_| !sound.begun) {
            Some(head) if *head != record => {
                let problem = format!("{}: this journal is of something else", ShownPath(path));
                return Err(LabError::new(problem, "name another folder, or remove this one"));
            }
            Some(_) => {}
            None => each(record, place)?,
        }
        sound.begun = true;
    }
    Ok(sound)
}

/// The record in a line, and its check; `None` if the line is not what was written after one with check `before`.
fn record_of(line: &[u8], before: u64) -> Option<(Value, u64)> {
    let inner = line.strip_prefix(BEGIN)?.strip_suffix(END)?;
    let (rest, digits) = inner.split_at_checked(inner.len().checked_sub(DIGITS)?)?;
    let record = rest.strip_suffix(BETWEEN)?;
    let check = check_of(before, record);
    if digits != format!("{check:0DIGITS$x}").as_bytes() {
        return None;
    }
    serde_json::from_slice(record).ok().map(|record| (record, check))
}

fn check_of(before: u64, record: &[u8]) -> u64 {
    xxh3_64_with_seed(record, before)
}

fn damaged(path: &Path, line: usize, begun: bool) -> LabError {
    let path = ShownPath(path);
    if !begun {
        return LabError::new(
            format!("{path}: line 1 is no head of a journal whose lines have checks"),
            "what was written before there were checks cannot be trusted: name another folder and run it again",
        );
    }
    LabError::new(
        format!("{path}: line {line} is not what was written: it was changed, or one before it is missing"),
        format!("cut the file off before line {line}, and what follows is done again"),
    )
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> LabError {
    LabError::new(
        format!("cannot {what} {}: {error}", ShownPath(path)),
        "check the folder and its free space",
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::temporary::PrivateFolder;

    fn head() -> Value {
        json!({ "schema": "fairlab/test-journal/1", "of": "a test" })
    }

    /// A journal with so many records, and its bytes.
    fn made(path: &Path, records: u64) -> Vec<u8> {
        let _ = fs::remove_file(path);
        let (mut journal, torn) =
            Journal::open(path, &head(), &mut |_| panic!("it is new")).expect("a journal");
        assert_eq!(torn, None);
        for number in 0..records {
            journal.add(&json!({ "number": number, "value": 0.1 * number as f64 })).expect("added");
        }
        drop(journal);
        fs::read(path).expect("bytes")
    }

    /// What is found in a journal of these bytes, by a writer.
    fn opened(path: &Path, bytes: &[u8]) -> Result<(Vec<u64>, Option<TornJournal>), LabError> {
        fs::write(path, bytes).expect("written");
        let mut found = Vec::new();
        let mut each = |record: Value| {
            found.push(record["number"].as_u64().expect("a number"));
            Ok(())
        };
        let (journal, torn) = Journal::open(path, &head(), &mut each)?;
        drop(journal);
        Ok((found, torn))
    }

    #[test]
    fn records_come_back_and_more_are_added() {
        let folder = PrivateFolder::create().expect("a folder");
        let path = folder.path().join("journal");
        let bytes = made(&path, 3);
        assert_eq!(opened(&path, &bytes).expect("sound"), (vec![0, 1, 2], None));
        let (mut journal, _) = Journal::open(&path, &head(), &mut |_| Ok(())).expect("sound");
        journal.add(&json!({ "number": 3 })).expect("added");
        let mut count = 0;
        read(&path, &mut |_| {
            count += 1;
            Ok(())
        })
        .expect("sound");
        assert_eq!(count, 5, "the head and four");
        for line in fs::read_to_string(&path).expect("text").lines() {
            assert!(
                serde_json::from_str::<Value>(line).is_ok_and(|line| line["check"].is_string()),
                "{line}"
            );
        }
    }

    #[test]
    fn one_writes_at_a_time() {
        let folder = PrivateFolder::create().expect("a folder");
        let path = folder.path().join("journal");
        made(&path, 1);
        let first = Journal::open(&path, &head(), &mut |_| Ok(())).expect("sound");
        let error = Journal::open(&path, &head(), &mut |_| Ok(())).expect_err("refused");
        assert!(error.problem.contains("another process writes"), "{error}");
        assert_eq!(read(&path, &mut |_| Ok(())).expect("readers may"), None);
        drop(first);
        assert!(Journal::open(&path, &head(), &mut |_| Ok(())).is_ok());
        let other = Journal::open(&path, &json!({}), &mut |_| Ok(())).expect_err("refused");
        assert!(other.problem.contains("of something else"), "{other}");
    }

    /// Wherever it is cut, what is whole is kept, and the journal goes on.
    #[test]
    fn a_torn_end_is_dropped_and_told() {
        let folder = PrivateFolder::create().expect("a folder");
        let path = folder.path().join("journal");
        let bytes = made(&path, 3);
        let whole_at = |length: usize| bytes[..length].iter().filter(|byte| **byte == b'\n').count();
        for length in 0..bytes.len() {
            let (found, torn) = opened(&path, &bytes[..length]).expect("goes on");
            let lines = whole_at(length);
            assert_eq!(found.len(), lines.saturating_sub(1), "cut to {length}");
            let at_end_of_line = length == 0 || bytes[length - 1] == b'\n';
            assert_eq!(torn.map(|torn| torn.line), (!at_end_of_line).then_some(lines + 1), "cut to {length}");
            let again = fs::read(&path).expect("bytes");
            assert_eq!(opened(&path, &again).expect("sound"), (found, None), "cut to {length}");
        }
        let zeros = [&bytes[..], &[0; 4096]].concat();
        let (found, torn) = opened(&path, &zeros).expect("goes on");
        assert_eq!((found.len(), torn), (3, Some(TornJournal { line: 5, bytes: 4096 })));
    }

    /// One bit anywhere: the journal is refused by line, or its last line is dropped. A wrong value never comes out.
    #[test]
    fn no_flipped_bit_is_taken_for_a_record() {
        let folder = PrivateFolder::create().expect("a folder");
        let path = folder.path().join("journal");
        let bytes = made(&path, 3);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
                match opened(&path, &flipped) {
                    Ok((found, torn)) => {
                        let torn = torn.expect("told").line;
                        assert!(
                            line >= 3 && torn >= line && found.len() <= torn - 2,
                            "{at}.{bit}: {found:?}, {torn}"
                        );
                        assert_eq!(found, (0..found.len() as u64).collect::<Vec<_>>());
                    }
                    Err(error) => {
                        assert!(
                            error.problem.contains(&format!("line {line} ")),
                            "{at}.{bit}, line {line}: {error}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn lines_that_are_lost_repeated_or_moved_are_found() {
        let folder = PrivateFolder::create().expect("a folder");
        let path = folder.path().join("journal");
        let text = String::from_utf8(made(&path, 4)).expect("text");
        let lines = text.split_inclusive('\n').collect::<Vec<_>>();
        for order in
            [vec![0, 2, 3, 4], vec![0, 1, 1, 2, 3, 4], vec![0, 2, 1, 3, 4], vec![1, 2, 3, 4], vec![4, 0]]
        {
            let bytes = order.iter().map(|&line| lines[line]).collect::<String>();
            assert!(opened(&path, bytes.as_bytes()).is_err(), "{order:?}");
        }
        let old = r#"{"cell":0,"kernel":"v6.5"}"#.to_string() + "\n";
        for bytes in [old.as_bytes(), &old.as_bytes()[..9]] {
            let error = opened(&path, bytes).expect_err("refused");
            assert!(
                error.problem.contains("line 1 is no head") && error.hint.contains("run it again"),
                "{error}"
            );
        }
    }
}
