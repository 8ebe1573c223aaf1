// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions that the scheduler calls and that need no type of the kernel. No header of the tree is read, so no change of a prototype
 * between releases matters. Names of all releases stand side by side; what nobody calls costs nothing.
 */
#include <stdarg.h>
#include "shim.h"

typedef unsigned long size_t;
typedef unsigned int gfp_t;
int vscnprintf(char *text, size_t size, const char *format, va_list arguments);
int sscanf(const char *text, const char *format, ...);
size_t strlen(const char *text);

/* ---- memory: zeroed always ---- */
struct kmem_cache {
	size_t size;
};

static void *zalloc(size_t size)
{
	return fl_alloc(size ? size : 8, 64);
}

#define ALLOC(name, ...) void *name(__VA_ARGS__) { return zalloc(size); }
ALLOC(__kmalloc, size_t size, gfp_t flags)
ALLOC(__kmalloc_noprof, size_t size, gfp_t flags)
ALLOC(__kmalloc_node, size_t size, gfp_t flags, int node)
ALLOC(__kmalloc_node_noprof, size_t size, gfp_t flags, int node)
ALLOC(kvmalloc_node, size_t size, gfp_t flags, int node)
ALLOC(__kvmalloc_node_noprof, size_t size, gfp_t flags, int node)
ALLOC(kmalloc_trace, void *cache, gfp_t flags, size_t size)
ALLOC(kmalloc_node_trace, void *cache, gfp_t flags, int node, size_t size)
ALLOC(kmem_cache_alloc_trace, void *cache, gfp_t flags, size_t size)
ALLOC(kmem_cache_alloc_node_trace, void *cache, gfp_t flags, int node, size_t size)
ALLOC(__kmalloc_cache_noprof, void *cache, gfp_t flags, size_t size)
ALLOC(__kmalloc_cache_node_noprof, void *cache, gfp_t flags, int node, size_t size)
ALLOC(__kmalloc_large_noprof, size_t size, gfp_t flags)
ALLOC(kmalloc_large, size_t size, gfp_t flags)
ALLOC(kmalloc_large_noprof, size_t size, gfp_t flags)
ALLOC(kmalloc_order, size_t size, gfp_t flags, unsigned int order)

#define FREE(name) void name(void *memory) { fl_free(memory); }
FREE(kfree)
FREE(kvfree)
FREE(kfree_sensitive)

void *kmem_cache_create(const char *name, unsigned int size, unsigned int align, unsigned int flags, void (*constructor)(void *))
{
	struct kmem_cache *cache = zalloc(sizeof(*cache));

	cache->size = size;
	return cache;
}

void *__kmem_cache_create_args(const char *name, unsigned int size, void *arguments, unsigned int flags)
{
	return kmem_cache_create(name, size, 0, flags, 0);
}

void *kmem_cache_alloc(struct kmem_cache *cache, gfp_t flags)
{
	return zalloc(cache->size);
}

void *kmem_cache_alloc_noprof(struct kmem_cache *cache, gfp_t flags)
{
	return zalloc(cache->size);
}

void kmem_cache_free(struct kmem_cache *cache, void *memory)
{
	fl_free(memory);
}

void *__alloc_percpu(size_t size, size_t align)
{
	return fl_percpu_alloc(size, align);
}

void *__alloc_percpu_gfp(size_t size, size_t align, gfp_t flags)
{
	return fl_percpu_alloc(size, align);
}

void *pcpu_alloc_noprof(size_t size, size_t align, int is_reserved, gfp_t flags)
{
	return fl_percpu_alloc(size, align);
}

void free_percpu(void *memory)
{
	fl_percpu_free(memory);
}

char *kstrdup(const char *text, gfp_t flags)
{
	size_t size = strlen(text) + 1;
	char *copy = zalloc(size);

	__builtin_memcpy(copy, text, size);
	return copy;
}

char *kstrdup_const(const char *text, gfp_t flags)
{
	return kstrdup(text, flags);
}

/* ---- text ---- */
static int print(const char *format, va_list arguments)
{
	static char text[1024];
	int length = vscnprintf(text, sizeof(text), format, arguments);
	int level = length > 1 && text[0] == 1 ? 2 : 0;          /* KERN_SOH and a letter */

	fl_write(text + level, length - level);
	return length;
}

