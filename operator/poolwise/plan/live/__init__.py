"""Services while they run: what is seen of their replicas, and how many they are from now on.

:mod:`poolwise.plan.scaling` decides the number; this package makes what it decides by out of
Kubernetes' objects, and carries the number into placements.
"""
