//! Copies of this process: who may be one, and how one begins and ends.
//!
//! `fork` copies one thread. What the others held stays held in the copy, so whatever runs there must not allocate, lock, print or
//! panic. The compiler cannot see that: each task that may run there is promised here, and nowhere else.
//!
//! Must not know: what anybody does with the processes.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{Errno, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, kill_process_group,
    set_parent_process_death_signal, setsid, waitpid,
};

use crate::{hackbench, pipe};

/// What may run in a copy of this process.
///
/// # Safety
/// [`run`](Self::run), and the end of the value in it, must not allocate, lock, print or panic. System calls on memory and files
/// that are there already are all that they may do.
pub(crate) unsafe trait ForkedTask: Send + 'static {
    /// Does it, and gives the exit status.
    fn run(self) -> i32;
}

// SAFETY: it reads and writes sockets or pipes that are there, with a message on its stack. Its share of the benchmark is not the
// last: the parent's copy of the memory stays until the process ends.
unsafe impl ForkedTask for hackbench::HackbenchTask {
    fn run(self) -> i32 {
        self.work()
    }
}

// SAFETY: it reads and writes two pipes that are there, with four bytes on its stack; its share is not the last, as above.
unsafe impl ForkedTask for pipe::PipeTask {
    fn run(self) -> i32 {
        self.work()
    }
}

/// Creates a process that does `task` and ends with the status that it gives. It dies with the thread that creates it.
///
/// # Errors
/// There is no room for another process.
pub(crate) fn start(task: impl ForkedTask) -> io::Result<Pid> {
    let parent = getpid();
    // SAFETY: the two calls before the task are system calls alone, and whoever implements the trait promised the rest.
    unsafe {
        fork(move || {
            let tied = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
            // A parent that has died meanwhile sends nothing any more.
            if !tied || getppid() != Some(parent) { 1 } else { task.run() }
        })
    }
}

/// Has a command die with the thread that starts it, however that ends.
pub fn die_with_this_thread(command: &mut Command) {
    let parent = getpid();
    let tie = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // A parent that has died meanwhile sends nothing any more.
        if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
    };
    // SAFETY: two system calls, and an error that is a number.
    unsafe {
        command.pre_exec(tie);
    }
}

/// A process that kills a process group once this process is gone, killed or not. It is gone when this is dropped.
#[derive(Debug)]
pub struct ProcessGroupGuard {
    pid: Pid,
    to: OwnedFd,
}

impl ProcessGroupGuard {
    /// Starts it, with nothing to guard yet.
    ///
    /// # Errors
    /// There is no room for another process.
    pub fn new() -> io::Result<ProcessGroupGuard> {
        let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
        let (reads, writes) = (from.as_raw_fd(), to.as_raw_fd());
        // SAFETY: guard() keeps to the rule: system calls alone, on the two ends of the pipe, which the copy has, too.
        let pid = unsafe { fork(move || guard(reads, writes))? };
        Ok(ProcessGroupGuard { pid, to })
    }

    /// Names the group.
    ///
    /// # Errors
    /// The guard is not there any more.
    pub fn watch(&self, group: Pid) -> io::Result<()> {
        let number = group.as_raw_nonzero().get().to_ne_bytes();
        let written = write(&self.to, &number)?;
        if written == number.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }
}

