"""What holds for every cluster and every queue."""

from dataclasses import replace

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from poolwise.plan.joint.admission import Gate
from poolwise.plan.joint.bids import LEVEL, bid
from poolwise.plan.joint.outcome import Act
from poolwise.plan.joint.outlook import CLEAR_GAIN, outlook_of
from poolwise.plan.joint.planning import plan
from poolwise.plan.joint.problem import (
    NodeState,
    Option,
    PoolState,
    Problem,
    Rules,
    Running,
    Workload,
)
from poolwise.plan.joint.promotion import MOST_TIMES, Walked, promoted
from poolwise.plan.joint.rooms import Rooms
from poolwise.plan.joint.timeline import Timeline
from poolwise.plan.joint.walk import Walk, cost_seconds
from tests.plan.joint.cluster_given import HOUR, job, option, pool, problem, span

POOLS = ("h100", "a100", "l40s")
SLOW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # some passes solve an integer programme
counts = st.integers(0, 8)


@st.composite
def pools(draw):
    """Up to three pools of up to four nodes, in racks of two."""
    found = []
    for name in POOLS[: draw(st.integers(1, 3))]:
        free = draw(st.lists(counts, min_size=1, max_size=4))
        nodes = (
            NodeState(f"{name}-{at}", each, 8, {"rack": f"{name}-r{at // 2}"})
            for at, each in enumerate(free)
        )
        found.append(PoolState(name, tuple(nodes)))
    return tuple(found)


options = st.builds(
    Option,
    pool=st.sampled_from((*POOLS, "gone")),
    pods=st.integers(1, 4),
    accelerators_per_pod=st.sampled_from((1, 2, 3, 4, 8)),
    seconds=st.one_of(st.none(), st.floats(0.1, 200.0).map(span)),
    cost_per_hour=st.floats(0.0, 50.0),
    one_per_node=st.booleans(),
    level=st.sampled_from(("", "", "rack", "no-such-level")),
    problem=st.sampled_from(("", "", "", "needs 91.2 GiB, L40S has 44.0 usable")),
)


def of_one_kind(found):
    """A workload is a run or a service on all pools."""
    is_service = found[0].seconds is None
    given = [
        replace(each, seconds=None if is_service else each.seconds or span(1.0)) for each in found
    ]
    return tuple(given)


waiting = st.builds(
    Workload,
    key=st.just(""),
    namespace=st.sampled_from(("research", "serving")),
    created=st.floats(-1000 * HOUR, 0.0),
    options=st.lists(options, max_size=5).map(lambda each: of_one_kind(each) if each else ()),
    priority=st.sampled_from((-5, 0, 0, 0, 1000)),
    deadline=st.one_of(st.none(), st.none(), st.floats(-HOUR, 300 * HOUR)),
    max_cost=st.one_of(st.none(), st.none(), st.floats(0.0, 1000.0)),
)
rules = st.builds(
    Rules,
    namespace_shares=st.sampled_from(({}, {"research": 0.5}, {"research": 0.1, "serving": 1.0})),
    may_move=st.booleans(),
    time_limit_seconds=st.just(20.0),  # ends before: the same on every machine
)


@st.composite
def problems(draw):
    """Whatever waits and runs; who runs holds what its node says is not free."""
    floor = draw(pools())
    pending = draw(st.lists(waiting, max_size=8))
    works = [replace(each, key=f"w{at}") for at, each in enumerate(pending)]
    for each in floor:
        for node in each.nodes:
            held = node.total - node.free
            if held and draw(st.booleans()):
                where = Option(each.name, 1, held, span(draw(st.floats(0.1, 100.0))))
                state = Running(
                    where, {node.name: 1}, -draw(st.floats(0.0, 100.0)) * HOUR,
                    restart_seconds=draw(st.floats(0.0, 10.0)) * HOUR,
                    is_movable=draw(st.booleans()),
                )  # fmt: skip
                others = of_one_kind([where, *draw(st.lists(options, max_size=2))])[1:]
                works.append(Workload(f"r-{node.name}", "research", 0.0, others, running=state))
    return Problem(0.0, floor, tuple(works), draw(rules))


