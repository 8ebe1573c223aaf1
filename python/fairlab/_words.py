"""From Python's values to the words of a command line.

Must not know: what is run.
"""

from __future__ import annotations

import datetime
import os
import shlex
import warnings
from collections.abc import Iterable, Sequence
from typing import Union

from ._native import Error

Names = Union[str, Sequence[str]]
"""A name, or several."""

Tasks = Union[str, int, Sequence[Union[str, int]]]
"""A task by its name or id, or several."""

Time = Union[str, datetime.timedelta]
"""A time: ``"500ms"``, ``"30s"``, or a timedelta."""

File = Union[str, "os.PathLike[str]"]
"""A file's or folder's path."""


class Remark(UserWarning):
    """What the reader of an answer should know before trusting it; the program tells it on standard error."""


def names(value: Names) -> list[str]:
    """A name or several as a list."""
    return [value] if isinstance(value, str) else list(value)


def several(value: Tasks) -> list[str | int]:
    """A task or several as a list."""
    return [value] if isinstance(value, (str, int)) else list(value)


def command(workload: Names) -> list[str]:
    """A workload's command line as words."""
    if not isinstance(workload, str):
        return [str(word) for word in workload]
    try:
        return shlex.split(workload)
    except ValueError as error:
        raise Error(f"{workload!r} is no command line: {error}; give its words as a list") from None


def time(name: str, value: Time | None) -> str | None:
    """A time as a word."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime.timedelta):
        whole = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        return f"{whole}us"
    problem = "a duration is a number with a unit, such as 500ms, 30s or 2m"
    raise Error(f"{name}={value!r}: {problem}; give a string, or a timedelta")


def options(pairs: Iterable[tuple[str, object]]) -> list[str]:
    """Options of a command line: those with a value, flags that are set, each of several."""
    words: list[str] = []
    for option, value in pairs:
        if value is None or value is False:
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        for one in values:
            words += [option] if one is True else [option, os.fspath(one) if hasattr(one, "__fspath__") else str(one)]
    return words


def remark(lines: Iterable[str], depth: int = 3) -> None:
    """Warns of each line, at the place of the user's call, which is so many calls away."""
    for line in lines:
        warnings.warn(line, Remark, stacklevel=depth)
