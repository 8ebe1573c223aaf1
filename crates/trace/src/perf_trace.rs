//! What `perf trace -e 'sched:*'` prints.
//!
//! ```text
//!      3.850 ( 0.017 ms): sleep/953 sched:sched_switch(prev_comm: "sleep", prev_pid: 953 (sleep), prev_state: 1, next_comm: "rustc", …)
//! ```
//!
//! Times are in µs, fields that are 0 are left out, and no line tells its CPU. Switches chain: who comes with one leaves with another, and
//! all of a chain is one CPU's. Its number the idle task's name tells (`swapper/3`), or that of a kernel thread that is bound to a CPU
//! (`ksoftirqd/3`). Events of a chain before that are left out and counted, and so are system calls.
//!
//! perf 7.3.4 prints some names of tasks as numbers.
//!
//! Must not know: other texts.

use std::collections::HashMap;
use std::io::BufRead;

use fairlab_event::{
    Comm, Context, Cpu, Event, EventKind, FieldSource, Flags, Ns, Pid, Prio, Sink, TaskState, Tracepoint,
    TracepointField,
};

use crate::tracepoint::state_table::StateTable;
use crate::{ImportError, ImportStats, Trouble};

/// What stands before the name of an event of the scheduler.
const EVENT: &str = " sched:";

/// Whether a text begins as such output does; `start` are its first lines, the last perhaps in part.
pub(crate) fn is_it(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    text.lines().any(|line| PerfTraceLine::parse(line).is_some() || is_system_call(line))
}

/// `     5.307 ( 0.017 ms): NAME/TID call(…) = 0`, or one that goes on.
fn is_system_call(line: &str) -> bool {
    let Some((before, rest)) = line.split_once("): ") else { return false };
    let Some((time, duration)) = before.split_once('(') else { return false };
    let is_time = |text: &str| text == "?" || text.parse::<f64>().is_ok();
    let duration = duration.trim().trim_end_matches("ms").trim();
    let is_duration = duration.is_empty() || duration.parse::<f64>().is_ok();
    is_time(time.trim()) && is_duration && rest.contains('/') && rest.contains('(')
}

/// A line of an event.
struct PerfTraceLine<'t> {
    time: u64,
    comm: &'t str,
    tid: i32,
    name: &'t str,
    fields: &'t str,
}

