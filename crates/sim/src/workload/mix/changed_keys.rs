//! Keys of a mix's file that a command line gives other values: `FILE.toml --set group./db.cpu.weight=39`.
//!
//! A key is the way to a value, as the file's own dotted keys are. Of a list of tables, a part of it is the name of one: `task.worker.count`.
//!
//! Must not know: what a key means.

use toml::{Table, Value};

/// A key and its value.
pub type ChangedKey = (String, String);

/// Takes the keys that are changed apart from the file.
///
/// # Errors
/// What stands behind the file is no change.
pub(super) fn split(rest: &[String]) -> Result<Vec<ChangedKey>, String> {
    rest.chunks(2)
        .map(|words| match words {
            [word, change] if word == "--set" => match change.split_once('=') {
                Some((key, value)) if !key.is_empty() => Ok((key.to_string(), value.to_string())),
                _ => Err(format!("--set '{change}' is no KEY=VALUE, such as group./db.cpu.weight=39")),
            },
            [word] if word == "--set" => Err("--set needs KEY=VALUE".to_string()),
            [word, ..] if word.starts_with("--") => {
                Err(format!("'{word}' is an option of neither mix nor the command"))
            }
            _ => Err(format!("'{}' stands behind the file; --beside COMMAND goes before it", words[0])),
        })
        .collect()
}

/// Gives a key of `table` another value, or a value at all. A text stays a text; what else is no number, truth value or list is one, too.
///
/// # Errors
/// The way leads nowhere.
pub(super) fn change(table: &mut Table, (key, value): &ChangedKey) -> Result<(), String> {
    let failed = |problem: String| format!("--set {key}: {problem}");
    let (mut here, mut rest) = (table, key.as_str());
    loop {
        let Some((part, after)) = longest_key(here, rest) else {
            here.insert(rest.to_string(), of_text(value));
            return Ok(());
        };
        let known = here.get_mut(&part).ok_or_else(|| failed(format!("there is no '{part}'")))?;
        let Some(after) = after else {
            *known = if known.is_str() { Value::String(value.clone()) } else { of_text(value) };
            return Ok(());
        };
        rest = after;
        here = match known {
            Value::Table(table) => table,
            Value::Array(list) => {
                let (table, after) =
                    named(list, rest).map_err(|problem| failed(format!("{part}: {problem}")))?;
                rest = after;
                table
            }
            _ => return Err(failed(format!("'{part}' is one value, and has nothing below"))),
        };
    }
}

/// The longest key of a table with which a way begins, and what is left of that; names of groups have dots in them.
fn longest_key<'w>(table: &Table, way: &'w str) -> Option<(String, Option<&'w str>)> {
    let begins = |key: &&String| {
        way == key.as_str() || way.strip_prefix(key.as_str()).is_some_and(|rest| rest.starts_with('.'))
    };
    let key = table.keys().filter(begins).max_by_key(|key| key.len())?;
    Some((key.clone(), way[key.len()..].strip_prefix('.')))
}

/// The table of a list that a way names first: by its name, by the command that it runs, or by its number from 1 on.
fn named<'l, 'w>(list: &'l mut [Value], way: &'w str) -> Result<(&'l mut Table, &'w str), String> {
    let names = list.iter().enumerate().map(|(place, one)| {
        let text = |key: &str| one.get(key).and_then(Value::as_str);
        let run = text("run").and_then(|run| run.split_whitespace().next());
        text("name").or(run).map_or_else(|| (place + 1).to_string(), String::from)
    });
    let names = names.collect::<Vec<_>>();
    let after = |name: &str| way.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
    let found = names.iter().enumerate().filter_map(|(place, name)| {
        let numbered = (place + 1).to_string();
        after(name).or_else(|| after(&numbered)).map(|rest| (place, name.len(), rest))
    });
    let found = found.max_by_key(|&(_, length, _)| length);
    let (place, _, rest) =
        found.ok_or_else(|| format!("none is called so; there are {}", names.join(", ")))?;
    let table = list[place].as_table_mut().ok_or("it is no list of tables")?;
    Ok((table, rest))
}

fn of_text(text: &str) -> Value {
    let read = format!("value = {text}").parse::<Table>().ok();
    let read = read.and_then(|mut table| table.remove("value").filter(|_| table.is_empty()));
    read.unwrap_or_else(|| Value::String(text.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[group.'/a.slice']\ncpu.weight = 39\ncpu.max = '1000 2000'\n[[workload]]\nname = 'service'\ncpus = '0'\n\
                        [[workload.task]]\nname = 'go.proc'\ncount = 24\n[[workload]]\nrun = 'pipe -l 3'\nnice = 2\n";

    fn changed(key: &str, value: &str) -> Result<String, String> {
        let mut table = FILE.parse::<Table>().expect("a table");
        change(&mut table, &(key.to_string(), value.to_string()))?;
        Ok(toml::to_string(&table).expect("text"))
    }

    #[test]
    fn a_way_leads_through_names_with_dots_and_lists() {
        for (key, value, line) in [
            ("group./a.slice.cpu.weight", "100", "weight = 100"),
            ("group./a.slice.cpu.max", "5 6", "max = \"5 6\""),
            ("group./a.slice.cpu.idle", "1", "idle = 1"),
            ("workload.service.task.go.proc.count", "4", "count = 4"),
            ("workload.service.cpus", "3", "cpus = \"3\""),
            ("workload.pipe.nice", "-5", "nice = -5"),
            ("workload.2.run", "hackbench -g 1", "run = \"hackbench -g 1\""),
        ] {
            let text = changed(key, value).unwrap_or_else(|problem| panic!("{key}: {problem}"));
            assert!(text.lines().any(|found| found == line), "{key}: {text}");
            assert!(!FILE.contains(line), "{key}");
        }
        for (key, problem) in [
            ("workload.nobody.nice", "none is called so; there are service, pipe"),
            ("workload.service.cpus.x", "'cpus' is one value"),
        ] {
            assert!(changed(key, "1").is_err_and(|told| told.contains(problem)), "{key}");
        }
    }

    #[test]
    fn what_stands_behind_a_file_is_a_change() {
        let of = |text: &str| split(&text.split(' ').map(String::from).collect::<Vec<_>>());
        assert_eq!(of("--set a.b=c=d"), Ok(vec![("a.b".to_string(), "c=d".to_string())]));
        for wrong in ["--set a", "--set =3", "--set", "--sat a=b", "x"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
