// SPDX-License-Identifier: GPL-2.0-or-later
/* The machine, as masks and nodes that scheduling domains are built from, and what its CPUs can do. */

struct cpumask __cpu_possible_mask, __cpu_online_mask, __cpu_present_mask, __cpu_active_mask, __cpu_dying_mask, __cpu_enabled_mask;
atomic_t __num_online_cpus;
unsigned int __num_possible_cpus;
DEFINE_PER_CPU_READ_MOSTLY(cpumask_var_t, cpu_sibling_map);
DEFINE_PER_CPU_READ_MOSTLY(cpumask_var_t, cpu_core_map);
static struct cpumask llc_map[NR_CPUS], cluster_map[NR_CPUS];
static const struct fl_machine *machine;
static unsigned int nr_cpus;
static bool has_priorities;
#if defined(CONFIG_HOTPLUG_SMT) && !defined(cpu_smt_num_threads)
unsigned int cpu_smt_num_threads = 1;
#endif

#ifdef CONFIG_NUMA
DEFINE_PER_CPU(int, numa_node);
unsigned int nr_node_ids = 1;
nodemask_t node_states[NR_NODE_STATES];
cpumask_var_t node_to_cpumask_map[MAX_NUMNODES];
int node_reclaim_distance = RECLAIM_DISTANCE;

int __node_distance(int one, int other)
{
	if ((unsigned int)one >= machine->nr_nodes || (unsigned int)other >= machine->nr_nodes)
		return one == other ? LOCAL_DISTANCE : REMOTE_DISTANCE;
	return machine->distance[one * machine->nr_nodes + other];
}
#endif

const struct cpumask *cpu_coregroup_mask(int cpu)
{
	return &llc_map[cpu];
}

const struct cpumask *cpu_clustergroup_mask(int cpu)
{
	return &cluster_map[cpu];
}

/* cpumask_of(): row 1 + bit, shifted to its word */
#define ROW(bit) [(bit) + 1][0] = 1UL << (bit)
#define ROWS2(bit) ROW(bit), ROW((bit) + 1)
#define ROWS4(bit) ROWS2(bit), ROWS2((bit) + 2)
#define ROWS8(bit) ROWS4(bit), ROWS4((bit) + 4)
const unsigned long cpu_bit_bitmap[BITS_PER_LONG + 1][BITS_TO_LONGS(NR_CPUS)] = {
	ROWS8(0), ROWS8(8), ROWS8(16), ROWS8(24), ROWS8(32), ROWS8(40), ROWS8(48), ROWS8(56)
};
const DECLARE_BITMAP(cpu_all_bits, NR_CPUS) = CPU_BITS_ALL;

static unsigned long capacity_of_machine(int cpu)
{
	return machine ? machine->capacity[cpu] : SCHED_CAPACITY_SCALE;
}

/* One of the two is called: which, the tree decides. */
unsigned long fl_cpu_capacity(int cpu)
{
	return capacity_of_machine(cpu);
}
#ifndef FL_CAPACITY_IS_OURS
unsigned long arch_scale_cpu_capacity(int cpu)
{
	return capacity_of_machine(cpu);
}
#endif

/* As sched_set_itmt_core_prio(): what a thread has of its core's priority. */
int arch_asym_cpu_priority(int cpu)
{
	unsigned int place = 1, threads = cpumask_weight(per_cpu(cpu_sibling_map, cpu)), other;

	if (!has_priorities)
		return -cpu;
	for_each_cpu(other, per_cpu(cpu_sibling_map, cpu))
		place += other < cpu;
	if (HAVE_ITMT_SQUARE)
		return machine->priority[cpu] * threads / (place * place);
	return HAVE_ITMT_DIVIDED ? machine->priority[cpu] * threads / place : machine->priority[cpu];
}

/* ---- levels as arch/x86 has them where some CPUs are preferred; where none is, kernel/sched's own will do ---- */
static int packing_smt_flags(void)
{
	return cpu_smt_flags() | (HAVE_ITMT_SMT ? SD_ASYM_PACKING : 0);
}

#ifdef CONFIG_SCHED_CLUSTER
static int packing_cluster_flags(void)
{
	return cpu_cluster_flags() | SD_ASYM_PACKING;
}
#endif

