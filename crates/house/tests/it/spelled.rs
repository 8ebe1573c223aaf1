//! Names that many rooms use are spelled in one: tracepoints in `event/src/tracepoints`, probes in `event/src/probes`.
//!
//! Knows Rust sources as lines of text.

use std::path::Path;

use fairlab_house::{FileScope, assert_none, files, text};

/// Where tracepoints are named.
const TRACEPOINTS: [&str; 2] = ["crates/event/src/tracepoints.rs", "crates/event/src/tracepoints/untyped.rs"];

/// Where probes are named.
const PROBES: &str = "crates/event/src/probes/names.rs";

/// Files that may spell a name, and why. Of a file that is named here, other names are held to the rule.
const ALLOWED: [(&str, &str, &str); 8] = [
    ("crates/analysis/src/explain/text.rs", "tick", "what ended a wait, for people"),
    ("crates/analysis/src/explain/answer.rs", "tick", "what ended a wait, in an answer"),
    ("crates/event/src/probes.rs", "nice", "a parameter of the kernel's function"),
    ("crates/event/src/probes.rs", "shares", "a parameter of the kernel's function"),
    ("crates/report/src/booted_table.rs", "nice", "the name of a workload"),
    ("crates/report/src/booted_table.rs", "shares", "the name of a measure"),
    ("crates/sim/src/workload/spinners.rs", "nice", "an option of the program"),
    ("crates/sim/src/workload/mix/place.rs", "nice", "a word of a workload's file"),
];

/// A file without its tests.
struct Source {
    path: String,
    lines: Vec<String>,
}

/// All files under `src` that are built outside tests, without the modules of tests at their ends.
fn sources() -> Vec<Source> {
    let all: Vec<String> = files(FileScope::Present)
        .into_iter()
        .filter(|path| path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs"))
        .collect();
    let tests: Vec<String> = all.iter().flat_map(|path| modules_of_tests(path)).collect();
    let without_tests = |path: String| {
        let text = text(&path);
        let end = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        Source { lines: text[..end].lines().map(str::to_owned).collect(), path }
    };
    all.into_iter().filter(|path| !tests.contains(path)).map(without_tests).collect()
}

/// The files of a file's modules that only tests have.
fn modules_of_tests(path: &str) -> Vec<String> {
    let text = text(path);
    let folder = match Path::new(path).file_name().and_then(|name| name.to_str()) {
        Some("lib.rs" | "main.rs") => path.rsplit_once('/').map_or("", |(folder, _)| folder),
        _ => path.trim_end_matches(".rs"),
    };
    let lines = text.lines().zip(text.lines().skip(1));
    let modules = lines.filter(|(line, _)| *line == "#[cfg(test)]").filter_map(|(_, line)| {
        let words = line.strip_suffix(';')?.split_whitespace().collect::<Vec<_>>();
        let name = words.iter().position(|word| *word == "mod").and_then(|at| words.get(at + 1))?;
        Some(format!("{folder}/{name}.rs"))
    });
    modules.collect()
}

/// The texts in quotation marks on a line, whatever they mean.
fn literals(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut chars = line.chars();
    while chars.by_ref().any(|char| char == '"') {
        let mut literal = String::new();
        while let Some(char) = chars.next().filter(|char| *char != '"') {
            literal.push(char);
            if char == '\\' {
                literal.extend(chars.next());
            }
        }
        found.push(literal);
    }
    found
}

/// The last text in quotation marks on each row of a list, behind the name of a variant.
fn named_in(path: &str, from: &str, until: &str) -> Vec<String> {
    let text = text(path);
    let rows = text.split_once(from).map_or("", |(_, rows)| rows);
    let rows = rows.split_once(until).map_or(rows, |(rows, _)| rows);
    let is_row = |line: &&str| line.trim_start().starts_with(|char: char| char.is_ascii_uppercase());
    rows.lines().filter(is_row).filter_map(|line| literals(line).into_iter().next_back()).collect()
}

fn words(literal: &str) -> impl Iterator<Item = &str> {
    literal.split(|char: char| !char.is_ascii_alphanumeric() && char != '_')
}

/// Every place where a literal outside `homes` is what `is_spelled` knows.
fn spelled_outside(homes: &[&str], is_spelled: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut violations = Vec::new();
    for Source { path, lines } in sources().iter().filter(|source| !homes.contains(&source.path.as_str())) {
        for (number, line) in (1..).zip(lines).filter(|(_, line)| !line.trim_start().starts_with("//")) {
            for name in literals(line).iter().filter_map(|literal| is_spelled(literal)) {
                if !ALLOWED.iter().any(|(file, word, _)| file == path && *word == name) {
                    violations.push(format!("{path}:{number}: {name}"));
                }
            }
        }
    }
    violations
}

#[test]
fn tracepoints_are_named_in_one_room() {
    let mut names = named_in(TRACEPOINTS[0], "tracepoints! {", "\n}\n");
    names.extend(named_in(TRACEPOINTS[1], "untyped! {", "\n}\n"));
    assert!(names.iter().any(|name| name == "sched_stat_runtime") && names.len() > 30, "{names:?}");
    let spelled =
        |literal: &str| words(literal).find(|word| names.iter().any(|name| name == word)).map(str::to_owned);
    let violations = spelled_outside(&TRACEPOINTS, spelled);
    assert_none("a tracepoint's name comes from fairlab_event::Tracepoint or Untyped", &violations);
}

#[test]
fn probes_are_named_in_one_room() {
    let names = named_in(PROBES, "    ProbePoint {", "\n    }\n");
    assert!(names.iter().any(|name| name == "fbg_r") && names.len() > 40, "{names:?}");
    let spelled = |literal: &str| names.iter().find(|name| *name == literal).cloned();
    let violations = spelled_outside(&[PROBES], spelled);
    assert_none("a probe's name comes from fairlab_event::probes::ProbePoint", &violations);
}

#[test]
fn what_is_allowed_is_needed() {
    let sources = sources();
    let is_needed = |(file, word, _): &&(&str, &str, &str)| {
        let source = sources.iter().find(|source| source.path == *file);
        source.is_some_and(|source| {
            source.lines.iter().any(|line| literals(line).iter().any(|one| one == word))
        })
    };
    let violations: Vec<String> = ALLOWED
        .iter()
        .filter(|allowed| !is_needed(allowed))
        .map(|(file, word, _)| format!("{file}: {word}"))
        .collect();
    assert_none("nothing is allowed that no file does", &violations);
}

#[test]
fn literals_are_found_between_quotation_marks() {
    assert_eq!(literals(r#"a("sched_switch", b"x \" y") // "z"#), ["sched_switch", r#"x \" y"#, "z"]);
    assert_eq!(words("sched:sched_switch events").collect::<Vec<_>>(), ["sched", "sched_switch", "events"]);
}
