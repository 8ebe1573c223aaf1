// SPDX-License-Identifier: GPL-2.0-or-later
/* Features and tunables: whatever the tree registers can be set by its own name. */

/* A growing text with a space between words. */
struct words {
	char *text;
	unsigned long used, room;
};

static void add_word(struct words *words, const char *word)
{
	unsigned long length = strlen(word);

	if (words->used + length + 2 > words->room) {
		unsigned long room = 2 * (words->room + length) + 256;
		char *more = fl_alloc(room, 16);

		memcpy(more, words->text ? words->text : "", words->used);
		words->text = more;
		words->room = room;
	}
	if (words->used)
		words->text[words->used++] = ' ';
	memcpy(words->text + words->used, word, length + 1);
	words->used += length;
}

static const char *text_of(const struct words *words)
{
	return words->text ? words->text : "";
}

/* ---- features ---- */
#define SCHED_FEAT(name, enabled) #name,
static const char *const feature_names[] = {
#include "features.h"
};
#undef SCHED_FEAT

const char *fl_features(void)
{
	static struct words words;
	int i;

	if (!words.used)
		for (i = 0; i < ARRAY_SIZE(feature_names); i++)
			add_word(&words, feature_names[i]);
	return text_of(&words);
}

static int feature_number(const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(feature_names); i++)
		if (!strcmp(feature_names[i], name))
			return i;
	return -ENOENT;
}

int fl_feature(const char *name)
{
	int number = feature_number(name);

	return number < 0 ? number : !!(sysctl_sched_features & (1UL << number));
}

int fl_set_feature(const char *name, int on)
{
	int number = feature_number(name);

	if (number < 0)
		return number;
	if (on)
		*(unsigned int *)&sysctl_sched_features |= 1U << number;
	else
		*(unsigned int *)&sysctl_sched_features &= ~(1U << number);
	return 0;
}

/* ---- tunables ---- */
#define MOST_TUNABLES 512
static struct tunable {
	const char *name;
	void *value;
	int bytes;
	long (*apply)(long value, long unused);   /* what the kernel does where a store is not enough */
	struct ctl_table *row;               /* of a sysctl: its handler checks a value, and does what it is for */
} tunables[MOST_TUNABLES];
static int nr_tunables;

void fl_add_tunable(const char *name, void *value, int bytes)
{
	if (nr_tunables == MOST_TUNABLES)
		fl_die("too many tunables", name);
	if (value && (bytes == 1 || bytes == 4 || bytes == 8))
		tunables[nr_tunables++] = (struct tunable){ name, value, bytes };
}

static void add_sysctl(struct ctl_table *row)
{
	int before = nr_tunables;

	fl_add_tunable(row->procname, row->data, row->maxlen);
	if (nr_tunables > before)
		tunables[before].row = row;
}

void fl_add_sysctls(void *table, unsigned long entries)
{
	struct ctl_table *row;

	for (row = table; entries-- && row->procname; row++)
		add_sysctl(row);
}

/* proc_dointvec() and its kin of kernel/sysctl.c: one whole number, within the row's limits if it has some. */
static int write_row(const struct ctl_table *row, int write, const char *text, bool is_limited, bool is_signed)
{
	long value, least = is_signed ? INT_MIN : 0, most = is_signed ? INT_MAX : UINT_MAX;

	if (!write || row->maxlen != sizeof(int) || kstrtol(text, 10, &value))
		return -EINVAL;
	if (is_limited && row->extra1)
		least = is_signed ? (long)*(int *)row->extra1 : *(unsigned int *)row->extra1;
	if (is_limited && row->extra2)
		most = is_signed ? (long)*(int *)row->extra2 : *(unsigned int *)row->extra2;
	if (value < least || value > most)
		return -EINVAL;
	*(int *)row->data = value;
	return 0;
}

#define HANDLER(name, is_limited, is_signed) \
	int fl_##name(const struct ctl_table *row, int write, void *text, size_t *length, loff_t *place) __asm__(#name); \
	int fl_##name(const struct ctl_table *row, int write, void *text, size_t *length, loff_t *place) \
	{ \
		return write_row(row, write, text, is_limited, is_signed); \
	}
HANDLER(proc_dointvec, false, true)
HANDLER(proc_dointvec_minmax, true, true)
HANDLER(proc_douintvec, false, false)
HANDLER(proc_douintvec_minmax, true, false)

/* Trees to 5.12 keep the scheduler's rows among all others, in kernel/sysctl.c. */
static void add_old_sysctls(void)
{
#if HAVE_OLD_SYSCTLS
#define OLD(name, variable) fl_add_tunable(name, &variable, sizeof(variable))
#define OLD_ROW(name, variable, handler) do { \
	static struct ctl_table row = { \
		.procname = name, .data = &variable, .maxlen = sizeof(variable), .mode = 0644, .proc_handler = handler, \
	}; \
	add_sysctl(&row); \
} while (0)
	OLD_ROW("sched_min_granularity_ns", sysctl_sched_min_granularity, sched_proc_update_handler);
	OLD_ROW("sched_latency_ns", sysctl_sched_latency, sched_proc_update_handler);
	OLD_ROW("sched_wakeup_granularity_ns", sysctl_sched_wakeup_granularity, sched_proc_update_handler);
	OLD("sched_migration_cost_ns", *(unsigned int *)&sysctl_sched_migration_cost);
	OLD("sched_nr_migrate", *(unsigned int *)&sysctl_sched_nr_migrate);
	OLD("sched_child_runs_first", sysctl_sched_child_runs_first);
	OLD_ROW("sched_rt_period_us", sysctl_sched_rt_period, sched_rt_handler);
	OLD_ROW("sched_rt_runtime_us", sysctl_sched_rt_runtime, sched_rt_handler);
