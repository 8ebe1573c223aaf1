//! No circle of files in `crates/kernel/src` is larger than what one can hold in the head at once.
//!
//! Knows Rust sources as text, after their comments, strings and tests. A file needs another, which is an edge, if
//!
//! * it names something by path: `use crate::…` and `super::…`, paths within code, children by `module::…`. A name that a file
//!   only passes on (`pub use`) counts for the file that has it; a path to no known name counts for the module's file;
//! * it calls a method that the other defines on what the scheduler works on (`VIEWS`): those structures can be given methods in
//!   every file, so that a call names no path. The method's name decides, together with what it is called on (`self` within such
//!   a structure, `shared`, a lock), and where neither tells, a name that only one file defines.
//!
//! What `mod` declares is no edge. Methods of other structures count by the path to the structure.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_house::{FileScope, assert_none, files, text};

/// Where the files are.
const ROOT: &str = "crates/kernel/src/";

/// A circle may have so many files.
const LARGEST: usize = 10;

/// The structures that get methods in every file.
const VIEWS: [&str; 3] = ["Scheduler", "Shared", "LockedRq"];

/// A file without comments, strings and tests.
struct Source {
    /// Its module's path: `["fair", "pick"]`, nothing for the crate's root.
    module: Vec<String>,
    code: String,
}

/// Code without comments and without what is in quotes.
fn bare(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if next == '"' {
            rest = after_string(&rest[1..]);
            code.push(' ');
        } else if let Some(after) = after_character(rest) {
            rest = after;
            code.push(' ');
        } else {
            code.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    code
}

/// What follows the end of a string that `rest` is within.
fn after_string(rest: &str) -> &str {
    let mut escaped = false;
    for (at, character) in rest.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return &rest[at + 1..],
            _ => {}
        }
    }
    ""
}

/// What follows a character in quotes, if one stands here; a lifetime is none.
fn after_character(rest: &str) -> Option<&str> {
    let inner = rest.strip_prefix('\'')?;
    let mut characters = inner.char_indices().skip(if inner.starts_with('\\') { 2 } else { 1 });
    let (at, quote) = characters.next()?;
    (quote == '\'').then(|| &inner[at + 1..])
}

/// Where what begins here ends: behind its braces, or behind a semicolon outside of any.
fn end_of_item(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, character) in code.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Code without what only tests have, and the names of modules of tests in files of their own.
fn without_tests(code: &str) -> (String, Vec<String>) {
    const MARK: &str = "#[cfg(test)]";
    let (mut kept, mut modules, mut rest) = (String::new(), Vec::new(), code);
    while let Some(at) = rest.find(MARK) {
        kept.push_str(&rest[..at]);
        let item = &rest[at + MARK.len()..];
        let end = end_of_item(item);
        if let Some(declared) = item[..end].strip_suffix(';')
            && let Some((_, name)) = declared.rsplit_once("mod ")
        {
            modules.push(name.trim().to_owned());
        }
        rest = &item[end..];
    }
    kept.push_str(rest);
    (kept, modules)
}

fn module_of(path: &str) -> Vec<String> {
    match path.trim_end_matches(".rs") {
        "lib" => Vec::new(),
        path => path.split('/').map(str::to_owned).collect(),
    }
}

/// The crate's files by their paths below its `src`, without files of tests.
fn sources() -> BTreeMap<String, Source> {
    let paths = files(FileScope::Present);
    let paths = paths.iter().filter_map(|path| path.strip_prefix(ROOT)).filter(|path| path.ends_with(".rs"));
    let (mut sources, mut tests) = (BTreeMap::new(), Vec::new());
    for path in paths {
        let (code, modules) = without_tests(&bare(&text(&format!("{ROOT}{path}"))));
        let module = module_of(path);
        tests.extend(modules.into_iter().map(|name| [module.clone(), vec![name]].concat()));
        sources.insert(path.to_owned(), Source { module, code });
    }
    sources.retain(|_, source| !tests.iter().any(|test| source.module.starts_with(test)));
    sources
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The word that text begins with.
fn word(text: &str) -> &str {
    let end = text.find(|character| !is_word(character)).unwrap_or(text.len());
    &text[..end]
}

/// The paths that one `use` takes: its braces are multiplied out.
fn paths_of_use(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree);
        return vec![path.split_whitespace().collect()];
    };
    let (prefix, inner) = (&tree[..open], tree[open + 1..].trim_end().trim_end_matches('}'));
    let inner = if tree.matches('{').count() > 1 {
        &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())]
    } else {
        inner
    };
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, character) in inner.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| paths_of_use(&format!("{prefix}{}", part.trim()))).collect()
}

