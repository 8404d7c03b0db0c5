"""Starts that fail: given up in time, remembered, tried elsewhere, never held against what ran."""

import pytest

from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Kind
from poolwise.plan.provisioning.attempts import given_up, remembered, started_at
from poolwise.plan.standing import Standing
from poolwise.plan.status.pods import Live
from poolwise.plan.status.workload import status
from tests.plan.cluster_given import NOW, changed, job, key, l40s, running, service
from tests.plan.provisioning.given import (
    INDEX,
    after,
    created,
    decided_at,
    growing,
    node,
    pods,
    stamp,
    with_status,
)

CHAT = key("chat", Kind.INFERENCE_SERVICE)
TWO = [growing("a-spot", price={"perNodeHour": "20"}), growing("b-reserved")]


def condition(pool, kind="CanGrow"):
    return next(each for each in pool.conditions if each.type == kind)


def told(workload, decisions, children, seen, moment):
    """The workload with the status that a pass writes."""
    kind = Kind(workload["kind"])
    outcome = decisions.outcomes[key(workload["metadata"]["name"], kind)]
    pools = {pool.name: pool for pool in decisions.pools}
    document = status(workload, outcome, pools, Live(children, seen), moment)
    return {**workload, "status": document}


def failed_start(workload, pools, minutes=31, left=None, **more):
    """A workload whose first placement was given up, and what was told of it; pools that are left
    until then."""
    children = created([], workload, pools=pools)
    runner = next(each for each in children if each["kind"] in ("Job", "Deployment"))
    seen = pods(runner, *[None] * 2, **more)
    given = {"pools": pools if left is None else left, "children": children, "pods": seen}
    moment = after(minutes)
    decisions = decided_at(moment, [], workload, **given)
    return told(workload, decisions, children, seen, moment), decisions


def test_what_cannot_be_read_any_more_stays_where_it_does_not_start():
    """Its spec was changed while it waited: there is no other place to look for."""
    chat = service()
    children = created([], chat, pools=TWO)
    broken = changed(chat, model={"preset": "nobody-knows"})
    runner = next(each for each in children if each["kind"] == "Deployment")
    given = {"pools": TWO, "children": children, "pods": pods(runner, None)}
    decisions = decided_at(after(60), [], broken, job(), **given)
    assert decisions.outcomes[CHAT].reason_code == Reason.INVALID_SPEC
    assert key("job") in decisions.outcomes


def test_a_start_is_waited_for_until_its_timeout():
    wide = job(count=16)
    children = created([], wide, pools=TWO)
    waiting = {"pools": TWO, "children": children, "pods": pods(children[0], None, None)}
    early = decided_at(after(29), [], wide, **waiting)
    assert early.outcomes[key("job")].kept
    assert early.look_again_at == after(30)
    late = decided_at(after(30), [], wide, **waiting)
    assert not late.outcomes[key("job")].placed


@pytest.mark.parametrize(("asked_at", "next_at"), [(28.5, 29.5), (29.25, 30.0)])
def test_of_all_that_time_changes_the_first_is_looked_at(asked_at, next_at):
    """The start that is overdue at 30 minutes, and the optimiser for who waits beside it."""
    wide, busy = job(count=16), l40s(1)
    holds, waits = (
        job(name, accelerators={"count": 8, "products": ["L40S"]}) for name in ("holds", "waits")
    )
    children = created([], wide, pools=TWO)
    found = decided_at(
        after(29.1), busy, wide, holds, waits,
        pools=TWO, children=[*children, *running(busy, holds)],
        pods=pods(children[0], None, None),
        standing=Standing(optimised=after(asked_at).timestamp()),
    )  # fmt: skip
    assert not found.outcomes[key("waits")].placed
    assert found.look_again_at == after(next_at)


def test_the_timeout_is_the_specs():
    wide = job(count=16, startTimeout="5m")
    children = created([], wide, pools=TWO)
    waiting = {"pools": TWO, "children": children, "pods": pods(children[0], None, None)}
    assert decided_at(after(4), [], wide, **waiting).outcomes[key("job")].placed
    assert not decided_at(after(6), [], wide, **waiting).outcomes[key("job")].placed


def test_the_sentence_counts_and_names_the_next_pool():
    wide = job(count=32)
    children = created([], wide, pools=TWO)
    nodes = [node(f"n{index}", group="a-spot") for index in range(3)]
    seen = pods(children[0], "n0", "n1", "n2", None)
    plan = decided_at(after(31), nodes, wide, pools=TWO, children=children, pods=seen).outcomes[
        key("job")
    ]
    assert plan.reason == "3 of 4 pods started within 30 min on a-spot; next: b-reserved"
    assert (plan.placed, plan.claim, plan.reason_code) == (False, None, Reason.START_TIMEOUT)


