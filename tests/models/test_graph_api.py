"""GraphHAC from outside: batches, reads, parameters, with int and with str ids."""

import subprocess
import sys

import numpy as np
import pytest
from models import edge_set, partition, random_edges, state

import dynhac
from dynhac import GraphHAC

NAMES = {"int": lambda i: i, "str": lambda i: f"v{i:03}"}


@pytest.fixture(params=NAMES)
def name(request):
    """Turns 0, 1, ... into ids of one kind."""
    return NAMES[request.param]


def two_pairs(name, **parameters):
    """0-1 and 2-3 tight, with a weak edge between them."""
    g = GraphHAC(**parameters)
    ids = [name(i) for i in range(4)]
    g.update(add=ids, edges=(ids[:3], ids[1:], [0.9, 0.2, 0.8]))
    return g


def test_a_batch_adds_vertices_and_edges(name):
    g = two_pairs(name)
    assert len(g) == 4
    assert g.ids.tolist() == [name(i) for i in range(4)]
    assert edge_set(g) == pytest.approx(
        {(name(0), name(1)): 0.9, (name(1), name(2)): 0.2, (name(2), name(3)): 0.8}
    )
    assert g.labels(0.5).tolist() == [0, 0, 1, 1]
    assert g.dendrogram().similarity.tolist() == pytest.approx([0.9, 0.8, 0.05])


def test_membership(name):
    g = two_pairs(name)
    assert name(3) in g
    assert name(4) not in g
    g.remove(name(3))
    assert name(3) not in g


@pytest.mark.parametrize("other", [None, 3.0, (1,), 2**70, -(2**63) - 1, "nobody", b"v1", True])
def test_membership_of_what_cannot_be_an_id(name, other):
    g = two_pairs(name)
    assert other not in g


def test_numpy_integers_are_ids():
    g = two_pairs(NAMES["int"])
    assert np.int32(2) in g
    assert np.uint64(2**64 - 1) not in g


def test_everything_in_one_batch(name):
    g = two_pairs(name)
    g.update(
        remove=[name(0)],
        add=[name(7)],
        remove_edges=([name(2)], [name(1)]),
        edges=([name(7), name(2)], [name(1), name(3)], [0.7, 0.6]),
    )
    assert g.ids.tolist() == [name(1), name(2), name(3), name(7)]
    assert edge_set(g) == pytest.approx({(name(1), name(7)): 0.7, (name(2), name(3)): 0.6})
    assert g.labels(0.5).tolist() == [0, 1, 1, 0]


def test_an_id_in_remove_and_add_is_replaced(name):
    g = two_pairs(name)
    g.update(remove=name(1), add=name(1), edges=(name(1), name(3), 0.5))
    assert edge_set(g) == pytest.approx({(name(2), name(3)): 0.8, (name(1), name(3)): 0.5})
    assert g.ids.tolist() == [name(0), name(2), name(3), name(1)]
    assert g.verify()


def test_an_edge_may_be_listed_in_both_directions(name):
    g = GraphHAC()
    ids = [name(i) for i in range(3)]
    g.update(add=ids, edges=([ids[0], ids[1], ids[0]], [ids[1], ids[0], ids[1]], [0.5, 0.5, 0.5]))
    assert edge_set(g) == {(ids[0], ids[1]): 0.5}


def test_an_edge_may_be_removed_beside_its_end_twice_or_to_be_set_again(name):
    g = two_pairs(name)
    a, b, c, d = (name(i) for i in range(4))
    g.update(
        remove=a, remove_edges=([a, c, b, c], [b, b, c, d]), edges=([c, c], [d, b], [0.7, 0.6])
    )
    assert edge_set(g) == pytest.approx({(c, d): 0.7, (b, c): 0.6})
    g.remove_edges([b, c], [c, b])
    assert edge_set(g) == pytest.approx({(c, d): 0.7})
    assert g.verify()


