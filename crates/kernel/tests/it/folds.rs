//! What every release and every build comes to: neither the log's order nor a new row may change one of them unseen.
//!
//! `BLESS=1 cargo test -p fairlab-kernel --test it folds` writes `testdata/folds.tsv`.

use std::fmt::Write;
use std::path::Path;

use fairlab_kernel::Generation;
use fairlab_kernel::generation::BUILDS;

/// 64 bits over all rules in words (FNV-1a).
fn digest(kernel: &Generation) -> u64 {
    let Generation { features, tunables, domain, select, groups, .. } = kernel;
    let (preemption, bandwidth, balance) = (kernel.preemption, kernel.bandwidth, kernel.balance);
    let described = [
        domain.describe(),
        select.describe(),
        groups.describe(),
        preemption.describe(),
        bandwidth.describe(),
        balance.describe(),
        kernel.pelt.describe(),
        kernel.fair.describe(),
        kernel.frequency.describe(),
        kernel.core.describe(),
        kernel.rt.describe(),
        kernel.server.describe(),
    ];
    let rules = format!("{features:?} {tunables:?} {described:?}");
    rules.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[test]
#[expect(clippy::disallowed_methods, reason = "BLESS says that the table is to be written")]
fn every_release_and_build_is_what_it_was() {
    let releases = Generation::releases().into_iter().map(|release| release.to_string());
    let mut table = String::from("kernel\trules\n");
    for name in releases.chain(BUILDS.iter().map(|build| build.name.to_string())) {
        let kernel = name.parse::<Generation>().expect("a kernel");
        let _ = writeln!(table, "{name}\t{:016x}", digest(&kernel));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/folds.tsv");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &table).expect("written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let changed = table.lines().filter(|line| !written.lines().any(|known| known == *line));
    assert!(
        written == table,
        "other rules than in testdata/folds.tsv, in {:?}: if that is meant, write it by BLESS=1 cargo test -p \
         fairlab-kernel --test it folds",
        changed.collect::<Vec<_>>()
    );
}
