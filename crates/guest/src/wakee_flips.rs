//! Makes the kernel forget what it remembers of its own start.
//!
//! `record_wakee()` (kernel/sched/fair.c) counts how often a task woke another task than the last time. The count is halved
//! at most once a second, at a wakeup by that task, and children inherit it. If the counts of waker and wakee are both high,
//! `wake_wide()` keeps them apart. During the start of 7.2 the first process reaches 31. Every task of a workload would begin
//! with that, and hackbench's tasks would never be pulled to their wakers.
//!
//! For each domain the kernel remembers the longest search of a CPU that went idle (`max_newidle_lb_cost`), and decays it by a
//! hundredth per second. It searches only if the CPU's idle times are longer. During the start, CPUs of an emulator wait for each
//! other for milliseconds. So 3 ms were seen where 20 us are usual, and single CPUs would not search during a whole workload. New
//! domains begin at zero, so domains are rebuilt.
//!
//! Must not know: what the workload is.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::files;
use crate::snapshot::CGROUPS;

/// More than the second of ticks (`HZ`) after which a count is halved.
const PAUSE: Duration = Duration::from_millis(1_020);

/// After so many halvings nothing is left of any count below a thousand.
const HALVINGS: usize = 10;

/// Has all domains built again: one CPU leaves them as a partition of its own, and comes back. Where there are no domains, or no
/// partitions of this kind (`cpuset.cpus.partition`, v4.20), nothing changes.
pub fn forget_search_costs(cpus: usize) {
    let group = Path::new(CGROUPS).join("rebuild");
    if cpus < 2 || fs::create_dir(&group).is_err() {
        return;
    }
    let last = (cpus - 1).to_string();
    for (file, value) in
        [("cpuset.cpus", &*last), ("cpuset.cpus.partition", "root"), ("cpuset.cpus.partition", "member")]
    {
        let _ = files::write(group.join(file), value);
    }
    let _ = fs::remove_dir(&group);
}

/// Wakes the same thread again and again, until this thread's count is forgotten: some ten seconds.
pub fn forget_wakees() {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let wakee = scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                thread::park();
            }
        });
        for left in (0..HALVINGS).rev() {
            thread::sleep(PAUSE);
            over.store(left == 0, Ordering::SeqCst);
            wakee.thread().unpark();
        }
    });
}
