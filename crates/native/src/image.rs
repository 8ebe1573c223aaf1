//! An image in memory: its parts mapped where they belong, its callbacks filled in, its entries as methods.
//!
//! One of two rooms here with `unsafe` code. It relies on three facts. The file was checked against the header's tables line
//! by line. An image is mapped once in a process, until the process ends. Only one thread holds it, because an [`LoadedImage`] is
//! not `Send`. An entry calls back into [`ImageHost`], and no Rust borrow is alive then.
//!
//! Must not know: what a scheduler is for, how virtual time is ordered.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use fairlab_event::{Cpu, Ns};
use fairlab_files::LabError;

use crate::abi::{
    Callbacks, EVENTS, Entries, FlClock, GroupPtr, IPI_RESCHEDULE, ImageWords, MAGIC, MachineWords, NEVER,
    RawEvent, TaskPtr, TaskWords, difference, entries, kind,
};
use crate::build::checksum_of;
use crate::child;
use crate::elf::{Elf, LoadSegment, PAGE, Symbol};
use crate::host::{ImageHost, ImageRequest};

/// An image as a file that was looked at; [`LoadedImage::map`] takes it into this process.
#[derive(Debug)]
pub struct ImageFile {
    path: PathBuf,
    file: File,
    bytes: Vec<u8>,
    elf: Elf,
}

impl ImageFile {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, is no image, or this host is none that can run it.
    pub fn open(path: &Path) -> Result<ImageFile, LabError> {
        ImageFile::of(path, ImageFile::open_bytes(path)?)
    }

    fn open_bytes(path: &Path) -> Result<(File, Vec<u8>), LabError> {
        if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
            let problem = "a kernel's own scheduler runs on Linux on x86-64 alone";
            return Err(LabError::new(problem, "take a modelled kernel, or another host"));
        }
        let cannot = |problem: std::io::Error| refused(path, problem.to_string());
        Ok((File::open(path).map_err(cannot)?, std::fs::read(path).map_err(cannot)?))
    }

    fn of(path: &Path, (file, bytes): (File, Vec<u8>)) -> Result<ImageFile, LabError> {
        let elf = Elf::parse(&bytes).map_err(|problem| refused(path, problem))?;
        Ok(ImageFile { path: path.to_path_buf(), file, bytes, elf })
    }

    /// As [`open`](Self::open), where what the file must hold is known by its checksum.
    ///
    /// # Errors
    /// As there, or it holds something else.
    pub fn open_sound(path: &Path, checksum: &str) -> Result<ImageFile, LabError> {
        let image = ImageFile::open_bytes(path)?;
        if checksum_of(&image.1) != checksum {
            return Err(refused(path, "its bytes are not those that were built: the file is damaged"));
        }
        ImageFile::of(path, image)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its code lies.
    pub fn text(&self) -> std::ops::Range<usize> {
        self.elf.text()
    }

    /// Its functions by rising address.
    pub fn symbols(&self) -> &[Symbol] {
        &self.elf.symbols
    }

    /// Data that it needs and nobody has, by rising address.
    pub fn absent(&self) -> &[Symbol] {
        &self.elf.absent
    }
}

fn refused(path: &Path, problem: impl std::fmt::Display) -> LabError {
    LabError::new(format!("{}: {problem}", path.display()), "build the kernel once more")
}

/// What callbacks fill. It lives until the process ends.
static HOST: AtomicPtr<ImageHost> = AtomicPtr::new(ptr::null_mut());

/// For how long the kernel has been up when the engine's time begins: what booting has left behind has aged by then.
const UPTIME: u64 = 10_000_000_000;

/// An image that lives in this process.
pub struct LoadedImage {
    words: &'static ImageWords,
    host: &'static ImageHost,
    /// It stays in its thread: %gs is that thread's.
    _thread: PhantomData<*const ()>,
}

