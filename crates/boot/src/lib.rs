//! Real kernels: an image is booted in QEMU, runs a workload while its scheduler is recorded, and is gone.
//!
//! Must not know: what a recording is asked, how a result reaches a user.

mod board;
mod devicetree;
mod emulation;
mod hardware;
mod image;
mod initramfs;
mod layout;
mod qemu;
mod ubuntu;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fairlab_event::{Digest, DigestSink, Ns, Pid, Sink, System};
use fairlab_guest::job::Job;
pub use fairlab_guest::job::KernelSetting;
use fairlab_guest::results::{self, TRACE};
use fairlab_live::LiveReport;
use fairlab_sim::rng::RandomStream;
use fairlab_trace::{ImportStats, ReadOptions};
use serde_json::{Value, json};

pub use board::Board;
use emulation::{EmulatedMachine, emulate, kernel_arguments};
use fairlab_event::Origin;
use fairlab_files::{LabError, OutputFolder};
use fairlab_recording::TraceFile;
pub use hardware::{Architecture, Hardware};
use image::FetchedImage;
pub use image::{KernelImage, SUITES};
pub use initramfs::{GuestFile, Guests, carry_guests};
pub use layout::{CpuLayout, THREADS_CPUS_MAX, TURNS_CPUS_MAX};
pub use qemu::QEMU_VERSION;
use qemu::Qemu;
pub use ubuntu::UbuntuPackage;

/// How long a guest rests at least before recording begins: what a kernel does after its start is over by then.
const SETTLE_NS: u64 = 300_000_000;

/// By how much longer it rests, as the seed has it: when ticks and balancing come after a workload's start is chance, and
/// without this it would be the same chance in every run.
const SETTLE_SPREAD_NS: u64 = 100_000_000;

/// What is loaded into QEMU; empty where it was not made for this architecture.
const LOCKSTEP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lockstep.so"));

/// How CPUs are emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmulationMode {
    /// In turn, by one thread of the host; time is instructions. Equal inputs give equal runs.
    Deterministic,
    /// Each by a thread of the host; time is the host's.
    Threads,
}

impl EmulationMode {
    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            EmulationMode::Deterministic => "deterministic",
            EmulationMode::Threads => "threads",
        }
    }

    /// What times mean in it, for people.
    pub const fn meaning(self) -> &'static str {
        match self {
            EmulationMode::Deterministic => {
                "time is virtual: an instruction is a nanosecond, shared by all CPUs that are busy, and idle time passes \
                 at once; equal inputs give equal runs. Compare in ticks and slices: microseconds of kernel work grow \
                 with the CPUs that are busy"
            }
            EmulationMode::Threads => {
                "time is the host's, and CPUs stand still while the host runs others: good for topologies and domains, \
                 not for times"
            }
        }
    }
}

/// What to boot and what to do there.
#[derive(Clone, Debug)]
pub struct BootOptions {
    /// The kernel.
    pub image: KernelImage,
    /// Whether to fetch the newest of a named image, though one is there.
    pub refresh: bool,
    /// What it is booted on.
    pub hardware: Hardware,
    /// How they are emulated.
    pub mode: EmulationMode,
    /// Whether to record what the scheduler decides by, not only its events.
    pub probes: bool,
    /// What the kernel's scheduler is set to before anything is recorded.
    pub settings: Vec<KernelSetting>,
    /// What is added to the kernel's command line.
    pub parameters: Vec<String>,
    /// Whether the guest's first process begins a session, as an init does, in which the workload runs.
    pub session: bool,
    /// The program and its arguments.
    pub workload: Vec<String>,
    /// Files of this host that it needs there.
    pub carried: Vec<GuestFile>,
    /// The root seed of the workload's own randomness, and of when it starts.
    pub seed: u64,
    /// When to stop a workload that has not ended by itself, in time of the guest.
    pub duration: Option<Ns>,
    /// When to give up, in time of the host.
    pub limit: Duration,
}

