from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from poolwise.cli.manifests import gathered, of_kind, read
from poolwise.errors import InvalidInput


def contents(tmp_path: Path, text: str) -> list[object]:
    file = tmp_path / "given.yaml"
    file.write_text(text)
    return [document.content for document in read([str(file)])]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        pytest.param("1e3", 1000, id="exponent-without-a-dot-is-a-number"),
        pytest.param("1.0", 1, id="whole-float-is-an-integer"),
        pytest.param("1.5", 1.5, id="float"),
        pytest.param("2026-12-24T00:00:00Z", "2026-12-24T00:00:00Z", id="date-stays-text"),
        pytest.param("2026-12-24", "2026-12-24", id="day-stays-text"),
        pytest.param("010", 8, id="octal"),
        pytest.param("4:16", "4:16", id="no-base-60"),
        pytest.param("1_000", 1000, id="underscore"),
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("yes", True, id="yaml-1.1-boolean"),
        pytest.param('"yes"', "yes", id="quoted"),
        pytest.param("~", None, id="null"),
    ],
)
def test_scalars_are_what_the_api_server_would_read(
    tmp_path: Path, written: str, value: object
) -> None:
    assert contents(tmp_path, f"kind: A\nx: {written}\n") == [{"kind": "A", "x": value}]
    [document] = contents(tmp_path, f"kind: A\nx: {written}\n")
    assert isinstance(document, dict)
    assert type(document["x"]) is type(value)


def test_lists_are_taken_apart_and_empty_documents_skipped(tmp_path: Path) -> None:
    text = "---\n---\nkind: List\nitems: [{kind: A}, {kind: B}]\n---\nkind: C\n"
    assert contents(tmp_path, text) == [{"kind": "A"}, {"kind": "B"}, {"kind": "C"}]
    assert contents(tmp_path, "kind: NodeList\nitems:\n") == []


def test_lists_inside_of_lists_are_taken_apart_too(tmp_path: Path) -> None:
    file = tmp_path / "given.yaml"
    file.write_text("{kind: List, items: [{kind: A}, {kind: BList, items: [{kind: B}, 7]}]}")
    found, refused = gathered([str(file)])
    assert [document.content["kind"] for document in found] == ["A", "B"]
    assert [document.where for document in found] == [
        f"{file}: document 1, item 1",
        f"{file}: document 1, item 2.1",
    ]
    assert [str(each) for each in refused] == [
        f"{file}: document 1, item 2.2: is 7, expected an object"
    ]


def test_what_cannot_be_read_holds_up_no_other_object(tmp_path: Path) -> None:
    texts = {"a": "kind: A1\n---\n- 1\n---\nkind: A2\n---\na: [\n", "b": "kind: B\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    missing = str(tmp_path / "missing.yaml")
    found, refused = gathered([missing, str(tmp_path)])
    assert [document.content["kind"] for document in found] == ["A1", "A2", "B"]
    assert [each.where for each in refused] == [
        missing,
        f"{tmp_path}/a.yaml: document 2",
        f"{tmp_path}/a.yaml: document 4, line 8, column 1",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("a: {\n", "document 1, line 2, column 1", id="unfinished"),
        pytest.param("a: 1\n---\nb: [\n", "document 2, line", id="second-document"),
        pytest.param("a: 1\na: 2\n", 'line 2, column 1: key "a" already set', id="key-twice"),
        pytest.param("- 1\n", "document 1: is a list, expected an object", id="no-object"),
        pytest.param("kind: List\nitems: [1]\n", "item 1: is 1, expected an object", id="no-item"),
        pytest.param("kind: List\nitems: {a: 1}\n", "items is an object, expected", id="no-items"),
        pytest.param("words\n", "document 1: is a text, expected an object", id="words"),
        pytest.param("a: &a {b: [*a]}\n", "an anchor's value contains itself", id="endless"),
        pytest.param("a: !!python/object:os.system 1\n", "could not determine", id="python-tag"),
        pytest.param("a: \x00\n", "document 1", id="control-character"),
        pytest.param("a: " + "[" * 5000, "more than 200 deep", id="nested-too-deep"),
        pytest.param("a: " + "[" * 10**5 + "]" * 10**5, "more than 200 deep", id="deep-and-whole"),
        pytest.param("- " * 5000 + "1", "more than 200 deep", id="nested-in-blocks"),
        pytest.param("a: 1\n---\n" + "[" * 5000, "document 2, line 3", id="second-is-too-deep"),
        pytest.param("<<: {b: 1}\nb: 2\nb: 3\n", 'key "b" already set', id="twice-beside-merged"),
    ],
)
def test_what_cannot_be_parsed_is_located(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        contents(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path / 'given.yaml'}: document")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_merged_keys_count_unless_the_mapping_has_its_own(tmp_path: Path) -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {<<: *a, y: 3}\nc: {<<: *b, z: 4}\n"
    [found] = contents(tmp_path, text)
    assert found == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": {"x": 1, "y": 3, "z": 4}}


def test_brackets_in_texts_are_no_nesting(tmp_path: Path) -> None:
    [found] = contents(tmp_path, f"a: '{'[' * 5000}'\n")
    assert found == {"a": "[" * 5000}


def test_an_anchor_may_be_named_twice(tmp_path: Path) -> None:
    found = contents(tmp_path, "a: &a [1]\nb: [*a, *a]\n")
    assert found == [{"a": [1], "b": [[1], [1]]}]


def test_bytes_on_standard_input_are_told_as_those_of_a_file() -> None:
    command = [sys.executable, "-m", "poolwise", "plan", "-f", "-", "--nodes", "none.yaml"]
    told = subprocess.run(command, input=b"\xff\xfe", capture_output=True, check=False)
    assert told.returncode == 2
    assert told.stderr == b"poolwise: -: is not UTF-8 text: byte 0 invalid start byte\n"


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere\.yaml: cannot be read: No such file"):
        list(read([str(tmp_path / "nowhere.yaml")]))
    with pytest.raises(InvalidInput, match=r"holds no file named \*\.yaml, \*\.yml, \*\.json"):
        list(read([str(tmp_path)]))


def test_a_folder_gives_its_own_manifests_by_name(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.json", "c.txt"):
        (tmp_path / name).write_text(f'{{"kind": "{name[0]}"}}')
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "d.yaml").write_text("kind: d")
    assert [document.content["kind"] for document in read([str(tmp_path)])] == ["a", "b"]


def test_another_kind_among_nodes_is_named(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("kind: List\nitems: [{kind: Pod, metadata: {name: x}}]\n")
    with pytest.raises(InvalidInput, match=r'item 1 \(Pod/x\): kind is "Pod", expected Node'):
        of_kind(read([str(file)]), "Node")
