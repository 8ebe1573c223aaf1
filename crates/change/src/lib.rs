//! What a change of the scheduler does, why, and which change did it: causes of waits, searches on the way between two kernels.
//!
//! Must not know: how a run is made, how an answer is printed.

pub mod attribute;
pub mod bisect;
pub mod causes;
pub mod commit_path;
pub mod compare;
pub mod first_divergence;
pub mod gate;
pub mod left_out;
pub mod patch;
pub mod releases;
pub mod replayed;
pub mod side_words;
pub mod threshold;
pub mod tree_model;
mod trials;

pub use commit_path::WayStep;
pub use trials::SearchTrials;
