//! uperf streaming between two guests of one host, through vhost-net and a switch.
//!
//! Facts from the report on EEVDF and vhost of November 2023. 50 connections run between two guests, each with 8 CPUs and a
//! network interface of 4 queues. The server sends chunks of 30720 bytes as fast as they are taken; the client reads them. A
//! chunk goes from a CPU of the server through the vhost thread of its queue to the peer's vhost thread, which interrupts a
//! CPU of the client. It does so through work for the kworker of its own CPU. That kworker lives in the root group, while the
//! guests live four groups below. The client acknowledges what it has read in the opposite direction. A vhost thread works in
//! the kernel, offers its CPU between two pieces of work, and polls until its interrupts have been delivered. Then it sleeps
//! if its rings are empty. A guest's CPU polls its ring until that is empty (NAPI). It is interrupted only if it sleeps and
//! no interrupt is under way, and a vhost thread is kicked only if it sleeps: virtio suppresses the rest.
//!
//! Departs: each thread of a guest is a process of its own. Connections are spread evenly over CPUs and queues. A message is a chunk or an acknowledgement; instead of TCP's
//! windows a fixed number of chunks is under way. Computing times are fits or assumed (see [`UperfOptions`]). Interrupts cost the
//! guest nothing, and its CPUs poll while awake, in the network's code or not.
//!
//! Must not know: how a scheduler decides.

mod options;

use std::collections::VecDeque;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::CpuMask;

use super::cgroup::GroupSpec;
use super::vhost::{groups_a_guest, guest_groups};
use crate::rng::RandomStream;
use crate::workload::warm_up::WarmUp;
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};
pub(super) use options::PROGRAM;
pub use options::UperfOptions;

/// A chunk, bytes (`str-readx30k`).
const CHUNK: u64 = 30_720;

/// How long a vhost thread looks for more before it offers its CPU.
const POLL: Ns = Ns(1_000);

/// A vhost thread goes on with one ring until it is empty or it has passed on so many bytes or packets.
///
/// Kernel: `VHOST_NET_WEIGHT`, `VHOST_NET_PKT_WEIGHT`, `handle_rx()`, `handle_tx_copy()`, drivers/vhost/net.c, v5.10.
const BATCH_BYTES: u64 = 0x80000;
const BATCH_PACKETS: u32 = 256;

/// It tells the guest of what it has filled (`vhost_net_signal_used()`) at the end of that, and before as soon as that is
/// more than so many buffers.
///
/// Kernel: `VHOST_NET_BATCH`, `handle_rx()`, drivers/vhost/net.c, v5.10.
const USED_BUFFERS: u64 = 64;

