//! The loop: takes the next occurrence in virtual time, lets the scheduler do what is due, charges its cost.
//!
//! A CPU is in one of three phases: idle, in the kernel for a while (then it does one thing), or in user mode in a
//! thread's segment. A pending reschedule is acted on at return to user mode; kernel work is left for it only where the scheduler
//! says that its kernel can be preempted (`preempt.rs`). Interrupts arrive in any phase.
//!
//! Must not know: what an event is used for, files, which scheduler it drives and how that decides.

mod administration;
mod background;
mod cpu;
mod group;
mod idle;
mod idle_loop;
mod interrupt;
mod numbers;
mod occurrence;
mod preempt;
mod program;
mod request;
mod schedule;
mod sharing;
mod speed;
mod spin;
mod steal;
#[cfg(test)]
pub(crate) mod tests;
mod vcpu_turns;
mod wakeup;

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Ns, Pid, Sink, TaskState};
use fairlab_kernel::core::{KernelContext, Scheduler};
use fairlab_kernel::{CpuMask, Generation, GroupId, Policy, TaskId};

use crate::machine::Machine;
use crate::model::Model;
use crate::rng::RandomStream;
use crate::scheduler_core::{CoreRequest, SchedulerCore};
use crate::workload::administration::Administration;
use crate::workload::cgroup::GroupSpec;
use crate::workload::{Offer, ThreadId, ThreadSpec, Workload};
use administration::CpusetState;
use background::CpuBackground;
use cpu::EngineCpu;
use idle::CpuIdle;
use numbers::ThreadNumbers;
use occurrence::{Occurrence, OccurrenceQueue};
use sharing::SharingEffects;
use speed::CpuSpeeds;
use steal::StolenCpus;
use vcpu_turns::VcpuTurns;

/// The timer slack of ordinary tasks: a sleep may end this much late so that interrupts coalesce
/// (`init_task.timer_slack_ns`, kernel default 50 us).
const TIMER_SLACK: Ns = Ns(50_000);

/// After so many occurrences, which take about a millisecond, a run asks whether it is to go on.
const OCCURRENCES_BETWEEN_QUESTIONS: u64 = 4096;

/// Thread ids given to simulated threads count from here.
const FIRST_PID: i32 = 1000;

/// What happened in a run, counted by the engine itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounters {
    /// Context switches.
    pub switches: u64,
    /// Occurrences that the loop handled.
    pub occurrences: u64,
    /// Searches for work by CPUs that ran out of it (new-idle balances).
    pub newidle: u64,
    /// How long all of them took.
    pub newidle_time: Ns,
    /// How long the longest took.
    pub newidle_longest: Ns,
}

impl EngineCounters {
    /// A CPU that ran out of work has looked for more for `time`.
    fn count_search(&mut self, time: Ns) {
        self.newidle += 1;
        self.newidle_time += time;
        self.newidle_longest = self.newidle_longest.max(time);
    }
}

/// One run: a scheduler on a machine under workloads.
pub struct Engine<C: SchedulerCore = Model> {
    machine: Machine,
    /// The period of its tick.
    tick_period: Ns,
    core: C,
    queue: OccurrenceQueue<C::Message>,
    now: Ns,
    cpus: Vec<EngineCpu<C::Message>>,
    programs: Vec<EngineProgram>,
    threads: Vec<EngineThread>,
    /// Where the thread of each task is, if it is a workload's.
    thread_of: Vec<u32>,
    /// Threads that have not ended.
    alive: usize,
    /// How many threads have been created.
    created: usize,
    seed: u64,
    /// What the variation of kernel work is drawn from.
    jitter: RandomStream,
    /// What decides who of those that spin looks first.
    spins: RandomStream,
    /// Per CPU what goes on beside the workload; empty if nothing does.
    background: Vec<CpuBackground>,
    counters: EngineCounters,
    /// Whose turn it is, where one thread carries out all CPUs.
    turns: Option<Box<VcpuTurns<C::Message>>>,
    /// Which CPUs a host has taken away, if there is one that does.
    stolen: Option<Box<StolenCpus<C::Message>>>,
    /// No CPU ever stands still.
    are_at_hand: bool,
    marked: Vec<Cpu>,
    requests: Vec<CoreRequest<C::Message>>,
    /// Per CPU what its governor of idle states remembers; empty on machines without such states.
    idle: Vec<CpuIdle>,
    /// How fast hardware lets CPUs be.
    speeds: CpuSpeeds,
    /// What sharing costs, if that is known of the machine.
    effects: Option<Box<SharingEffects>>,
    /// Threads of workloads that run side by side of which the sink has not heard yet.
    members: Vec<(Pid, String)>,
    /// The autogroups of threads' sessions, by their places; empty where the kernel has autogroups off.
    autogroups: BTreeMap<usize, GroupId>,
}