impl<'t> PerfTraceLine<'t> {
    fn parse(line: &'t str) -> Option<PerfTraceLine<'t>> {
        let at = line.find(EVENT)?;
        let (before, event) = (line[..at].trim_start(), &line[at + EVENT.len()..]);
        let (time, rest) = before.split_once(' ')?;
        let rest = rest.trim_start();
        let task = match rest.strip_prefix('(') {
            Some(duration) => duration.split_once("): ")?.1,
            None => rest,
        };
        let (comm, tid) = task.rsplit_once('/')?;
        let (name, fields) = event.split_once('(')?;
        Some(PerfTraceLine {
            time: ns_of(time)?,
            comm,
            tid: tid.parse().ok()?,
            name,
            fields: fields.trim_end().strip_suffix(')')?,
        })
    }
}

/// Milliseconds with three digits behind the point.
fn ns_of(time: &str) -> Option<u64> {
    let (ms, us) = time.split_once('.')?;
    let us: u64 = us.parse().ok().filter(|_| us.len() == 3)?;
    ms.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(us * 1000)
}

/// Reads what `perf trace` printed.
pub(crate) fn read(mut source: impl BufRead, sink: &mut dyn Sink) -> Result<ImportStats, ImportError> {
    let mut reader = PerfTraceReader {
        sink,
        stats: ImportStats::default(),
        states: StateTable::in_use(),
        chains: HashMap::new(),
        on_cpu: HashMap::new(),
        last: 0,
    };
    let (mut bytes, mut number, mut of_scheduler) = (Vec::new(), 0, 0_u64);
    loop {
        bytes.clear();
        if source.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        number += 1;
        let text = String::from_utf8_lossy(&bytes);
        match PerfTraceLine::parse(&text) {
            Some(line) => {
                of_scheduler += 1;
                reader.line(&line, number, &bytes);
            }
            None => reader.stats.add(Trouble::ForeignLine, 1, number),
        }
    }
    if of_scheduler == 0 {
        return Err(ImportError::Unsupported(
            "this is output of perf trace with system calls alone; record the scheduler's events: perf sched record, or perf trace -e 'sched:*'"
                .to_string(),
        ));
    }
    Ok(reader.stats)
}

/// Tasks that follow each other on a CPU, by who runs there now.
#[derive(Clone, Copy, Debug, Default)]
struct CpuChain {
    cpu: Option<u32>,
}

struct PerfTraceReader<'s> {
    sink: &'s mut dyn Sink,
    stats: ImportStats,
    states: StateTable,
    /// Chains of CPUs by who runs; idle tasks are distinguished by their CPU.
    chains: HashMap<RunningTid, CpuChain>,
    /// Who runs on each CPU that is known.
    on_cpu: HashMap<u32, RunningTid>,
    last: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RunningTid {
    Task(i32),
    Idle(u32),
}

/// The CPU that a name tells: of the idle task, and of kernel threads that never leave theirs.
fn cpu_of(comm: &str) -> Option<u32> {
    const BOUND: [&str; 6] = ["swapper/", "migration/", "ksoftirqd/", "cpuhp/", "idle_inject/", "kworker/"];
    let rest = BOUND.iter().find_map(|start| comm.strip_prefix(start))?;
    rest.split([':', '-', 'H']).next()?.parse().ok()
}

fn runner(pid: i32, comm: &str) -> Option<RunningTid> {
    if pid != 0 {
        return Some(RunningTid::Task(pid));
    }
    comm.strip_prefix("swapper/")?.parse().ok().map(RunningTid::Idle)
}

/// More tasks at a time are garbage.
const CHAINS_MAX: usize = 1 << 14;

impl PerfTraceReader<'_> {
    fn line(&mut self, line: &PerfTraceLine<'_>, number: u64, bytes: &[u8]) {
        let Some(tracepoint) = Tracepoint::by_name(line.name.as_bytes()) else {
            return self.stats.add(Trouble::SkippedRecord, 1, number);
        };
        let source = PerfTraceFields { fields: line.fields, states: &self.states };
        let Some(kind) = tracepoint.read(source, |kind| kind) else {
            self.stats.add(Trouble::MalformedEvent, 1, number);
            return self.stats.cannot_read(line.name, number, bytes);
        };
        let cpu = match kind {
            EventKind::SchedSwitch(switch) => {
                let named = |pid: Pid, comm: &Comm| runner(pid.0, &comm.to_str());
                self.switch(
                    named(switch.prev_pid, &switch.prev_comm),
                    named(switch.next_pid, &switch.next_comm),
                    [cpu_of(&switch.prev_comm.to_str()), cpu_of(&switch.next_comm.to_str())],
                )
            }
            _ => {
                let known = runner(line.tid, line.comm).and_then(|runner| self.chains.get(&runner));
                known.and_then(|chain| chain.cpu).or_else(|| cpu_of(line.comm))
            }
        };
        let Some(cpu) = cpu else { return self.stats.add(Trouble::CpuUnknown, 1, number) };
        if line.time < self.last {
            self.stats.add(Trouble::TimeWentBack, 1, number);
        }
        self.last = line.time;
        let context = Context {
            comm: Comm::from(line.comm),
            pid: Pid(line.tid),
            tgid: Pid::UNKNOWN,
            flags: Flags::NONE,
        };
        self.sink.event(&Event { time: Ns(line.time), cpu: Cpu(cpu), context, kind });
        self.stats.events += 1;
    }

    /// The CPU of a switch, if its chain tells it.
    fn switch(
        &mut self,
        prev: Option<RunningTid>,
        next: Option<RunningTid>,
        told: [Option<u32>; 2],
    ) -> Option<u32> {
        let mut chain = prev.and_then(|prev| self.chains.remove(&prev)).unwrap_or_default();
        let told = told.into_iter().flatten().next();
        chain.cpu = told.or(chain.cpu).filter(|&cpu| cpu < 8192);
        // An idle task without a name is that of the chain's CPU.
        let next = next.or(chain.cpu.map(RunningTid::Idle))?;
        if self.chains.len() < CHAINS_MAX {
            self.chains.insert(next, chain);
        }
        if let Some(cpu) = chain.cpu {
            // Who was thought to run here has left where no line tells it.
            if let Some(before) = self.on_cpu.insert(cpu, next)
                && before != next
                && Some(before) != prev
            {
                self.chains.remove(&before);
            }
        }
        chain.cpu
    }
}

/// Where a number ends, with the name in brackets that may follow: a name may hold anything.
fn end_of_number(value: &str) -> usize {
    let plain = value.find(", ").unwrap_or(value.len());
    match value.find(" (") {
        Some(name) if name < plain => value.find("), ").map_or(value.len(), |at| at + 1),
        _ => plain,
    }
}

