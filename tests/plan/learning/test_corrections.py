"""What was measured of one model, in one phase, on one pool, corrects that and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from poolwise.model.correction import WINDOW, Correction, Phase, Sample
from poolwise.plan.learning.corrections import Corrections, Subject
from tests.plan.cluster_given import NOW, candidate, h100, job, l40s, plan_of, service
from tests.plan.machines import model as preset

MODEL = "Llama-3.1-8B"


def measured(phase, pool, ratio, model=MODEL, count=WINDOW):
    samples = [Sample(NOW.timestamp(), ratio)] * count
    return Corrections({Subject(model, phase, pool): Correction(phase).with_samples(samples)})


def planned(workload, corrections=None, nodes=None):
    return plan_of(
        nodes or [*h100(2), *l40s(2)], workload, corrections=corrections or Corrections()
    )


def pool_of(plan, accelerator):
    return candidate(plan, accelerator).pool


@pytest.fixture(scope="module")
def run():
    return job(count=8)


@pytest.fixture(scope="module")
def chat():
    return service(requests_per_second="6")


def test_a_run_that_was_slower_is_predicted_slower_there(run):
    before = planned(run)
    pool = pool_of(before, "H100-SXM5-80GB")
    after = planned(run, measured(Phase.TRAINING, pool, 1.3))
    was, now = (candidate(each, "H100-SXM5-80GB").prediction for each in (before, after))
    factor = now.corrected_by["training"]
    assert 1.2 < factor < 1.3
    assert now.step_seconds.mid == pytest.approx(factor * was.step_seconds.mid)
    assert now.step_seconds.spread < was.step_seconds.spread
    assert sum(term.seconds for term in now.ledger) == pytest.approx(now.step_seconds.mid)
    assert now.samples_per_second == pytest.approx(was.samples_per_second / factor)
    assert candidate(after, "L40S").prediction == candidate(before, "L40S").prediction


@pytest.mark.parametrize(
    ("phase", "model"),
    [(Phase.TOKEN, MODEL), (Phase.FIRST_TOKEN, MODEL), (Phase.TRAINING, "Llama-3.1-70B")],
)
def test_other_phases_and_models_tell_nothing_of_a_run(run, phase, model):
    before = planned(run)
    pool = pool_of(before, "H100-SXM5-80GB")
    after = planned(run, measured(phase, pool, 1.9, model))
    was, now = (candidate(each, "H100-SXM5-80GB").prediction for each in (before, after))
    assert now == was


def test_slower_tokens_lower_what_a_replica_serves(chat):
    before = planned(chat)
    pool = pool_of(before, "L40S")
    after = planned(chat, measured(Phase.TOKEN, pool, 1.4))
    was, now = (candidate(each, "L40S").prediction for each in (before, after))
    assert now.capacity_requests_per_second < was.capacity_requests_per_second / 1.2
    assert now.corrected_by.keys() == {"token"}
    assert sum(term.seconds for term in now.ledger) == pytest.approx(now.mean_request_seconds)
    assert candidate(after, "L40S").replicas >= candidate(before, "L40S").replicas


def test_corrected_times_stay_inside_their_targets():
    """A first token that takes longer here leaves less room for waiting: no target is missed."""
    slo = [{"metric": "TTFT", "percentile": 99, "target": "600ms"}]
    chat = service(requests_per_second="20", slo=slo, scaling={"maxReplicas": 100})
    before = candidate(planned(chat), "H100-SXM5-80GB")
    after = candidate(
        planned(chat, measured(Phase.FIRST_TOKEN, before.pool, 1.5)), "H100-SXM5-80GB"
    )
    assert after.prediction.corrected_by["first-token"] > 1.3
    assert after.prediction.ttft_seconds.mid <= 0.6 * 1.001
    was, now = (each.prediction.capacity_requests_per_second for each in (before, after))
    assert now < was


@pytest.mark.parametrize(
    ("phase", "is_corrected"),
    [(Phase.FIRST_TOKEN, True), (Phase.TOKEN, False)],
    ids=["first-token", "token"],
)
def test_models_that_only_read_are_corrected_by_first_tokens_alone(phase, is_corrected):
    """As docs/performance-model.md tells who keeps a list of measurements for such services."""
    slo = [{"metric": "E2E", "percentile": 95, "target": "100ms"}]
    load = {"requestsPerSecond": "200", "inputTokens": {"p50": 200, "p95": 400}}
    reader = service(model={"preset": "bert-large"}, traffic=load, slo=slo)
    was = candidate(planned(reader), "L40S")
    known = measured(phase, was.pool, 1.5, preset("bert-large").name)
    now = candidate(planned(reader, known), "L40S").prediction
    assert (now != was.prediction) is is_corrected
    assert (now.e2e_seconds.mid > 1.2 * was.prediction.e2e_seconds.mid) is is_corrected


def test_a_correction_that_nobody_renews_fades():
    known, model = measured(Phase.TOKEN, "l40s", 1.4), preset("llama-3.1-8b")
    at_once, later = (
        known.serving(model, "l40s", NOW + timedelta(days=days)).token.factor for days in (0, 60)
    )
    assert 1.0 < later < at_once


def test_a_correction_may_turn_the_choice(run):
    """The pool that measurements say is slow loses the run."""
    before = planned(run)
    slow = before.chosen
    after = planned(run, measured(Phase.TRAINING, slow.pool, 2.0))
    assert candidate(after, slow.accelerator).total_seconds > 1.7 * slow.total_seconds
