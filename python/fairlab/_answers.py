"""What calls give: the program's answers as objects.

Must not know: how they came about.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from . import _plots
from ._native import Error
from ._table import Table, needed

Json = dict[str, Any]
Spec = Sequence[tuple[str, str, Callable[[Any], Any]]]


def _table(rows: Iterable[Any], columns: Spec) -> Table:
    """A frame of rows: each column's name, kind, and what gives its value."""
    rows = list(rows)
    return Table({name: (kind, [value(row) for row in rows]) for name, kind, value in columns})


def _get(*path: str) -> Callable[[Any], Any]:
    def value(row: Any) -> Any:
        for key in path:
            row = row.get(key) if row is not None else None
        return row

    return value


def unit(metric: str) -> str:
    """The unit of a metric's values, by its name: ns, us, share, 1/s, each (per piece of work), or none."""
    name = metric.rsplit(" ", 1)[-1]
    if "_ns_" in name or name.endswith("_ns"):
        return "ns"
    if "_us_" in name or name.endswith("_us"):
        return "us"
    endings = {"_share": "share", "_per_work": "each", "_per_s": "1/s"}
    return next((unit for ending, unit in endings.items() if name.endswith(ending)), "")


class Answer:
    """An answer. ``json`` is what the program prints with ``--format json``."""

    def __init__(self, json: Json) -> None:
        self.json: Json = json

    @property
    def command(self) -> str:
        """The program's command line for this request."""
        return str(self.json["provenance"]["command"])

    @property
    def provenance(self) -> Json:
        """How the answer came about: origin, version, commit, kernels, machines, seeds."""
        return dict(self.json["provenance"])

    @property
    def notices(self) -> list[str]:
        """What the reader should know."""
        own = self.json.get("notices")
        return list(own if own is not None else self.json.get("import", {}).get("notices", []))

    @property
    def table(self) -> Table:
        """The answer's main frame."""
        raise NotImplementedError

    def to_arrow(self) -> Any:
        """The main frame as a ``pyarrow.Table``."""
        return self.table.to_arrow()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's C interface: the main frame, without a copy."""
        return self.table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """What it answers."""
        return f"<fairlab.{type(self).__name__} of '{self.command}'>"

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>note: {html.escape(note)}</p>" for note in self.notices)
        return f"<p><code>{html.escape(self.command)}</code></p>{self.table._repr_html_()}{notes}"


class Run(Answer):
    """What runs measured."""

    def __init__(self, json: Json, outputs: list[str]) -> None:
        super().__init__(json)
        self.outputs: list[str] = outputs
        """What the programs themselves would have printed, run by run."""

    @property
    def runs(self) -> Table:
        """A row a run: kernel, machine, workload, seed, digest of all events, virtual time that was measured, real time that it
        took, context switches."""
        text = [(name, "text", _get(name)) for name in ("kernel", "machine", "workload")]
        rest: Spec = [
            ("seed", "count", _get("seed")),
            ("digest", "text", _get("digest")),
            ("simulated", "duration", _get("simulated_ns")),
            ("wall", "duration", _get("wall_ns")),
            ("switches", "count", _get("switches")),
        ]
        return _table(self.json["runs"], [*text, *rest])

    @property
    def metrics(self) -> Table:
        """A row a run and metric: kernel, seed, metric, unit, value."""
        rows = [
            (run["kernel"], run["seed"], name, unit(name), value)
            for run in self.json["runs"]
            for name, value in run["metrics"].items()
        ]
        names = ("kernel", "seed", "metric", "unit", "value")
        kinds = ("text", "count", "text", "text", "number")
        columns = zip(*rows) if rows else ([] for _ in names)
        return Table({name: (kind, list(of)) for name, kind, of in zip(names, kinds, columns)})

    @property
    def table(self) -> Table:
        """The metrics."""
        return self.metrics

    def values(self, metric: str, kernel: str | None = None) -> list[float]:
        """A metric's value in each run, of one kernel or of all. Its unit is in its name."""
        runs = [run for run in self.json["runs"] if kernel in (None, run["kernel"])]
        found = [run["metrics"][metric] for run in runs if metric in run["metrics"]]
        if not found:
            known = ", ".join(dict.fromkeys(name for run in runs for name in run["metrics"]))
            raise Error(f"the runs have no metric '{metric}'; they have {known}")
        return found

    def plot(self, metric: str = "wakeup_latency_ns_p99") -> Any:
        """A metric in each run, kernel beside kernel, as an Altair chart."""
        self.values(metric)
        return _plots.runs(self.json, metric)


