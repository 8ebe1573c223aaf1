//! Clocks of CPUs that stand apart.
//!
//! A task sleeps on a CPU, another CPU wakes it, and it comes back on its own: by one clock that order never changes. Where two
//! CPUs' clocks stand apart, wakeups come after the switch that they caused, or too long before it. So each wakeup is held against
//! each sleep of its task that is near. It asks for all differences of the clocks that would put it between the sleep before and
//! this one, and fits those that put it within this sleep, shortly before its end. The true difference is one that nearly all fit
//! that ask for it. Where that is none, the clocks are right.
//!
//! Time goes by [`HELD_MAX`], memory by tasks and by pairs of CPUs. Must not know: what is computed from the times.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use fairlab_event::{Cpu, Event, EventKind, IdHasher, Ns, Pid, Sink};

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
    pairs: CpuPairs,
    has_waking: bool,
}

/// What wakeups tell of the clocks of each two CPUs.
#[derive(Clone, Debug, Default)]
struct CpuPairs {
    /// In order of appearance, each with its two CPUs, the lower number first.
    of: Vec<((u32, u32), Differences)>,
    places: HashMap<(u32, u32), usize, BuildHasherDefault<IdHasher>>,
    /// The one that was asked for last, and one that more wakeups tell nothing new of.
    latest: ((u32, u32), usize),
    full: (u32, u32),
    /// How often a wakeup was held against a sleep.
    held: u64,
}

/// What was seen of a task of late.
#[derive(Clone, Debug, Default)]
struct SeenTask {
    /// Where and since when it sleeps.
    asleep: Option<(Cpu, Ns)>,
    sleeps: VecDeque<Sleep>,
    /// Where and when it was woken.
    wakings: VecDeque<(Cpu, Ns)>,
}

/// A task slept on a CPU.
#[derive(Clone, Copy, Debug)]
struct Sleep {
    cpu: Cpu,
    /// When its sleep before this one ended.
    before: Ns,
    from: Ns,
    to: Ns,
}

/// A wakeup of a task, with those before and after it.
#[derive(Clone, Copy, Debug)]
struct Waking {
    cpu: Cpu,
    time: Ns,
    neighbours: [Option<(Cpu, Ns)>; 2],
}

impl Waking {
    /// The differences, above the first and up to the second, that put this wakeup, and no other, within a sleep, shortly before its
    /// end. The difference is how far the sleep's clock is ahead of this one's; `end`: what puts it at the sleep's end.
    #[inline]
    fn differences(&self, sleep: &Sleep, end: i64) -> Option<(i64, i64)> {
        let (mut low, mut high) = (since(sleep.from, self.time).max(end - SHORTLY), end);
        let [earlier, later] = self.neighbours;
        let is_within = |(cpu, time): (Cpu, Ns)| cpu == sleep.cpu && sleep.from < time && time <= sleep.to;
        if earlier.is_some_and(is_within) || later.is_some_and(is_within) {
            return None;
        }
        let same_clock = |&(cpu, _): &(Cpu, Ns)| cpu == self.cpu;
        if let Some((_, earlier)) = earlier.filter(same_clock) {
            high = high.min(since(sleep.from, earlier));
        }
        if let Some((_, later)) = later.filter(same_clock) {
            low = low.max(since(sleep.to, later));
        }
        (low < high).then_some((low, high))
    }
}

/// So many sleeps and wakeups of a task are looked at, by how many tasks there are: a clock that is off by more is not found out.
const RECENT: std::ops::RangeInclusive<usize> = 64..=256;
const RECENT_OF_ALL: usize = 1 << 17;
/// A wakeup is followed by its switch within this time more often than not, even where CPUs are short.
const SHORTLY: i64 = 1_000_000;
/// Fewer wakeups that come too late tell nothing.
const LATE_MIN: f64 = 5.0;
/// More pairs of CPUs are not looked at.
const PAIRS_MAX: usize = 1 << 10;
/// More tasks are not looked at, at a time.
const TASKS_MAX: usize = 1 << 14;
/// So often wakeups are held against sleeps, for a pair of CPUs and for all: what they tell does not change any more.
const HELD_OF_PAIR_MAX: u64 = 1 << 18;
const HELD_MAX: u64 = 1 << 22;

/// No difference: a wakeup that was held against nothing yet.
const UNREACHED: (i64, usize) = (i64::MAX, 0);

