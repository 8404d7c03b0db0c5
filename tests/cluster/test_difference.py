"""What counts as a difference between the live object and the desired one."""

from __future__ import annotations

import pytest

from poolwise.cluster.difference import APPLIED, covers, merge_patch, signed


@pytest.mark.parametrize(
    ("live", "desired", "expected"),
    [
        pytest.param({"a": 1, "b": 2}, {"a": 1}, True, id="defaults-are-no-difference"),
        pytest.param({"a": 1}, {"a": 2}, False, id="another-value"),
        pytest.param({}, {"a": {"b": 1}}, False, id="missing"),
        pytest.param(None, {}, False, id="no-object"),
        pytest.param({}, {"a": None}, True, id="none-is-absent"),
        pytest.param({"a": {}}, {"a": None}, False, id="none-is-not-empty"),
        pytest.param({"args": ["a", "b"]}, {"args": ["a"]}, False, id="strings-compare-whole"),
        pytest.param(
            {"c": [{"name": "x", "image": "i", "y": 1}, {"name": "sidecar"}]},
            {"c": [{"name": "x", "image": "i"}]},
            True,
            id="named-items-match-by-name",
        ),
        pytest.param({"c": [{"name": "x"}]}, {"c": [{"name": "z"}]}, False, id="another-name"),
        pytest.param(
            {"c": [{"name": "x", "image": "i"}, {"name": "y", "image": "i"}]},
            {"c": [{"name": "x", "image": "i"}, {"name": "y", "image": "j"}]},
            False,
            id="one-of-two-named-items",
        ),
        pytest.param(
            {"t": [{"key": "k", "effect": "A"}, {"key": "k", "effect": "B"}]},
            {"t": [{"key": "k", "effect": "A"}, {"key": "k", "effect": "B"}]},
            True,
            id="shared-keys-compare-by-position",
        ),
        pytest.param(
            {"t": [{"operator": "Exists"}]}, {"t": [{"operator": "Exists"}]}, True, id="no-keys"
        ),
    ],
)
def test_covers(live, desired, expected):
    assert covers(live, desired) is expected


def test_a_field_that_is_no_longer_wanted_shows_in_the_digest():
    job = {"metadata": {"name": "a"}, "spec": {"env": [{"name": "A"}, {"name": "B"}]}}
    live = signed(job)
    less = signed({**job, "spec": {"env": [{"name": "A"}]}})
    assert covers(live, signed(job))
    assert not covers(live, less)
    assert live["metadata"]["annotations"][APPLIED] != less["metadata"]["annotations"][APPLIED]


def test_the_digest_does_not_depend_on_the_order_of_fields():
    one, other = {"metadata": {}, "a": 1, "b": 2}, {"b": 2, "metadata": {}, "a": 1}
    assert signed(one)["metadata"] == signed(other)["metadata"]


@pytest.mark.parametrize(
    ("live", "desired", "patch"),
    [
        pytest.param({"a": 1}, {"a": 1}, {}, id="equal"),
        pytest.param(None, {"a": 1}, {"a": 1}, id="nothing-yet"),
        pytest.param({"a": 1, "b": 2}, {"a": 1}, {"b": None}, id="gone"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}, id="nested"),
        pytest.param({"a": [1, 2]}, {"a": [1]}, {"a": [1]}, id="lists-are-taken-whole"),
        pytest.param({}, {"a": {}}, {"a": {}}, id="empty-map"),
        pytest.param({}, {"a": None, "b": {"c": None}}, {"b": {"c": None}}, id="none-is-absent"),
        pytest.param({"a": 1, "b": {}}, {"a": None, "b": {"c": None}}, {"a": None}, id="none-goes"),
        pytest.param({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="another-type"),
    ],
)
def test_merge_patch(live, desired, patch):
    assert merge_patch(live, desired) == patch
