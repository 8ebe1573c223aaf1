//! The decoder of one tracepoint: prepared once from its format, run on every record.

use fairlab_event::{Comm, Cpu, EventKind, Fields, Flags, Ns, Pid, Place, Prio, StatDelay, Switch, Wakeup};

use super::flags;
use super::format::EventFormat;
use super::layout::{OWN_SYSTEM, PROBE_SYSTEM, VERBATIM};
use super::printk::{self, PrintkFormats};
use super::render::Renderer;
use super::state_table::StateTable;
use super::value::{Integer, Text};
use crate::endian::Endian;
use crate::unreadable::needed;

/// Turns the records of one tracepoint into events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decoder {
    name: String,
    common_flags: Option<Integer>,
    common_preempt_count: Option<Integer>,
    kind: Kind,
    /// It is one of the scheduler's that answers need, and its format lacks what its type needs.
    incomplete: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Switch(Box<SwitchFields>),
    Waking(WakeupFields),
    Wakeup(WakeupFields),
    WakeupNew(WakeupFields),
    MigrateTask { task: TaskFields, prio: Integer, orig_cpu: Integer, dest_cpu: Integer },
    Fork { parent: TaskFields, child: TaskFields },
    Exec { filename: Text, pid: Integer, old_pid: Integer },
    Exit { task: TaskFields, prio: Integer, group_dead: Option<Integer> },
    StatWait(DelayFields),
    StatSleep(DelayFields),
    StatBlocked(DelayFields),
    StatIowait(DelayFields),
    StatRuntime { task: TaskFields, runtime: Integer, vruntime: Option<Integer> },
    Place(Box<PlaceFields>),
    Marker(Text),
    Printk(Box<PrintkFields>),
    Kprobe(Renderer),
    Other(Renderer),
    VerbatimKprobe(Text),
    VerbatimOther(Text),
    TaskName { task: TaskFields, tgid: Integer },
    TaskStart { pid: Integer, tgid: Integer, parent_pid: Integer },
    TaskExit { pid: Integer, tgid: Integer },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TaskFields {
    comm: Text,
    pid: Integer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SwitchFields {
    prev: TaskFields,
    prev_prio: Integer,
    prev_state: Integer,
    states: StateTable,
    next: TaskFields,
    next_prio: Integer,
}

/// `trace_printk` with arguments (`bprint`), or without (`bputs`).
#[derive(Clone, Debug, PartialEq, Eq)]
struct PrintkFields {
    /// The address of format or text.
    format: Integer,
    long_bytes: usize,
    /// Where the arguments begin.
    arguments: Option<usize>,
    /// For what the trace has no format of.
    otherwise: Renderer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WakeupFields {
    task: TaskFields,
    prio: Integer,
    target_cpu: Integer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DelayFields {
    task: TaskFields,
    delay: Integer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PlaceFields {
    task: TaskFields,
    sev: Integer,
    sed: Integer,
    sel: Integer,
    avg: Integer,
    min: Integer,
    cpu: Integer,
    nr: Integer,
}

impl Decoder {
    /// Prepares the decoder. An event whose format lacks what its type needs is rendered as text.
    pub(super) fn new(format: &EventFormat) -> Decoder {
        let integer = |name| format.field(name).and_then(Integer::of);
        let kind = match format.system.as_str() {
            "sched" => Kind::scheduler(format),
            OWN_SYSTEM => Kind::own(format),
            "ftrace" => Kind::of_ftrace(format),
            _ => None,
        };
        let incomplete = kind.is_none() && format.system == "sched" && needed(&format.name).is_some();
        Decoder {
            incomplete,
            name: format.name.clone(),
            common_flags: integer("common_flags"),
            common_preempt_count: integer("common_preempt_count"),
            kind: kind.or_else(|| Kind::verbatim(format)).unwrap_or_else(|| Kind::rendered(format)),
        }
    }

    /// The event's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether its format lacks what the event's type needs, so that it is text only.
    #[inline]
    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// The flag columns of a record.
    #[inline]
    pub(super) fn flags(&self, record: &[u8], endian: Endian) -> Flags {
        let read = |field: Option<Integer>| {
            field.and_then(|field| field.read(record, endian)).map(|value| value as u8)
        };
        match (read(self.common_flags), read(self.common_preempt_count)) {
            (Some(flags), Some(count)) => flags::columns(flags, count),
            _ => Flags::NONE,
        }
    }

    /// Hands what a record says to `take`; `None` when a field lies outside it or holds what its kernel does not
    /// explain. Text that has to be made is made in `scratch`.
    #[inline(always)]
    pub(super) fn decode<'a, T>(
        &'a self,
        record: &'a [u8],
        endian: Endian,
        scratch: &'a mut String,
        printk: &'a PrintkFormats,
        take: impl FnOnce(EventKind<'a>) -> T,
    ) -> Option<T> {
        let source = Source { record, endian };
        Some(match &self.kind {
            Kind::Switch(fields) => take(EventKind::SchedSwitch(source.switch(fields)?)),
            Kind::Waking(fields) => take(EventKind::SchedWaking(source.wakeup(fields)?)),
            Kind::Wakeup(fields) => take(EventKind::SchedWakeup(source.wakeup(fields)?)),
            Kind::StatRuntime { task, runtime, vruntime } => {
                let (comm, pid) = source.task(task)?;
                let vruntime = match vruntime {
                    Some(field) => Some(source.integer(*field)?),
                    None => None,
                };
                take(EventKind::SchedStatRuntime {
                    comm,
                    pid,
                    runtime: Ns(source.integer(*runtime)?),
                    vruntime,
                })
            }
            _ => take(self.decode_rare(source, scratch, printk)?),
        })
    }

    /// The events that are few in any trace, or that cost a rendering anyway.
    #[inline(never)]
    fn decode_rare<'a>(
        &'a self,
        source: Source<'a>,
        scratch: &'a mut String,
        printk: &'a PrintkFormats,
    ) -> Option<EventKind<'a>> {
        Some(match &self.kind {
            Kind::WakeupNew(fields) => EventKind::SchedWakeupNew(source.wakeup(fields)?),
            Kind::MigrateTask { task, prio, orig_cpu, dest_cpu } => {
                let (comm, pid) = source.task(task)?;
                let (orig_cpu, dest_cpu) = (source.cpu(*orig_cpu)?, source.cpu(*dest_cpu)?);
                EventKind::SchedMigrateTask { comm, pid, prio: source.prio(*prio)?, orig_cpu, dest_cpu }
            }
            Kind::Fork { parent, child } => {
                let (comm, pid) = source.task(parent)?;
                let (child_comm, child_pid) = source.task(child)?;
                EventKind::SchedProcessFork { comm, pid, child_comm, child_pid }
            }
            Kind::Exec { filename, pid, old_pid } => {
                let (pid, old_pid) = (source.pid(*pid)?, source.pid(*old_pid)?);
                EventKind::SchedProcessExec { filename: source.text(*filename, scratch)?, pid, old_pid }
            }
            Kind::Exit { task, prio, group_dead } => {
                let (comm, pid) = source.task(task)?;
                let group_dead = match group_dead {
                    Some(field) => Some(source.integer(*field)? != 0),
                    None => None,
                };
                EventKind::SchedProcessExit { comm, pid, prio: source.prio(*prio)?, group_dead }
            }
            Kind::StatWait(fields) => EventKind::SchedStatWait(source.delay(fields)?),
            Kind::StatSleep(fields) => EventKind::SchedStatSleep(source.delay(fields)?),
            Kind::StatBlocked(fields) => EventKind::SchedStatBlocked(source.delay(fields)?),
            Kind::StatIowait(fields) => EventKind::SchedStatIowait(source.delay(fields)?),
            Kind::Place(fields) => EventKind::SchedPlace(source.place(fields)?),
            Kind::Marker(text) => {
                EventKind::Marker { text: source.text(*text, scratch)?.trim_end_matches('\n') }
            }
            Kind::Printk(fields) => return self.printk(fields, source, scratch, printk),
            Kind::Kprobe(renderer) => {
                renderer.render(source.record, source.endian, scratch)?;
                EventKind::Kprobe { name: &self.name, fields: Fields::new(scratch) }
            }
            Kind::Other(renderer) => {
                renderer.render(source.record, source.endian, scratch)?;
                EventKind::Other { name: &self.name, fields: Fields::new(scratch) }
            }
            Kind::VerbatimKprobe(text) => {
                EventKind::Kprobe { name: &self.name, fields: Fields::new(source.text(*text, scratch)?) }
            }
            Kind::VerbatimOther(text) => {
                EventKind::Other { name: &self.name, fields: Fields::new(source.text(*text, scratch)?) }
            }
            Kind::TaskName { task, tgid } => {
                let (comm, pid) = source.task(task)?;
                EventKind::TaskName { pid, tgid: source.pid(*tgid)?, comm }
            }
            Kind::TaskStart { pid, tgid, parent_pid } => EventKind::TaskStart {
                pid: source.pid(*pid)?,
                tgid: source.pid(*tgid)?,
                parent_pid: source.pid(*parent_pid)?,
            },
            Kind::TaskExit { pid, tgid } => {
                EventKind::TaskExit { pid: source.pid(*pid)?, tgid: source.pid(*tgid)? }
            }
            _ => return None,
        })
    }
}

impl Decoder {
    fn printk<'a>(
        &'a self,
        fields: &PrintkFields,
        source: Source<'a>,
        scratch: &'a mut String,
        printk: &'a PrintkFormats,
    ) -> Option<EventKind<'a>> {
        let Some(format) = printk.get(source.integer(fields.format)?) else {
            fields.otherwise.render(source.record, source.endian, scratch)?;
            return Some(EventKind::Other { name: &self.name, fields: Fields::new(scratch) });
        };
        let Some(at) = fields.arguments else {
            return Some(EventKind::Marker { text: format.trim_end_matches('\n') });
        };
        let arguments = source.record.get(at..)?;
        printk::render(format, arguments, source.endian, fields.long_bytes, scratch)?;
        Some(EventKind::Marker { text: scratch.trim_end_matches('\n') })
    }
}