/// What wakeups between two CPUs tell of the difference of their clocks.
///
/// Differences are counted in bins whose width grows with them. The counts are kept as steps from bin to bin, so that a range of
/// differences costs as much as one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Differences {
    asked: Vec<i32>,
    fits: Vec<i32>,
    /// How often a wakeup went from the CPU with the lower number to the other, and how often back.
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

/// The time from a wakeup to another event.
#[inline]
const fn since(time: Ns, woken: Ns) -> i64 {
    time.0.wrapping_sub(woken.0).cast_signed()
}

/// How many bins have their middle at or below a difference: the bins between two differences begin with the number of the first,
/// and end before that of the second. Of a difference of the other sign, less one, it is [`MIRROR`] less as many.
#[inline]
fn bins_up_to(difference: i64) -> usize {
    /// Bits of a floating-point number behind those that tell its bin, and the number of the first.
    const BEHIND: u32 = f64::MANTISSA_DIGITS - 1 - BINS.ilog2();
    const FIRST: i64 = (f64::MAX_EXP - 1 + LEAST as i32) as i64 * BINS;
    let sign = difference >> (i64::BITS - 1);
    // Where two bins of a doubling meet, and where doublings do, the leading bits change.
    let size = (difference ^ sign).min((1 << MOST) - 1) as f64;
    let rounded = (size.to_bits().cast_signed() + (1 << (BEHIND - 1))) >> BEHIND;
    let on_its_side = (rounded - FIRST).max(0);
    (SIDE + 1 + sign + (on_its_side ^ sign) - sign).cast_unsigned() as usize
}

/// How many bins there are.
const MIRROR: usize = 2 * SIDE as usize + 1;

/// How many of those that asked for a difference fit it.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    fits: f64,
    asked: f64,
}

impl Share {
    fn value(self) -> f64 {
        if self.asked > 0.0 { self.fits / self.asked } else { 0.0 }
    }

    /// Where the share lies, by so many deviations to one side (Wilson's interval).
    fn bound(self, deviations: f64) -> f64 {
        let Share { fits, asked } = self;
        let z = deviations;
        if asked <= 0.0 {
            return if z < 0.0 { 0.0 } else { 1.0 };
        }
        let spread = z * (fits * (asked - fits) / asked + z * z / 4.0).max(0.0).sqrt();
        (fits + z * z / 2.0 + spread) / (asked + z * z)
    }
}

impl Default for Differences {
    fn default() -> Differences {
        let none = vec![0; MIRROR + 1];
        Differences { asked: none.clone(), fits: none, there: 0, back: 0 }
    }
}

impl Differences {
    /// The share of each bin.
    fn shares(&self) -> Vec<Share> {
        let mut share = Share::default();
        let steps = self.fits.iter().zip(&self.asked);
        let sums = steps.map(|(&fits, &asked)| {
            share = Share { fits: share.fits + f64::from(fits), asked: share.asked + f64::from(asked) };
            share
        });
        sums.collect()
    }

    /// The difference that fits best.
    fn found(&self, shares: &[Share]) -> i64 {
        let place = |bin: i64| (bin + SIDE) as usize;
        let nearest_first = (0..=SIDE).flat_map(|size| [size, -size]);
        let mut best = (0, f64::NEG_INFINITY);
        for bin in nearest_first {
            let least = shares[place(bin)].bound(-3.0);
            if least > best.1 {
                best = (bin, least);
            }
        }
        let top = shares[place(best.0)].value();
        let fits_as_well = |bin: i64| shares[place(bin)].asked > 0.0 && shares[place(bin)].value() >= top;
        let (mut low, mut high) = (best.0, best.0);
        while low > -SIDE && fits_as_well(low - 1) {
            low -= 1;
        }
        while high < SIDE && fits_as_well(high + 1) {
            high += 1;
        }
        // The switch follows a wakeup at once: of wakeups that go one way, the largest difference is the nearest to the truth.
        let share = self.there as f64 / (self.there + self.back).max(1) as f64;
        let (low, high) = (middle(low) as f64, middle(high) as f64);
        (low + (high - low) * share) as i64
    }

