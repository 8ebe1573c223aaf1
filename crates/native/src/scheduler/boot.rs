//! From an image and a machine to a scheduler at rest; what an image cannot be on is refused.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_event::{Cpu, Ns};
use fairlab_files::LabError;
use fairlab_kernel::core::KernelContext;
use fairlab_kernel::topology::Platform;
use fairlab_kernel::{CpuMask, TaskId, Topology};
use fairlab_sim::Machine;

use super::NativeScheduler;
use super::events::HeldEvents;
use super::inspect::FieldNumbers;
use super::tasks::{FIRST_STOPPER_PID, INIT_PID, NativeTasks};
use super::time::WHOLE;
use crate::abi::GroupPtr;
use crate::host::ImageRequest;
use crate::image::{LoadedImage, TopologyWords};

/// `group_write()` knows no file of that name, in whatever group.
const NO_FILE: i32 = -2;

/// Whether the tree's cpu controller has a file. Nothing is written: the root group has none of them, and takes no empty value.
fn has_file(image: &LoadedImage, file: &str) -> bool {
    image.group_write(GroupPtr::ROOT, file, "") != NO_FILE
}

impl NativeScheduler {
    /// Boots the image on a machine. All is at rest then, its time at zero.
    ///
    /// # Errors
    /// The machine has what the image cannot do: another tick rate, more CPUs, clocks that are slowed down.
    pub fn boot(image: LoadedImage, machine: &Machine) -> Result<NativeScheduler, LabError> {
        if let Some((problem, hint)) = refusal(&image, machine) {
            return Err(LabError::new(problem, hint));
        }
        let topology = &machine.topology;
        let nr_cpus = topology.nr_cpus();
        let host = image.host();
        image.set_kernel_clock(BOOT);
        image.boot(words_of(topology));
        for share in 1..=AGEINGS {
            let gone_by = image.uptime() - BOOT.0;
            let at = BOOT.0 + gone_by * share / (AGEINGS + 1);
            // At an instant at which CPUs tick.
            let tick = 1_000_000_000 / image.hz().max(1);
            image.set_kernel_clock(Ns(at / tick * tick));
            age(&image, nr_cpus);
        }
        // What was asked of those that booted was for them.
        host.marked.borrow_mut().clear();
        let (has_idle_groups, has_bursts) = (has_file(&image, "idle"), has_file(&image, "max.burst"));
        Ok(NativeScheduler {
            name: format!("src:{}", image.kernel_release()),
            host,
            nr_cpus,
            costs: machine.costs,
            top_speeds: vec![WHOLE; nr_cpus],
            here: Cpu(0),
            mode: KernelContext::Task,
            now: Ns::ZERO,
            entered: None,
            curr: (0..nr_cpus as i32).map(|cpu| TaskId(image.curr(cpu) as u32)).collect(),
            busy_until: vec![Ns::ZERO; nr_cpus],
            left_to: vec![0; nr_cpus],
            tick_stopped: vec![false; nr_cpus],
            tasks: NativeTasks::at_boot(nr_cpus),
            groups: vec![GroupPtr::ROOT],
            limits: BTreeMap::new(),
            idle_groups: BTreeSet::new(),
            has_idle_groups,
            has_bursts,
            is_voluntary: image
                .configuration()
                .lines()
                .any(|line| matches!(line, "PREEMPT=voluntary" | "PREEMPT=dynamic")),
            is_preemptible: image.configuration().lines().any(|line| line == "PREEMPTION=y"),
            tracing: false,
            tells_work: false,
            kept: HeldEvents::default(),
            fields: FieldNumbers::of(&image),
            image,
        })
    }
}

/// When the kernel boots, on its own clock: at 0 it would take times for none.
const BOOT: Ns = Ns::from_secs(1);

/// So often CPUs tick between the boot and the beginning, so that averages forget what booting was.
const AGEINGS: u64 = 3;

/// What idle tasks call `schedule()` with.
const RUNNABLE: i32 = 0;

