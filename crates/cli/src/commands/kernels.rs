//! `fairlab kernels`: what generations there are, and what they are made of.

mod built;

use fairlab_kernel::Generation;
use fairlab_kernel::generation::{BUILDS, Feature, FeatureSupport, LOG, LoggedCommit, Tunable};
use fairlab_lab::LabError;
use serde_json::{Value, json};

use crate::args::{AnswerFormat, KernelsCommand};
use crate::error::CliError;
use crate::output;
use crate::provenance::described;

pub fn execute(command: KernelsCommand) -> Result<(), CliError> {
    match command {
        KernelsCommand::List { built: true, format } => built::list(format.format),
        KernelsCommand::List { built: false, format } => list(format.format),
        KernelsCommand::Build(args) => built::execute(&args),
        KernelsCommand::Remove { name, format } => built::take_away(&name, format.format),
        KernelsCommand::Show { kernel, cpus, format } => show(&parse(&kernel)?, cpus, format.format),
        KernelsCommand::Diff { one, other, format } => diff(&parse(&one)?, &parse(&other)?, format.format),
        KernelsCommand::Log(args) => log(args.format),
    }
}

fn parse(name: &str) -> Result<Generation, CliError> {
    Ok(Generation::asked_for(name).map_err(LabError::from)?)
}

fn list(format: AnswerFormat) -> Result<(), CliError> {
    let releases = Generation::releases();
    if format == AnswerFormat::Json {
        let names = releases.iter().map(ToString::to_string).collect::<Vec<_>>();
        return output::answer_json(
            &described(),
            json!({
                "schema": "fairlab/kernels/1",
                "releases": names,
                "changes": LOG.iter().map(change_json).collect::<Vec<_>>(),
            }),
        );
    }
    let mut text = format!("Releases: {} to {}\n\nBuilds:\n", releases[0], releases[releases.len() - 1]);
    for build in BUILDS {
        text += &format!("  {:<12} {}\n", build.name, build.about);
    }
    text += "\nChanges (each names the tree after it; +NAME adds one to a kernel, -NAME takes one out):\n";
    text += &lines_of(LOG.iter().filter(|change| !left_out(change)));
    text += "\nKnown, but not modelled:\n";
    text += &lines_of(LOG.iter().filter(|change| left_out(change)));
    text += "\nFeatures: +FEATURE and +NO_FEATURE; tunables: ,NAME=NS. 'fairlab kernels show K' lists them.\n\
         Kernels built from sources: 'fairlab kernels list --built'.\n";
    output::answer(&described(), &text)
}

/// Whether a change alters decisions of a real kernel, but none here.
fn left_out(change: &LoggedCommit) -> bool {
    !change.is_modelled() && change.left_out().is_some()
}

fn lines_of<'c>(changes: impl Iterator<Item = &'c LoggedCommit>) -> String {
    let line =
        |change: &LoggedCommit| format!("  {:<12}  {:<23} {}\n", change.commit, change.name, change.subject);
    changes.map(line).collect()
}

fn log(format: AnswerFormat) -> Result<(), CliError> {
    if format == AnswerFormat::Json {
        let changes = LOG.iter().map(change_json).collect::<Vec<_>>();
        return output::answer_json(
            &described(),
            json!({ "schema": "fairlab/kernels/1", "changes": changes }),
        );
    }
    let mut text =
        "Oldest first, as git has them. A date with '?': it and the place are from memory.\n\n".to_string();
    for change in LOG.iter() {
        let release = change.release.map_or("never merged".to_string(), |release| release.to_string());
        let commit = if change.commit.is_empty() { "(commit unknown)" } else { change.commit };
        let date = change.date.map_or(String::new(), |date| format!("{date} "));
        text += &format!("{commit} {release} {date}{} ({})\n", change.subject, change.name);
        for effect in effects(change) {
            text += &format!("    {effect}\n");
        }
    }
    output::answer(&described(), &text)
}

fn change_json(change: &LoggedCommit) -> Value {
    json!({
        "commit": change.commit,
        "name": change.name,
        "release": change.release.map(|release| release.to_string()),
        "date": change.date.map(|date| date.text),
        "dated_by": change.date.map(|date| date.by.name()),
        "subject": change.subject,
        "modelled": change.is_modelled(),
        "effects": effects(change),
    })
}

