//! From tables to a plan: what is wrong is reported with the task, the step and what is allowed.
//!
//! Must not know: what the steps do.

use std::collections::BTreeMap;

use fairlab_event::Ns;
use fairlab_event::spelling::may_be_meant;
use toml::{Table, Value};

use super::plan::{
    Arrivals, BarrierSpec, LockKind, LockSpec, Op, QueueSpec, RequestPath, TaskPlan, TasksPlan,
};
use super::step::{StepNames, StepReader};
use crate::workload::mix::place::{MemberPlace, cpus, kind, take, text, time, whole, yes_or_no};

/// The most threads of a task.
const MOST_THREADS: i64 = 100_000;

/// Reads a whole table.
///
/// # Errors
/// One line that says what is wrong and what would be right.
pub(super) fn plan(table: &Table) -> Result<TasksPlan, String> {
    let known = ["name", "duration", "lock", "queue", "barrier", "task"];
    only(table, &known, "a workload of tasks")?;
    let locks = named(table, "lock", lock)?;
    let queues = named(table, "queue", queue)?;
    let mut barriers = named(table, "barrier", barrier)?;
    let duration = match table.get("duration") {
        Some(value) => Some(text(value).and_then(time).map_err(|problem| format!("duration: {problem}"))?),
        None => None,
    };
    let tables = task_tables(table)?;
    let names = StepNames {
        locks: locks.iter().map(|lock| lock.name.clone()).collect(),
        queues: queues.iter().map(|queue| (queue.name.clone(), queue.arrivals.is_some())).collect(),
        tasks: tables.iter().map(|(name, _)| name.clone()).collect(),
    };
    let mut used = barriers.iter().map(|barrier| barrier.name.clone()).collect::<Vec<_>>();
    let mut tasks = Vec::new();
    for (name, table) in &tables {
        tasks.push(
            task(name, table, &names, &mut used).map_err(|problem| format!("task '{name}': {problem}"))?,
        );
    }
    for name in used.split_off(barriers.len()) {
        barriers.push(BarrierSpec { name, spins: false, threads: 0 });
    }
    count_barriers(&mut barriers, &tasks)?;
    all_is_used(&queues, &tasks)?;
    kworkers_take(&queues, &tasks)?;
    Ok(TasksPlan { locks, queues, barriers, tasks, duration })
}

/// What else stands in a table is refused.
fn only(table: &Table, known: &[&str], of: &str) -> Result<(), String> {
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            let meant = may_be_meant(key, known.iter().copied());
            Err(format!("{of} has no '{key}': {meant}it has {}", known.join(", ")))
        }
        None => Ok(()),
    }
}

/// The tables below a key, each by its name: `[lock.NAME]`.
fn named<T>(
    table: &Table,
    key: &str,
    read: impl Fn(String, &mut Table) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    let all = value
        .as_table()
        .ok_or_else(|| format!("{key}: tables by name are needed, [{key}.NAME], not {}", kind(value)))?;
    let one = |(name, value): (&String, &Value)| {
        let below = value
            .as_table()
            .ok_or_else(|| format!("{key}.{name}: a table is needed, [{key}.{name}], not {}", kind(value)))?;
        is_name(name).map_err(|problem| format!("{key} {problem}"))?;
        read(name.clone(), &mut below.clone()).map_err(|problem| format!("{key}.{name}: {problem}"))
    };
    all.iter().map(one).collect()
}

/// Names stand between spaces in steps, and in metrics.
fn is_name(name: &str) -> Result<(), String> {
    let good = |char: char| !char.is_whitespace() && !char.is_control();
    match !name.is_empty() && name.chars().all(good) {
        true => Ok(()),
        false => Err(format!("'{}' is no name: it must not be empty or hold spaces", name.escape_default())),
    }
}

fn lock(name: String, table: &mut Table) -> Result<LockSpec, String> {
    only(table, &["kind", "spin"], "a lock")?;
    let kind_of = table.get("kind").map(text).transpose().map_err(|problem| format!("kind: {problem}"))?;
    let spin = table.get("spin").map(|value| text(value).and_then(time)).transpose();
    let spin = spin.map_err(|problem| format!("spin: {problem}"))?;
    let kind = match (kind_of.unwrap_or("mutex"), spin) {
        ("mutex", None) => LockKind::Mutex,
        ("spin", None) => LockKind::Spin,
        ("adaptive", Some(Ns::ZERO)) => return Err("spin: it spins for longer than nothing".to_string()),
        ("adaptive", spin) => LockKind::Adaptive { spin: spin.unwrap_or(Ns::from_us(5)) },
        ("mutex" | "spin", Some(_)) => return Err("only a lock of kind 'adaptive' has 'spin'".to_string()),
        (other, _) => return Err(format!("'{other}' is no kind of lock: mutex, spin, adaptive")),
    };
    Ok(LockSpec { name, kind })
}

