//! What a task does before it returns to user mode (`task_work_run()`).

use fairlab_event::Cpu;

use crate::scheduler::Scheduler;

impl Scheduler {
    /// Whether the running task of `cpu` has something to do before it returns to user mode (`TIF_NOTIFY_RESUME`).
    #[inline]
    pub fn has_user_mode_work(&self, cpu: Cpu) -> bool {
        self.has_throttle_work(cpu) || self.has_cache_work(cpu)
    }

    /// The running task of `cpu` is about to return to user mode. It may look for the cache that its process prefers. If its
    /// group is throttled it leaves its queue instead of returning, and a reschedule is pending. Returns whether it does.
    #[inline]
    pub fn user_mode_work(&mut self, cpu: Cpu) -> bool {
        if self.has_cache_work(cpu) {
            self.task_cache_work(cpu);
        }
        self.throttle_at_user_return(cpu)
    }
}
