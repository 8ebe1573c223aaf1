//! Recordings that have lost lines, or hold them in another order or with other numbers: never the end of the program.

use std::path::{Path, PathBuf};
use std::{env, fs};

use fairlab_kernel::Generation;
use fairlab_lab::verify::{VerifyOptions, verify};
use fairlab_sim::rng::Stream;

const RECORDINGS: [(&str, &str); 4] = [
    ("5.10-quota-2", "debian-5.10"),
    ("6.1-idle-2", "debian-6.1"),
    ("6.12-nice-2", "debian-6.12"),
    ("7.2-hackbench-4", "debian-7.2"),
];

/// A copy of a recording without its trace, and that trace.
fn copied(name: &str, to: &Path) -> Vec<String> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings").join(name);
    fs::create_dir_all(to).expect("a folder");
    let mut trace = String::new();
    for entry in fs::read_dir(from).expect("the recording") {
        let path = entry.expect("an entry").path();
        match path.file_name().and_then(|name| name.to_str()) {
            Some("trace.txt.zst") => {
                let packed = fs::File::open(&path).expect("the trace");
                trace = String::from_utf8(zstd::decode_all(packed).expect("unpacked")).expect("text");
            }
            Some(name) => drop(fs::copy(&path, to.join(name)).expect("copied")),
            None => panic!("a file's name is text"),
        }
    }
    trace.lines().map(str::to_string).collect()
}

/// What an agreement or a refusal says when the recording's trace is `lines`.
fn verified(folder: &Path, lines: &[String], kernel: &str) -> Result<u64, String> {
    fs::write(folder.join("trace.txt"), lines.join("\n") + "\n").expect("written");
    let generation = kernel.parse::<Generation>().expect("a kernel");
    let options = VerifyOptions { machine: None, misses: 0, clock_hz: None };
    verify(folder, &generation, &options)
        .map(|agreement| agreement.state_set_right)
        .map_err(|error| error.to_string())
}

fn folder(test: &str, name: &str) -> PathBuf {
    env::temp_dir().join(format!("fairlab-{test}-{}-{name}", std::process::id()))
}

#[test]
fn lost_lines_are_walked_over() {
    for (name, kernel) in RECORDINGS {
        let folder = folder("lost", name);
        let lines = copied(name, &folder);
        for seed in 1..=6 {
            let mut stream = Stream::new(seed, "lost lines");
            let kept = lines.iter().filter(|line| line.starts_with('#') || stream.below(50) > 0);
            let outcome = verified(&folder, &kept.cloned().collect::<Vec<_>>(), kernel);
            assert!(matches!(outcome, Ok(1..)), "{name}, seed {seed}: {outcome:?}");
        }
        fs::remove_dir_all(folder).expect("removed");
    }
}

#[test]
fn nonsense_is_answered_in_a_line() {
    for (name, kernel) in RECORDINGS {
        let folder = folder("nonsense", name);
        let lines = copied(name, &folder);
        for seed in 1..=6 {
            let mut stream = Stream::new(seed, "nonsense");
            let mut nonsense = lines.clone();
            for at in 0..nonsense.len() {
                match (stream.below(20), stream.below(nonsense.len() as u64) as usize) {
                    (0, other) => nonsense.swap(at, other),
                    (1, other) => nonsense[at] = nonsense[at].replace(['1', '7'], &other.to_string()),
                    _ => {}
                }
            }
            if let Err(refusal) = verified(&folder, &nonsense, kernel) {
                assert!(
                    !refusal.contains('\n') && refusal.contains("trace.txt"),
                    "{name}, seed {seed}: {refusal}"
                );
            }
        }
        fs::remove_dir_all(folder).expect("removed");
    }
}
