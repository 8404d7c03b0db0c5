"""InferencePools as their APIs write them, and as people get them wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.gateway.pools import inference_pool
from tests.handlers.gateway import OURS, old_inference_pool
from tests.handlers.gateway import inference_pool as written


def test_both_apis_say_the_same():
    new, old = inference_pool(written()), inference_pool(old_inference_pool())
    assert new == old
    assert (new.name, new.picker, new.problem) == ("chat", "chat-epp", "")
    assert dict(new.selector) == OURS


def test_all_of_the_selector_must_match():
    pool = inference_pool(written(app="chat", tier="gpu"))
    assert pool.takes({"app": "chat", "tier": "gpu", "more": "x"})
    assert not pool.takes({"app": "chat"})
    assert not pool.takes({"app": "chat", "tier": "cpu"})


@pytest.mark.parametrize(
    "selector",
    [None, {}, "app", {"matchLabels": None}, {"matchLabels": {}}, {"matchLabels": {"app": 1}}],
)
def test_a_selector_that_cannot_be_read_takes_nothing(selector):
    document = written()
    document["spec"]["selector"] = selector
    assert not inference_pool(document).takes(OURS)


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        (None, "names no endpoint picker"),
        ({}, "names no endpoint picker"),
        ({"name": "x", "kind": "Gadget"}, "the Gadget x, and only a Service"),
        ({"name": "x", "group": "example.com"}, "only a Service can be asked"),
        ({"name": 7}, "only a Service can be asked"),
    ],
)
def test_a_picker_that_cannot_be_asked_is_said(reference, told):
    document = written()
    document["spec"]["endpointPickerRef"] = reference
    found = inference_pool(document)
    assert found.picker == ""
    assert told in found.problem


@pytest.mark.parametrize(
    ("statuses", "is_refused"),
    [([], False), (["False"], True), (["False", "True"], False), (["Unknown"], False)],
)
def test_a_pool_that_no_gateway_accepts_routes_nothing(statuses, is_refused):
    document = written()
    accepted = [{"type": "Accepted", "status": each, "reason": "NoRoute"} for each in statuses]
    document["status"] = {"parents": [{"conditions": [each]} for each in accepted]}
    assert ("no gateway accepts it (NoRoute)" in inference_pool(document).problem) is is_refused


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(
    spec=anything,
    selector=anything,
    reference=anything,
    status=anything,
    is_old=st.booleans(),
)
def test_no_object_breaks_the_reader(spec, selector, reference, status, is_old):
    document = {
        "apiVersion": "inference.networking.x-k8s.io/v1alpha2"
        if is_old
        else "inference.networking.k8s.io/v1",
        "metadata": {"name": "chat", "namespace": "a"},
        "spec": spec,
        "status": {"parents": status, "parent": status},
    }
    inference_pool(document)
    document["spec"] = {
        "selector": selector,
        "extensionRef": reference,
        "endpointPickerRef": reference,
    }
    found = inference_pool(document)
    assert found.picker or found.problem
