//! Sentences of the pages that users read first, and of the program's help: short, and without words that have two meanings.
//!
//! Knows Markdown as far as fences, lists, tables and code spans go.

use fairlab_house::{FileScope, assert_none, files, text};

/// The most words of a sentence. The aim is 25; an enumeration may need more.
const WORDS_MAX: usize = 30;

/// Words that have a plainer one: again; shows or makes a difference; no task, no CPU; each task that.
const TERMS: [&str; 4] = ["anew", "felt", "nobody", "whoever"];

/// Pages held to this.
const PAGES: [&str; 31] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/boot.md",
    "docs/ci.md",
    "docs/commands.md",
    "docs/compare-recordings.md",
    "docs/first-rule.md",
    "docs/first-workload.md",
    "docs/glossary.md",
    "docs/guide.md",
    "docs/install.md",
    "docs/index.md",
    "docs/kernels.md",
    "docs/limits.md",
    "docs/live.md",
    "docs/machines.md",
    "docs/metrics.md",
    "docs/model.md",
    "docs/native.md",
    "docs/own-machine.md",
    "docs/page.md",
    "docs/report-files.md",
    "docs/sharing.md",
    "docs/statistics.md",
    "docs/sweep-files.md",
    "docs/sweep.md",
    "docs/trust.md",
    "docs/watch.md",
    "docs/view.md",
    "docs/workloads.md",
];

/// Options of the program, whose documentation is its help.
const HELP: &str = "crates/cli/src/args";

/// A paragraph, a list item, a heading or a cell of a table, and the line on which it begins, counted from 1.
type Piece = (usize, String);

/// The pieces of a Markdown text, without fences.
fn pieces(markdown: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut fenced, mut open) = (false, false);
    for (number, line) in (1..).zip(markdown.lines().map(str::trim)) {
        if line.starts_with("```") {
            (fenced, open) = (!fenced, false);
        } else if fenced || line.is_empty() {
            open = false;
        } else if line.starts_with('|') {
            let cells = line.trim_matches('|').split(" | ");
            pieces.extend(cells.map(|cell| (number, cell.to_owned())));
            open = false;
        } else if let (true, false, Some((_, piece))) = (open, is_item(line), pieces.last_mut()) {
            *piece += " ";
            *piece += line;
        } else {
            pieces.push((number, line.to_owned()));
            open = !line.starts_with('#');
        }
    }
    pieces
}

/// Whether a line begins an item of a list.
fn is_item(line: &str) -> bool {
    let digits = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    line.starts_with("* ") || line.starts_with("- ") || digits.len() < line.len() && digits.starts_with(". ")
}

/// The documentation of a source file, as Markdown.
fn documentation(source: &str) -> String {
    let lines = source.lines().map(|line| line.trim_start().strip_prefix("///").unwrap_or_default());
    lines.map(|line| format!("{line}\n")).collect()
}

/// A piece without code, and without the targets of links.
fn prose(piece: &str) -> String {
    let parts = piece.split('`').enumerate();
    let plain = parts.map(|(part, text)| if part % 2 == 1 { "X" } else { text }).collect::<String>();
    let mut pieces = plain.split("](");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |before, rest| before + rest.split_once(')').map_or("", |(_, after)| after))
}

/// The sentences of a piece, as lists of words.
fn sentences(piece: &str) -> Vec<Vec<String>> {
    let mut sentences = vec![Vec::new()];
    for word in prose(piece).split_whitespace() {
        if let Some(sentence) = sentences.last_mut().filter(|_| word.contains(char::is_alphanumeric)) {
            sentence.push(word.to_owned());
        }
        if word.trim_end_matches(['*', ')', '"', '\'']).ends_with(['.', '!', '?', ':']) {
            sentences.push(Vec::new());
        }
    }
    sentences
}

/// What is wrong with a Markdown text, each with its line.
fn violations(markdown: &str) -> Vec<(usize, String)> {
    let mut violations = Vec::new();
    for (number, piece) in pieces(markdown) {
        for sentence in sentences(&piece) {
            let begin = sentence.iter().take(6).cloned().collect::<Vec<_>>().join(" ");
            if sentence.len() > WORDS_MAX {
                violations.push((number, format!("{} words: {begin} …", sentence.len())));
            }
            let bare =
                |word: &String| word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
            let terms = sentence.iter().map(bare).filter(|word| TERMS.contains(&word.as_str()));
            violations.extend(terms.map(|term| (number, format!("'{term}': {begin} …"))));
        }
    }
    violations
}

#[test]
fn sentences_are_short_and_plain() {
    let help = files(FileScope::Present).into_iter().filter(|path| path.starts_with(HELP));
    let texts = help.map(|path| (documentation(&text(&path)), path));
    let texts = texts.chain(PAGES.map(|path| (text(path), path.to_owned())));
    let found = texts.flat_map(|(text, path)| {
        violations(&text).into_iter().map(move |(number, problem)| format!("{path}:{number}: {problem}"))
    });
    assert_none("a sentence has at most 30 words, and none of TERMS", &found.collect::<Vec<_>>());
}

#[test]
fn sentences_are_told_apart() {
    let lengths =
        |text: &str| sentences(text).iter().map(Vec::len).filter(|&words| words > 0).collect::<Vec<_>>();
    assert_eq!(lengths("One `two three` [four](five six). Seven: eight (v6.5) 9 %. Ten"), [3, 1, 3, 1]);
    let long = "word ".repeat(WORDS_MAX + 1);
    let page = format!("# Title\n\n{long}\n* nobody waits\n\n```\n{long}\n```\n| a | {long} |\n");
    let lines = violations(&page).into_iter().map(|(number, _)| number).collect::<Vec<_>>();
    assert_eq!(lines, [3, 4, 9]);
}
