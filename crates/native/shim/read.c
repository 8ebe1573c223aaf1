// SPDX-License-Identifier: GPL-2.0-or-later
/* What decisions rest on, as numbers by name. Reading changes nothing. */

#if HAVE_TG_SE
#define CFS_OF(tg, cpu) tg_cfs_rq(tg, cpu)
#define SE_OF(tg, cpu) tg_se(tg, cpu)
#else
#define CFS_OF(tg, cpu) ((tg)->cfs_rq[cpu])
#define SE_OF(tg, cpu) ((tg)->se[cpu])
#endif
#if HAVE_UTIL_EST_STRUCT
#define ESTIMATE(avg) ((avg).util_est.enqueued)
#define ESTIMATE_EWMA(avg) ((avg).util_est.ewma)
#else
#define ESTIMATE(avg) ((avg).util_est)
#define ESTIMATE_EWMA(avg) ((avg).util_est)
#endif
#if HAVE_NR_QUEUED
#define NR_OF(queue) ((queue)->nr_queued)
#else
#define NR_OF(queue) ((queue)->nr_running)
#endif

#if HAVE_SE_DEADLINE
#define EEVDF_ENTITY(F) F(deadline, se->deadline) F(vlag, se->vlag) F(slice, se->slice)
#else
#define EEVDF_ENTITY(F)
#endif
#if HAVE_CUSTOM_SLICE
#define CUSTOM_ENTITY(F) F(custom_slice, se->custom_slice)
#else
#define CUSTOM_ENTITY(F)
#endif
#if HAVE_DELAYED
#define DELAYED_ENTITY(F) F(sched_delayed, se->sched_delayed) F(rel_deadline, se->rel_deadline)
#else
#define DELAYED_ENTITY(F)
#endif
#if HAVE_VPROT
#define VPROT_ENTITY(F) F(vprot, se->vprot)
#else
#define VPROT_ENTITY(F)
#endif

#define AVERAGES(F, avg) \
	F(load_sum, (avg).load_sum) F(runnable_sum, (avg).runnable_sum) F(util_sum, (avg).util_sum) F(period_contrib, (avg).period_contrib) \
	F(load_avg, (avg).load_avg) F(runnable_avg, (avg).runnable_avg) F(util_avg, (avg).util_avg) F(last_update_time, (avg).last_update_time) \
	F(util_est, ESTIMATE(avg)) F(util_est_ewma, ESTIMATE_EWMA(avg))

#define ENTITY_FIELDS(F) \
	F(on_rq, se->on_rq) F(weight, se->load.weight) F(vruntime, se->vruntime) F(exec_start, se->exec_start) \
	F(sum_exec_runtime, se->sum_exec_runtime) F(prev_sum_exec_runtime, se->prev_sum_exec_runtime) \
	AVERAGES(F, se->avg) EEVDF_ENTITY(F) CUSTOM_ENTITY(F) DELAYED_ENTITY(F) VPROT_ENTITY(F)

/* -1: the task has no such group. */
#if FL_SCHED_CACHE
#define GROUP_OF(p, member) ((p)->sched_cache_grp ? (long)(p)->sched_cache_grp->member : -1)
#define CACHE_TASK(F) F(preferred_llc, p->preferred_llc) F(pref_llc_queued, p->pref_llc_queued) F(cache_cpu, GROUP_OF(p, cpu)) \
	F(cache_epoch, GROUP_OF(p, epoch)) F(cache_next_scan, GROUP_OF(p, next_scan)) F(cache_nr_running_avg, GROUP_OF(p, nr_running_avg)) \
	F(cache_references, p->sched_cache_grp ? (long)refcount_read(&p->sched_cache_grp->refcnt) : -1)
#define CACHE_CPU(F) F(cpu_epoch, rq->cpu_epoch) F(cpu_epoch_next, rq->cpu_epoch_next) F(cpu_runtime, rq->cpu_runtime) \
	F(nr_pref_llc_running, rq->nr_pref_llc_running) F(nr_llc_running, rq->nr_llc_running)
#else
#define CACHE_TASK(F)
#define CACHE_CPU(F)
#endif