#define PRINT(name, result) \
	result name(const char *format, ...) \
	{ \
		va_list arguments; \
		va_start(arguments, format); \
		print(format, arguments); \
		va_end(arguments); \
		return (result)0; \
	}
PRINT(_printk, int)
PRINT(printk, int)
PRINT(_printk_deferred, int)
PRINT(printk_deferred, int)
PRINT(__warn_printk, int)

void panic(const char *format, ...)
{
	static char text[512];
	va_list arguments;

	va_start(arguments, format);
	vscnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fl_die("panic", text);
}

/* Nothing is held back: a run prints little. */
int ___ratelimit(void *state, const char *function)
{
	return 1;
}

int __printk_ratelimit(const char *function)
{
	return 1;
}

/* struct cgroup's `kn` is the path itself. */
int kernfs_path_from_node(const void *node, const void *from, char *text, size_t size)
{
	const char *path = node ? node : "/";
	size_t i;

	for (i = 0; path[i] && i + 1 < size; i++)
		text[i] = path[i];
	text[i] = 0;
	return i;
}

/* ---- RCU: a grace period ends between the loader's calls, unless a reader was preempted ---- */
static unsigned long rcu_readers;

void __rcu_read_lock(void)
{
	rcu_readers++;
}

void __rcu_read_unlock(void)
{
	rcu_readers--;
}

void synchronize_rcu(void)
{
	if (rcu_readers)
		fl_die("a wait for a reader of RCU that was preempted", "synchronize_rcu");
}

struct rcu_head {
	struct rcu_head *next;
	void (*function)(struct rcu_head *);
};
static struct rcu_head *rcu_first, **rcu_last = &rcu_first;

void call_rcu(struct rcu_head *head, void (*function)(struct rcu_head *))
{
	head->function = function;
	head->next = 0;
	*rcu_last = head;
	rcu_last = &head->next;
	fl_work = 1;
}

void call_rcu_hurry(struct rcu_head *head, void (*function)(struct rcu_head *))
{
	call_rcu(head, function);
}

int fl_run_rcu(void)
{
	while (rcu_first && !rcu_readers) {
		struct rcu_head *head = rcu_first;

		rcu_first = head->next;
		if (!rcu_first)
			rcu_last = &rcu_first;
		head->function(head);
	}
	return rcu_first != 0;
}

/* ---- soft interrupts ---- */
void open_softirq(int number, void *action)
{
	fl_add_softirq(number, action);
}

void raise_softirq(unsigned int number)
{
	fl_raise_softirq(number);
}

void raise_softirq_irqoff(unsigned int number)
{
	fl_raise_softirq(number);
}

void __raise_softirq_irqoff(unsigned int number)
{
	fl_raise_softirq(number);
}

/* ---- settings ---- */
static char llc_balancing, numa_balancing;       /* folders */
int strcmp(const char *one, const char *other);

void *debugfs_create_dir(const char *name, void *parent)
{
	if (!strcmp(name, "llc_balancing"))
		return &llc_balancing;
	return strcmp(name, "numa_balancing") ? 0 : &numa_balancing;
}

static const char *below_llc_balancing(const char *name)
{
	static const char folder[] = "llc_balancing/";
	size_t length = sizeof(folder) - 1, size = strlen(name) + 1;
	char *path = zalloc(length + size);

	__builtin_memcpy(path, folder, length);
	__builtin_memcpy(path + length, name, size);
	return path;
}

/* Tasks have no memory on a node: what sets how NUMA balancing moves it is no tunable here. */
void debugfs_create_u32(const char *name, int mode, void *folder, void *value)
{
	if (folder != &numa_balancing)
		fl_add_tunable(folder == &llc_balancing ? below_llc_balancing(name) : name, value, 4);
}

void debugfs_create_u64(const char *name, int mode, void *folder, void *value)
{
	fl_add_tunable(name, value, 8);
}

void debugfs_create_ulong(const char *name, int mode, void *folder, void *value)
{
	fl_add_tunable(name, value, 8);
}

