//! Options: numbered facts about a recording, the same in all versions of the file.
//!
//! Must not know: where in the file they stand.

use fairlab_event::Cpu;

use super::contents::{Contents, CpuData, TraceInstance};
use super::cursor::{ByteCursor, ReadFault};
use super::fairlab_notes::TraceDatNotes;
use super::uname;
use crate::clock::ClockFacts;
use crate::endian::Endian;
use crate::ringbuffer::shift::{ClockCorrection, ClockSample};

/// Numbers of options and, of some, of the sections that they point to.
pub(super) mod number {
    pub(crate) const DONE: u16 = 0;
    pub(crate) const DATE: u16 = 1;
    pub(crate) const CPUSTAT: u16 = 2;
    pub(crate) const BUFFER: u16 = 3;
    pub(crate) const TRACECLOCK: u16 = 4;
    pub(crate) const UNAME: u16 = 5;
    pub(crate) const OFFSET: u16 = 7;
    pub(crate) const CPUCOUNT: u16 = 8;
    pub(crate) const VERSION: u16 = 9;
    pub(crate) const TIME_SHIFT: u16 = 12;
    pub(crate) const TSC2NSEC: u16 = 14;
    pub(crate) const HEADER_INFO: u16 = 16;
    pub(crate) const FTRACE_EVENTS: u16 = 17;
    pub(crate) const EVENT_FORMATS: u16 = 18;
    pub(crate) const KALLSYMS: u16 = 19;
    pub(crate) const PRINTK: u16 = 20;
    pub(crate) const CMDLINES: u16 = 21;
    pub(crate) const BUFFER_TEXT: u16 = 22;
    /// Fairlab's own: far above those of trace-cmd, which passes over numbers that it does not know.
    pub(crate) const FAIRLAB: u16 = 0x4661;
}

/// One option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RawOption {
    pub(super) number: u16,
    pub(super) data: Vec<u8>,
}

/// No option is longer, but for Fairlab's own: a line for each of all threads that a kernel can have.
pub(super) const OPTION_BYTES_MAX: usize = 64 << 20;

/// What options say that concerns how the rest is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OptionSection {
    /// Where sections lie, by their number, in the order in which they were met.
    pub(super) sections: Vec<(u16, u64)>,
    /// Instances, and where their descriptions or sections lie.
    pub(super) buffers: Vec<(u64, TraceInstance)>,
    /// Whether the clock's name stands behind the first instance's table of CPUs.
    pub(super) clock_behind: bool,
    /// The CPUs that recorded anything, as far as their statistics say so.
    pub(super) recorded: Vec<Cpu>,
    /// The instance whose CPUs' statistics come next.
    pub(super) stats_of: String,
    /// How many CPUs there are, where the file was written before that was known.
    pub(super) cpus: Option<u32>,
}

/// The option that comes behind its number.
pub(super) fn read(number: u16, cursor: &mut ByteCursor<'_>) -> Result<RawOption, ReadFault> {
    let size = cursor.u32()?;
    Ok(RawOption { number, data: cursor.block(size.into(), OPTION_BYTES_MAX)? })
}

/// Takes an option into account; those of instances have the table of CPUs in them when `with_tables`.
pub(super) fn take(
    option: RawOption,
    with_tables: bool,
    contents: &mut Contents,
    found: &mut OptionSection,
    endian: Endian,
) {
    let text = || String::from_utf8_lossy(&option.data).into_owned();
    match option.number {
        number::DATE => add(&mut contents.clock.offset, signed(&text()).saturating_mul(1000)),
        number::OFFSET => add(&mut contents.clock.offset, signed(&text())),
        number::CPUSTAT => {
            let text = text();
            // The statistics of an instance come behind its name.
            if let Some(name) = text.lines().find_map(|line| line.strip_prefix("Buffer: ")) {
                found.stats_of =
                    name.trim_matches(|byte: char| byte.is_whitespace() || byte == '\0').to_string();
            }
            if let Some(in_ns) = ClockFacts::stats_in_ns(&text) {
                contents.in_ns.insert(found.stats_of.clone(), in_ns);
            }
            let stats = CpuStats::parse(&text);
            contents.dropped = contents.dropped.saturating_add(stats.dropped);
            found.recorded.extend(stats.recorded);
        }
        number::TRACECLOCK => {
            contents.clock.name = ClockFacts::selected(&text()).to_string();
            found.clock_behind = true;
        }
        number::UNAME => uname::take(&mut contents.system, &text()),
        number::CPUCOUNT => found.cpus = endian.u32(&option.data, 0),
        number::TSC2NSEC => {
            contents.clock.measured = endian.u32(&option.data, 0).zip(endian.u32(&option.data, 4));
        }
        number::TIME_SHIFT => {
            let mut cursor = ByteCursor::of_bytes(option.data, endian);
            match read_shifts(&mut cursor) {
                Ok(shifts) => contents.shifts = shifts,
                Err(_) => contents.damaged = true,
            }
        }
        number::HEADER_INFO
        | number::FTRACE_EVENTS
        | number::EVENT_FORMATS
        | number::PRINTK
        | number::CMDLINES => {
            found.sections.extend(endian.u64(&option.data, 0).map(|offset| (option.number, offset)));
        }
        number::BUFFER => {
            let mut cursor = ByteCursor::of_bytes(option.data, endian);
            match read_buffer(&mut cursor, with_tables) {
                Ok(buffer) => found.buffers.push(buffer),
                Err(_) => contents.damaged = true,
            }
        }
        number::BUFFER_TEXT => contents.text = true,
        number::FAIRLAB => contents.own = TraceDatNotes::parse(&option.data),
        _ => {}
    }
}

