//! The two trees between which a patch lies: a tree without and with patches, or two commits of a repository.
//!
//! Must not know: what runs on them.

use std::path::{Path, PathBuf};

use fairlab_lab::{Caller, Kernel, LabError};
use fairlab_native::build::{BuildOptions, CachedKernel, Source, build};

/// A tree, with patches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchSide {
    /// The tree.
    pub source: Source,
    /// Patches, applied in order.
    pub patches: Vec<PathBuf>,
}

/// Without the patch, and with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchSides {
    /// Without.
    pub before: PatchSide,
    /// With.
    pub after: PatchSide,
}

impl PatchSides {
    /// Reads what a user gives: a tree, and files of patches, or one range `A..B` of commits of the tree's repository.
    ///
    /// # Errors
    /// There is no such tree or file, or the range is none.
    pub fn parse(on: &str, patches: &[String]) -> Result<PatchSides, LabError> {
        let source = Source::parse(on)?;
        let is_range = |text: &String| text.contains("..") && !Path::new(text).exists();
        if let [range] = patches
            && is_range(range)
        {
            return PatchSides::of_range(source, range);
        }
        for patch in patches {
            if is_range(patch) {
                return Err(LabError::new(
                    format!("--patch {patch} is a range of commits, and there are other patches"),
                    "give one range, or files alone",
                ));
            }
            if !Path::new(patch).is_file() {
                let is_there = Path::new(patch).exists();
                let what = if is_there { "that is no file" } else { "there is no such file" };
                return Err(LabError::new(
                    format!("--patch {patch}: {what}"),
                    "give the path of a patch, or a range of commits as A..B",
                ));
            }
        }
        let with = patches.iter().map(PathBuf::from).collect();
        let before = PatchSide { source: source.clone(), patches: Vec::new() };
        Ok(PatchSides { before, after: PatchSide { source, patches: with } })
    }

    fn of_range(source: Source, range: &str) -> Result<PatchSides, LabError> {
        let Source::Folder(folder) = source else {
            return Err(LabError::new(
                format!("{range} is a range of commits, and {source} is no repository"),
                "give --on the folder of the repository",
            ));
        };
        let ends = range.split("..").collect::<Vec<_>>();
        let [from, to] = ends[..] else { return Err(no_range(range)) };
        if to.starts_with('.') {
            return Err(no_range(range));
        }
        let side = |revision: &str| {
            let revision = if revision.is_empty() { "HEAD" } else { revision }.to_string();
            PatchSide { source: Source::Commit { folder: folder.clone(), revision }, patches: Vec::new() }
        };
        Ok(PatchSides { before: side(from), after: side(to) })
    }

    /// Both as kernels for machines that tick `hz` times a second.
    ///
    /// # Errors
    /// One of them cannot be built.
    pub(super) fn built(
        &self,
        hz: u64,
        caller: &Caller<'_>,
    ) -> Result<[(CachedKernel, Kernel); 2], LabError> {
        Ok([self.before.built("before", hz, caller)?, self.after.built("after", hz, caller)?])
    }
}

fn no_range(range: &str) -> LabError {
    LabError::new(format!("'{range}' is no range of commits"), "give one as A..B")
}

impl PatchSide {
    fn built(&self, name: &str, hz: u64, caller: &Caller<'_>) -> Result<(CachedKernel, Kernel), LabError> {
        let hz = u32::try_from(hz).unwrap_or(u32::MAX);
        let options = BuildOptions { hz, patches: self.patches.clone(), ..BuildOptions::default() };
        let told = |step: &str, _| (caller.tell)(&format!("build of {name}, {step}"));
        let built = build(&self.source, &options, &told, caller.stop)?;
        let key = built.key();
        let kernel = Kernel::parse(&format!("src:{}", key.get(..12).unwrap_or(&key)))?;
        Ok((built, kernel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(on: &str, patches: &[&str]) -> Result<PatchSides, String> {
        let patches = patches.iter().map(ToString::to_string).collect::<Vec<_>>();
        PatchSides::parse(on, &patches).map_err(|error| error.problem)
    }

    #[test]
    fn patches_are_files_or_a_range() {
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let (on, file) = (folder.path().display().to_string(), folder.path().join("a..b.patch"));
        std::fs::write(&file, "").expect("written");
        let file = file.display().to_string();
        let sides = parse(&on, &[&file]).expect("sides");
        assert_eq!((sides.before.patches.len(), sides.after.patches.len()), (0, 1));
        assert_eq!(sides.before.source, sides.after.source);
        let commit = |side: &PatchSide| side.source.to_string();
        let sides = parse(&on, &["v6.11..topic"]).expect("sides");
        assert_eq!(
            (commit(&sides.before), commit(&sides.after)),
            (format!("{on}@v6.11"), format!("{on}@topic"))
        );
        let sides = parse(&on, &["v6.11.."]).expect("sides");
        assert_eq!(commit(&sides.after), format!("{on}@HEAD"));
        for (patches, told) in [
            (&["/no/such.patch"][..], "there is no such file"),
            (&["/"][..], "that is no file"),
            (&[file.as_str(), "a..b"], "is a range of commits, and there are other patches"),
            (&["a...b"], "is no range"),
            (&["a..b..c"], "is no range"),
        ] {
            assert!(parse(&on, patches).expect_err("refused").contains(told), "{patches:?}");
        }
        assert!(parse("debian:6.1", &["a..b"]).expect_err("refused").contains("is no repository"));
        assert!(parse("/no/such/tree", &[&file]).is_err());
    }
}
