//! One stretch as columns, and back.
//!
//! Switches stand in order of time, so that times are small differences. A wait that began when the task left its CPU within the stretch
//! has no length: the reader finds it. Times count from the trace's beginning, in units.
//!
//! Must not know: which stretches there are.

use std::collections::HashMap;

use fairlab_analysis::explain::story::CpuMode;
use fairlab_analysis::lanes::{LaneOccupant, LaneStretch, LaneWait, SwitchIn, VirtualFacts, WaitBegan};
use fairlab_event::Ns;

use super::columns::{PieceReader, PieceWriter, folded, unfolded};

/// How the byte of a switch's wait is made up.
mod bits {
    /// Why the wait began, from 1; 0: no wait ends.
    pub(super) const BEGAN: u64 = 0b111;
    /// It crosses a hole.
    pub(super) const CROSSED: u64 = 1 << 3;
    /// The waker's mode, from 0: task, soft interrupt, hardware interrupt.
    pub(super) const MODE_SHIFT: u32 = 4;
    /// It began when the task left its CPU, in this stretch.
    pub(super) const IMPLIED: u64 = 1 << 6;
}

/// A stretch as numbers, whose times are counted in units of `unit` ns from the trace's beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StretchColumns {
    from: u64,
    to: u64,
    standing: [Vec<u64>; 2],
    running: [Vec<u64>; 2],
    /// Time, CPU, what, how left, wait's byte, wait's length, waker's CPU from 1.
    switches: [Vec<u64>; 7],
    /// Time, task, from, to.
    moves: [Vec<u64>; 4],
    /// Task, CPU from 1, since.
    waiting: [Vec<u64>; 3],
}

impl StretchColumns {
    /// Of a stretch of the trace that began at `start`.
    pub(super) fn of(stretch: &LaneStretch, start: Ns) -> StretchColumns {
        let time = |time: Ns| time.since(start).0;
        let mut order = stretch.switches.iter().collect::<Vec<_>>();
        order.sort_by_key(|switch| switch.time);
        let standing = &stretch.standing;
        let mut columns = StretchColumns {
            from: time(stretch.from),
            to: time(stretch.to),
            standing: [
                standing.iter().map(|(task, _)| u64::from(*task)).collect(),
                standing.iter().map(|(_, standing)| u64::from(standing.code())).collect(),
            ],
            running: [
                stretch.running.iter().map(|(cpu, _)| u64::from(cpu.0)).collect(),
                stretch.running.iter().map(|(_, what)| u64::from(what.0)).collect(),
            ],
            switches: Default::default(),
            moves: [
                stretch.moves.iter().map(|told| time(told.time)).collect(),
                stretch.moves.iter().map(|told| u64::from(told.task)).collect(),
                stretch.moves.iter().map(|told| u64::from(told.from.0)).collect(),
                stretch.moves.iter().map(|told| u64::from(told.to.0)).collect(),
            ],
            waiting: [
                stretch.waiting.iter().map(|waits| u64::from(waits.task)).collect(),
                stretch.waiting.iter().map(|waits| waits.cpu.map_or(0, |cpu| u64::from(cpu.0) + 1)).collect(),
                stretch.waiting.iter().map(|waits| time(waits.since)).collect(),
            ],
        };
        columns.put_switches(&order, start);
        columns
    }

