//! perf.data against real recordings of every shape, the real perf, and damage.

#[path = "perfdata/recordings.rs"]
mod recordings;
#[path = "perfdata/shapes.rs"]
mod shapes;
#[path = "perfdata/swapped.rs"]
mod swapped;
