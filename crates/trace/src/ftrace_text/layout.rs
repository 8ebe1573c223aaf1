//! Where the parts of a line's front are in this file, learned from one line and checked on every other.
//!
//! Reading a front part by part is slow because each part begins where the one before it ends. tracefs pads nearly
//! everything, so the parts are where they were on the line before. Known places can be read in parallel. Marks show a line
//! with another layout; it goes to the general reader, and the new layout is learned from it.
//!
//! Must not know: any other way to read a line's front.

use fairlab_event::{Comm, Context, Cpu, Flags, Ns, Pid};

use super::prefix::{DASH_COLUMN, Prefix, comm_in_column};
use super::stamp::PrintedStamp;
use super::swar;

/// The columns of a tracefs line's front. Empty, it fits no line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PrefixLayout {
    /// Up to and with the blank behind the stamp's colon.
    length: usize,
    /// Of the bracket around the TGID; that of the CPU's bracket where there is no TGID.
    tgid: usize,
    /// Of the CPU's bracket.
    cpu: usize,
    /// Of the first flag.
    flags: usize,
    /// Of the blank behind the last flag; the same as `flags` where there are none.
    flags_end: usize,
    /// Of the stamp's point; that of its colon where the stamp is an integer.
    point: usize,
    /// How many flags lines have, where one has shown it; 0 before.
    pub(super) flag_columns: usize,
}

const CPU_DIGITS: usize = 3;

impl PrefixLayout {
    /// The layout of `line`, whose stamp's colon stands at `colon`; `None` when it has other columns than tracefs's.
    pub(super) fn of(line: &[u8], colon: usize) -> Option<PrefixLayout> {
        let front = line.get(..colon)?;
        let blank = memchr::memrchr(b' ', front)?;
        let point = memchr::memchr(b'.', &front[blank..]).map_or(colon, |point| blank + point);
        let bracket = DASH_COLUMN + memchr::memchr2(b'(', b'[', front.get(DASH_COLUMN..)?)?;
        let cpu = bracket + memchr::memchr(b'[', &front[bracket..])?;
        let flags = cpu + CPU_DIGITS + 3;
        let flags_end = match front.get(flags)? {
            b' ' | b'0'..=b'9' => flags - 1,
            _ => flags + memchr::memchr(b' ', &front[flags..])?,
        };
        let layout = PrefixLayout {
            length: colon + 2,
            tgid: bracket,
            cpu,
            flags: flags.min(flags_end),
            flags_end,
            point,
            flag_columns: 0,
        };
        layout.is_readable().then_some(layout)
    }

    /// Whether every part fits the word with which it is read.
    fn is_readable(&self) -> bool {
        let within = |from: usize, to: usize| (1..=8).contains(&to.wrapping_sub(from));
        let decimals = self.decimals();
        within(DASH_COLUMN + 1, self.tgid)
            && (self.tgid == self.cpu || within(self.tgid + 1, self.cpu - 2))
            && (self.flags == self.flags_end || self.flags_end - self.flags < 8)
            && (1..=16).contains(&self.point.wrapping_sub(self.flags_end + 1))
            && matches!(decimals, None | Some(6 | 9))
    }

    /// How many digits stand behind the stamp's point; `None` where there is no point.
    #[inline(always)]
    fn decimals(&self) -> Option<usize> {
        (self.length - 2).checked_sub(self.point + 1)
    }

    /// Reads a line's front, if it is laid out like this.
    #[inline(always)]
    pub(super) fn read(&self, line: &[u8]) -> Option<Prefix> {
        let front = line.get(..self.length)?;
        let column = front.first_chunk()?;
        let marks = column[0] == b' '
            && front.get(DASH_COLUMN) == Some(&b'-')
            && front.get(self.cpu) == Some(&b'[')
            && front.get(self.cpu + CPU_DIGITS + 1) == Some(&b']')
            && front.get(self.cpu + CPU_DIGITS + 2) == Some(&b' ')
            && front.get(self.flags_end) == Some(&b' ')
            && front.ends_with(b": ");
        if !marks {
            return None;
        }
        let comm: Comm = comm_in_column(*column);
        let pid = left_aligned(front, DASH_COLUMN + 1, self.tgid)?;
        let tgid = self.tgid(front)?;
        let cpu = exactly(front, self.cpu + 1, CPU_DIGITS)?;
        let flags = self.flags(front)?;
        let stamp = self.stamp(front)?;
        let context = Context { comm, pid: Pid(pid as i32), tgid, flags };
        Some(Prefix { context, cpu: Cpu(cpu as u32), stamp })
    }

