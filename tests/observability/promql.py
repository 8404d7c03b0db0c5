"""Which metrics a PromQL expression reads, and which labels its result has.

A query that names a label nobody exports does not fail in Prometheus: it is empty, or all series
fall together. So every label is followed from the metric through the expression.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from promql_parser import (
    AggModifierType,
    AggregateExpr,
    BinaryExpr,
    Call,
    Expr,
    LabelModifierType,
    MatrixSelector,
    ParenExpr,
    StringLiteral,
    SubqueryExpr,
    UnaryExpr,
    VectorSelector,
    parse,
    walk,
)

Labels = frozenset[str]
NONE: Labels = frozenset()
_CHOOSING = ("topk", "bottomk", "limitk")
"""Aggregations that pass whole series on."""
_DROPPED = {"histogram_quantile": {"le"}, "histogram_fraction": {"le"}}


class BadQuery(AssertionError):
    """The expression uses what does not exist."""


@dataclass(frozen=True)
class Vocabulary:
    """What there is: every metric with its labels."""

    metrics: Mapping[str, Collection[str]]

    def labels_of(self, query: str) -> Labels:
        """Labels of the result; :class:`BadQuery` for an unknown metric or label."""
        return self._labels(parse(query))

    def _labels(self, expr: Expr) -> Labels:
        visit: Mapping[type[Expr], Callable[..., Labels]] = {
            VectorSelector: self._selector,
            MatrixSelector: lambda each: self._selector(each.vector_selector),
            ParenExpr: lambda each: self._labels(each.expr),
            UnaryExpr: lambda each: self._labels(each.expr),
            SubqueryExpr: lambda each: self._labels(each.expr),
            AggregateExpr: self._aggregation,
            BinaryExpr: self._binary,
            Call: self._call,
        }
        found: Labels = visit.get(type(expr), lambda each: NONE)(expr)
        return found

    def _selector(self, selector: VectorSelector) -> Labels:
        name = str(selector.name)
        if name not in self.metrics:
            raise BadQuery(f"{selector}: nobody exports {name}")
        has = frozenset(self.metrics[name])
        _require(has, (each.name for each in selector.matchers.matchers), str(selector))
        return has

    def _aggregation(self, expr: AggregateExpr) -> Labels:
        has, modifier = self._labels(expr.expr), expr.modifier
        grouping = modifier.labels if modifier else []
        _require(has, grouping, str(expr))
        if str(expr.op) in _CHOOSING:
            return has
        if modifier and modifier.type == AggModifierType.Without:
            return has - set(grouping)
        return frozenset(grouping)

    def _binary(self, expr: BinaryExpr) -> Labels:
        left, right = self._labels(expr.lhs), self._labels(expr.rhs)
        matching = expr.modifier.matching if expr.modifier else None
        named = frozenset(matching.labels) if matching else NONE
        _require(left, named, str(expr))
        _require(right, named, str(expr))
        is_on = matching is not None and matching.type == LabelModifierType.Include
        if str(expr.op) in ("and", "unless", "or"):
            return left & right if str(expr.op) == "or" and right else left
        card = str(expr.modifier.card) if expr.modifier else ""
        if "ManyToOne" in card or "OneToMany" in card:
            many, one = (left, right) if "ManyToOne" in card else (right, left)
            extra = frozenset(expr.modifier.group_labels or ()) if expr.modifier else NONE
            _require(one, extra, str(expr))
            return many | extra
        self._require_match(expr, (left, right), named, is_on)
        return named if is_on else (left | right) - named

    @staticmethod
    def _require_match(
        expr: BinaryExpr, sides: tuple[Labels, Labels], named: Labels, is_on: bool
    ) -> None:
        """Two vectors without ``on`` join on all labels, which both must have."""
        left, right = sides
        if not is_on and left and right and left - named != right - named:
            raise BadQuery(f"{expr}: joins {sorted(left)} with {sorted(right)}")

    def _call(self, expr: Call) -> Labels:
        arguments = list(expr.args)
        name = expr.func.name
        if name in ("vector", "scalar", "time"):
            for each in arguments:
                self._labels(each)
            return NONE
        has = frozenset().union(*(self._labels(each) for each in arguments))
        if name == "absent":
            return NONE
        if name == "label_replace":
            written = arguments[1]
            assert isinstance(written, StringLiteral)
            return has | {written.val}
        return has - _DROPPED.get(name, set())


def metrics_of(query: str) -> Iterator[str]:
    """Names of the metrics that it reads."""
    seen: list[str] = []

    def visit(expr: Expr) -> bool:
        if isinstance(expr, VectorSelector):
            seen.append(str(expr.name))
        return True

    walk(parse(query), visit)
    return iter(seen)


def _require(has: Labels, wanted: Collection[str] | Iterator[str], where: str) -> None:
    for label in wanted:
        if label not in has:
            raise BadQuery(f"{where}: no label {label}; there are {', '.join(sorted(has))}")
