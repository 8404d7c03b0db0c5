"""What a person is told: the status of a workload, its conditions, and the story behind them.

Belongs here: pure functions from (resource, outcome, children, pods) to status and to text.
"""
