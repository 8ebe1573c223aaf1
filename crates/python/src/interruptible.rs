//! Work beside Python: other threads of Python go on meanwhile, and Ctrl-C ends it.
//!
//! Must not know: what the work is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use fairlab_lab::LabError;
use pyo3::prelude::*;

use crate::failed::CallError;

/// How often it is asked whether a signal has come. Only Python's main thread learns of any.
const LOOK: Duration = Duration::from_millis(20);

/// Does the work in a thread of its own. It has to end soon when its flag is set; what it gives then is dropped, as Python raises
/// what its handler of the signal did.
///
/// # Errors
/// The work's, or what Python raised.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<T, LabError> + Send + 'static,
) -> Result<T, CallError> {
    wait(py, true, work)
}

/// Runs work that asks no flag: it is left to itself when a signal comes, and ends later.
///
/// # Errors
/// The work's, or what Python raised.
pub fn abandonable<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, LabError> + Send + 'static,
) -> Result<T, CallError> {
    wait(py, false, |_| work())
}

fn wait<T: Send + 'static>(
    py: Python<'_>,
    to_its_end: bool,
    work: impl FnOnce(&AtomicBool) -> Result<T, LabError> + Send + 'static,
) -> Result<T, CallError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    py.detach(move || {
        let (done, ended) = channel::<()>();
        let worker = thread::spawn(move || {
            // It goes when the work ends, in whatever way.
            let _done = done;
            work(&flag)
        });
        let mut raised = None;
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK) {
            if raised.is_some() {
                continue;
            }
            raised = Python::attach(|py: Python<'_>| Python::check_signals(py)).err();
            stop.store(raised.is_some(), Ordering::Relaxed);
            match raised {
                Some(error) if !to_its_end => return Err(error.into()),
                other => raised = other,
            }
        }
        let outcome = worker.join();
        match (raised, outcome) {
            (Some(error), _) => Err(error.into()),
            (None, Ok(outcome)) => Ok(outcome?),
            (None, Err(panic)) => std::panic::resume_unwind(panic),
        }
    })
}
