//! Pods, containers and units as files have them.

use super::*;

/// Groups of a file, each with its files.
fn groups(text: &str) -> Result<Vec<(String, String)>, KeyError> {
    let mut table = text.parse::<Table>().expect("a table");
    let groups = take_groups(&mut table)?;
    assert!(table.keys().all(|key| !TABLES.contains(&key.as_str()) && key != "weights"), "{text}");
    Ok(groups
        .into_iter()
        .map(|group| {
            let files = group.files.iter().map(|(file, value)| format!("{file}={value}")).collect::<Vec<_>>();
            (group.path, files.join(" "))
        })
        .collect())
}

/// As `cpu.weight` reads in containers of runc 1.3.1 and 1.3.2, and of crun 1.22 and 1.23.
#[test]
fn requests_become_the_weights_that_runtimes_write() {
    for (request, former, present) in
        [("100m", 4, 17), ("500m", 20, 59), ("1", 39, 100), ("4", 157, 303), ("64", 2500, 3023)]
    {
        for (rule, weight) in [("weights = '2021'", former), ("weights = 2021", former), ("", present)] {
            let found = groups(&format!("{rule}\n[pod.api]\nrequests.cpu = '{request}'\n")).expect("groups");
            let files = format!("cpu.weight={weight}");
            let expected = [("/kubepods/burstable/api", &files), ("/kubepods/burstable", &files)];
            assert_eq!(found, expected.map(|(path, files)| (path.to_string(), files.clone())), "{request}");
        }
    }
    // runc issue 4896: 77 in a container of runc 1.3.1, 170 in one of 1.4.0-rc.1.
    for (rule, weight) in [("2021", 77), ("2025", 170)] {
        let text = format!("weights = '{rule}'\n[container.x]\ncpu-shares = 2000\n");
        assert_eq!(groups(&text).expect("groups")[0].1, format!("cpu.weight={weight}"));
    }
}

/// The published function is computed in floating point, whose last digit differs from machine to machine. No weight hangs on it.
#[test]
fn no_weight_hangs_on_the_last_digit() {
    let mut nearest = f64::MAX;
    for shares in SHARES.0 + 1..SHARES.1 {
        let log = (shares as f64).log2();
        let exact = 10f64.powf((log * log + 125.0 * log) / 612.0 - 7.0 / 34.0);
        let distance = (exact - exact.round()).abs();
        match shares {
            1024 => assert!(distance < 1e-10, "{distance}"),
            _ => nearest = nearest.min(distance),
        }
        assert_eq!(
            WeightRule::Quadratic.weight(shares),
            if shares == 1024 { 100 } else { exact.ceil() as u64 }
        );
    }
    assert!(nearest > 1e-8, "{nearest}");
    for rule in [WeightRule::Linear, WeightRule::Quadratic] {
        assert_eq!([SHARES.0, SHARES.1].map(|shares| rule.weight(shares)), [1, 10_000]);
    }
}

#[test]
fn pods_lie_in_their_classes_with_their_containers() {
    let text = "[pod.whole]\nrequests.cpu = 2\nlimits.cpu = 2\n[pod.best]\n\
        [pod.two]\ncpuCFSQuotaPeriod = '10ms'\n[pod.two.container.a]\nlimits.cpu = '250m'\n\
        [pod.two.container.b]\nrequests.cpu = 0.5\nlimits.cpu = 1.5\n\"cpu.max.burst\" = 5000\n\
        [pod.open.container.a]\nlimits.cpu = 1\n[pod.open.container.b]\n\
        [pod.tiny]\nlimits.cpu = '1m'\n";
    let mut found = groups(text).expect("groups");
    found.sort();
    let expected = [
        ("/kubepods/besteffort", "cpu.weight=1"),
        ("/kubepods/besteffort/best", "cpu.weight=1"),
        ("/kubepods/burstable", "cpu.weight=156"),
        ("/kubepods/burstable/open", "cpu.weight=100"),
        ("/kubepods/burstable/open/a", "cpu.weight=100 cpu.max=100000 100000"),
        ("/kubepods/burstable/open/b", "cpu.weight=1"),
        ("/kubepods/burstable/two", "cpu.weight=80 cpu.max=17500 10000"),
        ("/kubepods/burstable/two/a", "cpu.weight=35 cpu.max=2500 10000"),
        ("/kubepods/burstable/two/b", "cpu.weight=59 cpu.max=15000 10000 cpu.max.burst=5000"),
        ("/kubepods/tiny", "cpu.weight=1 cpu.max=1000 100000"),
        ("/kubepods/whole", "cpu.weight=174 cpu.max=200000 100000"),
    ];
    assert_eq!(found, expected.map(|(path, files)| (path.to_string(), files.to_string())));
}

