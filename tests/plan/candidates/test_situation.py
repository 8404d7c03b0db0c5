"""Whether a gang has room is told without choosing its nodes, and never otherwise than choosing."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import example, given, settings
from hypothesis import strategies as some

from poolwise.model.prediction import Interval
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.closeness import ANYWHERE, Wish
from poolwise.plan.decision import Claim, Key, Kind
from poolwise.plan.learning.corrections import Corrections
from poolwise.plan.ledger.capacity import Gang, ledger
from poolwise.plan.ledger.capacity_pods import Usage
from poolwise.plan.memo import Memo
from poolwise.plan.pool import Node
from poolwise.settings import Settings
from tests.plan.ledger.test_capacity import GPU, pool
from tests.plan.machines import CALIBRATION

RACK, BLOCK = "rack", "block"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@some.composite
def nodes(draw: some.DrawFn) -> tuple[Node, ...]:
    def one(index: int) -> Node:
        rack = draw(some.integers(0, 2))
        return Node(
            f"n{index}",
            {RACK: f"r{rack}", BLOCK: f"b{rack // 2}"} if draw(some.integers(0, 4)) else {},
            draw(some.sampled_from((4, 8))),
            draw(some.sampled_from((8.0, 32.0))),
            64e9,
            is_to_come=draw(some.integers(0, 3)) == 0,
        )

    return tuple(one(index) for index in range(draw(some.integers(1, 6))))


gangs = some.builds(
    Gang,
    pods=some.integers(1, 6),
    accelerators=some.sampled_from((1, 4, 6)),
    cores=some.sampled_from((0.0, 8.0)),
    one_per_node=some.booleans(),
    packs=some.booleans(),
    group=some.sampled_from((1, 1, 2)),
).filter(lambda gang: gang.pods % gang.group == 0)
wishes = some.sampled_from(
    (ANYWHERE, Wish((RACK,)), Wish((RACK, BLOCK)), Wish((RACK,), True), Wish((BLOCK,), True))
)


TWICE_TWO = Gang(pods=4, accelerators=4, one_per_node=True, group=2)
TWO = tuple(Node(f"n{index}", {RACK: "r0"}, 8, 32.0, 64e9) for index in range(2))


@settings(max_examples=300)
@example(TWO, TWICE_TWO, Wish((RACK,)), 0)  # both groups on the same two nodes
@given(nodes(), gangs, wishes, some.integers(0, 8))
def test_there_is_room_where_nodes_are_found(
    known: tuple[Node, ...], gang: Gang, wish: Wish, taken: int
) -> None:
    where = pool(*known)
    book = ledger([where], {"n0": Usage({GPU: taken})})
    now = Situation(book, CALIBRATION, Memo(), Settings(), NOW, Corrections())
    assert now.has_room(gang, where, wish) == (now.nodes_for(gang, where, wish) is not None)


def test_who_holds_what_is_told_as_runs_end_now() -> None:
    """What is remembered of the same ledger is of the same ends."""
    where, gang = pool(*TWO), Gang(pods=2, accelerators=8, one_per_node=True)
    run = Key(Kind.TRAINING_JOB, "research", "run")
    book = ledger([where], {}).with_claim(Claim(run, where.name, {"n0": 8}, {}, {}))
    situation = Situation(book, CALIBRATION, Memo(), Settings(), NOW, Corrections())
    told = [
        replace(situation, ends={run: Interval(each, each, each)}).why_no_room(gang, where)
        for each in (5400.0, 36000.0, 5400.0)
    ]
    assert "ends in about 1.5 h" in told[0]
    assert "ends in about 12 h" in told[1]
    assert told[2] == told[0]