class Gate:
    """What the rules of ``fail_on=`` say, all together and each."""

    def __init__(self, json: Json) -> None:
        self.json: Json = json

    @property
    def outcome(self) -> str:
        """``"passed"``; ``"regression"``, where a rule is broken for sure; ``"undecided"``, where neither is sure of some rule."""
        return str(self.json["outcome"])

    @property
    def passed(self) -> bool:
        """Whether a change past its bound is excluded for every rule."""
        return self.outcome == "passed"

    @property
    def regressed(self) -> bool:
        """Whether some rule is broken for sure."""
        return self.outcome == "regression"

    @property
    def undecided(self) -> bool:
        """Whether no rule is broken for sure, but more runs would be needed to pass all."""
        return self.outcome == "undecided"

    @property
    def rules(self) -> Table:
        """A row a rule and kernel: the rule, its metric, kernel, outcome, the change with the ends of its interval, and the bound: shares of
        the baseline where ``is_share`` is true, else amounts in ``unit``; about how many more runs would decide, or why none would."""
        text = [(name, "text", _get(name)) for name in ("rule", "metric", "kernel", "outcome")]
        numbers = [(name, "number", _get(name)) for name in ("change", "low", "high", "bound")]
        rest: Spec = [
            ("is_share", "truth", _get("is_share")),
            ("unit", "text", lambda rule: "" if rule["is_share"] else unit(rule["metric"])),
            ("baseline_runs", "count", lambda rule: rule["runs"][0]),
            ("runs", "count", lambda rule: rule["runs"][1]),
            ("more_runs", "text", lambda rule: None if rule["more_runs"] is None else str(rule["more_runs"])),
            ("why", "text", _get("why")),
        ]
        return _table(self.json["rules"], [*text, *numbers, *rest])

    def __repr__(self) -> str:
        """What they come to."""
        return f"<fairlab.Gate: {self.outcome}, {len(self.json['rules'])} rules>"

    def _repr_html_(self) -> str:
        return f"<p>gate: {html.escape(self.outcome)}</p>{self.rules._repr_html_()}"


