//! The process in which an image runs, and how it ends when the image's code goes wrong.
//!
//! A BUG, a WARN, an access to unmapped memory, a missing function and an endless loop end the process with a report. It says
//! what happened, where in the kernel, at what virtual time, and on which CPU. A handler writes it with system calls only and
//! without allocating, since it may have interrupted anything.
//!
//! The second of two rooms here with `unsafe` code: `fork`, handlers of signals, reading a stack.
//!
//! Must not know: what the image is asked for, how the parent reads the report.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::{self, Write};
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

use crate::abi::ImageWords;
use crate::elf::Symbol;
use crate::host::ImageHost;
use crate::image::ImageFile;

/// The status of a process that has ended with a report.
pub const REPORTED: i32 = 70;

/// CPU time between two looks at whether virtual time goes on.
const BEAT: libc::timeval = libc::timeval { tv_sec: 0, tv_usec: 250_000 };

/// So many looks in a row without progress are an endless loop: ten seconds of CPU time.
const PATIENCE: u32 = 40;

/// What handlers need.
struct HandlerContext {
    words: *const ImageWords,
    host: &'static ImageHost,
    text: Range<usize>,
    symbols: Vec<Symbol>,
    absent: Vec<Symbol>,
}

/// Bytes behind the address of data that nobody has in which an access to it may lie.
const ABSENT_BYTES: usize = 256;

/// Where the report goes.
static REPORT: AtomicI32 = AtomicI32::new(libc::STDERR_FILENO);
static WATCH: AtomicPtr<HandlerContext> = AtomicPtr::new(ptr::null_mut());
/// Virtual time at the last look, and how often it was that.
static SEEN: AtomicU64 = AtomicU64::new(u64::MAX);
static STANDS: AtomicU32 = AtomicU32::new(0);

/// Creates a process that does `work`, whose reports go to `report`, and that dies with the thread that creates it.
///
/// Other threads of this process do not exist in it. What they held stays held, but for the allocator, which libc makes
/// usable: `work` uses no standard stream and no lock that another thread may have.
///
/// # Errors
/// There is no room for another process.
pub fn fork(report: RawFd, work: impl FnOnce()) -> io::Result<Pid> {
    let parent = getpid();
    // SAFETY: the child goes on with `work` alone, under the rule above, and ends without unwinding into this frame.
    match unsafe { libc::fork() } {
        0 => {
            let _end = EndOfProcess;
            REPORT.store(report, Ordering::Relaxed);
            leave_interrupts_to_parent();
            let tied = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
            // A parent that has died meanwhile sends nothing any more.
            if tied && getppid() == Some(parent) {
                work();
            }
            unreachable_after_end()
        }
        pid => Pid::from_raw(pid).filter(|_| pid > 0).ok_or_else(io::Error::last_os_error),
    }
}

/// Ctrl-C in a terminal and `timeout` send their signal to the whole process group: the parent answers it and stops its workers. Its
/// handler, which is here, too, would make a system call that a sealed process may not.
fn leave_interrupts_to_parent() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: to ignore a signal changes nothing but its disposition.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Ends the process whichever way its scope is left.
struct EndOfProcess;

impl Drop for EndOfProcess {
    fn drop(&mut self) {
        // SAFETY: it does not return.
        unsafe { libc::_exit(0) }
    }
}

fn unreachable_after_end() -> io::Result<Pid> {
    drop(EndOfProcess);
    unreachable!("the process has ended")
}

/// Watches over an image from now on: its faults, and whether virtual time goes on.
pub fn watch(image: &ImageFile, words: *const ImageWords, host: &'static ImageHost) {
    let (text, symbols, absent) = (image.text(), image.symbols().to_vec(), image.absent().to_vec());
    let watch = Box::leak(Box::new(HandlerContext { words, host, text, symbols, absent }));
    WATCH.store(watch, Ordering::Release);
    // SAFETY: the stack is fresh memory of that length and stays; the handlers keep to the rule of the module.
    unsafe {
        let length = 64 * 1024;
        let stack = libc::stack_t { ss_sp: libc::malloc(length), ss_flags: 0, ss_size: length };
        libc::sigaltstack(&raw const stack, ptr::null_mut());
        for (signal, handler) in [
            (libc::SIGILL, fault as *const () as usize),
            (libc::SIGSEGV, fault as *const () as usize),
            (libc::SIGBUS, fault as *const () as usize),
            (libc::SIGFPE, fault as *const () as usize),
            (libc::SIGTRAP, fault as *const () as usize),
            (libc::SIGABRT, fault as *const () as usize),
            (libc::SIGSYS, fault as *const () as usize),
            (libc::SIGPROF, beat as *const () as usize),
        ] {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            action.sa_sigaction = handler;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, ptr::null_mut());
        }
        let timer = libc::itimerval { it_interval: BEAT, it_value: BEAT };
        libc::setitimer(libc::ITIMER_PROF, &raw const timer, ptr::null_mut());
    }
}

