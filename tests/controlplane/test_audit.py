from __future__ import annotations

import json
from pathlib import Path

from e2e.controlplane.audit import AuditLog


def event(user: str, verb: str, resource: str, subresource: str = "") -> str:
    target = {"resource": resource, "namespace": "research", "name": "llama"}
    if subresource:
        target["subresource"] = subresource
    return json.dumps(
        {
            "verb": verb,
            "user": {"username": user},
            "userAgent": "poolwise/0.1.0 (linux)",
            "objectRef": target,
            "responseStatus": {"code": 200},
            "requestReceivedTimestamp": "2026-11-21T12:51:36.634908Z",
        }
    )


def test_writes_are_found_by_user_agent_verb_and_resource(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    events = [
        event("ada", "create", "trainingjobs"),
        event("system:serviceaccount:poolwise:poolwise", "patch", "trainingjobs", "status"),
    ]
    log.path.write_text("\n".join(events) + "\n")
    assert [write.resource for write in log.writes()] == ["trainingjobs", "trainingjobs/status"]
    assert [write.verb for write in log.writes(user="ada")] == ["create"]
    assert len(log.writes(user="poolwise/")) == 2
    assert not log.writes(user="ada", verb="patch")
    [status] = log.writes(resource="trainingjobs/status")
    assert str(status).endswith("patch trainingjobs/status research/llama: 200")


def test_only_what_came_after_the_mark_and_is_whole_counts(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.path.write_text(event("ada", "create", "jobs") + "\n")
    mark = log.mark()
    with log.path.open("a") as file:
        file.write(event("ada", "delete", "jobs") + "\n" + event("ada", "patch", "jobs")[:40])
    assert [write.verb for write in log.writes(since=mark)] == ["delete"]


def test_a_mark_set_amid_a_line_that_is_being_written_reads_that_line_whole(
    tmp_path: Path,
) -> None:
    log = AuditLog(tmp_path / "audit.log")
    line = event("ada", "patch", "jobs") + "\n"
    for begun in (line[:40], event("ada", "create", "jobs") + "\n" + line[:40]):
        log.path.write_text(begun)
        mark = log.mark()
        with log.path.open("a") as file:
            file.write(line[40:])
        assert [write.verb for write in log.writes(since=mark)] == ["patch"]
