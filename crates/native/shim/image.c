// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What stands where libc and a program would: the near ends of callbacks, four functions of memory. It reads no header of the tree.
 */
#include "shim.h"

struct fl_clock fl_clock;
unsigned long fl_flags = 0x246;
unsigned long fl_loader_sp;
unsigned int fl_wrgsbase;
unsigned int fl_work;
struct fl_callbacks fl_callbacks;

/* Calls the loader on its own stack: a task's is small, and aligned to 8 only. */
long fl_call_out(fl_u64 one, fl_u64 other, void *function);
asm(".text\nfl_call_out:\n\tpush %rbp\n\tmov %rsp, %rbp\n\tmov %rdx, %rax\n\t"
    "mov fl_loader_sp(%rip), %rdx\n\ttest %rdx, %rdx\n\tcmovnz %rdx, %rsp\n\tand $-16, %rsp\n\t"
    "call *%rax\n\tmov %rbp, %rsp\n\tpop %rbp\n\tret\n");

void *fl_alloc(unsigned long size, unsigned long align)
{
	return (void *)fl_call_out(size, align, fl_callbacks.alloc);
}

void fl_free(void *memory)
{
	if (memory)
		fl_call_out((fl_u64)memory, 0, fl_callbacks.free);
}

void fl_write(const char *text, unsigned long bytes)
{
	fl_call_out((fl_u64)text, bytes, fl_callbacks.write);
}

void fl_die(const char *what, const char *name)
{
	fl_call_out((fl_u64)what, (fl_u64)name, fl_callbacks.die);
	for (;;)
		asm volatile("int3");
}

void fl_interrupt(int cpu, int ipi)
{
	fl_call_out(cpu, ipi, fl_callbacks.interrupt);
}

void fl_timer(int cpu, fl_u64 when)
{
	fl_call_out(cpu, when, fl_callbacks.timer);
}

void fl_speed(int cpu)
{
	fl_call_out(cpu, 0, fl_callbacks.speed);
}

void fl_setgs(unsigned long base)
{
	if (fl_wrgsbase)
		asm volatile("wrgsbase %0" : : "r" (base) : "memory");
	else
		fl_call_out(base, 0, fl_callbacks.setgs);
}

/* ---- events ---- */
struct fl_event fl_events[FL_ROOM];
unsigned int fl_nr_events;

struct fl_event *fl_next_event(void)
{
	if (fl_nr_events == FL_ROOM)
		fl_call_out(0, 0, fl_callbacks.events_full);
	return &fl_events[fl_nr_events++];
}

/* ---- memory ---- */
void *memcpy(void *to, const void *from, unsigned long bytes)
{
	void *result = to;
	unsigned long words = bytes >> 3;

	asm volatile("rep movsq\n\tmov %3, %2\n\trep movsb" : "+D" (to), "+S" (from), "+c" (words) : "r" (bytes & 7) : "memory");
	return result;
}

void *memset(void *to, int byte, unsigned long bytes)
{
	void *result = to;

	asm volatile("rep stosb" : "+D" (to), "+c" (bytes) : "a" (byte) : "memory");
	return result;
}

void *memmove(void *to, const void *from, unsigned long bytes)
{
	if ((unsigned long)to - (unsigned long)from >= bytes)
		return memcpy(to, from, bytes);
	while (bytes--)
		((char *)to)[bytes] = ((const char *)from)[bytes];
	return to;
}

int memcmp(const void *one, const void *other, unsigned long bytes)
{
	const unsigned char *a = one, *b = other;

	for (; bytes--; a++, b++)
		if (*a != *b)
			return *a - *b;
	return 0;
}

/* ---- for the loader's tests ---- */
void panic(const char *format, ...);
void fl_test_stub(void);                     /* nobody defines it */
void fl_test_bug(int is_warning);            /* table.c */

int fl_test(int what, fl_s64 n)
{
	switch (what) {
	case FL_TEST_WARN:
	case FL_TEST_BUG:
		fl_test_bug(what == FL_TEST_WARN);
		break;
	case FL_TEST_NULL:
		*(volatile int *)0 = n;
		break;
	case FL_TEST_LEAK:
		for (;;)
			fl_alloc(n, 16);
	case FL_TEST_LOOP:
		for (;;)
			asm volatile("" : : : "memory");
	case FL_TEST_STUB:
		fl_test_stub();
		break;
	case FL_TEST_PING:
		while (n-- > 0)
			fl_call_out(0, 0, fl_callbacks.ping);
		return 0;
	case FL_TEST_PANIC:
		panic("a test of %d", (int)n);
	}
	return n + 1;
}