/// The C library keeps the memory of its heaps from now on. Before glibc gives a part of a thread's heap back, it reads a file of /proc
/// (`check_may_shrink_heap()`, malloc/arena.c, 2.36), which a sealed process may not.
pub fn keep_heaps() {
    #[cfg(target_env = "gnu")]
    {
        // From this size on blocks are mapped one by one: where the default comes to when such blocks have been freed.
        const MAPPED_FROM: c_int = 32 << 20;
        // SAFETY: mallopt() takes numbers, and refuses those that mean nothing.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, c_int::MAX);
            libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM);
        }
    }
}

/// Lets this process make only the system calls that the program allows, from now on and for good.
///
/// Before v5.16 a filter also makes each load wait for the stores before it, unless it says that it need not.
pub fn filter_system_calls(program: &[seccompiler::sock_filter]) {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut().cast() };
    // SAFETY: the kernel copies the program, which has that many instructions of this layout.
    unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
            &raw const program,
        );
    }
}

/// The table of the image that is watched; null: none is.
pub fn watched() -> *const ImageWords {
    watch_now().map_or(ptr::null(), |watch| watch.words)
}

fn watch_now() -> Option<&'static HandlerContext> {
    // SAFETY: watch() stored it, and it is never freed.
    unsafe { WATCH.load(Ordering::Acquire).as_ref() }
}

/// Ends the process with a report: what happened, and the function or the text that goes with it.
pub fn end(what: &str, name: &str) -> ! {
    let mut report = SignalReport::new();
    match what {
        "stub" => report.line(format_args!("the kernel needs {name}(), which has no substitute here")),
        _ if name.is_empty() => report.line(format_args!("{what}")),
        _ => report.line(format_args!("{what}: {name}")),
    }
    let here = 0_usize;
    report.place();
    report.stack(ptr::from_ref(&here) as usize);
    report.send()
}

/// A fault: in the image it is the kernel's, elsewhere ours.
unsafe extern "C" fn fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler of this kind both.
    let (registers, address) = unsafe {
        let context = &*context.cast::<libc::ucontext_t>();
        (&context.uc_mcontext.gregs, (*info).si_addr() as usize)
    };
    let at = registers[libc::REG_RIP as usize] as usize;
    let mut report = SignalReport::new();
    match (signal, watch_now().and_then(|watch| bug_at(watch, at))) {
        (libc::SIGILL, Some(BugEntry { warning, file, line })) => {
            let what = if warning { "WARN" } else { "BUG" };
            report.line(format_args!("{what} at {file}:{line}, in {}", SymbolAddress(at)));
        }
        (libc::SIGSEGV | libc::SIGBUS, _) => match absent_at(address) {
            Some(name) => report.line(format_args!(
                "the kernel needs the data of {name}, which has no substitute here, in {}",
                SymbolAddress(at)
            )),
            None => {
                report.line(format_args!(
                    "access to no memory at address {address:#x}, in {}",
                    SymbolAddress(at)
                ));
            }
        },
        (libc::SIGFPE, _) => report.line(format_args!("division by zero in {}", SymbolAddress(at))),
        (libc::SIGSYS, _) => report.line(format_args!(
            "its code has asked the host for system call {}, which no run makes",
            registers[libc::REG_RAX as usize]
        )),
        (libc::SIGABRT, _) => report.line(format_args!("a callback of the loader has failed")),
        _ => report.line(format_args!("signal {signal} in {}", SymbolAddress(at))),
    }
    report.place();
    report.stack(registers[libc::REG_RSP as usize] as usize);
    report.send()
}

/// Some CPU time has passed: virtual time should have, too.
unsafe extern "C" fn beat(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(watch) = watch_now() else { return };
    let now = watch.host.now.load(Ordering::Relaxed);
    if SEEN.swap(now, Ordering::Relaxed) != now {
        STANDS.store(0, Ordering::Relaxed);
        return;
    }
    if STANDS.fetch_add(1, Ordering::Relaxed) < PATIENCE {
        return;
    }
    // SAFETY: as in fault().
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = registers[libc::REG_RIP as usize] as usize;
    let seconds = f64::from(PATIENCE) * BEAT.tv_usec as f64 / 1e6;
    let mut report = SignalReport::new();
    report.line(format_args!(
        "endless loop: {seconds} s of CPU time without virtual time, in {}",
        SymbolAddress(at)
    ));
    report.place();
    report.stack(registers[libc::REG_RSP as usize] as usize);
    report.send()
}

/// The data at an address where no memory is, if it is some that nobody has.
fn absent_at(address: usize) -> Option<&'static str> {
    let absent = &watch_now()?.absent;
    let last = absent.partition_point(|symbol| symbol.address <= address).checked_sub(1)?;
    (address - absent[last].address < ABSENT_BYTES).then_some(absent[last].name.as_str())
}

/// What an entry of `__bug_table` says.
struct BugEntry {
    warning: bool,
    file: &'static str,
    line: u16,
}

