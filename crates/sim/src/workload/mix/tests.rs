//! Mixes on modelled kernels: who gets how much, where, and when.

use fairlab_event::{Event, EventKind, Ns, Pid, sink_fn};
use fairlab_kernel::topology::SmtNumbering;
use fairlab_kernel::{CpuMask, Topology};

use super::*;
use crate::Engine;
use crate::machine::Machine;

fn machine(cpus: u32) -> Machine {
    let machine = Machine::preset("laptop8").expect("a machine").exact();
    let topology = Topology::regular(1, 1, cpus, 1, SmtNumbering::Adjacent).expect("a machine");
    Machine { name: "test".to_string(), topology, hz: 1000, frequency_domains: Vec::new(), ..machine }
}

fn build(text: &str) -> Result<Box<dyn Workload>, String> {
    let files = |path: &str| match path {
        "some/where.toml" => Ok(text.to_string()),
        "some/app.json" => Ok(r#"{"tasks":{"t":{"run":100,"sleep":100}}}"#.to_string()),
        _ => Err(format!("{path}: there is none")),
    };
    parse(&["some/where.toml".to_string()], &files)
}

/// How much each thread ran, by pid in order of creation, with its name, in ms from `from` to `to`; and where.
struct Ran {
    pid: Pid,
    comm: String,
    ms: f64,
    cpus: CpuMask,
}

fn run(kernel: &str, cpus: u32, text: &str, from: u64, to: u64) -> (Vec<Ran>, Engine) {
    let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine(cpus), 1);
    engine.set_tracing(true);
    engine.start(build(text).expect("a mix"));
    let mut ran: Vec<Ran> = Vec::new();
    let (from, to) = (Ns::from_ms(from), Ns::from_ms(to));
    let mut since = vec![Ns::ZERO; cpus as usize];
    engine.run_until(
        to,
        &mut sink_fn(|event: &Event<'_>| {
            let EventKind::SchedSwitch(switch) = &event.kind else { return };
            let began = std::mem::replace(&mut since[event.cpu.index()], event.time).max(from);
            if switch.prev_pid == Pid::IDLE || event.time <= from {
                return;
            }
            let ms = event.time.since(began).as_secs_f64() * 1e3;
            let known = ran.iter().position(|one| one.pid == switch.prev_pid).unwrap_or_else(|| {
                let comm = switch.prev_comm.to_str().into_owned();
                ran.push(Ran { pid: switch.prev_pid, comm, ms: 0.0, cpus: CpuMask::EMPTY });
                ran.len() - 1
            });
            ran[known].ms += ms;
            if ms > 0.0 {
                ran[known].cpus.set(event.cpu);
            }
        }),
    );
    ran.sort_by_key(|one| one.pid.0);
    (ran, engine)
}

/// How much the jobs of each of two workloads ran.
fn shares(kernel: &str, text: &str, from: u64, to: u64) -> [f64; 2] {
    let (ran, engine) = run(kernel, 1, text, from, to);
    ["one", "two"].map(|name| {
        let is_its = |one: &&Ran| engine.workload(0).member(thread_of(one.pid)) == Some(name);
        ran.iter().filter(is_its).map(|one| one.ms).sum()
    })
}

const TWO: &str = "[[workload]]\nrun = 'jobs spin -n 1 -r 400'\nname = 'one'\ngroup = '/one'\n\
    [[workload]]\nrun = 'jobs spin -n 1 -r 400'\nname = 'two'\ngroup = '/two'\n";

#[test]
fn groups_share_by_their_weights_and_equally_without() {
    for kernel in ["v5.10", "v6.6", "v6.12", "v7.2"] {
        let ratio = |weight: &str| {
            let [one, two] = shares(kernel, &format!("{weight}{TWO}"), 500, 3500);
            one / two
        };
        let weighted = ratio("[group.'/one']\ncpu.weight = 200\n");
        assert!((1.9..2.1).contains(&weighted), "{kernel}: {weighted}");
        let plain = ratio("");
        assert!((0.95..1.05).contains(&plain), "{kernel}: {plain}");
        // Below one group each weighs what it is given there, whatever its nice level.
        let nested = TWO.replace("'/one'", "'/all/one'").replace("'/two'", "'/all/two'\nnice = 19");
        let [one, two] =
            shares(kernel, &format!("[group.'/all/one']\ncpu.weight = 300\n{nested}"), 500, 3500);
        assert!((2.8..3.2).contains(&(one / two)), "{kernel}: {one} : {two}");
    }
}

