//! Faults at random moments: processes killed, disks full, bits flipped. After each there is the whole right answer or one clear error,
//! nothing half-written, and the next run goes on.
//!
//! Moments and bits are drawn from a seed, which a failure tells: `FAIRLAB_FAULT_SEED=7 cargo test -p fairlab-cli --test it faults`.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::limit;
use crate::program::program;

/// How long each test goes on injecting at least: until a fault has come through, too, however busy the machine is.
const BUDGET: Duration = Duration::from_secs(3);

/// A generator of moments and bits (SplitMix64).
struct Chance(u64);

impl Chance {
    fn new(test: u64) -> Chance {
        let seed = std::env::var("FAIRLAB_FAULT_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| {
            std::time::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64 % 1_000_000)
        });
        println!("FAIRLAB_FAULT_SEED={seed}");
        Chance(seed ^ test << 32)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit.max(1)
    }

    fn flip_bit(&mut self, bytes: &mut [u8]) -> String {
        let (at, bit) = (self.below(bytes.len() as u64) as usize, self.below(8));
        bytes[at] ^= 1 << bit;
        format!("byte {at}, bit {bit}")
    }
}

/// A folder of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-faults-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_string()
    }

    fn sweep(&self) -> String {
        let text = "kernels = ['v6.5', 'v6.6']\nmachines = ['vm4']\nworkloads = ['schbench -m 1 -t {threads} -c 500 -s 300']\n\
                    seeds = 8\nduration_ms = 200\nwarmup_ms = 0\noptions = { threads = [2, 6] }\n";
        fs::write(self.at("sweep.toml"), text).expect("written");
        self.at("sweep.toml")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>();
    names.sort();
    names
}

fn testdata(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
    path.to_str().expect("a path in UTF-8").to_string()
}

