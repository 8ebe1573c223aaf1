//! `prev_state` of `sched_switch`: why a task left its CPU.

use std::fmt;

/// The state in which a task left its CPU, as the letters that `sched_switch` prints.
///
/// A set of letters (normally one) and the preemption mark. No letter means runnable (`R`). `R+` is the only mark of preemption
/// *inside the kernel*: plain `R` is a yield or a preemption on return to user mode, so the two are kept apart. Kernels differ in
/// which bit stands for which letter (`TASK_REPORT`). So bits here are Fairlab's own, and a binary reader translates by the table
/// in the trace.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskState(u16);

/// Letters in the order in which the kernel joins them with `|`, and what they mean.
const LETTERS: &[(u8, &str)] = &[
    (b'S', "interruptible sleep"),
    (b'D', "uninterruptible sleep"),
    (b'T', "stopped"),
    (b't', "traced"),
    (b'X', "dead"),
    (b'Z', "zombie"),
    (b'P', "parked"),
    (b'I', "idle: an uninterruptible sleep that does not count as load"),
    (b'K', "wakekill"),
    (b'W', "waking or paging, before v4.14"),
    (b'x', "dead, before v4.14"),
    (b'N', "new, not yet woken"),
];

impl TaskState {
    /// Runnable: yielded, or preempted on return to user mode.
    pub const RUNNABLE: TaskState = TaskState(0);
    /// Runnable and preempted inside the kernel (`R+`).
    pub const PREEMPTED: TaskState = TaskState(1 << 15);
    /// Interruptible sleep.
    pub const INTERRUPTIBLE: TaskState = TaskState(1 << 0);
    /// Uninterruptible sleep.
    pub const UNINTERRUPTIBLE: TaskState = TaskState(1 << 1);
    /// Dead, its last switch.
    pub const DEAD: TaskState = TaskState(1 << 4);
    /// Zombie: dead, not yet reaped.
    pub const ZOMBIE: TaskState = TaskState(1 << 5);
    /// Idle kernel thread (`I`).
    pub const IDLE: TaskState = TaskState(1 << 7);

    /// The state of one letter; `R` is the empty set. `None` for a letter that no kernel prints.
    pub fn from_letter(letter: u8) -> Option<TaskState> {
        if letter == b'R' {
            return Some(TaskState::RUNNABLE);
        }
        let bit = LETTERS.iter().position(|&(known, _)| known == letter)?;
        Some(TaskState(1 << bit))
    }

    /// Reads what `sched_switch` prints: `R`, `R+`, `S`, `D|K`. `None` when it is anything else.
    pub fn parse(text: &[u8]) -> Option<TaskState> {
        let (letters, mark) = match text.split_last() {
            Some((b'+', letters)) => (letters, TaskState::PREEMPTED),
            _ => (text, TaskState::RUNNABLE),
        };
        if let [letter] = letters {
            return Some(TaskState::from_letter(*letter)?.union(mark));
        }
        let mut state = mark;
        for part in letters.split(|&byte| byte == b'|') {
            let [letter] = part else { return None };
            state = state.union(TaskState::from_letter(*letter)?);
        }
        Some(state)
    }

    /// Both states' letters and marks.
    #[must_use]
    pub const fn union(self, other: TaskState) -> TaskState {
        TaskState(self.0 | other.0)
    }

    /// Whether the task stayed runnable (`R` or `R+`): it waits for a CPU, not for an event.
    pub const fn is_runnable(self) -> bool {
        self.0 & !TaskState::PREEMPTED.0 == 0
    }

    /// Whether the preemption mark `+` is there.
    pub const fn is_preempted(self) -> bool {
        self.0 & TaskState::PREEMPTED.0 != 0
    }

    /// Whether every letter of `other` is there.
    pub const fn contains(self, other: TaskState) -> bool {
        self.0 & other.0 == other.0
    }

    /// The state of the letter before each letter, in the kernel's order (`D` of `T`, `X` of `Z`), and runnable of the first.
    /// The mark of preemption is dropped.
    #[must_use]
    pub const fn one_bit_nearer(self) -> TaskState {
        TaskState((self.0 & !TaskState::PREEMPTED.0) >> 1)
    }

    /// Fairlab's own bits, for digests.
    pub(crate) const fn bits(self) -> u16 {
        self.0
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (bit, &(letter, _)) in LETTERS.iter().enumerate() {
            if self.0 & (1 << bit) != 0 {
                write!(f, "{separator}{}", letter as char)?;
                separator = "|";
            }
        }
        if self.is_runnable() {
            f.write_str("R")?;
        }
        if self.is_preempted() {
            f.write_str("+")?;
        }
        Ok(())
    }
}

impl fmt::Debug for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_prints_is_read_and_printed_back() {
        for text in ["R", "R+", "S", "D", "T", "t", "X", "Z", "P", "I", "D|K", "S|W"] {
            assert_eq!(TaskState::parse(text.as_bytes()).expect(text).to_string(), text);
        }
        for text in ["", "+R", "Q", "SD", "S||D", "|"] {
            assert_eq!(TaskState::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn letters_come_in_the_kernels_order() {
        for (text, nearer) in
            [("S", "R"), ("D", "S"), ("T", "D"), ("t", "T"), ("X", "t"), ("Z", "X"), ("P", "Z"), ("I", "P")]
        {
            let state = TaskState::parse(text.as_bytes()).expect(text);
            assert_eq!(state.one_bit_nearer().to_string(), nearer, "{text}");
        }
    }

    #[test]
    fn runnable_and_preempted_are_two_things() {
        let preempted = TaskState::parse(b"R+").expect("a state");
        assert!(preempted.is_runnable() && preempted.is_preempted());
        assert!(TaskState::RUNNABLE.is_runnable() && !TaskState::RUNNABLE.is_preempted());
        assert!(!TaskState::ZOMBIE.is_runnable());
        assert_ne!(preempted, TaskState::RUNNABLE);
    }
}
