//! `perf.data`: what `perf record` and `perf sched record` write.
//!
//! The file is read in two passes: one finds the records and their order of time, the other takes them in order. On two cores
//! both passes run at once, and only the order goes from one to the other. Tracepoint records are read by the descriptions in
//! the file. Memory does not grow with the trace. Input from a pipe, and what compressed records hold, is copied to a
//! temporary file first; reported places are those in the copy.
//!
//! Files of either byte order are read, those written to a pipe (`perf record -o -`), compressed ones (`perf record -z`), and
//! folders with a file per thread (`perf record --threads`).
//!
//! What no tracepoint tells of switches comes from `--switch-events`. These have no priorities and no wakeups, and do not
//! say whether a sleeping task can be interrupted.
//!
//! COMM records become [`TaskName`](fairlab_event::EventKind::TaskName), FORK records
//! [`TaskStart`](fairlab_event::EventKind::TaskStart), EXIT records [`TaskExit`](fairlab_event::EventKind::TaskExit). Those
//! about the time before the recording (time 0) come first.

mod deliver;
mod fairlab_notes;
#[cfg(test)]
mod fixture;
mod header;
mod machine;
mod order;
mod pipe;
mod records;
mod runs;
mod sample;
mod switches;
mod task_names;
mod unpack;
mod window;
mod writer;

pub use writer::PerfDataWriter;

use std::fs::File;
use std::io::{self, BufRead};
use std::path::Path;

use fairlab_event::{Sink, SwitchScope, System};

use crate::relay::relay;
use crate::store::Store;
use crate::{ImportError, ImportStats, ReadOptions, Trouble};
use deliver::PerfDelivery;
use header::Header;
use records::{SentHead, SentItem};
use runs::RunReader;
use switches::SwitchRecords;

/// Reads a `perf.data` that comes through a pipe or out of a decompressor.
///
/// What is longer than a few megabytes is copied to an unnamed file in `$TMPDIR` or `/var/tmp`.
///
/// # Errors
/// `source` or the temporary file fails, or it is no `perf.data` with tracepoints.
pub fn read(
    source: impl BufRead,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    read_store(&Store::spool(source)?, options, sink)
}

/// Reads a `perf.data` in place.
///
/// # Errors
/// The file cannot be read, or is no `perf.data` with tracepoints.
pub fn read_file(file: File, options: &ReadOptions, sink: &mut dyn Sink) -> Result<ImportStats, ImportError> {
    read_store(&Store::of(file, &options.read)?, options, sink)
}

/// The first file of a recording in several (`perf record --threads`).
const FIRST: &str = "data";

/// Whether `folder` is a recording in several files.
pub(crate) fn is_folder(folder: &Path) -> bool {
    folder.join(FIRST).is_file()
}

/// Reads a recording that `perf record --threads` made: a folder with a file of each thread.
///
/// # Errors
/// A file cannot be read, or the first is no `perf.data` with tracepoints.
pub fn read_folder(
    folder: &Path,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    let mut stats = nothing_read(options);
    let mut stores = vec![Store::file(File::open(folder.join(FIRST))?)?];
    let mut header = header::read(&stores[0], true, &mut stats)?;
    let mut start = stores[0].length();
    loop {
        match File::open(folder.join(format!("{FIRST}.{}", stores.len() - 1))) {
            Ok(file) => stores.push(Store::file(file)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error.into()),
        }
        let end = start + stores.last().map_or(0, Store::length);
        header.stretches.push(start..end);
        start = end;
    }
    read_records(&Store::Joined(stores), header, stats, sink)
}

/// The account before anything is read. Stamps are nanoseconds whatever the clock, so that no rate is of use.
fn nothing_read(options: &ReadOptions) -> ImportStats {
    let mut stats = ImportStats::default();
    if options.clock_hz.is_some() {
        stats.add(Trouble::ClockRateUnused, 1, 0);
    }
    stats
}

fn read_store(store: &Store, options: &ReadOptions, sink: &mut dyn Sink) -> Result<ImportStats, ImportError> {
    let mut stats = nothing_read(options);
    let header = header::read(store, false, &mut stats)?;
    read_records(store, header, stats, sink)
}

