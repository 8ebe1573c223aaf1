//! Any bytes as a file of any format, compressed or not. What is read is written in every format that can be read, and
//! where a writer says that nothing was lost, it reads back unchanged.

#![no_main]

use fairlab_event::DigestSink;
use fairlab_trace::{OutputFormat, ReadOptions, TraceWriter, read};
use libfuzzer_sys::fuzz_target;

const READABLE: [OutputFormat; 3] = [OutputFormat::FtraceText, OutputFormat::TraceDat, OutputFormat::PerfData];

fuzz_target!(|bytes: &[u8]| {
    let options = ReadOptions::default();
    for format in READABLE {
        let mut sinks = (TraceWriter::new(format, Vec::new()), DigestSink::default());
        if read(Box::new(bytes), &options, &mut sinks).is_err() {
            return;
        }
        let (writer, digest) = sinks;
        let altered = writer.losses().events();
        let written = writer.finish().expect("memory takes everything");
        let mut again = DigestSink::default();
        read(Box::new(&written[..]), &options, &mut again).expect("what was written");
        if altered == 0 {
            assert_eq!(again.digest(), digest.digest(), "{}", format.name());
        }
    }
});
