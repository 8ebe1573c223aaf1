//! What Fairlab's writers note of a run and its machine where a format has no place of its own for it: one line of words a
//! fact, the same words in every format.
//!
//! ```text
//! origin modelled
//! kernel v6.6+NO_RUN_TO_PARITY
//! seed 3
//! hz 1000
//! machine cpu0: threads 0-1 core 0-7 package 0 node 0
//! group /a 100 200 50000 100000 …                       a tab between two columns
//! scope tasks                                            only some tasks' switches were recorded
//! ```
//!
//! Must not know: where in a file the lines stand.

use fairlab_event::{SwitchScope, System};

/// More lines than these describe no machine: a kernel has at most 8192 CPUs.
const LINES_MAX: usize = 1 << 16;

/// No line is longer.
const LINE_BYTES_MAX: usize = 1 << 13;

/// The lines. What would end one becomes `?`.
pub(crate) fn lines(system: &System) -> Vec<String> {
    let mut lines = Vec::new();
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let single = [
        ("origin", system.origin.clone()),
        ("kernel", system.kernel.clone()),
        ("seed", number(system.seed)),
        ("hz", number(system.hz)),
        ("scope", system.scope.name().unwrap_or_default().to_string()),
    ];
    lines.extend(single.into_iter().filter(|(_, value)| !value.is_empty()));
    lines.extend(system.topology.iter().map(|line| ("machine", line.clone())));
    lines.extend(system.groups.iter().map(|line| ("group", line.clone())));
    let is_end = |character: char| character.is_control() && character != '\t';
    lines.into_iter().map(|(key, value)| format!("{key} {}", value.replace(is_end, "?"))).collect()
}

/// Takes a line into account. Gives `None` where it is none of these.
pub(crate) fn take(system: &mut System, line: &str) -> Option<()> {
    let (key, value) = line.split_once(' ')?;
    let add = |list: &mut Vec<String>| {
        if list.len() < LINES_MAX && value.len() <= LINE_BYTES_MAX {
            list.push(value.to_string());
        }
    };
    match key {
        "origin" => system.origin = value.to_string(),
        "kernel" => system.kernel = value.to_string(),
        "seed" => system.seed = value.parse().ok(),
        "hz" => system.hz = value.parse().ok().filter(|&hz| hz > 0),
        "scope" => system.scope = SwitchScope::by_name(value).unwrap_or_default(),
        "machine" => add(&mut system.topology),
        "group" => add(&mut system.groups),
        _ => return None,
    }
    Some(())
}

/// What a format without a place for such lines leaves out, in words.
pub(crate) fn left_out(system: &System) -> Vec<String> {
    let cpus = system.topology.iter().filter(|line| line.starts_with("cpu")).count();
    let all = [
        (!system.origin.is_empty(), "how the events came about".to_string()),
        (system.seed.is_some(), "the seed".to_string()),
        (system.hz.is_some(), "the tick rate".to_string()),
        (cpus > 0, format!("what {cpus} CPUs share")),
        (!system.groups.is_empty(), format!("{} control groups with their quotas", system.groups.len())),
        (system.scope.name().is_some(), "that only some tasks' switches were recorded".to_string()),
    ];
    all.into_iter().filter(|(is_lost, _)| *is_lost).map(|(_, words)| words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_comes_back() {
        let system = System {
            origin: "run here".to_string(),
            kernel: "v6.6,base_slice_ns=1".to_string(),
            seed: Some(u64::MAX),
            hz: Some(250),
            topology: ["cpu0: threads 0 core 0-1 package 0 node 0", "node0: cpus 0 distance 10"]
                .map(str::to_string)
                .to_vec(),
            scope: SwitchScope::TasksWithoutCpus,
            groups: vec!["/a b\t12\t100\t50000 100000\t0\t-\tcpu\tusage_usec 0 \t0".to_string()],
            ..System::default()
        };
        let mut back = System::default();
        for line in lines(&system) {
            take(&mut back, &line).expect(&line);
        }
        assert_eq!(back, system);
        assert!(lines(&System { release: "6.6".to_string(), cpus: Some(2), ..System::default() }).is_empty());
        assert_eq!(left_out(&system).len(), 6);
        assert!(lines(&System { kernel: "a\nb".to_string(), ..System::default() }) == ["kernel a?b"]);
    }

    #[test]
    fn nothing_grows_without_measure() {
        let mut system = System::default();
        for _ in 0..LINES_MAX + 10 {
            take(&mut system, "machine x").expect("a line");
        }
        take(&mut system, &format!("group {}", "x".repeat(LINE_BYTES_MAX + 1))).expect("a line");
        assert_eq!((system.topology.len(), system.groups.len()), (LINES_MAX, 0));
        assert_eq!(take(&mut system, "tgid 1 2"), None);
        take(&mut system, "hz 0").expect("a line");
        assert_eq!(system.hz, None);
    }
}
