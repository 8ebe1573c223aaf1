//! `fairlab watch` as its users meet it: a catalogue of their own, what is new since the last time, reports, refusals.

use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use crate::program::program;
use crate::schema;

fn fairlab(arguments: &[&str]) -> Output {
    program().args(arguments).output().expect("the program starts")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A folder of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-watch-{}-{name}", std::process::id()));
        std::fs::create_dir_all(path.join("catalogue")).expect("a folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_string()
    }

    fn case(&self, name: &str, workload: &str, metrics: &str) {
        let text = format!(
            "title = 'workers that outlast a slice'\nsource = 'a test'\nmachine = 'laptop8'\nworkload = '{workload}'\n\
             duration_ms = 200\nmetrics = [{metrics}]\n"
        );
        std::fs::write(self.0.join("catalogue").join(name), text).expect("written");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const SCHBENCH: &str = "schbench -m 1 -t 10 -c 2000 -s 500";

#[test]
fn a_regression_is_told_once_and_its_range_goes_on_where_it_ended() {
    let folder = Folder::new("twice");
    folder.case("schbench.toml", SCHBENCH, "'switches_per_work'");
    folder.case("broken.toml", SCHBENCH, "");
    let (catalogue, out) = (folder.path("catalogue"), folder.path("out"));
    let watch = ["watch", "--over", "v6.11..v6.12", "--quick", &catalogue, "--out", &out, "--format", "json"];
    let first = fairlab(&watch);
    assert_eq!(first.status.code(), Some(1), "{}", String::from_utf8_lossy(&first.stderr));
    let answer = serde_json::from_slice::<Value>(&first.stdout).expect("JSON");
    schema::holds(&answer, "watch-1");
    let is_delayed_dequeue = |finding: &&Value| {
        finding["steps"][0]["commit"] == "152e11f6df29"
            && finding["verdict"] == "worse"
            && finding["confirmed"] == true
    };
    let findings = answer["findings"].as_array().expect("findings");
    assert!(findings.iter().any(|finding| is_delayed_dequeue(&finding)), "{findings:#?}");
    assert!(answer["skipped"][0]["why"].as_str().is_some_and(|why| why.contains("no metric")), "{answer:#}");
    let again = fairlab(&watch);
    assert_eq!(again.status.code(), Some(0), "it was told before");
    assert_eq!(serde_json::from_slice::<Value>(&again.stdout).expect("JSON")["findings"], answer["findings"]);
    let report = fairlab(&["watch", "report", &out, "--format", "md"]);
    assert!(
        text(&report).contains("| 152e11f6df29 | v6.12 | schbench | switches_per_work |"),
        "{}",
        text(&report)
    );
    let reports = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/reports");
    let known = text(&fairlab(&["watch", "report", &out, "--known", reports]));
    let of = |report: &str| known.lines().find(|line| line.contains(report)).unwrap_or_default().to_string();
    assert!(of("tbench-delay-dequeue").contains("schbench switches_per_work"), "{known}");
    assert!(of("quota-burst").contains("not in the range"), "{known}");
    let follow = fairlab(&["watch", "--follow", "--over", "v6.12", "--quick", &catalogue, "--out", &out]);
    assert_eq!(
        (follow.status.code(), text(&follow).contains("nothing new")),
        (Some(0), true),
        "{}",
        text(&follow)
    );
}

#[test]
fn a_list_is_watched_as_it_stands_and_goes_on_behind_its_end() {
    let folder = Folder::new("listed");
    folder.case("schbench.toml", SCHBENCH, "'switches_per_work'");
    let (catalogue, out) = (folder.path("catalogue"), folder.path("out"));
    let watched = |over: &str, more: &[&str]| {
        let line = ["watch", "--over", over, "--quick", &catalogue, "--out", &out, "--format", "json"];
        let output = fairlab(&[&line, more].concat());
        let answer = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default();
        (output.status.code(), answer, text(&output))
    };
    let (code, answer, _) = watched("v6.12,v6.11", &[]);
    schema::holds(&answer, "watch-1");
    let finding = &answer["findings"][0];
    let told = (code, &finding["verdict"], &finding["steps"][0]["commit"]);
    assert_eq!(told, (Some(0), &Value::from("better"), &Value::from("v6.11")), "{answer:#}");
    let (_, answer, _) = watched("v6.12,v6.11,v6.10", &["--follow"]);
    let names = answer["kernels"].as_array().expect("kernels").iter().map(|kernel| &kernel["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["v6.11", "v6.10"]);
    let (code, _, said) = watched("v6.12,v6.11,v6.10", &["--follow"]);
    assert_eq!((code, said.as_str()), (Some(0), "nothing new: nothing is listed behind v6.10\n"));
}

#[test]
fn a_catalogue_is_listed() {
    let folder = Folder::new("list");
    folder.case("one.toml", SCHBENCH, "'p99'");
    let catalogue = folder.path("catalogue");
    let listed = fairlab(&["watch", "list", &catalogue]);
    assert!(
        text(&listed).contains("one") && text(&listed).contains("wakeup_latency_ns_p99"),
        "{}",
        text(&listed)
    );
    let json = fairlab(&["watch", "list", &catalogue, "--format", "json"]);
    schema::holds(&serde_json::from_slice::<Value>(&json.stdout).expect("JSON"), "catalogue-1");
    assert!(text(&fairlab(&["watch", "keys"])).contains("metrics ="));
}

#[test]
fn what_cannot_be_watched_is_refused_in_one_line() {
    let folder = Folder::new("refused");
    folder.case("one.toml", SCHBENCH, "'p99'");
    let (catalogue, empty) = (folder.path("catalogue"), folder.path("empty"));
    std::fs::create_dir_all(&empty).expect("a folder");
    for (words, fragment) in [
        (&["watch", "--over", "v6.6", &catalogue][..], "no range"),
        (&["watch", "--over", "v6.6..v6.6", &catalogue], "no change"),
        (&["watch", "--over", "v6.6,host", &catalogue], "host is a kernel as it is"),
        (&["watch", "--over", "v6.5..v6.6", &empty], "no case"),
        (&["watch", "--over", "v6.5..v6.6", "/nonexistent"], "/nonexistent"),
        (&["watch", "--over", "v6.5..v6.6", &catalogue, "--runs-max", "2"], "2 runs"),
        (&["watch", "--over", "v6.6", "--follow", "--out", &empty, &catalogue], "--out has none"),
        (&["watch", "report", &empty], "there is none"),
    ] {
        let output = fairlab(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{words:?}: {errors}");
        assert!(errors.lines().count() == 1 && errors.contains(fragment), "{words:?}: {errors}");
    }
}