impl LoadedImage {
    /// Maps the image into this process. It stays there, and no other can be mapped later.
    ///
    /// # Errors
    /// Its addresses are taken, or its tables are not the ones that Fairlab knows.
    pub fn map(image: &ImageFile) -> Result<LoadedImage, LabError> {
        let host: &'static ImageHost = Box::leak(Box::new(ImageHost::default()));
        let own = ptr::from_ref(host).cast_mut();
        let free = HOST.compare_exchange(ptr::null_mut(), own, Ordering::AcqRel, Ordering::Acquire);
        if free.is_err() {
            return Err(refused(&image.path, "this process has an image already"));
        }
        // SAFETY: parse() has checked places and lengths, and map_all() takes no address that somebody uses.
        unsafe { map_all(&image.elf, &image.bytes, &image.file) }
            .map_err(|problem| refused(&image.path, problem))?;
        let room = image.elf.span().end.saturating_sub(image.elf.entry);
        if room < size_of::<ImageWords>() || !image.elf.entry.is_multiple_of(align_of::<ImageWords>()) {
            return Err(refused(&image.path, "its entry is no table"));
        }
        // SAFETY: the address lies in the image, has room for the table, is aligned, and stays mapped.
        let words = unsafe { &*(image.elf.entry as *const ImageWords) };
        check(words).map_err(|problem| refused(&image.path, problem))?;
        // SAFETY: both words belong to the image, whose table was checked; no entry is under way.
        unsafe {
            words.callback.write(callbacks());
            words.wrgsbase.write(c_uint::from(may_write_gs()));
        }
        child::watch(image, words, host);
        // A whole number of ticks, which come at whole numbers of them on both clocks.
        let tick = 1_000_000_000 / words.hz.max(1);
        host.uptime.set(UPTIME / tick * tick);
        Ok(LoadedImage { words, host, _thread: PhantomData })
    }

