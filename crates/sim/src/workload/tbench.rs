//! tbench: each client asks its own server, and waits for its answer, again and again.
//!
//! Facts: the network half of dbench. Each client has one server process and one connection over loopback TCP. The client
//! sends a request and sleeps until the answer has come; the server sleeps until a request has come. At most one of the two
//! is runnable. A message over loopback reaches its receiver in the sender's own system call. That call ends by waking the
//! receiver, with the hint that the sender is about to sleep.
//!
//! netperf's request and response tests and ping-pongs over pipes differ from it only in their computing times.
//!
//! Departs: computing times are drawn evenly from half to one and a half of the mean. The mean bytes of an operation are
//! assumed, so only throughput relative to another kernel's counts.
//!
//! Must not know: CPUs, schedulers.

use fairlab_event::{Comm, Ns};

use super::arguments::program;
use crate::rng::RandomStream;
use crate::workload::warm_up::WarmUp;
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};

program! { PROGRAM: TbenchOptions, None, "usage: tbench [OPTIONS]";
    "-c, --clients N" "clients, each with a server (1)" |all, value| value.set(&mut all.clients, 1..=100_000);
    "--client-us N" "what a client computes between two requests, mean (3)" |all, value| value.set(&mut all.client_us, 0..=1_000_000);
    "--server-us N" "what a server computes for an answer, mean (3)" |all, value| value.set(&mut all.server_us, 0..=1_000_000);
    "--io-ns N" "what sending costs beside the system call, ns (1500)" |all, value| value.set(&mut all.io_ns, 0..=1_000_000);
    "--op-bytes N" "bytes that an operation counts, request and answer (8000)" |all, value| value.set(&mut all.op_bytes, 1..=1_000_000_000);
    "--load-us N" "what a client computes at first, as for reading its load file (0)" |all, value| value.set(&mut all.load_us, 0..=10_000_000);
    "--start-ms N" "time before the first client begins (0)" |all, value| value.set(&mut all.start_ms, 0..=10_000_000);
    "--connect-us N" "time between two clients' beginnings (0)" |all, value| value.set(&mut all.connect_us, 0..=10_000_000);
    "--rest-ms N" "time from the last operation to the end (0)" |all, value| value.set(&mut all.rest_ms, 0..=10_000_000);
    "--run-ms N" "how long all clients run (1000)" |all, value| value.set(&mut all.run_ms, 1..=10_000_000);
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TbenchOptions {
    /// Clients, each with a server.
    pub clients: u32,
    /// What a client computes between two requests, mean.
    pub client_us: u32,
    /// What a server computes for an answer, mean.
    pub server_us: u32,
    /// What sending costs beside the system call.
    pub io_ns: u32,
    /// Bytes that an operation counts.
    pub op_bytes: u32,
    /// What a client computes at first.
    pub load_us: u32,
    /// Time before the first client begins.
    pub start_ms: u32,
    /// Time between two clients' beginnings.
    pub connect_us: u32,
    /// Time from the last operation to the end.
    pub rest_ms: u32,
    /// How long all clients run.
    pub run_ms: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TbenchStage {
    /// A client: reads its load file.
    Load,
    /// Looks whether something has come.
    Receive,
    Compute,
    Send,
    Wake,
}

/// A client or a server.
#[derive(Clone, Debug)]
struct Peer {
    stage: TbenchStage,
    /// Something has come for it.
    filled: bool,
    waits: bool,
    ended: bool,
}

/// tbench, ready to run.
#[derive(Debug)]
pub struct Tbench {
    options: TbenchOptions,
    /// Servers at even places, each before its client.
    peers: Vec<Peer>,
    settling: WarmUp,
    ends: Option<Ns>,
    operations: u64,
    pausing: bool,
}

impl TbenchOptions {
    /// These arguments (without the program's name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<TbenchOptions, String> {
        let mut options = TbenchOptions {
            clients: 1,
            client_us: 3,
            server_us: 3,
            io_ns: 1500,
            op_bytes: 8000,
            load_us: 0,
            start_ms: 0,
            connect_us: 0,
            rest_ms: 0,
            run_ms: 1000,
        };
        PROGRAM.read(args, &mut options)?;
        Ok(options)
    }

    /// What so many operations in a time are, MB/s.
    pub fn megabytes_per_s(&self, operations: u64, seconds: f64) -> f64 {
        let bytes = (operations * u64::from(self.op_bytes)) as f64;
        if seconds > 0.0 { bytes / seconds / 1e6 } else { 0.0 }
    }

    /// What the program prints.
    pub fn output(&self, megabytes_per_s: f64) -> String {
        let clients = self.clients;
        format!("Throughput {megabytes_per_s:.3} MB/sec  {clients} clients  {clients} procs\n")
    }

    /// How long a client, or a server, computes this time: evenly from half to one and a half of the mean.
    pub fn computing_time(&self, is_client: bool, random: &mut RandomStream) -> Ns {
        let mean = u64::from(if is_client { self.client_us } else { self.server_us }) * 1000;
        Ns(mean / 2 + random.below(mean + 1))
    }
}

impl Tbench {
    /// tbench with these arguments (without the program's name).
    ///
    /// # Errors
    /// As [`TbenchOptions::parse`].
    pub fn parse(args: &[String]) -> Result<Tbench, String> {
        let options = TbenchOptions::parse(args)?;
        Ok(Tbench {
            options,
            peers: Vec::new(),
            settling: WarmUp::default(),
            ends: None,
            operations: 0,
            pausing: false,
        })
    }

    /// Creates all pairs, waits until they are done, rests.
    fn main(&mut self, now: Ns) -> Action {
        let number = self.peers.len();
        let all = 2 * self.options.clients as usize;
        let pause = match number {
            0 => Ns::from_ms(u64::from(self.options.start_ms)),
            _ => Ns::from_us(u64::from(self.options.connect_us)),
        };
        let pauses = number.is_multiple_of(2) && pause > Ns::ZERO;
        if number < all {
            if pauses && !std::mem::replace(&mut self.pausing, true) {
                return Action::Sleep(pause);
            }
            self.pausing = false;
            let is_server = number.is_multiple_of(2);
            let stage = if is_server { TbenchStage::Receive } else { TbenchStage::Load };
            self.peers.push(Peer { stage, filled: !is_server, waits: false, ended: false });
            let comm = if is_server { "tbench_srv" } else { "tbench" };
            let spec = ThreadSpec::new(comm, format!("{comm} {}", number / 2));
            return Action::Spawn(ThreadSpec { process: true, ..spec });
        }
        let counts_from = self.settling.begin(now);
        let ends = counts_from + Ns::from_ms(u64::from(self.options.run_ms));
        self.ends = Some(ends);
        let rests = ends + Ns::from_ms(u64::from(self.options.rest_ms));
        if now < rests { Action::Sleep(rests.since(now)) } else { Action::Exit }
    }

    fn peer(&mut self, me: usize, now: Ns, random: &mut RandomStream) -> Action {
        let (is_client, other) = (me % 2 == 1, me ^ 1);
        let over = self.ends.is_some_and(|ends| now >= ends);
        let peer = &mut self.peers[me];
        match peer.stage {
            TbenchStage::Load => {
                peer.stage = TbenchStage::Receive;
                Action::Run(Ns::from_us(u64::from(self.options.load_us)))
            }
            TbenchStage::Receive if !std::mem::take(&mut peer.filled) => {
                peer.waits = true;
                Action::Wait
            }
            TbenchStage::Receive => {
                peer.stage = TbenchStage::Compute;
                self.operations += u64::from(is_client && !over && self.settling.is_over(now));
                if self.peers[other].ended || (is_client && over) {
                    self.end(me, other)
                } else {
                    Action::Run(self.options.computing_time(is_client, random))
                }
            }
            TbenchStage::Compute => {
                peer.stage = TbenchStage::Send;
                Action::SystemCall(Ns(u64::from(self.options.io_ns)))
            }
            TbenchStage::Send => {
                self.peers[other].filled = true;
                let waits = std::mem::take(&mut self.peers[other].waits);
                self.peers[me].stage = if waits { TbenchStage::Wake } else { TbenchStage::Receive };
                Action::SystemCall(Ns::ZERO)
            }
            TbenchStage::Wake => {
                peer.stage = TbenchStage::Receive;
                if peer.ended { self.wake_for_good(me) } else { Action::WakeSync(ThreadId(1 + other as u32)) }
            }
        }
    }

    /// Ends, and wakes the other to do so, too.
    fn end(&mut self, me: usize, other: usize) -> Action {
        if std::mem::replace(&mut self.peers[me].ended, true) {
            return Action::Exit;
        }
        self.peers[other].filled = true;
        // What is asked for next is the end.
        self.peers[me].stage = TbenchStage::Receive;
        self.peers[me].filled = true;
        if std::mem::take(&mut self.peers[other].waits) { self.wake_for_good(me) } else { Action::Exit }
    }

    fn wake_for_good(&self, me: usize) -> Action {
        Action::Wake(ThreadId(1 + (me ^ 1) as u32))
    }

    /// From when it has settled until the end or `now`, s.
    fn seconds(&self, now: Ns) -> f64 {
        let end = self.ends.map_or(now, |ends| ends.min(now));
        self.settling.end().map_or(0.0, |settled| end.since(settled).as_secs_f64())
    }

    fn megabytes_per_s(&self, now: Ns) -> f64 {
        self.options.megabytes_per_s(self.operations, self.seconds(now))
    }
}

impl Workload for Tbench {
    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec { comm: Comm::from("tbench"), ..ThreadSpec::new("tbench", "tbench main") }
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        match thread.index().checked_sub(1) {
            None => self.main(view.now),
            Some(me) => self.peer(me, view.now, view.random),
        }
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        match thread.index().checked_sub(1) {
            None => true,
            Some(me) => self.peers[me].waits,
        }
    }

    fn settle(&mut self, length: Ns) {
        self.settling.set(length);
    }

    fn settled(&self) -> Option<Ns> {
        self.settling.end()
    }

    fn output(&self, now: Ns) -> String {
        self.options.output(self.megabytes_per_s(now))
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        Some(("operations", self.operations))
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        vec![("megabytes_per_s".to_string(), self.megabytes_per_s(self.ends.unwrap_or_default()))]
    }

    fn runtime(&self) -> Option<Ns> {
        let load_ms = u64::from(self.options.load_us) * u64::from(self.options.clients) / 1000;
        let rest_ms = u64::from(self.options.start_ms) + u64::from(self.options.rest_ms);
        Some(Ns::from_ms(u64::from(self.options.run_ms) + rest_ms + load_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Machine};

    fn run(kernel: &str, line: &str) -> (u64, Ns) {
        let args = line.split_whitespace().map(String::from).collect::<Vec<_>>();
        let machine = Machine::preset("laptop8").expect("a machine").exact();
        let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
        let number = engine.start(Box::new(Tbench::parse(&args).expect("options")));
        engine.run_until(Ns::from_secs(5), &mut ());
        (engine.workload(number).progress().expect("operations").1, engine.now())
    }

    #[test]
    fn more_clients_do_more_until_the_machine_is_full_and_all_ends() {
        for kernel in ["v4.18", "v5.10", "v6.12"] {
            let counts = [1, 4, 16].map(|clients| {
                let (count, end) = run(
                    kernel,
                    &format!(
                        "-c {clients} --start-ms 5 --run-ms 50 --load-us 500 --connect-us 20 --rest-ms 10"
                    ),
                );
                assert!(
                    (Ns::from_ms(65)..Ns::from_ms(100)).contains(&end),
                    "{kernel}, {clients} clients: ends at {end:?}"
                );
                count
            });
            assert!(counts[0] > 1000 && counts[1] > 2 * counts[0], "{kernel}: {counts:?}");
            assert!(counts[2] > counts[1], "{kernel}: {counts:?}");
        }
    }
}
