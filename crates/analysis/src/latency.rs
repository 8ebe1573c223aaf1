//! How long tasks waited for a CPU: the table of `perf sched latency`.
//!
//! A wait begins when a sleeping task is woken or a running task leaves its CPU runnable, and ends when the task is switched in.
//! Names, counts, sums and layout are those of perf 6.12, row by row; the layout may be that of perf 7.3. perf 6.1 reads no
//! `sched_waking`, and loses most waits of its own recordings.

mod answer;
mod sort;
mod table;
mod tasks;

use fairlab_event::{Event, EventKind, Ns, Pid, Sink, Switch, System, Tracepoint, Wakeup};

use crate::selector::{NothingChosen, SelectorState, TraceSelector};
use crate::tracker::{StayOnCpu, Tracker, TrackerChange, UnfinishedStay};
use crate::{Census, MissingEvents, Needs};
pub use answer::{LatencyAnswer, WaitedAnswer};
pub use sort::{SortKey, UnknownSortKey};
pub use table::{LatencyLayout, LatencyRow, LatencyTable, LatencyText};
use tasks::LatencyTasks;

/// How the table is to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyOptions {
    /// One row a task; otherwise one row a name.
    pub by_pid: bool,
    /// What the rows are sorted by, the first key first.
    pub sort: Vec<SortKey>,
    /// Counts the wait of a task that was woken while it still ran on its way to sleep, from its switch on, as all other answers
    /// do. perf takes it to sleep until it is switched in.
    pub woken_while_running: bool,
}

impl Default for LatencyOptions {
    /// perf's: one row a name, `avg,max,switch,runtime`.
    fn default() -> LatencyOptions {
        LatencyOptions { by_pid: false, sort: SortKey::DEFAULT.to_vec(), woken_while_running: false }
    }
}

/// Computes the table from events.
#[derive(Clone, Debug)]
pub struct Latency {
    options: LatencyOptions,
    tasks: LatencyTasks,
    wake_source: LatencyWakeEvent,
    /// Which task runs where, and where events are missing.
    tracker: Tracker,
    lost_events: u64,
    lost_chunks: u64,
    census: Census,
    choosing: SelectorState,
}

/// Which event says that a task is woken. Where a trace has `sched_waking`, that is it and `sched_wakeup` is passed over;
/// a trace may begin between the two.
#[derive(Clone, Debug)]
enum LatencyWakeEvent {
    /// Neither has come yet.
    Unknown,
    /// Only `sched_wakeup` has come, `count` times; kept beside is what is known if it is to be passed over.
    Doubtful { count: u32, without: Box<LatencyTasks> },
    /// `sched_wakeup`: the trace has no `sched_waking`.
    Wakeup,
    /// `sched_waking`.
    Waking,
}

/// So many `sched_wakeup` without a `sched_waking` mean that the trace has none.
const DOUBTFUL_MAX: u32 = 4096;

impl Latency {
    /// The events that the table is computed from.
    pub const NEEDS: Needs = Needs {
        analysis: "latency",
        required: &[Tracepoint::SchedSwitch],
        one_of: (
            &[Tracepoint::SchedWakeup, Tracepoint::SchedWaking],
            "only waits after a preemption or a yield are counted",
        ),
        useful: &[(Tracepoint::SchedStatRuntime, "run times are those between switches")],
    };

    /// Begins with an empty table.
    pub fn new(options: LatencyOptions) -> Latency {
        Latency {
            options,
            tasks: LatencyTasks::default(),
            wake_source: LatencyWakeEvent::Unknown,
            tracker: Tracker::default(),
            lost_events: 0,
            lost_chunks: 0,
            census: Census::default(),
            choosing: SelectorState::default(),
        }
    }

    /// The table of some of the tasks, or of a stretch of time.
    #[must_use]
    pub fn of(self, chosen: TraceSelector) -> Latency {
        Latency { choosing: SelectorState::new(chosen), ..self }
    }

