"""All pages for readers, and where each command on them is run.

Commands that need neither cluster nor time are run by ``tests/docs``, page by page; pages of
:data:`ON_KIND` are run whole by ``python -m e2e.docs``. What is left is named here with the file
that runs it, or with the reason why nothing can, so that no command is in the documentation by
oversight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from e2e.docs.blocks import Command, File, Step, steps
from e2e.docs.playing import REPOSITORY

ON_KIND = ("docs/quick-start.md", "docs/upgrade.md")
"""Played top to bottom on a cluster of their own."""
OFFLINE = ("poolwise plan ", "poolwise --version", "python -m e2e.profiles", ". .venv/bin/activate")
"""Beginnings of commands that are run wherever they stand, but on the pages of :data:`ON_KIND`."""
ELSEWHERE: Mapping[str, str] = {
    "make setup": ".ci/run",  # what `make test` begins with
    "make test": ".ci/run",
    ".venv/bin/pytest ": ".ci/run",
    "make demo": "tests/docs/test_demo.py",
    "KEEP=1 make demo": "tests/docs/test_demo.py",
    ".venv/bin/poolwise explain tj/llama-70b -n demo": "tests/docs/test_demo.py",
    "make cluster-": "tests/docs/test_demo.py",
    "make image": "docs/quick-start.md",
    "make check-chart": ".github/workflows/chart.yml",
    "make e2e CORE=1": ".ci/run",
    "kubectl get trainingjobs,inferenceservices": "tests/docs/test_demo.py",
    "kubectl get acceleratorpools -l": "tests/docs/test_demo.py",
    "kubectl apply -f pools.yaml": "tests/docs/test_demo.py",
    "kubectl label acceleratorpool ": "tests/apiserver/test_operator_costs.py",
    "kubectl patch acceleratorpool ": "tests/apiserver/test_operator_costs.py",
    "kubectl apply --server-side -f crds/": "tests/apiserver/conftest.py",
    "kubectl apply --server-side -f install.yaml": "tests/release/test_install.py",
    "kubectl delete -n poolwise-system deployment/poolwise": "e2e/suite/test_operator.py",
    ".venv/bin/poolwise run": "tests/apiserver/test_operator_start.py",
    "helm install poolwise": "tests/chart/test_lifecycle.py",
    "helm test poolwise": "e2e/suite/test_install.py",
    ".venv/bin/python -m e2e.release check": "tests/release/test_versions.py",
    ".venv/bin/python -m e2e.release files": "tests/release/test_install.py",
}
"""Beginnings of the other commands, and the file of the repository that runs them."""
NOWHERE: Mapping[str, str] = {
    "VERSION=0.1.0 REPO=OWNER/NAME": "names a release, and none is published",
    "IDENTITY=": "the same",
    "ISSUER=": "the same",
    "cosign verify": "there is no signature before the first release",
    "gh attestation verify": "there is no attestation before the first release",
    "sha256sum --check checksums.txt": "there are no checksums before the first release",
    "docker tag ": "names a registry of the reader's",
    "docker push ": "the same",
    "make live-autoscale": "takes ten minutes; make test runs a shorter load",
    "make bench-model": "the measured tables are not in the repository, for their licences",
}
"""Beginnings of commands that nothing runs, and why."""


def pages() -> list[Path]:
    """README.md, CONTRIBUTING.md and the like, docs and the charts' pages."""
    found = (REPOSITORY.glob(pattern) for pattern in ("*.md", "docs/**/*.md", "charts/**/*.md"))
    return sorted(page for group in found for page in group if page.name != "CHANGELOG.md")


def is_on_kind(page: Path) -> bool:
    """Whether a page needs a cluster."""
    return str(page.relative_to(REPOSITORY)) in ON_KIND


def offline_steps(page: Path) -> Iterator[Step]:
    """Of a page, the files to write and the commands that need no cluster."""
    for step in steps(page):
        if isinstance(step, File) or is_offline(step.text):
            yield step


def is_offline(command: str) -> bool:
    """Whether tests/docs runs a command where it stands."""
    return command.removeprefix(".venv/bin/").startswith(OFFLINE)


def parts(command: Command) -> list[str]:
    """The single commands of a script, without comments."""
    joined = command.text.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
