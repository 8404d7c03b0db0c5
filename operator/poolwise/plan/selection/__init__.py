"""Which of its candidates a workload gets, and why, in words.

Belongs here: the order of candidates, the decision for one workload, and what would have worked.
Who goes first of several that wait is :mod:`poolwise.plan.queueing`.
"""