    /// Whether the events so far hold what was chosen.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), NothingChosen> {
        self.choosing.check()
    }

    /// What to say where no wait was chosen.
    pub fn no_wait(&self) -> NothingChosen {
        self.choosing.none_of("wait")
    }

    /// The table of the events so far.
    ///
    /// # Errors
    /// There was no `sched_switch`.
    pub fn finish(mut self) -> Result<LatencyTable, MissingEvents> {
        let mut notices = Latency::NEEDS.check(&self.census)?;
        notices.extend(self.tracker.notices(self.census.total()));
        for stay in self.tracker.last_stays().collect::<Vec<_>>() {
            self.ran(&stay);
        }
        if !self.census.has(Tracepoint::SchedStatRuntime) {
            self.tasks.take_stays_for_runtime();
        }
        notices.extend(self.differing_waits());
        let (rows, crossed) = table::rows(&self.tasks, &self.options, self.choosing.is_all());
        Ok(LatencyTable {
            runtime: Ns(rows.iter().fold(0, |sum, row| row.runtime.0.saturating_add(sum))),
            count: rows.iter().map(|row| row.count).sum(),
            rows,
            wakeups: self.tasks.wakeups,
            unordered: self.tasks.unordered,
            switch_bugs: self.tracker.oddities().switch_gaps,
            lost_events: self.lost_events,
            lost_chunks: self.lost_chunks,
            crossed,
            records: self.census.total(),
            notices,
        })
    }

    /// How many waits perf, or explain, counts otherwise.
    fn differing_waits(&self) -> Option<String> {
        let waits = self.tasks.woken_while_running;
        let how = match self.options.woken_while_running {
            _ if waits == 0 => return None,
            true => "counted from the switch on, as explain does; perf counts none of them",
            false => "not counted, as in perf; explain counts them, and latency with --woken-while-running",
        };
        Some(format!("{waits} waits of tasks that were woken while they still ran are {how}"))
    }

    /// Does the same to all that is known, and to what is known if `sched_wakeup` is to be passed over.
    #[inline]
    fn each(&mut self, mut update: impl FnMut(&mut LatencyTasks)) {
        update(&mut self.tasks);
        if let LatencyWakeEvent::Doubtful { without, .. } = &mut self.wake_source {
            update(without);
        }
    }

    fn waking(&mut self, wakeup: &Wakeup, event: &Event<'_>) {
        match std::mem::replace(&mut self.wake_source, LatencyWakeEvent::Waking) {
            LatencyWakeEvent::Doubtful { without, .. } => self.tasks = *without,
            LatencyWakeEvent::Unknown | LatencyWakeEvent::Wakeup | LatencyWakeEvent::Waking => {}
        }
        let holes = self.holes_of(wakeup.pid);
        self.tasks.wake(wakeup.pid, wakeup.comm, event.time, holes);
    }

    fn wakeup(&mut self, wakeup: &Wakeup, event: &Event<'_>) {
        match &mut self.wake_source {
            LatencyWakeEvent::Waking => return,
            LatencyWakeEvent::Wakeup => {}
            LatencyWakeEvent::Unknown => {
                self.wake_source =
                    LatencyWakeEvent::Doubtful { count: 1, without: Box::new(self.tasks.clone()) };
            }
            LatencyWakeEvent::Doubtful { count: DOUBTFUL_MAX, .. } => {
                self.wake_source = LatencyWakeEvent::Wakeup;
            }
            LatencyWakeEvent::Doubtful { count, .. } => *count += 1,
        }
        let holes = self.holes_of(wakeup.pid);
        self.tasks.wake(wakeup.pid, wakeup.comm, event.time, holes);
    }

    /// How many holes a task has crossed so far.
    fn holes_of(&self, pid: Pid) -> u32 {
        self.tracker.index(pid).map_or(0, |task| self.tracker.holes_of(task))
    }

    /// The same of a task whose number may be at hand.
    #[inline]
    fn holes_of_either(&self, task: Option<u32>, pid: Pid) -> u32 {
        task.map_or_else(|| self.holes_of(pid), |task| self.tracker.holes_of(task))
    }

    fn switch(&mut self, switch: &Switch, event: &Event<'_>, change: &TrackerChange) {
        let now = event.time;
        let (left, entered) = match change {
            TrackerChange::Switched { left, entered, .. } => (left.as_ref(), entered.as_ref()),
            _ => (None, None),
        };
        // The idle task waits for nothing.
        if !switch.prev_pid.is_idle() {
            if left.is_some_and(|left| left.lost_wait) {
                let counts = self.choosing.counts(switch.prev_pid, now);
                self.each(|tasks| tasks.lose_wait(switch.prev_pid, counts));
            }
            let holes = self.holes_of_either(left.map(|left| left.task), switch.prev_pid);
            self.each(|tasks| {
                tasks.switch_out(switch.prev_pid, switch.prev_comm, switch.prev_state, now, holes);
            });
            if let Some(left) = left
                && self.tracker.task(left.task).wait.is_some_and(|wait| wait.woken_while_running)
            {
                let waits = self.options.woken_while_running;
                self.each(|tasks| tasks.woken_while_running(switch.prev_pid, waits));
            }
        }
        if !switch.next_pid.is_idle() {
            let holes = self.holes_of_either(entered.map(|entered| entered.task), switch.next_pid);
            let counts = self.choosing.counts(switch.next_pid, now);
            self.each(|tasks| tasks.switch_in(switch.next_pid, switch.next_comm, now, holes, counts));
        }
    }

    /// A task's stay on a CPU came to this, as far as switches tell.
    fn ran(&mut self, stay: &UnfinishedStay) {
        let pid = self.tracker.task(stay.task).pid;
        let time = self.choosing.time().part(stay.since, stay.since.saturating_add(stay.ran));
        if self.choosing.means(pid) {
            self.each(|tasks| tasks.ran(pid, time));
        }
    }

    /// Adds up the stays that an event ends.
    fn count_stays(&mut self, change: &TrackerChange) {
        for place in 0..self.tracker.vanished().len() {
            let stay = self.tracker.vanished()[place];
            self.ran(&stay);
        }
        if let TrackerChange::Switched { cpu, stay, left: Some(left), .. } = *change {
            let StayOnCpu { seen_since, .. } = stay;
            let whole =
                UnfinishedStay { task: left.task, cpu, number: 0, since: seen_since, ran: stay.known() };
            self.ran(&whole);
        }
    }

    /// A task is woken that has left its CPU, or has run, where events are missing.
    fn woken_after_hole(&mut self, change: &TrackerChange, wakeup: &Wakeup, now: Ns) {
        let (lost_wait, slept) = match *change {
            TrackerChange::Woken { retracted: true, .. } => {
                return self.each(|tasks| tasks.slept_on(wakeup.pid));
            }
            // perf counts from the switch on what left as R and had blocked.
            TrackerChange::Woken { lost_wait, seemed, .. } => (lost_wait, seemed.is_none()),
            // The trace has no sched_waking.
            TrackerChange::Queued { begins: true, .. } => (false, true),
            _ => return,
        };
        let holes = self.holes_of(wakeup.pid);
        if lost_wait || slept {
            // If it waited still, it has run unseen.
            let counts = self.choosing.counts(wakeup.pid, now);
            self.each(|tasks| tasks.lose_wait(wakeup.pid, counts));
        }
        if !lost_wait {
            self.each(|tasks| tasks.lose_sight(wakeup.pid, now, holes));
        }
    }
}

