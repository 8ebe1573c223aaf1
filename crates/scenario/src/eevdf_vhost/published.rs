//! What the report prints: `perf sched latency -s max` of the last good commit and of v6.6-rc7.
//!
//! Must not know: what the model does.

use crate::kworkers::{Computed, Kind};

/// A row: task, run time ms, switches, average and longest wait ms, when that began and ended, s.
type Row = (&'static str, f64, u64, f64, f64, f64, f64);

/// The last good commit.
pub(super) const GOOD: &[Row] = &[
    ("CPU 2/KVM:(2)", 5399.650, 108698, 0.003, 3.077, 544.090322, 544.093399),
    ("CPU 7/KVM:(2)", 5111.132, 69632, 0.003, 2.980, 544.690994, 544.693974),
    ("kworker/22:3-ev:723", 342.944, 63417, 0.005, 1.880, 545.235430, 545.237310),
    ("CPU 0/KVM:(2)", 8171.431, 433099, 0.003, 1.004, 547.970344, 547.971348),
    ("CPU 1/KVM:(2)", 5486.260, 258702, 0.003, 1.002, 548.782514, 548.783516),
    ("CPU 5/KVM:(2)", 4766.143, 65727, 0.003, 0.997, 545.313610, 545.314607),
    ("vhost-2268:(6)", 13206.503, 315030, 0.003, 0.989, 550.887761, 550.888749),
    ("vhost-2892:(6)", 14467.268, 214005, 0.003, 0.981, 545.213819, 545.214800),
    ("CPU 3/KVM:(2)", 5538.908, 85105, 0.003, 0.883, 547.138139, 547.139023),
    ("CPU 6/KVM:(2)", 5289.827, 72301, 0.003, 0.836, 551.094590, 551.095425),
];

/// v6.6-rc7.
pub(super) const BAD: &[Row] = &[
    ("kworker/19:2-ev:1071", 69.482, 12700, 0.050, 366.314, 54705.674294, 54706.040607),
    ("kworker/13:1-ev:184", 78.048, 14645, 0.067, 287.738, 54710.312863, 54710.600602),
    ("kworker/12:1-ev:46148", 138.488, 26660, 0.021, 147.414, 54706.133161, 54706.280576),
    ("kworker/16:2-ev:33076", 149.175, 29491, 0.026, 139.752, 54708.410845, 54708.550597),
    ("CPU 3/KVM:(2)", 1934.714, 41896, 0.007, 92.126, 54713.158498, 54713.250624),
    ("kworker/7:2-eve:17001", 68.164, 11820, 0.045, 69.717, 54707.100903, 54707.170619),
    ("kworker/17:1-ev:46510", 68.804, 13328, 0.037, 67.894, 54711.022711, 54711.090605),
    ("kworker/21:1-ev:45782", 68.906, 13215, 0.021, 59.473, 54709.351135, 54709.410608),
    ("ksoftirqd/17:101", 0.041, 2, 25.028, 50.047, 54711.040578, 54711.090625),
];

/// What threads of a kind computed on the last good commit. The report lists seven of eight of the guests' CPUs; the eighth
/// is taken for one like them.
pub(super) fn computed(kind: Kind) -> Computed {
    let rows = GOOD.iter().filter(|row| Kind::of(row.0) == Some(kind)).collect::<Vec<_>>();
    let all = if kind == Kind::GuestCpu { GUEST_CPUS / rows.len() as f64 } else { 1.0 };
    let switches = rows.iter().map(|row| row.2).sum::<u64>() as f64 * all;
    Computed { ms: rows.iter().map(|row| row.1).sum::<f64>() * all, switches: switches as u64 }
}

/// CPUs of a guest; those of the same number in both guests are one row.
const GUEST_CPUS: f64 = 8.0;

/// The rows in perf's layout.
pub(super) fn table(rows: &[Row]) -> String {
    let line = "-".repeat(139);
    let mut text = format!(
        " {line}\n  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    | Max delay start           \
         | Max delay end          |\n {line}\n"
    );
    for (task, runtime, switches, average, longest, start, end) in rows {
        text += &format!(
            "  {task:21} | {runtime:>10.3} ms | {switches:>8} | avg: {average:>7.3} ms | max: {longest:>7.3} ms | max start: \
             {start:>12.6} s | max end: {end:>12.6} s\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure mistyped does not fit the others of its row, and a table is sorted by the longest wait.
    #[test]
    fn each_rows_figures_fit_together() {
        for rows in [GOOD, BAD] {
            assert!(rows.is_sorted_by(|one, other| one.4 >= other.4));
            for (task, runtime, switches, average, longest, start, end) in rows {
                assert!(((end - start) * 1000.0 - longest).abs() < 0.002, "{task}: {longest} ms");
                assert!(
                    average * *switches as f64 + 0.0005 * *switches as f64 >= *longest,
                    "{task}: {average} ms"
                );
                assert!(runtime > &0.0 && average < longest, "{task}");
            }
            assert_eq!(table(rows).lines().count(), rows.len() + 3);
        }
        assert_eq!((GOOD.len(), BAD.len()), (10, 9));
    }
}
