"""One workload on one pool: its best shape there, or what is against it, with the number.

Belongs here: the search over shapes, the questions to the model, and what closeness and the terms
of supply do to a run. Which candidate wins is :mod:`poolwise.plan.selection`.
"""
