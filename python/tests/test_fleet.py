"""Sweeps on a cluster are those of one machine, byte for byte, whatever is lost on the way."""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
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
from fairlab import _native
from ray.cluster_utils import Cluster

from conftest import ROOT

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

    def ready(self, sent: str, seconds: float) -> bool:
        return True

    def records(self, sent: str) -> list[str]:
        self.out -= 1
        return self.work(sent)

    def cancel(self, sent: str) -> None:
        self.cancelled.append(sent)


def opened(folder: Path, spec: dict[str, Any] = SPEC) -> _native.Sweep:
    return _native.Sweep(None, json.dumps(spec), folder, False, None, [])


def test_batches_make_what_one_machine_makes(tmp_path: Path, one_machine: dict[str, bytes]) -> None:
    told = opened(tmp_path / "sweep").run(None, Here(3, _native.run_cells), None)
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
            opened(tmp_path / "sweep").run(None, pool, None)
        assert len(pool.cancelled) == 4, "two batches a CPU were out"
        left = left[1:]
    assert fairlab.query(tmp_path / "sweep", metric="throughput").json["partial"] == {"cells": 16, "wanted": 32}
    assert fairlab.sweep(SPEC, out=tmp_path / "sweep", jobs=1).is_complete
    assert content(tmp_path / "sweep") == one_machine


def test_records_that_are_none_are_refused(tmp_path: Path) -> None:
    batch = opened(tmp_path / "none").batch([0])
    record = _native.run_cells(batch)
    for number, bad in enumerate((record * 2, ["{}"], ['{"cell": 99}'], ["nonsense"])):
        with pytest.raises(fairlab.Error):
            opened(tmp_path / f"bad{number}").run(None, Here(1, lambda _: bad), None)
    with pytest.raises(fairlab.Error, match="cells of fairlab 9.9.9 cannot be run by"):
        _native.run_cells(batch.replace(f'"fairlab":"{fairlab.__version__}"', '"fairlab":"9.9.9"'))


def collection(folder: Path) -> Path:
    """Recordings, one that cannot be read, and a folder without any."""
    for name in ("5.10-quota-2", "6.1-rtmix-2"):
        shutil.copytree(ROOT / "testdata" / "recordings" / name, folder / name)
    for name in ("broken", "empty"):
        (folder / name).mkdir()
    (folder / "broken" / "meta.json").write_text("{}")
    return folder


@contextlib.contextmanager
def on_a_crew(work: Callable[[str], list[str]]) -> Iterator[None]:
    """Whatever is asked for is run by a crew of batches."""

    @contextlib.contextmanager
    def crew(on: str) -> Iterator[Here]:
        yield Here(2, work)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlab._calls.crew", crew)
        yield


def other_work(folder: Path, on: str) -> dict[str, Any]:
    """What else goes to a cluster, with what is kept of it."""
    with pytest.warns(fairlab.Remark, match="broken: "):
        recordings = fairlab.fidelity(folder / "recordings", out=folder / on / "kept", jobs=1, on=on)
    search = fairlab.bisect(
        "schbench -m 1 -t 6", good="v6.6", bad="v6.5", machine="vm4", duration="300ms", exact=True, runs=30, task="schbench", on=on
    )
    told = {name: {**answer.json, "provenance": None} for name, answer in (("recordings", recordings), ("search", search))}
    return {**told, "kept": content(folder / on / "kept")}


def test_recordings_and_searches_are_those_of_one_machine(tmp_path: Path) -> None:
    collection(tmp_path / "recordings")
    expected = other_work(tmp_path, "threads")
    assert len(expected["recordings"]["unreadable"]) == 1 and expected["search"]["steps"]
    with on_a_crew(_native.run_cells):
        assert other_work(tmp_path, "crew") == expected
    with on_a_crew(lambda _: []), pytest.warns(fairlab.Remark):
        again = fairlab.fidelity(tmp_path / "recordings", out=tmp_path / "crew" / "kept")
    assert {**again.json, "provenance": None} == expected["recordings"], "nothing is left to do"


def test_a_recording_that_is_another_elsewhere_is_refused(tmp_path: Path) -> None:
    collection(tmp_path / "here")
    collection(tmp_path / "away")
    (tmp_path / "away" / "6.1-rtmix-2" / "meta.json").write_text("{}")
    for away, problem in (("away", "holds other files"), ("nowhere", "is no folder")):
        with (
            on_a_crew(lambda batch: _native.run_cells(batch.replace(str(tmp_path / "here"), str(tmp_path / away)))),
            pytest.raises(fairlab.Error, match=f"on a host of the cluster: .*{problem}; recordings have to lie at one path"),
        ):
            fairlab.fidelity(tmp_path / "here")


