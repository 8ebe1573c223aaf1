//! hackbench, also known as `perf bench sched messaging`: groups of senders and receivers that all talk to each other.
//!
//! Facts from perf's bench/sched-messaging.c. In each group 20 senders write messages to 20 receivers, round after round.
//! Each receiver has one socket pair (or pipe), which all senders of its group write to. All tasks report that they are
//! ready, and wait for one byte on a pipe that all poll; then the clock starts. A sender writes `loops` × 20 messages, a
//! receiver reads as many as come, and the main task waits for all.
//!
//! A stream socket takes messages until their buffers' true size reaches `sk_sndbuf`. Writers that this blocks are woken, all
//! at once, when a quarter is left (`unix_writable()`). A pipe has 16 pages; writers of a full pipe are woken one at a time,
//! as soon as there is room. A write wakes a waiting reader with the hint that the writer is about to sleep (`WF_SYNC`). A
//! message is there when it has been copied, and waiting tasks are woken before `write()` or `read()` returns
//! (`unix_stream_sendmsg()`, `sock_def_readable()`, `unix_write_space()`).
//!
//! Departs: what a task does between system calls takes no time. A system call that copies a message takes [`HackbenchOptions::io`],
//! or the machine's cost: that of [`MESSAGE_BYTES`], and of what is longer as fast as a core moves memory.
//! A real socket takes one message more than has room (278 of 100 bytes under 6.18, here 277). A real pipe has no small message across
//! two pages (640 of 100 bytes, here 655).
//!
//! Must not know: CPUs, schedulers.

use std::collections::VecDeque;

use fairlab_event::{Comm, Ns};
use fairlab_kernel::Policy;

use super::arguments::{Value, program};
use crate::workload::warm_up::{CountAfterWarmUp, WarmUp};
use crate::workload::{Action, MESSAGE_BYTES, ThreadId, ThreadSpec, View, Workload};

/// Bytes of a message that lie in one piece with `struct skb_shared_info` (`SKB_MAX_HEAD(0)`). What is longer has pages, too.
const SKB_HEAD: u32 = 3776;

/// A longer message goes into a socket in pieces: `UNIX_SKB_FRAGS_SZ` more than fits beside `struct skb_shared_info`, bytes.
const SKB_MAX: u32 = SKB_HEAD + 32_768;

/// `net.core.wmem_default`, bytes.
const SOCKET_BUFFER: u32 = 212_992;

/// A pipe's buffer: 16 pages, bytes.
pub const PIPE_BUFFER: u32 = 16 * 4096;

