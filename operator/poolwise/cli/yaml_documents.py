"""YAML as ``sigs.k8s.io/yaml`` reads it, the reader of kubectl and the API server.

PyYAML alone differs: it turns dates into objects and ``4:16`` into 256, leaves ``1e3`` a string,
lets the last of two equal keys win without a word, and dies of what is nested too deep.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, cast

import yaml

MOST_DEPTH = 200
"""Of objects and lists inside of each other. The deepest field of Kubernetes' own kinds is at 20;
libyaml recurses without a bound, and ends the process."""
_MERGE = "tag:yaml.org,2002:merge"
_OTHERS = ("timestamp", "float", "int")
"""What is read by other rules, or by none."""


def documents(text: str) -> Iterator[Any]:
    """One after the other; yaml.YAMLError or ValueError for the first that cannot be read."""
    shallow = _shallow(text) if _may_be_deep(text) else itertools.repeat(None)
    for _, content in zip(shallow, yaml.load_all(text, _Loader), strict=False):
        _refuse_endless(content, set(), set())
        yield content


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # chosen at run time
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        return {str(k): v for k, v in super().construct_mapping(node, deep).items()}

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge keys taken apart: what a mapping says itself wins over what it merges."""
        self._refuse_twice(node)
        super().flatten_mapping(node)
        node.value = list({self._key(each[0]): each for each in node.value}.values())

    def _refuse_twice(self, node: yaml.MappingNode) -> None:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                continue
            key = self._key(key_node)
            if key in seen:
                raise _refused(f'key "{key}" already set in map', key_node)
            seen.add(key)

    def _key(self, node: yaml.Node) -> str | int | float | bool:
        key = self.construct_object(node, deep=True)
        if not isinstance(key, str | int | float | bool):
            raise _refused(f"key {key!r} is not a string", node)
        return key


def _refused(problem: str, node: yaml.Node) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _number(loader: _Loader, node: yaml.ScalarNode) -> float:
    """A whole float is an integer, as it is once Go has written it as JSON."""
    value: float = loader.construct_yaml_float(node)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


_Loader.add_constructor("tag:yaml.org,2002:float", _number)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag.rpartition(":")[2] not in _OTHERS]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"^[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$|^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$"
    ),
    list("-+0123456789."),
)


def _may_be_deep(text: str) -> bool:
    """Never false for what is too deep; quick, since files of nodes are long."""
    open_now = deepest = 0
    for bracket in re.finditer(r"[\[{\]}]", text):
        open_now += 1 if bracket[0] in "[{" else -1
        deepest = max(deepest, open_now)
    indent = max((len(each) for each in re.findall(r"^[ ?:-]+", text, re.MULTILINE)), default=0)
    return deepest + 2 * indent > MOST_DEPTH


def _shallow(text: str) -> Iterator[None]:
    """Once for each document, before it is read; yaml.YAMLError for one that is too deep."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentEndEvent):
            yield
        if depth > MOST_DEPTH:
            problem = f"is nested more than {MOST_DEPTH} deep"
            mark = cast(yaml.Mark, event.start_mark)
            raise yaml.constructor.ConstructorError(None, None, problem, mark)


def _refuse_endless(content: Any, above: set[int], finite: set[int]) -> None:
    """ValueError for an anchor that an alias below it names, which the API server refuses too."""
    if not isinstance(content, dict | list) or id(content) in finite:
        return
    if id(content) in above:
        raise ValueError("an anchor's value contains itself")
    above.add(id(content))
    for each in content.values() if isinstance(content, dict) else content:
        _refuse_endless(each, above, finite)
    above.remove(id(content))
    finite.add(id(content))
