"""The systems of the evaluation; GRINCH and OnlineSCC against naive implementations."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import naive_systems
import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from benchmarks.systems import SYSTEMS, Arrivals, Settings, Unavailable
from benchmarks.systems import points_only as arrivals_of
from benchmarks.systems.base import Rows, flat, unit_length
from benchmarks.systems.centroid_tree import NONE
from benchmarks.systems.grinch import Grinch
from benchmarks.systems.nearest import Scan
from benchmarks.systems.onlinescc import THRESHOLDS, OnlineSCC
from benchmarks.systems.scc_level import GRAIN


def points_only(ids: Any, points: Any) -> Arrivals:
    return arrivals_of(np.asarray(ids), np.asarray(points, np.float32))


def with_edges(ids: Any, edges: dict[tuple[int, int], float], points: Any = None) -> Arrivals:
    ends = np.array(list(edges), np.int64).reshape(-1, 2)
    points = np.zeros((len(ids), 1), np.float32) if points is None else points
    return Arrivals(np.asarray(ids), points, ends[:, 0], ends[:, 1], np.array(list(edges.values())))


def partition(ids: Any, labels: Any) -> set[frozenset[int]]:
    groups: dict[int, list[int]] = {}
    for name, label in zip(ids.tolist(), labels.tolist(), strict=True):
        groups.setdefault(label, []).append(name)
    return {frozenset(group) for group in groups.values()}


def clades(system: Grinch) -> set[frozenset[int]]:
    """The points below every node of a tree, after a check of everything it stores."""
    tree, name_of = system.tree, {slot: name for name, slot in system._slot_of.items()}
    if tree.root == NONE:
        assert not name_of
        return set()
    found, stack = {}, [tree.root]
    assert tree.parent[tree.root] == NONE
    while stack:
        node = stack.pop()
        if node % 2:
            for child in tree.children[node].tolist():
                assert tree.parent[child] == node
                stack.append(child)
        slots = tree.slots(node)
        points = np.array([tree.sums[2 * slot] for slot in slots])
        found[node] = frozenset(name_of[slot] for slot in slots.tolist())
        assert tree.counts[node] == len(slots) == len(found[node])
        np.testing.assert_allclose(tree.sums[node], points.sum(axis=0), rtol=1e-9, atol=1e-9)
        centroid = points.mean(axis=0)
        if tree.normalised:
            centroid /= np.linalg.norm(centroid)
        np.testing.assert_allclose(tree.centroids[node], centroid, rtol=1e-7, atol=1e-9)
        if node % 2:
            left, right = tree.centroids[tree.children[node]]
            score = 1 / (1 + np.linalg.norm(left - right))
            assert tree.scores[node] == pytest.approx(score, rel=1e-9)
    assert found[tree.root] == frozenset(name_of.values())
    assert len(set(found.values())) == len(found) == 2 * len(name_of) - 1
    return set(found.values())


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize(("dimension", "seed"), [(2, 0), (2, 1), (5, 2), (20, 3)])
def test_grinch_makes_the_tree_of_the_naive_one(
    dimension: int, seed: int, normalised: bool
) -> None:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(4, dimension)) * 3
    naive = naive_systems.NaiveGrinch(normalised)
    system = Grinch(Settings(normalised=normalised))
    system.build(points_only([], np.empty((0, dimension))))
    for name in range(1000, 1061):
        point = (centres[rng.integers(4)] + rng.normal(size=dimension)).astype(np.float32)
        system.insert(points_only([name], point[None]))
        naive.insert(name, unit_length(point[None])[0] if normalised else point)
        if rng.random() < 0.25:
            gone = int(rng.choice(list(naive.points)))
            system.delete(np.array([gone]))
            naive.delete(gone)
        if name % 3 == 0:
            assert clades(system) == naive.clades()
        assert sorted(system.ids().tolist()) == sorted(naive.points)
    for theta, labels in system.cuts():
        assert partition(system.ids(), labels) == naive.cut(theta)
    for name in list(naive.points):
        system.delete(np.array([name]))
    assert clades(system) == set()


def test_grinch_with_duplicates_and_reused_slots() -> None:
    rng = np.random.default_rng(5)
    system = Grinch(Settings())
    points = rng.integers(0, 4, size=(1000, 2)).astype(np.float32)
    system.build(points_only(np.arange(600), points[:600]))
    system.delete(rng.permutation(600)[:500])
    system.insert(points_only(np.arange(600, 1000), points[600:]))
    assert len(clades(system)) == 2 * 500 - 1
    at_one = next(labels for theta, labels in system.cuts() if theta == 1)
    held = points[system.ids()]
    for cluster in np.unique(at_one):
        assert len(np.unique(held[at_one == cluster], axis=0)) == 1


def test_grinch_rejects_wrong_ids() -> None:
    system = Grinch(Settings())
    system.build(points_only([4], [[0.0, 1.0]]))
    with pytest.raises(ValueError, match="point 4 is held already"):
        system.insert(points_only([4], [[0.0, 1.0]]))
    with pytest.raises(KeyError, match="point 5 is not held"):
        system.delete(np.array([5]))


@pytest.mark.parametrize("dimension", [2, 30])
def test_the_scan_is_exact(dimension: int) -> None:
    rng = np.random.default_rng(7)
    # Far from the origin, where squared norms are large against the differences.
    points = (1000 + rng.normal(size=(2500, dimension))).astype(np.float32).astype(np.float64)
    points[100:200] = points[:100]
    scan = Scan(dimension)
    assert scan.nearest(points[0]) == -1
    assert [scan.add(point) for point in points] == list(range(2500))
    gone = rng.permutation(2500)[:500]
    for slot in gone.tolist():
        scan.remove(slot)
    for query in points[::25]:
        excluded = rng.permutation(2500)[:1000]
        distance = ((points - query) ** 2).sum(axis=1)
        distance[gone] = distance[excluded] = np.inf
        assert scan.nearest(query, excluded) == distance.argmin()
    assert scan.add(points[0]) == gone[-1]


def random_graph(rng: Any, n: int, degree: int, kind: str) -> dict[tuple[int, int], float]:
    """Edges (later, earlier), with weights that the system need not round."""
    edges = {}
    for i in range(1, n):
        if kind == "parts" and rng.random() < 0.1:
            continue  # an isolated point, until others have edges to it
        reach = range(max(0, i - 40), i) if kind == "parts" else range(i)
        for j in rng.choice(reach, min(degree, len(reach)), replace=False).tolist():
            w = {
                "ties": rng.choice([0.25, 0.5, 1.0]),
                "parts": 10.0 ** -rng.uniform(0, 9),
            }.get(kind, rng.random())
            edges[i, j] = max(round(w / GRAIN), 1) * GRAIN
    return edges


@pytest.mark.parametrize("kind", ["plain", "ties", "parts"])
@pytest.mark.parametrize("seed", range(4))
def test_onlinescc_is_scc_from_scratch(kind: str, seed: int) -> None:
    rng = np.random.default_rng([seed, len(kind)])
    n, first = 120, int(rng.choice([1, 40, 80]))
    edges = random_graph(rng, n, int(rng.integers(1, 6)), kind)
    system = OnlineSCC(Settings())
    stop = 0
    while stop < n:
        start, stop = stop, min(n, stop + (first if stop == 0 else int(rng.choice([1, 3, 11]))))
        batch = with_edges(
            range(start, stop), {e: w for e, w in edges.items() if start <= e[0] < stop}
        )
        system.insert(batch) if start else system.build(batch)
        seen = {e: w for e, w in edges.items() if e[0] < stop}
        rounds = [partition(system.ids(), labels) for _, labels in system.cuts()]
        some_more = THRESHOLDS[: len(rounds) + 2]
        expected = naive_systems.naive_scc(stop, seen, some_more)
        assert rounds == expected[: len(rounds)]
        assert all(later == rounds[-1] for later in expected[len(rounds) :])
    scratch = OnlineSCC(Settings())
    scratch.build(with_edges(range(n), edges))
    assert [level.up for level in system.levels] == [level.up for level in scratch.levels]
    for ours, theirs in zip(system.levels, scratch.levels, strict=True):
        assert ours.best == theirs.best
        assert ours.n_edges == theirs.n_edges
        for name in ours.up:
            assert ours.neighbors[name] == theirs.neighbors[name]


def test_onlinescc_adds_rounds_when_components_are_joined() -> None:
    """Components without edges between them end the rounds early; an edge adds rounds again."""
    system = OnlineSCC(Settings())
    system.build(with_edges([1, 2, 3, 4], {(2, 1): 0.5, (4, 3): 0.5}))
    early = len(system.levels)
    system.insert(with_edges([5], {(5, 1): 0.25, (5, 3): 1e-6}))
    assert len(system.levels) > early
    *_, (_, labels) = system.cuts()
    assert labels.tolist() == [0] * 5


def test_onlinescc_normalised_searches_on_the_sphere() -> None:
    rng = np.random.default_rng(8)
    points = (rng.normal(size=(400, 3)) * rng.uniform(1, 50, size=(400, 1))).astype(np.float32)
    system = SYSTEMS["onlinescc-normalised"](Settings(neighbors=6))
    assert system.needs == "points"
    system.build(points_only(np.arange(300), points[:300]))
    for i in range(300, 400):
        system.insert(points_only([i], points[i : i + 1]))
    unit = unit_length(points).astype(np.float64)
    edges = {}
    for i in range(400):
        seen = max(300, i + 1)
        distance = np.sqrt(((unit[:seen] - unit[i]) ** 2).sum(axis=1))
        distance[i] = np.inf
        for j in np.argsort(distance)[:6].tolist():
            edges[max(i, j), min(i, j)] = 1 / (1 + distance[j])
    plain = OnlineSCC(Settings())
    plain.build(with_edges(range(400), edges))
    for (_, ours), (_, theirs) in zip(system.cuts(), plain.cuts(), strict=True):
        assert partition(system.ids(), ours) == partition(plain.ids(), theirs)


def test_exact_is_the_hierarchy_that_dynhac_approximates() -> None:
    rng = np.random.default_rng(9)
    edges = random_graph(rng, 120, 4, "plain")
    made = {}
    for name in ("exact", "dynhac", "static", "paper"):
        try:
            made[name] = SYSTEMS[name](Settings(epsilon=0, threshold=1e-3))
        except Unavailable as reason:
            pytest.skip(str(reason))
        made[name].build(with_edges(range(100), {e: w for e, w in edges.items() if e[0] < 100}))
        late = {e: w for e, w in edges.items() if e[0] >= 100}
        made[name].insert(with_edges(range(100, 120), late))
        made[name].delete(np.array([7, 110, 50]))
    for cuts in zip(*(system.cuts() for system in made.values()), strict=True):
        thetas = {theta for theta, _ in cuts}
        assert len(thetas) == 1
        parts = [
            partition(system.ids(), labels)
            for system, (_, labels) in zip(made.values(), cuts, strict=True)
        ]
        assert all(part == parts[0] for part in parts)


@pytest.fixture(scope="module")
def blobs() -> tuple[Any, Any, dict[tuple[int, int], float]]:
    """Five classes on a ring, apart from each other in the plane and in direction."""
    rng = np.random.default_rng(10)
    labels = rng.integers(5, size=240)
    angle = labels * 2 * np.pi / 5
    points = 20 * np.c_[np.cos(angle), np.sin(angle)] + rng.normal(size=(240, 2))
    points = points.astype(np.float32)
    edges = {}
    for i in range(1, 240):
        distance = np.sqrt(((points[:i] - points[i]) ** 2).sum(axis=1))
        for j in np.argsort(distance)[:10].tolist():
            edges[i, j] = float(1 / (1 + distance[j]))
    return points, labels, edges


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_every_system_implements_the_interface(name: str, blobs: Any) -> None:
    from sklearn.metrics import normalized_mutual_info_score

    points, classes, edges = blobs
    try:
        system = SYSTEMS[name](Settings(neighbors=10, radius=2.0 if name == "dbstream" else None))
    except Unavailable as reason:
        pytest.skip(str(reason))
    name_of = np.random.default_rng(11).permutation(10_000)[:240]  # ids in no order

    def batch(start: int, stop: int) -> Arrivals:
        part = {
            (int(name_of[i]), int(name_of[j])): w
            for (i, j), w in edges.items()
            if start <= i < stop
        }
        return with_edges(name_of[start:stop], part, points[start:stop])

    def best() -> float:
        row_of = {int(name): row for row, name in enumerate(name_of)}
        truth = classes[[row_of[i] for i in system.ids().tolist()]]
        cuts = list(system.cuts())
        for theta, labels in cuts:
            assert isinstance(theta, float)
            assert labels.shape == truth.shape
            assert labels.dtype == np.int64
        return max(normalized_mutual_info_score(truth, labels) for _, labels in cuts)

    assert system.name == name.removesuffix("-normalised")
    assert system.needs in ("points", "graph")
    system.build(batch(0, 180))
    system.settle()
    assert system.ids().tolist() == name_of[:180].tolist()
    # Classes are far apart: labels in a wrong order would agree with almost nothing.
    least = 0.75 if name in ("incdbscan", "dbstream", "agglomerative") else 0.97
    assert best() > least
    system.insert(batch(180, 181))
    system.insert(batch(181, 240))
    assert sorted(system.ids().tolist()) == sorted(name_of.tolist())
    assert best() > least
    gone = name_of[[0, 179, 200, 239]]
    refitted = not system.abilities.insert
    if system.abilities.delete or refitted:
        system.delete(gone)
        assert sorted(system.ids().tolist()) == sorted(set(name_of.tolist()) - set(gone.tolist()))
        assert best() > least
    else:
        with pytest.raises(NotImplementedError):
            system.delete(gone)


def test_agglomerative_cuts_as_scikit_learn_does(blobs: Any) -> None:
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.neighbors import kneighbors_graph

    points = blobs[0]
    system = SYSTEMS["agglomerative"](Settings(neighbors=4, cuts=(0.3, 0.5, 0.7, 0.9)))
    system.build(points_only(np.arange(len(points)), points))
    for theta, labels in system.cuts():
        model = AgglomerativeClustering(
            n_clusters=None,
            distance_threshold=1 / theta - 1,
            linkage="average",
            connectivity=kneighbors_graph(points, 4),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # more than one component
            expected = model.fit_predict(points)
        assert 1 < len(set(labels.tolist())) < len(points)
        assert partition(system.ids(), labels) == partition(system.ids(), expected)


def test_missing_package_makes_a_system_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "incdbscan", None)
    with pytest.raises(Unavailable, match="incdbscan cannot be imported"):
        SYSTEMS["incdbscan"](Settings())


def test_cuts_below_the_threshold_are_left_out() -> None:
    thetas = Settings(threshold=1e-2).thetas()
    assert thetas.min() >= 1e-2
    assert len(thetas) < len(Settings(threshold=1e-4).thetas()) == 40


def test_noise_as_one_cluster_and_as_single_points() -> None:
    (_, together), (_, apart) = flat(0.5, np.array([0.0, -1, 1, -1]))
    assert together.tolist() == [0, 2, 1, 2]
    assert apart.tolist() == [0, 2, 1, 3]


def test_rows_remove_points_and_their_edges() -> None:
    rows = Rows()
    rows.add(with_edges([8, 3], {(8, 3): 0.5}))
    rows.add(with_edges([5], {(5, 8): 0.25, (5, 3): 0.75}))
    with pytest.raises(KeyError, match="point 4 is not held"):
        rows.remove(np.array([3, 4]))
    rows.remove(np.array([8]))
    assert rows.ids.tolist() == [3, 5]
    assert [end.tolist() for end in rows.edge_rows()] == [[1], [0]]
    assert rows.w.tolist() == [0.75]
