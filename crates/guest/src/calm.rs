//! What a kernel keeps of its own start is forgotten, as it is where a workload starts elsewhere.
//!
//! A kernel counts of each task how often it woke another one than the last time (`record_wakee()`, kernel/sched/fair.c), halves that
//! at most once a second, when the task wakes somebody, and hands it on to its children. Where both a waker's count and its
//! wakee's are high, `wake_wide()` keeps them apart. The first process has woken so many while the kernel started (31 were
//! seen, of 7.2) that every task of a workload would begin with that, and of hackbench's none would ever be pulled to its waker.
//!
//! And of each domain it keeps the longest search for work of a CPU that went idle (`max_newidle_lb_cost`), lets a hundredth of that
//! go each second, and searches only where idle times are longer. While it starts, CPUs of an emulator wait for each other
//! for ms, and what is left of that (3 ms were seen, 20 us are usual) would keep single CPUs from searching through all of a workload.
//! Domains that are built anew know nothing of it.
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

/// Has all domains built anew: one CPU leaves them as a partition of its own, and comes back. Where there are no domains, or no
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
