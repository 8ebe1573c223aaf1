//! What an image has asked of its loader and has not been given yet: interrupts, timers, printed text, events.
//!
//! Callbacks fill it while an entry is under way. Each borrow ends with the callback: an entry never begins under one.
//!
//! Must not know: how a callback comes here.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, AtomicU64};

use fairlab_event::{Cpu, Ns};

use crate::abi::RawEvent;

/// Something asked of the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageRequest {
    /// An interrupt of a CPU that is no reschedule.
    Interrupt {
        /// The CPU.
        cpu: Cpu,
        /// Which, as `enum fl_ipi`.
        ipi: i32,
    },
    /// The clock event device of a CPU is set to a time; `None`: stopped.
    Timer {
        /// The CPU.
        cpu: Cpu,
        /// When it fires.
        expires: Option<Ns>,
    },
    /// The speed of a CPU has changed.
    Speed {
        /// The CPU.
        cpu: Cpu,
    },
}

/// See the module.
#[derive(Debug, Default)]
pub struct ImageHost {
    /// CPUs that are to be interrupted to reschedule, in order.
    pub marked: RefCell<Vec<Cpu>>,
    /// The rest, in order.
    pub asked: RefCell<Vec<ImageRequest>>,
    /// Events that did not fit into the image's own buffer.
    pub events: RefCell<Vec<RawEvent>>,
    /// The name and the text of those that are text; such an event holds its place here as its value.
    pub texts: RefCell<Vec<(String, String)>>,
    /// What the kernel has printed.
    pub printed: RefCell<Vec<u8>>,
    /// When the entry that is under way, or the last one, began, ns; and on which CPU. A signal's handler reads them.
    pub now: AtomicU64,
    /// See `now`.
    pub cpu: AtomicU32,
    /// How far the kernel's clock is ahead of the engine's, ns.
    pub uptime: Cell<u64>,
    /// How often a test has been answered.
    pub pings: Cell<u64>,
}

/// Kept of what a kernel prints: it may print for ever.
const MOST_PRINTED: usize = 1 << 20;

impl ImageHost {
    /// Keeps what the kernel prints.
    pub fn print(&self, text: &[u8]) {
        let mut printed = self.printed.borrow_mut();
        let room = MOST_PRINTED.saturating_sub(printed.len());
        printed.extend_from_slice(&text[..text.len().min(room)]);
    }

    /// What was printed since the last call.
    pub fn take_printed(&self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut *self.printed.borrow_mut())).into_owned()
    }
}
