//! Our Parquet files, read by DuckDB.

#[allow(dead_code)]
#[path = "ftrace_text/kept.rs"]
mod kept;
#[path = "peers/programs.rs"]
mod peers;
#[allow(dead_code)]
#[path = "ftrace_text/random.rs"]
mod random;

use fairlab_event::{EventKind, Flags, Pid};
use fairlab_trace::ftrace_text::FtraceTextWriter;
use fairlab_trace::parquet::{Cell, ColumnKind, ParquetWriter, TableWriter};

use kept::{Kept, read_recording};
use peers::{Folder, run};
use random::Random;

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
    let mut table = TableWriter::new(Vec::new(), "cells", &columns);
    for row in 0..70_000_u64 {
        let name = if row % 2 == 0 { Cell::Text(["a", "b", "c"][row as usize % 3]) } else { Cell::Empty };
        table.add(&[name, Cell::Count(row), Cell::Number(row as f64 / -2.0)]).expect("memory");
    }
    let folder = Folder::new("any-table");
    let file = folder.file("table.parquet", &table.finish().expect("memory"));
    let text = run("peers-python", &["-c", PROGRAM, file.to_str().expect("a path of plain text")]);
    let expected = "[(70000, 35000, 3, 2449965000, -1224982500.0, -34999.5)]\n[('a', 0, -0.0), (None, 1, -0.5), ('c', 2, -1.0)]\n";
    assert_eq!(text, expected);
}
