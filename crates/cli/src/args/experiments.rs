//! Options of the commands that compare and search.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fairlab_change::gate::Rule;
use fairlab_event::Ns;
use fairlab_lab::hosts::parse_label;

use super::{ChosenArgs, ExperimentArgs, ExportArgs, Format, SettingArgs, parse_count};
use crate::numbers::{parse_duration, parse_share, parse_warmup};

#[derive(Debug, Args)]
pub struct CompareArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    /// How many runs each kernel gets; each has a seed of its own, the same on both sides.
    #[arg(long, visible_alias = "seeds", value_name = "N", default_value_t = 10)]
    pub runs: u64,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Compares runs that are there instead: a folder that 'run --out' wrote, or one of traces, each of them a run. Where
    /// traces are of several hosts, a host is one observation: a file hosts.toml says whose they are, a folder host=NAME, or the
    /// recording itself. Give two or more; the first is the baseline.
    #[arg(long = "folder", value_name = "DIR", conflicts_with_all = ["kernels", "workload"])]
    pub folders: Vec<PathBuf>,
    /// Compares sets of hosts instead, by what each counted ('summary --counts', 'run --out'): a folder of such files, in which a host
    /// is what its label host says, or else the first folder, or the file. Each host is one observation. Give two or more; the first is
    /// the baseline.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kernels", "workload", "folders", "live", "schedstat", "attribute"])]
    pub counts: Vec<PathBuf>,
    /// Only hosts with this label: of --counts, written by 'summary --label'; of --folder, from its hosts.toml; of both, the name of a
    /// folder (service=web). Several are allowed.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = parse_label, conflicts_with_all = ["kernels", "live", "schedstat"])]
    pub labels: Vec<(String, String)>,
    /// Runs commands on this host instead, and records it meanwhile: COMMAND goes to the shell. Give two or more; the first
    /// is the baseline. They run in turn and back again, --runs times each.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["kernels", "workload", "folders"])]
    pub live: Vec<String>,
    /// Compares what /proc/schedstat counted instead, line by line: a copy of it, the folder of a recording, whose two copies
    /// are subtracted, or one with a run's schedstat.txt. Give two; the first is the baseline.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["kernels", "workload", "folders", "live", "exports"])]
    pub schedstat: Vec<PathBuf>,
    /// Only this metric; several are allowed.
    #[arg(long = "metric", value_name = "NAME")]
    pub metrics: Vec<String>,
    /// Differences below this share of the baseline are of no interest: 1%, 0.01.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "1%")]
    pub margin: f64,
    /// Whose layout the tables have; where the rule that belongs to it says otherwise than the intervals, a note says so.
    #[arg(long, value_enum, default_value_t)]
    pub layout: Layout,
    #[command(flatten)]
    pub gate: GateArgs,
    /// Writes the comparison into a file, too: .json, .csv, .md, or .html, a page. Several are allowed.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// Says why tasks wait longer or shorter: all waits by cause (behind whom, decided by which rule, ended by what), the difference
    /// told as causes, and the first decision in which the kernels part. With --attribute: the causes of each change.
    #[arg(long, conflicts_with_all = ["folders", "counts", "live", "schedstat"])]
    pub explain: bool,
    /// Says which changes between the two kernels make the difference: each in turn, and those that matter alone, last,
    /// and in pairs. Of what the workload is run for, or of each --metric.
    #[arg(long, conflicts_with_all = ["folders", "live", "schedstat", "out"])]
    pub attribute: bool,
}

/// Rules that make a gate of a comparison: its exit status is 0 where all are passed, 1 where one is broken for sure, 3 where that is
/// undecided.
#[derive(Debug, Default, Args)]
pub struct GateArgs {
    /// What must not happen: a metric, > or <, and a change, 'p99>+5%', 'throughput<-2%', 'cyclictest p99>+200us'. Several are allowed; they
    /// are judged together.
    #[arg(long = "fail-on", value_name = "RULE", value_parser = parse_rule, conflicts_with_all = ["schedstat", "attribute"])]
    pub rules: Vec<Rule>,
    /// Writes the rules' verdicts into a file as JUnit XML, each rule a test case.
    #[arg(long, value_name = "FILE", requires = "rules")]
    pub junit: Option<PathBuf>,
    /// Writes verdicts and comparison as Markdown into the summary of a job of GitHub Actions ($GITHUB_STEP_SUMMARY), or into FILE, and
    /// prints annotations.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "$GITHUB_STEP_SUMMARY", requires = "rules")]
    pub github: Option<PathBuf>,
}

fn parse_rule(text: &str) -> Result<Rule, String> {
    Rule::parse(text).map_err(|error| error.to_string())
}

/// Whose layout a comparison's tables have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// Ratio, interval, verdict.
    #[default]
    Fairlab,
    /// mmtests' compare-kernels: means by statistic, per cent, stars.
    Mmtests,
    /// LKP's compare: value ± %, change %, value ± %, metric.
    Lkp,
    /// Ratio, interval, verdict in lines of at most 75 columns and in plain ASCII, for mails.
    Mail,
}

impl Layout {
    /// What tables of our own words are printed for.
    pub const fn page(self) -> Page {
        match self {
            Layout::Mail => Page::Mail,
            Layout::Fairlab | Layout::Mmtests | Layout::Lkp => Page::Fairlab,
        }
    }
}

/// What an answer is printed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Page {
    /// Lines as wide as they come.
    #[default]
    Fairlab,
    /// Lines of at most 75 columns in plain ASCII, for mails.
    Mail,
}

