//! Traces for tests, written as ftrace prints them.
//!
//! Knows a short form of ftrace's lines: `COMM-PID CPU FLAGS MICROSECONDS EVENT …`, one a line.

use fairlab_event::{Event, Sink, sink_fn};
use fairlab_trace::ReadOptions;

/// Feeds lines such as `a-65 0 d..2. 10 switch a:65 S ==> b:66` to `sink`. Events: `switch`, `waking` and `wakeup` and
/// `wakeup_new` (`b:66 on 1`, priority `@prio` if not 120), `migrate` (`b:66 0 => 1`), `runtime` (`a:65 5000 vruntime=7`),
/// `place`, `lost` (a number), or any other event as ftrace prints it.
pub(crate) fn feed(story: &str, sink: &mut dyn Sink) {
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let text = ftrace_line(line);
        let mut count = 0;
        let mut one = sink_fn(|event: &Event<'_>| {
            count += 1;
            sink.event(event);
        });
        let stats = fairlab_trace::ftrace_text::read(text.as_bytes(), &ReadOptions::default(), &mut one)
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        drop(one);
        assert!(
            count == 1 && stats.worst().is_none_or(|worst| worst < fairlab_trace::Severity::DataLoss)
                || line.contains(" lost "),
            "{line}\n{text}\n{stats:?}"
        );
    }
}

/// `name:pid` or `name:pid@prio`.
fn task(word: &str) -> (String, String, String) {
    let (name, rest) = word.rsplit_once(':').unwrap_or_else(|| panic!("{word}"));
    let (pid, prio) = rest.split_once('@').unwrap_or((rest, "120"));
    (name.to_string(), pid.to_string(), prio.to_string())
}

fn ftrace_line(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [context, cpu, flags, micros, event, ..] = words[..] else { panic!("{line}") };
    let cpu: u32 = cpu.parse().unwrap_or_else(|_| panic!("{line}"));
    let micros: u64 = micros.parse().unwrap_or_else(|_| panic!("{line}"));
    let rest = &words[5..];
    if event == "lost" {
        return format!(
            "#!  <...>-4294967295 [{cpu:03}] {}.{:06}: lost_events: count={}\n",
            micros / 1_000_000,
            micros % 1_000_000,
            rest[0]
        );
    }
    let body = match event {
        "switch" => {
            let ((prev, prev_pid, prev_prio), (next, next_pid, next_prio)) = (task(rest[0]), task(rest[3]));
            format!(
                "sched_switch: prev_comm={prev} prev_pid={prev_pid} prev_prio={prev_prio} prev_state={} ==> \
                 next_comm={next} next_pid={next_pid} next_prio={next_prio}",
                rest[1]
            )
        }
        "waking" | "wakeup" | "wakeup_new" => {
            let (name, pid, prio) = task(rest[0]);
            format!("sched_{event}: comm={name} pid={pid} prio={prio} target_cpu={:0>3}", rest[2])
        }
        "migrate" => {
            let (name, pid, prio) = task(rest[0]);
            format!(
                "sched_migrate_task: comm={name} pid={pid} prio={prio} orig_cpu={} dest_cpu={}",
                rest[1], rest[3]
            )
        }
        "runtime" => {
            let (name, pid, _) = task(rest[0]);
            let vruntime = rest.get(2).map_or(String::new(), |word| format!(" {word} [ns]"));
            format!("sched_stat_runtime: comm={name} pid={pid} runtime={} [ns]{vruntime}", rest[1])
        }
        "place" => {
            let (name, pid) = rest[0].rsplit_once(':').unwrap_or_else(|| panic!("{line}"));
            format!("sched_place: comm={name} pid={pid} {}", rest[1..].join(" "))
        }
        other => format!("{other}: {}", rest.join(" ")),
    };
    format!("{context} [{cpu:03}] {flags} {}.{:06}: {body}\n", micros / 1_000_000, micros % 1_000_000)
}
