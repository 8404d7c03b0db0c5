"""Whole queues of work replayed on measured truth, by the operator's planner and by rivals.

``python -m bench.placement --data DIR`` prints figures, losing cells included.
"""
