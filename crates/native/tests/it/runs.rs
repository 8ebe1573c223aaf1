//! A kernel's own scheduler, built from Debian's sources (`linux-source-6.1`), mapped and driven.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use fairlab_event::{Comm, Cpu, DigestSink, Event, EventKind, Ns, Pid, TaskState, sink_fn};
use fairlab_files::LabError;
use fairlab_kernel::core::KernelContext;
use fairlab_kernel::{CfsLimit, CpuMask, GroupId, Policy, TaskId, TaskSpec};
use fairlab_native::build::{BuildOptions, Source, build};
use fairlab_native::wire::{EventWriter, read_events};
use fairlab_native::worker::{in_recording_worker, in_worker};
use fairlab_native::{ImageFile, LoadedImage, NativeScheduler};
use fairlab_sim::workload::catalogue;
use fairlab_sim::{Engine, Machine, SchedulerCore};

const SOURCE: &str = "debian:6.1";

/// The image, built once.
fn image() -> &'static ImageFile {
    static IMAGE: OnceLock<ImageFile> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let source = Source::parse(SOURCE).expect("a source");
        let built = build(&source, &BuildOptions::default(), &|_, _| (), &AtomicBool::new(false));
        ImageFile::open(&built.expect("a kernel").image()).expect("an image")
    })
}

/// A preset that ticks as the image does, without governors.
fn machine(name: &str) -> Machine {
    let machine = Machine::preset(name).expect("a preset");
    let hz = u64::from(BuildOptions::default().hz);
    Machine { hz, frequency_domains: Vec::new(), energy_model: Vec::new(), ..machine }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_string).collect()
}

