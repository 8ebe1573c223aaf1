//! The counts of a collection as plain rows: summed, written down, read back, and held against what was reached before.
//!
//! Must not know: recordings and how they are walked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use crate::{Agreement, DecisionKind, JudgedShare, KindTally};
use fairlab_files::LabError;
use serde::{Deserialize, Serialize};

/// Decisions of one kind, or of one case of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionCounts {
    /// Judged.
    pub judged: u64,
    /// Of these, the model does what the kernel did.
    pub agree: u64,
    /// Not judged: what they rest on was not shown.
    pub not_judged: u64,
}

impl DecisionCounts {
    /// Of what was judged, it does not.
    pub fn missed(self) -> u64 {
        self.judged.saturating_sub(self.agree)
    }

    fn add(&mut self, other: DecisionCounts) {
        self.judged += other.judged;
        self.agree += other.agree;
        self.not_judged += other.not_judged;
    }
}

/// The counts of one kind of decision in one recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FidelityFigure {
    /// The recording's name.
    pub recording: String,
    /// The generation by whose rules it was walked.
    pub kernel: String,
    /// Whether probes show the kernel's own values.
    pub probed: bool,
    /// The kind.
    pub kind: DecisionKind,
    /// `yes` or `no`, what the kernel did, for the kinds that are told apart so; empty for all together.
    pub case: String,
    /// The counts. Of a case, only what was judged is counted.
    pub counts: DecisionCounts,
}

/// All decisions of a kernel's recordings, by what they are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSummary {
    /// The generation by whose rules they were walked.
    pub kernel: String,
    /// Whether probes show the kernel's own values.
    pub probed: bool,
    /// How many recordings.
    pub recordings: usize,
    /// Of [`ABOUT`], in its order.
    pub counts: [DecisionCounts; 2],
}

/// What decisions are about.
pub const ABOUT: [&str; 2] = ["who runs", "where it wakes up"];

/// Which of [`ABOUT`] a kind is.
const fn about(kind: DecisionKind) -> Option<usize> {
    match kind {
        DecisionKind::Balance => None,
        DecisionKind::WakeupCpu => Some(1),
        _ => Some(0),
    }
}

/// The numbers in a kernel's name, by which releases are in order: `ubuntu-5.15` is 5, 15.
fn numbers(kernel: &str) -> Vec<u32> {
    kernel.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// A figure that is worse than it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureRegression {
    /// What it was.
    pub before: FidelityFigure,
    /// What it is; all zero where it is missing.
    pub now: DecisionCounts,
}

/// Rows of one or more recordings, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FidelityFigures {
    /// The rows.
    pub rows: Vec<FidelityFigure>,
}

/// The kinds whose yes and no cases are told apart: one of the two is rare, and its misses would drown in the other.
const APART: [DecisionKind; 3] =
    [DecisionKind::WakeupPreempt, DecisionKind::TickPreempt, DecisionKind::DelayedDequeue];

/// The kinds whose cases are decided by rules of their own.
const BY_RULE: [DecisionKind; 1] = [DecisionKind::WakeupCpu];

/// The columns of the written form.
const HEADER: &str = "recording\tkernel\tprobed\tkind\tcase\tjudged\tagree\tnot_judged";

impl FidelityFigures {
    /// The rows of a recording, which has no name yet.
    pub(super) fn of(agreement: &Agreement) -> FidelityFigures {
        let mut figures = FidelityFigures::default();
        for (kind, tally) in &agreement.kinds {
            figures.add_kind(agreement, *kind, tally);
        }
        figures
    }

