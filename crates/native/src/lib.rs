//! A kernel's own scheduler: `kernel/sched/` of any tree, compiled where the user has it, and driven in virtual time.
//!
//! An image is what a tree becomes: [`build`] makes it, [`image`] maps it, [`worker`] gives it a process, [`scheduler`] drives it as the engine drives
//! a model. What both halves agree on is `shim/abi.h`.
//!
//! Must not know: commands, experiments, recordings.

mod abi;
pub mod build;
mod child;
mod elf;
pub mod history;
mod host;
mod image;
mod limits;
pub mod scheduler;
pub mod wire;
pub mod worker;

pub use abi::{GroupPtr, TaskPtr};
pub use image::{ImageFile, LoadedImage};
pub use scheduler::{NativeScheduler, OwnDomain};
