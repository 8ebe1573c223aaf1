"""Cells of a sweep on the machines of a Ray cluster.

A batch of cells goes out as text that holds all they need, and comes back as records of the journal. The batches that are out are
bounded, and are waited for in the order of cells: the journal is that of one thread on one machine, byte for byte. A batch on a
machine that is lost is run again elsewhere. What an interruption leaves is a journal that the next call of the sweep continues.

``fairlab sweep FILE --on ray://HOST:PORT`` runs this module for that.

Must not know: what a cell is.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from . import _native
from ._native import Error
from ._table import needed

CLIENT_PORT = 10001
"""Ray's client server listens there by default."""

CONNECTION_ATTEMPTS = 3
"""How often a cluster's server for this client may fail to come up."""

BATCH_MAX = 32
"""So many cells a batch has at most: a lost machine costs their time."""

BATCHES_A_CPU = 2
"""So many batches are out for each CPU: one under way, and one that waits for it to end."""

BATCHES_A_WORKER_MIN = 4
"""A sweep is cut into so many batches a CPU at least, so that all CPUs end at about one time."""

RETRIES = 20
"""So often a batch is run again whose machine or process was lost."""

Progress = Callable[[int, int], None]
Told = tuple[int, int, int, "str | None"]
"""Cells in all, done before, done now, and what was mended."""


class Stopped(KeyboardInterrupt):
    """Ctrl-C came; what is done is kept."""

    def __init__(self, told: Told) -> None:
        super().__init__()
        self.told = told


class Pool(Protocol):
    """What runs batches somewhere."""

    def cpus(self) -> int:
        """How many batches run at once."""

    def submit(self, batch: str) -> Any:
        """Sends a batch; gives what its records are asked by."""

    def records(self, sent: Any) -> list[str]:
        """The records of a batch, when they are there."""

    def cancel(self, sent: Any) -> None:
        """A batch's records are no longer wanted."""


def carry(sweep: _native.Sweep, on: str, progress: Progress | None = None) -> Told:
    """Runs the rest of a sweep on the cluster that ``on`` names."""
    address = address_of(on)
    ray = needed("ray", "ray")
    sweep.open()
    begun = not ray.is_initialized()
    if begun:
        connect(ray, address)
    try:
        return drive(sweep, RayPool(ray), progress)
    finally:
        if begun:
            ray.shutdown()


def address_of(on: str) -> str | None:
    """The address that a word means: None is this process's cluster, or a new one on this host."""
    if on == "ray":
        return None
    host = on.removeprefix("ray://")
    if host == on or not host:
        raise Error(f"on={on!r} names no place for a sweep; there are threads, ray, ray://HOST:PORT")
    name, colon, port = host.rpartition(":")
    if not colon:
        return f"{on}:{CLIENT_PORT}"
    if not name or not port.isdigit():
        raise Error(f"on={on!r}: '{port}' is no port; write ray://HOST:PORT")
    return on


def connect(ray: Any, address: str | None) -> None:
    """Joins the cluster, or starts one on this host.

    A cluster starts a server for each client. Now and then that fails before it has begun, and the next one comes up.
    """
    for attempt in range(1, CONNECTION_ATTEMPTS + 1):
        try:
            ray.init(address=address, logging_level="ERROR", log_to_driver=False)
            return
        except Exception as error:  # Ray raises what it meets: names, sockets, versions.
            if attempt < CONNECTION_ATTEMPTS and "Initialization failure" in str(error):
                ray.shutdown()
                continue
            where = address or "this host"
            raise Error(f"cannot reach Ray at {where}: {first_line(error)}; start it with 'ray start --head'") from error


