//! Debian's packages of sources: a release's, or one of its point releases.
//!
//! Must not know: what is built of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use fairlab_files::apt::Apt;
use fairlab_files::cache::CacheFolder;
use fairlab_files::{LabError, debian};

use super::BuildSteps;
use super::command::succeed;
use super::source::{is_kernel, unreadable};

/// Releases that a suite of Debian's is made with: that one has the builds that the model was compared with, and its fixes others.
const HOMES: [(&str, &str); 3] = [("5.10", "bullseye"), ("6.1", "bookworm"), ("6.12", "trixie")];

/// The names of Debian's packages of sources, as a regular expression.
const PACKAGES: &str = r"^linux-source-[0-9]+\.[0-9]+$";

/// Which package a fetched tree is of, and in a second line, of which suite.
pub(super) const PACKAGE: &str = ".package";

/// Whether this is a release, `6.12`, or a point release, `6.12.107`.
pub(super) fn is_release(text: &str) -> bool {
    let parts = text.split('.').collect::<Vec<_>>();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (2..=3).contains(&parts.len()) && parts.iter().all(is_number)
}

/// The release of a point release, and of a release itself.
fn series(release: &str) -> &str {
    let end = release.match_indices('.').nth(1).map_or(release.len(), |(end, _)| end);
    &release[..end]
}

/// Where Debian's sources of a release are kept in the cache.
pub(super) fn fetched_as(release: &str) -> String {
    format!("kernel-sources/debian-{release}")
}

/// The folder of Debian's sources of a release.
pub(super) fn fetched(release: &str, steps: &BuildSteps<'_>, stop: &AtomicBool) -> Result<PathBuf, LabError> {
    let cache = CacheFolder::open()?;
    let name = fetched_as(release);
    let folder = cache.path(&name);
    if folder.join(PACKAGE).is_file() {
        return Ok(folder);
    }
    let package = package_of(release);
    let look = |suite: &str| steps.tell("fetching", &lists_of(suite));
    let (apt, version) = match series(release) == release {
        true => (newest(&package, home(release), &cache, &look, stop)?, String::new()),
        false => pointed(release, &cache, &look, stop)?,
    };
    steps.tell("fetching", &format!("{package}{version} of {}", apt.suite()));
    let file = apt.download(&format!("{package}{version}"))?;
    steps.tell("unpacking", &package);
    let built = cache.build(&name, |folder| unpack(&file, &package, apt.suite(), folder, stop));
    apt.clean();
    built
}

fn lists_of(suite: &str) -> String {
    format!("the list of packages of {suite}")
}

fn package_of(release: &str) -> String {
    format!("linux-source-{}", series(release))
}

fn home(release: &str) -> Option<&'static str> {
    HOMES.iter().find(|(known, _)| *known == series(release)).map(|(_, suite)| *suite)
}

/// The suite that a release's package is taken from.
fn newest<'s>(
    package: &str,
    home: Option<&str>,
    cache: &CacheFolder,
    look: &dyn Fn(&str),
    stop: &'s AtomicBool,
) -> Result<Apt<'s>, LabError> {
    debian::find(package, PACKAGES, home, cache, look, stop).map_err(|error| {
        let hint = error.hint.replace("linux-source-", "debian:");
        LabError::new(error.problem, format!("{hint}; or give a folder"))
    })
}

/// The suite that a point release's package is taken from, and the newest version of it, as apt takes it: `=6.1.170-3`.
fn pointed<'s>(
    release: &str,
    cache: &CacheFolder,
    look: &dyn Fn(&str),
    stop: &'s AtomicBool,
) -> Result<(Apt<'s>, String), LabError> {
    let versions = debian::versions(&package_of(release), home(release), cache, look, stop)?;
    let there = in_order(versions.iter().flat_map(|(_, those)| those));
    let found = versions.into_iter().find_map(|(apt, those)| {
        let version = those.into_iter().find(|version| upstream(version) == release)?;
        Some((apt, format!("={version}")))
    });
    found.ok_or_else(|| {
        let known = if there.is_empty() { "none".to_string() } else { there.join(", ") };
        LabError::new(
            format!("Debian's archive has no sources of {release}"),
            format!("of {} it has {known}", series(release)),
        )
    })
}

/// The point releases of a release (`6.1`) that Debian's archive has, the oldest first.
///
/// # Errors
/// The archive cannot be read, or has none.
pub fn point_releases(
    release: &str,
    tell: &dyn Fn(&str),
    stop: &AtomicBool,
) -> Result<Vec<String>, LabError> {
    let cache = CacheFolder::open()?;
    let look = |suite: &str| tell(&lists_of(suite));
    let there = in_order(
        debian::versions(&package_of(release), home(release), &cache, &look, stop)?
            .iter()
            .flat_map(|(_, those)| those),
    );
    match there.is_empty() {
        true => Err(LabError::new(
            format!("Debian's archive has no sources of {release}"),
            "'apt-cache search linux-source' lists what there is",
        )),
        false => Ok(there),
    }
}

/// The kernel's own version in a package's: `6.1.170` of `6.1.170-3`.
fn upstream(version: &str) -> &str {
    version.split(['-', '~', '+']).next().unwrap_or(version)
}

/// The kernel's own versions, each once, by their numbers. Candidates of a release have none of its points.
fn in_order<'v>(versions: impl Iterator<Item = &'v String>) -> Vec<String> {
    let mut there = versions.map(|version| upstream(version)).collect::<Vec<_>>();
    there.retain(|version| is_release(version) && series(version) != *version);
    let numbers =
        |version: &&str| version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>();
    there.sort_by_key(numbers);
    there.dedup();
    there.into_iter().map(str::to_string).collect()
}

/// Takes what is needed out of Debian's package, which holds a packed tree.
fn unpack(file: &Path, package: &str, suite: &str, into: &Path, stop: &AtomicBool) -> Result<(), LabError> {
    let whole = into.join(".whole");
    fs::create_dir_all(&whole).map_err(|error| unreadable(&whole, &error))?;
    let mut command = Command::new("dpkg-deb");
    succeed(command.arg("--extract").arg(file).arg(&whole), "unpack Debian's package", stop)?;
    let packed = whole.join(format!("usr/src/{package}.tar.xz"));
    let mut command = Command::new("tar");
    command.args(["--extract", "--strip-components=1", "--no-same-owner", "--directory"]).arg(into);
    command.args(super::selection::UNNEEDED.map(|pattern| format!("--exclude={pattern}")));
    succeed(command.arg("--file").arg(&packed), "unpack Debian's sources", stop)?;
    fs::remove_dir_all(&whole).map_err(|error| unreadable(&whole, &error))?;
    is_kernel(into)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    fs::write(into.join(PACKAGE), format!("{name}\n{suite}\n")).map_err(|error| unreadable(into, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn point_releases_are_in_order_and_told_once() {
        let versions =
            ["6.12.117-1", "6.12.117-2", "6.12.9-1+deb13u1", "6.12.107-1~deb13u1", "6.12~rc6-1~exp1"]
                .map(String::from);
        assert_eq!(in_order(versions.iter()), ["6.12.9", "6.12.107", "6.12.117"]);
    }

    #[test]
    fn a_point_release_is_of_its_releases_package() {
        for (release, package, suite) in [
            ("6.1", "linux-source-6.1", Some("bookworm")),
            ("6.1.170", "linux-source-6.1", Some("bookworm")),
            ("7.2.13", "linux-source-7.2", None),
        ] {
            assert_eq!((package_of(release).as_str(), home(release)), (package, suite), "{release}");
        }
    }
}
