//! What is kept is what would be made, and nothing else is found.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use fairlab_analysis::by_name::NamesWanted;
use fairlab_event::{Cpu, Ns};
use fairlab_files::temporary::PrivateFolder;

use super::*;
use crate::{Kernel, machines, run, run_missing};

const BOUND: u64 = 8 << 20;

fn spec(kernel: &str, workload: &str, seed: u64) -> RunSpec {
    let machine = machines::find("vm4").expect("a preset");
    // A commit that alters nothing is no kernel that anybody may ask for.
    let kernel = kernel.parse::<Generation>().expect("a kernel").into();
    let workload = workload.split(' ').map(String::from).collect();
    RunSpec { warmup: Some(Ns::ZERO), ..RunSpec::new(kernel, machine, workload, seed, Ns::from_ms(40)) }
}

fn specs(seeds: std::ops::RangeInclusive<u64>) -> Vec<RunSpec> {
    seeds.map(|seed| spec("v6.6", "schbench -m 1 -t 4 -c 500", seed)).collect()
}

/// A store whose lines are listed.
fn told_store(path: &Path, fresh: bool) -> (RunStore, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&told);
    let tell = move |line: &str| list.lock().expect("no panic").push(line.to_string());
    (RunStore::at(path, BOUND, fresh, tell).expect("it is on"), told)
}

fn store(path: &Path) -> RunStore {
    RunStore::at(path, BOUND, false, |line| panic!("{line}")).expect("it is on")
}

/// Makes what the store lacks; how many runs it had.
fn make(store: RunStore, specs: &[RunSpec]) -> (Vec<RunResult>, usize) {
    let never = AtomicBool::new(false);
    let (results, _) = run_missing(specs, Some(&store), 2, &|_| (), &never).expect("runs");
    let kept = store.counts().kept;
    drop(store);
    (results, kept)
}

fn made(spec: &RunSpec) -> RunResult {
    RunResult { wall_ns: 0, ..run(spec, &AtomicBool::new(false)).expect("a run").expect("whole") }
}

fn timeless(results: Vec<RunResult>) -> Vec<RunResult> {
    results.into_iter().map(|run| RunResult { wall_ns: 0, ..run }).collect()
}

#[test]
fn a_longer_question_costs_what_is_new_and_answers_stay_equal() {
    let folder = PrivateFolder::create().expect("a folder");
    let path = folder.path().join("runs.redb");
    let (first, kept) = make(store(&path), &specs(1..=2));
    assert_eq!(kept, 0);
    let seen = Mutex::new(Vec::new());
    let (again, never) = (store(&path), AtomicBool::new(false));
    let all = specs(1..=5);
    let on_progress = |progress| seen.lock().expect("no panic").push(progress);
    let (longer, _) = run_missing(&all, Some(&again), 1, &on_progress, &never).expect("runs");
    assert_eq!(again.counts(), RunCounting { runs: 5, kept: 2 });
    assert_eq!(seen.lock().expect("no panic")[0], crate::Progress { done: 2, total: 5 });
    assert_eq!(longer[..2], first[..], "kept ones are those that were made, with the time that they took");
    assert_eq!(timeless(longer), all.iter().map(made).collect::<Vec<_>>());
    drop(again);
    assert_eq!(make(store(&path), &all).1, 5);
}

#[test]
fn every_kind_of_result_comes_back_whole() {
    let folder = PrivateFolder::create().expect("a folder");
    let path = folder.path().join("runs.redb");
    let mut all = ["hackbench -g 1 -l 20", "pipe -l 100", "spinners -n 0,5", "periodic", "tbench"]
        .map(|workload| spec("v6.12", workload, 3))
        .to_vec();
    all[0].by_name = NamesWanted { counters: true, balancing: true, places: true, ..NamesWanted::all() };
    all[1].causes = true;
    all[2].warmup = Some(Ns::from_ms(7));
    all[3].side = "a side".to_string();
    all[4].machine = all[4].machine.clone().exact();
    let expected = all.iter().map(made).collect::<Vec<_>>();
    for kept in [0, all.len()] {
        let (results, found) = make(store(&path), &all);
        assert_eq!((timeless(results), found), (expected.clone(), kept));
    }
}

