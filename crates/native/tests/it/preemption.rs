//! Where kernel work is left for a task that is woken, by preemption model: a thread that works in the kernel for 6 ms a call, beside one
//! that sleeps, on one CPU. Debian's 6.1, as Debian has it and built to be preempted.

use std::sync::atomic::AtomicBool;

use fairlab_event::{Cpu, DigestSink, Event, EventKind, Ns, Pid, Sink, TaskState, sink_fn};
use fairlab_kernel::CpuMask;
use fairlab_native::build::{BuildOptions, PreemptionChoice, Source, build};
use fairlab_native::worker::{Outbox, in_worker};
use fairlab_native::{ImageFile, LoadedImage, NativeScheduler};
use fairlab_sim::workload::catalogue;
use fairlab_sim::workload::{Action, ThreadId, ThreadSpec, View, Workload};
use fairlab_sim::{Engine, Machine};

/// How long one system call works.
const CALL: Ns = Ns(6_000_000);

/// See the file.
struct InKernel {
    turns: [u32; 3],
}

impl Workload for InKernel {
    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("main", "main")
    }

    fn next(&mut self, thread: ThreadId, _: &mut View<'_>) -> Action {
        let turn = &mut self.turns[thread.index()];
        *turn += 1;
        match (thread, *turn) {
            (ThreadId::MAIN, 1) => Action::Spawn(bound("worker")),
            (ThreadId::MAIN, 2) => Action::Spawn(bound("sleeper")),
            (ThreadId::MAIN, _) => Action::Exit,
            (ThreadId(1), turn) if turn % 2 == 0 => Action::Run(Ns(1_000)),
            (ThreadId(1), _) => Action::SystemCall(CALL),
            (_, turn) if turn % 2 == 0 => Action::Run(Ns(100_000)),
            _ => Action::Sleep(Ns(7_100_000)),
        }
    }

    fn output(&self, _: Ns) -> String {
        String::new()
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        None
    }
}

fn bound(name: &str) -> ThreadSpec {
    ThreadSpec { allowed: CpuMask::single(Cpu(0)), ..ThreadSpec::new(name, name) }
}

/// What a run under a model has shown.
#[derive(Default)]
struct Seen {
    digest: String,
    /// Each wait of the sleeper from its wakeup to its switch.
    waits: Vec<Ns>,
    /// Time, CPU and who begins.
    switches: Vec<(Ns, Cpu, Pid)>,
    /// How often the worker left its CPU within a call.
    preempted: usize,
}

impl Seen {
    fn see(&mut self, woken: &mut Ns, event: &Event<'_>) {
        match event.kind {
            EventKind::SchedWakeup(wakeup) if wakeup.comm.to_string() == "sleeper" => *woken = event.time,
            EventKind::SchedSwitch(switch) => {
                self.switches.push((event.time, event.cpu, switch.next_pid));
                if switch.next_comm.to_string() == "sleeper" {
                    self.waits.push(event.time.since(*woken));
                }
                let leaves_call =
                    switch.prev_comm.to_string() == "worker" && switch.prev_state == TaskState::PREEMPTED;
                self.preempted += usize::from(leaves_call);
            }
            _ => {}
        }
    }

    fn median(&self) -> Ns {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        waits[waits.len() / 2]
    }
}

fn run(preemption: PreemptionChoice, workload: &(dyn Fn() -> Box<dyn Workload> + Sync)) -> Seen {
    let source = Source::parse("debian:6.1").expect("a source");
    let options = BuildOptions { preemption, ..BuildOptions::default() };
    let built = build(&source, &options, &|_, _| (), &AtomicBool::new(false)).expect("a kernel");
    let image = ImageFile::open(&built.image()).expect("an image");
    let machine = Machine { hz: 250, ..Machine::preset("vm4").expect("a preset") };
    let work = |image: LoadedImage, outbox: &mut Outbox| {
        let core = NativeScheduler::boot(image, &machine)?;
        let mut engine = Engine::with_core(core, machine.clone(), 1);
        let (mut digest, mut writer) =
            (DigestSink::default(), fairlab_native::wire::EventWriter::new(outbox));
        engine.set_tracing(true);
        engine.start(workload());
        engine.run_until(
            Ns::from_secs(3),
            &mut sink_fn(|event: &Event<'_>| {
                digest.event(event);
                writer.event(event);
            }),
        );
        Ok(digest.digest().to_string().into_bytes())
    };
    let (mut seen, mut woken) = (Seen::default(), Ns::ZERO);
    let mut receive = |message: &[u8]| {
        let mut sink = sink_fn(|event: &Event<'_>| seen.see(&mut woken, event));
        assert!(fairlab_native::wire::read_events(message, &mut sink));
    };
    let digest = in_worker(&image, &AtomicBool::new(false), work, &mut receive);
    let digest = digest.unwrap_or_else(|error| panic!("{error:?}")).expect("it was not stopped");
    seen.digest = String::from_utf8(digest).expect("text");
    seen
}

#[test]
fn kernel_work_is_left_where_the_model_lets_it() {
    let run = |preemption| run(preemption, &|| Box::new(InKernel { turns: [0; 3] }));
    // Debian's own choice, which is dynamic: as in a voluntary kernel, a call is left whole. Each further model takes a minute to build.
    let [own, full] = [PreemptionChoice::Default, PreemptionChoice::Full].map(run);
    assert_eq!(own.preempted, 0, "a call of a worker is whole");
    let longest = own.waits.iter().max().copied().unwrap_or_default();
    assert!(
        own.waits.len() > 100 && own.median() > Ns::from_ms(1) && longest < CALL + Ns::from_ms(1),
        "{:?}",
        own.waits
    );
    // The tick of 6.1 and the wakeup both ask at once.
    assert!(full.waits.len() > 100 && full.preempted > 100, "{} {}", full.waits.len(), full.preempted);
    assert!(full.median() < Ns::from_us(20), "{:?}", full.waits);
    assert_eq!(run(PreemptionChoice::Full).digest, full.digest);
}

/// Where nobody works in the kernel for long, no model has anything to cut.
#[test]
fn user_mode_is_left_alike() {
    let words = |line: &str| line.split(' ').map(str::to_string).collect::<Vec<_>>();
    let no_files = |path: &str| Err(format!("no file {path}"));
    let workload =
        || catalogue::build(&words("spinners -n 0,0,5,-5,0,0 -r 1"), &no_files).expect("a workload");
    let [own, full] =
        [PreemptionChoice::Default, PreemptionChoice::Full].map(|preemption| run(preemption, &workload));
    assert!(own.switches.len() > 200, "{}", own.switches.len());
    assert_eq!(own.switches, full.switches);
}
