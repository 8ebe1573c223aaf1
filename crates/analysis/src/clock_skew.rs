//! Clocks of CPUs that stand apart.
//!
//! A task sleeps on a CPU, another CPU wakes it, and it comes back on its own: by one clock that order never changes. Where two
//! CPUs' clocks stand apart, wakeups come after the switch that they caused, or too long before it. So each wakeup, held against
//! each sleep of its task that is near, says by how much the clocks may differ: it came within that sleep and shortly before its
//! end. What differences the wakeups between two CPUs name, is counted; the one that most of them name is true. Where that is
//! none, the clocks are right.
//!
//! Memory goes by tasks and by pairs of CPUs. Must not know: what is computed from the times.

use std::collections::{BTreeMap, VecDeque};

use fairlab_event::{Cpu, Event, EventKind, Ns, Pid, Sink};

use crate::pid_map::PidMap;

/// Two CPUs whose clocks stand apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClocksApart {
    /// The two CPUs; the clock of the second is ahead.
    pub cpus: [Cpu; 2],
    /// By how much.
    pub by: Ns,
    /// How many wakeups between them only make sense with clocks so far apart.
    pub late: u64,
    /// Of how many.
    pub wakeups: u64,
}

impl ClocksApart {
    /// One clause.
    pub fn sentence(&self) -> String {
        let ClocksApart { cpus: [behind, ahead], by, late, wakeups } = self;
        let ms = by.0 as f64 / 1e6;
        format!(
            "the clock of CPU {ahead} is {ms:.3} ms ahead of that of CPU {behind}: wakeups between them come after the switch that they \
             caused, or too long before it ({late} of {wakeups} fit only so); --align-cpus shifts the times"
        )
    }
}

/// Finds clocks that stand apart.
#[derive(Clone, Debug, Default)]
pub struct ClockSkew {
    tasks: PidMap<SeenTask>,
    pairs: BTreeMap<(u32, u32), NamedDifferences>,
    has_waking: bool,
}

/// What was seen of a task of late.
#[derive(Clone, Debug, Default)]
struct SeenTask {
    /// Where and since when it sleeps.
    asleep: Option<(Cpu, Ns)>,
    /// On which CPU it slept, from when to when.
    sleeps: VecDeque<(Cpu, Ns, Ns)>,
    /// Where and when it was woken.
    wakings: VecDeque<(Cpu, Ns)>,
}

/// So many sleeps and wakeups of a task are looked at: a clock that is off by more of them is not found out.
const RECENT_MAX: usize = 64;
/// A wakeup is followed by its switch within this time more often than not, even where CPUs are short.
const SHORTLY: i64 = 1_000_000;
/// Fewer wakeups that come too late tell nothing.
const LATE_MIN: i64 = 5;
/// More pairs of CPUs are not looked at.
const PAIRS_MAX: usize = 1 << 10;
/// More tasks are not looked at, at a time.
const TASKS_MAX: usize = 1 << 16;

/// How many wakeups between two CPUs name each difference of their clocks.
///
/// Differences are counted in bins whose width grows with them. The counts are kept as steps from bin to bin, so that a range of
/// differences costs as much as one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedDifferences {
    steps: Vec<i32>,
    /// How many wakeups went from the CPU with the lower number to the other, and how many back.
    there: u64,
    back: u64,
}

/// Bins of each doubling of a difference.
const BINS: i64 = 128;
/// The smallest difference that is told from none, as a power of two; the largest.
const LEAST: u32 = 12;
const MOST: u32 = 30;
/// Bins of one sign.
const SIDE: i64 = BINS * (MOST - LEAST) as i64;

/// The number of a difference's bin: 0 for none.
fn bin_of(difference: i64) -> i64 {
    let size = difference.unsigned_abs().min((1 << MOST) - 1);
    if size < 1 << LEAST {
        return 0;
    }
    let doublings = size.ilog2();
    let within = (size >> (doublings - BINS.ilog2())) as i64 & (BINS - 1);
    difference.signum() * (1 + i64::from(doublings - LEAST) * BINS + within)
}

