//! Raw time stamps to nanoseconds.
//!
//! A stamp whose unit nothing tells is no time: such a trace is refused, never answered in seconds.
//!
//! Must not know: where the file says what its clock was.

use fairlab_event::Ns;

use crate::{ImportError, ReadOptions};

/// What the stamps of a clock count. Kernel: `trace_clocks`, kernel/trace/trace.c; those with `in_ns` count nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockUnit {
    Nanoseconds,
    /// Ticks of a rate that the kernel does not tell.
    Ticks,
    /// `jiffies_64_to_clock_t`, from v3.16 on.
    Hundredths,
    /// No time at all: one event is one step.
    Events,
}

impl ClockUnit {
    /// That of the clock called `name` in `trace_clock`. One that no kernel has may count anything.
    pub(crate) fn of(name: &str) -> ClockUnit {
        match name {
            // What is not said is the clock that a kernel begins with, which is `local`. trace-cmd's `tsc2nsec` is no kernel's.
            "" | "local" | "global" | "perf" | "mono" | "mono_raw" | "boot" | "tai" | "tsc2nsec" => {
                ClockUnit::Nanoseconds
            }
            "uptime" => ClockUnit::Hundredths,
            "counter" => ClockUnit::Events,
            _ => ClockUnit::Ticks,
        }
    }
}

/// How the stamps of a trace become nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceClock {
    scale: ClockScale,
    /// Added at last, ns.
    offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockScale {
    /// Stamps are nanoseconds.
    One,
    /// Ticks of a known rate.
    Rate { hz: u64 },
    /// Ticks that the recorder measured: multiplied, then shifted to the right.
    Measured { mult: u32, shift: u32 },
}

/// What a file says about its clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockFacts {
    /// The clock's name in `trace_clock`; empty when not said, which is `local`.
    pub(crate) name: String,
    /// `TSC2NSEC`: multiplier and shift.
    pub(crate) measured: Option<(u32, u32)>,
    /// What is to be added, ns.
    pub(crate) offset: i64,
}

/// A clock that counts ticks and has no name.
pub(crate) const UNNAMED: &str = "(unnamed)";

impl ClockFacts {
    /// The selected clock in the text of `trace_clock`: the one in brackets; a lone name as it is. A list without brackets, as old
    /// recorders cut it off, tells nothing.
    pub(crate) fn selected(trace_clock: &str) -> &str {
        let inside = trace_clock.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let name = inside
            .map_or(trace_clock, |(name, _)| name)
            .trim_matches(|byte: char| byte.is_whitespace() || byte == '\0');
        if name.contains(' ') { "" } else { name }
    }

    /// What a CPU's `stats` file shows of the clock, whatever it is called: nanoseconds are printed as seconds with a fraction
    /// (`now ts: 3016670.737348`), anything else as the number that it is.
    pub(crate) fn stats_in_ns(stats: &str) -> Option<bool> {
        let now = stats.lines().find_map(|line| line.strip_prefix("now ts:"))?;
        let now = now.trim_matches(|byte: char| byte.is_whitespace() || byte == '\0');
        let is_number = now.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && !now.is_empty();
        is_number.then(|| now.contains('.'))
    }

    /// The name by which a buffer's stamps are to be read: of those that the file has for it, each more general than the one
    /// before, and by what its statistics show.
    pub(crate) fn name_of<'n>(names: &[&'n str], in_ns: Option<bool>) -> &'n str {
        let own = names.iter().find(|name| !name.is_empty()).copied().unwrap_or_default();
        let other = names.iter().find(|name| ClockUnit::of(name) != ClockUnit::Nanoseconds).copied();
        match in_ns {
            Some(true) if ClockUnit::of(own) == ClockUnit::Nanoseconds => own,
            Some(true) => "",
            Some(false) => other.unwrap_or(UNNAMED),
            // A recorder may say "local" of an instance whose clock it has set itself.
            None => other.unwrap_or(own),
        }
    }
}