#[derive(Debug, Args)]
pub struct BisectArgs {
    #[command(flatten)]
    pub setting: SettingArgs,
    #[command(flatten)]
    pub export: ExportArgs,
    #[command(flatten)]
    pub chosen: ChosenArgs,
    /// A kernel on which the metric is as it should be. Both may be commits of one repository, as src:DIR@COMMIT: those between are built.
    #[arg(long, value_name = "K")]
    pub good: String,
    /// A kernel on which it is not. Where it is the older one, the commit that cured it is looked for.
    #[arg(long, value_name = "K")]
    pub bad: String,
    /// What is looked at: a metric, or a claim that holds on the bad kernel: 'p99 > 2ms'. p50 to max are those of wakeup
    /// latency. By default that which the workload is run for.
    #[arg(long, value_name = "METRIC")]
    pub metric: Option<String>,
    /// Differences below this share of the good kernel's value are of no interest: 1%, 0.01.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "1%")]
    pub margin: f64,
    /// How often the answer may be wrong.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "1%")]
    pub error: f64,
    /// The most runs that one kernel gets before it counts as undecided.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub runs: u64,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// What the answer is laid out for.
    #[arg(long, value_enum, default_value_t)]
    pub layout: Page,
}

#[derive(Debug, Args)]
pub struct TryArgs {
    #[command(flatten)]
    pub export: ExportArgs,
    /// A patch, applied with 'patch -p1'; several are applied in order. Or one range of commits, A..B, of the repository that --on
    /// names: A is compared with B.
    #[arg(long = "patch", value_name = "FILE|A..B", required = true)]
    pub patches: Vec<String>,
    /// The tree: a folder, FOLDER@COMMIT, debian:6.12.
    #[arg(long, value_name = "SOURCE", default_value = ".")]
    pub on: String,
    /// A workload with its options, in one word: 'pipe -l 1000'; several are allowed. By default five that ask a scheduler for
    /// different things.
    #[arg(long = "workload", value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// A machine; several are allowed. By default a laptop, a socket of 40 CPUs and two nodes of 192.
    #[arg(long = "machine", value_name = "M")]
    pub machines: Vec<String>,
    /// Only this metric; several are allowed. By default that which a workload is run for, and a few.
    #[arg(long = "metric", value_name = "NAME")]
    pub metrics: Vec<String>,
    /// How many runs each side gets in each case.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub runs: u64,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// When to stop each run, in virtual time: 500ms, 2s.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Ns>,
    /// Differences below this share are of no interest: 1%, 0.01.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "1%")]
    pub margin: f64,
    /// How many runs go on at once; by default one a CPU. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub jobs: Option<usize>,
    /// What the answer is laid out for.
    #[arg(long, value_enum, default_value = "mail")]
    pub layout: Page,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct SweepArgs {
    #[command(flatten)]
    pub export: ExportArgs,
    /// The sweep: a TOML file with kernels, machines, workloads, seeds, duration_ms, and [options] whose values replace
    /// {name} in kernels and workloads.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Its folder; by default the file's name without its end. What is done there is not done again.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How long each run settles before anything is measured, as 'warmup_ms' in the file.
    #[arg(long, value_name = "TIME", value_parser = parse_warmup)]
    pub warmup: Option<Ns>,
    /// Leaves nothing to chance, as 'exact = true' in the file does.
    #[arg(long)]
    pub exact: bool,
    /// How many runs go on at once; by default one a CPU. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub jobs: Option<usize>,
    /// Where cells are run: on threads of this host, or on a Ray cluster, by its client server (ray://HOST:PORT) or as this host is
    /// configured (ray). A cluster needs Python with the package fairlab. Results do not depend on it.
    #[arg(long, value_name = "PLACE", default_value = "threads", conflicts_with = "jobs")]
    pub on: String,
    /// The metric of the table at the end; several are allowed.
    #[arg(long = "metric", value_name = "NAME", default_value = "wakeup_latency_ns_p99")]
    pub metrics: Vec<String>,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// What the answer is laid out for.
    #[arg(long, value_enum, default_value_t)]
    pub layout: Page,
}

#[derive(Debug, Args)]
pub struct QueryArgs {
    #[command(flatten)]
    pub export: ExportArgs,
    /// A sweep's folder; it may be under way.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Only cells whose column has this value: kernel, machine, workload, seed, or an option. Several are allowed.
    #[arg(long = "where", value_name = "COLUMN=VALUE", value_parser = parse_filter)]
    pub filters: Vec<(String, String)>,
    /// What makes a group: columns between commas.
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', default_value = "kernel,machine,workload")]
    pub by: Vec<String>,
    /// A metric to sum up; several are allowed.
    #[arg(long = "metric", value_name = "NAME", default_value = "wakeup_latency_ns_p99")]
    pub metrics: Vec<String>,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// What the answer is laid out for.
    #[arg(long, value_enum, default_value_t)]
    pub layout: Page,
}

fn parse_filter(text: &str) -> Result<(String, String), String> {
    let (column, value) = text.split_once('=').ok_or("a filter is COLUMN=VALUE, such as kernel=v6.6")?;
    Ok((column.to_string(), value.to_string()))
}

#[derive(Debug, Args)]
pub struct MergeArgs {
    #[command(flatten)]
    pub export: ExportArgs,
    /// Files of counts, or folders with counts.json in them at any depth: those of 'run --out', of sweeps, of
    /// 'summary --counts'.
    #[arg(value_name = "FILE", required = true)]
    pub paths: Vec<PathBuf>,
    /// Writes what was merged into a file that merges again.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Adds up everything, whatever its kernel, machine and workload.
    #[arg(long)]
    pub all: bool,
    /// Adds up by the value of this label: service.
    #[arg(long, value_name = "LABEL", conflicts_with = "all")]
    pub by: Option<String>,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// What the answer is laid out for.
    #[arg(long, value_enum, default_value_t)]
    pub layout: Page,
}
