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
    let gives_up = AtomicBool::new(false);
    let results = Mutex::new(items.iter().map(|_| None).collect::<Vec<_>>());
    on_progress(Progress { done: 0, total });
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        items.get(index).map(|item| (index, item))
    };
    let worker = || {
        while let Some((index, item)) = take() {
            let outcome = work(item);
            if outcome.is_err() && !stop.swap(true, Ordering::Relaxed) {
                gives_up.store(true, Ordering::Relaxed);
            }
            let Some(result) = outcome? else { break };
            results.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
            on_progress(Progress { done: done.fetch_add(1, Ordering::Relaxed) + 1, total });
        }
        Ok::<(), LabError>(())
    };
    let outcome = thread::scope(|scope| {
        let threads = (0..jobs.clamp(1, total.max(1))).map(|_| scope.spawn(worker)).collect::<Vec<_>>();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    });
    if gives_up.into_inner() {
        // Nobody asked for an end but this: who gets the error may go on with something else.
        stop.store(false, Ordering::Relaxed);
    }
    outcome?;
    Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who goes on after work that failed is not taken for one who was told to stop.
    #[test]
    fn what_fails_ends_the_others_and_stops_nobody_else() {
        let stop = AtomicBool::new(false);
        let work = |&item: &usize| match item {
            3 => Err(LabError::new("the third fails", "leave it out")),
            _ => Ok((!stop.load(Ordering::Relaxed)).then_some(item)),
        };
        assert!(for_each(&[1, 2, 3, 4, 5], 2, &|_| (), &stop, work).is_err());
        assert!(!stop.load(Ordering::Relaxed));
        let others = for_each(&[1, 2, 4, 5], 2, &|_| (), &stop, work).expect("they do not fail");
        assert_eq!(others, [1, 2, 4, 5].map(Some));
        stop.store(true, Ordering::Relaxed);
        assert!(for_each(&[3], 1, &|_| (), &stop, work).is_err());
        assert!(stop.load(Ordering::Relaxed), "it was told to stop before");
    }
}
