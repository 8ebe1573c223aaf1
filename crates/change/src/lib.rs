//! What a change of the scheduler does, and which change did it: searches on the way between two kernels.
//!
//! Must not know: how a run is made, how an answer is printed.

pub mod attribute;
pub mod bisect;
pub mod gate;
pub mod patch;
mod trials;
mod way;

pub use trials::Trials;
pub use way::WayStep;
