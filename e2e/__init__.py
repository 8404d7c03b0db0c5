"""What runs Poolwise against a real Kubernetes: control plane, cluster profiles, end-to-end tests.

Nothing here ships in the wheel; ``poolwise`` never imports it.
"""