/// A `use`: what it takes, and whether it passes it on.
struct Use {
    paths: Vec<String>,
    is_public: bool,
}

/// The `use` declarations of a file, and its code without them.
fn uses(code: &str) -> (Vec<Use>, String) {
    let (mut found, mut left) = (Vec::new(), String::new());
    let mut statements = code;
    while let Some(at) = find_word(statements, "use") {
        let Some(end) = statements[at..].find(';') else { break };
        let before = statements[..at].rsplit(['\n', ';', '}']).next().unwrap_or_default();
        let tree = &statements[at + "use".len()..at + end];
        found.push(Use { paths: paths_of_use(tree), is_public: before.trim_start().starts_with("pub") });
        left.push_str(&statements[..at]);
        statements = &statements[at + end + 1..];
    }
    left.push_str(statements);
    (found, left)
}

/// Where a word stands by itself.
fn find_word(code: &str, wanted: &str) -> Option<usize> {
    code.match_indices(wanted).map(|(at, _)| at).find(|&at| {
        let before = code[..at].chars().next_back();
        let after = code[at + wanted.len()..].chars().next();
        !before.is_some_and(|before| is_word(before) || before == ':') && !after.is_some_and(is_word)
    })
}

/// Names that a file gives at its outermost level, and by `rules!` and `choice!`.
fn names_given(code: &str) -> BTreeSet<String> {
    const KINDS: [&str; 10] = [
        "struct ",
        "enum ",
        "trait ",
        "type ",
        "fn ",
        "const ",
        "static ",
        "mod ",
        "union ",
        "macro_rules! ",
    ];
    let mut names = BTreeSet::new();
    for line in code.lines() {
        for kind in KINDS {
            if let Some(at) = find_word(line, kind.trim_end()) {
                names.insert(word(line[at + kind.trim_end().len()..].trim_start()).to_owned());
            }
        }
    }
    if code.contains("rules! {") {
        let named = code.split(|character| !is_word(character));
        names.extend(named.filter(|name| name.starts_with(char::is_uppercase)).map(str::to_owned));
    }
    names
}

/// What a crate's files give and pass on.
struct Names<'s> {
    sources: &'s BTreeMap<String, Source>,
    given: BTreeMap<&'s str, BTreeSet<String>>,
    passed_on: BTreeMap<&'s str, Vec<Vec<String>>>,
}

impl<'s> Names<'s> {
    fn of(sources: &'s BTreeMap<String, Source>) -> Names<'s> {
        let mut names = Names { sources, given: BTreeMap::new(), passed_on: BTreeMap::new() };
        for (path, source) in sources {
            names.given.insert(path, names_given(&source.code));
        }
        for (path, source) in sources {
            let public = uses(&source.code).0.into_iter().filter(|taken| taken.is_public);
            let paths = public.flat_map(|taken| taken.paths);
            let passed = paths.filter_map(|taken| names.absolute(source, &taken)).collect();
            names.passed_on.insert(path, passed);
        }
        names
    }

    fn file_of(&self, module: &[String]) -> Option<&'s str> {
        self.sources.iter().find(|(_, source)| source.module == module).map(|(path, _)| path.as_str())
    }

    /// A path from the crate's root, of one that stands in a file; `None` if it leads out of the crate.
    fn absolute(&self, source: &Source, path: &str) -> Option<Vec<String>> {
        let mut parts = path.split("::").map(str::to_owned).collect::<Vec<_>>();
        let mut module = source.module.clone();
        match parts[0].as_str() {
            "crate" => module.clear(),
            "self" => {}
            "super" => {
                while parts.get(1).is_some_and(|part| part == "super") {
                    parts.remove(0);
                    module.pop();
                }
                module.pop();
            }
            child => {
                let child = [module.clone(), vec![child.to_owned()]].concat();
                self.file_of(&child)?;
                return Some([module, parts].concat());
            }
        }
        Some([module, parts.split_off(1)].concat())
    }

    /// The file that has what an absolute path names.
    fn owner(&self, path: &[String], depth: usize) -> Option<&'s str> {
        let length = (0..=path.len()).rev().find(|&length| self.file_of(&path[..length]).is_some())?;
        let file = self.file_of(&path[..length])?;
        let Some(name) = path.get(length).filter(|_| depth < 8) else { return Some(file) };
        if self.given[file].contains(name) {
            return Some(file);
        }
        let passes = |passed: &&Vec<String>| {
            passed.last() == Some(name) || passed.last().is_some_and(|last| last == "*")
        };
        for passed in self.passed_on.get(file).into_iter().flatten().filter(passes) {
            let mut whole = passed.clone();
            if whole.last().is_some_and(|last| last == "*") {
                whole.pop();
                let from = self.owner(&whole, depth + 1)?;
                if !self.given[from].contains(name) {
                    continue;
                }
                return Some(from);
            }
            return self.owner(&whole, depth + 1);
        }
        Some(file)
    }
}

