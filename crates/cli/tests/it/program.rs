//! The program as tests start it: runs that a developer has kept are not looked at, and none are kept, so that tests make their runs.
//!
//! Must not know: what is asked.

use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

/// The program, with the tests' own cache.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairlab"));
    command.env("XDG_CACHE_HOME", cache());
    command
}

/// What tests have for `$XDG_CACHE_HOME`: all of the developer's cache, where kernels are that took long to fetch and to build, but
/// in the place of kept runs a link to nothing.
pub fn cache() -> &'static Path {
    static CACHE: OnceLock<PathBuf> = OnceLock::new();
    CACHE.get_or_init(|| {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
        let own = cache.join("fairlab");
        fs::create_dir_all(&own).expect("a folder");
        link(Path::new("/dev/null"), &own.join("runs.redb"));
        let home = || Path::new(&env::var_os("HOME").expect("a home")).join(".cache");
        let set = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|place| place.is_absolute());
        let developers = set.unwrap_or_else(home).join("fairlab");
        for entry in fs::read_dir(&developers).into_iter().flatten().flatten() {
            link(&entry.path(), &own.join(entry.file_name()));
        }
        cache
    })
}

/// Another test may have made it.
fn link(target: &Path, place: &Path) {
    match symlink(target, place) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => panic!("{}: {error}", place.display()),
        _ => {}
    }
}
