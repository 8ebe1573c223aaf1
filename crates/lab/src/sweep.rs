//! Sweeps: kernels × machines × workloads × options × seeds, cell by cell.
//!
//! Each finished cell goes into a journal, and a stopped sweep continues from there. At the end the journal becomes a table
//! and sums by group. Memory depends on the number of cells under way, plus one bit per finished cell.
//!
//! Must not know: how progress and answers look.

mod batch;
mod plan;
mod query;
mod run;
mod table;
mod templates;

pub(crate) use batch::SweepBatch;
pub use plan::{SweepPlan, SweepPlanCell};
pub use query::{PartialSweep, Query, QueryAnswer, QueryRow, query, query_settings, settings_of};
pub use run::{KIND, sweep};
