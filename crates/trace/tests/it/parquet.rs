//! Our Parquet files, read by DuckDB, and by ourselves: every event comes back.

use fairlab_event::{Counter, Event, EventKind, Flags, Pid, Sink, Switch, System};
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
# The kernel's 64 bits without a sign.
u64 = lambda name: f"({name}::hugeint + case when {name} < 0 then 18446744073709551616::hugeint else 0::hugeint end)"
bodies = {
    "sched_switch": "'prev_comm=' || prev_comm || ' prev_pid=' || prev_pid || ' prev_prio=' || prev_prio || ' prev_state=' || prev_state"
        " || ' ==> next_comm=' || next_comm || ' next_pid=' || next_pid || ' next_prio=' || next_prio",
    "sched_migrate_task": task + " || ' prio=' || prio || ' orig_cpu=' || orig_cpu || ' dest_cpu=' || dest_cpu",
    "sched_process_fork": task + " || ' child_comm=' || child_comm || ' child_pid=' || child_pid",
    "sched_process_exec": "'filename=' || exec_filename || ' pid=' || pid || ' old_pid=' || old_pid",
    "sched_process_exit": task + " || ' prio=' || prio || coalesce(' group_dead=' || group_dead, '')",
    "sched_stat_runtime": task + " || ' runtime=' || " + u64("runtime_ns") + " || ' [ns]' || coalesce(' vruntime=' || " + u64("vruntime") + " || ' [ns]', '')",
    "sched_place": task + " || ' sev=' || " + u64("vruntime") + " || ' sed=' || " + u64("deadline") + " || ' sel=' || vlag || ' avg=' || " + u64("avg_vruntime")
        + " || ' min=' || " + u64("min_vruntime") + " || ' cpu=' || queue_cpu || ' nr=' || nr_running",
}
for name in ("waking", "wakeup", "wakeup_new"):
    bodies["sched_" + name] = task + " || ' prio=' || prio || ' target_cpu=' || case when target_cpu < 1000 then lpad(target_cpu::varchar, 3, '0') else target_cpu::varchar end"
for name in ("wait", "sleep", "blocked", "iowait"):
    bodies["sched_stat_" + name] = task + " || ' delay=' || " + u64("delay_ns") + " || ' [ns]'"
cases = " ".join(f"when event = '{name}' and text is null then {body}" for name, body in bodies.items())
rows = duckdb.sql(f"""
    select {u64("time_ns")}, cpu, context_comm, context_pid, context_tgid, context_flags, event, case {cases} else text end,
    {u64("lost_events")} from '{sys.argv[1]}'""").fetchall()
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

/// The time from each waking to the switch that follows it, over all files of a folder, and the time back, which is negative: in DuckDB,
/// Polars and DataFusion. Each file has a column with the name of the file beside its own.
#[test]
fn a_wait_between_two_rows_has_a_sign_everywhere() {
    const PROGRAM: &str = r#"
import sys, duckdb, polars, datafusion
folder = sys.argv[1]
waits = """
    select count(*), min(wait), max(wait), sum(wait), min(-wait), max(cpu - target) from (
        select event, time_ns - lag(time_ns) over (partition by task order by time_ns) as wait,
            lag(event) over (partition by task order by time_ns) as before,
            cpu, lag(target_cpu) over (partition by task order by time_ns) as target
        from (select *, case event when 'sched_switch' then next_pid else pid end as task from {events}
            where event in ('sched_switch', 'sched_waking'))) as followed
    where event = 'sched_switch' and before = 'sched_waking'"""
duckdb.sql("SET threads = 1; SET memory_limit = '512MB'")
print(*duckdb.sql(waits.format(events=f"read_parquet('{folder}/*.parquet', filename = true)")).fetchall()[0])
context = datafusion.SessionContext()
context.register_parquet("events", folder)
print(*context.sql(waits.format(events="events")).to_pylist()[0].values())
frame = polars.scan_parquet(f"{folder}/*.parquet", include_file_paths="filename").filter(polars.col("event").cast(str).is_in(["sched_switch", "sched_waking"]))
is_switch = polars.col("event").cast(str) == "sched_switch"
frame = frame.with_columns(task=polars.when(is_switch).then("next_pid").otherwise("pid")).sort("time_ns")
before = lambda name: polars.col(name).shift(1).over("task")
frame = frame.with_columns(wait=polars.col("time_ns") - before("time_ns"), before=before("event").cast(str), target=before("target_cpu"))
frame = frame.filter(is_switch & (polars.col("before") == "sched_waking"))
wait = polars.col("wait")
print(*frame.select(n=wait.count(), a=wait.min(), b=wait.max(), c=wait.sum(), d=(-wait).min(), e=(polars.col("cpu") - polars.col("target")).max()).collect().row(0))
"#;
    let folder = Folder::new("waits");
    let events = read_recording("ftrace-7.2-probed.txt.zst").0;
    let (first, second) = events.split_at(events.len() / 2);
    for (name, events) in [("a.parquet", first), ("b.parquet", second)] {
        folder.file(name, &table_of(events, &System::default()));
    }
    let text = run("peers-python", &["-c", PROGRAM, folder.0.to_str().expect("a path of plain text")]);
    let lines = text.lines().collect::<Vec<_>>();
    assert!(lines.len() == 3 && lines.iter().all(|line| *line == lines[0]), "{text}");
    let numbers = lines[0].split(' ').map(|number| number.parse::<i64>().expect("a number"));
    let [count, least, most, sum, back, _] = numbers.collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert_eq!((count, least, most, sum), waits_of(&events), "{text}");
    assert_eq!(back, -most, "{text}");
}

