//! Debian's suites, in the order in which they are looked through for a package.
//!
//! Must not know: what the package is for.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use crate::LabError;
use crate::apt::Apt;
use crate::cache::CacheFolder;

/// All suites of the archive. What stands above has the newer build of what two of them have, but for experimental, whose builds may be of
/// releases that are not out.
pub const SUITES: [&str; 15] = [
    "sid",
    "forky",
    "trixie-backports",
    "trixie-security",
    "trixie-updates",
    "trixie",
    "bookworm-backports",
    "bookworm-security",
    "bookworm-updates",
    "bookworm",
    "bullseye-backports",
    "bullseye-security",
    "bullseye-updates",
    "bullseye",
    "experimental",
];

/// The suites in the order in which a package is looked for that `home` is known to have.
fn order(home: Option<&str>) -> Vec<&'static str> {
    let (first, rest): (Vec<&str>, Vec<&str>) = SUITES.into_iter().partition(|suite| home == Some(*suite));
    [first, rest].concat()
}

/// Looks for a package: in its `home` if it has one, then in all suites, the newest first. `pattern` is a regular expression of the names
/// of its kind. `tell` is given each suite before its lists are read.
///
/// # Errors
/// The archive cannot be read, or no suite has the package: the hint lists what there is of its kind, and where.
pub fn find<'s>(
    package: &str,
    pattern: &str,
    home: Option<&str>,
    cache: &CacheFolder,
    tell: &dyn Fn(&str),
    stop: &'s AtomicBool,
) -> Result<Apt<'s>, LabError> {
    let (mut there, mut unread) = (Vec::new(), Vec::new());
    for suite in order(home) {
        tell(suite);
        let Some(apt) = Apt::of_debian_if_there(suite, "amd64", cache, stop)? else {
            unread.push(suite);
            continue;
        };
        let named = apt.named(pattern)?;
        if named.iter().any(|name| name == package) {
            return Ok(apt);
        }
        there.push((suite, named));
    }
    Err(nowhere(package, &there, &unread))
}

/// All versions of a package, by suites: those of its `home` (`bookworm`, `bookworm-security`) if it has one, or else all.
/// `tell` is given each suite before its lists are read.
///
/// # Errors
/// The archive cannot be read.
pub fn versions<'s>(
    package: &str,
    home: Option<&str>,
    cache: &CacheFolder,
    tell: &dyn Fn(&str),
    stop: &'s AtomicBool,
) -> Result<Vec<(Apt<'s>, Vec<String>)>, LabError> {
    let mut versions = Vec::new();
    for suite in SUITES.into_iter().filter(|suite| home.is_none_or(|home| is_of(suite, home))) {
        tell(suite);
        if let Some(apt) = Apt::of_debian_if_there(suite, "amd64", cache, stop)? {
            let those = apt.versions(package)?;
            versions.push((apt, those));
        }
    }
    Ok(versions)
}

/// Whether a suite is a release of Debian's, or has its fixes.
fn is_of(suite: &str, home: &str) -> bool {
    suite.strip_prefix(home).is_some_and(|rest| ["", "-security", "-updates"].contains(&rest))
}

/// What is said of a package that no suite has.
fn nowhere(package: &str, there: &[(&str, Vec<String>)], unread: &[&str]) -> LabError {
    let mut known = BTreeSet::new();
    let named = there.iter().flat_map(|(suite, names)| names.iter().map(move |name| (name, suite)));
    let new = named.filter(|(name, _)| known.insert(*name));
    let kinds: Vec<String> = new.map(|(name, suite)| format!("{name} ({suite})")).collect();
    let looked = there.iter().map(|(suite, _)| *suite).collect::<Vec<_>>().join(", ");
    let gone = if unread.is_empty() {
        String::new()
    } else {
        format!("; the archive does not offer {}", unread.join(", "))
    };
    LabError::new(
        format!("Debian has no package {package} in {looked}{gone}"),
        format!(
            "there is {}",
            if kinds.is_empty() { "none of its kind".to_string() } else { kinds.join(", ") }
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_home_comes_first() {
        assert_eq!(order(None), SUITES);
        let order = order(Some("bookworm"));
        assert_eq!(order[..2], ["bookworm", "sid"]);
        assert_eq!(order.len(), SUITES.len());
    }

    #[test]
    fn fixes_are_of_a_release_and_backports_are_not() {
        let of = SUITES.into_iter().filter(|suite| is_of(suite, "bookworm")).collect::<Vec<_>>();
        assert_eq!(of, ["bookworm-security", "bookworm-updates", "bookworm"]);
    }

    #[test]
    fn what_there_is_is_told_once_with_its_suite() {
        let there = [
            ("sid", vec!["linux-source-7.2".to_string()]),
            ("trixie", vec!["linux-source-6.12".to_string(), "linux-source-7.2".to_string()]),
        ];
        let told = nowhere("linux-source-9.9", &there, &["bullseye-backports"]);
        assert_eq!(
            told.problem,
            "Debian has no package linux-source-9.9 in sid, trixie; the archive does not offer bullseye-backports"
        );
        assert_eq!(told.hint, "there is linux-source-7.2 (sid), linux-source-6.12 (trixie)");
        assert_eq!(nowhere("x", &[], &[]).hint, "there is none of its kind");
    }
}
