//! A trace together with the files beside it, from which its readers also learn kernel, machine and clock.
//!
//! Must not know: what is computed from the events.

use std::collections::BTreeMap;
use std::path::Path;

use fairlab_analysis::clock_skew::ClockSkew;
use fairlab_event::{Event, EventKind, Pid, Sink, System};
use fairlab_kernel::CpuMask;
use fairlab_trace::{BytesRead, ImportError, ImportStats, ReadOptions, read_path};

use crate::{RecordingFacts, told_beside, told_in, trace_of};

/// Feeds the trace at `path`, a file or a recording's folder, to `sink`. The trace may not tell its kernel, machine, groups,
/// clock, or what was recorded. Then meta.json, sched_info.txt, cgroups-start.txt and events.txt beside it do.
///
/// # Errors
/// The trace cannot be read.
pub fn read_recorded(
    path: &Path,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    let RecordingFacts { system, clock_hz, allowed, .. } = told_beside(path).unwrap_or_default();
    let trace = trace_of(path);
    let mut options = ReadOptions { clock_hz: options.clock_hz.or(clock_hz), ..options.clone() };
    if options.align_cpus {
        options.cpu_shifts = cpu_shifts(&trace, &options)?;
    }
    read_path(&trace, &options, &mut SystemCompleter { sink, beside: system, is_told: false, allowed })
}

/// After so many readings nothing gets better.
const READINGS_MAX: usize = 4;

/// What puts the clocks of CPUs that stand apart right. The first reading tells it within a twentieth, each further one what is left.
fn cpu_shifts(trace: &Path, options: &ReadOptions) -> Result<Vec<i64>, ImportError> {
    if !std::fs::metadata(trace).is_ok_and(|found| found.is_file() || found.is_dir()) {
        return Err(ImportError::Unsupported(
            "--align-cpus reads a trace several times, which this one cannot be: copy it into a file first"
                .to_string(),
        ));
    }
    let mut options = ReadOptions { read: BytesRead::default(), ..options.clone() };
    for _ in 0..READINGS_MAX {
        let mut skew = ClockSkew::default();
        read_path(trace, &options, &mut skew)?;
        let more = skew.shifts();
        if more.is_empty() {
            break;
        }
        options.cpu_shifts.resize(options.cpu_shifts.len().max(more.len()), 0);
        options.cpu_shifts.iter_mut().zip(more).for_each(|(shift, more)| *shift += more);
    }
    Ok(options.cpu_shifts)
}

/// What the files beside one, or in a folder, tell of a run: kernel, machine, and how it came about.
pub fn system_beside(path: &Path) -> System {
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    // A name alone lies where the program runs.
    let folder = folder.map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    folder.map(|folder| told_in(folder).system).unwrap_or_default()
}

/// Hands events on, and before them what is known of kernel and machine from either place.
struct SystemCompleter<'s> {
    sink: &'s mut dyn Sink,
    beside: System,
    is_told: bool,
    /// Where tasks may run that may not run everywhere, as far as it is known.
    allowed: BTreeMap<Pid, CpuMask>,
}

impl SystemCompleter<'_> {
    /// Children may run where their parents do. A task that runs where it may not has been given other CPUs meanwhile.
    fn follow(&mut self, event: &Event<'_>) {
        let (pid, cpu) = match &event.kind {
            EventKind::SchedProcessFork { pid, child_pid, .. } => {
                if let Some(&mask) = self.allowed.get(pid) {
                    self.allowed.insert(*child_pid, mask);
                    tell(self.sink, *child_pid, &mask);
                }
                return;
            }
            EventKind::SchedSwitch(switch) => (switch.next_pid, event.cpu),
            EventKind::SchedMigrateTask { pid, dest_cpu, .. } => (*pid, *dest_cpu),
            _ => return,
        };
        if self.allowed.get(&pid).is_some_and(|mask| !mask.contains(cpu)) {
            self.allowed.remove(&pid);
            self.sink.allowed(pid, &[]);
        }
    }
}

fn tell(sink: &mut dyn Sink, pid: Pid, mask: &CpuMask) {
    sink.allowed(pid, &mask.iter().collect::<Vec<_>>());
}

impl Sink for SystemCompleter<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if !self.is_told {
            self.system(&System::default());
        }
        if !self.allowed.is_empty() {
            self.follow(event);
        }
        self.sink.event(event);
    }

    fn system(&mut self, system: &System) {
        self.is_told = true;
        let all = system.or(&self.beside);
        if !all.is_unknown() {
            self.sink.system(&all);
        }
        self.allowed.iter().for_each(|(&pid, mask)| tell(self.sink, pid, mask));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::topology_of;

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
        let meta =
            r#"{"release": "6.1.9-test", "vcpus": 2, "clock_hz": 2000000000, "machine": "box", "HZ": 250}"#;
        fs::write(folder.join("meta.json"), meta).expect("written");
        let info = "uname: Linux (none) 6.1.9-test #1 SMP x86_64 GNU/Linux\n\
            cpu0: threads 0 core 0-1 package 0 node 0\ncpu1: threads 1 core 0-1 package 0 node 0\n";
        fs::write(folder.join("sched_info.txt"), info).expect("written");
        fs::write(folder.join("cgroups-start.txt"), "#path\tinode\n/a\t7\n").expect("written");
        fs::write(folder.join("events.txt"), "event sched/* on\nevent irq/softirq_entry on if vec == 7\n")
            .expect("written");
        let read = |path: &Path| {
            let mut seen = Seen::default();
            let stats = read_recorded(path, &ReadOptions::default(), &mut seen).expect("a trace");
            (seen, stats.troubles().len())
        };
        for path in [folder.clone(), folder.join("trace.txt")] {
            let (seen, troubles) = read(&path);
            let topology = topology_of(&seen.system).map(|topology| topology.nr_cpus());
            let System { release, node, architecture, cpus, hz, groups, recorded, .. } = seen.system;
            assert_eq!(
                (release.as_str(), node.as_str(), architecture.as_str()),
                ("6.1.9-test", "box", "x86_64")
            );
            assert_eq!((cpus, seen.time, troubles), (Some(2), Some(6_000), 0));
            assert_eq!(
                (topology, hz, groups.len(), recorded.as_slice()),
                (Some(2), Some(250), 1, &["sched/*".to_string()][..])
            );
        }
        // Another file there is another recording's, whose clock nothing tells.
        let other = folder.join("other.txt");
        let refused = read_recorded(&other, &ReadOptions::default(), &mut Seen::default());
        assert!(matches!(refused, Err(ImportError::UntoldClock(_))), "{refused:?}");
        let told = ReadOptions { clock_hz: Some(1_000_000_000), ..ReadOptions::default() };
        let mut seen = Seen::default();
        read_recorded(&other, &told, &mut seen).expect("a trace");
        assert_eq!((seen.system, seen.time), (System::default(), Some(12_000)));
        fs::remove_dir_all(&folder).expect("removed");
    }
}
