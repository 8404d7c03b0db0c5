"""Short histories, each for one way to break promises: what random ones meet now and then."""

from __future__ import annotations

from poolwise.plan.names import LEADER_WORKER_SET
from tests.handlers.histories.documents import CHECKPOINTS, GROUP_LABEL, LENGTHS
from tests.handlers.histories.events import Event, History

_SPANNING = {"model": {"preset": "llama-3.1-405b", "uri": "pvc://models/405b"}}
_TWO_RUN_AND_ONE_WAITS = [
    (Event("create_job", ("j0", {})), 3.0),
    (Event("create_job", ("j1", {})), 3.0),
    (Event("create_job", ("j2", {})), 200.0),
]
_H100S = {"nodeSelector": {GROUP_LABEL: "h"}}
_TRAFFIC = {
    "inputTokens": {"p50": 300, "p95": 1200},
    "outputTokens": {"p50": 200, "p95": 600},
}
_OF_20_PER_SECOND = {
    "slo": [{"metric": "TTFT", "percentile": 99, "target": "500ms"}],
    "traffic": {"requestsPerSecond": "20", **_TRAFFIC},
}
_OF_150_PER_SECOND = {"traffic": {"requestsPerSecond": "150", **_TRAFFIC}}
_STOPS_FOR_OTHERS = {**CHECKPOINTS, **LENGTHS[1], "priorityClassName": "low"}
_FOR_WHOM_ALL_STOP = {"priorityClassName": "high", "accelerators": {"count": 16}}
KNOWN: dict[str, History] = {
    "own writes count before watches tell of them": [
        *((Event("lag", (each, 3.0)), 0.0) for each in ("jobs", "deployments", "trainingjobs")),
        (Event("create_job", ("j0", {})), 0.0),
        (Event("create_service", ("s0", {})), 30.0),
    ],
    "a node that comes is used": [*_TWO_RUN_AND_ONE_WAITS, (Event("add_node", ("h2",)), 30.0)],
    "a node that changes its labels is seen": [
        (Event("create_job", ("j0", {})), 90.0),
        (Event("break_node", (0, "other product")), 30.0),
        (Event("create_job", ("j1", {"accelerators": {"count": 16}})), 30.0),
        (Event("break_node", (0, "well")), 30.0),
    ],
    "what has ended holds nothing": [
        *_TWO_RUN_AND_ONE_WAITS,
        (Event("end_run", (0, "Succeeded")), 30.0),
    ],
    "a conflict is answered by another attempt": [
        (Event("create_job", ("j0", {})), 200.0),
        (Event("fail_writes", ("409", 1)), 0.0),
        (Event("delete_child", (1,)), 30.0),
    ],
    "a record that was lost is written again": [
        (Event("create_job", ("j0", {})), 90.0),
        (Event("damage_child", (0, "record")), 30.0),
    ],
    "what is refused again and again leaves its nodes idle": [
        (Event("take_name", ("s0", "Service")), 30.0),
        (Event("create_service", ("s0", {})), 700.0),
    ],
    "what is paused is left alone": [
        (Event("create_service", ("s0", {})), 90.0),
        (Event("pause", (0, True)), 120.0),
        (Event("scale_child", (0, 3)), 30.0),
    ],
    "another price is told": [
        (Event("declare_pool", ("mine", _H100S)), 3.0),
        (Event("create_job", ("j0", {})), 90.0),
        (Event("declare_pool", ("mine", {**_H100S, "price": {"perNodeHour": "80"}})), 30.0),
    ],
    "another kind of child takes the place of the first": [
        (Event("api", (LEADER_WORKER_SET, True)), 0.0),
        (Event("add_node", ("h2",)), 30.0),
        (Event("create_service", ("s1", {})), 90.0),
        (Event("create_service", ("s1", _SPANNING)), 200.0),
    ],
    "places count before they are written": [
        (Event("write_slowly", (5.0,)), 0.0),
        (Event("create_job", ("j0", {})), 3.0),
        (Event("create_job", ("j1", {})), 30.0),
    ],
    "who others stopped for gets the room": [
        (Event("create_job", ("j0", _STOPS_FOR_OTHERS)), 3.0),
        (Event("create_job", ("j1", {**_STOPS_FOR_OTHERS, "accelerators": {"count": 4}})), 300.0),
        (Event("create_job", ("j2", _FOR_WHOM_ALL_STOP)), 200.0),
    ],
    "replicas that are being added count before they are written": [
        (Event("create_service", ("s1", {})), 3.0),
        (Event("create_service", ("s0", _OF_20_PER_SECOND)), 200.0),
        (Event("tell", ("busy",)), 3.0),
    ],
    "a plan that was refused is not tried once more while others get its place": [
        (Event("create_service", ("s0", {**_OF_150_PER_SECOND, "replicas": 9})), 0.0),
        (Event("create_job", ("j1", {})), 200.0),
        (Event("remove_node", (0,)), 230.0),
        (Event("schedule", (False,)), 0.0),
        (Event("create_job", ("j0", {})), 3.0),
        (Event("refuse", ("services/s0", True)), 700.0),
        (Event("delete_child", (1,)), 30.0),
    ],
}
