//! How runs of simulators are timed, for any scheduler.
//!
//! Must not know: who schedules.

use std::{fmt, fs};

use fairlab_event::{Ns, Sink};
use fairlab_sim::workload::Workload;
use fairlab_sim::{Engine, SchedulerCore};

/// How long a run goes on between two looks at whether all threads are there.
const SETTLING: Ns = Ns(20_000_000);

/// What a run did in the CPU time of its one thread.
pub struct Speed {
    switches: u64,
    occurrences: u64,
    /// CPU time, s.
    pub spent: f64,
}

/// Times `simulated` of a run from when all threads are there, and a little more; with a sink it is traced.
pub fn timed<C: SchedulerCore>(
    mut engine: Engine<C>,
    workload: Box<dyn Workload>,
    simulated: Ns,
    sink: Option<&mut dyn Sink>,
) -> Speed {
    engine.set_tracing(sink.is_some());
    let workload = engine.start(workload);
    while engine.workload(workload).progress().is_some() {
        engine.run_until(engine.now() + SETTLING, &mut ());
    }
    let (before, end, start) = (engine.counters(), engine.now() + simulated, time_on_cpu());
    match sink {
        Some(sink) => engine.run_until(end, sink),
        None => engine.run_until(end, &mut ()),
    }
    let (spent, counters) = (Ns(time_on_cpu() - start).as_secs_f64(), engine.counters());
    Speed {
        switches: counters.switches - before.switches,
        occurrences: counters.occurrences - before.occurrences,
        spent,
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Speed { switches, occurrences, spent } = self;
        let [per_s, occurrences] = [*switches, *occurrences].map(|count| count as f64 / spent / 1e6);
        write!(to, "{per_s:>6.2} M switches/s of {switches} {occurrences:>6.2} M occurrences/s")
    }
}

/// How long this thread has run, ns.
pub fn time_on_cpu() -> u64 {
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux host");
    let first = schedstat.split(' ').next().and_then(|field| field.parse().ok());
    first.expect("the first field is run time in ns")
}
