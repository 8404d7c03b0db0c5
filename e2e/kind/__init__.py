"""A real multi-node cluster in containers (kind), for the suite in ``e2e/suite``.

``python -m e2e.kind`` finds or starts a container engine, builds the images, creates a cluster of
one control plane and four workers, runs the suite, and deletes what it made. The nodes are real
(kubelet, container runtime, scheduler); only their accelerators are not: labels and extended
resources, patched into the nodes' status and patched again when a kubelet resets them.

Belongs here: what makes the cluster, gives its nodes hardware, loads images, calls Helm and
collects evidence. What Poolwise has to do on it stands in ``e2e/suite``.
"""
