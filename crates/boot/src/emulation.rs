//! One machine from power on to its results: QEMU's command line, the watch over it, its end.
//!
//! Everything that it reads and writes is memory without a name: whatever happens, no file stays behind.
//!
//! Must not know: what is in the results.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairlab_guest::job::{ARCHIVE_AT, DONE, FAILED, GuestStage, LENGTH_AT, REFUSED, STAGE_AT};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::board::Board;
use crate::devicetree::DeviceTree;
use crate::hardware::{Architecture, Hardware};
use crate::layout::CpuLayout;
use crate::qemu::Qemu;
use crate::{EmulationMode, LOCKSTEP};
use fairlab_files::LabError;
use fairlab_files::temporary::PrivateFolder;

/// Room for the results; memory that is not written costs nothing.
const SHARED_BYTES: u64 = 512 << 20;

/// Between two looks at the machine.
const LOOK: Duration = Duration::from_millis(20);

/// How many of the console's last lines tell what went wrong.
const CONSOLE_LINES: usize = 12;

/// A PC's kernel's command line. `mitigations=off`: they cost instructions and decide nothing here. `tsc=reliable`: emulated
/// CPUs share one clock, and the kernel may trust it. `iomem=relaxed`: the guest's own timer is reached through memory.
/// `random.trust_cpu=on`: nothing waits for entropy. `sched_verbose`: the kernel prints domains and groups.
const PC_ARGUMENTS: &str =
    "console=ttyS0 panic=-1 mitigations=off tsc=reliable iomem=relaxed random.trust_cpu=on sched_verbose";

/// A board's. `random.trust_bootloader=on`: its CPUs have no random numbers, and its tree brings some. `sched_debug`: as
/// `sched_verbose`, up to v5.12.
const BOARD_ARGUMENTS: &str =
    "console=ttyAMA0 panic=-1 mitigations=off random.trust_bootloader=on sched_verbose sched_debug";

/// The longest command line that both architectures' kernels keep, `COMMAND_LINE_SIZE`; they cut off what is longer.
const COMMAND_LINE_BYTES: usize = 2048;

/// The kernel's command line; of what stands in it twice the kernel mostly takes the last.
pub(super) fn kernel_arguments(architecture: Architecture, added: &[String]) -> Result<String, LabError> {
    let own = match architecture {
        Architecture::Amd64 => PC_ARGUMENTS,
        Architecture::Arm64 => BOARD_ARGUMENTS,
    };
    let words = std::iter::once(own).chain(added.iter().map(String::as_str)).collect::<Vec<_>>();
    let line = words.join(" ");
    if line.len() >= COMMAND_LINE_BYTES {
        let problem =
            format!("with what --append adds the kernel's command line is {} bytes long", line.len());
        return Err(LabError::new(problem, format!("a kernel keeps {}; say less", COMMAND_LINE_BYTES - 1)));
    }
    Ok(line)
}

/// What is emulated.
pub(super) struct EmulatedMachine<'m> {
    pub qemu: &'m Qemu,
    pub kernel: &'m Path,
    pub initramfs: &'m [u8],
    pub hardware: &'m Hardware,
    pub mode: EmulationMode,
    /// The kernel's command line.
    pub kernel_arguments: &'m str,
    /// How long a CPU may run before the others, ns, where they take turns.
    pub slice_ns: Option<u64>,
    /// When to give up, in time of the host.
    pub limit: Duration,
}

/// What a machine left.
pub(super) struct EmulationOutput {
    pub archive: Vec<u8>,
    pub console: String,
    /// QEMU's arguments, without what differs from run to run.
    pub arguments: Vec<String>,
    pub wall: Duration,
}

/// Why a machine left nothing.
enum EmulationFailure {
    Stopped,
    TimeOut(GuestStage),
    Panicked,
    Ended(ExitStatus),
    GuestGaveUp(String),
    /// What the kernel was to be set to it does not take: what is wrong, and what it has.
    Refused(String),
}

/// Memory with a number instead of a name, which a program that is started can open.
struct SharedMemory(File);

