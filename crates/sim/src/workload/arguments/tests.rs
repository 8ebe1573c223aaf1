//! The option lists of the real programs, held to ours: each option is accepted with the same meaning, or refused by its name.

use crate::workload::{hackbench, pipe, schbench, schbench2};

/// What a program is told by a line, in words; or what is wrong with it.
type Read = fn(&[String]) -> Result<String, String>;

const HACKBENCH: Read = |args| hackbench::HackbenchOptions::parse(args).map(|told| format!("{told:?}"));
const PIPE: Read = |args| pipe::PipeOptions::parse(args).map(|told| format!("{told:?}"));
const SCHBENCH: Read = |args| schbench::SchbenchOptions::parse(args).map(|told| format!("{told:?}"));
const SCHBENCH2: Read = |args| schbench2::Schbench2Options::parse(args).map(|told| format!("{told:?}"));

fn outcome(read: Read, line: &str) -> String {
    let args = line.split_whitespace().map(String::from).collect::<Vec<_>>();
    read(&args).unwrap_or_else(|problem| problem)
}

/// Program, spellings of an option (with '=' where it takes a value), and what comes of it with 7 for the value.
const REAL: &[(&str, Read, &str, &str)] = &[
    // hackbench --help of rt-tests 2.4; its table says --processes, of which --process is a beginning.
    ("rt-tests", HACKBENCH, "-f --fds =", "fds: 7,"),
    ("rt-tests", HACKBENCH, "-F --fifo", "fifo: true"),
    ("rt-tests", HACKBENCH, "-g --groups =", "groups: 7,"),
    ("rt-tests", HACKBENCH, "-h --help", "usage: hackbench"),
    ("rt-tests", HACKBENCH, "-l --loops =", "loops: 7,"),
    ("rt-tests", HACKBENCH, "-p --pipe", "pipe: true"),
    ("rt-tests", HACKBENCH, "-i --inet", " (TCP) is not modelled"),
    ("rt-tests", HACKBENCH, "-s --datasize =", "bytes: 7,"),
    ("rt-tests", HACKBENCH, "-T --threads", "threads: true"),
    ("rt-tests", HACKBENCH, "-P --process --processes", "threads: false"),
    // perf bench sched messaging -h of perf 6.1, which has --no- before each option without a value.
    ("perf", HACKBENCH, "-g --group =", "groups: 7,"),
    ("perf", HACKBENCH, "-l --nr_loops =", "loops: 7,"),
    ("perf", HACKBENCH, "-p --pipe", "pipe: true"),
    ("perf", HACKBENCH, "-t --thread", "threads: true"),
    ("perf", HACKBENCH, "--no-pipe", "pipe: false"),
    ("perf", HACKBENCH, "--no-thread", "threads: false"),
    // perf bench sched pipe -h of perf 6.1, and what later ones have more.
    ("perf", PIPE, "-l --loop =", "loops: 7,"),
    ("perf", PIPE, "-T --threaded", "threaded: true"),
    ("perf", PIPE, "--no-threaded", "threaded: false"),
    ("perf", PIPE, "-n --nonblocking", " (polls before it reads) is not modelled"),
    ("perf", PIPE, "-G --cgroups =", " (two control groups) is not modelled"),
    ("perf", PIPE, "-s --write-size =", " (longer messages) is not modelled"),
    // schbench.c of abe4f96 (2020).
    ("schbench", SCHBENCH, "-a --auto", "auto: true"),
    ("schbench", SCHBENCH, "-p --pipe =", "pipe_bytes: 7,"),
    ("schbench", SCHBENCH, "-m --message-threads =", "message_threads: 7,"),
    ("schbench", SCHBENCH, "-t --threads =", "worker_threads: 7,"),
    ("schbench", SCHBENCH, "-r --runtime =", "runtime_s: 7,"),
    ("schbench", SCHBENCH, "-R --rps =", "requests_per_s: 7"),
    ("schbench", SCHBENCH, "-s --sleeptime --message_cputime =", " sleep_us: 7,"),
    ("schbench", SCHBENCH, "-C =", "message_cpu_us: 30000,"),
    ("schbench", SCHBENCH, "-c --cputime =", " cpu_us: 7,"),
    ("schbench", SCHBENCH, "-w --warmuptime =", "warmup_s: 7,"),
    ("schbench", SCHBENCH, "-i --intervaltime =", "interval_s: 7,"),
    ("schbench", SCHBENCH, "-z --zerotime =", "zero_s: 7,"),
    ("schbench", SCHBENCH, "--help", "schbench [options]"),
    // schbench.c of 24e32b8 (2025), whose --cache_footprint means a letter -f that nothing reads.
    ("schbench2", SCHBENCH2, "-p --pipe =", "is that of the program of 2020"),
    ("schbench2", SCHBENCH2, "-m --message-threads =", "message_threads: 7,"),
    ("schbench2", SCHBENCH2, "-M --message-cpus =", "message_cpus: These("),
    ("schbench2", SCHBENCH2, "-W --worker-cpus =", "worker_cpus: These("),
    ("schbench2", SCHBENCH2, "-t --threads =", " threads: 7,"),
    ("schbench2", SCHBENCH2, "-r --runtime =", "runtime_s: 7,"),
    ("schbench2", SCHBENCH2, "-R --rps =", " rps: 7,"),
    ("schbench2", SCHBENCH2, "-A --auto-rps =", "reads /proc/stat, which is not modelled"),
    ("schbench2", SCHBENCH2, "-F =", "footprint_kb: 7,"),
    ("schbench2", SCHBENCH2, "--cache_footprint =", "is read and dropped by the real program"),
    ("schbench2", SCHBENCH2, "-C --calibrate", "calibrate: true"),
    ("schbench2", SCHBENCH2, "-L --no-locking", "no_locking: true"),
    ("schbench2", SCHBENCH2, "-n --operations =", "operations: 7,"),
    ("schbench2", SCHBENCH2, "-s --sleep_usec =", "sleep_us: 7,"),
    ("schbench2", SCHBENCH2, "-w --warmuptime =", "warmup_s: 7,"),
    ("schbench2", SCHBENCH2, "-i --intervaltime =", "interval_s: 7,"),
    ("schbench2", SCHBENCH2, "-z --zerotime =", "zero_s: 7,"),
    ("schbench2", SCHBENCH2, "-j --json =", "writes JSON, which is not modelled"),
    ("schbench2", SCHBENCH2, "-J --jobname =", "names a job in JSON, which is not modelled"),
    ("schbench2", SCHBENCH2, "--split =", "split: Some(7)"),
    ("schbench2", SCHBENCH2, "--help", "schbench2 [options]"),
];

