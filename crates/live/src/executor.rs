//! Runs any workload of the model for real: a real thread for each thread, a system call for each action.
//!
//! One thread at a time holds the program, which decides the next action, for some hundreds of ns. Waits for that are counted
//! ([`HELD`]).
//!
//! Departs:
//!
//! * A wakeup from a write into a pipe ([`Action::WakeSync`]) is a futex wakeup, without its hint.
//! * Work in the kernel ([`Action::SystemCall`]) is many short system calls, between which the thread can be preempted.
//! * Kernel threads cannot be started.
//! * Workloads of a mix are threads of one process, whose messages ([`Action::Send`]) are short system calls.
//! * A thread that is killed while it sleeps on a timer ends when the timer expires. Threads that sleep at the end of the run
//!   end with their process.
//!
//! Must not know: which workload it is.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::{CpuMask, MAX_CPUS};
use fairlab_sim::machine::Sharing;
use fairlab_sim::rng::RandomStream;
use fairlab_sim::workload::administration::Administration;
use fairlab_sim::workload::{Action, MESSAGE_BYTES, ThreadId, ThreadSpec, View, Workload};
use rustix::thread::futex::{Flags, wait, wake};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity, sched_yield};
use rustix::time::Timespec;

use crate::arrays::Arrays;
use crate::cgroup::CgroupFolders;
use crate::clock::{ComputePace, sleep};
use crate::gate::StartGate;
use crate::system::{ThreadScheduling, set_scheduling};
use crate::{LiveConditions, LiveReport};

/// The metric that says in what share of all actions a thread had to wait for another to leave the program. It is left
/// out below [`HELD_MIN`], where it does not matter.
pub const HELD: &str = "live_program_held_share";

/// See [`HELD`].
pub const HELD_MIN: f64 = 0.01;

/// How long threads get to end before they are left alone.
const GRACE: Ns = Ns::from_ms(200);

/// Between two looks at whether to stop, where no signal comes through.
const LOOK: Ns = Ns::from_secs(1);

/// What all threads share.
struct ExecutorState {
    program: Mutex<LiveProgram>,
    /// Where time begins.
    gate: StartGate,
    pace: ComputePace,
    seed: u64,
    groups: Option<CgroupFolders>,
    stopping: AtomicBool,
    /// How often somebody stored to a word that others may spin on.
    stores: AtomicU64,
    /// Threads that have not ended. Who waits for all of them sleeps on it.
    alive: AtomicU32,
    actions: AtomicU64,
    held: AtomicU64,
}

struct LiveProgram {
    workload: Box<dyn Workload>,
    /// By thread: a word that each wakeup changes, and who it is.
    words: Vec<Arc<AtomicU32>>,
    known: Vec<Arc<LiveThread>>,
    failed: Option<String>,
}

/// What others do to a thread, or need for that.
#[derive(Default)]
struct LiveThread {
    /// The kernel's number for it; 0 before it runs and after its end.
    tid: AtomicI32,
    /// It is to end.
    killed: AtomicBool,
    /// It has passed the gate.
    has_begun: AtomicBool,
    arrival: Mutex<GroupArrival>,
}

/// How far a thread is on its way into its group. A thread of a throttled group can take many periods for that.
#[derive(Default)]
enum GroupArrival {
    #[default]
    OnItsWay,
    /// It was moved meanwhile, and goes on to this group: that of its number, or the root.
    Redirected(Option<usize>),
    Arrived,
}

impl LiveThread {
    fn arrival(&self) -> MutexGuard<'_, GroupArrival> {
        self.arrival.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread was moved to `group`. One that is on its way goes there last.
    fn redirect(&self, group: Option<usize>) {
        let mut arrival = self.arrival();
        if !matches!(*arrival, GroupArrival::Arrived) {
            *arrival = GroupArrival::Redirected(group);
        }
    }

