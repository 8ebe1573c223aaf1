//! A booted machine's CPUs: sockets, cores, threads, nodes; and what follows from how many they are.
//!
//! Must not know: how QEMU's options say it.

use std::fmt;
use std::str::FromStr;

use fairlab_files::LabError;

/// CPUs that can run in turn in reasonable time.
pub const TURNS_CPUS_MAX: u32 = 8;

/// CPUs that a machine with threads of the host can have.
pub const THREADS_CPUS_MAX: u32 = 192;

/// How CPUs are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuLayout {
    /// Packages, each with a last-level cache.
    pub sockets: u32,
    /// Cores of each.
    pub cores: u32,
    /// Hardware threads of each core.
    pub threads: u32,
    /// NUMA nodes; CPUs are dealt out evenly.
    pub nodes: u32,
}

impl CpuLayout {
    /// How many CPUs there are.
    pub fn cpus(self) -> u32 {
        self.sockets * self.cores * self.threads
    }

    /// With so many nodes.
    ///
    /// # Errors
    /// CPUs cannot be dealt out evenly.
    pub fn with_nodes(self, nodes: u32) -> Result<CpuLayout, LabError> {
        if nodes == 0 || !self.cpus().is_multiple_of(nodes) {
            return Err(LabError::new(
                format!("{} CPUs cannot be dealt out to {nodes} nodes", self.cpus()),
                "name a number of nodes that divides the CPUs",
            ));
        }
        Ok(CpuLayout { nodes, ..self })
    }

    /// Memory that kernel and workload need, MiB.
    pub(super) fn memory_mib(self) -> u32 {
        let needed = (self.cpus() * 32).max(1536);
        needed.next_multiple_of(self.nodes * 2)
    }
}

/// `4`: cores of one socket; `1x4x2`: sockets, cores, threads.
impl FromStr for CpuLayout {
    type Err = LabError;

    fn from_str(text: &str) -> Result<CpuLayout, LabError> {
        let wrong = || {
            LabError::new(
                format!("'{text}' is no topology"),
                format!(
                    "say SOCKETSxCORESxTHREADS (1x4x2), or how many cores; at most {THREADS_CPUS_MAX} CPUs"
                ),
            )
        };
        let numbers: Vec<u32> = text
            .split('x')
            .map(|number| number.parse().ok().filter(|number| (1..=THREADS_CPUS_MAX).contains(number)))
            .collect::<Option<_>>()
            .ok_or_else(wrong)?;
        let layout = match numbers[..] {
            [cores] => CpuLayout { sockets: 1, cores, threads: 1, nodes: 1 },
            [sockets, cores, threads] => CpuLayout { sockets, cores, threads, nodes: 1 },
            _ => return Err(wrong()),
        };
        if layout.cpus() > THREADS_CPUS_MAX { Err(wrong()) } else { Ok(layout) }
    }
}

impl fmt::Display for CpuLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CpuLayout { sockets, cores, threads, nodes } = self;
        write!(f, "{sockets}x{cores}x{threads}")?;
        if *nodes > 1 { write!(f, " on {nodes} nodes") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_read() {
        let layout: CpuLayout = "2x4x2".parse().expect("a layout");
        assert_eq!((layout.cpus(), layout.to_string()), (16, "2x4x2".to_string()));
        assert_eq!(layout.with_nodes(2).map(|layout| layout.to_string()), Ok("2x4x2 on 2 nodes".to_string()));
        assert!(layout.with_nodes(3).is_err() && layout.with_nodes(0).is_err());
        assert_eq!("4".parse::<CpuLayout>().map(CpuLayout::cpus), Ok(4));
        for wrong in ["", "0", "4x2", "1x2x3x4", "193", "192x192x192", "-1", "1x4x"] {
            assert!(wrong.parse::<CpuLayout>().is_err(), "{wrong}");
        }
    }
}
