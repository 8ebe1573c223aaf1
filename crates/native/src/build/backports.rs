//! Which upstream commits a tree holds, by words of its sources: stable trees take back what later releases brought.
//!
//! Words tell such a commit only in trees older than its release. Later ones may have replaced them.
//!
//! Must not know: what a commit changes, which trees are compared.

use super::Source;

const FAIR: &str = "kernel/sched/fair.c";
const CORE: &str = "kernel/sched/core.c";
const SCHED_H: &str = "kernel/sched/sched.h";
const FEATURES: &str = "kernel/sched/features.h";
const IDLE: &str = "kernel/sched/idle.c";

/// A commit of the model's log, and what shows it.
struct CommitProbe {
    /// Its short name there.
    commit: &'static str,
    file: &'static str,
    /// The file says this. All blanks and ends of lines in a row count as one blank.
    says: &'static str,
    /// And does not say this, unless it is empty.
    unless: &'static str,
}

const fn says(commit: &'static str, file: &'static str, says: &'static str) -> CommitProbe {
    CommitProbe { commit, file, says, unless: "" }
}

/// In the log's order.
#[rustfmt::skip]
const PROBES: [CommitProbe; 65] = [
    says("util-est-dequeued-first", FAIR, "util_est_update(&rq->cfs, p, task_sleep);"),
    says("misfit-unbound", FAIR, "if (!p || p->nr_cpus_allowed == 1"),
    says("load-shift", FAIR, "shr_bound(load, env->sd->nr_balance_failed)"),
    says("util-est-large-step", FAIR, "last_enqueued_diff = "),
    says("percpu-kthreads", FAIR, "if (kthread_is_per_cpu(p))"),
    says("alt-slice", FEATURES, "SCHED_FEAT(ALT_PERIOD, true)"),
    says("attached-is-aged", FAIR, "list_add_leaf_cfs_rq(cfs_rq_of(se));"),
    says("group-load-synced", FAIR, "cfs_rq->avg.load_sum = cfs_rq->avg.load_avg * divider;"),
    says("blocked-tells", FAIR, "skip_blocked_update(se)) update_load_avg(cfs_rq_of(se), se, UPDATE_TG);"),
    says("detach-synced", FAIR, "cfs_rq->avg.util_sum = cfs_rq->avg.util_avg * divider;"),
    says("util-est-high-flag", "include/linux/sched.h", "define UTIL_AVG_UNCHANGED 0x80000000"),
    says("class-change-runtime", "kernel/sched/rt.c", "update the avg_rt tracking"),
    says("removed-synced", FAIR, "sa->load_sum = sa->load_avg * divider;"),
    says("refresh-signed", FAIR, "if (remaining < (s64)min_expire)"),
    says("energy-precision", "include/linux/energy_model.h", "define em_scale_power(p) ((p) * 1000)"),
    says("kthread-in-task", FAIR, "in_task() &&"),
    says("removed-util-floor", FAIR, "sa->util_sum = max_t(u32, sa->util_sum, sa->util_avg * PELT_MIN_DIVIDER);"),
    says("fork-numa-node", FAIR, "allow_numa_imbalance(local_sgs.sum_nr_running + 1, local_sgs.group_weight)"),
    says("attach-at-least-one", FAIR, "if (se_weight(se) < se->avg.load_sum)"),
    says("throttled-pelt-clock", SCHED_H, "throttled_clock_pelt;"),
    says("queue-empty-leaving", CORE, "(wake_flags & WF_ON_CPU) && !cpu_rq(cpu)->nr_running"),
    says("queue-empty", CORE, "if (!cpu_rq(cpu)->nr_running)"),
    says("sis-util", FEATURES, "SCHED_FEAT(SIS_UTIL, true)"),
    says("energy-roomier", FAIR, "prev_spare_cap >= 0"),
    says("long-sleepers", FAIR, "60LL * NSEC_PER_SEC"),
    says("long-sleepers-moved", FAIR, "entity_is_long_sleeper(struct sched_entity *se)"),
    says("imbalance-overflow", FAIR, "if (local->avg_load >= sds->avg_load) {"),
    says("same-autogroup", CORE, "if (group == tsk->sched_task_group)"),
    says("recent-allowed", FAIR, "cpumask_test_cpu(recent_used_cpu, p->cpus_ptr)"),
    says("tg-load-ratelimit", FAIR, "last_update_tg_load_avg"),
    says("stopper-at-once", CORE, "if (p->sched_class == &stop_sched_class) return false;"),
    says("newidle-next", FAIR, "u64 domain_cost; update_next_balance(sd, &next_balance);"),
    says("clock-stands-once", CORE, "rq->clock_update_flags = RQCF_UPDATED;"),
    says("reweight-keeps-lag", FAIR, "static void reweight_eevdf(struct"),
    says("idle-core-fix", FAIR, "if (idle_smt == -1)"),
    says("util-doubling", FAIR, "shr_bound(util, env->sd->nr_balance_failed)"),
    says("look-no-further", FAIR, "if (env->loop > env->loop_max) break;"),
    says("idle-reweight", CORE, "lw.weight = scale_load(WEIGHT_IDLEPRIO);"),
    says("ilb-idle", FAIR, "if (!idle_cpu(this_cpu) && need_resched()) {"),
    says("delayed-not-runnable", SCHED_H, "h_nr_delayed;"),
    says("empty-group", FAIR, "if (!gcfs_rq || !gcfs_rq->load.weight)"),
    says("pick-buddy", FEATURES, "SCHED_FEAT(PICK_BUDDY, true)"),
    CommitProbe {
        commit: "any-autogroup", file: CORE,
        says: "void sched_move_task(", unless: "if (group == tsk->sched_task_group)",
    },
    says("idle-protection", FAIR, "cancel_protect_slice(se);"),
    says("shorter-slice", FAIR, "sysctl_sched_base_slice = 700000ULL"),
    says("sync-beside-delayed", FAIR, "rq->nr_running - cfs_h_nr_delayed(rq)) == 1"),
    CommitProbe {
        commit: "server-less-eager", file: FAIR,
        says: "dl_server_start(&rq->fair_server)", unless: "dl_server_stop(&rq->fair_server)",
    },
    says("lost-idle", FAIR, "idle: if (rf) {"),
    says("forfeit-on-yield", FAIR, "se->vruntime = se->deadline;"),
    says("idlest-allowed", FAIR, "for_each_cpu_and(i, sched_group_span(group), p->cpus_ptr) { struct rq *rq = cpu_rq(i); unsigned int local;"),
    says("zero-vruntime", SCHED_H, "u64 zero_vruntime"),
    CommitProbe {
        commit: "no-cost-bump", file: FAIR,
        says: "max_newidle_lb_cost", unless: "(3 * sd->max_newidle_lb_cost) / 2",
    },
    says("newidle-chance", FEATURES, "SCHED_FEAT(NI_RANDOM, true)"),
    says("stalled-contribution", FAIR, "if (cfs_rq->tg_load_avg_contrib)"),
    says("idle-sync-at-idle", IDLE, "update_idle_rq_clock_pelt(rq);"),
    says("server-starts-deferred", "kernel/sched/deadline.c", "dl_se->dl_defer_running = 0; replenish_dl_new_period(dl_se, rq);"),
    says("zero-tracking", FAIR, "update_zero_vruntime(struct cfs_rq *cfs_rq, s64 delta)"),
    says("idle-tick", IDLE, "cpuidle_idle_call(bool stop_tick)"),
    says("zero-tracking-fix", FAIR, "calc_delta_fair(se->slice, se); avg_vruntime(cfs_rq);"),
    says("fork-deadline", CORE, "p->se.rel_deadline = 0;"),
    says("boost-with-task", FAIR, "runnable += READ_ONCE(p->se.avg.runnable_avg);"),
    says("group-runnable-wide", FAIR, "u64 new_sum; u32 divider"),
    says("tree-copies-slices", FAIR, "static inline void min_vruntime_copy("),
    says("max-slice-of-leaf", FAIR, "se->max_slice = se->slice; rb_add_augmented_cached("),
    says("idle-stamp-valid", CORE, "u64 idle_stamp = rq->idle_stamp;"),
];