fn queue(name: String, table: &mut Table) -> Result<QueueSpec, String> {
    only(table, &["arrivals", "irq", "wake", "via", "size"], "a queue")?;
    let word =
        |key: &str| table.get(key).map(text).transpose().map_err(|problem| format!("{key}: {problem}"));
    let arrivals =
        word("arrivals")?.map(arrivals).transpose().map_err(|problem| format!("arrivals: {problem}"))?;
    let irq = table.get("irq").map(cpus).transpose().map_err(|problem| format!("irq: {problem}"))?;
    if irq.is_some() && arrivals.is_none() {
        return Err("irq: nothing comes from outside: it needs 'arrivals'".to_string());
    }
    let wakes_all = match word("wake")?.unwrap_or("one") {
        "one" => false,
        "all" => true,
        other => return Err(format!("wake: '{other}' is neither 'one' nor 'all'")),
    };
    let via = match word("via")?.unwrap_or("socket") {
        "socket" => RequestPath::Socket,
        "futex" => RequestPath::Futex,
        "kworker" => RequestPath::Kworker,
        other => return Err(format!("via: '{other}' is neither 'socket' nor 'futex' nor 'kworker'")),
    };
    if via == RequestPath::Kworker && (arrivals.is_some() || wakes_all) {
        return Err("via: work for kworkers is put by tasks, and wakes one: leave 'arrivals' and 'wake' out"
            .to_string());
    }
    let size = table.get("size").map(|value| whole(value, 1..=1_000_000_000)).transpose();
    let size = size.map_err(|problem| format!("size: {problem}"))?.map(|size| size as usize);
    Ok(QueueSpec { name, arrivals, irq, wakes_all, via, size })
}

/// `poisson 2000/s`.
fn arrivals(text: &str) -> Result<Arrivals, String> {
    let wrong = || format!("'{text}' are no arrivals: 'poisson 2000/s', 'fixed 2000/s' or 'uniform 2000/s'");
    let (name, rate) = text.trim().split_once(' ').ok_or_else(wrong)?;
    let rate = rate.trim().strip_suffix("/s").and_then(|rate| rate.parse::<f64>().ok()).ok_or_else(wrong)?;
    if !(0.001..=100_000_000.0).contains(&rate) {
        return Err(format!("'{text}': the rate is not from 0.001 to 100000000 a second"));
    }
    let gap = Ns((1e9 / rate).round().max(1.0) as u64);
    match name {
        "poisson" => Ok(Arrivals::Poisson(gap)),
        "fixed" => Ok(Arrivals::Fixed(gap)),
        "uniform" => Ok(Arrivals::Uniform(gap)),
        _ => Err(wrong()),
    }
}

fn barrier(name: String, table: &mut Table) -> Result<BarrierSpec, String> {
    only(table, &["kind", "threads"], "a barrier")?;
    let threads = table.get("threads").map(|value| whole(value, 1..=MOST_THREADS)).transpose();
    let threads = threads.map_err(|problem| format!("threads: {problem}"))?.unwrap_or(0) as usize;
    let kind = table.get("kind").map(text).transpose().map_err(|problem| format!("kind: {problem}"))?;
    match kind.unwrap_or("futex") {
        "futex" => Ok(BarrierSpec { name, spins: false, threads }),
        "spin" => Ok(BarrierSpec { name, spins: true, threads }),
        other => Err(format!("'{other}' is no kind of barrier: futex, spin")),
    }
}

/// The tables of tasks with their names.
fn task_tables(table: &Table) -> Result<Vec<(String, Table)>, String> {
    let missing = "there is no task: write [[task]] with name and steps";
    let value = table.get("task").ok_or(missing)?;
    let list = value.as_array().ok_or_else(|| format!("task: [[task]] is needed, not {}", kind(value)))?;
    if list.is_empty() {
        return Err(missing.to_string());
    }
    let mut tables: Vec<(String, Table)> = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let number = index + 1;
        let table = value
            .as_table()
            .ok_or_else(|| format!("task {number}: a table is needed, [[task]], not {}", kind(value)))?;
        let name = match table.get("name") {
            Some(value) => {
                text(value).map_err(|problem| format!("task {number}: name: {problem}"))?.to_string()
            }
            None => format!("task{number}"),
        };
        is_name(&name).map_err(|problem| format!("task {number}: {problem}"))?;
        if name.len() > 15 {
            return Err(format!("task '{name}': a task's name has at most 15 letters"));
        }
        if tables.iter().any(|(other, _)| *other == name) {
            return Err(format!("task '{name}' is there twice: give each another name"));
        }
        tables.push((name, table.clone()));
    }
    Ok(tables)
}