fn piped(arguments: &[&str]) -> Command {
    let mut command = program();
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn fairlab(arguments: &[&str]) -> Output {
    piped(arguments).output().expect("the program starts")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn whole(arguments: &[&str]) -> Vec<u8> {
    let output = fairlab(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", errors(&output));
    output.stdout
}

/// That a command refused in one clear line, or gave an answer; a panic or a signal is neither.
fn assert_refused_or_answered(output: &Output, context: &str) -> bool {
    let errors = errors(output);
    assert!(!errors.contains("panicked"), "{context}: {errors}");
    match output.status.code() {
        Some(0) => true,
        Some(2) => {
            let told = errors.lines().filter(|line| line.starts_with("fairlab: ")).count();
            assert!(
                told >= 1 && told == errors.lines().count() && output.stdout.is_empty(),
                "{context}: {errors}"
            );
            false
        }
        code => panic!("{context}: {code:?}: {errors}"),
    }
}

/// Starts a command and kills it after a random part of `longest`; whether it was still there.
fn killed(arguments: &[&str], chance: &mut Chance, longest: Duration) -> bool {
    let mut child: Child = piped(arguments).process_group(0).spawn().expect("the program starts");
    std::thread::sleep(Duration::from_micros(chance.below(longest.as_micros() as u64)));
    child.kill().expect("killed");
    limit::ended(&mut child).signal() == Some(9)
}

fn time_of(arguments: &[&str]) -> Duration {
    let begin = Instant::now();
    whole(arguments);
    begin.elapsed()
}

#[test]
fn a_killed_sweep_goes_on_and_ends_as_if_it_had_not_been() {
    let (folder, mut chance) = (Folder::new("sweep"), Chance::new(1));
    let file = folder.sweep();
    let (right, torn) = (folder.at("right"), folder.at("torn"));
    let longest = time_of(&["sweep", &file, "--out", &right, "--jobs", "2"]);
    let begin = Instant::now();
    let mut kills = 0;
    while begin.elapsed() < BUDGET / 2 || kills == 0 {
        let _ = fs::remove_dir_all(&torn);
        let sweep = ["sweep", &file, "--out", &torn, "--jobs", "2"];
        for _ in 0..3 {
            kills += usize::from(killed(&sweep, &mut chance, longest));
        }
        whole(&sweep);
        for file in ["counts.json", "spec.json"] {
            let of = |folder: &str| fs::read(Path::new(folder).join(file)).expect("a file");
            assert_eq!(of(&right), of(&torn), "{file}");
        }
        // Nothing of the killed ones lies about.
        assert_eq!(names(Path::new(&torn)), names(Path::new(&right)));
    }
}

#[test]
fn a_killed_run_leaves_no_folder_and_the_next_removes_what_lies_about() {
    let (folder, mut chance) = (Folder::new("run"), Chance::new(2));
    let out = folder.at("out");
    let run = [
        "run",
        "--kernel",
        "v6.6",
        "--seeds",
        "6",
        "--duration",
        "200ms",
        "--warmup",
        "0",
        "--out",
        &out,
        "hackbench",
        "-g",
        "1",
        "-f",
        "4",
        "-l",
        "200",
    ];
    let longest = time_of(&run);
    let answer = fs::read(Path::new(&out).join("runs.json")).expect("runs").len();
    let begin = Instant::now();
    let mut kills = 0;
    while begin.elapsed() < BUDGET / 2 || kills == 0 {
        let _ = fs::remove_dir_all(&out);
        if killed(&run, &mut chance, longest) {
            kills += 1;
            // The folder is whole or not there.
            let there = fs::read(Path::new(&out).join("runs.json")).map(|runs| runs.len());
            assert!(
                there.is_err() && !Path::new(&out).exists()
                    || there.is_ok_and(|length| length.abs_diff(answer) < 200)
            );
        }
        let _ = fs::remove_dir_all(&out);
        whole(&run);
        assert_eq!(names(&folder.0), ["out"]);
    }
}

#[test]
fn a_killed_conversion_leaves_the_file_as_it_was() {
    let (folder, mut chance) = (Folder::new("convert"), Chance::new(3));
    let (input, output) = (testdata("perf-hackbench.data"), folder.at("out.dat"));
    let convert = ["convert", &input, &output];
    let longest = time_of(&convert);
    let right = fs::read(&output).expect("converted");
    let begin = Instant::now();
    let mut kills = 0;
    while begin.elapsed() < BUDGET / 2 || kills == 0 {
        fs::write(&output, "as it was").expect("written");
        kills += usize::from(killed(&convert, &mut chance, longest));
        let there = fs::read(&output).expect("there");
        assert!(there == b"as it was" || there == right, "{} bytes", there.len());
        whole(&convert);
        assert!(fs::read(&output).expect("there") == right);
        assert_eq!(names(&folder.0), ["out.dat"]);
    }
}

#[test]
fn a_killed_comparison_leaves_no_export() {
    let (folder, mut chance) = (Folder::new("compare"), Chance::new(4));
    let (json, csv) = (folder.at("out.json"), folder.at("out.csv"));
    let compare = [
        "compare",
        "--kernel",
        "v6.5",
        "--kernel",
        "v6.6",
        "--runs",
        "4",
        "--duration",
        "100ms",
        "--warmup",
        "0",
        "--export",
        &json,
        "--export",
        &csv,
        "hackbench",
        "-g",
        "1",
        "-f",
        "4",
        "-l",
        "100",
    ];
    let longest = time_of(&compare);
    let right = fs::read(&csv).expect("exported");
    let begin = Instant::now();
    let mut kills = 0;
    while begin.elapsed() < BUDGET / 2 || kills == 0 {
        for file in [&json, &csv] {
            let _ = fs::remove_file(file);
        }
        kills += usize::from(killed(&compare, &mut chance, longest));
        assert!(fs::read(&csv).map_or(true, |there| there == right));
        whole(&compare);
        assert_eq!(fs::read(&csv).expect("exported"), right);
        assert_eq!(names(&folder.0), ["out.csv", "out.json"]);
    }
}

/// Runs the program where no file may grow beyond so many bytes, as on a disk that is full. (The signal is ignored, so that it is an
/// error.)
fn with_little_room(bytes: u64, arguments: &[&str]) -> Output {
    let script = "trap '' XFSZ; exec prlimit --fsize=\"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, &bytes.to_string(), env!("CARGO_BIN_EXE_fairlab")]).args(arguments);
    command.stdin(Stdio::null()).output().expect("sh and prlimit")
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing_half_written() {
    let (folder, mut chance) = (Folder::new("full"), Chance::new(5));
    let file = folder.sweep();
    let input = testdata("perf-hackbench.data");
    let [dat, json, csv, out, swept] =
        ["out.dat", "out.json", "out.csv", "out", "swept"].map(|name| folder.at(name));
    let hackbench = "hackbench -g 1 -f 4 -l 50";
    let commands = [
        format!("convert {input} {dat}"),
        format!(
            "compare --kernel v6.5 --kernel v6.6 --runs 2 --duration 50ms --warmup 0 --export {json} --export {csv} {hackbench}"
        ),
        format!("run --kernel v6.6 --seeds 2 --duration 50ms --warmup 0 --out {out} {hackbench}"),
        format!("sweep {file} --out {swept} --jobs 2"),
    ];
    let begin = Instant::now();
    let mut refused = 0;
    while begin.elapsed() < BUDGET || refused == 0 {
        for command in &commands {
            let command = &command.split(' ').collect::<Vec<_>>();
            let limit = 1 << chance.below(20);
            let limit = limit + chance.below(limit);
            let context = format!("{limit} bytes: {command:?}");
            let output = with_little_room(limit, command);
            let done = assert_refused_or_answered(&output, &context);
            refused += usize::from(!done);
            assert!(done || errors(&output).contains("File too large"), "{context}: {}", errors(&output));
            let left = names(&folder.0);
            let allowed = |name: &String| ["sweep.toml", "swept"].contains(&name.as_str()) || done;
            assert!(left.iter().all(allowed), "{context}: {left:?}");
            // The next run goes on.
            if done {
                let _ = fs::remove_dir_all(&out);
            }
            whole(command);
            for made in [&dat, &json, &csv] {
                let _ = fs::remove_file(made);
            }
            for made in [&out, &swept] {
                let _ = fs::remove_dir_all(made);
            }
        }
    }
    // Where every write fails at once.
    for command in [
        vec!["convert", "--to", "text", &input, "/dev/full"],
        vec!["run", "--kernel", "v6.6", "--trace", "/dev/full", "hackbench", "-l", "5"],
    ] {
        let output = fairlab(&command);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {}", errors(&output));
    }
}

#[test]
fn flipped_bits_in_a_journal_are_refused_or_done_again() {
    let (folder, mut chance) = (Folder::new("flipped"), Chance::new(6));
    let (file, out) = (folder.sweep(), folder.at("swept"));
    let sweep = ["sweep", &file, "--out", &out];
    whole(&sweep);
    let path = Path::new(&out).join("cells.jsonl");
    let (journal, counts) =
        (fs::read(&path).expect("a journal"), fs::read(Path::new(&out).join("counts.json")).expect("counts"));
    let query = ["query", &out, "--by", "kernel,threads", "--metric", "switches_per_s"];
    let right = whole(&query);
    let begin = Instant::now();
    let mut refused = 0;
    while begin.elapsed() < BUDGET / 2 || refused == 0 {
        let mut flipped = journal.clone();
        let context = chance.flip_bit(&mut flipped);
        fs::write(&path, &flipped).expect("written");
        let answer = fairlab(&query);
        if assert_refused_or_answered(&answer, &context) {
            // Only the last line may be left out, as that of a sweep under way.
            assert!(answer.stdout != right, "{context}");
        }
        let output = fairlab(&sweep);
        if assert_refused_or_answered(&output, &context) {
            assert!(errors(&output).contains("dropped and done again"), "{context}: {}", errors(&output));
            assert_eq!(fs::read(Path::new(&out).join("counts.json")).expect("counts"), counts, "{context}");
            assert_eq!(whole(&query), right, "{context}");
        } else {
            refused += 1;
            assert!(errors(&output).contains(": line "), "{context}: {}", errors(&output));
        }
    }
}

#[test]
fn flipped_bits_in_traces_counts_and_folders_end_no_command_without_a_word() {
    let (folder, mut chance) = (Folder::new("bits"), Chance::new(7));
    let out = folder.at("out");
    whole(&[
        "run",
        "--kernel",
        "v6.5",
        "--kernel",
        "v6.6",
        "--seeds",
        "2",
        "--duration",
        "50ms",
        "--warmup",
        "0",
        "--out",
        &out,
        "hackbench",
        "-g",
        "1",
        "-l",
        "50",
    ]);
    let merged = folder.at("counts.json");
    whole(&["merge", "--out", &merged, &out]);
    let traces = ["hostile/names.dat", "perf-lost.data"].map(|name| {
        let copy = folder.at(Path::new(name).file_name().and_then(|name| name.to_str()).expect("a name"));
        fs::copy(testdata(name), &copy).expect("a copy");
        copy
    });
    let runs = format!("{out}/runs.json");
    let converted = folder.at("converted.txt");
    let begin = Instant::now();
    while begin.elapsed() < BUDGET {
        for (file, commands) in [
            (&traces[0], vec![vec!["latency", &traces[0]], vec!["convert", &traces[0], &converted]]),
            (&traces[1], vec![vec!["summary", &traces[1]], vec!["timehist", &traces[1]]]),
            (&merged, vec![vec!["merge", &merged]]),
            (&runs, vec![vec!["compare", "--folder", &out]]),
        ] {
            let whole = fs::read(file).expect("bytes");
            let mut flipped = whole.clone();
            let context = format!("{file}: {}", chance.flip_bit(&mut flipped));
            fs::write(file, &flipped).expect("written");
            for command in commands {
                // A timehist has begun to answer when it meets the damage.
                let output = fairlab(&command);
                let told = errors(&output);
                assert!(
                    matches!(output.status.code(), Some(0 | 2)) && !told.contains("panicked"),
                    "{context}: {command:?}: {told}"
                );
                assert!(
                    output.status.success() || told.starts_with("fairlab: "),
                    "{context}: {command:?}: {told}"
                );
            }
            fs::write(file, &whole).expect("written");
            let _ = fs::remove_file(&converted);
        }
    }
}

#[test]
fn children_die_with_a_killed_parent() {
    let folder = Folder::new("children");
    let mark = folder.at("mark");
    let mut live = piped(&[
        "live",
        "--duration",
        "60s",
        "--report",
        &mark,
        "--",
        "hackbench",
        "-g",
        "2",
        "-l",
        "100000000",
    ])
    .spawn()
    .expect("starts");
    let of = |mark: &str| {
        let entries = fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path());
        let is_marked = |path: &PathBuf| {
            fs::read(path.join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark))
        };
        entries.filter(is_marked).count()
    };
    let begin = Instant::now();
    while of(&mark) < 10 {
        assert!(begin.elapsed() < Duration::from_secs(30), "its tasks do not come");
        std::thread::sleep(Duration::from_millis(5));
    }
    live.kill().and_then(|()| live.wait()).expect("killed");
    while of(&mark) > 0 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{} tasks live on", of(&mark));
        std::thread::sleep(Duration::from_millis(5));
    }
}
