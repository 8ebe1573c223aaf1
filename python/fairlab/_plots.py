"""Charts of answers, by Altair.

Must not know: how answers came about.
"""

from __future__ import annotations

from typing import Any

from ._table import needed

Json = dict[str, Any]


def _chart(rows: list[Json]) -> tuple[Any, Any]:
    altair = needed("altair", "plots")
    return altair, altair.Chart(altair.Data(values=rows))


VERDICTS = {
    "better": "#14705c",
    "worse": "#b3261e",
    "changed": "#7a4fa3",
    "equivalent": "#8b96a3",
    "undecided": "#c2871a",
    "one_course": "#a9ada6",
    "not_modelled": "#a9ada6",
}
"""The colour of each verdict: that of pages."""


def _scaled(metric: str) -> tuple[float, str]:
    """What a metric's values are divided by, and what the axis says."""
    name = metric.rsplit(" ", 1)[-1]
    if "_ns_" in name or name.endswith("_ns"):
        return 1e6, f"{metric}, ms"
    return 1.0, metric


def runs(answer: Json, metric: str) -> Any:
    """A metric in each run, kernel beside kernel; times in ms."""
    by, title = _scaled(metric)
    rows = [
        {"kernel": run["kernel"], "seed": run["seed"], "value": run["metrics"][metric] / by}
        for run in answer["runs"]
        if metric in run["metrics"]
    ]
    altair, chart = _chart(rows)
    x = altair.X("kernel:N", sort=None, title=None, axis=altair.Axis(labelAngle=0))
    points = chart.mark_circle(size=60).encode(x=x, y=altair.Y("value:Q", title=title), tooltip=["seed:Q", "value:Q"])
    means = chart.mark_tick(size=40).encode(x=x, y=altair.Y("mean(value):Q", title=title))
    return (points + means).properties(width=altair.Step(90))


def forest(answer: Json) -> Any:
    """Ratios with their intervals; metrics without a ratio are left out."""
    rows = [
        {"metric": row["name"], **{key: row[key] for key in ("kernel", "ratio", "low", "high", "verdict")}}
        for row in answer["metrics"]
        if row["ratio"] is not None and row["ratio"] > 0
    ]
    altair, chart = _chart(rows)
    y = altair.Y("metric:N", sort=None, title=None)
    title = f"ratio to {answer['baseline']}"
    scale = altair.Scale(type="log")
    told = [verdict for verdict in VERDICTS if any(row["verdict"] == verdict for row in rows)]
    color = altair.Color("verdict:N", scale=altair.Scale(domain=told, range=[VERDICTS[verdict] for verdict in told]))
    spans = chart.mark_rule().transform_filter("datum.low > 0").encode(
        x=altair.X("low:Q", scale=scale, title=title), x2="high:Q", y=y, color=color
    )
    points = chart.mark_point(filled=True).encode(
        x=altair.X("ratio:Q", scale=scale, title=title),
        y=y,
        color=color,
        tooltip=["metric:N", "kernel:N", "ratio:Q", "low:Q", "high:Q", "verdict:N"],
    )
    one = chart.mark_rule(strokeDash=[4, 4], color="gray").encode(x=altair.datum(1.0))
    return (one + spans + points).facet(row=altair.Row("kernel:N", title=None))


CAUSES_SHOWN = 12
"""So many causes a chart has."""


def causes(kernels: list[Json], waits: str) -> Any:
    """How much more tasks wait for each cause, ms in a second of the run, the greatest differences first."""
    rows = []
    for kernel in kernels:
        for scope in kernel["scopes"]:
            if scope["waits"] != waits:
                continue
            for cause in scope["causes"][:CAUSES_SHOWN]:
                added = {key: None if value is None else value / 1e6 for key, value in cause["added"].items() if key != "p"}
                low, high = added["low"], added["high"]
                sure = "sure" if cause["sure"] else "may be chance"
                rows.append(
                    {"kernel": kernel["kernel"], "cause": cause["words"], "ms": added["ns_per_s"], "low": low, "high": high, "it is": sure}
                )
    altair, chart = _chart(rows)
    title = f"ms a second more than with {kernels[0]['baseline']}" if kernels else "ms a second more"
    y = altair.Y("cause:N", sort=None, title=None, axis=altair.Axis(labelLimit=0))
    color = altair.Color("it is:N", scale=altair.Scale(domain=["sure", "may be chance"], range=["#d1495b", "#8d99ae"]))
    spans = chart.mark_rule().encode(x=altair.X("low:Q", title=title), x2="high:Q", y=y, color=color)
    points = chart.mark_point(filled=True).encode(
        x=altair.X("ms:Q", title=title), y=y, color=color, tooltip=["cause:N", "kernel:N", "ms:Q", "low:Q", "high:Q"]
    )
    zero = chart.mark_rule(strokeDash=[4, 4], color="gray").encode(x=altair.datum(0.0))
    return (zero + spans + points).facet(row=altair.Row("kernel:N", title=None))


