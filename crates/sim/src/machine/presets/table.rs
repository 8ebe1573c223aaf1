//! The presets, each figure with its source.

use fairlab_kernel::topology::{Platform, SmtNumbering};

use super::sharing::{ARM4, GRAVITON96, HIKEY8, XEON64, ZEN3};
use super::{Chance, CpuSpeed, LAST, Preset, RECLAIM_DISTANCE};

/// One x86 socket: what differs is said.
pub(super) const PLAIN: Preset = Preset {
    name: "",
    description: "",
    platform: Platform::X86,
    nodes: 1,
    llcs_a_node: 1,
    cores_an_llc: 1,
    threads_a_core: 1,
    numbering: SmtNumbering::Spread,
    small_cores: 0,
    priorities: &[],
    idle_states: &[],
    idle_entries: &[],
    distance: 21,
    reclaim_distance: RECLAIM_DISTANCE,
    speeds: &[],
    true_speeds: &[],
    boosts: &[],
    hz: 1000,
    high_res_timers: true,
    nohz_idle: true,
    costs: &[],
    sharing: &[],
    chance: Chance::USUAL,
    sources: &[],
};

/// `bdw_cstates` of drivers/idle/intel_idle.c, without those that only laptops have.
const BROADWELL_SERVER: &[(u32, u32, u64, u64, bool)] = &[
    (0, LAST, 2, 2, false),
    (0, LAST, 10, 20, false),
    (0, LAST, 40, 100, false),
    (0, LAST, 133, 400, false),
];
/// `skx_cstates` there.
pub(super) const SKYLAKE_SERVER: &[(u32, u32, u64, u64, bool)] =
    &[(0, LAST, 2, 2, false), (0, LAST, 10, 20, false), (0, LAST, 133, 600, false)];
/// `skl_cstates` there. From C8 on they are states of the whole package.
const SKYLAKE: &[(u32, u32, u64, u64, bool)] = &[
    (0, LAST, 2, 2, false),
    (0, LAST, 10, 20, false),
    (0, LAST, 70, 100, false),
    (0, LAST, 85, 200, false),
    (0, LAST, 124, 800, false),
    (0, LAST, 200, 800, true),
    (0, LAST, 480, 5000, true),
    (0, LAST, 890, 5000, true),
];
/// `avn_cstates` there.
const AVOTON: &[(u32, u32, u64, u64, bool)] = &[(0, LAST, 2, 2, false), (0, LAST, 15, 45, false)];
/// `adl_cstates` there; of C1 and C1E the driver uses one, by default the latter. From C8 on they are states of
/// the whole package.
const ALDER_LAKE: &[(u32, u32, u64, u64, bool)] = &[
    (0, LAST, 2, 4, false),
    (0, LAST, 220, 600, false),
    (0, LAST, 280, 800, true),
    (0, LAST, 680, 2000, true),
];
/// `adl_l_cstates` there, as those.
const ALDER_LAKE_LAPTOP: &[(u32, u32, u64, u64, bool)] = &[
    (0, LAST, 2, 4, false),
    (0, LAST, 170, 500, false),
    (0, LAST, 200, 600, true),
    (0, LAST, 230, 700, true),
];
/// What cores of two kinds do.
const HYBRID_SPEED: (&str, &str) = (
    "speed",
    "the highest frequencies as performance, as intel_pstate converts them: 78741 kHz a unit on performance cores \
     (HYBRID_SCALING_FACTOR_ADL), 100000 on efficient ones; the kernel is told none of it",
);
pub(super) const INTEL_IDLE: (&str, &str) = (
    "idle",
    "the kernel's driver for this processor, drivers/idle/intel_idle.c: exit latencies, which are those of the worst case, and \
     target residencies",
);

pub(super) const INTEL_DISTANCE: (&str, &str) = (
    "distances",
    "10 and 21, what Intel's servers report between sockets that are linked directly; below the reclaim distance of 30 \
     the number makes no difference",
);
pub(super) const INTEL_NUMBERING: (&str, &str) =
    ("numbering", "first threads of all cores first, socket by socket, as Intel's servers number CPUs");
const LKP_HZ: (&str, &str) = ("hz", "0-Day's x86_64-rhel configurations have CONFIG_HZ=1000");
const LKP_CLOCK: (&str, &str) =
    ("clock", "the tests' names end in -performance: the governor keeps the highest frequency");