impl TraceClock {
    /// The clock that `facts` describe. A rate given in `options` is used where the file does not know it.
    ///
    /// # Errors
    /// Nothing tells how long a tick is.
    pub(crate) fn new(facts: &ClockFacts, options: &ReadOptions) -> Result<TraceClock, ImportError> {
        const SHIFT_MAX: u32 = 64;
        let unit = ClockUnit::of(&facts.name);
        let scale = match (unit, facts.measured, options.clock_hz) {
            (ClockUnit::Events, ..) => return Err(untold(&facts.name)),
            (_, Some((mult @ 1.., shift @ ..SHIFT_MAX)), _) => ClockScale::Measured { mult, shift },
            // Where nothing names the clock, whoever gives its rate knows it.
            (_, _, Some(hz @ 1..)) if unit != ClockUnit::Nanoseconds || facts.name.is_empty() => {
                ClockScale::Rate { hz }
            }
            (ClockUnit::Nanoseconds, ..) => ClockScale::One,
            (ClockUnit::Ticks | ClockUnit::Hundredths, ..) => return Err(untold(&facts.name)),
        };
        Ok(TraceClock { scale, offset: facts.offset })
    }

    /// The time that `stamp` means.
    #[inline]
    pub(crate) fn ns(&self, stamp: u64) -> Ns {
        let scaled = match self.scale {
            ClockScale::One => stamp,
            ClockScale::Rate { hz } => ticks_to_ns(stamp, hz),
            ClockScale::Measured { mult, shift } => {
                u64::try_from((u128::from(stamp) * u128::from(mult)) >> shift).unwrap_or(u64::MAX)
            }
        };
        Ns(scaled.saturating_add_signed(self.offset))
    }
}

/// How many nanoseconds `ticks` of a clock of `hz` ticks a second are, rounded down; the largest time when too many.
///
/// Seconds and the remainder are scaled apart, so that only clocks above 18 GHz need 128-bit arithmetic.
fn ticks_to_ns(ticks: u64, hz: u64) -> u64 {
    const NS_PER_SECOND: u64 = 1_000_000_000;
    debug_assert!(hz > 0, "a clock that stands still");
    let (seconds, remainder) = (ticks / hz, ticks % hz);
    let part = match remainder.checked_mul(NS_PER_SECOND) {
        Some(scaled) => scaled / hz,
        // The quotient is below NS_PER_SECOND since remainder < hz.
        None => (u128::from(remainder) * u128::from(NS_PER_SECOND) / u128::from(hz)) as u64,
    };
    seconds.saturating_mul(NS_PER_SECOND).saturating_add(part)
}

/// Why the stamps of the clock called `name` tell no time, and what to do about it.
pub(crate) fn untold(name: &str) -> ImportError {
    ImportError::UntoldClock(match (ClockUnit::of(name), name) {
        (ClockUnit::Events, _) => format!("the clock of this trace is '{name}', which counts events and tells no time"),
        (ClockUnit::Hundredths, _) => format!(
            "the clock of this trace is '{name}', which steps each hundredth of a second: no shorter wait shows; --clock-hz 100 \
             reads it nevertheless"
        ),
        (_, UNNAMED) => "the time stamps of this trace are whole numbers, and nothing tells what they count; give how many are a second \
             by --clock-hz: 1000000000 if trace-cmd recorded it with -C boot, else the rate of its clock"
            .to_string(),
        _ => format!(
            "the clock of this trace is '{name}', and nothing tells how many of its ticks are a second; give them by --clock-hz"
        ),
    })
}

/// The clocks of kernels, and what each counts.
#[cfg(test)]
pub(crate) const OF_KERNELS: [(&str, ClockUnit); 12] = [
    ("local", ClockUnit::Nanoseconds),
    ("global", ClockUnit::Nanoseconds),
    ("counter", ClockUnit::Events),
    ("uptime", ClockUnit::Hundredths),
    ("perf", ClockUnit::Nanoseconds),
    ("mono", ClockUnit::Nanoseconds),
    ("mono_raw", ClockUnit::Nanoseconds),
    ("boot", ClockUnit::Nanoseconds),
    ("tai", ClockUnit::Nanoseconds),
    ("x86-tsc", ClockUnit::Ticks),
    ("ppc-tb", ClockUnit::Ticks),
    ("s390-tod", ClockUnit::Ticks),
];

