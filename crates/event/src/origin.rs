//! By which way events, and answers that rest on them, came about.

/// The way by which an answer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The program describes what it knows: kernels, machines, workloads.
    Described,
    /// A trace, or counts of one, was read.
    Recorded,
    /// A model ran in virtual time.
    Modelled,
    /// A real kernel ran in QEMU.
    Booted,
    /// The kernel of this host ran.
    RunHere,
}

impl Origin {
    /// The name in machine-readable answers and in counts.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Described => "described",
            Origin::Recorded => "recorded",
            Origin::Modelled => "modelled",
            Origin::Booted => "booted",
            Origin::RunHere => "run here",
        }
    }

    /// Whether a run is a function of its seed, so that runs of equal seeds belong together.
    pub const fn has_seeds(self) -> bool {
        match self {
            Origin::Modelled => true,
            Origin::Described | Origin::Recorded | Origin::Booted | Origin::RunHere => false,
        }
    }

    /// The origin of that name.
    pub fn parse(name: &str) -> Option<Origin> {
        let all = [Origin::Described, Origin::Recorded, Origin::Modelled, Origin::Booted, Origin::RunHere];
        all.into_iter().find(|origin| origin.name() == name)
    }
}
