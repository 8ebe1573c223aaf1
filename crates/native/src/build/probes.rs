//! What a tree has, by its words and not by its version: stable trees and patches move things.
//!
//! Must not know: what the shim does with it.

use std::fs;
use std::path::Path;

/// Something that trees have or lack.
struct TreeProbe {
    /// `HAVE_…` in the shim.
    name: &'static str,
    /// What lines that show it hold, any of these; after `^` a line's beginning. Blanks of the line count as one.
    lines: &'static [&'static str],
    /// Where they may stand.
    files: &'static [&'static str],
}

const fn probe(
    name: &'static str,
    lines: &'static [&'static str],
    files: &'static [&'static str],
) -> TreeProbe {
    TreeProbe { name, lines, files }
}

const SCHED_H: &str = "kernel/sched/sched.h";
const FAIR: &str = "kernel/sched/fair.c";
const CORE: &str = "kernel/sched/core.c";
const TASK: &str = "include/linux/sched.h";
const DOMAIN: &str = "include/linux/sched/topology.h";
const EVENTS: &str = "include/trace/events/sched.h";
const SMPBOOT: &str = "arch/x86/kernel/smpboot.c";
const ITMT: &str = "arch/x86/kernel/itmt.c";
const SOFTIRQ: &str = "arch/x86/include/asm/hardirq.h";

/// All of them.
const PROBES: [TreeProbe; 51] = [
    // The fair class
    probe("ZERO_VRUNTIME", &["u64 zero_vruntime"], &[SCHED_H]),
    probe("SE_DEADLINE", &["s64 vlag;"], &[TASK]),
    probe("VPROT", &["vprot;"], &[TASK]),
    probe("DELAYED", &["sched_delayed;"], &[TASK]),
    probe("CUSTOM_SLICE", &["custom_slice;"], &[TASK]),
    probe("FAIR_SERVER", &["struct sched_dl_entity fair_server;"], &[SCHED_H]),
    probe("SUM_W", &["sum_w_vruntime;"], &[SCHED_H]),
    probe("SUM_SHIFT", &["sum_shift;"], &[SCHED_H]),
    probe("NR_QUEUED", &[" nr_queued;"], &[SCHED_H]),
    probe("H_NR_QUEUED", &[" h_nr_queued;"], &[SCHED_H]),
    probe("TG_SE", &["tg_cfs_rq(struct task_group"], &[SCHED_H]),
    probe("UTIL_EST_STRUCT", &["^struct util_est {"], &[TASK]),
    probe("SCAN_COST", &["avg_scan_cost;"], &[DOMAIN]),
    probe("NR_IDLE_SCAN", &["nr_idle_scan;"], &[DOMAIN]),
    probe("WAKE_AVG_IDLE", &["wake_avg_idle;"], &[SCHED_H]),
    probe("RD_OVERLOAD", &[" overload;"], &[SCHED_H]),
    probe("SCHED_RNG", &["u32 sched_rng(void)"], &[SCHED_H]),
    probe("LAST_DECAY", &["last_decay_max_lb_cost;"], &[DOMAIN]),
    probe("NEWIDLE_RATIO", &["newidle_ratio;"], &[DOMAIN]),
    probe("NEWIDLE_STAMP", &["newidle_stamp;"], &[DOMAIN]),
    probe("RANDOM_PERIOD", &["get_random_u32_below(cfs_b->period)"], &[FAIR]),
    // Per-CPU variables of x86
    probe("PCPU_HOT", &["struct pcpu_hot"], &["arch/x86/include/asm/current.h"]),
    probe("CACHE_HOT", &["PER_CPU_CACHE_HOT"], &["arch/x86/include/asm/current.h"]),
    probe("SOFTIRQ_VAR", &["define local_softirq_pending_ref __softirq_pending"], &[SOFTIRQ]),
    probe(
        "PCPU_HOT_SOFTIRQ",
        &["pcpu_hot.softirq_pending", "define local_softirq_pending_ref __softirq_pending"],
        &[SOFTIRQ],
    ),
    probe("OWN_CAPACITY", &["define arch_scale_cpu_capacity "], &["arch/x86/include/asm/topology.h"]),
    probe("ITMT_SMT", &["return cpu_smt_flags() | x86_sched_itmt_flags();"], &[SMPBOOT]),
    probe(
        "ITMT_PKG",
        &["cpu_cpu_mask, x86_sched_itmt_flags", "tl_pkg_mask, x86_sched_itmt_flags"],
        &[SMPBOOT],
    ),
    probe("ITMT_SQUARE", &["smp_num_siblings / (i * i);"], &[ITMT]),
    probe("ITMT_DIVIDED", &["smp_num_siblings / i;"], &[ITMT]),
    probe(
        "PKG_LEVEL",
        &["cpu_cpu_mask, SD_INIT_NAME(PKG)", "SDTL_INIT(tl_pkg_mask, NULL, PKG)"],
        &["kernel/sched/topology.c"],
    ),
    probe("PREEMPT_COUNT_LONG", &["(unsigned long, __preempt_count)"], &["arch/x86/include/asm/preempt.h"]),
    probe("WARN_TRAP", &["__WARN_trap(struct bug_entry"], &["arch/x86/include/asm/bug.h"]),
    // Tasks
    probe("STATE__", &["__state;"], &[TASK]),
    probe("CACHE_GROUP", &["^struct sched_cache_group {"], &[TASK]),
    probe("USER_CPUS", &["user_cpus_ptr;"], &[TASK]),
    probe("TASK_STATE_INDEX_2", &["__task_state_index(unsigned int tsk_state"], &[TASK]),
    probe("CGROUP_FORK", &["sched_cgroup_fork"], &[CORE]),
    probe("AFFINITY_CONTEXT", &["^struct affinity_context"], &[SCHED_H]),
    // Ticks, idling, interrupts
    probe("SCHED_TICK", &["^void sched_tick("], &[CORE]),
    probe("FLUSH_SMP", &["^void flush_smp_call_function_queue"], &["kernel/smp.c"]),
    probe("RUN_IDLE_BALANCE", &["^void nohz_run_idle_balance"], &[FAIR]),
    probe("RETAIN_TICK", &["idle_call_stop_or_retain_tick"], &["kernel/sched/idle.c"]),
    probe("OLD_SYSCTLS", &["&sysctl_sched_min_granularity,"], &["kernel/sysctl.c"]),
    probe("STOP_NOWAIT_VOID", &["^void stop_one_cpu_nowait("], &["include/linux/stop_machine.h"]),
    // Tracepoints
    probe("TP_SRCU_FAST", &["DEFINE_SRCU_FAST(tracepoint_srcu"], &["kernel/tracepoint.c"]),
    probe("TP_SRCU", &["DEFINE_SRCU(tracepoint_srcu"], &["kernel/tracepoint.c"]),
    probe("STAT_VRUNTIME", &["u64 runtime, u64 vruntime"], &[EVENTS]),
    probe("SWITCH_STATE", &["unsigned int prev_state"], &[EVENTS]),
    probe("EXIT_GROUP_DEAD", &["struct task_struct *p, bool group_dead"], &[EVENTS]),
    // The linker script's words
    probe("CPUIDLE_TEXT", &["define CPUIDLE_TEXT"], &["include/asm-generic/vmlinux.lds.h"]),
];

