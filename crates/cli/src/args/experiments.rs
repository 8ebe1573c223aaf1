//! Options of the commands that compare and search.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fairlab_change::gate::GateRule;
use fairlab_event::Ns;
use fairlab_lab::RUNS_MAX;
use fairlab_lab::hosts::parse_label;

use super::{AnswerFormat, ChosenArgs, ExperimentArgs, ExportArgs, KeptRunsArgs, SettingArgs, parse_count};
use crate::numbers::{parse_duration, parse_share, parse_warmup};

#[derive(Debug, Args)]
pub struct CompareArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    #[command(flatten)]
    pub kept: KeptRunsArgs,
    /// A side, by its name and what it changes of all else that is said: 'before: kernel=v6.5', 'few: threads=4' (of a workload 'schbench
    /// -t {threads}'), 'small: group./pod.cpu.weight=39' (a key of the workload's file), 'long: base_slice_ns=6000000', 'big:
    /// machine=epyc-2s128'. Give two or more; the first is the baseline.
    #[arg(long = "side", value_name = "NAME: KEY=VALUE…", conflicts_with = "vary")]
    pub sides: Vec<String>,
    /// Sides that differ in one key alone, one for each value; the first is the baseline.
    #[arg(long, value_name = "KEY=VALUE,VALUE…", conflicts_with = "attribute")]
    pub vary: Option<String>,
    /// How many runs each side gets. Each run has its own seed, equal on all sides. Without it, runs end as soon as the answer is sure: for
    /// the workload's main metric, for each --metric, or for each rule. Runs in real time are 10.
    #[arg(long, visible_alias = "seeds", value_name = "N", conflicts_with = "runs_max")]
    pub runs: Option<u64>,
    /// The most runs that each side gets until the answer is sure.
    #[arg(long, value_name = "N", default_value_t = RUNS_MAX)]
    pub runs_max: u64,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Compares existing runs instead: a folder of 'run --out', or a folder of traces, each of them a run. If traces are of several
    /// hosts (by hosts.toml, by a folder host=NAME, or by the recording), each host is one observation. Give two or more; the first is the
    /// baseline.
    #[arg(long = "folder", value_name = "DIR", conflicts_with_all = ["kernels", "workload", "sides", "vary"])]
    pub folders: Vec<PathBuf>,
    /// Compares sets of hosts instead: folders with files of counts ('summary --counts', 'run --out'). Each host is one observation. Its
    /// name is its label host, else its first folder, else its file. Give two or more; the first is the baseline.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kernels", "workload", "folders", "live", "schedstat", "attribute"])]
    pub counts: Vec<PathBuf>,
    /// Only hosts with this label: from 'summary --label', from hosts.toml, or from the name of a folder (service=web). Several are
    /// allowed.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = parse_label, conflicts_with_all = ["kernels", "live", "schedstat"])]
    pub labels: Vec<(String, String)>,
    /// Runs shell commands on this host instead, and records the scheduler meanwhile. Give two or more; the first is the baseline.
    /// They take turns (A B B A), --runs times each.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["kernels", "workload", "folders"])]
    pub live: Vec<String>,
    /// Compares /proc/schedstat instead, line by line: a copy of it, the folder of a recording (the difference of its two copies), or a
    /// folder with a run's schedstat.txt. Give two; the first is the baseline.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["kernels", "workload", "folders", "live", "exports"])]
    pub schedstat: Vec<PathBuf>,
    /// Only this metric; several are allowed.
    #[arg(long = "metric", value_name = "NAME")]
    pub metrics: Vec<String>,
    /// Differences below this share of the baseline are of no interest: 1%, 0.01.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "1%")]
    pub margin: f64,
    /// The layout of the tables. With mmtests or lkp, a note says where that tool's own rule disagrees with the intervals.
    #[arg(long, value_enum, default_value_t)]
    pub layout: TableLayout,
    #[command(flatten)]
    pub gate: GateArgs,
    /// Writes the comparison into a file, too: .json, .csv, .md, or .html, a page. Several are allowed.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// Says why tasks wait longer or shorter: all waits by cause, their difference in sentences, and the first decision in which the
    /// kernels differ. With --attribute: the causes for each change.
    #[arg(long, conflicts_with_all = ["counts", "live", "schedstat"])]
    pub explain: bool,
    /// Says which changes between the two kernels make the difference: each change in its place, and those that matter also alone,
    /// last, and in pairs. For the workload's main metric, or for each --metric. Of two --side: what each difference makes alone.
    #[arg(long, conflicts_with_all = ["folders", "live", "schedstat", "out"])]
    pub attribute: bool,
}

