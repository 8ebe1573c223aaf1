//! Small traces, with a part chosen.

use fairlab_event::{Ns, Pid, Sink, System};

use super::*;
use crate::explain::{Explain, ExplainOptions};
use crate::latency::{Latency, LatencyOptions};
use crate::metrics::Metrics;
use crate::summary::{SummaryOptions, TraceSummary};
use crate::testbed;

/// `web-1` waits 40 us from 10 to 50, 30 us from 60 to 90 and 5 us from 95 to 100; `db` waits 15 us until 65.
const STORY: &str = "
    a-9 0 d..2. 5 switch swapper/0:0 R ==> a:9
    a-9 0 d..2. 10 waking web-1:7 on 0
    a-9 0 d..2. 10 wakeup web-1:7 on 0
    a-9 0 d..2. 50 switch a:9 R ==> web-1:7
    web-1-7 0 d..2. 55 switch web-1:7 S ==> db:8
    x-3 1 d..2. 60 waking web-1:7 on 0
    x-3 1 d..2. 60 wakeup web-1:7 on 0
    db-8 0 d..2. 90 switch db:8 S ==> web-1:7
    web-1-7 0 d..2. 95 switch web-1:7 R+ ==> a:9
    a-9 0 d..2. 100 switch a:9 S ==> web-1:7
    web-1-7 0 d..2. 120 switch web-1:7 S ==> swapper/0:0";

fn chosen(whose: &[&str], time: &str) -> TraceSelector {
    let whose = whose.iter().map(|name| TaskSelector::parse(name)).collect();
    TraceSelector {
        whose,
        time: if time.is_empty() { TimeRange::default() } else { time.parse().expect("a stretch") },
    }
}

fn waits(chosen: TraceSelector) -> (u64, u64) {
    let mut latency = Latency::new(LatencyOptions::default()).of(chosen.clone());
    testbed::feed(STORY, &mut latency);
    let mut summary = TraceSummary::new(SummaryOptions::default()).of(chosen.clone());
    testbed::feed(STORY, &mut summary);
    let mut explain = Explain::new(ExplainOptions { chosen, worst: 9 });
    testbed::feed(STORY, &mut explain);
    let table = latency.finish().expect("switches");
    let report = summary.finish().expect("switches");
    let explanation = explain.finish().expect("switches");
    let told = explanation.stories.iter().map(|story| story.length().0).sum::<u64>();
    let (wakeups, preemptions) = (&report.all.wakeups, &report.all.preemptions);
    let (count, total) = (wakeups.total() + preemptions.total(), wakeups.sum() + preemptions.sum());
    assert_eq!((explanation.measured, told), (count, total));
    let rows = table.rows.iter().filter(|row| row.total_delay > Ns::ZERO);
    assert_eq!(rows.map(|row| row.total_delay.0).sum::<u64>(), told);
    (count, told / 1_000)
}

#[test]
fn what_ends_in_a_stretch_counts_whole() {
    assert_eq!(waits(chosen(&["web"], "")), (3, 75));
    assert_eq!(waits(chosen(&["web"], "20us..90us")), (2, 70), "the first began before");
    assert_eq!(waits(chosen(&["web"], "91us..")), (1, 5));
    assert_eq!(waits(chosen(&["7"], "..60us")), (1, 40));
    assert_eq!(waits(chosen(&["a"], "")), (1, 45), "preempted at 50, back at 95");
}

