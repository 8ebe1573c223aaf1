//! Which detail goes into a page.
//!
//! A thread beside the reader deflates stretches as they come. If they are too large for the page together, detail is left
//! out in this order: virtual times; digits of switch times (8, 64 or 512 ns); whole stretches, those around the longest
//! waits last. A [`KeptDetail`] says what was done, for the page and the program.
//!
//! Must not know: what stretches hold.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use fairlab_analysis::lanes::LaneStretch;
use fairlab_event::Ns;
use serde_json::{Value, json};

use super::columns::{PieceBlob, deflate, inflate};
use super::stretches::{StretchColumns, facts};

/// How many stretches wait for the thread at most.
const QUEUE: usize = 8;

/// Units of time that are tried, ns.
const UNITS: [u64; 4] = [1, 8, 64, 512];

/// Of so many stretches the size with a coarser unit is found.
const SAMPLES: usize = 16;

/// A stretch, deflated.
struct PackedStretch {
    from: u64,
    to: u64,
    switches: usize,
    /// Its columns and its facts.
    columns: Vec<u8>,
    facts: Vec<u8>,
}

/// What of the detail a page holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptDetail {
    /// Times of switches are multiples of this, ns.
    pub unit: u64,
    /// Whether virtual times are there, if the trace has them.
    pub facts: bool,
    /// Stretches of the trace whose switches are there, joined: from and to, counted from its beginning.
    pub stretches: Vec<(u64, u64)>,
    /// How many switches of how many.
    pub switches: (u64, u64),
}

impl KeptDetail {
    /// Whether nothing was left out.
    pub fn is_whole(&self) -> bool {
        self.unit == 1 && self.facts && self.switches.0 == self.switches.1
    }

    /// What was left out, in words; none: nothing.
    pub fn text(&self) -> Option<String> {
        if self.is_whole() {
            return None;
        }
        let mut parts = Vec::new();
        if !self.facts {
            parts.push("virtual times are left out".to_string());
        }
        if self.unit > 1 {
            parts.push(format!("times of switches are rounded down to {} ns", self.unit));
        }
        if self.switches.0 < self.switches.1 {
            let (kept, all) = self.switches;
            parts.push(format!(
                "{kept} of {all} switches are there one by one, around the worst waits and from the beginning; elsewhere only \
                 sums are drawn"
            ));
        }
        Some(format!("the trace is too large for one page: {}", parts.join(", ")))
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "unit": self.unit,
            "facts": self.facts,
            "stretches": self.stretches,
            "switches": [self.switches.0, self.switches.1],
            "text": self.text(),
        })
    }
}

/// Takes stretches and keeps them deflated.
pub(super) struct StretchKeeper {
    sender: SyncSender<LaneStretch>,
    packed: Receiver<PackedStretch>,
    thread: Option<JoinHandle<()>>,
}

impl StretchKeeper {
    pub(super) fn new() -> StretchKeeper {
        let (sender, stretches) = sync_channel::<LaneStretch>(QUEUE);
        let (done, packed) = channel();
        let work = move || {
            let mut start = None;
            for stretch in stretches {
                let start = *start.get_or_insert(stretch.from);
                if done.send(pack(&stretch, start)).is_err() {
                    return;
                }
            }
        };
        StretchKeeper { sender, packed, thread: Some(std::thread::spawn(work)) }
    }

    /// Where stretches go.
    pub(super) fn taker(&self) -> impl FnMut(LaneStretch) + use<> {
        let sender = self.sender.clone();
        move |stretch| {
            // The thread ends only with its sender.
            let _ = sender.send(stretch);
        }
    }

    /// All stretches, once the taker is gone.
    fn all(self) -> Vec<PackedStretch> {
        let StretchKeeper { sender, packed, thread } = self;
        drop(sender);
        let all = packed.iter().collect();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        all
    }

    /// Adds what fits into `room` bytes, stretches around `waits` first; says where each stretch stands: from, to, switches, place and length of its columns, place and
    /// length of its facts. Those that are left out have no length.
    pub(super) fn put(
        self,
        blob: &mut PieceBlob,
        waits: &[(u64, u64)],
        room: usize,
    ) -> (Vec<Value>, KeptDetail) {
        let mut all = self.all();
        let switches = all.iter().map(|packed| packed.switches as u64).sum();
        let mut kept = KeptDetail { unit: 1, facts: true, stretches: Vec::new(), switches: (0, switches) };
        let columns: usize = all.iter().map(|packed| packed.columns.len() + 2).sum();
        let facts: usize = all.iter().map(|packed| packed.facts.len() + 2).sum();
        if columns + facts > room {
            kept.facts = facts <= 2 * all.len();
            all.iter_mut().for_each(|packed| packed.facts.clear());
        }
        if columns > room {
            kept.unit = coarser(&mut all, room);
        }
        let chosen = choose(&all, waits, room);
        let rows = all.iter().zip(&chosen).map(|(packed, &is_chosen)| {
            let PackedStretch { from, to, switches, columns, facts } = packed;
            if !is_chosen {
                return json!([from, to, switches, 0, 0, 0, 0]);
            }
            kept.switches.0 += *switches as u64;
            match kept.stretches.last_mut() {
                Some(last) if last.1 == *from => last.1 = *to,
                _ => kept.stretches.push((*from, *to)),
            }
            let columns = blob.put(columns);
            let facts = blob.put(facts);
            json!([from, to, switches, columns.at, columns.length, facts.at, facts.length])
        });
        let rows = rows.collect();
        (rows, kept)
    }
}

