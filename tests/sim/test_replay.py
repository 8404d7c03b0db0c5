"""The clock of a replay, on cases that can be worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.sim.fleet import Placement, Pool, Room
from poolwise.sim.jobs import Job, Moves, Scene
from poolwise.sim.replay import Stuck, replay

POOLS = (Pool("a", (4, 4), 2.0), Pool("b", (2,), 1.0))
SLOWNESS = {"a": 1.0, "b": 3.0}


def truth(job: Job, placement: Placement) -> float:
    return job.work * SLOWNESS[placement.pool] * len(placement.nodes)


def first_fit(scene: Scene) -> Moves:
    starts = []
    for each in scene.waiting:
        for pool in scene.pools:
            placement = scene.room.packed(pool.name, each.job.accelerators)
            if placement is not None:
                scene.room.take(placement)
                starts.append((each.job.name, placement))
                break
    return Moves(starts)


def job(name: str, at: float, accelerators: int, work: float) -> Job:
    return Job(name, at, accelerators, "kind", work)


def test_jobs_that_fit_start_at_once() -> None:
    outcome = replay([job("x", 5.0, 4, 100.0), job("y", 6.0, 4, 50.0)], POOLS, truth, first_fit)
    assert [(each.job.name, each.end_seconds) for each in outcome.finished] == [
        ("y", 56.0),
        ("x", 105.0),
    ]
    assert outcome.mean_completion_seconds == 75.0
    assert outcome.makespan_seconds == 100.0
    assert outcome.accelerator_hours == pytest.approx(600 / 3600)
    assert outcome.cost == pytest.approx(2 * 600 / 3600)
    assert outcome.allocation_percent == pytest.approx(100 * 600 / (100 * 10))


def test_a_gang_waits_until_a_whole_node_is_free() -> None:
    jobs = [job("x", 0.0, 3, 10.0), job("y", 0.0, 3, 20.0), job("z", 1.0, 4, 5.0)]
    outcome = replay(jobs, POOLS, truth, first_fit)
    waited = {each.job.name: each.wait_seconds for each in outcome.finished}
    assert waited == {"x": 0.0, "y": 0.0, "z": 9.0}


def test_a_stopped_job_keeps_its_work_and_pays_for_its_restart() -> None:
    def swap(scene: Scene) -> Moves:
        """Runs x on b until 30 s, then on a."""
        if scene.waiting:
            pool = "b" if scene.now_seconds < 30.0 else "a"
            return Moves([("x", Placement(pool, ((0, 2),)))], wake_seconds=30.0)
        return Moves(stops=["x"], wake_seconds=30.5) if scene.now_seconds == 30.0 else Moves()

    outcome = replay([job("x", 0.0, 2, 100.0)], POOLS, truth, swap, restart_seconds=7.0)
    (finished,) = outcome.finished
    assert finished.stops == 1
    assert finished.end_seconds == pytest.approx(30.5 + 7.0 + 100.0 * (1 - 30.0 / 300.0))


def test_a_job_that_moves_ends_where_it_is_and_not_when_it_would_have() -> None:
    """Its end on a, at 100 s, is no news any more."""

    def move(scene: Scene) -> Moves:
        """Runs x on a until 50 s, then on b, where it takes three times as long."""
        if scene.now_seconds == 50.0:
            return Moves([("x", Placement("b", ((0, 2),)))], stops=["x"])
        starts = [("x", Placement("a", ((0, 2),)))] if scene.waiting else []
        return Moves(starts, wake_seconds=50.0)

    outcome = replay([job("x", 0.0, 2, 100.0)], POOLS, truth, move)
    assert [each.end_seconds for each in outcome.finished] == [50.0 + 0.5 * 300.0]


def test_a_job_that_is_stopped_while_it_restarts_has_what_it_had() -> None:
    here = Placement("a", ((0, 2),))

    def stop_twice(scene: Scene) -> Moves:
        """Stops x at 50 s and, before its 20 s of restart are over, at 55 s."""
        if scene.now_seconds in (50.0, 55.0):
            return Moves([("x", here)], stops=["x"], wake_seconds=55.0)
        return Moves([("x", here)] if scene.waiting else [], wake_seconds=50.0)

    outcome = replay([job("x", 0.0, 2, 100.0)], POOLS, truth, stop_twice, restart_seconds=20.0)
    (finished,) = outcome.finished
    assert finished.stops == 2
    assert finished.end_seconds == pytest.approx(55.0 + 20.0 + 50.0)


def test_a_stopped_job_waits_in_front_of_those_that_came_after_it() -> None:
    queues: list[list[str]] = []

    def stop(scene: Scene) -> Moves:
        """Stops x at 20 s, while y waits, and starts whoever waits at 30 s."""
        queues.append([each.job.name for each in scene.waiting])
        if scene.now_seconds == 10.0:
            return Moves(wake_seconds=20.0)
        if scene.now_seconds == 20.0:
            return Moves(stops=["x"], wake_seconds=30.0)
        nodes = enumerate(each.job.name for each in scene.waiting)
        return Moves([(name, Placement("a", ((node, 4),))) for node, name in nodes])

    replay([job("x", 0.0, 4, 100.0), job("y", 10.0, 4, 10.0)], POOLS, truth, stop)
    assert queues[:4] == [["x"], ["y"], ["y"], ["x", "y"]]


def test_a_policy_that_never_places_is_stuck() -> None:
    with pytest.raises(Stuck, match="1 jobs wait for ever, first x"):
        replay([job("x", 0.0, 1, 1.0)], POOLS, truth, lambda scene: Moves())


def test_what_is_not_free_cannot_be_given() -> None:
    twice = Placement("b", ((0, 2),))
    with pytest.raises(ValueError, match="b/0 has 0 free, not 2"):
        replay(
            [job("x", 0.0, 2, 1.0), job("y", 0.0, 2, 1.0)],
            POOLS,
            truth,
            lambda scene: Moves([(each.job.name, twice) for each in scene.waiting]),
        )


def test_a_gang_takes_what_it_needs() -> None:
    with pytest.raises(ValueError, match="x needs 3, got 2"):
        replay(
            [job("x", 0.0, 3, 1.0)],
            POOLS,
            truth,
            lambda scene: Moves([("x", Placement("b", ((0, 2),)))]),
        )


@given(
    st.lists(st.tuples(st.floats(0, 1e4), st.integers(1, 4), st.floats(0.1, 1e3)), max_size=30),
    st.floats(0.0, 1e4),
)
def test_work_is_conserved(found: list[tuple[float, int, float]], later: float) -> None:
    jobs = [job(str(at), *each) for at, each in enumerate([*found, (later, 1, 1.0)])]
    outcome = replay(jobs, POOLS, truth, first_fit)
    assert len(outcome.finished) == len(jobs)
    for each in outcome.finished:
        alone = each.accelerator_seconds / each.job.accelerators
        assert math.isclose(each.completion_seconds, each.wait_seconds + alone, abs_tol=1e-6)
        assert any(math.isclose(alone, each.job.work * slow) for slow in SLOWNESS.values()) or (
            each.job.work < 1e-3 * each.end_seconds  # lost in the sum
        )


@given(st.lists(st.integers(1, 8), min_size=1, max_size=6), st.integers(1, 20))
def test_spreading_takes_the_fewest_nodes(nodes: list[int], count: int) -> None:
    room = Room([Pool("a", tuple(nodes))])
    placement = room.spread("a", count)
    if sum(nodes) < count:
        assert placement is None
        return
    assert placement is not None
    assert placement.accelerators == count
    fewest = next(
        size
        for size in range(1, len(nodes) + 1)
        if sum(sorted(nodes, reverse=True)[:size]) >= count
    )
    assert len(placement.nodes) == fewest
    room.take(placement)
    room.give(placement)
    assert list(room.free("a")) == nodes


def test_the_last_node_is_the_one_that_it_leaves_least_of() -> None:
    """Of 4 and 2, both of which would do."""
    room = Room([Pool("a", (8, 4, 2))])
    assert room.spread("a", 10) == Placement("a", ((0, 8), (2, 2)))
