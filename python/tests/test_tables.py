"""Frames are taken by others as they are; times are times."""

from __future__ import annotations

import re
from typing import Any

import fairlab
import marimo
import pandas
import polars
import pyarrow
import pyarrow.compute
import pytest
from IPython.core.formatters import DisplayFormatter

from conftest import TRACE


@pytest.fixture(scope="module")
def latency() -> fairlab.Latency:
    """An answer with every kind of column."""
    return fairlab.latency(TRACE)


def test_pyarrow_polars_and_pandas_take_it(latency: fairlab.Latency) -> None:
    table = pyarrow.table(latency)
    assert table.schema.field("runtime").type == pyarrow.duration("ns")
    assert table.schema.field("max_start").type == pyarrow.timestamp("ns")
    assert table["comm"].to_pylist() == latency.tasks["comm"]
    frame = polars.DataFrame(latency.tasks)
    assert frame.schema["runtime"] == polars.Duration("ns") and frame.schema["max_end"] == polars.Datetime("ns")
    assert frame["count"].to_list() == latency.tasks["count"]
    assert list(latency.tasks.to_pandas()["comm"]) == latency.tasks["comm"]
    assert isinstance(latency.tasks.to_polars(), polars.DataFrame)
    longest = [task["max_delay_ns"] for task in latency.json["tasks"]]
    assert table["max_delay"].cast(pyarrow.int64()).to_pylist() == longest


def test_a_stream_is_taken_as_often_as_somebody_wants(latency: fairlab.Latency) -> None:
    table = latency.tasks
    first, second = pyarrow.table(table), pyarrow.table(table)
    # Both share the memory that the native half has.
    column = [part.chunk(0).buffers()[1].address for part in (first["runtime"], second["runtime"])]
    assert first.equals(second) and column[0] == column[1]
    untaken: Any = table.__arrow_c_stream__()
    del untaken


def test_whole_numbers_keep_their_digits_where_others_are_missing() -> None:
    events = fairlab.read_trace(TRACE)
    frame = events.to_pandas()
    assert str(frame["vruntime"].dtype) == "Int64" and frame["vruntime"].isna().any()
    exact = [value for value in pyarrow.table(events)["vruntime"].to_pylist() if value is not None]
    assert list(frame["vruntime"].dropna()) == exact
    large = fairlab.Table({"a": ("count", [2**53 + 1, None]), "b": ("count", [1, 2])})
    assert large.to_pandas()["a"][0] == 2**53 + 1
    assert pyarrow.compute.subtract(pyarrow.table(large)["b"], 2).to_pylist() == [-1, 0]


def test_nothing_is_nothing() -> None:
    table = fairlab.Table({"a": ("count", [1, None]), "b": ("text", [None, "x"]), "c": ("truth", [True, None])})
    assert pyarrow.table(table).to_pylist() == [{"a": 1, "b": None, "c": True}, {"a": None, "b": "x", "c": None}]
    for columns, words in [
        ({"a": ("colour", [1])}, "'colour' is no kind of column"),
        ({"a": ("count", [1]), "b": ("count", [])}, "columns of equal length"),
    ]:
        with pytest.raises(fairlab.Error, match=words):
            fairlab.Table(columns)
    with pytest.raises(fairlab.Error, match="there is no column 'z'; there are a, b, c"):
        table["z"]
    with pytest.raises(TypeError):
        fairlab.Table({"a": ("count", ["x"])})


def test_names_cannot_become_markup() -> None:
    table = fairlab.Table({"<b>": ("text", ["<script>alert(1)</script>"] * 30)})
    text = table._repr_html_()
    assert "<script" not in text and "<b>" not in text and "&lt;script&gt;" in text and "10 more rows" in text


