"""``plot_timeline``: which clusters get lanes, their thickness, links and labels."""

import time
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from drawings import check_texts, is_readable
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
    return [label.get_text() for label in ax.get_yticklabels() if label.get_text()]


def row_of(ax):
    labels = zip(ax.get_yticklabels(), ax.get_yticks().tolist(), strict=True)
    return {label.get_text(): row for label, row in labels if label.get_text()}


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


def test_lines_lead_from_lane_to_lane_only():
    timeline = from_rows(
        [(1, 0, 900), (1, 1, 100), (1, 2, 1), (2, 0, 1000), (2, 1, 0), (3, 0, 1001), (3, 2, 0)],
        [(2, "merged", 0, (1,)), (3, "merged", 0, (2,))],
        3,
    )
    ax = plot_timeline(timeline, max_clusters=1)
    assert names(ax) == ["0", "2 others"]
    assert links(ax) == set()
    assert legend(ax) == []
    ax = plot_timeline(timeline, max_clusters=2)
    assert {(update, end) for update, _, end in links(ax)} == {(2.0, row_of(ax)["0"])}


def test_every_line_ends_at_a_lane():
    timeline = random_timeline(80, 400, seed=5)
    ax = plot_timeline(timeline, max_clusters=15)
    rows = set(np.round(ax.get_yticks(), 2).tolist())
    assert links(ax)
    for _, start, end in links(ax):
        assert {start, end} <= rows
        assert start != end


def test_a_lane_that_splits_from_a_cluster_without_a_lane_has_a_mark():
    timeline = from_rows(
        [(1, 0, 10), (2, 0, 5), (2, 1, 5), (3, 1, 500)], [(2, "split", 0, (1,))], 4
    )
    ax = plot_timeline(timeline, max_clusters=1)
    assert links(ax) == set()
    assert marks(ax, ">") == {(2.0, 0.0)}
    assert legend(ax) == ["split"]


def test_a_lane_that_ends_in_a_cluster_without_a_lane_has_a_mark():
    rows = [(1, 0, 100), (1, 1, 40), (2, 0, 30), (3, 0, 0), (3, 1, 70)]
    ax = plot_timeline(from_rows(rows, [(3, "merged", 1, (0,))], 4), max_clusters=1)
    assert links(ax) == set()
    assert marks(ax, ">") == {(3.0, 0.0)}


def test_linked_lanes_are_neighbours():
    rows = [(1, c, 100 - c) for c in range(6)] + [(2, 0, 195), (2, 5, 0)]
    ax = plot_timeline(from_rows(rows, [(2, "merged", 0, (5,))], 2))
    assert abs(row_of(ax)["0"] - row_of(ax)["5"]) == 1


def test_clusters_that_split_and_merge_in_a_cycle():
    rows = [(1, 0, 10), (2, 0, 6), (2, 1, 4), (3, 1, 12), (4, 0, 0), (4, 1, 18)]
    ax = plot_timeline(from_rows(rows, [(2, "split", 0, (1,)), (4, "merged", 1, (0,))], 5))
    assert sorted(names(ax)) == ["0", "1"]
    assert len(links(ax)) == 2


def colours(ax):
    """The colour of each lane, by row."""
    colour = {}
    for lane in lanes(ax):
        y = lane.get_paths()[0].vertices[:, 1]
        colour[round(float(y.min() + y.max()) / 2, 3)] = tuple(lane.get_facecolor()[0])
    return colour


def test_neighbouring_lanes_have_different_colours():
    colour = colours(plot_timeline(random_timeline(60, 300), max_clusters=30))
    ordered = [colour[row] for row in sorted(colour)]
    assert len(ordered) == 31
    assert all(a != b for a, b in pairwise(ordered))


def test_twenty_clusters_have_twenty_colours_that_stay():
    timeline = random_timeline(40, 200, seed=2)
    ax = plot_timeline(timeline)
    assert len(set(colours(ax).values())) == 21
    rows = [(1, c, 100 - c) for c in range(12)]
    before = plot_timeline(from_rows(rows, [], 1))
    after = plot_timeline(from_rows([*rows, *[(2, c, 200) for c in range(12, 20)]], [], 2))
    old, new = colours(before), colours(after)
    for name, row in row_of(before).items():
        assert new[row_of(after)[name]] == old[row]


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_lanes_are_visible_on_their_background(style):
    with plt.style.context(style):
        ax = plot_timeline(random_timeline(60, 300), max_clusters=24)
        drawn = [lane.get_facecolor()[0] for lane in lanes(ax)]
        drawn += [text.get_color() for text in ax.texts]
        assert all(is_readable(colour, ax.get_facecolor()) for colour in drawn)


def with_times(timeline, times):
    """The same timeline, where update u was made at ``times[u]``."""
    return timeline._replace(time=times[timeline.update], last_time=times[timeline.last_update])


