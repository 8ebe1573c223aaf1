//! One column of a group of rows: values, which rows have none, and the pages that both become.
//!
//! Facts: Apache Parquet's Encodings.md. Must not know: what the values mean, where in the file the pages stand.

use std::collections::HashMap;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// True or false.
    Bool,
    /// 32 bits with sign.
    I32,
    /// 32 bits without sign.
    U32,
    /// 64 bits with sign.
    I64,
    /// 64 bits without sign.
    U64,
    /// Floating point; numbers are put as their bits.
    F64,
    /// UTF-8.
    Text,
}

/// The values of some rows.
#[derive(Debug)]
pub(super) struct Column {
    kind: Kind,
    required: bool,
    /// Whether each row so far has a value, a bit each; the rows behind have none.
    present: Bits,
    /// Values of fixed width, as plain pages have them.
    plain: Vec<u8>,
    bools: Bits,
    texts: Texts,
    values: usize,
}

/// One page as it goes into the file, not compressed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// How many values: different ones, or one a row.
    pub(super) values: usize,
    /// `PLAIN` or `RLE_DICTIONARY`.
    pub(super) encoding: Encoding,
    pub(super) bytes: Vec<u8>,
}

/// `parquet.thrift`'s numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain = 0,
    Rle = 3,
    Dictionary = 8,
}

impl Column {
    pub(super) fn new(kind: Kind, required: bool) -> Column {
        Column {
            kind,
            required,
            present: Bits::default(),
            plain: Vec::new(),
            bools: Bits::default(),
            texts: Texts::default(),
            values: 0,
        }
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Row `row` has a number, of the column's kind.
    pub(super) fn put_number(&mut self, row: usize, value: u64) {
        self.mark(row);
        match self.kind {
            Kind::I32 | Kind::U32 => self.plain.extend((value as u32).to_le_bytes()),
            Kind::I64 | Kind::U64 | Kind::F64 => self.plain.extend(value.to_le_bytes()),
            Kind::Bool => self.bools.push(value != 0),
            Kind::Text => debug_assert!(false, "a number for a column of texts"),
        }
    }

    /// Row `row` has a text.
    pub(super) fn put_text(&mut self, row: usize, text: &str) {
        self.mark(row);
        self.texts.push(text);
    }

    fn mark(&mut self, row: usize) {
        self.present.pad(row);
        self.present.push(true);
        self.values += 1;
    }

    /// The dictionary, if there is one, and the values of `rows` rows; the column is empty then.
    pub(super) fn take_pages(&mut self, rows: usize) -> (Option<Page>, Page) {
        let mut column = std::mem::replace(self, Column::new(self.kind, self.required));
        column.present.pad(rows);
        let mut bytes = Vec::new();
        if !column.required {
            let levels = packed(&column.present.bytes, rows);
            bytes.extend((levels.len() as u32).to_le_bytes());
            bytes.extend(levels);
        }
        let data = |encoding, bytes| Page { values: rows, encoding, bytes };
        match column.kind {
            Kind::Text if column.texts.repeat() => {
                let dictionary = Page {
                    values: column.texts.different.len(),
                    encoding: Encoding::Plain,
                    bytes: column.texts.dictionary(),
                };
                bytes.extend(column.texts.indices());
                (Some(dictionary), data(Encoding::Dictionary, bytes))
            }
            Kind::Text => {
                bytes.extend(column.texts.plain());
                (None, data(Encoding::Plain, bytes))
            }
            Kind::Bool => {
                bytes.extend(&column.bools.bytes);
                (None, data(Encoding::Plain, bytes))
            }
            _ => {
                bytes.extend(&column.plain);
                (None, data(Encoding::Plain, bytes))
            }
        }
    }
}

/// Bits, the lowest of each byte first.
#[derive(Debug, Default)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.count.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (self.count % 8);
        }
        self.count += 1;
    }

    /// Zeros up to `count` bits in all.
    fn pad(&mut self, count: usize) {
        self.count = self.count.max(count);
        self.bytes.resize(self.count.div_ceil(8), 0);
    }
}

