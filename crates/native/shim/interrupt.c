// SPDX-License-Identifier: GPL-2.0-or-later
/* Interrupts of CPUs by CPUs, queued by the tree's own kernel/smp.c, and soft interrupts. */

#if !HAVE_PCPU_HOT_SOFTIRQ
DEFINE_PER_CPU_SHARED_ALIGNED(irq_cpustat_t, irq_stat);
#endif
#if HAVE_SOFTIRQ_VAR
DEFINE_PER_CPU_CACHE_HOT(u16, __softirq_pending);
#endif

static void (*softirq_actions[NR_SOFTIRQS])(void *);

void fl_add_softirq(int number, void *action)
{
	softirq_actions[number] = action;
}

void fl_raise_softirq(unsigned int number)
{
	or_softirq_pending(1U << number);
}

static void run_softirq(int number)
{
	static char no_action[64];               /* struct softirq_action, which trees to 6.11 hand over */

	if (number == SCHED_SOFTIRQ) {
		fl_clock.softirqs++;
		fl_clock.now += fl_clock.softirq;
	}
	softirq_actions[number](no_action);
}

/* As __do_softirq(): ten rounds at most; what is raised later waits for the next interrupt. */
static void run_softirqs(void)
{
	unsigned int rounds = 10, pending, number;

	while ((pending = local_softirq_pending()) && rounds--) {
		set_softirq_pending(0);
		preempt_count_add(SOFTIRQ_OFFSET);
		local_irq_enable();
		for (number = 0; number < NR_SOFTIRQS; number++)
			if (pending & (1U << number) && softirq_actions[number])
				run_softirq(number);
		local_irq_disable();
		preempt_count_sub(SOFTIRQ_OFFSET);
	}
}

fl_entry void do_softirq(void)
{
	unsigned long flags;

	if (in_interrupt())
		return;
	local_irq_save(flags);
	run_softirqs();
	local_irq_restore(flags);
}

#if __has_include(<linux/hrtimer_rearm.h>)
#include <linux/hrtimer_rearm.h>
#else
static inline void hrtimer_rearm_deferred(void) { }
#endif

fl_entry void fl_irq_enter(void)
{
	local_irq_disable();
	preempt_count_add(HARDIRQ_OFFSET);
	update_jiffies();
}

fl_entry void fl_irq_exit(void)
{
	preempt_count_sub(HARDIRQ_OFFSET);
	if (!in_interrupt())
		run_softirqs();
	hrtimer_rearm_deferred();
	local_irq_enable();
}

/* While the kernel boots nobody carries them: boot() looks itself. */
static void send(int cpu, int ipi)
{
	if (!fl_booting)
		fl_interrupt(cpu, ipi);
}

static void send_reschedule(int cpu)
{
	send(cpu, FL_IPI_RESCHEDULE);
}

static void send_call(int cpu)
{
	send(cpu, FL_IPI_CALL);
}

static void send_calls(const struct cpumask *cpus)
{
	int cpu;

	for_each_cpu(cpu, cpus)
		send_call(cpu);
}

struct smp_ops smp_ops = {
	.smp_send_reschedule = send_reschedule,
	.send_call_func_single_ipi = send_call,
	.send_call_func_ipi = send_calls,
};

void arch_irq_work_raise(void)
{
	send(raw_smp_processor_id(), FL_IPI_IRQ_WORK);
}

fl_entry void fl_receive(int ipi)
{
	if (ipi == FL_IPI_RESCHEDULE)
		preempt_fold_need_resched();
	else if (ipi == FL_IPI_CALL)
		generic_smp_call_function_single_interrupt();
	else
		irq_work_run();
}

/* ---- work queues: what is queued is done between the loader's calls ---- */
#define MOST_WORK 64
static struct work_struct *works[MOST_WORK];
static int nr_works;

bool queue_work_on(int cpu, struct workqueue_struct *queue, struct work_struct *work)
{
	int i;

	for (i = 0; i < nr_works; i++)
		if (works[i] == work)
			return false;
	if (nr_works == MOST_WORK)
		fl_die("too much work is queued", "");
	works[nr_works++] = work;
	fl_work = 1;
	return true;
}

static long run_works(long unused, long unused2)
{
	int i;

	for (i = 0; i < nr_works; i++)
		works[i]->func(works[i]);
	nr_works = 0;
	fl_work = fl_run_rcu();
	return 0;
}
