//! perf.data against real recordings of every shape, the real perf, and damage.

mod recordings;
mod shapes;
mod swapped;
