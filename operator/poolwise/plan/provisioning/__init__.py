"""Nodes that are not there yet: which may come, what is promised on them, and what if none comes.

Poolwise creates no nodes. It places pods on a pool that may still grow, and an autoscaler brings
the nodes that they wait for.
"""
