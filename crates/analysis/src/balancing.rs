//! What balancing tried, and how full masks of idle CPUs are, counted from what a modelled kernel tells of it.
//!
//! Must not know: how it is decided, when it is told.

use std::collections::BTreeMap;

use fairlab_event::{Event, EventKind, GenericValue, Sink, TextFields, UntypedTracepoint};

/// The measures that passes over queues go by, as the kernel calls them.
const MEASURES: [&str; 5] = ["load", "util", "task", "misfit", "llc_task"];

/// For what a CPU balances, and how metrics say it.
const IDLE: [(&str, &str); 3] = [("NotIdle", "busy"), ("Idle", "idle"), ("NewlyIdle", "newidle")];

/// What is counted, whatever the passes are for.
const PLAIN: [&str; 11] = [
    "lb_moved",
    "lb_pushes",
    "lb_bias_tries",
    "lb_bias_changed",
    "lb_bias_kept",
    "lb_bias_brought",
    "idle_mask_scans",
    "idle_mask_marked_mean",
    "idle_mask_empty_share",
    "idle_mask_set_by_task_share",
    "idle_mask_cleared_by_irq_share",
];

/// Whether a metric is one of balancing as it is told.
pub fn is_of_balancing(metric: &str) -> bool {
    metric.starts_with("lb_passes_") || PLAIN.contains(&metric)
}

/// Passes over queues (`detach_tasks()`), and those of them that move something.
#[derive(Clone, Copy, Debug, Default)]
struct Passes {
    tries: u64,
    moving: u64,
}

/// Some of so many.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    some: u64,
    of: u64,
}

impl Share {
    fn count(&mut self, is_one: bool) {
        self.some += u64::from(is_one);
        self.of += 1;
    }

    fn value(self) -> Option<f64> {
        (self.of > 0).then(|| self.some as f64 / self.of as f64)
    }
}

/// What balancing with LB_BIAS did, and what it would have done without.
#[derive(Clone, Copy, Debug, Default)]
struct Bias {
    tries: u64,
    changed: u64,
    kept: u64,
    brought: u64,
}

/// Counts what balancing tells, and what becomes of masks of idle CPUs.
#[derive(Clone, Debug, Default)]
pub struct Balancing {
    moved: u64,
    pushes: u64,
    bias: Bias,
    /// By what the CPU balances for, the level and the measure.
    passes: BTreeMap<(&'static str, String, &'static str), Passes>,
    tries: u64,
    /// Scans of masks, those of empty ones, and the CPUs that all found marked.
    empty: Share,
    marked: u64,
    /// Settings outside of interrupts, clearings within hard ones: by CPUs that go idle, by ticks.
    set: Share,
    cleared: Share,
}

impl Balancing {
    /// Counts from now on.
    pub fn begin(&mut self) {
        *self = Balancing::default();
    }

    fn tried(&mut self, fields: TextFields<'_>) {
        let count = |name: &str| fields.unsigned(name).unwrap_or(0);
        let text = |name: &str| match fields.get(name) {
            Some(GenericValue::Text(text)) => text,
            _ => "",
        };
        self.tries += 1;
        self.moved += count("moved");
        self.pushes += count("push");
        if let Some(changed) = fields.unsigned("biased") {
            self.bias.tries += 1;
            self.bias.changed += changed;
            self.bias.kept += count("kept");
            self.bias.brought += count("brought");
        }
        let passes = count("passes");
        let idle = IDLE.into_iter().find(|(told, _)| *told == text("idle"));
        let measure = MEASURES.into_iter().find(|measure| *measure == text("measure"));
        if let (Some((_, idle)), Some(measure), true) = (idle, measure, passes > 0) {
            let known = self.passes.entry((idle, text("level").to_string(), measure)).or_default();
            known.tries += passes;
            known.moving += count("moving");
        }
    }

    /// The metrics: counts, and shares of 0 to 1. What did not happen has no share.
    pub fn metrics(&self) -> Vec<(String, f64)> {
        let Balancing { bias, empty, .. } = self;
        let mut values = Vec::new();
        if self.tries > 0 {
            values.extend([("lb_moved", self.moved), ("lb_pushes", self.pushes)]);
            values.extend([("lb_bias_tries", bias.tries), ("lb_bias_changed", bias.changed)]);
            values.extend([("lb_bias_kept", bias.kept), ("lb_bias_brought", bias.brought)]);
        }
        if empty.of > 0 {
            values.push(("idle_mask_scans", empty.of));
        }
        let mut metrics =
            values.into_iter().map(|(name, count)| (name.to_string(), count as f64)).collect::<Vec<_>>();
        let mean = (empty.of > 0).then(|| self.marked as f64 / empty.of as f64);
        let shares = [
            ("idle_mask_marked_mean", mean),
            ("idle_mask_empty_share", empty.value()),
            ("idle_mask_set_by_task_share", self.set.value()),
            ("idle_mask_cleared_by_irq_share", self.cleared.value()),
        ];
        metrics.extend(shares.into_iter().filter_map(|(name, share)| Some((name.to_string(), share?))));
        metrics.extend(self.passes_metrics());
        metrics
    }

