//! What the root queues of CPUs bear, and the groups of CPUs that balancing compares: kept from one look to the next. Few queues
//! change between two looks, and on a large machine each look would go over hundreds.
//!
//! Must not know: what balancing makes of the sums.

use std::cell::{Ref, RefCell};
use std::collections::HashMap;

use fairlab_event::Cpu;

use crate::domain::{SchedDomains, SchedGroup, SchedGroupId};

/// What a CPU bears that balancing sums up, or some CPUs do together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QueueSums {
    /// Load, without the bias of LB_BIAS.
    pub load: u64,
    /// Utilization.
    pub util: u64,
    /// `runnable_avg`.
    pub runnable: u64,
    /// Fair tasks that wait or run.
    pub waiting: u32,
    /// Queued tasks: of all classes, or fair ones, as the kernel counts.
    pub running: u32,
    /// CPUs that are idle.
    pub idle: u32,
    /// CPUs with more than one task.
    pub overloaded: u32,
    /// CPUs.
    pub cpus: u32,
}

impl QueueSums {
    pub fn plus(self, other: QueueSums) -> QueueSums {
        QueueSums {
            load: self.load.wrapping_add(other.load),
            util: self.util.wrapping_add(other.util),
            runnable: self.runnable.wrapping_add(other.runnable),
            waiting: self.waiting + other.waiting,
            running: self.running + other.running,
            idle: self.idle + other.idle,
            overloaded: self.overloaded + other.overloaded,
            cpus: self.cpus + other.cpus,
        }
    }

    fn minus(self, other: QueueSums) -> QueueSums {
        QueueSums {
            load: self.load.wrapping_sub(other.load),
            util: self.util.wrapping_sub(other.util),
            runnable: self.runnable.wrapping_sub(other.runnable),
            waiting: self.waiting - other.waiting,
            running: self.running - other.running,
            idle: self.idle - other.idle,
            overloaded: self.overloaded - other.overloaded,
            cpus: self.cpus - other.cpus,
        }
    }
}

/// The sums as the last look found them.
#[derive(Clone, Debug)]
pub(super) struct KeptSums {
    /// By CPU.
    cpus: Vec<QueueSums>,
    /// Of each set of CPUs that some group spans.
    spans: Vec<QueueSums>,
    /// By [`SchedGroupId`]: its set.
    span_of: Vec<u32>,
    /// By CPU: the sets that it is in.
    spans_with: Vec<Vec<u32>>,
}

impl KeptSums {
    /// Of a machine of which nothing has been looked at.
    fn new(domains: &SchedDomains, nr_cpus: usize) -> KeptSums {
        let (mut known, mut spans_with) = (HashMap::new(), vec![Vec::new(); nr_cpus]);
        let mut number_of = |group: &SchedGroup| {
            let next = known.len() as u32;
            *known.entry(group.span).or_insert_with(|| {
                group.span.iter().for_each(|cpu| spans_with[cpu.index()].push(next));
                next
            })
        };
        let span_of = domains.all_groups().iter().map(&mut number_of).collect();
        let spans = vec![QueueSums::default(); known.len()];
        KeptSums { cpus: vec![QueueSums::default(); nr_cpus], spans, span_of, spans_with }
    }

    pub fn set(&mut self, cpu: Cpu, sums: QueueSums) {
        let before = std::mem::replace(&mut self.cpus[cpu.index()], sums);
        if before != sums {
            for &span in &self.spans_with[cpu.index()] {
                let span = &mut self.spans[span as usize];
                *span = span.minus(before).plus(sums);
            }
        }
    }

    /// What all CPUs of a group bear.
    pub fn of_group(&self, id: SchedGroupId) -> QueueSums {
        self.spans[self.span_of[id.0 as usize] as usize]
    }
}

/// The sums, made at the first look.
#[derive(Clone, Debug, Default)]
pub(crate) struct SumsCache(RefCell<Option<Box<KeptSums>>>);

impl SumsCache {
    /// The sums as they are now: `refresh` sets those that have changed.
    pub(super) fn fresh(
        &self,
        domains: &SchedDomains,
        nr_cpus: usize,
        refresh: impl FnOnce(&mut KeptSums),
    ) -> Ref<'_, KeptSums> {
        let mut found = self.0.borrow_mut();
        refresh(found.get_or_insert_with(|| Box::new(KeptSums::new(domains, nr_cpus))));
        drop(found);
        Ref::map(self.0.borrow(), |kept| kept.as_deref().expect("made above"))
    }
}
