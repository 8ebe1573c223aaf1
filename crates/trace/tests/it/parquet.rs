//! Our Parquet files, read by DuckDB, and by ourselves: every event comes back.

use fairlab_event::{Event, EventKind, Flags, Pid, Sink, Switch, System};
use fairlab_trace::ftrace_text::FtraceTextWriter;
use fairlab_trace::parquet::{ParquetWriter, TableWriter};
use fairlab_trace::table::{ColumnKind, TableCell};
use fairlab_trace::{ImportError, ImportStats, ReadOptions, Trouble, read, read_path};

use crate::kept::{Keeper, Kept, read_recording, testdata};
use crate::peers::{Folder, run};
use crate::random::Random;

/// Every row as a line: time, CPU, context, and the event as tracefs prints it, made of the columns.
const PROGRAM: &str = r#"
import sys, duckdb
# Tests run side by side.
duckdb.sql("SET threads = 1; SET memory_limit = '512MB'")
null, task = "<null>", "'comm=' || comm || ' pid=' || pid"
bodies = {
    "sched_switch": "'prev_comm=' || prev_comm || ' prev_pid=' || prev_pid || ' prev_prio=' || prev_prio || ' prev_state=' || prev_state"
        " || ' ==> next_comm=' || next_comm || ' next_pid=' || next_pid || ' next_prio=' || next_prio",
    "sched_migrate_task": task + " || ' prio=' || prio || ' orig_cpu=' || orig_cpu || ' dest_cpu=' || dest_cpu",
    "sched_process_fork": task + " || ' child_comm=' || child_comm || ' child_pid=' || child_pid",
    "sched_process_exec": "'filename=' || filename || ' pid=' || pid || ' old_pid=' || old_pid",
    "sched_process_exit": task + " || ' prio=' || prio || coalesce(' group_dead=' || group_dead, '')",
    "sched_stat_runtime": task + " || ' runtime=' || runtime_ns || ' [ns]' || coalesce(' vruntime=' || vruntime || ' [ns]', '')",
    "sched_place": task + " || ' sev=' || vruntime || ' sed=' || deadline || ' sel=' || vlag || ' avg=' || avg_vruntime"
        " || ' min=' || min_vruntime || ' cpu=' || queue_cpu || ' nr=' || nr_running",
}
for name in ("waking", "wakeup", "wakeup_new"):
    bodies["sched_" + name] = task + " || ' prio=' || prio || ' target_cpu=' || case when target_cpu < 1000 then lpad(target_cpu::varchar, 3, '0') else target_cpu::varchar end"
for name in ("wait", "sleep", "blocked", "iowait"):
    bodies["sched_stat_" + name] = task + " || ' delay=' || delay_ns || ' [ns]'"
cases = " ".join(f"when event = '{name}' and text is null then {body}" for name, body in bodies.items())
rows = duckdb.sql(f"""
    select time_ns, cpu, context_comm, context_pid, context_tgid, context_flags, event, case {cases} else text end,
    lost_events from '{sys.argv[1]}'""").fetchall()
for row in rows:
    sys.stdout.buffer.write(("\t".join(null if cell is None else str(cell) for cell in row) + "\n").encode())
"#;

fn rows(folder: &Folder, bytes: &[u8]) -> Vec<String> {
    let file = folder.file("table.parquet", bytes);
    let text = run("peers-python", &["-c", PROGRAM, file.to_str().expect("a path of plain text")]);
    text.split_terminator('\n').map(str::to_string).collect()
}

/// The same lines, made of the events.
fn expected(kept: &Kept) -> String {
    let known = |text: String, known: bool| if known { text } else { "<null>".to_string() };
    let event = &kept.event;
    let context = event.context;
    let mut writer = FtraceTextWriter::new(Vec::new());
    kept.replay(&mut writer);
    let text = String::from_utf8_lossy(&writer.finish().expect("memory takes everything")).into_owned();
    let name = match kept.name.as_str() {
        "" => event.kind.name(),
        name => name,
    };
    let line = text.split_terminator('\n').next_back().unwrap_or_default();
    // A name or a text may hold anything; what follows the stamp begins with the event's name.
    let stamp = format!("{}: ", event.time);
    let body =
        line.split_once(&stamp).and_then(|(_, rest)| rest.split_once(": ")).map_or("", |(_, body)| body);
    let (body, lost) = match event.kind {
        EventKind::Lost { count } => (None, count),
        kind if kind.is_task_record() => (None, None),
        EventKind::Marker { .. } | EventKind::Kprobe { .. } | EventKind::Other { .. } => {
            (Some(kept.text.as_str()), None)
        }
        _ => (Some(body), None),
    };
    [
        event.time.0.to_string(),
        event.cpu.to_string(),
        known(context.comm.to_str().into_owned(), !context.comm.is_empty()),
        known(context.pid.to_string(), context.pid != Pid::UNKNOWN),
        known(context.tgid.to_string(), context.tgid != Pid::UNKNOWN),
        known(String::from_utf8_lossy(context.flags.as_bytes()).into_owned(), context.flags != Flags::NONE),
        name.to_string(),
        known(body.unwrap_or_default().to_string(), body.is_some()),
        known(lost.unwrap_or_default().to_string(), lost.is_some()),
    ]
    .join("\t")
}