#[test]
fn kernels_of_equal_rules_share_runs_under_their_own_names() {
    let folder = PrivateFolder::create().expect("a folder");
    let path = folder.path().join("runs.redb");
    let of = |kernel| spec(kernel, "hackbench -g 1 -l 10", 1);
    make(store(&path), &[of("v6.5")]);
    let (results, kept) = make(store(&path), &[of("v6.5+avg-vruntime"), of("v6.6")]);
    assert_eq!(kept, 1, "v6.6 decides otherwise");
    let named = results.iter().map(|run| (run.kernel.as_str(), run.side())).collect::<Vec<_>>();
    assert_eq!(named, [("v6.5+avg-vruntime", "v6.5+avg-vruntime"), ("v6.6", "v6.6")]);
    assert_eq!(timeless(results)[0], made(&of("v6.5+avg-vruntime")));
}

/// A change of anything that a run is made of, or of what is measured.
type Change = fn(&mut RunSpec);

#[test]
fn a_key_is_of_all_that_a_run_is_made_of() {
    let key = |program: u128, spec: &RunSpec| RunKeys::of(program).key((spec, ""));
    let plain = spec("v6.6", "schbench -m 1 -t 4", 1);
    let own = key(1, &plain).expect("it is kept");
    assert_eq!(key(1, &plain.clone()), Some(own));
    assert_ne!(RunKeys::of(1).key((&plain, "counted beside it")), Some(own));
    assert_ne!(key(2, &plain), Some(own), "another build");
    let changes: [Change; 13] = [
        |spec| spec.kernel = "v6.6,base_slice_ns=1000000".parse().expect("a kernel"),
        |spec| spec.kernel = "v6.6+NO_RUN_TO_PARITY".parse().expect("a kernel"),
        |spec| spec.machine = machines::find("laptop8").expect("a preset"),
        |spec| spec.machine.hz += 1,
        |spec| spec.machine = spec.machine.clone().exact(),
        |spec| spec.workload.push("-r".to_string()),
        |spec| spec.seed = 2,
        |spec| spec.first_cpu = Some(Cpu(1)),
        |spec| spec.warmup = None,
        |spec| spec.duration = Ns(1),
        |spec| spec.by_name.counters = true,
        |spec| spec.time.from = Some(Ns(1)),
        |spec| spec.causes = true,
    ];
    let mut seen = vec![own];
    for (number, change) in changes.iter().enumerate() {
        let mut spec = plain.clone();
        change(&mut spec);
        if number == 5 {
            spec.workload.push("1".to_string());
        }
        let key = key(1, &spec).unwrap_or_else(|| panic!("change {number}"));
        assert!(!seen.contains(&key), "change {number}");
        seen.push(key);
    }
    let sides: [Change; 1] = [|spec| spec.side = "another name".to_string()];
    let unkept: [Change; 5] = [
        |spec| spec.kernel = Kernel::Host,
        |spec| spec.trace = Some("trace.txt".into()),
        |spec| spec.probes = true,
        |spec| spec.decisions = true,
        |spec| spec.workload = vec!["replay".to_string(), "/no/such/file".to_string()],
    ];
    for (change, expected) in
        sides.iter().map(|change| (change, Some(own))).chain(unkept.iter().map(|change| (change, None)))
    {
        let mut spec = plain.clone();
        change(&mut spec);
        assert_eq!(key(1, &spec), expected);
    }
}

