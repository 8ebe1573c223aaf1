// SPDX-License-Identifier: GPL-2.0-or-later
/* Tasks: made as copy_process() makes them, and what they do by system calls. */

struct mm_struct init_mm;
struct uts_namespace init_uts_ns;
enum system_states system_state = SYSTEM_BOOTING;
static struct task_struct *init, *init_that_runs;         /* the second is a copy from before it went to sleep */

#if HAVE_STATE__
#define state_of(p) ((p)->__state)
#else
#define state_of(p) ((p)->state)
#endif

pid_t __task_pid_nr_ns(struct task_struct *p, enum pid_type type, struct pid_namespace *ns)
{
	return p->pid;
}

/* The loader's number, in a field that the scheduler has no use for. */
static int id_of(const struct task_struct *p)
{
	return (long)p->journal_info - 1;
}

static void set_id(struct task_struct *p, int id)
{
	p->journal_info = (void *)(id + 1L);
}

/* dup_task_struct() and those parts of copy_process() that the scheduler reads */
static struct task_struct *dup_task(struct task_struct *from, const char *comm, int id)
{
	struct task_struct *p = zalloc(sizeof(*p));

	memcpy(p, from, sizeof(*p));
	strscpy(p->comm, comm, sizeof(p->comm));
	set_id(p, id);
	INIT_LIST_HEAD(&p->children);
	INIT_LIST_HEAD(&p->sibling);
	p->real_parent = p->parent = &init_task;
	p->group_leader = p;
	raw_spin_lock_init(&p->pi_lock);
	p->cpus_ptr = &p->cpus_mask;
#if HAVE_USER_CPUS
	p->user_cpus_ptr = NULL;
#endif
	p->task_works = NULL;
	p->in_iowait = 0;
	p->nvcsw = p->nivcsw = 0;
#ifdef CONFIG_PSI
	p->psi_flags = 0;
#endif
	clear_tsk_thread_flag(p, TIF_NEED_RESCHED);
	clear_tsk_thread_flag(p, TIF_NOTIFY_RESUME);
#ifdef TIF_NEED_RESCHED_LAZY
	clear_tsk_thread_flag(p, TIF_NEED_RESCHED_LAZY);
#endif
	state_of(p) = TASK_RUNNING;
	refcount_set(&p->usage, 2);
	p->flags &= ~(PF_IDLE | PF_NO_SETAFFINITY | PF_KTHREAD);
	p->active_mm = p->mm = NULL;
	stack_init(p, fl_ret_from_fork);
	return p;
}

/* ---- fork ---- */
static void set_weight(struct load_weight *load, int policy, int static_prio)
{
	int index = static_prio - MAX_RT_PRIO;

	load->weight = policy == SCHED_IDLE ? scale_load(WEIGHT_IDLEPRIO) : scale_load(sched_prio_to_weight[index]);
	load->inv_weight = policy == SCHED_IDLE ? WMULT_IDLEPRIO : sched_prio_to_wmult[index];
}

/* Policy, nice and CPUs, as if the parent had had them. Returns the priority. */
static int apply(struct task_struct *p, const struct fl_task_spec *spec)
{
	bool is_rt = spec->policy == SCHED_FIFO || spec->policy == SCHED_RR;

	p->policy = spec->policy;
	p->static_prio = NICE_TO_PRIO(spec->nice);
	p->rt_priority = is_rt ? spec->rt_priority : 0;
	set_weight(&p->se.load, spec->policy, p->static_prio);
	bitmap_zero(cpumask_bits(&p->cpus_mask), NR_CPUS);
	memcpy(cpumask_bits(&p->cpus_mask), spec->allowed, BITS_TO_LONGS(nr_cpus) * sizeof(long));
	p->nr_cpus_allowed = cpumask_weight(&p->cpus_mask);
	if (spec->kthread)
		p->flags |= PF_KTHREAD;
	if (spec->per_cpu)
		p->flags |= PF_NO_SETAFFINITY;
	return is_rt ? MAX_RT_PRIO - 1 - p->rt_priority : p->static_prio;
}

/* From sched_fork() to sched_post_fork(). What later trees take as a second argument, earlier ones do not look at. */
static void fork_hooks(struct task_struct *p)
{
	struct kernel_clone_args args = { };

	args.cset = p->cgroups;
	if (((int (*)(unsigned long, struct task_struct *))sched_fork)(0, p))
		fl_die("sched_fork() fails", p->comm);
#if HAVE_CGROUP_FORK
	((int (*)(struct task_struct *, struct kernel_clone_args *))sched_cgroup_fork)(p, &args);
#endif
	((void (*)(struct task_struct *, struct kernel_clone_args *))sched_post_fork)(p, &args);
}