/// `NAME: VALUE, NAME: "TEXT"`, where what is 0 is left out.
#[derive(Clone, Copy)]
struct PerfTraceFields<'t, 's> {
    fields: &'t str,
    states: &'s StateTable,
}

impl<'t> PerfTraceFields<'t, '_> {
    fn get(&self, name: &str) -> Option<&'t str> {
        let mut rest = self.fields;
        loop {
            let (found, value) = rest.split_once(": ")?;
            let end = match value.strip_prefix('"') {
                Some(text) => text.find("\", ").map_or(value.len(), |at| at + 2),
                None => end_of_number(value),
            };
            let (value, behind) = value.split_at(end);
            if found == name {
                return Some(value);
            }
            rest = behind.strip_prefix(", ")?;
        }
    }

    /// A number; names stand behind threads in brackets.
    fn number(&self, field: &TracepointField) -> Option<i64> {
        let Some(value) = self.get(field.name) else { return Some(0) };
        value.split(' ').next()?.parse().ok()
    }

    /// perf 7.3 prints some names as the number of an address; the right one stands in brackets behind the pid. No pid is the idle
    /// task's, whose CPU its name does not tell then.
    fn name_behind(&self, comm: &TracepointField, pid: &TracepointField) -> Option<&'t str> {
        self.get(comm.name)?.parse::<u64>().ok()?;
        let Some(value) = self.get(pid.name) else { return Some("") };
        value.split_once(" (")?.1.strip_suffix(')')
    }

    fn word(&self, field: &TracepointField) -> Option<&'t str> {
        let Some(value) = self.get(field.name) else { return Some("") };
        value.strip_prefix('"')?.strip_suffix('"')
    }
}

impl<'t> FieldSource<'t> for PerfTraceFields<'t, '_> {
    fn comm<T>(
        self,
        field: &'static TracepointField,
        pid: &'static TracepointField,
        rest: impl Fn(Self) -> Option<T>,
    ) -> Option<(Comm, T)> {
        let comm = self.word(field).or_else(|| self.name_behind(field, pid))?;
        Some((Comm::from(comm), rest(self)?))
    }

    fn pid(&mut self, field: &'static TracepointField) -> Option<Pid> {
        i32::try_from(self.number(field)?).ok().map(Pid)
    }

    fn prio(&mut self, field: &'static TracepointField) -> Option<Prio> {
        i32::try_from(self.number(field)?).ok().map(Prio)
    }

    fn cpu(&mut self, field: &'static TracepointField) -> Option<Cpu> {
        u32::try_from(self.number(field)?).ok().map(Cpu)
    }

    fn state(&mut self, field: &'static TracepointField) -> Option<TaskState> {
        self.states.state(u64::try_from(self.number(field)?).ok()?)
    }

    fn nanoseconds(&mut self, field: &'static TracepointField) -> Option<Ns> {
        u64::try_from(self.number(field)?).ok().map(Ns)
    }

    fn unsigned(&mut self, field: &'static TracepointField) -> Option<u64> {
        u64::try_from(self.number(field)?).ok()
    }

    fn signed(&mut self, field: &'static TracepointField) -> Option<i64> {
        self.number(field)
    }

    fn count(&mut self, field: &'static TracepointField) -> Option<u32> {
        u32::try_from(self.number(field)?).ok()
    }