#[track_caller]
fn check(folder: &Folder, events: &[Kept], what: &str) {
    let mut writer = ParquetWriter::new(Vec::new());
    for event in events {
        event.replay(&mut writer);
    }
    assert_eq!(writer.losses().events(), 0, "{what}: {}", writer.losses());
    let rows = rows(folder, &writer.finish().expect("memory takes everything"));
    for (row, event) in rows.iter().zip(events) {
        assert_eq!(row, &expected(event), "{what}");
    }
    assert_eq!(rows.len(), events.len(), "{what}");
}

#[test]
fn duckdb_reads_of_recordings_what_our_text_says() {
    let folder = Folder::new("parquet-recordings");
    for name in ["ftrace-5.10-forkstorm.txt.gz", "ftrace-6.6-vhost.txt.zst", "ftrace-7.2-probed.txt.zst"] {
        check(&folder, &read_recording(name).0, name);
    }
    // Several groups of rows.
    let recorded = read_recording("perf-hackbench.data").0;
    let long: Vec<Kept> = (0..4).flat_map(|_| recorded.iter().cloned()).collect();
    assert!(long.len() > 1 << 16);
    check(&folder, &long, "four times over");
    check(&folder, &[], "nothing");
}

#[test]
fn duckdb_reads_every_kind_of_event() {
    let folder = Folder::new("parquet-kinds");
    for seed in 1..4 {
        let mut random = Random::new(seed);
        let mut events = Vec::new();
        while events.len() < 3000 {
            let kept = random.event();
            // Lines are the test's own; and what our text has another form for.
            let plain = |text: &str| !text.contains(['\t', '\n', '\r', '\u{fffd}', '\u{1}']);
            let names = format!("{:?}", kept.event);
            let ids_of_a_kernel = !names.contains("Pid(-");
            if plain(&kept.text)
                && plain(&names)
                && !names.contains("\\x")
                && !names.contains('\\')
                && ids_of_a_kernel
            {
                events.push(kept);
            }
        }
        check(&folder, &events, &format!("seed {seed}"));
    }
}

/// Columns of every kind, cells that are empty, more rows than a group has.
#[test]
fn duckdb_reads_any_table() {
    const PROGRAM: &str = r#"
import sys, duckdb
duckdb.sql("SET threads = 1; SET memory_limit = '512MB'")
print(duckdb.sql(f"select count(*), count(name), count(distinct name), sum(count), sum(number), min(number) from '{sys.argv[1]}'").fetchall())
print(duckdb.sql(f"select * from '{sys.argv[1]}' limit 3").fetchall())
"#;
    let columns = [("name", ColumnKind::Text), ("count", ColumnKind::Count), ("number", ColumnKind::Number)];
    let columns = columns.map(|(name, kind)| (name.to_string(), kind));
    let mut table = TableWriter::new(Vec::new(), "cells", &columns).expect("columns of different names");
    for row in 0..70_000_u64 {
        let name =
            if row % 2 == 0 { TableCell::Text(["a", "b", "c"][row as usize % 3]) } else { TableCell::Empty };
        table.add(&[name, TableCell::Count(row), TableCell::Number(row as f64 / -2.0)]).expect("memory");
    }
    let folder = Folder::new("any-table");
    let file = folder.file("table.parquet", &table.finish().expect("memory"));
    let text = run("peers-python", &["-c", PROGRAM, file.to_str().expect("a path of plain text")]);
    let expected = "[(70000, 35000, 3, 2449965000, -1224982500.0, -34999.5)]\n[('a', 0, -0.0), (None, 1, -0.5), ('c', 2, -1.0)]\n";
    assert_eq!(text, expected);
}

/// What a reader told of a trace.
#[derive(Default)]
struct Told {
    keeper: Keeper,
    system: System,
}

impl Sink for Told {
    fn event(&mut self, event: &Event<'_>) {
        self.keeper.event(event);
    }

    fn system(&mut self, system: &System) {
        self.system = system.clone();
    }
}

fn table_of(events: &[Kept], system: &System) -> Vec<u8> {
    let mut writer = ParquetWriter::new(Vec::new());
    writer.system(system);
    for event in events {
        event.replay(&mut writer);
    }
    writer.finish().expect("memory takes everything")
}

fn read_back(bytes: &[u8]) -> Result<(Told, ImportStats), ImportError> {
    let mut told = Told::default();
    let stats = read(Box::new(bytes), &ReadOptions::default(), &mut told)?;
    Ok((told, stats))
}

#[track_caller]
fn check_back(events: &[Kept], what: &str) {
    let system = System { release: "6.6.9".to_string(), cpus: Some(4), seed: Some(3), ..System::default() };
    let (told, stats) = read_back(&table_of(events, &system)).expect(what);
    for (back, event) in told.keeper.0.iter().zip(events) {
        assert_eq!(back, event, "{what}");
    }
    assert_eq!(
        (told.keeper.0.len() as u64, stats.events),
        (events.len() as u64, events.len() as u64),
        "{what}"
    );
    assert_eq!(told.system, system, "{what}");
}

