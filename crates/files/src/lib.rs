//! What is kept on disk, and the errors of that.
//!
//! Files and folders that are whole or absent ([`OutputFile`], [`OutputFolder`]), and journals with a checksum per
//! line. Temporaries with unpredictable names, packages fetched by apt and the folder that keeps them. Work on all cores, errors
//! of one line ([`LabError`]), and quantities as people write them.
//!
//! Must not know: what an experiment is, how a message reaches a user.

pub mod apt;
mod assertion;
mod beside;
pub mod cache;
pub mod debian;
mod error;
pub mod journal;
mod output_file;
mod output_folder;
pub mod owner;
mod progress;
pub mod quantities;
pub mod shell;
pub mod temporary;
pub mod workers;

pub use assertion::{Assertion, caught};
pub use beside::found_beside;
pub use error::{LabError, another_kind, complaint, line_at, without_numbers};
pub use output_file::{OutputFile, write_whole};
pub use output_folder::OutputFolder;
pub use progress::Progress;
