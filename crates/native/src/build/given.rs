//! Files that users give to a build: patches and configurations.
//!
//! Must not know: what they say.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use fairlab_files::LabError;

/// The most bytes that such a file may have. A release's whole patch has some 80 MB.
const MOST_BYTES: u64 = 256 << 20;

/// Reads one whole: a regular file that is not too large.
pub(super) fn read(path: &Path, hint: &str) -> Result<Vec<u8>, LabError> {
    read_up_to(path, MOST_BYTES, hint)
}

fn read_up_to(path: &Path, most: u64, hint: &str) -> Result<Vec<u8>, LabError> {
    let told = |error: std::io::Error| {
        // What the system adds is a number.
        let text = error.to_string();
        LabError::new(format!("{}: {}", path.display(), text.split(" (os").next().unwrap_or(&text)), hint)
    };
    // A pipe would wait for its other end.
    let about = std::fs::metadata(path).map_err(told)?;
    if !about.is_file() {
        return Err(LabError::new(format!("{} is no regular file", path.display()), hint));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)).map_err(told)?;
    if bytes.len() as u64 > most {
        let problem = format!("{} has more than {most} bytes", path.display());
        return Err(LabError::new(problem, hint));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_or_refused() {
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let path = folder.path().join("x");
        std::fs::write(&path, "12345").expect("written");
        assert_eq!(read_up_to(&path, 5, "give one").expect("read"), b"12345");
        let told = read_up_to(&path, 4, "give one").expect_err("too large");
        assert!(told.problem.ends_with("x has more than 4 bytes"), "{told}");
    }
}
