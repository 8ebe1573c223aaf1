// SPDX-License-Identifier: GPL-2.0-or-later
/* Time: the loader's clock, jiffies that follow it, and a clock event device for each CPU. */

u64 jiffies_64 __cacheline_aligned_in_smp = INITIAL_JIFFIES;
extern unsigned long volatile jiffies __attribute__((alias("jiffies_64")));
const int fl_hz = HZ;
int timekeeping_suspended;

unsigned long long notrace sched_clock(void)
{
	return fl_clock.now;
}

u64 sched_clock_noinstr(void)
{
	return fl_clock.now;
}

ktime_t ktime_get(void)
{
	return fl_clock.now;
}

u64 ktime_get_mono_fast_ns(void)
{
	return fl_clock.now;
}

ktime_t ktime_get_with_offset(enum tk_offsets offset)
{
	return fl_clock.now;
}

ktime_t ktime_get_update_offsets_now(unsigned int *sequence, ktime_t *real, ktime_t *boot, ktime_t *tai)
{
	*real = *boot = *tai = 0;
	return fl_clock.now;
}

/* Whoever comes first in a period of the tick updates them; so does the kernel, at ticks and when an idle CPU awakes. */
static void update_jiffies(void)
{
	u64 now = INITIAL_JIFFIES + fl_clock.now / TICK_NSEC;

	if (likely(now == jiffies_64))
		return;
	jiffies_64 = now;
	calc_global_load();
}

static DEFINE_PER_CPU(struct clock_event_device, clock_device);

int tick_program_event(ktime_t when, int force)
{
	fl_timer(raw_smp_processor_id(), when == KTIME_MAX ? FL_NEVER : max_t(u64, when, fl_clock.now));
	return 0;
}

fl_entry void fl_clock_event(void)
{
	hrtimer_interrupt(this_cpu_ptr(&clock_device));
}

DEFINE_PER_CPU(unsigned long, arch_freq_scale) = SCHED_CAPACITY_SCALE;
struct static_key_true cpu_cgrp_subsys_on_dfl_key = STATIC_KEY_TRUE_INIT;
bool static_key_initialized = true;
struct static_key_false timers_migration_enabled = { .key = { .enabled = ATOMIC_INIT(1) } };
const int sysctl_vals[] = { 0, 1, 2, 3, 4, 100, 200, 1000, 3000, INT_MAX, 65535, -1 };

#if HAVE_SCHED_TICK
#define the_tick sched_tick
#else
#define the_tick scheduler_tick
#endif

/* As update_process_times(). Timer wheel, RCU and POSIX timers are not there. */
fl_entry void fl_tick(void)
{
	update_jiffies();
	account_process_tick(current, !is_idle_task(current));
	hrtimer_run_queues();
	irq_work_tick();
	the_tick();
}

/* ---- the tick of an idle CPU ---- */
static DEFINE_PER_CPU(bool, tick_is_stopped);

bool tick_nohz_tick_stopped(void)
{
	return this_cpu_read(tick_is_stopped);
}

bool tick_nohz_tick_stopped_cpu(int cpu)
{
	return per_cpu(tick_is_stopped, cpu);
}

fl_entry void fl_tick_stopped(void)
{
	this_cpu_write(tick_is_stopped, true);
	nohz_balance_enter_idle(smp_processor_id());
}

fl_entry void fl_tick_restarted(void)
{
	this_cpu_write(tick_is_stopped, false);
}

/* cpuidle_idle_call() without a driver: later trees keep the tick until one has come that found the CPU idle. */
int fl_idle_keeps_tick(int got_tick)
{
	return HAVE_RETAIN_TICK && !got_tick;
}

fl_entry void fl_idle_begin(void)
{
#if HAVE_RUN_IDLE_BALANCE
	nohz_run_idle_balance(smp_processor_id());
#endif
}

fl_entry void fl_idle_state(fl_u64 exit_latency)
{
	struct cpuidle_state *state = NULL;

	if (exit_latency != FL_NEVER) {
		static DEFINE_PER_CPU(struct cpuidle_state, shown);

		state = this_cpu_ptr(&shown);
		state->exit_latency = div_u64(exit_latency, 1000);
		state->exit_latency_ns = exit_latency;
	}
	idle_set_state(this_rq(), state);
}
