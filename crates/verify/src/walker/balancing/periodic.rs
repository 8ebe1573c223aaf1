//! Periodic balancing. A trace without probes shows only its moves; the model gives the rest: failures so far, and how far
//! searches for idle CPUs may go.
//!
//! If softirqs are traced, they say when a CPU balances; else it does so at a tick if a level is due.
//!
//! Must not know: how moves are judged.

use fairlab_event::{Cpu, Ns, Pid};
use fairlab_kernel::schedstat::CpuIdleType;

use super::super::super::record::{EventRecord, RecordKind};
use super::super::Walker;
use super::looking::{changes_queues, mode_of};

/// A soft interrupt that the tick asks for follows it within this time; an idle CPU's later one another CPU asked for.
const AFTER_TICK: Ns = Ns(100_000);

impl Walker {
    /// Finds whether the trace shows when CPUs balance.
    pub(in super::super) fn find_softirqs(&mut self) {
        self.softirqs_traced = self.window.all().any(|record| matches!(record.what, RecordKind::Balances));
        self.ticks_traced = self.window.all().any(|record| matches!(record.what, RecordKind::TimerInterrupt));
    }

    /// A CPU's tick. One that the machine's clock tells looks through the timers of sleepers first; else the tick is a timer
    /// beside those.
    pub(in super::super) fn begin_tick(&mut self, record: &EventRecord, cpu: Cpu) {
        let sleepers_first = self.silent_ticks.is_some();
        let info = &mut self.cpus[cpu.index()];
        (info.ticked_at, info.tick_comes) = (Some(record.time), sleepers_first);
        if !sleepers_first {
            self.tick(record, cpu);
        }
    }

    /// Before an event: ticks whose interrupts have ended by then.
    pub(in super::super) fn end_ticks(&mut self, record: &EventRecord) {
        if self.silent_ticks.is_none() {
            return;
        }
        for cpu in (0..self.cpus.len()).map(|index| Cpu(index as u32)) {
            let info = &self.cpus[cpu.index()];
            let ended = if cpu == record.cpu {
                !record.flags.in_hardirq()
            } else {
                info.ticked_at.is_some_and(|ticked| record.time.since(ticked) > AFTER_TICK)
            };
            if info.tick_comes && ended {
                self.tick(record, cpu);
            }
        }
    }

    fn tick(&mut self, record: &EventRecord, cpu: Cpu) {
        let idles = self.sched.idles(cpu);
        let info = &mut self.cpus[cpu.index()];
        (info.tick_comes, info.idled_at_tick) = (false, Some(idles));
        if self.sched.goes_by_past_loads() {
            let finds = self.as_balancing_finds(record.time, mode_of(record), cpu);
            self.sched.follow_past_loads(&finds, cpu);
        }
        if !self.softirqs_traced {
            self.follow_periodic(record, cpu, false);
        }
    }

    /// A CPU balances in the soft interrupt; an idle one that was asked to does so for all idle ones. It comes when a level is
    /// due, but for nothing where the CPU has looked for work meanwhile: that has it come as early as to an idle CPU, and a
    /// busy one's levels are due later.
    pub(in super::super) fn balance_in_softirq(&mut self, record: &EventRecord) {
        let here = record.cpu;
        let ticked = self.cpus[here.index()].ticked_at;
        let by_tick = ticked.is_some_and(|ticked| record.time.since(ticked) <= AFTER_TICK);
        if by_tick || record.context != Pid::IDLE {
            let wanted_work = std::mem::take(&mut self.cpus[here.index()].wanted_work);
            let surely = !wanted_work || self.runs_idle(here);
            self.follow_periodic(record, here, surely);
            return;
        }
        if self.sched.has_energy_model() {
            self.age_idle_cpus(record.time);
        }
        for cpu in (0..self.cpus.len()).map(|index| Cpu(index as u32)) {
            if self.runs_idle(cpu) {
                if cpu != here && self.sched.goes_by_past_loads() {
                    self.sched.fade_past_loads(cpu, record.time);
                }
                self.follow_periodic(record, cpu, false);
            }
        }
    }

    fn follow_periodic(&mut self, record: &EventRecord, cpu: Cpu, surely: bool) {
        if self.seen.tries_shown || self.sched.nr_domains(cpu) == 0 {
            return;
        }
        let idles = self.balances_idle(cpu);
        let idle = if idles { CpuIdleType::Idle } else { CpuIdleType::NotIdle };
        let taken_from = self.taken_in_interrupt(record, cpu);
        if !surely && taken_from.is_none() && !self.sched.balance_is_due(cpu, idle, record.time) {
            return;
        }
        let finds = self.as_balancing_finds(record.time, mode_of(record), cpu);
        self.overutilized_known |= self.sched.follow_rebalance(&finds, cpu, idle, taken_from, surely);
    }

