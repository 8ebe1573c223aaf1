//! The log of the mask, stage by stage as the report shows it.
//!
//! Must not know: how masks are kept.

use std::fmt::Write as _;

use fairlab_event::{Context, Cpu, Event, EventKind, Ns, Sink, Untyped};

use super::{PATCHED, UPERF};
use crate::claim::of;
use crate::figures::Metric;
use crate::runs::Watched;
use crate::{Bar, Claim, Published, RunKey};

const RIGHTLY: &str = "CPUs that idleness sets and ticks clear, %";
const EMPTY: &str = "scans of an empty mask, once ticks have emptied it, %";

/// What the report says of the log.
pub(super) const METRICS: &[Metric<Vec<Watched<MaskLog>>>] = &[
    (RIGHTLY, |logs| logs.first().and_then(|(_, log)| log.rightly())),
    (EMPTY, |logs| logs.first().and_then(|(_, log)| log.empty())),
];

/// Everything that happened to the mask, in order.
#[derive(Default)]
pub(super) struct MaskLog {
    notes: Vec<Note>,
    /// How many notes there were when the first task ended: the benchmark is over.
    over: Option<Ns>,
}

/// Something that happened to the mask.
#[derive(Clone, Debug)]
struct Note {
    time: Ns,
    cpu: Cpu,
    context: Context,
    event: MaskEvent,
    /// The mask: after an update, or as it was scanned.
    mask: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MaskEvent {
    Updated { idle: bool },
    Scanned,
}

impl Note {
    fn of(event: &Event<'_>) -> Option<Note> {
        let EventKind::Other { name, fields } = event.kind else { return None };
        let what = match Untyped::by_name(name)? {
            Untyped::DoneIdleMask => MaskEvent::Updated { idle: fields.unsigned("set") == Some(1) },
            Untyped::DoneIdleMaskScan => MaskEvent::Scanned,
            _ => return None,
        };
        let mask = fields.text().rsplit_once("mask=").map_or("", |(_, mask)| mask).to_string();
        Some(Note { time: event.time, cpu: event.cpu, context: event.context, event: what, mask })
    }
}

impl Sink for MaskLog {
    fn event(&mut self, event: &Event<'_>) {
        if let EventKind::SchedProcessExit { .. } = event.kind {
            self.over.get_or_insert(event.time);
        }
        self.notes.extend(Note::of(event));
    }
}

fn line(note: &Note) -> String {
    let Note { time, context, mask, .. } = note;
    let flags = match (context.flags.in_hardirq(), context.flags.in_softirq()) {
        (false, false) => "d..1",
        (true, _) => "d.h1",
        (false, true) => "d.s1",
    };
    let who = if context.pid.is_idle() {
        "<idle>-0".to_string()
    } else {
        format!("{}-{}", context.comm.to_str(), context.pid)
    };
    let (seconds, us) = (time.0 / 1_000_000_000, time.0 % 1_000_000_000 / 1_000);
    let what = match note.event {
        MaskEvent::Updated { idle } => {
            format!("update_idle_cpumask: set_idle-{}, cpumask: {mask}", u8::from(idle))
        }
        MaskEvent::Scanned => format!("select_task_rq_fair: scanning: {mask}"),
    };
    format!("{who} [{:03}] {flags} {seconds}.{us:06}: {what}", note.cpu.0)
}

impl MaskLog {
    /// The part in which the benchmark runs after ticks have emptied the mask: from the first emptying to its end.
    fn emptied(&self) -> (usize, usize) {
        let over = |note: &Note| self.over.is_some_and(|over| note.time >= over);
        let end = self.notes.iter().position(over).unwrap_or(self.notes.len());
        let emptied = |note: &Note| {
            note.event == MaskEvent::Updated { idle: false } && note.mask.is_empty()
        };
        // Emptied for good: the last time before the end that a tick did so, after which nothing was set.
        let last_set = self.notes[..end].iter().rposition(|note| {
            note.event == MaskEvent::Updated { idle: true } && note.time.0 + 20_000_000 < self.end()
        });
        let from = last_set.unwrap_or(0);
        let start = self.notes[from..end].iter().position(emptied).map_or(end, |index| from + index);
        (start, end)
    }