def test_the_next_candidate_is_tried_once_the_pods_are_gone():
    remembers, _ = failed_start(job(count=16), TWO)
    plan = decided_at(after(32), [], remembers, pools=TWO).outcomes[key("job")]
    assert (plan.placed, plan.chosen.pool) == (True, "b-reserved")
    spot = next(each for each in plan.candidates if each.pool == "a-spot")
    assert spot.reason_code == Verdict.START_TIMEOUT
    assert spot.reason == (
        "started 0 of 2 pods within 30 min; not tried again before 2026-11-21 00:41 UTC"
    )


def test_till_then_nobody_else_has_what_they_were_to_run_on():
    """Pods that wait for a scheduler may still get it."""
    pools, nodes = [growing(max_nodes=1)], [node("n0", born=after(-60))]
    first, second = job("first", 8), job("second", 8)
    children = created(nodes, first, pools=pools)
    given = {"pools": pools, "children": children, "pods": pods(children[0], None)}
    both = decided_at(after(31), nodes, first, second, **given).outcomes
    assert both[key("first")].given_up is not None
    assert not both[key("second")].placed
    gone = decided_at(after(31), nodes, second, pools=pools).outcomes
    assert gone[key("second")].claim.accelerators_by_node == {"n0": 8}


def test_without_another_it_waits_and_tries_again_later_each_time():
    wide, only = job(count=16), [growing()]
    remembers, _ = failed_start(wide, only)
    waits = decided_at(after(32), [], remembers, pools=only)
    plan = waits.outcomes[key("job")]
    assert (plan.placed, plan.reason_code) == (False, Reason.START_TIMEOUT)
    assert plan.reason.startswith("waits, since no other pool can run it: zero started 0 of 2")
    assert waits.look_again_at == after(41)
    assert decided_at(after(41), [], remembers, pools=only).outcomes[key("job")].placed
    pauses = []
    for _ in range(3):
        (entry,) = remembers["status"]["start"]["givenUp"]
        pauses.append(entry["attempts"])
        children = created([], job(count=16), pools=only, at=after(60))
        seen = pods(children[0], None, None, at=after(60))
        given = {"pools": only, "children": children, "pods": seen}
        children[0]["metadata"]["creationTimestamp"] = stamp(after(60 + len(pauses)))
        again = decided_at(after(120), [], remembers, **given)
        remembers = told(remembers, again, children, seen, after(120))
    assert pauses == [1, 2, 3]
    late = decided_at(after(121), [], remembers, pools=only)
    assert late.look_again_at == after(120 + 80)


def test_what_is_told_twice_counts_once():
    """Passes go on until the pods are gone."""
    remembers, first = failed_start(job(count=16), TWO)
    children = created([], job(count=16), pools=TWO)
    seen = pods(children[0], None, None)
    given = {"pools": TWO, "children": children, "pods": seen}
    second = decided_at(after(33), [], remembers, **given)
    assert second.outcomes[key("job")].given_up == first.outcomes[key("job")].given_up
    assert (
        told(remembers, second, children, seen, after(33))["status"]["start"]
        == (remembers["status"]["start"])
    )


def test_a_gang_that_ran_is_never_given_up():
    wide = job(count=16)
    children = created([], wide, pools=TWO)
    running = pods(children[0], "a", "b")
    children[0]["status"] = {"ready": 2, "active": 2}
    nodes = [node(name, group="a-spot") for name in "ab"]
    given = {"pools": TWO, "children": children}
    at_first = decided_at(after(10), nodes, wide, **given, pods=running)
    remembers = told(wide, at_first, children, running, after(10))
    assert remembers["status"]["start"] == {"startedTime": stamp(after(10))}
    lost = pods(children[0], None, None, at=after(100))
    later = decided_at(after(500), [], remembers, **given, pods=lost)
    assert later.outcomes[key("job")].placed
    again = told(remembers, later, children, lost, after(500))
    assert again["status"]["start"] == remembers["status"]["start"]


def test_what_ran_before_it_was_suspended_does_not_excuse_a_new_start():
    wide = with_status(job(count=16), start={"startedTime": stamp(NOW)})
    children = created([], wide, pools=TWO, at=after(60))
    seen = pods(children[0], None, None, at=after(60))
    given = {"pools": TWO, "children": children, "pods": seen}
    assert decided_at(after(80), [], wide, **given).outcomes[key("job")].placed
    assert not decided_at(after(91), [], wide, **given).outcomes[key("job")].placed


