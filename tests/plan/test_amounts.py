"""What pods ask for beside accelerators, cores and memory, and how often a node has it."""

import pytest

from poolwise.plan.amounts import PODS, STORAGE, held_by, join_held, larger, left, less, pods_in

HCA = "rdma/hca"


@pytest.mark.parametrize(
    ("told", "resource", "expected"),
    [
        pytest.param({HCA: 2.0}, HCA, 2.0, id="told"),
        pytest.param({}, HCA, 0.0, id="a device that is not told is not there"),
        pytest.param({}, "hugepages-2Mi", 0.0, id="nor are huge pages"),
        pytest.param({}, STORAGE, None, id="storage that is not told has no limit"),
        pytest.param({}, PODS, None, id="nor has the number of pods"),
        pytest.param(None, HCA, None, id="nobody can know it"),
    ],
)
def test_what_is_left(told, resource, expected):
    assert left(told, resource) == expected


@pytest.mark.parametrize(
    ("told", "asked", "expected"),
    [
        pytest.param({HCA: 3.0}, ((HCA, 1.0),), 3, id="as often as it is there"),
        pytest.param({HCA: 3.0}, ((HCA, 2.0),), 1, id="no half pod"),
        pytest.param({HCA: 9.0}, ((HCA, 1.0),), 4, id="no more than find all else"),
        pytest.param({HCA: 3.0, "fuse": 1.0}, (("fuse", 1.0), (HCA, 1.0)), 1, id="the scarcest"),
        pytest.param({STORAGE: 0.3}, ((STORAGE, 0.1),), 3, id="rounding costs no pod"),
        pytest.param({}, (), 4, id="who asks for nothing"),
    ],
)
def test_how_many_pods_find_it(told, asked, expected):
    assert pods_in(told, asked, 4) == expected


def test_only_what_is_there_is_taken():
    there = {HCA: 4.0, STORAGE: 10.0}
    assert less(there, {HCA: 1.0, "other/device": 1.0}, 2) == {HCA: 2.0, STORAGE: 10.0}
    assert there == {HCA: 4.0, STORAGE: 10.0}


def test_pods_hold_themselves_and_what_they_ask_for():
    held = held_by({"a": 2, "b": 0}, ((HCA, 3.0),))
    assert held == {PODS: {"a": 2}, HCA: {"a": 6.0}}
    other = {HCA: {"a": 1.0, "b": 2.0}, STORAGE: {}}
    assert join_held(held, other, larger) == {PODS: {"a": 2}, HCA: {"a": 6.0, "b": 2.0}}
