//! Where tasks may run, as far as the trace tells.
//!
//! A probe shows the mask of a call. Two other signs exist without a probe. A running task that leaves its queue, comes back
//! and asks its CPU's stopper for help may not run there any more. A kthread that kthreadd makes gets the CPU in its name
//! after its first sleep.
//!
//! Must not know: what is chosen.

use fairlab_event::{Comm, Cpu, Pid};
use fairlab_kernel::{CpuMask, TaskId};

use super::super::probe::{At, Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::{Walker, bound_to};

const KTHREADD: Pid = Pid(2);

/// What is known of where a task may run, besides the core's mask of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Affinity {
    /// kthreadd has made it, and it has not been woken since.
    is_new_kthread: bool,
    /// Nothing tells its mask, or it was changed unseen: CPUs that are in it. The core's mask lacks only those that are surely
    /// not.
    shown: Option<CpuMask>,
}

/// How many events of a task are looked at for where it runs later.
const LOOKED_AHEAD: usize = 1024;

impl Walker {
    /// `sched_setaffinity()` begins; no pid means the caller. The first 64 CPUs are shown.
    pub(super) fn on_set_affinity(&mut self, record: &EventRecord, probe: &ProbeHit) {
        // What becomes of the call, another probe tells.
        if self.seen.mask_probe {
            return;
        }
        let pid = probe.task().filter(|pid| pid.0 != 0).unwrap_or(record.context);
        self.give_mask(pid, probe);
    }

    /// A task is about to get another mask, by a call or by its group. Where it keeps its own and only may not move for a moment,
    /// it stays where it is.
    pub(super) fn on_set_allowed(&mut self, probe: &ProbeHit) {
        /// `SCA_MIGRATE_DISABLE` and `SCA_MIGRATE_ENABLE`.
        const FOR_A_MOMENT: i64 = 6;
        self.seen.mask_probe = true;
        let stays = probe.get(Key::Flags).is_some_and(|flags| flags & FOR_A_MOMENT != 0);
        if let Some(pid) = probe.task().filter(|_| !stays) {
            self.give_mask(pid, probe);
        }
    }

    fn give_mask(&mut self, pid: Pid, probe: &ProbeHit) {
        let Some(mask) = probe.unsigned(Key::Mask) else { return };
        let Some(info) = self.tasks.get_mut(&pid) else { return };
        info.affinity.shown = None;
        let allowed = (0..64).filter(|bit| mask >> bit & 1 == 1).map(Cpu).collect::<CpuMask>();
        self.sched.force_allowed(info.id, allowed);
    }

    /// A task enters another group, which may be bound to CPUs as others were found to be.
    pub(super) fn doubt_mask(&mut self, pid: Pid) {
        let Some(info) = self.tasks.get_mut(&pid) else { return };
        if self.seen.mask_probe || !(self.seen.cpusets || info.affinity.shown.is_some()) {
            return;
        }
        info.affinity.shown = Some(CpuMask::EMPTY);
        self.sched.force_allowed(info.id, CpuMask::first(self.cpus.len()));
    }

    /// A new task may run where its parent may.
    pub(super) fn inherit_affinity(&mut self, parent: TaskId, child: TaskId) {
        let allowed = *self.sched.task(parent).allowed();
        self.sched.force_allowed(child, allowed);
        self.sched.force_per_cpu_kthread(child, false);
        let shown = self.info(parent).and_then(|info| info.affinity.shown);
        let is_new_kthread = self.pid_of(parent) == KTHREADD;
        if let Some(info) = self.info(child) {
            info.affinity = Affinity { is_new_kthread, shown };
        }
    }

    /// A new task is given a mask of its own before it is queued: its CPU is selected by that.
    pub(super) fn take_mask_from_start(&mut self, child: Pid) {
        let mut coming =
            self.window.of_task(child).take_while(|record| !matches!(record.what, RecordKind::WakeupNew(_)));
        let given = coming.find_map(|record| match &record.what {
            RecordKind::Probe(probe) if probe.at == At::SetAffinity => Some(probe.clone()),
            _ => None,
        });
        drop(coming);
        let Some(given) = given else { return };
        self.give_mask(child, &given);
        let Some(task) = self.tasks.get(&child).map(|info| info.id) else { return };
        let known = self.sched.task(task);
        let bound = bound_to(known.comm()).is_some_and(|cpu| *known.allowed() == CpuMask::single(cpu));
        self.sched.force_per_cpu_kthread(task, bound);
    }

