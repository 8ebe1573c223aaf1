//! What a viewer shows beside the events of a trace: the depth of each runqueue, every wait on its thread's row with an arrow
//! from the waker, and the longest waits with their causes.
//!
//! Must not know: how tracks are written.

use std::collections::BTreeMap;
use std::io::Write;

use fairlab_analysis::explain::story::WaitCause;
use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_analysis::{WaitFollower, WaitOver};
use fairlab_event::{Comm, Event, Pid, Sink};
use fairlab_trace::perfetto::{PerfettoWriter, ViewerTrack};

/// Computes tracks from the events that go by.
pub(crate) struct TraceTracks {
    /// The rows of the runqueues: all of them, and each CPU's.
    queues: Option<ViewerTrack>,
    cpus: Vec<Option<ViewerTrack>>,
    waits: WaitFollower,
    threads: ThreadTracks,
    explain: Explain,
}

/// How many of the worst waits are shown.
const WORST: usize = 20;

impl Default for TraceTracks {
    fn default() -> TraceTracks {
        TraceTracks {
            queues: None,
            cpus: Vec::new(),
            waits: WaitFollower::default(),
            threads: ThreadTracks::default(),
            explain: Explain::new(ExplainOptions { worst: WORST, ..ExplainOptions::default() }),
        }
    }
}

impl TraceTracks {
    /// Takes the next event.
    pub(crate) fn event<W: Write>(&mut self, event: &Event<'_>, writer: &mut PerfettoWriter<W>) {
        self.explain.event(event);
        self.threads.learn(event);
        if let Some(wait) = self.waits.event(event) {
            self.threads.write(&wait, writer);
        }
        let TraceTracks { waits, queues, cpus, .. } = self;
        for (cpu, depth) in waits.depths() {
            let group = *queues.get_or_insert_with(|| writer.group("Tasks running or waiting"));
            if cpus.len() <= cpu.index() {
                cpus.resize(cpu.index() + 1, None);
            }
            let track = *cpus[cpu.index()].get_or_insert_with(|| {
                writer.counter_track(group, &format!("CPU {cpu} runqueue"), cpu.0.into(), "tasks")
            });
            writer.counter(track, event.time, depth.into());
        }
    }

    /// Writes what is known at the end.
    pub(crate) fn finish<W: Write>(&mut self, writer: &mut PerfettoWriter<W>) {
        let explain = std::mem::take(self).explain;
        // Without switches there are no waits.
        let Ok(explanation) = explain.finish() else { return };
        if explanation.stories.is_empty() {
            return;
        }
        let group = writer.group("Worst waits for a CPU");
        for (rank, story) in (1..).zip(&explanation.stories) {
            let length = story.length().as_ms_f64();
            let track = writer.slice_track(group, &format!("{rank}: {} {length:.3} ms", story.task), rank);
            let notes = [
                ("task", story.task.to_string()),
                ("ran on CPU", story.ran_on.to_string()),
                ("story", story.to_string()),
            ];
            writer.slice(track, story.start, story.end, &format!("{} waits", story.task), &notes);
        }
    }
}

/// The rows of threads.
#[derive(Debug, Default)]
struct ThreadTracks {
    tracks: BTreeMap<Pid, ViewerTrack>,
    processes: BTreeMap<Pid, Pid>,
    names: BTreeMap<Pid, Comm>,
    flows: u64,
    /// The task that reported the latest event of each CPU: mostly it reports the next one, too.
    latest: Vec<(Pid, Pid, Comm)>,
}

/// `NR_CPUS` of no kernel is larger.
const CPUS_MAX: usize = 8192;

/// What a wait is called on its thread's row.
fn name_of(cause: WaitCause) -> &'static str {
    match cause {
        WaitCause::Wakeup => "waits: woken",
        WaitCause::New => "waits: new",
        WaitCause::PreemptedInKernel => "waits: preempted in the kernel",
        WaitCause::Preempted => "waits: preempted",
        WaitCause::Yielded => "waits: yielded",
        WaitCause::LeftRunnable => "waits: left runnable",
    }
}

