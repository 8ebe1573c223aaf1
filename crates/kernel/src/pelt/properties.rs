//! What holds for any history of load tracking, under every set of rules: on random histories, whose seed is printed.
//!
//! Sums stay within the kernel's bounds, a queue's averages are those of its entities, coming and going leaves nothing
//! behind, and it does not matter in how many steps time passes.

use super::average::{CpuScale, EntityState, EntityWeight, QueueState, SchedAvg};
use super::queue::{CfsRqLoad, RunnableLoad};
use super::rules::{PeltRules, RunnableKind, SumSync};
use super::rules_of;
use super::series::{LOAD_AVG_MAX, PELT_MIN_DIVIDER, UTIL_SUM_MAX};
use crate::generation::{ChangeEffect, LOG, LoggedCommit};

/// A stream of numbers that depends on its seed alone (xorshift64*).
struct XorShift64Star(u64);

impl XorShift64Star {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// A time span, mostly short, ns.
    fn span(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(3_000),
            1 => self.below(300_000),
            2 => self.below(6_000_000),
            _ => self.below(200_000_000),
        }
    }
}

/// The rules after each commit: every state of load tracking that ever was, and three that somebody built.
fn all_rules() -> Vec<(String, PeltRules)> {
    let tracks =
        |change: &&LoggedCommit| change.effects.iter().any(|effect| matches!(effect, ChangeEffect::Pelt(_)));
    let commits = LOG.iter().filter(tracks).map(LoggedCommit::id);
    let all = ["v4.18"].into_iter().chain(commits).chain(["debian-5.10", "debian-6.1", "debian-6.12"]);
    all.map(|kernel| (kernel.to_owned(), rules_of(kernel))).collect()
}

const WEIGHTS: [u64; 6] = [15, 110, 335, 1024, 9548, 88761];

#[derive(Clone, Copy)]
struct PeltTask {
    avg: SchedAvg,
    weight: EntityWeight,
    attached: bool,
    on_rq: bool,
}

impl PeltTask {
    fn runnable_load(&self) -> RunnableLoad {
        let weight = self.weight.runnable_weight;
        RunnableLoad { weight, scaled_up: weight << 10 }
    }
}

/// One root queue and tasks that come, run, sleep, leave and change their weight.
struct PeltWorld {
    rules: PeltRules,
    weights: &'static [u64],
    now: u64,
    queue: CfsRqLoad,
    tasks: Vec<PeltTask>,
    running: Option<usize>,
}

impl PeltWorld {
    fn new(rules: PeltRules, weights: &'static [u64], draws: &mut XorShift64Star) -> PeltWorld {
        let task = |draws: &mut XorShift64Star| {
            let weight = *draws.pick(weights);
            let avg = rules.init_entity_runnable_average(Some(weight));
            let avg = SchedAvg { util_avg: 200, runnable_avg: avg.runnable_avg.max(200).min(weight), ..avg };
            PeltTask { avg, weight: EntityWeight::of_task(weight), attached: false, on_rq: false }
        };
        let tasks = (0..5).map(|_| task(draws)).collect();
        PeltWorld { rules, weights, now: 1 << 30, queue: CfsRqLoad::default(), tasks, running: None }
    }

    fn queue_state(&self) -> QueueState {
        let queued = || self.tasks.iter().filter(|task| task.on_rq);
        let weight = queued().map(|task| task.weight.weight).sum();
        let runnable_tasks = queued().count() as u64;
        QueueState { weight, runnable_weight: weight, runnable_tasks, running: self.running.is_some() }
    }

    fn update(&mut self, index: usize) {
        let state = self.queue_state();
        let PeltTask { weight, attached, on_rq, .. } = self.tasks[index];
        if attached {
            let running = self.running == Some(index);
            let se = EntityState { weight, on_rq, runnable_tasks: on_rq.into(), running };
            self.rules.update_se(self.now, CpuScale::FULL, &mut self.tasks[index].avg, se, true);
        }
        self.rules.update_cfs_rq_load_avg(self.now, CpuScale::FULL, &mut self.queue, state);
        if !attached {
            self.rules.attach_entity_load_avg(&mut self.queue, &mut self.tasks[index].avg, weight);
            self.tasks[index].attached = true;
        }
    }

    fn enqueue(&mut self, index: usize) {
        self.update(index);
        let task = &mut self.tasks[index];
        if self.rules.runnable == RunnableKind::LoadWeighted {
            self.queue.add_runnable(&task.avg, task.runnable_load());
        }
        task.on_rq = true;
    }

    fn dequeue(&mut self, index: usize) {
        self.update(index);
        let task = &mut self.tasks[index];
        if self.rules.runnable == RunnableKind::LoadWeighted {
            self.queue.remove_runnable(&task.avg, task.runnable_load());
        }
        task.on_rq = false;
        if self.running == Some(index) {
            self.running = None;
        }
    }

