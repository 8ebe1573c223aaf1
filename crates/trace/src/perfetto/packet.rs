//! The packets that a trace is a sequence of.
//!
//! Must not know: what events say.

use fairlab_event::Ns;

use super::proto::{Message, put_blob};

/// Makes `TracePacket`s.
pub(super) struct Packet;

/// `Trace::packet`.
const PACKET: u64 = 1;

/// Fields of `TracePacket`.
const FTRACE_EVENTS: u64 = 1;
const PROCESS_TREE: u64 = 2;
const CLOCK_SNAPSHOT: u64 = 6;
const TIMESTAMP: u64 = 8;
const SEQUENCE: u64 = 10;
const SEQUENCE_FLAGS: u64 = 13;
const SYSTEM_INFO: u64 = 45;
const CLOCK: u64 = 58;

/// Who wrote a packet: the kernel's recorder, or whoever writes tracks.
const KERNEL_SEQUENCE: u64 = 1;
const TRACK_SEQUENCE: u64 = 2;

/// `BUILTIN_CLOCK_BOOTTIME`, which viewers show times in, and its like.
const BOOTTIME: u64 = 6;
const MONOTONIC: u64 = 3;

/// The release from which on states have the encoding that is used here.
const RELEASE: &str = "4.14.0";

/// Adds a packet to a trace.
pub(super) fn put(trace: &mut Vec<u8>, packet: &Message) {
    put_blob(trace, PACKET, packet.bytes());
}

impl Packet {
    /// All clocks are one: the trace has no other.
    pub(super) fn clocks(time: Ns) -> Message {
        let clock = |id| Message::new().uint(1, id).uint(2, time.0);
        let snapshot =
            Message::new().message(1, &clock(BOOTTIME)).message(1, &clock(MONOTONIC)).uint(2, BOOTTIME);
        Message::new()
            .uint(TIMESTAMP, time.0)
            .uint(SEQUENCE, KERNEL_SEQUENCE)
            .message(CLOCK_SNAPSHOT, &snapshot)
    }

    /// What machine it was, as far as decoding depends on it.
    pub(super) fn system() -> Message {
        let version = "the release tells how prev_state is encoded, not what was traced";
        let utsname = Message::new().text(1, "Linux").text(2, version).text(3, RELEASE);
        let writer = concat!("fairlab ", env!("CARGO_PKG_VERSION"));
        let system = Message::new().message(1, &utsname).text(4, writer);
        Message::new().uint(SEQUENCE, KERNEL_SEQUENCE).message(SYSTEM_INFO, &system)
    }

    /// What is known of tasks.
    pub(super) fn tree(time: Ns, tree: &Message) -> Message {
        Message::new().uint(TIMESTAMP, time.0).uint(SEQUENCE, KERNEL_SEQUENCE).message(PROCESS_TREE, tree)
    }

    /// Events of a CPU; whether some before them were lost.
    pub(super) fn bundle(cpu: u64, lost: bool, events: &[u8]) -> Message {
        let mut bundle = Message::of(events.to_vec()).uint(1, cpu);
        if lost {
            bundle = bundle.uint(3, 1);
        }
        Message::new().uint(SEQUENCE, KERNEL_SEQUENCE).message(FTRACE_EVENTS, &bundle)
    }

    /// A packet about a track, at a time.
    pub(super) fn of_track(time: Ns) -> Message {
        Message::new().uint(TIMESTAMP, time.0).uint(CLOCK, BOOTTIME).uint(SEQUENCE, TRACK_SEQUENCE)
    }

    /// A packet about a track, at no time. The first one of a sequence says so.
    pub(super) fn first_of_tracks(first: bool) -> Message {
        const INCREMENTAL_STATE_CLEARED: u64 = 1;
        let packet = Message::new().uint(SEQUENCE, TRACK_SEQUENCE);
        if first { packet.uint(SEQUENCE_FLAGS, INCREMENTAL_STATE_CLEARED) } else { packet }
    }
}