#[test]
fn each_option_of_the_real_programs_means_the_same_or_is_refused_by_name() {
    for (program, read, option, expected) in REAL {
        // The others are given their opposite first, so that what is as if nothing were said is seen, too.
        let opposite = match *expected {
            "threads: false" | "threaded: false" => "-T",
            "pipe: false" => "-p",
            _ => "",
        };
        let takes_value = option.ends_with('=');
        let names = option.trim_end_matches('=').split_whitespace();
        for name in names {
            let lines = match (takes_value, name.starts_with("--")) {
                (false, _) => vec![format!("{opposite} {name}")],
                (true, true) => vec![format!("{opposite} {name} 7"), format!("{opposite} {name}=7")],
                (true, false) => vec![format!("{opposite} {name} 7"), format!("{opposite} {name}7")],
            };
            for line in lines {
                let told = outcome(*read, &line);
                assert!(told.contains(expected), "{program} {line}: {told}");
                let is_refused = !told.contains('{') && !told.contains('\n');
                assert!(!is_refused || told.starts_with(&format!("{name} ")), "{program} {line}: {told}");
            }
        }
    }
}

/// Lines that hackbench 2.4 or perf 6.1 take, and others that mean the same.
#[test]
fn lines_mean_what_they_do_to_the_real_programs() {
    for (read, line, same) in [
        (HACKBENCH, "-g4 -l5", "--groups 4 --loops 5"),
        (HACKBENCH, "-pg 4", "-p -g 4"),
        (HACKBENCH, "-pTl 40", "--pipe --threads --loops=40"),
        (HACKBENCH, "--gr 1 --l 5", "-g 1 -l 5"),
        (HACKBENCH, "-g1 -l5 -g +2", "-g 2 -l 5"),
        (HACKBENCH, "-T -P", ""),
        (HACKBENCH, "--pipe --no-pipe -t", "-T"),
        (HACKBENCH, "--datasize 100", ""),
        (HACKBENCH, "--", ""),
        // As the program of 2008 does; both of these run ten groups a hundred times, whatever stands there.
        (HACKBENCH, "2 process 5", "-g 2 -l 5"),
        (HACKBENCH, "-pipe 2 thread 5", "-p -g 2 -T -l 5"),
        (HACKBENCH, "3 -p", "-p -- 3"),
        (PIPE, "-l20000", "--loop=20000"),
        (PIPE, "-Tl 7", "--threaded --lo 7"),
        (PIPE, "-T --no-threaded", ""),
        (SCHBENCH2, "-CLt4", "-C -L --threads=4"),
    ] {
        let told = outcome(read, line);
        assert!(told.contains('{'), "{line}: {told}");
        assert_eq!(told, outcome(read, same), "{line}");
    }
}

