"""Flavors and pools: what Kueue would take, as its own code compares labels and taints."""

import math

import pytest

from poolwise.plan.kueue.pinning import Pin, pin
from poolwise.plan.kueue.reading import books
from poolwise.plan.pools.gathering import pools
from poolwise.settings import Settings
from tests.plan.cluster_given import GPU, h100, l40s
from tests.plan.kueue.given import H100, PRODUCT, cluster_queue, flavor, queues
from tests.plan.machines import TABLES
from tests.plan.provisioning.given import growing

BLOCK = "cloud.example.com/pool"


def pool(nodes):
    (found,) = pools(nodes, (), TABLES, Settings())
    return found


def pinned(nodes, flavors, asks=(GPU,), **queue):
    names = {each["metadata"]["name"]: 16 for each in flavors}
    book = books(queues(flavors, cluster_queue("all", names, **queue)))
    return pin(pool(nodes), book.cluster["all"], asks)


def test_a_flavor_with_the_pools_own_label_needs_nothing_more():
    found = pinned(h100(2), [flavor("h100", H100)])
    assert found == Pin({}, 16, 16, ("h100",))


def test_a_flavor_with_another_label_of_all_its_nodes_is_named_in_the_pods():
    found = pinned(h100(2, **{BLOCK: "train"}), [flavor("train", {BLOCK: "train"})])
    assert found.selector == {BLOCK: "train"}


def test_a_label_that_only_some_nodes_have_stands_for_no_pool():
    nodes = [*h100(1, **{BLOCK: "train"}), *h100(2)[1:]]
    told = pinned(nodes, [flavor("train", {BLOCK: "train"})])
    assert told == (
        "no flavor of ClusterQueue all stands for it: "
        "train wants cloud.example.com/pool=train, which 1 of its 2 nodes do not carry"
    )


def test_a_flavor_of_other_nodes_is_told_with_what_ours_have():
    told = pinned(l40s(2), [flavor("h100", H100)])
    assert told == (
        "no flavor of ClusterQueue all stands for it: "
        f"h100 wants {PRODUCT}=NVIDIA-H100-80GB-HBM3, its nodes have NVIDIA-L40S"
    )


def test_a_pool_without_nodes_is_what_it_selects():
    (empty,) = pools((), [growing("zero")], TABLES, Settings())
    train, zero = flavor("train", {BLOCK: "train"}), flavor("zero", {"group": "zero"})
    book = books(queues([train, zero], cluster_queue("all", {"train": 16})))
    assert pin(empty, book.cluster["all"], (GPU,)) == (
        "no flavor of ClusterQueue all stands for it: "
        "train wants cloud.example.com/pool=train, which the pool does not select by"
    )
    book = books(queues([train, zero], cluster_queue("all", {"zero": 16})))
    assert isinstance(pin(empty, book.cluster["all"], (GPU,)), Pin)


def test_a_flavor_without_labels_beside_one_of_other_nodes_would_mislead():
    """Kueue takes the first flavor whose labels the selector does not contradict: a pod that names
    no key of the other flavor could get its quota, and never its nodes."""
    elsewhere = flavor("elsewhere", {BLOCK: "other"})
    assert isinstance(pinned(h100(2), [flavor("any")]), Pin)
    assert isinstance(pinned(h100(2), [elsewhere, flavor("any")]), str)


def test_a_key_of_the_pool_that_only_another_flavor_has_excludes_its_own():
    """Kueue takes a key that some flavor has seriously for all of them."""
    ours = flavor("train", {BLOCK: "train"})
    theirs = flavor("h200", {PRODUCT: "NVIDIA-H200"})
    nodes = h100(2, **{BLOCK: "train"})
    assert isinstance(pinned(nodes, [ours]), Pin)
    assert isinstance(pinned(nodes, [ours, theirs]), str)
    both = flavor("train", {BLOCK: "train", **H100})
    assert pinned(nodes, [both, theirs]).flavors == ("train",)


def test_several_flavors_of_the_same_nodes_are_all_right():
    found = pinned(h100(2), [flavor("reserved", H100), flavor("burst", H100)])
    assert found.flavors == ("reserved", "burst")