    /// The difference, where it is one: so many more wakeups fit it than fit none, or those around it, that it is no accident.
    /// With how many fit only so, and how many there were.
    fn apart(&self, shares: &[Share]) -> Option<(i64, u64, u64)> {
        let difference = self.found(shares);
        let at = |bin: i64| shares[(bin + SIDE) as usize];
        let [from, to] = [difference.abs() / 4, difference.abs().saturating_mul(4)].map(bin_of);
        let mut around = Share::default();
        for bin in (from..=to).flat_map(|bin| [bin, -bin]) {
            around.fits += at(bin).fits;
            around.asked += at(bin).asked;
        }
        let (none, best) = (at(0), at(bin_of(difference)));
        let only_so = best.fits - none.value() * best.asked;
        let is_told = bin_of(difference) != 0
            && only_so >= LATE_MIN
            && best.bound(-3.0) > none.bound(3.0)
            && best.bound(-5.0) > around.value();
        is_told.then_some((difference, only_so as u64, best.asked as u64))
    }

    /// Whether wakeups of both ways tell that the clocks are one.
    fn is_alike(&self, shares: &[Share]) -> bool {
        let none = shares[SIDE as usize];
        let best = shares.iter().map(|share| share.bound(-3.0)).fold(0.0, f64::max);
        none.value() >= 0.9 * best && none.fits >= LATE_MIN && self.there.min(self.back) > 0
    }
}

impl CpuPairs {
    /// Counts what a wakeup says, if it was the one that ended a sleep. `reached`: the difference that puts the wakeup at the end of
    /// the sleep that it was held against before, with its number of bins. It mostly is that of this sleep's begin.
    #[inline(always)]
    fn hold(&mut self, cpu: Cpu, waking: impl Fn() -> Waking, sleep: &Sleep, reached: &mut (i64, usize)) {
        if cpu == sleep.cpu {
            return;
        }
        self.held += 1;
        let key = (cpu.0.min(sleep.cpu.0), cpu.0.max(sleep.cpu.0));
        if key != self.full {
            self.count(key, &waking(), sleep, reached);
        }
    }

    fn count(&mut self, key: (u32, u32), waking: &Waking, sleep: &Sleep, reached: &mut (i64, usize)) {
        let [before, end] = [sleep.before, sleep.to].map(|time| since(time, waking.time));
        if before >= 1 << MOST || end <= -(1 << MOST) {
            return;
        }
        let end = end.min(1 << MOST);
        let Some(pair) = self.pair(key) else { return };
        if pair.there + pair.back >= HELD_OF_PAIR_MAX {
            self.full = key;
            return;
        }
        let from = if reached.0 == before { reached.1 } else { bins_up_to(before) };
        let to = bins_up_to(end);
        *reached = (end, to);
        // What is counted is how far the clock of the higher number is ahead.
        let goes_there = waking.cpu < sleep.cpu;
        let add = |steps: &mut [i32], from: usize, to: usize| {
            if from < to {
                let (from, to) = if goes_there { (from, to) } else { (MIRROR - to, MIRROR - from) };
                steps[from] += 1;
                steps[to] -= 1;
            }
        };
        add(&mut pair.asked, from, to);
        if let Some((low, high)) = waking.differences(sleep, end) {
            add(&mut pair.fits, bins_up_to(low), if high == end { to } else { bins_up_to(high) });
        }
        *(if goes_there { &mut pair.there } else { &mut pair.back }) += 1;
    }

    /// What is known of two CPUs, unless there are too many.
    #[inline]
    fn pair(&mut self, key: (u32, u32)) -> Option<&mut Differences> {
        if self.latest.0 != key {
            self.latest = (key, self.place(key)?);
        }
        self.of.get_mut(self.latest.1).map(|(_, pair)| pair)
    }

    fn place(&mut self, key: (u32, u32)) -> Option<usize> {
        if let Some(&place) = self.places.get(&key) {
            return Some(place);
        }
        let place = Some(self.of.len()).filter(|&place| place < PAIRS_MAX)?;
        self.of.push((key, Differences::default()));
        self.places.insert(key, place);
        Some(place)
    }
}

