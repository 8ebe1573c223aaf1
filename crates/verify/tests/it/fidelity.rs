//! The gate: agreement with the recordings in testdata may rise, never fall.
//!
//! `BLESS=1 cargo test -p fairlab-verify --test it fidelity` writes the figures that were reached, here and on the page, unless
//! one has fallen. A figure that was too high by mistake is taken out of the file by hand.

use std::path::{Path, PathBuf};
use std::{env, fs};

use fairlab_kernel::Generation;
use fairlab_verify::fidelity::{FidelityFigures, measure, page};
use fairlab_verify::{Agreement, DecisionKind, VerifyOptions, verify};

const BLESS: &str = "BLESS=1 cargo test -p fairlab-verify --test it fidelity";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn recordings() -> PathBuf {
    root().join("testdata/recordings")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn agreement(name: &str, kernel: &str) -> Agreement {
    let generation = kernel.parse::<Generation>().unwrap_or_else(|error| panic!("{kernel}: {error}"));
    let options = VerifyOptions { misses: 3, ..VerifyOptions::default() };
    verify(&recordings().join(name), &generation, &options).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn agreement_does_not_fall() {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let fidelity = measure(&recordings(), jobs).expect("recordings");
    let failed = fidelity.unreadable().chain(fidelity.unknown());
    assert_eq!(
        failed.map(|(name, error)| format!("{name}: {error}")).collect::<Vec<_>>(),
        Vec::<String>::new()
    );
    let now = fidelity.figures();
    let path = recordings().join("figures.tsv");
    let before = FidelityFigures::parse(&fs::read_to_string(&path).unwrap_or_default()).expect("figures");
    let falls = now.falls_from(&before).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(falls.is_empty(), "the model agrees less than it did:\n{}", falls.join("\n"));
    if env::var_os("BLESS").is_some() {
        fs::write(&path, now.to_text()).expect("written");
        let page_path = root().join("docs/fidelity.md");
        let new = page::replace(&read(&page_path), "shipped", &page::markdown(&now)).expect("marks");
        fs::write(page_path, new).expect("written");
    }
    let is_new = |name: &str| !before.rows.iter().any(|row| row.recording == name);
    let new = now.rows.iter().map(|row| row.recording.as_str()).find(|name| is_new(name));
    assert!(new.is_none() || env::var_os("BLESS").is_some(), "{new:?} has no figures yet: {BLESS}");
}

#[test]
fn the_page_has_the_figures() {
    let figures = FidelityFigures::parse(&read(&recordings().join("figures.tsv"))).expect("figures");
    let written = read(&root().join("docs/fidelity.md"));
    let fresh = page::replace(&written, "shipped", &page::markdown(&figures)).expect("marks");
    assert!(written == fresh, "docs/fidelity.md does not show testdata/recordings/figures.tsv: {BLESS}");
}

/// Misses a kind, a share of what was judged of it.
fn missed_share(agreement: &Agreement, kind: DecisionKind) -> f64 {
    let tally = agreement.kind(kind).expect("every kind is there");
    let missed = tally.all.missed();
    missed as f64 / tally.all.judged.max(1) as f64
}

/// A recording and a kernel that is not its own: in which kinds of decision that shows.
const FOREIGN: [(&str, &str, &str, &[DecisionKind]); 6] = [
    (
        "6.12-nice-2-probed",
        "debian-6.12",
        "debian-6.1",
        &[DecisionKind::Placement, DecisionKind::Pick, DecisionKind::TickPreempt],
    ),
    ("6.12-nice-2-probed", "debian-6.12", "v6.6", &[DecisionKind::Placement, DecisionKind::WakeupPreempt]),
    ("6.1-forkstorm-4-probed", "debian-6.1", "v6.6", &[DecisionKind::Placement, DecisionKind::Pick]),
    ("5.10-nice-2-probed", "debian-5.10", "debian-6.12", &[DecisionKind::Pick, DecisionKind::TickPreempt]),
    ("7.2-nice-2-probed", "debian-7.2", "debian-6.12", &[DecisionKind::TickPreempt]),
    ("7.2-nice-2-probed", "debian-7.2", "debian-5.10", &[DecisionKind::Pick, DecisionKind::TickPreempt]),
];

#[test]
fn another_kernels_rules_score_clearly_lower() {
    for (name, own, foreign, kinds) in FOREIGN {
        let (own, foreign) = (agreement(name, own), agreement(name, foreign));
        for &kind in kinds {
            let (right, wrong) = (missed_share(&own, kind), missed_share(&foreign, kind));
            assert!(
                wrong > 0.02 && wrong > 10.0 * right,
                "{name}, {}: {} misses {right:.4} of what is judged, {} misses {wrong:.4}",
                kind.name(),
                own.kernel,
                foreign.kernel
            );
        }
    }
}
