"""Who loses how much away from which pool: the comparison behind comparative advantage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from poolwise.plan.joint.bids import Bid
from poolwise.plan.wording import duration, money, percent, plural


@dataclass(frozen=True, slots=True)
class Loss:
    """One workload away from one pool."""

    key: str
    elsewhere: str
    """The best pool beside it."""
    share: float
    """Of its run time (or goal) that it takes longer there; negative where it gains."""


class Losses:
    """Of all that wait, by pool, the smallest first."""

    def __init__(self, bids: Iterable[Bid], currency: str) -> None:
        self._currency = currency
        self._by_pool: dict[str, list[Loss]] = {}
        """Of those who can be delayed at all."""
        self._own: dict[tuple[str, str], Loss] = {}
        for each in bids:
            for pool, loss in _losses(each):
                self._own[pool, loss.key] = loss
                if not each.is_hopeless:
                    self._by_pool.setdefault(pool, []).append(loss)
        for losses in self._by_pool.values():
            losses.sort(key=lambda each: (each.share, each.key))

    def of(self, pool: str, key: str) -> Loss | None:
        """What one workload loses away from a pool."""
        return self._own.get((pool, key))

    def rival(self, pool: str, key: str) -> Loss | None:
        """Who else loses most away from a pool."""
        most = self._by_pool.get(pool, [])[-2:]
        others = [each for each in most if each.key != key and each.share > 0]
        return others[-1] if others else None

    def price(self, pool: str, delay: float, per_hour: float, waiting: int) -> str:
        """The price in words."""
        if not delay:
            return "free: no workload that waits would lose by its use"
        told = (
            f"each accelerator-hour here delays the {plural(waiting, 'workload')} that"
            f" {'waits' if waiting == 1 else 'wait'} by {duration(delay * 3600.0)} in sum"
        )
        if per_hour:
            told += f", worth {money(per_hour, self._currency)}"
        losses = self._by_pool.get(pool, [])
        if len(losses) > 1 and losses[-1].share > losses[0].share:
            least, most = losses[0], losses[-1]
            told += f"; {most.key} would lose {_told(most)}; first to leave is {least.key}"
            told += f", which would lose {_told(least)}"
        return told


def _told(loss: Loss) -> str:
    lost = percent(loss.share) if loss.share > 0 else "nothing"
    return f"{lost} on {loss.elsewhere}"


def _losses(bid: Bid) -> Iterable[tuple[str, Loss]]:
    best: dict[str, float] = {}
    for offer in bid.offers:
        pool = offer.option.pool
        best[pool] = min(offer.lateness_seconds, best.get(pool, offer.lateness_seconds))
    ordered = sorted((seconds, pool) for pool, seconds in best.items())
    for pool, seconds in best.items():
        others = [each for each in ordered[:2] if each[1] != pool]
        if others and seconds > 0:
            yield pool, Loss(bid.workload.key, others[0][1], others[0][0] / seconds - 1.0)