/// A workload and its threads by their numbers; a number is given before its thread is created.
struct EngineProgram {
    workload: Box<dyn Workload>,
    threads: ThreadNumbers,
    /// Its process: the id of its main thread.
    process: Option<Pid>,
    groups: Vec<GroupId>,
    /// By word, the CPUs on which threads look at it in a loop, and since when.
    spinning: Vec<Vec<(Cpu, Ns)>>,
    /// The groups' paths, by which the trace tells who is in which.
    paths: Vec<String>,
    /// What the groups' files say now.
    specs: Vec<GroupSpec>,
    /// Where tasks in groups may run, where a group says so.
    cpusets: Option<Box<CpusetState>>,
}

/// A thread of a workload.
struct EngineThread {
    task: TaskId,
    program: usize,
    id: ThreadId,
    random: RandomStream,
    /// What the length of its computations is drawn from.
    chance: RandomStream,
    segment: ComputeSegment,
    /// The system call that it is in.
    pending: Option<SystemCall>,
    wait: ThreadSleep,
    /// How many sleeps on timers there have been here: a timer of another one comes too late.
    sleeps: u32,
    /// Its process.
    process: Pid,
}

/// A system call that has begun. What is large and rare is boxed: each call is moved on its way.
enum SystemCall {
    FutexWait,
    Wake {
        target: ThreadId,
        sync: bool,
    },
    Work,
    /// So much is left after the piece that is being done.
    OfferingWork {
        left: Ns,
        piece: Ns,
        offer: Offer,
    },
    Nanosleep(Ns),
    Io(Ns),
    /// Until an interrupt of that CPU.
    Await(Ns, Cpu),
    Clone(Box<ThreadSpec>, ThreadId),
    SchedYield,
    Exec,
    /// `None`: the root.
    EnterGroup(Option<usize>),
    Administer(Box<Administration>),
    /// Its threads, by their places, may run where their groups let them.
    AllowAgain(Vec<usize>),
    SetScheduler {
        policy: Option<Policy>,
        nice: Option<i32>,
        request: Option<Ns>,
        allowed: Option<Box<CpuMask>>,
    },
    Exit,
}

/// What a thread still has to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComputeSegment {
    /// Nothing: it is asked for its next action.
    Done,
    /// This much CPU time.
    Work(Ns),
    /// Until the clock says so.
    Until(Ns),
    /// Until it sees what it spins for, or has spent so much CPU time on it.
    Spin { word: u32, left: Ns },
    /// It was preempted in a system call, whose work takes this much more CPU time.
    Kernel(Ns),
}

/// Whether and how a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadSleep {
    No,
    /// On its way to sleep in `futex_wait`; a wakeup now makes it return at once.
    GoingToSleep,
    /// Woken on its way to sleep.
    WokenEarly,
    /// In `futex_wait`.
    Futex,
    /// In a timer sleep.
    Timer,
    /// Waits for a device: nothing else ends that.
    Device,
    /// Ended.
    Dead,
}

impl Engine<Model> {
    /// A machine at rest under the modelled `generation`, its time at zero.
    pub fn new(generation: Generation, machine: Machine, seed: u64) -> Engine<Model> {
        let core = Model::new(generation, &machine);
        Engine::with_core(core, machine, seed)
    }

    /// The modelled scheduler's state.
    pub fn kernel(&self) -> &Scheduler {
        self.core.scheduler()
    }
}

