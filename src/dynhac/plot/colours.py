"""Colours of plots: a palette for clusters, and two themes, for light and for dark backgrounds.

`PALETTE` begins with six colours of Okabe and Ito, which can be told apart with any colour vision.
Each further colour is the one farthest from all before it, in the CIELAB space, as seen with normal
vision and with each of the three kinds of colour blindness. So the first colours are the safest.
All have enough contrast with white and with black.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#784824", "#B4B460",
    "#9C006C", "#7890FC", "#3048A8", "#903C48", "#FC6C84", "#609048", "#786090", "#A84818",
    "#78C0A8", "#CC9C3C", "#783C90", "#187860", "#E478D8", "#906CD8", "#F0A884", "#6C90C0",
)  # fmt: skip


class Theme(NamedTuple):
    """Colours that depend on the background."""

    ink: str  # lines and marks
    text: str
    grid: str
    closed: str  # branches that are not opened
    neutral: str  # what belongs to no single cluster
    cut: str
    background: str


LIGHT = Theme("#334155", "#475569", "#e2e8f0", "#7aa6d8", "#94a3b8", "#b91c1c", "#ffffff")
DARK = Theme("#cbd5e1", "#cbd5e1", "#3b4657", "#5b8fc7", "#7c8ba1", "#f87171", "#000000")


def theme_of(ax: Axes) -> Theme:
    """Return the theme that is visible on the background of the axes."""
    from matplotlib.colors import to_hex, to_rgb, to_rgba

    background = next(
        (
            colour
            for colour in (ax.get_facecolor(), ax.figure.get_facecolor())
            if to_rgba(colour)[3] >= 0.5
        ),
        "white",
    )
    red, green, blue = to_rgb(background)
    theme = LIGHT if 0.299 * red + 0.587 * green + 0.114 * blue >= 0.5 else DARK
    return theme._replace(background=to_hex(background))


def colours_of(clusters: Sequence[int]) -> dict[int, str]:
    """Return a colour for each of the clusters, which are given in the order of their rows.

    Cluster c gets colour c of the palette, counted round, or else the next colour that is not used
    yet. Older clusters, with smaller ids, choose first, so a new cluster does not change the
    colours of the others. If there are more clusters than colours, colours are used again, but
    never in two neighbouring rows.
    """
    row = {cluster: i for i, cluster in enumerate(clusters)}
    used: Counter[str] = Counter()
    colours: dict[int, str] = {}
    for cluster in sorted(row):
        i, first = row[cluster], cluster % len(PALETTE)
        beside = {colours.get(other) for other in clusters[max(i - 1, 0) : i + 2]}
        free = (c for c in (*PALETTE[first:], *PALETTE[:first]) if c not in beside)
        colours[cluster] = min(free, key=lambda colour: used[colour])
        used[colours[cluster]] += 1
    return colours
