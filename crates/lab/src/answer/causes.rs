//! Why kernels make tasks wait differently, as it stands in the answer of a comparison.
//!
//! Must not know: how causes are found.

use fairlab_analysis::causes::{CauseDecision, StretchEnd, WaitBehind};
use fairlab_analysis::statistics::MeanDifference;
use serde::Serialize;

use super::by_name;
use crate::Pairing;

/// The causes of the difference between a kernel and the baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CausesAnswer {
    /// The baseline's name.
    pub baseline: String,
    /// The kernel that is compared.
    pub kernel: String,
    /// How runs belong together.
    #[serde(serialize_with = "by_name")]
    pub pairing: Pairing,
    /// Runs of the baseline.
    pub baseline_runs: usize,
    /// Runs of the kernel.
    pub runs: usize,
    /// What differs most, and why, in one to three sentences: the first is the answer.
    pub headline: Vec<String>,
    /// Of all waits; of woken tasks and their long ones; of each name that takes part.
    pub scopes: Vec<ScopeAnswer>,
    /// What wakeups chose.
    pub placements: Vec<TallyAnswer>,
    /// What balancing tried.
    pub balancing: Vec<TallyAnswer>,
    /// What the scheduler itself was busy with.
    pub work: Vec<WorkAnswer>,
    /// The first decision in which both part, where it was looked for.
    pub difference: Option<PartingAnswer>,
    /// What the reader should know.
    pub notices: Vec<String>,
}

/// Which waits are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitSelection {
    /// All.
    All,
    /// Those of tasks that were woken.
    Woken,
    /// Of these, those above the baseline's p99.
    LongWoken,
    /// All of tasks of one name.
    Named,
}

/// The waits of a kind, and the causes of the difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScopeAnswer {
    /// Which.
    pub waits: WaitSelection,
    /// Whose; none where all names are looked at.
    pub waiter: Option<String>,
    /// Waits of at least so long.
    pub least_ns: u64,
    /// The baseline's waits a second.
    pub baseline_waits_per_s: f64,
    /// The kernel's waits a second.
    pub waits_per_s: f64,
    /// How long the baseline's tasks waited in a second, summed over them.
    pub baseline_ns_per_s: f64,
    /// How long the kernel's did.
    pub ns_per_s: f64,
    /// How much longer.
    pub added: AmountAnswer,
    /// How often chance alone makes as much, adjusted for the number of causes.
    pub q: Option<f64>,
    /// Whether the difference stands among so many.
    pub sure: bool,
    /// By what had the CPU; the greatest difference first.
    pub behind: Vec<CauseAnswer>,
    /// By that and the decision; the greatest difference first.
    pub causes: Vec<CauseAnswer>,
    /// The difference in plain words.
    pub sentences: Vec<String>,
}

/// A cause on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseAnswer {
    /// What had the CPU.
    pub behind: WaitBehind,
    /// The kind of decision that left the task waiting.
    pub decision: CauseDecision,
    /// Its reason, as the model calls it.
    pub reason: String,
    /// All of that in words.
    pub words: String,
    /// How long the baseline's tasks waited for it in a second.
    pub baseline_ns_per_s: f64,
    /// How long the kernel's did.
    pub ns_per_s: f64,
    /// How often in a second, with the baseline.
    pub baseline_count_per_s: f64,
    /// How often in a second, with the kernel.
    pub count_per_s: f64,
    /// The difference.
    pub added: AmountAnswer,
    /// Its share of the whole difference; causes that work against it have a negative one.
    pub share: Option<f64>,
    /// How often chance alone makes as much, adjusted for the number of causes.
    pub q: Option<f64>,
    /// Whether it stands among so many.
    pub sure: bool,
    /// The tasks that waited.
    pub waiters: Vec<CauseNameAnswer>,
    /// The tasks that had the CPU.
    pub runners: Vec<CauseNameAnswer>,
    /// What ended it.
    pub ended: Vec<EndedAnswer>,
    /// Of the baseline's time, the share in which another CPU was idle.
    pub baseline_beside_idle: Option<f64>,
    /// Of the kernel's.
    pub beside_idle: Option<f64>,
}

/// How much longer tasks waited in a second, with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AmountAnswer {
    /// ns a second.
    #[serde(rename = "ns_per_s")]
    pub mean: f64,
    /// The lower end of the 95 % interval; none where nothing is known of chance.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// How often chance alone makes as much.
    pub p: Option<f64>,
}

impl AmountAnswer {
    /// A difference as an answer has it.
    pub const fn of(difference: &MeanDifference) -> AmountAnswer {
        let MeanDifference { mean, low, high, p } = *difference;
        AmountAnswer { mean, low, high, p }
    }
}

/// A name with its part in a cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseNameAnswer {
    /// The name, without a number at its end.
    pub name: String,
    /// Time in a second, with the baseline.
    pub baseline_ns_per_s: f64,
    /// With the kernel.
    pub ns_per_s: f64,
}

/// A way in which it ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndedAnswer {
    /// Which.
    pub ended: StretchEnd,
    /// In words.
    pub words: &'static str,
    /// Time in a second, with the baseline.
    pub baseline_ns_per_s: f64,
    /// With the kernel.
    pub ns_per_s: f64,
}

/// How often something was done in a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TallyAnswer {
    /// What.
    pub words: String,
    /// The baseline's rate.
    pub baseline_per_s: f64,
    /// The kernel's rate.
    pub per_s: f64,
    /// How often chance alone makes as much, adjusted for the number of tallies.
    pub q: Option<f64>,
    /// Whether the difference stands among so many.
    pub sure: bool,
}

/// Work of the scheduler itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkAnswer {
    /// Which, as the model calls it.
    pub work: String,
    /// In words.
    pub words: String,
    /// What is counted of it.
    pub unit: String,
    /// How many of that in a second, with the baseline.
    pub baseline_units_per_s: f64,
    /// With the kernel.
    pub units_per_s: f64,
    /// How long it took in a second, with the baseline; at full speed, summed over CPUs.
    pub baseline_ns_per_s: f64,
    /// With the kernel.
    pub ns_per_s: f64,
    /// How much longer; where nothing of it takes time, how many units more.
    pub added: AmountAnswer,
    /// How often chance alone makes as much, adjusted for the number of tallies.
    pub q: Option<f64>,
    /// Whether the difference stands among so many.
    pub sure: bool,
}

/// The first decision in which two kernels part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartingAnswer {
    /// The seed of the run.
    pub seed: u64,
    /// When, ns of virtual time.
    pub time_ns: u64,
    /// On which CPU.
    pub cpu: u32,
    /// What the baseline does.
    pub baseline: String,
    /// What the kernel does.
    pub kernel: String,
    /// What the baseline decided about it, with reasons; empty where it does not tell.
    pub baseline_decisions: Vec<String>,
    /// What the kernel decided.
    pub decisions: Vec<String>,
    /// What both held just before.
    pub state: Vec<HeldAnswer>,
    /// The command line that makes it again.
    pub command: String,
}

/// A member that both hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldAnswer {
    /// Of what, and its name.
    pub member: String,
    /// The baseline's value.
    pub baseline: String,
    /// The kernel's value.
    pub kernel: String,
}
