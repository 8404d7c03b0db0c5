"""What can go wrong around a cluster for tests.

HarnessError
├── BuildFailed     a binary could not be built; carries the compiler's last lines
├── ProcessFailed   a process died or did not become ready; carries its last lines
└── NoSuchCluster   no control plane of that name runs
"""

from __future__ import annotations


class HarnessError(Exception):
    """Base of all errors below; its text is fit to be printed as it is."""


class BuildFailed(HarnessError):
    """A tool could not be built from its sources."""


class ProcessFailed(HarnessError):
    """A process died or did not answer in time."""


class NoSuchCluster(HarnessError):
    """No control plane of that name runs."""