def steps(answer: Json) -> Any:
    """The mean on each kernel that was judged; times in ms."""
    by, title = _scaled(answer["metric"])
    altair, chart = _chart([{**step, "mean": step["mean"] / by} for step in answer["steps"]])
    states = {"good": VERDICTS["better"], "bad": VERDICTS["worse"], "between": VERDICTS["changed"]}
    told = list(dict.fromkeys(step["state"] for step in answer["steps"]))
    colours = [states.get(state, VERDICTS["undecided"]) for state in told]
    return (
        chart.mark_point(filled=True, size=60)
        .encode(
            x=altair.X("kernel:N", sort=None, title=None, axis=altair.Axis(labelAngle=-40)),
            y=altair.Y("mean:Q", title=title),
            color=altair.Color("state:N", scale=altair.Scale(domain=told, range=colours)),
            tooltip=["kernel:N", "state:N", "runs:Q", "mean:Q"],
        )
        .properties(width=altair.Step(45))
    )


def groups(answer: Json) -> Any:
    """Mean, least and greatest of each group; times in ms."""
    rows = []
    for row in answer["rows"]:
        by, title = _scaled(row["metric"])
        values = {key: None if row[key] is None else row[key] / by for key in ("mean", "min", "max")}
        rows.append({"group": " ".join(row["group"].values()), "metric": title, "cells": row["cells"], **values})
    altair, chart = _chart(rows)
    y = altair.Y("group:N", sort=None, title=None)
    spans = chart.mark_rule().encode(x=altair.X("min:Q", title=None), x2="max:Q", y=y)
    points = chart.mark_point(filled=True).encode(
        x=altair.X("mean:Q", title=None), y=y, tooltip=["group:N", "cells:Q", "mean:Q"]
    )
    head = altair.Header(labelAngle=0, labelAlign="left", labelOrient="top")
    layers = (spans + points).facet(row=altair.Row("metric:N", sort=None, title=None, header=head))
    return layers.resolve_scale(x="independent")


WAITS = (("after a wakeup", "wakeup_latency"), ("of a new task", "fork_wait"), ("after a preemption", "preemption_wait"))
PERCENTILES = ("p50", "p75", "p90", "p95", "p99", "p99.5", "p99.9", "max")


def percentiles(answer: Json) -> Any:
    """Percentiles of a trace's waits, ms."""
    rows = [
        {"wait": wait, "percentile": name, "ms": answer[key][f"{name}_ns"] / 1e6}
        for wait, key in WAITS
        for name in PERCENTILES
        if answer[key].get(f"{name}_ns")
    ]
    altair, chart = _chart(rows)
    x = altair.X("percentile:N", sort=list(PERCENTILES), title=None, axis=altair.Axis(labelAngle=0))
    y = altair.Y("ms:Q", scale=altair.Scale(type="log"))
    return chart.mark_line(point=True).encode(x=x, y=y, color="wait:N").properties(width=altair.Step(48))


def delays(answer: Json, tasks: int) -> Any:
    """The longest delay of the tasks that waited longest, ms."""
    waited = [task for task in answer["tasks"] if task["max_delay_ns"] is not None]
    waited.sort(key=lambda task: -int(task["max_delay_ns"]))
    rows = [
        {"task": f"{task['comm']}:{task['pid'] if task['pid'] is not None else '*'}", "ms": task["max_delay_ns"] / 1e6}
        for task in waited[:tasks]
    ]
    altair, chart = _chart(rows)
    x = altair.X("ms:Q", title="longest delay, ms")
    return chart.mark_bar().encode(x=x, y=altair.Y("task:N", sort=None, title=None))


COLOURS = ("#356a9f", "#c2571a", "#4b7f52", "#8a5a9b", "#9a7b1c", "#5b8a8f", "#a34d6d")
"""Colours of names."""

MORE_RUNS = "more runs, not listed"


def _left_out(story: Json) -> tuple[int, int] | None:
    """Where the runs were that a story counts and does not list: between the first and the last ones, ns."""
    ends = [(one["to_ns"], other["from_ns"]) for one, other in zip(story["runs"], story["runs"][1:])]
    if not story["runs_left_out"]["count"] or not ends:
        return None
    return max(ends, key=lambda gap: gap[1] - gap[0])


def waits(answer: Json) -> Any:
    """The tasks that ran while each of the waits went on; ms from when the wait began."""
    rows = []
    for number, story in enumerate(answer["stories"]):
        begin, wait = story["start_ns"], story["wait_ns"] / 1e6
        title = f"{number + 1}. {story['task']['comm']}:{story['task']['pid']}, {wait:.3f} ms"
        for run in story["runs"]:
            start, end = max(run["from_ns"], begin) - begin, min(run["to_ns"], story["end_ns"]) - begin
            rows.append({"wait": title, "start": start / 1e6, "end": end / 1e6, "runs": run["task"]["comm"]})
        if gap := _left_out(story):
            start, end = (time - begin for time in gap)
            rows.append({"wait": title, "start": start / 1e6, "end": end / 1e6, "runs": MORE_RUNS})
    altair, chart = _chart(rows)
    x = altair.X("start:Q", title="ms from when the wait began")
    y = altair.Y("wait:N", sort=None, title=None)
    told = list(dict.fromkeys(row["runs"] for row in rows if row["runs"] != MORE_RUNS))
    colours = [COLOURS[place % len(COLOURS)] for place in range(len(told))]
    if any(row["runs"] == MORE_RUNS for row in rows):
        told, colours = [*told, MORE_RUNS], [*colours, "#c9ccc6"]
    color = altair.Color("runs:N", title=None, scale=altair.Scale(domain=told, range=colours))
    bars = chart.mark_bar().encode(x=x, x2="end:Q", y=y, color=color, tooltip=["runs:N", "start:Q", "end:Q"])
    return bars.properties(width=520)
