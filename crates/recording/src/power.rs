//! The clocks of the recorded machine and what its CPUs draw, as `sched_info.txt` and the snapshot list them.
//!
//! Must not know: what the model decides.

use std::collections::BTreeMap;

use fairlab_event::Ns;
use fairlab_kernel::CpuMask;
use fairlab_kernel::cpufreq::FrequencyDomain;
use fairlab_kernel::energy::{PerfDomain, PerfState};

const POLICIES: &str = "/sys/devices/system/cpu/cpufreq/";
const ENERGY_MODEL: &str = "/sys/kernel/debug/energy_model/";

/// The governor whose rules are known.
const SCHEDUTIL: &str = "schedutil";

/// What the recorder lists of clocks and power.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerLists {
    /// Policies under the governor schedutil.
    pub clocks: Vec<FrequencyDomain>,
    /// How fast each of them ran when the snapshot was taken, kHz.
    pub current: Vec<u32>,
    /// The energy model; none where the kernel may not go by it.
    pub energy: Vec<PerfDomain>,
}

/// Reads the list of the machine, and that of the frequencies at the snapshot (`policy0 1300000`).
pub(super) fn power(info: &str, frequencies: &str) -> PowerLists {
    let lines = info.lines().filter_map(|line| line.split_once(": "));
    let files = lines.clone().collect::<BTreeMap<_, _>>();
    let names = |roof: &'static str| {
        let mut names = Vec::new();
        for (path, _) in lines.clone() {
            let name = path.strip_prefix(roof).and_then(|path| path.split_once('/')).map(|(name, _)| name);
            names.extend(name.filter(|name| !names.contains(name)));
        }
        names
    };
    let mut power = PowerLists::default();
    for name in names(POLICIES) {
        let file = |file: &str| files.get(format!("{POLICIES}{name}/{file}").as_str()).copied();
        if file("scaling_governor") != Some(SCHEDUTIL) {
            continue;
        }
        let Some(clock) = clock(&file, files.get(format!("{POLICIES}{SCHEDUTIL}/rate_limit_us").as_str()))
        else {
            continue;
        };
        let shown = frequencies.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        let current = shown.or_else(|| file("scaling_cur_freq")?.parse().ok());
        power.current.push(current.unwrap_or_else(|| clock.max()));
        power.clocks.push(clock);
    }
    if files.get("/proc/sys/kernel/sched_energy_aware") == Some(&"1") {
        power.energy = names(ENERGY_MODEL).into_iter().filter_map(|name| domain(&files, name)).collect();
    }
    power
}

/// A policy, by its files and the limit that all policies share.
fn clock<'f>(
    file: &impl Fn(&str) -> Option<&'f str>,
    shared_limit: Option<&&str>,
) -> Option<FrequencyDomain> {
    let limit = file("schedutil/rate_limit_us").or(shared_limit.copied())?;
    let mut frequencies = numbers(file("scaling_available_frequencies")?);
    frequencies.retain(|&khz| khz > 0);
    frequencies.sort_unstable();
    Some(FrequencyDomain {
        cpus: CpuMask::parse_list(&file("related_cpus")?.replace(' ', ",")).ok()?,
        frequencies,
        rate_limit: Ns::from_us(limit.parse().ok()?),
        fast_switch: false,
        invariant: true,
    })
}

/// A performance domain. Powers are in mW up to v5.19, which have no flag for another unit. Like the kernel this refuses powers
/// of 0 or of more than 64 W (`EM_MAX_POWER`).
fn domain(files: &BTreeMap<&str, &str>, name: &str) -> Option<PerfDomain> {
    const MICROWATTS: u64 = 1;
    const MAX_POWER: u64 = 64_000_000;
    let folder = format!("{ENERGY_MODEL}{name}/");
    let file = |name: &str| files.get(format!("{folder}{name}").as_str()).copied();
    let flags = file("flags").and_then(|flags| u64::from_str_radix(flags.trim_start_matches("0x"), 16).ok());
    let unit = if flags.unwrap_or(0) & MICROWATTS != 0 { 1 } else { 1000 };
    let prefix = format!("{folder}ps:");
    let powers = files.iter().filter_map(|(path, power)| {
        let khz = path.strip_prefix(prefix.as_str())?.strip_suffix("/power")?;
        let microwatts = power.parse::<u64>().ok()?.saturating_mul(unit);
        let state = PerfState { khz: khz.parse().ok()?, microwatts };
        (state.khz > 0 && (1..=MAX_POWER).contains(&microwatts)).then_some(state)
    });
    let mut states = powers.collect::<Vec<_>>();
    states.sort_by_key(|state| state.khz);
    if states.is_empty() {
        return None;
    }
    Some(PerfDomain { cpus: CpuMask::parse_list(file("cpus")?).ok()?, states })
}

