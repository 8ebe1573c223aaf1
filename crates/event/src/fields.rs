//! The `name=value` text of events that Fairlab has no type for: kprobes, other subsystems' tracepoints.

use std::fmt;

/// The text after an event's name, read on demand as `name=value` pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextFields<'t> {
    text: &'t str,
}

/// One value of a generic event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenericValue<'t> {
    /// A number without sign, decimal or `0x…`.
    Unsigned(u64),
    /// A negative number.
    Signed(i64),
    /// Anything else.
    Text(&'t str),
}

impl<'t> TextFields<'t> {
    /// Wraps an event's text; nothing is parsed yet.
    pub const fn new(text: &'t str) -> TextFields<'t> {
        TextFields { text }
    }

    /// The whole text as it stands in the trace.
    pub const fn text(self) -> &'t str {
        self.text
    }

    /// Every `name=value` pair, in order. Words without `=` belong to the value before them.
    pub fn iter(self) -> impl Iterator<Item = (&'t str, GenericValue<'t>)> {
        let mut sign = next_sign(self.text, 0);
        std::iter::from_fn(move || {
            let (start, at) = sign?;
            sign = next_sign(self.text, at + 1);
            let end = sign.map_or(self.text.len(), |(following, _)| following);
            Some((&self.text[start..at], GenericValue::parse(self.text[at + 1..end].trim_end())))
        })
    }

    /// The value of the first field called `name`.
    pub fn get(self, name: &str) -> Option<GenericValue<'t>> {
        self.iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    /// The value of `name` as a number without sign; `None` when it is absent or not such a number.
    pub fn unsigned(self, name: &str) -> Option<u64> {
        match self.get(name)? {
            GenericValue::Unsigned(value) => Some(value),
            _ => None,
        }
    }

    /// The value of `name` as a number with sign; `None` when it is absent, no number, or too large.
    pub fn signed(self, name: &str) -> Option<i64> {
        match self.get(name)? {
            GenericValue::Unsigned(value) => i64::try_from(value).ok(),
            GenericValue::Signed(value) => Some(value),
            GenericValue::Text(_) => None,
        }
    }
}

/// Where the first `name=` at or after `from` begins, and where its `=` stands.
fn next_sign(text: &str, mut from: usize) -> Option<(usize, usize)> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = text.as_bytes();
    while let Some(offset) = text[from..].find('=') {
        let sign = from + offset;
        let start = bytes[..sign].iter().rposition(|&byte| !is_name(byte)).map_or(0, |at| at + 1);
        let starts_word = start == 0 || matches!(bytes[start - 1], b' ' | b'\t' | b',' | b'(');
        if start < sign && starts_word {
            return Some((start, sign));
        }
        from = sign + 1;
    }
    None
}

impl<'t> GenericValue<'t> {
    /// Reads one value: hexadecimal after `0x`, decimal with or without sign, otherwise text.
    pub fn parse(text: &'t str) -> GenericValue<'t> {
        if let Some(digits) = text.strip_prefix("0x") {
            return u64::from_str_radix(digits, 16).map_or(GenericValue::Text(text), GenericValue::Unsigned);
        }
        if let Ok(value) = text.parse::<u64>() {
            return GenericValue::Unsigned(value);
        }
        text.parse::<i64>().map_or(GenericValue::Text(text), GenericValue::Signed)
    }
}

impl fmt::Display for TextFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kprobe_line_gives_typed_fields() {
        let fields =
            TextFields::new("(place_entity+0x0/0x130) cf=0xffff8bb31da35f00 cpu=0 vlag=-1150 pid=266 wf=0x4");
        assert_eq!(fields.unsigned("cf"), Some(0xffff_8bb3_1da3_5f00));
        assert_eq!(fields.signed("vlag"), Some(-1150));
        assert_eq!(fields.unsigned("vlag"), None);
        assert_eq!(fields.unsigned("pid"), Some(266));
        assert_eq!(fields.get("absent"), None);
        assert_eq!(fields.iter().count(), 5);
    }

    #[test]
    fn words_without_a_sign_belong_to_the_value_before() {
        let fields = TextFields::new("filename=/usr/bin/a b pid=7 note=x=y");
        assert_eq!(fields.get("filename"), Some(GenericValue::Text("/usr/bin/a b")));
        assert_eq!(fields.unsigned("pid"), Some(7));
        assert_eq!(fields.get("note"), Some(GenericValue::Text("x=y")));
        assert_eq!(TextFields::new("no pairs here").iter().count(), 0);
    }
}
