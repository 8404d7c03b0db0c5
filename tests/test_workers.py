"""Which worker of several runs which test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
TELLS = """
import json, os, pathlib

def test_{number}():
    told = {{"at": __file__, "worker": os.environ["PYTEST_XDIST_WORKER"]}}
    pathlib.Path({folder!r}, "told-{name}-{number}").write_text(json.dumps(told))
"""
MODULES = ("chart/test_a", "chart/test_b", "plan/test_c", "plan/test_d")


def workers_of(folder: Path) -> dict[str, set[str]]:
    """Of each module of a suite that has the conftest of this one."""
    (folder / "tests").mkdir()
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    (folder / "tests" / "conftest.py").symlink_to(REPOSITORY / "tests" / "conftest.py")
    for module in MODULES:
        path = folder / "tests" / f"{module}.py"
        path.parent.mkdir(exist_ok=True)
        name = path.stem
        tests = (TELLS.format(number=n, folder=str(folder), name=name) for n in range(3))
        path.write_text("\n".join(tests))
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadscope", "tests"]
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environment = {**outside, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, set[str]] = {}
    for path in folder.glob("told-*"):
        told = json.loads(path.read_text())
        found.setdefault(Path(told["at"]).stem, set()).add(told["worker"])
    return found


def test_a_folder_that_shares_a_release_and_each_module_stay_on_one_worker(tmp_path: Path) -> None:
    found = workers_of(tmp_path)
    assert found.keys() == {Path(module).name for module in MODULES}
    assert {len(workers) for workers in found.values()} == {1}
    assert found["test_a"] == found["test_b"]
    assert set().union(*found.values()) == {"gw0", "gw1"}
