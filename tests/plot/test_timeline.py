"""``plot_timeline``: which clusters get lanes, their thickness, links and labels."""

import time
from itertools import combinations, pairwise

import matplotlib as mpl
import numpy as np
import pytest
from timelines import from_rows, random_timeline, small_timeline

from dynhac.plot.timeline import plot_timeline

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection, PolyCollection


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def row_of(ax):
    return dict(zip(names(ax), ax.get_yticks().tolist(), strict=True))


def lanes(ax):
    return [c for c in ax.collections if isinstance(c, PolyCollection)]


def thickness(ax, row, x):
    """The thickness of the lane in a row at x; 0 if nothing is drawn there."""
    total = 0.0
    for lane in lanes(ax):
        (path,) = lane.get_paths()
        y = path.vertices[:, 1]
        if (y.min() + y.max()) / 2 == pytest.approx(row, abs=1e-6):
            heights = np.linspace(row - 3, row + 3, 6001)
            total += path.contains_points(np.column_stack([np.full(6001, x), heights])).sum() / 1e3
    return total


def links(ax):
    """``{(update, row, row)}`` of all lines between lanes."""
    return {
        (float(segment[0, 0]), *np.round(segment[:, 1], 2).tolist())
        for collection in ax.collections
        if isinstance(collection, LineCollection)
        for segment in collection.get_segments()
    }


def marks(ax, *markers):
    return {
        (float(x), float(y))
        for line in ax.lines
        if line.get_marker() in markers
        for x, y in zip(*line.get_data(), strict=True)
    }


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()] if ax.get_legend() else []


def sizes(timeline, update):
    """``{cluster: size}`` after an update."""
    now = {}
    for u, cluster, size in zip(*(c.tolist() for c in timeline[:3]), strict=True):
        if u <= update:
            now[cluster] = size
    return now


def peaks(timeline):
    peak = {}
    for cluster, size in zip(timeline.cluster.tolist(), timeline.size.tolist(), strict=True):
        peak[cluster] = max(peak.get(cluster, 0), size)
    return peak


def check_texts(ax):
    """Assert that no two texts overlap, and that all are inside the figure."""
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    ticks = zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
    texts = [label for x, label in ticks if low <= x <= high]
    texts += [*ax.get_yticklabels(), *ax.texts, ax.xaxis.label]
    texts += [ax.yaxis.label, *(ax.get_legend().get_texts() if ax.get_legend() else ())]
    texts.append(ax._left_title)
    boxes = [t.get_window_extent() for t in texts if t.get_text() and t.get_visible()]
    limits = ax.figure.bbox
    for box in boxes:
        assert limits.x0 - 1 <= box.x0 <= box.x1 <= limits.x1 + 1
        assert limits.y0 - 1 <= box.y0 <= box.y1 <= limits.y1 + 1
    for a, b in combinations(boxes, 2):
        assert min(a.x1, b.x1) <= max(a.x0, b.x0) + 1 or min(a.y1, b.y1) <= max(a.y0, b.y0) + 1


def test_a_small_timeline():
    ax = plot_timeline(small_timeline())
    row = row_of(ax)
    assert sorted(row) == ["0", "1", "2"]
    assert ax.get_title(loc="left") == "3 clusters, updates 1 to 10"
    assert ax.get_xlabel() == "update"
    assert legend(ax) == ["born", "died", "merged", "split"]
    assert links(ax) == {(7.0, row["1"], row["0"]), (4.0, row["0"], row["2"])}
    assert marks(ax, "o") == {(1.0, row["0"]), (2.0, row["1"])}
    assert marks(ax, "X") == {(9.0, row["2"])}
    assert marks(ax, "v", "^") == {(7.0, row["0"]), (4.0, row["2"])}
    assert {t.get_text() for t in ax.texts} >= {"65", "0 (24)", "0 (14)"}
    check_texts(ax)


def test_the_thickness_of_a_lane_is_the_size_of_its_cluster():
    timeline = small_timeline()
    ax = plot_timeline(timeline)
    scale = thickness(ax, row_of(ax)["0"], 10.2) / 65
    for update in range(1, 11):
        now = sizes(timeline, update)
        for name, row in row_of(ax).items():
            drawn = thickness(ax, row, update + 0.5)
            assert drawn == pytest.approx(now.get(int(name), 0) * scale, abs=0.003)


def test_the_largest_get_lanes_and_all_others_are_summed():
    timeline = random_timeline(40, 200, seed=2)
    ax = plot_timeline(timeline, max_clusters=12)
    peak = peaks(timeline)
    largest = sorted(peak, key=lambda c: (-peak[c], c))[:12]
    row = row_of(ax)
    assert sorted(row) == sorted([*map(str, largest), "28 others"])
    assert names(ax)[-1] == "28 others"
    assert ax.get_title(loc="left").endswith("; the 12 largest drawn, the other 28 summed")
    scale = thickness(ax, row[str(largest[0])], 200.5) / sizes(timeline, 200)[largest[0]]
    for update in (10, 30, 77, 150, 200):
        rest = sum(s for c, s in sizes(timeline, update).items() if c not in largest)
        drawn = thickness(ax, row["28 others"], update + 0.5)
        assert drawn == pytest.approx(rest * scale, abs=0.005)
    check_texts(ax)


def test_links_to_clusters_without_a_lane_are_short():
    timeline = from_rows(
        [(1, 0, 900), (1, 1, 100), (1, 2, 1), (2, 0, 1000), (2, 1, 0), (3, 0, 1001), (3, 2, 0)],
        [(2, "merged", 0, (1,)), (3, "merged", 0, (2,))],
        3,
    )
    ax = plot_timeline(timeline, max_clusters=1)
    assert names(ax) == ["0", "2 others"]
    ((update, start, end),) = links(ax)  # the cluster of one point is too small to be seen
    assert (update, end) == (2.0, 0.0)
    assert 0 < start < 0.5


