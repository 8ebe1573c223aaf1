//! How fast a trace becomes a page, and how large that is.
//!
//! `cargo bench -p fairlab-page --bench timeline` makes pages of 4 and 10 million events in memory. They repeat those of
//! `testdata/perf-hackbench.data`. Reading a file comes on top (docs/performance.md). Printed is the best of the rounds: what
//! disturbs a round only ever makes it slower.

mod repeated;

use std::time::Instant;

use repeated::Repeated;

const ROUNDS: usize = 3;

fn main() {
    for count in [4_000_000, 10_000_000] {
        let trace = Repeated::new(count);
        let mut best = f64::INFINITY;
        let mut made = (String::new(), None);
        for _ in 0..ROUNDS {
            let start = Instant::now();
            made = trace.page();
            best = best.min(start.elapsed().as_secs_f64());
        }
        let (page, left_out) = made;
        let million = trace.count() as f64 / 1e6;
        let megabytes = page.len() as f64 / 1e6;
        let rate = million / best;
        let left_out = left_out.unwrap_or_else(|| "nothing is left out".to_string());
        println!(
            "{million:.1} M events: {best:.2} s, {rate:.1} M events/s, page {megabytes:.1} MB; {left_out}"
        );
    }
}
