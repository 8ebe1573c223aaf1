//! From a file's text to a [`MixPlan`].
//!
//! Must not know: how files are had, how a plan is carried out.

use std::collections::BTreeMap;

use fairlab_event::Ns;
use fairlab_event::spelling::may_be_meant;
use fairlab_kernel::CpuMask;
use toml::{Table, Value};

use super::agenda::LauncherAction;
use super::changed_keys::{ChangedKey, change};
use super::containers::{self, NamedGroup};
use super::lines::{self, KeyLines};
use super::member::MixEntry;
use super::place::{self, KeyError, MemberPlace, take, text, whole, yes_or_no};
use crate::workload::Workload;
use crate::workload::cgroup::{GroupFile, GroupSpec};

/// What a file says.
#[derive(Default)]
pub(super) struct MixPlan {
    /// By their paths; a group stands behind those above it.
    pub groups: Vec<GroupSpec>,
    pub entries: Vec<MixEntry>,
    /// Writes and moves, by time.
    pub events: Vec<(Ns, LauncherAction)>,
    /// The workload that it is run for and ends with.
    pub main: Option<usize>,
}

/// More workloads than these nobody tells apart.
pub(super) const WORKLOADS_MAX: usize = 1000;

/// Builds the workload of a command line, or of the tables in which tasks are defined.
pub(super) trait BuildMember {
    /// From a command line.
    fn command(&self, words: &[String]) -> Result<Box<dyn Workload>, String>;
    /// From tables of tasks, locks and queues.
    fn tasks(&self, table: &Table) -> Result<Box<dyn Workload>, String>;
}

/// Words of a workload beside `run` and the tables of tasks.
const WORKLOAD_WORDS: &str = "name, group, session, policy, nice, slice, cpus, start, stop, main";

/// Words of a table that tells tasks.
const TASK_WORDS: &[&str] = &["task", "lock", "queue", "barrier"];

/// Reads a file, with some keys changed; `stem` is what a lone workload in it is called.
///
/// # Errors
/// The line, and what is wrong there.
pub(super) fn read(
    source: &str,
    stem: &str,
    changes: &[ChangedKey],
    build: &dyn BuildMember,
) -> Result<MixPlan, (usize, String)> {
    let (mut table, lines) = lines::read(source)?;
    // What is not in the file is in no line of it.
    changes.iter().try_for_each(|one| change(&mut table, one)).map_err(|problem| (0, problem))?;
    let mut reader = MixReader { plan: MixPlan::default(), lines: &lines, build, names: BTreeMap::new() };
    reader.file(table, stem).map_err(|wrong| (lines.of(&wrong.key), wrong.to_string()))?;
    Ok(reader.plan)
}

/// The command line of the workload that a file is run for; `None` where tasks define it, or the file is none.
pub(super) fn main_command(source: &str, changes: &[ChangedKey]) -> Option<Vec<String>> {
    let mut table = source.parse::<Table>().ok()?;
    changes.iter().try_for_each(|one| change(&mut table, one)).ok()?;
    let list = table.get("workload")?.as_array()?;
    let is_main = |one: &&Value| one.get("main").and_then(Value::as_bool) == Some(true);
    let chosen = list.iter().find(is_main).or(list.first())?;
    words(chosen.get("run")?).ok()
}

/// The keys of the task and the step with which a problem of a workload's tasks begins (`task 'a': step 2, 'slep': …` is at
/// `task[0].steps[1]`), and the rest of it.
fn step_of<'p>(table: &Table, problem: &'p str) -> Option<(String, &'p str)> {
    let (name, mut rest) = problem.strip_prefix("task '")?.split_once("': ")?;
    let named = |task: &Value| task.get("name").and_then(Value::as_str) == Some(name);
    let index = table.get("task")?.as_array()?.iter().position(named)?;
    let mut key = format!("task[{index}]");
    while let Some((number, after)) = rest.strip_prefix("step ").and_then(|rest| rest.split_once([',', ':']))
    {
        key += &format!(".steps[{}]", number.parse::<usize>().ok()?.checked_sub(1)?);
        rest = after.trim_start();
    }
    if let Some((word, _)) = rest.strip_prefix("a task has no '").and_then(|rest| rest.split_once('\'')) {
        key += &format!(".{word}");
    }
    Some((key, rest))
}