    /// A task is woken. The maker of a kthread binds it while it sleeps for the first time, and wakes it then.
    pub(super) fn bind_new_kthread(&mut self, task: TaskId, comm: Comm) {
        let is_new = self.info(task).is_some_and(|info| std::mem::take(&mut info.affinity.is_new_kthread));
        let bound = bound_to(comm).filter(|cpu| cpu.index() < self.cpus.len());
        if let Some(cpu) = bound.filter(|_| is_new) {
            self.sched.force_allowed(task, CpuMask::single(cpu));
            self.sched.force_per_cpu_kthread(task, true);
        }
    }

    /// Code on `by` has taken a running task off its queue and put it back, and nothing has told why: if it then asks the
    /// stopper to move it, it may not run there any more.
    pub(super) fn learn_affinity(&mut self, task: TaskId, by: Cpu) {
        let (pid, cpu) = (self.pid_of(task), self.sched.task(task).cpu());
        let mut after = self
            .window
            .on_cpu(by)
            .skip_while(|record| !matches!(record.what, RecordKind::WaitEnds(ended, _) if ended == pid));
        let moves = after.nth(1).is_some_and(|record| wakes_stopper_of(record, cpu));
        drop(after);
        if !moves || !self.sched.task(task).allowed().contains(cpu) {
            return;
        }
        self.seen.cpusets = true;
        let mut allowed = CpuMask::first(self.cpus.len());
        allowed.clear(cpu);
        self.sched.force_allowed(task, allowed);
        if let Some(info) = self.info(task) {
            info.affinity.shown = Some(CpuMask::EMPTY);
        }
    }

    /// Whether it is not certain that a task may run on `chosen`; it may where it is, and where the kernel puts it. A task that
    /// moves between CPUs need not be free: of the wakeups that this would admit, a fifth were to CPUs that the task might not
    /// use.
    pub(super) fn doubts_affinity(&mut self, task: TaskId, chosen: Cpu, kernel: Cpu) -> bool {
        let prev = self.sched.task(task).cpu();
        let pid = self.pid_of(task);
        let Some(shown) = self.tasks.get_mut(&pid).and_then(|info| info.affinity.shown.as_mut()) else {
            return false;
        };
        shown.set(prev);
        let doubts = !shown.contains(chosen);
        shown.set(kernel);
        doubts && !self.moves_later(pid, Some(chosen))
    }

    /// Whether it is not certain that a task which balancing takes to `dest` may run there. A task that moves between CPUs counts
    /// as free.
    pub(super) fn doubts_move(&self, task: TaskId, dest: Cpu) -> bool {
        let pid = self.pid_of(task);
        let shown = self.tasks.get(&pid).and_then(|info| info.affinity.shown);
        shown.is_some_and(|shown| !shown.contains(dest) && shown.weight() < 2 && !self.moves_later(pid, None))
    }

    /// Balancing takes a task to `dest`.
    pub(super) fn note_move(&mut self, task: TaskId, dest: Cpu) {
        if let Some(shown) = self.info(task).and_then(|info| info.affinity.shown.as_mut()) {
            shown.set(dest);
        }
    }

    /// Whether a task runs on another CPU, or on `cpu`, some time after it has left the one on which it runs next: what is
    /// decided now is no evidence of itself.
    fn moves_later(&self, pid: Pid, cpu: Option<Cpu>) -> bool {
        let events = self.window.of_task(pid).take(LOOKED_AHEAD);
        let mut runs_on = events.filter_map(|record| match &record.what {
            RecordKind::Switch(switch) if switch.next_pid == pid => Some(record.cpu),
            _ => None,
        });
        let next = runs_on.next();
        runs_on.skip_while(|&on| Some(on) == next).any(|on| cpu.is_none_or(|cpu| on == cpu))
    }

    /// No snapshot tells where a task may run: it may where it is.
    pub(super) fn hide_affinity(&mut self, task: TaskId) {
        let has_snapshot = self.recording.debug.is_some() || !self.recording.tasks.is_empty();
        let is_told = has_snapshot || self.begins_with_machine;
        let is_bound = self.sched.task(task).allowed().weight() == 1;
        let cpu = self.sched.task(task).cpu();
        if let Some(info) = self.info(task).filter(|_| !is_told && !is_bound) {
            info.affinity.shown = Some(CpuMask::single(cpu));
        }
    }
}

/// Whether code wakes the stopper of `cpu` outside of interrupts.
fn wakes_stopper_of(record: &EventRecord, cpu: Cpu) -> bool {
    let RecordKind::Waking(wakeup) = &record.what else { return false };
    let in_interrupt = record.flags.in_hardirq() || record.flags.in_softirq();
    let is_stopper = wakeup.comm.as_bytes().starts_with(b"migration/");
    is_stopper && wakeup.target_cpu == cpu && !in_interrupt
}
