//! Cache-aware balancing of 7.2 on the kernel's own code: what the shim says of processes reaches it.
//!
//! `cargo test -p fairlab-native --test it cache_aware -- --ignored`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use fairlab_event::{Comm, Cpu, Event, EventKind, Ns, Pid, TaskState, sink_fn};
use fairlab_kernel::core::KernelContext;
use fairlab_kernel::{CpuMask, GroupId, Policy, TaskId, TaskSpec};
use fairlab_native::build::{BuildOptions, Source, build};
use fairlab_native::worker::{Outbox, in_worker};
use fairlab_native::{ImageFile, LoadedImage, NativeScheduler};
use fairlab_sim::workload::catalogue;
use fairlab_sim::{Engine, Machine, SchedulerCore};

fn image() -> &'static ImageFile {
    static IMAGE: OnceLock<ImageFile> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let source = Source::parse("debian:7.2").expect("a source");
        let built = build(&source, &BuildOptions::default(), &|_, _| (), &AtomicBool::new(false));
        ImageFile::open(&built.expect("a kernel").image()).expect("an image")
    })
}

/// Runs something on a preset with the kernel's own switch on or off.
fn on(machine: &str, enabled: bool, run: impl Fn(NativeScheduler, &Machine) -> String) -> String {
    let machine = Machine::preset(machine).expect("a preset");
    let work = |image: LoadedImage, _: &mut Outbox| {
        let core = NativeScheduler::boot(image, &machine)?;
        assert!(core.image().set_tunable("llc_balancing/enabled", enabled.into()));
        assert!(!core.image().set_tunable("llc_balancing/enabled", 2), "it is on or off");
        Ok(run(core, &machine).into_bytes())
    };
    let told = in_worker(image(), &AtomicBool::new(false), work, &mut |_| ()).expect("no fault");
    String::from_utf8(told.expect("it was not stopped")).expect("text")
}

/// In how many last-level caches three hogs of one process are after half a second.
fn caches(machine: &str, enabled: bool) -> usize {
    let run = |core, machine: &Machine| {
        let mut engine = Engine::with_core(core, machine.clone(), 1);
        let words = "spinners -n 0,0,0 -r 1".split(' ').map(str::to_string).collect::<Vec<_>>();
        let no_files = |path: &str| Err(format!("no file {path}"));
        engine.set_tracing(true);
        engine.start(catalogue::build(&words, &no_files).expect("a workload"));
        let mut places: BTreeMap<Pid, Option<Cpu>> = BTreeMap::new();
        let mut see = |event: &Event<'_>| match event.kind {
            EventKind::SchedStatRuntime { pid, comm, .. } if comm == Comm::from("spinner") => {
                places.insert(pid, machine.topology.llc_mask(event.cpu).lowest());
            }
            _ => {}
        };
        engine.run_until(Ns::from_ms(500), &mut sink_fn(&mut see));
        assert_eq!(places.len(), 3);
        places.into_values().collect::<BTreeSet<_>>().len().to_string()
    };
    on(machine, enabled, run).parse().expect("a number")
}

#[test]
#[ignore = "fetches and builds the sources of 7.2"]
fn threads_of_a_process_gather_in_one_cache() {
    for machine in ["zen3-2s", "xeon-2s80"] {
        assert_eq!(caches(machine, true), 1, "{machine}");
        assert!(caches(machine, false) > 1, "{machine}");
    }
}

/// A task that CPU 0 runs at once.
fn thread(core: &mut NativeScheduler, pid: i32, tgid: i32) -> TaskId {
    let spec = TaskSpec {
        comm: Comm::from("thread"),
        pid: Pid(pid),
        tgid: Pid(tgid),
        policy: Policy::Normal,
        nice: 0,
        allowed: CpuMask::single(Cpu(0)),
        kthread: pid != tgid && tgid == 300,
        per_cpu_kthread: pid != tgid && tgid == 300,
    };
    core.set_here(Cpu(0), KernelContext::Task, Ns::from_us(pid as u64));
    let task = core.new_task(&spec, Some(GroupId::ROOT), Cpu(0));
    core.wake_up_new_task(Cpu(0), task);
    task
}

/// The process holds one reference to what its threads share, and each of them one. Kernel threads have nothing to share.
#[test]
#[ignore = "fetches and builds the sources of 7.2"]
fn each_thread_refers_to_what_its_process_shares() {
    let told = on("zen3-2s", true, |mut core, _| {
        let tasks = [(100, 100), (101, 100), (102, 100), (200, 200), (300, 300), (301, 300)]
            .map(|(pid, tgid)| thread(&mut core, pid, tgid));
        let references = |core: &NativeScheduler, tasks: &[TaskId]| {
            tasks.iter().map(|task| core.task_field(*task, "cache_references")).collect::<Vec<_>>()
        };
        let before = references(&core, &tasks);
        core.set_here(Cpu(0), KernelContext::Task, Ns::from_ms(1));
        core.schedule(Cpu(0), TaskState::RUNNABLE);
        let ended = core.curr(Cpu(0));
        core.exit(Cpu(0));
        let rest: Vec<TaskId> = tasks.into_iter().filter(|task| *task != ended).collect();
        format!("{before:?} {:?} {:?}", ended == tasks[0], references(&core, &rest))
    });
    assert_eq!(
        told,
        "[Some(4), Some(4), Some(4), Some(2), Some(2), Some(-1)] true [Some(3), Some(3), Some(2), Some(2), Some(-1)]"
    );
}