class Comparison(Answer):
    """How kernels differ under one workload."""

    def __init__(self, json: Json, outputs: list[str]) -> None:
        super().__init__(json)
        self.outputs: list[str] = outputs
        """What the programs themselves would have printed in the first run, kernel by kernel."""

    @property
    def baseline(self) -> str:
        """The kernel that the others are compared with."""
        return str(self.json["baseline"])

    @property
    def headline(self) -> str:
        """The metric that the workload is run for."""
        return str(self.json["headline"])

    @property
    def margin(self) -> float:
        """The share of the baseline below which a difference is of no interest."""
        return float(self.json["margin"])

    @property
    def metrics(self) -> Table:
        """A row a kernel and metric: the ratio to the baseline with its 95 % interval, the verdict, p and q, both means."""
        text = [(name, "text", _get(name)) for name in ("metric", "kernel", "verdict", "pairing", "method")]
        rows = [{**row, "metric": row["name"]} for row in self.json["metrics"]]
        numbers = ("ratio", "low", "high", "p", "q", "baseline_mean", "mean", "baseline_deviation", "deviation")
        rest = [(name, "number", _get(name)) for name in numbers]
        return _table(rows, [*text, ("unit", "text", lambda row: unit(row["metric"])), *rest])

    @property
    def table(self) -> Table:
        """The metrics."""
        return self.metrics

    @property
    def values(self) -> Table:
        """A row a run and metric, of the baseline, too: kernel, metric, unit, run (from 0), value."""
        parts: list[tuple[str, str, int, float]] = []
        for row in self.json["metrics"]:
            for kernel, values in ((self.baseline, row["baseline_values"]), (row["kernel"], row["values"])):
                parts += [(kernel, row["name"], number, value) for number, value in enumerate(values)]
        parts = list(dict.fromkeys(parts))
        return _table(
            parts,
            [
                ("kernel", "text", lambda part: part[0]),
                ("metric", "text", lambda part: part[1]),
                ("unit", "text", lambda part: unit(part[1])),
                ("run", "count", lambda part: part[2]),
                ("value", "number", lambda part: part[3]),
            ],
        )

    def verdict(self, metric: str | None = None, kernel: str | None = None) -> str:
        """What a metric comes to (better, worse, equivalent, undecided, …), by default what the workload is run for."""
        return str(self._row(metric, kernel)["verdict"])

    def ratio(self, metric: str | None = None, kernel: str | None = None) -> tuple[float, float, float] | None:
        """A metric over the baseline's, and the ends of its 95 % interval; None where there is none."""
        row = self._row(metric, kernel)
        ends = row["ratio"], row["low"], row["high"]
        return None if None in ends else ends

    def _row(self, metric: str | None, kernel: str | None) -> Json:
        metric = metric or self.headline
        for row in self.json["metrics"]:
            if row["name"] == metric and kernel in (None, row["kernel"]):
                return dict(row)
        known = ", ".join(dict.fromkeys(row["name"] for row in self.json["metrics"]))
        raise Error(f"the comparison has no metric '{metric}'; it has {known}")

    @property
    def gate(self) -> Gate | None:
        """What the rules of ``fail_on=`` say; None where there were none."""
        found = self.json.get("gate")
        return None if found is None else Gate(found)

    def _why(self) -> list[Json]:
        if "causes" not in self.json:
            raise Error("the comparison does not say why; make it with explain=True")
        return list(self.json["causes"])

    @property
    def why(self) -> list[str]:
        """Why tasks wait longer or shorter, in sentences; it takes ``explain=True``."""
        found: list[str] = []
        for kernel in self._why():
            found += kernel["headline"]
            found += [words for scope in kernel["scopes"] if scope["waits"] != "named" or scope["sure"] for words in scope["sentences"]]
        return list(dict.fromkeys(found))

    @property
    def causes(self) -> Table:
        """Waits by cause, a row a kernel, a kind of waits and a cause; it takes ``explain=True``.

        ``waits`` says of which waits: all, woken (of tasks that were woken), long_woken (of these, those above the baseline's p99),
        named (of tasks called ``waiter``). ``baseline``, ``ns_per_s`` and ``added`` (with the ends ``low`` and ``high`` of its 95 % interval)
        are ns of waiting in a second of the run, summed over tasks; ``count`` is how often in a second. ``share`` is the cause's part of the
        whole difference, ``q`` its probability by chance, adjusted for the number of causes, ``sure`` whether it stands among so many.
        """
        rows = [
            {**cause, "of": kernel["kernel"], "waits": scope["waits"], "waiter": scope["waiter"]}
            for kernel in self._why()
            for scope in kernel["scopes"]
            for cause in scope["causes"]
        ]
        columns: Spec = [
            ("kernel", "text", _get("of")),
            ("waits", "text", _get("waits")),
            ("waiter", "text", _get("waiter")),
            ("cause", "text", _get("words")),
            ("behind", "text", _get("behind")),
            ("decision", "text", _get("decision")),
            ("reason", "text", _get("reason")),
            ("baseline_ns_per_s", "number", _get("baseline_ns_per_s")),
            ("ns_per_s", "number", _get("ns_per_s")),
            ("added_ns_per_s", "number", _get("added", "ns_per_s")),
            ("low", "number", _get("added", "low")),
            ("high", "number", _get("added", "high")),
            ("share", "number", _get("share")),
            ("q", "number", _get("q")),
            ("sure", "truth", _get("sure")),
            ("baseline_count_per_s", "number", _get("baseline_count_per_s")),
            ("count_per_s", "number", _get("count_per_s")),
        ]
        return _table(rows, columns)

    @property
    def work(self) -> Table:
        """What the scheduler itself was busy with, a row a kernel and a kind of work, with wakeups and tries of balancing by kind; it takes
        ``explain=True``. ``per_s`` counts units a second; ``ns_per_s`` is the time that it took, ns a second, where it takes any."""
        rows: list[Json] = []
        for kernel in self._why():
            for what in ("placements", "balancing"):
                rows += [{**row, "of": kernel["kernel"], "what": what, "unit": ""} for row in kernel[what]]
            for row in kernel["work"]:
                rates = {"baseline_per_s": row["baseline_units_per_s"], "per_s": row["units_per_s"]}
                rows.append({**row, **rates, "of": kernel["kernel"], "what": "work"})
        columns: Spec = [
            ("kernel", "text", _get("of")),
            ("what", "text", _get("what")),
            ("words", "text", _get("words")),
            ("unit", "text", _get("unit")),
            ("baseline_per_s", "number", _get("baseline_per_s")),
            ("per_s", "number", _get("per_s")),
            ("baseline_ns_per_s", "number", _get("baseline_ns_per_s")),
            ("ns_per_s", "number", _get("ns_per_s")),
            ("q", "number", _get("q")),
            ("sure", "truth", _get("sure")),
        ]
        return _table(rows, columns)

    @property
    def parting(self) -> Json | None:
        """The first decision in which the last kernel and the baseline part: when (``time_ns``), on which CPU, what each decides, with
        reasons, and what both held; None where they never do. It takes ``explain=True``."""
        kernels = self._why()
        return kernels[-1]["difference"] if kernels else None

    def plot(self) -> Any:
        """Every metric's ratio with its interval, as an Altair chart (a forest plot)."""
        return _plots.forest(self.json)

    def plot_causes(self, waits: str = "all") -> Any:
        """How much more tasks wait for each cause, with intervals, as an Altair chart; it takes ``explain=True``.

        waits: all, woken, long_woken.
        """
        return _plots.causes(self._why(), waits)