/// What a booted kernel left.
#[derive(Clone, Debug)]
pub struct Booted {
    /// Its release (`uname -r`).
    pub release: String,
    /// How CPUs were emulated.
    pub mode: EmulationMode,
    /// QEMU's version.
    pub qemu: String,
    /// How the workload ended, as a shell would tell it.
    pub status: i32,
    /// Its process in the guest.
    pub pid: Pid,
    /// What it says of itself, if it is one of our own.
    pub report: Option<LiveReport>,
    /// What it printed.
    pub output: String,
    /// What it printed as errors.
    pub errors: String,
    /// The digest of all recorded events.
    pub digest: Digest,
    /// What was read of the trace.
    pub import: ImportStats,
    /// Events that buffers had no room for.
    pub dropped: u64,
    /// How long the host worked.
    pub wall: Duration,
    /// Everything about the run, as data.
    pub meta: Value,
    files: GuestFiles,
}

/// Boots, runs, brings back; `None` if `stop` was set before the end. `on_stage` hears how far it is, more than once for a stage.
///
/// # Errors
/// Image or QEMU cannot be had; the machine does not come up, panics, or is not done in time.
pub fn boot(
    options: &BootOptions,
    on_stage: &dyn Fn(&'static str),
    stop: &AtomicBool,
) -> Result<Option<Booted>, LabError> {
    let architecture = options.hardware.architecture();
    let kernel_arguments = kernel_arguments(architecture, &options.parameters)?;
    let guest = initramfs::guest(architecture)?;
    on_stage("QEMU and kernel are looked for, or fetched");
    let qemu = Qemu::find(architecture, stop)?;
    let FetchedImage { kernel, modules } = options.image.files(architecture, options.refresh, stop)?;
    let modules = modules.iter().map(|path| initramfs::module(path)).collect::<Result<Vec<_>, _>>()?;
    let job = job(options);
    let initramfs = initramfs::make(&guest, &job, &modules, &options.carried);
    let machine = EmulatedMachine {
        qemu: &qemu,
        kernel: &kernel,
        initramfs: &initramfs,
        hardware: &options.hardware,
        mode: options.mode,
        kernel_arguments: &kernel_arguments,
        slice_ns: slice_ns(options),
        limit: options.limit,
    };
    let Some(left) = emulate(&machine, on_stage, stop)? else { return Ok(None) };
    on_stage("the trace is read");
    let mut files = GuestFiles::unpack(&left.archive)?;
    let hz: Option<u64> = files.take("hz")?.parse().ok();
    let kernel_bytes = std::fs::read(&kernel).unwrap_or_default();
    let mut meta = json!({
        "vcpus": options.hardware.cpus(),
        "topology": options.hardware.to_string(),
        "architecture": architecture.of_kernel(),
        "HZ": hz,
        "origin": Origin::Booted.name(),
        "mode": options.mode.name(),
        "workload": options.workload,
        "seed": options.seed,
        "probed": options.probes,
        "trace_clock": job.trace_clock,
        "clock_hz": 1_000_000_000,
        "slice_ns": slice_ns(options),
        "image": options.image.to_string(),
        "image_digest": of_bytes(&kernel_bytes),
        "initramfs_digest": of_bytes(&initramfs),
        "qemu": qemu.version,
        "qemu_arguments": left.arguments,
        "kernel_arguments": kernel_arguments,
        "session": options.session,
        "settings": options.settings.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    let mut booted = Booted {
        release: files.text("sched_info.txt")?.split_whitespace().nth(3).unwrap_or_default().to_string(),
        mode: options.mode,
        qemu: qemu.version.clone(),
        status: files.take("status")?.parse().map_err(|_| broken("status"))?,
        pid: Pid(files.take("pid")?.parse().map_err(|_| broken("pid"))?),
        report: serde_json::from_str(&files.text("report.json")?)
            .ok()
            .and_then(|value| LiveReport::from_json(&value)),
        output: files.text("workload.txt")?,
        errors: files.text("workload-errors.txt")?,
        digest: Digest(0),
        import: ImportStats::default(),
        dropped: dropped(&files.text("trace-stats.txt")?),
        wall: left.wall,
        meta: Value::Null,
        files,
    };
    booted.files.0.push(("console.txt", left.console.into_bytes()));
    meta["release"] = json!(booted.release);
    meta["status"] = json!(booted.status);
    booted.meta = meta;
    booted.take_digest()?;
    Ok(Some(booted))
}

/// What a guest left, by name. Each name is one of ours, never the guest's own.
#[derive(Clone, Debug)]
struct GuestFiles(Vec<(&'static str, Vec<u8>)>);

impl GuestFiles {
    fn unpack(bytes: &[u8]) -> Result<GuestFiles, LabError> {
        let listed = results::unpack(bytes).map_err(|problem| broken(&problem))?;
        Ok(GuestFiles(listed.into_iter().map(|(name, content)| (name, content.to_vec())).collect()))
    }

    fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, content)| content.as_slice())
    }

    fn text(&self, name: &str) -> Result<String, LabError> {
        let content = self.get(name).ok_or_else(|| broken(&format!("there is no {name}")))?;
        Ok(String::from_utf8_lossy(content).into_owned())
    }

    /// The text of a file that is not kept.
    fn take(&mut self, name: &str) -> Result<String, LabError> {
        let text = self.text(name)?;
        self.0.retain(|(known, _)| *known != name);
        Ok(text)
    }
}

fn broken(what: &str) -> LabError {
    LabError::new(format!("the guest's results are broken: {what}"), "report this")
}

fn job(options: &BootOptions) -> Job {
    let deterministic = options.mode == EmulationMode::Deterministic;
    let (on_pc, files) = match &options.hardware {
        Hardware::Pc(_) => (true, Vec::new()),
        Hardware::Board(board) => (false, board.files()),
    };
    Job {
        workload: options.workload.clone(),
        seed: options.seed,
        duration_ns: options.duration.map(|duration| duration.0),
        // The text of a trace has nanoseconds of this clock only; under lockstep it ticks once a nanosecond.
        trace_clock: if deterministic && on_pc { "x86-tsc" } else { "mono" }.to_string(),
        buffer_kb: if options.hardware.cpus() > 16 { 4096 } else { 16384 },
        probes: options.probes,
        settle_ns: SETTLE_NS + RandomStream::new(options.seed, "settle").below(SETTLE_SPREAD_NS),
        slice_ns: slice_ns(options).filter(|_| on_pc),
        forgets_wakees: deterministic,
        files,
        settings: options.settings.clone(),
        parameters: options.parameters.clone(),
        session: options.session,
    }
}

/// What the others wait for a CPU, whatever their number, where they take turns; the emulator divides it among them.
fn slice_ns(options: &BootOptions) -> Option<u64> {
    let slice_ns = if options.hardware.cpus() > 4 { 50_000 } else { 20_000 };
    (options.mode == EmulationMode::Deterministic).then_some(slice_ns)
}

/// The digest that tells bytes apart.
fn of_bytes(bytes: &[u8]) -> String {
    Digest(xxhash_rust::xxh3::xxh3_128(bytes)).to_string()
}

/// What CPUs' buffers lost, by their statistics.
fn dropped(statistics: &str) -> u64 {
    let words: Vec<&str> = statistics.split_whitespace().collect();
    let lost = words.windows(2).filter(|pair| matches!(pair[0], "overrun:" | "events:"));
    lost.filter_map(|pair| pair[1].parse::<u64>().ok()).sum()
}

impl Booted {
    /// Reads the trace for what is printed of it.
    fn take_digest(&mut self) -> Result<(), LabError> {
        let mut digest = DigestSink::default();
        self.import = self.read(&mut digest)?;
        self.digest = digest.digest();
        self.meta["digest"] = json!(self.digest.to_string());
        Ok(())
    }

    /// Hands the recorded events to a sink.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn read(&self, sink: &mut dyn Sink) -> Result<ImportStats, LabError> {
        let bytes = self.files.get(TRACE).unwrap_or_default();
        let lines = |name: &str| self.file(name).unwrap_or_default();
        let told = fairlab_recording::lines_of_machine(&lines("sched_info.txt"));
        sink.system(&System {
            release: self.release.clone(),
            node: "fairlab".to_string(),
            architecture: self.meta["architecture"].as_str().unwrap_or_default().to_string(),
            cpus: self.meta["vcpus"].as_u64().and_then(|cpus| u32::try_from(cpus).ok()),
            origin: Origin::Booted.name().to_string(),
            kernel: String::new(),
            seed: self.meta["seed"].as_u64(),
            hz: self.meta["HZ"].as_u64(),
            topology: told,
            groups: fairlab_recording::lines_of_groups(&lines("cgroups-start.txt")),
            members: fairlab_recording::members_of_groups(&lines("tasks-start.txt")),
            recorded: fairlab_recording::events_on(&lines("events.txt")),
            ..System::default()
        });
        // Where stamps are bare numbers they are the emulated clock's, which ticks once a nanosecond.
        let options = ReadOptions { clock_hz: Some(1_000_000_000), ..ReadOptions::default() };
        fairlab_trace::read(Box::new(bytes), &options, sink).map_err(|error| {
            LabError::new(format!("what the booted kernel recorded cannot be read: {error}"), "report this")
        })
    }

    /// The text of a file that it left.
    pub fn file(&self, name: &str) -> Option<String> {
        self.files.text(name).ok()
    }

    /// Whether the kernel counts how long tasks wait and sleep (`/proc/schedstat`).
    pub fn has_schedstats(&self) -> bool {
        self.file("schedstat-before").is_some_and(|text| !text.is_empty())
    }

    /// Writes a recording's folder, which `fairlab verify` takes as it is, with the trace also as a trace.dat.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &OutputFolder) -> Result<(), LabError> {
        for (name, content) in &self.files.0 {
            // What is long is packed.
            if *name == TRACE || name.starts_with("tasks-sched-") {
                let packed = zstd::encode_all(content.as_slice(), 9)
                    .map_err(|error| LabError::new(format!("cannot pack {name}: {error}"), "try again"))?;
                folder.bytes(&format!("{name}.zst"), &packed)?;
            } else {
                folder.bytes(name, content)?;
            }
        }
        folder.bytes("meta.json", format!("{:#}\n", self.meta).as_bytes())?;
        let mut trace = TraceFile::create(&folder.path("trace.dat"), None)?;
        self.read(&mut trace)?;
        trace.finish().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_all_cpus_are_added() {
        let statistics = "cpu0 entries: 6546 overrun: 2 commit overrun: 0 dropped events: 1\ncpu1 entries: 9 overrun: 4 commit overrun: 0 dropped events: 0\n";
        assert_eq!(dropped(statistics), 7);
    }

    #[test]
    fn equal_jobs_make_equal_initramfs() {
        let options = BootOptions {
            image: KernelImage::Debian("bookworm"),
            refresh: false,
            hardware: Hardware::Pc("2".parse().expect("a layout")),
            mode: EmulationMode::Deterministic,
            probes: false,
            settings: Vec::new(),
            parameters: Vec::new(),
            session: false,
            workload: vec!["spin".to_string()],
            carried: Vec::new(),
            seed: 1,
            duration: None,
            limit: Duration::from_secs(1),
        };
        let made = initramfs::make(b"program", &job(&options), &[], &[]);
        assert_eq!(made, initramfs::make(b"program", &job(&options), &[], &[]));
        let other = BootOptions { workload: vec!["other".to_string()], ..options };
        assert_ne!(made, initramfs::make(b"program", &job(&other), &[], &[]));
    }
}
