"""A run whose FLOPs nobody told: datasheets at first, then what runs of it showed."""

from __future__ import annotations

from typing import Any

import pytest

from poolwise.errors import InvalidInput
from poolwise.model.prediction import TrainingPrediction
from poolwise.plan.cluster import decide
from poolwise.plan.decision import Candidate, Kind, Plan
from poolwise.plan.learning.corrections import workload_of
from poolwise.plan.observed import Object
from poolwise.plan.requests.reading import workload as read
from poolwise.plan.requests.request import TrainingRequest
from poolwise.plan.steps.told import measured
from poolwise.settings import Settings
from tests.plan.cluster_given import NOW, h100, job, key, l40s, observed, service
from tests.plan.history.test_learned import told
from tests.plan.machines import CALIBRATION, TABLES

MODEL = {"custom": {"parameters": "25M", "activationBytesPerSample": "90M"}}
TRAINING = {"globalBatchSize": 256, "samples": "100M"}
FAST, SLOW = "H100-SXM5-80GB", "L40S"


def run(name: str = "next", count: int = 1, **training: Any) -> Object:
    made: Object = job(name, count=count, model=MODEL, training={**TRAINING, **training})
    return made


def judged(wanted: Object, *others: Object) -> dict[str, Candidate]:
    seen = observed([*h100(1), *l40s(1)], *others, wanted)
    plan = decide(seen, TABLES, Settings(), CALIBRATION, NOW).outcomes[
        key(wanted["metadata"]["name"])
    ]
    assert isinstance(plan, Plan)
    return {str(each.accelerator): each for each in plan.candidates}


def ended(name: str, of: Object, pool: str, step_seconds: float) -> Object:
    """A run of the same that is over, as its status tells it."""
    request = read(of, Kind.TRAINING_JOB, TABLES, Settings(), {}).request
    assert isinstance(request, TrainingRequest)
    rated = {
        "workload": workload_of(request.work),
        "precision": "bf16",
        "accelerators": 1,
        "samples": request.work.global_batch_samples,
    }
    figures = {**told(pool=pool), "model": "custom", "stepSeconds": step_seconds, "rated": rated}
    over = {"type": "Complete", "status": "True", "reason": "JobComplete", "message": ""}
    status = {"conditions": [over], "observed": {"training": figures}}
    return {**run(name), "status": status}


def predicted(candidate: Candidate) -> TrainingPrediction:
    assert isinstance(candidate.prediction, TrainingPrediction)
    return candidate.prediction


def seconds(candidate: Candidate) -> float:
    return predicted(candidate).step_seconds.mid


def test_at_first_sight_datasheets_say_which_is_faster_and_nobody_how_fast():
    found = judged(run())
    assert 2.0 < seconds(found[SLOW]) / seconds(found[FAST]) < 6.0
    assert 2.0 < predicted(found[FAST]).step_seconds.spread < 2.5
    assert found[FAST].own_spread < 1.0  # what the pools share is no doubt between them
    assert found[FAST].chosen
    assert "estimated from data sheets until a run is measured" in found[FAST].reason
    assert predicted(found[FAST]).provenance == "specification"


def test_few_flops_make_no_step_shorter_than_its_host_lets_it_be():
    tiny = {"custom": {"parameters": "1k", "activationBytesPerSample": "1k"}}
    told = {"steps": 9, "globalBatchSize": 16}
    wanted, described = (
        job("next", count=1, model=model, training=told)
        for model in (tiny, {"custom": {**tiny["custom"], "forwardFlopsPerSample": "1k"}})
    )
    guessed, modelled = judged(wanted)[FAST], judged(described)[FAST]
    assert seconds(guessed) == pytest.approx(seconds(modelled), rel=0.01)
    assert seconds(guessed) > 5e-3
    assert predicted(guessed).step_seconds.spread > predicted(modelled).step_seconds.spread


def test_a_measured_run_tells_the_time_there_and_narrows_it_elsewhere():
    wanted, before = run(), judged(run())
    after = judged(wanted, ended("earlier", wanted, before[SLOW].pool, 4.0))
    assert seconds(after[SLOW]) == pytest.approx(4.0, rel=0.01)
    assert predicted(after[SLOW]).step_seconds.spread < 0.1
    assert [predicted(after[each]).provenance for each in (SLOW, FAST)] == [
        "measured",
        "specification",
    ]
    assert predicted(after[FAST]).step_seconds.spread < 1.0
    assert sum(term.seconds for term in predicted(after[FAST]).ledger) == pytest.approx(
        seconds(after[FAST])
    )
    assert "follows from its runs elsewhere" in after[FAST].reason


def test_who_gains_nothing_from_the_faster_pool_goes_to_the_cheaper_one():
    wanted, before = run(), judged(run())
    runs = [
        ended("slow", wanted, before[SLOW].pool, 4.0),
        ended("fast", wanted, before[FAST].pool, 3.8),
    ]
    after = judged(wanted, *runs)
    assert after[SLOW].chosen
    assert "its speed is that of one measured run here" in after[SLOW].reason


def test_another_batch_is_kin_and_learns_less():
    before, kin = judged(run()), run(globalBatchSize=128)
    ratios = []
    for of in (run(), kin):
        after = judged(
            run(),
            ended("slow", of, before[SLOW].pool, 4.0),
            ended("fast", of, before[FAST].pool, 4.0),
        )
        ratios.append(seconds(after[SLOW]) / seconds(after[FAST]))
    assert ratios[0] == pytest.approx(1.0, abs=0.05)
    assert ratios[0] < ratios[1] < seconds(before[SLOW]) / seconds(before[FAST])


def test_samples_of_another_batch_take_about_as_long():
    pool = judged(run())[SLOW].pool
    after = judged(run(), ended("half", run(globalBatchSize=128), pool, 4.0))
    assert seconds(after[SLOW]) == pytest.approx(8.0, rel=0.3)
    assert 0.5 < predicted(after[SLOW]).step_seconds.spread < 1.0
    assert "follows from runs of its model with other batches" in after[FAST].reason


def test_more_accelerators_take_less_time_but_not_in_proportion():
    one, eight = (seconds(judged(run(count=count))[FAST]) for count in (1, 8))
    assert 2.0 < one / eight < 8.0


def test_what_does_not_fit_the_memory_is_refused_all_the_same():
    large = run()
    large["spec"]["model"] = {"custom": {"parameters": "20G", "activationBytesPerSample": "90M"}}
    found = judged(large)
    assert not any(each.feasible for each in found.values())
    assert "needs" in found[SLOW].reason


def test_a_status_tells_what_its_rate_is_of():
    wanted = run()
    known = measured(ended("earlier", wanted, "l40s", 4.0))
    assert known is not None
    assert known.basis.rated is not None
    assert known.basis.rated.accelerators == 1


def test_a_service_has_to_say_its_flops():
    asked = service(model=MODEL, slo=[{"metric": "E2E", "percentile": 99, "target": "1s"}])
    with pytest.raises(InvalidInput, match="forwardFlopsPerSample: is required for a service"):
        read(asked, Kind.INFERENCE_SERVICE, TABLES, Settings(), {})
