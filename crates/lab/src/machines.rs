//! Finding the machine that a name means: a preset, this host, one on which kernels are booted, or a file.

mod calibrated;
mod emulated;
mod file;
mod host;
mod layout;

use std::path::Path;

use fairlab_sim::Machine;
use fairlab_sim::machine::PRESETS;

use crate::LabError;

pub use calibrated::{calibrated, calibrated_toml};
pub use emulated::hardware as emulated_hardware;
pub use emulated::machine as emulated_machine;

/// The machine called `name`: a preset, `host`, `emulated:LAYOUT`, `emulated:MACHINE`, `layout:LAYOUT`, or the path of a TOML file.
///
/// # Errors
/// There is no such machine, or its description is impossible.
pub fn find(name: &str) -> Result<Machine, LabError> {
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
    let names = PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ");
    Err(LabError::new(
        format!("unknown machine '{name}'"),
        format!(
            "known are {names}, host, emulated:1x4x2 and layout:4x1x24x2 and the like, and paths that end in .toml"
        ),
    ))
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