/// Rules of a gate: exit status 0 if all pass, 1 if one is broken for sure, 3 if that is undecided.
#[derive(Debug, Default, Args)]
pub struct GateArgs {
    /// Fails if this happens: a metric, > or <, and a change: 'p99>+5%', 'throughput<-2%', 'cyclictest p99>+200us'. Several are allowed
    /// and judged together. Exit status 0: passed, 1: failed, 3: undecided.
    #[arg(long = "fail-on", value_name = "RULE", value_parser = parse_rule, conflicts_with_all = ["schedstat", "attribute"])]
    pub rules: Vec<GateRule>,
    /// Writes the verdicts as JUnit XML, each rule a test case.
    #[arg(long, value_name = "FILE", requires = "rules")]
    pub junit: Option<PathBuf>,
    /// Writes verdicts and comparison as Markdown into the job summary of GitHub Actions ($GITHUB_STEP_SUMMARY) or into FILE, and prints
    /// annotations.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "$GITHUB_STEP_SUMMARY", requires = "rules")]
    pub github: Option<PathBuf>,
}

fn parse_rule(text: &str) -> Result<GateRule, String> {
    GateRule::parse(text).map_err(|error| error.to_string())
}

/// The layout of a comparison's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TableLayout {
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

impl TableLayout {
    /// What tables of our own words are printed for.
    pub const fn page(self) -> PageStyle {
        match self {
            TableLayout::Mail => PageStyle::Mail,
            TableLayout::Fairlab | TableLayout::Mmtests | TableLayout::Lkp => PageStyle::Fairlab,
        }
    }
}

/// What an answer is printed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PageStyle {
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
    #[command(flatten)]
    pub kept: KeptRunsArgs,
    /// A kernel on which the metric is good. Both may be commits of one repository (src:DIR@COMMIT); commits between them are built.
    #[arg(long, value_name = "K", required_unless_present = "vary")]
    pub good: Option<String>,
    /// A kernel on which the metric is bad. If it is the older kernel, the search finds the commit that cured the metric.
    #[arg(long, value_name = "K", required_unless_present = "vary")]
    pub bad: Option<String>,
    /// Instead of kernels, values of one key in order: threads=1..64, group./pod.cpu.weight=10,39,100. Keys are those of 'compare --side'.
    /// The search finds from which value on the metric is as at the last one.
    #[arg(long, value_name = "KEY=VALUES", conflicts_with_all = ["good", "bad", "on"])]
    pub vary: Option<String>,
    /// With --vary, the kernel; by default the newest release.
    #[arg(long, value_name = "K", requires = "vary", conflicts_with_all = ["good", "bad"])]
    pub kernel: Option<String>,
    /// A metric, or a claim that holds on the bad kernel: 'p99 > 2ms'. p50 to max are percentiles of wakeup latency. By default the
    /// workload's main metric.
    #[arg(long, value_name = "METRIC")]
    pub metric: Option<String>,
    /// Differences below this share of the good kernel's value are of no interest: 1%, 0.01.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "1%")]
    pub margin: f64,
    /// How often the answer may be wrong.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "1%")]
    pub error: f64,
    /// The greatest number of runs of a kernel before it counts as undecided.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub runs: u64,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Where runs are made: threads of this host, or a Ray cluster, by its client server (ray://HOST:PORT) or by this host's configuration
    /// (ray). A cluster needs Python with the package fairlab. Results do not depend on it.
    #[arg(long, value_name = "PLACE", default_value = "threads", conflicts_with = "jobs")]
    pub on: String,
    /// The layout of the answer.
    #[arg(long, value_enum, default_value_t)]
    pub layout: PageStyle,
}