def test_a_lane_that_splits_from_a_cluster_without_a_lane():
    timeline = from_rows(
        [(1, 0, 10), (2, 0, 5), (2, 1, 5), (3, 1, 500)], [(2, "split", 0, (1,))], 4
    )
    ax = plot_timeline(timeline, max_clusters=1)
    ((update, _, end),) = links(ax)
    assert (update, end) == (2.0, 0.0)
    assert marks(ax, "^") == {(2.0, 0.0)}


def test_linked_lanes_are_neighbours():
    rows = [(1, c, 100 - c) for c in range(6)] + [(2, 0, 195), (2, 5, 0)]
    ax = plot_timeline(from_rows(rows, [(2, "merged", 0, (5,))], 2))
    assert abs(row_of(ax)["0"] - row_of(ax)["5"]) == 1


def test_clusters_that_split_and_merge_in_a_cycle():
    rows = [(1, 0, 10), (2, 0, 6), (2, 1, 4), (3, 1, 12), (4, 0, 0), (4, 1, 18)]
    ax = plot_timeline(from_rows(rows, [(2, "split", 0, (1,)), (4, "merged", 1, (0,))], 5))
    assert sorted(names(ax)) == ["0", "1"]
    assert len(links(ax)) == 2


def test_neighbouring_lanes_have_different_colours():
    ax = plot_timeline(random_timeline(60, 300), max_clusters=30)
    colour = {}
    for lane in lanes(ax):
        y = lane.get_paths()[0].vertices[:, 1]
        colour[round(float(y.min() + y.max()) / 2, 3)] = tuple(lane.get_facecolor()[0])
    ordered = [colour[row] for row in sorted(colour)]
    assert len(ordered) == 31
    assert all(a != b for a, b in pairwise(ordered))


def test_a_very_thick_lane_of_others_is_drawn_smaller():
    rows = [(1, c, 10) for c in range(100)]
    ax = plot_timeline(from_rows(rows, [], 2), max_clusters=2)
    assert thickness(ax, row_of(ax)["98 others"], 1.5) < 3
    assert any("of the scale" in t.get_text() for t in ax.texts)
    check_texts(ax)


@pytest.mark.parametrize("max_clusters", [5, 20, 100])
def test_five_hundred_clusters_over_ten_thousand_updates(max_clusters):
    timeline = random_timeline(500, 10_000, seed=1)
    start = time.process_time()
    ax = plot_timeline(timeline, max_clusters=max_clusters)
    check_texts(ax)
    assert time.process_time() - start < 20
    assert len(names(ax)) == max_clusters + 1
    assert f"the other {500 - max_clusters} summed" in ax.get_title(loc="left")


def test_every_cluster_changes_with_every_update():
    clusters, updates = 500, 2_000
    size = np.random.default_rng(0).integers(1, 1000, clusters * updates)
    rows = np.column_stack(
        [np.repeat(np.arange(updates), clusters), np.tile(np.arange(clusters), updates), size]
    )
    start = time.process_time()
    ax = plot_timeline(from_rows(rows, [], updates))
    ax.figure.canvas.draw()
    assert time.process_time() - start < 20
    assert len(names(ax)) == 21


def test_names_without_space_are_left_out():
    timeline = random_timeline(500, 1_000, seed=3)
    _, ax = plt.subplots(figsize=(10, 4), layout="constrained")
    plot_timeline(timeline, ax, max_clusters=300)
    shown = names(ax)
    assert 10 < len(shown) < 200
    peak = peaks(timeline)
    assert str(max(peak, key=lambda c: (peak[c], -c))) in shown
    check_texts(ax)


def test_drawing_on_given_axes():
    _, axes = plt.subplots(1, 2, layout="constrained")
    assert plot_timeline(small_timeline(), axes[1]) is axes[1]
    assert len(plt.get_fignums()) == 1
    assert not axes[0].collections


def test_a_single_update_has_a_single_tick():
    ax = plot_timeline(from_rows([(1, 0, 5)], [], 1))
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    assert [tick for tick in ax.get_xticks() if low <= tick <= high] == [1.0]


@pytest.mark.parametrize(
    ("rows", "clusters"), [([], 0), ([(3, 0, 0)], 0), ([(3, 7, 1)], 1), ([(1, 7, 1), (3, 7, 0)], 1)]
)
def test_no_or_few_clusters(rows, clusters):
    ax = plot_timeline(from_rows(rows, [], 3))
    check_texts(ax)
    assert len(names(ax)) == clusters
    assert legend(ax) == []
    assert ax.get_title(loc="left").startswith(f"{clusters} cluster")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": np.ones(3, int)}, "have lengths 13, 13 and 3"),
        ({"size": np.full(13, 0.5)}, "size of the timeline has dtype float64"),
        ({"update": np.arange(13)[::-1]}, "update 11 at position 1 of the timeline comes after 12"),
        ({"cluster": np.full(13, -1)}, "cluster -1 at position 0 of the timeline is below 0"),
        ({"last_update": 9}, "last_update is 9; it must be at least 10"),
        ({"events": [(1, "grew", 0, ())]}, "event 'grew' of update 1 is unknown"),
    ],
)
def test_bad_timelines(changes, message):
    with pytest.raises(ValueError, match=message):
        plot_timeline(small_timeline()._replace(**changes))


@pytest.mark.parametrize("max_clusters", [0, 2.5])
def test_bad_options(max_clusters):
    with pytest.raises(ValueError, match="must be an integer >= 1"):
        plot_timeline(small_timeline(), max_clusters=max_clusters)
