//! How this program's answers came about: the program, its commit, its command line.
//!
//! Must not know: what an answer says.

use fairlab_lab::provenance::{Origin, ProgramVersion, Provenance};

/// What `--version` says.
pub const VERSION: &str = match COMMIT {
    Some(_) => concat!(env!("CARGO_PKG_VERSION"), " (", env!("FAIRLAB_COMMIT"), ")"),
    None => concat!(env!("CARGO_PKG_VERSION"), " (unknown)"),
};

const COMMIT: Option<&str> = match env!("FAIRLAB_COMMIT") {
    commit if commit.is_empty() => None,
    commit => Some(commit),
};

/// An answer to the command line as it stands.
pub fn here() -> Provenance {
    let program = ProgramVersion { version: env!("CARGO_PKG_VERSION"), commit: COMMIT };
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    Provenance::new(program, words.collect())
}

/// An answer from what the program knows by itself.
pub fn described() -> Provenance {
    here().by(Origin::Described)
}

/// The release of the kernel that runs here (`uname -r`).
pub fn this_release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string()
}