#[test]
fn places_are_held() {
    let text = |place: &str| TWO.replace("group = '/one'", place).replace("group = '/two'", "");
    for kernel in ["v5.10", "v6.6", "v7.2"] {
        for (place, least, most) in [
            ("nice = 5", 0.3, 0.36),
            ("policy = 'batch'", 0.9, 1.1),
            ("policy = 'idle'", 0.0, 0.02),
            ("nice = -5", 2.8, 3.3),
            // As good as all, but for what real-time tasks have to leave.
            ("policy = 'fifo:10'", 10.0, f64::INFINITY),
            ("policy = 'rr:10'", 10.0, f64::INFINITY),
        ] {
            // What still runs at the end is not counted: with a stop it ends before.
            let text = text(place).replace("name = 'one'", "name = 'one'\nstop = '3s'");
            let [one, two] = shares(kernel, &text, 500, 3001);
            assert!((least..=most).contains(&(one / two)), "{kernel} {place}: {one} : {two}");
        }
    }
}

/// One task in a session of its own beside four in another: a half each where sessions have groups, a fifth otherwise.
#[test]
fn sessions_share_by_session_where_autogroups_are_on() {
    let text = |session: &str| {
        format!(
            "[[workload]]\nrun = 'jobs spin -n 1 -r 400'\nname = 'one'\nsession = {session}\n\
             [[workload]]\nrun = 'jobs spin -n 4 -r 400'\nname = 'two'\nsession = true\n"
        )
    };
    for (kernel, session, expected) in [
        ("v6.1+AUTOGROUP", "true", 0.5),
        ("v6.1", "true", 0.2),
        ("v6.1+NO_AUTOGROUP", "true", 0.2),
        ("v7.2+AUTOGROUP", "true", 0.5),
        ("v7.2+AUTOGROUP", "5", 0.2465),
    ] {
        let [one, two] = shares(kernel, &text(session), 500, 3500);
        let share = one / (one + two);
        assert!((share - expected).abs() < 0.02, "{kernel} {session}: {share}");
    }
    // A group that is said goes before the session's.
    let grouped = text("true").replace("name = 'two'", "name = 'two'\ngroup = '/x'");
    let [one, two] =
        shares("v6.1+AUTOGROUP", &format!("[group.'/x']\ncpu.weight = 300\n{grouped}"), 500, 3500);
    assert!((2.8..3.2).contains(&(two / one)), "{one} : {two}");
}

#[test]
fn a_quota_throttles_and_a_later_one_lifts_it() {
    let text = format!(
        "[group.'/one']\ncpu.max = '20000 100000'\n\"cpu.max.burst\" = 5000\n{TWO}\
         [[at]]\ntime = '2s'\ngroup = '/one'\ncpu.max = 'max'\n"
    );
    for kernel in ["v5.10", "v6.6", "v7.2"] {
        let [one, two] = shares(kernel, &text, 500, 1900);
        assert!((0.18..0.23).contains(&(one / (one + two))), "{kernel}: {one} : {two}");
        let [one, two] = shares(kernel, &text, 2200, 4000);
        assert!((0.95..1.05).contains(&(one / two)), "{kernel}: {one} : {two}");
    }
}

#[test]
fn writes_and_moves_come_at_their_times() {
    let events = "[[at]]\ntime = '2s'\ngroup = '/one'\ncpu.weight = 300\n\
        [[at]]\ntime = '4s'\nmove = 'two'\nto = '/one'\n[[at]]\ntime = '6s'\nmove = 'two'\nto = '/'\n";
    let text = format!("{events}{TWO}");
    for kernel in ["v5.10", "v6.6", "v7.2"] {
        for (from, to, expected) in
            [(500, 1900, 1.0), (2300, 3900, 3.0), (4300, 5900, 1.0), (6500, 7900, 3.0)]
        {
            let [one, two] = shares(kernel, &text, from, to);
            let ratio = one / two;
            assert!((expected * 0.93..expected * 1.07).contains(&ratio), "{kernel} from {from} ms: {ratio}");
        }
    }
}