/// Number, least, greatest and sum of the times from a waking to the next switch to its task.
fn waits_of(events: &[Kept]) -> (i64, i64, i64, i64) {
    let mut woken = std::collections::BTreeMap::new();
    let mut waits = Vec::new();
    let mut sorted = events.iter().collect::<Vec<_>>();
    sorted.sort_by_key(|kept| kept.event.time);
    for kept in sorted {
        match kept.event.kind {
            EventKind::SchedWaking(wakeup) => drop(woken.insert(wakeup.pid, Some(kept.event.time))),
            EventKind::SchedSwitch(switch) => {
                if let Some(since) = woken.insert(switch.next_pid, None).flatten() {
                    waits.push((kept.event.time.0 - since.0).cast_signed());
                }
            }
            _ => {}
        }
    }
    let extreme = |wait: Option<&i64>| *wait.expect("waits");
    let (least, most) = (extreme(waits.iter().min()), extreme(waits.iter().max()));
    (waits.len() as i64, least, most, waits.iter().sum())
}

/// No number is without sign, and no column's name means something else to those who read the file.
#[test]
fn the_columns_are_what_all_readers_take() {
    let names = ["name", "file_row_number", "filename", "hive"];
    for field in fairlab_trace::table::schema(&System::default()).fields() {
        assert!(!field.data_type().is_unsigned_integer(), "{field}");
        assert!(!names.contains(&field.name().as_str()) && !field.name().contains('.'), "{field}");
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

/// Some KB that unpack to more than is read are refused before they are unpacked; in a column that nobody asks for they do no harm, nor
/// does one long text that 3,000 rows share.
#[test]
fn a_column_that_is_too_large_unpacked_is_refused() {
    const PROGRAM: &str = r#"
import sys, duckdb
duckdb.sql("SET threads = 1; SET memory_limit = '2GB'")
rows, text = {"distinct": (300, "repeat('a', 1000000) || range"), "repeated": (3000, "repeat('a', 1000000)")}[sys.argv[3]]
duckdb.sql(f"copy (select 1::bigint as time_ns, 0 as cpu, 'tracing_mark_write' as event, 'marker' as kind, {text} as {sys.argv[2]} from range({rows})) to '{sys.argv[1]}' (format parquet, compression zstd)")
"#;
    let folder = Folder::new("large-column");
    for (column, kind, is_refused) in
        [("text", "distinct", true), ("note", "distinct", false), ("text", "repeated", false)]
    {
        let path = folder.0.join(format!("{column}-{kind}.parquet"));
        run("peers-python", &["-c", PROGRAM, path.to_str().expect("a path of plain text"), column, kind]);
        assert!(std::fs::metadata(&path).expect("a file").len() < 1 << 20);
        let error = read_path(&path, &ReadOptions::default(), &mut Counter::default())
            .err()
            .map(|error| error.to_string());
        let is_size = |error: &String| {
            error.contains("column text of its group of rows 0 has 300") && !error.contains('\n')
        };
        assert_eq!(error.as_ref().is_some_and(is_size), is_refused, "{error:?}");
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