fn read_records(
    store: &Store,
    mut header: Header,
    mut stats: ImportStats,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    let unpacked;
    let store = if header.compressed {
        unpacked = unpack::unpack(store, &mut header, &mut stats)?;
        &unpacked
    } else {
        store
    };
    (header.switch_records, header.scope) = SwitchRecords::of(store, &header)?;
    let described = header.own.as_ref().map(|own| own.system.clone()).unwrap_or_default();
    let system = told_of_system(&header).or(&described);
    if !system.is_unknown() {
        sink.system(&system);
    }
    let mut delivery = PerfDelivery::new(&header, &mut stats, sink);
    let mut runs = RunReader::new(store, header.endian);
    let take = |head: &mut SentHead, content: &[u8]| match head.what {
        SentItem::Step(step) => runs.step(step, |record, position| delivery.ordered(record, position)),
        SentItem::Steps => {
            for step in records::steps(content) {
                runs.step(step, |record, position| delivery.ordered(record, position));
            }
        }
        SentItem::Unordered => delivery.unordered(content, head.position),
        SentItem::Trouble(trouble) => delivery.trouble(trouble, head.position),
    };
    relay(|outlet| records::find(store, &header, outlet), take)?;
    runs.finish()?;
    Ok(stats)
}

/// The kernel and the machine, as far as they have to do with what was recorded.
fn told_of_system(header: &Header) -> System {
    let system = System { scope: header.scope, ..header.system.clone() };
    match header.scope {
        // What stands for CPUs is none of the machine's.
        SwitchScope::TasksWithoutCpus => System { cpus: None, topology: Vec::new(), ..system },
        SwitchScope::Cpus | SwitchScope::Tasks => system,
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::{COMMON, PerfDataFixture, SAMPLE_TYPE, SWITCHES, format};
    use std::ops::Range;

    use super::*;
    use crate::Severity;
    use fairlab_event::{Event, EventKind, sink_fn};

    fn try_read(bytes: &[u8]) -> Result<(Vec<String>, ImportStats), ImportError> {
        let mut lines = Vec::new();
        let mut sink = sink_fn(|event: &Event<'_>| {
            let context = event.context;
            let flags = String::from_utf8_lossy(context.flags.as_bytes()).into_owned();
            let (time, cpu) = (event.time.0, event.cpu);
            lines.push(format!("{time} [{cpu}] {}-{} {flags} {:?}", context.comm, context.pid, event.kind));
        });
        let stats = read(bytes, &ReadOptions::default(), &mut sink)?;
        drop(sink);
        assert_eq!(stats.events, lines.len() as u64);
        Ok((lines, stats))
    }

    #[track_caller]
    fn check(made: &PerfDataFixture, expected: &[&str], troubles: &[(Trouble, u64)]) {
        let (lines, stats) = try_read(&made.bytes()).expect("a perf.data");
        assert_eq!(lines, expected);
        let found: Vec<_> = stats.troubles().iter().map(|count| (count.trouble, count.count)).collect();
        assert_eq!(found, troubles);
    }

    #[track_caller]
    fn check_refused(bytes: &[u8], why: &str) {
        let error = try_read(bytes).expect_err("no events").to_string();
        assert!(error.contains(why), "{error}");
    }

    const WAKING: &str =
        "SchedWaking(Wakeup { comm: \"w\", pid: Pid(7), prio: Prio(120), target_cpu: Cpu(1) })";

    #[test]
    fn a_rate_that_is_not_used_is_told() {
        let bytes = PerfDataFixture::default().bytes();
        let count = |clock_hz| {
            let options = ReadOptions { clock_hz, ..ReadOptions::default() };
            let stats = read(&bytes[..], &options, &mut ()).expect("a perf.data");
            (stats.count(Trouble::ClockRateUnused), stats.worst())
        };
        assert_eq!((count(None).0, count(Some(1))), (0, (1, Some(Severity::Warning))));
    }

    #[test]
    fn a_common_header_of_twelve_bytes_and_a_dynamic_comm_are_read() {
        check(&PerfDataFixture::default().waking(10, 7, "w"), &[&format!("10 [1] -5 d..2. {WAKING}")], &[]);
    }

    #[test]
    fn task_records_name_the_context_and_records_of_time_zero_come_first() {
        let made = PerfDataFixture::default()
            .waking(10, 7, "w")
            .fork(15, 9, 5)
            .waking(20, 7, "w")
            .comm(0, 5, "early");
        check(
            &made,
            &[
                "0 [3] -6  TaskName { pid: Pid(5), tgid: Pid(4), comm: \"early\" }",
                &format!("10 [1] early-5 d..2. {WAKING}"),
                "15 [3] -6  TaskStart { pid: Pid(9), tgid: Pid(9), parent_pid: Pid(5) }",
                &format!("20 [1] early-5 d..2. {WAKING}"),
            ],
            &[],
        );
    }

    #[test]
    fn buffers_of_several_cpus_are_put_in_order_and_latecomers_counted() {
        let times = |made: &PerfDataFixture| {
            let (lines, stats) = try_read(&made.bytes()).expect("a perf.data");
            let time = |line: &String| line.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0);
            (lines.iter().map(time).collect::<Vec<u64>>(), stats.count(Trouble::OutOfOrder))
        };
        let add = |made: PerfDataFixture, time| made.waking(time, 7, "w");
        let first = [10, 30, 5, 20].into_iter().fold(PerfDataFixture::default(), add).round();
        let second = [40, 60, 25, 50].into_iter().fold(first, add).round();
        assert_eq!(times(&second), (vec![5, 10, 20, 25, 30, 40, 50, 60], 0));
        let late = [70, 2].into_iter().fold(second.round(), add);
        assert_eq!(times(&late), (vec![5, 10, 20, 25, 30, 40, 50, 60, 2, 70], 1));
    }

    #[test]
    fn losses_are_told_once() {
        let count = |count: u64| count.to_le_bytes();
        let made = PerfDataFixture::default()
            .with_trailer(2, 0, &[count(77), count(3)].concat(), 10)
            .with_trailer(13, 0, &count(2), 20)
            .with_trailer(13, 0, &count(4), 20)
            .with_trailer(13, 1 << 14, &count(1000), 20);
        let lost = |count: u64, time: u64| format!("{time} [3] -6  Lost {{ count: Some({count}) }}");
        check(&made, &[&lost(3, 10), &lost(3, 20)], &[(Trouble::LostEvents, 6), (Trouble::SkippedRecord, 2)]);
    }

    #[test]
    fn other_samples_and_records_are_passed_over() {
        let mut made =
            PerfDataFixture::default().record(68, 0, &[]).record(10, 0, &[0; 64]).waking(10, 7, "w");
        made.attrs.push((0, SAMPLE_TYPE, vec![78]));
        let mut cycles = made.clone().waking(20, 7, "w");
        let at = made.records.len() + 8;
        cycles.records[at] = 78;
        check(&cycles, &[&format!("10 [1] -5 d..2. {WAKING}")], &[(Trouble::SkippedRecord, 3)]);
        cycles.records[at] = 79;
        check(
            &cycles,
            &[&format!("10 [1] -5 d..2. {WAKING}")],
            &[(Trouble::CorruptRecord, 1), (Trouble::SkippedRecord, 2)],
        );
    }

    /// As `perf record --switch-events -a` writes it.
    #[test]
    fn records_of_switches_are_switches() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let made = PerfDataFixture {
            attrs: vec![(SWITCHES, SAMPLE_TYPE, vec![78])],
            formats: Vec::new(),
            ..PerfDataFixture::default()
        };
        let switch = |state: &str, time: u64, next: i32| {
            format!(
                "{time} [3] a-6  SchedSwitch(Switch {{ prev_comm: \"a\", prev_pid: Pid(6), prev_prio: Prio(120), prev_state: {state}, \
                 next_comm: {}, next_pid: Pid({next}), next_prio: Prio(120) }})",
                if next == 0 { "\"swapper\"" } else { "\"\"" }
            )
        };
        let name = "0 [3] a-6  TaskName { pid: Pid(6), tgid: Pid(4), comm: \"a\" }".to_string();
        let wide = made
            .clone()
            .comm(0, 6, "a")
            .with_trailer(15, OUT | PREEMPT, &words(&[8, 9]), 10)
            .with_trailer(15, 0, &words(&[4, 6]), 11)
            .with_trailer(15, OUT, &words(&[8, 9]), 20)
            .with_trailer(4, 0, &words(&[4, 4, 6, 6, 0, 0]), 25)
            .with_trailer(15, OUT, &words(&[0, 0]), 30);
        let exit = "25 [3] a-6  TaskExit { pid: Pid(6), tgid: Pid(4) }".to_string();
        let lines = [name.clone(), switch("R", 10, 9), switch("S", 20, 9), exit, switch("X", 30, 0)];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        check(&wide, &lines, &[(Trouble::SwitchesWithoutState, 3)]);
        // The attr is a record there.
        let troubles = [(Trouble::SkippedRecord, 1), (Trouble::SwitchesWithoutState, 3)];
        check(&PerfDataFixture { pipe: true, ..wide }, &lines, &troubles);
        let own = made.comm(0, 6, "a").with_trailer(14, OUT, &[], 10).with_trailer(14, 0, &[], 20);
        let comes = "20 [3] swapper-0  SchedSwitch(Switch { prev_comm: \"swapper\", prev_pid: Pid(0), prev_prio: Prio(120), \
                     prev_state: R, next_comm: \"a\", next_pid: Pid(6), next_prio: Prio(120) })";
        check(&own, &[&name, &switch("S", 10, 0), comes], &[(Trouble::OwnSwitches, 2)]);
    }

    /// Time, CPU, who leaves and who comes.
    type SeenSwitch = (u64, u32, i32, i32);

    fn switches(made: &PerfDataFixture) -> (Vec<SeenSwitch>, ImportStats, SwitchScope) {
        #[derive(Default)]
        struct Switches(Vec<SeenSwitch>, SwitchScope);
        impl Sink for Switches {
            fn event(&mut self, event: &Event<'_>) {
                if let EventKind::SchedSwitch(switch) = &event.kind {
                    self.0.push((event.time.0, event.cpu.0, switch.prev_pid.0, switch.next_pid.0));
                }
            }

            fn system(&mut self, system: &System) {
                self.1 = system.scope;
            }
        }
        let mut found = Switches::default();
        let stats = read(&made.bytes()[..], &ReadOptions::default(), &mut found).expect("a perf.data");
        (found.0, stats, found.1)
    }

    const OUT: u16 = 1 << 13;
    const PREEMPT: u16 = 1 << 14;
    /// `PERF_SAMPLE_CPU`.
    const WITHOUT_CPU: u64 = SAMPLE_TYPE & !(1 << 7);

    /// A record of thread `tid` that tells no CPU.
    fn without_cpu(made: PerfDataFixture, kind: u32, misc: u16, tid: u32, time: u64) -> PerfDataFixture {
        let body =
            if kind == 4 { [4_u32, 4, tid, tid, 0, 0].map(u32::to_le_bytes).concat() } else { Vec::new() };
        let [who, when] = [[4, tid].map(u32::to_le_bytes).concat(), time.to_le_bytes().to_vec()];
        made.record(kind, misc, &[body, who, when, 77_u64.to_le_bytes().to_vec()].concat())
    }

    /// The one that ends leaves its own at its EXIT, and no more.
    #[test]
    fn threads_without_cpus_stand_on_one_of_their_own() {
        let made = PerfDataFixture {
            attrs: vec![(SWITCHES, WITHOUT_CPU, vec![78])],
            formats: Vec::new(),
            ..PerfDataFixture::default()
        };
        let records = [
            (14, OUT | PREEMPT, 6, 10),
            (14, 0, 7, 11),
            (14, 0, 6, 12),
            (4, 0, 7, 13),
            (14, OUT, 7, 14),
            (14, 0, 8, 15),
        ];
        let add = |made, (kind, misc, tid, time)| without_cpu(made, kind, misc, tid, time);
        let made = records.into_iter().fold(made, add);
        let expected = vec![(10, 0, 6, 0), (11, 1, 0, 7), (12, 0, 0, 6), (13, 1, 7, 0), (15, 1, 0, 8)];
        for pipe in [false, true] {
            let (found, stats, scope) = switches(&PerfDataFixture { pipe, ..made.clone() });
            assert_eq!((found, scope), (expected.clone(), SwitchScope::TasksWithoutCpus), "pipe: {pipe}");
            assert_eq!(stats.count(Trouble::SwitchesWithoutCpu), 4);
        }
        // Where other events have CPUs, threads are not put on some.
        let beside = PerfDataFixture {
            attrs: vec![(SWITCHES, WITHOUT_CPU, vec![78]), (2, WITHOUT_CPU, vec![79])],
            ..PerfDataFixture::default()
        };
        let (found, _, scope) = switches(&without_cpu(beside, 14, OUT, 6, 10));
        assert_eq!((found, scope), (Vec::new(), SwitchScope::Cpus));
    }

    fn sched_switch(time: u64, cpu: u32, prev: u32, next: u32) -> (u64, u32, Vec<u8>) {
        let mut raw = [&301_u16.to_le_bytes()[..], &[0; 6], b"a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"].concat();
        raw.extend([prev, 120].map(u32::to_le_bytes).concat());
        raw.extend([0; 8]);
        raw.extend(b"b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        raw.extend([next, 120].map(u32::to_le_bytes).concat());
        (time, cpu, raw)
    }

    /// What `-e sched:sched_switch --switch-events` of one program tells: who leaves by the tracepoint, who comes by the
    /// record, unless the tracepoint told it.
    #[test]
    fn records_tell_what_tracepoints_of_some_tasks_do_not() {
        let own = [
            ("char prev_comm[16]", 8, 16, 0),
            ("pid_t prev_pid", 24, 4, 1),
            ("int prev_prio", 28, 4, 1),
            ("long prev_state", 32, 8, 1),
            ("char next_comm[16]", 40, 16, 0),
            ("pid_t next_pid", 56, 4, 1),
            ("int next_prio", 60, 4, 1),
        ];
        let made = PerfDataFixture {
            attrs: vec![(2, SAMPLE_TYPE, vec![77]), (SWITCHES, SAMPLE_TYPE, vec![78])],
            formats: vec![("sched", format("sched_switch", 301, &[&COMMON[..], &own].concat(), "\"x\""))],
            ..PerfDataFixture::default()
        };
        let sample =
            |made: PerfDataFixture, (time, cpu, raw): (u64, u32, Vec<u8>)| made.sample(time, cpu, &raw);
        // The fixture's records are of thread 6 on CPU 3.
        let made = sample(made, sched_switch(10, 3, 6, 9)).with_trailer(14, OUT | PREEMPT, &[], 11);
        let made = made.with_trailer(14, 0, &[], 20);
        let made = sample(made, sched_switch(30, 3, 6, 7)).with_trailer(14, OUT, &[], 31);
        let made = sample(made, sched_switch(40, 3, 7, 6)).with_trailer(14, 0, &[], 41);
        let made = made.with_trailer(14, OUT, &[], 50);
        let told = [(10, 6, 9), (20, 0, 6), (30, 6, 7), (40, 7, 6), (50, 6, 0)];
        let (found, stats, scope) = switches(&made);
        assert_eq!(found, told.map(|(time, prev, next)| (time, 3, prev, next)));
        assert_eq!((stats.count(Trouble::OwnSwitches), scope), (2, SwitchScope::Tasks));
        // System-wide, tracepoints tell all.
        let words = [8_u32, 9].map(u32::to_le_bytes).concat();
        let wide = PerfDataFixture { records: Vec::new(), ..made };
        let wide = sample(wide, sched_switch(10, 3, 6, 9)).with_trailer(15, OUT, &words, 11);
        let (found, stats, scope) = switches(&wide);
        assert_eq!((found, scope), (vec![(10, 3, 6, 9)], SwitchScope::Cpus));
        assert_eq!(stats.count(Trouble::SkippedRecord), 1);
        // Tracepoints of other events tell none.
        let others = PerfDataFixture { attrs: wide.attrs, ..PerfDataFixture::default() };
        let others = others.waking(5, 6, "a").with_trailer(15, OUT, &words, 11);
        let (found, stats, scope) = switches(&others);
        assert_eq!((found, scope), (vec![(11, 3, 6, 9)], SwitchScope::Cpus));
        assert_eq!(stats.count(Trouble::SwitchesWithoutState), 1);
    }

    #[test]
    fn what_the_file_does_not_describe_is_counted() {
        let unknown = PerfDataFixture::default()
            .sample(10, 0, &[45, 1, 0, 0])
            .sample(20, 0, &[44, 1, 0, 0])
            .sample(30, 0, &[44]);
        check(&unknown, &[], &[(Trouble::MalformedEvent, 2), (Trouble::UnknownEventFormat, 1)]);
        let mut garbage = PerfDataFixture::default().waking(10, 7, "w");
        garbage.formats.push(("sched", "garbage".to_string()));
        check(&garbage, &[&format!("10 [1] -5 d..2. {WAKING}")], &[(Trouble::UnknownEventFormat, 1)]);
    }

    #[test]
    fn garbage_between_records_is_skipped_and_a_torn_record_ends_the_reading() {
        let mut made = PerfDataFixture::default().waking(10, 7, "w");
        made.records.extend([0; 24]);
        made.records.extend([0xff; 16]);
        let mut made = made.waking(20, 7, "w").waking(30, 7, "w");
        made.records.truncate(made.records.len() - 8);
        check(
            &made,
            &[&format!("10 [1] -5 d..2. {WAKING}"), &format!("20 [1] -5 d..2. {WAKING}")],
            &[(Trouble::TruncatedFile, 1), (Trouble::CorruptRecord, 1)],
        );
    }

    #[test]
    fn hardware_trace_is_stepped_over() {
        let mut made = PerfDataFixture::default().record(71, 0, &[24_u64.to_le_bytes(), [0; 8]].concat());
        made.records.extend([9; 24]);
        check(
            &made.waking(20, 7, "w"),
            &[&format!("20 [1] -5 d..2. {WAKING}")],
            &[(Trouble::SkippedRecord, 1)],
        );
        let endless = PerfDataFixture::default().waking(10, 7, "w").record(71, 0, &u64::MAX.to_le_bytes());
        check(&endless, &[&format!("10 [1] -5 d..2. {WAKING}")], &[(Trouble::SkippedRecord, 1)]);
    }

    #[test]
    fn probes_markers_and_unknown_events_keep_their_fields() {
        let mut made = PerfDataFixture::default();
        let probe = [&COMMON[..], &[("unsigned long __probe_ip", 8, 8, 0), ("s32 vlag", 16, 4, 1)]].concat();
        let print = [&COMMON[..], &[("unsigned long ip", 8, 8, 0), ("char buf[]", 16, 0, 0)]].concat();
        let other = [&COMMON[..], &[("int irq", 8, 4, 1), ("__data_loc char[] name", 12, 4, 0)]].concat();
        made.formats.push(("probes", format("place", 400, &probe, "\"\"")));
        made.formats.push(("ftrace", format("print", 5, &print, "\"\"")));
        made.formats.push(("irq", format("irq_handler_entry", 500, &other, "\"\"")));
        let raw = |id: u16, rest: &[u8]| [&id.to_le_bytes()[..], &[0; 6], rest].concat();
        let made = made
            .sample(10, 0, &raw(400, b"\x10\0\0\0\0\0\0\0\xfe\xff\xff\xff"))
            .sample(20, 0, &raw(5, b"\0\0\0\0\0\0\0\0hello\n\0\0"))
            .sample(30, 0, &raw(500, b"\x09\0\0\0\x10\0\x04\0eth\0"));
        check(
            &made,
            &[
                "10 [0] -5 ..... Kprobe { name: \"place\", fields: TextFields { text: \"(0x10) vlag=-2\" } }",
                "20 [0] -5 ..... Marker { text: \"hello\" }",
                "30 [0] -5 ..... Other { name: \"irq_handler_entry\", fields: TextFields { text: \"irq=9 name=eth\" } }",
            ],
            &[],
        );
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_a_reason() {
        let good = PerfDataFixture::default().waking(10, 7, "w");
        let bytes = good.bytes();
        check_refused(b"", "does not begin with PERFILE2");
        check_refused(&bytes[..103], "ends within its header");
        check_refused(&bytes[..300], "is cut");
        let mut unfinished = PerfDataFixture::default().bytes();
        let (records_at, formats) = (104 + 8 + 80, unfinished.len());
        unfinished[records_at..formats].fill(7);
        check_refused(&unfinished, "never finished");
        check(&PerfDataFixture::default(), &[], &[]);
        check_refused(&PerfDataFixture { features: vec![24], ..good.clone() }.bytes(), "give the folder");
        check_refused(&PerfDataFixture { attrs: Vec::new(), ..good.clone() }.bytes(), "no tracepoint");
        let counters = PerfDataFixture { attrs: Vec::new(), ..good.clone() }.record(85, 0, &[0; 64]);
        check_refused(&counters.bytes(), "perf sched stats");
        check_refused(
            &PerfDataFixture { attrs: vec![(0, SAMPLE_TYPE, vec![77])], ..good.clone() }.bytes(),
            "no tracepoint",
        );
        check_refused(
            &PerfDataFixture { attrs: vec![(2, SAMPLE_TYPE & !4, vec![77])], ..good.clone() }.bytes(),
            "without time",
        );
        check_refused(
            &PerfDataFixture { formats: Vec::new(), ..good.clone() }.bytes(),
            "no event descriptions",
        );
        check_refused(
            &PerfDataFixture { formats: Vec::new(), pipe: true, ..good.clone() }.bytes(),
            "no event descriptions",
        );
        check_refused(&PerfDataFixture { attrs: Vec::new(), pipe: true, ..good }.bytes(), "no tracepoint");
        let odd_attrs = [&bytes[..16], &7_u64.to_le_bytes(), &bytes[24..]].concat();
        check_refused(&odd_attrs, "an attr of 7 bytes");
    }

    /// What `made` would be like in every shape that perf writes.
    fn shapes(make: impl Fn(PerfDataFixture) -> PerfDataFixture) -> Vec<(String, PerfDataFixture)> {
        let mut shapes = Vec::new();
        for (big, pipe) in [(false, false), (false, true), (true, false), (true, true)] {
            let made = make(PerfDataFixture { big, pipe, ..PerfDataFixture::default() });
            for (piece, padded) in [(9, false), (9, true), (1 << 20, false), (1 << 20, true)] {
                let name = format!("big {big} pipe {pipe} pieces of {piece} padded {padded}");
                shapes.push((name, made.clone().compressed(piece, padded)));
            }
            shapes.push((format!("big {big} pipe {pipe}"), made));
        }
        shapes
    }

    #[test]
    fn every_shape_holds_the_same_events() {
        let make = |made: PerfDataFixture| {
            let made = made
                .comm(0, 5, "early")
                .waking(10, 7, "w")
                .round()
                .waking(9, 7, "longer name")
                .fork(15, 9, 5);
            let made = made.waking(20, 9, "w").with_trailer(2, 0, &[0; 16], 21);
            (0..2000).fold(made, |made, at| made.waking(30 + at, 7, "x")).round()
        };
        let (expected, stats) = try_read(&make(PerfDataFixture::default()).bytes()).expect("a perf.data");
        assert_eq!(
            (expected.len(), stats.worst()),
            (2006, Some(Severity::DataLoss)),
            "{:?}",
            stats.troubles()
        );
        for (shape, made) in shapes(make) {
            let (lines, found) = try_read(&made.bytes()).expect(&shape);
            assert_eq!(lines, expected, "{shape}");
            assert_eq!(found.count(Trouble::LostEvents), stats.count(Trouble::LostEvents), "{shape}");
        }
    }

    #[test]
    fn a_damaged_stream_is_read_up_to_the_damage_and_on_from_where_another_begins() {
        let add = |times: Range<u64>| {
            times.fold(PerfDataFixture::default(), |made, at| made.waking(10 + at, 7, "x"))
        };
        let first = add(0..500).compressed(1000, false);
        let second = add(500..600).compressed(1 << 20, false);
        let check = |records: [&[u8]; 2], events: usize, corrupt: Range<u64>| {
            let (lines, stats) =
                try_read(&PerfDataFixture { records: records.concat(), ..first.clone() }.bytes())
                    .expect("a perf.data");
            assert_eq!(lines.len(), events);
            assert!(corrupt.contains(&stats.count(Trouble::CorruptRecord)), "{:?}", stats.troubles());
        };
        check([&first.records, &second.records], 600, 0..1);
        // The first kilobyte holds ten records whole.
        let at = usize::from(u16::from_le_bytes([first.records[6], first.records[7]]));
        let mut damaged = first.records.clone();
        damaged[at + 8] = 0xff;
        check([&damaged, &second.records], 110, 40..60);
        damaged[at..at + 8].fill(0);
        check([&damaged, &second.records], 10, 1..3);
    }

    #[test]
    fn any_cut_and_any_flipped_bit_leave_the_reader_standing() {
        let make = |made: PerfDataFixture| {
            made.comm(0, 5, "a").waking(10, 7, "w").round().fork(15, 9, 5).waking(20, 7, "w").round()
        };
        // Plain, to a pipe, and two compressed ones.
        let shapes = shapes(make);
        for (_, made) in [4, 9, 3, 15].map(|shape| &shapes[shape]) {
            let bytes = made.bytes();
            for cut in 0..bytes.len() {
                let _ = try_read(&bytes[..cut]);
            }
            for at in 0..bytes.len() {
                for value in [bytes[at] ^ 1, bytes[at] ^ 0x80, 0, 0x7f, 0xff] {
                    let mut damaged = bytes.clone();
                    damaged[at] = value;
                    let _ = try_read(&damaged);
                }
            }
        }
    }
}
