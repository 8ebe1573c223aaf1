//! Whether the model predicts what a change of the kernel does: the difference between two booted kernels beside the
//! difference between the two modelled ones.
//!
//! Numbers of one kernel may be right while the change is not, and the other way round: a cost that is wrong alike on both
//! kernels cancels out.
//!
//! Must not know: how runs were made, how the answer is shown.

use fairlab_analysis::statistics::{
    BetterDirection, Estimate, FALSE_DISCOVERY_RATE, MARGIN, MetricVerdict, adjusted, judge, median, unpaired,
};

use super::{DifferenceMeasure, KERNELS, KernelsBesideBoot, LONG_WAIT_NS, RunValues, TableRow};

/// Which way a metric goes from one kernel to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContrastDirection {
    /// It falls, for sure.
    Falls,
    /// It rises, for sure.
    Rises,
    /// It stays within the margin ([`MARGIN`]), for sure.
    Stays,
    /// The runs allow more than one of these.
    Unsure,
}

impl ContrastDirection {
    /// The word in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            ContrastDirection::Falls => "falls",
            ContrastDirection::Rises => "rises",
            ContrastDirection::Stays => "stays",
            ContrastDirection::Unsure => "unsure",
        }
    }

    /// By the rules of every comparison (docs/statistics.md). `q` is the probability, adjusted for how many there are.
    fn of(estimate: &Estimate, q: Option<f64>) -> ContrastDirection {
        let is_real = q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE);
        match judge(estimate, BetterDirection::Lower, MARGIN, is_real) {
            MetricVerdict::Better => ContrastDirection::Falls,
            MetricVerdict::Worse => ContrastDirection::Rises,
            MetricVerdict::Equivalent => ContrastDirection::Stays,
            MetricVerdict::Changed
            | MetricVerdict::Undecided
            | MetricVerdict::OneCourse
            | MetricVerdict::NotModelled => ContrastDirection::Unsure,
        }
    }
}

/// What a metric does from one kernel to the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelChange {
    /// The ratio, with its interval.
    pub estimate: Estimate,
    /// What it comes to among all contrasts.
    pub direction: ContrastDirection,
}

/// What the model makes of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangePrediction {
    /// It goes in that direction, or stays with it.
    Same,
    /// It goes the other way.
    Opposite,
    /// One of the two moves for sure, the other does not.
    Missed,
}

impl ChangePrediction {
    /// The word in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            ChangePrediction::Same => "same",
            ChangePrediction::Opposite => "opposite",
            ChangePrediction::Missed => "missed",
        }
    }
}

/// One metric of one workload on two kernels, booted and modelled.
#[derive(Clone, Debug)]
pub struct Contrast {
    /// From this kernel.
    pub from: &'static str,
    /// To this one.
    pub to: &'static str,
    /// The workload's short name.
    pub workload: &'static str,
    /// The metric.
    pub metric: String,
    /// How it is judged.
    pub measure: DifferenceMeasure,
    /// Between the booted kernels.
    pub booted: KernelChange,
    /// Between the modelled ones.
    pub modelled: KernelChange,
}

impl Contrast {
    /// What the model makes of it; `None` where the booted kernels do not tell its direction.
    pub fn seen(&self) -> Option<ChangePrediction> {
        match (self.booted.direction, self.modelled.direction) {
            (ContrastDirection::Unsure, _) => None,
            (ContrastDirection::Falls, ContrastDirection::Rises)
            | (ContrastDirection::Rises, ContrastDirection::Falls) => Some(ChangePrediction::Opposite),
            // Of what stays, a model that does not move for sure says nothing else.
            (ContrastDirection::Stays, ContrastDirection::Unsure) => Some(ChangePrediction::Same),
            (booted, modelled) if booted == modelled => Some(ChangePrediction::Same),
            _ => Some(ChangePrediction::Missed),
        }
    }