/// The middle of a bin.
fn middle(bin: i64) -> i64 {
    let Some(place) = bin.checked_abs().and_then(|size| size.checked_sub(1)).filter(|&place| place >= 0)
    else {
        return 0;
    };
    let width = 1_i64 << (LEAST + (place / BINS) as u32 - BINS.ilog2());
    bin.signum() * ((BINS + place % BINS) * width + width / 2)
}

impl Default for NamedDifferences {
    fn default() -> NamedDifferences {
        NamedDifferences { steps: vec![0; (2 * SIDE + 2) as usize], there: 0, back: 0 }
    }
}

impl NamedDifferences {
    /// One wakeup names all differences above `low` up to `high`.
    fn name(&mut self, low: i64, high: i64) {
        let mut from = bin_of(low);
        while middle(from) <= low {
            from += 1;
        }
        let mut to = bin_of(high);
        while middle(to) > high {
            to -= 1;
        }
        let (from, to) = (from.max(-SIDE), to.min(SIDE));
        if from <= to {
            self.steps[(from + SIDE) as usize] += 1;
            self.steps[(to + SIDE + 1) as usize] -= 1;
        }
    }

    /// How many name each bin.
    fn counts(&self) -> Vec<i64> {
        let mut sum = 0;
        let sums = self.steps.iter().map(|&step| {
            sum += i64::from(step);
            sum
        });
        sums.collect()
    }

    /// The difference that most wakeups name, how many do, and how many name none.
    fn found(&self) -> (i64, i64, i64) {
        let counts = self.counts();
        let most = counts.iter().copied().max().unwrap_or(0);
        let none = counts[SIDE as usize];
        let is_top = |bin: &i64| counts[(bin + SIDE) as usize] == most;
        let nearest = (0..=SIDE).flat_map(|size| [size, -size]).find(is_top).unwrap_or(0);
        let (mut low, mut high) = (nearest, nearest);
        while low > -SIDE && is_top(&(low - 1)) {
            low -= 1;
        }
        while high < SIDE && is_top(&(high + 1)) {
            high += 1;
        }
        // The switch follows a wakeup at once: of wakeups that go one way, the largest difference is the nearest to the truth.
        let share = self.there as f64 / (self.there + self.back).max(1) as f64;
        let (low, high) = (middle(low) as f64, middle(high) as f64);
        ((low + (high - low) * share) as i64, most, none)
    }

    /// The difference, where it is one: so many wakeups name it that it is no accident, and far fewer name none.
    fn apart(&self) -> Option<(i64, i64, i64)> {
        let (difference, most, none) = self.found();
        let counts = self.counts();
        let [from, to] = [difference.abs() / 4, difference.abs().saturating_mul(4)].map(bin_of);
        let near = (from..=to).flat_map(|bin| [bin, -bin]).map(|bin| counts[(bin + SIDE) as usize]);
        let mean = near.sum::<i64>() / (2 * (to - from + 1));
        // How much more than `count` of the most that there could be accident makes, at `deviations` from what is usual.
        let accident = |count: i64, deviations: f64| {
            let (count, most) = (count as f64, most as f64);
            count + deviations * (count * (1.0 - count / most.max(1.0))).max(0.0).sqrt() + 2.0
        };
        let is_told = bin_of(difference) != 0
            && most - none >= LATE_MIN
            && most as f64 >= accident(none, 3.0)
            && most as f64 >= accident(mean, 5.0);
        is_told.then_some((difference, most, none))
    }
}

impl ClockSkew {
    /// Takes the next event.
    pub fn event(&mut self, event: &Event<'_>) {
        match &event.kind {
            EventKind::SchedSwitch(switch) => {
                self.enters(switch.next_pid, event);
                let sleeps = !switch.prev_state.is_runnable() && !switch.prev_state.is_preempted();
                self.leaves(switch.prev_pid, sleeps, event);
            }
            EventKind::SchedWaking(wakeup) => {
                self.has_waking = true;
                self.wakes(wakeup.pid, event);
            }
            EventKind::SchedWakeup(wakeup) if !self.has_waking => self.wakes(wakeup.pid, event),
            EventKind::SchedProcessExit { pid, .. } => drop(self.tasks.remove(pid)),
            EventKind::Lost { .. } => self.tasks.clear(),
            _ => {}
        }
    }

