"""The only input and output: API server, Lease, clock, metrics, logs.

Belongs here: reading and writing the cluster, what is remembered of it, and when to look again.
Nothing here knows why a workload goes where; that is :mod:`poolwise.plan`.
"""