    /// The factor between the model's change and the booted one, less 1, upwards and downwards alike. `None` without a ratio
    /// above zero on both sides.
    pub fn error(&self) -> Option<f64> {
        let ratio = |change: &KernelChange| change.estimate.ratio.filter(|&ratio| ratio > 0.0);
        Some(factor(ratio(&self.modelled)? / ratio(&self.booted)?))
    }

    /// The error of a forecast of no change.
    fn size(&self) -> Option<f64> {
        self.booted.estimate.ratio.filter(|&ratio| ratio > 0.0).map(factor)
    }

    fn moves(&self) -> bool {
        matches!(self.booted.direction, ContrastDirection::Falls | ContrastDirection::Rises)
    }
}

/// How far from 1 a ratio is, upwards and downwards alike.
fn factor(ratio: f64) -> f64 {
    ratio.ln().abs().exp_m1()
}

/// How well changes of one measure are predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictionScore {
    /// What was measured; `None` for all together.
    pub measure: Option<DifferenceMeasure>,
    /// Contrasts.
    pub all: usize,
    /// Those where the booted kernels move for sure.
    pub moves: usize,
    /// Those where the model moves in that direction.
    pub same: usize,
    /// Those where it moves in the other direction.
    pub opposite: usize,
    /// Those where the booted kernels stay for sure.
    pub stays: usize,
    /// Those where the model moves.
    pub invented: usize,
    /// The median over the moves of the factor, less 1, between model and booted kernel; NaN of none.
    pub error: f64,
    /// The median error of a forecast of no change.
    pub size: f64,
}

/// Every metric of every workload between neighbouring kernels, and between the first and the last, as far as they ran.
///
/// Boots of one kernel differ in when the workload starts, and two kernels' have nothing else in common: they do not pair.
/// All contrasts of one side are one family, as there is one sentence about all of them.
pub fn contrasts(all: &[KernelsBesideBoot]) -> Vec<Contrast> {
    let mut found = Vec::new();
    for (from, to) in kernel_pairs() {
        for one in all.iter().filter(|beside| beside.kernel == from) {
            let is_partner =
                |other: &&KernelsBesideBoot| other.kernel == to && other.workload == one.workload;
            let Some(other) = all.iter().find(is_partner) else { continue };
            found.extend(one.rows.iter().filter_map(|row| {
                let same = other.rows.iter().find(|other| other.metric == row.metric)?;
                between((one, row), (other, same))
            }));
        }
    }
    decide(&mut found);
    found
}

fn kernel_pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let names = KERNELS.map(|kernels| kernels.modelled);
    let neighbours = (1..names.len()).map(move |index| (names[index - 1], names[index]));
    neighbours.chain([(names[0], names[names.len() - 1])])
}

/// `None` for what is the same in every run, such as the share of the only nice level there is.
fn between(
    (from, one): (&KernelsBesideBoot, &TableRow),
    (to, other): (&KernelsBesideBoot, &TableRow),
) -> Option<Contrast> {
    let runs = [&one.booted, &other.booted, &one.modelled.runs, &other.modelled.runs].map(RunValues::values);
    let mut values = runs.iter().copied().flatten();
    let first = values.next()?;
    if values.all(|value| value == first) {
        return None;
    }
    let change =
        |from, to| KernelChange { estimate: unpaired(from, to), direction: ContrastDirection::Unsure };
    let is_long = one.booted.mean().max(other.booted.mean()) >= LONG_WAIT_NS;
    let measure = if one.measure == DifferenceMeasure::Wait && is_long {
        DifferenceMeasure::LongWait
    } else {
        one.measure
    };
    Some(Contrast {
        from: from.kernel,
        to: to.kernel,
        workload: from.workload,
        metric: one.metric.clone(),
        measure,
        booted: change(runs[0], runs[1]),
        modelled: change(runs[2], runs[3]),
    })
}