    fn task(&mut self, pid: Pid) -> Option<&mut SeenTask> {
        let is_known = self.tasks.contains_key(&pid) || self.tasks.len() < TASKS_MAX;
        (is_known && !pid.is_idle()).then(|| self.tasks.entry(pid).or_default())
    }

    fn leaves(&mut self, pid: Pid, sleeps: bool, event: &Event<'_>) {
        if let Some(task) = self.task(pid) {
            task.asleep = sleeps.then_some((event.cpu, event.time));
        }
    }

    fn enters(&mut self, pid: Pid, event: &Event<'_>) {
        let Some(task) = self.task(pid) else { return };
        // Both ends are to be of one clock.
        let Some((cpu, since)) = task.asleep.take().filter(|&(cpu, _)| cpu == event.cpu) else { return };
        let sleep = (cpu, since, event.time);
        remember(&mut task.sleeps, sleep);
        let wakings = std::mem::take(&mut task.wakings);
        for &waking in &wakings {
            self.name(waking, sleep);
        }
        if let Some(task) = self.task(pid) {
            task.wakings = wakings;
        }
    }

    fn wakes(&mut self, pid: Pid, event: &Event<'_>) {
        let Some(task) = self.task(pid) else { return };
        let waking = (event.cpu, event.time);
        remember(&mut task.wakings, waking);
        let sleeps = std::mem::take(&mut task.sleeps);
        for &sleep in &sleeps {
            self.name(waking, sleep);
        }
        if let Some(task) = self.task(pid) {
            task.sleeps = sleeps;
        }
    }

    /// Counts what a wakeup says, if it was the one that ended a sleep.
    fn name(&mut self, (waker, woken): (Cpu, Ns), (sleeper, from, to): (Cpu, Ns, Ns)) {
        if waker == sleeper {
            return;
        }
        let since_woken =
            |time: Ns| i64::try_from(i128::from(time.0) - i128::from(woken.0)).unwrap_or(i64::MAX);
        let (start, end) = (since_woken(from), since_woken(to));
        let start = start.max(end.saturating_sub(SHORTLY));
        if start >= 1 << MOST || end <= -(1 << MOST) {
            return;
        }
        let key = (waker.0.min(sleeper.0), waker.0.max(sleeper.0));
        if self.pairs.len() >= PAIRS_MAX && !self.pairs.contains_key(&key) {
            return;
        }
        let pair = self.pairs.entry(key).or_default();
        // What is counted is how far the clock of the higher number is ahead.
        match waker < sleeper {
            true => {
                pair.there += 1;
                pair.name(start, end);
            }
            false => {
                pair.back += 1;
                pair.name(-end - 1, -start - 1);
            }
        }
    }

    /// The pairs of CPUs whose clocks stand apart, the one that most wakeups show first.
    pub fn apart(&self) -> Vec<ClocksApart> {
        let told = self.pairs.iter().filter_map(|(&(low, high), pair)| {
            let (difference, most, none) = pair.apart()?;
            let cpus = if difference > 0 { [low, high] } else { [high, low] };
            Some(ClocksApart {
                cpus: cpus.map(Cpu),
                by: Ns(difference.unsigned_abs()),
                late: (most - none) as u64,
                wakeups: most as u64,
            })
        });
        let mut told: Vec<ClocksApart> = told.collect();
        told.sort_by_key(|apart| (std::cmp::Reverse(apart.late), apart.cpus));
        told
    }

