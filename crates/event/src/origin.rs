//! How events, and answers that rest on them, came about.

/// How an answer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The program describes what it knows: kernels, machines, workloads.
    Described,
    /// A trace, or counts of one, was read.
    Recorded,
    /// A model ran in virtual time.
    Modelled,
    /// A kernel's own scheduler, built from its sources, ran in virtual time.
    Driven,
    /// A real kernel ran in QEMU.
    Booted,
    /// The kernel of this host ran.
    RunHere,
}

impl Origin {
    /// All of them.
    pub const ALL: [Origin; 6] = [
        Origin::Described,
        Origin::Recorded,
        Origin::Modelled,
        Origin::Driven,
        Origin::Booted,
        Origin::RunHere,
    ];

    /// The name in machine-readable answers and in counts.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Described => "described",
            Origin::Recorded => "recorded",
            Origin::Modelled => "modelled",
            Origin::Driven => "driven",
            Origin::Booted => "booted",
            Origin::RunHere => "run here",
        }
    }

    /// Whether a run is a function of its seed, so that runs of equal seeds belong together.
    pub const fn has_seeds(self) -> bool {
        match self {
            Origin::Modelled | Origin::Driven => true,
            Origin::Described | Origin::Recorded | Origin::Booted | Origin::RunHere => false,
        }
    }

    /// The origin of that name.
    pub fn parse(name: &str) -> Option<Origin> {
        Origin::ALL.into_iter().find(|origin| origin.name() == name)
    }
}
