"""The plan: pools from nodes, candidates, placement, children and status, all as values.

Belongs here: every decision, as a pure function of (observed, settings, now) that returns a value
with its reason. Kubernetes objects come in and go out as plain dicts; nothing here reads or
writes a cluster, a file or a clock.
"""
