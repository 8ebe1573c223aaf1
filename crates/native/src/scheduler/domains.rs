//! The scheduling domains that the kernel's own code has built.
//!
//! Must not know: which domains the model would build.

use fairlab_event::Cpu;
use fairlab_kernel::CpuMask;
use serde::{Deserialize, Serialize};

use super::NativeScheduler;

/// `enum fl_object`.
const DOMAIN: i32 = 4;
const FLAG: i32 = 6;

/// What the kernel shows of a domain, by the names of the files below `sched/domains` in debugfs.
const NUMBERS: [&str; 5] =
    ["busy_factor", "cache_nice_tries", "imbalance_pct", "max_interval", "min_interval"];

/// A domain as one CPU has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnDomain {
    /// Its CPUs, as the kernel prints lists of them.
    pub span: String,
    /// Files that show it, with what they hold, in alphabetical order.
    pub files: Vec<(String, String)>,
}

impl NativeScheduler {
    /// A CPU's domains, the smallest first.
    pub fn domains(&self, cpu: Cpu) -> Vec<OwnDomain> {
        let fields = self.image.fields(DOMAIN);
        let flags = self.image.fields(FLAG);
        let number = |level: usize, name: &str| {
            let field = fields.iter().position(|field| field == name)?;
            Some(self.image.read_domain(cpu.0 as i32, level as i32, field as i32))
        };
        let domain = |level: usize, name: String| {
            let bits = number(level, "flags").unwrap_or(0);
            let set = flags.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
            let set = set.map(|(_, flag)| flag.as_str()).collect::<Vec<_>>().join(" ");
            let numbers =
                NUMBERS.into_iter().filter_map(|name| Some((name, number(level, name)?.to_string())));
            let mut files = numbers.chain([("flags", set), ("name", name)]).collect::<Vec<_>>();
            files.sort_unstable();
            OwnDomain {
                span: self.span(cpu, level).to_string(),
                files: files.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            }
        };
        let named = (0..).map_while(|level| Some((level, self.image.domain_name(cpu, level)?)));
        named.map(|(level, name)| domain(level, name)).collect()
    }

    fn span(&self, cpu: Cpu, level: usize) -> CpuMask {
        let words = self.image.domain_span(cpu, level).unwrap_or_default();
        let is_in = |cpu: &Cpu| words.get(cpu.index() / 64).is_some_and(|word| word >> (cpu.0 % 64) & 1 == 1);
        (0..self.nr_cpus as u32).map(Cpu).filter(is_in).collect()
    }
}
