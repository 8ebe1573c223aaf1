//! Habits that no compiler lint knows: how files begin, what they are called, which lints stay on.
//!
//! Knows Rust sources as lines of text.

use std::path::Path;

use fairlab_house::{FileScope, assert_none, files, text};

/// Names that say nothing of what a room holds.
const EMPTY_NAMES: [&str; 8] =
    ["common", "helper", "helpers", "misc", "shared", "util", "utilities", "utils"];

/// Where unsafe code stands, and why it cannot be done without: small files that do nothing else.
const UNSAFE_FILES: [(&str, &str); 5] = [
    (
        "crates/live/src/forked.rs",
        "what runs after fork() has to be promised, and the compiler cannot see it kept",
    ),
    ("crates/live/src/system.rs", "sched_setattr() and getrusage() have no safe interface"),
    ("crates/guest/src/mapping.rs", "a device's memory can only be mapped"),
    ("crates/native/src/image.rs", "a kernel's code can only be mapped and called"),
    ("crates/native/src/child.rs", "fork() and handlers of signals have no safe interface"),
];

/// Lints that hold the house together: where one bites, the code changes, not the lint.
const KEPT_LINTS: [&str; 3] = ["unsafe_code", "clippy::too_many_lines", "warnings"];

/// Lints that keep results free of clock, environment and thread: kept under `src/`. A benchmark reads the clock.
const KEPT_LINTS_OF_RESULTS: [&str; 3] =
    ["clippy::disallowed_methods", "clippy::disallowed_types", "clippy::iter_over_hash_type"];

fn sources() -> Vec<String> {
    let sources: Vec<String> = files(FileScope::Present)
        .into_iter()
        .filter(|path| path.starts_with("crates/") && path.ends_with(".rs"))
        .collect();
    assert!(sources.len() > 10, "the sources were not found: {sources:?}");
    sources
}

#[test]
fn every_source_begins_by_saying_what_it_is() {
    let violations: Vec<String> = sources()
        .into_iter()
        .filter(|path| !text(path).starts_with("//! "))
        .map(|path| format!("{path}:1"))
        .collect();
    assert_none("every source begins with `//!`: what it is and what it must not know", &violations);
}

/// Sources of pages, and what builds and tests them.
fn web_sources() -> Vec<String> {
    let is_source =
        |path: &String| path.starts_with("web/") && (path.ends_with(".ts") || path.ends_with(".mjs"));
    let sources: Vec<String> = files(FileScope::Present).into_iter().filter(is_source).collect();
    assert!(sources.len() > 10, "the sources of pages were not found: {sources:?}");
    sources
}

#[test]
fn every_source_of_pages_begins_by_saying_what_it_is() {
    let silent = |path: &String| !text(path).starts_with("// ");
    let violations: Vec<String> = web_sources().into_iter().filter(silent).collect();
    assert_none("every source in web/ begins with `//`: what it is", &violations);
}

/// What makes elements, or code, of text.
const MAKES_MARKUP: [&str; 9] = [
    "innerHTML",
    "insertAdjacentHTML",
    "outerHTML =",
    "document.write",
    "createContextualFragment",
    "DOMParser",
    "setHTML",
    "eval(",
    "new Function",
];

#[test]
fn pages_make_no_markup_of_text() {
    let mut violations = Vec::new();
    for path in web_sources().into_iter().filter(|path| path.starts_with("web/src/")) {
        for (number, line) in (1..).zip(text(&path).lines()) {
            let found = MAKES_MARKUP.iter().filter(|word| line.contains(**word));
            violations.extend(found.map(|word| format!("{path}:{number}: {word}")));
        }
    }
    assert_none(
        "elements of pages are made by web/src/base/dom.ts, of names that the source has",
        &violations,
    );
}

