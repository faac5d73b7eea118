"""Which matrices and networkx graphs are accepted as edges, and which are rejected."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from models import edge_set

from dynhac import GraphHAC

SYMMETRIC = np.array([[0, 0.5, 0], [0.5, 0, 0.25], [0, 0.25, 0]])
FORMATS = [
    np.array,
    sp.coo_matrix,
    sp.csr_matrix,
    sp.csc_matrix,
    sp.lil_matrix,
    sp.dok_matrix,
    sp.csr_array,
]


@pytest.mark.parametrize("triangle", [np.array, np.triu, np.tril])
@pytest.mark.parametrize("make", FORMATS)
def test_rows_of_a_matrix_are_the_ids_in_add(make, triangle):
    g = GraphHAC()
    matrix = make(triangle(SYMMETRIC) + np.diag([-1.0, 0.0, np.nan]))  # the diagonal is ignored
    before = matrix.copy()
    g.update(add=["x", "y", "z"], edges=matrix)
    assert edge_set(g) == {("x", "y"): 0.5, ("y", "z"): 0.25}
    dense = [m.todense() if sp.issparse(m) else m for m in (matrix, before)]
    np.testing.assert_array_equal(*dense)


@pytest.mark.parametrize("make", [np.array, sp.csr_matrix])
def test_rows_of_a_matrix_are_all_ids_without_add(make):
    g = GraphHAC()
    g.add([30, 10, 20])
    g.update(edges=make(SYMMETRIC))
    assert edge_set(g) == {(10, 30): 0.5, (10, 20): 0.25}
    g.update(edges=make(SYMMETRIC * 2))
    assert edge_set(g) == {(10, 30): 1.0, (10, 20): 0.5}


@pytest.mark.parametrize("make", [np.array, sp.csr_matrix])
def test_from_matrix(make):
    g = GraphHAC.from_graph(make(SYMMETRIC + np.eye(3)), threshold=0.01)
    assert g.ids.tolist() == [0, 1, 2]
    assert edge_set(g) == {(0, 1): 0.5, (1, 2): 0.25}
    named = GraphHAC.from_graph(make(SYMMETRIC), ids=["x", "y", "z"])
    assert named.ids.tolist() == ["x", "y", "z"]
    assert named.dendrogram().children.tolist() == g.dendrogram().children.tolist()


def test_sparse_entries_stored_twice_are_summed_and_zeros_are_no_edges():
    matrix = sp.coo_matrix(([0.25, 0.25, 0.0], ([0, 0, 1], [1, 1, 2])), shape=(3, 3))
    g = GraphHAC.from_graph(matrix)
    assert edge_set(g) == {(0, 1): 0.5}


def test_the_values_of_a_matrix_agree_up_to_rounding_and_tiny_ones_are_no_edges():
    matrix = np.array([[1, 0.5, 1e-15], [0.5 + 1e-9, 1, 3], [0, 3, 1]])
    for make in (np.array, sp.csr_array):
        g = GraphHAC.from_graph(make(matrix), resolution=2**-20)
        assert edge_set(g) == {(0, 1): 0.5, (1, 2): 3.0}


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (
            np.array([[0, 1, 0], [2, 0, 0], [0, 0, 0]]),
            "edges is not symmetric: row 0, column 1 is 1.0, but row 1, column 0 is 2.0",
        ),
        (SYMMETRIC * np.nan, "row 0, column 1 of edges is nan; similarities must be finite"),
        (np.full((3, 3), np.inf), "row 0, column 1 of edges is inf"),
        (SYMMETRIC[:2], r"shape \(2, 3\); it must be square"),
        (np.zeros((4, 4)), r"shape \(4, 4\); .*the ids in add.* must be of shape \(3, 3\)"),
        (SYMMETRIC > 0, "dtype bool"),
        (SYMMETRIC * 1j, "dtype complex"),
        (-np.tril(SYMMETRIC), "row 1, column 0 of edges is -0.5; similarities must be .* >= 0"),
    ],
)
@pytest.mark.parametrize("make", [np.array, sp.csr_matrix])
def test_bad_matrices(make, matrix, message):
    g = GraphHAC()
    with pytest.raises(ValueError, match=message):
        g.update(add=[0, 1, 2], edges=make(matrix))
    assert len(g) == 0
    with pytest.raises(ValueError, match=r"shape \(2, 3\); .*square"):
        GraphHAC.from_graph(make(SYMMETRIC[:2]))


def weighted(*edges, make=nx.Graph):
    graph = make()
    graph.add_weighted_edges_from(edges)
    return graph


def test_networkx_nodes_are_added_as_needed():
    graph = weighted(("a", "b", 0.5), ("b", "c", 0.25))
    graph.add_node("alone")
    g = GraphHAC.from_graph(graph)
    assert sorted(g.ids) == ["a", "alone", "b", "c"]
    g.update(add=["e"], edges=weighted(("c", "d", 0.75), ("e", "a", 0.5)))
    assert sorted(g.ids) == ["a", "alone", "b", "c", "d", "e"]
    assert edge_set(g) == {("a", "b"): 0.5, ("b", "c"): 0.25, ("c", "d"): 0.75, ("a", "e"): 0.5}


def test_networkx_nodes_in_remove_are_replaced():
    g = GraphHAC.from_graph(weighted((1, 2, 0.5), (2, 3, 0.5)))
    g.update(remove=[2, 3], edges=weighted((1, 2, 0.25)))
    assert sorted(g.ids.tolist()) == [1, 2]
    assert edge_set(g) == {(1, 2): 0.25}


def test_networkx_directions_do_not_matter():
    g = GraphHAC.from_graph(weighted((1, 2, 0.5), (2, 1, 0.5), make=nx.DiGraph))
    assert edge_set(g) == {(1, 2): 0.5}
    with pytest.raises(ValueError, match="two weights"):
        GraphHAC.from_graph(weighted((1, 2, 0.5), (2, 1, 0.25), make=nx.DiGraph))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.path_graph(3), r"edge \(0, 1\) has no attribute 'weight'"),
        (weighted((1, 2, 0.5), make=nx.MultiGraph), "multigraph"),
        (weighted((1, "a", 0.5)), "a mix"),
        (weighted((1.5, 2, 0.5)), "is 1.5"),
        (weighted((1, 2, float("nan"))), r"weight of edge \(1, 2\) is nan"),
        (weighted((1, 2, "x")), r"weight of edge \(1, 2\) is 'x' \(str\)"),
        (weighted((1, 1, 0.5)), "self loop"),
    ],
)
def test_bad_networkx(graph, message):
    g = GraphHAC()
    with pytest.raises(ValueError, match=message):
        g.update(edges=graph)
    assert len(g) == 0


def test_networkx_nodes_of_the_other_id_type():
    g = GraphHAC()
    g.add([1, 2])
    with pytest.raises(ValueError, match="'a' in add is a str, but the ids of this graph are int"):
        g.update(edges=weighted(("a", "b", 0.5)))
