"""Frames: columns in Arrow's memory, for any library that takes that.

Must not know: what stands in them.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import _native

ROWS_SHOWN = 20
"""So many rows a notebook shows."""


def needed(package: str, extra: str) -> Any:
    """A package that is optional, or the error that names the cure."""
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f"this needs {package}; pip install 'fairlab[{extra}]'") from error


def in_pandas(table: Any) -> Any:
    """A ``pyarrow.Table`` as a ``pandas.DataFrame`` whose whole numbers are nullable: as floats they would lose digits beyond 2**53."""
    pandas, pyarrow = needed("pandas", "pandas"), needed("pyarrow", "arrow")
    nullable = {pyarrow.int32(): pandas.Int32Dtype(), pyarrow.int64(): pandas.Int64Dtype(), pyarrow.bool_(): pandas.BooleanDtype()}
    return table.to_pandas(types_mapper=nullable.get)


class Table:
    """A frame. It speaks Arrow's C interface: ``pyarrow.table(t)``, ``polars.DataFrame(t)``, DuckDB and others take its memory.

    Spans are ``duration[ns]``, instants ``timestamp[ns]`` of the trace's clock.
    """

    def __init__(self, columns: Mapping[str, tuple[str, Sequence[Any]]]) -> None:
        """Columns: each name with its kind (text, integer, count, number, truth, duration, time) and its values."""
        self._columns = {name: list(values) for name, (_, values) in columns.items()}
        self._kinds = {name: kind for name, (kind, _) in columns.items()}
        parts = [(name, kind, values) for name, (kind, values) in columns.items()]
        self._native = _native.Table.of_columns(parts)

    @property
    def column_names(self) -> list[str]:
        """The columns' names."""
        return list(self._columns)

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self._native)

    def __getitem__(self, column: str) -> list[Any]:
        """A column's values; times in ns."""
        try:
            return self._columns[column]
        except KeyError:
            known = ", ".join(self._columns)
            raise _native.Error(f"there is no column {column!r}; there are {known}") from None

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows; times in ns."""
        for values in zip(*self._columns.values()):
            yield dict(zip(self._columns, values))

    def __arrow_c_schema__(self) -> object:
        """Arrow's C interface: the schema."""
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's C interface: the rows, without a copy."""
        return self._native.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table`` of this memory."""
        return needed("pyarrow", "arrow").table(self)

    def to_polars(self) -> Any:
        """A ``polars.DataFrame``."""
        return needed("polars", "polars").DataFrame(self)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``. Whole numbers keep their 64 bits where others are missing: they are of pandas' nullable types."""
        return in_pandas(self.to_arrow())

    def __repr__(self) -> str:
        """How large it is."""
        return f"<fairlab.Table: {len(self)} rows of {', '.join(self._columns)}>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._columns)
        rows = []
        for row, _ in zip(self.rows(), range(ROWS_SHOWN)):
            cells = (shown(value, self._kinds[name]) for name, value in row.items())
            rows.append("".join(f"<td>{html.escape(cell)}</td>" for cell in cells))
        left = len(self) - len(rows)
        more = f"<p>{left} more rows</p>" if left > 0 else ""
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def shown(value: Any, kind: str = "") -> str:
    """A value as a cell shows it: numbers with four digits that mean something, times in a unit that reads well."""
    if value is None:
        return ""
    if kind == "duration":
        return span(value)
    if kind == "time":
        # As ftrace prints it: cut to microseconds.
        return f"{value // 10**9}.{value % 10**9 // 1000:06d} s"
    return number(value) if isinstance(value, float) else str(value)


def number(value: float) -> str:
    """A number with four significant digits, and a power of ten only where it is tiny: 14,360,000, 0.4133, 9.4e-07."""
    if value != 0 and abs(value) < 1e-4:
        return f"{value:.2g}"
    if abs(value) < 9999.5 or not math.isfinite(value):
        return f"{value:.4g}"
    left_out = 10 ** (math.floor(math.log10(abs(value))) - 3)
    return f"{round(value / left_out) * left_out:,}"


def span(nanoseconds: int) -> str:
    """A span with four significant digits: 14.36 ms."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if abs(nanoseconds) >= size:
            return f"{number(nanoseconds / size)} {unit}"
    return f"{nanoseconds} ns"
