//! Counts by name in a file of counts.
//!
//! Must not know: how they were counted.

use std::collections::BTreeMap;

use fairlab_analysis::counts::{
    GroupThrottled, MoveCounts, NameCounts, NamePlacement, StackedTime, Unfairness,
};
use fairlab_analysis::histogram::Histogram;
use fairlab_analysis::task_selector::TaskSelector;
use fairlab_event::Pid;
use serde_json::{Map, Value, json};

use super::{histogram_json, read_fork_wait, read_histogram};

/// Every name with its counts.
pub(super) fn to_json(by_name: &BTreeMap<TaskSelector, NameCounts>) -> Value {
    let one = |(who, counts): (&TaskSelector, &NameCounts)| {
        let mut fields = Map::new();
        fields.insert(kind(who).to_string(), json!(who.to_string()));
        for (name, value) in [
            ("tasks", counts.tasks),
            ("run_ns", counts.run_ns),
            ("wait_ns", counts.wait_ns),
            ("involuntary_switches", counts.involuntary_switches),
            ("migrations", counts.migrations),
        ] {
            fields.insert(name.to_string(), json!(value));
        }
        for (name, times) in [
            ("wakeup_latency_ns", &counts.wakeup_latency),
            ("fork_wait_ns", &counts.fork_wait),
            ("preemption_wait_ns", &counts.preemption_wait),
            ("throttled_wait_ns", &counts.throttled_wait),
        ] {
            fields.insert(name.to_string(), histogram_json(times));
        }
        let MoveCounts { smt, llc, node, other_node } = counts.moves.unwrap_or_default();
        let moves = json!({ "smt": smt, "llc": llc, "node": node, "other_node": other_node });
        fields.insert("migrations_by_distance".to_string(), json!(counts.moves.map(|_| moves)));
        fields.insert("placement".to_string(), json!(counts.placement.as_ref().map(placement_json)));
        let unfairness = counts.unfairness.map(|one| json!({ "sum_ppm": one.sum_ppm, "runs": one.runs }));
        fields.insert("unfairness".to_string(), json!(unfairness));
        let throttled = counts.throttled.map(|throttled| throttled.throttled_ns);
        fields.insert("throttled_ns".to_string(), json!(throttled));
        let quota = counts.throttled.unwrap_or_default();
        for (name, time) in [("throttled_some_cpu_ns", quota.some_cpu_ns), ("quota_ns", quota.quota_ns)] {
            fields.extend(time.map(|time| (name.to_string(), json!(time))));
        }
        if counts.run_stretches.total() > 0 {
            fields.insert("run_stretch_ns".to_string(), histogram_json(&counts.run_stretches));
        }
        if !counts.ran_on.is_empty() {
            fields.insert("ran_on_ns".to_string(), json!(counts.ran_on));
        }
        Value::Object(fields)
    };
    by_name.iter().map(one).collect()
}

const KINDS: [&str; 4] = ["task", "pid", "group", "workload"];

fn kind(who: &TaskSelector) -> &'static str {
    match who {
        TaskSelector::Task(_) => KINDS[0],
        TaskSelector::Pid(_) => KINDS[1],
        TaskSelector::Group(_) => KINDS[2],
        TaskSelector::Workload(_) => KINDS[3],
    }
}

fn read_who(fields: &Value) -> Option<TaskSelector> {
    let name = |kind: &str| Some(fields.get(kind)?.as_str()?.to_string());
    let [task, pid, group, workload] = KINDS;
    name(task)
        .map(TaskSelector::Task)
        .or_else(|| name(group).map(TaskSelector::Group))
        .or_else(|| name(workload).map(TaskSelector::Workload))
        .or_else(|| Some(TaskSelector::Pid(Pid(name(pid)?.parse().ok()?))))
}

fn placement_json(placement: &NamePlacement) -> Value {
    let level = |level: Option<StackedTime>| {
        level.map(|level| json!({ "stacked_ns": level.stacked_ns, "unknown_ns": level.unknown_ns }))
    };
    json!({
        "several_ns": placement.several_ns,
        "core": level(placement.core),
        "llc": level(placement.llc),
        "node": level(placement.node),
    })
}

