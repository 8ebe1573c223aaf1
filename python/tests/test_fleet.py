"""Sweeps on a cluster are those of one machine, byte for byte, whatever is lost on the way."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fairlab
import pytest
import ray
from fairlab import _native, fleet
from ray.cluster_utils import Cluster

SPEC: dict[str, Any] = {
    "kernels": ["v6.5", "v6.6,base_slice_ns={slice}"],
    "machines": ["vm4"],
    "workloads": ["schbench -m 1 -t {threads}"],
    "options": {"threads": [2, 6], "slice": [1_000_000, 3_000_000]},
    "seeds": 4,
    "duration_ms": 1500,
}


def as_file(folder: Path) -> Path:
    """The sweep as a file."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in SPEC.items() if key != "options"]
    options = ", ".join(f"{key} = {json.dumps(value)}" for key, value in SPEC["options"].items())
    file = folder / "sweep.toml"
    file.write_text("\n".join([*lines, f"options = {{ {options} }}", ""]))
    return file


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a sweep's folder."""
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def one_machine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one thread on one machine makes."""
    folder = tmp_path_factory.mktemp("one") / "sweep"
    assert fairlab.sweep(SPEC, out=folder, jobs=1).is_complete
    return content(folder)


class Here:
    """A pool without machines: batches run when their records are asked for."""

    def __init__(self, cpus: int, work: Callable[[str], list[str]]) -> None:
        self.out, self.most_out, self.most_bytes, self.width = 0, 0, 0, cpus
        self.cancelled: list[str] = []
        self.work = work

    def cpus(self) -> int:
        return self.width

    def submit(self, batch: str) -> str:
        self.out += 1
        self.most_out = max(self.most_out, self.out)
        self.most_bytes = max(self.most_bytes, len(batch))
        return batch

    def records(self, sent: str) -> list[str]:
        self.out -= 1
        return self.work(sent)

    def cancel(self, sent: str) -> None:
        self.cancelled.append(sent)


def opened(folder: Path, spec: dict[str, Any] = SPEC) -> _native.Sweep:
    sweep = _native.Sweep(None, json.dumps(spec), folder, False, None, [])
    sweep.open()
    return sweep


def test_batches_make_what_one_machine_makes(tmp_path: Path, one_machine: dict[str, bytes]) -> None:
    told = fleet.drive(opened(tmp_path / "sweep"), Here(3, _native.run_cells))
    assert told == (32, 0, 32, None)
    assert content(tmp_path / "sweep") == one_machine


def test_what_fails_leaves_a_journal_that_goes_on(tmp_path: Path, one_machine: dict[str, bytes]) -> None:
    left = [3, 1]
    for error in (RuntimeError("lost"), KeyboardInterrupt()):

        def work(batch: str) -> list[str]:
            left[0] -= 1
            if left[0] < 0:
                raise error
            return _native.run_cells(batch)

        pool = Here(2, work)
        with pytest.raises(type(error)):
            fleet.drive(opened(tmp_path / "sweep"), pool)
        assert len(pool.cancelled) == 2 * fleet.BATCHES_A_CPU
        left = left[1:]
    assert fairlab.query(tmp_path / "sweep", metric="throughput").json["partial"] == {"cells": 16, "wanted": 32}
    assert fairlab.sweep(SPEC, out=tmp_path / "sweep", jobs=1).is_complete
    assert content(tmp_path / "sweep") == one_machine


def test_records_that_are_none_are_refused(tmp_path: Path) -> None:
    sweep = opened(tmp_path / "sweep")
    batch = sweep.next_batch(1)
    assert batch is not None and batch[1] == [0]
    record = _native.run_cells(batch[0])
    assert sweep.add(record) == 1
    for bad in (record, ["{}"], ['{"cell": 99}'], ["nonsense"]):
        with pytest.raises(fairlab.Error):
            sweep.add(bad)
    with pytest.raises(fairlab.Error, match="cells of fairlab 9.9.9 cannot be run by"):
        _native.run_cells(batch[0].replace(f'"fairlab":"{fairlab.__version__}"', '"fairlab":"9.9.9"'))


def test_what_a_driver_holds_of_100000_cells_is_bounded(tmp_path: Path) -> None:
    """Cells that nobody runs, as large as those that are run: what is left is what the driver costs, also when it writes the table."""
    spec = {**SPEC, "seeds": 12_500}
    metrics = {f"metric_{number}": 1.5 for number in range(20)}

    def empty(batch: str) -> list[str]:
        return [json.dumps({"cell": cell["cell"], "seed": cell["seed"], "metrics": metrics}) for cell in json.loads(batch)["cells"]]

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pool = Here(200, empty)
    told = fleet.drive(opened(tmp_path / "sweep", spec), pool)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert told == (100_000, 0, 100_000, None)
    assert pool.most_out == 200 * fleet.BATCHES_A_CPU
    assert pool.most_bytes < 16_384 and grown < 100, (pool.most_bytes, grown)
    print(f"100000 cells: {pool.most_out} batches out at most, {pool.most_bytes} bytes each, {grown:.0f} MB more")


@pytest.mark.parametrize(
    "on, words",
    [
        ("dask", "on='dask' names no place for a sweep; there are threads, ray, ray://HOST:PORT"),
        ("ray://", "names no place"),
        ("ray://host:many", "'many' is no port"),
    ],
)
def test_places_that_are_none_are_refused(on: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(fairlab.Error) as error:
        fairlab.sweep(SPEC, out=tmp_path / "sweep", on=on)
    assert words in str(error.value) and not (tmp_path / "sweep").exists()


def test_kernels_of_this_host_do_not_travel(tmp_path: Path) -> None:
    with pytest.raises(fairlab.Error) as error:
        fairlab.sweep({**SPEC, "kernels": ["host"], "workloads": ["pipe"], "options": {}}, out=tmp_path / "sweep", on="ray")
    assert "a sweep takes modelled kernels" in str(error.value)


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


PORT = free_port()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A real cluster of one node with a CPU, and a client server."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "ray_client_server_port": PORT})
    yield made
    ray.shutdown()
    made.shutdown()


def test_a_node_is_killed(cluster: Cluster, tmp_path: Path, one_machine: dict[str, bytes]) -> None:
    lost = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    assert ray.cluster_resources()["CPU"] == 2
    killed = threading.Event()

    def progress(done: int, cells: int) -> None:
        # Both nodes are at work: the batches that are out are more than one node runs.
        if not killed.is_set() and done < cells:
            killed.set()
            cluster.remove_node(lost, allow_graceful=False)

    found = fairlab.sweep(SPEC, out=tmp_path / "sweep", on="ray", progress=progress)
    assert killed.is_set() and found.is_complete
    assert content(tmp_path / "sweep") == one_machine
    # The cluster itself notices it late.
    until = time.monotonic() + 60
    while [node["Alive"] for node in ray.nodes()].count(True) > 1:
        assert time.monotonic() < until, ray.nodes()
        time.sleep(0.1)
    ray.shutdown()


def test_the_program_hands_cells_over(
    cluster: Cluster, program: Path, tmp_path: Path, one_machine: dict[str, bytes]
) -> None:
    words = [program, "sweep", as_file(tmp_path), "--on", f"ray://127.0.0.1:{PORT}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "32 cells, 0 of them done before; " in done.stdout and done.stderr == ""
    assert content(tmp_path / "sweep") == one_machine
    again = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert "32 cells, 32 of them done before; " in again.stdout, again.stderr


def test_a_cluster_that_is_not_there(program: Path, tmp_path: Path) -> None:
    words = [program, "sweep", as_file(tmp_path), "--on", "dask"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("fairlab: on='dask' names no place"), done.stderr
    without = subprocess.run([*words[:-1], "ray"], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})
    assert without.returncode == 2 and "needs python3 with the package fairlab" in without.stderr, without.stderr
    assert without.stderr.count("\n") == 1
