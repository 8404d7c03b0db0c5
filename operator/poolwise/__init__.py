"""Poolwise: a Kubernetes operator that puts AI workloads on the node pool that fits them."""

__version__ = "0.1.0"
