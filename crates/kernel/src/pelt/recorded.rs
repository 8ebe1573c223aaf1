//! Load tracking against what real kernels printed: Debian's 5.10.223, 6.1.192, 6.12.107 and 7.2.13, recorded with probes on
//! functions that are about to update a root queue.
//!
//! A probe shows averages, not sums: an average of 512 may come from any of 47 thousand sums. Ageing is monotone in the sums.
//! So the lowest and the highest sum that fit are aged side by side. The next printed average must lie between theirs, and
//! narrows the sums further.

use super::average::{CpuScale, EntityWeight, QueueState, SchedAvg};
use super::entity::FairInitialUtil;
use super::queue::CfsRqLoad;
use super::rules::PeltRules;
use super::rules_of;
use super::shares::{GroupLoad, calc_group_shares};

fn debian_5_10() -> PeltRules {
    rules_of("debian-5.10")
}

fn debian_6_1() -> PeltRules {
    rules_of("debian-6.1")
}

fn debian_6_12() -> PeltRules {
    rules_of("debian-6.12")
}

fn debian_7_2() -> PeltRules {
    rules_of("debian-7.2")
}

/// Line of the recording's trace, `last_update_time`, `load_avg`, `runnable_avg`, `util_avg` of a root queue.
type RecordedAverage = (u32, u64, u64, u64, u64);

/// Prints of one busy root queue with nothing but ticks between them: no switch, no entity that came or went, no softirq.
struct TickOnlyStretch {
    recording: &'static str,
    cpu: u32,
    queue: QueueState,
    prints: &'static [RecordedAverage],
}

/// `weight` scaled down.
const fn stretch(
    recording: &'static str,
    cpu: u32,
    weight: u64,
    tasks: u64,
    prints: &'static [RecordedAverage],
) -> TickOnlyStretch {
    let queue = QueueState { weight, runnable_weight: weight, runnable_tasks: tasks, running: true };
    TickOnlyStretch { recording, cpu, queue, prints }
}

/// The lowest and the highest sums that a queue can have.
struct LoadBounds {
    low: SchedAvg,
    high: SchedAvg,
}

impl LoadBounds {
    /// Those that fit averages which were just recomputed.
    fn of(print: RecordedAverage) -> LoadBounds {
        let (_, last_update_time, load_avg, runnable_avg, util_avg) = print;
        // Every queue's first period began at time 0, and attached entities keep in step.
        let period_contrib = ((last_update_time >> 10) & 1023) as u32;
        let mut low = SchedAvg { last_update_time, period_contrib, ..SchedAvg::default() };
        (low.load_avg, low.runnable_avg, low.util_avg) = (load_avg, runnable_avg, util_avg);
        let divider = u64::from(low.divider());
        low.load_sum = load_avg * divider;
        low.runnable_sum = runnable_avg * divider;
        low.util_sum = (util_avg * divider) as u32;
        let mut high = low;
        high.load_sum += divider - 1;
        high.runnable_sum += divider - 1;
        high.util_sum += divider as u32 - 1;
        LoadBounds { low, high }
    }

    /// Keeps those that fit a print as well.
    fn narrow(&mut self, print: RecordedAverage) {
        let fit = LoadBounds::of(print);
        self.low.load_sum = self.low.load_sum.max(fit.low.load_sum);
        self.low.runnable_sum = self.low.runnable_sum.max(fit.low.runnable_sum);
        self.low.util_sum = self.low.util_sum.max(fit.low.util_sum);
        self.high.load_sum = self.high.load_sum.min(fit.high.load_sum);
        self.high.runnable_sum = self.high.runnable_sum.min(fit.high.runnable_sum);
        self.high.util_sum = self.high.util_sum.min(fit.high.util_sum);
    }
}

/// Averages foretold exactly, and averages of which one of two values was foretold.
#[derive(Debug, Default, PartialEq, Eq)]
struct PredictedAverages {
    exactly: u32,
    one_of_two: u32,
}

