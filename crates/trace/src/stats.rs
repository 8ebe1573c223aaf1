//! What went wrong while a trace was read: counted, with where it was seen first, never thrown.

use std::fmt;

use crate::UnreadableTally;

/// How much a [`Trouble`] matters to the answers computed from the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is missing: headers, notes between lines, events without a type of their own.
    Info,
    /// Something was guessed or is incomplete; answers hold with a grain of salt.
    Warning,
    /// Events are missing or unreadable; answers near that place may be wrong.
    DataLoss,
}

/// One kind of trouble. Each importer adds the kinds that its format can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// Lines that are no trace lines: headers, notes, mail text.
    ForeignLine,
    /// A known event whose fields could not be read.
    MalformedEvent,
    /// A time stamp earlier than the one before it on the same CPU.
    TimeWentBack,
    /// The rate of a clock was given, and time stamps are no ticks, or the file knows their rate.
    ClockRateUnused,
    /// A task name longer than the kernel's 15 bytes was cut.
    CommTruncated,
    /// The recorder said that it dropped events here.
    LostEvents,
    /// The file ends in the middle of a record or a line.
    TruncatedFile,
    /// A binary record whose size or content contradicts the file's own description.
    CorruptRecord,
    /// A binary record of a type that carries no events and is passed over.
    SkippedRecord,
    /// A tracepoint record whose format description the file does not contain.
    UnknownEventFormat,
    /// A record that came too late to be put in order.
    OutOfOrder,
    /// A record of a tracepoint that another trace instance in the same file has too: it is taken once.
    RecordedTwice,
    /// A switch of a kernel that prints states one bit too far (v4.15 to v4.19), put right.
    ShiftedState,
    /// A switch whose state is a number that kernels mean differently, of a kernel that is not known: taken as those from v4.14 on
    /// mean it, if they have it.
    NumberedState,
    /// A CPU's buffer of a trace instance whose clock is not the first instance's: its times cannot be compared.
    OtherClock,
    /// A switch that perf reported by a record of its own (`--switch-events`), which has neither state nor priority.
    SwitchesWithoutState,
    /// An event in a text without CPUs (`perf trace`), of a CPU whose number nothing has shown yet: it is left out.
    CpuUnknown,
    /// A switch that perf reported by a record of its own, of one program's tasks: what else its CPU did is not in the trace.
    OwnSwitches,
    /// As that, and without the CPU that it happened on.
    SwitchesWithoutCpu,
    /// An event of Perfetto's, not one of the scheduler's, of a kind that is not read.
    OtherTracepoint,
}

impl Trouble {
    /// How much it matters.
    pub const fn severity(self) -> Severity {
        match self {
            Trouble::ForeignLine
            | Trouble::SkippedRecord
            | Trouble::OtherTracepoint
            | Trouble::ShiftedState => Severity::Info,
            Trouble::TimeWentBack
            | Trouble::RecordedTwice
            | Trouble::ClockRateUnused
            | Trouble::CommTruncated
            | Trouble::SwitchesWithoutState
            | Trouble::OwnSwitches
            | Trouble::SwitchesWithoutCpu
            | Trouble::NumberedState => Severity::Warning,
            Trouble::MalformedEvent
            | Trouble::LostEvents
            | Trouble::TruncatedFile
            | Trouble::CorruptRecord
            | Trouble::UnknownEventFormat
            | Trouble::OutOfOrder
            | Trouble::CpuUnknown
            | Trouble::OtherClock => Severity::DataLoss,
        }
    }

