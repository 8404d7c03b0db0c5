"""docs/conditions.md has every type and every reason, and none that does not exist."""

import ast
import re
from pathlib import Path

from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.conditions import Reason, Type
from poolwise.plan.nodes import claims

ROOT = Path(__file__).parent.parent.parent
ROWS = re.findall(
    r"^\| `(\w+)` \|", (ROOT / "docs" / "conditions.md").read_text(encoding="utf-8"), re.MULTILINE
)
WORDS = {*Type, *Reason, *Verdict, *claims.HardwareReason}


def plan_nodes():
    for path in sorted((ROOT / "operator" / "poolwise" / "plan").rglob("*.py")):
        yield from ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def words(nodes):
    """CamelCase texts among them."""
    texts = (node.value for node in nodes if isinstance(node, ast.Constant))
    pattern = r"[A-Z][a-z]+([A-Z][a-z]+)*"
    return {t for t in texts if isinstance(t, str) and re.fullmatch(pattern, t)}


def given_to_conditions():
    """Types and reasons that are written where a condition is made."""
    for node in plan_nodes():
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Condition":
            yield from (node.args[place] for place in (0, 2) if len(node.args) > place)


def test_every_word_is_documented():
    assert {str(word) for word in WORDS} - set(ROWS) == set()


def test_every_word_of_a_pools_condition_is_documented():
    assert words(given_to_conditions()) - set(ROWS) == set()


def test_every_documented_word_exists():
    assert set(ROWS) - {str(word) for word in WORDS} - words(plan_nodes()) == set()


def test_every_reason_is_explained_once_in_its_table():
    text = (ROOT / "docs" / "conditions.md").read_text(encoding="utf-8")
    for table in text.split("\n## ")[1:]:
        rows = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
        assert len(rows) == len(set(rows))