class Schedstat(Answer):
    """What ``/proc/schedstat`` of two kernels counted."""

    @property
    def not_compared(self) -> list[str]:
        """Lines and counters that one side lacks, a sentence each."""
        return list(self.json["not_compared"])

    @property
    def counters(self) -> Table:
        """A row a CPU, domain and counter: both counts (their unit is the counter's, ns for times), their ratio. No CPU: all of them.

        The ratio is by jiffy where both sides say how long they counted (``json["by_jiffy"]``); none where the first counted nothing.
        """
        columns: Spec = [
            ("cpu", "count", _get("cpu")),
            ("domain", "count", _get("domain")),
            ("counter", "text", _get("counter")),
            ("first", "count", lambda row: row["counts"][0]),
            ("second", "count", lambda row: row["counts"][1]),
            ("ratio", "number", _get("ratio")),
        ]
        return _table(self.json["counters"], columns)

    @property
    def table(self) -> Table:
        """The counters."""
        return self.counters


_COUNTED = ("judged", "agree", "missed", "not_judged")


class Fidelity(Answer):
    """How often models decide as the kernels did that were recorded."""

    @property
    def figures(self) -> Table:
        """A row a recording, kind of decision and case: how many were judged, agree, were missed, were not judged."""
        return self._counted("figures", "recording")

    @property
    def sums(self) -> Table:
        """The figures' sums by kernel."""
        return self._counted("sums")

    def _counted(self, name: str, *first: str) -> Table:
        texts = (*first, "kernel", "kind", "case")
        columns: Spec = [
            *((column, "text", _get(column)) for column in texts),
            ("probed", "truth", _get("probed")),
            *((column, "count", _get(column)) for column in _COUNTED),
        ]
        return _table(self.json[name], columns)

    @property
    def table(self) -> Table:
        """The sums by kernel."""
        return self.sums


