//! Kernel threads that poll for guests, beside those guests' CPUs, in the nested control groups of a libvirt host.
//!
//! What matters to the scheduler of a host whose guests use vhost-net: each guest is a hierarchy of groups, `machine.slice` /
//! the guest / `libvirt` / `emulator` or `vcpuN`. A vhost thread lives in `emulator`. It works in the kernel and offers its
//! CPU only at certain points (`cond_resched()`). To interrupt its guest it queues work for the kworker of its own CPU
//! (`irqfd_wakeup()` → `schedule_work()`). That kworker lives in the root group. The vhost thread polls until the work has
//! been done. A guest's CPU computes and sleeps.
//!
//! The vhost threads' loop: queue work, compute for a while, poll until the work is done; after a number of rounds sleep.
//!
//! Departs: each thread of a guest is a process of its own. Guests' CPUs compute and sleep on their own, whether they are interrupted or not. Kworkers' work that wakes one
//! is only counted.
//!
//! Must not know: how a scheduler decides.

mod options;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::CpuMask;

use super::cgroup::GroupSpec;
use crate::workload::warm_up::WarmUp;
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};
pub(super) use options::PROGRAM;
pub use options::VhostOptions;

/// How long a vhost thread looks for more before it offers its CPU.
const POLL: Ns = Ns(1_000);

/// Whose program a thread follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VhostRole {
    Main,
    /// The kworker of this CPU.
    Kworker(usize),
    /// A guest's CPU, by its number among all of them.
    GuestCpu,
    /// A vhost thread, by its number among all of them.
    Vhost(usize),
}

/// The pool of one CPU's kworker.
#[derive(Clone, Debug, Default)]
struct KworkerPool {
    /// When the pieces of work that wait were queued, and by which vhost thread.
    queue: std::collections::VecDeque<(Ns, usize)>,
    /// Pieces done so far.
    done: u64,
    /// It works on a piece now.
    busy: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VhostStage {
    Queue,
    Compute,
    Poll,
}

#[derive(Clone, Debug)]
struct VhostThread {
    stage: VhostStage,
    /// Its work has not been done yet.
    outstanding: bool,
    rounds: u64,
}

/// Groups of a guest: the guest's own, `libvirt`, `emulator`, and one a CPU.
pub(super) const fn groups_a_guest(guest_cpus: u32) -> usize {
    3 + guest_cpus as usize
}

/// The groups of a libvirt host with so many guests: `machine.slice`, and below it each guest's.
pub(super) fn guest_groups(guests: u32, guest_cpus: u32) -> Vec<GroupSpec> {
    let below = |parent: usize, name: String| GroupSpec { parent: Some(parent), ..GroupSpec::new(name) };
    let mut groups = vec![GroupSpec::new("machine.slice")];
    for guest in 1..=guests {
        let own = groups.len();
        groups.push(below(0, format!("q{guest}")));
        groups.push(below(own, format!("q{guest}/libvirt")));
        groups.push(below(own + 1, format!("q{guest}/libvirt/emulator")));
        groups.extend((0..guest_cpus).map(|cpu| below(own + 1, format!("q{guest}/libvirt/vcpu{cpu}"))));
    }
    groups
}

/// The host's threads, ready to run.
#[derive(Debug)]
pub struct Vhost {
    options: VhostOptions,
    roles: Vec<VhostRole>,
    pools: Vec<KworkerPool>,
    vhosts: Vec<VhostThread>,
    guest_rounds: Vec<bool>,
    /// How long each piece of work waited for its kworker, ns.
    waits: Vec<u64>,
    settling: WarmUp,
    /// Rounds of all vhost threads.
    rounds: u64,
    ends: Option<Ns>,
    /// At the end: how many kworkers have been told.
    told: u32,
}

impl Vhost {
    /// The workload with these arguments (without its name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<Vhost, String> {
        Ok(Vhost::new(VhostOptions::parse(args)?))
    }

    /// The workload with these options.
    pub fn new(options: VhostOptions) -> Vhost {
        let vhost = VhostThread { stage: VhostStage::Queue, outstanding: false, rounds: 0 };
        Vhost {
            roles: vec![VhostRole::Main],
            pools: vec![KworkerPool::default(); options.cpus as usize],
            vhosts: vec![vhost; (options.guests * options.vhosts) as usize],
            guest_rounds: Vec::new(),
            waits: Vec::new(),
            settling: WarmUp::default(),
            rounds: 0,
            ends: None,
            told: 0,
            options,
        }
    }

    fn group_of(&self, guest: u32, below: usize) -> Option<usize> {
        Some(1 + guest as usize * groups_a_guest(self.options.guest_cpus) + below)
    }

