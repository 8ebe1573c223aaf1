//! A timer of the machine that bounds how long one emulated CPU runs before the others have their turn.
//!
//! An emulator that runs CPUs in turn lets each go on until the next timer is due. With rare timers a CPU would stand still
//! for milliseconds. A comparator of the HPET that expires often and interrupts no CPU makes turns short. Source: IA-PC HPET
//! specification 1.0a, sections 2.3 and 3.
//!
//! Must not know: which emulator runs the machine.

use std::fs::OpenOptions;
use std::io;

use crate::mapping::Mapping;

/// Where machines of this architecture have it.
const HPET_AT: u64 = 0xfed0_0000;
const HPET_BYTES: usize = 4096;

/// Registers: the length of a tick in femtoseconds, the general configuration, the counter; and of the third comparator,
/// which Linux leaves alone, configuration and value.
const PERIOD: usize = 0x4;
const CONFIGURATION: usize = 0x10;
const COUNTER: usize = 0xf0;
const TIMER_CONFIGURATION: usize = 0x140;
const TIMER_COMPARATOR: usize = 0x148;

const ENABLED: u32 = 1;
const PERIODIC: u32 = 1 << 3;
const SET_ACCUMULATOR: u32 = 1 << 6;
const OF_32_BITS: u32 = 1 << 8;

/// Makes the timer expire every `period_ns`.
///
/// # Errors
/// The machine has no such timer, or the kernel keeps it to itself.
pub fn begin(period_ns: u64) -> io::Result<()> {
    let memory = OpenOptions::new().read(true).write(true).open("/dev/mem")?;
    let mut hpet = Mapping::new(&memory, HPET_AT, HPET_BYTES)?;
    let femtoseconds = u64::from(hpet.load(PERIOD));
    // The specification: at most 100 ns.
    if femtoseconds == 0 || femtoseconds > 100_000_000 {
        return Err(io::Error::other("this machine has no HPET"));
    }
    let ticks = u32::try_from(period_ns.saturating_mul(1_000_000) / femtoseconds).unwrap_or(u32::MAX).max(1);
    let configuration = hpet.load(CONFIGURATION);
    hpet.store(CONFIGURATION, configuration | ENABLED);
    hpet.store(TIMER_CONFIGURATION, OF_32_BITS | SET_ACCUMULATOR | PERIODIC);
    let first = hpet.load(COUNTER).wrapping_add(ticks);
    hpet.store(TIMER_COMPARATOR, first);
    hpet.store(TIMER_COMPARATOR, ticks);
    Ok(())
}
