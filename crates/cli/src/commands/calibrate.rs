//! `fairlab calibrate`: what kernel work costs on this host.

use fairlab_event::ShownPath;
use fairlab_lab::machines::{self, calibrated_toml};
use fairlab_lab::provenance::Origin;
use fairlab_live::calibrate::{Calibration, CalibrationSettings, calibrate};
use serde_json::{Value, json};

use crate::args::{AnswerFormat, CalibrateArgs};
use crate::error::CliError;
use crate::numbers::duration;
use crate::output;
use crate::progress::{ProgressLine, end_on_interrupt};
use crate::provenance::{self, this_release};

pub fn execute(args: &CalibrateArgs) -> Result<(), CliError> {
    let machine = machines::find("host")?;
    let cpus = match &args.cpus {
        Some(list) => list.0.iter().map(|cpu| cpu.index()).collect::<Vec<_>>(),
        None => fairlab_live::allowed_cpus(),
    };
    let [here, others @ ..] = cpus.as_slice() else {
        return Err(CliError::bad("there is no CPU to measure on", "name two with --cpus"));
    };
    end_on_interrupt()?;
    let settings = CalibrationSettings {
        here: *here,
        there: others.first().copied(),
        samples: args.samples,
        hz: machine.hz,
    };
    let progress = ProgressLine::new("calibrate");
    let calibration = calibrate(&settings, &cpus, &|what| progress.tell(what))
        .map_err(|problem| CliError::bad(problem, "name CPUs that may be used with --cpus"))?;
    if let Some(path) = &args.output {
        fairlab_lab::write_whole(path, calibrated_toml(&machine, &calibration)).map_err(|error| {
            CliError::bad(
                format!("cannot write {}: {error}", ShownPath(path)),
                "check the place that -o names",
            )
        })?;
    }
    let provenance = provenance::here().by(Origin::RunHere).kernel(this_release()).machine(&machine.name);
    match args.format {
        AnswerFormat::Json => output::answer_json(&provenance, to_json(&settings, &calibration)),
        AnswerFormat::Text => output::answer(&provenance, &to_text(&settings, &calibration)),
    }
}

fn to_json(settings: &CalibrationSettings, calibration: &Calibration) -> Value {
    let figure = |figure: &fairlab_live::calibrate::HostMeasurement| {
        json!({
            "name": figure.name,
            "median_ns": figure.median_ns.round() as u64,
            "low_ns": figure.low_ns.round() as u64,
            "high_ns": figure.high_ns.round() as u64,
            "samples": figure.samples,
            "how": figure.how,
        })
    };
    let shared = |figure: &fairlab_live::calibrate::SharingFigure| {
        json!({
            "name": figure.name,
            "value": figure.value,
            "low": figure.low,
            "high": figure.high,
            "samples": figure.samples,
            "how": figure.how,
        })
    };
    let lacking = |(name, why): &(&str, &str)| json!({ "name": name, "why": why });
    json!({
        "schema": "fairlab/calibrate/1",
        "cpus": [Some(settings.here), settings.there],
        "measured": calibration.measured.iter().map(figure).collect::<Vec<_>>(),
        "chance": calibration.chance.iter().map(|amount| json!({ "name": amount.name, "value": amount.value, "how": amount.how })).collect::<Vec<_>>(),
        "sharing": calibration.sharing.iter().map(shared).collect::<Vec<_>>(),
        "not_measured": calibration.lacking.iter().map(lacking).collect::<Vec<_>>(),
    })
}

fn to_text(settings: &CalibrationSettings, calibration: &Calibration) -> String {
    let there = settings.there.map_or(String::new(), |cpu| format!(", and between it and CPU {cpu}"));
    let mut text =
        format!("on CPU {}{there}; medians, and between what 80 % of the samples lie\n\n", settings.here);
    let row = |figure: &fairlab_live::calibrate::HostMeasurement| {
        vec![
            figure.name.trim_end_matches("_ns").to_string(),
            duration(figure.median_ns),
            duration(figure.low_ns),
            duration(figure.high_ns),
            figure.samples.to_string(),
        ]
    };
    let rows = calibration.measured.iter().map(row).collect::<Vec<_>>();
    text += &output::table(&["cost", "median", "10 %", "90 %", "samples"], &rows);
    text += "\n";
    let rows = calibration
        .chance
        .iter()
        .map(|amount| vec![amount.name.to_string(), amount.value.to_string(), amount.how.clone()]);
    text += &output::table(&["chance", "amount", "how"], &rows.collect::<Vec<_>>());
    text += "\n";
    let row = |figure: &fairlab_live::calibrate::SharingFigure| {
        let numbers = [figure.value, figure.low, figure.high].map(|number| number.to_string());
        [
            vec![figure.name.to_string()],
            numbers.to_vec(),
            vec![figure.samples.to_string(), figure.how.clone()],
        ]
        .concat()
    };
    let rows = calibration.sharing.iter().map(row).collect::<Vec<_>>();
    text += &output::table(&["sharing", "median", "10 %", "90 %", "samples", "how"], &rows);
    let names = calibration.lacking.iter().map(|(name, _)| name.trim_end_matches("_ns")).collect::<Vec<_>>();
    text + &format!(
        "\nnot measured, so the model's defaults stay, and what sharing costs is off: {}\n",
        names.join(", ")
    )
}
