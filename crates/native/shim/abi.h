/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What a scheduler image and its loader agree on.
 *
 * An image is the tree's own kernel/sched with a shim, linked static, without libc, at fixed low addresses. At its ELF entry
 * address stands one `struct fl_image`: words that both sides read, a table of entries that the loader calls, a table of
 * callbacks that it fills in. The loader compares each line of both tables, with its types, and refuses an image that differs.
 *
 * Rules:
 * - Times are ns of virtual time. CPUs count from 0.
 * - One thread calls in. An entry runs to its end on the caller's stack or on stacks of the image's own. It may call back, and a
 *   callback may not call in again, but for curr(), need_resched() and the read_* entries.
 * - Unless a line says otherwise, an entry happens on the CPU that enter() chose, in the context of the task that runs there.
 * - An entry whose work makes its CPU switch may return with another task running. curr() tells.
 * - Where a tree lacks what an entry is for, the entry returns FL_UNKNOWN; nothing is answered by 0 in silence.
 * - Tasks have numbers (`id`), given by the loader; 0 to n-1 are the idle tasks, n to 2n-1 the stoppers of n CPUs, 2n is init.
 * - Groups are pointers; NULL is the root.
 */
#ifndef FL_ABI_H
#define FL_ABI_H

typedef unsigned long long fl_u64;
typedef long long fl_s64;
typedef struct task_struct fl_task;
typedef struct fl_group fl_group;

#define FL_MAGIC 0x3330306567616d49ULL       /* "Image003" */
#define FL_UNKNOWN (-38)                     /* the tree has no such thing (ENOSYS) */
#define FL_NEVER (~0ULL)

/* ---- the machine ---- */

/* Arrays have one word a CPU. Numbers of cores, clusters, caches, packages and nodes need not be dense, but for nodes. */
struct fl_machine {
	unsigned int nr_cpus, nr_nodes;
	const unsigned int *core;            /* threads of one core have one number */
	const unsigned int *cluster;         /* CPUs that share an L2 or its tags; as `core` where there is nothing between core and LLC */
	const unsigned int *llc;             /* CPUs that share a last-level cache */
	const unsigned int *package;
	const unsigned int *node;
	const unsigned int *capacity;        /* of 1024 */
	const unsigned int *priority;        /* asymmetric packing (arch_asym_cpu_priority); all 0: there is none */
	const unsigned int *distance;        /* nr_nodes * nr_nodes, as node_distance() */
	unsigned int reclaim_distance;       /* node_reclaim_distance */
	int first_stopper_pid;               /* migration/0; the others follow */
	int init_pid;
};

/* ---- the clock, and what kernel work takes ---- */

/* The loader writes `now` before each entry. The image's clock (sched_clock(), ktime_get(), hrtimers, the tracepoints' times) is
 * `now`; jiffies follow it. Inside an entry the image moves it by what is counted: `now += look` for each CPU that kernel/sched
 * looks at in a loop over CPUs (a bit found by find_next_bit() and its kin, cpumask_next*()), `now += migrate` for each task
 * that is moved to another queue by balancing (sched_migrate_task outside of wakeups), `now += softirq` when the SCHED softirq
 * begins. The counters only grow. */
struct fl_clock {
	fl_u64 now;
	fl_u64 look, migrate, softirq;       /* ns each, of the machine; 0: time stands still inside an entry */
	fl_u64 looked, migrated, softirqs;   /* how many there were */
	fl_u64 blocks;                       /* basic blocks of kernel/sched executed, where the image is built to count them */
};

/* ---- events ---- */

/* kind, the tracepoint; what `task`, `other`, `prio`, `other_prio`, `state`, `value`, `value2` are; 0 where not said */
#define FL_EVENTS(X) \
	X(SWITCH, sched_switch)              /* task, prio, state: prev; other, other_prio: next */ \
	X(WAKING, sched_waking)              /* task, prio, other: target CPU */ \
	X(WAKEUP, sched_wakeup)              /* as WAKING */ \
	X(WAKEUP_NEW, sched_wakeup_new)      /* as WAKING */ \
	X(MIGRATE, sched_migrate_task)       /* task, prio, other: from CPU, other_prio: to CPU */ \
	X(EXIT, sched_process_exit)          /* task, prio; other: 1 group_dead, 0 not, -1 where the tree does not tell */ \
	X(STAT_WAIT, sched_stat_wait)        /* task, value: delay */ \
	X(STAT_SLEEP, sched_stat_sleep)      /* task, value: delay */ \
	X(STAT_BLOCKED, sched_stat_blocked)  /* task, value: delay */ \
	X(STAT_IOWAIT, sched_stat_iowait)    /* task, value: delay */ \
	X(STAT_RUNTIME, sched_stat_runtime)  /* task, value: runtime, value2: vruntime, other: 1 if the tree tells that */ \
	X(TEXT, other)                       /* value: the name, value2: its text as printed, both char *, valid until the buffer is emptied */

