//! All streams of a trace, merged by time.
//!
//! Must not know: how packets are taken apart.

use std::fs;
use std::path::Path;

use fairlab_event::{Comm, Context, Cpu, Event, EventKind, Flags, Ns, Pid, Sink, System};

use super::decode::CtfFields;
use super::events::{self, CtfRecorder};
use super::stream::CtfStream;
use super::types::CtfDescription;
use super::{METADATA, fragments, metadata, parser};
use crate::tracepoint::flags;
use crate::tracepoint::state_table::StateTable;
use crate::{ImportError, ImportStats, ReadOptions, Trouble};

/// Reads the trace in `folder`, which has its description.
pub(crate) fn read_folder(
    folder: &Path,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    let path = folder.join(METADATA);
    let text = metadata::read(&path)?;
    let is_json = text.starts_with(fragments::RECORD_SEPARATOR);
    let parse = if is_json { fragments::parse } else { parser::parse };
    let description = parse(&text).map_err(|fact| {
        ImportError::NotATrace(format!("{}: the description cannot be read: {fact}", path.display()))
    })?;
    check(&description)?;
    let mut stats = ImportStats::default();
    let mut streams = Vec::new();
    for path in files_of(folder)? {
        let mut stream = CtfStream::open(&description, &path, &options.read)?;
        if stream.advance(&mut stats)? {
            streams.push(stream);
        } else if stats.count(Trouble::CorruptRecord) > 0 && streams.is_empty() {
            return Err(ImportError::NotATrace(format!(
                "{}: no packet that the description fits stands at byte 0",
                stream.path().display()
            )));
        }
    }
    let system = system(&description);
    if !system.is_unknown() {
        sink.system(&system);
    }
    let recorder = recorder(&description, &system);
    let reader = CtfReader { sink, stats, running: Vec::new() };
    reader.merge(streams, &recorder)
}

fn check(description: &CtfDescription) -> Result<(), ImportError> {
    let names = description.streams.values().flat_map(|stream| stream.events.values());
    if names.into_iter().any(|event| event.name.starts_with("sched_")) {
        return match description.clocks.is_empty() {
            false => Ok(()),
            true => Err(ImportError::UntoldClock(
                "this trace in the Common Trace Format describes no clock: nothing tells what its times count".to_string(),
            )),
        };
    }
    Err(ImportError::Unsupported(
        "this trace in the Common Trace Format describes no events of the scheduler; record a kernel: lttng enable-event -k \
         sched_switch,sched_waking,sched_wakeup,sched_wakeup_new"
            .to_string(),
    ))
}

/// The files of streams: all but the description, indexes and what is hidden.
fn files_of(folder: &Path) -> Result<Vec<std::path::PathBuf>, ImportError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_file() && name != METADATA && !name.starts_with('.') {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn system(description: &CtfDescription) -> System {
    let of = |names: &[&str]| {
        let found = names.iter().find_map(|name| description.env.get(*name));
        found.cloned().unwrap_or_default()
    };
    System {
        release: of(&["kernel_release", "release"]),
        node: of(&["hostname", "host"]),
        architecture: of(&["architecture_uname", "machine"]),
        ..System::default()
    }
}

fn recorder(description: &CtfDescription, system: &System) -> CtfRecorder {
    // `MAX_RT_PRIO`.
    const FIRST_FAIR: i32 = 100;
    let of_lttng = description.env.get("tracer_name").is_some_and(|name| name == "lttng-modules");
    CtfRecorder {
        prio: if of_lttng { FIRST_FAIR } else { 0 },
        states: StateTable::of_release(&system.release).unwrap_or_else(StateTable::untold),
    }
}

struct CtfReader<'s> {
    sink: &'s mut dyn Sink,
    stats: ImportStats,
    /// Who runs on each CPU, as far as switches tell.
    running: Vec<Option<(Pid, Comm)>>,
}

/// `NR_CPUS` of no kernel is larger.
const CPUS_MAX: usize = 8192;