    /// What is to be added to the times of each CPU, ns, by its number; nothing where no clocks stand apart. Most CPUs stay.
    pub fn shifts(&self) -> Vec<i64> {
        let (mut right, mut wrong) = (Vec::new(), Vec::new());
        for (&cpus, pair) in &self.pairs {
            let (_, most, none) = pair.found();
            match pair.apart() {
                Some((difference, ..)) => wrong.push((most, cpus, difference)),
                // Wakeups both ways, most of which fit as they are.
                None if none * 10 >= most * 9 && pair.there.min(pair.back) > 0 => right.push((most, cpus, 0)),
                None => {}
            }
        }
        if wrong.is_empty() {
            return Vec::new();
        }
        right.sort_unstable_by_key(|&(most, cpus, _)| (std::cmp::Reverse(most), cpus));
        wrong.sort_unstable_by_key(|&(most, cpus, _)| (std::cmp::Reverse(most), cpus));
        let count = self.pairs.keys().map(|&(_, high)| high as usize + 1).max().unwrap_or(0);
        let mut clocks = KnownClocks { ahead: vec![0; count], group: (0..count).collect() };
        for (_, (low, high), difference) in right.into_iter().chain(wrong) {
            clocks.join(low as usize, high as usize, difference);
        }
        clocks.shifts()
    }
}

/// How far each CPU's clock is ahead of the first of its group.
#[derive(Clone, Debug)]
struct KnownClocks {
    ahead: Vec<i64>,
    group: Vec<usize>,
}

impl KnownClocks {
    /// The clock of `high` is ahead of that of `low`; what is known already stays.
    fn join(&mut self, low: usize, high: usize, difference: i64) {
        let (kept, moved) = (self.group[low], self.group[high]);
        if kept == moved {
            return;
        }
        let by = self.ahead[low] + difference - self.ahead[high];
        for cpu in 0..self.group.len() {
            if self.group[cpu] == moved {
                self.group[cpu] = kept;
                self.ahead[cpu] += by;
            }
        }
    }

    /// What makes the clocks of each group alike, by changing the fewest.
    fn shifts(&self) -> Vec<i64> {
        let mut shifts = vec![0; self.group.len()];
        for group in 0..self.group.len() {
            let members = || (0..self.group.len()).filter(|&cpu| self.group[cpu] == group);
            let alike =
                |cpu: &usize| members().filter(|&other| self.ahead[other] == self.ahead[*cpu]).count();
            let Some(usual) = members().max_by_key(|cpu| (alike(cpu), std::cmp::Reverse(*cpu))) else {
                continue;
            };
            members().for_each(|cpu| shifts[cpu] = self.ahead[usual] - self.ahead[cpu]);
        }
        shifts
    }
}

fn remember<T>(recent: &mut VecDeque<T>, item: T) {
    if recent.len() == RECENT_MAX {
        recent.pop_front();
    }
    recent.push_back(item);
}