def test_a_child_that_waits_in_a_queue_is_not_late():
    wide = job(count=16)
    children = created([], wide, pools=TWO)
    children[0]["spec"]["suspend"] = True
    given = {"pools": TWO, "children": children}
    assert decided_at(after(500), [], wide, **given).outcomes[key("job")].placed
    children[0]["spec"]["suspend"] = False
    children[0]["status"] = {"startTime": stamp(after(490))}
    assert decided_at(after(500), [], wide, **given).outcomes[key("job")].placed
    assert not decided_at(after(521), [], wide, **given).outcomes[key("job")].placed


def test_what_was_just_let_in_is_not_late_before_its_controller_has_seen_it():
    """It waited in its queue for longer than a start may take."""
    wide, suspended = job(count=16), {"type": "Suspended", "status": "True"}
    children = created([], wide, pools=TWO)
    children[0]["status"] = {"conditions": [suspended]}
    given = {"pools": TWO, "children": children}
    assert decided_at(after(500), [], wide, **given).outcomes[key("job")].placed
    resumed = {**suspended, "status": "False", "lastTransitionTime": stamp(after(500))}
    children[0]["status"] = {"conditions": [resumed]}
    assert decided_at(after(529), [], wide, **given).outcomes[key("job")].placed
    assert not decided_at(after(531), [], wide, **given).outcomes[key("job")].placed


def test_only_what_ends_its_suspension_starts_the_clock_again():
    """Other conditions of a Job change while it starts."""
    wide = job(count=16)
    children = created([], wide, pools=TWO)
    other = {"type": "FailureTarget", "status": "False", "lastTransitionTime": stamp(after(30))}
    children[0]["status"] = {"conditions": [other]}
    given = {"pools": TWO, "children": children}
    assert not decided_at(after(31), [], wide, **given).outcomes[key("job")].placed


def test_pods_of_an_earlier_placement_have_started_nothing():
    wide = job(count=16)
    children = created([], wide, pools=TWO, at=after(60))
    nodes = [node(name, group="a-spot") for name in "ab"]
    given = {"pools": TWO, "children": children}
    for made, is_kept in ((59, False), (60, True)):
        seen = pods(children[0], "a", "b", at=after(made))
        found = decided_at(after(91), nodes, wide, **given, pods=seen).outcomes[key("job")]
        assert found.placed is is_kept


def test_pods_without_a_rank_are_told_apart_by_their_names():
    wide = job(count=16)
    children = created([], wide, pools=TWO)
    seen = pods(children[0], "a", "b")
    for pod in seen:
        del pod["metadata"]["labels"][INDEX]
    nodes = [node(name, group="a-spot") for name in "ab"]
    given = {"pools": TWO, "children": children, "pods": seen}
    assert decided_at(after(31), nodes, wide, **given).outcomes[key("job")].placed


def test_a_spec_that_became_unreadable_keeps_what_starts_for_the_usual_time():
    wide = job(count=16, startTimeout="50m")
    children = created([], wide, pools=TWO)
    given = {"pools": TWO, "children": children, "pods": pods(children[0], None, None)}
    broken = changed(wide, model={"preset": "nobody-knows-it"})
    found = decided_at(after(29), [], broken, **given)
    assert "nobody-knows-it" in found.outcomes[key("job")].reason
    assert found.look_again_at == after(30)


@pytest.mark.parametrize("why", ["ImagePullBackOff", "CreateContainerConfigError"])
def test_another_place_does_not_cure_a_pods_own_trouble(why):
    wide = job(count=16)
    children = created([], wide, pools=TWO)
    seen = pods(children[0], "a", "b")
    for pod in seen:
        waiting = {"state": {"waiting": {"reason": why}}}
        pod["status"] = {"phase": "Pending", "containerStatuses": [waiting]}
    given = {"pools": TWO, "children": children, "pods": seen}
    nodes = [node(name, group="a-spot") for name in "ab"]
    assert decided_at(after(31), nodes, wide, **given).outcomes[key("job")].placed


def test_another_place_does_not_bring_a_claim_that_nobody_made():
    """The scheduler binds no pod that names it; whoever makes it finds the run in its best pool."""
    wide = job(count=16)
    children = created([], wide, pools=TWO)
    seen = pods(children[0], None, None)
    told = '0/2 nodes are available: persistentvolumeclaim "ckpt" not found. not found'
    for pod in seen:
        unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        pod["status"]["conditions"] = [{**unscheduled, "message": told}]
    given = {"pools": TWO, "children": children, "pods": seen}
    nodes = [node(name, group="a-spot") for name in "ab"]
    assert decided_at(after(31), nodes, wide, **given).outcomes[key("job")].placed


