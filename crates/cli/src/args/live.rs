//! The options of what runs for real on this host.

use std::path::PathBuf;

use clap::Args;
use fairlab_event::Ns;

use super::AnswerFormat;
use crate::numbers::{CpuList, parse_cpus, parse_duration};

#[derive(Debug, Args)]
pub struct LiveArgs {
    /// The workload and its own options, as the real program takes them: schbench -t 20 -m 2.
    #[arg(value_name = "WORKLOAD", num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    pub workload: Vec<String>,
    /// Another workload beside it, which ends with it: a command line as one argument, 'hackbench -g 4'. Several are allowed. A file can
    /// give more detail: 'fairlab workloads show mix'.
    #[arg(long, value_name = "COMMAND")]
    pub beside: Vec<String>,
    /// When to stop a workload that has not ended by itself.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Ns>,
    /// The root seed of the workload's own randomness.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Writes output, count and metrics into this file, too, as JSON.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
}

#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// The machine file to write; --machine reads it.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The CPUs to measure on: the first, and between the first and the second. By default the first usable ones.
    #[arg(long, value_name = "CPUS", value_parser = parse_cpus)]
    pub cpus: Option<CpuList>,
    /// The number of samples of each figure.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = parse_samples)]
    pub samples: usize,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
}

fn parse_samples(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (10..=100_000).contains(number));
    number.ok_or_else(|| "a number from 10 to 100000".to_string())
}

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct SchbenchArgs {
    /// schbench's own options.
    #[arg(value_name = "OPTION", num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    pub options: Vec<String>,
}
