//! Files made of events, and events of files.

use fairlab_event::Sink;
use fairlab_trace::tracedat::{self, TraceDatCompression, TraceDatOptions, TraceDatWriter};
use fairlab_trace::{ImportError, ImportStats, ReadOptions, read_path};

use crate::kept::{Keeper, Kept, options_of, testdata};

/// The recording, 31,520 events of two CPUs.
pub const RECORDING: &str = "trace-cmd-3.1-hackbench.dat";

pub const BOTH: [TraceDatCompression; 2] = [TraceDatCompression::None, TraceDatCompression::Zstd];

/// The bytes of the recording.
pub fn recording() -> Vec<u8> {
    std::fs::read(testdata(RECORDING)).expect("a recording")
}

/// Every event of a file.
pub fn try_events(bytes: &[u8]) -> Result<(Vec<Kept>, ImportStats), ImportError> {
    let mut keeper = Keeper::default();
    let stats = tracedat::read(bytes, &ReadOptions::default(), &mut keeper)?;
    assert_eq!(stats.events, keeper.0.len() as u64);
    Ok((keeper.0, stats))
}

/// Every event of a file that must be readable.
pub fn events(bytes: &[u8]) -> (Vec<Kept>, ImportStats) {
    try_events(bytes).expect("a trace.dat")
}

/// A file of events, and how many of them will not come back as they were.
pub fn written<'e>(
    events: impl IntoIterator<Item = &'e Kept>,
    compression: TraceDatCompression,
) -> (Vec<u8>, u64) {
    let mut writer = TraceDatWriter::with_options(Vec::new(), TraceDatOptions { compression });
    for event in events {
        event.replay(&mut writer);
    }
    let altered = writer.losses().events();
    (writer.finish().expect("memory takes everything"), altered)
}

/// A file of what a recording in `testdata` holds.
pub fn converted(name: &str, compression: TraceDatCompression) -> (Vec<u8>, u64) {
    let mut writer = TraceDatWriter::with_options(Vec::new(), TraceDatOptions { compression });
    let sink: &mut dyn Sink = &mut writer;
    read_path(&testdata(name), &options_of(name), sink).expect("a recording");
    let altered = writer.losses().events();
    (writer.finish().expect("memory takes everything"), altered)
}
