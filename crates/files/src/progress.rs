//! How far work on many items is.

use serde_json::{Value, json};

/// How far work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Items done.
    pub done: usize,
    /// Items in all.
    pub total: usize,
}

impl Progress {
    /// What answers in JSON say of work that was stopped.
    pub fn to_json(self) -> Value {
        json!({ "runs": self.done, "wanted": self.total })
    }
}
