"""What the driver of a sweep on a cluster holds and ships: figures of docs/fleet.md.

    /usr/bin/time -v target/python/bin/python python/tests/measure_driver.py 100000
    /usr/bin/time -v target/python/bin/python python/tests/measure_driver.py 100000 --ray

Without ``--ray`` the cluster has 200 CPUs that are not there: one cell of each kind is run, and its record comes back for all of that
kind, with their numbers and seeds. With it, every cell is run on a cluster of two nodes with a CPU each, on this host.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import fairlab
import ray
from fairlab import _native
from ray.cluster_utils import Cluster

SPEC: dict[str, Any] = {
    "kernels": ["v6.5", "v6.6,base_slice_ns={slice}"],
    "machines": ["vm4"],
    "workloads": ["pipe -l {loops}"],
    "options": {"loops": [5, 10], "slice": [1_000_000, 3_000_000]},
    "warmup_ms": 0,
    "duration_ms": 10,
}

KINDS = 8


class Imagined:
    """A cluster of 200 CPUs that knows one record of each kind of cells."""

    def __init__(self) -> None:
        self.known: dict[int, dict[str, Any]] = {}
        self.out = self.most_out = self.sent = self.came = 0

    def cpus(self) -> int:
        return 200

    def submit(self, batch: str) -> str:
        self.out += 1
        self.most_out = max(self.most_out, self.out)
        self.sent += len(pickle.dumps(batch))
        return batch

    def ready(self, sent: str, seconds: float) -> bool:
        return True

    def records(self, sent: str) -> list[str]:
        self.out -= 1
        batch = json.loads(sent)
        cells = batch["work"]["sweep"]["cells"]
        for cell in cells:
            if cell["group"] not in self.known:
                one = {"sweep": {**batch["work"]["sweep"], "cells": [cell]}}
                [record] = _native.run_cells(json.dumps({**batch, "work": one}))
                self.known[cell["group"]] = json.loads(record)
        of = [{**self.known[cell["group"]], "cell": cell["cell"], "seed": cell["seed"]} for cell in cells]
        records = [json.dumps(record, separators=(",", ":")) for record in of]
        self.came += len(pickle.dumps(records))
        return records

    def cancel(self, sent: str) -> None:
        pass


def peak_mb() -> float:
    """The most memory that this process had, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(cells: int, with_ray: bool) -> None:
    """Runs a sweep of so many cells and prints what that cost."""
    spec = {**SPEC, "seeds": cells // KINDS}
    folder = Path(tempfile.mkdtemp()) / "sweep"
    before, begun = peak_mb(), time.monotonic()
    if with_ray:
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False)
        before = peak_mb()
        done = fairlab.sweep(spec, out=folder, on="ray", metric="throughput")
        assert done.is_complete
        ray.shutdown()
        cluster.shutdown()
    else:
        sweep = _native.Sweep(None, json.dumps(spec), folder, False, None, [])
        pool = Imagined()
        assert sweep.run(None, pool, None)[2] == cells
        out, back = pool.sent / cells, pool.came / cells
        print(f"at most {pool.most_out} batches out; a cell is {out:.0f} bytes out, {back:.0f} bytes back")
    took = time.monotonic() - begun
    sizes = {file.name: file.stat().st_size / 1e6 for file in folder.iterdir()}
    files = ", ".join(f"{name} {size:.1f} MB" for name, size in sorted(sizes.items()))
    print(f"{cells} cells in {took:.0f} s; {before:.0f} MB before, {peak_mb():.0f} MB at most; {files}; {folder}")


if __name__ == "__main__":
    main(int(sys.argv[1]), "--ray" in sys.argv)