fn pack(stretch: &LaneStretch, start: Ns) -> PackedStretch {
    let columns = StretchColumns::of(stretch, start);
    let (from, to) = columns.span();
    let facts = if stretch.facts.is_empty() { Vec::new() } else { deflate(&facts(stretch)) };
    PackedStretch { from, to, switches: columns.switches(), columns: deflate(&columns.write(1)), facts }
}

/// Rounds all times to the first unit with which all fit, or the last one.
fn coarser(all: &mut [PackedStretch], room: usize) -> u64 {
    let step = all.len().div_ceil(SAMPLES).max(1);
    let size = |packed: &PackedStretch, unit| {
        deflate(&StretchColumns::read(&inflate(&packed.columns)).write(unit)).len() as f64
            / packed.columns.len() as f64
    };
    let whole: usize = all.iter().map(|packed| packed.columns.len() + 2).sum();
    let fits = |&&unit: &&u64| {
        let samples = all.iter().step_by(step).map(|packed| size(packed, unit)).collect::<Vec<_>>();
        let ratio = samples.iter().sum::<f64>() / samples.len().max(1) as f64;
        whole as f64 * ratio * 1.01 <= room as f64
    };
    let unit = UNITS[1..].iter().find(fits).copied().unwrap_or(UNITS[UNITS.len() - 1]);
    for packed in all {
        packed.columns = deflate(&StretchColumns::read(&inflate(&packed.columns)).write(unit));
    }
    unit
}

/// Which stretches fit: all; or those around the worst waits, then from the beginning.
fn choose(all: &[PackedStretch], waits: &[(u64, u64)], room: usize) -> Vec<bool> {
    let mut chosen = vec![false; all.len()];
    let mut left = room;
    let mut take = |place: usize| {
        let size = all[place].columns.len() + all[place].facts.len() + 4;
        if !chosen[place] && size <= left {
            left -= size;
            chosen[place] = true;
        }
        chosen[place]
    };
    for &(from, to) in waits {
        let first = all.partition_point(|packed| packed.to < from);
        let around = (first..all.len()).take_while(|&place| all[place].from <= to);
        for place in around {
            take(place);
        }
    }
    for place in 0..all.len() {
        if !take(place) {
            break;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_analysis::lanes::{LaneOccupant, LeaveReason, SwitchIn, VirtualFacts};
    use fairlab_event::Cpu;

    /// Ten stretches of a thousand switches, whose times have many digits.
    fn stretches() -> Vec<LaneStretch> {
        let mut noise = 1u64;
        let mut time = 1_000;
        let mut next = || {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            time += 1 + (noise >> 50);
            let (what, left) = (LaneOccupant((noise >> 60) as u32), LeaveReason::Sleeps);
            SwitchIn { time: Ns(time), cpu: Cpu(0), what, left, wait: None }
        };
        let mut from = Ns(1_000);
        let one = |_| {
            let switches = (0..1_000).map(|_| next()).collect::<Vec<_>>();
            let to = switches.last().map_or(from, |last| last.time);
            let facts =
                (0..1_000).map(|at| (at, VirtualFacts { vruntime: u64::from(at) * 77, placed: None }));
            let facts = facts.collect();
            LaneStretch {
                from: std::mem::replace(&mut from, to),
                to,
                switches,
                facts,
                ..LaneStretch::default()
            }
        };
        (0..10).map(one).collect()
    }

    fn kept(room: usize) -> (Vec<Value>, KeptDetail, usize) {
        let keeper = StretchKeeper::new();
        let mut take = keeper.taker();
        stretches().into_iter().for_each(&mut take);
        drop(take);
        let mut blob = PieceBlob::default();
        let waits = [(8_000_000, 8_000_100)];
        let (rows, kept) = keeper.put(&mut blob, &waits, room);
        (rows, kept, blob.len())
    }

    #[test]
    fn what_does_not_fit_is_left_out_step_by_step_and_told() {
        let (rows, whole, size) = kept(usize::MAX);
        assert!(whole.is_whole() && whole.text().is_none());
        assert_eq!(whole.stretches.len(), 1, "they follow each other");
        assert_eq!(rows.len(), 10);
        let (_, facts, less) = kept(size - 1);
        assert!(!facts.facts && facts.unit == 1 && less < size);
        let (_, rounded, less) = kept(less - 1);
        assert_eq!(rounded.unit, 8);
        assert!(rounded.text().expect("told").contains("rounded down to 8 ns"));
        let (rows, part, small) = kept(less / 4);
        assert!(part.switches.0 < part.switches.1 && small <= less / 4, "{part:?}");
        assert!(part.switches.0 > 0);
        let text = part.text().expect("told");
        assert!(text.contains("one by one, around the worst waits"), "{text}");
        let (from, to) = (8_000_000, 8_000_100);
        let around = part.stretches.iter().any(|&(begin, end)| begin <= from && to <= end);
        let reaches = rows.last().and_then(|row| row[1].as_u64()).is_some_and(|end| end > to);
        assert!(around || !reaches, "{part:?}");
    }
}
