//! `trace.dat`: what `trace-cmd record` and `trace-cmd extract` write, versions 6 and 7, and KernelShark opens.
//!
//! The kernel's ring buffer as it is, each CPU's pages in a place of their own, beside the kernel's own descriptions of
//! what is in them. All CPUs are read side by side, a piece at a time, so memory does not grow with the trace; what
//! comes through a pipe is copied to a temporary file first.
//!
//! Saved command lines become [`TaskName`](fairlab_event::EventKind::TaskName) events of time 0. Trace instances are
//! merged, unless one of them is asked for; a tracepoint that several of them recorded is taken from the one that has it
//! first. Times are what
//! `trace-cmd report` makes of them; those of a guest become its host's where the file has their difference.
//!
//! [`TraceDatWriter`] writes the format.

mod compression;
mod contents;
mod cursor;
mod fairlab_notes;
#[cfg(test)]
mod fixture;
mod linear;
mod options;
mod pages;
mod sections;
mod uname;
mod writer;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufRead;
use std::sync::{Arc, Mutex};

use fairlab_event::{Cpu, Event, EventKind, Ns, Sink};

use crate::clock::{ClockFacts, TraceClock};
use crate::endian::Endian;
use crate::ringbuffer::deliver::{DecodingTables, deliver};
use crate::ringbuffer::page::PageFormat;
use crate::ringbuffer::stored::{StoredPages, piece_bytes};
use crate::ringbuffer::stream::{CpuStream, PageSource};
use crate::store::Store;
use crate::{ImportError, ImportStats, ReadOptions, Trouble};
use compression::Codec;
use contents::{Contents, TraceInstance};
use cursor::{ByteCursor, ReadFault};
use pages::CompressedPages;

pub use writer::{TraceDatCompression, TraceDatOptions, TraceDatWriter};

/// The first bytes.
pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Reads a trace.dat that comes through a pipe or out of a decompressor.
///
/// What is longer than a few megabytes is copied to an unnamed file in `$TMPDIR` or `/var/tmp`.
///
/// # Errors
/// `source` or the temporary file fails, or it is no trace.dat with records.
pub fn read(
    source: impl BufRead,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    read_store(&Store::spool(source)?, options, sink)
}

/// Reads a trace.dat in place.
///
/// # Errors
/// The file cannot be read, or is no trace.dat with records.
pub fn read_file(file: File, options: &ReadOptions, sink: &mut dyn Sink) -> Result<ImportStats, ImportError> {
    read_store(&Store::of(file, &options.read)?, options, sink)
}

fn read_store(store: &Store, options: &ReadOptions, sink: &mut dyn Sink) -> Result<ImportStats, ImportError> {
    let mut stats = ImportStats::default();
    let mut cursor = ByteCursor::new(store, Endian::Little, 0, u64::MAX);
    let (version, mut contents) = read_start(&mut cursor)?;
    let codec = match version.as_str() {
        "6" => {
            linear::read(store, &mut cursor, &mut contents)?;
            Codec::None
        }
        "7" => sections::read(store, &mut cursor, &mut contents)?,
        _ => {
            return Err(ImportError::Unsupported(format!(
                "this trace.dat is of version {version}, which is not supported; 6 and 7 are: \
                 make one of it with: trace-cmd convert --file-version 7"
            )));
        }
    };
    check(&contents, store.length(), &mut stats)?;
    choose_instances(&mut contents, options, &mut stats)?;
    if !options.allow_unreadable {
        check_cpus(&contents, store.length())?;
    }
    let facts = ClockFacts { name: clock_name(&contents).to_string(), ..contents.clock.clone() };
    let clock = TraceClock::new(&facts, options)?;
    let streams = open_streams(store, cursor.endian(), &contents, codec, &mut stats);
    let described = contents.own.as_ref().map(|own| own.system.clone()).unwrap_or_default();
    let system = contents.system.or(&described);
    if !system.is_unknown() {
        sink.system(&system);
    }
    let (knowledge, named) = knowledge(contents, clock);
    for event in named {
        sink.event(&event);
        stats.events += 1;
    }
    deliver(streams, knowledge, sink, &mut stats)?;
    Ok(stats)
}

