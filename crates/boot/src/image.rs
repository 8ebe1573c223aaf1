//! Kernel images: a file, Debian's by the name of a suite, or Ubuntu's by that of a release.
//!
//! Must not know: how one is booted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use crate::hardware::Architecture;
use crate::ubuntu::{KERNELS, UbuntuPackage};
use fairlab_event::spelling::may_be_meant;
use fairlab_files::LabError;
use fairlab_files::apt::Apt;
use fairlab_files::cache::{CacheFolder, failed};

/// The suites that are known by name, with the generation of the model whose rules theirs are.
///
/// bullseye, bookworm, trixie and sid have 5.10, 6.1, 6.12 and what is newest.
pub const SUITES: [&str; 4] = ["bullseye", "bookworm", "trixie", "sid"];

/// The package that needs the suite's kernel: for PCs the one for virtual machines, which has drivers built in that others load.
const fn meta_package(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Amd64 => "linux-image-cloud-amd64",
        Architecture::Arm64 => "linux-image-arm64",
    }
}

/// The driver of boards' clocks, which Debian's kernels load.
const DRIVER: &str = "cpufreq-dt.ko";

/// What is booted: the kernel, and modules that it loads before anything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FetchedImage {
    pub kernel: PathBuf,
    pub modules: Vec<PathBuf>,
}

/// A kernel image to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelImage {
    /// A file (`vmlinuz`, `bzImage`).
    Path(PathBuf),
    /// Debian's of this suite.
    Debian(&'static str),
    /// One of Ubuntu's.
    Ubuntu(UbuntuPackage),
}

impl KernelImage {
    /// Reads `debian:SUITE` or `ubuntu:RELEASE`, or else a path.
    ///
    /// # Errors
    /// There is no such suite, release or file.
    pub fn parse(text: &str) -> Result<KernelImage, LabError> {
        let known = if let Some(name) = text.strip_prefix("debian:") {
            SUITES.into_iter().find(|suite| *suite == name).map(KernelImage::Debian)
        } else if let Some(release) = text.strip_prefix("ubuntu:") {
            UbuntuPackage::of(release).map(KernelImage::Ubuntu)
        } else {
            let path = PathBuf::from(text);
            path.is_file().then_some(KernelImage::Path(path))
        };
        known.ok_or_else(|| {
            let hint = match text.split_once(':').map_or(text, |(kind, _)| kind) {
                "debian" => {
                    let suites = SUITES.map(|suite| format!("debian:{suite}"));
                    let meant = may_be_meant(text, suites.iter().map(String::as_str));
                    format!("{meant}there are {}", suites.join(", "))
                }
                "ubuntu" => {
                    let releases = KERNELS.map(|kernel| kernel.release);
                    format!("behind ubuntu: stands one of {}", releases.join(", "))
                }
                _ => format!(
                    "give the path of a vmlinuz, debian:SUITE (debian:{}) or ubuntu:RELEASE (ubuntu:6.8)",
                    SUITES[0]
                ),
            };
            LabError::new(format!("{text}: there is no such kernel image"), hint)
        })
    }

    /// The files to boot: fetched, if they are not there yet, or if `refresh` asks for the suite's newest.
    pub(super) fn files(
        &self,
        architecture: Architecture,
        refresh: bool,
        stop: &AtomicBool,
    ) -> Result<FetchedImage, LabError> {
        let name = match self {
            KernelImage::Path(path) => {
                check(path, architecture)?;
                return Ok(FetchedImage { kernel: path.clone(), modules: Vec::new() });
            }
            KernelImage::Debian(suite) => format!("kernels/{suite}{}", architecture.suffix()),
            KernelImage::Ubuntu(_) if architecture != Architecture::Amd64 => {
                return Err(LabError::new(
                    format!("{self}: Ubuntu's kernels are known for PCs only"),
                    format!("boot one of debian:{} on a board", SUITES.join(", debian:")),
                ));
            }
            KernelImage::Ubuntu(kernel) => format!("kernels/ubuntu-{}", kernel.release),
        };
        let cache = CacheFolder::open()?;
        let mut folder = cache.path(&name);
        if !folder.join(KERNEL).is_file() || refresh {
            folder = cache.build(&name, |folder| self.fetch(architecture, &cache, folder, stop))?;
        }
        let (kernel, driver) = (folder.join(KERNEL), folder.join(DRIVER));
        check(&kernel, architecture)?;
        Ok(FetchedImage {
            kernel,
            modules: Some(driver).filter(|driver| driver.is_file()).into_iter().collect(),
        })
    }