/// Every CPU, which idles, ticks once; its timers that are due expire, and what they ask for is done.
fn age(image: &LoadedImage, nr_cpus: usize) {
    let interrupt = |cpu: i32, act: &dyn Fn()| {
        image.enter(cpu);
        image.irq_enter();
        act();
        image.irq_exit();
    };
    for cpu in 0..nr_cpus as i32 {
        interrupt(cpu, &|| image.tick());
        interrupt(cpu, &|| image.clock_event());
    }
    let mut timers = Vec::new();
    let mut asked = std::mem::take(&mut *image.host().asked.borrow_mut());
    while !asked.is_empty() {
        for ask in asked.drain(..) {
            match ask {
                ImageRequest::Interrupt { cpu, ipi } => interrupt(cpu.0 as i32, &|| image.receive(ipi)),
                other => timers.push(other),
            }
        }
        asked = std::mem::take(&mut *image.host().asked.borrow_mut());
    }
    *image.host().asked.borrow_mut() = timers;
    // The fair class's server is started by those that boot, and stops when it is picked and nobody is there.
    for cpu in 0..nr_cpus as i32 {
        if image.need_resched(cpu) != 0 {
            image.enter(cpu);
            image.schedule(RUNNABLE);
        }
    }
}

/// Why the image cannot be on that machine, and what to do about it.
fn refusal(image: &LoadedImage, machine: &Machine) -> Option<(String, &'static str)> {
    let (release, nr_cpus) = (image.kernel_release(), machine.topology.nr_cpus());
    let name = &machine.name;
    if image.hz() != machine.hz {
        let problem = format!(
            "kernel {release} is built for {} ticks a second, machine {name} has {}",
            image.hz(),
            machine.hz
        );
        return Some((problem, "build it with that CONFIG_HZ, or give the machine hz"));
    }
    if nr_cpus as u64 > image.most_cpus() {
        let problem = format!(
            "kernel {release} is built for {} CPUs at most, machine {name} has {nr_cpus}",
            image.most_cpus()
        );
        return Some((problem, "build it with a greater CONFIG_NR_CPUS, or take a smaller machine"));
    }
    if !machine.frequency_domains.is_empty() || !machine.energy_model.is_empty() {
        let problem = format!("machine {name} has clocks that a governor sets, and an image has no governor");
        return Some((problem, "take a modelled kernel, or leave frequencies and energy out of the machine"));
    }
    if machine.topology.platform() == Platform::S390 {
        let problem = format!("machine {name} has books and drawers of s390, and an image is built for x86");
        return Some((problem, "take a modelled kernel, or another machine"));
    }
    None
}

/// One number for each CPU: that of the lowest CPU that its mask has.
fn lowest(topology: &Topology, mask: impl Fn(Cpu) -> CpuMask) -> Vec<u32> {
    topology.cpus().map(|cpu| mask(cpu).lowest().unwrap_or(cpu).0).collect()
}

/// Numbers from 0 on in the order in which they first come.
fn dense(numbers: Vec<u32>) -> Vec<u32> {
    let mut known = BTreeMap::new();
    let dense = numbers.into_iter().map(|number| {
        let next = known.len() as u32;
        *known.entry(number).or_insert(next)
    });
    dense.collect()
}

fn words_of(topology: &Topology) -> TopologyWords {
    let nodes = topology.nr_nodes() as u32;
    let has_preferred = topology.has_preferred_cpus();
    TopologyWords {
        nr_nodes: nodes,
        core: dense(lowest(topology, |cpu| *topology.smt_mask(cpu))),
        cluster: dense(lowest(topology, |cpu| *topology.cluster_mask(cpu))),
        llc: dense(lowest(topology, |cpu| *topology.llc_mask(cpu))),
        package: dense(lowest(topology, |cpu| *topology.package_mask(cpu))),
        node: topology.cpus().map(|cpu| topology.place(cpu).node).collect(),
        capacity: topology.cpus().map(|cpu| topology.capacity(cpu)).collect(),
        priority: topology
            .cpus()
            .map(|cpu| if has_preferred { topology.core_priority(cpu) } else { 0 })
            .collect(),
        distance: (0..nodes)
            .flat_map(|from| (0..nodes).map(move |to| (from, to)))
            .map(|(from, to)| topology.distance(from, to))
            .collect(),
        reclaim_distance: topology.reclaim_distance(),
        first_stopper_pid: FIRST_STOPPER_PID,
        init_pid: INIT_PID,
    }
}
