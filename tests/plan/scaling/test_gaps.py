"""How many gaps answers have, and whose mean gap one prompt of another makes a long one."""

import math

import pytest

from poolwise.model.serving.load import state_at_rate
from poolwise.model.serving.queueing import Lengths
from poolwise.model.work import Metric, Target
from poolwise.plan.scaling.capability import capability
from poolwise.plan.scaling.gaps import USUAL_GAPS, added, counts, distance, gaps, read
from poolwise.plan.scaling.mix import Mix
from poolwise.plan.scaling.tails import late_share
from poolwise.plan.signals.sample import Histogram
from tests.plan.scaling.given import predictor

VLLM = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, math.inf)
DECLARED = Lengths(200.0, 0.8)


def test_answers_are_counted_by_their_bucket():
    seen = Histogram(VLLM, (3.0, 4.0, 4.0, 10.0, 10.0, 10.0, 11.0, 12.0, 20.0), 900.0)
    assert counts(seen) == (3.0, 1.0, 0.0, 6.0, 0.0, 0.0, 10.0)
    assert counts(None) == ()
    assert counts(Histogram(VLLM, (0.0,) * 9, 0.0)) == ()


def test_an_answer_is_as_long_as_its_bucket_may_be_where_bounds_are_others():
    """A shorter one than it is would ask for replicas that nobody needs."""
    seen = Histogram((8.0, 64.0, math.inf), (5.0, 9.0, 10.0), 300.0)
    assert counts(seen) == (0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 5.0)


def test_what_was_counted_before_fades():
    assert added((2.0, 4.0), (1.0, 1.0), 0.5) == (2.0, 3.0)
    assert added((2.0, 4.0), (), 0.5) == (1.0, 2.0)
    assert added((), (1.0, 1.0), 0.5) == (1.0, 1.0)


def test_a_record_of_other_buckets_is_refused():
    assert read([1, 0, 0, 0, 0, 0, 2.5]) == (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.5)
    assert read([]) == ()
    with pytest.raises(ValueError, match="answers in 3 buckets"):
        read([1.0, 2.0, 3.0])


def test_gaps_have_the_mean_that_is_known():
    seen = (10.0, 5.0, 5.0, 20.0, 20.0, 20.0, 20.0)
    found = gaps(seen, 70.0, DECLARED, 0.0)
    assert math.fsum(share for _, share in found) == pytest.approx(1.0)
    assert math.fsum(each * share for each, share in found) == pytest.approx(69.0)
    assert [each for each, _ in found[:-1]] == list(USUAL_GAPS)


def test_declared_lengths_count_as_so_many_answers_and_where_nothing_is_told_nothing_is_known():
    seen = (100.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    shares = [dict(gaps(seen, 30.0, DECLARED, prior))[0.0] for prior in (0.0, 50.0, 1e9)]
    assert shares[0] == 1.0
    assert shares[1] == pytest.approx(2.0 / 3.0, rel=0.01)
    assert shares[2] < 0.01
    assert gaps((), 30.0, DECLARED, 50.0) == ()


def test_kinds_of_answers_are_told_apart_by_their_short_ones():
    few, many = (gaps((one, 0.0, 5.0, 0, 0, 0, 95.0 - one), 70.0, DECLARED, 0.0) for one in (1, 9))
    assert distance(few, few) == 0.0
    assert distance(few, many) == pytest.approx(0.08)
    assert distance(few, ()) == 1.0
    assert distance((), ()) == 0.0


@pytest.fixture
def late():
    """Share with a late mean gap at a rate, of answers as given."""

    def of(told, requests_per_second):
        mix = Mix(Lengths(1000.0, 1.0), Lengths(100.0, 1.0), gaps=told)
        served = predictor().replica(mix)
        at = state_at_rate(served, requests_per_second)
        assert at is not None
        return late_share(served, at, Target(Metric.TPOT, 99.0, 0.1))

    return of


def test_short_answers_are_late_where_long_ones_are_not(late):
    shares = [late(((each, 1.0),), 4.0) for each in (1.0, 3.0, 10.0, 99.0)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 1e-3 > 1e-6 > shares[3]


def test_kinds_are_late_by_their_shares_and_those_without_gaps_never(late):
    short, long = (late(((each, 1.0),), 6.0) for each in (3.0, 99.0))
    mixed = late(((0.0, 0.5), (3.0, 0.2), (99.0, 0.3)), 6.0)
    assert mixed == pytest.approx(0.2 * short + 0.3 * long)


def test_a_service_of_short_answers_bears_less():
    targets = (Target(Metric.TPOT, 99.0, 0.1),)
    prompts, answers = Lengths(1000.0, 1.0), Lengths(100.0, 1.0)
    kinds = (), ((99.0, 1.0),), ((3.0, 0.2), (123.0, 0.8))
    bears = [
        capability(predictor(), Mix(prompts, answers, gaps=each), targets, 1.0).requests_per_second
        for each in kinds
    ]
    assert bears[0] == bears[1] > 1.1 * bears[2]