@pytest.mark.parametrize(
    ("reason", "stays"),
    [
        ("PodSecurityRefused", True),
        ("MissingReference", True),
        ("QuotaExceeded", False),
        ("CreateFailed", False),
    ],
)
def test_another_place_does_not_admit_pods_that_are_refused_anywhere(reason, stays):
    """A quota may count the devices of one maker, and a webhook judge the node selector."""
    problems = [{"reason": reason, "message": "refused", "pods": 0}]
    wide = with_status(job(count=16), observed={"problems": problems})
    children = created([], wide, pools=TWO)
    given = {"pools": TWO, "children": children}
    assert decided_at(after(31), [], wide, **given).outcomes[key("job")].placed is stays
    made = pods(children[0], None, None)
    assert not decided_at(after(31), [], wide, **given, pods=made).outcomes[key("job")].placed


def test_ranks_that_crash_for_want_of_others_have_not_started_all():
    """Three of four ran until their rendezvous timed out; the fourth never got a node."""
    wide = job(count=32)
    children = created([], wide, pools=TWO)
    seen = pods(children[0], "n0", "n1", "n2", None)
    for pod in seen[:3]:
        ended = {"state": {"terminated": {"exitCode": 1}}}
        pod["status"] = {"phase": "Failed", "containerStatuses": [ended]}
    given = {"pools": TWO, "children": children, "pods": seen}
    plan = decided_at(after(31), [], wide, **given).outcomes[key("job")]
    assert plan.reason.startswith("3 of 4 pods started within 30 min")


def test_paused_objects_are_left_alone():
    wide = job(count=16)
    wide["metadata"]["annotations"] = {"poolwise.dev/paused": "true"}
    children = created([], job(count=16), pools=TWO)
    given = {"pools": TWO, "children": children, "pods": pods(children[0], None, None)}
    assert decided_at(after(500), [], wide, **given).outcomes[key("job")].placed


def test_a_service_without_any_node_goes_elsewhere_and_one_with_a_replica_stays():
    chat = service(scaling={"minReplicas": 2})
    children = created([], chat, pools=TWO)
    seen = pods(children[0], None, None)
    given = {"pools": TWO, "children": children}
    late = decided_at(after(31), [], chat, **given, pods=seen)
    assert late.outcomes[CHAT].reason_code == Reason.START_TIMEOUT
    assert late.outcomes[CHAT].reason.endswith("next: b-reserved")
    half = pods(children[0], "n", None)
    nodes = [node("n", group="a-spot")]
    assert decided_at(after(31), nodes, chat, **given, pods=half).outcomes[CHAT].placed


def test_others_do_not_wait_for_nodes_that_did_not_come():
    remembers, _ = failed_start(job("first", 16), TWO)
    found = decided_at(after(32), [], remembers, job("second", 16), pools=TWO)
    assert found.outcomes[key("second")].chosen.pool == "b-reserved"
    spot = next(pool for pool in found.pools if pool.name == "a-spot")
    grows = condition(spot)
    assert (grows.status, grows.reason) == (False, "NodesDidNotCome")
    assert grows.message == (
        "0 of 8 nodes are there; no node came within 30 min when one was last waited for; "
        "not tried again before 2026-11-21 00:41 UTC"
    )
    assert condition(spot, "Ready").status is False


def test_nodes_that_are_there_take_work_all_the_same():
    remembers, _ = failed_start(job("first", 16), TWO)
    nodes = [node("old", group="a-spot", born=after(-60))]
    found = decided_at(after(32), nodes, remembers, job("second", 8), pools=TWO)
    assert found.outcomes[key("second")].claim.accelerators_by_node == {"old": 8}


def test_a_node_that_comes_after_all_shows_that_the_pool_grows():
    remembers, _ = failed_start(job("first", 16), TWO)
    nodes = [node("new", group="a-spot", born=after(31))]
    found = decided_at(after(32), nodes, remembers, job("second", 16), pools=TWO)
    assert found.outcomes[key("second")].chosen.pool == "a-spot"


def test_time_cures_it():
    remembers, _ = failed_start(job("first", 16), TWO)
    found = decided_at(after(42), [], remembers, job("second", 16), pools=TWO)
    assert found.outcomes[key("second")].chosen.pool == "a-spot"


