"""The dashboards as files: they are what the code makes, and Grafana can show them well."""

from __future__ import annotations

import json
import re
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard

from observability.__main__ import FRAMES, main, rendered
from tests.observability.queries import DASHBOARDS, ROOT, columns_of, load, panels, rules

COLUMNS = 24
BOARDS = {path.stem: load(path) for path in DASHBOARDS}
PANELS = [
    pytest.param(board, panel, id=f"{name}/{panel['title']}")
    for name, board in BOARDS.items()
    for panel in panels(board)
]
TABLES = [
    pytest.param(panel, id=f"{name}/{panel['title']}")
    for name, board in BOARDS.items()
    for panel in panels(board)
    if panel["type"] == "table"
]
every_board = pytest.mark.parametrize("board", BOARDS.values(), ids=list(BOARDS))
every_panel = pytest.mark.parametrize(("board", "panel"), PANELS)


def test_files_are_what_the_code_makes(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["--check"]) == 0, capsys.readouterr().out
    assert {frame.name for frame in FRAMES} == set(BOARDS) == {"fleet", "workload", "operator"}


def test_check_names_what_differs_is_missing_or_too_many(tmp_path: Path, capsys):
    assert main(["--output", str(tmp_path)]) == 0
    assert main(["--output", str(tmp_path), "--check"]) == 0
    (tmp_path / "fleet.json").write_text("{}")
    (tmp_path / "operator.json").unlink()
    (tmp_path / "old.json").write_text("{}")
    assert main(["--output", str(tmp_path), "--check"]) == 1
    told = capsys.readouterr().out
    assert re.findall(r"(\w+)\.json differs", told) == ["fleet", "old", "operator"]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.name)
def test_the_same_bytes_each_time(frame):
    first = rendered(frame)
    assert first == rendered(frame)
    assert first == json.dumps(json.loads(first), indent=2, sort_keys=True) + "\n"


@every_board
def test_the_model_of_grafana_reads_it(board):
    """What Grafana's own schema does not know would be lost on the way through it."""
    register_default_plugins()
    again = json.loads(json.dumps(Dashboard.from_json(board), cls=JSONEncoder))
    assert lost(board, again) == []


def lost(before: Any, after: Any, path: str = "") -> list[str]:
    """Paths of what ``after`` has not, or has otherwise."""
    if isinstance(before, dict) and isinstance(after, dict):
        pairs = ((f"{path}/{key}", value, after.get(key)) for key, value in before.items())
        return [each for name, old, new in pairs for each in lost(old, new, name)]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = ((f"{path}/{at}", *each) for at, each in enumerate(zip(before, after, strict=True)))
        return [each for name, old, new in pairs for each in lost(old, new, name)]
    return [] if before == after else [path]


@every_board
def test_a_board_can_be_found_and_has_a_name(board):
    assert board["title"].startswith("Poolwise / ")
    assert len(board["description"]) > 40
    assert board["tags"] == ["poolwise"]
    assert board["schemaVersion"] >= 36


def test_uids_are_stable_and_unique():
    """Links, bookmarks and home dashboards rely on them; 40 characters are Grafana's limit."""
    assert {name: board["uid"] for name, board in BOARDS.items()} == {
        "fleet": "poolwise-fleet",
        "workload": "poolwise-workload",
        "operator": "poolwise-operator",
    }


@every_board
def test_no_data_source_is_named(board):
    variables = {each["name"]: each for each in board["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    wanted = {"type": "prometheus", "uid": "${datasource}"}
    for each in (*panels(board), *(v for v in variables.values() if v["type"] == "query")):
        assert each["datasource"] == wanted


@every_board
def test_panels_have_ids_of_their_own(board):
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids)) and min(ids) > 0


@every_board
def test_no_two_panels_overlap(board):
    for one, other in combinations(board["panels"], 2):
        a, b = one["gridPos"], other["gridPos"]
        apart = (
            a["x"] + a["w"] <= b["x"]
            or b["x"] + b["w"] <= a["x"]
            or a["y"] + a["h"] <= b["y"]
            or b["y"] + b["h"] <= a["y"]
        )
        assert apart, f"{one['title']} lies on {other['title']}"


