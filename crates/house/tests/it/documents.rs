//! The texts that a stranger reads first: they are there, their links lead somewhere, their commands exist.
//!
//! Knows Markdown as far as links, code spans and fences go.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use fairlab_house::{FileScope, assert_none, files, root, text};

/// Files that every clone must hold.
const REQUIRED: [&str; 5] = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE", ".ci/run"];

/// Languages of fences whose lines are shell commands.
const SHELLS: [&str; 5] = ["", "sh", "bash", "shell", "console"];

/// What a Markdown text asks to be true, each with its line, counted from 1.
#[derive(Default)]
struct Markdown {
    links: Vec<(usize, String)>,
    /// Commands in code spans and in fences of a shell.
    commands: Vec<(usize, String)>,
}

impl Markdown {
    fn read(text: &str) -> Self {
        let mut markdown = Self::default();
        let mut fence: Option<(&str, &str)> = None;
        for (number, line) in (1..).zip(text.lines()) {
            let trimmed = line.trim_start();
            let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
            match (fence, mark) {
                (None, Some(mark)) => fence = Some((mark, trimmed.trim_start_matches(['`', '~']).trim())),
                (None, None) => markdown.read_prose(number, line),
                (Some((open, _)), Some(mark)) if open == mark => fence = None,
                (Some((_, language)), _) if SHELLS.contains(&language) => {
                    markdown.commands.push((number, line.to_owned()));
                }
                _ => {}
            }
        }
        markdown
    }

    fn read_prose(&mut self, number: usize, line: &str) {
        // Between backticks stands code: every second part.
        let mut prose = String::new();
        for (part, text) in line.split('`').enumerate() {
            if part % 2 == 1 {
                self.commands.push((number, text.to_owned()));
            } else {
                prose.push_str(text);
            }
        }
        let inline = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        let reference = prose
            .trim_start()
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "))
            .and_then(|(_, target)| target.split_whitespace().next());
        let targets = inline.chain(reference).map(|target| target.trim_matches(['<', '>']).to_owned());
        self.links.extend(targets.map(|target| (number, target)));
    }
}

/// The targets that a shell line hands to `make`, if it runs make here: `HOME=x make -s test` has `test`.
fn make_targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let line = line.trim_start().trim_start_matches("$ ").split(" #").next().unwrap_or_default();
    for command in line.split(['&', ';', '|']) {
        let mut words = command.split_whitespace().skip_while(|word| word.contains('='));
        if words.next() != Some("make") {
            continue;
        }
        let words: Vec<&str> = words.collect();
        if !words.contains(&"-C") {
            // A value in quotes may hold spaces: what follows an assignment is no target.
            let is_target = |word: &&&str| !word.contains('=') && !word.starts_with('-');
            targets.extend(words.iter().take_while(|word| !word.contains(['"', '\''])).filter(is_target));
        }
    }
    targets
}

/// The path that a relative link of a file leads to, relative to the root; `None` if it leads out of the repository.
fn resolve(file: &str, target: &str) -> Option<String> {
    let (folder, _) = file.rsplit_once('/').unwrap_or_default();
    let (folder, target) = match target.strip_prefix('/') {
        Some(from_root) => ("", from_root),
        None => (folder, target),
    };
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn documents() -> Vec<(String, Markdown)> {
    files(FileScope::Present)
        .into_iter()
        .filter(|path| path.ends_with(".md"))
        .map(|path| {
            let markdown = Markdown::read(&text(&path));
            (path, markdown)
        })
        .collect()
}

/// The targets of the Makefile, each with whether `make help` has a line for it.
fn makefile_targets() -> Vec<(String, bool)> {
    let is_name = |name: &&str| {
        let of_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        !name.is_empty() && name.chars().all(of_name)
    };
    text("Makefile")
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(':')?;
            Some(name).filter(is_name).map(|name| (name.to_owned(), rest.contains(" ## ")))
        })
        .collect()
}

#[test]
fn the_first_documents_are_there() {
    let missing: Vec<String> =
        REQUIRED.into_iter().filter(|path| !root().join(path).is_file()).map(str::to_owned).collect();
    assert_none("every clone holds these files", &missing);
}

#[test]
fn the_licence_is_the_one_that_the_manifests_name() {
    let licence = text("LICENSE");
    assert!(licence.trim_start().starts_with("GNU GENERAL PUBLIC LICENSE"));
    assert!(licence.contains("Version 2, June 1991") && licence.contains("END OF TERMS AND CONDITIONS"));
}

#[test]
fn continuous_integration_runs_what_developers_run() {
    assert!(text(".ci/run").lines().any(|line| line.trim() == "exec make test"));
    let scripts = files(FileScope::Present).into_iter().filter(|path| path.starts_with("scripts/"));
    let violations: Vec<String> = scripts
        .chain([".ci/run".to_owned()])
        .filter(|path| {
            root().join(path).metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 == 0)
        })
        .collect();
    assert_none("scripts are executable", &violations);
}

#[test]
fn links_lead_somewhere() {
    let mut violations = Vec::new();
    for (path, markdown) in documents() {
        for (number, link) in markdown.links {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if !resolve(&path, target).is_some_and(|target| root().join(target).exists()) {
                violations.push(format!("{path}:{number}: {link}"));
            }
        }
    }
    assert_none("a relative link in a document leads to a file", &violations);
}

