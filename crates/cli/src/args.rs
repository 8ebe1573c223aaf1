//! The command line: every option declared once.

mod examples;
mod experiments;
mod live;
mod watch;

pub use experiments::{
    BisectArgs, CompareArgs, GateArgs, MergeArgs, PageStyle, QueryArgs, SweepArgs, TableLayout, TryArgs,
};
pub use live::{CalibrateArgs, LiveArgs, SchbenchArgs};
pub use watch::{WatchArgs, WatchCommand, WatchFormat, WatchRunArgs};

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use fairlab_analysis::latency::SortKey;
use fairlab_analysis::selector::{TimeRange, TraceSelector};
use fairlab_analysis::task_selector::{NameKind, TaskSelector};
use fairlab_event::Ns;
use fairlab_event::spelling;
use fairlab_lab::DEFAULT_MACHINE;
use fairlab_lab::hosts::parse_label;
use fairlab_lab::names::{ShownMetrics, parse_group};
use fairlab_native::build::{BuildOptions, PreemptionChoice};
use fairlab_trace::{OutputFormat, ReadOptions};

use crate::commands::trace::TraceArgs;
use crate::error::CliError;
use crate::export::{ExportFiles, ExportKind};
use crate::numbers::{
    CpuList, CpuSets, parse_cpu_sets, parse_cpus, parse_duration, parse_floor, parse_warmup,
};
use crate::provenance::VERSION;

/// A laboratory for the Linux fair scheduler: what a scheduler change does to a workload on a machine, and why.
#[derive(Debug, Parser)]
#[command(name = "fairlab", version = VERSION, styles = STYLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs a workload on modelled kernels, on this host's own, or on booted ones.
    Run(RunArgs),
    /// Runs a workload on two kernels or more and says how they differ; the first is the baseline.
    Compare(Box<CompareArgs>),
    /// Finds the commit that changed a metric between two kernels, in the model's log or in a repository.
    Bisect(BisectArgs),
    /// Says what a patch does: builds a kernel tree without and with it, runs workloads on both, compares.
    Try(TryArgs),
    /// Runs every commit of a range of kernels against a catalogue of workloads, and tells which commits changed which of them.
    Watch(Box<WatchArgs>),
    /// Runs every combination of kernels, machines, workloads, options and seeds that a file lists.
    Sweep(SweepArgs),
    /// Sums up the cells of a sweep.
    Query(QueryArgs),
    /// Adds up the counts of many runs or hosts.
    Merge(MergeArgs),
    /// Converts a trace to another format: ftrace text, trace.dat, perf.data, Perfetto, Parquet.
    Convert(ConvertArgs),
    /// Records this host's scheduler while a command runs.
    Record(RecordArgs),
    /// Runs a workload with real threads, on this host.
    Live(LiveArgs),
    /// Measures what kernel work costs on this host, and writes a machine file with it.
    Calibrate(CalibrateArgs),
    /// Runs the benchmark schbench on this host; schbench --help lists its options.
    Schbench(SchbenchArgs),
    /// Boots a real kernel in QEMU, runs a workload there and records its scheduler.
    Boot(BootArgs),
    /// Shows how long each task of a trace waited for a CPU, as perf sched latency does.
    Latency(LatencyArgs),
    /// Explains the longest waits of a trace: the waker, the tasks that ran instead, the CPUs that idled, what ended the wait.
    Explain(ExplainArgs),
    /// Says who makes tasks wait, in all: the waits of a trace summed by what had the CPU, rule, end and waker; of two traces the difference.
    Blame(BlameArgs),
    /// Sums up a trace: latency percentiles, switches, migrations, idleness, time in which a CPU idled while a task waited.
    Summary(SummaryArgs),
    /// Lists every context switch of a trace, as perf sched timehist does.
    Timehist(TimehistArgs),
    /// Draws a trace, or two beside each other, as a page for a browser: CPUs, groups and tasks on a line of time.
    View(ViewArgs),
    /// Says how often the model decides as a recorded kernel did, by kind of decision.
    Verify(VerifyArgs),
    /// Verifies the model against a whole collection of recordings.
    Fidelity(FidelityArgs),
    /// Reproduces published reports, each by one command.
    Scenario(ScenarioArgs),
    /// Lists, shows and compares kernels.
    Kernels(KernelsArgs),
    /// Lists and shows machines.
    Machines(MachinesArgs),
    /// Lists workloads and shows their options.
    Workloads(WorkloadsArgs),
    /// Prints what a shell needs to complete the program's commands and options.
    Completions(CompletionsArgs),
    /// Prints a manual page, or writes all of them into a folder.
    Man(ManArgs),
}

/// How help is shown on a terminal.
const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// The whole program's commands and options, each command with examples.
pub fn program() -> clap::Command {
    examples::with_examples(Cli::command(), "")
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// The command whose page is printed: run, kernels show; by default the program's own.
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    pub command: Vec<String>,
    /// Writes the pages of all commands into this folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AnswerFormat {
    /// For people.
    #[default]
    Text,
    /// For programs; times are integer nanoseconds in fields that end in _ns.
    Json,
}

/// What is run, and where; shared by all commands that run something.
#[derive(Debug, Args)]
pub struct SettingArgs {
    /// The workload and its own options, as the real program takes them: schbench -t 20 -m 2.
    #[arg(value_name = "WORKLOAD", num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    pub workload: Vec<String>,
    /// Another workload beside it, which ends with it: a command line as one argument, 'hackbench -g 4'. Several are allowed. A file can
    /// give more detail: 'fairlab workloads show mix'.
    #[arg(long, value_name = "COMMAND")]
    pub beside: Vec<String>,
    /// A machine: a preset, host, a TOML file, layout:4x1x24x2 (nodes, caches per node, cores per cache, threads per core), or the
    /// emulator that booted kernels run on, emulated:1x4x2.
    #[arg(long, value_name = "M", default_value = DEFAULT_MACHINE)]
    pub machine: String,
    /// How long each run of a modelled kernel settles before anything is measured, in virtual time. 0: not at all. By default
    /// until load averages and balancing have settled.
    #[arg(long, value_name = "TIME", value_parser = parse_warmup)]
    pub warmup: Option<Ns>,
    /// How long each run lasts after that, in virtual time. By default until the workload ends, or 30s if it does not end.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Ns>,
    /// Leaves nothing to chance: no random phases, no jitter, no background tasks. A seed then decides only what the workload
    /// itself draws.
    #[arg(long)]
    pub exact: bool,
    /// How many runs go on at once; by default one per CPU. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub jobs: Option<usize>,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
}