/// The version, and what all versions begin with.
fn read_start(cursor: &mut ByteCursor<'_>) -> Result<(String, Contents), ImportError> {
    let mut start = || -> Result<(String, Contents), ReadFault> {
        cursor.tag(MAGIC)?;
        let version = cursor.text()?;
        let endian = if cursor.take(1)? == [0] { Endian::Little } else { Endian::Big };
        cursor.set_endian(endian);
        let _long_bytes = cursor.take(1)?;
        let page_bytes = cursor.u32()?;
        Ok((version, Contents::new(endian, page_bytes as usize)))
    };
    start().map_err(|fault| match fault {
        ReadFault::Io(error) => ImportError::Io(error),
        ReadFault::Cut => {
            ImportError::NotATrace("no trace.dat: it ends or goes wrong within its first bytes".to_string())
        }
    })
}

/// Refuses what has no records, and counts what is wrong with the rest.
fn check(contents: &Contents, length: u64, stats: &mut ImportStats) -> Result<(), ImportError> {
    if contents.text {
        return Err(ImportError::Unsupported(
            "this trace.dat holds text of a latency tracer, no events; show it with: trace-cmd report"
                .to_string(),
        ));
    }
    if contents.instances.is_empty() && contents.cut {
        return Err(ImportError::NotATrace(format!(
            "this trace.dat is cut at byte {length}: its end, which says where the records are, is missing"
        )));
    }
    if contents.instances.is_empty() {
        return Err(ImportError::NotATrace(
            "this trace.dat holds no records; if trace-cmd was killed while it recorded, try: trace-cmd restore".to_string(),
        ));
    }
    if contents.tracepoints.len() == 0 {
        return Err(ImportError::NotATrace(
            "this trace.dat has no event descriptions, or none that can be read".to_string(),
        ));
    }
    if contents.damaged {
        stats.add(Trouble::CorruptRecord, 1, 0);
    }
    if contents.cut {
        stats.add(Trouble::TruncatedFile, 1, length);
    }
    if contents.garbage_formats > 0 {
        stats.add(Trouble::UnknownEventFormat, contents.garbage_formats, 0);
    }
    if contents.dropped > 0 {
        stats.add(Trouble::LostEvents, contents.dropped, 0);
    }
    Ok(())
}

/// Refuses a file that ends before the records of a CPU begin: it would seem to idle, and whoever ran there to wait.
fn check_cpus(contents: &Contents, length: u64) -> Result<(), ImportError> {
    let all = contents.instances.iter().flat_map(|instance| &instance.cpus);
    let missing = all.filter(|data| data.size > 0 && data.offset >= length);
    let missing = missing.map(|data| data.cpu.index()).collect::<BTreeSet<_>>();
    if missing.is_empty() {
        return Ok(());
    }
    let cpus = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let noun = if missing.len() == 1 { "CPU" } else { "CPUs" };
    Err(ImportError::CutOff(format!(
        "this trace.dat is cut at byte {length}: it lacks all events of {noun} {cpus}"
    )))
}

/// Leaves the instance that was asked for, and notes which are read where there are several.
fn choose_instances(
    contents: &mut Contents,
    options: &ReadOptions,
    stats: &mut ImportStats,
) -> Result<(), ImportError> {
    let labels: Vec<String> =
        contents.instances.iter().map(|instance| instance.label().to_string()).collect();
    if let Some(wanted) = &options.instance {
        contents.instances.retain(|instance| instance.label() == wanted);
        if contents.instances.is_empty() {
            let labels = labels.join(", ");
            return Err(ImportError::NoSuchInstance(format!(
                "this trace.dat has no trace instance {wanted}; it has: {labels}"
            )));
        }
    }
    if labels.len() > 1 {
        stats.instances = contents.instances.iter().map(|instance| instance.label().to_string()).collect();
    }
    Ok(())
}

/// More CPUs' buffers in one file are garbage.
const STREAMS_MAX: usize = 1 << 14;

