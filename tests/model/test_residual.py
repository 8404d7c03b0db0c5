"""Residuals: near what was measured they follow it, elsewhere they are silent."""

import math
from dataclasses import replace

import pytest

from poolwise import tables
from poolwise.errors import InvalidInput, TableError
from poolwise.model import calibration
from poolwise.model.efficiency import Calibration, Efficiency, Provenance
from poolwise.model.residual import BOUND, REMEMBERED, Kernel, Nearness, Residual, kernel
from poolwise.model.site import Site
from poolwise.tables.residuals import ResidualRow, with_sites

KERNEL = Kernel(levels=((0,), (0, 1)), variance=0.5, lengths=(2.0,))
SPREADS = (Nearness(0.9, 0.1), Nearness(0.4, 0.2), Nearness(0.0, 0.5))
KNOWN = Site(("llama", "H100"), (3.0,))


def residual(weight: float = 0.2) -> Residual:
    return Residual(KERNEL, [KNOWN], [weight], SPREADS)


def test_at_a_known_site_it_is_the_weight_times_the_variance() -> None:
    found = residual().at(KNOWN)
    assert found.log_factor == pytest.approx(0.2 * 2 * 0.5)
    assert found.factor == pytest.approx(math.exp(0.2))
    assert found.spread == 0.1


def test_half_of_the_labels_in_common_tell_half() -> None:
    found = residual().at(Site(("llama", "A100"), (3.0,)))
    assert found.log_factor == pytest.approx(0.1)
    assert found.spread == 0.2


def test_it_fades_with_distance() -> None:
    near, far = (residual().at(Site(KNOWN.labels, (place,))) for place in (5.0, 13.0))
    assert near.log_factor == pytest.approx(0.2 * math.exp(-0.5))
    assert abs(far.log_factor) < 1e-5
    assert far.spread == 0.5


def test_a_site_of_sizes_beyond_all_numbers_is_near_to_nothing_that_can_be_told() -> None:
    with pytest.raises(InvalidInput, match="too large"):
        residual().at(Site(KNOWN.labels, (math.nan,)))


def test_functions_that_span_accelerators_fade_with_the_shares_of_a_step_and_others_do_not() -> (
    None
):
    across = replace(KERNEL, share_length=0.5, across=(True, False))
    waits = replace(KNOWN, shares=(0.75, 0.25))
    known = Residual(across, [waits], [0.2], SPREADS)
    assert known.at(waits).log_factor == pytest.approx(0.2)
    other = known.at(replace(KNOWN, shares=(0.25, 0.75)))
    assert other.log_factor == pytest.approx(0.1 + 0.1 * math.exp(-1.0))
    elsewhere = known.at(Site(("llama", "A100"), (3.0,), (0.25, 0.75)))
    assert elsewhere.log_factor == pytest.approx(0.1 * math.exp(-1.0))


def test_a_function_that_names_the_accelerator_spans_none() -> None:
    several = (("model",), ("model", "accelerator"), ("accelerator",))
    row = ROW.model_copy(update={"labels": ("model", "accelerator"), "levels": several})
    assert kernel(row).across == (True, False, False)


def test_what_is_remembered_of_places_changes_no_answer() -> None:
    one, places = residual(), [float(each) for each in range(2 * REMEMBERED)]
    for place in (*places, *places[::-1], *places):
        assert one.at(Site(KNOWN.labels, (place,))) == residual().at(Site(KNOWN.labels, (place,)))


@pytest.mark.parametrize("labels", [("gpt", "H100"), ("", "")])
def test_a_stranger_gets_nothing_and_the_widest_spread(labels: tuple[str, str]) -> None:
    found = residual().at(Site(labels, (3.0,)))
    assert found.log_factor == 0.0
    assert found.spread == 0.5


@pytest.mark.parametrize("weight", [9.0, -9.0])
def test_it_is_bounded(weight: float) -> None:
    assert abs(residual(weight).at(KNOWN).log_factor) == BOUND


def constant(spread: float, provenance: Provenance) -> Efficiency:
    return Efficiency(1.0, spread, 30, provenance, "a test")


def test_near_runs_narrow_the_range_of_their_own_accelerator_alone() -> None:
    near, stranger = residual().at(KNOWN), residual().at(Site(("gpt", "H100"), (3.0,)))
    for spread, expected in ((0.3, 0.1), (0.05, 0.05)):
        assert near.spread_beside(constant(spread, Provenance.FITTED)) == expected
        assert near.spread_beside(constant(spread, Provenance.INHERITED)) == spread
    assert stranger.spread_beside(constant(0.3, Provenance.FITTED)) == 0.5
    assert stranger.spread_beside(constant(0.7, Provenance.INHERITED)) == 0.7


def test_a_calibration_has_a_residual_only_where_it_was_given_one() -> None:
    bare = Calibration([])
    given = bare.with_residuals({"tpot": residual()})
    assert bare.residual("tpot") is None
    assert given.residual("tpot") is not None
    assert given.residual("ttft") is None
    assert given.replaced({}).residual("tpot") is given.residual("tpot")


def test_every_shipped_site_has_a_finite_bounded_estimate() -> None:
    shipped = tables.load()
    known = calibration.shipped(shipped)
    for row in shipped.residuals:
        found = known.residual(row.figure)
        assert found is not None
        for site in row.sites[::50]:
            learnt = found.at(Site(site.labels, site.coordinates, site.shares))
            assert abs(learnt.log_factor) <= BOUND
            assert learnt.spread == min(each.spread for each in row.spreads)


ROW = ResidualRow(
    figure="tpot",
    source="a test",
    date="2025-11",
    count=1,
    noise=0.1,
    labels=("model",),
    levels=(("model",),),
    variance=1.0,
    lengths={"in_flight": 1.0},
    spreads=(),
)


def test_sites_are_read_from_lines() -> None:
    following = ROW.model_copy(update={"shares": ("memory_share",)})
    (site,) = with_sites(
        following, ["model,in_flight,memory_share,weight", "llama,2.5,0.75,-0.3"]
    ).sites
    assert (site.labels, site.coordinates) == (("llama",), (2.5,))
    assert (site.shares, site.weight) == ((0.75,), -0.3)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["model,weight"], "columns are"),
        (["model,in_flight,weight", "llama,much,1"], "line 2"),
        (["model,in_flight,weight", "llama,1"], "line 2"),
    ],
)
def test_a_malformed_file_is_told_with_its_place(lines: list[str], says: str) -> None:
    with pytest.raises(TableError, match=says):
        with_sites(ROW, lines)
