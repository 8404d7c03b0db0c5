"""What users are told, and how often: Events of what comes back, statuses while a clock is set."""

from __future__ import annotations

from datetime import timedelta

import pytest

from poolwise.cluster.clock import utc_now
from poolwise.cluster.resources import DEPLOYMENTS, EVENTS, NODES, SERVICES
from poolwise.errors import Unavailable
from poolwise.settings import Settings
from tests.handlers.shell import Shell, chat_service, condition, h100_node, training_job


@pytest.fixture
def shell():
    shell = Shell()
    shell.put(h100_node(), h100_node())
    return shell


def events(shell, reason):
    return [each for each in shell.kube.all(EVENTS) if each["reason"] == reason]


def suspending(shell, job, suspend):
    def edit():
        live = shell.look(job)
        shell.put({**live, "spec": {**live["spec"], "suspend": suspend}})

    return edit


def test_a_run_that_is_suspended_a_second_time_is_told_so_again(shell):
    job = training_job("a", "train", 8)
    shell.put(job)
    shell.run(*(suspending(shell, job, suspend) for suspend in (True, False, True)))
    told = events(shell, "Suspended")
    assert len(told) == 2
    assert told[0]["note"] == told[1]["note"]
    assert len(events(shell, "Placed")) == 2
    assert shell.run() == []


def test_another_object_of_the_name_is_told_all_of_it(shell):
    shell.put(training_job("a", "train", 8))

    def replace():
        shell.kube.vanish(shell.look(training_job("a", "train", 8)))
        shell.put(training_job("a", "train", 8))

    shell.run(replace)
    assert len({each["regarding"]["uid"] for each in events(shell, "Placed")}) == 2


def test_a_status_that_cannot_be_written_at_first_makes_no_event_a_second_time(shell):
    shell.put(training_job("a", "train", 8))
    failures = [Unavailable("503")] * 3

    def break_down(write):
        if write.startswith("patch status trainingjobs") and failures:
            raise failures.pop()

    shell.kube.before_write = break_down
    shell.run(lambda: None, lambda: None, lambda: None, pause_seconds=0.1)
    assert not failures
    assert len(events(shell, "Placed")) == 1


def test_an_event_that_could_not_be_written_either_comes_with_the_status(shell):
    shell.put(training_job("a", "train", 8))
    failures = [Unavailable("503")] * 6

    def break_down(write):
        if ("status trainingjobs" in write or "events" in write) and failures:
            raise failures.pop()

    shell.kube.before_write = break_down
    shell.run(lambda: None, lambda: None, lambda: None, lambda: None, pause_seconds=0.1)
    assert not failures
    assert len(events(shell, "Placed")) == 1


def test_a_clock_that_is_set_back_holds_no_status_up(shell, monkeypatch):
    monkeypatch.setattr("tests.handlers.shell.SETTINGS", Settings(status_seconds=0.05))
    chat = chat_service("a", "chat")
    shell.put(chat)

    def set_back():
        earlier = utc_now() - timedelta(hours=1)
        monkeypatch.setattr("poolwise.handlers.story.utc_now", lambda: earlier)
        [deployment] = shell.kube.all(DEPLOYMENTS)
        shell.put(
            {**deployment, "status": {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1}}
        )

    shell.run(set_back, pause_seconds=0.2)
    assert shell.look(chat)["status"]["readyReplicas"] == 1


def test_what_was_decided_for_an_object_is_never_told_of_the_next_one_of_its_name(shell):
    """Deleted and made anew while its children are written."""
    runs = chat_service("a", "chat")
    wrong = chat_service("a", "chat", model={"preset": "no-such-model"})
    shell.put(runs)
    told = []

    def replace_once(write):
        if write == "apply services/chat":
            shell.kube.before_write = lambda write: None
            shell.kube.after_write = lambda write: told.append(accepted(shell.look(wrong)))
            shell.kube.vanish(shell.look(runs))
            shell.put(wrong)

    def lose_a_child():
        shell.kube.before_write = replace_once
        [service] = shell.kube.all(SERVICES)
        shell.kube.vanish(service)

    shell.run(lose_a_child)
    assert set(told) == {None, "False"}
    assert len(events(shell, "Placed")) == 1


def accepted(document):
    return condition(document, "Accepted").get("status")


def wiped(shell, workload):
    """Its status, by ``kubectl edit --subresource=status``."""

    def wipe():
        live = shell.look(workload)
        shell.put({**live, "status": {}})

    return wipe


@pytest.mark.parametrize("is_new_process", [False, True])
@pytest.mark.parametrize(
    "workload", [training_job("a", "train", 8), chat_service("a", "chat")], ids=["run", "service"]
)
def test_a_status_that_was_wiped_is_whole_again_at_once(shell, workload, is_new_process):
    shell.put(workload)
    shell.run()
    before, children = shell.look(workload)["status"], len(shell.kube.writes)
    if is_new_process:
        wiped(shell, workload)()
        shell.run()
    else:
        shell.run(wiped(shell, workload))
    after = shell.look(workload)["status"]
    aside = {"reason", "candidates", "significant"}
    told, known = after["plan"], before["plan"]
    assert {each: told.get(each) for each in known if each not in aside} == {
        each: known[each] for each in known if each not in aside
    }
    assert told["reason"].startswith("runs on ")
    assert [each["pool"] for each in told["candidates"]] == [
        each["pool"] for each in known["candidates"]
    ]
    statuses = {each["type"]: each["status"] for each in before["conditions"]}
    assert {each["type"]: each["status"] for each in after["conditions"]} == statuses
    planned = [condition({"status": each}, "Planned")["message"] for each in (before, after)]
    assert planned[0] == planned[1]
    writes = shell.kube.writes[children:]
    assert all(each.startswith(("patch status", "create events")) for each in writes)
    assert shell.run() == []


def test_a_story_without_its_prediction_gets_it_back(shell):
    """As versions before left one whose status was wiped."""
    chat = chat_service("a", "chat")
    shell.put(chat)
    shell.run()
    live = shell.look(chat)
    known = live["status"]["plan"]
    torn = {name: value for name, value in known.items() if name != "predicted"}
    shell.put({**live, "status": {**live["status"], "plan": torn}})
    shell.run()
    assert shell.look(chat)["status"]["plan"]["predicted"] == known["predicted"]


def test_what_others_took_meanwhile_makes_no_other_story(shell):
    chat = chat_service("a", "chat")
    shell.put(chat)
    shell.run()
    known = shell.look(chat)["status"]["plan"]
    shell.put(training_job("a", "train", 8), training_job("a", "rest", 4))
    shell.run(wiped(shell, chat))
    told = shell.look(chat)["status"]["plan"]
    figures = ("pool", "predicted", "replicas", "count", "shape", "costPerHour", "bottleneck")
    assert [told[each] for each in figures] == [known[each] for each in figures]
    assert told["placed"]


def test_a_status_that_was_wiped_when_its_pool_had_gone_has_no_prediction(shell):
    chat = chat_service("a", "chat")
    shell.put(chat)
    shell.run()
    pool = shell.look(chat)["status"]["plan"]["pool"]
    shell.start_pods("gone")
    for node in shell.kube.all(NODES):
        shell.kube.vanish(node)
    wiped(shell, chat)()
    shell.run()
    told = shell.look(chat)["status"]["plan"]
    assert (told["pool"], told["placed"], told.get("predicted")) == (pool, True, None)
