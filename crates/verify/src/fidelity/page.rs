//! Figures as Markdown, and the marked parts of a page that they are written into.
//!
//! Must not know: where the page is, and what else stands on it.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::figures::{ABOUT, KernelSummary};
use super::{DecisionCounts, FidelityFigure, FidelityFigures};
use crate::DecisionKind;
use fairlab_files::LabError;

/// The line before a part that is written by a program.
pub fn begin(part: &str) -> String {
    format!("<!-- figures: {part} -->")
}

/// The line after it.
pub fn end(part: &str) -> String {
    format!("<!-- end of figures: {part} -->")
}

/// `page` with what stands between the marks of `part` replaced by `content`.
///
/// # Errors
/// The page has no such part.
pub fn replace(page: &str, part: &str, content: &str) -> Result<String, LabError> {
    let (begin, end) = (begin(part), end(part));
    let missing = || {
        let hint = format!("put '{begin}' and '{end}' where the figures belong, each on a line");
        LabError::new(format!("the page has no part '{part}'"), hint)
    };
    let (before, rest) = page.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    Ok(format!("{before}{begin}\n\n{content}\n{end}{after}"))
}

/// Two tables: sums by generation, and each recording's agreement by kind.
pub fn markdown(figures: &FidelityFigures) -> String {
    format!("{}\n{}", sums(figures), matrix(figures))
}

/// A table with a line for each generation.
pub fn brief(figures: &FidelityFigures) -> String {
    let header = brief_header();
    let aligned = header.iter().map(|_| "---:|").skip(2).collect::<String>();
    let mut text = format!("| {} |\n|---|---|{aligned}\n", header.join(" | "));
    for line in brief_lines(figures) {
        let _ = writeln!(text, "| {} |", line.join(" | "));
    }
    text
}

/// What stands above the columns of [`brief_lines`].
pub fn brief_header() -> Vec<String> {
    let mut header = ["kernel", "probes", "recordings"].map(str::to_string).to_vec();
    header.extend(ABOUT.iter().flat_map(|about| [(*about).to_string(), "share".into(), "missed".into()]));
    header
}

/// A line for each generation: how many decisions were judged, the share that agrees, and how many are missed.
pub fn brief_lines(figures: &FidelityFigures) -> Vec<Vec<String>> {
    let line = |brief: KernelSummary| {
        let probes = if brief.probed { "yes" } else { "no" };
        let mut cells = vec![brief.kernel, probes.to_string(), brief.recordings.to_string()];
        for counts in brief.counts {
            cells.extend([counts.judged.to_string(), share(counts), counts.missed().to_string()]);
        }
        cells
    };
    figures.brief().into_iter().map(line).collect()
}

fn sums(figures: &FidelityFigures) -> String {
    let mut text = String::from(
        "| kernel | probes | decision | judged | agree | share | missed | not judged |\n\
         |---|---|---|---:|---:|---:|---:|---:|\n",
    );
    for FidelityFigure { kernel, probed, kind, case, counts, .. } in &figures.sums().rows {
        let probes = if *probed { "yes" } else { "no" };
        let decision = decision(*kind, case);
        let DecisionCounts { judged, agree, not_judged } = counts;
        let (share, missed) = (share(*counts), counts.missed());
        let _ = match case.is_empty() {
            true => writeln!(
                text,
                "| {kernel} | {probes} | {decision} | {judged} | {agree} | {share} | {missed} | {not_judged} |"
            ),
            false => {
                writeln!(
                    text,
                    "| {kernel} | {probes} | {decision} | {judged} | {agree} | {share} | {missed} | |"
                )
            }
        };
    }
    text
}

/// `tick_preempt`, or `tick_preempt: yes` for one case of it.
pub fn decision(kind: DecisionKind, case: &str) -> String {
    if case.is_empty() { kind.name().to_string() } else { format!("{}: {case}", kind.name()) }
}

/// The share that agrees, in percent, rounded down so that only full agreement is 100; `-` where nothing was judged.
pub fn share(counts: DecisionCounts) -> String {
    match counts.judged {
        0 => "-".to_string(),
        judged => {
            let hundredths = counts.agree * 10_000 / judged;
            format!("{}.{:02} %", hundredths / 100, hundredths % 100)
        }
    }
}