#ifdef CONFIG_CFS_BANDWIDTH
	OLD("sched_cfs_bandwidth_slice_us", sysctl_sched_cfs_bandwidth_slice);
#endif
#endif
}

/* The share that fair tasks have beside real-time ones, on all CPUs at once: fair_server/cpu<n>/runtime of debugfs, ns a period. */
#if HAVE_FAIR_SERVER
static s64 fair_server_runtime;

static long set_fair_server(long runtime, long unused)
{
	unsigned int cpu;
	struct rq_flags flags;
	int refused = 0;

	for (cpu = 0; cpu < nr_cpus && !refused; cpu++) {
		struct rq *rq = cpu_rq(cpu);
		struct sched_dl_entity *server = &rq->fair_server;

		rq_lock_irqsave(rq, &flags);
		update_rq_clock(rq);
		if (server->dl_server_active)
			dl_server_stop(server);
		refused = dl_server_apply_params(server, runtime, server->dl_period, 0);
		if (rq->cfs.load.weight)
			dl_server_start(server);
		rq_unlock_irqrestore(rq, &flags);
	}
	return refused;
}
#endif

static void add_fair_server(void)
{
#if HAVE_FAIR_SERVER
	fair_server_runtime = cpu_rq(0)->fair_server.dl_runtime;
	fl_add_tunable("fair_server_runtime", &fair_server_runtime, sizeof(fair_server_runtime));
	tunables[nr_tunables - 1].apply = set_fair_server;
#endif
}

/* llc_balancing/enabled of debugfs: what sched_cache_enable_write() does. */
#if FL_SCHED_CACHE
static long set_sched_cache(long on, long unused)
{
	if (on & ~1L)
		return -EINVAL;
	sysctl_sched_cache_user = on;
	sched_cache_active_set();
	return 0;
}
#endif

static void add_sched_cache(void)
{
#if FL_SCHED_CACHE
	fl_add_tunable("llc_balancing/enabled", &sysctl_sched_cache_user, sizeof(sysctl_sched_cache_user));
	tunables[nr_tunables - 1].apply = set_sched_cache;
#endif
}

const char *fl_tunables(void)
{
	static struct words words;
	int i;

	if (!words.used)
		for (i = 0; i < nr_tunables; i++)
			add_word(&words, tunables[i].name);
	return text_of(&words);
}

static struct tunable *tunable_named(const char *name)
{
	int i;

	for (i = 0; i < nr_tunables; i++)
		if (!strcmp(tunables[i].name, name))
			return &tunables[i];
	return NULL;
}

int fl_tunable(const char *name, fl_s64 *value)
{
	struct tunable *tunable = tunable_named(name);

	if (!tunable)
		return -ENOENT;
	*value = tunable->bytes == 8 ? *(s64 *)tunable->value
		: tunable->bytes == 4 ? *(int *)tunable->value : *(u8 *)tunable->value;
	return 0;
}

static long handle(long tunable, long value)
{
	struct ctl_table *row = ((struct tunable *)tunable)->row;
	char text[24];
	size_t length = snprintf(text, sizeof(text), "%ld", value);
	loff_t place = 0;

	return row->proc_handler(row, 1, text, &length, &place);
}

fl_entry int fl_set_tunable(const char *name, fl_s64 value)
{
	struct tunable *tunable = tunable_named(name);
	int refused = tunable && tunable->apply ? on_task_whole(tunable->apply, value, 0) : 0;

	if (!tunable || refused)
		return tunable ? refused : -ENOENT;
	if (tunable->row && tunable->row->proc_handler)
		return on_task_whole(handle, (long)tunable, value);
	if (tunable->bytes == 8)
		*(s64 *)tunable->value = value;
	else if (tunable->bytes == 4)
		*(int *)tunable->value = value;
	else
		*(u8 *)tunable->value = value;
	return 0;
}

/* ---- text by the kernel's own printing code ---- */
static const struct seq_operations *schedstat;

void fl_keep_seq(const char *name, const void *operations)
{
	if (!strcmp(name, "schedstat"))
		schedstat = operations;
}

static int print_seq(const struct seq_operations *operations)
{
	struct seq_file file = { .size = 1 << 20 };
	loff_t position = 0;
	void *item;

	file.buf = fl_alloc(file.size, 64);
	for (item = operations->start(&file, &position); item; item = operations->next(&file, item, &position)) {
		operations->show(&file, item);
		fl_write(file.buf, file.count);
		file.count = 0;
	}
	operations->stop(&file, item);
	fl_free(file.buf);
	return 0;
}

extern void sysrq_sched_debug_show(void);

static long print(long what, long unused)
{
	if (what == 0)
		sysrq_sched_debug_show();
	else
		print_seq(schedstat);
	return 0;
}

fl_entry int fl_snapshot(int what)
{
	if (what < 0 || what > 1 || (what == 1 && !schedstat))
		return FL_UNKNOWN;
	return on_task(print, what, 0);
}
