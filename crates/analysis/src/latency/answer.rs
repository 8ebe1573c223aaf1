//! `fairlab/latency/1`: the table of waits as programs read it.
//!
//! Must not know: how waits are found.

use serde::Serialize;

use super::{LatencyRow, LatencyTable};

/// The table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/latency/1")]
pub struct LatencyAnswer {
    /// Tasks that have waited, in the order asked for.
    pub tasks: Vec<WaitedAnswer>,
    /// Waits during which events were lost, of all tasks: not measured.
    pub crossed_loss: u64,
}

/// One task, or all tasks of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitedAnswer {
    /// Its name.
    pub comm: String,
    /// Its id; of several tasks the highest.
    pub pid: i32,
    /// How many tasks the row sums up.
    pub merged_threads: u32,
    /// CPU time.
    pub runtime_ns: u64,
    /// Number of waits.
    pub count: u64,
    /// The average wait.
    pub avg_delay_ns: u64,
    /// The longest wait.
    pub max_delay_ns: u64,
    /// When it began.
    pub max_start_ns: u64,
    /// When it ended.
    pub max_end_ns: u64,
    /// Waits during which events were lost.
    pub crossed_loss: u64,
}

impl From<&LatencyTable> for LatencyAnswer {
    fn from(table: &LatencyTable) -> LatencyAnswer {
        LatencyAnswer {
            tasks: table.rows.iter().map(WaitedAnswer::from).collect(),
            crossed_loss: table.crossed,
        }
    }
}

impl From<&LatencyRow> for WaitedAnswer {
    fn from(row: &LatencyRow) -> WaitedAnswer {
        WaitedAnswer {
            comm: row.comm.to_str().into_owned(),
            pid: row.pid.0,
            merged_threads: row.merged_threads,
            runtime_ns: row.runtime.0,
            count: row.count,
            avg_delay_ns: row.avg_delay().0,
            max_delay_ns: row.max_delay.0,
            max_start_ns: row.max_start.0,
            max_end_ns: row.max_end.0,
            crossed_loss: row.crossed,
        }
    }
}