#[test]
fn a_workload_starts_and_stops_at_its_times() {
    for kind in
        ["spin -r 100000", "sleep -s 300000", "pairs -r 100", "yield -r 100", "io -s 1000", "spawn -k 3"]
    {
        let text = format!(
            "[[workload]]\nrun = 'jobs spin -n 1'\nname = 'on'\nstop = '5s'\n\
             [[workload]]\nrun = 'jobs {kind} -n 3'\nname = 'off'\nstart = '1s'\nstop = '2s'\n"
        );
        let (_, engine) = run("v6.6", 2, &text, 0, 4000);
        let members = engine.workload(0).members();
        let off = members.iter().find(|member| member.name == "off").expect("it has begun");
        let lasted = off.until.map(|until| until.0 / 1_000_000);
        assert_eq!(off.since.0 / 1_000_000, 1000, "{kind}");
        assert!(lasted.is_some_and(|end| (2000..2020).contains(&end)), "{kind}: {lasted:?}");
        assert!(members[0].until.is_none());
        let (_, engine) = run("v6.6", 2, &text, 0, 9000);
        assert!((5000..5100).contains(&(engine.now().0 / 1_000_000)), "{kind}: all have ended");
    }
}

#[test]
fn cpusets_hold_and_changes_move_tasks() {
    let text = "[group.'/left']\ncpuset.cpus = '0-1'\n[group.'/left/low']\ncpuset.cpus = '1-3'\n\
        [[workload]]\nrun = 'jobs spin -n 3'\ngroup = '/left'\n\
        [[workload]]\nrun = 'jobs sleep -n 2 -r 300 -s 300'\ngroup = '/left/low'\n\
        [[workload]]\nrun = 'jobs spin -n 2'\ncpus = '2,4'\ngroup = '/right'\n\
        [[at]]\ntime = '1s'\ngroup = '/left'\ncpuset.cpus = '3,5'\n\
        [[at]]\ntime = '1s'\ngroup = '/right'\ncpuset.cpus = '4-5'\n\
        [[at]]\ntime = '2s'\ngroup = '/right'\ncpuset.cpus = '6-7'\n\
        [[at]]\ntime = '3s'\ngroup = '/right'\ncpuset.cpus = ''\n";
    let cpus = |list: &str| CpuMask::parse_list(list).expect("a list");
    for kernel in ["v4.18", "v5.10", "v6.6", "v6.12", "v6.18", "v7.2"] {
        for (from, to, lists) in [
            (100, 999, ["0-1", "1", "2,4"]),
            (1003, 1999, ["3,5", "3", "4"]),
            (2003, 2999, ["3,5", "3", "6-7"]),
            (3003, 3999, ["3,5", "3", "2,4"]),
        ] {
            let (ran, engine) = run(kernel, 8, text, from, to);
            for one in ran.iter().filter(|one| one.comm == "job" && one.ms > 0.0) {
                let place = engine.workload(0).member(thread_of(one.pid)).expect("it is of one of them");
                let number =
                    ["jobs", "jobs-2", "jobs-3"].iter().position(|name| *name == place).expect("a name");
                let outside = one.cpus.and_not(&cpus(lists[number]));
                assert!(
                    outside.is_empty(),
                    "{kernel} from {from}: {place} ran on {outside}, not {}",
                    lists[number]
                );
            }
        }
    }
}

/// Two groups of equal weight with four spinners each on one CPU, one of them bound by its tasks' masks and the other by its
/// cpuset. Booted kernels gave them 371 and 369 rounds (7.2.13), and 554 and 183 (7.3.4): there a group's weight counts once for
/// each of its tasks, as far as its cpuset has CPUs for them.
#[test]
fn a_group_without_a_cpuset_weighs_more_on_one_cpu_from_v7_3() {
    let text = "[group.'/a']\ncpu.weight = 100\n[group.'/b']\ncpu.weight = 100\ncpuset.cpus = '1'\n\
        [[workload]]\nrun = 'jobs spin -n 4'\ncpus = '1'\ngroup = '/a'\n\
        [[workload]]\nrun = 'jobs spin -n 4'\ngroup = '/b'\n";
    let ratio = |kernel: &str, more: &str, (from, to): (u64, u64)| {
        let (ran, engine) = run(kernel, 4, &format!("{text}{more}"), from, to);
        let of = |name: &str| {
            let is_its = |one: &&Ran| engine.workload(0).member(thread_of(one.pid)) == Some(name);
            ran.iter().filter(is_its).map(|one| one.ms).sum::<f64>()
        };
        of("jobs") / of("jobs-2")
    };
    for (kernel, expected) in [("v7.2", 1.0), ("v7.3", 3.0), ("v7.3-concurrent-shares", 1.0)] {
        let found = ratio(kernel, "", (500, 3500));
        assert!((found - expected).abs() < 0.1, "{kernel}: {found}");
    }
    let widened = "[[at]]\ntime = '1s'\ngroup = '/b'\ncpuset.cpus = '0-3'\n";
    let found = ratio("v7.3", widened, (1100, 1600));
    assert!(found < 1.1, "its tasks stay where they are for now, and its weight counts as often: {found}");
}

