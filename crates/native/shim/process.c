// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes: the tasks of one tgid, and what they share that the scheduler reads: a signal_struct, and the group that cache-aware
 * balancing keeps of their memory. A kernel thread is a process of its own, and has no memory.
 */

static struct sighand_struct init_sighand_of_ours;
static struct signal_struct init_signal_of_ours;

#if defined(CONFIG_SCHED_CACHE) && HAVE_CACHE_GROUP
#define FL_SCHED_CACHE 1
#else
#define FL_SCHED_CACHE 0
#endif

struct process {
	struct process *next;                /* at the same place of the table */
	int tgid;
	struct task_struct *leader;          /* the first; once dead it stays until all have gone */
	struct mm_struct *mm;                /* NULL: no memory, or nobody asks */
	struct signal_struct signal;
};

static struct process *processes[1024];

static struct process *process_of(struct task_struct *p)
{
	return container_of(p->signal, struct process, signal);
}

/* Where the process is in the table, or would be. */
static struct process **place_of(int tgid)
{
	struct process **place = &processes[(unsigned int)tgid % ARRAY_SIZE(processes)];

	while (*place && (*place)->tgid != tgid)
		place = &(*place)->next;
	return place;
}

/* ---- memory: only what stands for it in balancing. No task's mm shows it, so that no switch of memory is due. ---- */
#if FL_SCHED_CACHE
static void mm_init_of(struct process *process)
{
	process->mm = zalloc(sizeof(*process->mm));
	if (mm_alloc_sched(process->mm))
		fl_die("mm_alloc_sched() fails", process->leader->comm);
}

/* copy_mm() */
static void copy_mm(struct task_struct *p)
{
	p->mm = process_of(p)->mm;
	if (p->mm)
		sched_cache_fork(p);
	p->mm = NULL;
}

/* exit_mm() */
static void exit_mm(void)
{
	if (process_of(current)->mm)
		sched_cache_exit_mm(current);
}

/* __mmdrop() */
static void drop_mm(struct process *process)
{
	if (process->mm)
		mm_destroy_sched(process->mm);
	fl_free(process->mm);
}
#else
static void mm_init_of(struct process *process) { }
static void copy_mm(struct task_struct *p) { }
static void exit_mm(void) { }
static void drop_mm(struct process *process) { }
#endif

/* ---- threads ---- */
static struct process *new_process(struct task_struct *leader, int tgid, bool has_memory)
{
	struct process *process = zalloc(sizeof(*process));

	process->tgid = tgid;
	process->leader = leader;
	process->signal = init_signal_of_ours;
	process->signal.nr_threads = 0;
	INIT_LIST_HEAD(&process->signal.thread_head);
	list_add_tail_rcu(&leader->tasks, &init_task.tasks);
	if (has_memory)
		mm_init_of(process);
	return process;
}

/* copy_signal(): what follows in copy_process() reads of it whose autogroup the task is in. */
static void copy_signal(struct task_struct *p, const struct fl_task_spec *spec)
{
	bool kthread = spec->kthread || spec->per_cpu;
	int tgid = kthread ? spec->pid : spec->tgid;
	struct process **place = place_of(tgid);

	if (*place)
		refcount_inc(&(*place)->signal.sigcnt);
	else {
		*place = new_process(p, tgid, !kthread);
		refcount_set(&(*place)->signal.sigcnt, 1);
	}
	p->signal = &(*place)->signal;
	p->group_leader = (*place)->leader;
}

/* The end of copy_process(). */
static void join_process(struct task_struct *p)
{
	p->signal->nr_threads++;
	list_add_tail_rcu(&p->thread_node, &p->signal->thread_head);
}

/* exit_notify(): nobody waits for a thread, so that it is released at once. A dead leader still counts. */
static void leave_process(void)
{
	if (current != current->group_leader)
		current->signal->nr_threads--;
}

static void end_process(struct process *process)
{
	struct process **place = place_of(process->tgid);

	*place = process->next;
	drop_mm(process);
	fl_free(process);
}

/* The next of all tasks but the idle ones: a thread, or else the next process's leader. NULL: that was the last. */
static struct task_struct *next_of_all(struct task_struct *p)
{
	if (p != &init_task && !list_is_last(&p->thread_node, &p->signal->thread_head))
		return list_next_entry(p, thread_node);
	p = next_task(p->group_leader);
	return p == &init_task ? NULL : p;
}
