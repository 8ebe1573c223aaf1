//! What the booted kernel unpacks into memory and starts: our first process, links to its workloads, the job.
//!
//! Must not know: which kernel.

use std::borrow::Cow;
use std::{env, fs};

use fairlab_guest::archive::{Archive, Kind};
use fairlab_guest::job::{JOB_FILE, Job};
use fairlab_guest::programs;

use crate::LabError;

/// The guest's program; empty in builds for development and for other architectures.
const GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fairlab-guest"));

/// Where file systems are mounted, and programs lie.
const FOLDERS: [&str; 5] = ["bin", "dev", "proc", "sys", "tmp"];

/// A program of the host's that runs in the guest: its path there and its content.
pub(super) type Carried = (String, Vec<u8>);

/// The variable that names the guest's program where this one does not carry it.
const VARIABLE: &str = "FAIRLAB_GUEST";

/// The guest's program.
pub(super) fn guest() -> Result<Cow<'static, [u8]>, LabError> {
    if let Some(path) = env::var_os(VARIABLE) {
        let program = fs::read(&path).map_err(|error| {
            let path = path.display();
            LabError::new(format!("{path}: {error}"), format!("set {VARIABLE} to what scripts/guest prints"))
        });
        return program.map(Cow::Owned);
    }
    if GUEST.is_empty() {
        return Err(LabError::new(
            "this build of fairlab carries no program for guests",
            format!(
                "build it with --release, on x86-64 Linux, or set {VARIABLE} to what scripts/guest prints"
            ),
        ));
    }
    Ok(Cow::Borrowed(GUEST))
}

/// The archive. Equal arguments give equal bytes.
pub(super) fn make(guest: &[u8], job: &Job, carried: &[Carried]) -> Vec<u8> {
    let mut archive = Archive::default();
    for folder in FOLDERS {
        archive.add(folder, Kind::Folder, &[]);
    }
    archive.add("init", Kind::Program, guest);
    for program in programs() {
        archive.add(&format!("bin/{program}"), Kind::Link, b"/init");
    }
    let mut made: Vec<String> = FOLDERS.iter().map(ToString::to_string).collect();
    for (path, content) in carried {
        let path = path.trim_start_matches('/');
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        for parent in parents {
            if !made.iter().any(|folder| folder == parent) {
                archive.add(parent, Kind::Folder, &[]);
                made.push(parent.to_string());
            }
        }
        archive.add(path, Kind::Program, content);
    }
    let job = serde_json::to_vec(job).expect("a job is plain data");
    archive.add(JOB_FILE.trim_start_matches('/'), Kind::File, &job);
    archive.finish()
}
