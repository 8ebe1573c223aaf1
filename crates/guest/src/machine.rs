//! What identifies the scheduler's set-up: features, tunables, topology, domains, as one text.
//!
//! Must not know: its readers.

use std::fmt::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::files;
use crate::tracing::TRACING;

const DEBUG: &str = "/sys/kernel/debug";

/// The list that stands beside a recording.
pub fn describe() -> String {
    let mut text = String::new();
    let name = rustix::system::uname();
    let parts = [name.sysname(), name.nodename(), name.release(), name.version(), name.machine()];
    let parts: Vec<_> = parts.iter().map(|part| part.to_string_lossy()).collect();
    let _ = writeln!(text, "uname: {}", parts.join(" "));
    let _ = writeln!(text, "cmdline: {}", files::line("/proc/cmdline"));
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let _ = writeln!(text, "clocksource: {}", files::line(source));
    let _ = writeln!(text, "trace_clock: {}", files::line(format!("{TRACING}/trace_clock")));
    write_tunables(&mut text);
    write_cpus(&mut text);
    write_domains(&mut text);
    for folder in [CPUFREQ, ENERGY_MODEL] {
        write_files(&mut text, folder);
    }
    let events = files::names(format!("{TRACING}/events/sched"));
    let events: Vec<&str> =
        events.iter().map(String::as_str).filter(|name| !matches!(*name, "enable" | "filter")).collect();
    let _ = writeln!(text, "sched events: {}", events.join(" "));
    text
}

fn write_tunables(text: &mut String) {
    let mut paths = vec![format!("{DEBUG}/sched_features")];
    let of_debug = files::names(format!("{DEBUG}/sched"));
    paths.extend(of_debug.iter().filter(|name| *name != "debug").map(|name| format!("{DEBUG}/sched/{name}")));
    paths.extend(
        files::names(format!("{DEBUG}/sched/llc_balancing"))
            .iter()
            .map(|name| format!("{DEBUG}/sched/llc_balancing/{name}")),
    );
    let of_sysctl = files::names("/proc/sys/kernel");
    paths.extend(
        of_sysctl
            .iter()
            .filter(|name| name.starts_with("sched_"))
            .map(|name| format!("/proc/sys/kernel/{name}")),
    );
    for path in paths.iter().filter(|path| Path::new(path).is_file()) {
        let _ = writeln!(text, "{path}: {}", files::line(path));
    }
}

fn write_cpus(text: &mut String) {
    let folder = "/sys/devices/system/cpu";
    let is_cpu = |name: &&String| {
        name.strip_prefix("cpu").is_some_and(|number| !number.is_empty() && number.parse::<u32>().is_ok())
    };
    for cpu in files::names(folder).iter().filter(is_cpu) {
        let of = |name: &str| files::line(format!("{folder}/{cpu}/topology/{name}"));
        let beside = files::names(format!("{folder}/{cpu}"));
        let node = beside
            .iter()
            .find_map(|name| name.strip_prefix("node").filter(|node| node.parse::<u32>().is_ok()));
        let _ = write!(
            text,
            "{cpu}: threads {} core {} package {} node {}",
            of("thread_siblings_list"),
            of("core_siblings_list"),
            of("physical_package_id"),
            node.unwrap_or("0")
        );
        // Where CPUs can differ, the kernel tells how big each is.
        let capacity = files::line(format!("{folder}/{cpu}/cpu_capacity"));
        if !capacity.is_empty() {
            let _ = write!(text, " capacity {capacity}");
        }
        text.push('\n');
    }
    let folder = "/sys/devices/system/node";
    for node in files::names(folder).iter().filter(|name| name.starts_with("node")) {
        let of = |name: &str| files::line(format!("{folder}/{node}/{name}"));
        let _ = writeln!(text, "{node}: cpus {} distance {}", of("cpulist"), of("distance"));
    }
}

/// Clocks that are scaled, and by what rules.
pub const CPUFREQ: &str = "/sys/devices/system/cpu/cpufreq";

/// What CPUs draw at each speed.
const ENERGY_MODEL: &str = "/sys/kernel/debug/energy_model";

/// Every file below a folder, by path, but for statistics.
fn write_files(text: &mut String, folder: &str) {
    for name in files::names(folder) {
        let path = format!("{folder}/{name}");
        if name == "stats" {
            continue;
        }
        if Path::new(&path).is_dir() {
            write_files(text, &path);
        } else {
            let _ = writeln!(text, "{path}: {}", files::text(&path).trim_end().replace('\n', " "));
        }
    }
}

/// The domains under the two roofs that they have had.
fn write_domains(text: &mut String) {
    for roof in [format!("{DEBUG}/sched/domains"), "/proc/sys/kernel/sched_domain".to_string()] {
        for cpu in files::names(&roof) {
            for domain in files::names(format!("{roof}/{cpu}")) {
                let folder = format!("{roof}/{cpu}/{domain}");
                for file in files::names(&folder) {
                    let path = format!("{folder}/{file}");
                    let _ = writeln!(text, "{path}: {}", files::line(&path));
                }
            }
        }
    }
}

/// The tick's frequency, by how far the kernel's own count of ticks comes; `None` if it does not tell.
pub fn hz() -> Option<u64> {
    /// The frequencies that kernels are configured with on this architecture.
    const FREQUENCIES: [u64; 4] = [100, 250, 300, 1000];
    let (ticks, ns) = ticks(&files::text("/proc/timer_list"))?;
    thread::sleep(Duration::from_millis(200));
    let (later_ticks, later_ns) = self::ticks(&files::text("/proc/timer_list"))?;
    let counted = later_ticks.checked_sub(ticks)?.saturating_mul(1_000_000_000)
        / later_ns.checked_sub(ns).filter(|&ns| ns > 0)?;
    FREQUENCIES.into_iter().min_by_key(|hz| hz.abs_diff(counted))
}

/// Ticks and time, by `/proc/timer_list`.
fn ticks(text: &str) -> Option<(u64, u64)> {
    let ns = text.lines().find_map(|line| line.strip_prefix("now at ")?.split(' ').next()?.parse().ok())?;
    let ticks =
        text.lines().find_map(|line| line.trim_start().strip_prefix("jiffies: ")?.trim().parse().ok())?;
    Some((ticks, ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_time_are_told() {
        let text = "Timer List Version: v0.9\nHRTIMER_MAX_CLOCK_BASES: 8\nnow at 6062151612 nsecs\n\ncpu: 0\n  .idle_sleeps    : 9\njiffies: 4294893811\njiffies: 1\n";
        assert_eq!(ticks(text), Some((4_294_893_811, 6_062_151_612)));
        assert_eq!(ticks("now at x"), None);
    }
}
