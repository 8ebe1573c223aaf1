//! The flag columns of kernels with the real-time patches: seven, of which two are about lazy rescheduling. No other kernel
//! has as many: those from v6.13 on have lazy rescheduling without a column of its own.
//!
//! Must not know: lines.

use fairlab_event::Flags;

/// Seven columns in those of other kernels: what is pending is one letter. How deep lazy preemption is disabled has no column.
#[inline]
pub(super) fn in_usual_columns(flags: Flags) -> Flags {
    let &[irqs, resched, lazy, interrupt, depth, _, migration] = flags.as_bytes() else { return flags };
    let resched = match (resched, lazy) {
        (b'N', b'L') => b'B',
        (b'n', b'L') => b'b',
        (b'p', b'L') => b'L',
        (_, b'L') => b'l',
        _ => resched,
    };
    Flags::new(&[irqs, resched, interrupt, depth, migration])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_columns_become_five() {
        for (printed, expected) in [
            ("d..h213", "d.h23"),
            ("dN..412", "dN.42"),
            ("dNL.412", "dB.42"),
            ("dnL.412", "db.42"),
            ("d.LH4..", "dlH4."),
            ("dpLs...", "dLs.."),
            ("d..2.", "d..2."),
            ("d...", "d..."),
            ("", ""),
        ] {
            assert_eq!(in_usual_columns(Flags::new(printed.as_bytes())), Flags::new(expected.as_bytes()));
        }
    }
}