    /// The name in machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Trouble::ForeignLine => "foreign_line",
            Trouble::MalformedEvent => "malformed_event",
            Trouble::TimeWentBack => "time_went_back",
            Trouble::ClockRateUnused => "clock_rate_unused",
            Trouble::CommTruncated => "comm_truncated",
            Trouble::LostEvents => "lost_events",
            Trouble::TruncatedFile => "truncated_file",
            Trouble::CorruptRecord => "corrupt_record",
            Trouble::SkippedRecord => "skipped_record",
            Trouble::UnknownEventFormat => "unknown_event_format",
            Trouble::OutOfOrder => "out_of_order",
            Trouble::RecordedTwice => "recorded_twice",
            Trouble::OtherTracepoint => "other_tracepoint",
            Trouble::ShiftedState => "shifted_state",
            Trouble::NumberedState => "numbered_state",
            Trouble::OtherClock => "other_clock",
            Trouble::SwitchesWithoutState => "switches_without_state",
            Trouble::CpuUnknown => "cpu_unknown",
            Trouble::OwnSwitches => "own_switches",
            Trouble::SwitchesWithoutCpu => "switches_without_cpu",
        }
    }

    /// One clause for people.
    pub const fn describe(self) -> &'static str {
        match self {
            Trouble::ForeignLine => "lines that are no trace lines",
            Trouble::MalformedEvent => "events whose fields could not be read",
            Trouble::TimeWentBack => "time stamps earlier than the one before on their CPU",
            Trouble::ClockRateUnused => {
                "clock whose rate was given with --clock-hz, and whose time stamps need none: it was not used"
            }
            Trouble::CommTruncated => "task names longer than 15 bytes, cut",
            Trouble::LostEvents => "events that the recorder dropped",
            Trouble::TruncatedFile => "records cut off at the end of the file",
            Trouble::CorruptRecord => "records that contradict the file's own description",
            Trouble::SkippedRecord => "records that carry no events",
            Trouble::UnknownEventFormat => "tracepoint records without a format description",
            Trouble::OutOfOrder => "records that came too late to be put in order",
            Trouble::RecordedTwice => {
                "records of tracepoints that another instance or data source recorded too, taken once"
            }
            Trouble::OtherTracepoint => "tracepoints of kinds that are not read, left out",
            Trouble::ShiftedState => {
                "switches of a kernel that prints states one bit too far (v4.15 to v4.19), put right"
            }
            Trouble::NumberedState => {
                "states that are numbers which kernels mean differently (X and Z, K, P, I, and before v4.14 the mark of preemption), \
                 taken as kernels from v4.14 on mean them; the trace does not tell its kernel"
            }
            Trouble::OtherClock => "CPU buffers of instances with another clock, left out",
            Trouble::SwitchesWithoutState => {
                "switches of perf's --switch-events: a task that left without being preempted is taken to sleep, priorities are not known"
            }
            Trouble::CpuUnknown => {
                "events left out whose CPU nothing tells: perf trace prints none, and its number shows with the first idle or bound thread \
                 (of files without CPUs, threads beyond 8192 at a time)"
            }
            Trouble::OwnSwitches => {
                "switches of one program's tasks (--switch-events without -a): what else ran on their CPUs is unknown"
            }
            Trouble::SwitchesWithoutCpu => {
                "switches of one program's tasks without CPU: nothing is known of CPUs, and each thread is given one of its own; \
                 perf record --sample-cpu tells them"
            }
        }
    }
}

/// How often one kind of trouble was met, and where first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TroubleCount {
    /// The kind.
    pub trouble: Trouble,
    /// How often; for [`Trouble::LostEvents`] the number of events lost.
    pub count: u64,
    /// Where it was met first: a line number (text, from 1) or a byte offset (binary); for
    /// [`Trouble::ShiftedState`] the number of the event.
    pub first_at: u64,
}

/// The account of one import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportStats {
    /// Events handed to the sink.
    pub events: u64,
    /// The trace instances that were read, where the trace has more than one; the first, which has no name, is "top".
    pub instances: Vec<String>,
    /// The CPUs whose times were shifted, and by how many ns.
    pub shifted: Vec<(u32, i64)>,
    troubles: Vec<TroubleCount>,
    pub(crate) unreadable: Vec<UnreadableTally>,
}

impl ImportStats {
    /// Counts `count` occurrences of `trouble`, met at `at` (line or byte).
    pub fn add(&mut self, trouble: Trouble, count: u64, at: u64) {
        match self.troubles.binary_search_by_key(&trouble, |known| known.trouble) {
            Ok(index) => self.troubles[index].count = self.troubles[index].count.saturating_add(count),
            Err(index) => self.troubles.insert(index, TroubleCount { trouble, count, first_at: at }),
        }
    }

    /// Adds what was counted apart. Of a kind that both met, the place is this one's.
    pub(crate) fn absorb(&mut self, other: &ImportStats) {
        self.events += other.events;
        for count in &other.troubles {
            self.add(count.trouble, count.count, count.first_at);
        }
    }

    /// What was done to times, a clause each.
    pub fn shift_notes(&self) -> impl Iterator<Item = String> {
        let note = |&(cpu, ns): &(u32, i64)| {
            format!(
                "the times of CPU {cpu} are shifted by {:+.3} ms, since its clock stands apart",
                ns as f64 / 1e6
            )
        };
        self.shifted.iter().map(note)
    }

    /// Every kind of trouble that was met.
    pub fn troubles(&self) -> &[TroubleCount] {
        &self.troubles
    }

    /// How often `trouble` was met.
    pub fn count(&self, trouble: Trouble) -> u64 {
        self.troubles.iter().find(|known| known.trouble == trouble).map_or(0, |known| known.count)
    }

    /// Whether the file ends in the middle of a record or a line.
    pub fn is_cut_off(&self) -> bool {
        self.count(Trouble::TruncatedFile) > 0
    }

    /// The worst severity met; `None` when there was no trouble at all.
    pub fn worst(&self) -> Option<Severity> {
        self.troubles.iter().map(|known| known.trouble.severity()).max()
    }
}

impl fmt::Display for TroubleCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (first at {})", self.count, self.trouble.describe(), self.first_at)
    }
}
