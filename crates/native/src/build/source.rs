//! Where a tree comes from: a folder, a commit of a git repository, or Debian's package of sources.
//!
//! A tree is never built where it stands, and nothing is written there.
//!
//! Must not know: what is compiled.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use fairlab_files::LabError;
use fairlab_files::cache::CacheFolder;
use xxhash_rust::xxh3::Xxh3Default;

use super::BuildSteps;
use super::command::{run, succeed};
use super::packages;
use super::selection::{is_needed, walk};

/// A tree to build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A folder as it stands; of a git work tree, the files that git knows or would add.
    Folder(PathBuf),
    /// A commit of the repository of a folder.
    Commit {
        /// The repository.
        folder: PathBuf,
        /// What git takes for a commit: a tag, a branch, a hash.
        revision: String,
    },
    /// Debian's package `linux-source-` of this release (`6.12`), or of this point release (`6.12.107`).
    Debian(String),
}

impl Source {
    /// Reads `DIR`, `DIR@REV`, `debian:6.12` or `debian:6.12.107`.
    ///
    /// # Errors
    /// There is no such folder, or the release is no number.
    pub fn parse(text: &str) -> Result<Source, LabError> {
        if let Some(release) = text.strip_prefix("debian:") {
            return match packages::is_release(release) {
                true => Ok(Source::Debian(release.to_string())),
                false => Err(LabError::new(
                    format!("{text}: '{release}' is no release"),
                    "give one as 'debian:6.12', or a point release as 'debian:6.12.107'",
                )),
            };
        }
        if Path::new(text).is_dir() {
            return Ok(Source::Folder(PathBuf::from(text)));
        }
        match text.rsplit_once('@') {
            Some((folder, revision)) if Path::new(folder).is_dir() && !revision.is_empty() => {
                Ok(Source::Commit { folder: PathBuf::from(folder), revision: revision.to_string() })
            }
            _ => Err(LabError::new(
                format!("{text}: there is no such tree"),
                "give a folder, FOLDER@COMMIT, or debian:6.12",
            )),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Folder(folder) => write!(f, "{}", folder.display()),
            Source::Commit { folder, revision } => write!(f, "{}@{revision}", folder.display()),
            Source::Debian(release) => write!(f, "debian:{release}"),
        }
    }
}

impl Source {
    /// Where its files lie; Debian's do once they have been fetched.
    pub fn tree(&self) -> Option<PathBuf> {
        match self {
            Source::Folder(folder) | Source::Commit { folder, .. } => Some(folder.clone()),
            Source::Debian(release) => {
                let folder = CacheFolder::open().ok()?.path(&packages::fetched_as(release));
                folder.is_dir().then_some(folder)
            }
        }
    }

    /// The text of one of the tree's files; none where it is not there, or not fetched yet.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let bytes = match self {
            Source::Folder(folder) => fs::read(folder.join(name)).ok()?,
            Source::Debian(release) => {
                let cache = CacheFolder::open().ok()?;
                fs::read(cache.path(&packages::fetched_as(release)).join(name)).ok()?
            }
            Source::Commit { folder, revision } => {
                let file = format!("{revision}:{name}");
                let said = git(folder).args(["show", "--end-of-options", &file]).output().ok()?;
                said.stdout
            }
        };
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A file in a tree's top folder whose first line says where the tree is from, where git does not know.
const ORIGIN: &str = ".origin";

impl Source {
    /// Where the tree is from: the repository's address and the commit, or the first line of its file `.origin`, or else its folder's
    /// name.
    pub fn provenance(&self) -> String {
        let (folder, revision) = match self {
            Source::Debian(_) => return self.to_string(),
            Source::Commit { folder, revision } => (folder, revision.as_str()),
            Source::Folder(folder) => (folder, "HEAD"),
        };
        let whole = fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
        let name = whole.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let said = |arguments: &[&str]| {
            let output =
                git(folder).args(arguments).output().ok().filter(|output| output.status.success())?;
            let line = String::from_utf8_lossy(&output.stdout).trim().to_string();
            Some(line).filter(|line| !line.is_empty())
        };
        // The repository that a folder lies in need not be the tree's own.
        let is_repository = matches!(self, Source::Commit { .. }) || folder.join(".git").exists();
        if is_repository && let Some(commit) = said(&["rev-parse", "--short=12", revision]) {
            let address = said(&["remote", "get-url", "origin"]).map(|address| repository_name(&address));
            return format!("{} @ {commit}", address.unwrap_or(name));
        }
        let written = fs::read_to_string(folder.join(ORIGIN)).unwrap_or_default();
        let line = written.lines().next().unwrap_or_default().trim();
        if line.is_empty() { name } else { line.to_string() }
    }

