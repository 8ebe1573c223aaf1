//! Public reports for people: at a terminal, and as a page.
//!
//! Must not know: how runs are made.

use fairlab_event::EscapedText;

use super::answer::{ClaimAnswer, PartialReport, PublicAnswer, ReportAnswer};
use super::judge::ReproductionOutcome;
use crate::render::{aligned, number, pipes, wrap};

/// Every outcome, the best first.
const OUTCOMES: [ReproductionOutcome; 5] = [
    ReproductionOutcome::Reproduced,
    ReproductionOutcome::InPart,
    ReproductionOutcome::NotShown,
    ReproductionOutcome::Contrary,
    ReproductionOutcome::CannotBeSaid,
];

const HEADER: [&str; 5] = ["report", "claim", "published", "measured", "comes out"];

impl PublicAnswer {
    /// For people at a terminal.
    pub fn to_text(&self) -> String {
        let mut text = aligned(&header(), &self.rows());
        for report in &self.reports {
            text += &format!("\n{}: {}\n", report.name, EscapedText(&report.title));
            for line in report.lines() {
                text += &format!("{}\n", wrap(&line));
            }
            for command in report.commands() {
                text += &format!("  {command}\n");
            }
        }
        text + &format!("\n{}\n", self.conclusion())
    }

    /// For a page among the documents; `command` is what makes it.
    pub fn to_markdown(&self, command: &str) -> String {
        let mut text = format!(
            "# Public reports\n\nWhat others published of changes to the fair scheduler, and what comes of it here. Each report is a file \
             in `examples/reports/`: a workload, a machine, kernels and claims. This page is written by `{command}`.\n\n\
             A claim is reproduced if three things hold: the difference is sure and goes as published; its size, as the logarithm of the \
             ratio, is at least half of the published one and at most twice; and a search between the two kernels names the published \
             commit, where there are several. It comes out in part if only the first holds. Intervals are of 95 %.\n\n{}\n\n",
            self.conclusion()
        );
        text += &pipes(&header(), &self.rows());
        for report in &self.reports {
            text += &format!(
                "\n## {}\n\n{}.\n\nPublished: {}.\n",
                report.name,
                EscapedText(&report.title),
                EscapedText(&report.source)
            );
            for line in report.lines() {
                text += &format!("\n{}\n", EscapedText(&line));
            }
            let commands = report.commands();
            if !commands.is_empty() {
                text += &format!("\n```sh\n{}\n```\n", commands.join("\n"));
            }
        }
        text
    }

    fn conclusion(&self) -> String {
        let counts = OUTCOMES.iter().filter(|outcome| self.count(**outcome) > 0);
        let counts = counts.map(|&outcome| format!("{} {}", self.count(outcome), outcome.words()));
        let quick = if self.quick { " Quick form: fewer runs, and no search for commits." } else { "" };
        let stopped = if self.partial { " Stopped before its end." } else { "" };
        let counts = counts.collect::<Vec<_>>().join(", ");
        format!("Of {} reports: {counts}.{quick}{stopped}", self.reports.len())
    }

    fn rows(&self) -> Vec<Vec<String>> {
        self.reports.iter().flat_map(ReportAnswer::rows).collect()
    }
}

fn header() -> Vec<String> {
    HEADER.map(String::from).to_vec()
}

impl ReportAnswer {
    fn rows(&self) -> Vec<Vec<String>> {
        let cells = |cells: [&str; 4]| {
            [&[self.name.clone()][..], &cells.map(|cell| EscapedText(cell).to_string())[..]].concat()
        };
        if self.claims.is_empty() {
            return vec![cells([&self.title, "-", "-", self.outcome.words()])];
        }
        let row = |claim: &ClaimAnswer| {
            cells([&claim.claim, &claim.published(), &claim.measured(), claim.outcome.words()])
        };
        self.claims.iter().map(row).collect()
    }

    /// What is said of machine, workload and result.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.cannot.is_none() {
            lines.push(format!("Machine {}, workload `{}`.", self.machine, self.workload));
        }
        lines.extend(self.cannot.iter().map(|why| format!("Cannot be said: {why}")));
        lines.extend(self.departs.iter().map(|departs| format!("Departs: {departs}")));
        lines.extend(self.claims.iter().map(ClaimAnswer::line));
        let told = |left: &PartialReport| format!("partial: {} of {} claims", left.judged, left.wanted);
        lines.extend(self.partial.as_ref().map(told));
        lines.extend(self.notes.iter().cloned());
        lines
    }

    fn commands(&self) -> Vec<String> {
        let mut commands = Vec::new();
        for claim in &self.claims {
            commands.push(claim.command.clone());
            commands.extend(claim.commit.iter().map(|commit| commit.command.clone()));
        }
        commands
    }
}

impl ClaimAnswer {
    fn published(&self) -> String {
        let memory = if self.published.remembered { " (from memory)" } else { "" };
        let (Some([from, to]), Some(ratio)) = (self.published.figures, self.published.ratio) else {
            let least = self.published.least.map(|least| format!(" to {} times at least", number(least)));
            return format!("{}{}{memory}", self.published.direction, least.unwrap_or_default());
        };
        match self.published.unit.as_str() {
            "" => format!("{} times{memory}", number(ratio)),
            unit => format!("{} to {} {unit}: {} times{memory}", number(from), number(to), number(ratio)),
        }
    }

    fn measured(&self) -> String {
        let Some(ratio) = self.ratio else { return "no ratio".to_string() };
        match (self.low, self.high) {
            (Some(low), Some(high)) => {
                format!("{} times ({} to {})", number(ratio), number(low), number(high))
            }
            _ => format!("{} times", number(ratio)),
        }
    }

    /// What it comes to, in a few words.
    pub fn headline(&self) -> String {
        format!("{}: {}, {}", EscapedText(&self.claim), self.measured(), self.outcome.words())
    }

    /// The claim's result in a sentence or two.
    fn line(&self) -> String {
        let [before, after] = &self.kernels;
        let [from, to] = self.means.map(number);
        let mut line = format!(
            "{}: {} is {from} on {before} and {to} on {after}, means of {} runs each; {}.",
            self.claim,
            self.metric,
            self.runs,
            self.compared.words()
        );
        line += &self.kinds.iter().map(|told| format!(" {told}.")).collect::<String>();
        line += &self.not_modelled.as_ref().map_or(String::new(), |told| format!(" Note: {told}."));
        let Some(commit) = &self.commit else { return line };
        line += &match (&commit.found, commit.finding) {
            (_, None) => format!(" The published commit {} was not searched for.", commit.published),
            (Some(found), _) if commit.candidates <= 1 => {
                format!(" Only {found} lies between the two: nothing was searched for.")
            }
            (Some(found), _) if *found == commit.published => {
                format!(" A search among {} commits names {found}, as published.", commit.candidates)
            }
            (Some(found), _) => {
                format!(" A search names {found}, and not the published {}.", commit.published)
            }
            (None, Some(finding)) => {
                format!(" A search for the published commit {} ends with '{finding}'.", commit.published)
            }
        };
        line
    }
}