impl CtfReader<'_> {
    fn merge(
        mut self,
        mut streams: Vec<CtfStream<'_>>,
        recorder: &CtfRecorder,
    ) -> Result<ImportStats, ImportError> {
        let mut scratch = String::new();
        // Latest first.
        let mut waiting: Vec<(u64, usize)> = Vec::with_capacity(streams.len());
        let wait = |waiting: &mut Vec<(u64, usize)>, next| {
            let place = waiting.partition_point(|&other| other > next);
            waiting.insert(place, next);
        };
        for (index, stream) in streams.iter().enumerate() {
            wait(&mut waiting, (stream.time(), index));
        }
        while let Some((_, index)) = waiting.pop() {
            let rival = waiting.last().copied();
            let Some(stream) = streams.get_mut(index) else { continue };
            loop {
                self.take(stream, recorder, &mut scratch);
                if !stream.advance(&mut self.stats)? {
                    break;
                }
                let next = (stream.time(), index);
                if rival.is_some_and(|rival| rival < next) {
                    wait(&mut waiting, next);
                    break;
                }
            }
        }
        Ok(self.stats)
    }

    fn take(&mut self, stream: &mut CtfStream<'_>, recorder: &CtfRecorder, scratch: &mut String) {
        let (time, cpu) = (Ns(stream.time()), Cpu(stream.cpu));
        if let Some(count) = stream.lost.take() {
            if let Some(running) = self.running.get_mut(cpu.index()) {
                *running = None;
            }
            self.stats.events += 1;
            self.sink.event(&Event::new(time, cpu, EventKind::Lost { count }));
        }
        let position = stream.position();
        let taken = stream.event(|name, fields| {
            let (context, is_told) = self.context(cpu, fields);
            let read = events::event(name, fields, recorder, scratch, |kind| {
                let context = self.at_switch(cpu, context, is_told, &kind);
                if let EventKind::SchedSwitch(switch) = &kind
                    && recorder.states.is_doubtful(switch.prev_state)
                {
                    self.stats.add(Trouble::NumberedState, 1, position);
                }
                self.stats.events += 1;
                self.sink.event(&Event { time, cpu, context, kind });
            });
            if read.is_none() {
                self.stats.add(Trouble::MalformedEvent, 1, position);
                self.stats.cannot_read(name, position, b"");
            }
        });
        if taken.is_none() {
            self.stats.add(Trouble::CorruptRecord, 1, position);
        }
    }

    /// Who reported an event, and whether that stands beside its fields, as perf writes it; else it is who runs.
    fn context(&self, cpu: Cpu, fields: &CtfFields<'_>) -> (Context, bool) {
        let thread = |names: [&str; 2]| {
            let found = names.iter().find_map(|name| fields.number(name));
            found.and_then(|id| i32::try_from(id.cast_signed()).ok()).map(Pid)
        };
        let running = self.running.get(cpu.index()).copied().flatten();
        let told = thread(["perf_tid", "common_pid"]);
        let pid = told.or(running.map(|(pid, _)| pid)).unwrap_or(Pid::UNKNOWN);
        let comm = running.filter(|&(known, _)| known == pid).map(|(_, comm)| comm).unwrap_or_default();
        let flags = match (fields.number("common_flags"), fields.number("common_preempt_count")) {
            (Some(bits), Some(count)) => flags::columns(bits as u8, count as u8),
            _ => Flags::NONE,
        };
        let tgid = fields.number("perf_pid").and_then(|id| i32::try_from(id.cast_signed()).ok());
        (Context { comm, pid, tgid: tgid.map_or(Pid::UNKNOWN, Pid), flags }, told.is_some())
    }

    /// A switch is reported by who leaves, and tells who runs from then on.
    fn at_switch(&mut self, cpu: Cpu, context: Context, is_told: bool, kind: &EventKind<'_>) -> Context {
        let EventKind::SchedSwitch(switch) = kind else { return context };
        if cpu.index() < CPUS_MAX {
            if self.running.len() <= cpu.index() {
                self.running.resize(cpu.index() + 1, None);
            }
            self.running[cpu.index()] = Some((switch.next_pid, switch.next_comm));
        }
        if context.pid == switch.prev_pid || !is_told {
            Context { comm: switch.prev_comm, pid: switch.prev_pid, ..context }
        } else {
            context
        }
    }
}