def test_success_is_remembered_instead():
    remembers, _ = failed_start(job(count=16), [growing()])
    children = created([], job(count=16), pools=[growing()], at=after(60))
    children[0]["status"] = {"ready": 2, "active": 2}
    nodes = [node(name) for name in "ab"]
    seen = pods(children[0], "a", "b", at=after(60))
    given = {"pools": [growing()], "children": children, "pods": seen}
    runs = decided_at(after(65), nodes, remembers, **given)
    after_all = told(remembers, runs, children, seen, after(65))
    assert after_all["status"]["start"] == {"startedTime": stamp(after(65))}


@pytest.mark.parametrize(
    ("placed_at", "remembers"),
    [(after(-5), after(0)), (after(30), after(40))],
    ids=["the same placement", "a later placement"],
)
def test_a_start_is_that_of_the_present_placement(placed_at, remembers):
    """It started once, at once; all its pods run forty minutes later."""
    earlier = with_status(job(), start={"startedTime": stamp(after(0))})
    document = remembered(earlier, None, "zero", placed_at, after(40))
    assert document == {"startedTime": stamp(remembers)}


GIVEN_UP = {
    "pool": "a-spot",
    "placedTime": stamp(NOW),
    "startedPods": 0,
    "pods": 1,
    "timeoutSeconds": 60,
    "attempts": 1,
}


@pytest.mark.parametrize(
    "start",
    [
        None,
        {"givenUp": [{"pool": "a-spot", "time": "x"}]},
        {"givenUp": [{"pool": "a-spot", "time": stamp(NOW), "placedTime": stamp(NOW)}]},
        {"startedTime": "yesterday"},
        {"givenUp": [{**GIVEN_UP, "time": "9999-12-31T23:59:59Z"}]},
    ],
)
def test_a_status_that_nobody_can_read_is_no_memory(start):
    plan = decided_at(NOW, [], with_status(job(), start=start), pools=TWO).outcomes[key("job")]
    assert plan.chosen.pool == "a-spot"


@pytest.mark.parametrize("status", [None, 3, {"start": 3}, {"start": {"givenUp": [3, {}]}}])
def test_no_status_breaks_the_reading(status):
    assert given_up({"status": status}) == ()
    assert started_at({"status": status}) is None


@pytest.mark.parametrize("workload", [job(count=16), service()], ids=["job", "service"])
def test_a_pool_that_is_deleted_before_any_pod_has_a_node_is_given_up_at_once(workload):
    left = TWO[1:]
    remembers, decisions = failed_start(workload, TWO, minutes=1, left=left)
    who = key(workload["metadata"]["name"], Kind(workload["kind"]))
    plan = decisions.outcomes[who]
    assert (plan.placed, plan.reason_code) == (False, Reason.POOL_GONE)
    gone = "AcceleratorPool a-spot is gone, and no pod of it had a node"
    assert plan.reason == f"{gone}; next: b-reserved"
    [attempt] = given_up(remembers)
    assert attempt.has_lost_pool and not attempt.has_missed_nodes
    anew = decided_at(after(2), [], remembers, pools=left).outcomes[who]
    assert (anew.placed, anew.chosen.pool) == (True, "b-reserved")
    back = decided_at(after(2), [], remembers, pools=TWO).outcomes[who]
    assert (back.placed, back.chosen.pool) == (True, "a-spot")


def test_where_no_other_pool_is_left_it_says_what_it_waits_for():
    _, decisions = failed_start(job(count=16), TWO, minutes=1, left=[])
    reason = decisions.outcomes[key("job")].reason
    assert "tried there again" not in reason
    assert reason.startswith("AcceleratorPool a-spot is gone, and no pod of it had a node; next: ")


def test_a_pod_that_has_a_node_runs_on_when_its_pool_is_deleted():
    wide = job(count=16)
    children = created([], wide, pools=TWO)
    given = {"pools": TWO[1:], "children": children, "pods": pods(children[0], "n0", None)}
    there = node("n0", group="a-spot")
    assert decided_at(after(1), [there], wide, **given).outcomes[key("job")].kept


def test_so_does_one_whose_nodes_another_pool_has():
    """Discovered ones go when somebody declares a pool over their nodes."""
    nodes = l40s(2)
    wide = job(count=16, accelerators={"count": 16, "products": ["L40S"]})
    children = created(nodes, wide)
    mine = growing("mine", nodeSelector={}, accelerator="L40S")
    given = {"pools": [mine], "children": children, "pods": pods(children[0], None, None)}
    assert decided_at(after(1), nodes, wide, **given).outcomes[key("job")].kept
