//! What the first process does, from the first mount to the results.
//!
//! Must not know: what is measured.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::mount::{MountFlags, mount};
use rustix::process::setsid;
use rustix::system::init_module;

use crate::job::{
    ARCHIVE_AT, DONE, FAILED, GuestStage, JOB_FILE, Job, LENGTH_AT, MODULES_FOLDER, REFUSED, STAGE_AT,
};
use crate::mapping::Mapping;
use crate::results::{Results, TRACE};
use crate::settings::{RefusedSetting, SettingFolders, check_parameters, handed_on};
use crate::snapshot::{CGROUPS, Snapshot};
use crate::workload::{DURATION, REPORT, SEED};
use crate::{files, machine, slice, snapshot, tracing, wakee_flips, workload};

/// Where links to the programs of our own are.
const PROGRAMS_FOLDER: &str = "/bin";

/// Rest between the snapshot and the workload: three ticks of the slowest kernel.
const REST: Duration = Duration::from_millis(30);

/// Runs a program of our own; returns its exit status.
pub fn program(name: &str, arguments: &[String]) -> i32 {
    workload::run(name, arguments)
}

/// Does the job and leaves its results with the host, which then ends this machine. Never returns.
pub fn run() -> ! {
    let mounted = mount_all();
    let mut shared = IvshmemMemory::find();
    let mut results = Results::default();
    let job = mounted.and_then(|()| read_job()).map_err(GuestFailure::from);
    let done = job.and_then(|job| work(&job, &mut results, shared.as_mut().ok()));
    match (&mut shared, done) {
        (Ok(shared), Ok(())) => shared.leave(DONE, &results.finish()),
        (Ok(shared), Err(GuestFailure::Failed(error))) => shared.leave(FAILED, error.to_string().as_bytes()),
        (Ok(shared), Err(GuestFailure::Refused(RefusedSetting { problem, hint }))) => {
            shared.leave(REFUSED, format!("{problem}\n{hint}").as_bytes());
        }
        (Err(error), done) => eprintln!("guest: no memory is shared with the host: {error}; {done:?}"),
    }
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

/// Why there are no results.
#[derive(Debug)]
enum GuestFailure {
    Failed(io::Error),
    Refused(RefusedSetting),
}

impl From<io::Error> for GuestFailure {
    fn from(error: io::Error) -> GuestFailure {
        GuestFailure::Failed(error)
    }
}

impl From<RefusedSetting> for GuestFailure {
    fn from(refused: RefusedSetting) -> GuestFailure {
        GuestFailure::Refused(refused)
    }
}

fn mount_all() -> io::Result<()> {
    let places = [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tracefs", tracing::TRACING),
        ("debugfs", "/sys/kernel/debug"),
        ("cgroup2", CGROUPS),
    ];
    for (kind, place) in places {
        mount("none", place, kind, MountFlags::empty(), None)
            .map_err(|error| io::Error::other(format!("cannot mount {kind} at {place}: {error}")))?;
    }
    fs::create_dir_all("/dev/shm")?;
    let _ = files::write(format!("{CGROUPS}/cgroup.subtree_control"), "+cpu +cpuset");
    Ok(())
}

/// Loads the modules that came along, in the order of their names.
fn load_modules() -> io::Result<()> {
    for name in files::names(MODULES_FOLDER) {
        let module = files::bytes(Path::new(MODULES_FOLDER).join(&name))?;
        init_module(&module, c"")
            .map_err(|error| io::Error::other(format!("cannot load {name}: {error}")))?;
    }
    Ok(())
}

fn read_job() -> io::Result<Job> {
    let text = files::bytes(JOB_FILE).map_err(|error| io::Error::other(format!("{JOB_FILE}: {error}")))?;
    serde_json::from_slice(&text).map_err(|error| io::Error::other(format!("{JOB_FILE}: {error}")))
}

/// The job, from preparations to the texts of the results.
fn work(
    job: &Job,
    results: &mut Results,
    mut shared: Option<&mut IvshmemMemory>,
) -> Result<(), GuestFailure> {
    let mut reached = |stage: GuestStage| {
        if let Some(shared) = &mut shared {
            shared.reached(stage);
        }
    };
    reached(GuestStage::Started);
    check_parameters(&job.parameters, &handed_on())?;
    let _ = files::write("/proc/sys/kernel/sched_schedstats", "1");
    for verbose in ["/sys/kernel/debug/sched/verbose", "/sys/kernel/debug/sched_debug"] {
        let _ = files::write(verbose, "Y");
    }
    load_modules()?;
    for (file, value) in &job.files {
        files::write(file, value)
            .map_err(|error| io::Error::other(format!("cannot write '{value}' to {file}: {error}")))?;
    }
    SettingFolders::default().apply(&job.settings)?;
    if job.session {
        setsid().map_err(|error| io::Error::other(format!("cannot begin a session: {error}")))?;
    }
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let hz = machine::hz();
    let prepared = tracing::prepare(job, cpus)?;
    if job.forgets_wakees {
        wakee_flips::forget_wakees();
    }
    if let Some(period_ns) = job.slice_ns {
        slice::begin(period_ns)
            .map_err(|error| io::Error::other(format!("no timer bounds turns: {error}")))?;
    }
    wakee_flips::forget_search_costs(cpus);
    let description = machine::describe();
    thread::sleep(Duration::from_nanos(job.settle_ns));
    tracing::begin()?;
    thread::sleep(REST);
    let start = snapshot::take("start");
    thread::sleep(REST);
    reached(GuestStage::Workload);
    tracing::mark("WORKLOAD-BEGIN");
    let (pid, status) = run_workload(job)?;
    tracing::mark("WORKLOAD-END");
    reached(GuestStage::Results);
    let end = snapshot::take("end");
    tracing::end()?;
    let mut add = |name: &str, content: &[u8]| results.add(name, content);
    for Snapshot(texts) in [start, end] {
        for (name, text) in texts {
            add(&name, text.as_bytes())?;
        }
    }
    add("pid", pid.to_string().as_bytes())?;
    add("status", status.to_string().as_bytes())?;
    add("hz", hz.map_or_else(String::new, |hz| hz.to_string()).as_bytes())?;
    add("sched_info.txt", description.as_bytes())?;
    add("events.txt", prepared.events.as_bytes())?;
    add("probes.txt", prepared.probes.as_bytes())?;
    add("kprobe_profile.txt", files::text(format!("{}/kprobe_profile", tracing::TRACING)).as_bytes())?;
    add("trace-stats.txt", tracing::statistics().as_bytes())?;
    add("workload.txt", &files::bytes(OUTPUT)?)?;
    add("workload-errors.txt", &files::bytes(ERRORS)?)?;
    // Other programs leave none.
    add("report.json", &files::bytes(REPORT).unwrap_or_default())?;
    add(TRACE, &files::bytes(format!("{}/trace", tracing::TRACING))?)?;
    Ok(())
}

const OUTPUT: &str = "/tmp/output";
const ERRORS: &str = "/tmp/errors";

/// Runs the workload to its end. Returns its process and its exit status, as a shell would tell it.
fn run_workload(job: &Job) -> io::Result<(u32, i32)> {
    let (name, arguments) =
        job.workload.split_first().ok_or_else(|| io::Error::other("no workload is named"))?;
    // Programs of the host lie there, too, wherever they lie on the host.
    let program = Path::new(PROGRAMS_FOLDER).join(Path::new(name).file_name().unwrap_or_default());
    let mut command = Command::new(&program);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(File::create(OUTPUT)?).stderr(File::create(ERRORS)?);
    command.env_clear().env("PATH", PROGRAMS_FOLDER).env("HOME", "/tmp");
    command.env(SEED, job.seed.to_string());
    if let Some(duration_ns) = job.duration_ns {
        command.env(DURATION, duration_ns.to_string());
    }
    let mut child = command
        .spawn()
        .map_err(|error| io::Error::other(format!("cannot start '{}': {error}", program.display())))?;
    let (pid, status) = (child.id(), child.wait()?);
    Ok((pid, status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))))
}