impl Sink for Latency {
    fn event(&mut self, event: &Event<'_>) {
        self.census.event(event);
        let heard = self.choosing.hear(event);
        if let Some(end) = heard.ends {
            self.tracker.end_at(end);
        }
        if !heard.is_followed {
            return;
        }
        let now = event.time;
        let change = self.tracker.event(event);
        self.count_stays(&change);
        match &event.kind {
            EventKind::SchedSwitch(switch) => self.switch(switch, event, &change),
            EventKind::SchedWaking(wakeup) => {
                self.woken_after_hole(&change, wakeup, now);
                self.waking(wakeup, event);
            }
            EventKind::SchedWakeup(wakeup) => {
                self.woken_after_hole(&change, wakeup, now);
                self.wakeup(wakeup, event);
            }
            EventKind::SchedWakeupNew(wakeup) => {
                let holes = self.holes_of(wakeup.pid);
                self.each(|tasks| tasks.wake(wakeup.pid, wakeup.comm, now, holes));
            }
            EventKind::SchedStatRuntime { comm, pid, runtime, .. } => {
                let holes = self.holes_of(*pid);
                let part = self.choosing.time().part(Ns(now.0.saturating_sub(runtime.0)), now);
                let counted = match self.choosing.is_all() {
                    true => *runtime,
                    false if self.choosing.counts(*pid, now) => part,
                    false => Ns::ZERO,
                };
                self.each(|tasks| tasks.account(*pid, *comm, counted, now, holes));
            }
            EventKind::TaskName { pid, comm, .. } => self.each(|tasks| tasks.name(*pid, *comm)),
            EventKind::TaskStart { pid, parent_pid, .. } => self.each(|tasks| tasks.start(*pid, *parent_pid)),
            EventKind::Lost { count } if self.choosing.time().has(now) => {
                self.lost_chunks += 1;
                self.lost_events = self.lost_events.saturating_add(count.unwrap_or(0));
            }
            _ => {}
        }
    }

