//! What goes on beside the workload: interrupts of devices, and each CPU's kworker.
//!
//! Departs: devices' interrupts go to all CPUs alike; a kworker's work is one piece.
//!
//! Must not know: what the workload does.

use fairlab_event::{Cpu, Ns, Pid, TaskState};
use fairlab_kernel::core::KernelContext;
use fairlab_kernel::{CpuMask, Policy, TaskId};

use super::Engine;
use super::cpu::{AfterKernelWork, CpuPhase};
use super::occurrence::Interrupt;
use crate::machine::chance::{around, vary};
use crate::model::kthread;
use crate::rng::RandomStream;
use crate::scheduler_core::SchedulerCore;

/// Thread ids given to kworkers of the background count from here.
const FIRST_KWORKER_PID: i32 = 700_000;

/// What goes on in the background of one CPU.
pub(super) struct CpuBackground {
    /// What its devices draw.
    devices: RandomStream,
    /// Its kworker and what that draws.
    kworker: Option<(TaskId, RandomStream)>,
    /// What is left of its work, if it was preempted at it.
    left: Option<Ns>,
}

impl<C: SchedulerCore> Engine<C> {
    /// Creates the kworkers, and arranges what comes first on every CPU.
    pub(super) fn create_background(&mut self) {
        let chance = self.machine.chance;
        let has_kworkers = chance.kworker_period_ns > 0;
        if !has_kworkers && chance.device_irqs_per_s == 0 {
            return;
        }
        for cpu in (0..self.cpus.len() as u32).map(Cpu) {
            let task = has_kworkers.then(|| {
                let pid = Pid(FIRST_KWORKER_PID + cpu.0 as i32);
                let allowed = CpuMask::single(cpu);
                let spec = kthread(&format!("kworker/{cpu}:1"), pid, Policy::Normal, allowed, cpu);
                self.core.new_kthread(&spec, cpu)
            });
            let stream = |what: &str| RandomStream::new(self.seed, &format!("{what}/{cpu}"));
            let kworker = task.map(|task| (task, stream("kworker")));
            self.background.push(CpuBackground { devices: stream("device"), kworker, left: None });
            self.arrange_device(cpu);
            // Each is in the middle of its sleep.
            if let Some((_, stream)) = &mut self.background[cpu.index()].kworker {
                let first = Ns(stream.below(chance.kworker_period_ns));
                self.queue.arrange_interrupt(cpu, self.now + first, Interrupt::Kworker);
            }
        }
    }

    /// The kworkers of the background.
    pub fn background(&self) -> impl Iterator<Item = Pid> {
        (0..self.nr_kworkers() as i32).map(|number| Pid(FIRST_KWORKER_PID + number))
    }

    /// How many tasks are kworkers of the background.
    fn nr_kworkers(&self) -> usize {
        if self.machine.chance.kworker_period_ns > 0 { self.background.len() } else { 0 }
    }

    /// Whether `cpu` runs its kworker.
    pub(super) fn runs_kworker(&self, cpu: Cpu) -> bool {
        let kworker = self.background.get(cpu.index()).and_then(|background| background.kworker.as_ref());
        kworker.is_some_and(|(task, _)| self.core.curr(cpu) == *task)
    }

    /// Arranges the next interrupt of a device on `cpu`.
    fn arrange_device(&mut self, cpu: Cpu) {
        let Some(mean) = 1_000_000_000_u64.checked_div(self.machine.chance.device_irqs_per_s) else { return };
        let gap = around(Ns(mean), &mut self.background[cpu.index()].devices);
        self.queue.arrange_interrupt(cpu, self.now + gap.max(Ns(1)), Interrupt::Device);
    }

    /// A device interrupts `cpu`. Returns what that costs beside the interrupt.
    pub(super) fn device_interrupts(&mut self, cpu: Cpu) -> Ns {
        self.arrange_device(cpu);
        let mean = Ns(self.machine.chance.device_irq_ns);
        around(mean, &mut self.background[cpu.index()].devices)
    }