    /// The trees in a folder that is none itself: itself, where it is one.
    ///
    /// # Errors
    /// Neither the folder nor one in it is a kernel's tree.
    pub fn trees_in(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
        if is_kernel(folder).is_ok() {
            return Ok(vec![folder.to_path_buf()]);
        }
        let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
        let mut trees = entries.filter_map(|entry| Some(entry.ok()?.path())).collect::<Vec<_>>();
        trees.retain(|path| is_kernel(path).is_ok());
        trees.sort_unstable();
        if trees.is_empty() {
            return Err(LabError::new(
                format!("{} is no kernel's tree and holds none", folder.display()),
                "give the top folder of a tree, or a folder of such folders",
            ));
        }
        Ok(trees)
    }
}

/// Owner and name of a repository by its address.
fn repository_name(address: &str) -> String {
    let path = address.trim_end_matches('/').trim_end_matches(".git");
    let mut parts = path.rsplit(['/', ':']).filter(|part| !part.is_empty());
    match (parts.next(), parts.next()) {
        (Some(name), Some(owner)) => format!("{owner}/{name}"),
        (Some(name), None) => name.to_string(),
        _ => address.to_string(),
    }
}

/// A tree that can be read: its files, and what tells it from others.
#[derive(Debug)]
pub(super) struct ReadableTree {
    /// What it is known by, for the place where it is built.
    pub place: String,
    /// What tells its content from others'.
    pub content: String,
    /// Debian's package and the suite that it was taken from; empty for other trees.
    pub package: String,
    /// How its files are had.
    pub files: TreeFiles,
}

/// How the files of a tree are had.
#[derive(Debug)]
pub(super) enum TreeFiles {
    /// These, of a folder.
    Listed { folder: PathBuf, names: Vec<String> },
    /// Those of a commit.
    Committed { folder: PathBuf, commit: String },
}

impl Source {
    /// Finds the tree, and fetches it first if it is Debian's.
    pub(super) fn origin(&self, steps: &BuildSteps<'_>, stop: &AtomicBool) -> Result<ReadableTree, LabError> {
        match self {
            Source::Folder(folder) => of_folder(folder, stop),
            Source::Commit { folder, revision } => of_commit(folder, revision, stop),
            Source::Debian(release) => {
                let folder = packages::fetched(release, steps, stop)?;
                let package = fs::read_to_string(folder.join(packages::PACKAGE)).unwrap_or_default();
                let names = walk(&folder)?;
                // The suite, in the second line, changes nothing in the tree.
                let file = package.lines().next().unwrap_or_default().trim();
                let content = format!("{file} ") + &of_names(&folder, &names)?;
                Ok(ReadableTree {
                    place: format!("debian {release}"),
                    content,
                    package: package.lines().collect::<Vec<_>>().join(" of "),
                    files: TreeFiles::Listed { folder, names },
                })
            }
        }
    }
}

fn of_folder(folder: &Path, stop: &AtomicBool) -> Result<ReadableTree, LabError> {
    let folder = fs::canonicalize(folder).map_err(|error| unreadable(folder, &error))?;
    is_kernel(&folder)?;
    let known = if folder.join(".git").exists() { of_git(&folder, stop)? } else { Vec::new() };
    // Debian's sources have a .gitignore that leaves all of them out, whatever is committed of them.
    let names = if known.iter().any(|name| name == "Makefile") { known } else { walk(&folder)? };
    let content = of_names(&folder, &names)?;
    Ok(ReadableTree {
        place: format!("folder {}", folder.display()),
        content,
        package: String::new(),
        files: TreeFiles::Listed { folder, names },
    })
}

