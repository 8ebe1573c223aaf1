//! Presets that know what sharing costs on them, each figure with its source.
//!
//! Figures are orders of magnitude of the parts, from what vendors and reviews say; none is fitted to a report.

use fairlab_kernel::topology::{Platform, SmtNumbering};

use super::table::{INTEL_DISTANCE, INTEL_IDLE, INTEL_NUMBERING, PLAIN, SKYLAKE_LINE, SKYLAKE_SERVER};
use super::{LAST, Preset};

/// What a wakeup on its own CPU takes, and how much of that is queueing.
const MEASURED_WAKEUP: &str =
    "'fairlab calibrate' on a virtual machine of an AMD EPYC: a wakeup of the waker's own CPU takes 0.78 us";
const QUEUEING: &str =
    "assumed: two fifths of those 0.78 us, for a queueing and what precedes it are not measured apart there";

const CACHE_SIZES: &str = "the vendor's specification";
const ASSUMED_SET: &str = "assumed: two first-level data caches";
const SMT_GAIN: &str = "order of magnitude: a second thread adds a quarter to what a core does, by vendors' and reviews' integer suites";
const EIGHT_LINES: &str =
    "assumed: eight lines of the task and of its runqueue have to come, each at line_*_ns";
const HELD: &str = "assumed: as long as queueing takes, activate_ns";
const FOUR_FIFTHS: &str = "four fifths of what the channels can do: what STREAM usually reaches";
/// One-way times of a compare-and-swap between two CPUs: <https://github.com/nviennot/core-to-core-latency>.
const ZEN3_LINE: &str =
    "measured: core-to-core latency of an EPYC 7R13 of two sockets, median (nviennot/core-to-core-latency)";
const NEOVERSE_LINE: &str = "measured: core-to-core latency of Graviton3, median (nviennot/core-to-core-latency); of Graviton4 there is none";
const CASCADE_LAKE_LINE: &str =
    "measured: core-to-core latency of two Xeon Gold 6242, median (nviennot/core-to-core-latency)";

/// Two sockets of AMD's EPYC 7003.
pub(super) const ZEN3: Preset = Preset {
    name: "zen3-2s",
    description: "server with 256 CPUs: 2 × EPYC 7713, each with 8 last-level caches of 8 cores of 2 threads, HZ 250",
    nodes: 2,
    llcs_a_node: 8,
    cores_an_llc: 8,
    threads_a_core: 2,
    distance: 32,
    reclaim_distance: 32,
    hz: 250,
    costs: &[("wakeup_ns", 470, MEASURED_WAKEUP), ("activate_ns", 310, QUEUEING)],
    sharing: &[
        ("smt_speed_2", 640, SMT_GAIN),
        ("core_megabytes_per_s", 24_000, "order of magnitude of STREAM with one thread on EPYC 7003"),
        ("llc_megabytes_per_s", 51_200, "a chiplet's link reads 32 bytes a cycle at 1.6 GHz"),
        ("node_megabytes_per_s", 163_840, FOUR_FIFTHS),
        ("remote_permille", 600, "order of magnitude: links between sockets are longer and narrower"),
        ("llc_kb", 32_768, CACHE_SIZES),
        (
            "cached_megabytes_per_s",
            60_000,
            "order of magnitude: below the 32 bytes a cycle that the cache can give",
        ),
        ("core_kb", 512, CACHE_SIZES),
        ("working_set_kb", 64, ASSUMED_SET),
        ("refill_core_ns_per_kb", 17, "a KB at cached_megabytes_per_s"),
        ("refill_llc_ns_per_kb", 43, "a KB at core_megabytes_per_s"),
        ("refill_node_ns_per_kb", 71, "refill_llc_ns_per_kb from another node, by remote_permille"),
        ("wakeup_llc_ns", 184, EIGHT_LINES),
        ("wakeup_node_ns", 856, EIGHT_LINES),
        ("wakeup_remote_ns", 1_576, EIGHT_LINES),
        ("line_core_ns", 10, ZEN3_LINE),
        ("line_llc_ns", 23, ZEN3_LINE),
        ("line_node_ns", 107, ZEN3_LINE),
        ("line_remote_ns", 197, ZEN3_LINE),
        ("rq_lock_ns", 310, HELD),
    ],
    sources: &[
        (
            "topology",
            "e496132ebedd speaks of a Zen3 machine of 2 sockets with 8 last-level caches each; cores and threads: AMD's \
             specification of the EPYC 7713, one node a socket (NPS1)",
        ),
        (
            "distances",
            "10 and 32, what AMD's servers report; the kernel reclaims up to 32 there (Zen, arch/x86/kernel/cpu/amd.c)",
        ),
        ("numbering", "first threads of all cores first, as AMD's servers number CPUs"),
        ("hz", "assumed: what SUSE's kernels have"),
    ],
    ..PLAIN
};

