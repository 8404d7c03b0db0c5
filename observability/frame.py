"""What all dashboards share: variables, links to each other, and panels laid out in sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DashboardCursorSync,
    DashboardLinkType,
    VariableRefresh,
    VariableSort,
)

from observability.panels import Panel
from observability.query import DATASOURCE

TAG = "poolwise"


@dataclass(frozen=True)
class Section:
    """A heading with its panels, from left to right; each line of them is 24 columns wide."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Frame:
    """A dashboard."""

    name: str
    """Of its file; ``poolwise-NAME`` is its uid, which links and bookmarks rely on."""
    title: str
    description: str
    sections: Sequence[Section]
    variables: Sequence[dashboard.QueryVariable] = ()
    time_from: str = "now-6h"

    def build(self) -> Dashboard:
        """As Grafana's model has it, every panel with an id."""
        board = (
            dashboard.Dashboard(self.title)
            .uid(uid(self.name))
            .description(self.description)
            .tags([TAG])
            .time(self.time_from, "now")
            .refresh("1m")
            .timezone("browser")
            .tooltip(DashboardCursorSync.CROSSHAIR)
            .editable()
            .link(_siblings())
            .with_variable(_datasource())
        )
        for variable in self.variables:
            board.with_variable(variable)
        for at, section in enumerate(self.sections):
            _add(board, section, 100 * (at + 1))
        return board.build()


def uid(name: str) -> str:
    """``poolwise-fleet``."""
    return f"{TAG}-{name}"


def label_variable(name: str, label: str, query: str) -> dashboard.QueryVariable:
    """A choice among the values of a label, read anew whenever the time range changes."""
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query({"query": query, "refId": name})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )


def _add(board: dashboard.Dashboard, section: Section, first_id: int) -> None:
    """Ids count within their section, so that a new panel does not renumber those of the others."""
    board.with_row(dashboard.Row(section.title).id(first_id))
    for at, panel in enumerate(section.panels, start=1):
        board.with_panel(panel.id(first_id + at))


def _datasource() -> dashboard.DatasourceVariable:
    return dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")


def _siblings() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("Poolwise")
        .type(DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(False)
        .keep_time(True)
        .include_vars(False)
    )
