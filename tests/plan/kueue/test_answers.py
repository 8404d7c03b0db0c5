"""Answers to our AdmissionCheck: for jobs of others, of which only the accelerators are known."""

import copy

import pytest

from poolwise.plan.kueue.guests import guests
from poolwise.plan.kueue.words import ADMITTED, CONTROLLER
from poolwise.plan.names import POOL
from poolwise.plan.observed import Observed, Queues
from tests.plan.cluster_given import GPU, decided, foreign_pod, gpu_nodes, h100, job, l40s
from tests.plan.kueue.given import APIS, H100, L40S, PRODUCT, flavor
from tests.plan.nodes_given import declared

LEAF = "network.topology.nvidia.com/leaf"
RESERVED = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""}
CHECK = {"metadata": {"name": "poolwise"}, "spec": {"controllerName": CONTROLLER}}


def guest(pods=2, gpus=8, flavor="any", name="guest", state="Pending", selector=None, **updates):
    """A Workload with quota, which waits for the check of that name."""
    container = {"name": "main", "resources": {"requests": {GPU: str(gpus)} if gpus else {}}}
    spec = {"containers": [container], "nodeSelector": selector or {}}
    check = {"name": "poolwise", "state": state, "message": "", **updates}
    assigned = {"name": "main", "count": pods, "flavors": {GPU: flavor} if gpus else {}}
    return {
        "metadata": {"name": name, "namespace": "theirs", "uid": f"uid-{name}"},
        "spec": {"podSets": [{"name": "main", "count": pods, "template": {"spec": spec}}]},
        "status": {
            "conditions": [RESERVED],
            "admission": {"podSetAssignments": [assigned]},
            "admissionChecks": [check],
        },
    }


def answers(nodes, *workloads, also=(), checks=(CHECK,), **more):
    """By the name of the Workload."""
    flavors = (flavor("any"), flavor("h100", H100), flavor("l40s", L40S))
    known = Queues(flavors=flavors, workloads=workloads, checks=checks)
    answer = decided(nodes, *also, apis=APIS, queues=known, **more)
    return {name: found for (_, name), found in answer.answers.items()}


def test_a_job_with_room_is_sent_to_a_pool_of_its_flavor():
    found = answers([*h100(2), *l40s(2)], guest(flavor="l40s"))["guest"]
    assert (found.state, found.check) == ("Ready", "poolwise")
    (update,) = found.pod_set_updates
    assert update["annotations"][POOL].startswith("l40s")
    assert update["labels"] == {ADMITTED: "uid-guest"}
    assert PRODUCT not in update["nodeSelector"], "Kueue adds the flavor's labels itself"
    assert "2 pods in l40s" in found.message


def test_nodes_that_share_a_domain_are_kept_together():
    near = h100(2, **{LEAF: "leaf-0"})
    far = [copy.deepcopy(node) for node in h100(3, **{LEAF: "leaf-1"})[2:]]
    (update,) = answers([*near, *far], guest(pods=2))["guest"].pod_set_updates
    assert update["nodeSelector"][LEAF] == "leaf-0"
    (update,) = answers([*near, *far], guest(pods=3))["guest"].pod_set_updates
    assert LEAF not in update["nodeSelector"], "three nodes are in no one domain"


def test_taints_of_the_pool_are_tolerated():
    (update,) = answers(h100(2), guest())["guest"].pod_set_updates
    assert GPU in {each.get("key") for each in update["tolerations"]}


def test_a_job_without_room_gives_its_quota_back_for_a_while():
    found = answers(h100(2), guest(pods=3))["guest"]
    assert (found.state, found.requeue_after_seconds) == ("Retry", 60)
    assert "3 pods with 8 x nvidia.com/gpu" in found.message
    assert "has room for 2 (16 of 16 are free)" in found.message


def test_as_many_pods_are_looked_for_as_kueue_lets_in():
    """Fewer than a job asks for at most, where it may start with a part of them."""
    partial = guest(pods=4)
    partial["status"]["admission"]["podSetAssignments"][0]["count"] = 2
    known = Observed(queues=Queues(workloads=(partial,), checks=(CHECK,)))
    (found,) = guests(known)
    assert [pod_set.pods for pod_set in found.pod_sets] == [2]
    assert answers(h100(2), partial)["guest"].state == "Ready", "four would have no room"


def test_a_pod_that_no_node_could_ever_hold_is_rejected():
    found = answers(h100(2), guest(pods=1, gpus=9))["guest"]
    assert found.state == "Rejected"
    assert found.message.endswith("no node of flavor any has more than 8")


def test_a_flavor_that_no_pool_is_of_is_tried_again():
    found = answers(h100(2), guest(flavor="l40s"))["guest"]
    assert found.state == "Retry"
    assert found.message.endswith("no pool that Poolwise can use is of flavor l40s")


def test_the_jobs_own_selector_counts():
    found = answers([*h100(2), *l40s(2)], guest(selector=L40S))["guest"]
    (update,) = found.pod_set_updates
    assert update["annotations"][POOL].startswith("l40s")


def test_a_pool_is_offered_to_the_namespaces_that_may_use_it():
    for namespaces, state in ((["theirs"], "Ready"), (["ours"], "Retry"), ([], "Ready")):
        nodes = h100(2, team="mine")
        pool = declared("mine", nodeSelector={"team": "mine"}, allowedNamespaces=namespaces)
        assert answers(nodes, guest(), pools=[pool])["guest"].state == state, namespaces


