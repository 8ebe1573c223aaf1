//! docs/generations.md is what the change log says; `BLESS=1 cargo test -p fairlab-kernel --test it generations_page` writes it.

use std::fmt::Write;
use std::path::Path;

use fairlab_kernel::Generation;
use fairlab_kernel::generation::{BUILDS, ChangeEffect, Feature, FeatureSupport, LOG, LoggedCommit};

fn page() -> String {
    let mut page = String::from(
        "# Generations\n\nGenerated from the change log (`crates/kernel/src/generation/`); a test keeps it fresh.\n\n\
         A kernel's name is a release, a build or a commit (the tree after it), then `+COMMIT`, `-COMMIT`, `+FEATURE`,\n\
         `+NO_FEATURE` and `,tunable=ns`. `fairlab kernels diff A B` says what differs.\n",
    );
    let releases = Generation::releases();
    let _ = write!(page, "\nReleases: {} to {}.\n\n## Builds\n\n", releases[0], releases[releases.len() - 1]);
    page += "| name | what it is | base | with | without |\n|---|---|---|---|---|\n";
    for build in BUILDS {
        let with = build.with.join(" ");
        let without = build.without.join(" ");
        let _ =
            writeln!(page, "| `{}` | {} | {} | {with} | {without} |", build.name, build.about, build.base);
    }
    let (known, modelled) = LOG.iter().partition::<Vec<&LoggedCommit>, _>(|change| is_left_out(change));
    page += "\n## Changes\n\nIn git's order; a date with `?` and the place are from memory.\n\n";
    page += &changes(&modelled);
    page += "\n## Known, but not modelled\n\n";
    page += &changes(&known);
    page += "\n## Features\n\n| feature | the model acts on it |\n|---|---|\n";
    for feature in Feature::ALL {
        let support =
            if feature.support() == FeatureSupport::Modelled { "yes" } else { "no: only its default" };
        let _ = writeln!(page, "| {feature} | {support} |");
    }
    page
}

fn is_left_out(change: &LoggedCommit) -> bool {
    !change.is_modelled() && change.left_out().is_some()
}

fn changes(changes: &[&LoggedCommit]) -> String {
    let mut page = "| commit | name | first in | committed | subject | effect |\n|---|---|---|---|---|---|\n"
        .to_string();
    for change in changes {
        let release = change.release.map_or("never merged".to_string(), |release| release.to_string());
        let left_out = change.left_out().map(ChangeEffect::describe);
        let effect = match (change.groundwork(), left_out) {
            (Some(why), _) => format!("alters no decision: {why}"),
            (None, None) => "modelled".to_string(),
            (None, Some(left_out)) if change.is_modelled() => format!("modelled in part; {left_out}"),
            (None, Some(left_out)) => left_out,
        };
        let _ = writeln!(
            page,
            "| {} | `{}` | {release} | {} | {} | {effect} |",
            change.commit,
            change.name,
            change.date.map_or(String::new(), |date| date.to_string()),
            change.subject
        );
    }
    page
}

#[test]
#[expect(clippy::disallowed_methods, reason = "BLESS says that the page is to be written")]
fn the_page_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/generations.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, page()).expect("written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/generations.md is stale: BLESS=1 cargo test -p fairlab-kernel --test it generations_page"
    );
}
