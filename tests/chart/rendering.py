"""The charts as Helm renders them; what was rendered once is kept for the session."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from e2e.chart.generated import OPERATOR
from e2e.tools.build import binaries
from e2e.tools.catalog import HELM

RELEASE, NAMESPACE = "poolwise", "poolwise-system"
KUBERNETES = "1.36.3"
IMAGE = {"image": {"repository": "registry.example.com/poolwise", "tag": "dev"}}

LEAN = {**IMAGE, "crds": {"install": False}}
"""Without the CRDs, which are most of what is rendered: for tests that look at other objects."""

Object = dict[str, Any]
Values = Mapping[str, Any]


def merged(*layers: Values) -> dict[str, Any]:
    """Values as Helm merges several files of them: maps are joined, all else is replaced."""
    whole: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            before = whole.get(key)
            if isinstance(value, Mapping) and isinstance(before, Mapping):
                whole[key] = merged(before, value)
            else:
                whole[key] = value
    return whole


def at(path: str, value: Any) -> dict[str, Any]:
    """``at("crds.keep", False)`` is ``{"crds": {"keep": False}}``."""
    for step in reversed(path.split(".")):
        value = {step: value}
    return dict(value)


def text(values: Values = IMAGE, chart: Path = OPERATOR) -> str:
    """What ``helm template`` prints; raises :class:`subprocess.CalledProcessError`."""
    return _text(json.dumps(values), chart)


def documents(values: Values = IMAGE, chart: Path = OPERATOR) -> list[Object]:
    """The rendered objects, hooks included."""
    return list(_documents(json.dumps(values), chart))


def select(values: Values, kind: str, name: str = "") -> Object:
    """The one rendered object of this kind (and name)."""
    found = [each for each in documents(values) if each["kind"] == kind]
    named = [each for each in found if name in ("", each["metadata"]["name"])]
    assert len(named) == 1, f"{len(named)} objects of kind {kind}"
    return named[0]


def having(values: Values, test: Callable[[Object], bool]) -> list[Object]:
    """Rendered objects for which ``test`` says yes."""
    return [each for each in documents(values) if test(each)]


def refusal(values: Values, chart: Path = OPERATOR) -> str:
    """What Helm says of values that it does not take."""
    done = helm("template", RELEASE, str(chart), "--values=-", stdin=json.dumps(values))
    assert done.returncode != 0, "Helm takes these values"
    return done.stderr


def helm(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the pinned Helm."""
    command = [str(binaries((HELM,))["helm"]), *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


@cache
def _text(values: str, chart: Path) -> str:
    where = [f"--namespace={NAMESPACE}", f"--kube-version={KUBERNETES}"]
    done = helm("template", RELEASE, str(chart), *where, "--values=-", stdin=values)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def _documents(values: str, chart: Path) -> tuple[Object, ...]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(each for each in yaml.load_all(_text(values, chart), loader) if each)
