"""For each value of the chart: another than its default, and what makes that one count."""

from __future__ import annotations

from typing import Any

ON = {"enabled": True}
DIGEST = "sha256:" + "0123456789abcdef" * 4
PEER = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
RULE = [{"ports": [{"port": 9443, "protocol": "TCP"}]}]
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more"}}
NODE_TERMS = [{"matchExpressions": [{"key": "role", "operator": "In", "values": ["system"]}]}]
NODE_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": NODE_TERMS}
}
MONITORING = {
    name: {"monitoring": {name: ON}}
    for name in ("serviceMonitor", "podMonitor", "workloads", "prometheusRule", "dashboards")
}

CHANGES: dict[str, Any] = {
    "image.repository": "registry.example.org/other",
    "image.tag": "1.2.3",
    "image.digest": DIGEST,
    "image.pullPolicy": "Always",
    "imagePullSecrets": [{"name": "registry"}],
    "nameOverride": "placement",
    "fullnameOverride": "placement",
    "commonLabels": {"team": "platform"},
    "replicas": 3,
    "namespaces": ["research"],
    "settings": {"currency": "EUR"},
    "extraArgs": ["--kubeconfig=/config/file"],
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example.com:3128"}],
    "extraVolumes": [{"name": "config", "configMap": {"name": "config"}}],
    "extraVolumeMounts": [{"name": "tmp", "mountPath": "/config", "readOnly": True}],
    "extraObjects": [CONFIG_MAP],
    "resources": {"limits": {"cpu": 2}},
    "podLabels": {"team": "platform"},
    "podAnnotations": {"example.com/note": "text"},
    "podSecurityContext": {"runAsUser": 1000},
    "hostUsers": False,
    "priorityClassName": "system-cluster-critical",
    "nodeSelector": {"role": "system"},
    "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": NODE_AFFINITY},
    "topologySpread.hostname": "DoNotSchedule",
    "topologySpread.zone": "",
    "podDisruptionBudget.enabled": False,
    "podDisruptionBudget.maxUnavailable": "50%",
    "serviceAccount.create": False,
    "serviceAccount.name": "placer",
    "serviceAccount.annotations": {"example.com/role": "placer"},
    "rbac.create": False,
    "rbac.aggregate": False,
    "crds.install": False,
    "crds.keep": False,
    "networkPolicy.enabled": False,
    "networkPolicy.metricsFrom": PEER,
    "networkPolicy.dnsTo": PEER,
    "networkPolicy.apiServerTo": [{"ipBlock": {"cidr": "10.0.0.1/32"}}],
    "networkPolicy.apiServerPorts": [8443],
    "networkPolicy.gatewayMetricsPorts": [9090, 9190],
    "networkPolicy.extraIngress": RULE,
    "networkPolicy.extraEgress": RULE,
    "admissionPolicy.operator.enabled": False,
    "admissionPolicy.operator.validationActions": ["Warn", "Audit"],
    "admissionPolicy.requester.enabled": False,
    "admissionPolicy.requester.validationActions": ["Audit"],
    "monitoring.service.enabled": False,
    "monitoring.service.port": 9090,
    "monitoring.service.annotations": {"prometheus.io/scrape": "true"},
    "monitoring.serviceMonitor.enabled": True,
    "monitoring.serviceMonitor.interval": "1m",
    "monitoring.serviceMonitor.labels": {"release": "prometheus"},
    "monitoring.podMonitor.enabled": True,
    "monitoring.podMonitor.interval": "1m",
    "monitoring.podMonitor.labels": {"release": "prometheus"},
    "monitoring.workloads.enabled": True,
    "monitoring.workloads.interval": "1m",
    "monitoring.workloads.labels": {"release": "prometheus"},
    "monitoring.prometheusRule.enabled": True,
    "monitoring.prometheusRule.labels": {"release": "prometheus"},
    "monitoring.prometheusRule.runbookBaseUrl": "https://wiki.example.com/poolwise",
    "monitoring.dashboards.enabled": True,
    "monitoring.dashboards.namespace": "monitoring",
    "monitoring.dashboards.labels": {"grafana_dashboard": "yes"},
    "monitoring.dashboards.annotations": {"grafana_folder": "AI"},
    "test.enabled": False,
    "test.waitSeconds": 30,
}


def context(path: str) -> dict[str, Any]:
    """What has to be set besides for the value at ``path`` to count."""
    section, _, rest = path.partition(".")
    part = rest.partition(".")[0]
    return (
        MONITORING.get(part, {}) if section == "monitoring" and not path.endswith("enabled") else {}
    )
