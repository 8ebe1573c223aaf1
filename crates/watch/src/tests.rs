//! Watches of small ranges: what they find, what they do not, and how often chance passes for a change.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_files::LabError;
use fairlab_lab::Kernel;
use fairlab_lab::cells::{CellBatch, Crew};
use serde_json::{Value, json};

use crate::answer::{FindingAnswer, WatchAnswer};
use crate::{Catalogue, Screening, WatchCase, WatchCrew, WatchEffort, WatchSpec, WatchedLine, watch};

fn case(name: &str, workload: &str, duration_ms: u64, metrics: &[&str]) -> WatchCase {
    WatchCase {
        name: name.to_string(),
        title: "a case".to_string(),
        source: "a test".to_string(),
        machine: "vm4".to_string(),
        workload: workload.split(' ').map(String::from).collect(),
        duration: Ns::from_ms(duration_ms),
        warmup: Some(Ns::ZERO),
        quick: None,
        metrics: metrics.iter().map(ToString::to_string).collect(),
        margin: 0.01,
    }
}

/// Workers of schbench that outlast a slice: where a woken task is placed decides how often they are switched.
fn schbench() -> WatchCase {
    let workload = "schbench -m 1 -t 10 -c 2000 -s 500";
    let case = case("schbench", workload, 200, &["wakeup_latency_ns_p99", "switches_per_work"]);
    WatchCase { machine: "laptop8".to_string(), warmup: None, ..case }
}

fn watched(line: WatchedLine, cases: Vec<WatchCase>, jobs: usize, first_seed: u64) -> WatchAnswer {
    let catalogue = Catalogue { cases, ..Catalogue::default() };
    let spec = WatchSpec { line, catalogue, screening: Screening::OneSeed, runs_max: 9, first_seed };
    let stop = AtomicBool::new(false);
    let effort =
        WatchEffort { jobs, crew: None, store: None, on_progress: &|_| (), tell: &|_| (), stop: &stop };
    watch(spec, effort).expect("an answer")
}

fn over(range: &str) -> WatchedLine {
    WatchedLine::parse(range, &AtomicBool::new(false)).expect("a range")
}

fn found(answer: &WatchAnswer) -> Vec<(&str, &str, &str)> {
    answer.confirmed().map(|finding| (finding.key().0, finding.key().2, finding.verdict.name())).collect()
}

#[test]
fn a_commit_that_changes_a_case_is_named() {
    let answer = watched(over("v6.5..v6.6"), vec![schbench()], 2, 1);
    assert!(
        found(&answer).contains(&("86bfbb7ce4f6", "switches_per_work", "better")),
        "{:?}",
        found(&answer)
    );
    let is_placement = |finding: &&FindingAnswer| finding.key().0 == "86bfbb7ce4f6" && finding.confirmed;
    let one = answer.findings.iter().find(is_placement).expect("a finding");
    let fresh = one.fresh.expect("fresh runs");
    assert!(fresh.runs >= 6 && fresh.ratio.is_some_and(|ratio| ratio < 0.99), "{fresh:?}");
    assert!(one.parting.is_some() && one.command.contains("fairlab compare schbench"), "{}", one.command);
    assert_eq!(answer.cases[0].line.len(), answer.kernels.len());
}

/// Runs batches here, until it fails.
struct Here {
    out: VecDeque<String>,
    left: usize,
}

impl Crew for Here {
    fn cpus(&self) -> usize {
        2
    }

    fn send(&mut self, batch: String) -> Result<(), LabError> {
        self.out.push_back(batch);
        Ok(())
    }

    fn records(&mut self, stop: &AtomicBool) -> Result<Option<Vec<Value>>, LabError> {
        if self.left == 0 {
            return Err(LabError::new("the crew is lost", "go on"));
        }
        self.left -= 1;
        let text = self.out.pop_front().expect("a batch is out");
        serde_json::from_str::<CellBatch>(&text).expect("a batch").run(stop)
    }

    fn cancel(&mut self) {
        self.out.clear();
    }
}

#[test]
fn a_crew_makes_what_threads_make() {
    let of = |left: Option<usize>| {
        let cases = vec![case("lacking", "pipe -l 5", 50, &["no_such_metric"]), schbench()];
        let catalogue = Catalogue { cases, ..Catalogue::default() };
        let line = over("v6.11,v6.12");
        let spec = WatchSpec { line, catalogue, screening: Screening::Thorough, runs_max: 9, first_seed: 1 };
        let crew = left.map(|left| WatchCrew::new(Box::new(Here { out: VecDeque::new(), left })));
        let stop = AtomicBool::new(false);
        let (on_progress, tell) = (|_| (), |_: &str| ());
        watch(
            spec,
            WatchEffort {
                jobs: 2,
                crew: crew.as_ref(),
                store: None,
                on_progress: &on_progress,
                tell: &tell,
                stop: &stop,
            },
        )
    };
    let here = of(None).expect("an answer");
    assert_eq!((here.skipped.len(), here.confirmed().count() > 0), (1, true), "{:?}", here.skipped);
    assert_eq!(json!(of(Some(usize::MAX)).expect("an answer")), json!(here));
    let lost = of(Some(4)).err().map(|error| error.problem);
    assert_eq!(lost.as_deref(), Some("the crew is lost"), "no case is to blame");
}

