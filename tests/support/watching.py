"""A ``GraphHAC`` under test: every update is compared with a plain model of the graph.

``Watched`` applies the batches of a ``Stream`` to a ``GraphHAC`` and asserts the invariants after
every batch, also of the automatic clusters; ``judge`` adds the expensive checks, the oracles.
"""

import itertools

import numpy as np
import oracles
import pytest
from following import Follower

from dynhac import GraphHAC


def frozen(g):
    """The whole visible state as bytes: equal only if nothing has changed.

    It has the ids of the user, not the keys that the engine uses for strings.
    """
    snapshot, u, v, w, faults = g._engine.engine.export()
    arrays = (*snapshot[2:], u, v, w, g.edges()[2])
    columns = [column.tolist() for column in (g.ids, *g.edges()[:2])]
    return snapshot.version, columns, faults, [(a.dtype.str, a.shape, a.tobytes()) for a in arrays]


class Watched:
    def __init__(self, stream, epsilon, threshold, threads=1):
        self.g = GraphHAC(epsilon, threshold, threads=threads)
        self.stream = stream
        self.ever = set()  # all node ids so far
        self.nodes = {}
        self.followers = [Follower(self.g, None, least) for least in (2, 3, 4, 25)]

    def update(self, batch):
        """Apply a batch that the stream has applied to its model already."""
        version = self.g.version
        change = self.g.update(**batch)
        assert self.g.version - version in (0, 1)
        before, self.nodes = self.nodes, self.describe()
        self.compare_nodes(before, self.nodes, change)
        if self.g.version == version:
            assert before == self.nodes
        for follower in self.followers:
            follower.look()
        return change

    def reject(self, batch, error):
        """Assert that a batch is rejected and changes nothing."""
        before = frozen(self.g)
        with pytest.raises(error):
            self.g.update(**batch)
        assert frozen(self.g) == before

    def describe(self):
        """``{node id: (ids of the leaves, similarity, size)}``."""
        d = self.g.dendrogram()
        leaves = [frozenset([v]) for v in d.ids.tolist()]
        for left, right in d.children.tolist():
            leaves.append(leaves[left] | leaves[right])
        merged = leaves[len(d.ids) :]
        rows = zip(merged, d.similarity.tolist(), d.size.tolist(), strict=True)
        nodes = dict(zip(d.node_ids.tolist(), rows, strict=True))
        assert len(nodes) == len(d.node_ids), "a node id is there twice"
        assert all(len(inside) == size for inside, _, size in nodes.values())
        return nodes

    def compare_nodes(self, before, after, change):
        """Assert that the change describes the difference of two dendrograms."""
        created = {c.node_id: c for c in change.created}
        removed = {r.node_id: r for r in change.removed}
        assert len(created) == len(change.created) == change.nodes_created
        assert len(removed) == len(change.removed) == change.nodes_removed
        assert removed.keys() <= before.keys()
        assert created.keys() <= after.keys()
        assert after.keys() == (before.keys() - removed.keys()) | created.keys()
        both = created.keys() & removed.keys()
        for reported, actual in ((created, after), (removed, before)):
            for node_id, node in reported.items():
                assert (node.similarity, node.size) == actual[node_id][1:]
                assert node.passed_on == (node_id in both)
        assert set(change.passed_on.tolist()) == both
        for node_id in both:  # a successor shares a leaf with its predecessor
            assert before[node_id][0] & after[node_id][0]
        for node_id in before.keys() - removed.keys():
            assert before[node_id] == after[node_id], "changed, but not reported"
        assert not (created.keys() - both) & self.ever, "a node id was used before"
        self.ever |= created.keys()

    def judge_graph(self):
        """Assert that the graph of the engine equals the model."""
        g, model = self.g, self.stream.model
        assert len(g) == len(model)
        assert g.ids.tolist() == list(model)
        assert all(v in g for v in model)
        u, v, w = (column.tolist() for column in g.edges())
        held = {frozenset(pair): weight for *pair, weight in zip(u, v, w, strict=True)}
        assert len(held) == len(u), "an edge is there twice"
        assert held == {frozenset((a, b)): x for a, row in model.items() for b, x in row.items()}

    def judge(self):
        """Make all checks of the state; returns whether exactness could be tested."""
        g = self.g
        report = g.verify()
        assert report.ok, str(report)
        self.judge_graph()
        n, edges = len(g), self.stream.indexed()
        snapshot, *_ = g._engine.engine.export()
        merges = oracles.rows(snapshot.children, snapshot.similarity, snapshot.level)
        found = oracles.full_check(n, edges, merges, g.epsilon, g.threshold, g.resolution)
        assert found.ok, found
        assert found.worst_goodness == pytest.approx(report.worst_goodness, rel=1e-9)
        assert oracles.approximation(n, edges, merges) <= (1 + g.epsilon) * (1 + 1e-12)
        low = snapshot.min_similarity
        assert (np.diff(low) <= 0).all()
        self.judge_cuts(merges)
        return g.epsilon == 0 and oracles.assert_exact(n, edges, merges, g.threshold)

    def judge_cuts(self, merges):
        """Check cuts at, between and beyond the similarities of the merges."""
        g, n = self.g, len(self.g)
        similarity = sorted({m.similarity for m in merges})[:: max(1, len(merges) // 6)]
        between = [(a + b) / 2 for a, b in itertools.pairwise(similarity)]
        thetas = [t for t in (*similarity, *between, 1e-3, 2.0) if t >= g.threshold]
        # A theta is rounded down like a weight of the same value.
        units = [theta / g.resolution for theta in thetas]
        lowered = [min(t, round(x) * g.resolution) for t, x in zip(thetas, units, strict=True)]
        expected = [oracles.cut(n, merges, theta) for theta in lowered]
        assert g.cut(thetas).tolist() == expected
        assert g.labels(thetas[0]).tolist() == expected[0]
        for k in {n - len(merges), n - len(merges) // 2, n}:
            labels = g.labels(n_clusters=k).tolist()
            assert len(set(labels)) == k
            firsts = list(dict.fromkeys(labels))
            assert firsts == sorted(firsts)
            for cluster in {labels.index(c) for c in firsts}:
                inside = frozenset(v for v in range(n) if labels[v] == labels[cluster])
                assert len(inside) == 1 or inside in oracles.clusters(n, merges)