/// A guest's buffers are pages (mergeable buffers of virtio-net).
const BUFFER: u64 = 4096;

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UperfPacket {
    connection: u32,
    /// A chunk; otherwise an acknowledgement.
    data: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UperfRole {
    Main,
    Kworker(usize),
    /// A guest's CPU: guest, CPU.
    GuestCpu(usize, usize),
    /// A vhost thread: guest, queue.
    Vhost(usize, usize),
}

#[derive(Clone, Debug, Default)]
struct GuestCpu {
    thread: u32,
    /// What lies in its ring; while it sleeps it does not know.
    ring: VecDeque<UperfPacket>,
    /// It computes for this one.
    current: Option<UperfPacket>,
    sleeps: bool,
    /// An interrupt is on its way.
    interrupted: bool,
}

#[derive(Clone, Debug, Default)]
struct UperfVhost {
    thread: u32,
    from_guest: VecDeque<UperfPacket>,
    from_peer: VecDeque<UperfPacket>,
    /// It copies this one; from its guest, otherwise from its peer.
    current: Option<(UperfPacket, bool)>,
    /// The ring of the present batch is that of its guest.
    of_guest: bool,
    batch_bytes: u64,
    batch_packets: u32,
    /// CPUs of the guest that the batch has something for.
    readers: VecDeque<usize>,
    /// Buffers that were filled for them and that they have not been told of.
    used_buffers: u64,
    sleeps: bool,
    /// Interrupts that it has asked for and that are not delivered.
    outstanding: u32,
}

impl UperfVhost {
    /// Whether the present batch is done.
    fn batch_ends(&self) -> bool {
        let ring = if self.of_guest { &self.from_guest } else { &self.from_peer };
        ring.is_empty() || self.batch_bytes >= BATCH_BYTES || self.batch_packets >= BATCH_PACKETS
    }

    /// Whether the guest is told of what was filled.
    fn tells(&self) -> bool {
        self.batch_ends() || self.used_buffers > USED_BUFFERS
    }

    /// The next packet of the present batch, or of the other ring's.
    fn next_packet(&mut self) -> Option<(UperfPacket, bool)> {
        if self.batch_ends() {
            let other = if self.of_guest { &self.from_peer } else { &self.from_guest };
            self.of_guest ^= !other.is_empty();
            (self.batch_bytes, self.batch_packets) = (0, 0);
        }
        let ring = if self.of_guest { &mut self.from_guest } else { &mut self.from_peer };
        let packet = ring.pop_front()?;
        self.batch_bytes += if packet.data { CHUNK } else { 0 };
        self.batch_packets += 1;
        Some((packet, self.of_guest))
    }
}

#[derive(Clone, Debug, Default)]
struct UperfKworkerPool {
    /// Interrupts to be delivered: guest, CPU, queue of the vhost thread.
    queue: VecDeque<(usize, usize, usize)>,
    busy: bool,
    sleeps: bool,
}

/// The benchmark and its host, ready to run.
#[derive(Debug)]
pub struct Uperf {
    options: UperfOptions,
    roles: Vec<UperfRole>,
    pools: Vec<UperfKworkerPool>,
    /// By guest; the first is the server.
    cpus: [Vec<GuestCpu>; 2],
    vhosts: [Vec<UperfVhost>; 2],
    /// Chunks that the client has read.
    chunks: u64,
    settling: WarmUp,
    ends: Option<Ns>,
    closing: u32,
}

impl Uperf {
    /// The workload with these arguments (without its name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<Uperf, String> {
        Ok(Uperf::new(UperfOptions::parse(args)?))
    }

    /// The workload with these options.
    pub fn new(options: UperfOptions) -> Uperf {
        let cpus = || vec![GuestCpu::default(); options.guest_cpus as usize];
        let vhosts = || vec![UperfVhost::default(); options.queues as usize];
        let mut uperf = Uperf {
            roles: vec![UperfRole::Main],
            pools: vec![UperfKworkerPool::default(); options.cpus as usize],
            cpus: [cpus(), cpus()],
            vhosts: [vhosts(), vhosts()],
            chunks: 0,
            settling: WarmUp::default(),
            ends: None,
            closing: 0,
            options,
        };
        // The windows are open: as if that many chunks had been acknowledged.
        for connection in 0..options.connections {
            let cpu = (connection % options.guest_cpus) as usize;
            let opened = (0..options.window).map(|_| UperfPacket { connection, data: false });
            uperf.cpus[0][cpu].ring.extend(opened);
        }
        uperf
    }

    /// The next thread to be created: kworkers, then each guest's CPUs and vhost threads.
    fn create(&mut self) -> Option<Action> {
        let UperfOptions { cpus, guest_cpus, queues, .. } = self.options;
        let number = self.roles.len() as u32;
        let Some(of_guests) = (number - 1).checked_sub(cpus) else {
            let cpu = number - 1;
            self.roles.push(UperfRole::Kworker(cpu as usize));
            let spec = ThreadSpec::new(&format!("kworker/{cpu}:1"), format!("kworker {cpu}"));
            return Some(Action::Spawn(ThreadSpec {
                allowed: CpuMask::single(Cpu(cpu)),
                kthread: true,
                ..spec
            }));
        };
        let (guest, thread) =
            ((of_guests / (guest_cpus + queues)) as usize, of_guests % (guest_cpus + queues));
        if guest > 1 {
            return None;
        }
        let first_group = 1 + guest * groups_a_guest(guest_cpus);
        let (comm, group) = match thread.checked_sub(guest_cpus) {
            None => {
                self.roles.push(UperfRole::GuestCpu(guest, thread as usize));
                self.cpus[guest][thread as usize].thread = number;
                (format!("CPU {thread}/KVM"), first_group + 3 + thread as usize)
            }
            Some(queue) => {
                self.roles.push(UperfRole::Vhost(guest, queue as usize));
                self.vhosts[guest][queue as usize].thread = number;
                (format!("vhost-{}", guest + 1), first_group + 2)
            }
        };
        let spec = ThreadSpec::new(&comm, format!("guest {guest} thread {thread}"));
        // On a machine with more CPUs the others have no kworkers, and are left alone.
        let allowed = self.named_cpus();
        Some(Action::Spawn(ThreadSpec { group: Some(group), allowed, process: true, ..spec }))
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
        // Whoever sleeps is told to end.
        self.closing += 1;
        if self.closing < self.roles.len() as u32 {
            Action::Wake(ThreadId(self.closing))
        } else {
            Action::Exit
        }
    }

    /// So many µs, more or less.
    fn about(&self, us: u32, random: &mut RandomStream) -> Ns {
        let (ns, percent) = (u64::from(us) * 1000, u64::from(self.options.vary_percent));
        let spread = ns * percent / 100;
        Ns(ns - spread + if spread > 0 { random.below(2 * spread + 1) } else { 0 })
    }

    fn guest_cpu(&mut self, guest: usize, cpu: usize, view: &mut View<'_>) -> Action {
        let UperfOptions { queues, send_us, receive_us, .. } = self.options;
        let me = &mut self.cpus[guest][cpu];
        me.sleeps = false;
        if let Some(packet) = me.current.take() {
            // The server answers an acknowledgement with a chunk, the client a chunk with an acknowledgement.
            self.chunks += u64::from(packet.data && self.settling.is_over(view.now));
            let vhost = &mut self.vhosts[guest][(packet.connection % queues) as usize];
            vhost.from_guest.push_back(UperfPacket { data: !packet.data, ..packet });
            if std::mem::take(&mut vhost.sleeps) {
                return Action::Wake(ThreadId(vhost.thread));
            }
        }
        let me = &mut self.cpus[guest][cpu];
        match me.ring.pop_front() {
            Some(packet) => {
                me.current = Some(packet);
                Action::Run(self.about(if packet.data { receive_us } else { send_us }, view.random))
            }
            None => {
                me.sleeps = true;
                Action::Wait
            }
        }
    }

    fn vhost(&mut self, guest: usize, queue: usize, view: &mut View<'_>) -> Action {
        let UperfOptions { copy_us, ack_us, .. } = self.options;
        let me = &mut self.vhosts[guest][queue];
        me.sleeps = false;
        if let Some((packet, from_guest)) = me.current.take()
            && let Some(action) = self.pass_on(guest, queue, packet, from_guest)
        {
            return action;
        }
        if self.vhosts[guest][queue].tells() {
            while let Some(reader) = self.vhosts[guest][queue].readers.pop_front() {
                if let Some(action) = self.interrupt(guest, queue, reader, view.cpu) {
                    return action;
                }
            }
            self.vhosts[guest][queue].used_buffers = 0;
        }
        let me = &mut self.vhosts[guest][queue];
        if let Some((packet, from_guest)) = me.next_packet() {
            me.current = Some((packet, from_guest));
            return Action::SystemCall(self.about(if packet.data { copy_us } else { ack_us }, view.random));
        }
        if me.outstanding > 0 {
            return Action::SystemCall(POLL);
        }
        me.sleeps = true;
        Action::Wait
    }

    /// What was copied goes to the peer, or to the guest.
    fn pass_on(
        &mut self,
        guest: usize,
        queue: usize,
        packet: UperfPacket,
        from_guest: bool,
    ) -> Option<Action> {
        if from_guest {
            let peer = &mut self.vhosts[1 - guest][queue];
            peer.from_peer.push_back(packet);
            return std::mem::take(&mut peer.sleeps).then_some(Action::Wake(ThreadId(peer.thread)));
        }
        let cpu = (packet.connection % self.options.guest_cpus) as usize;
        self.cpus[guest][cpu].ring.push_back(packet);
        let me = &mut self.vhosts[guest][queue];
        me.used_buffers += if packet.data { CHUNK.div_ceil(BUFFER) } else { 1 };
        let readers = &mut me.readers;
        if !readers.contains(&cpu) {
            readers.push_back(cpu);
        }
        None
    }

    /// A guest's CPU that sleeps is told by way of the kworker of this CPU, unless that is under way already.
    fn interrupt(&mut self, guest: usize, queue: usize, reader: usize, here: Cpu) -> Option<Action> {
        let me = &mut self.cpus[guest][reader];
        if !me.sleeps || std::mem::replace(&mut me.interrupted, true) {
            return None;
        }
        self.vhosts[guest][queue].outstanding += 1;
        let pool = &mut self.pools[here.index()];
        pool.queue.push_back((guest, reader, queue));
        std::mem::take(&mut pool.sleeps).then_some(Action::Wake(ThreadId(1 + here.0)))
    }

    fn kworker(&mut self, cpu: usize, random: &mut RandomStream) -> Action {
        let pool = &mut self.pools[cpu];
        pool.sleeps = false;
        if std::mem::take(&mut pool.busy)
            && let Some((guest, reader, queue)) = pool.queue.pop_front()
        {
            self.vhosts[guest][queue].outstanding -= 1;
            let reader = &mut self.cpus[guest][reader];
            reader.interrupted = false;
            if std::mem::take(&mut reader.sleeps) {
                return Action::Wake(ThreadId(reader.thread));
            }
        }
        let pool = &mut self.pools[cpu];
        if pool.queue.is_empty() {
            pool.sleeps = true;
            return Action::Wait;
        }
        pool.busy = true;
        Action::SystemCall(self.about(self.options.work_us, random))
    }

    fn gigabits_per_s(&self, now: Ns) -> f64 {
        let end = self.ends.map_or(now, |ends| ends.min(now));
        let seconds = end.since(self.settling.end().unwrap_or(end)).as_secs_f64();
        if seconds > 0.0 { (self.chunks * CHUNK * 8) as f64 / seconds / 1e9 } else { 0.0 }
    }
}