impl Kind {
    /// The events that ftrace has of its own.
    fn of_ftrace(format: &EventFormat) -> Option<Kind> {
        let printk = |address: &str, arguments: Option<&str>| {
            let field = format.field(address)?;
            let arguments = match arguments {
                Some(name) => Some(format.field(name)?.offset),
                None => None,
            };
            let (long_bytes, otherwise) = (field.size, Renderer::new(format));
            Some(Kind::Printk(Box::new(PrintkFields {
                format: Integer::of(field)?,
                long_bytes,
                arguments,
                otherwise,
            })))
        };
        match format.name.as_str() {
            "print" => format.field("buf").and_then(Text::of).map(Kind::Marker),
            "bprint" => printk("fmt", Some("buf")),
            "bputs" => printk("str", None),
            _ => None,
        }
    }

    fn rendered(format: &EventFormat) -> Kind {
        let renderer = Renderer::new(format);
        if renderer.is_probe() { Kind::Kprobe(renderer) } else { Kind::Other(renderer) }
    }

    /// An event that Fairlab carried as the text that it prints.
    fn verbatim(format: &EventFormat) -> Option<Kind> {
        let mut fields = format.own_fields();
        let text = fields.next().filter(|field| field.name == VERBATIM).and_then(Text::of)?;
        if fields.next().is_some() {
            return None;
        }
        Some(if format.system == PROBE_SYSTEM {
            Kind::VerbatimKprobe(text)
        } else {
            Kind::VerbatimOther(text)
        })
    }

