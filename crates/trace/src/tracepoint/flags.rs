//! `common_flags` and `common_preempt_count` as the columns that ftrace prints (`dNh2.`).

use fairlab_event::Flags;

const IRQS_OFF: u8 = 0x01;
const NEED_RESCHED_LAZY: u8 = 0x02;
const NEED_RESCHED: u8 = 0x04;
const HARDIRQ: u8 = 0x08;
const SOFTIRQ: u8 = 0x10;
const PREEMPT_RESCHED: u8 = 0x20;
const NMI: u8 = 0x40;
const BH_OFF: u8 = 0x80;

/// The first three columns for every value of `common_flags`, and the two behind them for every `common_preempt_count`.
static COLUMNS: [[u64; 2]; 256] = {
    let mut columns = [[0; 2]; 256];
    let mut value = 0;
    while value < 256 {
        let byte = value as u8;
        let depths = [0, 0, 0, depth(byte & 0xf), depth(byte >> 4), 0, 0, 0];
        let flags = [irqs(byte), resched(byte), interrupt(byte), 0, 0, 0, 0, 0];
        columns[value] = [u64::from_le_bytes(flags), u64::from_le_bytes(depths)];
        value += 1;
    }
    columns
};

/// The five columns: interrupts off, reschedule pending, interrupt level, preemption depth, migration-disable depth.
///
/// Kernel: `trace_print_lat_fmt()`, kernel/trace/trace_output.c, and `enum trace_flag_type`.
/// Departs: 0x02 was "interrupt state not known" (`X`) before v6.13, on machines without irqflags tracing only.
#[inline]
pub(crate) fn columns(flags: u8, preempt_count: u8) -> Flags {
    Flags::from_padded(
        (COLUMNS[usize::from(flags)][0] | COLUMNS[usize::from(preempt_count)][1]).to_le_bytes(),
    )
}

/// `common_flags` and `common_preempt_count` whose columns are nearest to `flags`: exactly those of a kernel of today.
#[inline]
pub(crate) fn common(flags: Flags) -> (u8, u8) {
    let column = |index: usize| flags.as_bytes().get(index).copied().unwrap_or(b'.');
    let irqs = match column(0) {
        b'D' => IRQS_OFF | BH_OFF,
        b'd' => IRQS_OFF,
        b'b' => BH_OFF,
        _ => 0,
    };
    let resched = match column(1) {
        b'B' => NEED_RESCHED | PREEMPT_RESCHED | NEED_RESCHED_LAZY,
        b'N' => NEED_RESCHED | PREEMPT_RESCHED,
        b'b' => NEED_RESCHED | NEED_RESCHED_LAZY,
        b'n' => NEED_RESCHED,
        b'L' => PREEMPT_RESCHED | NEED_RESCHED_LAZY,
        b'p' => PREEMPT_RESCHED,
        b'l' => NEED_RESCHED_LAZY,
        _ => 0,
    };
    let interrupt = match column(2) {
        b'Z' => NMI | HARDIRQ,
        b'z' => NMI,
        b'H' => HARDIRQ | SOFTIRQ,
        b'h' => HARDIRQ,
        b's' => SOFTIRQ,
        _ => 0,
    };
    let depth = |column: u8| match column {
        b'1'..=b'9' => column - b'0',
        b'a'..=b'f' => column - b'a' + 10,
        _ => 0,
    };
    (irqs | resched | interrupt, depth(column(3)) | depth(column(4)) << 4)
}

const fn irqs(flags: u8) -> u8 {
    match (flags & IRQS_OFF != 0, flags & BH_OFF != 0) {
        (true, true) => b'D',
        (true, false) => b'd',
        (false, true) => b'b',
        (false, false) => b'.',
    }
}

const fn resched(flags: u8) -> u8 {
    match (flags & NEED_RESCHED != 0, flags & PREEMPT_RESCHED != 0, flags & NEED_RESCHED_LAZY != 0) {
        (true, true, true) => b'B',
        (true, true, false) => b'N',
        (true, false, true) => b'b',
        (true, false, false) => b'n',
        (false, true, true) => b'L',
        (false, true, false) => b'p',
        (false, false, true) => b'l',
        (false, false, false) => b'.',
    }
}

const fn interrupt(flags: u8) -> u8 {
    match (flags & NMI != 0, flags & HARDIRQ != 0, flags & SOFTIRQ != 0) {
        (true, true, _) => b'Z',
        (true, false, _) => b'z',
        (false, true, true) => b'H',
        (false, true, false) => b'h',
        (false, false, true) => b's',
        (false, false, false) => b'.',
    }
}

#[inline]
const fn depth(count: u8) -> u8 {
    match count {
        0 => b'.',
        1..=9 => b'0' + count,
        _ => b'a' + count - 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_that_ftrace_prints() {
        let text = |flags, count| String::from_utf8_lossy(columns(flags, count).as_bytes()).into_owned();
        assert_eq!(text(0, 0), ".....");
        assert_eq!(text(IRQS_OFF, 2), "d..2.");
        assert_eq!(text(IRQS_OFF | NEED_RESCHED | PREEMPT_RESCHED | HARDIRQ, 0x1a), "dNha1");
        assert_eq!(text(IRQS_OFF | SOFTIRQ | NEED_RESCHED, 4), "dns4.");
        assert_eq!(text(BH_OFF | SOFTIRQ | HARDIRQ, 0), "b.H..");
        assert_eq!(text(IRQS_OFF | BH_OFF | NMI | PREEMPT_RESCHED | NEED_RESCHED_LAZY, 0), "DLz..");
    }

    #[test]
    fn columns_give_the_flags_back() {
        for flags in 0..=255 {
            for count in [0, 1, 9, 0xa, 0xf, 0x1f, 0xff] {
                let shown = columns(flags, count);
                let (flags, count) = common(shown);
                assert_eq!(columns(flags, count), shown);
            }
        }
        assert_eq!(common(Flags::NONE), (0, 0));
        assert_eq!(common(Flags::new(b"d..2")), (IRQS_OFF, 2));
        assert_eq!(common(Flags::new(b"XY?-Zabc")), (0, 0));
    }
}