fn matrix(figures: &FidelityFigures) -> String {
    let kinds = figures.rows.iter().map(|row| row.kind).collect::<BTreeSet<_>>();
    let mut text = String::from("| recording | kernel |");
    for kind in &kinds {
        let _ = write!(text, " {} |", kind.name());
    }
    let _ = writeln!(text, "\n|---|---|{}", "---:|".repeat(kinds.len()));
    for of_one in figures.rows.chunk_by(|one, other| one.recording == other.recording) {
        let _ = write!(text, "| {} | {} |", of_one[0].recording, of_one[0].kernel);
        for kind in &kinds {
            let row = of_one.iter().find(|row| row.kind == *kind && row.case.is_empty());
            let _ = write!(text, " {} |", row.map_or("-".to_string(), |row| cell(row.counts)));
        }
        text.push('\n');
    }
    text
}

/// `12` where all twelve agree, `11/12` where one does not.
pub fn cell(counts: DecisionCounts) -> String {
    match (counts.judged, counts.agree) {
        (0, _) => "-".to_string(),
        (judged, agree) if agree == judged => agree.to_string(),
        (judged, agree) => format!("{agree}/{judged}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(judged: u64, agree: u64) -> DecisionCounts {
        DecisionCounts { judged, agree, not_judged: 3 }
    }

    #[test]
    fn only_what_is_marked_changes() {
        let page = format!("before\n{}\nold\n{}\nafter\n", begin("x"), end("x"));
        let new = replace(&page, "x", "new\n").expect("marked");
        assert_eq!(new, format!("before\n{}\n\nnew\n\n{}\nafter\n", begin("x"), end("x")));
        assert_eq!(replace(&new, "x", "new\n"), Ok(new.clone()));
        let refused = replace(&page, "y", "new").expect_err("no such part");
        assert!(refused.problem.contains("no part 'y'"));
    }

    #[test]
    fn shares_are_not_rounded_up_to_all() {
        assert_eq!(share(counts(100_000, 99_999)), "99.99 %");
        assert_eq!((share(counts(3, 3)), share(counts(0, 0))), ("100.00 %".to_string(), "-".to_string()));
        assert_eq!([cell(counts(12, 12)), cell(counts(12, 11))], ["12", "11/12"]);
    }

    #[test]
    fn tables_hold_sums_and_every_recording() {
        let row = |recording: &str, kind, case: &str, counts| FidelityFigure {
            recording: recording.to_string(),
            kernel: "v6.6".to_string(),
            probed: true,
            kind,
            case: case.to_string(),
            counts,
        };
        let rows = vec![
            row("a", DecisionKind::Pick, "", counts(4, 3)),
            row("b", DecisionKind::Pick, "", counts(4, 4)),
            row("b", DecisionKind::TickPreempt, "", counts(2, 1)),
            row("b", DecisionKind::TickPreempt, "no", counts(2, 1)),
        ];
        let text = markdown(&FidelityFigures { rows });
        assert!(text.contains("| v6.6 | yes | pick | 8 | 7 | 87.50 % | 1 | 6 |"), "{text}");
        assert!(text.contains("| v6.6 | yes | tick_preempt: no | 2 | 1 | 50.00 % | 1 | |"), "{text}");
        assert!(text.contains("| a | v6.6 | 3/4 | - |\n| b | v6.6 | 4 | 1/2 |\n"), "{text}");
    }

    #[test]
    fn a_brief_table_has_a_line_for_each_kernel_in_order_of_releases() {
        let row = |recording: &str, kernel: &str, kind, counts| FidelityFigure {
            recording: recording.to_string(),
            kernel: kernel.to_string(),
            probed: false,
            kind,
            case: String::new(),
            counts,
        };
        let rows = vec![
            row("a", "v5.11", DecisionKind::Pick, counts(4, 3)),
            row("a", "v5.11", DecisionKind::Lag, counts(4, 4)),
            row("a", "v5.11", DecisionKind::Balance, counts(0, 0)),
            row("b", "v5.11", DecisionKind::Pick, counts(2, 2)),
            row("c", "v5.4", DecisionKind::WakeupCpu, counts(1, 1)),
        ];
        let text = brief(&FidelityFigures { rows });
        let (v5_4, v5_11) = (
            "| v5.4 | no | 1 | 0 | - | 0 | 1 | 100.00 % | 0 |",
            "| v5.11 | no | 2 | 10 | 90.00 % | 1 | 0 | - | 0 |",
        );
        assert!(text.ends_with(&format!("{v5_4}\n{v5_11}\n")), "{text}");
    }
}