    fn put_switches(&mut self, order: &[&SwitchIn], start: Ns) {
        let mut left_at: HashMap<u32, u64> = HashMap::new();
        let mut running: HashMap<u32, LaneOccupant> = HashMap::new();
        for (cpu, what) in self.running[0].iter().zip(&self.running[1]) {
            running.insert(*cpu as u32, LaneOccupant(*what as u32));
        }
        for switch in order {
            let time = switch.time.since(start).0;
            if let Some(task) = running.insert(switch.cpu.0, switch.what).and_then(LaneOccupant::task) {
                left_at.insert(task, time);
            }
            let (mut byte, mut length, waker) = wait_as_numbers(switch.wait.as_ref());
            let left = switch.what.task().and_then(|task| left_at.get(&task));
            if byte != 0 && left.is_some_and(|&left| left + length == time) {
                byte |= bits::IMPLIED;
                length = 0;
            }
            let row = [
                time,
                u64::from(switch.cpu.0),
                u64::from(switch.what.0),
                switch.left as u64,
                byte,
                length,
                waker,
            ];
            self.switches.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
    }

    /// How many switches.
    pub(super) fn switches(&self) -> usize {
        self.switches[0].len()
    }

    /// From when and until when.
    pub(super) const fn span(&self) -> (u64, u64) {
        (self.from, self.to)
    }

    /// All of it, with times rounded down to whole units.
    pub(super) fn write(&self, unit: u64) -> Vec<u8> {
        let scaled = |column: &[u64]| column.iter().map(|value| value / unit).collect::<Vec<_>>();
        let mut writer = PieceWriter::default();
        let from = self.from / unit;
        writer.number(from);
        writer.number(self.to / unit);
        for count in
            [&self.standing[0], &self.running[0], &self.switches[0], &self.moves[0], &self.waiting[0]]
        {
            writer.number(count.len() as u64);
        }
        writer.rising(self.standing[0].iter().copied());
        writer.column(&self.standing[1]);
        writer.rising(self.running[0].iter().copied());
        writer.column(&self.running[1]);
        let [times, cpus, whats, lefts, bytes, lengths, wakers] = &self.switches;
        let times = scaled(times);
        let first = times.first().copied().unwrap_or(from);
        writer.number(folded(first as i64 - from as i64));
        writer.rising(times.iter().map(|time| time.saturating_sub(first)));
        for column in [cpus, whats, lefts, bytes] {
            writer.column(column);
        }
        writer.column(&scaled(lengths));
        writer.column(wakers);
        let [times, tasks, froms, tos] = &self.moves;
        writer.rising(scaled(times).into_iter().map(|time| time.saturating_sub(from)));
        for column in [tasks, froms, tos] {
            writer.column(column);
        }
        let [tasks, cpus, since] = &self.waiting;
        writer.column(tasks);
        writer.column(cpus);
        let to = self.to / unit;
        writer.column(&scaled(since).into_iter().map(|since| to.saturating_sub(since)).collect::<Vec<_>>());
        writer.0
    }

    /// What was written with whole nanoseconds.
    pub(super) fn read(bytes: &[u8]) -> StretchColumns {
        let mut reader = PieceReader::new(bytes);
        let (from, to) = (reader.number(), reader.number());
        let [standing, running, switches, moves, waiting] = [(); 5].map(|()| reader.number() as usize);
        let risen = |deltas: Vec<u64>, mut sum: u64| {
            deltas
                .into_iter()
                .map(|delta| {
                    sum += delta;
                    sum
                })
                .collect::<Vec<_>>()
        };
        let standing = [risen(reader.column(standing), 0), reader.column(standing)];
        let running = [risen(reader.column(running), 0), reader.column(running)];
        let first = (from as i64 + unfolded(reader.number())) as u64;
        let times = risen(reader.column(switches), first);
        let rest = [(); 6].map(|()| reader.column(switches));
        let [cpus, whats, lefts, waits, lengths, wakers] = rest;
        let switches = [times, cpus, whats, lefts, waits, lengths, wakers];
        let times = risen(reader.column(moves), from);
        let [tasks, froms, tos] = [(); 3].map(|()| reader.column(moves));
        let moves = [times, tasks, froms, tos];
        let [tasks, cpus, since] = [(); 3].map(|()| reader.column(waiting));
        let since = since.into_iter().map(|since| to.saturating_sub(since)).collect();
        StretchColumns { from, to, standing, running, switches, moves, waiting: [tasks, cpus, since] }
    }
}

fn wait_as_numbers(wait: Option<&LaneWait>) -> (u64, u64, u64) {
    let Some(LaneWait { length, began, waker, crossed }) = wait else { return (0, 0, 0) };
    debug_assert!(*began as u64 <= bits::BEGAN && (WaitBegan::Wakeup as u64) > 0);
    let mode = match waker {
        None | Some((_, CpuMode::Task)) => 0,
        Some((_, CpuMode::SoftInterrupt)) => 1,
        Some((_, CpuMode::HardInterrupt)) => 2,
    };
    let crossed = if *crossed { bits::CROSSED } else { 0 };
    let byte = *began as u64 | crossed | mode << bits::MODE_SHIFT;
    (byte, length.0, waker.map_or(0, |(cpu, _)| u64::from(cpu.0) + 1))
}

/// Virtual time of tasks that came on CPUs: the switch in order of time, vruntime as the difference to the one before, lag, and
/// how far the deadline lies ahead of vruntime.
pub(super) fn facts(stretch: &LaneStretch) -> Vec<u8> {
    let mut order =
        (0u32..).zip(&stretch.switches).map(|(place, switch)| (switch.time, place)).collect::<Vec<_>>();
    order.sort_by_key(|&(time, _)| time);
    let mut rank = vec![0u64; order.len()];
    for (place, (_, switch)) in (0u64..).zip(&order) {
        rank[*switch as usize] = place;
    }
    let mut rows =
        stretch.facts.iter().filter_map(|(place, facts)| Some((*rank.get(*place as usize)?, facts)));
    let mut rows = rows.by_ref().collect::<Vec<_>>();
    rows.sort_by_key(|&(rank, _)| rank);
    let mut writer = PieceWriter::default();
    writer.number(rows.len() as u64);
    writer.rising(rows.iter().map(|&(rank, _)| rank));
    let mut before = 0u64;
    let deltas = rows.iter().map(|(_, VirtualFacts { vruntime, .. })| {
        folded(vruntime.wrapping_sub(std::mem::replace(&mut before, *vruntime)) as i64)
    });
    writer.column(&deltas.collect::<Vec<_>>());
    let placed = |of: &dyn Fn(i64, i64) -> i64| {
        let row = |(_, facts): &(u64, &VirtualFacts)| match facts.placed {
            Some((lag, deadline)) => folded(of(lag, deadline.wrapping_sub(facts.vruntime) as i64)) + 1,
            None => 0,
        };
        rows.iter().map(row).collect::<Vec<_>>()
    };
    writer.column(&placed(&|lag, _| lag.clamp(-LARGE, LARGE)));
    writer.column(&placed(&|_, ahead| ahead.clamp(-LARGE, LARGE)));
    writer.0
}

/// No lag and no slice is larger.
const LARGE: i64 = 1 << 60;

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_analysis::lanes::{LeaveReason, MovedWaiting, StartingState, StillWaits};
    use fairlab_event::Cpu;