def test_setting_an_edge_replaces_its_weight(name):
    g = two_pairs(name)
    g.set_edges(name(2), name(1), 1.5)
    assert edge_set(g)[name(1), name(2)] == 1.5
    assert g.labels(1.2).tolist() == [0, 1, 1, 2]


def test_shorthands_are_updates(name):
    g, h = two_pairs(name), two_pairs(name)
    g.add([name(4), name(5)], (name(4), name(5), 0.25))
    g.set_edges([name(4)], [name(0)], [0.5])
    g.remove_edges(name(1), name(0))
    g.remove([name(3)])
    h.update(add=[name(4), name(5)], edges=(name(4), name(5), 0.25))
    h.update(edges=([name(4)], [name(0)], [0.5]))
    h.update(remove_edges=(name(1), name(0)))
    h.update(remove=[name(3)])
    assert state(g) == state(h)


def test_an_empty_update_changes_nothing(name):
    g = two_pairs(name)
    before = state(g)
    for batch in ({}, {"add": []}, {"remove": np.array([])}, {"edges": ([], [], [])}):
        change = g.update(**batch)
        assert change.nodes_created == change.nodes_removed == 0
    assert state(g) == before


def test_all_vertices_may_go_and_come_back(name):
    g = two_pairs(name)
    g.remove(g.ids)
    assert len(g) == 0
    assert g.ids.tolist() == []
    assert g.labels(0.5).tolist() == []
    assert len(g.dendrogram()) == 0
    assert g.verify()
    g.add([name(1), name(2)], (name(1), name(2), 0.5))
    assert g.labels(0.5).tolist() == [0, 0]


def test_an_empty_model():
    g = GraphHAC()
    assert len(g) == 0
    assert g.ids.dtype == np.int64
    assert g.ids.tolist() == []
    assert [column.tolist() for column in g.edges()] == [[], [], []]
    assert g.cut([0.5, 0.1]).shape == (2, 0)
    assert g.verify()
    assert 7 not in g
    assert "a" not in g
    assert repr(g).startswith("<GraphHAC: 0 vertices")


def test_strings_behave_as_ints_do():
    """The same random stream with both kinds of ids, removals and replacements included."""
    rng = np.random.default_rng(5)
    g, h = GraphHAC(), GraphHAC()
    alive = []
    text = NAMES["str"]
    for step in range(60):
        gone = [i for i in alive if rng.random() < 0.15]
        back = [i for i in gone if rng.random() < 0.3]
        new = [*range(3 * step, 3 * step + 3), *back]
        alive = [i for i in alive if i not in gone] + new
        pairs = {tuple(sorted(rng.choice(alive, 2, replace=False).tolist())) for _ in range(6)}
        u, v = zip(*sorted(pairs), strict=True)
        w = (rng.integers(1, 2**20, len(u)) * 2.0**-20).tolist()
        g.update(remove=gone, add=new, edges=(u, v, w))
        h.update(
            remove=[text(i) for i in gone],
            add=[text(i) for i in new],
            edges=([text(i) for i in u], [text(i) for i in v], w),
        )
        assert h.ids.tolist() == [text(i) for i in g.ids.tolist()]
        assert edge_set(h) == {(text(a), text(b)): w for (a, b), w in edge_set(g).items()}
    assert g.verify()
    assert h.verify()
    assert text(alive[0]) in h
    assert all(text(i) not in h for i in range(180) if i not in alive)


def test_change_counts_and_names_nodes(name):
    g = two_pairs(name)
    before = g.dendrogram()
    change = g.update(add=name(4), edges=(name(4), name(3), 0.85))
    after = g.dendrogram()
    assert len(change.created) == change.nodes_created > 0
    assert len(change.removed) == change.nodes_removed > 0
    assert change.levels >= 1
    assert change.groups_rerun >= 1
    assert change.vertices_rerun >= 1
    assert change.edges_rerun >= 1
    assert change.edges_changed >= 1
    assert 0 <= change.seconds < 10
    assert set(change.removed.node_ids.tolist()) <= set(before.node_ids.tolist())
    assert set(change.created.node_ids.tolist()) <= set(after.node_ids.tolist())
    both = set(change.removed.node_ids.tolist()) & set(change.created.node_ids.tolist())
    assert set(change.passed_on.tolist()) == both
    kept = set(before.node_ids.tolist()) - set(change.removed.node_ids.tolist())
    assert kept | set(change.created.node_ids.tolist()) == set(after.node_ids.tolist())