/// Paths within code, which `use` does not take.
fn paths_in(code: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let mut at = 0;
    while let Some(found) = code[at..].find("::") {
        let middle = at + found;
        let start = code[..middle].rfind(|character| !is_word(character)).map_or(0, |before| before + 1);
        let is_first = !code[..start].ends_with("::");
        let end = code[middle..].find(|character| !(is_word(character) || character == ':'));
        let end = end.map_or(code.len(), |end| middle + end);
        if is_first && start < middle && code.is_char_boundary(start) {
            paths.insert(code[start..end].trim_end_matches(':').to_owned());
        }
        at = end.max(middle + 2);
    }
    paths
}

/// A stretch of code within a structure's methods.
struct Block<'c> {
    structure: &'c str,
    code: &'c str,
}

/// The `impl` blocks of a file.
fn blocks(code: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let starts = code.match_indices("\nimpl").map(|(at, _)| at + 1);
    for start in starts {
        let Some(open) = code[start..].find('{') else { continue };
        let head = &code[start + "impl".len()..start + open];
        let head = head.rsplit(" for ").next().unwrap_or(head);
        let head =
            if head.starts_with('<') { head.split_once('>').map_or(head, |(_, after)| after) } else { head };
        let structure = word(head.trim_start());
        let end = start + end_of_item(&code[start..]);
        blocks.push(Block { structure, code: &code[start..end] });
    }
    blocks
}

fn methods_of(code: &str) -> Vec<String> {
    let starts = code.match_indices("fn ").map(|(at, _)| at);
    starts.map(|at| word(&code[at + 3..]).to_owned()).filter(|name| !name.is_empty()).collect()
}

/// A call of a method: what it is called on, as far as the text tells, and its name.
fn calls_in(code: &str) -> Vec<(&str, &str)> {
    let mut calls = Vec::new();
    for (at, _) in code.match_indices('.') {
        let name = word(code[at + 1..].trim_start());
        let after = code[at + 1..].trim_start()[name.len()..].trim_start();
        if name.is_empty() || !(after.starts_with('(') || after.starts_with("::<")) {
            continue;
        }
        calls.push((code[..at].trim_end(), name));
    }
    calls
}

/// The structure that a call is made on, if what stands before it tells.
fn receiver<'v>(before: &str, within: Option<&'v str>) -> Option<&'v str> {
    let last = before.rsplit(|character| !is_word(character)).next().unwrap_or_default();
    match last {
        "self" => Some(within.unwrap_or("")),
        "shared" => Some("Shared"),
        "scheduler" => Some("Scheduler"),
        "queue" => Some("LockedRq"),
        "" if before.ends_with(')') => {
            let mut depth = 0_i32;
            let open = before.char_indices().rev().find(|&(_, character)| {
                depth += i32::from(character == ')') - i32::from(character == '(');
                depth == 0
            })?;
            before[..open.0].ends_with("_lock").then_some("LockedRq")
        }
        _ => None,
    }
}

/// Which file needs which, and why.
type Edges = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn edges(sources: &BTreeMap<String, Source>) -> Edges {
    let mut edges = Edges::new();
    let mut add = |from: &str, to: &str, why: String| {
        if from != to {
            edges.entry(from.to_owned()).or_default().entry(to.to_owned()).or_default().insert(why);
        }
    };
    let names = Names::of(sources);
    // Who defines a method of that name, and on what.
    let mut methods: BTreeMap<String, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for (path, source) in sources {
        for block in blocks(&source.code) {
            for name in methods_of(block.code) {
                methods.entry(name).or_default().insert((block.structure, path));
            }
        }
    }
    for (path, source) in sources {
        let (taken, code) = uses(&source.code);
        let private = taken.into_iter().filter(|taken| !taken.is_public).flat_map(|taken| taken.paths);
        for named in private.chain(paths_in(&code)) {
            let owner = names.absolute(source, &named).and_then(|absolute| names.owner(&absolute, 0));
            if let Some(owner) = owner {
                add(path, owner, named);
            }
        }
        let within = |at: &str| {
            let place = at.as_ptr() as usize;
            let blocks = blocks(&source.code);
            blocks.into_iter().find(|block| {
                let start = block.code.as_ptr() as usize;
                (start..start + block.code.len()).contains(&place)
            })
        };
        for (before, name) in calls_in(&source.code) {
            let Some(defined) = methods.get(name) else { continue };
            let views = defined.iter().filter(|(structure, _)| VIEWS.contains(structure));
            let end = &before[before.len()..];
            let on = receiver(before, within(end).map(|block| block.structure));
            let meant = views.clone().filter(|(structure, _)| Some(*structure) == on).collect::<Vec<_>>();
            let meant = match on {
                Some(structure) if structure.is_empty() || !meant.is_empty() => meant,
                Some(structure) if structure != "Scheduler" && !VIEWS.contains(&structure) => meant,
                _ if defined.len() == 1 => views.collect(),
                _ => Vec::new(),
            };
            for (_, file) in meant {
                add(path, file, format!(".{name}()"));
            }
        }
    }
    edges
}

