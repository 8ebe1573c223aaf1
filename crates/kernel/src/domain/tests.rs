//! Scheduling domains of small machines as text; and each change of how they are built makes a difference on one of them.

use std::fmt::Write;

use fairlab_event::Cpu;

use super::*;
use crate::Generation;
use crate::generation::{ChangeEffect, LOG};
use crate::topology::{CpuPlace, Platform, SmtNumbering, Topology};

fn domains(kernel: &str, topology: &Topology) -> SchedDomains {
    let generation = kernel.parse::<Generation>().expect("a kernel");
    SchedDomains::new(topology, &generation.domain)
}

/// A CPU's domains: name, span, and each group as `span/balance CPU=capacity`, in the order of the list.
fn draw(domains: &SchedDomains, cpu: u32) -> String {
    let mut text = String::new();
    for id in domains.ids_of(Cpu(cpu)) {
        let domain = domains.domain(id);
        let _ = write!(text, "{} {}:", domain.name, domain.span);
        for group in domains.groups(id) {
            let capacity = domains.capacity_of_group(group);
            let span = domains.group(group).span;
            let _ = write!(text, " {span}/{}={}", capacity.balance_cpu, capacity.capacity);
        }
        text.push('\n');
    }
    text
}

fn two_sockets() -> Topology {
    Topology::regular(2, 1, 2, 2, SmtNumbering::Spread).expect("a machine")
}

fn ring_of_nodes(distances: &[[u32; 4]; 4]) -> Topology {
    let plain = Topology::regular(4, 1, 1, 1, SmtNumbering::Adjacent).expect("a machine");
    plain.with_distances(distances.iter().map(|row| row.to_vec()).collect()).expect("distances")
}

const RING: [[u32; 4]; 4] = [[10, 20, 30, 20], [20, 10, 20, 30], [30, 20, 10, 20], [20, 30, 20, 10]];
const LINE: [[u32; 4]; 4] = [[10, 20, 30, 40], [20, 10, 20, 30], [30, 20, 10, 20], [40, 30, 20, 10]];

fn big_little() -> Topology {
    let plain = Topology::regular(1, 2, 4, 1, SmtNumbering::Adjacent).expect("a machine");
    let capacities = [400, 400, 400, 400, 1024, 1024, 1024, 1024];
    plain.with_capacities(&capacities).expect("capacities").of_platform(Platform::Arm64)
}

#[test]
fn each_cpu_sees_its_own_group_first() {
    let domains = domains("v6.6", &two_sockets());
    assert_eq!(
        draw(&domains, 1),
        "SMT 1,5: 1/1=1024 5/5=1024\nMC 0-1,4-5: 1,5/1=2048 0,4/0=2048\nNUMA 0-7: 0-1,4-5/0=4096 2-3,6-7/2=4096\n"
    );
    assert_eq!(
        draw(&domains, 6),
        "SMT 2,6: 6/6=1024 2/2=1024\nMC 2-3,6-7: 2,6/2=2048 3,7/3=2048\nNUMA 0-7: 2-3,6-7/2=4096 0-1,4-5/0=4096\n"
    );
    let cpu = domains.of_cpu(Cpu(6));
    assert_eq!((cpu.sd_llc_size, cpu.sd_llc_id), (4, 2));
    assert_eq!(cpu.sd_numa.map(|id| domains.domain(id).name), Some("NUMA"));
    assert!(domains.cpus_share_cache(Cpu(2), Cpu(7)) && !domains.cpus_share_cache(Cpu(1), Cpu(2)));
    assert_eq!(domains.shared(cpu.sd_llc_shared.expect("a cache")).nr_busy_cpus, 4);
}

