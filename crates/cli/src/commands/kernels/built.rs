//! `fairlab kernels build`, `remove` and `list --built`: kernels of source trees.

use std::sync::atomic::Ordering;

use fairlab_native::build::{
    BuildOptions, BuiltAnswer, BuiltEntry, Manifest, Source, build, kernels, named, remove,
};
use serde_json::json;

use crate::args::{AnswerFormat, BuildArgs};
use crate::error::CliError;
use crate::output;
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::provenance::described;

pub fn execute(args: &BuildArgs) -> Result<(), CliError> {
    let source = Source::parse(&args.source)?;
    let options = BuildOptions {
        patches: args.patches.clone(),
        config: args.config.clone(),
        hz: args.hz,
        preemption: args.preemption.map(|preemption| preemption.0).unwrap_or_default(),
        counts_blocks: false,
    };
    let stop = stop_on_interrupt()?;
    let line = ProgressLine::of_steps("build");
    let built = build(&source, &options, &|step, _| line.tell(step), &stop);
    drop(line);
    if built.is_err() && stop.load(Ordering::Relaxed) {
        return Err(CliError::Interrupted);
    }
    let key = built?.key();
    if let Some(name) = &args.name {
        named(&key)?.give_name(name)?;
    }
    show(&BuiltAnswer::of(kernels()?.into_iter().filter(|(_, built)| built.key() == key)), args.format.format)
}

pub fn list(format: AnswerFormat) -> Result<(), CliError> {
    show(&BuiltAnswer::of(kernels()?), format)
}

pub fn take_away(name: &str, format: AnswerFormat) -> Result<(), CliError> {
    show(&BuiltAnswer::of([remove(name)?]), format)
}

fn show(answer: &BuiltAnswer, format: AnswerFormat) -> Result<(), CliError> {
    match format {
        AnswerFormat::Json => output::answer_json(&described(), json!(answer)),
        AnswerFormat::Text => output::answer(&described(), &to_text(answer)),
    }
}

fn to_text(answer: &BuiltAnswer) -> String {
    if answer.built.is_empty() {
        return "none; 'fairlab kernels build SOURCE' builds one\n".to_string();
    }
    answer.built.iter().map(entry).collect()
}

/// One that is built once may have no name: then a part of its key is one.
fn entry(built: &BuiltEntry) -> String {
    let names = match built.names.as_slice() {
        [] => format!("src:{}", built.key.get(..8).unwrap_or(&built.key)),
        names => names.iter().map(|name| format!("src:{name}")).collect::<Vec<_>>().join(", "),
    };
    let manifest = &built.manifest;
    let patches = match manifest.patches.as_slice() {
        [] => String::new(),
        patches => format!(" with {}", patches.join(", ")),
    };
    let Manifest { release, source, hz, preemption, package, .. } = manifest;
    let package = if package.is_empty() { String::new() } else { format!("\n  package {package}") };
    format!(
        "{names}: Linux {release} of {source}{patches}, HZ {hz}, preemption {preemption}{package}\n  key {}\n  features {}\n  tunables {}\n",
        built.key,
        manifest.features.join(" "),
        manifest.tunables.join(" ")
    )
}
