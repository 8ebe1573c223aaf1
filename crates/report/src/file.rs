//! A report's file: what it says of runs, figures and claims, and what is wrong with one that says something else.
//!
//! A report is TOML, with its story as Markdown beside it. Keys at the top are common to all sides; each `[side.NAME]` says what it
//! changes. A side is a set of runs, a kernel a row.
//!
//! Must not know: any report, how runs are made.

use std::collections::BTreeMap;

use fairlab_analysis::by_name::NamesWanted;
use fairlab_event::Ns;
use fairlab_files::{complaint, line_at};
use fairlab_kernel::generation::LOG;
use fairlab_lab::LabError;
use fairlab_lab::kernel::origin_of;
use fairlab_lab::names::{ShownMetrics, metrics_of};
use fairlab_lab::provenance::Origin;
use serde::Deserialize;
use toml::{Table, Value};

use super::claim::ReportClaim;
use super::reported_run::ReportedRun;
use super::told::Tell;
use fairlab_analysis::watched::Watched;

/// A published report that can be reproduced.
#[derive(Clone, Debug, Deserialize)]
pub struct Scenario {
    /// Its name on the command line: that of its file.
    #[serde(skip)]
    pub name: String,
    /// What it is about, in a sentence.
    pub title: String,
    /// The report: its author, place and date.
    pub source: String,
    /// The commit that is guilty or helpful, with its subject.
    pub commit: String,
    /// The two kernels that differ by it, the older one first: what to try another workload on.
    pub pair: [String; 2],
    /// The report's machine.
    pub machine: String,
    /// The report's workload on a few CPUs, for kernels that are not modelled.
    pub small: Small,
    /// From when on its runs are measured, and why: a sentence.
    pub(crate) measured: String,
    /// What is common to all sides.
    #[serde(skip)]
    common: Table,
    #[serde(default)]
    quick: Table,
    side: BTreeMap<String, Table>,
    /// What sides and story take rows from.
    #[serde(default)]
    pub(crate) data: Table,
    /// Figures of runs of one name, by expression.
    #[serde(default)]
    pub(crate) figure: BTreeMap<String, String>,
    /// What is counted of some tasks.
    #[serde(default)]
    pub(crate) watch: BTreeMap<String, Watched>,
    /// Runs that are told.
    #[serde(default)]
    pub(crate) told: BTreeMap<String, Tell>,
    /// The search for the commit.
    search: Option<Table>,
    /// All sides with these two kernels, compared as one family.
    pub(crate) family: Option<Family>,
    /// The report's run, where other kernels can make it.
    pub(crate) reported: Option<ReportedRun>,
    /// The claims, in the order in which they are read.
    #[serde(default, rename = "claim")]
    pub(crate) claims: Vec<ReportClaim>,
    /// The story, a template.
    #[serde(skip)]
    pub(crate) story: String,
}

/// A report's workload in a size that a booted kernel can carry.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Small {
    /// Its command line.
    pub workload: String,
    /// The machine of the kernels beside.
    pub machine: String,
    /// When to stop it, ms.
    pub duration_ms: u64,
}

/// Comparisons that take account of how many there are.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Family {
    /// Before and after.
    pub kernels: [String; 2],
    /// The metric: the first one that all runs of a side have.
    pub metrics: Vec<String>,
}

/// Runs of one name: they differ in their seeds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    /// The side.
    #[serde(default)]
    pub side: String,
    /// The name among the side's runs; the kernel, if nothing else is said.
    #[serde(default)]
    pub name: String,
    /// The name of the kernel.
    pub kernel: String,
    /// The machine's name.
    pub machine: String,
    /// The workload's command line.
    pub workload: String,
    /// For how long, in virtual time, ms.
    pub duration_ms: u64,
    /// How long it settles before it is measured, ms; without, as long as the machine needs.
    pub warmup_ms: Option<u64>,
    /// From when on what is watched or counted by the scheduler counts, ms.
    #[serde(default)]
    from_ms: u64,
    /// Metrics beside those that every run has.
    #[serde(default)]
    metrics: Vec<String>,
    /// How many seeds.
    #[serde(default = "one")]
    pub runs: u64,
    /// Ticks a second, where they are not the machine's.
    pub hz: Option<u64>,
    /// By how much each run is shortened.
    #[serde(default = "one")]
    pub shorter: u64,
    /// Its runs count together with those of other sides of this pool, too, under the pool's name.
    #[serde(default)]
    pub pool: Vec<String>,
    /// Its part of the report puts real kernels beside modelled ones, which can be booted.
    #[serde(default)]
    pub booted: bool,
    /// Names of the figures that were written down of a real kernel.
    columns: Option<Vec<String>>,
    /// These figures.
    recorded: Option<Vec<f64>>,
    /// The modelled kernel that decisions of a booted one are held against.
    pub model: Option<String>,
}