fn walk(rules: &PeltRules, stretch: &TickOnlyStretch, foretold: &mut PredictedAverages) {
    let mut bounds = LoadBounds::of(stretch.prints[0]);
    for &print in &stretch.prints[1..] {
        let (line, now, load_avg, runnable_avg, util_avg) = print;
        rules.update_cfs_rq(now, CpuScale::FULL, &mut bounds.low, stretch.queue);
        rules.update_cfs_rq(now, CpuScale::FULL, &mut bounds.high, stretch.queue);
        let (low, high) = (&bounds.low, &bounds.high);
        for (signal, low, printed, high) in [
            ("load_avg", low.load_avg, load_avg, high.load_avg),
            ("runnable_avg", low.runnable_avg, runnable_avg, high.runnable_avg),
            ("util_avg", low.util_avg, util_avg, high.util_avg),
        ] {
            assert!(
                (low..=high).contains(&printed) && high - low <= 1,
                "{} CPU {} line {line}: {signal} {printed}, not {low}..={high}",
                stretch.recording,
                stretch.cpu
            );
            if low == high { foretold.exactly += 1 } else { foretold.one_of_two += 1 }
        }
        bounds.narrow(print);
    }
}

fn walk_all(rules: &PeltRules, stretches: &[TickOnlyStretch]) -> PredictedAverages {
    let mut foretold = PredictedAverages::default();
    stretches.iter().for_each(|stretch| walk(rules, stretch, &mut foretold));
    foretold
}

#[test]
fn linux_5_10_ages_busy_queues_so() {
    let foretold = walk_all(&debian_5_10(), LINUX_5_10);
    assert_eq!(foretold, PredictedAverages { exactly: 37, one_of_two: 50 });
}

#[test]
fn linux_6_1_ages_busy_queues_so() {
    let foretold = walk_all(&debian_6_1(), LINUX_6_1);
    assert_eq!(foretold, PredictedAverages { exactly: 23, one_of_two: 37 });
}

#[test]
fn linux_6_12_ages_busy_queues_so() {
    let foretold = walk_all(&debian_6_12(), LINUX_6_12);
    assert_eq!(foretold, PredictedAverages { exactly: 31, one_of_two: 35 });
}

#[test]
fn linux_7_2_ages_busy_queues_so() {
    let foretold = walk_all(&debian_7_2(), LINUX_7_2);
    assert_eq!(foretold, PredictedAverages { exactly: 24, one_of_two: 39 });
}

/// The test itself can fail: with load-weighted runnability the same prints do not come out.
#[test]
#[should_panic(expected = "runnable_avg")]
fn another_signal_does_not_fit() {
    walk_all(&rules_of("v5.6"), LINUX_5_10);
}

