"""Answers are the program's: the same JSON, the same words where something is wrong."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairlab
import pytest

from conftest import TRACE

HACKBENCH = "hackbench -g 1 -l 50"


def without_times(answer: Any) -> Any:
    """An answer without what differs from run to run: how long it took."""
    for run in answer.get("runs", []):
        run.pop("wall_ns")
    return answer


def test_a_run_is_the_programs(answered: Callable[..., Any]) -> None:
    # In the order in which the package says them, which the answer's command line keeps.
    said = ["--machine", "vm4", "--warmup", "0ms", "--duration", "200ms", "--by", "task"]
    said += ["--kernel", "v6.5", "--kernel", "v6.6", "--seeds", "2"]
    expected = without_times(answered("run", *HACKBENCH.split(), *said))
    found = fairlab.run(HACKBENCH, kernel=["v6.5", "v6.6"], machine="vm4", warmup="0ms", duration="200ms", seeds=2, by="task")
    # The program's own command line says the format, too.
    expected["provenance"]["command"] = expected["provenance"]["command"].removesuffix(" --format json")
    assert without_times(found.json) == expected
    assert len(found.outputs) == 4 and "Time:" in found.outputs[0]
    assert found.runs["seed"] == [1, 2, 1, 2]
    assert len(found.values("switches_per_s", "v6.6")) == 2
    assert {"ns", "1/s"} <= set(found.metrics["unit"])


def test_a_comparison_is_the_programs(answered: Callable[..., Any]) -> None:
    said = ["--machine", "vm4", "--duration", "300ms", "--kernel", "v6.5", "--kernel", "v6.6", "--runs", "3"]
    said += ["--metric", "throughput", "--metric", "p99", "--margin", "5%"]
    words = ["schbench", "-m", "1", "-t", "4"]
    expected = answered("compare", *words, *said)
    duration = datetime.timedelta(milliseconds=300)
    found = fairlab.compare(
        words, kernel=["v6.5", "v6.6"], machine="vm4", duration=duration, runs=3, metric=["throughput", "p99"], margin="5%"
    )
    for answer in (expected, found.json):
        answer.pop("provenance")
    assert found.json == expected
    row = next(row for row in expected["metrics"] if row["name"] == "throughput")
    assert found.verdict("throughput") == row["verdict"]
    assert found.baseline == "v6.5" and len(found.values) == 2 * 2 * 3
    ratio = found.ratio("throughput")
    assert ratio is None or ratio[1] <= ratio[0] <= ratio[2]


def test_a_gate_and_causes_are_the_programs(answered: Callable[..., Any], tmp_path: Path) -> None:
    said = ["--machine", "vm4", "--duration", "300ms", "--kernel", "v6.5", "--kernel", "v6.6", "--runs", "3", "--explain"]
    said += ["--fail-on", "p99>+900%", "--fail-on", "migrations_per_s<-1%", "--task", "schbench", "--time", "100ms.."]
    words = ["schbench", "-m", "1", "-t", "6"]
    expected = answered("compare", *words, *said)
    rules = ["p99>+900%", "migrations_per_s<-1%"]
    kept = tmp_path / "kept"
    asked: dict[str, Any] = {"kernel": ["v6.5", "v6.6"], "machine": "vm4", "duration": "300ms", "runs": 3, "explain": True}
    asked |= {"fail_on": rules, "task": "schbench", "time": "100ms.."}
    found = fairlab.compare(words, out=kept, **asked)
    again = fairlab.compare(words, out=kept, resume=True, **asked)
    for answer in (expected, found.json, again.json):
        answer.pop("provenance")
    assert found.json == expected and again.json == expected and (kept / "metrics.json").is_file()
    assert found.gate is not None and found.gate.outcome == expected["gate"]["outcome"]
    assert [found.gate.passed, found.gate.regressed, found.gate.undecided].count(True) == 1
    assert found.gate.rules["rule"] == rules and found.gate.rules["metric"][0] == "schbench wakeup_latency_ns_p99"
    scopes = expected["causes"][0]["scopes"]
    assert len(found.causes) == sum(len(scope["causes"]) for scope in scopes) > 0
    assert found.why[0] == expected["causes"][0]["headline"][0] and len(found.work) > 0
    assert found.parting == expected["causes"][0]["difference"]
    assert "ms a second more than with v6.5" in found.plot_causes().to_json()


def test_sides_differ_in_what_they_say(answered: Callable[..., Any]) -> None:
    words = "schbench -m 1 -t {threads} -c 3000 -s 1000"
    asked: dict[str, Any] = {"machine": "vm4", "duration": "200ms", "runs": 3}
    few, many = {"threads": 2}, {"threads": 9, "kernel": "v6.6"}
    found = fairlab.compare(words, side={"few": few, "many": many}, kernel="v6.12", **asked)
    assert {row["kernel"] for row in found.json["metrics"]} == {"many"} and found.json["baseline"] == "few"
    options = ["--machine", "vm4", "--duration", "200ms", "--runs", "3", "--kernel", "v6.12"]
    expected = answered("compare", *words.split(), *options, "--side", "few: threads=2", "--side", "many: threads=9 kernel=v6.6")
    assert found.json["metrics"] == expected["metrics"]
    varied = fairlab.compare(words, vary={"threads": [2, 9]}, kernel="v6.12", **asked)
    assert varied.json["baseline"] == "threads=2"
    with pytest.raises(fairlab.Error, match="give one with its values"):
        fairlab.compare(words, vary={"threads": [2, 9], "x": [1, 2]}, **asked)


def test_what_was_not_asked_is_not_there() -> None:
    found = fairlab.compare("pipe -l 50", kernel=["v6.5", "v6.6"], machine="vm4", runs=2)
    assert found.gate is None
    with pytest.raises(fairlab.Error, match="make it with explain=True"):
        found.causes


def test_a_remark_names_the_users_line(tmp_path: Path) -> None:
    for kernel in ("v6.5", "v6.6"):
        fairlab.run("pipe -l 50", kernel=kernel, machine="vm4", seeds=2, out=tmp_path / kernel)
    (tmp_path / "v6.6" / "partial.json").write_text('{"schema": "fairlab/partial/1", "runs": 2, "wanted": 3}')
    with pytest.warns(fairlab.Remark) as told:
        fairlab.compare_folders([tmp_path / "v6.5", tmp_path / "v6.6"])
    assert [Path(one.filename).name for one in told] == [Path(__file__).name] and "2 of 3 runs" in str(told[0].message)


def test_hosts_are_compared(program: Path, answered: Callable[..., Any], tmp_path: Path) -> None:
    import subprocess

    for side, kernel in (("old", "v6.5"), ("new", "v6.6")):
        for host in range(3):
            trace, counts = tmp_path / f"{side}-{host}.dat", tmp_path / side / f"{host}.json"
            counts.parent.mkdir(exist_ok=True)
            fairlab.run(HACKBENCH, kernel=kernel, machine="vm4", warmup="0ms", seed=host + 1, trace=trace)
            service = "web" if host < 2 else "db"
            words = ["summary", trace, "--counts", counts, "--label", f"service={service}", "--label", f"host=h{host}"]
            subprocess.run([program, *words], check=True, capture_output=True)
    sets = [tmp_path / "old", tmp_path / "new"]
    expected = answered("compare", "--counts", str(sets[0]), "--counts", str(sets[1]), "--label", "service=web")
    found = fairlab.compare_hosts(sets, label={"service": "web"})
    for answer in (expected, found.json):
        answer.pop("provenance")
    assert found.json == expected and found.json["metrics"][0]["pairs"] == 2


def test_of_a_trace_some_is_chosen(answered: Callable[..., Any]) -> None:
    whole, some = fairlab.read_trace(TRACE), fairlab.read_trace(TRACE, time="1356.97..1356.975", columns=["time", "event"])
    # Names, starts and ends of tasks stay, whenever they were.
    rows = zip(some.to_arrow()["time"].cast("int64").to_pylist(), some.to_arrow()["event"].to_pylist(), strict=True)
    times = [time for time, event in rows if event.startswith("sched_")]
    assert 100 < len(times) < len(whole) and min(times) >= 1_356_970_000_000 and max(times) <= 1_356_975_000_000
    for what in ("summary", "latency", "explain", "blame"):
        expected = answered(what, str(TRACE), "--task", "hackbench", "--time", "1356.96..1356.98")
        found = getattr(fairlab, what)(TRACE, task="hackbench", time="1356.96..1356.98").json
        expected["provenance"]["command"] = expected["provenance"]["command"].removesuffix(" --format json")
        assert found == expected, what
    pid = fairlab.latency(TRACE, by_pid=True).tasks["pid"][0]
    assert {story["task"]["pid"] for story in fairlab.explain(TRACE, task=pid).json["stories"]} == {pid}


def test_a_search_is_the_programs(answered: Callable[..., Any]) -> None:
    said = ["--machine", "vm4", "--duration", "300ms", "--exact", "--good", "v6.5", "--bad", "v6.6", "--runs", "4"]
    words = ["schbench", "-m", "1", "-t", "6"]
    expected = answered("bisect", *words, *said)
    found = fairlab.bisect(words, good="v6.5", bad="v6.6", machine="vm4", duration="300ms", exact=True, runs=4)
    for answer in (expected, found.json):
        answer.pop("provenance")
    assert found.json == expected
    assert found.finding == expected["verdict"] and len(found.steps) == len(expected["steps"])


def test_counts_of_two_kernels_are_the_programs(answered: Callable[..., Any], tmp_path: Path) -> None:
    fairlab.run("pipe -l 200", kernel=["v6.5", "v6.6"], machine="vm4", out=tmp_path / "runs")
    first, second = (tmp_path / "runs" / kernel / "seed-1" for kernel in ("v6.5", "v6.6"))
    expected = answered("compare", "--schedstat", str(first), "--schedstat", str(second))
    found = fairlab.compare_schedstat(first, second)
    expected["provenance"]["command"] = expected["provenance"]["command"].removesuffix(" --format json")
    assert found.json == expected
    pulled = [row for row in found.counters.rows() if row["cpu"] is None and row["first"] > 0]
    assert pulled and all(row["ratio"] == row["second"] / row["first"] for row in pulled)


def test_commands_on_this_host_are_compared_where_that_is_allowed(program: Path) -> None:
    commands = ["sleep 0.01", "sleep 0.02"]
    words = [program, "compare", "--live", commands[0], "--live", commands[1], "--runs", "2"]
    asked = subprocess.run(words, capture_output=True, text=True, check=False)
    if asked.returncode == 2:
        with pytest.raises(fairlab.Error) as error:
            fairlab.compare_live(commands, runs=2)
        assert str(error.value) == asked.stderr.removeprefix("fairlab: ").rstrip("\n")
        return
    found = fairlab.compare_live(commands, runs=2, metric="switches_per_s")
    assert found.baseline == commands[0] and found.metrics["metric"] == ["switches_per_s"]
    assert found.json["provenance"]["origin"] == ["run here"]
    named = fairlab.compare_live(commands, runs=2, task="sleep")
    assert named.metrics["metric"] and all(name.startswith("sleep ") for name in named.metrics["metric"])


@pytest.mark.parametrize("what", ["summary", "latency", "explain", "blame"])
def test_an_answer_of_a_trace_is_the_programs(what: str, answered: Callable[..., Any]) -> None:
    expected = answered(what, str(TRACE))
    found = getattr(fairlab, what)(TRACE)
    expected["provenance"]["command"] = expected["provenance"]["command"].removesuffix(" --format json")
    assert found.json == expected
    assert len(found.table) > 0 and found.table.to_arrow().num_rows == len(found.table)


BAD: list[tuple[list[str], Callable[[], Any]]] = [
    (["run", "pipe", "--kernel", "v9.9"], lambda: fairlab.run("pipe", kernel="v9.9")),
    (["run", "pipe"], lambda: fairlab.run("pipe")),
    (["run", "dance", "--kernel", "v6.6"], lambda: fairlab.run("dance", kernel="v6.6")),
    (["run", "pipe", "--kernel", "v6.6", "--machine", "vm5"], lambda: fairlab.run("pipe", kernel="v6.6", machine="vm5")),
    (["run", "pipe", "-l", "x", "--kernel", "v6.6"], lambda: fairlab.run("pipe -l x", kernel="v6.6")),
    (["run", "pipe", "--kernel", "v6.6", "--probes"], lambda: fairlab.run("pipe", kernel="v6.6", probes=True)),
    (["compare", "pipe", "--kernel", "v6.6"], lambda: fairlab.compare("pipe", kernel="v6.6")),
    (
        ["compare", "pipe", "-l", "5", "--kernel", "v6.6", "--kernel", "v6.5", "--metric", "frames"],
        lambda: fairlab.compare("pipe -l 5", kernel=["v6.6", "v6.5"], metric="frames"),
    ),
    (
        ["bisect", "pipe", "--good", "v6.6", "--bad", "v6.5", "--runs", "2"],
        lambda: fairlab.bisect("pipe", good="v6.6", bad="v6.5", runs=2),
    ),
    (["bisect", "pipe", "--good", "host", "--bad", "v6.5"], lambda: fairlab.bisect("pipe", good="host", bad="v6.5")),
    (["summary", "/no/such/file"], lambda: fairlab.summary("/no/such/file")),
    (["latency", __file__], lambda: fairlab.latency(__file__)),
    (["explain", str(TRACE), "--task", "nobody"], lambda: fairlab.explain(TRACE, task="nobody")),
    (["summary", str(TRACE), "--group", "/db"], lambda: fairlab.summary(TRACE, group="/db")),
    (["latency", str(TRACE), "--time", "1s..2s"], lambda: fairlab.latency(TRACE, time="1s..2s")),
    (
        ["run", "pipe", "-l", "5", "--kernel", "v6.6", "--task", "nobody"],
        lambda: fairlab.run("pipe -l 5", kernel="v6.6", task="nobody"),
    ),
    (
        ["bisect", "pipe", "--good", "v6.6", "--bad", "v6.5", "--task", "a", "--group", "/b"],
        lambda: fairlab.bisect("pipe", good="v6.6", bad="v6.5", task="a", group="/b"),
    ),
    (["sweep", "/no/such/file.toml"], lambda: fairlab.sweep("/no/such/file.toml")),
    (["query", "/no/such/folder"], lambda: fairlab.query("/no/such/folder")),
    (["compare", "--live", "false", "--live", "true"], lambda: fairlab.compare_live(["false", "true"])),
    (["compare", "--live", "true"], lambda: fairlab.compare_live(["true"])),
    (
        ["compare", "--schedstat", "/no/such", "--schedstat", __file__],
        lambda: fairlab.compare_schedstat("/no/such", __file__),
    ),
    (["fidelity", "/no/such/folder"], lambda: fairlab.fidelity("/no/such/folder")),
    (["fidelity", "--oracle", "plan9"], lambda: fairlab.oracle("plan9")),
]


@pytest.mark.parametrize("words, call", BAD, ids=[" ".join(words)[:40] for words, _ in BAD])
def test_what_is_wrong_is_said_in_the_programs_words(
    words: list[str], call: Callable[[], Any], refused: Callable[..., str]
) -> None:
    with pytest.raises(fairlab.Error) as error:
        call()
    assert str(error.value) == refused(*words)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize(
    "asked, words",
    [
        ({"duration": "30"}, "duration='30': a duration is a number with a unit"),
        ({"duration": 30}, "duration=30: a duration is a number with a unit"),
        ({"warmup": "2h"}, "warmup='2h': no machine takes longer"),
        ({"jobs": 0}, "jobs=0: a whole number from 1 on"),
        ({"by": "colour"}, "by='colour': no kind of names; there are task, group, workload"),
        ({"time": "late"}, "time='late': 'late' is no time"),
        ({"resume": True}, "give out=, too"),
        ({"group": "db"}, "a group's path begins with '/'"),
        ({"seeds": 0}, "at least one run"),
    ],
)
def test_values_that_mean_nothing_are_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(fairlab.Error) as error:
        fairlab.run("pipe -l 5", kernel="v6.6", **asked)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_a_command_line_has_to_be_one() -> None:
    with pytest.raises(fairlab.Error, match="is no command line"):
        fairlab.run("pipe 'x", kernel="v6.6")


def test_a_trace_is_written_and_read_back(tmp_path: Path) -> None:
    trace = tmp_path / "run.dat"
    made = fairlab.run(HACKBENCH, kernel="v6.6", machine="vm4", warmup="0ms", trace=trace)
    summed = fairlab.summary(trace)
    assert summed.json["system"]["origin"] == "modelled"
    assert sum(summed.tasks["tasks"]) >= 40
    assert summed.wakeup_latency["count"] > 0 and made.json["runs"][0]["switches"] > 0
    told = fairlab.explain(trace, worst=2)
    assert len(told.texts) == len(told.stories) == 2 and told.texts[0]


def test_folders_of_runs_are_compared(program: Path, tmp_path: Path) -> None:
    import subprocess

    for kernel in ("v6.5", "v6.6"):
        words = ["run", *HACKBENCH.split(), "--machine", "vm4", "--warmup", "0ms", "--seeds", "3", "--kernel", kernel]
        subprocess.run([program, *words, "--out", tmp_path / kernel], check=True, capture_output=True)
    found = fairlab.compare_folders([tmp_path / "v6.5", tmp_path / "v6.6"], metric="throughput")
    assert len(found.metrics) == 1 and found.json["metrics"][0]["pairs"] == 3
