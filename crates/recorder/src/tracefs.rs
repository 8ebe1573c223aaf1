//! An instance of tracefs of our own: its buffers, its events, and their end.
//!
//! Whatever happens, an instance is taken down when it is dropped; nothing of the machine's own tracing is touched.
//!
//! Must not know: what is recorded, and for which command.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use fairlab_files::owner::{self, ProcessOwner};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use fairlab_files::LabError;

/// Where tracefs is mounted, as a rule.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// What tells how much the kernel keeps from root: all states, the present one in brackets.
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// How the names of our instances begin; whose they are follows, and a number.
const PREFIX: &str = "fairlab_";

/// What the probes of an instance are made of: (name, what is probed, what is fetched).
pub(super) type InstanceProbe = (&'static str, &'static str, &'static str);

/// Instances that this process has made: each gets a name of its own.
static CREATED: AtomicU32 = AtomicU32::new(0);

/// The tracefs of this host.
#[derive(Debug)]
pub(super) struct Tracefs {
    top: PathBuf,
    /// A mount that stands in no folder, and ends with this.
    _own: Option<OwnedFd>,
}

impl Tracefs {
    /// Where it is mounted; or, where it is not, mounted for this process alone.
    pub fn find() -> Result<Tracefs, LabError> {
        let mounted = PLACES.iter().map(PathBuf::from).find(|place| is_tracefs(place));
        let found = mounted.map(|top| Tracefs { top, _own: None }).or_else(|| Tracefs::mount().ok());
        let lockdown = || fs::read_to_string(LOCKDOWN).unwrap_or_default();
        found.filter(|found| is_tracefs(&found.top)).ok_or_else(|| absent(&lockdown()))
    }

    fn mount() -> io::Result<Tracefs> {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        let top = format!("/proc/{}/fd/{}", std::process::id(), mount.as_raw_fd());
        Ok(Tracefs { top: PathBuf::from(top), _own: Some(mount) })
    }

    /// The folder that it is to this process.
    pub fn top(&self) -> &Path {
        &self.top
    }
}

fn is_tracefs(place: &Path) -> bool {
    place.join("instances").is_dir()
}

/// An instance that records until it is dropped.
#[derive(Debug)]
pub(super) struct TracefsInstance {
    tracefs: Tracefs,
    folder: PathBuf,
    /// The group of our probes, and their names.
    group: String,
    probes: Vec<&'static str>,
}

impl TracefsInstance {
    /// A new instance below the tracefs of this host.
    pub fn create() -> Result<TracefsInstance, LabError> {
        TracefsInstance::below(Tracefs::find()?)
    }

    fn below(tracefs: Tracefs) -> Result<TracefsInstance, LabError> {
        let top = tracefs.top();
        remove_left_behind(top);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let group = format!("{PREFIX}{}_{number}", ProcessOwner::this().token());
        let folder = top.join("instances").join(&group);
        fs::create_dir(&folder).map_err(|error| {
            LabError::new(format!("cannot make {}: {error}", folder.display()), hint(&error))
        })?;
        let instance = TracefsInstance { tracefs, folder, group, probes: Vec::new() };
        instance.set("tracing_on", "0")?;
        Ok(instance)
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of the whole tracefs, where descriptions stand that all instances share.
    pub fn top(&self) -> &Path {
        self.tracefs.top()
    }

    /// Writes `value` into one of its files.
    pub fn set(&self, file: &str, value: &str) -> Result<(), LabError> {
        write(&self.folder.join(file), value).map_err(|error| {
            let path = self.folder.join(file);
            LabError::new(format!("cannot write '{value}' to {}: {error}", path.display()), hint(&error))
        })
    }

    /// Switches an event on, named `SYSTEM:EVENT`. `false` if this kernel has none of that name.
    pub fn enable(&self, event: &str) -> Result<bool, LabError> {
        let path = format!("events/{}/enable", event.replace(':', "/"));
        if !self.folder.join(&path).is_file() {
            return Ok(false);
        }
        self.set(&path, "1").map(|()| true)
    }

    /// Makes probes and switches them on; they are gone with the instance. Returns those that this kernel refuses.
    pub fn probe(&mut self, probes: &[InstanceProbe]) -> Vec<&'static str> {
        let mut refused = Vec::new();
        for &(name, place, fetched) in probes {
            let line = format!("p:{}/{name} {place} {fetched}\n", self.group);
            let made = append(&self.top().join("kprobe_events"), &line).is_ok();
            if made {
                self.probes.push(name);
            }
            let event = format!("{}:{name}", self.group);
            if !made || !self.enable(&event).unwrap_or(false) {
                refused.push(name);
            }
        }
        refused
    }

    /// The system under which our probes stand.
    pub fn probe_system(&self) -> &str {
        &self.group
    }

    /// The CPUs that have a buffer.
    pub fn cpus(&self) -> io::Result<Vec<u32>> {
        let mut cpus = Vec::new();
        for entry in fs::read_dir(self.folder.join("per_cpu"))? {
            let name = entry?.file_name();
            cpus.extend(name.to_string_lossy().strip_prefix("cpu").and_then(|cpu| cpu.parse::<u32>().ok()));
        }
        cpus.sort_unstable();
        Ok(cpus)
    }

    /// Events that the buffer of a CPU had to drop.
    pub fn dropped(&self, cpu: u32) -> u64 {
        let stats = read(&self.folder.join(format!("per_cpu/cpu{cpu}/stats"))).unwrap_or_default();
        let stats = String::from_utf8_lossy(&stats);
        let of = |line: &str| {
            let (name, value) = line.split_once(':')?;
            matches!(name.trim(), "overrun" | "dropped events").then(|| value.trim().parse::<u64>().ok())?
        };
        stats.lines().filter_map(of).sum()
    }
}

/// Instances of ours whose process was killed before it could remove them. An instance that is still read cannot be removed, so
/// those of living processes stay.
fn remove_left_behind(top: &Path) {
    let owner_of = |name: &str| ProcessOwner::parse(name.strip_prefix(PREFIX)?.rsplit_once('_')?.0);
    owner::remove_left_behind(&top.join("instances"), owner_of, |folder| {
        if fs::remove_dir(folder).is_ok()
            && let Some(name) = folder.file_name().and_then(|name| name.to_str())
        {
            remove_probes(top, name);
        }
    });
}

/// Takes the probes of an instance down that is gone.
fn remove_probes(top: &Path, group: &str) {
    let events = read(&top.join("kprobe_events")).unwrap_or_default();
    for line in String::from_utf8_lossy(&events).lines() {
        let event = line.split([':', ' ']).nth(1);
        if let Some(event) = event.filter(|event| event.starts_with(&format!("{group}/"))) {
            let _ = append(&top.join("kprobe_events"), &format!("-:{event}\n"));
        }
    }
}

/// Why there is no tracefs to be found, as the kernel describes its lockdown.
fn absent(lockdown: &str) -> LabError {
    if lockdown.contains("[confidentiality]") {
        return LabError::new(
            "this kernel is in lockdown for confidentiality: tracefs is empty, for root, too",
            "boot it with lockdown=integrity, where recording is allowed, or without",
        );
    }
    LabError::new("tracefs is not there, or not for this user", "run as root, on a kernel with tracing")
}

/// What to do where tracefs refuses. In a lockdown that began later folders can be made there, but no file can be opened.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "run as root; a kernel in lockdown refuses root, too: 'cat /sys/kernel/security/lockdown' tells"
        }
        _ => "see whether this kernel knows it, and whether tracing is allowed on this host",
    }
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).open(path)?.write_all(line.as_bytes())
}

