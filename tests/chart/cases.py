"""Sets of values in which people install the chart; what they give is in ``golden/``."""

from __future__ import annotations

from typing import Any

from tests.chart.rendering import LEAN, merged
from tests.chart.variations import CHANGES, DIGEST, MONITORING, PEER

CASES: dict[str, dict[str, Any]] = {
    "default": LEAN,
    "monitored": merged(
        LEAN,
        *MONITORING.values(),
        {"monitoring": {"serviceMonitor": {"labels": {"release": "prometheus"}}}},
    ),
    "one-namespace": merged(
        LEAN,
        {
            "namespaces": ["research"],
            "settings": {"lease_name": "poolwise-research", "currency": "EUR"},
            "rbac": {"aggregate": False},
            "nameOverride": "research",
        },
    ),
    "locked-down": merged(
        LEAN,
        {
            "image": {"digest": DIGEST},
            "imagePullSecrets": [{"name": "registry"}],
            "commonLabels": {"team": "platform"},
            "hostUsers": False,
            "priorityClassName": "system-cluster-critical",
            "nodeSelector": {"role": "system"},
            "tolerations": CHANGES["tolerations"],
            "topologySpread": {"hostname": "DoNotSchedule"},
            "networkPolicy": {
                "metricsFrom": PEER,
                "apiServerTo": [{"ipBlock": {"cidr": "10.0.0.1/32"}}],
            },
            "serviceAccount": {"create": False, "name": "placer"},
        },
    ),
}
"""Without CRDs, which have their own tests."""
