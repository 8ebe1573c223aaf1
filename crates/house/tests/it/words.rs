//! Words that must not stand in the repository: places that exist on one machine only, and who or what typed the text.
//!
//! Knows every tracked file as text.

use fairlab_house::{FileScope, assert_none, bytes, files};

/// How a forbidden word is found.
#[derive(Clone, Copy)]
enum Found {
    /// Anywhere, in small or capital letters.
    Anywhere,
    /// As a word of its own, in these very letters.
    AsWord,
}

/// The forbidden words, in two pieces each, so that this file passes its own test.
const FORBIDDEN: [(&str, &str, Found); 28] = [
    // Paths of one machine.
    ("/wo", "rk/", Found::Anywhere),
    ("/ro", "ot/", Found::Anywhere),
    ("../sh", "ared", Found::Anywhere),
    // Hosts of package registries: which one serves a machine is that machine's business.
    ("crates", ".io", Found::Anywhere),
    ("static.rust-", "lang", Found::Anywhere),
    ("py", "pi", Found::Anywhere),
    ("pythonho", "sted", Found::Anywhere),
    ("npm", "js.", Found::Anywhere),
    // Who or what typed the text.
    ("A", "I", Found::AsWord),
    ("A", "Is", Found::AsWord),
    ("L", "LM", Found::AsWord),
    ("L", "LMs", Found::AsWord),
    ("G", "PT", Found::AsWord),
    ("language ", "model", Found::Anywhere),
    ("artificial ", "intelligence", Found::Anywhere),
    ("assis", "tant", Found::Anywhere),
    ("chat", "bot", Found::Anywhere),
    ("chat", "gpt", Found::Anywhere),
    ("gp", "t-", Found::Anywhere),
    ("cla", "ude", Found::Anywhere),
    ("anth", "ropic", Found::Anywhere),
    ("open", "ai", Found::Anywhere),
    ("copi", "lot", Found::Anywhere),
    ("gemi", "ni", Found::Anywhere),
    ("co-auth", "ored-by", Found::Anywhere),
    // How the text came about.
    ("this ses", "sion", Found::Anywhere),
    ("issue", " #", Found::Anywhere),
    (".lib", "rary", Found::Anywhere),
];

/// Files that must hold such words: the licence is verbatim, cargo writes the registry's name into its lock, and npm hashes
/// into its own.
const EXEMPT: [&str; 4] = ["LICENSE", "Cargo.lock", "deny.toml", "web/package-lock.json"];

/// What is built from sources, which are checked: short names there are the builder's.
const BUILT: &str = "crates/page/bundle/";

/// The forbidden words in a text, each with the line that it stands on, counted from 1.
fn forbidden_words(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // Nearly every word stands in no line: it is looked for in the whole text first.
    let small = text.to_lowercase();
    let there = FORBIDDEN.map(|(head, tail, how)| (format!("{head}{tail}"), how));
    let there = there.iter().filter(|(word, _)| small.contains(&word.to_lowercase())).collect::<Vec<_>>();
    for (number, line) in (1..).zip(text.lines()).take_while(|_| !there.is_empty()) {
        let small = line.to_lowercase();
        for (word, how) in &there {
            let stands = match how {
                Found::Anywhere => small.contains(&word.to_lowercase()),
                Found::AsWord => {
                    line.split(|letter: char| !letter.is_alphanumeric()).any(|part| part == word)
                }
            };
            if stands {
                found.push((number, word.clone()));
            }
        }
    }
    found
}

fn is_written(path: &str) -> bool {
    !EXEMPT.contains(&path) && !path.starts_with(BUILT)
}

#[test]
fn no_file_holds_a_forbidden_word() {
    let mut violations = Vec::new();
    for path in files(FileScope::Tracked).into_iter().filter(|path| is_written(path)) {
        violations
            .extend(forbidden_words(&path).into_iter().map(|(_, word)| format!("{path}: its name: {word}")));
        let text = match String::from_utf8(bytes(&path)) {
            Ok(text) => text,
            // Recordings: packed or binary, and as the recorded machine was.
            Err(_) if path.starts_with("testdata/") => continue,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        violations.extend(
            forbidden_words(&text).into_iter().map(|(number, word)| format!("{path}:{number}: {word}")),
        );
    }
    assert_none("no file holds a word of FORBIDDEN in crates/house/tests/it/words.rs", &violations);
}

#[test]
fn words_are_found_where_they_stand() {
    let first = |text: &str| forbidden_words(text).first().map(|(number, _)| *number);
    assert_eq!(first(&["see /wo", "rk/main"].concat()), Some(1));
    assert_eq!(first(&["fine\nwritten by an A", "I, it is said"].concat()), Some(2));
    assert_eq!(first(&["from Py", "PI"].concat()), Some(1));
    assert_eq!(first("the MAIN PAIR of a tail; a workload; rooted"), None);
}
