"""Frames are taken by others as they are; times are times."""

from __future__ import annotations

from typing import Any

import fairlab
import pandas
import polars
import pyarrow
import pyarrow.compute
import pytest

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


def test_answers_are_shown(latency: fairlab.Latency) -> None:
    text = latency._repr_html_()
    assert "fairlab latency" in text and "hackbench" in text and text.count("<tr>") >= 2
    assert repr(latency).startswith("<fairlab.Latency of 'fairlab latency ")
    assert isinstance(latency.tasks.to_pandas(), pandas.DataFrame)


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
