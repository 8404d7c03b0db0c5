"""Two autoscalers on one number are found, whatever name the second goes by."""

import pytest

from poolwise.plan.decision import Key, Kind
from poolwise.plan.live.look import Mode, Rival
from poolwise.plan.live.rivals import rival

CHAT = Key(Kind.INFERENCE_SERVICE, "search", "chat")


def hpa(kind="Deployment", name="chat", api="apps/v1", namespace="search", **labels):
    metadata = {"name": "theirs", "namespace": namespace, "labels": labels}
    target = {"apiVersion": api, "kind": kind, "name": name}
    return {"metadata": metadata, "spec": {"scaleTargetRef": target}}


ON_SERVICE = hpa("InferenceService", api="poolwise.dev/v1alpha1")


@pytest.mark.parametrize("mode", Mode)
def test_on_the_deployment_it_is_always_one_too_many(mode):
    assert rival(CHAT, mode, [hpa()]) == Rival(
        "HorizontalPodAutoscaler theirs (on Deployment chat)"
    )


def test_on_replicas_that_span_nodes_it_is_found_by_their_own_name():
    theirs = hpa("LeaderWorkerSet", "chat-replica", "leaderworkerset.x-k8s.io/v1")
    assert "LeaderWorkerSet chat-replica" in str(rival(CHAT, Mode.DIRECT, [theirs]))


@pytest.mark.parametrize("mode", Mode)
def test_on_the_service_it_is_what_other_modes_are_for(mode):
    assert bool(rival(CHAT, mode, [ON_SERVICE])) is (mode is Mode.DIRECT)


def test_keda_is_named_by_its_own_object():
    made = hpa(**{"scaledobject.keda.sh/name": "chat-load"})
    assert rival(CHAT, Mode.DIRECT, [made]) == Rival("ScaledObject chat-load (on Deployment chat)")


def test_on_the_service_it_does_nothing_in_the_mode_direct_and_is_told_so():
    found = rival(CHAT, Mode.DIRECT, [ON_SERVICE])
    assert found is not None and not found.acts
    assert "nobody scales them; set scaling.mode to External" in found.problem
    both = rival(CHAT, Mode.DIRECT, [ON_SERVICE, hpa()])
    assert both is not None and both.acts


@pytest.mark.parametrize(
    "other",
    [
        hpa(name="other"),
        hpa(namespace="elsewhere"),
        hpa("StatefulSet"),
        hpa("InferenceService", api="serving.kserve.io/v1beta1"),
        {"metadata": {"name": "broken", "namespace": "search"}},
    ],
)
def test_those_of_others_are_none_of_our_business(other):
    assert rival(CHAT, Mode.DIRECT, [other]) is None
