//! The catalogue: the tests of the commit's text by name and machine, what it prints of them, and what a scheduler sees of
//! each.
//!
//! Must not know: how they are run.

use Seen::{Children, Devices, Hogs, Itself, Pairs, Yields};

/// What a scheduler sees of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// So many tasks that compute: arithmetic, or system calls that neither sleep nor wake.
    Hogs(u32),
    /// Tasks whose system call is `sched_yield()`.
    Yields(u32),
    /// Tasks that compute and wait for a disk, µs.
    Devices { jobs: u32, run_us: u32, wait_us: u32 },
    /// Clients and servers that alternate, µs.
    Pairs { pairs: u32, run_us: u32, answer_us: u32 },
    /// Tasks that create short-lived children and wait for them, µs.
    Children { jobs: u32, run_us: u32, at_once: u32 },
    /// A workload of its own, for so many ms.
    Itself(&'static str, u64),
}

/// A metric, before and after: mean and spread in percent.
pub(super) type Printed = (&'static str, (f64, u32), (f64, u32));

/// One line of the catalogue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    pub machine: &'static str,
    /// Its name in LKP.
    pub name: &'static str,
    pub seen: Seen,
    /// What the commit's text prints.
    pub published: &'static [Printed],
}

impl Seen {
    /// The workload's command line, and how long it runs, ms.
    pub fn workload(self) -> (String, u64) {
        match self {
            Hogs(jobs) => (format!("jobs spin -n {jobs} -r 1000"), if jobs > 1000 { 2000 } else { 6000 }),
            Yields(jobs) => (format!("jobs yield -n {jobs} -r 2"), 200),
            Devices { jobs, run_us, wait_us } => (
                format!("jobs sleep -n {jobs} -r {run_us} -s {wait_us}"),
                if jobs > 1000 { 300 } else { 1500 },
            ),
            Pairs { pairs, run_us, answer_us } => (
                format!("jobs pairs -n {pairs} -r {run_us} -a {answer_us}"),
                if pairs > 20 { 100 } else { 500 },
            ),
            Children { jobs, run_us, at_once } => (
                format!("jobs spawn -n {jobs} -r {run_us} -k {at_once}"),
                if run_us > 10_000 { 2000 } else { 250 },
            ),
            Itself(workload, milliseconds) => (workload.to_string(), milliseconds),
        }
    }

    /// What that leaves out, in a few words.
    pub fn abstraction(self) -> &'static str {
        match self {
            Hogs(_) => "hogs: what they compute, locks and memory are left out",
            Yields(_) => "hogs that yield",
            Devices { .. } => "tasks that compute and wait; the disk has no queue",
            Pairs { .. } => "pairs that alternate; sockets and pipes never fill",
            Children { .. } => "parents and short-lived children; no files, no exec",
            Itself(..) => "the program's own protocol, with fewer groups or loops",
        }
    }
}

impl Test {
    /// The machine and the workload that are run for it; several tests may have them in common.
    pub fn cell(&self) -> (&'static str, String) {
        (self.machine, self.seen.workload().0)
    }
}

const fn test(machine: &'static str, name: &'static str, seen: Seen, published: &'static [Printed]) -> Test {
    Test { machine, name, seen, published }
}

