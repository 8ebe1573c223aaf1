//! A kernel's own scheduler: `kernel/sched/` of any tree, compiled where the user has it, and driven in virtual time.
//!
//! Must not know: commands, experiments, recordings.
