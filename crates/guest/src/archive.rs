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
pub enum ArchiveEntryKind {
    /// A file.
    File,
    /// A file that may be executed.
    Program,
    /// A folder; it has no content.
    Folder,
    /// A link; its content is where it leads.
    Link,
}

impl ArchiveEntryKind {
    fn mode(self) -> u32 {
        match self {
            ArchiveEntryKind::File => 0o100_644,
            ArchiveEntryKind::Program => 0o100_755,
            ArchiveEntryKind::Folder => 0o040_755,
            ArchiveEntryKind::Link => 0o120_777,
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
    pub fn add(&mut self, name: &str, kind: ArchiveEntryKind, content: &[u8]) {
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

/// A member of an archive that was read. Nothing about it has been checked but that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveEntry<'a> {
    /// Its name: any bytes, which may lead anywhere.
    pub name: &'a [u8],
    /// Its kind and permissions (`st_mode`).
    pub mode: usize,
    /// Its content.
    pub content: &'a [u8],
}

impl ArchiveEntry<'_> {
    /// Whether it is a plain file, no link, folder or device.
    pub fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }
}

/// The members of an archive, in its order; `None` if these bytes are none, end early, or go on behind its end.
pub fn members(bytes: &[u8]) -> Option<Vec<ArchiveEntry<'_>>> {
    let mut members = Vec::new();
    let mut at = 0_usize;
    loop {
        let head = bytes.get(at..at.checked_add(HEAD_BYTES)?)?;
        if !head.starts_with(MAGIC) {
            return None;
        }
        let number = |index: usize| {
            let digits = std::str::from_utf8(&head[6 + index * 8..][..8]).ok()?;
            // Of what from_str_radix() takes a sign is no digit.
            let digits = Some(digits).filter(|digits| !digits.starts_with('+'))?;
            usize::from_str_radix(digits, 16).ok()
        };
        let (mode, length, name_length) = (number(1)?, number(6)?, number(11)?);
        at += HEAD_BYTES;
        let name = bytes.get(at..at.checked_add(name_length)?)?.strip_suffix(&[0])?;
        at = (at + name_length).checked_next_multiple_of(4)?;
        let content = bytes.get(at..at.checked_add(length)?)?;
        at = (at + length).checked_next_multiple_of(4)?;
        if name == LAST.as_bytes() {
            return (length == 0 && at == bytes.len()).then_some(members);
        }
        members.push(ArchiveEntry { name, mode, content });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Vec<u8> {
        let mut archive = Archive::default();
        archive.add("bin", ArchiveEntryKind::Folder, &[]);
        archive.add("bin/odd", ArchiveEntryKind::Program, b"12345");
        archive.add("init", ArchiveEntryKind::Link, b"bin/odd");
        archive.add("empty", ArchiveEntryKind::File, &[]);
        archive.finish()
    }

    #[test]
    fn members_come_back() {
        let bytes = made();
        let members = members(&bytes).expect("an archive");
        let listed = members.iter().map(|member| (member.name, member.is_file(), member.content));
        let expected: [(&[u8], bool, &[u8]); 4] = [
            (b"bin", false, b""),
            (b"bin/odd", true, b"12345"),
            (b"init", false, b"bin/odd"),
            (b"empty", true, b""),
        ];
        assert_eq!(listed.collect::<Vec<_>>(), expected);
        assert_eq!(bytes, made());
    }

    #[test]
    fn what_is_cut_or_goes_on_is_no_archive() {
        let bytes = made();
        for length in 0..bytes.len() {
            assert_eq!(members(&bytes[..length]), None, "cut to {length}");
        }
        assert_eq!(members(&[&bytes[..], b"more"].concat()), None);
        assert_eq!(members(&[0xff; 300]), None);
    }
}
