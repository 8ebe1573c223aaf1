//! Going on with a folder whose runs were stopped: what is there stays, what is missing is run.
//!
//! Must not know: how runs are made.

use std::fs;
use std::io;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::{RunFolder, folder_of, spec};
use crate::{Experiment, LabError, OutputFolder, RunResult};

/// How many differences are named where a folder is another experiment's.
const DIFFERENCES_SHOWN: usize = 3;

/// A value is shown up to this length.
const VALUE_SHOWN: usize = 60;

impl RunFolder {
    /// Goes on with the folder `path`, or begins it where there is none. Gives the runs that are in it, which need not be made
    /// again. Until [`finish`](Self::finish) the folder stays as it is.
    ///
    /// # Errors
    /// It is no folder of runs, or the folder of another experiment: what differs is said.
    pub fn resume(path: &Path, experiment: &Experiment) -> Result<(RunFolder, Vec<RunResult>), LabError> {
        if !path.exists() {
            return RunFolder::create(path).map(|folder| (folder, Vec::new()));
        }
        let there = read(&path.join("spec.json"))?;
        let mut differences = Vec::new();
        differ("", &there, &spec(experiment), &mut differences);
        if !differences.is_empty() {
            differences.truncate(DIFFERENCES_SHOWN);
            let problem = format!("{} holds other runs: {}", path.display(), differences.join("; "));
            return Err(LabError::new(
                problem,
                "--resume continues one experiment; name another folder for --out",
            ));
        }
        let answer = read(&path.join("runs.json"))?;
        let runs = answer["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut folder = RunFolder { folder: OutputFolder::replace(path)?, kept: Vec::new() };
        let mut kept = Vec::new();
        for (index, run) in runs.iter().enumerate() {
            let run = result(run, path).ok_or_else(|| {
                let problem = format!("{}: run {} is none", path.join("runs.json").display(), index + 1);
                LabError::new(problem, "name another folder for --out")
            })?;
            let name = folder_of(run.side(), run.seed);
            let wanted = experiment.seeds.contains(&run.seed);
            if wanted && path.join(&name).is_dir() {
                copy(&path.join(&name), &folder.folder.path(&name))
                    .map_err(|error| folder.folder.failed(&error))?;
                folder.kept.push((run.side().to_string(), run.seed));
                kept.push(run);
            }
        }
        Ok((folder, kept))
    }
}

fn read(path: &Path) -> Result<Value, LabError> {
    let failed = |problem: String| {
        LabError::new(
            format!("{}: {problem}", path.display()),
            "give a folder that 'run --out' or 'compare --out' wrote, or a new one",
        )
    };
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| failed(error.to_string()))
}

/// Where two specs differ: `seeds: [1,2] there, [1,2,3] here`.
fn differ(name: &str, there: &Value, here: &Value, found: &mut Vec<String>) {
    if let (Value::Object(one), Value::Object(other)) = (there, here) {
        let names = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
        for key in names {
            let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            differ(&name, &there[key], &here[key], found);
        }
    } else if there != here {
        found.push(format!("{name} is {} there, {} here", shown(there), shown(here)));
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE_SHOWN) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// A run as `runs.json` has it, with what its program printed. The rest stays in its files.
fn result(run: &Value, folder: &Path) -> Option<RunResult> {
    let mut run = RunResult::deserialize(run).ok()?;
    let output = folder.join(folder_of(run.side(), run.seed)).join("output.txt");
    run.output = fs::read_to_string(output).unwrap_or_default();
    Some(run)
}

/// Copies a folder with all that is in it. Links are not followed.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, to) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &to)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_named() {
        let (one, other) = (
            json!({ "a": { "b": 1, "c": 2 }, "d": [1] }),
            json!({ "a": { "b": 1, "c": 3 }, "e": 4, "d": [1] }),
        );
        let mut found = Vec::new();
        differ("", &one, &other, &mut found);
        assert_eq!(found, ["a.c is 2 there, 3 here", "e is null there, 4 here"]);
        found.clear();
        differ("", &one, &one, &mut found);
        assert!(found.is_empty());
    }
}
