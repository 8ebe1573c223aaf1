//! What host and guest agree on: what is asked of the guest, and where its answers lie.
//!
//! Must not know: how either of them goes about it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where the job lies in the guest.
pub const JOB_FILE: &str = "/job.json";

/// Where modules lie that the guest loads before anything else, in the order of their names.
pub const MODULES_FOLDER: &str = "/modules";

/// What a guest is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The program and its arguments.
    pub workload: Vec<String>,
    /// The root seed of the workload's own randomness.
    pub seed: u64,
    /// When to stop a workload that has not ended by itself, ns.
    pub duration_ns: Option<u64>,
    /// The clock of the trace, by its name in `trace_clock`.
    pub trace_clock: String,
    /// The buffer of each CPU, KiB.
    pub buffer_kb: u32,
    /// Probes of what the scheduler decides by, not only its events.
    pub probes: bool,
    /// How long the guest rests before recording begins, ns: what a kernel does after its start is over by then.
    pub settle_ns: u64,
    /// A timer that bounds how long one CPU may run before the others, ns; none where CPUs run at once.
    pub slice_ns: Option<u64>,
    /// Wait until the first process has forgotten the tasks that it woke: idle time passes at once.
    pub forgets_wakees: bool,
    /// Files of the kernel's that are written before anything is recorded, and what into each.
    pub files: Vec<(String, String)>,
    /// What its scheduler is set to after that.
    pub settings: Vec<KernelSetting>,
    /// What was added to its command line.
    pub parameters: Vec<String>,
    /// Whether the first process begins a session, in which the workload runs: where autogroups are on, they are in one.
    pub session: bool,
}

/// What a kernel's scheduler is set to, as people say it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelSetting {
    /// A feature, on or off: `NEXT_BUDDY`, `NO_NEXT_BUDDY`.
    Feature(String),
    /// A tunable in debugfs or a sysctl: `base_slice_ns=3000000`, `sched_schedstats=0`.
    Value {
        /// Its name in this kernel or another.
        name: String,
        /// What is written.
        value: String,
    },
}

impl FromStr for KernelSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<KernelSetting, String> {
        let all = |word: &str, allowed: fn(u8) -> bool| !word.is_empty() && word.bytes().all(allowed);
        let is_feature =
            |word: &str| all(word, |b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        match text.split_once('=') {
            None if is_feature(text) => Ok(KernelSetting::Feature(text.to_string())),
            Some((name, _)) if is_feature(name) => {
                Err(format!("a feature is switched by its name: {name}, or NO_{name}"))
            }
            Some((name, value))
                if all(name, |b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_/.".contains(&b))
                    && !name.contains("..")
                    && !name.starts_with('/')
                    && all(value, |b| (b' '..=b'~').contains(&b)) =>
            {
                Ok(KernelSetting::Value { name: name.to_string(), value: value.to_string() })
            }
            _ => {
                Err("say FEATURE, NO_FEATURE, or TUNABLE=VALUE: NEXT_BUDDY, base_slice_ns=3000000"
                    .to_string())
            }
        }
    }
}

impl fmt::Display for KernelSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelSetting::Feature(name) => f.write_str(name),
            KernelSetting::Value { name, value } => write!(f, "{name}={value}"),
        }
    }
}

/// The guest's state, in the shared memory's first bytes.
///
/// The layout: [`DONE`] once all is there; the archive's length, 8 bytes; how far the guest is, 4 bytes; and from
/// [`ARCHIVE_AT`] on the archive.
pub const DONE: &[u8; 8] = b"FAIRLAB1";

/// In place of [`DONE`] when the guest gives up: the archive is a text that says why.
pub const FAILED: &[u8; 8] = b"FAIRLAB0";

/// In place of [`DONE`] when the kernel does not take what it was to be set to: a line that says what, and one that says what
/// it has.
pub const REFUSED: &[u8; 8] = b"FAIRLAB2";

/// Where the length of the archive stands.
pub const LENGTH_AT: usize = 8;

/// Where the number of the guest's [`GuestStage`] stands.
pub const STAGE_AT: usize = 16;

/// Where the archive begins.
pub const ARCHIVE_AT: usize = 4096;

/// How far a guest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum GuestStage {
    /// Its kernel has not started the first process.
    Kernel = 0,
    /// It prepares.
    Started = 1,
    /// The workload runs.
    Workload = 2,
    /// The workload has ended, and its results are brought out.
    Results = 3,
}

impl GuestStage {
    /// A number that a guest left.
    pub fn of(number: u32) -> GuestStage {
        match number {
            0 => GuestStage::Kernel,
            1 => GuestStage::Started,
            2 => GuestStage::Workload,
            _ => GuestStage::Results,
        }
    }

    /// What a guest is doing, for people.
    pub const fn now(self) -> &'static str {
        match self {
            GuestStage::Kernel => "the kernel starts",
            GuestStage::Started => "recording is prepared",
            GuestStage::Workload => "the workload runs",
            GuestStage::Results => "results are brought out",
        }
    }

    /// When something happened, for people.
    pub const fn describe(self) -> &'static str {
        match self {
            GuestStage::Kernel => "while the kernel started",
            GuestStage::Started => "while recording was prepared",
            GuestStage::Workload => "while the workload ran",
            GuestStage::Results => "while results were brought out",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_are_written() {
        for text in ["NO_NEXT_BUDDY", "base_slice_ns=3000000", "llc_balancing/enabled=0", "preempt=full"] {
            assert_eq!(
                text.parse::<KernelSetting>().map(|setting| setting.to_string()),
                Ok(text.to_string())
            );
        }
        for text in [
            "",
            "next_buddy",
            "base_slice_ns=",
            "=1",
            "../panic=1",
            "/proc/sys/kernel/panic=1",
            "a b=1",
            "x=1\n",
        ] {
            assert!(text.parse::<KernelSetting>().is_err(), "{text}");
        }
        let told = "NEXT_BUDDY=1".parse::<KernelSetting>().expect_err("a number");
        assert_eq!(told, "a feature is switched by its name: NEXT_BUDDY, or NO_NEXT_BUDDY");
    }
}