/// Everything as it was. A buffer that somebody still reads holds the folder for a moment.
impl Drop for TracefsInstance {
    fn drop(&mut self) {
        let _ = write(&self.folder.join("tracing_on"), "0");
        let _ = write(&self.folder.join("events/enable"), "0");
        for name in &self.probes {
            let _ = append(&self.top().join("kprobe_events"), &format!("-:{}/{name}\n", self.group));
        }
        for _ in 0..100 {
            match fs::remove_dir(&self.folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    thread::sleep(Duration::from_millis(20));
                }
                _ => return,
            }
        }
    }
}

/// All bytes of a file of tracefs. Some files answer the first read only, so the first read is large.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let (mut file, mut bytes, mut piece) = (File::open(path)?, Vec::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(bytes),
            length => bytes.extend_from_slice(&piece[..length]),
        }
    }
}

/// Copies a small file out of tracefs; what is not there is left out.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let bytes = match read(from) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    File::create(to)?.write_all(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_in_lockdown_is_told_of() {
        for errno in [1, 13] {
            let told = hint(&io::Error::from_raw_os_error(errno));
            assert!(told.contains("lockdown") && !told.contains('\n'), "{told}");
        }
        assert!(!hint(&io::Error::from_raw_os_error(22)).contains("lockdown"));
        assert!(absent("none integrity [confidentiality]\n").problem.contains("in lockdown"));
        for open in ["", "[none] integrity confidentiality\n", "none [integrity] confidentiality\n"] {
            assert_eq!(absent(open).problem, "tracefs is not there, or not for this user");
        }
    }

    #[test]
    fn what_cannot_be_made_is_named() {
        let error = TracefsInstance::below(Tracefs { top: PathBuf::from("/nowhere"), _own: None })
            .expect_err("no such place");
        assert!(error.problem.starts_with("cannot make /nowhere/instances/fairlab_"), "{error}");
        assert!(!error.hint.is_empty());
    }
}
