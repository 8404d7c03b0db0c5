"""Every shipped query reads only what exists, and its result has the labels it is shown by."""

from __future__ import annotations

import pytest

from tests.observability.promql import BadQuery, Vocabulary, metrics_of
from tests.observability.queries import (
    DASHBOARDS,
    Shipped,
    chosen,
    columns_of,
    load,
    of_pages,
    of_panels,
    of_rules,
    of_variables,
    panels,
)
from tests.observability.vocabulary import exported, vocabulary

SHIPPED = [*of_panels(), *of_variables(), *of_rules(), *of_pages()]
VOCABULARY = vocabulary()
TABLES = [
    pytest.param(panel, id=f"{path.stem}/{panel['title']}")
    for path in DASHBOARDS
    for panel in panels(load(path))
    if panel["type"] == "table"
]


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda shipped: shipped.where)
def test_every_name_and_label_exists(shipped: Shipped):
    missing = shipped.labels - VOCABULARY.labels_of(shipped.query)
    assert not missing, f"{shipped.where}: the result of {shipped.query} has no {missing}"


@pytest.mark.parametrize("panel", TABLES)
def test_columns_of_tables_come_from_their_queries(panel):
    of = [VOCABULARY.labels_of(chosen(target["expr"])) for target in panel["targets"]]
    assert columns_of(panel) <= frozenset().union(*of)


def test_every_gauge_of_the_operator_is_shown_or_watched():
    """A metric that no dashboard and no alert uses is either forgotten here or useless there."""
    used = {name for shipped in SHIPPED for name in metrics_of(shipped.query)}
    histograms = {name.removesuffix("_bucket") for name in exported() if name.endswith("_bucket")}
    parts = {f"{name}_{part}" for name in histograms for part in ("sum", "count")}
    ours = {name for name in exported() if name.startswith("poolwise_")} - parts
    assert ours - used == set()


GIVEN = Vocabulary(
    {"pods": {"pool", "node"}, "pools": {"pool", "zone"}, "seconds_bucket": {"pool", "le"}}
)


@pytest.mark.parametrize(
    ("query", "labels"),
    [
        ("pods", "node pool"),
        ("sum(pods)", ""),
        ("sum by (pool) (rate(pods[5m]))", "pool"),
        ("sum without (node) (pods)", "pool"),
        ("topk(3, pods)", "node pool"),
        ("pods * on (pool) group_left (zone) pools", "node pool zone"),
        ("pods and on (pool) pools", "node pool"),
        ("histogram_quantile(0.9, sum by (pool, le) (seconds_bucket))", "pool"),
        ("absent(pods)", ""),
        ("pods > 1 or vector(0)", "node pool"),
        ('label_replace(pods, "rack", "$1", "node", "(.*)")', "node pool rack"),
        ("sum by (pool) (pods) / sum by (pool) (pools)", "pool"),
        ("-(pods offset 5m)", "node pool"),
    ],
)
def test_labels_are_followed(query, labels):
    assert sorted(GIVEN.labels_of(query)) == labels.split()


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("pod", "nobody exports pod"),
        ('pods{zone="a"}', "no label zone; there are node, pool"),
        ("sum by (zone) (pods)", "no label zone"),
        ("sum by (pool) (sum(pods))", "no label pool"),
        ("pods * on (node) pools", "no label node"),
        ("pods * on (pool) group_left (rack) pools", "no label rack"),
        ("pods / pools", "joins"),
        ("rate(gone[5m]) + 1", "nobody exports gone"),
    ],
)
def test_what_does_not_exist_is_named(query, told):
    with pytest.raises(BadQuery, match=told):
        GIVEN.labels_of(query)