/// Holds a way in which files name their clock to what each clock counts. `read` makes such a file whose only event has the stamp
/// 52000, reads it with this rate, and gives the event's time.
#[cfg(test)]
pub(crate) fn check_all(form: &str, read: impl Fn(&str, Option<u64>) -> Result<u64, ImportError>) {
    for (name, unit) in OF_KERNELS {
        let read = |hz| match read(name, hz) {
            Ok(time) => Some(time),
            Err(ImportError::UntoldClock(fact)) => {
                assert!(fact.contains(name) && !fact.contains('\n'), "{form}, {name}: {fact}");
                None
            }
            Err(error) => panic!("{form}, {name}: {error}"),
        };
        let expected = match unit {
            ClockUnit::Nanoseconds => (Some(52_000), Some(52_000)),
            ClockUnit::Ticks | ClockUnit::Hundredths => (None, Some(26_000)),
            ClockUnit::Events => (None, None),
        };
        assert_eq!((read(None), read(Some(2_000_000_000))), expected, "{form}, {name}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock, or no clock where it is refused.
    fn clock(name: &str, measured: Option<(u32, u32)>, offset: i64, hz: Option<u64>) -> Option<TraceClock> {
        let facts = ClockFacts { name: name.to_string(), measured, offset };
        TraceClock::new(&facts, &ReadOptions { clock_hz: hz, ..ReadOptions::default() }).ok()
    }

    #[test]
    fn stamps_become_nanoseconds() {
        let ns = |clock: Option<TraceClock>, stamp| clock.map(|clock| clock.ns(stamp).0);
        assert_eq!(ns(clock("local", None, 5, Some(1000)), 7), Some(12));
        assert_eq!(ns(clock("", None, -9, None), 7), Some(0));
        assert_eq!(ns(clock("", None, 0, Some(2_000_000_000)), 8), Some(4));
        assert_eq!(ns(clock("x86-tsc", None, 0, None), 7), None);
        assert_eq!(ns(clock("x86-tsc", None, 0, Some(0)), 7), None);
        assert_eq!(ns(clock("x86-tsc", None, 1, Some(2_000_000_000)), 8), Some(5));
        assert_eq!(ns(clock("x86-tsc", Some((3 << 20, 21)), 1, Some(7)), 8), Some(13));
        assert_eq!(ns(clock("x86-tsc", Some((0, 21)), 0, None), 8), None);
        assert_eq!(ns(clock("x86-tsc", Some((1, u32::MAX)), 0, None), 8), None);
        assert_eq!(ns(clock("x86-tsc", Some((u32::MAX, 0)), 1, None), u64::MAX), Some(u64::MAX));
        assert_eq!(ns(clock("uptime", None, 0, Some(100)), 7), Some(70_000_000));
        assert_eq!(ns(clock(UNNAMED, None, 0, Some(1)), u64::MAX), Some(u64::MAX));
    }

    #[test]
    fn the_selected_clock_stands_in_brackets() {
        assert_eq!(ClockFacts::selected("local global [x86-tsc] mono\n"), "x86-tsc");
        assert_eq!(ClockFacts::selected("[local] global counter\n\0"), "local");
        assert_eq!(ClockFacts::selected("mono\n"), "mono");
        assert_eq!(ClockFacts::selected("local global [x86"), "");
        assert_eq!(ClockFacts::selected(""), "");
    }

    #[test]
    fn a_buffers_statistics_overrule_its_clocks_name() {
        for (names, in_ns, expected) in [
            (["local", "x86-tsc"], Some(false), "x86-tsc"),
            (["local", "x86-tsc"], Some(true), "local"),
            (["local", "x86-tsc"], None, "x86-tsc"),
            (["uptime", "local"], None, "uptime"),
            (["uptime", "local"], Some(true), ""),
            (["local", "local"], Some(false), UNNAMED),
            (["", "boot"], None, "boot"),
            (["boot", "local"], None, "boot"),
            (["", ""], None, ""),
        ] {
            assert_eq!(ClockFacts::name_of(&names, in_ns), expected, "{names:?} {in_ns:?}");
        }
        let shown = [
            "oldest event ts: 1\nnow ts: 3016670737348\n",
            "now ts:  3016670.737348\0",
            "now ts: ",
            "CPU: 0\n",
        ];
        assert_eq!(shown.map(ClockFacts::stats_in_ns), [Some(false), Some(true), None, None]);
    }

    #[test]
    fn ticks_become_nanoseconds_without_rounding_up() {
        assert_eq!(ticks_to_ns(4_666_290_303, 1_000_000_000), 4_666_290_303);
        assert_eq!(ticks_to_ns(2_596_134_001, 2_596_134_000), 1_000_000_000);
        assert_eq!(ticks_to_ns(2_596_134_003, 2_596_134_000), 1_000_000_001);
        assert_eq!(ticks_to_ns(u64::MAX, 1), u64::MAX);
        for (ticks, hz) in
            [(u64::MAX, u64::MAX), (u64::MAX - 7, 3_000_000_001), (u64::MAX, 20_000_000_000), (5, 7)]
        {
            let exact = u128::from(ticks) * 1_000_000_000 / u128::from(hz);
            assert_eq!(u128::from(ticks_to_ns(ticks, hz)), exact, "{ticks} at {hz}");
        }
    }
}
