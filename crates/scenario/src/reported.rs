//! A report's own run, at its own size, on kernels of the user's choice: built from sources, or modelled.
//!
//! Must not know: what a report's run shows.

use fairlab_lab::kernel::Need;
use fairlab_lab::{Kernel, LabError, RunResult, RunSpec, run};

use super::figures::shown;
use super::{Bench, Plan, Report, Scenario};

/// The run that a report tells of.
#[derive(Debug)]
pub(crate) struct Reported {
    /// The run under a modelled kernel.
    pub plan: fn(&Bench<'_>, &'static str) -> Plan,
    /// How many seeds.
    pub seeds: fn(&Bench<'_>) -> u64,
    /// Modelled kernels that stand beside.
    pub modelled: &'static [&'static str],
    /// What was published: the kernel, and a figure a column.
    pub published: &'static [(&'static str, &'static [Option<f64>])],
    /// What is shown of a kernel's runs, and how it comes of them.
    pub columns: &'static [Column],
}

/// A column: its head, and what it shows of a kernel's runs.
pub(crate) type Column = (&'static str, fn(&[RunResult]) -> Option<f64>);

impl Scenario {
    /// Makes the report's own run on these kernels, and on the modelled ones that stand beside. There are no claims. Gives `None` when
    /// it was stopped before its end.
    ///
    /// # Errors
    /// A kernel cannot run it, or the report has no single run.
    pub fn run_reported(&self, bench: &Bench<'_>, kernels: &[String]) -> Result<Option<Report>, LabError> {
        let Some(reported) = &self.reported else {
            let hint = "leave --reported out: --kernel alone stands beside the report's two, in a small size";
            return Err(LabError::new(format!("'{}' tells of no single run", self.name), hint));
        };
        let modelled = reported.modelled.iter().map(ToString::to_string);
        let named = modelled.chain(kernels.iter().cloned()).collect::<Vec<_>>();
        let what = "a report's own run";
        let kernels = named.iter().map(|name| Kernel::parse_for(name, Need::Seeds, what));
        let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
        let Some(first) = reported.modelled.first() else { return Ok(None) };
        let plan = (reported.plan)(bench, first);
        let seeds = (reported.seeds)(bench);
        let mut specs = Vec::new();
        for kernel in &kernels {
            let spec = bench.spec(&plan, 1)?;
            kernel.prepare(&spec.machine, &|_, _| (), bench.stop)?;
            specs.extend((1..=seeds).map(|seed| RunSpec { kernel: kernel.clone(), seed, ..spec.clone() }));
        }
        let Some(runs) = bench.each(&specs, |spec| run(spec, bench.stop))? else { return Ok(None) };
        let mut report = Report::new(self, bench);
        report.page = format!("{}-own-code", self.name);
        report.heading(format!("The report's run on {}", plan.machine));
        report.text(format!(
            "{}: seeds 1 to {seeds} of each kernel, {} s at most. Modelled kernels beside kernels that are built from sources (`src:`), on one \
             machine with one table of costs; figures that were published stand first.",
            plan.workload,
            shown(Some(plan.duration.0 as f64 / 1e9))
        ));
        let per_kernel = seeds.max(1) as usize;
        reported.table(&mut report, kernels.iter().map(Kernel::name).zip(runs.chunks(per_kernel)));
        report.keep(runs);
        Ok(Some(report))
    }
}

impl Reported {
    fn table<'r>(&self, report: &mut Report, kernels: impl Iterator<Item = (&'r str, &'r [RunResult])>) {
        let published = self.published.iter().map(|(name, figures)| {
            let cells = figures.iter().copied().map(shown);
            [format!("{name}, published")].into_iter().chain(cells).collect::<Vec<_>>()
        });
        let measured = kernels.map(|(name, runs)| {
            let cells = self.columns.iter().map(|(_, of)| shown(of(runs)));
            [name.to_string()].into_iter().chain(cells).collect::<Vec<_>>()
        });
        let rows = published.chain(measured).collect();
        let header = ["kernel"].into_iter().chain(self.columns.iter().map(|(head, _)| *head));
        report.table(&header.collect::<Vec<_>>(), rows);
    }
}

/// The mean of a metric over runs; `None` if one of them does not have it.
pub(crate) fn mean_of(runs: &[RunResult], metric: &str) -> Option<f64> {
    let values = runs.iter().map(|run| run.metric(metric)).collect::<Option<Vec<_>>>()?;
    (!values.is_empty()).then(|| fairlab_analysis::statistics::mean(&values))
}