#[test]
fn every_event_comes_back() {
    for name in ["ftrace-5.10-forkstorm.txt.gz", "ftrace-7.2-probed.txt.zst"] {
        check_back(&read_recording(name).0, name);
    }
    let recorded = read_recording("perf-hackbench.data").0;
    let long: Vec<Kept> = (0..7).flat_map(|_| recorded.iter().cloned()).collect();
    assert!(long.len() > 1 << 17, "more than one group of rows");
    check_back(&long, "seven times over");
    check_back(&[], "nothing");
    for seed in 1..5 {
        let mut random = Random::new(seed);
        // Names and texts of UTF-8; and an idle task that sleeps would show a kernel whose states are read otherwise.
        let is_text = |kept: &Kept| {
            let mut writer = ParquetWriter::new(Vec::new());
            kept.replay(&mut writer);
            let sleeps = |switch: &Switch| switch.prev_pid.is_idle() && !switch.prev_state.is_runnable();
            let is_odd = matches!(&kept.event.kind, EventKind::SchedSwitch(switch) if sleeps(switch));
            writer.losses().events() == 0 && !is_odd
        };
        let events: Vec<Kept> =
            std::iter::repeat_with(|| random.event()).filter(is_text).take(3000).collect();
        check_back(&events, &format!("seed {seed}"));
    }
}

/// A file that the writer of earlier versions made, before there was a column for the kind of an event.
#[test]
fn tables_of_earlier_versions_are_read() {
    let mut told = Told::default();
    read_path(&testdata("events-0.1.parquet"), &ReadOptions::default(), &mut told).expect("a table");
    let original = read_recording("ftrace-7.2-probed.txt.zst").0;
    for (back, event) in told.keeper.0.iter().zip(&original) {
        assert_eq!(back, event);
    }
    assert_eq!(told.keeper.0.len(), 2000);
}

#[test]
fn what_duckdb_makes_of_a_table_is_read() {
    const PROGRAM: &str = r#"
import sys, duckdb
duckdb.sql("SET threads = 1; SET memory_limit = '512MB'")
duckdb.sql(f"copy (select * exclude (time_ns) replace (make_timestamp_ns(time_ns::bigint) as time) from '{sys.argv[1]}' where cpu = 1) to '{sys.argv[2]}' (format parquet)")
"#;
    let folder = Folder::new("by-duckdb");
    let events = read_recording("ftrace-7.2-probed.txt.zst").0;
    let file = folder.file("ours.parquet", &table_of(&events, &System::default()));
    let theirs = folder.0.join("theirs.parquet");
    let path = |path: &std::path::Path| path.to_str().expect("a path of plain text").to_string();
    run("peers-python", &["-c", PROGRAM, &path(&file), &path(&theirs)]);
    let mut told = Told::default();
    read_path(&theirs, &ReadOptions::default(), &mut told).expect("a table");
    let expected: Vec<&Kept> = events.iter().filter(|kept| kept.event.cpu.0 == 1).collect();
    assert!(!expected.is_empty() && told.keeper.0.iter().eq(expected));
}

#[test]
fn other_tables_and_damage_are_told_in_a_line() {
    let columns = [("event".to_string(), ColumnKind::Text)];
    let other =
        TableWriter::new(Vec::new(), "cells", &columns).and_then(TableWriter::finish).expect("memory");
    let whole = table_of(&read_recording("ftrace-7.2-probed.txt.zst").0, &System::default());
    let mut no_description = whole.clone();
    let end = no_description.len() - 60;
    no_description[end..end + 40].fill(0xff);
    for (bytes, fact) in [
        (&other[..], "this Parquet file is no table of events: it has no column cpu"),
        (&whole[..whole.len() / 2], "this Parquet file is cut off"),
        (b"PAR1", "this Parquet file is cut off: its 4 bytes"),
        (&no_description, "the description at the end of this Parquet file cannot be read"),
    ] {
        let error = read_back(bytes).err().expect("no table of events").to_string();
        assert!(error.starts_with(fact) && !error.contains('\n'), "{error}");
    }
}

/// Nothing that a file may hold ends in a panic, and damage is told.
#[test]
fn damaged_tables_are_read_as_far_as_they_go() {
    let events = read_recording("ftrace-7.2-probed.txt.zst").0;
    let whole = table_of(&events[..events.len().min(4000)], &System::default());
    let mut random = Random::new(11);
    let (mut refused, mut told) = (0, 0);
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        match read_back(&bytes) {
            Err(error) => {
                assert!(!error.to_string().contains('\n'), "{error}");
                refused += 1;
            }
            Ok((_, stats)) => told += u32::from(stats.count(Trouble::CorruptRecord) > 0),
        }
    }
    assert!(refused + told > 30, "{refused} refused, {told} told");
}
