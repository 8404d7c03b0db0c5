"""What fills an accelerator that serves: weights first, and what is left is the cache."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.pictures import style
from bench.pictures.examples import CALIBRATION, machine, model
from poolwise.model.prediction import Memory
from poolwise.model.serving.memory import kv_tokens, serving_memory
from poolwise.model.work import ServingLayout, ServingWork, Tokens
from poolwise.plan.wording import GIB

REQUEST_TOKENS = 4000
TITLE = "What is left of the memory decides how many requests run at once"


@dataclass(frozen=True)
class Case:
    """A model on one or several accelerators."""

    preset: str
    accelerator: str
    tensor: int = 1
    weight_format: str = "bf16"

    @property
    def label(self) -> str:
        size = self.preset.rsplit("-", 1)[-1].upper()
        count = "" if self.tensor == 1 else f"{self.tensor} x "
        return f"{size} {self.weight_format}\n{count}{self.accelerator.partition('-')[0]}"


CASES = (
    Case("llama-3.1-8b", "A10G"),
    Case("llama-3.1-8b", "L40S"),
    Case("llama-3.1-8b", "L40S", weight_format="fp8"),
    Case("llama-3.1-8b", "H100-SXM5-80GB"),
    Case("llama-3.1-70b", "H100-SXM5-80GB", tensor=2, weight_format="fp8"),
    Case("llama-3.1-70b", "H100-SXM5-80GB", tensor=4),
)


def draw() -> Figure:
    """One bar a case, in GiB of one accelerator."""
    drawn = style.figure(3.9)
    axes = drawn.subplots()
    for row, case in enumerate(CASES):
        _bar(axes, row, case)
    axes.set_yticks(range(len(CASES)), [case.label for case in CASES])
    axes.invert_yaxis()
    axes.set(xlim=(0, 118), xlabel="GiB of one accelerator that the engine may fill")
    axes.set_xticks(range(0, 81, 10))
    axes.tick_params(axis="y", length=0)
    axes.set_title(TITLE, pad=24)
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 0.99), ncols=3, fontsize=8.5, handlelength=0.9
    )
    style.note(
        drawn,
        f"Llama 3.1, cache in 16 bits; requests of {REQUEST_TOKENS:,} tokens, prompt and answer.",
    )
    return drawn


def requests(case: Case) -> int:
    """How many run at once."""
    return int(_tokens(case) // REQUEST_TOKENS)


def _tokens(case: Case) -> float:
    return kv_tokens(_work(case), _layout(case), machine(case.accelerator), CALIBRATION)


def _bar(axes: Axes, row: int, case: Case) -> None:
    memory = serving_memory(_work(case), _layout(case), machine(case.accelerator), CALIBRATION)
    left = 0.0
    for name, colour, size_bytes in _parts(memory):
        width = size_bytes / GIB
        label = name if row == 0 else None
        axes.barh(
            row, width, left=left, height=0.62, color=colour, edgecolor=style.PAPER, label=label
        )
        left += width
    told = f"{_tokens(case) / 1000:,.0f}k tokens: {requests(case)} requests"
    axes.text(left + 1, row, told, va="center")


def _parts(memory: Memory) -> tuple[tuple[str, str, float], ...]:
    working = memory.activations_bytes + memory.reserve_bytes
    cache = memory.usable_bytes - memory.weights_bytes - working
    return (
        ("weights", style.GREY, memory.weights_bytes),
        ("working memory and reserve", style.ORANGE, working),
        ("left for the key-value cache", style.BLUE, cache),
    )


def _work(case: Case) -> ServingWork:
    return ServingWork(
        model=model(case.preset),
        requests_per_second=1.0,
        input_tokens=Tokens(1000, 2000),
        output_tokens=Tokens(200, 500),
        prefix_hit_fraction=0.0,
        max_model_tokens=None,
        targets=(),
    )


def _layout(case: Case) -> ServingLayout:
    return ServingLayout(tensor=case.tensor, weight_format=case.weight_format)