enum fl_event_kind {
#define X(kind, tracepoint) FL_EVENT_##kind,
	FL_EVENTS(X)
#undef X
	FL_NR_EVENT_KINDS
};

struct fl_event {
	fl_u64 time;
	fl_u64 value, value2;
	int cpu;                             /* that reports it */
	int kind;
	int context;                         /* id of the task that runs there */
	int task, other;                     /* ids */
	int prio, other_prio;
	int state;                           /* bits 0…7 are the letters S D T t X Z P I; bit 15 the mark '+' */
	char flags[8];                       /* as ftrace prints them: "dNh2.", NUL-terminated */
};

/* ---- tasks ---- */

enum fl_policy { FL_NORMAL = 0, FL_FIFO = 1, FL_RR = 2, FL_BATCH = 3, FL_IDLE = 5, FL_DEADLINE = 6 };   /* SCHED_* */
enum fl_state { FL_RUNNABLE, FL_INTERRUPTIBLE, FL_UNINTERRUPTIBLE, FL_SLEEP_IDLE /* TASK_IDLE */, FL_PREEMPTED /* runnable, in the kernel */ };
enum fl_ipi { FL_IPI_RESCHEDULE, FL_IPI_CALL, FL_IPI_IRQ_WORK };

struct fl_task_spec {
	char comm[16];
	int id, pid, tgid;                   /* tasks of one tgid are threads of one process, but for kernel threads */
	int policy, rt_priority, nice;       /* rt_priority: 1…99 of FIFO and RR */
	int kthread;                         /* PF_KTHREAD */
	int per_cpu;                         /* a kthread that is bound to its one CPU (kthread_set_per_cpu()) */
	const fl_u64 *allowed;               /* a bit for each CPU, (nr_cpus + 63) / 64 words */
	fl_group *group;                     /* with `own_group` 0: as whoever runs */
	int own_group;
};

/* ---- entries: return type, name, arguments ---- */

