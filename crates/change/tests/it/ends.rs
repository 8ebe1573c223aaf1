//! A search through a repository: ends that are no two commits of one history are refused before anything is
//! built or run.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use fairlab_change::SearchTrials;
use fairlab_change::bisect::{BisectQuestion, BisectSpec, SearchFinding, bisect};
use fairlab_event::Ns;
use fairlab_files::temporary::PrivateFolder;
use fairlab_lab::{Kernel, LabError, RunSetting, machines};

/// A repository with two commits, the second outside of the scheduler, and a side that grew out of the first.
fn repository() -> PrivateFolder {
    let folder = PrivateFolder::create().expect("a folder");
    let git = |words: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
        let output =
            Command::new("git").arg("-C").arg(folder.path()).args(who).args(words).output().expect("git");
        assert!(output.status.success(), "{words:?}");
    };
    let commit = |file: &str, tag: &str| {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, tag).expect("written");
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", tag]);
        git(&["tag", tag]);
    };
    git(&["init", "-q", "-b", "main"]);
    commit("kernel/sched/fair.c", "t0");
    commit("README", "t1");
    git(&["checkout", "-q", "-b", "side", "t0"]);
    commit("kernel/sched/fair.c", "s1");
    folder
}

fn searched(good: &str, bad: &str) -> Result<(SearchFinding, Vec<String>), LabError> {
    let setting = RunSetting {
        machine: machines::find("laptop8").expect("a machine"),
        machine_name: "laptop8".to_string(),
        workload: ["pipe"].map(String::from).to_vec(),
        warmup: None,
        duration: Ns::from_ms(10),
        first_seed: 1,
        by_name: Default::default(),
        time: Default::default(),
    };
    let spec = BisectSpec {
        good: Kernel::parse(good)?,
        bad: Kernel::parse(bad)?,
        question: BisectQuestion::parse("p99").expect("a question"),
        setting: setting.clone(),
        margin: 0.01,
        error: 0.01,
        runs_max: 4,
    };
    let stop = AtomicBool::new(false);
    let found = bisect(&spec, &mut SearchTrials::new(&setting, 1, &|_| {}, &stop))?;
    Ok((found.finding, found.notices))
}

fn at(folder: &Path, revision: &str) -> String {
    format!("src:{}@{revision}", folder.display())
}

#[test]
fn a_way_without_a_step_is_told_and_nothing_is_built() {
    let folder = repository();
    for (good, bad, told) in [
        ("t0", "t0", "are one commit"),
        ("t0", "t1", "none of the 1 commits between"),
        ("t1", "t0", "touches the scheduler: kernel/sched include/linux/sched.h"),
    ] {
        let (finding, notices) =
            searched(&at(folder.path(), good), &at(folder.path(), bad)).expect("an answer");
        assert_eq!((finding, notices.len()), (SearchFinding::Nothing, 1));
        assert!(notices[0].contains(told), "{notices:?}");
    }
}

#[test]
fn ends_of_two_histories_are_refused() {
    let (one, two) = (repository(), repository());
    let (first, other) = (at(one.path(), "t0"), at(two.path(), "t0"));
    for (good, bad, told) in [
        (first.clone(), other, "are two"),
        (first.clone(), "v6.1".to_string(), "are not two of one history"),
        ("v6.1".to_string(), first.clone(), "are not two of one history"),
        (first.clone(), format!("src:{}", one.path().display()), "are not two of one history"),
        (first.clone() + ",base_slice_ns=1", first.clone(), "differ in settings"),
        (at(one.path(), "t1"), at(one.path(), "s1"), "is an ancestor of the other"),
        (first, at(one.path(), "nothing"), "git knows no commit 'nothing'"),
    ] {
        let refused = searched(&good, &bad).expect_err("refused");
        assert!(refused.problem.contains(told), "{refused}");
    }
}
