// SPDX-License-Identifier: GPL-2.0-or-later
/* Per-CPU memory: each CPU has a copy of the static part and a reserve behind it, and %gs leads to it. */

extern char __per_cpu_start[], __per_cpu_end[];
unsigned long __per_cpu_offset[NR_CPUS];

#if HAVE_PREEMPT_COUNT_LONG
typedef unsigned long preempt_count_t;
#else
typedef int preempt_count_t;
#endif

#if HAVE_CACHE_HOT
DEFINE_PER_CPU_CACHE_HOT(unsigned long, this_cpu_off);
DEFINE_PER_CPU_CACHE_HOT(int, cpu_number);
DEFINE_PER_CPU_CACHE_HOT(preempt_count_t, __preempt_count) = INIT_PREEMPT_COUNT;
DEFINE_PER_CPU_CACHE_HOT(struct task_struct *, current_task) = &init_task;
DEFINE_PER_CPU_CACHE_HOT(unsigned long, cpu_current_top_of_stack);
#define current_of(cpu) per_cpu(current_task, cpu)
#define set_top_of_stack(cpu, top) (per_cpu(cpu_current_top_of_stack, cpu) = (top))
#elif HAVE_PCPU_HOT
DEFINE_PER_CPU_ALIGNED(struct pcpu_hot, pcpu_hot) = {
	.current_task = &init_task,
	.preempt_count = INIT_PREEMPT_COUNT,
};
DEFINE_PER_CPU_READ_MOSTLY(unsigned long, this_cpu_off);
#define current_of(cpu) per_cpu(pcpu_hot.current_task, cpu)
#define set_top_of_stack(cpu, top) (per_cpu(pcpu_hot.top_of_stack, cpu) = (top))
#else
DEFINE_PER_CPU(struct task_struct *, current_task) ____cacheline_aligned = &init_task;
DEFINE_PER_CPU(preempt_count_t, __preempt_count) = INIT_PREEMPT_COUNT;
DEFINE_PER_CPU_READ_MOSTLY(int, cpu_number);
DEFINE_PER_CPU_READ_MOSTLY(unsigned long, this_cpu_off);
#define current_of(cpu) per_cpu(current_task, cpu)
#ifdef cpu_current_top_of_stack                  /* a field of what the processor reads */
#define set_top_of_stack(cpu, top) do { } while (0)
#else
DEFINE_PER_CPU(unsigned long, cpu_current_top_of_stack);
#define set_top_of_stack(cpu, top) (per_cpu(cpu_current_top_of_stack, cpu) = (top))
#endif
#endif

/* Bytes for what is allocated later: scheduling domains, accounting of groups. Only what is used is ever touched. */
#define RESERVE (512UL << 10)
static unsigned long reserve_used, static_size;

/* Pieces of the reserve that were given back, up to eight words long: the first word of each, on CPU 0, leads to the next. What is
 * larger is only ever allocated at boot and for groups, and stays. */
#define LARGEST 8
static u8 words_at[RESERVE / 8];
static unsigned long *given_back[LARGEST + 1];

static void percpu_init(unsigned int cpus)
{
	unsigned long size = __per_cpu_end - __per_cpu_start;
	unsigned int cpu;

	static_size = ALIGN(size, PAGE_SIZE);
	for (cpu = 0; cpu < NR_CPUS; cpu++) {
		char *area;

		if (cpu >= cpus) {
			__per_cpu_offset[cpu] = __per_cpu_offset[0];
			continue;
		}
		/* What is at one place of each area lies in different lines of a cache. */
		area = fl_alloc(static_size + RESERVE + PAGE_SIZE, PAGE_SIZE);
		area += cpu % 16 * 256;
		memcpy(area, __per_cpu_start, size);
		__per_cpu_offset[cpu] = area - __per_cpu_start;
		per_cpu(this_cpu_off, cpu) = __per_cpu_offset[cpu];
#if HAVE_PCPU_HOT && !HAVE_CACHE_HOT
		per_cpu(pcpu_hot.cpu_number, cpu) = cpu;
#else
		per_cpu(cpu_number, cpu) = cpu;
#endif
	}
}

static void *cut_from_reserve(unsigned long size, unsigned long align)
{
	unsigned long at = ALIGN(reserve_used, align), words = DIV_ROUND_UP(size, 8);

	if (at + size > RESERVE)
		fl_die("per-CPU memory is used up", "");
	reserve_used = at + size;
	words_at[at / 8] = words > LARGEST ? 0 : words;
	return __per_cpu_start + static_size + at;
}

void *fl_percpu_alloc(unsigned long size, unsigned long align)
{
	unsigned long words = DIV_ROUND_UP(size, 8), *piece = words > LARGEST || align > 8 ? NULL : given_back[words];
	int cpu;

	if (!piece)
		return cut_from_reserve(size, max(align, 8UL));
	given_back[words] = (unsigned long *)*per_cpu_ptr(piece, 0);
	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(piece, cpu), 0, size);
	return piece;
}

void fl_percpu_free(void *memory)
{
	unsigned long words = memory ? words_at[((char *)memory - __per_cpu_start - static_size) / 8] : 0;

	if (!words)
		return;
	*per_cpu_ptr((unsigned long *)memory, 0) = (unsigned long)given_back[words];
	given_back[words] = memory;
}

static void *zalloc(size_t size)
{
	return fl_alloc(size ? size : 8, 64);
}

static __always_inline void set_cpu(int cpu)
{
	fl_setgs(__per_cpu_offset[cpu]);
}
