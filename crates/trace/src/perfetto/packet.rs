//! The packets that a trace is a sequence of.
//!
//! Must not know: what events say.

use fairlab_event::{Ns, System};

use super::proto::{ProtoMessage, ProtoPart};

/// Makes `TracePacket`s.
pub(super) struct TracePacket;

/// `Trace::packet`.
const PACKET: u64 = 1;

/// Fields of `TracePacket`.
const FTRACE_EVENTS: u64 = 1;
const PROCESS_TREE: u64 = 2;
const CLOCK_SNAPSHOT: u64 = 6;
const TIMESTAMP: u64 = 8;
const SEQUENCE: u64 = 10;
const TRACK_EVENT: u64 = 11;
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
const SINCE: (u32, u32) = (4, 14);

/// The release by which viewers decode states as they are encoded here; they read two numbers, each before a point. `None`
/// where they would decode them otherwise.
fn decodable(release: &str) -> Option<String> {
    let (major, rest) = release.split_once('.')?;
    let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    let (minor, rest) = rest.split_at(digits);
    if (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?) < SINCE {
        return None;
    }
    let missing = if rest.starts_with('.') { "" } else { ".0" };
    Some(format!("{major}.{minor}{missing}{rest}"))
}

/// What stands as version where the release is not the kernel's.
const WHY: &str = "the release tells how prev_state is encoded, not what was traced";

fn version_of(release: &str) -> String {
    if release.is_empty() { WHY.to_string() } else { format!("{WHY}, which was {release}") }
}

/// The kernel's release, where a version of ours says that the trace has another.
pub(super) fn release_of(version: &str) -> Option<&str> {
    let rest = version.strip_prefix(WHY)?;
    Some(rest.strip_prefix(", which was ").unwrap_or(rest))
}

/// Adds a packet to a trace.
pub(super) fn put(trace: &mut Vec<u8>, packet: &ProtoMessage) {
    ProtoPart::of(trace).blob(PACKET, packet.bytes());
}

/// Adds the events of a CPU; whether some before them were lost.
pub(super) fn put_bundle(trace: &mut Vec<u8>, cpu: u64, lost: bool, events: &[u8]) {
    /// What stands around events.
    const AROUND: usize = 16;
    ProtoPart::of(trace).large_part(PACKET, events.len() + AROUND, |packet| {
        packet.uint(SEQUENCE, KERNEL_SEQUENCE);
        packet.large_part(FTRACE_EVENTS, events.len(), |bundle| {
            bundle.fields(events);
            bundle.uint(1, cpu);
            if lost {
                bundle.uint(3, 1);
            }
        });
    });
}

/// Adds an event of a track, at a time.
pub(super) fn put_track_event(trace: &mut Vec<u8>, time: Ns, put: impl FnOnce(&mut ProtoPart<'_>)) {
    ProtoPart::of(trace).part(PACKET, |packet| {
        packet.uint(TIMESTAMP, time.0);
        packet.uint(CLOCK, BOOTTIME);
        packet.uint(SEQUENCE, TRACK_SEQUENCE);
        packet.part(TRACK_EVENT, put);
    });
}

impl TracePacket {
    /// All clocks are one: the trace has no other.
    pub(super) fn clocks(time: Ns) -> ProtoMessage {
        let clock = |id| ProtoMessage::new().uint(1, id).uint(2, time.0);
        let snapshot =
            ProtoMessage::new().message(1, &clock(BOOTTIME)).message(1, &clock(MONOTONIC)).uint(2, BOOTTIME);
        ProtoMessage::new()
            .uint(TIMESTAMP, time.0)
            .uint(SEQUENCE, KERNEL_SEQUENCE)
            .message(CLOCK_SNAPSHOT, &snapshot)
    }

    /// What kernel and machine it was.
    pub(super) fn system(system: &System) -> ProtoMessage {
        let (release, version) = match decodable(&system.release) {
            Some(release) => (release, String::new()),
            None => (RELEASE.to_string(), version_of(&system.release)),
        };
        let mut utsname = ProtoMessage::new().text(1, "Linux");
        for (field, text) in [(2, &version), (3, &release), (4, &system.architecture)] {
            if !text.is_empty() {
                utsname = utsname.text(field, text);
            }
        }
        let writer = concat!("fairlab ", env!("CARGO_PKG_VERSION"));
        let mut info = ProtoMessage::new().message(1, &utsname).text(4, writer);
        if let Some(cpus) = system.cpus {
            info = info.uint(8, cpus.into());
        }
        ProtoMessage::new().uint(SEQUENCE, KERNEL_SEQUENCE).message(SYSTEM_INFO, &info)
    }

    /// What is known of tasks.
    pub(super) fn tree(time: Ns, tree: &ProtoMessage) -> ProtoMessage {
        ProtoMessage::new()
            .uint(TIMESTAMP, time.0)
            .uint(SEQUENCE, KERNEL_SEQUENCE)
            .message(PROCESS_TREE, tree)
    }

    /// A packet about a track, at no time. The first one of a sequence says so.
    pub(super) fn first_of_tracks(first: bool) -> ProtoMessage {
        const INCREMENTAL_STATE_CLEARED: u64 = 1;
        let packet = ProtoMessage::new().uint(SEQUENCE, TRACK_SEQUENCE);
        if first { packet.uint(SEQUENCE_FLAGS, INCREMENTAL_STATE_CLEARED) } else { packet }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_are_told_a_release_by_which_they_decode_states_rightly() {
        let told = |release: &str| decodable(release);
        assert_eq!(told("6.18.44-x").as_deref(), Some("6.18.44-x"));
        assert_eq!(told("4.14.0").as_deref(), Some("4.14.0"));
        assert_eq!(told("6.6+NO_RUN_TO_PARITY").as_deref(), Some("6.6.0+NO_RUN_TO_PARITY"));
        assert_eq!(told("7.2").as_deref(), Some("7.2.0"));
        for other in ["", "4.13.9", "2.6.32", "bookworm", "6", "6.", "6.x.1", "-1.20.0"] {
            assert_eq!(told(other), None, "{other}");
            assert_eq!(release_of(&version_of(other)), Some(other));
        }
        assert_eq!(release_of("#1 SMP"), None);
    }
}
