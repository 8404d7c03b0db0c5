"""The residual of a replica over its load."""

import math
from dataclasses import replace

import pytest

from poolwise import tables
from poolwise.model import calibration, presets
from poolwise.model.efficiency import Calibration
from poolwise.model.serving.site import serving_site
from poolwise.model.serving.slowness import AS_FORMULAS, KNOTS, TOKEN, Slowness, slowness
from poolwise.model.work import ServingLayout, ServingWork, Tokens
from poolwise.plan.pools.machines import device

TABLES = tables.load()
CALIBRATION = calibration.shipped(TABLES)
H100_ROW = TABLES.accelerator("H100-SXM5-80GB")
assert H100_ROW is not None
H100 = device(H100_ROW)
LLAMA = TABLES.model("Llama-3.1-70B")
assert LLAMA is not None
WORK = ServingWork(
    model=presets.model(LLAMA),
    requests_per_second=None,
    input_tokens=Tokens(1024.0, 1024.0),
    output_tokens=Tokens(1024.0, 1024.0),
    prefix_hit_fraction=0.0,
    max_model_tokens=None,
    targets=(),
    software_year=2026.2,
)
LAYOUT = ServingLayout(tensor=8, weight_format="fp8")


def test_straight_between_knots_and_level_beyond() -> None:
    found = Slowness((0.0, 0.2, 0.1))
    assert found.factor(1.0) == 1.0
    assert found.factor(4.0) == pytest.approx(math.exp(0.2))
    assert found.factor(2.0) == pytest.approx(math.exp(0.1))
    assert found.factor(16.0) == found.factor(1e6) == pytest.approx(math.exp(0.1))
    assert found.factor(0.0) == 1.0


def test_without_a_residual_times_are_as_the_formulas_have_them() -> None:
    bare = Calibration(TABLES.efficiencies)
    assert slowness(TOKEN, WORK, LAYOUT, H100, bare) is AS_FORMULAS
    assert AS_FORMULAS.factor(100.0) == 1.0


def test_at_a_knot_it_is_the_residual() -> None:
    found = slowness(TOKEN, WORK, LAYOUT, H100, CALIBRATION)
    residual = CALIBRATION.residual(TOKEN)
    assert residual is not None
    for load in KNOTS[:5]:
        site = serving_site(WORK, LAYOUT, H100, load)
        assert found.factor(load) == pytest.approx(residual.at(site).factor)
    assert found.factor(4.0) != 1.0


def test_a_model_of_ones_own_is_as_the_formulas_have_it() -> None:
    own = replace(WORK, model=replace(WORK.model, name="my-own"))
    found = slowness(TOKEN, own, LAYOUT, H100, CALIBRATION)
    assert {found.factor(load) for load in KNOTS} == {1.0}
