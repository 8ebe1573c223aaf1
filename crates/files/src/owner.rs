//! Names of temporary things that belong to a process, and the removal of what a killed process left.
//!
//! A killed process cleans nothing up, so names say who made a thing. A name has the process's id, its start time (ids are
//! reused), and the pid namespace and boot in which the id counts. A later process removes things whose owner is gone. Things
//! of another container or host are not judged and stay.
//!
//! Must not know: what is kept under such a name.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

/// Who made something: a process that lives, or lived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessOwner {
    /// The process's number.
    pid: u32,
    /// When it started, in ticks since the machine did.
    started: u64,
    /// The start of the machine and the view of process numbers.
    view: u32,
}

impl ProcessOwner {
    /// This process.
    pub fn this() -> ProcessOwner {
        static VIEW: OnceLock<u32> = OnceLock::new();
        let pid = std::process::id();
        ProcessOwner { pid, started: started(pid).unwrap_or(0), view: *VIEW.get_or_init(view) }
    }

    /// Its part of a name: `P_S_V`, numbers that any file system, tracefs and cgroups take.
    pub fn token(self) -> String {
        format!("{}_{}_{:08x}", self.pid, self.started, self.view)
    }

    /// The owner that a name's part tells of; `None` if it is no such part.
    pub fn parse(token: &str) -> Option<ProcessOwner> {
        let mut parts = token.split('_');
        let (pid, started, view) = (parts.next()?, parts.next()?, parts.next()?);
        let owner = ProcessOwner {
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
            view: u32::from_str_radix(view, 16).ok()?,
        };
        // Nothing else may be read from it than what token() writes.
        (owner.token() == token).then_some(owner)
    }

    /// Whether it is sure that this process does not live any more.
    pub fn is_gone(self) -> bool {
        self.view == ProcessOwner::this().view && started(self.pid) != Some(self.started)
    }
}

/// Removes from `folder` what processes left that are gone. `owner_of` tells from a name whose it is, `remove` takes it away. What
/// other users own is not touched.
pub fn remove_left_behind(
    folder: &Path,
    owner_of: impl Fn(&str) -> Option<ProcessOwner>,
    remove: impl Fn(&Path),
) {
    let us = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(&owner_of) else { continue };
        // About the entry itself, not about what a link leads to.
        let is_ours = entry.metadata().is_ok_and(|about| about.uid() == us);
        if is_ours && owner.is_gone() {
            remove(&entry.path());
        }
    }
}

/// When a process started, in ticks since the machine did: the 22nd field of `stat`. `None` if there is no such process; of one
/// that has ended and was not waited for, nothing is held any more.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name, in brackets, may hold anything: what follows the last one is plain, the third field first.
    let fields = stat.rsplit_once(')')?.1.split_whitespace().collect::<Vec<_>>();
    let is_dead = matches!(*fields.first()?, "Z" | "X");
    fields.get(22 - 3)?.parse().ok().filter(|_| !is_dead)
}

/// A number of this start of the machine and this view of process numbers.
fn view() -> u32 {
    let boot = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    // FNV-1a: a name's part, not a secret.
    let bytes = boot.iter().chain(namespace.as_os_str().as_encoded_bytes());
    bytes.fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn of(pid: u32) -> ProcessOwner {
        ProcessOwner { pid, started: started(pid).expect("it lives"), ..ProcessOwner::this() }
    }

    #[test]
    fn names_tell_whose_something_is() {
        let this = ProcessOwner::this();
        assert_eq!(ProcessOwner::parse(&this.token()), Some(this));
        assert!(!this.is_gone());
        for token in
            ["", "1", "1_2", "1_2_3", "01_2_00000003", "1_2_00000003_4", "+1_2_00000003", "1_2_0000000A"]
        {
            assert_eq!(ProcessOwner::parse(token), None, "{token}");
        }
    }

    #[test]
    fn who_has_ended_is_gone_and_who_lives_elsewhere_is_not_judged() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("a process");
        let owner = of(child.id());
        assert!(!owner.is_gone());
        assert!(ProcessOwner { started: owner.started + 1, ..owner }.is_gone(), "its number was given again");
        child.kill().expect("killed");
        while !owner.is_gone() {
            std::thread::yield_now();
        }
        child.wait().expect("its end");
        assert!(owner.is_gone());
        assert!(!ProcessOwner { view: !owner.view, ..owner }.is_gone(), "another container's");
    }

    #[test]
    fn only_what_the_dead_left_is_removed() {
        let folder = std::env::temp_dir().join(format!("fairlab-owner-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        let (this, gone) = (ProcessOwner::this(), ProcessOwner { pid: u32::MAX, ..ProcessOwner::this() });
        for name in [this.token(), gone.token(), "kept".to_string()] {
            fs::write(folder.join(name), "").expect("a file");
        }
        remove_left_behind(&folder, ProcessOwner::parse, |path| fs::remove_file(path).expect("removed"));
        let mut left = fs::read_dir(&folder)
            .expect("a folder")
            .flatten()
            .map(|entry| entry.file_name())
            .collect::<Vec<_>>();
        left.sort();
        assert_eq!(left, [this.token().as_str(), "kept"]);
        fs::remove_dir_all(folder).expect("removed");
    }
}
