//! What came of following: how often each thing was compared, and the first difference.
//!
//! Must not know: how the two schedulers are asked.

use std::collections::BTreeMap;

use fairlab_kernel::struct_members::StructMember;
use serde::{Deserialize, Serialize};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OracleCheck {
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

impl OracleCheck {
    /// Every check, in order of report.
    pub const ALL: [OracleCheck; 13] = [
        OracleCheck::WakeupCpu,
        OracleCheck::WakeupPreempt,
        OracleCheck::TickPreempt,
        OracleCheck::Pick,
        OracleCheck::Balance,
        OracleCheck::BalanceState,
        OracleCheck::Interrupt,
        OracleCheck::Entity,
        OracleCheck::DelayedDequeue,
        OracleCheck::Queue,
        OracleCheck::Weight,
        OracleCheck::Average,
        OracleCheck::Bandwidth,
    ];

    /// Its name in machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            OracleCheck::WakeupCpu => "wakeup_cpu",
            OracleCheck::WakeupPreempt => "wakeup_preempt",
            OracleCheck::TickPreempt => "tick_preempt",
            OracleCheck::Pick => "pick",
            OracleCheck::Balance => "balance",
            OracleCheck::BalanceState => "balance_state",
            OracleCheck::Interrupt => "interrupt",
            OracleCheck::Entity => "entity",
            OracleCheck::DelayedDequeue => "delayed_dequeue",
            OracleCheck::Queue => "queue",
            OracleCheck::Weight => "weight",
            OracleCheck::Average => "average",
            OracleCheck::Bandwidth => "bandwidth",
        }
    }

    /// Where a member counts.
    pub(super) const fn of(member: StructMember) -> OracleCheck {
        match member {
            StructMember::SchedDelayed => OracleCheck::DelayedDequeue,
            StructMember::TaskCpu
            | StructMember::TaskOnRq
            | StructMember::NrRunning
            | StructMember::HNrRunning
            | StructMember::RqNrRunning => OracleCheck::Queue,
            StructMember::QueueZero | StructMember::SumOfKeys | StructMember::SumOfWeights => {
                OracleCheck::Queue
            }
            StructMember::Vruntime
            | StructMember::Deadline
            | StructMember::Slice
            | StructMember::Vprot
            | StructMember::Vlag
            | StructMember::SumExecRuntime
            | StructMember::PrevSumExecRuntime => OracleCheck::Entity,
            StructMember::EntityWeight | StructMember::QueueWeight => OracleCheck::Weight,
            StructMember::EntityLoadAvg
            | StructMember::EntityRunnableAvg
            | StructMember::EntityUtilAvg
            | StructMember::EntityLoadSum
            | StructMember::EntityRunnableSum
            | StructMember::EntityUtilSum
            | StructMember::EntityLastUpdate
            | StructMember::QueueLoadAvg
            | StructMember::QueueRunnableAvg
            | StructMember::QueueUtilAvg
            | StructMember::QueueLoadSum
            | StructMember::QueueRunnableSum
            | StructMember::QueueUtilSum
            | StructMember::QueueLastUpdate
            | StructMember::TgLoadAvgContrib
            | StructMember::QueueUtilEst => OracleCheck::Average,
            StructMember::RuntimeRemaining | StructMember::Throttled => OracleCheck::Bandwidth,
            StructMember::WakeeFlips
            | StructMember::RecentUsedCpu
            | StructMember::AvgIdle
            | StructMember::MaxIdleBalanceCost
            | StructMember::NextBalance
            | StructMember::IdleStamp
            | StructMember::HasIdleCores
            | StructMember::NrIdleScan
            | StructMember::NrBusyCpus
            | StructMember::NrBalanceFailed
            | StructMember::BalanceInterval
            | StructMember::LastBalance
            | StructMember::MaxNewidleLbCost
            | StructMember::ParentNrBalanceFailed
            | StructMember::ParentBalanceInterval
            | StructMember::ParentLastBalance
            | StructMember::ParentMaxNewidleLbCost
            | StructMember::GrandparentNrBalanceFailed
            | StructMember::GrandparentBalanceInterval
            | StructMember::GrandparentLastBalance
            | StructMember::GrandparentMaxNewidleLbCost
            | StructMember::HasBlockedLoad
            | StructMember::RdOverload
            | StructMember::LastBlockedLoadUpdate => OracleCheck::BalanceState,
        }
    }
}

/// How often one thing was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckCount {
    /// Compared.
    pub all: u64,
    /// Of these, alike.
    pub agree: u64,
}

/// The first thing in which the follower differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OracleDifference {
    /// When, ns of virtual time.
    pub time_ns: u64,
    /// On which CPU.
    pub cpu: u32,
    /// In which call.
    pub call: String,
    /// The event or member.
    pub check: OracleCheck,
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
pub struct OracleFindings {
    /// By check.
    pub checks: BTreeMap<OracleCheck, CheckCount>,
    /// The first difference; the comparison ends there.
    pub first: Option<OracleDifference>,
}

impl OracleFindings {
    pub(super) fn count(&mut self, check: OracleCheck, agree: bool) {
        let judged = self.checks.entry(check).or_default();
        judged.all += 1;
        judged.agree += u64::from(agree);
    }

    /// How many comparisons there were in all.
    pub fn total(&self) -> u64 {
        self.checks.values().map(|judged| judged.all).sum()
    }

    /// Adds another run's counts; the first difference of the two stays.
    pub fn add(&mut self, other: OracleFindings) {
        for (check, judged) in other.checks {
            let sum = self.checks.entry(check).or_default();
            sum.all += judged.all;
            sum.agree += judged.agree;
        }
        self.first = self.first.take().or(other.first);
    }
}
