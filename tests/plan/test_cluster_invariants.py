"""What no pass may break, whatever waits, runs, or is contended for."""

from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.model.training.memory import peak_bytes
from poolwise.plan.cluster import decide
from poolwise.plan.decision import Kind, Plan
from poolwise.plan.standing import Standing
from poolwise.settings import Settings
from tests.plan.cluster_given import NOW, foreign_pod, h100, held, job, l40s, observed, service
from tests.plan.machines import CALIBRATION, TABLES
from tests.plan.test_cluster_properties import MEMO

MIXED = [*h100(3), *l40s(3)]
TARGETS_SECONDS = {"ttft": 2.0, "itl": 0.08}
"""Of the tests' chat."""

jobs = st.builds(
    lambda count, most, age, tokens: ("job", count, most, age, tokens),
    st.sampled_from([1, 2, 4, 8, 16, 24]),
    st.sampled_from([0, 8, 16]),
    st.integers(0, 9),
    st.sampled_from(["100M", "1G", "20G"]),
)
chats = st.builds(
    lambda rate, age: ("service", rate, age), st.sampled_from(["1", "9", "60"]), st.integers(0, 9)
)
crowds = st.lists(st.one_of(jobs, chats), min_size=1, max_size=8)


def made(drawn):
    return [_made(f"w{index}", *each) for index, each in enumerate(drawn)]


def _made(name, kind, size, *more):
    if kind == "service":
        return service(name, size, more[0])
    most, age, tokens = more
    training = {"globalBatchSize": 256, "sequenceLength": 4096, "tokens": tokens}
    counts = {"accelerators": {"min": size, "max": size + most}} if most else {}
    return job(name, size, age, training=training, **counts)


def passes(drawn, busy):
    """Two passes, the second with what the first left."""
    pods = [foreign_pod("h100-0", busy)] if busy else []
    standing = Standing()
    for _ in range(2):
        seen = observed(MIXED, *made(drawn), pods=pods, standing=standing)
        found = decide(seen, TABLES, Settings(), CALIBRATION, NOW, MEMO)
        standing = found.standing
        yield found


@settings(max_examples=30, deadline=None)
@given(crowds, st.integers(0, 8))
def test_nodes_are_promised_once_and_gangs_are_whole(drawn, busy):
    for found in passes(drawn, busy):
        for node, count in held(found).items():
            assert count <= 8 - (busy if node == "h100-0" else 0)
        for plan in _placed(found):
            claimed = sum(plan.claim.accelerators_by_node.values())
            assert claimed == plan.chosen.count * (plan.chosen.replicas or 1)


@settings(max_examples=30, deadline=None)
@given(crowds, st.integers(0, 8))
def test_the_memory_gate_and_the_targets_hold(drawn, busy):
    for found in passes(drawn, busy):
        for plan in _placed(found):
            prediction = plan.chosen.prediction
            if plan.key.kind is Kind.TRAINING_JOB:
                assert peak_bytes(prediction.memory).high <= prediction.memory.usable_bytes
                continue
            assert prediction.memory.fits
            assert prediction.ttft_seconds.mid <= TARGETS_SECONDS["ttft"]
            assert prediction.itl_seconds.mid <= TARGETS_SECONDS["itl"]


@settings(max_examples=20, deadline=None)
@given(crowds)
def test_counts_stay_within_what_was_asked(drawn):
    for found in passes(drawn, 0):
        for plan in _placed(found):
            _, size, *more = drawn[int(plan.key.name[1:])]
            if plan.key.kind is Kind.TRAINING_JOB:
                assert size <= plan.chosen.count <= size + more[0]


@settings(max_examples=20, deadline=None)
@given(crowds, st.integers(0, 8))
def test_every_outcome_has_a_sentence_and_the_same_pass_gives_it_again(drawn, busy):
    once, again = ([*passes(drawn, busy)] for _ in range(2))
    assert once == again
    for found in once:
        assert len(found.outcomes) == len(drawn)
        assert all(outcome.reason and outcome.reason_code for outcome in found.outcomes.values())


def _placed(found):
    return [each for each in found.outcomes.values() if isinstance(each, Plan) and each.placed]