#[test]
fn of_what_lasts_the_part_in_the_stretch_counts() {
    let mut summary = TraceSummary::new(SummaryOptions::default()).of(chosen(&[], "40us..92us"));
    testbed::feed(STORY, &mut summary);
    let report = summary.finish().expect("switches");
    let ran =
        |comm: &str| report.tasks.iter().find(|task| task.comm == Comm::from(comm)).map(|task| task.run);
    assert_eq!(
        (ran("a"), ran("web-1"), ran("db")),
        (Some(Ns::from_us(10)), Some(Ns::from_us(7)), Some(Ns::from_us(35)))
    );
    assert_eq!((report.start, report.end), (Ns::from_us(40), Ns::from_us(92)));
    assert_eq!(report.cpus[0].observed, Ns::from_us(52));
    let mut metrics =
        Metrics::new(2, Ns::from_us(5)).recorded().within("40us..92us".parse().expect("a stretch"));
    testbed::feed(STORY, &mut metrics);
    let counts = metrics.into_counts(Ns::from_us(120));
    assert_eq!((counts.observed_ns, counts.switches), (52_000, 3));
    assert_eq!((counts.wakeup_latency.total(), counts.wakeup_latency.max()), (2, Some(40_000)));
}

fn refusal(chosen: TraceSelector) -> String {
    let mut latency = Latency::new(LatencyOptions::default()).of(chosen);
    testbed::feed(STORY, &mut latency);
    let NothingChosen { problem, hint } = latency.check().expect_err("nothing");
    format!("{problem}; {hint}")
}

#[test]
fn what_is_not_there_is_said_with_what_looks_alike() {
    assert!(refusal(chosen(&["wep"], "")).starts_with("no task is called 'wep'; closest are web"));
    assert_eq!(refusal(chosen(&["web", "4711"], "")).split(';').next(), Some("no task has the id 4711"));
    assert_eq!(refusal(chosen(&["/db"], "")), "no task is in a group /db; the trace tells no groups");
    assert_eq!(
        refusal(chosen(&[], "5s..6s")),
        "no event lies in 5s..6s; the trace goes from 0.000005s to 0.00012s"
    );
    assert!(refusal(chosen(&["db"], "100us..")).starts_with("nothing happens to db in 0.0001s.."));
}

#[test]
fn groups_hold_the_tasks_of_groups_below_and_their_children() {
    let mut choosing = SelectorState::new(chosen(&["/db"], ""));
    let system = System {
        groups: vec!["/db\t43\t100\tmax 100000\t-\t-\tcpu\t".to_string()],
        members: vec![(Pid(7), "/db/one".to_string()), (Pid(8), "/dbs".to_string())],
        ..System::default()
    };
    choosing.system(&system);
    assert!(choosing.means(Pid(7)) && !choosing.means(Pid(8)));
    let forked = EventKind::SchedProcessFork {
        comm: Comm::from("a"),
        pid: Pid(7),
        child_comm: Comm::from("a"),
        child_pid: Pid(12),
    };
    choosing.hear(&Event::new(Ns(5), fairlab_event::Cpu(0), forked));
    assert!(choosing.means(Pid(12)) && choosing.check().is_ok());
}

/// A trace of some of the tasks tells of them what the whole trace tells.
#[test]
fn what_is_kept_of_some_tasks_is_all_that_they_need() {
    #[derive(Default)]
    struct Both(Option<Latency>, u64);
    impl Sink for Both {
        fn event(&mut self, event: &Event<'_>) {
            self.1 += 1;
            if let Some(latency) = &mut self.0 {
                latency.event(event);
            }
        }
    }
    let latency = || Latency::new(LatencyOptions::default()).of(chosen(&["web"], ""));
    let mut kept = SelectedSink::new(chosen(&["web"], ""), Both(Some(latency()), 0));
    testbed::feed(STORY, &mut kept);
    let mut whole = latency();
    testbed::feed(STORY, &mut whole);
    let (kept_events, Both(of_kept, count)) = (kept.kept().expect("events"), kept.sink);
    assert_eq!(kept_events, count);
    let rows = of_kept.expect("a table").finish().expect("switches").rows;
    assert_eq!(rows, whole.finish().expect("switches").rows);
    let mut of_db = SelectedSink::new(chosen(&["db"], ""), Both::default());
    testbed::feed(STORY, &mut of_db);
    assert!(of_db.kept().is_ok_and(|count| count < 11), "wakeups of others are left out");
}