    /// What the image has asked for.
    pub fn host(&self) -> &'static ImageHost {
        self.host
    }

    /// `UTS_RELEASE` of its tree.
    pub fn kernel_release(&self) -> String {
        text(self.words.release)
    }

    /// Lines of its configuration that show.
    pub fn configuration(&self) -> String {
        text(self.words.configuration)
    }

    /// Ticks a second.
    pub fn hz(&self) -> u64 {
        self.words.hz
    }

    /// The most CPUs that a machine may have.
    pub fn most_cpus(&self) -> u64 {
        self.words.nr_cpus
    }

    /// The clock, on the engine's time, and the counters.
    #[inline]
    pub(crate) fn clock(&self) -> FlClock {
        // SAFETY: the word belongs to the image, and nobody holds a reference to it.
        let clock = unsafe { &*self.words.clock };
        FlClock { now: clock.now.saturating_sub(self.uptime()), ..*clock }
    }

    /// How far the kernel's clock is ahead of the engine's, ns.
    #[inline]
    pub fn uptime(&self) -> u64 {
        self.host.uptime.get()
    }

    /// Sets the kernel's own clock, before the engine's time begins; nothing takes time then.
    pub(crate) fn set_kernel_clock(&self, now: Ns) {
        // SAFETY: as above, and no entry is under way.
        unsafe {
            self.words.clock.write(FlClock { now: now.0, look: 0, migrate: 0, softirq: 0, ..self.clock() });
        };
    }

    /// Sets when the next entry begins, and what looking at a CPU, moving a task and a soft interrupt take in it.
    #[inline]
    pub fn set_clock(&self, now: Ns, look: Ns, migrate: Ns, softirq: Ns) {
        self.host.now.store(now.0, Ordering::Relaxed);
        // SAFETY: as above, and no entry is under way.
        let clock = unsafe { &mut *self.words.clock };
        clock.now = now.0 + self.uptime();
        (clock.look, clock.migrate, clock.softirq) = (look.0, migrate.0, softirq.0);
    }

    /// Whether events wait to be taken.
    #[inline]
    pub fn has_events(&self) -> bool {
        // SAFETY: the word belongs to the image.
        unsafe { *self.words.nr_events > 0 }
    }

    /// Whether [`workqueues`](Self::workqueues) has something to do.
    #[inline]
    pub fn has_work(&self) -> bool {
        // SAFETY: the word belongs to the image.
        unsafe { *self.words.work != 0 }
    }

    /// Hands over the events since the last call, in order and with times of the kernel's clock; those that are text with their name and
    /// what they say. No entry may be called meanwhile.
    pub fn drain_events(&self, mut take: impl FnMut(&RawEvent, Option<(String, String)>)) {
        let (early, mut texts) = (self.host.events.take(), self.host.texts.take());
        for event in &early {
            let is_text = event.kind == kind::TEXT;
            take(event, texts.get_mut(event.value as usize).filter(|_| is_text).map(std::mem::take));
        }
        // SAFETY: the buffer and its count belong to the image, no more events stand there than it has room for, and texts are valid
        // until the count is 0.
        unsafe {
            let count = (*self.words.nr_events as usize).min(self.words.room as usize);
            for event in std::slice::from_raw_parts(self.words.event, count) {
                take(event, text_of(event));
            }
            *self.words.nr_events = 0;
        }
    }

    /// Boots on a machine. It may be done once.
    pub fn boot(&self, machine: TopologyWords) {
        // The image goes on reading it.
        let machine: &'static TopologyWords = Box::leak(Box::new(machine));
        let of = |list: &Vec<c_uint>| list.as_ptr();
        let words = Box::leak(Box::new(MachineWords {
            nr_cpus: machine.core.len() as c_uint,
            nr_nodes: machine.nr_nodes,
            core: of(&machine.core),
            cluster: of(&machine.cluster),
            llc: of(&machine.llc),
            package: of(&machine.package),
            node: of(&machine.node),
            capacity: of(&machine.capacity),
            priority: of(&machine.priority),
            distance: of(&machine.distance),
            reclaim_distance: machine.reclaim_distance,
            first_stopper_pid: machine.first_stopper_pid,
            init_pid: machine.init_pid,
        }));
        // SAFETY: the arrays have a word a CPU, distances one a pair of nodes, and stay.
        unsafe { (self.words.entry.boot)(&raw const *words) }
    }

    /// A task of the task that runs (`fork`), or without a parent, asleep on `kthread_on`.
    pub fn new_task(&self, task: &TaskWords, allowed: &[u64], kthread_on: Option<Cpu>) -> TaskPtr {
        let words = TaskWords { allowed: allowed.as_ptr(), ..*task };
        // SAFETY: the words live until the entry returns, which copies them.
        unsafe {
            match kthread_on {
                Some(cpu) => (self.words.entry.new_kthread)(&raw const words, cpu.0 as c_int),
                None => (self.words.entry.fork)(&raw const words),
            }
        }
    }

    /// `set_allowed`.
    pub fn set_allowed(&self, task: TaskPtr, allowed: &[u64]) -> c_int {
        // SAFETY: the words live until the entry returns.
        unsafe { (self.words.entry.set_allowed)(task, allowed.as_ptr()) }
    }

    /// `new_group`.
    pub fn new_group(&self, parent: GroupPtr, name: &str) -> GroupPtr {
        let name = c_text(name);
        // SAFETY: the text lives until the entry returns.
        unsafe { (self.words.entry.new_group)(parent, name.as_ptr()) }
    }

    /// `group_write`.
    pub fn group_write(&self, group: GroupPtr, file: &str, value: &str) -> c_int {
        let (file, value) = (c_text(file), c_text(value));
        // SAFETY: as above.
        unsafe { (self.words.entry.group_write)(group, file.as_ptr(), value.as_ptr()) }
    }

    /// Names of the scheduler's features.
    pub fn features(&self) -> Vec<String> {
        // SAFETY: the text belongs to the image.
        names(unsafe { (self.words.entry.features)() })
    }

    /// Whether a feature is on; `None`: there is none of that name.
    pub fn feature(&self, name: &str) -> Option<bool> {
        let name = c_text(name);
        // SAFETY: as above.
        let state = unsafe { (self.words.entry.feature)(name.as_ptr()) };
        (state >= 0).then_some(state > 0)
    }

    /// Switches a feature. Returns whether there is one of that name.
    pub fn set_feature(&self, name: &str, on: bool) -> bool {
        let name = c_text(name);
        // SAFETY: as above.
        unsafe { (self.words.entry.set_feature)(name.as_ptr(), on.into()) >= 0 }
    }

    /// Names of the scheduler's tunables.
    pub fn tunables(&self) -> Vec<String> {
        // SAFETY: as above.
        names(unsafe { (self.words.entry.tunables)() })
    }

    /// The value of a tunable; `None`: there is none of that name.
    pub fn tunable(&self, name: &str) -> Option<i64> {
        let (name, mut value) = (c_text(name), 0);
        // SAFETY: as above; the value is ours.
        let found = unsafe { (self.words.entry.tunable)(name.as_ptr(), &raw mut value) };
        (found >= 0).then_some(value)
    }

    /// Sets a tunable. Returns whether there is one of that name, and it takes the value.
    pub fn set_tunable(&self, name: &str, value: i64) -> bool {
        let name = c_text(name);
        // SAFETY: as above.
        unsafe { (self.words.entry.set_tunable)(name.as_ptr(), value) >= 0 }
    }

    /// Names of what can be read of an object (`enum fl_object`), each at the place that is its number.
    pub fn fields(&self, object: c_int) -> Vec<String> {
        // SAFETY: as above.
        names(unsafe { (self.words.entry.fields)(object) })
    }

    /// The name of a scheduling domain.
    pub fn domain_name(&self, cpu: Cpu, level: usize) -> Option<String> {
        // SAFETY: as above.
        let name = unsafe { (self.words.entry.domain_name)(cpu.0 as c_int, level as c_int) };
        (!name.is_null()).then(|| text(name))
    }

    /// The CPUs of a scheduling domain, as words.
    pub fn domain_span(&self, cpu: Cpu, level: usize) -> Option<Vec<u64>> {
        let mut words = vec![0; (self.words.nr_cpus as usize).div_ceil(64)];
        // SAFETY: no machine has more CPUs than the words have bits.
        let found =
            unsafe { (self.words.entry.domain_span)(cpu.0 as c_int, level as c_int, words.as_mut_ptr()) };
        (found >= 0).then_some(words)
    }

    /// Ids of the tasks on a CPU's fair queue.
    pub fn queued(&self, cpu: Cpu) -> Vec<c_int> {
        let mut ids = vec![0; 64];
        loop {
            let room = ids.len() as c_int;
            // SAFETY: that many fit.
            let count = unsafe { (self.words.entry.queued)(cpu.0 as c_int, ids.as_mut_ptr(), room) };
            let count = count.max(0) as usize;
            if count <= ids.len() {
                ids.truncate(count);
                return ids;
            }
            ids.resize(count, 0);
        }
    }
}

