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

int arch_asym_cpu_priority(int cpu)
{
	return has_priorities ? machine->priority[cpu] : -cpu;
}

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
#ifdef CONFIG_NUMA
	node_reclaim_distance = machine->reclaim_distance;
#endif
#if NR_CPUS > 1 && !defined(CONFIG_FORCE_NR_CPUS)
	nr_cpu_ids = nr_cpus;
#endif
	__num_possible_cpus = nr_cpus;
	cpumask_set_cpu(0, &__cpu_online_mask);
	cpumask_set_cpu(0, &__cpu_active_mask);
	atomic_set(&__num_online_cpus, nr_cpus);
}
