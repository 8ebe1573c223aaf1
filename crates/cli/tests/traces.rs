//! Traces as users have them: what cannot be read is said and refused by every command.

use std::path::PathBuf;
use std::process::{Command, Output};

fn fairlab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairlab")).args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-traces-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_string()
    }

    /// A file with this content.
    fn file(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A task that is woken and runs, `count` times; the switches' fields are `unknown` ones if so.
fn trace(count: u32, unknown: bool) -> String {
    let mut lines = "# tracer: nop\n#\n".to_string();
    let arrow = if unknown { "=!=>" } else { "==>" };
    for at in 0..count {
        let front = |us: u32| format!("            feed-100     [000] d..2. {}.{us:06}:", 10 + at);
        let idle = |us: u32| format!("          <idle>-0       [001] d..2. {}.{us:06}:", 10 + at);
        let eater = |us: u32| format!("           eater-200     [001] d..2. {}.{us:06}:", 10 + at);
        lines += &format!("{} sched_waking: comm=eater pid=200 prio=120 target_cpu=001\n", front(100));
        lines += &format!(
            "{} sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R {arrow} next_comm=eater next_pid=200 next_prio=120\n",
            idle(900)
        );
        lines += &format!(
            "{} sched_switch: prev_comm=eater prev_pid=200 prev_prio=120 prev_state=S {arrow} next_comm=swapper/1 next_pid=0 next_prio=120\n",
            eater(1500)
        );
    }
    lines
}

#[test]
fn no_command_answers_when_the_switches_cannot_be_read() {
    let folder = Folder::new("refused");
    let file = folder.file("broken.txt", &trace(20, true));
    let copy = folder.path("copy.dat");
    let meta = folder.file("meta.json", "{\"HZ\": 250}");
    let replay = ["--kernel", "v6.6", "--kernel", "v6.12", "--runs", "2", "--machine", "vm4"];
    let mut commands: Vec<Vec<&str>> = ["latency", "timehist", "summary", "explain"]
        .iter()
        .flat_map(|command| [vec![*command, &file], vec![*command, &file, "--format", "json"]])
        .collect();
    commands.push(vec!["convert", &file, &copy]);
    commands.push(vec!["verify", &file, "--kernel", "v6.6", "--machine", "vm4"]);
    commands.push([&["compare", "replay", file.as_str()][..], &replay].concat());
    let side = folder.0.to_str().expect("a path in UTF-8");
    commands.push(vec!["compare", "--folder", side, "--folder", side]);
    for command in commands {
        let output = fairlab(&command);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!((output.status.code(), stdout.as_str()), (Some(2), ""), "{command:?}: {stderr}");
        let says =
            "40 of 40 sched_switch events cannot be read, the first in line 4: <idle>-0       [001] d..2.";
        assert!(stderr.contains(says), "{command:?}: {stderr}");
    }
    assert!(!std::path::Path::new(&copy).exists());
    std::fs::remove_file(meta).expect("removed");
}

#[test]
fn a_few_are_told_and_more_only_where_the_user_says_so() {
    let folder = Folder::new("told");
    let few = folder.file("few.txt", &[trace(100, false), trace(1, true)].concat());
    let many = folder.file("many.txt", &[trace(10, false), trace(1, true)].concat());
    for (file, options) in [(&few, &[][..]), (&many, &["--allow-unreadable"])] {
        let output = fairlab(&[&["latency", file.as_str()][..], options].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert!(stderr.contains(" sched_switch events cannot be read, the first in line "), "{stderr}");
        let json = fairlab(&[&["latency", file.as_str(), "--format", "json"][..], options].concat());
        let answer: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
        assert_eq!(answer["import"]["unreadable"][0]["event"], "sched_switch");
        assert_eq!(answer["import"]["unreadable"][0]["count"], 2);
    }
    assert_eq!(fairlab(&["latency", &many]).status.code(), Some(2));
}