def test_change_is_a_record_that_later_updates_leave_alone(name):
    g = GraphHAC()
    change = g.add([name(0), name(1)], (name(0), name(1), 0.5))
    g.remove([name(0), name(1)])
    (node,) = change.created
    assert (node.similarity, node.size, node.passed_on) == (0.5, 2, False)
    assert change.created[0] == node
    assert list(change.removed) == []
    assert change.created is change.created
    with pytest.raises(ValueError, match="read-only"):
        change.created.size[0] = 3
    assert "1 node created, 0 removed" in repr(change)
    assert "2 leaves at 0.5" in repr(change.created)


def test_untouched_clusters_keep_their_ids(name):
    g = two_pairs(name, threshold=0.1)
    kept = g.dendrogram().node_ids[0]
    change = g.update(add=name(9), edges=(name(9), name(3), 0.5))
    d = g.dendrogram()
    pair = [sorted(d.ids[c] for c in merge if c < d.n_leaves) for merge in d.children.tolist()]
    assert d.node_ids[pair.index([name(0), name(1)])] == kept
    assert kept not in change.created.node_ids


def test_a_long_repr_of_nodes_is_cut():
    g = GraphHAC()
    change = g.add(range(40), (range(0, 40, 2), range(1, 40, 2), [0.5] * 20))
    assert repr(change.created).count("\n") == 11
    assert "and 10 more" in repr(change.created)


def test_from_graph_takes_the_vertices_that_edges_mention(name):
    u, v = [name(5), name(3)], [name(3), name(4)]
    g = GraphHAC.from_graph((u, v, [0.5, 0.25]), epsilon=0.0, threshold=0.0)
    assert sorted(g.ids.tolist()) == [name(3), name(4), name(5)]
    assert g.ids[0] == name(5)
    assert (g.epsilon, g.threshold) == (0.0, 0.0)
    assert len(GraphHAC.from_graph((u, v, [0.5, 0.25]), ids=[*u, name(4), name(6)])) == 4


def test_labels_by_number_of_clusters(name):
    g = two_pairs(name)
    for k in range(1, 5):
        assert len(partition(g.labels(n_clusters=k))) == k
    assert g.labels(n_clusters=2).tolist() == [0, 0, 1, 1]
    assert g.labels(0.85, min_size=2).tolist() == [0, 0, -1, -1]


def test_threshold_zero_merges_all_that_hangs_together(name):
    g = GraphHAC(threshold=0)
    ids = [name(i) for i in range(30)]
    g.add(ids, (ids[:19], ids[1:20], [2.0**-30] * 19))
    assert len(g.dendrogram().roots) == 11


def test_threshold_stops_merging(name):
    g = two_pairs(name, epsilon=0, threshold=0.1)
    assert len(g.dendrogram().roots) == 2
    assert g.labels(0.1).tolist() == [0, 0, 1, 1]


def test_parameters_and_sizes():
    g = GraphHAC(epsilon=0.25, threshold=0.01, resolution=2.0**-20, threads=2)
    assert (g.epsilon, g.threshold, g.resolution, g.threads) == (0.25, 0.01, 2.0**-20, 2)
    u, v, w = random_edges(100, 300)
    assert g.version == 0
    g.add(range(100), (u, v, w))
    assert g.version == 1
    assert g.level_sizes[0] == (100, 300)
    assert g.n_levels == len(g.level_sizes)
    assert g.memory > 0
    assert repr(g).startswith("<GraphHAC: 100 vertices, 300 edges")
    assert "epsilon=0.25" in repr(g)