    /// What Fairlab writes of a recorder's knowledge of tasks; `None` for anything else.
    fn own(format: &EventFormat) -> Option<Kind> {
        let integer = |name| format.field(name).and_then(Integer::of);
        Some(match format.name.as_str() {
            "task_name" => Kind::TaskName { task: TaskFields::of(format, "")?, tgid: integer("tgid")? },
            "task_start" => Kind::TaskStart {
                pid: integer("pid")?,
                tgid: integer("tgid")?,
                parent_pid: integer("parent_pid")?,
            },
            "task_exit" => Kind::TaskExit { pid: integer("pid")?, tgid: integer("tgid")? },
            _ => return None,
        })
    }

    /// The typed events of the `sched` subsystem; `None` for any other, and for one that lacks a field.
    fn scheduler(format: &EventFormat) -> Option<Kind> {
        let integer = |name| format.field(name).and_then(Integer::of);
        let task = TaskFields::of(format, "");
        let delay = || Some(DelayFields { task: task?, delay: integer("delay")? });
        let wakeup =
            || Some(WakeupFields { task: task?, prio: integer("prio")?, target_cpu: integer("target_cpu")? });
        Some(match format.name.as_str() {
            "sched_switch" => Kind::Switch(Box::new(SwitchFields::of(format)?)),
            "sched_waking" => Kind::Waking(wakeup()?),
            "sched_wakeup" => Kind::Wakeup(wakeup()?),
            "sched_wakeup_new" => Kind::WakeupNew(wakeup()?),
            "sched_migrate_task" => Kind::MigrateTask {
                task: task?,
                prio: integer("prio")?,
                orig_cpu: integer("orig_cpu")?,
                dest_cpu: integer("dest_cpu")?,
            },
            "sched_process_fork" => Kind::Fork {
                parent: TaskFields::of(format, "parent_")?,
                child: TaskFields::of(format, "child_")?,
            },
            "sched_process_exec" => Kind::Exec {
                filename: format.field("filename").and_then(Text::of)?,
                pid: integer("pid")?,
                old_pid: integer("old_pid")?,
            },
            "sched_process_exit" => {
                Kind::Exit { task: task?, prio: integer("prio")?, group_dead: integer("group_dead") }
            }
            "sched_stat_wait" => Kind::StatWait(delay()?),
            "sched_stat_sleep" => Kind::StatSleep(delay()?),
            "sched_stat_blocked" => Kind::StatBlocked(delay()?),
            "sched_stat_iowait" => Kind::StatIowait(delay()?),
            "sched_stat_runtime" => {
                Kind::StatRuntime { task: task?, runtime: integer("runtime")?, vruntime: integer("vruntime") }
            }
            "sched_place" => Kind::Place(Box::new(PlaceFields::of(format)?)),
            _ => return None,
        })
    }
}

