//! Threads that burn CPU time in user mode until another thread has changed a word: locks that spin.
//!
//! A spin costs one event at its begin and one at its end. A store to the word wakes no thread: running spinners look at
//! once, and preempted ones when they run again.
//!
//! Departs: an interrupt on a spinner's CPU does not keep it from looking. A cache line moves from CPU to CPU in the time of
//! a clock reading.
//!
//! Must not know: what the words are.

use fairlab_event::{Cpu, Ns};

use super::cpu::CpuPhase;
use super::program::CLOCK_READ;
use super::{ComputeSegment, Engine, EngineProgram};
use crate::scheduler_core::SchedulerCore;

impl<C: SchedulerCore> Engine<C> {
    /// The thread on `cpu` begins to look at `word` in a loop, or goes on with that.
    pub(super) fn spin(&mut self, cpu: Cpu, thread: usize, word: u32, left: Ns) {
        if self.sees(thread, word) {
            self.threads[thread].segment = ComputeSegment::Work(CLOCK_READ);
            return self.enter_phase(cpu, CpuPhase::User, self.now + self.time_for(cpu, CLOCK_READ));
        }
        let spinning = &mut self.programs[self.threads[thread].program].spinning;
        if spinning.len() <= word as usize {
            spinning.resize(word as usize + 1, Vec::new());
        }
        spinning[word as usize].push((cpu, self.now));
        let until = if left == Ns::MAX { Ns::MAX } else { self.now + self.time_for(cpu, left) };
        self.enter_phase(cpu, CpuPhase::User, until);
    }

    fn sees(&mut self, thread: usize, word: u32) -> bool {
        let (program, id) = (self.threads[thread].program, self.threads[thread].id);
        self.programs[program].workload.sees(id, word)
    }

    /// The thread on `cpu` does not look at `word` any more.
    pub(super) fn looks_away(&mut self, cpu: Cpu, thread: usize, word: u32) {
        let EngineProgram { spinning, workload, .. } = &mut self.programs[self.threads[thread].program];
        let Some(looking) = spinning.get_mut(word as usize) else { return };
        if let Some(place) = looking.iter().position(|&(other, _)| other == cpu) {
            let (_, since) = looking.remove(place);
            workload.spun(word, self.now.since(since));
        }
    }

    /// It is preempted, and notes how long it goes on afterwards.
    pub(super) fn pause_spinning(&mut self, cpu: Cpu, thread: usize, word: u32) {
        self.looks_away(cpu, thread, word);
        let until = self.cpus[cpu.index()].until;
        let left = if until == Ns::MAX { Ns::MAX } else { self.work_in(cpu, until.since(self.now)) };
        self.threads[thread].segment = ComputeSegment::Spin { word, left: left.max(CLOCK_READ) };
    }

    /// A thread of `program` stores to `word`: those that spin on it look, until `most` of them see what they spin for.
    pub(super) fn release(&mut self, program: usize, word: u32, most: u32) {
        let Some(looking) = self.programs[program].spinning.get_mut(word as usize) else { return };
        let mut looking = std::mem::take(looking);
        let first = if looking.len() < 2 { 0 } else { self.spins.below(looking.len() as u64) as usize };
        looking.rotate_left(first);
        let mut gone = 0;
        looking.retain(|&(cpu, since)| {
            if gone == most || self.stands_still(cpu) || !self.looks(cpu, word) {
                return true;
            }
            gone += 1;
            self.programs[program].workload.spun(word, self.now.since(since));
            false
        });
        self.programs[program].spinning[word as usize] = looking;
    }

    /// The spinner on `cpu` looks; if it sees what it spins for, it goes on.
    fn looks(&mut self, cpu: Cpu, word: u32) -> bool {
        let Some(thread) = self.thread_on(cpu) else { return false };
        if !self.sees(thread, word) {
            return false;
        }
        self.threads[thread].segment = ComputeSegment::Work(CLOCK_READ);
        self.enter_phase(cpu, CpuPhase::User, self.now + self.time_for(cpu, CLOCK_READ));
        true
    }

    /// A CPU that stood still goes on: a spinner there looks again.
    pub(super) fn look_again(&mut self, cpu: Cpu) {
        let Some(thread) = self.thread_on(cpu).filter(|_| self.cpus[cpu.index()].phase == CpuPhase::User)
        else {
            return;
        };
        if let ComputeSegment::Spin { word, .. } = self.threads[thread].segment
            && self.looks(cpu, word)
        {
            self.looks_away(cpu, thread, word);
        }
    }
}