program! { PROGRAM: HackbenchOptions, Some, "usage: hackbench [OPTIONS] [GROUPS [process|thread [LOOPS]]]";
    "-g, --group, --groups N" "groups (10)" |all, value| value.set(&mut all.groups, 1..=100_000);
    "-f, --fds N" "senders and as many receivers a group (20)" |all, value| value.set(&mut all.fds, 1..=10_000);
    "-l, --loops, --nr_loops N" "messages from each sender to each receiver of its group (100)" |all, value| value.set(&mut all.loops, 1..=u32::MAX);
    "-s, --datasize N" "bytes of a message (100)" |all, value| value.set(&mut all.bytes, 1..=PIPE_BUFFER);
    "-p, --pipe" "pipes, not socket pairs" |all, value| value.switch(&mut all.pipe, true);
    "-T, -t, --thread, --threads" "threads, not processes" |all, value| value.switch(&mut all.threads, true);
    "-P, --process, --processes, --no-thread" "processes (as if nothing is said)" |all, value| value.switch(&mut all.threads, false);
    "-F, --fifo" "the main task becomes SCHED_FIFO once it has created the others" |all, value| value.switch(&mut all.fifo, true);
    "--io-ns N" "what the copying of a message costs beside the system call, ns (as on the machine)" |all, value| {
        value.time(all.io.insert(Ns::ZERO), 1..=1_000_000, Ns)
    };
    "--no-pipe" "" |all, value| value.switch(&mut all.pipe, false);
    "-i, --inet" "" |_, value| value.refuse("(TCP) is not modelled: messages go through socket pairs, or with -p through pipes");
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HackbenchOptions {
    /// Groups.
    pub groups: u32,
    /// Senders a group, and as many receivers.
    pub fds: u32,
    /// Messages from each sender to each receiver of its group.
    pub loops: u32,
    /// Bytes of a message.
    pub bytes: u32,
    /// Pipes, not socket pairs.
    pub pipe: bool,
    /// Threads, not processes.
    pub threads: bool,
    /// The main task becomes `SCHED_FIFO` once it has created the others.
    pub fifo: bool,
    /// What the copying of a message costs beside the system call; where nothing is said, what it costs on the machine.
    pub io: Option<Ns>,
}

impl HackbenchOptions {
    /// Reads the arguments (without the program's name): those of rt-tests' program, of perf's, and of Ingo Molnar's of 2008, which
    /// came before both: `-pipe 10 process 100`.
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<HackbenchOptions, String> {
        let mut options = HackbenchOptions::default();
        let pipe = |word: &String| if word == "-pipe" { "-p".to_string() } else { word.clone() };
        let operands = PROGRAM.read(&args.iter().map(pipe).collect::<Vec<_>>(), &mut options)?;
        for (place, text) in operands.iter().enumerate() {
            match (place, text.as_str()) {
                (0, text) => Value { option: "GROUPS", text }.set(&mut options.groups, 1..=100_000)?,
                (1, "process") => options.threads = false,
                (1, "thread") => options.threads = true,
                (1, _) => return Err(format!("'{text}' is neither process nor thread")),
                (2, text) => Value { option: "LOOPS", text }.set(&mut options.loops, 1..=u32::MAX)?,
                _ => return Err(format!("'{text}' is one word too many")),
            }
        }
        if !options.pipe && options.bytes > SKB_MAX {
            let bytes = options.bytes;
            return Err(format!(
                "-s {bytes} is not modelled: a socket takes more than {SKB_MAX} bytes in pieces"
            ));
        }
        if u64::from(options.groups) * u64::from(options.fds) * 2 > 1_000_000 {
            return Err("more than a million tasks".to_string());
        }
        Ok(options)
    }

    /// Senders and receivers in all.
    pub const fn tasks(&self) -> u32 {
        self.groups * self.fds * 2
    }

    fn send(&self, bytes: u32) -> Action {
        self.io.map_or(Action::Send(bytes), Action::SystemCall)
    }

    fn receive(&self) -> Action {
        self.io.map_or(Action::Receive(self.bytes), Action::SystemCall)
    }

    /// How many messages a socket or pipe holds.
    fn capacity(&self) -> u32 {
        if self.pipe { PIPE_BUFFER / self.bytes } else { SOCKET_BUFFER / truesize(self.bytes) }
    }

    /// What the program prints before it starts.
    pub fn heading(&self) -> String {
        format!(
            "Running in {} mode with {} groups using {} file descriptors each (== {} tasks)\n\
             Each sender will pass {} messages of {} bytes\n",
            if self.threads { "threaded" } else { "process" },
            self.groups,
            2 * self.fds,
            self.tasks(),
            self.loops,
            self.bytes,
        )
    }
}

impl Default for HackbenchOptions {
    fn default() -> HackbenchOptions {
        HackbenchOptions {
            groups: 10,
            fds: 20,
            loops: 100,
            bytes: MESSAGE_BYTES,
            pipe: false,
            threads: false,
            fifo: false,
            io: None,
        }
    }
}

/// What a message of so many bytes takes of a socket's buffer: `struct sk_buff`, the slab that holds its head and `struct
/// skb_shared_info`, and whole pages, bytes (`unix_stream_sendmsg()`). As `SIOCOUTQ` tells it under 6.18, up to [`SKB_MAX`].
fn truesize(bytes: u32) -> u32 {
    let pages = bytes.saturating_sub(SKB_HEAD).next_multiple_of(4096);
    let head = bytes.saturating_sub(pages).next_multiple_of(64);
    256 + (head + 320).next_power_of_two() + pages
}

/// The socket pair or pipe of one receiver.
#[derive(Clone, Debug, Default)]
struct Channel {
    /// Messages that take room: from the beginning of their `write()` to the end of their `read()`.
    filled: u32,
    /// Messages that a receiver finds: from the end of their `write()` to the beginning of their `read()`.
    readable: u32,
    /// Whether its receiver sleeps in `read()`.
    reader_waits: bool,
    /// Senders that sleep in `write()`.
    writers: VecDeque<ThreadId>,
}

/// What a sender or receiver is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HackbenchStage {
    /// Says that it is ready, and waits for the start.
    Ready,
    /// Has copied a message, or found that it must wait.
    Message,
    Done,
}