    fn end(&self) -> u64 {
        self.over.map_or(u64::MAX, |over| over.0)
    }

    /// The stages.
    pub fn text(&self) -> String {
        let (start, end) = self.emptied();
        let mut text = String::new();
        let mut stage = |title: &str, notes: &[Note]| {
            let _ = writeln!(text, "{title}\n{}", "=".repeat(title.len()));
            for note in notes {
                let _ = writeln!(text, "{}", line(note));
            }
            text.push('\n');
        };
        let upto = |from: usize, count: usize| {
            &self.notes[from.min(self.notes.len())..(from + count).min(self.notes.len())]
        };
        let first = self.notes.iter().position(|note| note.event == MaskEvent::Scanned).unwrap_or(start);
        let idle = first.saturating_sub(8);
        stage(
            "stage 1: system idle, update_idle_cpumask is called from idle threads",
            upto(idle, first - idle),
        );
        stage("stage 2: ramp up, cpumask changes back and forth", upto(first, 16.min(start - first)));
        let before = start.saturating_sub(4);
        let running = before.saturating_sub(8).max((first + 16).min(before));
        stage(
            "stage 3: running, select_idle_cpu() scans what is marked at the beginning",
            upto(running, before - running),
        );
        stage(
            "stage 4: scheduler tick comes, update idle cpumask to EMPTY",
            upto(before, (start + 1).min(end) - before.min(end)),
        );
        let scans = &self.notes[(start + 1).min(end)..end];
        let title = format!(
            "stage 5: running on, select_idle_cpu() does not scan: {} notes until the end, the first and the last of them",
            scans.len()
        );
        let shown = scans.iter().take(2).chain(scans.iter().rev().take(2).rev()).cloned().collect::<Vec<_>>();
        stage(&title, &shown);
        stage("stage 6: benchmark finished, idle threads switch on", upto(end, 10));
        stage("stage 7: ramp down", upto(end + 10, 8));
        text
    }

    /// Of the changes of the mask those that the idle thread makes as it begins, or a tick's interrupt as it clears, %.
    fn rightly(&self) -> Option<f64> {
        let (mut updates, mut rightly) = (0, 0);
        for note in &self.notes {
            let MaskEvent::Updated { idle } = note.event else { continue };
            updates += 1;
            let flags = note.context.flags;
            let in_task = !flags.in_hardirq() && !flags.in_softirq();
            rightly += u64::from(if idle { in_task } else { flags.in_hardirq() });
        }
        percent(rightly, updates)
    }

    /// Of the scans after ticks have emptied the mask, until the end, those that find it empty, %.
    fn empty(&self) -> Option<f64> {
        let (start, end) = self.emptied();
        let scans = self.notes[start..end].iter().filter(|note| note.event == MaskEvent::Scanned);
        let (scans, empty) =
            scans.fold((0, 0), |(scans, empty), note| (scans + 1, empty + u64::from(note.mask.is_empty())));
        percent(empty, scans)
    }
}

fn percent(of: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| of as f64 * 100.0 / all as f64)
}

/// The claims on the log.
pub(super) fn claims() -> [Claim; 2] {
    [
        Claim::new(
            "uperf: CPUs are set by entering idleness and cleared by ticks only",
            Published::Said("as in each line of the log"),
            of(RIGHTLY, RunKey::new(UPERF, PATCHED)),
            "%",
            Bar::AtLeast(100.0),
        ),
        Claim::new(
            "uperf: once ticks have emptied the mask, nothing is scanned until the end (at least 95 % of scans)",
            Published::Said("no idle cpu in cpumask to scan"),
            of(EMPTY, RunKey::new(UPERF, PATCHED)),
            "%",
            Bar::AtLeast(95.0),
        ),
    ]
}