class Oracle(Answer):
    """How far models decide as the code of releases does, call by call."""

    @property
    def rows(self) -> Table:
        """A row a release and machine (none: random cases): runs, those that are alike throughout, comparisons, failed runs."""
        rows = [{**row, "kernel": one["kernel"]} for one in self.json["releases"] for row in one["rows"]]
        columns: Spec = [
            ("kernel", "text", _get("kernel")),
            ("machine", "text", _get("machine")),
            ("runs", "count", _get("runs")),
            ("alike", "count", _get("alike")),
            ("compared", "count", _get("compared")),
            ("failed", "count", lambda row: len(row["failed"])),
        ]
        return _table([row for row in rows if row["runs"]], columns)

    @property
    def table(self) -> Table:
        """The rows."""
        return self.rows


class Bisection(Answer):
    """Which commit changed a metric."""

    @property
    def metric(self) -> str:
        """What was looked at."""
        return str(self.json["metric"])

    @property
    def first_bad(self) -> Json | None:
        """The commit from which on it is bad: commit, subject, release, ratio with its interval; None where there is none."""
        return self.json.get("first_bad")

    @property
    def first_good(self) -> Json | None:
        """The commit that cured it; None where there is none."""
        return self.json.get("first_good")

    @property
    def finding(self) -> str:
        """What the search comes to: found, several, nothing, undecided, one course of events."""
        return str(self.json["verdict"])

    @property
    def steps(self) -> Table:
        """A row a kernel that was judged: kernel, state, runs, mean (its unit is the metric's)."""
        columns: Spec = [
            ("kernel", "text", _get("kernel")),
            ("state", "text", _get("state")),
            ("runs", "count", _get("runs")),
            ("mean", "number", _get("mean")),
        ]
        return _table(self.json["steps"], columns)

    @property
    def table(self) -> Table:
        """The steps."""
        return self.steps

    def plot(self) -> Any:
        """The mean on each kernel that was judged, as an Altair chart."""
        return _plots.steps(self.json)


class Sweep(Answer):
    """A sweep's cells, summed up by group."""

    def __init__(self, json: Json, folder: Path) -> None:
        super().__init__(json)
        self.folder: Path = folder
        """Its folder: the journal, ``cells.parquet`` with a row a cell, ``counts.json``."""

    @property
    def is_complete(self) -> bool:
        """Whether all cells are done."""
        return self.json.get("partial") is None

    @property
    def metrics(self) -> Table:
        """A row a group and metric: the group's columns, metric, unit, cells, mean, deviation, median, min, max."""
        rows = self.json["rows"]
        groups = list(dict.fromkeys(name for row in rows for name in row["group"]))
        text: Spec = [(name, "text", _get("group", name)) for name in groups]
        numbers = [(name, "number", _get(name)) for name in ("mean", "deviation", "median", "min", "max")]
        return _table(
            rows,
            [
                *text,
                ("metric", "text", _get("metric")),
                ("unit", "text", lambda row: unit(row["metric"])),
                ("cells", "count", _get("cells")),
                *numbers,
            ],
        )

    @property
    def table(self) -> Table:
        """The sums."""
        return self.metrics

    def cells(self) -> Any:
        """Every cell, a row each, as a ``pyarrow.Table``: read from ``cells.parquet``, which is there when all are done."""
        file = self.folder / "cells.parquet"
        if not file.is_file():
            raise Error(f"{file} is not there: not all cells are done; run the sweep again to continue")
        needed("pyarrow", "arrow")
        return needed("pyarrow.parquet", "arrow").read_table(file)

    def plot(self) -> Any:
        """Mean, least and greatest of each group, as an Altair chart."""
        return _plots.groups(self.json)


