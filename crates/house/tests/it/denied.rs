//! deny.toml, held without cargo-deny: where others' code comes from, in how many versions, under which licences.
//!
//! Knows the lock file and cargo's account of the dependencies, and nothing of their code.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_house::{assert_none, members, metadata, string, text};
use toml::{Table, Value};

fn read(path: &str) -> Table {
    text(path).parse().unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn rules(section: &str) -> Table {
    let rules = read("deny.toml");
    rules
        .get(section)
        .and_then(Value::as_table)
        .unwrap_or_else(|| panic!("deny.toml has [{section}]"))
        .clone()
}

fn strings(rules: &Table, name: &str) -> BTreeSet<String> {
    let list = rules.get(name).and_then(Value::as_array).unwrap_or_else(|| panic!("deny.toml has {name}"));
    list.iter().map(|item| item.as_str().expect("a string").to_string()).collect()
}

/// A package of the lock file.
struct Locked {
    name: String,
    version: String,
    /// None for our own.
    source: Option<String>,
    checksum: Option<String>,
}

fn locked() -> Vec<Locked> {
    let lock = read("Cargo.lock");
    let packages = lock.get("package").and_then(Value::as_array).expect("packages");
    let of = |package: &Value, name: &str| package.get(name).and_then(Value::as_str).map(str::to_string);
    let package = |package: &Value| Locked {
        name: of(package, "name").expect("a name"),
        version: of(package, "version").expect("a version"),
        source: of(package, "source"),
        checksum: of(package, "checksum"),
    };
    packages.iter().map(package).collect()
}

/// What is wrong with where packages come from.
fn from_elsewhere(packages: &[Locked], registries: &BTreeSet<String>) -> Vec<String> {
    let is_known =
        |source: &str| source.strip_prefix("registry+").is_some_and(|registry| registries.contains(registry));
    let wrong = |package: &&Locked| match &package.source {
        None => !package.name.starts_with("fairlab-"),
        Some(source) => !is_known(source) || package.checksum.is_none(),
    };
    let told = |package: &Locked| format!("{} {} from {:?}", package.name, package.version, package.source);
    packages.iter().filter(wrong).map(told).collect()
}

/// Which packages are there in more than one version, but for those that may be; and those that may be and are not.
fn several(packages: &[Locked], skipped: &BTreeSet<String>) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    let mut violations = Vec::new();
    for (name, versions) in &versions {
        let left = versions.iter().filter(|version| !skipped.contains(&format!("{name}@{version}")));
        let left = left.copied().collect::<Vec<_>>();
        if left.len() > 1 {
            violations.push(format!("{name} in versions {}", left.join(" and ")));
        }
    }
    let is_needless = |skip: &&String| {
        let (name, version) = skip.split_once('@').unwrap_or((skip, ""));
        versions.get(name).is_none_or(|versions| versions.len() < 2 || !versions.contains(version))
    };
    violations
        .extend(skipped.iter().filter(is_needless).map(|skip| format!("{skip} is skipped without need")));
    violations
}

#[test]
fn all_code_of_others_comes_from_the_known_registry() {
    let sources = rules("sources");
    for rule in ["unknown-registry", "unknown-git"] {
        assert_eq!(sources.get(rule).and_then(Value::as_str), Some("deny"), "{rule}");
    }
    assert!(strings(&sources, "allow-git").is_empty());
    assert_none(
        "a dependency comes from a registry of deny.toml, with its checksum",
        &from_elsewhere(&locked(), &strings(&sources, "allow-registry")),
    );
}

#[test]
fn each_crate_is_there_in_one_version() {
    let bans = rules("bans");
    assert_eq!(bans.get("multiple-versions").and_then(Value::as_str), Some("deny"));
    let skips = bans.get("skip").and_then(Value::as_array).expect("a list");
    let named = |skip: &Value| {
        let has_reason = skip.get("reason").and_then(Value::as_str).is_some_and(|reason| !reason.is_empty());
        assert!(has_reason, "{skip} says why");
        skip.get("crate").and_then(Value::as_str).expect("a crate").to_string()
    };
    assert_none(
        "a crate is built once, or deny.toml skips it",
        &several(&locked(), &skips.iter().map(named).collect()),
    );
}

#[test]
fn no_dependency_takes_any_version() {
    let metadata = metadata();
    let mut violations = Vec::new();
    for package in members(&metadata, "packages").filter(|package| package["source"].is_null()) {
        for dependency in members(package, "dependencies") {
            // Our own crates stand beside each other.
            if dependency["path"].is_null() && string(dependency, "req") == "*" {
                violations.push(format!("{} of {}", string(dependency, "name"), string(package, "name")));
            }
        }
    }
    assert_none("a dependency says which versions would do", &violations);
}

#[test]
fn licences_are_those_of_our_own_test() {
    let told = text("crates/house/tests/it/licences.rs");
    let list = told.split("const ALLOWED").nth(1).and_then(|rest| rest.split("];").next()).expect("the list");
    let allowed = list.lines().filter_map(|line| line.trim().strip_prefix("(\"")?.split('"').next());
    assert_eq!(allowed.map(str::to_string).collect::<BTreeSet<_>>(), strings(&rules("licenses"), "allow"));
}

#[test]
fn what_is_wrong_is_found() {
    let package = |name: &str, version: &str, source: Option<&str>, checksum: Option<&str>| Locked {
        name: name.to_string(),
        version: version.to_string(),
        source: source.map(str::to_string),
        checksum: checksum.map(str::to_string),
    };
    let known = Some("registry+https://known");
    let registries = BTreeSet::from(["https://known".to_string()]);
    let good = [package("a", "1.0.0", known, Some("00")), package("fairlab-x", "0.1.0", None, None)];
    assert!(from_elsewhere(&good, &registries).is_empty() && several(&good, &BTreeSet::new()).is_empty());
    let bad = [
        package("a", "1.0.0", Some("git+https://known"), Some("00")),
        package("b", "1.0.0", Some("registry+https://other"), Some("00")),
        package("c", "1.0.0", known, None),
        package("d", "1.0.0", None, None),
    ];
    assert_eq!(from_elsewhere(&bad, &registries).len(), 4);
    let twice = [package("a", "1.0.0", known, None), package("a", "2.0.0", known, None)];
    assert_eq!(several(&twice, &BTreeSet::new()), ["a in versions 1.0.0 and 2.0.0"]);
    assert!(several(&twice, &BTreeSet::from(["a@1.0.0".to_string()])).is_empty());
    assert_eq!(several(&good, &BTreeSet::from(["a@1.0.0".to_string()])).len(), 1);
}
