"""Cells on the machines of a Ray cluster: of sweeps, searches, recordings and runs beside other kernels.

A batch of cells goes out as text that holds all they need, and comes back as records. Who gives batches out waits for them in the order
of cells, so what comes of them is what one thread on one machine makes. A batch on a machine that is lost is run again elsewhere.

``fairlab … --on ray://HOST:PORT`` reaches it through ``python3 -m fairlab.carrier``.

Must not know: what a cell is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from . import _native
from ._native import Error
from ._table import needed

CLIENT_PORT = 10001
"""Ray's client server listens there by default."""

CONNECTION_ATTEMPTS = 3
"""How often a cluster's server for this client may fail to come up."""

GOES_ON = "run the command again to continue"

RETRIES = 20
"""So often a batch is run again whose machine or process was lost."""


class Pool(Protocol):
    """What runs batches somewhere."""

    def cpus(self) -> int:
        """How many batches run at once."""

    def submit(self, batch: str) -> Any:
        """Sends a batch; gives what its records are asked by."""

    def ready(self, sent: Any, seconds: float) -> bool:
        """Waits so long, and tells whether the records of a batch are there."""

    def records(self, sent: Any) -> list[str]:
        """The records of a batch, when they are there."""

    def cancel(self, sent: Any) -> None:
        """A batch's records are no longer wanted."""


@contextmanager
def crew(on: str) -> Iterator[Pool | None]:
    """The cluster that ``on`` names, for as long as it is wanted; None: threads of this process are meant."""
    if on == "threads":
        yield None
        return
    address = address_of(on)
    ray = needed("ray", "ray")
    begun = not ray.is_initialized()
    if begun:
        connect(ray, address)
    try:
        yield RayPool(ray)
    finally:
        if begun:
            ray.shutdown()


def address_of(on: str) -> str | None:
    """The address that a word means: None is this process's cluster, or a new one on this host."""
    if on == "ray":
        return None
    host = on.removeprefix("ray://")
    if host == on or not host:
        raise Error(f"on={on!r} names no place; there are threads, ray, ray://HOST:PORT")
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

    def ready(self, sent: Any, seconds: float) -> bool:
        """Waits so long, and tells whether a batch has ended in whatever way."""
        return bool(self._ray.wait([sent[1]], timeout=seconds)[0])

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
                raise Error(f"Ray has failed: {first_line(error)}; {GOES_ON}") from error
        raise Error(f"a batch of cells was lost {RETRIES} times with its machine; {GOES_ON}")

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
    return Error(f"a cell failed: {first_line(cause)}; {GOES_ON}")


def first_line(error: Any) -> str:
    """The first line of what an error says, or else its kind."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
