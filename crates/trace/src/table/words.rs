//! A column of texts that repeat.
//!
//! Must not know: what the texts are.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::DictionaryArray;
use arrow_array::builder::{ArrayBuilder, Int32Builder, StringBuilder};
use arrow_array::types::Int32Type;

/// Texts, each different one kept once.
#[derive(Debug)]
pub(super) struct DictionaryColumn {
    rows: Int32Builder,
    texts: StringBuilder,
    places: HashMap<Box<str>, i32>,
    /// Short texts that were there lately, each where its bytes tell.
    recent: [RecentText; RECENT],
}

/// A text of at most sixteen bytes, and which one it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RecentText {
    /// One more than its length; 0: nothing is here.
    length: u32,
    place: i32,
    bytes: [u64; 2],
}

/// Columns have few different texts; more of them are found by hash.
const RECENT: usize = 64;

/// The longest text whose bytes are looked at without its neighbours.
const SHORT: usize = 16;

impl Default for DictionaryColumn {
    fn default() -> DictionaryColumn {
        DictionaryColumn {
            rows: Int32Builder::new(),
            texts: StringBuilder::new(),
            places: HashMap::new(),
            recent: [RecentText::default(); RECENT],
        }
    }
}

impl DictionaryColumn {
    #[inline]
    pub(super) fn append_value(&mut self, text: &str) {
        let Some(short) = RecentText::of(text) else { return self.append_seldom(text) };
        let recent = self.recent[short.slot()];
        if (recent.length, recent.bytes) == (short.length, short.bytes) {
            return self.rows.append_value(recent.place);
        }
        let place = self.place(text);
        self.recent[short.slot()] = RecentText { place, ..short };
        self.rows.append_value(place);
    }

    fn append_seldom(&mut self, text: &str) {
        let place = self.place(text);
        self.rows.append_value(place);
    }

    /// Which of the texts it is.
    fn place(&mut self, text: &str) -> i32 {
        if let Some(&place) = self.places.get(text) {
            return place;
        }
        let place = self.texts.len() as i32;
        self.texts.append_value(text);
        self.places.insert(text.into(), place);
        place
    }

    pub(super) fn append_nulls(&mut self, count: usize) {
        self.rows.append_nulls(count);
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows so far; none are left then, and no text.
    pub(super) fn finish(&mut self) -> DictionaryArray<Int32Type> {
        self.places.clear();
        self.recent = [RecentText::default(); RECENT];
        DictionaryArray::new(self.rows.finish(), Arc::new(self.texts.finish()))
    }
}

impl RecentText {
    /// A short text that has no place yet.
    #[inline]
    fn of(text: &str) -> Option<RecentText> {
        let text = text.as_bytes();
        if text.len() > SHORT {
            return None;
        }
        let bytes = match (text.first_chunk(), text.last_chunk()) {
            (Some(first), Some(last)) => [u64::from_le_bytes(*first), u64::from_le_bytes(*last)],
            _ => [text.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)), 0],
        };
        Some(RecentText { length: text.len() as u32 + 1, place: 0, bytes })
    }

    #[inline]
    fn slot(self) -> usize {
        let mixed = (self.bytes[0] ^ self.bytes[1].rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 58) as usize % RECENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;

    #[test]
    fn every_text_comes_back_and_is_kept_once() {
        let lengths = (0..40).chain(0..40);
        let mut texts =
            lengths.map(|length| "abcdefghij".repeat(4)[..length].to_string()).collect::<Vec<_>>();
        texts.extend((0..200).map(|number| format!("task-{}", number % 90)));
        texts.extend(["\0", "", "\0\0", "Größe"].map(str::to_string));
        let mut words = DictionaryColumn::default();
        for turn in 0..2 {
            texts.iter().for_each(|text| words.append_value(text));
            words.append_nulls(1);
            assert_eq!(words.len(), texts.len() + 1);
            let rows = words.finish();
            let kept = rows.values().as_string::<i32>();
            let back = rows.keys().iter().map(|place| place.map(|place| kept.value(place as usize)));
            assert!(back.eq(texts.iter().map(|text| Some(text.as_str())).chain([None])), "{turn}");
            assert_eq!(kept.len(), 40 + 90 + 3);
        }
    }
}
