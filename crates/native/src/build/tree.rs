//! The copy of a tree that is built: hard links where the file system allows, kept from build to build.
//!
//! A file that changes gets a new time, even where the original's is older than what was built of it.
//!
//! Must not know: where a tree comes from, how it is compiled.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use fairlab_files::LabError;

use super::command::run;
use super::given;
use super::selection::walk;

fn failed(path: &Path, error: &io::Error) -> LabError {
    LabError::new(format!("cannot keep {}: {error}", path.display()), "check the place and its free space")
}

/// Makes `copy` what `names` of `folder` are. Files of `unsure` may be anything there, whatever their size and time say. Gives the
/// names of files that were written or removed.
pub(super) fn follow(
    folder: &Path,
    names: &[String],
    copy: &Path,
    unsure: &BTreeSet<String>,
) -> Result<BTreeSet<String>, LabError> {
    fs::create_dir_all(copy).map_err(|error| failed(copy, &error))?;
    let wanted: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let mut changed = BTreeSet::new();
    for name in walk(copy)? {
        if !wanted.contains(name.as_str()) {
            let path = copy.join(&name);
            fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
            changed.insert(name);
        }
    }
    let mut made = BTreeSet::new();
    for name in names {
        let (from, to) = (folder.join(name), copy.join(name));
        let sure = !unsure.contains(name);
        if follow_file(&from, &to, sure, &mut made).map_err(|error| failed(&to, &error))? {
            changed.insert(name.clone());
        }
    }
    Ok(changed)
}

/// Gives whether the file was written.
fn follow_file(from: &Path, to: &Path, sure: bool, made: &mut BTreeSet<PathBuf>) -> io::Result<bool> {
    let wanted = fs::metadata(from)?;
    let replaces = match fs::symlink_metadata(to) {
        Ok(there) if sure && there.is_file() && is_alike(&wanted, &there) => return Ok(false),
        Ok(_) => {
            fs::remove_file(to)?;
            true
        }
        Err(_) => false,
    };
    if let Some(parent) = to.parent().filter(|parent| !made.contains(*parent)) {
        fs::create_dir_all(parent)?;
        made.insert(parent.to_path_buf());
    }
    let is_link = fs::symlink_metadata(from)?.file_type().is_symlink();
    if !replaces && !is_link && fs::hard_link(from, to).is_ok() {
        return Ok(true);
    }
    // The time of a copy is now, so that what was built of the former file is built again; its size and the original's time tell
    // next time that it is up to date.
    fs::copy(from, to)?;
    let time = if replaces { SystemTime::now() } else { wanted.modified()? };
    File::options().write(true).open(to)?.set_modified(time)?;
    Ok(true)
}

/// Whether a file of the copy is what stands in the tree: the file itself, or a copy made after it last changed.
fn is_alike(wanted: &fs::Metadata, there: &fs::Metadata) -> bool {
    let itself = wanted.dev() == there.dev() && wanted.ino() == there.ino();
    let after = (there.mtime(), there.mtime_nsec()) >= (wanted.ctime(), wanted.ctime_nsec());
    itself || after && there.size() == wanted.size() && there.nlink() == 1
}

/// Names of the files of a tree that a patch changes.
pub(super) fn patched(file: &Path) -> Result<BTreeSet<String>, LabError> {
    Ok(changed(&String::from_utf8_lossy(&given::read(file, PATCH_HINT)?)))
}

/// Whether a patch has what `patch` would apply: it takes an empty one for done.
pub(super) fn changes_something(file: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let text = String::from_utf8_lossy(bytes);
    let why = if text.trim().is_empty() {
        "it is empty"
    } else if changed(&text).is_empty() || !text.lines().any(is_hunk) {
        "it changes no file"
    } else {
        return Ok(());
    };
    Err(LabError::new(format!("{} is no patch: {why}", file.display()), PATCH_HINT))
}

/// Whether a line begins a change in a file: of a unified patch, or of a context patch.
fn is_hunk(line: &str) -> bool {
    line.starts_with("@@ -") || line.starts_with("***************") || line == "GIT binary patch"
}

/// What is said of a file that is no patch.
const PATCH_HINT: &str = "give the path of a patch";

/// Applies a patch to the copy. The files that it changes are copied first: others have links to them.
pub(super) fn patch(copy: &Path, file: &Path, stop: &AtomicBool) -> Result<(), LabError> {
    let told =
        |error: &io::Error| LabError::new(format!("{}: {error}", file.display()), "give the path of a patch");
    let absolute = fs::canonicalize(file).map_err(|error| told(&error))?;
    for name in patched(file)? {
        break_link(&copy.join(&name)).map_err(|error| failed(&copy.join(&name), &error))?;
    }
    let mut command = Command::new("patch");
    command.args(["-p1", "--batch", "--forward", "--no-backup-if-mismatch", "--reject-file=-", "--input"]);
    let said = run(command.arg(&absolute).current_dir(copy), stop)?;
    if said.succeeded {
        return Ok(());
    }
    let text = said.text();
    let why = |word: &str| text.lines().find(|line| line.contains(word)).map(str::trim);
    let why = why("FAILED")
        .or_else(|| why("can't find file"))
        .or_else(|| why("Reversed"))
        .unwrap_or("it is no patch");
    Err(LabError::new(
        format!("{} does not apply: {why}", file.display()),
        "make it for this tree: it is applied by 'patch -p1'",
    ))
}

