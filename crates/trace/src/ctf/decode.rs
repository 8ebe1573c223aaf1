//! Fields of a packet by their types.
//!
//! Must not know: what fields mean.

use super::bits::BitCursor;
use super::types::{CtfByteOrder, CtfInteger, CtfStruct, CtfType};

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CtfValue<'p> {
    /// A number; one with sign is extended to 64 bits.
    Number(u64),
    Text(&'p [u8]),
}

/// One field.
#[derive(Clone, Copy, Debug)]
pub(super) struct CtfField<'p> {
    pub(super) name: &'p str,
    pub(super) held: CtfValue<'p>,
    /// What an enumeration calls it.
    label: Option<&'p str>,
    /// How many bits it has, if it tells a clock.
    pub(super) clock: Option<(u32, &'p str)>,
}

/// The fields so far; names are without the underscore that LTTng writes in front.
#[derive(Clone, Debug, Default)]
pub(super) struct CtfFields<'p> {
    pub(super) found: Vec<CtfField<'p>>,
    /// Elements of arrays so far.
    elements: u64,
}

/// Fields of fields, deeper than a description may have.
const DEPTH_MAX: u32 = 80;
/// More than any event has: a length that is garbage must not fill memory.
const ELEMENTS_MAX: u64 = 1 << 20;

impl<'p> CtfFields<'p> {
    /// The latest field called `name`.
    pub(super) fn get(&self, name: &str) -> Option<CtfValue<'p>> {
        self.found.iter().rev().find(|found| found.name == name).map(|found| found.held)
    }

    /// The latest field called `name`, if it is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            CtfValue::Number(number) => Some(number),
            CtfValue::Text(_) => None,
        }
    }

    /// The latest field called `name`, if it is a text.
    pub(super) fn text(&self, name: &str) -> Option<&'p [u8]> {
        match self.get(name)? {
            CtfValue::Text(text) => Some(text),
            CtfValue::Number(_) => None,
        }
    }

    /// Adds all fields of `of`, which stands at `bits`; `None` where they go beyond the packet.
    pub(super) fn read(
        &mut self,
        of: &'p CtfType,
        bits: &mut BitCursor<'p>,
        order: CtfByteOrder,
    ) -> Option<()> {
        self.field("", of, bits, order, 0)
    }

    fn field(
        &mut self,
        name: &'p str,
        of: &'p CtfType,
        bits: &mut BitCursor<'p>,
        order: CtfByteOrder,
        depth: u32,
    ) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        let name = name.strip_prefix('_').unwrap_or(name);
        match of {
            CtfType::Int(int) => {
                let number = number(int, bits, order)?;
                let clock = int.clock.as_deref().map(|clock| (int.size, clock));
                self.found.push(CtfField { name, held: CtfValue::Number(number), label: None, clock });
            }
            CtfType::Enum { of: int, labels } => {
                let number = number(int, bits, order)?;
                let value = if int.signed { i128::from(number.cast_signed()) } else { number.into() };
                let label = labels.iter().find(|&&(_, low, high)| (low..=high).contains(&value));
                let label = label.map(|(label, ..)| label.as_str());
                self.found.push(CtfField { name, held: CtfValue::Number(number), label, clock: None });
            }
            CtfType::Leb128 { signed, clock } => {
                let (number, size) = bits.leb128(*signed)?;
                let clock = clock.as_deref().map(|clock| (size, clock));
                self.found.push(CtfField { name, held: CtfValue::Number(number), label: None, clock });
            }
            CtfType::Float { size, align } => {
                bits.align(*align);
                bits.skip((*size).into())?;
            }
            CtfType::Text => {
                let text = bits.text()?;
                self.found.push(CtfField { name, held: CtfValue::Text(text), label: None, clock: None });
            }
            CtfType::Struct(of) => {
                bits.align(of.align);
                for (name, of) in &of.fields {
                    self.field(name, of, bits, order, depth + 1)?;
                }
            }
            CtfType::Variant { tag, options } => {
                let (name, of) = self.option(tag, options)?;
                self.field(name, of, bits, order, depth + 1)?;
            }
            CtfType::Choice { selector, options, ranges, is_optional } => {
                let selected = i128::from(self.number(selector.strip_prefix('_').unwrap_or(selector))?);
                // Numbers with a sign are extended to 64 bits.
                let alike = [selected, i128::from((selected as u64).cast_signed())];
                let fits =
                    |&(low, high): &(i128, i128)| alike.iter().any(|number| (low..=high).contains(number));
                match ranges.iter().position(|ranges| ranges.iter().any(fits)) {
                    Some(option) => {
                        let (option, of) = options.fields.get(option)?;
                        let name = if name.is_empty() { option } else { name };
                        self.field(name, of, bits, order, depth + 1)?;
                    }
                    None => is_optional.then_some(())?,
                }
            }
            CtfType::Array { length, of } => self.elements(name, *length, of, bits, order, depth)?,
            CtfType::Sequence { length, of } => {
                let length = self.number(length.strip_prefix('_').unwrap_or(length))?;
                self.elements(name, length, of, bits, order, depth)?;
            }
        }
        Some(())
    }

    fn option(&self, tag: &str, options: &'p CtfStruct) -> Option<(&'p str, &'p CtfType)> {
        let tag = tag.strip_prefix('_').unwrap_or(tag);
        let label = self.found.iter().rev().find(|found| found.name == tag)?.label?;
        let plain = |name: &'p str| name.strip_prefix('_').unwrap_or(name);
        let (name, of) = options.fields.iter().find(|(name, _)| plain(name) == plain(label))?;
        Some((name, of))
    }

    /// Characters are a text; of anything else nothing is kept.
    fn elements(
        &mut self,
        name: &'p str,
        length: u64,
        of: &'p CtfType,
        bits: &mut BitCursor<'p>,
        order: CtfByteOrder,
        depth: u32,
    ) -> Option<()> {
        bits.align(of.align());
        if let CtfType::Int(CtfInteger { size: 8, align: ..=8, is_char: true, .. }) = of
            && bits.at.is_multiple_of(8)
        {
            let bytes = bits.bytes(length)?;
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            self.found.push(CtfField { name, held: CtfValue::Text(&bytes[..end]), label: None, clock: None });
            return Some(());
        }
        self.elements = self.elements.saturating_add(length);
        if self.elements > ELEMENTS_MAX {
            return None;
        }
        let before = self.found.len();
        for _ in 0..length {
            self.field("", of, bits, order, depth + 1)?;
            self.found.truncate(before);
        }
        Some(())
    }
}

fn number(int: &CtfInteger, bits: &mut BitCursor<'_>, order: CtfByteOrder) -> Option<u64> {
    bits.align(int.align);
    let number = bits.number(int.size, int.order.unwrap_or(order))?;
    let unused = 64 - int.size;
    Some(if int.signed { ((number << unused).cast_signed() >> unused).cast_unsigned() } else { number })
}
