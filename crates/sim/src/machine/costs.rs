//! The cost table: how long kernel work keeps a CPU busy.

use fairlab_event::Ns;

/// Declares every cost once: its field, its name, what it covers, its default and where that comes from.
macro_rules! costs {
    ($($field:ident, $name:literal, $default:literal, $covers:literal, $source:literal;)*) => {
        /// How long kernel work keeps a CPU busy, at full speed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct KernelCosts { $(#[doc = $covers] pub $field: Ns,)* }

        impl Default for KernelCosts {
            fn default() -> KernelCosts {
                KernelCosts { $($field: Ns($default),)* }
            }
        }

        impl KernelCosts {
            /// Kernel work that takes no time.
            pub const NONE: KernelCosts = KernelCosts { $($field: Ns::ZERO,)* };

            /// Every cost with its name, value, what it covers and the source of its default.
            pub fn table(&self) -> Vec<KernelCost> {
                vec![$(KernelCost { name: $name, value: self.$field, default: Ns($default), covers: $covers, source: $source },)*]
            }

            /// Sets the cost called `name`. Returns whether there is one.
            pub fn set(&mut self, name: &str, value: Ns) -> bool {
                match name {
                    $($name => self.$field = value,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

/// One line of the cost table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelCost {
    /// Its name in machine files.
    pub name: &'static str,
    /// What it is on this machine.
    pub value: Ns,
    /// What it is where nothing else is said.
    pub default: Ns,
    /// What it covers.
    pub covers: &'static str,
    /// Where the default comes from.
    pub source: &'static str,
}

costs! {
    syscall, "syscall_ns", 200, "Entry to and exit from a system call, without its work",
        "order of magnitude of getpid() with mitigations on current x86";
    wakeup, "wakeup_ns", 1_500, "One try_to_wake_up() with its futex or timer code, until the clock of the wakee's queue is read",
        "order of magnitude: a futex ping-pong takes 3 to 5 us a round trip on current x86, two wakeups and two switches";
    activate, "activate_ns", 0, "Queueing a woken task, from that clock on: by its waker, or by the CPU that the wakeup is left to",
        "part of wakeup_ns where nothing tells them apart; 'fairlab calibrate' does";
    context_switch, "context_switch_ns", 1_200, "From the pick to the first user instruction of the next task",
        "order of magnitude: as wakeup_ns";
    ipi, "ipi_ns", 1_000, "From sending an interrupt to its arrival on another CPU",
        "order of magnitude on one x86 socket";
    interrupt, "interrupt_ns", 500, "Entry to and exit from an interrupt, without its work",
        "order of magnitude on current x86";
    idle_exit, "idle_exit_ns", 2_000, "From an interrupt's arrival on an idle CPU to its handler",
        "exit latency of C1 in intel_idle tables for servers";
    tick, "tick_ns", 1_500, "The periodic tick",
        "order of magnitude: time of the local timer interrupt in ftrace's osnoise on servers";
    timer, "timer_ns", 800, "One expired hrtimer",
        "order of magnitude";
    scan_cpu, "scan_cpu_ns", 30, "Looking at one CPU while selecting where to wake a task",
        "about one cache miss inside a socket";
    newidle, "newidle_ns", 1_000, "Going idle: looking whether anything could be pulled",
        "order of magnitude of newidle_balance() without domains to search";
    softirq, "softirq_ns", 300, "Running the SCHED softirq, without its work",
        "order of magnitude of a softirq on return from an interrupt";
    blocked_cpu, "blocked_cpu_ns", 200, "Ageing one CPU's blocked load: its lock, its clock",
        "a few cache misses inside a socket";
    blocked_queue, "blocked_queue_ns", 100, "Ageing the blocked load of one queue",
        "a cache miss or two for each group";
    migrate, "migrate_ns", 800, "Moving one task to another queue",
        "order of magnitude of a dequeue and an enqueue with remote cache lines";
    balance_cpu, "balance_cpu_ns", 100, "Looking at one runqueue while balancing",
        "a few cache misses inside a socket";
    governor_cpu, "governor_cpu_ns", 100, "Looking at one CPU of a frequency policy while choosing a frequency",
        "a few cache misses inside a socket";
    frequency_switch, "frequency_switch_ns", 5_000, "Setting a frequency, where a thread does that: its driver's work",
        "order of magnitude: locks, notifiers and the writing of a register; that it may wait for the hardware is left away";
    send, "send_ns", 800, "Writing a message of a hundred bytes into a socket or pipe, beside the system call and the wakeup",
        "order of magnitude: a message of perf bench sched messaging takes 2 to 4 us in all, with two system calls";
    receive, "receive_ns", 800, "Reading such a message that is there, beside the system call",
        "order of magnitude: as send_ns";
    fork, "fork_ns", 15_000, "Creating a thread",
        "order of magnitude of clone() for a thread";
    exit, "exit_ns", 10_000, "Ending a thread",
        "order of magnitude";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cost_can_be_set_by_its_name_and_has_a_source() {
        for cost in KernelCosts::default().table() {
            let mut costs = KernelCosts::default();
            assert!(costs.set(cost.name, Ns(123_456_789)), "{}", cost.name);
            let changed = costs.table().into_iter().filter(|line| line.value == Ns(123_456_789));
            assert_eq!(changed.map(|line| line.name).collect::<Vec<_>>(), [cost.name]);
            assert!(cost.name.ends_with("_ns") && !cost.source.is_empty() && !cost.covers.is_empty());
        }
        assert!(!KernelCosts::default().set("nonsense_ns", Ns(1)));
    }
}
