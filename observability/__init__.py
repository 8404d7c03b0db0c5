"""Grafana dashboards of Poolwise, in code; ``python -m observability`` writes their JSON.

Not part of the operator: the chart ships what is written. Alerts are plain Prometheus rules in
``charts/poolwise/files/alerts.yaml``.
"""