    /// The next thread to be created, in order: kworkers, then each guest's CPUs and vhost threads.
    fn create(&mut self) -> Option<Action> {
        let VhostOptions { cpus, guests, guest_cpus, vhosts, .. } = self.options;
        let number = self.roles.len() as u32 - 1;
        if number < cpus {
            self.roles.push(VhostRole::Kworker(number as usize));
            let spec = ThreadSpec::new(&format!("kworker/{number}:1"), format!("kworker {number}"));
            let allowed = CpuMask::single(Cpu(number));
            return Some(Action::Spawn(ThreadSpec { allowed, kthread: true, ..spec }));
        }
        let a_guest = guest_cpus + vhosts;
        let (guest, thread) = ((number - cpus) / a_guest, (number - cpus) % a_guest);
        if guest >= guests {
            return None;
        }
        let stream = format!("guest {guest} thread {thread}");
        // On a machine with more CPUs the others have no kworkers, and are left alone.
        let allowed = self.named_cpus();
        if thread < guest_cpus {
            self.roles.push(VhostRole::GuestCpu);
            self.guest_rounds.push(false);
            let spec = ThreadSpec::new(&format!("CPU {thread}/KVM"), stream);
            return Some(Action::Spawn(ThreadSpec {
                group: self.group_of(guest, 3 + thread as usize),
                allowed,
                process: true,
                ..spec
            }));
        }
        self.roles.push(VhostRole::Vhost((guest * vhosts + thread - guest_cpus) as usize));
        let spec = ThreadSpec::new(&format!("vhost-{}", guest + 1), stream);
        let group = self.group_of(guest, 2);
        Some(Action::Spawn(ThreadSpec { group, allowed, process: true, ..spec }))
    }

    fn main(&mut self, now: Ns) -> Action {
        if let Some(action) = self.create() {
            return action;
        }
        let counts_from = self.settling.begin(now);
        let ends = counts_from + Ns::from_ms(u64::from(self.options.run_ms));
        self.ends = Some(ends);
        if now < ends {
            return Action::Sleep(ends.since(now));
        }
        if self.told == self.options.cpus {
            return Action::Exit;
        }
        self.told += 1;
        Action::Wake(ThreadId(self.told))
    }

    fn kworker(&mut self, cpu: usize, now: Ns) -> Action {
        let options = &self.options;
        let pool = &mut self.pools[cpu];
        if std::mem::take(&mut pool.busy) {
            pool.done += 1;
            if let Some((_, vhost)) = pool.queue.pop_front() {
                self.vhosts[vhost].outstanding = false;
            }
        }
        let Some(&(queued, _)) = pool.queue.front() else { return Action::Wait };
        if self.settling.is_over(queued) {
            self.waits.push(now.since(queued).0);
        }
        pool.busy = true;
        let long = options.long_every > 0 && (pool.done + 1).is_multiple_of(u64::from(options.long_every));
        Action::SystemCall(Ns::from_us(u64::from(if long { options.long_work_us } else { options.work_us })))
    }

    fn guest_cpu(&mut self, thread: ThreadId) -> Action {
        let VhostOptions { cpus, guest_cpus, vhosts, run_us, sleep_us, .. } = self.options;
        let number = thread.0 - 1 - cpus;
        let index = number / (guest_cpus + vhosts) * guest_cpus + number % (guest_cpus + vhosts);
        let ran = &mut self.guest_rounds[index as usize];
        *ran = !*ran;
        let us = |us: u32| Ns::from_us(u64::from(us));
        if *ran { Action::Run(us(run_us)) } else { Action::Sleep(us(sleep_us)) }
    }

    fn vhost(&mut self, index: usize, view: &View<'_>) -> Action {
        let VhostOptions { gap_us, batch, pause_us, .. } = self.options;
        let counts = self.settling.is_over(view.now);
        let vhost = &mut self.vhosts[index];
        match vhost.stage {
            VhostStage::Queue => {
                vhost.stage = VhostStage::Compute;
                vhost.outstanding = true;
                let cpu = view.cpu.index();
                let idle = self.pools[cpu].queue.is_empty() && !self.pools[cpu].busy;
                self.pools[cpu].queue.push_back((view.now, index));
                // The kworker's thread follows the main one.
                if idle { Action::Wake(ThreadId(1 + cpu as u32)) } else { Action::SystemCall(Ns::ZERO) }
            }
            VhostStage::Compute => {
                vhost.stage = VhostStage::Poll;
                Action::SystemCall(Ns::from_us(u64::from(gap_us)))
            }
            VhostStage::Poll if vhost.outstanding => Action::SystemCall(POLL),
            VhostStage::Poll => {
                vhost.stage = VhostStage::Queue;
                vhost.rounds += 1;
                self.rounds += u64::from(counts);
                if vhost.rounds.is_multiple_of(u64::from(batch)) {
                    Action::Sleep(Ns::from_us(u64::from(pause_us)))
                } else {
                    Action::SystemCall(Ns::ZERO)
                }
            }
        }
    }

