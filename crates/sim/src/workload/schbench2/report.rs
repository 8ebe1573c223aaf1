//! What schbench prints since 2023.
//!
//! Must not know: threads.

use std::fmt::Write;

use fairlab_event::Ns;

use super::{LatencyStats, Schbench2};

/// All percentiles that are counted; a table shows some of them.
const PERCENTILES: [f64; 5] = [20.0, 50.0, 90.0, 99.0, 99.9];

impl Schbench2 {
    /// What the main thread does each second. Returns whether the time is up.
    pub(super) fn look(&mut self, now: Ns) -> bool {
        let started = *self.started.get_or_insert(now);
        if started == now {
            (self.counted, self.tables_at, self.zeroed_at) = ((self.loops, now), now, now);
        }
        let ran = now.since(started);
        let runtime = Ns::from_secs(self.options.runtime_s.into());
        let warmup = Ns::from_secs(self.options.warmup_s.into());
        if self.options.rps == 0 && warmup > Ns::ZERO && ran > warmup && !self.is_warm {
            self.is_warm = true;
            self.output += "warmup done, zeroing stats\n";
            self.zero(now);
        } else {
            let (before, since) = self.counted;
            let seconds = now.since(since).as_secs_f64();
            let rps = if seconds > 0.0 { (self.loops - before) as f64 / seconds } else { 0.0 };
            self.counted = (self.loops, now);
            self.rps.add_number(rps as u64);
            if now.since(self.tables_at) >= Ns::from_secs(self.options.interval_s.into()) {
                self.tables_at = now;
                let tables = self.tables(ran.0 / 1_000_000_000);
                self.output += &tables;
                self.output += &format!("current rps: {rps:.2}\n");
            }
        }
        let zero = Ns::from_secs(self.options.zero_s.into());
        if zero > Ns::ZERO && now.since(self.zeroed_at) > zero {
            self.zero(now);
        }
        runtime > Ns::ZERO && ran >= runtime
    }

    fn zero(&mut self, now: Ns) {
        self.zeroed_at = now;
        (self.wakeups, self.requests, self.rps) =
            (LatencyStats::default(), LatencyStats::default(), LatencyStats::default());
    }

    fn tables(&self, seconds: u64) -> String {
        let times = [50.0, 90.0, 99.0, 99.9];
        table(&self.wakeups, "Wakeup Latencies", "usec", seconds, &times, 99.0)
            + &table(&self.requests, "Request Latencies", "usec", seconds, &times, 99.0)
            + &table(&self.rps, "RPS", "requests", seconds, &[20.0, 50.0, 90.0], 50.0)
    }

    /// How long it has counted, s.
    fn seconds(&self, now: Ns) -> f64 {
        let ran = self.started.map_or(Ns::ZERO, |started| now.since(started));
        match self.options.runtime_s {
            0 => ran.as_secs_f64(),
            runtime => ran.as_secs_f64().min(runtime.into()),
        }
    }

    fn average_rps(&self, now: Ns) -> f64 {
        let seconds = self.seconds(now);
        if seconds > 0.0 { self.loops as f64 / seconds } else { 0.0 }
    }

    /// What it has printed, and would if it ended now.
    pub(super) fn whole_output(&self, now: Ns) -> String {
        let seconds = self.seconds(now);
        format!("{}{}average rps: {:.2}\n", self.output, self.tables(seconds as u64), self.average_rps(now))
    }

    /// The program's own numbers.
    pub(super) fn numbers(&self) -> Vec<(String, f64)> {
        let mut numbers = vec![("schbench_average_rps".to_string(), self.average_rps(self.counted.1))];
        let percentiles = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9)];
        for (name, stats) in [("wakeup", &self.wakeups), ("request", &self.requests)] {
            for (suffix, percent) in percentiles {
                let value = f64::from(stats.histogram.percentile(percent));
                numbers.push((format!("schbench_{name}_us_{suffix}"), value));
            }
            numbers.push((format!("schbench_{name}_us_max"), f64::from(stats.extremes.max)));
        }
        for percent in [20.0, 50.0, 90.0] {
            numbers.push((
                format!("schbench_rps_p{percent}"),
                f64::from(self.rps.histogram.percentile(percent)),
            ));
        }
        numbers
    }
}

/// A table of percentiles; a star stands at one.
fn table(stats: &LatencyStats, label: &str, units: &str, seconds: u64, shown: &[f64], star: f64) -> String {
    let total = stats.histogram.samples();
    let mut text = format!("{label} percentiles ({units}) runtime {seconds} (s) ({total} total samples)\n");
    for (percent, percentile) in PERCENTILES.iter().zip(stats.histogram.percentiles_of(&PERCENTILES)) {
        if shown.contains(percent) {
            let mark = if *percent == star { "* " } else { "  " };
            let (value, samples) = (percentile.us, percentile.samples);
            let _ = writeln!(text, "\t{mark}{percent:.1}th: {value:<10} ({samples} samples)");
        }
    }
    let _ = writeln!(text, "\t  min={}, max={}", stats.extremes.min, stats.extremes.max);
    text
}
