//! The kernel's own dump of its runqueues (`/proc/sched_debug`, `debug/sched/debug`), of v5.x to v7.x.
//!
//! Must not know: what the state is used for.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Pid};

/// The dump as far as it could be read: what a kernel does not print is absent.
#[derive(Clone, Debug, Default)]
pub struct SchedDebug {
    /// A part per CPU.
    pub cpus: Vec<CpuDump>,
    /// The scheduler's clock when the dump began, ns.
    pub clock: Option<u64>,
}

/// One CPU.
#[derive(Clone, Debug, Default)]
pub struct CpuDump {
    /// Which one.
    pub cpu: Cpu,
    /// The task that it ran.
    pub curr: Option<Pid>,
    /// When its runqueue's clock was last updated, on the scheduler's clock, ns.
    pub clock: Option<u64>,
    /// The fair queues, of the root group and of others.
    pub queues: Vec<QueueDump>,
    /// All tasks whose CPU it is, asleep or not.
    pub tasks: Vec<TaskDump>,
}

/// One `cfs_rq`: what is printed of it, by name.
#[derive(Clone, Debug, Default)]
pub struct QueueDump {
    /// Path of its group; `/` is the root.
    pub path: String,
    fields: BTreeMap<String, String>,
}

/// One task's line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskDump {
    /// Its thread id.
    pub pid: Pid,
    /// Its name.
    pub comm: String,
    /// Whether it runs or waits.
    pub runnable: bool,
    /// Whether it runs.
    pub runs: bool,
    /// What it weighs on its CPU's one queue, scaled up; printed from v7.3.
    pub weight: Option<u64>,
    /// ns of virtual time.
    pub vruntime: u64,
    /// ns of virtual time; printed by EEVDF kernels.
    pub deadline: Option<u64>,
    /// ns; printed by EEVDF kernels.
    pub slice: Option<u64>,
    /// Whether the task has asked for that slice.
    pub own_slice: bool,
    /// How long it has run in all, ns; printed by EEVDF kernels.
    pub run_time: Option<u64>,
    /// Its priority, 120 for nice 0.
    pub prio: i32,
    /// Path of its group.
    pub group: String,
}

impl QueueDump {
    /// A field in milliseconds with six decimals, as ns; the kernel prints them signed.
    pub fn nanoseconds(&self, name: &str) -> Option<u64> {
        self.fields.get(name).and_then(|text| nanoseconds(text))
    }

    /// A field that is a whole number.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.fields.get(name)?.split(' ').next()?.parse().ok()
    }

    /// The zero of the queue's virtual time line: `min_vruntime`, in late kernels `zero_vruntime`.
    pub fn zero(&self) -> Option<u64> {
        self.nanoseconds("min_vruntime").or_else(|| self.nanoseconds("zero_vruntime"))
    }
}

