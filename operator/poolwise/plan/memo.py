"""Answers of the model that were asked before.

Predictions are pure, and most passes ask again what the last one asked. The memory is bounded,
belongs to whoever owns the passes, and changes nothing but the time they take.
"""

from __future__ import annotations

import operator
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import takewhile
from typing import Any, TypeVar, cast

S = TypeVar("S")
T = TypeVar("T")
PAGES = 8192
"""Pairs of work and machine that are remembered, with an answer for each layout: 14 kB at the
mean."""
PASSES = 16
"""What was not asked for in so many passes is forgotten, at the latest after as many more."""
LEDGERS = 4
"""States of the ledger that one workload is looked at in: as it is, beside what is kept for
others, and empty."""

_UNKNOWN = object()


class Page:
    """All answers about one subject; there must be few questions, since none is forgotten."""

    def __init__(self) -> None:
        self._answers: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, question: Hashable, answer: Callable[[], T]) -> T:
        """The known answer, or a new one."""
        found: T = self._answers.get(question, _UNKNOWN)
        if found is _UNKNOWN:
            found = self._answers[question] = answer()
        return found


class Lately:
    """Answers that the last passes asked for; what none of them did is forgotten.

    What is free differs from pass to pass and hardly ever comes back, and a workload may run or
    wait for months: what is remembered of it must not grow with each change of the cluster.
    """

    def __init__(self) -> None:
        self._young: dict[Hashable, Any] = {}
        self._old: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())

    def known(self, question: Hashable) -> Any:
        """The answer, which counts as asked for; None where there is none."""
        found = self._young.get(question)
        if found is None and (found := self._old.get(question)) is not None:
            self._young[question] = found
        return found

    def keep(self, question: Hashable, answer: T) -> T:
        """Remember an answer, in place of an earlier one."""
        self._young[question] = answer
        return answer

    def get(self, question: Hashable, answer: Callable[[], T]) -> T:
        """The known answer, or a new one."""
        found: T | None = self.known(question)
        return self.keep(question, answer()) if found is None else found

    def age(self) -> None:
        """Forget what nobody asked for since the last time."""
        self._old, self._young = self._young, {}


class Numbers:
    """Small numbers for large values, so that these are compared once and not in every question.

    No number is ever given twice: one that was forgotten is asked for in vain.
    """

    def __init__(self) -> None:
        self._count = 0
        self._by_value, self._newest = Lately(), Lately()

    def __len__(self) -> int:
        return len(self._by_value) + len(self._newest)

    def of(self, value: Hashable) -> int:
        """The same number for equal values, as long as the value is remembered."""
        return self._by_value.get(value, self._next)

    def of_newest(self, name: str, value: object) -> int:
        """The same number as long as the value of that name is the same; it need not be
        hashable."""
        known = self._newest.known(name)
        if known is None or known[0] != value:
            known = self._newest.keep(name, (value, self._next()))
        return int(known[1])

    def age(self) -> None:
        """Forget values that nobody asked for since the last time."""
        self._by_value.age()
        self._newest.age()

    def _next(self) -> int:
        self._count += 1
        return self._count


class Newest:
    """Answers about a few objects, forgotten when others are asked about."""

    def __init__(self) -> None:
        self._pages: deque[tuple[tuple[object, ...], Page]] = deque(maxlen=LEDGERS)

    def page(self, *subjects: object) -> Page:
        """The page of these very objects."""
        for known, page in self._pages:
            if all(map(operator.is_, known, subjects)):
                return page
        page = Page()
        self._pages.appendleft((subjects, page))
        return page


class Recent:
    """What was made of each object of the last pass.

    Objects are never changed, so one that is still the same one gives the same answer. An object
    that is remembered is held, and no other can take its identity.
    """

    def __init__(self) -> None:
        self._subjects: Sequence[object] = ()
        self._answers: Sequence[object] = ()

    def each(self, subjects: Iterable[S], answer: Callable[[S], T]) -> Sequence[T]:
        """Answers in the order of the subjects; what is no subject any more is forgotten."""
        given, before, answers = tuple(subjects), self._subjects, self._answers
        head = _alike(given, before)
        if head < max(len(given), len(before)):
            tail = _alike(reversed(given[head:]), reversed(before[head:]))
            old = slice(head, len(before) - tail)
            known = dict(zip(map(id, before[old]), answers[old], strict=True))
            middle = given[head : len(given) - tail]
            found = [known[at] if (at := id(each)) in known else answer(each) for each in middle]
            self._subjects = given
            self._answers = [*answers[:head], *found, *answers[len(before) - tail :]]
        return cast(Sequence[T], self._answers)


def _alike(some: Iterable[object], others: Iterable[object]) -> int:
    """How many at the beginning are the same ones."""
    return sum(takewhile(bool, map(operator.is_, some, others)))


class Last:
    """What was made of all objects of the last pass together."""

    def __init__(self) -> None:
        self._subjects: list[object] = []
        self._answer: object = None

    def of(self, subjects: Iterable[object], answer: Callable[[], T]) -> T:
        """The last answer where the subjects are the same, or equal, and in the same order."""
        given = list(subjects)
        if given != self._subjects or not self._subjects:
            self._answer, self._subjects = answer(), given
        return cast(T, self._answer)


class Memo:
    """Pages by subject, of which the least recently used goes first; and what depends on the state
    of the cluster, for as long as passes ask for it."""

    def __init__(self, limit: int = PAGES) -> None:
        self._limit = limit
        self._pages: OrderedDict[Hashable, Page] = OrderedDict()
        self.facts, self.pods, self.grown, self.ends = (Recent() for _ in range(4))
        self.runs, self.speeds, self.daemons = Recent(), Recent(), Recent()
        self.pools, self.usage, self.empty, self.learned = Last(), Last(), Last(), Last()
        self.numbers = Numbers()
        self.candidates = Lately()
        """Judged for the room that a pool had."""
        self._passes = 0
        self.rooms = Newest()
        """What is worked out once for each state of the ledger."""
        self.obstacles = Newest()
        """What is told of each state of the ledger, while runs end as they do."""

    def __len__(self) -> int:
        return len(self._pages)

    def begin_pass(self) -> None:
        """Another look at the whole cluster."""
        self._passes += 1
        if self._passes % PASSES == 0:
            self.numbers.age()
            self.candidates.age()

    def page(self, subject: Hashable) -> Page:
        """The page of a subject: everything that its answers depend on."""
        found = self._pages.get(subject)
        if found is not None:
            self._pages.move_to_end(subject)
            return found
        found = self._pages[subject] = Page()
        if len(self._pages) > self._limit:
            self._pages.popitem(last=False)
        return found
