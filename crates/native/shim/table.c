// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of abi.h, at the image's entry address. */

#ifdef FL_DYNAMIC
#define MODEL "dynamic"
#elif defined(CONFIG_PREEMPT_LAZY)
#define MODEL "lazy"
#elif defined(CONFIG_PREEMPT)
#define MODEL "full"
#elif defined(CONFIG_PREEMPT_VOLUNTARY)
#define MODEL "voluntary"
#else
#define MODEL "none"
#endif
#if defined(CONFIG_PREEMPTION) && !defined(FL_DYNAMIC)
#define PREEMPTION "PREEMPTION=y\n"
#else
#define PREEMPTION ""
#endif
static const char configuration[] =
	"HZ=" __stringify(CONFIG_HZ) "\n" "PREEMPT=" MODEL "\n" PREEMPTION "NR_CPUS=" __stringify(CONFIG_NR_CPUS) "\n";

#if HAVE_WARN_TRAP
/* A WARN with a text: where it stands is printed, then it is a WARN as any. */
void fl_warn_trap(struct bug_entry *bug) __asm__("__SCT__WARN_trap");
void fl_warn_trap(struct bug_entry *bug)
{
	_printk("WARN at %s:%u\n", (const char *)&bug->file_disp + bug->file_disp, bug->line);
	WARN_ON(1);
}
#endif

/* For the loader's tests. */
void fl_test_bug(int is_warning)
{
	if (is_warning)
		WARN_ON(1);
	else
		BUG();
}

extern const char __start___bug_table[], __stop___bug_table[];
int fl_test(int what, fl_s64 n);

#define X(result, name, arguments) #result " " #name #arguments ";"
static const char callback_types[] = FL_CALLBACKS(X);
static const char entry_types[] = FL_ENTRIES(X);
#undef X
#define X(kind, tracepoint) #kind " "
static const char event_kinds[] = FL_EVENTS(X);
#undef X

struct fl_image fl_image = {
	.magic = FL_MAGIC,
	.size = sizeof(fl_image),
	.callbacks = callback_types,
	.entries = entry_types,
	.events = event_kinds,
	.release = UTS_RELEASE,
	.configuration = configuration,
	.clock = &fl_clock,
	.callback = &fl_callbacks,
	.event = fl_events,
	.nr_events = &fl_nr_events,
	.room = FL_ROOM,
	.wrgsbase = &fl_wrgsbase,
	.work = &fl_work,
	.bug_start = __start___bug_table,
	.bug_end = __stop___bug_table,
	.bug_size = sizeof(struct bug_entry),
	.bug_flags = offsetof(struct bug_entry, flags),
	.hz = HZ,
	.nr_cpus = NR_CPUS,
	.entry = {
#define X(result, name, arguments) fl_##name,
		FL_ENTRIES(X)
#undef X
	},
};
