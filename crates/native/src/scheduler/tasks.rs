//! Tasks by number: which task of the image's each is, and what events tell of it.
//!
//! Numbers are as the header says: idle tasks, stoppers, the task that boots, then those that the engine creates. The number of a
//! task that has ended goes to a new one.

use fairlab_event::{Comm, Cpu, Ns, Pid};
use fairlab_kernel::{GroupId, TaskId};

use crate::abi::TaskPtr;

/// Ids given to stoppers count from here, as in the model.
pub(super) const FIRST_STOPPER_PID: i32 = 500_000;

/// The id of the task that boots.
pub(super) const INIT_PID: i32 = 1;

/// What is known of a task.
#[derive(Clone, Debug)]
pub(super) struct NativeTask {
    pub comm: Comm,
    pub pid: Pid,
    pub tgid: Pid,
    /// `None`: made at boot, never asked for by its address.
    pub address: Option<TaskPtr>,
    pub group: GroupId,
    /// It left its CPU then, maybe later than now, and which CPU that was.
    pub left: (Ns, Cpu),
    /// It sleeps, and has not been woken since.
    pub asleep: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct NativeTasks {
    list: Vec<NativeTask>,
    free: Vec<TaskId>,
}

impl NativeTasks {
    pub fn at_boot(nr_cpus: usize) -> NativeTasks {
        let task = |comm: Comm, pid: i32| NativeTask {
            comm,
            pid: Pid(pid),
            tgid: Pid(pid),
            address: None,
            group: GroupId::ROOT,
            left: (Ns::ZERO, Cpu(0)),
            asleep: false,
        };
        let cpus = || (0..nr_cpus as u32).map(Cpu);
        let idle = cpus().map(|cpu| task(Comm::swapper(cpu), 0));
        let stoppers = cpus().map(|cpu| {
            let comm = Comm::from(format!("migration/{cpu}").as_str());
            task(comm, FIRST_STOPPER_PID + cpu.0 as i32)
        });
        let init = task(Comm::from("init"), INIT_PID);
        NativeTasks { list: idle.chain(stoppers).chain([init]).collect(), free: Vec::new() }
    }

    #[inline]
    pub fn get(&self, task: TaskId) -> &NativeTask {
        &self.list[task.index()]
    }

    #[inline]
    pub fn get_mut(&mut self, task: TaskId) -> &mut NativeTask {
        &mut self.list[task.index()]
    }

    /// The address of a task that the engine has created.
    ///
    /// # Panics
    /// It was made at boot.
    #[inline]
    pub fn address(&self, task: TaskId) -> TaskPtr {
        self.list[task.index()].address.expect("a task that the engine has created")
    }

    /// The number that the next task gets.
    pub fn next(&self) -> TaskId {
        self.free.last().copied().unwrap_or(TaskId(self.list.len() as u32))
    }

    /// A new task, which gets that number.
    pub fn add(&mut self, task: NativeTask) -> TaskId {
        match self.free.pop() {
            Some(id) => {
                self.list[id.index()] = task;
                id
            }
            None => {
                self.list.push(task);
                TaskId(self.list.len() as u32 - 1)
            }
        }
    }

    /// The task is gone for good.
    pub fn remove(&mut self, task: TaskId) {
        self.list[task.index()].address = None;
        self.free.push(task);
    }
}
