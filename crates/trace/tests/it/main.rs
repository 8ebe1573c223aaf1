//! Tests of the crate from outside, one binary for all: each file is a subject.

mod ctf;
mod ftrace_text;
mod kept;
mod parquet;
mod peers;
mod perfdata;
mod perfdata_written;
mod perfetto;
mod random;
mod system;
mod tracedat;
