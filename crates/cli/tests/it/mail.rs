//! `--layout mail`: every line of an answer fits into a mail, and nothing of the answer is lost.

use std::path::{Path, PathBuf};

use crate::program::program;
use serde_json::Value;

const COLUMNS: usize = 75;

/// Words long enough that no table with them fits.
const WORKLOAD: &str =
    "schbench -m 1 -t 8 -c 500 -s 300 -p 4 -i 30 -z 120 --machine MACHINE --duration 60ms --warmup 0";
const KERNELS: [&str; 2] = ["v6.5", "v6.6-63304558ba5d+NO_PLACE_LAG,base_slice_ns=30000000"];

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-mail-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    /// A machine in a file whose path has a blank and is wider than a line.
    fn machine(&self) -> String {
        let path =
            self.0.join("a machine whose name takes more room than there is in any line of a mail.toml");
        std::fs::write(&path, "name = \"box\"\nhz = 1000\n[topology]\ncores_per_llc = 4\n").expect("written");
        path.to_str().expect("UTF-8").to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The answer to a command for people; one that finds nothing says so with status 1, one that is undecided with 3.
fn text(words: &[&str]) -> String {
    let output = program().args(words).output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{words:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// The answer in a mail, and the answer for programs, which has each of `texts` at `places`.
fn mail(words: &[&str]) -> (String, Value) {
    let mail = text(&[words, &["--layout", "mail"]].concat());
    for line in mail.lines() {
        assert!(line.is_ascii() && line.len() <= COLUMNS, "{} columns: {line}\nin\n{mail}", line.len());
    }
    let json = text(&[words, &["--format", "json"]].concat());
    (mail, serde_json::from_str(&json).expect("JSON"))
}

/// What was broken in two is one line again.
fn unbroken(mail: &str) -> String {
    let joined = mail.replace("\n#   ", "\n").replace("'\\\n'", "").replace("\\\n", "");
    joined.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn assert_has(mail: &str, part: &str) {
    let plain = |text: &str| text.split_whitespace().collect::<String>();
    assert!(plain(&unbroken(mail)).contains(&plain(part)), "{part} is not in\n{mail}");
}

fn experiment<'a>(command: &'a str, machine: &'a str) -> Vec<&'a str> {
    let words = WORKLOAD.split(' ').map(|word| if word == "MACHINE" { machine } else { word });
    std::iter::once(command).chain(words).collect()
}

/// How often each metric's name begins a line.
fn lines_of(mail: &str, name: &str) -> usize {
    mail.lines().filter(|line| line.split_whitespace().next() == Some(name)).count()
}

#[test]
fn a_comparison_in_a_mail_has_every_row_and_verdict() {
    let folder = Folder::new("compare");
    let machine = folder.machine();
    let command = experiment("compare", &machine);
    let command = [&command[..], &["--kernel", KERNELS[0], "--kernel", KERNELS[1], "--runs", "3"]].concat();
    let (mail, json) = mail(&command);
    let wide = text(&command);
    assert!(wide.lines().any(|line| line.chars().count() > COLUMNS), "it would not fit as it is");
    for row in json["metrics"].as_array().expect("rows") {
        let name = row["name"].as_str().expect("a name");
        assert!(lines_of(&mail, name) > 0, "{name} is not in\n{mail}");
    }
    // Each cell of the wide table stands somewhere.
    let table = wide.split("\n\n").find(|part| part.starts_with("metric ")).expect("a table");
    for cell in table.lines().flat_map(|line| line.split("  ")).filter(|cell| !cell.trim().is_empty()) {
        assert_has(&mail, cell);
    }
    for part in KERNELS.iter().copied().chain([machine.rsplit('/').next().expect("a name"), "seeds 1..3"]) {
        assert_has(&mail, part);
    }
}

#[test]
fn what_a_search_and_an_attribution_find_fits_too() {
    let folder = Folder::new("search");
    let machine = folder.machine();
    let (found, json) = mail(
        &[&experiment("bisect", &machine)[..], &["--good", KERNELS[0], "--bad", KERNELS[1], "--runs", "4"]]
            .concat(),
    );
    for step in json["steps"].as_array().expect("steps") {
        assert_has(&found, step["kernel"].as_str().expect("a kernel"));
    }
    let command = experiment("compare", &machine);
    let kernels = ["--kernel", "v6.5", "--kernel", "v6.6", "--runs", "3", "--attribute"];
    let (attributed, json) = mail(&[&command[..], &kernels].concat());
    for change in json["metrics"][0]["contributions"].as_array().into_iter().flatten() {
        if change["matters"] == true {
            assert_has(&attributed, change["commit"].as_str().expect("a change"));
        }
    }
    assert_has(&attributed, "changes lie between");
}

#[test]
fn sweeps_queries_and_sums_fit_too() {
    let folder = Folder::new("sweep");
    let sweep = folder.0.join("s.toml");
    let words = "schbench -m 1 -t {threads} -c 500 -s 300 -p 4 -i 30 -z 120";
    let plan = format!(
        "kernels = ['{}', '{}']\nmachines = ['vm4']\nworkloads = ['{words}']\nseeds = 2\nduration_ms = 60\n\
         warmup_ms = 0\noptions = {{ threads = [2, 6] }}\n",
        KERNELS[0], KERNELS[1]
    );
    std::fs::write(&sweep, plan).expect("written");
    let (sweep, done) = (sweep.to_str().expect("UTF-8"), folder.0.join("s"));
    let done = done.to_str().expect("UTF-8");
    let metrics = ["--metric", "wakeup_latency_ns_p99.5", "--metric", "involuntary_switches_per_s"];
    let by = ["--by", "kernel,machine,workload,threads"];
    let asked: [&[&str]; 2] = [&["sweep", sweep], &[&["query", done][..], &by].concat()];
    for words in asked {
        let (mail, json) = mail(&[words, &metrics].concat());
        for row in json["rows"].as_array().expect("rows") {
            for value in row["group"].as_object().expect("a group").values() {
                assert_has(&mail, value.as_str().expect("text"));
            }
            assert!(lines_of(&mail, "[1]") > 0, "long names stand below: {mail}");
        }
        for column in ["cells", "mean", "deviation", "median", "min", "max"] {
            assert_has(&mail, column);
        }
    }
    let run = folder.0.join("a run");
    let run = run.to_str().expect("UTF-8");
    let made = experiment("run", "vm4");
    text(&[&made[..], &["--kernel", KERNELS[1], "--out", run]].concat());
    let (sums, json) = mail(&["merge", run]);
    for name in json["groups"][0]["metrics"].as_object().expect("metrics").keys() {
        assert!(lines_of(&sums, name) == 1, "{name} is not in\n{sums}");
    }
    assert_has(&sums, KERNELS[1]);
    assert!(Path::new(run).join("spec.json").is_file());
}
