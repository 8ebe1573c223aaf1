//! The Common Trace Format 1.8 and 2, as LTTng records a kernel and as `perf data convert --to-ctf` and babeltrace2 write it; read only.
//!
//! A trace is a folder: `metadata` describes what the other files hold, a stream of packets each, one a CPU. In version 1.8 it does so in a
//! language of its own (TSDL), in version 2 in JSON. Streams are merged by time, a packet of each in memory at a time. Discarded events and missing packets are holes.
//!
//! Facts: the Common Trace Format's specifications, v1.8.3 and CTF2-SPEC-2.0; lttng-modules' instrumentation/events. Must not know: answers.

mod bits;
mod decode;
mod events;
mod fragments;
mod lexer;
mod metadata;
mod parser;
mod reader;
mod stream;
mod types;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub(crate) use reader::read_folder;

/// How streams and descriptions begin, in either byte order, or as text.
const MARKS: [&[u8]; 5] =
    [b"\xc1\x1f\xfc\xc1", b"\xc1\xfc\x1f\xc1", b"\x57\x1d\xd1\x75", b"\x75\xd1\x1d\x57", b"/* CTF"];

/// The name of what describes a trace.
const METADATA: &str = "metadata";

/// Whether content begins as a part of such a trace does.
pub(crate) fn is_part(start: &[u8]) -> bool {
    MARKS.iter().any(|mark| start.starts_with(mark))
}

/// What to do with a part of such a trace.
pub(crate) const PART_FACT: &str = "this is a part of a trace in the Common Trace Format (LTTng, perf data convert); give the folder that has its metadata";

/// The folder of a trace's own description: the folder itself, or its kernel's.
pub(crate) fn folder_of(folder: &Path) -> Option<PathBuf> {
    let candidates = [folder.to_path_buf(), folder.join("kernel")];
    candidates.into_iter().find(|candidate| {
        let mut start = Vec::new();
        let read =
            File::open(candidate.join(METADATA)).and_then(|file| file.take(16).read_to_end(&mut start));
        read.is_ok() && (is_part(&start) || start.starts_with(b"\x1e"))
    })
}