fn task(
    name: &str,
    table: &Table,
    names: &StepNames,
    barriers: &mut Vec<String>,
) -> Result<TaskPlan, String> {
    let mut table = table.clone();
    let place = MemberPlace::take(&mut table).map_err(|wrong| wrong.to_string())?;
    let known = ["name", "count", "steps", "kthread", "per_cpu", "process", "start", "repeat"];
    if let Err(problem) = only(&table, &known, "a task") {
        return Err(format!("{problem}, group, policy, nice, slice, cpus"));
    }
    let told = |wrong: crate::workload::mix::place::KeyError| wrong.to_string();
    let count = take(&mut table, "count", |value| whole(value, 0..=MOST_THREADS)).map_err(told)?;
    let kthread = take(&mut table, "kthread", yes_or_no).map_err(told)?.unwrap_or(false);
    let per_cpu = take(&mut table, "per_cpu", yes_or_no).map_err(told)?.unwrap_or(false);
    let process = take(&mut table, "process", yes_or_no).map_err(told)?.unwrap_or(false);
    let start = take(&mut table, "start", |value| time(text(value)?)).map_err(told)?.unwrap_or_default();
    let repeat = take(&mut table, "repeat", |value| whole(value, 1..=i64::MAX)).map_err(told)?;
    if per_cpu && count.is_some() {
        return Err("with 'per_cpu' there is one thread a CPU: leave 'count' out".to_string());
    }
    if kthread && place.group.as_ref().is_some_and(|group| group != "/") {
        return Err("threads of the kernel stay in the root group: leave 'group' out".to_string());
    }
    let steps = table.get("steps").ok_or("it has no 'steps': a list of texts such as 'run 30us'")?;
    let mut read = StepReader::new(names, barriers);
    read.list(steps, "step", 0)?;
    let (steps, counters) = read.finish();
    let replies = steps.iter().any(|op| matches!(op, Op::Reply(Some(_))));
    if replies && !steps.iter().any(|op| matches!(op, Op::Take(_))) {
        return Err("it replies to requests that it never takes: 'take QUEUE' comes first; 'reply' alone counts a round".to_string());
    }
    if !steps.iter().any(Op::takes_time) {
        return Err("no step of it takes time: it would do them for ever at one instant".to_string());
    }
    Ok(TaskPlan {
        name: name.to_string(),
        count: count.unwrap_or(1) as usize,
        place,
        kthread,
        per_cpu,
        process,
        start,
        repeat: repeat.map(|repeat| repeat as u64),
        steps,
        counters,
    })
}

/// A barrier is for all threads of the tasks whose steps name it, or for as many as its table says.
fn count_barriers(barriers: &mut [BarrierSpec], tasks: &[TaskPlan]) -> Result<(), String> {
    for (number, barrier) in barriers.iter_mut().enumerate() {
        let comes = |task: &&TaskPlan| task.steps.contains(&Op::Barrier(number));
        if !tasks.iter().any(|task| comes(&task)) {
            return Err(format!("barrier '{}': no step of a task comes to it", barrier.name));
        }
        if barrier.threads > 0 {
            continue;
        }
        if let Some(task) = tasks.iter().filter(comes).find(|task| task.per_cpu || task.count == 0) {
            return Err(format!(
                "task '{}': how many threads of 'per_cpu' or 'spawn' come to barrier '{}' is not known: write [barrier.{}] with 'threads'",
                task.name, barrier.name, barrier.name
            ));
        }
        barrier.threads = tasks.iter().filter(comes).map(|task| task.count).sum();
    }
    Ok(())
}

/// Work for the kworker of a CPU is taken by no other thread, and by one wherever it is put.
fn kworkers_take(queues: &[QueueSpec], tasks: &[TaskPlan]) -> Result<(), String> {
    for (number, queue) in queues.iter().enumerate().filter(|(_, queue)| queue.via == RequestPath::Kworker) {
        let takes = |task: &&TaskPlan| task.steps.contains(&Op::Take(number));
        let is_kworker = |task: &TaskPlan| task.kthread && task.per_cpu && task.place.cpus.is_none();
        if let Some(task) = tasks.iter().filter(takes).find(|task| !is_kworker(task)) {
            return Err(format!(
                "task '{}' takes from queue '{}', which is for kworkers: it needs 'kthread = true', 'per_cpu = true' and no 'cpus'",
                task.name, queue.name
            ));
        }
    }
    Ok(())
}

/// A queue that nobody takes from, or nobody fills, would stop everything in silence.
fn all_is_used(queues: &[QueueSpec], tasks: &[TaskPlan]) -> Result<(), String> {
    let mut ends: BTreeMap<usize, (bool, bool)> = BTreeMap::new();
    for op in tasks.iter().flat_map(|task| &task.steps) {
        match op {
            Op::Put(queue) | Op::Call(queue) => ends.entry(*queue).or_default().0 = true,
            Op::Take(queue) => ends.entry(*queue).or_default().1 = true,
            _ => {}
        }
    }
    for (number, queue) in queues.iter().enumerate() {
        let (filled, taken) = ends.get(&number).copied().unwrap_or_default();
        if !taken {
            return Err(format!("queue '{}': no task takes from it ('take {}')", queue.name, queue.name));
        }
        if !filled && queue.arrivals.is_none() {
            return Err(format!(
                "queue '{}': nothing comes into it: a task has to 'put {}', or it needs 'arrivals'",
                queue.name, queue.name
            ));
        }
    }
    Ok(())
}
