//! Files of this host that a workload needs in the guest: a program with its libraries, and files that are its arguments.
//!
//! Must not know: how they get there.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use fairlab_boot::{Architecture, GuestFile};
use fairlab_sim::workload::catalogue::WorkloadFiles;
use fairlab_sim::workload::replay::Script;

use crate::replay::{HostFiles, script_of};
use crate::{LabError, workloads};

/// Files longer than this are no configuration.
const ARGUMENT_BYTES_MAX: u64 = 16 << 20;

/// What a command needs. A workload of our own is part of the guest's program, whose options are checked here.
pub fn files(command: &[String], architecture: Architecture) -> Result<Vec<GuestFile>, LabError> {
    let Some((name, arguments)) = command.split_first() else {
        return Err(LabError::new("no workload is given", "name one behind the image"));
    };
    let mut carried = Vec::new();
    if workloads::find(name).is_ok() {
        carried.extend(read_by(command)?);
    } else if architecture != Architecture::Amd64 {
        let problem = format!(
            "'{name}' is no workload, and guests of {} run no programs of this host",
            architecture.of_debian()
        );
        return Err(LabError::new(problem, "'fairlab workloads list' lists workloads"));
    } else {
        let program = program(name)?;
        carried.push((format!("/bin/{}", file_name(&program)), read(&program)?));
        for library in libraries(&program)? {
            carried.push((library.display().to_string(), read(&library)?));
        }
        for argument in arguments {
            let is_short = fs::metadata(argument)
                .is_ok_and(|about| about.is_file() && about.len() <= ARGUMENT_BYTES_MAX);
            if is_short && in_place(argument) {
                carried.push((in_guest(argument), read(Path::new(argument))?));
            }
        }
    }
    carried.sort();
    carried.dedup();
    Ok(carried)
}

/// Files of a guest do not lie above its own.
fn in_place(path: &str) -> bool {
    Path::new(path).components().all(|part| part.as_os_str() != "..")
}

fn in_guest(path: &str) -> String {
    path.trim_start_matches("./").to_string()
}

/// The files that a workload of ours reads when it is built, whatever names them.
fn read_by(command: &[String]) -> Result<Vec<GuestFile>, LabError> {
    let asked = RequestedHostFiles::default();
    workloads::build_with(command, &asked)?;
    let (texts, scripts) = (asked.texts.into_inner(), asked.scripts.into_inner());
    let mut carried = Vec::new();
    for path in texts.iter().chain(&scripts) {
        if !in_place(path) {
            let problem = format!("{path}: a guest has no folder above the one that it runs in");
            return Err(LabError::new(problem, "name the file by a path without '..'"));
        }
        let bytes = if scripts.contains(path) { script(path)? } else { read(Path::new(path))? };
        carried.push((in_guest(path), bytes));
    }
    Ok(carried)
}

/// Files of this host, and which were asked for.
#[derive(Default)]
struct RequestedHostFiles {
    texts: RefCell<BTreeSet<String>>,
    scripts: RefCell<BTreeSet<String>>,
}

impl WorkloadFiles for RequestedHostFiles {
    fn text(&self, path: &str) -> Result<String, String> {
        self.texts.borrow_mut().insert(path.to_string());
        HostFiles.text(path)
    }

    fn script(&self, path: &str) -> Result<Arc<Script>, String> {
        self.scripts.borrow_mut().insert(path.to_string());
        HostFiles.script(path)
    }
}

/// What the tasks of a recording did: the guest reads no recordings.
fn script(path: &str) -> Result<Vec<u8>, LabError> {
    let script = script_of(path).map_err(|problem| LabError::new(problem, "check the recording"))?;
    let text = script.to_string().into_bytes();
    if text.len() as u64 > ARGUMENT_BYTES_MAX {
        let problem = format!("{path} is {} MB of what tasks did, too long for a guest", text.len() >> 20);
        return Err(LabError::new(problem, "record a shorter time"));
    }
    Ok(text)
}

/// The file of a program that this host has.
fn program(name: &str) -> Result<PathBuf, LabError> {
    let found = if name.contains('/') {
        Some(PathBuf::from(name)).filter(|path| path.is_file())
    } else {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
    };
    found.ok_or_else(|| match workloads::no_option(name) {
        Some((problem, hint)) => LabError::new(problem, hint),
        None => LabError::new(
            format!("'{name}' is no workload, and no program of this host"),
            "'fairlab workloads list' lists workloads; a program can be given by its path",
        ),
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<Vec<u8>, LabError> {
    fs::read(path)
        .map_err(|error| LabError::new(format!("{}: {error}", path.display()), "check its permissions"))
}

/// What a program loads when it starts, itself included, as the system's own loader tells it.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, LabError> {
    let output = Command::new("ldd").arg(program).env("LC_ALL", "C").output();
    let output = output.map_err(|error| {
        LabError::new(format!("cannot ask what {} loads: {error}", program.display()), "install ldd")
    })?;
    // A program that loads nothing is told by an exit status.
    let mut all = listed(&String::from_utf8_lossy(&output.stdout));
    // The C library loads it at the end of a thread.
    let unwinder =
        all.iter().find(|path| path.ends_with("libc.so.6")).map(|libc| libc.with_file_name(UNWINDER));
    let lacks = unwinder.filter(|path| path.is_file() && !all.contains(path));
    all.extend(lacks);
    Ok(all)
}

/// What the C library needs for `pthread_exit()`, and no program names.
const UNWINDER: &str = "libgcc_s.so.1";

/// `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)`, and the loader alone.
fn listed(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let line = line.trim();
        let path = line.split_once(" => ").map_or(line, |(_, path)| path).split(" (").next()?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_program_brings_its_libraries() {
        let text = "\tlinux-vdso.so.1 (0x7f)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n\t/lib64/ld-linux-x86-64.so.2 (0x7f)\n";
        assert_eq!(
            listed(text),
            [PathBuf::from("/lib/libc.so.6"), PathBuf::from("/lib64/ld-linux-x86-64.so.2")]
        );
        assert_eq!(listed("\tstatically linked\n"), Vec::<PathBuf>::new());
        let of_shell = libraries(Path::new("/bin/sh")).expect("libraries");
        assert!(of_shell.iter().any(|path| path.ends_with(UNWINDER)), "{of_shell:?}");
    }

    #[test]
    fn our_own_workloads_bring_nothing_and_are_checked() {
        assert_eq!(files(&command(&["hackbench", "-g", "1"]), Architecture::Arm64), Ok(Vec::new()));
        assert!(files(&command(&["hackbench", "--no-such-option"]), Architecture::Amd64).is_err());
        let error = files(&command(&["no-such-program-anywhere"]), Architecture::Amd64).expect_err("unknown");
        assert!(error.problem.contains("no program of this host"), "{error}");
        // What runs here does not run there.
        let error = files(&command(&["/bin/sh"]), Architecture::Arm64).expect_err("of this host");
        assert!(error.problem.contains("guests of arm64 run no programs of this host"), "{error}");
    }
}