    /// Fetches the newest into a folder.
    fn fetch(
        &self,
        architecture: Architecture,
        cache: &CacheFolder,
        folder: &Path,
        stop: &AtomicBool,
    ) -> Result<(), LabError> {
        let (apt, package) = match self {
            KernelImage::Path(_) => return Ok(()),
            KernelImage::Debian(suite) => {
                let apt = Apt::of_debian(suite, architecture.of_debian(), cache, stop)?;
                let package = fetch_debians(architecture, &apt, folder)?;
                (apt, package)
            }
            KernelImage::Ubuntu(kernel) => {
                let apt = Apt::of_ubuntu(kernel.suite, cache, stop)?;
                let package = fetch_ubuntus(*kernel, &apt, folder)?;
                (apt, package)
            }
        };
        apt.clean();
        let named = fs::write(folder.join("package"), format!("{package}\n"));
        named.map_err(|error| failed(folder, &error))
    }
}

/// The image's name where it is kept.
const KERNEL: &str = "vmlinuz";

/// Fetches the kernel of a suite of Debian's and takes out of its packages what is booted. Returns the package's name.
fn fetch_debians(architecture: Architecture, apt: &Apt<'_>, folder: &Path) -> Result<String, LabError> {
    let meta = meta_package(architecture);
    let kernel = apt.needs(meta)?.into_iter().find(|need| need.starts_with("linux-image-"));
    let kernel = kernel.ok_or_else(|| not_found(apt, meta))?;
    let complete = || {
        folder.join(KERNEL).is_file()
            && (architecture == Architecture::Amd64 || folder.join(DRIVER).is_file())
    };
    unpack(&apt.download(&kernel)?, folder)?;
    // Newer packages of a kernel need the ones that hold it and its modules.
    for part in ["linux-binary-", "linux-modules-"] {
        if !complete() {
            let package = apt.needs(&kernel)?.into_iter().find(|need| need.starts_with(part));
            unpack(&apt.download(&package.ok_or_else(|| not_found(apt, meta))?)?, folder)?;
        }
    }
    if complete() { Ok(kernel) } else { Err(not_found(apt, meta)) }
}

/// Fetches the newest build of a kernel of Ubuntu's. Returns the package's name.
fn fetch_ubuntus(kernel: UbuntuPackage, apt: &Apt<'_>, folder: &Path) -> Result<String, LabError> {
    let packages = kernel.packages();
    let newest = apt.named(&packages)?.into_iter().max_by_key(|package| kernel.build(package));
    let newest = newest.ok_or_else(|| not_found(apt, &packages))?;
    unpack(&apt.download(&newest)?, folder)?;
    if folder.join(KERNEL).is_file() { Ok(newest) } else { Err(not_found(apt, &packages)) }
}

fn not_found(apt: &Apt<'_>, package: &str) -> LabError {
    LabError::new(
        format!("{} has no kernel where it is expected ({package})", apt.suite()),
        "fetch one yourself and give its path",
    )
}

impl std::fmt::Display for KernelImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KernelImage::Path(path) => write!(f, "{}", path.display()),
            KernelImage::Debian(suite) => write!(f, "debian:{suite}"),
            KernelImage::Ubuntu(kernel) => write!(f, "{kernel}"),
        }
    }
}

