"""The interpreter goes on during calls, Ctrl-C ends them, and types and documentation are whole."""

from __future__ import annotations

import contextlib
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import fairlab
import pytest

LONG = "schbench -m 2 -t 8 -r 0"


def interrupted(script: str, wait: Callable[[], object]) -> tuple[float, str]:
    """How long a script lives after Ctrl-C, which comes once ``wait`` returns, and what it prints."""
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert child.stdout is not None and child.stdout.readline() == "begun\n"
    wait()
    os.kill(child.pid, signal.SIGINT)
    begun = time.monotonic()
    text, _ = child.communicate(timeout=60)
    return time.monotonic() - begun, text


def test_other_threads_go_on() -> None:
    count = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal count
        while not done.is_set():
            count += 1
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    begun = time.monotonic()
    fairlab.run(LONG, kernel="v6.6", machine="vm4", duration="5s")
    took, ticks = time.monotonic() - begun, count
    done.set()
    ticking.join()
    # One that holds the lock would let the other thread count a few times at most.
    assert ticks > 10 or took < 0.05, (ticks, took)


@pytest.mark.parametrize(
    "call",
    [
        f"fairlab.run({LONG!r}, kernel='v6.6', machine='vm40', duration='1h')",
        f"fairlab.compare({LONG!r}, kernel=['v6.5', 'v6.6'], machine='vm40', duration='1h')",
        f"fairlab.bisect({LONG!r}, good='v6.5', bad='v6.6', machine='vm40', duration='1h')",
    ],
)
def test_an_interrupt_ends_a_call(call: str) -> None:
    script = f"""
        import fairlab
        print('begun', flush=True)
        try:
            {call}
        except KeyboardInterrupt:
            print('ended')
    """
    lasted, text = interrupted(script, lambda: time.sleep(0.5))
    assert text == "ended\n" and lasted < 10, (lasted, text)


def test_an_interrupted_sweep_goes_on(tmp_path: Path) -> None:
    spec = {"kernels": ["v6.6"], "machines": ["vm4"], "workloads": ["pipe -l 2000"], "seeds": 400, "duration_ms": 500}
    script = f"""
        import fairlab
        print('begun', flush=True)
        try:
            fairlab.sweep({spec!r}, out={str(tmp_path / "sweep")!r})
        except KeyboardInterrupt:
            print('ended')
    """

    def kept() -> fairlab.Sweep:
        return fairlab.query(tmp_path / "sweep", metric="throughput")

    def some_are_done() -> None:
        for _ in range(600):
            with contextlib.suppress(fairlab.Error):
                if kept().json["partial"]["cells"] > 0:
                    return
            time.sleep(0.1)

    _, text = interrupted(script, some_are_done)
    assert text == "ended\n", text
    assert not kept().is_complete and 0 < kept().json["partial"]["cells"] < 400


def public() -> list[tuple[str, object]]:
    """Everything that the package offers, and the methods of its classes."""
    found: list[tuple[str, object]] = []
    for name in fairlab.__all__:
        thing = getattr(fairlab, name)
        found.append((name, thing))
        if inspect.isclass(thing):
            own = [(key, value) for key, value in vars(thing).items() if not key.startswith("_")]
            found += [(f"{name}.{key}", value) for key, value in own]
    return [(name, thing) for name, thing in found if name != "__version__"]


def test_everything_is_documented() -> None:
    lacking = [name for name, thing in public() if not (getattr(thing, "__doc__", None) or "").strip()]
    assert not lacking, lacking
    calls = [name for name, thing in public() if inspect.isfunction(thing) and "." not in name]
    for name in calls:
        call = getattr(fairlab, name)
        lacking = [f"{name}({word})" for word in inspect.signature(call).parameters if word not in help_of(call)]
        assert not lacking, lacking


def help_of(call: object) -> str:
    """What a call's documentation says, and those that it refers to."""
    text = inspect.getdoc(call) or ""
    for other in ("run", "compare", "summary"):
        if f":func:`{other}`" in text:
            text += help_of(getattr(fairlab, other))
    return text


def test_types_hold() -> None:
    package = Path(__file__).resolve().parents[1]
    words = [sys.executable, "-m", "mypy", "--config-file", str(package / "pyproject.toml"), str(package / "fairlab")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=package.parent / "target")
    assert done.returncode == 0, done.stdout + done.stderr
