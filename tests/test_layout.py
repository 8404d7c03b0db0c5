"""The shape of the repository: what lies where, how large it may grow, and what it never names."""

from __future__ import annotations

import ast
import os
import re
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OPERATOR = ROOT / "operator"
PACKAGE = OPERATOR / "poolwise"
MODULES = sorted(PACKAGE.rglob("*.py"))
EVERYWHERE = [
    path
    for folder in ("operator", "bench", "e2e", "tests")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
MOST_MODULE_LINES = 500
MOST_FUNCTION_LINES = 60
MACHINE = re.compile(r"(?<![\w./-])/(work|root|home/\w+)(?=/|\b)")
"""Paths of the machines on which Poolwise was written."""


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function of a module with its lines, the docstring apart."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            first = node.body[0]
            if ast.get_docstring(node) is not None:
                lines -= (first.end_lineno or 0) - first.lineno + 1
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", lines


def within(share: float, values: list[int]) -> int:
    """The value that this share of them does not exceed."""
    return sorted(values)[int(share * (len(values) - 1))]


def test_nothing_lies_beside_the_package() -> None:
    """A package or module there would stand in for the standard library's ``operator``."""
    beside = {path.name for path in OPERATOR.iterdir() if path.name != "__pycache__"}
    assert beside == {"poolwise"}


@pytest.mark.parametrize("where", [ROOT, OPERATOR, Path("/")], ids=["root", "operator", "outside"])
def test_the_command_line_starts(where: Path) -> None:
    command = [sys.executable, "-m", "poolwise", "--help"]
    told = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    for name in ("plan", "explain", "run"):
        assert re.search(rf"\b{name}\b", told.stdout)


def test_no_module_is_too_long() -> None:
    assert [str(path) for path in EVERYWHERE if lines_of(path) > MOST_MODULE_LINES] == []


def test_no_function_is_too_long() -> None:
    told = [each for path in EVERYWHERE for each in functions(path)]
    assert [name for name, lines in told if lines > MOST_FUNCTION_LINES] == []


def test_most_modules_and_functions_are_short() -> None:
    modules = [lines_of(path) for path in MODULES]
    assert statistics.median(modules) <= 150
    assert within(0.9, modules) <= 350
    bodies = [lines for path in MODULES for _, lines in functions(path)]
    assert statistics.median(bodies) <= 10
    assert within(0.8, bodies) <= 20


def test_every_package_says_what_belongs_there() -> None:
    packages = [path for path in MODULES if path.name == "__init__.py"]
    assert {path.parent for path in packages} == {path.parent for path in MODULES}
    silent = [p for p in packages if not ast.get_docstring(ast.parse(p.read_text("utf-8")))]
    assert silent == []


def test_the_packages_are_those_of_the_architecture() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawing = re.search(r"```\n(.*?)```", page, re.DOTALL)
    assert drawing
    drawn = {word for line in drawing.group(1).splitlines() for word in line.split()[:3]}
    shown = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert shown - {"__init__", "__main__", "__pycache__", "py"} <= drawn


def test_the_layers_that_are_checked_are_all_packages() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    named = {
        module.removeprefix("poolwise.")
        for contract in contracts["contracts"]
        if "containers" not in contract  # those within plan
        for module in (*contract.get("layers", ()), *contract.get("source_modules", ()))
    }
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages | {"errors", "settings"} == named


def test_the_page_tells_where_everything_of_plan_is() -> None:
    """Packages in its table, and what lies beside them by name: what is added there is told."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.search(r"\| package of `plan` \|.*?\n\n", page, re.DOTALL)
    beside = re.search(r"^Beside them stand.*?\n\n", page, re.DOTALL | re.MULTILINE)
    assert rows and beside
    plan = PACKAGE / "plan"
    packages = {path.parent.name for path in plan.glob("*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+)` \|", rows.group(), re.MULTILINE)) == packages
    modules = {path.stem for path in plan.glob("*.py")} - {"__init__"}
    assert modules <= set(re.findall(r"`(\w+)`", beside.group()))


def test_nothing_names_a_machine() -> None:
    found = []
    for path in tracked():
        text = path.read_text(encoding="utf-8", errors="ignore")
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in MACHINE.finditer(text)]
    assert found == []


def tracked() -> Iterator[Path]:
    """Files of the project; this one, which has to spell what it looks for, apart, and what git
    writes into a second work tree, which names the first."""
    hidden = {"__pycache__", "build", "dist", *(each.name for each in ROOT.glob(".*"))} - {".ci"}
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [each for each in folders if each not in hidden]
        paths = (Path(folder, name) for name in names)
        yield from (path for path in paths if path not in (Path(__file__), ROOT / ".git"))
