"""One workload on one pool: its best shape there, or what is against it, with the number.

Belongs here: the search over shapes and the questions to the model. Which candidate wins is
:mod:`poolwise.plan.selection.ranking`.
"""
