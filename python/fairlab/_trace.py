"""A trace's events as a frame.

Must not know: what they are read from.
"""

from __future__ import annotations

import html
from typing import Any

from . import _native
from ._answers import Json
from ._table import in_pandas, needed


class Trace:
    """Every event of a trace, a row each, in Arrow's memory: ``pyarrow.table(t)``, ``polars.DataFrame(t)`` and others take it.

    ``time`` is a ``timestamp[ns]`` of the trace's own clock, ``cpu`` the CPU, ``event`` the tracepoint; behind them stand the fields
    of the tracepoints under the kernel's names, empty where an event has none. Fields that end in ``_ns`` are spans, ns.
    """

    def __init__(self, table: _native.Table, json: Json) -> None:
        self._native = table
        self.json: Json = json
        """How it was read: provenance, and the account of the import, as in every answer about a trace."""

    @property
    def column_names(self) -> list[str]:
        """The columns' names."""
        return self._native.column_names

    def __len__(self) -> int:
        """How many events there are."""
        return len(self._native)

    def __arrow_c_schema__(self) -> object:
        """Arrow's C interface: the schema."""
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's C interface: the events, without a copy."""
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
        """What it is of."""
        return f"<fairlab.Trace: {len(self)} events, {len(self.column_names)} columns; '{self.json['provenance']['command']}'>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>"