/// What it costs to read a line that another core has written.
pub(super) const SKYLAKE_LINE: &str =
    "a line that another core has modified takes 60 to 70 ns within a Skylake-SP socket";

/// QEMU with `-icount`: an instruction is a nanosecond, and all CPUs take turns.
const INSTRUCTIONS_AS_TIME: Preset = Preset {
    numbering: SmtNumbering::Adjacent,
    high_res_timers: false,
    nohz_idle: false,
    costs: &[
        ("wakeup_ns", 9_000, "recordings: wakeups of a burst are 9 to 15 us apart (medians of four kernels)"),
        ("syscall_ns", 2_000, "those recordings, less the wakeup itself"),
        (
            "newidle_ns",
            6_000,
            "recordings: 34 to 43 us from a message thread's last wakeup to its leaving the CPU",
        ),
        (
            "balance_cpu_ns",
            1_000,
            "recordings: new-idle balancing is remembered to cost 1 to 11 us with 2 CPUs, 3 to 61 with 16",
        ),
        ("context_switch_ns", 3_000, "recordings: 7 to 10 us from a wakeup to the switch on an idle CPU"),
        ("idle_exit_ns", 4_000, "those recordings, as context_switch_ns"),
    ],
    chance: Chance::emulated(700),
    sources: &[
        (
            "topology",
            "recordings of real kernels: schbench on 8 and 16 CPUs, QEMU's Nehalem with two threads a core; polling vhost threads on 4 with one",
        ),
        ("hz", "the recorded kernels' configuration"),
        (
            "timers",
            "in those recordings, but that of v5.2.1, every sleep ends at a tick and idle CPUs tick, too: the clock source is \
             tsc-early, not fit for more",
        ),
        (
            "chance",
            "those recordings: with 16 CPUs wakeups of a burst are 3 to 22 us apart, 11 on average; with 8, by schbench's tables, 9 to 11",
        ),
    ],
    ..PLAIN
};

const HRES_SOURCES: &[(&str, &str)] = &[
    ("topology", "as without high-resolution timers"),
    ("hz", "the recorded kernel's configuration"),
    ("chance", "as without high-resolution timers"),
    ("timers", "the recording of v5.2.1: sleeps end between ticks, and idle CPUs do not tick"),
];

const BLOCKED_LOAD_ON_CHROMEBOOK: &str = "discussion of the patch: in a function graph update_blocked_averages() of one CPU takes 33 to 67 us, 45 on average, half of \
     it in sugov_next_freq_shared(), which looks at six CPUs; a new-idle balance meets 35 to 40 queues, five a CPU. Taken to be \
     on a little CPU at 300 MHz: the report speaks of a low frequency";

/// The report on blocked load's.
const CHROMEBOOK: Preset = Preset {
    name: "chromebook8",
    description: "Chromebook with 8 arm64 CPUs under one cache: 6 little ones and 2 big ones, each kind with one clock, \
                      HZ 1000",
    platform: Platform::Arm64,
    cores_an_llc: 8,
    numbering: SmtNumbering::Adjacent,
    speeds: &[
        CpuSpeed {
            first: 0,
            last: 5,
            capacity: 425,
            khz: &[
                300_000, 576_000, 768_000, 1_017_600, 1_248_000, 1_324_800, 1_516_800, 1_612_800, 1_708_800,
                1_804_800,
            ],
            rate_limit_us: 1000,
            fast_switch: false,
            milliwatts: &[38, 57, 69, 78, 99, 106, 118, 130, 137, 156],
        },
        CpuSpeed {
            first: 6,
            last: 7,
            capacity: 1024,
            khz: &[
                300_000, 652_800, 825_600, 979_200, 1_113_600, 1_267_200, 1_555_200, 1_708_800, 1_843_200,
                1_900_800, 1_996_800, 2_112_000, 2_208_000, 2_323_200, 2_400_000, 2_553_600,
            ],
            rate_limit_us: 1000,
            fast_switch: false,
            milliwatts: &[53, 116, 136, 163, 183, 221, 295, 345, 388, 404, 449, 520, 545, 593, 613, 652],
        },
    ],
    costs: &[
        ("blocked_queue_ns", 270, BLOCKED_LOAD_ON_CHROMEBOOK),
        ("governor_cpu_ns", 260, BLOCKED_LOAD_ON_CHROMEBOOK),
    ],
    sources: &[
        (
            "topology",
            "the patch that limits update_blocked_averages(): an octacore ARM64 device with ChromeOS and v5.4, many \
                          CPUs in a cluster with a shared frequency domain; in its discussion: a Snapdragon 7c with 6 + 2 CPUs, \
                          which is Qualcomm's SC7180, whose device tree has them in one cluster under one L3",
        ),
        (
            "capacity",
            "that device tree as it stood at the time of the report (January 2021): capacity-dmips-mhz 1024 and 1740 \
                          at 1804.8 and 2553.6 MHz, normalised as drivers/base/arch_topology.c does; measured values, 415 \
                          and 1024, came with 82ea7d411d43 in September 2021",
        ),
        (
            "clock",
            "that device tree's operating points; qcom-cpufreq-hw names no latency, so schedutil waits LATENCY_MULTIPLIER, \
                       1000 us; a function graph in the discussion of the patch (22 January 2021) is of the thread sugov:0, so \
                       the driver does not switch by itself: where operating points carry bandwidths it must not",
        ),
        (
            "power",
            "the chip's own device tree for Android (atoll.dtsi, Qualcomm's msm-4.14): busy-cost-data of each CPU. It names \
                       no power for 300, 2400 and 2553.6 MHz of the big CPUs: taken to be in proportion to the nearest \
                       frequency; 288 at 1843.2 MHz, between 345 and 404, is taken for 388. The report's kernel computed \
                       powers from dynamic-power-coefficient (100 and 405) and voltages that only the firmware knows",
        ),
        ("hz", "assumed: tails of 12.7 to 13.4 ms are a slice of 12 ms and at most one tick of 1 ms"),
    ],
    ..PLAIN
};

