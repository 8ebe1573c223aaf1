//! Assertions that become answers: what a piece of work asserts of its own state ends the work and not the program.
//!
//! Must not know: what the work is.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use crate::LabError;

thread_local! {
    static WORKS: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// An assertion that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assertion {
    /// What it says.
    pub said: String,
    /// The line of the source; empty: unknown.
    pub place: String,
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.said, self.place)
    }
}

/// Does `work`. What it leaves behind when an assertion ends it must not be used for anything but to say how far it came.
///
/// # Errors
/// The assertion that did not hold.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Assertion> {
    static QUIET_AT_WORK: Once = Once::new();
    QUIET_AT_WORK.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |info| match WORKS.get() {
            true => PLACE.set(info.location().map(ToString::to_string).unwrap_or_default()),
            false => report(info),
        }));
    });
    PLACE.take();
    let outer = WORKS.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    WORKS.set(outer);
    outcome.map_err(|assertion| Assertion { said: said_by(&*assertion), place: PLACE.take() })
}

fn said_by(assertion: &(dyn Any + Send)) -> String {
    let text = assertion.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| assertion.downcast_ref::<&str>().copied()).unwrap_or("an assertion").to_string()
}

/// How the cure of a fault of the program's own begins.
const REPORT: &str = "this is a fault of Fairlab: report it with ";

impl LabError {
    /// A fault of the program's own: `problem` and the command line that shows it again.
    pub fn fault(problem: impl Into<String>, again: &str) -> LabError {
        LabError::new(problem, format!("{REPORT}the line that repeats it: {again}"))
    }

    /// Whether it is a fault of the program's own. Its cure says so, which survives any way that errors are sent.
    pub fn is_fault(&self) -> bool {
        self.hint.starts_with(REPORT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assertion_ends_the_work_and_nothing_else() {
        assert_eq!(caught(|| 7), Ok(7));
        let assertion = caught(|| -> u8 { panic!("task {} is on two queues", 5) }).expect_err("it fails");
        assert_eq!(assertion.said, "task 5 is on two queues");
        assert!(assertion.to_string().contains("assertion.rs:"), "{assertion}");
        assert_eq!(
            caught(|| -> u8 { panic!("it waits nowhere") }).map_err(|failed| failed.said),
            Err("it waits nowhere".into())
        );
        assert_eq!(caught(|| 8), Ok(8));
    }

    #[test]
    fn a_fault_is_told_from_bad_input_and_says_what_repeats_it() {
        let fault = LabError::fault("it breaks", "fairlab run pipe --seed 7");
        assert!(fault.is_fault() && !LabError::new("it breaks", "report this").is_fault());
        assert!(
            fault.to_string().ends_with("the line that repeats it: fairlab run pipe --seed 7"),
            "{fault}"
        );
    }
}
