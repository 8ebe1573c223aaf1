//! Reports that the program carries, effects in small, and what is wrong with a file that is no report.
//!
//! Must not know: how figures come about.

use super::*;
use crate::file::Plan;

/// A claim or a sentence on a run that is not made, or on a figure that is not measured, ends a scenario with an error.
#[test]
fn every_scenario_measures_what_its_claims_name() {
    let stop = AtomicBool::new(false);
    let bench = ScenarioContext {
        warmup: Some(Ns::ZERO),
        longest: Some(Ns::from_ms(5)),
        ..ScenarioContext::quick(&stop)
    };
    for scenario in all() {
        let name = &scenario.name;
        let report = scenario.run(&bench).unwrap_or_else(|error| panic!("{name}: {error}"));
        let report = report.expect("not stopped");
        assert!(report.claims.len() > 3 && report.claims.len() == scenario.claims.len(), "{name}");
        for (claim, judged) in scenario.claims.iter().zip(&report.claims) {
            assert_eq!(claim.text, judged.text);
        }
        if name == "lb-bias" {
            let page = report.to_markdown("this");
            for line in [
                "7.50 7% 8.00 ± 6% fsmark.files_per_sec",
                "3571 ± 3% -11% 3183 ± 4% unixbench.score",
                "312 315 unixbench.score",
                "47025 45817 will-it-scale.per_thread_ops; 77499 76529 will-it-scale.per_process_ops",
            ] {
                assert!(page.contains(&format!("| {line} |")), "as the commit prints them: {line}");
            }
        }
    }
}

/// The effects of the reports, in sizes that a test can make.
#[test]
fn each_effect_comes_with_its_rule() {
    let stop = AtomicBool::new(false);
    let effects = Scenario::parse("effects", include_str!("tests/effects.toml"), "").expect("a report");
    let report = effects.run(&ScenarioContext::quick(&stop)).expect("runs").expect("not stopped");
    for claim in &report.claims {
        assert!(claim.holds, "{claim:?}");
    }
    let digest = |kernel: &str| {
        let run = report
            .runs
            .iter()
            .find(|(_, run)| run.kernel == kernel && run.workload.starts_with("jobs sleep"));
        run.expect("a run").1.digest.clone()
    };
    assert_ne!(digest("v4.18"), digest("v4.18+NO_LB_BIAS"));
    assert_eq!(digest("v4.18+NO_LB_BIAS"), digest("v4.18+fdf5f315d5cf"), "that is all that the commit does");
}

#[test]
fn every_run_of_a_report_can_be_made() {
    let stop = AtomicBool::new(false);
    for scenario in all() {
        for quick in [false, true] {
            let bench = ScenarioContext { quick, ..ScenarioContext::quick(&stop) };
            for plan in scenario.plans(quick).expect("plans") {
                let at = format!("{}: {} {}", scenario.name, plan.side, plan.name);
                let words = plan.workload.split_whitespace().map(String::from).collect::<Vec<_>>();
                assert!(fairlab_lab::workloads::build(&words).is_ok(), "{at}: {}", plan.workload);
                assert!(fairlab_lab::machines::find(&plan.machine).is_ok(), "{at}: {}", plan.machine);
                if plan.recorded().is_none() {
                    bench.spec(&plan, 1).unwrap_or_else(|error| panic!("{at}: {error}"));
                }
            }
        }
    }
}

#[test]
fn the_catalogue_is_that_of_the_commit() {
    let tests = find("lb-bias").expect("a report").data["tests"].as_array().expect("tests");
    assert_eq!(tests.len(), 104);
    assert_eq!(tests.iter().filter(|test| test.get("published").is_some()).count(), 19);
}

/// A figure mistyped does not fit the others of its row, and a table is sorted by the longest wait.
#[test]
fn figures_of_perfs_tables_fit_together() {
    let data = &find("eevdf-vhost").expect("a report").data;
    for (table, rows) in [("good", 10), ("bad", 9)] {
        let table = data[table].as_array().expect("rows");
        assert_eq!(table.len(), rows);
        let mut before = f64::INFINITY;
        for row in table {
            let row = row.as_array().expect("cells");
            let of = |place: usize| row[place].as_float().or(row[place].as_integer().map(|of| of as f64));
            let [runtime, switches, average, longest, start, end] =
                [1, 2, 3, 4, 5, 6].map(|place| of(place).expect("a figure"));
            assert!(((end - start) * 1000.0 - longest).abs() < 0.002 && longest <= before, "{row:?}");
            assert!(
                (average + 0.0005) * switches >= longest && runtime > 0.0 && average < longest,
                "{row:?}"
            );
            before = longest;
        }
    }
}