#define FL_ENTRIES(X) \
	/* boot: sched_init() to sched_init_smp() on this machine; at the end each CPU runs its idle task. Called once, first; what it is given \
	 * stays for good. */ \
	X(void, boot, (const struct fl_machine *)) \
	/* enter: what follows happens on this CPU (%gs, `now` is set already). */ \
	X(void, enter, (int cpu)) \
	/* irq_enter, irq_exit: a hardware interrupt around what comes between; its end runs soft interrupts. */ \
	X(void, irq_enter, (void)) \
	X(void, irq_exit, (void)) \
	/* tick: sched_tick() and what stands beside it in update_process_times(); between irq_enter() and irq_exit(). */ \
	X(void, tick, (void)) \
	/* receive: an interrupt of enum fl_ipi has come; between irq_enter() and irq_exit(). */ \
	X(void, receive, (int ipi)) \
	/* clock_event: the CPU's clock event device fires (hrtimer_interrupt()); between irq_enter() and irq_exit(). */ \
	X(void, clock_event, (void)) \
	/* curr: id of the task that a CPU runs (rq->curr); no enter() needed. */ \
	X(int, curr, (int cpu)) \
	/* need_resched: whether a CPU's running task is to be rescheduled: 0 no, 1 at return to user mode, 2 wherever the kernel can be preempted; \
	 * no enter() needed. */ \
	X(int, need_resched, (int cpu)) \
	/* schedule: the running task sleeps in that enum fl_state or, runnable, is passed over (schedule()), or is \
	 * preempted within kernel work (preempt_schedule_irq(), where the kernel is built for that); the idle task leaves its loop \
	 * (flush_smp_call_function_queue(), schedule_idle()). */ \
	X(void, schedule, (int state)) \
	/* yield_task: sched_yield() without its schedule(). */ \
	X(void, yield_task, (void)) \
	/* exit: the running task ends: its tracepoint, TASK_DEAD, schedule(). release() follows, later. */ \
	X(void, exit, (void)) \
	/* exec: the running task replaces its program: sched_exec(). It may wait for the stopper: then another task runs. */ \
	X(void, exec, (void)) \
	/* release: a task that has ended, and whose CPU runs another, is forgotten. */ \
	X(void, release, (fl_task *)) \
	/* wake: try_to_wake_up(TASK_NORMAL) with WF_SYNC or without; 1 if it was asleep. A task that runs and is on its way to sleep has set its \
	 * state: see set_state(). */ \
	X(int, wake, (fl_task *, int sync)) \
	/* set_state: the running task, of any CPU, has set its state to an enum fl_state (set_current_state()). */ \
	X(void, set_state, (fl_task *, int state)) \
	/* set_iowait: the running task waits for I/O when it next sleeps (in_iowait); cleared when it runs again. */ \
	X(void, set_iowait, (fl_task *)) \
	/* fork: the running task (of a CPU that idles: init) makes a task as copy_process() does: sched_fork() … sched_post_fork(). Not queued. \
	 * Policy, nice and CPUs are as if its parent had had them. */ \
	X(fl_task *, fork, (const struct fl_task_spec *)) \
	/* start: wake_up_new_task(). */ \
	X(void, start, (fl_task *)) \
	/* new_kthread: a kernel thread that has slept on that CPU since boot. */ \
	X(fl_task *, new_kthread, (const struct fl_task_spec *, int cpu)) \
	/* user_work: whether the running task of a CPU has work to do before it goes back to user mode (TIF_NOTIFY_RESUME); no enter() needed. */ \
	X(int, user_work, (int cpu)) \
	/* run_user_work: does it (resume_user_mode_work(), task_work_run()). */ \
	X(void, run_user_work, (void)) \
	/* stopper_work: whether the CPU's stopper, which runs, has work. */ \
	X(int, stopper_work, (void)) \
	/* run_stopper: the stopper, which runs, does one piece of it; 1 if there was one. */ \
	X(int, run_stopper, (void)) \
	/* workqueues: work that was queued meanwhile (queue_work_on(), call_rcu()) is done, outside of any interrupt. */ \
	X(void, workqueues, (void)) \
	/* idle_begin: the idle loop begins: nohz_run_idle_balance(), PSI, … */ \
	X(void, idle_begin, (void)) \
	/* tick_stopped: the CPU's tick has stopped (nohz_balance_enter_idle()). */ \
	X(void, tick_stopped, (void)) \
	/* tick_restarted: the CPU, which is busy, ticks again; nothing but what tick_nohz_tick_stopped_cpu() tells. */ \
	X(void, tick_restarted, (void)) \
	/* idle_keeps_tick: whether the idle loop without an idle driver keeps its tick, if a tick has just found it idle or not; no enter() needed. */ \
	X(int, idle_keeps_tick, (int got_tick)) \
	/* idle_state: the CPU enters an idle state with that exit latency (idle_set_state()), FL_NEVER: leaves it. */ \
	X(void, idle_state, (fl_u64 exit_latency)) \
	/* set_scheduler: sched_setattr() from the kernel; policy -1, nice FL_KEEP, slice 0: as before. A slice means nothing to trees that have none. */ \
	X(int, set_scheduler, (fl_task *, int policy, int rt_priority, int nice, fl_u64 slice)) \
	/* set_allowed: set_cpus_allowed_ptr() by the running task. It may wait for the stopper: then another task runs. */ \
	X(int, set_allowed, (fl_task *, const fl_u64 *cpus)) \
	/* new_group: a control group of the cpu controller. */ \
	X(fl_group *, new_group, (fl_group *parent, const char *name)) \
	/* group_write: writes a file of the cpu controller by its name without "cpu.": weight, weight.nice, idle, max, max.burst, uclamp.min …; \
	 * 0 or a negative errno, -2: there is no such file. */ \
	X(int, group_write, (fl_group *, const char *file, const char *value)) \
	/* group_phase: the group's periods of cpu.max begin so long after a whole number of them. */ \
	X(int, group_phase, (fl_group *, fl_u64 offset)) \
	/* group_cpus: the group's cpuset has so many CPUs (cpuset.cpus.effective). Tasks are told where they may run by set_allowed(). */ \
	X(void, group_cpus, (fl_group *, int nr_cpus)) \
	/* move: the task changes its group (cpu_cgroup_attach()). */ \
	X(int, move, (fl_task *, fl_group *)) \
	/* trace: whether events are kept: tracepoints on, schedstats on; 2: also text events of every tracepoint of the tree that has no kind. */ \
	X(void, trace, (int on)) \
	/* features: names of the scheduler's features, a space between. */ \
	X(const char *, features, (void)) \
	/* feature: 1 on, 0 off, negative: there is none. */ \
	X(int, feature, (const char *name)) \
	X(int, set_feature, (const char *name, int on)) \
	/* tunables: names of what is registered below /proc/sys/kernel and debugfs sched, a space between. */ \
	X(const char *, tunables, (void)) \
	/* tunable: its value into *value; 0, or negative: there is none. */ \
	X(int, tunable, (const char *name, fl_s64 *value)) \
	X(int, set_tunable, (const char *name, fl_s64 value)) \
	/* fields: names of what can be read of an enum fl_object, a space between. A name's place in it is its number. */ \
	X(const char *, fields, (int object)) \
	/* read_task, read_entity, read_queue, read_cpu, read_domain, read_group: field number `field` as 64 bits; no enter() needed, no side effect. */ \
	X(fl_u64, read_task, (fl_task *, int field)) \
	X(fl_u64, read_entity, (fl_group *, int cpu, int field)) \
	X(fl_u64, read_queue, (fl_group *, int cpu, int field)) \
	X(fl_u64, read_cpu, (int cpu, int field)) \
	X(fl_u64, read_domain, (int cpu, int level, int field)) \
	X(fl_u64, read_group, (fl_group *, int field)) \
	/* domain_name: of that level, from 0; NULL: there is no such level. */ \
	X(const char *, domain_name, (int cpu, int level)) \
	/* domain_span: its CPUs into words as `allowed` has; 0, or negative. */ \
	X(int, domain_span, (int cpu, int level, fl_u64 *cpus)) \
	/* queued: ids of the tasks on a CPU's fair queue (rq->cfs_tasks, from its head), at most `room`; how many there are. */ \
	X(int, queued, (int cpu, int *ids, int room)) \
	/* snapshot: text by the kernel's own printing code to write(): 0 sched_debug, 1 /proc/schedstat; FL_UNKNOWN for others. */ \
	X(int, snapshot, (int what)) \
	/* test: for tests of the loader: an enum fl_test happens inside the image. */ \
	X(int, test, (int what, fl_s64 n))