#define TASK_FIELDS(F) \
	F(pid, p->pid) F(cpu, task_cpu(p)) F(state, state_of(p)) F(task_on_rq, p->on_rq) F(on_cpu, p->on_cpu) F(policy, p->policy) \
	F(prio, p->prio) F(static_prio, p->static_prio) F(rt_priority, p->rt_priority) F(nr_cpus_allowed, p->nr_cpus_allowed) \
	F(recent_used_cpu, p->recent_used_cpu) F(wake_cpu, p->wake_cpu) F(wakee_flips, p->wakee_flips) \
	F(last_wakee, p->last_wakee ? id_of(p->last_wakee) : -1) F(wakee_flip_decay_ts, p->wakee_flip_decay_ts) F(in_iowait, p->in_iowait) \
	F(h_load, h_load_of_task(p)) F(nvcsw, p->nvcsw) F(nivcsw, p->nivcsw) F(nr_threads, p->signal->nr_threads) ENTITY_FIELDS(F) CACHE_TASK(F)

#if HAVE_ZERO_VRUNTIME
#define ZERO_QUEUE(F) F(zero_vruntime, queue->zero_vruntime)
#else
#define ZERO_QUEUE(F) F(min_vruntime, queue->min_vruntime)
#endif
#if HAVE_SUM_W
#define SUM_QUEUE(F) F(sum_w_vruntime, queue->sum_w_vruntime) F(sum_weight, queue->sum_weight)
#elif HAVE_SE_DEADLINE
#define SUM_QUEUE(F) F(sum_w_vruntime, queue->avg_vruntime) F(sum_weight, queue->avg_load)
#else
#define SUM_QUEUE(F)
#endif
#if HAVE_SUM_SHIFT
#define SHIFT_QUEUE(F) F(sum_shift, queue->sum_shift)
#else
#define SHIFT_QUEUE(F)
#endif
#ifdef CONFIG_CFS_BANDWIDTH
#define BANDWIDTH_QUEUE(F) F(runtime_enabled, queue->runtime_enabled) F(runtime_remaining, queue->runtime_remaining) F(throttled, queue->throttled) \
	F(throttle_count, queue->throttle_count)
#else
#define BANDWIDTH_QUEUE(F)
#endif
#define QUEUE_FIELDS(F) \
	F(nr_queued, NR_OF(queue)) F(weight, queue->load.weight) F(curr, task_of_entity(queue->curr)) F(next, task_of_entity(queue->next)) \
	F(tg_load_avg_contrib, queue->tg_load_avg_contrib) F(h_load, h_load_of(queue)) F(on_list, queue->on_list) \
	AVERAGES(F, queue->avg) ZERO_QUEUE(F) SUM_QUEUE(F) SHIFT_QUEUE(F) BANDWIDTH_QUEUE(F)

#if HAVE_WAKE_AVG_IDLE
#define IDLE_CPU_FIELDS(F) F(wake_avg_idle, rq->wake_avg_idle) F(wake_stamp, rq->wake_stamp)
#else
#define IDLE_CPU_FIELDS(F)
#endif
#if HAVE_SCHED_RNG
#define CHANCE_CPU(F) F(rnd_state_1, CHANCE(rq).s1) F(rnd_state_2, CHANCE(rq).s2) F(rnd_state_3, CHANCE(rq).s3) F(rnd_state_4, CHANCE(rq).s4)
#define CHANCE(rq) per_cpu(sched_rnd_state, cpu_of(rq))
#else
#define CHANCE_CPU(F)
#endif
#if HAVE_RD_OVERLOAD
#define OVERLOADED(rq) ((rq)->rd->overload != 0)
#else
#define OVERLOADED(rq) ((rq)->rd->overloaded)
#endif
#define CPU_FIELDS(F) \
	F(jiffies, jiffies) F(clock, rq->clock) F(clock_task, rq->clock_task) F(clock_pelt, rq->clock_pelt) F(nr_running, rq->nr_running) F(nr_iowait, atomic_read(&rq->nr_iowait)) \
	F(h_nr_fair, H_NR(&rq->cfs)) F(curr, id_of(rq->curr)) F(idle_cpu, idle_cpu(cpu_of(rq))) \
	F(idle_stamp, rq->idle_stamp) F(avg_idle, rq->avg_idle) F(max_idle_balance_cost, rq->max_idle_balance_cost) \
	F(next_balance, rq->next_balance) F(cpu_capacity, rq->cpu_capacity) F(cpu_capacity_orig, arch_scale_cpu_capacity(cpu_of(rq))) \
	F(misfit_task_load, rq->misfit_task_load) F(active_balance, rq->active_balance) F(push_cpu, rq->push_cpu) F(ttwu_pending, rq->ttwu_pending) \
	F(nohz_tick_stopped, rq->nohz_tick_stopped) F(last_blocked_load_update_tick, rq->last_blocked_load_update_tick) \
	F(has_blocked_load, rq->has_blocked_load) F(avg_rt, rq->avg_rt.util_avg) F(avg_dl, rq->avg_dl.util_avg) \
	F(overloaded, OVERLOADED(rq)) IDLE_CPU_FIELDS(F) CHANCE_CPU(F) CACHE_CPU(F)

