"""Checks of what is drawn: whether texts overlap lines, shapes or each other."""

from itertools import combinations

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.transforms import Bbox

TOUCH = 0.5  # pixels by which boxes may overlap: glyphs are rounded to whole pixels


def texts_of(ax):
    """All texts that are drawn: ticks, labels, title, legend, and texts inside the axes."""
    low, high = sorted(ax.get_xlim())
    ticks = zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
    texts = [label for x, label in ticks if low <= x <= high]
    texts += [*ax.get_yticklabels(), *ax.texts, ax.xaxis.label, ax.yaxis.label, ax._left_title]
    texts += [ax.xaxis.get_offset_text(), *(ax.get_legend().get_texts() if ax.get_legend() else ())]
    return [text for text in texts if text.get_text() and text.get_visible()]


def overlap(a, b):
    """Whether two boxes overlap by more than they may."""
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    return width > TOUCH and min(a.y1, b.y1) - max(a.y0, b.y0) > TOUCH


def lines_of(ax):
    """The boxes of all lines along the axes, in pixels; the grid is not one of them."""
    boxes = []
    for collection in ax.collections:
        if isinstance(collection, LineCollection):
            for segment in collection.get_segments():
                boxes.append(Bbox(ax.transData.transform(segment)))
    for line in ax.lines:
        boxes.append(Bbox(line.get_transform().transform(line.get_xydata())))
    return boxes


def crosses(box, line):
    """Whether a line along one of the axes enters a box."""
    x0, x1 = sorted((line.x0, line.x1))
    y0, y1 = sorted((line.y0, line.y1))
    inside = Bbox([[box.x0 + TOUCH, box.y0 + TOUCH], [box.x1 - TOUCH, box.y1 - TOUCH]])
    return x0 < inside.x1 and x1 > inside.x0 and y0 < inside.y1 and y1 > inside.y0


def check_texts(ax):
    """Assert that no text overlaps another, and that all are inside the figure."""
    ax.figure.canvas.draw()
    texts = texts_of(ax)
    boxes = [text.get_window_extent() for text in texts]
    limits = ax.figure.bbox
    for text, box in zip(texts, boxes, strict=True):
        assert limits.x0 - 1 <= box.x0 <= box.x1 <= limits.x1 + 1, text
        assert limits.y0 - 1 <= box.y0 <= box.y1 <= limits.y1 + 1, text
    for (one, a), (other, b) in combinations(zip(texts, boxes, strict=True), 2):
        assert not overlap(a, b), (one, other)


def check_inside(ax):
    """Assert that texts inside the axes touch no line and no shape."""
    lines = lines_of(ax)
    for text in ax.texts:
        box = text.get_window_extent()
        assert not any(crosses(box, line) for line in lines), text
        for patch in ax.patches:
            path = patch.get_transform().transform_path(patch.get_path())
            assert not path.intersects_bbox(box.padded(-TOUCH), filled=True), text


def is_readable(colour, background):
    """Whether the luminances of two colours have a ratio of at least 1.8."""
    from matplotlib.colors import to_rgb

    def luminance(c):
        rgb = np.array(to_rgb(c))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722]) + 0.05

    bright, dark = sorted((luminance(colour), luminance(background)))[::-1]
    return bright / dark >= 1.8
