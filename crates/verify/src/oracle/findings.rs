//! What came of following: how often each thing was compared, and the first difference.
//!
//! Must not know: how the two schedulers are asked.

use std::collections::BTreeMap;

use fairlab_kernel::members::Member;
use serde::{Deserialize, Serialize};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Check {
    /// On which CPU a woken or new task is queued.
    WakeupCpu,
    /// Whether a task that joins takes the CPU.
    WakeupPreempt,
    /// Whether the tick takes the CPU.
    TickPreempt,
    /// Which task runs next.
    Pick,
    /// Which tasks stand on which queue, in the order in which balancing looks at them.
    Balance,
    /// What balancing remembers.
    BalanceState,
    /// Which CPUs are interrupted, and which timers run.
    Interrupt,
    /// Entities on their virtual time line: vruntime, deadline, lag.
    Entity,
    /// Whether a sleeper stays on its queue.
    DelayedDequeue,
    /// A queue's zero, sums, weight and counts.
    Queue,
    /// Weights of groups' entities.
    Weight,
    /// Averages of load, of being runnable, of utilization.
    Average,
    /// Quotas: runtime left, throttling.
    Bandwidth,
}

impl Check {
    /// Every check, in order of report.
    pub const ALL: [Check; 13] = [
        Check::WakeupCpu,
        Check::WakeupPreempt,
        Check::TickPreempt,
        Check::Pick,
        Check::Balance,
        Check::BalanceState,
        Check::Interrupt,
        Check::Entity,
        Check::DelayedDequeue,
        Check::Queue,
        Check::Weight,
        Check::Average,
        Check::Bandwidth,
    ];

    /// Its name in machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Check::WakeupCpu => "wakeup_cpu",
            Check::WakeupPreempt => "wakeup_preempt",
            Check::TickPreempt => "tick_preempt",
            Check::Pick => "pick",
            Check::Balance => "balance",
            Check::BalanceState => "balance_state",
            Check::Interrupt => "interrupt",
            Check::Entity => "entity",
            Check::DelayedDequeue => "delayed_dequeue",
            Check::Queue => "queue",
            Check::Weight => "weight",
            Check::Average => "average",
            Check::Bandwidth => "bandwidth",
        }
    }

    /// Where a member counts.
    pub(super) const fn of(member: Member) -> Check {
        match member {
            Member::SchedDelayed => Check::DelayedDequeue,
            Member::TaskCpu
            | Member::TaskOnRq
            | Member::NrRunning
            | Member::HNrRunning
            | Member::RqNrRunning => Check::Queue,
            Member::QueueZero | Member::SumOfKeys | Member::SumOfWeights => Check::Queue,
            Member::Vruntime
            | Member::Deadline
            | Member::Vlag
            | Member::SumExecRuntime
            | Member::PrevSumExecRuntime => Check::Entity,
            Member::EntityWeight | Member::QueueWeight => Check::Weight,
            Member::EntityLoadAvg
            | Member::EntityRunnableAvg
            | Member::EntityUtilAvg
            | Member::EntityLoadSum
            | Member::EntityRunnableSum
            | Member::EntityUtilSum
            | Member::EntityLastUpdate
            | Member::QueueLoadAvg
            | Member::QueueRunnableAvg
            | Member::QueueUtilAvg
            | Member::QueueLoadSum
            | Member::QueueRunnableSum
            | Member::QueueUtilSum
            | Member::QueueLastUpdate
            | Member::TgLoadAvgContrib
            | Member::QueueUtilEst => Check::Average,
            Member::RuntimeRemaining | Member::Throttled => Check::Bandwidth,
            Member::WakeeFlips
            | Member::RecentUsedCpu
            | Member::AvgIdle
            | Member::MaxIdleBalanceCost
            | Member::NextBalance
            | Member::IdleStamp
            | Member::HasIdleCores
            | Member::NrIdleScan
            | Member::NrBusyCpus
            | Member::NrBalanceFailed
            | Member::BalanceInterval
            | Member::LastBalance
            | Member::ParentNrBalanceFailed
            | Member::ParentBalanceInterval
            | Member::ParentLastBalance
            | Member::GrandparentNrBalanceFailed
            | Member::GrandparentBalanceInterval
            | Member::GrandparentLastBalance
            | Member::HasBlockedLoad
            | Member::LastBlockedLoadUpdate => Check::BalanceState,
        }
    }
}

/// How often one thing was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// Compared.
    pub all: u64,
    /// Of these, alike.
    pub agree: u64,
}

/// The first thing in which the follower differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// When, ns of virtual time.
    pub time_ns: u64,
    /// On which CPU.
    pub cpu: u32,
    /// In which call.
    pub call: String,
    /// The event or member.
    pub check: Check,
    /// The task, queue or member.
    pub subject: String,
    /// What the leader holds or does.
    pub leader: String,
    /// What the follower holds or does.
    pub follower: String,
    /// What both hold on that CPU: a line, the leader's value, the follower's.
    pub state: Vec<(String, String, String)>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// By check.
    pub checks: BTreeMap<Check, Judged>,
    /// The first difference; the comparison ends there.
    pub first: Option<Difference>,
}

impl Findings {
    pub(super) fn count(&mut self, check: Check, agree: bool) {
        let judged = self.checks.entry(check).or_default();
        judged.all += 1;
        judged.agree += u64::from(agree);
    }

    /// How many comparisons there were in all.
    pub fn total(&self) -> u64 {
        self.checks.values().map(|judged| judged.all).sum()
    }

    /// Adds another run's counts; the first difference of the two stays.
    pub fn add(&mut self, other: Findings) {
        for (check, judged) in other.checks {
            let sum = self.checks.entry(check).or_default();
            sum.all += judged.all;
            sum.agree += judged.agree;
        }
        self.first = self.first.take().or(other.first);
    }
}