    /// Where a thread on its way goes next; `None` when it has arrived.
    fn next_group(&self) -> Option<Option<usize>> {
        let mut arrival = self.arrival();
        if let GroupArrival::Redirected(group) = *arrival {
            *arrival = GroupArrival::OnItsWay;
            return Some(group);
        }
        *arrival = GroupArrival::Arrived;
        None
    }
}

/// What a thread does next, once the program has been left.
enum NextStep {
    Do(Action),
    /// Sleeps, if the word still has this value.
    Wait(Arc<AtomicU32>, u32),
    /// Wakes whoever sleeps on this word, which it has changed.
    Wake(Arc<AtomicU32>),
    /// Starts a thread of this number.
    Start(ThreadId, ThreadSpec),
}

impl NextStep {
    /// Not only a preparation, such as the start of another thread, which comes before time begins.
    fn takes_time(&self) -> bool {
        !matches!(
            self,
            NextStep::Start(..)
                | NextStep::Do(
                    Action::SetScheduler { .. }
                        | Action::EnterGroup(_)
                        | Action::LeaveGroup
                        | Action::Administer(_)
                )
        )
    }
}

/// Carries out a workload.
///
/// # Errors
/// One line that says what this kernel or this user cannot do.
pub fn carry_out(
    mut workload: Box<dyn Workload>,
    conditions: &LiveConditions<'_>,
) -> Result<LiveReport, String> {
    workload.begin_on(&own_cpus());
    let specs = workload.groups();
    let groups =
        if specs.is_empty() { None } else { Some(CgroupFolders::create(&specs, conditions.marker)?) };
    let main = workload.main_thread();
    let pace = ComputePace::measure();
    let shared = Arc::new(ExecutorState {
        program: Mutex::new(LiveProgram {
            workload,
            words: vec![Arc::default()],
            known: vec![Arc::default()],
            failed: None,
        }),
        pace,
        gate: StartGate::default(),
        seed: conditions.seed,
        groups,
        stopping: AtomicBool::new(false),
        stores: AtomicU64::new(0),
        alive: AtomicU32::new(0),
        actions: AtomicU64::new(0),
        held: AtomicU64::new(0),
    });
    shared.start(ThreadId::MAIN, main)?;
    shared
        .wait_until(conditions.duration, || conditions.stop.load(Ordering::Relaxed) || shared.is_stopping());
    let elapsed = shared.gate.now();
    shared.stop();
    let over = shared.gate.now() + GRACE;
    shared.wait_until(Some(over), || false);
    shared.report(elapsed)
}

impl ExecutorState {
    fn program(&self) -> MutexGuard<'_, LiveProgram> {
        match self.program.try_lock() {
            Ok(program) => program,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.held.fetch_add(1, Ordering::Relaxed);
                self.program.lock().unwrap_or_else(PoisonError::into_inner)
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Sleeps until every thread has ended, it is `until` on the clock, or `stops` says so.
    fn wait_until(&self, until: Option<Ns>, stops: impl Fn() -> bool) {
        loop {
            let alive = self.alive.load(Ordering::SeqCst);
            let left = until.map_or(LOOK, |until| until.since(self.gate.now()).min(LOOK));
            if alive == 0 || left == Ns::ZERO || stops() {
                return;
            }
            let timeout = Timespec {
                tv_sec: (left.0 / 1_000_000_000) as i64,
                tv_nsec: (left.0 % 1_000_000_000) as i64,
            };
            let _ = wait(&self.alive, Flags::PRIVATE, alive, Some(&timeout));
        }
    }

    fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.gate.open();
        for word in &self.program().words {
            word.fetch_add(1, Ordering::SeqCst);
            let _ = wake(word, Flags::PRIVATE, u32::MAX >> 1);
        }
    }

    /// Something cannot be done: everything ends.
    fn fail(&self, problem: String) {
        self.program().failed.get_or_insert(problem);
        self.stop();
    }

