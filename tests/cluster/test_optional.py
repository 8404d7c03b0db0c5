"""Optional APIs: taken up when they appear, given up when they go, off with a sentence when they
cannot be used; and none of it ever stops the rest."""

from __future__ import annotations

import asyncio

import pytest

from poolwise.cluster.cache import Cache
from poolwise.cluster.optional import OptionalApis
from poolwise.cluster.pruning import pruned
from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import (
    CLUSTER_QUEUES,
    JOB_SETS,
    LOCAL_QUEUES,
    OTHER_SERVICES,
    QUEUED,
    SERVICES,
    resource_of,
)
from poolwise.errors import Forbidden, Unauthorized, Unavailable, Unreachable
from poolwise.plan.names import INFERENCE, INFERENCE_OLD, JOBSET, KUEUE
from poolwise.settings import Settings
from tests.fake_kube import FakeKube


def queue(name, version="v1beta2"):
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": "LocalQueue",
        "metadata": {"namespace": "research", "name": name},
        "spec": {"clusterQueue": "all"},
    }


class Listener:
    """Puts what it sees into the cache, as the engine does, and counts."""

    def __init__(self, cache):
        self.cache, self.seen, self.gone, self.moves = cache, [], [], 0

    def see(self, resource, change, document):
        self.seen.append((change, document["metadata"]["name"]))
        if change == "DELETED":
            self.cache.remove(resource, document)
        else:
            self.cache.put(resource, document)

    def touch(self, resource, document):
        self.gone.append(document["metadata"]["name"])

    def touch_all(self):
        self.moves += 1


class Given:
    """Discovery on a fake cluster; ``await self.look()`` is what the timer does."""

    def __init__(self):
        self.kube, self.cache, self.readiness = FakeKube(), Cache(), Readiness()
        self.apis = OptionalApis(self.kube, self.kube, self.cache, Settings(), self.readiness)
        self.listener = Listener(self.cache)
        self.apis.listen(self.listener)
        self.look = self.apis.look

    def play(self, story):
        async def tell():
            try:
                await story(self)
            finally:
                for task in asyncio.all_tasks() - {asyncio.current_task()}:
                    task.cancel()

        asyncio.run(tell())
        return self

    def known(self, resource):
        return {each["metadata"]["name"] for each in self.cache.stores[resource]}


async def passes():
    for _ in range(20):
        await asyncio.sleep(0)


def test_what_is_served_at_the_start_is_known_before_anybody_listens():
    async def story(given):
        given.kube.optional[KUEUE] = ("v1beta1", "v1beta2")
        given.kube.put(queue("team-a"))
        await given.apis.open()

    given = Given().play(story)
    assert given.cache.observed().apis == {KUEUE: "v1beta2"}
    assert [each["metadata"]["name"] for each in given.cache.observed().queues.local_queues] == [
        "team-a"
    ]
    assert given.cache.observed().apis_off == {}


def test_an_api_that_appears_later_is_taken_up_and_followed():
    async def story(given):
        await given.look()
        assert given.cache.apis == {}
        given.kube.optional[KUEUE] = ("v1beta2",)
        given.kube.put(queue("team-a"))
        await given.look()
        assert given.cache.apis == {KUEUE: "v1beta2"}
        assert given.listener.moves == 1
        await passes()
        await given.kube.streams[LOCAL_QUEUES].put(("ADDED", given.kube.put(queue("team-b"))))
        await passes()

    assert Given().play(story).known(LOCAL_QUEUES) == {"team-a", "team-b"}


def test_an_api_that_goes_away_is_forgotten_and_comes_back(log):
    async def story(given):
        given.kube.optional[KUEUE] = ("v1beta2",)
        live = given.kube.put(queue("team-a"))
        await given.look()
        del given.kube.optional[KUEUE]
        await given.look()
        await given.look()
        assert log.getvalue().count("an optional API is used no more") == 1
        assert given.cache.apis == {}
        assert given.known(LOCAL_QUEUES) == set()
        given.kube.optional[KUEUE] = ("v1beta2",)
        await given.look()
        assert given.known(LOCAL_QUEUES) == {live["metadata"]["name"]}
        assert given.listener.moves == 3

    Given().play(story)


