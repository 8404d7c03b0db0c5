"""The shell around the plan: events in, one pass of decisions, writes out.

Belongs here: kopf's handlers, in a line or two each, and the loop behind them. What is decided is
decided in :mod:`poolwise.plan`; how the cluster is read and written is in :mod:`poolwise.cluster`.
"""