/// A method of an entry that takes and gives numbers, tasks and groups alone.
macro_rules! method {
    (plain $name:ident($($argument:ident: $type:ty),*) -> $result:ty) => {
        /// See the header.
        #[inline]
        pub fn $name(&self, $($argument: $type),*) -> $result {
            // SAFETY: the image's table was checked, it lives in this thread, and the arguments are its own.
            unsafe { (self.words.entry.$name)($($argument),*) }
        }
    };
    (own $name:ident($($argument:ident: $type:ty),*) -> $result:ty) => {};
}

macro_rules! methods {
    ($(#[$doc:meta])* $table:ident { $($kind:ident $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)* }) => {
        /// Entries as the header tells them.
        ///
        /// Tasks and groups come from the image, and a task that was released is not given again.
        impl LoadedImage {
            $(method! { $kind $name($($argument: $type),*) -> $result })*
        }
    };
}

entries! { methods }

/// A machine as the image wants it: one word a CPU in each list, distances row by row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologyWords {
    /// Numbers of nodes are below that.
    pub nr_nodes: c_uint,
    /// Threads of one core have one number.
    pub core: Vec<c_uint>,
    /// CPUs of one cluster.
    pub cluster: Vec<c_uint>,
    /// CPUs under one last-level cache.
    pub llc: Vec<c_uint>,
    /// CPUs of one package.
    pub package: Vec<c_uint>,
    /// CPUs of one node.
    pub node: Vec<c_uint>,
    /// Of 1024.
    pub capacity: Vec<c_uint>,
    /// Of cores; all zero: none is preferred.
    pub priority: Vec<c_uint>,
    /// `node_distance()`.
    pub distance: Vec<c_uint>,
    /// `node_reclaim_distance`.
    pub reclaim_distance: c_uint,
    /// Of `migration/0`.
    pub first_stopper_pid: c_int,
    /// Of the task that boots.
    pub init_pid: c_int,
}

