//! The figures of the report's trace excerpt beside those of the longest wait here.
//!
//! Must not know: how a wait comes about.

use fairlab_analysis::explain::story::Story;

use super::TICK;
use crate::Report;
use crate::kworkers::{KworkerWait, ended_by_migration};

/// The figures of the report's excerpt, which shows one wait of several, beside those of the longest here.
pub(super) fn table(report: &mut Report, wait: &KworkerWait, story: Option<&Story>) {
    let us = |ns: i64| format!("{:.3} us", ns as f64 / 1000.0);
    let ended = story.map_or("-", |story| match ended_by_migration(story) {
        true => "migration of what polls",
        false => "a switch",
    });
    let rows = [
        (
            "a group's entity placed with its deadline ahead by",
            "614.400 ms",
            format!("{:.3} ms", wait.far_ahead as f64 / 1e6),
        ),
        ("lag with which the kworker is placed", "-1.150 us", wait.lag.map_or("-".to_string(), us)),
        ("ticks that pass", "4", wait.ticks(TICK).to_string()),
        ("how long it waits", "39.718 ms", format!("{:.3} ms", wait.length().as_ms_f64())),
        ("what ends it", "migration of what polls", ended.to_string()),
    ];
    report.text("The figures of the report's trace excerpt, one wait of several, and those of the longest here, on v6.6:");
    let cells =
        rows.map(|(name, published, measured)| vec![name.to_string(), published.to_string(), measured]);
    report.table(&["", "published", "v6.6"], cells.to_vec());
}
