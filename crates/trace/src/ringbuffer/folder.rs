//! A folder laid out as tracefs is, with a copy of each CPU's `trace_pipe_raw`.
//!
//! Must not know: containers.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use fairlab_event::{Cpu, Event, EventKind, Ns, Sink};

use super::deliver::{DecodingTables, deliver};
use super::page::{PageFormat, PageHead};
use super::stored::{StoredPages, piece_bytes};
use super::stream::CpuStream;
use super::tasks::ThreadTable;
use crate::clock::{ClockFacts, TraceClock};
use crate::endian::Endian;
use crate::store::Store;
use crate::tracepoint::Tracepoints;
use crate::{ImportError, ImportStats, ReadOptions, Trouble};

/// The longest of the small files: tables with a line for each of all threads that a kernel can have.
const TEXT_BYTES_MAX: u64 = 64 << 20;

/// Reads a folder laid out as tracefs is: pages as they come out of `trace_pipe_raw`, one after another, in
/// `per_cpu/cpuN/trace_pipe_raw`; `events/header_page`; `events/SYSTEM/EVENT/format` of the recorded events, and
/// `events/ftrace/print/format` where markers are wanted. Used where they are there: `trace_clock`, `saved_cmdlines`
/// (its names become [`TaskName`](EventKind::TaskName) events of time 0), `saved_tgids` and `printk_formats`.
///
/// # Errors
/// A file cannot be read, or there are no pages or no descriptions.
pub fn read_raw_folder(
    folder: &Path,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    let mut stats = ImportStats::default();
    let header_page = text(&folder.join("events/header_page"))?.ok_or_else(|| {
        ImportError::NotATrace("this folder holds no trace: events/header_page is missing".to_string())
    })?;
    let stores = stores(folder)?;
    if stores.is_empty() {
        return Err(ImportError::NotATrace(
            "this folder holds no trace: there is no per_cpu/cpuN/trace_pipe_raw".to_string(),
        ));
    }
    let (endian, page) = page_format(&header_page, &stores)?;
    let tracepoints = tracepoints(folder, endian, &mut stats)?;
    let mut tasks = ThreadTable::default();
    tasks.add_tgids(text(&folder.join("saved_tgids"))?.unwrap_or_default().as_bytes());
    let cmdlines = text(&folder.join("saved_cmdlines"))?.unwrap_or_default();
    for (pid, comm) in tasks.add_cmdlines(cmdlines.as_bytes()) {
        let kind = EventKind::TaskName { pid, tgid: tasks.get(pid).tgid, comm };
        sink.event(&Event::new(Ns::ZERO, Cpu(0), kind));
        stats.events += 1;
    }
    let trace_clock = text(&folder.join("trace_clock"))?.unwrap_or_default();
    let name = ClockFacts::name_of(&[ClockFacts::selected(&trace_clock)], stats_in_ns(folder, &stores)?);
    let facts = ClockFacts { name: name.to_string(), ..ClockFacts::default() };
    let clock = TraceClock::new(&facts, options)?;
    let piece = piece_bytes(stores.len());
    let streams: Vec<CpuStream<'_>> = stores
        .iter()
        .map(|(cpu, store)| {
            let pages = StoredPages::new(store, 0, store.length(), page.size(), piece);
            CpuStream::new(*cpu, 0, endian, page, Box::new(pages))
        })
        .collect();
    let knowledge = DecodingTables { tracepoints, clock, tasks, flag_columns: None };
    deliver(streams, knowledge, sink, &mut stats)?;
    Ok(stats)
}

/// What the statistics of the CPUs show of the clock, where they are there.
fn stats_in_ns(folder: &Path, stores: &[(Cpu, Store)]) -> io::Result<Option<bool>> {
    for (cpu, _) in stores {
        let stats = text(&folder.join(format!("per_cpu/cpu{cpu}/stats")))?.unwrap_or_default();
        if let Some(in_ns) = ClockFacts::stats_in_ns(&stats) {
            return Ok(Some(in_ns));
        }
    }
    Ok(None)
}

