//! What schbench prints, to the letter, and when `-a` wants more.
//!
//! Must not know: when it is printed.
//!
//! The real program writes tables to its standard error and rates to its standard output; here they follow one
//! another, as on a terminal.

use std::fmt::Write as _;

use super::histogram::{Extremes, PERCENTILES, SchbenchHistogram};
use super::memory::SchbenchState;
use super::options::SchbenchRevision;

/// The percentile with the star.
const P99: f64 = 99.0;

/// With `-a`: more load for the next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadIncrease {
    /// So many workers per message thread.
    Workers(usize),
    /// So many requests per second, of all message threads.
    Requests(u32),
}

/// Adds the table of latencies as of now to `out`.
pub(super) fn table(out: &mut String, memory: &SchbenchState, seconds: u64) {
    let revision = memory.options.revision;
    latency_table(out, revision, seconds, &memory.latencies, memory.extremes());
}

fn latency_table(
    out: &mut String,
    revision: SchbenchRevision,
    seconds: u64,
    latencies: &SchbenchHistogram,
    extremes: Extremes,
) {
    let counts = revision >= SchbenchRevision::Intervals;
    out.push_str("Latency percentiles (usec)");
    if counts {
        put(out, format_args!(" runtime {seconds} (s) ({} total samples)", latencies.samples()));
    }
    out.push('\n');
    for (percent, percentile) in PERCENTILES.into_iter().zip(latencies.percentiles()) {
        let star = if percent == P99 { "*" } else { "" };
        put(out, format_args!("\t{star}{percent:.1}th: {}", percentile.us));
        if counts {
            put(out, format_args!(" ({} samples)", percentile.samples));
        }
        out.push('\n');
    }
    put(out, format_args!("\tmin={}, max={}\n", extremes.min, extremes.max));
}

/// Adds the ending to `out`: the table (but not with `-a -R`), and the rates of `-p` and `-R`.
pub(super) fn ending(out: &mut String, memory: &SchbenchState, seconds: u64) {
    let options = &memory.options;
    let gives_requests = memory.gives_requests();
    if options.auto && !gives_requests {
        workers_line(out, memory);
    }
    if !(options.auto && gives_requests) {
        table(out, memory, seconds);
    }
    if options.pipe_bytes > 0 {
        pipe_line(out, memory);
    }
    if gives_requests {
        let rate = match options.revision {
            SchbenchRevision::FinalTable => january_rates(memory).1,
            // The program divides the loops, in millionths, by the run time in seconds.
            _ => total_loops(memory).wrapping_mul(1_000_000) as f64 / seconds as f64,
        };
        requests_line(out, memory, rate);
    }
}

/// Adds the line that `-a` prints about a round after which it goes on to `out`.
pub(super) fn round(out: &mut String, memory: &SchbenchState) {
    if !memory.gives_requests() {
        workers_line(out, memory);
        return;
    }
    let rate = match memory.options.revision {
        SchbenchRevision::FinalTable => january_rates(memory).1,
        SchbenchRevision::Intervals => loops_per_s(memory),
        SchbenchRevision::MessageSpin => loops_per_s(memory) * memory.worker_threads as f64,
    };
    requests_line(out, memory, rate);
}

/// With `-a`: what load to try after this round, or `None` if latencies hurt: a 99th percentile of 2000 µs, with `-R`
/// of five times the computation. The nearer it is, the smaller the step.
pub(super) fn harder(memory: &SchbenchState) -> Option<LoadIncrease> {
    if !memory.options.auto {
        return None;
    }
    let p99 = memory.latencies.percentile(P99);
    if !memory.gives_requests() {
        return (p99 < 2_000).then(|| LoadIncrease::Workers(memory.worker_threads + 1));
    }
    let (p99, cpu) = (u64::from(p99), u64::from(memory.options.cpu_us));
    if p99 >= 5 * cpu {
        return None;
    }
    let requests = u64::from(memory.requests_per_s) * u64::from(memory.options.message_threads);
    // Shares of the computation in per cent, and the part of the rate that is added up to there.
    let steps = [(30, 30), (40, 40), (45, 50), (50, 60)];
    let part = steps.into_iter().find(|(percent, _)| p99 * 100 <= percent * cpu).map_or(70, |(_, part)| part);
    let bump = (requests / part).div_ceil(5) * 5;
    Some(LoadIncrease::Requests(u32::try_from(requests + bump).unwrap_or(u32::MAX)))
}

