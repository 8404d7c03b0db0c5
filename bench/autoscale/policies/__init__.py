"""Rival scaling laws as their authors published them, one module each.

A law reads what a scrape gives (``Sample``) and what Kubernetes tells (``ReplicaView``). Defaults
are the published ones; what is tuned in hindsight is named where a law begins. Their flaws are
theirs: none is mended, none is added.
"""