#[derive(Clone, Debug)]
struct HackbenchMember {
    group: u32,
    /// Its number among the senders, or the receivers, of its group.
    number: u32,
    sends: bool,
    stage: HackbenchStage,
    /// Messages sent or received so far.
    messages: u64,
    /// At how many it is done; a sender knows when it has settled, a receiver when all who write to it have.
    all: Option<u64>,
    /// Sleeps until it is woken: in `poll()`, `read()` or `write()`.
    waits: bool,
    /// The channel with which it copies a message, as long as that system call lasts.
    copies: Option<usize>,
}

/// hackbench, ready to run.
#[derive(Debug)]
pub struct Hackbench {
    options: HackbenchOptions,
    tasks: Vec<HackbenchMember>,
    channels: Vec<Channel>,
    /// How many messages fit, and at how many a blocked writer goes on.
    capacity: u32,
    writable: u32,
    ready: u32,
    ended: u32,
    settling: WarmUp,
    /// What is done now counts.
    counts: bool,
    /// By group: senders that have not settled.
    unsettled: Vec<u32>,
    received: CountAfterWarmUp,
    started: Option<Ns>,
    finished: Option<Ns>,
    main_waits: bool,
    /// It has asked for `SCHED_FIFO`.
    asked: bool,
    /// Per thread, the main task first: whom it has still to wake, the next one last.
    to_wake: Vec<Vec<ThreadId>>,
}

