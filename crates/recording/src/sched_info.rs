//! The recorded machine as `sched_info.txt` lists it: CPUs, nodes and how far they are, and how its kernel was set.
//!
//! Must not know: what the model decides.

use std::fmt::Write;

use fairlab_kernel::generation::KernelSettings;
use fairlab_kernel::topology::{CpuPlace, Platform};
use fairlab_kernel::{CpuMask, Topology};

use fairlab_event::Origin;

/// The machine; `None` if CPUs are missing or the list makes no sense.
pub(super) fn topology(info: &str) -> Option<Topology> {
    let mut cpus = info.lines().filter_map(cpu).collect::<Vec<_>>();
    cpus.sort_by_key(|cpu| cpu.number);
    let all = cpus.iter().enumerate().all(|(index, cpu)| cpu.number as usize == index);
    if !all {
        return None;
    }
    if shares_no_cache(info) {
        cpus.iter_mut().for_each(|cpu| cpu.place.llc = cpu.place.core);
    }
    let topology = Topology::new(cpus.iter().map(|cpu| cpu.place).collect()).ok()?;
    let packages = cpus.iter().map(|cpu| cpu.package).collect::<Option<Vec<u32>>>();
    let topology = match packages.map(|packages| topology.clone().with_packages(&packages)) {
        Some(Ok(topology)) => topology,
        _ => topology,
    };
    let one_each = |of: fn(&CpuLine) -> Option<u32>| cpus.iter().map(of).collect::<Option<Vec<u32>>>();
    let topology = match one_each(|cpu| cpu.cluster).map(|clusters| topology.clone().with_clusters(&clusters))
    {
        Some(Ok(topology)) => topology,
        _ => topology,
    };
    let topology =
        match one_each(|cpu| cpu.capacity).map(|capacities| topology.clone().with_capacities(&capacities)) {
            Some(Ok(topology)) => topology,
            _ => topology,
        };
    let distances = info.lines().filter_map(distances).collect::<Vec<_>>();
    let topology = match topology.clone().with_distances(distances) {
        Ok(topology) => topology,
        Err(_) => topology,
    };
    Some(topology.of_platform(platform(info)))
}

/// How the kernel was set: `/sys/kernel/debug/sched/features: …`, of older ones `/sys/kernel/debug/sched_features: …`, tunables there
/// or `/proc/sys/kernel/sched_latency_ns: …`.
pub(super) fn settings(info: &str) -> KernelSettings {
    let mut settings = KernelSettings::default();
    for (name, text) in info.lines().filter_map(setting) {
        settings.read_file(name, text);
    }
    settings
}

/// A line whose number no kernel can have been set to.
pub(super) fn impossible_setting(info: &str) -> Option<&str> {
    let is_impossible =
        |line: &&str| setting(line).is_some_and(|(name, text)| KernelSettings::is_impossible(name, text));
    info.lines().find(is_impossible)
}

/// The file's name, without what is before it in any kernel, and what is in it.
fn setting(line: &str) -> Option<(&str, &str)> {
    const ROOMS: [&str; 3] =
        ["/sys/kernel/debug/sched/", "/sys/kernel/debug/sched_", "/proc/sys/kernel/sched_"];
    let (file, text) = line.split_once(": ")?;
    ROOMS.iter().find_map(|room| file.strip_prefix(room)).map(|name| (name, text))
}

/// Whether domains are listed, and no CPU shares a cache in any: device trees need not tell of caches.
fn shares_no_cache(info: &str) -> bool {
    let mut flags = info.lines().filter_map(|line| line.split_once("/flags: ")).peekable();
    let shared = |flags: &str| flags.contains("SD_SHARE_PKG_RESOURCES") || flags.contains("SD_SHARE_LLC");
    flags.peek().is_some_and(|(_, flags)| flags.contains("SD_")) && !flags.any(|(_, flags)| shared(flags))
}

/// One line about a CPU.
struct CpuLine {
    number: u32,
    place: CpuPlace,
    package: Option<u32>,
    /// Told of modelled machines only, where they are not the core and equal for all.
    cluster: Option<u32>,
    capacity: Option<u32>,
}