def test_the_older_version_is_spoken_where_it_is_the_only_one():
    async def story(given):
        given.kube.optional[KUEUE] = ("v1beta1",)
        given.kube.put(queue("team-a", "v1beta1"))
        await given.look()
        assert given.cache.apis == {KUEUE: "v1beta1"}
        stored = given.cache.get(LOCAL_QUEUES, "research", "team-a")
        assert resource_of(stored).path("research") == (
            "/apis/kueue.x-k8s.io/v1beta1/namespaces/research/localqueues"
        )
        given.kube.optional[KUEUE] = ("v1beta1", "v1beta2")
        await given.look()
        assert given.cache.apis == {KUEUE: "v1beta2"}, "an upgrade is followed"

    Given().play(story)


def test_a_version_that_we_do_not_speak_is_off_with_the_reason():
    async def story(given):
        given.kube.optional[KUEUE] = ("v1",)
        await given.look()

    given = Given().play(story)
    assert given.cache.apis == {}
    told = given.cache.observed().apis_off[KUEUE]
    assert told == "Kueue serves kueue.x-k8s.io in v1; Poolwise speaks v1beta2 or v1beta1"


def test_an_api_without_all_its_kinds_is_off_with_their_names():
    async def story(given):
        given.kube.optional[KUEUE] = ("v1beta2",)
        discovered = given.kube.discovered

        async def without_checks(group, version):
            return await discovered(group, version) - {"admissionchecks"}

        given.kube.discovered = without_checks
        await given.look()

    given = Given().play(story)
    assert given.cache.observed().apis_off[KUEUE] == (
        "kueue.x-k8s.io/v1beta2 is served without AdmissionCheck, which Poolwise needs"
    )


def failing(kube, error, of=None):
    pages = kube.pages

    async def list_or_fail(resource, namespace=None, *, metadata_only=False):
        if of in (None, resource):
            raise error
        async for page in pages(resource, namespace, metadata_only=metadata_only):
            yield page

    kube.pages = list_or_fail
    return lambda: setattr(kube, "pages", pages)


def test_a_missing_right_turns_one_api_off_and_leaves_the_others():
    async def story(given):
        given.kube.optional |= {KUEUE: ("v1beta2",), JOBSET: ("v1alpha2",)}
        heal = failing(
            given.kube,
            Forbidden('User "x" cannot list resource "clusterqueues"'),
            CLUSTER_QUEUES,
        )
        await given.look()
        assert given.cache.apis == {JOBSET: "v1alpha2"}
        assert given.cache.apis_off[KUEUE] == (
            'Kueue is installed, but Poolwise may not read it: User "x" cannot list resource '
            '"clusterqueues"; the chart\'s roles give this right (files/rights.yaml)'
        )
        heal()
        await given.look()
        assert given.cache.apis == {JOBSET: "v1alpha2", KUEUE: "v1beta2"}
        assert given.cache.apis_off == {}

    Given().play(story)


def test_a_right_that_is_lost_keeps_what_is_known_to_run():
    async def story(given):
        given.kube.optional[JOBSET] = ("v1alpha2",)
        given.kube.put(
            {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "metadata": {
                    "namespace": "research",
                    "name": "llama",
                    "labels": {"app.kubernetes.io/managed-by": "poolwise"},
                },
            }
        )
        await given.look()
        failing(given.kube, Forbidden('User "x" cannot list resource "jobsets"'))
        await given.look()
        await passes()  # the watch lists, and ends
        await given.look()

    given = Given().play(story)
    assert given.cache.apis == {}
    assert given.known(JOB_SETS) == {"llama"}
    assert [child["kind"] for child in given.cache.observed().children] == ["JobSet"]


