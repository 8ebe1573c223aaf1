//! The counts of a collection as plain rows: summed, written down, read back, and held against what was reached before.
//!
//! Must not know: recordings and how they are walked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use crate::{Agreement, Kind, KindTally, Share};
use fairlab_files::LabError;
use serde::{Deserialize, Serialize};

/// Decisions of one kind, or of one case of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Judged.
    pub judged: u64,
    /// Of these, every state that the unknowns allow gives what the kernel did.
    pub agree: u64,
    /// Of these, some of the states that the unknowns allow give what the kernel did, and others not.
    pub admissible: u64,
    /// Not judged: what they rest on was not shown.
    pub not_judged: u64,
}

impl Counts {
    /// Judged, and no state that the unknowns allow gives what the kernel did.
    pub fn missed(self) -> u64 {
        self.judged.saturating_sub(self.agree + self.admissible)
    }

    fn add(&mut self, other: Counts) {
        self.judged += other.judged;
        self.agree += other.agree;
        self.admissible += other.admissible;
        self.not_judged += other.not_judged;
    }
}

/// The counts of one kind of decision in one recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    /// The recording's name.
    pub recording: String,
    /// The generation by whose rules it was walked.
    pub kernel: String,
    /// Whether probes show the kernel's own values.
    pub probed: bool,
    /// The kind.
    pub kind: Kind,
    /// `yes` or `no`, what the kernel did, for the kinds that are told apart so; empty for all together.
    pub case: String,
    /// The counts. Of a case, only what was judged is counted.
    pub counts: Counts,
}

/// All decisions of a kernel's recordings, by what they are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brief {
    /// The generation by whose rules they were walked.
    pub kernel: String,
    /// Whether probes show the kernel's own values.
    pub probed: bool,
    /// How many recordings.
    pub recordings: usize,
    /// Of [`ABOUT`], in its order.
    pub counts: [Counts; 3],
}

/// What decisions are about.
pub const ABOUT: [&str; 3] = ["who runs", "where it wakes up", "balancing"];

/// Which of [`ABOUT`] a kind is.
const fn about(kind: Kind) -> usize {
    match kind {
        Kind::Vruntime
        | Kind::Placement
        | Kind::Pick
        | Kind::WakeupPreempt
        | Kind::TickPreempt
        | Kind::QueueTime
        | Kind::Lag
        | Kind::DelayedDequeue
        | Kind::Reweight => 0,
        Kind::WakeupCpu => 1,
        Kind::Balance | Kind::BalanceTry => 2,
    }
}

/// The numbers in a kernel's name, by which releases are in order: `ubuntu-5.15` is 5, 15.
fn numbers(kernel: &str) -> Vec<u32> {
    kernel.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// A figure that is worse than it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fall {
    /// What it was.
    pub before: Figure,
    /// What it is; all zero where it is missing.
    pub now: Counts,
}

/// Rows of one or more recordings, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The rows.
    pub rows: Vec<Figure>,
}

/// The kinds whose yes and no cases are told apart: one of the two is rare, and its misses would drown in the other.
const APART: [Kind; 3] = [Kind::WakeupPreempt, Kind::TickPreempt, Kind::DelayedDequeue];

/// The kinds whose cases are decided by rules of their own.
const BY_RULE: [Kind; 3] = [Kind::WakeupCpu, Kind::Balance, Kind::BalanceTry];

/// The columns of the written form.
const HEADER: &str = "recording\tkernel\tprobed\tkind\tcase\tjudged\tagree\tadmissible\tnot_judged";

impl Figures {
    /// The rows of a recording, which has no name yet.
    pub(super) fn of(agreement: &Agreement) -> Figures {
        let mut figures = Figures::default();
        for (kind, tally) in &agreement.kinds {
            figures.add_kind(agreement, *kind, tally);
        }
        figures
    }

