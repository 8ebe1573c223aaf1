//! The list of probes as lines for this kernel: what it has no function or member for is left out.
//!
//! Must not know: which probes there are, how a member is found in a kernel.

use fairlab_event::probes::{CPU_FIELDS, PROBES, ProbeOn, ProbeSide, ProbeSpec};

use crate::btf::Types;
use crate::fetch::Function;
use crate::symbols::KernelSymbols;

/// The lines that define one probe, best first: the first one that the kernel accepts is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeDefinition {
    /// The name of its group.
    pub group: &'static str,
    /// Its own name.
    pub event: &'static str,
    /// Lines for `kprobe_events`.
    pub lines: Vec<String>,
}

/// More fields of CPUs than a probe can hold.
const CPUS_MAX: usize = 16;

/// The symbols that probes need: where CPUs keep their data, and all functions.
pub fn symbols() -> impl Iterator<Item = &'static str> {
    let functions = PROBES.iter().flat_map(|probe| probe.functions.iter().copied());
    ["runqueues", "__per_cpu_offset"].into_iter().chain(functions)
}

/// The definitions of all probes for this kernel; without `all` only the rare ones.
pub fn definitions(
    types: &Types<'_>,
    symbols: &KernelSymbols,
    cpus: usize,
    all: bool,
) -> Vec<ProbeDefinition> {
    let each = if cpus <= CPUS_MAX { fields_of_cpus(types, symbols, cpus) } else { Vec::new() };
    // That probes at returns can tell arguments came when sleepers could stay queued.
    let keeps_arguments =
        types.structure("sched_entity").is_some_and(|of| types.member(of, "sched_delayed").is_some());
    let is_lazy = types.function("resched_curr_lazy").is_some();
    let is_wanted = |probe: &&ProbeSpec| match probe.on {
        ProbeOn::Rare => true,
        ProbeOn::Every => all,
        ProbeOn::KeptArguments => all && keeps_arguments,
        ProbeOn::LostArguments => all && !keeps_arguments,
        ProbeOn::Lazy => all && is_lazy,
    };
    PROBES.iter().filter(is_wanted).filter_map(|probe| definition(probe, types, symbols, &each)).collect()
}

/// One probe's lines; `None` where the kernel has none of its functions.
fn definition(
    probe: &ProbeSpec,
    types: &Types<'_>,
    symbols: &KernelSymbols,
    each: &[String],
) -> Option<ProbeDefinition> {
    let (letter, group, event) =
        (if probe.side == ProbeSide::Entry { "p" } else { "r" }, probe.group(), probe.point.name());
    let mut lines = Vec::new();
    for name in probe.functions.iter().filter(|name| symbols.get(name).is_some()) {
        let function = Function::new(types, name, probe.parameters);
        let fetched = probe.fields.iter().copied().flatten();
        let fields: Vec<String> = fetched
            .filter_map(|(field, place)| function.field(&format!("{}={place}", field.name())))
            .collect();
        let line = |fields: &[String]| format!("{letter}:{group}/{event} {name} {}", fields.join(" "));
        if probe.of_each_cpu && !each.is_empty() {
            lines.push(line(&[&fields[..], each].concat()));
        }
        lines.push(line(&fields));
        if probe.side == ProbeSide::Return {
            // Older kernels keep no arguments until a function returns.
            let kept: Vec<String> = fields.iter().filter(|field| !field.contains("$arg")).cloned().collect();
            if kept.len() < fields.len() && !kept.is_empty() {
                lines.push(line(&kept));
            }
        }
    }
    (!lines.is_empty()).then_some(ProbeDefinition { group, event, lines })
}

/// The fields of every CPU's runqueue, through the kernel's own table of where CPUs keep their data. None where those lie further
/// from the table's values than the 32 bits that a probe adds, as on arm64.
fn fields_of_cpus(types: &Types<'_>, symbols: &KernelSymbols, cpus: usize) -> Vec<String> {
    let (Some(queues), Some(table)) = (symbols.get("runqueues"), symbols.get("__per_cpu_offset")) else {
        return Vec::new();
    };
    if table == 0 || i32::try_from(queues.cast_signed()).is_err() {
        return Vec::new();
    }
    let offset = |structure: &str, path: &str| {
        types.structure(structure).and_then(|of| types.member(of, path)).map(|member| member.offset)
    };
    let mut fields = Vec::new();
    for cpu in 0..cpus {
        for (name, path, form) in CPU_FIELDS {
            let base = format!("@__per_cpu_offset+{}", 8 * cpu);
            let at = |path: &str| Some(queues.wrapping_add(offset("rq", path)?).cast_signed());
            let value = match path.split_once("->") {
                None => at(path).map(|at| format!("{at:+}({base})")),
                Some((pointer, inner)) => at(pointer)
                    .zip(offset("task_struct", inner))
                    .map(|(at, inner)| format!("+{inner}({at:+}({base}))")),
            };
            fields.extend(value.map(|value| format!("{}{cpu}={value}:{form}", name.name())));
        }
    }
    fields
}