/// The fixes that a commit's own tree lacks, by their ids.
fn own_tree_lacks(change: &LoggedCommit) -> Vec<&'static str> {
    change.absent_fixes().map(LoggedCommit::id).collect()
}

/// What a line of commits cannot show: which fixes of earlier releases a commit's own tree lacks.
pub(super) fn own_tree_note(change: &LoggedCommit) -> Option<String> {
    let fixes = change.absent_fixes().collect::<Vec<_>>();
    let (first, last) = (fixes.first()?.release?, fixes.last()?.release?);
    let releases = if first == last { first.to_string() } else { format!("{first} to {last}") };
    let date = change.date.map_or(String::new(), |date| format!(" ({date})"));
    let ids = fixes
        .iter()
        .map(|fix| format!("{} ({})", fix.id(), fix.date.map_or(String::new(), |date| date.to_string())));
    Some(format!(
        "the tree of {}{date} itself lacks later fixes of {releases}, which this kernel holds: {}",
        change.id(),
        ids.collect::<Vec<_>>().join(", ")
    ))
}

fn effects(change: &LoggedCommit) -> Vec<String> {
    change.effects.iter().map(|effect| effect.describe()).collect()
}

/// What a kernel is made of, as lines `section / name = value`.
fn properties(kernel: &Generation, cpus: usize) -> Vec<(&'static str, String, String)> {
    let mut lines = Vec::new();
    let has_server = kernel.tunables.has(Tunable::FairServerRuntime);
    let server = if has_server { kernel.server.describe() } else { Vec::new() };
    let rules = [
        kernel.fair.describe_with(kernel.features),
        kernel.frequency.describe(),
        kernel.core.describe(),
        kernel.rt.describe(),
        server,
        kernel.preemption.describe(),
    ];
    for (section, rules) in [
        ("domains", kernel.domain.describe()),
        ("balancing", kernel.balance.describe()),
        ("rule", rules.concat()),
        ("wakeup rule", kernel.select.describe()),
        ("group rule", kernel.groups.describe()),
        ("bandwidth rule", kernel.bandwidth.describe()),
        ("load tracking rule", kernel.pelt.describe()),
    ] {
        lines.extend(rules.into_iter().map(|(point, rule)| (section, point.to_string(), rule.to_string())));
    }
    for &feature in Feature::ALL.iter().filter(|&&feature| kernel.features.has(feature)) {
        let state = if kernel.features.enabled(feature) { "on" } else { "off" };
        let support = if feature.support() != FeatureSupport::Modelled { " (not modelled)" } else { "" };
        lines.push(("feature", feature.name().to_string(), format!("{state}{support}")));
    }
    for &tunable in Tunable::ALL {
        if let Some(value) = kernel.tunables.effective(tunable, cpus) {
            lines.push(("tunable", tunable.name().to_string(), value.to_string()));
        }
    }
    lines
}

