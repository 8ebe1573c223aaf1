//! A stretch of the recording of bounded length, for looking ahead.
//!
//! The trace often shows a decision later than the kernel made it: it prints the value of a placement when the task has run.
//! The window bounds how much later. A value beyond it counts as not shown.
//!
//! Must not know: what is looked for.

use std::collections::{BTreeMap, VecDeque};

use fairlab_event::{Cpu, Pid};

use super::record::{EventRecord, RecordKind};

/// Consecutive records, with indices by task and by CPU.
#[derive(Debug, Default)]
pub(super) struct RecordWindow {
    records: VecDeque<EventRecord>,
    /// Position in the whole trace of the first record held.
    start: u64,
    by_task: BTreeMap<Pid, VecDeque<u64>>,
    by_cpu: BTreeMap<Cpu, VecDeque<u64>>,
    /// By the address of a group's entity.
    by_entity: BTreeMap<u64, VecDeque<u64>>,
}

impl RecordWindow {
    /// Appends a record.
    pub fn push(&mut self, record: EventRecord) {
        let position = self.start + self.records.len() as u64;
        if let Some(task) = record.what.task() {
            self.by_task.entry(task).or_default().push_back(position);
        }
        if let RecordKind::Switch(switch) = &record.what {
            for task in [switch.prev_pid, switch.next_pid] {
                self.by_task.entry(task).or_default().push_back(position);
            }
        }
        if let Some(entity) = record.what.group_entity() {
            self.by_entity.entry(entity).or_default().push_back(position);
        }
        self.by_cpu.entry(record.cpu).or_default().push_back(position);
        self.records.push_back(record);
    }

    /// Number of records held.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Takes the first record out; what was after it can still be looked at.
    pub fn pop(&mut self) -> Option<EventRecord> {
        let record = self.records.pop_front()?;
        let position = self.start;
        self.start += 1;
        let switched = match &record.what {
            RecordKind::Switch(switch) => [Some(switch.prev_pid), Some(switch.next_pid)],
            what => [what.task(), None],
        };
        for task in switched.into_iter().flatten() {
            drop_first(&mut self.by_task, task, position);
        }
        if let Some(entity) = record.what.group_entity() {
            drop_first(&mut self.by_entity, entity, position);
        }
        drop_first(&mut self.by_cpu, record.cpu, position);
        Some(record)
    }

    /// Everything to come, in order.
    pub fn all(&self) -> impl Iterator<Item = &EventRecord> {
        self.records.iter()
    }

    /// What is to come about `task`: its events and its switches.
    pub fn of_task(&self, task: Pid) -> impl Iterator<Item = &EventRecord> {
        self.at(self.by_task.get(&task))
    }

    /// What probes are to show of the group's entity at an address.
    pub fn of_entity(&self, address: u64) -> impl Iterator<Item = &EventRecord> {
        self.at(self.by_entity.get(&address))
    }

    /// What `cpu` is to report.
    pub fn on_cpu(&self, cpu: Cpu) -> impl Iterator<Item = &EventRecord> {
        self.at(self.by_cpu.get(&cpu))
    }

    fn at<'a>(&'a self, positions: Option<&'a VecDeque<u64>>) -> impl Iterator<Item = &'a EventRecord> {
        let positions = positions.into_iter().flatten();
        positions.filter_map(|position| self.records.get(usize::try_from(position - self.start).ok()?))
    }
}

fn drop_first<K: Ord + Copy>(index: &mut BTreeMap<K, VecDeque<u64>>, key: K, position: u64) {
    let Some(positions) = index.get_mut(&key) else { return };
    while positions.front().is_some_and(|&first| first <= position) {
        positions.pop_front();
    }
    if positions.is_empty() {
        index.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_event::{Comm, Flags, Ns};

    fn record(number: u64, cpu: u32, pid: i32) -> EventRecord {
        EventRecord {
            number,
            time: Ns(number),
            cpu: Cpu(cpu),
            context: Pid(0),
            comm: Comm::default(),
            flags: Flags::NONE,
            what: RecordKind::WaitEnds(Pid(pid)),
        }
    }

    #[test]
    fn what_is_to_come_is_found_by_task_and_by_cpu() {
        let mut window = RecordWindow::default();
        for (number, cpu, pid) in [(1, 0, 7), (2, 1, 8), (3, 0, 7), (4, 1, 7)] {
            window.push(record(number, cpu, pid));
        }
        assert_eq!(window.pop().map(|first| first.number), Some(1));
        let numbers =
            |records: Vec<&EventRecord>| records.iter().map(|record| record.number).collect::<Vec<_>>();
        assert_eq!(numbers(window.of_task(Pid(7)).collect()), [3, 4]);
        assert_eq!(numbers(window.on_cpu(Cpu(1)).collect()), [2, 4]);
        assert_eq!(window.len(), 3);
        window.pop();
        assert_eq!(window.of_task(Pid(8)).count(), 0);
        assert_eq!(numbers(window.all().collect()), [3, 4]);
    }
}