def test_an_axis_of_numbers():
    times = np.array([0, 10, 11, 15, 40, 41, 42, 60, 61, 90, 100])
    timeline = with_times(small_timeline(), times)
    ax = plot_timeline(timeline)
    row = row_of(ax)
    assert ax.get_xlabel() == "time"
    assert marks(ax, "o") == {(10.0, row["0"]), (11.0, row["1"])}
    assert links(ax) == {(60.0, row["1"], row["0"]), (40.0, row["0"], row["2"])}
    assert thickness(ax, row["2"], 75) > 0
    assert thickness(ax, row["2"], 95) == 0
    check_texts(ax)
    assert plot_timeline(timeline, x="update").get_xlabel() == "update"


@pytest.mark.parametrize("unit", ["s", "h", "D", "Y"])
def test_an_axis_of_dates(unit):
    times = (np.datetime64("1987-02-26", unit) + np.arange(11) ** 2 // 2).astype("datetime64[ns]")
    _, ax = plt.subplots(figsize=(5, 4), layout="constrained")
    plot_timeline(with_times(small_timeline(), times), ax)
    check_texts(ax)
    from matplotlib.dates import num2date

    low, high = (np.datetime64(num2date(x).replace(tzinfo=None)) for x in ax.get_xlim())
    assert low <= times[1]
    assert times[10] <= high <= times[10] + (times[10] - times[1])


def test_all_updates_at_one_time():
    for time_ in (np.full(11, 7.5), np.full(11, "2020-01-01", "datetime64[ns]")):
        ax = plot_timeline(with_times(small_timeline(), time_))
        check_texts(ax)
        assert thickness(ax, row_of(ax)["0"], np.mean(ax.get_xlim())) > 0


def test_names_of_clusters():
    ax = plot_timeline(small_timeline(), labels={0: "coffee", 2: "cocoa " * 40})
    assert names(ax)[:2] in (["1", "coffee"], ["coffee", "1"])
    assert names(ax)[2].endswith("…")
    check_texts(ax)
    ax = plot_timeline(small_timeline(), labels=lambda c: None if c == 1 else f"$topic$ {c}")
    assert sorted(names(ax)) == ["1", r"\$topic\$ 0", r"\$topic\$ 2"]
    with pytest.raises(TypeError, match="labels is"):
        plot_timeline(small_timeline(), labels=["a"])


@pytest.mark.parametrize("seed", range(6))
def test_texts_do_not_overlap_in_any_figure(seed):
    rng = np.random.default_rng(seed)
    timeline = random_timeline(int(rng.integers(1, 60)), int(rng.integers(1, 300)), seed=seed)
    if seed % 2:
        times = 1.7e9 + np.cumsum(rng.exponential(1000, timeline.last_update + 1))
        timeline = with_times(timeline, times)
    with plt.rc_context({"font.size": rng.uniform(6, 14)}):
        _, ax = plt.subplots(figsize=(rng.uniform(5, 12), rng.uniform(3, 9)), layout="constrained")
        plot_timeline(timeline, ax, int(rng.integers(1, 40)), labels=lambda c: "name " * (c % 9))
        check_texts(ax)


def test_a_very_thick_lane_of_others_is_drawn_smaller():
    rows = [(1, c, 10) for c in range(100)]
    ax = plot_timeline(from_rows(rows, [], 2), max_clusters=2)
    assert thickness(ax, row_of(ax)["98 others"], 1.5) < 3
    assert any("of the scale" in t.get_text() for t in ax.texts)
    check_texts(ax)


@pytest.mark.parametrize("max_clusters", [5, 60])
def test_five_hundred_clusters_over_ten_thousand_updates(max_clusters):
    timeline = random_timeline(500, 10_000, seed=1)
    start = time.process_time()
    ax = plot_timeline(timeline, max_clusters=max_clusters)
    check_texts(ax)
    assert time.process_time() - start < 20
    assert len(ax.get_yticks()) == max_clusters + 1
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
    plot_timeline(timeline, ax, max_clusters=150)
    shown = names(ax)
    assert 10 < len(shown) < 100
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
        ({"time": np.arange(3)}, "update and time of the timeline have lengths 13 and 3"),
        ({"time": np.arange(13)[::-1]}, "time 11 at position 1 of the timeline comes after 12"),
        ({"time": np.full(13, np.nan)}, "time nan at position 1"),
    ],
)
def test_bad_timelines(changes, message):
    with pytest.raises(ValueError, match=message):
        plot_timeline(small_timeline()._replace(**changes))


@pytest.mark.parametrize("x", ["day", None, "time"])
def test_bad_axes(x):
    with pytest.raises(ValueError, match=r"^x is "):
        plot_timeline(small_timeline(), x=x)


@pytest.mark.parametrize("max_clusters", [0, 2.5])
def test_bad_options(max_clusters):
    with pytest.raises(ValueError, match="must be an integer >= 1"):
        plot_timeline(small_timeline(), max_clusters=max_clusters)
