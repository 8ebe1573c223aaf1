//! Files and folders under construction, and private folders in the system's folder for temporaries.
//!
//! Their names say which process made them ([`ProcessOwner`]), so that a later process can remove what a killed one left.
//!
//! Must not know: what is in them.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::owner::{ProcessOwner, remove_left_behind};

/// How names begin: of what will be renamed, hidden beside its target; of private folders.
const BESIDE: &str = ".fairlab-";
const PRIVATE: &str = "fairlab-";

/// Names that this process has given.
static GIVEN: AtomicU32 = AtomicU32::new(0);

/// Folders that this process has looked through for what others left.
static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A name beside `path` for what will be renamed to it. What killed processes left there is removed.
pub fn beside(path: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new(""));
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    clean(folder, BESIDE);
    folder.join(name(BESIDE, GIVEN.fetch_add(1, Ordering::Relaxed)))
}

/// Removes from `folder` what killed processes left under way.
pub fn clean_beside(folder: &Path) {
    clean(folder, BESIDE);
}

fn name(prefix: &str, rest: impl std::fmt::Display) -> String {
    format!("{prefix}{}-{rest}", ProcessOwner::this().token())
}

/// Removes from `folder` what killed processes left under names of ours; looks once.
fn clean(folder: &Path, prefix: &str) {
    if !SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_path_buf()) {
        return;
    }
    let owner_of = |name: &str| ProcessOwner::parse(name.strip_prefix(prefix)?.split_once('-')?.0);
    remove_left_behind(folder, owner_of, remove);
}

/// Takes a file, a link or a folder away; links are not followed.
pub fn remove(path: &Path) {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
    // Nothing to do about a failure: the next process tries again.
    let _ = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// A folder that only this user can enter, in `$TMPDIR` or `/tmp`, and gone when this is.
#[derive(Debug)]
pub struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// Makes one. Its place was empty, or it would not have been made: no other process can have put anything there.
    ///
    /// # Errors
    /// The place cannot be written to.
    pub fn create() -> io::Result<PrivateFolder> {
        PrivateFolder::below(&std::env::temp_dir())
    }

    fn below(place: &Path) -> io::Result<PrivateFolder> {
        clean(place, PRIVATE);
        let mut chance = [0; 8];
        loop {
            fs::File::open("/dev/urandom")?.read_exact(&mut chance)?;
            let folder = place.join(name(PRIVATE, format_args!("{:016x}", u64::from_ne_bytes(chance))));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(PrivateFolder(folder)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn private_folders_are_nobody_elses() {
        let place = PrivateFolder::create().expect("a folder");
        let (one, other) = (PrivateFolder::create().expect("one"), PrivateFolder::create().expect("another"));
        assert_ne!(one.path(), other.path());
        let about = fs::symlink_metadata(one.path()).expect("there");
        assert_eq!(about.mode() & 0o7777, 0o700);
        let path = one.path().to_path_buf();
        drop(one);
        assert!(!path.exists() && other.path().exists() && place.path().exists());
    }

    #[test]
    fn what_the_dead_left_goes_and_links_are_not_followed() {
        let place = PrivateFolder::create().expect("a folder");
        let kept = place.path().join("kept");
        fs::create_dir(&kept).expect("a folder");
        fs::write(kept.join("file"), "kept").expect("a file");
        let gone = ProcessOwner::this().token().replacen(&std::process::id().to_string(), "4294967295", 1);
        let left = ["0", "1", "2"].map(|number| place.path().join(format!("{BESIDE}{gone}-{number}")));
        fs::create_dir_all(left[0].join("a/b")).expect("a folder");
        fs::write(&left[1], "half").expect("a file");
        symlink(&kept, &left[2]).expect("a link");
        let beside = beside(&place.path().join("target"));
        fs::write(&beside, "whole").expect("a file");
        assert!(left.iter().all(|left| fs::symlink_metadata(left).is_err()), "gone");
        assert_eq!(fs::read_to_string(kept.join("file")).expect("kept"), "kept");
        assert!(beside.exists());
    }
}