#[test]
fn a_workloads_file_is_known_by_what_it_holds() {
    let folder = PrivateFolder::create().expect("a folder");
    let (path, file) = (folder.path().join("runs.redb"), folder.path().join("own.toml"));
    let written = |work_us: u32| {
        let text = format!("[[task]]\nname = \"own\"\nsteps = [\"run {work_us}us\", \"sleep 1ms\"]\n");
        fs::write(&file, text).expect("written");
    };
    written(100);
    let spec = spec("v6.6", &format!("tasks {}", file.display()), 1);
    let kept = |made_before: usize| {
        let (results, kept) = make(store(&path), std::slice::from_ref(&spec));
        assert_eq!((kept, timeless(results)), (made_before, vec![made(&spec)]));
    };
    kept(0);
    kept(1);
    written(300);
    kept(0);
    written(100);
    kept(1);
    // It changes while the run goes on.
    let (late, never) = (store(&path), AtomicBool::new(false));
    written(500);
    let looked = late.look(&[(&spec, "")]).remove(0);
    written(700);
    let result = run(&spec, &never).expect("a run").expect("whole");
    late.keep((&spec, ""), &looked, &result, &Value::Null);
    drop(late);
    written(500);
    kept(0);
    written(700);
    kept(0);
}

#[test]
fn a_fresh_look_finds_nothing_and_what_it_makes_is_kept() {
    let folder = PrivateFolder::create().expect("a folder");
    let path = folder.path().join("runs.redb");
    let all = specs(1..=2);
    let wrong = store(&path);
    let asked = all.iter().map(|spec| (spec, "")).collect::<Vec<_>>();
    for (asked, looked) in asked.iter().zip(wrong.look(&asked)) {
        let run = RunResult { digest: "wrong".to_string(), ..made(asked.0) };
        wrong.keep(*asked, &looked, &run, &Value::Null);
    }
    drop(wrong);
    assert!(make(store(&path), &all).0.iter().all(|run| run.digest == "wrong"));
    let (fresh, _) = told_store(&path, true);
    let (results, kept) = make(fresh, &all);
    assert_eq!((kept, results[0].digest.clone()), (0, made(&all[0]).digest));
    assert_eq!(make(store(&path), &all), (results, 2));
}

#[test]
fn damage_is_told_once_and_runs_are_made() {
    let folder = PrivateFolder::create().expect("a folder");
    let path = folder.path().join("runs.redb");
    let all = specs(1..=3);
    let expected = timeless(make(store(&path), &all).0);
    let damages: [(&dyn Fn(), &str); 3] = [
        (&|| fs::write(&path, "no database").expect("written"), "were damaged ("),
        (
            &|| {
                // A value that is sound, and no run.
                let key = RunKeys::of(this_program().expect("read")).key((&all[0], "")).expect("it is kept");
                let values = vec![(key, b"no run".to_vec())];
                let store = Store::at(&path, BOUND).expect("it is on");
                store.write(&StoreBatch { values, ..StoreBatch::default() }).expect("written");
            },
            ": 1 kept run is damaged, thrown away and made again",
        ),
        (
            &|| {
                fs::remove_file(&path).expect("removed");
                fs::create_dir(&path).expect("a folder in its place");
            },
            ": runs cannot be kept (",
        ),
    ];
    for (damage, said) in damages {
        damage();
        let (store, told) = told_store(&path, false);
        assert_eq!(timeless(make(store, &all).0), expected, "{said}");
        let told = told.lock().expect("no panic");
        assert!(told.len() == 1 && told[0].contains(said) && !told[0].contains('\n'), "{told:?}");
        if path.is_file() {
            assert_eq!(make(self::store(&path), &all).1, 3, "it is well again");
        }
    }
}

#[test]
fn what_was_stopped_is_kept_as_far_as_it_came() {
    let folder = PrivateFolder::create().expect("a folder");
    let path = folder.path().join("runs.redb");
    let (all, stop, under_way) = (specs(1..=4), AtomicBool::new(false), store(&path));
    let on_progress = |progress: crate::Progress| stop.store(progress.done >= 2, Ordering::Relaxed);
    let (results, stopped) = run_missing(&all, Some(&under_way), 1, &on_progress, &stop).expect("runs");
    assert!(stopped.0);
    drop(under_way);
    assert_eq!(make(store(&path), &all).1, results.len());
}