def test_weights_are_rounded_to_the_resolution():
    g = GraphHAC(resolution=0.25)
    g.add([1, 2], (1, 2, 0.7))
    assert edge_set(g) == {(1, 2): 0.75}


def test_threads_do_not_change_the_result():
    u, v, w = random_edges(2000, 8000, seed=3)
    models = [GraphHAC(threads=threads) for threads in (1, 2, 4)]
    for g in models:
        g.add(range(2000), (u, v, w))
        g.remove(range(0, 2000, 7))
    assert state(models[0]) == state(models[1]) == state(models[2])


def test_verify_reports(name):
    report = two_pairs(name).verify()
    assert report
    assert report.ok
    assert (report.merges, report.bad_merges, report.wrong_similarities) == (3, 0, 0)
    assert (report.heavy_edges_left, report.wrong_caches) == (0, ())
    assert report.worst_goodness <= 1.1
    assert str(report).startswith("verified: 3 merges, all good")
    with pytest.raises(AttributeError):
        report.ok = False


def test_a_bad_report_says_what_is_wrong():
    report = dynhac.VerifyReport(False, 10, 2, 1.5, 1, 3, tuple(f"hi of {i}" for i in range(12)), 0)
    assert not report
    told = str(report)
    assert told.startswith("NOT VERIFIED (10 merges")
    for part in ("not good: 2, worst 1.5", "wrong similarity: 1", "left unmerged: 3", "hi of 9"):
        assert part in told
    assert "hi of 10" not in told


def test_inputs_are_left_alone(name):
    ids = np.array([name(i) for i in range(4)])
    u, v, w = ids[:3].copy(), ids[1:].copy(), np.array([0.9, 0.2, 0.8])
    kept = [column.copy() for column in (ids, u, v, w)]
    for column in (ids, u, v, w):
        column.setflags(write=False)
    g = GraphHAC()
    g.update(add=ids, edges=(u, v, w))
    g.update(remove=ids[:1], edges=(u[1:], v[1:], w[1:]))
    for column, before in zip((ids, u, v, w), kept, strict=True):
        assert np.array_equal(column, before)


def test_what_is_read_does_not_reach_the_model(name):
    g = two_pairs(name)
    before = state(g)
    for column in g.edges():
        column[:] = column[::-1].copy()
    g.labels(0.5)[:] = 9
    with pytest.raises(ValueError, match="read-only"):
        g.ids[0] = g.ids[1]
    assert state(g) == before


def test_import_is_light():
    code = "import dynhac, sys; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    heavy = {"scipy", "networkx", "pandas", "pyarrow", "matplotlib", "sklearn"}
    assert not loaded & heavy


def test_edges_and_degrees_of_some_vertices():
    g = GraphHAC()
    g.add(["a", "b", "c", "d"], edges=(["a", "b"], ["b", "c"], [0.5, 0.25]))
    u, v, w = g.edges(of=["b", "d", "a"])
    assert sorted(zip(u, v, w, strict=True)) == [
        ("a", "b", 0.5),
        ("b", "a", 0.5),
        ("b", "c", 0.25),
    ]
    assert g.degrees(["d", "b", "b"]).tolist() == [0, 2, 2]
    for ids in (["x"], [1], ["a", "x"]):
        with pytest.raises(KeyError, match=f"id {ids[-1]!r} is not in the graph"):
            g.degrees(ids)
    assert g.degrees([]).tolist() == []


def test_a_str_is_no_int_id():
    """Not -1 either, which the core uses for texts without a key."""
    g = GraphHAC()
    g.add([0, 1, -1], edges=(0, -1, 0.5))
    watch = g.watch(0.25)
    for name in ("n", "", "-1"):
        assert name not in g
        for read in (lambda n=name: g.explain(n, 0), lambda n=name: watch.cluster_of(n)):
            with pytest.raises(KeyError, match="is not in the graph"):
                read()
