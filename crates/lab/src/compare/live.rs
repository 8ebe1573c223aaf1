//! Runs of commands on this host, for a comparison: recorded one by one, the sides taking turns (A B B A).
//!
//! Must not know: how runs are compared.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::records::{RunRecord, RunSide, TraceCounting, TraceCounts, count_tasks};
use crate::record::{RecordOptions, record};
use crate::{LabError, Progress, host};
use fairlab_analysis::counts::RunCounts;
use fairlab_files::temporary::PrivateFolder;

/// A buffer of this size a CPU holds a second of a busy one, KiB.
const BUFFER_KB: u32 = 16_384;

/// Runs each command (by `sh -c`) so many times, and records the scheduler meanwhile. What drifts on the host in the
/// course of time meets all sides alike: they run in the order A B B A A B …. `counting` says what of a recording is counted. When `stop`
/// is set, what is finished by then is given, with how far that is.
///
/// # Errors
/// There is one command only, this host cannot be recorded, or a command fails.
pub fn live_sides(
    commands: &[String],
    runs: u64,
    counting: &TraceCounting,
    on_progress: &dyn Fn(Progress),
    stop: &AtomicBool,
) -> Result<(Vec<RunSide>, Option<Progress>), LabError> {
    if commands.len() < 2 {
        let hint = "give --live twice; the first is the baseline";
        return Err(LabError::new("a comparison needs two commands", hint));
    }
    let mut sides = commands
        .iter()
        .map(|name| RunSide { name: name.clone(), counts: Some(RunCounts::default()), ..RunSide::default() })
        .collect::<Vec<_>>();
    let order = in_turn_and_back(commands.len(), runs);
    let folder = PrivateFolder::create().map_err(|error| {
        LabError::new(
            format!("cannot make a folder for recordings: {error}"),
            "check $TMPDIR and its free space",
        )
    })?;
    let trace = folder.path().join("live.dat");
    for (done, &side) in order.iter().enumerate() {
        on_progress(Progress { done, total: order.len() });
        let Some(run) = live_run(&commands[side], &trace, counting, stop)? else {
            return Ok((sides, Some(Progress { done, total: order.len() })));
        };
        if let Some(counts) = &mut sides[side].counts {
            counts.merge(&run.counts);
        }
        sides[side].records.push(RunRecord::from(run));
    }
    Ok((sides, None))
}

/// The order of the sides, by their number.
fn in_turn_and_back(sides: usize, runs: u64) -> Vec<usize> {
    let round = |round: u64| {
        (0..sides).map(move |side| if round.is_multiple_of(2) { side } else { sides - 1 - side })
    };
    (0..runs).flat_map(round).collect()
}

fn live_run(
    command: &str,
    trace: &Path,
    counting: &TraceCounting,
    stop: &AtomicBool,
) -> Result<Option<TraceCounts>, LabError> {
    let topology = host::topology_lines();
    let options = RecordOptions { buffer_kb: BUFFER_KB, topology, ..RecordOptions::new(trace) };
    let recorded = record(&options, &["sh", "-c", command].map(String::from), stop)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    if recorded.dropped > 0 {
        return Err(LabError::new(
            format!("'{command}': {} events were dropped for want of room", recorded.dropped),
            "run something shorter or less busy",
        ));
    }
    if recorded.code() != 0 {
        return Err(LabError::new(
            format!("'{command}' ended with status {}", recorded.code()),
            "compare commands that succeed",
        ));
    }
    count_tasks(trace, counting.clone()).map(Some)
}

#[cfg(test)]
mod tests {
    use fairlab_analysis::by_name::NamesWanted;
    use fairlab_analysis::task_selector::TaskSelector;

    use super::*;
    use crate::record;

    #[test]
    fn sides_run_in_turn_and_back_again() {
        assert_eq!(in_turn_and_back(2, 4), [0, 1, 1, 0, 0, 1, 1, 0]);
        assert_eq!(in_turn_and_back(3, 2), [0, 1, 2, 2, 1, 0]);
    }

    #[test]
    fn commands_are_run_and_recorded_where_that_is_allowed() {
        let stop = AtomicBool::new(false);
        let commands = ["sleep 0.01", "sleep 0.02"].map(String::from);
        let by_name = NamesWanted { asked: vec![TaskSelector::parse("sleep")], ..NamesWanted::all() };
        let counting = TraceCounting { by_name, ..TraceCounting::default() };
        let outcome = live_sides(&commands, 2, &counting, &|_| {}, &stop);
        if record::check().is_err() {
            let error = outcome.expect_err("this user may not");
            assert!(error.hint.contains("root") || error.hint.contains("allowed"), "{error}");
            return;
        }
        let (sides, partial) = outcome.expect("recordings");
        assert_eq!(partial, None);
        assert!(sides.iter().all(|side| side.records.len() == 2), "{sides:?}");
        assert!(sides[1].records[0].metric("switches_per_s").is_some_and(|rate| rate > 1.0));
        let metrics = &sides[1].records[0].metrics;
        assert!(metrics.iter().any(|(name, _)| name.starts_with("sleep ")), "{metrics:?}");
        let error =
            live_sides(&["false"; 2].map(String::from), 1, &counting, &|_| {}, &stop).expect_err("it fails");
        assert_eq!(error.problem, "'false' ended with status 1");
    }
}
