//! A watch in words, from its answer as JSON: what an earlier one left can be told, too.
//!
//! Must not know: how anything was found.

use fairlab_event::{EscapedText, escaped};
use fairlab_files::shell::line_of;
use fairlab_watch::Catalogue;
use serde_json::{Value, json};

use crate::numbers::{metric, significant};
use crate::output;

/// What is told of each finding.
const HEADER: [&str; 7] = ["commit", "release", "case", "metric", "before", "after", "ratio, 95 % interval"];

fn words<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// The elements of a list; none of what is no list.
pub fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The commit at which a finding stands: the last that leads there.
pub fn commit_of(finding: &Value) -> &str {
    elements(&finding["steps"]).last().map_or("", |step| words(step, "commit"))
}

fn findings(answer: &Value) -> impl Iterator<Item = &Value> {
    elements(&answer["findings"]).iter()
}

/// The findings that are told.
pub fn confirmed(answer: &Value) -> Vec<&Value> {
    findings(answer).filter(|finding| finding["confirmed"] == true).collect()
}

/// `155 us`
fn mean(finding: &Value, side: usize) -> String {
    let name = words(finding, "metric");
    finding["fresh"]["means"][side].as_f64().map_or("-".to_string(), |mean| metric(name, mean))
}

/// `0.52 (0.47 to 0.58)`
pub fn ratio(finding: &Value) -> String {
    let number = |key: &str| finding["fresh"][key].as_f64().map_or("-".to_string(), significant);
    format!("{} ({} to {})", number("ratio"), number("low"), number("high"))
}

fn row(finding: &Value) -> Vec<String> {
    let release = elements(&finding["steps"]).last().map_or("", |step| words(step, "release"));
    let cells =
        [commit_of(finding), release, words(finding, "case"), words(finding, "metric")].map(String::from);
    let cells = cells.into_iter().chain([mean(finding, 0), mean(finding, 1), ratio(finding)]);
    cells.collect()
}

/// What stands before the findings.
fn head(answer: &Value) -> String {
    let count = |key: &str| elements(&answer[key]).len();
    let mut text = String::new();
    if answer["partial"] == true {
        text += "partial: stopped before the end; the same command goes on\n";
    }
    text + &format!(
        "{}: {} kernels, {} cases, {} runs, {} questions\n",
        EscapedText(words(answer, "range")),
        count("kernels"),
        count("cases"),
        answer["runs"],
        answer["questions"],
    )
}

/// What stands behind them.
fn tail(answer: &Value) -> String {
    let (found, sure) = (findings(answer).count(), confirmed(answer).len());
    let mut text = format!("{sure} changes, each found for sure and confirmed by fresh runs");
    if found > sure {
        text += &format!("; {} more were found and not confirmed", found - sure);
    }
    text += "; at most 5 % of what was found is chance\n";
    if let Some(open @ 1..) = answer["undecided"].as_u64() {
        text += &format!(
            "{open} of {} questions are undecided: a difference there would take more runs to show, or runs without --quick\n",
            answer["questions"]
        );
    }
    for skipped in elements(&answer["skipped"]) {
        text += &format!(
            "left out: {}: {}\n",
            EscapedText(words(skipped, "case")),
            EscapedText(words(skipped, "why"))
        );
    }
    text
}

/// The findings as a table, worse and better apart.
pub fn to_text(answer: &Value) -> String {
    let mut text = head(answer);
    for verdict in ["worse", "better", "changed"] {
        let rows =
            confirmed(answer).into_iter().filter(|finding| words(finding, "verdict") == verdict).map(row);
        let rows = rows.collect::<Vec<_>>();
        if !rows.is_empty() {
            text += &format!("\n{verdict}\n{}", output::table(&HEADER, &rows));
        }
    }
    text + "\n" + &tail(answer)
}

/// The findings as tables of Markdown, each with its sentence and its command.
pub fn to_markdown(answer: &Value) -> String {
    let mut text = head(answer);
    for verdict in ["worse", "better", "changed"] {
        let its = confirmed(answer).into_iter().filter(|finding| words(finding, "verdict") == verdict);
        let rows = its.map(row).collect::<Vec<_>>();
        if rows.is_empty() {
            continue;
        }
        text += &format!("\n## {verdict}\n\n| {} |\n|---|---|---|---|---:|---:|---:|\n", HEADER.join(" | "));
        for row in rows {
            let cells = row.iter().map(|cell| escaped::markdown(cell)).collect::<Vec<_>>();
            text += &format!("| {} |\n", cells.join(" | "));
        }
    }
    text + "\n" + &tail(answer)
}

/// The cases of a catalogue, and what is none.
pub fn list(catalogue: &Catalogue) -> String {
    let row = |case: &fairlab_watch::WatchCase| {
        vec![case.name.clone(), case.machine.clone(), case.metrics.join(" "), case.title.clone()]
    };
    let rows = catalogue.cases.iter().map(row).collect::<Vec<_>>();
    let mut text = output::table(&["case", "machine", "metrics", "what"], &rows);
    for skipped in &catalogue.skipped {
        text += &format!("left out: {}: {}\n", EscapedText(&skipped.case), EscapedText(&skipped.why));
    }
    text
}

/// The same for programs.
pub fn list_json(catalogue: &Catalogue) -> Value {
    let case = |case: &fairlab_watch::WatchCase| {
        json!({
            "name": case.name,
            "title": case.title,
            "source": case.source,
            "machine": case.machine,
            "workload": line_of(&case.workload),
            "duration_ns": case.duration.0,
            "warmup_ns": case.warmup.map(|warmup| warmup.0),
            "metrics": case.metrics,
            "margin": case.margin,
        })
    };
    json!({
        "schema": "fairlab/catalogue/1",
        "cases": catalogue.cases.iter().map(case).collect::<Vec<_>>(),
        "skipped": catalogue.skipped,
    })
}

/// `schbench switches_per_work 1.04 (1.03 to 1.05), worse`
pub fn sentence(finding: &Value) -> String {
    let [case, metric, verdict] = ["case", "metric", "verdict"].map(|key| words(finding, key));
    format!("{case} {metric} {}, {verdict}", ratio(finding))
}