/// Threads are created in order of their numbers.
fn thread_of(pid: Pid) -> ThreadId {
    ThreadId((pid.0 - 1000) as u32)
}

#[test]
fn a_members_course_does_not_hang_on_those_elsewhere() {
    let alone =
        "[[workload]]\nrun = 'jobs sleep -n 2 -r 300 -s 700'\nname = 'x'\ncpus = '0-1'\nstop = '1s'\n";
    let other = "[[workload]]\nrun = 'jobs sleep -n 3'\nname = 'y'\ncpus = '2-3'\n";
    let done = |text: &str| {
        let (_, engine) = run("v6.6", 4, text, 0, 1100);
        let workload = engine.workload(0);
        workload.members().first().map_or(workload.progress().map_or(0, |(_, count)| count), |x| x.count)
    };
    let (one, two) = (done(alone), done(&format!("{alone}{other}")));
    assert!(one > 1000 && one.abs_diff(two) * 100 <= one, "{one} and {two}");
}

#[test]
fn what_is_run_decides_alike_each_time() {
    let text = format!(
        "{TWO}[[workload]]\nrun = 'random'\nstop = '400ms'\n[[at]]\ntime = '200ms'\nmove = 'random'\nto = '/one'\n"
    );
    let digest = || {
        let mut digest = fairlab_event::DigestSink::default();
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine(4), 7);
        engine.set_tracing(true);
        engine.start(build(&text).expect("a mix"));
        engine.run_until(Ns::from_ms(600), &mut digest);
        digest.digest().to_string()
    };
    assert_eq!(digest(), digest());
}

#[test]
fn a_mix_ends_with_its_main_workload() {
    let args =
        ["--beside", "jobs spin -n 9", "--beside", "periodic", "--", "pipe", "-l", "300"].map(String::from);
    let none = |path: &str| Err(format!("{path}: there is none"));
    let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine(4), 1);
    engine.start(parse(&args, &none).expect("a mix"));
    engine.run_until(Ns::from_secs(60), &mut ());
    assert!(engine.now() < Ns::from_secs(10), "{}", engine.now());
    let workload = engine.workload(0);
    assert_eq!(workload.progress().map(|(_, count)| count), Some(300));
    let names = workload.members().iter().map(|member| member.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names, ["pipe", "jobs", "periodic"]);
    let output = workload.output(engine.now());
    for heading in ["── pipe: pipe -l 300\n", "── jobs: jobs spin -n 9\n", "── periodic: periodic\n"]
    {
        assert!(output.contains(heading), "{output}");
    }
    let metrics = workload.metrics();
    assert!(metrics.iter().any(|(name, _)| name == "periodic periodic_lateness_us_p99"), "{metrics:?}");
}

#[test]
fn groups_of_workloads_lie_in_their_places() {
    let text = "[group.'/db/x']\ncpu.weight = 7\n[[workload]]\nrun = 'rt-app app.json'\n\
        [[workload]]\nrun = 'cgroup cpu.weight=50 / cpu.weight=60 pipe'\ngroup = '/db'\n\
        [[workload]]\nrun = 'cgroup cpu.weight=70 pipe'\ngroup = '/db'\n[[workload]]\nrun = 'cgroup cpu.idle=1 pipe'\n";
    let groups = build(text).expect("a mix").groups();
    let all =
        groups.iter().map(|group| (group.name.as_str(), group.parent, group.weight)).collect::<Vec<_>>();
    let expected = [
        ("/db", None, 100),
        ("/db/x", Some(0), 7),
        ("/db/group0", Some(0), 50),
        ("/db/group0/group1", Some(2), 60),
        ("/db/cgroup-2-group0", Some(0), 70),
        ("/group0", None, 100),
    ];
    assert_eq!(all, expected);
}

