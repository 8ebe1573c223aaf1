//! What the report prints: `perf sched latency -s max` of the last good commit and of v6.6-rc7.
//!
//! Must not know: what the model does.

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
pub(super) const BAD: &[Row] = &[];

/// The rows in perf's layout.
pub(super) fn table(rows: &[Row]) -> String {
    let line = "-".repeat(139);
    let mut text = format!(
        " {line}\n  Task                  |   Runtime ms  |  Count   | Avg delay ms    | Max delay ms    | Max delay start           \
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
