/* Loaded into QEMU before its own libraries, for two things.
 *
 * It lets no machine outlive the laboratory: when the thread that started QEMU ends, the kernel ends QEMU. FAIRLAB_PARENT
 * is its process, which may be gone before this is here.
 *
 * With FAIRLAB_LOCKSTEP set, it makes a run with `-accel tcg,thread=single -icount …,sleep=off` a function of its inputs.
 * There, one thread ("ALL CPUs/TCG") emulates all CPUs, and the main loop runs the timers of devices; virtual time stands
 * still while both wait for each other. What remains of the host in such a run is which of the two goes first when both
 * could. So the main loop may leave, and enter, its poll only while the thread of the CPUs is asleep. The third thread
 * reclaims memory, and interrupts the CPUs when it finds them in the way, at times of the host's: it never runs. What it
 * would have given back in a run is a few megabytes.
 *
 * It must not know what the machine is for.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int wait_function(pthread_cond_t *, pthread_mutex_t *);
typedef int wake_function(pthread_cond_t *);
typedef int poll_function(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static wait_function *next_wait;
static wake_function *next_signal, *next_broadcast;
static poll_function *next_poll;
static create_function *next_create;

static int lockstep;

/* 1 while the CPUs' thread sleeps; what it sleeps on; and whether there is such a thread yet. */
static _Atomic int cpus_asleep;
static _Atomic(pthread_cond_t *) cpus_condition;
static atomic_int cpus_exist;

__attribute__((constructor)) static void begin(void)
{
	const char *parent;

	/* The version matters: an older one of the same name takes another structure. */
	next_wait = (wait_function *)dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
	next_signal = (wake_function *)dlvsym(RTLD_NEXT, "pthread_cond_signal", "GLIBC_2.3.2");
	next_broadcast = (wake_function *)dlvsym(RTLD_NEXT, "pthread_cond_broadcast", "GLIBC_2.3.2");
	next_poll = (poll_function *)dlsym(RTLD_NEXT, "ppoll");
	next_create = (create_function *)dlsym(RTLD_NEXT, "pthread_create");
	lockstep = getenv("FAIRLAB_LOCKSTEP") != NULL;
	parent = getenv("FAIRLAB_PARENT");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (parent && getppid() != atoi(parent))
		_exit(1);
}

static int is_main(void)
{
	return (pid_t)syscall(SYS_gettid) == getpid();
}

/* A thread's name is set a moment after its start, so a "no" is asked again. */
static int runs_cpus(void)
{
	static __thread int known;
	char name[16] = "";

	if (!known && !is_main() && !pthread_getname_np(pthread_self(), name, sizeof(name)) && !strncmp(name, "ALL CPUs", 8)) {
		known = 1;
		atomic_store(&cpus_exist, 1);
	}
	return known;
}

/* Until the CPUs' thread sleeps. */
static void wait_for_turn(void)
{
	while (atomic_load(&cpus_exist) && !atomic_load(&cpus_asleep))
		syscall(SYS_futex, &cpus_asleep, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	int result;

	if (!lockstep || !runs_cpus())
		return next_wait(condition, mutex);
	atomic_store(&cpus_condition, condition);
	atomic_store(&cpus_asleep, 1);
	syscall(SYS_futex, &cpus_asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	result = next_wait(condition, mutex);
	atomic_store(&cpus_asleep, 0);
	return result;
}

/* From the moment somebody wakes it, the CPUs' thread counts as awake: it may take a while to find out itself. */
static void woken(pthread_cond_t *condition)
{
	if (atomic_load(&cpus_condition) == condition)
		atomic_store(&cpus_asleep, 0);
}

int pthread_cond_signal(pthread_cond_t *condition)
{
	woken(condition);
	return next_signal(condition);
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
	woken(condition);
	return next_broadcast(condition);
}

int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *signals)
{
	int result;

	if (!lockstep || !is_main())
		return next_poll(files, count, timeout, signals);
	wait_for_turn();
	result = next_poll(files, count, timeout, signals);
	wait_for_turn();
	return result;
}

/* What a compiler makes of ppoll() when it knows how long the array is. */
int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *signals, size_t length)
{
	(void)length;
	return ppoll(files, count, timeout, signals);
}

static void *never(void *argument)
{
	for (;;)
		pause();
	return argument;
}

/* QEMU's first thread, made before main(), is the one that reclaims memory. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
	static atomic_int made;

	if (!next_create)
		next_create = (create_function *)dlsym(RTLD_NEXT, "pthread_create");
	if (atomic_fetch_add(&made, 1) == 0 && (lockstep || getenv("FAIRLAB_LOCKSTEP")))
		start = never;
	return next_create(thread, attributes, start, argument);
}
