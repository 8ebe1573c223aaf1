//! The records of all CPUs in the order of time.
//!
//! Must not know: what records mean.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use super::stream::{Next, Stream};
use crate::ImportStats;

/// Takes what the CPUs recorded.
pub(crate) trait Receiver {
    /// Takes what is at hand of `stream`, the one at `index`.
    fn take(&mut self, index: usize, stream: &Stream<'_>);

    /// The account of the import.
    fn stats(&mut self) -> &mut ImportStats;
}

/// Hands on everything in `streams` by time, then rank, then place in `streams`.
pub(crate) fn merge(streams: &mut [Stream<'_>], receiver: &mut impl Receiver) -> io::Result<()> {
    let mut waiting = BinaryHeap::with_capacity(streams.len());
    for (index, stream) in streams.iter_mut().enumerate() {
        if stream.advance(receiver.stats())? != Next::End {
            waiting.push(Reverse((stream.time(), index)));
        }
    }
    while let Some(Reverse((_, index))) = waiting.pop() {
        let rival = waiting.peek().map(|&Reverse(rival)| rival);
        let Some(stream) = streams.get_mut(index) else { continue };
        loop {
            receiver.take(index, stream);
            if stream.advance(receiver.stats())? == Next::End {
                break;
            }
            let next = (stream.time(), index);
            if rival.is_some_and(|rival| rival < next) {
                waiting.push(Reverse(next));
                break;
            }
        }
    }
    Ok(())
}