    fn system(&mut self, system: &System) {
        self.census.system(system);
        self.choosing.system(system);
        self.tracker.system(system);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_event::{Comm, Cpu, Prio, TaskState};

    fn pid(task: &str) -> Pid {
        Pid(if task == "idle" { 0 } else { i32::from(task.as_bytes()[0]) })
    }

    fn kind<'t>(words: &[&str]) -> EventKind<'t> {
        let task = words[1];
        let wakeup = Wakeup { comm: task.into(), pid: pid(task), prio: Prio::DEFAULT, target_cpu: Cpu(0) };
        match words[0] {
            "switch" => EventKind::SchedSwitch(Switch {
                prev_comm: task.into(),
                prev_pid: pid(task),
                prev_prio: Prio::DEFAULT,
                prev_state: TaskState::parse(words[2].as_bytes()).expect("a state"),
                next_comm: words[3].into(),
                next_pid: pid(words[3]),
                next_prio: Prio::DEFAULT,
            }),
            "waking" => EventKind::SchedWaking(wakeup),
            "wakeup" => EventKind::SchedWakeup(wakeup),
            "new" => EventKind::SchedWakeupNew(wakeup),
            "ran" => EventKind::SchedStatRuntime {
                comm: task.into(),
                pid: pid(task),
                runtime: Ns::from_us(words[2].parse().expect("microseconds")),
                vruntime: None,
            },
            "name" => EventKind::TaskName { pid: pid(task), tgid: pid(task), comm: words[2].into() },
            "start" => EventKind::TaskStart { pid: pid(task), tgid: pid(task), parent_pid: pid(words[2]) },
            "lost" => EventKind::Lost { count: task.parse().ok() },
            other => panic!("{other}"),
        }
    }

    /// Plays lines of `MICROSECONDS CPU EVENT …`.
    fn play(story: &str, options: LatencyOptions) -> Result<LatencyTable, MissingEvents> {
        let mut latency = Latency::new(options);
        for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (time, cpu) = (words[0].parse().expect("a time"), words[1].parse().expect("a CPU"));
            latency.event(&Event::new(Ns::from_us(time), Cpu(cpu), kind(&words[2..])));
        }
        latency.finish()
    }

    /// Each task's row as `name:pid count total max start end`, times in microseconds.
    #[track_caller]
    fn check(story: &str, expected: &[&str]) -> LatencyTable {
        let options = LatencyOptions { by_pid: true, sort: vec![SortKey::Pid], ..LatencyOptions::default() };
        let table = play(story, options).expect("switches");
        let us = |time: Ns| time.0 / 1000;
        let row = |row: &LatencyRow| {
            let LatencyRow { comm, pid, count, .. } = row;
            let times = [row.total_delay, row.max_delay, row.max_start, row.max_end].map(us);
            format!("{comm}:{pid} {count} {} {} {} {}", times[0], times[1], times[2], times[3])
        };
        assert_eq!(table.rows.iter().map(row).collect::<Vec<_>>(), expected);
        table
    }

    #[test]
    fn a_wait_is_from_waking_to_running() {
        check(
            "10 0 switch A S idle
             30 1 waking A
             35 0 wakeup A
             70 0 switch idle R A",
            &["A:65 1 40 40 30 70"],
        );
    }

    #[test]
    fn leaving_the_cpu_runnable_begins_a_wait_whether_preempted_or_yielded() {
        check(
            "10 0 switch A R+ B
             20 0 switch B R A
             50 0 switch A S B",
            &["B:66 2 30 30 20 50", "A:65 1 10 10 10 20"],
        );
    }