/// What is done with runs that were made before.
#[derive(Clone, Copy, Debug, Args)]
pub struct KeptRunsArgs {
    /// Makes all runs, those that are kept from before, too, and keeps the new ones in their place.
    #[arg(long)]
    pub fresh: bool,
}

/// Files that an answer goes into besides.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Writes the answer into a file, too: .html, a page, or .json. Several are allowed. Of 'run' and 'sweep' also DIR/, a new folder of
    /// pages: the answer, the runs, their timelines.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
}

impl ExportArgs {
    /// Opens every file.
    pub fn create(&self) -> Result<ExportFiles, CliError> {
        ExportFiles::create(&self.exports, &ExportKind::ANY)
    }

    /// Opens every file, and begins every folder of pages.
    pub fn create_with_folders(&self) -> Result<ExportFiles, CliError> {
        ExportFiles::create(&self.exports, &ExportKind::WITH_FOLDER)
    }
}

/// What an answer is about, whatever is asked: some of the tasks, a stretch of time.
#[derive(Clone, Debug, Default, Args)]
pub struct ChosenArgs {
    /// Only tasks of this name, the task with this id, or NAME:PID. Names that differ only in a number at their end count as one. In runs of a
    /// mix also a workload by its name. Several are allowed; they add up with --group.
    #[arg(long = "task", value_name = "NAME|PID")]
    pub tasks: Vec<String>,
    /// Only the tasks of a control group, and of groups below it. Several are allowed.
    #[arg(long = "group", value_name = "PATH", value_parser = parse_group)]
    pub groups: Vec<String>,
    /// Only what ends in this stretch of the trace's clock: 1.5..2, 10s..60s, 500ms.. (numbers are seconds). The clock of a run
    /// begins at 0.
    #[arg(long, value_name = "FROM..TO")]
    pub time: Option<TimeRange>,
}

impl ChosenArgs {
    /// Whose numbers are asked for; empty: all.
    pub fn whose(&self) -> Vec<TaskSelector> {
        self.tasks.iter().chain(&self.groups).map(|name| TaskSelector::parse(name)).collect()
    }

    /// The time that is asked for.
    pub fn stretch(&self) -> TimeRange {
        self.time.unwrap_or_default()
    }

    /// Both.
    pub fn chosen(&self) -> TraceSelector {
        TraceSelector { whose: self.whose(), time: self.stretch() }
    }

    /// The options once more, for another command.
    pub fn words(&self) -> Vec<String> {
        let tasks = self.tasks.iter().map(|task| ("--task", task.clone()));
        let groups = self.groups.iter().map(|group| ("--group", group.clone()));
        let time = self.time.iter().map(|time| ("--time", time.to_string()));
        let words = tasks.chain(groups).chain(time);
        words.flat_map(|(option, value)| [option.to_string(), value]).collect()
    }

    /// The first of the options that is given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--task", !self.tasks.is_empty()),
            ("--group", !self.groups.is_empty()),
            ("--time", self.time.is_some()),
        ];
        given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }
}

/// Whose numbers an answer of runs shows.
#[derive(Debug, Args)]
pub struct NamesArgs {
    #[command(flatten)]
    pub chosen: ChosenArgs,
    /// Shows the numbers of all tasks by name, of all groups, or of all workloads of a mix, too. Several are allowed.
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    pub by: Vec<NameKindArg>,
}

/// A kind of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NameKindArg {
    /// Tasks, by their names.
    Task,
    /// Control groups.
    Group,
    /// Workloads of a mix.
    Workload,
}

impl NamesArgs {
    /// What is to be shown.
    pub fn shown(&self) -> ShownMetrics {
        let kind = |by: &NameKindArg| match by {
            NameKindArg::Task => NameKind::Task,
            NameKindArg::Group => NameKind::Group,
            NameKindArg::Workload => NameKind::Workload,
        };
        ShownMetrics { whose: self.chosen.whose(), kinds: self.by.iter().map(kind).collect() }
    }
}

/// Kernels that run something; shared by `run` and `compare`.
#[derive(Debug, Args)]
pub struct ExperimentArgs {
    #[command(flatten)]
    pub setting: SettingArgs,
    #[command(flatten)]
    pub names: NamesArgs,
    /// A kernel: modelled (v6.6, v6.6-COMMIT, v6.5+COMMIT, v6.6+NO_FEATURE, v6.6,base_slice_ns=1500000), built from sources
    /// (src:NAME), booted (qemu:bookworm, qemu:IMAGE), or this host's (host). Several are allowed.
    #[arg(long = "kernel", value_name = "K")]
    pub kernels: Vec<String>,
    /// A new folder for everything: effective spec, metrics, outputs, traces.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continues a stopped run in the folder of --out; all other options must be as before.
    #[arg(long, requires = "out")]
    pub resume: bool,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    #[command(flatten)]
    pub export: ExportArgs,
    /// The root seed of all randomness.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Runs with this many seeds, from --seed on.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seeds: u64,
    /// Writes the run's trace, for one kernel and one seed. The format follows from the name's end, as for convert.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Measures and shows this metric, too, such as one of the scheduler's own counters; several are allowed.
    #[arg(long = "metric", value_name = "NAME")]
    pub metrics: Vec<String>,
    /// Adds probe events to the trace of --trace or --out: the state of queues, entities and CPUs at each decision.
    #[arg(long)]
    pub probes: bool,
    /// Adds what a modelled kernel decides, with its reasons, to the trace of --trace or --out: 'fairlab blame' sums waits by them.
    #[arg(long)]
    pub decisions: bool,
}

