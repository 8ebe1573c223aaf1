//! From an rt-app file to a [`RtAppPlan`].
//!
//! Facts from scheduler-tools/rt-app at 55cb0c0 (2026), doc/tutorial.txt and src/rt-app_parse_config.c: an event is known
//! by how its name begins (`run0` is a `run`), resources by the name that events give them.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::{CpuMask, Policy};

use super::json::{self, JsonNode, RepeatedNames};
use super::plan::{
    Resource, RtAppBarrier, RtAppPhase, RtAppPlan, RtAppStep, RtAppTask, TaskGroupPath, ThreadAttributes,
};
use crate::workload::cgroup::GroupSpec;

/// Events in the order in which names are tried: the longer of two that begin alike comes first.
const EVENTS: &[&str] = &[
    "lock", "unlock", "wait", "signal", "broad", "sync", "sleep", "runtime", "run", "timer", "suspend",
    "resume", "memrun", "mem", "iorun", "yield", "barrier", "fork", "sem_post", "sem_wait",
];

/// Members of tasks and phases that are no events.
const PROPERTIES: &[&str] = &[
    "loop",
    "phases",
    "instance",
    "delay",
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "period",
    "deadline",
    "cpus",
    "nodes_membind",
    "util_min",
    "util_max",
    "taskgroup",
];

/// Members of `global` that have an effect here.
const GLOBAL: &[&str] = &["duration", "default_policy", "cumulative_slack", "pi_enabled"];

/// Members of `global` that rt-app knows and the model has no use for: where it logs, and how it measures and prepares itself.
const GLOBAL_WITHOUT_EFFECT: &[&str] = &[
    "calibration",
    "frag",
    "ftrace",
    "gnuplot",
    "io_device",
    "lock_pages",
    "log_basename",
    "log_size",
    "logdir",
    "logstats",
    "mem_buffer_size",
    "per_thread_calibration",
];

/// Members of the file, and of objects that events have.
const OTHERS: &[&str] = &["tasks", "global", "resources", "ref", "mutex", "mode", "count"];

/// Whether a member of this name is one of a kind: neither a task nor a phase nor an event.
fn is_property(name: &str) -> bool {
    [PROPERTIES, GLOBAL, GLOBAL_WITHOUT_EFFECT, OTHERS].iter().any(|names| names.contains(&name))
}

/// What only tasks with deadlines have.
const OF_DEADLINES: &[&str] = &["dl-period", "dl-deadline", "period", "deadline"];

/// Time that a byte of memory takes where nothing says more: 10 GB/s.
const BYTES_PER_NS: i64 = 10;

/// More threads than these no machine is loaded with.
pub(super) const THREADS_MAX: usize = 100_000;

/// The longest time that a file may give, in µs: with what passes before, its sums stay far below what a clock can count.
const MICROS_MAX: i64 = 1_000_000_000_000;

/// How many timers of their own all threads may have together.
const TIMERS_MAX: usize = 10_000_000;

/// Reads a file, in which names may come again.
///
/// # Errors
/// One line that says what is wrong, and where: line and column, or the members that lead to it.
pub(super) fn parse(text: &str, names: RepeatedNames) -> Result<RtAppPlan, String> {
    let (root, repeated) = json::parse(text, names, is_property)?;
    let root = members(&root, "the file")?;
    let mut reader = RtAppReader::default();
    for path in repeated {
        reader.leave_out(&match names {
            RepeatedNames::Last => {
                format!("all but the last '{path}' of several, as in rt-app (--workgen keeps all)")
            }
            RepeatedNames::Each => format!("all but the first '{path}' of several: it is one of a kind"),
        });
    }
    for (name, _) in root.iter().filter(|(name, _)| !is_comment(name)) {
        match name.as_str() {
            "tasks" | "global" => {}
            "resources" => reader.leave_out("the list 'resources': resources are those that events name"),
            _ => {
                return Err(format!(
                    "'{name}' is nothing that a file of rt-app has beside 'tasks' and 'global'"
                ));
            }
        }
    }
    let mut default_policy = "SCHED_OTHER".to_string();
    if let Some(global) = find(root, "global") {
        default_policy = reader.global(members(global, "global")?)?;
    }
    let tasks = find(root, "tasks").ok_or("there is no object 'tasks'")?;
    let tasks = members(tasks, "tasks")?;
    if tasks.is_empty() {
        return Err("'tasks' is empty: there is nothing to run".to_string());
    }
    reader.names = tasks.iter().map(|(name, _)| name.clone()).collect();
    for (name, task) in tasks {
        let task = reader.task(name, task, &default_policy)?;
        reader.plan.tasks.push(task);
    }
    reader.finish()
}