    /// Work is due for the kworker of `cpu`, which sleeps. Returns what waking it costs.
    pub(super) fn wake_kworker(&mut self, cpu: Cpu) -> Ns {
        match &self.background[cpu.index()].kworker {
            Some((task, _)) => self.machine.costs.wakeup + self.try_to_wake_up(cpu, *task, false),
            None => Ns::ZERO,
        }
    }

    /// The kworker of `cpu` goes to work, or on with it.
    pub(super) fn begin_background_work(&mut self, cpu: Cpu) {
        if let Some(left) = self.background[cpu.index()].left.take() {
            let end = self.now + self.time_for(cpu, left);
            return self.enter_phase(cpu, CpuPhase::Kernel(AfterKernelWork::FinishBackgroundWork), end);
        }
        let mean = Ns(self.machine.chance.kworker_ns);
        let Some((_, stream)) = &mut self.background[cpu.index()].kworker else { return };
        let work = around(mean, stream);
        self.enter_kernel(cpu, work, AfterKernelWork::FinishBackgroundWork);
    }

    /// It is preempted with so much of its work left.
    pub(super) fn pause_background_work(&mut self, cpu: Cpu, left: Ns) {
        self.background[cpu.index()].left = Some(left);
    }

    /// Its work is done, and it sleeps until there is more.
    pub(super) fn background_work_is_done(&mut self, cpu: Cpu) {
        self.core.set_here(cpu, KernelContext::Task, self.now);
        let period = Ns(self.machine.chance.kworker_period_ns);
        if let Some((_, stream)) = &mut self.background[cpu.index()].kworker {
            let sleep = vary(period, 500, stream);
            self.queue.arrange_interrupt(cpu, self.now + sleep.max(Ns(1)), Interrupt::Kworker);
        }
        self.schedule(cpu, TaskState::IDLE);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fairlab_event::{Event, EventKind, sink_fn};

    use super::*;
    use crate::engine::tests::machine;
    use crate::machine::{Chance, Machine};
    use crate::workload::spinners::Spinners;

    fn run(chance: Chance, seed: u64, see: &mut dyn FnMut(&Event<'_>)) -> Engine {
        let machine = Machine { chance, ..machine(2) };
        let mut engine = Engine::new("v6.12".parse().expect("a kernel"), machine, seed);
        engine.set_tracing(true);
        let args = ["-n", "0", "-r", "8"].map(str::to_string);
        engine.start(Box::new(Spinners::parse(&args).expect("a workload")));
        engine.run_until(Ns::from_secs(2), &mut sink_fn(|event: &Event<'_>| see(event)));
        engine
    }

    #[test]
    fn each_cpus_kworker_is_woken_there_works_and_sleeps_again() {
        let chance = Chance { kworker_period_ns: 10_000_000, kworker_ns: 50_000, ..Chance::NONE };
        let (mut ran, mut left) = (BTreeMap::<(Cpu, String), u64>::new(), 0);
        run(chance, 1, &mut |event| {
            if let EventKind::SchedSwitch(switch) = &event.kind {
                let comm = switch.next_comm.to_string();
                if comm.starts_with("kworker") {
                    *ran.entry((event.cpu, comm)).or_default() += 1;
                }
                left += u64::from(
                    switch.prev_comm.to_string().starts_with("kworker")
                        && switch.prev_state == TaskState::IDLE,
                );
            }
        });
        let names = ran.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names, [(Cpu(0), "kworker/0:1".to_string()), (Cpu(1), "kworker/1:1".to_string())]);
        assert!(ran.values().all(|&count| (180..=220).contains(&count)), "2 s, 10 ms apart: {ran:?}");
        assert!(left >= ran.values().sum::<u64>() - 2, "{left}");
    }

    #[test]
    fn devices_take_their_time_from_whoever_runs_and_change_nothing_else() {
        let loops = |device_irqs_per_s| {
            let chance = Chance { device_irqs_per_s, device_irq_ns: 100_000, ..Chance::NONE };
            run(chance, 1, &mut |_| ()).workload(0).progress().expect("loops").1
        };
        let (undisturbed, disturbed) = (loops(0), loops(1000));
        let share = disturbed as f64 / undisturbed as f64;
        assert!((0.88..0.92).contains(&share), "a tenth of the time: {disturbed} of {undisturbed}");
    }
}
