//! One recording in every form that users have it in: the events are always those of the recording.
//!
//! Each form is a front, the fields, and what other programs put around a line; all are made here from the events, and
//! combined.

use fairlab_event::{Comm, Context, EventKind, Flags, Ns, Pid, StatDelay, Switch, TaskState, Wakeup};
use fairlab_trace::{ReadOptions, Trouble, ftrace_text};

use crate::kept::{Keeper, Kept, read_recording, read_text};

/// The beginning of a recording, as far as every form can carry it: microseconds, no processes.
fn recording() -> Vec<Kept> {
    let (events, _) = read_recording("trace-cmd-3.1-hackbench.dat");
    let mut kinds = std::collections::BTreeMap::new();
    let mut chosen = Vec::new();
    for mut kept in events {
        let of_kind: &mut u32 = kinds.entry(kept.event.kind.name().to_string()).or_default();
        if fields(&kept).is_none() || *of_kind >= 40 || kept.event.context.comm == Comm::default() {
            continue;
        }
        *of_kind += 1;
        kept.event.time = Ns(kept.event.time.0 / 1000 * 1000);
        kept.event.context.tgid = Pid::UNKNOWN;
        chosen.push(kept);
    }
    assert!(chosen.len() > 150 && kinds.len() >= 6, "{} events of {kinds:?}", chosen.len());
    chosen
}

type Fields = fn(&Kept) -> Option<String>;

fn task(comm: Comm, pid: Pid) -> String {
    format!("comm={comm} pid={pid}")
}

/// As the kernel prints them.
fn fields(kept: &Kept) -> Option<String> {
    Some(match kept.event.kind {
        EventKind::SchedSwitch(Switch {
            prev_comm,
            prev_pid,
            prev_prio,
            prev_state,
            next_comm,
            next_pid,
            next_prio,
        }) => format!(
            "prev_comm={prev_comm} prev_pid={prev_pid} prev_prio={} prev_state={prev_state} ==> \
             next_comm={next_comm} next_pid={next_pid} next_prio={}",
            prev_prio.0, next_prio.0
        ),
        EventKind::SchedWaking(wakeup)
        | EventKind::SchedWakeup(wakeup)
        | EventKind::SchedWakeupNew(wakeup) => {
            let Wakeup { comm, pid, prio, target_cpu } = wakeup;
            format!("{} prio={} target_cpu={:03}", task(comm, pid), prio.0, target_cpu.0)
        }
        EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu } => {
            format!("{} prio={} orig_cpu={orig_cpu} dest_cpu={dest_cpu}", task(comm, pid), prio.0)
        }
        EventKind::SchedProcessFork { comm, pid, child_comm, child_pid } => {
            format!("{} child_comm={child_comm} child_pid={child_pid}", task(comm, pid))
        }
        EventKind::SchedProcessExit { comm, pid, prio, group_dead: None } => {
            format!("{} prio={}", task(comm, pid), prio.0)
        }
        EventKind::SchedStatWait(delay)
        | EventKind::SchedStatSleep(delay)
        | EventKind::SchedStatBlocked(delay)
        | EventKind::SchedStatIowait(delay) => {
            let StatDelay { comm, pid, delay } = delay;
            format!("{} delay={} [ns]", task(comm, pid), delay.0)
        }
        EventKind::SchedStatRuntime { comm, pid, runtime, vruntime } => {
            let vruntime = vruntime.map_or(String::new(), |vruntime| format!(" vruntime={vruntime} [ns]"));
            format!("{} runtime={} [ns]{vruntime}", task(comm, pid), runtime.0)
        }
        _ => return None,
    })
}

/// Of kernels before v4.3.
fn fields_with_success(kept: &Kept) -> Option<String> {
    Some(fields(kept)?.replace(" target_cpu=", " success=1 target_cpu="))
}

/// As libtraceevent's plugin prints switches and wakeups.
fn plugin(kept: &Kept) -> Option<String> {
    Some(match kept.event.kind {
        EventKind::SchedSwitch(switch) => format!(
            "{}:{} [{}] {} ==> {}:{} [{}]",
            switch.prev_comm,
            switch.prev_pid,
            switch.prev_prio.0,
            switch.prev_state,
            switch.next_comm,
            switch.next_pid,
            switch.next_prio.0
        ),
        EventKind::SchedWaking(wakeup)
        | EventKind::SchedWakeup(wakeup)
        | EventKind::SchedWakeupNew(wakeup) => {
            format!("{}:{} [{}] CPU:{:03}", wakeup.comm, wakeup.pid, wakeup.prio.0, wakeup.target_cpu.0)
        }
        _ => fields(kept)?,
    })
}

