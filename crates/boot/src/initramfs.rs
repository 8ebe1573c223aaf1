//! What the booted kernel unpacks into memory and starts: our first process, links to its workloads, the job.
//!
//! Must not know: which kernel.

use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;
use std::{env, fs};

use fairlab_guest::archive::{Archive, ArchiveEntryKind};
use fairlab_guest::job::{JOB_FILE, Job, MODULES_FOLDER};
use fairlab_guest::programs;

use fairlab_files::LabError;

use crate::hardware::Architecture;

/// The guest's programs that the running program carries, each empty where it carries none.
#[derive(Clone, Copy, Default, Debug)]
pub struct Guests {
    /// For machines of x86-64.
    pub amd64: &'static [u8],
    /// For machines of arm64.
    pub arm64: &'static [u8],
}

static GUESTS: OnceLock<Guests> = OnceLock::new();

/// Tells what the running program carries, once, at its start. What comes later is ignored.
pub fn carry_guests(guests: Guests) {
    GUESTS.get_or_init(|| guests);
}

/// Where file systems are mounted, and programs lie.
const FOLDERS: [&str; 5] = ["bin", "dev", "proc", "sys", "tmp"];

/// A program of the host's that runs in the guest: its path there and its content.
pub type GuestFile = (String, Vec<u8>);

/// A module that the kernel loads.
pub(super) fn module(path: &Path) -> Result<GuestFile, LabError> {
    let content = fs::read(path)
        .map_err(|error| LabError::new(format!("{}: {error}", path.display()), "check its permissions"))?;
    Ok((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), content))
}

/// The guest's program. A variable names it where this program does not carry it.
pub(super) fn guest(architecture: Architecture) -> Result<Cow<'static, [u8]>, LabError> {
    let guests = GUESTS.get().copied().unwrap_or_default();
    let (variable, script, carried, cure) = match architecture {
        Architecture::Amd64 => {
            ("FAIRLAB_GUEST", "scripts/guest", guests.amd64, "build it with --release, on x86-64 Linux")
        }
        Architecture::Arm64 => {
            ("FAIRLAB_GUEST_ARM64", "scripts/guest arm64", guests.arm64, "run 'make guest-arm64'")
        }
    };
    if let Some(path) = env::var_os(variable) {
        let program = fs::read(&path).map_err(|error| {
            let path = path.display();
            LabError::new(format!("{path}: {error}"), format!("set {variable} to what {script} prints"))
        });
        return program.map(Cow::Owned);
    }
    if carried.is_empty() {
        let name = architecture.of_debian();
        return Err(LabError::new(
            format!("this build of fairlab carries no program for guests of {name}"),
            format!("{cure}, or set {variable} to what {script} prints"),
        ));
    }
    Ok(Cow::Borrowed(carried))
}

/// The archive. Equal arguments give equal bytes.
pub(super) fn make(guest: &[u8], job: &Job, modules: &[GuestFile], carried: &[GuestFile]) -> Vec<u8> {
    let mut archive = Archive::default();
    for folder in FOLDERS {
        archive.add(folder, ArchiveEntryKind::Folder, &[]);
    }
    archive.add("init", ArchiveEntryKind::Program, guest);
    for program in programs() {
        archive.add(&format!("bin/{program}"), ArchiveEntryKind::Link, b"/init");
    }
    let mut made: Vec<String> = FOLDERS.iter().map(ToString::to_string).collect();
    for (path, content) in carried {
        let path = path.trim_start_matches('/');
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        for parent in parents {
            if !made.iter().any(|folder| folder == parent) {
                archive.add(parent, ArchiveEntryKind::Folder, &[]);
                made.push(parent.to_string());
            }
        }
        archive.add(path, ArchiveEntryKind::Program, content);
    }
    if !modules.is_empty() {
        archive.add(MODULES_FOLDER.trim_start_matches('/'), ArchiveEntryKind::Folder, &[]);
    }
    for (number, (name, content)) in modules.iter().enumerate() {
        let path = format!("{MODULES_FOLDER}/{number}-{name}");
        archive.add(path.trim_start_matches('/'), ArchiveEntryKind::File, content);
    }
    let job = serde_json::to_vec(job).expect("a job is plain data");
    archive.add(JOB_FILE.trim_start_matches('/'), ArchiveEntryKind::File, &job);
    archive.finish()
}