static struct task_struct *fork_from(struct task_struct *parent, const struct fl_task_spec *spec)
{
	struct task_struct *p = dup_task(parent, spec->comm, spec->id), *here = current;
	int prio = apply(p, spec), normal_prio = here->normal_prio;

	if (spec->own_group)
		p->cgroups = cset_of(css_of(spec->group));
	p->pid = parent->pid;                    /* copy_process() gives it its own later */
	copy_signal(p, spec);
	here->normal_prio = prio;                /* which sched_fork() hands down */
	fork_hooks(p);
	here->normal_prio = normal_prio;
	p->normal_prio = prio;
	p->pid = spec->pid;
	p->tgid = spec->tgid;
	copy_mm(p);
	join_process(p);
	return p;
}

static long fork_here(long spec, long unused)
{
	return (long)fork_from(is_idle_task(current) ? init_that_runs : current, (void *)spec);
}

fl_entry fl_task *fl_fork(const struct fl_task_spec *spec)
{
	if (spec->policy == SCHED_DEADLINE)      /* a parent with a deadline may not fork */
		return NULL;
	return (void *)on_task_whole(fork_here, (long)spec, 0);
}

static long start(long p, long unused)
{
	wake_up_new_task((void *)p);
	return 0;
}

fl_entry void fl_start(fl_task *p)
{
	on_task_whole(start, (long)p, 0);
}

/* ---- sleep, wake, end ---- */
static const unsigned int task_states[] = { TASK_RUNNING, TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, TASK_IDLE };

static long schedule_in(long state, long unused)
{
	struct task_struct *p = current;

	if (is_idle_task(p)) {                   /* as do_idle() leaves its loop */
		preempt_set_need_resched();
#if HAVE_FLUSH_SMP
		flush_smp_call_function_queue();
#else
		flush_smp_call_function_from_idle();
#endif
		schedule_idle();
		return 0;
	}
#ifdef CONFIG_PREEMPTION
	if (state == FL_PREEMPTED) {
		local_irq_disable();
		preempt_schedule_irq();
		local_irq_enable();
		return 0;
	}
#endif
	if (state != FL_RUNNABLE)
		set_current_state(task_states[state]);
	schedule();
	p->in_iowait = 0;
	return 0;
}

fl_entry void fl_schedule(int state)
{
	on_task(schedule_in, state, 0);
}

/* Before its schedule() sched_yield() calls this. */
static long yield_class(long unused, long unused2)
{
	struct rq_flags rf;
	struct rq *rq = this_rq_lock_irq(&rf);

	current->sched_class->yield_task(rq);
	preempt_disable();
	rq_unlock_irq(rq, &rf);
	preempt_enable_no_resched();
	return 0;
}

fl_entry void fl_yield_task(void)
{
	on_task_whole(yield_class, 0, 0);
}

static long exec_here(long unused, long unused2)
{
	sched_exec();
	return 0;
}

fl_entry void fl_exec(void)
{
	on_task(exec_here, 0, 0);
}

static void report_exit(struct task_struct *p);
static long die_here(long unused, long unused2)
{
	report_exit(current);
	preempt_disable();                       /* as do_exit(): from here on it leaves its CPU for good */
	current->flags |= PF_EXITING;
	exit_mm();
	sched_autogroup_exit_task(current);      /* which takes it off its queue and puts it back, in a group or not */
	current->exit_state = EXIT_DEAD;
	leave_process();
	do_task_dead();
}

fl_entry void fl_exit(void)
{
	on_task(die_here, 0, 0);
}

/* A task_struct is free after a grace period only: until then no new task has its address, which last_wakee may still hold. */
#define GRACE 256
static struct task_struct *released[GRACE];
static unsigned int nr_released;

static void forget(struct task_struct *p)
{
	list_del(&p->thread_node);
	fl_free(p->stack);
	fl_free(released[nr_released % GRACE]);
	released[nr_released++ % GRACE] = p;
}

fl_entry void fl_release(fl_task *p)
{
	struct process *process = process_of(p);

	if (p->on_rq || p->se.on_rq || p->on_cpu)
		fl_die("a task is released that is still on a runqueue", p->comm);
	if (p != process->leader)
		forget(p);
	if (refcount_dec_and_test(&process->signal.sigcnt)) {
		list_del(&process->leader->tasks);
		forget(process->leader);
		end_process(process);
	}
}