@pytest.mark.parametrize("method", ["groups", "discovered", "pages"])
def test_an_api_server_that_does_not_answer_changes_nothing(method):
    async def story(given):
        given.kube.optional[KUEUE] = ("v1beta2",)
        given.kube.put(queue("team-a"))
        await given.look()

        def silent(*args, **options):
            raise Unavailable("503")

        setattr(given.kube, method, silent)
        await given.look()

    given = Given().play(story)
    assert given.cache.apis == {KUEUE: "v1beta2"}
    assert given.known(LOCAL_QUEUES) == {"team-a"}


def test_one_that_cannot_be_read_holds_up_no_other(log):
    """As while the webhook that converts its objects is down."""
    broken = Unavailable("500 conversion webhook failed")

    async def story(given):
        given.kube.optional |= {KUEUE: ("v1beta2",), JOBSET: ("v1alpha2",), INFERENCE: ("v1",)}
        given.kube.put(service("epp"))
        heal = failing(given.kube, broken, CLUSTER_QUEUES)
        for _ in range(3):
            await given.look()
        assert given.cache.apis == {JOBSET: "v1alpha2", INFERENCE: "v1"}
        assert given.known(OTHER_SERVICES) == {"epp"}
        assert log.getvalue().count("conversion webhook failed") == 1
        heal()
        await given.look()
        assert KUEUE in given.cache.apis
        assert log.getvalue().count("can be read again") == 1

    Given().play(story)


def test_what_is_waited_for_at_the_start_is_said():
    """What runs there must be known before anything is decided."""

    async def story(given):
        given.readiness.filled()
        given.kube.optional[KUEUE] = ("v1beta2",)
        heal = failing(given.kube, Unavailable("500 conversion webhook failed", 0.05))
        opening = asyncio.create_task(given.apis.open())
        await passes()
        assert given.readiness.problem == (
            "optional APIs cannot be read: 500 conversion webhook failed"
        )
        heal()
        await opening
        assert given.readiness.problem is None

    assert Given().play(story).cache.apis == {KUEUE: "v1beta2"}


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (Unreachable("Connection refused", 0.05), "does not answer: Connection refused"),
        (Unauthorized("401", 0.05), "does not accept our credentials: 401"),
    ],
    ids=["away", "no-credentials"],
)
def test_a_server_that_goes_away_at_the_start_is_named(error, says):
    async def story(given):
        given.readiness.server = "https://10.0.0.1:443"
        given.readiness.filled()
        groups = given.kube.groups

        async def away():
            raise error

        given.kube.groups = away
        opening = asyncio.create_task(given.apis.open())
        await passes()
        assert given.readiness.problem == f"the API server https://10.0.0.1:443 {says}"
        given.kube.groups = groups
        await opening
        assert given.readiness.problem is None

    Given().play(story)


def test_discovery_that_is_behind_the_lists_is_not_believed():
    """An API server that starts answers for its groups before it has found all of them."""

    async def story(given):
        given.kube.optional[KUEUE] = ("v1beta2",)
        given.kube.put(queue("team-a"))
        await given.look()

        async def none_yet():
            return {}

        given.kube.groups = none_yet
        await given.look()

    given = Given().play(story)
    assert given.cache.apis == {KUEUE: "v1beta2"}
    assert given.known(LOCAL_QUEUES) == {"team-a"}


def test_what_vanished_while_no_watch_was_open_is_dropped_and_told():
    async def story(given):
        given.kube.optional[KUEUE] = ("v1beta2",)
        given.kube.put(queue("team-a"))
        await given.look()
        ghost = given.kube.put(queue("ghost"))
        given.cache.put(LOCAL_QUEUES, ghost)
        given.kube.vanish(ghost)
        await passes()
        assert given.listener.gone == ["ghost"]

    assert Given().play(story).known(LOCAL_QUEUES) == {"team-a"}


