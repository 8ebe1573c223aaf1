//! `fairlab compare --explain`: why tasks wait differently.

use std::collections::BTreeMap;

use fairlab_change::causes::per_second;
use fairlab_event::{EscapedText, escaped};
use fairlab_lab::answer::causes::{
    CauseAnswer, CausesAnswer, HeldAnswer, PartingAnswer, ScopeAnswer, TallyAnswer, WaitSelection, WorkAnswer,
};

use crate::args::PageStyle;

/// How many causes of a scope are shown; JSON has them all.
const CAUSES_SHOWN: usize = 8;

/// How many tasks and queues are shown of the state.
const SUBJECTS_SHOWN: usize = 8;

/// How many kinds of wakeups and of tries are shown.
const TALLIES_SHOWN: usize = 4;

/// Kinds of wakeups and tries whose rates differ by less than this share are not shown.
const TALLY_SHARE: f64 = 0.05;

/// For people.
pub fn to_text(answers: &[CausesAnswer], page: PageStyle) -> String {
    answers.iter().map(|answer| one(answer, page)).collect()
}

fn one(answer: &CausesAnswer, page: PageStyle) -> String {
    let mut text =
        format!("\nwhy {} differs from {}\n", EscapedText(&answer.kernel), EscapedText(&answer.baseline));
    text += &page.prose(&headline(answer));
    for scope in answer.scopes.iter().filter(is_shown) {
        text += &page.prose(&sentences(scope));
        let rows = rows(scope).map(cells).collect::<Vec<_>>();
        // The others are parts of it: JSON has their tables.
        if !rows.is_empty() && scope.waits == WaitSelection::All {
            text += &format!("\n{}", page.fitted(&header(answer), 1, &rows));
        }
    }
    text += &tallies("wakeups a second", answer, &answer.placements, page);
    text += &tallies("tries of balancing a second", answer, &answer.balancing, page);
    text += &work(answer, page);
    if let Some(parting) = &answer.difference {
        text += &parting_text(answer, parting, page);
    }
    for notice in &answer.notices {
        text += &format!("note: {notice}\n");
    }
    text
}

/// The sentences alone.
pub fn sentences_of(answer: &CausesAnswer) -> String {
    let scopes = answer.scopes.iter().filter(is_shown).map(sentences).collect::<String>();
    format!("{}{scopes}", headline(answer)).replace("\n\n", "\n").trim_start().to_string()
}

/// Names that wait alike are many: JSON has them.
fn is_shown(scope: &&ScopeAnswer) -> bool {
    scope.waits != WaitSelection::Named || scope.sure
}

/// What differs most.
fn headline(answer: &CausesAnswer) -> String {
    let told =
        answer.headline.iter().map(|sentence| format!("{}.\n", capital(&EscapedText(sentence).to_string())));
    format!("\n{}", told.collect::<String>())
}

