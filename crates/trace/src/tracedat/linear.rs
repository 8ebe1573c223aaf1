//! Version 6: one part after another, and behind them a table of where each CPU's pages lie.
//!
//! Facts: trace-cmd.dat.v6(5). Must not know: compression, of which there is none.

use fairlab_event::Cpu;

use super::contents::{Contents, CpuData, TraceInstance};
use super::cursor::{ByteCursor, ReadFault};
use super::options::{self, OptionSection, number};
use crate::ImportError;
use crate::clock::ClockFacts;
use crate::store::Store;

/// More CPUs than any machine has.
const CPUS_MAX: u32 = 1 << 16;
/// The text of `trace_clock` is a line.
const CLOCK_BYTES_MAX: usize = 1 << 12;

/// What stands in front of the table, in ten bytes.
const OPTIONS: &[u8] = b"options  \0";
const LATENCY: &[u8] = b"latency  \0";
const FLYRECORD: &[u8] = b"flyrecord\0";

/// Reads everything but the records; `cursor` stands behind the size of pages.
pub(super) fn read(
    store: &Store,
    cursor: &mut ByteCursor<'_>,
    contents: &mut Contents,
) -> Result<(), ImportError> {
    parts(store, cursor, contents).map_err(|fault| match fault {
        ReadFault::Io(error) => ImportError::Io(error),
        ReadFault::Cut => ImportError::NotATrace(format!(
            "this trace.dat is cut or damaged at byte {}, before the table of its records; \
             if trace-cmd was killed while it recorded, try: trace-cmd restore",
            cursor.position()
        )),
    })
}

fn parts(store: &Store, cursor: &mut ByteCursor<'_>, contents: &mut Contents) -> Result<(), ReadFault> {
    contents.read_header_info(cursor)?;
    contents.read_ftrace_formats(cursor)?;
    contents.read_event_formats(cursor)?;
    let symbols = cursor.u32()?;
    cursor.skip(symbols.into())?;
    contents.read_printk(cursor)?;
    contents.read_cmdlines(cursor)?;
    let mut cpus = cursor.u32()?;
    let mut found = OptionSection::default();
    let mut kind = cursor.take(FLYRECORD.len())?.to_vec();
    if kind == OPTIONS {
        // Here the last option is a number alone.
        loop {
            let number = cursor.u16()?;
            if number == number::DONE {
                break;
            }
            let option = options::read(number, cursor)?;
            options::take(option, false, contents, &mut found, cursor.endian());
        }
        kind = cursor.take(FLYRECORD.len())?.to_vec();
    }
    if kind == LATENCY {
        contents.text = true;
        return Ok(());
    }
    if kind != FLYRECORD {
        return Err(ReadFault::Cut);
    }
    cpus = found.cpus.unwrap_or(cpus);
    contents.system.cpus = Some(cpus).filter(|&cpus| cpus > 0);
    let mut top = TraceInstance { clock: contents.clock.name.clone(), ..TraceInstance::default() };
    top.cpus = table(cursor, cpus)?;
    if found.clock_behind {
        read_clock(cursor, contents, &mut top);
    }
    contents.instances.push(top);
    for (offset, mut instance) in found.buffers {
        instance.clock.clone_from(&contents.clock.name);
        let mut cursor = ByteCursor::new(store, cursor.endian(), offset, u64::MAX);
        match cursor.tag(FLYRECORD).and_then(|()| table(&mut cursor, cpus)) {
            Ok(table) => instance.cpus = table,
            Err(ReadFault::Cut) => contents.damaged = true,
            Err(fault) => return Err(fault),
        }
        contents.instances.push(instance);
    }
    Ok(())
}

/// The clock's name as it should be: what the option has of it is not always whole.
fn read_clock(cursor: &mut ByteCursor<'_>, contents: &mut Contents, top: &mut TraceInstance) {
    let text = cursor.u64().and_then(|size| cursor.block(size, CLOCK_BYTES_MAX));
    if let Ok(text) = text {
        let text = String::from_utf8_lossy(&text);
        if text.contains('[') {
            contents.clock.name = ClockFacts::selected(&text).to_string();
            top.clock.clone_from(&contents.clock.name);
        }
    }
}

/// Where the pages of each CPU lie.
fn table(cursor: &mut ByteCursor<'_>, cpus: u32) -> Result<Vec<CpuData>, ReadFault> {
    let mut table = Vec::new();
    if cpus > CPUS_MAX {
        return Err(ReadFault::Cut);
    }
    for cpu in (0..cpus).map(Cpu) {
        let (offset, size) = (cursor.u64()?, cursor.u64()?);
        if size > 0 {
            table.push(CpuData { cpu, offset, size });
        }
    }
    Ok(table)
}
