/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Read before every unit of the tree: instructions that a process may not execute become operations on a word of ours. One thread
 * drives all CPUs, so nothing is locked against others: the prefix goes away, which is the dearest part of a spinlock.
 * Macros of the assembler win over mnemonics, so no line of the tree changes.
 */
/* Whatever selected it: keys are words that are read, not patched code. */
#undef CONFIG_JUMP_LABEL
#ifdef FL_DYNAMIC
/* Whoever may sleep gives way first: might_resched() of a dynamic kernel whose command line says nothing is that of voluntary ones. */
#define CONFIG_PREEMPT_VOLUNTARY_BUILD 1
#endif
#ifndef __ASSEMBLY__
asm(".ifndef fl_guard\n"
    ".set fl_guard, 1\n"
    ".macro cli\n\tmovl $0x46, fl_flags(%rip)\n.endm\n"
    ".macro sti\n\tmovl $0x246, fl_flags(%rip)\n.endm\n"
    ".macro pushf\n\tpushq fl_flags(%rip)\n.endm\n"
    ".macro pushfq\n\tpushq fl_flags(%rip)\n.endm\n"
    ".macro hlt\n\tcall fl_hlt\n.endm\n"
    ".macro lock instruction:vararg\n\t\\instruction\n.endm\n"
    ".endif\n");
#ifdef FL_CAPACITY_IS_OURS
/* The tree's x86 has CPUs of one capacity only. */
unsigned long fl_cpu_capacity(int cpu);
#define arch_scale_cpu_capacity fl_cpu_capacity
#endif
#endif
