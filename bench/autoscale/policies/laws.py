"""Every law by name: how it is made, and its setting as published and as tuned in hindsight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.autoscale.policies.apa import Apa
from bench.autoscale.policies.dynamo_hybrid import DynamoHybrid
from bench.autoscale.policies.dynamo_load import DynamoLoad
from bench.autoscale.policies.dynamo_throughput import DynamoThroughput
from bench.autoscale.policies.hpa_running import HpaRunning
from bench.autoscale.policies.hpa_utilization import HpaUtilization
from bench.autoscale.policies.keda_waiting import KedaWaiting
from bench.autoscale.policies.kpa import Kpa
from bench.autoscale.policies.llmd_slo import LlmdSlo
from bench.autoscale.policies.service import Service
from bench.autoscale.policies.wva_queue import WvaQueue
from bench.autoscale.policies.wva_saturation import WvaSaturation
from bench.autoscale.policy import Policy

Setting = dict[str, float | str]


@dataclass(frozen=True)
class Knob:
    """A law's main target; ``most`` is the end of its range that asks for the most replicas."""

    name: str
    published: float
    most: float
    fewest: float


@dataclass(frozen=True)
class Law:
    """A rival."""

    make: Callable[..., Policy]
    knob: Knob
    beside: Setting
    """What the knob is tuned together with, kinder to the law than what is published."""
    others: tuple[Setting, ...] = ()
    """Settings that are tried as they are; the published one is tried anyway."""

    def policy(self, service: Service, setting: Setting) -> Policy:
        """A fresh one."""
        arguments: dict[str, Any] = setting
        return self.make(service, **arguments)


AT_ONCE: Setting = {"window_seconds": 0.0}
"""WVA's number without the 240 s for which its guide's HPA holds it."""

LAWS: dict[str, Law] = {
    "hpa_running": Law(HpaRunning, Knob("target", 16.0, 0.5, 256.0), {}),
    "hpa_utilization": Law(HpaUtilization, Knob("target", 0.8, 0.3, 1.0), {}),
    "keda_waiting": Law(KedaWaiting, Knob("threshold", 5.0, 0.02, 40.0), {}),
    "kpa": Law(Kpa, Knob("target", 70.0, 0.5, 256.0), {}),
    "apa": Law(Apa, Knob("target", 0.5, 0.02, 0.95), {}),
    "wva_saturation": Law(
        WvaSaturation, Knob("kv_threshold", 0.8, 0.12, 0.98), AT_ONCE, (AT_ONCE,)
    ),
    "wva_queue": Law(WvaQueue, Knob("scale", 1.0, 0.1, 2.0), AT_ONCE, (AT_ONCE,)),
    "dynamo_load": Law(
        DynamoLoad,
        Knob("scale", 1.0, 0.1, 2.0),
        {},
        ({"mode": "throughput"}, {"mode": "latency"}),
    ),
    "dynamo_hybrid": Law(
        DynamoHybrid, Knob("scale", 1.0, 0.1, 2.0), {}, ({"predictor": "constant"},)
    ),
    "dynamo_throughput": Law(
        DynamoThroughput, Knob("scale", 1.0, 0.1, 2.0), {}, ({"predictor": "constant"},)
    ),
    "llmd_slo": Law(LlmdSlo, Knob("up", 0.55, 0.05, 1.2), {}),
}
