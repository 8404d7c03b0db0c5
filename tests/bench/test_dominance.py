"""What a ratio of speeds says of the resource that dominates."""

from __future__ import annotations

import math
import random

import pytest

from bench.model.dominance import Cases, may_dominate, pure_cases, verdict
from poolwise.tables import AcceleratorRow, load

TABLES = load()
BANDWIDTH = {"None": 0.0, "MemoryBandwidth": math.log(1.43)}
SEVERAL = {"None": 0.0, "MemoryBandwidth": 0.47, "Interconnect": 0.69, "Compute": 0.82}
MIXTURES = 300


def known(name: str) -> AcceleratorRow:
    row = TABLES.accelerator(name)
    assert row is not None
    return row


@pytest.mark.parametrize(
    ("before", "after", "in_four_bits", "names"),
    [
        ("H100-SXM5-80GB", "H200-SXM-141GB", False, {"None", "MemoryBandwidth"}),
        ("B200-SXM-180GB", "B300-SXM", False, {"None"}),
        ("B200-SXM-180GB", "B300-SXM", True, {"None", "Compute"}),
        (
            "H100-SXM5-80GB",
            "B200-SXM-180GB",
            False,
            {"None", "Compute/MemoryBandwidth", "Interconnect"},
        ),
    ],
)
def test_cases_are_the_resources_that_differ(
    before: str, after: str, in_four_bits: bool, names: set[str]
) -> None:
    assert set(pure_cases(known(before), known(after), in_four_bits=in_four_bits)) == names


def test_a_mixture_may_be_dominated_by_its_largest_part() -> None:
    """The sets miss no mixture: whatever the elasticities, the largest is among the admitted."""
    drawn = random.Random(7)
    for _ in range(MIXTURES):
        weights = [drawn.expovariate(1.0) for _ in SEVERAL]
        speedup = sum(
            weight * at for weight, at in zip(weights, SEVERAL.values(), strict=True)
        ) / sum(weights)
        largest = max(zip(weights, SEVERAL, strict=True))[1]
        assert largest in may_dominate(speedup, SEVERAL)


@pytest.mark.parametrize(
    ("speedup", "cases", "admitted"),
    [
        pytest.param(1.0, BANDWIDTH, {"None"}, id="nothing gained"),
        pytest.param(1.3, BANDWIDTH, {"MemoryBandwidth"}, id="most of the bandwidth"),
        pytest.param(1.6, BANDWIDTH, {"MemoryBandwidth"}, id="more than the bandwidth"),
        pytest.param(1.1, SEVERAL, {"None"}, id="little of any"),
        pytest.param(1.35, SEVERAL, {"None", "MemoryBandwidth"}, id="the slowest, or a mixture"),
        pytest.param(2.2, SEVERAL, {"Compute"}, id="as the fastest"),
    ],
)
def test_a_ratio_rules_resources_out(speedup: float, cases: Cases, admitted: set[str]) -> None:
    assert set(may_dominate(math.log(speedup), cases)) == admitted


@pytest.mark.parametrize(
    ("measured", "predicted", "is_decided", "is_right"),
    [
        pytest.param(1.40, 1.30, True, True, id="both beyond the border"),
        pytest.param(1.40, 1.10, True, False, id="on the other side"),
        pytest.param(1.02, 1.30, True, False, id="on the other side, upwards"),
        pytest.param(1.20, 1.02, False, True, id="measured on the border"),
    ],
)
def test_a_prediction_is_right_where_it_admits_what_the_measurement_does(
    measured: float, predicted: float, is_decided: bool, is_right: bool
) -> None:
    found = verdict(math.log(measured), math.log(predicted), BANDWIDTH, math.log(1.09))
    assert (found.is_decided, found.is_right) == (is_decided, is_right)


@pytest.mark.parametrize(
    ("predicted", "is_right", "is_contradicted"),
    [
        pytest.param(1.1, True, False, id="the same"),
        pytest.param(1.35, False, False, id="more may dominate"),
        pytest.param(2.2, False, True, id="another dominates"),
    ],
)
def test_a_wrong_prediction_may_still_mean_the_same_resource(
    predicted: float, is_right: bool, is_contradicted: bool
) -> None:
    found = verdict(math.log(1.1), math.log(predicted), SEVERAL, math.log(1.02))
    assert found.is_decided
    assert (found.is_right, found.is_contradicted) == (is_right, is_contradicted)


def test_a_prediction_within_the_noise_is_never_wrong() -> None:
    drawn = random.Random(8)
    for _ in range(MIXTURES):
        measured, noise = drawn.uniform(-0.2, 1.0), drawn.uniform(0.02, 0.2)
        predicted = measured + drawn.uniform(-noise, noise)
        assert verdict(measured, predicted, SEVERAL, noise).is_right


def test_where_nothing_differs_nothing_is_decided() -> None:
    assert not verdict(0.3, 0.0, {"None": 0.0}, 0.05).is_decided