/// With `-w`.
fn plugin_with_latency(kept: &Kept) -> Option<String> {
    let latency =
        if matches!(kept.event.kind, EventKind::SchedSwitch(_)) { " Latency: 798.012 usecs" } else { "" };
    Some(plugin(kept)? + latency)
}

/// The number of a state in the kernels in use.
fn number(state: TaskState) -> u64 {
    let letters = state.to_string();
    let of = |letter| b"SDTtXZPI".iter().position(|&known| known == letter).map_or(0, |bit| 1 << bit);
    let bits = letters.bytes().filter(u8::is_ascii_alphabetic).map(of).fold(0, |bits, bit: u64| bits | bit);
    if state.is_preempted() { 0x100 } else { bits }
}

/// As `trace-cmd report -R` prints them.
fn raw(kept: &Kept) -> Option<String> {
    let text = fields(kept)?.replace(" [ns]", "");
    Some(match kept.event.kind {
        EventKind::SchedSwitch(switch) => text.replace(
            &format!(" prev_state={} ==> ", switch.prev_state),
            &format!(" prev_state={} ", number(switch.prev_state)),
        ),
        EventKind::SchedProcessFork { .. } => {
            text.replacen("comm=", "parent_comm=", 1).replacen(" pid=", " parent_pid=", 1)
        }
        _ => text,
    })
}

/// The same on a machine whose `long` is printed in hexadecimal, and with names as bytes.
fn raw_in_hexadecimal(kept: &Kept) -> Option<String> {
    let text = raw(kept)?;
    let mut bytes = "ARRAY[".to_string();
    let EventKind::SchedSwitch(switch) = kept.event.kind else { return Some(text) };
    for byte in switch.next_comm.as_bytes() {
        bytes += &format!("{byte:02x}, ");
    }
    let text = text.replace(
        &format!(" prev_state={} ", number(switch.prev_state)),
        &format!(" prev_state=0x{:x} ", number(switch.prev_state)),
    );
    Some(text.replace(&format!("next_comm={} ", switch.next_comm), &format!("next_comm={bytes}00] ")))
}

/// As kernels from 2.6.30 to 2.6.34 print them.
fn early(kept: &Kept) -> Option<String> {
    let delay = |what: &str, delay: StatDelay| {
        format!("task: {}:{} {what}: {} [ns]", delay.comm, delay.pid, delay.delay.0)
    };
    Some(match kept.event.kind {
        EventKind::SchedSwitch(switch) => {
            let text = plugin(kept)?.replace(
                &format!("] {} ==> ", switch.prev_state),
                &format!("] ({}) ==> ", switch.prev_state),
            );
            format!("task {text}")
        }
        EventKind::SchedWakeup(wakeup) | EventKind::SchedWakeupNew(wakeup) => format!(
            "task {}:{} [{}] success=1 [{:03}]",
            wakeup.comm, wakeup.pid, wakeup.prio.0, wakeup.target_cpu.0
        ),
        EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu } => {
            format!("task {comm}:{pid} [{}] from: {orig_cpu}  to: {dest_cpu}", prio.0)
        }
        EventKind::SchedProcessFork { comm, pid, child_comm, child_pid } => {
            format!("parent {comm}:{pid}  child {child_comm}:{child_pid}")
        }
        EventKind::SchedProcessExit { comm, pid, prio, .. } => format!("task {comm}:{pid} [{}]", prio.0),
        EventKind::SchedStatWait(stat) => delay("wait", stat),
        EventKind::SchedStatSleep(stat) => delay("sleep", stat),
        EventKind::SchedStatIowait(stat) => delay("iowait", stat),
        EventKind::SchedStatRuntime { comm, pid, runtime, vruntime: Some(vruntime) } => {
            format!("task: {comm}:{pid} runtime: {} [ns], vruntime: {vruntime} [ns]", runtime.0)
        }
        _ => return None,
    })
}

