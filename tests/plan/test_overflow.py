"""Replicas beyond the room of the pool that a service is placed on: on the next ones."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from poolwise.cli.table import shape
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.children.manifests import children
from poolwise.plan.decision import Kind, Plan
from poolwise.plan.names import OVERFLOW, PAUSED, POOL
from poolwise.plan.records.runtimes import Served
from poolwise.plan.status.report import report, workload_document
from poolwise.settings import Settings
from tests.plan.children.set_cases import APIS
from tests.plan.cluster_given import (
    changed,
    decided,
    foreign_pod,
    gpu_nodes,
    h100,
    job,
    key,
    l40s,
    pods_of,
    service,
)

CHAT = key("chat", Kind.INFERENCE_SERVICE)


def chat(**spec):
    return service("chat", scaling={"maxReplicas": 12}, **spec)


def nodes():
    return [*h100(1, per_node=2), *l40s(1, per_node=4)]


def plan_of(answer):
    plan = answer.outcomes[CHAT]
    assert isinstance(plan, Plan)
    return plan


def made(answer, workload=None, apis=MappingProxyType({})):
    plan = plan_of(answer)
    pools = {pool.name: pool for pool in answer.pools}
    first = pools[plan.chosen.pool]
    return children(workload or chat(), plan, first, Settings(), Served(apis), pools)


def deployments(answer, workload=None):
    """Those on further pools first."""
    return [each for each in made(answer, workload) if each["kind"] == "Deployment"]


def by_pool(answer):
    plan = plan_of(answer)
    return {each.claim.pool: each.chosen.replicas for each in (plan, *plan.parts)}


@pytest.fixture(scope="module")
def placed():
    return decided(nodes(), chat())


@pytest.fixture(scope="module")
def pools(placed):
    """The one that it is placed on, and the other."""
    first = plan_of(placed).chosen.pool
    return first, next(pool.name for pool in placed.pools if pool.name != first)


def scaled(runs, here, elsewhere, workload=None, on=None, **more):
    return decided(
        on or nodes(), workload or chat(), children=runs, scaling={CHAT: here},
        overflow={CHAT: elsewhere}, **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def spread(placed, pools):
    """As many as there is room for where it is placed, and two on the other pool."""
    first, second = pools
    most = next(len(p.nodes) * p.accelerators_per_node for p in placed.pools if p.name == first)
    return most, scaled(deployments(placed), most, {second: 2})


def test_who_asks_is_told_where_there_is_room(placed, pools):
    first, second = pools
    answer = scaled(deployments(placed), 1, {})
    found = answer.rooms[CHAT]
    assert found.here >= 1
    assert [(each.candidate.pool, each.room > 0) for each in found.elsewhere] == [(second, True)]
    assert (
        not scaled(deployments(placed), 1, {}, chat(placement={"pools": [first]}))
        .rooms[CHAT]
        .elsewhere
    )
    assert CHAT not in decided(nodes(), chat(), children=deployments(placed)).rooms


def test_a_pool_where_a_target_cannot_be_met_is_never_offered(placed):
    target = {"metric": "ITL", "percentile": 99, "target": "15ms"}
    tight = chat(slo=[target], accelerators={"perReplica": 1})
    runs = deployments(decided(nodes(), tight), tight)
    answer = scaled(runs, 1, {}, tight)
    every = plan_of(decided(nodes(), tight)).candidates
    missed = {each.pool for each in every if each.reason_code == Verdict.TARGET_UNREACHABLE}
    assert missed and not missed & {each.candidate.pool for each in answer.rooms[CHAT].elsewhere}


def test_a_number_that_finds_no_room_is_told_without_being_asked(placed, pools):
    answer = decided(nodes(), chat(), children=deployments(placed), scaling={CHAT: 12})
    assert plan_of(answer).record.replicas < 12
    assert answer.rooms[CHAT].here == 0 and answer.rooms[CHAT].elsewhere


def test_each_pool_has_a_deployment_and_the_first_is_as_it_was(placed, pools, spread):
    most, answer = spread
    assert by_pool(answer) == {pools[0]: most, pools[1]: 2}
    other, first = deployments(answer)
    [before] = deployments(placed)
    assert first["spec"]["template"] == before["spec"]["template"]
    assert first["spec"]["selector"] == before["spec"]["selector"]
    assert first["metadata"]["name"] == "chat"
    assert other["metadata"]["name"].startswith("chat-")
    assert other["metadata"]["labels"][OVERFLOW] == "true"
    assert other["spec"]["replicas"] == 2
    assert other["spec"]["selector"]["matchLabels"][POOL] == pools[1]
    kinds = {each["kind"]: each for each in made(answer)}
    labels = other["spec"]["template"]["metadata"]["labels"]
    assert kinds["Service"]["spec"]["selector"].items() <= labels.items()
    selector = kinds["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]
    assert selector.items() <= labels.items()
    assert kinds["PodDisruptionBudget"]["spec"]["minAvailable"] == most + 1
    assert other["metadata"]["ownerReferences"] == first["metadata"]["ownerReferences"]


def test_it_is_kept_once_it_is_written_and_its_room_is_held(pools, spread):
    most, answer = spread
    runs = deployments(answer)
    again = decided(nodes(), chat(), children=runs)
    assert by_pool(again) == {pools[0]: most, pools[1]: 2}
    assert deployments(again) == runs
    assert again.free_accelerators[pools[1]] == answer.free_accelerators[pools[1]] - 2
    pods = pods_of(runs[0], ["l40s-0" if pools[1].startswith("l40s") else "h100-0"] * 2)
    bound = decided(nodes(), chat(), children=runs, pods=pods)
    assert bound.free_accelerators == again.free_accelerators


def test_what_is_no_longer_needed_goes_and_is_held_until_its_pods_end(pools, spread):
    most, answer = spread
    runs = deployments(answer)
    fewer = scaled(runs, most, {pools[1]: 1})
    assert by_pool(fewer) == {pools[0]: most, pools[1]: 1}
    gone = scaled(deployments(fewer), most, {pools[1]: 0})
    assert by_pool(gone) == {pools[0]: most}
    assert len(deployments(gone)) == 1


def test_only_free_room_is_taken(placed, pools):
    node = "l40s-0" if pools[1].startswith("l40s") else "h100-0"
    taken = foreign_pod(node, 3 if node == "l40s-0" else 1)
    answer = scaled(deployments(placed), 1, {pools[1]: 4}, pods=[taken])
    assert by_pool(answer)[pools[1]] == 1


def test_an_edit_that_changes_no_shape_restarts_nothing_and_keeps_all_pools(pools, spread):
    most, answer = spread
    edited = changed(chat(), scaling={"maxReplicas": 11})
    again = decided(nodes(), edited, children=deployments(answer), scaling={CHAT: most})
    assert by_pool(again) == {pools[0]: most, pools[1]: 2}
    templates = [each["spec"]["template"] for each in deployments(again, edited)]
    assert templates == [each["spec"]["template"] for each in deployments(answer)]


def test_an_edit_that_one_pool_cannot_serve_gives_that_pool_up(pools, spread):
    most, answer = spread
    edited = changed(chat(), placement={"excludePools": [pools[1]]})
    again = decided(nodes(), edited, children=deployments(answer), scaling={CHAT: most})
    assert by_pool(again) == {pools[0]: most}


def test_a_part_whose_record_was_damaged_is_no_part(spread):
    other, first = deployments(spread[1])
    broken = {**other, "metadata": {**other["metadata"], "annotations": {}}}
    assert len(by_pool(decided(nodes(), chat(), children=[broken, first]))) == 1


def given(replicas, generation=1):
    """As an HPA sets the number."""
    document = service("chat", scaling={"mode": "External"}, replicas=replicas)
    document["metadata"]["generation"] = generation
    return document


def test_a_number_that_others_set_is_spread_the_same_way(pools):
    one = given(1)
    first = decided(nodes(), one)
    place = plan_of(first).claim.pool
    other = next(pool for pool in pools if pool != place)
    most = first.free_accelerators.get(place, 0)
    assert most in (2, 4)
    more = given(most + 1, 2)
    answer = decided(nodes(), more, children=deployments(first, one))
    assert by_pool(answer) == {place: most, other: 1}
    assert f"1 replica on {other}" in plan_of(answer).reason
    before, after = deployments(first, one)[0], deployments(answer, more)[-1]
    assert before["spec"]["template"] == after["spec"]["template"]
    all_of_it = given(6, 3)
    answer = decided(nodes(), all_of_it, children=deployments(answer, more))
    assert by_pool(answer) == {place: most, other: 6 - most}
    kept = decided(nodes(), all_of_it, children=deployments(answer, all_of_it))
    assert by_pool(kept) == by_pool(answer) and plan_of(kept).kept
    fewer = given(most, 4)
    answer = decided(nodes(), fewer, children=deployments(answer, all_of_it))
    assert by_pool(answer) == {place: most}


def external(replicas, generation=1, **spec):
    """Whatever its load is."""
    asked = {"scaling": {"mode": "External", "maxReplicas": 20}, **spec}
    document = service("chat", replicas=replicas, **asked)
    document["metadata"]["generation"] = generation
    return document


def test_of_a_number_beyond_all_room_as_many_run_as_fit(pools):
    """A service that is refused tells no number, and whoever wrote it has none to lower it by."""
    new = external(9)
    assert sum(by_pool(decided(nodes(), new)).values()) == 6
    one = external(2)
    runs = deployments(decided(nodes(), one), one)
    more = external(9, 2)
    answer = decided(nodes(), more, children=runs)
    assert sum(by_pool(answer).values()) == 6 and set(by_pool(answer)) == set(pools)
    kept = decided(nodes(), more, children=deployments(answer, more))
    assert by_pool(kept) == by_pool(answer) and plan_of(kept).kept


def test_the_others_start_once_there_is_room(pools):
    more = external(9)
    runs = deployments(decided(nodes(), more), more)
    larger = decided([*nodes(), *h100(2, per_node=2)[1:]], more, children=runs)
    assert sum(by_pool(larger).values()) == 8 and plan_of(larger).kept
    largest = decided([*nodes(), *h100(5, per_node=2)[1:]], more, children=runs)
    assert sum(by_pool(largest).values()) == 9
    before = by_pool(decided(nodes(), more, children=runs))
    assert all(by_pool(largest)[pool] >= count for pool, count in before.items())


def test_who_is_paused_gets_no_more():
    more = external(9)
    runs = deployments(decided(nodes(), more), more)
    more["metadata"]["annotations"] = {PAUSED: "true"}
    larger = decided([*nodes(), *h100(5, per_node=2)[1:]], more, children=runs)
    assert sum(by_pool(larger).values()) == 6


def test_fewer_larger_replicas_than_run_now_do_not_take_their_place():
    six = external(6)
    on = h100(1)
    answer = decided(on, six)
    runs = deployments(answer, six)
    larger = external(6, 2, accelerators={"perReplica": 2})
    refused = plan_of(decided(on, larger, children=runs))
    assert not refused.placed and refused.running.chosen.replicas == 6
    four = external(4, 3, accelerators={"perReplica": 2})
    assert by_pool(decided(on, four, children=runs)).popitem()[1] == 4


def test_replicas_that_span_nodes_follow_as_far_as_they_fit():
    preset = {"preset": "llama-3.1-405b", "maxModelLength": 8192, "quantization": "None"}
    slow = [{"metric": "TTFT", "percentile": 99, "target": "10s"}]
    one, many = (external(n, n, model=preset, slo=slow) for n in (1, 9))
    runs = made(decided(h100(2), one, apis=APIS), one, APIS)
    answer = decided(h100(5), many, children=runs, apis=APIS)
    assert by_pool(answer).popitem()[1] == 2
    runs = made(answer, many, APIS)
    assert by_pool(decided(h100(7), many, children=runs, apis=APIS)).popitem()[1] == 3


def test_no_number_is_followed_beyond_the_maximum():
    asked = service("chat", scaling={"mode": "External", "maxReplicas": 3}, replicas=5)
    assert by_pool(decided(nodes(), asked)).popitem()[1] == 3


def test_a_new_service_that_is_too_large_for_each_pool_alone_takes_several(pools):
    wanted = service("chat", scaling={"minReplicas": 5, "maxReplicas": 12})
    answer = decided(nodes(), wanted)
    assert sum(by_pool(answer).values()) == 5
    assert set(by_pool(answer)) == set(pools)
    kept = decided(nodes(), wanted, children=deployments(answer, wanted))
    assert by_pool(kept) == by_pool(answer)
    assert not plan_of(
        decided(nodes(), service("chat", scaling={"minReplicas": 7, "maxReplicas": 12}))
    ).placed


@pytest.mark.parametrize("count", [1, 2, 4])
def test_who_starts_in_the_same_pass_takes_no_room_on_its_further_pools(count):
    """An older run took nodes first: a service that needs five replicas started with four."""
    wanted = service("chat", scaling={"minReplicas": 5, "maxReplicas": 12})
    training = {"globalBatchSize": 64, "sequenceLength": 512, "tokens": "1G", "method": "Qlora"}
    older = job("older", count, age_seconds=3600, training=training)
    answer = decided(nodes(), wanted, older)
    assert not plan_of(answer).placed or sum(by_pool(answer).values()) == 5
    assert any(each.placed for each in answer.outcomes.values())


def alike():
    """Two pools of two whose replicas bear much the same: neither bears 80 requests a second."""
    return [*h100(1, per_node=2), *gpu_nodes("h200", 1, "NVIDIA-H200", 2)]


@pytest.mark.parametrize("mode", ["Run", "Plan"])
def test_a_plan_on_files_has_all_pools_and_the_cost_of_all(mode):
    answer = decided(alike(), chat(requests_per_second="80", mode=mode))
    (told,) = report(answer)["workloads"]
    assert told["placed"] is (mode == "Run")
    (further,) = told["further"]
    assert {told["pool"], further["pool"]} == {pool.name for pool in answer.pools}
    assert further["replicas"] > 0
    prices = {each.name: each.price.per_node_hour for each in answer.pools}
    sizes = {each.name: each.accelerators_per_node for each in answer.pools}
    costs = [
        each["replicas"] * each["count"] * prices[each["pool"]] / sizes[each["pool"]]
        for each in (told, further)
    ]
    assert told["costPerHour"] == pytest.approx(sum(costs), rel=1e-3)
    assert further["costPerHour"] == pytest.approx(costs[1], rel=1e-3)
    plan = plan_of(answer)
    joules = [each.chosen.energy_joules for each in (plan, *plan.parts, *plan.parts_asked)]
    assert told["energyJoules"] == pytest.approx(sum(joules)) and all(joules)
    assert f"on {further['pool']}, beyond its room" in told["reason"]
    assert f" in {further['pool']}" in shape(told)


@pytest.mark.parametrize("is_paid", [True, False])
def test_a_peak_on_several_pools_costs_no_more_than_is_allowed_together(is_paid):
    """On the cheaper pool alone, which has no room for all of it, it would cost less."""
    free = plan_of(decided(alike(), chat(requests_per_second="80")))
    cost = sum(each.chosen.cost_per_hour for each in (free, *free.parts))
    limit = {"maxCostPerHour": f"{cost * (1.001 if is_paid else 0.999):.6f}"}
    plan = plan_of(decided(alike(), chat(requests_per_second="80", objective=limit)))
    assert plan.placed is is_paid
    assert len(plan.parts) == is_paid


@pytest.mark.parametrize("limit", [36, 40, 43, 46, 50, 56])
def test_what_one_pool_takes_of_an_hours_money_another_one_has_no_more(limit):
    every = [*alike(), *gpu_nodes("b200", 1, "NVIDIA-B200", 2)]
    allowed = {"maxCostPerHour": str(limit)}
    plans = [
        plan_of(decided(every, chat(requests_per_second=rate, objective=allowed)))
        for rate in ("120", "140")
    ]
    placed = [[plan, *plan.parts] for plan in plans if plan.placed]
    assert len(placed) == sum(limit >= least for least in (43, 46))
    assert all(sum(each.chosen.cost_per_hour for each in spread) <= limit for spread in placed)


def test_what_all_pools_take_is_not_told_where_one_of_them_does_not_tell():
    plan = plan_of(decided(alike(), chat(requests_per_second="80")))
    (part,) = plan.parts
    unknown = replace(part.chosen, cost_per_hour=None, energy_joules=None)
    told = workload_document(replace(plan, parts=(replace(part, chosen=unknown),)), None)
    assert told["further"] and not {"costPerHour", "energyJoules"} & set(told)


def test_who_only_asks_holds_nothing_on_further_pools():
    plan = plan_of(decided(alike(), chat(requests_per_second="80", mode="Plan")))
    assert plan.parts_asked
    assert not plan.parts
    assert plan.claim is None


def test_a_service_in_one_pool_has_no_further_ones(placed):
    (told,) = report(placed)["workloads"]
    assert "further" not in told


@pytest.mark.parametrize("rate", [60, 80, 100])
def test_each_replica_of_a_new_service_bears_its_even_share(rate):
    """A Service spreads evenly, so that the weakest bounds what all may get."""
    plan = plan_of(decided(alike(), chat(requests_per_second=str(rate))))
    spread = [plan.chosen, *(part.chosen for part in plan.parts)]
    assert len(spread) == 2
    share = rate / sum(each.replicas for each in spread)
    assert min(each.prediction.capacity_requests_per_second for each in spread) >= share


def test_a_pool_too_weak_for_an_even_share_takes_no_part():
    """Five H100 would bear 120 requests a second, and two do not with four L40S beside them."""
    refused = plan_of(decided(nodes(), chat(requests_per_second="120")))
    assert not refused.placed
    assert "has room for at most 2 replicas like this, needs 5" in refused.reason
    mixed = [*alike(), *l40s(1, per_node=1)]
    told = plan_of(decided(mixed, chat(requests_per_second="80")))
    (weak,) = (each for each in told.candidates if each.accelerator == "L40S")
    assert not weak.feasible
    assert "requests/s, and each gets" in weak.reason
    assert weak.pool not in by_pool(decided(mixed, chat(requests_per_second="80")))


def pictures(requests_per_second):
    return service(
        "chat",
        model={"preset": "vit-l-16"},
        traffic={"requestsPerSecond": requests_per_second},
        slo=[{"metric": "E2E", "percentile": 99, "target": "100ms"}],
        engine={"type": "triton"},
        scaling={"maxReplicas": 12},
    )


def test_a_peak_beyond_one_pool_goes_on_where_a_replica_costs_least():
    """Each gets as many requests, so that an H100 that could bear eight times as many is no use:
    four A10 are half the price of four of it."""
    small = [*gpu_nodes("l4", 1, "NVIDIA-L4", 4), *gpu_nodes("a10", 2, "NVIDIA-A10", 2)]
    every = [*small, *h100(1)]
    before = decided(every, pictures("200"))
    names = {pool.accelerator: pool.name for pool in before.pools}
    assert by_pool(before) == {names["L4"]: 1}
    runs = deployments(before, pictures("200"))
    after = decided(every, changed(pictures("2800")), children=runs)
    assert by_pool(after) == {names["L4"]: 4, names["A10"]: 3}