#[derive(Default)]
struct RtAppReader {
    plan: RtAppPlan,
    /// Names of tasks, in order.
    names: Vec<String>,
    mutexes: Vec<String>,
    conditions: Vec<String>,
    semaphores: Vec<String>,
    barriers: Vec<String>,
    timers: Vec<String>,
}

/// Where in the file something stands: `task/phase`.
#[derive(Clone, Copy)]
struct FilePosition<'a> {
    task: &'a str,
    at: &'a str,
    instances: u32,
}

impl RtAppReader {
    /// Returns the name of the policy of tasks that name none.
    fn global(&mut self, global: &[(String, JsonNode)]) -> Result<String, String> {
        for (name, _) in global.iter().filter(|(name, _)| !is_comment(name)) {
            if GLOBAL_WITHOUT_EFFECT.contains(&name.as_str()) {
                self.leave_out(&format!("'{name}' of 'global'"));
            } else if !GLOBAL.contains(&name.as_str()) {
                return Err(format!("global: '{name}' is no property"));
            }
        }
        if let Some(seconds) = integer(global, "duration", "global")?.filter(|&seconds| seconds >= 0) {
            let micros_of = seconds.saturating_mul(1_000_000);
            self.plan.duration = Some(micros(micros_of, "global/duration")?);
        }
        self.plan.cumulative_slack = boolean(global, "cumulative_slack", "global")?;
        if boolean(global, "pi_enabled", "global")? {
            self.leave_out("priority inheritance of mutexes (pi_enabled)");
        }
        let name = text(global, "default_policy", "global")?.unwrap_or("SCHED_OTHER");
        policy(name, None, "global").map(|_| name.to_string())
    }

    fn task(&mut self, name: &str, node: &JsonNode, default_policy: &str) -> Result<RtAppTask, String> {
        let task = members(node, name)?;
        let number = |key, otherwise| Ok::<i64, String>(integer(task, key, name)?.unwrap_or(otherwise));
        let instances = u32::try_from(number("instance", 1)?)
            .ok()
            .filter(|&instances| instances as usize <= THREADS_MAX)
            .ok_or_else(|| format!("{name}: 'instance' must be from 0 to {THREADS_MAX}"))?;
        let attributes = self.attributes(task, name, Some(default_policy))?;
        let mut repeat = number("loop", -1)?;
        let mut phases = Vec::new();
        match find(task, "phases") {
            Some(list) => {
                self.beside_phases(task, name)?;
                for (phase, node) in members(list, &format!("{name}/phases"))? {
                    let at = format!("{name}/{phase}");
                    phases.push(
                        self.phase(members(node, &at)?, FilePosition { task: name, at: &at, instances })?,
                    );
                }
            }
            None => {
                let mut phase = self.phase(task, FilePosition { task: name, at: name, instances })?;
                // What a task without phases says of scheduling has been said of the task, 'loop' of its only phase.
                phase.attributes = ThreadAttributes::default();
                repeat = if find(task, "loop").is_some() { 1 } else { -1 };
                if repeat > 0 && phase.repeat >= 0 {
                    self.plan.looped_without_phases.push(name.to_string());
                }
                phases.push(phase);
            }
        }
        if phases.is_empty() {
            return Err(format!("{name}: 'phases' is empty"));
        }
        let delay = micros(number("delay", 0)?, name)?;
        Ok(RtAppTask { name: name.to_string(), instances, delay, repeat, attributes, phases })
    }

