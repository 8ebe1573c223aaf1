//! Functions and data that the scheduler refers to and that no object defines.
//!
//! A few functions may return 0, each for a written reason. Any other one stops the run with its name. Data that is not
//! listed lies on unmapped pages.
//!
//! Must not know: how objects are compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use fairlab_files::LabError;

use super::manifest::Stub;

/// The table: rows of kind, symbol, releases, reason.
const TABLE: &str = include_str!("../../shim/stubs.txt");

/// Where data lies that is not listed: below what a process may map, so that whoever touches it is stopped.
const ABSENT: u64 = 0x1000;
/// Bytes between two of them.
const ABSENT_STEP: u64 = 0x100;

/// Bytes of listed data, zeroes; a copy is each CPU's.
const DATA_BYTES: u32 = 1024;

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StubRow<'t> {
    /// Whether it is data that reads as 0.
    is_data: bool,
    symbol: &'t str,
    /// From and to, both included.
    releases: Option<(ReleaseNumbers, ReleaseNumbers)>,
    reason: &'t str,
}

/// A release as two numbers.
pub(super) type ReleaseNumbers = (u32, u32);

fn release(text: &str) -> Option<ReleaseNumbers> {
    let (version, patch) = text.split_once('.')?;
    Some((version.parse().ok()?, patch.parse().ok()?))
}

/// A row: `call SYMBOL any|5.10..6.5 REASON`, or `data …`.
fn row(line: &str) -> Option<StubRow<'_>> {
    let mut words = line.splitn(4, ' ').map(str::trim);
    let (kind, symbol, releases, reason) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let releases = match releases {
        "any" => None,
        range => {
            let (from, to) = range.split_once("..")?;
            let newest = (u32::MAX, 0);
            Some((release(from)?, if to.is_empty() { newest } else { release(to)? }))
        }
    };
    let is_data = match kind {
        "call" => false,
        "data" => true,
        _ => return None,
    };
    (!reason.is_empty()).then_some(StubRow { is_data, symbol, releases, reason })
}

/// The rows that hold for a release.
fn rows(table: &str, of: ReleaseNumbers) -> Result<BTreeMap<&str, StubRow<'_>>, LabError> {
    let mut rows = BTreeMap::new();
    for (number, line) in (1..).zip(table.lines()) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || LabError::new(format!("stubs.txt:{number}: '{line}' is no row"), "mend the table");
        let row = row(line).ok_or_else(wrong)?;
        if row.releases.is_none_or(|(from, to)| from <= of && of <= to)
            && rows.insert(row.symbol, row).is_some()
        {
            return Err(LabError::new(format!("stubs.txt:{number}: a second row"), "mend the table"));
        }
    }
    Ok(rows)
}

/// What stands for what nobody defines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stubs {
    /// To be assembled.
    pub assembly: String,
    /// `NAME=ADDRESS` of absent data, for the linker.
    pub absent: Vec<String>,
    /// Those that return 0, or read as 0.
    pub silent: Vec<Stub>,
    /// Those that stop.
    pub stopping: Vec<String>,
}

/// Makes them. `undefined` has each symbol with whether it is called.
pub(super) fn make(undefined: &BTreeMap<String, bool>, of: ReleaseNumbers) -> Result<Stubs, LabError> {
    make_by(TABLE, undefined, of)
}

