//! Comparisons as gates: exit statuses, reports for CI, and the action.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::program::{KEPT_RUNS, program};
use serde_json::Value;

/// v6.6 has a p99 that v6.5 has about 1.6 times of.
const COMPARED: [&str; 14] = [
    "compare",
    "schbench",
    "-m",
    "2",
    "-t",
    "6",
    "-r",
    "1",
    "--machine",
    "vm4",
    "--kernel",
    "v6.6",
    "--kernel",
    "v6.5",
];

fn fairlab(arguments: &[&str]) -> Output {
    program().args(arguments).output().expect("the program starts")
}

fn gate(rules: &[&str], more: &[&str]) -> (Option<i32>, String) {
    let rules = rules.iter().flat_map(|rule| ["--fail-on", rule]).collect::<Vec<_>>();
    let output = fairlab(&[&COMPARED[..], &rules, more].concat());
    (output.status.code(), String::from_utf8(output.stdout).expect("text"))
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-ci-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).expect("written")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_gate_passes_fails_or_says_that_it_does_not_know() {
    let (code, text) = gate(&["p99>+5%"], &[]);
    assert!(
        code == Some(1) && text.contains("\nregression: p99>+5% of v6.5: changed by +"),
        "{code:?} {text}"
    );
    let (code, text) = gate(&["p99>+500%", "throughput<-50%"], &[]);
    assert!(code == Some(0) && text.ends_with("gate: passed, exit status 0\n"), "{code:?} {text}");
    let (code, text) = gate(&["throughput<-2%"], &[]);
    assert!(code == Some(3) && text.contains("more runs on each side would decide"), "{code:?} {text}");
    // The worst decides, and an amount is a bound as well as a share.
    assert_eq!(gate(&["throughput<-2%", "p99>+1ms"], &[]).0, Some(1));
    assert_eq!(gate(&["p99>+10s"], &[]).0, Some(0));
    for rule in ["p99", "p99>", "p99>+5", "throughput<5%", "no such thing>+5%", ">+5%"] {
        let output = fairlab(&[&COMPARED[..], &["--fail-on", rule]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), errors.trim_end().lines().count()),
            (Some(2), 1),
            "{rule}: {errors}"
        );
    }
    let output = fairlab(&[&COMPARED[..], &["--fail-on", "frames>+5%"]].concat());
    assert_eq!(output.status.code(), Some(2), "a metric that no run has");
}

#[test]
fn reports_say_what_the_answer_says() {
    let folder = Folder::new("reports");
    let (xml, page, export) = (folder.path("a.xml"), folder.path("a.md"), folder.path("b.md"));
    let more = ["--junit", &xml, "--github", &page, "--export", &export, "--format", "json"];
    let (code, text) = gate(&["p99>+5%", "throughput<-2%", "throughput<-50%"], &more);
    assert_eq!(code, Some(1));
    let answer: Value = serde_json::from_str(&text).expect("JSON alone");
    assert_eq!(answer["gate"]["outcome"], "regression");
    let outcomes =
        answer["gate"]["rules"].as_array().expect("rules").iter().map(|rule| rule["outcome"].clone());
    assert_eq!(outcomes.collect::<Vec<_>>(), ["regression", "undecided", "passed"]);
    let xml = folder.text("a.xml");
    assert!(xml.contains("tests=\"3\" failures=\"1\" errors=\"1\""), "{xml}");
    assert!(
        xml.contains("<testcase name=\"p99&gt;+5%\" classname=\"fairlab.v6.5\"><failure type=\"regression\""),
        "{xml}"
    );
    for page in ["a.md", "b.md"] {
        let page = folder.text(page);
        assert!(
            page.contains("**Gate: regression**")
                && page.contains("| throughput&lt;-2% | v6.5 | undecided |"),
            "{page}"
        );
        assert!(
            page.contains("wakeup\\_latency\\_ns\\_p99") || page.contains("wakeup_latency_ns_p99"),
            "{page}"
        );
    }
}

