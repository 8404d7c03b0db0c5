"""What the objects of a workload remember of it: where it runs, as what, and what it has used.

Belongs here: the record on a child and what is read off it, and the meter in a status. What was
lost of them is :mod:`poolwise.plan.history`.
"""
