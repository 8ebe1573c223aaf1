//! A trace together with what lies beside it: whoever reads the trace is told kernel, machine and clock from there, too.
//!
//! Must not know: what is computed from the events.

use std::path::Path;

use fairlab_event::{Event, Sink, System};
use fairlab_kernel::Topology;
use fairlab_trace::{ImportError, ImportStats, ReadOptions, read_path};

use crate::verify::{Told, told_beside, trace_of};

/// Feeds the trace at `path`, a file or a recording's folder, to `sink`. What the trace does not tell of its kernel, machine and
/// clock, and meta.json and sched_info.txt beside it do, is taken from there.
///
/// # Errors
/// The trace cannot be read.
pub fn read_recorded(
    path: &Path,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    let Told { system, clock_hz, .. } = told_beside(path).unwrap_or_default();
    let options = ReadOptions { clock_hz: options.clock_hz.or(clock_hz), ..options.clone() };
    read_path(&trace_of(path), &options, &mut Completed { sink, beside: system, is_told: false })
}

/// The machine that is described beside a trace.
pub fn topology_beside(path: &Path) -> Option<Topology> {
    told_beside(path)?.topology
}

/// Hands events on, and before them what is known of kernel and machine from either place.
struct Completed<'s> {
    sink: &'s mut dyn Sink,
    beside: System,
    is_told: bool,
}

impl Sink for Completed<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if !self.is_told {
            self.system(&System::default());
        }
        self.sink.event(event);
    }

    fn system(&mut self, system: &System) {
        self.is_told = true;
        let of = |own: &String, other: &String| if own.is_empty() { other.clone() } else { own.clone() };
        let all = System {
            release: of(&system.release, &self.beside.release),
            node: of(&system.node, &self.beside.node),
            architecture: of(&system.architecture, &self.beside.architecture),
            cpus: system.cpus.or(self.beside.cpus),
        };
        if !all.is_unknown() {
            self.sink.system(&all);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LINES: &str = "# tracer: nop\n task-7 [001] d..2. 12000: sched_switch: prev_comm=task prev_pid=7 prev_prio=120 \
         prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n";

    #[derive(Default)]
    struct Seen {
        system: System,
        time: Option<u64>,
    }

    impl Sink for Seen {
        fn event(&mut self, event: &Event<'_>) {
            self.time.get_or_insert(event.time.0);
        }

        fn system(&mut self, system: &System) {
            self.system = system.clone();
        }
    }

    #[test]
    fn kernel_machine_and_clock_are_those_beside_the_trace() {
        let folder = std::env::temp_dir().join(format!("fairlab-beside-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("trace.txt"), LINES).expect("written");
        fs::write(folder.join("other.txt"), LINES).expect("written");
        let meta = r#"{"release": "6.1.9-test", "vcpus": 2, "clock_hz": 2000000000, "machine": "box"}"#;
        fs::write(folder.join("meta.json"), meta).expect("written");
        let info = "uname: Linux (none) 6.1.9-test #1 SMP x86_64 GNU/Linux\n\
            cpu0: threads 0 core 0-1 package 0 node 0\ncpu1: threads 1 core 0-1 package 0 node 0\n";
        fs::write(folder.join("sched_info.txt"), info).expect("written");
        let read = |path: &Path| {
            let mut seen = Seen::default();
            let stats = read_recorded(path, &ReadOptions::default(), &mut seen).expect("a trace");
            (seen, stats.troubles().len())
        };
        for path in [folder.clone(), folder.join("trace.txt")] {
            let (seen, troubles) = read(&path);
            let System { release, node, architecture, cpus } = seen.system;
            assert_eq!(
                (release.as_str(), node.as_str(), architecture.as_str()),
                ("6.1.9-test", "box", "x86_64")
            );
            assert_eq!((cpus, seen.time, troubles), (Some(2), Some(6_000), 0));
            assert_eq!(topology_beside(&path).map(|topology| topology.nr_cpus()), Some(2));
        }
        // Another file there is another recording's.
        let (seen, troubles) = read(&folder.join("other.txt"));
        assert_eq!((seen.system, troubles), (System::default(), 1));
        fs::remove_dir_all(&folder).expect("removed");
    }
}
