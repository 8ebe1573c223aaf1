//! The line in which a trace.dat says which kernel and machine it comes from: `uname`'s words, four of them.
//!
//! Must not know: where in the file it stands.

use fairlab_event::System;

const SYSTEM: &str = "Linux";
/// What stands for what is not known; Linux itself is called so until somebody gives it a name.
const NO_NODE: &str = "(none)";
const UNKNOWN: &str = "unknown";

/// What `line` says: system, node, release, architecture.
pub(super) fn take(system: &mut System, line: &str) {
    let mut words = line.trim_end_matches('\0').split_whitespace().skip(1);
    let mut word = |unknown: &str| {
        let word = words.next().filter(|&word| word != unknown);
        word.unwrap_or_default().to_string()
    };
    system.node = word(NO_NODE);
    system.release = word(UNKNOWN);
    system.architecture = word(UNKNOWN);
}

/// The line for `system`; `None` when nothing is known of it. Blanks within words become `_`.
pub(super) fn line(system: &System) -> Option<String> {
    let System { release, node, architecture, .. } = system;
    if [release, node, architecture].iter().all(|word| word.is_empty()) {
        return None;
    }
    let word = |word: &str, unknown: &str| match word {
        "" => unknown.to_string(),
        word => word.replace(|char: char| char.is_whitespace() || char == '\0', "_"),
    };
    let (node, release) = (word(node, NO_NODE), word(release, UNKNOWN));
    Some(format!("{SYSTEM} {node} {release} {}", word(architecture, UNKNOWN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> System {
        let mut system = System::default();
        take(&mut system, line);
        system
    }

    #[test]
    fn what_trace_cmd_writes_is_read() {
        let system = read("Linux vm 6.18.44 x86_64\0");
        assert_eq!((system.node.as_str(), system.release.as_str()), ("vm", "6.18.44"));
        assert_eq!((system.architecture.as_str(), system.cpus), ("x86_64", None));
        assert_eq!(read(""), System::default());
        assert_eq!(read("Linux\0\0"), System::default());
    }

    #[test]
    fn what_is_known_comes_back() {
        let words = |node: &str, release: &str, architecture: &str| System {
            node: node.to_string(),
            release: release.to_string(),
            architecture: architecture.to_string(),
            ..System::default()
        };
        for system in [words("lab", "6.6", "x86_64"), words("", "6.6+NO_X", ""), words("lab", "", "")] {
            assert_eq!(read(&line(&system).expect("something is known")), system);
        }
        assert_eq!(line(&System { cpus: Some(3), ..System::default() }), None);
        assert_eq!(line(&words("my lab", "6.6", "")).expect("a line"), "Linux my_lab 6.6 unknown");
    }
}
