// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What kernel/sched needs of the rest of the kernel, with the tree's own headers, in one unit: the headers are read once.
 * probes.h, made for each tree, says what the tree has; no line here asks for a version.
 */
#include <linux/version.h>
#include <uapi/linux/magic.h>
#include <generated/utsrelease.h>
#include "sched.h"
#include <linux/sched/init.h>
#include <linux/sched/hotplug.h>
#include <linux/sched/debug.h>
#include <linux/hrtimer.h>
#include <linux/clockchips.h>
#include <linux/cpuidle.h>
#include <linux/stop_machine.h>
#include <linux/irq_work.h>
#include <linux/interrupt.h>
#include <linux/smpboot.h>
#include <linux/cgroup.h>
#include <linux/nodemask.h>
#include <linux/topology.h>
#include <linux/task_work.h>
#include <linux/seq_file.h>
#include <linux/srcu.h>
#include <linux/bug.h>
#include <linux/utsname.h>
#include <uapi/linux/sched/types.h>
#include <asm/smp.h>
#include "probes.h"
#include "shim.h"

/* gcc reads `current` once a function: what calls in after a switch must not be inlined. */
#define fl_entry __attribute__((__noipa__))

static bool fl_booting = true;

#include "percpu.c"
#include "topology.c"
#include "clock.c"
#include "interrupt.c"
#include "stack.c"
#include "stop.c"
#include "process.c"
#include "group.c"
#include "task.c"
#include "event.c"
#include "settings.c"
#include "read.c"
#include "boot.c"
#include "table.c"
