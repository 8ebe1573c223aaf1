//! How fast CPUs are, whatever their kernel takes them for, and what that does to a time.
//!
//! A kernel is told a capacity, a frequency, a priority; these stand in the topology and with the clocks. What a CPU does in a time
//! stands here. Where nothing else is said, both agree.
//!
//! Must not know: what the kernel is told of a frequency, who computes.

use fairlab_event::Ns;
use fairlab_kernel::CpuMask;

/// The speed of a biggest CPU at its highest frequency: what it does then times its frequency, each a part of 1024.
pub const FULL_SPEED: u64 = WHOLE * WHOLE;

/// Speeds and frequencies are parts of this.
pub const WHOLE: u64 = 1024;

/// How fast CPUs truly are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrueSpeeds {
    /// What each CPU does at its highest frequency, of 1024 of the fastest; empty: as much as its kernel takes for its capacity.
    pub cpus: Vec<u32>,
    /// CPUs that are slower the more of their cores are busy.
    pub boosts: Vec<Boost>,
    /// Times at which CPUs are slower.
    pub limits: Vec<SpeedLimit>,
}

/// Cores that share what they draw: the fewer of them are busy, the faster each is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boost {
    /// CPUs of the cores.
    pub cpus: CpuMask,
    /// From how many busy cores on they are how fast, of 1024; by rising number. With fewer, at full speed.
    pub steps: Vec<(u32, u32)>,
}

/// A time at which CPUs are slower, as heat makes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeedLimit {
    /// The CPUs.
    pub cpus: CpuMask,
    /// How fast they are then, of 1024 of what they would be.
    pub speed: u32,
    /// When it begins for the first time.
    pub from: Ns,
    /// How long it lasts; `None`: to the end.
    pub lasts: Option<Ns>,
    /// From one beginning to the next; `None`: it does not come back.
    pub every: Option<Ns>,
}

impl TrueSpeeds {
    /// Whether CPUs are at all times what their kernel takes them for.
    pub fn are_as_told(&self) -> bool {
        *self == TrueSpeeds::default()
    }
}

impl Boost {
    /// How fast each core is while so many of them are busy, of 1024.
    pub fn speed(&self, busy: u32) -> u64 {
        let reached = self.steps.iter().take_while(|(from, _)| *from <= busy).last();
        reached.map_or(WHOLE, |&(_, speed)| u64::from(speed))
    }
}

impl SpeedLimit {
    /// How fast CPUs are at `now`, of 1024, and when that next changes.
    pub fn at(&self, now: Ns) -> (u64, Option<Ns>) {
        if now < self.from {
            return (WHOLE, Some(self.from));
        }
        let (since, next) = match self.every {
            Some(every) => {
                let since = Ns(now.since(self.from).0 % every.0);
                (since, Some(now - since + every))
            }
            None => (now.since(self.from), None),
        };
        match self.lasts {
            Some(lasts) if since >= lasts => (WHOLE, next),
            Some(lasts) => (u64::from(self.speed), Some(now - since + lasts)),
            None => (u64::from(self.speed), None),
        }
    }
}

/// `time` × `by` / `of`, rounded up.
#[inline]
pub fn scale(time: Ns, by: u64, of: u64) -> Ns {
    if by == of { time } else { scale_up(time, by, of) }
}

#[cold]
fn scale_up(time: Ns, by: u64, of: u64) -> Ns {
    Ns((u128::from(time.0) * u128::from(by)).div_ceil(u128::from(of)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_as_fast_as_the_last_step_that_their_number_has_reached() {
        let boost = Boost { cpus: CpuMask::first(8), steps: vec![(1, 1000), (3, 900), (8, 500)] };
        assert_eq!(
            [0, 1, 2, 3, 7, 8, 20].map(|busy| boost.speed(busy)),
            [1024, 1000, 1000, 900, 900, 500, 500]
        );
    }

    #[test]
    fn a_limit_begins_ends_and_comes_back() {
        let once = SpeedLimit {
            cpus: CpuMask::first(1),
            speed: 512,
            from: Ns(100),
            lasts: Some(Ns(20)),
            every: None,
        };
        let at = |limit: &SpeedLimit, now| limit.at(Ns(now));
        assert_eq!(at(&once, 0), (1024, Some(Ns(100))));
        assert_eq!(at(&once, 100), (512, Some(Ns(120))));
        assert_eq!(at(&once, 120), (1024, None));
        let for_good = SpeedLimit { lasts: None, ..once.clone() };
        assert_eq!(at(&for_good, 5_000), (512, None));
        let again = SpeedLimit { every: Some(Ns(50)), ..once };
        assert_eq!(at(&again, 119), (512, Some(Ns(120))));
        assert_eq!(at(&again, 120), (1024, Some(Ns(150))));
        assert_eq!(at(&again, 151), (512, Some(Ns(170))));
    }
}