impl ClockSkew {
    /// Takes the next event.
    pub fn event(&mut self, event: &Event<'_>) {
        if self.pairs.held >= HELD_MAX {
            return;
        }
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

    /// How much is remembered of a task.
    fn recent_max(&self) -> usize {
        (RECENT_OF_ALL / self.tasks.len().max(1)).clamp(*RECENT.start(), *RECENT.end())
    }

    fn leaves(&mut self, pid: Pid, sleeps: bool, event: &Event<'_>) {
        if let Some(task) = seen(&mut self.tasks, pid) {
            task.asleep = sleeps.then_some((event.cpu, event.time));
        }
    }

    fn enters(&mut self, pid: Pid, event: &Event<'_>) {
        let most = self.recent_max();
        let ClockSkew { tasks, pairs, .. } = self;
        let Some(task) = seen(tasks, pid) else { return };
        // Both ends are to be of one clock.
        let Some((cpu, from)) = task.asleep.take().filter(|&(cpu, _)| cpu == event.cpu) else { return };
        let before = task.sleeps.back().map_or(from, |last| last.to);
        let sleep = Sleep { cpu, before, from, to: event.time };
        remember(&mut task.sleeps, sleep, most);
        // The last wakeup waits for the next.
        let mut earlier = None;
        for (&(cpu, time), &later) in task.wakings.iter().zip(task.wakings.iter().skip(1)) {
            let mut reached = UNREACHED;
            let waking = || Waking { cpu, time, neighbours: [earlier, Some(later)] };
            pairs.hold(cpu, waking, &sleep, &mut reached);
            earlier = Some((cpu, time));
        }
    }

    fn wakes(&mut self, pid: Pid, event: &Event<'_>) {
        let most = self.recent_max();
        let ClockSkew { tasks, pairs, .. } = self;
        let Some(task) = seen(tasks, pid) else { return };
        remember(&mut task.wakings, (event.cpu, event.time), most);
        let mut latest = task.wakings.iter().rev().copied();
        let (later, Some((cpu, time))) = (latest.next(), latest.next()) else { return };
        let waking = Waking { cpu, time, neighbours: [latest.next(), later] };
        let mut reached = UNREACHED;
        task.sleeps.iter().for_each(|sleep| pairs.hold(cpu, || waking, sleep, &mut reached));
    }

    /// The pairs of CPUs whose clocks stand apart, the one that most wakeups show first.
    pub fn apart(&self) -> Vec<ClocksApart> {
        let told = self.pairs.of.iter().filter_map(|&((low, high), ref pair)| {
            let (difference, late, wakeups) = pair.apart(&pair.shares())?;
            let cpus = if difference > 0 { [low, high] } else { [high, low] };
            let by = Ns(difference.unsigned_abs());
            Some(ClocksApart { cpus: cpus.map(Cpu), by, late, wakeups })
        });
        let mut told: Vec<ClocksApart> = told.collect();
        told.sort_by_key(|apart| (std::cmp::Reverse(apart.late), apart.cpus));
        told
    }

    /// What is to be added to the times of each CPU, ns, by its number; nothing where no clocks stand apart. Most CPUs stay.
    pub fn shifts(&self) -> Vec<i64> {
        let (mut right, mut wrong) = (Vec::new(), Vec::new());
        for &(cpus, ref pair) in &self.pairs.of {
            let shares = pair.shares();
            match pair.apart(&shares) {
                Some((difference, late, _)) => wrong.push((late, cpus, difference)),
                None if pair.is_alike(&shares) => right.push((pair.there + pair.back, cpus, 0)),
                None => {}
            }
        }
        if wrong.is_empty() {
            return Vec::new();
        }
        right.sort_unstable_by_key(|&(held, cpus, _)| (std::cmp::Reverse(held), cpus));
        wrong.sort_unstable_by_key(|&(late, cpus, _)| (std::cmp::Reverse(late), cpus));
        let count = self.pairs.of.iter().map(|&((_, high), _)| high as usize + 1).max().unwrap_or(0);
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

/// What was seen of a task, unless there are too many.
fn seen(tasks: &mut PidMap<SeenTask>, pid: Pid) -> Option<&mut SeenTask> {
    match tasks.len() < TASKS_MAX {
        _ if pid.is_idle() => None,
        true => Some(tasks.entry(pid).or_default()),
        false => tasks.get_mut(&pid),
    }
}

/// Takes up an item, and lets go of those beyond `most`.
fn remember<T>(recent: &mut VecDeque<T>, item: T, most: usize) {
    while recent.len() >= most {
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
        // By much less than wakeups take, or by more than so many sleeps, none is found out.
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

    #[test]
    fn bins_are_counted_by_their_middles() {
        let middles: Vec<i64> = (-SIDE..=SIDE).map(middle).collect();
        let edges = [-(1 << MOST) - 1, 1 << MOST, 0, -1, 1, -1000, 4095, 4096].into_iter();
        for difference in edges.chain(middles.iter().flat_map(|&middle| [middle - 1, middle, middle + 1])) {
            let counted = middles.partition_point(|&middle| middle <= difference);
            assert_eq!(bins_up_to(difference), counted, "{difference}");
            assert_eq!(bins_up_to(-difference - 1), MIRROR - counted, "{difference}");
        }
    }
}