/// What is said of a key that is an option of the commands, and no part of a workload.
fn option_for(key: &str) -> Option<String> {
    let option = match key.trim_end_matches("_ms") {
        "duration" => "--duration",
        "warmup" => "--warmup",
        "machine" | "machines" => "--machine",
        "kernel" | "kernels" => "--kernel",
        "seed" | "seeds" => "--seeds",
        "runs" => "--runs",
        _ => return None,
    };
    Some(format!("no key of a workload file: give the command {option}"))
}

struct MixReader<'r> {
    plan: MixPlan,
    lines: &'r KeyLines,
    build: &'r dyn BuildMember,
    /// Names of workloads, and how often each is taken.
    names: BTreeMap<String, usize>,
}

impl MixReader<'_> {
    fn file(&mut self, mut table: Table, stem: &str) -> Result<(), KeyError> {
        let named = containers::take_groups(&mut table)?;
        named.iter().try_for_each(|group| self.named_group(group))?;
        containers::put_paths(&mut table, &named)?;
        let groups = take(&mut table, "group", table_of)?.unwrap_or_default();
        for (path, files) in &groups {
            self.group(path, files).map_err(|wrong| wrong.below("group"))?;
        }
        let events = take(&mut table, "at", tables_of)?.unwrap_or_default();
        let workloads = take(&mut table, "workload", tables_of)?;
        match workloads {
            None if table.keys().any(|key| TASK_WORDS.contains(&key.as_str())) => {
                self.workload(std::mem::take(&mut table), "", Some(stem))?;
                self.plan.main = Some(0);
            }
            None => {
                let other = [
                    ("topology", "this is a machine file: give it to --machine"),
                    ("workloads", "this is a sweep file: 'fairlab sweep' runs it"),
                    ("claim", "this is a report file: 'fairlab scenario run' runs it"),
                ];
                if let Some((key, kind)) = other.iter().find(|(key, _)| table.contains_key(*key)) {
                    return Err(KeyError::new(*key, *kind));
                }
                return Err(KeyError::new(
                    "workload",
                    "there is none: write [[workload]] with run = \"…\", or [[task]]",
                ));
            }
            Some(list) => {
                if list.is_empty() || list.len() > WORKLOADS_MAX {
                    let problem = format!("{} workloads are not from 1 to {WORKLOADS_MAX}", list.len());
                    return Err(KeyError::new("workload", problem));
                }
                for (number, one) in list.into_iter().enumerate() {
                    self.workload(one, &format!("workload[{number}]."), None)?;
                }
            }
        }
        if let Some(key) = table.keys().next() {
            const HAS: &str = "a file has [group.\"/PATH\"], [pod.NAME], [container.NAME], [unit.NAME], [[workload]] and [[at]], or [[task]] and what 'tasks' has";
            let words = ["group", "workload", "at", "task", "weights"].into_iter().chain(containers::TABLES);
            let meant = may_be_meant(key, words);
            return Err(KeyError::new(key, option_for(key).unwrap_or_else(|| format!("{meant}{HAS}"))));
        }
        self.events(events)
    }

    /// The group of a pod, a container or a unit. What `[group]` says of it comes later and goes before.
    fn named_group(&mut self, group: &NamedGroup) -> Result<(), KeyError> {
        let wrong = |wrong: KeyError| wrong.below(&group.name);
        let path =
            place::group_path(&group.path).map_err(|problem| KeyError::new(group.name.as_str(), problem))?;
        let Some(number) = self.group_at(&path) else { return Ok(()) };
        write(&mut self.plan.groups[number], &group.files).map(drop).map_err(wrong)
    }

    /// A group and its files.
    fn group(&mut self, path: &str, files: &Value) -> Result<(), KeyError> {
        let wrong = |problem: String| KeyError::new(path, problem);
        let known = place::group_path(path).map_err(wrong)?;
        let Some(number) = self.group_at(&known) else {
            return Err(wrong("the root group has no such files".to_string()));
        };
        let files = files_of(&table_of(files).map_err(wrong)?).map_err(|wrong| wrong.below(path))?;
        write(&mut self.plan.groups[number], &files).map(drop).map_err(|wrong| wrong.below(path))
    }

    /// The group at a path, made with those above it where nothing has named it; `None`: the root.
    fn group_at(&mut self, path: &str) -> Option<usize> {
        let (mut above, mut name) = (None, String::new());
        for part in path.split('/').filter(|part| !part.is_empty()) {
            name += &format!("/{part}");
            let known = self.plan.groups.iter().position(|group| group.name == name);
            above = Some(known.unwrap_or_else(|| {
                self.plan.groups.push(GroupSpec { parent: above, ..GroupSpec::new(name.as_str()) });
                self.plan.groups.len() - 1
            }));
        }
        above
    }

    /// A workload, whose keys are below `at`; a lone one is called `lone`.
    fn workload(&mut self, mut table: Table, at: &str, lone: Option<&str>) -> Result<(), KeyError> {
        let here = |wrong: KeyError| KeyError { key: format!("{at}{}", wrong.key), ..wrong };
        let run = take(&mut table, "run", words).map_err(here)?;
        let name = take(&mut table, "name", name).map_err(here)?;
        let session = take(&mut table, "session", session).map_err(here)?.flatten();
        let start = take(&mut table, "start", time).map_err(here)?.unwrap_or(Ns::ZERO);
        let stop = take(&mut table, "stop", time).map_err(here)?;
        let is_main = take(&mut table, "main", yes_or_no).map_err(here)?.unwrap_or(false);
        let place = MemberPlace::take(&mut table).map_err(here)?;
        if stop.is_some_and(|stop| stop <= start) {
            return Err(here(KeyError::new("stop", "it stops before it has started")));
        }
        if is_main && self.plan.main.replace(self.plan.entries.len()).is_some() {
            return Err(here(KeyError::new("main", "another workload is the main one already")));
        }
        let first = run.as_ref().map(|run| run[0].as_str()).or(lone);
        let otherwise =
            first.map(|first| first.rsplit('/').next().unwrap_or(first).trim_end_matches(".toml"));
        let name = self
            .name(name, otherwise.unwrap_or("tasks"))
            .map_err(|problem| here(KeyError::new("name", problem)))?;
        let says = run.as_ref().map_or("tasks of this file".to_string(), |run| run.join(" "));
        let workload = match run {
            Some(run) => {
                if let Some(key) = table.keys().next() {
                    let meant = may_be_meant(key, WORKLOAD_WORDS.split(", "));
                    let has = || format!("{meant}a workload has run or tasks, and {WORKLOAD_WORDS}");
                    return Err(here(KeyError::new(key, option_for(key).unwrap_or_else(has))));
                }
                self.build.command(&run).map_err(|problem| here(KeyError::new("run", problem)))?
            }
            None if !table.contains_key("task") => {
                let problem = "it has neither run = \"COMMAND\" nor tasks".to_string();
                return Err(KeyError::new(at.trim_end_matches('.'), problem));
            }
            None => self.tasks(&table, at)?,
        };
        let group = place.group.as_deref().and_then(|path| self.group_at(path));
        self.plan.entries.push(MixEntry { name, says, place, group, session, start, stop, workload });
        Ok(())
    }

    fn tasks(&self, table: &Table, at: &str) -> Result<Box<dyn Workload>, KeyError> {
        // Tasks may end by themselves.
        let asked = table.keys().filter(|key| *key != "duration");
        if let Some((key, option)) = asked.filter_map(|key| Some((key, option_for(key)?))).next() {
            return Err(KeyError::new(format!("{at}{key}"), option));
        }
        self.build.tasks(table).map_err(|problem| {
            let (key, rest) = match step_of(table, &problem) {
                Some((key, rest)) => self.lines.split(&format!("{at}{key}."), rest),
                None => self.lines.split(at, &problem),
            };
            KeyError::new(key, rest)
        })
    }

    /// The name of a workload: what is said, or else `otherwise`, numbered where it is taken.
    fn name(&mut self, said: Option<String>, otherwise: &str) -> Result<String, String> {
        if let Some(said) = said {
            return match self.names.insert(said.clone(), 1) {
                Some(_) => Err(format!("two workloads are called '{said}'")),
                None => Ok(said),
            };
        }
        let mut name = otherwise.to_string();
        for number in 2.. {
            if self.names.insert(name.clone(), 1).is_none() {
                break;
            }
            name = format!("{otherwise}-{number}");
        }
        Ok(name)
    }

    /// Moves and writes, which are tried on the groups in order of time.
    fn events(&mut self, list: Vec<Table>) -> Result<(), KeyError> {
        let mut events = Vec::new();
        for (number, mut table) in list.into_iter().enumerate() {
            let at = format!("at[{number}]");
            let here = |wrong: KeyError| wrong.below(&at);
            let time = take(&mut table, "time", time).map_err(here)?;
            let time = time.ok_or_else(|| KeyError::new(at.as_str(), "time = \"5s\" is missing"))?;
            let moved = take(&mut table, "move", |value| Ok(text(value)?.to_string())).map_err(here)?;
            match moved {
                Some(moved) => {
                    let deed = self.moved(&moved, table).map_err(here)?;
                    events.push((time, at, MixEvent::Move(deed)));
                }
                None => {
                    let (group, files) = self.written(table).map_err(here)?;
                    events.push((time, at, MixEvent::Write(group, files)));
                }
            }
        }
        events.sort_by_key(|&(time, ..)| time);
        let mut groups = self.plan.groups.clone();
        for (time, at, event) in events {
            match event {
                MixEvent::Move(deed) => self.plan.events.push((time, deed)),
                MixEvent::Write(group, files) => {
                    let told = write(&mut groups[group], &files).map_err(|wrong| wrong.below(&at))?;
                    self.plan
                        .events
                        .extend(told.into_iter().map(|file| (time, LauncherAction::Write { group, file })));
                }
            }
        }
        self.begin_cpusets();
        Ok(())
    }

    fn moved(&mut self, moved: &str, mut table: Table) -> Result<LauncherAction, KeyError> {
        let known = self.plan.entries.iter().position(|entry| entry.name == moved);
        let member = known.ok_or_else(|| {
            let names = self.plan.entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>();
            KeyError::new("move", format!("no workload is called '{moved}': there are {}", names.join(", ")))
        })?;
        let to = take(&mut table, "to", |value| place::group_path(text(value)?))?;
        let to = to.ok_or_else(|| KeyError::new("move", "to = \"/GROUP\" is missing"))?;
        match table.keys().next() {
            Some(key) => Err(KeyError::new(key, "a move has time, move and to")),
            None => Ok(LauncherAction::Move { member, group: self.group_at(&to) }),
        }
    }

    fn written(&mut self, mut table: Table) -> Result<(usize, Vec<(String, String)>), KeyError> {
        let path = take(&mut table, "group", |value| place::group_path(text(value)?))?;
        let path = path.ok_or_else(|| {
            KeyError::new("time", "it says neither move = \"WORKLOAD\" nor group = \"/PATH\"")
        })?;
        let group = self.group_at(&path);
        let group = group.ok_or_else(|| KeyError::new("group", "the root group has no such files"))?;
        let files = files_of(&table)?;
        match files.is_empty() {
            true => Err(KeyError::new(
                "group",
                "nothing is written: cpu.weight, cpu.max, cpu.max.burst, cpu.idle, cpuset.cpus",
            )),
            false => Ok((group, files)),
        }
    }

    /// A group whose CPUs are written later has a cpuset from the start: all CPUs.
    fn begin_cpusets(&mut self) {
        for &(_, deed) in &self.plan.events {
            if let LauncherAction::Write { group, file: GroupFile::Cpus(_) } = deed {
                self.plan.groups[group].cpus.get_or_insert(CpuMask::ALL);
            }
        }
    }
}

