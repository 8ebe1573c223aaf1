//! A file that something is written into, of whatever kind it is.
//!
//! A plain file is written beside and renamed, so that it is whole or as it was; links are followed, and it keeps its mode. What is
//! no plain file (a pipe, a device, what is open already) is written into: it is never replaced.
//!
//! Must not know: what is written.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat, fchown};
use rustix::process::{Gid, Uid};

use crate::temporary;

/// Links that are followed one after the other, as the kernel does.
const LINKS_MAX: usize = 40;

/// A file under construction, or one that takes bytes as they come.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    /// What is renamed to what, if anything is.
    renamed: Option<Renaming>,
}

#[derive(Debug)]
struct Renaming {
    building: PathBuf,
    wanted: PathBuf,
}

/// What a path leads to.
enum OutputTarget {
    /// Nothing yet: a plain file will be there.
    New(PathBuf),
    /// A plain file.
    Plain(PathBuf, Metadata),
    /// A pipe, a terminal, another device.
    Special(PathBuf),
    /// What a process has open, by its number.
    Open(PathBuf),
}

impl OutputFile {
    /// Begins to write to `path`.
    ///
    /// # Errors
    /// It is a folder, leads through too many links, or may not be written.
    pub fn create(path: &Path) -> io::Result<OutputFile> {
        match target(path)? {
            OutputTarget::New(path) => OutputFile::beside(path, None),
            OutputTarget::Plain(path, about) => OutputFile::beside(path, Some(&about)),
            OutputTarget::Special(path) => {
                let flags = OFlags::NOCTTY.bits().cast_signed();
                let file = OpenOptions::new().write(true).custom_flags(flags).open(path)?;
                Ok(OutputFile { file, renamed: None })
            }
            OutputTarget::Open(path) => Ok(OutputFile { file: open_already(&path)?, renamed: None }),
        }
    }

    fn beside(wanted: PathBuf, there: Option<&Metadata>) -> io::Result<OutputFile> {
        if there.is_some() {
            // Its folder may allow what the file itself does not.
            accessat(CWD, &wanted, Access::WRITE_OK, AtFlags::EACCESS)?;
        }
        let building = temporary::beside(&wanted);
        // With O_EXCL no link is followed: no other process has put anything there.
        let file = OpenOptions::new().write(true).create_new(true).open(&building)?;
        let output = OutputFile { file, renamed: Some(Renaming { building, wanted }) };
        if let Some(there) = there {
            // Only root gives files away; for others it is theirs already, or becomes so.
            let _ = fchown(&output.file, Some(Uid::from_raw(there.uid())), Some(Gid::from_raw(there.gid())));
            output.file.set_permissions(Permissions::from_mode(there.mode() & 0o777))?;
        }
        Ok(output)
    }

    /// The file that stands for this one until it is finished; `None` if there is none.
    pub fn building(&self) -> Option<&Path> {
        self.renamed.as_ref().map(|renamed| renamed.building.as_path())
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        if let Some(renamed) = &self.renamed {
            fs::rename(&renamed.building, &renamed.wanted)?;
        }
        self.renamed = None;
        Ok(())
    }
}

/// Writes `content` to `path`: all of it, or nothing where that is a plain file.
///
/// # Errors
/// It cannot be written.
pub fn write_whole(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(content.as_ref())?;
    file.finish()
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// What was not finished leaves nothing behind.
impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(renamed) = &self.renamed {
            // Nothing to do about a failure here; the next process that comes here removes it.
            let _ = fs::remove_file(&renamed.building);
        }
    }
}

fn target(path: &Path) -> io::Result<OutputTarget> {
    let mut path = path.to_path_buf();
    for _ in 0..=LINKS_MAX {
        if is_open_already(&path) {
            return Ok(OutputTarget::Open(path));
        }
        let about = match fs::symlink_metadata(&path) {
            Ok(about) => about,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return new(path),
            Err(error) => return Err(error),
        };
        let kind = about.file_type();
        if kind.is_symlink() {
            let link = fs::read_link(&path)?;
            path = path.parent().unwrap_or(Path::new("")).join(link);
        } else if kind.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        } else if kind.is_file() {
            return Ok(OutputTarget::Plain(path, about));
        } else {
            return Ok(OutputTarget::Special(path));
        }
    }
    Err(io::Error::other("too many links"))
}

/// A file of this name; the kernel would make none of `name/` or `name/..`.
fn new(path: PathBuf) -> io::Result<OutputTarget> {
    let is_name = matches!(path.components().next_back(), Some(Component::Normal(_)));
    if !is_name || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(OutputTarget::New(path))
}

