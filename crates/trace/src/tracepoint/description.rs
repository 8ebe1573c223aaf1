//! Event formats and what belongs to them, as trace-cmd puts them before its records and perf behind its own.
//!
//! Facts: trace-cmd.dat.v6(5). Must not know: records, and where in a file these parts stand.

use std::fmt::Write as _;

use super::encoder::MARK_WRITE_ADDRESS;

/// The parts, in the order of both formats; each says its own length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TracingDescription {
    /// How ring-buffer pages are laid out.
    pub(crate) header: Vec<u8>,
    /// The formats of ftrace's own events.
    pub(crate) ftrace: Vec<u8>,
    /// The formats of all other events, by subsystem.
    pub(crate) events: Vec<u8>,
    /// Names of the addresses that records hold.
    pub(crate) symbols: Vec<u8>,
    /// Texts of `trace_printk`: none.
    pub(crate) printk: Vec<u8>,
    /// The text of `saved_cmdlines`.
    pub(crate) cmdlines: Vec<u8>,
}

impl TracingDescription {
    /// Puts together subsystem and text of each of `formats`, those of a subsystem side by side, and `cmdlines`.
    pub(crate) fn new(formats: &[(&str, String)], cmdlines: &[u8], page_bytes: usize) -> TracingDescription {
        let mut systems: Vec<(&str, Vec<&str>)> = Vec::new();
        for (system, format) in formats {
            match systems.last_mut() {
                Some((last, formats)) if last == system => formats.push(format),
                _ => systems.push((system, vec![format])),
            }
        }
        let (ftrace, others): (Vec<_>, Vec<_>) =
            systems.into_iter().partition(|(system, _)| *system == "ftrace");
        let ftrace: Vec<&str> = ftrace.into_iter().flat_map(|(_, formats)| formats).collect();
        let mut events = count(others.len()).to_vec();
        for (system, formats) in &others {
            events.extend([system.as_bytes(), b"\0", &group(formats)].concat());
        }
        let mut symbols = String::new();
        // Text takes everything.
        let _ = writeln!(symbols, "{MARK_WRITE_ADDRESS:016x} t tracing_mark_write");
        let header_page = [b"header_page\0", &sized(header_page(page_bytes).as_bytes())[..]].concat();
        let header_event = [b"header_event\0", &sized(HEADER_EVENT.as_bytes())[..]].concat();
        TracingDescription {
            header: [header_page, header_event].concat(),
            ftrace: group(&ftrace),
            events,
            symbols: [&count(symbols.len())[..], symbols.as_bytes()].concat(),
            printk: count(0).to_vec(),
            cmdlines: sized(cmdlines),
        }
    }
}

fn count(count: usize) -> [u8; 4] {
    (count as u32).to_le_bytes()
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u64).to_le_bytes()[..], bytes].concat()
}

fn group(formats: &[&str]) -> Vec<u8> {
    let mut group = count(formats.len()).to_vec();
    group.extend(formats.iter().flat_map(|format| sized(format.as_bytes())));
    group
}

/// `events/header_page` of a 64-bit kernel.
fn header_page(page_bytes: usize) -> String {
    format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
         \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
         \tfield: char data;\toffset:16;\tsize:{};\tsigned:1;\n",
        page_bytes - 16
    )
}

/// `events/header_event`, the same in all kernels.
const HEADER_EVENT: &str = "# compressed entry header\n\
    \ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
    \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\
    \tdata max type_len  == 28\n";