    fn start(self: &Arc<Self>, id: ThreadId, spec: ThreadSpec) -> Result<(), String> {
        if spec.kthread && self.program().workload.needs_kernel_threads() {
            return Err(format!("'{}' is a kernel thread, which cannot be started", spec.comm.to_str()));
        }
        if spec.session.is_some() && spec.group.is_none() && has_autogroups() {
            return Err(format!(
                "'{}' wants a session of its own, and this kernel has autogroups on, but here all are threads of one process, which \
                 has one session: give it a group, or write 0 to /proc/sys/kernel/sched_autogroup_enabled",
                spec.comm.to_str()
            ));
        }
        let shared = Arc::clone(self);
        self.alive.fetch_add(1, Ordering::SeqCst);
        let thread = thread::Builder::new().name(spec.comm.to_str().into_owned()).stack_size(128 << 10);
        let body = move || {
            let known = shared.program().known.get(id.index()).cloned().unwrap_or_default();
            known.tid.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::SeqCst);
            if let Err(problem) = shared.run(id, &spec, &known) {
                shared.fail(problem);
            }
            known.tid.store(0, Ordering::SeqCst);
            if shared.alive.fetch_sub(1, Ordering::SeqCst) == 1 {
                let _ = wake(&shared.alive, Flags::PRIVATE, 1);
            }
        };
        thread.spawn(body).map(drop).map_err(|error| {
            self.alive.fetch_sub(1, Ordering::SeqCst);
            format!("cannot create another thread: {error}")
        })
    }

    fn run(self: &Arc<Self>, id: ThreadId, spec: &ThreadSpec, known: &LiveThread) -> Result<(), String> {
        let mut random = RandomStream::new(self.seed, &spec.stream);
        let mut arrays = None;
        let mut scheduling =
            ThreadScheduling { nice: spec.nice, policy: spec.policy, ..ThreadScheduling::default() };
        if let Some(group) = spec.group {
            self.enter(group)?;
        }
        while let (Some(group), Some(groups)) = (known.next_group(), &self.groups) {
            group.map_or_else(|| groups.leave(), |group| groups.enter(group))?;
        }
        // A program of its own does not go on as who has started it.
        if scheduling != ThreadScheduling::default() || spec.process {
            ask(scheduling)?;
        }
        if spec.allowed != CpuMask::ALL {
            allow(&spec.allowed)?;
        }
        while !self.is_stopping() {
            let next = self.next(id, &mut random);
            if next.takes_time() {
                self.gate.pass(&known.has_begun, &self.alive);
            }
            match next {
                NextStep::Do(Action::Exit) => return self.program().workload.problem().map_or(Ok(()), Err),
                NextStep::Do(Action::SpinOn { word, most }) => self.spin(id, word, most),
                NextStep::Do(action) => self.act(&action, &mut scheduling, &mut arrays, (spec, known))?,
                NextStep::Wait(word, seen) => {
                    let _ = wait(&word, Flags::PRIVATE, seen, None);
                }
                NextStep::Wake(word) => {
                    let _ = wake(&word, Flags::PRIVATE, 1);
                }
                NextStep::Start(id, spec) => self.start(id, spec)?,
            }
        }
        Ok(())
    }

    /// Asks the program what a thread does next.
    fn next(&self, id: ThreadId, random: &mut RandomStream) -> NextStep {
        self.actions.fetch_add(1, Ordering::Relaxed);
        let mut program = self.program();
        let cpu = Cpu(sched_getcpu() as u32);
        match program.workload.next(id, &mut View { now: self.gate.now(), cpu, random }) {
            Action::Wait => {
                let word = Arc::clone(&program.words[id.index()]);
                let seen = word.load(Ordering::SeqCst);
                // Where there is nothing to wait for, a value that the word has not makes the kernel return at once.
                let must_wait = program.workload.must_wait(id);
                NextStep::Wait(word, if must_wait { seen } else { seen.wrapping_sub(1) })
            }
            Action::Wake(whom) | Action::WakeSync(whom) => {
                // Who does not exist yet finds what it was to be woken for when it looks.
                let word = program.words.get(whom.index()).cloned().unwrap_or_default();
                word.fetch_add(1, Ordering::SeqCst);
                NextStep::Wake(word)
            }
            Action::Spawn(spec) => {
                let id = ThreadId(program.words.len() as u32);
                program.words.push(Arc::default());
                program.known.push(Arc::default());
                NextStep::Start(id, spec)
            }
            action => NextStep::Do(action),
        }
    }

    /// Burns CPU time until the program says that `id` sees what it spins for, which it is asked after each store, or until `most` of it is
    /// spent.
    fn spin(&self, id: ThreadId, word: u32, most: Ns) {
        let mut left = most;
        while !self.is_stopping() {
            let seen = self.stores.load(Ordering::SeqCst);
            if self.program().workload.sees(id, word) {
                return;
            }
            left = self.pace.spin(left, || {
                self.stores.load(Ordering::SeqCst) != seen || self.stopping.load(Ordering::Relaxed)
            });
            if left == Ns::ZERO {
                return;
            }
        }
    }

    fn act(
        &self,
        action: &Action,
        scheduling: &mut ThreadScheduling,
        arrays: &mut Option<Arrays>,
        (spec, known): (&ThreadSpec, &LiveThread),
    ) -> Result<(), String> {
        let ends = || self.is_stopping() || known.killed.load(Ordering::Relaxed);
        match *action {
            Action::Traffic(bytes) => {
                let arrays = arrays.get_or_insert_with(|| Arrays::new(spec.memory.working_set_kb));
                arrays.triad(bytes, ends);
            }
            Action::Run(work) => self.pace.work(work, ends),
            Action::SpinUntil(until) => {
                while self.gate.now() < until && !ends() {
                    std::hint::spin_loop();
                }
            }
            Action::Sleep(time) | Action::Io(time) | Action::Await(time) | Action::AwaitOn(time, _) => {
                sleep(time);
            }
            Action::SystemCall(work) | Action::OfferingSystemCall { work, .. } => {
                self.pace.work_in_kernel(work);
            }
            Action::Release { .. } => {
                self.stores.fetch_add(1, Ordering::SeqCst);
            }
            // Who sends messages, hackbench, is a program of its own here.
            Action::Send(bytes) | Action::Receive(bytes) => {
                let _ = rustix::process::getppid();
                let longer = bytes.saturating_sub(MESSAGE_BYTES);
                self.pace.work_in_kernel(Ns(Sharing::NONE.traffic_ns(longer.into())));
            }
            Action::Yield => sched_yield(),
            // A thread of this program cannot become another one: it stays on its CPU.
            Action::Exec => {}
            Action::SetScheduler { policy, nice, request, allowed } => {
                scheduling.policy = policy.unwrap_or(scheduling.policy);
                scheduling.nice = nice.unwrap_or(scheduling.nice);
                scheduling.request_ns = request.map_or(scheduling.request_ns, |request| request.0);
                if policy.is_some() || nice.is_some() || request.is_some() {
                    ask(*scheduling)?;
                }
                if let Some(allowed) = allowed {
                    allow(&allowed)?;
                }
            }
            Action::EnterGroup(group) => self.enter(group)?,
            Action::LeaveGroup => self.groups.as_ref().map_or(Ok(()), CgroupFolders::leave)?,
            Action::Administer(ref order) => self.administer(order)?,
            Action::SpinOn { .. }
            | Action::Wait
            | Action::Wake(_)
            | Action::WakeSync(_)
            | Action::Spawn(_)
            | Action::Exit => {}
        }
        Ok(())
    }

    fn enter(&self, group: usize) -> Result<(), String> {
        self.groups.as_ref().map_or(Ok(()), |groups| groups.enter(group))
    }

    /// Does to other threads, and to groups, what is asked for. Who has ended meanwhile is left out.
    fn administer(&self, order: &Administration) -> Result<(), String> {
        match order {
            Administration::Move { threads, group } => {
                let groups = self.groups.as_ref().ok_or("there are no groups")?;
                let known = self.known(threads).into_iter().inspect(|(known, _)| known.redirect(*group));
                let tids = known.map(|(known, _)| known.tid.load(Ordering::SeqCst));
                tids.filter(|&tid| tid != 0).try_for_each(|tid| groups.put(tid, *group))
            }
            Administration::Write { group, file } => {
                self.groups.as_ref().map_or(Ok(()), |groups| groups.write(*group, *file))
            }
            Administration::Kill(threads) => {
                for (known, word) in self.known(threads) {
                    known.killed.store(true, Ordering::SeqCst);
                    word.fetch_add(1, Ordering::SeqCst);
                    let _ = wake(&word, Flags::PRIVATE, u32::MAX >> 1);
                }
                Ok(())
            }
        }
    }

    fn known(&self, threads: &[ThreadId]) -> Vec<(Arc<LiveThread>, Arc<AtomicU32>)> {
        let program = self.program();
        let of = |id: &ThreadId| {
            Some((program.known.get(id.index())?.clone(), program.words.get(id.index())?.clone()))
        };
        threads.iter().filter_map(of).collect()
    }

    fn report(&self, elapsed: Ns) -> Result<LiveReport, String> {
        let program = self.program();
        if let Some(problem) = &program.failed {
            return Err(problem.clone());
        }
        let mut metrics = program.workload.metrics();
        metrics.extend(program.workload.members().iter().filter_map(|member| {
            Some((format!("{} throughput", member.name), member.per_second(Ns::ZERO, elapsed)?))
        }));
        let actions = self.actions.load(Ordering::Relaxed).max(1);
        let held = self.held.load(Ordering::Relaxed) as f64 / actions as f64;
        metrics.extend((held >= HELD_MIN).then(|| (HELD.to_string(), held)));
        Ok(LiveReport {
            output: program.workload.output(elapsed),
            progress: program.workload.progress().map(|(unit, count)| (unit.to_string(), count)),
            metrics,
            elapsed,
        })
    }
}

