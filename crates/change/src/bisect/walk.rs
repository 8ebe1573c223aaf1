//! The walk from one kernel to the other: some kernels on the way first, then halves, then what the commit makes of it all.
//!
//! Must not know: how a kernel is judged.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use fairlab_analysis::statistics::sequential::{SideOfLine, SignTest};
use fairlab_analysis::statistics::{
    FALSE_DISCOVERY_RATE, MARGIN, MetricVerdict, adjusted, is_one_course, mean, paired,
};
use fairlab_kernel::Generation;
use fairlab_kernel::generation::MainlineRelease;

use super::answer::{Bisection, Crossing, JudgedKernel, KernelState, SearchFinding, SkippedCommit};
use super::ends::{self, compare_ends, compared};
use super::judge::{KernelCriterion, judge, looks, scaled, values};
use super::{BisectQuestion, BisectSpec};
use crate::WayStep;
use crate::commit_path::{CommitPath, PathEnds};
use crate::left_out::left_out;
use crate::trials::{SearchHalt, SearchTrials};
use fairlab_lab::shell::quoted;
use fairlab_lab::{ComparisonRow, Kernel, LabError, RunSetting};

/// What it is called on the command line.
pub const NAME: &str = "bisect";

/// Kernels on the way that are judged before halving begins.
const SURVEYED: usize = 6;

/// Merges within merges that a search is ready for.
const MERGES: usize = 3;

/// Runs that measure an effect in the end.
const EFFECT_RUNS: usize = 10;

/// A walk under way.
struct BisectWalk<'t, 'e> {
    spec: &'t BisectSpec,
    trials: &'t mut SearchTrials<'e>,
    way: CommitPath,
    /// Whether the walk begins at the good kernel.
    begins_good: bool,
    /// What each judgement may be wrong by.
    error_each: f64,
    found: Bisection,
    /// Positions without a kernel that runs.
    skipped: BTreeSet<usize>,
    /// For each crossing the kernels on both sides of it.
    effects: Vec<(Kernel, Kernel)>,
}

/// Finds where a metric or a claim changes between two kernels.
///
/// # Errors
/// A run fails, or the metric is none.
pub fn bisect(spec: &BisectSpec, trials: &mut SearchTrials<'_>) -> Result<Bisection, LabError> {
    let PathEnds { way, begins_at_first: begins_good } =
        CommitPath::between(&spec.good, &spec.bad, NAME, trials.stop())?;
    let (from, to) = if begins_good { (&spec.good, &spec.bad) } else { (&spec.bad, &spec.good) };
    // Both ends and their difference, the survey, twice the halving, for there may be two crossings, and the share.
    // A merge is judged by tip and beginning of what it joins.
    let halvings = way.end().max(way.changes()).max(2).ilog2() as usize + 1;
    let merges = if way.may_lack_kernels() { MERGES } else { 0 };
    let judgements = 4 + SURVEYED + 2 * (halvings + merges);
    let found = Bisection {
        from: from.name().to_string(),
        to: to.name().to_string(),
        metric: spec.question.metric().to_string(),
        finding: SearchFinding::Undecided,
        ends: None,
        ends_command: None,
        changes: way.changes(),
        skipped: Vec::new(),
        steps: Vec::new(),
        crossings: Vec::new(),
        error: None,
        runs: 0,
        notices: Vec::new(),
        stopped: false,
    };
    let error_each = spec.error / judgements as f64;
    let mut walk = BisectWalk {
        spec,
        trials,
        way,
        begins_good,
        error_each,
        found,
        skipped: BTreeSet::new(),
        effects: Vec::new(),
    };
    match walk.go() {
        Ok(()) => {}
        Err(SearchHalt::Stopped) => walk.found.stopped = true,
        Err(SearchHalt::Failed(error)) => return Err(error),
    }
    if walk.found.finding == SearchFinding::Found {
        // Beside the kernels on the way, the ends were compared, and the share was judged.
        walk.found.error = Some(walk.error_each * (walk.found.steps.len() + 2) as f64);
    }
    walk.found.runs = walk.trials.made();
    Ok(walk.found)
}