    /// What stands beside the phases of a task: events there are not carried out.
    fn beside_phases(&mut self, task: &[(String, JsonNode)], at: &str) -> Result<(), String> {
        for (name, _) in task.iter().filter(|(name, _)| !is_comment(name)) {
            if PROPERTIES.contains(&name.as_str()) {
                continue;
            }
            if !EVENTS.iter().any(|event| name.starts_with(event)) {
                return Err(format!("{at}: '{name}' is no event and no property"));
            }
            self.leave_out(&format!("event '{name}' of task '{at}': beside phases rt-app passes it over"));
        }
        Ok(())
    }

    /// The task group that an object names: it and those above it are made where they are named first. (The program itself refuses
    /// one of a real-time task; the kernel puts such a task there, where only its fair tasks are counted.)
    fn group(&mut self, object: &[(String, JsonNode)], at: &str) -> Result<Option<TaskGroupPath>, String> {
        let Some(path) = text(object, "taskgroup", at)?.filter(|path| !path.is_empty()) else {
            return Ok(None);
        };
        if !path.starts_with('/') {
            return Err(format!("{at}: taskgroup '{path}' has to begin with '/'"));
        }
        let (mut above, mut name) = (None, String::new());
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if [".", ".."].contains(&part) {
                return Err(format!("{at}: taskgroup '{path}': '{part}' is no name"));
            }
            name += &format!("/{part}");
            let known = self.plan.groups.iter().position(|group| group.name == name);
            above = Some(known.unwrap_or_else(|| {
                self.plan.groups.push(GroupSpec { parent: above, ..GroupSpec::new(name.as_str()) });
                self.plan.groups.len() - 1
            }));
        }
        Ok(Some(above.map_or(TaskGroupPath::Root, TaskGroupPath::Below)))
    }

    fn phase(&mut self, phase: &[(String, JsonNode)], place: FilePosition<'_>) -> Result<RtAppPhase, String> {
        let mut steps = Vec::new();
        let mut events = 0;
        for (name, value) in phase {
            if let Some(event) = EVENTS.iter().find(|event| name.starts_with(**event)) {
                events += 1;
                self.event(event, value, place, &mut steps)
                    .map_err(|what| format!("{}/{name}: {what}", place.at))?;
            } else if !PROPERTIES.contains(&name.as_str()) && !is_comment(name) {
                return Err(format!("{}: '{name}' is no event and no property", place.at));
            }
        }
        if events == 0 {
            return Err(format!("{}: there are no events", place.at));
        }
        let repeat = integer(phase, "loop", place.at)?.unwrap_or(1);
        Ok(RtAppPhase { repeat, attributes: self.attributes(phase, place.at, None)?, steps })
    }

    fn event(
        &mut self,
        event: &str,
        value: &JsonNode,
        place: FilePosition<'_>,
        steps: &mut Vec<RtAppStep>,
    ) -> Result<(), String> {
        match event {
            "run" => steps.push(RtAppStep::Run(duration(value)?)),
            "runtime" => steps.push(RtAppStep::RunFor(duration(value)?)),
            "sleep" => steps.push(RtAppStep::Sleep(duration(value)?)),
            "timer" => steps.push(self.timer(value, place)?),
            "lock" => steps.push(RtAppStep::Lock(number_of(&mut self.mutexes, name(value)?))),
            "unlock" => steps.push(RtAppStep::Unlock(number_of(&mut self.mutexes, name(value)?))),
            "signal" => steps.push(RtAppStep::Signal(number_of(&mut self.conditions, name(value)?))),
            "broad" => steps.push(RtAppStep::Broadcast(number_of(&mut self.conditions, name(value)?))),
            "wait" => {
                let (condition, mutex) = self.condition_and_mutex(value)?;
                wait(condition, mutex, steps);
            }
            "sync" => {
                // The tutorial says that it locks and unlocks; the program does not.
                let (condition, mutex) = self.condition_and_mutex(value)?;
                steps.push(RtAppStep::Signal(condition));
                wait(condition, mutex, steps);
            }
            "suspend" => {
                let (mutex, condition) = self.of_thread(place.task);
                steps.push(RtAppStep::Lock(mutex));
                wait(condition, mutex, steps);
                steps.push(RtAppStep::Unlock(mutex));
            }
            "resume" => {
                let (mutex, condition) = self.of_thread(name(value)?);
                steps.extend([
                    RtAppStep::Lock(mutex),
                    RtAppStep::Broadcast(condition),
                    RtAppStep::Unlock(mutex),
                ]);
            }
            "barrier" => self.barrier(name(value)?, place, steps),
            "sem_post" => steps.push(RtAppStep::SemPost(number_of(&mut self.semaphores, name(value)?))),
            "sem_wait" => steps.push(RtAppStep::SemWait(number_of(&mut self.semaphores, name(value)?))),
            "yield" => steps.push(RtAppStep::Yield),
            "fork" => steps.push(self.fork(name(value)?)?),
            _ => steps.push(self.memory(event, value)?),
        }
        Ok(())
    }

    fn timer(&mut self, value: &JsonNode, place: FilePosition<'_>) -> Result<RtAppStep, String> {
        let timer = members(value, "it")?;
        only(timer, &["ref", "period", "mode"])?;
        let reference = text(timer, "ref", "it")?.unwrap_or("unknown");
        let unique = reference.starts_with("unique");
        let key = if unique { format!("{}\0{reference}", place.task) } else { reference.to_string() };
        let period = integer(timer, "period", "it")?.unwrap_or(0);
        let relative = !text(timer, "mode", "it")?.is_some_and(|mode| mode.starts_with("absolute"));
        Ok(RtAppStep::Timer {
            timer: number_of(&mut self.timers, &key),
            period: micros(period, "'period'")?,
            relative,
            unique,
        })
    }

    fn condition_and_mutex(&mut self, value: &JsonNode) -> Result<(Resource, Resource), String> {
        let both = members(value, "it")?;
        only(both, &["ref", "mutex"])?;
        let condition = text(both, "ref", "it")?.unwrap_or("unknown");
        let mutex = text(both, "mutex", "it")?.unwrap_or("unknown");
        Ok((number_of(&mut self.conditions, condition), number_of(&mut self.mutexes, mutex)))
    }

    /// The mutex and the condition variable that `suspend` and `resume` of a thread's name use.
    fn of_thread(&mut self, name: &str) -> (Resource, Resource) {
        (number_of(&mut self.mutexes, name), number_of(&mut self.conditions, name))
    }

    fn barrier(&mut self, name: &str, place: FilePosition<'_>, steps: &mut Vec<RtAppStep>) {
        let barrier = number_of(&mut self.barriers, name);
        if barrier == self.plan.barriers.len() {
            // Its own, whatever the file calls others.
            let internal = format!("\0{name}");
            let (mutex, condition) = self.of_thread(&internal);
            self.plan.barriers.push(RtAppBarrier { mutex, condition, others: 0 });
        }
        let known = &mut self.plan.barriers[barrier];
        known.others = known.others.saturating_add(place.instances);
        let mutex = known.mutex;
        steps.extend([
            RtAppStep::Lock(mutex),
            RtAppStep::Arrive(barrier),
            RtAppStep::Block,
            RtAppStep::Lock(mutex),
            RtAppStep::Depart(barrier),
            RtAppStep::Unlock(mutex),
        ]);
    }

    fn fork(&mut self, name: &str) -> Result<RtAppStep, String> {
        let task = self.names.iter().position(|task| task == name);
        task.map(RtAppStep::Fork).ok_or_else(|| format!("there is no task '{name}'"))
    }

    /// Memory and I/O: time in which bytes are moved.
    fn memory(&mut self, event: &str, value: &JsonNode) -> Result<RtAppStep, String> {
        self.leave_out(
            "caches and devices: mem, memrun and iorun compute for a tenth of a nanosecond a byte",
        );
        let bytes = match (event, value) {
            ("memrun", JsonNode::Object(memory)) => integer(memory, "count", "it")?.unwrap_or(0),
            (_, JsonNode::Integer(bytes)) => *bytes,
            (_, other) => return Err(format!("a number of bytes is needed, not {}", other.kind())),
        };
        u64::try_from(bytes / BYTES_PER_NS).map_err(|_| "it is negative".to_string()).and_then(|ns| {
            match ns / 1_000 <= MICROS_MAX as u64 {
                true => Ok(RtAppStep::Run(Ns(ns))),
                false => Err(format!("{bytes} bytes take longer than {MICROS_MAX} us")),
            }
        })
    }

    fn attributes(
        &mut self,
        object: &[(String, JsonNode)],
        at: &str,
        default_policy: Option<&str>,
    ) -> Result<ThreadAttributes, String> {
        for (key, what) in [
            ("nodes_membind", "memory binding (nodes_membind)"),
            ("util_min", "utilization clamps (util_min, util_max)"),
            ("util_max", "utilization clamps (util_min, util_max)"),
        ] {
            if find(object, key).is_some_and(|value| *value != JsonNode::Text(String::new())) {
                self.leave_out(what);
            }
        }
        let priority = integer(object, "priority", at)?;
        let group = self.group(object, at)?;
        let mut attributes =
            ThreadAttributes { cpus: cpus(object, at)?, group, ..ThreadAttributes::default() };
        if let Some(name) = text(object, "policy", at)?.or(default_policy) {
            let policy = policy(name, priority, at)?;
            attributes.policy = Some(policy);
            attributes.nice = policy.is_fair().then(|| nice(priority.unwrap_or(0), at)).transpose()?;
        } else if let Some(priority) = priority {
            attributes.nice = Some(nice(priority, at)?);
        }
        for key in OF_DEADLINES {
            if integer(object, key, at)?.is_some_and(|value| value > 0) {
                self.leave_out(&format!("'{key}': fair and real-time tasks have none"));
            }
        }
        if let Some(request) = integer(object, "dl-runtime", at)?.filter(|&request| request > 0) {
            attributes.request = Some(micros(request, at)?);
        }
        Ok(attributes)
    }

    fn leave_out(&mut self, what: &str) {
        if !self.plan.left_out.iter().any(|line| line == what) {
            self.plan.left_out.push(what.to_string());
        }
    }

    fn finish(mut self) -> Result<RtAppPlan, String> {
        // The last to come does not wait.
        for (barrier, name) in self.plan.barriers.iter_mut().zip(&self.barriers) {
            barrier.others =
                barrier.others.checked_sub(1).ok_or_else(|| format!("no task comes to barrier '{name}'"))?;
        }
        self.plan.mutexes = self.mutexes.len();
        self.plan.conditions = self.conditions.len();
        self.plan.semaphores = self.semaphores.len();
        self.plan.timers = self.timers.len();
        let threads = self.plan.tasks.iter().map(|task| task.instances as usize).sum::<usize>();
        if threads > THREADS_MAX {
            return Err(format!("{threads} threads are more than {THREADS_MAX}"));
        }
        if threads.saturating_mul(self.plan.timers) > TIMERS_MAX {
            let timers = self.plan.timers;
            return Err(format!(
                "{threads} threads with {timers} timers each are more than {TIMERS_MAX} timers"
            ));
        }
        Ok(self.plan)
    }
}