def test_cells_have_digits_that_mean_something() -> None:
    values: list[float] = [14356200.7, 9.40887e-07, 0.413342, 1.0, 9999.96, 123456789012.0, 0.0, -25600.4]
    spans = [68054466272, 8018005, 950, 0, 1500, None, -2000, 1]
    table = fairlab.Table({"number": ("number", values), "span": ("duration", spans)})
    cells = re.findall(r"<td>([^<]*)</td>", table._repr_html_())
    assert cells[::2] == ["14,360,000", "9.4e-07", "0.4133", "1", "10,000", "123,500,000,000", "0", "-25,600"]
    assert cells[1::2] == ["68.05 s", "8.018 ms", "950 ns", "0 ns", "1.5 us", "", "-2 us", "1 ns"]
    instants = fairlab.Table({"at": ("time", [1356933304895, 5])})
    assert re.findall(r"<td>([^<]*)</td>", instants._repr_html_()) == ["1356.933304 s", "0.000000 s"]


def test_marimo_shows_tables_and_charts(latency: fairlab.Latency) -> None:
    """As its cells show them: an object's own page of HTML, and a chart by its kind."""
    shown = marimo.as_html(latency)
    assert "hackbench" in shown.text and "<table>" in shown.text
    assert "<table>" in marimo.as_html(latency.tasks).text
    assert "vegalite" in marimo.as_html(latency.plot()).text


def test_jupyter_shows_tables_and_charts(latency: fairlab.Latency) -> None:
    """As IPython's formatters see them, which Jupyter, VS Code and Colab use."""
    format_of = DisplayFormatter().format
    data, _ = format_of(latency)
    assert "<table>" in data["text/html"] and data["text/plain"].startswith("<fairlab.Latency of")
    data, _ = format_of(latency.tasks)
    assert "<table>" in data["text/html"] and data["text/plain"].startswith("<fairlab.Table: ")
    data, _ = format_of(latency.plot())
    assert "vega-embed" in data["text/html"]


def test_pandas_and_polars_show_frames(latency: fairlab.Latency) -> None:
    assert "hackbench" in latency.tasks.to_pandas()._repr_html_()
    frame = latency.tasks.to_polars()
    assert "hackbench" in frame._repr_html_() and "duration[ns]" in frame._repr_html_()


def test_answers_are_shown(latency: fairlab.Latency) -> None:
    text = latency._repr_html_()
    assert "fairlab latency" in text and "hackbench" in text and text.count("<tr>") >= 2
    assert repr(latency).startswith("<fairlab.Latency of 'fairlab latency ")
    assert isinstance(latency.tasks.to_pandas(), pandas.DataFrame)


def test_sums_of_waits_stand_in_summary_and_explain_too() -> None:
    blamed = fairlab.blame(TRACE)
    explained, summed = fairlab.explain(TRACE), fairlab.summary(TRACE)
    assert explained.waiting == blamed.waiting
    assert list(explained.culprits.rows()) == [{name: value for name, value in row.items() if name != "side"} for row in blamed.culprits.rows()]
    names = {row["waiter"]: row["wait_ns"] for row in blamed.waiting["waiters"]}
    for waiting in summed.json["waiting"]:
        rows = [row for row in summed.culprits.rows() if row["waiter"] == waiting["whose"][0]]
        assert sum(row["time"] for row in rows) == waiting["wait_ns"] == names[waiting["whose"][0]]


def test_plots_are_charts() -> None:
    kernels = ["v6.5", "v6.6"]
    asked: dict[str, Any] = {"kernel": kernels, "machine": "vm4", "duration": "100ms"}
    runs = fairlab.run("pipe -l 200", seeds=2, **asked)
    charts = [
        (runs.plot("switches_per_s"), "switches_per_s"),
        (fairlab.compare("pipe -l 200", runs=3, **asked).plot(), "ratio to v6.5"),
        (fairlab.summary(TRACE).plot(), "p99.9"),
        (fairlab.latency(TRACE).plot(), "longest delay, ms"),
        (fairlab.explain(TRACE).plot(), "ms from when the wait began"),
    ]
    for chart, words in charts:
        assert words in chart.to_json()
    with pytest.raises(fairlab.Error, match="have no metric 'colour'"):
        runs.plot("colour")