/// What stands before the fields, and what of the context it does not carry.
struct Front {
    name: &'static str,
    print: fn(&Kept) -> String,
    lose: fn(&mut Context, &EventKind<'_>),
}

fn seconds(kept: &Kept) -> String {
    let us = kept.event.time.0 / 1000;
    format!("{:5}.{:06}", us / 1_000_000, us % 1_000_000)
}

fn flags(kept: &Kept) -> String {
    String::from_utf8_lossy(kept.event.context.flags.as_bytes()).into_owned()
}

/// No flags, as of old trace-cmd and perf.
fn no_flags(context: &mut Context, _: &EventKind<'_>) {
    context.flags = Flags::NONE;
}

/// Latency format cuts names.
fn cut_names(context: &mut Context, _: &EventKind<'_>) {
    if context.comm.as_bytes().len() >= 8 {
        context.comm = Comm::default();
    }
}

fn cut(kept: &Kept) -> String {
    kept.event.context.comm.to_string().chars().take(8).collect()
}

fn event_name(kept: &Kept) -> &'static str {
    kept.event.kind.name()
}

const FRONTS: [Front; 11] = [
    Front {
        name: "tracefs",
        print: |kept| {
            let Context { comm, pid, .. } = kept.event.context;
            let (cpu, flags, time) = (kept.event.cpu.0, flags(kept), seconds(kept));
            format!(
                "{comm:>16}-{pid:<7} [{cpu:03}] {flags} {time}: {}: ",
                event_name(kept),
                comm = comm.to_string(),
                pid = pid.0
            )
        },
        lose: |_, _| {},
    },
    Front {
        name: "trace-cmd",
        print: |kept| {
            let Context { comm, pid, .. } = kept.event.context;
            let name = format!("{}:", event_name(kept));
            let (cpu, time) = (kept.event.cpu.0, seconds(kept));
            format!("{:>16}-{:<5} [{cpu:03}] {time}: {name:<21} ", comm.to_string(), pid.0)
        },
        lose: no_flags,
    },
    Front {
        name: "mail",
        print: |kept| {
            let Context { comm, pid, .. } = kept.event.context;
            let (cpu, flags, time) = (kept.event.cpu.0, flags(kept), seconds(kept));
            format!("{comm}-{pid} [{cpu:03}] {flags} {}: {}: ", time.trim(), event_name(kept))
        },
        lose: |_, _| {},
    },
    Front {
        name: "perf",
        print: |kept| {
            let Context { comm, pid, .. } = kept.event.context;
            let (cpu, time) = (kept.event.cpu.0, seconds(kept));
            format!("{:>16} {:>5} [{cpu:03}] {time}: sched:{}: ", comm.to_string(), pid.0, event_name(kept))
        },
        lose: no_flags,
    },
    Front {
        name: "perf -F tid",
        print: |kept| {
            let (cpu, time) = (kept.event.cpu.0, seconds(kept));
            format!("{:>7} [{cpu:03}] {time}: sched:{}: ", kept.event.context.pid.0, event_name(kept))
        },
        lose: |context, _| (context.comm, context.flags) = (Comm::default(), Flags::NONE),
    },
    Front {
        name: "perf -F comm",
        print: |kept| {
            let (comm, cpu, time) = (kept.event.context.comm.to_string(), kept.event.cpu.0, seconds(kept));
            format!("{comm:>16} [{cpu:03}] {time}: sched:{}: ", event_name(kept))
        },
        lose: |context, kind| {
            context.flags = Flags::NONE;
            context.pid = match kind {
                EventKind::SchedSwitch(switch) => switch.prev_pid,
                _ => Pid::UNKNOWN,
            };
        },
    },
    Front {
        name: "perf -F cpu",
        print: |kept| format!("[{:03}] {}: sched:{}: ", kept.event.cpu.0, seconds(kept), event_name(kept)),
        lose: |context, _| *context = Context::default(),
    },
    Front {
        name: "trace-cmd -l",
        print: |kept| {
            let (pid, cpu, name) =
                (kept.event.context.pid.0, kept.event.cpu.0, format!("{}:", event_name(kept)));
            format!("{:>8}-{pid:<5} {cpu:3}{} {}: {name:<21} ", cut(kept), flags(kept), seconds(kept))
        },
        lose: cut_names,
    },
    Front {
        name: "latency-format",
        print: |kept| {
            let (pid, cpu, us) = (kept.event.context.pid.0, kept.event.cpu.0, kept.event.time.0 / 1000);
            format!("{:>8}-{pid:<7} {cpu:3}{} {us:4}us+: {}: ", cut(kept), flags(kept), event_name(kept))
        },
        lose: cut_names,
    },
    Front {
        name: "verbose",
        print: |kept| {
            let Context { comm, pid, .. } = kept.event.context;
            let (cpu, us) = (kept.event.cpu.0, kept.event.time.0 / 1000);
            let depth = flags(kept)
                .as_bytes()
                .get(3)
                .filter(|depth| depth.is_ascii_digit())
                .map_or(0, |digit| digit - b'0');
            let bits = flags(kept).bytes().take(3).fold(0, |bits, flag| {
                bits | match flag {
                    b'd' => 0x01,
                    b'N' => 0x24,
                    b'n' => 0x04,
                    b'p' => 0x20,
                    b'h' => 0x08,
                    b's' => 0x10,
                    b'H' => 0x18,
                    _ => 0,
                }
            });
            format!(
                "{:>16} {:>7} {cpu:3} {bits} {depth:08x} 00000045 [{us:08x}] {}.{:03}ms (+0.012ms): {}: ",
                comm.to_string(),
                pid.0,
                us / 1000,
                us % 1000,
                event_name(kept)
            )
        },
        lose: |_, _| {},
    },
    Front {
        name: "dmesg's dump",
        print: |kept| {
            let (pid, cpu, us) = (kept.event.context.pid.0, kept.event.cpu.0, kept.event.time.0 / 1000);
            format!(
                "[   99.123456] {:>8}-{pid:<7} {cpu:3}{} {us}us : {}: ",
                cut(kept),
                flags(kept),
                event_name(kept)
            )
        },
        lose: cut_names,
    },
];

