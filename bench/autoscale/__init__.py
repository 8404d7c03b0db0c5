"""Replays of request traces under autoscaling policies: what each costs, and whom it keeps waiting.

The truth is :mod:`poolwise.sim.serving`; a policy sees only what a scrape and Kubernetes would tell
it (:mod:`bench.autoscale.policy`).
"""
