//! Finding the machine that a name means: a preset, this host, one on which kernels are booted, or a file.
//!
//! Must not know: runs, kernels, workloads.

mod calibrated;
mod emulated;
mod file;
mod host;
mod layout;
mod recorded;

use std::path::Path;

use fairlab_event::spelling::meant;
use fairlab_sim::Machine;
use fairlab_sim::machine::{PRESETS, Sharing};

use fairlab_files::LabError;

pub use calibrated::{calibrated, calibrated_toml};
pub use emulated::hardware as emulated_hardware;
pub use emulated::machine as emulated_machine;
pub use recorded::recorded;

/// How the name of a machine ends on which sharing costs nothing.
const WITHOUT_SHARING: &str = "-sharing";

/// The machine called `name`: a preset, `host`, `emulated:LAYOUT`, `emulated:MACHINE`, `layout:LAYOUT`, or the path of a TOML file; with
/// `-sharing` behind it, the machine without what sharing costs.
///
/// # Errors
/// There is no such machine, or its description is impossible.
pub fn find(name: &str) -> Result<Machine, LabError> {
    match name.strip_suffix(WITHOUT_SHARING) {
        Some(with) => find_as_it_is(with).map(|machine| Machine {
            name: format!("{}{WITHOUT_SHARING}", machine.name),
            sharing: Sharing::NONE,
            ..machine
        }),
        None => find_as_it_is(name),
    }
}

fn find_as_it_is(name: &str) -> Result<Machine, LabError> {
    if let Some(machine) = Machine::preset(name) {
        return Ok(machine);
    }
    if name == "host" {
        return host::from_sysfs(Path::new("/"));
    }
    if let Some(hardware) = emulated::hardware(name) {
        return emulated::machine(&hardware?, "debian-6.12");
    }
    if let Some(machine) = layout::machine(name) {
        return machine;
    }
    if name.ends_with(".toml") {
        return file::read(Path::new(name));
    }
    let hint = match meant(name, PRESETS.iter().map(|preset| preset.name).chain(["host"])) {
        Some(known) => format!("{known} may be meant; 'fairlab machines list' lists all"),
        None => "known are presets ('fairlab machines list'), host, emulated:1x4x2, layout:4x1x24x2, and files that end in .toml".to_string(),
    };
    Err(LabError::new(format!("unknown machine '{name}'"), hint))
}

/// The machine that the text of a TOML file describes.
///
/// # Errors
/// It is no such text, or describes an impossible machine.
pub fn parse(text: &str) -> Result<Machine, LabError> {
    file::parse(text)
}

/// A machine as the TOML file that describes it; [`find`] reads it back unchanged.
pub fn to_toml(machine: &Machine) -> String {
    file::to_toml(machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_can_be_had_without_what_sharing_costs() {
        let with = find("zen3-2s").expect("a preset");
        let without = find("zen3-2s-sharing").expect("the same machine");
        assert!(!with.sharing.is_off() && without.sharing.is_off());
        assert_eq!(without, Machine { name: "zen3-2s-sharing".to_string(), sharing: Sharing::NONE, ..with });
        let problem = find("nonsense-sharing").expect_err("no machine").to_string();
        assert!(problem.contains("unknown machine 'nonsense'"), "{problem}");
    }
}