const BODIES: [(&str, Fields); 7] = [
    ("print fmt", fields),
    ("with success", fields_with_success),
    ("plugin", plugin),
    ("plugin -w", plugin_with_latency),
    ("raw", raw),
    ("raw in hexadecimal", raw_in_hexadecimal),
    ("2.6", early),
];

/// Puts something around a line, whose number it is told.
type Wrap = fn(&str, usize) -> String;

/// What other programs make of the lines: the name of the form, and the text.
const WRAPPINGS: [(&str, Wrap); 26] = [
    ("nothing", |line, _| line.to_string()),
    ("carriage returns", |line, _| format!("{line}\r")),
    ("HTML", |line, _| {
        line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    }),
    ("HTML by number", |line, _| line.replace('&', "&#38;").replace('<', "&#60;").replace('>', "&#x3e;")),
    ("HTML with line ends", |line, _| {
        line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;") + "<br>"
    }),
    ("HTML as code", |line, at| {
        let line = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        if at == 0 { format!("<pre>{line}") } else { line }
    }),
    ("JavaScript", |line, at| {
        let line = line.replace('\\', "\\\\").replace('"', "\\\"") + "\\n\\";
        if at == 0 { format!("  var linuxPerfData = \"\\\n{line}") } else { line }
    }),
    ("JavaScript, angles escaped", |line, _| line.replace('<', "\\u003c").replace('>', "\\x3e") + "\\n\\"),
    ("JavaScript, a string a line", |line, _| format!("  \"{line}\\n\" +")),
    ("a script element", |line, at| {
        if at == 0 {
            format!("<!DOCTYPE html>\n<script class=\"trace-data\">\n{line}")
        } else {
            line.to_string()
        }
    }),
    ("grep -n", |line, at| format!("{}:{line}", at + 1)),
    ("context of grep", |line, at| format!("{}{}{line}", at + 1, if at % 3 == 0 { ':' } else { '-' })),
    ("grep -H", |line, _| format!("trace.txt:{line}")),
    ("grep -Hn", |line, at| format!("/tmp/a-b/trace.txt:{}:{line}", at + 1)),
    ("grep in colour", |line, at| format!("\x1b[32m{}\x1b[m\x1b[36m:\x1b[m{line}", at + 1)),
    ("an instance", |line, _| format!("lab: {line}")),
    ("a file of several", |line, _| format!("  host.dat: {line}")),
    ("dmesg", |line, at| format!("[{:5}.123456] {line}", 100 + at)),
    ("dmesg with callers", |line, at| format!("[{:5}.123456][    C0] {line}", 100 + at)),
    ("dmesg -T", |line, _| format!("[Wed Nov 25 15:24:01 2026] {line}")),
    ("a console", |line, at| format!("<6>[{:5}.123456] {line}", 100 + at)),
    ("journalctl", |line, _| format!("Nov 25 15:24:01 host kernel: {line}")),
    ("journalctl, ISO", |line, _| format!("2026-11-25T15:24:01+0000 host kernel: {line}")),
    ("syslog", |line, at| format!("Nov  5 15:24:01 host kernel: [{:5}.123456] {line}", 100 + at)),
    ("logcat", |line, _| format!("11-25 15:24:01.123  1234  1234 I ftrace  : {line}")),
    ("logcat, brief", |line, _| format!("I/ftrace  ( 1234): {line}")),
];

