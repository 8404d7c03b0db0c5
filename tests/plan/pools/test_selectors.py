from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from poolwise.plan.pools.selectors import node_expressions, node_selector, selects
from tests.plan.nodes_given import admits

POOL = "cloud.google.com/gke-nodepool"
LABELS = st.dictionaries(
    st.sampled_from([POOL, "nvidia.com/gpu.product", "zone", "kubernetes.io/arch", "team"]),
    st.sampled_from(["a", "b", ""]),
)


def named(nodes: list[dict[str, str]], prefix: str) -> list[dict[str, str]]:
    return [{**each, "kubernetes.io/hostname": f"{prefix}{i}"} for i, each in enumerate(nodes)]


def test_the_clouds_own_pool_is_enough() -> None:
    members = [{POOL: "train", "zone": "a"}, {POOL: "train", "zone": "a"}]
    assert node_selector(members, [{POOL: "serve", "zone": "a"}]) == {POOL: "train"}


def test_further_labels_are_taken_only_where_they_keep_somebody_out() -> None:
    members = [{POOL: "train", "team": "x", "zone": "a"}]
    others = [{POOL: "train", "team": "y", "zone": "a"}]
    assert node_selector(members, others) == {POOL: "train", "team": "x"}


def test_labels_that_only_others_have_keep_them_out() -> None:
    members, others = [{"zone": "a"}], [{"zone": "a", "nvidia.com/gpu.product": "x"}]
    selector = node_selector(members, others)
    assert node_expressions(selector, members, others) == (
        {"key": "nvidia.com/gpu.product", "operator": "DoesNotExist"},
    )


def test_spellings_of_a_product_come_before_host_names() -> None:
    """A further node of either spelling joins without an update of what runs there."""
    product = "nvidia.com/gpu.product"
    spelt = [{product: "NVIDIA-L40S"}, {product: "nvidia-l40s"}]
    others = named([{product: "NVIDIA-L4"}, {}], "o")
    for members in (named(spelt, "m"), named([*spelt, *spelt], "m")):
        selector = node_selector(members, others)
        assert node_expressions(selector, members, others) == (
            {"key": product, "operator": "In", "values": ["NVIDIA-L40S", "nvidia-l40s"]},
        )
    alike = named([{product: "nvidia-l40s"}], "o")
    (by_name,) = node_expressions({}, named(spelt, "m"), alike)
    assert by_name["key"] == "kubernetes.io/hostname"


def test_host_names_are_the_last_resort() -> None:
    members, others = named([{"zone": "a"}], "m"), named([{"zone": "a"}], "o")
    selector = node_selector(members, others)
    assert node_expressions(selector, members, others) == (
        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["m0"]},
    )


@given(members=st.lists(LABELS, min_size=1, max_size=4), others=st.lists(LABELS, max_size=4))
def test_members_always_match_and_others_never(
    members: list[dict[str, str]], others: list[dict[str, str]]
) -> None:
    inside, outside = named(members, "m"), named(others, "o")
    selector = node_selector(inside, outside)
    expressions = node_expressions(selector, inside, outside)
    assert all(selects(selector, each) and admits(expressions, each) for each in inside)
    assert not any(selects(selector, each) and admits(expressions, each) for each in outside)


@given(members=st.lists(LABELS, min_size=1, max_size=4), others=st.lists(LABELS, max_size=4))
def test_selectors_hold_only_what_members_share(
    members: list[dict[str, str]], others: list[dict[str, str]]
) -> None:
    assume(members)
    selector = node_selector(members, others)
    assert all(each.items() >= selector.items() for each in members)