#[test]
fn nothing_is_named_where_nothing_changes() {
    // A single thread: no commit of these alters what it gets.
    let alone = case("alone", "jobs spin -n 1", 50, &["switches_per_s"]);
    let answer = watched(over("v6.5..v6.6"), vec![alone], 2, 1);
    assert_eq!((found(&answer), answer.partial), (Vec::new(), false));
}

/// What is found among the kernels that run differently is what is found where every kernel is measured.
#[test]
fn screening_loses_nothing() {
    let of = |screening: Screening| {
        let catalogue = Catalogue { cases: vec![schbench()], ..Catalogue::default() };
        let spec = WatchSpec { line: over("v6.5..v6.6"), catalogue, screening, runs_max: 9, first_seed: 1 };
        let stop = AtomicBool::new(false);
        let effort = WatchEffort {
            jobs: 2,
            crew: None,
            store: None,
            on_progress: &|_| (),
            tell: &|_| (),
            stop: &stop,
        };
        watch(spec, effort).expect("an answer")
    };
    let (screened, every) = (of(Screening::OneSeed), of(Screening::None));
    assert_eq!(found(&screened), found(&every));
    assert!(3 * screened.runs < 2 * every.runs, "{} of {}", screened.runs, every.runs);
}

#[test]
fn an_answer_does_not_depend_on_how_many_runs_go_on_at_once() {
    let of = |jobs: usize| watched(over("v6.5..86bfbb7ce4f6"), vec![schbench()], jobs, 7);
    assert_eq!(of(1), of(3));
}

/// Forty names of one kernel, each with chance of its own: no change is confirmed but by chance, in one family of twenty.
#[test]
fn one_kernel_under_many_names_does_not_change() {
    let kernel = "v6.6".parse::<Kernel>().expect("a kernel");
    let pipe =
        || case("pipe", "schbench -m 1 -t 3 -c 300 -s 300", 20, &["wakeup_latency_ns_p99", "switches_per_s"]);
    let families = 30;
    let any = (0..families).filter(|number| {
        let answer = watched(WatchedLine::of_one(&kernel, 40), vec![pipe()], 2, 1 + number * 1000);
        assert!(answer.questions > 60, "{}", answer.questions);
        answer.confirmed().next().is_some()
    });
    let any = any.count();
    assert!(any <= 4, "{any} of {families} families");
}

#[test]
fn what_cannot_be_run_is_left_out_and_named() {
    let wrong = WatchCase { machine: "nowhere".to_string(), ..schbench() };
    let unknown = case("unknown", "jobs spin -n 1", 20, &["wakeup_latency_ns_p98"]);
    let good = case("good", "jobs spin -n 1", 20, &["switches_per_s"]);
    let answer = watched(over("v6.5..86bfbb7ce4f6"), vec![wrong, unknown, good], 1, 1);
    let skipped = answer.skipped.iter().map(|one| one.case.as_str()).collect::<Vec<_>>();
    assert_eq!((skipped, answer.cases.len()), (vec!["schbench", "unknown"], 1));
    assert!(answer.skipped[1].why.contains("wakeup_latency_ns_p98"), "{:?}", answer.skipped[1]);
}

#[test]
fn a_range_without_kernels_is_refused_in_one_line() {
    let stop = AtomicBool::new(false);
    for (range, fragment) in
        [("v6.6", "no range"), ("v6.6..v6.5", "newer"), ("v6.6..v9.9", "v9.9"), ("..", "no range")]
    {
        let Err(error) = WatchedLine::parse(range, &stop) else { panic!("{range} is taken") };
        let told = error.to_string();
        assert!(told.contains(fragment) && !told.contains('\n'), "{range}: {told}");
    }
    assert!(over("v6.6..v6.6").why_empty().is_some_and(|why| why.contains("no change")));
}

#[test]
fn a_watch_that_is_stopped_tells_what_it_has() {
    let stop = AtomicBool::new(false);
    let catalogue = Catalogue {
        cases: vec![schbench(), case("next", "pipe -l 10", 20, &["throughput"])],
        ..Catalogue::default()
    };
    let spec = WatchSpec {
        line: over("v6.5..v6.6"),
        catalogue,
        screening: Screening::OneSeed,
        runs_max: 9,
        first_seed: 1,
    };
    let tell = |step: &str| {
        if step.contains("next") {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let effort =
        WatchEffort { jobs: 1, crew: None, store: None, on_progress: &|_| (), tell: &tell, stop: &stop };
    let answer = watch(spec, effort).expect("what there is");
    assert_eq!((answer.partial, answer.cases.len()), (true, 1));
}
