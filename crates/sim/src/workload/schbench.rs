//! schbench.
