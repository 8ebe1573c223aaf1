//! Where it happened: the kernel and the machine that events come from.

/// What is known of the kernel and the machine, from `uname` or its like. What is not known is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// The kernel's release (`uname -r`); of a modelled kernel, its name without the `v`.
    pub release: String,
    /// The machine's name (`uname -n`); of a modelled machine, its name there.
    pub node: String,
    /// The architecture (`uname -m`).
    pub architecture: String,
    /// How many CPUs there are.
    pub cpus: Option<u32>,
}

impl System {
    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == System::default()
    }
}