    fn passes_metrics(&self) -> Vec<(String, f64)> {
        let mut metrics = Vec::new();
        let mut add = |name: String, Passes { tries, moving }: Passes| {
            metrics.push((format!("{name}_moving"), moving as f64));
            metrics.push((name, tries as f64));
        };
        for ((idle, level, measure), passes) in &self.passes {
            add(format!("lb_passes_{idle}_{level}_{measure}"), *passes);
        }
        for measure in MEASURES {
            let of_idle = self.passes.iter().filter(|((idle, _, of), _)| *idle != "busy" && *of == measure);
            let sum = of_idle.fold(Passes::default(), |sum, (_, passes)| Passes {
                tries: sum.tries + passes.tries,
                moving: sum.moving + passes.moving,
            });
            if self.tries > 0 {
                add(format!("lb_passes_idle_{measure}"), sum);
            }
        }
        metrics
    }
}

impl Sink for Balancing {
    fn event(&mut self, event: &Event<'_>) {
        let EventKind::Other { name, fields } = event.kind else { return };
        match UntypedTracepoint::by_name(name) {
            Some(UntypedTracepoint::DecidedBalance) => self.tried(fields),
            Some(UntypedTracepoint::DoneIdleMask) if fields.unsigned("set") == Some(1) => {
                let flags = event.context.flags;
                self.set.count(!flags.in_hardirq() && !flags.in_softirq());
            }
            Some(UntypedTracepoint::DoneIdleMask) => self.cleared.count(event.context.flags.in_hardirq()),
            Some(UntypedTracepoint::DoneIdleMaskScan) => {
                let marked = fields.unsigned("marked").unwrap_or(0);
                self.marked += marked;
                self.empty.count(marked == 0);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_event::{Context, Cpu, Flags, Ns, Pid};

    #[test]
    fn what_is_told_is_counted() {
        let mut balancing = Balancing::default();
        let mut tell = |name: &'static str, text: &str, flags: Flags| {
            let kind = EventKind::Other { name, fields: TextFields::new(text) };
            let context = Context { flags, pid: Pid::IDLE, ..Context::default() };
            balancing.event(&Event { time: Ns(1), cpu: Cpu(0), context, kind });
        };
        let try_of = |idle: &str, rest: &str| format!("cpu=0 level=MC idle={idle} moved=1 {rest}");
        let none = Flags::default();
        tell("decided_balance", &try_of("NewlyIdle", "measure=task push=1 passes=2 moving=1"), none);
        let biased = "measure=task push=0 passes=1 moving=1 biased=1 kept=3 brought=0";
        tell("decided_balance", &try_of("Idle", biased), none);
        tell("decided_balance", &try_of("NotIdle", "measure=load push=0 passes=1 moving=0"), none);
        tell("done_idle_mask", "set=1 marked=1 mask=0", none);
        tell("done_idle_mask", "set=0 marked=0 mask=", none);
        tell("done_idle_mask_scan", "marked=0 mask=", none);
        tell("done_idle_mask_scan", "marked=3 mask=0-2", none);
        let metrics = balancing.metrics();
        let of = |name: &str| metrics.iter().find(|(known, _)| known == name).map(|&(_, value)| value);
        for (name, expected) in [
            ("lb_moved", Some(3.0)),
            ("lb_pushes", Some(1.0)),
            ("lb_bias_tries", Some(1.0)),
            ("lb_bias_kept", Some(3.0)),
            ("lb_passes_newidle_MC_task", Some(2.0)),
            ("lb_passes_newidle_MC_task_moving", Some(1.0)),
            ("lb_passes_idle_task", Some(3.0)),
            ("lb_passes_busy_MC_load", Some(1.0)),
            ("lb_passes_idle_load", Some(0.0)),
            ("lb_passes_newidle_MC_load", None),
            ("idle_mask_scans", Some(2.0)),
            ("idle_mask_marked_mean", Some(1.5)),
            ("idle_mask_empty_share", Some(0.5)),
            ("idle_mask_set_by_task_share", Some(1.0)),
            ("idle_mask_cleared_by_irq_share", Some(0.0)),
        ] {
            assert_eq!(of(name), expected, "{name}");
            assert!(is_of_balancing(name));
        }
        assert!(Balancing::default().metrics().is_empty(), "what did not happen is absent");
    }
}