enum MixEvent {
    Move(LauncherAction),
    Write(usize, Vec<(String, String)>),
}

/// Writes to a group's files what the kernel takes.
fn write(group: &mut GroupSpec, files: &[(String, String)]) -> Result<Vec<GroupFile>, KeyError> {
    let pairs = files.iter().map(|(file, value)| (file.as_str(), value.as_str())).collect::<Vec<_>>();
    let told = group.write(&pairs).map_err(|(file, problem)| KeyError::new(file, problem))?;
    let weighs = pairs.iter().any(|(file, _)| *file == "cpu.weight");
    match weighs && group.idle {
        true => Err(KeyError::new("cpu.weight", "the kernel takes no weight of a group that is idle")),
        false => Ok(told),
    }
}

/// Names and values of a group's files, however they are nested.
fn files_of(table: &Table) -> Result<Vec<(String, String)>, KeyError> {
    let mut files = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(below) => {
                let below = files_of(below).map_err(|wrong| wrong.below(key))?;
                files.extend(below.into_iter().map(|(file, value)| (format!("{key}.{file}"), value)));
            }
            _ => files.push((key.clone(), written_as(value).map_err(|problem| KeyError::new(key, problem))?)),
        }
    }
    Ok(files)
}

fn written_as(value: &Value) -> Result<String, String> {
    match value {
        Value::Integer(number) => Ok(number.to_string()),
        Value::String(text) => Ok(text.clone()),
        Value::Boolean(yes) => Ok(u8::from(*yes).to_string()),
        Value::Array(_) => Ok(place::cpus(value)?.to_string()),
        other => Err(format!("a number or a text is needed, not {}", place::kind(other))),
    }
}

