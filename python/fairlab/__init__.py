"""A laboratory for the Linux fair scheduler: what a scheduler change does to a workload on a machine, and why.

>>> import fairlab
>>> runs = fairlab.run("schbench -m 1 -t 4", kernel="v6.6", machine="vm4", duration="1s")
>>> compared = fairlab.compare("schbench -m 1 -t 4", kernel=["v6.5", "v6.6"], machine="vm4", duration="1s")
>>> compared.plot()

Words (kernels, machines, workloads, metrics, times) mean what they mean to the program ``fairlab``, and answers have its JSON in
``.json``. Frames are tables of Arrow's C interface: ``pyarrow.table(x)``, ``polars.DataFrame(x)`` and DuckDB take them without a copy.
In frames a span is a ``duration[ns]``, an instant of a trace's clock a ``timestamp[ns]``; in JSON both are whole nanoseconds in fields
that end in ``_ns``. Calls release the interpreter's lock, and Ctrl-C ends them. Bad use and input raise :class:`fairlab.Error`.
"""

from ._answers import (
    Answer,
    Bisection,
    Blame,
    Comparison,
    Explanation,
    Fidelity,
    Gate,
    Latency,
    Oracle,
    Run,
    Schedstat,
    Summary,
    Sweep,
)
from ._calls import (
    bisect,
    blame,
    compare,
    compare_folders,
    compare_hosts,
    compare_live,
    compare_schedstat,
    explain,
    fidelity,
    latency,
    oracle,
    query,
    read_trace,
    run,
    summary,
    sweep,
)
from ._native import Error, __version__
from ._table import Table
from ._trace import Trace
from ._words import Remark

__all__ = [
    "Answer",
    "Bisection",
    "Blame",
    "Comparison",
    "Error",
    "Explanation",
    "Fidelity",
    "Gate",
    "Latency",
    "Oracle",
    "Remark",
    "Run",
    "Schedstat",
    "Summary",
    "Sweep",
    "Table",
    "Trace",
    "__version__",
    "bisect",
    "blame",
    "compare",
    "compare_folders",
    "compare_hosts",
    "compare_live",
    "compare_schedstat",
    "explain",
    "fidelity",
    "latency",
    "oracle",
    "query",
    "read_trace",
    "run",
    "summary",
    "sweep",
]
