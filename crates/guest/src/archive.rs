//! The archive that an initramfs is, and in which results come back: cpio in the form that kernels unpack (`newc`).
//!
//! Everything that could differ from one making to the next (owners, times, inodes) is fixed, so that equal files give
//! equal bytes.
//!
//! Must not know: what the files are for.

/// Each member's head: a magic number and thirteen numbers of eight hexadecimal digits.
const HEAD_BYTES: usize = 6 + 13 * 8;
const MAGIC: &[u8] = b"070701";
const LAST: &str = "TRAILER!!!";

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A file that may be executed.
    Program,
    /// A folder; it has no content.
    Folder,
    /// A link; its content is where it leads.
    Link,
}

impl Kind {
    fn mode(self) -> u32 {
        match self {
            Kind::File => 0o100_644,
            Kind::Program => 0o100_755,
            Kind::Folder => 0o040_755,
            Kind::Link => 0o120_777,
        }
    }
}

/// An archive under construction.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    members: u32,
}

impl Archive {
    /// Adds a member. A folder has to come before what lies in it.
    pub fn add(&mut self, name: &str, kind: Kind, content: &[u8]) {
        self.member(name, kind.mode(), content);
    }

    /// Ends it.
    pub fn finish(mut self) -> Vec<u8> {
        self.member(LAST, 0, &[]);
        self.bytes
    }

    fn member(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.members += 1;
        let length = u32::try_from(content.len()).expect("a member is shorter than 4 GiB");
        let name_length = name.len() as u32 + 1;
        let links = 1;
        let numbers = [self.members, mode, 0, 0, links, 0, length, 0, 0, 0, 0, name_length, 0];
        self.bytes.extend_from_slice(MAGIC);
        for number in numbers {
            self.bytes.extend_from_slice(format!("{number:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// The files of an archive, by name, in its order; `None` if these bytes are none, or end early.
pub fn files(bytes: &[u8]) -> Option<Vec<(String, &[u8])>> {
    let mut files = Vec::new();
    let mut at = 0_usize;
    loop {
        let head = bytes.get(at..at.checked_add(HEAD_BYTES)?)?;
        if !head.starts_with(MAGIC) {
            return None;
        }
        let number = |index: usize| {
            let digits = std::str::from_utf8(&head[6 + index * 8..][..8]).ok()?;
            usize::from_str_radix(digits, 16).ok()
        };
        let (mode, length, name_length) = (number(1)?, number(6)?, number(11)?);
        at += HEAD_BYTES;
        let name = bytes.get(at..at.checked_add(name_length.checked_sub(1)?)?)?;
        let name = std::str::from_utf8(name).ok()?;
        at = (at + name_length).next_multiple_of(4);
        if name == LAST {
            return Some(files);
        }
        let content = bytes.get(at..at.checked_add(length)?)?;
        if mode & 0o170_000 == 0o100_000 {
            files.push((name.to_string(), content));
        }
        at = (at + length).next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Vec<u8> {
        let mut archive = Archive::default();
        archive.add("bin", Kind::Folder, &[]);
        archive.add("bin/odd", Kind::Program, b"12345");
        archive.add("init", Kind::Link, b"bin/odd");
        archive.add("empty", Kind::File, &[]);
        archive.finish()
    }

    #[test]
    fn files_come_back() {
        let bytes = made();
        let files = files(&bytes).expect("an archive");
        assert_eq!(files, [("bin/odd".to_string(), &b"12345"[..]), ("empty".to_string(), &b""[..])]);
        assert_eq!(bytes, made());
    }

    #[test]
    fn what_is_cut_is_no_archive() {
        let bytes = made();
        for length in 0..bytes.len() - 4 {
            assert_eq!(files(&bytes[..length]), None, "cut to {length}");
        }
        assert_eq!(files(&[0xff; 300]), None);
    }
}
