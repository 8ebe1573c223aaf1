//! Packages of Debian and Ubuntu, by apt's own programs with a configuration, lists and a cache of our own.
//!
//! The system's installed packages and sources stay as they are. Apt checks the archive's signatures.
//!
//! Must not know: what the packages are for.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::LabError;
use crate::cache::{CacheFolder, failed, free_mib};

/// With less than this, MiB, a fetch that failed had no room: the next file that it would write is larger.
const FULL_MIB: u64 = 16;

/// What Debian calls the architecture of PCs.
const PC: &str = "amd64";

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

    /// The variable that says where the archive is, for systems whose own lists do not.
    const fn variable(self) -> &'static str {
        match self {
            Distribution::Debian => "FAIRLAB_DEBIAN_ARCHIVE",
            Distribution::Ubuntu => "FAIRLAB_UBUNTU_ARCHIVE",
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

/// What apt has to check, whatever this system's own configuration says: that stands above a file of ours, and below these. How old
/// lists may be is the system's to say: a mirror may be one of another day.
const CHECKS: [&str; 6] = [
    "APT::Get::AllowUnauthenticated=false",
    "Acquire::AllowInsecureRepositories=false",
    "Acquire::AllowDowngradeToInsecureRepositories=false",
    "Acquire::AllowWeakRepositories=false",
    "Acquire::https::Verify-Peer=true",
    "Acquire::https::Verify-Host=true",
];

/// Debian's suite and package that have Ubuntu's keys, for systems without them.
const KEYS_OF_UBUNTU: (&str, &str) = ("trixie", "ubuntu-keyring");

/// One suite of an archive.
#[derive(Debug)]
pub struct Apt<'s> {
    folder: PathBuf,
    /// The keys that its lists are signed with.
    keys: PathBuf,
    /// Where the archive is.
    archive: String,
    suite: String,
    architecture: &'static str,
    stop: &'s AtomicBool,
}