/// Whether a path is of the kind `/proc/N/fd/1`, as that of `/dev/stdout` is: what looks like a link there is none.
fn is_open_already(path: &Path) -> bool {
    let Some(folder) = path.parent().filter(|folder| folder.ends_with("fd")) else { return false };
    fs::canonicalize(folder).is_ok_and(|folder| folder.starts_with("/proc"))
}

/// What is open under this number: our own standard output goes on where it is, others are appended to.
fn open_already(path: &Path) -> io::Result<File> {
    let folder = path.parent().map(fs::canonicalize).transpose()?.unwrap_or_default();
    let is_own = folder == Path::new("/proc").join(std::process::id().to_string()).join("fd");
    let number = path.file_name().filter(|_| is_own).and_then(|name| name.to_str());
    match number {
        Some("1") => io::stdout().as_fd().try_clone_to_owned().map(File::from),
        Some("2") => io::stderr().as_fd().try_clone_to_owned().map(File::from),
        _ => OpenOptions::new().append(true).open(path),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::thread;

    use rustix::fs::{FileType, Mode, mknodat};

    use super::*;
    use crate::temporary::PrivateFolder;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>();
        names.sort();
        names
    }

    #[test]
    fn a_plain_file_is_whole_or_as_it_was() {
        let folder = PrivateFolder::create().expect("a folder");
        let path = folder.path().join("x".repeat(255));
        write_whole(&path, "one").expect("written");
        let mut half = OutputFile::create(&path).expect("begun");
        half.write_all(b"ha").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("there"), "one");
        drop(half);
        assert_eq!(names(folder.path()).len(), 1);
        write_whole(&path, "two").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("there"), "two");
    }

    #[test]
    fn links_are_followed_and_modes_kept() {
        let folder = PrivateFolder::create().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("real")).expect("a folder");
        fs::write(at("real/file"), "old").expect("a file");
        fs::set_permissions(at("real/file"), Permissions::from_mode(0o640)).expect("a mode");
        symlink("real/file", at("link")).expect("a link");
        symlink(at("link"), at("second")).expect("a link");
        symlink("real/new", at("dangling")).expect("a link");
        write_whole(&at("second"), "new").expect("written");
        write_whole(&at("dangling"), "new").expect("written");
        assert_eq!(fs::read_to_string(at("real/file")).expect("there"), "new");
        assert_eq!(fs::metadata(at("real/file")).expect("there").mode() & 0o777, 0o640);
        assert_eq!(fs::read_to_string(at("real/new")).expect("there"), "new");
        for link in ["link", "second", "dangling"] {
            assert!(fs::symlink_metadata(at(link)).expect("there").is_symlink(), "{link}");
        }
        symlink("loop", at("loop")).expect("a link");
        for (wrong, kind) in
            [("real", Some(io::ErrorKind::IsADirectory)), ("loop", None), ("no/such", None), ("none/", None)]
        {
            let error = write_whole(&at(wrong), "x").expect_err("refused");
            assert!(kind.is_none_or(|kind| error.kind() == kind), "{wrong}: {error}");
        }
        assert_eq!(names(folder.path()), ["dangling", "link", "loop", "real", "second"]);
        assert_eq!(names(&at("real")), ["file", "new"]);
    }

    #[test]
    fn what_is_no_plain_file_is_written_into() {
        let folder = PrivateFolder::create().expect("a folder");
        let path = folder.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
        let reading = path.clone();
        let reader = thread::spawn(move || {
            let mut text = String::new();
            File::open(reading).and_then(|mut file| file.read_to_string(&mut text)).expect("read");
            text
        });
        write_whole(&path, "through the pipe").expect("written");
        assert_eq!(reader.join().expect("the reader"), "through the pipe");
        assert_eq!(names(folder.path()), ["fifo"]);
        let null = folder.path().join("null");
        symlink("/dev/null", &null).expect("a link");
        write_whole(&null, "nothing").expect("written");
        assert!(!fs::metadata("/dev/null").expect("there").is_file());
        assert!(write_whole(Path::new("/dev/full"), "too much").is_err());
    }

    #[test]
    fn what_is_open_already_is_appended_to() {
        use std::os::fd::AsRawFd;
        let folder = PrivateFolder::create().expect("a folder");
        let path = folder.path().join("log");
        fs::write(&path, "before ").expect("written");
        let open = File::open(&path).expect("open");
        let number = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
        write_whole(&number, "and after").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("there"), "before and after");
        assert_eq!(names(folder.path()), ["log"]);
    }
}