#[test]
fn folders_and_what_was_stopped_are_judged_as_well() {
    let folder = Folder::new("folders");
    for (kernel, name) in [("v6.6", "a"), ("v6.5", "b")] {
        let run = ["run", "schbench", "-m", "2", "-t", "6", "-r", "1", "--machine", "vm4", "--seeds", "10"];
        let output = fairlab(&[&run[..], &["--kernel", kernel, "--out", &folder.path(name)]].concat());
        assert_eq!(output.status.code(), Some(0));
    }
    let (old, new) = (folder.path("a"), folder.path("b"));
    let folders = ["compare", "--folder", &old, "--folder", &new];
    assert_eq!(fairlab(&[&folders[..], &["--fail-on", "p99>+5%"]].concat()).status.code(), Some(1));
    assert_eq!(fairlab(&[&folders[..], &["--fail-on", "p99>+500%"]].concat()).status.code(), Some(0));
    assert_eq!(fairlab(&[&folders[..], &["--fail-on", "throughput<-2%"]].concat()).status.code(), Some(3));
    let counts = ["compare", "--counts", &old, "--counts", &new, "--fail-on", "p99>+5%"];
    assert_eq!(fairlab(&counts).status.code(), Some(3), "one host a side decides nothing");
}

fn action(folder: &Folder, rules: &str, undecided: &str) -> (Option<i32>, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.github/actions/fairlab/gate.sh");
    let compared = "schbench -m '2' -t 6 -r 1 --machine vm4 --kernel v6.6 --kernel v6.5";
    let output = Command::new("bash")
        .arg(script)
        .env("FAIRLAB", env!("CARGO_BIN_EXE_fairlab"))
        .env(KEPT_RUNS, "")
        .env("COMPARE", compared)
        .env("RULES", rules)
        .env("UNDECIDED", undecided)
        .env("GITHUB_STEP_SUMMARY", folder.path("summary.md"))
        .env("GITHUB_OUTPUT", folder.path("output"))
        .env("RUNNER_TEMP", &folder.0)
        .output()
        .expect("bash");
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn the_action_hands_on_rules_and_status() {
    let folder = Folder::new("action");
    std::fs::write(folder.path("summary.md"), "before\n").expect("written");
    let (code, text) = action(&folder, "p99>+5%\n\nthroughput<-50%\n", "warn");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("::error title=fairlab p99>+5%25::regression: p99>+5%25 of v6.5"), "{text}");
    let summary = folder.text("summary.md");
    assert!(
        summary.starts_with("before\n**Gate: regression**") && folder.text("output") == "status=1\n",
        "{summary}"
    );
    assert!(folder.text("fairlab-gate.xml").contains("failures=\"1\""));
    let (code, text) = action(&folder, "throughput<-2%", "warn");
    assert!(code == Some(0) && text.contains("::warning title="), "{text}");
    assert_eq!(action(&folder, "throughput<-2%", "fail").0, Some(3));
    assert_eq!(action(&folder, "throughput<-2%", "perhaps").0, Some(2));
    let words = action(&folder, "$(touch /nowhere)>+5%", "warn");
    assert_eq!(words.0, Some(2), "rules are words: {}", words.1);
}

/// The action's inputs are those that its script reads.
#[test]
fn the_action_is_whole() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.github/actions/fairlab");
    let action = std::fs::read_to_string(root.join("action.yml")).expect("the action");
    let script = std::fs::read_to_string(root.join("gate.sh")).expect("its script");
    for (input, variable) in
        [("compare", "COMPARE"), ("fail-on", "RULES"), ("undecided", "UNDECIDED"), ("fairlab", "FAIRLAB")]
    {
        assert!(action.contains(&format!("{variable}: ${{{{ inputs.{input} }}}}")), "{input}");
        assert!(action.contains(&format!("\n  {input}:\n")) && script.contains(variable), "{input}");
    }
}

#[test]
fn verification_has_a_floor() {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings/6.1-idle-2");
    let recording = recording.to_string_lossy();
    let of = |floor: &str| {
        let output = fairlab(&["verify", &recording, "--fail-under", floor]);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, text) = of("90%");
    assert!(code == Some(0) && text.contains("--fail-under 90.00 %: passed, "), "{code:?} {text}");
    let (code, text) = of("99.9999%");
    assert!(matches!(code, Some(1 | 3)) && text.contains("decisions agree"), "{code:?} {text}");
    let (code, _) = of("0");
    assert_eq!(code, Some(2));
    let output = fairlab(&["verify", &recording, "--fail-under", "90%", "--format", "json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&answer["floor"]["wanted"], &answer["floor"]["outcome"]), (&0.9.into(), &"passed".into()));
}
