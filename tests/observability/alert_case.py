"""One alert with the series that make it fire, and those that come near and do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.observability.queries import RULES, alerts

Series = Mapping[str, str]
"""A series to its values, one a minute, in promtool's notation: ``0+60x10``."""

GROUPS = ["poolwise-engines", "poolwise-operator", "poolwise-workloads", "poolwise-pools"]
"""In the order of the file: what is recorded first is alerted on in the same minute."""
LATER_MINUTES = 4
"""A near miss must not fire later either."""


@dataclass(frozen=True)
class Case:
    """``fires`` does so at the minute ``at`` and not a minute before; each of ``near`` never."""

    alert: str
    fires: Series
    at: int
    labels: Mapping[str, str]
    says: str
    """The whole description."""
    near: Mapping[str, Series] = field(default_factory=dict)

    def documents(self) -> dict[str, dict[str, Any]]:
        """Input of ``promtool test rules``, by what is tested."""
        silent = {f"not {name}": _silent(self, series) for name, series in self.near.items()}
        return {"fires": self._loud(), **silent}

    def _loud(self) -> dict[str, Any]:
        rule = alerts()[self.alert]
        annotations = {**rule["annotations"], "description": self.says}
        expected = {"exp_labels": {**self.labels, **rule["labels"]}, "exp_annotations": annotations}
        before = [_at(self.alert, self.at - 1, [])] if self.at else []
        return _document(self.fires, [*before, _at(self.alert, self.at, [expected])])


def _silent(case: Case, series: Series) -> dict[str, Any]:
    moments = range(case.at, case.at + LATER_MINUTES)
    return _document(series, [_at(case.alert, minute, []) for minute in moments])


def _document(series: Series, tests: list[dict[str, Any]]) -> dict[str, Any]:
    given = [{"series": name, "values": values} for name, values in series.items()]
    return {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "group_eval_order": GROUPS,
        "tests": [{"interval": "1m", "input_series": given, "alert_rule_test": tests}],
    }


def _at(alert: str, minute: int, expected: list[dict[str, Any]]) -> dict[str, Any]:
    return {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": expected}
