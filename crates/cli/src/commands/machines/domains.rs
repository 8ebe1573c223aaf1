//! The scheduling domains of a machine, drawn.

use fairlab_event::Cpu;
use fairlab_kernel::domain::{DomainId, SchedDomains, SdFlags};
use fairlab_sim::Machine;
use serde_json::{Value, json};

/// How many groups of a domain a line shows.
const GROUPS_SHOWN: usize = 8;

/// What makes CPUs alike: the level, size, flags and groups' sizes of each of their domains.
type CpuDomainsKey = Vec<(&'static str, u32, SdFlags, Vec<u32>)>;

fn kind(domains: &SchedDomains, cpu: Cpu) -> CpuDomainsKey {
    let of = |id: DomainId| {
        let domain = domains.domain(id);
        let weights = domains.groups(id).map(|group| domains.group(group).weight).collect();
        (domain.name, domain.span_weight, domain.flags, weights)
    };
    domains.ids_of(cpu).map(of).collect()
}

/// Domains of one CPU of each kind, or of the one that was asked for.
pub fn draw(machine: &Machine, domains: &SchedDomains, kernel: &str, asked: Option<Cpu>) -> String {
    let mut kinds: Vec<(CpuDomainsKey, Cpu, usize)> = Vec::new();
    for cpu in machine.topology.cpus().filter(|&cpu| asked.is_none_or(|asked| asked == cpu)) {
        let kind = kind(domains, cpu);
        match kinds.iter_mut().find(|(known, ..)| *known == kind) {
            Some((.., alike)) => *alike += 1,
            None => kinds.push((kind, cpu, 1)),
        }
    }
    let mut text = String::new();
    for (_, cpu, alike) in kinds {
        let others = match (asked, alike) {
            (Some(_), _) | (None, 1) => String::new(),
            (None, alike) => format!(", and {} more likewise", alike - 1),
        };
        text += &format!("\nDomains under {kernel} as CPU {cpu} sees them{others}:\n");
        if domains.domains_of(cpu).is_empty() {
            text += "  none: it is alone\n";
        }
        for id in domains.ids_of(cpu) {
            text += &draw_domain(domains, id);
        }
    }
    text
}

fn draw_domain(domains: &SchedDomains, id: DomainId) -> String {
    let domain = domains.domain(id);
    let mut text = format!(
        "  {:<6} CPUs {} ({}); balanced every {} to {} ms, {} times less often if busy; imbalance_pct {}, \
         cache_nice_tries {}",
        domain.name,
        domain.span,
        domain.span_weight,
        domain.min_interval,
        domain.max_interval,
        domain.busy_factor,
        domain.imbalance_pct,
        domain.cache_nice_tries
    );
    if domain.imb_numa_nr > 0 {
        text += &format!(", imb_numa_nr {}", domain.imb_numa_nr);
    }
    let total = domains.nr_groups(id);
    let shown = domains.groups(id).take(GROUPS_SHOWN).map(|group| {
        let capacity = domains.capacity_of_group(group);
        let span = domains.group(group).span;
        let balance = if span.lowest() == Some(capacity.balance_cpu) && capacity.balance_mask == span {
            String::new()
        } else {
            format!(", balanced by {}", capacity.balance_mask)
        };
        format!("[{span}: {}{balance}]", capacity.capacity)
    });
    let shown = shown.collect::<Vec<_>>().join(" ");
    let flags = domain.flags.names().collect::<Vec<_>>().join(" ");
    let more = if total > GROUPS_SHOWN { format!(" … {total} in all") } else { String::new() };
    format!("{text}\n         flags {flags}\n         groups by capacity {shown}{more}\n")
}

/// Every CPU's domains.
pub fn to_json(machine: &Machine, domains: &SchedDomains) -> Value {
    let cpus = machine.topology.cpus().map(|cpu| {
        let looked_up = domains.of_cpu(cpu);
        let all = domains.ids_of(cpu).map(|id| domain_json(domains, id)).collect::<Vec<_>>();
        json!({
            "cpu": cpu.0,
            "sd_llc_id": looked_up.sd_llc_id,
            "sd_llc_size": looked_up.sd_llc_size,
            "cpu_capacity_orig": domains.cpu_capacity_orig(cpu),
            "domains": all,
        })
    });
    cpus.collect()
}

fn domain_json(domains: &SchedDomains, id: DomainId) -> Value {
    const NS_PER_MS: u64 = 1_000_000;
    let domain = domains.domain(id);
    let groups = domains.groups(id).map(|group| {
        let capacity = domains.capacity_of_group(group);
        json!({
            "span": domains.group(group).span.to_string(),
            "cores": domains.group(group).cores,
            "balance_mask": capacity.balance_mask.to_string(),
            "balance_cpu": capacity.balance_cpu.0,
            "capacity": capacity.capacity,
            "min_capacity": capacity.min_capacity,
            "max_capacity": capacity.max_capacity,
        })
    });
    json!({
        "name": domain.name,
        "level": domain.level,
        "span": domain.span.to_string(),
        "span_weight": domain.span_weight,
        "flags": domain.flags.names().collect::<Vec<_>>(),
        "min_interval_ns": u64::from(domain.min_interval) * NS_PER_MS,
        "max_interval_ns": u64::from(domain.max_interval) * NS_PER_MS,
        "busy_factor": domain.busy_factor,
        "imbalance_pct": domain.imbalance_pct,
        "cache_nice_tries": domain.cache_nice_tries,
        "imb_numa_nr": domain.imb_numa_nr,
        "groups": groups.collect::<Vec<_>>(),
    })
}
