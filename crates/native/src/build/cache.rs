//! Built kernels, kept by what they were made of, and by the names that users give them; places where copies of trees and their
//! objects stay.
//!
//! Must not know: how a kernel is built.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use fairlab_files::LabError;
use fairlab_files::cache::CacheFolder;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use super::link::is_image;
use super::manifest::{Manifest, SCHEMA};

const IMAGE: &str = "image";
const MANIFEST: &str = "manifest.json";
const STAND: &str = "stands";

fn failed(path: &Path, error: &io::Error) -> LabError {
    LabError::new(
        format!("cannot keep a kernel in {}: {error}", path.display()),
        "check the place and its free space, or set XDG_CACHE_HOME to another",
    )
}

/// A kernel that can be loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedKernel {
    folder: PathBuf,
    /// What is known of it.
    pub manifest: Manifest,
}

impl CachedKernel {
    /// The image, as a file.
    pub fn image(&self) -> PathBuf {
        self.folder.join(IMAGE)
    }

    /// What it is kept by.
    pub fn key(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Gives it a name, as `src:NAME` has it; another kernel may have had it.
    ///
    /// # Errors
    /// The name is none, or cannot be kept.
    pub fn give_name(&self, name: &str) -> Result<(), LabError> {
        check_name(name)?;
        let path = place()?.join("kernel-names").join(name);
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        fairlab_files::write_whole(&path, format!("{}\n", self.key())).map_err(|error| failed(&path, &error))
    }

    fn is_sound(&self) -> bool {
        fs::read(self.image()).is_ok_and(|bytes| checksum_of(&bytes) == self.manifest.checksum)
    }

    fn read(folder: &Path) -> Option<CachedKernel> {
        let text = fs::read_to_string(folder.join(MANIFEST)).ok()?;
        let manifest: Manifest = serde_json::from_str(&text).ok()?;
        let built = CachedKernel { folder: folder.to_path_buf(), manifest };
        (built.manifest.schema == SCHEMA && is_image(&built.image())).then_some(built)
    }
}

/// What tells bytes of an image from others.
pub fn checksum_of(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

fn check_name(name: &str) -> Result<(), LabError> {
    let plain = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
    if !name.is_empty() && name.chars().all(plain) && !name.starts_with(['.', '-']) && name.len() <= 64 {
        return Ok(());
    }
    Err(LabError::new(
        format!("'{name}' is no name for a kernel"),
        "take letters, digits, '.', '_' and '-', 64 at most, the first a letter or digit",
    ))
}

fn place() -> Result<PathBuf, LabError> {
    CacheFolder::place()
}

/// The kernels that are built: each with its names, sorted by key.
///
/// # Errors
/// There is no place for them.
pub fn kernels() -> Result<Vec<(Vec<String>, CachedKernel)>, LabError> {
    let place = place()?;
    let names = names(&place);
    let mut built: Vec<CachedKernel> = entries(&place.join("kernels-built"))
        .into_iter()
        .filter_map(|name| CachedKernel::read(&place.join("kernels-built").join(name)))
        .collect();
    built.sort_by_key(CachedKernel::key);
    let named = |kernel: &CachedKernel| {
        let key = kernel.key();
        names.iter().filter(|(_, of)| *of == key).map(|(name, _)| name.clone()).collect()
    };
    Ok(built.into_iter().map(|kernel| (named(&kernel), kernel)).collect())
}

/// The kernel of a name that was given, or of a key's beginning of eight letters or more.
///
/// # Errors
/// There is none, or the place cannot be had.
pub fn named(name: &str) -> Result<CachedKernel, LabError> {
    let place = place()?;
    let key = names(&place).into_iter().find(|(known, _)| known == name).map(|(_, key)| key);
    let built = kernels()?;
    let is_it = |kernel: &CachedKernel| match &key {
        Some(key) => kernel.key() == *key,
        None => name.len() >= 8 && kernel.key().starts_with(name),
    };
    built.into_iter().map(|(_, kernel)| kernel).find(is_it).ok_or_else(|| {
        LabError::new(
            format!("no built kernel has the name '{name}'"),
            "build one with 'fairlab kernels build SOURCE --name NAME'; 'fairlab kernels list --built' shows those that are there",
        )
    })
}

/// Takes a kernel away that is built, with all its names. Gives what it was.
///
/// # Errors
/// There is none of that name, or it cannot be removed.
pub fn remove(name: &str) -> Result<(Vec<String>, CachedKernel), LabError> {
    let (place, built) = (place()?, named(name)?);
    let key = built.key();
    let names: Vec<String> =
        names(&place).into_iter().filter(|(_, of)| *of == key).map(|(name, _)| name).collect();
    for path in names.iter().map(|name| place.join("kernel-names").join(name)) {
        fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
    }
    fs::remove_dir_all(&built.folder).map_err(|error| failed(&built.folder, &error))?;
    Ok((names, built))
}

fn names(place: &Path) -> Vec<(String, String)> {
    let folder = place.join("kernel-names");
    let of = |name: String| {
        let key = fs::read_to_string(folder.join(&name)).ok()?;
        check_name(&name).is_ok().then(|| (name, key.trim().to_string()))
    };
    entries(&folder).into_iter().filter_map(of).collect()
}

fn entries(folder: &Path) -> Vec<String> {
    let listed =
        fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let mut names: Vec<String> =
        listed.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// All that an image is made of.
pub(super) struct ImageKey {
    hash: Xxh3Default,
}

impl ImageKey {
    pub fn new() -> ImageKey {
        ImageKey { hash: Xxh3Default::new() }
    }

    /// Adds a part, which has a name.
    pub fn add(&mut self, name: &str, bytes: &[u8]) {
        for part in [name.as_bytes(), &[0], &(bytes.len() as u64).to_le_bytes(), bytes] {
            self.hash.update(part);
        }
    }

    pub fn name(&self) -> String {
        format!("{:032x}", self.hash.digest128())
    }

    fn folder(&self) -> Result<PathBuf, LabError> {
        Ok(place()?.join("kernels-built").join(self.name()))
    }

    /// The kernel, if it is built and its image is what was built.
    pub fn kept(&self) -> Result<Option<CachedKernel>, LabError> {
        Ok(CachedKernel::read(&self.folder()?).filter(CachedKernel::is_sound))
    }

    /// Keeps a kernel: it is whole or not there.
    pub fn keep(&self, image: &Path, manifest: Manifest) -> Result<CachedKernel, LabError> {
        self.keep_at(self.folder()?, image, manifest)
    }

    fn keep_at(&self, folder: PathBuf, image: &Path, manifest: Manifest) -> Result<CachedKernel, LabError> {
        let bytes = fs::read(image).map_err(|error| failed(image, &error))?;
        let manifest = Manifest { checksum: checksum_of(&bytes), ..manifest };
        let parent = folder.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(|error| failed(parent, &error))?;
        let beside = fairlab_files::temporary::beside(&folder);
        let write = || -> io::Result<()> {
            fs::create_dir(&beside)?;
            fs::write(beside.join(IMAGE), &bytes)?;
            let text = serde_json::to_string_pretty(&manifest)?;
            fs::write(beside.join(MANIFEST), text + "\n")?;
            match fs::rename(&beside, &folder) {
                // Another build of it was faster, or left half of one.
                Err(_) if folder.exists() => {
                    fs::remove_dir_all(&folder)?;
                    fs::rename(&beside, &folder)
                }
                renamed => renamed,
            }
        };
        write().map_err(|error| {
            let _ = fs::remove_dir_all(&beside);
            failed(&folder, &error)
        })?;
        Ok(CachedKernel { folder, manifest })
    }
}

/// Where the copy of a tree and its objects stay, locked against others until this is dropped.
pub(super) struct Workspace {
    folder: PathBuf,
    _lock: File,
}

/// What the copy of a tree is: a commit, but for files that may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TreeCopyState {
    /// Empty: of no commit.
    pub commit: String,
    /// Names of files that may be anything.
    pub unsure: BTreeSet<String>,
}

impl Workspace {
    /// A place of what is known by these words: one of `lanes` that nobody builds in, or else the first, after those who do.
    pub fn of(words: &str, lanes: usize) -> Result<Workspace, LabError> {
        let lane = |number: usize| {
            let words = if number == 0 { words.to_string() } else { format!("{words} lane {number}") };
            let mut key = ImageKey::new();
            key.add("where", words.as_bytes());
            Ok::<_, LabError>((place()?.join("kernel-trees").join(key.name()), words))
        };
        for number in 0..lanes {
            let (folder, words) = lane(number)?;
            let lock = Workspace::lock_file(&folder)?;
            if lock.try_lock().is_ok() {
                return Workspace::locked(&folder, lock, &words);
            }
        }
        let (folder, words) = lane(0)?;
        let lock = Workspace::lock_file(&folder)?;
        lock.lock().map_err(|error| failed(&folder, &error))?;
        Workspace::locked(&folder, lock, &words)
    }

    /// The place that a folder is.
    #[cfg(test)]
    pub fn at(folder: &Path, words: &str) -> Result<Workspace, LabError> {
        Workspace::locked(folder, Workspace::lock_file(folder)?, words)
    }

    fn lock_file(folder: &Path) -> Result<File, LabError> {
        let lock = fs::create_dir_all(folder).and_then(|()| File::create(folder.join("lock")));
        lock.map_err(|error| failed(folder, &error))
    }

    fn locked(folder: &Path, lock: File, words: &str) -> Result<Workspace, LabError> {
        fs::write(folder.join("about"), format!("{words}\n")).map_err(|error| failed(folder, &error))?;
        Ok(Workspace { folder: folder.to_path_buf(), _lock: lock })
    }

    /// What the copy was left as; `None`: nobody knows.
    pub fn stands(&self) -> Result<Option<TreeCopyState>, LabError> {
        let path = self.folder.join(STAND);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&path, &error)),
        };
        let mut lines = text.split('\0');
        let commit = lines.next().unwrap_or_default().to_string();
        let unsure = lines.filter(|name| !name.is_empty()).map(str::to_string).collect();
        Ok(Some(TreeCopyState { commit, unsure }))
    }

    /// Says what the copy is, before or after it is changed.
    pub fn set_stand(&self, stand: &TreeCopyState) -> Result<(), LabError> {
        let path = self.folder.join(STAND);
        let text = stand.unsure.iter().fold(stand.commit.clone(), |text, name| text + "\0" + name);
        fairlab_files::write_whole(&path, text).map_err(|error| failed(&path, &error))
    }

    /// Where an index for git stays.
    pub fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    /// Lets the next build configure afresh.
    pub fn forget_configuration(&self) -> Result<(), LabError> {
        let path = self.objects()?.join(super::kbuild::CONFIGURED);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&path, &error)),
            _ => Ok(()),
        }
    }

    /// The copy of the tree.
    pub fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// Its objects.
    pub fn objects(&self) -> Result<PathBuf, LabError> {
        let folder = self.folder.join("objects");
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
        Ok(folder)
    }

    /// The shim's sources, as files. Those that do not change keep their times, and what was built of them stands.
    pub fn shim(&self, sources: &[(&str, &str)]) -> Result<PathBuf, LabError> {
        let folder = self.folder.join("shim");
        let write = || -> io::Result<()> {
            fs::create_dir_all(&folder)?;
            for (name, text) in sources {
                let path = folder.join(name);
                if fs::read_to_string(&path).ok().as_deref() != Some(*text) {
                    fs::write(path, text)?;
                }
            }
            Ok(())
        };
        write().map_err(|error| failed(&folder, &error))?;
        Ok(folder)
    }

    /// Removes copy and objects.
    pub fn remove(&self) {
        let _ = fs::remove_file(self.folder.join(STAND));
        for folder in ["tree", "objects", "shim"] {
            // What stays is found and followed by the next build.
            let _ = fs::remove_dir_all(self.folder.join(folder));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["mine", "v6.12-rc1", "6.1", "a_b"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for wrong in ["", "..", "a/b", "-x", ".x", "a b", "ä", &"x".repeat(65)] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_changed_bit_of_an_image_is_noticed() {
        let place = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let (image, folder) = (place.path().join("linked"), place.path().join("kept"));
        fs::write(&image, b"\x7fELF and more").expect("written");
        let manifest = Manifest { schema: SCHEMA.to_string(), ..Manifest::default() };
        let kept = ImageKey::new().keep_at(folder.clone(), &image, manifest).expect("kept");
        assert_eq!(CachedKernel::read(&folder).as_ref(), Some(&kept));
        assert!(kept.is_sound());
        fs::write(kept.image(), b"\x7fELF and mord").expect("written");
        assert!(!kept.is_sound());
        let told = crate::ImageFile::open_sound(&kept.image(), &kept.manifest.checksum).map(|_| ());
        let told = told.expect_err("a damaged file").to_string();
        assert!(
            told.contains("image: its bytes are not those that were built") && !told.contains('\n'),
            "{told}"
        );
    }

    #[test]
    fn parts_of_a_key_do_not_run_into_each_other() {
        let name = |parts: &[(&str, &str)]| {
            let mut key = ImageKey::new();
            parts.iter().for_each(|(name, text)| key.add(name, text.as_bytes()));
            key.name()
        };
        assert_eq!(name(&[("a", "b")]), name(&[("a", "b")]));
        assert_ne!(name(&[("a", "bc")]), name(&[("a", "b"), ("c", "")]));
        assert_ne!(name(&[("a", ""), ("b", "")]), name(&[("b", ""), ("a", "")]));
    }
}