/// Every test. Numbers of tasks are the tests' own: a share of the machine's CPUs where they say so, for will-it-scale its middle
/// step, half of the CPUs. Times are orders of magnitude.
pub(super) const CATALOGUE: &[Test] = &[
    test(
        "lkp-bdw-ep3",
        "dd-write/10m-1HDD-cfq-btrfs-100dd-performance",
        Devices { jobs: 100, run_us: 200, wait_us: 2000 },
        &[],
    ),
    test(
        "lkp-bdw-ep3",
        "fsmark/1x-1t-1HDD-xfs-nfsv4-4M-60G-NoSync-performance",
        Devices { jobs: 1, run_us: 300, wait_us: 1500 },
        &[],
    ),
    test(
        "lkp-bdw-ep3",
        "fsmark/1x-1t-1HDD-btrfs-nfsv4-4M-60G-NoSync-performance",
        Devices { jobs: 1, run_us: 300, wait_us: 1500 },
        &[("fsmark.files_per_sec", (7.50, 0), (8.00, 6))],
    ),
    test(
        "lkp-bdw-ep3",
        "fsmark/1x-1t-1HDD-btrfs-nfsv4-4M-60G-fsyncBeforeClose-performance",
        Devices { jobs: 1, run_us: 300, wait_us: 1500 },
        &[],
    ),
    test(
        "lkp-bdw-ep3",
        "fsmark/1x-1t-1HDD-btrfs-4M-60G-NoSync-performance",
        Devices { jobs: 1, run_us: 300, wait_us: 1500 },
        &[],
    ),
    test(
        "lkp-bdw-ep3",
        "fsmark/1x-1t-1HDD-btrfs-4M-60G-fsyncBeforeClose-performance",
        Devices { jobs: 1, run_us: 300, wait_us: 1500 },
        &[],
    ),
    test(
        "lkp-bdw-ep3",
        "kbuild/300s-50%-vmlinux_prereq-performance",
        Children { jobs: 44, run_us: 20000, at_once: 1 },
        &[],
    ),
    test(
        "lkp-bdw-ep3",
        "kbuild/300s-200%-vmlinux_prereq-performance",
        Children { jobs: 176, run_us: 20000, at_once: 1 },
        &[],
    ),
    test(
        "lkp-bdw-ep3",
        "kbuild/300s-50%-vmlinux_prereq-performance-1HDD-ext4",
        Children { jobs: 44, run_us: 20000, at_once: 1 },
        &[],
    ),
    test(
        "lkp-bdw-ep3",
        "kbuild/300s-200%-vmlinux_prereq-performance-1HDD-ext4",
        Children { jobs: 176, run_us: 20000, at_once: 1 },
        &[],
    ),
    test("lkp-skl-4sp1", "dbench/100%-performance", Devices { jobs: 192, run_us: 100, wait_us: 300 }, &[]),
    test("lkp-skl-4sp1", "ebizzy/200%-100x-10s-performance", Hogs(384), &[]),
    test(
        "lkp-skl-4sp1",
        "hackbench/1600%-process-pipe-performance",
        Itself("hackbench -g 16 -l 1000 -p", 100),
        &[],
    ),
    test(
        "lkp-skl-4sp1",
        "iperf/300s-cs-localhost-tcp-performance",
        Pairs { pairs: 1, run_us: 20, answer_us: 20 },
        &[],
    ),
    test(
        "lkp-skl-4sp1",
        "iperf/300s-cs-localhost-udp-performance",
        Pairs { pairs: 1, run_us: 20, answer_us: 20 },
        &[],
    ),
    test("lkp-skl-4sp1", "perf-bench-numa-mem/2t-300M-performance", Hogs(2), &[]),
    test(
        "lkp-skl-4sp1",
        "perf-bench-sched-pipe/10000000ops-process-performance",
        Itself("pipe -l 10000000", 500),
        &[],
    ),
    test(
        "lkp-skl-4sp1",
        "perf-bench-sched-pipe/10000000ops-threads-performance",
        Itself("pipe -l 10000000 -T", 500),
        &[],
    ),
    test(
        "lkp-skl-4sp1",
        "schbench/2-16-300-30000-30000-performance",
        Itself("schbench -m 2 -t 16 -c 30000 -s 30000 -r 10", 10000),
        &[],
    ),
    test(
        "lkp-skl-4sp1",
        "tbench/100%-cs-localhost-performance",
        Pairs { pairs: 192, run_us: 8, answer_us: 12 },
        &[],
    ),
    test(
        "lkp-bdw-ep6",
        "stress-ng/100%-60s-pipe-performance",
        Pairs { pairs: 88, run_us: 3, answer_us: 3 },
        &[],
    ),
    test("lkp-bdw-ep6", "unixbench/300s-1-whetstone-double-performance", Hogs(1), &[]),
    test(
        "lkp-bdw-ep6",
        "unixbench/300s-1-shell1-performance",
        Children { jobs: 1, run_us: 1500, at_once: 1 },
        &[],
    ),
    test(
        "lkp-bdw-ep6",
        "unixbench/300s-1-shell8-performance",
        Children { jobs: 1, run_us: 1500, at_once: 8 },
        &[],
    ),
    test("lkp-bdw-ep6", "unixbench/300s-1-pipe-performance", Hogs(1), &[]),
    test(
        "lkp-bdw-ep6",
        "unixbench/300s-1-context1-performance",
        Pairs { pairs: 1, run_us: 2, answer_us: 2 },
        &[("unixbench.score", (312.0, 0), (315.0, 0))],
    ),
    test(
        "lkp-bdw-ep6",
        "unixbench/300s-1-spawn-performance",
        Children { jobs: 1, run_us: 100, at_once: 1 },
        &[],
    ),
    test("lkp-bdw-ep6", "unixbench/300s-1-syscall-performance", Hogs(1), &[]),
    test("lkp-bdw-ep6", "unixbench/300s-1-dhry2reg-performance", Hogs(1), &[]),
    test("lkp-bdw-ep6", "unixbench/300s-1-fstime-performance", Hogs(1), &[]),
    test("lkp-bdw-ep6", "unixbench/300s-1-fsbuffer-performance", Hogs(1), &[]),
    test(
        "lkp-bdw-ep6",
        "unixbench/300s-1-fsdisk-performance",
        Devices { jobs: 1, run_us: 100, wait_us: 400 },
        &[],
    ),
    test("lkp-bdw-ep6", "unixbench/300s-100%-whetstone-double-performance", Hogs(88), &[]),
    test(
        "lkp-bdw-ep6",
        "unixbench/300s-100%-shell1-performance",
        Children { jobs: 88, run_us: 1500, at_once: 1 },
        &[],
    ),
    test(
        "lkp-bdw-ep6",
        "unixbench/300s-100%-shell8-performance",
        Children { jobs: 88, run_us: 1500, at_once: 8 },
        &[],
    ),
    test("lkp-bdw-ep6", "unixbench/300s-100%-pipe-performance", Hogs(88), &[]),
    test(
        "lkp-bdw-ep6",
        "unixbench/300s-100%-context1-performance",
        Pairs { pairs: 88, run_us: 2, answer_us: 2 },
        &[],
    ),
    test(
        "lkp-bdw-ep6",
        "unixbench/300s-100%-spawn-performance",
        Children { jobs: 88, run_us: 100, at_once: 1 },
        &[],
    ),
    test(
        "lkp-bdw-ep6",
        "unixbench/300s-100%-syscall-performance",
        Hogs(88),
        &[("unixbench.score", (3571.0, 3), (3183.0, 4))],
    ),
    test("lkp-bdw-ep6", "unixbench/300s-100%-dhry2reg-performance", Hogs(88), &[]),
    test("lkp-bdw-ep6", "unixbench/300s-100%-fstime-performance", Hogs(88), &[]),
    test("lkp-bdw-ep6", "unixbench/300s-100%-fsbuffer-performance", Hogs(88), &[]),
    test(
        "lkp-bdw-ep6",
        "unixbench/300s-100%-fsdisk-performance",
        Devices { jobs: 88, run_us: 100, wait_us: 400 },
        &[],
    ),
    test(
        "lkp-bdw-ep6",
        "unixbench/300s-1-execl-performance",
        Children { jobs: 1, run_us: 300, at_once: 1 },
        &[],
    ),
    test(
        "lkp-bdw-ep6",
        "unixbench/300s-100%-execl-performance",
        Children { jobs: 88, run_us: 300, at_once: 1 },
        &[],
    ),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/brk1-performance",
        Hogs(44),
        &[("will-it-scale.per_thread_ops", (365004.0, 0), (360387.0, 0))],
    ),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/dup1-performance",
        Hogs(44),
        &[("will-it-scale.per_thread_ops", (432401.0, 0), (437596.0, 0))],
    ),
    test("lkp-bdw-ep6", "will-it-scale/eventfd1-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/futex1-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/futex2-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/futex3-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/futex4-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/getppid1-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/lock1-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/lseek1-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/lseek2-performance", Hogs(44), &[]),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/malloc1-performance",
        Hogs(44),
        &[
            ("will-it-scale.per_thread_ops", (47025.0, 0), (45817.0, 0)),
            ("will-it-scale.per_process_ops", (77499.0, 0), (76529.0, 0)),
        ],
    ),
    test("lkp-bdw-ep6", "will-it-scale/malloc2-performance", Hogs(44), &[]),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/mmap1-performance",
        Hogs(44),
        &[
            ("will-it-scale.per_thread_ops", (123399.0, 0), (120815.0, 0)),
            ("will-it-scale.per_process_ops", (152219.0, 0), (149833.0, 0)),
        ],
    ),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/mmap2-performance",
        Hogs(44),
        &[
            ("will-it-scale.per_thread_ops", (107327.0, 0), (104714.0, 0)),
            ("will-it-scale.per_process_ops", (136405.0, 0), (133765.0, 0)),
        ],
    ),
    test("lkp-bdw-ep6", "will-it-scale/open1-performance", Hogs(44), &[]),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/open2-performance",
        Hogs(44),
        &[
            ("will-it-scale.per_thread_ops", (171570.0, 0), (168805.0, 0)),
            ("will-it-scale.per_process_ops", (532644.0, 0), (526202.0, 0)),
        ],
    ),
    test("lkp-bdw-ep6", "will-it-scale/page_fault1-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/page_fault2-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/page_fault3-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/pipe1-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/poll1-performance", Hogs(44), &[]),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/poll2-performance",
        Hogs(44),
        &[
            ("will-it-scale.per_thread_ops", (176134.0, 0), (172848.0, 0)),
            ("will-it-scale.per_process_ops", (281361.0, 0), (275053.0, 0)),
        ],
    ),
    test("lkp-bdw-ep6", "will-it-scale/posix_semaphore1-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/pread1-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/pread2-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/pread3-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/pthread_mutex1-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/pthread_mutex2-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/pwrite1-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/pwrite2-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/pwrite3-performance", Hogs(44), &[]),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/read1-performance",
        Hogs(44),
        &[("will-it-scale.per_thread_ops", (1190563.0, 0), (1174833.0, 0))],
    ),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/read2-performance",
        Hogs(44),
        &[("will-it-scale.per_thread_ops", (1105369.0, 0), (1080427.0, 0))],
    ),
    test("lkp-bdw-ep6", "will-it-scale/readseek1-performance", Hogs(44), &[]),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/readseek2-performance",
        Hogs(44),
        &[("will-it-scale.per_thread_ops", (261818.0, 0), (259040.0, 0))],
    ),
    test("lkp-bdw-ep6", "will-it-scale/readseek3-performance", Hogs(44), &[]),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/sched_yield-performance",
        Yields(44),
        &[("will-it-scale.per_thread_ops", (2408059.0, 0), (2382034.0, 0))],
    ),
    test("lkp-bdw-ep6", "will-it-scale/signal1-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/unix1-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/unlink1-performance", Hogs(44), &[]),
    test("lkp-bdw-ep6", "will-it-scale/unlink2-performance", Hogs(44), &[]),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/write1-performance",
        Hogs(44),
        &[("will-it-scale.per_thread_ops", (976701.0, 0), (961588.0, 0))],
    ),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/writeseek1-performance",
        Hogs(44),
        &[("will-it-scale.per_thread_ops", (831898.0, 0), (822448.0, 0))],
    ),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/writeseek2-performance",
        Hogs(44),
        &[("will-it-scale.per_thread_ops", (228248.0, 0), (225065.0, 0))],
    ),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/writeseek3-performance",
        Hogs(44),
        &[("will-it-scale.per_thread_ops", (226670.0, 0), (224058.0, 0))],
    ),
    test(
        "lkp-bdw-ep6",
        "will-it-scale/context_switch1-performance",
        Pairs { pairs: 22, run_us: 2, answer_us: 2 },
        &[],
    ),
    test(
        "lkp-bdw-ep6",
        "aim7/performance-fork_test-2000",
        Children { jobs: 2000, run_us: 500, at_once: 1 },
        &[],
    ),
    test(
        "lkp-bdw-ep6",
        "aim7/performance-brk_test-3000",
        Hogs(3000),
        &[("aim7.jobs-per-min", (74869.0, 0), (76676.0, 0))],
    ),
    test(
        "lkp-bdw-ep6",
        "aim7/performance-disk_cp-3000",
        Devices { jobs: 3000, run_us: 200, wait_us: 2000 },
        &[],
    ),
    test(
        "lkp-bdw-ep6",
        "aim7/performance-disk_rd-3000",
        Devices { jobs: 3000, run_us: 200, wait_us: 2000 },
        &[],
    ),
    test("lkp-bdw-ep6", "aim7/performance-sieve-3000", Hogs(3000), &[]),
    test("lkp-bdw-ep6", "aim7/performance-page_test-3000", Hogs(3000), &[]),
    test(
        "lkp-bdw-ep6",
        "aim7/performance-creat-clo-3000",
        Devices { jobs: 3000, run_us: 200, wait_us: 2000 },
        &[],
    ),
    test("lkp-bdw-ep6", "aim7/performance-mem_rtns_1-8000", Hogs(8000), &[]),
    test(
        "lkp-bdw-ep6",
        "aim7/performance-disk_wrt-8000",
        Devices { jobs: 8000, run_us: 200, wait_us: 2000 },
        &[],
    ),
    test("lkp-bdw-ep6", "aim7/performance-pipe_cpy-8000", Hogs(8000), &[]),
    test("lkp-bdw-ep6", "aim7/performance-ram_copy-8000", Hogs(8000), &[]),
    test(
        "lkp-avoton3",
        "netperf/ipv4-900s-200%-cs-localhost-TCP_STREAM-performance",
        Pairs { pairs: 16, run_us: 30, answer_us: 20 },
        &[],
    ),
];
