//! What the command line of the vhost workload asks for.
//!
//! Must not know: what is done with it.

use crate::workload::arguments::program;

program! { PROGRAM: VhostOptions, None, "usage: vhost [OPTIONS]";
    "--cpus N" "CPUs of the host, one kworker each (4)" |all, value| value.set(&mut all.cpus, 1..=512);
    "--guests N" "guests (2)" |all, value| value.set(&mut all.guests, 1..=100);
    "--guest-cpus N" "CPUs a guest (3)" |all, value| value.set(&mut all.guest_cpus, 0..=256);
    "--vhosts N" "vhost threads a guest (1)" |all, value| value.set(&mut all.vhosts, 1..=64);
    "--run-us N" "how long a guest's CPU computes (2000)" |all, value| value.set(&mut all.run_us, 1..=1_000_000);
    "--sleep-us N" "and sleeps (150)" |all, value| value.set(&mut all.sleep_us, 1..=1_000_000);
    "--gap-us N" "how long a vhost thread computes after it queued work (30)" |all, value| value.set(&mut all.gap_us, 0..=1_000_000);
    "--work-us N" "how long a kworker works on a piece (3)" |all, value| value.set(&mut all.work_us, 0..=1_000_000);
    "--long-work-us N" "and on each piece of --long-every (90)" |all, value| value.set(&mut all.long_work_us, 0..=1_000_000);
    "--long-every N" "which pieces are long, 0 for none (20)" |all, value| value.set(&mut all.long_every, 0..=1_000_000);
    "--batch N" "rounds of a vhost thread between two pauses (200)" |all, value| value.set(&mut all.batch, 1..=1_000_000);
    "--pause-us N" "how long it pauses (500)" |all, value| value.set(&mut all.pause_us, 1..=1_000_000);
    "--run-ms N" "how long all of it lasts (4000)" |all, value| value.set(&mut all.run_ms, 1..=10_000_000);
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VhostOptions {
    /// CPUs of the host.
    pub cpus: u32,
    /// Guests.
    pub guests: u32,
    /// CPUs a guest.
    pub guest_cpus: u32,
    /// vhost threads a guest.
    pub vhosts: u32,
    /// How long a guest's CPU computes, µs.
    pub run_us: u32,
    /// How long it sleeps, µs.
    pub sleep_us: u32,
    /// How long a vhost thread computes after it queued work, µs.
    pub gap_us: u32,
    /// How long a kworker works on a piece, µs.
    pub work_us: u32,
    /// How long on a long one, µs.
    pub long_work_us: u32,
    /// Each so manieth piece is long; 0: none.
    pub long_every: u32,
    /// Rounds between two pauses.
    pub batch: u32,
    /// How long a vhost thread pauses, µs.
    pub pause_us: u32,
    /// How long all of it lasts, ms.
    pub run_ms: u32,
}

impl VhostOptions {
    pub(super) fn parse(args: &[String]) -> Result<VhostOptions, String> {
        let mut options = VhostOptions {
            cpus: 4,
            guests: 2,
            guest_cpus: 3,
            vhosts: 1,
            run_us: 2000,
            sleep_us: 150,
            gap_us: 30,
            work_us: 3,
            long_work_us: 90,
            long_every: 20,
            batch: 200,
            pause_us: 500,
            run_ms: 4000,
        };
        PROGRAM.read(args, &mut options)?;
        Ok(options)
    }
}
