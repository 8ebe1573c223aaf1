//! Waits that end: a program that hangs fails its test, and no other.

use std::process::{Child, Command, ExitStatus, Output};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Many times what a busy machine needs.
const LONGEST: Duration = Duration::from_secs(120);

/// Waits until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LONGEST, "{what}: not after {LONGEST:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for the end of a program.
pub fn ended(child: &mut Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("its state") {
            return status;
        }
        if started.elapsed() > LONGEST {
            child.kill().and_then(|()| child.wait()).expect("its end");
            panic!("process {} does not end", child.id());
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for the end of a program, and takes what it says until then.
pub fn output(child: Child) -> Output {
    let pid = child.id().to_string();
    let (ends, end) = mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        let hangs = end.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout);
        hangs && Command::new("kill").args(["-KILL", &pid]).status().is_ok()
    });
    let output = child.wait_with_output().expect("its end");
    drop(ends);
    assert!(!watch.join().expect("the watch"), "it does not end: {output:?}");
    output
}