#if HAVE_H_NR_QUEUED
#define H_NR(queue) ((queue)->h_nr_queued)
#else
#define H_NR(queue) ((queue)->h_nr_running)
#endif

#if HAVE_SCAN_COST
#define SCAN_DOMAIN(F) F(avg_scan_cost, sd->avg_scan_cost)
#else
#define SCAN_DOMAIN(F)
#endif
#if HAVE_NR_IDLE_SCAN
#define SHARED_DOMAIN(F) F(nr_idle_scan, sd->shared ? sd->shared->nr_idle_scan : 0)
#else
#define SHARED_DOMAIN(F)
#endif
#if HAVE_NEWIDLE_STAMP
#define STAMP_DOMAIN(F) F(newidle_stamp, sd->newidle_stamp)
#else
#define STAMP_DOMAIN(F)
#endif
#if HAVE_NEWIDLE_RATIO
#define CHANCE_DOMAIN(F) F(newidle_call, sd->newidle_call) F(newidle_success, sd->newidle_success) F(newidle_ratio, sd->newidle_ratio)
#else
#define CHANCE_DOMAIN(F)
#endif
#if HAVE_LAST_DECAY
#define DECAY_MAX_LB_COST(sd) ((sd)->last_decay_max_lb_cost)
#else
#define DECAY_MAX_LB_COST(sd) ((sd)->next_decay_max_lb_cost)
#endif
#define DOMAIN_FIELDS(F) \
	F(flags, sd->flags) F(span_weight, sd->span_weight) F(min_interval, sd->min_interval) F(max_interval, sd->max_interval) F(busy_factor, sd->busy_factor) \
	F(imbalance_pct, sd->imbalance_pct) F(cache_nice_tries, sd->cache_nice_tries) F(last_balance, sd->last_balance) F(balance_interval, sd->balance_interval) \
	F(nr_balance_failed, sd->nr_balance_failed) F(max_newidle_lb_cost, sd->max_newidle_lb_cost) F(decay_max_lb_cost, DECAY_MAX_LB_COST(sd)) \
	F(nr_busy_cpus, sd->shared ? atomic_read(&sd->shared->nr_busy_cpus) : -1) F(has_idle_cores, sd->shared ? sd->shared->has_idle_cores : 0) \
	SCAN_DOMAIN(F) SHARED_DOMAIN(F) CHANCE_DOMAIN(F) STAMP_DOMAIN(F)

#ifdef CONFIG_CFS_BANDWIDTH
#define BANDWIDTH_GROUP(F) F(quota, tg->cfs_bandwidth.quota) F(period, tg->cfs_bandwidth.period) F(runtime, tg->cfs_bandwidth.runtime) \
	F(nr_throttled, tg->cfs_bandwidth.nr_throttled)
#else
#define BANDWIDTH_GROUP(F)
#endif
#define GROUP_FIELDS(F) F(shares, tg->shares) F(load_avg, atomic_long_read(&tg->load_avg)) BANDWIDTH_GROUP(F)

/* The id of the task whose entity it is; -1: there is none; -2: a group's. */
static long task_of_entity(struct sched_entity *se)
{
	if (!se)
		return -1;
#ifdef CONFIG_FAIR_GROUP_SCHED
	if (se->my_q)
		return -2;
#endif
	return id_of(container_of(se, struct task_struct, se));
}