    fn add_kind(&mut self, agreement: &Agreement, kind: Kind, tally: &KindTally) {
        let row = |case: &str, counts: Counts| Figure {
            recording: String::new(),
            kernel: agreement.kernel.clone(),
            probed: agreement.probed,
            kind,
            case: case.to_string(),
            counts,
        };
        let of = |share: Share, not_judged| Counts {
            judged: share.judged,
            agree: share.agree,
            admissible: share.admissible,
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
    pub fn sums(&self) -> Figures {
        let mut sums: BTreeMap<(&str, bool, Kind, &str), Counts> = BTreeMap::new();
        for row in &self.rows {
            sums.entry((&row.kernel, row.probed, row.kind, &row.case)).or_default().add(row.counts);
        }
        let row = |((kernel, probed, kind, case), counts): ((&str, bool, Kind, &str), Counts)| Figure {
            recording: String::new(),
            kernel: kernel.to_string(),
            probed,
            kind,
            case: case.to_string(),
            counts,
        };
        Figures { rows: sums.into_iter().map(row).collect() }
    }

    /// A line for each generation, probed or not, in order of releases.
    pub fn brief(&self) -> Vec<Brief> {
        let mut kernels: BTreeMap<_, (BTreeSet<&str>, [Counts; 3])> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.case.is_empty()) {
            let (recordings, counts) =
                kernels.entry((numbers(&row.kernel), &row.kernel, row.probed)).or_default();
            recordings.insert(&row.recording);
            counts[about(row.kind)].add(row.counts);
        }
        let line = |((_, kernel, probed), (recordings, counts)): ((_, &String, bool), (BTreeSet<_>, _))| {
            Brief { kernel: kernel.clone(), probed, recordings: recordings.len(), counts }
        };
        kernels.into_iter().map(line).collect()
    }

    /// The figures of `before` that are worse here: fewer decisions agree, or more are missed. Recordings that are not in
    /// `before` are new.
    pub fn falls_from(&self, before: &Figures) -> Vec<Fall> {
        let now = |row: &Figure| {
            let same = self.rows.iter().find(|other| {
                (&other.recording, other.kind, &other.case) == (&row.recording, row.kind, &row.case)
            });
            same.map_or(Counts::default(), |other| other.counts)
        };
        let falls = before.rows.iter().map(|row| Fall { before: row.clone(), now: now(row) });
        falls.filter(Fall::is_one).collect()
    }

    /// The written form: a line a row, columns between tabs.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for Figure { recording, kernel, probed, kind, case, counts } in &self.rows {
            let Counts { judged, agree, admissible, not_judged } = counts;
            let _ = writeln!(
                text,
                "{recording}\t{kernel}\t{}\t{}\t{case}\t{judged}\t{agree}\t{admissible}\t{not_judged}",
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
    pub fn parse(text: &str) -> Result<Figures, LabError> {
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
        Ok(Figures { rows })
    }
}

fn parse_row(line: &str) -> Option<Figure> {
    let columns = line.split('\t').collect::<Vec<_>>();
    let [recording, kernel, probed, kind, case, judged, agree, admissible, not_judged] = columns[..] else {
        return None;
    };
    let counts = Counts {
        judged: judged.parse().ok()?,
        agree: agree.parse().ok()?,
        admissible: admissible.parse().ok()?,
        not_judged: not_judged.parse().ok()?,
    };
    Some(Figure {
        recording: recording.to_string(),
        kernel: kernel.to_string(),
        probed: probed == "yes",
        kind: Kind::ALL.into_iter().find(|known| known.name() == kind)?,
        case: case.to_string(),
        counts,
    })
}

impl Fall {
    fn is_one(&self) -> bool {
        self.now.agree < self.before.counts.agree || self.now.missed() > self.before.counts.missed()
    }
}

impl fmt::Display for Fall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure { recording, kind, case, counts, .. } = &self.before;
        let of = |counts: Counts| format!("{} agree, {} missed", counts.agree, counts.missed());
        let case = if case.is_empty() { String::new() } else { format!(" {case}") };
        write!(f, "{recording}, {}{case}: {}; before: {}", kind.name(), of(self.now), of(*counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(recording: &str, kernel: &str, case: &str, judged: u64, agree: u64, admissible: u64) -> Figure {
        Figure {
            recording: recording.to_string(),
            kernel: kernel.to_string(),
            probed: false,
            kind: Kind::TickPreempt,
            case: case.to_string(),
            counts: Counts { judged, agree, admissible, not_judged: 7 },
        }
    }

    fn figures(rows: &[Figure]) -> Figures {
        Figures { rows: rows.to_vec() }
    }

    #[test]
    fn what_is_written_reads_back() {
        let written = figures(&[row("a/b", "v6.6", "", 10, 9, 1), row("c", "v6.6-x", "yes", 0, 0, 0)]);
        assert_eq!(Figures::parse(&written.to_text()), Ok(written));
        for broken in ["a\tb", &format!("{HEADER}\na\tb\tno\tpick\t\t1\t1\t1\tx")] {
            assert!(
                Figures::parse(broken).is_err_and(|error| error.problem.contains("is no row")),
                "{broken}"
            );
        }
    }

    #[test]
    fn sums_are_by_generation_and_case() {
        let rows =
            [row("a", "v6.6", "", 10, 9, 1), row("b", "v6.6", "", 5, 5, 0), row("b", "v6.6", "yes", 2, 1, 0)];
        let sums = figures(&rows).sums();
        assert_eq!(sums.rows.len(), 2);
        assert_eq!(sums.rows[0].counts, Counts { judged: 15, agree: 14, admissible: 1, not_judged: 14 });
        assert_eq!(sums.rows[0].counts.missed(), 0);
    }

    #[test]
    fn a_fall_is_fewer_agreements_or_more_misses() {
        let before = figures(&[row("a", "v6.6", "", 10, 9, 1)]);
        let drops = |judged, agree, admissible| {
            figures(&[row("a", "v6.6", "", judged, agree, admissible)]).falls_from(&before).len()
        };
        assert_eq!(drops(10, 9, 1), 0);
        assert_eq!(drops(12, 11, 1), 0, "more is judged, and agrees");
        assert_eq!(drops(10, 10, 0), 0);
        assert_eq!(drops(10, 8, 2), 1, "an exact agreement is lost");
        assert_eq!(drops(12, 9, 1), 1, "what is judged besides is missed");
        assert_eq!(Figures::default().falls_from(&before).len(), 1, "a recording is lost");
        let more = figures(&[row("a", "v6.6", "", 10, 9, 1), row("b", "v6.6", "", 9, 0, 0)]);
        assert_eq!(more.falls_from(&before).len(), 0, "a new recording has nothing to fall below");
        let told = Figures::default().falls_from(&before)[0].to_string();
        assert_eq!(told, "a, tick_preempt: 0 agree, 0 missed; before: 9 agree, 0 missed");
    }
}