/// Runs a workload until all its threads have ended or `until`; gives the engine for a look.
fn run<C: SchedulerCore>(engine: &mut Engine<C>, line: &str, until: Ns, see: &mut dyn FnMut(&Event<'_>)) {
    let no_files = |path: &str| Err(format!("no file {path}"));
    let workload = catalogue::build(&words(line), &no_files).expect("a workload");
    engine.set_tracing(true);
    engine.start(workload);
    engine.run_until(until, &mut sink_fn(|event: &Event<'_>| see(event)));
}

/// What one run on the real code gives, as text.
fn native(
    machine: &Machine,
    seed: u64,
    line: &str,
    until: Ns,
    see: &mut (dyn FnMut(&Event<'_>) + Send),
) -> Result<String, LabError> {
    let work = |image: LoadedImage, outbox: &mut fairlab_native::worker::Outbox| {
        let core = NativeScheduler::boot(image, machine)?;
        let mut engine = Engine::with_core(core, machine.clone(), seed);
        let mut digest = DigestSink::default();
        let mut writer = EventWriter::new(outbox);
        run(&mut engine, line, until, &mut |event| {
            fairlab_event::Sink::event(&mut digest, event);
            fairlab_event::Sink::event(&mut writer, event);
        });
        let counters = engine.counters();
        let text = format!("{} {} {}", digest.digest(), counters.switches, engine.now().0);
        Ok(text.into_bytes())
    };
    let mut sink = sink_fn(|event: &Event<'_>| see(event));
    let mut receive = |message: &[u8]| assert!(read_events(message, &mut sink));
    let result = in_worker(image(), &AtomicBool::new(false), work, &mut receive)?;
    Ok(String::from_utf8(result.expect("it was not stopped")).expect("text"))
}

#[test]
fn equal_inputs_give_equal_runs_and_another_seed_another() {
    let machine = machine("laptop8");
    let digest = |seed| native(&machine, seed, "hackbench -g 1 -l 20", Ns::from_secs(5), &mut |_| ());
    let runs = [1, 1, 2, 2].map(|seed| digest(seed).expect("a run"));
    assert!(runs[0] == runs[1] && runs[2] == runs[3], "{runs:?}");
    assert_ne!(runs[0], runs[2]);
}

/// The digest of a run, and with it `/proc/schedstat` at its end, if that is read again and again meanwhile.
fn reading(reads: bool) -> String {
    let machine = machine("vm4");
    let work = |image: LoadedImage, _: &mut fairlab_native::worker::Outbox| {
        let core = NativeScheduler::boot(image, &machine)?;
        let mut engine = Engine::with_core(core, machine.clone(), 1);
        let no_files = |path: &str| Err(format!("no file {path}"));
        let workload = catalogue::build(&words("hackbench -g 1 -l 200"), &no_files);
        engine.set_tracing(true);
        engine.start(workload.expect("a workload"));
        let (mut digest, mut stat) = (DigestSink::default(), String::new());
        for step in 1..=10 {
            engine.run_until(Ns::from_ms(step), &mut digest);
            if reads {
                stat = engine.schedstat().expect("it has schedstats");
            }
        }
        Ok(format!("{}\n{stat}", digest.digest()).into_bytes())
    };
    let result = in_worker(image(), &AtomicBool::new(false), work, &mut |_| ()).expect("a run");
    String::from_utf8(result.expect("it was not stopped")).expect("text")
}

#[test]
fn what_the_kernel_counts_is_read_without_a_change_of_the_run() {
    let (plain, read) = (reading(false), reading(true));
    let (digest, stat) = read.split_once('\n').expect("two parts");
    assert_eq!(digest, plain.trim_end());
    let cpus = stat.lines().filter(|line| line.starts_with("cpu")).collect::<Vec<_>>();
    assert!(stat.starts_with("version 15\n") && cpus.len() == 4, "{stat}");
    let wakeups = cpus.iter().filter_map(|line| line.split(' ').nth(5)?.parse::<u64>().ok()).sum::<u64>();
    assert!(wakeups > 100, "{stat}");
}

#[test]
fn workloads_run_to_their_end_on_machines_of_all_sizes() {
    for name in ["vm4", "vm40", "xeon-4s192"] {
        let machine = machine(name);
        for line in ["hackbench -g 2 -l 20", "schbench -m 2 -t 8 -r 1", "random -r 300 --nice --forks"] {
            let (mut last, mut events) = (Ns::ZERO, 0_u64);
            let mut see = |event: &Event<'_>| {
                assert!(event.time >= last, "{name} {line}: {} after {last}", event.time);
                (last, events) = (event.time, events + 1);
            };
            let until = Ns::from_secs(60);
            let told = native(&machine, 1, line, until, &mut see).unwrap_or_else(|error| panic!("{error:?}"));
            let end = told.rsplit(' ').next().and_then(|end| end.parse().ok()).expect("a time");
            assert!(events > 1000 && Ns(end) < until, "{name} {line}: {told}, {events} events");
        }
    }
}

#[test]
fn groups_quotas_policies_and_affinity_do_not_stop_a_run() {
    let line = "random -r 500 --groups 6 --quotas --nice --slices --policies --realtime --forks --cpus 4";
    let mut moved = false;
    let mut see = |event: &Event<'_>| moved |= matches!(event.kind, EventKind::SchedMigrateTask { .. });
    native(&machine("vm4"), 3, line, Ns::from_secs(20), &mut see).unwrap_or_else(|error| panic!("{error:?}"));
    assert!(moved, "nobody has moved");
}

/// Eight cores of alder-lake24 are preferred, CPUs 16 to 23 are not: eight hogs end up on the former.
#[test]
fn preferred_cpus_are_packed() {
    let (mut ran, half) = ([0_u64; 24], Ns::from_ms(500));
    let mut see = |event: &Event<'_>| {
        if let EventKind::SchedStatRuntime { runtime, .. } = event.kind
            && event.time > half
        {
            ran[event.cpu.index()] += runtime.0;
        }
    };
    let line = "spinners -n 0,0,0,0,0,0,0,0 -r 1";
    let told = native(&machine("alder-lake24"), 1, line, Ns::from_secs(1), &mut see);
    told.unwrap_or_else(|error| panic!("{error:?}"));
    let (packed, others) = (ran[..16].iter().sum::<u64>(), ran[16..].iter().sum::<u64>());
    assert!(packed > 3_500_000_000 && others < packed / 100, "{ran:?}");
}

/// A sysctl is written by its handler, which knows what it may be; what can do nothing is no tunable.
#[test]
fn tunables_are_written_as_by_their_files() {
    let work = |image: LoadedImage, _: &mut fairlab_native::worker::Outbox| {
        let core = NativeScheduler::boot(image, &machine("vm4"))?;
        let image = core.image();
        let set = |name, value| image.set_tunable(name, value);
        // More than a period has.
        let answers = [
            set("sched_rt_runtime_us", 2_000_000),
            set("sched_rt_runtime_us", 900_000),
            set("sched_rr_timeslice_ms", 50),
            set("scan_delay_ms", 5),
            set("min_granularity_ns", 1_000_000),
        ];
        let held = ["sched_rt_runtime_us", "sched_rr_timeslice_ms", "min_granularity_ns"];
        Ok(format!("{answers:?} {:?}", held.map(|name| image.tunable(name))).into_bytes())
    };
    let told = in_worker(image(), &AtomicBool::new(false), work, &mut |_| ()).expect("no fault");
    assert_eq!(
        String::from_utf8_lossy(&told.unwrap_or_default()),
        "[false, true, true, false, true] [Some(900000), Some(50), Some(1000000)]"
    );
}

/// Makes threads of processes and ends them, each on CPU 0, as the engine does.
struct Processes {
    core: NativeScheduler,
    now: Ns,
}

impl Processes {
    fn begin(&mut self) {
        self.now += Ns::from_ms(1);
        self.core.set_here(Cpu(0), KernelContext::Task, self.now);
    }

    fn thread(&mut self, pid: i32, tgid: i32) -> TaskId {
        let spec = TaskSpec {
            comm: Comm::from(format!("thread-{pid}").as_str()),
            pid: Pid(pid),
            tgid: Pid(tgid),
            policy: Policy::Normal,
            nice: 0,
            allowed: CpuMask::single(Cpu(0)),
            kthread: false,
            per_cpu_kthread: false,
        };
        self.begin();
        let task = self.core.new_task(&spec, Some(GroupId::ROOT), Cpu(0));
        self.core.wake_up_new_task(Cpu(0), task);
        task
    }

    /// The task ends as soon as it runs.
    fn end(&mut self, task: TaskId) {
        for _ in 0..100 {
            if self.core.curr(Cpu(0)) == task {
                break;
            }
            self.begin();
            if !self.core.runs_idle_task(Cpu(0)) {
                self.core.yield_task(Cpu(0));
            }
            self.core.schedule(Cpu(0), TaskState::RUNNABLE);
        }
        assert_eq!(self.core.curr(Cpu(0)), task, "it does not run");
        self.begin();
        self.core.exit(Cpu(0));
    }

    fn nr_threads(&self, task: TaskId) -> i64 {
        self.core.task_field(task, "nr_threads").expect("a field")
    }

    /// Which threads the kernel's own walk over all tasks comes by, in its order.
    fn listed(&mut self) -> Vec<String> {
        self.begin();
        self.core.take_printed();
        assert_eq!(self.core.image().snapshot(0), 0);
        let text = self.core.take_printed();
        let words = text.split_whitespace().filter_map(|word| word.strip_prefix("thread-"));
        words.map(str::to_string).collect()
    }
}

/// A leader that has ended counts and is listed until the last of its threads has ended. Its number is free for another process then.
#[test]
fn threads_of_a_process_are_counted_and_listed_once() {
    let work = |image: LoadedImage, _: &mut fairlab_native::worker::Outbox| {
        let core = NativeScheduler::boot(image, &machine("vm4"))?;
        let mut here = Processes { core, now: Ns::ZERO };
        let (leader, second) = (here.thread(100, 100), here.thread(101, 100));
        let (other, third) = (here.thread(200, 200), here.thread(102, 100));
        let mut told = format!("{} {:?}", here.nr_threads(third), here.listed());
        here.end(second);
        told += &format!("; {} {:?}", here.nr_threads(third), here.listed());
        here.end(leader);
        told += &format!("; {} {:?}", here.nr_threads(third), here.listed());
        here.end(third);
        told += &format!("; {} {:?}", here.nr_threads(other), here.listed());
        let again = here.thread(100, 100);
        told += &format!("; {} {:?}", here.nr_threads(again), here.listed());
        Ok(told.into_bytes())
    };
    let told = in_worker(image(), &AtomicBool::new(false), work, &mut |_| ()).expect("no fault");
    assert_eq!(
        String::from_utf8_lossy(&told.unwrap_or_default()),
        "3 [\"100\", \"101\", \"102\", \"200\"]; 2 [\"100\", \"102\", \"200\"]; \
         2 [\"100\", \"102\", \"200\"]; 1 [\"200\"]; 1 [\"200\", \"100\"]"
    );
}

/// `enum fl_test`, and what a report of it says.
const FAULTS: [(i32, &str); 7] = [
    (1, "WARN at "),
    (2, "BUG at "),
    (3, "access to no memory at address 0x0"),
    (4, "endless loop"),
    (5, "fl_test_stub"),
    (7, "panic"),
    (8, "more memory than a run may have"),
];

#[test]
fn faults_of_the_kernel_end_in_a_report() {
    for (what, words) in FAULTS {
        let work = |image: LoadedImage, _: &mut fairlab_native::worker::Outbox| {
            let core = NativeScheduler::boot(image, &machine("vm4"))?;
            Ok(core.image().test(what, 1 << 20).to_string().into_bytes())
        };
        let result = in_worker(image(), &AtomicBool::new(false), work, &mut |_| ());
        let error = result.expect_err(words);
        assert!(error.problem.contains(words), "{what}: {error:?}");
        let lines = error.lines.join("\n");
        assert!(lines.contains("s of virtual time on CPU 0"), "{lines}");
    }
}

#[test]
fn a_run_asks_the_host_for_nothing_unless_it_is_recorded() {
    type Asked = fn(&Path) -> std::io::Result<()>;
    let asks: [(&str, Asked); 4] = [
        ("write a file", |path| std::fs::write(path, "text")),
        ("read a file", |_| std::fs::read("/proc/version").map(drop)),
        ("start a process", |_| std::process::Command::new("true").status().map(drop)),
        ("listen", |_| std::net::TcpListener::bind("127.0.0.1:0").map(drop)),
    ];
    let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
    for (name, ask) in asks {
        let path = folder.path().join(name);
        let work = |_: LoadedImage, _: &mut fairlab_native::worker::Outbox| {
            ask(&path).map_err(|error| LabError::new(error.to_string(), "none"))?;
            Ok(Vec::new())
        };
        let stop = AtomicBool::new(false);
        let refused = in_worker(image(), &stop, work, &mut |_| ()).expect_err("it is no recorded run");
        assert!(refused.problem.contains("its code has asked the host for "), "{name}: {refused:?}");
        assert!(!path.exists(), "{name}");
        let allowed = in_recording_worker(image(), true, &stop, work, &mut |_| ());
        assert_eq!(allowed, Ok(Some(Vec::new())), "{name}");
        assert_eq!(path.exists(), name == "write a file");
    }
}

/// All that a workload asks of groups and tasks beyond what every kernel has: the tree is asked for each, and then uses it.
#[test]
fn what_a_tree_can_do_it_is_asked_and_does() {
    let work = |image: LoadedImage, _: &mut fairlab_native::worker::Outbox| {
        let mut core = NativeScheduler::boot(image, &machine("vm4"))?;
        let knows = (core.knows_idle_groups(), core.knows_bursts());
        core.set_here(Cpu(0), KernelContext::Task, Ns::from_ms(1));
        let group = core.new_group(GroupId::ROOT, 100);
        core.set_group_weight(group, 200);
        core.set_group_idle(group, true);
        core.set_group_idle(group, false);
        let limit = CfsLimit::new(Ns::from_ms(50), Ns::from_ms(100), Ns::from_ms(20)).expect("a limit");
        core.set_group_bandwidth(group, limit, Ns::ZERO);
        core.set_group_bandwidth(group, CfsLimit::UNLIMITED, Ns::ZERO);
        core.set_group_cpus(group, &CpuMask::single(Cpu(1)));
        Ok(format!("{knows:?}").into_bytes())
    };
    let told = in_worker(image(), &AtomicBool::new(false), work, &mut |_| ()).expect("no fault");
    assert_eq!(String::from_utf8_lossy(&told.unwrap_or_default()), "(true, true)");
}

#[test]
fn what_an_image_cannot_be_on_is_refused() {
    let refusal = |machine: Machine| {
        let work = |image: LoadedImage, _: &mut fairlab_native::worker::Outbox| {
            NativeScheduler::boot(image, &machine).map(|_| Vec::new())
        };
        in_worker(image(), &AtomicBool::new(false), work, &mut |_| ()).expect_err("a refusal").problem
    };
    assert!(refusal(Machine { hz: 100, ..machine("vm4") }).contains("ticks a second"));
    let slowed = Machine::preset("chromebook8").expect("a preset");
    assert!(refusal(Machine { hz: 250, ..slowed }).contains("governor"));
}

#[test]
fn a_run_that_is_to_stop_stops() {
    let stop = Arc::new(AtomicBool::new(false));
    let later = Arc::clone(&stop);
    let thread = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        later.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let work = |_: LoadedImage, _: &mut fairlab_native::worker::Outbox| loop {
        std::hint::spin_loop();
    };
    assert_eq!(in_worker(image(), &stop, work, &mut |_| ()).expect("no fault"), None);
    thread.join().expect("it ends");
}
