//! Comparisons of hosts: each is one observation, whatever it recorded.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::program::program;
use serde_json::Value;

fn fairlab(arguments: &[&str]) -> Output {
    program().args(arguments).output().expect("the program starts")
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-fleet-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A trace in which a task waits so often for so long, us.
fn trace(waits: u32, latency_us: u32) -> String {
    let mut text = String::new();
    for wait in 0..waits {
        let at = |us: u32| format!("{}.{us:06}", 100 + wait);
        text += &format!(
            "  a-65 [000] d..2. {}: sched_switch: prev_comm=web prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=a next_pid=65 next_prio=120\n  \
             a-65 [000] d..2. {}: sched_waking: comm=web pid=7 prio=120 target_cpu=000\n  \
             a-65 [000] d..2. {}: sched_switch: prev_comm=a prev_pid=65 prev_prio=120 prev_state=R ==> next_comm=web next_pid=7 next_prio=120\n",
            at(1),
            at(100),
            at(100 + latency_us)
        );
    }
    text
}

fn compared(arguments: &[&str]) -> Value {
    let output = fairlab(&[&["compare"], arguments, &["--metric", "p99", "--format", "json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn values(answer: &Value) -> (usize, usize) {
    let row = &answer["metrics"][0];
    let count = |name: &str| row[name].as_array().map_or(0, Vec::len);
    (count("baseline_values"), count("values"))
}

#[test]
fn traces_of_one_host_are_one_observation() {
    let folder = Folder::new("hosts");
    for (set, factor) in [("old", 1), ("new", 2)] {
        // One host recorded much more than the others, and several times.
        for (part, waits) in [("one", 50), ("two", 70)] {
            folder.write(&format!("{set}/service=web/host=h1/{part}.txt"), &trace(waits, 100 * factor));
        }
        folder.write(
            &format!("{set}/service=web/host=h2/one.txt"),
            &trace(5, 120 * factor + 10 * (factor - 1)),
        );
        folder.write(
            &format!("{set}/service=web/host=h3/one.txt"),
            &trace(5, 140 * factor + 10 * (factor - 1)),
        );
        folder.write(&format!("{set}/service=db/host=h4/one.txt"), &trace(5, 90_000));
    }
    let (old, new) = (folder.path("old"), folder.path("new"));
    let web = compared(&["--folder", &old, "--folder", &new, "--label", "service=web"]);
    assert_eq!((values(&web), &web["metrics"][0]["pairing"]), ((3, 3), &"paired".into()), "{web}");
    assert!(web["metrics"][0]["ratio"].as_f64().is_some_and(|ratio| (ratio - 2.0).abs() < 0.1), "{web}");
    assert_eq!(values(&compared(&["--folder", &old, "--folder", &new])), (4, 4));
    let gated =
        ["compare", "--folder", &old, "--folder", &new, "--label", "service=web", "--fail-on", "p99>+50%"];
    assert_eq!(fairlab(&gated).status.code(), Some(1));
    let output = fairlab(&["compare", "--folder", &old, "--folder", &new, "--label", "service=mail"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && errors.contains("service=db, service=web"), "{errors}");
}

#[test]
fn a_file_says_whose_traces_are() {
    let folder = Folder::new("file");
    for (set, factor) in [("old", 1), ("new", 2)] {
        for (name, latency) in [("a", 100), ("b", 105), ("c", 120), ("d", 140)] {
            folder.write(&format!("{set}/{name}.txt"), &trace(9, latency * factor));
        }
    }
    let (old, new) = (folder.path("old"), folder.path("new"));
    let folders = ["--folder", old.as_str(), "--folder", new.as_str()];
    assert_eq!(values(&compared(&folders)), (4, 4), "without it each trace is a run");
    for set in ["old", "new"] {
        let hosts = "\"a.txt\" = \"web1\"\n\"b.txt\" = \"web1\"\n\"c.txt\" = { host = \"web2\", service = \"web\" }\n\"d.txt\" = \"web3\"\n";
        folder.write(&format!("{set}/hosts.toml"), hosts);
    }
    assert_eq!(values(&compared(&folders)), (3, 3));
    assert_eq!(values(&compared(&[&folders[..], &["--label", "host=web2"]].concat())), (1, 1));
    for (hosts, fragment) in [
        ("\"nope.txt\" = \"web1\"", "there is no trace 'nope.txt'"),
        ("\"a.txt\" = 3", "'a.txt' has no host's name"),
        ("a.txt", "hosts.toml: "),
    ] {
        folder.write("old/hosts.toml", hosts);
        let output = fairlab(&[&["compare"], &folders[..]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), errors.trim_end().lines().count()), (Some(2), 1), "{errors}");
        assert!(errors.contains(fragment), "{errors}");
    }
}

/// Two thousand files, a thousand hosts a side, in the room that two take.
#[test]
fn memory_is_flat_over_thousands_of_hosts() {
    let folder = Folder::new("counts");
    for (set, latency) in [("old", 100), ("new", 130)] {
        let name = format!("{set}.txt");
        folder.write(&name, &trace(6, latency));
        let (input, counts) = (folder.path(&name), folder.path(&format!("{set}.json")));
        assert_eq!(fairlab(&["summary", &input, "--counts", &counts]).status.code(), Some(0));
        let text = std::fs::read_to_string(&counts).expect("counts");
        for host in 0..1_000_u32 {
            // Hosts differ a little in what they saw.
            let own = text.replace("\"observed_ns\": 5", &format!("\"observed_ns\": 5{}", host % 10));
            folder.write(&format!("{set}/h{host:04}/counts.json"), &own);
        }
    }
    let limited = format!(
        "ulimit -v 300000; exec '{}' compare --counts '{}' --counts '{}' --metric switches_per_s --fail-on 'p99>+500%' --format json",
        env!("CARGO_BIN_EXE_fairlab"),
        folder.path("old"),
        folder.path("new")
    );
    let output = Command::new("bash").args(["-c", &limited]).output().expect("bash");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{errors}");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(values(&answer), (1_000, 1_000));
    assert!(Path::new(&folder.path("old/h0999/counts.json")).exists());
}
