//! What a kernel is booted on: a PC laid out by numbers, or a board of arm64 made from a machine of the model.
//!
//! Must not know: how QEMU is started.

use std::fmt;

use crate::board::Board;
use crate::layout::CpuLayout;

/// Which kernels a machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64.
    Amd64,
    /// 64-bit Arm.
    Arm64,
}

impl Architecture {
    /// As Debian names it.
    pub const fn of_debian(self) -> &'static str {
        match self {
            Architecture::Amd64 => "amd64",
            Architecture::Arm64 => "arm64",
        }
    }

    /// As a kernel names it (`uname -m`).
    pub const fn of_kernel(self) -> &'static str {
        match self {
            Architecture::Amd64 => "x86_64",
            Architecture::Arm64 => "aarch64",
        }
    }

    /// What tells things for this architecture from those for a PC, in names of places.
    pub const fn suffix(self) -> &'static str {
        match self {
            Architecture::Amd64 => "",
            Architecture::Arm64 => "-arm64",
        }
    }
}

/// A machine to boot on.
#[derive(Clone, Debug)]
pub enum Hardware {
    /// A PC whose CPUs are alike.
    Pc(CpuLayout),
    /// A board whose CPUs may differ, with clocks and an energy model.
    Board(Box<Board>),
}

impl Hardware {
    /// How many CPUs it has.
    pub fn cpus(&self) -> u32 {
        match self {
            Hardware::Pc(layout) => layout.cpus(),
            Hardware::Board(board) => board.cpus(),
        }
    }

    /// What its CPUs are.
    pub fn architecture(&self) -> Architecture {
        match self {
            Hardware::Pc(_) => Architecture::Amd64,
            Hardware::Board(_) => Architecture::Arm64,
        }
    }
}

impl fmt::Display for Hardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hardware::Pc(layout) => write!(f, "{layout}"),
            Hardware::Board(board) => write!(f, "{}", board.name()),
        }
    }
}