impl TaskFields {
    fn of(format: &EventFormat, prefix: &str) -> Option<TaskFields> {
        let comm = format.field(&format!("{prefix}comm")).and_then(Text::of)?;
        let pid = format.field(&format!("{prefix}pid")).and_then(Integer::of)?;
        Some(TaskFields { comm, pid })
    }
}

impl SwitchFields {
    fn of(format: &EventFormat) -> Option<SwitchFields> {
        let integer = |name| format.field(name).and_then(Integer::of);
        Some(SwitchFields {
            prev: TaskFields::of(format, "prev_")?,
            prev_prio: integer("prev_prio")?,
            prev_state: integer("prev_state")?,
            states: StateTable::parse(&format.print_format).unwrap_or_else(StateTable::in_use),
            next: TaskFields::of(format, "next_")?,
            next_prio: integer("next_prio")?,
        })
    }
}

impl PlaceFields {
    fn of(format: &EventFormat) -> Option<PlaceFields> {
        let integer = |name| format.field(name).and_then(Integer::of);
        Some(PlaceFields {
            task: TaskFields::of(format, "")?,
            sev: integer("sev")?,
            sed: integer("sed")?,
            sel: integer("sel")?,
            avg: integer("avg")?,
            min: integer("min")?,
            cpu: integer("cpu")?,
            nr: integer("nr")?,
        })
    }
}

/// A record and how to read it.
#[derive(Clone, Copy)]
struct Source<'r> {
    record: &'r [u8],
    endian: Endian,
}

impl<'r> Source<'r> {
    #[inline(always)]
    fn integer(self, field: Integer) -> Option<u64> {
        field.read(self.record, self.endian)
    }

    #[inline(always)]
    fn pid(self, field: Integer) -> Option<Pid> {
        Some(Pid(self.integer(field)? as i32))
    }

    #[inline(always)]
    fn prio(self, field: Integer) -> Option<Prio> {
        Some(Prio(self.integer(field)? as i32))
    }

    #[inline(always)]
    fn cpu(self, field: Integer) -> Option<Cpu> {
        Some(Cpu(self.integer(field)? as u32))
    }

    #[inline(always)]
    fn task(self, fields: &TaskFields) -> Option<(Comm, Pid)> {
        Some((fields.comm.comm(self.record, self.endian)?, self.pid(fields.pid)?))
    }

    #[inline(always)]
    fn switch(self, fields: &SwitchFields) -> Option<Switch> {
        let (prev_comm, prev_pid) = self.task(&fields.prev)?;
        let (next_comm, next_pid) = self.task(&fields.next)?;
        Some(Switch {
            prev_comm,
            prev_pid,
            prev_prio: self.prio(fields.prev_prio)?,
            prev_state: fields.states.state(self.integer(fields.prev_state)?)?,
            next_comm,
            next_pid,
            next_prio: self.prio(fields.next_prio)?,
        })
    }

    #[inline(always)]
    fn wakeup(self, fields: &WakeupFields) -> Option<Wakeup> {
        let (comm, pid) = self.task(&fields.task)?;
        Some(Wakeup { comm, pid, prio: self.prio(fields.prio)?, target_cpu: self.cpu(fields.target_cpu)? })
    }

    fn delay(self, fields: &DelayFields) -> Option<StatDelay> {
        let (comm, pid) = self.task(&fields.task)?;
        Some(StatDelay { comm, pid, delay: Ns(self.integer(fields.delay)?) })
    }

    fn place(self, fields: &PlaceFields) -> Option<Place> {
        let (comm, pid) = self.task(&fields.task)?;
        Some(Place {
            comm,
            pid,
            sev: self.integer(fields.sev)?,
            sed: self.integer(fields.sed)?,
            sel: self.integer(fields.sel)? as i64,
            avg: self.integer(fields.avg)?,
            min: self.integer(fields.min)?,
            cpu: self.cpu(fields.cpu)?,
            nr: self.integer(fields.nr)? as u32,
        })
    }

    /// A text as it stands, or with its undecodable bytes replaced.
    fn text<'a>(self, field: Text, scratch: &'a mut String) -> Option<&'a str>
    where
        'r: 'a,
    {
        let bytes = field.read(self.record, self.endian)?;
        if let Ok(text) = std::str::from_utf8(bytes) {
            return Some(text);
        }
        scratch.clear();
        scratch.push_str(&String::from_utf8_lossy(bytes));
        Some(scratch)
    }
}