fn add(sum: &mut i64, value: i64) {
    *sum = sum.saturating_add(value);
}

/// An instance, and where its description or section lies. The table of its CPUs is here when `with_tables`.
fn read_buffer(cursor: &mut ByteCursor<'_>, with_tables: bool) -> Result<(u64, TraceInstance), ReadFault> {
    let offset = cursor.u64()?;
    let mut instance = TraceInstance { name: cursor.text()?, ..TraceInstance::default() };
    if !with_tables {
        return Ok((offset, instance));
    }
    instance.clock = cursor.text()?;
    instance.page_bytes = usize::try_from(cursor.u32()?).ok();
    for _ in 0..cursor.u32()? {
        let cpu = Cpu(cursor.u32()?);
        let (offset, size) = (cursor.u64()?, cursor.u64()?);
        if size > 0 {
            instance.cpus.push(CpuData { cpu, offset, size });
        }
    }
    Ok((offset, instance))
}

/// The shift of each CPU's stamps to the host's.
fn read_shifts(cursor: &mut ByteCursor<'_>) -> Result<Vec<Option<ClockCorrection>>, ReadFault> {
    const INTERPOLATE: u32 = 1;
    let _peer = cursor.u64()?;
    let interpolate = cursor.u32()? & INTERPOLATE != 0;
    let mut cpus: Vec<Vec<ClockSample>> = Vec::new();
    for _ in 0..cursor.u32()? {
        let mut samples = Vec::new();
        for _ in 0..cursor.u32()? {
            samples.push(ClockSample { time: cursor.u64()?, ..ClockSample::default() });
        }
        for sample in &mut samples {
            sample.offset = cursor.u64()? as i64;
        }
        for sample in &mut samples {
            sample.scaling = cursor.u64()?;
        }
        cpus.push(samples);
    }
    // Older recorders know no fractions.
    if cursor.left() > 0 {
        for sample in cpus.iter_mut().flatten() {
            sample.fraction = u32::try_from(cursor.u64()?).unwrap_or(u32::MAX);
        }
    }
    Ok(cpus.into_iter().map(|samples| ClockCorrection::new(interpolate, samples)).collect())
}

/// A number with sign, decimal, `0x…` or `0…`, as strtoll reads it; 0 when it is none.
fn signed(text: &str) -> i64 {
    let text = text.trim_matches(|byte: char| byte.is_whitespace() || byte == '\0');
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16),
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8),
        None => digits.parse(),
    };
    let value = i64::try_from(value.unwrap_or(0)).unwrap_or(i64::MAX);
    if negative { -value } else { value }
}

/// What a CPU's `stats` file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuStats {
    /// Events that were dropped. Those that were overwritten before they were read are not among them: they are older
    /// than the trace, or its pages tell of them.
    dropped: u64,
    /// The CPU, if it recorded anything.
    recorded: Option<Cpu>,
}

impl CpuStats {
    fn parse(text: &str) -> CpuStats {
        let sum = |names: &[&str]| {
            let values = text.lines().filter_map(|line| line.split_once(':'));
            let values = values.filter(|(name, _)| names.contains(name));
            let numbers = values.filter_map(|(_, value)| {
                value.trim_matches(|byte: char| byte.is_whitespace() || byte == '\0').parse::<u64>().ok()
            });
            numbers.fold(None, |sum: Option<u64>, number| Some(sum.unwrap_or(0).saturating_add(number)))
        };
        let anything = sum(&["entries", "read events"]).is_some_and(|count| count > 0);
        let cpu = sum(&["CPU"]).and_then(|cpu| u32::try_from(cpu).ok());
        CpuStats {
            dropped: sum(&["dropped events", "commit overrun"]).unwrap_or(0),
            recorded: cpu.filter(|_| anything).map(Cpu),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_strtoll_does() {
        for (text, value) in [
            ("0x10\0", 16),
            ("-0x10", -16),
            ("12\n", 12),
            ("-5", -5),
            ("+5", 5),
            ("010", 8),
            ("0", 0),
            ("", 0),
            ("x", 0),
            ("99999999999999999999", 0),
            ("0xffffffffffffffff", i64::MAX),
        ] {
            assert_eq!(signed(text), value, "{text:?}");
        }
    }

    #[test]
    fn statistics_tell_what_was_dropped_and_who_recorded() {
        let parse = |text| {
            let CpuStats { dropped, recorded } = CpuStats::parse(text);
            (dropped, recorded.map(|cpu| cpu.0))
        };
        let stats = "CPU: 3\nentries: 0\noverrun: 9\ncommit overrun: 2\nbytes: 7\ndropped events: 40\nread events: 1\n\0";
        assert_eq!(parse(stats), (42, Some(3)));
        assert_eq!(parse("CPU: 4\nentries: 0\nread events: 0\n"), (0, None));
        assert_eq!(parse("CPU: 4\nentries: 5\0"), (0, Some(4)));
        assert_eq!(parse("dropped events: many\nentries: 1"), (0, None));
    }
}
