//! Files of the kernel's own file systems: read whole, written in one piece.
//!
//! Must not know: what is in them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

/// All bytes of a file. Some files answer the first read only, so the first read is large.
///
/// # Errors
/// It cannot be read.
pub fn bytes(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let (mut file, mut bytes) = (File::open(path)?, Vec::new());
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(bytes),
            length => bytes.extend_from_slice(&piece[..length]),
        }
    }
}

/// The text of a file; nothing where it cannot be read.
pub fn text(path: impl AsRef<Path>) -> String {
    bytes(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// The text of a file of one line, without its end.
pub fn line(path: impl AsRef<Path>) -> String {
    text(path).trim_end().to_string()
}

/// Writes a file that is there.
///
/// # Errors
/// It is not there, or the kernel refuses the value.
pub fn write(path: impl AsRef<Path>, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// Writes a line at the end of a file.
///
/// # Errors
/// As [`write`].
pub fn append(path: impl AsRef<Path>, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).open(path)?.write_all(line.as_bytes())
}

/// The names in a folder, sorted as people count: `cpu2` before `cpu10`. None where there is no such folder.
pub fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_by(|one, other| (key(one), one).cmp(&(key(other), other)));
    names
}

/// A name without its number, and the number.
fn key(name: &str) -> (&str, u64) {
    let stem = name.trim_end_matches(|character: char| character.is_ascii_digit());
    (stem, name[stem.len()..].parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted() {
        let mut names = ["cpu10", "cpu9", "cpu", "cpu1", "a"];
        names.sort_by_key(|name| key(name));
        assert_eq!(names, ["a", "cpu", "cpu1", "cpu9", "cpu10"]);
        assert_eq!(key("12"), ("", 12));
    }
}