#[derive(Debug, Args)]
pub struct TryArgs {
    #[command(flatten)]
    pub export: ExportArgs,
    #[command(flatten)]
    pub kept: KeptRunsArgs,
    /// A patch, applied with 'patch -p1'; several are applied in order. Or a range of commits, A..B, of the repository of --on: compares
    /// A with B.
    #[arg(long = "patch", value_name = "FILE|A..B", required = true)]
    pub patches: Vec<String>,
    /// The tree: a folder, FOLDER@COMMIT, debian:6.12. Debian's source lies in ~/.cache/fairlab/kernel-sources once it was built; change a
    /// copy of it, and give the difference as --patch (docs/native.md shows how).
    #[arg(long, value_name = "SOURCE", default_value = ".")]
    pub on: String,
    /// A workload with its options, as one argument: 'pipe -l 1000'; several are allowed. By default five different ones.
    #[arg(long = "workload", value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// A machine; several are allowed. By default a laptop, a socket of 40 CPUs and two nodes of 192.
    #[arg(long = "machine", value_name = "M")]
    pub machines: Vec<String>,
    /// Only this metric; several are allowed. By default each workload's main metric and a few more.
    #[arg(long = "metric", value_name = "NAME")]
    pub metrics: Vec<String>,
    /// How many runs each side gets in each case. Without it, a case ends as soon as its workload's main metric is sure, or each --metric.
    #[arg(long, value_name = "N", conflicts_with = "runs_max")]
    pub runs: Option<u64>,
    /// The most runs that each side gets in a case until it is sure.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub runs_max: u64,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// When to stop each run, in virtual time: 500ms, 2s.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Ns>,
    /// Differences below this share are of no interest: 1%, 0.01.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "1%")]
    pub margin: f64,
    /// How many runs go on at once; by default one per CPU. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub jobs: Option<usize>,
    /// Tells everything: each change with its command, each metric that has not changed, and the state of both kernels at the first
    /// decision that differs. An exported file has all of that without it.
    #[arg(long)]
    pub explain: bool,
    /// The layout of the answer.
    #[arg(long, value_enum, default_value = "mail")]
    pub layout: PageStyle,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
}

#[derive(Debug, Args)]
pub struct SweepArgs {
    #[command(flatten)]
    pub export: ExportArgs,
    #[command(flatten)]
    pub kept: KeptRunsArgs,
    /// The sweep: a TOML file with kernels, machines, workloads, seeds, duration_ms, and [options] whose values replace
    /// {name} in kernels and workloads.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The sweep's folder; by default the file's name without its end. Finished cells there are not run again.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How long each run settles before anything is measured, as 'warmup_ms' in the file.
    #[arg(long, value_name = "TIME", value_parser = parse_warmup)]
    pub warmup: Option<Ns>,
    /// Leaves nothing to chance, as 'exact = true' in the file does.
    #[arg(long)]
    pub exact: bool,
    /// How many runs go on at once; by default one per CPU. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub jobs: Option<usize>,
    /// Where cells run: threads of this host, or a Ray cluster, by its client server (ray://HOST:PORT) or by this host's configuration
    /// (ray). A cluster needs Python with the package fairlab. Results do not depend on it.
    #[arg(long, value_name = "PLACE", default_value = "threads", conflicts_with = "jobs")]
    pub on: String,
    /// The metric of the table at the end; several are allowed.
    #[arg(long = "metric", value_name = "NAME", default_value = "wakeup_latency_ns_p99")]
    pub metrics: Vec<String>,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
    /// The layout of the answer.
    #[arg(long, value_enum, default_value_t)]
    pub layout: PageStyle,
}

#[derive(Debug, Args)]
pub struct QueryArgs {
    #[command(flatten)]
    pub export: ExportArgs,
    /// A sweep's folder; the sweep may still run.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Only cells whose column has this value: kernel, machine, workload, seed, or an option. Several are allowed.
    #[arg(long = "where", value_name = "COLUMN=VALUE", value_parser = parse_filter)]
    pub filters: Vec<(String, String)>,
    /// The columns that make a group, between commas.
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', default_value = "kernel,machine,workload")]
    pub by: Vec<String>,
    /// A metric to sum up; several are allowed.
    #[arg(long = "metric", value_name = "NAME", default_value = "wakeup_latency_ns_p99")]
    pub metrics: Vec<String>,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
    /// The layout of the answer.
    #[arg(long, value_enum, default_value_t)]
    pub layout: PageStyle,
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
    pub format: AnswerFormat,
    /// The layout of the answer.
    #[arg(long, value_enum, default_value_t)]
    pub layout: PageStyle,
}
