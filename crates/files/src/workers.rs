//! Work on many items, on all cores.
//!
//! Must not know: what the work is.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::{LabError, Progress};

/// Does `work` for every item on `jobs` threads. `on_progress` is called from any of them after each item. Results come in
/// the order of the items, whatever `jobs` is; there is none for an item that was not finished before `stop` was set.
///
/// # Errors
/// The work fails for an item; the others are given up.
pub fn for_each<I: Sync, T: Send>(
    items: &[I],
    jobs: usize,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
    work: impl Fn(&I) -> Result<Option<T>, LabError> + Sync,
) -> Result<Vec<Option<T>>, LabError> {
    let (next, done, total) = (AtomicUsize::new(0), AtomicUsize::new(0), items.len());
    let results = Mutex::new(items.iter().map(|_| None).collect::<Vec<_>>());
    on_progress(Progress { done: 0, total });
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        items.get(index).map(|item| (index, item))
    };
    let worker = || {
        while let Some((index, item)) = take() {
            let outcome = work(item);
            stop.fetch_or(outcome.is_err(), Ordering::Relaxed);
            let Some(result) = outcome? else { break };
            results.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
            on_progress(Progress { done: done.fetch_add(1, Ordering::Relaxed) + 1, total });
        }
        Ok::<(), LabError>(())
    };
    thread::scope(|scope| {
        let threads = (0..jobs.clamp(1, total.max(1))).map(|_| scope.spawn(worker)).collect::<Vec<_>>();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
}
