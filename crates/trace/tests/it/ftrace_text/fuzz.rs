//! Damaged lines: nothing panics, nothing is invented, and no line changes how its neighbours are read.

use std::io::Read;

use fairlab_event::Counter;
use fairlab_trace::{ReadOptions, ftrace_text};

use crate::kept::{Keeper, Kept, testdata};
use crate::random::Random;

/// Real lines of every form.
fn lines() -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    for name in [
        "ftrace-6.18-hackbench.txt.zst",
        "ftrace-7.2-probed.txt.zst",
        "ftrace-6.6-vhost.txt.zst",
        "trace-cmd-3.1-hackbench.txt.zst",
        "perf-6.1-hackbench.txt.zst",
    ] {
        let file = std::fs::File::open(testdata(name)).expect("a file");
        let mut text = Vec::new();
        zstd::Decoder::new(file).expect("a zstd stream").read_to_end(&mut text).expect("a zstd stream");
        lines.extend(text.split(|&byte| byte == b'\n').step_by(97).map(<[u8]>::to_vec));
    }
    lines.extend(ODD.iter().map(|line| line.as_bytes().to_vec()));
    assert!(lines.len() > 200);
    lines
}

const ODD: &[&str] = &[
    "CPU:3 [LOST 123 EVENTS]",
    "#!            bash-15487   (  15487) [001] d..2.     0.000000000: task_start: pid=2 tgid=1 parent_pid=-1",
    "opt cgu.-16722   0d.h1.  1600.174990: sched_stat_runtime:   comm=opt cgu.14 pid=16722 runtime=3982182 [ns]",
    "bash-15487 [000]  1555.069808: sched_wakeup:         bash:15488 [120]<CANT FIND FIELD success> CPU:001",
    "     migration/0    18/18    [000]  1356.932346: sched:sched_switch: a:1 [120] S ==> b:2 [120]",
    "ls 123 [000] 1.5: PERF_RECORD_COMM exec: ls:123/124",
    "> CPU 3/KVM-2950 [014] d.... 576.161434: sched_place: comm= pid=0 sev=1 sed=2 sel=-3 avg=4 min=5 cpu=14 nr=0",
];

fn damage(line: &[u8], random: &mut Random) -> Vec<u8> {
    let mut line = line.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(line.len() + 1);
        match random.below(7) {
            0 => line.truncate(at),
            1 if at < line.len() => line[at] ^= 1 << random.below(8),
            2 if at < line.len() => drop(line.remove(at)),
            3 => line.insert(at, b" :[]()-=0\r\x00\xff\t#"[random.below(14)]),
            4 if at < line.len() => line[at] = line[at].wrapping_add(1),
            5 => {
                let length = random.below(30).min(line.len() - at);
                let part = line[at..at + length].to_vec();
                line.splice(at..at, part);
            }
            _ => line.drain(..at.min(line.len())).for_each(drop),
        }
    }
    line.retain(|&byte| byte != b'\n');
    line
}

fn events(text: &[u8]) -> Option<Vec<Kept>> {
    let mut keeper = Keeper::default();
    ftrace_text::read(text, &ReadOptions::default(), &mut keeper).ok().map(|_| keeper.0)
}

/// The quick way of reading a line must not differ from the general one. A line alone is read the general way, after a
/// line of its kind it may be read the quick way.
#[test]
fn a_damaged_line_is_read_alike_alone_and_among_others() {
    let mut random = Random::new(7);
    for line in lines() {
        for turn in 0..200 {
            let damaged = [&damage(&line, &mut random)[..], b"\n"].concat();
            let among = [&line[..], b"\n", &damaged].concat();
            let shown = String::from_utf8_lossy(&damaged).into_owned();
            let first = events(&line).unwrap_or_default();
            let alone = events(&damaged).unwrap_or_default();
            let mut both = events(&among).unwrap_or_default();
            assert_eq!(both.len(), first.len() + alone.len(), "turn {turn}: {shown}");
            for (mut alone, among) in alone.into_iter().zip(both.split_off(first.len())) {
                if matches!(alone.event.kind, fairlab_event::EventKind::Lost { .. }) {
                    // Its time is that of the line before.
                    alone.event.time = among.event.time;
                }
                assert_eq!(alone, among, "turn {turn}: {shown}");
            }
        }
    }
}

/// Whole files with damage anywhere, in its line ends too, and cut at every place.
#[test]
fn a_damaged_file_is_read_to_its_end() {
    let lines = lines();
    for seed in 1..200 {
        let mut random = Random::new(seed);
        let mut text = Vec::new();
        for _ in 0..50 {
            let line = &lines[random.below(lines.len())];
            if random.chance(2) {
                text.extend(damage(line, &mut random));
            } else {
                text.extend_from_slice(line);
            }
            text.extend_from_slice(if random.chance(9) { b"\r\n" } else { b"\n" });
        }
        for _ in 0..random.below(20) {
            let at = random.below(text.len());
            text[at] = random.next() as u8;
        }
        let mut counter = Counter::default();
        // A damaged stamp may be a whole number, and the first one too.
        let options = ReadOptions { clock_hz: Some(1_000_000_000), ..ReadOptions::default() };
        let stats = ftrace_text::read(&text[..], &options, &mut counter);
        let stats = stats.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(stats.events, counter.events, "seed {seed}");
        assert!(stats.events >= 15, "seed {seed}: {} events, {:?}", stats.events, stats.troubles());
    }
}

/// However the stream is cut into buffers, the events are the same.
#[test]
fn buffers_do_not_matter() {
    let text = lines().join(&b'\n');
    let whole = events(&text).expect("a trace");
    for capacity in [1, 7, 64, 100, 1000, 1 << 16] {
        let mut keeper = Keeper::default();
        let source = std::io::BufReader::with_capacity(capacity, &text[..]);
        ftrace_text::read(source, &ReadOptions::default(), &mut keeper).expect("a trace");
        assert!(whole == keeper.0, "capacity {capacity}");
    }
}
