//! Names of others in answers: whatever tasks, files and arguments are called, nothing that a terminal would obey is printed, no name
//! begins a line of its own, and none becomes markup.

use crate::program::program;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

/// What a terminal would obey, put together of all kinds: both sets of control characters, directions, no text at all.
const HOSTILE: &[u8] = b"a\n\x1b]0;owned\x07\r\x9b\xc2\x9b31m\xe2\x80\xae\xff<b>|`x";

/// What stands behind a line's end in these names and in those of the test data, as it is shown.
const BEHIND_A_LINE: [&str; 2] = ["\\x1b]0;owned", "\\x1b[2J"];

fn hostile() -> &'static OsStr {
    OsStr::from_bytes(HOSTILE)
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// A folder of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-hostile-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn at(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.0.join(name.as_ref())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn fairlab(arguments: &[OsString]) -> Output {
    let mut command = program();
    command.args(arguments).stdin(Stdio::null()).output().expect("the program starts")
}

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

/// Whether a terminal or an eye would be led by it; written down here apart from the program's own list.
fn is_obeyed(char: char) -> bool {
    let code = u32::from(char);
    code < 0x20
        || (0x7f..=0x9f).contains(&code)
        || matches!(code, 0x200b..=0x200f | 0x2028..=0x202e | 0x2066..=0x2069 | 0xfeff)
}

/// What is wrong with what was printed.
fn wrong(bytes: &[u8]) -> Option<String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Some("no text".to_string()) };
    let bad = text.lines().find(|line| line.chars().any(|char| is_obeyed(char) && char != '\t'));
    let bad = bad.or_else(|| text.lines().find(|line| BEHIND_A_LINE.iter().any(|end| line.starts_with(end))));
    bad.map(|line| format!("{line:?}"))
}

/// Runs a command and looks at both its outputs. Returns what it printed.
fn assert_harmless(arguments: &[OsString]) -> (Output, String) {
    let output = fairlab(arguments);
    for printed in [&output.stdout, &output.stderr] {
        assert_eq!(wrong(printed), None, "{arguments:?}: {:?}", output.status);
    }
    assert!(output.status.code().is_some_and(|code| code < 100), "{arguments:?}: {:?}", output.status);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, text)
}

#[test]
fn no_answer_about_hostile_tasks_is_obeyed() {
    let mut escaped = 0;
    for file in ["names.txt.zst", "names.data.zst", "names.dat"] {
        let file = testdata("hostile").join(file);
        for line in [
            "latency",
            "latency -p",
            "timehist",
            "timehist --state -n -w -M",
            "timehist --summary",
            "summary",
            "explain --worst 3",
            "blame --each",
            "verify --kernel v6.6",
            "run replay",
            "compare --kernel v6.5 --kernel v6.6 --runs 2 replay",
            "latency --format json",
            "timehist --format json",
            "summary --format json",
            "explain --format json",
            "blame --format json",
        ] {
            let mut arguments = words(line);
            arguments.push(file.clone().into_os_string());
            let (output, text) = assert_harmless(&arguments);
            escaped +=
                usize::from(output.status.success() && (text.contains("\\x1b") || text.contains("\\u001b")));
        }
        let task =
            assert_harmless(&[words("explain --task"), vec![hostile().to_owned(), file.into()]].concat());
        assert_eq!(task.0.status.code(), Some(2), "{:?}", task.0);
    }
    // The names are not just left out.
    assert!(escaped >= 20, "{escaped}");
}

