"""Which wheels fit an image is told by the Python that its base has."""

from __future__ import annotations

import json

import pytest
from packaging.tags import sys_tags

from e2e.image.target import Target, UnusableBase, host, parse


def printed(
    python: tuple[int, int] = (3, 13),
    libc: tuple[str, str] = ("glibc", "2.41"),
    implementation: str = "cpython",
) -> str:
    return json.dumps([python, "aarch64", *libc, implementation])


def test_target_is_read_from_what_the_base_prints() -> None:
    target = parse("python:3.13-slim", printed())
    assert target == Target((3, 13), "aarch64", (2, 41))
    assert str(target) == "CPython 3.13 on aarch64 with glibc 2.41"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (printed(python=(3, 9)), "base b: its Python is 3.9; needed is 3.11 or newer"),
        (printed(libc=("", "")), "base b: its C library is not glibc; the wheels need glibc"),
        (printed(implementation="pypy"), "base b: its Python is pypy; needed is CPython"),
    ],
)
def test_unusable_bases_are_refused_in_one_sentence(answer: str, sentence: str) -> None:
    with pytest.raises(UnusableBase) as raised:
        parse("b", answer)
    assert str(raised.value) == sentence


def test_platform_tags_go_from_the_newest_to_the_oldest_glibc() -> None:
    tags = Target((3, 11), "x86_64", (2, 17)).platforms
    assert tags[:3] == ("manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_16_x86_64")
    assert tags[-3:] == ("manylinux_2_5_x86_64", "manylinux1_x86_64", "linux_x86_64")
    assert "manylinux_2_18_x86_64" not in tags


def test_platform_tags_are_those_that_this_interpreter_itself_accepts() -> None:
    if (target := host()).machine != "x86_64":
        pytest.skip("packaging lists fewer tags on other machines: their first glibc is 2.17")
    assert set(target.platforms) == {tag.platform for tag in sys_tags()} - {"any"}


def test_pip_is_told_the_base_and_not_its_own_interpreter() -> None:
    arguments = list(Target((3, 14), "aarch64", (2, 41)).pip_arguments)
    assert arguments[:3] == ["--only-binary=:all:", "--implementation=cp", "--python-version=3.14"]
    assert "--abi=cp314" in arguments
    assert "--abi=abi3" in arguments
    assert "--platform=manylinux2014_aarch64" in arguments
    assert not [each for each in arguments if "x86_64" in each]