/// The text of `events` in one form, and what is to be read from it.
fn form(events: &[Kept], front: &Front, body: Fields, wrap: Wrap) -> (String, Vec<Kept>) {
    let (mut text, mut expected) = (String::new(), Vec::new());
    for kept in events {
        let Some(fields) = body(kept) else { continue };
        let mut kept = kept.clone();
        text += &wrap(&((front.print)(&kept) + &fields), expected.len());
        text.push('\n');
        (front.lose)(&mut kept.event.context, &kept.event.kind);
        expected.push(kept);
    }
    (text, expected)
}

fn each_form(mut check: impl FnMut(&str, &Front, Fields, Wrap)) {
    for front in &FRONTS {
        for (body_name, body) in BODIES {
            for (wrapping, wrap) in WRAPPINGS {
                check(&format!("{}, {body_name}, in {wrapping}", front.name), front, body, wrap);
            }
        }
    }
}

/// Blanks at a name's beginning are padding in the plugin's form.
#[test]
fn every_form_holds_the_events_of_the_recording() {
    let events = recording();
    let mut forms = 0;
    each_form(|name, front, body, wrap| {
        let (text, expected) = form(&events, front, body, wrap);
        assert!(expected.len() > 80, "{name}");
        let (read, stats) = read_text(text.as_bytes());
        for (place, (read, expected)) in read.iter().zip(&expected).enumerate() {
            let line = text.lines().nth(place).unwrap_or_default();
            assert_eq!(read, expected, "{name}: event {place}: {line}");
        }
        assert_eq!(
            (read.len(), stats.unreadable()),
            (expected.len(), &[][..]),
            "{name}\n{:?}",
            stats.troubles()
        );
        let troubles = [Trouble::CommTruncated, Trouble::MalformedEvent, Trouble::TruncatedFile];
        assert_eq!(troubles.map(|trouble| stats.count(trouble)), [0; 3], "{name}");
        forms += 1;
    });
    assert_eq!(forms, FRONTS.len() * BODIES.len() * WRAPPINGS.len());
}

#[test]
fn any_cut_of_any_form_leaves_the_reader_standing_and_what_was_before_it_as_it_was() {
    let events = recording();
    let switch = events.iter().position(|kept| matches!(kept.event.kind, EventKind::SchedSwitch(_)));
    let start = switch.expect("a switch");
    // Every third place of a form, other ones in the next: what prints a part of a line is in many forms.
    let mut first = (0..3).cycle();
    each_form(|name, front, body, wrap| {
        let (text, _) = form(&events[start..start + 3], front, body, wrap);
        let (whole, _) = read_text(text.as_bytes());
        for cut in (first.next().unwrap_or_default()..text.len()).step_by(3) {
            let mut keeper = Keeper::default();
            let part = text.as_bytes().get(..cut).unwrap_or_default();
            if ftrace_text::read(part, &ReadOptions::default(), &mut keeper).is_err() {
                continue;
            }
            let ended =
                text[..cut.min(text.len())].matches('\n').count().min(keeper.0.len()).saturating_sub(1);
            assert!(keeper.0.len() <= whole.len(), "{name}, cut at {cut}");
            assert_eq!(
                keeper.0[..ended.min(whole.len())],
                whole[..ended.min(whole.len())],
                "{name}, cut at {cut}"
            );
        }
    });
}

/// A wakeup that woke nobody is none, in every form that can say so.
#[test]
fn wakeups_without_success_are_none() {
    let events = recording();
    let wakeups: Vec<Kept> =
        events.into_iter().filter(|kept| matches!(kept.event.kind, EventKind::SchedWakeup(_))).collect();
    for (name, body) in [BODIES[1], BODIES[6]] {
        let (text, expected) = form(&wakeups, &FRONTS[0], body, WRAPPINGS[0].1);
        let (read, stats) = read_text(text.replace("success=1", "success=0").as_bytes());
        assert_eq!((read.len(), stats.unreadable()), (expected.len(), &[][..]), "{name}");
        assert!(read.iter().all(|kept| matches!(kept.event.kind, EventKind::Other { .. })), "{name}");
    }
}