impl Hackbench {
    /// hackbench with these arguments (without the program's name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<Hackbench, String> {
        Ok(Hackbench::new(HackbenchOptions::parse(args)?))
    }

    /// hackbench with these options.
    pub fn new(options: HackbenchOptions) -> Hackbench {
        let capacity = options.capacity();
        Hackbench {
            tasks: Vec::new(),
            channels: vec![Channel::default(); (options.groups * options.fds) as usize],
            capacity,
            writable: if options.pipe { capacity - 1 } else { capacity / 4 },
            ready: 0,
            ended: 0,
            settling: WarmUp::default(),
            counts: false,
            unsettled: vec![options.fds; options.groups as usize],
            received: CountAfterWarmUp::default(),
            started: None,
            finished: None,
            main_waits: false,
            asked: false,
            to_wake: vec![Vec::new()],
            options,
        }
    }

    /// The main task: creates all, waits until all are ready, starts them, waits for their end.
    fn main(&mut self, now: Ns) -> Action {
        let created = self.tasks.len() as u32;
        if created < self.options.tasks() {
            return self.create(created);
        }
        if self.options.fifo && !std::mem::replace(&mut self.asked, true) {
            let policy = Some(Policy::Fifo(1));
            return Action::SetScheduler { policy, nice: None, request: None, allowed: None };
        }
        if let Some(next) = self.to_wake[0].pop() {
            return Action::Wake(next);
        }
        if self.started.is_none() && self.ready == created {
            self.started = Some(self.settling.begin(now));
            self.to_wake[0] = (1..=created).rev().map(ThreadId).collect();
            self.tasks.iter_mut().for_each(|task| task.waits = false);
            return self.options.send(1);
        }
        if self.ended == created {
            self.finished = Some(now);
            return Action::Exit;
        }
        self.main_waits = true;
        Action::Wait
    }

    /// In each group the receivers come first, then the senders.
    fn create(&mut self, index: u32) -> Action {
        let (group, in_group) = (index / (2 * self.options.fds), index % (2 * self.options.fds));
        let sends = in_group >= self.options.fds;
        let number = in_group % self.options.fds;
        self.tasks.push(HackbenchMember {
            group,
            number,
            sends,
            stage: HackbenchStage::Ready,
            messages: 0,
            all: None,
            waits: false,
            copies: None,
        });
        self.to_wake.push(Vec::new());
        let mut spec = ThreadSpec::new("hackbench", format!("hackbench {index}"));
        spec.comm = Comm::from("hackbench");
        spec.process = !self.options.threads;
        Action::Spawn(spec)
    }

    fn task(&mut self, id: ThreadId) -> Action {
        let index = id.index() - 1;
        if self.tasks[index].waits {
            return Action::Wait;
        }
        if let Some(next) = self.to_wake[id.index()].pop() {
            return Action::WakeSync(next);
        }
        let stage = self.tasks[index].stage;
        match stage {
            HackbenchStage::Ready => {
                self.tasks[index].stage = HackbenchStage::Message;
                self.tasks[index].waits = true;
                self.ready += 1;
                if self.ready == self.options.tasks() { self.wake_main() } else { self.options.send(1) }
            }
            HackbenchStage::Message if self.is_done(index) => {
                self.tasks[index].stage = HackbenchStage::Done;
                self.ended += 1;
                if self.ended == self.options.tasks() { self.wake_main() } else { Action::Exit }
            }
            HackbenchStage::Message if self.tasks[index].sends => self.send(id),
            HackbenchStage::Message => self.receive(id),
            HackbenchStage::Done => Action::Exit,
        }
    }

    fn wake_main(&mut self) -> Action {
        self.main_waits = false;
        Action::Wake(ThreadId::MAIN)
    }

    fn is_done(&mut self, index: usize) -> bool {
        let task = &mut self.tasks[index];
        if task.sends && task.all.is_none() && self.counts {
            task.all = Some(task.messages + u64::from(self.options.loops) * u64::from(self.options.fds));
            let group = task.group;
            self.unsettled[group as usize] -= 1;
            if self.unsettled[group as usize] == 0 {
                self.tell_receivers(group);
            }
        }
        let task = &self.tasks[index];
        task.all.is_some_and(|all| task.messages >= all)
    }

    /// All senders of a group know how many messages they will have sent: so do its receivers. A sender's messages go to
    /// them in turn.
    fn tell_receivers(&mut self, group: u32) {
        let fds = self.options.fds as usize;
        let first = group as usize * 2 * fds;
        let sent = self.tasks[first + fds..first + 2 * fds].iter().filter_map(|sender| sender.all);
        let sent = sent.collect::<Vec<_>>();
        for (number, receiver) in self.tasks[first..first + fds].iter_mut().enumerate() {
            let to_it = |all: &u64| (all + (fds - 1 - number) as u64) / fds as u64;
            receiver.all = Some(sent.iter().map(to_it).sum());
        }
    }

    /// Writes one message to the next receiver of its group.
    fn send(&mut self, id: ThreadId) -> Action {
        let task = &mut self.tasks[id.index() - 1];
        let receiver = (task.messages % u64::from(self.options.fds)) as u32;
        let channel = (task.group * self.options.fds + receiver) as usize;
        if self.channels[channel].filled >= self.capacity {
            task.waits = true;
            self.channels[channel].writers.push_back(id);
            return Action::Wait;
        }
        task.messages += 1;
        task.copies = Some(channel);
        self.channels[channel].filled += 1;
        self.options.send(self.options.bytes)
    }

    /// A message is in the channel: who waits for it is woken.
    fn sent(&mut self, channel: usize) -> Option<ThreadId> {
        let Channel { readable, reader_waits, .. } = &mut self.channels[channel];
        *readable += 1;
        let (group, number) = (channel as u32 / self.options.fds, channel as u32 % self.options.fds);
        let reader = ThreadId(1 + group * 2 * self.options.fds + number);
        std::mem::take(reader_waits).then(|| {
            self.tasks[reader.index() - 1].waits = false;
            reader
        })
    }

    /// Reads one message of its own.
    fn receive(&mut self, id: ThreadId) -> Action {
        let task = &mut self.tasks[id.index() - 1];
        let index = (task.group * self.options.fds + task.number) as usize;
        let channel = &mut self.channels[index];
        if channel.readable == 0 {
            task.waits = true;
            channel.reader_waits = true;
            return Action::Wait;
        }
        task.messages += 1;
        self.received.add(1, self.counts);
        task.copies = Some(index);
        channel.readable -= 1;
        self.options.receive()
    }

    /// A message has left the channel: writers that wait for room are woken.
    fn received(&mut self, id: ThreadId, channel: usize) -> Option<ThreadId> {
        let Channel { filled, writers, .. } = &mut self.channels[channel];
        *filled -= 1;
        if *filled <= self.writable {
            let woken = if self.options.pipe { writers.len().min(1) } else { writers.len() };
            for writer in writers.drain(..woken) {
                self.tasks[writer.index() - 1].waits = false;
                self.to_wake[id.index()].insert(0, writer);
            }
        }
        self.to_wake[id.index()].pop()
    }
}