#[test]
fn containers_and_units_have_the_words_of_docker_and_systemd() {
    let text = "[container.web]\ncpus = 1.5\ncpu-shares = 512\n[container.old]\ncpu-quota = 20000\ncpu-period = 50000\n\
        cpuset-cpus = '0-1'\n[unit.db]\nCPUWeight = 50\nCPUQuota = '20%'\n\
        [unit.'a-b.slice']\nCPUWeight = 'idle'\n[unit.'batch.service']\nSlice = 'a-b.slice'\nCPUQuota = '150%'\n\
        CPUQuotaPeriodSec = '10ms'\nAllowedCPUs = '2'\n[unit.small]\nCPUQuota = '0.5%'\n";
    let mut found = groups(text).expect("groups");
    found.sort();
    let expected = [
        ("/a.slice/a-b.slice", "cpu.idle=1"),
        ("/a.slice/a-b.slice/batch.service", "cpu.max=15000 10000 cpuset.cpus=2"),
        ("/system.slice/db.service", "cpu.weight=50 cpu.max=20000 100000"),
        ("/system.slice/docker-old.scope", "cpu.max=20000 50000 cpuset.cpus=0-1"),
        ("/system.slice/docker-web.scope", "cpu.weight=59 cpu.max=150000 100000"),
        ("/system.slice/small.service", "cpu.max=1000 200000"),
    ];
    assert_eq!(found, expected.map(|(path, files)| (path.to_string(), files.to_string())));
}

#[test]
fn wrong_words_and_values_are_told_by_their_keys() {
    for (text, problem) in [
        (
            "[pod.api]\nrequests.cpu = '500x'",
            "pod.api.requests.cpu: '500x' is no amount of CPUs, such as 2, 0.5 or \"500m\"",
        ),
        ("[pod.api]\nlimits.cpu = 0", "pod.api.limits.cpu: '0' is no amount of CPUs"),
        ("[pod.api]\nlimits.cpu = -1", "pod.api.limits.cpu: '-1' is no amount of CPUs"),
        ("[pod.api]\nlimits.cpu = '1.5m'", "pod.api.limits.cpu: '1.5m' is no amount of CPUs"),
        ("[pod.api]\nlimits.cpu = 99999999999", "pod.api.limits.cpu: '99999999999' is no amount of CPUs"),
        (
            "[pod.api]\nlimits.cpu = true",
            "pod.api.limits.cpu: an amount of CPUs is needed, not true or false",
        ),
        ("[pod.api]\nlimit.cpu = 1", "pod.api.limit.cpu: limits.cpu may be meant; a pod has requests.cpu"),
        ("[pod.api]\nlimits.memory = '1G'", "pod.api.limits.memory: "),
        (
            "[pod.api]\nrequests.cpu = 2\nlimits.cpu = 1",
            "pod.api.requests.cpu: 2000m is more than limits.cpu, 1000m",
        ),
        (
            "[pod.api]\ncpuCFSQuotaPeriod = '5s'",
            "pod.api.cpuCFSQuotaPeriod: a period of 5000000 us is outside 1 ms to 1 s",
        ),
        ("[pod.api.container.x]\nlimits.cpu = '?'", "pod.api.container.x.limits.cpu: '?' is no amount"),
        ("[pod]\napi = 5", "pod.api: a table is needed, not a whole number"),
        ("[pod.'a/b']\nlimits.cpu = 1", "pod.a/b: 'a/b' is no name of a pod"),
        ("pod = 5", "pod: a table is needed, not a whole number"),
        ("weights = '2020'", "weights: \"2020\" is neither \"2025\" (runc from 1.3.2 on) nor \"2021\""),
        ("[container.x]\ncpu-shares = 1", "container.x.cpu-shares: 1 is not from 2 to 262144"),
        ("[container.x]\ncpus = 1\ncpu-quota = 5000", "container.x.cpus: docker takes either cpus, or"),
        (
            "[container.x]\ncpu-share = 1",
            "container.x.cpu-share: cpu-shares may be meant; a container has cpus",
        ),
        ("[unit.x]\nCPUQuota = '20'", "unit.x.CPUQuota: '20' is no quota, such as \"20%\" or \"150%\""),
        ("[unit.x]\nCPUQuota = '0%'", "unit.x.CPUQuota: '0%' is no quota"),
        ("[unit.x]\nCPUWeight = 0", "unit.x.CPUWeight: 0 is not from 1 to 10000"),
        ("[unit.x]\nCPUWeight = 'much'", "unit.x.CPUWeight: 'much' is neither a whole number nor \"idle\""),
        ("[unit.x]\nCPUShares = 5", "unit.x.CPUShares: "),
        ("[unit.x]\nSlice = 'batch'", "unit.x.Slice: 'batch' is no slice: 'batch.slice'"),
        ("[unit.'a--b.slice']\nCPUWeight = 5", "unit.a--b.slice: "),
    ] {
        let Err(error) = groups(text) else { panic!("{text}") };
        let told = error.to_string();
        assert!(told.starts_with(problem) && !told.contains('\n'), "{told}\nnot\n{problem}");
    }
}
