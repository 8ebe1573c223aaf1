//! A kernel's own scheduler as the engine drives it: the image's entries behind the calls of [`SchedulerCore`].
//!
//! An entry does a whole kernel function in one call: `try_to_wake_up()`, or `schedule()` with its search for work. Meanwhile
//! the image's clock moves by the kernel's counted work ([`time`]), and the call returns that time. So a call may end later
//! than the engine's time. Its events wait for their time ([`events`]). A task that leaves its CPU at such a later time still
//! counts as running there (`p->on_cpu`) for earlier wakeups.
//!
//! Departs: a call is whole. What other CPUs do while it lasts does not change it, and sees its end.
//!
//! Must not know: programs, threads, how virtual time is ordered.

mod boot;
mod calls;
mod domains;
mod events;
mod inspect;
mod tasks;
mod time;

use std::collections::{BTreeMap, BTreeSet};

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::core::KernelContext;
use fairlab_kernel::{CfsLimit, TaskId};
use fairlab_sim::machine::KernelCosts;

use crate::abi::GroupPtr;
use crate::host::ImageHost;
use crate::image::LoadedImage;
pub use domains::OwnDomain;
use events::HeldEvents;
use inspect::FieldNumbers;
use tasks::NativeTasks;

/// A kernel's own scheduler, booted on one machine.
pub struct NativeScheduler {
    image: LoadedImage,
    host: &'static ImageHost,
    name: String,
    nr_cpus: usize,
    costs: KernelCosts,
    /// Per CPU what it does, of 1024 of the fastest.
    top_speeds: Vec<u64>,
    here: Cpu,
    mode: KernelContext,
    now: Ns,
    /// The CPU whose data %gs points at.
    entered: Option<Cpu>,
    /// Per CPU: who runs there, as the last call in its task's context has left it.
    curr: Vec<TaskId>,
    /// Per CPU: until when it is at the work of its last calls.
    busy_until: Vec<Ns>,
    /// Per CPU: wakeups that others have left to it.
    left_to: Vec<u32>,
    /// Per CPU: its tick is stopped.
    tick_stopped: Vec<bool>,
    tasks: NativeTasks,
    /// By number.
    groups: Vec<GroupPtr>,
    /// What groups' files say where they have been written, by group.
    limits: BTreeMap<u32, CfsLimit>,
    idle_groups: BTreeSet<u32>,
    has_idle_groups: bool,
    has_bursts: bool,
    /// It is built to be preempted in kernel work, too.
    is_preemptible: bool,
    /// Its kernel work makes way where it might sleep.
    is_voluntary: bool,
    tracing: bool,
    /// Beside events it tells what its code did, and how long that took.
    tells_work: bool,
    kept: HeldEvents,
    fields: FieldNumbers,
}

/// What an image sends to a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageMessage {
    /// An interrupt of `enum fl_ipi` other than that which reschedules.
    Interrupt {
        /// Its number there.
        ipi: i32,
    },
}

impl NativeScheduler {
    /// The image that is driven: its features, tunables and state.
    pub fn image(&self) -> &LoadedImage {
        &self.image
    }

    /// What the kernel has printed since the last call.
    pub fn take_printed(&self) -> String {
        self.host.take_printed()
    }

    /// The kernel's name in messages and answers.
    #[must_use]
    pub fn named(self, name: &str) -> NativeScheduler {
        NativeScheduler { name: name.to_string(), ..self }
    }
}