@every_board
def test_every_line_is_full_and_even(board):
    """Lines of panels fill the width and have one height, so that nothing leaves a hole."""
    by_line = sorted(
        board["panels"], key=lambda panel: (panel["gridPos"]["y"], panel["gridPos"]["x"])
    )
    bottom = 0
    for y, line in groupby(by_line, key=lambda panel: panel["gridPos"]["y"]):
        places = [panel["gridPos"] for panel in line]
        assert y == bottom
        assert sum(place["w"] for place in places) == COLUMNS
        assert len({place["h"] for place in places}) == 1
        bottom = y + places[0]["h"]


@every_board
def test_links_lead_to_dashboards_that_exist(board):
    assert [link["tags"] for link in board["links"]] == [["poolwise"]]
    uids = {each["uid"] for each in BOARDS.values()}
    for uid in re.findall(r"/d/([\w-]+)", json.dumps(board)):
        assert uid in uids


def test_the_workloads_of_the_fleet_lead_to_their_own_board():
    table = next(each for each in panels(BOARDS["fleet"]) if each["title"] == "Workloads")
    overrides = {
        each["matcher"]["options"]: {p["id"]: p["value"] for p in each["properties"]}
        for each in table["fieldConfig"]["overrides"]
    }
    (link,) = overrides["Name"]["links"]
    given = re.findall(r"var-(\w+)=\$\{__data\.fields\.(\w+)\}", link["url"])
    shown = set(table["transformations"][1]["options"]["renameByName"].values())
    wanted = {each["name"] for each in BOARDS["workload"]["templating"]["list"]}
    assert given == [("namespace", "Namespace"), ("name", "Name"), ("kind", "Kind")]
    assert {field for _, field in given} <= shown
    assert {variable for variable, _ in given} <= wanted


def is_a_unit(unit: str) -> bool:
    """One that Grafana knows, or text of our own behind the number."""
    known = {value for name, value in vars(units).items() if not name.startswith("_")}
    return unit in known or bool(re.fullmatch(r"(suffix|si):\S+", unit))


@every_panel
def test_a_panel_says_what_it_is_and_what_to_do(board, panel):
    assert panel["title"]
    assert is_a_unit(panel["fieldConfig"]["defaults"]["unit"])
    sentences = re.split(r"(?<=[.?])\s+", panel["description"])
    assert len(sentences) >= 2 and len(panel["description"]) >= 60, panel["description"]
    assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["value"] is None


@every_panel
def test_targets_are_told_apart(board, panel):
    assert panel["targets"]
    refs = [target["refId"] for target in panel["targets"]]
    assert refs == [chr(ord("A") + at) for at in range(len(refs))]
    legends = [target["legendFormat"] for target in panel["targets"]]
    assert panel["type"] == "table" or len(set(legends)) == len(legends)
    is_range = panel["type"] == "timeseries"
    assert all(target["range"] is is_range for target in panel["targets"])


@every_panel
def test_a_dashed_line_is_one_of_the_legends(board, panel):
    for override in panel["fieldConfig"]["overrides"]:
        if override["matcher"]["id"] == "byRegexp":
            pattern = override["matcher"]["options"].strip("/")
            legends = [target["legendFormat"] for target in panel["targets"]]
            assert any(re.search(pattern, legend) for legend in legends)


@pytest.mark.parametrize("panel", TABLES)
def test_columns_of_a_table_are_named_and_hold_something(panel):
    organize = panel["transformations"][-1]["options"]
    values = {f"Value #{target['refId']}" for target in panel["targets"]}
    if len(values) == 1:
        values = {"Value"}
    arranged = set(organize["renameByName"]) | set(organize["excludeByName"])
    assert values <= arranged
    assert panel["options"]["sortBy"][0]["displayName"] in organize["renameByName"].values()
    assert arranged - values - columns_of(panel) == {"Time"}


def test_documented_alerts_are_named_as_they_are():
    names = {rule["alert"] for rule in rules() if "alert" in rule}
    for board in BOARDS.values():
        for found in re.findall(r"\bPoolwise[A-Z]\w+", json.dumps(board)):
            assert found in names


def test_the_page_lists_them():
    page = (ROOT / "docs/dashboards.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (Poolwise / \w+) \| `([\w-]+)` \|", page, re.MULTILINE)
    assert sorted(listed) == sorted((board["title"], board["uid"]) for board in BOARDS.values())
