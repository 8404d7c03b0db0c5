"""The replays of ``bench.placement``: truths, rivals and bounds on small streams."""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench.placement import bars, bounds, cells, gavel, page, regret, report, scenario, sia, suite
from bench.placement.baselines import queueing
from bench.placement.baselines.fgd import least_fragmenting
from bench.placement.cells import BOUNDS, POLICIES, Cell, cell
from bench.placement.traces import Missing, read
from poolwise.sim.fleet import Placement, Pool, Room
from poolwise.sim.jobs import Job

SPEEDS = {"k80": 1.0, "p100": 3.0, "v100": 4.0}
MODELS = (("LM", "5", 1.0), ("LM", "10", 1.0), ("Reco", "512", 0.2))
"""Model, batch, and how much it gains from a faster accelerator (exponent)."""


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    with gzip.open(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace like Gavel's and one like Philly's, in files with a part after the known name."""
    folder = tmp_path_factory.mktemp("traces") / "below"
    folder.mkdir()
    rates = [
        {
            "source": "simulation",
            "gpu": gpu,
            "consolidated": packed,
            "model": model,
            "batch_size": batch,
            "workers": workers,
            "steps_per_s": 10 * speed**gain * workers**0.9 * (1.0 if packed else 0.5),
        }
        for gpu, speed in SPEEDS.items()
        for packed in (0, 1)
        for model, batch, gain in MODELS
        for workers in (1, 2, 8)
    ]
    write(folder / "gavel_throughputs_copy.csv.gz", rates)
    jobs = [
        {
            "vc": f"vc{at % 3}",
            "model": MODELS[at % 3][0],
            "batch_size": MODELS[at % 3][1],
            "workers": (1, 1, 2, 8, 16)[at % 5],
            "total_steps": 20_000 * (1 + at % 7) ** 2,
        }
        for at in range(105)
    ]
    write(folder / "gavel_philly_jobs_holdout.csv.gz", jobs)
    philly = [{"gpus": (1, 1, 4, 8, 16)[at % 5], "duration_s": 600 * (1 + at)} for at in range(50)]
    write(folder / "philly_jobs_holdout.csv.gz", philly)
    return folder.parent


@pytest.fixture(scope="module")
def t1(folder: Path) -> scenario.Scenario:
    return scenario.t1(folder, 60)


@pytest.fixture(scope="module")
def t3(folder: Path) -> scenario.Scenario:
    return scenario.t3(folder, 40)


def test_files_are_found_by_the_beginning_of_their_names(folder: Path) -> None:
    assert len(read(folder, "gavel_throughputs")) == 54
    with pytest.raises(Missing, match="no sia_step_times"):
        read(folder, "sia_step_times")


def test_jobs_without_measured_rates_are_left_out(folder: Path) -> None:
    mix = gavel.mix(folder, gavel.rates(folder))
    assert {each.workers for each in mix} == {1, 2, 8}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("truth", ["t1", "t3"])
def test_every_policy_runs_every_job_and_none_beats_the_bounds(
    truth: str, policy: str, request: pytest.FixtureRequest
) -> None:
    found: scenario.Scenario = request.getfixturevalue(truth)
    row = cell(found, policy, 0.95, seed=1)
    assert row.mean_jct_seconds and row.makespan_seconds and row.gpu_hours
    bound = cell(found, "U1", 0.95, seed=1)
    assert bound.mean_jct_seconds and bound.makespan_seconds and bound.gpu_hours
    assert row.mean_jct_seconds >= bound.mean_jct_seconds * (1 - 1e-9)
    assert row.makespan_seconds >= bound.makespan_seconds * (1 - 1e-9)
    assert row.gpu_hours >= bound.gpu_hours * (1 - 1e-9)


@pytest.mark.parametrize("policy", ["ours", "B0", "B8", "B9"])
def test_a_seed_gives_the_same_cell_twice(t1: scenario.Scenario, policy: str) -> None:
    assert cell(t1, policy, 0.95, seed=2) == cell(t1, policy, 0.95, seed=2)


def test_bounds_are_in_order(t1: scenario.Scenario) -> None:
    first, second = (cell(t1, name, 0.95, seed=0).makespan_seconds for name in BOUNDS)
    ours = cell(t1, "ours", 0.95, seed=0).makespan_seconds
    assert first and second and ours
    assert first <= second * (1 + 1e-6)
    assert second <= ours * (1 + 1e-6)


def test_load_is_the_share_of_the_fleet_that_the_stream_takes(t1: scenario.Scenario) -> None:
    jobs = t1.jobs(0.5, 3)
    twice = t1.jobs(1.0, 3)
    assert [job.name for job in jobs] == [job.name for job in twice]
    assert jobs[-1].arrival_seconds == pytest.approx(2 * twice[-1].arrival_seconds)
    work = bounds.least_makespan(
        [replace(job, arrival_seconds=0.0) for job in twice],
        t1.in_pool(3),
        t1.pools,
        t1.capacity(3).prices,
    )
    assert work >= twice[-1].arrival_seconds * (1 - 1e-9)


def test_capacity_of_one_pool_is_its_accelerators() -> None:
    classes = [bounds.Class(0.5, 1, {"a": 10.0}), bounds.Class(0.5, 4, {"a": 5.0})]
    found = bounds.capacity(classes, [Pool("a", (8,))])
    assert found.arrivals_per_second == pytest.approx(8 / 15)
    assert found.prices == pytest.approx({"a": 1 / 8})


def test_the_engine_of_a_replay_never_sees_the_truth(t3: scenario.Scenario) -> None:
    """Its first answers do not change with the hidden errors."""
    job = t3.jobs(0.95, 0)[0]
    one, other = (t3.engine(seed).options(job, 1.0) for seed in (1, 2))
    assert [each.seconds for each in one] == [each.seconds for each in other]
    told, again = (t3.told(seed).options(job, 1.0) for seed in (1, 2))
    assert [each.seconds for each in told] != [each.seconds for each in again]


POOLS = (Pool("old", (4, 4), 1.0), Pool("new", (8,), 5.0))


def run(job: Job, at: Placement) -> float:
    return job.work * (3.0 if at.pool == "old" else 1.0)


def chosen(choose: queueing.Choose, accelerators: int, taken: Sequence[Placement] = ()) -> str:
    room = Room(POOLS)
    for each in taken:
        room.take(each)
    found = choose(Job("x", 0.0, accelerators, "k", 1.0), room, POOLS)
    return "" if found is None else f"{found.pool}/{found.nodes[0][0]}"


def test_each_rule_takes_its_own_node() -> None:
    busy = [Placement("old", ((1, 3),)), Placement("new", ((0, 2),))]
    assert chosen(queueing.first_fit, 1, busy) == "new/0"
    assert chosen(queueing.least_allocated, 1, busy) == "old/0"
    assert chosen(queueing.most_allocated, 1, busy) == "old/1"
    assert chosen(queueing.cheapest, 1, busy) == "old/1"
    assert chosen(queueing.cheapest_run(run), 1, busy) == "old/1"
    assert chosen(queueing.fastest(run), 1, busy) == "new/0"
    assert chosen(least_fragmenting([1, 4]), 1, busy) == "old/1"
    assert chosen(queueing.fastest(run), 8, busy) == "", "waits for the node that takes it whole"


def choosers() -> list[regret.Chooser]:
    places = (
        regret.Place("k80", True, 1.0),
        regret.Place("p100", True, 5.0),
        regret.Place("v100", True, 4.0),
    )
    return [regret.Chooser("odd/1", 1, places), regret.Chooser("odd/2", 2, places)]


def test_what_was_seen_five_times_is_hardly_regretted() -> None:
    found = regret.regret(choosers(), regret.GAVEL_SPECS, seed=0)
    assert found.first > 0.02, "the datasheets put the V100 first"
    assert found.after5 < 0.005


def test_sia_steps_are_straight_lines_and_larger_batches_several_parts() -> None:
    rows = [
        {
            "application": "bert",
            "gpu_pool": "aws",
            "placement": "22",
            "local_batch": str(local),
            "step_time_s": str(step),
            "sync_time_s": "0.5",
        }
        for local, step in ((4, 1.0), (8, 2.0))
    ]
    steps = sia.Steps(rows)
    assert steps.seconds(sia.Task("bert", 4, 24), "aws", "22") == pytest.approx(1.5)
    assert steps.seconds(sia.Task("bert", 4, 64), "aws", "22") == pytest.approx(1.5 + 2.0)
    assert steps.seconds(sia.Task("bert", 4, 64), "rtx", "22") == math.inf
    assert list(steps.placements(sia.Task("bert", 4, 24), sia.POOLS[0])) == ["22"]


def row(policy: str, seed: int, hours: float, load: float = 0.95) -> Cell:
    return Cell("T1", "w", "gavel-108", policy, load, seed, 3600 * hours)


def test_losing_cells_are_printed() -> None:
    found = report.Found()
    found.cells = [row("ours", 0, 2.0), row("B5", 0, 1.0), row("ours", 1, 1.0), row("B5", 1, 2.0)]
    told = report.text(found)
    assert "lost to B5, seed 0: 100.0 % longer mean JCT" in told
    assert "seed 1" not in told
    assert report.ratio_to_best(found.cells) == [2.0, 0.5]


def test_the_document_has_the_promised_shape() -> None:
    found = report.Found()
    found.add(suite.Result(cell=row("B4+", 0, 1.0)))
    found.add(suite.Result(cell=row("ours", 0, 1.0)))
    found.add(suite.Result(regret=("gavel", regret.Regret(0.1, 0.01))))
    document = json.loads(json.dumps(report.document(found)))
    assert set(document) == {"cells", "regret", "milp"}
    assert set(document["milp"]) == {"instances", "within_2_percent"}
    assert document["regret"]["gavel"] == {"first": 0.1, "after5": 0.01}
    (only,) = document["cells"]
    assert list(only) == [
        "truth", "workload", "pools", "policy", "load", "seed", "mean_jct_seconds",
        "p99_jct_seconds", "makespan_seconds", "gpu_hours", "cost", "allocation_percent",
    ]  # fmt: skip


def test_a_missing_file_is_named_and_the_rest_goes_on(folder: Path) -> None:
    done = suite.work(folder, suite.Task("regret", "sia"))
    assert "sia_step_times" in done.missing
    assert suite.work(folder, suite.Task("regret", "gavel")).regret is not None


def test_the_quick_grid_has_every_policy_and_ten_seeds() -> None:
    tasks = suite.tasks(full=False)
    assert {task.policy for task in tasks if task.kind == "T1"} == {*POLICIES, *cells.BOUNDS}
    for policy in ("ours", *report.RIVALS):
        for load in (0.5, 0.95):
            seeds = [
                task.seed
                for task in tasks
                if (task.kind, task.policy, task.load) == ("T1", policy, load)
            ]
            assert seeds == list(range(10))


def allocated(policy: str, percent: float) -> Cell:
    return Cell("openb", "default", "openb", policy, 1.3, 0, None, allocation_percent=percent)


def test_bars_tell_what_is_missed() -> None:
    found = report.Found()
    found.cells = [
        row("ours", 0, 1.0), row("B5", 0, 1.5), row("B1", 0, 2.0),
        row("ours", 0, 1.05, 0.5), row("B5", 0, 1.0, 0.5),
        allocated("ours", 98.0), allocated("B7", 98.2),
    ]  # fmt: skip
    found.add(suite.Result(regret=("sia", regret.Regret(0.1, 0.06))))
    told = {bar.name.partition(",")[0]: (bar.value, bar.is_met) for bar in bars.bars(found)}
    assert told == {
        "mean JCT / best of B1-B6": (pytest.approx(2 / 3), False),
        "mean JCT / B5": (pytest.approx(1.05), False),
        "regret of choices after five": (0.06, False),
        "allocated less FGD's": (pytest.approx(-0.2), True),
    }


def test_the_page_has_tables_and_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "DOCS", tmp_path)
    monkeypatch.setattr(page, "PICTURES", tmp_path / "pictures")
    found = report.Found()
    found.cells = [row("ours", 0, 1.0), row("B5", 0, 1.5), row("U1", 0, 0.9)]
    page.write(found)
    text = (tmp_path / "placement-replay.md").read_text()
    assert "<!--" not in text
    assert "| B5 (1) | 1.50 |" in text
    assert {each.name for each in (tmp_path / "pictures").iterdir()} == {
        "completions.svg",
        "choices.svg",
    }
