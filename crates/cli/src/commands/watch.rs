//! `fairlab watch`: which commits changed which cases of a catalogue.

mod beside;
mod cells;
mod known;
mod text;

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fairlab_event::ShownPath;
use fairlab_files::write_whole;
use fairlab_lab::LabError;
use fairlab_lab::kernel::origin_of;
use fairlab_lab::provenance::Provenance;
use fairlab_native::build::point_releases;
use fairlab_report::public::read_all;
use fairlab_watch::answer::WatchAnswer;
use fairlab_watch::{
    CASE_KEYS, Catalogue, FRESH_SEEDS, Screening, WatchCase, WatchCrew, WatchEffort, WatchEstimate,
    WatchSpec, WatchedLine, listed, watch,
};
use serde_json::{Value, json};

use super::experiment;
use crate::args::{AnswerFormat, WatchArgs, WatchCommand, WatchFormat, WatchRunArgs};
use crate::error::CliError;
use crate::output;
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::{provenance, ray};

/// What an answer is called in its folder.
const ANSWER: &str = "watch.json";

/// What its page is called.
const PAGE: &str = "index.html";

/// Runs of a kernel in the quick form.
const QUICK_RUNS: usize = 14;

/// Fewer runs do not tell how runs scatter.
const RUNS_MIN: usize = 4;

pub fn execute(args: &WatchArgs) -> Result<(), CliError> {
    match &args.command {
        None => run(&args.run),
        Some(WatchCommand::Keys) => output::print(CASE_KEYS),
        Some(WatchCommand::List { catalogue, format }) => list(&Catalogue::read(catalogue)?, *format),
        Some(WatchCommand::Report { folder, format, known, beside, tables }) => {
            let value = earlier(folder)?;
            if *tables {
                return cells::write(&value, folder).map_err(|error| failed(folder, &error));
            }
            match (known, beside) {
                (Some(reports), _) => output::print(&known::to_text(&value, &read_all(reports)?)),
                (None, Some(other)) => output::print(&beside::to_text(&value, &earlier(other)?)),
                (None, None) => print(&value, *format),
            }
        }
    }
}

fn run(args: &WatchRunArgs) -> Result<(), CliError> {
    if args.runs_max < RUNS_MIN {
        let problem = format!("{} runs do not tell how runs scatter", args.runs_max);
        return Err(CliError::bad(problem, format!("give --runs-max {RUNS_MIN} or more")));
    }
    let stop = stop_on_interrupt()?;
    let earlier = args.out.as_deref().map_or(Ok(None), opened)?;
    let mut line = line_of(args, earlier.as_ref(), &stop)?;
    if let Some(why) = line.why_empty() {
        return match args.follow {
            true => output::print(&format!("nothing new: {why}\n")),
            false => Err(CliError::bad(why.to_string(), "name kernels with commits between them")),
        };
    }
    let mut catalogue = catalogue_of(args)?;
    if args.modelled {
        modelled(&mut line, &mut catalogue, args.seed, &stop)?;
    }
    let spec = WatchSpec {
        line,
        catalogue,
        screening: if args.quick { Screening::OneSeed } else { Screening::Thorough },
        runs_max: if args.quick { QUICK_RUNS.min(args.runs_max) } else { args.runs_max },
        first_seed: args.seed,
    };
    let WatchEstimate { kernels, cases, runs } = spec.estimate();
    output::tell(&format!(
        "{kernels} kernels, {cases} cases: at most {runs} runs tell which kernels differ, and further runs by how much"
    ));
    let crew = ray::of(&args.on, &stop)?.map(|carrier| WatchCrew::new(Box::new(carrier)));
    let progress = ProgressLine::of_steps("watch");
    let (show, tell) = (|done| progress.show(done), |step: &str| progress.tell(step));
    let store = experiment::store(args.kept);
    let effort = WatchEffort {
        jobs: experiment::jobs(args.jobs),
        crew: crew.as_ref(),
        store: store.as_ref(),
        on_progress: &show,
        tell: &tell,
        stop: &stop,
    };
    let answer = watch(spec, effort)?;
    drop((crew, progress));
    let new = news(&answer, earlier.as_ref());
    let value =
        output::with_provenance(&provenance_of(&answer, args.seed).of_store(store.as_ref()), json!(answer));
    if let Some(folder) = &args.out {
        write(folder, &value)?;
    }
    print(&value, args.format)?;
    match answer.partial {
        true => Err(CliError::Interrupted),
        false if new > 0 => Err(CliError::No),
        false => Ok(()),
    }
}

/// The cases, in their quick form where that is asked for.
fn catalogue_of(args: &WatchRunArgs) -> Result<Catalogue, CliError> {
    let Catalogue { cases, skipped } = Catalogue::read(&args.catalogue)?;
    let form = |case: WatchCase| if args.quick { case.quickly() } else { case };
    Ok(Catalogue { cases: cases.into_iter().map(form).collect(), skipped })
}

/// Puts the model of each tree in its place.
fn modelled(
    line: &mut WatchedLine,
    catalogue: &mut Catalogue,
    first_seed: u64,
    stop: &AtomicBool,
) -> Result<(), CliError> {
    let Some(case) = catalogue.cases.first() else { return Ok(()) };
    let setting = case.setting(first_seed)?;
    let progress = ProgressLine::of_steps("watch");
    for (kernel, error) in line.modelled(&setting, &|step| progress.tell(step), stop) {
        catalogue.skip(kernel, &error);
    }
    Ok(())
}