fn decide(all: &mut [Contrast]) {
    let sides: [fn(&mut Contrast) -> &mut KernelChange; 2] = [|one| &mut one.booted, |one| &mut one.modelled];
    for side in sides {
        let family = all.iter_mut().map(|contrast| side(contrast).estimate.p).collect::<Vec<_>>();
        for (contrast, q) in all.iter_mut().zip(adjusted(&family)) {
            let change = side(contrast);
            change.direction = ContrastDirection::of(&change.estimate, q);
        }
    }
}

/// How well changes are predicted: all together, then by measure.
pub fn predicted(all: &[Contrast]) -> Vec<PredictionScore> {
    let measures = [
        DifferenceMeasure::LongWait,
        DifferenceMeasure::Wait,
        DifferenceMeasure::Switches,
        DifferenceMeasure::Migrations,
        DifferenceMeasure::Share,
    ];
    let of = |measure: Option<DifferenceMeasure>| {
        let chosen = all.iter().filter(|one| measure.is_none_or(|measure| one.measure == measure));
        let chosen = chosen.collect::<Vec<_>>();
        (!chosen.is_empty()).then(|| sum(measure, &chosen))
    };
    [None].into_iter().chain(measures.map(Some)).filter_map(of).collect()
}

fn sum(measure: Option<DifferenceMeasure>, all: &[&Contrast]) -> PredictionScore {
    let moves = all.iter().copied().filter(|one| one.moves()).collect::<Vec<_>>();
    let stays = all.iter().filter(|one| one.booted.direction == ContrastDirection::Stays);
    let seen = |wanted: ChangePrediction| moves.iter().filter(|one| one.seen() == Some(wanted)).count();
    let middle = |of: fn(&Contrast) -> Option<f64>| {
        median(&moves.iter().filter_map(|one| of(one)).collect::<Vec<_>>())
    };
    PredictionScore {
        measure,
        all: all.len(),
        moves: moves.len(),
        same: seen(ChangePrediction::Same),
        opposite: seen(ChangePrediction::Opposite),
        stays: stays.clone().count(),
        invented: stays.filter(|one| one.seen() == Some(ChangePrediction::Missed)).count(),
        error: middle(Contrast::error),
        size: middle(Contrast::size),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ReleaseKernels, TableSide};
    use super::*;

    /// A metric under every kernel, booted three times and modelled four times around these means.
    fn everywhere(metric: &str, means: [(f64, f64); 4]) -> Vec<KernelsBesideBoot> {
        let measure = DifferenceMeasure::of(metric).expect("judged");
        let side = |values: Vec<f64>| TableSide { runs: RunValues(values), error: 0.0 };
        let one = |(kernels, (booted, modelled)): (ReleaseKernels, (f64, f64))| KernelsBesideBoot {
            kernel: kernels.modelled,
            release: String::new(),
            own_release: String::new(),
            workload: "w",
            command: "w",
            rows: vec![TableRow {
                metric: metric.to_string(),
                measure,
                booted: RunValues([0.98, 1.0, 1.02].map(|part| part * booted).to_vec()),
                modelled: side([0.98, 1.01, 0.99, 1.02].map(|part| part * modelled).to_vec()),
                own: side([0.98, 1.01, 0.99, 1.02].map(|part| part * booted).to_vec()),
            }],
            verified: (0, 0),
        };
        KERNELS.into_iter().zip(means).map(one).collect()
    }

    fn told(contrast: &Contrast) -> (&str, &str, Option<ChangePrediction>) {
        (contrast.booted.direction.name(), contrast.modelled.direction.name(), contrast.seen())
    }

    #[test]
    fn neighbours_and_the_ends_are_contrasted() {
        let rates = [(100.0, 200.0), (200.0, 400.0), (100.0, 800.0), (150.0, 800.0)];
        let all = contrasts(&everywhere("switches_per_s", rates));
        let pairs = all.iter().map(|contrast| (contrast.from, contrast.to)).collect::<Vec<_>>();
        let [old, second, third, new] = KERNELS.map(|kernels| kernels.modelled);
        assert_eq!(pairs, [(old, second), (second, third), (third, new), (old, new)]);
        // Wrong by a factor of two on both kernels, and the change is right.
        assert_eq!(told(&all[0]), ("rises", "rises", Some(ChangePrediction::Same)));
        assert!(all[0].error().expect("a ratio") < 0.01);
        assert_eq!(told(&all[1]), ("falls", "rises", Some(ChangePrediction::Opposite)));
        assert!((all[1].error().expect("a ratio") - 3.0).abs() < 0.05);
        assert_eq!(told(&all[2]), ("rises", "unsure", Some(ChangePrediction::Missed)));
        let summary = predicted(&all);
        let [everything, switches] = &summary[..] else { panic!("{summary:?}") };
        assert_eq!((everything.measure, switches.measure), (None, Some(DifferenceMeasure::Switches)));
        let counts = |sum: &PredictionScore| (sum.all, sum.moves, sum.same, sum.opposite);
        assert_eq!((counts(everything), counts(switches)), ((4, 4, 2, 1), (4, 4, 2, 1)));
        assert!((everything.size - 0.75).abs() < 0.01, "{everything:?}");
    }

    #[test]
    fn what_boots_do_not_tell_is_not_counted() {
        let all = contrasts(&everywhere("migrations_per_s", [(100.0, 200.0); 4]));
        assert!(all.iter().all(|contrast| told(contrast) == ("unsure", "unsure", None)), "{all:?}");
        let [everything, _] = predicted(&all)[..] else { panic!("two sums") };
        assert_eq!((everything.all, everything.moves, everything.stays), (4, 0, 0));
        assert!(everything.error.is_nan());
    }

    #[test]
    fn a_change_that_only_the_model_makes_is_invented() {
        let mut all = everywhere("switches_per_s", [(1.0, 1.0), (1.0, 1.5), (1.0, 1.5), (1.0, 1.0)]);
        for row in all.iter_mut().flat_map(|beside| &mut beside.rows) {
            row.booted = RunValues(vec![1.0, 1.0001, 0.9999]);
        }
        let all = contrasts(&all);
        assert_eq!(told(&all[0]), ("stays", "rises", Some(ChangePrediction::Missed)));
        assert_eq!(told(&all[1]), ("stays", "unsure", Some(ChangePrediction::Same)));
        let sum = predicted(&all)[0];
        assert_eq!((sum.stays, sum.invented, sum.moves), (4, 2, 0));
    }

    #[test]
    fn a_kernel_that_did_not_run_is_left_out() {
        let mut some = everywhere("idle_share", [(0.5, 0.5), (0.6, 0.6), (0.6, 0.6), (0.6, 0.6)]);
        some.remove(1);
        let all = contrasts(&some);
        let pairs = all.iter().map(|contrast| (contrast.from, contrast.to)).collect::<Vec<_>>();
        assert_eq!(pairs, [("debian-6.12", "debian-7.2"), ("debian-5.10", "debian-7.2")]);
    }

    #[test]
    fn waits_are_long_where_either_kernel_makes_them_long() {
        let waits = [(1e5, 1e5), (1e5, 1e5), (5e6, 5e6), (4e6, 1e5)];
        let all = contrasts(&everywhere("wakeup_latency_ns_p50", waits));
        let measures = all.iter().map(|contrast| contrast.measure).collect::<Vec<_>>();
        assert_eq!(
            measures,
            [
                DifferenceMeasure::Wait,
                DifferenceMeasure::LongWait,
                DifferenceMeasure::LongWait,
                DifferenceMeasure::LongWait
            ]
        );
    }

    #[test]
    fn what_is_the_same_in_every_run_is_no_contrast() {
        let mut all = everywhere("nice0_share", [(1.0, 1.0); 4]);
        for row in all.iter_mut().flat_map(|beside| &mut beside.rows) {
            (row.booted, row.modelled.runs) = (RunValues(vec![1.0; 3]), RunValues(vec![1.0; 4]));
        }
        assert!(contrasts(&all).is_empty());
    }
}
