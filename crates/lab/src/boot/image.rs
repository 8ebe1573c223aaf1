//! Kernel images: a file, or Debian's by the name of a suite.
//!
//! Must not know: how one is booted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use super::apt::Apt;
use super::cache::{Cache, failed};
use crate::LabError;

/// The suites that are known by name, with the generation of the model whose rules theirs are.
///
/// bullseye, bookworm, trixie and sid have 5.10, 6.1, 6.12 and what is newest.
pub const SUITES: [&str; 4] = ["bullseye", "bookworm", "trixie", "sid"];

/// The package that needs the suite's kernel for virtual machines, which has drivers built in that others load.
const META_PACKAGE: &str = "linux-image-cloud-amd64";

/// A kernel image to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// A file (`vmlinuz`, `bzImage`).
    Path(PathBuf),
    /// Debian's of this suite.
    Debian(&'static str),
}

impl Image {
    /// Reads `debian:SUITE`, or else a path.
    ///
    /// # Errors
    /// There is no such suite, or no such file.
    pub fn parse(text: &str) -> Result<Image, LabError> {
        if let Some(name) = text.strip_prefix("debian:") {
            let known = SUITES.into_iter().find(|suite| *suite == name);
            return known.map(Image::Debian).ok_or_else(|| {
                LabError::new(
                    format!("no kernel is known for '{text}'"),
                    format!("there are debian:{}; or give the path of an image", SUITES.join(", debian:")),
                )
            });
        }
        let path = PathBuf::from(text);
        if path.is_file() {
            return Ok(Image::Path(path));
        }
        Err(LabError::new(
            format!("{text}: there is no such kernel image"),
            format!("give the path of a vmlinuz, or one of debian:{}", SUITES.join(", debian:")),
        ))
    }

    /// The file to boot: fetched, if it is not there yet, or if `refresh` asks for the suite's newest.
    pub(super) fn file(&self, refresh: bool, stop: &AtomicBool) -> Result<PathBuf, LabError> {
        let suite = match self {
            Image::Path(path) => return check(path).map(|()| path.clone()),
            Image::Debian(suite) => suite,
        };
        let cache = Cache::open()?;
        let name = format!("kernels/{suite}");
        let there = cache.path(&name).join("vmlinuz");
        if there.is_file() && !refresh {
            return Ok(there);
        }
        let apt = Apt::of_suite(suite, &cache, stop)?;
        let kernel = apt.needs(META_PACKAGE)?.into_iter().find(|need| need.starts_with("linux-image-"));
        let kernel = kernel.ok_or_else(|| not_found(suite))?;
        let folder = cache.build(&name, |folder| {
            if !unpack(&apt.download(&kernel)?, folder)? {
                // Newer packages of a kernel need the one that holds it.
                let binary = apt.needs(&kernel)?.into_iter().find(|need| need.starts_with("linux-binary-"));
                let package = apt.download(&binary.ok_or_else(|| not_found(suite))?)?;
                if !unpack(&package, folder)? {
                    return Err(not_found(suite));
                }
            }
            let named = fs::write(folder.join("package"), format!("{kernel}\n"));
            named.map_err(|error| failed(folder, &error))
        })?;
        apt.clean();
        let file = folder.join("vmlinuz");
        check(&file).map(|()| file)
    }
}

impl std::fmt::Display for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Image::Path(path) => write!(f, "{}", path.display()),
            Image::Debian(suite) => write!(f, "debian:{suite}"),
        }
    }
}

fn not_found(suite: &str) -> LabError {
    LabError::new(
        format!("{suite} has no kernel where it is expected ({META_PACKAGE})"),
        "fetch one yourself and give its path",
    )
}

/// Takes the image out of a package; `false` if it holds none.
fn unpack(package: &Path, folder: &Path) -> Result<bool, LabError> {
    let told = |error: std::io::Error| failed(package, &error);
    let mut reading = Command::new("dpkg-deb");
    let mut reading =
        reading.arg("--fsys-tarfile").arg(package).stdout(Stdio::piped()).spawn().map_err(told)?;
    let mut taking = Command::new("tar");
    taking.arg("--directory").arg(folder);
    taking.args(["--extract", "--wildcards", "--no-same-owner", "--transform", "s,.*/,,"]);
    taking.args(["./boot/vmlinuz-*", "./usr/lib/modules/*/vmlinuz"]);
    // Of the two places a package has at most one, and tar complains of the other.
    let pipe = reading.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let taken = taking.stdin(pipe).stderr(Stdio::null()).status();
    let read = reading.wait().map_err(told)?;
    taken.map_err(told)?;
    if !read.success() {
        return Err(LabError::new(format!("{} is no package", package.display()), "try again"));
    }
    let entries = fs::read_dir(folder).map_err(told)?.flatten();
    let image = entries
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz")));
    match image {
        Some(image) => fs::rename(image, folder.join("vmlinuz")).map(|()| true).map_err(told),
        None => Ok(false),
    }
}

/// Whether a file is a kernel image for this architecture: Documentation/arch/x86/boot.rst, "HdrS" at 0x202.
fn check(path: &Path) -> Result<(), LabError> {
    use std::os::unix::fs::FileExt;
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut magic, 0x202));
    match read {
        Ok(()) if &magic == b"HdrS" => Ok(()),
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            Err(LabError::new(format!("{}: {error}", path.display()), "check the path and who may read it"))
        }
        _ => Err(LabError::new(
            format!("{} is no kernel image for x86", path.display()),
            "give a vmlinuz or bzImage, not a vmlinux",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths() {
        assert_eq!(Image::parse("debian:trixie"), Ok(Image::Debian("trixie")));
        let error = Image::parse("debian:woody").expect_err("too old");
        assert!(error.hint.contains("debian:bookworm"), "{error}");
        assert!(Image::parse("/no/such/vmlinuz").is_err());
    }

    #[test]
    fn what_is_no_image_is_told() {
        let path = std::env::temp_dir().join(format!("fairlab-image-{}", std::process::id()));
        for content in [&b"short"[..], &[0; 4096]] {
            fs::write(&path, content).expect("written");
            let error = check(&path).expect_err("no image");
            assert!(error.problem.contains("no kernel image"), "{error}");
        }
        let mut image = [0; 4096];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        fs::write(&path, image).expect("written");
        assert_eq!(check(&path), Ok(()));
        fs::remove_file(&path).expect("removed");
        assert!(check(&path).is_err());
    }
}
