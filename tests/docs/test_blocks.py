"""Blocks of a page, what a page may cut, and that a wrong page is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.docs.blocks import Command, File, steps
from e2e.docs.matching import prints
from e2e.docs.playing import WrongPage, play

PAGE = """\
# A page

```yaml
# pool.yaml
kind: AcceleratorPool
```

```console
$ export GREETING=hello

$ echo "$GREETING" \\
  world
hello  ...
```

```sh
grep kind pool.yaml
test "$GREETING" = hello
```

```text
$ only read
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_a_page_is_read_in_order(page: Path) -> None:
    file, export, echo, script = steps(page)
    assert isinstance(file, File)
    assert (file.name, file.block.line) == ("pool.yaml", 3)
    assert isinstance(export, Command) and export.printed == ()
    assert isinstance(echo, Command) and echo.printed == ("hello  ...",)
    assert echo.text == 'echo "$GREETING" \\\n  world'
    assert isinstance(script, Command) and script.text.count("\n") == 2


def test_a_page_is_played_in_one_shell(page: Path, tmp_path: Path) -> None:
    play(steps(page), tmp_path)
    assert (tmp_path / "pool.yaml").read_text().startswith("# pool.yaml")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param(("hello  ...", "good day ..."), "should print", id="other-output"),
        pytest.param(("grep kind", "grep name"), "exit 1", id="command-fails"),
        pytest.param(("GREETING=hello", "GREETING=bye"), "page.md:8", id="says-where"),
    ],
)
def test_a_wrong_page_is_found(
    page: Path, tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    page.write_text(page.read_text().replace(*change))
    with pytest.raises(WrongPage, match=told):
        play(steps(page), tmp_path)


@pytest.mark.parametrize(
    ("expected", "printed", "is_so"),
    [
        pytest.param(["a  b"], "a      b\n\n", True, id="columns-may-be-narrower"),
        pytest.param(["a b"], "ab\n", False, id="a-space-is-a-space"),
        pytest.param(["a"], "a\nb\n", False, id="nothing-is-cut-silently"),
        pytest.param(["a", "..."], "a\n", True, id="nothing-to-cut"),
        pytest.param(["a", "...", "d"], "a\nb\nc\nd\n", True, id="lines"),
        pytest.param(["a", "...", "d"], "a\nb\nc\ne\n", False, id="line-after-a-cut"),
        pytest.param(["a ... c"], "a b b c\n", True, id="middle"),
        pytest.param(["a ..."], "b c\n", False, id="before-a-cut"),
        pytest.param(["1.5 (2)"], "145 (2)\n", False, id="no-regular-expression"),
    ],
)
def test_what_a_page_may_cut(expected: list[str], printed: str, is_so: bool) -> None:
    assert prints(expected, printed) is is_so