def drive(sweep: _native.Sweep, pool: Pool, progress: Progress | None = None) -> Told:
    """Gives out the rest of an open sweep, and keeps what comes back, in the order of cells."""
    cpus = max(1, pool.cpus())
    size = max(1, min(BATCH_MAX, sweep.cells // (cpus * BATCHES_A_WORKER_MIN)))
    out: deque[Any] = deque()
    try:
        while True:
            while len(out) < cpus * BATCHES_A_CPU and (batch := sweep.next_batch(size)) is not None:
                out.append(pool.submit(batch[0]))
            if not out:
                break
            done = sweep.add(pool.records(out[0]))
            out.popleft()
            if progress is not None:
                progress(done, sweep.cells)
    except BaseException as error:
        for sent in out:
            pool.cancel(sent)
        told = sweep.close()
        if isinstance(error, KeyboardInterrupt):
            raise Stopped(told) from None
        raise
    return sweep.close()


def run_batch(batch: str) -> list[str]:
    """Runs a batch where it has come to."""
    return _native.run_cells(batch)


class RayPool:
    """Batches as tasks of Ray, a CPU each."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._run = ray.remote(num_cpus=1, max_retries=RETRIES)(run_batch)

    def cpus(self) -> int:
        """The cluster's CPUs now."""
        return int(self._ray.cluster_resources().get("CPU", 1))

    def submit(self, batch: str) -> Any:
        """Sends a batch; kept with it, as it may have to be sent again."""
        return [batch, self._run.remote(batch)]

    def records(self, sent: Any) -> list[str]:
        """Waits for the records. Ray runs a task again whose machine was lost; when it gives up, the batch is sent again."""
        exceptions = self._ray.exceptions
        for _ in range(RETRIES):
            try:
                return list(self._ray.get(sent[1]))
            except exceptions.RayTaskError as error:
                raise told(error) from error
            except (exceptions.WorkerCrashedError, exceptions.ObjectLostError, exceptions.NodeDiedError):
                sent[1] = self._run.remote(sent[0])
            except exceptions.RayError as error:
                raise Error(f"Ray has failed: {first_line(error)}; run the sweep again to continue") from error
        raise Error(f"a batch of cells was lost {RETRIES} times with its machine; run the sweep again to continue")

    def cancel(self, sent: Any) -> None:
        """Ends a batch's task."""
        try:
            self._ray.cancel(sent[1], force=False)
        except Exception:  # The cluster may be gone; what it does then is its own affair.
            pass


def told(error: Any) -> Error:
    """What a task raised, in its own words."""
    cause = error.cause
    if isinstance(cause, Error):
        return cause
    if isinstance(cause, ImportError):
        problem = f"a machine of the cluster has no package fairlab {_native.__version__}"
        return Error(f"{problem}: {cause}; install it on every machine")
    return Error(f"a cell failed: {first_line(cause)}; run the sweep again to continue")


def first_line(error: Any) -> str:
    """The first line of what an error says, or else its kind."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def stop_at_end_of_input() -> None:
    """Interrupts this process when its input ends: its starter wants no more, or is gone."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=wait, daemon=True).start()


def main(arguments: Sequence[str]) -> int:
    """The program's hand for clusters: runs the rest of a sweep, and tells in JSON how far it came, or what is wrong."""
    parser = argparse.ArgumentParser(prog="python3 -m fairlab.fleet")
    parser.add_argument("file")
    parser.add_argument("--out", required=True)
    parser.add_argument("--on", required=True)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--warmup")
    parser.add_argument("--metric", action="append", default=[])
    asked = parser.parse_args(arguments)
    stop_at_end_of_input()
    shown = sys.stderr.isatty()

    def progress(done: int, cells: int) -> None:
        if shown:
            print(f"\r\x1b[Ksweep: {done} of {cells} cells", end="", file=sys.stderr, flush=True)

    status = 0
    try:
        sweep = _native.Sweep(asked.file, None, asked.out, asked.exact, asked.warmup, asked.metric)
        far = carry(sweep, asked.on, progress)
    except (Error, ImportError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 2
    except Stopped as stopped:
        far, status = stopped.told, 130
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    print(json.dumps(dict(zip(("cells", "before", "done", "note"), far))), flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
