//! How fast CPUs are: work takes longer on a small CPU, at a low frequency, the kernel's own work too.
//!
//! Governors are the scheduler core's; here their requests are carried out, at once or by a thread of the policy, and what a
//! CPU is in the middle of is stretched or shortened.

use fairlab_event::{Cpu, Ns, Pid, TaskState};
use fairlab_kernel::core::Mode;
use fairlab_kernel::{Policy, TaskId};

use super::Engine;
use super::cpu::{Phase, Then};
use super::occurrence::Interrupt;

/// The speed of a biggest CPU at its highest frequency: capacity times frequency, each a part of 1024.
pub(super) const FULL_SPEED: u64 = 1024 * 1024;

/// Thread ids given to governors' threads count from here.
const FIRST_GOVERNOR_PID: i32 = 600_000;

/// The thread of a policy whose CPUs do not switch by themselves (`sugov:N`).
pub(super) struct Governor {
    task: TaskId,
    policy: usize,
    /// It has been told of a frequency since it last asked for one.
    told: bool,
    /// What it sets, kHz.
    khz: u32,
}

impl Engine {
    /// Governors' threads sleep on the first CPU of their policy until there is something to set.
    ///
    /// Kernel: `sugov_kthread_create()`, kernel/sched/cpufreq_schedutil.c.
    pub(super) fn create_governors(&mut self) {
        for policy in self.kernel.policies_with_threads() {
            let allowed = self.kernel.cpus_of_policy(policy);
            let Some(first) = allowed.lowest() else { continue };
            let (comm, pid) = (format!("sugov:{}", first.0), Pid(FIRST_GOVERNOR_PID + policy as i32));
            let task = self.create_kthread(&comm, pid, Policy::Deadline, allowed, first);
            self.governors.push(Governor { task, policy, told: false, khz: 0 });
        }
    }

    /// The governor's thread that `cpu` runs.
    pub(super) fn governor_on(&self, cpu: Cpu) -> Option<usize> {
        let number = self.kernel.curr(cpu).index().checked_sub(2 * self.cpus.len())?;
        (number < self.governors.len()).then_some(number)
    }

    /// How long `cpu` takes, as fast as it is now, for what takes `work` at full speed.
    #[inline]
    pub(super) fn time_for(&self, cpu: Cpu, work: Ns) -> Ns {
        scale(work, FULL_SPEED, self.cpus[cpu.index()].speed)
    }

    /// How much `cpu` does in `time`, as fast as it is now, as time at full speed.
    #[inline]
    pub(super) fn work_in(&self, cpu: Cpu, time: Ns) -> Ns {
        scale(time, self.cpus[cpu.index()].speed, FULL_SPEED)
    }

    /// Notes how fast every CPU is at the start.
    pub(super) fn note_speeds(&mut self) {
        for cpu in self.machine.topology.cpus() {
            self.cpus[cpu.index()].speed = self.speed_of(cpu);
        }
    }

    /// CPUs that one thread carries out in turn are all as fast as that one, whatever their kernel takes them for.
    fn speed_of(&self, cpu: Cpu) -> u64 {
        if self.machine.in_turn {
            return FULL_SPEED;
        }
        let scale = self.kernel.cpu_scale(cpu);
        (scale.capacity * scale.frequency).max(1)
    }

    /// Carries out what governors have asked for in what `cpu` just did, which is charged for their work.
    pub(super) fn serve_governors(&mut self, cpu: Cpu) {
        let mut requests = std::mem::take(&mut self.frequency_requests);
        let looked_at = self.kernel.take_frequency_requests(&mut requests);
        if looked_at > 0 && self.cpus[cpu.index()].phase != Phase::Idle {
            let cost = Ns(self.machine.costs.governor_cpu.0 * u64::from(looked_at));
            self.delay_phase(cpu, cost);
        }
        for request in requests.drain(..) {
            match self.governors.iter().position(|governor| governor.policy == request.policy) {
                Some(number) => self.send(cpu, Interrupt::Governor { number }),
                None => self.set_frequency(request.policy, request.khz),
            }
        }
        self.frequency_requests = requests;
    }

    /// A governor asked on `cpu` for a frequency: its thread is told of it. Returns what waking it costs.
    ///
    /// Kernel: `sugov_irq_work()`.
    pub(super) fn wake_governor(&mut self, cpu: Cpu, number: usize) -> Ns {
        let governor = &mut self.governors[number];
        governor.told = true;
        let task = governor.task;
        if self.kernel.task(task).is_queued() {
            return Ns::ZERO;
        }
        self.machine.costs.wakeup + self.try_to_wake_up(cpu, task, false)
    }

    /// A governor's thread goes to work on `cpu`.
    pub(super) fn begin_setting_frequency(&mut self, cpu: Cpu, number: usize) {
        let khz = self.kernel.sugov_work(self.governors[number].policy);
        let governor = &mut self.governors[number];
        governor.told = false;
        governor.khz = khz;
        self.enter_kernel(cpu, self.machine.costs.frequency_switch, Then::SetFrequency);
    }

    /// The thread on `cpu` has set its frequency: it sets another one that it has been told of meanwhile, or sleeps.
    pub(super) fn frequency_is_set(&mut self, cpu: Cpu) {
        let number = self.governor_on(cpu).expect("only governors' threads set frequencies");
        let Governor { policy, khz, told, .. } = self.governors[number];
        self.kernel.set_here(cpu, Mode::Task, self.now);
        self.set_frequency(policy, khz);
        if told {
            self.begin_setting_frequency(cpu, number);
        } else {
            self.schedule(cpu, TaskState::INTERRUPTIBLE);
        }
    }

    /// The clock of a policy runs at another frequency from now on.
    fn set_frequency(&mut self, policy: usize, khz: u32) {
        self.kernel.set_frequency(policy, khz);
        for cpu in self.kernel.cpus_of_policy(policy).iter() {
            self.change_speed(cpu);
        }
    }

    fn change_speed(&mut self, cpu: Cpu) {
        let speed = self.speed_of(cpu);
        let before = std::mem::replace(&mut self.cpus[cpu.index()].speed, speed);
        let state = &self.cpus[cpu.index()];
        if before == speed || state.phase == Phase::Idle || self.polls(cpu) {
            return;
        }
        let left = scale(state.until.since(self.now), before, speed);
        let until = self.now + left;
        self.cpus[cpu.index()].until = until;
        self.queue.arrange_phase_end(cpu, until);
    }
}

/// `time` × `by` / `of`, rounded up.
#[inline]
fn scale(time: Ns, by: u64, of: u64) -> Ns {
    if by == of { time } else { scale_up(time, by, of) }
}

#[cold]
fn scale_up(time: Ns, by: u64, of: u64) -> Ns {
    Ns((u128::from(time.0) * u128::from(by)).div_ceil(u128::from(of)) as u64)
}