fn ask(scheduling: ThreadScheduling) -> Result<(), String> {
    set_scheduling(scheduling).map_err(|error| {
        format!("cannot be scheduled as {:?} at nice {}: {error}", scheduling.policy, scheduling.nice)
    })
}

/// The CPUs that this process may use; CPU 0 where nobody tells.
fn own_cpus() -> CpuMask {
    let set = sched_getaffinity(None).unwrap_or_else(|_| {
        let mut first = CpuSet::new();
        first.set(0);
        first
    });
    let most = CpuSet::MAX_CPU.min(MAX_CPUS);
    (0..most).filter(|&cpu| set.is_set(cpu)).map(|cpu| Cpu(cpu as u32)).collect()
}

/// Whether sessions have groups of their own here.
fn has_autogroups() -> bool {
    let read = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    read.is_ok_and(|text| text.trim() == "1")
}

fn allow(cpus: &CpuMask) -> Result<(), String> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| cpu.index() < CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu.index()));
    sched_setaffinity(None, &set).map_err(|error| format!("cannot run on CPUs {cpus}: {error}"))
}

#[cfg(test)]
mod tests {
    use fairlab_sim::workload::jobs::Jobs;
    use fairlab_sim::workload::replay::{Replay, ReplayOptions, Script};
    use fairlab_sim::workload::rtapp::RtApp;
    use fairlab_sim::workload::uperf::Uperf;
    use fairlab_sim::workload::vhost::Vhost;