/// A socket of AWS's Graviton4.
pub(super) const GRAVITON96: Preset = Preset {
    name: "graviton96",
    description: "cloud server with 96 CPUs: Graviton4, one thread a core, one last-level cache, HZ 250",
    platform: Platform::Arm64,
    cores_an_llc: 96,
    numbering: SmtNumbering::Adjacent,
    hz: 250,
    costs: &[("wakeup_ns", 470, MEASURED_WAKEUP), ("activate_ns", 310, QUEUEING)],
    sharing: &[
        (
            "core_megabytes_per_s",
            30_000,
            "order of magnitude of STREAM with one thread on current server cores",
        ),
        ("node_megabytes_per_s", 430_080, FOUR_FIFTHS),
        ("llc_kb", 36_864, CACHE_SIZES),
        ("core_kb", 2_048, CACHE_SIZES),
        ("working_set_kb", 128, ASSUMED_SET),
        (
            "refill_core_ns_per_kb",
            34,
            "a KB at core_megabytes_per_s: no source says how much faster the cache is",
        ),
        ("wakeup_llc_ns", 368, EIGHT_LINES),
        ("line_llc_ns", 46, NEOVERSE_LINE),
        ("rq_lock_ns", 310, HELD),
    ],
    sources: &[
        (
            "topology",
            "the report on PREEMPT_LAZY and PostgreSQL of v7.0: a Graviton with 96 CPUs; AWS's m8g.24xlarge is a socket of 96 cores \
             with 2 MB of L2 each, 36 MB of shared cache and 12 channels of DDR5-5600",
        ),
        ("hz", "assumed: what arm64's default configuration has"),
    ],
    ..PLAIN
};

/// Two sockets of sixteen cores, as servers of 64 CPUs had them.
pub(super) const XEON64: Preset = Preset {
    name: "xeon64",
    description: "server with 64 CPUs: 2 sockets with 16 cores of 2 threads and a last-level cache each, HZ 250",
    nodes: 2,
    cores_an_llc: 16,
    threads_a_core: 2,
    hz: 250,
    idle_states: SKYLAKE_SERVER,
    costs: &[
        ("scan_cpu_ns", 70, SKYLAKE_LINE),
        ("wakeup_ns", 470, MEASURED_WAKEUP),
        ("activate_ns", 310, QUEUEING),
    ],
    sharing: &[
        ("smt_speed_2", 640, SMT_GAIN),
        ("core_megabytes_per_s", 12_000, "order of magnitude of STREAM with one thread on Skylake-SP"),
        ("node_megabytes_per_s", 102_390, FOUR_FIFTHS),
        ("remote_permille", 600, "order of magnitude: links between sockets are longer and narrower"),
        ("llc_kb", 22_528, CACHE_SIZES),
        ("cached_megabytes_per_s", 25_000, "order of magnitude of a core's share of a mesh"),
        ("core_kb", 1_024, CACHE_SIZES),
        ("working_set_kb", 64, ASSUMED_SET),
        ("refill_core_ns_per_kb", 41, "a KB at cached_megabytes_per_s"),
        ("refill_llc_ns_per_kb", 85, "a KB at core_megabytes_per_s"),
        ("refill_node_ns_per_kb", 142, "refill_llc_ns_per_kb from another node, by remote_permille"),
        ("wakeup_llc_ns", 384, EIGHT_LINES),
        ("wakeup_remote_ns", 1_088, EIGHT_LINES),
        ("line_core_ns", 7, CASCADE_LAKE_LINE),
        ("line_llc_ns", 48, CASCADE_LAKE_LINE),
        ("line_remote_ns", 136, CASCADE_LAKE_LINE),
        ("rq_lock_ns", 310, HELD),
    ],
    sources: &[
        (
            "topology",
            "155213a2aed4 and its reports: servers of 64 CPUs; the division into 2 sockets is assumed",
        ),
        ("cache", "Xeon Gold 6142: 22 MB of L3, 1 MB of L2 a core, 6 channels of DDR4-2666"),
        INTEL_DISTANCE,
        INTEL_NUMBERING,
        ("hz", "assumed: what Debian's and SUSE's kernels have"),
        INTEL_IDLE,
    ],
    ..PLAIN
};

