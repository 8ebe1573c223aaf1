//! `shim/abi.h` in Rust: the tables of entries and callbacks, and the records that cross them.
//!
//! The header says what each thing does. Each line of a table gives its own text in the header's words, which the loader compares
//! with the text that the image carries.
//!
//! Must not know: where an image lies, who calls.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `FL_MAGIC`.
pub const MAGIC: u64 = 0x3330_3065_6761_6d49;

/// `FL_NEVER`, and no idle state.
pub const NEVER: u64 = u64::MAX;

/// `FL_KEEP`: the nice level stays.
pub const KEEP: c_int = 127;

/// `enum fl_ipi`.
pub const IPI_RESCHEDULE: c_int = 0;

/// The order of `FL_EVENTS`, as the image tells it.
pub const EVENTS: &str = "SWITCH WAKING WAKEUP WAKEUP_NEW MIGRATE EXIT STAT_WAIT STAT_SLEEP STAT_BLOCKED STAT_IOWAIT STAT_RUNTIME TEXT ";

/// `enum fl_event_kind`.
pub mod kind {
    use std::ffi::c_int;

    pub const SWITCH: c_int = 0;
    pub const WAKING: c_int = 1;
    pub const WAKEUP: c_int = 2;
    pub const WAKEUP_NEW: c_int = 3;
    pub const MIGRATE: c_int = 4;
    pub const EXIT: c_int = 5;
    pub const STAT_WAIT: c_int = 6;
    pub const STAT_SLEEP: c_int = 7;
    pub const STAT_BLOCKED: c_int = 8;
    pub const STAT_IOWAIT: c_int = 9;
    pub const STAT_RUNTIME: c_int = 10;
    pub const TEXT: c_int = 11;
}

/// A task of the image's, known by its address alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct TaskPtr(*mut c_void);

impl TaskPtr {
    /// Whether there is one.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// A control group of the image's; [`GroupPtr::ROOT`] is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct GroupPtr(*mut c_void);

impl GroupPtr {
    /// The root group.
    pub const ROOT: GroupPtr = GroupPtr(std::ptr::null_mut());
}

/// `struct fl_machine`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MachineWords {
    pub nr_cpus: c_uint,
    pub nr_nodes: c_uint,
    pub core: *const c_uint,
    pub cluster: *const c_uint,
    pub llc: *const c_uint,
    pub package: *const c_uint,
    pub node: *const c_uint,
    pub capacity: *const c_uint,
    pub priority: *const c_uint,
    pub distance: *const c_uint,
    pub reclaim_distance: c_uint,
    pub first_stopper_pid: c_int,
    pub init_pid: c_int,
}

/// `struct fl_clock`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlClock {
    pub now: u64,
    pub look: u64,
    pub migrate: u64,
    pub softirq: u64,
    pub looked: u64,
    pub migrated: u64,
    pub softirqs: u64,
    pub blocks: u64,
}

/// `struct fl_event`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawEvent {
    pub time: u64,
    pub value: u64,
    pub value2: u64,
    pub cpu: c_int,
    pub kind: c_int,
    pub context: c_int,
    pub task: c_int,
    pub other: c_int,
    pub prio: c_int,
    pub other_prio: c_int,
    pub state: c_int,
    pub flags: [u8; 8],
}

/// `struct fl_task_spec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TaskWords {
    pub comm: [u8; 16],
    pub id: c_int,
    pub pid: c_int,
    pub tgid: c_int,
    pub policy: c_int,
    pub rt_priority: c_int,
    pub nice: c_int,
    pub kthread: c_int,
    pub per_cpu: c_int,
    pub allowed: *const u64,
    pub group: GroupPtr,
    pub own_group: c_int,
}

/// A type in the words of the header.
trait AbiType {
    const NAME: &'static str;
}