/// The records of each CPU and instance.
fn open_streams<'s>(
    store: &'s Store,
    endian: Endian,
    contents: &Contents,
    codec: Codec,
    stats: &mut ImportStats,
) -> Vec<CpuStream<'s>> {
    let codec = Arc::new(Mutex::new(codec));
    let buffers = || {
        contents
            .instances
            .iter()
            .enumerate()
            .flat_map(|(index, instance)| instance.cpus.iter().map(move |data| (index, instance, *data)))
    };
    let cpus = buffers().count();
    let clock = clock_name(contents);
    // Buffers do not overlap: together they are no longer than the file, and so is the memory to read them.
    let mut left = store.length();
    let mut streams = Vec::new();
    for (index, instance, data) in buffers() {
        if contents.clock_of(instance) != clock {
            stats.add(Trouble::OtherClock, 1, data.offset);
            continue;
        }
        let size = data.size.min(store.length().saturating_sub(data.offset));
        if size < data.size {
            stats.add(Trouble::TruncatedFile, 1, store.length());
        }
        let page = page_format(contents, instance);
        let (Some(page), Some(rest)) = (page, left.checked_sub(size)) else {
            stats.add(Trouble::CorruptRecord, 1, data.offset);
            continue;
        };
        left = rest;
        if size > 0 && streams.len() < STREAMS_MAX {
            let pages: Box<dyn PageSource + Send> = if instance.compressed {
                let codec = Arc::clone(&codec);
                Box::new(CompressedPages::new(store, endian, codec, data.offset, page.size(), cpus))
            } else {
                let end = data.offset.saturating_add(size);
                Box::new(StoredPages::new(store, data.offset, end, page.size(), piece_bytes(cpus)))
            };
            let shift = contents.shifts.get(data.cpu.index()).cloned().flatten();
            let stream = CpuStream::new(data.cpu, index, endian, page, pages).shifted(shift);
            streams.push(stream.cut_off(size < data.size));
        }
    }
    streams
}

/// The clock of the first instance that recorded anything: times of others cannot be compared with its.
fn clock_name(contents: &Contents) -> &str {
    let first = contents.instances.iter().find(|instance| !instance.cpus.is_empty());
    first.or(contents.instances.first()).map_or("", |first| contents.clock_of(first))
}

fn page_format(contents: &Contents, instance: &TraceInstance) -> Option<PageFormat> {
    match instance.page_bytes {
        Some(bytes) if bytes != contents.page.size() => contents.page.with_size(bytes),
        _ => Some(contents.page),
    }
}

/// What makes events of records, and the names that are known in the beginning as events.
fn knowledge(contents: Contents, clock: TraceClock) -> (DecodingTables, Vec<Event<'static>>) {
    let Contents { tracepoints, mut tasks, named, own, .. } = contents;
    let own_notes = own.is_some();
    let own = own.unwrap_or_default();
    for &(pid, comm) in &own.comms {
        tasks.set_comm(pid, comm);
    }
    for &(pid, tgid) in &own.tgids {
        tasks.set_tgid(pid, tgid);
    }
    let name = |(pid, tgid, comm)| Event::new(Ns::ZERO, Cpu(0), EventKind::TaskName { pid, tgid, comm });
    // Where Fairlab wrote the file, the saved names came from the events; names that were events are noted apart.
    let named: Vec<Event<'static>> = if own_notes {
        own.early
    } else {
        named.into_iter().map(|(pid, comm)| name((pid, tasks.get(pid).tgid, comm))).collect()
    };
    (DecodingTables { tracepoints, clock, tasks, flag_columns: own.flag_columns }, named)
}

#[cfg(test)]
mod tests {
    use fairlab_event::sink_fn;

    use super::fixture::{TraceDatFixture, push_ticks, ticks};
    use super::options::number;
    use super::*;
    use crate::clock;
    use crate::ringbuffer::fill::PageFill;