    fn text(&mut self, field: &'static TracepointField) -> Option<&'t str> {
        self.word(field)
    }

    fn flag(&mut self, field: &'static TracepointField) -> Option<Option<bool>> {
        Some(self.get(field.name).map(|flag| flag != "0" && flag != "false"))
    }

    fn nanoseconds_until(&mut self, field: &'static TracepointField) -> Option<Option<u64>> {
        Some(self.get(field.name).and_then(|value| value.parse().ok()))
    }

    fn end(&self, _: Tracepoint) -> Option<()> {
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::sink_fn;

    use super::*;
    use crate::ReadOptions;

    const TEXT: &str = r#"     0.000 migration/1/18 sched:sched_waking(comm: "perf, a", pid: 5674 (perf, a), prio: 120)
     0.012 migration/1/18 sched:sched_migrate_task(comm: "perf", pid: 5674 (perf), prio: 120, orig_cpu: 1)
     0.020 ( 0.001 ms): a/7 sched:sched_switch(prev_comm: "a", prev_pid: 7 (a), prev_prio: 120, next_comm: "b/c", next_pid: 8 (b/c), next_prio: 120)
     0.024 migration/1/18 sched:sched_switch(prev_comm: "migration/1", prev_pid: 18 (migration/1), prev_state: 1, next_comm: "rustc", next_pid: 9 (rustc), next_prio: 120)
     0.030 ( 0.010 ms): rustc/9 futex(uaddr: 0x7f, op: WAKE) = 1
     2.207 rustc/9 sched:sched_switch(prev_comm: "rustc", prev_pid: 9 (rustc), prev_prio: 120, next_comm: "swapper/1", next_prio: 120)
     3.000 b/c/8 sched:sched_switch(prev_comm: "b/c", prev_pid: 8 (b/c), prev_prio: 120, prev_state: 2, next_comm: "swapper/0", next_prio: 120)
  1003.500 swapper/1/0 sched:sched_switch(prev_comm: "swapper/1", prev_prio: 120, next_comm: "rustc", next_pid: 9 (rustc), next_prio: 120)
"#;

    fn read_text(text: &str) -> Result<(Vec<String>, ImportStats), ImportError> {
        let mut lines = Vec::new();
        let mut sink = sink_fn(|event: &Event<'_>| {
            let what = match event.kind {
                EventKind::SchedSwitch(switch) => {
                    format!("{} {} {}", switch.prev_pid, switch.prev_state, switch.next_pid)
                }
                kind => kind.name().to_string(),
            };
            lines.push(format!("{} [{}] {} {what}", event.time.0, event.cpu, event.context.pid));
        });
        let stats = crate::read(Box::new(text.as_bytes()), &ReadOptions::default(), &mut sink)?;
        drop(sink);
        Ok((lines, stats))
    }

    #[test]
    fn chains_tell_cpus() {
        let (lines, stats) = read_text(TEXT).expect("events");
        let expected = [
            "0 [1] 18 sched_waking",
            "12000 [1] 18 sched_migrate_task",
            "24000 [1] 18 18 S 9",
            "2207000 [1] 9 9 R 0",
            "3000000 [0] 8 8 D 0",
            "1003500000 [1] 0 0 R 9",
        ];
        assert_eq!(lines, expected);
        let counts = [Trouble::CpuUnknown, Trouble::ForeignLine].map(|trouble| stats.count(trouble));
        assert_eq!(counts, [1, 1]);
    }

    /// As perf 7.3.4 prints them: names are numbers here and there.
    #[test]
    fn a_name_that_is_a_number_stands_behind_the_pid() {
        let text = r#"     0.000 a (b)/7 sched:sched_waking(comm: 140477109756276, pid: 18 (migration/0), prio: 120)
     0.010 a (b)/7 sched:sched_switch(prev_comm: 140477109756088, prev_pid: 7 (a (b)), prev_state: 1, next_comm: 140477109756276, next_pid: 18 (migration/0))
     0.020 migration/0/18 sched:sched_stat_runtime(comm: 140477109756276, pid: 18 (migration/0), runtime: 59362)
     0.030 migration/0/18 sched:sched_switch(prev_comm: 140477109756276, prev_pid: 18 (migration/0), prev_state: 1, next_comm: 140477109756088, next_prio: 120)
"#;
        let mut names = Vec::new();
        let mut sink = sink_fn(|event: &Event<'_>| match event.kind {
            EventKind::SchedSwitch(switch) => {
                names.push(format!("{} > {}", switch.prev_comm, switch.next_comm));
            }
            EventKind::SchedStatRuntime { comm, runtime, .. } => {
                names.push(format!("{comm} ran {} ns", runtime.0));
            }
            _ => {}
        });
        let stats =
            crate::read(Box::new(text.as_bytes()), &ReadOptions::default(), &mut sink).expect("events");
        drop(sink);
        assert_eq!(names, ["a (b) > migration/0", "migration/0 ran 59362 ns", "migration/0 > "]);
        assert_eq!(stats.count(Trouble::MalformedEvent), 0);
    }

    #[test]
    fn system_calls_alone_are_refused_and_other_texts_are_others() {
        let calls = "         ? (         ): :9/9  ... [continued]: read())     = 1\n     5.307 ( 0.017 ms): a/5 fstat(fd: 5) = 0\n";
        let error = read_text(calls).expect_err("no events").to_string();
        assert!(error.contains("system calls alone"), "{error}");
        assert!(!is_it(b"a-1 [000] d..2. 1.0: sched_waking: comm=a pid=1 prio=120 target_cpu=000\n"));
        assert!(!is_it(
            b"          a  1 [000] 1.0: sched:sched_waking: comm=a (b) pid=1 prio=120 target_cpu=000\n"
        ));
        for cut in 0..TEXT.len() {
            let _ = read_text(&TEXT[..cut]);
        }
    }
}