fn one() -> u64 {
    1
}

impl Plan {
    /// For how long, in virtual time.
    pub fn duration(&self) -> Ns {
        Ns(self.duration_ms * 1_000_000 / self.shorter)
    }

    /// The plan of a pool's runs, of which there are none yet.
    pub fn of_pool(&self, pool: &str) -> Plan {
        Plan { side: pool.to_string(), runs: 0, ..self.clone() }
    }

    /// What is measured beside what every run measures.
    pub fn wanted(&self) -> Result<NamesWanted, LabError> {
        Ok(ShownMetrics::default().wanted(&metrics_of(&[], &self.metrics)?))
    }

    /// From when on what is watched counts.
    pub fn from(&self) -> Ns {
        Ns::from_ms(self.from_ms)
    }

    /// What was written down of a real kernel; nothing of runs that are made.
    pub fn recorded(&self) -> Option<BTreeMap<String, f64>> {
        let figures = self.recorded.as_ref()?;
        let columns = self.columns.iter().flatten().cloned();
        Some(columns.zip(figures.iter().copied()).collect())
    }
}

/// What is wrong, and what to do.
type Wrong = (String, String);

/// The commit that is searched for.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    /// A kernel before it.
    pub good: String,
    /// One after it.
    pub bad: String,
    /// What decides.
    pub question: String,
    /// The runs.
    pub plan: Plan,
}

impl Scenario {
    /// A report of a file's text.
    ///
    /// # Errors
    /// It says something that a report does not.
    pub fn parse(name: &str, text: &str, story: &str) -> Result<Scenario, LabError> {
        let refused = |line: usize, problem: String| {
            let hint = "'fairlab scenario keys' lists what a report's file holds";
            LabError::new(format!("report {name}: line {line}: {problem}"), hint)
        };
        let wrong = |error: toml::de::Error| refused(line_at(text, error.span()), complaint(error.message()));
        let report: Scenario = toml::from_str(text).map_err(wrong)?;
        let mut common: Table = toml::from_str(text).map_err(wrong)?;
        let is_known = |key: &String| KEYS.contains(&key.as_str()) || SIDE_KEYS.contains(&key.as_str());
        if let Some(unknown) = common.keys().find(|key| !is_known(key)) {
            let place = text.lines().position(|line| line.trim_start_matches('[').starts_with(unknown));
            return Err(refused(place.map_or(1, |place| place + 1), format!("unknown key '{unknown}'")));
        }
        common.retain(|key, _| SIDE_KEYS.contains(&key));
        let report = Scenario { name: name.to_string(), story: story.to_string(), common, ..report };
        for quick in [false, true] {
            report.plans(quick)?;
        }
        report.search(false)?;
        let texts = report.claims.iter().flat_map(|claim| [&claim.text, &claim.measured]);
        let are_modelled = report.pair.iter().all(|kernel| origin_of(kernel) == Origin::Modelled);
        if let Some(unknown) = [&report.commit].into_iter().chain(texts).find_map(|text| unknown_commit(text))
            && are_modelled
        {
            let problem = format!("report {name}: commit {unknown} is not in the log");
            return Err(LabError::new(problem, "'fairlab kernels log' lists its commits"));
        }
        for claim in &report.claims {
            if let Some(lacks) = claim.lacks() {
                let problem = format!("report {name}: claim '{}' lacks {lacks}", claim.text);
                return Err(LabError::new(problem, "'fairlab scenario keys' lists what a claim holds"));
            }
        }
        Ok(report)
    }

    /// All runs, side by side; `quick`: shorter and fewer.
    ///
    /// # Errors
    /// A side's keys do not make a run.
    pub(crate) fn plans(&self, quick: bool) -> Result<Vec<Plan>, LabError> {
        let mut plans = Vec::<Plan>::new();
        for (name, side) in &self.side {
            let of_side = self.plans_of(name, side, quick).map_err(|(problem, hint)| {
                LabError::new(format!("report {}: side '{name}': {problem}", self.name), hint)
            })?;
            for plan in of_side {
                if !plans.iter().any(|known| known.side == plan.side && known.name == plan.name) {
                    plans.push(plan);
                }
            }
        }
        Ok(plans)
    }