/// Names of files that a patch changes, below its first folder; none that leads out of the tree.
fn changed(patch: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let path = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- "))?.split('\t').next()?;
        let name = path.trim().split_once('/')?.1;
        let is_inside = name.split('/').all(|part| !matches!(part, ".." | "." | ""));
        is_inside.then(|| name.to_string())
    };
    patch.lines().filter_map(name).collect()
}

fn break_link(path: &Path) -> io::Result<()> {
    if !path.is_file() {
        return Ok(());
    }
    let beside = path.with_extension("fairlab-new");
    fs::copy(path, &beside)?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> (fairlab_files::temporary::PrivateFolder, PathBuf, PathBuf) {
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let (tree, copy) = (folder.path().join("tree"), folder.path().join("copy"));
        fs::create_dir_all(tree.join("kernel/sched")).expect("made");
        for (name, text) in [("fair.c", "int a;\nint b;\nint c;\n"), ("rt.c", "rt\n")] {
            fs::write(tree.join("kernel/sched").join(name), text).expect("written");
        }
        (folder, tree, copy)
    }

    #[test]
    fn a_copy_follows_its_tree() {
        let (_folder, tree, copy) = two();
        let follow_all =
            || follow(&tree, &walk(&tree).expect("walked"), &copy, &BTreeSet::new()).expect("followed");
        follow_all();
        let time = |path: &Path| fs::metadata(path).expect("there").modified().expect("a time");
        let (fair, rt) = (copy.join("kernel/sched/fair.c"), copy.join("kernel/sched/rt.c"));
        let (before, untouched) = (time(&fair), time(&rt));
        // An older file in place of the former: make would not see it by the time.
        let other = tree.join("other");
        fs::write(&other, "older\n").expect("written");
        File::options()
            .write(true)
            .open(&other)
            .expect("open")
            .set_modified(SystemTime::UNIX_EPOCH)
            .expect("set");
        fs::rename(&other, tree.join("kernel/sched/fair.c")).expect("renamed");
        follow_all();
        assert_eq!(fs::read_to_string(&fair).expect("read"), "older\n");
        assert!(time(&fair) >= before && time(&rt) == untouched);
        let built = time(&fair);
        follow_all();
        assert_eq!(time(&fair), built, "it is up to date");
        fs::remove_file(tree.join("kernel/sched/rt.c")).expect("removed");
        follow_all();
        assert!(!rt.exists());
    }

    const PATCH: &str = "--- a/kernel/sched/fair.c\n+++ b/kernel/sched/fair.c\n@@ -1,3 +1,3 @@\n int a;\n-int b;\n+int patched;\n int c;\n";

    #[test]
    fn a_patch_changes_the_copy_alone() {
        let (folder, tree, copy) = two();
        let (go_on, file) = (AtomicBool::new(false), folder.path().join("x.patch"));
        follow(&tree, &walk(&tree).expect("walked"), &copy, &BTreeSet::new()).expect("followed");
        fs::write(&file, PATCH).expect("written");
        patch(&copy, &file, &go_on).expect("applied");
        assert!(fs::read_to_string(copy.join("kernel/sched/fair.c")).expect("read").contains("patched"));
        assert!(!fs::read_to_string(tree.join("kernel/sched/fair.c")).expect("read").contains("patched"));
        let again = patch(&copy, &file, &go_on).expect_err("it is applied already");
        assert!(again.problem.contains("does not apply"), "{again}");
        assert!(patch(&copy, Path::new("/no/such.patch"), &go_on).is_err());
    }

    /// A patch that keeps a file's size leaves nothing that size or time would tell.
    #[test]
    fn what_was_patched_is_made_good() {
        let (folder, tree, copy) = two();
        let (go_on, file) = (AtomicBool::new(false), folder.path().join("x.patch"));
        let names = walk(&tree).expect("walked");
        follow(&tree, &names, &copy, &BTreeSet::new()).expect("followed");
        fs::write(&file, PATCH.replace("+int patched;", "+int d;")).expect("written");
        let unsure = patched(&file).expect("names");
        for _ in 0..2 {
            patch(&copy, &file, &go_on).expect("applied");
            let changed = follow(&tree, &names, &copy, &unsure).expect("followed");
            assert_eq!(changed, unsure);
            let read = |root: &Path| fs::read_to_string(root.join("kernel/sched/fair.c")).expect("read");
            assert_eq!(read(&copy), read(&tree));
        }
    }

    #[test]
    fn names_in_patches() {
        let names = |text: &str| changed(text).into_iter().collect::<Vec<_>>();
        assert_eq!(names(PATCH), ["kernel/sched/fair.c"]);
        assert!(
            names("+++ b/../../etc/passwd\n+++ /dev/null\n")
                .iter()
                .all(|name| name == "dev/null" || name == "null")
        );
        assert!(names("nothing").is_empty());
    }
}
