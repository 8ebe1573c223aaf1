//! docs/good-guesses.md: each row is held by a test that exists.
//!
//! Must not know: what the rows say.

use std::collections::BTreeSet;

use fairlab_house::{assert_none, root, text};

const COLUMNS: usize = 6;

/// What is wrong with a row's last cell: the path of a file, and the name of a test in it.
fn problem(row: &str) -> Option<String> {
    let cells = row.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>();
    let code = cells.last()?.split('`').filter(|part| !part.trim().is_empty()).collect::<Vec<_>>();
    let [path, name] = code[..] else { return Some(format!("no file and test: {row}")) };
    if cells.len() != COLUMNS || cells.iter().any(|cell| cell.is_empty()) {
        return Some(format!("{} cells: {row}", cells.len()));
    }
    if !root().join(path).is_file() {
        return Some(format!("no file {path}"));
    }
    let source = text(path);
    let lines = source.lines().map(str::trim).collect::<Vec<_>>();
    let is_it =
        |line: &&str| line.strip_prefix("fn ").is_some_and(|rest| rest.starts_with(&format!("{name}(")));
    let at = lines.iter().position(is_it);
    let is_test = at.is_some_and(|at| {
        lines[..at].iter().rev().take_while(|line| line.starts_with("#[")).any(|line| *line == "#[test]")
    });
    (!is_test).then(|| format!("{path} has no test {name}"))
}

#[test]
fn each_good_guess_is_held_by_a_test() {
    let page = text("docs/good-guesses.md");
    let rows = page.lines().filter(|line| line.starts_with("| ")).skip(1).collect::<Vec<_>>();
    assert_none(
        "each row of docs/good-guesses.md has six cells and a test",
        &rows.iter().filter_map(|row| problem(row)).collect::<Vec<_>>(),
    );
    let distinct = rows.iter().collect::<BTreeSet<_>>();
    assert!(rows.len() >= 25 && distinct.len() == rows.len(), "{} rows", rows.len());
    assert!(problem("| v1 | `f()` | a | b | c | `crates/house/src/lib.rs` `no_such_test` |").is_some());
}