impl<C: SchedulerCore> Engine<C> {
    /// A machine at rest under a scheduler that has booted on it, its time at zero.
    pub fn with_core(core: C, machine: Machine, seed: u64) -> Engine<C> {
        let cpus = machine.topology.cpus().map(|_| EngineCpu::default()).collect();
        let nr_cpus = machine.topology.nr_cpus();
        let turns = machine.in_turn.then(|| Box::new(VcpuTurns::new(nr_cpus, &machine.chance, seed)));
        let stolen = StolenCpus::of(&machine.chance, nr_cpus, seed).filter(|_| !machine.in_turn);
        let has_idle_states = !machine.idle_states.is_empty();
        let (effects, speeds) = (SharingEffects::of(&machine), CpuSpeeds::of(&machine));
        let mut engine = Engine {
            tick_period: machine.tick(),
            machine,
            core,
            queue: OccurrenceQueue::new(nr_cpus),
            now: Ns::ZERO,
            cpus,
            programs: Vec::new(),
            threads: Vec::new(),
            thread_of: Vec::new(),
            alive: 0,
            created: 0,
            seed,
            jitter: RandomStream::new(seed, "jitter"),
            spins: RandomStream::new(seed, "spins"),
            background: Vec::new(),
            counters: EngineCounters::default(),
            are_at_hand: turns.is_none() && stolen.is_none(),
            turns,
            stolen,
            marked: Vec::new(),
            requests: Vec::new(),
            idle: if has_idle_states { vec![CpuIdle::default(); nr_cpus] } else { Vec::new() },
            speeds,
            effects,
            members: Vec::new(),
            autogroups: BTreeMap::new(),
        };
        if engine.machine.sharing.has_lines() && engine.effects.is_some() {
            engine.core.set_line_uses(true);
        }
        engine.create_background();
        engine.core.boot_is_over();
        engine.note_speeds();
        engine.begin_limits();
        engine.begin_to_steal();
        // The machine has been up for a while, and every CPU idles.
        for cpu in (0..engine.cpus.len() as u32).map(Cpu) {
            engine.stop_or_keep_tick(cpu, None);
        }
        engine
    }

    /// Whether events are reported to the sink; without, a run is faster.
    pub fn set_tracing(&mut self, enabled: bool) {
        self.core.set_tracing(enabled);
    }

    /// Whether probes print what decisions rest on, beside the events.
    pub fn set_probes(&mut self, enabled: bool) {
        self.core.set_probes(enabled);
    }

    /// Whether decisions are emitted with their reasons, beside the kernel's events.
    pub fn set_decisions(&mut self, enabled: bool) {
        self.core.set_decisions(enabled);
    }

    /// Whether the tries of balancing alone are told so, and what becomes of masks of idle CPUs.
    pub fn set_balancing_told(&mut self, enabled: bool) {
        self.core.set_balancing_told(enabled);
    }

    /// The scheduler's `/proc/schedstat` of now; `None` if it has none.
    pub fn schedstat(&mut self) -> Option<String> {
        self.core.schedstat(self.now)
    }

    /// What else the scheduler has counted so far, by name.
    pub fn own_counters(&self) -> Vec<(&'static str, u64)> {
        self.core.own_counters()
    }

    /// The longest search for work is that of those that end from now on.
    pub fn forget_longest_search(&mut self) {
        self.counters.newidle_longest = Ns::ZERO;
    }

    /// The groups of a workload, in its own order.
    pub fn groups(&self, number: usize) -> &[GroupId] {
        &self.programs[number].groups
    }

    /// Starts a workload's main thread on CPU 0 now. Returns the workload's number.
    pub fn start(&mut self, workload: Box<dyn Workload>) -> usize {
        self.start_on(workload, Cpu(0))
    }

    /// The same on another CPU of the machine.
    ///
    /// # Panics
    /// The machine has no such CPU.
    pub fn start_on(&mut self, mut workload: Box<dyn Workload>, boot_cpu: Cpu) -> usize {
        workload.begin_on(self.machine.topology.online());
        let number = self.programs.len();
        let spec = workload.main_thread();
        self.note_here(boot_cpu);
        self.core.set_here(boot_cpu, KernelContext::Task, self.now);
        let (groups, paths) = self.create_groups(number, &*workload, boot_cpu);
        let mut threads = ThreadNumbers::default();
        threads.reserve();
        let specs = workload.groups();
        let cpusets = CpusetState::of(&specs, self.machine.topology.online()).map(Box::new);
        let (process, spinning) = (None, Vec::new());
        self.programs.push(EngineProgram {
            workload,
            threads,
            process,
            groups,
            spinning,
            paths,
            specs,
            cpusets,
        });
        let task = self.create_thread(number, ThreadId::MAIN, &spec, boot_cpu, None);
        self.report_group_of(number, task);
        self.core.wake_up_new_task(boot_cpu, task);
        self.make_requests();
        self.interrupt_marked(None);
        number
    }