def size(decision):
    return decision.option.accelerators


def taken_by_node(found):
    taken: dict[str, int] = {}
    for each in found.decisions:
        if each.act in (Act.START, Act.MOVE):
            for node, pods in each.nodes.items():
                size = each.option.accelerators_per_pod
                taken[node] = taken.get(node, 0) + pods * size
    return taken


def check(problem, found):
    nodes = {node.name: (pool.name, node) for pool in problem.pools for node in pool.nodes}
    for name, count in taken_by_node(found).items():
        assert count <= nodes[name][1].free, "a node is promised once"
    works = {each.key: each for each in problem.workloads}
    assert [each.key for each in found.decisions] == sorted(works)
    for each in found.decisions:
        if each.act in (Act.START, Act.MOVE):
            check_gang(each, works[each.key], nodes)
        elif each.act in (Act.WAIT, Act.REFUSE):
            assert not each.nodes
        assert each.reason
        assert len(each.reason) < 1024


def check_gang(decision, workload, nodes):
    option = decision.option
    assert option in workload.options
    assert not option.problem, "memory and targets are never overruled"
    assert sum(decision.nodes.values()) == option.pods, "gangs are whole"
    assert {nodes[name][0] for name in decision.nodes} == {option.pool}
    if option.one_per_node:
        assert set(decision.nodes.values()) == {1}
    if option.level:
        assert len({nodes[name][1].domains[option.level] for name in decision.nodes}) == 1
    if workload.max_cost is not None and option.cost is not None:
        assert option.cost <= workload.max_cost
    if workload.deadline is not None and option.seconds is not None:
        assert option.seconds.mid <= workload.deadline


GANG_OF_ONE_RACK = problem(
    [pool("h100", 8, 0, 8, 8, rack=2)],
    job("gang", option("h100", 10, pods=2, level="rack")),
)
"""Two of the three free nodes share a rack."""
DEADLINES = problem(
    [pool("h100", 8, 8)],
    job("in time", option("h100", 10), deadline=20 * HOUR),
    job("too late", option("h100", 10), deadline=5 * HOUR),
)
LEAVES_HALF_IDLE = problem(
    [pool("h100", 8, 8, 8)],
    *(job(key, option("h100", 20)) for key in "ac"),
    job("b", option("h100", 10.5, pods=2)),
)
"""Until the gang goes before one of the others."""


@SLOW
@example(GANG_OF_ONE_RACK, False)
@example(GANG_OF_ONE_RACK, True)
@example(DEADLINES, False)
@example(DEADLINES, True)
@given(problems(), st.booleans())
def test_every_plan_keeps_what_it_promises(problem, optimise):
    found = plan(problem, optimise)
    check(problem, found)
    assert found.objective >= plan(problem, optimise=False).objective
    held = {name: 0 for name in problem.rules.namespace_shares}
    total = sum(pool.total for pool in problem.pools)
    for each in problem.workloads:
        if each.running and each.namespace in held:
            held[each.namespace] += each.running.option.accelerators
    before = dict(held)
    works = {each.key: each for each in problem.workloads}
    for decision in found.decisions:
        space = works[decision.key].namespace
        if decision.act is Act.START and space in held:
            held[space] += size(decision)
    for space, share in problem.rules.namespace_shares.items():
        assert held[space] <= max(share * total, before[space]), "a share is a share"


@SLOW
@given(problems(), st.booleans())
def test_the_same_problem_has_the_same_plan_in_any_order(problem, optimise):
    turned = replace(problem, workloads=problem.workloads[::-1])
    assert plan(problem, optimise) == plan(problem, optimise)
    assert plan(turned, optimise).decisions == plan(problem, optimise).decisions