fn workers_line(out: &mut String, memory: &SchbenchState) {
    let (cpu_us, workers) = (memory.options.cpu_us, memory.worker_threads);
    put(out, format_args!("cputime {cpu_us} threads {workers} p99 {}\n", memory.latencies.percentile(P99)));
}

fn requests_line(out: &mut String, memory: &SchbenchState, rate: f64) {
    let (p95, p99) = (memory.latencies.percentile(95.0), memory.latencies.percentile(P99));
    let share = |us: u32| fixed(f64::from(us) / f64::from(memory.options.cpu_us) * 100.0);
    put(
        out,
        format_args!(
            "rps: {} p95 (usec) {p95} p99 (usec) {p99} p95/cputime {}% p99/cputime {}%\n",
            fixed(rate),
            share(p95),
            share(p99)
        ),
    );
}

fn pipe_line(out: &mut String, memory: &SchbenchState) {
    let pipe_bytes = memory.options.pipe_bytes;
    let (rate, bytes_per_s) = match memory.options.revision {
        SchbenchRevision::FinalTable => {
            let rate = january_rates(memory).0;
            (rate, rate * f64::from(pipe_bytes))
        }
        _ => {
            let millionths = total_loops(memory).wrapping_mul(pipe_bytes.into()).wrapping_mul(1_000_000);
            (loops_per_s(memory), millionths.checked_div(total_runtime_us(memory)).unwrap_or(0) as f64)
        }
    };
    let (size, unit) = pretty_size(bytes_per_s);
    put(out, format_args!("avg worker transfer: {} ops/sec {}{unit}/s\n", fixed(rate), fixed(size)));
}

fn total_loops(memory: &SchbenchState) -> u64 {
    memory.workers.iter().map(|worker| worker.loops).sum()
}

fn total_runtime_us(memory: &SchbenchState) -> u64 {
    memory.workers.iter().map(|worker| worker.runtime_us).sum()
}

/// Loops per second of the average worker; 0 before one of them has run for a µs.
fn loops_per_s(memory: &SchbenchState) -> f64 {
    per_second(total_loops(memory), total_runtime_us(memory))
}

/// The January revision's: each worker's own rate, averaged; and the same summed over all (with `-R` only).
fn january_rates(memory: &SchbenchState) -> (f64, f64) {
    let mut sum = 0.0;
    for workers in memory.workers.chunks(memory.worker_threads.max(1)) {
        let rate: f64 = workers.iter().map(|worker| per_second(worker.loops, worker.runtime_us)).sum();
        sum += if memory.gives_requests() { rate } else { rate / workers.len() as f64 };
    }
    (sum / f64::from(memory.options.message_threads), sum)
}

fn per_second(loops: u64, runtime_us: u64) -> f64 {
    if runtime_us == 0 { 0.0 } else { loops.wrapping_mul(1_000_000) as f64 / runtime_us as f64 }
}

fn pretty_size(mut size: f64) -> (f64, &'static str) {
    let mut units = ["B", "KB", "MB", "GB", "TB", "PB", "EB"].into_iter().peekable();
    let mut unit = "B";
    while let Some(this) = units.next() {
        unit = this;
        if size < 1_024.0 || units.peek().is_none() {
            break;
        }
        size /= 1_024.0;
    }
    (size, unit)
}

