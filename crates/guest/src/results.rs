//! What a guest leaves with its host: files of fixed names, each of them once.
//!
//! The guest writes by this list and the host reads by it. What a guest runs may write to the memory that both share, so the host
//! takes nothing on trust: a name of another's choice could lead anywhere on the host.
//!
//! Must not know: what is in the files.

use std::io;

use fairlab_event::escaped;

use crate::archive::{self, Archive, ArchiveEntryKind};

/// The files that a guest leaves, and how long each may be. What only grows with the trace may fill all the memory.
const FILES: [(&str, usize); 27] = [
    ("sched_debug-start.txt", TEXT_BYTES),
    ("tasks-start.txt", TEXT_BYTES),
    ("tasks-sched-start.txt", TEXT_BYTES),
    ("cgroups-start.txt", TEXT_BYTES),
    ("autogroups-start.txt", TEXT_BYTES),
    ("clocks-start.txt", TEXT_BYTES),
    ("frequencies-start.txt", TEXT_BYTES),
    ("schedstat-before", TEXT_BYTES),
    ("sched_debug-end.txt", TEXT_BYTES),
    ("tasks-end.txt", TEXT_BYTES),
    ("tasks-sched-end.txt", TEXT_BYTES),
    ("cgroups-end.txt", TEXT_BYTES),
    ("autogroups-end.txt", TEXT_BYTES),
    ("clocks-end.txt", TEXT_BYTES),
    ("frequencies-end.txt", TEXT_BYTES),
    ("schedstat-after", TEXT_BYTES),
    ("pid", NUMBER_BYTES),
    ("status", NUMBER_BYTES),
    ("hz", NUMBER_BYTES),
    ("sched_info.txt", TEXT_BYTES),
    ("events.txt", TEXT_BYTES),
    ("probes.txt", TEXT_BYTES),
    ("kprobe_profile.txt", TEXT_BYTES),
    ("trace-stats.txt", TEXT_BYTES),
    ("workload.txt", usize::MAX),
    ("workload-errors.txt", usize::MAX),
    // The report repeats what the workload printed.
    ("report.json", usize::MAX),
];

/// The trace's name.
pub const TRACE: &str = "trace.txt";

/// The longest text: that of ten thousands of tasks.
const TEXT_BYTES: usize = 64 << 20;

/// A number in decimal digits.
const NUMBER_BYTES: usize = 24;

/// How long a file of this name may be, and the name as it is known here; `None` if a guest leaves no such file.
fn known(name: &[u8]) -> Option<(&'static str, usize)> {
    let files = FILES.into_iter().chain([(TRACE, usize::MAX)]);
    files.into_iter().find(|(known, _)| known.as_bytes() == name)
}

/// The results under construction.
#[derive(Debug, Default)]
pub struct Results(Archive);

impl Results {
    /// Adds a file.
    ///
    /// # Errors
    /// The host would not take it: it has no such name, or is too long.
    pub fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        check(name.as_bytes(), content).map_err(io::Error::other)?;
        self.0.add(name, ArchiveEntryKind::File, content);
        Ok(())
    }

    /// Ends them.
    pub fn finish(self) -> Vec<u8> {
        self.0.finish()
    }
}

fn check(name: &[u8], content: &[u8]) -> Result<&'static str, String> {
    let shown = || escaped::bytes(&name[..name.len().min(NAME_SHOWN_BYTES)]);
    match known(name) {
        None => Err(format!("there is a file '{}', which no guest leaves", shown())),
        Some((_, limit)) if content.len() > limit => {
            Err(format!("'{}' is {} bytes long, and {limit} are the most", shown(), content.len()))
        }
        Some((name, _)) => Ok(name),
    }
}

/// How much of a name is shown.
const NAME_SHOWN_BYTES: usize = 80;