/// The anchors of a page's headings, as GitHub and the book have them: small letters, digits, dashes for blanks.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut inside = false;
    for line in text.lines() {
        inside ^= line.starts_with("```");
        let title = line.trim_start_matches('#');
        if inside || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let shown = |letter: char| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ => Some(letter).filter(|letter| letter.is_alphanumeric()),
        };
        let anchor: String = title.trim().to_lowercase().chars().filter_map(shown).collect();
        let again = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(again).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

#[test]
fn links_into_pages_lead_to_a_heading() {
    let mut violations = Vec::new();
    for (path, markdown) in documents() {
        for (number, link) in markdown.links {
            let Some((target, anchor)) = link.split_once('#').filter(|_| !link.contains("://")) else {
                continue;
            };
            let page = if target.is_empty() { Some(path.clone()) } else { resolve(&path, target) };
            let page = page.filter(|page| page.ends_with(".md") && root().join(page).is_file());
            if !page.is_some_and(|page| anchors(&text(&page)).contains(anchor)) {
                violations.push(format!("{path}:{number}: {link}"));
            }
        }
    }
    assert_none("a link with # leads to a heading of that page", &violations);
}

#[test]
fn make_commands_exist() {
    let targets: BTreeSet<String> = makefile_targets().into_iter().map(|(name, _)| name).collect();
    let mut violations = Vec::new();
    for (path, markdown) in documents() {
        for (number, line) in markdown.commands {
            let unknown = make_targets(&line).into_iter().filter(|target| !targets.contains(*target));
            violations.extend(unknown.map(|target| format!("{path}:{number}: make {target}")));
        }
    }
    assert_none("a make command in a document exists in the Makefile", &violations);
}

#[test]
fn make_help_names_every_target() {
    let targets = makefile_targets();
    for name in ["help", "run", "test", "lint", "bench"] {
        assert!(targets.iter().any(|(target, _)| target == name), "Makefile: no target {name}");
    }
    let untold: Vec<String> =
        targets.into_iter().filter(|(_, has_help)| !has_help).map(|(name, _)| name).collect();
    assert_none("every target of the Makefile says after ## what it does", &untold);
}

#[test]
fn markdown_is_read_as_it_is_shown() {
    let markdown = Markdown::read(
        "see [a](b.md#part), `[no](c.md)` and ![d](<e.png>)\n```console\n$ make test\n[x](y)\n```\n```c\nmake x\n```\n[f]: g.md",
    );
    let links: Vec<(usize, &str)> =
        markdown.links.iter().map(|(number, link)| (*number, link.as_str())).collect();
    assert_eq!(links, [(1, "b.md#part"), (1, "e.png"), (9, "g.md")]);
    let commands: Vec<&str> = markdown.commands.iter().map(|(_, line)| line.as_str()).collect();
    assert_eq!(commands, ["[no](c.md)", "$ make test", "[x](y)"]);
}

#[test]
fn anchors_are_those_of_headings() {
    let page = "# A page\n## What `x` costs, and why\n```\n# none\n```\n## Again\n## Again\n#none\n";
    let found: Vec<String> = anchors(page).into_iter().collect();
    assert_eq!(found, ["a-page", "again", "again-1", "what-x-costs-and-why"]);
}

#[test]
fn make_commands_are_found() {
    assert_eq!(make_targets("$ HOME=/tmp/x make -s test # all"), ["test"]);
    assert_eq!(make_targets("cd x && make lint test"), ["lint", "test"]);
    assert_eq!(make_targets("make run ARGS=\"scenario list\""), ["run"]);
    assert_eq!(make_targets("make -C linux bzImage"), [""; 0]);
    assert_eq!(make_targets("cmake test"), [""; 0]);
}

#[test]
fn relative_links_resolve() {
    assert_eq!(resolve("docs/a.md", "../README.md").as_deref(), Some("README.md"));
    assert_eq!(resolve("docs/a.md", "b/./c.md").as_deref(), Some("docs/b/c.md"));
    assert_eq!(resolve("README.md", "/docs").as_deref(), Some("docs"));
    assert_eq!(resolve("README.md", "../elsewhere"), None);
}

/// The page of what tools write names a test in the last cell of each row.
#[test]
fn each_behaviour_of_a_tool_has_its_test() {
    let page = text("docs/what-tools-write.md");
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| seen with"));
    let name = |row: &str| {
        row.trim_end_matches('|').rsplit('|').next().map(|cell| cell.trim().trim_matches('`').to_string())
    };
    let names = rows.map(|row| name(row).unwrap_or_default()).collect::<BTreeSet<_>>();
    assert!(names.len() > 15, "{names:?}");
    let is_code = |path: &String| path.ends_with(".rs") || path.ends_with(".py");
    let code =
        files(FileScope::Tracked).into_iter().filter(is_code).map(|path| text(&path)).collect::<String>();
    let is_there =
        |name: &String| code.contains(&format!("fn {name}()")) || code.contains(&format!("def {name}()"));
    let missing = names.into_iter().filter(|name| !is_there(name)).collect::<Vec<_>>();
    assert_none("docs/what-tools-write.md names tests that are there", &missing);
}
