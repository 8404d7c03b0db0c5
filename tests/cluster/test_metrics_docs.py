"""docs/metrics.md is made from the table of metrics, and the process exports what that says."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import prometheus_client
import pytest
from prometheus_client import CollectorRegistry

from poolwise.cluster import metric_table as table
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.metrics_docs import main, page

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "metrics.md"
ALL = tuple(metric for metrics in table.SECTIONS.values() for metric in metrics)


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_check_fails_where_the_file_differs(tmp_path, capsys):
    copy = tmp_path / "metrics.md"
    assert main(["--output", str(copy), "--check"]) == 1
    assert main(["--output", str(copy)]) == 0
    assert main(["--output", str(copy), "--check"]) == 0
    assert "differs from the table of metrics: run make generate" in capsys.readouterr().out


def test_every_definition_of_the_module_is_in_a_section():
    defined = {each for each in vars(table).values() if isinstance(each, table.Definition)}
    assert defined == set(ALL)
    assert len({metric.full_name for metric in ALL}) == len(ALL)


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_each_metric_has_a_row(metric):
    assert f"| `{metric.full_name}` | {metric.type} |" in page()
    assert metric.meaning.endswith(".")


def test_the_process_exports_its_section_and_nothing_else():
    families = [each for each in Metrics().registry.collect() if each.name[:8] != "process_"]
    exported = {(each.name, each.type) for each in families}
    wanted = {(metric.full_name.removesuffix("_total"), metric.type) for metric in table.PROCESS}
    assert exported == wanted


def test_the_example_runs_and_tells_all_that_it_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    [example] = re.findall(r"```python\n(.*?)```", page(), re.DOTALL)
    registry, ports = CollectorRegistry(), list[int]()
    for kind in ("Counter", "Gauge", "Histogram"):
        bound = partial(getattr(prometheus_client, kind), registry=registry)
        monkeypatch.setattr(prometheus_client, kind, bound)
    monkeypatch.setattr(prometheus_client, "start_http_server", ports.append)
    monkeypatch.setenv("RANK", "0")
    users = {"loader": range(3), "train": lambda _: None, "saved_a_checkpoint": lambda: True}
    exec(compile(example, "docs/metrics.md", "exec"), users)
    assert ports == [9090]
    assert registry.get_sample_value("training_steps_total") == 3
    assert registry.get_sample_value("training_step_seconds_count") == 3
    assert (registry.get_sample_value("training_last_checkpoint_timestamp_seconds") or 0) > 0