fn make_by(table: &str, undefined: &BTreeMap<String, bool>, of: ReleaseNumbers) -> Result<Stubs, LabError> {
    let rows = rows(table, of)?;
    let mut stubs = Stubs::default();
    let mut assembly = String::new();
    for (symbol, is_called) in undefined {
        let row = rows.get(symbol.as_str());
        if let Some(row) = row {
            stubs.silent.push(Stub { symbol: symbol.clone(), reason: row.reason.to_string() });
        } else {
            stubs.stopping.push(symbol.clone());
        }
        // Writing to a string does not fail.
        let _ = match (row, is_called) {
            (Some(row), _) if row.is_data => writeln!(
                assembly,
                ".section .data..percpu,\"aw\"\n.balign 64\n.globl {symbol}\n{symbol}: .zero {DATA_BYTES}"
            ),
            (Some(_), _) => writeln!(assembly, ".text\n.globl {symbol}\n{symbol}: xorl %eax, %eax\n ret"),
            (None, true) => writeln!(
                assembly,
                ".text\n.globl {symbol}\n{symbol}: push %rbp\n mov %rsp, %rbp\n lea 1f(%rip), %rdi\n call fl_missing\n\
                 .section .rodata\n1: .asciz \"{symbol}\""
            ),
            (None, false) => {
                let address = ABSENT + ABSENT_STEP * stubs.absent.len() as u64;
                stubs.absent.push(format!("{symbol}={address:#x}"));
                Ok(())
            }
        };
    }
    assembly += ".section .note.GNU-stack,\"\",@progbits\n";
    stubs.assembly = assembly;
    Ok(stubs)
}

/// Wrappers of functions that look for the next CPU: they count those that are found.
pub(super) fn lookers(functions: &BTreeSet<String>) -> String {
    functions.iter().fold(String::new(), |text, name| {
        text + &format!(
            ".text\n.globl fl_look_{name}\nfl_look_{name}: call {name}\n cmp nr_cpu_ids(%rip), %eax\n jae 1f\n \
             mov fl_clock+8(%rip), %rcx\n add %rcx, fl_clock(%rip)\n incq fl_clock+32(%rip)\n1: ret\n"
        )
    })
}

/// Whether a function is one of these.
pub(super) fn looks(name: &str) -> bool {
    let bits = name.trim_start_matches('_');
    bits.starts_with("find_next_") && bits.ends_with("bit") || bits.starts_with("cpumask_next")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undefined(of: &[(&str, bool)]) -> BTreeMap<String, bool> {
        of.iter().map(|(name, is_called)| ((*name).to_string(), *is_called)).collect()
    }

    #[test]
    fn every_row_of_the_table_has_a_reason() {
        for of in [(5, 10), (6, 1), (6, 12), (7, 2)] {
            let rows = rows(TABLE, of).expect("a table");
            assert!(!rows.is_empty());
            for row in rows.values() {
                assert!(row.reason.split(' ').count() >= 3, "{row:?}");
            }
        }
    }

    #[test]
    fn only_what_is_listed_is_silent() {
        let table = "# kind symbol releases reason\ncall quiet any it has nothing to do\ncall old 5.10..6.5 it moved later\ndata words any read as zero here\n";
        let asked = undefined(&[
            ("quiet", true),
            ("old", true),
            ("loud", true),
            ("words", false),
            ("variable", false),
        ]);
        let stubs = make_by(table, &asked, (6, 12)).expect("made");
        assert_eq!(
            stubs.silent.iter().map(|stub| stub.symbol.as_str()).collect::<Vec<_>>(),
            ["quiet", "words"]
        );
        assert_eq!(stubs.stopping, ["loud", "old", "variable"]);
        assert_eq!(stubs.absent, ["variable=0x1000"]);
        assert!(stubs.assembly.contains("loud: push") && stubs.assembly.contains("quiet: xorl"));
        let stubs = make_by(table, &asked, (6, 1)).expect("made");
        assert_eq!(stubs.stopping, ["loud", "variable"]);
    }

    #[test]
    fn rows_that_say_too_little_are_refused() {
        for wrong in [
            "call x any",
            "call x any ",
            "tell x any a reason",
            "call x 6.1 a reason",
            "call x ..6.1 a reason",
            "call x any one\ncall x any two",
        ] {
            assert!(make_by(wrong, &BTreeMap::new(), (6, 1)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn loops_over_cpus_are_known_by_their_functions() {
        for name in [
            "_find_next_bit",
            "find_next_and_bit",
            "cpumask_next_wrap",
            "_find_next_andnot_bit",
            "cpumask_next",
        ] {
            assert!(looks(name), "{name}");
        }
        for name in ["find_first_bit", "_find_first_and_bit", "cpumask_any_and_distribute", "find_next"] {
            assert!(!looks(name), "{name}");
        }
    }
}