def test_an_event_of_the_end_removes_what_ended():
    async def story(given):
        given.kube.optional[KUEUE] = ("v1beta2",)
        live = given.kube.put(queue("team-a"))
        await given.look()
        await passes()
        await given.kube.streams[LOCAL_QUEUES].put(("DELETED", live))
        await passes()

    assert Given().play(story).known(LOCAL_QUEUES) == set()


def test_kinds_that_are_not_watched_have_no_resource():
    with pytest.raises(KeyError):
        resource_of({"apiVersion": "kueue.x-k8s.io/v1", "kind": "Workload"})
    assert resource_of({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload"}) == QUEUED


def service(name, managed_by="Helm"):
    labels = {"app.kubernetes.io/managed-by": managed_by}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": "search", "name": name, "labels": labels},
        "spec": {"selector": {"app": name}, "clusterIP": "10.0.0.1"},
    }


def test_what_objects_point_to_is_followed_while_their_api_is_in_use():
    async def story(given):
        given.kube.put(service("epp"))
        given.kube.put(service("chat", "poolwise"))
        await given.look()
        assert given.known(OTHER_SERVICES) == set()
        given.kube.optional |= {INFERENCE: ("v1",), INFERENCE_OLD: ("v1alpha2",)}
        await given.look()
        assert given.known(OTHER_SERVICES) == {"epp"}
        await passes()
        late = given.kube.put(service("late"))
        await given.kube.streams[OTHER_SERVICES].put(("ADDED", late))
        await passes()
        assert given.known(OTHER_SERVICES) == {"epp", "late"}
        del given.kube.optional[INFERENCE]
        await given.look()
        assert given.known(OTHER_SERVICES) == {"epp", "late"}
        del given.kube.optional[INFERENCE_OLD]
        await given.look()
        assert given.known(OTHER_SERVICES) == set()
        assert given.known(SERVICES) == set(), "those are watched elsewhere"

    Given().play(story)


def test_services_that_may_not_be_read_cost_the_gateways_and_nothing_else():
    async def story(given):
        given.kube.put(service("epp"))
        given.kube.optional |= {INFERENCE: ("v1",), JOBSET: ("v1alpha2",)}
        heal = failing(given.kube, Forbidden("no services for you"), OTHER_SERVICES)
        await given.look()
        assert given.cache.apis == {JOBSET: "v1alpha2", INFERENCE: "v1"}
        assert given.known(OTHER_SERVICES) == set()
        heal()
        await given.look()
        assert given.known(OTHER_SERVICES) == {"epp"}

    Given().play(story)


def test_why_they_may_not_be_read_is_told_once_until_it_is_another_reason(log):
    def told():
        return log.getvalue().count("cannot be read; tried again")

    async def story(given):
        given.kube.optional[INFERENCE] = ("v1",)
        for expected, reason in ((1, "no services for you"), (2, "nor for anybody")):
            heal = failing(given.kube, Forbidden(reason), OTHER_SERVICES)
            for _ in range(3):
                await given.look()
            assert told() == expected
            heal()
        await given.look()
        assert log.getvalue().count("can be read again") == 1
        failing(given.kube, Forbidden(reason), OTHER_SERVICES)
        await passes()  # the watch lists, and ends
        for _ in range(3):
            await given.look()
        assert told() == 3

    Given().play(story)


def test_a_group_that_is_served_for_other_kinds_is_no_mistake():
    """inference.networking.x-k8s.io goes on to be served without its InferencePool."""

    async def story(given):
        given.kube.optional |= {INFERENCE: ("v1",), INFERENCE_OLD: ("v1alpha1",)}
        await given.look()

    given = Given().play(story)
    assert given.cache.apis == {INFERENCE: "v1"}
    assert given.cache.apis_off == {}


def test_of_others_services_little_is_kept():
    assert pruned(OTHER_SERVICES, {**service("epp"), "status": {"loadBalancer": {}}}) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": "search", "name": "epp"},
        "spec": {"selector": {"app": "epp"}},
    }