impl SchedDebug {
    /// Reads a dump; lines of unknown shape are passed over.
    pub fn parse(text: &str) -> SchedDebug {
        let mut dump = SchedDebug::default();
        let mut part = DebugSection::Other;
        for line in text.lines() {
            if let Some(cpu) = header(line, "cpu#", ',') {
                dump.cpus.push(CpuDump { cpu: Cpu(cpu), ..CpuDump::default() });
                part = DebugSection::Cpu;
                continue;
            }
            if let Some((_, clock)) = line.strip_prefix("cpu_clk").and_then(|rest| rest.split_once(':')) {
                dump.clock = nanoseconds(clock.trim());
            }
            let Some(cpu) = dump.cpus.last_mut() else { continue };
            if header(line, "cfs_rq[", ']').is_some() {
                let path = line.split_once("]:").map_or("/", |(_, path)| path.trim());
                cpu.queues.push(QueueDump { path: path.to_string(), ..QueueDump::default() });
                part = DebugSection::Queue;
            } else if line.starts_with("runnable tasks:") {
                part = DebugSection::Tasks;
            } else if line.starts_with("rt_rq[") || line.starts_with("dl_rq[") {
                part = DebugSection::Other;
            } else {
                cpu.line(part, line);
            }
        }
        dump
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DebugSection {
    Cpu,
    Queue,
    Tasks,
    Other,
}

impl CpuDump {
    fn line(&mut self, part: DebugSection, line: &str) {
        let field = || {
            let (name, value) = line.trim_start().strip_prefix('.')?.split_once(':')?;
            Some((name.trim_end().to_string(), value.trim().to_string()))
        };
        match part {
            DebugSection::Cpu => match field() {
                Some((name, pid)) if name == "curr->pid" => self.curr = pid.parse().ok().map(Pid),
                Some((name, clock)) if name == "clock" => self.clock = nanoseconds(&clock),
                _ => {}
            },
            DebugSection::Queue => {
                if let (Some((name, value)), Some(queue)) = (field(), self.queues.last_mut()) {
                    queue.fields.insert(name, value);
                }
            }
            DebugSection::Tasks => self.tasks.extend(TaskDump::parse(line)),
            DebugSection::Other => {}
        }
    }
}

/// The number between `start` and `end` in a line that begins with `start`.
fn header(line: &str, start: &str, end: char) -> Option<u32> {
    let rest = line.strip_prefix(start)?;
    rest.split(end).next()?.trim().parse().ok()
}

impl TaskDump {
    /// `>R         labload   197      2749.182007 …`: mark, state, a name of 15 columns that may hold blanks, then words.
    fn parse(line: &str) -> Option<TaskDump> {
        const NAME: std::ops::Range<usize> = 3..18;
        let mark = line.as_bytes().first()?;
        let state = *line.as_bytes().get(1)?;
        if !matches!(mark, b' ' | b'>') || !state.is_ascii_alphabetic() {
            return None;
        }
        let comm = line.get(NAME)?.trim().to_string();
        let words = line.get(NAME.end..)?.split_whitespace().collect::<Vec<_>>();
        let pid = words.first()?.parse().ok().map(Pid)?;
        // From v7.3 a weight stands before the times: that on the CPU's one queue.
        let weight = words.get(1).and_then(|word| word.parse().ok());
        let times = usize::from(weight.is_some());
        let word = |index: usize| words.get(index + times).copied();
        let vruntime = nanoseconds(word(1)?)?;
        let has_deadline = matches!(word(2)?, "E" | "N");
        // An `S` after the deadline marks a slice of the task's own.
        let own_slice = has_deadline && word(4) == Some("S");
        let custom = usize::from(own_slice);
        let prio_at = if has_deadline { 7 + custom } else { 3 };
        let nanoseconds_at = |index: usize| word(index).filter(|_| has_deadline).and_then(nanoseconds);
        Some(TaskDump {
            pid,
            comm,
            runnable: state == b'R',
            runs: *mark == b'>',
            weight,
            vruntime,
            deadline: nanoseconds_at(3),
            slice: nanoseconds_at(4 + custom),
            own_slice,
            run_time: nanoseconds_at(5 + custom),
            prio: word(prio_at)?.parse().ok()?,
            group: words.last().filter(|word| word.starts_with('/')).map_or("/", |word| word).to_string(),
        })
    }
}

/// `-4.786040` ms as ns, modulo 2^64.
pub(super) fn nanoseconds(text: &str) -> Option<u64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, fraction) = digits.split_once('.')?;
    if fraction.len() != 6 {
        return None;
    }
    let value = whole.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(fraction.parse().ok()?)?;
    Some((sign * value) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CFS: &str = "\
cpu#1, 1000.012 MHz
  .nr_running                    : 1
  .curr->pid                     : 197
  .clock                         : 7731.431785

cfs_rq[1]:/a/b
  .min_vruntime                  : 2743.182010
  .nr_running                    : 1
  .load                          : 1048576

rt_rq[1]:
  .nr_running                    : 9

runnable tasks:
 S            task   PID         tree-key  switches  prio     wait-time             sum-exec        sum-sleep
-------------------------------------------------------------------------------------------------------------
 I          rcu gp     3       222.988177         2   100         0.000000         0.006436         0.000000 0 0 /
>R         labload   197      2749.182007         0   125         0.000000         0.000000         0.000000 0 0 /a/b
";

    #[test]
    fn queues_and_tasks_of_cfs_are_read() {
        let dump = SchedDebug::parse(CFS);
        let cpu = dump.cpus.iter().find(|dump| dump.cpu == Cpu(1)).expect("CPU 1");
        assert_eq!((cpu.curr, cpu.clock), (Some(Pid(197)), Some(7_731_431_785)));
        assert_eq!(cpu.queues.len(), 1);
        assert_eq!((cpu.queues[0].path.as_str(), cpu.queues[0].zero()), ("/a/b", Some(2_743_182_010)));
        assert_eq!(cpu.queues[0].number("nr_running"), Some(1), "the real-time queue's is another");
        assert_eq!(cpu.tasks.len(), 2);
        assert_eq!(cpu.tasks[0].comm, "rcu gp");
        let hog = &cpu.tasks[1];
        assert_eq!((hog.pid, hog.prio, hog.runnable), (Pid(197), 125, true));
        assert_eq!((hog.vruntime, hog.deadline), (2_749_182_007, None));
        assert_eq!(hog.group, "/a/b");
    }

    #[test]
    fn tasks_of_eevdf_have_deadlines() {
        let line = " S   idle_inject/1    25        -4.786040   E           0.697705           0.700000         0.004406         3      49         0.000000         0.000000         0.000000   0      0        /";
        let task = TaskDump::parse(line).expect("a task");
        assert_eq!((task.vruntime as i64, task.deadline, task.prio), (-4_786_040, Some(697_705), 49));
        assert_eq!((task.slice, task.own_slice, task.run_time), (Some(700_000), false, Some(4_406)));
        let custom = ">R            spin    77        12.000000   N          13.000000   S       0.300000         0.004406         3     120         0.000000         0.000000         0.000000   0      0        /x";
        let task = TaskDump::parse(custom).expect("a task");
        assert_eq!((task.slice, task.own_slice), (Some(300_000), true));
        assert_eq!((task.prio, task.group.as_str()), (120, "/x"));
        assert_eq!(task.weight, None);
        let weighed = ">R            init     1     524288       766.063360   E         766.694568           1.400000      2215.964227       385     120         0.319974     10801.065444        26.142323   0      0        /";
        let task = TaskDump::parse(weighed).expect("a task");
        assert_eq!((task.weight, task.vruntime, task.prio), (Some(524_288), 766_063_360, 120));
    }

    #[test]
    fn anything_is_read_without_harm() {
        for text in [
            "",
            "cpu#x, 1",
            "cfs_rq[0]:/",
            ">R",
            " S näme",
            "cpu#0\nrunnable tasks:\n S ü",
            "cpu#1,\n  .a : b",
        ] {
            let _ = SchedDebug::parse(text);
        }
        assert_eq!(nanoseconds("1.5"), None);
        assert_eq!(nanoseconds("99999999999999.000000"), None);
    }
}