#[test]
fn groups_are_shared_by_all_points_of_view() {
    let mut domains = domains("v6.6", &two_sockets());
    let top = |domains: &SchedDomains, cpu: u32| domains.ids_of(Cpu(cpu)).next_back().expect("a domain");
    let (of_0, of_2) = (top(&domains, 0), top(&domains, 2));
    let local = domains.local_group(of_0);
    domains.capacity_of_group_mut(local).imbalance = true;
    let seen = domains.groups(of_2).map(|group| domains.capacity_of_group(group).imbalance);
    assert_eq!(seen.collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_domain_of_one_level_and_a_lone_cpu() {
    let four = Topology::regular(1, 1, 4, 1, SmtNumbering::Adjacent).expect("a machine");
    assert_eq!(draw(&domains("v5.10", &four), 2), "MC 0-3: 2/2=1024 3/3=1024 0/0=1024 1/1=1024\n");
    let one = Topology::regular(1, 1, 1, 1, SmtNumbering::Adjacent).expect("a machine");
    let alone = domains("v5.10", &one);
    assert!(alone.domains_of(Cpu(0)).is_empty());
    assert_eq!((alone.of_cpu(Cpu(0)).base, alone.of_cpu(Cpu(0)).sd_llc_size), (None, 1));
}

/// kernel/sched/topology.c describes both machines, with their groups.
#[test]
fn groups_of_nodes_overlap_as_the_kernel_says() {
    let ring = domains("v6.6", &ring_of_nodes(&RING));
    assert_eq!(draw(&ring, 0), "NUMA 0-1,3: 0/0=1024 1/1=1024 3/3=1024\nNUMA 0-3: 0-1,3/0=3072 1-3/2=3072\n");
    assert_eq!(draw(&ring, 1), "NUMA 0-2: 1/1=1024 2/2=1024 0/0=1024\nNUMA 0-3: 0-2/1=3072 0,2-3/3=3072\n");
    let line = ring_of_nodes(&LINE);
    let top = |kernel: &str, cpu: u32| draw(&domains(kernel, &line), cpu).lines().nth(1).map(str::to_string);
    assert_eq!(top("v5.12", 0).as_deref(), Some("NUMA 0-2: 0-1/0=2048 1-3/2=3072"), "beyond its domain");
    assert_eq!(top("v5.13", 0).as_deref(), Some("NUMA 0-2: 0-1/0=2048 2/2=1024"));
}

#[test]
fn distant_nodes_exchange_no_new_tasks() {
    let flags = |kernel: &str, distance: u32, reclaim: u32| {
        let distances = vec![vec![10, distance], vec![distance, 10]];
        let topology =
            two_sockets().with_distances(distances).expect("distances").with_reclaim_distance(reclaim);
        domains(kernel, &topology).domains_of(Cpu(0)).last().expect("a domain").flags
    };
    assert!(flags("v6.6", 30, 30).has(SdFlags::BALANCE_FORK));
    assert!(!flags("v6.6", 31, 30).has(SdFlags::BALANCE_FORK | SdFlags::BALANCE_EXEC | SdFlags::WAKE_AFFINE));
    assert!(flags("v5.4", 32, 32).has(SdFlags::WAKE_AFFINE));
    assert!(!flags("v5.3", 32, 32).has(SdFlags::WAKE_AFFINE), "it could not be changed");
}

#[test]
fn one_node_may_run_some_tasks_before_another_helps() {
    let allowed = |kernel: &str, llcs: u32| {
        let topology = Topology::regular(2, llcs, 16 / llcs, 2, SmtNumbering::Spread).expect("a machine");
        domains(kernel, &topology)
            .domains_of(Cpu(0))
            .iter()
            .map(|domain| domain.imb_numa_nr)
            .collect::<Vec<_>>()
    };
    assert_eq!(allowed("v5.17", 1), [0, 0, 0]);
    assert_eq!(allowed("v5.18", 1), [0, 0, 8], "a quarter of a node's 32");
    assert_eq!(allowed("v6.1", 1), [0, 0, 4]);
    assert_eq!(allowed("v6.1", 4), [0, 0, 4, 4]);
}

#[test]
fn big_cpus_are_told_from_little_ones() {
    let machine = big_little();
    let flags = |kernel: &str| {
        let domains = domains(kernel, &machine);
        let of_0 = domains.domains_of(Cpu(0));
        assert_eq!(of_0.len(), 2, "{kernel}");
        (of_0[0].flags, of_0[1].flags, domains.of_cpu(Cpu(0)).sd_asym_cpucapacity.is_some())
    };
    let (cache, package, known) = flags("v4.19");
    assert!(!known && cache.has(SdFlags::PREFER_SIBLING) && !package.has(SdFlags::ASYM_CPUCAPACITY));
    let (cache, package, known) = flags("v5.4");
    assert!(known && !cache.has(SdFlags::PREFER_SIBLING) && package.has(SdFlags::ASYM_CPUCAPACITY));
    assert!(cache.has(SdFlags::BALANCE_WAKE) && !flags("v5.7").0.has(SdFlags::BALANCE_WAKE));
    assert!(flags("v5.14").1.has(SdFlags::ASYM_CPUCAPACITY_FULL));
    let domains = domains("v5.14", &machine);
    assert_eq!(draw(&domains, 5).lines().last(), Some("DIE 0-7: 4-7/4=4096 0-3/0=1600"));
    assert_eq!(domains.root().max_cpu_capacity, 1024);
}

#[test]
fn threads_shared_a_little_more_than_one_cpu() {
    assert_eq!(draw(&domains("v4.20", &two_sockets()), 0).lines().next(), Some("SMT 0,4: 0/0=589 4/4=589"));
    assert_eq!(draw(&domains("v5.0", &two_sockets()), 0).lines().next(), Some("SMT 0,4: 0/0=1024 4/4=1024"));
}

#[test]
fn clusters_are_a_level_where_they_are_larger_than_cores() {
    let plain = Topology::regular(1, 1, 8, 1, SmtNumbering::Adjacent).expect("a machine");
    let clusters = plain.with_clusters(&[0, 0, 0, 0, 1, 1, 1, 1]).expect("clusters");
    assert_eq!(draw(&domains("v5.15", &clusters), 0).lines().count(), 1);
    let with = domains("v6.7", &clusters);
    assert_eq!(
        draw(&with, 5),
        "CLS 4-7: 5/5=1024 6/6=1024 7/7=1024 4/4=1024\nMC 0-7: 4-7/4=4096 0-3/0=4096\n"
    );
    assert!(with.cpus_share_resources(Cpu(4), Cpu(7)) && !with.cpus_share_resources(Cpu(3), Cpu(4)));
    assert!(domains("v6.6", &clusters).cpus_share_resources(Cpu(3), Cpu(4)), "clusters had no flag");
}

#[test]
fn the_last_cpu_links_the_list() {
    // From CPU 0 the walk meets cores 0, 1, 2; from CPU 5, which is last, core 1 comes first, then 0, then 2.
    let cores = [0, 0, 1, 2, 2, 1];
    let places = cores.iter().map(|&core| CpuPlace { core, llc: 0, node: 0 }).collect();
    let domains = domains("v6.6", &Topology::new(places).expect("a machine"));
    let list = |cpu: u32| draw(&domains, cpu).lines().nth(1).map(str::to_string);
    assert_eq!(list(5).as_deref(), Some("MC 0-5: 2,5/2=2048 0-1/0=2048 3-4/3=2048"));
    assert_eq!(list(0).as_deref(), Some("MC 0-5: 0-1/0=2048 3-4/3=2048 2,5/2=2048"));
}

/// Machines among which every change of how domains are built makes a difference.
fn zoo() -> Vec<Topology> {
    let regular = |nodes, llcs, cores, threads| {
        Topology::regular(nodes, llcs, cores, threads, SmtNumbering::Spread).expect("a machine")
    };
    // Node 0 is in the middle and does not see the greatest distance; node 2 has no neighbour at 20.
    let star = [[10, 20, 30, 20], [20, 10, 40, 30], [30, 40, 10, 30], [20, 30, 30, 10]];
    let star = star.iter().map(|row| row.to_vec()).collect::<Vec<_>>();
    let three = regular(1, 3, 2, 1).with_capacities(&[300, 300, 600, 600, 1024, 1024]).expect("capacities");
    let uneven = regular(4, 1, 1, 1).with_capacities(&[1024, 1024, 1024, 512]).expect("capacities");
    vec![
        regular(2, 2, 4, 2).with_reclaim_distance(15),
        regular(2, 1, 4, 1),
        regular(1, 1, 8, 1).with_clusters(&[0, 0, 0, 0, 1, 1, 1, 1]).expect("clusters"),
        ring_of_nodes(&RING),
        ring_of_nodes(&LINE),
        regular(4, 1, 2, 1).with_distances(star).expect("distances"),
        uneven.with_distances(LINE.iter().map(|row| row.to_vec()).collect()).expect("distances"),
        big_little(),
        three,
        regular(1, 1, 2, 2).with_priorities(&[2, 1, 2, 1]).expect("priorities"),
    ]
}

/// Everything that the rules decide about a machine.
fn everything(domains: &SchedDomains) -> String {
    let mut text = format!("{} {:?}\n", domains.files_folder(), domains.rules.schedstat_layout);
    for (cpu, looked_up) in domains.cpus.iter().enumerate() {
        let _ = writeln!(text, "{looked_up:?} {}", domains.cpu_capacity_orig[cpu]);
        for id in domains.ids_of(Cpu(cpu as u32)) {
            let groups =
                domains.groups(id).map(|group| (domains.group(group), domains.capacity_of_group(group)));
            let _ = writeln!(text, "{:?} {:?}", domains.domain(id), groups.collect::<Vec<_>>());
            let _ = writeln!(text, "{:?}", domains.files(id));
        }
    }
    text
}

#[test]
fn every_change_shows_on_some_machine() {
    let machines = zoo();
    // Preferences among threads show in balancing.
    let is_domain = |effect: &ChangeEffect| match effect {
        ChangeEffect::Domain(effect) => !matches!(effect, DomainEffect::SiblingPriority(_)),
        _ => false,
    };
    for change in LOG.iter().filter(|change| change.effects.iter().any(is_domain)) {
        let after = change.release.expect("merged").to_string();
        let (with, without) = (after.clone(), format!("{after}-{}", change.name));
        let shows = machines
            .iter()
            .any(|machine| everything(&domains(&with, machine)) != everything(&domains(&without, machine)));
        assert!(shows, "{}: {}", change.name, change.subject);
    }
}

#[test]
fn what_is_built_is_consistent_on_every_machine_and_kernel() {
    for machine in zoo() {
        for release in Generation::releases() {
            assert_consistent(&machine, &domains(&release.to_string(), &machine), &release.to_string());
        }
    }
}

/// Any machine that can be described has domains, under any kernel: lop-sided caches, nodes without order, distances that
/// differ by direction, capacities at will.
#[test]
fn any_machine_has_domains() {
    let releases = Generation::releases();
    for seed in 0..300u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let machine = random_machine(&mut dice);
        let release = releases[dice.below(releases.len() as u64) as usize].to_string();
        assert_consistent(&machine, &domains(&release, &machine), &format!("seed {seed}, {release}"));
    }
}

/// Numbers from a seed (xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn random_machine(dice: &mut Dice) -> Topology {
    let (nodes, llcs) = (dice.below(5) + 1, dice.below(2) + 1);
    let (mut places, mut core) = (Vec::new(), 0);
    for llc in 0..nodes * llcs {
        for _ in 0..=dice.below(3) {
            for _ in 0..=dice.below(2) {
                places.push(CpuPlace { core, llc: llc as u32, node: (llc / llcs) as u32 });
            }
            core += 1;
        }
    }
    // CPUs are numbered in no order.
    for at in (1..places.len()).rev() {
        places.swap(at, dice.below(at as u64 + 1) as usize);
    }
    let capacity_of_core = (0..core).map(|_| 256 * (dice.below(4) as u32 + 1)).collect::<Vec<_>>();
    let capacities = places.iter().map(|place| capacity_of_core[place.core as usize]).collect::<Vec<_>>();
    let by_direction = dice.below(3) == 0;
    let pool = (0..nodes * nodes).map(|_| 15 + 5 * dice.below(6) as u32).collect::<Vec<_>>();
    let distance = |from: u64, to: u64| match (from == to, by_direction) {
        (true, _) => 10,
        (false, true) => pool[(from * nodes + to) as usize],
        (false, false) => pool[(from.min(to) * nodes + from.max(to)) as usize],
    };
    let distances = (0..nodes).map(|from| (0..nodes).map(|to| distance(from, to)).collect()).collect();
    let machine = Topology::new(places).expect("a machine").with_distances(distances).expect("distances");
    match dice.below(2) {
        0 => machine,
        _ => machine.with_capacities(&capacities).expect("capacities"),
    }
}