#[derive(Debug, Args)]
pub struct ViewArgs {
    /// A trace: perf.data, trace.dat, ftrace text, Perfetto, Parquet, also compressed (.zst, .xz, .gz); or a folder of a
    /// recording, of LTTng (CTF), or of a run's --out. A second trace is drawn below the first.
    #[arg(value_name = "TRACE", num_args = 1..=2, required = true)]
    pub traces: Vec<PathBuf>,
    /// The page to write: one file that a browser opens without a network.
    #[arg(short, long, value_name = "FILE", default_value = "view.html")]
    pub output: PathBuf,
    /// Aligns two traces at the first event of this task (name or id), or at the first trace_marker with this text. By default at
    /// their beginnings.
    #[arg(long, value_name = "TASK|MARK")]
    pub align: Option<String>,
    #[command(flatten)]
    pub chosen: ChosenArgs,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// How the answer is printed: what was written, and what of the trace the page does not hold.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
}

/// How a trace is read.
#[derive(Debug, Args)]
pub struct ReadingArgs {
    /// Ticks per second of the trace clock, for traces whose clock counts no nanoseconds.
    #[arg(long, value_name = "HZ")]
    pub clock_hz: Option<u64>,
    /// Only this trace instance of a trace.dat: "top", or its name; all are merged otherwise.
    #[arg(long, value_name = "NAME")]
    pub instance: Option<String>,
    /// Shift the times of CPUs whose clocks stand apart, by what the wakeups between them show. Reads the trace several times.
    #[arg(long)]
    pub align_cpus: bool,
    /// Answer even if more than 1 % of the events of a kind cannot be read; standard error says which.
    #[arg(long)]
    pub allow_unreadable: bool,
}

impl ReadingArgs {
    /// As readers take it.
    pub fn options(&self) -> ReadOptions {
        ReadOptions {
            clock_hz: self.clock_hz,
            instance: self.instance.clone(),
            align_cpus: self.align_cpus,
            allow_unreadable: self.allow_unreadable,
            ..ReadOptions::default()
        }
    }
}

#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// A trace: perf.data, trace.dat, ftrace text, Perfetto, Parquet, also compressed (.zst, .xz, .gz); or a folder of a
    /// recording or of LTTng (CTF). - is standard input.
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// The file to write, or - for standard output. The format follows from its end: .txt, .dat, .data, .pftrace, .parquet. A further
    /// .zst behind the first three compresses.
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// The format, whatever the name: text, trace.dat, perf.data, perfetto, parquet.
    #[arg(long, value_name = "FORMAT", value_parser = parse_output_format)]
    pub to: Option<OutputFormat>,
    #[command(flatten)]
    pub chosen: ChosenArgs,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
}

/// A number of at least one.
fn parse_count(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&number| number > 0).ok_or_else(|| "a whole number from 1 on".to_string())
}

fn parse_output_format(text: &str) -> Result<OutputFormat, String> {
    let known = || OutputFormat::ALL.map(OutputFormat::name).join(", ");
    OutputFormat::parse(text).ok_or_else(|| format!("known are {}", known()))
}

#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The trace to write. The format follows from the name's end, as for convert.
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    pub output: PathBuf,
    /// The format, whatever the name: text, trace.dat, perf.data, perfetto, parquet.
    #[arg(long, value_name = "FORMAT", value_parser = parse_output_format)]
    pub to: Option<OutputFormat>,
    /// Events to record, as SYSTEM:EVENT; by default those of the scheduler that the kernel has.
    #[arg(short, long, value_name = "EVENT", value_delimiter = ',')]
    pub events: Vec<String>,
    /// The buffer of each CPU, KiB.
    #[arg(long, value_name = "KIB", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    pub buffer_kb: u32,
    /// Also probe placements in the fair class: vruntime, deadline and lag (EEVDF kernels with BTF).
    #[arg(long)]
    pub place: bool,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
    /// The command that runs meanwhile.
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub command: Vec<String>,
}

#[derive(Debug, Args)]
pub struct BootArgs {
    /// The kernel: a vmlinuz, or a name, which is fetched once: debian:bullseye, debian:bookworm, debian:trixie, debian:sid, or Ubuntu's
    /// of a release (ubuntu:5.15).
    pub image: String,
    /// Its CPUs: SOCKETSxCORESxTHREADS, or the number of cores of one socket.
    #[arg(long, value_name = "TOPOLOGY", default_value = "4")]
    pub topology: fairlab_boot::CpuLayout,
    /// The number of NUMA nodes.
    #[arg(long, value_name = "NODES", default_value_t = 1)]
    pub numa: u32,
    /// An arm64 machine instead, by name or file: its CPUs' capacities, clocks and power.
    #[arg(long, value_name = "MACHINE", conflicts_with_all = ["topology", "numa"])]
    pub machine: Option<String>,
    /// CPUs take turns, and time is the number of instructions: equal inputs give equal runs. The default for up to 8 CPUs.
    #[arg(long, conflicts_with = "threads")]
    pub deterministic: bool,
    /// Each CPU is a thread of the host: for more CPUs. Times then mean nothing.
    #[arg(long)]
    pub threads: bool,
    /// Also record the state behind each decision: queues, entities, loads.
    #[arg(long)]
    pub probes: bool,
    /// Sets a feature, tunable or sysctl of the scheduler before the recording: NEXT_BUDDY, NO_PLACE_LAG, base_slice_ns=3000000,
    /// sched_autogroup_enabled=1. Several are allowed.
    #[arg(long = "set", value_name = "FEATURE|NAME=VALUE")]
    pub settings: Vec<fairlab_boot::KernelSetting>,
    /// The first process starts a session, as an init does. If autogroups are on (sched_autogroup_enabled), the workload then runs
    /// in one from the start.
    #[arg(long)]
    pub session: bool,
    /// Added to the kernel's command line: "isolcpus=1 nohz_full=1". Several are allowed.
    #[arg(long, value_name = "PARAMETERS", allow_hyphen_values = true, value_parser = parse_parameters)]
    pub append: Vec<KernelParameters>,
    /// The root seed of the workload's own randomness.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// When to end a workload that does not end by itself (jobs, sessions), in the guest's time: 2s, 500ms.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Ns>,
    /// Fetch a named kernel again: its newest build.
    #[arg(long)]
    pub refresh: bool,
    /// When to give up, in seconds of the host.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub timeout: u64,
    /// A new folder for the recording; verify reads it.
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
    /// Another workload beside it, which ends with it: a command line as one argument, 'hackbench -g 4'. Several are allowed. A file can
    /// give more detail: 'fairlab workloads show mix'.
    #[arg(long, value_name = "COMMAND")]
    pub beside: Vec<String>,
    /// The workload and its own options.
    #[arg(value_name = "WORKLOAD", trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub workload: Vec<String>,
}

