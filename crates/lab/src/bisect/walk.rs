//! The walk from one kernel to the other: some kernels on the way first, then halves.
//!
//! Must not know: how a kernel is judged.

use fairlab_analysis::statistics::{Better, Verdict, paired};
use fairlab_kernel::Generation;
use fairlab_kernel::generation::{Release, Step};

use super::answer::{Bisection, Crossing, State};
use super::judge::{Yardstick, differ, judge, values};
use super::{BisectSpec, Question};
use crate::trials::{Halt, Trials};
use crate::way::Way;
use crate::{ComparisonRow, LabError, Pairing};

/// Kernels on the way that are judged before halving begins.
const SURVEYED: usize = 6;

/// Runs by which an effect is measured in the end.
const EFFECT_RUNS: usize = 10;

/// A walk under way.
struct Walk<'t, 'e> {
    spec: &'t BisectSpec,
    trials: &'t mut Trials<'e>,
    way: Way,
    /// Whether the walk begins at the good kernel.
    begins_good: bool,
    /// What each judgement may be wrong by.
    error_each: f64,
    found: Bisection,
}

/// Finds where a metric or a claim changes between two kernels.
///
/// # Errors
/// A run fails, or the metric is none.
pub fn bisect(spec: &BisectSpec, trials: &mut Trials<'_>) -> Result<Bisection, LabError> {
    let forward = spec.good.steps_to(&spec.bad);
    let removed = forward.iter().filter(|step| matches!(step, Step::Change { added: false, .. })).count();
    let added = forward.iter().filter(|step| matches!(step, Step::Change { added: true, .. })).count();
    // History goes forward: from the older kernel, the one that lacks more changes.
    let begins_good = added >= removed;
    let (from, to) = if begins_good { (&spec.good, &spec.bad) } else { (&spec.bad, &spec.good) };
    let way = Way::new(from, to);
    // Both ends, the survey, and twice the halving: there may be two crossings.
    let judgements = 4 + SURVEYED + 2 * (way.end().max(2).ilog2() as usize + 1);
    let found = Bisection {
        from: from.name().to_string(),
        to: to.name().to_string(),
        metric: spec.question.metric().to_string(),
        changes: way.end(),
        steps: Vec::new(),
        crossings: Vec::new(),
        error: 0.0,
        runs: 0,
        notices: Vec::new(),
        stopped: false,
    };
    let error_each = spec.error / judgements as f64;
    let mut walk = Walk { spec, trials, way, begins_good, error_each, found };
    match walk.go() {
        Ok(()) => {}
        Err(Halt::Stopped) => walk.found.stopped = true,
        Err(Halt::Failed(error)) => return Err(error),
    }
    // The two ends are compared before they are judged.
    walk.found.error = walk.error_each * (walk.found.steps.len() + 2) as f64;
    walk.found.runs = walk.trials.made();
    Ok(walk.found)
}

impl Walk<'_, '_> {
    fn go(&mut self) -> Result<(), Halt> {
        if self.way.end() == 0 {
            self.found.notices.push("no change of the model lies between the two kernels".to_string());
            return Ok(());
        }
        let ends = [0, self.way.end()];
        let positions =
            ends[..1].iter().copied().chain(surveyed(&self.way)).chain([ends[1]]).collect::<Vec<_>>();
        let Some(yardstick) = self.yardstick(&positions)? else { return Ok(()) };
        let mut judged = Vec::new();
        for position in positions {
            let Some(state) = self.judge(position, &yardstick)? else { continue };
            judged.push((position, state));
        }
        judged.retain(|(_, state)| *state != State::Undecided);
        for pair in judged.windows(2) {
            let [(low, before), (high, after)] = [pair[0], pair[1]];
            if before != after {
                self.halve(low, high, after, &yardstick)?;
            }
        }
        self.remark(&judged);
        Ok(())
    }

    /// How kernels are told apart. A metric that is alike at both ends may be different between: then the kernel that
    /// stands out most is the bad one.
    fn yardstick(&mut self, positions: &[usize]) -> Result<Option<Yardstick>, Halt> {
        let Question::Metric(metric) = &self.spec.question else {
            return Ok(Yardstick::between(&self.spec.question, &[], &[]));
        };
        let (good, bad) = (self.spec.good.clone(), self.spec.bad.clone());
        let granted = (self.error_each, self.spec.runs_max);
        let mut other = bad.clone();
        if differ(self.trials, (&good, &bad), metric, granted)? != Some(true) {
            let between =
                positions.iter().filter_map(|&position| self.way.kernel(position)).collect::<Vec<_>>();
            if self.trials.ensure(&between, 4)?.0 {
                return Err(Halt::Stopped);
            }
            let mut most: Option<(f64, Generation)> = None;
            for kernel in between {
                let (base, new) =
                    (values(self.trials, &good, metric)?, values(self.trials, &kernel, metric)?);
                let shared = base.len().min(new.len());
                let ratio = paired(&base[..shared], &new[..shared]).ratio.unwrap_or(1.0).ln().abs();
                if most.as_ref().is_none_or(|(greatest, _)| ratio > *greatest) {
                    most = Some((ratio, kernel));
                }
            }
            let Some((_, kernel)) = most else { return Ok(None) };
            if differ(self.trials, (&good, &kernel), metric, granted)? != Some(true) {
                let (good, bad) = (good.name(), bad.name());
                let runs = self.spec.runs_max;
                let notice = format!(
                    "no difference in {metric} was seen between {good}, {bad} and kernels between them in up to {runs} runs each"
                );
                self.found.notices.push(notice);
                return Ok(None);
            }
            let (good, bad) = (good.name(), bad.name());
            self.found.notices.push(format!("{metric} is alike on {good} and {bad}, but not between them"));
            other = kernel;
        }
        let (good, other) = (values(self.trials, &good, metric)?, values(self.trials, &other, metric)?);
        Ok(Yardstick::between(&self.spec.question, &good, &other))
    }