    fn try_read(bytes: &[u8], options: &ReadOptions) -> Result<(Vec<String>, ImportStats), ImportError> {
        let mut lines = Vec::new();
        let mut sink = sink_fn(|event: &Event<'_>| {
            let Event { time, cpu, context, kind } = event;
            lines.push(match kind {
                EventKind::Other { name: "tick", fields } => {
                    assert_eq!(context.flags.as_bytes(), b"d..1.");
                    format!("{} [{cpu}] {}-{} {fields}", time.0, context.comm, context.pid)
                }
                kind => format!("{} [{cpu}] {kind:?}", time.0),
            });
        });
        let stats = read(bytes, options, &mut sink)?;
        drop(sink);
        assert_eq!(stats.events, lines.len() as u64);
        Ok((lines, stats))
    }

    fn troubles(stats: &ImportStats) -> Vec<(Trouble, u64)> {
        stats.troubles().iter().map(|count| (count.trouble, count.count)).collect()
    }

    const WORKER: &str = "0 [0] TaskName { pid: Pid(7), tgid: Pid(-1), comm: \"worker\" }";

    /// Expects these events behind the name of the only task.
    #[track_caller]
    fn check(made: &TraceDatFixture, expected: &[&str], expected_troubles: &[(Trouble, u64)]) {
        let (lines, stats) = try_read(&made.bytes(), &ReadOptions::default()).expect("a trace.dat");
        assert_eq!(lines[0], WORKER);
        assert_eq!(lines[1..], *expected, "version {}", made.version);
        assert_eq!(troubles(&stats), expected_troubles, "version {}", made.version);
    }

    #[track_caller]
    fn check_refused(bytes: &[u8], why: &str) {
        let error = try_read(bytes, &ReadOptions::default()).expect_err("no events").to_string();
        assert!(error.contains(why) && !error.contains('\n'), "{error}");
    }

    #[test]
    fn cpus_are_merged_whatever_the_version_and_compression() {
        let times = |start: u64| (0..300).map(|at| (start + at * 7 % 11 + at * 10, at)).collect::<Vec<_>>();
        let mut made = TraceDatFixture::default().cpu(0, ticks(&times(100))).cpu(3, ticks(&times(103)));
        let mut all: Vec<(u64, u32, u64)> = Vec::new();
        for (cpu, start) in [(0, 100), (3, 103)] {
            all.extend(times(start).iter().map(|&(time, value)| (time, cpu, value)));
        }
        all.sort_unstable();
        let expected: Vec<String> =
            all.iter().map(|(time, cpu, value)| format!("{time} [{cpu}] worker-7 n={value}")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        for (version, codec) in [("6", ""), ("7", "none"), ("7", "zlib"), ("7", "zstd")] {
            (made.version, made.codec) = (version, codec);
            check(&made, &expected, &[]);
        }
    }

    #[test]
    fn what_the_kernel_printed_is_put_together_from_formats_beside() {
        let common = "field:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
            \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";
        let long =
            |name: &str, offset: u32| format!("\tfield:{name};\toffset:{offset};\tsize:8;\tsigned:0;\n");
        let ip = long("unsigned long ip", 8);
        let bprint = format!(
            "name: bprint\nID: 6\nformat:\n\t{common}\n{ip}{}\tfield:u32 buf[];\toffset:24;\tsize:0;\tsigned:0;\n\nprint fmt: \"%ps: %s\", (void *)REC->ip, REC->fmt\n",
            long("const char * fmt", 16)
        );
        let bputs = format!("name: bputs\nID: 14\nformat:\n\t{common}\n{ip}{}", long("const char * str", 16));
        let record = |id: u8, address: u64, arguments: &[u8]| {
            let common = [id, 0, 1, 1, 7, 0, 0, 0];
            [&common, &[0; 8], &address.to_le_bytes()[..], arguments].concat()
        };
        for (version, codec) in [("6", ""), ("7", "none"), ("7", "zstd")] {
            let mut fill = PageFill::default();
            fill.push(10, 0, &record(6, 0x10, b"\xff\xff\xff\xffcfs\0"));
            fill.push(20, 0, &record(14, 0x20, b""));
            fill.push(30, 0, &record(14, 0x30, b""));
            fill.push(40, 0, &record(6, 0x10, b"\xff\xff\xff\xffcfs!"));
            let mut made = TraceDatFixture::of_version(version).cpu(1, fill);
            made.codec = codec;
            made.printk = "0x10 : \"moved by %d on %s\\n\"\n0x20 : \"here\\n\"\n";
            made.formats.extend([("ftrace", bprint.clone()), ("ftrace", bputs.clone())]);
            let (lines, stats) = try_read(&made.bytes(), &ReadOptions::default()).expect("a trace.dat");
            assert_eq!(lines[1], "10 [1] Marker { text: \"moved by -1 on cfs\" }", "{version} {codec}");
            assert_eq!(lines[2], "20 [1] Marker { text: \"here\" }");
            assert_eq!(
                lines[3],
                "30 [1] Other { name: \"bputs\", fields: TextFields { text: \"ip=0 str=0x30\" } }"
            );
            assert_eq!((lines.len(), troubles(&stats)), (4, vec![(Trouble::MalformedEvent, 1)]));
        }
    }

    #[test]
    fn missed_events_stand_where_they_are_missing() {
        let mut fill = ticks(&[(10, 1)]);
        fill.lost(20, 0, Some(5));
        push_ticks(&mut fill, &[(20, 2)]);
        fill.lost(30, 0, None);
        push_ticks(&mut fill, &[(30, 3)]);
        for version in ["6", "7"] {
            check(
                &TraceDatFixture::of_version(version).cpu(1, fill_again(&fill)),
                &[
                    "10 [1] worker-7 n=1",
                    "20 [1] Lost { count: Some(5) }",
                    "20 [1] worker-7 n=2",
                    "30 [1] Lost { count: None }",
                    "30 [1] worker-7 n=3",
                ],
                &[(Trouble::LostEvents, 6)],
            );
        }
    }

    fn fill_again(_: &PageFill) -> PageFill {
        let mut fill = ticks(&[(10, 1)]);
        fill.lost(20, 0, Some(5));
        push_ticks(&mut fill, &[(20, 2)]);
        fill.lost(30, 0, None);
        push_ticks(&mut fill, &[(30, 3)]);
        fill
    }

    #[test]
    fn options_shift_the_clock_as_trace_cmd_does() {
        let made = |version| TraceDatFixture::of_version(version).cpu(0, ticks(&[(1000, 1)]));
        let tsc = [&3_u32.to_le_bytes()[..], &1_u32.to_le_bytes(), &77_u64.to_le_bytes()].concat();
        for version in ["6", "7"] {
            let offset = made(version).option(number::OFFSET, b"-0x10\0").option(number::OFFSET, b"5\0");
            check(&offset, &["989 [0] worker-7 n=1"], &[]);
            // Microseconds.
            check(&made(version).option(number::DATE, b"0x2\0"), &["3000 [0] worker-7 n=1"], &[]);
            let ticks = made(version).option(number::TSC2NSEC, &tsc).option(number::OFFSET, b"1");
            check(&ticks, &["1501 [0] worker-7 n=1"], &[]);
            let nothing_measured = made(version).option(number::TIME_SHIFT, &[0; 40]);
            check(&nothing_measured, &["1000 [0] worker-7 n=1"], &[]);
            let short = made(version).option(number::TIME_SHIFT, &[1; 40]);
            check(&short, &["1000 [0] worker-7 n=1"], &[(Trouble::CorruptRecord, 1)]);
        }
    }

    /// `TIME_SHIFT` of two CPUs: 100 is added on the first; on the second, stamps are halved and 7 is added.
    fn shift() -> Vec<u8> {
        let long = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let word = |value: u32| value.to_le_bytes().to_vec();
        let first = [word(1), long(&[5, 100, 1])].concat();
        let second = [word(2), long(&[0, 10_000, 7, 7, 1, 1])].concat();
        [long(&[0xfeed]), word(0), word(2), first, second, long(&[0, 1, 1])].concat()
    }

    #[test]
    fn a_guests_stamps_become_its_hosts_before_they_are_put_in_order() {
        for version in ["6", "7"] {
            let made = TraceDatFixture::of_version(version).option(number::TIME_SHIFT, &shift());
            let made = made.cpu(0, ticks(&[(1000, 1), (1100, 2)])).cpu(1, ticks(&[(2200, 3), (2600, 4)]));
            check(
                &made.cpu(2, ticks(&[(1150, 5)])),
                &[
                    "1100 [0] worker-7 n=1",
                    "1107 [1] worker-7 n=3",
                    "1150 [2] worker-7 n=5",
                    "1200 [0] worker-7 n=2",
                    "1307 [1] worker-7 n=4",
                ],
                &[],
            );
        }
    }

    /// The time of the only event.
    fn time_of(
        made: &TraceDatFixture,
        instance: Option<&str>,
        clock_hz: Option<u64>,
    ) -> Result<u64, ImportError> {
        let instance = instance.map(str::to_string);
        let (lines, stats) =
            try_read(&made.bytes(), &ReadOptions { clock_hz, instance, ..ReadOptions::default() })?;
        assert_eq!((lines.len(), stats.worst()), (2, None));
        Ok(lines[1].split(' ').next().expect("a time").parse().expect("a number"))
    }

    #[test]
    fn clocks_are_known_wherever_they_are_named() {
        let one = || ticks(&[(52_000, 1)]);
        let list = |name: &str| format!("local global [{name}]\n\0").into_bytes();
        let of_kernels =
            |name: &str| clock::OF_KERNELS.into_iter().find(|&(known, _)| known == name).expect("a clock").0;
        clock::check_all("version 6, behind the table", |name, hz| {
            let mut made =
                TraceDatFixture::of_version("6").cpu(0, one()).option(number::TRACECLOCK, b"local x86");
            made.instances[0].clock = of_kernels(name);
            time_of(&made, None, hz)
        });
        clock::check_all("version 7, the instance's own", |name, hz| {
            let made = TraceDatFixture::default().instance(of_kernels(name)).cpu(0, one());
            time_of(&made, None, hz)
        });
        for chosen in [None, Some("name")] {
            clock::check_all("version 7, the kernel's list, though the instance says local", |name, hz| {
                let made = TraceDatFixture::default().option(number::TRACECLOCK, &list(name));
                time_of(&made.instance("local").cpu(0, one()), chosen, hz)
            });
        }
        clock::check_all("version 7, statistics that agree", |name, hz| {
            let in_ns = clock::ClockUnit::of(name) == clock::ClockUnit::Nanoseconds;
            let now = if in_ns { "0.000053" } else { "53000" };
            let made = TraceDatFixture::default().option(number::TRACECLOCK, &list(name));
            let made = made.option(number::CPUSTAT, b"\nBuffer: name\n\n\0");
            let made = made.option(number::CPUSTAT, format!("CPU: 0\nnow ts: {now}\n\0").as_bytes());
            time_of(&made.instance("local").cpu(0, one()), None, hz)
        });
    }

    #[test]
    fn statistics_of_an_instance_tell_what_its_stamps_are() {
        let made = |now: &str, buffer: &[u8]| {
            let made = TraceDatFixture::default().option(number::TRACECLOCK, b"local [x86-tsc]\0");
            let made = made.option(number::CPUSTAT, buffer);
            let made = made.option(number::CPUSTAT, format!("CPU: 0\nnow ts: {now}\n").as_bytes());
            made.instance("local").cpu(0, ticks(&[(52_000, 1)]))
        };
        let buffer = b"\nBuffer: name\n\n";
        assert_eq!(time_of(&made("1.000053", buffer), None, None).expect("nanoseconds"), 52_000);
        assert!(time_of(&made("1.000053", b"\nBuffer: other\n\n"), None, None).is_err());
        assert_eq!(time_of(&made("53000", buffer), None, Some(1_000_000)).expect("ticks"), 52_000_000);
    }

    #[test]
    fn instances_are_merged_and_what_two_of_them_recorded_is_taken_once() {
        for version in ["6", "7"] {
            let made = TraceDatFixture::of_version(version).cpu(0, ticks(&[(10, 1), (30, 2)]));
            let made = made.instance("local").cpu(0, ticks(&[(11, 1), (31, 2)])).cpu(1, ticks(&[(5, 9)]));
            // Instance 1 has `tick` first.
            check(
                &made,
                &["5 [1] worker-7 n=9", "11 [0] worker-7 n=1", "31 [0] worker-7 n=2"],
                &[(Trouble::RecordedTwice, 2)],
            );
        }
        let other =
            TraceDatFixture::default().cpu(0, ticks(&[(10, 1)])).instance("boot").cpu(0, ticks(&[(5, 2)]));
        check(&other, &["10 [0] worker-7 n=1"], &[(Trouble::OtherClock, 1)]);
    }

    #[test]
    fn one_instance_can_be_chosen_whatever_its_clock() {
        let read = |version, wanted: Option<&str>| {
            let made = TraceDatFixture::of_version(version).cpu(0, ticks(&[(10, 1)]));
            let clock = if version == "6" { "local" } else { "boot" };
            let made = made.instance(clock).cpu(0, ticks(&[(11, 2)])).cpu(1, ticks(&[(5, 3)]));
            let options = ReadOptions { instance: wanted.map(str::to_string), ..ReadOptions::default() };
            try_read(&made.bytes(), &options)
        };
        for version in ["6", "7"] {
            let (lines, stats) = read(version, Some("top")).expect("a trace.dat");
            assert_eq!((&lines[1..], stats.worst()), (&["10 [0] worker-7 n=1".to_string()][..], None));
            assert_eq!(stats.instances, ["top"]);
            let (lines, stats) = read(version, Some("name")).expect("a trace.dat");
            assert_eq!(lines[1..], ["5 [1] worker-7 n=3", "11 [0] worker-7 n=2"]);
            assert_eq!((stats.worst(), stats.instances), (None, vec!["name".to_string()]));
            assert_eq!(read(version, None).expect("a trace.dat").1.instances, ["top", "name"]);
            let error = read(version, Some("other")).expect_err("no such instance").to_string();
            assert_eq!(error, "this trace.dat has no trace instance other; it has: top, name");
        }
        let (_, stats) =
            try_read(&TraceDatFixture::default().cpu(0, ticks(&[(10, 1)])).bytes(), &ReadOptions::default())
                .expect("a trace.dat");
        assert_eq!(stats.instances, [""; 0]);
    }

    #[test]
    fn dropped_events_that_the_recorder_counted_are_told() {
        let stats = b"CPU: 0\noverrun: 9\ncommit overrun: 1\ndropped events: 4\n\0";
        let made = TraceDatFixture::default().cpu(0, ticks(&[(10, 1)])).option(number::CPUSTAT, stats);
        check(&made, &["10 [0] worker-7 n=1"], &[(Trouble::LostEvents, 5)]);
    }

    #[test]
    fn pages_of_another_size_are_read() {
        for version in ["6", "7"] {
            let mut fill = ticks(&[(10, 1)]);
            fill.lost(20, 0, None);
            push_ticks(&mut fill, &[(20, 2)]);
            let pages = fill.finish();
            let mut made = TraceDatFixture::of_version(version);
            made.header_page = made.header_page.replace("size:4080", "size:8176");
            made.instances[0].page_bytes = 8192;
            let mut wide = pages.clone();
            wide.splice(4096..4096, [0; 4096]);
            wide.extend([0; 4096]);
            made.instances[0].cpus.push((0, wide));
            let expected = ["10 [0] worker-7 n=1", "20 [0] Lost { count: None }", "20 [0] worker-7 n=2"];
            check(&made, &expected, &[(Trouble::LostEvents, 1)]);
            made.instances[0].page_bytes = 1 << 30;
            if version == "7" {
                check(&made, &[], &[(Trouble::CorruptRecord, 1)]);
            }
        }
    }

    #[test]
    fn a_damaged_piece_costs_its_pages_and_is_told_as_a_loss() {
        let times: Vec<(u64, u64)> = (0..1000).map(|at| (at * 10, at)).collect();
        for codec in ["zlib", "zstd"] {
            let made = TraceDatFixture { codec, ..TraceDatFixture::default() }.cpu(0, ticks(&times));
            let mut bytes = made.bytes();
            let (whole, _) = try_read(&bytes, &ReadOptions::default()).expect("a trace.dat");
            assert_eq!(whole.len(), 1001);
            // zstd frames have no sum of their content: damage is reported where it spoils the frame's head.
            let at = match codec {
                "zstd" => memchr::memmem::rfind(&bytes, b"\x28\xb5\x2f\xfd").expect("a frame"),
                _ => bytes.len() - 400,
            };
            bytes[at..at + 40].fill(0x5a);
            let (lines, stats) = try_read(&bytes, &ReadOptions::default()).expect("a trace.dat");
            assert!((500..1000).contains(&lines.len()), "{codec}: {}", lines.len());
            assert!(stats.count(Trouble::CorruptRecord) == 1, "{codec}: {:?}", stats.troubles());
        }
    }

    #[test]
    fn events_behind_a_damaged_piece_follow_a_loss() {
        let times: Vec<(u64, u64)> = (0..1000).map(|at| (at * 10, at)).collect();
        let mut bytes =
            TraceDatFixture { codec: "zstd", ..TraceDatFixture::default() }.cpu(0, ticks(&times)).bytes();
        let frames: Vec<usize> = memchr::memmem::find_iter(&bytes, b"\x28\xb5\x2f\xfd").collect();
        let parts = 5;
        bytes[frames[parts]] = 0;
        let (lines, stats) = try_read(&bytes, &ReadOptions::default()).expect("a trace.dat");
        assert!(lines[1].ends_with("Lost { count: None }"), "{}", lines[1]);
        assert_eq!(troubles(&stats), [(Trouble::LostEvents, 1), (Trouble::CorruptRecord, 1)]);
    }

    #[test]
    fn a_file_that_ends_early_is_read_as_far_as_it_goes() {
        let times: Vec<(u64, u64)> = (0..1000).map(|at| (at * 10, at)).collect();
        let made = TraceDatFixture::of_version("6").cpu(0, ticks(&times[..500])).cpu(1, ticks(&times));
        let bytes = made.bytes();
        let (lines, stats) =
            try_read(&bytes[..bytes.len() - 6000], &ReadOptions::default()).expect("a trace.dat");
        assert!((1100..1400).contains(&lines.len()), "{}", lines.len());
        // Nothing is known of the CPU whose end is missing, from there on.
        assert!(
            lines.iter().any(|line| line.contains("[1]") && line.ends_with("Lost { count: None }")),
            "{lines:?}"
        );
        assert_eq!(troubles(&stats), [(Trouble::LostEvents, 1), (Trouble::TruncatedFile, 2)]);
        let short = &bytes[..bytes.len() - 30_000];
        check_refused(short, "it lacks all events of CPU 1");
        let whatever = ReadOptions { allow_unreadable: true, ..ReadOptions::default() };
        let (lines, stats) = try_read(short, &whatever).expect("a trace.dat");
        assert!(lines.len() < 500, "{}", lines.len());
        assert!(stats.count(Trouble::TruncatedFile) >= 2, "{:?}", stats.troubles());
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_a_reason() {
        let made = TraceDatFixture::default().cpu(0, ticks(&[(10, 1)]));
        let bytes = made.bytes();
        check_refused(b"", "no trace.dat");
        check_refused(&bytes[..15], "no trace.dat");
        check_refused(&bytes[..30], "before its first options");
        check_refused(&TraceDatFixture { version: "8", ..made.clone() }.bytes(), "version 8");
        check_refused(&TraceDatFixture { codec: "lzma", ..made.clone() }.bytes(), "compressed with lzma 1.0");
        check_refused(
            &TraceDatFixture { formats: Vec::new(), ..made.clone() }.bytes(),
            "no event descriptions",
        );
        check_refused(
            &TraceDatFixture { instances: Vec::new(), ..made.clone() }.bytes(),
            "trace-cmd restore",
        );
        check_refused(&made.clone().option(number::BUFFER_TEXT, b"").bytes(), "latency tracer");
        let linear = TraceDatFixture { version: "6", ..made }.bytes();
        check_refused(&linear[..linear.len() / 4], "before the table");
        let at = memchr::memmem::find(&linear, b"flyrecord").expect("a table");
        let mut text = linear.clone();
        text[at..at + 10].copy_from_slice(b"latency  \0");
        check_refused(&text, "latency tracer");
        text[at] = b'x';
        check_refused(&text, "cut or damaged at byte");
    }

    #[test]
    fn parts_that_are_not_needed_may_be_damaged() {
        let mut made = TraceDatFixture::default().cpu(0, ticks(&[(10, 1)]));
        made.header_page = "what".to_string();
        check(&made, &["10 [0] worker-7 n=1"], &[(Trouble::CorruptRecord, 1)]);
        let mut garbage = TraceDatFixture::default().cpu(0, ticks(&[(10, 1)]));
        garbage.formats.insert(1, ("sched", "garbage".to_string()));
        check(&garbage, &["10 [0] worker-7 n=1"], &[(Trouble::UnknownEventFormat, 1)]);
        let short = TraceDatFixture::default().cpu(0, ticks(&[(10, 1)])).option(number::BUFFER, b"123");
        check(&short, &["10 [0] worker-7 n=1"], &[(Trouble::CorruptRecord, 1)]);
        let nowhere = u64::MAX.to_le_bytes();
        let lost = TraceDatFixture::default().cpu(0, ticks(&[(10, 1)])).option(number::CMDLINES, &nowhere);
        check(&lost, &["10 [0] worker-7 n=1"], &[(Trouble::CorruptRecord, 1)]);
    }

    #[test]
    fn any_cut_and_any_flipped_bit_leave_the_reader_standing() {
        for (version, codec) in [("6", "none"), ("7", "none"), ("7", "zstd"), ("7", "zlib")] {
            let mut fill = ticks(&[(10, 1), (20, 2)]);
            fill.lost(30, 0, Some(3));
            let made = TraceDatFixture { version, codec, ..TraceDatFixture::default() }
                .cpu(0, fill)
                .cpu(1, ticks(&[(15, 1)]));
            // The formats in full would take long: one of a subsystem is enough.
            let mut made = made;
            made.formats.dedup_by_key(|(system, _)| *system);
            made.formats.retain(|(system, _)| *system != "sched");
            let bytes = made.bytes();
            let options = ReadOptions::default();
            // Within what is packed one place is as good as another.
            let step = if codec == "none" { 1 } else { 3 };
            for cut in (0..bytes.len()).step_by(if version == "6" { 7 } else { step }) {
                let _ = try_read_any(&bytes[..cut], &options);
            }
            for at in (0..bytes.len()).step_by(step) {
                if bytes[at] == 0 && at % 16 != 0 {
                    continue;
                }
                for damage in [0x01, 0x80] {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= damage;
                    let _ = try_read_any(&damaged, &options);
                }
            }
        }
    }

    /// As `try_read`, without a look at what the events are.
    fn try_read_any(bytes: &[u8], options: &ReadOptions) -> Result<ImportStats, ImportError> {
        let mut count = 0;
        let mut sink = sink_fn(|_: &Event<'_>| count += 1);
        let stats = read(bytes, options, &mut sink)?;
        drop(sink);
        assert_eq!(stats.events, count);
        Ok(stats)
    }
}