fn sentences(scope: &ScopeAnswer) -> String {
    let sentence = |sentence: &String| format!("{}.\n", capital(&EscapedText(sentence).to_string()));
    format!("\n{}", scope.sentences.iter().map(sentence).collect::<String>())
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn rows(scope: &ScopeAnswer) -> impl Iterator<Item = &CauseAnswer> {
    let chance_known = scope.added.p.is_some();
    let is_told = move |cause: &&CauseAnswer| cause.added.mean != 0.0 && (cause.sure || !chance_known);
    scope.causes.iter().filter(is_told).take(CAUSES_SHOWN)
}

fn header(answer: &CausesAnswer) -> [&str; 5] {
    ["waiting", &answer.baseline, &answer.kernel, "more", "95 % interval"]
}

fn cells(cause: &CauseAnswer) -> Vec<String> {
    let interval = match (cause.added.low, cause.added.high) {
        (Some(low), Some(high)) => format!("{} .. {}", per_second(low), per_second(high)),
        _ => "-".to_string(),
    };
    vec![
        cause.words.clone(),
        per_second(cause.baseline_ns_per_s),
        per_second(cause.ns_per_s),
        per_second(cause.added.mean),
        interval,
    ]
}

fn tallies(what: &str, answer: &CausesAnswer, tallies: &[TallyAnswer], page: PageStyle) -> String {
    let differs = |tally: &&TallyAnswer| {
        let most = tally.per_s.max(tally.baseline_per_s);
        (tally.per_s - tally.baseline_per_s).abs() > TALLY_SHARE * most
    };
    let rows = tallies.iter().filter(differs).take(TALLIES_SHOWN);
    let rows = rows.map(|tally| {
        let rate = |rate: f64| format!("{rate:.1}");
        vec![tally.words.clone(), rate(tally.baseline_per_s), rate(tally.per_s)]
    });
    let rows = rows.collect::<Vec<_>>();
    match rows.is_empty() {
        true => String::new(),
        false => format!("\n{}", page.fitted(&[what, &answer.baseline, &answer.kernel], 1, &rows)),
    }
}

/// What the scheduler itself was busy with.
fn work(answer: &CausesAnswer, page: PageStyle) -> String {
    let times = |work: &&WorkAnswer| work.baseline_ns_per_s + work.ns_per_s > 0.0;
    let row = |work: &WorkAnswer| {
        vec![
            work.words.clone(),
            per_second(work.baseline_ns_per_s),
            per_second(work.ns_per_s),
            format!("{:.0}", work.baseline_units_per_s),
            format!("{:.0}", work.units_per_s),
            work.unit.clone(),
        ]
    };
    let rows = answer.work.iter().filter(times).map(row).collect::<Vec<_>>();
    match rows.is_empty() {
        true => String::new(),
        false => {
            let header =
                ["the scheduler's own work", &answer.baseline, &answer.kernel, "a second", "a second", "of"];
            format!("\n{}", page.fitted(&header, 1, &rows))
        }
    }
}

fn parting_text(answer: &CausesAnswer, parting: &PartingAnswer, page: PageStyle) -> String {
    let mut text = format!(
        "\nfirst decision that differs, in exact runs with seed {}: at {:.6} s on CPU {}\n",
        parting.seed,
        parting.time_ns as f64 / 1e9,
        parting.cpu
    );
    let sides = [
        (&answer.baseline, &parting.baseline, &parting.baseline_decisions),
        (&answer.kernel, &parting.kernel, &parting.decisions),
    ];
    for (name, does, decisions) in sides {
        text += &format!("  {}: {}\n", EscapedText(name), EscapedText(does));
        for decision in decisions {
            text += &format!("    {}\n", EscapedText(decision));
        }
    }
    text += &state(parting, page);
    text + &format!("again: {}\n", EscapedText(&parting.command))
}

/// What both held: a row a task or queue. Where they differ, both values stand, the baseline's first.
fn state(parting: &PartingAnswer, page: PageStyle) -> String {
    let mut members = Vec::<&str>::new();
    let mut subjects = Vec::<(&str, BTreeMap<&str, String>)>::new();
    for HeldAnswer { member, baseline, kernel } in &parting.state {
        let (subject, member) = member.rsplit_once(' ').unwrap_or((member, ""));
        let value = if baseline == kernel { baseline.clone() } else { format!("{baseline} / {kernel}") };
        if !members.contains(&member) {
            members.push(member);
        }
        match subjects.iter_mut().find(|(known, _)| *known == subject) {
            Some((_, values)) => drop(values.insert(member, value)),
            None => subjects.push((subject, BTreeMap::from([(member, value)]))),
        }
    }
    let (queues, tasks): (Vec<_>, Vec<_>) =
        subjects.into_iter().partition(|(name, _)| name.starts_with("CPU "));
    [queues, tasks].iter().map(|subjects| state_table(subjects, &members, page)).collect()
}

fn state_table(subjects: &[(&str, BTreeMap<&str, String>)], members: &[&str], page: PageStyle) -> String {
    if subjects.is_empty() {
        return String::new();
    }
    let held = |member: &&&str| subjects.iter().any(|(_, values)| values.contains_key(**member));
    let members = members.iter().filter(held).copied().collect::<Vec<_>>();
    let header = std::iter::once("just before").chain(members.iter().copied()).collect::<Vec<_>>();
    let row = |(subject, values): &(&str, BTreeMap<&str, String>)| {
        let value = |member: &&str| values.get(member).map_or("-", String::as_str).to_string();
        std::iter::once(EscapedText(subject).to_string()).chain(members.iter().map(value)).collect::<Vec<_>>()
    };
    let rows = subjects.iter().take(SUBJECTS_SHOWN).map(row).collect::<Vec<_>>();
    let more = match subjects.len().saturating_sub(SUBJECTS_SHOWN) {
        0 => String::new(),
        more => format!("and {more} more, which JSON has\n"),
    };
    format!("\n{}{more}", page.fitted(&header, 1, &rows))
}

/// As Markdown.
pub fn to_markdown(answers: &[CausesAnswer]) -> String {
    let mut text = String::new();
    for answer in answers {
        text += &format!(
            "## Why {} differs from {}\n\n",
            escaped::markdown(&answer.kernel),
            escaped::markdown(&answer.baseline)
        );
        for sentence in &answer.headline {
            text += &format!("{}. ", capital(&escaped::markdown(sentence)));
        }
        text += "\n\n";
        for scope in answer.scopes.iter().filter(is_shown) {
            for sentence in &scope.sentences {
                text += &format!("{}. ", capital(&escaped::markdown(sentence)));
            }
            let header = header(answer).map(escaped::markdown);
            text += &format!("\n\n| {} |\n|---|{}\n", header.join(" | "), "---:|".repeat(header.len() - 1));
            for cause in rows(scope) {
                let cells = cells(cause).iter().map(|cell| escaped::markdown(cell)).collect::<Vec<_>>();
                text += &format!("| {} |\n", cells.join(" | "));
            }
            text.push('\n');
        }
        for notice in &answer.notices {
            text += &format!("* {}\n", escaped::markdown(notice));
        }
    }
    text
}
