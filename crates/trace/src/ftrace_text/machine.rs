//! Comments in front of the events that say which kernel and machine they come from: those of `perf script --header`,
//! which Fairlab writes too, and the first line of tracefs's latency format.
//!
//! Must not know: events.
//!
//! ```text
//! # hostname : vm                                                      perf script --header
//! # os release : 6.18.44
//! # arch : x86_64
//! # nrcpus avail : 2
//! # trace_clock: local global [x86-tsc]                                a copy of tracefs's file; also "# clock: boot"
//! # entries-in-buffer/entries-written: 205/548666   #P:2               tracefs: of 2 CPUs
//! # nop latency trace v1.1.5 on 6.18.44                                 tracefs, options/latency-format
//! # fairlab : seed 3                                                    Fairlab's own, see `described`
//! ```

use std::fmt::Write;

use fairlab_event::System;

use crate::clock::ClockFacts;
use crate::described;

const NODE: &str = "hostname";
const RELEASE: &str = "os release";
const ARCHITECTURE: &str = "arch";
const CPUS: &str = "nrcpus avail";
const OWN: &str = "fairlab";

/// Takes a comment into account.
pub(super) fn take(system: &mut System, comment: &[u8]) {
    let Some(line) = std::str::from_utf8(comment).ok().and_then(|line| line.strip_prefix("# ")) else {
        return;
    };
    if let Some((tracer, rest)) = line.split_once(" latency trace v")
        && !tracer.contains(' ')
        && let Some((_, release)) = rest.split_once(" on ")
    {
        system.release = release.trim().to_string();
        return;
    }
    if line.starts_with("entries-in-buffer/") {
        let cpus = line.rsplit_once("#P:").and_then(|(_, cpus)| cpus.trim().parse().ok());
        system.cpus = system.cpus.or(cpus.filter(|&cpus| cpus > 0));
        return;
    }
    let Some((key, value)) = line.split_once(" : ") else { return };
    match key {
        NODE => system.node = value.trim().to_string(),
        RELEASE => system.release = value.trim().to_string(),
        ARCHITECTURE => system.architecture = value.trim().to_string(),
        CPUS => system.cpus = value.trim().parse().ok().filter(|&cpus| cpus > 0),
        // What is not understood says nothing.
        OWN => drop(described::take(system, value.trim_end_matches('\r'))),
        _ => {}
    }
}

/// The clock that a comment names.
pub(super) fn clock(comment: &[u8]) -> Option<&str> {
    let (key, value) = std::str::from_utf8(comment).ok()?.strip_prefix("# ")?.split_once(':')?;
    let is_clock = matches!(key.trim(), "clock" | "trace_clock" | "trace clock");
    is_clock.then(|| ClockFacts::selected(value)).filter(|name| !name.is_empty())
}

/// The comments that say what is known of `system`. What would end a line becomes `?`.
pub(super) fn comments(system: &System) -> String {
    let mut comments = String::new();
    let cpus = system.cpus.map(|cpus| cpus.to_string()).unwrap_or_default();
    let all = [
        (NODE, &system.node),
        (RELEASE, &system.release),
        (ARCHITECTURE, &system.architecture),
        (CPUS, &cpus),
    ];
    for (key, value) in all.into_iter().filter(|(_, value)| !value.is_empty()) {
        // Text takes everything.
        let _ = writeln!(comments, "# {key} : {}", value.replace(char::is_control, "?"));
    }
    for line in described::lines(system) {
        let _ = writeln!(comments, "# {OWN} : {line}");
    }
    comments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> System {
        let mut system = System::default();
        for line in text.lines() {
            take(&mut system, line.as_bytes());
        }
        system
    }

    #[test]
    fn what_is_known_comes_back() {
        let words = |release: &str, node: &str, architecture: &str, cpus| System {
            release: release.to_string(),
            node: node.to_string(),
            architecture: architecture.to_string(),
            cpus,
            ..System::default()
        };
        for system in [
            words("6.6.9", "vm", "x86_64", Some(2)),
            words("5.10-16b0a7a1a0af,base_slice_ns=1", "8 cores : 2 nodes", "", None),
            System::default(),
        ] {
            assert_eq!(read(&comments(&system)), system);
        }
        assert_eq!(comments(&words("6\n.6", "", "", None)), "# os release : 6?.6\n");
    }

    #[test]
    fn headers_of_perf_and_tracefs_are_read_and_other_comments_passed_over() {
        let perf = "# ========\n# captured on    : Sat\n# hostname : vm\n# os release : 6.18.44\n# perf version : 6.12\n\
                    # arch : x86_64\n# nrcpus online : 1\n# nrcpus avail : 2\n# cmdline : perf sched record\n#";
        let system = read(perf);
        assert_eq!((system.release.as_str(), system.node.as_str()), ("6.18.44", "vm"));
        assert_eq!((system.architecture.as_str(), system.cpus), ("x86_64", Some(2)));
        assert_eq!(read("# irqsoff latency trace v1.1.5 on 6.1.0-rt\n").release, "6.1.0-rt");
        assert_eq!(
            read("# tracer: nop\n# nrcpus avail : many\n#! os release : 9\n# latency: 5 us"),
            System::default()
        );
    }
}