fn table_of(value: &Value) -> Result<Table, String> {
    value.as_table().cloned().ok_or_else(|| format!("a table is needed, not {}", place::kind(value)))
}

/// `[[name]]`; one `[name]` is a list of one.
fn tables_of(value: &Value) -> Result<Vec<Table>, String> {
    match value {
        Value::Array(list) => list.iter().map(table_of).collect(),
        other => Ok(vec![table_of(other)?]),
    }
}

fn time(value: &Value) -> Result<Ns, String> {
    place::time(text(value)?)
}

/// `true`, `false`, or the nice level of the session's autogroup.
fn session(value: &Value) -> Result<Option<i32>, String> {
    match value {
        Value::Boolean(begins) => Ok(begins.then_some(0)),
        Value::Integer(_) => Ok(Some(whole(value, -20..=19)? as i32)),
        other => Err(format!("true, false or a nice level is needed, not {}", place::kind(other))),
    }
}

/// A command line: a text as a shell takes it, or a list of words.
fn words(value: &Value) -> Result<Vec<String>, String> {
    let words = match value {
        Value::Array(list) => {
            list.iter().map(|word| Ok(text(word)?.to_string())).collect::<Result<Vec<_>, String>>()?
        }
        _ => shlex::split(text(value)?).ok_or("a quotation mark is not closed")?,
    };
    if words.is_empty() { Err("it is empty".to_string()) } else { Ok(words) }
}

/// The longest name of a workload.
const NAME_MAX: usize = 64;

/// A name that stands as one word before a metric's name.
fn name(value: &Value) -> Result<String, String> {
    let name = text(value)?;
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    match !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_plain) {
        true => Ok(name.to_string()),
        false => Err(format!("'{}' is no name: letters, digits, '_', '-' and '.'", name.escape_default())),
    }
}
