"""From looks at rank 0 to the time of a step, how far the run is, and its last checkpoint."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.model.correction import WINDOW
from poolwise.plan.steps.progress import Progress, Rhythm
from poolwise.plan.steps.sample import RunSample
from tests.plan.steps.given import START, Loop

INTERVAL = 15.0
RHYTHM = Rhythm.of(INTERVAL)
BATCH = 256.0


def seen(progress: Progress, sample: RunSample, process: str = "a/0") -> Progress:
    return progress.after(sample, process, BATCH, RHYTHM)


def looked(loop: Loop, seconds: float, progress: Progress | None = None, process: str = "a/0"):
    """Looks while it trains."""
    progress = progress or Progress()
    for _ in range(int(seconds / INTERVAL)):
        progress = seen(progress, loop.go(INTERVAL).sample(), process)
    return progress


@pytest.mark.parametrize("is_timed", [True, False])
@pytest.mark.parametrize("step_seconds", [0.01, 0.3, 2.0, 17.0])
def test_a_steady_run_is_measured(step_seconds, is_timed):
    found = looked(Loop(step_seconds, is_timed=is_timed), 7200.0)
    assert found.step_seconds == pytest.approx(step_seconds, rel=0.051)
    assert found.pace_seconds == pytest.approx(step_seconds, rel=0.05)
    assert found.steps == int(7200.0 / step_seconds + 1e-9)
    assert len(found.windows) <= WINDOW


def test_slow_steps_take_longer_to_be_measured_and_are_not_made_up():
    found = looked(Loop(600.0, is_timed=False), 7200.0)
    assert found.step_seconds is None
    assert found.steps == 12


def test_nothing_is_measured_of_the_first_steps():
    cold = Loop(20.0)
    found = looked(cold, 115.0)
    assert found.step_seconds is None and found.pace_seconds is None
    warm = replace(cold, step_seconds=1.0, steps=10.0, timed_seconds=0.0)
    # One series: seconds of steps go on from what the cold ones took.
    found = Progress()
    total = steps = 0.0
    at = START
    for number in range(80):
        length = 20.0 if number < 8 else 1.0
        at, steps, total = at + INTERVAL, steps + INTERVAL / length, total + INTERVAL
        found = seen(found, RunSample("r", at, steps, steps, total))
    assert found.step_seconds == pytest.approx(warm.step_seconds)


@pytest.mark.parametrize("is_timed", [True, False])
def test_a_checkpoint_is_in_the_pace_and_not_in_the_step(is_timed):
    loop, found = Loop(2.0, is_timed=is_timed), Progress()
    for _ in range(12):
        found = looked(loop, 600.0, found)
        found = seen(found, loop.save(60.0).sample())
    assert found.step_seconds == pytest.approx(2.0, rel=0.05)
    assert found.pace_seconds == pytest.approx(2.0 * 660 / 600, rel=0.03)
    assert found.checkpoint_seconds == loop.at_seconds
    assert found.checkpoint_steps == pytest.approx(loop.steps, abs=2)


def test_a_run_that_saves_at_every_look_tells_no_time_of_a_step():
    loop, found = Loop(2.0), looked(Loop(2.0), INTERVAL)
    for _ in range(40):
        found = seen(found, loop.go(60.0).save(5.0).sample())
    assert found.step_seconds is None
    assert found.pace_seconds is not None


def after_looks(*looks: tuple[float, float]) -> Progress:
    """Looks at (seconds, steps) since the first, of a run that only counts its steps."""
    found = Progress()
    for seconds, steps in ((0.0, 0.0), *looks):
        found = seen(found, RunSample("run-0", START + seconds, steps=steps))
    return found


WARM = (RHYTHM.warm_up.seconds, float(RHYTHM.warm_up.samples))


@pytest.mark.parametrize(("seconds", "steps"), [(0, 0), (-1, 100), (100, -1)])
def test_it_is_warm_after_so_many_steps_and_so_long(seconds, steps):
    found = after_looks((WARM[0] + seconds, WARM[1] + steps))
    assert found.process is not None
    assert (found.process.warm is not None) is (seconds >= 0 and steps >= 0)


@pytest.mark.parametrize(
    ("seconds", "steps", "is_measured", "is_paced"),
    [
        (60.0, 20.0, True, True),
        (59.0, 20.0, False, True),
        (60.0, 19.0, False, True),
        (60.0, 10.0, False, True),
        (60.0, 9.0, False, False),
    ],
)
def test_a_window_is_so_long_and_has_so_many_steps(seconds, steps, is_measured, is_paced):
    found = after_looks(WARM, (WARM[0] + seconds, WARM[1] + steps))
    assert found.step_seconds == (seconds / steps if is_measured else None)
    assert found.pace_seconds == (seconds / steps if is_paced else None)


@pytest.mark.parametrize(
    ("steps", "seconds", "told"), [(1.0, 50.0, 50.0), (0.0, 50.0, None), (30.0, 0.0, None)]
)
def test_one_step_with_its_time_is_enough(steps, seconds, told):
    """Times of a counter that stands still are none."""
    found = Progress()
    for at, done, timed in (
        (0.0, 0.0, 0.0),
        (*WARM, 0.0),
        (WARM[0] + 60, WARM[1] + steps, seconds),
    ):
        found = seen(found, RunSample("r", START + at, done, done, timed))
    assert found.step_seconds == told


def test_an_outlier_does_not_move_the_step():
    loop = Loop(2.0)
    found = looked(loop, 1200.0)
    loop.at_seconds += 300.0  # a stall that nobody tells
    found = looked(loop, 300.0, found)
    assert found.step_seconds == pytest.approx(2.0)


def restarted(steps: float, **told: float) -> tuple[Progress, Loop, Progress]:
    """A run of 600 steps with a checkpoint at about 500, and the first look at the next process."""
    loop = Loop(2.0)
    before = looked(loop, 1000.0)
    before = looked(loop.save(0.0), 200.0, before)
    after = Loop(2.0, at_seconds=loop.at_seconds + 300.0, steps=steps)
    return before, after, seen(before, after.sample(), "b/0")


def test_a_process_that_counts_from_zero_goes_on_from_the_checkpoint():
    before, loop, after = restarted(steps=3.0)
    assert before.steps > 590
    assert after.steps == 498
    again = looked(loop, 600.0, after, "b/0")
    assert again.steps == 798


def test_a_process_that_counts_on_from_the_checkpoint_is_taken_at_its_word():
    _, _, after = restarted(steps=502.0)
    assert after.steps == 502


def test_a_restart_without_a_checkpoint_begins_anew():
    found = looked(Loop(2.0), 600.0)
    after = seen(found, RunSample("r", START + 900.0, steps=4.0), "b/0")
    assert (after.steps, after.steps_before) == (4.0, 0.0)


def test_steps_after_a_restart_warm_up_again():
    loop = Loop(2.0)
    found = looked(loop, 1200.0)
    slow = Loop(30.0, at_seconds=loop.at_seconds, steps=loop.steps)
    again = looked(slow, 120.0, found, "b/0")
    assert again.windows == found.windows
    assert again.pace_seconds == found.pace_seconds


def test_an_old_look_tells_nothing():
    loop = Loop()
    found = looked(loop, 600.0)
    assert seen(found, Loop().go(300.0).sample()) == found


def test_samples_stand_for_steps_where_steps_are_not_told():
    found = seen(Progress(), RunSample("r", START, samples=1024.0))
    assert found.steps == 4.0


def test_a_move_keeps_the_steps_and_drops_their_times():
    found = looked(Loop(), 1200.0).moved()
    assert (found.step_seconds, found.pace_seconds) == (None, None)
    assert found.steps == 600


figures = st.none() | st.floats(0.0, 1e9)
samples = st.builds(
    RunSample,
    st.just("r"),
    st.floats(START, START + 1e5),
    steps=figures,
    timed_steps=figures,
    timed_seconds=figures,
    samples=figures,
    checkpoint_seconds=st.none() | st.floats(START - 1e5, START + 1e5),
)


@given(
    st.booleans(),
    st.lists(st.tuples(samples, st.sampled_from(["a/0", "a/1", "b/0"])), max_size=30),
)
def test_whatever_is_told_what_follows_is_sane(has_windows, looks):
    found = looked(Loop(), 1200.0) if has_windows else Progress()
    assert bool(found.windows) is has_windows
    for sample, process in looks:
        before, found = found, seen(found, sample, process)
        assert found.at_seconds >= before.at_seconds
        assert 0.0 <= found.steps_before <= found.steps < math.inf
        assert len(found.windows) <= WINDOW
        assert all(0.0 < each < math.inf for each in found.windows)
        assert found.pace_seconds is None or 0.0 < found.pace_seconds < math.inf
        if found.checkpoint_steps is not None:
            assert found.checkpoint_steps >= 0.0