#define FL_KEEP 127                          /* as a nice: as before */

enum fl_object { FL_TASK, FL_ENTITY /* of a group on a CPU */, FL_QUEUE /* cfs_rq */, FL_CPU /* rq */, FL_DOMAIN, FL_GROUP, FL_FLAG /* names alone */ };
enum fl_test { FL_TEST_NOTHING /* returns n + 1 */, FL_TEST_WARN, FL_TEST_BUG, FL_TEST_NULL, FL_TEST_LOOP, FL_TEST_STUB, FL_TEST_PING /* n times */, FL_TEST_PANIC, FL_TEST_LEAK /* n bytes at a time */ };

/* ---- callbacks ---- */

#define FL_CALLBACKS(X) \
	/* alloc: zeroed memory; never NULL. */ \
	X(void *, alloc, (fl_u64 size, fl_u64 align)) \
	X(void, free, (void *)) \
	/* write: printk() and snapshots. */ \
	X(void, write, (const char *, fl_u64 n)) \
	/* die: the run ends: what happened, and the function or file. Does not return. A missing stub: "stub", its name. panic(): "panic", its text. */ \
	X(void, die, (const char *what, const char *name)) \
	/* interrupt: an enum fl_ipi is sent to a CPU. */ \
	X(void, interrupt, (int cpu, int ipi)) \
	/* timer: the CPU's clock event device is set to a time, FL_NEVER: stopped. */ \
	X(void, timer, (int cpu, fl_u64 when)) \
	/* speed: arch_scale_cpu_capacity() or arch_scale_freq_capacity() of a CPU has changed. */ \
	X(void, speed, (int cpu)) \
	/* events_full: the buffer of events is full: the loader empties it, and sets *nr_events to 0. */ \
	X(void, events_full, (void)) \
	/* setgs: sets the base of %gs, where the wrgsbase instruction is not allowed (`wrgsbase` is 0). */ \
	X(void, setgs, (fl_u64 base)) \
	X(void, ping, (void))

struct fl_callbacks {
#define X(result, name, arguments) result (*name) arguments;
	FL_CALLBACKS(X)
#undef X
};

struct fl_entries {
#define X(result, name, arguments) result (*name) arguments;
	FL_ENTRIES(X)
#undef X
};

/* An entry of __bug_table, as the tree has it, told by two numbers: its size, and where its 16 bits of flags are (BUGFLAG_WARNING is
 * bit 0). It begins with the address of the ud2 in 32 bits, relative to that word; right before the flags are the line in 16 bits,
 * and before that the file's name in 32 bits, relative to that word. */

struct fl_image {
	fl_u64 magic, size;                  /* sizeof(struct fl_image) */
	const char *callbacks;               /* "result name(arguments);" of each, in order: the text of the tables above */
	const char *entries;
	const char *events;                  /* "KIND " of each */
	const char *release;                 /* UTS_RELEASE */
	const char *configuration;           /* lines of .config that name what the user can see: HZ, preemption, … */
	struct fl_clock *clock;
	struct fl_callbacks *callback;
	struct fl_event *event;              /* the buffer */
	unsigned int *nr_events;
	fl_u64 room;                         /* of the buffer, events */
	unsigned int *wrgsbase;              /* the loader writes 1 if the instruction is allowed */
	const unsigned int *work;            /* whether workqueues() has something to do */
	const void *bug_start, *bug_end;
	fl_u64 bug_size, bug_flags;          /* of one entry of __bug_table */
	fl_u64 hz;
	fl_u64 nr_cpus;                      /* the most that a machine may have (NR_CPUS) */
	struct fl_entries entry;
};

#endif