def test_what_a_driver_holds_of_100000_cells_is_bounded(tmp_path: Path) -> None:
    """Cells that nobody runs, as large as those that are run: what is left is what the driver costs, also when it writes the table."""
    spec = {**SPEC, "seeds": 12_500}
    metrics = {f"metric_{number}": 1.5 for number in range(20)}

    def empty(batch: str) -> list[str]:
        return [json.dumps({"cell": cell["cell"], "seed": cell["seed"], "metrics": metrics}) for cell in json.loads(batch)["work"]["sweep"]["cells"]]

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pool = Here(200, empty)
    told = opened(tmp_path / "sweep", spec).run(None, pool, None)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert told == (100_000, 0, 100_000, None)
    assert pool.most_out == 400, "two a CPU"
    assert pool.most_bytes < 16_384 and grown < 100, (pool.most_bytes, grown)
    print(f"100000 cells: {pool.most_out} batches out at most, {pool.most_bytes} bytes each, {grown:.0f} MB more")


@pytest.mark.parametrize(
    "on, words",
    [
        ("dask", "on='dask' names no place; there are threads, ray, ray://HOST:PORT"),
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


def test_other_work_goes_to_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    collection(tmp_path / "recordings")
    ray.init(address=cluster.address, log_to_driver=False)
    found = other_work(tmp_path, "ray")
    ray.shutdown()
    assert found == other_work(tmp_path, "threads")


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
    collection(tmp_path / "recordings")
    here = subprocess.run([program, "fidelity", tmp_path / "recordings"], capture_output=True, text=True, check=False)
    words = [program, "fidelity", tmp_path / "recordings", "--on", f"ray://127.0.0.1:{PORT}"]
    there = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert here.returncode == there.returncode == 2 and "2 recordings judged" in here.stdout
    assert (there.stdout.splitlines()[1:], there.stderr) == (here.stdout.splitlines()[1:], here.stderr), "but for the command line"


CASES = {
    "schbench": ("laptop8", "schbench -m 1 -t 10 -c 2000 -s 500", ["p99", "switches_per_work"]),
    "quota": ("vm4", "cgroup 'cpu.max=30000 50000' jobs sleep -n 12", ["p99"]),
    "fails": ("vm4", "hackbench -g 1", ["no_such_metric"]),
}


def watch_words(program: Path, folder: Path, on: list[str]) -> list[str | Path]:
    """A watch of two kernels in two cases, and one that cannot be measured. All runs are made, also those that are kept."""
    (folder / "catalogue").mkdir(exist_ok=True)
    for name, (machine, workload, metrics) in CASES.items():
        keys = {"title": name, "source": "a test", "machine": machine, "workload": workload, "metrics": metrics}
        lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        (folder / "catalogue" / f"{name}.toml").write_text("\n".join([*lines, "duration_ms = 2000", "warmup_ms = 0", ""]))
    return [program, "watch", "--over", "v6.11,v6.12", folder / "catalogue", "--runs-max", "9", "--fresh", "--format", "json", *on]


def watched(done: subprocess.CompletedProcess[str]) -> str:
    """All that a watch says, but for its command line."""
    assert done.returncode == 1, done.stderr
    return json.dumps({**json.loads(done.stdout), "provenance": None})


def test_a_watch_goes_to_a_cluster(cluster: Cluster, program: Path, tmp_path: Path) -> None:
    def run(on: list[str]) -> str:
        return watched(subprocess.run(watch_words(program, tmp_path, on), capture_output=True, text=True, check=False, timeout=300))

    here = run([])
    assert '"worse"' in here and "no_such_metric" in here
    on = ["--on", f"ray://127.0.0.1:{PORT}"]
    assert run(on) == here
    # The cluster is at work when a node is killed.
    lost = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    with subprocess.Popen(watch_words(program, tmp_path, on), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program_there:
        until = time.monotonic() + 120
        while ray.available_resources().get("CPU", 0) >= ray.cluster_resources()["CPU"]:
            assert time.monotonic() < until and program_there.poll() is None
            time.sleep(0.02)
        cluster.remove_node(lost, allow_graceful=False)
        out, errors = program_there.communicate(timeout=300)
    ray.shutdown()
    assert watched(subprocess.CompletedProcess([], program_there.returncode, out, errors)) == here


def test_a_cluster_that_is_not_there(program: Path, tmp_path: Path) -> None:
    words = [program, "sweep", as_file(tmp_path), "--on", "dask"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("fairlab: on='dask' names no place"), done.stderr
    without = subprocess.run([*words[:-1], "ray"], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})
    assert without.returncode == 2 and "needs python3 with the package fairlab" in without.stderr, without.stderr
    assert without.stderr.count("\n") == 1
