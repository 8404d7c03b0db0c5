"""``bench.placement`` on files of strangers: each that cannot be used is named with the reason."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest

from bench.files import BadInput
from bench.placement import __main__ as program
from bench.placement import sia, suite, traces
from bench.placement.suite import Task

PHILLY = "gpus,duration_s\n1,600\n8,1200\n"
RATES = "source,gpu,consolidated,model,batch_size,workers,steps_per_s\n"
JOBS = "vc,model,batch_size,workers,total_steps\na,LM,5,1,1000\n"
STEPS = "application,gpu_pool,placement,local_batch,step_time_s,sync_time_s\nbert,aws,1,4,0.5,0.1\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,8,V100\n"
PODS = "cpu_milli,memory_mib,num_gpu,gpu_milli\n1000,1024,1,1000\n"


def _write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return path


@pytest.mark.parametrize(
    ("kind", "table", "text", "words"),
    [
        ("T3", "philly_jobs", "gpus\n1\n", "the header has no column duration_s"),
        (
            "T3",
            "philly_jobs",
            f"{PHILLY}4",
            "line 4: duration_s is '', must be a number of",
        ),
        ("T3", "philly_jobs", "gpus,duration_s\n0,9\n", "gpus is '0', must be a whole number"),
        ("T3", "philly_jobs", "gpus,duration_s\n1,inf\n", "duration_s is 'inf', must be a number"),
        ("T3", "philly_jobs", "gpus,duration_s\n1,2e7\n", "must be a number of seconds from 0 to"),
        ("T3", "philly_jobs", "gpus,duration_s\n1,0\n", "every duration_s of philly_jobs* is 0"),
        ("T3", "philly_jobs", "gpus,duration_s\n", "has no row that can be used"),
        ("T1", "gavel_throughputs", f"{RATES}simulation,k80,1,LM,5,x,2\n", "workers is 'x'"),
        ("T1", "gavel_throughputs", f"{RATES}simulation,k80,1,LM,5,1,2\n", "a rate in all pools"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(
    tmp_path: Path, kind: str, table: str, text: str, words: str
) -> None:
    _write(tmp_path, "gavel_philly_jobs", JOBS)
    path = _write(tmp_path, table, text)
    done = suite.work(tmp_path, Task(kind, "B1", 0.5))
    assert done.is_unusable
    assert words in done.missing
    assert str(path) in done.missing or f"{table}*" in done.missing


def test_so_are_torn_ones_and_those_of_choices_and_clusters(tmp_path: Path) -> None:
    _write(tmp_path, "sia_step_times", STEPS)
    _write(tmp_path, "sia_workloads", "application,replicas,batch_size\nvit,1,8\n")
    _write(tmp_path, "alibaba2023_openb_node_list", NODES)
    torn = _write(tmp_path, "alibaba2023_openb_pod_list_default", PODS)
    torn.write_bytes(torn.read_bytes()[:-9])
    regret = suite.work(tmp_path, Task("regret", "sia"))
    assert regret.is_unusable
    assert "no job of sia_workloads* has two places in sia_step_times*" in regret.missing
    openb = suite.work(tmp_path, Task("openb", "B7/default"))
    assert openb.missing.startswith(f"{torn}: cannot be read: Compressed file ended")


def test_a_placement_is_a_digit_for_each_node_however_many(tmp_path: Path) -> None:
    many = "8" * 14
    _write(
        tmp_path, "sia_step_times", f"{STEPS}gpt,dgx-ext,{many},1,0.1,0.1\nbert,aws,,1,0.1,0.1\n"
    )
    assert [row["placement"] for row in sia.placed(tmp_path)] == ["1", many]
    for wrong in ("404", "4.4", "²"):
        _write(tmp_path, "sia_step_times", f"{STEPS}gpt,aws,{wrong},1,0.1,0.1\n")
        with pytest.raises(BadInput, match=f"placement is '{wrong}', must be a digit from 1 to 9"):
            sia.placed(tmp_path)


def test_files_are_read_plain_too_and_one_that_is_there_twice_once(tmp_path: Path) -> None:
    (tmp_path / "philly_jobs_a.csv").write_text(PHILLY.upper())
    assert [row["gpus"] for row in traces.read(tmp_path, "philly_jobs")] == ["1", "8"]
    _write(tmp_path, "philly_jobs_a", PHILLY)
    _write(tmp_path, "philly_jobs", "gpus,duration_s\n4,60\n")
    assert [row["gpus"] for row in traces.read(tmp_path, "philly_jobs")] == ["4", "1", "8"]


def test_a_file_that_is_not_there_is_no_unusable_one(tmp_path: Path) -> None:
    done = suite.work(tmp_path, Task("T3", "B1", 0.5))
    assert done.missing == f"no philly_jobs*.csv[.gz] below {tmp_path}"
    assert not done.is_unusable


def test_the_other_parts_are_replayed_and_the_status_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(tmp_path, "alibaba2023_openb_node_list", NODES)
    _write(tmp_path, "alibaba2023_openb_pod_list_default", PODS)
    bad = _write(tmp_path, "philly_jobs", f"{PHILLY}many,9\n")
    wanted = [Task("openb", "B7/default"), Task("T3", "B1", 0.5), Task("T3", "B2", 0.5)]
    monkeypatch.setattr(suite, "tasks", lambda full: wanted)
    monkeypatch.setattr("sys.argv", ["bench.placement", "--data", str(tmp_path), "--json"])
    assert program.main() == 2
    told, complaints = capsys.readouterr()
    assert [each["policy"] for each in json.loads(told)["cells"]] == ["B7"]
    assert complaints.splitlines() == [
        f"{bad}: line 4: gpus is 'many', must be a whole number from 1 to 1e+12"
    ]


def test_jobs_of_one_size_that_few_pools_take_are_replayed(tmp_path: Path) -> None:
    """Pools that nobody needs have no price, and a job that they cannot run takes for ever."""
    _write(tmp_path, "philly_jobs", "gpus,duration_s\n64,600\n")
    found = suite.work(tmp_path, Task("T3", "U1", 0.5)).cell
    assert found is not None and found.makespan_seconds is not None
    assert 0.0 < found.makespan_seconds < math.inf