@pytest.mark.parametrize(("dear", "taken"), [("90", "b"), ("10", "a"), (None, "b")])
def test_of_pools_with_room_the_cheapest_is_taken_and_last_one_without_a_price(dear, taken):
    nodes = [*h100(2, team="a"), *gpu_nodes("b", 2, "NVIDIA-H100-80GB-HBM3", team="b")]
    prices = {"a": {"perNodeHour": dear} if dear else {"perNodeHour": "9", "currency": "EUR"}}
    prices["b"] = {"perNodeHour": "50"}
    pools = [declared(name, nodeSelector={"team": name}, price=prices[name]) for name in prices]
    (update,) = answers(nodes, guest(), pools=pools)["guest"].pod_set_updates
    assert update["annotations"][POOL] == taken


def test_pods_without_accelerators_are_let_in():
    found = answers(h100(2), guest(gpus=0))["guest"]
    assert found.state == "Ready"
    assert found.pod_set_updates == ({"name": "main"},)


def with_network(document, network):
    """The same job, each pod of which asks for a network function too."""
    spec = copy.deepcopy(document)
    (pods,) = spec["spec"]["podSets"]
    asked = pods["template"]["spec"]["containers"][0]["resources"]["requests"]
    pods["template"]["spec"]["containers"][0]["resources"]["requests"] = {network: "1", **asked}
    return spec


@pytest.mark.parametrize("network", ["intel.com/sriov_vf", "rdma/hca"])
def test_a_network_function_is_no_accelerator_whatever_its_name(network):
    """What stands first among the requests is not what a pod is placed for."""
    nodes = h100(2)
    for each in nodes:
        each["status"]["allocatable"][network] = "1"
    found = answers(nodes, with_network(guest(), network))["guest"]
    assert found.state == "Ready", found.message
    (update,) = found.pod_set_updates
    assert update["annotations"][POOL].startswith("h100")
    assert answers(nodes, with_network(guest(gpus=0), network))["guest"].pod_set_updates == (
        {"name": "main"},
    )


def test_a_network_function_that_is_not_there_is_waited_for():
    found = answers(h100(2), with_network(guest(), "rdma/hca"))["guest"]
    assert found.state == "Retry"
    assert "2 pods with 8 x nvidia.com/gpu and 1 rdma/hca; " in found.message
    assert "has room for 0 " in found.message


def test_two_jobs_are_never_promised_the_same_room():
    found = answers(h100(2), guest(name="a"), guest(name="b"))
    assert [found[name].state for name in ("a", "b")] == ["Ready", "Retry"]


def test_who_is_sent_back_leaves_all_its_room_to_the_next():
    """Also what its first pod sets would have had."""
    large = guest(pods=1, name="large")
    (first,) = large["spec"]["podSets"]
    large["spec"]["podSets"].append({**first, "name": "workers", "count": 3})
    assignments = large["status"]["admission"]["podSetAssignments"]
    assignments.append({**assignments[0], "name": "workers", "count": 3})
    found = answers(h100(2), large, guest(pods=2, name="small"))
    assert {name: each.state for name, each in found.items()} == {
        "large": "Retry",
        "small": "Ready",
    }


def test_what_pods_of_others_and_our_own_jobs_hold_is_not_promised():
    busy = [foreign_pod("h100-0", 8)]
    assert answers(h100(2), guest(), pods=busy)["guest"].state == "Retry"
    assert answers(h100(2), guest(), also=(job("ours", 8),))["guest"].state == "Retry"


def let_in(pods=2, name="guest"):
    found = answers(h100(2), guest(pods=pods, name=name))[name]
    (update,) = found.pod_set_updates
    return guest(pods=pods, name=name, state="Ready", podSetUpdates=[update]), update


def test_who_was_let_in_holds_room_until_nodes_have_its_pods():
    known, update = let_in(pods=1)
    nodes = h100(2)
    assert answers(nodes, known, guest(pods=2, name="next"))["next"].state == "Retry"
    assert answers(nodes, known, guest(pods=1, name="next"))["next"].state == "Ready"
    bound = foreign_pod("h100-0", 8)
    bound["metadata"]["labels"] = update["labels"]
    assert answers(nodes, known, guest(pods=1, name="next"), pods=[bound])["next"].state == "Ready"
    assert answers(nodes, known, guest(pods=2, name="next"), pods=[bound])["next"].state == "Retry"


def test_our_own_jobs_do_not_take_what_a_guest_was_promised():
    known, _ = let_in(pods=2)
    flavors = (flavor("any"),)
    queues = Queues(flavors=flavors, workloads=(known,), checks=(CHECK,))
    answer = decided(h100(2), job("ours", 8), apis=APIS, queues=queues)
    (plan,) = answer.outcomes.values()
    assert not plan.placed


def test_checks_of_others_are_left_alone():
    other = {"metadata": {"name": "poolwise"}, "spec": {"controllerName": "somebody.else/check"}}
    assert answers(h100(2), guest(), checks=(other,)) == {}


@pytest.mark.parametrize("status", [{}, {"conditions": None}, {"admissionChecks": "x"}, None])
def test_a_workload_that_nobody_can_read_is_not_answered(status):
    assert answers(h100(2), {**guest(), "status": status}) == {}


@pytest.mark.parametrize(
    ("conditions", "check"),
    [
        pytest.param([RESERVED | {"status": "False"}], "poolwise", id="no quota any more"),
        pytest.param([], "poolwise", id="no quota yet"),
        pytest.param([RESERVED], "theirs", id="a check of another controller"),
    ],
)
def test_what_waits_for_others_is_left_to_them(conditions, check):
    waiting = guest()
    waiting["status"]["conditions"] = conditions
    waiting["status"]["admissionChecks"][0]["name"] = check
    assert answers(h100(2), waiting) == {}
