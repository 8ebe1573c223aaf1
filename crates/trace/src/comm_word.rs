//! A task's name as one word of a line of notes.
//!
//! Must not know: what the notes say.

use fairlab_event::Comm;

/// A name as one word of visible characters, quoted so that an empty one is a word too.
pub(crate) fn escape(comm: &Comm) -> String {
    format!("\"{}\"", comm.as_bytes().escape_ascii()).replace(' ', "\\x20")
}

/// What [`escape`] made a word of; other words as they are.
pub(crate) fn unescape(word: &str) -> Comm {
    let inside = word.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(word);
    let mut name = Vec::with_capacity(Comm::LEN);
    let mut rest = inside.bytes();
    while let Some(byte) = rest.next() {
        name.push(if byte == b'\\' { escaped(&mut rest).unwrap_or(b'?') } else { byte });
    }
    Comm::new(&name)
}

fn escaped(rest: &mut impl Iterator<Item = u8>) -> Option<u8> {
    Some(match rest.next()? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'x' => {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
            u8::try_from(high * 16 + low).ok()?
        }
        byte => byte,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back() {
        let every_byte = |byte: u8| Comm::new(&[byte, b'x']);
        assert!((1..=255).all(|byte| unescape(&escape(&every_byte(byte))) == every_byte(byte)));
        for name in ["", " a  b ", "line\nfeed\\n", "\\", "\"", "'äöü\r\t", "0123456789abcde"] {
            let word = escape(&Comm::from(name));
            assert!(!word.contains([' ', '\n']), "{word}");
            assert_eq!(unescape(&word), Comm::from(name));
        }
        assert_eq!(unescape("\\"), Comm::from("?"));
        assert_eq!(unescape("\"\\xzz\""), Comm::from("?z"));
    }
}