/// Takes image and driver out of a package, as far as it holds them.
fn unpack(package: &Path, folder: &Path) -> Result<(), LabError> {
    let told = |error: std::io::Error| failed(package, &error);
    let mut reading = Command::new("dpkg-deb");
    let mut reading =
        reading.arg("--fsys-tarfile").arg(package).stdout(Stdio::piped()).spawn().map_err(told)?;
    let mut taking = Command::new("tar");
    taking.arg("--directory").arg(folder);
    taking.args(["--extract", "--wildcards", "--no-same-owner", "--transform", "s,.*/,,"]);
    taking.args(["./boot/vmlinuz-*", "./usr/lib/modules/*/vmlinuz", &format!("*/drivers/cpufreq/{DRIVER}*")]);
    // A package has at most some of these, and tar complains of the others.
    let pipe = reading.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let taken = taking.stdin(pipe).stderr(Stdio::null()).status();
    let read = reading.wait().map_err(told)?;
    taken.map_err(told)?;
    if !read.success() {
        return Err(LabError::new(format!("{} is no package", package.display()), "try again"));
    }
    for path in fs::read_dir(folder).map_err(told)?.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("vmlinuz-") {
            fs::rename(&path, folder.join(KERNEL)).map_err(told)?;
        } else if name.ends_with(".xz") {
            let status = Command::new("xz").args(["--decompress", "--force"]).arg(&path).status();
            if !status.is_ok_and(|status| status.success()) {
                let problem = format!("{} cannot be unpacked", path.display());
                return Err(LabError::new(problem, "install xz (Debian's package xz-utils)"));
            }
        }
    }
    Ok(())
}

/// Whether a file is a kernel image for an architecture: Documentation/arch/x86/boot.rst, "HdrS" at 0x202;
/// Documentation/arch/arm64/booting.rst, "ARM\x64" at 56.
fn check(path: &Path, architecture: Architecture) -> Result<(), LabError> {
    use std::os::unix::fs::FileExt;
    let (at, wanted, name, kinds) = match architecture {
        Architecture::Amd64 => (0x202, b"HdrS", "x86", "give a vmlinuz or bzImage, not a vmlinux"),
        Architecture::Arm64 => {
            (56, b"ARM\x64", "arm64", "give an Image that is not compressed, as Debian's vmlinuz")
        }
    };
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut magic, at));
    match read {
        Ok(()) if magic == *wanted => Ok(()),
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            Err(LabError::new(format!("{}: {error}", path.display()), "check the path and its permissions"))
        }
        _ => Err(LabError::new(format!("{} is no kernel image for {name}", path.display()), kinds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths() {
        assert_eq!(KernelImage::parse("debian:trixie"), Ok(KernelImage::Debian("trixie")));
        assert_eq!(
            KernelImage::parse("ubuntu:5.15").map(|image| image.to_string()),
            Ok("ubuntu:5.15".to_string())
        );
        let unknown = [("debian:woody", "debian:bookworm"), ("ubuntu:2.6", "5.15"), ("ubuntu:jammy", "5.15")];
        for (name, hint) in unknown {
            let error = KernelImage::parse(name).expect_err("unknown");
            assert!(error.hint.contains(hint), "{error}");
        }
        assert!(KernelImage::parse("/no/such/vmlinuz").is_err());
    }

    #[test]
    fn what_is_no_image_is_told() {
        let path = std::env::temp_dir().join(format!("fairlab-image-{}", std::process::id()));
        for content in [&b"short"[..], &[0; 4096]] {
            fs::write(&path, content).expect("written");
            for architecture in [Architecture::Amd64, Architecture::Arm64] {
                let error = check(&path, architecture).expect_err("no image");
                assert!(error.problem.contains("no kernel image"), "{error}");
            }
        }
        for (at, magic, of, other) in [
            (0x202, b"HdrS", Architecture::Amd64, Architecture::Arm64),
            (56, b"ARM\x64", Architecture::Arm64, Architecture::Amd64),
        ] {
            let mut image = [0; 4096];
            image[at..at + 4].copy_from_slice(magic);
            fs::write(&path, image).expect("written");
            assert_eq!(check(&path, of), Ok(()));
            assert!(check(&path, other).is_err());
        }
        fs::remove_file(&path).expect("removed");
        assert!(check(&path, Architecture::Amd64).is_err());
    }
}