fn of_commit(folder: &Path, revision: &str, stop: &AtomicBool) -> Result<ReadableTree, LabError> {
    let folder = fs::canonicalize(folder).map_err(|error| unreadable(folder, &error))?;
    let resolve = |what: &str| {
        let said =
            run(git(&folder).args(["rev-parse", "--verify", "--quiet", "--end-of-options", what]), stop)?;
        let hash = said.text().trim().to_string();
        Ok::<_, LabError>(Some(hash).filter(|hash| said.succeeded && !hash.is_empty()))
    };
    let Some(commit) = resolve(&format!("{revision}^{{commit}}"))? else {
        let is_repository = run(git(&folder).args(["rev-parse", "--git-dir"]), stop)?.succeeded;
        let (problem, hint) = if is_repository {
            (
                format!("{}: git knows no commit '{revision}'", folder.display()),
                "see 'git log' or 'git tag' there",
            )
        } else {
            (format!("{} is no git repository", folder.display()), "give the folder alone")
        };
        return Err(LabError::new(problem, hint));
    };
    let Some(content) = resolve(&format!("{commit}^{{tree}}"))? else {
        return Err(LabError::new(format!("{}: {commit} has no tree", folder.display()), "see 'git fsck'"));
    };
    let sched = run(git(&folder).args(["cat-file", "-e", &format!("{commit}:kernel/sched/fair.c")]), stop)?;
    if !sched.succeeded {
        return Err(no_kernel(&format!("{}@{revision}", folder.display())));
    }
    let place = format!("commits of {}", folder.display());
    Ok(ReadableTree {
        place,
        content: format!("tree {content}"),
        package: String::new(),
        files: TreeFiles::Committed { folder, commit },
    })
}

/// Git, in a folder whoever owns it.
pub(crate) fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.args(["-c", "safe.directory=*", "--no-optional-locks", "-C"]).arg(folder);
    command
}

