"""Every value is documented and does something; none is needed, whatever an older release knew."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.chart.generated import CRDS, OPERATOR
from e2e.chart.values import Undocumented, documented
from tests.chart import rendering
from tests.chart.rendering import IMAGE, LEAN, at, documents, merged, text
from tests.chart.variations import CHANGES, context

pytestmark = pytest.mark.tools("helm")

EARLIER = Path(__file__).parent / "earlier" / "poolwise" / "values.yaml"
ALL_ON = merged(LEAN, *(context(path) for path in CHANGES))


def defaults() -> dict[str, Any]:
    return dict(yaml.safe_load((OPERATOR / "values.yaml").read_text(encoding="utf-8")))


def maps(node: dict[str, Any], above: str = "") -> Iterator[str]:
    """Paths of all values and of all maps of values."""
    for key, value in node.items():
        yield above + key
        if isinstance(value, dict):
            yield from maps(value, f"{above}{key}.")


def test_every_value_is_exercised_below() -> None:
    assert {value.name for value in documented(OPERATOR / "values.yaml")} == set(CHANGES)


@pytest.mark.parametrize("path", CHANGES)
def test_every_value_changes_what_is_installed(path: str) -> None:
    before = merged(IMAGE if path.startswith("crds.") else LEAN, context(path))
    assert text(before) != text(merged(before, at(path, CHANGES[path])))


def test_every_value_of_the_other_chart_changes_what_is_installed() -> None:
    changes = {"keep": False, "commonLabels": {"a": "b"}, "annotations": {"a": "b"}}
    assert {value.name for value in documented(CRDS / "values.yaml")} == set(changes)
    for path, value in changes.items():
        assert text({}, CRDS) != text({path: value}, CRDS)


def test_a_value_without_a_comment_is_found(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("# -- Meaning\nfirst: 1\nsecond:\n  third: 3\n")
    with pytest.raises(Undocumented, match=r"^second\.third has no comment"):
        documented(values)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_what_is_null_has_its_default(depth: int) -> None:
    """As ``--set key=null``: all keys of a depth at once, since each is filled in on its own."""
    paths = [path for path in maps(defaults()) if path.count(".") == depth - 1]
    nulled = [path for path in paths if path not in _set() and path not in _whole()]
    assert nulled
    assert text(merged(ALL_ON, *(at(path, None) for path in nulled))) == text(ALL_ON)


def _set() -> set[str]:
    """What :data:`ALL_ON` sets, and maps that hold such."""
    return set(maps(ALL_ON))


def _whole() -> set[str]:
    """Parts of maps that are given whole: null takes one of them away, see ``poolwise.fill``."""
    names = ("resources.", "podSecurityContext.", ".labels.", ".annotations.")
    return {path for path in maps(defaults()) if any(name in path for name in names)}


def test_all_may_be_null_but_the_image() -> None:
    nothing = dict.fromkeys(defaults())
    assert documents(merged(nothing, IMAGE)) == documents(IMAGE)


def test_a_limit_that_is_null_goes_away() -> None:
    without = merged(LEAN, at("resources.limits.memory", None))
    [container] = rendering.select(without, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] in (None, {})


def test_the_user_can_be_left_to_the_platform() -> None:
    without = merged(LEAN, at("podSecurityContext.runAsUser", None))
    pod = rendering.select(without, "Deployment")["spec"]["template"]["spec"]
    assert "runAsUser" not in pod["securityContext"] and pod["securityContext"]["runAsNonRoot"]


def test_values_of_an_older_release_render_as_the_defaults(tmp_path: Path) -> None:
    """``helm upgrade --reuse-values``: this chart with no values but those of the older one."""
    older = tmp_path / "poolwise"
    copied = ["cp", "-r", str(OPERATOR), str(older)]
    subprocess.run(copied, check=True)
    (older / "values.yaml").write_text(EARLIER.read_text(encoding="utf-8"))
    assert documents(IMAGE, older) == documents(IMAGE)


def test_a_large_number_is_written_as_the_operator_reads_it() -> None:
    given = {"list_page_size": 1000000, "storage_read_bytes_per_second": 2.5e10}
    tokens = {"default_input_tokens": [1015.5, 4085], "leader_election": False, "retry_seconds": 2}
    deployment = rendering.select(
        merged(LEAN, {"settings": given | tokens, "replicas": 1}), "Deployment"
    )
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert {each["name"]: each["value"] for each in container["env"]} == {
        "POOLWISE_LIST_PAGE_SIZE": "1000000",
        "POOLWISE_STORAGE_READ_BYTES_PER_SECOND": "25000000000",
        "POOLWISE_DEFAULT_INPUT_TOKENS": "1015.5,4085",
        "POOLWISE_LEADER_ELECTION": "false",
        "POOLWISE_RETRY_SECONDS": "2",
    }


def test_extra_objects_are_templates() -> None:
    as_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "{{ .Release.Name }}-a"},
    }
    as_text = json.dumps(as_map).replace("-a", "-b")
    extra = merged(LEAN, {"extraObjects": [as_map, as_text]})
    names = {each["metadata"]["name"] for each in documents(extra) if each["kind"] == "ConfigMap"}
    assert names == {"poolwise-a", "poolwise-b"}
