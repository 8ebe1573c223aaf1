//! Sweeps: kernels × machines × workloads × options × seeds, cell by cell.
//!
//! Each cell goes into a journal when it is done; whoever asks for the same sweep again goes on where it was stopped. At
//! the end the journal becomes a table and sums by group. Memory depends on how many cells are under way, plus a bit for
//! each cell that is done.
//!
//! Must not know: how progress and answers look.

mod batch;
mod journal;
mod plan;
mod query;
mod run;
mod table;

pub use batch::Batch;
pub use journal::SweepJournal;
pub use plan::{Cell, Plan};
pub use query::{PartialSweep, Query, QueryAnswer, QueryRow, query};
pub use run::{Outcome, closed, sweep};