    fn add_kind(&mut self, agreement: &Agreement, kind: DecisionKind, tally: &KindTally) {
        let row = |case: &str, counts: DecisionCounts| FidelityFigure {
            recording: String::new(),
            kernel: agreement.kernel.clone(),
            probed: agreement.probed,
            kind,
            case: case.to_string(),
            counts,
        };
        let of = |share: JudgedShare, not_judged| DecisionCounts {
            judged: share.judged,
            agree: share.agree,
            not_judged,
        };
        let not_judged = tally.not_judged_total();
        if tally.all.judged + not_judged == 0 {
            return;
        }
        self.rows.push(row("", of(tally.all, not_judged)));
        let apart = |case: &str| match case {
            "yes" | "no" => APART.contains(&kind),
            _ => BY_RULE.contains(&kind),
        };
        let cases = tally.cases.iter().filter(|(case, _)| apart(case));
        self.rows.extend(cases.map(|(case, share)| row(case, of(*share, 0))));
    }

    /// Sums by generation, probed or not, kind and case, in order of kernels' names.
    pub fn sums(&self) -> FidelityFigures {
        let mut sums: BTreeMap<(&str, bool, DecisionKind, &str), DecisionCounts> = BTreeMap::new();
        for row in &self.rows {
            sums.entry((&row.kernel, row.probed, row.kind, &row.case)).or_default().add(row.counts);
        }
        let row =
            |((kernel, probed, kind, case), counts): ((&str, bool, DecisionKind, &str), DecisionCounts)| {
                FidelityFigure {
                    recording: String::new(),
                    kernel: kernel.to_string(),
                    probed,
                    kind,
                    case: case.to_string(),
                    counts,
                }
            };
        FidelityFigures { rows: sums.into_iter().map(row).collect() }
    }

    /// A line for each generation, probed or not, in order of releases.
    pub fn brief(&self) -> Vec<KernelSummary> {
        let mut kernels: BTreeMap<_, (BTreeSet<&str>, [DecisionCounts; 2])> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.case.is_empty()) {
            let (recordings, counts) =
                kernels.entry((numbers(&row.kernel), &row.kernel, row.probed)).or_default();
            recordings.insert(&row.recording);
            if let Some(about) = about(row.kind) {
                counts[about].add(row.counts);
            }
        }
        let line = |((_, kernel, probed), (recordings, counts)): ((_, &String, bool), (BTreeSet<_>, _))| {
            KernelSummary { kernel: kernel.clone(), probed, recordings: recordings.len(), counts }
        };
        kernels.into_iter().map(line).collect()
    }

    /// The figures of `before` that are worse here: fewer decisions agree, or more are missed. Recordings that are not in
    /// `before` are new.
    pub fn falls_from(&self, before: &FidelityFigures) -> Vec<FigureRegression> {
        let now = |row: &FidelityFigure| {
            let same = self.rows.iter().find(|other| {
                (&other.recording, other.kind, &other.case) == (&row.recording, row.kind, &row.case)
            });
            same.map_or(DecisionCounts::default(), |other| other.counts)
        };
        let falls = before.rows.iter().map(|row| FigureRegression { before: row.clone(), now: now(row) });
        falls.filter(FigureRegression::is_one).collect()
    }

    /// The written form: a line a row, columns between tabs.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for FidelityFigure { recording, kernel, probed, kind, case, counts } in &self.rows {
            let DecisionCounts { judged, agree, not_judged } = counts;
            let _ = writeln!(
                text,
                "{recording}\t{kernel}\t{}\t{}\t{case}\t{judged}\t{agree}\t{not_judged}",
                if *probed { "yes" } else { "no" },
                kind.name(),
            );
        }
        text
    }

    /// Reads the written form.
    ///
    /// # Errors
    /// A line is none of it.
    pub fn parse(text: &str) -> Result<FidelityFigures, LabError> {
        let mut rows = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if number == 1 && line == HEADER {
                continue;
            }
            let row = parse_row(line).ok_or_else(|| {
                LabError::new(format!("figures, line {number}: '{line}' is no row"), "write them again")
            })?;
            rows.push(row);
        }
        Ok(FidelityFigures { rows })
    }
}