/// The names and counts of a file; `None` where something is missing or cannot be.
pub(super) fn read(list: &Value) -> Option<BTreeMap<TaskSelector, NameCounts>> {
    list.as_array()?.iter().map(|fields| Some((read_who(fields)?, read_one(fields)?))).collect()
}

fn read_one(fields: &Value) -> Option<NameCounts> {
    let number = |name: &str| fields.get(name)?.as_u64();
    let known = |name: &str| fields.get(name).filter(|value| !value.is_null());
    let moves = |moves: &Value| {
        let of = |name: &str| moves[name].as_u64();
        MoveCounts { smt: of("smt"), llc: of("llc"), node: of("node"), other_node: of("other_node") }
    };
    let placement = match known("placement") {
        Some(placement) => Some(read_placement(placement)?),
        None => None,
    };
    let unfairness = |value: &Value| {
        Some(Unfairness { sum_ppm: value["sum_ppm"].as_u64()?, runs: value["runs"].as_u64()? })
    };
    Some(NameCounts {
        tasks: number("tasks")?,
        run_ns: number("run_ns")?,
        wait_ns: number("wait_ns")?,
        involuntary_switches: number("involuntary_switches")?,
        migrations: number("migrations")?,
        moves: known("migrations_by_distance").map(moves),
        wakeup_latency: read_histogram(fields.get("wakeup_latency_ns")?)?,
        fork_wait: read_fork_wait(fields)?,
        preemption_wait: read_histogram(fields.get("preemption_wait_ns")?)?,
        throttled_wait: read_histogram(fields.get("throttled_wait_ns")?)?,
        run_stretches: match known("run_stretch_ns") {
            Some(stretches) => read_histogram(stretches)?,
            None => Histogram::default(),
        },
        placement,
        unfairness: known("unfairness").and_then(unfairness),
        throttled: number("throttled_ns").map(|throttled_ns| GroupThrottled {
            throttled_ns,
            some_cpu_ns: number("throttled_some_cpu_ns"),
            quota_ns: number("quota_ns"),
        }),
        ran_on: match known("ran_on_ns") {
            Some(places) => read_places(places)?,
            None => BTreeMap::new(),
        },
    })
}

fn read_places(fields: &Value) -> Option<BTreeMap<String, u64>> {
    fields.as_object()?.iter().map(|(place, time)| Some((place.clone(), time.as_u64()?))).collect()
}

fn read_placement(fields: &Value) -> Option<NamePlacement> {
    let level = |name: &str| {
        let level = &fields[name];
        let stacked_ns = level["stacked_ns"].as_u64()?;
        Some(StackedTime { stacked_ns, unknown_ns: level["unknown_ns"].as_u64()? })
    };
    let several_ns = fields["several_ns"].as_u64()?;
    Some(NamePlacement { several_ns, core: level("core"), llc: level("llc"), node: level("node") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut counts = NameCounts {
            tasks: 2,
            run_ns: 7,
            wait_ns: 3,
            involuntary_switches: 1,
            migrations: 4,
            moves: Some(MoveCounts { smt: None, llc: Some(3), node: None, other_node: Some(1) }),
            placement: Some(NamePlacement {
                several_ns: 5,
                core: None,
                llc: Some(StackedTime { stacked_ns: 4, unknown_ns: 1 }),
                node: None,
            }),
            unfairness: Some(Unfairness { sum_ppm: 9, runs: 1 }),
            throttled: Some(GroupThrottled { throttled_ns: 8, some_cpu_ns: Some(6), quota_ns: Some(9) }),
            ran_on: BTreeMap::from([("node0".to_string(), 5), ("node1".to_string(), 2)]),
            ..NameCounts::default()
        };
        counts.wakeup_latency.record(12);
        counts.run_stretches.record(30);
        let whose = [
            TaskSelector::parse("a"),
            TaskSelector::parse("/a"),
            TaskSelector::parse("12"),
            TaskSelector::Workload("a".to_string()),
        ];
        let by_name = whose.map(|who| (who, counts.clone()));
        let by_name = BTreeMap::from_iter(
            by_name.into_iter().chain([(TaskSelector::parse("b"), NameCounts::default())]),
        );
        assert_eq!(read(&to_json(&by_name)), Some(by_name));
        assert_eq!(read(&json!([{ "task": "a" }])), None);
    }
}
