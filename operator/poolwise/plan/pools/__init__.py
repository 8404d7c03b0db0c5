"""Nodes that are alike, gathered: hardware, links, prices, taints, roles, and their status.

Belongs here: what is known of a pool, and where each figure came from. What a pool is good for is
:mod:`poolwise.plan.candidates`.
"""
