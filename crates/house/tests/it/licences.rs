//! What others' code the program holds: its licences go with ours, and there is little of it.
//!
//! Knows cargo's account of the dependencies and nothing of their code.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_house::{assert_none, members, metadata, string};
use serde_json::Value;

/// Licences of dependencies, each with the reason why its code may stand in one program with ours.
///
/// Ours is GPL-2.0-or-later. "Or later" matters: the whole may be passed on under version 3, which takes in what
/// version 2 alone does not.
const ALLOWED: [(&str, &str); 16] = [
    ("0BSD", "permissive, asks for nothing"),
    ("Apache-2.0", "its patent clauses do not go with GPL 2, but do with GPL 3: through \"or later\""),
    ("Apache-2.0 WITH LLVM-exception", "as Apache-2.0; the exception lifts its conflict with GPL 2 too"),
    ("BSD-2-Clause", "permissive: keep the notice"),
    ("BSD-3-Clause", "permissive: keep the notice, do not use the authors' names"),
    ("BSL-1.0", "permissive: keep the notice in source form"),
    ("CC0-1.0", "given to the public domain"),
    ("GPL-2.0-or-later", "ours"),
    ("GPL-3.0-or-later", "through \"or later\""),
    ("ISC", "permissive: keep the notice"),
    ("LGPL-2.1-or-later", "may be taken under GPL 2 or later by its own terms"),
    ("MIT", "permissive: keep the notice"),
    ("MPL-2.0", "names the GPL, 2.0 or later, as a secondary licence unless the code says otherwise"),
    ("Unicode-3.0", "permissive: keep the notice; covers tables of characters"),
    ("Unlicense", "given to the public domain"),
    ("Zlib", "permissive: do not misstate the origin"),
];

/// How many crates of others the workspace may build, tests and benchmarks included.
///
/// Every crate is code that somebody must read, build and trust: raise this only for one that saves more than that.
const THIRD_PARTY_CRATES_MAX: usize = 121;

/// A licence expression of SPDX 2.3, annex D.
#[derive(Debug, PartialEq, Eq)]
enum Expression {
    /// One licence, with its exception if it has one.
    Licence(String),
    /// All of these bind at once.
    All(Vec<Self>),
    /// The taker chooses one of these.
    Any(Vec<Self>),
}

impl Expression {
    fn parse(text: &str) -> Result<Self, String> {
        // Old manifests write MIT/Apache-2.0; cargo reads the slash as OR.
        let spaced = text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut parser = Parser { words: &words };
        let expression = parser.any()?;
        match parser.words {
            [] => Ok(expression),
            rest => Err(format!("{} is left over", rest.join(" "))),
        }
    }

    fn allows(&self, is_allowed: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Self::Licence(name) => is_allowed(name),
            Self::All(parts) => parts.iter().all(|part| part.allows(is_allowed)),
            Self::Any(parts) => parts.iter().any(|part| part.allows(is_allowed)),
        }
    }
}

struct Parser<'a> {
    words: &'a [&'a str],
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.words.first() == Some(&word);
        if is_next {
            self.words = &self.words[1..];
        }
        is_next
    }

    fn any(&mut self) -> Result<Expression, String> {
        let mut parts = vec![self.all()?];
        while self.takes("OR") {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Any(parts) })
    }

    fn all(&mut self) -> Result<Expression, String> {
        let mut parts = vec![self.one()?];
        while self.takes("AND") {
            parts.push(self.one()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::All(parts) })
    }

    fn one(&mut self) -> Result<Expression, String> {
        if self.takes("(") {
            let inner = self.any()?;
            return if self.takes(")") { Ok(inner) } else { Err("a parenthesis stays open".to_owned()) };
        }
        let name = match self.next() {
            None | Some("OR" | "AND" | "WITH" | ")") => return Err("a licence is missing".to_owned()),
            Some(name) => name,
        };
        if !self.takes("WITH") {
            return Ok(Expression::Licence(name.to_owned()));
        }
        let exception = self.next().ok_or("an exception is missing after WITH")?;
        Ok(Expression::Licence(format!("{name} WITH {exception}")))
    }
}

fn is_allowed(licence: &str) -> bool {
    ALLOWED.iter().any(|(name, _)| *name == licence)
}

fn name_and_version(package: &Value) -> String {
    format!("{} {}", string(package, "name"), string(package, "version"))
}

#[test]
fn every_licence_goes_with_ours() {
    let metadata = metadata();
    let mut violations = Vec::new();
    for package in members(&metadata, "packages") {
        let licence = string(package, "license");
        match Expression::parse(licence) {
            Ok(expression) if expression.allows(&is_allowed) => {}
            Ok(_) => violations.push(format!("{}: {licence}", name_and_version(package))),
            Err(error) => violations.push(format!("{}: {licence:?}: {error}", name_and_version(package))),
        }
    }
    assert_none("a dependency's licence is one of ALLOWED in crates/house/tests/it/licences.rs", &violations);
}

#[test]
fn our_own_crates_say_our_licence() {
    let metadata = metadata();
    let violations: Vec<String> = members(&metadata, "packages")
        .filter(|package| package["source"].is_null() && string(package, "license") != "GPL-2.0-or-later")
        .map(name_and_version)
        .collect();
    assert_none("every crate of ours has `license.workspace = true`", &violations);
}

#[test]
fn dependencies_are_few() {
    let metadata = metadata();
    let dependants = dependants(&metadata);
    let list: BTreeSet<String> = members(&metadata, "packages")
        .filter(|package| !package["source"].is_null())
        .map(|package| {
            let needed_by = dependants.get(string(package, "id")).cloned().unwrap_or_default();
            format!("{}, for {}", name_and_version(package), Vec::from_iter(needed_by).join(", "))
        })
        .collect();
    assert!(
        list.len() <= THIRD_PARTY_CRATES_MAX,
        "{} crates of others are built, at most {THIRD_PARTY_CRATES_MAX} may be:\n  {}\n",
        list.len(),
        Vec::from_iter(list).join("\n  ")
    );
}

/// Package ids to the names of the packages that depend on them directly.
fn dependants(metadata: &Value) -> BTreeMap<&str, BTreeSet<&str>> {
    let names: BTreeMap<&str, &str> = members(metadata, "packages")
        .map(|package| (string(package, "id"), string(package, "name")))
        .collect();
    let mut dependants: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for node in members(&metadata["resolve"], "nodes") {
        let name = names.get(string(node, "id")).copied().unwrap_or_default();
        for dependency in members(node, "dependencies").filter_map(Value::as_str) {
            dependants.entry(dependency).or_default().insert(name);
        }
    }
    dependants
}

#[test]
fn expressions_allow_what_their_operators_mean() {
    let allows = |text: &str| Expression::parse(text).map(|expression| expression.allows(&is_allowed));
    for text in [
        "MIT",
        "MIT/Apache-2.0",
        "Proprietary OR MIT",
        "(MIT OR Proprietary) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR Proprietary",
        "Proprietary AND Proprietary OR MIT",
    ] {
        assert_eq!(allows(text), Ok(true), "{text}");
    }
    for text in [
        "Proprietary",
        "GPL-2.0-only",
        "MIT AND Proprietary",
        "MIT WITH unknown-exception",
        "MIT AND (Proprietary OR OpenSSL)",
        "Proprietary OR MIT AND OpenSSL",
    ] {
        assert_eq!(allows(text), Ok(false), "{text}");
    }
    for text in ["", "MIT OR", "(MIT", "MIT)", "MIT Zlib", "AND MIT", "MIT WITH"] {
        assert!(allows(text).is_err(), "{text}");
    }
}
