//! schbench's table of latencies as figures, and two of them side by side.
//!
//! Must not know: which scenario wants it.

/// Lines of the table, in its order.
const LINES: [&str; 7] = ["50.0th", "75.0th", "90.0th", "95.0th", "*99.0th", "99.5th", "99.9th"];

/// One table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SchbenchTable {
    /// Seconds that it covers, as it says itself.
    pub runtime_s: u64,
    /// Samples in it.
    pub samples: u64,
    /// The percentiles, µs: 50, 75, 90, 95, 99, 99.5, 99.9.
    pub percentiles: [u64; 7],
    /// Samples between each percentile and the one before.
    pub counts: [u64; 7],
    /// The largest latency, µs; 0 where the report does not show it.
    pub max: u64,
    /// The smallest, µs; `None` where the report does not show it.
    pub min: Option<u64>,
}

impl SchbenchTable {
    /// The last table that schbench printed.
    pub fn last_of(output: &str) -> Option<SchbenchTable> {
        let (_, tail) = output.rsplit_once("Latency percentiles (usec)")?;
        let mut lines = tail.lines();
        let head = numbers(lines.next()?);
        let mut table =
            SchbenchTable { runtime_s: *head.first()?, samples: *head.get(1)?, ..Default::default() };
        for ((percentile, count), line) in
            table.percentiles.iter_mut().zip(&mut table.counts).zip(lines.by_ref())
        {
            let figures = numbers(line.split_once(':')?.1);
            (*percentile, *count) = (*figures.first()?, *figures.get(1)?);
        }
        let extremes = numbers(lines.next()?);
        (table.min, table.max) = (extremes.first().copied(), *extremes.get(1)?);
        Some(table)
    }

    /// The 50th percentile, µs.
    pub fn p50(&self) -> u64 {
        self.percentiles[0]
    }

    /// The 75th percentile, µs.
    pub fn p75(&self) -> u64 {
        self.percentiles[1]
    }

    /// The 90th percentile, µs.
    pub fn p90(&self) -> u64 {
        self.percentiles[2]
    }

    /// The 95th percentile, µs.
    pub fn p95(&self) -> u64 {
        self.percentiles[3]
    }

    /// The 99th percentile, µs.
    pub fn p99(&self) -> u64 {
        self.percentiles[4]
    }

    /// One of its figures; `None` of a table without samples.
    pub fn figure(&self, of: fn(&SchbenchTable) -> u64) -> Option<f64> {
        (self.samples > 0).then(|| of(self) as f64)
    }
}

fn numbers(text: &str) -> Vec<u64> {
    let words = text.split(|letter: char| !letter.is_ascii_digit()).filter(|word| !word.is_empty());
    words.filter_map(|word| word.parse().ok()).collect()
}

/// The published table in the program's own layout, with the measured one at its right.
pub(super) fn side_by_side(published: &SchbenchTable, measured: &SchbenchTable) -> String {
    let mut text = format!("{:<34}{:>22}{:>22}\n", "Latency percentiles (usec)", "published", "measured");
    let mut line = |name: &str, [one, other]: [String; 2]| {
        text += &format!("        {name:<26}{one:>22}{other:>22}\n");
    };
    let both = [published, measured];
    line("runtime (s)", both.map(|table| table.runtime_s.to_string()));
    line("total samples", both.map(|table| table.samples.to_string()));
    for (index, name) in LINES.iter().enumerate() {
        let figure =
            |table: &SchbenchTable| format!("{} ({} samples)", table.percentiles[index], table.counts[index]);
        line(&format!("{name}:"), both.map(figure));
    }
    line("min=", both.map(|table| table.min.map_or("-".to_string(), |min| min.to_string())));
    line("max=", both.map(|table| if table.max == 0 { "-".to_string() } else { table.max.to_string() }));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_table_is_read() {
        let output = "Latency percentiles (usec) runtime 30 (s) (40 total samples)\n\t50.0th: 1 (2 samples)\n\
                      warmup done, zeroing stats\n\
                      Latency percentiles (usec) runtime 1290 (s) (3280 total samples)\n\t50.0th: 155 (1653 samples)\n\
                      \t75.0th: 189 (808 samples)\n\t90.0th: 216 (501 samples)\n\t95.0th: 227 (163 samples)\n\
                      \t*99.0th: 256 (123 samples)\n\t99.5th: 1510 (16 samples)\n\t99.9th: 3132 (13 samples)\n\
                      \tmin=21, max=3286\n";
        let table = SchbenchTable::last_of(output).expect("a table");
        assert_eq!(
            table,
            SchbenchTable {
                runtime_s: 1290,
                samples: 3280,
                percentiles: [155, 189, 216, 227, 256, 1510, 3132],
                counts: [1653, 808, 501, 163, 123, 16, 13],
                max: 3286,
                min: Some(21),
            }
        );
        let both = side_by_side(&table, &table);
        assert!(
            both.lines().any(|line| line
                .split_whitespace()
                .eq("*99.0th: 256 (123 samples) 256 (123 samples)".split(' '))),
            "{both}"
        );
        assert_eq!(SchbenchTable::last_of("nothing"), None);
    }
}