/// rt-app's script makes `#` before a name a comment.
fn is_comment(name: &str) -> bool {
    name.starts_with('#')
}

/// Nothing else is a member of an event.
fn only(members: &[(String, JsonNode)], known: &[&str]) -> Result<(), String> {
    match members.iter().find(|(name, _)| !known.contains(&name.as_str()) && !is_comment(name)) {
        None => Ok(()),
        Some((name, _)) => Err(format!("'{name}' is none of {}", known.join(", "))),
    }
}

fn boolean(members: &[(String, JsonNode)], name: &str, at: &str) -> Result<bool, String> {
    match find(members, name) {
        None => Ok(false),
        Some(JsonNode::Bool(value)) => Ok(*value),
        Some(other) => Err(format!("{at}: '{name}' must be true or false, not {}", other.kind())),
    }
}

fn wait(condition: Resource, mutex: Resource, steps: &mut Vec<RtAppStep>) {
    steps.extend([RtAppStep::BeginWait(condition, mutex), RtAppStep::Block, RtAppStep::Lock(mutex)]);
}

/// The number of what is called `name`; a new one if it has not been named before.
fn number_of(names: &mut Vec<String>, name: &str) -> Resource {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_string());
        names.len() - 1
    })
}

fn members<'n>(node: &'n JsonNode, at: &str) -> Result<&'n [(String, JsonNode)], String> {
    match node {
        JsonNode::Object(members) => Ok(members),
        other => Err(format!("{at} must be an object, not {}", other.kind())),
    }
}