/// Of each commit that words can tell, its name in the model's log and whether the tree shows it. None, where a file cannot be read.
pub fn shown_commits(source: &Source) -> Option<Vec<(&'static str, bool)>> {
    let mut texts: Vec<(&str, String)> = Vec::new();
    let mut shown = Vec::new();
    for CommitProbe { commit, file, says, unless } in &PROBES {
        if !texts.iter().any(|(name, _)| name == file) {
            texts.push((file, one_line(&source.text(file)?)));
        }
        let text = texts.iter().find(|(name, _)| name == file).map_or("", |(_, text)| text);
        let has = text.contains(says) && (unless.is_empty() || !text.contains(unless));
        shown.push((*commit, has));
    }
    Some(shown)
}

/// The names of all that words can tell, in the log's order.
pub fn probed_commits() -> impl Iterator<Item = &'static str> {
    PROBES.iter().map(|probe| probe.commit)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn words_count_wherever_lines_end() {
        let folder = fairlab_files::temporary::PrivateFolder::create().expect("a folder");
        let source = Source::Folder(folder.path().to_path_buf());
        assert_eq!(shown_commits(&source), None, "no files");
        for probe in &PROBES {
            let path = folder.path().join(probe.file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, "").expect("written");
        }
        let shown = |name: &str| {
            let all = shown_commits(&source).expect("files");
            assert_eq!(all.len(), PROBES.len());
            all.iter().find(|(commit, _)| *commit == name).expect("a probe").1
        };
        let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).expect("written");
        assert!(!shown("removed-util-floor") && !shown("any-autogroup"));
        write(
            FAIR,
            "\tsa->util_sum = max_t(u32, sa->util_sum,\n\t\t\t     sa->util_avg * PELT_MIN_DIVIDER);\n",
        );
        assert!(shown("removed-util-floor"));
        write(CORE, "void sched_move_task(struct task_struct *tsk)\n{\n");
        assert!(shown("any-autogroup"));
        write(
            CORE,
            "void sched_move_task(struct task_struct *tsk)\n{\n\tif (group == tsk->sched_task_group)\n",
        );
        assert!(shown("same-autogroup") && !shown("any-autogroup"));
    }
}
