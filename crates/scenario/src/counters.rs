//! What the model's scheduler counts, as metrics of a run.
//!
//! Must not know: which report wants them.

use std::collections::BTreeMap;

use fairlab_event::{Event, Ns, Sink};
use fairlab_kernel::Scheduler;
use fairlab_kernel::balance::{BalanceNote, MigrationType};
use fairlab_kernel::schedstat::CpuIdleType;
use fairlab_kernel::select::{IdleMaskEvent, IdleMaskNote};
use fairlab_lab::Onlooker;
use fairlab_sim::Engine;

/// Counts, and hands events on.
pub(crate) struct Counters<'s> {
    sink: &'s mut dyn Sink,
    from: Ns,
    counted: BTreeMap<String, f64>,
}

impl<'s> Counters<'s> {
    /// Passes count from a time on.
    pub fn new(sink: &'s mut dyn Sink, from: Ns) -> Counters<'s> {
        Counters { sink, from, counted: BTreeMap::new() }
    }

    /// Every metric by name.
    pub fn finish(self) -> impl Iterator<Item = (String, f64)> {
        self.counted.into_iter()
    }

    fn add(&mut self, name: impl Into<String>, value: f64) {
        *self.counted.entry(name.into()).or_default() += value;
    }
}

impl Onlooker for Counters<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.sink.event(event);
    }

    fn wants_balancing(&self) -> bool {
        true
    }

    fn balanced(&mut self, note: &BalanceNote, _: &Scheduler) {
        let decision = &note.decision;
        self.add("balance_moved", decision.moved() as f64);
        let (differs, suppressed, brought) = match &note.bias {
            Some(bias) => (bias.differs, bias.suppressed(), bias.brought()),
            None => (false, Default::default(), Default::default()),
        };
        self.add("lb_bias_tries", f64::from(u8::from(note.bias.is_some())));
        self.add("lb_bias_changed", f64::from(u8::from(differs)));
        self.add("lb_bias_suppressed", suppressed as f64);
        self.add("lb_bias_brought", brought as f64);
        if note.time < self.from {
            return;
        }
        for pull in &decision.pulls {
            let idle = match decision.idle {
                CpuIdleType::NewlyIdle => "newidle",
                CpuIdleType::Idle => "idle",
                CpuIdleType::NotIdle => "busy",
            };
            let measure: MigrationType = decision.imbalance.migration;
            let name = format!("balance_passes_{idle}_{}_{}", note.level.to_lowercase(), measure.name());
            let moved = f64::from(u8::from(pull.moved().next().is_some()));
            self.add(format!("{name}_moving"), moved);
            self.add(name, 1.0);
        }
    }

    fn wants_idle_masks(&self) -> bool {
        true
    }

    fn idle_mask(&mut self, note: &IdleMaskNote) {
        if note.event == IdleMaskEvent::Scanned {
            self.add("idle_mask_scans", 1.0);
            self.add("idle_mask_marked", note.mask.weight() as f64);
        }
    }

    fn ended(&mut self, engine: &Engine) {
        let (kernel, counters) = (engine.kernel(), engine.counters());
        let us = |time: Ns| time.0 as f64 / 1000.0;
        for cpu in kernel.topology().cpus() {
            self.add("remote_updates", kernel.remote_updates(cpu) as f64);
            let counted = kernel.counters(cpu);
            self.add("ttwu_count", counted.ttwu_count as f64);
            self.add("ttwu_local", counted.ttwu_local as f64);
            let sis = counted.sis;
            for (name, value) in [
                ("sis_search", sis.search),
                ("sis_domain_search", sis.domain_search),
                ("sis_scanned", sis.scanned),
                ("sis_failed", sis.failed),
                ("sis_recent_hit", sis.recent_hit),
                ("sis_recent_miss", sis.recent_miss),
                ("sis_core_search", sis.core_search),
                ("sis_core_miss", sis.core_miss),
            ] {
                self.add(name, value as f64);
            }
        }
        for idle in ["newidle", "idle", "busy"] {
            for measure in ["load", "util", "task", "misfit"] {
                for level in ["smt", "mc"] {
                    let name = format!("balance_passes_{idle}_{level}_{measure}");
                    self.add(format!("{name}_moving"), 0.0);
                    self.add(name, 0.0);
                }
            }
        }
        let updates = self.counted.get("remote_updates").copied().unwrap_or_default();
        let cpus = kernel.topology().nr_cpus() as f64;
        self.counted.insert("remote_updates_per_s".to_string(), updates / engine.now().as_secs_f64() / cpus);
        self.counted.insert("newidle_us_max".to_string(), us(counters.newidle_longest));
        let mean = us(counters.newidle_time) / counters.newidle.max(1) as f64;
        self.counted.insert("newidle_us_mean".to_string(), mean);
    }
}
