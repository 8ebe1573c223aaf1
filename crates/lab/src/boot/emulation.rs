//! One machine from power on to its results: QEMU's command line, the watch over it, its end.
//!
//! Everything that it reads and writes is memory without a name: whatever happens, no file stays behind.
//!
//! Must not know: what is in the results.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairlab_guest::job::{ARCHIVE_AT, DONE, FAILED, LENGTH_AT, STAGE_AT, Stage};
use rustix::fs::{MemfdFlags, memfd_create};

use super::layout::Layout;
use super::qemu::Qemu;
use super::{LOCKSTEP, Mode};
use crate::LabError;

/// Room for the results; memory that nobody writes costs nothing.
const SHARED_BYTES: u64 = 512 << 20;

/// Between two looks at the machine.
const LOOK: Duration = Duration::from_millis(20);

/// How many of the console's last lines tell what went wrong.
const CONSOLE_LINES: usize = 12;

/// The kernel's command line. `mitigations=off`: they cost instructions and decide nothing here. `tsc=reliable`: emulated
/// CPUs share one clock, and the kernel may trust it. `iomem=relaxed`: the guest's own timer is reached through memory.
/// `random.trust_cpu=on`: nothing waits for entropy. `sched_verbose`: the kernel prints domains and groups.
pub(super) const KERNEL_ARGUMENTS: &str =
    "console=ttyS0 panic=-1 mitigations=off tsc=reliable iomem=relaxed random.trust_cpu=on sched_verbose";

/// What is emulated.
pub(super) struct Machine<'m> {
    pub qemu: &'m Qemu,
    pub kernel: &'m Path,
    pub initramfs: &'m [u8],
    pub layout: Layout,
    pub mode: Mode,
    /// When to give up, in time of the host.
    pub limit: Duration,
}

/// What a machine left.
pub(super) struct Left {
    pub archive: Vec<u8>,
    pub console: String,
    /// QEMU's arguments, without what differs from run to run.
    pub arguments: Vec<String>,
    pub wall: Duration,
}

/// Why a machine left nothing.
enum Failure {
    Stopped,
    TimeOut(Stage),
    Panicked,
    Ended(ExitStatus),
    GuestGaveUp(String),
}

/// Memory with a number instead of a name, which a program that is started can open.
struct Memory(File);

