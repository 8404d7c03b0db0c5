"""Each mismatch is told once it lasts, with its numbers and advice; a healthy service has none."""

import math
import random

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from poolwise.plan.live.mismatch.burden import PEAK, REQUESTS, has_grown
from poolwise.plan.live.mismatch.clue import Mismatch
from poolwise.plan.live.mismatch.watch import GONE_SECONDS
from poolwise.plan.live.overdue import Overdue
from tests.plan.live.mismatch.given import Stage, changes, kinds, known, play, room

HEALTHY = Stage(20)
slow = settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking replays hours for ever
)


def told_after(told, seconds):
    """What stands at the first look so late."""
    return next(each for each in told if each.seconds >= seconds)


@slow
@example(levels=[0.8, 0.83, 0.74], seed=338286, replicas=2)  # p99 over the edge of a bucket
@given(
    levels=st.lists(st.floats(0.3, 0.85), min_size=3, max_size=6),
    seed=st.integers(0, 2**32),
    replicas=st.integers(1, 4),
)
def test_a_healthy_busy_service_has_none_whatever_its_load_does(levels, seed, replicas):
    """Times follow the load as those of a queue do, and caches fill with it."""
    names = tuple("abcd"[:replicas])
    stages = [
        Stage(8, 5.0 * level, 0.1 / (1.0 - level), 0.02 + 0.02 * level, cache=level, replicas=names)
        for level in levels
    ]
    assert kinds(play(stages, chance=random.Random(seed))) == set()


@slow
@given(growth=st.floats(3.0, 10.0), before=st.floats(10.0, 25.0), load=st.floats(0.7, 1.05))
def test_a_tail_that_grows_while_the_load_does_not_is_told(growth, before, load):
    sick = Stage(15, 4.0 * load, 0.2 * growth)
    told = play([Stage(before), sick])
    assert kinds(told) == {Mismatch.TAIL_OUTGROWS_LOAD}
    since = told_after(told, 60 * before + 600).sentences
    assert "TTFT p99" in since[0]
    assert "look for a noisy neighbour" in since[0]
    assert changes(told) == 1


@slow
@given(growth=st.floats(1.3, 4.0), measure=st.sampled_from(["rate", "prompt_tokens"]))
def test_a_tail_that_grows_with_the_load_is_not(growth, measure):
    usual = Stage(20)
    more = Stage(20, ttft_seconds=0.2 * 2 * growth, **{measure: growth * getattr(usual, measure)})
    assert kinds(play([usual, more])) == set()


def test_a_queue_that_builds_up_is_load():
    """Overload: no more is served than before, since no more can be."""
    stages = [Stage(20), *(Stage(1, 4.0, 0.2 + 0.5 * n, waiting=30.0 * n) for n in range(15))]
    assert kinds(play(stages)) == set()


def test_a_queue_of_a_replica_that_serves_less_is_not_its_load():
    stages = [Stage(20), *(Stage(1, 3.5, 0.2 + 0.5 * n, waiting=30.0 * n) for n in range(15))]
    assert kinds(play(stages)) == {Mismatch.TAIL_OUTGROWS_LOAD}


def test_what_was_short_of_replicas_before_is_no_measure_of_now():
    assert kinds(play([Stage(20, is_short=True), Stage(15, ttft_seconds=2.0)])) == set()


def test_tails_far_inside_their_targets_are_nobodys_trouble():
    assert kinds(play([Stage(20, ttft_seconds=0.01), Stage(15, ttft_seconds=0.04)])) == set()


def test_too_few_requests_tell_of_no_tail():
    rare = Stage(20, rate=0.02)
    assert kinds(play([rare, Stage(20, 0.02, 5.0)])) == set()


def test_a_tail_is_held_against_what_was_however_long_it_lasts_and_let_go_once_it_is_back():
    told = play([Stage(20), Stage(90, ttft_seconds=1.0), Stage(30)])
    assert told_after(told, 100 * 60).mismatches == (Mismatch.TAIL_OUTGROWS_LOAD,)
    assert told[-1].mismatches == ()
    assert changes(told) == 2


