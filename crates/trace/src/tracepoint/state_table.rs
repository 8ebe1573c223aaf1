//! Which bit of `prev_state` stands for which letter, as the kernel that made the trace says it.
//!
//! The numbers differ between kernels (v4.14 renumbered them), so they are read from `sched_switch`'s `print fmt`:
//! `prev_state & MASK ? __print_flags(prev_state & MASK, "|", { 0x1, "S" }, …) : "R", prev_state & PLUS ? "+" : ""`.

use fairlab_event::TaskState;

use super::expression::evaluate;

/// The table of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateTable {
    letters: Vec<(u64, TaskState)>,
    mask: u64,
    preempted: u64,
}

/// More letters than any kernel has.
const LETTERS_MAX: usize = 64;

impl StateTable {
    /// Reads the table out of a `print fmt`; `None` when there is none.
    pub(super) fn parse(print_format: &str) -> Option<StateTable> {
        let (_, flags) = print_format.split_once("__print_flags(")?;
        let (value, mut rest) = flags.split_once(',')?;
        let mask = match value.split_once('&') {
            Some((_, mask)) => evaluate(mask)?,
            None => u64::MAX,
        };
        let mut table = StateTable { letters: Vec::new(), mask, preempted: 0 };
        while let Some((_, entry)) = rest.split_once('{') {
            let (entry, after) = entry.split_once('}')?;
            let (number, text) = entry.split_once(',')?;
            let text = text.trim().strip_prefix('"')?.strip_suffix('"')?;
            if table.letters.len() < LETTERS_MAX {
                table.letters.push((evaluate(number)?, TaskState::parse(text.as_bytes())?));
            }
            rest = after;
        }
        if let Some((condition, _)) = rest.split_once("? \"+\"")
            && let Some((_, mask)) = condition.rsplit_once("prev_state &")
        {
            table.preempted = evaluate(mask)?;
        }
        (!table.letters.is_empty()).then_some(table)
    }

    /// The table of v4.4 to v4.13, for what brings none. Source: `TASK_STATE_TO_CHAR_STR`, include/linux/sched.h.
    pub(crate) fn before_4_14() -> StateTable {
        StateTable { letters: letters(b"SDTtZXxKWPN"), mask: 0xfff, preempted: 0x1000 }
    }

    /// The table of the kernels in use, from v4.14 on, for what brings none.
    pub(crate) fn in_use() -> StateTable {
        StateTable { letters: letters(b"SDTtXZPI"), mask: 0xff, preempted: 0x100 }
    }

    /// The state that `value` stands for; `None` when a bit inside the mask has no letter.
    #[inline]
    pub(crate) fn state(&self, value: u64) -> Option<TaskState> {
        if value == 0 {
            return Some(TaskState::RUNNABLE);
        }
        let mut left = value & self.mask;
        let mut state = TaskState::RUNNABLE;
        for &(bits, letter) in &self.letters {
            if bits != 0 && left & bits == bits {
                state = state.union(letter);
                left &= !bits;
                if left == 0 {
                    break;
                }
            }
        }
        if value & self.preempted != 0 {
            state = state.union(TaskState::PREEMPTED);
        }
        (left == 0).then_some(state)
    }
}

/// The states of these letters, a bit each.
fn letters(known: &[u8]) -> Vec<(u64, TaskState)> {
    let states = known.iter().zip(0..);
    states.filter_map(|(&letter, bit)| Some((1 << bit, TaskState::from_letter(letter)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As v6.18 prints it.
    const TODAY: &str = "\"prev_comm=%s prev_state=%s%s ==> next_comm=%s\", REC->prev_comm, \
        (REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | \
        0x00000020 | 0x00000040) + 1) << 1) - 1)) ? __print_flags(REC->prev_state & ((((0x00000000 | 0x00000001 | \
        0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - 1), \"|\", \
        { 0x00000001, \"S\" }, { 0x00000002, \"D\" }, { 0x00000004, \"T\" }, { 0x00000008, \"t\" }, \
        { 0x00000010, \"X\" }, { 0x00000020, \"Z\" }, { 0x00000040, \"P\" }, { 0x00000080, \"I\" }) : \"R\", \
        REC->prev_state & (((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | \
        0x00000020 | 0x00000040) + 1) << 1) ? \"+\" : \"\", REC->next_comm";

    /// As v4.9 printed it.
    const OLD: &str = "\"prev_state=%s%s\", REC->prev_state & (4096-1) ? __print_flags(REC->prev_state & (4096-1), \
        \"|\", { 1, \"S\"} , { 2, \"D\" }, { 4, \"T\" }, { 8, \"t\" }, { 16, \"Z\" }, { 32, \"X\" }, { 64, \"x\" }, \
        { 128, \"K\" }, { 256, \"W\" }, { 512, \"P\" }, { 1024, \"N\" }) : \"R\", \
        REC->prev_state & 4096 ? \"+\" : \"\"";

    fn letters(print_format: &str, values: &[u64]) -> Vec<Option<String>> {
        let table = StateTable::parse(print_format).expect("a table");
        values.iter().map(|&value| table.state(value).map(|state| state.to_string())).collect()
    }

    #[test]
    fn each_kernel_is_read_by_its_own_table() {
        let expected = ["R", "S", "D", "X", "Z", "I", "R+"].map(|state| Some(state.to_string()));
        assert_eq!(letters(TODAY, &[0, 1, 2, 0x10, 0x20, 0x80, 0x100]), expected);
        let expected = ["R", "S", "Z", "X", "D|K", "R+", "S+"].map(|state| Some(state.to_string()));
        assert_eq!(letters(OLD, &[0, 1, 16, 32, 130, 4096, 4097]), expected);
    }

    #[test]
    fn bits_outside_the_mask_are_not_printed_and_bits_without_letter_are_told() {
        assert_eq!(letters(TODAY, &[0x400]), [Some("R".to_string())]);
        assert_eq!(letters(OLD, &[2048]), [None]);
    }

    #[test]
    fn what_brings_no_table_is_read_by_that_in_use() {
        let read = StateTable::parse(TODAY).expect("a table");
        for value in 0..0x200 {
            assert_eq!(StateTable::in_use().state(value), read.state(value), "{value:#x}");
        }
    }

    #[test]
    fn a_format_without_a_table_gives_none() {
        let (before, _) = TODAY.split_once("{").expect("a table");
        for text in [
            "",
            "__print_flags(",
            "__print_flags(REC->x, \"|\")",
            before,
            "__print_flags(x & y, \"|\", { 1, \"S\" })",
        ] {
            assert_eq!(StateTable::parse(text), None, "{text}");
        }
        for cut in 0..TODAY.len() {
            let _ = StateTable::parse(&TODAY[..cut]);
        }
    }
}
