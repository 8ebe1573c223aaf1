//! The fair server of v6.12 and later: a deadline entity per CPU. It gives fair tasks 50 ms of each second beside real-time
//! tasks that never sleep.
//!
//! It waits until it would be late (`deadline` less `runtime`), and is put off while fair tasks run or the CPU idles. If its
//! timer expires, fair tasks go before real-time tasks until its runtime is used up.
//!
//! Kernel: `struct sched_dl_entity fair_server` of `struct rq`, kernel/sched/deadline.c. Times in ns of the runqueue's clock.
//!
//! Departs: its state begins when the first real-time task is queued, since before that it precedes nothing. In v6.17 and v6.18 that is not
//! so: one that watches over nobody uses up its runtime on an idle CPU, is queued, and asks for a reschedule (cccb45d7c429 to f5a538c07df2).
//! Its effect on frequencies (`running_bw`) is left out.
//!
//! Must not know: who is picked, what drives its timer.

mod expiry;
pub(crate) mod rules;
pub(crate) mod state;
#[cfg(test)]
pub(crate) mod tests;
mod timer;

use crate::all_cpus::Shared;
use crate::fair_server::rules::{CountServer, IdleCharge, StopServer};
use crate::fair_server::state::{PERIOD, before};
use crate::rq::LockedRq;
use crate::scheduler::Scheduler;
use crate::task::Policy;

impl Shared {
    fn server_runtime(&self) -> u64 {
        self.fair_servers.runtime
    }
}

impl Scheduler {
    /// A real-time task is queued, the first one: from now on servers watch over fair tasks.
    pub(crate) fn watch_over_fair_tasks(&mut self) {
        if self.shared.fair_servers.watch || self.shared.fair_servers.runtime == 0 {
            return;
        }
        self.shared.fair_servers.watch = true;
        for cpu in self.shared.topology.cpus() {
            if self.shared.cfs(self.rqs[cpu.index()].cfs).h_nr_running > 0 {
                self.rq_lock(cpu).update_rq_clock();
                self.rq_lock(cpu).dl_server_start();
            }
        }
    }

    /// There is no server, as where somebody else says what a kernel did.
    pub fn leave_out_fair_servers(&mut self) {
        self.shared.fair_servers.runtime = 0;
    }
}

