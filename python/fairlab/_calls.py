"""The calls: words to the native half, answers back.

Must not know: how answers look.
"""

from __future__ import annotations

import json as _json
import shlex as _shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _native
from ._answers import Bisection, Blame, Comparison, Explanation, Fidelity, Latency, Oracle, Run, Schedstat, Summary, Sweep
from ._native import Error
from ._trace import Trace
from ._words import File, Names, Tasks, Time, command, names, options, remark, several
from ._words import time as _time
from .fleet import crew

MACHINE = "laptop8"
METRIC = "wakeup_latency_ns_p99"


_SETTING = ("beside", "machine", "warmup", "duration", "exact", "jobs", "seed", "task", "group", "by", "time", "out", "resume")


def _asked(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a call was given of what is run, where, and whose numbers are shown."""
    return {name: given[name] for name in _SETTING if name in given}


def _names(asked: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, object]]]:
    """Whose numbers are asked for, and of which time; and the options that say so."""
    found = {
        "tasks": [str(task) for task in several(asked.get("task", ()))],
        "groups": names(asked.get("group", ())),
        "by": names(asked.get("by", ())),
        "time": asked.get("time"),
    }
    pairs = [("--task", found["tasks"]), ("--group", found["groups"]), ("--time", found["time"]), ("--by", found["by"])]
    return found, pairs


def _request(
    what: str,
    workload: Names,
    kernels: list[str],
    asked: Mapping[str, Any],
    more: Sequence[tuple[str, object]],
) -> dict[str, Any]:
    """A request, with the program's command line for it."""
    words = command(workload)
    chosen, pairs = _names(asked)
    request: dict[str, Any] = {
        "workload": words,
        "beside": names(asked["beside"]),
        "machine": asked["machine"],
        "warmup": _time("warmup", asked["warmup"]),
        "duration": _time("duration", asked["duration"]),
        "exact": asked["exact"],
        "jobs": asked["jobs"],
        "seed": asked["seed"],
        "kernels": kernels,
        "sides": asked.get("sides") or [],
        "vary": asked.get("varied"),
        "names": chosen,
        "out": asked.get("out"),
        "resume": asked.get("resume", False),
    }
    said = options(
        [
            ("--beside", request["beside"]),
            ("--machine", None if request["machine"] == MACHINE else request["machine"]),
            ("--warmup", request["warmup"]),
            ("--duration", request["duration"]),
            ("--exact", request["exact"]),
            *pairs,
            ("--seed", None if request["seed"] == 1 else request["seed"]),
            *more,
            ("--out", request["out"]),
            ("--resume", request["resume"]),
        ]
    )
    request["words"] = [what, *words, *said]
    return request


def _wanted(
    metric: Names, margin: str | float, fail_on: Names, explain: bool = False
) -> tuple[dict[str, Any], list[tuple[str, object]]]:
    """What is asked of a comparison; and the options that say so."""
    wanted = {"metrics": names(metric), "margin": str(margin), "fail_on": names(fail_on), "explain": explain}
    pairs: list[tuple[str, object]] = [
        ("--metric", wanted["metrics"]),
        ("--margin", None if margin == "1%" else margin),
        ("--fail-on", wanted["fail_on"]),
        ("--explain", explain),
    ]
    return wanted, pairs


def _labels(labels: Mapping[str, object] | None) -> list[str]:
    """Labels as the program takes them."""
    return [f"{name}={value}" for name, value in (labels or {}).items()]


def run(
    workload: Names,
    *,
    kernel: Names = (),
    machine: str = MACHINE,
    seed: int = 1,
    seeds: int = 1,
    duration: Time | None = None,
    warmup: Time | None = None,
    exact: bool = False,
    beside: Names = (),
    task: Tasks = (),
    group: Names = (),
    time: str | None = None,
    by: Names = (),
    trace: File | None = None,
    probes: bool = False,
    out: File | None = None,
    resume: bool = False,
    jobs: int | None = None,
) -> Run:
    """Runs a workload on one kernel or several: modelled ones, this host's own, or booted ones.

    workload: its command line, as the real program takes it (``"schbench -t 20 -m 2"``), or the words of that.
    kernel: ``"v6.6"``, ``"v6.6-COMMIT"``, ``"v6.6+NO_FEATURE"``, ``"src:DIR"``, ``"qemu:bookworm"``, ``"host"``; or several.
    machine: a preset, ``"host"``, a TOML file, or ``"layout:4x1x24x2"``.
    seed, seeds: the first seed, and how many runs each kernel gets.
    duration: virtual time of each run from when it has settled; warmup: how long it settles.
    exact: nothing is left to chance. beside: another workload that runs beside it, or several.
    task, group: only metrics of these tasks, groups. by: all of a kind (task, group, workload), too.
    time: only what ends in this stretch of each run's clock, which begins at 0: ``"1.5..2"``, ``"500ms.."``; a number is seconds.
    trace: a file for the trace of a single run; its name's end tells the format. probes: the trace holds what probes would print.
    out: a new folder for everything: spec, metrics, outputs, traces. resume: goes on with that folder where it was stopped.
    jobs: how many runs go on at once; by default one a CPU.

    Raises :class:`fairlab.Error` where something means nothing, before anything runs.
    """
    asked = _asked(locals())
    more = [("--kernel", names(kernel)), ("--seeds", None if seeds == 1 else seeds), ("--trace", trace), ("--probes", probes)]
    request = _request("run", workload, names(kernel), asked, more)
    text, outputs, told = _native.run(request, seeds, trace, probes)
    remark(told)
    return Run(_json.loads(text), outputs)


def _sides(sides: Mapping[str, Mapping[str, object]] | None) -> list[str]:
    """Sides as the program takes them."""
    changes = {name: [f"{key}={_shlex.quote(str(value))}" for key, value in of.items()] for name, of in (sides or {}).items()}
    return [" ".join([f"{name}:", *words]) for name, words in changes.items()]


def _varied(vary: Mapping[str, Sequence[object]] | None) -> str | None:
    """The values of one key as the program takes them."""
    if vary is None:
        return None
    if len(vary) != 1:
        raise Error(f"vary: {len(vary)} keys are given; give one with its values")
    [(key, values)] = vary.items()
    return f"{key}={','.join(map(str, values))}"


def compare(
    workload: Names,
    *,
    kernel: Names = (),
    side: Mapping[str, Mapping[str, object]] | None = None,
    vary: Mapping[str, Sequence[object]] | None = None,
    machine: str = MACHINE,
    runs: int | None = None,
    runs_max: int = 30,
    seed: int = 1,
    duration: Time | None = None,
    warmup: Time | None = None,
    exact: bool = False,
    beside: Names = (),
    task: Tasks = (),
    group: Names = (),
    time: str | None = None,
    by: Names = (),
    metric: Names = (),
    margin: str | float = "1%",
    fail_on: Names = (),
    explain: bool = False,
    out: File | None = None,
    resume: bool = False,
    jobs: int | None = None,
) -> Comparison:
    """Runs a workload on two kernels or more, or on other sides, and says how they differ; the first is the baseline.

    side: what each changes of the rest: ``{"few": {"threads": 4}, "many": {"threads": 8, "kernel": "v6.6"}}``. Keys are kernel, machine,
    workload, warmup, duration, a name in braces (``"schbench -t {threads}"``), a key of the workload's file (``"group./pod.cpu.weight"``),
    or a setting of the kernel. vary: sides that differ in one key alone: ``{"threads": [4, 8]}``. One kernel at most is given then.
    runs: how many runs each side gets; each run has a seed of its own, which every side gets. Without, runs end as soon as the answer is
    sure for the workload's main metric, each ``metric`` or each rule, at the latest after runs_max. Runs in real time are 10.
    metric: only this one, or these. margin: differences below this share of the baseline are of no interest (``"1%"``, 0.01).
    fail_on: a gate's rules, what must not happen: ``"p99>+5%"``, ``"throughput<-2%"``, ``"cyclictest p99>+200us"``; see
    :attr:`Comparison.gate`. explain: why tasks wait longer or shorter, too; see :attr:`Comparison.causes`.
    The others are as for :func:`run`.
    """
    asked = _asked(locals()) | {"sides": _sides(side), "varied": _varied(vary)}
    wanted, pairs = _wanted(metric, margin, fail_on, explain)
    request = _request("compare", workload, names(kernel), asked, [("--kernel", names(kernel)), ("--side", asked["sides"]), ("--vary", asked["varied"]), ("--runs", runs), ("--runs-max", None if runs_max == 30 else runs_max), *pairs])
    return _compared({"request": request, "runs": runs, "runs_max": runs_max}, request["names"], wanted, request["words"])


def compare_folders(
    folders: Sequence[File],
    *,
    label: Mapping[str, object] | None = None,
    task: Tasks = (),
    group: Names = (),
    time: str | None = None,
    by: Names = (),
    metric: Names = (),
    margin: str | float = "1%",
    fail_on: Names = (),
) -> Comparison:
    """Compares runs that are there: folders that ``fairlab run --out`` wrote, or of traces, each of them a run.

    The first is the baseline. Where traces are of several hosts, a host is one observation: a file ``hosts.toml`` says whose they
    are, a folder ``host=NAME``, or the recording itself.
    label: only hosts with these labels: ``{"service": "web"}``. The others are as for :func:`compare`.
    """
    return _compare_sets("--folder", "folders", folders, locals())


def compare_hosts(
    sets: Sequence[File],
    *,
    label: Mapping[str, object] | None = None,
    task: Tasks = (),
    group: Names = (),
    by: Names = (),
    metric: Names = (),
    margin: str | float = "1%",
    fail_on: Names = (),
) -> Comparison:
    """Compares sets of hosts by what each counted: folders of files that ``fairlab summary --counts`` wrote.

    sets: the folders; the first is the baseline. A host is what its label ``host`` says, or else the first folder, or the file, and
    is one observation. label: only hosts with these labels: ``{"service": "web"}``. The others are as for :func:`compare`.
    """
    return _compare_sets("--counts", "sets", sets, locals())


def _compare_sets(option: str, kind: str, sets: Sequence[File], given: Mapping[str, Any]) -> Comparison:
    """Compares what is there, each side in a folder."""
    chosen, by_name = _names(given)
    labels = _labels(given["label"])
    wanted, pairs = _wanted(given["metric"], given["margin"], given["fail_on"])
    said = options([(option, list(sets)), ("--label", labels), *by_name, *pairs])
    return _compared({kind: list(sets), "labels": labels}, chosen, wanted, ["compare", *said], 5)


def _compared(
    sides: Mapping[str, Any], chosen: Mapping[str, Any], wanted: Mapping[str, Any], words: Sequence[str], depth: int = 4
) -> Comparison:
    """Compares sides of any kind. depth: of the caller, for remarks."""
    text, outputs, told = _native.compare(sides, chosen, wanted, words)
    remark(told, depth)
    return Comparison(_json.loads(text), outputs)


def compare_live(
    commands: Sequence[str],
    *,
    metric: Names = (),
    task: Tasks = (),
    group: Names = (),
    by: Names = (),
    runs: int = 10,
    margin: str | float = "1%",
    fail_on: Names = (),
) -> Comparison:
    """Runs shell commands on this host in turn (A B B A), records the scheduler meanwhile, and says how they differ.

    commands: each a line for ``sh -c``; the first is the baseline. What is done before or after a change (a setting, a service's
    version) is two commands. runs: how many each gets. The user has to be allowed to record, as root is.
    The others are as for :func:`compare`; this kernel beside a modelled one is ``compare(…, kernel=["host", "v6.6"])``.

    Raises :class:`fairlab.Error` where this host cannot be recorded, or a command fails.
    """
    given = locals()
    chosen, by_name = _names(given)
    wanted, pairs = _wanted(metric, margin, fail_on)
    said = options([("--live", list(commands)), *by_name, ("--runs", None if runs == 10 else runs), *pairs])
    return _compared({"commands": list(commands), "runs": runs}, chosen, wanted, ["compare", *said])


def compare_schedstat(first: File, second: File) -> Schedstat:
    """Compares what ``/proc/schedstat`` of two kernels counted, line by line.

    first, second: a copy of it, a file of ``perf sched stats record``, the folder of a recording (the difference of its two copies,
    which is its own time), or a folder with a run's ``schedstat.txt``. The first is the baseline.

    Raises :class:`fairlab.Error` where one of them is none of these.
    """
    words = ["compare", *options([("--schedstat", [first, second])])]
    return Schedstat(_json.loads(_native.compare_schedstat([first, second], words)))


def bisect(
    workload: Names,
    *,
    good: str,
    bad: str,
    metric: str | None = None,
    machine: str = MACHINE,
    runs: int = 40,
    seed: int = 1,
    duration: Time | None = None,
    warmup: Time | None = None,
    exact: bool = False,
    beside: Names = (),
    task: Tasks = (),
    group: Names = (),
    time: str | None = None,
    margin: str | float = "1%",
    error: str | float = "1%",
    on: str = "threads",
    jobs: int | None = None,
) -> Bisection:
    """Finds the commit that changed a metric between two kernels: of the change log, or of a repository.

    good, bad: a kernel on which the metric is as it should be, and one on which it is not.
    metric: what is looked at, or a claim that holds on the bad kernel (``"p99 > 2ms"``); by default what the workload is run for.
    task, group: the metric is theirs; one name. runs: the most runs that one kernel gets. error: how often the answer may be wrong.
    on: where runs are made, as for :func:`sweep`: the runs of each step are independent. The others are as for :func:`compare`.
    """
    asked = _asked(locals())
    more: list[tuple[str, object]] = [("--good", good), ("--bad", bad), ("--metric", metric)]
    more.append(("--runs", None if runs == 40 else runs))
    more += [(f"--{name}", None if value == "1%" else value) for name, value in (("margin", margin), ("error", error))]
    request = _request("bisect", workload, [good, bad], asked, more)
    with crew(on) as pool:
        text, _, told = _native.bisect(request, metric, str(margin), str(error), runs, pool)
    remark(told)
    return Bisection(_json.loads(text))


def sweep(
    spec: File | Mapping[str, Any],
    *,
    out: File | None = None,
    on: str = "threads",
    exact: bool = False,
    warmup: Time | None = None,
    metric: Names = METRIC,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Runs every combination of kernels, machines, workloads, options and seeds.

    spec: a sweep's TOML file, or a mapping with its keys (kernels, machines, workloads, seeds, duration_ms, options, …).
    out: its folder; by default the file's name without its end. What is done there is not done again.
    on: ``"threads"`` of this process; ``"ray"``, the cluster that this process is connected to, or a new one on this host;
    ``"ray://HOST:PORT"``, a cluster's client server. Results do not depend on it.
    exact: nothing is left to chance. warmup: how long each run settles.
    metric: what the answer sums up. jobs: how many threads; by default one a CPU.
    progress: is called with the cells that are done and all cells, each time that some are done, in a thread of its own.
    """
    is_spec = isinstance(spec, Mapping)
    if out is None and is_spec:
        raise Error("a sweep that is no file has no folder; give out=")
    file = None if is_spec else Path(spec)  # type: ignore[arg-type]
    folder = Path(out) if out is not None else _beside(file or Path())
    text = _json.dumps(spec) if is_spec else None
    cells = _native.Sweep(file, text, folder, exact, _time("warmup", warmup), names(metric))
    with crew(on) as pool:
        told = cells.run(jobs, pool, progress)
    remark([told[3]] if told[3] else [])
    said = options([("--out", out), ("--warmup", _time("warmup", warmup)), ("--exact", exact)])
    said += options([("--metric", None if metric == METRIC else names(metric))])
    words = ["sweep", str(file) if file is not None else "-", *said]
    by = ["kernel", "machine", "workload"]
    return Sweep(_json.loads(_native.query(folder, [], by, names(metric), words)), folder)


def _beside(file: Path) -> Path:
    """A file's name without its end."""
    return file.with_suffix("" if file.suffix else ".sweep")


def fidelity(
    folder: File,
    *,
    out: File | None = None,
    on: str = "threads",
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Fidelity:
    """Holds recordings of real kernels against the models of these kernels, decision by decision.

    folder: it holds recordings, at any depth. out: a folder that keeps what is done; the same call goes on there.
    on: where that runs, as for :func:`sweep`; recordings have to lie at one path on every machine, with equal files.
    jobs: how many are walked at once; by default one a CPU. progress: is called with those that are done and all.
    """
    with crew(on) as pool:
        at = {"out": out, "jobs": jobs, "crew": pool, "progress": progress}
        words = ["fidelity", str(folder), *options([("--out", out)])]
        text, told = _native.fidelity(folder, {**at, "words": words})
    remark(told)
    return Fidelity(_json.loads(text))


def oracle(
    release: str = "",
    *,
    seeds: int = 1,
    cases: int = 60,
    out: File | None = None,
    on: str = "threads",
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Oracle:
    """Compares models with the code of releases after each call: named workloads on 4 to 192 CPUs, and random cases.

    release: ``"6.1"``, ``"debian-6.1"``, or trees, ``"src:FOLDER"``; by default all of Debian's. seeds: of each named workload on each machine. cases: for each release.
    on: where that runs, as for :func:`sweep`; each machine builds the releases, and has to come to equal code. out, jobs and
    progress are as for :func:`fidelity`.
    """
    said = [("--seeds", None if seeds == 1 else seeds), ("--cases", None if cases == 60 else cases), ("--out", out)]
    words = ["fidelity", "--oracle", *([release] if release else []), *options(said)]
    with crew(on) as pool:
        at = {"out": out, "jobs": jobs, "crew": pool, "progress": progress, "words": words}
        return Oracle(_json.loads(_native.oracle(release, seeds, cases, at)))


def query(
    folder: File, *, by: Names = ("kernel", "machine", "workload"), where: Mapping[str, object] = {}, metric: Names = METRIC
) -> Sweep:
    """Sums up a sweep's cells, done or under way.

    folder: of the sweep. by: the columns that make a group: kernel, machine, workload, seed, or an option. where: only cells with
    these values. metric: the metrics that are summed up.
    """
    filters = [(column, str(value)) for column, value in where.items()]
    said = options([("--where", [f"{column}={value}" for column, value in filters]), ("--by", ",".join(names(by)))])
    said += options([("--metric", names(metric))])
    words = ["query", str(folder), *said]
    return Sweep(_json.loads(_native.query(folder, filters, names(by), names(metric), words)), Path(folder))


def _source(what: str, trace: File, given: Mapping[str, Any], more: Sequence[tuple[str, object]] = ()) -> dict[str, Any]:
    """Which trace, how it is read, and what of it the answer is about."""
    asked = {name: given[name] for name in ("clock_hz", "instance", "allow_unreadable")}
    chosen, by_name = _names(given)
    pairs = [(f"--{name.replace('_', '-')}", value) for name, value in asked.items()]
    words = [what, str(trace), *options([*by_name, *pairs, *more])]
    return {"file": trace, **asked, "names": chosen, "words": words}


def read_trace(
    trace: File,
    *,
    columns: Names | None = None,
    task: Tasks = (),
    group: Names = (),
    time: str | None = None,
    clock_hz: int | None = None,
    instance: str | None = None,
    allow_unreadable: bool = False,
) -> Trace:
    """Reads the events of a recorded trace into Arrow's memory.

    columns: only these, in this order; the others take no memory.
    task, group: only what happens to these tasks and what they do, and every switch, so that the tasks that ran instead stay known.
    The rest is as for :func:`summary`.
    """
    given = locals()
    wanted = None if columns is None else names(columns)
    table, text, told = _native.read_trace(_source("convert", trace, given), wanted)
    remark(told)
    return Trace(table, _json.loads(text))


def summary(
    trace: File,
    *,
    machine: str | None = None,
    task: Tasks = (),
    group: Names = (),
    time: str | None = None,
    clock_hz: int | None = None,
    instance: str | None = None,
    allow_unreadable: bool = False,
) -> Summary:
    """What a recorded trace comes to: latency percentiles, switches, migrations, idleness, time wasted beside waiting tasks.

    trace: perf.data, trace.dat, ftrace text and others, also compressed; or a recording's folder.
    task: only tasks of this name (a number at its end does not matter), or with this id; or of several. group: only tasks of this
    control group (``"/db"``), or of several. time: only what ends in this stretch of the trace's clock: ``"1.5..2"``, ``"500ms.."``;
    a number is seconds.
    machine: the machine, whose caches and nodes a trace does not tell. clock_hz: ticks per second of the trace's clock, where time
    stamps are integers. instance: only this trace instance of a trace.dat.
    allow_unreadable: answer though more than one per cent of the events of a kind cannot be read.
    """
    given = locals()
    text, told = _native.summary(_source("summary", trace, given, [("--machine", machine)]), machine)
    remark(told)
    return Summary(_json.loads(text))


def latency(
    trace: File,
    *,
    by_pid: bool = False,
    sort: str = "avg,max,count,runtime",
    task: Tasks = (),
    group: Names = (),
    time: str | None = None,
    clock_hz: int | None = None,
    instance: str | None = None,
    allow_unreadable: bool = False,
) -> Latency:
    """How long each task of a recorded trace waited for a CPU, as ``perf sched latency`` does.

    by_pid: threads of one name stay apart. sort: runtime, count, avg, max, pid; several between commas.
    The others are as for :func:`summary`.
    """
    given = locals()
    more = [("--pids", by_pid), ("--sort", None if sort == "avg,max,count,runtime" else sort)]
    text, told = _native.latency(_source("latency", trace, given, more), by_pid, sort)
    remark(told)
    return Latency(_json.loads(text))


def explain(
    trace: File,
    *,
    worst: int = 5,
    task: Tasks = (),
    group: Names = (),
    time: str | None = None,
    clock_hz: int | None = None,
    instance: str | None = None,
    allow_unreadable: bool = False,
) -> Explanation:
    """The worst waits of a recorded trace: the waker, the tasks that ran instead, the CPUs that idled, what ended it.

    task, group: only the waits of these. worst: how many, the longest first. The others are as for :func:`summary`.
    """
    if worst < 1:
        raise Error(f"worst={worst}: a whole number from 1 on; how many waits are explained")
    given = locals()
    more = [("--worst", None if worst == 5 else worst)]
    text, stories, told = _native.explain(_source("explain", trace, given, more), worst)
    remark(told)
    return Explanation(_json.loads(text), stories)


def blame(
    trace: File,
    after: File | None = None,
    *,
    each: bool = False,
    task: Tasks = (),
    group: Names = (),
    time: str | None = None,
    clock_hz: int | None = None,
    instance: str | None = None,
    allow_unreadable: bool = False,
) -> Blame:
    """Who makes tasks wait, in all: what had the CPU, by which rule, what ended it, who woke.

    task, group: only the waits of these. after: a second trace, made after a change; the answer then has what differs. each: threads
    of one name stay apart. The others are as for :func:`summary`.
    """
    given = locals()
    source = _source("blame", trace, given, [("--each", each)])
    if after is not None:
        source["words"].insert(2, str(after))
    text, printed, told = _native.blame(source, after, each)
    remark(told)
    return Blame(_json.loads(text), printed)
