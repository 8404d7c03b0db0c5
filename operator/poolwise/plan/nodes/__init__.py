"""One Node as it is: what its labels and resources say it offers, and whether to believe them.

Belongs here: everything that reads a Node object, platform by platform, and the values that its
row of the tables gives. What nodes have in common is :mod:`poolwise.plan.pools`.
"""
