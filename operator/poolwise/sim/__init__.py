"""Discrete-event replays of clusters: what a way of placing work makes of a stream of it.

Pure: jobs, fleet, the true run times and the policy are arguments; time is simulated.
"""