impl ThreadTracks {
    /// Names and processes of tasks that report events.
    fn learn(&mut self, event: &Event<'_>) {
        let context = &event.context;
        let now = (context.pid, context.tgid, context.comm);
        let cpu = event.cpu.index();
        if self.latest.get(cpu) == Some(&now) {
            return;
        }
        if cpu < CPUS_MAX {
            self.latest.resize(self.latest.len().max(cpu + 1), (Pid::UNKNOWN, Pid::UNKNOWN, Comm::default()));
            self.latest[cpu] = now;
        }
        if context.pid.0 > 0 {
            if context.tgid != Pid::UNKNOWN {
                self.processes.insert(context.pid, context.tgid);
            }
            if !context.comm.is_empty() {
                self.names.insert(context.pid, context.comm);
            }
        }
    }

    fn track<W: Write>(&mut self, pid: Pid, comm: Comm, writer: &mut PerfettoWriter<W>) -> ViewerTrack {
        let tgid = self.processes.get(&pid).copied().unwrap_or(Pid::UNKNOWN);
        *self.tracks.entry(pid).or_insert_with(|| writer.thread_track(pid, tgid, &comm.to_str()))
    }

    fn write<W: Write>(&mut self, wait: &WaitOver, writer: &mut PerfettoWriter<W>) {
        let flow = wait.waker.map(|(waker, time)| {
            self.flows += 1;
            let name = self.names.get(&waker).copied().unwrap_or_default();
            let track = self.track(waker, name, writer);
            writer.wakes(track, time, &format!("wakes {} {}", wait.comm.to_str(), wait.pid), self.flows);
            self.flows
        });
        let track = self.track(wait.pid, wait.comm, writer);
        let notes = [("ran on CPU", wait.cpu.0.into())];
        writer.wait(track, wait.start, wait.end, name_of(wait.cause), flow, &notes);
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::{Context, Cpu, EventKind, Flags, Ns, Prio, Switch, TaskState, Wakeup};

    use super::*;

    #[test]
    fn waits_stand_on_their_threads_rows_and_wakers_point_at_them() {
        let mut tracks = TraceTracks::default();
        let mut writer = PerfettoWriter::new(Vec::new());
        let mut tell = |time, by: i32, kind| {
            let context =
                Context { comm: "by".into(), pid: Pid(by), tgid: Pid(by), flags: Flags::new(b"d..2.") };
            tracks.event(&Event { time: Ns(time), cpu: Cpu(0), context, kind }, &mut writer);
        };
        let switch = |prev: i32, prev_state, next: i32| {
            let (prev_comm, next_comm, prio) = (Comm::from("prev"), Comm::from("next"), Prio(120));
            EventKind::SchedSwitch(Switch {
                prev_comm,
                prev_pid: Pid(prev),
                prev_prio: prio,
                prev_state,
                next_comm,
                next_pid: Pid(next),
                next_prio: prio,
            })
        };
        let wakeup = Wakeup { comm: "wakee".into(), pid: Pid(8), prio: Prio(120), target_cpu: Cpu(0) };
        tell(1, 0, switch(0, TaskState::RUNNABLE, 7));
        tell(2, 7, EventKind::SchedWaking(wakeup));
        tell(3, 7, EventKind::SchedWakeup(wakeup));
        tell(5, 7, switch(7, TaskState::PREEMPTED, 8));
        tell(9, 8, switch(8, TaskState::INTERRUPTIBLE, 7));
        tracks.finish(&mut writer);
        let bytes = writer.finish().expect("memory");
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        for text in [
            "wakes next 8",
            "waits: woken",
            "waits: preempted in the kernel",
            "CPU 0 runqueue",
            "Worst waits",
        ] {
            assert!(has(text), "{text}");
        }
    }
}
