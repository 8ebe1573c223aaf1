//! This host's machine file with costs that were measured, each with its source.
//!
//! Must not know: how they were measured.

use std::fmt::Write;

use fairlab_event::Ns;
use fairlab_live::calibrate::{Amount, Calibration, HostMeasurement, SharingFigure};
use fairlab_sim::Machine;
use fairlab_sim::machine::{Chance, Sharing};

/// The machine with those of these costs that the model has. Costs of sharing that were not measured are off.
pub fn calibrated(machine: &Machine, calibration: &Calibration) -> Machine {
    let mut machine = machine.clone();
    for figure in &calibration.measured {
        machine.costs.set(figure.name, Ns(figure.median_ns.round() as u64));
    }
    for amount in &calibration.chance {
        let limit = machine
            .chance
            .table()
            .iter()
            .find(|source| source.name == amount.name)
            .map(|source| source.limit);
        // What is beyond the limit counts as that, and what is no source of the model's is no part of its machine.
        if let Some(limit) = limit {
            let _ = machine.chance.set(amount.name, amount.value.min(limit));
        }
    }
    machine.sharing = Sharing::NONE;
    for figure in &calibration.sharing {
        let known = machine.sharing.table().into_iter().find(|known| known.name == figure.name);
        if let Some(known) = known {
            let _ = machine.sharing.set(figure.name, figure.value.min(known.limit));
        }
    }
    machine
}

/// The file of that machine; `--machine` reads it. Every cost says where it comes from.
pub fn calibrated_toml(machine: &Machine, calibration: &Calibration) -> String {
    let Machine { costs, chance, sharing, .. } = calibrated(machine, calibration);
    let mut text =
        super::file::without_amounts(machine) + "\n[chance]\n" + &chance_toml(&chance, calibration);
    text += "\n[costs]\n";
    for cost in costs.table() {
        let figure = calibration.measured.iter().find(|figure| figure.name == cost.name);
        let _ = match figure {
            Some(figure) => write!(text, "# {}\n{} = {}\n", source(figure), cost.name, cost.value.0),
            None => {
                let lacking = calibration.lacking.iter().find(|(name, _)| *name == cost.name);
                let why = lacking.map_or("it was not tried", |(_, why)| why);
                writeln!(
                    text,
                    "# {} is not measured ({why}); it stays {}: {}",
                    cost.name, cost.value.0, cost.source
                )
            }
        };
    }
    let is_cost = |figure: &&HostMeasurement| costs.table().iter().any(|cost| cost.name == figure.name);
    for figure in calibration.measured.iter().filter(|figure| !is_cost(figure)) {
        let _ = writeln!(text, "# {} is {:.0}: {}", figure.name, figure.median_ns, source(figure));
    }
    text + &sharing_toml(&sharing, calibration)
}

/// What sharing costs, each figure with its source, and why others are off.
fn sharing_toml(sharing: &Sharing, calibration: &Calibration) -> String {
    let mut text = "\n[sharing]\n".to_string();
    for known in sharing.table() {
        let figure = calibration.sharing.iter().find(|figure| figure.name == known.name);
        let lacking = calibration.lacking.iter().find(|(name, _)| *name == known.name);
        let _ = match (figure, lacking) {
            (Some(figure), _) => write!(text, "# {}\n{} = {}\n", source_of(figure), known.name, known.value),
            (None, Some((_, why))) => writeln!(text, "# {} is not measured, so off: {why}", known.name),
            (None, None) => writeln!(text, "# {} is off: it was not tried", known.name),
        };
    }
    let is_known = |figure: &&SharingFigure| sharing.table().iter().any(|known| known.name == figure.name);
    for figure in calibration.sharing.iter().filter(|figure| !is_known(figure)) {
        let _ = writeln!(text, "# {} is {}: {}", figure.name, figure.value, source_of(figure));
    }
    text
}

fn source_of(figure: &SharingFigure) -> String {
    let SharingFigure { samples, low, high, how, .. } = figure;
    match samples {
        1 => how.clone(),
        _ => format!("measured: {how}; median of {samples}, 80 % of them from {low} to {high}"),
    }
}

/// Every amount of chance with where it comes from, and what tells how disturbed the host was.
fn chance_toml(chance: &Chance, calibration: &Calibration) -> String {
    let mut text = String::new();
    for source in chance.table() {
        let amount = calibration.chance.iter().find(|amount| amount.name == source.name);
        let lacking = calibration.lacking.iter().find(|(name, _)| *name == source.name);
        let comes_from = match (amount, lacking) {
            (Some(amount), _) => format!("measured: {}", amount.how),
            (None, Some((_, why))) => format!("not measured ({why}): {}", source.source),
            (None, None) => source.source.to_string(),
        };
        let _ = write!(text, "# {comes_from}\n{} = {}\n", source.name, source.value);
    }
    let is_source = |amount: &&Amount| chance.table().iter().any(|source| source.name == amount.name);
    for amount in calibration.chance.iter().filter(|amount| !is_source(amount)) {
        let _ = writeln!(text, "# {} is {}: {}", amount.name, amount.value, amount.how);
    }
    text
}

fn source(figure: &HostMeasurement) -> String {
    let HostMeasurement { samples, low_ns, high_ns, how, .. } = figure;
    format!("measured: {how}; median of {samples}, 80 % of them from {low_ns:.0} to {high_ns:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_every_cost_with_its_source_and_is_read_back() {
        let figure = |name: &'static str, median_ns: f64| HostMeasurement {
            name,
            samples: 9,
            median_ns,
            low_ns: median_ns - 5.0,
            high_ns: median_ns + 50.0,
            how: "by a clock",
        };
        let calibration = Calibration {
            measured: vec![figure("ipi_ns", 1234.6), figure("timer_slack_ns", 50_000.0)],
            chance: vec![Amount { name: "computation_permille", value: 23, how: "by a clock".to_string() }],
            sharing: vec![SharingFigure {
                name: "line_llc_ns",
                value: 33,
                low: 30,
                high: 40,
                samples: 7,
                how: "by a clock".to_string(),
            }],
            lacking: vec![("exit_ns", "nobody sees it"), ("line_remote_ns", "one node")],
        };
        let machine = Machine::preset("laptop8").expect("a machine");
        let text = calibrated_toml(&machine, &calibration);
        let wanted = "# measured: by a clock; median of 9, 80 % of them from 1230 to 1285\nipi_ns = 1235\n";
        assert!(text.contains(wanted), "{text}");
        assert!(text.contains("# exit_ns is not measured (nobody sees it); it stays 10000: "), "{text}");
        assert!(text.contains("# timer_slack_ns is 50000: measured: "), "{text}");
        let line = "# measured: by a clock; median of 7, 80 % of them from 30 to 40\nline_llc_ns = 33\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("# line_remote_ns is not measured, so off: one node\n"), "{text}");
        let path = std::env::temp_dir().join(format!("fairlab-calibrated-{}.toml", std::process::id()));
        std::fs::write(&path, &text).expect("written");
        let read = crate::find(path.to_str().expect("a path")).expect("a machine");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(read, calibrated(&machine, &calibration));
        assert_eq!(read.sharing, Sharing { line_llc_ns: 33, ..Sharing::NONE });
        assert_eq!((read.costs.ipi, read.chance.computation_permille), (Ns(1235), 23));
        assert!(text.contains("# measured: by a clock\ncomputation_permille = 23\n"), "{text}");
    }
}