fn assert_consistent(machine: &Topology, domains: &SchedDomains, what: &str) {
    // Kernels warn where distances differ by direction, and to v5.11 took node 0's for all that there are; then some
    // CPUs are in nobody's group.
    let nodes = 0..machine.nr_nodes() as u32;
    let same_back =
        |from: u32| nodes.clone().all(|to| machine.distance(from, to) == machine.distance(to, from));
    let is_sane = nodes.clone().all(same_back) && domains.rules.numa_levels == NumaLevels::All;
    for cpu in machine.cpus() {
        let mut below = CpuMask::single(cpu);
        for id in domains.ids_of(cpu) {
            let domain = domains.domain(id);
            assert!(domain.span.contains_all(&below) && domain.cpu == cpu, "{what}");
            assert_eq!(domain.span.weight() as u32, domain.span_weight, "{what}");
            below = domain.span;
            let local = domains.group(domains.local_group(id)).span;
            assert!(local.contains(cpu), "{what}: CPU {cpu} is in its own group");
            assert_eq!(domains.groups(id).next(), Some(domains.local_group(id)), "{what}");
            let covered = domains
                .groups(id)
                .fold(CpuMask::EMPTY, |covered, group| covered.or(&domains.group(group).span));
            assert!(
                !is_sane || covered.contains_all(&domain.span),
                "{what}: groups of CPU {cpu} cover {covered} of {}",
                domain.span
            );
            for group in domains.groups(id) {
                let (group, capacity) = (domains.group(group), domains.capacity_of_group(group));
                assert!(group.weight > 0 && group.cores <= group.weight, "{what}");
                assert!(capacity.capacity > 0 && capacity.min_capacity <= capacity.max_capacity, "{what}");
            }
            let up = domain.parent.map(|parent| domains.domain(parent).child);
            assert!(up.is_none_or(|child| child == Some(id)), "{what}");
        }
        let shares = domains.of_cpu(cpu).sd_llc_size;
        assert_eq!(shares as usize, machine.llc_size(cpu), "{what}: the cache of CPU {cpu}");
    }
}