impl Workload for Uperf {
    fn groups(&self) -> Vec<GroupSpec> {
        guest_groups(2, self.options.guest_cpus)
    }

    fn named_cpus(&self) -> CpuMask {
        CpuMask::first(self.options.cpus as usize)
    }

    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("uperf-host", "uperf main")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        if thread != ThreadId::MAIN && self.ends.is_some_and(|ends| view.now >= ends) {
            return Action::Exit;
        }
        match self.roles.get(thread.index()).copied() {
            Some(UperfRole::Main) => self.main(view.now),
            Some(UperfRole::Kworker(cpu)) => self.kworker(cpu, view.random),
            Some(UperfRole::GuestCpu(guest, cpu)) => self.guest_cpu(guest, cpu, view),
            Some(UperfRole::Vhost(guest, queue)) => self.vhost(guest, queue, view),
            None => Action::Exit,
        }
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        let nothing = match self.roles.get(thread.index()) {
            Some(&UperfRole::Kworker(cpu)) => self.pools[cpu].sleeps,
            Some(&UperfRole::GuestCpu(guest, cpu)) => self.cpus[guest][cpu].sleeps,
            Some(&UperfRole::Vhost(guest, queue)) => self.vhosts[guest][queue].sleeps,
            _ => true,
        };
        nothing && self.closing < thread.0.max(1)
    }

    fn settle(&mut self, length: Ns) {
        self.settling.set(length);
    }

    fn settled(&self) -> Option<Ns> {
        self.settling.end()
    }

    fn output(&self, now: Ns) -> String {
        format!("uperf: {} chunks, {:.2} Gb/s\n", self.chunks, self.gigabits_per_s(now))
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        Some(("chunks", self.chunks))
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        let end = self.ends.unwrap_or_default();
        vec![("gigabits_per_s".to_string(), self.gigabits_per_s(end))]
    }

    fn runtime(&self) -> Option<Ns> {
        Some(Ns::from_ms(u64::from(self.options.run_ms)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Machine};

    #[test]
    fn chunks_flow_and_all_ends() {
        for (kernel, cpus) in [("v6.5", "24"), ("v6.12", "24"), ("v6.5", "20")] {
            let args = ["--run-ms", "100", "--cpus", cpus].map(String::from);
            let machine = Machine::preset("s390-lpar24").expect("a machine").exact();
            let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
            let number = engine.start(Box::new(Uperf::parse(&args).expect("options")));
            engine.run_until(Ns::from_secs(3), &mut ());
            let (_, chunks) = engine.workload(number).progress().expect("chunks");
            assert!(chunks > 5_000, "{kernel}: {chunks}");
            assert!(engine.now() < Ns::from_secs(1), "{kernel}: it ends at {:?}", engine.now());
        }
    }
}
