"""Rival laws that carry a model of the engine: WVA's queue and Dynamo's planner."""

import numpy as np
import pytest

from bench.autoscale.policies import wva_tuner
from bench.autoscale.policies.dynamo_hybrid import DynamoHybrid
from bench.autoscale.policies.dynamo_load import DynamoLoad, Engines
from bench.autoscale.policies.dynamo_passes import EngineState, Passes
from bench.autoscale.policies.dynamo_predictors import Constant, Kalman
from bench.autoscale.policies.dynamo_regression import Regression, greatest_rate
from bench.autoscale.policies.dynamo_throughput import DynamoThroughput
from bench.autoscale.policies.service import ForwardPass
from bench.autoscale.policies.wva_queue import WvaQueue
from bench.autoscale.policies.wva_queueing import Parameters, Queue, RequestSize
from poolwise.plan.signals.sample import Histogram, Sample
from tests.bench.autoscale_views import SERVICE, gauges, view

SIZE = RequestSize(1000.0, 200.0)
PARAMETERS = Parameters(8.0, 0.02, 0.00001)


def test_a_queue_of_one_is_m_m_1_k():
    # one server of 1000/s' mean time s, room for 4 behind it: M/M/1/5 at rho 0.5
    queue = Queue(PARAMETERS, SIZE, sequences=1, queue_requests=4)
    found = queue.analysis(queue.most_rate / (1.0 - 0.001) * 0.5)
    share = np.array([0.5**n for n in range(6)])
    share /= share.sum()
    rate = queue.most_rate / 0.999 * 0.5
    throughput = rate * (1.0 - share[5])
    waiting = (share * np.maximum(np.arange(6) - 1, 0)).sum()
    assert found is not None
    assert found.throughput_requests_per_second == pytest.approx(throughput)
    assert found.wait_milliseconds == pytest.approx(1000.0 * waiting / throughput)


def test_an_idle_engine_takes_its_bare_times():
    queue = Queue(PARAMETERS, SIZE, sequences=64, queue_requests=100)
    found = queue.analysis(queue.least_rate)
    computed, read = 1200.0 / 201.0, 1100.0
    iteration = 8.0 + 0.02 * computed + 0.00001 * read
    assert found is not None
    assert found.prefill_milliseconds == pytest.approx(iteration + 0.02001 * 1000.0, rel=1e-2)
    assert found.token_milliseconds == pytest.approx(iteration + 0.02 + 0.00001 * read, rel=1e-2)


def test_the_greatest_rate_just_meets_the_tighter_target():
    queue = Queue(PARAMETERS, SIZE, sequences=64, queue_requests=100)
    rate = queue.greatest_rate(5000.0, 12.0)
    assert rate is not None
    found = queue.analysis(rate)
    assert found is not None
    assert found.token_milliseconds == pytest.approx(12.0, rel=1e-3)
    assert queue.greatest_rate(5000.0, 5.0) is None  # alpha alone takes longer
    assert queue.analysis(queue.most_rate * 1.01) is None


def test_the_tuner_finds_the_parameters_that_made_the_measurements():
    tuner = wva_tuner.Tuner(sequences=64)
    queue = Queue(PARAMETERS, SIZE, 64, 640)
    for share in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7):  # a first guess cannot serve more
        for _ in range(40):
            rate = queue.most_rate * share
            seen = queue.analysis(rate)
            assert seen is not None
            ttft = seen.wait_milliseconds + seen.prefill_milliseconds
            tuner.learn(wva_tuner.Observed(rate, SIZE, ttft, seen.token_milliseconds))
    assert tuner.parameters is not None
    learned = Queue(tuner.parameters, SIZE, 64, 100)
    expected = Queue(PARAMETERS, SIZE, 64, 100).greatest_rate(5000.0, 12.0)
    assert learned.greatest_rate(5000.0, 12.0) == pytest.approx(expected, rel=0.1)


def test_the_tuner_throws_an_outlier_away():
    tuner = wva_tuner.Tuner(sequences=64)
    queue = Queue(PARAMETERS, SIZE, 64, 640)
    seen = queue.analysis(queue.most_rate / 2.0)
    assert seen is not None
    usual = wva_tuner.Observed(queue.most_rate / 2.0, SIZE, 40.0, seen.token_milliseconds)
    for _ in range(10):
        tuner.learn(usual)
    before = tuner.parameters
    tuner.learn(wva_tuner.Observed(usual.requests_per_second, SIZE, 90_000.0, 900.0))
    assert tuner.parameters == before


def engine_samples(at_seconds: float, replicas: int, rate: float, running: float):
    """Replicas that serve ``rate`` requests per second each with PARAMETERS' bare times."""
    count = rate * at_seconds
    return {
        f"r{n}": Sample(
            f"r{n}",
            at_seconds,
            running=running,
            waiting=0.0,
            kv_cache_usage=0.2,
            finished_requests=count,
            prompt_tokens=count * 1000.0,
            cached_prompt_tokens=0.0,
            ttft_seconds=_of(count, 0.030),
            inter_token_seconds=_of(count * 199.0, 0.009),
            prompt_lengths_tokens=_of(count, 1000.0),
            answer_lengths_tokens=_of(count, 200.0),
        )
        for n in range(replicas)
    }


def _of(count: float, each: float) -> Histogram:
    return Histogram((each, float("inf")), (count, count), count * each)