/// What the domains of CPU 0 are balanced by: intervals, what is too much out of balance, load indexes, flags.
fn figures(kernel: &str, topology: &Topology) -> String {
    let mut text = String::new();
    for domain in domains(kernel, topology).domains_of(Cpu(0)) {
        let (balance, indexes) = (&domain.balance, domain.load_index);
        assert_eq!((balance.newidle_success, balance.newidle_call, balance.newidle_ratio), (256, 512, 512));
        let _ = writeln!(
            text,
            "{} {}-{} now {} busy x{}, {}%, nice {}, indexes {}/{}: {}",
            domain.name,
            domain.min_interval,
            domain.max_interval,
            balance.balance_interval,
            domain.busy_factor,
            domain.imbalance_pct,
            domain.cache_nice_tries,
            indexes.busy,
            indexes.idle,
            domain.flags.names().map(|flag| flag.trim_start_matches("SD_")).collect::<Vec<_>>().join(" "),
        );
    }
    text
}

/// The figures of `sd_init()`, kernel/sched/topology.c, at v5.2, v5.9, v6.6 and v6.19.
#[test]
fn domains_begin_with_the_figures_of_their_level() {
    const SEARCHED: &str = "BALANCE_NEWIDLE BALANCE_EXEC BALANCE_FORK WAKE_AFFINE";
    let expected = |load_balance: &str, busy: u32, above_cache: u32, overlap: &str| {
        let flags = format!("{load_balance}{SEARCHED}");
        format!(
            "SMT 2-4 now 2 busy x{busy}, 110%, nice 0, indexes 0/0: {flags} SHARE_CPUCAPACITY SHARE_LLC PREFER_SIBLING\n\
             MC 4-8 now 4 busy x{busy}, 117%, nice 1, indexes 2/0: {flags} SHARE_LLC PREFER_SIBLING\n\
             NUMA 8-16 now 8 busy x{busy}, {above_cache}%, nice 2, indexes 3/2: {flags} SERIALIZE {overlap}NUMA\n"
        )
    };
    assert_eq!(figures("v5.2", &two_sockets()), expected("LOAD_BALANCE ", 32, 125, "OVERLAP "));
    assert_eq!(figures("v5.9", &two_sockets()), expected("", 32, 125, "OVERLAP "));
    assert_eq!(figures("v6.6", &two_sockets()), expected("", 16, 117, "OVERLAP "));
    assert_eq!(figures("v6.19", &two_sockets()), expected("", 16, 117, ""));
    let package = |kernel: &str| figures(kernel, &big_little()).lines().nth(1).map(str::to_string);
    assert_eq!(
        package("v6.6"),
        Some(format!(
            "DIE 8-16 now 8 busy x16, 117%, nice 1, indexes 2/1: {SEARCHED} ASYM_CPUCAPACITY ASYM_CPUCAPACITY_FULL \
             PREFER_SIBLING"
        ))
    );
}