/// The memory that a guest shares with its host: a device on the PCI bus (QEMU's `ivshmem-plain`).
struct IvshmemMemory(Mapping);

impl IvshmemMemory {
    fn find() -> io::Result<IvshmemMemory> {
        /// The device's number; its memory is behind the second of its base addresses that has 64 bits.
        const DEVICE: &str = "0x1110";
        let bus = Path::new("/sys/bus/pci/devices");
        let found =
            files::names(bus).into_iter().find(|name| files::line(bus.join(name).join("device")) == DEVICE);
        let folder = bus.join(found.ok_or_else(|| io::Error::other("the device is not there"))?);
        files::write(folder.join("enable"), "1")?;
        // Mapped as a device's, that of arm64 takes no write that is not aligned.
        let window = if cfg!(target_arch = "aarch64") { "resource2_wc" } else { "resource2" };
        let memory = OpenOptions::new().read(true).write(true).open(folder.join(window))?;
        let length = usize::try_from(memory.metadata()?.len()).map_err(io::Error::other)?;
        Mapping::new(&memory, 0, length).map(IvshmemMemory)
    }

    fn reached(&mut self, stage: GuestStage) {
        self.0.store(STAGE_AT, stage as u32);
    }

    /// Leaves the results; what says that they are there comes last.
    fn leave(&mut self, magic: &[u8; 8], bytes: &[u8]) {
        let room = self.0.length() - ARCHIVE_AT;
        if bytes.len() > room {
            let problem = format!("the results are {} bytes, and there is room for {room}", bytes.len());
            return self.leave(FAILED, problem.as_bytes());
        }
        self.0.write(ARCHIVE_AT, bytes);
        self.0.write(LENGTH_AT, &(bytes.len() as u64).to_le_bytes());
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        self.0.write(0, magic);
    }
}
