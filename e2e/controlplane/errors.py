"""What can go wrong with a local control plane.

ControlPlaneError
├── BuildFailed     a binary could not be built; carries the compiler's last lines
├── ProcessFailed   a process died or did not become ready; carries its last lines
└── NoSuchCluster   no control plane of that name runs
"""

from __future__ import annotations


class ControlPlaneError(Exception):
    """Base of all errors below; its text is fit to be printed as it is."""


class BuildFailed(ControlPlaneError):
    """A tool could not be built from its sources."""


class ProcessFailed(ControlPlaneError):
    """A process of the control plane died or did not answer in time."""


class NoSuchCluster(ControlPlaneError):
    """No control plane of that name runs."""
