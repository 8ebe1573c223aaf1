"""Carries batches of cells from the program to a cluster: a line of JSON each, both ways, in order.

``fairlab … --on ray://HOST:PORT`` runs this module and gives its batches out; see :mod:`fairlab.fleet`.

Must not know: what a cell is.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

from ._native import Error
from .fleet import GOES_ON, Pool, crew, first_line


def read_lines() -> queue.SimpleQueue[str]:
    """The lines of this process's input. At its end this process is interrupted: whoever gives batches out wants no more, or is gone."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=read, daemon=True).start()
    return lines


def serve(pool: Pool, batches: queue.SimpleQueue[str]) -> None:
    """Runs batches, and writes their records, a line a batch, in the order of batches."""
    sent: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def send() -> None:
        try:
            while True:
                sent.put(pool.submit(batches.get()))
        except Exception as error:  # Ray raises what it meets.
            sent.put(error)

    print(json.dumps({"cpus": pool.cpus()}), flush=True)
    threading.Thread(target=send, daemon=True).start()
    while True:
        batch = sent.get()
        if isinstance(batch, Exception):
            raise Error(f"Ray has failed: {first_line(batch)}; {GOES_ON}") from batch
        records = pool.records(batch)
        # Records are JSON as they are.
        print(f'{{"records":[{",".join(records)}]}}', flush=True)


def main(arguments: Sequence[str]) -> int:
    """The program's hand for clusters."""
    parser = argparse.ArgumentParser(prog="python3 -m fairlab.carrier")
    parser.add_argument("--on", required=True)
    asked = parser.parse_args(arguments)
    batches = read_lines()
    try:
        with crew(asked.on) as pool:
            if pool is not None:
                serve(pool, batches)
    except (Error, ImportError) as error:
        # Whoever hears it wants no more.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print(json.dumps({"error": str(error)}), flush=True)
        return 2
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
