//! One file a command.

pub mod bisect;
pub mod boot;
pub mod calibrate;
pub mod compare;
pub mod convert;
pub mod documentation;
pub mod experiment;
pub mod explain;
pub mod fidelity;
pub mod kernels;
pub mod latency;
pub mod live;
pub mod machines;
pub mod merge;
pub mod record;
pub mod run;
pub mod scenario;
pub mod summary;
pub mod sweep;
mod threshold;
pub mod timehist;
pub mod trace;
pub mod try_patch;
pub mod verify;
pub mod view;
pub mod watch;
pub mod workloads;
