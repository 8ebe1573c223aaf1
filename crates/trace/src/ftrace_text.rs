//! ftrace text.
use crate::{ImportError, ImportStats, ReadOptions};
use fairlab_event::Sink;
use std::io::BufRead;
/// Reads.
pub fn read(_source: impl BufRead, _options: &ReadOptions, _sink: &mut dyn Sink) -> Result<ImportStats, ImportError> {
    Err(ImportError::Unsupported("not yet".to_string()))
}
