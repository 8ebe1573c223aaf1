// SPDX-License-Identifier: GPL-2.0-or-later
/* The tree's own tracepoints become records of abi.h. */

#if HAVE_TP_SRCU_FAST
DEFINE_SRCU_FAST(tracepoint_srcu);
#elif HAVE_TP_SRCU
DEFINE_SRCU(tracepoint_srcu);
#endif
#include <trace/events/sched.h>

static int tracing;
extern struct static_key_false sched_schedstats;

/* As trace_print_lat_fmt() writes them. */
static void put_flags(char *flags, struct task_struct *p)
{
	int depth = (preempt_count() & 0xf) - whole;
	bool now = test_tsk_need_resched(p), lazily = false;

#ifdef TIF_NEED_RESCHED_LAZY
	lazily = test_tsk_thread_flag(p, TIF_NEED_RESCHED_LAZY);
#endif
	flags[0] = irqs_disabled() ? 'd' : '.';
	if (now && test_preempt_need_resched())
		flags[1] = lazily ? 'B' : 'N';
	else if (now)
		flags[1] = lazily ? 'b' : 'n';
	else
		flags[1] = test_preempt_need_resched() ? lazily ? 'L' : 'p' : lazily ? 'l' : '.';
	flags[2] = preempt_count() & HARDIRQ_MASK ? 'h' : preempt_count() & SOFTIRQ_MASK ? 's' : '.';
	flags[3] = depth ? '0' + depth : '.';
	flags[4] = '.';
	flags[5] = 0;
}

static struct fl_event *record(int kind)
{
	struct fl_event *event = fl_next_event();
	struct task_struct *p = current;

	*event = (struct fl_event){
		.time = fl_clock.now, .kind = kind, .cpu = raw_smp_processor_id(), .context = id_of(p),
	};
	put_flags(event->flags, p);
	return event;
}

static struct fl_event *record_of(int kind, struct task_struct *p)
{
	struct fl_event *event = record(kind);

	event->task = id_of(p);
	event->prio = p->prio;
	return event;
}

static void record_wakeup(int kind, struct task_struct *p)
{
	record_of(kind, p)->other = task_cpu(p);
}

static void on_waking(void *unused, struct task_struct *p)
{
	record_wakeup(FL_EVENT_WAKING, p);
}

static void on_wakeup(void *unused, struct task_struct *p)
{
	record_wakeup(FL_EVENT_WAKEUP, p);
}

static void on_wakeup_new(void *unused, struct task_struct *p)
{
	record_wakeup(FL_EVENT_WAKEUP_NEW, p);
}

/* Outside of wakeups (TASK_WAKING, TASK_NEW) it is balancing that moves tasks: that takes time. */
static void on_migrate(void *unused, struct task_struct *p, int to)
{
	if (tracing) {
		struct fl_event *event = record_of(FL_EVENT_MIGRATE, p);

		event->other = task_cpu(p);
		event->other_prio = to;
	}
	if (!(state_of(p) & (TASK_WAKING | TASK_NEW))) {
		fl_clock.migrated++;
		fl_clock.now += fl_clock.migrate;
	}
}

/* As __trace_sched_switch_state(). */
static int state_at_switch(bool preempt, struct task_struct *p, unsigned int state)
{
	unsigned int index;

	if (preempt)
		return 1 << 15;
#if HAVE_TASK_STATE_INDEX_2
	index = __task_state_index(state, p->exit_state);
#else
	index = task_state_index(p);
#endif
	return index ? 1 << (index - 1) : 0;
}

static void on_switch(void *unused, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int state)
{
	struct fl_event *event = record_of(FL_EVENT_SWITCH, prev);

	event->other = id_of(next);
	event->other_prio = next->prio;
	event->state = state_at_switch(preempt, prev, state);
}

static void on_runtime(void *unused, struct task_struct *p, u64 runtime, u64 vruntime)
{
	struct fl_event *event = record_of(FL_EVENT_STAT_RUNTIME, p);

	event->value = runtime;
#if HAVE_STAT_VRUNTIME
	event->value2 = vruntime;
	event->other = 1;
#endif
}

#define DELAY(name, kind) \
	static void on_##name(void *unused, struct task_struct *p, u64 delay) \
	{ \
		record_of(kind, p)->value = delay; \
	}
DELAY(wait, FL_EVENT_STAT_WAIT)
DELAY(sleep, FL_EVENT_STAT_SLEEP)
DELAY(blocked, FL_EVENT_STAT_BLOCKED)
DELAY(iowait, FL_EVENT_STAT_IOWAIT)

/* do_exit() is not there: its tracepoint is told here. Each task is a group of its own. */
static void report_exit(struct task_struct *p)
{
	if (tracing)
		record_of(FL_EVENT_EXIT, p)->other = HAVE_EXIT_GROUP_DEAD ? 1 : -1;
}

/* What register_trace_…() leads to: one function, and the key. */
#define HOOK(name, function, on) do { \
	static struct tracepoint_func hooked[2]; \
	hooked[0].func = (void *)(function); \
	__tracepoint_##name.funcs = hooked; \
	*(int *)&__tracepoint_##name.key = (on); \
} while (0)

static int set_tracing(int on)
{
	int before = tracing;

	tracing = on;
	*(int *)&sched_schedstats = !!on;
	HOOK(sched_migrate_task, on_migrate, 1);
	HOOK(sched_waking, on_waking, !!on);
	HOOK(sched_wakeup, on_wakeup, !!on);
	HOOK(sched_wakeup_new, on_wakeup_new, !!on);
	HOOK(sched_switch, on_switch, !!on);
	HOOK(sched_stat_runtime, on_runtime, !!on);
	HOOK(sched_stat_wait, on_wait, !!on);
	HOOK(sched_stat_sleep, on_sleep, !!on);
	HOOK(sched_stat_blocked, on_blocked, !!on);
	HOOK(sched_stat_iowait, on_iowait, !!on);
	return before;
}

fl_entry void fl_trace(int on)
{
	set_tracing(on);
}
