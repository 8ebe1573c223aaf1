//! System calls that no safe interface has: scheduling attributes, usage.
//!
//! Must not know: what anybody does with them.
#![allow(unsafe_code)]

use std::io;

use fairlab_kernel::Policy;

/// `struct sched_attr`, include/uapi/linux/sched/types.h, in its first version (48 bytes), which every kernel takes.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadScheduling {
    /// Its policy.
    pub policy: Policy,
    /// Its nice level.
    pub nice: i32,
    /// A slice of its own, ns; 0 is none. Kernels before v6.12 ignore it.
    pub request_ns: u64,
}

/// Asks for a scheduling of the calling thread.
///
/// # Errors
/// This user may not, or the kernel has no such policy.
pub(crate) fn set_scheduling(scheduling: ThreadScheduling) -> io::Result<()> {
    let (policy, priority) = match scheduling.policy {
        Policy::Fifo(priority) => (1, u32::from(priority)),
        Policy::RoundRobin(priority) => (2, u32::from(priority)),
        Policy::Batch => (3, 0),
        Policy::Idle => (5, 0),
        _ => (0, 0),
    };
    let is_fair = priority == 0;
    let attributes = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy,
        flags: 0,
        nice: if is_fair { scheduling.nice } else { 0 },
        priority,
        runtime: if is_fair { scheduling.request_ns } else { 0 },
        deadline: 0,
        period: 0,
    };
    // SAFETY: the kernel reads `size` bytes from the pointer, which is valid for the time of the call.
    let status = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Context switches of this process's children that have ended and were waited for, and of theirs: (voluntary,
/// involuntary). `None` where the kernel does not tell.
pub fn switches_of_children() -> Option<(u64, u64)> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the structure, which is valid for the time of the call and for which all zeros are a value.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) != 0 {
            return None;
        }
        usage.assume_init()
    };
    Some((u64::try_from(usage.ru_nvcsw).ok()?, u64::try_from(usage.ru_nivcsw).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_the_nice_level_that_it_asks_for() {
        let nice = || rustix::process::getpriority_process(None).expect("a nice level");
        let (before, wanted) = (nice(), (nice() + 3).min(19));
        let of_thread = std::thread::spawn(move || {
            let scheduling = ThreadScheduling { nice: wanted, ..ThreadScheduling::default() };
            set_scheduling(scheduling).expect("a higher nice level is everybody's right");
            nice()
        });
        assert_eq!(of_thread.join().expect("the thread"), wanted);
        assert_eq!(nice(), before, "only that thread");
    }
}
