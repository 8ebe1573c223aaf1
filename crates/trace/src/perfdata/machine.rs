//! What the feature sections of a `perf.data` say of the kernel and the machine.
//!
//! Layout facts: tools/perf/Documentation/perf.data-file-format.txt. Must not know: where in the file they stand.

use fairlab_event::System;

use crate::endian::Endian;

/// The features, by bit.
const HOSTNAME: u32 = 3;
const OSRELEASE: u32 = 4;
const ARCH: u32 = 6;
const NRCPUS: u32 = 7;

/// All of them, as they stand in a file.
pub(super) const FEATURES: [u32; 4] = [HOSTNAME, OSRELEASE, ARCH, NRCPUS];

/// Longer sections of these features are garbage.
pub(super) const SECTION_BYTES_MAX: u64 = 1 << 12;

/// Takes the content of a feature's section into account.
pub(super) fn take(system: &mut System, feature: u32, bytes: &[u8], endian: Endian) {
    let text = || parse_text(bytes, endian).unwrap_or_default();
    match feature {
        HOSTNAME => system.node = text(),
        OSRELEASE => system.release = text(),
        ARCH => system.architecture = text(),
        // Available, then online.
        NRCPUS => system.cpus = endian.u32(bytes, 0).filter(|&cpus| cpus > 0),
        _ => {}
    }
}

/// The sections of what is known of `system`, which has at least `cpus`.
pub(super) fn sections(system: &System, cpus: u32) -> Vec<(u32, Vec<u8>)> {
    let texts = [(HOSTNAME, &system.node), (OSRELEASE, &system.release), (ARCH, &system.architecture)];
    let known = texts.into_iter().filter(|(_, words)| !words.is_empty());
    let mut sections: Vec<_> = known.map(|(feature, words)| (feature, text(words))).collect();
    let cpus = system.cpus.unwrap_or(1).max(cpus).to_le_bytes();
    sections.push((NRCPUS, [cpus, cpus].concat()));
    sections
}

/// `perf_header_string`: its length, then itself, with NULs to a multiple of 64.
pub(super) fn text(text: &str) -> Vec<u8> {
    const ALIGN: usize = 64;
    let length = (text.len() + 1).next_multiple_of(ALIGN);
    let mut bytes = (length as u32).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes.resize(size_of::<u32>() + length, 0);
    bytes
}

fn parse_text(bytes: &[u8], endian: Endian) -> Option<String> {
    let length = endian.u32(bytes, 0)? as usize;
    let text = bytes.get(size_of::<u32>()..)?;
    let text = text.get(..length.min(text.len()))?;
    let end = memchr::memchr(0, text).unwrap_or(text.len());
    Some(String::from_utf8_lossy(&text[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sections: &[(u32, Vec<u8>)]) -> System {
        let mut system = System::default();
        for (feature, bytes) in sections {
            take(&mut system, *feature, bytes, Endian::Little);
        }
        system
    }

    #[test]
    fn what_is_known_comes_back_and_the_rest_stays_unknown() {
        let release =
            "6.6.9+NO_RUN_TO_PARITY,base_slice_ns=1500000,and=more,than=sixty-four,bytes".to_string();
        let all = System {
            release,
            node: "lab".to_string(),
            architecture: "riscv64".to_string(),
            cpus: Some(40),
            ..System::default()
        };
        assert_eq!(read(&sections(&all, 3)), all);
        assert_eq!(read(&sections(&all, 48)).cpus, Some(48));
        assert_eq!(read(&sections(&System::default(), 2)), System { cpus: Some(2), ..System::default() });
    }

    #[test]
    fn cut_and_absurd_sections_say_nothing() {
        let said = |feature, bytes: &[u8]| read(&[(feature, bytes.to_vec())]);
        assert_eq!(said(OSRELEASE, b"\x40\0\0"), System::default());
        assert_eq!(said(OSRELEASE, b"\xff\xff\xff\xff6.1").release, "6.1");
        assert_eq!(said(NRCPUS, &[0; 8]), System::default());
        assert_eq!(said(NRCPUS, &[4]), System::default());
    }
}
