//! Addresses of functions and variables of the running kernel.
//!
//! Must not know: what they are for.

use std::collections::{HashMap, HashSet};

/// Some of the kernel's symbols, by name.
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols(HashMap<String, u64>);

impl KernelSymbols {
    /// Those of `wanted` that the text of `/proc/kallsyms` lists. A name that several symbols have is the first one's.
    pub fn parse(text: &str, wanted: &HashSet<&str>) -> KernelSymbols {
        let mut found = HashMap::new();
        for line in text.lines() {
            let mut words = line.split([' ', '\t']);
            let (Some(address), Some(_), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            if wanted.contains(name)
                && let Ok(address) = u64::from_str_radix(address, 16)
            {
                found.entry(name.to_string()).or_insert(address);
            }
        }
        KernelSymbols(found)
    }

    /// Where `name` lies.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_ones_are_found() {
        let text = "ffffffff81000000 T startup\nffffffff8100f000 t hrtick\n0000000000021000 A runqueues\nodd\nffffffffc0000000 t hrtick\t[m]\n";
        let symbols = KernelSymbols::parse(text, &HashSet::from(["hrtick", "runqueues", "absent"]));
        assert_eq!(symbols.get("hrtick"), Some(0xffff_ffff_8100_f000));
        assert_eq!((symbols.get("runqueues"), symbols.get("startup")), (Some(0x21000), None));
        assert_eq!(symbols.get("absent"), None);
    }
}