fn bug_at(watch: &HandlerContext, at: usize) -> Option<BugEntry> {
    // SAFETY: the table and its layout are the image's own, which was checked; its numbers lie within it.
    unsafe {
        let words = &*watch.words;
        let (mut entry, size, flags) =
            (words.bug_start.cast::<u8>(), words.bug_size as usize, words.bug_flags as usize);
        while (entry as usize) < words.bug_end as usize && size > flags && flags >= 10 {
            let relative = |place: usize| {
                let word = entry.add(place).cast::<i32>();
                (word as usize).wrapping_add_signed(word.read_unaligned() as isize)
            };
            if relative(0) == at {
                let file = CStr::from_ptr(relative(flags - 6) as *const c_char);
                return Some(BugEntry {
                    warning: entry.add(flags).cast::<u16>().read_unaligned() & 1 != 0,
                    file: file.to_str().unwrap_or("?"),
                    line: entry.add(flags - 2).cast::<u16>().read_unaligned(),
                });
            }
            entry = entry.add(size);
        }
        None
    }
}

/// An address as the kernel prints one: `function+0x10`.
struct SymbolAddress(usize);

impl fmt::Display for SymbolAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(watch) = watch_now().filter(|watch| watch.text.contains(&self.0)) else {
            return write!(f, "Fairlab's own code");
        };
        let after = watch.symbols.partition_point(|symbol| symbol.address <= self.0);
        match after.checked_sub(1).map(|place| &watch.symbols[place]) {
            Some(symbol) => write!(f, "{}+{:#x}", symbol.name, self.0 - symbol.address),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

/// Lines that are put together without an allocation.
struct SignalReport {
    bytes: [u8; 6000],
    length: usize,
}

impl Write for SignalReport {
    /// What does not fit is left out.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let count = text.len().min(self.bytes.len() - self.length);
        self.bytes[self.length..self.length + count].copy_from_slice(&text.as_bytes()[..count]);
        self.length += count;
        Ok(())
    }
}

impl SignalReport {
    fn new() -> SignalReport {
        SignalReport { bytes: [0; 6000], length: 0 }
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        let _ = self.write_fmt(line);
        let _ = self.write_str("\n");
    }

    /// When and where, and what the kernel has printed last.
    fn place(&mut self) {
        let Some(watch) = watch_now() else { return };
        let (now, cpu) = (watch.host.now.load(Ordering::Relaxed), watch.host.cpu.load(Ordering::Relaxed));
        self.line(format_args!(
            "at {}.{:09} s of virtual time on CPU {cpu}",
            now / 1_000_000_000,
            now % 1_000_000_000
        ));
        let Ok(printed) = watch.host.printed.try_borrow() else { return };
        let last = &printed[printed.len().saturating_sub(600)..];
        for line in last.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            self.line(format_args!("kernel: {}", std::str::from_utf8(line).unwrap_or("?")));
        }
    }

    /// What looks like calls that have not returned, the innermost first.
    fn stack(&mut self, from: usize) {
        let Some(watch) = watch_now() else { return };
        let mut words = [0_usize; 1024];
        let local = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(&words) };
        let mut found = 0;
        for start in 0..words.len() / 64 {
            // The stack ends somewhere: it is read by pieces, and by the kernel, which answers for what is not there.
            let (at, length) = (from + start * 512, 512);
            let remote = libc::iovec { iov_base: at as *mut c_void, iov_len: length };
            let local = libc::iovec { iov_len: length, ..local };
            // SAFETY: the buffer has room for that many bytes.
            let read = unsafe {
                libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
            };
            let count = usize::try_from(read).unwrap_or(0) / size_of::<usize>();
            for &word in &words[..count] {
                if watch.text.contains(&word) && follows_call(watch, word) && found < 24 {
                    found += 1;
                    self.line(format_args!("  {}", SymbolAddress(word)));
                }
            }
            if count < 64 {
                return;
            }
        }
    }

    fn send(&self) -> ! {
        let mut rest = &self.bytes[..self.length];
        // SAFETY: the bytes are there; the process ends.
        unsafe {
            while !rest.is_empty() {
                match libc::write(REPORT.load(Ordering::Relaxed), rest.as_ptr().cast(), rest.len()) {
                    count if count > 0 => rest = &rest[count as usize..],
                    _ => break,
                }
            }
            libc::_exit(REPORTED)
        }
    }
}

/// Whether the instruction before is a call.
fn follows_call(watch: &HandlerContext, at: usize) -> bool {
    if at < watch.text.start + 7 {
        return false;
    }
    // SAFETY: the bytes lie in the image's code.
    let before = unsafe { std::slice::from_raw_parts((at - 7) as *const u8, 7) };
    let register = |byte: u8| (0xd0..=0xd7).contains(&byte) || (0x10..=0x17).contains(&byte);
    before[2] == 0xe8
        || (before[5] == 0xff && register(before[6]))
        || (before[4] == 0xff && (0x50..=0x57).contains(&before[5]))
        || (before[1] == 0xff && (0x90..=0x97).contains(&before[2]))
        || (before[1] == 0xff && before[2] == 0x15)
}