/// A cluster of a middle and a big core sees two of three capacities, the cache all; a cluster of two little ones one.
#[test]
fn a_domain_with_some_capacities_is_told_from_one_with_all() {
    let plain = Topology::regular(1, 1, 6, 1, SmtNumbering::Adjacent).expect("a machine");
    let machine = plain.with_capacities(&[1024, 300, 300, 1024, 600, 300]).expect("capacities");
    let machine = machine.with_clusters(&[0, 1, 1, 0, 0, 2]).expect("clusters");
    let domains = domains("v6.7", &machine);
    let asymmetric = |cpu: u32| {
        let flags = |domain: &SchedDomain| {
            let flags = [SdFlags::ASYM_CPUCAPACITY, SdFlags::ASYM_CPUCAPACITY_FULL];
            (domain.name, flags.map(|flag| domain.flags.has(flag)))
        };
        domains.domains_of(Cpu(cpu)).iter().map(flags).collect::<Vec<_>>()
    };
    assert_eq!(asymmetric(3), [("CLS", [true, false]), ("MC", [true, true])]);
    assert_eq!(asymmetric(1), [("CLS", [false, false]), ("MC", [true, true])]);
    let full = domains.of_cpu(Cpu(3)).sd_asym_cpucapacity.expect("all capacities");
    assert_eq!(domains.domain(full).name, "MC");
}