fn show(kernel: &Generation, cpus: usize, format: AnswerFormat) -> Result<(), CliError> {
    if cpus == 0 {
        return Err(CliError::bad("tunables cannot be scaled for 0 CPUs", "give --cpus 1 or more"));
    }
    let lines = properties(kernel, cpus);
    if format == AnswerFormat::Json {
        let section = |wanted: &str| {
            let fields = lines.iter().filter(|(section, ..)| *section == wanted);
            fields.map(|(_, name, value)| (name.clone(), json!(value))).collect::<serde_json::Map<_, _>>()
        };
        return output::answer_json(
            &described(),
            json!({
                "schema": "fairlab/kernel/1",
                "name": kernel.name(),
                "own_tree_lacks": kernel.base_commit().map(own_tree_lacks),
                "changes": kernel.changes().map(change_json).collect::<Vec<_>>(),
                "rules": section("rule"),
                "wakeup_rules": section("wakeup rule"),
                "balancing_rules": section("balancing"),
                "domains": section("domains"),
                "group_rules": section("group rule"),
                "bandwidth_rules": section("bandwidth rule"),
                "load_tracking_rules": section("load tracking rule"),
                "features": section("feature"),
                "tunables": section("tunable"),
            }),
        );
    }
    let mut text = format!("{}\n", kernel.name());
    if let Some(note) = kernel.base_commit().and_then(own_tree_note) {
        text += &format!("note: {note}\n");
    }
    for (title, wanted) in [
        ("Rules", "rule"),
        ("Rules of where a task wakes", "wakeup rule"),
        ("Rules of balancing", "balancing"),
        ("Rules for groups", "group rule"),
        ("Rules of bandwidth control", "bandwidth rule"),
        ("Rules of load tracking", "load tracking rule"),
        ("Domains", "domains"),
        ("Features", "feature"),
        ("Tunables", "tunable"),
    ] {
        text += &format!(
            "\n{title}{}:\n",
            if wanted == "tunable" { format!(" (ns, on {cpus} CPUs)") } else { String::new() }
        );
        for (_, name, value) in lines.iter().filter(|(section, ..)| *section == wanted) {
            text += &format!("  {name:<26} {value}\n");
        }
    }
    let or_none = |lines: String| if lines.is_empty() { "  none\n".to_string() } else { lines };
    text += &format!("\nChanges on top of {}:\n", Generation::releases()[0]);
    text += &or_none(lines_of(kernel.changes().filter(|change| !left_out(change))));
    text += "\nChanges that it holds and the model leaves out:\n";
    text += &or_none(lines_of(kernel.changes().filter(|change| left_out(change))));
    output::answer(&described(), &text)
}

fn diff(one: &Generation, other: &Generation, format: AnswerFormat) -> Result<(), CliError> {
    const CPUS: usize = 8;
    let (left, right) = (properties(one, CPUS), properties(other, CPUS));
    let value_in = |lines: &[(&'static str, String, String)], section: &str, name: &str| {
        lines.iter().find(|line| line.0 == section && line.1 == name).map(|line| line.2.clone())
    };
    let mut names = left.iter().map(|line| (line.0, line.1.clone())).collect::<Vec<_>>();
    names.extend(
        right
            .iter()
            .map(|line| (line.0, line.1.clone()))
            .filter(|key| value_in(&left, key.0, &key.1).is_none()),
    );
    let rows = names.into_iter().filter_map(|(section, name)| {
        let (before, after) = (value_in(&left, section, &name), value_in(&right, section, &name));
        (before != after).then_some((section, name, before, after))
    });
    let rows = rows.collect::<Vec<_>>();
    let only = |these: &Generation, those: &Generation| {
        let theirs = those.changes().map(LoggedCommit::id).collect::<Vec<_>>();
        these.changes().filter(|change| !theirs.contains(&change.id())).collect::<Vec<_>>()
    };
    let (removed, added) = (only(one, other), only(other, one));
    if format == AnswerFormat::Json {
        let fields = rows.iter().map(|(section, name, before, after)| {
            json!({ "section": section, "name": name, "a": before, "b": after })
        });
        return output::answer_json(
            &described(),
            json!({
                "schema": "fairlab/kernel-diff/1",
                "a": one.name(),
                "b": other.name(),
                "differences": fields.collect::<Vec<_>>(),
                "changes_only_in_a": removed.iter().map(|change| change_json(change)).collect::<Vec<_>>(),
                "changes_only_in_b": added.iter().map(|change| change_json(change)).collect::<Vec<_>>(),
            }),
        );
    }
    let mut text = String::new();
    for (sign, changes) in [('-', &removed), ('+', &added)] {
        for change in changes {
            let left_out = if left_out(change) { " (not modelled)" } else { "" };
            text += &format!("{sign} {}  {}{left_out}\n", change.id(), change.subject);
        }
    }
    for (section, name, before, after) in &rows {
        text += &format!("\n{section} {name}\n");
        text += &format!("  - {}\n", before.as_deref().unwrap_or("absent"));
        text += &format!("  + {}\n", after.as_deref().unwrap_or("absent"));
    }
    if text.is_empty() {
        text = format!("{} and {} do not differ\n", one.name(), other.name());
    }
    output::answer(&described(), &text)
}