    /// How many bytes [`PrefixLayout::read`] passes: all up to the stamp's colon, and that.
    #[inline(always)]
    pub(super) fn passed(&self) -> usize {
        self.length - 1
    }

    #[inline(always)]
    fn tgid(&self, front: &[u8]) -> Option<Pid> {
        if self.tgid == self.cpu {
            return Some(Pid::UNKNOWN);
        }
        let (start, end) = (self.tgid + 1, self.cpu - 2);
        if front.get(self.tgid) != Some(&b'(') || front.get(end..self.cpu) != Some(b") ") {
            return None;
        }
        if swar::run_of(swar::word(front, start), b'-') >= end - start {
            return Some(Pid::UNKNOWN);
        }
        right_aligned(front, start, end).map(|tgid| Pid(tgid as i32))
    }

    #[inline(always)]
    fn flags(&self, front: &[u8]) -> Option<Flags> {
        let length = self.flags_end - self.flags;
        if length == 0 {
            return Some(Flags::NONE);
        }
        let word = swar::word(front, self.flags);
        let readable = swar::place_of(word, b' ') == length
            && swar::place_of(word, b':') >= length
            && swar::visible(word) >= length
            && !(word as u8).is_ascii_digit();
        if !readable {
            return None;
        }
        Some(Flags::new(&(word & swar::first_bytes(length)).to_le_bytes()))
    }

    #[inline(always)]
    fn stamp(&self, front: &[u8]) -> Option<PrintedStamp> {
        let whole = wide_right_aligned(front, self.flags_end + 1, self.point)?;
        let start = self.point + 1;
        let nanoseconds = match self.decimals() {
            None => return Some(PrintedStamp::Ticks(whole)),
            Some(6) => exactly(front, start, 6)? * 1_000,
            Some(_) => exactly(front, start, 8)? * 10 + exactly(front, start + 8, 1)?,
        };
        front.get(self.point).filter(|&&point| point == b'.')?;
        Some(PrintedStamp::Time(Ns(whole.checked_mul(1_000_000_000)?.checked_add(nanoseconds)?)))
    }
}

/// A number of `count` digits at `start`.
#[inline(always)]
fn exactly(front: &[u8], start: usize, count: usize) -> Option<u64> {
    let (digits, value) = swar::digits(swar::word(front, start) & swar::first_bytes(count));
    (digits == count).then_some(value)
}

/// A number from `start` on, blanks behind it up to `end`.
#[inline(always)]
fn left_aligned(front: &[u8], start: usize, end: usize) -> Option<u64> {
    let word = swar::word(front, start);
    let (digits, value) = swar::digits(word);
    let blanks = swar::run_of(word.checked_shr(8 * digits as u32).unwrap_or(0), b' ');
    (digits > 0 && digits + blanks >= end - start).then_some(value)
}

/// As [`right_aligned`], of up to sixteen columns.
#[inline(always)]
fn wide_right_aligned(front: &[u8], start: usize, end: usize) -> Option<u64> {
    if end - start <= 8 {
        return right_aligned(front, start, end);
    }
    let middle = end - 8;
    if swar::run_of(swar::word(front, start), b' ') >= middle - start {
        return right_aligned(front, middle, end);
    }
    Some(right_aligned(front, start, middle)? * 100_000_000 + exactly(front, middle, 8)?)
}