/// A pod, a container and a unit are groups like any other; what `[group]` says of them goes before.
#[test]
fn pods_containers_and_units_are_named_as_groups() {
    let text = "[pod.api]\nrequests.cpu = 1\n[container.web]\ncpu-shares = 512\n[unit.db]\nCPUWeight = 50\n\
        [group.'/kubepods']\ncpu.weight = 303\n[group.'/kubepods/burstable/api']\ncpu.weight = 7\n\
        [[workload]]\nrun = 'pipe'\ngroup = 'pod.api'\n[[workload]]\nrun = 'pipe'\ngroup = 'container.web'\n\
        [[workload]]\n[[workload.task]]\nname = 'a'\ngroup = 'unit.db'\nsteps = ['run 1us']\n\
        [[at]]\ntime = '1s'\nmove = 'pipe'\nto = 'unit.db'\n[[at]]\ntime = '1s'\ngroup = 'pod.api'\ncpu.max = '5000'\n";
    let groups = build(text).expect("a mix").groups();
    let all = groups.iter().map(|group| (group.name.as_str(), group.weight)).collect::<Vec<_>>();
    let expected = [
        ("/kubepods", 303),
        ("/kubepods/burstable", 100),
        ("/kubepods/burstable/api", 7),
        ("/system.slice", 100),
        ("/system.slice/docker-web.scope", 59),
        ("/system.slice/db.service", 50),
    ];
    assert_eq!(all, expected);
    each_is_refused(&[
        ("[pod.api]\nlimits.cpu = '500x'\n", "line 2: pod.api.limits.cpu: '500x' is no amount of CPUs"),
        ("[pod.api]\nlimits.cpu = 1\n\"cpu.max.burst\" = 900000\n", "line 1: pod.api.cpu.max: "),
        (
            "[pod.api]\n[[workload]]\nrun = 'pipe'\ngroup = 'pod.ape'",
            "line 4: workload[0].group: there is no [pod.ape]: pod.api may be meant; the file has pod.api",
        ),
        (
            "[[task]]\nname = 'a'\ngroup = 'unit.x'\nsteps = ['run 1us']",
            "line 3: task[0].group: there is no [unit.x]: the file has none",
        ),
    ]);
}

/// Pods that request one CPU and four share one as their weights say: 100 to 303, and 39 to 157 under the former rule.
#[test]
fn pods_share_as_their_requests_say() {
    for (rule, expected) in [("2025", 100.0 / 303.0), ("2021", 39.0 / 157.0)] {
        let text = format!(
            "weights = {rule}\n[pod.a]\nrequests.cpu = 1\n[pod.b]\nrequests.cpu = 4\n\
             [[workload]]\nrun = 'jobs spin -n 1 -r 400'\nname = 'one'\ngroup = 'pod.a'\n\
             [[workload]]\nrun = 'jobs spin -n 1 -r 400'\nname = 'two'\ngroup = 'pod.b'\n"
        );
        let [one, two] = shares("v6.6", &text, 500, 3500);
        assert!((one / two - expected).abs() < expected * 0.07, "{rule}: {one} : {two}");
    }
}

/// A limit of a quarter of a CPU is a quota of 25 ms each 100 ms.
#[test]
fn a_pods_limit_is_a_quota() {
    let text = format!("[pod.a]\nlimits.cpu = '250m'\n{}", TWO.replace("'/one'", "'pod.a'"));
    let [one, two] = shares("v6.6", &text, 500, 3500);
    assert!((0.23..0.27).contains(&(one / (one + two))), "{one} : {two}");
}

/// Each text, as it is or with a workload behind it, is refused in one line that has these words.
#[track_caller]
fn each_is_refused(cases: &[(&str, &str)]) {
    for (text, problem) in cases {
        let is_whole =
            text.contains("workload") || text.contains("task") || text.is_empty() || *text == "x = \n";
        let whole = if is_whole { (*text).to_string() } else { format!("{text}{PIPE}") };
        let Err(error) = build(&whole) else { panic!("{text}") };
        assert!(error.contains(problem) && error.starts_with("some/where.toml: "), "{error}\nnot\n{problem}");
        assert!(!error.contains('\n'), "{error}");
    }
}

const PIPE: &str = "[[workload]]\nrun = 'pipe'\n";