impl Memory {
    fn new(what: &str, content: &[u8]) -> io::Result<Memory> {
        // Without CLOEXEC: QEMU inherits it.
        let mut file = File::from(memfd_create(what, MemfdFlags::empty())?);
        file.write_all(content)?;
        Ok(Memory(file))
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

/// QEMU, which ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // In lockstep it does not hear a polite request while a CPU is busy.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a machine until its guest is done.
pub(super) fn emulate(machine: &Machine<'_>, stop: &AtomicBool) -> Result<Option<Left>, LabError> {
    let told = |error: io::Error| {
        LabError::new(format!("cannot start a machine: {error}"), "see what memory is free")
    };
    let shared = Memory::new("fairlab-shared", &[]).map_err(told)?;
    shared.0.set_len(SHARED_BYTES).map_err(told)?;
    let console = Memory::new("fairlab-console", &[]).map_err(told)?;
    let errors = Memory::new("fairlab-errors", &[]).map_err(told)?;
    let initramfs = Memory::new("fairlab-initramfs", machine.initramfs).map_err(told)?;
    let shim = Memory::new("fairlab-lockstep", LOCKSTEP).map_err(told)?;
    let arguments = arguments(machine);
    let mut command = machine.qemu.command(Some(&shim.path()));
    command.args(&arguments).args(["-kernel"]).arg(machine.kernel).arg("-initrd").arg(initramfs.path());
    command.arg("-serial").arg(format!("file:{}", console.path().display()));
    command.arg("-object").arg(format!(
        "memory-backend-file,id=shared,size={SHARED_BYTES},mem-path={},share=on",
        shared.path().display()
    ));
    command.args(["-device", "ivshmem-plain,memdev=shared"]);
    command.env("FAIRLAB_PARENT", std::process::id().to_string());
    if machine.mode == Mode::Deterministic {
        command.env("FAIRLAB_LOCKSTEP", "1");
    }
    // A terminal's interrupt is for us: we end it.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(errors.0.try_clone().map_err(told)?);
    let started = Instant::now();
    let mut running = Running(command.spawn().map_err(told)?);
    let outcome = watch(&mut running.0, &shared.0, &console.0, machine.limit, stop);
    drop(running);
    let wall = started.elapsed();
    let console = text(&console.0);
    match outcome.map_err(told)? {
        Ok(archive) => Ok(Some(Left { archive, console, arguments, wall })),
        Err(Failure::Stopped) => Ok(None),
        Err(failure) => Err(explain(&failure, &console, &text(&errors.0))),
    }
}

/// What does not differ from run to run.
fn arguments(machine: &Machine<'_>) -> Vec<String> {
    let Layout { sockets, cores, threads, nodes } = machine.layout;
    let cpus = machine.layout.cpus();
    let mut text = String::from("-name fairlab,debug-threads=on -machine pc ");
    text += match machine.mode {
        Mode::Deterministic => {
            "-accel tcg,thread=single -icount shift=0,sleep=off -rtc base=2024-01-01,clock=vm -seed 1 "
        }
        Mode::Threads => "-accel tcg,thread=multi ",
    };
    // A model with a shared last-level cache and with threads; later ones cost more and decide nothing else.
    text += &format!("-cpu Nehalem -smp {cpus},sockets={sockets},cores={cores},threads={threads} ");
    let memory = machine.layout.memory_mib();
    text += &format!("-m {memory} -display none -nodefaults -no-reboot ");
    if nodes > 1 {
        let (each, per_node) = (cpus / nodes, memory / nodes);
        for node in 0..nodes {
            let (first, last) = (node * each, node * each + each - 1);
            text += &format!("-object memory-backend-ram,id=node{node},size={per_node}M ");
            text += &format!("-numa node,nodeid={node},memdev=node{node},cpus={first}-{last} ");
        }
        for one in 0..nodes {
            for other in one + 1..nodes {
                text += &format!("-numa dist,src={one},dst={other},val=20 ");
            }
        }
    }
    let mut arguments: Vec<String> = text.split_whitespace().map(str::to_string).collect();
    arguments.extend(["-append".to_string(), KERNEL_ARGUMENTS.to_string()]);
    arguments
}

/// Waits for the guest's results or for what prevents them.
fn watch(
    qemu: &mut Child,
    shared: &File,
    console: &File,
    limit: Duration,
    stop: &AtomicBool,
) -> io::Result<Result<Vec<u8>, Failure>> {
    let started = Instant::now();
    loop {
        let mut head = [0; 20];
        shared.read_exact_at(&mut head, 0)?;
        if head.starts_with(DONE) || head.starts_with(FAILED) {
            let length = u64::from_le_bytes(head[LENGTH_AT..LENGTH_AT + 8].try_into().unwrap_or_default());
            let length = length.min(SHARED_BYTES - ARCHIVE_AT as u64);
            let mut archive = vec![0; length as usize];
            shared.read_exact_at(&mut archive, ARCHIVE_AT as u64)?;
            return Ok(match head.starts_with(DONE) {
                true => Ok(archive),
                false => Err(Failure::GuestGaveUp(String::from_utf8_lossy(&archive).into_owned())),
            });
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(Err(Failure::Stopped));
        }
        if text(console).contains("Kernel panic - not syncing") {
            return Ok(Err(Failure::Panicked));
        }
        if let Some(status) = qemu.try_wait()? {
            return Ok(Err(Failure::Ended(status)));
        }
        if started.elapsed() > limit {
            let stage = u32::from_le_bytes(head[STAGE_AT..STAGE_AT + 4].try_into().unwrap_or_default());
            return Ok(Err(Failure::TimeOut(Stage::of(stage))));
        }
        thread::sleep(LOOK);
    }
}

/// The whole text of a file that is still written.
fn text(file: &File) -> String {
    let length = file.metadata().map_or(0, |about| about.len());
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

/// What happened, and the last that the console said.
fn explain(failure: &Failure, console: &str, errors: &str) -> LabError {
    let (problem, hint) = match failure {
        Failure::Stopped => ("the machine was stopped".to_string(), "run it again"),
        Failure::TimeOut(stage) => (
            format!("the machine was not done in time: time was up {}", stage.describe()),
            "allow more with --timeout, or give it fewer CPUs or less to do",
        ),
        Failure::Panicked => ("the booted kernel panicked".to_string(), "try another image or topology"),
        Failure::GuestGaveUp(why) => {
            (format!("the guest gave up: {}", why.trim()), "see what it was asked to do")
        }
        Failure::Ended(status) => {
            let said = errors.lines().last().unwrap_or("it does not say why");
            (format!("QEMU ended by itself ({status}): {said}"), "see whether the image is for this machine")
        }
    };
    let lines: Vec<&str> = console.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(CONSOLE_LINES)..];
    let shown = match last {
        [] => "\nthe console said nothing".to_string(),
        last => format!("\nthe console's last lines:\n  {}", last.join("\n  ")),
    };
    LabError::new(problem, format!("{hint}{shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_show_the_end_of_the_console() {
        let console: String = (1..=40).map(|line| format!("[    0.{line:02}] line {line}\r\n\n")).collect();
        let error = explain(&Failure::TimeOut(Stage::Workload), &console, "").to_string();
        assert!(error.contains("time was up while the workload ran"), "{error}");
        assert!(
            error.contains("line 40") && error.contains("line 29") && !error.contains("line 28\n"),
            "{error}"
        );
        let silent = explain(&Failure::GuestGaveUp("no\n".to_string()), "", "").to_string();
        assert!(silent.contains("the guest gave up: no;") && silent.contains("said nothing"), "{silent}");
    }

    #[test]
    fn memory_without_a_name_is_opened_by_others() {
        let memory = Memory::new("test", b"content").expect("memory");
        assert_eq!(std::fs::read(memory.path()).expect("read"), b"content");
        assert_eq!(text(&memory.0), "content");
    }
}