/// Texts, each different one kept once.
#[derive(Debug, Default)]
struct Texts {
    numbers: HashMap<String, u32>,
    different: Vec<String>,
    all: Vec<u32>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        let number = match self.numbers.get(text) {
            Some(&number) => number,
            None => {
                let number = self.different.len() as u32;
                self.numbers.insert(text.to_string(), number);
                self.different.push(text.to_string());
                number
            }
        };
        self.all.push(number);
    }

    /// Whether a dictionary saves anything.
    fn repeat(&self) -> bool {
        self.different.len() <= self.all.len() / 2
    }

    fn dictionary(&self) -> Vec<u8> {
        put_together(self.different.iter())
    }

    fn plain(&self) -> Vec<u8> {
        put_together(self.all.iter().filter_map(|&number| self.different.get(number as usize)))
    }

    /// The width of the numbers, then all of them.
    fn indices(&self) -> Vec<u8> {
        let width = (u32::BITS - (self.different.len().max(1) as u32 - 1).leading_zeros()).max(1);
        let mut packing = Packing::default();
        for &number in &self.all {
            packing.push(number, width);
        }
        let mut bytes = vec![width as u8];
        bytes.extend(packed(&packing.finish(), self.all.len()));
        bytes
    }
}

fn put_together<'t>(texts: impl Iterator<Item = &'t String>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in texts {
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes
}

/// Numbers of any width side by side, the lowest bit first.
#[derive(Debug, Default)]
struct Packing {
    bytes: Vec<u8>,
    pending: u64,
    bits: u32,
}

impl Packing {
    fn push(&mut self, number: u32, width: u32) {
        self.pending |= u64::from(number) << self.bits;
        self.bits += width;
        while self.bits >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.bits -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.bits > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}

/// The hybrid of runs and packed numbers, as one stretch of `count` packed numbers: what repeats is left to zstd.
fn packed(numbers: &[u8], count: usize) -> Vec<u8> {
    const TOGETHER: usize = 8;
    let groups = count.div_ceil(TOGETHER);
    let mut bytes = Vec::with_capacity(numbers.len() + 8);
    super::thrift::put_varint(&mut bytes, (groups << 1 | 1) as u64);
    bytes.extend(numbers);
    // Groups are whole: eight numbers of a width are that many bytes.
    if let Some(per_group) =
        (count > 0).then(|| (numbers.len() * TOGETHER).div_ceil(count.next_multiple_of(TOGETHER)))
    {
        let head = bytes.len() - numbers.len();
        bytes.resize(head + per_group * groups, 0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_values_are_gaps() {
        let mut column = Column::new(Kind::I32, false);
        column.put_number(1, 7);
        column.put_number(9, -1_i32 as u64);
        let (dictionary, page) = column.take_pages(11);
        assert_eq!((dictionary, page.values, page.encoding), (None, 11, Encoding::Plain));
        // Length of the levels; two groups of packed bits; the values.
        assert_eq!(page.bytes, [3, 0, 0, 0, 5, 0b10, 0b10, 7, 0, 0, 0, 255, 255, 255, 255]);
        assert_eq!(column.take_pages(0).1.bytes, [1, 0, 0, 0, 1]);
    }

    #[test]
    fn texts_that_repeat_are_numbered() {
        let mut column = Column::new(Kind::Text, true);
        for (row, text) in ["a", "b", "a", "c", "a", "b", "a", "c", "a"].into_iter().enumerate() {
            column.put_text(row, text);
        }
        let (dictionary, page) = column.take_pages(9);
        assert_eq!(
            dictionary.map(|page| (page.values, page.bytes)),
            Some((3, b"\x01\0\0\0a\x01\0\0\0b\x01\0\0\0c".to_vec()))
        );
        // The width; two groups of eight numbers of two bits.
        assert_eq!(
            (page.encoding, page.bytes),
            (Encoding::Dictionary, vec![2, 5, 0b1000_0100, 0b1000_0100, 0, 0])
        );
    }

    #[test]
    fn texts_that_differ_are_plain() {
        let mut column = Column::new(Kind::Text, false);
        column.put_text(0, "ab");
        let (dictionary, page) = column.take_pages(1);
        assert_eq!(dictionary, None);
        assert_eq!(page.bytes, [2, 0, 0, 0, 3, 1, 2, 0, 0, 0, b'a', b'b']);
    }

    #[test]
    fn truths_are_bits() {
        let mut column = Column::new(Kind::Bool, true);
        for row in 0..10 {
            column.put_number(row, u64::from(row % 3 == 0));
        }
        assert_eq!(column.take_pages(10).1.bytes, [0b0100_1001, 0b10]);
    }
}