#[test]
fn names_say_what_is_inside() {
    let mut violations = Vec::new();
    for path in files(FileScope::Present) {
        let stems = path.split('/').map(|part| part.split('.').next().unwrap_or(part));
        if stems.into_iter().any(|stem| EMPTY_NAMES.contains(&stem)) {
            violations.push(path.clone());
        }
    }
    for path in sources() {
        for (number, line) in (1..).zip(text(&path).lines()) {
            if let Some(name) = module_declared(line).filter(|name| EMPTY_NAMES.contains(name)) {
                violations.push(format!("{path}:{number}: mod {name}"));
            }
        }
    }
    assert_none("a file, folder or module is named for what it holds", &violations);
}

/// The module that a line of Rust declares: `pub(crate) mod fair {` declares `fair`.
fn module_declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let declaration = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1.trim_start(),
        Some(rest) => rest.trim_start(),
        None => line,
    };
    declaration.strip_prefix("mod ")?.split([';', ' ', '{']).next()
}

#[test]
fn modules_with_a_folder_have_their_file_beside_it() {
    let violations: Vec<String> = sources()
        .into_iter()
        .filter(|path| Path::new(path).file_name().is_some_and(|name| name == "mod.rs"))
        .collect();
    assert_none("a module is `foo.rs` with `foo/` beside it, never `foo/mod.rs`", &violations);
}

#[test]
fn lints_that_hold_the_house_stay_on() {
    let mut violations = Vec::new();
    for path in sources() {
        let in_src = path.contains("/src/");
        let kept = |lint: &str| KEPT_LINTS.contains(&lint) || in_src && KEPT_LINTS_OF_RESULTS.contains(&lint);
        let granted =
            |lint: &str| lint == "unsafe_code" && UNSAFE_FILES.iter().any(|(file, _)| *file == path);
        let silenced =
            lints_silenced(&text(&path)).into_iter().filter(|(_, lint)| kept(lint) && !granted(lint));
        violations.extend(silenced.map(|(number, lint)| format!("{path}:{number}: {lint}")));
    }
    assert_none("these lints are not silenced; the code changes instead", &violations);
}

/// The lints that attributes of a source silence, each with its line, counted from 1.
fn lints_silenced(text: &str) -> Vec<(usize, String)> {
    let mut silenced = Vec::new();
    for keyword in ["allow(", "expect("] {
        for (start, _) in text.match_indices(keyword).filter(|(start, _)| is_attribute(text, *start)) {
            // The list of lints may go on over lines: it is read to its end.
            let list = text[start + keyword.len()..].split(')').next().unwrap_or_default();
            let number = 1 + text[..start].matches('\n').count();
            silenced.extend(list.split(',').map(|lint| (number, lint.trim().to_owned())));
        }
    }
    silenced
}

/// Whether the keyword at `start` stands in an attribute: `#[`, `#![` or `#[cfg_attr(…, ` before it on its line.
fn is_attribute(text: &str, start: usize) -> bool {
    let line = text[..start].rsplit('\n').next().unwrap_or_default().trim_start();
    line.starts_with("#[") || line.starts_with("#![")
}

#[test]
fn declarations_of_modules_are_recognised() {
    assert_eq!(module_declared("mod utils;"), Some("utils"));
    assert_eq!(module_declared("    pub(crate) mod fair {"), Some("fair"));
    assert_eq!(module_declared("pub mod trace;"), Some("trace"));
    assert_eq!(module_declared("// mod utils;"), None);
    assert_eq!(module_declared("let modulus = 3;"), None);
}

#[test]
fn silenced_lints_are_found() {
    let text = "#![allow(a)]\n    #[cfg_attr(test, expect(\n  b, c))]\nvalue.expect(d)\n// allow(e)";
    let silenced = lints_silenced(text);
    let silenced: Vec<(usize, &str)> =
        silenced.iter().map(|(number, lint)| (*number, lint.as_str())).collect();
    assert_eq!(silenced, [(1, "a"), (2, "b"), (2, "c")]);
}
