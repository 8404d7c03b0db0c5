"""Starts on nodes that are not there yet: what is promised on them, and what if none comes.

Poolwise creates no nodes. It places pods on a pool that may still grow
(:mod:`poolwise.plan.ledger.growth`), and an autoscaler brings the nodes that they wait for.
"""
