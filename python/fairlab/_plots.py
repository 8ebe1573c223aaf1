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


def runs(answer: Json, metric: str) -> Any:
    """A metric in each run, kernel beside kernel."""
    rows = [
        {"kernel": run["kernel"], "seed": run["seed"], "value": run["metrics"][metric]}
        for run in answer["runs"]
        if metric in run["metrics"]
    ]
    altair, chart = _chart(rows)
    y = altair.Y("value:Q", title=metric)
    points = chart.mark_circle().encode(x=altair.X("kernel:N", sort=None), y=y, tooltip=["seed:Q", "value:Q"])
    means = chart.mark_tick(size=30).encode(x=altair.X("kernel:N", sort=None), y=altair.Y("mean(value):Q", title=metric))
    return points + means


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
    color = altair.Color("verdict:N")
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


def steps(answer: Json) -> Any:
    """The mean on each kernel that was judged."""
    altair, chart = _chart(answer["steps"])
    return chart.mark_point(filled=True).encode(
        x=altair.X("kernel:N", sort=None),
        y=altair.Y("mean:Q", title=answer["metric"]),
        color="state:N",
        tooltip=["kernel:N", "state:N", "runs:Q", "mean:Q"],
    )


def groups(answer: Json) -> Any:
    """Mean, least and greatest of each group."""
    keys = ("metric", "cells", "mean", "min", "max")
    rows = [
        {"group": " ".join(row["group"].values()), **{key: row[key] for key in keys}} for row in answer["rows"]
    ]
    altair, chart = _chart(rows)
    y = altair.Y("group:N", sort=None, title=None)
    spans = chart.mark_rule().encode(x=altair.X("min:Q", title=None), x2="max:Q", y=y)
    points = chart.mark_point(filled=True).encode(
        x=altair.X("mean:Q", title=None), y=y, tooltip=["group:N", "cells:Q", "mean:Q"]
    )
    layers = (spans + points).facet(row=altair.Row("metric:N"))
    return layers.resolve_scale(x="independent")


PERCENTILES = ("p50", "p75", "p90", "p95", "p99", "p99.5", "p99.9", "max")


def percentiles(answer: Json) -> Any:
    """Percentiles of a trace's waits, ms."""
    rows = [
        {"wait": wait, "percentile": name, "ms": answer[key][f"{name}_ns"] / 1e6}
        for wait, key in (("after a wakeup", "wakeup_latency"), ("after a preemption", "preemption_wait"))
        for name in PERCENTILES
        if answer[key].get(f"{name}_ns")
    ]
    altair, chart = _chart(rows)
    return chart.mark_line(point=True).encode(
        x=altair.X("percentile:N", sort=list(PERCENTILES)),
        y=altair.Y("ms:Q", scale=altair.Scale(type="log")),
        color="wait:N",
    )


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


def waits(answer: Json) -> Any:
    """Who ran while each of the waits went on; ms from when the wait began."""
    rows = []
    for number, story in enumerate(answer["stories"]):
        begin, wait = story["start_ns"], story["wait_ns"] / 1e6
        title = f"{number + 1}. {story['task']['comm']}:{story['task']['pid']}, {wait:.3f} ms"
        for run in story["runs"]:
            start, end = max(run["from_ns"], begin) - begin, min(run["to_ns"], story["end_ns"]) - begin
            rows.append({"wait": title, "start": start / 1e6, "end": end / 1e6, "runs": run["task"]["comm"]})
    altair, chart = _chart(rows)
    x = altair.X("start:Q", title="ms from when the wait began")
    y = altair.Y("wait:N", sort=None, title=None)
    return chart.mark_bar().encode(x=x, x2="end:Q", y=y, color="runs:N", tooltip=["runs:N", "start:Q", "end:Q"])
