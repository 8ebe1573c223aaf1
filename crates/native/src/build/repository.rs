//! A repository of commits that tests make.
//!
//! Must not know: what is done with it.

use std::fs;
use std::path::Path;
use std::process::Command;

use fairlab_files::temporary::PrivateFolder;

/// A repository, removed when this is dropped.
pub(crate) struct TemporaryRepository(PrivateFolder);

impl TemporaryRepository {
    pub fn new() -> TemporaryRepository {
        let repository = TemporaryRepository(PrivateFolder::create().expect("a folder"));
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// What git says.
    pub fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
        command.arg("-C").arg(self.path()).args(who).args(arguments);
        let output = command.output().expect("git");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    }

    /// A commit that writes files. Gives its hash.
    pub fn commit(&self, files: &[(&str, &str)]) -> String {
        for (name, text) in files {
            let path = self.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        }
        self.git(&["add", "-A"]);
        let names = files.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        self.git(&["commit", "-q", "-m", &format!("change {}", names.join(" "))]);
        self.git(&["rev-parse", "HEAD"])
    }
}
