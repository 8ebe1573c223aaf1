//! A recording's events in memory, for benchmarks that need many.

use std::path::Path;

use fairlab_event::{Context, Event, EventKind, sink_fn};
use fairlab_trace::{ReadOptions, read_path};

/// The events of `testdata/perf-hackbench.data`; none of them carries text.
pub fn recorded() -> Vec<Event<'static>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/perf-hackbench.data");
    let mut events = Vec::new();
    let mut keep = sink_fn(|event: &Event<'_>| {
        let kind = match event.kind {
            EventKind::SchedSwitch(switch) => EventKind::SchedSwitch(switch),
            EventKind::SchedWaking(wakeup) => EventKind::SchedWaking(wakeup),
            EventKind::SchedWakeup(wakeup) => EventKind::SchedWakeup(wakeup),
            EventKind::SchedWakeupNew(wakeup) => EventKind::SchedWakeupNew(wakeup),
            EventKind::SchedStatRuntime { comm, pid, runtime, vruntime } => {
                EventKind::SchedStatRuntime { comm, pid, runtime, vruntime }
            }
            EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu } => {
                EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu }
            }
            _ => return,
        };
        let Context { comm, pid, tgid, flags } = event.context;
        events.push(Event {
            time: event.time,
            cpu: event.cpu,
            context: Context { comm, pid, tgid, flags },
            kind,
        });
    });
    read_path(&path, &ReadOptions::default(), &mut keep).expect("a recording");
    drop(keep);
    events
}
