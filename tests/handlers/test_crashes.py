"""A crash after any single write ends, with the next process, in the state without a crash.

Sieve (OSDI'22) found most operator bugs in just such moments, and by two signs that are checked
here: another end state, and another number of creations and deletions.
"""

from __future__ import annotations

import copy
from collections import Counter

import pytest

from tests.handlers.shell import Shell, chat_service, h100_node, training_job

VOLATILE = {
    "uid",
    "resourceVersion",
    "lastTransitionTime",
    "finishTime",
    "creationTimestamp",
    "eventTime",
    "generation",
    "observedGeneration",
    "prices",  # of who waited in the pass that placed it: a crash may come between two passes
}


class Crash(BaseException):
    """The process is gone."""


def populated() -> Shell:
    """Placed, waiting, rejected, planned only, and a service."""
    shell = Shell()
    shell.put(
        h100_node(name="one"),
        training_job("a", "runs", 4),
        training_job("a", "waits", 8),
        training_job("a", "asks", 2, mode="Plan"),
        training_job("a", "unknown", 1, model={"preset": "no-such-model"}),
        chat_service("a", "chat"),
    )
    return shell


def end_state(shell: Shell) -> dict[str, object]:
    return {
        f"{resource.plural}/{name}": _stable(document)
        for (resource, _, name), document in sorted(
            shell.kube.objects.items(), key=lambda item: str(item[0])
        )
        if resource.plural not in ("events", "nodes")
    }


def _stable(value):
    if isinstance(value, dict):
        return {k: _stable(v) for k, v in value.items() if k not in VOLATILE}
    return [_stable(each) for each in value] if isinstance(value, list) else value


def lasting(writes: list[str]) -> Counter[str]:
    """Creations and deletions; a status may be written once more or once less."""
    return Counter(write for write in writes if "status" not in write and "events" not in write)


def crashed(crash_at: int) -> Shell:
    """After the end of a process right behind that write."""
    shell = populated()
    left = [crash_at]

    def crash(write):
        left[0] -= 1
        if left[0] == 0:
            raise Crash(write)

    shell.kube.after_write = crash
    with pytest.raises(Crash):
        shell.run()
    shell.kube.after_write = lambda write: None
    return shell


REFERENCE = populated()
WRITES = REFERENCE.run()


@pytest.mark.parametrize("crash_at", range(1, len(WRITES) + 1))
def test_a_crash_after_each_write(crash_at):
    shell = crashed(crash_at)
    shell.run()
    assert end_state(shell) == end_state(REFERENCE)
    assert lasting(shell.kube.writes) == lasting(WRITES)
    assert shell.run() == []


@pytest.mark.parametrize("crash_at", range(1, len(WRITES) + 1))
def test_a_decision_is_told_whenever_the_process_ends(crash_at):
    shell = crashed(crash_at)
    shell.run()
    assert set(told(shell)) == set(told(REFERENCE))


def told(shell: Shell) -> Counter[tuple[str, str]]:
    """Events, by whom they are about and why."""
    events = [each for (key, *_), each in shell.kube.objects.items() if key.plural == "events"]
    return Counter((each["regarding"]["name"], each["reason"]) for each in events)


def test_the_reference_is_worth_comparing_with():
    kinds = {name.partition("/")[0] for name in end_state(REFERENCE)}
    assert {"jobs", "services", "deployments", "poddisruptionbudgets"} <= kinds
    assert len(WRITES) > 10
    assert copy.deepcopy(REFERENCE.kube.writes) == WRITES