impl BisectWalk<'_, '_> {
    fn go(&mut self) -> Result<(), SearchHalt> {
        let BisectSpec { good, bad, setting: RunSetting { machine, workload, .. }, .. } = self.spec;
        let (from, to) = if self.begins_good { (good, bad) } else { (bad, good) };
        let left_out = left_out(from, to, machine, workload);
        self.found.notices.extend(left_out.line(from.name(), to.name()));
        if self.way.end() == 0 {
            self.found.finding =
                if left_out.is_all { SearchFinding::NotModelled } else { SearchFinding::Nothing };
            self.found.notices.push(self.way.why_empty());
            return Ok(());
        }
        self.prepare_ends()?;
        let Some(yardstick) = self.yardstick()? else { return Ok(()) };
        let mut judged = vec![self.end_state(0, &yardstick)?];
        let surveyed = surveyed(&self.way);
        self.prepare(&surveyed)?;
        for position in surveyed {
            let Some(state) = self.judge(position, &yardstick)? else { continue };
            judged.push((position, state));
        }
        judged.push(self.end_state(self.way.end(), &yardstick)?);
        judged.retain(|(_, state)| matches!(state, KernelState::Good | KernelState::Bad));
        for pair in judged.windows(2) {
            let [(low, before), (high, after)] = [pair[0], pair[1]];
            if before != after {
                self.halve(low, high, after, &yardstick)?;
            }
        }
        self.found.finding = self.conclude(&yardstick)?;
        self.remark();
        Ok(())
    }

    /// Builds both ends. Without them there is nothing to search.
    fn prepare_ends(&mut self) -> Result<(), SearchHalt> {
        let ends = [self.spec.good.clone(), self.spec.bad.clone()];
        let made = self.trials.prepare(&ends).into_iter().collect::<Result<Vec<()>, LabError>>();
        made.map(drop).map_err(|error| self.stopped_or(error))
    }

    /// Builds kernels at these positions, and leaves those out that cannot be built.
    fn prepare(&mut self, positions: &[usize]) -> Result<(), SearchHalt> {
        let wanted = positions.iter().filter(|position| !self.skipped.contains(position));
        let (wanted, kernels): (Vec<usize>, Vec<Kernel>) =
            wanted.filter_map(|&position| Some((position, self.way.kernel(position)?))).unzip();
        for (position, made) in wanted.into_iter().zip(self.trials.prepare(&kernels)) {
            if let Err(error) = made {
                self.skip(position, error)?;
            }
        }
        Ok(())
    }

    /// An error of what was interrupted is no error.
    fn stopped_or(&self, error: LabError) -> SearchHalt {
        if self.trials.stop().load(Ordering::Relaxed) {
            SearchHalt::Stopped
        } else {
            SearchHalt::Failed(error)
        }
    }

    /// Leaves a position out, whose kernel cannot be built or does not run.
    fn skip(&mut self, position: usize, error: LabError) -> Result<(), SearchHalt> {
        let step =
            self.way.step(position).filter(|_| position != self.way.end() && self.way.may_lack_kernels());
        let (SearchHalt::Failed(error), Some(step)) = (self.stopped_or(error.clone()), step) else {
            return Err(self.stopped_or(error));
        };
        if self.skipped.insert(position) {
            self.found.skipped.push(SkippedCommit { step, why: error.problem });
        }
        Ok(())
    }

    /// How kernels are told apart, where the two ends give reason to search between them.
    fn yardstick(&mut self) -> Result<Option<KernelCriterion>, SearchHalt> {
        let (good, bad) = (self.spec.good.clone(), self.spec.bad.clone());
        let granted = (self.error_each, self.spec.runs_max);
        let BisectQuestion::Metric(metric) = &self.spec.question else { return self.claim_at_the_ends() };
        let mut row = None;
        let ends = compare_ends(self.trials, (&good, &bad), (metric, self.spec.margin), granted, &mut row);
        let verdict = row.as_ref().map(|row| row.verdict);
        self.tell_ends(row);
        match ends? {
            ends::EndsVerdict::Differ => {}
            ends::EndsVerdict::Over(finding) => {
                self.found.finding = finding;
                let why = self.over(finding);
                self.found.notices.extend(why);
                if verdict == Some(MetricVerdict::Equivalent) {
                    self.look_between(metric)?;
                }
                return Ok(None);
            }
        }
        let (good, bad) = (values(self.trials, &good, metric)?, values(self.trials, &bad, metric)?);
        Ok(KernelCriterion::between(&self.spec.question, &good, &bad))
    }