    pub(super) fn stretch() -> LaneStretch {
        let switch = |time, cpu, what, wait| SwitchIn {
            time: Ns(time),
            cpu: Cpu(cpu),
            what: LaneOccupant(what),
            left: LeaveReason::Sleeps,
            wait,
        };
        let woken = LaneWait {
            length: Ns(70),
            began: WaitBegan::Wakeup,
            waker: Some((Cpu(1), CpuMode::HardInterrupt)),
            crossed: false,
        };
        let preempted =
            LaneWait { length: Ns(100), began: WaitBegan::Preempted, waker: None, crossed: false };
        LaneStretch {
            from: Ns(1_000),
            to: Ns(2_000),
            standing: vec![(0, StartingState::Runs), (7, StartingState::Sleeps(LeaveReason::Blocked))],
            running: vec![(Cpu(0), LaneOccupant::of(0)), (Cpu(1), LaneOccupant::IDLE)],
            switches: vec![
                switch(1_100, 0, 3, Some(woken)),
                switch(1_200, 0, 2, Some(preempted)),
                // It was found out later, and lies before the stretch.
                switch(900, 1, 1, None),
            ],
            moves: vec![MovedWaiting { time: Ns(1_500), task: 7, from: Cpu(0), to: Cpu(1) }],
            waiting: vec![StillWaits { task: 7, cpu: None, since: Ns(400) }],
            facts: vec![(1, VirtualFacts { vruntime: 5, placed: Some((-3, 9)) })],
        }
    }

    #[test]
    fn stretches_come_back() {
        let columns = StretchColumns::of(&stretch(), Ns(300));
        assert_eq!(StretchColumns::read(&columns.write(1)), columns);
        assert_eq!(columns.switches[0], [600, 800, 900]);
        assert_eq!(columns.switches[4][2], WaitBegan::Preempted as u64 | bits::IMPLIED, "{columns:?}");
        assert_eq!(columns.switches[5], [0, 70, 0]);
        assert_eq!(facts(&stretch())[..1], [1]);
    }

    #[test]
    fn rounding_keeps_order() {
        let columns = StretchColumns::of(&stretch(), Ns(300));
        let rounded = StretchColumns::read(&columns.write(64));
        assert_eq!(rounded.switches[0], [600 / 64, 800 / 64, 900 / 64]);
        assert_eq!(rounded.span(), (700 / 64, 1_700 / 64));
    }
}