fn find<'n>(members: &'n [(String, JsonNode)], name: &str) -> Option<&'n JsonNode> {
    members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

fn integer(members: &[(String, JsonNode)], name: &str, at: &str) -> Result<Option<i64>, String> {
    match find(members, name) {
        None => Ok(None),
        Some(JsonNode::Integer(value)) => Ok(Some(*value)),
        Some(other) => Err(format!("{at}: '{name}' must be an integer, not {}", other.kind())),
    }
}

fn text<'n>(members: &'n [(String, JsonNode)], name: &str, at: &str) -> Result<Option<&'n str>, String> {
    match find(members, name) {
        None => Ok(None),
        Some(JsonNode::Text(value)) => Ok(Some(value)),
        Some(other) => Err(format!("{at}: '{name}' must be a string, not {}", other.kind())),
    }
}

fn name(value: &JsonNode) -> Result<&str, String> {
    match value {
        JsonNode::Text(name) => Ok(name),
        other => Err(format!("a name is needed, not {}", other.kind())),
    }
}

fn duration(value: &JsonNode) -> Result<Ns, String> {
    match value {
        JsonNode::Integer(duration) => micros(*duration, "it"),
        other => Err(format!("a number of microseconds is needed, not {}", other.kind())),
    }
}

fn micros(value: i64, at: &str) -> Result<Ns, String> {
    let known = u64::try_from(value).ok().filter(|_| value <= MICROS_MAX);
    known
        .map(Ns::from_us)
        .ok_or_else(|| format!("{at}: {value} is no number of microseconds from 0 to {MICROS_MAX}"))
}

