//! What sharing costs: a core's threads, caches, bandwidth, cache lines. Every effect is off where its figure is zero, which is the default.
//!
//! Must not know: who shares what, and when.

/// What one core draws from memory where its machine tells nothing, MB/s: the order of magnitude of STREAM with one thread on a
/// current server.
pub const NOMINAL_MEGABYTES_PER_S: u64 = 12_000;

/// Declares every figure once: its field, its limit, what it says, and in which unit.
macro_rules! figures {
    ($($field:ident, $limit:literal, $about:literal;)*) => {
        /// What sharing costs on a machine. Zero: nobody knows, and the effect is off.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Sharing { $(#[doc = $about] pub $field: u64,)* }

        impl Sharing {
            /// Sharing costs nothing.
            pub const NONE: Sharing = Sharing { $($field: 0,)* };

            /// Every figure with its name, value and what it says.
            pub fn table(&self) -> Vec<SharingCost> {
                vec![$(SharingCost { name: stringify!($field), value: self.$field, limit: $limit, about: $about },)*]
            }

            /// Sets the figure called `name`.
            ///
            /// # Errors
            /// There is no such figure, or the value is beyond its limit: one line that says so.
            pub fn set(&mut self, name: &str, value: u64) -> Result<(), String> {
                let (place, limit) = match name {
                    $(stringify!($field) => (&mut self.$field, $limit),)*
                    _ => return Err(format!("unknown figure '{name}'")),
                };
                if value > limit {
                    return Err(format!("{name} = {value} is more than {limit}"));
                }
                *place = value;
                Ok(())
            }
        }
    };
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharingCost {
    /// Its name in machine files.
    pub name: &'static str,
    /// What it is on this machine; zero: unknown, so the effect is off.
    pub value: u64,
    /// The most that it can be.
    pub limit: u64,
    /// What it says.
    pub about: &'static str,
}

figures! {
    smt_speed_2, 1024, "Speed of each thread while two of its core run, of 1024";
    smt_speed_4, 1024, "Speed of each thread while four of its core run, of 1024";
    smt_speed_8, 1024, "Speed of each thread while eight of its core run, of 1024";
    core_megabytes_per_s, 10_000_000, "What one core draws from its node's memory, alone, MB/s";
    llc_megabytes_per_s, 100_000_000, "What all cores of a last-level cache draw from memory, MB/s";
    node_megabytes_per_s, 100_000_000, "What a node's memory gives to all, MB/s";
    remote_permille, 1000, "What a core draws from another node's memory, alone, in thousandths of core_megabytes_per_s";
    llc_kb, 100_000_000, "What a last-level cache holds, KB";
    cached_megabytes_per_s, 10_000_000, "What one core draws from its last-level cache, MB/s";
    core_kb, 1_000_000, "What a core's own caches hold, KB";
    working_set_kb, 100_000_000, "What a thread works with that does not say it, KB";
    refill_core_ns_per_kb, 1_000_000, "Refilling a core's own caches from its last-level cache, ns a KB";
    refill_llc_ns_per_kb, 1_000_000, "Refilling a last-level cache within a node, ns a KB";
    refill_node_ns_per_kb, 1_000_000, "Refilling a last-level cache from another node, ns a KB";
    wakeup_cluster_ns, 1_000_000, "Waking a task for another core of the waker's cluster, beside wakeup_ns; 0: as wakeup_llc_ns";
    wakeup_llc_ns, 1_000_000, "Waking a task for another core of the waker's last-level cache, beside wakeup_ns";
    wakeup_node_ns, 1_000_000, "Waking a task for another last-level cache of the node, beside wakeup_ns";
    wakeup_remote_ns, 1_000_000, "Waking a task for another node, beside wakeup_ns";
    ipi_remote_ns, 1_000_000, "An interrupt of a CPU of another node, beside ipi_ns";
    line_core_ns, 1_000_000, "A cache line that another thread of the core has written";
    line_cluster_ns, 1_000_000, "A cache line that another core of the cluster has written; 0: as line_llc_ns";
    line_llc_ns, 1_000_000, "A cache line that another core of the last-level cache has written";
    line_node_ns, 1_000_000, "A cache line that a core of another last-level cache of the node has written";
    line_remote_ns, 1_000_000, "A cache line that a core of another node has written";
    rq_lock_ns, 1_000_000, "How long the lock of a runqueue is held by who queues there or switches";
}

impl Sharing {
    /// Whether nothing is known, so that nothing is charged.
    pub fn is_off(&self) -> bool {
        *self == Sharing::NONE
    }

    /// Whether it says what a cache line takes that another core has written.
    pub fn has_lines(&self) -> bool {
        self.lines().iter().any(|&ns| ns > 0)
    }

    /// What a line takes, by [`SharingDistance`](crate::engine).
    pub(crate) fn lines(&self) -> [u64; 5] {
        let cluster = or(self.line_cluster_ns, self.line_llc_ns);
        [self.line_core_ns, cluster, self.line_llc_ns, self.line_node_ns, self.line_remote_ns]
    }

    /// What a wakeup takes beside one within a core, by the same.
    pub(crate) fn wakeups(&self) -> [u64; 5] {
        let cluster = or(self.wakeup_cluster_ns, self.wakeup_llc_ns);
        [0, cluster, self.wakeup_llc_ns, self.wakeup_node_ns, self.wakeup_remote_ns]
    }

    /// How long one core, alone, takes to move so many bytes between it and its node's memory, ns.
    pub fn traffic_ns(&self, bytes: u64) -> u64 {
        let mbps =
            if self.core_megabytes_per_s > 0 { self.core_megabytes_per_s } else { NOMINAL_MEGABYTES_PER_S };
        let ns = u128::from(bytes) * 1000 / u128::from(mbps);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// How fast each of `running` threads of a core is, of 1024: between two figures in proportion.
    pub fn smt_speed(&self, running: usize) -> u64 {
        let known = [(1, 1024), (2, self.smt_speed_2), (4, self.smt_speed_4), (8, self.smt_speed_8)];
        let mut below = (1, 1024);
        for (threads, speed) in known.into_iter().filter(|&(_, speed)| speed > 0) {
            if threads >= running {
                let (from, fast) = below;
                let way = (running.max(from) - from) as u64;
                return match (threads - from) as u64 {
                    0 => speed,
                    whole => (fast * (whole - way) + speed * way) / whole,
                };
            }
            below = (threads, speed);
        }
        below.1
    }
}

/// A figure, or another one where it is not known.
fn or(figure: u64, other: u64) -> u64 {
    if figure > 0 { figure } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_can_be_set_by_its_name_and_has_a_limit() {
        for figure in Sharing::NONE.table() {
            let mut sharing = Sharing::NONE;
            assert_eq!(sharing.set(figure.name, 7), Ok(()));
            let set = sharing.table().into_iter().filter(|line| line.value == 7);
            assert_eq!(set.map(|line| line.name).collect::<Vec<_>>(), [figure.name]);
            assert!(!sharing.is_off() && sharing.set(figure.name, figure.limit + 1).is_err());
        }
        assert!(Sharing::NONE.is_off() && Sharing::NONE.clone().set("nonsense", 1).is_err());
    }

    #[test]
    fn threads_of_a_core_slow_each_other_by_how_many_run() {
        let two = Sharing { smt_speed_2: 640, ..Sharing::NONE };
        assert_eq!([1, 2, 4].map(|running| two.smt_speed(running)), [1024, 640, 640]);
        let eight = Sharing { smt_speed_2: 700, smt_speed_4: 400, smt_speed_8: 200, ..Sharing::NONE };
        let of = [1, 2, 3, 4, 6, 8].map(|running| eight.smt_speed(running));
        assert_eq!(of, [1024, 700, 550, 400, 300, 200]);
        assert_eq!(Sharing::NONE.smt_speed(2), 1024);
    }
}
