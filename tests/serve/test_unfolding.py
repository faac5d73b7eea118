"""The unfolding of a hierarchy against a recursive one, on random and on extreme trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynhac import GraphHAC
from dynhac.serve.unfolding import MIXED, ROOT, Unfolding


def edges_of(shape: str, n: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if shape == "path":
        return np.arange(n - 1), np.arange(1, n), rng.uniform(0.1, 1, n - 1)
    if shape == "star":
        return np.zeros(n - 1, int), np.arange(1, n), rng.uniform(0.1, 1, n - 1)
    if shape == "equal":
        return np.arange(n - 1), np.arange(1, n), np.full(n - 1, 0.5)
    u, v = rng.integers(0, n, (2, 2 * n))
    keep = u < v
    pairs = np.unique(np.stack([u[keep], v[keep]]), axis=1)
    return pairs[0], pairs[1], rng.uniform(0.1, 1, pairs.shape[1])


def unfolding_of(shape: str, n: int, seed: int, epsilon: float) -> Unfolding:
    model = GraphHAC(epsilon=epsilon)
    model.update(add=np.arange(n), edges=edges_of(shape, n, seed))
    view = model.dendrogram()
    return Unfolding(view, view.labels(0.2, min_size=2))


def members(tree: Unfolding, node: int) -> list[int]:
    stack, found = [node], []
    while stack:
        node = stack.pop()
        if node < tree.n_leaves:
            found.append(node)
        else:
            stack += tree.dendrogram.children[node - tree.n_leaves].tolist()
    return found


trees = st.tuples(
    st.sampled_from(["path", "star", "equal", "random"]),
    st.integers(1, 40),
    st.integers(0, 1_000),
    st.sampled_from([0.0, 0.1, 1.0]),
)


@given(trees)
def test_intervals_hold_the_leaves_of_a_node(given):
    tree = unfolding_of(*given)
    for node in range(len(tree.parent)):
        leaves = members(tree, node)
        first = tree.start[node]
        assert sorted(tree.leaves[first : first + tree.size[node]].tolist()) == sorted(leaves)
        labels = set(tree.labels[leaves].tolist())
        assert tree.label(node) == (labels.pop() if len(labels) == 1 else MIXED)


@given(trees, st.integers(1, 6))
def test_all_points_are_shown_or_hidden(given, min_size):
    tree = unfolding_of(*given)

    def check(entry: dict[str, Any]) -> int:
        if entry["more"] or (not entry["children"] and entry["hidden"] == 0):
            return int(entry["size"])
        below = sum(check(child) for child in entry["children"]) + entry["hidden"]
        assert below == entry["size"] or not entry["children"]
        sizes = [child["size"] for child in entry["children"]]
        assert sizes == sorted(sizes, reverse=True)
        assert all(size >= min_size for size in sizes)
        assert len(sizes) != 1 or entry["node"] is None  # what leads to one child is passed over
        return int(entry["size"])

    top = tree.unfold(ROOT, 64, 10_000, min_size)
    assert check(top) == tree.n_leaves
    few = tree.unfold(ROOT, 64, 5, min_size)
    assert count(few) <= 5


def count(entry: dict[str, Any]) -> int:
    return 1 + sum(count(child) for child in entry["children"])


@given(trees, st.integers(1, 6), st.integers(0, 39))
def test_a_path_is_a_way_through_what_is_unfolded(given, min_size, leaf):
    tree = unfolding_of(*given)
    leaf %= tree.n_leaves
    path = tree.path(leaf, min_size, 1_000)
    assert path[-1]["point"] == leaf
    shown = tree.unfold(ROOT, 64, 10_000, min_size)
    for step in path:
        following = [c for c in shown["children"] if (c["node"], c["point"]) == _name(step)]
        if not following:  # the point is in a branch that is hidden
            assert step is path[-1]
            assert shown["hidden"]
            return
        (shown,) = following


def _name(entry: dict[str, Any]) -> tuple[Any, Any]:
    return entry["node"], entry["point"]


def test_levels_and_nodes(tmp_path):
    tree = unfolding_of("random", 40, 3, 0.1)
    assert tree.unfold(ROOT, 0, 100, 1)["children"] == []
    two = tree.unfold(ROOT, 2, 10_000, 1)
    assert all(not grand["children"] for child in two["children"] for grand in child["children"])
    node = int(tree.dendrogram.node_ids[-1])
    assert tree.unfold(tree.node_of(node), 1, 100, 1)["node"] == node
    with pytest.raises(KeyError, match="does not exist"):
        tree.node_of(10**9)


def test_a_limit_of_trees_leaves_nodes_for_what_is_in_them():
    tree = unfolding_of("random", 40, 3, 0.1)
    many = len(tree.roots)
    assert many > 2
    few = tree.unfold(ROOT, 64, 30, 1, trees=2)
    assert len(few["children"]) == 2
    assert few["more"] == many - 2
    assert [each["size"] for each in few["children"]] == sorted(
        tree.size[tree.roots].tolist(), reverse=True
    )[:2]


def test_an_empty_model():
    view = GraphHAC().dendrogram()
    tree = Unfolding(view, np.empty(0, np.int64))
    assert tree.unfold(ROOT, 4, 100, 1)["size"] == 0


@pytest.mark.parametrize("shape", ["path", "star", "random"])
def test_a_large_tree_is_quick(shape):
    import time

    n = 100_000
    model = GraphHAC()
    model.update(add=np.arange(n), edges=edges_of(shape, n, 0))
    view = model.dendrogram()
    labels = view.labels(0.2)
    start = time.process_time()
    tree = Unfolding(view, labels)
    tree.unfold(ROOT, 6, 500, 50)
    tree.path(77, 50, 200)
    assert time.process_time() - start < 3.0