impl<'s> Apt<'s> {
    /// Prepares and reads the lists of a suite of Debian's (`bookworm`) for an architecture, as Debian names it.
    ///
    /// # Errors
    /// Debian's keys are not installed, the archive is not known, or its lists cannot be read.
    pub fn of_debian(
        suite: &str,
        architecture: &'static str,
        cache: &CacheFolder,
        stop: &'s AtomicBool,
    ) -> Result<Apt<'s>, LabError> {
        let keys = PathBuf::from(Distribution::Debian.keys());
        if !keys.is_file() {
            let problem = format!("the keys of Debian's archive are not there: {}", keys.display());
            return Err(LabError::new(problem, "install the package debian-archive-keyring"));
        }
        Apt::of_suite(Distribution::Debian, keys, suite, architecture, cache, stop)
    }

    /// As [`of_debian`](Self::of_debian); `None` where the archive has no such suite, or none any more whose lists are good.
    ///
    /// # Errors
    /// As there.
    pub fn of_debian_if_there(
        suite: &str,
        architecture: &'static str,
        cache: &CacheFolder,
        stop: &'s AtomicBool,
    ) -> Result<Option<Apt<'s>>, LabError> {
        match Apt::of_debian(suite, architecture, cache, stop) {
            Err(error) if is_of_no_suite(&error.problem) => Ok(None),
            apt => apt.map(Some),
        }
    }

    /// Prepares and reads the lists of a suite of Ubuntu's for PCs (`jammy-updates`). Where Ubuntu's keys are not installed,
    /// Debian's package has them.
    ///
    /// # Errors
    /// As [`of_debian`](Self::of_debian).
    pub fn of_ubuntu(suite: &str, cache: &CacheFolder, stop: &'s AtomicBool) -> Result<Apt<'s>, LabError> {
        let keys = keys_of_ubuntu(cache, stop)?;
        Apt::of_suite(Distribution::Ubuntu, keys, suite, PC, cache, stop)
    }

    fn of_suite(
        distribution: Distribution,
        keys: PathBuf,
        suite: &str,
        architecture: &'static str,
        cache: &CacheFolder,
        stop: &'s AtomicBool,
    ) -> Result<Apt<'s>, LabError> {
        let other = if architecture == PC { String::new() } else { format!("-{architecture}") };
        let folder = cache.path(&format!("apt/{suite}{other}"));
        let archive = archive(distribution)?;
        // Fixes of security are an archive beside the one of releases.
        let archive = if suite.ends_with("-security") && distribution == Distribution::Debian {
            format!("{archive}-security")
        } else {
            archive
        };
        let apt = Apt { folder, keys, archive, suite: suite.to_string(), architecture, stop };
        cache.has_room()?;
        apt.configure().map_err(|error| failed(&apt.folder, &error))?;
        apt.run(Command::new("apt-get").args(["--quiet", "update"]), "read the archive's lists")?;
        Ok(apt)
    }

    fn configure(&self) -> io::Result<()> {
        for folder in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(self.folder.join(folder))?;
        }
        let architecture = self.architecture;
        let (keys, archive) = (self.keys.display(), &self.archive);
        let source = format!("deb [signed-by={keys} arch={architecture}] {archive} {} main\n", self.suite);
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
    ///
    /// # Errors
    /// Apt fails, or was stopped.
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
    ///
    /// # Errors
    /// Apt fails, or was stopped.
    pub fn named(&self, pattern: &str) -> Result<Vec<String>, LabError> {
        let found = self
            .run(Command::new("apt-cache").args(["search", "--names-only", pattern]), "look for a package")?;
        Ok(found.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_string())).collect())
    }

    /// The versions of a package that the suite has, the newest first.
    ///
    /// # Errors
    /// Apt fails, or was stopped.
    pub fn versions(&self, package: &str) -> Result<Vec<String>, LabError> {
        let listed =
            self.run(Command::new("apt-cache").args(["madison", package]), "look up a package's versions")?;
        Ok(versions_in(&listed))
    }

    /// Fetches one package, or with `PACKAGE=VERSION` one version of it. Returns its file, which is the caller's to remove.
    ///
    /// # Errors
    /// Apt fails, or was stopped.
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
    ///
    /// # Errors
    /// Apt fails, or was stopped.
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
        let list = format!("Dir::Etc::sourcelist={}", self.folder.join("sources.list").display());
        for setting in CHECKS.into_iter().chain([list.as_str(), "Dir::Etc::sourceparts=-"]) {
            command.args(["-o", setting]);
        }
        let (succeeded, output, errors) = output(command, self.stop).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LabError::new(
                "this system has no apt, by which packages are fetched",
                "give the path of a kernel that you have",
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
                self.archive,
                said.trim_start_matches("E: ")
            ),
            "see whether the network is there, or give the path of a kernel that you have",
        ))
    }
}

/// Whether apt says that a suite is not to be had, rather than the archive.
fn is_of_no_suite(problem: &str) -> bool {
    ["does not have a Release file", "no longer has a Release file", "is expired (", "is not signed"]
        .iter()
        .any(|words| problem.contains(words))
}

/// Of lines `linux-source-6.1 | 6.1.176-1 | ARCHIVE SUITE Packages`, what stands in the second column.
fn versions_in(listed: &str) -> Vec<String> {
    listed.lines().filter_map(|line| Some(line.split('|').nth(1)?.trim().to_string())).collect()
}

fn packages_in(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let entries = fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    let mut packages: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    packages.retain(|path| path.extension().is_some_and(|suffix| suffix == "deb"));
    packages.sort_unstable();
    Ok(packages)
}