/// A number as `%.2f` prints it, also where there is none.
fn fixed(number: f64) -> String {
    if number.is_nan() { "-nan".to_string() } else { format!("{number:.2}") }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::schbench::options::SchbenchOptions;

    fn memory(line: &str) -> SchbenchState {
        let args = line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
        SchbenchState::new(SchbenchOptions::parse(&args).unwrap_or_else(|message| panic!("{message}")))
    }

    /// Spreads latencies, (µs, how many), over all workers.
    fn record(memory: &mut SchbenchState, latencies: &[(u64, u64)]) {
        let workers = memory.workers.len();
        let all = latencies.iter().flat_map(|&(us, count)| (0..count).map(move |_| us));
        all.enumerate().for_each(|(number, us)| memory.record(number % workers, us));
    }

    /// Compares with a table from a mail, which has lost its leading tabs.
    fn is_the_mails(printed: &str, mail: &str) {
        let lines = |text: &str| text.lines().map(|line| line.trim().to_string()).collect::<Vec<_>>();
        assert_eq!(lines(printed), lines(mail));
    }

    #[test]
    fn the_load_balancer_reports_tables_are_printed_to_the_letter() {
        let mut good = memory("-t 20 -r 0 -c 1000000 -s 1000 -i 30 -z 120");
        let counts = [
            (21, 1),
            (155, 1652),
            (189, 808),
            (216, 501),
            (227, 163),
            (256, 123),
            (1510, 16),
            (3132, 13),
            (3286, 3),
        ];
        record(&mut good, &counts);
        let mut out = String::new();
        table(&mut out, &good, 1290);
        let mail = "Latency percentiles (usec) runtime 1290 (s) (3280 total samples)
50.0th: 155 (1653 samples)
75.0th: 189 (808 samples)
90.0th: 216 (501 samples)
95.0th: 227 (163 samples)
*99.0th: 256 (123 samples)
99.5th: 1510 (16 samples)
99.9th: 3132 (13 samples)
min=21, max=3286";
        is_the_mails(&out, mail);

        let mut bad = memory("-t 20 -r 0 -c 1000000 -s 1000 -i 30 -z 120");
        let counts = [
            (21, 1),
            (147, 2260),
            (182, 1116),
            (205, 671),
            (224, 215),
            (12240, 173),
            (12752, 22),
            (13104, 18),
            (13172, 4),
        ];
        record(&mut bad, &counts);
        let mut out = String::new();
        table(&mut out, &bad, 1440);
        let mail = "Latency percentiles (usec) runtime 1440 (s) (4480 total samples)
50.0th: 147 (2261 samples)
75.0th: 182 (1116 samples)
90.0th: 205 (671 samples)
95.0th: 224 (215 samples)
*99.0th: 12240 (173 samples)
99.5th: 12752 (22 samples)
99.9th: 13104 (18 samples)
min=21, max=13172";
        is_the_mails(&out, mail);
    }

    #[test]
    fn the_blocked_load_reports_tables_are_printed_to_the_letter() {
        let mut without = memory("-t 2 -m 2 -r 5");
        let counts =
            [(15, 1), (210, 105), (619, 53), (665, 32), (703, 11), (12656, 8), (12784, 1), (13424, 1)];
        record(&mut without, &counts);
        let mut out = String::new();
        ending(&mut out, &without, 5);
        let mail = "Latency percentiles (usec) runtime 5 (s) (212 total samples)
50.0th: 210 (106 samples)
75.0th: 619 (53 samples)
90.0th: 665 (32 samples)
95.0th: 703 (11 samples)
*99.0th: 12656 (8 samples)
99.5th: 12784 (1 samples)
99.9th: 13424 (1 samples)
min=15, max=13424";
        is_the_mails(&out, mail);

        let mut with = memory("-t 2 -m 2 -r 5");
        // The mail lacks the last line of this one.
        record(&mut with, &[(188, 108), (238, 53), (623, 32), (657, 12), (717, 7), (725, 2)]);
        let mut out = String::new();
        ending(&mut out, &with, 5);
        let mail = "Latency percentiles (usec) runtime 5 (s) (214 total samples)
50.0th: 188 (108 samples)
75.0th: 238 (53 samples)
90.0th: 623 (32 samples)
95.0th: 657 (12 samples)
*99.0th: 717 (7 samples)
99.5th: 725 (2 samples)
99.9th: 725 (0 samples)
min=188, max=725";
        is_the_mails(&out, mail);
    }

    #[test]
    fn tabs_and_line_ends_are_the_programs() {
        let mut memory = memory("");
        record(&mut memory, &[(7, 100)]);
        let mut out = String::new();
        ending(&mut out, &memory, 30);
        assert_eq!(
            out,
            "Latency percentiles (usec) runtime 30 (s) (100 total samples)\n\t50.0th: 7 (100 samples)\n\
             \t75.0th: 7 (0 samples)\n\t90.0th: 7 (0 samples)\n\t95.0th: 7 (0 samples)\n\t*99.0th: 7 (0 samples)\n\
             \t99.5th: 7 (0 samples)\n\t99.9th: 7 (0 samples)\n\tmin=7, max=7\n"
        );
    }

    #[test]
    fn the_january_revision_prints_no_counts_and_no_minimum() {
        let mut memory = memory("--revision 99faedc");
        record(&mut memory, &[(7, 95), (9, 5)]);
        let mut out = String::new();
        ending(&mut out, &memory, 30);
        assert_eq!(
            out,
            "Latency percentiles (usec)\n\t50.0th: 7\n\t75.0th: 7\n\t90.0th: 7\n\t95.0th: 7\n\t*99.0th: 9\n\
             \t99.5th: 9\n\t99.9th: 9\n\tmin=0, max=9\n"
        );
    }

    fn ran(memory: &mut SchbenchState, loops: u64, runtime_us: u64) {
        for worker in &mut memory.workers {
            (worker.loops, worker.runtime_us) = (loops, runtime_us);
        }
    }

    #[test]
    fn pipe_mode_ends_with_the_transfer_rate() {
        for (line, rate) in [
            // 8 workers, each 1000 loops in 2 s: 500 loops per second, of 2048 bytes.
            ("-p 2048 -m 2 -t 4", "avg worker transfer: 500.00 ops/sec 1000.00KB/s\n"),
            ("-p 4 -m 2 -t 4", "avg worker transfer: 500.00 ops/sec 1.95KB/s\n"),
            ("-p 2048 -m 2 -t 4 --revision 99faedc", "avg worker transfer: 500.00 ops/sec 1000.00KB/s\n"),
        ] {
            let mut memory = memory(line);
            ran(&mut memory, 1_000, 2_000_000);
            let mut out = String::new();
            ending(&mut out, &memory, 2);
            assert!(out.ends_with(&format!("max=0\n{rate}")), "{line}: {out}");
        }
        let mut out = String::new();
        ending(&mut out, &memory("-p 64"), 0);
        assert!(out.ends_with("avg worker transfer: 0.00 ops/sec 0.00B/s\n"), "nobody ran yet: {out}");
    }

    #[test]
    fn request_mode_ends_with_the_programs_odd_rate() {
        let mut memory = memory("-R 100 -t 4 -m 1 -c 1000");
        ran(&mut memory, 250, 10_000_000);
        record(&mut memory, &[(30, 95), (500, 5)]);
        let mut out = String::new();
        ending(&mut out, &memory, 10);
        let line = "rps: 100000000.00 p95 (usec) 30 p99 (usec) 500 p95/cputime 3.00% p99/cputime 50.00%\n";
        assert!(out.ends_with(&format!("max=500\n{line}")), "{out}");
        memory.options.revision = SchbenchRevision::FinalTable;
        let mut out = String::new();
        ending(&mut out, &memory, 10);
        assert!(out.contains("rps: 100.00 p95 (usec) 30"), "{out}");
    }

    #[test]
    fn rates_without_a_denominator_print_as_in_c() {
        let mut memory = memory("-R 100 -t 4 -m 1 -c 0");
        record(&mut memory, &[(30, 100)]);
        let mut out = String::new();
        ending(&mut out, &memory, 0);
        assert!(
            out.ends_with("rps: -nan p95 (usec) 30 p99 (usec) 30 p95/cputime inf% p99/cputime inf%\n"),
            "{out}"
        );
    }

    #[test]
    fn auto_mode_adds_workers_until_two_milliseconds() {
        let mut memory = memory("-a -t 4");
        assert_eq!(harder(&memory), Some(LoadIncrease::Workers(5)));
        record(&mut memory, &[(1_990, 100)]);
        assert_eq!(harder(&memory), Some(LoadIncrease::Workers(5)));
        memory.zero_statistics();
        record(&mut memory, &[(2_005, 100)]);
        assert_eq!(harder(&memory), None);
        let mut out = String::new();
        ending(&mut out, &memory, 30);
        assert!(
            out.starts_with("cputime 30000 threads 4 p99 2006\nLatency percentiles (usec) runtime 30"),
            "{out}"
        );
    }

    #[test]
    fn auto_mode_adds_requests_in_smaller_steps_as_latencies_rise() {
        for (p99, expected) in [
            (300, Some(2_000 + 70)),
            (400, Some(2_000 + 50)),
            (450, Some(2_000 + 40)),
            (500, Some(2_000 + 35)),
            (501, Some(2_000 + 30)),
            (4_984, Some(2_000 + 30)),
            (5_000, None),
        ] {
            let mut memory = memory("-a -R 2000 -c 1000 -m 2");
            record(&mut memory, &[(p99, 100)]);
            assert_eq!(harder(&memory), expected.map(LoadIncrease::Requests), "{p99}");
        }
        let mut memory = memory("-a -R 2000 -c 1000 -m 1 -t 4");
        ran(&mut memory, 1_000, 10_000_000);
        record(&mut memory, &[(30, 100)]);
        let mut out = String::new();
        round(&mut out, &memory);
        // 100 loops per second and worker; times the workers of one message thread.
        assert_eq!(out, "rps: 400.00 p95 (usec) 30 p99 (usec) 30 p95/cputime 3.00% p99/cputime 3.00%\n");
        let mut out = String::new();
        ending(&mut out, &memory, 10);
        assert_eq!(out.lines().count(), 1, "no table in this mode: {out}");
    }
}