    fn tell_ends(&mut self, row: Option<ComparisonRow>) {
        let (good, bad) = (self.spec.good.name(), self.spec.bad.name());
        self.found.ends_command = row.as_ref().map(|row| self.command(good, bad, row.values.len()));
        self.found.ends = row;
    }

    /// The command that repeats a comparison of two kernels.
    fn command(&self, before: &str, after: &str, runs: usize) -> String {
        let (metric, margin) = (self.spec.question.metric(), self.spec.margin);
        let command = self.spec.setting.compare_command(before, after, runs);
        let margin = if margin == MARGIN { String::new() } else { format!(" --margin {margin}") };
        format!("{command} --metric {}{margin}", quoted(metric))
    }

    /// Why the search is over, where the comparison of the ends does not say it.
    fn over(&self, finding: SearchFinding) -> Option<String> {
        let (good, bad) = (self.spec.good.name(), self.spec.bad.name());
        let metric = self.spec.question.metric();
        let verdict = self.found.ends.as_ref().map(|ends| ends.verdict);
        match finding {
            SearchFinding::Nothing if verdict == Some(MetricVerdict::Better) => Some(format!(
                "{bad} is the better one in {metric}: what made it better, --good {bad} --bad {good} finds"
            )),
            SearchFinding::OneCourse => Some(format!(
                "runs never differ in {metric}: a little chance may give other values, and nothing follows from these"
            )),
            SearchFinding::Undecided if verdict.is_some_and(MetricVerdict::is_difference) => Some(format!(
                "a difference is there at 5 %, but it is not sure enough for a search that is wrong in {} % at most: give more --runs",
                self.spec.error * 100.0
            )),
            _ => None,
        }
    }

