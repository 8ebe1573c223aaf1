//! Whether the tree's own code comes nearer to the booted kernel than the model does.
//!
//! Must not know: how runs were made, how the answer is shown.

use fairlab_analysis::statistics::{FALSE_DISCOVERY_RATE, MARGIN, adjusted, unpaired};

use super::{DifferenceMeasure, KernelsBesideBoot, TableRow};

/// How far from a booted hackbench its switches, waits and migrations may be under the tree's own code.
pub const OWN_BAR: f64 = 0.15;

/// The workload of that bar.
const HACKBENCH: &str = "hackbench";

/// Where the tree's own code stands beside the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnCodeStanding {
    /// Its error is smaller.
    Nearer,
    /// Runs of the two do not differ for sure, or their errors by no more than 1 %.
    Alike,
    /// Its error is greater.
    Further,
}

impl OwnCodeStanding {
    /// The word in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            OwnCodeStanding::Nearer => "nearer",
            OwnCodeStanding::Alike => "alike",
            OwnCodeStanding::Further => "further",
        }
    }

    fn of(row: &TableRow, q: Option<f64>) -> OwnCodeStanding {
        let further = row.own.error - row.modelled.error;
        match q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE) && further.abs() > MARGIN {
            true if further > 0.0 => OwnCodeStanding::Further,
            true => OwnCodeStanding::Nearer,
            false => OwnCodeStanding::Alike,
        }
    }
}

/// The standing of each row, and how many there are of each kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnCodeStandings {
    /// Of each kernel and workload, in their order, a standing each row.
    pub rows: Vec<Vec<OwnCodeStanding>>,
    /// Rows of hackbench that the bar is on.
    pub hackbench: usize,
    /// Those of them that keep it.
    pub kept: usize,
}

impl OwnCodeStandings {
    /// How many rows stand so.
    pub fn count(&self, standing: OwnCodeStanding) -> usize {
        self.rows.iter().flatten().filter(|known| **known == standing).count()
    }
}

impl TableRow {
    /// Whether the tree's own code is within [`OWN_BAR`]; `None` where that is not asked for.
    pub fn keeps_bar(&self, workload: &str) -> Option<bool> {
        let is_asked = workload == HACKBENCH && self.measure != DifferenceMeasure::Share;
        is_asked.then_some(self.own.error <= OWN_BAR)
    }
}

/// Where the tree's own code stands in every row. All rows are one family, as there is one sentence about all of them.
pub fn standings(all: &[KernelsBesideBoot]) -> OwnCodeStandings {
    let family = all.iter().flat_map(|beside| &beside.rows).map(|row| {
        let [modelled, own] = [&row.modelled, &row.own].map(|side| side.runs.values());
        unpaired(modelled, own).p
    });
    let mut adjusted = adjusted(&family.collect::<Vec<_>>()).into_iter();
    let rows = all.iter().map(|beside| {
        beside.rows.iter().map(|row| OwnCodeStanding::of(row, adjusted.next().flatten())).collect::<Vec<_>>()
    });
    let rows = rows.collect();
    let bars =
        all.iter().flat_map(|beside| beside.rows.iter().filter_map(|row| row.keeps_bar(beside.workload)));
    let bars = bars.collect::<Vec<_>>();
    OwnCodeStandings { rows, hackbench: bars.len(), kept: bars.iter().filter(|kept| **kept).count() }
}

#[cfg(test)]
mod tests {
    use super::super::{RunValues, TableSide};
    use super::*;

    const SCATTER: [f64; 6] = [0.98, 1.01, 0.99, 1.02, 1.0, 1.005];

    /// A row of what was 100 on the booted kernel, around these means.
    fn row(metric: &str, modelled: f64, own: f64) -> TableRow {
        let side = |mean: f64| TableSide {
            runs: RunValues(SCATTER.map(|part| part * mean).to_vec()),
            error: (mean - 100.0).abs() / 100.0,
        };
        TableRow {
            metric: metric.to_string(),
            measure: DifferenceMeasure::of(metric).expect("judged"),
            booted: RunValues(vec![100.0; 3]),
            modelled: side(modelled),
            own: side(own),
        }
    }

    fn beside(workload: &'static str, rows: Vec<TableRow>) -> KernelsBesideBoot {
        let (release, own_release) = (String::new(), String::new());
        KernelsBesideBoot {
            kernel: "k",
            release,
            own_release,
            workload,
            command: "w",
            rows,
            verified: (0, 0),
        }
    }

    #[test]
    fn who_differs_for_sure_is_nearer_or_further() {
        let rows = [(140.0, 110.0), (110.0, 140.0), (110.0, 110.1), (90.0, 110.0), (50.0, 50.0)];
        let rows = rows.map(|(modelled, own)| row("switches_per_s", modelled, own)).to_vec();
        let found = standings(&[beside("weights", rows)]);
        use OwnCodeStanding::{Alike, Further, Nearer};
        // As far on the other side is as far.
        assert_eq!(found.rows, [vec![Nearer, Further, Alike, Alike, Alike]]);
        assert_eq!((found.count(Further), found.hackbench), (1, 0));
    }

    #[test]
    fn hackbench_has_a_bar_of_its_own() {
        let rows =
            ["switches_per_s", "migrations_per_s", "idle_share"].map(|metric| row(metric, 100.0, 130.0));
        let within = row("wakeup_latency_ns_p99", 100.0, 110.0);
        let found = standings(&[beside("hackbench", [rows.to_vec(), vec![within]].concat())]);
        assert_eq!((found.hackbench, found.kept), (3, 1));
    }
}
