//! Packages of Debian and Ubuntu by apt's own programs, with a configuration, lists and a cache of our own: what this system
//! has installed, and where it would install from, stays as it is. Apt checks the archive's signatures.
//!
//! Must not know: what the packages are for.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::cache::{Cache, failed, free_mib};
use super::hardware::Architecture;
use crate::LabError;

/// With less than this, MiB, a fetch that failed had no room: the next file that it would write is larger.
const FULL_MIB: u64 = 16;

/// Whose packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distribution {
    Debian,
    Ubuntu,
}

impl Distribution {
    /// As its archive calls itself.
    const fn origin(self) -> &'static str {
        match self {
            Distribution::Debian => "Debian",
            Distribution::Ubuntu => "Ubuntu",
        }
    }

    /// Where the archive is if this system's own lists do not say it.
    const fn address(self) -> &'static str {
        match self {
            Distribution::Debian => "http://deb.debian.org/debian",
            Distribution::Ubuntu => "http://archive.ubuntu.com/ubuntu",
        }
    }

    /// The keys of the archive, as both install them.
    const fn keys(self) -> &'static str {
        match self {
            Distribution::Debian => "/usr/share/keyrings/debian-archive-keyring.gpg",
            Distribution::Ubuntu => "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
        }
    }
}

/// Debian's suite and package that have Ubuntu's keys, for systems without them.
const KEYS_OF_UBUNTU: (&str, &str) = ("trixie", "ubuntu-keyring");

/// One suite of an archive.
#[derive(Debug)]
pub(super) struct Apt<'s> {
    folder: PathBuf,
    distribution: Distribution,
    /// The keys that its lists are signed with; none: those that this system trusts.
    keys: Option<PathBuf>,
    suite: String,
    architecture: Architecture,
    stop: &'s AtomicBool,
}