macro_rules! told {
    ($($type:ty, $name:literal;)*) => { $(impl AbiType for $type { const NAME: &'static str = $name; })* };
}

told! {
    (), "void";
    c_int, "int";
    u64, "fl_u64";
    i64, "fl_s64";
    *mut c_void, "void *";
    *const c_char, "const char *";
    *const u64, "const fl_u64 *";
    *mut u64, "fl_u64 *";
    *mut i64, "fl_s64 *";
    *mut c_int, "int *";
    TaskPtr, "fl_task *";
    GroupPtr, "fl_group *";
    *const MachineWords, "const struct fl_machine *";
    *const TaskWords, "const struct fl_task_spec *";
}

macro_rules! table {
    ($(#[$doc:meta])* $table:ident { $($kind:ident $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)* }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct $table { $(pub $name: unsafe extern "C" fn($($type),*) -> $result),* }

        impl $table {
            /// Its lines in the header's words, parameters without names.
            pub fn lines() -> Vec<String> {
                vec![$(line(<$result>::NAME, stringify!($name), &[$(<$type>::NAME),*])),*]
            }
        }
    };
}

table! {
    /// `struct fl_callbacks`.
    Callbacks {
        own alloc(size: u64, align: u64) -> *mut c_void;
        own free(block: *mut c_void) -> ();
        own write(text: *const c_char, count: u64) -> ();
        own die(what: *const c_char, name: *const c_char) -> ();
        own interrupt(cpu: c_int, ipi: c_int) -> ();
        own timer(cpu: c_int, when: u64) -> ();
        own speed(cpu: c_int) -> ();
        own events_full() -> ();
        own setgs(base: u64) -> ();
        own ping() -> ();
    }
}

/// The table of entries, given to another macro: `plain` ones take and give what their methods do, `own` ones have methods by hand.
macro_rules! entries {
    ($for:ident) => {
        $for! {
            /// `struct fl_entries`.
            Entries {
                own boot(machine: *const MachineWords) -> ();
                plain enter(cpu: c_int) -> ();
                plain irq_enter() -> ();
                plain irq_exit() -> ();
                plain tick() -> ();
                plain receive(ipi: c_int) -> ();
                plain clock_event() -> ();
                plain curr(cpu: c_int) -> c_int;
                plain need_resched(cpu: c_int) -> c_int;
                plain schedule(state: c_int) -> ();
                plain yield_task() -> ();
                plain exit() -> ();
                plain exec() -> ();
                plain release(task: TaskPtr) -> ();
                plain wake(task: TaskPtr, sync: c_int) -> c_int;
                plain set_state(task: TaskPtr, state: c_int) -> ();
                plain set_iowait(task: TaskPtr) -> ();
                own fork(task: *const TaskWords) -> TaskPtr;
                plain start(task: TaskPtr) -> ();
                own new_kthread(task: *const TaskWords, cpu: c_int) -> TaskPtr;
                plain user_work(cpu: c_int) -> c_int;
                plain run_user_work() -> ();
                plain stopper_work() -> c_int;
                plain run_stopper() -> c_int;
                plain workqueues() -> ();
                plain idle_begin() -> ();
                plain tick_stopped() -> ();
                plain tick_restarted() -> ();
                plain idle_keeps_tick(got_tick: c_int) -> c_int;
                plain idle_state(exit_latency: u64) -> ();
                plain set_scheduler(task: TaskPtr, policy: c_int, rt_priority: c_int, nice: c_int, slice: u64) -> c_int;
                own set_allowed(task: TaskPtr, cpus: *const u64) -> c_int;
                own new_group(parent: GroupPtr, name: *const c_char) -> GroupPtr;
                own group_write(group: GroupPtr, file: *const c_char, value: *const c_char) -> c_int;
                plain group_phase(group: GroupPtr, offset: u64) -> c_int;
                plain group_cpus(group: GroupPtr, nr_cpus: c_int) -> ();
                plain r#move(task: TaskPtr, group: GroupPtr) -> c_int;
                plain trace(on: c_int) -> ();
                own features() -> *const c_char;
                own feature(name: *const c_char) -> c_int;
                own set_feature(name: *const c_char, on: c_int) -> c_int;
                own tunables() -> *const c_char;
                own tunable(name: *const c_char, value: *mut i64) -> c_int;
                own set_tunable(name: *const c_char, value: i64) -> c_int;
                own fields(object: c_int) -> *const c_char;
                plain read_task(task: TaskPtr, field: c_int) -> u64;
                plain read_entity(group: GroupPtr, cpu: c_int, field: c_int) -> u64;
                plain read_queue(group: GroupPtr, cpu: c_int, field: c_int) -> u64;
                plain read_cpu(cpu: c_int, field: c_int) -> u64;
                plain read_domain(cpu: c_int, level: c_int, field: c_int) -> u64;
                plain read_group(group: GroupPtr, field: c_int) -> u64;
                own domain_name(cpu: c_int, level: c_int) -> *const c_char;
                own domain_span(cpu: c_int, level: c_int, cpus: *mut u64) -> c_int;
                own queued(cpu: c_int, ids: *mut c_int, room: c_int) -> c_int;
                plain snapshot(what: c_int) -> c_int;
                plain test(what: c_int, number: i64) -> c_int;
            }
        }
    };
}
pub(crate) use entries;

entries! { table }

/// `struct fl_image`.
#[repr(C)]
pub struct ImageWords {
    pub magic: u64,
    pub size: u64,
    pub callbacks: *const c_char,
    pub entries: *const c_char,
    pub events: *const c_char,
    pub release: *const c_char,
    pub configuration: *const c_char,
    pub clock: *mut FlClock,
    pub callback: *mut Callbacks,
    pub event: *mut RawEvent,
    pub nr_events: *mut c_uint,
    pub room: u64,
    pub wrgsbase: *mut c_uint,
    pub work: *const c_uint,
    pub bug_start: *const c_void,
    pub bug_end: *const c_void,
    pub bug_size: u64,
    pub bug_flags: u64,
    pub hz: u64,
    pub nr_cpus: u64,
    pub entry: Entries,
}

fn line(result: &str, name: &str, types: &[&str]) -> String {
    let types = if types.is_empty() { "void".to_string() } else { types.join(", ") };
    format!("{result} {}({types})", name.trim_start_matches("r#"))
}

/// The lines of a table as an image carries it, parameters without names, blanks as [`line`] sets them.
pub fn told_lines(text: &str) -> Vec<String> {
    text.split(';').filter(|line| !line.trim().is_empty()).map(told_line).collect()
}

/// An image's own order of words in a line may have other blanks, and parameters' names.
fn told_line(text: &str) -> String {
    let (head, parameters) = text.split_once('(').unwrap_or((text, ""));
    let mut head = words(head);
    let name = head.pop().unwrap_or_default();
    let types = parameters.trim_end().trim_end_matches(')').split(',').map(|parameter| {
        let mut words = words(parameter);
        let is_name = |word: &String| word.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        if words.len() > 1 && words.last().is_some_and(is_name) {
            words.pop();
        }
        words.join(" ")
    });
    format!("{} {name}({})", head.join(" "), types.collect::<Vec<_>>().join(", "))
}

/// Words of a line in C; each star is one.
fn words(text: &str) -> Vec<String> {
    text.replace('*', " * ").split_whitespace().map(str::to_string).collect()
}

/// What differs between the table that an image carries and the one that is wanted; `None`: nothing.
pub fn difference(what: &str, carried: &str, wanted: &[String]) -> Option<String> {
    let carried = told_lines(carried);
    let place =
        (0..carried.len().max(wanted.len())).find(|&place| carried.get(place) != wanted.get(place))?;
    let tell = |lines: &[String]| lines.get(place).map_or("nothing".to_string(), |line| format!("'{line}'"));
    Some(format!("{what} {place} is {} in the image, {} in Fairlab", tell(&carried), tell(wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../shim/abi.h");

    /// The X-lines of one of the header's lists, as a compiler would see them.
    fn listed(list: &str) -> Vec<String> {
        let begin = HEADER.find(&format!("#define {list}(X)")).expect("a list");
        let text = HEADER[begin..].replace("\\\n", " ");
        let mut text = text.lines().next().expect("a line").to_string();
        while let (Some(from), Some(to)) = (text.find("/*"), text.find("*/")) {
            text.replace_range(from..to + 2, " ");
        }
        let text = &text[text.find("(X)").expect("a macro") + 3..];
        text.split("X(").map(str::trim).filter(|line| !line.is_empty()).map(str::to_string).collect()
    }

    fn table(list: &str) -> String {
        let lines = listed(list).into_iter().map(|line| {
            let line = line.strip_suffix(')').expect("an end").to_string();
            let (result, rest) = line.split_once(',').expect("a result");
            let (name, arguments) = rest.split_once(',').expect("a name");
            format!("{result} {}{};", name.trim(), arguments.trim())
        });
        lines.collect()
    }

    #[test]
    fn the_tables_are_the_headers() {
        assert_eq!(difference("entry", &table("FL_ENTRIES"), &Entries::lines()), None);
        assert_eq!(difference("callback", &table("FL_CALLBACKS"), &Callbacks::lines()), None);
        let kinds = listed("FL_EVENTS");
        let names = kinds.iter().filter_map(|line| line.split_once(',')).map(|(kind, _)| format!("{kind} "));
        assert_eq!(names.collect::<String>(), EVENTS);
        assert_eq!(EVENTS.split(' ').position(|name| name == "TEXT"), Some(kind::TEXT as usize));
        assert!(HEADER.contains(&format!("#define FL_KEEP {KEEP}")));
        assert!(HEADER.contains(&format!("#define FL_MAGIC {MAGIC:#x}ULL")));
    }

    #[test]
    fn a_table_that_differs_is_told_by_its_line() {
        let wanted = ["void tick(void)".to_string(), "int curr(int)".to_string()];
        assert_eq!(difference("entry", "void tick(void);int curr( int  cpu );", &wanted), None);
        assert_eq!(
            difference("entry", "void tick(void);int curr(fl_task *p);", &wanted).as_deref(),
            Some("entry 1 is 'int curr(fl_task *)' in the image, 'int curr(int)' in Fairlab")
        );
        assert_eq!(
            difference("entry", "void tick(void);", &wanted).as_deref(),
            Some("entry 1 is nothing in the image, 'int curr(int)' in Fairlab")
        );
    }
}
