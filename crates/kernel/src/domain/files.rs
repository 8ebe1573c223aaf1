//! How a kernel shows a domain: the files of `sched_domain/cpuN/domainM`.

use super::rules::{FilesShown, FlagsShown};
use super::{DomainId, SchedDomains, SdFlags};

impl SchedDomains {
    /// The folder that has a folder a CPU, with a folder a domain.
    pub fn files_folder(&self) -> &'static str {
        self.rules.files_place.describe()
    }

    /// The files of a domain in alphabetical order, with what they hold.
    ///
    /// Kernel: `sd_alloc_ctl_domain_table()` to v5.12, `register_sd()` from v5.13, kernel/sched/debug.c. Variants: load indexes
    /// to v5.2; flags as a number to v5.9; `groups_flags` from v6.6 (ed74cc4995d3); `level` from v6.10 (287372fa39f5).
    pub fn files(&self, id: DomainId) -> Vec<(&'static str, String)> {
        let domain = self.domain(id);
        let mut files = vec![
            ("busy_factor", domain.busy_factor.to_string()),
            ("cache_nice_tries", domain.cache_nice_tries.to_string()),
            ("flags", self.shown_flags(domain.flags)),
            ("imbalance_pct", domain.imbalance_pct.to_string()),
            ("max_interval", domain.max_interval.to_string()),
            ("max_newidle_lb_cost", domain.balance.max_newidle_lb_cost.to_string()),
            ("min_interval", domain.min_interval.to_string()),
            ("name", domain.name.to_string()),
        ];
        let group = self.group(self.local_group(id));
        match self.rules.files_shown {
            FilesShown::WithLoadIndexes => {
                let indexes = domain.load_index;
                let all = [
                    ("busy_idx", indexes.busy),
                    ("idle_idx", indexes.idle),
                    ("newidle_idx", 0),
                    ("wake_idx", 0),
                    ("forkexec_idx", 0),
                ];
                files.extend(all.map(|(name, index)| (name, index.to_string())));
            }
            FilesShown::Numbers => {}
            FilesShown::WithGroupFlags => files.push(("groups_flags", self.shown_flags(group.flags))),
            FilesShown::WithLevel => {
                files.push(("groups_flags", self.shown_flags(group.flags)));
                files.push(("level", domain.level.to_string()));
            }
        }
        files.sort_unstable_by_key(|(name, _)| *name);
        files
    }

    fn shown_flags(&self, flags: SdFlags) -> String {
        let named = |name: &'static str| match (name, self.rules.flags_shown) {
            ("SD_SHARE_LLC", FlagsShown::PackageNames) => "SD_SHARE_PKG_RESOURCES ".to_string(),
            _ => format!("{name} "),
        };
        match self.rules.flags_shown {
            FlagsShown::NumberFromLoadBalance => flags.number(true).to_string(),
            FlagsShown::NumberFromNewidle => flags.number(false).to_string(),
            FlagsShown::PackageNames | FlagsShown::CacheNames => flags.names().map(named).collect(),
        }
    }
}