/// Real programs refuse most of these. `-g -1` they take for four thousand million groups, `-g 1x` for one group, and words too many
/// they ignore.
#[test]
fn what_means_nothing_is_refused_in_one_line() {
    for (read, line, problem) in [
        (HACKBENCH, "-g=1", "-g '=1' is not a whole number from 1 to 100000"),
        (HACKBENCH, "-g -1", "-g '-1' is not a whole number"),
        (HACKBENCH, "-g 0", "-g '0' is not a whole number"),
        (HACKBENCH, "-g 1x", "-g '1x' is not a whole number"),
        (HACKBENCH, "-l 4294967297", "-l '4294967297' is not a whole number from 1 to 4294967295"),
        (HACKBENCH, "-pg", "-g needs a value"),
        (HACKBENCH, "--groups", "--groups needs a value"),
        (HACKBENCH, "--pipe=1", "--pipe takes no value"),
        (HACKBENCH, "-p=1", "unknown option '-='"),
        (HACKBENCH, "-pz", "unknown option '-z'"),
        (HACKBENCH, "--bogus 1", "unknown option '--bogus'"),
        (HACKBENCH, "--f 1", "option --f is ambiguous: --fds, --fifo"),
        (HACKBENCH, "--p", "option --p is ambiguous: --pipe, --process"),
        (HACKBENCH, "many", "GROUPS 'many' is not a whole number"),
        (HACKBENCH, "1 fibre", "'fibre' is neither process nor thread"),
        (HACKBENCH, "1 thread 0", "LOOPS '0' is not a whole number"),
        (HACKBENCH, "1 thread 5 6", "'6' is one word too many"),
        (HACKBENCH, "-s 36545", "a socket takes more than 36544 bytes in pieces"),
        (HACKBENCH, "-p -s 65537", "-s '65537' is not a whole number from 1 to 65536"),
        (HACKBENCH, "-g 100000 -f 10000", "more than a million tasks"),
        (PIPE, "-l -5", "-l '-5' is not a whole number from 1"),
        (PIPE, "-l 10 5", "'5' is one word too many"),
        (PIPE, "-t", "unknown option '-t'"),
    ] {
        let told = outcome(read, line);
        assert!(told.contains(problem) && !told.contains('\n'), "{line}: {told}");
    }
}

/// Two options of one name would hide each other; help has each name, but of those that there are only to be refused.
#[test]
fn every_option_is_declared_once_and_told() {
    use crate::workload::catalogue::WORKLOADS;
    for kind in WORKLOADS {
        let usage = kind.line.usage();
        let ends = |letter: char| !(letter.is_ascii_alphanumeric() || "-_".contains(letter));
        let told = usage.lines().filter(|line| line.trim_start().starts_with('-'));
        let names = told
            .flat_map(|line| line.split("  ").find(|part| part.starts_with('-')).unwrap_or("").split(ends));
        let names = names.filter(|name| name.starts_with('-')).collect::<Vec<_>>();
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len(), "{}: {names:?}", kind.name);
        assert!(names.iter().all(|name| kind.line.knows(name)), "{}: {names:?}", kind.name);
    }
}
