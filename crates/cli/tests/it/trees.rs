//! `fairlab bisect` and `fairlab try` on a repository of a kernel: Debian's 6.1 as its first commit, then a few by us. Fetches Debian's
//! sources once, and fails where it cannot.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::program::program;
use crate::schema;

fn fairlab(words: &[&str]) -> Output {
    program().args(words).output().expect("the program starts")
}

/// A repository without a work tree, removed when this is dropped, with what was built of it.
struct Repository {
    folder: PathBuf,
    sources: PathBuf,
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
        let name = self.folder.display().to_string();
        for entry in std::fs::read_dir(cache().join("kernel-trees")).into_iter().flatten().flatten() {
            let about = std::fs::read_to_string(entry.path().join("about")).unwrap_or_default();
            if about.contains(&name) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

fn cache() -> PathBuf {
    let home = || Path::new(&std::env::var_os("HOME").expect("a home")).join(".cache");
    std::env::var_os("XDG_CACHE_HOME")
        .filter(|place| !place.is_empty())
        .map_or_else(home, PathBuf::from)
        .join("fairlab")
}

const FAIR: &str = "kernel/sched/fair.c";
const SIGNATURE: &str = "wakeup_preempt_entity(struct sched_entity *curr, struct sched_entity *se)\n{";

impl Repository {
    fn new() -> Repository {
        let built = fairlab(&["kernels", "build", "debian:6.1"]);
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let folder = std::env::temp_dir().join(format!("fairlab-tree-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let repository = Repository { folder, sources: cache().join("kernel-sources/debian-6.1") };
        repository.git(&["init", "-q", "-b", "main"], "");
        for (name, value) in [
            ("core.compression", "0"),
            ("user.name", "a"),
            ("user.email", "a@example.org"),
            ("commit.gpgsign", "false"),
        ] {
            repository.git(&["config", name, value], "");
        }
        repository.git(&["add", "-f", "-A", "--", ".", ":!arch/*", ":!drivers/*.h"], "");
        repository.git(&["add", "-f", "-A", "--", "arch/x86", "arch/*Kconfig*"], "");
        repository.git(&["commit", "-q", "-m", "Linux 6.1"], "");
        repository
    }

    /// What git says, which has Debian's sources for a work tree and writes nothing there.
    fn git(&self, words: &[&str], input: &str) -> String {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(self.folder.join(".git")).arg("--work-tree").arg(&self.sources);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.current_dir(&self.sources).env("GIT_AUTHOR_DATE", "2022-12-11T12:00:00Z");
        let mut child = command.spawn().expect("git");
        child.stdin.take().expect("its input").write_all(input.as_bytes()).expect("written");
        let output = child.wait_with_output().expect("git ends");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_string()
    }

    /// Commits a change of a file. Gives the commit.
    fn change(&self, file: &str, subject: &str, change: impl FnOnce(&str) -> String) -> String {
        let before = self.git(&["show", &format!("HEAD:{file}")], "") + "\n";
        let after = change(&before);
        assert_ne!(before, after, "{subject}");
        let blob = self.git(&["hash-object", "-w", "--stdin"], &after);
        self.git(&["update-index", "--cacheinfo", &format!("100644,{blob},{file}")], "");
        self.git(&["commit", "-q", "-m", subject], "");
        self.git(&["rev-parse", "HEAD"], "")
    }

    /// Moves to a commit without touching a file.
    fn go_to(&self, commit: &str) {
        self.git(&["update-ref", "HEAD", commit], "");
        self.git(&["read-tree", commit], "");
    }

    fn kernel(&self, commit: &str) -> String {
        format!("src:{}@{commit}", self.folder.display())
    }
}

fn renamed(text: &str) -> String {
    text.replace(SIGNATURE, &SIGNATURE.replace("*se)", "*other)"))
}

fn mended(text: &str) -> String {
    text.replace(&SIGNATURE.replace("*se)", "*other)"), SIGNATURE)
}

/// No task that wakes takes the CPU from one that runs.
fn without_preemption(text: &str) -> String {
    let at = text.find(SIGNATURE).expect("the function");
    let (before, rest) = text.split_at(at);
    before.to_string() + &rest.replacen("return 1;", "return 0;", 1)
}

const WORKLOAD: &str = "schbench -m 2 -t 12 -c 20000 -s 1000";
const PLACE: &str = "--machine layout:1x1x4x2 --duration 300ms --format json";

fn bisected(good: &str, bad: &str) -> (Option<i32>, Value, String) {
    let line = format!("bisect {WORKLOAD} {PLACE} --metric p50 --good {good} --bad {bad}");
    let output = fairlab(&line.split(' ').collect::<Vec<_>>());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    if answer != Value::Null {
        schema::holds(&answer, "bisect-1");
    }
    (output.status.code(), answer, errors)
}

/// Objects of one repository's commits are compiled once for both.
#[test]
fn commits_of_a_repository_are_found_tried_and_watched() {
    let repository = Repository::new();
    let first = repository.git(&["rev-parse", "HEAD"], "");
    a_commit_is_found_and_a_patch_is_tried(&repository, &first);
    repository.go_to(&first);
    a_branch_is_watched_as_it_grows(&repository, &first);
}

fn a_commit_is_found_and_a_patch_is_tried(repository: &Repository, first: &str) {
    let neutral = repository.change(FAIR, "sched/fair: A comment", |text| format!("{text}/* a comment */\n"));
    let broken = repository.change(FAIR, "sched/fair: Rename an argument", renamed);
    let mended_one = repository.change(FAIR, "sched/fair: Mend it", mended);
    let culprit = repository.change(FAIR, "sched/fair: Let the current task run on", without_preemption);
    let kernel = |commit: &str| repository.kernel(commit);

    let (code, found, errors) = bisected(&kernel(first), &kernel(&culprit));
    assert_eq!(code, Some(0), "{errors}{found:#}");
    let bad = &found["first_bad"];
    assert_eq!((&bad["commit"], &bad["dated_by"]), (&Value::from(&culprit[..12]), &Value::from("author")));
    assert_eq!(
        (bad["subject"].as_str(), bad["date"].as_str()),
        (Some("sched/fair: Let the current task run on"), Some("2022-12-11"))
    );
    assert_eq!(bad["candidates"].as_array().map(Vec::len), Some(1));
    assert!(bad["ratio"].as_f64().is_some_and(|ratio| ratio > 10.0), "{bad}");
    assert_eq!(
        (&found["skipped"][0]["commit"], &found["changes"]),
        (&Value::from(&broken[..12]), &Value::from(4))
    );
    let why = found["skipped"][0]["why"].as_str().expect("a reason");
    assert!(why.contains("kernel/sched/fair.c:") && why.contains("error:"), "{why}");

    // The commit that broke the build and the one that mended it cannot be told apart: both may have done it.
    repository.go_to(&broken);
    let both = repository.change(FAIR, "sched/fair: Mend it, and let the current task run on", |text| {
        without_preemption(&mended(text))
    });
    let (_, found, errors) = bisected(&kernel(&neutral), &kernel(&both));
    let candidates = found["crossings"][0]["candidates"].as_array().expect(&errors).iter();
    let candidates = candidates.filter_map(|one| one["commit"].as_str()).collect::<Vec<_>>();
    assert_eq!(candidates, [&broken[..12], &both[..12]], "{found:#}");

    ends_that_are_no_way(repository, first, &mended_one, &both);
    tried(repository, &mended_one, &culprit, &neutral, &broken);
}

/// A case on which it shows whether woken tasks preempt.
const CASE: &str = "title = 'workers that others wake'\nsource = 'a test'\nmachine = 'layout:1x1x4x2'\nduration_ms = 300\n\
                    warmup_ms = 0\nworkload = 'schbench -m 2 -t 12 -c 20000 -s 1000'\nmetrics = ['p50']\n";

/// A branch is watched as it grows: what does not build is left out with its line, what changes something is named, by the trees' own code.
/// Their models know nothing of it.
fn a_branch_is_watched_as_it_grows(repository: &Repository, first: &str) {
    let neutral = repository.change(FAIR, "sched/fair: A comment", |text| format!("{text}/* a comment */\n"));
    let broken = repository.change(FAIR, "sched/fair: Rename an argument", renamed);
    repository.change(FAIR, "sched/fair: Mend it", mended);
    let halting = format!("{SIGNATURE}\n\tBUG();");
    let halts =
        repository.change(FAIR, "sched/fair: Halt at a wakeup", |text| text.replace(SIGNATURE, &halting));
    let mended = repository.change(FAIR, "sched/fair: Go on", |text| text.replace(&halting, SIGNATURE));
    let catalogue = repository.folder.join("catalogue");
    std::fs::create_dir_all(&catalogue).expect("a folder");
    std::fs::write(catalogue.join("workers.toml"), CASE).expect("written");
    let path = |name: &str| repository.folder.join(name).display().to_string();
    let (catalogue, own, model) = (path("catalogue"), path("own"), path("model"));
    let watched = |over: &str, more: &[&str]| {
        let line = [&["watch", "--quick", "--format", "json", "--over", over, &catalogue], more].concat();
        let output = fairlab(&line);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let answer: Value = serde_json::from_slice(&output.stdout).expect(&errors);
        schema::holds(&answer, "watch-1");
        (output.status.code(), answer)
    };
    let range = format!("{}..{mended}", repository.kernel(first));
    let (code, answer) = watched(&range, &["--out", &own]);
    assert_eq!((code, &answer["findings"]), (Some(0), &serde_json::json!([])), "{answer:#}");
    let names = answer["kernels"].as_array().expect("kernels").iter().map(|kernel| kernel["name"].is_null());
    assert_eq!(names.collect::<Vec<_>>(), [false, false, true, false, false, false]);
    for (number, commit, why) in [(0, &broken, "kernel/sched/fair.c:"), (1, &halts, "BUG")] {
        let left_out = &answer["skipped"][number];
        let is_told =
            |key: &str, words: &str| left_out[key].as_str().is_some_and(|text| text.contains(words));
        assert!(is_told("case", &commit[..12]) && is_told("why", why), "{left_out}");
    }
    let line = &answer["cases"][0]["line"];
    assert_eq!(*line, serde_json::json!([0, 0, null, 0, null, 0]), "{neutral} is a comment");

    let culprit = repository.change(FAIR, "sched/fair: Let the current task run on", without_preemption);
    let follow = |out: &str, more: &[&str]| {
        watched(&repository.kernel("main"), &[&["--follow", "--out", out], more].concat())
    };
    let (code, answer) = follow(&own, &[]);
    let finding = &answer["findings"][0];
    assert_eq!((code, &finding["confirmed"]), (Some(1), &Value::Bool(true)), "{answer:#}");
    assert_eq!(finding["steps"][0]["commit"], culprit[..12], "{finding:#}");
    assert!(finding["fresh"]["ratio"].as_f64().is_some_and(|ratio| ratio > 10.0), "{finding:#}");

    // The models of both trees are one.
    let range = format!("{}..{culprit}", repository.kernel(&mended));
    let (code, modelled) = watched(&range, &["--modelled", "--out", &model]);
    assert_eq!((code, modelled["cases"][0]["classes"].as_array().map(Vec::len)), (Some(0), Some(1)));
    assert!(
        modelled["kernels"][1]["name"].as_str().is_some_and(|name| name.starts_with("v6.1")),
        "{modelled:#}"
    );
    let beside = |one: &str, other: &str| {
        let output = fairlab(&["watch", "report", one, "--beside", other]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(beside(&own, &own).contains("1 of 1 changes that were asked for there are confirmed there"));
    assert!(beside(&own, &model).contains("not seen there"), "{}", beside(&own, &model));
    let (code, _) = watched(&format!("{},v6.1", repository.kernel(&mended)), &[]);
    assert!(code.is_some_and(|code| code < 2), "own code and the model in one list");
}

fn ends_that_are_no_way(repository: &Repository, first: &str, mended: &str, both: &str) {
    let kernel = |commit: &str| repository.kernel(commit);
    repository.go_to(first);
    let elsewhere = repository.change("README", "README: A line", |text| format!("{text}a line\n"));
    for (good, bad, told) in
        [(first, first, "are one commit"), (first, &elsewhere, "none of the 1 commits between")]
    {
        let (code, found, _) = bisected(&kernel(good), &kernel(bad));
        let notice = found["notices"][0].as_str().unwrap_or_default();
        assert!(code == Some(1) && notice.contains(told), "{found:#}");
    }
    for (good, bad, told) in [
        (kernel(mended), kernel(both), "is an ancestor of the other; both grew out of"),
        (kernel(first), "v6.1".to_string(), "are not two of one history"),
        (kernel(first), kernel("no-such"), "git knows no commit 'no-such'"),
        (kernel(first) + "+NO_HRTICK", kernel(both), "differ in settings"),
    ] {
        let (code, _, errors) = bisected(&good, &bad);
        assert!(code == Some(2) && errors.contains(told) && errors.lines().count() == 1, "{errors}");
    }
}

/// What the text says, and what it says when it is asked to explain.
fn told_in_text(attempt: &dyn Fn(&[&str]) -> Output, range: &str) {
    let unknown = attempt(&["--patch", range, "--metric", "frames"]);
    let errors = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(unknown.status.code() == Some(2) && errors.contains("no metric 'frames'"), "{errors}");
    let short = attempt(&["--patch", range, "--metric", "p50"]);
    let short = String::from_utf8_lossy(&short.stdout).into_owned();
    assert!(short.contains("wakeup_latency_ns_p50"), "{short}");
    let output = attempt(&["--patch", range]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    // The paragraph for a mail is for another place.
    let before_mail = text.lines().take_while(|line| !line.starts_with("In words"));
    let lines = before_mail.filter(|line| !line.starts_with('#')).count();
    assert!(lines <= 50, "it fits on a screen: {text}");
    let state = "What is held just before";
    let parts = ["Changed for sure", "First decision that differs", "fairlab compare", "fairlab verify"];
    for fragment in parts {
        assert!(text.contains(fragment), "{fragment}: {text}");
    }
    assert!(!text.contains(state), "{text}");
    // Lines break anywhere.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for fragment in [
        "tree ",
        "In words, for a mail:",
        "with fairlab 0.",
        ", for sure; at most 5 %",
        "machines are models",
    ] {
        assert!(words.contains(fragment), "{fragment}: {text}");
    }
    let whole = attempt(&["--patch", range, "--explain"]);
    let whole = String::from_utf8_lossy(&whole.stdout);
    for fragment in parts.into_iter().chain([state]) {
        assert!(whole.contains(fragment), "{fragment}: {whole}");
    }
}

fn tried(repository: &Repository, before: &str, culprit: &str, neutral: &str, broken: &str) {
    let on = repository.folder.display().to_string();
    let case = ["--workload", WORKLOAD, "--machine", "layout:1x1x4x2", "--duration", "300ms"];
    let attempt = |more: &[&str]| fairlab(&[&["try", "--on", &on], &case[..], more].concat());
    let range = format!("{before}..{culprit}");
    let output = attempt(&["--patch", &range, "--format", "json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    schema::holds(&answer, "try-1");
    let rows = answer["rows"].as_array().expect("rows");
    let p50 = rows.iter().find(|row| row["metric"] == "wakeup_latency_ns_p50").expect("a row");
    assert_eq!(p50["verdict"], "worse", "{p50}");
    let difference = &answer["difference"];
    assert_ne!(difference["leads"], difference["model"]);
    let state = difference["state"].as_array().expect("state");
    // The patch changes what is decided, and nothing of what it is decided by.
    assert!(
        state.len() > 10 && state.iter().all(|member| member["leads"] == member["model"]),
        "{difference:#}"
    );
    let words = p50["command"].as_str().expect("a command").split(' ').skip(1).collect::<Vec<_>>();
    let again = fairlab(&words);
    assert!(String::from_utf8_lossy(&again.stdout).contains("worse"), "the command repeats it");

    told_in_text(&attempt, &range);

    // A comment: runs are equal.
    let range = format!("{neutral}~1..{neutral}");
    let text = String::from_utf8_lossy(&attempt(&["--patch", &range]).stdout).into_owned();
    assert!(text.contains("changes nothing that these workloads see"), "{text}");

    let patch = repository.folder.join("no.patch");
    std::fs::write(
        &patch,
        "--- a/kernel/sched/fair.c\n+++ b/kernel/sched/fair.c\n@@ -1,1 +1,1 @@\n-nothing\n+like it\n",
    )
    .expect("written");
    let patch = patch.display().to_string();
    let range = format!("{neutral}..{broken}");
    for (patch, told) in [
        (patch.as_str(), "does not apply"),
        (&range, "kernel/sched/fair.c:"),
        ("/no/such.patch", "there is no such file"),
        ("a...b", "is no range of commits"),
    ] {
        let output = if patch.ends_with("no.patch") {
            let on = format!("{on}@{neutral}");
            fairlab(&[&["try", "--on", &on, "--patch", patch], &case[..]].concat())
        } else {
            attempt(&["--patch", patch])
        };
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        // Beside lines that tell how far it is.
        let one_line = errors.lines().filter(|line| !line.starts_with("try: ")).count() == 1;
        assert!(output.status.code() == Some(2) && errors.contains(told) && one_line, "{errors}");
    }
}