fn numbers(text: &str) -> Vec<u32> {
    text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUFREQ: &str = "\
/proc/sys/kernel/sched_energy_aware: 1
/sys/devices/system/cpu/cpufreq/policy0/related_cpus: 0 1
/sys/devices/system/cpu/cpufreq/policy0/scaling_available_frequencies: 400000 1300000
/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq: 400000
/sys/devices/system/cpu/cpufreq/policy0/scaling_governor: schedutil
/sys/devices/system/cpu/cpufreq/policy2/related_cpus: 2
/sys/devices/system/cpu/cpufreq/policy2/scaling_available_frequencies: 600000 2100000
/sys/devices/system/cpu/cpufreq/policy2/scaling_governor: performance
/sys/devices/system/cpu/cpufreq/schedutil/rate_limit_us: 1000
";
    const MODEL: &str = "\
/sys/kernel/debug/energy_model/cpu0/cpus: 0-1
/sys/kernel/debug/energy_model/cpu0/ps:1300000/cost: 112000
/sys/kernel/debug/energy_model/cpu0/ps:1300000/power: 112
/sys/kernel/debug/energy_model/cpu0/ps:400000/power: 17
";

    #[test]
    fn clocks_under_schedutil_are_read_with_their_frequency_at_the_snapshot() {
        let read = power(CPUFREQ, "policy0 1300000\npolicy2 600000\n");
        let [clock] = read.clocks.as_slice() else { panic!("{read:?}") };
        assert_eq!(
            (clock.cpus.to_string(), clock.max(), clock.rate_limit),
            ("0-1".to_string(), 1_300_000, Ns::from_us(1000))
        );
        assert_eq!(read.current, [1_300_000]);
        assert_eq!(power(CPUFREQ, "").current, [400_000], "as it was when the list was made");
        let own = CPUFREQ.replace("schedutil/rate_limit_us", "policy0/schedutil/rate_limit_us");
        assert_eq!(power(&own, "").clocks, read.clocks);
        assert_eq!(power("", ""), PowerLists::default());
        assert_eq!(power(&CPUFREQ.replace("rate_limit_us: 1000", "rate_limit_us: x"), "").clocks, []);
        let still = power(&CPUFREQ.replace("400000 1300000", "0"), "").clocks;
        assert!(still[0].frequencies.is_empty(), "a clock that stands still is none: {still:?}");
    }

    #[test]
    fn powers_are_in_milliwatts_where_no_flag_says_otherwise() {
        let powers = |flags: &str| {
            let read = power(&format!("{CPUFREQ}{MODEL}{flags}"), "");
            let [domain] = read.energy.as_slice() else { panic!("{read:?}") };
            domain.states.iter().map(|state| (state.khz, state.microwatts)).collect::<Vec<_>>()
        };
        assert_eq!(powers(""), [(400_000, 17_000), (1_300_000, 112_000)]);
        let flags = "/sys/kernel/debug/energy_model/cpu0/flags: 0x1\n";
        assert_eq!(powers(flags), [(400_000, 17), (1_300_000, 112)]);
        let off = format!("{CPUFREQ}{MODEL}").replace("aware: 1", "aware: 0");
        assert_eq!(power(&off, "").energy, []);
        let absurd =
            MODEL.replace("power: 112", "power: 18446744073709551615").replace("power: 17", "power: 0");
        assert_eq!(power(&format!("{CPUFREQ}{absurd}"), "").energy, [], "no state is left");
    }
}