    fn reweight(&mut self, index: usize, weight: u64) {
        let was_queued = self.tasks[index].on_rq;
        if was_queued {
            self.dequeue(index);
        } else {
            self.update(index);
        }
        let new = EntityWeight::of_task(weight);
        let task = &mut self.tasks[index];
        self.rules.reweight_entity(&mut self.queue, &mut task.avg, task.weight.weight, new.weight);
        task.weight = new;
        if self.rules.runnable == RunnableKind::LoadWeighted {
            task.avg.update_runnable_avg(weight);
        }
        if was_queued {
            self.enqueue(index);
        }
    }

    fn step(&mut self, draws: &mut XorShift64Star) {
        self.now += draws.span();
        let index = draws.below(self.tasks.len() as u64) as usize;
        let task = self.tasks[index];
        match draws.below(8) {
            0 | 1 if !task.on_rq => self.enqueue(index),
            2 if task.on_rq => self.dequeue(index),
            3 if task.on_rq => {
                if let Some(previous) = self.running {
                    self.update(previous);
                }
                self.update(index);
                self.running = Some(index);
            }
            4 if task.attached => self.reweight(index, *draws.pick(self.weights)),
            5 if task.attached && !task.on_rq => {
                // Wakes elsewhere.
                self.rules.remove_entity_load_avg(&mut self.queue, &mut self.tasks[index].avg, task.weight);
                self.tasks[index].attached = false;
            }
            6 if task.attached && self.running != Some(index) => {
                // Is moved elsewhere.
                if task.on_rq {
                    self.dequeue(index);
                }
                self.update(index);
                self.rules.detach_entity_load_avg(&mut self.queue, &self.tasks[index].avg, task.weight);
                self.tasks[index].attached = false;
            }
            _ => self.update(index),
        }
        if !self.tasks[index].attached {
            self.tasks[index].avg.last_update_time = 0;
        }
    }

    fn check(&mut self, history: &str) {
        let state = self.queue_state();
        self.rules.update_cfs_rq_load_avg(self.now, CpuScale::FULL, &mut self.queue, state);
        for task in &mut self.tasks {
            let avg = &task.avg;
            assert!(avg.load_sum <= LOAD_AVG_MAX.into(), "{history}: {avg:?}");
            assert!(avg.util_sum <= UTIL_SUM_MAX, "{history}: {avg:?}");
            assert!(avg.load_avg <= task.weight.weight && avg.util_avg <= 1024, "{history}: {avg:?}");
            assert!(avg.period_contrib < 1024);
            assert!(avg.last_update_time <= self.now);
        }
        let avg = &self.queue.avg;
        let all: u64 = self.tasks.iter().filter(|task| task.attached).map(|task| task.weight.weight).sum();
        // What a heavy entity takes with it may be off by what accrued since averages were last made.
        let off = 88761 / 16;
        assert!(avg.load_avg <= all + off, "{history}: {avg:?} of {all}");
        let most = self.tasks.len() as u64 * 1024 + 64;
        assert!(avg.util_avg <= most, "{history}: {avg:?}");
        if self.rules.runnable == RunnableKind::TaskCount {
            assert!(avg.runnable_avg <= most, "{history}: {avg:?}");
        }
    }
}

