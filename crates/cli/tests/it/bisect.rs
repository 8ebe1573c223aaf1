//! `fairlab bisect` as its users meet it: the commit that broke a benchmark, the one that cured it, and nothing where there
//! is nothing.

use std::process::Output;

use crate::program::program;
use serde_json::Value;

fn fairlab(arguments: &[&str]) -> Output {
    program().args(arguments).output().expect("the program starts")
}

/// Workers in lockstep, as in the report on the balancer of v5.5, on a machine of 8 CPUs: the last worker of each burst
/// waits behind another one until something pulls it.
fn bisect(more: &[&str]) -> (Option<i32>, String) {
    let report = "bisect schbench -m 2 -t 4 -c 200000 -s 1000 -i 30 -z 120 --machine laptop8 --duration 6s";
    let output = fairlab(&report.split(' ').chain(more.iter().copied()).collect::<Vec<_>>());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.is_empty(), "{more:?}: {errors}");
    (output.status.code(), String::from_utf8(output.stdout).expect("text"))
}

fn json(more: &[&str]) -> (Option<i32>, Value) {
    let (code, text) = bisect(&[more, &["--format", "json"]].concat());
    (code, serde_json::from_str(&text).expect("JSON"))
}

const REWORK: &str = "0b0695f2b34a";
const CURE: &str = "16b0a7a1a0af";

#[test]
fn the_commit_that_broke_it_is_found() {
    let (code, found) = json(&["--good", "v5.4", "--bad", "v5.9"]);
    assert_eq!((code, found["schema"].as_str()), (Some(0), Some("fairlab/bisect/1")));
    let first = &found["first_bad"];
    assert_eq!((first["commit"].as_str(), first["release"].as_str()), (Some(REWORK), Some("v5.5")));
    assert_eq!((first["last_without"].as_str(), &found["first_good"]), (Some("v5.4"), &Value::Null));
    assert!(first["ratio"].as_f64().is_some_and(|ratio| ratio > 100.0), "{first}");
    assert!(found["error"].as_f64().is_some_and(|error| error <= 0.01));
    let command = first["command"].as_str().expect("a command").split(' ').skip(1).collect::<Vec<_>>();
    let again = fairlab(&[&command[..], &["--metric", "wakeup_latency_ns_p99"]].concat());
    assert!(String::from_utf8_lossy(&again.stdout).contains("worse"), "the command shows the effect");
}

#[test]
fn the_commit_that_cured_it_is_found() {
    for metric in ["p99", "p99 > 2ms", "schbench_latency_us_max >= 10ms"] {
        let (code, found) = json(&["--good", "v5.10", "--bad", "v5.5", "--metric", metric]);
        assert_eq!((code, found["first_good"]["commit"].as_str()), (Some(0), Some(CURE)), "{metric}");
        assert_eq!(found["first_good"]["release"], "v5.10");
    }
}

/// The report on EEVDF and vhost: what streams between two guests falls with the commit that places by lag.
#[test]
fn the_placement_that_starves_kworkers_is_found() {
    let report =
        "bisect uperf --run-ms 40 --duration 40ms --warmup 0 --machine s390-lpar24 --runs 40 --format json";
    let ends = ["--good", "e0c2ff903c32", "--bad", "76cae9dbe185"];
    let output = fairlab(&report.split(' ').chain(ends).collect::<Vec<_>>());
    let found = serde_json::from_slice::<Value>(&output.stdout).expect("JSON");
    assert_eq!(found["first_bad"]["commit"], "86bfbb7ce4f6", "{found:#}");
    assert_eq!(found["first_bad"]["release"], "v6.6");
    // The workload is run for its throughput, of which less is worse.
    assert_eq!((found["metric"].as_str(), found["verdict"].as_str()), (Some("throughput"), Some("found")));
    assert_eq!((&found["ends"]["verdict"], &found["partial"]), (&Value::from("worse"), &Value::from(false)));
}

#[test]
fn there_and_back_is_said() {
    let (code, text) = bisect(&["--good", "v5.4", "--bad", "v5.10", "--margin", "20%"]);
    assert_eq!(code, Some(1));
    for fragment in [
        "nothing to find, the two kernels are equivalent",
        "alike on v5.4 and v5.10, but not between them",
        "is worse; --good v5.4 --bad ",
    ] {
        assert!(text.contains(fragment), "{fragment}: {text}");
    }
}

/// What is better on the bad kernel is no regression: the search says which way round it is, and names no commit.
#[test]
fn a_bad_kernel_that_is_better_is_said() {
    let (code, found) = json(&["--good", "v5.9", "--bad", "v5.4"]);
    assert_eq!((code, found["verdict"].as_str()), (Some(1), Some("nothing")), "{found:#}");
    assert_eq!((&found["ends"]["verdict"], &found["first_good"]), (&Value::from("better"), &Value::Null));
    let mut notices = found["notices"].as_array().expect("notices").iter().filter_map(Value::as_str);
    let is_it =
        |notice: &str| notice.contains("v5.4 is the better one") && notice.contains("--good v5.4 --bad v5.9");
    assert!(notices.any(is_it), "{found:#}");
}

#[test]
fn where_there_is_nothing_the_answer_is_no() {
    let (code, text) = bisect(&["--good", "v5.10", "--bad", "v5.10"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("nothing to find"), "{text}");
    let (code, found) = json(&["--good", "v5.10", "--bad", "v5.11", "--metric", "p99 > 2ms"]);
    assert_eq!((code, &found["first_bad"]), (Some(1), &Value::Null));
}

#[test]
fn bad_use_is_refused_in_one_line() {
    let refused = |more: &[&str], fragment: &str| {
        let arguments = [&["bisect", "schbench", "--good", "v5.4"], more].concat();
        let output = fairlab(&arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{errors}");
        assert!(errors.lines().count() == 1 && errors.contains(fragment), "{errors}");
    };
    refused(&[], "--bad");
    refused(&["--bad", "v9.9"], "unknown kernel 'v9.9'");
    refused(&["--bad", "qemu:sid"], "bisect takes modelled kernels");
    refused(&["--bad", "v5.5", "--metric", "p99 > quick"], "no bound that fits");
    refused(
        &["--bad", "v5.5", "--metric", "frames", "--duration", "100ms"],
        "have no metric 'frames'; closest are ",
    );
    refused(&["--bad", "v5.5", "--runs", "2"], "give --runs 4 or more");
    refused(&["--bad", "v5.5", "--error", "2"], "a share lies between 0 and 1");
    refused(&["--bad", "v5.5", "--margin", "2"], "a share lies between 0 and 1");
    refused(&["--bad", "v5.5", "--kernel", "v5.6"], "--kernel");
}
