"""The residual of a replica: what it changes, and that a stranger's is silent."""

from dataclasses import replace

import pytest

from poolwise.model.calibration import shipped
from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import state
from poolwise.model.serving.replica import replica
from poolwise.model.serving.site import serving_site
from poolwise.model.serving.slowness import SATURATED, TOKEN
from poolwise.model.work import ServingLayout
from tests.model.serving_cases import CALIBRATION as BARE
from tests.model.serving_cases import CHAT, TABLES, machine, service

SHIPPED = shipped(TABLES)
WORK = service("Llama-3.1-70B", (1024, 1024), (1024, 1024), CHAT)
LAYOUT = ServingLayout(tensor=8, weight_format="fp8")
H100 = machine("H100-SXM5-80GB")


def test_runs_alike_change_steps_and_first_tokens() -> None:
    formulas, learnt = (replica(WORK, LAYOUT, H100, each) for each in (BARE, SHIPPED))
    assert formulas.slowness == formulas.first_token_slowness == 1.0
    assert learnt.slowness != 1.0
    assert learnt.first_token_slowness != 1.0
    before, after = (state(each, 16.0) for each in (formulas, learnt))
    assert after.decode.seconds == pytest.approx(before.decode.seconds * learnt.slowness)
    assert after.requests_per_second == pytest.approx(before.requests_per_second / learnt.slowness)


def test_a_first_token_is_slower_by_its_own_factor() -> None:
    formulas = replica(WORK, LAYOUT, H100, BARE)
    slow = replace(formulas, first_token_slowness=1.3)
    before, after = (latencies(each, state(each, 1.0)) for each in (formulas, slow))
    assert after.prefill.mean_seconds == pytest.approx(1.3 * before.prefill.mean_seconds)
    assert after.ttft.mean_seconds > 1.25 * before.ttft.mean_seconds
    assert after.token_percentile(95.0) == before.token_percentile(95.0)


def test_a_model_of_ones_own_is_as_the_formulas_have_it() -> None:
    own = replace(WORK, model=replace(WORK.model, name="my-own"))
    found = replica(own, LAYOUT, H100, SHIPPED)
    assert found.slowness == found.first_token_slowness == 1.0


def test_a_site_says_what_a_step_waits_for_whatever_its_residual() -> None:
    found = [
        serving_site(WORK, LAYOUT, H100.device, replica(WORK, LAYOUT, H100, each), 16.0).shares
        for each in (BARE, SHIPPED)
    ]
    memory, compute, links, fixed = found[0]
    assert sum(found[0]) == pytest.approx(1.0)
    assert memory > compute > 0.0
    assert min(links, fixed) > 0.0
    assert found[1] == pytest.approx(found[0])


def test_a_service_without_targets_is_judged_by_throughput() -> None:
    asked, free = (
        replica(each, LAYOUT, H100, SHIPPED).slowness for each in (WORK, replace(WORK, targets=()))
    )
    assert asked != free


@pytest.mark.parametrize(("is_asked", "in_flight"), [(True, 8.0), (False, 1.0)])
def test_steps_are_slower_as_those_with_targets_were_or_as_those_at_saturation(
    is_asked: bool, in_flight: float
) -> None:
    """Midway between one request and all slots; or at one for the data rank, where measured runs
    without a load are put down to."""
    work = replace(WORK, engine="triton", targets=CHAT if is_asked else ())
    layout = replace(LAYOUT, max_num_seqs=64)
    bare, learnt = (replica(work, layout, H100, each) for each in (BARE, SHIPPED))
    assert bare.slots == 64.0
    site = serving_site(work, layout, H100.device, bare, in_flight)
    residual = SHIPPED.residual(TOKEN if is_asked else SATURATED)
    assert residual is not None
    assert learnt.slowness == pytest.approx(residual.at(site).factor)
    assert is_asked or abs(learnt.slowness - 1.0) > 1e-3