class Summary(Answer):
    """What a trace comes to."""

    @property
    def wakeup_latency(self) -> Json:
        """Percentiles of wakeup latencies (from waking to running), ns; also count, mean_ns, max_ns."""
        return dict(self.json["wakeup_latency"])

    @property
    def fork_wait(self) -> Json:
        """The same of first waits of new tasks, which are no wakeup latencies."""
        return dict(self.json["fork_wait"])

    @property
    def tasks(self) -> Table:
        """A row a name of tasks: how many tasks, wakeups, percentiles of their wakeup latencies."""
        spans = ("mean", "p50", "p99", "max")
        columns: Spec = [
            ("comm", "text", _get("comm")),
            ("tasks", "count", _get("tasks")),
            ("wakeups", "count", _get("wakeup_latency", "count")),
            *((f"latency_{name}", "duration", _get("wakeup_latency", f"{name}_ns")) for name in spans),
        ]
        return _table(self.json["comms"], columns)

    @property
    def culprits(self) -> Table:
        """A row a culprit of one of the names that waited most: what had the CPU, over all waits of that name."""
        pairs = [(name, row) for name in self.json["waiting"] for row in name["culprits"]]
        return _table(pairs, [("waiter", "text", lambda pair: pair[0]["whose"][0]), *_CULPRITS])

    @property
    def table(self) -> Table:
        """The tasks."""
        return self.tasks

    def plot(self) -> Any:
        """Percentiles of wakeup latencies and of waits after preemption, as an Altair chart."""
        return _plots.percentiles(self.json)


class Latency(Answer):
    """How long each task waited, as ``perf sched latency`` tells it."""

    @property
    def tasks(self) -> Table:
        """A row a task: CPU time, waits, average and longest delay, when that began and ended."""
        columns: Spec = [
            ("comm", "text", _get("comm")),
            ("pid", "integer", _get("pid")),
            ("threads", "count", _get("merged_threads")),
            ("runtime", "duration", _get("runtime_ns")),
            ("count", "count", _get("count")),
            ("avg_delay", "duration", _get("avg_delay_ns")),
            ("max_delay", "duration", _get("max_delay_ns")),
            ("max_start", "time", _get("max_start_ns")),
            ("max_end", "time", _get("max_end_ns")),
        ]
        return _table(self.json["tasks"], columns)

    @property
    def table(self) -> Table:
        """The tasks."""
        return self.tasks

    def plot(self, tasks: int = 20) -> Any:
        """The longest delay of the tasks that waited longest, as an Altair chart."""
        return _plots.delays(self.json, tasks)


_CULPRITS: Spec = [
    ("behind", "text", lambda pair: pair[1]["behind"]),
    ("runner", "text", lambda pair: pair[1]["runner"]),
    ("time", "duration", lambda pair: pair[1]["time_ns"]),
    ("share", "number", lambda pair: pair[1]["share"]),
    ("tail_share", "number", lambda pair: pair[1]["tail_share"]),
    ("stretches", "count", lambda pair: pair[1]["stretches"]),
    ("longest", "duration", lambda pair: pair[1]["longest_ns"]),
    ("beside_idle", "duration", lambda pair: pair[1]["beside_idle_ns"]),
]
"""Columns of culprits: pairs of whatever, and what blame says of one."""