    fn rounds(&self) -> u64 {
        self.rounds
    }

    /// A percentile of the waits, in thousandths, ns.
    fn wait(&self, per_mille: usize) -> u64 {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        let index = (waits.len() * per_mille / 1000).min(waits.len().saturating_sub(1));
        waits.get(index).copied().unwrap_or(0)
    }
}

impl Workload for Vhost {
    fn groups(&self) -> Vec<GroupSpec> {
        guest_groups(self.options.guests, self.options.guest_cpus)
    }

    fn named_cpus(&self) -> CpuMask {
        CpuMask::first(self.options.cpus as usize)
    }

    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("vhost-bench", "vhost main")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        if thread != ThreadId::MAIN && self.ends.is_some_and(|ends| view.now >= ends) {
            return Action::Exit;
        }
        match self.roles.get(thread.index()).copied() {
            Some(VhostRole::Main) => self.main(view.now),
            Some(VhostRole::Kworker(cpu)) => self.kworker(cpu, view.now),
            Some(VhostRole::GuestCpu) => self.guest_cpu(thread),
            Some(VhostRole::Vhost(index)) => self.vhost(index, view),
            None => Action::Exit,
        }
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        match self.roles.get(thread.index()) {
            Some(&VhostRole::Kworker(cpu)) => self.pools[cpu].queue.is_empty() && self.told as usize <= cpu,
            _ => true,
        }
    }

    /// A thread of user space that is pinned to its CPU and outside of the guests' groups waits for the same reasons.
    fn needs_kernel_threads(&self) -> bool {
        false
    }

    fn settle(&mut self, length: Ns) {
        self.settling.set(length);
    }

    fn settled(&self) -> Option<Ns> {
        self.settling.end()
    }

    fn output(&self, _: Ns) -> String {
        let long = self.waits.iter().filter(|&&wait| wait > 5_000_000).count();
        format!(
            "vhost: rounds {} works {} wait_ns p50 {} p90 {} p99 {} p999 {} max {}; over 5ms {long}\n",
            self.rounds(),
            self.waits.len(),
            self.wait(500),
            self.wait(900),
            self.wait(990),
            self.wait(999),
            self.waits.iter().max().unwrap_or(&0),
        )
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        Some(("rounds", self.rounds()))
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        let max = self.waits.iter().max().copied().unwrap_or(0);
        let named = |name: &str, value: u64| (format!("kworker_wait_ns_{name}"), value as f64);
        vec![named("p99", self.wait(990)), named("p99.9", self.wait(999)), named("max", max)]
    }

    fn runtime(&self) -> Option<Ns> {
        Some(Ns::from_ms(u64::from(self.options.run_ms)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Machine};

    fn run(kernel: &str, line: &str) -> (u64, u64, u64) {
        let args = line.split_whitespace().map(String::from).collect::<Vec<_>>();
        let machine = Machine::preset("vm4").expect("a machine").exact();
        let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
        let number = engine.start(Box::new(Vhost::parse(&args).expect("options")));
        engine.run_until(Ns::from_secs(3), &mut ());
        let metrics = engine.workload(number).metrics();
        let (_, rounds) = engine.workload(number).progress().expect("rounds");
        (rounds, metrics[2].1 as u64, engine.now().0)
    }

    #[test]
    fn work_is_done_round_after_round_and_all_ends() {
        for kernel in ["v5.4", "v6.5", "v6.6", "v6.12"] {
            let (rounds, max, end) = run(kernel, "--run-ms 500");
            assert!(rounds > 2000, "{kernel}: {rounds}");
            assert!(max > 0 && end < 1_500_000_000, "{kernel}: {max} {end}");
        }
    }

    #[test]
    fn cpus_without_kworkers_are_left_alone() {
        let (rounds, ..) = run("v6.6", "--cpus 2 --run-ms 100");
        assert!(rounds > 200, "{rounds}");
    }

    #[test]
    fn groups_are_nested_as_libvirt_nests_them() {
        let groups = Vhost::parse(&["--guest-cpus".to_string(), "2".to_string()]).expect("options").groups();
        let path = |index: usize| {
            let mut depth = 1;
            let mut group = &groups[index];
            while let Some(parent) = group.parent {
                (group, depth) = (&groups[parent], depth + 1);
            }
            depth
        };
        let emulators = groups.iter().enumerate().filter(|(_, group)| group.name.ends_with("emulator"));
        assert_eq!(emulators.map(|(index, _)| path(index)).collect::<Vec<_>>(), [4, 4]);
        assert_eq!(groups.len(), 1 + 2 * 5);
    }
}