impl Drop for ProcessGroupGuard {
    fn drop(&mut self) {
        let _ = kill_process(self.pid, Signal::KILL);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// Waits for a group's number, and then for the end of whoever holds the other end of the pipe.
fn guard(reads: i32, writes: i32) -> i32 {
    // A terminal's signals are not for it.
    let _ = setsid();
    let mut number = [0; 4];
    // SAFETY: the copy has both ends by these numbers; the buffer is valid for the time of each call.
    unsafe {
        libc::close(writes);
        if libc::read(reads, number.as_mut_ptr().cast(), number.len()) != 4 {
            return 0;
        }
        // A signal may come between.
        while libc::read(reads, [0_u8; 1].as_mut_ptr().cast(), 1) != 0 {}
    }
    match Pid::from_raw(i32::from_ne_bytes(number)) {
        Some(group) => i32::from(kill_process_group(group, Signal::KILL).is_err()),
        None => 0,
    }
}

/// Ends the process whichever way its scope is left.
struct ExitWith(i32);

impl Drop for ExitWith {
    fn drop(&mut self) {
        // SAFETY: it does not return, and touches no memory.
        unsafe { libc::_exit(self.0) }
    }
}

/// Creates a process that does `child` and ends with the status that it gives.
///
/// # Safety
/// `child` keeps to the rule of [`ForkedTask`]: other threads of this process do not exist in the copy, and what they held stays
/// held.
///
/// # Errors
/// There is no room for another process.
unsafe fn fork(child: impl FnOnce() -> i32) -> io::Result<Pid> {
    // SAFETY: the child runs `child` alone, which the caller promised for, and then ends without unwinding into this frame.
    match unsafe { libc::fork() } {
        0 => {
            let mut exit = ExitWith(101);
            exit.0 = child();
            drop(exit);
            unreachable!("the process has ended")
        }
        pid => Pid::from_raw(pid).filter(|_| pid > 0).ok_or_else(io::Error::last_os_error),
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::read;
    use rustix::pipe::pipe;

    use super::*;

    struct Status(i32);

    // SAFETY: it does nothing.
    unsafe impl ForkedTask for Status {
        fn run(self) -> i32 {
            self.0
        }
    }

    fn status_of(pid: Pid) -> Option<i32> {
        waitpid(Some(pid), WaitOptions::empty()).expect("its end").expect("it ended").1.exit_status()
    }

    #[test]
    fn a_forked_child_gives_its_status() {
        assert_eq!(status_of(start(Status(7)).expect("a process")), Some(7));
    }

    /// Starts a process of its own, tells its number, and waits for ever.
    struct Parent(OwnedFd);

    struct Waits;

    // SAFETY: two system calls on a pipe that is there, and a wait.
    unsafe impl ForkedTask for Parent {
        fn run(self) -> i32 {
            let Ok(child) = start(Waits) else { return 1 };
            let told = write(&self.0, &child.as_raw_nonzero().get().to_ne_bytes());
            if told.is_err() { 1 } else { Waits.run() }
        }
    }

    // SAFETY: it waits.
    unsafe impl ForkedTask for Waits {
        fn run(self) -> i32 {
            loop {
                // SAFETY: it touches no memory.
                unsafe { libc::pause() };
            }
        }
    }

    /// Starts a guard and a group under it, tells the group's number, and waits to be killed.
    struct Guarded(OwnedFd);

    // SAFETY: a pipe, two processes and a message, all of them system calls.
    unsafe impl ForkedTask for Guarded {
        fn run(self) -> i32 {
            let Ok(guard) = ProcessGroupGuard::new() else { return 1 };
            // A command, as whoever is guarded: it does not have the guard's pipe.
            // SAFETY: it becomes another program, in a session of its own.
            let child = unsafe {
                fork(|| {
                    let _ = setsid();
                    let (path, name, time) = (c"/bin/sleep", c"sleep", c"600");
                    libc::execl(
                        path.as_ptr(),
                        name.as_ptr(),
                        time.as_ptr(),
                        std::ptr::null::<libc::c_char>(),
                    );
                    1
                })
            };
            let Ok(child) = child else { return 1 };
            let told = write(&self.0, &child.as_raw_nonzero().get().to_ne_bytes());
            if guard.watch(child).is_err() || told.is_err() { 1 } else { Waits.run() }
        }
    }

    #[test]
    fn a_guard_kills_the_group_of_a_killed_process() {
        let (from, to) = pipe().expect("a pipe");
        let parent = start(Guarded(to)).expect("a process");
        let mut number = [0; 4];
        assert_eq!(read(&from, &mut number).expect("a number"), 4);
        std::thread::sleep(std::time::Duration::from_millis(100));
        kill_process(parent, Signal::KILL).expect("killed");
        waitpid(Some(parent), WaitOptions::empty()).expect("its end");
        assert_eq!(read(&from, &mut number).expect("the end"), 0, "nobody holds the pipe any more");
    }

    #[test]
    fn a_command_dies_with_the_thread_that_started_it() {
        let starter = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            die_with_this_thread(command.arg("600"));
            command.spawn().expect("it starts")
        });
        let mut child = starter.join().expect("the thread");
        let status = child.wait().expect("its end");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }

    #[test]
    fn children_die_with_their_parent() {
        let (from, to) = pipe().expect("a pipe");
        let parent = start(Parent(to)).expect("a process");
        let mut number = [0; 4];
        assert_eq!(read(&from, &mut number).expect("a number"), 4);
        let child = i32::from_ne_bytes(number);
        kill_process(parent, Signal::KILL).expect("killed");
        waitpid(Some(parent), WaitOptions::empty()).expect("its end");
        // Both held the pipe: the child, too, has ended when nobody does.
        assert_eq!(read(&from, &mut number).expect("the end"), 0, "{child} lives on");
    }
}
