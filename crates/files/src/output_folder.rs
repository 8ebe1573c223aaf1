//! A folder that is whole or not there: written beside its place and renamed.
//!
//! Must not know: what is in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{LabError, temporary};

/// A folder under construction.
#[derive(Debug)]
pub struct OutputFolder {
    wanted: PathBuf,
    building: PathBuf,
    /// Whether a folder that is there is replaced.
    replaces: bool,
}

impl OutputFolder {
    /// Begins a folder that will be `path`. Nothing stands there until [`finish`](Self::finish).
    ///
    /// # Errors
    /// Something is there already, or the place cannot be written to.
    pub fn create(path: &Path) -> Result<OutputFolder, LabError> {
        // A link that leads nowhere would be replaced, too.
        if fs::symlink_metadata(path).is_ok() {
            let problem = format!("{} exists already", path.display());
            return Err(LabError::new(problem, "name another folder for --out, or remove it"));
        }
        OutputFolder::beside(path, false)
    }

    /// Begins a folder that will take the place of `path`, which is there.
    ///
    /// # Errors
    /// The place cannot be written to.
    pub fn replace(path: &Path) -> Result<OutputFolder, LabError> {
        OutputFolder::beside(path, true)
    }

    fn beside(path: &Path, replaces: bool) -> Result<OutputFolder, LabError> {
        if path.file_name().is_none() {
            return Err(LabError::new(
                format!("{} is no name for a folder", path.display()),
                "name a new folder for --out",
            ));
        }
        let building = temporary::beside(path);
        let folder = OutputFolder { wanted: path.to_path_buf(), building, replaces };
        let parent = path.parent().map_or(Ok(()), fs::create_dir_all);
        parent.and_then(|()| fs::create_dir(&folder.building)).map_err(|error| folder.failed(&error))?;
        Ok(folder)
    }

    /// Where it is while it is made.
    pub fn building(&self) -> &Path {
        &self.building
    }

    /// Where a file of this name is while the folder is made.
    pub fn path(&self, name: &str) -> PathBuf {
        self.building.join(name)
    }

    /// Writes a text, and the folders that it lies in.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn file(&self, name: &str, content: &str) -> Result<(), LabError> {
        self.bytes(name, content.as_bytes())
    }

    /// Writes a file, and the folders that it lies in.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn bytes(&self, name: &str, content: &[u8]) -> Result<(), LabError> {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| self.failed(&error))?;
        }
        fs::write(path, content).map_err(|error| self.failed(&error))
    }

    /// Gives the folder its name.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn finish(self) -> Result<(), LabError> {
        if !self.replaces {
            return fs::rename(&self.building, &self.wanted).map_err(|error| self.failed(&error));
        }
        let old = self.building.with_extension("old");
        fs::rename(&self.wanted, &old).map_err(|error| self.failed(&error))?;
        if let Err(error) = fs::rename(&self.building, &self.wanted) {
            // What was there is better than nothing.
            let _ = fs::rename(&old, &self.wanted);
            return Err(self.failed(&error));
        }
        fs::remove_dir_all(&old).map_err(|error| self.failed(&error))
    }

    /// Why something in it could not be done.
    pub fn failed(&self, error: &io::Error) -> LabError {
        LabError::new(
            format!("cannot write {}: {error}", self.wanted.display()),
            "check the place that --out names",
        )
    }
}

/// A folder that was not finished leaves nothing behind.
impl Drop for OutputFolder {
    fn drop(&mut self) {
        // Nothing to do about a failure here; after finish() there is nothing to remove.
        temporary::remove(&self.building);
    }
}
