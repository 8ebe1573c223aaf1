//! Calls into the library that may meet damage: it panics on some, where it should give an error.
//!
//! Must not know: what is read.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether this thread is in a call whose panic is an error of the file.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

static QUIET: Once = Once::new();

/// What `call` gives; `None` where the library panicked, which is not printed. What `call` changed is not to be used then.
pub(super) fn guarded<T>(call: impl FnOnce() -> T) -> Option<T> {
    QUIET.call_once(|| {
        let tell = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                tell(panic);
            }
        }));
    });
    IS_GUARDED.set(true);
    let given = catch_unwind(AssertUnwindSafe(call));
    IS_GUARDED.set(false);
    given.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_nothing_and_all_else_is_given() {
        assert_eq!(guarded(|| 7), Some(7));
        assert_eq!(guarded(|| [1, 2][std::hint::black_box(2)]), None);
        assert_eq!(guarded(|| 8), Some(8));
        assert!(!IS_GUARDED.get());
    }
}
