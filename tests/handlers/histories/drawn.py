"""Histories at random: what happens in them, and how long after."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from poolwise.plan.names import INFERENCE, JOBSET, LEADER_WORKER_SET, TRAINER
from tests.handlers.histories import documents as given
from tests.handlers.histories.events import ERRORS, Event, History
from tests.handlers.histories.metrics import Told
from tests.handlers.histories.queues import QUEUE
from tests.plan.children.set_cases import TORCH


def _event(name: str, *of: Any) -> st.SearchStrategy[Event]:
    return st.tuples(*of).map(lambda drawn: Event(name, drawn))


_indexes, _flags = st.integers(0, 5), st.booleans()
_jobs, _services = st.sampled_from(given.JOBS), st.sampled_from(given.SERVICES)
_nodes = st.sampled_from(given.NODES)
_POOLS = [
    {"nodeSelector": {given.GROUP_LABEL: "h"}, "price": {"perNodeHour": "80"}},
    {"nodeSelector": {given.GROUP_LABEL: "h"}, "maxNodes": 4, "nodeStartup": "2m"},
    {"nodeSelector": {given.GROUP_LABEL: "a"}, "allowedNamespaces": ["b"]},
    {"nodeSelector": {given.GROUP_LABEL: "x"}, "accelerator": "H100-SXM5-80GB"},
    {"nodeSelector": {given.GROUP_LABEL: "none"}, "accelerator": "nonsense", "maxNodes": 2},
    {"nodeSelector": {given.GROUP_LABEL: "a"}, "capacityType": "Spot"},
    {
        "nodeSelector": {given.GROUP_LABEL: "h"},
        "tolerateTaints": [{"key": given.TAINT["key"], "operator": "Exists"}],
    },
]
_PRICED: list[dict[str, Any]] = [
    {"nodeSelector": {given.GROUP_LABEL: group}, "price": {"perNodeHour": price}}
    for group in ("h", "a")
    for price in ("1", "80")
]
_PLURALS = [
    *("pods", "jobs", "deployments", "trainingjobs", "inferenceservices"),
    *("nodes", "acceleratorpools", "jobsets", "workloads"),
]


_creations = st.one_of(
    _event("create_job", _jobs, given.job_specs),
    _event("create_service", _services, given.service_specs),
)
_recreations = st.one_of(
    _event("recreate", st.just("TrainingJob"), _jobs, given.job_specs),
    _event("recreate", st.just("InferenceService"), _services, given.service_specs),
)
events = st.one_of(
    _creations,
    _creations,
    _creations,
    _recreations,
    _event("edit_job", _indexes, given.job_edits),
    _event("edit_job", _indexes, given.job_edits),
    _event("end_workload", _indexes),
    _event("pause", _indexes, _flags),
    _event("add_node", _nodes),
    _event("add_node", _nodes),
    _event("remove_node", _indexes),
    _event("cordon", _indexes, _flags),
    _event(
        "break_node",
        _indexes,
        st.sampled_from(["bare", "other product", "fewer devices", "not ready", "tainted", "well"]),
    ),
    _event("declare_pool", st.sampled_from(["mine", "other"]), st.sampled_from(_POOLS)),
    _event("delete", st.just("AcceleratorPool"), st.sampled_from(["mine", "other"])),
    _event("end_run", _indexes, st.sampled_from(["Succeeded", "Failed"])),
    _event("evict_pod", _indexes),
    _event("unready_pod", _indexes),
    _event("foreign_pod", _indexes, st.sampled_from([0, 2, 8])),
    _event("delete_child", _indexes),
    _event("damage_child", _indexes, st.sampled_from(["record", "{", "[]", "labels"])),
    _event("scale_child", _indexes, st.integers(0, 3)),
    _event("take_name", st.one_of(_jobs, _services), st.sampled_from(["Service", "Job"])),
    _event("autoscale", _services, st.sampled_from(["Deployment", "InferenceService"])),
    _event("kueue", st.sampled_from(["plain", "with check", "remove"])),
    _event("evict_from_queue", _indexes),
    _event("api", st.sampled_from([JOBSET, LEADER_WORKER_SET, TRAINER]), _flags),
    _event("api", st.just(INFERENCE), st.just(False)),
    _event("gateway", _services),
    _event("hold_requests", st.sampled_from([0.0, 3.0])),
    _event("tell", st.sampled_from(Told.STATES)),
    _event("lag", st.sampled_from(_PLURALS), st.sampled_from([0.0, 1.0, 30.0])),
    _event("fail_writes", st.sampled_from(sorted(ERRORS)), st.integers(1, 6)),
    _event("refuse", st.sampled_from(["jobs/j0", "services/s0", "events", "apply"]), _flags),
    _event("write_slowly", st.sampled_from([0.3, 5.0])),
    _event("bring_nodes", st.sampled_from(["h", "a", ""])),
    _event("start_slowly", st.sampled_from([1.0, 20.0, 300.0, 5000.0])),
    _event("schedule", _flags),
    st.just(Event("restart")),
)
waits = st.sampled_from([0.0, 0.1, 0.1, 3.0, 3.0, 30.0, 30.0, 30.0, 200.0, 200.0, 700.0])
_ASLEEP = {"scaling": {"minReplicas": 0, "maxReplicas": 4, "scaleToZero": True}}
_SPANNING = {"model": {"preset": "llama-3.1-405b", "uri": "pvc://models/405b"}}
_GROWING = {"nodeSelector": {given.GROUP_LABEL: "h"}, "maxNodes": 4, "nodeStartup": "2m"}
_BEGINNINGS: list[History] = [
    [],
    [],
    [
        (Event("gateway", ("s0",)), 0.0),
        (Event("tell", ("idle",)), 0.0),
        (Event("create_service", ("s0", _ASLEEP)), 900.0),
    ],
    [
        (Event("api", (LEADER_WORKER_SET, True)), 0.0),
        (Event("add_node", ("h2",)), 30.0),
        (Event("create_service", ("s1", _SPANNING)), 30.0),
    ],
    [
        (Event("api", (JOBSET, True)), 0.0),
        (Event("api", (TRAINER, True)), 30.0),
        (Event("create_job", ("j0", {"runtime": "JobSet"})), 0.0),
        (Event("create_job", ("j1", {"runtimeRef": {"name": TORCH}})), 30.0),
    ],
    [
        (Event("declare_pool", ("mine", _GROWING)), 0.0),
        (Event("bring_nodes", ("h",)), 0.0),
        (Event("create_job", ("j0", {"accelerators": {"count": 24}})), 30.0),
    ],
    [
        (Event("kueue", ("with check",)), 30.0),
        (Event("create_job", ("j0", {"queueName": QUEUE})), 3.0),
        (Event("create_job", ("j1", {"queueName": QUEUE})), 3.0),
    ],
]
"""What random events seldom bring about by themselves."""

_random = st.builds(
    lambda begin, first, rest: [*begin, *first, *rest],
    st.sampled_from(_BEGINNINGS),
    st.lists(st.tuples(_creations, waits), min_size=2, max_size=4),
    st.lists(st.tuples(events, waits), min_size=15, max_size=40),
)
_slips = st.one_of(
    _event("fail_writes", st.sampled_from(sorted(ERRORS)), st.integers(1, 6)),
    _event("write_slowly", st.sampled_from([0.3, 5.0, 20.0])),
    _event("lag", st.sampled_from(_PLURALS), st.sampled_from([0.0, 3.0, 30.0])),
    _event("restart", _flags),
    _event("step_down", _flags),
)
_nodes_come_and_go = st.one_of(
    _event("add_node", _nodes),
    _event("remove_node", _indexes),
    _event("foreign_pod", _indexes, st.sampled_from([0, 2, 8])),
)
_another_pool = _event("declare_pool", st.sampled_from(["mine", "other"]), st.sampled_from(_PRICED))


def _about(begin: History, *own: st.SearchStrategy[Event]) -> st.SearchStrategy[History]:
    """A beginning, and what happens to just that while little goes well."""
    one = st.one_of(*own, *own, _slips, _slips, _nodes_come_and_go, events)
    rest = st.lists(st.tuples(one, waits), min_size=8, max_size=25)
    return rest.map(lambda rest: [*begin, *rest])


_GROWS = st.sampled_from(
    [
        {**given.RATES[0], "scaling": {"minReplicas": 1, "maxReplicas": 12}},
        {**given.RATES[1], "scaling": {"minReplicas": 1, "maxReplicas": 12}},
        {**given.RATES[1], "scaling": {"minReplicas": 2, "maxReplicas": 24, "redundancy": 1}},
        {"scaling": {"minReplicas": 0, "maxReplicas": 12, "scaleToZero": True}},
        {**_SPANNING, "scaling": {"minReplicas": 1, "maxReplicas": 3}},
    ]
)
_two_services_grow = _about(
    [
        (Event("api", (LEADER_WORKER_SET, True)), 0.0),
        (Event("create_service", ("s0", {"scaling": {"maxReplicas": 12}})), 3.0),
        (Event("create_service", ("s1", {"scaling": {"maxReplicas": 12}})), 200.0),
    ],
    _event("tell_of", _services, st.sampled_from(["idle", "calm", "busy", "busy", "silent"])),
    _event("create_service", _services, _GROWS),
    _event("scale_child", _indexes, st.integers(0, 6)),
    _event("tell", st.sampled_from(["idle", "busy"])),
    _event("delete_child", _indexes),
)
_MOVABLE: dict[str, Any] = {**given.CHECKPOINTS, **given.LENGTHS[1]}
_RUNS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"priorityClassName": "low"},
        {"priorityClassName": "high"},
        {"priorityClassName": "high", "accelerators": {"count": 16}},
        {"priorityClassName": "low", "accelerators": {"min": 4, "max": 24}},
        {**_MOVABLE, "priorityClassName": "low"},
        {**_MOVABLE, "accelerators": {"count": 4}},
        {"objective": {"goal": "Cost"}, "accelerators": {"count": 4}},
    ]
)
_jobs_make_room = _about(
    [
        (Event("create_job", ("j0", {**_MOVABLE, "priorityClassName": "low"})), 3.0),
        (Event("create_job", ("j1", {**_MOVABLE, "priorityClassName": "low"})), 3.0),
        (Event("create_job", ("j2", {**_MOVABLE, "accelerators": {"count": 4}})), 200.0),
    ],
    _event("create_job", _jobs, _RUNS),
    _event("edit_job", _indexes, given.job_edits),
    _event("refuse", st.sampled_from(["jobs/j0", "delete", "trainingjobs/j1"]), _flags),
    _event("end_run", _indexes, st.sampled_from(["Succeeded", "Failed"])),
    _another_pool,
)
_queues_evict = _about(
    [
        (Event("kueue", ("plain",)), 30.0),
        *((Event("create_job", (each, {"queueName": QUEUE})), 3.0) for each in given.JOBS[:3]),
    ],
    _event("evict_from_queue", _indexes),
    _event("evict_from_queue", _indexes),
    _event("create_job", _jobs, _RUNS.map(lambda spec: {**spec, "queueName": QUEUE})),
    _event("edit_job", _indexes, given.job_edits),
    _event("kueue", st.sampled_from(["plain", "with check", "remove"])),
    _event("end_run", _indexes, st.sampled_from(["Succeeded", "Failed"])),
)
_pools_change = _about(
    [
        (Event("declare_pool", ("mine", _PRICED[0])), 0.0),
        (Event("create_job", ("j0", {})), 3.0),
        (Event("create_service", ("s0", {"scaling": {"maxReplicas": 6}})), 90.0),
    ],
    _another_pool,
    _another_pool,
    _event("delete", st.just("AcceleratorPool"), st.sampled_from(["mine", "other"])),
    _event("create_job", _jobs, _RUNS),
    _event("tell_of", _services, st.sampled_from(["idle", "busy"])),
)
histories = st.one_of(
    *(_random, _random, _random, _random),
    *(_two_services_grow, _jobs_make_room, _queues_evict, _pools_change),
)
