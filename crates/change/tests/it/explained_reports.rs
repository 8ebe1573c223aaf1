//! The sentence that comes first, on the pairs of kernels of published reports at a reduced size: it names what each report found, and
//! does not name it where the change is not there.

use std::sync::atomic::AtomicBool;

use fairlab_change::causes::compare_causes;
use fairlab_event::Ns;
use fairlab_lab::answer::causes::CausesAnswer;
use fairlab_lab::{Kernel, RunSpec, machines, run, sides_of};

fn why(kernels: [&str; 2], machine: &str, workload: &str, (seeds, ms): (u64, u64)) -> CausesAnswer {
    let runs = |kernel: &str| {
        let one = |seed| {
            let words = workload.split(' ').map(String::from).collect();
            let (kernel, machine) =
                (Kernel::parse(kernel).expect(kernel), machines::find(machine).expect(machine));
            let spec = RunSpec {
                causes: true,
                warmup: Some(Ns::ZERO),
                ..RunSpec::new(kernel, machine, words, seed, Ns::from_ms(ms))
            };
            run(&spec, &AtomicBool::new(false)).expect("a run").expect("not stopped")
        };
        (1..=seeds).map(one).collect::<Vec<_>>()
    };
    let results = kernels.iter().flat_map(|kernel| runs(kernel)).collect::<Vec<_>>();
    compare_causes(&sides_of(&kernels.map(String::from), &results)).expect("causes").remove(0)
}

fn first(answer: &CausesAnswer) -> &str {
    &answer.headline[0]
}

/// eevdf-vhost: kworkers do not preempt vhost threads any more, which poll for them.
#[test]
fn kworkers_wait_for_the_vhost_threads_that_poll_for_them() {
    let vhost = "vhost --gap-us 75 --work-us 17 --long-work-us 215 --long-every 20 --run-ms 1500";
    let answer = why(["v6.5", "86bfbb7ce4f6"], "s390-lpar24", vhost, (4, 1500));
    let told = first(&answer);
    assert!(told.starts_with("kworker waits ") && told.contains(" more with 86bfbb7ce4f6"), "{told}");
    assert!(told.contains("is behind a task of another group, most of it vhost"), "{told}");
    assert!(told.contains("behind one which its wakeup did not preempt"), "{told}");
    let without = why(["v6.5", "e0c2ff903c32"], "s390-lpar24", vhost, (4, 1500));
    assert!(!first(&without).starts_with("kworker waits "), "{}", first(&without));
}

/// load-balance-rework: workers wait for a slice behind others while a CPU idles.
#[test]
fn workers_wait_behind_each_other_beside_an_idle_cpu() {
    let kernels = ["v5.4", "v5.4+0b0695f2b34a"];
    let schbench = "schbench -t 20 -r 0 -c 1000000 -s 1000 -i 30 -z 120";
    let answer = why(kernels, "vm40", schbench, (4, 8000));
    let told = first(&answer);
    assert!(told.contains(" more with v5.4+0b0695f2b34a") && told.contains("another CPU was idle"), "{told}");
    assert!(
        told.contains("of the added wait is behind a task of its own name, most of it schbench"),
        "{told}"
    );
    assert!(
        answer.headline[1].contains("pulled nothing: the groups have about as many idle CPUs"),
        "{answer:#?}"
    );
    // Few workers leave nobody to wait for.
    let without = why(kernels, "vm40", "schbench -m 1 -t 2 -r 0 -c 1000000 -s 1000 -i 30 -z 120", (4, 4000));
    assert!(!first(&without).contains("behind a task of its own name"), "{}", first(&without));
}

/// idle-cpumask: where no CPU idles, a mask of idle CPUs saves looking at the others.
#[test]
fn a_mask_of_idle_cpus_saves_looking_at_busy_ones() {
    let kernels = ["v5.10", "v5.10+idle-cpumask-v7"];
    let answer = why(kernels, "layout:2x1x20x2", "tbench -c 128 --run-ms 8", (5, 8));
    let told = first(&answer);
    assert!(told.contains("own work differs most where wakeups look for a CPU that is idle"), "{told}");
    let search = answer.work.iter().find(|work| work.work == "Search").expect("searches");
    assert!(search.sure && search.units_per_s < 0.8 * search.baseline_units_per_s, "{search:#?}");
    // Hogs are woken by nobody.
    let without = why(kernels, "layout:2x1x20x2", "jobs spin -n 80", (3, 40));
    assert!(!first(&without).contains("wakeups look for a CPU"), "{}", first(&without));
}

/// nohz-blocked-load: CPUs about to idle age the load of all groups' queues of idle CPUs.
#[test]
fn cpus_about_to_idle_age_the_load_of_others() {
    let beside = "daemons -g 4 -c 8 -p 17 -r 20 schbench -t 2 -m 2 -r 3";
    let kernels = ["v5.4", "v5.4+nohz-blocked-rate-limit"];
    let answer = why(kernels, "chromebook8", beside, (6, 3000));
    let told = first(&answer);
    assert!(told.contains("own work differs most where CPUs about to idle age the load of queues"), "{told}");
    // One group is the root's queue alone, and the ageing is hardly to be seen.
    let without = why(["v5.4", "v5.4"], "chromebook8", beside, (6, 3000));
    assert!(!first(&without).contains("age the load"), "{}", first(&without));
}

/// lb-bias: hardly anything changes, but that the bias leaves some tasks where they are.
#[test]
fn without_its_bias_balancing_pulls_more_and_nothing_comes_of_it() {
    let kernels = ["v4.18", "v4.18+NO_LB_BIAS"];
    let answer = why(kernels, "lkp-bdw-ep3", "jobs spawn -n 176 -r 20000 -k 1", (12, 1500));
    let told = first(&answer);
    assert!(told.starts_with("added up, waits and the scheduler's work take as long"), "{told}");
    assert!(told.contains("what balancing decides does: a busy CPU pulled tasks, "), "{told}");
    // One hog a CPU leaves balancing nothing to decide.
    let without = why(kernels, "lkp-bdw-ep3", "jobs spin -n 88", (4, 500));
    assert!(!first(&without).contains("what balancing decides"), "{}", first(&without));
}
