//! What Fairlab's writer notes in an option of its own, so that its reader gives back what was written: a trace.dat has
//! one name for each task, no thread groups, and always five flag columns.
//!
//! Lines of text: `fairlab 1`, `flags N` (columns of every event), `tgid PID TGID`, `comm PID NAME` (a name in the
//! beginning that differs from the saved one), `name PID TGID NAME` (a name given before the first event).
//!
//! Must not know: records.

use fairlab_event::{Comm, Pid};

/// The notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// How many flag columns every event has; all that the format can tell when not said.
    pub(super) flag_columns: Option<usize>,
    /// Thread groups.
    pub(super) tgids: Vec<(Pid, Pid)>,
    /// Names in the beginning.
    pub(super) comms: Vec<(Pid, Comm)>,
    /// Names that were given before the first event: thread, thread group, name.
    pub(super) named: Vec<(Pid, Pid, Comm)>,
}

const FIRST_LINE: &[u8] = b"fairlab 1";

impl Own {
    /// Reads the notes; `None` when they are of another version.
    pub(super) fn parse(bytes: &[u8]) -> Option<Own> {
        let mut lines = bytes.split(|&byte| byte == b'\n');
        if lines.next()? != FIRST_LINE {
            return None;
        }
        let mut own = Own::default();
        for line in lines {
            // What is not understood says nothing.
            let _ = own.line(line);
        }
        Some(own)
    }

    fn line(&mut self, line: &[u8]) -> Option<()> {
        let (word, rest) = word(line)?;
        match word {
            b"flags" => self.flag_columns = Some(number(rest)?.0 as usize),
            b"tgid" => {
                let (pid, tgid) = numbered(rest)?;
                self.tgids.push((pid, number(tgid)?));
            }
            b"comm" => {
                let (pid, name) = numbered(rest)?;
                self.comms.push((pid, unescape(name)));
            }
            b"name" => {
                let (pid, rest) = numbered(rest)?;
                let (tgid, name) = numbered(rest)?;
                self.named.push((pid, tgid, unescape(name)));
            }
            _ => return None,
        }
        Some(())
    }

    /// The notes as text.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = FIRST_LINE.to_vec();
        let mut line = |parts: &[&[u8]]| {
            text.push(b'\n');
            text.extend(parts.join(&b' '));
        };
        if let Some(columns) = self.flag_columns {
            line(&[b"flags", columns.to_string().as_bytes()]);
        }
        for (pid, tgid) in &self.tgids {
            line(&[b"tgid", pid.to_string().as_bytes(), tgid.to_string().as_bytes()]);
        }
        for (pid, comm) in &self.comms {
            line(&[b"comm", pid.to_string().as_bytes(), &escape(comm)]);
        }
        for (pid, tgid, comm) in &self.named {
            let (pid, tgid) = (pid.to_string(), tgid.to_string());
            line(&[b"name", pid.as_bytes(), tgid.as_bytes(), &escape(comm)]);
        }
        text
    }
}

/// The first word, and what follows behind one blank.
fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b' ', line)?;
    Some((&line[..end], &line[end + 1..]))
}

fn number(text: &[u8]) -> Option<Pid> {
    std::str::from_utf8(text).ok()?.parse().ok().map(Pid)
}

/// A number, and what follows behind one blank.
fn numbered(line: &[u8]) -> Option<(Pid, &[u8])> {
    let (first, rest) = word(line)?;
    Some((number(first)?, rest))
}

/// A name without line feeds.
fn escape(comm: &Comm) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(Comm::LEN);
    for &byte in comm.as_bytes() {
        match byte {
            b'\n' => escaped.extend(b"\\n"),
            b'\\' => escaped.extend(b"\\\\"),
            _ => escaped.push(byte),
        }
    }
    escaped
}

fn unescape(text: &[u8]) -> Comm {
    let mut name = Vec::with_capacity(Comm::LEN);
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        name.push(match (byte, byte == b'\\') {
            (_, true) if bytes.as_slice().first() == Some(&b'n') => {
                bytes.next();
                b'\n'
            }
            (_, true) => bytes.next().copied().unwrap_or(b'\\'),
            (byte, false) => byte,
        });
    }
    Comm::new(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back() {
        let names = ["", " a  b ", "line\nfeed\\n", "\\", "äöü", "0123456789abcde"].map(Comm::from);
        let own = Own {
            flag_columns: Some(4),
            tgids: vec![(Pid(2), Pid(1)), (Pid(-1), Pid(-1))],
            comms: names.iter().map(|&name| (Pid(7), name)).collect(),
            named: names.iter().map(|&name| (Pid(7), Pid(6), name)).collect(),
        };
        assert_eq!(Own::parse(&own.text()), Some(own));
        assert_eq!(Own::parse(&Own::default().text()), Some(Own::default()));
    }

    #[test]
    fn other_text_says_nothing() {
        assert_eq!(Own::parse(b""), None);
        assert_eq!(Own::parse(b"fairlab 2\nflags 4"), None);
        let text = b"fairlab 1\n\nflags x\ntgid 1\ncomm x y\nname 1 2\nwhat 1 2\nflags\ntgid 5 4";
        let own = Own { tgids: vec![(Pid(5), Pid(4))], ..Own::default() };
        assert_eq!(Own::parse(text), Some(own));
    }
}
