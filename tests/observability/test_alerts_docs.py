"""docs/alerts.md has a runbook for every alert, and for nothing else."""

from __future__ import annotations

import re

import pytest

from poolwise.settings import Settings
from tests.observability.queries import ROOT, alerts

PAGE = (ROOT / "docs/alerts.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_alert_has_its_section_in_the_same_order():
    assert list(SECTIONS) == list(alerts())


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_says_what_it_means_and_what_to_do(name):
    meaning, *steps = SECTIONS[name].strip().split("\n- ")
    assert len(meaning) > 40
    assert steps, "what to do?"


@pytest.mark.parametrize("anchor", re.findall(r"\]\(#(\w+)\)", PAGE))
def test_anchors_exist(anchor):
    assert anchor in {name.lower() for name in SECTIONS}


def test_settings_are_named_as_they_are():
    """Words like ``queue_workers``; those of metrics are checked as queries."""
    named = set(re.findall(r"`((?!poolwise_|apiserver_|runbook_)[a-z]+(?:_[a-z]+)+)`", PAGE))
    assert named and named <= set(Settings.model_fields)
