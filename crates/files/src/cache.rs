//! Where fetched things are kept, one folder for all of this user's runs.
//!
//! Must not know: what is fetched.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::LabError;

/// What lists, packages and what is unpacked of them take at most, MiB: sid's QEMU with its libraries, 72 packages.
const ROOM_MIB: u64 = 400;

/// The folder, locked against other runs until this is dropped.
#[derive(Debug)]
pub struct CacheFolder {
    folder: PathBuf,
    _lock: File,
}

impl CacheFolder {
    /// Opens the user's folder. Waits for others that fetch.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open() -> Result<CacheFolder, LabError> {
        CacheFolder::below(&CacheFolder::place()?)
    }

    /// Where the user's is: `$XDG_CACHE_HOME/fairlab`, or `~/.cache/fairlab`.
    ///
    /// # Errors
    /// The environment names no home.
    pub fn place() -> Result<PathBuf, LabError> {
        let home = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = home.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
        let home = home.ok_or_else(|| {
            LabError::new("there is no place for what is fetched", "set HOME or XDG_CACHE_HOME")
        })?;
        Ok(home.join("fairlab"))
    }

    /// Opens one below another folder.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn below(folder: &Path) -> Result<CacheFolder, LabError> {
        let made = fs::create_dir_all(folder).and_then(|()| File::create(folder.join("lock")));
        let lock =
            made.and_then(|lock| lock.lock().map(|()| lock)).map_err(|error| failed(folder, &error))?;
        Ok(CacheFolder { folder: folder.to_path_buf(), _lock: lock })
    }

    /// Looks whether what is fetched has room there.
    ///
    /// # Errors
    /// It has not.
    pub fn has_room(&self) -> Result<(), LabError> {
        let free_mib = free_mib(&self.folder).map_err(|error| failed(&self.folder, &error))?;
        if free_mib >= ROOM_MIB {
            return Ok(());
        }
        Err(LabError::new(
            format!(
                "what is fetched needs {ROOM_MIB} MiB of free space in {}, which has {free_mib}",
                self.folder.display()
            ),
            "make room there, or set XDG_CACHE_HOME to another place",
        ))
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes the folder `name` by `make`, which is given a folder beside it: it is whole or not there.
    ///
    /// # Errors
    /// `make` fails, or the folder cannot be put in its place.
    pub fn build(
        &self,
        name: &str,
        make: impl FnOnce(&Path) -> Result<(), LabError>,
    ) -> Result<PathBuf, LabError> {
        let (wanted, building) = (self.path(name), self.path(&format!("{name}.new")));
        let empty = |path: &Path| match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        empty(&building)
            .and_then(|()| fs::create_dir_all(&building))
            .map_err(|error| failed(&building, &error))?;
        let made = make(&building).and_then(|()| {
            empty(&wanted)
                .and_then(|()| fs::rename(&building, &wanted))
                .map_err(|error| failed(&wanted, &error))
        });
        if made.is_err() {
            let _ = fs::remove_dir_all(&building);
        }
        made.map(|()| wanted)
    }
}

/// How much room there is in the file system of a folder, MiB.
///
/// # Errors
/// It cannot be asked.
pub fn free_mib(folder: &Path) -> io::Result<u64> {
    let about = rustix::fs::statvfs(folder)?;
    Ok(about.f_bavail.saturating_mul(about.f_frsize) >> 20)
}

/// An error about a place in the cache.
pub fn failed(path: &Path, error: &io::Error) -> LabError {
    LabError::new(
        format!("cannot keep what is fetched in {}: {error}", path.display()),
        "check the place and its free space, or set XDG_CACHE_HOME to another",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_whole_or_not_there() {
        let place = env::temp_dir().join(format!("fairlab-cache-{}", std::process::id()));
        let cache = CacheFolder::below(&place).expect("a cache");
        let broken = cache.build("a/thing", |folder| {
            fs::write(folder.join("half"), "half").expect("written");
            Err(LabError::new("broken", "mend it"))
        });
        assert_eq!(broken.expect_err("broken").problem, "broken");
        assert_eq!(fs::read_dir(place.join("a")).expect("the folder").count(), 0);
        for content in ["one", "two"] {
            let made = cache.build("a/thing", |folder| {
                fs::write(folder.join("whole"), content).map_err(|error| failed(folder, &error))
            });
            assert_eq!(fs::read_to_string(made.expect("made").join("whole")).expect("read"), content);
        }
        fs::remove_dir_all(place).expect("removed");
    }
}
