//! The recordings in `testdata/`: few bytes, and each with its story.
//!
//! Knows the files by name and size, never by content.

use fairlab_house::{FileScope, assert_none, bytes, files, text};

/// How much a clone may have to carry.
const BYTES_MAX: usize = 15_000_000;

const README: &str = "testdata/README.md";

fn recordings() -> Vec<String> {
    files(FileScope::Present)
        .into_iter()
        .filter(|path| path.starts_with("testdata/") && path != README)
        .collect()
}

/// Whether a text names a file: the name stands there whole, not as the tail or head of a longer one.
fn names(text: &str, file: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    text.match_indices(file).any(|(start, _)| {
        let after = &text[start + file.len()..];
        // A full stop may end the sentence.
        !text[..start].ends_with(is_part) && !after.trim_start_matches('.').starts_with(is_part)
    })
}

#[test]
fn recordings_stay_small() {
    let mut sizes: Vec<(usize, String)> =
        recordings().into_iter().map(|path| (bytes(&path).len(), path)).collect();
    sizes.sort_by(|one, other| other.cmp(one));
    let total: usize = sizes.iter().map(|(size, _)| size).sum();
    let list: Vec<String> = sizes.iter().map(|(size, path)| format!("{size:>10} {path}")).collect();
    assert!(
        total < BYTES_MAX,
        "testdata/ holds {total} bytes, at most {BYTES_MAX} may be:\n{}",
        list.join("\n")
    );
}

#[test]
fn every_recording_has_its_story() {
    assert!(files(FileScope::Present).iter().any(|path| path == README), "{README}: missing");
    let readme = text(README);
    let violations: Vec<String> = recordings()
        .into_iter()
        .filter(|path| !names(&readme, path.rsplit('/').next().unwrap_or(path)))
        .collect();
    assert_none("testdata/README.md says of every file how it was made", &violations);
}

#[test]
fn a_name_is_not_part_of_a_longer_one() {
    assert!(names("see `a.txt`", "a.txt"));
    assert!(names("see a.txt.", "a.txt"));
    assert!(!names("see a.txt.zst", "a.txt"));
    assert!(!names("see data.txt", "a.txt"));
    assert!(names("see data.txt, then a.txt", "a.txt"));
}