    use super::*;

    fn carried_out(workload: impl Workload + 'static, duration_ms: u64) -> Result<LiveReport, String> {
        let duration = (duration_ms > 0).then(|| Ns::from_ms(duration_ms));
        let conditions = LiveConditions { seed: 1, duration, stop: &AtomicBool::new(false), marker: None };
        carry_out(Box::new(workload), &conditions)
    }

    #[test]
    fn threads_of_an_rt_app_file_wait_for_each_other_and_end() {
        let file = r#"{ "tasks": {
            "giver": { "loop": 20, "run": 100, "sleep": 500, "sem_post": "s" },
            "taker": { "loop": 20, "priority": 5, "sem_wait": "s", "lock": "m", "run": 50, "unlock": "m" },
            "third": { "loop": 30, "timer": { "ref": "t", "period": 1000 }, "lock": "m", "yield": "", "unlock": "m" }
        } }"#;
        let report = carried_out(RtApp::parse(file).expect("a file"), 0).expect("a report");
        assert_eq!(report.progress, Some(("loops".to_string(), 70)), "{}", report.output);
        assert!(report.elapsed >= Ns::from_ms(29), "30 periods of a millisecond, the first at once");
    }

    /// In a throttled group a thread may not have begun when it is moved, or be about to enter its old group.
    #[test]
    fn a_thread_that_is_moved_on_its_way_goes_there_last() {
        let known = LiveThread::default();
        known.redirect(Some(1));
        known.redirect(Some(2));
        assert_eq!(known.next_group(), Some(Some(2)));
        known.redirect(None);
        assert_eq!((known.next_group(), known.next_group()), (Some(None), None));
        known.redirect(Some(3));
        assert_eq!(known.next_group(), None, "who has arrived is moved by the kernel alone");
    }

    #[test]
    fn whatever_does_not_end_is_stopped() {
        for kind in ["spin", "yield", "sleep", "pairs", "spawn"] {
            let args = [kind, "-n", "3", "-k", "2", "-r", "200"].map(String::from);
            let report = carried_out(Jobs::parse(&args).expect("options"), 400).expect("a report");
            assert!(report.progress.is_some_and(|(_, count)| count > 0), "{kind}: {}", report.output);
            assert!(report.metrics.iter().all(|(name, share)| name == HELD && *share <= 1.0), "{kind}");
        }
    }

    /// A thread of the kernel is stood for by one that stays on its CPU.
    #[test]
    fn a_recording_is_replayed_by_threads_of_this_host() {
        let script = "fairlab-replay 1 30000000\ntask other 120 0 - user - a\nrun 1000000\nwake 1\nuntil 20000000\nwake 1\nfork 2\n\
                      task other 120 0 0 kernel - kworker/0:1\nblock\nrun 100000\nblock\nrun 100000\ntask other 120 - - forked - b\nrun 100000\n";
        let script = Script::parse(script).expect("a script");
        let report =
            carried_out(Replay::new(script.into(), ReplayOptions::default()), 10_000).expect("a report");
        assert_eq!(report.progress, Some(("sleeps".to_string(), 3)));
        assert!(report.output.contains("all ended after 0.0"), "{}", report.output);
    }

    #[test]
    fn kworkers_of_a_host_are_stood_for_by_threads() {
        let args = ["--cpus", "1", "--guests", "1", "--guest-cpus", "1", "--run-ms", "300"].map(String::from);
        match carried_out(Vhost::parse(&args).expect("options"), 10_000) {
            Ok(report) => {
                // How many is the host's affair: its CPUs may be busy. Each is work that a kworker's stand-in did.
                assert!(report.progress.is_some_and(|(_, rounds)| rounds > 0), "{}", report.output);
            }
            // Whoever tests may have no groups.
            Err(error) => assert!(error.contains("group"), "{error}"),
        }
    }

    #[test]
    fn what_cannot_be_done_ends_everything() {
        let file = r#"{ "tasks": { "far": { "loop": -1, "run": 100, "cpus": [511] } } }"#;
        let error =
            carried_out(RtApp::parse(file).expect("a file"), 60_000).expect_err("there is no such CPU");
        assert!(error.starts_with("cannot run on CPUs 511: "), "{error}");
        let error = carried_out(Uperf::parse(&[]).expect("options"), 60_000).expect_err("it has kworkers");
        assert!(error.ends_with("is a kernel thread, which cannot be started"), "{error}");
    }
}
