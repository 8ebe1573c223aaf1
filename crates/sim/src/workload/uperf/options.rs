//! What the command line of the uperf workload asks for.
//!
//! Must not know: what is done with it.

use crate::workload::arguments::program;

program! { PROGRAM: UperfOptions, None, "usage: uperf [OPTIONS]";
    "--cpus N" "CPUs of the host, one kworker each (24)" |all, value| value.set(&mut all.cpus, 1..=512);
    "--guest-cpus N" "CPUs of each of the two guests (8)" |all, value| value.set(&mut all.guest_cpus, 1..=256);
    "--queues N" "vhost threads of each guest (4)" |all, value| value.set(&mut all.queues, 1..=64);
    "--connections N" "connections from guest to guest (50)" |all, value| value.set(&mut all.connections, 1..=10_000);
    "--window N" "chunks under way on each (2)" |all, value| value.set(&mut all.window, 1..=1_000);
    "--send-us N" "what a guest computes to send a chunk (6)" |all, value| value.set(&mut all.send_us, 1..=1_000_000);
    "--receive-us N" "what a guest computes to read a chunk (24)" |all, value| value.set(&mut all.receive_us, 1..=1_000_000);
    "--copy-us N" "what a vhost thread does with a chunk (7)" |all, value| value.set(&mut all.copy_us, 0..=1_000_000);
    "--ack-us N" "what a vhost thread does with an acknowledgement (1)" |all, value| value.set(&mut all.ack_us, 0..=1_000_000);
    "--work-us N" "what a kworker does to deliver an interrupt (2)" |all, value| value.set(&mut all.work_us, 0..=1_000_000);
    "--vary N" "by how many percent more or less each of these times varies (25)" |all, value| value.set(&mut all.vary_percent, 0..=100);
    "--run-ms N" "how long all of it lasts (2000)" |all, value| value.set(&mut all.run_ms, 1..=10_000_000);
}

/// What the command line asks for.
///
/// The kworker's 2 µs make 5.4 µs with what the kernel does around them, its time a switch in the report's table of the
/// good kernel. What reading and copying a chunk take is a fit to two more figures of that kernel: 78 Gb/s, and vhost
/// threads that take 0.61 of the guests' time. The others are assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UperfOptions {
    /// CPUs of the host.
    pub cpus: u32,
    /// CPUs of each guest.
    pub guest_cpus: u32,
    /// vhost threads of each guest.
    pub queues: u32,
    /// Connections.
    pub connections: u32,
    /// Chunks under way on each.
    pub window: u32,
    /// What a guest computes to send a chunk, µs.
    pub send_us: u32,
    /// What it computes to read one, µs.
    pub receive_us: u32,
    /// What a vhost thread does with a chunk, µs.
    pub copy_us: u32,
    /// What it does with an acknowledgement, µs.
    pub ack_us: u32,
    /// What a kworker does to deliver an interrupt, µs.
    pub work_us: u32,
    /// By how many percent more or less each of these times varies.
    pub vary_percent: u32,
    /// How long all of it lasts, ms.
    pub run_ms: u32,
}

impl UperfOptions {
    pub(super) fn parse(args: &[String]) -> Result<UperfOptions, String> {
        let mut options = UperfOptions {
            cpus: 24,
            guest_cpus: 8,
            queues: 4,
            connections: 50,
            window: 2,
            send_us: 6,
            receive_us: 24,
            copy_us: 7,
            ack_us: 1,
            work_us: 2,
            vary_percent: 25,
            run_ms: 2000,
        };
        PROGRAM.read(args, &mut options)?;
        Ok(options)
    }
}