@pytest.mark.parametrize(
    ("used", "spare"),
    [({"burst": 10}, 16), ({"reserved": 12, "burst": 10}, 6)],
    ids=["one in use", "both in use"],
)
def test_of_several_flavors_a_pod_gets_the_quota_of_one(used, spare):
    """Kueue takes all of a pod set's out of the same flavor."""
    found = pinned(h100(2), [flavor("reserved", H100), flavor("burst", H100)], used=used)
    assert isinstance(found, Pin)
    assert (found.most, found.spare) == (16, spare)


@pytest.mark.parametrize("is_other_usable", [True, False])
def test_a_node_that_takes_no_work_needs_no_label_unless_none_does(is_other_usable):
    labelled, bare = h100(2, **{BLOCK: "train"})
    del bare["metadata"]["labels"][BLOCK]
    bare["spec"] = {"unschedulable": True}
    if not is_other_usable:
        labelled["spec"] = {"unschedulable": True}
    found = pinned([labelled, bare], [flavor("train", {BLOCK: "train"})])
    assert isinstance(found, Pin) is is_other_usable


TOLERATION = {"key": "team", "operator": "Equal", "value": "a"}


@pytest.mark.parametrize(
    ("effect", "tolerations", "is_taken"),
    [
        pytest.param("NoSchedule", [TOLERATION], True, id="tolerated"),
        pytest.param("NoSchedule", [], False, id="not tolerated"),
        pytest.param("NoSchedule", [TOLERATION | {"effect": "NoExecute"}], False, id="another"),
        pytest.param("NoSchedule", [TOLERATION | {"effect": "NoSchedule"}], True, id="its effect"),
        pytest.param("PreferNoSchedule", [], True, id="no more than a wish"),
    ],
)
def test_a_flavors_taint_counts_unless_it_is_tolerated(effect, tolerations, is_taken):
    taint = {"key": "team", "value": "a", "effect": effect}
    found = pinned(h100(2), [flavor("h100", H100, nodeTaints=[taint], tolerations=tolerations)])
    assert isinstance(found, Pin) is is_taken
    assert is_taken or "h100 has taint team, which the pool does not tolerate" in found


def test_a_queue_without_the_resource_says_which_it_has():
    told = pinned(h100(2), [flavor("h100", H100)], resources=("cpu", "memory"))
    assert told == "ClusterQueue all has no quota for nvidia.com/gpu (it has for cpu, memory)"


def test_flavors_of_other_resources_have_to_agree_too():
    """Cores out of a group of their own, whose flavor is of other nodes."""
    group = {
        "coveredResources": ["cpu"],
        "flavors": [{"name": "spare", "resources": [{"name": "cpu", "nominalQuota": 100}]}],
    }
    queue = cluster_queue("all", {"h100": 16})
    queue["spec"]["resourceGroups"].append(group)
    for labels, agrees in (({}, True), ({BLOCK: "spare"}, False)):
        book = books(queues([flavor("h100", H100), flavor("spare", labels)], queue))
        found = pin(pool(h100(2)), book.cluster["all"], (GPU, "cpu"))
        assert isinstance(found, Pin) is agrees
        assert isinstance(pin(pool(h100(2)), book.cluster["all"], (GPU,)), Pin)


@pytest.mark.parametrize(
    ("spec", "limit", "most"),
    [({}, None, 16), ({"cohortName": "c"}, None, math.inf), ({"cohortName": "c"}, 4, 20)],
    ids=["alone", "borrows", "borrows-little"],
)
def test_the_most_of_a_queue_is_its_quota_and_what_it_may_borrow(spec, limit, most):
    queue = cluster_queue("all", {"h100": 16}, used={"h100": 12}, **spec)
    if limit is not None:
        quota = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
        quota["borrowingLimit"] = limit
    found = pin(pool(h100(2)), books(queues([flavor("h100", H100)], queue)).cluster["all"], (GPU,))
    assert isinstance(found, Pin)
    assert (found.most, found.spare) == (most, most - 12)


@pytest.mark.parametrize(
    "junk", [None, 3, "x", [], {"resourceGroups": "x"}, {"resourceGroups": [3]}]
)
def test_objects_that_nobody_can_read_count_as_absent(junk):
    queue = {**cluster_queue("all", {"h100": 16}), "spec": junk, "status": junk}
    book = books(queues([{**flavor("h100"), "spec": junk}], queue))
    assert "no quota" in str(pin(pool(h100(1)), book.cluster["all"], (GPU,)))
