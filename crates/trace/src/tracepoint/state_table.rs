//! Which bit of `prev_state` stands for which letter, as the kernel that made the trace says it.
//!
//! The numbers differ between kernels, so they are read from `sched_switch`'s `print fmt`:
//! `prev_state & MASK ? __print_flags(prev_state & MASK, "|", { 0x1, "S" }, …) : "R", prev_state & PLUS ? "+" : ""`.
//!
//! What brings no such text is read by the kernel's release: v4.14 renumbered states. Before, each new state moved the mark of
//! preemption (`TASK_STATE_MAX`) one bit up: `TASK_PARKED` in v3.9, `TASK_NOLOAD` in v4.2, `TASK_NEW` in v4.8.

use std::sync::LazyLock;

use fairlab_event::TaskState;

use super::expression::evaluate;

/// The table of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateTable {
    letters: Vec<(u64, TaskState)>,
    mask: u64,
    preempted: u64,
    kernel: StateKernel,
}

/// Which kernel's numbers a table is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StateKernel {
    Told,
    /// Most likely one in use. Numbers that these do not have are an older one's.
    Untold,
    /// One before v4.14: its numbers show that.
    UntoldOld,
}

/// The largest number that kernels from v4.14 on print.
const TODAY_MAX: u64 = 0x1ff;

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
        let mut table = StateTable { letters: Vec::new(), mask, preempted: 0, kernel: StateKernel::Told };
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

    /// The table of a kernel by its release, for what brings none; `None` where that does not begin with two numbers.
    pub(crate) fn of_release(release: &str) -> Option<StateTable> {
        let mut parts = release.split(|char: char| !char.is_ascii_digit()).map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else { return None };
        Some(match (major, minor) {
            (0..3, _) | (3, 0..9) => StateTable::old(9),
            (3, _) | (4, 0..2) => StateTable::old(10),
            (4, 2..8) => StateTable::old(11),
            (4, 8..14) => StateTable::old(12),
            _ => StateTable::in_use(),
        })
    }

    /// The table of a kernel before v4.14 in which this bit is the mark of preemption. Source: `TASK_STATE_TO_CHAR_STR`,
    /// include/linux/sched.h. That of `TASK_NEW` has no letter: no such task leaves a CPU.
    fn old(preempted: u32) -> StateTable {
        let known = &b"SDTtZXxKWPN"[..(preempted as usize).min(11)];
        let bit = 1 << preempted;
        StateTable { letters: letters(known), mask: bit - 1, preempted: bit, kernel: StateKernel::Told }
    }

    /// The table of the kernels in use, from v4.14 on, for what brings none.
    pub(crate) fn in_use() -> StateTable {
        let kernel = StateKernel::Told;
        StateTable { letters: letters(b"SDTtXZPI"), mask: 0xff, preempted: 0x100, kernel }
    }

    /// For what tells neither table nor kernel: as the kernels in use mean numbers, or, where they have none such, older ones.
    pub(crate) fn untold() -> StateTable {
        StateTable { kernel: StateKernel::Untold, ..StateTable::in_use() }
    }

    /// The table that `value` shows to be in use, where none is told: only some kernels have that number.
    pub(crate) fn learn(&mut self, value: u64) {
        let shown = match value {
            _ if self.kernel == StateKernel::Told || value <= TODAY_MAX => return,
            0x400 => StateTable::old(10),
            0x800 => StateTable::old(11),
            _ if value & 0x1000 != 0 => StateTable::old(12),
            _ => StateTable { kernel: StateKernel::UntoldOld, ..StateTable::old(12) },
        };
        *self = shown;
    }

    /// Whether neither kernel nor table are told.
    pub(crate) const fn is_untold(&self) -> bool {
        !matches!(self.kernel, StateKernel::Told)
    }

    /// Whether the number of `state` may have meant another one, since the kernel is not told.
    #[inline]
    pub(crate) fn is_doubtful(&self, state: TaskState) -> bool {
        // All kernels have the first four.
        self.is_untold() && b"XZPIKWxN".iter().any(|&letter| has(state, letter))
    }

    /// The state that `value` stands for; `None` when a bit inside the mask has no letter.
    #[inline]
    pub(crate) fn state(&self, value: u64) -> Option<TaskState> {
        if value == 0 {
            return Some(TaskState::RUNNABLE);
        }
        if self.kernel != StateKernel::Told && value > TODAY_MAX {
            return state_of_old_kernel(value);
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

fn has(state: TaskState, letter: u8) -> bool {
    TaskState::from_letter(letter).is_some_and(|letter| state.contains(letter))
}

/// What a number means that only kernels before v4.14 have, it is not told which of them. A state above `TASK_PARKED` never stands
/// alone: such a bit is the mark of preemption.
fn state_of_old_kernel(value: u64) -> Option<TaskState> {
    static LATEST: LazyLock<StateTable> = LazyLock::new(|| StateTable::old(12));
    match value {
        0x400 | 0x800 => Some(TaskState::PREEMPTED),
        _ => LATEST.state(value),
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

    /// Every state a kernel has, at each border between kernels.
    #[test]
    fn what_brings_a_release_is_read_by_that_kernels_table() {
        const OLD: [(u64, &str); 9] =
            [(0, "R"), (1, "S"), (2, "D"), (4, "T"), (8, "t"), (16, "Z"), (32, "X"), (64, "x"), (130, "D|K")];
        const IN_USE: [(u64, &str); 10] = [
            (0, "R"),
            (1, "S"),
            (2, "D"),
            (4, "T"),
            (8, "t"),
            (16, "X"),
            (32, "Z"),
            (64, "P"),
            (128, "I"),
            (256, "R+"),
        ];
        const BEFORE_3_9: &[(u64, &str)] = &[(256, "W"), (512, "R+"), (513, "S+")];
        const BEFORE_4_2: &[(u64, &str)] = &[(256, "W"), (512, "P"), (1024, "R+")];
        const BEFORE_4_8: &[(u64, &str)] = &[(256, "W"), (512, "P"), (1026, "D|N"), (2048, "R+")];
        const BEFORE_4_14: &[(u64, &str)] = &[(256, "W"), (512, "P"), (1026, "D|N"), (4096, "R+")];
        for (release, common, own) in [
            ("2.6.39.4", &OLD[..], BEFORE_3_9),
            ("3.8.13-generic", &OLD[..], BEFORE_3_9),
            ("3.9.0", &OLD[..], BEFORE_4_2),
            ("3.18.120-perf", &OLD[..], BEFORE_4_2),
            ("4.1.52", &OLD[..], BEFORE_4_2),
            ("4.2.0", &OLD[..], BEFORE_4_8),
            ("4.7.10", &OLD[..], BEFORE_4_8),
            ("4.8.0-rc1", &OLD[..], BEFORE_4_14),
            ("4.13.16", &OLD[..], BEFORE_4_14),
            ("4.14.0", &IN_USE[..], &[]),
            ("4.14", &IN_USE[..], &[]),
            ("6.18.44+", &IN_USE[..], &[]),
        ] {
            let table = StateTable::of_release(release).expect(release);
            for &(number, state) in common.iter().chain(own) {
                let read = table.state(number).map(|state| state.to_string());
                assert_eq!(read.as_deref(), Some(state), "{release}: {number}");
                assert!(!table.is_doubtful(table.state(number).expect("a state")), "{release}: {number}");
            }
        }
        for release in ["", "6", "android", "4.x", "v4.9"] {
            assert_eq!(StateTable::of_release(release), None, "{release}");
        }
    }

    #[test]
    fn where_nothing_tells_the_kernel_doubt_is_told() {
        let untold = StateTable::untold();
        for (number, state, is_doubtful) in [
            (0, "R", false),
            (1, "S", false),
            (2, "D", false),
            (12, "T|t", false),
            (16, "X", true),
            (32, "Z", true),
            (64, "P", true),
            (128, "I", true),
            (256, "R+", false),
            (512, "P", true),
            (1024, "R+", false),
            (1026, "D|N", true),
            (2048, "R+", false),
            (4096, "R+", false),
        ] {
            let read = untold.state(number).expect("a state");
            assert_eq!(
                (read.to_string().as_str(), untold.is_doubtful(read)),
                (state, is_doubtful),
                "{number}"
            );
        }
        // Numbers that only some kernels have tell of those that follow.
        for (shown, number, state, is_doubtful) in [
            (1024, 512, "P", false),
            (2048, 16, "Z", false),
            (4096, 32, "X", false),
            (1026, 2048, "R+", false),
            (1026, 16, "Z", true),
            (256, 16, "X", true),
        ] {
            let mut table = StateTable::untold();
            table.learn(shown);
            let read = table.state(number).expect("a state");
            assert_eq!(
                (read.to_string().as_str(), table.is_doubtful(read)),
                (state, is_doubtful),
                "{shown}, {number}"
            );
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
