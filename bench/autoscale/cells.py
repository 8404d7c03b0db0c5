"""Results of policies on traces as lines of JSON, so that a long run can be taken up again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.autoscale import kept
from bench.autoscale.grid import Case
from bench.autoscale.outcome import Outcome
from bench.autoscale.reach import aim
from bench.autoscale.scene import Scene
from bench.autoscale.sizing import ATTAINMENT
from bench.autoscale.suite import O1, ORACLES, OURS, Result


@dataclass(frozen=True)
class Cell:
    """One policy in one case."""

    case: Case
    name: str
    setting: dict[str, float | str]
    aim: float
    """What shall be attained: 99 % of what any fleet can."""
    attainment: float
    replica_hours: float
    average_replicas: float
    direction_changes_per_hour: float
    seconds_to_recover: float | None
    p99_ttft_seconds: float
    p99_tpot_seconds: float

    @property
    def timely_share(self) -> float:
        """In time, of the requests that any fleet can answer in time."""
        return ATTAINMENT * self.attainment / self.aim

    @property
    def is_good(self) -> bool:
        """Whether it attains its aim."""
        return self.attainment >= self.aim


def cell(scene: Scene, case: Case, result: Result) -> Cell:
    """Of one result."""
    found: Outcome = result.outcome
    return Cell(
        case,
        result.name,
        result.setting,
        aim(scene),
        found.attainment,
        found.replica_hours,
        found.average_replicas,
        found.direction_changes_per_hour,
        found.seconds_to_recover,
        found.p99_ttft_seconds,
        found.p99_tpot_seconds,
    )


def read(path: Path) -> list[Cell]:
    """What is there; nothing where there is no file."""
    return [_cell(told) for told in kept.read(path)]


def _cell(told: dict[str, Any]) -> Cell:
    return Cell(**{**told, "case": Case(**told["case"])})


def write(path: Path, cells: Sequence[Cell]) -> None:
    """These and no others."""
    kept.write(path, map(asdict, cells))


def append(path: Path, found: Cell) -> None:
    """One more line."""
    kept.append(path, asdict(found))


@dataclass(frozen=True)
class Standing:
    """One case: ours, its rivals, and what nobody can beat."""

    case: Case
    cells: tuple[Cell, ...]

    def of(self, name: str) -> Cell | None:
        """One policy's."""
        return next((each for each in self.cells if each.name == name), None)

    @property
    def rivals(self) -> list[Cell]:
        """All that is neither ours nor an oracle."""
        return [each for each in self.cells if each.name not in (OURS, *ORACLES)]

    @property
    def best_rival(self) -> Cell | None:
        """The cheapest that attains its aim; None where none does."""
        good = [each for each in self.rivals if each.is_good]
        return min(good, key=lambda each: each.replica_hours, default=None)

    @property
    def unit_hours(self) -> float:
        """What costs are told in: O1's, or the cheapest there is."""
        oracle = self.of(O1)
        return oracle.replica_hours if oracle else min(each.replica_hours for each in self.cells)

    def words(self) -> str:
        """How ours stands, in one sentence."""
        ours, rival = self.of(OURS), self.best_rival
        if ours is None or not self.rivals:
            return "Not compared: ours or its rivals were not run."
        attained = f"{100 * ours.attainment:.2f} %"
        if rival is None:
            most = max(self.rivals, key=lambda each: each.attainment)
            side = "more" if ours.attainment > most.attainment else "less"
            told = f"No rival attains {100 * ours.aim:.2f} %; ours attains {attained}"
            return f"{told}, {side} than {_named(most)}."
        excess = ours.replica_hours / rival.replica_hours - 1.0
        cost = f"{100 * abs(excess):.1f} % {'more' if excess > 0 else 'less'} than {_named(rival)}"
        if not ours.is_good:
            return f"**Ours loses**: it attains {attained} and costs {cost}."
        return f"{'**Ours loses**' if excess > 0 else 'Ours wins'}: at {attained} it costs {cost}."


def _named(each: Cell) -> str:
    return f"{each.name} ({100 * each.attainment:.2f} % for {each.replica_hours:.1f} replica-hours)"


def standings(cells: Sequence[Cell]) -> Iterator[Standing]:
    """By cases, in the order in which they came."""
    for case in dict.fromkeys(each.case for each in cells):
        yield Standing(case, tuple(each for each in cells if each.case == case))
