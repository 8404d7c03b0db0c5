"""What statuses of runs tell of the next ones, of when they end, and of what a stop loses."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from poolwise.model.correction import Phase
from poolwise.model.prediction import Measured
from poolwise.plan.cluster import decide
from poolwise.plan.conditions import timestamp
from poolwise.plan.decision import Kind, Plan
from poolwise.plan.history.learned import LEAST_REQUESTS, LEAST_WINDOWS, learned, of_runs, speeds
from poolwise.plan.learning import Paces
from poolwise.plan.learning.corrections import Corrections, Subject, name_of
from poolwise.plan.live.mismatch.watch import Watch
from poolwise.plan.live.remembering import written
from poolwise.plan.memo import Memo
from poolwise.plan.requests.reading import workload as read
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.steps.remaining import FRESH_SECONDS, remaining_seconds, unsaved_since
from poolwise.plan.steps.told import measured
from poolwise.plan.wording import duration
from tests.plan.cluster_given import NOW, h100, job, key, l40s, observed, service
from tests.plan.machines import CALIBRATION, TABLES, model
from tests.plan.test_cluster_moves import MAY, slow_run

MODEL = "Llama-3.1-8B"


def told(pool="h100", ratio=1.5, samples=16, age_seconds=0.0, **more):
    return {
        "model": MODEL,
        "alike": "5f",
        "pool": pool,
        "time": timestamp(NOW - timedelta(seconds=age_seconds)),
        "steps": 1000,
        "ofSteps": 4000,
        "stepSeconds": 2.0 * ratio,
        "modelStepSeconds": 2.0,
        "samples": samples,
        "paceSeconds": 3.5,
        **more,
    }


def run(name="run", **of):
    status = {"observed": {"training": told(**of)}}
    return {**job(name), "status": status}


def factor(*runs, alike=""):
    known = learned(of_runs(map(measured, runs)), Paces(), Corrections())
    found = known.known.get(Subject(MODEL, Phase.TRAINING, "h100", alike))
    return found.at(NOW.timestamp()).factor if found else 1.0


def test_more_runs_tell_more_and_windows_of_one_do_not():
    assert factor(run()) == pytest.approx(1.5**0.56, rel=0.01)
    assert factor(run(samples=LEAST_WINDOWS)) == factor(run())
    five = [run(f"run-{number}") for number in range(5)]
    assert factor(run()) < factor(*five) < 1.5


def test_too_few_windows_tell_nothing():
    assert factor(run(samples=LEAST_WINDOWS - 1)) == 1.0


def test_one_odd_run_moves_nothing():
    odd = [run("odd", ratio=9.0), *(run(f"run-{number}", ratio=1.1) for number in range(4))]
    assert factor(*odd) < 1.1


def test_what_is_old_counts_less():
    week = 7 * 86_400.0
    assert factor(run(age_seconds=8 * week)) < factor(run(age_seconds=week)) < factor(run())


def test_two_shapes_are_two_models_and_names_are_stable():
    one, other = (
        replace(model(name), name="transformer") for name in ("llama-3.1-8b", "llama-3.1-70b")
    )
    assert name_of(one) != name_of(other)
    assert name_of(one) == name_of(replace(one))


def with_told(document, pool, **more):
    status = document["status"]
    training = told(pool, **more)
    status = {**status, "observed": {**status["observed"], "training": training}}
    return {**document, "status": {**status, "plan": {**status["plan"], "pool": pool}}}


def test_a_run_ends_by_its_own_pace():
    document, _ = slow_run()
    left = remaining_seconds(with_told(document, "l40s"), NOW)
    assert left is not None
    assert left.mid == pytest.approx(3000 * 3.5)
    assert left.spread < 0.06
    later = remaining_seconds(with_told(document, "l40s"), NOW + timedelta(hours=1))
    assert later is not None
    assert later.mid == pytest.approx(3000 * 3.5 - 3600.0, rel=0.01)


@pytest.mark.parametrize("seconds_since", [0, 1])
def test_a_run_that_has_made_all_its_steps_takes_one_more_at_most(seconds_since):
    """Its last steps are told while it ends."""
    document, _ = slow_run()
    done = with_told(document, "l40s", steps=4000)
    left = remaining_seconds(done, NOW + timedelta(seconds=seconds_since))
    assert left is not None
    assert left.mid == pytest.approx(3.5 - seconds_since, rel=0.01)


def test_a_checkpoint_of_the_run_itself_is_nothing_that_was_ahead_of_it():
    """What it has told since its start has passed with its time already."""
    document, _ = slow_run(hours_ago=1.0)
    without_pace = {"ofSteps": 4000, "paceSeconds": None}
    kept, plain = (
        remaining_seconds(with_told(document, "l40s", **without_pace, **more), NOW)
        for more in ({"lastCheckpointSteps": 2000}, {})
    )
    assert kept is not None
    assert plain is not None
    assert kept.mid == pytest.approx(plain.mid)


def test_one_that_was_started_anew_has_what_its_checkpoint_lacks_before_it():
    document, _ = slow_run(hours_ago=0.0)
    anew = with_told(document, "l40s", age_seconds=60.0, lastCheckpointSteps=1000)
    whole, left = (remaining_seconds(each, NOW) for each in (document, anew))
    assert whole is not None and left is not None
    assert left.mid == pytest.approx(0.75 * whole.mid)


@pytest.mark.parametrize("more", [{"paceSeconds": 0}, {"steps": 9000}, {"paceSeconds": None}])
def test_figures_that_make_no_sense_never_make_it_endless(more):
    document, _ = slow_run()
    left = remaining_seconds(with_told(document, "l40s", **more), NOW)
    assert left is not None
    assert 0.0 < left.mid < 1e9


def moved(seconds_ago):
    """What becomes of a run that wrote its last checkpoint so long ago."""
    document, children = slow_run()
    nodes = [*l40s(1), *h100(1)]
    pool = decide(observed(nodes), TABLES, MAY, CALIBRATION, NOW).pools
    name = next(each.name for each in pool if "l40s" in each.name)
    saved = timestamp(NOW - timedelta(seconds=seconds_ago))
    steps = {"steps": 100, "ofSteps": 20_000, "paceSeconds": 15.0, "samples": 0}
    found = with_told(document, name, lastCheckpointTime=saved, **steps)
    seen = observed(nodes, found, children=children)
    return decide(seen, TABLES, MAY, CALIBRATION, NOW).outcomes[key("slow")]


def test_a_stop_loses_the_work_since_the_last_checkpoint():
    lost = MAY.restart_seconds
    for ago in (60.0, 3000.0):
        leaves = moved(ago)
        assert isinstance(leaves, Plan) and leaves.vacates
        assert f"the {duration(lost + ago)} that the restart loses" in leaves.reason


def test_a_checkpoint_that_was_told_long_ago_says_nothing():
    fresh, old = (
        run(lastCheckpointTime=timestamp(NOW)),
        run(age_seconds=FRESH_SECONDS + 1, lastCheckpointTime=timestamp(NOW)),
    )
    assert unsaved_since([fresh], [measured(fresh)], NOW) == {key("run"): NOW}
    assert unsaved_since([old], [measured(old)], NOW) == {}


def test_all_that_was_done_is_at_stake_where_no_checkpoint_was_seen():
    begun = NOW - timedelta(hours=3)
    one = run()
    one["status"]["observed"]["startTime"] = timestamp(begun)
    assert unsaved_since([one], [measured(one)], NOW) == {key("run"): begun}
    assert unsaved_since([job("silent")], [None], NOW) == {}


def test_a_memory_never_tells_what_was_measured_before():
    memo, nodes = Memo(), [*h100(1), *l40s(1)]
    (pool,) = [p.name for p in decide(observed(h100(1)), TABLES, MAY, CALIBRATION, NOW).pools]
    for ratio in (1.5, 1.5, 1.1, 0.8):
        seen = observed(nodes, run(pool=pool, ratio=ratio), job("next"))
        known, anew = (decide(seen, TABLES, MAY, CALIBRATION, NOW, each) for each in (memo, None))
        assert known.outcomes == anew.outcomes
        plan = known.outcomes[key("next")]
        assert isinstance(plan, Plan)
        (found,) = [each.prediction for each in plan.candidates if each.pool == pool]
        assert found is not None
        assert found.measured["training"] == Measured(ratio, 1)


def serving(pool, log_slowness, finished=LEAST_REQUESTS, name="chat"):
    """A service whose controller has learned how slow its steps are."""
    memory = Memory(finished=finished, log_slowness={pool: log_slowness})
    text = written(memory, Watch(), NOW.timestamp())
    status = {"scaling": {"time": timestamp(NOW), "memory": text}}
    return {**service(name), "status": status}


@pytest.mark.parametrize(("finished", "is_told"), [(LEAST_REQUESTS, True), (1.0, False)])
def test_tokens_that_took_longer_correct_the_next_service_and_no_run(finished, is_told):
    (pool,) = [p.name for p in decide(observed(l40s(1)), TABLES, MAY, CALIBRATION, NOW).pools]
    seen = observed(l40s(1), serving(pool, math.log(1.4), finished), service("next"), job("run"))
    found = decide(seen, TABLES, MAY, CALIBRATION, NOW).outcomes
    plan, of_run = found[key("next", Kind.INFERENCE_SERVICE)], found[key("run")]
    assert isinstance(plan, Plan) and isinstance(of_run, Plan)
    assert plan.chosen is not None and plan.chosen.prediction is not None
    measured = plan.chosen.prediction.measured
    assert measured.keys() == ({"token"} if is_told else set())
    if is_told:
        assert measured["token"] == Measured(1.4, 1)
        assert "token measured 1.40x of the model on" in plan.reason
    assert all(
        each.prediction is None or not each.prediction.measured for each in of_run.candidates
    )


def test_what_was_measured_before_fills_no_page():
    """A service that is measured for weeks is slower by another hundredth each time, and its pages
    are those that never become the oldest."""
    slo = [{"metric": "TTFT", "percentile": 99, "target": "5s"}]  # however slow its tokens are
    (pool,) = [p.name for p in decide(observed(l40s(1)), TABLES, MAY, CALIBRATION, NOW).pools]
    memo, sizes = Memo(), []
    for log_slowness in (0.1, 0.2, 0.3, 0.4, 0.5):
        measured_one = serving(pool, log_slowness)
        measured_one["spec"]["slo"] = slo
        seen = observed(l40s(1), measured_one, service("next", slo=slo))
        decide(seen, TABLES, MAY, CALIBRATION, NOW, memo)
        sizes.append(max(map(len, memo._pages.values())))
    assert len(set(sizes)) == 1


def test_a_memory_that_is_damaged_tells_nothing():
    broken = {**service("chat"), "status": {"scaling": {"time": timestamp(NOW), "memory": "x"}}}
    assert speeds(broken) == speeds(service("chat")) == {}


OWN = {"custom": {"parameters": "25M", "forwardFlopsPerSample": "4100M",
                  "activationBytesPerSample": "90M"}}  # fmt: skip


def planned(workload, *runs):
    seen = observed([*h100(1), *l40s(1)], *runs, workload)
    plan = decide(seen, TABLES, MAY, CALIBRATION, NOW).outcomes[key(workload["metadata"]["name"])]
    assert isinstance(plan, Plan)
    return {each.accelerator: each for each in plan.candidates}


@pytest.mark.parametrize("spec", [{"model": OWN}, {}])
def test_a_description_that_is_off_shows_on_all_pools_and_a_preset_does_not(spec):
    training = {"globalBatchSize": 256, "samples": "100M", "sequenceLength": 4096}
    if spec:
        del training["sequenceLength"]
    new = job("next", count=1, training=training, **spec)
    if not spec:
        new["spec"]["accelerators"] = {"count": 8}
    before = planned(new)
    request = read(new, Kind.TRAINING_JOB, TABLES, MAY, {}).request
    there = run(pool=before["L40S"].pool, ratio=1.5)
    there["status"]["observed"]["training"]["model"] = name_of(request.work.model)
    after = planned(new, there)
    steps = {
        name: after[name].prediction.step_seconds.mid / before[name].prediction.step_seconds.mid
        for name in after
    }
    assert steps["L40S"] == pytest.approx(1.5**0.56, rel=0.01)
    told = after["H100-SXM5-80GB"].prediction.measured
    if spec:
        assert 1.0 < steps["H100-SXM5-80GB"] < steps["L40S"]
        assert told["training"].elsewhere
        assert (
            "measured 1.50x of the model on other pools, 1 sample" in after["H100-SXM5-80GB"].reason
        )
    else:
        assert steps["H100-SXM5-80GB"] == 1.0
        assert told == {}