@slow
@given(cache=st.floats(0.91, 1.0), waiting=st.floats(1.0, 50.0))
def test_full_caches_with_requests_waiting_are_told(cache, waiting):
    told = play([HEALTHY, Stage(15, cache=cache, waiting=waiting)])
    assert kinds(told) == {Mismatch.CACHE_PRESSURE}
    [sentence] = told[-1].sentences
    assert "over 90 % full with requests waiting" in sentence
    assert "parallelism.tensor (now 1)" in sentence
    assert changes(told) == 1


@pytest.mark.parametrize(
    "stage",
    [
        Stage(40, cache=0.97),  # full, and nobody waits
        Stage(40, cache=0.8, waiting=5.0),  # they wait for the batch
    ],
)
def test_full_caches_or_queues_alone_are_not(stage):
    assert kinds(play([stage])) == set()


def test_a_cache_that_is_full_for_a_moment_each_minute_is_not_told():
    moments = [each for _ in range(40) for each in (
        Stage(0.75), Stage(0.25, cache=0.95, waiting=3.0)
    )]  # fmt: skip
    assert kinds(play(moments)) == set()


@slow
@given(shares=st.lists(st.floats(0.25, 0.75), min_size=8, max_size=8))
def test_pressure_that_comes_and_goes_does_not_flicker(shares):
    moments = [each for share in shares for _ in range(6) for each in (
        Stage(1.0 - share), Stage(share, cache=0.95, waiting=3.0)
    )]  # fmt: skip
    assert changes(play(moments)) <= 3


@pytest.mark.parametrize(
    ("about", "there", "absent"),
    [
        (room(), "--kv-cache-dtype=fp8 ", "scaling.maxReplicas"),
        (room(is_at_most=True), "scaling.maxReplicas", "!"),
        (room("A100-SXM4-80GB"), "maxModelLength (now 8192)", "fp8"),
        (room(accelerators_per_node=1), "fp8", "parallelism.tensor"),
        (room(engine="custom"), "maxModelLength", "--kv-cache-dtype"),
        (room(flags={"--kv-cache-dtype": "fp8_e4m3"}), "maxModelLength", "fp8"),
        (room(flags={"--kv-cache-dtype": "auto"}), "--kv-cache-dtype=fp8 ", "!"),
    ],
)
def test_advice_is_what_is_possible_there(about, there, absent):
    told = play([Stage(15, cache=0.95, waiting=9.0)], known(room=about))
    [sentence] = told[-1].sentences
    assert there in sentence
    assert absent not in sentence


@slow
@given(share=st.floats(0.06, 3.0))
def test_preemptions_are_told(share):
    told = play([HEALTHY, Stage(15, preempted=share)])
    assert kinds(told) == {Mismatch.PREEMPTIONS}
    assert "lower --max-num-seqs (now 256)" in told[-1].sentences[0]


@pytest.mark.parametrize(
    ("engine", "advice"),
    [
        ("sglang", "lower --max-running-requests (now 256) in engine.args, or"),
        ("custom", "lower how many sequences the engine runs at once, or"),
    ],
)
def test_engines_that_preempt_are_lowered_by_their_own_flag(engine, advice):
    told = play([HEALTHY, Stage(15, preempted=0.5)], known(room=room(engine=engine)))
    assert advice in told[-1].sentences[0]


def test_the_number_that_a_user_gave_is_the_one_of_now():
    about = known(room=room(flags={"--max-num-seqs": "512"}))
    told = play([HEALTHY, Stage(15, preempted=0.5)], about)
    assert "--max-num-seqs (now 512)" in told[-1].sentences[0]


def test_a_few_preemptions_are_what_a_full_cache_costs():
    assert kinds(play([HEALTHY, Stage(30, preempted=0.03)])) == set()
    assert kinds(play([Stage(30, rate=0.003, preempted=0.5)])) == set()