def test_wva_queue_asks_for_more_replicas_the_tighter_the_target():
    asked = {}
    for scale in (0.2, 1.0):
        law = WvaQueue(SERVICE, scale=scale, window_seconds=0.0)
        asked[scale] = 6
        for at in range(15, 615, 15):
            count = asked[scale]
            asked[scale] = law.desired(view(at, count, engine_samples(at, count, 4.0, 8.0)))
    assert asked[1.0] < asked[0.2]


def test_wva_queue_does_nothing_without_traffic():
    law = WvaQueue(SERVICE, window_seconds=0.0)
    assert law.desired(view(0.0, 3, gauges(0.0, 3))) == 3


def profiled() -> Regression:
    own = Regression()
    for each in SERVICE.profile:
        own.add(each)
    own.request_tokens.add(1000.0)
    assert own.is_ready()
    return own


def test_the_regression_is_least_squares():
    assert profiled().seconds(2000.0, 50_000.0) == pytest.approx(0.01 + 0.1 + 0.01)


def test_a_regression_with_less_time_for_more_load_is_refused():
    own = Regression()
    for prefill in range(6):
        own.add(ForwardPass(float(prefill), 0.0, 1.0 - 0.1 * prefill))
    assert not own.is_ready()


def test_the_fullest_bucket_loses_its_oldest():
    own = Regression()
    for at in range(200):
        own.add(ForwardPass(100.0 if at else 0.0, 1000.0 if at else 0.0, 1.0 + at))
    assert own.is_ready()
    assert own.seconds(0.0, 0.0) == pytest.approx(1.0)  # the other bucket's only sample stayed


def test_ttft_is_chunk_by_chunk():
    own = profiled()
    found = own.ttft_seconds(9000.0, 8192, 0.0, 0.0)
    assert found == pytest.approx(0.01 + 8192 * 5e-5 + 0.01 + 1808 * 5e-5)
    assert own.ttft_seconds(9000.0, 8192, 0.0, 0.5) == pytest.approx(0.01 + 5000 * 5e-5)


def test_the_engine_rate_is_of_the_largest_batch_in_the_targets():
    own = profiled()
    # 32 sequences of 1100 tokens: 10 + 32*1000/200*0.05 + 32*1100*2e-4 ms = 25.04 ms
    limits, targets = (8192, 256, 1_000_000), (3.0, 0.02505)
    assert greatest_rate(own, 1000.0, 200.0, limits, targets, 0.0) == pytest.approx(
        32 / (200 * 0.02504), rel=1e-6
    )
    assert greatest_rate(Regression(), 1000.0, 200.0, limits, targets, 0.0) == 0.0


def engines(states, scale=1.0):
    return Engines(profiled(), states, SERVICE, scale, 0.0)


def test_dynamo_goes_up_only_when_every_engine_is_over():
    over, idle = EngineState(50_000.0, 60_000.0), EngineState(0.0, 0.0)
    assert engines([over, over]).sla_change() == 1  # 61,000 tokens of prefill take over 3 s
    assert engines([over, idle]).sla_change() == 0


def test_dynamo_goes_down_when_the_rest_would_hold_it():
    assert engines([EngineState(20_000.0, 0.0)] * 4).sla_change() == -1
    assert engines([EngineState(80_000.0, 0.0)] * 4).sla_change() == 0  # 106,667 of 100,000
    assert engines([EngineState(20_000.0, 0.0)]).sla_change() == 0


def test_dynamo_easy_modes():
    full, busy = EngineState(90_000.0, 20_000.0), EngineState(50_000.0, 0.0)
    assert engines([full, busy]).easy_change("throughput") == 1
    assert engines([busy, busy]).easy_change("throughput") == -1
    assert engines([busy, busy]).easy_change("latency") == 1


def test_dynamo_only_looks_while_a_replica_starts():
    law = DynamoLoad(SERVICE, mode="latency")
    seen = gauges(0.0, 3, running=9.0, kv=0.9)
    assert law.desired(view(0.0, 3, seen, starting=1)) == 4
    assert law.desired(view(5.0, 3, seen)) == 4
    assert law.desired(view(10.0, 4, seen)) == 4  # one of four tells nothing


def test_an_iteration_between_two_scrapes():
    passes, own = Passes(100_000), Regression()
    for at in (100.0, 115.0):
        passes.observe(own, engine_samples(at, 1, 4.0, 8.0)["r0"])
    # 15 s of 9 ms gaps, 60 requests of 1000 tokens
    assert own.prefill_tokens.value == pytest.approx(60_000 * 0.009 / 15.0)
    assert own.request_tokens.value == pytest.approx(1000.0)
    assert own.decode_tokens.value == pytest.approx(20_000 / 8.0)


def test_kalman_follows_a_trend():
    predictor = Kalman()
    for value in (0.0, *(100.0 + 10.0 * n for n in range(30))):
        predictor.add(value)
    assert predictor.next() == pytest.approx(400.0, rel=0.02)
    assert predictor.next() == predictor.next()


def test_constant_says_the_last_value():
    predictor = Constant()
    predictor.add(3.0)
    predictor.add(float("nan"))
    assert predictor.next() == 0.0


@pytest.mark.parametrize("law", [DynamoThroughput, DynamoHybrid])
def test_the_throughput_loop_speaks_every_three_minutes(law):
    policy = law(SERVICE, scale=0.25, predictor="constant")
    asked = [
        policy.desired(view(float(at), 2, engine_samples(float(at), 2, 40.0, 8.0)))
        for at in range(5, 200, 5)
    ]
    assert max(asked[:35]) <= 3
    assert max(asked[36:]) > 5  # 80 requests/s in all
