"""The native half: words in, JSON and Arrow out."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

__version__: str

class Error(ValueError):
    """Bad use or input: what is wrong, where, and what to do, in the words that the program prints."""

class Table:
    @staticmethod
    def of_columns(columns: Sequence[tuple[str, str, Sequence[Any]]]) -> Table: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

_Told = tuple[int, int, int, str | None]

class Sweep:
    def __init__(
        self,
        file: PathLike[str] | str | None,
        json: str | None,
        folder: PathLike[str] | str,
        exact: bool,
        warmup: str | None,
        metrics: Sequence[str],
    ) -> None: ...
    @property
    def cells(self) -> int: ...
    def run(
        self, jobs: int | None, crew: object | None, progress: Callable[[int, int], None] | None
    ) -> _Told: ...
    def batch(self, numbers: Sequence[int]) -> str: ...

_Answer = tuple[str, list[str], list[str]]

def run(
    request: Mapping[str, Any], seeds: int, trace: PathLike[str] | str | None, probes: bool
) -> _Answer: ...
def compare(
    sides: Mapping[str, Any], names: Mapping[str, Any], wanted: Mapping[str, Any], words: Sequence[str]
) -> _Answer: ...
def compare_schedstat(paths: Sequence[PathLike[str] | str], words: Sequence[str]) -> str: ...
def bisect(
    request: Mapping[str, Any],
    metric: str | None,
    margin: str,
    error: str,
    runs: int,
    crew: object | None,
) -> _Answer: ...
def fidelity(folder: PathLike[str] | str, at: Mapping[str, Any]) -> tuple[str, list[str]]: ...
def oracle(only: str, seeds: int, cases: int, at: Mapping[str, Any]) -> str: ...
def query(
    folder: PathLike[str] | str,
    filters: Sequence[tuple[str, str]],
    by: Sequence[str],
    metrics: Sequence[str],
    words: Sequence[str],
) -> str: ...
def run_cells(batch: str) -> list[str]: ...
def read_trace(
    source: Mapping[str, Any], columns: Sequence[str] | None
) -> tuple[Table, str, list[str]]: ...
def summary(source: Mapping[str, Any], machine: str | None) -> tuple[str, list[str]]: ...
def latency(source: Mapping[str, Any], by_pid: bool, sort: str) -> tuple[str, list[str]]: ...
def explain(source: Mapping[str, Any], worst: int) -> _Answer: ...
def blame(
    source: Mapping[str, Any], after: PathLike[str] | str | None, each: bool
) -> tuple[str, str, list[str]]: ...