#[test]
fn names_of_files_and_arguments_are_escaped_in_errors() {
    let folder = Folder::new("errors");
    let hostile = hostile().to_owned();
    let file = folder.at(&hostile).into_os_string();
    fs::write(folder.at("torn.json"), "{").expect("written");
    for line in [
        "latency", "timehist", "summary", "explain", "blame", "verify", "fidelity", "merge", "query",
        "sweep", "run", "boot",
    ] {
        let (output, _) = assert_harmless(&[words(line), vec![file.clone()]].concat());
        assert_eq!(
            (output.status.code(), output.stderr.iter().filter(|byte| **byte == b'\n').count()),
            (Some(2), 1),
            "{line}: {output:?}"
        );
    }
    for line in [
        "run hackbench --kernel",
        "run hackbench --machine",
        "run",
        "convert",
        "machines show",
        "kernels show",
        "workloads show",
        "scenario run",
        "--",
    ] {
        let (output, _) = assert_harmless(&[words(line), vec![hostile.clone()]].concat());
        assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
    }
    let (output, _) = assert_harmless(
        &[words("convert").as_slice(), &[testdata("hostile/names.dat").into(), file]].concat(),
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn what_files_of_these_names_give_is_escaped_too() {
    let folder = Folder::new("files");
    // A converter keeps the names where a format can carry them, and shows the file's own.
    let name: Vec<u8> = HOSTILE.utf8_chunks().flat_map(|chunk| chunk.valid().bytes()).collect();
    let trace = folder.at([&name, &b".dat"[..]].concat().as_slice().to_os());
    let (output, text) = assert_harmless(
        &[words("convert").as_slice(), &[testdata("hostile/names.data.zst").into(), trace.clone().into()]]
            .concat(),
    );
    assert!(output.status.success() && text.contains("\\x1b]0;owned"), "{output:?}");
    let kept = fs::read(&trace).expect("converted");
    assert!(kept.windows(6).any(|window| window == b"A\n\x1b[2J"), "the name is kept as it is");
    assert_harmless(&[words("latency").as_slice(), &[trace.clone().into()]].concat());
    let json = r#"{ "tasks": { "a\u001b[31m\u009b\u202e\n": { "loop": 2, "run": 1000, "sleep": 1000 } }, "global": { "duration": 1 } }"#;
    let rtapp = folder.at([&name, &b".json"[..]].concat().as_slice().to_os());
    fs::write(&rtapp, json).expect("written");
    for line in
        ["run rt-app", "compare --kernel v6.5 --kernel v6.6 --runs 2 rt-app", "run --format json rt-app"]
    {
        assert_harmless(&[words(line).as_slice(), &[rtapp.clone().into()]].concat());
    }
}

#[test]
fn names_are_no_markup_in_exports() {
    let folder = Folder::new("exports");
    for (kernel, seed) in [("v6.5", "1"), ("v6.6", "2")] {
        let out = folder.at([HOSTILE, kernel.as_bytes()].concat().as_slice().to_os());
        let line = format!("run --kernel {kernel} --seed {seed} --seeds 3 --duration 30ms --out");
        let (output, _) = assert_harmless(
            &[words(&line), vec![out.clone().into()], words("hackbench -g 1 -f 2 -l 20")].concat(),
        );
        assert!(output.status.success(), "{output:?}");
        // Another kernel's name, as a folder from elsewhere may hold it.
        let runs = fs::read_to_string(out.join("runs.json")).expect("runs");
        let name = serde_json::Value::from(String::from_utf8_lossy(HOSTILE) + kernel).to_string();
        fs::write(out.join("runs.json"), runs.replace(&format!("\"{kernel}\""), &name)).expect("written");
    }
    let sides =
        fs::read_dir(&folder.0).expect("a folder").flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    let mut arguments = words("compare");
    for side in &sides {
        arguments.extend(["--folder".into(), side.clone().into()]);
    }
    for end in ["md", "csv", "html", "json"] {
        arguments.extend(["--export".into(), folder.at(format!("out.{end}")).into()]);
    }
    let (output, _) = assert_harmless(&arguments);
    assert!(output.status.success(), "{output:?}");
    for end in ["md", "csv", "html"] {
        let text = fs::read(folder.at(format!("out.{end}"))).expect("exported");
        assert_eq!(wrong(&text), None, "{end}");
    }
    let page = fs::read_to_string(folder.at("out.md")).expect("exported");
    assert!(page.contains("&lt;b&gt;\\|\\`x") && !page.contains("<b>"), "{page}");
    let drawn = fs::read_to_string(folder.at("out.html")).expect("exported");
    assert!(drawn.contains("\\u003cb\\u003e|") && !drawn.contains("<b>"), "a name is markup");
    let columns = page
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| line.replace("\\|", "").matches('|').count());
    assert_eq!(columns.collect::<std::collections::BTreeSet<_>>().len(), 1, "{page}");
    let json = fs::read_to_string(folder.at("out.json")).expect("exported");
    assert!(
        serde_json::from_str::<serde_json::Value>(&json).is_ok() && wrong(json.as_bytes()).is_none(),
        "{json}"
    );
}

/// Bytes as a name.
trait Named {
    fn to_os(&self) -> OsString;
}

impl Named for [u8] {
    fn to_os(&self) -> OsString {
        OsStr::from_bytes(self).to_owned()
    }
}
