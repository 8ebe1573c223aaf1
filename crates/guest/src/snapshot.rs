//! The scheduler's whole state, read between two marks in the trace.
//!
//! Everything is read into memory first and written once tracing has ended or the second mark is made: a file that grows
//! meanwhile would be work that the trace shows.
//!
//! Must not know: its readers.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

use crate::files;
use crate::machine::CPUFREQ;
use crate::tracing::mark;

/// Where control groups are mounted.
pub const CGROUPS: &str = "/sys/fs/cgroup";

/// One file, after and before debugfs had a folder for the scheduler.
const DEBUG: [&str; 2] = ["/sys/kernel/debug/sched/debug", "/proc/sched_debug"];

/// A snapshot: names of files and their texts.
#[derive(Clone, Debug)]
pub struct Snapshot(pub Vec<(String, String)>);

/// Takes one; `tag` is `start` or `end`.
pub fn take(tag: &str) -> Snapshot {
    let mut clocks = String::new();
    mark(&format!("SNAPSHOT-BEGIN {tag}"));
    write_clocks(&mut clocks);
    let debug = DEBUG.iter().map(files::text).find(|text| !text.is_empty()).unwrap_or_default();
    mark(&format!("SNAPSHOT-DEBUG-END {tag}"));
    write_clocks(&mut clocks);
    let schedstat = files::text("/proc/schedstat");
    let frequencies = frequencies();
    let (tasks, averages) = tasks();
    let mut groups =
        String::from("#path\tinode\tcpu.weight\tcpu.max\tcpu.idle\tthreads\tsubtree_control\tcpu.stat\n");
    write_groups(Path::new(CGROUPS), "", &mut groups);
    let sessions = sessions();
    write_clocks(&mut clocks);
    mark(&format!("SNAPSHOT-END {tag}"));
    let beside = if tag == "start" { "schedstat-before" } else { "schedstat-after" };
    Snapshot(vec![
        (format!("sched_debug-{tag}.txt"), debug),
        (format!("tasks-{tag}.txt"), tasks),
        (format!("tasks-sched-{tag}.txt"), averages),
        (format!("cgroups-{tag}.txt"), groups),
        (format!("autogroups-{tag}.txt"), sessions),
        (format!("clocks-{tag}.txt"), clocks),
        (format!("frequencies-{tag}.txt"), frequencies),
        (beside.to_string(), schedstat),
    ])
}

/// How fast each scaled clock runs, kHz: `policy0 1300000`.
fn frequencies() -> String {
    let policies = files::names(CPUFREQ).into_iter().filter(|name| name.starts_with("policy"));
    let current = |name: &String| files::line(format!("{CPUFREQ}/{name}/scaling_cur_freq"));
    policies.map(|name| format!("{name} {}\n", current(&name))).collect()
}

/// Two clocks, read one after the other, so that the trace's can be laid beside them.
fn write_clocks(text: &mut String) {
    let ns = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let _ = writeln!(text, "monotonic {} boottime {}", ns(ClockId::Monotonic), ns(ClockId::Boottime));
}

/// The autogroup of each process that is in one, and its nice level: `140 /autogroup-3 nice -1`.
fn sessions() -> String {
    let pids = files::names("/proc").into_iter().filter(|name| is_number(name));
    let lines = pids.map(|pid| (files::line(format!("/proc/{pid}/autogroup")), pid));
    lines.filter(|(line, _)| !line.is_empty()).map(|(line, pid)| format!("{pid} {line}\n")).collect()
}

fn is_number(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

/// A line for each thread, and what the kernel prints of its entity.
fn tasks() -> (String, String) {
    let mut lines =
        String::from("#tid\tpid\tppid\tstate\tpolicy\tnice\tprio\trtprio\tlast_cpu\tallowed\tcgroup\tcomm\n");
    let mut entities = String::new();
    for pid in files::names("/proc").into_iter().filter(|name| is_number(name)) {
        for tid in files::names(format!("/proc/{pid}/task")) {
            let folder = format!("/proc/{pid}/task/{tid}");
            let of = |name: &str| files::text(format!("{folder}/{name}"));
            if let Some(line) = task_line(&pid, &tid, &of("stat"), &of("status"), &of("cgroup"), &of("comm"))
            {
                lines.push_str(&line);
                let _ = write!(entities, "=== tid {tid} pid {pid}\n{}", of("sched"));
            }
        }
    }
    (lines, entities)
}

/// From the files of one thread; `None` if it has gone.
fn task_line(pid: &str, tid: &str, stat: &str, status: &str, cgroup: &str, comm: &str) -> Option<String> {
    // The name, in brackets, may hold anything: what follows the last one is plain. Its first word is proc(5)'s third.
    let words: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| words.get(number - 3).copied();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim();
    let group = cgroup.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let columns = [
        tid,
        pid,
        field(4)?,
        field(3)?,
        field(41)?,
        field(19)?,
        field(18)?,
        field(40)?,
        field(39)?,
        allowed,
        group,
        comm.trim_end(),
    ];
    Some(columns.join("\t") + "\n")
}

/// A group and those below it.
fn write_groups(folder: &Path, path: &str, text: &mut String) {
    let Ok(about) = fs::metadata(folder) else { return };
    let name = if path.is_empty() { "/" } else { path };
    let _ = write!(text, "{name}\t{}", about.ino());
    for file in ["cpu.weight", "cpu.max", "cpu.idle", "cgroup.threads", "cgroup.subtree_control", "cpu.stat"]
    {
        let content = match (file, path) {
            // Nearly all threads of the machine.
            ("cgroup.threads", "") => "(rest)".to_string(),
            _ => files::text(folder.join(file)).trim_end().replace('\n', " "),
        };
        let _ = write!(text, "\t{}", if content.is_empty() { "-" } else { &content });
    }
    text.push('\n');
    for inner in files::names(folder) {
        let below = folder.join(&inner);
        if below.is_dir() {
            write_groups(&below, &format!("{path}/{inner}"), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_a_line() {
        let stat = "9 (odd) name) S 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 -5 1 0 6 0 0 184 0 0 0 0 0 0 0 0 0 0 0 0 17 3 1 2 0 0 0";
        let line = task_line(
            "8",
            "9",
            stat,
            "Name:\tx\nCpus_allowed_list:\t0-3\n",
            "1:x:/y\n0::/a/b\n",
            "odd) name\n",
        );
        assert_eq!(line.as_deref(), Some("9\t8\t2\tS\t2\t-5\t20\t1\t3\t0-3\t/a/b\todd) name\n"));
        assert_eq!(task_line("8", "9", "", "", "", ""), None);
    }
}
