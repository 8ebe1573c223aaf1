//! The strongest proof: the model beside a scheduler whose memory can be read, call by call, in closed loop.
//!
//! The engine drives the *leader*, which is a kernel's own code. The *follower*, the model, gets every call that the leader gets,
//! at its instant, and must decide as it does. After each occurrence what both hold is compared, member by member. So the model
//! decides each time in the kernel's whole state: nothing is learned from a trace, nothing is hidden, balancing is judged too.
//! The first difference ends the comparison, since all that follows would rest on it; the leader runs on.
//!
//! Kernel work takes no time in the follower, and must take none in the leader. What calls cost the engine is the leader's.
//!
//! Must not know: what the leader is, how an answer is shown.

mod calls;
mod compare;
mod findings;
mod messages;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::core::KernelContext;
use fairlab_kernel::invariant::Looks;
use fairlab_kernel::{Generation, GroupId, TaskId};
use fairlab_sim::machine::KernelCosts;
use fairlab_sim::{Inspect, Machine, Model};

pub use findings::{CheckCount, OracleCheck, OracleDifference, OracleFindings};
use messages::PendingMessages;

/// How often the model's state is looked through: all that it holds, not only what can be compared.
const LOOKS: Looks = Looks::new(64, 4);

/// The model of a generation whose kernel work takes no time.
pub fn without_costs(generation: Generation, machine: &Machine) -> Model {
    let machine = Machine { costs: KernelCosts::NONE, in_turn: false, ..machine.clone() };
    let mut model = Model::new(generation, &machine);
    model.look_through(LOOKS);
    model
}

/// The model as a follower of `leader`: it begins with what that holds at rest.
pub fn follower(generation: Generation, machine: &Machine, leader: &impl Inspect) -> Model {
    let mut model = without_costs(generation, machine);
    if let Some(rest) = leader.rest() {
        model.scheduler_mut().adopt(&rest);
    }
    model
}

/// Two schedulers that get equal calls.
pub struct Oracle<L: Inspect, F: Inspect> {
    leader: L,
    follower: F,
    nr_cpus: usize,
    here: (Cpu, KernelContext, Ns),
    /// The follower's name of each of the leader's tasks and groups, by number; `None`: it has no such.
    tasks: Vec<Option<TaskId>>,
    groups: Vec<GroupId>,
    messages: PendingMessages<F::Message>,
    /// CPUs whose state may have changed in this occurrence.
    touched: Vec<Cpu>,
    /// A task that was forked, and is not queued yet.
    forked: Option<TaskId>,
    /// What happens in this occurrence, for messages.
    call: &'static str,
    /// Whether the driver wants the leader's events.
    tracing: bool,
    findings: OracleFindings,
}

impl<L: Inspect, F: Inspect> Oracle<L, F> {
    /// Two schedulers at rest on machines with as many CPUs.
    pub fn new(mut leader: L, mut follower: F, nr_cpus: usize) -> Oracle<L, F> {
        leader.set_tracing(true);
        follower.set_tracing(true);
        let mut oracle = Oracle {
            messages: PendingMessages::new(nr_cpus),
            leader,
            follower,
            nr_cpus,
            here: (Cpu(0), KernelContext::Task, Ns::ZERO),
            tasks: Vec::new(),
            groups: vec![GroupId::ROOT],
            touched: Vec::new(),
            forked: None,
            call: "boot",
            tracing: false,
            findings: OracleFindings::default(),
        };
        for cpu in (0..nr_cpus as u32).map(Cpu) {
            let idle = (oracle.leader.idle_task(cpu), oracle.follower.idle_task(cpu));
            let stopper = (oracle.leader.stopper(cpu), oracle.follower.stopper(cpu));
            oracle.pair(idle.0, idle.1);
            oracle.pair(stopper.0, stopper.1);
        }
        oracle
    }

    /// What was found so far.
    pub fn findings(&self) -> &OracleFindings {
        &self.findings
    }

    /// The scheduler that is followed.
    pub fn leader(&self) -> &L {
        &self.leader
    }

    /// Whether both still agree: otherwise the follower is asked nothing more.
    pub fn agrees(&self) -> bool {
        self.findings.first.is_none()
    }

    fn pair(&mut self, leaders: TaskId, followers: TaskId) {
        if self.tasks.len() <= leaders.index() {
            self.tasks.resize(leaders.index() + 1, None);
        }
        self.tasks[leaders.index()] = Some(followers);
    }

    fn follower_of(&self, task: TaskId) -> Option<TaskId> {
        self.tasks.get(task.index()).copied().flatten()
    }

    fn touch(&mut self, cpu: Cpu) {
        if cpu.index() < self.nr_cpus && !self.touched.contains(&cpu) {
            self.touched.push(cpu);
        }
    }
}