    /// `None` where there is no kernel at that position.
    fn judge(&mut self, position: usize, yardstick: &Yardstick) -> Result<Option<State>, Halt> {
        let Some(kernel) = self.way.kernel(position) else { return Ok(None) };
        let judged = judge(self.trials, &kernel, yardstick, (self.error_each, self.spec.runs_max))?;
        let state = judged.state;
        self.found.steps.push(judged);
        Ok(Some(state))
    }

    /// Between `low` and `high` the state becomes `becomes`.
    fn halve(
        &mut self,
        mut low: usize,
        mut high: usize,
        becomes: State,
        yardstick: &Yardstick,
    ) -> Result<(), Halt> {
        'narrow: while high - low > 1 {
            let middle = usize::midpoint(low, high);
            // A kernel that cannot be judged is stepped over, the nearest first.
            let mut near = (low + 1..high).collect::<Vec<_>>();
            near.sort_by_key(|&position| position.abs_diff(middle));
            for position in near {
                match self.judge(position, yardstick)? {
                    Some(state) if state == becomes => high = position,
                    Some(State::Good | State::Bad) => low = position,
                    Some(State::Undecided) | None => continue,
                }
                continue 'narrow;
            }
            break;
        }
        let crossing = self.crossing(low, high, becomes)?;
        self.found.crossings.extend(crossing);
        Ok(())
    }

    fn crossing(&mut self, low: usize, high: usize, becomes: State) -> Result<Option<Crossing>, Halt> {
        let (Some(before), Some(after)) = (self.way.kernel(low), self.way.kernel(high)) else {
            return Ok(None);
        };
        let runs = EFFECT_RUNS.min(self.spec.runs_max);
        if self.trials.ensure(&[before.clone(), after.clone()], runs)?.0 {
            return Err(Halt::Stopped);
        }
        let metric = self.spec.question.metric();
        let (base, new) = (values(self.trials, &before, metric)?, values(self.trials, &after, metric)?);
        let shared = base.len().min(new.len());
        let effect = effect(metric, after.name(), base[..shared].to_vec(), new[..shared].to_vec());
        let steps = (low + 1..=high).filter_map(|position| self.way.step(position)).collect::<Vec<_>>();
        let first_with = steps.last().and_then(|step| step.change()?.release);
        let share = self.share(&effect)?;
        Ok(Some(Crossing {
            first_with,
            last_without: first_with.and_then(release_before),
            command: self.spec.setting.compare_command(before.name(), after.name(), shared),
            before: before.name().to_string(),
            after: after.name().to_string(),
            steps,
            becomes,
            effect,
            share,
        }))
    }

    /// The effect's part in the difference between both ends.
    fn share(&mut self, effect: &ComparisonRow) -> Result<Option<f64>, Halt> {
        let metric = self.spec.question.metric();
        let (from, to) = (self.way.from.clone(), self.way.kernel(self.way.end()));
        let Some(to) = to else { return Ok(None) };
        let runs = effect.values.len();
        if self.trials.ensure(&[from.clone(), to.clone()], runs)?.0 {
            return Err(Halt::Stopped);
        }
        let (from, to) = (values(self.trials, &from, metric)?, values(self.trials, &to, metric)?);
        let whole = paired(&from[..runs], &to[..runs]);
        let real = whole.p.is_some_and(|p| p <= 0.05);
        let logs = whole.ratio.filter(|_| real).zip(effect.estimate.ratio);
        Ok(logs.map(|(whole, own)| own.ln() / whole.ln()).filter(|share| share.is_finite()))
    }

    fn remark(&mut self, judged: &[(usize, State)]) {
        let expected = if self.begins_good { [State::Good, State::Bad] } else { [State::Bad, State::Good] };
        let states = [judged.first(), judged.last()].map(|end| end.map(|(_, state)| *state));
        let notices = &mut self.found.notices;
        if self.found.crossings.len() > 1 {
            let count = self.found.crossings.len();
            notices.push(format!(
                "not monotone: {count} changes of state lie between the kernels, each is shown"
            ));
        } else if self.found.crossings.is_empty() {
            let state = states[0].map_or("undecided", State::name);
            notices.push(format!("nothing to find: every kernel that was judged is {state}"));
        } else if states != expected.map(Some) {
            notices.push("the ends are not as they were called".to_string());
        }
        if self.trials.are_seedless(&self.way.from) {
            notices.push(
                "runs do not depend on their seed here: the error holds for this one course of events"
                    .to_string(),
            );
        }
        let undecided = self.found.steps.iter().filter(|step| step.state == State::Undecided).count();
        if undecided > 0 {
            let runs = self.spec.runs_max;
            notices.push(format!(
                "{undecided} kernels stayed undecided after {runs} runs and were stepped over"
            ));
        }
        for crossing in &self.found.crossings {
            if crossing.share.is_some_and(|share| (0.0..0.8).contains(&share))
                && self.found.crossings.len() == 1
            {
                notices.push(
                    "this change makes a part of the difference only: compare --attribute shows the others"
                        .to_string(),
                );
            }
        }
    }
}