/// The list of a run's machine, from which [`topology`] makes it again. `release` is its kernel's, empty where unknown; `origin`
/// says how the run came about.
pub fn list(topology: &Topology, release: &str, origin: Origin) -> String {
    let platform = match topology.platform() {
        Platform::X86 => "x86_64",
        Platform::Arm64 => "aarch64",
        Platform::S390 => "s390x",
    };
    let origin = origin.name().replace(' ', "-");
    let uname = format!("uname: Linux fairlab {release} {origin} {platform}\n");
    let uname = if release.is_empty() { String::new() } else { uname };
    lines_of(topology).iter().fold(uname, |text, line| text + line + "\n")
}

/// A line for each CPU and node, from which [`topology`] makes the machine again.
pub fn lines_of(topology: &Topology) -> Vec<String> {
    let mut text = String::new();
    let first = |mask: &CpuMask| mask.lowest().unwrap_or_default();
    let has_clusters = topology.cpus().any(|cpu| topology.cluster_mask(cpu) != topology.smt_mask(cpu));
    for cpu in topology.cpus() {
        let (threads, cache) = (topology.smt_mask(cpu), topology.llc_mask(cpu));
        let (package, node) = (first(topology.package_mask(cpu)), topology.place(cpu).node);
        let _ = write!(text, "cpu{cpu}: threads {threads} core {cache} package {package} node {node}");
        if has_clusters {
            let _ = write!(text, " cluster {}", first(topology.cluster_mask(cpu)));
        }
        if topology.has_asymmetric_capacity() {
            let _ = write!(text, " capacity {}", topology.capacity(cpu));
        }
        text.push('\n');
    }
    for node in 0..topology.nr_nodes() as u32 {
        let cpus = topology.cpus().filter(|&cpu| topology.place(cpu).node == node).collect::<CpuMask>();
        let distances = (0..topology.nr_nodes() as u32).map(|to| topology.distance(node, to).to_string());
        let distances = distances.collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "node{node}: cpus {cpus} distance {distances}");
    }
    text.lines().map(str::to_string).collect()
}

/// Whether a line tells of a CPU or a node, as those of [`lines_of`] do.
pub(super) fn is_of_machine(line: &str) -> bool {
    let numbered = |name: &str| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_digit()))
    };
    numbered("cpu") && line.contains(": threads ") || numbered("node") && line.contains(": cpus ")
}

/// `cpu3: threads 2-3 core 0-7 package 0 node 0`: the CPUs that share a core, those that share a package.
fn cpu(line: &str) -> Option<CpuLine> {
    let (cpu, rest) = line.strip_prefix("cpu")?.split_once(": threads ")?;
    let words = rest.split_whitespace().collect::<Vec<_>>();
    let after = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1).copied()
    };
    let first = |list: &str| CpuMask::parse_list(list).ok().and_then(|mask| mask.lowest());
    let number = |name: &str| after(name).and_then(|number| number.parse::<u32>().ok());
    let core = first(words.first()?)?;
    let llc = after("core").and_then(first).unwrap_or(core);
    Some(CpuLine {
        number: cpu.parse().ok()?,
        place: CpuPlace { core: core.0, llc: llc.0, node: number("node").unwrap_or(0) },
        package: number("package"),
        cluster: number("cluster"),
        capacity: number("capacity"),
    })
}

/// `node0: cpus 0-3 distance 10 20`; lines are in the order of nodes.
fn distances(line: &str) -> Option<Vec<u32>> {
    let (_, distances) = line.strip_prefix("node")?.split_once(" distance ")?;
    distances.split_whitespace().map(|distance| distance.parse().ok()).collect()
}