    /// The ends are alike; kernels between them may differ. The one that stands out most is named, not searched for.
    fn look_between(&mut self, metric: &str) -> Result<(), SearchHalt> {
        let mut positions = surveyed(&self.way);
        self.prepare(&positions)?;
        positions.retain(|position| !self.skipped.contains(position));
        let between = positions.iter().filter_map(|&position| self.way.kernel(position)).collect::<Vec<_>>();
        let Some(base) = self.way.kernel(0) else { return Ok(()) };
        let runs = EFFECT_RUNS.min(self.spec.runs_max);
        if self.trials.ensure(&[std::slice::from_ref(&base), &between[..]].concat(), runs)?.0 {
            return Err(SearchHalt::Stopped);
        }
        let rows =
            between.iter().map(|kernel| compared(self.trials, (&base, kernel), metric, self.spec.margin));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let family = adjusted(&rows.iter().map(|row| row.estimate.p).collect::<Vec<_>>());
        let real = rows
            .iter()
            .zip(family)
            .filter(|(row, q)| row.verdict.is_difference() && q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE));
        let size = |row: &ComparisonRow| row.estimate.ratio.map_or(0.0, |ratio| ratio.ln().abs());
        let most = real.map(|(row, _)| row).max_by(|one, other| size(one).total_cmp(&size(other)));
        if let Some(row) = most {
            let (from, to) = (&self.found.from, &self.found.to);
            let (good, bad) = match row.verdict {
                MetricVerdict::Better => (row.kernel.as_str(), base.name()),
                _ => (base.name(), row.kernel.as_str()),
            };
            self.found.notices.push(format!(
                "{metric} is alike on {from} and {to}, but not between them: {} is {}; --good {good} --bad {bad} finds why",
                row.kernel,
                row.verdict.words()
            ));
        }
        Ok(())
    }

    /// Whether a claim holds on the bad kernel and not on the good one.
    fn claim_at_the_ends(&mut self) -> Result<Option<KernelCriterion>, SearchHalt> {
        let Some(yardstick) = KernelCriterion::between(&self.spec.question, &[], &[]) else {
            return Ok(None);
        };
        let (good, bad) = (self.spec.good.clone(), self.spec.bad.clone());
        let granted = (self.error_each, self.spec.runs_max);
        let criterion = (&yardstick, [&good, &bad]);
        let one = judge(self.trials, &good, criterion, granted)?;
        let other = judge(self.trials, &bad, criterion, granted)?;
        let states = [one.state, other.state];
        self.found.steps.extend([one, other]);
        let ends = compared(self.trials, (&good, &bad), self.spec.question.metric(), self.spec.margin)?;
        self.tell_ends(Some(ends));
        self.found.finding = match states {
            [KernelState::Good, KernelState::Bad] => {
                self.found.steps.clear();
                return Ok(Some(yardstick));
            }
            _ if states.contains(&KernelState::OneCourse) => {
                self.found.notices.extend(self.over(SearchFinding::OneCourse));
                SearchFinding::OneCourse
            }
            _ if states.contains(&KernelState::Undecided) => SearchFinding::Undecided,
            [KernelState::Bad, KernelState::Good] => {
                self.found.notices.push(
                    "the ends are not as they were called: the claim holds on the good one".to_string(),
                );
                SearchFinding::Nothing
            }
            _ => SearchFinding::Nothing,
        };
        Ok(None)
    }

    /// What an end is, which is known by now.
    fn end_state(
        &mut self,
        position: usize,
        yardstick: &KernelCriterion,
    ) -> Result<(usize, KernelState), SearchHalt> {
        if matches!(yardstick, KernelCriterion::Claim(_)) {
            return Ok((position, self.judge(position, yardstick)?.unwrap_or(KernelState::Undecided)));
        }
        let at_good = (position == 0) == self.begins_good;
        let (kernel, state) =
            if at_good { (&self.spec.good, KernelState::Good) } else { (&self.spec.bad, KernelState::Bad) };
        let values = values(self.trials, kernel, self.spec.question.metric())?;
        let judged = JudgedKernel::of(kernel.name(), state, &values);
        self.keep(position, judged);
        Ok((position, state))
    }

    /// Keeps what a kernel is, with its place on the way.
    fn keep(&mut self, position: usize, judged: JudgedKernel) {
        let on_way = (position <= self.way.end()).then_some(position);
        let step = if position == 0 { None } else { self.way.step(position) };
        self.found.steps.push(JudgedKernel { position: on_way, step, ..judged });
    }

    /// `None` where there is no kernel at that position that runs.
    fn judge(
        &mut self,
        position: usize,
        yardstick: &KernelCriterion,
    ) -> Result<Option<KernelState>, SearchHalt> {
        self.prepare(&[position])?;
        let kernel = self.way.kernel(position).filter(|_| !self.skipped.contains(&position));
        let Some(kernel) = kernel else { return Ok(None) };
        let criterion = (yardstick, [&self.spec.good, &self.spec.bad]);
        match judge(self.trials, &kernel, criterion, (self.error_each, self.spec.runs_max)) {
            Ok(judged) => {
                let state = judged.state;
                self.keep(position, judged);
                Ok(Some(state))
            }
            Err(SearchHalt::Failed(error)) => self.skip(position, error).map(|()| None),
            Err(stopped) => Err(stopped),
        }
    }

    /// Between `low` and `high` the state becomes `becomes`.
    fn halve(
        &mut self,
        mut low: usize,
        mut high: usize,
        becomes: KernelState,
        yardstick: &KernelCriterion,
    ) -> Result<(), SearchHalt> {
        'narrow: while high - low > 1 {
            let middle = usize::midpoint(low, high);
            // A kernel that cannot be judged is stepped over, the nearest first.
            let mut near = (low + 1..high).collect::<Vec<_>>();
            near.sort_by_key(|&position| position.abs_diff(middle));
            for position in near {
                match self.judge(position, yardstick)? {
                    Some(state) if state == becomes => high = position,
                    Some(KernelState::Good | KernelState::Bad) => low = position,
                    Some(KernelState::Undecided | KernelState::OneCourse) | None => continue,
                }
                continue 'narrow;
            }
            break;
        }
        if high - low == 1
            && let Some((low, high)) = self.joined_by(high, becomes, yardstick)?
        {
            return self.halve(low, high, becomes, yardstick);
        }
        self.cross(low, high, becomes)
    }

    /// The line that a merge joins, if the change came by it: it began without, and has it at its tip.
    fn joined_by(
        &mut self,
        merge: usize,
        becomes: KernelState,
        yardstick: &KernelCriterion,
    ) -> Result<Option<(usize, usize)>, SearchHalt> {
        let lines = self.way.joined(merge, self.trials.stop()).map_err(|error| self.stopped_or(error))?;
        for (base, tip) in lines {
            if self.judge(tip, yardstick)? != Some(becomes) {
                continue;
            }
            match self.judge(base, yardstick)? {
                Some(state @ (KernelState::Good | KernelState::Bad)) if state != becomes => {
                    return Ok(Some((base, tip)));
                }
                _ => self.found.notices.push(format!(
                    "what {} merges had the change where it began, or that is not known: it is not searched",
                    self.way.step(merge).map_or_else(String::new, |step| step.id())
                )),
            }
        }
        Ok(None)
    }

    fn cross(&mut self, low: usize, high: usize, becomes: KernelState) -> Result<(), SearchHalt> {
        let (Some(before), Some(after)) = (self.before(low, high)?, self.way.kernel(high)) else {
            return Ok(());
        };
        let runs = EFFECT_RUNS.min(self.spec.runs_max);
        if self.trials.ensure(&[before.clone(), after.clone()], runs)?.0 {
            return Err(SearchHalt::Stopped);
        }
        let effect = compared(self.trials, (&before, &after), self.spec.question.metric(), self.spec.margin)?;
        let steps = (low + 1..=high).filter_map(|position| self.way.step(position)).collect::<Vec<_>>();
        let first_with = steps.last().and_then(WayStep::release);
        let share = self.share(&effect)?;
        self.found.crossings.push(Crossing {
            first_with,
            last_without: first_with.and_then(release_before),
            command: self.command(before.name(), after.name(), effect.values.len()),
            undecided_between: self.undecided_between(low, high),
            before: before.name().to_string(),
            after: after.name().to_string(),
            steps,
            becomes,
            effect,
            share,
        });
        self.effects.push((before, after));
        Ok(())
    }

    /// The kernel just before a step, or the last one that could be judged.
    fn before(&mut self, low: usize, high: usize) -> Result<Option<Kernel>, SearchHalt> {
        let judged = self.way.kernel(low);
        let Some(before) = self.way.just_before(low, high) else { return Ok(judged) };
        let made =
            self.trials.prepare(std::slice::from_ref(&before)).into_iter().collect::<Result<Vec<()>, _>>();
        match made.map_err(|error| self.stopped_or(error)) {
            Ok(_) => Ok(Some(before)),
            Err(SearchHalt::Failed(_)) => Ok(judged),
            Err(stopped) => Err(stopped),
        }
    }

    /// The effect's part in the difference between both ends.
    fn share(&mut self, effect: &ComparisonRow) -> Result<Option<f64>, SearchHalt> {
        let metric = self.spec.question.metric();
        let (Some(from), Some(to)) = (self.way.kernel(0), self.way.kernel(self.way.end())) else {
            return Ok(None);
        };
        let runs = effect.values.len();
        if self.trials.ensure(&[from.clone(), to.clone()], runs)?.0 {
            return Err(SearchHalt::Stopped);
        }
        let (from, to) = (values(self.trials, &from, metric)?, values(self.trials, &to, metric)?);
        let whole = paired(&from[..runs], &to[..runs]);
        let real = whole.p.is_some_and(|p| p <= 0.05);
        let logs = whole.ratio.filter(|_| real).zip(effect.estimate.ratio);
        Ok(logs.map(|(whole, own)| own.ln() / whole.ln()).filter(|share| share.is_finite()))
    }

    /// Whether a kernel strictly between two positions was judged, and could not be told apart from them.
    fn undecided_between(&self, low: usize, high: usize) -> bool {
        let between = (low + 1..high).filter_map(|position| self.way.kernel(position));
        let names = between.map(|kernel| kernel.name().to_string()).collect::<Vec<_>>();
        self.found
            .steps
            .iter()
            .any(|step| step.state == KernelState::Undecided && names.contains(&step.kernel))
    }

    /// What the crossings come to. One commit is named only where there is a single crossing, and its own step makes more than
    /// half of the whole difference for sure: then no other one can. Several are, where that is as sure. Otherwise it is told what
    /// is open.
    fn conclude(&mut self, yardstick: &KernelCriterion) -> Result<SearchFinding, SearchHalt> {
        let (crossings, runs) = (&self.found.crossings, self.spec.runs_max);
        if crossings.iter().any(|crossing| crossing.undecided_between) {
            let open = crossings.iter().filter(|crossing| crossing.undecided_between).map(|crossing| {
                format!(
                    "open: which of the {} commits from {} to {} it is; kernels between stayed undecided after {runs} runs",
                    crossing.steps.len(),
                    crossing.before,
                    crossing.after
                )
            });
            let open = open.collect::<Vec<_>>();
            self.found.notices.extend(open);
            return Ok(SearchFinding::Undecided);
        }
        let [crossing] = crossings.as_slice() else {
            let none = crossings.is_empty();
            return Ok(if none { SearchFinding::Undecided } else { SearchFinding::Several });
        };
        let named = crossing.steps.last().map_or_else(String::new, WayStep::id);
        let Some((before, after)) = self.effects.first().cloned() else {
            return Ok(SearchFinding::Undecided);
        };
        let KernelCriterion::Line { metric, floor, .. } = yardstick else {
            return Ok(SearchFinding::Found);
        };
        let most = self.makes_most((before, after), metric, *floor)?;
        Ok(match most {
            Some(true) => SearchFinding::Found,
            Some(false) => SearchFinding::Several,
            None => {
                self.found.notices.push(format!(
                    "open: whether {named} makes more than half of the difference; {runs} runs do not tell"
                ));
                SearchFinding::Undecided
            }
        })
    }

    /// Whether one step makes more than half of the whole difference, seed by seed; `None` where that is not sure.
    fn makes_most(
        &mut self,
        (before, after): (Kernel, Kernel),
        metric: &str,
        floor: Option<f64>,
    ) -> Result<Option<bool>, SearchHalt> {
        let (Some(from), Some(to)) = (self.way.kernel(0), self.way.kernel(self.way.end())) else {
            return Ok(None);
        };
        let four = [before, after, from, to];
        let mut test = SignTest::new(self.error_each);
        for runs in looks(self.spec.runs_max) {
            if self.trials.ensure(&four, runs)?.0 {
                return Err(SearchHalt::Stopped);
            }
            let values = four.iter().map(|kernel| Ok(scaled(&values(self.trials, kernel, metric)?, floor)));
            let values = values.collect::<Result<Vec<_>, LabError>>()?;
            let difference =
                |one: usize, other: usize| values[other].iter().zip(&values[one]).map(|(new, old)| new - old);
            let all = difference(2, 3).collect::<Vec<_>>();
            let sign = mean(&all).signum();
            let beyond = difference(0, 1).zip(&all).map(|(own, all)| sign * (own - all / 2.0));
            let beyond = beyond.collect::<Vec<_>>();
            let vary = values.iter().any(|values| !is_one_course(values));
            match if vary { test.look_at_pairs(&beyond) } else { test.look(&beyond) } {
                Some(side) => return Ok(Some(side == SideOfLine::Above)),
                None => continue,
            }
        }
        Ok(None)
    }

    fn remark(&mut self) {
        let notices = &mut self.found.notices;
        let count = self.found.crossings.len();
        if count > 1 {
            notices.push(format!("not monotone: {count} changes of state lie between the kernels"));
        }
        let skipped = self.found.skipped.len();
        if skipped > 0 {
            let words = if skipped == 1 { "1 commit has" } else { &format!("{skipped} commits have") };
            notices.push(format!("{words} no kernel that runs: passed over"));
        }
        let of = |state: KernelState| self.found.steps.iter().filter(|step| step.state == state).count();
        if of(KernelState::Undecided) > 0 {
            let (undecided, runs) = (of(KernelState::Undecided), self.spec.runs_max);
            notices.push(format!(
                "{undecided} kernels stayed undecided after {runs} runs and were stepped over"
            ));
        }
        if of(KernelState::OneCourse) > 0 {
            let alike = of(KernelState::OneCourse);
            notices.push(format!("{alike} kernels have one course of events and were stepped over"));
        }
        let is_part = |crossing: &Crossing| crossing.share.is_some_and(|share| (0.0..0.8).contains(&share));
        if count == 1 && self.found.crossings.iter().any(is_part) {
            notices.push(
                "this change makes a part of the difference only: compare --attribute shows the others"
                    .to_string(),
            );
        }
    }
}