/// Positions that are judged first: where releases end, and evenly spread.
fn surveyed(way: &Way) -> Vec<usize> {
    let end = way.end();
    let release = |position: usize| way.step(position).and_then(|step| step.change()?.release);
    let mut ends = (1..end).filter(|&at| release(at) != release(at + 1)).collect::<Vec<_>>();
    if ends.len() < 2 {
        ends = (1..end).collect();
    }
    let count = ends.len().min(SURVEYED);
    let mut chosen =
        (0..count).map(|index| ends[(2 * index + 1) * ends.len() / (2 * count)]).collect::<Vec<_>>();
    chosen.dedup();
    chosen
}

fn release_before(release: Release) -> Option<Release> {
    Generation::releases().into_iter().take_while(|&earlier| earlier < release).last()
}

fn effect(metric: &str, kernel: &str, baseline: Vec<f64>, values: Vec<f64>) -> ComparisonRow {
    ComparisonRow {
        name: metric.to_string(),
        kernel: kernel.to_string(),
        estimate: paired(&baseline, &values),
        baseline,
        values,
        pairing: Pairing::Paired,
        better: Better::of_metric(metric),
        q: None,
        verdict: Verdict::Undecided,
        more: None,
        baseline_modes: None,
        modes: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines;
    use crate::trials::Setting;
    use fairlab_event::Ns;
    use std::sync::atomic::AtomicBool;

    fn search(good: &str, bad: &str, question: &str, workload: &str, duration: Ns) -> Bisection {
        let spec = BisectSpec {
            good: good.parse().expect("a kernel"),
            bad: bad.parse().expect("a kernel"),
            question: Question::parse(question).expect("a question"),
            setting: Setting {
                machine: machines::find("laptop8").expect("a machine"),
                workload: workload.split(' ').map(String::from).collect(),
                duration,
                first_seed: 1,
            },
            error: 0.01,
            runs_max: 30,
        };
        let stop = AtomicBool::new(false);
        let setting = spec.setting.clone();
        bisect(&spec, &mut Trials::new(&setting, 2, &|_| {}, &stop)).expect("an answer")
    }

    const BUSY: &str = "schbench -m 2 -t 12 -c 20000 -s 1000";

    /// A switch among other settings: the way is not only the log.
    #[test]
    fn a_switch_is_found_and_so_is_its_way_back() {
        let slow = "v6.6+NO_WAKEUP_PREEMPTION,base_slice_ns=50000000";
        let found = search("v6.6", slow, "switches_per_s", BUSY, Ns::from_ms(500));
        assert_eq!(found.changes, 2);
        let crossing = found.first_bad().expect("found");
        assert!(
            ["NO_WAKEUP_PREEMPTION", "base_slice_ns=50000000"].contains(&crossing.steps[0].id().as_str())
        );
        assert!(crossing.command.starts_with("fairlab compare schbench -m 2"), "{}", crossing.command);
        assert_eq!(found.to_json()["schema"], "fairlab/bisect/1");
    }

    #[test]
    fn between_equals_there_is_nothing_to_find() {
        let found = search("v6.6", "v6.6", "p99", BUSY, Ns::from_ms(200));
        assert!(found.crossings.is_empty() && found.to_json()["first_bad"].is_null());
        assert_eq!(found.notices, ["no change of the model lies between the two kernels"]);
        let claim = search("v6.5", "v6.6", "p99 > 900s", BUSY, Ns::from_ms(200));
        assert!(claim.crossings.is_empty());
        assert_eq!(claim.notices, ["nothing to find: every kernel that was judged is good"]);
    }

    #[test]
    fn positions_are_surveyed_in_order() {
        let way = Way::new(&"v5.4".parse().expect("a kernel"), &"v5.10".parse().expect("a kernel"));
        let surveyed = surveyed(&way);
        assert!(surveyed.len() > 3 && surveyed.len() <= SURVEYED, "{surveyed:?}");
        assert!(
            surveyed.windows(2).all(|pair| pair[0] < pair[1]) && surveyed[surveyed.len() - 1] < way.end()
        );
        let short =
            Way::new(&"v6.6".parse().expect("a kernel"), &"v6.6+NO_PLACE_LAG".parse().expect("a kernel"));
        assert_eq!((short.end(), super::surveyed(&short)), (1, vec![]));
    }
}
