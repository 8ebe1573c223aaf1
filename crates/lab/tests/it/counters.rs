//! The scheduler's own counts as metrics: who has them, that they change nothing, and what they tell.

use std::sync::atomic::AtomicBool;

use fairlab_analysis::selector::TimeRange;
use fairlab_event::Ns;
use fairlab_lab::counters::{is_asked_for, who_counts};
use fairlab_lab::names::{ShownMetrics, metrics_of};
use fairlab_lab::{RunResult, RunSpec, machines, run};

/// A run from the program's start, with these metrics.
fn measured(kernel: &str, (machine, workload): (&str, &str), ms: u64, metrics: &[&str]) -> RunResult {
    made(&RunSpec { by_name: wanted(metrics), ..spec(kernel, (machine, workload), ms) })
}

fn wanted(metrics: &[&str]) -> fairlab_analysis::by_name::NamesWanted {
    let words = metrics.iter().map(ToString::to_string).collect::<Vec<_>>();
    ShownMetrics::default().wanted(&metrics_of(&[], &words).expect("names"))
}

fn spec(kernel: &str, (machine, workload): (&str, &str), ms: u64) -> RunSpec {
    let machine = machines::find(machine).expect("a machine");
    let words = workload.split(' ').map(String::from).collect();
    RunSpec {
        warmup: Some(Ns::ZERO),
        ..RunSpec::new(kernel.parse().expect("a kernel"), machine, words, 1, Ns::from_ms(ms))
    }
}

fn made(spec: &RunSpec) -> RunResult {
    run(spec, &AtomicBool::new(false)).expect("a run").expect("an end")
}

fn of(run: &RunResult, metric: &str) -> f64 {
    run.metric(metric).unwrap_or_else(|| panic!("{} has no {metric}", run.kernel))
}

const TBENCH: (&str, &str) = ("vm4", "tbench -c 6 --client-us 60 --server-us 60 --run-ms 60");

/// The run is the same, and only who asks has more metrics.
#[test]
fn what_is_counted_is_counted_only_for_who_asks() {
    let plain = measured("v4.18", TBENCH, 80, &["throughput"]);
    assert!(plain.metrics.iter().all(|(name, _)| !is_asked_for(name)), "{:?}", plain.metrics);
    let counted = measured("v4.18", TBENCH, 80, &["ttwu_count", "lb_moved"]);
    assert_eq!(counted.digest, plain.digest);
    let others = counted.metrics.iter().filter(|(name, _)| !is_asked_for(name)).cloned().collect::<Vec<_>>();
    assert_eq!(others, plain.metrics);
    for metric in ["ttwu_count", "newidle_lb_count", "newidle_searches", "sis_search", "lb_moved"] {
        assert!(of(&counted, metric) > 0.0, "{metric}");
    }
    assert!(counted.metric("lb_bias_tries").is_some(), "it has LB_BIAS");
    assert_eq!(counted.metric("idle_mask_scans"), None, "it has no such mask");
}

/// What two stretches of a run count is what the whole counts.
#[test]
fn counts_of_stretches_add_up() {
    let metrics = ["ttwu_count", "lb_moved"];
    let whole = measured("v6.6", TBENCH, 80, &metrics);
    let middle = Ns(whole.settled_ns.expect("it was measured") + 30_000_000);
    let stretch =
        |time: TimeRange| made(&RunSpec { by_name: wanted(&metrics), time, ..spec("v6.6", TBENCH, 80) });
    let before = stretch(TimeRange { from: None, to: Some(middle) });
    let after = stretch(TimeRange { from: Some(middle), to: None });
    for metric in ["ttwu_count", "pcount", "sis_scanned", "newidle_searches", "newidle_lb_gained"] {
        assert_eq!(of(&before, metric) + of(&after, metric), of(&whole, metric), "{metric}");
    }
    assert!(of(&before, "ttwu_count") > 0.0 && of(&after, "ttwu_count") > 0.0);
    let longest = |run| of(run, "newidle_ns_max");
    assert_eq!(longest(&before).max(longest(&after)), longest(&whole));
}

#[test]
fn a_mask_saves_scans_where_no_cpu_idles_and_none_where_all_idle_for_a_moment() {
    let looked = |situation| {
        let of_kernel =
            |kernel| of(&measured(kernel, situation, 300, &["sis_search"]), "sis_looked_per_search");
        of_kernel("v5.10+idle-cpumask-v7") / of_kernel("v5.10")
    };
    let busy = looked(("vm4", "tbench -c 8 --client-us 60 --server-us 60 --run-ms 100"));
    let fleeting = looked(("xeon-2s80", "tbench -c 64 --run-ms 8"));
    assert!(busy < 0.1 && fleeting > 0.8, "{busy} {fleeting}");
}

/// The cost comes with groups, and goes with a rate limit, with mainline's cure, and without groups.
#[test]
fn going_idle_is_dear_only_where_others_load_is_aged_on_the_way() {
    let metrics = ["nohz_stats_updates", "newidle_ns_mean", "newidle_ns_max"];
    let run = |kernel, groups: u32| {
        let workload = format!("daemons -g {groups} -c 8 -p 17 -r 20 schbench -t 2 -m 2 -r 5");
        let situation = ("chromebook8", workload.as_str());
        let seeded = |seed| RunSpec { by_name: wanted(&metrics), seed, ..spec(kernel, situation, 7000) };
        let runs = [1, 2].map(|seed| made(&seeded(seed)));
        metrics.map(|metric| runs.iter().map(|run| of(run, metric)).sum::<f64>() / 2.0)
    };
    let [dear, patched] = ["v5.4", "v5.4+nohz-blocked-rate-limit"].map(|kernel| run(kernel, 4));
    let (mended, without_groups) = (run("v5.13", 4), run("v5.4", 0));
    // Of eight CPUs, for seven seconds.
    let a_second = |[updates, ..]: [f64; 3]| updates / 8.0 / 7.0;
    assert!(a_second(dear) > 100.0 && dear[2] > 250_000.0, "{dear:?}");
    for (other, most) in [(patched, 0.5), (mended, 0.75), (without_groups, 0.5)] {
        assert!(other[1] < dear[1] * most, "{dear:?} {other:?}");
    }
    assert!(a_second(patched) <= 20.0, "{patched:?}");
}

#[test]
fn who_lacks_a_counter_is_told_who_has_it() {
    for (metric, who) in [
        ("sis_scanned", Some("only modelled kernels tell it, where it happened at all")),
        ("ttwu_count", Some("kernels with CONFIG_SCHEDSTATS tell it")),
        ("newidle_ns_max", Some("modelled kernels and trees' own code tell it")),
        ("throughput", None),
    ] {
        assert_eq!(who_counts(metric), who, "{metric}");
    }
}