fn c_text(text: &str) -> CString {
    let bytes = text.bytes().filter(|&byte| byte != 0).collect::<Vec<_>>();
    CString::new(bytes).unwrap_or_default()
}

/// A text of the image's.
fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the image gives texts that end with a NUL and stay.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn names(list: *const c_char) -> Vec<String> {
    text(list).split_whitespace().map(str::to_string).collect()
}

fn check(words: &ImageWords) -> Result<(), String> {
    if words.magic != MAGIC || words.size as usize != size_of::<ImageWords>() {
        return Err("it was built for another version of Fairlab".to_string());
    }
    let differs = difference("entry", &text(words.entries), &Entries::lines())
        .or_else(|| difference("callback", &text(words.callbacks), &Callbacks::lines()));
    if let Some(problem) = differs {
        return Err(format!("it was built for another version of Fairlab: {problem}"));
    }
    match text(words.events) == EVENTS {
        true => Ok(()),
        false => Err("it was built for another version of Fairlab: its events differ".to_string()),
    }
}

/// Whether user mode may write the base of %gs itself (`HWCAP2_FSGSBASE`).
fn may_write_gs() -> bool {
    // SAFETY: it reads what the kernel told this process at its start.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & 2 != 0 }
}

/// Reserves all addresses of an image at once, so that a collision is seen before anything is written; then fills in its parts.
///
/// # Safety
/// `elf` is what `bytes` says, and `file` has those bytes.
unsafe fn map_all(elf: &Elf, bytes: &[u8], file: &File) -> Result<(), String> {
    let span = elf.span();
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: with MAP_FIXED_NOREPLACE nothing that is mapped already is touched.
    let mapped = unsafe { libc::mmap(span.start as *mut c_void, span.len(), rights, flags, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return Err(format!("its addresses cannot be mapped: {}", std::io::Error::last_os_error()));
    }
    if mapped as usize != span.start {
        return Err("its addresses are taken".to_string());
    }
    elf.segments.iter().try_for_each(|segment| {
        // SAFETY: the segment lies in the span that was just reserved, its bytes in the file.
        unsafe { map(segment, bytes, file) }
    })
}

/// Code is mapped from the file, so that no page is ever both written and executed; the rest is copied.
///
/// # Safety
/// As for [`map_all`], and the segment's pages are reserved.
unsafe fn map(segment: &LoadSegment, bytes: &[u8], file: &File) -> Result<(), String> {
    let (pages, stored) = (segment.pages(), &bytes[segment.bytes.clone()]);
    let lead = segment.address - pages.start;
    let failed = || format!("a segment cannot be mapped: {}", std::io::Error::last_os_error());
    if segment.execute {
        let offset = segment.bytes.start.checked_sub(lead).filter(|offset| offset.is_multiple_of(PAGE));
        let (Some(offset), false, true) = (offset, segment.write, stored.len() == segment.length) else {
            return Err("its code is not laid out as code".to_string());
        };
        let (rights, flags) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_FIXED);
        let (at, length) = (pages.start as *mut c_void, lead + stored.len());
        // SAFETY: the pages are reserved for it.
        let mapped = unsafe {
            libc::mmap(
                at,
                length,
                rights,
                flags,
                std::os::fd::AsRawFd::as_raw_fd(file),
                offset as libc::off_t,
            )
        };
        return if mapped == libc::MAP_FAILED { Err(failed()) } else { Ok(()) };
    }
    // SAFETY: the pages are reserved, may be written, and hold zeros.
    unsafe { ptr::copy_nonoverlapping(stored.as_ptr(), segment.address as *mut u8, stored.len()) };
    let rights = if segment.write { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    // SAFETY: the pages are ours.
    let set = unsafe { libc::mprotect(pages.start as *mut c_void, pages.len(), rights) };
    if set == 0 { Ok(()) } else { Err(failed()) }
}

/// The name and the text of an event that is text.
///
/// # Safety
/// It stands in the image's buffer.
unsafe fn text_of(event: &RawEvent) -> Option<(String, String)> {
    let of = |address: u64| text(address as *const c_char);
    (event.kind == kind::TEXT).then(|| (of(event.value), of(event.value2)))
}

/// Takes what the image has in its full buffer of events into ours.
fn empty_buffer(words: &ImageWords, host: &ImageHost) {
    // SAFETY: as for drain_events().
    unsafe {
        let count = (*words.nr_events as usize).min(words.room as usize);
        let (mut events, mut texts) = (host.events.borrow_mut(), host.texts.borrow_mut());
        for event in std::slice::from_raw_parts(words.event, count) {
            let mut event = *event;
            if let Some(text) = text_of(&event) {
                texts.push(text);
                event.value = texts.len() as u64 - 1;
            }
            events.push(event);
        }
        *words.nr_events = 0;
    }
}

fn callbacks() -> Callbacks {
    Callbacks { alloc, free, write, die, interrupt, timer, speed, events_full, setgs, ping }
}

fn host() -> &'static ImageHost {
    // SAFETY: callbacks are filled in after the host was set, and it is never freed.
    unsafe { &*HOST.load(Ordering::Relaxed) }
}

