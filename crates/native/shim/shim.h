/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the parts of the shim know of each other. Parts with the tree's headers are one unit, shim.c; plain.c and image.c read no
 * header of the tree.
 */
#ifndef FL_SHIM_H
#define FL_SHIM_H
#include "abi.h"

/* image.c: words of the table, and callbacks, made on the loader's stack */
extern struct fl_clock fl_clock;
extern unsigned long fl_flags;               /* the interrupt flag, as pushf would give it */
extern unsigned long fl_loader_sp;           /* where the loader waits while a task's stack is in use, or 0 */
extern unsigned int fl_wrgsbase;
extern unsigned int fl_work;
extern struct fl_callbacks fl_callbacks;
#define FL_ROOM 1024
extern struct fl_event fl_events[FL_ROOM];
extern unsigned int fl_nr_events;
void *fl_alloc(unsigned long size, unsigned long align);
void fl_free(void *memory);
void fl_write(const char *text, unsigned long bytes);
void fl_die(const char *what, const char *name) __attribute__((noreturn));
void fl_interrupt(int cpu, int ipi);
void fl_timer(int cpu, fl_u64 when);
void fl_speed(int cpu);
void fl_setgs(unsigned long base);
struct fl_event *fl_next_event(void);

/* shim.c, for plain.c */
void *fl_percpu_alloc(unsigned long size, unsigned long align);
void fl_percpu_free(void *memory);
void fl_add_tunable(const char *name, void *value, int bytes);
void fl_add_sysctls(void *table, unsigned long entries);
void fl_add_softirq(int number, void *action);
void fl_raise_softirq(unsigned int number);
void fl_keep_seq(const char *name, const void *operations);
extern const int fl_hz;

/* plain.c */
int fl_run_rcu(void);                        /* whether something is left */
#endif
