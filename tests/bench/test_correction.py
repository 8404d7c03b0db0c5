"""Measurements of a workload bring its predictions nearer; what accelerators share cancels."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from bench.correction import across, beyond_bound, lasting, lines, timed, workloads
from bench.model.outcome import Outcome
from bench.ratio_spread import matched, shared
from poolwise.model.correction import Phase
from poolwise.model.prediction import Interval

OFF = {"H100": 1.3, "L40S": 0.8, "B200": 1.1}
ROWS = 12


def outcomes(score: str = "tpot") -> list[Outcome]:
    """Every accelerator is off by a factor of its own, and each row by a little."""
    chance = random.Random(1)
    return [
        Outcome(
            score,
            {"model": "m", "gpu": gpu, "engine": "vllm", "concurrency": str(index)},
            measured=0.02 * factor * chance.lognormvariate(0.0, 0.02),
            is_eligible=True,
            predicted=Interval.around(0.02, 0.2),
        )
        for gpu, factor in OFF.items()
        for index in range(ROWS)
    ]


def test_rates_are_taken_as_times() -> None:
    (slow,) = timed([Outcome("train_dense", {}, 80.0, True, Interval(100.0, 90.0, 120.0))])
    assert slow.phase is Phase.TRAINING
    assert slow.ratio == pytest.approx(1.25)
    assert slow.predicted.low < slow.predicted.mid < slow.predicted.high


def test_each_measurement_brings_the_others_nearer() -> None:
    found = list(lines(timed(outcomes()), Phase.TOKEN))
    assert [line.seen for line in found] == [0, 1, 3]
    errors = [line.after for line in found]
    assert errors == sorted(errors, reverse=True)
    assert found[0].after == found[0].before
    assert found[-1].after < 0.5 * found[0].before
    assert all(line.held > 80 for line in found)


def test_other_phases_have_no_lines() -> None:
    assert not list(lines(timed(outcomes()), Phase.TRAINING))


def test_what_accelerators_share() -> None:
    several = timed(outcomes())
    share, pairs = across(several, Phase.TOKEN)
    assert pairs == 3
    assert share < 0.5
    alike = [replace(each, seconds=0.02 * 1.3) for each in several]
    assert across(alike, Phase.TOKEN)[0] == pytest.approx(1.0)
    assert across(several, Phase.TRAINING) == (0.0, 0)


def test_the_share_that_lasts() -> None:
    chosen = workloads(timed(outcomes()), Phase.TOKEN)
    assert len(chosen) == len(OFF)
    assert lasting(chosen) > 0.95
    assert beyond_bound(chosen) == 0.0


def test_what_accelerators_share_cancels() -> None:
    common = [(0.3 + own, 0.3 - own) for own in (0.02, -0.02, 0.01)]
    assert shared(common, common).own_share < 0.01
    opposed = [(0.3, -0.3), (-0.3, 0.3)]
    assert shared(opposed, opposed).own_share == 1.0


def test_the_share_is_of_what_ranges_are_made_of() -> None:
    beside, alone = [(0.1, -0.1)], [(0.2, 0.2)]
    assert shared(beside, alone).own_share == pytest.approx(0.5)
    assert shared(beside, [(0.1, 0.1)]).own_share == 1.0


def test_pairs_are_equal_in_all_but_the_accelerator() -> None:
    pairs = list(matched(outcomes(), Phase.TOKEN))
    assert len(pairs) == ROWS * 3
    assert not list(matched(outcomes(), Phase.FIRST_TOKEN))
