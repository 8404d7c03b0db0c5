"""A real Kubernetes control plane as plain processes: no container engine, ready in seconds.

etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok (which plays the kubelets of
fake nodes), from pinned sources. What belongs here: getting the binaries, running them, and reading
what they saw. What does not: anything that knows Poolwise's own resources.
"""