void debugfs_create_bool(const char *name, int mode, void *folder, void *value)
{
	fl_add_tunable(name, value, 1);
}

/* Tables to 6.5 end with an empty row. */
void __register_sysctl_init(const char *path, void *table, const char *name, size_t rows)
{
	fl_add_sysctls(table, rows ? rows : ~0UL);
}

void *register_sysctl_sz(const char *path, void *table, size_t rows)
{
	fl_add_sysctls(table, rows);
	return table;
}

void *proc_create_seq_private(const char *name, int mode, void *parent, const void *operations, unsigned int size, void *data)
{
	fl_keep_seq(name, operations);
	return 0;
}

/* ---- keys as words ---- */
void static_key_slow_inc(int *key)
{
	++*key;
}

void static_key_slow_inc_cpuslocked(int *key)
{
	++*key;
}

void static_key_slow_dec(int *key)
{
	--*key;
}

void static_key_slow_dec_cpuslocked(int *key)
{
	--*key;
}

void static_key_enable(int *key)
{
	*key = 1;
}

void static_key_enable_cpuslocked(int *key)
{
	*key = 1;
}

void static_key_disable(int *key)
{
	*key = 0;
}

void static_key_disable_cpuslocked(int *key)
{
	*key = 0;
}

/* ---- locks that one thread cannot contend for ---- */
int mutex_trylock(void *mutex)
{
	return 1;
}

/* ---- ticks and clocks ---- */
int tick_check_oneshot_change(int nohz)
{
	return 1;
}

unsigned int jiffies_to_msecs(unsigned long ticks)
{
	return ticks * 1000 / fl_hz;
}

unsigned int jiffies_to_usecs(unsigned long ticks)
{
	return ticks * 1000000 / fl_hz;
}

unsigned long __msecs_to_jiffies(unsigned int ms)
{
	return (ms * (unsigned long)fl_hz + 999) / 1000;
}

unsigned long __usecs_to_jiffies(unsigned int us)
{
	return (us * (unsigned long)fl_hz + 999999) / 1000000;
}

void ktime_get_real_ts64(long long *time)
{
	time[0] = fl_clock.now / 1000000000;
	time[1] = fl_clock.now % 1000000000;
}

/* ---- chance: one sequence, equal in every run ---- */
static unsigned long long chance = 88172645463325252ULL;

void get_random_bytes(void *bytes, size_t size)
{
	unsigned char *byte = bytes;

	for (; size--; byte++) {
		chance ^= chance << 13;
		chance ^= chance >> 7;
		chance ^= chance << 17;
		*byte = chance;
	}
}

void get_random_bytes_arch(void *bytes, int size)
{
	get_random_bytes(bytes, size);
}

unsigned int get_random_u32(void)
{
	unsigned int number;

	get_random_bytes(&number, sizeof(number));
	return number;
}

unsigned int prandom_u32(void)
{
	return get_random_u32();
}

unsigned int __get_random_u32_below(unsigned int limit)
{
	return (unsigned long long)get_random_u32() * limit >> 32;
}

int __do_once_start(char *done, unsigned long *flags)
{
	return !*done;
}

void __do_once_done(char *done, void *key, unsigned long *flags, void *module)
{
	*done = 1;
}

/* ---- small pieces of x86 ---- */
asm(".globl __sw_hweight64, __sw_hweight32\n"
    "__sw_hweight64:\n\tpopcnt %rdi, %rax\n\tret\n"
    "__sw_hweight32:\n\tpopcnt %edi, %eax\n\tret\n"
    ".globl __fentry__, __x86_return_thunk\n"
    "__fentry__:\n__x86_return_thunk:\n\tret\n"
    ".globl __sanitizer_cov_trace_pc\n"
    "__sanitizer_cov_trace_pc:\n\tincq fl_clock+56(%rip)\n\tret\n");

void fl_hlt(void)
{
	fl_die("the instruction hlt", "");
}

void fl_missing(const char *name)
{
	fl_die("stub", name);
}

/* Idle tasks are kernel threads without more. */
int set_kthread_struct(void *p)
{
	return 1;
}