const IN_ORDER: &str = "taken to be three times what a current x86 core takes: a Cortex-A53 at 1.2 GHz";

/// A small Arm board: costs are those of its cores.
const SMALL_ARM: Preset = Preset {
    platform: Platform::Arm64,
    cores_an_llc: 4,
    numbering: SmtNumbering::Adjacent,
    hz: 250,
    costs: &[
        ("syscall_ns", 600, IN_ORDER),
        ("wakeup_ns", 1_410, IN_ORDER),
        ("activate_ns", 930, IN_ORDER),
        ("context_switch_ns", 3_600, IN_ORDER),
        ("interrupt_ns", 1_500, IN_ORDER),
        ("tick_ns", 4_500, IN_ORDER),
        ("timer_ns", 2_400, IN_ORDER),
        ("newidle_ns", 3_000, IN_ORDER),
        ("softirq_ns", 900, IN_ORDER),
        ("migrate_ns", 2_400, IN_ORDER),
        ("send_ns", 2_400, IN_ORDER),
        ("receive_ns", 2_400, IN_ORDER),
        ("fork_ns", 45_000, IN_ORDER),
        ("exit_ns", 30_000, IN_ORDER),
    ],
    sharing: &[
        ("core_megabytes_per_s", 2_000, "order of magnitude of STREAM with one thread on a Cortex-A53"),
        ("node_megabytes_per_s", 4_000, "order of magnitude of STREAM on boards with LPDDR3"),
        ("llc_kb", 512, CACHE_SIZES),
        ("core_kb", 32, CACHE_SIZES),
        ("working_set_kb", 64, ASSUMED_SET),
        ("refill_core_ns_per_kb", 250, "a KB at half of what DRAM takes"),
        ("refill_llc_ns_per_kb", 512, "a KB at core_megabytes_per_s"),
        ("wakeup_llc_ns", 400, EIGHT_LINES),
        ("wakeup_node_ns", 1_600, EIGHT_LINES),
        ("line_llc_ns", 50, "order of magnitude within a cluster of in-order cores"),
        ("line_node_ns", 200, "order of magnitude through an interconnect between clusters (CCI-400)"),
        ("rq_lock_ns", 930, HELD),
    ],
    ..PLAIN
};

/// A HiKey.
pub(super) const HIKEY8: Preset = Preset {
    name: "hikey8",
    description: "HiKey board with 8 CPUs: Kirin 620, two clusters of 4 Cortex-A53 with a last-level cache each, HZ 250",
    llcs_a_node: 2,
    idle_states: &[
        (0, LAST, 1, 1, false),
        (0, LAST, 950, 1_000, false),
        (0, 3, 1_700, 2_700, true),
        (4, 7, 1_700, 2_700, true),
    ],
    idle_entries: &[0, 700, 1_000, 1_000],
    sources: &[
        ("topology", "its device tree, hi6220.dtsi: two clusters of 4, each with an L2, and no L3"),
        (
            "idle",
            "that device tree: entry-latency-us and exit-latency-us, which the kernel adds up, and min-residency-us; the shallowest \
             state is WFI with 1 us. The deepest is a cluster's",
        ),
        ("clock", "assumed: 1.2 GHz all the time, the highest of its operating points"),
        ("hz", "arm64's default configuration"),
    ],
    ..SMALL_ARM
};

/// A board with four cores.
pub(super) const ARM4: Preset = Preset {
    name: "arm4",
    description: "small Arm board with 4 CPUs: Cortex-A53 under one last-level cache, HZ 250",
    sources: &[
        (
            "topology",
            "the report on hackbench-like pairs over pipes of April 2026: a small Arm board; four cores are assumed",
        ),
        ("clock", "assumed: 1.2 GHz all the time"),
        ("hz", "arm64's default configuration"),
    ],
    ..SMALL_ARM
};
