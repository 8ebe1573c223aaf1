//! Debian's packages by apt's own programs, with a configuration, lists and a cache of our own: what this system has
//! installed, and where it would install from, stays as it is. Apt checks the archive's signatures.
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

/// Where the archive is if this system's own lists do not say it.
const ARCHIVE: &str = "http://deb.debian.org/debian";

/// The keys of the archive, as Debian installs them.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// One suite of the archive.
#[derive(Debug)]
pub(super) struct Apt<'s> {
    folder: PathBuf,
    suite: String,
    architecture: Architecture,
    stop: &'s AtomicBool,
}

impl<'s> Apt<'s> {
    /// Prepares and reads the lists of a suite (`bookworm`).
    pub fn of_suite(
        suite: &str,
        architecture: Architecture,
        cache: &Cache,
        stop: &'s AtomicBool,
    ) -> Result<Apt<'s>, LabError> {
        let folder = cache.path(&format!("apt/{suite}{}", architecture.suffix()));
        let apt = Apt { folder, suite: suite.to_string(), architecture, stop };
        cache.has_room()?;
        apt.configure().map_err(|error| failed(&apt.folder, &error))?;
        apt.run(Command::new("apt-get").args(["--quiet", "update"]), "read the archive's lists")?;
        Ok(apt)
    }

    fn configure(&self) -> io::Result<()> {
        for folder in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(self.folder.join(folder))?;
        }
        let signed = if Path::new(KEYS).exists() { format!("signed-by={KEYS} ") } else { String::new() };
        let architecture = self.architecture.of_debian();
        let source = format!("deb [{signed}arch={architecture}] {} {} main\n", archive(), self.suite);
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
                "this system has no apt, by which Debian's packages are fetched",
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
            format!("cannot {what} of {} at {}: {}", self.suite, archive(), said.trim_start_matches("E: ")),
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

/// The archive that this system installs from.
fn archive() -> String {
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(ORIGIN) $(CODENAME) $(REPO_URI)"]);
    let listed = command.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    archive_of(&listed.unwrap_or_default()).unwrap_or_else(|| ARCHIVE.to_string())
}

/// The first of Debian's that holds releases, not what is added to one later.
fn archive_of(targets: &str) -> Option<String> {
    targets.lines().find_map(|line| {
        let (origin, rest) = line.split_once(' ')?;
        let (codename, uri) = rest.split_once(' ')?;
        (origin == "Debian" && !codename.contains('-')).then(|| uri.trim_end_matches('/').to_string())
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
        assert_eq!(archive_of(targets).as_deref(), Some("http://a/debian"));
        assert_eq!(archive_of("Ubuntu noble http://b/\n"), None);
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
