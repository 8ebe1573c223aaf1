"""The calls: words to the native half, answers back.

Must not know: how answers look.
"""

from __future__ import annotations

import json as _json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _native
from ._answers import Bisection, Comparison, Explanation, Latency, Run, Summary, Sweep
from ._native import Error
from ._trace import Trace
from ._words import File, Names, Time, command, names, options, remark, time

MACHINE = "laptop8"
METRIC = "wakeup_latency_ns_p99"


def _request(
    what: str,
    workload: Names,
    kernels: list[str],
    asked: Mapping[str, Any],
    more: Sequence[tuple[str, object]],
) -> dict[str, Any]:
    """A request, with the program's command line that asks for the same."""
    words = command(workload)
    request: dict[str, Any] = {
        "workload": words,
        "beside": names(asked["beside"]),
        "machine": asked["machine"],
        "warmup": time("warmup", asked["warmup"]),
        "duration": time("duration", asked["duration"]),
        "exact": asked["exact"],
        "jobs": asked["jobs"],
        "seed": asked["seed"],
        "kernels": kernels,
        "tasks": names(asked.get("task", ())),
        "groups": names(asked.get("group", ())),
        "by": names(asked.get("by", ())),
    }
    said = options(
        [
            ("--beside", request["beside"]),
            ("--machine", None if request["machine"] == MACHINE else request["machine"]),
            ("--warmup", request["warmup"]),
            ("--duration", request["duration"]),
            ("--exact", request["exact"]),
            ("--task", request["tasks"]),
            ("--group", request["groups"]),
            ("--by", request["by"]),
            ("--seed", None if request["seed"] == 1 else request["seed"]),
            *more,
        ]
    )
    request["words"] = [what, *words, *said]
    return request


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
    task: Names = (),
    group: Names = (),
    by: Names = (),
    trace: File | None = None,
    probes: bool = False,
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
    trace: a file for the trace of a single run; its name's end tells the format. probes: the trace holds what probes would print.
    jobs: how many runs go on at once; by default one a CPU.

    Raises :class:`fairlab.Error` where something means nothing, before anything runs.
    """
    asked = {"beside": beside, "machine": machine, "warmup": warmup, "duration": duration, "exact": exact, "jobs": jobs}
    asked |= {"seed": seed, "task": task, "group": group, "by": by}
    more = [("--kernel", names(kernel)), ("--seeds", None if seeds == 1 else seeds), ("--trace", trace), ("--probes", probes)]
    request = _request("run", workload, names(kernel), asked, more)
    text, outputs, told = _native.run(request, seeds, trace, probes)
    remark(told)
    return Run(_json.loads(text), outputs)


def compare(
    workload: Names,
    *,
    kernel: Names,
    machine: str = MACHINE,
    runs: int = 10,
    seed: int = 1,
    duration: Time | None = None,
    warmup: Time | None = None,
    exact: bool = False,
    beside: Names = (),
    task: Names = (),
    group: Names = (),
    by: Names = (),
    metric: Names = (),
    margin: str | float = "1%",
    jobs: int | None = None,
) -> Comparison:
    """Runs a workload on two kernels or more and says how they differ; the first is the baseline.

    runs: how many runs each kernel gets; each has a seed of its own, and the same on every kernel.
    metric: only this one, or these. margin: differences below this share of the baseline are of no interest (``"1%"``, 0.01).
    The others are as for :func:`run`.
    """
    asked = {"beside": beside, "machine": machine, "warmup": warmup, "duration": duration, "exact": exact, "jobs": jobs}
    asked |= {"seed": seed, "task": task, "group": group, "by": by}
    more = [("--kernel", names(kernel)), ("--runs", runs), ("--metric", names(metric))]
    more.append(("--margin", None if margin == "1%" else margin))
    request = _request("compare", workload, names(kernel), asked, more)
    text, outputs, told = _native.compare(request, runs, names(metric), str(margin))
    remark(told)
    return Comparison(_json.loads(text), outputs)


def compare_folders(folders: Sequence[File], *, metric: Names = (), margin: str | float = "1%") -> Comparison:
    """Compares runs that are there: folders that ``fairlab run --out`` wrote, or of traces, each of them a run.

    The first is the baseline; metric and margin are as for :func:`compare`.
    """
    said = options([("--folder", list(folders)), ("--metric", names(metric))])
    said += options([("--margin", None if margin == "1%" else margin)])
    text, outputs, told = _native.compare_folders(list(folders), names(metric), str(margin), ["compare", *said])
    remark(told)
    return Comparison(_json.loads(text), outputs)


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
    margin: str | float = "1%",
    error: str | float = "1%",
    jobs: int | None = None,
) -> Bisection:
    """Finds the commit that changed a metric between two kernels: of the change log, or of a repository.

    good, bad: a kernel on which the metric is as it should be, and one on which it is not.
    metric: what is looked at, or a claim that holds on the bad kernel (``"p99 > 2ms"``); by default what the workload is run for.
    runs: the most runs that one kernel gets. error: how often the answer may be wrong. The others are as for :func:`compare`.
    """
    asked = {"beside": beside, "machine": machine, "warmup": warmup, "duration": duration, "exact": exact, "jobs": jobs}
    asked |= {"seed": seed}
    more: list[tuple[str, object]] = [("--good", good), ("--bad", bad), ("--metric", metric)]
    more.append(("--runs", None if runs == 40 else runs))
    more += [(f"--{name}", None if value == "1%" else value) for name, value in (("margin", margin), ("error", error))]
    request = _request("bisect", workload, [good, bad], asked, more)
    text, _, told = _native.bisect(request, metric, str(margin), str(error), runs)
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
    progress: is called with the cells that are done and all cells, each time that some have come back from a cluster.
    """
    is_spec = isinstance(spec, Mapping)
    if out is None and is_spec:
        raise Error("a sweep that is no file has no folder; give out=")
    file = None if is_spec else Path(spec)  # type: ignore[arg-type]
    folder = Path(out) if out is not None else _beside(file or Path())
    text = _json.dumps(spec) if is_spec else None
    cells = _native.Sweep(file, text, folder, exact, time("warmup", warmup), names(metric))
    if on == "threads":
        told = cells.run(jobs)
    else:
        from . import fleet

        told = fleet.carry(cells, on, progress)
    remark([told[3]] if told[3] else [])
    said = options([("--out", out), ("--warmup", time("warmup", warmup)), ("--exact", exact)])
    said += options([("--metric", None if metric == METRIC else names(metric))])
    words = ["sweep", str(file) if file is not None else "-", *said]
    by = ["kernel", "machine", "workload"]
    return Sweep(_json.loads(_native.query(folder, [], by, names(metric), words)), folder)


