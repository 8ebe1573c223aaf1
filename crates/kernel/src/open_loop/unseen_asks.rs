//! Queues whose loads may have been requested without a trace.
//!
//! Must not know: who may have asked.

use crate::ids::CfsRqId;

/// Queues that somebody may have asked unseen, and the least and the most that they counted then.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnseenAsks {
    /// The jiffy for which that holds.
    pub(crate) jiffy: u64,
    pub(crate) queues: Vec<(CfsRqId, [u64; 2])>,
    /// Queues of which it is guessed that they have been asked.
    pub(crate) guessed: Vec<CfsRqId>,
}

impl UnseenAsks {
    pub(crate) fn begin(&mut self, jiffy: u64) {
        if self.jiffy != jiffy {
            *self = UnseenAsks { jiffy, ..UnseenAsks::default() };
        }
    }

    pub(crate) fn note(&mut self, queue: CfsRqId, load: u64) {
        match self.queues.iter_mut().find(|(known, _)| *known == queue) {
            Some((_, [least, most])) => (*least, *most) = (load.min(*least), load.max(*most)),
            None => self.queues.push((queue, [load, load])),
        }
    }
}
