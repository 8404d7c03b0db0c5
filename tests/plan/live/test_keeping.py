"""How targets are kept, by as much of the past as it takes."""

import pytest

from poolwise.model.work import Metric, Target
from poolwise.plan.live.keeping import LONGEST_SECONDS, Record
from tests.plan.signals.given import histogram, sample

TTFT = Target(Metric.TTFT, 99, 1.0)
P90 = Target(Metric.TTFT, 90, 1.0)


def record(per_look, looks=10, replicas=("a",), every_seconds=10.0, then=()):
    """So many looks at replicas that each observe these buckets in between."""
    found, at = Record(), 0.0
    totals = {name: [0.0] * 7 for name in replicas}
    for buckets in [per_look] * looks + list(then):
        found = found.after(
            {name: sample(at, name, ttft_seconds=histogram(*totals[name])) for name in replicas},
            at,
        )
        at += every_seconds
        for name in replicas:
            for index, count in enumerate(buckets):
                totals[name][index] += count
    last = {name: sample(at, name, ttft_seconds=histogram(*totals[name])) for name in replicas}
    return found.after(last, at), at


def test_enough_samples_tell_with_bounds():
    found, now = record((0, 0, 400, 100))
    [signal] = found.signals([TTFT], now)
    assert (signal.low_seconds, signal.high_seconds) == (0.5, 1.0)
    assert signal.late_share == (0.0, 0.0)
    assert signal.samples >= 1000


def test_a_target_inside_a_bucket_leaves_open_who_of_it_is_late():
    """A fifth are in the bucket from 0.5 to 1 s: nobody of them to all."""
    found, now = record((0, 0, 400, 100))
    [signal] = found.signals([Target(Metric.TTFT, 99, 0.7)], now)
    assert signal.late_share == pytest.approx((0.0, 0.2))


def test_too_few_tell_nothing_but_how_many():
    found, now = record((1,), looks=20)
    [signal, lower] = found.signals([TTFT, P90], now)
    assert (signal.low_seconds, signal.late_share, signal.samples) == (None, None, 20)
    assert lower.low_seconds is None


def test_a_quiet_service_is_judged_by_a_longer_past():
    found, now = record((10,), looks=150)
    [signal] = found.signals([TTFT], now)
    assert 1000 <= signal.samples <= 1010


def test_a_busy_one_by_its_last_minute():
    slow = (0, 0, 0, 0, 0, 500)
    found, now = record((500,), looks=50, then=[slow] * 7)
    [signal] = found.signals([TTFT], now)
    assert signal.late_share is not None
    assert signal.late_share[0] > 0.99


def test_replicas_count_together_and_those_that_come_count_from_their_second_look():
    found, now = record((100,), replicas=("a", "b"))
    [together] = found.signals([TTFT], now)
    assert together.samples >= 1000
    new = sample(now + 10, "new", ttft_seconds=histogram(10_000))
    assert found.after({"new": new}, now + 10).signals([TTFT], now) == (together,)


def test_what_is_old_is_forgotten():
    found, now = record((100,))
    later = found.after({}, now + 2 * LONGEST_SECONDS)
    assert later.spans == ()


@pytest.mark.parametrize("latency", Metric)
def test_what_an_engine_does_not_tell_is_not_known(latency):
    target = Target(latency, 99, 1.0)
    empty = Record().after({"a": sample(0)}, 0).after({"a": sample(10)}, 10)
    [signal] = empty.signals([target], 10)
    assert (signal.low_seconds, signal.samples) == (None, 0)