    /// A CPU runs out of work, and may look for some. That updates what other classes leave of a CPU, what queues count of their
    /// CPUs' loads, and what wakeups by energy know.
    pub(in super::super) fn follow_newidle(&mut self, record: &EventRecord) {
        let cpu = record.cpu;
        if self.seen.tries_shown || self.sched.nr_domains(cpu) == 0 {
            return;
        }
        self.follow_capacity(record, cpu, |sched| sched.follow_capacity_when_newly_idle(cpu));
        if self.sched.looks_when_newly_idle(cpu) {
            let finds = self.as_balancing_finds(record.time, mode_of(record), cpu);
            self.overutilized_known |= self.sched.follow_newidle(&finds, cpu);
        }
        if self.sched.has_energy_model() && self.sched.idles_long(cpu) {
            self.age_idle_cpus(record.time);
        }
    }

    /// After an event: while some CPU balances, it may ask what tasks that wait on others count of their CPUs' loads, which shows
    /// nowhere if none is moved.
    pub(in super::super) fn doubt_loads(&mut self, record: &EventRecord) {
        let here = &mut self.cpus[record.cpu.index()];
        here.in_balancing = matches!(record.what, RecordKind::Balances);
        let changes = changes_queues(&record.what)
            || matches!(record.what, RecordKind::Balances | RecordKind::TimerInterrupt);
        if changes && self.some_cpu_balances(record.time) {
            self.doubt_loads_everywhere();
        }
    }

    /// Before an event: jiffies begin until then. Where nothing tells when CPUs balance, they may do so before anything else.
    pub(in super::super) fn begin_jiffy(&mut self, now: Ns) {
        if self.sched.count_jiffies_to(now) && !self.softirqs_traced {
            self.doubt_loads_everywhere();
        }
    }

    fn doubt_loads_everywhere(&mut self) {
        if self.selection_shown {
            return;
        }
        for cpu in (0..self.cpus.len()).map(|index| Cpu(index as u32)) {
            if self.sched.nr_running(cpu) > 1 {
                self.sched.doubt_loads(cpu);
            }
        }
    }

    /// Whether some CPU may balance: between any two events where nothing tells of ticks.
    fn some_cpu_balances(&self, now: Ns) -> bool {
        if !self.softirqs_traced && !self.ticks_traced {
            return true;
        }
        (0..).map(Cpu).zip(&self.cpus).any(|(cpu, info)| {
            let by_tick =
                !self.softirqs_traced && info.ticked_at.is_some_and(|ticked| now.since(ticked) <= AFTER_TICK);
            by_tick || info.in_balancing || (info.blocked && self.sched.looks_when_newly_idle(cpu))
        })
    }

    /// One of the idle CPUs ages what sleepers left on all of them, unless that was done a moment ago.
    fn age_idle_cpus(&mut self, time: Ns) {
        /// After how long it should be again (`LOAD_AVG_PERIOD`).
        const AGAIN_AFTER: Ns = Ns(32_000_000);
        if time < self.next_blocked {
            return;
        }
        let ticked = time.0 - time.0 % self.tick.0;
        self.next_blocked = Ns(ticked + AGAIN_AFTER.0);
        for cpu in (0..self.cpus.len()).map(|index| Cpu(index as u32)) {
            let now = self.scheduler_time(time, cpu);
            if self.runs_idle(cpu) && now > self.sched.rq_clock(cpu) {
                self.sched.age_blocked(cpu, now);
            }
        }
    }

    /// From where the code that interrupts a CPU with this event takes a task to `cpu` before it returns. A task that only computes
    /// reports nothing before the next tick interrupts it.
    fn taken_in_interrupt(&self, record: &EventRecord, cpu: Cpu) -> Option<Cpu> {
        let goes_on = |next: &&EventRecord| {
            let interrupts = next.flags.in_softirq() || (next.flags.in_hardirq() && !self.softirqs_traced);
            let begins_another = matches!(next.what, RecordKind::Balances | RecordKind::TimerInterrupt);
            interrupts && !begins_another && next.time.since(record.time).0 < self.tick.0 / 2
        };
        self.window.on_cpu(record.cpu).take_while(goes_on).find_map(|next| match &next.what {
            RecordKind::Migrate { pid, orig, dest, .. } if *dest == cpu => {
                let waits = self.tasks.get(pid).is_some_and(|info| self.sched.is_on_queue(info.id));
                waits.then_some(*orig)
            }
            _ => None,
        })
    }

    /// Whether a CPU that balances in the soft interrupt does so as an idle one: as it was at its tick (`rq::idle_balance`).
    pub(super) fn balances_idle(&self, cpu: Cpu) -> bool {
        let info = &self.cpus[cpu.index()];
        if info.tick_comes {
            return self.sched.idles(cpu);
        }
        info.idled_at_tick.unwrap_or_else(|| self.runs_idle(cpu))
    }

    fn runs_idle(&self, cpu: Cpu) -> bool {
        self.sched.curr(cpu) == self.sched.idle_task(cpu)
    }
}