#[test]
fn what_is_wrong_of_a_workload_is_told_with_its_line() {
    each_is_refused(&[
        ("x = \n", "line 1: "),
        ("", "line 1: workload: there is none"),
        ("workload = 5", "line 1: workload: a table is needed, not a whole number"),
        ("[[workload]]\nname = 'x'", "line 1: workload[0]: it has neither run"),
        ("[[workload]]\nrun = ''", "line 2: workload[0].run: it is empty"),
        ("[[workload]]\nrun = \"a 'b\"", "line 2: workload[0].run: a quotation mark"),
        ("[[workload]]\nrun = 'dance'", "line 2: workload[0].run: unknown workload 'dance'"),
        ("[[workload]]\nrun = 'pipe -q'", "line 2: workload[0].run: pipe: "),
        (
            "[[workload]]\nrun = 'rt-app none.json'",
            "line 2: workload[0].run: rt-app: some/none.json: there is none",
        ),
        ("[[workload]]\nrun = 'where.toml'", "more than 8 deep"),
        (
            "[[workload]]\nrun = 'pipe'\nnices = 5",
            "line 3: workload[0].nices: nice may be meant; a workload has",
        ),
        ("[[workload]]\nrun = 'pipe'\nnice = 50", "line 3: workload[0].nice: 50 is not from -20 to 19"),
        ("[[workload]]\nrun = 'pipe'\npolicy = 'deadline'", "line 3: workload[0].policy: SCHED_DEADLINE"),
        ("[[workload]]\nrun = 'pipe'\nstart = 5", "line 3: workload[0].start: a text in quotes is needed"),
        (
            "[[workload]]\nrun = 'pipe'\nstart = '5s'\nstop = '5s'",
            "line 4: workload[0].stop: it stops before",
        ),
        ("[[workload]]\nrun = 'pipe'\nname = 'a b'", "line 3: workload[0].name: 'a b' is no name"),
        ("[[workload]]\nrun = 'pipe'\nsession = 'yes'", "line 3: workload[0].session: true, false or a nice"),
    ]);
    let twice = format!("{PIPE}name = 'x'\n{PIPE}name = 'x'\n");
    let Err(error) = build(&twice) else { panic!("{twice}") };
    assert!(error.contains("line 6: workload[1].name: two workloads are called 'x'"), "{error}");
}

#[test]
fn what_is_wrong_of_groups_tasks_and_events_is_told_with_its_line() {
    each_is_refused(&[
        ("[group.'db']\n", "line 1: group.db: 'db': the path of a group begins with '/'"),
        ("[group.'/']\ncpu.weight = 5\n", "line 1: group./: the root group has no such files"),
        ("[group.'/a']\ncpu.wait = 5\n", "line 2: group./a.cpu.wait: there is no such file: cpu.weight may"),
        (
            "[[task]]\nname = 'a'\nsteps = [\n'run 1us',\n'slep 1s']\n",
            "line 5: task[0].steps[1]: 'slep 1s': there is no step 'slep'",
        ),
        (
            "[[task]]\nname = 'a'\nsteps = ['run 1us']\ncuont = 5\n",
            "line 4: task[0].cuont: a task has no 'cuont': count may",
        ),
        ("[group.'/a']\ncpu.weight = 0\n", "line 2: group./a.cpu.weight: 0 is outside 1 to 10000"),
        ("[group.'/a']\ncpu.max = '5'\n", "line 2: group./a.cpu.max: a quota of 5000 ns is less than 1 ms"),
        ("[group.'/a']\ncpu.max = 1.5\n", "line 2: group./a.cpu.max: a number or a text is needed"),
        (
            "[group.'/a']\ncpuset.cpus = '7-5'\n",
            "line 2: group./a.cpuset.cpus: '7-5' is a range that runs backwards",
        ),
        (
            "[group.'/a']\ncpu.idle = 1\ncpu.weight = 5\n",
            "line 3: group./a.cpu.weight: the kernel takes no weight",
        ),
        ("[[at]]\ntime = '1s'\n", "line 2: at[0].time: it says neither move"),
        ("[[at]]\nmove = 'pipe'\nto = '/x'\n", "line 1: at[0]: time = \"5s\" is missing"),
        (
            "[[at]]\ntime = '1s'\nmove = 'pipes'\nto = '/x'\n",
            "line 3: at[0].move: no workload is called 'pipes': there are pipe",
        ),
        ("[[at]]\ntime = '1s'\nmove = 'pipe'\n", "line 3: at[0].move: to = \"/GROUP\" is missing"),
        ("[[at]]\ntime = '1s'\ngroup = '/x'\n", "line 3: at[0].group: nothing is written"),
        (
            "[[at]]\ntime = '1s'\ngroup = '/x'\ncpu.weight = 'much'\n",
            "line 4: at[0].cpu.weight: 'much' is not a whole",
        ),
        ("[grup.'/a']\n", "line 1: grup: group may be meant; a file has "),
    ]);
}