fn policy(name: &str, priority: Option<i64>, at: &str) -> Result<Policy, String> {
    let urgency = || {
        let priority = priority.unwrap_or(10);
        u8::try_from(priority)
            .ok()
            .filter(|priority| (1..=99).contains(priority))
            .ok_or_else(|| format!("{at}: priority {priority} is not from 1 to 99, as {name} needs"))
    };
    match name {
        "SCHED_OTHER" => Ok(Policy::Normal),
        "SCHED_BATCH" => Ok(Policy::Batch),
        "SCHED_IDLE" => Ok(Policy::Idle),
        "SCHED_FIFO" => Ok(Policy::Fifo(urgency()?)),
        "SCHED_RR" => Ok(Policy::RoundRobin(urgency()?)),
        "SCHED_DEADLINE" => Err(format!("{at}: SCHED_DEADLINE is not modelled")),
        _ => Err(format!("{at}: there is no policy '{name}'")),
    }
}

fn nice(priority: i64, at: &str) -> Result<i32, String> {
    i32::try_from(priority)
        .ok()
        .filter(|nice| (-20..=19).contains(nice))
        .ok_or_else(|| format!("{at}: priority {priority} is no nice level from -20 to 19"))
}

fn cpus(members: &[(String, JsonNode)], at: &str) -> Result<Option<CpuMask>, String> {
    let Some(list) = find(members, "cpus") else { return Ok(None) };
    let JsonNode::List(list) = list else { return Err(format!("{at}: 'cpus' must be a list")) };
    let one = |node: &JsonNode| match node {
        JsonNode::Integer(cpu) => u32::try_from(*cpu)
            .ok()
            .filter(|&cpu| (cpu as usize) < fairlab_kernel::MAX_CPUS)
            .map(Cpu)
            .ok_or_else(|| format!("{at}: {cpu} is no CPU")),
        other => Err(format!("{at}: 'cpus' has {} in it", other.kind())),
    };
    let mask = list.iter().map(one).collect::<Result<CpuMask, String>>()?;
    if mask.is_empty() { Err(format!("{at}: 'cpus' is empty")) } else { Ok(Some(mask)) }
}