    /// The runs in which the commit is searched for.
    ///
    /// # Errors
    /// Their keys do not make a run.
    pub(crate) fn search(&self, quick: bool) -> Result<Option<Search>, LabError> {
        let Some(search) = &self.search else { return Ok(None) };
        let refused =
            |(problem, hint): Wrong| LabError::new(format!("report {}: search: {problem}", self.name), hint);
        let mut side = search.clone();
        let mut word = |key: &str| match side.remove(key) {
            Some(Value::String(word)) => Ok(word),
            _ => Err(refused((format!("no {key}"), "name good, bad and question".to_string()))),
        };
        let (good, bad, question) = (word("good")?, word("bad")?, word("question")?);
        side.insert("kernels".to_string(), Value::Array(vec![Value::String(good.clone())]));
        let plans = self.plans_of("search", &side, quick).map_err(refused)?;
        Ok(plans.into_iter().next().map(|plan| Search { good, bad, question, plan }))
    }

    fn plans_of(&self, name: &str, side: &Table, quick: bool) -> Result<Vec<Plan>, Wrong> {
        let mut side = side.clone();
        let mut of_side_quick = table_of(side.remove("quick"));
        let (each, fewer) = (side.remove("each"), of_side_quick.remove("each"));
        let rows = match fewer.filter(|_| quick).or(each) {
            None => vec![Table::new()],
            Some(each) => self.rows(&each)?,
        };
        let mut plans = Vec::new();
        for row in rows {
            let mut base = self.common.clone();
            base.extend(side.clone());
            base.extend(row.clone().into_iter().filter(|(key, _)| SIDE_KEYS.contains(&key.as_str())));
            let kernels = match base.remove("kernels") {
                Some(Value::Array(kernels)) => kernels,
                _ => base.get("kernel").cloned().into_iter().collect(),
            };
            if kernels.is_empty() {
                return Err(("it names no kernels".to_string(), "write kernels = ['v6.6']".to_string()));
            }
            for kernel in kernels {
                let mut plan = base.clone();
                match kernel {
                    Value::Table(changes) => plan.extend(changes),
                    kernel => drop(plan.insert("kernel".to_string(), kernel)),
                }
                if quick {
                    plan.extend(self.quick.clone());
                    plan.extend(of_side_quick.clone());
                }
                plan.insert("side".to_string(), Value::String(name.to_string()));
                plans.push(plan_of(plan, &row)?);
            }
        }
        Ok(plans)
    }

    fn rows(&self, each: &Value) -> Result<Vec<Table>, Wrong> {
        let name = each.as_str().unwrap_or_default();
        let rows = self.data.get(name).and_then(Value::as_array).ok_or_else(|| {
            (format!("no rows are called {each}"), "name an array of tables under [data]".to_string())
        })?;
        Ok(rows.iter().map(|row| table_of(Some(row.clone()))).collect())
    }
}

/// A word of a text that is a commit's id as people write it, twelve digits or all, and that the log does not have.
fn unknown_commit(text: &str) -> Option<&str> {
    let is_id = |word: &&str| {
        let is_hex = word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (word.len() == 12 || word.len() == 40) && is_hex && word.contains(|c: char| c.is_ascii_alphabetic())
    };
    let mut ids = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_id);
    ids.find(|word| !LOG.iter().any(|change| change.is_called(word)))
}