/// Files that need each other, directly or by others, the largest circle first.
fn circles<'s>(sources: &'s BTreeMap<String, Source>, edges: &Edges) -> Vec<BTreeSet<&'s str>> {
    let reach = |start: &'s str| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(file) = open.pop() {
            for next in edges.get(file).into_iter().flat_map(BTreeMap::keys) {
                if let Some((next, _)) = sources.get_key_value(next)
                    && reached.insert(next.as_str())
                {
                    open.push(next);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        sources.keys().map(|path| (path.as_str(), reach(path))).collect();
    let circle = |file: &&'s str| {
        let others = reached[file].iter().copied();
        others.filter(|other| reached[other].contains(file)).collect::<BTreeSet<_>>()
    };
    let circles = reached.keys().map(circle).filter(|circle| circle.len() > 1);
    let mut circles = circles.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

#[test]
fn no_circle_of_files_in_kernel_is_large() {
    let sources = sources();
    let edges = edges(&sources);
    assert!(sources.len() > 150 && edges.len() > 150, "{} files, {} with edges", sources.len(), edges.len());
    let mut violations = Vec::new();
    for circle in circles(&sources, &edges).into_iter().filter(|circle| circle.len() > LARGEST) {
        violations.push(format!("a circle of {} files, of {LARGEST}:", circle.len()));
        for &file in &circle {
            for (to, why) in edges[file].iter().filter(|(to, _)| circle.contains(to.as_str())) {
                let why = why.iter().take(4).map(String::as_str).collect::<Vec<_>>().join(", ");
                violations.push(format!("  {file} needs {to}: {why}"));
            }
        }
    }
    assert_none("what several files need of each other moves to where both find it", &violations);
}

fn made(files: &[(&str, &str)]) -> BTreeMap<String, Source> {
    let source = |&(path, text): &(&str, &str)| {
        (path.to_owned(), Source { module: module_of(path), code: without_tests(&bare(text)).0 })
    };
    files.iter().map(source).collect()
}

#[test]
fn paths_calls_and_what_is_passed_on_are_edges() {
    let sources = made(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "pub use inner::Thing;\nmod inner;\n"),
        ("a/inner.rs", "pub struct Thing;\nimpl Shared {\n    pub fn pick(&self) { self.place() }\n}\n"),
        ("b.rs", "use crate::a::{Thing, other::Absent};\nimpl Shared {\n    fn place(&self) {}\n}\n"),
        (
            "c.rs",
            "// use crate::b::Other;\nimpl Scheduler {\n    fn run(&self) { self.shared.pick() }\n}\n#[cfg(test)]\nmod tests { use crate::b; }\n",
        ),
    ]);
    let edges = edges(&sources);
    let to =
        |from: &str| edges.get(from).map(|to| to.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    assert_eq!(to("b.rs"), ["a.rs", "a/inner.rs"], "a name that is passed on counts where it is");
    assert_eq!(to("a/inner.rs"), ["b.rs"], "a method of a view");
    assert_eq!(to("c.rs"), ["a/inner.rs"], "neither comments nor tests");
    let circles = circles(&sources, &edges);
    assert_eq!(circles, [BTreeSet::from(["a/inner.rs", "b.rs"])]);
}

#[test]
fn strings_characters_and_braces_are_read() {
    assert_eq!(bare("a \"x // \\\" y\" b // c\nd '\\'' 'e' 'f, \u{201e}"), "a   b \nd     'f, \u{201e}");
    let paths = paths_of_use("crate::{a::{B, C}, d, e::*}");
    assert_eq!(paths, ["crate::a::B", "crate::a::C", "crate::d", "crate::e::*"]);
}
