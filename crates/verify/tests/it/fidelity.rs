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
const FOREIGN: [(&str, &str, &str, &[DecisionKind]); 7] = [
    (
        "6.12-nice-2-probed",
        "debian-6.12",
        "debian-6.1",
        &[DecisionKind::Placement, DecisionKind::Pick, DecisionKind::TickPreempt],
    ),
    ("6.12-nice-2-probed", "debian-6.12", "v6.6", &[DecisionKind::Placement, DecisionKind::WakeupPreempt]),
    ("6.1-forkstorm-4-probed", "debian-6.1", "v6.6", &[DecisionKind::Placement, DecisionKind::Pick]),
    ("6.1-yield-2", "debian-6.1", "debian-6.12", &[DecisionKind::Pick, DecisionKind::TickPreempt]),
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

/// How many decisions of one case of a kind were judged, and how many of them are not missed: the weights that places hang
/// on are not shown to the last bit.
fn case(agreement: &Agreement, kind: DecisionKind, case: &str) -> (u64, u64) {
    let share = agreement.kind(kind).and_then(|tally| tally.cases.get(case)).copied().unwrap_or_default();
    (share.judged, share.judged - share.missed())
}

/// The path that pushes a group's deadline away: a newidle pull while the group's entity is still current places it at its
/// old, tiny weight; then it is charged; then its weight changes off the queue, which leaves the deadline where it is.
#[test]
fn groups_that_are_still_current_are_placed_and_reweighted_as_by_the_kernel() {
    const STILL_CURRENT: &str = "group entity, still current";
    let right = agreement("6.6.9-vhost-4", "v6.6.9");
    let (placed, right_places) = case(&right, DecisionKind::Placement, STILL_CURRENT);
    assert!(placed > 40 && placed == right_places, "{right_places} of {placed} placements are the kernel's");
    let (changed, right_places) = case(&right, DecisionKind::Reweight, "still current");
    assert!(changed > 40 && changed == right_places, "{right_places} of {changed} changes of weight");
    // A kernel that scales the deadline there, too, is told apart in both directions.
    let scaled = agreement("6.6.9-vhost-4", "v6.6.9-eab03c23c2a1+scale-deadline-off-rq");
    let (changed, shared) = case(&scaled, DecisionKind::Reweight, "still current");
    assert!(shared * 10 < changed, "{shared} of {changed} agree with deadlines scaled");
    let scaling = agreement("6.6.9noeabfix-vhost-4", "v6.6.9-eab03c23c2a1+scale-deadline-off-rq");
    let (changed, shared) = case(&scaling, DecisionKind::Reweight, "still current");
    assert!(changed > 20 && shared * 10 > changed * 9, "{shared} of {changed} agree with deadlines scaled");
    let unscaled = agreement("6.6.9noeabfix-vhost-4", "v6.6.9-eab03c23c2a1");
    let (changed, shared) = case(&unscaled, DecisionKind::Reweight, "still current");
    assert!(shared * 10 < changed, "{shared} of {changed} agree with deadlines left");
}

/// Which commit changed how a queued group is reweighted shows in the recordings of both rules.
#[test]
fn the_rule_of_reweighting_is_told_apart() {
    let right = agreement("6.6.9-vhost-4", "v6.6.9");
    let before = agreement("6.6.9-vhost-4", "v6.6.9-eab03c23c2a1");
    assert!(missed_share(&right, DecisionKind::Reweight) < 0.005);
    assert!(
        missed_share(&before, DecisionKind::Reweight) > 0.2,
        "{}",
        missed_share(&before, DecisionKind::Reweight)
    );
}

/// What was judged of a kind, and the share that agreed.
fn agreed_share(agreement: &Agreement, kind: DecisionKind) -> (u64, f64) {
    let share = agreement.kind(kind).map(|tally| tally.all).unwrap_or_default();
    (share.judged, share.agree as f64 / share.judged.max(1) as f64)
}

/// Groups that a workload makes while it is recorded are known by what markers tell of them, and by nothing else.
#[test]
fn groups_made_during_a_recording_are_told_by_markers() {
    const NAME: &str = "6.1-weights-2";
    let folder = env::temp_dir().join(format!("fairlab-untold-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    for file in fs::read_dir(recordings().join(NAME)).expect("the recording").flatten() {
        fs::copy(file.path(), folder.join(file.file_name())).expect("copied");
    }
    let packed = fs::File::open(folder.join("trace.txt.zst")).expect("the trace");
    let text = String::from_utf8(zstd::decode_all(packed).expect("unpacked")).expect("text");
    fs::remove_file(folder.join("trace.txt.zst")).expect("removed");
    let silent = text.replace("tracing_mark_write: CGROUP", "tracing_mark_write: silence");
    fs::write(folder.join("trace.txt"), silent).expect("written");
    let told = agreement(NAME, "debian-6.1");
    // A path of its own takes the place of the recordings'.
    let untold = agreement(folder.to_str().expect("a path"), "debian-6.1");
    fs::remove_dir_all(&folder).expect("removed");
    for kind in
        [DecisionKind::Placement, DecisionKind::Pick, DecisionKind::WakeupPreempt, DecisionKind::TickPreempt]
    {
        let ((judged, share), (_, without)) = (agreed_share(&told, kind), agreed_share(&untold, kind));
        assert!(judged > 200 && share > 0.98, "{kind:?}: {share} of {judged}");
        assert!(without < 0.9, "{kind:?}: {without} without markers");
    }
}
