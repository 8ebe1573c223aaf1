//! Recordings that contradict themselves.
//!
//! The core asserts what must hold of its own state. Lost or damaged lines can bring it to a state that no kernel reaches.
//! The failing assertion then becomes an answer about the recording, and does not end the program.
//!
//! Must not know: what is walked.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static WALKS: Cell<bool> = const { Cell::new(false) };
}

/// Does `walk`. What it leaves behind when an assertion ends it must not be used for anything but to say how far it came.
///
/// # Errors
/// What the assertion says.
pub(super) fn caught<T>(walk: impl FnOnce() -> T) -> Result<T, String> {
    static QUIET_WHILE_WALKING: Once = Once::new();
    QUIET_WHILE_WALKING.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |info| {
            if !WALKS.get() {
                report(info);
            }
        }));
    });
    WALKS.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(walk));
    WALKS.set(false);
    outcome.map_err(|assertion| said_by(&*assertion))
}

fn said_by(assertion: &(dyn Any + Send)) -> String {
    let text = assertion.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| assertion.downcast_ref::<&str>().copied()).unwrap_or("an assertion").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assertion_ends_the_walk_and_nothing_else() {
        assert_eq!(caught(|| 7), Ok(7));
        assert_eq!(
            caught(|| -> u8 { panic!("task {} is on two queues", 5) }),
            Err("task 5 is on two queues".into())
        );
        assert_eq!(caught(|| -> u8 { panic!("it waits nowhere") }), Err("it waits nowhere".into()));
        assert_eq!(caught(|| 8), Ok(8));
    }
}