/// The files that a guest left, all of them, by their known names.
///
/// # Errors
/// What is wrong: these bytes are no archive; a name is not of the list, or stands there twice; something is no plain file or too
/// long; a file is missing.
pub fn unpack(bytes: &[u8]) -> Result<Vec<(&'static str, &[u8])>, String> {
    let members = archive::members(bytes).ok_or("they are no archive")?;
    let mut files = Vec::<(&'static str, &[u8])>::new();
    for member in members {
        let name = check(member.name, member.content)?;
        if !member.is_file() {
            return Err(format!("'{name}' is no plain file"));
        }
        if files.iter().any(|(known, _)| *known == name) {
            return Err(format!("'{name}' is there twice"));
        }
        files.push((name, member.content));
    }
    let mut wanted = FILES.iter().map(|(name, _)| *name).chain([TRACE]);
    match wanted.find(|wanted| files.iter().all(|(name, _)| name != wanted)) {
        Some(missing) => Err(format!("there is no '{missing}'")),
        None => Ok(files),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: u32 = 0o100_644;

    /// An archive of any members, made as a program in the guest would make it.
    fn archive(members: &[(&[u8], u32, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let last: (&[u8], u32, &[u8]) = (b"TRAILER!!!", 0, b"");
        for &(name, mode, content) in members.iter().chain([&last]) {
            bytes.extend_from_slice(b"070701");
            let (length, name_length) = (content.len() as u32, name.len() as u32 + 1);
            for number in [1, mode, 0, 0, 1, 0, length, 0, 0, 0, 0, name_length, 0] {
                bytes.extend_from_slice(format!("{number:08x}").as_bytes());
            }
            for part in [&[name, &[0]].concat(), content] {
                bytes.extend_from_slice(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
        }
        bytes
    }

    /// All files that a guest leaves.
    fn whole() -> Vec<(&'static [u8], u32, &'static [u8])> {
        let names = FILES.iter().map(|(name, _)| *name).chain([TRACE]);
        names.map(|name| (name.as_bytes(), PLAIN, &b"0"[..])).collect()
    }

    #[test]
    fn what_a_guest_leaves_is_taken() {
        let mut results = Results::default();
        for (name, _) in FILES.into_iter().chain([(TRACE, 0)]) {
            results.add(name, b"0").expect("of the list");
        }
        let (made, by_hand) = (results.finish(), archive(&whole()));
        assert_eq!(unpack(&made).expect("files"), unpack(&by_hand).expect("files"));
        assert_eq!(unpack(&made).expect("files").len(), FILES.len() + 1);
    }

    #[test]
    fn names_of_its_own_choice_are_refused_by_their_name() {
        let names: [(&[u8], &str); 14] = [
            (b"../../escaped-relative.txt", "'../../escaped-relative.txt'"),
            (b"/var/tmp/escaped-absolute.txt", "'/var/tmp/escaped-absolute.txt'"),
            (b"./pid", "'./pid'"),
            (b"pid/", "'pid/'"),
            (b"a/b", "'a/b'"),
            (b"..", "'..'"),
            (b".", "'.'"),
            (b"", "''"),
            (b"pid\0", "'pid\\x00'"),
            (b"pid\0/../../x", "'pid\\x00/../../x'"),
            (b"\x1b]0;owned\x07", "'\\x1b]0;owned\\x07'"),
            (b"\xff\xfe", "'\\xff\\xfe'"),
            (b"meta.json", "'meta.json'"),
            (b"console.txt", "'console.txt'"),
        ];
        for (name, shown) in names {
            let mut members = whole();
            members.push((name, PLAIN, b"written by the guest\n"));
            let error = unpack(&archive(&members)).expect_err("refused");
            assert_eq!(error, format!("there is a file {shown}, which no guest leaves"));
            assert!(Results::default().add(&String::from_utf8_lossy(name), b"").is_err(), "{shown}");
        }
    }

    #[test]
    fn only_plain_files_are_taken_each_once_and_in_bounds() {
        for mode in [0o120_777, 0o040_755, 0o020_666, 0o060_666, 0o010_644, 0o140_755, 0] {
            let mut members = whole();
            members[3].1 = mode;
            let error = unpack(&archive(&members)).expect_err("refused");
            assert_eq!(error, "'cgroups-start.txt' is no plain file", "{mode:o}");
        }
        let mut members = whole();
        members.push((b"pid", PLAIN, b"1"));
        assert_eq!(unpack(&archive(&members)).expect_err("refused"), "'pid' is there twice");
        let mut members = whole();
        let long = vec![b'0'; NUMBER_BYTES + 1];
        members.iter_mut().filter(|member| member.0 == b"status").for_each(|member| member.2 = &long);
        let error = unpack(&archive(&members)).expect_err("refused");
        assert_eq!(error, "'status' is 25 bytes long, and 24 are the most");
        for missing in 0..whole().len() {
            let mut members = whole();
            let (name, ..) = members.remove(missing);
            let error = unpack(&archive(&members)).expect_err("refused");
            assert_eq!(error, format!("there is no '{}'", String::from_utf8_lossy(name)));
        }
    }
}