impl Workload for Hackbench {
    fn sets_scheduling(&self) -> bool {
        self.options.fifo
    }

    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("hackbench", "hackbench main")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        self.counts = self.settling.is_over(view.now);
        if thread == ThreadId::MAIN { self.main(view.now) } else { self.task(thread) }
    }

    fn system_call_done(&mut self, thread: ThreadId) -> Option<ThreadId> {
        let task = self.tasks.get_mut(thread.index().checked_sub(1)?)?;
        let channel = task.copies.take()?;
        if task.sends { self.sent(channel) } else { self.received(thread, channel) }
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        match thread.index().checked_sub(1) {
            None => self.main_waits,
            Some(index) => self.tasks[index].waits,
        }
    }

    fn settle(&mut self, length: Ns) {
        self.settling.set(length);
    }

    fn settled(&self) -> Option<Ns> {
        self.settling.end()
    }

    fn output(&self, now: Ns) -> String {
        let mut text = self.options.heading();
        match (self.started, self.finished) {
            (Some(started), Some(finished)) => {
                text += &format!("Time: {:.3}\n", finished.since(started).as_secs_f64());
            }
            (Some(started), None) => {
                text += &format!("(stopped after {:.3} s)\n", now.since(started).as_secs_f64());
            }
            _ => text += "(stopped before the start)\n",
        }
        text
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        Some(("messages", self.received.count()))
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        let time = self.started.zip(self.finished).map(|(started, finished)| finished.since(started));
        time.map(|time| ("time_ns".to_string(), time.0 as f64)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Machine};

    fn run(args: &[&str], kernel: &str) -> (Engine, usize) {
        let machine = Machine::preset("laptop8").expect("a machine").exact();
        let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
        let args = args.iter().map(ToString::to_string).collect::<Vec<_>>();
        let number = engine.start(Box::new(Hackbench::parse(&args).expect("options")));
        engine.run_until(Ns::from_secs(60), &mut ());
        (engine, number)
    }

    #[test]
    fn every_message_arrives_and_the_program_ends() {
        for kernel in ["v5.4", "v5.10", "v6.6", "v6.12"] {
            for args in [&["-g", "2", "-f", "5", "-l", "50"][..], &["-g", "1", "-f", "3", "-l", "700", "-p"]]
            {
                let (engine, number) = run(args, kernel);
                let workload = engine.workload(number);
                let output = workload.output(engine.now());
                assert!(output.contains("Time: 0.0"), "{kernel} {args:?}: {output}");
                let expected = if args.contains(&"-p") { 3 * 3 * 700 } else { 2 * 5 * 5 * 50 };
                assert_eq!(workload.progress(), Some(("messages", expected)), "{kernel} {args:?}");
            }
        }
    }

    #[test]
    fn a_full_socket_blocks_its_writers_until_a_quarter_is_left() {
        let options = HackbenchOptions {
            groups: 1,
            fds: 1,
            loops: 1000,
            io: Some(Ns(1)),
            ..HackbenchOptions::default()
        };
        let mut bench = Hackbench::new(options);
        bench.create(0);
        bench.create(1);
        let (receiver, sender) = (ThreadId(1), ThreadId(2));
        for _ in 0..277 {
            assert!(matches!(bench.send(sender), Action::SystemCall(_)));
            assert_eq!(bench.system_call_done(sender), None, "nobody waits to read yet");
        }
        assert!(matches!(bench.send(sender), Action::Wait), "277 messages of 768 bytes fill 212,992 bytes");
        while bench.channels[0].filled > 70 {
            bench.receive(receiver);
            assert_eq!(bench.system_call_done(receiver), None);
        }
        bench.receive(receiver);
        assert!(bench.tasks[1].waits, "the message takes room until it is read");
        assert_eq!(bench.system_call_done(receiver), Some(sender));
        assert!(!bench.tasks[1].waits, "{} are left", bench.channels[0].filled);
    }

    /// As `SIOCOUTQ` tells it of one message in an empty socket, under 6.18.
    #[test]
    fn a_message_takes_what_its_buffer_takes() {
        for (bytes, taken) in [
            (1, 768),
            (100, 768),
            (192, 768),
            (193, 1280),
            (704, 1280),
            (705, 2304),
            (1729, 4352),
            (3776, 4352),
            (3777, 4864),
            (8000, 8960),
            (10_000, 12_544),
            (16_000, 16_640),
            (SKB_MAX, 37_120),
        ] {
            assert_eq!(truesize(bytes), taken, "{bytes}");
        }
    }

    #[test]
    fn longer_messages_take_longer_and_what_is_said_twice_takes_the_same() {
        let ends = |args: &[&str]| {
            let (engine, number) = run(&[&["-g", "1", "-f", "2", "-l", "100"], args].concat(), "v6.12");
            let metrics = engine.workload(number).metrics();
            metrics.iter().find(|(name, _)| name == "time_ns").map(|(_, time)| *time).expect("it ends")
        };
        let (short, long) = (ends(&[]), ends(&["-s", "36000"]));
        assert_eq!(short.to_bits(), ends(&["-s", "100", "-P"]).to_bits());
        // 400 messages, each copied in and out at 12 bytes a ns, on eight CPUs.
        assert!(long > short + 400.0 * 2.0 * 35_900.0 / 12.0 / 8.0, "{short} {long}");
    }

    #[test]
    fn the_main_task_becomes_real_time_once_all_are_created() {
        let mut bench =
            Hackbench::new(HackbenchOptions { groups: 1, fds: 1, fifo: true, ..HackbenchOptions::default() });
        assert!(matches!(bench.main(Ns::ZERO), Action::Spawn(_)));
        assert!(matches!(bench.main(Ns::ZERO), Action::Spawn(_)));
        let Action::SetScheduler { policy, .. } = bench.main(Ns::ZERO) else { panic!("it asks") };
        assert_eq!(policy, Some(Policy::Fifo(1)));
        assert!(matches!(bench.main(Ns::ZERO), Action::Wait), "it asks once");
    }

    #[test]
    fn a_message_is_there_when_it_has_been_written() {
        let options =
            HackbenchOptions { groups: 1, fds: 1, loops: 9, io: Some(Ns(1)), ..HackbenchOptions::default() };
        let mut bench = Hackbench::new(options);
        bench.create(0);
        bench.create(1);
        let (receiver, sender) = (ThreadId(1), ThreadId(2));
        bench.send(sender);
        assert!(matches!(bench.receive(receiver), Action::Wait), "it is being copied");
        assert_eq!(bench.system_call_done(sender), Some(receiver), "the same call wakes who waits for it");
        assert!(!bench.must_wait(receiver) && matches!(bench.receive(receiver), Action::SystemCall(_)));
    }
}