impl<'s> Apt<'s> {
    /// Prepares and reads the lists of a suite of Debian's (`bookworm`).
    pub fn of_debian(
        suite: &str,
        architecture: Architecture,
        cache: &Cache,
        stop: &'s AtomicBool,
    ) -> Result<Apt<'s>, LabError> {
        let keys = Path::new(Distribution::Debian.keys());
        let keys = keys.exists().then(|| keys.to_path_buf());
        Apt::of_suite(Distribution::Debian, keys, suite, architecture, cache, stop)
    }

    /// Prepares and reads the lists of a suite of Ubuntu's for PCs (`jammy-updates`). Where Ubuntu's keys are not installed,
    /// Debian's package has them.
    pub fn of_ubuntu(suite: &str, cache: &Cache, stop: &'s AtomicBool) -> Result<Apt<'s>, LabError> {
        let keys = keys_of_ubuntu(cache, stop)?;
        Apt::of_suite(Distribution::Ubuntu, Some(keys), suite, Architecture::Amd64, cache, stop)
    }

    fn of_suite(
        distribution: Distribution,
        keys: Option<PathBuf>,
        suite: &str,
        architecture: Architecture,
        cache: &Cache,
        stop: &'s AtomicBool,
    ) -> Result<Apt<'s>, LabError> {
        let folder = cache.path(&format!("apt/{suite}{}", architecture.suffix()));
        let apt = Apt { folder, distribution, keys, suite: suite.to_string(), architecture, stop };
        cache.has_room()?;
        apt.configure().map_err(|error| failed(&apt.folder, &error))?;
        apt.run(Command::new("apt-get").args(["--quiet", "update"]), "read the archive's lists")?;
        Ok(apt)
    }

    fn configure(&self) -> io::Result<()> {
        for folder in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(self.folder.join(folder))?;
        }
        let signed =
            self.keys.as_ref().map_or(String::new(), |keys| format!("signed-by={} ", keys.display()));
        let architecture = self.architecture.of_debian();
        let archive = archive(self.distribution);
        let source = format!("deb [{signed}arch={architecture}] {archive} {} main\n", self.suite);
        fs::write(self.folder.join("sources.list"), source)?;
        // As on a machine with nothing installed: all that a package needs is fetched with it.
        fs::write(self.folder.join("status"), "")?;
        let path = |name: &str| self.folder.join(name).display().to_string();
        let configuration = format!(
            "Dir::Etc::sourcelist \"{}\";\nDir::Etc::sourceparts \"-\";\nDir::Etc::preferencesparts \"-\";\n\
             Dir::State \"{}\";\nDir::State::lists \"{}\";\nDir::State::status \"{}\";\n\
             Dir::Cache \"{}\";\nDir::Cache::archives \"{}\";\n\
             APT::Architecture \"{architecture}\";\nAPT::Architectures \"{architecture}\";\n\
             APT::Sandbox::User \"\";\nAPT::Install-Recommends \"false\";\nAPT::Update::Error-Mode \"any\";\n\
             Acquire::Languages \"none\";\nAcquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
             Acquire::http::Timeout \"30\";\nAcquire::Retries \"2\";\n",
            path("sources.list"),
            path(""),
            path("lists"),
            path("status"),
            path(""),
            path("archives"),
        );
        fs::write(self.folder.join("apt.conf"), configuration)
    }

    /// Its suite's name.
    pub fn suite(&self) -> &str {
        &self.suite
    }

    /// What a package needs: `Depends`, of each the first that would do.
    pub fn needs(&self, package: &str) -> Result<Vec<String>, LabError> {
        let shown = self.run(
            Command::new("apt-cache").args(["show", "--no-all-versions", package]),
            "look up a package",
        )?;
        let line = shown.lines().find_map(|line| line.strip_prefix("Depends: ")).unwrap_or_default();
        let name = |need: &str| need.split(['|', '(']).next().unwrap_or_default().trim().to_string();
        Ok(line.split(',').map(name).collect())
    }

    /// The packages whose names match a regular expression.
    pub fn named(&self, pattern: &str) -> Result<Vec<String>, LabError> {
        let found = self
            .run(Command::new("apt-cache").args(["search", "--names-only", pattern]), "look for a package")?;
        Ok(found.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_string())).collect())
    }

    /// Fetches one package. Returns its file, which is the caller's to remove.
    pub fn download(&self, package: &str) -> Result<PathBuf, LabError> {
        let folder = self.folder.join("one");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
        let mut command = Command::new("apt-get");
        self.run(
            command.args(["--quiet", "download", package]).current_dir(&folder),
            &format!("fetch {package}"),
        )?;
        packages_in(&folder)?
            .pop()
            .ok_or_else(|| LabError::new(format!("{package} was fetched and is not there"), "try again"))
    }

    /// Fetches a package and all that it needs. Returns their files.
    pub fn download_with_needs(&self, package: &str) -> Result<Vec<PathBuf>, LabError> {
        let mut command = Command::new("apt-get");
        command.args(["--quiet", "--yes", "--download-only", "install", package]);
        self.run(&mut command, &format!("fetch {package} and what it needs"))?;
        packages_in(&self.folder.join("archives"))
    }

    /// Removes the packages that were fetched.
    pub fn clean(&self) {
        for folder in ["archives", "one"] {
            let _ = fs::remove_dir_all(self.folder.join(folder));
        }
    }

    fn run(&self, command: &mut Command, what: &str) -> Result<String, LabError> {
        command.env("APT_CONFIG", self.folder.join("apt.conf")).env("LC_ALL", "C");
        let (succeeded, output, errors) = output(command, self.stop).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LabError::new(
                "this system has no apt, by which packages are fetched",
                "give the path of a kernel image, and install QEMU 11 or later",
            ),
            _ => LabError::new(format!("cannot {what}: {error}"), "try again"),
        })?;
        if succeeded {
            return Ok(output);
        }
        if free_mib(&self.folder).is_ok_and(|free| free < FULL_MIB) {
            // What is there in part takes the room that somebody will have to make.
            self.clean();
            let _ = fs::remove_dir_all(self.folder.join("lists"));
            return Err(LabError::new(
                format!("cannot {what} of {}: {} has no free space left", self.suite, self.folder.display()),
                "make room there, or set XDG_CACHE_HOME to another place",
            ));
        }
        let said =
            errors.lines().rev().find(|line| line.starts_with("E: ")).unwrap_or("E: it does not say why");
        Err(LabError::new(
            format!(
                "cannot {what} of {} at {}: {}",
                self.suite,
                archive(self.distribution),
                said.trim_start_matches("E: ")
            ),
            "see whether the network is there, or give the path of a kernel image",
        ))
    }
}

fn packages_in(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let entries = fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    let mut packages: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    packages.retain(|path| path.extension().is_some_and(|suffix| suffix == "deb"));
    packages.sort_unstable();
    Ok(packages)
}