/// Where a block of [`alloc`] keeps the address that malloc gave: right before it.
const BEFORE: usize = size_of::<usize>();

unsafe extern "C" fn alloc(size: u64, align: u64) -> *mut c_void {
    let align = (align as usize).next_power_of_two().max(16);
    let whole = (size as usize).checked_add(align + BEFORE);
    // SAFETY: calloc() checks its own arguments; memory that is fresh from the kernel it does not clear once more.
    let block = whole.map_or(ptr::null_mut(), |whole| unsafe { libc::calloc(1, whole) });
    if block.is_null() {
        child::end("the kernel asks for more memory than a run may have, which is 2 GiB", "");
    }
    let at = (block as usize + BEFORE).next_multiple_of(align);
    // SAFETY: there is room for a word before it and for `size` bytes from it on.
    unsafe { ((at - BEFORE) as *mut usize).write(block as usize) };
    at as *mut c_void
}

unsafe extern "C" fn free(block: *mut c_void) {
    if !block.is_null() {
        // SAFETY: it comes from alloc(), which has left the word there.
        unsafe { libc::free(*((block as usize - BEFORE) as *const usize) as *mut c_void) };
    }
}

unsafe extern "C" fn write(text: *const c_char, count: u64) {
    // SAFETY: the image gives that many bytes.
    host().print(unsafe { std::slice::from_raw_parts(text.cast(), count as usize) });
}

unsafe extern "C" fn die(what: *const c_char, name: *const c_char) {
    child::end(&text(what), &text(name))
}

unsafe extern "C" fn interrupt(cpu: c_int, ipi: c_int) {
    let cpu = Cpu(cpu as u32);
    match ipi {
        IPI_RESCHEDULE => host().marked.borrow_mut().push(cpu),
        ipi => host().asked.borrow_mut().push(ImageRequest::Interrupt { cpu, ipi }),
    }
}

unsafe extern "C" fn timer(cpu: c_int, when: u64) {
    let expires = (when != NEVER).then_some(Ns(when.saturating_sub(host().uptime.get())));
    host().asked.borrow_mut().push(ImageRequest::Timer { cpu: Cpu(cpu as u32), expires });
}

unsafe extern "C" fn speed(cpu: c_int) {
    host().asked.borrow_mut().push(ImageRequest::Speed { cpu: Cpu(cpu as u32) });
}

unsafe extern "C" fn events_full() {
    // SAFETY: an entry of that image is under way, so that it is mapped and checked.
    if let Some(words) = unsafe { child::watched().as_ref() } {
        empty_buffer(words, host());
    }
}

unsafe extern "C" fn setgs(base: u64) {
    const ARCH_SET_GS: c_int = 0x1001;
    // SAFETY: Rust does not use %gs on x86-64.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, base) };
}

unsafe extern "C" fn ping() {
    host().pings.set(host().pings.get() + 1);
}
