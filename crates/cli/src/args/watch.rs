//! The options of `fairlab watch`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{AnswerFormat, KeptRunsArgs, parse_count};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct WatchArgs {
    #[command(subcommand)]
    pub command: Option<WatchCommand>,
    #[command(flatten)]
    pub run: WatchRunArgs,
}

#[derive(Debug, Subcommand)]
pub enum WatchCommand {
    /// Lists the cases of a catalogue.
    List {
        /// Folders or files of cases.
        #[arg(value_name = "CATALOGUE", default_value = CATALOGUE)]
        catalogue: Vec<PathBuf>,
        /// How the answer is printed.
        #[arg(long, value_enum, default_value_t)]
        format: AnswerFormat,
    },
    /// Lists the keys of a case's file.
    Keys,
    /// Prints what an earlier watch found.
    Report {
        /// The folder of its --out.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// How it is printed.
        #[arg(long, value_enum, default_value_t)]
        format: WatchFormat,
        /// Instead, which commits it found of those that report files claim: a folder of them, such as examples/reports.
        #[arg(long, value_name = "DIR", conflicts_with = "format")]
        known: Option<PathBuf>,
        /// Instead, writes cells.parquet and series/CASE.csv into the folder again, as --out has them.
        #[arg(long, conflicts_with_all = ["format", "known", "beside"])]
        tables: bool,
        /// Instead, what another watch says of each change: the folder of its --out, such as one of own code (--over src:DIR@A..B).
        #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "known"])]
        beside: Option<PathBuf>,
    },
}

/// How a watch's findings are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WatchFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
    /// Tables of Markdown.
    Md,
}

/// Where the catalogue lies in a clone.
const CATALOGUE: &str = "examples/catalogue";

#[derive(Debug, Args)]
pub struct WatchRunArgs {
    /// The kernels: FROM..TO, commit by commit through the model's log (v4.18..v7.3), or through the commits of a repository that touch the
    /// scheduler (src:DIR@A..B). Or a list of any, each compared with the one before it: src:debian:6.1,src:debian:6.12,v6.12.
    /// src:debian:6.12.x lists the point releases that Debian's archive has.
    #[arg(long, value_name = "RANGE", required = true)]
    pub over: Option<String>,
    /// The range begins where the earlier watch in --out ended, and --over names its end: src:DIR@BRANCH, v7.3.
    #[arg(long, requires = "out")]
    pub follow: bool,
    /// Instead of the code of trees their models run: each the release of its Makefile, with the commits that its sources show.
    #[arg(long)]
    pub modelled: bool,
    /// Folders or files of cases; 'fairlab watch keys' lists what a case says.
    #[arg(value_name = "CATALOGUE", default_value = CATALOGUE)]
    pub catalogue: Vec<PathBuf>,
    /// The folder for watch.json, the page, and all that was measured: cells.parquet, series/CASE.csv. What an earlier watch left there tells what is new.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Looks at each kernel once, with chance, where otherwise it runs with two seeds and without chance; and makes 14 runs of a kernel
    /// at most.
    #[arg(long)]
    pub quick: bool,
    /// The most runs of each kernel that differs; as many again confirm a finding.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub runs_max: usize,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub kept: KeptRunsArgs,
    /// How many runs go on at once; by default one per CPU. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub jobs: Option<usize>,
    /// Where runs are made: threads of this host, or a Ray cluster, by its client server (ray://HOST:PORT) or by this host's configuration
    /// (ray). A cluster needs Python with the package fairlab. Results do not depend on it.
    #[arg(long, value_name = "PLACE", default_value = "threads", conflicts_with = "jobs")]
    pub on: String,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: WatchFormat,
}
