//! Files that a file names: they lie beside it.
//!
//! Must not know: what kind of file names them.

use std::path::{Component, Path, PathBuf};

/// A word that names a file in the folder `beside`, as its path from where we are; every other word as it is.
pub fn found_beside(beside: &Path, word: &str) -> String {
    let is_file_name = [".toml", ".json"].iter().any(|end| word.ends_with(end));
    let path = beside.join(word);
    if is_file_name && path.is_file() { tidy(&path).to_string_lossy().into_owned() } else { word.to_string() }
}

/// A path without steps up that follow a folder's name.
fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for part in path.components() {
        let goes_back = part == Component::ParentDir
            && matches!(tidied.components().next_back(), Some(Component::Normal(_)));
        if goes_back {
            tidied.pop();
        } else {
            tidied.push(part);
        }
    }
    tidied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_up_follow_no_folder() {
        assert_eq!(tidy(Path::new("../a/../b")), Path::new("../b"));
        assert_eq!(found_beside(Path::new("nowhere"), "a.toml"), "a.toml");
    }
}