/// All keys of the file of a report with a story, for people.
pub const STORY_KEYS: &str = "\
A report with a story, FILE.toml beside FILE.md (docs/guide.md tells how they work together):

  title, source           as above
  commit = \"…\"            the commit and its subject
  pair = [\"v4.18\", \"v5.5\"]                  the two kernels for '--workload'
  measured = \"…\"          from when on runs are measured, a sentence
  small = { workload = \"…\", machine = \"emulated:4\", duration_ms = 2000 }       for '--kernel'
  quick = { runs = 8 }    what '--quick' changes, of all sides or of one

  [side.NAME]             a set of runs; each key here also stands at the top, for all sides
  kernels = [\"v4.18\", { name = \"…\", kernel = \"…\", machine = \"…\" }]            or kernel
  machine, workload, duration_ms, warmup_ms, runs, hz
  metrics = [\"sis_search\"]                 metrics that are measured only where they are asked for
  pool = [\"all\"]          its runs count together with those of other sides under this name, too
  And of a side alone:
  each = \"rows\"           a side for each row of [data], whose keys replace {key}
  from_ms = 500           from when on what is watched counts
  shorter = 4             by how much each run is shortened
  booted = true           its kernels can be booted
  columns, recorded       figures that were written down of a real kernel, and their names
  model = \"v6.1\"          the modelled kernel that a booted one is held against

  [data]                  rows = [{ key = \"…\" }] for sides and story
  [figure]                NAME = \"EXPRESSION\"; run is the runs of one name
  [watch.NAME]            task, by, by_tasks_alone, lag_above, waits, from_cpu, after_no_lag, group_deadline_ms
  [told.NAME]             side, name, watch, task, least_ms, stories, rows, excerpt, events
  [search]                good, bad, question, and the keys of a side
  [family]                kernels, metrics
  [reported]              side, machine, kernels, columns, published

  [[claim]]
  text, unit              as above
  published = 3.5         a figure, words, or nothing; or real = \"EXPRESSION\"
  measured = \"EXPRESSION\"
  at_least, above, at_most, below, near_published, like_published           a bar
  both = true             the published figure meets the bars, too
  booted = true           it is on real kernels that can be booted
";

/// What a report says of itself, and of more than one side.
#[rustfmt::skip]
const KEYS: [&str; 17] = [
    "title", "source", "commit", "pair", "machine", "small", "measured", "quick", "side", "data", "figure", "watch",
    "told", "search", "family", "reported", "claim",
];

/// What a row or a kernel of a side may change.
const SIDE_KEYS: [&str; 10] =
    ["kernel", "kernels", "machine", "workload", "duration_ms", "warmup_ms", "runs", "metrics", "hz", "pool"];

fn table_of(value: Option<Value>) -> Table {
    match value {
        Some(Value::Table(table)) => table,
        _ => Table::new(),
    }
}

fn plan_of(mut plan: Table, row: &Table) -> Result<Plan, Wrong> {
    for (_, value) in &mut plan {
        if let Value::String(text) = value {
            *text = filled(text, row);
        }
    }
    let mut plan: Plan = Value::Table(plan).try_into().map_err(|error: toml::de::Error| {
        let known = "a side has kernels, machine, workload, duration_ms; also each, quick, warmup_ms, from_ms, runs, metrics, hz, pool, booted, columns";
        (complaint(error.message()), known.to_string())
    })?;
    if plan.name.is_empty() {
        plan.name = plan.kernel.clone();
    }
    if plan.runs == 0 || plan.shorter == 0 || plan.duration_ms == 0 {
        return Err(("runs, shorter and duration_ms are 1 or more".to_string(), "correct them".to_string()));
    }
    Ok(plan)
}

/// The text with `{key}` replaced by what the row says of it, as often as something is replaced.
pub(crate) fn filled(text: &str, row: &Table) -> String {
    let fill = |text: String| {
        row.iter().fold(text, |text, (key, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), String::from);
            text.replace(&format!("{{{key}}}"), &value)
        })
    };
    let once = fill(text.to_string());
    fill(once)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_of<T: serde::de::DeserializeOwned>() -> Vec<String> {
        let Err(told) = toml::from_str::<T>("nonsense = 1") else { panic!("no such key") };
        let told = told.to_string();
        let (_, known) = told.split_once("expected one of").expect("a list");
        known.split('`').skip(1).step_by(2).map(String::from).collect()
    }

    /// What a file may hold is what the list of keys tells.
    #[test]
    fn all_keys_are_told() {
        let tables = [
            keys_of::<Plan>(),
            keys_of::<ReportClaim>(),
            keys_of::<Watched>(),
            keys_of::<Tell>(),
            keys_of::<ReportedRun>(),
            keys_of::<Small>(),
        ];
        let top = KEYS.iter().chain(&SIDE_KEYS).map(ToString::to_string);
        let keys = tables
            .concat()
            .into_iter()
            .chain(top)
            .chain(["each", "good", "bad", "question"].map(String::from));
        let words =
            STORY_KEYS.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect::<Vec<_>>();
        for key in keys {
            assert!(words.contains(&key.as_str()), "{key}");
        }
    }

    #[test]
    fn commits_that_the_log_lacks_are_told() {
        for (text, unknown) in [
            ("86bfbb7ce4f6 (\"sched/fair: Add lag based placement\", v6.6)", None),
            ("found.commit == '0b0695f2b34a'", None),
            ("0b0695f2b34a4afa3f6e9aa1ff0e5336d8dad912", None),
            ("found.commit == '0b0695f2b34b'", Some("0b0695f2b34b")),
            ("it takes 123456789012 ns, feedbeef and cafe", None),
        ] {
            assert_eq!(unknown_commit(text), unknown, "{text}");
        }
    }
}
