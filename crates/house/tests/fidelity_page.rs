//! docs/fidelity.md is what the policy functions say of themselves: which kernel function each stands for, in which
//! variants, and where it departs. `BLESS=1 cargo test -p fairlab-house --test fidelity_page` writes it.

use std::fmt::Write;
use std::path::Path;

use fairlab_house::{Scope, files, root, text};

/// One function's labels.
struct Labelled {
    file: String,
    function: String,
    kernel: String,
    variants: String,
    departs: String,
}

const LABELS: [&str; 4] = ["Kernel:", "Variants:", "Units:", "Departs:"];

/// The documented functions of one file that name a kernel function.
fn labelled(file: &str, source: &str) -> Vec<Labelled> {
    let mut found = Vec::new();
    let mut doc = String::new();
    for line in source.lines().map(str::trim) {
        if let Some(sentence) = line.strip_prefix("///") {
            doc.push_str(sentence);
        } else if !line.starts_with("#[") {
            let function =
                line.split_once("fn ").map(|(_, rest)| rest.split(['(', '<']).next().unwrap_or_default());
            if let (Some(function), Some(kernel)) = (function, label(&doc, "Kernel:")) {
                let of = |name| label(&doc, name).unwrap_or_default();
                let (variants, departs) = (of("Variants:"), of("Departs:"));
                let (file, function) = (file.to_string(), function.to_string());
                found.push(Labelled { file, function, kernel, variants, departs });
            }
            doc.clear();
        }
    }
    found
}

/// What follows a label, up to the next one.
fn label(doc: &str, name: &str) -> Option<String> {
    let (_, after) = doc.split_once(name)?;
    let end = LABELS.iter().filter_map(|label| after.find(label)).min().unwrap_or(after.len());
    Some(without_links(after[..end].trim().trim_end_matches('.')).replace('|', "\\|"))
}

/// Links between items lead nowhere outside the source: their words are kept.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        plain.push_str(&before.replacen('[', "", 1));
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

fn page() -> String {
    let mut page = String::from(
        "# Fidelity: what each rule stands for, and where it departs from the kernel\n\n\
         Collected from the labels of the policy functions in `crates/kernel/src`; a test keeps it fresh.\n\n\
         | function | kernel | variants | departs |\n|---|---|---|---|\n",
    );
    let sources = files(Scope::Present).into_iter().filter(|file| file.starts_with("crates/kernel/src/"));
    for file in sources.filter(|file| file.ends_with(".rs")) {
        for entry in labelled(&file, &text(&file)) {
            let room = entry.file.trim_start_matches("crates/kernel/src/");
            let Labelled { function, kernel, variants, departs, .. } = entry;
            let _ = writeln!(page, "| `{room}` `{function}` | {kernel} | {variants} | {departs} |");
        }
    }
    page
}

#[test]
fn the_page_is_fresh() {
    let path = root().join("docs/fidelity.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, page()).expect("written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/fidelity.md is stale: BLESS=1 cargo test -p fairlab-house --test fidelity_page"
    );
}

#[test]
fn labels_are_found() {
    let source = "/// Does it.\n///\n/// Kernel: `place_entity()`, fair.c. Variants: `Lag` from v6.6.\n/// Departs: nothing of it.\n#[inline]\npub fn place(&self) {}\n";
    let found = labelled("a.rs", source);
    let [entry] = &found[..] else { panic!("one function is labelled") };
    assert_eq!((entry.function.as_str(), entry.kernel.as_str()), ("place", "`place_entity()`, fair.c"));
    assert_eq!((entry.variants.as_str(), entry.departs.as_str()), ("`Lag` from v6.6", "nothing of it"));
    assert!(Path::new(&entry.file).ends_with("a.rs") && labelled("b.rs", "fn plain() {}\n").is_empty());
}