impl LockedRq<'_> {
    /// The first fair task is queued. `was_empty`: so is the first of any class.
    ///
    /// Kernel: `enqueue_task_fair()`, kernel/sched/fair.c.
    pub(crate) fn fair_tasks_arrive(&mut self, was_empty: bool) {
        let idle = self.shared.generation.server.idle_time;
        if was_empty && idle == IdleCharge::WhenItEnds {
            self.discount_idle_time();
        }
        self.dl_server_start();
    }

    /// The last fair task has left its queue.
    ///
    /// Kernel: `dequeue_task_fair()`, kernel/sched/fair.c. Variants: `WhenEmpty` to v6.16.
    pub(crate) fn fair_tasks_are_gone(&mut self) {
        if self.shared.generation.server.stop == StopServer::WhenEmpty {
            self.dl_server_stop();
        }
    }

    /// Kernel: `dl_server_start()`.
    pub(crate) fn dl_server_start(&mut self) {
        let runtime = self.shared.server_runtime();
        self.rq.fair_server.idles = false;
        if runtime == 0 || self.rq.fair_server.active {
            return;
        }
        let charges = self.shared.generation.server.idle_time == IdleCharge::AsRun;
        if charges && self.shared.runs_idle_task(self.rq.cpu) {
            self.update_curr_idle();
        }
        self.rq.fair_server.active = true;
        let now = self.rq.clock.0;
        let rule = self.shared.generation.server.start;
        self.rq.fair_server.wake(now, runtime, rule);
        self.enqueue_server();
        self.resched_for_server("dl_server_start");
    }

    /// Kernel: `dl_server_stop()`.
    pub(crate) fn dl_server_stop(&mut self) {
        if !self.rq.fair_server.active {
            return;
        }
        self.dequeue_server();
        self.cancel_server_timer();
        let server = &mut self.rq.fair_server;
        (server.active, server.throttled, server.armed, server.idles) = (false, false, false, false);
    }

    /// Queues the server, unless it waits for its timer (the second half of `enqueue_dl_entity()`).
    fn enqueue_server(&mut self) {
        if self.rq.fair_server.throttled && self.start_server_timer() {
            return;
        }
        if self.rq.fair_server.throttled {
            self.cancel_server_timer();
            (self.rq.fair_server.armed, self.rq.fair_server.throttled) = (false, false);
        }
        debug_assert!(!self.rq.fair_server.queued, "CPU {}: the fair server is queued twice", self.rq.cpu);
        self.rq.fair_server.queued = true;
        self.count_server(1);
    }

    fn dequeue_server(&mut self) {
        if std::mem::take(&mut self.rq.fair_server.queued) {
            self.count_server(-1);
        }
    }

    /// Kernel: `inc_dl_tasks()`, `dec_dl_tasks()`.
    fn count_server(&mut self, change: i32) {
        if self.shared.generation.server.count == CountServer::AsTask {
            self.count_running(change);
        }
    }

    /// It gets runtime again and is queued.
    ///
    /// Kernel: `enqueue_dl_entity()` with `ENQUEUE_REPLENISH`, `replenish_dl_entity()`.
    fn replenish_server(&mut self) {
        let (now, runtime) = (self.rq.clock.0, self.shared.server_runtime());
        let server = &mut self.rq.fair_server;
        if server.armed && server.overflows(now, runtime) {
            (server.deadline, server.runtime) = (now + PERIOD, runtime as i64);
        }
        while server.runtime <= 0 {
            server.deadline += PERIOD;
            server.runtime += runtime as i64;
        }
        if before(server.deadline, now) {
            server.begin_period(now, runtime);
        }
        server.throttled = false;
        let latest = server.deadline.wrapping_sub(server.runtime as u64);
        if !std::mem::take(&mut server.armed) && !server.running && before(now, latest) {
            (server.armed, server.throttled) = (true, true);
        }
        self.enqueue_server();
    }

    /// A fair task has run for so long.
    #[inline]
    pub(crate) fn charge_server(&mut self, delta: u64) {
        if self.rq.fair_server.active {
            self.update_server(delta as i64, false);
        }
    }

    /// Fair tasks have run, or the CPU has idled, for so long.
    ///
    /// Kernel: `update_curr_dl_se()`, as far as it is about a server.
    #[inline(never)]
    fn update_server(&mut self, delta: i64, idle: bool) {
        if delta <= 0 {
            return;
        }
        let (now, runtime) = (self.rq.clock.0, self.shared.server_runtime());
        let server = &mut self.rq.fair_server;
        server.runtime -= delta;
        server.idles &= idle;
        if server.runtime > 0 {
            return;
        }
        if !server.throttled {
            return self.throttle_server();
        }
        if server.idles {
            server.runtime = 0;
            return;
        }
        server.running = false;
        server.begin_period(now, runtime);
        server.idles = idle && self.shared.generation.server.stop == StopServer::AfterIdling;
        self.cancel_server_timer();
        self.start_server_timer();
    }

    /// Its runtime is used up while it is queued.
    fn throttle_server(&mut self) {
        self.rq.fair_server.throttled = true;
        self.dequeue_server();
        if !self.start_server_timer() {
            let (now, runtime) = (self.rq.clock.0, self.shared.server_runtime());
            match self.shared.generation.server.stop {
                // From 421fc59cf58c, of the release of cccb45d7c429.
                StopServer::AtPick | StopServer::AfterIdling => {
                    self.rq.fair_server.begin_period(now, runtime);
                    self.start_server_timer();
                }
                StopServer::WhenEmpty => self.replenish_server(),
            }
        }
        if !self.rq.fair_server.queued {
            self.shared.resched_curr(self.rq.cpu, "update_curr_dl_se");
        }
    }

    /// Kernel: `dl_server_update_idle_time()`, to v6.18 (f5a538c07df2).
    pub(crate) fn discount_idle_time(&mut self) {
        if !self.shared.fair_servers.watch || self.rq.fair_server.runtime < 0 {
            return;
        }
        let idled = self.take_time_of_curr();
        let server = &mut self.rq.fair_server;
        server.runtime -= idled as i64;
        if server.runtime < 0 {
            (server.running, server.runtime) = (false, 0);
        }
    }

    /// The idle task has idled until now: that is as good as if fair tasks had run.
    ///
    /// Kernel: `update_curr_idle()`, kernel/sched/idle.c, from v6.19 (f5a538c07df2, e636ffb9e31b).
    pub(crate) fn update_curr_idle(&mut self) {
        if !self.shared.fair_servers.watch {
            return;
        }
        let idled = self.take_time_of_curr();
        if self.rq.fair_server.active {
            let idle = self.rq.nr_running == 0 && self.rq.ttwu_pending == 0;
            self.update_server(idled as i64, idle);
        }
    }

    /// The CPU leaves its idle task (`put_prev_task_idle()`).
    pub(crate) fn idle_time_ends(&mut self) {
        match self.shared.generation.server.idle_time {
            IdleCharge::WhenItEnds => self.discount_idle_time(),
            IdleCharge::AsRun => self.update_curr_idle(),
        }
    }

    /// How long the running task has not been charged for, ns, up to now.
    fn take_time_of_curr(&mut self) -> u64 {
        let (now, curr) = (self.rq.clock.0, self.shared.curr(self.rq.cpu));
        let se = self.shared.tasks[curr.index()].se;
        let began = std::mem::replace(&mut self.se_mut(se).exec_start, now);
        now.saturating_sub(began)
    }

    /// A task that has a deadline of its own does not make way.
    fn resched_for_server(&mut self, by: &'static str) {
        let curr = self.shared.curr(self.rq.cpu);
        if self.shared.tasks[curr.index()].policy != Policy::Deadline {
            self.shared.resched_curr(self.rq.cpu, by);
        }
    }
}