    #[test]
    fn waking_a_task_that_runs_or_waits_begins_nothing() {
        let story = "10 0 switch idle R A
             20 1 waking A
             30 0 switch A R B
             40 1 waking A
             90 0 switch B S A
             95 0 switch A S idle
             96 0 waking A
             97 0 waking A
             99 0 switch idle R A";
        let table = check(story, &["B:66 1 0 0 0 0", "A:65 3 62 60 30 90"]);
        // The kernel wakes no task that waits since a wakeup: A has run in between.
        assert_eq!((table.wakeups, table.unordered, table.crossed), (2, 0, 1));
    }

    /// Its waker comes before it has left: it goes to sleep, and is queued at once.
    #[test]
    fn a_task_woken_while_it_still_ran_waits_by_option() {
        let story = "5 0 waking A
             6 0 wakeup A
             10 1 switch idle R A
             20 0 waking A
             30 1 switch A S B
             32 1 wakeup A
             52 1 switch B R+ A
             60 1 switch A S B";
        let table = check(story, &["B:66 2 8 8 52 60", "A:65 1 5 5 5 10"]);
        let notice = |table: &LatencyTable| {
            table
                .notices
                .iter()
                .find(|notice| notice.contains("while they still ran"))
                .cloned()
                .unwrap_or_default()
        };
        assert!(notice(&table).starts_with("1 waits") && notice(&table).contains("--woken-while-running"));
        let options = LatencyOptions { woken_while_running: true, ..LatencyOptions::default() };
        let table = play(story, options).expect("switches");
        let row = table.rows.iter().find(|row| row.pid == pid("A")).expect("a row");
        assert_eq!((row.count, row.total_delay, row.max_start), (2, Ns::from_us(27), Ns::from_us(30)));
        assert!(notice(&table).contains("perf counts none of them"), "{:?}", table.notices);
        // Up to v5.17 it leaves as R: perf counts that wait, too.
        let table = play(&story.replace("switch A S B", "switch A R B"), LatencyOptions::default());
        let table = table.expect("switches");
        assert_eq!((table.rows.iter().map(|row| row.count).sum::<u64>(), notice(&table)), (4, String::new()));
    }

    #[test]
    fn a_task_first_heard_of_when_switched_in_counts_a_wait_of_no_length() {
        check("10 0 switch A S B", &["B:66 1 0 0 0 0"]);
        check("10 0 new A\n30 0 switch idle R A", &["A:65 1 20 20 10 30"]);
        check("10 0 ran A 5\n30 0 switch idle R A", &["A:65 1 20 20 10 30"]);
    }

    #[test]
    fn sched_wakeup_counts_only_where_there_is_no_sched_waking() {
        let wakeup_only = "10 0 switch A S idle
             20 0 wakeup A
             50 0 switch idle R A";
        check(wakeup_only, &["A:65 1 30 30 20 50"]);
        // The trace began between the waking and the wakeup of A.
        let both = "20 0 wakeup A
             50 0 switch idle R A
             60 0 switch A S idle
             70 0 waking A
             75 0 wakeup A
             77 0 switch idle R A";
        let table = check(both, &["A:65 2 7 7 70 77"]);
        assert_eq!(table.wakeups, 1);
    }

    #[test]
    fn a_trace_of_many_sched_wakeup_is_not_kept_twice() {
        let mut latency = Latency::new(LatencyOptions::default());
        let feed = |latency: &mut Latency, time: u64, words: &[&str]| {
            latency.event(&Event::new(Ns(time), Cpu(0), kind(words)));
        };
        for round in 0..u64::from(DOUBTFUL_MAX) + 2 {
            feed(&mut latency, 10 * round, &["switch", "A", "S", "idle"]);
            feed(&mut latency, 10 * round + 1, &["wakeup", "A"]);
            feed(&mut latency, 10 * round + 4, &["switch", "idle", "R", "A"]);
        }
        assert!(matches!(latency.wake_source, LatencyWakeEvent::Wakeup));
        let table = latency.finish().expect("switches");
        assert_eq!((table.count, table.rows[0].total_delay), (4098, Ns(3 * 4098)));
    }

    #[test]
    fn events_out_of_order_make_no_wait() {
        // CPU 1's lines come late: A left it at 10 and was switched in elsewhere at 20.
        let story = "20 0 switch idle R A
             10 1 switch A R idle
             500 0 switch A S idle
             600 0 waking A
             590 1 switch idle R A
             610 0 switch idle R A";
        let table = check(story, &["A:65 1 0 0 0 0"]);
        assert!(table.unordered >= 2);
        let notice = "2 of 6 events are not in order of time: waits near them are missing or wrong";
        assert!(table.notices.iter().any(|text| text == notice), "{:?}", table.notices);
        let early = check("50 0 switch A S idle\n40 1 waking A\n60 0 switch idle R A", &[]);
        assert_eq!((early.wakeups, early.unordered), (1, 1));
    }