/// Words of a kernel's command line.
#[derive(Clone, Debug)]
pub struct KernelParameters(pub Vec<String>);

fn parse_parameters(text: &str) -> Result<KernelParameters, String> {
    let words: Vec<String> = text.split_whitespace().map(str::to_string).collect();
    match words.iter().any(|word| word == "--") || words.is_empty() {
        true => Err("parameters of the kernel are words such as isolcpus=1".to_string()),
        false => Ok(KernelParameters(words)),
    }
}

#[derive(Debug, Args)]
pub struct LatencyArgs {
    #[command(flatten)]
    pub trace: TraceArgs,
    #[command(flatten)]
    pub export: ExportArgs,
    #[command(flatten)]
    pub chosen: ChosenArgs,
    /// One row per task instead of one per name.
    #[arg(short = 'p', long = "pids")]
    pub by_pid: bool,
    /// Sorts rows by: runtime, count (or switch), avg, max, pid; several between commas.
    #[arg(short = 's', long, value_name = "KEY", value_parser = parse_sort, default_value = "avg,max,count,runtime")]
    pub sort: Sort,
    /// Counts the wait of a task that was woken while it still ran, from its switch on, as explain does. perf counts none.
    #[arg(long)]
    pub woken_while_running: bool,
    /// The layout of the table.
    #[arg(long, value_enum, default_value_t)]
    pub layout: PerfLayout,
}

/// The layout of a table of perf's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PerfLayout {
    /// perf 6.12 to 7.2: times in milliseconds.
    #[default]
    #[value(name = "perf-6")]
    Perf6,
    /// perf 7.3: each time with its unit.
    #[value(name = "perf-7")]
    Perf7,
}

/// Sort keys, the first one decides.
#[derive(Clone, Debug)]
pub struct Sort(pub Vec<SortKey>);

fn parse_sort(text: &str) -> Result<Sort, String> {
    SortKey::parse_list(text).map(Sort).map_err(|error| error.to_string())
}

#[derive(Debug, Args)]
pub struct TimehistArgs {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Only tasks of these processes.
    #[arg(short, long, value_name = "PID,…", value_delimiter = ',')]
    pub pid: Vec<i32>,
    /// Only these threads.
    #[arg(short, long, value_name = "TID,…", value_delimiter = ',')]
    pub tid: Vec<i32>,
    /// Only these CPUs: 0,2-5.
    #[arg(short = 'C', long, value_name = "CPUS", value_parser = parse_cpus)]
    pub cpu: Option<CpuList>,
    #[command(flatten)]
    pub chosen: ChosenArgs,
    /// Shows the state in which each task left its CPU. R+: preempted inside the kernel. R: preempted on the way to user mode, or
    /// yielded.
    #[arg(long)]
    pub state: bool,
    /// Lists wakeups too.
    #[arg(short, long)]
    pub wakeups: bool,
    /// Shows which task ran next.
    #[arg(short, long)]
    pub next: bool,
    /// Lists migrations too.
    #[arg(short = 'M', long)]
    pub migrations: bool,
    /// Shows a summary only: of run times, or with --state of waits.
    #[arg(short, long, conflicts_with_all = ["with_summary", "wakeups", "next"])]
    pub summary: bool,
    /// Shows the list and the summary.
    #[arg(short = 'S', long)]
    pub with_summary: bool,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    pub trace: TraceArgs,
    #[command(flatten)]
    pub export: ExportArgs,
    #[command(flatten)]
    pub chosen: ChosenArgs,
    /// How many waits are explained, the longest first.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = parse_count, allow_negative_numbers = true)]
    pub worst: usize,
}

#[derive(Debug, Args)]
pub struct BlameArgs {
    /// A trace: perf.data, trace.dat, ftrace text, Perfetto, Parquet, also compressed (.zst, .xz, .gz); or a folder: a
    /// recording's, or one of LTTng's (CTF); - is standard input. With a second trace: before and after a change.
    #[arg(value_name = "TRACE", num_args = 1..=2, required = true)]
    pub traces: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub export: ExportArgs,
    #[command(flatten)]
    pub chosen: ChosenArgs,
    /// Tells threads of one name apart, those that wait and those that have the CPU.
    #[arg(long)]
    pub each: bool,
    /// How many rows each table has; 0 means all. JSON always has all.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
}

