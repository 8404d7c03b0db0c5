"""Runs whose record somebody took away or damaged: it follows again from their own pods."""

from __future__ import annotations

import copy

import pytest

from poolwise.plan.children.manifests import children
from poolwise.plan.decision import Key, Kind
from poolwise.plan.history.lost_records import written_again
from poolwise.plan.names import CHILD_LABELS, PLACEMENT, POOL
from poolwise.plan.records.placement_record import parse
from poolwise.plan.records.runtimes import Served
from poolwise.settings import Settings
from tests.plan.children.set_cases import APIS, runtime
from tests.plan.cluster_given import (
    decided,
    finished,
    h100,
    job,
    key,
    outcomes,
    plan_of,
    pods_of,
    running,
)

JUNK = [None, "", "{", '{"version": 1}']
"""Nothing, and what nobody can read."""


def spoilt(child, text=None, uid="made"):
    """A live child whose record somebody took away, or wrote over."""
    left = copy.deepcopy(child)
    left["metadata"]["uid"] = uid
    left["metadata"]["annotations"] = {} if text is None else {PLACEMENT: text}
    return left


@pytest.mark.parametrize("text", JUNK)
def test_a_run_goes_on_where_its_pods_are(text):
    nodes, first = h100(3), job("first", 16)
    (child,) = running(nodes, first)
    before = parse(child["metadata"]["annotations"][PLACEMENT], key("first"))
    assert before is not None
    names = [*before.claim.accelerators_by_node]
    given = {"children": [spoilt(child, text)], "pods": pods_of(child, names)}
    found = outcomes(nodes, first, job("second", 16), **given)
    assert found["first"].kept
    assert found["first"].record == before
    assert not found["second"].placed, "one node is free"


def test_who_has_no_node_yet_holds_one_all_the_same():
    nodes, first = h100(3), job("first", 16)
    (child,) = running(nodes, first)
    pods = pods_of(child, ["h100-2"])
    given = {"children": [spoilt(child)], "pods": pods}
    found = outcomes(nodes, first, job("second", 16), job("third", 8), **given)
    assert found["first"].record.claim.accelerators_by_node["h100-2"] == 8
    assert found["first"].record.count == 16
    assert (found["second"].placed, found["third"].placed) == (False, True)


@pytest.mark.parametrize("kind", ["JobSet", "TrainJob"])
def test_of_every_kind_of_child(kind):
    reference = {"runtimeRef": {"name": "torch-distributed"}} if kind == "TrainJob" else {}
    nodes, first = h100(2), job("first", 16, **reference)
    served = {"apis": APIS, "training_runtimes": [runtime()]}
    answer = decided(nodes, first, **served)
    (pool,), plan = answer.pools, answer.outcomes[key("first")]
    child = children(first, plan, pool, Settings(), Served(APIS, [runtime()]))[-1]
    assert child["kind"] == kind
    found = plan_of(nodes, first, children=[spoilt(child)], **served)
    assert found.kept
    assert (found.record.runtime, found.record.count) == (kind, 16)
    assert found.record.layout == plan.chosen.layout


def test_what_ended_has_no_place():
    (child,) = running(h100(1), job())
    plan = plan_of(h100(1), job(), children=[finished(spoilt(child), "Failed")])
    assert not plan.placed


def test_it_goes_on_though_its_pool_is_gone_as_well():
    (child,) = running(h100(2), job(count=16))
    plan = plan_of([], job(count=16), children=[spoilt(child)])
    assert plan.kept
    assert plan.record is not None
    assert (plan.record.pool, plan.record.count) == (child["metadata"]["labels"][POOL], 16)
    assert plan.record.resource == "nvidia.com/gpu"


def test_pods_that_end_beside_their_successors_are_not_counted_twice():
    nodes = h100(2)
    (child,) = running(nodes, job())
    pods = pods_of(child, ["h100-0", "h100-1"])
    record = plan_of(nodes, job(), children=[spoilt(child)], pods=pods).record
    assert record is not None
    assert sum(record.claim.accelerators_by_node.values()) == record.count == 8


@pytest.mark.parametrize("field", ["env", "resources"])
def test_pods_that_are_none_of_ours_tell_nothing(field):
    (child,) = running(h100(1), job())
    left = spoilt(child)
    del left["spec"]["template"]["spec"]["containers"][0][field]
    assert not plan_of(h100(1), job(), children=[left]).kept


@pytest.mark.parametrize("text", JUNK)
def test_it_is_written_again(text):
    (child,) = running(h100(1), job())
    told = child["metadata"]["annotations"][PLACEMENT]
    again = written_again(spoilt(child, text), child, key("job"))
    assert again == {"metadata": {"annotations": {PLACEMENT: told}}}


def test_what_is_there_is_left_alone_and_nothing_is_told_of_pods_elsewhere():
    (child,) = running(h100(1), job())
    assert written_again(child, child, key("job")) == {}
    assert written_again(child, child, Key(Kind.TRAINING_JOB, "other", "job")) == {}
    elsewhere = copy.deepcopy(child)
    elsewhere["metadata"]["labels"][POOL] = "another"
    assert written_again(spoilt(child), elsewhere, key("job")) == {}


@pytest.mark.parametrize("label", CHILD_LABELS)
@pytest.mark.parametrize("value", [None, "else"])
def test_a_label_is_written_again(label, value):
    (child,) = running(h100(1), job("job", 8))
    live = copy.deepcopy(child)
    wanted = live["metadata"]["labels"].pop(label)
    live["metadata"]["labels"] |= {"team": "a"} | ({label: value} if value else {})
    again = written_again(live, child, key("job"))
    assert again == {"metadata": {"labels": {label: wanted}}}


def test_labels_of_another_pool_are_not_written():
    """The child is about to be replaced: it tells of the pods that are there."""
    (child,) = running(h100(1), job("job", 8))
    elsewhere = copy.deepcopy(child)
    elsewhere["metadata"]["labels"][POOL] = "elsewhere"
    assert written_again(child, elsewhere, key("job")) == {}
