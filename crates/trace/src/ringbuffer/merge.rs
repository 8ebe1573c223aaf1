//! The records of all CPUs in the order of time.
//!
//! Must not know: what records mean.

use std::io;

use super::stream::{CpuStream, StreamItem};
use crate::ImportStats;

/// Takes what the CPUs recorded.
pub(crate) trait CpuReceiver {
    /// Takes what is at hand of `stream`, the one at `index`.
    fn take(&mut self, index: usize, stream: &CpuStream<'_>);

    /// The account of the import.
    fn stats(&mut self) -> &mut ImportStats;
}

/// Hands on everything in `streams` by time, then rank, then place in `streams`.
pub(crate) fn merge(streams: &mut [CpuStream<'_>], receiver: &mut impl CpuReceiver) -> io::Result<()> {
    // Latest first. Few CPUs take turns at a time: where one goes back in is found faster than a heap is put in order.
    let mut waiting: Vec<((u64, u32), usize)> = Vec::with_capacity(streams.len());
    let wait = |waiting: &mut Vec<_>, next| {
        let place = waiting.partition_point(|&other| other > next);
        waiting.insert(place, next);
    };
    for (index, stream) in streams.iter_mut().enumerate() {
        if stream.advance(receiver.stats())? != StreamItem::End {
            wait(&mut waiting, (stream.time(), index));
        }
    }
    while let Some((_, index)) = waiting.pop() {
        let rival = waiting.last().copied();
        let Some(stream) = streams.get_mut(index) else { continue };
        loop {
            receiver.take(index, stream);
            if stream.advance(receiver.stats())? == StreamItem::End {
                break;
            }
            let next = (stream.time(), index);
            if rival.is_some_and(|rival| rival < next) {
                wait(&mut waiting, next);
                break;
            }
        }
    }
    Ok(())
}