impl SharedMemory {
    fn new(what: &str, content: &[u8]) -> io::Result<SharedMemory> {
        // Without CLOEXEC: QEMU inherits it.
        let mut file = File::from(memfd_create(what, MemfdFlags::empty())?);
        file.write_all(content)?;
        Ok(SharedMemory(file))
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

/// QEMU, which ends with this.
struct RunningQemu(Child);

impl Drop for RunningQemu {
    fn drop(&mut self) {
        // In lockstep it does not hear a polite request while a CPU is busy.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a machine until its guest is done.
pub(super) fn emulate(
    machine: &EmulatedMachine<'_>,
    on_stage: &dyn Fn(&'static str),
    stop: &AtomicBool,
) -> Result<Option<EmulationOutput>, LabError> {
    let told = |error: io::Error| {
        LabError::new(format!("cannot start a machine: {error}"), "see what memory is free")
    };
    let shared = SharedMemory::new("fairlab-shared", &[]).map_err(told)?;
    shared.0.set_len(SHARED_BYTES).map_err(told)?;
    let console = SharedMemory::new("fairlab-console", &[]).map_err(told)?;
    let errors = SharedMemory::new("fairlab-errors", &[]).map_err(told)?;
    let initramfs = SharedMemory::new("fairlab-initramfs", machine.initramfs).map_err(told)?;
    let shim = SharedMemory::new("fairlab-lockstep", LOCKSTEP).map_err(told)?;
    let arguments = arguments(machine);
    let tree = match machine.hardware {
        Hardware::Pc(_) => None,
        Hardware::Board(board) => {
            Some(SharedMemory::new("fairlab-tree", &tree(machine, board)?).map_err(told)?)
        }
    };
    let mut command = machine.qemu.command(Some(&shim.path()));
    command.args(&arguments).args(["-kernel"]).arg(machine.kernel).arg("-initrd").arg(initramfs.path());
    if let Some(tree) = &tree {
        command.arg("-dtb").arg(tree.path());
    }
    command.arg("-serial").arg(format!("file:{}", console.path().display()));
    command.arg("-object").arg(format!(
        "memory-backend-file,id=shared,size={SHARED_BYTES},mem-path={},share=on",
        shared.path().display()
    ));
    command.args(["-device", "ivshmem-plain,memdev=shared"]);
    command.env("FAIRLAB_PARENT", std::process::id().to_string());
    if machine.mode == EmulationMode::Deterministic {
        command.env("FAIRLAB_LOCKSTEP", "1");
    }
    // A terminal's interrupt is for us: we end it.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(errors.0.try_clone().map_err(told)?);
    let started = Instant::now();
    let mut running = RunningQemu(command.spawn().map_err(told)?);
    let outcome = watch(&mut running.0, &shared.0, &console.0, machine.limit, on_stage, stop);
    drop(running);
    let wall = started.elapsed();
    let console = text(&console.0);
    match outcome.map_err(told)? {
        Ok(archive) => Ok(Some(EmulationOutput { archive, console, arguments, wall })),
        Err(EmulationFailure::Stopped) => Ok(None),
        Err(failure) => Err(explain(&failure, &console, &text(&errors.0))),
    }
}

/// What does not differ from run to run.
fn arguments(machine: &EmulatedMachine<'_>) -> Vec<String> {
    let mut text = String::from("-name fairlab,debug-threads=on ");
    text += &match machine.hardware {
        Hardware::Pc(layout) => format!("-machine pc {}", pc(*layout)),
        Hardware::Board(board) => format!("-machine virt,dtb-randomness=off {}", virt(board)),
    };
    text += match machine.mode {
        EmulationMode::Deterministic => {
            "-accel tcg,thread=single -icount shift=0,sleep=off -rtc base=2024-01-01,clock=vm -seed 1 "
        }
        EmulationMode::Threads => "-accel tcg,thread=multi ",
    };
    if let (Hardware::Board(_), Some(slice_ns)) = (machine.hardware, machine.slice_ns) {
        text += &turns(slice_ns);
    }
    text += "-display none -nodefaults -no-reboot";
    let mut arguments: Vec<String> = text.split_whitespace().map(str::to_string).collect();
    arguments.extend(["-append".to_string(), machine.kernel_arguments.to_string()]);
    arguments
}

/// CPUs and memory of a PC.
fn pc(layout: CpuLayout) -> String {
    let CpuLayout { sockets, cores, threads, nodes } = layout;
    let (cpus, memory) = (layout.cpus(), layout.memory_mib());
    // A model with a shared last-level cache and with threads; later ones cost more and decide nothing else.
    let mut text =
        format!("-cpu Nehalem -smp {cpus},sockets={sockets},cores={cores},threads={threads} -m {memory} ");
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
    text
}

/// CPUs and memory of a board. Which 64-bit CPU it is decides nothing: how big each is the tree tells.
fn virt(board: &Board) -> String {
    format!("-cpu cortex-a57 -smp {} -m {BOARD_MIB} ", board.cpus())
}

/// A board's memory, MiB.
const BOARD_MIB: u32 = 1536;

/// A board has no timer that the guest could set for this (`crates/guest/src/slice.rs`). QEMU has some: what delays a network's
/// packets looks for them as often as it is told, and there is no network that it would find any in.
fn turns(slice_ns: u64) -> String {
    let us = slice_ns / 1000;
    format!("-netdev hubport,id=nobody,hubid=0 -object filter-buffer,id=turns,netdev=nobody,interval={us} ")
}

/// The board's device tree: what QEMU would tell the kernel, and what the machine has beyond it.
fn tree(machine: &EmulatedMachine<'_>, board: &Board) -> Result<Vec<u8>, LabError> {
    let told = |error: io::Error| {
        LabError::new(format!("cannot ask QEMU for a board's tree: {error}"), "see what space is free")
    };
    // QEMU makes another file beside it and renames that, so it needs a folder.
    let folder = PrivateFolder::create().map_err(told)?;
    let file = folder.path().join("dtb");
    let mut command = machine.qemu.command(None);
    command.arg("-machine").arg(format!("virt,dtb-randomness=off,dumpdtb={}", file.display()));
    command.args(virt(board).split_whitespace()).args(["-display", "none", "-nodefaults"]);
    let output = command.stdin(Stdio::null()).output();
    let blob = fs::read(&file);
    output.map_err(told)?;
    let mut tree = DeviceTree::read(&blob.map_err(told)?)
        .ok_or_else(|| LabError::new("what QEMU tells of its board is no device tree", "report this"))?;
    board.describe(&mut tree)?;
    Ok(tree.write())
}

/// Waits for the guest's results or for what prevents them.
fn watch(
    qemu: &mut Child,
    shared: &File,
    console: &File,
    limit: Duration,
    on_stage: &dyn Fn(&'static str),
    stop: &AtomicBool,
) -> io::Result<Result<Vec<u8>, EmulationFailure>> {
    let started = Instant::now();
    loop {
        let mut head = [0; 20];
        shared.read_exact_at(&mut head, 0)?;
        if [DONE, FAILED, REFUSED].iter().any(|magic| head.starts_with(*magic)) {
            let length = u64::from_le_bytes(head[LENGTH_AT..LENGTH_AT + 8].try_into().unwrap_or_default());
            let length = length.min(SHARED_BYTES - ARCHIVE_AT as u64);
            let mut archive = vec![0; length as usize];
            shared.read_exact_at(&mut archive, ARCHIVE_AT as u64)?;
            if head.starts_with(DONE) {
                return Ok(Ok(archive));
            }
            let told = String::from_utf8_lossy(&archive).into_owned();
            return Ok(Err(match head.starts_with(REFUSED) {
                true => EmulationFailure::Refused(told),
                false => EmulationFailure::GuestGaveUp(told),
            }));
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(Err(EmulationFailure::Stopped));
        }
        if text(console).contains("Kernel panic - not syncing") {
            return Ok(Err(EmulationFailure::Panicked));
        }
        if let Some(status) = qemu.try_wait()? {
            return Ok(Err(EmulationFailure::Ended(status)));
        }
        let stage = u32::from_le_bytes(head[STAGE_AT..STAGE_AT + 4].try_into().unwrap_or_default());
        let stage = GuestStage::of(stage);
        if started.elapsed() > limit {
            return Ok(Err(EmulationFailure::TimeOut(stage)));
        }
        on_stage(stage.now());
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
fn explain(failure: &EmulationFailure, console: &str, errors: &str) -> LabError {
    let (problem, hint) = match failure {
        EmulationFailure::Stopped => ("the machine was stopped".to_string(), "run it again"),
        EmulationFailure::TimeOut(stage) => (
            format!("the machine was not done in time: time was up {}", stage.describe()),
            "allow more with --timeout, or give it fewer CPUs or less to do",
        ),
        EmulationFailure::Panicked => {
            ("the booted kernel panicked".to_string(), "try another image or topology")
        }
        EmulationFailure::GuestGaveUp(why) => {
            (format!("the guest gave up: {}", why.trim()), "see what it was asked to do")
        }
        EmulationFailure::Refused(told) => {
            // The guest has gone through its start: the console has nothing about this.
            let (problem, hint) = told.split_once('\n').unwrap_or((told, "ask for something else"));
            return LabError::new(problem, hint);
        }
        EmulationFailure::Ended(status) => {
            let said =
                errors.lines().rfind(|line| !line.contains("warning: ")).unwrap_or("it does not say why");
            (format!("QEMU ended by itself ({status}): {said}"), "see whether the image is for this machine")
        }
    };
    let lines: Vec<&str> = console.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(CONSOLE_LINES)..];
    let heading = if last.is_empty() { "the console said nothing" } else { "the console's last lines:" };
    let lines = std::iter::once(heading.to_string()).chain(last.iter().map(|line| format!("  {line}")));
    LabError::new(problem, hint).with_lines(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_show_the_end_of_the_console() {
        let console: String = (1..=40).map(|line| format!("[    0.{line:02}] line {line}\r\n\n")).collect();
        let error = explain(&EmulationFailure::TimeOut(GuestStage::Workload), &console, "").to_string();
        assert!(error.contains("time was up while the workload ran"), "{error}");
        assert!(
            error.contains("line 40") && error.contains("line 29") && !error.contains("line 28\n"),
            "{error}"
        );
        let silent = explain(&EmulationFailure::GuestGaveUp("no\n".to_string()), "", "").to_string();
        assert!(silent.contains("the guest gave up: no;") && silent.contains("said nothing"), "{silent}");
    }

    fn machine<'m>(qemu: &'m Qemu, hardware: &'m Hardware) -> EmulatedMachine<'m> {
        let limit = Duration::from_secs(1);
        let (kernel, mode, slice_ns) = (Path::new("vmlinuz"), EmulationMode::Deterministic, Some(50_000));
        let kernel_arguments = match hardware {
            Hardware::Pc(_) => PC_ARGUMENTS,
            Hardware::Board(_) => BOARD_ARGUMENTS,
        };
        EmulatedMachine { qemu, kernel, initramfs: &[], hardware, mode, kernel_arguments, slice_ns, limit }
    }

    #[test]
    fn boards_and_pcs_are_told_to_qemu() {
        let qemu = Qemu::default();
        let said = |hardware: &Hardware| arguments(&machine(&qemu, hardware)).join(" ");
        let pc = said(&Hardware::Pc("1x2x2".parse().expect("a layout")));
        assert!(pc.contains("-machine pc -cpu Nehalem -smp 4,sockets=1,cores=2,threads=2 -m 1536 "), "{pc}");
        assert!(pc.contains("console=ttyS0") && !pc.contains("filter-buffer"), "{pc}");
        let board =
            fairlab_sim::Machine::preset("chromebook8").map(Board::new).expect("a machine").expect("a board");
        let board = said(&Hardware::Board(Box::new(board)));
        assert!(
            board.contains("-machine virt,dtb-randomness=off -cpu cortex-a57 -smp 8 -m 1536 "),
            "{board}"
        );
        // The guest has no timer there that would end turns.
        assert!(board.contains("filter-buffer,id=turns,netdev=nobody,interval=50 "), "{board}");
        assert!(board.contains("-icount shift=0,sleep=off") && board.contains("console=ttyAMA0"), "{board}");
    }

    #[test]
    fn what_a_kernel_does_not_take_is_one_line() {
        let told = "this kernel has no scheduler feature X\nit has A NO_B".to_string();
        let error = explain(&EmulationFailure::Refused(told), "[ 0.1] line", "").to_string();
        assert_eq!(error, "this kernel has no scheduler feature X; it has A NO_B");
    }

    #[test]
    fn command_lines_are_never_cut_off() {
        let line = |added: &str| kernel_arguments(Architecture::Amd64, &[added.to_string()]);
        assert!(line("isolcpus=1").expect("short").ends_with("sched_verbose isolcpus=1"));
        let error = line(&"x".repeat(2000)).expect_err("long");
        assert!(error.problem.contains("bytes long"), "{error}");
    }

    #[test]
    fn memory_without_a_name_is_opened_by_others() {
        let memory = SharedMemory::new("test", b"content").expect("memory");
        assert_eq!(fs::read(memory.path()).expect("read"), b"content");
        assert_eq!(text(&memory.0), "content");
    }
}