#[derive(Debug, Args)]
pub struct SummaryArgs {
    #[command(flatten)]
    pub trace: TraceArgs,
    #[command(flatten)]
    pub export: ExportArgs,
    #[command(flatten)]
    pub chosen: ChosenArgs,
    /// The machine, if the trace does not describe its caches and NUMA nodes: a preset, host, or a TOML file.
    #[arg(long, value_name = "M", conflicts_with_all = ["llc", "node"])]
    pub machine: Option<String>,
    /// The CPUs of each last-level cache: 0-7,8-15; or 0-3+16-19,4-7+20-23. By default all CPUs share one, unless the trace
    /// describes its machine.
    #[arg(long, value_name = "SETS", value_parser = parse_cpu_sets)]
    pub llc: Option<CpuSets>,
    /// The CPUs of each NUMA node, in this form, too.
    #[arg(long, value_name = "SETS", value_parser = parse_cpu_sets)]
    pub node: Option<CpuSets>,
    /// How many rows each table has; 0 means all. JSON always has all.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Also writes counters and the histogram of wakeup latencies into a small file; 'fairlab merge' adds such files up.
    #[arg(long, value_name = "FILE")]
    pub counts: Option<PathBuf>,
    /// A label of this host in that file, for 'merge --by' and 'compare --label': service=web. Several are allowed.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = parse_label, requires = "counts")]
    pub labels: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub export: ExportArgs,
    /// A recording's folder, or its trace with the snapshot files beside it. With --against: a workload and its options.
    #[arg(value_name = "TRACE", num_args = 1.., required_unless_present = "cases")]
    pub words: Vec<String>,
    /// With --against: another workload that runs beside it, as one argument: 'hackbench -g 4'. Several are allowed.
    #[arg(long, value_name = "COMMAND", requires = "against")]
    pub beside: Vec<String>,
    /// The kernel to compare with the recording; by default the recorded kernel.
    #[arg(long, value_name = "K")]
    pub kernel: Option<String>,
    /// With a workload instead of a recording: this kernel runs it, and the kernel of --kernel gets every call, too. Shows the first
    /// difference of their states. With a recording: it is replayed on this kernel, too, such as a tree's own code, src:debian:6.12.
    #[arg(long, value_name = "K")]
    pub against: Option<String>,
    /// Replays the recording, and shows how near the replays come to it. Without probes that is done unless --no-replay is given.
    #[arg(long)]
    pub replay: bool,
    /// Leaves the replay out.
    #[arg(long, conflicts_with_all = ["replay", "against"])]
    pub no_replay: bool,
    /// The machine, if the recording does not describe it: a preset, host, or a TOML file.
    #[arg(long, value_name = "M")]
    pub machine: Option<String>,
    /// Of replays, and with --against: the first seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Runs with this many seeds, from --seed on; by default 5 replays, and 1 run with --against.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// With --against, instead of a workload: this many random cases (machine and workload), from the case of --seed on. Stops at the
    /// first difference.
    #[arg(long, value_name = "N", requires = "against", conflicts_with_all = ["words", "machine", "duration", "seeds"])]
    pub cases: Option<u64>,
    /// With --against: when each run ends, in virtual time. By default when the workload ends.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "against")]
    pub duration: Option<Ns>,
    #[command(flatten)]
    pub chosen: ChosenArgs,
    /// Exit status 1 if fewer of the decisions agree: 99%. Exit status 3 if too few were judged to say.
    #[arg(long, value_name = "SHARE", value_parser = parse_floor, conflicts_with = "against")]
    pub fail_under: Option<f64>,
    /// How many misses are shown with the state of their queue.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub misses: usize,
    /// Ticks per second of the trace clock, for traces whose clock counts no nanoseconds.
    #[arg(long, value_name = "HZ")]
    pub clock_hz: Option<u64>,
    /// Answer even if more than 1 % of the events of a kind cannot be read; standard error says which.
    #[arg(long)]
    pub allow_unreadable: bool,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
}

#[derive(Debug, Args)]
pub struct FidelityArgs {
    /// A folder that holds recordings, at any depth. Each is compared with the model of its own kernel.
    #[arg(value_name = "DIR", required_unless_present_any = ["booted", "oracle"])]
    pub folder: Option<PathBuf>,
    /// Instead: compares whole runs of Debian's kernels in QEMU, of their models, and of their sources. All runs, or only those that
    /// match each word of NAME, by kernel or workload ('bookworm hackbench').
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["folder", "sums", "brief", "figures"])]
    pub booted: Option<String>,
    /// Instead: compares models with the code of releases after each call, in named workloads on 4 to 192 CPUs and in random cases.
    /// All of Debian's, or the one with this name (6.1, debian-6.1), or the tree of a folder, or all trees in one (src:DIR). May be
    /// given several times.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["folder", "booted", "sums", "brief", "figures"])]
    pub oracle: Vec<String>,
    /// With --oracle: the number of seeds for each named workload on each machine.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "oracle")]
    pub seeds: u64,
    /// With --oracle: the number of random cases for each release.
    #[arg(long, value_name = "N", default_value_t = 60, requires = "oracle")]
    pub cases: u64,
    /// With --oracle: ends each named workload after TIME of simulated time; default 300ms.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "oracle")]
    pub duration: Option<Ns>,
    /// Keeps results of booted kernels in this folder, and boots only kernels without a result there.
    #[arg(long, value_name = "DIR", requires = "booted")]
    pub boots: Option<PathBuf>,
    /// Shows the sums by kernel only.
    #[arg(long)]
    pub sums: bool,
    /// Shows one line per kernel only.
    #[arg(long, conflicts_with = "sums")]
    pub brief: bool,
    /// Writes the tables into this Markdown page, between the marks of --part.
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// The part of the page.
    #[arg(long, value_name = "NAME", default_value = "collection", requires = "page")]
    pub part: String,
    /// Writes the figures into this file, one per line, with tabs between columns.
    #[arg(long, value_name = "FILE")]
    pub figures: Option<PathBuf>,
    /// Keeps what is done in this folder; a command that was stopped goes on there.
    #[arg(long, value_name = "DIR", conflicts_with = "booted")]
    pub out: Option<PathBuf>,
    /// How many recordings are walked at once; by default one per CPU. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub jobs: Option<usize>,
    /// Where that runs: threads of this host, or a Ray cluster, by its client server (ray://HOST:PORT) or by this host's configuration
    /// (ray). A cluster needs Python with the package fairlab. Results do not depend on it.
    #[arg(long, value_name = "PLACE", default_value = "threads", conflicts_with_all = ["jobs", "booted"])]
    pub on: String,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
}

#[derive(Debug, Args)]
pub struct ScenarioArgs {
    #[command(subcommand)]
    pub command: ScenarioCommand,
}

