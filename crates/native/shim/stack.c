// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kernel stacks. Each task has one, as in the kernel. A task that runs a program is parked at the end of user_loop(); when the
 * loader calls in, its stack carries the call, which may block and be switched away from, and goes on when the task runs again.
 * The loader's call returns when whoever runs on that CPU is back in user mode. Interrupts run on the loader's stack: they never
 * block.
 */

/* Saves the registers that a function keeps, and the stack pointer in *save; goes on where `load` was saved. */
static __attribute__((__naked__, __noinline__)) void swap_stacks(unsigned long *save, unsigned long load)
{
	asm volatile("push %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\t"
		     "mov %rsp, (%rdi)\n\tmov %rsi, %rsp\n\t"
		     "pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\tret");
}

static __used struct task_struct *switched(struct task_struct *prev, struct task_struct *next)
{
	int cpu = raw_smp_processor_id();

	current_of(cpu) = next;
	set_top_of_stack(cpu, (unsigned long)next->stack + THREAD_SIZE);
	return prev;
}

/* As arch/x86/entry/entry_64.S has it, without what guards against speculation. */
__attribute__((__naked__)) struct task_struct *__switch_to_asm(struct task_struct *prev, struct task_struct *next)
{
	asm volatile("push %%rbp\n\tpush %%rbx\n\tpush %%r12\n\tpush %%r13\n\tpush %%r14\n\tpush %%r15\n\t"
		     "mov %%rsp, %c0(%%rdi)\n\tmov %c0(%%rsi), %%rsp\n\t"
		     "pop %%r15\n\tpop %%r14\n\tpop %%r13\n\tpop %%r12\n\tpop %%rbx\n\tpop %%rbp\n\t"
		     "jmp switched" : : "i" (offsetof(struct task_struct, thread.sp)));
}

/* What the loader asks of the running task. */
static struct {
	long (*function)(long, long);
	long one, other, result;
	unsigned long number;
} call;

static fl_entry __used void user_loop(bool is_called)
{
	unsigned long number;
	long result;

	for (;;) {
		if (!is_called)
			swap_stacks(&current->thread.sp, fl_loader_sp);
		is_called = false;
		number = call.number;
		result = call.function(call.one, call.other);
		/* Another task may have come back instead, and the loader may have called again since. */
		if (number == call.number)
			call.result = result;
	}
}

/* Where a new task begins: rax is who ran before. Where an idle task begins: it is called. */
asm("fl_ret_from_fork:\n\tmov %rax, %rdi\n\tcall schedule_tail\n\txor %edi, %edi\n\tcall user_loop\n"
    "fl_idle_begins:\n\tmov $1, %edi\n\tcall user_loop\n");
extern char fl_ret_from_fork[], fl_idle_begins[];

static void stack_init(struct task_struct *p, const char *begins)
{
	unsigned long *top;

	p->stack = fl_alloc(THREAD_SIZE, PAGE_SIZE);
	*(unsigned long *)p->stack = STACK_END_MAGIC;
	/* Tops that lie in different lines of a cache: all stacks begin with a page. */
	top = p->stack + THREAD_SIZE - 16 - (unsigned long)p->journal_info % 16 * 256;
	*--top = (unsigned long)begins;
	p->thread.sp = (unsigned long)(top - 6);
}

/* Has the running task do it. In an interrupt the loader's own stack does. */
static fl_entry long on_task(long (*function)(long, long), long one, long other)
{
	if (in_interrupt())
		return function(one, other);
	call.function = function;
	call.one = one;
	call.other = other;
	call.result = 0;
	call.number++;
	swap_stacks(&fl_loader_sp, current->thread.sp);
	fl_loader_sp = 0;
	return call.result;
}

/* A kernel that can be preempted where its command line says, which says nothing (CONFIG_PREEMPT_DYNAMIC, voluntary): preempt_schedule()
 * is switched off. */
#ifdef FL_DYNAMIC
#define PREEMPTS 0
#else
#define PREEMPTS 1
#endif

/* One level of the preempt count is the shim's; events do not show it. */
static int whole;

/* For calls that never sleep: in a kernel that can be preempted, that waits for their end, when the loader asks need_resched(). There
 * it would come by itself: what a wakeup asks for is seen when its last lock is given back. */
static fl_entry long on_task_whole(long (*function)(long, long), long one, long other)
{
	long result;

	if (!IS_ENABLED(CONFIG_PREEMPTION) || !PREEMPTS || in_interrupt())
		return on_task(function, one, other);
	whole = 1;
	preempt_count_add(1);
	result = on_task(function, one, other);
	preempt_count_sub(1);
	whole = 0;
	return result;
}

#ifdef CONFIG_PREEMPTION
/* preempt_enable() is inlined where no register may be lost. */
#define SAVE_ALL "push %rax\n\tpush %rcx\n\tpush %rdx\n\tpush %rsi\n\tpush %rdi\n\tpush %r8\n\tpush %r9\n\tpush %r10\n\tpush %r11\n\t"
#define RESTORE_ALL "pop %r11\n\tpop %r10\n\tpop %r9\n\tpop %r8\n\tpop %rdi\n\tpop %rsi\n\tpop %rdx\n\tpop %rcx\n\tpop %rax\n\t"
#define THUNK(name) asm(".globl " #name "_thunk\n" #name "_thunk:\n\tpush %rbp\n\tmov %rsp, %rbp\n\t" SAVE_ALL \
			"call " #name "\n\t" RESTORE_ALL "pop %rbp\n\tret\n")
#ifdef FL_DYNAMIC
/* Built to be preempted, a tree has no such function. */
int __cond_resched(void)
{
	if (!should_resched(0))
		return 0;
	preempt_schedule();
	return 1;
}
#undef THUNK
#define THUNK(name) asm(".globl " #name "_thunk\n" #name "_thunk:\n\tret\n")
#endif
THUNK(preempt_schedule);
THUNK(preempt_schedule_notrace);
#endif

fl_entry void fl_enter(int cpu)
{
	set_cpu(cpu);
	update_jiffies();
}