    #[test]
    fn names_come_from_the_trace_itself_if_it_knows_any() {
        check("10 0 switch A R+ B\n20 0 switch B S A", &["B:66 1 0 0 0 0", "A:65 1 10 10 10 20"]);
        let story = "0 0 name A sh
             5 0 start B A
             10 0 switch A R+ B
             20 0 switch B R+ C
             30 0 name B make";
        check(story, &[":67:67 1 0 0 0 0", "make:66 1 0 0 0 0"]);
    }

    #[test]
    fn an_id_used_again_is_another_task() {
        let story = "10 0 switch idle R B
             20 0 switch B X idle
             30 0 start B A
             40 0 new B
             90 0 switch idle R B";
        check(story, &[":66:66 1 50 50 40 90", ":66:66 1 0 0 0 0"]);
    }

    #[test]
    fn tasks_of_one_name_are_merged_under_the_highest_id() {
        let story = "10 0 switch A R+ B
             20 0 switch B R+ A
             50 0 switch A S B
             60 0 ran A 7
             60 0 ran B 8
             0 0 name A same
             0 0 name B same
             60 0 ran C 9
             0 0 name C same";
        let table = play(story, LatencyOptions::default()).expect("switches");
        let [row] = table.rows[..] else { panic!("{table}") };
        assert_eq!((row.comm, row.pid, row.merged_threads), (Comm::from("same"), Pid(67), 3));
        assert_eq!((row.count, row.total_delay, row.runtime), (3, Ns::from_us(40), Ns::from_us(24)));
        assert_eq!((row.max_start, row.max_end), (Ns::from_us(20), Ns::from_us(50)));
        assert!(
            row.to_string()
                .starts_with("  same:(3)              |      0.024 ms |        3 | avg:   0.013 ms |")
        );
    }

    #[test]
    fn a_wait_across_lost_events_is_counted_apart() {
        let story = "10 0 switch A S B
             20 1 waking A
             25 2 lost 3
             30 0 switch B R A
             35 0 switch A S B
             40 1 waking A
             50 0 switch B R A
             60 3 lost 1";
        let table = check(story, &["B:66 2 5 5 30 35", "A:65 1 10 10 40 50"]);
        assert_eq!((table.crossed, table.rows[1].crossed), (1, 1));
        assert!(
            table
                .to_string()
                .contains("\n  INFO: 1 waits are not measured: events are missing while they went on\n"),
            "{table}"
        );
    }

    #[test]
    fn gaps_and_losses_are_told_below_the_table() {
        let story = "10 0 switch A S B
             20 0 switch C S A
             30 0 lost 5
             40 0 waking C
             50 0 lost 2";
        let text = play(story, LatencyOptions::default()).expect("switches").to_string();
        let (_, below) = text.split_once("TOTAL").expect("a total");
        let lines: Vec<&str> = below.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "  INFO: 140.000% lost events (7 out of 5, in 2 chunks)",
                "  INFO: 100.000% context switch bugs (1 out of 1) (due to lost events?)",
                ""
            ]
        );
    }

    #[test]
    fn a_trace_without_switches_has_no_answer() {
        let missing = play("10 0 waking A\n10 0 new A", LatencyOptions::default()).expect_err("no switch");
        assert_eq!(
            missing.to_string(),
            "this trace has no sched_switch events; latency needs sched_switch and sched_wakeup or sched_waking; \
             the trace has: sched_wakeup_new (1), sched_waking (1)"
        );
    }

    #[test]
    fn garbage_cannot_make_it_panic_or_fill_memory() {
        let story = "0 0 switch B S A
             18446744073709551 4294967295 switch A S B
             0 4294967295 ran A 18446744073709551
             0 4294967295 ran A 18446744073709551
             0 1 switch B R A
             18446744073709551 1 waking B
             18446744073709551 1 switch A S B";
        let table = play(story, LatencyOptions::default()).expect("switches");
        assert_eq!(table.runtime, Ns::MAX);
        assert!(!table.to_string().is_empty());
    }
}
