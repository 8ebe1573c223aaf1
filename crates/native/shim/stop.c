// SPDX-License-Identifier: GPL-2.0-or-later
/* Stoppers: a task of the stop class on each CPU, which does what others ask of it (kernel/stop_machine.c). */

static DEFINE_PER_CPU(struct task_struct *, stopper);
static DEFINE_PER_CPU(struct list_head, stopper_works);

struct stop_done {
	int ret;
	struct completion completion;
};

static void queue_stop(unsigned int cpu, struct cpu_stop_work *work)
{
	list_add_tail(&work->list, per_cpu_ptr(&stopper_works, cpu));
	wake_up_process(per_cpu(stopper, cpu));
}

#if HAVE_STOP_NOWAIT_VOID
void stop_one_cpu_nowait(unsigned int cpu, cpu_stop_fn_t function, void *argument, struct cpu_stop_work *work)
{
	*work = (struct cpu_stop_work){ .fn = function, .arg = argument };
	queue_stop(cpu, work);
}
#else
bool stop_one_cpu_nowait(unsigned int cpu, cpu_stop_fn_t function, void *argument, struct cpu_stop_work *work)
{
	*work = (struct cpu_stop_work){ .fn = function, .arg = argument };
	queue_stop(cpu, work);
	return true;
}
#endif

int stop_one_cpu(unsigned int cpu, cpu_stop_fn_t function, void *argument)
{
	struct stop_done done = { };
	struct cpu_stop_work work = { .fn = function, .arg = argument, .done = (void *)&done };

	init_completion(&done.completion);
	preempt_disable();
	queue_stop(cpu, &work);
	preempt_enable();
#ifdef FL_DYNAMIC
	__cond_resched();
#else
	cond_resched();
#endif
	wait_for_completion(&done.completion);
	return done.ret;
}

int fl_stopper_work(void)
{
	return !list_empty(this_cpu_ptr(&stopper_works));
}

static long run_stop(long unused, long unused2)
{
	struct list_head *works = this_cpu_ptr(&stopper_works);
	struct cpu_stop_work *work;
	struct stop_done *done;
	int ret;

	if (list_empty(works))
		return 0;
	work = list_first_entry(works, struct cpu_stop_work, list);
	list_del_init(&work->list);
	done = (void *)work->done;
	preempt_disable();
	ret = work->fn(work->arg);
	preempt_enable();
	if (done) {
		done->ret = ret;
		complete(&done->completion);
	}
	return 1;
}

fl_entry int fl_run_stopper(void)
{
	return on_task(run_stop, 0, 0);
}

/* Set by the loader's word (fl_task_spec.per_cpu), as kthread_set_per_cpu() would. */
bool kthread_is_per_cpu(struct task_struct *p)
{
	return p->flags & PF_KTHREAD && p->flags & PF_NO_SETAFFINITY && p->nr_cpus_allowed == 1;
}

/* The loader knows no timers of the wheel: only waits without end come here. */
signed long schedule_timeout(signed long timeout)
{
	if (timeout != MAX_SCHEDULE_TIMEOUT)
		fl_die("a wait with a timeout", "schedule_timeout");
	schedule();
	return timeout;
}