/// A number that ends at `end`, blanks before it from `start` on.
#[inline(always)]
fn right_aligned(front: &[u8], start: usize, end: usize) -> Option<u64> {
    let blanks = swar::run_of(swar::word(front, start), b' ');
    let count = (end - start).checked_sub(blanks).filter(|&count| count > 0)?;
    exactly(front, start + blanks, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(line: &str) -> Option<PrefixLayout> {
        PrefixLayout::of(line.as_bytes(), line.find(": ").expect("a stamp"))
    }

    /// What a layout makes of a line of its own: comm, pid, tgid, cpu, flags, stamp.
    fn read(like: &str, line: &str) -> Option<String> {
        let prefix = layout(like).expect("a layout").read(line.as_bytes())?;
        let Context { comm, pid, tgid, flags } = prefix.context;
        let flags = String::from_utf8_lossy(flags.as_bytes()).into_owned();
        Some(format!("{comm} {pid} {tgid} {} {flags} {:?}", prefix.cpu, prefix.stamp))
    }

    #[test]
    fn tracefs_of_every_age_has_a_layout() {
        for (line, expected) in [
            (
                "            bash-15487   (  15487) [000] d..2.  1555.069808: x",
                "bash 15487 15487 0 d..2. Time(1555.069808000)",
            ),
            (
                "          <idle>-0       (-------) [191] dNs4.     0.069808: x",
                "<idle> 0 -1 191 dNs4. Time(0.069808000)",
            ),
            ("            init-1       [003] d...     5.069808: x", "init 1 -1 3 d... Time(5.069808000)"),
            ("            init-1     [003] d...     5.069808: x", "init 1 -1 3 d... Time(5.069808000)"),
            (
                "           <...>-1     (    7) [003] d... 12345678.069808123: x",
                " 1 7 3 d... Time(12345678.069808123)",
            ),
            ("            init-1     [003]     5.069808: x", "init 1 -1 3  Time(5.069808000)"),
            ("            init-1     [003] d...   4666290303: x", "init 1 -1 3 d... Ticks(4666290303)"),
            ("            init-1     [003] d... 12345674666290: x", "init 1 -1 3 d... Ticks(12345674666290)"),
        ] {
            assert_eq!(read(line, line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn other_columns_have_none() {
        for line in [
            "bash-15487 [000]  1555.069808: x",
            "            bash-15487   (  15487) [000] d..2.  1555.06980: x",
            "            bash-15487   (  15487) [000] d..2....  1555.069808: x",
            "            bash-15487   [000] d..2. 12345678901234567.069808: x",
            "            bash-4294967295 [000] d..2.  1555.069808: x",
        ] {
            assert_eq!(layout(line), None, "{line}");
        }
        assert_eq!(PrefixLayout::default().read(b""), None);
        assert_eq!(PrefixLayout::default().read(b"            bash-15487 [000] d..2.  1555.069808: x"), None);
    }

    #[test]
    fn a_line_laid_out_otherwise_is_left_alone() {
        let like = "            bash-15487   (  15487) [000] d..2.  1555.069808: x";
        for line in [
            "",
            "            bash-15487   (  15487) [000] d..2.  1555.069808",
            "            bash-15487   (  15487) [000] d..2.  1555.069808:x",
            "            bash-1548 7  (  15487) [000] d..2.  1555.069808: x",
            "            bash-        (  15487) [000] d..2.  1555.069808: x",
            "            bash-15487   (  154 7) [000] d..2.  1555.069808: x",
            "            bash-15487   (       ) [000] d..2.  1555.069808: x",
            "            bash-15487   (  15487) [ 00] d..2.  1555.069808: x",
            "            bash-15487   (  15487) [000] d..2   1555.069808: x",
            "            bash-15487   (  15487) [000] 1..2.  1555.069808: x",
            "            bash-15487   (  15487) [000] d.:2.  1555.069808: x",
            "            bash-15487   (  15487) [000] d..2.      .069808: x",
            "            bash-15487   (  15487) [000] d..2.  1555 069808: x",
            "            bash-15487   (  15487) [000] d..2.  1555.06 808: x",
            "           abash 15487   (  15487) [000] d..2.  1555.069808: x",
            "x           bash-15487   (  15487) [000] d..2.  1555.069808: x",
        ] {
            assert_eq!(read(like, line), None, "{line:?}");
        }
    }
}