def test_breaches_of_new_replicas_are_told():
    grown = Stage(15, replicas=("a", "b", "c", "d"), cold_ttft_seconds=8.0)
    told = play([HEALTHY, grown])
    assert kinds(told) == {Mismatch.WARM_UP_BREACHES}
    sentence = told[-1].sentences[0]
    assert "1 new replica in the first 2 min" in sentence
    assert "readiness" in sentence
    assert changes(told) == 1


@pytest.mark.parametrize(
    "stages",
    [
        [HEALTHY, Stage(15, replicas=("a", "b", "c", "d"))],  # warm from the first request on
        [  # everybody is late, whoever is new
            Stage(20, ttft_seconds=2.0),
            Stage(15, ttft_seconds=2.0, replicas=("a", "b", "c", "d"), cold_ttft_seconds=2.0),
        ],
        [Stage(3, replicas=("a",), cold_ttft_seconds=8.0)],  # nobody is new
    ],
)
def test_breaches_elsewhere_are_not_those_of_warm_ups(stages):
    assert Mismatch.WARM_UP_BREACHES not in kinds(play(stages))


@slow
@given(factor=st.floats(1.45, 3.0), is_slower=st.booleans())
def test_a_model_that_is_off_is_told_with_both_numbers(factor, is_slower):
    factor = factor if is_slower else 1.0 / factor
    told = play([Stage(15)], known(log_slowness=math.log(factor), log_band=math.log(1.4)))
    assert kinds(told) == {Mismatch.MISPREDICTED}
    assert f"{factor:.3g}"[:3] in told[-1].sentences[0]
    assert ("throttled" in told[-1].sentences[0]) is is_slower


@pytest.mark.parametrize(
    ("log_slowness", "log_band", "rate"), [(0.29, 0.3, 4.0), (2.0, 0.0, 4.0), (2.0, 0.3, 0.0)]
)
def test_inside_its_range_without_one_or_without_tokens_it_is_not(log_slowness, log_band, rate):
    about = known(log_slowness=log_slowness, log_band=log_band)
    assert kinds(play([Stage(30, rate=rate)], about)) == set()


def test_replicas_that_do_not_start_are_told_at_once():
    late = Overdue(frozenset({"d", "e"}), 4000.0, 2000.0, 1)
    [first, *_] = play([Stage(1)], known(overdue=late))
    assert first.mismatches == (Mismatch.START_OVERDUE,)
    assert first.sentences[0].startswith(
        "d and 1 more replica did not become ready within 33.3 min"
    )
    assert "1 other asked for instead" in first.sentences[0]


def test_several_stand_side_by_side_the_most_telling_first():
    told = play([HEALTHY, Stage(15, cache=0.95, waiting=9.0, preempted=0.5, ttft_seconds=2.0)])
    assert told[-1].mismatches[:2] == (Mismatch.PREEMPTIONS, Mismatch.CACHE_PRESSURE)


def test_what_is_gone_is_told_for_a_while_and_no_longer():
    told = play([Stage(15, cache=0.95, waiting=9.0), Stage(40)])
    last = max(each.seconds for each in told if each.mismatches)
    assert 900 + GONE_SECONDS <= last <= 900 + 2 * GONE_SECONDS + 60


def test_nothing_is_told_of_no_metrics_or_a_first_look():
    assert kinds(play([Stage(30, replicas=())])) == set()
    assert kinds(play([Stage(1 / 6)])) == set()


@pytest.mark.parametrize(
    ("requests", "peak", "expected"),
    [
        pytest.param(4.0, 6.0, False, id="a fuller minute by chance"),
        pytest.param(4.0, 6.5, True, id="a fuller minute than by chance"),
        pytest.param(4.5, 5.0, True, id="more of all"),
    ],
)
def test_chance_alone_moves_the_fullest_minute_more_than_the_mean(requests, peak, expected):
    before = {REQUESTS: 4.0, PEAK: 5.0}
    assert has_grown({REQUESTS: requests, PEAK: peak}, before) is expected
