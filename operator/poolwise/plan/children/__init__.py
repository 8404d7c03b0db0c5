"""The objects that run a placed workload, as complete and deterministic manifests.

Belongs here: Jobs, Deployments and what stands around them, as dicts. Writing them is
:mod:`poolwise.handlers.children`.
"""