/* task_h_load() and what it stands on, without keeping it. */
static unsigned long h_load_of(struct cfs_rq *queue)
{
#ifdef CONFIG_FAIR_GROUP_SCHED
	struct sched_entity *se = queue->tg == &root_task_group ? NULL : SE_OF(queue->tg, cpu_of(queue->rq));

	if (queue->last_h_load_update == jiffies)
		return queue->h_load;
	if (se)
		return div64_ul(h_load_of(se->cfs_rq) * se->avg.load_avg, se->cfs_rq->avg.load_avg + 1);
#endif
	return queue->avg.load_avg;
}

static unsigned long h_load_of_task(struct task_struct *p)
{
	struct cfs_rq *queue = p->se.cfs_rq;

	return queue ? div64_ul(p->se.avg.load_avg * h_load_of(queue), queue->avg.load_avg + 1) : 0;
}

#define NAME(name, expression) #name " "
static const char *const field_names[] = {
	[FL_TASK] = TASK_FIELDS(NAME),
	[FL_ENTITY] = ENTITY_FIELDS(NAME),
	[FL_QUEUE] = QUEUE_FIELDS(NAME),
	[FL_CPU] = CPU_FIELDS(NAME),
	[FL_DOMAIN] = DOMAIN_FIELDS(NAME),
	[FL_GROUP] = GROUP_FIELDS(NAME),
	/* Of a domain's flags, in the order of their bits. */
#define SD_FLAG(name, meta) #name " "
	[FL_FLAG] =
#include <linux/sched/sd_flags.h>
#undef SD_FLAG
};

const char *fl_fields(int object)
{
	return object >= 0 && object < ARRAY_SIZE(field_names) ? field_names[object] : "";
}

/* One label a field: computed gotos keep names and expressions in one list. */
#define LABEL(name, expression) &&of_##name,
#define READ(name, expression) of_##name: return (fl_u64)(expression);
#define READER(FIELDS) do { \
	static const void *const labels[] = { FIELDS(LABEL) }; \
	if (field < 0 || field >= ARRAY_SIZE(labels)) \
		return 0; \
	goto *labels[field]; \
	FIELDS(READ) \
} while (0)

fl_u64 fl_read_task(fl_task *p, int field)
{
	struct sched_entity *se = &p->se;

	READER(TASK_FIELDS);
}

fl_u64 fl_read_entity(fl_group *group, int cpu, int field)
{
#ifdef CONFIG_FAIR_GROUP_SCHED
	struct sched_entity *se = SE_OF(tg_of(group), cpu);

	if (!se)                                 /* the root has none */
		return 0;
	READER(ENTITY_FIELDS);
#else
	return 0;
#endif
}

fl_u64 fl_read_queue(fl_group *group, int cpu, int field)
{
	struct cfs_rq *queue = group ? CFS_OF(tg_of(group), cpu) : &cpu_rq(cpu)->cfs;

	READER(QUEUE_FIELDS);
}

fl_u64 fl_read_cpu(int cpu, int field)
{
	struct rq *rq = cpu_rq(cpu);

	READER(CPU_FIELDS);
}

static struct sched_domain *domain_at(int cpu, int level)
{
	struct sched_domain *sd;

	for (sd = rcu_dereference_raw(cpu_rq(cpu)->sd); sd; sd = sd->parent)
		if (level-- == 0)
			return sd;
	return NULL;
}

fl_u64 fl_read_domain(int cpu, int level, int field)
{
	struct sched_domain *sd = domain_at(cpu, level);

	if (!sd)
		return 0;
	READER(DOMAIN_FIELDS);
}

fl_u64 fl_read_group(fl_group *group, int field)
{
	struct task_group *tg = tg_of(group);

	READER(GROUP_FIELDS);
}

const char *fl_domain_name(int cpu, int level)
{
	struct sched_domain *sd = domain_at(cpu, level);

	return sd ? sd->name : NULL;
}

int fl_domain_span(int cpu, int level, fl_u64 *cpus)
{
	struct sched_domain *sd = domain_at(cpu, level);

	if (!sd)
		return -ENOENT;
	memcpy(cpus, cpumask_bits(sched_domain_span(sd)), BITS_TO_LONGS(nr_cpus) * sizeof(long));
	return 0;
}

int fl_queued(int cpu, int *ids, int room)
{
	struct task_struct *p;
	int queued = 0;

	list_for_each_entry(p, &cpu_rq(cpu)->cfs_tasks, se.group_node)
		if (queued++ < room)
			ids[queued - 1] = id_of(p);
	return queued;
}
