// SPDX-License-Identifier: GPL-2.0-or-later
/* From nothing to a machine whose CPUs idle: start_kernel() to the end of kernel_init_freeable(), as far as scheduling goes. */

extern initcall_entry_t __fl_initcalls_start[], __fl_initcalls_end[];
extern int hrtimers_starting(unsigned int cpu) __asm__("hrtimers_cpu_starting") __attribute__((weak));

static void init_task_init(void)
{
	atomic_set(&init_mm.mm_count, 1);
	init_task.mm = NULL;
	init_task.active_mm = &init_mm;
	init_task.signal = &init_signal_of_ours;
	INIT_LIST_HEAD(&init_signal_of_ours.thread_head);
	init_task.sighand = &init_sighand_of_ours;
	set_id(&init_task, 0);
	stack_init(&init_task, fl_idle_begins);
}

/* The root group, as cgroup_init() leaves it. */
static void root_group_init(void)
{
	struct cgroup_subsys_state *css = &root_task_group.css;

	INIT_LIST_HEAD(&css->children);
	INIT_LIST_HEAD(&css->sibling);
	make_css(NULL, "/");
	css->cgroup = zalloc(sizeof(struct cgroup) + 128);
	init_task.cgroups = cset_of(css);
}

static struct fl_task_spec spec_of(const char *comm, int id, int pid, const fl_u64 *allowed)
{
	struct fl_task_spec spec = {
		.id = id, .pid = pid, .tgid = pid, .policy = SCHED_NORMAL, .kthread = 1, .own_group = 1, .allowed = allowed,
	};

	strscpy(spec.comm, comm, sizeof(spec.comm));
	return spec;
}

static void prepare_cpu(unsigned int cpu)
{
	INIT_LIST_HEAD(per_cpu_ptr(&stopper_works, cpu));
	hrtimers_prepare_cpu(cpu);
	smpcfd_prepare_cpu(cpu);
}

static void start_hrtimers(void)
{
	unsigned int cpu;

	for (cpu = 0; hrtimers_starting && cpu < nr_cpus; cpu++) {
		set_cpu(cpu);
		hrtimers_starting(cpu);
	}
	set_cpu(0);
}

/* On the first task, which idles from then on; init is left to run. */
static long start_kernel_here(long unused, long unused2)
{
	struct fl_task_spec spec;
	unsigned int cpu;

	cpu_cgrp_subsys.id = cpu_cgrp_id;
	sched_init();
	root_group_init();
	for (cpu = 0; cpu < nr_cpus; cpu++)
		prepare_cpu(cpu);
	start_hrtimers();
	sched_clock_init();
	init_task.flags |= PF_IDLE;
	spec = spec_of("init", 2 * nr_cpus, machine->init_pid, (void *)cpumask_bits(cpu_possible_mask));
	spec.kthread = 0;
	init = fork_from(&init_task, &spec);
	wake_up_new_task(init);
	return 0;
}

/* As fork_idle() and start_secondary(). */
static long bring_up(long cpu, long unused)
{
	struct task_struct *idle = dup_task(&init_task, "swapper", cpu);

	snprintf(idle->comm, sizeof(idle->comm), "swapper/%ld", cpu);
	idle->flags |= PF_IDLE | PF_KTHREAD;
	idle->pid = idle->tgid = 0;
	idle->cgroups = init_task.cgroups;
	if (((int (*)(unsigned long, struct task_struct *))sched_fork)(0, idle))
		fl_die("sched_fork() fails", idle->comm);
	init_idle(idle, cpu);
	fl_free(idle->stack);
	stack_init(idle, fl_idle_begins);
	current_of(cpu) = idle;
	cpumask_set_cpu(cpu, &__cpu_online_mask);
	return 0;
}

static long start_cpu(long cpu, long unused)
{
	sched_cpu_starting(cpu);
	return 0;
}

static long activate_cpu(long cpu, long unused)
{
	sched_cpu_activate(cpu);
	return 0;
}

static long start_smp(long unused, long unused2)
{
	initcall_entry_t *call;

	sched_init_smp();
	for (call = __fl_initcalls_start; call < __fl_initcalls_end; call++)
		initcall_from_entry(call)();
	add_old_sysctls();
	system_state = SYSTEM_RUNNING;
	return 0;
}

static long to_high_resolution(long unused, long unused2)
{
	hrtimer_run_queues();
	return 0;
}

static long make_stopper(long cpu, long unused)
{
	fl_u64 *allowed = (void *)cpumask_bits(cpumask_of(cpu));
	struct fl_task_spec spec = spec_of("", nr_cpus + cpu, machine->first_stopper_pid + cpu, allowed);
	struct task_struct *p;

	snprintf(spec.comm, sizeof(spec.comm), "migration/%ld", cpu);
	spec.per_cpu = 1;
	p = fork_from(init, &spec);
	per_cpu(stopper, cpu) = p;
	wake_up_new_task(p);
	return 0;
}

static long to_stop_class(long cpu, long unused)
{
	sched_set_stop_task(cpu, per_cpu(stopper, cpu));
	return 0;
}

static long on_cpu(int cpu, long (*function)(long, long))
{
	set_cpu(cpu);
	return on_task(function, cpu, 0);
}

/* Runs what wants to run there; each that does sleeps at once. */
static void come_to_rest(int cpu)
{
	int rounds;

	set_cpu(cpu);
	for (rounds = 0; rounds < 100; rounds++) {
		if (fl_need_resched(cpu))
			on_task(schedule_in, FL_RUNNABLE, 0);
		else if (!is_idle_task(current_of(cpu)))
			on_task(schedule_in, FL_INTERRUPTIBLE, 0);
		else
			return;
	}
	fl_die("a CPU does not come to rest at boot", current_of(cpu)->comm);
}

static void start_cpus(void)
{
	unsigned int cpu;

	for (cpu = 1; cpu < nr_cpus; cpu++) {
		set_cpu(0);
		on_task(bring_up, cpu, 0);
		on_cpu(cpu, start_cpu);
	}
	for (cpu = 1; cpu < nr_cpus; cpu++)
		on_cpu(cpu, activate_cpu);
}

fl_entry void fl_boot(const struct fl_machine *given)
{
	unsigned int cpu;

	if (given->nr_cpus > NR_CPUS)
		fl_die("the machine has more CPUs than the kernel is configured for", "");
	percpu_init(given->nr_cpus);
	set_cpu(0);
	topology_init(given);
	init_task_init();
	on_cpu(0, start_kernel_here);
	on_task(schedule_in, FL_RUNNABLE, 0);
	if (current_of(0) != init)
		fl_die("init does not run", current_of(0)->comm);
	start_cpus();
	on_cpu(0, start_smp);
	set_tracing(0);
	for (cpu = 0; cpu < nr_cpus; cpu++)
		on_cpu(cpu, to_high_resolution);
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		set_cpu(0);
		on_task(make_stopper, cpu, 0);
	}
	init_that_runs = zalloc(sizeof(*init));
	memcpy(init_that_runs, init, sizeof(*init));
	for (cpu = 0; cpu < nr_cpus; cpu++)
		come_to_rest(cpu);
	for (cpu = 0; cpu < nr_cpus; cpu++)
		on_cpu(cpu, to_stop_class);
	add_fair_server();
	add_sched_cache();
	set_cpu(0);
	fl_booting = false;
}
