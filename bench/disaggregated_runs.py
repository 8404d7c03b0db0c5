"""Runs with prefill and decode on workers of their own: the time to the first token.

A row gives the parallel sizes of a prefill and of a decode worker, and seldom how many there are:
what the devices leave beside one decode worker is then prefill workers. The first token comes from
the prefill worker; its cache goes to a decode worker, which most engines do before they answer.

N clients in a closed loop keep N*P seconds of prompts at w workers, against O*D seconds of tokens:
the time that all prompts take, N*P/w, is waited for at most in the share that tokens leave, so the
wait is a share of their harmonic sum: ``1 / (w / (N*P) + 1 / (O*D))``. Where the number of workers
is not known, operators have chosen it so that prompts keep up, which the same law says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.serving_layouts import parts
from bench.serving_runs import Run, found
from bench.tables import Row, number
from poolwise.model.efficiency import Calibration
from poolwise.model.serving.front_end import REQUESTS
from poolwise.model.serving.iteration import Batch
from poolwise.model.serving.load import state
from poolwise.tables import Tables

MODE, TOGETHER = "online-disagg", "online-agg"
COLUMN = "ttft_ms_mean"


@dataclass(frozen=True, slots=True)
class Disaggregated:
    """A measured one."""

    prefill: Run
    """One worker, with the clients of all."""
    decode: Run
    """One worker with its share of the clients (:mod:`bench.serving_layouts`)."""
    prefill_workers: float

    @property
    def row(self) -> Row:
        """As it was measured."""
        return self.prefill.row

    def features(self, calibration: Calibration) -> tuple[float, float, float]:
        """What the constants :data:`TERMS` multiply: once, seconds of a prompt and of the wait."""
        served, clients = self.prefill.replica(calibration), max(1.0, self.prefill.in_flight)
        tokens = served.prompt.mean
        prompt = served.costs.step(Batch(prompt_tokens=tokens, prompts=1.0)).seconds
        decoding = self.decode.replica(calibration)
        each = state(decoding, max(1.0, self.decode.in_flight))
        answer = decoding.generated.mean * each.decode.seconds
        busy = clients * prompt / self.prefill_workers
        return 1.0, prompt, busy * answer / (busy + answer)


TERMS = ("handover_seconds", "handover_prompt_ratio", "handover_wait_share")


def first_token_seconds(run: Disaggregated, calibration: Calibration) -> float:
    """Mean time to the first token."""
    device, engine = run.prefill.machine.device, run.prefill.work.engine
    values = (calibration.value(REQUESTS, term, device, engine) for term in TERMS)
    return sum(value * each for value, each in zip(values, run.features(calibration), strict=True))


def disaggregated(row: Row, tables: Tables) -> Disaggregated | str:
    """A row as its workers, or why not."""
    row = _with_clients(row)
    if not number(row, COLUMN) or not number(row, "concurrency"):
        return "no time to the first token, or no number of clients"
    prefill, decode = _sizes(row["prefill_cfg"]), _sizes(row["decode_cfg"])
    if not prefill.get("tp") or not decode.get("tp"):
        return "no parallel sizes of the workers"
    reader, writer = _prefill_worker(row, prefill, tables), found(row, tables, COLUMN)
    if isinstance(reader, str):
        return reader
    if isinstance(writer, str):
        return writer
    decoders = decode.get("workers") or 1.0
    left = (number(row, "n_gpus") or 0.0) - decoders * _devices(decode)
    prefillers = prefill.get("workers") or max(1.0, round(left / _devices(prefill)))
    return Disaggregated(reader, writer, prefillers)


def _with_clients(row: Row) -> Row:
    """Where a row counts those of a decode rank and the workers, they are all clients: every row of
    the continuous benchmark that states both and their number agrees."""
    decode = _sizes(row["decode_cfg"])
    workers, of_rank = decode.get("workers"), decode.get("bs")
    if row["concurrency"] or not workers or not of_rank:
        return row
    return row | {"concurrency": f"{workers * decode.get('dp', 1.0) * of_rank:g}"}


def _sizes(text: str) -> dict[str, float]:
    """``workers=,tp=4,...`` without what is blank or no number."""
    cells = parts(text)
    found = {name: number(cells, name) for name in cells}
    return {name: size for name, size in found.items() if size is not None}


def _devices(sizes: Mapping[str, float]) -> float:
    return sizes["tp"] * sizes.get("pp", 1.0) * sizes.get("dp", 1.0)


def _prefill_worker(row: Row, sizes: Mapping[str, float], tables: Tables) -> Run | str:
    """Described as a replica that does both halves."""
    cells = {"tp": sizes["tp"], "pp": sizes.get("pp", 1.0), "attn_dp": sizes.get("dp", 1.0)}
    cells |= {name: sizes.get(name, 1.0) for name in ("moe_tp", "moe_ep")}
    cells["n_gpus"] = _devices(sizes)
    worker = row | {name: str(int(cell)) for name, cell in cells.items()}
    return found(worker | {"mode": TOGETHER}, tables, COLUMN)
