//! The flag columns of kernels with the real-time patches: seven, of which two are about lazy rescheduling.
//!
//! Must not know: lines.

use fairlab_event::Flags;

/// Whether a comment of tracefs's header names a column that only these kernels have. (Those from v6.13 on have
/// lazy rescheduling without a column of its own.)
pub(super) fn is_told_by(comment: &[u8]) -> bool {
    comment.ends_with(b"=> need-resched-lazy")
}

/// The same in the columns of other kernels: what is pending is one letter. How deep lazy preemption is disabled
/// has no column.
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
        ] {
            assert_eq!(in_usual_columns(Flags::new(printed.as_bytes())), Flags::new(expected.as_bytes()));
        }
        assert!(is_told_by(b"#                              | / _-----=> need-resched-lazy"));
        assert!(!is_told_by(b"#                               / _----=> need-resched"));
    }
}
