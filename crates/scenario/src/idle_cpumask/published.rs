//! The figures of the report, and ours in its rows.
//!
//! Must not know: where ours come from.

use fairlab_kernel::schedstat::SisCounters;
use fairlab_kernel::select::Percent;

/// Clients, Hmean of MB/s with schedstat-v1r1 and with idlemask-v7r1, and the change as printed, %.
pub(super) type Hmean = (u32, f64, f64, f64);

/// tbench4 on 5.10.0-rc6; mmtests marks every change as significant.
pub(super) const HMEAN: [Hmean; 10] = [
    (1, 504.76, 500.14, -0.91),
    (2, 1001.22, 970.37, -3.08),
    (4, 1930.56, 1880.96, -2.57),
    (8, 3688.05, 3537.72, -4.08),
    (16, 6352.71, 6439.53, 1.37),
    (32, 10066.37, 10124.65, 0.58),
    (64, 12846.32, 11627.27, -9.49),
    (128, 22278.41, 22304.33, 0.12),
    (256, 21455.52, 20900.13, -2.59),
    (320, 21802.38, 21928.81, 0.58),
];

/// The counters, and what mmtests derives from them.
pub(super) const SIS: [(&str, &str, &str); 18] = [
    ("TTWU Count", "5599714302.00", "5589495123.00"),
    ("TTWU Local", "2687713250.00", "2563662550.00"),
    ("SIS Search", "5596677950.00", "5586381168.00"),
    ("SIS Domain Search", "3268344934.00", "3229088045.00"),
    ("SIS Scanned", "15909069113.00", "16568899405.00"),
    ("SIS Domain Scanned", "13580736097.00", "14211606282.00"),
    ("SIS Failures", "2944874939.00", "2843113421.00"),
    ("SIS Core Search", "262853975.00", "311781774.00"),
    ("SIS Core Hit", "185189656.00", "216097102.00"),
    ("SIS Core Miss", "77664319.00", "95684672.00"),
    ("SIS Recent Used Hit", "124265515.00", "146021086.00"),
    ("SIS Recent Used Miss", "338142547.00", "403547579.00"),
    ("SIS Recent Attempts", "462408062.00", "549568665.00"),
    ("SIS Search Efficiency", "35.18", "33.72"),
    ("SIS Domain Search Eff", "24.07", "22.72"),
    ("SIS Fast Success Rate", "41.60", "42.20"),
    ("SIS Success Rate", "47.38", "49.11"),
    ("SIS Recent Success Rate", "26.87", "26.57"),
];

/// The share of searches that failed, without the patch (SIS Failures, SIS Search).
pub(super) const FAILED: f64 = 2_944_874_939.0 / 5_596_677_950.0;

/// The share of all operations, without the patch, that was done with at least as many pairs as CPUs. Every number of clients ran
/// equally long.
pub(super) fn share_beyond_cpus(cpus: u32) -> f64 {
    let speeds = HMEAN.iter().map(|&(clients, base, ..)| (clients, base));
    let beyond = speeds.clone().filter(|&(clients, _)| clients >= cpus).map(|(_, base)| base).sum::<f64>();
    beyond / speeds.map(|(_, base)| base).sum::<f64>()
}

/// Ours, in the order of [`SIS`].
pub(super) fn rows(ttwu_count: u64, ttwu_local: u64, sis: &SisCounters) -> Vec<String> {
    let summary = sis.summary();
    let counts = [
        ttwu_count,
        ttwu_local,
        sis.search,
        sis.domain_search,
        sis.scanned,
        summary.domain_scanned,
        sis.failed,
        sis.core_search,
        summary.core_hit,
        sis.core_miss,
        sis.recent_hit,
        sis.recent_miss,
        summary.recent_attempts,
    ];
    let percents = [
        summary.search_efficiency,
        summary.domain_efficiency,
        summary.fast_success,
        summary.success,
        summary.recent_success,
    ];
    let percent = |percent: Option<Percent>| percent.map_or("-".to_string(), |percent| percent.to_string());
    counts.iter().map(|count| format!("{count}.00")).chain(percents.map(percent)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table's own means are rounded, so that its changes may differ by a hundredth.
    #[test]
    fn published_changes_are_those_of_the_published_means() {
        for (clients, base, other, change) in HMEAN {
            assert!(((other / base - 1.0) * 100.0 - change).abs() < 0.011, "{clients} clients");
        }
    }

    #[test]
    fn every_published_row_has_one_of_ours() {
        assert_eq!(rows(1, 1, &SisCounters::default()).len(), SIS.len());
    }
}
