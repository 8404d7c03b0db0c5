"""Everything that waits for a place, decided together and carried out.

Belongs here: the cluster in the terms of :mod:`poolwise.plan.joint`, and its answer in those of
:mod:`poolwise.plan.ledger`.
"""
