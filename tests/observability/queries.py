"""Every PromQL query that Poolwise ships: of dashboards, rules, and documentation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DASHBOARDS = sorted((ROOT / "charts/poolwise/files/dashboards").glob("*.json"))
RULES = ROOT / "charts/poolwise/files/alerts.yaml"
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("charts/*/*.md")])

VARIABLES: Mapping[str, str] = {
    "__rate_interval": "5m",
    "namespace": "chat",
    "name": "assistant",
    "kind": "InferenceService",
    "percentile": "99",
}
"""What the tests choose in the dashboards; the sample series have these."""

_VARIABLE = re.compile(r"\$(\w+)")
_LEGEND_LABEL = re.compile(r"{{\s*(\w+)\s*}}")
_TEMPLATE_LABEL = re.compile(r"\$labels\.(\w+)")
_TEMPLATE_QUERY = re.compile(r'printf\s+"((?:[^"\\]|\\.)*)"')
_FENCE = re.compile(r"```promql\n(.*?)```", re.DOTALL)
_LABEL_VALUES = re.compile(r"label_values\((.*), (\w+)\)")
_QUERY_RESULT = re.compile(r"query_result\((.*)\)")


@dataclass(frozen=True)
class Shipped:
    """A query, where it stands, and the labels that are expected of its result."""

    where: str
    query: str
    labels: frozenset[str] = frozenset()


def load(path: Path) -> dict[str, Any]:
    """A dashboard."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def panels(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Its panels, without the headings."""
    return [each for each in board["panels"] if each["type"] != "row"]


def rules() -> list[dict[str, Any]]:
    """All rules, alerts and records."""
    document = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    """Alerts by their names."""
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def of_panels() -> Iterator[Shipped]:
    for path in DASHBOARDS:
        for panel in panels(load(path)):
            for target in panel["targets"]:
                where = f"{path.stem}/{panel['title']}/{target['refId']}"
                legend = frozenset(_LEGEND_LABEL.findall(target["legendFormat"]))
                yield Shipped(where, chosen(target["expr"]), legend)


def columns_of(panel: Mapping[str, Any]) -> set[str]:
    """Labels that a table shows."""
    named: set[str] = set()
    for each in panel.get("transformations") or ():
        named |= set(each["options"].get("indexByName") or ())
    return {name for name in named if not name.startswith("Value")}


def of_variables() -> Iterator[Shipped]:
    for path in DASHBOARDS:
        for variable in load(path)["templating"]["list"]:
            if variable["type"] == "query":
                text = chosen(variable["query"]["query"])
                where = f"{path.stem}/${variable['name']}"
                if found := _LABEL_VALUES.fullmatch(text):
                    yield Shipped(where, found[1], frozenset({found[2]}))
                else:
                    found = _QUERY_RESULT.fullmatch(text)
                    assert found, f"{where}: what is {text}?"
                    yield Shipped(where, found[1], frozenset({variable["name"]}))


def of_rules() -> Iterator[Shipped]:
    for rule in rules():
        told = " ".join(rule.get("annotations", {}).values())
        wanted = frozenset(_TEMPLATE_LABEL.findall(told)) - set(rule.get("labels", {}))
        name = rule.get("alert") or f"{rule['record']} {rule['labels']}"
        yield Shipped(name, rule["expr"], wanted)
        for query in _TEMPLATE_QUERY.findall(told):
            yield Shipped(f"{name}/annotation", query.replace("%q", '"x"'))


def of_pages() -> Iterator[Shipped]:
    for path in PAGES:
        for block in _FENCE.findall(path.read_text(encoding="utf-8")):
            for at, query in enumerate(filter(str.strip, re.split(r"\n\s*\n", block))):
                yield Shipped(f"{path.relative_to(ROOT)}/{at}", query)


def chosen(text: str) -> str:
    """With the variables of Grafana replaced by what the tests choose."""
    return _VARIABLE.sub(lambda found: VARIABLES[found[1]], text)