/// By what `uname` says of the machine.
fn platform(info: &str) -> Platform {
    let machine = info.lines().find_map(|line| line.strip_prefix("uname: ")).unwrap_or_default();
    let is = |name: &str| machine.split_whitespace().any(|word| word == name);
    match (is("aarch64"), is("s390x")) {
        (true, _) => Platform::Arm64,
        (_, true) => Platform::S390,
        _ => Platform::X86,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fairlab_event::Cpu;
    use fairlab_kernel::Generation;
    use fairlab_kernel::domain::SchedDomains;
    use fairlab_kernel::topology::SmtNumbering;

    use super::*;

    #[test]
    fn a_listed_machine_is_read_back() {
        let asymmetric = Topology::regular(1, 1, 4, 1, SmtNumbering::Adjacent).expect("a machine");
        let asymmetric = asymmetric.with_capacities(&[512, 512, 1024, 1024]).expect("capacities");
        let far = Topology::regular(2, 2, 2, 2, SmtNumbering::Adjacent).expect("a machine");
        let far = far.with_distances(vec![vec![10, 21], vec![21, 10]]).expect("distances");
        let clusters = Topology::regular(1, 1, 8, 1, SmtNumbering::Adjacent).expect("a machine");
        let clusters = clusters.with_clusters(&[0, 0, 0, 0, 1, 1, 1, 1]).expect("clusters");
        for machine in [asymmetric, far, clusters.of_platform(Platform::Arm64)] {
            let listed = list(&machine, "5.10", Origin::Modelled);
            let read = topology(&listed).expect("a machine");
            assert_eq!(list(&read, "5.10", Origin::Modelled), listed);
            assert!(listed.lines().skip(1).all(is_of_machine), "{listed}");
            let generation = "v6.12".parse::<Generation>().expect("a kernel");
            let domains = |topology| format!("{:?}", SchedDomains::new(topology, &generation.domain));
            assert_eq!(domains(&read), domains(&machine), "{listed}");
        }
    }

    #[test]
    fn the_machine_is_read_from_lists_of_siblings() {
        let info = "verbose: Y\ncpu1: threads 0-1 core 0-3 package 0 node 0\ncpu0: threads 0-1 core 0-3 package 0 node 0\n\
                    cpu2: threads 2-3 core 0-3 package 0 node 0\ncpu3: threads 2-3 core 0-3 package 0 node 0\n";
        let topology = topology(info).expect("a machine");
        assert_eq!(topology.nr_cpus(), 4);
        assert_eq!(topology.place(Cpu(0)).core, topology.place(Cpu(1)).core);
        assert_ne!(topology.place(Cpu(1)).core, topology.place(Cpu(2)).core);
        assert_eq!(topology.place(Cpu(0)).llc, topology.place(Cpu(3)).llc);
        assert!(super::topology("cpu1: threads 1 core 1 node 0\n").is_none(), "CPU 0 is missing");
    }

    #[test]
    fn the_kernels_settings_are_read_from_wherever_it_lists_them() {
        let changed = |kernel: &str, info: &str| {
            kernel.parse::<Generation>().expect(kernel).set_as(&settings(info), 2).1.join(" ")
        };
        let old =
            "/sys/kernel/debug/sched_features: NO_LAST_BUDDY\n/proc/sys/kernel/sched_latency_ns: 5000000\n";
        assert_eq!(changed("debian-5.10", old), "NO_LAST_BUDDY latency_ns=5000000");
        let new = "uname: Linux h 6.12.1\n/sys/kernel/debug/sched/features: NO_SIS_UTIL\n\
                   /sys/kernel/debug/sched/base_slice_ns: 3000000\n/proc/sys/kernel/sched_cfs_bandwidth_slice_us: 1000\n";
        assert_eq!(
            changed("debian-6.12", new),
            "NO_SIS_UTIL base_slice_ns=3000000 cfs_bandwidth_slice_ns=1000000"
        );
        assert_eq!(changed("debian-6.12", "cpu0: threads 0 core 0 package 0 node 0\n"), "");
    }

    #[test]
    fn a_number_that_no_kernel_takes_is_found() {
        let found = |setting: &str| impossible_setting(&format!("verbose: Y\n{setting}\n")).is_some();
        assert!(found("/sys/kernel/debug/sched/base_slice_ns: 18446744073709551615"));
        assert!(found("/proc/sys/kernel/sched_latency_ns: 99999999999999999999999"));
        assert!(!found("/sys/kernel/debug/sched/base_slice_ns: 4294967295"));
        assert!(!found("/sys/kernel/debug/sched/domains/cpu0/domain0/max_newidle_lb_cost: 9999999999"));
    }

    /// A kernel that has not been told of caches shares none, whatever lies in one package.
    #[test]
    fn a_cache_that_no_domain_knows_of_is_not_shared() {
        let cpus = "cpu0: threads 0 core 0-1 package 0 node 0 capacity 512\ncpu1: threads 1 core 0-1 package 0 node 0 capacity 1024\n";
        let shared = |flags: &str| {
            let machine = topology(&format!("{cpus}{flags}")).expect("a machine");
            assert_eq!(machine.capacity(Cpu(0)), 512);
            machine.share_cache(Cpu(0), Cpu(1))
        };
        let flags = |flags: &str| format!("/sys/kernel/debug/sched/domains/cpu0/domain0/flags: {flags}\n");
        assert!(shared("") && shared(&flags("SD_WAKE_AFFINE SD_SHARE_LLC")));
        assert!(shared(&flags("SD_SHARE_PKG_RESOURCES SD_PREFER_SIBLING")));
        assert!(!shared(&flags("SD_WAKE_AFFINE SD_ASYM_CPUCAPACITY")));
    }

    #[test]
    fn nodes_are_as_far_as_listed() {
        let info = "cpu0: threads 0 core 0 package 0 node 0\ncpu1: threads 1 core 1 package 1 node 1\n\
                    node0: cpus 0 distance 10 31\nnode1: cpus 1 distance 31 10\n";
        let machine = topology(info).expect("a machine");
        assert_eq!(machine.distance(0, 1), 31);
        assert_eq!(machine.platform(), Platform::X86);
        let arm = format!("uname: Linux h 6.1.0 #1 SMP aarch64 GNU/Linux\n{}", info.replace("31", "oops"));
        let machine = topology(&arm).expect("a machine");
        assert_eq!((machine.platform(), machine.distance(0, 1)), (Platform::Arm64, 20));
    }

    /// The modelled kernel that a recorded release is.
    fn kernel_of(release: &str) -> Generation {
        const KERNELS: [(&str, &str); 8] = [
            ("5.2.1", "v5.2"),
            ("5.7.14", "v5.7"),
            ("5.10.", "debian-5.10"),
            ("6.1.", "debian-6.1"),
            ("6.5.", "v6.5"),
            ("6.6.", "v6.6"),
            ("6.12.", "debian-6.12"),
            ("7.2.", "debian-7.2"),
        ];
        let known = KERNELS.iter().find(|(prefix, _)| release.starts_with(prefix));
        known.expect(release).1.parse().expect("a kernel")
    }

    /// The lines of `sched_info.txt` about a CPU's domains, sorted as the recorder found the files.
    fn shown(domains: &SchedDomains, cpu: Cpu) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, id) in domains.ids_of(cpu).enumerate() {
            let files = domains.files(id).into_iter();
            let folder = format!("{}/cpu{cpu}/domain{number}", domains.files_folder());
            lines.extend(files.map(|(name, value)| format!("{folder}/{name}: {value}")));
        }
        lines.sort();
        lines
    }

    /// Every number and flag of every domain of every recorded machine. Left out are a cost that the kernel measured, and a
    /// number of its configuration.
    #[test]
    fn domains_of_real_kernels_are_reproduced_exactly() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sched-domains.txt.zst");
        let bytes = std::fs::read(path).expect("the recorded domains");
        let text = String::from_utf8(zstd::decode_all(bytes.as_slice()).expect("zstd")).expect("text");
        let mut checked = 0;
        for section in text.split("== ").skip(1) {
            let (name, info) = section.split_once('\n').expect("a name");
            let release = info.split_whitespace().nth(3).expect("uname");
            let machine = topology(info).expect(name);
            let domains = SchedDomains::new(&machine, &kernel_of(release).domain);
            // Debian's kernels for arm64 are built without the level of clusters, so that the one above has another number.
            let is_arm = machine.platform() == Platform::Arm64;
            let measured =
                |line: &str| line.contains("/max_newidle_lb_cost: ") || (is_arm && line.contains("/level: "));
            let recorded = info.lines().filter(|line| line.contains("/domain") && !measured(line));
            let recorded = recorded.collect::<Vec<_>>();
            // Of some machines one CPU's domains were written down.
            let of = |line: &str, cpu: Cpu| line.contains(&format!("/cpu{cpu}/"));
            for cpu in machine.cpus().filter(|&cpu| recorded.iter().any(|line| of(line, cpu))) {
                let modelled = shown(&domains, cpu);
                let modelled = modelled.iter().map(|line| line.trim_end()).filter(|line| !measured(line));
                let recorded = recorded.iter().map(|line| line.trim_end()).filter(|line| of(line, cpu));
                checked += modelled.clone().count();
                assert_eq!(
                    modelled.collect::<Vec<_>>(),
                    recorded.collect::<Vec<_>>(),
                    "{name} {release} CPU {cpu}"
                );
            }
        }
        assert!(checked > 1300, "{checked} lines compared");
    }
}