/// Where Ubuntu's keys are: installed, or taken from Debian's package, which Debian's own keys vouch for.
fn keys_of_ubuntu(cache: &CacheFolder, stop: &AtomicBool) -> Result<PathBuf, LabError> {
    let installed = Path::new(Distribution::Ubuntu.keys());
    let name = installed.strip_prefix("/").unwrap_or(installed);
    let kept = cache.path("keys").join(name);
    if let Some(keys) = [installed, &kept].into_iter().find(|path| path.is_file()) {
        return Ok(keys.to_path_buf());
    }
    let (suite, package) = KEYS_OF_UBUNTU;
    let apt = Apt::of_debian(suite, PC, cache, stop)?;
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

/// Unpacks a package whole, and removes it.
///
/// # Errors
/// It is no package, or there is no room.
pub fn unpack_all(package: &Path, folder: &Path) -> Result<(), LabError> {
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

/// The archive that the user names, or the one that this system installs from.
fn archive(distribution: Distribution) -> Result<String, LabError> {
    let (variable, origin) = (distribution.variable(), distribution.origin());
    if let Some(said) = std::env::var_os(variable) {
        let said = said.to_string_lossy().trim_end_matches('/').to_string();
        if is_address(&said) {
            return Ok(said);
        }
        let hint = "give an address as it stands in apt's lists: https://HOST/PATH";
        return Err(LabError::new(format!("{variable}: '{said}' is no address of an archive"), hint));
    }
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(ORIGIN) $(CODENAME) $(REPO_URI)"]);
    let listed = command.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    archive_of(origin, &listed.unwrap_or_default()).ok_or_else(|| {
        LabError::new(
            format!("where {origin}'s archive is this system's apt does not say"),
            format!("set {variable} to its address, or give the path of a kernel that you have"),
        )
    })
}

/// Whether this can stand in a line of apt's lists: a scheme that apt checks signatures behind, and nothing that ends the word.
fn is_address(text: &str) -> bool {
    let schemes = ["https://", "http://", "file:///", "mirror+https://", "mirror+http://"];
    let plain = |char: char| char.is_ascii_graphic() && !matches!(char, '[' | ']' | '"' | '#');
    schemes.iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
        && text.chars().all(plain)
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
///
/// # Errors
/// It cannot be started.
pub fn output(command: &mut Command, stop: &AtomicBool) -> io::Result<(bool, String, String)> {
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
    fn versions_stand_in_the_second_column() {
        let listed = "linux-source-6.1 | 6.1.176-1 | http://archive.example bookworm/main amd64 Packages\n\
                      linux-source-6.1 | 6.1.170-3 | http://archive.example bookworm/main amd64 Packages\n";
        assert_eq!(versions_in(listed), ["6.1.176-1", "6.1.170-3"]);
        assert!(versions_in("").is_empty());
    }

    #[test]
    fn a_missing_suite_is_no_missing_archive() {
        let of =
            |said: &str| is_of_no_suite(&format!("cannot read the archive's lists of x at http://a: {said}"));
        assert!(of("The repository 'http://a bullseye-backports Release' does not have a Release file."));
        assert!(of("Release file for http://a/InRelease is expired (invalid since 3d)"));
        assert!(!of("Failed to fetch http://a/InRelease  Could not resolve 'a'"));
    }

    #[test]
    fn addresses_are_one_word_of_a_list() {
        for address in ["https://deb.example/debian", "http://[::1", "file:///srv/debian"] {
            assert_eq!(is_address(address), !address.contains('['), "{address}");
        }
        for other in [
            "",
            "https://",
            "ftp://x/",
            "https://a b",
            "https://a\nb",
            "[trusted=yes] https://a",
            "/srv/debian",
        ] {
            assert!(!is_address(other), "{other}");
        }
    }

    /// The system's own configuration may allow what it likes: apt takes the command line's word.
    #[test]
    fn checks_hold_whatever_the_system_allows() {
        let allows = CHECKS.map(|check| {
            let (name, value) = check.split_once('=').expect("a setting");
            format!("{name} \"{}\";\n", if value == "true" { "false" } else { "true" })
        });
        let folder = crate::temporary::PrivateFolder::create().expect("a folder");
        let parts = folder.path().join("parts");
        fs::create_dir(&parts).expect("a folder");
        fs::write(parts.join("99allow"), allows.concat()).expect("written");
        let mut command = Command::new("apt-config");
        fs::write(folder.path().join("apt.conf"), format!("Dir::Etc::Parts \"{}\";\n", parts.display()))
            .expect("written");
        command.env("APT_CONFIG", folder.path().join("apt.conf")).arg("dump");
        command.args(CHECKS.iter().flat_map(|check| ["-o", check]));
        // Systems without apt fetch nothing by it.
        let Ok(output) = command.output() else { return };
        let dump = String::from_utf8_lossy(&output.stdout).into_owned();
        for check in CHECKS {
            let (name, value) = check.split_once('=').expect("a setting");
            assert!(dump.contains(&format!("{name} \"{value}\";")), "{check}: {dump}");
        }
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