/// Where Ubuntu's keys are: installed, or taken from Debian's package, which Debian's own keys vouch for.
fn keys_of_ubuntu(cache: &Cache, stop: &AtomicBool) -> Result<PathBuf, LabError> {
    let installed = Path::new(Distribution::Ubuntu.keys());
    let name = installed.strip_prefix("/").unwrap_or(installed);
    let kept = cache.path("keys").join(name);
    if let Some(keys) = [installed, &kept].into_iter().find(|path| path.is_file()) {
        return Ok(keys.to_path_buf());
    }
    let (suite, package) = KEYS_OF_UBUNTU;
    let apt = Apt::of_debian(suite, Architecture::Amd64, cache, stop)?;
    let package = apt.download(package)?;
    cache.build("keys", |folder| unpack_all(&package, folder))?;
    apt.clean();
    if kept.is_file() {
        return Ok(kept);
    }
    Err(LabError::new(
        format!("Debian's package {} does not hold Ubuntu's keys as {}", KEYS_OF_UBUNTU.1, name.display()),
        "fetch a kernel yourself and give its path",
    ))
}

/// Unpacks a package whole.
pub(super) fn unpack_all(package: &Path, folder: &Path) -> Result<(), LabError> {
    let status = Command::new("dpkg-deb").arg("--extract").arg(package).arg(folder).status();
    match status {
        Ok(status) if status.success() => fs::remove_file(package)
            .map_err(|error| LabError::new(format!("{}: {error}", package.display()), "check the place")),
        _ => Err(LabError::new(
            format!("{} cannot be unpacked into {}", package.display(), folder.display()),
            "check the free space there",
        )),
    }
}

/// The archive that this system installs from.
fn archive(distribution: Distribution) -> String {
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(ORIGIN) $(CODENAME) $(REPO_URI)"]);
    let listed = command.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let listed = archive_of(distribution.origin(), &listed.unwrap_or_default());
    listed.unwrap_or_else(|| distribution.address().to_string())
}

/// The first of a distribution's that holds releases, not what is added to one later.
fn archive_of(origin: &str, targets: &str) -> Option<String> {
    targets.lines().find_map(|line| {
        let (whose, rest) = line.split_once(' ')?;
        let (codename, uri) = rest.split_once(' ')?;
        (whose == origin && !codename.contains('-')).then(|| uri.trim_end_matches('/').to_string())
    })
}

/// Runs a program to its end, or until `stop` is set. Returns whether it succeeded, and what it said on both ways.
pub(super) fn output(command: &mut Command, stop: &AtomicBool) -> io::Result<(bool, String, String)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let text = |pipe: Option<Box<dyn Read + Send>>| {
        let mut bytes = Vec::new();
        let read = pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes));
        read.map(|_| String::from_utf8_lossy(&bytes).into_owned())
    };
    thread::scope(|scope| {
        let out = scope.spawn(|| text(out.map(|pipe| Box::new(pipe) as _)));
        let err = scope.spawn(|| text(err.map(|pipe| Box::new(pipe) as _)));
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if stop.load(Ordering::Relaxed) {
                child.kill()?;
            }
            thread::sleep(Duration::from_millis(10));
        };
        let join = |thread: thread::ScopedJoinHandle<'_, io::Result<String>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Ok((status.success(), join(out)?, join(err)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_the_one_with_releases() {
        let targets = "Other x http://other/\nDebian bookworm-security http://a/debian-security/\nDebian bookworm http://a/debian/\n";
        assert_eq!(archive_of("Debian", targets).as_deref(), Some("http://a/debian"));
        assert_eq!(archive_of("Debian", "Ubuntu noble http://b/\n"), None);
        assert_eq!(archive_of("Ubuntu", "Ubuntu noble http://b/\n").as_deref(), Some("http://b"));
    }

    #[test]
    fn a_program_is_run_to_its_end_or_stopped() {
        let go_on = AtomicBool::new(false);
        let told =
            output(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]), &go_on).expect("run");
        assert_eq!(told, (false, "out\n".to_string(), "err\n".to_string()));
        let (succeeded, ..) =
            output(Command::new("sleep").arg("600"), &AtomicBool::new(true)).expect("stopped");
        assert!(!succeeded);
        assert!(output(&mut Command::new("/no/such/program"), &go_on).is_err());
    }
}
