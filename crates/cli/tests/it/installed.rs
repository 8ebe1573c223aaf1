//! What `make install` and `make deb` put in place: the program, a manual page for each command, completions that shells read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairlab");

/// A folder of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-installed-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn script(name: &str) -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(name))
}

fn done(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every command by its words, as help lists them: `kernels show`.
fn commands(words: &[&str], found: &mut Vec<String>) {
    let help = done(Command::new(PROGRAM).args(words).arg("--help"));
    let help = String::from_utf8(help.stdout).expect("text");
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return };
    let names =
        list.lines().take_while(|line| line.starts_with("  ")).filter(|line| !line.starts_with("   "));
    for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        let below = [words, &[name]].concat();
        found.push(below.join(" "));
        commands(&below, found);
    }
}

#[test]
fn the_program_is_installed_with_manual_pages_completions_and_examples() {
    let folder = Folder::new("prefix");
    done(script("install").arg(PROGRAM).arg(&folder.0));
    let version = done(Command::new(folder.at("bin/fairlab")).arg("--version"));
    assert!(version.stdout.starts_with(b"fairlab "));
    let mut all = vec![String::new()];
    commands(&[], &mut all);
    assert!(all.len() > 30 && all.contains(&"kernels show".to_string()), "{all:?}");
    for words in &all {
        let name = format!("fairlab {words}").trim().replace(' ', "-");
        let page = text(&folder.at("share/man/man1").join(format!("{name}.1")));
        for part in [".TH", ".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS"] {
            assert!(page.contains(part), "{name} has no {part}");
        }
        let says_how = words == "schbench" || page.contains("Examples:");
        assert!(says_how && page.len() > 300, "{name}: {page}");
    }
    let pages = fs::read_dir(folder.at("share/man/man1")).expect("pages").count();
    assert_eq!(pages, all.len(), "a page of no command");
    for example in ["mix.toml", "workloads/first.toml", "sweeps/threads.toml", "machines/rb5.toml"] {
        assert!(!text(&folder.at("share/doc/fairlab/examples").join(example)).is_empty(), "{example}");
    }
    assert!(text(&folder.at("share/doc/fairlab/copyright")).contains("GNU GENERAL PUBLIC LICENSE"));
    // Again, over what is there.
    done(script("install").arg(PROGRAM).arg(&folder.0));
}

/// A shell that completes a line: with bash's own functions, as it does at a press of Tab.
#[test]
fn completions_are_read_and_complete() {
    let folder = Folder::new("completions");
    for (shell, word) in
        [("bash", "complete -F"), ("zsh", "#compdef fairlab"), ("fish", "complete -c fairlab")]
    {
        let script = done(Command::new(PROGRAM).args(["completions", shell]));
        let script = String::from_utf8(script.stdout).expect("text");
        assert!(script.contains(word) && script.contains("--metric") && script.contains("bisect"), "{shell}");
        fs::write(folder.at(shell), script).expect("written");
    }
    let bash = folder.at("bash");
    done(Command::new("bash").arg("-n").arg(&bash));
    let completed = |words: &str| {
        let count = words.split(' ').count() - 1;
        let ask = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD={count}; _fairlab fairlab \"${{COMP_WORDS[$COMP_CWORD]}}\" \"${{COMP_WORDS[$COMP_CWORD-1]}}\"; \
             echo ${{COMPREPLY[@]}}",
            bash.display()
        );
        let output = done(Command::new("bash").args(["-c", &ask]));
        String::from_utf8(output.stdout).expect("text").trim().to_string()
    };
    assert_eq!(completed("fairlab bis"), "bisect");
    assert_eq!(completed("fairlab kernels sh"), "show");
    assert_eq!(completed("fairlab compare --attr"), "--attribute");
    assert_eq!(completed("fairlab compare --layout mmt"), "mmtests");
}

#[test]
fn a_package_for_debian_holds_all_of_it_and_is_made_the_same_again() {
    let make = |folder: &Folder| {
        // Unpacked: a program for tests is large.
        let output = done(script("deb").arg(PROGRAM).arg(&folder.0).arg("-Znone"));
        PathBuf::from(String::from_utf8(output.stdout).expect("text").trim())
    };
    let folder = Folder::new("deb");
    let package = make(&folder);
    let ask = |option: &str| {
        let output = done(Command::new("dpkg-deb").arg(option).arg(&package));
        String::from_utf8(output.stdout).expect("text")
    };
    let list = ask("-c");
    for (mode, name) in [
        ("-rwxr-xr-x root/root", "./usr/bin/fairlab"),
        ("-rw-r--r-- root/root", "./usr/share/man/man1/fairlab.1.gz"),
        ("-rw-r--r-- root/root", "./usr/share/man/man1/fairlab-kernels-show.1.gz"),
        ("-rw-r--r-- root/root", "./usr/share/bash-completion/completions/fairlab"),
        ("-rw-r--r-- root/root", "./usr/share/zsh/vendor-completions/_fairlab"),
        ("-rw-r--r-- root/root", "./usr/share/fish/vendor_completions.d/fairlab.fish"),
        ("-rw-r--r-- root/root", "./usr/share/doc/fairlab/copyright"),
        ("-rw-r--r-- root/root", "./usr/share/doc/fairlab/examples/mix.toml"),
    ] {
        let holds = list.lines().any(|line| line.starts_with(mode) && line.ends_with(&format!(" {name}")));
        assert!(holds, "{mode} {name} is not in\n{list}");
    }
    let control = ask("-f");
    for line in ["Package: fairlab", "Version: 0.", "Section: kernel", "Description: laboratory"] {
        assert!(control.contains(line), "{control}");
    }
    let other = Folder::new("deb-again");
    assert!(
        fs::read(&package).expect("a package") == fs::read(make(&other)).expect("a package"),
        "packages differ"
    );
}

#[test]
fn a_place_that_cannot_be_had_is_told() {
    let output = script("install").args([PROGRAM, "relative"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is no whole path"));
    let output = script("install").args([PROGRAM, "/dev/null/x"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot be written"));
}
