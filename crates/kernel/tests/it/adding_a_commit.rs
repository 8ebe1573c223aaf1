//! The example of ARCHITECTURE.md, "Adding a commit", stands in the sources as it is told.

use std::path::{Path, PathBuf};

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Text without what a formatter may alter.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Each step of the section: the file that it names last before its code, and the code.
fn steps(page: &str) -> Vec<(PathBuf, String)> {
    let (_, section) = page.split_once("## Adding a commit\n").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("another section");
    let mut pieces = section.split("```");
    let mut steps = Vec::new();
    while let (Some(text), Some(code)) = (pieces.next(), pieces.next()) {
        let file = text.split('`').rfind(|quoted| quoted.ends_with(".rs")).expect("a file");
        steps.push((PathBuf::from(file), words(code.strip_prefix("rust").expect("code in Rust"))));
    }
    steps
}

#[test]
fn the_example_is_in_the_sources() {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let steps = steps(&read(&crate_root.join("../../ARCHITECTURE.md")));
    assert_eq!(steps.len(), 4, "variant, branch, row, situation");
    for (file, code) in steps {
        let source = words(&read(&crate_root.join("src").join(&file)));
        assert!(source.contains(&code), "{} does not have: {code}", file.display());
    }
}