fn plan_of(report: &str, side: &str, name: &str, quick: bool) -> Plan {
    let plans = find(report).expect("a report").plans(quick).expect("plans");
    plans.into_iter().find(|plan| plan.side == side && plan.name == name).expect("a run")
}

#[test]
fn the_model_gets_the_ticks_and_the_groups_of_the_real_one() {
    let stop = AtomicBool::new(false);
    let bench = ScenarioContext::quick(&stop);
    let spec = bench.spec(&plan_of("eevdf-vhost", "modelled", "6.8", true), 3).expect("a run");
    assert_eq!((spec.machine.hz, spec.machine.in_turn, spec.seed), (1000, true, 3));
    assert!(spec.workload.join(" ").starts_with("cgroup cpu.weight=100 / vhost --gap-us 30"));
    let real = plan_of("eevdf-vhost", "real", "6.8", false);
    let recorded = real.recorded().expect("it was written down");
    assert_eq!((recorded["wakeups"], recorded["longest_woken"]), (19_209.0, 3.12));
}

#[test]
fn sides_change_what_is_common_and_quick_changes_both() {
    let whole = plan_of("load-balance-rework", "report", "v5.5", false);
    let quick = plan_of("load-balance-rework", "report", "v5.5", true);
    assert_eq!((whole.duration_ms, quick.duration_ms, whole.runs), (1_441_000, 61_000, 1));
    let row = plan_of("nohz-blocked-load", "16 groups", "v5.13", true);
    assert_eq!(
        (row.workload.as_str(), row.runs),
        ("daemons -g 16 -c 8 -p 17 -r 20 schbench -t 2 -m 2 -r 5", 5)
    );
    let shorter = plan_of("lb-bias", "lkp-avoton3: jobs pairs -n 16 -r 30 -a 20", "v4.18", true);
    assert_eq!(shorter.duration(), Ns::from_ms(250));
}

#[test]
fn what_is_no_report_is_refused() {
    let good = include_str!("tests/effects.toml");
    for (from, to, said) in [
        ("title =", "titel =", "line 1"),
        ("kernels = [\"v4.18\", \"v5.5\"]", "kernels = []", "it names no kernels"),
        ("runs = 6", "runs = 0", "1 or more"),
        ("runs = 6", "runz = 6", "runz"),
        ("workload = \"uperf --run-ms 500\"", "", "workload"),
        ("below = 0.01", "", "lacks a bar"),
        ("[side.vhost]", "[side.vhost]\neach = \"absent\"", "no rows are called"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let error = Scenario::parse("effects", &text, "").expect_err(to);
        assert!(error.problem.contains(said) && !error.hint.is_empty(), "{to}: {error}");
    }
}

#[test]
fn an_expression_on_what_nobody_measures_is_an_error() {
    let scenario = find("wasted-cores").expect("a report");
    let language = Language::new(scenario, &[], Vec::new());
    for (expression, said) in [
        ("idle('two users', 'v9.9')", "no run of side 'two users' is called 'v9.9'"),
        ("idel('two users', 'v5.5')", "idel"),
        ("1 +", "unexpected"),
    ] {
        let error = language.value(expression).expect_err(expression).to_string();
        assert!(error.contains("wasted-cores") && error.contains(said), "{error}");
    }
    assert_eq!(language.value("1 / 0"), Ok(None), "what could not be measured");
    assert_eq!(language.value("[1, 3, 2] | median + 0.5"), Ok(Some(2.5)));
    assert_eq!(language.value("[1, 3, 2] | above(1) | length"), Ok(Some(2.0)));
    assert_eq!(language.value("[4, 9] | over([2, 3]) | greatest"), Ok(Some(3.0)));
    assert_eq!(language.value("[] | mean"), Ok(None));
    let language = Language::new(find("lb-bias").expect("a report"), &[], Vec::new());
    assert_eq!(language.value("data.tests[0].duration_ms"), Ok(Some(1500.0)), "what the file's data says");
}

/// The table's own means are rounded, so that its changes may differ by a hundredth.
#[test]
fn published_changes_are_those_of_the_published_means() {
    let report = find("idle-cpumask").expect("a report");
    let rows = report.data["clients"].as_array().expect("rows");
    for row in rows {
        let of = |key: &str| row[key].as_str().expect(key).parse::<f64>().expect(key);
        assert!(((of("after") / of("before") - 1.0) * 100.0 - of("change")).abs() < 0.011, "{row}");
    }
    assert_eq!(rows.len(), 10);
}
