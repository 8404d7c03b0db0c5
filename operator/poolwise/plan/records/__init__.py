"""What the objects of a workload remember of it: where it runs, as what, and what it has used.

Belongs here: everything on a child or a status that is read again by the next pass. What was lost
of it is :mod:`poolwise.plan.history`.
"""