fn parse_row(line: &str) -> Option<FidelityFigure> {
    let columns = line.split('\t').collect::<Vec<_>>();
    let [recording, kernel, probed, kind, case, judged, agree, not_judged] = columns[..] else {
        return None;
    };
    let counts = DecisionCounts {
        judged: judged.parse().ok()?,
        agree: agree.parse().ok()?,
        not_judged: not_judged.parse().ok()?,
    };
    Some(FidelityFigure {
        recording: recording.to_string(),
        kernel: kernel.to_string(),
        probed: probed == "yes",
        kind: DecisionKind::ALL.into_iter().find(|known| known.name() == kind)?,
        case: case.to_string(),
        counts,
    })
}

impl FigureRegression {
    fn is_one(&self) -> bool {
        self.now.agree < self.before.counts.agree || self.now.missed() > self.before.counts.missed()
    }
}

impl fmt::Display for FigureRegression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FidelityFigure { recording, kind, case, counts, .. } = &self.before;
        let of = |counts: DecisionCounts| format!("{} agree, {} missed", counts.agree, counts.missed());
        let case = if case.is_empty() { String::new() } else { format!(" {case}") };
        write!(f, "{recording}, {}{case}: {}; before: {}", kind.name(), of(self.now), of(*counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(recording: &str, kernel: &str, case: &str, judged: u64, agree: u64) -> FidelityFigure {
        FidelityFigure {
            recording: recording.to_string(),
            kernel: kernel.to_string(),
            probed: false,
            kind: DecisionKind::TickPreempt,
            case: case.to_string(),
            counts: DecisionCounts { judged, agree, not_judged: 7 },
        }
    }

    fn figures(rows: &[FidelityFigure]) -> FidelityFigures {
        FidelityFigures { rows: rows.to_vec() }
    }

    #[test]
    fn what_is_written_reads_back() {
        let written = figures(&[row("a/b", "v6.6", "", 10, 9), row("c", "v6.6-x", "yes", 0, 0)]);
        assert_eq!(FidelityFigures::parse(&written.to_text()), Ok(written));
        for broken in ["a\tb", &format!("{HEADER}\na\tb\tno\tpick\t\t1\t1\tx")] {
            assert!(
                FidelityFigures::parse(broken).is_err_and(|error| error.problem.contains("is no row")),
                "{broken}"
            );
        }
    }

    #[test]
    fn sums_are_by_generation_and_case() {
        let rows = [row("a", "v6.6", "", 10, 9), row("b", "v6.6", "", 5, 5), row("b", "v6.6", "yes", 2, 1)];
        let sums = figures(&rows).sums();
        assert_eq!(sums.rows.len(), 2);
        assert_eq!(sums.rows[0].counts, DecisionCounts { judged: 15, agree: 14, not_judged: 14 });
        assert_eq!(sums.rows[0].counts.missed(), 1);
    }

    #[test]
    fn a_fall_is_fewer_agreements_or_more_misses() {
        let before = figures(&[row("a", "v6.6", "", 10, 9)]);
        let drops = |judged, agree| figures(&[row("a", "v6.6", "", judged, agree)]).falls_from(&before).len();
        assert_eq!(drops(10, 9), 0);
        assert_eq!(drops(12, 11), 0, "more is judged, and agrees");
        assert_eq!(drops(9, 8), 1, "an agreement is lost");
        assert_eq!(drops(12, 9), 1, "what is judged besides is missed");
        assert_eq!(FidelityFigures::default().falls_from(&before).len(), 1, "a recording is lost");
        let more = figures(&[row("a", "v6.6", "", 10, 9), row("b", "v6.6", "", 9, 0)]);
        assert_eq!(more.falls_from(&before).len(), 0, "a new recording has nothing to fall below");
        let told = FidelityFigures::default().falls_from(&before)[0].to_string();
        assert_eq!(told, "a, tick_preempt: 0 agree, 0 missed; before: 9 agree, 1 missed");
    }
}
