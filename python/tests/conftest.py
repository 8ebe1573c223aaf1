"""What tests share: the program to hold answers against, a small trace, where the repository is."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "testdata" / "perf-hackbench.data"


@pytest.fixture(scope="session")
def program() -> Path:
    """The program of the same sources."""
    found = ROOT / "target" / "debug" / "fairlab"
    assert found.is_file(), f"{found} is not there; cargo build -p fairlab-cli makes it"
    return found


@pytest.fixture(scope="session")
def answered(program: Path) -> Callable[..., Any]:
    """What the program answers as JSON."""

    def ask(*words: str) -> Any:
        done = subprocess.run([program, *words, "--format", "json"], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1, 3), done.stderr
        return json.loads(done.stdout)

    return ask


@pytest.fixture(scope="session")
def refused(program: Path) -> Callable[..., str]:
    """The line that the program refuses words with."""

    def ask(*words: str) -> str:
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stdout
        return done.stderr.removeprefix("fairlab: ").rstrip("\n")

    return ask