#[derive(Debug, Subcommand)]
pub enum ScenarioCommand {
    /// Lists scenarios.
    List(FormatArgs),
    /// Shows what a scenario is about, and how to try another workload on its kernels.
    Show {
        /// The scenario.
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Lists the keys of a report's file.
    Keys,
    /// Runs a scenario and judges its report's claims; exit status 1 if a claim does not hold.
    Run(Box<ScenarioRunArgs>),
}

#[derive(Debug, Args)]
pub struct ScenarioRunArgs {
    #[command(flatten)]
    pub export: ExportArgs,
    #[command(flatten)]
    pub kept: KeptRunsArgs,
    /// The scenario, or all; 'public' for every report in --reports; or a report's file, which ends in .toml.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Where report files are, for 'public'.
    #[arg(long, value_name = "DIR", default_value = "examples/reports")]
    pub reports: PathBuf,
    /// Fewer and shorter runs: under a minute on two CPUs.
    #[arg(long)]
    pub quick: bool,
    /// Another workload on the report's two kernels. It is a command line as one argument ("schbench -m 2 -t 8"), an rt-app file
    /// (.json), or a recording to replay.
    #[arg(long, value_name = "WORKLOAD", conflicts_with = "pages")]
    pub workload: Option<String>,
    /// The machine for --workload; by default the report's.
    #[arg(long, value_name = "M", requires = "workload")]
    pub machine: Option<String>,
    /// A further kernel beside the report's two: src:debian:6.1, qemu:bookworm, host, or a modelled one. Several are allowed. They run
    /// --workload, or else the report's workload in a size that a booted kernel can run.
    #[arg(long = "kernel", value_name = "K")]
    pub kernels: Vec<String>,
    /// Runs the report's own workload, at full size, on the kernels of --kernel (src: or modelled), beside the report's two. With --pages
    /// the page is NAME-own-code.md.
    #[arg(long, requires = "kernels", conflicts_with_all = ["workload", "machine"])]
    pub reported: bool,
    /// Only compares booted kernels with modelled ones: boots the kernels of the report's page again. Takes minutes per kernel.
    #[arg(long, conflicts_with_all = ["pages", "workload", "kernels"])]
    pub booted: bool,
    /// Leaves nothing to chance.
    #[arg(long, conflicts_with = "kernels")]
    pub exact: bool,
    /// How long each run settles before anything is measured. By default runs of --workload, and of reports that are files, settle as
    /// long as the machine needs; the runs of the five are measured from their start.
    #[arg(long, value_name = "TIME", value_parser = parse_warmup, conflicts_with = "kernels")]
    pub warmup: Option<Ns>,
    /// When to stop each run of --workload, in virtual time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "workload")]
    pub duration: Option<Ns>,
    /// A new folder for the report, and for each run's output and counters.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Writes the report as a page NAME.md into this folder, too.
    #[arg(long, value_name = "DIR")]
    pub pages: Option<PathBuf>,
    /// How many runs go on at once; by default one per CPU. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub jobs: Option<usize>,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
}

#[derive(Debug, Args)]
pub struct KernelsArgs {
    #[command(subcommand)]
    pub command: KernelsCommand,
}

#[derive(Debug, Subcommand)]
pub enum KernelsCommand {
    /// Lists releases and changes.
    List {
        /// Lists kernels built from sources instead.
        #[arg(long)]
        built: bool,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Builds a tree's own scheduler, for --kernel src:NAME.
    Build(BuildArgs),
    /// Removes a kernel that was built.
    Remove {
        /// Its name, or eight letters of its key.
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Shows a kernel's features, tunables and rules.
    Show {
        /// The kernel.
        #[arg(value_name = "K")]
        kernel: String,
        /// The number of CPUs that tunables are scaled for.
        #[arg(long, value_name = "N", default_value_t = 8)]
        cpus: usize,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Shows what differs between two kernels.
    Diff {
        /// The first kernel.
        #[arg(value_name = "A")]
        one: String,
        /// The second kernel.
        #[arg(value_name = "B")]
        other: String,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Lists every change of the log with what it does.
    Log(FormatArgs),
}

#[derive(Debug, Args)]
pub struct BuildArgs {
    /// The tree: a folder, FOLDER@COMMIT, or debian:6.12.
    #[arg(value_name = "SOURCE")]
    pub source: String,
    /// Apply this patch to a copy of the tree; again for more, in order.
    #[arg(long = "patch", value_name = "FILE")]
    pub patches: Vec<PathBuf>,
    /// Configure the tree by this .config.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Ticks per second: 100, 250, 300 or 1000. It must be the machine's.
    #[arg(long, value_name = "HZ", default_value_t = BuildOptions::default().hz)]
    pub hz: u32,
    /// The preemption model: none, voluntary, full, lazy, or dynamic (voluntary, in code that is built for preemption). By default the
    /// tree's choice for x86.
    #[arg(long, value_name = "MODEL")]
    pub preemption: Option<PreemptionArg>,
    /// The name that --kernel src:NAME takes.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// A preemption model by its name.
#[derive(Clone, Copy, Debug)]
pub struct PreemptionArg(pub PreemptionChoice);

impl FromStr for PreemptionArg {
    type Err = String;

    fn from_str(name: &str) -> Result<PreemptionArg, String> {
        let known = PreemptionChoice::NAMED.into_iter().find(|(known, _)| *known == name);
        known
            .map(|(_, preemption)| PreemptionArg(preemption))
            .ok_or_else(|| format!("there are {}", PreemptionChoice::NAMED.map(|(name, _)| name).join(", ")))
    }
}

#[derive(Debug, Args)]
pub struct MachinesArgs {
    #[command(subcommand)]
    pub command: MachinesCommand,
}

#[derive(Debug, Subcommand)]
pub enum MachinesCommand {
    /// Lists machines.
    List(FormatArgs),
    /// Shows a machine: its topology, the scheduling domains that a kernel builds on it, the costs of kernel work.
    Show(MachineArgs),
}

#[derive(Debug, Args)]
pub struct MachineArgs {
    /// The machine: a preset, host, or a TOML file.
    #[arg(value_name = "M")]
    pub machine: String,
    /// The kernel that builds the domains; by default the newest release.
    #[arg(long, value_name = "K")]
    pub kernel: Option<String>,
    /// Show the domains of this CPU instead of one CPU of each kind.
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// How the machine is printed; toml is a file that --machine reads.
    #[arg(long, value_enum, default_value_t)]
    pub format: MachineFormat,
}

/// How a machine is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MachineFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
    /// As a machine file.
    Toml,
}

#[derive(Debug, Args)]
pub struct WorkloadsArgs {
    #[command(subcommand)]
    pub command: WorkloadsCommand,
}

#[derive(Debug, Subcommand)]
pub enum WorkloadsCommand {
    /// Lists workloads.
    List(FormatArgs),
    /// Shows a workload's options.
    Show {
        /// The workload.
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        format: FormatArgs,
    },
}

#[derive(Clone, Copy, Debug, Args)]
pub struct FormatArgs {
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
}

impl Command {
    /// The workload's words, and those of workloads beside it: both become the words of a mix.
    pub fn join_beside(&mut self) {
        let (workload, beside) = match self {
            Command::Run(RunArgs { experiment, .. }) => {
                (&mut experiment.setting.workload, &mut experiment.setting.beside)
            }
            Command::Compare(compare) => {
                (&mut compare.experiment.setting.workload, &mut compare.experiment.setting.beside)
            }
            Command::Bisect(BisectArgs { setting, .. }) => (&mut setting.workload, &mut setting.beside),
            Command::Live(args) => (&mut args.workload, &mut args.beside),
            Command::Boot(args) => (&mut args.workload, &mut args.beside),
            Command::Verify(args) => (&mut args.words, &mut args.beside),
            _ => return,
        };
        *workload = fairlab_lab::workloads::beside(&std::mem::take(beside), workload);
    }
}

/// Commands that take a workload's words beside our own options; verify takes them with --against.
const TAKE_WORKLOAD: &[&str] = &["run", "compare", "bisect", "live", "boot", "verify"];

/// Our own option of this name, as `command` has it, or else another command that takes a workload. Those of boot are many, and
/// names that real programs have, too.
fn own_option<'p>(program: &'p clap::Command, command: &str, name: &str) -> Option<&'p clap::Arg> {
    let commands =
        std::iter::once(command).chain(TAKE_WORKLOAD.iter().copied().filter(|name| *name != "boot"));
    let mut options =
        commands.filter_map(|name| program.find_subcommand(name)).flat_map(clap::Command::get_arguments);
    options.find(|option| match name.strip_prefix("--") {
        Some(name) => option.get_long_and_visible_aliases().is_some_and(|names| names.contains(&name)),
        None => option.get_short().is_some_and(|letter| name == format!("-{letter}")),
    })
}

/// Moves our options before the workload's own, so that users may mix both:
/// `run schbench -t 20 --kernel v6.6` becomes `run --kernel v6.6 -- schbench -t 20`.
pub fn split_workload_options(program: &clap::Command, arguments: Vec<OsString>) -> Vec<OsString> {
    let is_against = |word: &OsString| {
        let word = word.to_string_lossy();
        word == "--against" || word.starts_with("--against=")
    };
    let named = arguments.get(1).and_then(|word| TAKE_WORKLOAD.iter().find(|name| *name == word));
    let Some(&command) = named.filter(|name| **name != "verify" || arguments.iter().any(is_against)) else {
        return arguments;
    };
    let (mut own, mut workload) = (Vec::new(), Vec::new());
    // The kernel that is booted stands before the workload.
    let mut lacks_image = command == "boot";
    let mut words = arguments.into_iter().peekable();
    own.extend(words.by_ref().take(2));
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        let (name, value) = text.split_once('=').map_or((&*text, None), |(name, value)| (name, Some(value)));
        if name == "--" {
            workload.extend(words.by_ref());
        } else if workload.is_empty() && matches!(name, "--help" | "-h") {
            own.push(word);
        } else if let Some(option) = own_option(program, command, name)
            && (workload.is_empty()
                || name.starts_with("--") && !is_theirs(command, name, value, words.peek(), &workload))
        {
            let takes_next = option.get_action().takes_values() && value.is_none();
            let may_stand_alone = option.get_num_args().is_some_and(|count| count.min_values() == 0);
            own.push(word);
            if takes_next {
                own.extend(words.next_if(|next| !may_stand_alone || names_a_page(next)));
            }
        } else if lacks_image && !name.starts_with('-') {
            lacks_image = false;
            own.push(word);
        } else {
            workload.push(word);
        }
    }
    own.push("--".into());
    own.extend(workload);
    own
}

/// Options among a workload's words that neither the workload nor this program has, each with the one that it may be meant to be.
pub fn misspelt_options(program: &clap::Command, arguments: &[OsString]) -> Vec<(String, String)> {
    let words = arguments.iter().skip_while(|word| *word != "--").skip(1).filter_map(|word| word.to_str());
    let words = words.collect::<Vec<_>>();
    let kind = words.first().and_then(|name| fairlab_lab::workloads::find(name).ok());
    let usage = kind.map_or(String::new(), |kind| kind.line.usage());
    let is_end = |letter: char| !(letter.is_ascii_alphanumeric() || "-_".contains(letter));
    let theirs = usage.split(is_end).filter(|word| word.starts_with("--")).map(String::from);
    let commands = TAKE_WORKLOAD.iter().filter_map(|name| program.find_subcommand(name));
    let own =
        commands.flat_map(clap::Command::get_arguments).filter_map(clap::Arg::get_long_and_visible_aliases);
    let own = own.flatten().map(|name| format!("--{name}"));
    let known = theirs.chain(own).filter(|option| option.len() > 2);
    let known = known.collect::<Vec<_>>();
    let options = words.iter().filter(|word| word.starts_with("--") && word.len() > 2);
    let names = options.map(|word| word.split_once('=').map_or(*word, |(name, _)| name));
    names
        .filter(|name| !kind.is_some_and(|kind| kind.line.knows(name)))
        .filter(|name| !known.iter().any(|option| option == name))
        .filter_map(|name| misspelt_option(name, &known))
        .collect()
}

fn misspelt_option(name: &str, known: &[String]) -> Option<(String, String)> {
    let meant = spelling::meant(&name[2..], known.iter().map(|option| &option[2..]))?;
    Some((name.to_string(), format!("--{meant}")))
}

/// Whether a word behind an option that may stand alone is its value, and not a workload's.
fn names_a_page(word: &OsString) -> bool {
    word.to_string_lossy().ends_with(".md")
}

/// Whether an option of ours among a workload's words is the workload's: it has one of that name, too, or may have, as a real program
/// in a guest. --group is ours if it names a path.
fn is_theirs(
    command: &str,
    name: &str,
    value: Option<&str>,
    next: Option<&OsString>,
    words: &[OsString],
) -> bool {
    let next = next.map(|next| next.to_string_lossy());
    let is_path = value.or(next.as_deref()).is_some_and(|value| value.starts_with('/'));
    let mut kinds =
        words.iter().map(|word| word.to_str().and_then(|word| fairlab_lab::workloads::find(word).ok()));
    let is_in_guest = command == "boot" && kinds.clone().next().is_some_and(|kind| kind.is_none());
    let has = kinds.any(|kind| kind.is_some_and(|kind| kind.line.knows(name)));
    is_in_guest || !is_path && (name == "--group" || has)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> String {
        let words = split_workload_options(&program(), line.split(' ').map(OsString::from).collect());
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    /// A path is enough for any value: nothing parses it here.
    #[test]
    fn every_option_of_ours_may_stand_behind_the_workload() {
        let program = program();
        for name in TAKE_WORKLOAD {
            let command = program.find_subcommand(name).expect("a command");
            for option in command.get_arguments() {
                for long in option.get_long_and_visible_aliases().unwrap_or_default() {
                    let before = if *name == "boot" { " image" } else { "" };
                    let against = if *name == "verify" && long != "against" { " --against=v6.6" } else { "" };
                    let value = if option.get_action().takes_values() { " /x.md" } else { "" };
                    assert_eq!(
                        split(&format!("fairlab {name}{before}{against} periodic -n 3 --{long}{value}")),
                        format!("fairlab {name}{before}{against} --{long}{value} -- periodic -n 3")
                    );
                }
            }
        }
    }

    #[test]
    fn misspelt_options_of_ours_are_found_among_the_workloads() {
        let of = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            misspelt_options(&program(), &split_workload_options(&program(), words))
        };
        assert_eq!(
            of("fairlab run schbench --kernl v6.6"),
            [("--kernl".to_string(), "--kernel".to_string())]
        );
        assert_eq!(
            of("fairlab run schbench --machin=vm4 -t 2"),
            [("--machin".to_string(), "--machine".to_string())]
        );
        assert_eq!(of("fairlab run hackbench --pipe --kernel v6.6"), []);
        assert_eq!(
            of("fairlab run hackbench --gruops 3"),
            [("--gruops".to_string(), "--groups".to_string())]
        );
        assert_eq!(of("fairlab latency --sorrt x"), []);
    }

    #[test]
    fn an_option_that_both_have_is_the_workloads_behind_its_name() {
        assert_eq!(
            split("fairlab run hackbench --group 4 --task 3"),
            "fairlab run --task 3 -- hackbench --group 4"
        );
        assert_eq!(split("fairlab run hackbench --group=4"), "fairlab run -- hackbench --group=4");
        assert_eq!(
            split("fairlab boot x --threads hackbench --threads --format json -g4"),
            "fairlab boot x --threads --format json -- hackbench --threads -g4"
        );
        assert_eq!(
            split("fairlab run --jobs 2 jobs spin --jobs 8"),
            "fairlab run --jobs 2 -- jobs spin --jobs 8"
        );
        assert_eq!(
            split("fairlab run perf bench sched messaging --group 4 --threads --kernel host"),
            "fairlab run --kernel host -- perf bench sched messaging --group 4 --threads"
        );
        assert_eq!(
            split("fairlab boot x program --threads --format json"),
            "fairlab boot x -- program --threads --format json"
        );
        assert_eq!(split("fairlab run hackbench --group /a -p"), "fairlab run --group /a -- hackbench -p");
    }

    #[test]
    fn our_options_and_the_workloads_may_mix() {
        assert_eq!(
            split("fairlab run schbench -t 20 --kernel v6.6 -r 0 --seed=3 --machine vm40"),
            "fairlab run --kernel v6.6 --seed=3 --machine vm40 -- schbench -t 20 -r 0"
        );
        assert_eq!(
            split("fairlab verify --kernel v6.6 --against v6.5 hackbench -g 1 --machine vm40"),
            "fairlab verify --kernel v6.6 --against v6.5 --machine vm40 -- hackbench -g 1"
        );
        assert_eq!(split("fairlab verify t.dat --kernel v6.6"), "fairlab verify t.dat --kernel v6.6");
        assert_eq!(
            split("fairlab compare --github pipe -l 9 --fail-on p99>+5%"),
            "fairlab compare --github --fail-on p99>+5% -- pipe -l 9"
        );
        assert_eq!(split("fairlab compare pipe --github a.md"), "fairlab compare --github a.md -- pipe");
        assert_eq!(
            split("fairlab boot -o d debian:bookworm pipe -l 9 -o e --set A --set B"),
            "fairlab boot -o d debian:bookworm --set A --set B -- pipe -l 9 -o e"
        );
        assert_eq!(
            split("fairlab boot debian:bookworm -- pipe -l 9"),
            "fairlab boot debian:bookworm -- pipe -l 9"
        );
        assert_eq!(split("fairlab run --help"), "fairlab run --help --");
        assert_eq!(split("fairlab compare schbench --help"), "fairlab compare -- schbench --help");
        assert_eq!(
            split("fairlab run --kernel v6.6 -- x --kernel y"),
            "fairlab run --kernel v6.6 -- x --kernel y"
        );
        assert_eq!(split("fairlab latency x -p"), "fairlab latency x -p");
    }

    #[test]
    fn the_command_line_is_consistent() {
        program().debug_assert();
    }
}
