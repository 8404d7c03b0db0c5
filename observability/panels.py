"""The few kinds of panels that the dashboards are made of, all dressed alike.

Every panel has a description with two sentences: what is shown, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import bargauge, common, dashboard, stat, table, timeseries
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMapping,
    ValueMappingResult,
)

from observability.query import DATASOURCE, Query, as_table, now, over_time, ref_id

GREEN, YELLOW, RED, BLUE = "green", "yellow", "red", "blue"
Panel = timeseries.Panel | stat.Panel | table.Panel | bargauge.Panel


@dataclass(frozen=True)
class About:
    """What a panel is: its words, its unit, and its place in a row of 24 columns."""

    title: str
    description: str
    unit: str
    width: int = 8
    height: int = 8
    limits: tuple[tuple[float, str], ...] = ()
    """Colours from these values on; what is below the first has the colour of ``base``."""
    base: str = GREEN


def tile(
    title: str,
    description: str,
    unit: str,
    limits: tuple[tuple[float, str], ...] = (),
    base: str = BLUE,
) -> About:
    """A sixth of a row; blue, for most figures are neither good nor bad."""
    return About(title, description, unit, 4, 4, limits, base)


@dataclass(frozen=True)
class Column:
    """A column of a table: the query's values, or a label."""

    title: str
    unit: str = ""
    mappings: Mapping[str, tuple[str, str]] | None = None
    """Value to (text, colour)."""


def series(
    about: About, *queries: Query, stacked: bool = False, dashed: str | None = None
) -> timeseries.Panel:
    """Lines over time. ``dashed`` matches the legends of targets and plans."""
    panel = timeseries.Panel().tooltip(_ALL_SERIES).legend(_legend()).line_width(2).min(0)
    panel.fill_opacity(25 if stacked else 5).show_points(shapes.VisibilityMode.NEVER)
    if stacked:
        panel.stacking(common.StackingConfig().mode(shapes.StackingMode.NORMAL))
    if dashed:
        line = {"fill": "dash", "dash": [10, 10]}
        panel.override_by_regexp(
            dashed,
            [
                DynamicConfigValue("custom.lineStyle", line),
                DynamicConfigValue("custom.fillOpacity", 0),
            ],
        )
    if about.limits:
        style = shapes.GraphThresholdsStyleMode.DASHED
        panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(style))
    _dress(panel, about)
    return panel.targets([over_time(query, at) for at, query in enumerate(queries)])


def figure(
    about: About,
    *queries: Query,
    mappings: Mapping[str, tuple[str, str]] | None = None,
    shown: shapes.BigValueTextMode = shapes.BigValueTextMode.AUTO,
) -> stat.Panel:
    """Large numbers, as they are now."""
    panel = stat.Panel().reduce_options(_last()).text_mode(shown)
    panel.graph_mode(shapes.BigValueGraphMode.NONE).color_mode(shapes.BigValueColorMode.VALUE)
    if mappings:
        panel.mappings([_mapping(mappings)])
    _dress(panel, about)
    return panel.targets([now(query, at) for at, query in enumerate(queries)])


def bars(about: About, *queries: Query) -> bargauge.Panel:
    """One bar for each series, as they are now."""
    panel = bargauge.Panel().orientation(shapes.VizOrientation.HORIZONTAL).reduce_options(_last())
    panel.display_mode(shapes.BarGaugeDisplayMode.BASIC).min(0)
    _dress(panel, about)
    return panel.targets([now(query, at) for at, query in enumerate(queries)])


def grid(
    about: About,
    queries: Sequence[Query],
    columns: Mapping[str, Column | None],
    links: Mapping[str, str] | None = None,
) -> table.Panel:
    """A table of several queries, merged where their labels agree.

    ``columns`` names the labels and ``Value #A`` ... in their order; None hides one.
    """
    names = dict(columns)
    if (
        len(queries) == 1 and "Value #A" in names
    ):  # Grafana numbers values only where there are more
        names = {("Value" if name == "Value #A" else name): to for name, to in names.items()}
    panel = table.Panel().with_transformation(DataTransformerConfig("merge", options={}))
    panel.with_transformation(DataTransformerConfig("organize", options=_arrangement(names)))
    shown = [column for column in names.values() if column]
    panel.sort_by([common.TableSortByFieldState().display_name(shown[0].title)])
    for column in shown:
        _dress_column(panel, column, (links or {}).get(column.title))
    _dress(panel, about)
    return panel.targets([as_table(query, at) for at, query in enumerate(queries)])


def value_of(position: int) -> str:
    """The column that the query of that position fills."""
    return f"Value #{ref_id(position)}"


def _arrangement(names: Mapping[str, Column | None]) -> dict[str, object]:
    shown = {name: column.title for name, column in names.items() if column}
    hidden = ["Time", *(name for name, column in names.items() if not column)]
    return {
        "excludeByName": dict.fromkeys(hidden, True),
        "indexByName": {name: at for at, name in enumerate(shown)},
        "renameByName": shown,
    }


def _dress_column(panel: table.Panel, column: Column, link: str | None) -> None:
    properties = []
    if column.unit:
        properties.append(DynamicConfigValue("unit", column.unit))
    if column.mappings:
        cell = {"type": "color-text"}
        properties.append(DynamicConfigValue("mappings", [_mapping(column.mappings)]))
        properties.append(DynamicConfigValue("custom.cellOptions", cell))
    if link:
        to = {"title": "Open", "url": link, "targetBlank": False}
        properties.append(DynamicConfigValue("links", [to]))
    if properties:
        panel.override_by_name(column.title, properties)


def _dress(panel: Panel, about: About) -> None:
    panel.title(about.title).description(about.description).datasource(DATASOURCE)
    panel.unit(about.unit).span(about.width).height(about.height)
    steps = [Threshold(None, about.base), *(Threshold(*limit) for limit in about.limits)]
    panel.thresholds(
        dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)
    ).color_scheme(dashboard.FieldColor().mode(_colours(panel)))


def _colours(panel: Panel) -> FieldColorModeId:
    lines = isinstance(panel, timeseries.Panel)
    return FieldColorModeId.PALETTE_CLASSIC if lines else FieldColorModeId.THRESHOLDS


def _mapping(mappings: Mapping[str, tuple[str, str]]) -> ValueMapping:
    return ValueMap(
        {
            value: ValueMappingResult(text, colour, index=at)
            for at, (value, (text, colour)) in enumerate(mappings.items())
        }
    )


def _legend() -> common.VizLegendOptions:
    return (
        common.VizLegendOptions()
        .display_mode(shapes.LegendDisplayMode.LIST)
        .placement(shapes.LegendPlacement.BOTTOM)
        .show_legend(True)
    )


def _last() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"])


_ALL_SERIES = (
    common.VizTooltipOptions()
    .mode(shapes.TooltipDisplayMode.MULTI)
    .sort(shapes.SortOrder.DESCENDING)
)