def _beside(file: Path) -> Path:
    """A file's name without its end."""
    return file.with_suffix("" if file.suffix else ".sweep")


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


def _source(what: str, trace: File, asked: Mapping[str, Any], more: Sequence[tuple[str, object]] = ()) -> dict[str, Any]:
    pairs = [
        ("--clock-hz", asked["clock_hz"]),
        ("--instance", asked["instance"]),
        ("--allow-unreadable", asked["allow_unreadable"]),
    ]
    return {"file": trace, **asked, "words": [what, str(trace), *options([*pairs, *more])]}


def read_trace(
    trace: File,
    *,
    columns: Names | None = None,
    clock_hz: int | None = None,
    instance: str | None = None,
    allow_unreadable: bool = False,
) -> Trace:
    """Reads every event of a recorded trace into Arrow's memory.

    columns: only these, in this order; the others take no memory. The rest is as for :func:`summary`.
    """
    asked = {"clock_hz": clock_hz, "instance": instance, "allow_unreadable": allow_unreadable}
    wanted = None if columns is None else names(columns)
    table, text, told = _native.read_trace(_source("convert", trace, asked), wanted)
    remark(told)
    return Trace(table, _json.loads(text))


def summary(
    trace: File,
    *,
    machine: str | None = None,
    clock_hz: int | None = None,
    instance: str | None = None,
    allow_unreadable: bool = False,
) -> Summary:
    """What a recorded trace comes to: latency percentiles, switches, migrations, idleness, time wasted beside waiting tasks.

    trace: perf.data, trace.dat, ftrace text and others, also compressed; or a recording's folder.
    machine: the machine, whose caches and nodes a trace does not tell. clock_hz: ticks per second of the trace's clock, where time
    stamps are integers. instance: only this trace instance of a trace.dat.
    allow_unreadable: answer though more than one per cent of the events of a kind cannot be read.
    """
    asked = {"clock_hz": clock_hz, "instance": instance, "allow_unreadable": allow_unreadable}
    text, told = _native.summary(_source("summary", trace, asked, [("--machine", machine)]), machine)
    remark(told)
    return Summary(_json.loads(text))


def latency(
    trace: File,
    *,
    by_pid: bool = False,
    sort: str = "avg,max,count,runtime",
    clock_hz: int | None = None,
    instance: str | None = None,
    allow_unreadable: bool = False,
) -> Latency:
    """How long each task of a recorded trace waited for a CPU, as ``perf sched latency`` does.

    by_pid: threads of one name stay apart. sort: runtime, count, avg, max, pid; several between commas.
    The others are as for :func:`summary`.
    """
    asked = {"clock_hz": clock_hz, "instance": instance, "allow_unreadable": allow_unreadable}
    more = [("--pids", by_pid), ("--sort", None if sort == "avg,max,count,runtime" else sort)]
    text, told = _native.latency(_source("latency", trace, asked, more), by_pid, sort)
    remark(told)
    return Latency(_json.loads(text))


def explain(
    trace: File,
    *,
    task: str | int | None = None,
    worst: int = 5,
    clock_hz: int | None = None,
    instance: str | None = None,
    allow_unreadable: bool = False,
) -> Explanation:
    """The worst waits of a recorded trace: who woke the task, who ran instead, what idled, what ended it.

    task: only the waits of these: an id, a name, or a group. worst: how many, the longest first.
    The others are as for :func:`summary`.
    """
    if worst < 1:
        raise Error(f"worst={worst}: a whole number from 1 on; how many waits are explained")
    asked = {"clock_hz": clock_hz, "instance": instance, "allow_unreadable": allow_unreadable}
    more = [("--task", task), ("--worst", None if worst == 5 else worst)]
    word = None if task is None else str(task)
    text, stories, told = _native.explain(_source("explain", trace, asked, more), word, worst)
    remark(told)
    return Explanation(_json.loads(text), stories)