class Blame(Answer):
    """Who makes tasks wait, in all."""

    def __init__(self, json: Json, text: str) -> None:
        super().__init__(json)
        self.text: str = text
        """The answer as the program prints it, with whole tables."""

    def _side(self, side: int) -> Json:
        return dict(self.json["sides"][side]["waiting"])

    @property
    def waiting(self) -> Json:
        """All sums of the trace; of two, of the one before. Those of the one after are in ``json["sides"][1]``."""
        return self._side(0)

    @property
    def culprits(self) -> Table:
        """A row a culprit: what had the CPU, for how long, in how many stretches, its share in all waiting and in the longest waits."""
        sides = range(len(self.json["sides"]))
        rows = [(side, row) for side in sides for row in self._side(side)["culprits"]]
        return _table(rows, [("side", "count", lambda pair: pair[0]), *_CULPRITS])

    @property
    def wakers(self) -> Table:
        """A row a waker and woken task: how many waits began so, how long they were."""
        columns: Spec = [
            ("waker", "text", _get("waker")),
            ("wakee", "text", _get("wakee")),
            ("waits", "count", _get("waits")),
            ("wait", "duration", _get("wait_ns")),
            ("longest", "duration", _get("longest_ns")),
        ]
        return _table(self.waiting["wakers"], columns)

    @property
    def change(self) -> Table:
        """A row a culprit of two traces: waiting in each second that the tasks ran, before and after, ns. It takes ``after=``."""
        if self.json["change"] is None:
            raise Error("one trace does not differ; give another with after=")
        columns: Spec = [
            ("words", "text", _get("words")),
            ("before_ns_per_s", "number", _get("before_ns_per_s")),
            ("after_ns_per_s", "number", _get("after_ns_per_s")),
            ("added_ns", "number", _get("added_ns")),
        ]
        return _table(self.json["change"]["culprits"], columns)

    @property
    def table(self) -> Table:
        """The culprits."""
        return self.culprits


class Explanation(Answer):
    """The worst waits, each with its story."""

    def __init__(self, json: Json, texts: list[str]) -> None:
        super().__init__(json)
        self.texts: list[str] = texts
        """The stories, as the program tells them."""

    @property
    def waiting(self) -> Json:
        """All waits summed, as :func:`fairlab.blame` tells them."""
        return dict(self.json["waiting"])

    @property
    def culprits(self) -> Table:
        """A row a culprit: what had the CPU, over all waits."""
        return _table([(0, row) for row in self.waiting["culprits"]], _CULPRITS)

    @property
    def stories(self) -> Table:
        """A row a wait: task, length, begin, end, reason, waker, where it ran then, what ended it."""
        columns: Spec = [
            ("comm", "text", _get("task", "comm")),
            ("pid", "integer", _get("task", "pid")),
            ("wait", "duration", _get("wait_ns")),
            ("start", "time", _get("start_ns")),
            ("end", "time", _get("end_ns")),
            ("cause", "text", _get("cause")),
            ("waker", "text", _get("waker", "task", "comm")),
            ("prev_cpu", "integer", _get("prev_cpu")),
            ("ran_on_cpu", "integer", _get("ran_on_cpu")),
            ("ended_by", "text", _get("ended_by", "kind")),
        ]
        return _table(self.json["stories"], columns)

    @property
    def runs(self) -> Table:
        """A row a run of another task during one of the waits: the story's number (from 0), task, CPU, begin, end."""
        pairs = [(number, run) for number, story in enumerate(self.json["stories"]) for run in story["runs"]]
        columns: Spec = [
            ("story", "count", lambda pair: pair[0]),
            ("comm", "text", lambda pair: pair[1]["task"]["comm"]),
            ("pid", "integer", lambda pair: pair[1]["task"]["pid"]),
            ("cpu", "integer", lambda pair: pair[1]["cpu"]),
            ("start", "time", lambda pair: pair[1]["from_ns"]),
            ("end", "time", lambda pair: pair[1]["to_ns"]),
            ("ran", "duration", lambda pair: pair[1]["ran_ns"]),
        ]
        return _table(pairs, columns)

    @property
    def table(self) -> Table:
        """The stories."""
        return self.stories

    def plot(self) -> Any:
        """The tasks that ran while each of the waits went on, as an Altair chart."""
        return _plots.waits(self.json)
