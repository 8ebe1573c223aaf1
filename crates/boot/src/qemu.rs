//! QEMU: the one installed, if it is new enough, or Debian's newest, unpacked beside the system's.
//!
//! Must not know: what is booted.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use crate::hardware::Architecture;
use fairlab_files::LabError;
use fairlab_files::apt::{Apt, unpack_all};
use fairlab_files::cache::CacheFolder;

/// The version from which on several emulated CPUs take turns by instructions without standing still: each got a share
/// of its own (in 7.2, they hang when the second CPU starts; releases between have not been tried).
pub const QEMU_VERSION: u32 = 11;

/// Where there is a new enough one in packages.
const SUITE: &str = "sid";

/// The program that emulates an architecture, and Debian's package of it.
const fn program(architecture: Architecture) -> (&'static str, &'static str) {
    match architecture {
        Architecture::Amd64 => ("qemu-system-x86_64", "qemu-system-x86"),
        Architecture::Arm64 => ("qemu-system-aarch64", "qemu-system-arm"),
    }
}

/// What it gives up before the guest begins. So a guest that breaks out can start no program, gain no rights, and change no other
/// process's rights.
const SANDBOX: [&str; 2] =
    ["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"];

/// A QEMU that can be started.
#[derive(Clone, Debug, Default)]
pub(super) struct Qemu {
    program: PathBuf,
    /// The root of unpacked packages; none where it is installed.
    root: Option<PathBuf>,
    /// Whether it can give up system calls that it does not need.
    sandboxed: bool,
    /// Its own words: `11.1.3 (Debian 1:11.1.3+ds-1)`.
    pub version: String,
}

impl Qemu {
    /// The installed one, or one from the cache, or one that is fetched.
    pub fn find(architecture: Architecture, stop: &AtomicBool) -> Result<Qemu, LabError> {
        let (name, package) = program(architecture);
        let path = env::var_os("PATH").unwrap_or_default();
        let installed = env::split_paths(&path).map(|folder| folder.join(name)).filter(|path| path.is_file());
        for program in installed {
            if let Some(qemu) = (Qemu { program, ..Qemu::default() }).asked()
                && major(&qemu.version) >= Some(QEMU_VERSION)
            {
                return Ok(qemu);
            }
        }
        let cache = CacheFolder::open()?;
        let place = format!("qemu{}", architecture.suffix());
        if let Some(qemu) = Qemu::in_root(&cache.path(&place), name) {
            return Ok(qemu);
        }
        // It runs here, whatever it emulates.
        let apt = Apt::of_debian(SUITE, Architecture::Amd64.of_debian(), &cache, stop)?;
        let packages = apt.download_with_needs(package)?;
        let root = cache
            .build(&place, |folder| packages.iter().try_for_each(|package| unpack_all(package, folder)))?;
        apt.clean();
        Qemu::in_root(&root, name).ok_or_else(|| {
            LabError::new(
                format!("the QEMU of Debian {SUITE} was unpacked into {} and does not start", root.display()),
                format!("install QEMU {QEMU_VERSION} or later yourself"),
            )
        })
    }

    fn in_root(root: &Path, name: &str) -> Option<Qemu> {
        let program = root.join("usr/bin").join(name);
        let qemu = Qemu { program, root: Some(root.to_path_buf()), ..Qemu::default() };
        qemu.program.is_file().then(|| qemu.asked()).flatten()
    }

    /// With its version; `None` if it does not start.
    fn asked(mut self) -> Option<Qemu> {
        let output = self.command(None).arg("--version").stderr(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        self.version = text.lines().next()?.strip_prefix("QEMU emulator version ")?.to_string();
        // Options are read in order: one that it does not know ends it before it says its version.
        let trial = self.command(None).args(SANDBOX).arg("-version").stderr(Stdio::null()).output();
        self.sandboxed = trial.is_ok_and(|trial| trial.status.success());
        Some(self)
    }

    /// A command that starts it, with a library loaded before its own. Unpacked packages bring their own C library.
    pub fn command(&self, preloaded: Option<&Path>) -> Command {
        let mut command = self.bare_command(preloaded);
        if self.sandboxed {
            command.args(SANDBOX);
        }
        command
    }

    fn bare_command(&self, preloaded: Option<&Path>) -> Command {
        let Some(root) = &self.root else {
            let mut command = Command::new(&self.program);
            command.envs(preloaded.map(|library| ("LD_PRELOAD", library)));
            return command;
        };
        let libraries = root.join("usr/lib/x86_64-linux-gnu");
        let mut path = libraries.clone().into_os_string();
        path.push(":");
        path.push(libraries.join("pulseaudio"));
        let mut command = Command::new(root.join("usr/lib64/ld-linux-x86-64.so.2"));
        if let Some(library) = preloaded {
            command.arg("--preload").arg(library);
        }
        command.arg("--library-path").arg(path).arg(&self.program);
        for firmware in ["qemu", "seabios"] {
            command.arg("-L").arg(root.join("usr/share").join(firmware));
        }
        command.env_remove("LD_PRELOAD").env_remove("LD_LIBRARY_PATH");
        command
    }
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_first_number() {
        assert_eq!(major("11.1.3 (Debian 1:11.1.3+ds-1)"), Some(11));
        assert!(major("7.2.22") < Some(QEMU_VERSION) && major("") < Some(QEMU_VERSION));
    }
}
