//! A column of texts that repeat.
//!
//! Must not know: what the texts are.

use std::fmt;

use arrow_array::DictionaryArray;
use arrow_array::builder::{ArrayBuilder, StringDictionaryBuilder};
use arrow_array::types::Int32Type;

/// Texts, each different one kept once.
#[derive(Default)]
pub(super) struct Words(StringDictionaryBuilder<Int32Type>);

impl Words {
    #[inline]
    pub(super) fn append_value(&mut self, text: &str) {
        self.0.append_value(text);
    }

    pub(super) fn append_nulls(&mut self, count: usize) {
        self.0.append_nulls(count);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The rows so far; none are left then, and no text.
    pub(super) fn finish(&mut self) -> DictionaryArray<Int32Type> {
        self.0.finish()
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Words").field("rows", &self.len()).finish_non_exhaustive()
    }
}
