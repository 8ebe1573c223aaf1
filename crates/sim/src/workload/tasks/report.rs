//! What is printed, and the numbers.
//!
//! Must not know: how they came about.

use std::fmt::Write;

use fairlab_event::Ns;

use super::TasksWorkload;
use super::histogram::TimeHistogram;
use super::plan::Op;
use super::rhythm::ReplyRhythm;

/// The percentiles that are printed, in per mille.
const PERMILLE: [(&str, u64); 3] = [("p50", 500), ("p99", 990), ("p99.9", 999)];

impl TasksWorkload {
    /// How long things have counted, s.
    fn seconds(&self, now: Ns) -> f64 {
        let settled = self.settling.end().unwrap_or(now);
        let length = now.since(settled);
        self.plan.duration.map_or(length, |duration| length.min(duration)).as_secs_f64()
    }

    /// What is replied to, by name, with how long that took and how evenly it came.
    fn replied(&self) -> Vec<(&str, &TimeHistogram, &ReplyRhythm)> {
        let replies =
            |wanted: &dyn Fn(&Op) -> bool| self.plan.tasks.iter().any(|task| task.steps.iter().any(wanted));
        let queues = self.queues.iter().enumerate();
        let queues = queues.filter(|(number, _)| replies(&|op| *op == Op::Reply(Some(*number))));
        let tasks = self.plan.tasks.iter().zip(&self.tasks);
        let tasks = tasks.filter(|(plan, _)| plan.steps.contains(&Op::Reply(None)));
        let queues = queues.map(|(_, queue)| (queue.spec.name.as_str(), &queue.latencies, &queue.rhythm));
        queues
            .chain(tasks.map(|(plan, state)| (plan.name.as_str(), &state.latencies, &state.rhythm)))
            .collect()
    }

    /// The share of all CPUs' time that was burnt on a lock.
    fn spin_share(&self, spun: Ns) -> f64 {
        let all = self.seconds(self.now) * self.nr_cpus as f64;
        if all > 0.0 { spun.as_secs_f64() / all } else { 0.0 }
    }

    /// What the workload prints at its end.
    pub(super) fn report(&self, now: Ns) -> String {
        let mut text = String::new();
        let us = |time: Ns| time.0 as f64 / 1e3;
        let seconds = self.seconds(now);
        for (name, latencies, _) in self.replied() {
            let (count, at) = (latencies.total(), |permille| us(latencies.permille(permille)));
            let rate = if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
            let _ = writeln!(
                text,
                "{name}: {count} replies, {rate:.1}/s; latency (usec): 50.0th {:.1}, 99.0th {:.1}, 99.9th {:.1}, max {:.1}",
                at(500),
                at(990),
                at(999),
                us(latencies.max())
            );
        }
        for queue in self.queues.iter().filter(|queue| queue.longest > 1 || queue.dropped > 0) {
            let (name, longest, dropped) = (&queue.spec.name, queue.longest, queue.dropped);
            let _ = writeln!(text, "queue {name}: at most {longest} waited, {dropped} had no room");
        }
        for lock in &self.locks {
            let (name, share) = (&lock.spec.name, self.spin_share(lock.spun) * 100.0);
            let _ = writeln!(
                text,
                "lock {name}: held {} times, 99.0th {:.1}, max {:.1} usec; waited for {} times, 99.0th {:.1} usec; {share:.1} % of CPU time spun",
                lock.holds.total(),
                us(lock.holds.permille(990)),
                us(lock.holds.max()),
                lock.waits.total(),
                us(lock.waits.permille(990)),
            );
        }
        for (plan, state) in self.plan.tasks.iter().zip(&self.tasks) {
            let _ = writeln!(text, "task {}: {} rounds", plan.name, state.rounds.count());
        }
        text
    }

    /// The workload's own numbers.
    pub(super) fn numbers(&self) -> Vec<(String, f64)> {
        let mut numbers = Vec::new();
        let seconds = self.seconds(self.now);
        for (name, latencies, rhythm) in self.replied() {
            let rate = if seconds > 0.0 { latencies.total() as f64 / seconds } else { 0.0 };
            numbers.push((format!("{name} replies_per_s"), rate));
            for (percentile, permille) in PERMILLE {
                let value = latencies.permille(permille).0 as f64;
                numbers.push((format!("{name} request_latency_ns_{percentile}"), value));
            }
            numbers.push((format!("{name} request_latency_ns_max"), latencies.max().0 as f64));
            if rhythm.intervals.total() > 0 {
                for (percentile, permille) in PERMILLE {
                    let value = rhythm.intervals.permille(permille).0 as f64;
                    numbers.push((format!("{name} reply_interval_ns_{percentile}"), value));
                }
                let longest = rhythm.intervals.max().0 as f64;
                numbers.push((format!("{name} reply_interval_ns_max"), longest));
            }
            numbers.extend(rhythm.jitter().map(|jitter| (format!("{name} reply_jitter_ns_mean"), jitter)));
        }
        for queue in
            self.queues.iter().filter(|queue| queue.spec.size.is_some() && queue.spec.arrivals.is_some())
        {
            numbers.push((format!("{} dropped", queue.spec.name), queue.dropped as f64));
        }
        for lock in &self.locks {
            let name = &lock.spec.name;
            numbers.push((format!("{name} lock_hold_ns_p99"), lock.holds.permille(990).0 as f64));
            numbers.push((format!("{name} lock_hold_ns_max"), lock.holds.max().0 as f64));
            numbers.push((format!("{name} lock_wait_ns_p99"), lock.waits.permille(990).0 as f64));
            numbers.push((format!("{name} lock_spin_share"), self.spin_share(lock.spun)));
        }
        numbers
    }
}