/// A root queue's averages around a fork: line and `load_avg`, `runnable_avg`, `util_avg` before and after, within one
/// period, so that nothing but the new task (nice 0) came in between.
type RecordedFork = (&'static str, u32, [u64; 3], [u64; 3]);

fn check_forks(rules: &PeltRules, forks: &[RecordedFork]) {
    for &(recording, line, before, after) in forks {
        let mut queue = CfsRqLoad::default();
        queue.avg.last_update_time = 1 << 30;
        queue.avg.period_contrib = 500;
        [queue.avg.load_avg, queue.avg.runnable_avg, queue.avg.util_avg] = before;
        let mut task = rules.init_entity_runnable_average(Some(1024));
        let from = FairInitialUtil {
            capacity: 1024,
            queue_util_avg: queue.avg.util_avg,
            queue_load_avg: queue.avg.load_avg,
            weight: 1024,
            weight_scaled_up: 1 << 20,
        };
        rules.post_init_entity_util_avg(&mut task, from);
        rules.attach_entity_load_avg(&mut queue, &mut task, EntityWeight::of_task(1024));
        let avg = queue.avg;
        assert_eq!([avg.load_avg, avg.runnable_avg, avg.util_avg], after, "{recording} line {line}");
    }
}

/// On these kernels a new task gets half of what is left of the CPU, or nothing.
#[test]
fn new_tasks_take_half_of_what_is_left() {
    check_forks(
        &debian_5_10(),
        &[
            ("5.10-forkstorm-4-probed", 24, [0, 0, 0], [1024, 512, 512]),
            ("5.10-cgweight-2-probed", 385, [1, 2, 2], [1025, 513, 513]),
            ("5.10-cgweight-2-probed", 632, [1036, 517, 516], [2060, 771, 770]),
            ("5.10-cgweight-2-probed", 670, [2060, 771, 770], [3084, 898, 897]),
            ("5.10-forkstorm-4-probed", 2079, [4110, 981, 426], [5134, 1280, 725]),
            ("5.10-nice-2-probed", 778, [3068, 1280, 1266], [4092, 1280, 1266]),
        ],
    );
    check_forks(
        &debian_6_1(),
        &[
            ("6.1-cgweight-2-probed", 751, [1029, 434, 433], [2053, 729, 728]),
            ("6.1-cgweight-2-probed", 768, [1049, 531, 528], [2073, 779, 776]),
            ("6.1-nice-2-probed", 832, [4153, 1137, 1074], [5177, 1137, 1074]),
        ],
    );
}

/// From v6.10 on it is as big as the others of its weight, if that is less.
#[test]
fn new_tasks_are_as_big_as_the_others() {
    check_forks(
        &debian_6_12(),
        &[
            ("6.12-cgweight-2-probed", 882, [1045, 527, 525], [2069, 776, 774]),
            ("6.12-cgweight-2-probed", 911, [1078, 301, 252], [2102, 540, 491]),
            ("6.12-cgweight-2-probed", 930, [2102, 540, 491], [3126, 779, 730]),
            ("6.12-forkstorm-4-probed", 1881, [2094, 492, 338], [3118, 657, 503]),
            ("6.12-forkstorm-4-probed", 2034, [3074, 528, 400], [4098, 661, 533]),
        ],
    );
    check_forks(
        &debian_7_2(),
        &[
            ("7.2-cgweight-2-probed", 916, [14, 14, 11], [1038, 520, 517]),
            ("7.2-cgweight-2-probed", 972, [2066, 498, 482], [3090, 736, 720]),
            ("7.2-forkstorm-4-probed", 1485, [1041, 302, 302], [2065, 598, 598]),
            ("7.2-forkstorm-4-probed", 3275, [4118, 706, 518], [5142, 834, 646]),
            ("7.2-forkstorm-4-probed", 4708, [2132, 349, 263], [3156, 475, 389]),
        ],
    );
}

/// Group queues in `/sys/kernel/debug/sched` with cgroup weight 100: weight (scaled down) and `load_avg`, the group's
/// `tg_load_avg` and this queue's contribution, and the entity's weight.
type RecordedShares = (&'static str, [i64; 2], [i64; 2], i64);

#[test]
fn group_entities_weigh_their_share() {
    let recorded: &[RecordedShares] = &[
        ("5.10-pingpong-2 cfs_rq[1]:/m/vm/e", [1024, 1024], [1030, 1024], 1_042_467),
        ("5.10-pingpong-2 cfs_rq[1]:/m/vm", [1018, 1018], [1016, 1016], 1_048_576),
        ("5.10-pingpong-2 cfs_rq[0]:/m/vm/e", [0, 6], [1030, 6], 6108),
        ("5.10-pingpong-2 cfs_rq[0]:/m/vm", [0, 0], [1016, 0], 2),
        ("5.10-pingpong-2-probed cfs_rq[0]:/m/vm/e", [1024, 1024], [1032, 1024], 1_040_447),
        ("5.10-pingpong-2-probed cfs_rq[1]:/m/vm/e", [0, 8], [1032, 8], 8128),
        ("6.1-pingpong-2 cfs_rq[0]:/m/vm/e", [1024, 1024], [1031, 1024], 1_041_456),
        ("6.1-pingpong-2-probed cfs_rq[0]:/m/vm/e", [1024, 1024], [1033, 1024], 1_039_440),
        ("6.1-pingpong-2-probed cfs_rq[1]:/m/vm/e", [0, 9], [1033, 9], 9135),
        ("6.12-pingpong-2 cfs_rq[0]:/m/vm/e", [1024, 1024], [839, 831], 1_040_447),
        ("6.12-pingpong-2 cfs_rq[0]:/m/vm", [1016, 1016], [828, 824], 1_044_463),
        ("6.12-pingpong-2 cfs_rq[0]:/m", [1019, 1019], [826, 824], 1_046_521),
        ("6.12-pingpong-2-probed cfs_rq[1]:/m/vm/e", [1024, 1024], [847, 836], 1_037_431),
        ("7.2-pingpong-2 cfs_rq[1]:/m/vm", [1016, 1017], [828, 824], 1_044_467),
        ("7.2-pingpong-2 cfs_rq[1]:/m", [1019, 1020], [827, 824], 1_045_500),
    ];
    for &(place, [weight, load_avg], [tg_load_avg, tg_load_avg_contrib], expected) in recorded {
        let group = GroupLoad { tg_shares: 1 << 20, tg_load_avg, tg_load_avg_contrib, weight, load_avg };
        assert_eq!(calc_group_shares(group), expected, "{place}");
    }
}

const LINUX_5_10: &[TickOnlyStretch] = &[
    stretch(
        "5.10-mixed-8numa-probed",
        7,
        1024,
        1,
        &[
            (3263, 5_357_249_536, 1024, 859, 860),
            (3352, 5_361_240_064, 1024, 872, 873),
            (3413, 5_365_241_856, 1024, 884, 885),
            (3502, 5_369_240_576, 1024, 895, 896),
            (3544, 5_373_240_320, 1024, 906, 906),
            (3614, 5_377_233_920, 1024, 915, 915),
            (3648, 5_381_236_736, 1024, 924, 924),
            (3698, 5_385_236_480, 1024, 932, 932),
        ],
    ),
    stretch(
        "5.10-mixed-8numa-probed",
        4,
        335,
        1,
        &[
            (3261, 5_357_238_272, 336, 862, 861),
            (3345, 5_361_239_040, 336, 875, 874),
            (3409, 5_365_236_736, 336, 887, 886),
            (3497, 5_369_236_480, 336, 898, 897),
            (3545, 5_373_236_224, 336, 908, 907),
            (3620, 5_377_235_968, 336, 917, 916),
            (3650, 5_381_240_832, 336, 925, 924),
            (3703, 5_385_238_528, 336, 933, 932),
        ],
    ),
    stretch(
        "5.10-schbench0-8smt-probed",
        0,
        1024,
        1,
        &[
            (3586, 6_153_094_144, 1502, 1107, 957),
            (3644, 6_157_083_648, 1464, 1101, 962),
            (3659, 6_161_108_992, 1429, 1095, 967),
            (3708, 6_165_089_280, 1397, 1089, 971),
            (3723, 6_169_108_480, 1367, 1084, 976),
            (3772, 6_173_089_792, 1340, 1079, 979),
            (3787, 6_177_108_992, 1315, 1075, 983),
            (3836, 6_181_089_280, 1292, 1071, 986),
        ],
    ),
    stretch(
        "5.10-schbench0-8smt-probed",
        6,
        2048,
        2,
        &[
            (984, 6_041_102_336, 2044, 1482, 1018),
            (1002, 6_045_106_176, 2044, 1527, 1019),
            (1101, 6_049_089_536, 2044, 1568, 1019),
            (1108, 6_053_110_784, 2044, 1606, 1020),
        ],
    ),
    stretch(
        "5.10-nice-2-probed",
        1,
        15,
        1,
        &[
            (7149, 4_957_074_432, 18, 1027, 387),
            (7164, 4_961_074_176, 18, 1027, 437),
            (7183, 4_965_097_472, 18, 1027, 484),
            (7187, 4_969_074_688, 18, 1027, 527),
        ],
    ),
    stretch(
        "5.10-nice-2-probed",
        1,
        15177,
        7,
        &[(3082, 4_609_096_704, 15_182, 6817, 1014), (3109, 4_613_096_448, 15_181, 6845, 1015)],
    ),
    stretch(
        "5.10-rtapp-4-probed",
        3,
        2048,
        2,
        &[(3389, 7_113_092_096, 2090, 1261, 881), (3414, 7_117_087_744, 2086, 1323, 892)],
    ),
];

const LINUX_6_1: &[TickOnlyStretch] = &[
    stretch(
        "6.1-rtapp-4-probed",
        0,
        1024,
        1,
        &[
            (5024, 6_285_284_352, 1660, 1260, 946),
            (5047, 6_289_293_312, 1610, 1242, 952),
            (5077, 6_293_293_056, 1563, 1224, 958),
            (5093, 6_297_293_824, 1520, 1208, 963),
            (5120, 6_301_293_568, 1481, 1194, 968),
            (5136, 6_305_281_024, 1445, 1180, 972),
            (5175, 6_309_281_792, 1411, 1168, 976),
            (5195, 6_313_290_752, 1381, 1156, 980),
        ],
    ),
    stretch(
        "6.1-nice-2-probed",
        1,
        15177,
        7,
        &[
            (2337, 3_721_294_848, 16_072, 5728, 987),
            (2395, 3_725_287_424, 16_001, 5842, 990),
            (2401, 3_729_287_168, 15_936, 5947, 993),
        ],
    ),
    stretch(
        "6.1-nice-2-probed",
        1,
        13994,
        7,
        &[
            (1421, 3_661_287_424, 15_776, 3897, 1137),
            (1485, 3_665_287_168, 15_635, 4157, 1128),
            (1491, 3_669_287_936, 15_504, 4396, 1120),
        ],
    ),
    stretch(
        "6.1-mixed-8numa-probed",
        4,
        335,
        1,
        &[
            (3070, 4_053_504_000, 343, 844, 837),
            (3143, 4_057_512_960, 343, 858, 852),
            (3242, 4_061_504_512, 342, 871, 865),
            (3328, 4_065_507_328, 341, 883, 878),
            (3379, 4_069_507_072, 341, 894, 889),
            (3470, 4_073_503_744, 340, 905, 900),
        ],
    ),
    stretch(
        "6.1-nice-2-probed",
        1,
        1039,
        2,
        &[(6930, 4_117_271_552, 1041, 2049, 245), (6938, 4_121_276_416, 1040, 2049, 307)],
    ),
    stretch(
        "6.1-rtapp-4-probed",
        0,
        3072,
        3,
        &[(7367, 6_589_284_352, 3084, 2492, 1012), (7392, 6_593_282_048, 3083, 2538, 1013)],
    ),
    stretch(
        "6.1-cgweight-2-probed",
        0,
        1024,
        1,
        &[
            (359, 3_625_279_488, 1027, 499, 497),
            (399, 3_629_270_016, 1027, 540, 538),
            (407, 3_633_270_784, 1026, 579, 577),
        ],
    ),
];

const LINUX_6_12: &[TickOnlyStretch] = &[
    stretch(
        "6.12-nice-2-probed",
        1,
        15,
        1,
        &[
            (9893, 6_419_155_968, 17, 1026, 380),
            (9902, 6_423_136_256, 17, 1026, 431),
            (9943, 6_427_134_976, 17, 1026, 478),
            (9948, 6_431_141_888, 17, 1026, 521),
            (9959, 6_435_131_392, 16, 1025, 561),
            (9964, 6_439_131_136, 16, 1025, 598),
            (9969, 6_443_130_880, 16, 1025, 632),
            (9974, 6_447_130_624, 16, 1025, 663),
        ],
    ),
    stretch(
        "6.12-nice-2-probed",
        1,
        125,
        2,
        &[
            (8869, 6_211_130_368, 162, 2085, 674),
            (8877, 6_215_131_136, 159, 2082, 701),
            (8885, 6_219_130_880, 157, 2080, 727),
            (8893, 6_223_130_624, 154, 2077, 750),
            (8901, 6_227_130_368, 152, 2075, 772),
        ],
    ),
    stretch(
        "6.12-nice-2-probed",
        1,
        15177,
        7,
        &[
            (3482, 5_815_155_712, 15_267, 6622, 1009),
            (3518, 5_819_155_456, 15_260, 6665, 1010),
            (3529, 5_823_156_224, 15_253, 6705, 1011),
        ],
    ),
    stretch(
        "6.12-schbench0-8smt-probed",
        7,
        1024,
        1,
        &[
            (4171, 6_899_482_624, 1035, 1035, 910),
            (4216, 6_903_468_032, 1034, 1034, 919),
            (4257, 6_907_467_776, 1033, 1034, 927),
            (4296, 6_911_481_856, 1033, 1033, 935),
            (4312, 6_915_468_288, 1032, 1032, 942),
            (4389, 6_919_445_504, 1031, 1031, 948),
        ],
    ),
    stretch(
        "6.12-rtapp-4-probed",
        2,
        1024,
        1,
        &[
            (5499, 8_247_430_144, 1698, 1181, 882),
            (5553, 8_251_421_696, 1644, 1168, 894),
            (5597, 8_255_435_776, 1595, 1157, 904),
            (5641, 8_259_436_544, 1549, 1146, 913),
        ],
    ),
    stretch(
        "6.12-yield-2-probed",
        1,
        4096,
        4,
        &[(1924, 5_703_140_352, 4141, 1685, 1116), (1931, 5_707_140_096, 4138, 1876, 1108)],
    ),
];

const LINUX_7_2: &[TickOnlyStretch] = &[
    stretch(
        "7.2-schbench0-8smt-probed",
        1,
        1024,
        1,
        &[
            (7781, 8_127_862_784, 996, 996, 994),
            (7819, 8_131_817_472, 998, 998, 997),
            (7857, 8_135_815_168, 1000, 1000, 999),
            (7904, 8_139_814_912, 1002, 1002, 1001),
            (7927, 8_143_827_968, 1003, 1003, 1003),
            (7999, 8_147_812_352, 1005, 1005, 1004),
            (8039, 8_151_863_296, 1007, 1007, 1006),
            (8079, 8_155_863_040, 1008, 1008, 1007),
        ],
    ),
    stretch(
        "7.2-schbench0-8smt-probed",
        0,
        2048,
        2,
        &[(2531, 7_859_817_472, 2046, 2046, 1462), (2577, 7_860_383_744, 2046, 2046, 1457)],
    ),
    stretch(
        "7.2-schbench0-8smt-probed",
        1,
        2048,
        2,
        &[(1073, 7_787_863_040, 2042, 1441, 1020), (1120, 7_788_357_632, 2042, 1441, 1020)],
    ),
    stretch(
        "7.2-mixed-8numa-probed",
        4,
        1024,
        1,
        &[
            (7092, 7_292_003_328, 1024, 381, 381),
            (7154, 7_296_003_072, 1024, 432, 432),
            (7179, 7_300_003_840, 1024, 479, 479),
        ],
    ),
    stretch(
        "7.2-mixed-8numa-probed",
        5,
        335,
        1,
        &[(1623, 7_076_016_128, 352, 300, 285), (1648, 7_080_015_872, 350, 357, 344)],
    ),
    stretch(
        "7.2-nice-2-probed",
        0,
        1024,
        1,
        &[(18_405, 7_603_435_520, 1025, 577, 577), (18_440, 7_607_440_384, 1025, 613, 612)],
    ),
    stretch(
        "7.2-schbench0-8smt-probed",
        4,
        1024,
        1,
        &[
            (14_286, 8_535_812_096, 997, 997, 990),
            (14_406, 8_539_845_632, 999, 999, 993),
            (14_462, 8_543_844_352, 1001, 1001, 995),
            (14_531, 8_547_829_760, 1003, 1003, 997),
            (14_593, 8_551_828_480, 1004, 1004, 999),
        ],
    ),
    stretch(
        "7.2-schbench0-8smt-probed",
        6,
        1024,
        1,
        &[
            (7796, 8_127_828_992, 995, 995, 995),
            (7824, 8_131_853_312, 997, 997, 997),
            (7875, 8_135_829_504, 999, 999, 999),
            (7887, 8_139_831_296, 1001, 1001, 1001),
            (7945, 8_143_811_584, 1003, 1003, 1003),
        ],
    ),
];