/// Every preset.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "vm40",
        description: "virtual machine with 40 CPUs: 20 cores of 2 threads, one last-level cache, HZ 1000",
        cores_an_llc: 20,
        threads_a_core: 2,
        numbering: SmtNumbering::Adjacent,
        costs: &[
            (
                "wakeup_ns",
                10_500,
                "a fit: 20 serial futex wakeups take about 230 us in the schbench report on this machine",
            ),
            (
                "idle_exit_ns",
                8_000,
                "a fit to the least latency, 21 us, in the same report: a halted vCPU is started by its host",
            ),
        ],
        sources: &[
            (
                "topology",
                "the report on load_balance and schbench of October 2020: 40 cpus (20 cores, 2 threads per core)",
            ),
            ("cache", "assumed: one for all"),
            ("numbering", "QEMU's: threads of a core are neighbours"),
            ("hz", "assumed: tails of 12.2 to 13.2 ms are a slice of 12 ms and at most one tick of 1 ms"),
        ],
        ..PLAIN
    },
    Preset {
        name: "qemu4",
        description: "virtual machine with 4 CPUs that counts instructions as time: one thread a core, HZ 100",
        cores_an_llc: 4,
        hz: 100,
        ..INSTRUCTIONS_AS_TIME
    },
    Preset {
        name: "qemu8",
        description: "virtual machine with 8 CPUs that counts instructions as time: 4 cores of 2 threads, HZ 1000",
        cores_an_llc: 4,
        threads_a_core: 2,
        chance: Chance::emulated(200),
        ..INSTRUCTIONS_AS_TIME
    },
    Preset {
        name: "qemu16",
        description: "virtual machine with 16 CPUs that counts instructions as time: 8 cores of 2 threads, HZ 1000",
        cores_an_llc: 8,
        threads_a_core: 2,
        ..INSTRUCTIONS_AS_TIME
    },
    Preset {
        name: "qemu8-hres",
        description: "as qemu8, 8 CPUs, with a clock that is good enough for timers and to stop ticks",
        cores_an_llc: 4,
        threads_a_core: 2,
        chance: Chance::emulated(200),
        high_res_timers: true,
        nohz_idle: true,
        sources: HRES_SOURCES,
        ..INSTRUCTIONS_AS_TIME
    },
    Preset {
        name: "qemu16-hres",
        description: "as qemu16, 16 CPUs, with a clock that is good enough for timers and to stop ticks",
        cores_an_llc: 8,
        threads_a_core: 2,
        high_res_timers: true,
        nohz_idle: true,
        sources: HRES_SOURCES,
        ..INSTRUCTIONS_AS_TIME
    },
    Preset {
        name: "laptop8",
        description: "laptop with 8 CPUs: 4 cores of 2 threads, one last-level cache, HZ 250",
        cores_an_llc: 4,
        threads_a_core: 2,
        hz: 250,
        idle_states: SKYLAKE,
        sources: &[("topology", "a common laptop"), ("hz", "what most distributions choose"), INTEL_IDLE],
        ..PLAIN
    },
    Preset {
        name: "vm4",
        description: "virtual machine with 4 CPUs under one last-level cache, HZ 250",
        cores_an_llc: 4,
        numbering: SmtNumbering::Adjacent,
        hz: 250,
        costs: &[("idle_exit_ns", 8_000, "as vm40: a halted vCPU is started by its host")],
        sources: &[
            (
                "topology",
                "the log of the idle cpumask in its RFC, v7: 4 VCPU VM, a mask of one cache domain holds 0-3",
            ),
            ("threads", "assumed: one a core"),
            ("hz", "the same log: CPUs are cleared by ticks at multiples of 4 ms"),
        ],
        ..PLAIN
    },
    Preset {
        name: "xeon-2s80",
        description: "server with 80 CPUs: 2 sockets with 20 cores of 2 threads and a last-level cache each, HZ 250",
        nodes: 2,
        cores_an_llc: 20,
        threads_a_core: 2,
        hz: 250,
        costs: &[("scan_cpu_ns", 70, SKYLAKE_LINE)],
        idle_states: SKYLAKE_SERVER,
        sources: &[
            (
                "topology",
                "tbench with 1 to 320 clients, four a CPU, in the answer to the RFC of the idle cpumask, v7; the \
                          division into 2 sockets is what its author's machines of the time had",
            ),
            INTEL_DISTANCE,
            INTEL_NUMBERING,
            ("hz", "assumed: what SUSE's kernels have"),
            INTEL_IDLE,
        ],
        ..PLAIN
    },
    Preset {
        name: "xeon-4s192",
        description: "server with 192 CPUs: 4 sockets with 24 cores of 2 threads and a last-level cache each, HZ 250",
        nodes: 4,
        cores_an_llc: 24,
        threads_a_core: 2,
        hz: 250,
        costs: &[("scan_cpu_ns", 70, SKYLAKE_LINE)],
        idle_states: SKYLAKE_SERVER,
        sources: &[
            (
                "topology",
                "the RFC of the idle cpumask, v7: 4 sockets, 24 cores a socket, 2 hyperthreads a core",
            ),
            INTEL_DISTANCE,
            INTEL_NUMBERING,
            ("hz", "assumed: as vm4, the same author's"),
            INTEL_IDLE,
        ],
        ..PLAIN
    },
    Preset {
        name: "lkp-bdw-ep3",
        description: "0-Day's server with 88 CPUs: 2 × Xeon E5-2699 v4 (22 cores of 2 threads), 64 GB, HZ 1000",
        nodes: 2,
        cores_an_llc: 22,
        threads_a_core: 2,
        idle_states: BROADWELL_SERVER,
        sources: &[
            (
                "topology",
                "fdf5f315d5cf: 88 threads E5-2699 v4 @ 2.20GHz 64G; that Xeon has 22 cores, cluster-on-die off",
            ),
            INTEL_DISTANCE,
            INTEL_NUMBERING,
            LKP_HZ,
            LKP_CLOCK,
            INTEL_IDLE,
        ],
        ..PLAIN
    },
    Preset {
        name: "lkp-skl-4sp1",
        description: "0-Day's server with 192 CPUs: 4 × Xeon Platinum 8160 (24 cores of 2 threads), 768 GB, HZ 1000",
        nodes: 4,
        cores_an_llc: 24,
        threads_a_core: 2,
        idle_states: SKYLAKE_SERVER,
        sources: &[
            (
                "topology",
                "fdf5f315d5cf: 192 threads Platinum 8160 768G; that Xeon has 24 cores, sub-NUMA clusters off",
            ),
            INTEL_DISTANCE,
            INTEL_NUMBERING,
            LKP_HZ,
            LKP_CLOCK,
            INTEL_IDLE,
        ],
        ..PLAIN
    },
    Preset {
        name: "lkp-bdw-ep6",
        description: "0-Day's server with 88 CPUs: 2 × Xeon E5-2699 v4 (22 cores of 2 threads), 128 GB, HZ 1000",
        nodes: 2,
        cores_an_llc: 22,
        threads_a_core: 2,
        idle_states: BROADWELL_SERVER,
        sources: &[
            (
                "topology",
                "fdf5f315d5cf: 88 threads E5-2699 v4 @ 2.20GHz 128G; that Xeon has 22 cores, cluster-on-die off",
            ),
            INTEL_DISTANCE,
            INTEL_NUMBERING,
            LKP_HZ,
            LKP_CLOCK,
            INTEL_IDLE,
        ],
        ..PLAIN
    },
    Preset {
        name: "lkp-avoton3",
        description: "0-Day's microserver with 8 CPUs: Atom C2750, pairs of cores under a second-level cache, HZ 1000",
        llcs_a_node: 4,
        cores_an_llc: 2,
        numbering: SmtNumbering::Adjacent,
        idle_states: AVOTON,
        sources: &[
            (
                "topology",
                "fdf5f315d5cf: 8 threads Atom C2750 @ 2.40GHz 16G; its 4 MB of L2 are 1 MB a pair of cores, and there \
                          is no L3",
            ),
            LKP_HZ,
            LKP_CLOCK,
            INTEL_IDLE,
        ],
        ..PLAIN
    },
    CHROMEBOOK,
    Preset {
        name: "chromebook8-idle",
        description: "the same Chromebook with 8 CPUs, which leave their idle states as slowly as its device tree allows",
        idle_states: &[
            (0, 7, 1, 1, false),
            (0, 5, 1450, 1774, false),
            (6, 7, 1767, 2207, false),
            (0, 5, 1617, 4001, false),
            (6, 7, 2380, 5555, false),
            (0, 7, 9825, 9926, true),
        ],
        idle_entries: &[0, 549, 523, 702, 526, 3263],
        sources: &[
            ("topology", "as chromebook8, and so is all that is not named here"),
            ("hz", "as chromebook8"),
            (
                "idle",
                "the same device tree: entry-latency-us and exit-latency-us, which the kernel adds up, and min-residency-us; \
                       the binding calls them the worst case. The shallowest state is WFI with 1 us, as the driver has it",
            ),
        ],
        ..CHROMEBOOK
    },
    Preset {
        name: "chromebook8-fit",
        description: "the same Chromebook with 8 CPUs, whose ways out of idle states are fitted to the report's latencies",
        idle_states: &[
            (0, 7, 1, 1, false),
            (0, 5, 170, 1774, false),
            (6, 7, 610, 2207, false),
            (0, 5, 170, 4001, false),
            (6, 7, 610, 5555, false),
        ],
        sources: &[
            ("topology", "as chromebook8, and so is all that is not named here"),
            ("hz", "as chromebook8"),
            (
                "idle",
                "a fit: the report's waits lie near 200 us and near 640 us, with the patch and without it; what they take \
                       beyond a wakeup of 28 us is given to little and to big CPUs, of which the device tree has the big ones \
                       leave more slowly. min-residency-us is the device tree's; the state of all CPUs together is left out",
            ),
        ],
        ..CHROMEBOOK
    },
    Preset {
        name: "alder-lake24",
        description: "Intel Core i9-12900K: 24 CPUs, 8 cores of two threads and 8 of one, the former preferred (ITMT), HZ 250",
        cores_an_llc: 8,
        threads_a_core: 2,
        small_cores: 8,
        numbering: SmtNumbering::Adjacent,
        priorities: &[(0, 7, 51), (8, 11, 52), (12, 15, 51), (16, 23, 39)],
        true_speeds: &[(0, 7, 1004), (12, 15, 1004), (16, 23, 605)],
        boosts: &[(0, 15, &[(8, 984)]), (16, 23, &[(5, 971)])],
        hz: 250,
        idle_states: ALDER_LAKE,
        sources: &[
            HYBRID_SPEED,
            (
                "boost",
                "that specification and reviews: all eight performance cores run at 4.9 of 5.1 GHz, all efficient ones at 3.7 of 3.9; \
                       where between one and all the step is differs",
            ),
            (
                "topology",
                "Intel's specification of the i9-12900K: 8 performance cores with two threads, 8 efficient cores in clusters of \
                       four, one L3",
            ),
            (
                "priority",
                "that specification's highest frequencies in 100 MHz: 52 by Turbo Boost Max 3.0 on two cores, 51, and 39 on \
                       efficient cores, as intel_pstate takes each core's highest performance; which two cores are the best \
                       differs from chip to chip",
            ),
            ("hz", "assumed: Debian's and Ubuntu's choice on a desktop at the time"),
            (
                "capacity",
                "x86 tells none before v6.12, and none where cores have threads after it: 1024 everywhere",
            ),
            INTEL_IDLE,
        ],
        ..PLAIN
    },
    Preset {
        name: "alder-lake16",
        description: "hybrid laptop, Intel Core i7-1260P: 16 CPUs, 4 cores of two threads and 8 of one, the former preferred (ITMT), HZ 250",
        cores_an_llc: 4,
        threads_a_core: 2,
        small_cores: 8,
        numbering: SmtNumbering::Adjacent,
        priorities: &[(0, 7, 47), (8, 15, 34)],
        true_speeds: &[(8, 15, 583)],
        boosts: &[(0, 7, &[(3, 894)]), (8, 15, &[(5, 903)])],
        hz: 250,
        idle_states: ALDER_LAKE_LAPTOP,
        sources: &[
            HYBRID_SPEED,
            (
                "topology",
                "Intel's specification of the i7-1260P: 4 performance cores with two threads, 8 efficient cores in clusters of four, \
                       one L3",
            ),
            ("priority", "that specification's highest frequencies in 100 MHz: 47 and 34"),
            (
                "boost",
                "order of magnitude: reviews see all performance cores at 4.1 GHz and all efficient ones at 3.1 before heat limits them",
            ),
            ("hz", "what most distributions choose"),
            ("capacity", "x86 tells none where cores have threads: 1024 everywhere"),
            INTEL_IDLE,
        ],
        ..PLAIN
    },
    Preset {
        name: "ryzen-7950x",
        description: "desktop with preferred cores, AMD Ryzen 9 7950X: 32 CPUs, 2 caches of 8 cores of 2 threads, HZ 250",
        llcs_a_node: 2,
        cores_an_llc: 8,
        threads_a_core: 2,
        priorities: &[(0, 1, 236), (2, 7, 226), (8, 15, 206), (16, 17, 236), (18, 23, 226), (24, 31, 206)],
        true_speeds: &[(2, 7, 1006), (8, 15, 970), (18, 23, 1006), (24, 31, 970)],
        boosts: &[(0, 31, &[(5, 988), (9, 934)])],
        hz: 250,
        sources: &[
            ("topology", "AMD's specification of the 7950X: 16 cores of two threads, two L3 of 32 MB"),
            (
                "priority",
                "amd_pstate's rankings (f3a052391822, v6.9) fall in steps of five to ten from the best core on, 236 to 166; which \
                       cores are the best differs from chip to chip",
            ),
            (
                "speed",
                "reviews: 5.7 GHz on the best cores, 5.6 on the others of their cache, 5.4 on those of the second one",
            ),
            ("boost", "order of magnitude, reviews: 5.5 GHz on half of the cores of one cache, 5.2 on all"),
            ("hz", "what most distributions choose"),
        ],
        ..PLAIN
    },
    Preset {
        name: "vm4-steal",
        description: "as vm4, 4 CPUs, on a host that takes each away for a fifth of the time while it is busy",
        cores_an_llc: 4,
        numbering: SmtNumbering::Adjacent,
        hz: 250,
        costs: &[("idle_exit_ns", 8_000, "as vm40: a halted vCPU is started by its host")],
        chance: Chance { steal_per_s: 50, steal_ns: 5_000_000, ..Chance::USUAL },
        sources: &[
            ("topology", "as vm4"),
            ("hz", "as vm4"),
            (
                "chance",
                "assumed: a host with HZ 250 that is full by a quarter more than it has; its slices end at ticks, 4 to 8 ms apart",
            ),
        ],
        ..PLAIN
    },
    Preset {
        name: "s390-lpar24",
        description: "s390 partition with 24 CPUs: 12 cores of 2 threads, HZ 100",
        platform: Platform::S390,
        cores_an_llc: 12,
        threads_a_core: 2,
        numbering: SmtNumbering::Adjacent,
        hz: 100,
        sources: &[
            (
                "topology",
                "the report on EEVDF and vhost of November 2023: 12 dedicated IFLs, SMT-2 (24 Linux CPUs)",
            ),
            ("cache", "assumed: all cores on one chip"),
            ("numbering", "s390's: threads of a core are neighbours"),
            ("hz", "s390's default; ticks of the report's trace are 10 ms apart"),
        ],
        ..PLAIN
    },
    ZEN3,
    XEON64,
    GRAVITON96,
    HIKEY8,
    ARM4,
];
