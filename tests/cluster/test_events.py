"""Events: each decision is told, a repeated one again, and one that flaps only so often."""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from types import SimpleNamespace

import pytest

from poolwise.cluster.cache import Cache
from poolwise.cluster.clock import utc_now
from poolwise.cluster.events import Recorder
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.resources import EVENTS
from poolwise.cluster.writer import Writer
from poolwise.errors import NamespaceEnds, Unavailable
from tests.fake_kube import FakeKube

BURST = 25
REFILL_SECONDS = 300.0


class Given:
    """A recorder, its clock, and what it wrote."""

    def __init__(self) -> None:
        self.kube = FakeKube()
        self.clock = SimpleNamespace(seconds=1000.0)
        writer = Writer(self.kube, Cache(), lambda: math.inf)
        decisions = Metrics().decisions
        self.recorder = Recorder(writer, "me", utc_now, lambda: self.clock.seconds, decisions)

    def tell(
        self,
        reason: str = "Placed",
        note: str = "on a",
        uid: str = "u",
        namespace: str = "a",
        warning: bool = False,
        name: str = "llama",
    ) -> bool:
        metadata = {"name": name, "namespace": namespace, "uid": uid}
        about = {"apiVersion": "poolwise.dev/v1alpha1", "kind": "TrainingJob", "metadata": metadata}
        return asyncio.run(self.recorder.record(about, reason, note, warning=warning))

    @property
    def told(self) -> list[str]:
        return [event["note"] for event in self.kube.all(EVENTS)]


@pytest.fixture
def given():
    return Given()


@pytest.mark.parametrize("sign", [".", "-", "-.-"])
def test_an_object_with_a_long_name_has_events_too(given, sign):
    """Cut anywhere, its name need not be the beginning of another one."""
    label = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    assert given.tell(name="a" * (200 - len(sign)) + sign + "b")
    (event,) = given.kube.all(EVENTS)
    assert re.fullmatch(rf"{label}(\.{label})*", event["metadata"]["name"])


@pytest.mark.parametrize(
    ("namespace", "where"), [("a", "a"), ("", "default")], ids=["namespaced", "of-the-cluster"]
)
def test_an_event_stands_where_kubectl_looks_for_it(given, namespace, where):
    given.tell(namespace=namespace)
    [event] = given.kube.all(EVENTS)
    assert event["metadata"]["namespace"] == where
    assert event["regarding"]["namespace"] == namespace


@pytest.mark.parametrize(("warning", "kind"), [(False, "Normal"), (True, "Warning")])
def test_an_event_says_whether_somebody_should_look(given, warning, kind):
    given.tell(warning=warning)
    assert [event["type"] for event in given.kube.all(EVENTS)] == [kind]


def test_a_decision_that_comes_back_is_told_again(given):
    for note in ("on a", "on b", "on a"):
        assert given.tell(note=note)
    assert given.told == ["on a", "on b", "on a"]


def test_one_that_flaps_is_told_a_few_times_and_then_now_and_then(given):
    told = [given.tell(note=f"on {'ab'[count % 2]}") for count in range(2 * BURST)]
    assert told == [True] * BURST + [False] * BURST
    given.clock.seconds += 3 * REFILL_SECONDS
    assert [given.tell() for _ in range(5)] == [True, True, True, False, False]


def test_it_costs_no_other_reason_and_no_other_object_its_events(given):
    for _ in range(2 * BURST):
        given.tell("ScaledUp")
    assert given.tell("Placed")
    assert given.tell("ScaledUp", uid="another")


def test_events_that_could_not_be_written_use_nothing_up(given):
    def away(write):
        raise Unavailable("503")

    given.kube.before_write = away
    assert not any(given.tell() for _ in range(2 * BURST))
    given.kube.before_write = lambda write: None
    assert given.tell()


@pytest.mark.parametrize(("error", "lines"), [(NamespaceEnds("403"), 0), (Unavailable("503"), 1)])
def test_one_that_nobody_will_read_is_not_missed(given, error, lines, log):
    def fail(write):
        raise error

    given.kube.before_write = fail
    assert not given.tell()
    assert len(log.getvalue().splitlines()) == lines


def test_what_is_remembered_is_bounded(given):
    for number in range(5000):
        given.tell(uid=str(number))
    assert len(given.recorder._due_at) == 4096
    assert Counter(given.told) == {"on a": 5000}
