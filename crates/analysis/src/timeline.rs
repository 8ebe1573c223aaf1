//! A picture of a trace: one line a CPU, one character a slot of time, one letter a task.

use std::fmt::Write;

use fairlab_event::{Cpu, Event, EventKind, Ns, Pid, Sink};

/// Draws which task ran where.
///
/// Each character shows the task that ran for the greatest part of its slot (the one that ran first of equals), `.` for
/// idle. Tasks are lettered `A`…`Z`, `a`…`z` in order of first appearance, `*` beyond that.
#[derive(Clone, Debug)]
pub struct CpuTimeline {
    from: Ns,
    slot: Ns,
    slots: usize,
    cpus: Vec<TimelineCpu>,
    letters: Vec<Pid>,
}

#[derive(Clone, Debug, Default)]
struct TimelineCpu {
    running: Option<(Pid, Ns)>,
    /// For each slot: each task that ran in it, and for how long.
    shares: Vec<Vec<(Pid, u64)>>,
}

impl CpuTimeline {
    /// A picture of `slots` characters a CPU, each `slot` long, from `from` on.
    pub fn new(from: Ns, slot: Ns, slots: usize) -> CpuTimeline {
        CpuTimeline { from, slot, slots, cpus: Vec::new(), letters: Vec::new() }
    }

    fn row(&mut self, cpu: Cpu) -> &mut TimelineCpu {
        while self.cpus.len() <= cpu.index() {
            self.cpus.push(TimelineCpu { running: None, shares: vec![Vec::new(); self.slots] });
        }
        &mut self.cpus[cpu.index()]
    }

    fn charge(&mut self, cpu: Cpu, until: Ns) {
        let (from, slot, slots) = (self.from, self.slot.0, self.slots);
        let row = self.row(cpu);
        let Some((pid, since)) = row.running else { return };
        let (mut at, end) = (since.since(from).0, until.since(from).0);
        while at < end {
            let index = (at / slot) as usize;
            if index >= slots {
                break;
            }
            let stop = end.min((index as u64 + 1) * slot);
            let shares = &mut row.shares[index];
            match shares.iter_mut().find(|(known, _)| *known == pid) {
                Some((_, time)) => *time += stop - at,
                None => shares.push((pid, stop - at)),
            }
            at = stop;
        }
        row.running = Some((pid, until));
    }

    /// The picture; what runs at the end goes on to `end`.
    pub fn draw(mut self, end: Ns) -> String {
        for cpu in 0..self.cpus.len() {
            self.charge(Cpu(cpu as u32), end);
        }
        let mut picture = String::new();
        for (cpu, row) in self.cpus.iter().enumerate() {
            let line: String = row.shares.iter().map(|shares| self.character(shares)).collect();
            let _ = writeln!(picture, "{cpu:>3} {}", line.trim_end());
        }
        picture
    }

    fn character(&self, shares: &[(Pid, u64)]) -> char {
        let longest = shares.iter().rev().max_by_key(|&&(_, time)| time);
        match longest {
            None => ' ',
            Some((pid, _)) if pid.is_idle() => '.',
            Some((pid, _)) => {
                let place = self.letters.iter().position(|known| known == pid);
                let letter = place.and_then(|place| (b'A'..=b'Z').chain(b'a'..=b'z').nth(place));
                letter.map_or('*', char::from)
            }
        }
    }
}

impl Sink for CpuTimeline {
    fn event(&mut self, event: &Event<'_>) {
        let EventKind::SchedSwitch(switch) = event.kind else { return };
        if !switch.next_pid.is_idle() && !self.letters.contains(&switch.next_pid) {
            self.letters.push(switch.next_pid);
        }
        self.charge(event.cpu, event.time);
        self.row(event.cpu).running = Some((switch.next_pid, event.time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_event::Switch;

    fn switch(time_us: u64, cpu: u32, next: i32) -> Event<'static> {
        let switch = Switch { next_pid: Pid(next), ..blank() };
        Event::new(Ns::from_us(time_us), Cpu(cpu), EventKind::SchedSwitch(switch))
    }

    fn blank() -> Switch {
        use fairlab_event::{Comm, Prio, TaskState};
        let (comm, pid, prio) = (Comm::default(), Pid(0), Prio::DEFAULT);
        let prev_state = TaskState::RUNNABLE;
        Switch {
            prev_comm: comm,
            prev_pid: pid,
            prev_prio: prio,
            prev_state,
            next_comm: comm,
            next_pid: pid,
            next_prio: prio,
        }
    }

    #[test]
    fn the_task_with_most_of_a_slot_is_drawn() {
        let mut timeline = CpuTimeline::new(Ns::ZERO, Ns::from_us(10), 6);
        for event in [switch(0, 0, 7), switch(12, 0, 0), switch(34, 0, 9), switch(5, 1, 9), switch(34, 1, 7)]
        {
            timeline.event(&event);
        }
        assert_eq!(timeline.draw(Ns::from_us(50)), "  0 A..BB\n  1 BBBAA\n");
    }
}