static long wake(long p, long sync)
{
	struct wait_queue_entry wait = { .private = (void *)p };

	return default_wake_function(&wait, TASK_NORMAL, sync ? WF_SYNC : 0, NULL);
}

fl_entry int fl_wake(fl_task *p, int sync)
{
	return on_task_whole(wake, (long)p, sync);
}

fl_entry void fl_set_state(fl_task *p, int state)
{
	WRITE_ONCE(state_of(p), task_states[state]);
}

fl_entry void fl_set_iowait(fl_task *p)
{
	p->in_iowait = 1;
}

static int set_tracing(int on);
int fl_need_resched(int cpu);

/* ---- kernel threads of the loader ---- */

/* Runs once and sleeps, as it did since boot: nobody is told. */
fl_entry fl_task *fl_new_kthread(const struct fl_task_spec *spec, int cpu)
{
	bool booting = fl_booting;
	int tracing = set_tracing(0);
	struct task_struct *p;

	fl_booting = true;
	set_cpu(cpu);
	p = (void *)on_task(fork_here, (long)spec, 0);
	on_task(start, (long)p, 0);
	while (current_of(cpu) != p && fl_need_resched(cpu))
		on_task(schedule_in, FL_RUNNABLE, 0);
	if (current_of(cpu) != p)
		fl_die("a kernel thread does not run", p->comm);
	on_task(schedule_in, FL_INTERRUPTIBLE, 0);
	set_tracing(tracing);
	fl_booting = booting;
	return p;
}

/* ---- what a task is ---- */
struct attributes {
	struct task_struct *p;
	struct sched_attr attr;
};

static long set_attributes(long asked_, long unused)
{
	struct attributes *asked = (void *)asked_;

	return sched_setattr_nocheck(asked->p, &asked->attr);
}

fl_entry int fl_set_scheduler(fl_task *p, int policy, int rt_priority, int nice, fl_u64 slice)
{
	struct attributes asked = { p, {
		.size = sizeof(struct sched_attr),
		.sched_policy = policy < 0 ? p->policy : policy,
		.sched_priority = policy < 0 ? p->rt_priority : rt_priority,
		.sched_nice = nice == FL_KEEP ? task_nice(p) : nice,
	} };

#if HAVE_CUSTOM_SLICE
	/* A zero would take a slice of its own away: as before is what it has. */
	asked.attr.sched_runtime = slice ? slice : p->se.custom_slice ? p->se.slice : 0;
#else
	asked.attr.sched_runtime = slice;        /* means nothing to such a tree, which says nothing of it */
#endif
	return on_task_whole(set_attributes, (long)&asked, 0);
}

static long allow(long p, long cpus)
{
	struct cpumask *mask = zalloc(sizeof(*mask));
	long wrong;

	memcpy(cpumask_bits(mask), (void *)cpus, BITS_TO_LONGS(nr_cpus) * sizeof(long));
	wrong = set_cpus_allowed_ptr((void *)p, mask);
	fl_free(mask);
	return wrong;
}

fl_entry int fl_set_allowed(fl_task *p, const fl_u64 *cpus)
{
	return on_task(allow, (long)p, (long)cpus);
}

/* ---- back to user mode ---- */
int fl_user_work(int cpu)
{
	return test_tsk_thread_flag(cpu_rq(cpu)->curr, TIF_NOTIFY_RESUME);
}

static long user_work(long unused, long unused2)
{
	clear_thread_flag(TIF_NOTIFY_RESUME);
	task_work_run();
	return 0;
}

fl_entry void fl_run_user_work(void)
{
	on_task_whole(user_work, 0, 0);
}

fl_entry void fl_workqueues(void)
{
	on_task_whole(run_works, 0, 0);
}

fl_entry int fl_curr(int cpu)
{
	return id_of(cpu_rq(cpu)->curr);
}

fl_entry int fl_need_resched(int cpu)
{
	struct task_struct *p = cpu_rq(cpu)->curr;

#ifdef TIF_NEED_RESCHED_LAZY
	if (!test_tsk_need_resched(p))
		return test_tsk_thread_flag(p, TIF_NEED_RESCHED_LAZY);
#endif
	return test_tsk_need_resched(p) ? 2 : 0;
}
