"""One kind: the newest version wins, the dead stay dead, and children are found by their owner."""

from __future__ import annotations

import pytest

from poolwise.cluster.store import Store
from tests.cluster.given import job


@pytest.fixture
def store():
    return Store()


def test_only_a_change_that_somebody_reads_is_one(store):
    assert store.put(job(version=1))
    assert not store.put(job(version=2))
    assert store.put(job(version=3, spec={"parallelism": 2}))


def test_an_event_older_than_our_own_write_is_ignored(store):
    store.put(job(version=7, spec={"parallelism": 2}))
    assert not store.put(job(version=6, spec={"parallelism": 1}))
    assert store.get(("research", "train"))["spec"] == {"parallelism": 2}


def test_versions_are_numbers(store):
    store.put(job(version=9))
    assert store.put(job(version=10, spec={"parallelism": 2}))


def test_a_deleted_object_does_not_come_back_by_a_late_event(store):
    store.put(job(version=1))
    assert store.remove(job(version=3))
    assert not store.put(job(version=2, spec={}))
    assert store.get(("research", "train")) is None


def test_what_lost_the_label_that_is_watched_comes_back_with_it(store):
    store.put(job(version=1))
    assert store.remove(job(version=3))
    assert store.put(job(version=4))
    assert store.get(("research", "train")) is not None


def test_what_we_deleted_does_not_come_back_while_it_ends(store):
    store.put(job(version=1))
    assert store.remove(job(version=1), for_good=True)
    assert not store.put(job(version=2))


def test_a_new_object_of_the_same_name_survives_the_late_end_of_the_old_one(store):
    store.put(job(version=1, uid="old"))
    store.put(job(version=5, uid="new"))
    assert not store.remove(job(version=4, uid="old"))
    assert store.get(("research", "train"))["metadata"]["uid"] == "new"


def test_an_object_is_looked_up_by_what_it_points_to_now(store):
    store.put(job("a", uid="1"))
    store.put(job("b", uid="2", owner="somebody-else"))
    assert [each["metadata"]["name"] for each in store.with_index("uid-owner")] == ["a"]
    store.put(job("a", uid="1", version=2, owner="somebody-else"))
    assert store.with_index("uid-owner") == []
    assert len(store.with_index("somebody-else")) == 2


def test_the_dead_are_remembered_as_long_as_events_can_be_late_and_no_longer(store):
    for number in range(5000):
        store.remove(job(uid=f"uid-{number}"))
    assert not store.put(job(uid="uid-4999"))
    assert store.put(job(uid="uid-0"))