/// What a tree has, and what it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TreeFeatures {
    found: Vec<(&'static str, bool)>,
}

impl TreeFeatures {
    /// Asks a tree.
    pub fn of(tree: &Path) -> TreeFeatures {
        let texts = |files: &[&str]| -> String {
            files
                .iter()
                .filter_map(|file| fs::read(tree.join(file)).ok())
                .fold(String::new(), |all, bytes| all + &String::from_utf8_lossy(&bytes))
        };
        let has = |probe: &TreeProbe| {
            let text = texts(probe.files);
            text.lines().any(|line| probe.lines.iter().any(|pattern| shows(line, pattern)))
        };
        TreeFeatures { found: PROBES.iter().map(|probe| (probe.name, has(probe))).collect() }
    }

    /// Whether the tree has it.
    pub fn has(&self, name: &str) -> bool {
        self.found.iter().any(|(known, has)| *known == name && *has)
    }

    /// The names of what it has.
    pub fn names(&self) -> Vec<String> {
        self.found.iter().filter(|(_, has)| *has).map(|(name, _)| (*name).to_string()).collect()
    }

    /// As a header.
    pub fn header(&self) -> String {
        self.found.iter().fold(String::new(), |text, (name, has)| {
            text + &format!("#define HAVE_{name} {}\n", u8::from(*has))
        })
    }
}

/// Whether a line shows a pattern.
fn shows(line: &str, pattern: &str) -> bool {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    pattern.strip_prefix('^').map_or_else(|| line.contains(pattern), |beginning| line.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        for (line, pattern, is_shown) in [
            ("\tu64\t\t\tzero_vruntime;", "u64 zero_vruntime", true),
            ("\ts64\tzero_vruntime;", "u64 zero_vruntime", false),
            ("void sched_tick(void)", "^void sched_tick(", true),
            ("extern void sched_tick(void);", "^void sched_tick(", false),
            ("\tunsigned int nr_queued;", " nr_queued;", true),
            ("\tunsigned int h_nr_queued;", " nr_queued;", false),
            (
                "\tTP_PROTO(struct task_struct *p, bool group_dead),",
                "struct task_struct *p, bool group_dead",
                true,
            ),
            ("#define local_softirq_pending_ref       __softirq_pending", "ref __softirq_pending", true),
        ] {
            assert_eq!(shows(line, pattern), is_shown, "{line} {pattern}");
        }
    }

    #[test]
    fn a_header_says_of_each_whether_it_is_there() {
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        fs::create_dir_all(folder.path().join("kernel/sched")).expect("made");
        fs::write(folder.path().join(SCHED_H), "struct cfs_rq {\n\tunsigned int\t\tnr_queued;\n};\n")
            .expect("written");
        let found = TreeFeatures::of(folder.path());
        assert!(found.has("NR_QUEUED") && !found.has("H_NR_QUEUED") && !found.has("NO_SUCH_PROBE"));
        assert_eq!(found.names(), ["NR_QUEUED"]);
        assert_eq!(found.header().lines().count(), PROBES.len());
        assert!(found.header().contains("#define HAVE_NR_QUEUED 1\n#define HAVE_H_NR_QUEUED 0\n"));
    }
}