@SLOW
@given(problems(), st.booleans())
def test_everything_that_can_run_comes_to_its_end(problem, optimise):
    """No livelock: nothing new comes, so that all but services are done in the end."""
    runs = [
        each
        for each in problem.workloads
        if all(option.seconds for option in each.options) and each.running is None
    ]
    pools = [
        replace(each, nodes=tuple(replace(node, free=node.total) for node in each.nodes))
        for each in problem.pools
    ]
    state = replace(problem, pools=tuple(pools), workloads=tuple(runs))
    refused: set[str] = set()
    for _ in range(4 * len(runs) + 1):
        found = plan(state, optimise)
        refused = {each.key for each in found.decisions if each.act is Act.REFUSE}
        state = after(state, found)
        if not [each for each in state.workloads if each.key not in refused]:
            return
    raise AssertionError(f"still there: {[w.key for w in state.workloads]}, refused {refused}")


@SLOW
@example(LEAVES_HALF_IDLE)
@given(problems())
def test_who_goes_first_costs_nobody_who_keeps_his_place(problem):
    """Beside the same queue without it; and all together lose clearly less."""
    gate = Gate(problem.pools, problem.rules, problem.now)
    open_to = ((each, gate.admit(each).options) for each in problem.workloads if not each.running)
    bids = [bid(each, ways, {}, problem.now, problem.rules) for each, ways in open_to if ways]

    def walk():
        timeline = Timeline(problem.pools, problem.workloads, problem.now)
        return Walk(Rooms(problem.pools), timeline, problem.now, {}, {})

    before = Walked.by(walk(), bids)
    after = promoted(before, walk, Rooms(problem.pools))
    turns = {turn.bid.workload.key: turn for turn in after.turns}
    first = [turns[each.key] for each in after.promotions]
    assert all(turn.starting for turn in first[-1:]), "it goes first so as to start"
    for was in before.turns:
        if all(goes_before(was.bid, each.bid) for each in first):
            mine = turns[was.bid.workload.key]
            assert own_seconds(mine) <= own_seconds(was) * (1.0 + LEVEL) ** len(first)
    looks = [outlook_of(each.turns, problem.now) for each in (before, after)]
    assert looks[1].is_clearly_less(looks[0]) if first else looks[1] == looks[0]


def goes_before(bid, other):
    """Whether it is of a tier before, has waited clearly longer, or is far shorter by weight."""
    is_older = bid.weight > other.weight * (1.0 + CLEAR_GAIN)
    is_shorter = MOST_TIMES * bid.per_weight < other.per_weight
    return bid.tier < other.tier or (bid.tier == other.tier and (is_older or is_shorter))


def own_seconds(turn):
    return cost_seconds(turn.bid, turn.best.offer, turn.best.starts, 0.0)


def after(problem, found):
    """Starts what is to start, and lets time pass until the first run ends."""
    works = {each.key: each for each in problem.workloads}
    free = {node.name: node.free for pool in problem.pools for node in pool.nodes}
    for each in found.decisions:
        if each.act is Act.START:
            state = Running(each.option, dict(each.nodes), problem.now)
            works[each.key] = replace(works[each.key], running=state, deadline=None)
            for node, pods in each.nodes.items():
                free[node] -= pods * each.option.accelerators_per_pod
    running = [each for each in works.values() if each.running]
    passed = min((each.running.option.seconds.mid for each in running), default=HOUR)
    for each in running:
        option = each.running.option
        left = option.seconds.mid - passed
        if left <= 1e-6:
            del works[each.key]
            for node, pods in each.running.nodes.items():
                free[node] += pods * option.accelerators_per_pod
        else:
            where = replace(each.running, option=replace(option, seconds=span(left / HOUR)))
            works[each.key] = replace(each, running=where)
    pools = tuple(
        replace(each, nodes=tuple(replace(node, free=free[node.name]) for node in each.nodes))
        for each in problem.pools
    )
    reservations = found.reservations
    return replace(
        problem, now=problem.now + passed, pools=pools, workloads=tuple(works.values()),
        reservations=reservations,
    )  # fmt: skip