fn histories(mut check: impl FnMut(&str, PeltRules, &mut XorShift64Star)) {
    for (name, rules) in all_rules() {
        for seed in 1..=6 {
            let mut draws = XorShift64Star(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
            check(&format!("{name}, seed {seed}"), rules, &mut draws);
        }
    }
}

#[test]
fn sums_stay_within_the_kernels_bounds() {
    histories(|history, rules, draws| {
        let mut world = PeltWorld::new(rules, &WEIGHTS, draws);
        for _ in 0..400 {
            world.step(draws);
            world.check(history);
        }
    });
}

/// A queue's load and utilization are the sums of its attached entities', blocked ones included.
#[test]
fn a_queue_is_the_sum_of_its_entities() {
    histories(|history, rules, draws| {
        let mut world = PeltWorld::new(rules, &WEIGHTS[2..4], draws);
        (0..400).for_each(|_| world.step(draws));
        for index in 0..world.tasks.len() {
            if world.tasks[index].attached {
                world.update(index);
            }
        }
        let sum = |of: fn(&SchedAvg) -> u64| -> u64 {
            world.tasks.iter().filter(|task| task.attached).map(|task| of(&task.avg)).sum()
        };
        let (load, util) = (sum(|avg| avg.load_avg), sum(|avg| avg.util_avg));
        let state = world.queue_state();
        world.rules.update_cfs_rq_load_avg(world.now, CpuScale::FULL, &mut world.queue, state);
        let avg = &world.queue.avg;
        assert!(avg.load_avg.abs_diff(load) <= load / 32 + 32, "{history}: load {load}, {avg:?}");
        assert!(avg.util_avg.abs_diff(util) <= 32, "{history}: utilization {util}, {avg:?}");
    });
}

/// Attaching and detaching at the same instant leaves the averages as they were, and sums within one unit of average.
#[test]
fn coming_and_going_leaves_nothing() {
    histories(|history, rules, draws| {
        let mut world = PeltWorld::new(rules, &WEIGHTS, draws);
        (0..200).for_each(|_| world.step(draws));
        let state = world.queue_state();
        rules.update_cfs_rq_load_avg(world.now, CpuScale::FULL, &mut world.queue, state);
        let before = world.queue;
        for weight in WEIGHTS {
            let util_avg = draws.below(1025);
            let load_avg = draws.below(weight + 1);
            let mut guest = SchedAvg { load_avg, util_avg, runnable_avg: util_avg, ..SchedAvg::default() };
            let entity = EntityWeight::of_task(weight);
            rules.attach_entity_load_avg(&mut world.queue, &mut guest, entity);
            rules.detach_entity_load_avg(&mut world.queue, &guest, entity);
            let (was, is) = (before.avg, world.queue.avg);
            assert_eq!(
                (was.load_avg, was.util_avg, was.runnable_avg),
                (is.load_avg, is.util_avg, is.runnable_avg),
                "{history}"
            );
            let unit = u64::from(was.divider());
            let cut = rules.detach_load == SumSync::FlooredNarrow && was.load_sum > u32::MAX.into();
            // A sum that is recomputed from its average loses what accrued since that was made.
            let accrued = state.weight * 1024;
            assert!(cut || was.load_sum.abs_diff(is.load_sum) <= unit + accrued, "{history}");
            assert!(u64::from(was.util_sum).abs_diff(is.util_sum.into()) <= unit + (1 << 20), "{history}");
            assert_eq!(world.queue.prop_runnable_sum, before.prop_runnable_sum, "{history}");
        }
    });
}

/// Time may pass in one step or in many: only what rounding takes at each step differs.
#[test]
fn steps_do_not_matter() {
    histories(|history, rules, draws| {
        let weight = *draws.pick(&WEIGHTS);
        let state = |draws: &mut XorShift64Star| {
            let on_rq = draws.below(2) == 0;
            let running = on_rq && draws.below(2) == 0;
            EntityState {
                weight: EntityWeight::of_task(weight),
                on_rq,
                runnable_tasks: on_rq.into(),
                running,
            }
        };
        let (mut coarse, mut fine) = (SchedAvg::default(), SchedAvg::default());
        let mut now = 0;
        for _ in 0..100 {
            let se = state(draws);
            let steps = 1 + draws.below(20);
            let span = draws.span() / steps;
            for _ in 0..steps {
                now += span;
                rules.update_se(now, CpuScale::FULL, &mut fine, se, false);
            }
            rules.update_se(now, CpuScale::FULL, &mut coarse, se, false);
            assert_eq!(coarse.last_update_time, fine.last_update_time, "{history}");
            assert_eq!(coarse.period_contrib, fine.period_contrib, "{history}");
            let off = coarse.load_sum.abs_diff(fine.load_sum);
            assert!(off <= 64, "{history}: {off}");
            let off = coarse.util_sum.abs_diff(fine.util_sum);
            assert!(off <= 64 << 10, "{history}: {off}");
        }
    });
}

/// A task that always runs, looked at every 605 units, is 37 units above 1024 times the most of other sums; its average is
/// the highest that there is. No rhythm brings it further than the series goes in fractions.
#[test]
fn utilization_goes_beyond_the_maximum_of_other_sums_and_not_beyond_its_own() {
    let weight = EntityWeight::of_task(1024);
    let se = EntityState { weight, on_rq: true, runnable_tasks: 1, running: true };
    let highest = |units: u64| {
        let (mut avg, mut sum) = (SchedAvg::default(), 0);
        for step in 1..3_000 {
            PeltRules::BASE.update_se((step * units) << 10, CpuScale::FULL, &mut avg, se, false);
            assert!(avg.util_avg <= 1024, "{avg:?}");
            sum = sum.max(avg.util_sum);
        }
        sum
    };
    assert_eq!(highest(605) >> 10, LOAD_AVG_MAX + 37);
    for units in (1..2_100).step_by(7) {
        assert!(highest(units) <= UTIL_SUM_MAX, "every {units}");
    }
}

/// What nobody wants is gone after 2016 periods, wherever it began.
#[test]
fn everything_decays() {
    histories(|history, rules, draws| {
        let mut world = PeltWorld::new(rules, &WEIGHTS, draws);
        (0..100).for_each(|_| world.step(draws));
        let later = world.now + (2018 << 20);
        rules.update_cfs_rq_load_avg(later, CpuScale::FULL, &mut world.queue, QueueState::default());
        let avg = world.queue.avg;
        assert!(super::load_avg_is_decayed(&avg), "{history}: {avg:?}");
        assert_eq!((avg.load_avg, avg.util_avg, avg.runnable_avg), (0, 0, 0), "{history}");
        assert!(avg.divider() >= PELT_MIN_DIVIDER);
    });
}