static int packing_core_flags(void)
{
	return cpu_core_flags() | SD_ASYM_PACKING;
}

static int packing_package_flags(void)
{
	return HAVE_ITMT_PKG ? SD_ASYM_PACKING : 0;
}

#ifdef SDTL_INIT
#define LEVEL(mask, flags, name) SDTL_INIT(tl_##mask##_mask, flags, name)
#else
#define tl_smt_mask cpu_smt_mask
#define tl_cls_mask cpu_clustergroup_mask
#define tl_mc_mask cpu_coregroup_mask
#define tl_pkg_mask cpu_cpu_mask
#define LEVEL(mask, flags, name) { tl_##mask##_mask, flags, SD_INIT_NAME(name) }
#endif

static struct sched_domain_topology_level packing_topology[] = {
#ifdef CONFIG_SCHED_SMT
	LEVEL(smt, packing_smt_flags, SMT),
#endif
#ifdef CONFIG_SCHED_CLUSTER
	LEVEL(cls, packing_cluster_flags, CLS),
#endif
#ifdef CONFIG_SCHED_MC
	LEVEL(mc, packing_core_flags, MC),
#endif
#if HAVE_PKG_LEVEL
	LEVEL(pkg, packing_package_flags, PKG),
#else
	LEVEL(pkg, packing_package_flags, DIE),
#endif
	{ NULL, },
};

static void join(int cpu, int other)
{
	if (machine->core[cpu] == machine->core[other])
		cpumask_set_cpu(other, per_cpu(cpu_sibling_map, cpu));
	if (machine->cluster[cpu] == machine->cluster[other])
		cpumask_set_cpu(other, &cluster_map[cpu]);
	if (machine->llc[cpu] == machine->llc[other])
		cpumask_set_cpu(other, &llc_map[cpu]);
	if (machine->package[cpu] == machine->package[other])
		cpumask_set_cpu(other, per_cpu(cpu_core_map, cpu));
}

#ifdef CONFIG_NUMA
static void node_init(int cpu)
{
	unsigned int node = machine->node[cpu];

	if (!node_isset(node, node_states[N_ONLINE]))
		zalloc_cpumask_var(&node_to_cpumask_map[node], GFP_KERNEL);
	per_cpu(numa_node, cpu) = node;
	cpumask_set_cpu(cpu, node_to_cpumask_map[node]);
	node_set(node, node_states[N_ONLINE]);
	node_set(node, node_states[N_POSSIBLE]);
	node_set(node, node_states[N_CPU]);
	node_set(node, node_states[N_MEMORY]);
	nr_node_ids = max(nr_node_ids, node + 1);
}
#else
static void node_init(int cpu) { }
#endif

static void topology_init(const struct fl_machine *given)
{
	unsigned int cpu, other;

	machine = given;
	nr_cpus = machine->nr_cpus;
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		zalloc_cpumask_var(&per_cpu(cpu_sibling_map, cpu), GFP_KERNEL);
		zalloc_cpumask_var(&per_cpu(cpu_core_map, cpu), GFP_KERNEL);
		for (other = 0; other < nr_cpus; other++)
			join(cpu, other);
		node_init(cpu);
		cpumask_set_cpu(cpu, &__cpu_possible_mask);
		cpumask_set_cpu(cpu, &__cpu_present_mask);
		has_priorities |= machine->priority[cpu] != 0;
	}
	if (has_priorities)
		set_sched_topology(packing_topology);
#ifdef CONFIG_NUMA
	node_reclaim_distance = machine->reclaim_distance;
#endif
#if NR_CPUS > 1 && !defined(CONFIG_FORCE_NR_CPUS)
	nr_cpu_ids = nr_cpus;
#endif
#if defined(CONFIG_HOTPLUG_SMT) && !defined(cpu_smt_num_threads)
	for (cpu = 0; cpu < nr_cpus; cpu++)
		cpu_smt_num_threads = max(cpu_smt_num_threads, cpumask_weight(per_cpu(cpu_sibling_map, cpu)));
#endif
	__num_possible_cpus = nr_cpus;
	cpumask_set_cpu(0, &__cpu_online_mask);
	cpumask_set_cpu(0, &__cpu_active_mask);
	atomic_set(&__num_online_cpus, nr_cpus);
}