    /// Lets time pass until `end`, or until every thread has ended. Events go to `sink` in order of time.
    pub fn run_until(&mut self, end: Ns, sink: &mut dyn Sink) {
        self.run_while(end, sink, &|| true);
    }

    /// The same, as long as `goes_on` says so, which is asked now and then; then time stands where it came to.
    pub fn run_while(&mut self, end: Ns, sink: &mut dyn Sink, goes_on: &dyn Fn() -> bool) {
        C::drive(self, end, sink, goes_on);
    }

    /// The loop itself, for [`SchedulerCore::drive`].
    pub fn run_loop(&mut self, end: Ns, sink: &mut dyn Sink, goes_on: &dyn Fn() -> bool) {
        self.report(sink);
        while let Some((time, occurrence)) = self.queue.pop_until(end) {
            self.now = time;
            self.counters.occurrences += 1;
            if self.are_at_hand || !self.waits(occurrence) {
                self.carry_on(occurrence);
            }
            self.report(sink);
            let asks = self.counters.occurrences.is_multiple_of(OCCURRENCES_BETWEEN_QUESTIONS);
            if self.alive == 0 || (asks && !goes_on()) {
                return;
            }
        }
        self.now = end;
    }

    /// Whether `occurrence` waits for its CPU, which stands still.
    #[inline(never)]
    fn waits(&mut self, occurrence: Occurrence<C::Message>) -> bool {
        self.waits_for_host(occurrence) || self.waits_for_turn(occurrence)
    }

    /// Hands on what has happened.
    #[inline]
    fn report(&mut self, sink: &mut dyn Sink) {
        if !self.members.is_empty() {
            self.report_members(sink);
        }
        self.core.drain_events(sink);
    }

    #[cold]
    fn report_members(&mut self, sink: &mut dyn Sink) {
        for (pid, name) in self.members.drain(..) {
            sink.member(pid, &name);
        }
    }

    /// The time now.
    pub fn now(&self) -> Ns {
        self.now
    }

    /// What was counted so far.
    pub fn counters(&self) -> EngineCounters {
        self.counters
    }

    /// The scheduler that is driven.
    pub fn core(&self) -> &C {
        &self.core
    }

    /// A workload's state.
    pub fn workload(&self, number: usize) -> &dyn Workload {
        &*self.programs[number].workload
    }

    #[inline(always)]
    fn carry_on(&mut self, occurrence: Occurrence<C::Message>) {
        self.note_here(occurrence.cpu());
        match occurrence {
            Occurrence::PhaseEnds { cpu } => self.phase_ends(cpu),
            Occurrence::Tick { cpu } => self.tick(cpu),
            Occurrence::ClockEvent { cpu } => self.clock_event(cpu),
            Occurrence::Interrupt { cpu, interrupt } => self.interrupt_arrives(cpu, interrupt),
            Occurrence::WokenLeft { cpu, task, sync } => self.go_on_waking(cpu, task, sync),
            Occurrence::LimitChanges { number, .. } => self.change_limit(number),
            Occurrence::TurnEnds { .. } | Occurrence::HostTurns { .. } => {
                unreachable!("it happens on no CPU")
            }
        }
        if self.core.has_deferred() {
            self.end_work(occurrence.cpu());
        }
    }

    /// The thread that `cpu` runs; `None` when it runs its idle task, or a kernel thread.
    #[inline]
    fn thread_on(&self, cpu: Cpu) -> Option<usize> {
        let place = self.thread_of.get(self.core.curr(cpu).index()).copied()?;
        (place != NO_THREAD).then_some(place as usize)
    }
}

/// Stands for a task that is no thread of a workload.
const NO_THREAD: u32 = u32::MAX;

/// A task that leaves its CPU but stays runnable, at a return to user mode.
const PREEMPTED_AT_USER_RETURN: TaskState = TaskState::RUNNABLE;

fn pid_of_thread(created: usize) -> Pid {
    Pid(FIRST_PID + created as i32)
}
