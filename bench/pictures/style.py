"""How the pictures look: small SVG with real text, readable on light and on dark pages."""

from __future__ import annotations

import io
import re
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

PAPER, INK, MUTED, GRID = "#ffffff", "#1f2328", "#59636e", "#d1d9e0"
DARK = {PAPER: "#0d1117", INK: "#e6edf3", MUTED: "#9198a1", GRID: "#30363d"}
"""What the neutral colours become where the reader's system is dark."""
BLUE, ORANGE, GREEN, PURPLE = "#3b7dd8", "#d0711b", "#2a9a4a", "#9a67d9"
RED, TEAL, GREY = "#dd524a", "#16919f", "#848d97"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, TEAL, GREY)
"""Each stands out from both papers."""
WIDTH_INCHES = 7.6

matplotlib.use("svg")
matplotlib.rcParams.update(
    {
        "svg.hashsalt": "poolwise",
        "svg.fonttype": "none",  # text stays text: small, searchable, readable aloud
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans", "Verdana", "Helvetica", "Arial"],
        "font.size": 9.5,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": MUTED,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.facecolor": PAPER,
        "figure.facecolor": PAPER,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "grid.color": GRID,
        "grid.linewidth": 0.7,
        "legend.frameon": False,
        "lines.linewidth": 2.0,
    }
)


def figure(height_inches: float) -> Figure:
    """An empty picture as wide as a page."""
    return Figure(figsize=(WIDTH_INCHES, height_inches), layout="constrained")


def panel(drawn: Figure) -> Axes:
    """The one pair of axes of a picture, with a quiet grid."""
    axes = drawn.subplots()
    gridded(axes)
    return axes


def gridded(axes: Axes) -> None:
    """A quiet grid behind everything."""
    axes.grid(True)
    axes.set_axisbelow(True)


def note(drawn: Figure, text: str) -> None:
    """Where the numbers are from, below the picture."""
    drawn.supxlabel(text, x=0.01, ha="left", fontsize=7.5, color=MUTED)


def as_svg(drawn: Figure, title: str) -> str:
    """The picture as SVG that is the same each time and follows the reader's colours."""
    buffer = io.StringIO()
    drawn.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
    text = re.sub(r"<metadata>.*?</metadata>\n", "", buffer.getvalue(), flags=re.DOTALL)
    text = _with_plain_names(text)
    opened = text.index(">", text.index("<svg ")) + 1
    head = f"\n <title>{title}</title>\n <style>{_dark_rules()}</style>"
    return "\n".join(line.rstrip() for line in (text[:opened] + head + text[opened:]).splitlines())


def save(path: Path, drawn: Figure, title: str) -> None:
    """The picture as a file, in a folder that need not be there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_svg(drawn, title), encoding="utf-8")


def _with_plain_names(text: str) -> str:
    """Shapes that others refer to by their turn: matplotlib names them by a digest of unrounded
    coordinates, whose last bit is not the same on every machine."""
    digests = dict.fromkeys(re.findall(r'id="([a-z][0-9a-f]{10})"', text))
    for number, digest in enumerate(digests):
        text = text.replace(digest, f"shape_{number}")
    return text


def _dark_rules() -> str:
    rules = [
        f'[style*="{kind}: {light}"]{{{kind}:{dark} !important}}'
        for light, dark in DARK.items()
        for kind in ("fill", "stroke")
    ]
    return f"@media (prefers-color-scheme: dark){{{''.join(rules)}}}"