impl Sink for ClockSkew {
    fn event(&mut self, event: &Event<'_>) {
        ClockSkew::event(self, event);
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::{Prio, Switch, TaskState, Wakeup};

    use super::*;

    /// xorshift64*.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20) % limit
        }
    }

    /// Events of `cpus` CPUs with two tasks each, which other CPUs wake now and then: they sleep for `sleep` ns on average, wait and
    /// run for a tenth of that. One in `lost` wakeups is not recorded.
    fn story(cpus: u32, sleep: u64, lost: u64) -> Vec<Event<'static>> {
        let mut random = Random(7);
        let mut events = Vec::new();
        let pid_of = |cpu: u32, task: u32| Pid((1 + 2 * cpu + task).cast_signed());
        for cpu in 0..cpus {
            let mut now = 1_000_000_000 + random.below(sleep);
            while now < 1_000_000_000 + 400 * sleep {
                let task = random.below(2) as u32;
                let pid = pid_of(cpu, task);
                let switch = |prev_pid, next_pid| {
                    EventKind::SchedSwitch(Switch {
                        prev_comm: "t".into(),
                        prev_pid,
                        prev_prio: Prio(120),
                        prev_state: TaskState::INTERRUPTIBLE,
                        next_comm: "t".into(),
                        next_pid,
                        next_prio: Prio(120),
                    })
                };
                now += sleep / 4 + random.below(sleep);
                let waking = Wakeup { comm: "t".into(), pid, prio: Prio(120), target_cpu: Cpu(cpu) };
                let waker = Cpu(random.below(cpus.into()) as u32);
                if random.below(lost) > 0 {
                    events.push(Event::new(Ns(now), waker, EventKind::SchedWaking(waking)));
                }
                now += 3_000 + random.below(sleep / 10);
                events.push(Event::new(Ns(now), Cpu(cpu), switch(Pid(0), pid)));
                now += 10_000 + random.below(sleep / 10);
                events.push(Event::new(Ns(now), Cpu(cpu), switch(pid, Pid(0))));
            }
        }
        events
    }

    /// What is found when each CPU's clock is ahead by so much.
    fn found(mut events: Vec<Event<'static>>, ahead: &[i64]) -> ClockSkew {
        for event in &mut events {
            event.time = Ns(event.time.0.saturating_add_signed(ahead[event.cpu.index()]));
        }
        events.sort_by_key(|event| event.time);
        let mut skew = ClockSkew::default();
        events.iter().for_each(|event| skew.event(event));
        skew
    }

    const US: i64 = 1_000;
    const MS: i64 = 1_000_000;

    #[test]
    fn clocks_that_stand_apart_are_found_with_how_far() {
        // By more than so many sleeps, or by much less than wakeups take, none is found out.
        let dense = &[5 * MS, -5 * MS, 300 * US, 70 * US][..];
        let usual = &[5 * MS, -5 * MS, 300 * US, -40 * MS, 70 * US];
        let idle = &[5 * MS, -5 * MS, -40 * MS];
        for (sleep, differences) in [(100_000, dense), (1_000_000, usual), (20_000_000, idle)] {
            for &by in differences {
                let skew = found(story(2, sleep, u64::MAX), &[0, by]);
                let [apart] = skew.apart()[..] else { panic!("{sleep} {by}: {:?}", skew.apart()) };
                let cpus = if by > 0 { [Cpu(0), Cpu(1)] } else { [Cpu(1), Cpu(0)] };
                let error = apart.by.0.abs_diff(by.unsigned_abs());
                assert_eq!(apart.cpus, cpus, "{sleep} {by}");
                assert!(error < by.unsigned_abs() / 50 + 5_000, "{sleep} {by}: {apart:?}");
                assert!(apart.late >= 5 && apart.wakeups > 50, "{sleep} {by}: {apart:?}");
            }
        }
    }

    #[test]
    fn clocks_that_agree_are_not_suspected_whatever_is_missing() {
        for sleep in [100_000, 1_000_000, 20_000_000] {
            for lost in [u64::MAX, 10, 2] {
                let skew = found(story(4, sleep, lost), &[0; 4]);
                assert_eq!(skew.apart(), [], "{sleep} {lost}");
                assert_eq!(skew.shifts(), [0; 0], "{sleep} {lost}");
            }
        }
    }

    #[test]
    fn shifts_change_the_fewest_clocks() {
        let events = || story(5, 1_000_000, u64::MAX);
        for ahead in [[0, 0, 5 * MS, 0, 0], [0, -3 * MS, 0, 0, 7 * MS], [4 * MS, 0, 0, 4 * MS, 0]] {
            let shifts = found(events(), &ahead).shifts();
            assert_eq!(shifts.len(), 5);
            for (cpu, (shift, ahead)) in shifts.iter().zip(ahead).enumerate() {
                let error = (shift + ahead).unsigned_abs();
                assert!(error <= ahead.unsigned_abs() / 50, "CPU {cpu} of {ahead}: {shifts:?}");
            }
        }
    }

    #[test]
    fn bins_hold_what_they_are_of() {
        for size in [0, 1, 4095, 4096, 4127, 4128, 5_000_000, (1 << MOST) - 1, i64::MAX] {
            for difference in [size, -size] {
                let bin = bin_of(difference);
                let middle = middle(bin);
                let bound = size.min((1 << MOST) - 1);
                assert!((-SIDE..=SIDE).contains(&bin), "{difference}");
                assert!((middle.abs() - bound).abs() <= bound / 128 + 4096, "{difference} {bin} {middle}");
                assert_eq!(bin_of(middle), bin, "{difference}");
            }
        }
    }
}
