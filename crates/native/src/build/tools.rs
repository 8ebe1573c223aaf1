//! The programs that a build needs: this system's, or Debian's, fetched beside the kernels.
//!
//! Must not know: how they are called.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use fairlab_files::LabError;
use fairlab_files::apt::{Apt, unpack_all};
use fairlab_files::cache::CacheFolder;

use super::BuildSteps;

/// What kbuild and the link use. `m4` is what flex and bison use.
const NEEDED: [&str; 11] =
    ["gcc", "make", "flex", "bison", "m4", "bc", "ld", "nm", "objcopy", "objdump", "awk"];

/// Those that Debian's packages give without installation, each named as its package.
const FETCHED: [&str; 3] = ["flex", "bison", "m4"];

/// Whose packages run on most systems: an old C library is enough.
const SUITE: &str = "bookworm";

/// Where the programs are.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Where fetched ones were unpacked.
    fetched: Option<PathBuf>,
}

impl Tools {
    /// Looks for all of them, and fetches what it can.
    pub fn find(steps: &BuildSteps<'_>, stop: &AtomicBool) -> Result<Tools, LabError> {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = env::split_paths(&path).collect();
        let missing: Vec<&str> = lacking(&folders);
        if missing.is_empty() {
            return Ok(Tools::default());
        }
        if !missing.iter().all(|name| FETCHED.contains(name)) {
            return Err(lacks(&missing, "install them"));
        }
        fetch(steps, stop)
            .map(|folder| Tools { fetched: Some(folder) })
            .map_err(|error| lacks(&missing, &format!("install them ({})", error.problem)))
    }

    /// A command that finds them.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        if let Some(folder) = &self.fetched {
            let bin = folder.join("usr/bin");
            let path = env::var_os("PATH").unwrap_or_default();
            let paths = env::join_paths([bin.clone()].into_iter().chain(env::split_paths(&path)));
            command.env("PATH", paths.unwrap_or(path)).env("M4", bin.join("m4"));
            command.env("BISON_PKGDATADIR", folder.join("usr/share/bison"));
        }
        command
    }
}

fn lacking(folders: &[PathBuf]) -> Vec<&'static str> {
    let is_there = |name: &&str| folders.iter().any(|folder| folder.join(name).is_file());
    NEEDED.into_iter().filter(|name| !is_there(name)).collect()
}

fn lacks(missing: &[&str], hint: &str) -> LabError {
    LabError::new(format!("to build a kernel this system lacks {}", missing.join(", ")), hint)
}

fn fetch(steps: &BuildSteps<'_>, stop: &AtomicBool) -> Result<PathBuf, LabError> {
    let cache = CacheFolder::open()?;
    let folder = cache.path("tools");
    if lacking_in(&folder).is_empty() {
        return Ok(folder);
    }
    steps.tell("fetching", &format!("{} of {SUITE}", FETCHED.join(", ")));
    let apt = Apt::of_debian(SUITE, "amd64", &cache, stop)?;
    let folder = cache.build("tools", |folder| {
        FETCHED.iter().try_for_each(|package| unpack_all(&apt.download(package)?, folder))
    })?;
    apt.clean();
    Ok(folder)
}

fn lacking_in(folder: &Path) -> Vec<&'static str> {
    FETCHED.into_iter().filter(|name| !folder.join("usr/bin").join(name).is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_lack_stand_in_one_line() {
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        for name in ["gcc", "make", "ld", "nm", "objcopy", "objdump", "awk", "m4"] {
            std::fs::write(folder.path().join(name), "").expect("written");
        }
        let missing = lacking(&[PathBuf::from("/no/such"), folder.path().to_path_buf()]);
        assert_eq!(missing, ["flex", "bison", "bc"]);
        let told = lacks(&missing, "install them").to_string();
        assert_eq!(told, "to build a kernel this system lacks flex, bison, bc; install them");
    }

    #[test]
    fn fetched_programs_come_first() {
        let tools = Tools { fetched: Some(PathBuf::from("/fetched")) };
        let command = tools.command("make");
        let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value);
        assert!(path.is_some_and(|path| path.to_string_lossy().starts_with("/fetched/usr/bin:")));
    }
}