/// Positions that are judged first: where releases end, and evenly spread.
fn surveyed(way: &CommitPath) -> Vec<usize> {
    let end = way.end();
    let release = |position: usize| way.step(position).and_then(|step| step.release());
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

fn release_before(release: MainlineRelease) -> Option<MainlineRelease> {
    Generation::releases().into_iter().take_while(|&earlier| earlier < release).last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::BisectAnswer;
    use fairlab_event::Ns;
    use fairlab_lab::RunSetting;
    use fairlab_lab::machines;
    use serde_json::json;
    use std::sync::atomic::AtomicBool;

    fn search(good: &str, bad: &str, question: &str, workload: &str, duration: Ns) -> Bisection {
        let spec = BisectSpec {
            good: good.parse().expect("a kernel"),
            bad: bad.parse().expect("a kernel"),
            question: BisectQuestion::parse(question).expect("a question"),
            setting: RunSetting::new(
                machines::find("laptop8").expect("a machine"),
                workload.split(' ').map(String::from).collect(),
                duration,
            ),
            margin: MARGIN,
            error: 0.01,
            runs_max: 30,
        };
        let stop = AtomicBool::new(false);
        let setting = spec.setting.clone();
        bisect(&spec, &mut SearchTrials::new(&setting, 2, &|_| {}, &stop)).expect("an answer")
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
        let answer = json!(BisectAnswer::from(&found));
        assert_eq!((&answer["schema"], &answer["verdict"]), (&json!("fairlab/bisect/1"), &json!("found")));
    }

    #[test]
    fn between_equals_there_is_nothing_to_find() {
        let found = search("v6.6", "v6.6", "p99", BUSY, Ns::from_ms(200));
        let answer = json!(BisectAnswer::from(&found));
        assert!(found.crossings.is_empty() && answer["first_bad"].is_null());
        assert_eq!(found.notices, ["no change of the model lies between the two kernels"]);
        let claim = search("v6.5", "v6.6", "p99 > 900s", BUSY, Ns::from_ms(200));
        assert!(claim.crossings.is_empty());
        assert_eq!((claim.finding, claim.error), (SearchFinding::Nothing, None));
    }

    #[test]
    fn positions_are_surveyed_in_order() {
        let way = |from: &str, to: &str| {
            let [from, to] = [from, to].map(|name| name.parse().expect("a kernel"));
            CommitPath::between(&from, &to, NAME, &AtomicBool::new(false)).expect("a way").way
        };
        let (way, short) = (way("v5.4", "v5.10"), way("v6.6", "v6.6+NO_PLACE_LAG"));
        let surveyed = surveyed(&way);
        assert!(surveyed.len() > 3 && surveyed.len() <= SURVEYED, "{surveyed:?}");
        assert!(
            surveyed.windows(2).all(|pair| pair[0] < pair[1]) && surveyed[surveyed.len() - 1] < way.end()
        );
        assert_eq!((short.end(), super::surveyed(&short)), (1, vec![]));
    }
}