/// The files of a work tree that git knows or would add, as they stand.
fn of_git(folder: &Path, stop: &AtomicBool) -> Result<Vec<String>, LabError> {
    let mut command = git(folder);
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let said = succeed(&mut command, "list the files of the tree", stop)?;
    let text = said.text();
    let mut names: Vec<String> = text
        .split('\0')
        .filter(|name| is_needed(name) && folder.join(name).is_file())
        .map(str::to_string)
        .collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Whether a folder is a kernel's tree with an architecture that can be built.
pub(super) fn is_kernel(folder: &Path) -> Result<(), LabError> {
    let there = |name: &str| folder.join(name).exists();
    if !(there("Makefile") && there("Kconfig") && there("kernel/sched/fair.c")) {
        return Err(no_kernel(&folder.display().to_string()));
    }
    if there("arch/x86") {
        return Ok(());
    }
    Err(LabError::new(
        format!("{} lacks arch/x86", folder.display()),
        "give a tree with it: kernels are built for x86-64",
    ))
}

fn no_kernel(what: &str) -> LabError {
    LabError::new(
        format!("{what} is no kernel's tree: it lacks kernel/sched/fair.c"),
        "give the top folder of one",
    )
}

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> LabError {
    LabError::new(format!("{}: {error}", path.display()), "check the path and its permissions")
}

/// What tells these files from others: names and contents.
fn of_names(folder: &Path, names: &[String]) -> Result<String, LabError> {
    let mut hash = Xxh3Default::new();
    for name in names {
        let path = folder.join(name);
        let bytes = fs::read(&path).map_err(|error| unreadable(&path, &error))?;
        for part in [name.as_bytes(), &[0], &(bytes.len() as u64).to_le_bytes(), &bytes] {
            hash.update(part);
        }
    }
    Ok(format!("files {:032x}", hash.digest128()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::repository::TemporaryRepository;

    #[test]
    fn forms_of_a_source() {
        for release in ["6.12", "6.12.107"] {
            assert_eq!(Source::parse(&format!("debian:{release}")), Ok(Source::Debian(release.to_string())));
        }
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let name = folder.path().display().to_string();
        assert_eq!(Source::parse(&name), Ok(Source::Folder(folder.path().to_path_buf())));
        let commit = Source::Commit { folder: folder.path().to_path_buf(), revision: "v6.12".to_string() };
        assert_eq!(Source::parse(&format!("{name}@v6.12")), Ok(commit));
        for wrong in [
            "debian:",
            "debian:bookworm",
            "debian:6.12.1.2",
            "debian:6.12.",
            "debian:6.",
            "/no/such",
            "/no/such@v6.1",
            &format!("{name}@"),
        ] {
            assert!(Source::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// A folder with what makes it a kernel's tree.
    fn tree(folder: &Path) {
        for name in ["Makefile", "Kconfig", "kernel/sched/fair.c", "arch/x86/Kconfig"] {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, "").expect("written");
        }
    }

    #[test]
    fn a_tree_says_where_it_is_from() {
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let place = folder.path().join("5.15.24");
        tree(&place);
        let source = Source::Folder(place.clone());
        assert_eq!(source.provenance(), "5.15.24");
        fs::write(place.join(ORIGIN), "someone/linux @ 4479079f5\nmore\n").expect("written");
        assert_eq!(source.provenance(), "someone/linux @ 4479079f5");
        let repository = TemporaryRepository::new();
        let commit = repository.commit(&[("Makefile", "")]);
        repository.git(&["remote", "add", "origin", "https://example.org/someone/linux.git"]);
        let folder = repository.path().to_path_buf();
        let expected = format!("someone/linux @ {}", &commit[..12]);
        assert_eq!(Source::Folder(folder.clone()).provenance(), expected);
        let head = Source::Commit { folder, revision: "main".to_string() };
        assert_eq!(head.provenance(), expected);
        assert_eq!(Source::Debian("6.1".to_string()).provenance(), "debian:6.1");
        for (address, name) in [
            ("git@example.org:someone/linux.git", "someone/linux"),
            ("/srv/linux/", "srv/linux"),
            ("linux", "linux"),
        ] {
            assert_eq!(repository_name(address), name);
        }
    }

    #[test]
    fn a_tree_that_git_is_told_to_ignore_is_read_whole() {
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        tree(folder.path());
        let listed = |ignored: &str| {
            fs::write(folder.path().join(".gitignore"), ignored).expect("written");
            let read = of_folder(folder.path(), &AtomicBool::new(false)).expect("a tree");
            let TreeFiles::Listed { names, .. } = read.files else { panic!("a list") };
            names
        };
        let whole = listed("");
        assert!(whole.iter().any(|name| name == "kernel/sched/fair.c"), "{whole:?}");
        let git = |words: &[&str]| git(folder.path()).args(words).output().expect("git").status.success();
        assert!(git(&["init", "-q"]) && git(&["add", "-f", "kernel/sched"]));
        assert_eq!(listed("/*\n"), whole);
        assert_eq!(listed("/arch\n").iter().filter(|name| name.starts_with("arch")).count(), 0);
    }

    #[test]
    fn a_folder_holds_trees_or_is_one() {
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let told = Source::trees_in(folder.path()).expect_err("no tree").problem;
        assert!(told.ends_with("is no kernel's tree and holds none"), "{told}");
        let places = ["6.6.9", "5.15.24", "notes"].map(|name| folder.path().join(name));
        tree(&places[0]);
        tree(&places[1]);
        fs::create_dir(&places[2]).expect("made");
        assert_eq!(Source::trees_in(folder.path()), Ok(vec![places[1].clone(), places[0].clone()]));
        assert_eq!(Source::trees_in(&places[0]), Ok(vec![places[0].clone()]));
        assert!(Source::trees_in(&folder.path().join("none")).is_err());
    }

    #[test]
    fn what_is_no_kernel_is_told() {
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let go_on = AtomicBool::new(false);
        let told = |source: Source| {
            source
                .origin(&BuildSteps { on_step: &|_, _| () }, &go_on)
                .map(|_| ())
                .expect_err("no kernel")
                .problem
        };
        assert!(told(Source::Folder(folder.path().to_path_buf())).contains("no kernel's tree"));
        let commit = Source::Commit { folder: folder.path().to_path_buf(), revision: "HEAD".to_string() };
        assert!(told(commit).contains("no git repository"));
        for name in ["Makefile", "Kconfig", "kernel/sched/fair.c"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, "").expect("written");
        }
        assert!(told(Source::Folder(folder.path().to_path_buf())).contains("arch/x86"));
    }
}