/// The list with the point releases that Debian's archive has in place of `src:debian:6.12.x`.
fn with_points(over: &str, stop: &AtomicBool) -> Result<String, CliError> {
    let progress = ProgressLine::of_steps("watch");
    let tell = |step: &str| progress.tell(&format!("fetching {step}"));
    let mut names = Vec::new();
    for name in listed(over) {
        match name.strip_prefix("src:debian:").and_then(|release| release.strip_suffix(".x")) {
            Some(release) => {
                let points = point_releases(release, &tell, stop)?;
                names.extend(points.iter().map(|point| format!("src:debian:{point}")));
            }
            None => names.push(name),
        }
    }
    Ok(names.join(","))
}

/// The kernels, which may begin where an earlier watch ended.
fn line_of(args: &WatchRunArgs, earlier: Option<&Value>, stop: &AtomicBool) -> Result<WatchedLine, CliError> {
    let over = with_points(args.over.as_deref().unwrap_or_default(), stop)?;
    if !args.follow {
        return Ok(WatchedLine::parse(&over, stop)?);
    }
    let kernels = earlier.map_or(&[][..], |earlier| text::elements(&earlier["kernels"]));
    let last = kernels.iter().rev().find_map(|kernel| kernel["name"].as_str()).ok_or_else(|| {
        CliError::bad(
            "--follow goes on from an earlier watch, and --out has none",
            "watch a range first: --over FROM..TO",
        )
    })?;
    let names = listed(&over);
    if names.len() > 1 {
        let behind = names.iter().rposition(|name| name == last).map_or(0, |at| at + 1);
        let new = std::iter::once(last.to_string()).chain(names.into_iter().skip(behind));
        return Ok(WatchedLine::of_list(&new.collect::<Vec<_>>())?);
    }
    // Commits of one repository are named once.
    let end = over
        .rsplit_once('@')
        .filter(|_| over.starts_with("src:"))
        .map_or(over.as_str(), |(_, revision)| revision);
    Ok(WatchedLine::parse(&format!("{last}..{end}"), stop)?)
}

/// Regressions for sure that an earlier watch did not tell; without one all of them.
fn news(answer: &WatchAnswer, earlier: Option<&Value>) -> usize {
    let known = |key: (&str, &str, &str)| {
        earlier
            .is_some_and(|earlier| text::confirmed(earlier).into_iter().any(|finding| key_of(finding) == key))
    };
    let is_new = |key| !known(key);
    answer.confirmed().filter(|finding| finding.verdict.name() == "worse" && is_new(finding.key())).count()
}

fn key_of(finding: &Value) -> (&str, &str, &str) {
    let [case, metric] = ["case", "metric"].map(|key| finding[key].as_str().unwrap_or_default());
    (text::commit_of(finding), case, metric)
}

/// The folder, made, and what an earlier watch left there.
fn opened(folder: &Path) -> Result<Option<Value>, CliError> {
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    read(&folder.join(ANSWER))
}

fn read(path: &Path) -> Result<Option<Value>, CliError> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| failed(path, &error))?,
    };
    let value =
        serde_json::from_str::<Value>(&text).ok().filter(|value| value["schema"] == "fairlab/watch/1");
    value.map(Some).ok_or_else(|| {
        let problem = format!("{} is no answer of 'fairlab watch'", ShownPath(path));
        CliError::from(LabError::new(problem, "give another folder"))
    })
}

/// What an earlier watch left.
fn earlier(folder: &Path) -> Result<Value, CliError> {
    let path = folder.join(ANSWER);
    read(&path)?.ok_or_else(|| {
        CliError::bad(format!("{}: there is none", ShownPath(&path)), "give the folder of 'watch --out'")
    })
}

fn write(folder: &Path, value: &Value) -> Result<(), CliError> {
    let title = format!("What changed in {}", value["range"].as_str().unwrap_or_default());
    let page = fairlab_page::html(fairlab_page::PageKind::Watch, &title, value);
    for (name, content) in [(ANSWER, format!("{value:#}\n")), (PAGE, page)] {
        let path = folder.join(name);
        write_whole(&path, content).map_err(|error| failed(&path, &error))?;
    }
    cells::write(value, folder).map_err(|error| failed(folder, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> CliError {
    CliError::bad(format!("{}: {error}", ShownPath(path)), "check the place and its free space")
}

fn print(value: &Value, format: WatchFormat) -> Result<(), CliError> {
    match format {
        WatchFormat::Json => output::print_json(value),
        WatchFormat::Text => output::print(&text::to_text(value)),
        WatchFormat::Md => output::print(&text::to_markdown(value)),
    }
}

fn provenance_of(answer: &WatchAnswer, first_seed: u64) -> Provenance {
    let mut names = answer.kernels.iter().filter_map(|kernel| kernel.name.as_deref());
    let all = names.clone().map(origin_of).fold(provenance::here(), Provenance::by);
    let ends = [names.next(), names.next_back()].into_iter().flatten();
    let all = ends.fold(all, Provenance::kernel);
    let machines = answer.cases.iter().map(|case| &case.machine);
    let found = answer.cases.iter().flat_map(|case| &case.classes).map(|class| class.runs).max();
    let fresh = answer.findings.iter().filter_map(|finding| finding.fresh).map(|fresh| fresh.runs).max();
    let seeds = |offset: u64, runs: Option<usize>| {
        (0..runs.unwrap_or(0) as u64).map(move |number| first_seed.wrapping_add(offset + number))
    };
    machines.fold(all, Provenance::machine).seeds(seeds(0, found)).seeds(seeds(FRESH_SEEDS, fresh))
}

fn list(catalogue: &Catalogue, format: AnswerFormat) -> Result<(), CliError> {
    if format == AnswerFormat::Json {
        return output::print_json(&text::list_json(catalogue));
    }
    output::print(&text::list(catalogue))
}