/// Whether a folder is laid out so: it describes its pages, and has a place for each CPU's.
pub(crate) fn is_raw_folder(folder: &Path) -> bool {
    folder.join("events/header_page").is_file() && folder.join("per_cpu").is_dir()
}

/// The text of a file; `None` where there is none.
fn text(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The names in a folder, sorted; none where there is no such folder.
fn names(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        names.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    names.sort_unstable();
    Ok(names)
}

/// The pages of each CPU, by its number.
fn stores(folder: &Path) -> io::Result<Vec<(Cpu, Store)>> {
    let mut stores = Vec::new();
    for (name, path) in names(&folder.join("per_cpu"))? {
        let Some(cpu) = name.strip_prefix("cpu").and_then(|number| number.parse().ok()) else { continue };
        match File::open(path.join("trace_pipe_raw")) {
            Ok(file) => stores.push((Cpu(cpu), Store::file(file)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    stores.sort_unstable_by_key(|&(cpu, _)| cpu);
    Ok(stores)
}

/// Every event that is described.
fn tracepoints(folder: &Path, endian: Endian, stats: &mut ImportStats) -> Result<Tracepoints, ImportError> {
    let mut tracepoints = Tracepoints::new(endian);
    for (system, path) in names(&folder.join("events"))? {
        for (_, event) in names(&path)? {
            let Some(format) = text_of_format(&event.join("format"))? else { continue };
            if !tracepoints.add(&system, &format) {
                stats.add(Trouble::UnknownEventFormat, 1, 0);
            }
        }
    }
    if let Some(printk) = text(&folder.join("printk_formats"))? {
        tracepoints.add_printk(&printk);
    }
    if tracepoints.len() == 0 {
        return Err(ImportError::NotATrace(
            "this folder describes no events: there is no events/SYSTEM/EVENT/format".to_string(),
        ));
    }
    Ok(tracepoints)
}

/// As `text`, but what lies beside the events' folders is passed over.
fn text_of_format(path: &Path) -> io::Result<Option<String>> {
    match text(path) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
        other => other,
    }
}

/// Pages do not say in which byte order they are: it is the one in which more of the first ones are pages.
fn page_format(header_page: &str, stores: &[(Cpu, Store)]) -> Result<(Endian, PageFormat), ImportError> {
    let mut best = None;
    for endian in [Endian::Little, Endian::Big] {
        let Some(format) = PageFormat::parse(endian, header_page) else { continue };
        let mut fitting = 0;
        for (_, store) in stores {
            let page = store.read_section(0, format.size() as u64)?;
            fitting += usize::from(page.is_empty() || PageHead::read(&format, &page).is_ok());
        }
        if best.is_none_or(|(most, _, _)| fitting > most) {
            best = Some((fitting, endian, format));
        }
    }
    match best {
        Some((1.., endian, format)) => Ok((endian, format)),
        Some(_) => Err(ImportError::NotATrace(
            "what stands in trace_pipe_raw are no pages as events/header_page describes them".to_string(),
        )),
        None => Err(ImportError::NotATrace("events/header_page does not describe pages".to_string())),
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::{Pid, Prio, Switch, TaskState, TextFields, sink_fn};

    use super::super::fill::{PageFill, RECORD_BYTES_MAX};
    use super::*;
    use crate::clock;
    use crate::tracepoint::encoder::RecordEncoder;

    /// A folder of one test, removed with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("fairlab-folder-{}-{name}", std::process::id()));
            let folder = Folder(path);
            folder.put("events/header_page", HEADER_PAGE.as_bytes());
            folder
        }

        fn put(&self, name: &str, bytes: &[u8]) {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder for the test");
            fs::write(path, bytes).expect("a file for the test");
        }

        fn read(&self) -> Result<(Vec<String>, ImportStats), ImportError> {
            let mut lines = Vec::new();
            let mut sink = sink_fn(|event: &Event<'_>| {
                let Event { time, cpu, context, kind } = event;
                lines.push(format!(
                    "{} [{cpu}] {}-{}/{} {}",
                    time.0,
                    context.comm,
                    context.pid,
                    context.tgid,
                    kind.name()
                ));
            });
            let stats = read_raw_folder(&self.0, &ReadOptions::default(), &mut sink)?;
            drop(sink);
            assert_eq!(stats.events, lines.len() as u64);
            Ok((lines, stats))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    /// A folder with pages of two CPUs, of which CPU 10 comes before CPU 2 by name.
    fn recorded(name: &str) -> Folder {
        let folder = Folder::new(name);
        let mut encoder = RecordEncoder::new(RECORD_BYTES_MAX);
        let mut record = Vec::new();
        for cpu in [2, 10] {
            let mut fill = PageFill::default();
            for time in 0..200 {
                let mut event =
                    Event::new(Ns(1000 + time * 10 + cpu), Cpu(0), EventKind::Marker { text: "x" });
                event.context.pid = Pid(7);
                if time == 100 {
                    event.kind = EventKind::Other { name: "tick", fields: TextFields::new("a=1") };
                }
                encoder.encode(&event, &mut record);
                fill.push(event.time.0, 0, &record);
            }
            folder.put(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"), &fill.finish());
        }
        for (system, format) in encoder.formats() {
            let name = format.lines().next().expect("a name")[6..].to_string();
            folder.put(&format!("events/{system}/{name}/format"), format.as_bytes());
        }
        folder.put("events/enable", b"0");
        folder.put("events/sched/enable", b"0");
        folder
    }

    #[test]
    fn a_copy_of_tracefs_is_read() {
        let folder = recorded("whole");
        folder.put("saved_cmdlines", b"7 worker\n8 other\n");
        folder.put("saved_tgids", b"7 6\n");
        folder.put("trace_clock", b"local [mono] boot\n");
        folder.put("per_cpu/cpu3/stats", b"entries: 0");
        folder.put("per_cpu/cpu4/trace_pipe_raw", b"");
        let (lines, stats) = folder.read().expect("a trace");
        assert_eq!((lines.len(), stats.worst()), (402, None));
        assert_eq!(lines[0], "0 [0] --1/-1 task_name");
        assert_eq!(lines[2], "1002 [2] worker-7/6 tracing_mark_write");
        assert_eq!(lines[3], "1010 [10] worker-7/6 tracing_mark_write");
        assert!(lines.contains(&"2010 [10] worker-7/6 tick".to_string()));
    }

    #[test]
    fn names_and_clock_may_be_missing_and_ticks_are_refused() {
        let folder = recorded("bare");
        let (lines, stats) = folder.read().expect("a trace");
        assert_eq!((lines.len(), stats.worst()), (400, None));
        assert_eq!(lines[0], "1002 [2] -7/-1 tracing_mark_write");
        folder.put("trace_clock", b"local [x86-tsc]\n");
        let refused = folder.read().expect_err("ticks of an untold rate").to_string();
        assert!(refused.contains("'x86-tsc'") && refused.contains("--clock-hz"), "{refused}");
    }

    #[test]
    fn the_clock_is_that_of_its_file_or_what_statistics_show() {
        let folder = recorded("clocks");
        let first = |clock_hz| {
            let mut first = None;
            let mut sink = sink_fn(|event: &Event<'_>| {
                first.get_or_insert(event.time.0);
            });
            let read =
                read_raw_folder(&folder.0, &ReadOptions { clock_hz, ..ReadOptions::default() }, &mut sink);
            drop(sink);
            read.map(|_| first.expect("an event"))
        };
        let untold = first(None).expect("nanoseconds");
        clock::check_all("a copy of tracefs", |name, hz| {
            folder.put("trace_clock", format!("local [{name}] boot\n").as_bytes());
            first(hz).map(|time| time * 52_000 / untold)
        });
        folder.put("trace_clock", b"[local]\n");
        folder.put("per_cpu/cpu2/stats", b"entries: 0\nnow ts: 2000\n");
        assert!(first(None).is_err());
        folder.put("per_cpu/cpu2/stats", b"entries: 0\nnow ts: 0.000002\n");
        assert_eq!(first(None).expect("nanoseconds"), untold);
    }

    #[test]
    fn damage_costs_what_it_covers() {
        let folder = recorded("damaged");
        let path = folder.0.join("per_cpu/cpu2/trace_pipe_raw");
        let mut pages = fs::read(&path).expect("pages");
        assert_eq!(pages.len(), 2 * 4096);
        pages[9] = 0xff;
        pages.truncate(pages.len() - 4000);
        fs::write(&path, &pages).expect("pages");
        let (lines, stats) = folder.read().expect("a trace");
        assert!((201..300).contains(&lines.len()), "{}", lines.len());
        let troubles: Vec<_> = stats.troubles().iter().map(|count| (count.trouble, count.count)).collect();
        assert_eq!(
            troubles,
            [(Trouble::LostEvents, 1), (Trouble::TruncatedFile, 1), (Trouble::CorruptRecord, 1)]
        );
    }

    #[test]
    fn what_is_no_trace_is_told() {
        let why = |folder: &Folder| folder.read().expect_err("no trace").to_string();
        let folder = Folder::new("nothing");
        assert!(why(&folder).contains("no per_cpu/cpuN/trace_pipe_raw"), "{}", why(&folder));
        folder.put("per_cpu/cpu0/trace_pipe_raw", &[0xff; 4096]);
        assert!(why(&folder).contains("no pages"), "{}", why(&folder));
        folder.put("per_cpu/cpu0/trace_pipe_raw", &[0; 4096]);
        assert!(why(&folder).contains("describes no events"), "{}", why(&folder));
        folder.put("events/header_page", b"what");
        assert!(why(&folder).contains("does not describe pages"), "{}", why(&folder));
        fs::remove_file(folder.0.join("events/header_page")).expect("a file");
        assert!(why(&folder).contains("header_page is missing"), "{}", why(&folder));
    }

    #[test]
    fn pages_of_the_other_byte_order_are_told_by_themselves() {
        let folder = Folder::new("big");
        let switch = Switch {
            prev_comm: "a".into(),
            prev_pid: Pid(1),
            prev_prio: Prio(120),
            prev_state: TaskState::RUNNABLE,
            next_comm: "b".into(),
            next_pid: Pid(2),
            next_prio: Prio(120),
        };
        let mut encoder = RecordEncoder::new(RECORD_BYTES_MAX);
        let mut record = Vec::new();
        encoder.encode(&Event::new(Ns(5), Cpu(0), EventKind::SchedSwitch(switch)), &mut record);
        let (_, format) = encoder.formats().swap_remove(1);
        folder.put("events/sched/sched_switch/format", format.as_bytes());
        // The record's numbers are turned one by one; names stay.
        for (at, size) in [(0, 2), (4, 4), (24, 4), (28, 4), (32, 8), (56, 4), (60, 4)] {
            record[at..at + size].reverse();
        }
        let words = (record.len() / 4) as u32;
        let mut page = [5_u64.to_be_bytes(), (4 + record.len() as u64).to_be_bytes()].concat();
        page.extend((words << 27).to_be_bytes());
        page.extend(&record);
        page.resize(4096, 0);
        folder.put("per_cpu/cpu1/trace_pipe_raw", &page);
        let mut found = None;
        let mut sink = sink_fn(|event: &Event<'_>| {
            if let EventKind::SchedSwitch(switch) = event.kind {
                found = Some((event.time, event.cpu, switch));
            }
        });
        read_raw_folder(&folder.0, &ReadOptions::default(), &mut sink).expect("a trace");
        drop(sink);
        assert_eq!(found, Some((Ns(5), Cpu(1), switch)));
    }
}
