/*
 * The peer of the benchmark "tracedat": libtracecmd reads a trace.dat, all CPUs in the order of time, and takes three
 * numbers of every sched_switch. Prints the number of events, seconds, and the most memory that it took in MiB.
 *
 * Usage: libtracecmd_loop FILE
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include <event-parse.h>
#include <trace-cmd/trace-cmd.h>

struct counts {
	struct tep_event *sched_switch;
	struct tep_format_field *prev_pid, *prev_state, *next_pid;
	unsigned long long events, switches, sum;
};

static int take(struct tracecmd_input *input, struct tep_record *record, int cpu, void *context)
{
	struct counts *counts = context;
	struct tep_handle *tep = tracecmd_get_tep(input);
	unsigned long long prev_pid, prev_state, next_pid;

	(void)cpu;
	counts->events++;
	if (tep_data_type(tep, record) != counts->sched_switch->id)
		return 0;
	tep_read_number_field(counts->prev_pid, record->data, &prev_pid);
	tep_read_number_field(counts->prev_state, record->data, &prev_state);
	tep_read_number_field(counts->next_pid, record->data, &next_pid);
	counts->sum += prev_pid ^ prev_state ^ next_pid ^ record->ts;
	counts->switches++;
	return 0;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **arguments)
{
	struct counts counts = { 0 };
	struct tracecmd_input *input;
	struct rusage usage;
	double start = now(), seconds;

	if (count != 2)
		return 2;
	input = tracecmd_open(arguments[1], TRACECMD_FL_LOAD_NO_PLUGINS);
	if (!input)
		return 1;
	counts.sched_switch = tep_find_event_by_name(tracecmd_get_tep(input), "sched", "sched_switch");
	if (!counts.sched_switch)
		return 1;
	counts.prev_pid = tep_find_any_field(counts.sched_switch, "prev_pid");
	counts.prev_state = tep_find_any_field(counts.sched_switch, "prev_state");
	counts.next_pid = tep_find_any_field(counts.sched_switch, "next_pid");
	if (!counts.prev_pid || !counts.prev_state || !counts.next_pid)
		return 1;
	if (tracecmd_iterate_events(input, NULL, 0, take, &counts) < 0)
		return 1;
	seconds = now() - start;
	tracecmd_close(input);
	getrusage(RUSAGE_SELF, &usage);
	printf("%llu %.6f %.3f\n", counts.events, seconds, usage.ru_maxrss / 1024.0);
	return counts.sum == 1;
}
